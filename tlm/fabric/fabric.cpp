// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric.h"

#include <stdexcept>

#include "fabric/switch.h"

namespace prawn {

namespace {

void check(const fabric_config& config, const timing_profile& profile) {
    const auto stop = [](const std::string& what) {
        throw std::invalid_argument("fabric: " + what);
    };
    if (config.nodes < 1 || config.nodes > PRAWN_MAX_NODES)
        stop("nodes = " + std::to_string(config.nodes) + ": choose 1 to " +
             std::to_string(PRAWN_MAX_NODES));
    if (config.topology != "link" && config.topology != "switch")
        stop("topology = \"" + config.topology +
             "\": choose \"link\" or \"switch\"");
    if (config.topology == "link" && config.nodes > 2)
        stop("topology = \"link\" joins 2 nodes, not " +
             std::to_string(config.nodes) + ": choose \"switch\"");
    if (!(profile.link.bytes_per_ns > 0) || profile.link.credits == 0)
        stop("profile " + profile.name +
             ": link.bytes_per_ns and link.credits must be more than 0");
}

}  // namespace

fabric::fabric(sc_core::sc_module_name name, const fabric_config& config,
               const timing_profile& profile, counter_registry& counters,
               event_log* events) :
    sc_core::sc_module(name),
    out("out"),
    credit_out("credit_out"),
    m_packets(counters.add("fabric.packets")),
    m_bytes(counters.add("fabric.bytes")),
    m_misrouted(counters.add("fabric.misrouted")) {
    check(config, profile);
    out.init(config.nodes);
    credit_out.init(config.nodes);
    m_env.nodes = config.nodes;
    m_env.profile = &profile;
    m_env.counters = &counters;
    m_env.out = &out;
    m_env.credit_out = &credit_out;
    for (unsigned node = 0; node < config.nodes; node++) {
        m_env.events.emplace_back(events, static_cast<std::uint16_t>(node),
                                  block_id::FABRIC);
        const std::string account = "credits" + std::to_string(node);
        m_accounts.push_back(
            std::make_unique<credit_account>(account.c_str(), m_env, node));
        m_inputs.push_back(std::make_unique<packet_input>(*this, node));
        m_returns.push_back(std::make_unique<taken_input>(*this, node));
    }
    if (config.topology == "link")
        m_topology = std::make_unique<point_to_point>(m_env, m_accounts);
    else
        m_topology = std::make_unique<crossbar>(m_env, m_accounts);
}

// Everything that a node sends passes here: faults of its link belong here,
// before the topology sees the packet.
bool fabric::enter(unsigned node, packet_ref& item) {
    const header& h = item->head;
    const unsigned to = h.destination_node;
    if (to >= m_env.nodes) {
        m_misrouted++;
        item.reset();
        return true;
    }
    if (!m_accounts[node]->spend(to))
        return false;
    m_packets++;
    m_bytes += item->wire_size();
    m_env.events[node].emit(event_kind::FABRIC_BEGIN, message_of(h), m_tag, to);
    m_topology->enter(
        to, {std::move(item), static_cast<std::uint8_t>(node), m_tag++});
    return true;
}

}  // namespace prawn
