// SPDX-License-Identifier: Apache-2.0
#include "fabric/switch.h"

#include <algorithm>
#include <string>

namespace prawn {

using sc_core::sc_time;
using sc_core::sc_time_stamp;

crossbar::output::output(
    sc_core::sc_module_name name, const fabric_env& env, unsigned node,
    std::vector<std::unique_ptr<credit_account>>& accounts) :
    sc_core::sc_module(name),
    m_node(node),
    m_rate(*env.profile),
    m_switch_latency(env.profile->link.switch_latency),
    m_links(env.profile->link.latency + env.profile->link.latency),
    m_accounts(accounts),
    m_limit(env.profile->link.credits),
    m_credits(m_limit),
    m_queues(env.nodes),
    m_wire(basename(), env, node),
    m_credit_waits(env.counters->add(std::string("fabric.") + basename() +
                                     ".credit_waits")) {
    SC_HAS_PROCESS(output);
    SC_METHOD(arbitrate);
    dont_initialize();
    sensitive << m_arbitrate;
}

void crossbar::output::enter(hop item) {
    const unsigned input = item.source;
    m_queues[input].push_back({std::move(item), sc_time_stamp()});
    m_ready |= 1U << input;
    if (m_credits == 0)
        m_credit_waits++;
    ask();
}

bool crossbar::output::give(unsigned count) {
    const bool sane = count <= m_limit - m_credits;
    m_credits = sane ? m_credits + count : m_limit;
    ask();
    return sane;
}

// Decides when the output is free, and never in the call that brought a packet:
// of those that come in one instant, the port's turn decides.
void crossbar::output::ask() {
    if (m_asked || m_ready == 0 || m_credits == 0)
        return;
    m_asked = true;
    const sc_time& now = sc_time_stamp();
    m_arbitrate.notify(m_free > now ? m_free - now : sc_core::SC_ZERO_TIME);
}

void crossbar::output::arbitrate() {
    m_asked = false;
    grant(next_input());
    ask();
}

unsigned crossbar::output::next_input() const {
    for (unsigned i = m_turn; i < m_queues.size(); i++)
        if (m_ready >> i & 1)
            return i;
    unsigned i = 0;
    while (!(m_ready >> i & 1))
        i++;
    return i;
}

void crossbar::output::grant(unsigned input) {
    waiting w = m_queues[input].pop_front();
    if (m_queues[input].empty())
        m_ready &= ~(1U << input);
    m_turn = input + 1;
    m_credits--;
    const sc_time& now = sc_time_stamp();
    const sc_time length = m_rate.time(*w.item.pkt);
    // The last byte leaves: not before the switch has passed it on, and not
    // before everything has been sent, which began when the output was free
    // or, had the packet to wait for a credit, now.
    const bool waited = w.arrival < now;
    m_free = std::max(w.arrival + m_switch_latency,
                      (waited ? now : m_free) + length);
    m_accounts[input]->give(m_node, m_free + m_links);
    m_wire.push(m_free + m_links, std::move(w.item));
}

crossbar::crossbar(const fabric_env& env,
                   std::vector<std::unique_ptr<credit_account>>& accounts) :
    m_credit_errors(env.counters->add("fabric.credit_errors")) {
    for (unsigned node = 0; node < env.nodes; node++) {
        const std::string name = "out" + std::to_string(node);
        m_outputs.push_back(
            std::make_unique<output>(name.c_str(), env, node, accounts));
    }
}

void crossbar::enter(unsigned destination, hop item) {
    m_outputs[destination]->enter(std::move(item));
}

void crossbar::taken(unsigned node, unsigned count) {
    if (!m_outputs[node]->give(count))
        m_credit_errors++;
}

}  // namespace prawn
