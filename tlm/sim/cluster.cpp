// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster.h"

#include <ostream>

namespace prawn {

node::node(sc_core::sc_module_name name, std::uint16_t number,
           const sim_config& config, const timing_profile& profile,
           event_log* events) :
    sc_core::sc_module(name),
    m_counters(PRAWN_CONTEXTS),
    m_env{number, static_cast<std::uint16_t>(config.fabric.nodes), &profile,
          &m_counters, events},
    m_checker(config.checker ? std::make_unique<grant_checker>("checker", m_env)
                             : nullptr),
    card("card", m_env, config.nic, m_checker.get()),
    bus("bus", m_env, config.host) {
    card.interrupt_out.bind(bus.interrupt_in);
    bus.control_out.bind(card);
    bus.bar_out.bind(card.bar_in);
    if (m_checker) {
        card.dma_out.bind(m_checker->dma_in);
        m_checker->dma_out.bind(bus.dma_in);
    } else {
        card.dma_out.bind(bus.dma_in);
    }
}

cluster::cluster(sc_core::sc_module_name name, const sim_config& config,
                 event_log* events) :
    sc_core::sc_module(name),
    m_profile(config.profile_text.empty()
                  ? timing_profile::load(config.profile_path)
                  : timing_profile::parse(config.profile_text,
                                          "profile " + config.profile)),
    m_fabric_counters(1),
    m_fabric(std::make_unique<fabric>("fabric", config.fabric, m_profile,
                                      m_fabric_counters, events)) {
    for (unsigned k = 0; k < config.fabric.nodes; k++) {
        m_nodes.push_back(std::make_unique<node>(
            ("node" + std::to_string(k)).c_str(), static_cast<std::uint16_t>(k),
            config, m_profile, events));
        nic& card = m_nodes.back()->card;
        card.link_out.bind(m_fabric->in(k));
        card.credit_out.bind(m_fabric->taken_in(k));
        m_fabric->out[k].bind(card.link_in());
        m_fabric->credit_out[k].bind(card.credit_in());
    }
}

void cluster::write_table(std::ostream& out) const {
    out << "model time " << sc_core::sc_time_stamp() << ", profile "
        << m_profile.name << "\n";
    for (std::size_t k = 0; k < m_nodes.size(); k++) {
        out << "\nnode " << k << "\n";
        m_nodes[k]->counters().write_table(out);
    }
    out << "\nfabric\n";
    m_fabric_counters.write_table(out);
    for (const std::string& line : failures())
        out << line << "\n";
}

void cluster::write_json(std::ostream& out, const std::string& skew) const {
    out << "{\"time_ps\": " << now_ps() << ", \"profile\": \"" << m_profile.name
        << "\", \"skew\": \"" << skew << "\", \"nodes\": [";
    for (std::size_t k = 0; k < m_nodes.size(); k++) {
        out << (k ? ", " : "");
        m_nodes[k]->counters().write_json(out);
    }
    out << "], \"fabric\": ";
    m_fabric_counters.write_json(out);
    out << "}\n";
}

std::vector<std::string> cluster::failures() const {
    std::vector<std::string> lines;
    for (std::size_t k = 0; k < m_nodes.size(); k++) {
        const grant_checker* checker = m_nodes[k]->checker();
        if (!checker)
            continue;
        for (const grant_checker::failure& f : checker->failures())
            lines.push_back("node " + std::to_string(k) + ": " + f.text());
    }
    return lines;
}

}  // namespace prawn
