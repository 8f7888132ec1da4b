// SPDX-License-Identifier: Apache-2.0
// Packets on their way to the network, one queue for each peer, and the
// refusals that this card owes its peers.

#ifndef PRAWN_NIC_OUTGOING_FIFO_H
#define PRAWN_NIC_OUTGOING_FIFO_H

#include <array>
#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/direct_in.h"

namespace prawn {

// Contract: outgoing_fifo_base.
//
// Two classes of packet. Urgent: management packets and refusals, which take
// turns within a peer; data. Urgent ones go first, peers take turns in either
// class. What is refused downstream waits for room(), each peer and class for
// itself.
//
// A refusal becomes a NACK when it is sent. It echoes message, message offset,
// context, import, export and offset of the refused packet, not its key. Later
// refusals of the same import join the one that waits: its reason stays the
// first. A refused MGMT packet belongs to no import: its NACK has NO_IMPORT.
// Only DATA and MGMT are ever refused; more than REFUSALS waiting imports of a
// peer are dropped (the next refused packet of theirs tries again).
//
// PEER_ERROR keeps HELLO and BYE: they belong to no life of the peer.
class outgoing_fifo final : public outgoing_fifo_base
{
public:
    static constexpr unsigned FIFO_CYCLES = 3;  // write, pointer, read
    static constexpr unsigned DATA_WIDTH = 32;  // bytes a clock at the output
    static constexpr unsigned REFUSALS = 64;    // waiting imports of a peer
    static constexpr std::uint32_t NO_IMPORT = 0xffffffff;

    struct params {
        unsigned depth = 16;  // DATA packets of one peer
    };

    outgoing_fifo(sc_core::sc_module_name name, const block_env& env,
                  const params& p);
    outgoing_fifo(sc_core::sc_module_name name, const block_env& env) :
        outgoing_fifo(name, env, params()) {}

    put_if<packet_ref>& packet_in() override { return m_packet_in; }
    put_if<packet_ref>& mgmt_in() override { return m_mgmt_in; }
    put_if<refusal>& refusal_in() override { return m_refusal_in; }
    put_if<control_request>& control_in() override { return m_control; }
    std::uint32_t level() const override { return m_level; }
    void set_threshold(std::uint32_t bytes) override;
    void reset() override;

private:
    using peer_mask = std::uint32_t;
    static_assert(PRAWN_MAX_NODES <= 32, "peer_mask");
    enum class_t : unsigned { URGENT, DATA, CLASSES };

    struct queued {
        std::uint64_t due = 0;  // ps, may leave from then on
        packet_ref pkt;
    };
    // Ring of fixed size.
    struct queue {
        std::vector<queued> items;
        unsigned first = 0;
        unsigned count = 0;

        bool full() const { return count == items.size(); }
        queued& front() { return items[first]; }
        void push(packet_ref&& pkt, std::uint64_t due);
        packet_ref pop();
    };
    struct waiting_refusal {
        std::uint64_t due = 0;
        std::uint32_t import_id = 0;  // or NO_IMPORT
        refusal what;
    };
    struct peer {
        queue data;
        queue mgmt;
        std::vector<waiting_refusal> refusals;
        packet_ref nack;            // of the first refusal, once it was tried
        bool refusal_next = false;  // whose turn it is
    };

    void end_of_elaboration() override;
    bool take_packet(packet_ref& pkt);
    bool take_mgmt(packet_ref& pkt);
    bool take(packet_ref& pkt, class_t which, queue peer::*into);
    bool take_refusal(refusal& r);
    void step();
    void control(const control_request& r);
    std::uint16_t peer_error(std::uint32_t node);
    void entered(const packet& pkt);
    void left(const packet& pkt);
    void check_threshold();
    void update(std::uint16_t node);
    bool send_one(std::uint64_t now);
    std::uint64_t front_due(peer& p, class_t c) const;
    bool refusal_first(const peer& p) const;
    bool send(std::uint16_t node, class_t c);
    bool send_queued(queue& q);
    bool send_refusal(peer& p);
    packet_ref make_nack(const refusal& r) const;
    void wake_at(std::uint64_t time);

    std::vector<peer> m_peers;
    std::array<peer_mask, CLASSES> m_waiting{};  // have something to send
    std::array<peer_mask, CLASSES> m_refused{};  // until room()
    std::array<std::uint16_t, CLASSES> m_turn{};
    std::uint32_t m_level = 0;
    std::uint32_t m_threshold = 0;
    bool m_above = false;             // the threshold
    std::uint64_t m_cycle;            // ps
    std::uint64_t m_next = 0;         // the output is busy until then
    std::uint64_t m_earliest = 0;     // of what is not due yet
    std::uint64_t m_wake_at = ~0ull;  // pending m_wake

    direct_in<packet_ref, outgoing_fifo, &outgoing_fifo::take_packet>
        m_packet_in;
    direct_in<packet_ref, outgoing_fifo, &outgoing_fifo::take_mgmt> m_mgmt_in;
    direct_in<refusal, outgoing_fifo, &outgoing_fifo::take_refusal>
        m_refusal_in;
    inbox<control_request> m_control;
    sc_core::sc_event m_wake;

    counter& m_packets;
    counter& m_bytes;
    counter& m_high_water;
    counter& m_full;
    counter& m_stalls;
    counter& m_nacks;
    counter& m_nacks_merged;
    counter& m_nacks_dropped;
    counter& m_dropped;
    counter& m_bad_destination;
};

}  // namespace prawn

#endif
