// SPDX-License-Identifier: Apache-2.0
// Packetizer: jobs, whose turn it is, completions.
#include <algorithm>
#include <utility>

#include "nic/packetizer.h"

namespace prawn {

namespace {

bool sends(const send_job& j) {
    return j.status == PRAWN_STATUS_OK && j.command.opcode == PRAWN_OPCODE_SEND;
}

}  // namespace

bool packetizer::take_job(send_job& what) {
    const std::uint16_t context = what.context;
    if (context >= m_contexts.size()) {
        m_unexpected++;
        return true;
    }
    context_state& c = m_contexts[context];
    if (earlier_life(what.life, c.life)) {
        m_cancelled++;
        return true;
    }
    if (c.count == JOB_WINDOW)
        return false;
    job& j = c.at(c.count++);
    j = job();
    j.what = what;
    j.status = what.status;
    c.unstarted++;
    if (m_startable == 0)
        m_next_start = std::max(m_next_start, now_ps() + m_cycle * JOB_CYCLES);
    m_busy |= context_mask{1} << context;
    enter_turn(context);
    kick();
    return true;
}

// Turns

void packetizer::enter_turn(std::uint16_t context) {
    context_state& c = m_contexts[context];
    m_startable |= context_mask{1} << context;
    if (c.in_turn)
        return;
    c.in_turn = true;
    m_turn.push_back(m_turn_links, context);
}

void packetizer::leave_turn(std::uint16_t context) {
    context_state& c = m_contexts[context];
    m_startable &= ~(context_mask{1} << context);
    if (!c.in_turn)
        return;
    c.in_turn = false;
    m_turn.remove(m_turn_links, context);
}

// Something that kept it from starting packets may be over.
void packetizer::restartable(std::uint16_t context) {
    if (m_contexts[context].unstarted != 0)
        m_startable |= context_mask{1} << context;
}

bool packetizer::has_window(const context_state& c) const {
    return c.lookups < m_params.lookups && c.packets < m_params.window &&
           c.bytes < m_params.window_bytes && c.parked < m_params.parked;
}

bool packetizer::start_one() {
    if (m_startable == 0 || m_free.empty())
        return false;
    for (std::uint16_t context = m_turn.front(); context != NONE;
         context = m_turn.next(m_turn_links, context)) {
        const context_mask bit = context_mask{1} << context;
        if ((m_startable & bit) == 0)
            continue;
        context_state& c = m_contexts[context];
        job* j = has_window(c) ? pick(context) : nullptr;
        if (!j) {
            m_startable &= ~bit;  // until restartable()
            continue;
        }
        m_turn.remove(m_turn_links, context);
        m_turn.push_back(m_turn_links, context);
        start(context, *j);
        return true;
    }
    return false;
}

// The first job that may start a packet. Jobs for a peer with too much waiting
// are passed over, with all behind them for the same peer. Behind one whose
// peer is still being looked up nothing starts.
packetizer::job* packetizer::pick(std::uint16_t context) {
    context_state& c = m_contexts[context];
    peer_mask held = 0;
    for (unsigned i = 0; i < c.count; i++) {
        job& j = c.at(i);
        if (j.all_started)
            continue;
        if (!sends(j.what))
            return &j;
        if (j.peer == UNKNOWN)
            return j.in_flight == 0 ? &j : nullptr;
        const peer_mask bit = peer_mask{1} << j.peer;
        if (held & bit)
            continue;
        peer_state& p = m_peers[j.peer];
        if (p.queued < m_params.peer_ready)
            return &j;
        held |= bit;
        p.waiters |= context_mask{1} << context;
    }
    return nullptr;
}

void packetizer::start(std::uint16_t context, job& j) {
    context_state& c = m_contexts[context];
    if (!sends(j.what)) {
        all_started(context, j);
        complete(context);
        return;
    }
    const prawn_command& command = j.what.command;
    constexpr std::uint64_t IN_PAGE = PRAWN_PAGE_SIZE - 1;
    const std::uint64_t source = command.source + j.started;
    const auto to_page_end = static_cast<std::uint32_t>(
        PRAWN_PAGE_SIZE - ((command.offset + j.started) & IN_PAGE));
    const auto source_end =
        static_cast<std::uint32_t>(PRAWN_PAGE_SIZE - (source & IN_PAGE));

    const std::uint16_t i = take_slot();
    slot& s = m_slots[i];
    s.at = stage::LOOKUP;
    s.context = context;
    s.job = static_cast<std::uint8_t>(&j - c.jobs.data());
    s.offset = j.started;
    s.length = std::min(
        {command.length - j.started, m_params.max_payload, to_page_end});
    s.last = s.offset + s.length == command.length;
    s.part[0] = std::min(s.length, source_end);
    s.part[1] = s.length - s.part[0];
    s.to_ask = ASK_OPT;
    for (unsigned part = 0; part < PARTS; part++)
        if (s.part[part] != 0)
            s.to_ask |= static_cast<std::uint8_t>(ASK_UTLB << part);
    if (s.length != 0) {
        s.tracked = true;
        s.drain = m_drain.begin();
    }
    s.peer = j.peer;
    s.in_lookup = true;
    c.lookups++;
    s.in_window = true;
    c.packets++;
    c.bytes += s.length;
    const context_mask bit = context_mask{1} << context;
    m_small = s.length <= m_params.read_chunk ? m_small | bit : m_small & ~bit;
    c.slots.push_back(m_order, i);
    if (c.unadmitted == NONE)
        c.unadmitted = i;

    j.started += s.length;
    j.in_flight++;
    if (s.last)
        all_started(context, j);
    ask(i);
}

void packetizer::all_started(std::uint16_t context, job& j) {
    context_state& c = m_contexts[context];
    j.all_started = true;
    if (--c.unstarted == 0)
        leave_turn(context);
}

// The end of jobs

void packetizer::fail_job(std::uint16_t context, job& j, std::uint16_t i) {
    context_state& c = m_contexts[context];
    const slot& s = m_slots[i];
    j.status = s.status;
    j.detail = s.detail;
    j.fault = s.fault;
    if (!j.all_started)
        all_started(context, j);
    for (std::uint16_t k = c.slots.next(m_order, i); k != NONE;) {
        const std::uint16_t next = c.slots.next(m_order, k);
        if (m_slots[k].job == s.job) {
            j.in_flight--;
            cancel(k);
        }
        k = next;
    }
    j.in_flight--;
    cancel(i);
    failed(context, j);
    admit(context);  // may have waited for a packet that is no more
    complete(context);
}

void packetizer::failed(std::uint16_t context, const job& j) {
    m_failed[context]++;
    switch (j.status) {
        case PRAWN_STATUS_BAD_IMPORT:
            m_failed_import++;
            break;
        case PRAWN_STATUS_OUT_OF_RANGE:
            m_failed_range++;
            break;
        case PRAWN_STATUS_IMPORT_ERROR:
            m_failed_import_error++;
            break;
        case PRAWN_STATUS_NOT_PINNED:
            m_failed_not_pinned++;
            break;
        case PRAWN_STATUS_DMA_ERROR:
            m_failed_dma++;
            break;
        default:
            m_failed_other++;
    }
    m_events.emit(event_kind::ERROR, {m_env.node, context, j.what.message},
                  j.status, j.detail);
}

// Ends every job that concerns() names, unless all of it has been handed over.
void packetizer::end_jobs(const std::function<bool(const job&)>& concerns,
                          std::uint16_t status, std::uint16_t detail) {
    const auto to_end = [&concerns](const job& j) {
        return sends(j.what) && (!j.all_started || j.in_flight != 0) &&
               concerns(j);
    };
    context_mask touched = 0;
    for (context_mask m = m_busy; m != 0; m &= m - 1) {
        const auto context = static_cast<std::uint16_t>(__builtin_ctzll(m));
        context_state& c = m_contexts[context];
        for (unsigned k = 0; k < c.count; k++) {
            job& j = c.at(k);
            if (!to_end(j))
                continue;
            touched |= context_mask{1} << context;
            for (std::size_t i = 0; i < m_slots.size(); i++) {
                const slot& s = m_slots[i];
                if (s.at == stage::FREE || s.cancelled ||
                    s.context != context || &job_of(s) != &j)
                    continue;
                j.in_flight--;
                cancel(static_cast<std::uint16_t>(i));
            }
            if (!j.all_started)
                all_started(context, j);
            if (j.status != PRAWN_STATUS_OK)
                continue;  // had failed; earlier packets were still to go
            j.status = status;
            j.detail = detail;
            failed(context, j);
        }
    }
    for (; touched != 0; touched &= touched - 1) {
        const auto context =
            static_cast<std::uint16_t>(__builtin_ctzll(touched));
        admit(context);
        settle(context);
        complete(context);
    }
}

void packetizer::complete(std::uint16_t context) {
    context_state& c = m_contexts[context];
    const context_mask bit = context_mask{1} << context;
    while (c.count != 0) {
        const job& j = c.at(0);
        if (!j.all_started || j.in_flight != 0)
            break;
        const std::uint32_t life = j.what.life;
        completion_request r;
        r.context = context;
        r.index = j.what.index;
        r.entry.cookie = j.what.command.cookie;
        r.entry.accepted = j.what.accepted;
        r.entry.finished = j.finished != 0 ? j.finished : now_ps();
        r.entry.fault = j.fault;
        r.entry.bytes = j.handed;
        r.entry.status = j.status;
        r.entry.detail = j.detail;
        r.entry.message = j.what.message;
        r.life = life;
        if (!completion_out->try_put(r)) {
            m_completing |= bit;
            m_completion_stalls++;
            return;
        }
        if (sends(j.what) && j.status == PRAWN_STATUS_OK)
            m_messages[context]++;
        c.first = (c.first + 1) % JOB_WINDOW;
        if (--c.count == 0)
            m_busy &= ~bit;
        job_done d{context, life};
        job_done_out->try_put(d);
        m_job_in.has_room();
    }
    m_completing &= ~bit;
}

}  // namespace prawn
