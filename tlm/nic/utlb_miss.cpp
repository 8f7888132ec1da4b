// SPDX-License-Identifier: Apache-2.0
// utlb: misses, and what walks bring.
#include <algorithm>

#include "nic/utlb.h"

namespace prawn {

std::uint32_t utlb::take_waiter(input& p, const utlb_request& request) {
    const std::uint32_t w = m_free_waiters.back();
    m_free_waiters.pop_back();
    m_waiters[w].request = request;
    m_waiters[w].port = static_cast<std::uint8_t>(p.index);
    m_waiters[w].next = NO_WAITER;
    return w;
}

void utlb::append(std::uint32_t& first, std::uint32_t& last, std::uint32_t w) {
    m_waiters[w].next = NO_WAITER;
    if (first == NO_WAITER)
        first = w;
    else
        m_waiters[last].next = w;
    last = w;
}

void utlb::miss(input& p, const utlb_request& request) {
    place(take_waiter(p, request));
}

// With the walk of its line, or with a new one, or where it waits for one.
void utlb::place(std::uint32_t w) {
    const utlb_request& request = m_waiters[w].request;
    const int i = m_walker.find(
        request.context, m_walker.line_of(request.va >> PRAWN_PAGE_SHIFT));
    if (i != utlb_walker::NONE) {
        utlb_walker::walk& walk = m_walker.at(i);
        m_merged++;
        m_waiters[w].joined = walk.reads;
        append(walk.first, walk.last, w);
    } else if (!m_walker.full()) {
        assign(w);
    } else {
        context_state& c = m_contexts[request.context];
        append(c.first, c.last, w);
        m_parked |= std::uint64_t{1} << request.context;
    }
}

// Starts a walk for a waiter.
void utlb::assign(std::uint32_t w) {
    const utlb_request& request = m_waiters[w].request;
    const std::uint16_t c = request.context;
    const int i =
        m_walker.start(c, m_walker.line_of(request.va >> PRAWN_PAGE_SHIFT),
                       m_contexts[c].table);
    utlb_walker::walk& walk = m_walker.at(i);
    walk.first = walk.last = w;
    m_waiters[w].next = NO_WAITER;
    m_waiters[w].joined = 0;
    walk.number = m_walk_number++;
    m_walks.add(c);
    m_directory_hits.set(m_walker.directory_hits());
    m_events.emit(event_kind::UTLB_WALK_BEGIN,
                  message_id::of_context(m_env.node, c), walk.number,
                  walk.page << PRAWN_PAGE_SHIFT);
}

// Walks have become free: contexts that wait for one, in turn. What another
// walk has brought meanwhile needs none.
void utlb::serve_parked() {
    while (m_parked != 0 && !m_walker.full()) {
        unsigned i = m_last_parked;
        do {
            i = (i + 1) % PRAWN_CONTEXTS;
        } while (!(m_parked >> i & 1));
        m_last_parked = i;
        context_state& c = m_contexts[i];
        const std::uint32_t w = c.first;
        c.first = m_waiters[w].next;
        if (c.first == NO_WAITER)
            m_parked &= ~(std::uint64_t{1} << i);
        const utlb_request request = m_waiters[w].request;
        input& p = m_ports[m_waiters[w].port];
        const std::uint64_t page = request.va >> PRAWN_PAGE_SHIFT;
        if (answer_from(m_cache.lookup(request.context, page), p, request)) {
            m_free_waiters.push_back(w);
            continue;
        }
        place(w);
    }
}

void utlb::walk_done(utlb_walker::walk& w, std::uint16_t status,
                     const std::uint64_t* entries) {
    m_events.emit(event_kind::UTLB_WALK_END,
                  message_id::of_context(m_env.node, w.context), w.number,
                  status);
    const std::uint32_t first = w.first;
    w.first = w.last = NO_WAITER;
    if (status != PRAWN_STATUS_OK) {
        answer_all(first, status);
        return;
    }
    if (entries) {
        std::uint32_t wanted = 0;
        for (std::uint32_t i = first; i != NO_WAITER; i = m_waiters[i].next)
            wanted |=
                1U << ((m_waiters[i].request.va >> PRAWN_PAGE_SHIFT) - w.page);
        fill(w, wanted, entries);
    }
    for (std::uint32_t i = first; i != NO_WAITER;) {
        const std::uint32_t next = m_waiters[i].next;
        const utlb_request request = m_waiters[i].request;
        input& p = m_ports[m_waiters[i].port];
        const std::uint64_t entry =
            entries ? entries[(request.va >> PRAWN_PAGE_SHIFT) - w.page] : 0;
        if (answer_from(entry, p, request)) {
            m_free_waiters.push_back(i);
        } else if (m_waiters[i].joined == w.reads) {
            // What was read may be older than the question.
            append(m_again_first, m_again_last, i);
        } else {
            m_free_waiters.push_back(i);
            answer(p, request,
                   entry ? PRAWN_STATUS_NOT_WRITABLE : PRAWN_STATUS_NOT_PINNED);
        }
        i = next;
    }
}

// What was asked for comes last: it is the newest of its set.
void utlb::fill(const utlb_walker::walk& w, std::uint32_t wanted,
                const std::uint64_t* entries) {
    const unsigned count = 1U << m_cache.geometry().log2_prefetch;
    m_fetched.add(w.context, count);
    unsigned filled = 0;
    for (const bool pass : {false, true}) {
        for (unsigned i = 0; i < count; i++) {
            if (entries[i] == 0 || (wanted >> i & 1) != (pass ? 1U : 0U))
                continue;
            filled++;
            const std::uint64_t page = w.page + i;
            if (first_time(w.context, page) && pass)
                m_compulsory.add(w.context);
            const utlb_cache::evicted e =
                m_cache.fill(w.context, page, entries[i]);
            if (e.any) {
                m_evictions.add(e.context);
                m_events.emit(event_kind::UTLB_EVICT,
                              message_id::of_context(m_env.node, e.context),
                              e.page << PRAWN_PAGE_SHIFT);
            }
        }
    }
    m_next_slot = std::max(m_next_slot, now_ps()) + filled * m_cycle;
}

// Of a page in the cache, since the context was enabled. A miss on a page that
// an earlier prefetch brought is not compulsory.
bool utlb::first_time(std::uint16_t context, std::uint64_t page) {
    std::uint64_t& word = m_contexts[context].seen[page >> 9][page >> 6 & 7];
    const std::uint64_t bit = std::uint64_t{1} << (page & 63);
    const bool first = !(word & bit);
    word |= bit;
    return first;
}

void utlb::answer_all(std::uint32_t first, std::uint16_t status) {
    while (first != NO_WAITER) {
        const utlb_request request = m_waiters[first].request;
        input& p = m_ports[m_waiters[first].port];
        m_free_waiters.push_back(first);
        first = m_waiters[first].next;
        answer(p, request, status);
    }
}

void utlb::step() {
    const std::uint64_t now = now_ps();
    while (!m_steps.empty() && m_steps.front().at <= now) {
        m_walker.step(m_steps.pop_front().walk);
        while (m_again_first != NO_WAITER) {
            const std::uint32_t w = m_again_first;
            m_again_first = m_waiters[w].next;
            place(w);
        }
    }
    serve_parked();
    if (!m_steps.empty())
        m_step_due.notify(
            sc_core::sc_time::from_value(m_steps.front().at - now));
}

void utlb::retry_dma() {
    m_walker.send_unsent();
    serve_parked();
    sc_core::next_trigger(dma_out->room());
}

}  // namespace prawn
