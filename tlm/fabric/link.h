// SPDX-License-Identifier: Apache-2.0
// Parts of every fabric: wires that delay packets, the way back of credits;
// and the smallest fabric, a point-to-point link.

#ifndef PRAWN_FABRIC_LINK_H
#define PRAWN_FABRIC_LINK_H

#include <cstdint>
#include <memory>
#include <vector>

#include <systemc>

#include "nic/packet_tools.h"
#include "support/counters.h"
#include "support/put.h"
#include "support/ring.h"

namespace prawn {

// What the parts of one fabric share.
struct fabric_env {
    unsigned nodes = 1;
    const timing_profile* profile = nullptr;
    counter_registry* counters = nullptr;
    // To the cards, by node.
    sc_core::sc_vector<put_port<packet_ref>>* out = nullptr;
    sc_core::sc_vector<put_port<unsigned>>* credit_out = nullptr;
    std::vector<event_source> events;  // by node that sent the packet
};

// A packet on its way through the fabric.
struct hop {
    packet_ref pkt;
    std::uint8_t source = 0;
    std::uint64_t tag = 0;  // in the event stream
};

// Wire to one card: every packet comes out at its own time, in order. A card
// that refuses (only a test's twin does) holds up those behind.
class wire final : public sc_core::sc_module
{
public:
    // arrivals: where the source of each delivered packet is noted, if wanted.
    wire(sc_core::sc_module_name name, const fabric_env& env,
         unsigned destination, ring<std::uint8_t>* arrivals = nullptr);

    // when: not before that of the packet before.
    void push(const sc_core::sc_time& when, hop item);

private:
    struct entry {
        sc_core::sc_time when;
        hop item;
    };
    void end_of_elaboration() override;
    void deliver();

    const fabric_env& m_env;
    unsigned m_destination;
    ring<std::uint8_t>* m_arrivals;
    ring<entry> m_queue;
    sc_core::sc_event m_due;
    counter& m_packets;
};

// Credits of one sending card at its next hop: one pool for each destination.
//
// A credit on its way back is delivered when it is due, but no event is spent
// on one that the card cannot miss: while it holds others for the same
// destination, a due credit may wait until they are used up. The card uses
// them only by sending here, so it sees no difference.
class credit_account final : public sc_core::sc_module
{
public:
    credit_account(sc_core::sc_module_name name, const fabric_env& env,
                   unsigned source);

    // The card has sent a packet. False if it had no credit: not allowed.
    bool spend(unsigned destination);
    // One credit comes back at the given time; for each destination not before
    // the one before.
    void give(unsigned destination, const sc_core::sc_time& when);
    // Credits on their way to the card.
    unsigned pending(unsigned destination) const {
        return static_cast<unsigned>(m_pools[destination].coming.size());
    }
    // Notified when a card that was told false gets a credit.
    const sc_core::sc_event& room() const { return m_room; }

private:
    struct pool_state {
        unsigned held = 0;  // by the card
        ring<sc_core::sc_time> coming;
    };
    void deliver();
    void deliver(unsigned destination);

    const fabric_env& m_env;
    unsigned m_source;
    std::vector<pool_state> m_pools;
    std::uint32_t m_empty = 0;  // destinations with nothing held
    bool m_refused = false;
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

// What is between the links: decides when a packet arrives and when its
// sender's credit is free again.
class topology
{
public:
    virtual ~topology() = default;
    // The last byte has left the source's card; one credit has been spent.
    virtual void enter(unsigned destination, hop item) = 0;
    // A card has taken `count` packets out of its receive buffer.
    virtual void taken(unsigned node, unsigned count) = 0;
};

// One or two nodes, no switch. Packets to the own node turn round at the near
// end. Link and loop each have their own credits at the receive buffer; the
// buffer gives them back in the order of arrival.
class point_to_point final : public topology
{
public:
    point_to_point(const fabric_env& env,
                   std::vector<std::unique_ptr<credit_account>>& accounts);
    void enter(unsigned destination, hop item) override;
    void taken(unsigned node, unsigned count) override;

private:
    struct receiver {
        std::vector<std::unique_ptr<wire>> from;  // by source
        ring<std::uint8_t> arrivals;              // sources, in order
    };
    sc_core::sc_time m_latency;
    std::vector<std::unique_ptr<credit_account>>& m_accounts;
    std::vector<receiver> m_receivers;
    counter& m_credit_errors;
};

}  // namespace prawn

#endif
