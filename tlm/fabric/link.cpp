// SPDX-License-Identifier: Apache-2.0
#include "fabric/link.h"

#include <string>

namespace prawn {

using sc_core::sc_time;
using sc_core::sc_time_stamp;

// -- wire --------------------------------------------------------------------

wire::wire(sc_core::sc_module_name name, const fabric_env& env,
           unsigned destination, ring<std::uint8_t>* arrivals) :
    sc_core::sc_module(name),
    m_env(env),
    m_destination(destination),
    m_arrivals(arrivals),
    m_packets(
        env.counters->add(std::string("fabric.") + basename() + ".packets")) {}

void wire::end_of_elaboration() {
    SC_HAS_PROCESS(wire);
    SC_METHOD(deliver);
    dont_initialize();
    sensitive << m_due << (*m_env.out)[m_destination]->room();
}

void wire::push(const sc_time& when, hop item) {
    if (m_queue.empty())
        m_due.notify(when - sc_time_stamp());
    m_queue.push_back({when, std::move(item)});
}

void wire::deliver() {
    while (!m_queue.empty()) {
        entry& e = m_queue.front();
        const sc_time& now = sc_time_stamp();
        if (e.when > now) {
            m_due.notify(e.when - now);
            return;
        }
        const event_source& events = m_env.events[e.item.source];
        message_id message;
        if (events.enabled())
            message = message_of(e.item.pkt->head);
        // The card may give the credit back from within its try_put.
        if (m_arrivals)
            m_arrivals->push_back(e.item.source);
        if (!(*m_env.out)[m_destination]->try_put(e.item.pkt)) {
            if (m_arrivals)
                m_arrivals->pop_back();
            return;
        }
        m_packets++;
        events.emit(event_kind::FABRIC_END, message, e.item.tag, m_destination);
        m_queue.pop_front();
    }
}

// -- credit_account ----------------------------------------------------------

credit_account::credit_account(sc_core::sc_module_name name,
                               const fabric_env& env, unsigned source) :
    sc_core::sc_module(name), m_env(env), m_source(source), m_pools(env.nodes) {
    for (pool_state& p : m_pools)
        p.held = env.profile->link.credits;
    SC_HAS_PROCESS(credit_account);
    SC_METHOD(deliver);
    dont_initialize();
    sensitive << m_due;
}

bool credit_account::spend(unsigned destination) {
    pool_state& p = m_pools[destination];
    if (p.held == 0) {
        m_refused = true;
        return false;
    }
    if (--p.held == 0) {
        m_empty |= 1U << destination;
        deliver(destination);
    }
    return true;
}

void credit_account::give(unsigned destination, const sc_time& when) {
    pool_state& p = m_pools[destination];
    p.coming.push_back(when);
    if (p.held == 0)
        m_due.notify(when - sc_time_stamp());
}

void credit_account::deliver() {
    for (unsigned d = 0; d < m_pools.size(); d++)
        if (m_empty >> d & 1)
            deliver(d);
}

// All that is due; if the card still has none, wake up for the next.
void credit_account::deliver(unsigned destination) {
    pool_state& p = m_pools[destination];
    const sc_time& now = sc_time_stamp();
    while (!p.coming.empty() && p.coming.front() <= now) {
        p.coming.pop_front();
        p.held++;
        unsigned credit = destination;
        (*m_env.credit_out)[m_source]->try_put(credit);
    }
    if (p.held != 0) {
        m_empty &= ~(1U << destination);
        if (m_refused) {
            m_refused = false;
            m_room.notify(sc_core::SC_ZERO_TIME);
        }
    } else if (!p.coming.empty()) {
        m_due.notify(p.coming.front() - now);
    }
}

// -- point_to_point ----------------------------------------------------------

point_to_point::point_to_point(
    const fabric_env& env,
    std::vector<std::unique_ptr<credit_account>>& accounts) :
    m_latency(env.profile->link.latency),
    m_accounts(accounts),
    m_receivers(env.nodes),
    m_credit_errors(env.counters->add("fabric.credit_errors")) {
    for (unsigned to = 0; to < env.nodes; to++)
        for (unsigned from = 0; from < env.nodes; from++) {
            const std::string name =
                "link" + std::to_string(from) + "to" + std::to_string(to);
            m_receivers[to].from.push_back(std::make_unique<wire>(
                name.c_str(), env, to, &m_receivers[to].arrivals));
        }
}

void point_to_point::enter(unsigned destination, hop item) {
    wire& w = *m_receivers[destination].from[item.source];
    w.push(sc_time_stamp() + m_latency, std::move(item));
}

void point_to_point::taken(unsigned node, unsigned count) {
    ring<std::uint8_t>& arrivals = m_receivers[node].arrivals;
    for (; count != 0; count--) {
        if (arrivals.empty()) {
            m_credit_errors++;
            return;
        }
        m_accounts[arrivals.pop_front()]->give(node,
                                               sc_time_stamp() + m_latency);
    }
}

}  // namespace prawn
