// SPDX-License-Identifier: Apache-2.0
// What every block of the card has beside its data path: identity, reset, a
// control channel, counters, events, card-side registers.

#ifndef PRAWN_SUPPORT_BLOCK_H
#define PRAWN_SUPPORT_BLOCK_H

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <systemc>

#include "support/counters.h"
#include "support/events.h"
#include "support/profile.h"
#include "support/put.h"

namespace prawn {

// Given to every block by the card's top; lives as long as the card.
struct block_env {
    std::uint16_t node = 0;   // this card's place in the fabric
    std::uint16_t nodes = 1;  // cards of the fabric
    const timing_profile* profile = nullptr;
    counter_registry* counters = nullptr;
    event_log* events = nullptr;
};

// What the admin queue (or the firmware) asks of a block. Blocks get only the
// operations that concern them and answer BAD_OPCODE to others.
enum class control_op : std::uint8_t {
    CONTEXT_ENABLE,   // fields as admin command CONTEXT_ENABLE
    CONTEXT_DISABLE,  // forget the context, cancel its work; answered when
                      // none of its host DMA is in flight
    SET,              // OPT_SET, IPT_SET, SLOT_SET
    CLEAR,            // OPT_CLEAR, IPT_CLEAR, SLOT_CLEAR
    INVALIDATE,       // UTLB_INVALIDATE
    FILL,             // UTLB_FILL
    PEER_ERROR,       // index = node, a = status: its imports go to error
                      // state, what waits for it ends
    IMPORT_ERROR,     // index = OPT entry, a = status
    DRAIN,            // see below
};

// DRAIN is answered when no host DMA that the block began (or asked a
// translation for) before it is in flight. It never waits for credits,
// acknowledgements or peers. New work may begin meanwhile and is not awaited.
// Every CONTEXT_ENABLE begins another life of the context. Lives are numbered
// from 1 on; what blocks put to one another for a context says which life it is
// of, so that nothing that was held on its way reaches the next owner.
struct control_request {
    std::uint32_t tag = 0;
    control_op op = control_op::DRAIN;
    std::uint16_t context = 0;
    std::uint32_t index = 0;
    std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
    std::uint32_t life = 0;  // of the context: the one that begins, is, or ends
};

struct control_reply {
    std::uint32_t tag = 0;
    std::uint16_t status = 0;  // PRAWN_STATUS_*
    std::uint32_t value = 0;
};

class block : public sc_core::sc_module
{
public:
    put_port<control_reply> control_out;

    block(sc_core::sc_module_name name, const block_env& env, block_id id) :
        sc_core::sc_module(name),
        control_out("control_out"),
        m_env(env),
        m_events(env.events, env.node, id) {}

    // Where control requests go. Never refused: one requester (admin queue),
    // which has at most CONTROL_WINDOW under way at one block.
    virtual put_if<control_request>& control_in() = 0;
    static constexpr unsigned CONTROL_WINDOW = 4;

    // Synchronous reset line: at once, at the current time, all state as after
    // power-on; whatever was in flight is forgotten and its answers, should
    // they still come, are dropped (tags carry a generation). Every block of a
    // card is reset at the same instant.
    virtual void reset() = 0;

    // Card-side registers, for the firmware; 32-bit, offset in bytes. The
    // default has none: reads zero, ignores writes.
    virtual std::uint32_t card_read(std::uint32_t offset) {
        (void)offset;
        return 0;
    }
    virtual void card_write(std::uint32_t offset, std::uint32_t value) {
        (void)offset;
        (void)value;
    }

protected:
    const timing_profile& profile() const { return *m_env.profile; }
    sc_core::sc_time cycles(std::uint64_t n) const {
        return m_env.profile->cycles(n);
    }
    void reply(std::uint32_t tag, std::uint16_t status,
               std::uint32_t value = 0) {
        control_reply r{tag, status, value};
        control_out->try_put(r);
    }

    const block_env m_env;
    event_source m_events;
};

// Counts operations between translation and end of DMA, for DRAIN. Operations
// begun before a drain belong to an older generation; a drain is over when
// its generation and all older ones are empty.
class drain_tracker
{
public:
    using generation = std::uint64_t;

    // An operation begins; hand what it returns to end().
    generation begin() {
        m_counts.back()++;
        return m_first + m_counts.size() - 1;
    }
    void end(generation g) {
        if (g < m_first)  // from before a reset
            return;
        m_counts[g - m_first]--;
        finish();
    }
    // done() is called at once, or from the end() that completes it.
    void drain(std::function<void()> done) {
        m_waiting.push_back({m_first + m_counts.size() - 1, std::move(done)});
        m_counts.push_back(0);
        finish();
    }
    void reset() {
        m_first += m_counts.size();
        m_counts.assign(1, 0);
        m_waiting.clear();
    }

private:
    struct waiter {
        generation upto;
        std::function<void()> done;
    };
    void finish() {
        while (m_counts.size() > 1 && m_counts.front() == 0) {
            m_counts.pop_front();
            m_first++;
        }
        while (!m_waiting.empty() && m_waiting.front().upto < m_first) {
            auto done = std::move(m_waiting.front().done);
            m_waiting.pop_front();
            done();
        }
    }
    generation m_first = 1;
    std::deque<std::uint64_t> m_counts = std::deque<std::uint64_t>(1, 0);
    std::deque<waiter> m_waiting;
};

}  // namespace prawn

#endif
