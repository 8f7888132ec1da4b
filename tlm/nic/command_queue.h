// SPDX-License-Identifier: Apache-2.0
// Command rings of the contexts: doorbells, fetching, checking.

#ifndef PRAWN_NIC_COMMAND_QUEUE_H
#define PRAWN_NIC_COMMAND_QUEUE_H

#include <array>
#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/direct_in.h"

namespace prawn {

// Contract: command_queue_base.
//
// Two units work side by side. The fetch unit reads up to BATCH commands by one
// DMA, for one context after the other, two batches ahead of the checker at
// most. The checker takes the contexts in turn, one command each.
//
// Doorbells. Both indices only ever grow (modulo 2^32): an older one is
// ignored and counted. `producer` more than a ring beyond `consumed` stops the
// context with RING_OVERRUN; `consumed` beyond what was handed to the
// packetizer, so that its completion cannot exist, with BAD_FIELD. A command's
// time of acceptance is that of the first doorbell that covered it, as long as
// no more than MARKS doorbells with work wait; then the last of them covers
// what follows.
//
// A stopped context (also: DMA_ERROR in fetching) drops what is not in the
// packetizer yet, reports CONTEXT_ERROR to the kernel, and stays so until it is
// disabled. CONTEXT_DISABLE is answered when its fetches are over.
// Message numbers: of a context, from 1, without 0 and message_id::NO_MESSAGE.
// A life goes on where the one before it ended, so that nobody takes the
// packets of one message for those of another.
class command_queue final : public command_queue_base
{
public:
    static constexpr unsigned BATCH =
        sizeof(small_buffer::bytes) / sizeof(prawn_command);
    static constexpr unsigned MARKS = 8;
    static constexpr unsigned FETCHES = 8;  // DMAs in flight, all contexts

    // Doorbell: context state read, compared, written; address formed.
    static constexpr unsigned DOORBELL_CYCLES = 4;
    // One request to the DMA engine, state update included.
    static constexpr unsigned FETCH_CYCLES = 2;
    // A command is 64 bytes, read and checked 8 bytes a clock.
    static constexpr unsigned CHECK_CYCLES = 8;

    struct params {
        bool utlb_index = false;  // see check_command
        // Where the indices of a context's life start: the ABI says 0; a test
        // of their wrap cannot wait for 2^32 commands.
        std::uint32_t first_index = 0;
    };

    command_queue(sc_core::sc_module_name name, const block_env& env,
                  const params& p);
    command_queue(sc_core::sc_module_name name, const block_env& env) :
        command_queue(name, env, params()) {}

    put_if<doorbell>& doorbell_in() override { return m_doorbell_in; }
    put_if<dma_reply>& dma_reply_in() override { return m_reply_in; }
    put_if<job_done>& job_done_in() override { return m_done_in; }
    put_if<control_request>& control_in() override { return m_control; }
    std::uint32_t context_state(std::uint16_t context) const override;
    void reset() override;

private:
    using context_mask = std::uint64_t;
    static_assert(PRAWN_CONTEXTS <= 64, "context_mask");
    static constexpr unsigned BATCHES = 2;
    static constexpr std::uint16_t NONE = 0xffff;

    struct mark {
        std::uint32_t producer = 0;  // covers commands before it
        std::uint64_t accepted = 0;
    };
    struct batch {
        ref<small_buffer> data;
        std::uint32_t count = 0;
        std::uint32_t next = 0;  // to be checked
        bool arrived = false;
    };
    struct context_state_t {
        bool enabled = false;
        std::uint16_t status = PRAWN_STATUS_OK;  // not OK: stopped
        std::uint64_t base = 0;
        std::uint32_t size = 0;      // commands of the ring
        std::uint32_t producer = 0;  // the newest doorbell's
        std::uint32_t consumed = 0;
        std::uint32_t fetched = 0;  // asked for, up to here
        std::uint32_t issued = 0;   // given to the packetizer, up to here
        std::uint32_t life = 0;     // see control_request
        unsigned jobs = 0;          // in the packetizer
        std::uint64_t fetch_due = 0;
        std::array<batch, BATCHES> batches;  // ring
        unsigned first_batch = 0;
        unsigned batch_count = 0;
        std::array<mark, MARKS> marks;  // ring
        unsigned first_mark = 0;
        unsigned mark_count = 0;

        bool serving() const { return enabled && status == PRAWN_STATUS_OK; }
        batch& front() { return batches[first_batch]; }
        mark& newest_mark() {
            return marks[(first_mark + mark_count - 1) % MARKS];
        }
    };
    // A DMA under way.
    struct fetch {
        bool used = false;
        bool orphan = false;  // nobody wants the answer any more
        std::uint16_t context = 0;
        unsigned batch = 0;
        drain_tracker::generation drain = 0;
    };

    void end_of_elaboration() override;
    bool take_doorbell(doorbell& d);
    bool take_reply(dma_reply& r);
    bool take_done(job_done& d);
    void step();
    void wake_at(std::uint64_t time);

    // Fetch unit.
    bool fetch_one(std::uint64_t now);
    bool put_fetch(std::uint16_t context);
    void schedule_fetch(std::uint64_t now);
    void add_mark(context_state_t& c, std::uint32_t producer,
                  std::uint64_t accepted);

    // Checker.
    void begin_check();
    void finish_check();
    void issued(context_state_t& c);
    void count_bad(std::uint16_t context, std::uint16_t status);

    // State.
    void update(std::uint16_t context);
    void forget_work(std::uint16_t context);
    void stop(std::uint16_t context, std::uint16_t status);
    void control(const control_request& r);
    std::uint16_t enable(const control_request& r);

    const params m_params;
    std::vector<context_state_t> m_contexts;
    std::vector<std::uint32_t> m_message;  // last number given out, by context
    context_mask m_fetchable = 0;
    context_mask m_checkable = 0;
    context_mask m_refused = 0;  // by job_out, until room()
    bool m_dma_refused = false;  // until room()
    std::uint16_t m_fetch_turn = 0;
    std::uint16_t m_check_turn = 0;
    std::array<fetch, FETCHES> m_fetches;
    unsigned m_fetching = 0;
    std::uint16_t m_checking = NONE;  // context whose command is in there
    std::uint64_t m_check_done = 0;   // ps
    std::uint64_t m_fetch_free = 0;   // ps
    std::uint64_t m_cycle;            // ps
    std::uint64_t m_wake_at = ~0ull;  // pending m_wake
    std::uint32_t m_generation = 0;   // of resets, in tags
    drain_tracker m_drain;

    direct_in<doorbell, command_queue, &command_queue::take_doorbell>
        m_doorbell_in;
    direct_in<dma_reply, command_queue, &command_queue::take_reply> m_reply_in;
    direct_in<job_done, command_queue, &command_queue::take_done> m_done_in;
    inbox<control_request> m_control;
    sc_core::sc_event m_wake;

    counter& m_doorbells;
    counter& m_doorbells_ignored;
    counter& m_doorbells_stale;
    counter& m_fetch_count;
    counter& m_fetch_stalls;
    counter& m_job_stalls;
    counter& m_stopped;
    counter& m_bad_opcode;
    counter& m_bad_field;
    counter& m_bad_length;
    counter& m_unexpected;
    context_counter& m_commands;
    context_counter& m_bad_commands;
};

}  // namespace prawn

#endif
