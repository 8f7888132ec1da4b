// SPDX-License-Identifier: Apache-2.0
#include "nic/command_queue.h"

#include <algorithm>

#include "nic/pools.h"

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = ~std::uint64_t{0};

// Distance of free-running indices; negative: a is behind b.
std::int32_t distance(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b);
}

}  // namespace

command_queue::command_queue(sc_core::sc_module_name name, const block_env& env,
                             const params& p) :
    command_queue_base(name, env, block_id::COMMAND_QUEUE),
    m_params(p),
    m_contexts(PRAWN_CONTEXTS),
    m_message(PRAWN_CONTEXTS),
    m_cycle(env.profile->card_clock.value()),
    m_doorbell_in("doorbell_in", *this),
    m_reply_in("dma_reply_in", *this),
    m_done_in("job_done_in", *this),
    m_control("control_in", CONTROL_WINDOW),
    m_wake("wake"),
    m_doorbells(env.counters->add("command_queue.doorbells")),
    m_doorbells_ignored(env.counters->add("command_queue.doorbells_ignored")),
    m_doorbells_stale(env.counters->add("command_queue.doorbells_stale")),
    m_fetch_count(env.counters->add("command_queue.fetches")),
    m_fetch_stalls(env.counters->add("command_queue.fetch_stalls")),
    m_job_stalls(env.counters->add("command_queue.job_stalls")),
    m_stopped(env.counters->add("command_queue.contexts_stopped")),
    m_bad_opcode(env.counters->add("command_queue.bad_opcode")),
    m_bad_field(env.counters->add("command_queue.bad_field")),
    m_bad_length(env.counters->add("command_queue.bad_length")),
    m_unexpected(env.counters->add("command_queue.unexpected_replies")),
    m_commands(env.counters->add_per_context("command_queue.commands")),
    m_bad_commands(
        env.counters->add_per_context("command_queue.bad_commands")) {}

void command_queue::end_of_elaboration() {
    SC_HAS_PROCESS(command_queue);
    SC_METHOD(step);
    dont_initialize();
    sensitive << m_wake << m_control.arrived() << dma_out->room()
              << job_out->room();
}

void command_queue::reset() {
    std::fill(m_contexts.begin(), m_contexts.end(), context_state_t());
    std::fill(m_message.begin(), m_message.end(), 0);
    m_fetchable = 0;
    m_checkable = 0;
    m_refused = 0;
    m_dma_refused = false;
    m_fetch_turn = 0;
    m_check_turn = 0;
    m_fetches = {};
    m_fetching = 0;
    m_checking = NONE;
    m_fetch_free = 0;
    m_generation = (m_generation + 1) % (~0u / FETCHES);
    m_drain.reset();
    m_control.clear();
    m_wake.cancel();
    m_wake_at = NEVER;
}

std::uint32_t command_queue::context_state(std::uint16_t context) const {
    if (context >= m_contexts.size())
        return 0;
    const context_state_t& c = m_contexts[context];
    if (!c.enabled)
        return 0;
    return c.serving() ? PRAWN_STATE_ENABLED_MASK
                       : PRAWN_STATE_ERROR_MASK |
                             PRAWN_FIELD_PUT(STATE_STATUS, c.status);
}

void command_queue::wake_at(std::uint64_t time) {
    if (time >= m_wake_at)
        return;
    m_wake_at = time;
    const std::uint64_t now = now_ps();
    m_wake.notify(time > now ? sc_core::sc_time::from_value(time - now)
                             : sc_core::SC_ZERO_TIME);
}

void command_queue::step() {
    m_wake_at = NEVER;
    while (!m_control.empty())
        control(m_control.pop());
    if (dma_out->room().triggered())
        m_dma_refused = false;
    if (job_out->room().triggered())
        m_refused = 0;

    const std::uint64_t now = now_ps();
    if (m_checking != NONE && now >= m_check_done)
        finish_check();
    begin_check();
    if (m_checking != NONE)
        wake_at(m_check_done);

    if (now >= m_fetch_free && fetch_one(now))
        m_fetch_free = now + m_cycle * FETCH_CYCLES;
    schedule_fetch(now);
}

// Doorbells

bool command_queue::take_doorbell(doorbell& d) {
    m_doorbells++;
    m_events.emit(event_kind::DOORBELL,
                  message_id::of_context(m_env.node, d.context), d.producer,
                  d.consumed);
    if (d.context >= m_contexts.size() || !m_contexts[d.context].serving()) {
        m_doorbells_ignored++;
        return true;
    }
    context_state_t& c = m_contexts[d.context];
    if (d.producer - d.consumed > c.size) {
        stop(d.context, PRAWN_STATUS_RING_OVERRUN);
        return true;
    }
    if (distance(d.consumed, c.issued) > 0) {
        stop(d.context, PRAWN_STATUS_BAD_FIELD);
        return true;
    }
    if (distance(d.consumed, c.consumed) > 0)
        c.consumed = d.consumed;
    const std::int32_t more = distance(d.producer, c.producer);
    if (more < 0)
        m_doorbells_stale++;
    if (more <= 0)
        return true;
    const std::uint64_t now = now_ps();
    if (c.fetched == c.producer)
        c.fetch_due = now + m_cycle * DOORBELL_CYCLES;
    c.producer = d.producer;
    add_mark(c, d.producer, d.accepted);
    update(d.context);
    schedule_fetch(now);
    return true;
}

