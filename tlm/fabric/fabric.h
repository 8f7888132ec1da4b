// SPDX-License-Identifier: Apache-2.0
// The network between the cards: links, and a switch if there is one.

#ifndef PRAWN_FABRIC_FABRIC_H
#define PRAWN_FABRIC_FABRIC_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/link.h"

namespace prawn {

struct fabric_config {
    unsigned nodes = 2;             // 1 to MAX_NODES
    std::string topology = "link";  // "link" (up to 2 nodes) or "switch"
};

// For each node: in() takes the packets its link_mac has sent, out gives it
// those that arrive, taken_in() takes "so many packets have left my receive
// buffer" (link_mac.credit_out), credit_out tells it "one more packet may be
// sent to that node" (link_mac.credit_in).
//
// A packet is handed over with its last byte, on both sides; the sender charges
// its serialization. Credits are of destinations: profile.link.credits packets
// each from the start. in() refuses a packet for which no credit is left: a
// card that keeps to its credits is never refused.
//
// Every node can send to itself. Nothing here is reset with a card: packets
// under way arrive, credits stay what they were.
//
// Packets to a node that does not exist are dropped and counted.
//
// Throws std::invalid_argument if the configuration makes no sense.
class fabric final : public sc_core::sc_module
{
public:
    sc_core::sc_vector<put_port<packet_ref>> out;
    sc_core::sc_vector<put_port<unsigned>> credit_out;

    fabric(sc_core::sc_module_name name, const fabric_config& config,
           const timing_profile& profile, counter_registry& counters,
           event_log* events = nullptr);

    put_if<packet_ref>& in(unsigned node) { return *m_inputs[node]; }
    put_if<unsigned>& taken_in(unsigned node) { return *m_returns[node]; }

    unsigned nodes() const { return m_env.nodes; }
    // Credits on their way back to a node: with those the node's link_mac
    // holds and the packets in fabric and receive buffers, always as many as
    // profile.link.credits.
    unsigned credits_pending(unsigned node, unsigned destination) const {
        return m_accounts[node]->pending(destination);
    }

private:
    class packet_input final : public put_if<packet_ref>
    {
    public:
        packet_input(fabric& owner, unsigned node) :
            m_owner(owner), m_node(node) {}
        bool try_put(packet_ref& item) override {
            return m_owner.enter(m_node, item);
        }
        const sc_core::sc_event& room() const override {
            return m_owner.m_accounts[m_node]->room();
        }

    private:
        fabric& m_owner;
        unsigned m_node;
    };
    class taken_input final : public put_if<unsigned>
    {
    public:
        taken_input(fabric& owner, unsigned node) :
            m_owner(owner), m_node(node) {}
        bool try_put(unsigned& count) override {
            m_owner.m_topology->taken(m_node, count);
            return true;
        }
        const sc_core::sc_event& room() const override { return m_never; }

    private:
        fabric& m_owner;
        unsigned m_node;
        sc_core::sc_event m_never;
    };

    bool enter(unsigned node, packet_ref& item);

    fabric_env m_env;
    std::vector<std::unique_ptr<credit_account>> m_accounts;  // by sender
    std::unique_ptr<topology> m_topology;
    std::vector<std::unique_ptr<packet_input>> m_inputs;
    std::vector<std::unique_ptr<taken_input>> m_returns;
    std::uint64_t m_tag = 0;

    counter& m_packets;
    counter& m_bytes;
    counter& m_misrouted;
};

}  // namespace prawn

#endif
