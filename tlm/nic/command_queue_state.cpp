// SPDX-License-Identifier: Apache-2.0
// Command queue: the checker, and what ends a context's work.
#include <cstring>

#include "nic/command_queue.h"
#include "nic/command_queue_check.h"

namespace prawn {

// Checker

void command_queue::begin_check() {
    const context_mask ready = m_checkable & ~m_refused;
    if (m_checking != NONE || ready == 0)
        return;
    const context_mask later = ready & ~context_mask{0} << m_check_turn;
    m_checking =
        static_cast<std::uint16_t>(__builtin_ctzll(later != 0 ? later : ready));
    m_check_turn =
        static_cast<std::uint16_t>((m_checking + 1) % PRAWN_CONTEXTS);
    m_check_done = now_ps() + m_cycle * CHECK_CYCLES;
}

void command_queue::finish_check() {
    const std::uint16_t context = m_checking;
    context_state_t& c = m_contexts[context];
    m_checking = NONE;

    const batch& from = c.front();
    send_job job;
    std::memcpy(&job.command,
                from.data->bytes + from.next * sizeof(prawn_command),
                sizeof(prawn_command));
    job.context = context;
    job.life = c.life;
    job.index = c.issued;
    job.status = check_command(job.command, m_params.utlb_index);
    job.accepted = c.marks[c.first_mark].accepted;
    const bool sends = job.status == PRAWN_STATUS_OK &&
                       job.command.opcode == PRAWN_OPCODE_SEND;
    if (sends) {
        job.message = m_message[context] + 1;
        if (job.message == message_id::NO_MESSAGE)
            job.message = 1;
    }
    const std::uint32_t message = job.message;
    const std::uint16_t status = job.status;
    const std::uint64_t accepted = job.accepted;
    if (!job_out->try_put(job)) {  // checked again when there is room
        m_refused |= context_mask{1} << context;
        m_job_stalls++;
        return;
    }
    m_events.emit(
        event_kind::COMMAND_FETCHED,
        {m_env.node, context, sends ? message : message_id::NO_MESSAGE},
        c.issued, accepted);
    if (sends)
        m_message[context] = message;
    m_commands[context]++;
    if (status != PRAWN_STATUS_OK)
        count_bad(context, status);
    issued(c);
    update(context);
}

void command_queue::issued(context_state_t& c) {
    c.issued++;
    c.jobs++;
    if (c.marks[c.first_mark].producer == c.issued) {
        c.first_mark = (c.first_mark + 1) % MARKS;
        c.mark_count--;
    }
    batch& b = c.front();
    if (++b.next == b.count) {
        b = batch();
        c.first_batch = (c.first_batch + 1) % BATCHES;
        c.batch_count--;
    }
}

void command_queue::count_bad(std::uint16_t context, std::uint16_t status) {
    m_bad_commands[context]++;
    switch (status) {
        case PRAWN_STATUS_BAD_OPCODE:
            m_bad_opcode++;
            break;
        case PRAWN_STATUS_BAD_LENGTH:
            m_bad_length++;
            break;
        default:
            m_bad_field++;
    }
}

bool command_queue::take_done(job_done& d) {
    if (d.context >= m_contexts.size() || m_contexts[d.context].jobs == 0 ||
        m_contexts[d.context].life != d.life) {
        m_unexpected++;
        return true;
    }
    m_contexts[d.context].jobs--;
    update(d.context);
    begin_check();
    if (m_checking != NONE)
        wake_at(m_check_done);
    return true;
}

// The end of work

void command_queue::forget_work(std::uint16_t context) {
    context_state_t& c = m_contexts[context];
    for (fetch& f : m_fetches)
        if (f.used && f.context == context)
            f.orphan = true;
    for (batch& b : c.batches)
        b = batch();
    c.batch_count = 0;
    c.mark_count = 0;
    if (m_checking == context)
        m_checking = NONE;
    m_refused &= ~(context_mask{1} << context);
    update(context);
    begin_check();
    if (m_checking != NONE)
        wake_at(m_check_done);
}

void command_queue::stop(std::uint16_t context, std::uint16_t status) {
    m_contexts[context].status = status;
    forget_work(context);
    m_stopped++;
    m_events.emit(event_kind::CONTEXT_STOPPED,
                  message_id::of_context(m_env.node, context), context, status);
    kernel_event_request e;
    e.type = PRAWN_EVENT_TYPE_CONTEXT_ERROR;
    e.context = context;
    e.value = status;
    event_out->try_put(e);
}

// Control

std::uint16_t command_queue::enable(const control_request& r) {
    const std::uint64_t log2 = r.e & 0xff;
    if (r.context >= m_contexts.size() || m_contexts[r.context].enabled)
        return PRAWN_STATUS_BAD_CONTEXT;
    if (log2 < PRAWN_RING_LOG2_MIN || log2 > PRAWN_RING_LOG2_MAX)
        return PRAWN_STATUS_BAD_FIELD;
    const std::uint64_t bytes = sizeof(prawn_command) << log2;
    if (r.a % sizeof(prawn_command) != 0 || r.a + bytes < r.a)
        return PRAWN_STATUS_BAD_FIELD;
    context_state_t& c = m_contexts[r.context];
    c = context_state_t();
    c.enabled = true;
    c.life = r.life;
    c.base = r.a;
    c.size = 1u << log2;
    c.producer = m_params.first_index;
    c.consumed = m_params.first_index;
    c.fetched = m_params.first_index;
    c.issued = m_params.first_index;
    return PRAWN_STATUS_OK;
}

void command_queue::control(const control_request& r) {
    const std::uint32_t tag = r.tag;
    const auto answer = [this, tag] { reply(tag, PRAWN_STATUS_OK); };
    switch (r.op) {
        case control_op::CONTEXT_ENABLE:
            reply(tag, enable(r));
            break;
        case control_op::CONTEXT_DISABLE:
            if (r.context >= m_contexts.size()) {
                reply(tag, PRAWN_STATUS_BAD_CONTEXT);
                break;
            }
            forget_work(r.context);
            m_contexts[r.context] = context_state_t();
            update(r.context);
            m_drain.drain(answer);
            break;
        case control_op::DRAIN:
            m_drain.drain(answer);
            break;
        default:
            reply(tag, PRAWN_STATUS_BAD_OPCODE);
    }
}

}  // namespace prawn