void command_queue::add_mark(context_state_t& c, std::uint32_t producer,
                             std::uint64_t accepted) {
    if (c.mark_count == MARKS) {
        c.newest_mark().producer = producer;
        return;
    }
    c.mark_count++;
    c.newest_mark() = {producer, accepted};
}

// Fetch unit

void command_queue::update(std::uint16_t context) {
    context_state_t& c = m_contexts[context];
    const context_mask bit = context_mask{1} << context;
    const bool fetchable =
        c.serving() && c.fetched != c.producer && c.batch_count < BATCHES;
    const bool checkable = c.serving() && c.batch_count != 0 &&
                           c.front().arrived && c.jobs < JOB_WINDOW;
    m_fetchable = fetchable ? m_fetchable | bit : m_fetchable & ~bit;
    m_checkable = checkable ? m_checkable | bit : m_checkable & ~bit;
}

void command_queue::schedule_fetch(std::uint64_t now) {
    if (m_fetchable == 0 || m_dma_refused || m_fetching == FETCHES)
        return;
    std::uint64_t earliest = NEVER;
    for (context_mask m = m_fetchable; m != 0; m &= m - 1) {
        const auto context = static_cast<unsigned>(__builtin_ctzll(m));
        earliest = std::min(earliest, m_contexts[context].fetch_due);
        if (earliest <= now)
            break;
    }
    wake_at(std::max(earliest, m_fetch_free));
}

bool command_queue::fetch_one(std::uint64_t now) {
    if (m_dma_refused || m_fetching == FETCHES)
        return false;
    // From m_fetch_turn to the end, then from 0.
    const context_mask later = m_fetchable & ~context_mask{0} << m_fetch_turn;
    for (const context_mask part : {later, m_fetchable & ~later}) {
        for (context_mask m = part; m != 0; m &= m - 1) {
            const auto context = static_cast<std::uint16_t>(__builtin_ctzll(m));
            if (m_contexts[context].fetch_due > now)
                continue;
            if (!put_fetch(context))
                return false;
            m_fetch_turn =
                static_cast<std::uint16_t>((context + 1) % PRAWN_CONTEXTS);
            update(context);
            return true;
        }
    }
    return false;
}

bool command_queue::put_fetch(std::uint16_t context) {
    context_state_t& c = m_contexts[context];
    unsigned slot = 0;
    while (m_fetches[slot].used)
        slot++;
    const unsigned b = (c.first_batch + c.batch_count) % BATCHES;
    batch& to = c.batches[b];
    const std::uint32_t at = c.fetched & (c.size - 1);
    const std::uint32_t count =
        std::min({std::uint32_t{BATCH}, c.producer - c.fetched, c.size - at});

    dma_request r;
    r.tag = m_generation * FETCHES + slot;
    r.context = KERNEL_CONTEXT;
    r.address = c.base + std::uint64_t{at} * sizeof(prawn_command);
    r.length = count * static_cast<std::uint32_t>(sizeof(prawn_command));
    to.data = small_buffer_pool().get();
    r.data = to.data->bytes;
    r.keep = to.data;
    if (!dma_out->try_put(r)) {
        to.data.reset();
        m_dma_refused = true;
        m_fetch_stalls++;
        return false;
    }
    m_fetch_count++;
    to.count = count;
    to.next = 0;
    to.arrived = false;
    c.batch_count++;
    c.fetched += count;
    m_fetches[slot] = {true, false, context, b, m_drain.begin()};
    m_fetching++;
    return true;
}

bool command_queue::take_reply(dma_reply& r) {
    fetch& f = m_fetches[r.tag % FETCHES];
    if (r.tag / FETCHES != m_generation || !f.used) {
        m_unexpected++;
        return true;
    }
    f.used = false;
    m_fetching--;
    if (!f.orphan) {
        if (r.status == PRAWN_STATUS_OK) {
            m_contexts[f.context].batches[f.batch].arrived = true;
            update(f.context);
            begin_check();
            if (m_checking != NONE)
                wake_at(m_check_done);
        } else {
            stop(f.context, PRAWN_STATUS_DMA_ERROR);
        }
    }
    m_drain.end(f.drain);
    schedule_fetch(now_ps());
    return true;
}

}  // namespace prawn
