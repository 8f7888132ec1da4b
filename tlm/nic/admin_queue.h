// SPDX-License-Identifier: Apache-2.0
// The kernel's admin ring: commands that set up and tear down everything else.

#ifndef PRAWN_NIC_ADMIN_QUEUE_H
#define PRAWN_NIC_ADMIN_QUEUE_H

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <vector>

#include "nic/contracts.h"
#include "nic/pools.h"
#include "support/handler.h"

namespace prawn {

// Contract: admin_queue_base. Up to SLOTS commands are in progress and are
// acknowledged as they end. They start in ring order; one that enables or
// disables a context waits for all earlier ones of that context, and later
// ones of the context wait for it.
//
// A command is a sequence of stages; a stage puts control requests to some
// blocks at once and ends with the last reply. No stage waits for credits or
// peers. The status of a command is the first that was not OK.
//
// What the ring says is checked here in full, so that blocks see sound
// requests only: unknown opcode, fields that the opcode does not use and that
// are not zero, ranges, addresses that wrap, contexts in the wrong state.
// `context` is checked where the opcode means one, and free in others.
//
// A ring that cannot be used (base, size, a producer more than a ring ahead,
// DMA refused) stops the queue until reset: STATUS.ADMIN_ERROR.
//
// Not here: PEER_CONTROL "welcome" changes nothing in this card, whose
// reliable block has no memory of dead peers; it is checked and acknowledged.
class admin_queue final : public admin_queue_base
{
public:
    static constexpr unsigned SLOTS = 8;
    static constexpr unsigned DECODE_CYCLES = 8;  // from one start to the next
    static constexpr unsigned BATCH = 8;          // commands fetched at once

    admin_queue(sc_core::sc_module_name name, const block_env& env);

    put_if<dma_reply>& dma_reply_in() override { return m_dma_reply_in; }
    put_if<peer_event>& peer_in() override { return m_peer_in; }
    put_if<packet_ref>& nack_in() override { return m_nack_in; }
    put_if<control_reply>& reply_in(unsigned target) override;
    put_if<control_request>& control_in() override { return m_control_in; }
    void set_ring(std::uint64_t base, unsigned log2) override;
    void ring_doorbell(std::uint32_t producer) override;
    bool error() const override { return m_error; }
    void reset() override;

private:
    struct step {
        control_target target;
        control_op op;
    };
    using stage = std::vector<step>;
    using sequence = std::vector<stage>;

    // Who a control request was made for: a slot, or the card itself.
    static constexpr unsigned INTERNAL = SLOTS;

    struct command {
        std::uint32_t index = 0;  // in the ring
        prawn_admin_command entry{};
    };
    struct slot_t {
        bool used = false;
        command cmd;
        const sequence* steps = nullptr;
        std::size_t stage = 0;
        unsigned waiting = 0;  // replies, or the message's DMA
        std::uint16_t status = 0;
        packet_ref message;  // MGMT_SEND
    };
    // Requests to one block beyond its window wait here.
    struct channel {
        std::deque<control_request> queue;
        unsigned in_flight = 0;
    };
    struct queued_peer {
        peer_event event;
        std::uint16_t status;  // for its imports
        bool tell_kernel;
    };

    // Inputs.
    void on_dma_reply(dma_reply& r);
    void on_peer(peer_event& e);
    void on_nack(packet_ref& p);
    void on_reply(unsigned target, control_reply& r);
    void on_control(control_request& r);

    // Ring.
    void kick();
    void work();
    bool fetch();
    void fetched(std::uint16_t status);
    void fail(std::uint16_t status);
    bool may_start(const prawn_admin_command& c) const;
    bool start_next();

    // Commands; admin_queue_commands.cpp.
    std::uint16_t check(const prawn_admin_command& c) const;
    std::uint16_t check_context_enable(const prawn_admin_command& c) const;
    std::uint16_t check_tables(const prawn_admin_command& c) const;
    std::uint16_t check_pages(const prawn_admin_command& c) const;
    static const sequence& sequence_of(unsigned opcode);
    void begin(slot_t& s);
    void run_stage(slot_t& s);
    void stage_done(slot_t& s);
    void finish(slot_t& s, std::uint16_t status);
    void begin_message(slot_t& s);
    void message_read(slot_t& s, std::uint16_t status);
    std::uint16_t checker_command(const prawn_admin_command& c);
    void declare_dead(slot_t& s);

    // The card's own work for opt; admin_queue_peers.cpp.
    void run_internal();
    void internal_done();
    void put_peer_error();

    void put_control(control_target target, control_request request,
                     unsigned owner);
    void pump(unsigned target);
    void put_dma(dma_request request);

    handler<dma_reply> m_dma_reply_in;
    handler<peer_event> m_peer_in;
    handler<packet_ref> m_nack_in;
    handler<control_request> m_control_in;
    std::deque<handler<control_reply>> m_reply_in;

    std::uint64_t m_base = 0;
    unsigned m_log2 = 0;
    std::uint32_t m_producer = 0;
    std::uint32_t m_fetched = 0;
    bool m_error = false;

    std::array<slot_t, SLOTS> m_slots;
    std::deque<command> m_decoded;
    std::bitset<PRAWN_CONTEXTS> m_enabled;
    std::array<std::uint32_t, PRAWN_CONTEXTS> m_lives{};  // begun so far
    std::array<channel, CONTROL_TARGETS> m_channels;
    std::uint32_t m_generation = 0;

    ref<small_buffer> m_fetch_buffer;
    unsigned m_fetching = 0;  // commands
    std::uint32_t m_messages = 0;
    drain_tracker m_drains;
    std::array<drain_tracker::generation, SLOTS + 1> m_dma_drains{};
    std::deque<dma_request> m_dma_queue;

    std::deque<queued_peer> m_peers;
    std::deque<std::uint32_t> m_nacks;  // imports, each once
    std::bitset<PRAWN_OPT_ENTRIES> m_nack_queued;
    std::array<std::uint16_t, PRAWN_OPT_ENTRIES> m_nack_status{};
    std::array<std::uint64_t, PRAWN_OPT_ENTRIES> m_nack_target{};
    unsigned m_internal_waiting = 0;  // answers to come
    bool m_internal_peer = false;
    queued_peer m_current_peer{};

    sc_core::sc_time m_next;
    sc_core::sc_event m_kick;

    counter& m_count_commands;
    counter& m_count_refused;
    counter& m_count_messages;
    counter& m_count_busy;
    counter& m_count_nacks;
    counter& m_count_nacks_ignored;
    counter& m_count_peer_events;
    counter& m_count_errors;
};

}  // namespace prawn

#endif
