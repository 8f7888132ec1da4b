// SPDX-License-Identifier: Apache-2.0
// utlb: what the kernel asks of it.
#include <algorithm>

#include "nic/utlb.h"

namespace prawn {

namespace {
constexpr std::uint64_t PAGES = std::uint64_t{1}
                                << (PRAWN_VA_BITS - PRAWN_PAGE_SHIFT);
}

void utlb::control(control_request& request) {
    const std::uint32_t tag = request.tag;
    switch (request.op) {
        case control_op::CONTEXT_ENABLE:
            enable(request);
            break;
        case control_op::CONTEXT_DISABLE:
            disable(request);
            break;
        case control_op::INVALIDATE:
            invalidate(request);
            break;
        case control_op::FILL:
            reply_after(tag, PRAWN_STATUS_UNSUPPORTED, 1);
            break;
        case control_op::DRAIN:
            reply_drained(tag);
            break;
        default:
            reply_after(tag, PRAWN_STATUS_BAD_OPCODE, 1);
            break;
    }
}

void utlb::enable(const control_request& request) {
    if (request.context >= PRAWN_CONTEXTS ||
        m_contexts[request.context].enabled) {
        reply_after(request.tag, PRAWN_STATUS_BAD_CONTEXT, 1);
        return;
    }
    if (request.d & ~PRAWN_TABLE_ENTRY_ADDRESS_MASK) {
        reply_after(request.tag, PRAWN_STATUS_BAD_FIELD, 1);
        return;
    }
    context_state& c = m_contexts[request.context];
    c = context_state();
    c.enabled = true;
    c.table = request.d;
    m_enabled++;
    reply_after(request.tag, PRAWN_STATUS_OK, 1);
}

void utlb::disable(const control_request& request) {
    if (request.context >= PRAWN_CONTEXTS) {
        reply_after(request.tag, PRAWN_STATUS_BAD_CONTEXT, 1);
        return;
    }
    context_state& c = m_contexts[request.context];
    if (c.enabled)
        m_enabled--;
    const std::uint32_t parked = c.first;
    c = context_state();
    m_parked &= ~(std::uint64_t{1} << request.context);
    m_cache.invalidate(request.context);
    // Only then the answers: whoever gets one finds the context disabled.
    std::uint32_t first[utlb_walker::MAX_WALKS];
    unsigned count = 0;
    m_walker.cancel(request.context, [&](utlb_walker::walk& w) {
        m_events.emit(event_kind::UTLB_WALK_END,
                      message_id::of_context(m_env.node, w.context), w.number,
                      PRAWN_STATUS_CANCELLED);
        first[count++] = w.first;
        w.first = w.last = NO_WAITER;
    });
    for (unsigned i = 0; i < count; i++)
        answer_all(first[i], PRAWN_STATUS_BAD_CONTEXT);
    answer_all(parked, PRAWN_STATUS_BAD_CONTEXT);
    reply_drained(request.tag);
}

void utlb::invalidate(const control_request& request) {
    const std::uint64_t page = request.a >> PRAWN_PAGE_SHIFT;
    if (request.context >= PRAWN_CONTEXTS) {
        reply_after(request.tag, PRAWN_STATUS_BAD_CONTEXT, 1);
        return;
    }
    if (request.b != 0 && page >= PAGES) {
        reply_after(request.tag, PRAWN_STATUS_BAD_FIELD, 1);
        return;
    }
    m_invalidations.add(request.context);
    m_events.emit(event_kind::UTLB_INVALIDATE,
                  message_id::of_context(m_env.node, request.context),
                  request.a, request.b);
    if (request.b == 0) {
        m_cache.invalidate(request.context);
        m_walker.invalidate(request.context, 0, 0);
        reply_drained(request.tag);
        return;
    }
    const std::uint64_t pages = std::min(request.b, PAGES - page);
    m_cache.invalidate(request.context, page, pages);
    m_walker.invalidate(request.context, page, pages);
    const std::uint64_t sets =
        m_cache.entries() >> m_cache.geometry().log2_ways;
    reply_after(request.tag, PRAWN_STATUS_OK,
                INVALIDATE_CYCLES + std::min(pages, sets));
}

// One after the other: the answer of a later request does not come earlier.
void utlb::reply_after(std::uint32_t tag, std::uint16_t status,
                       std::uint64_t cycles) {
    const std::uint64_t now = now_ps();
    std::uint64_t at = now + cycles * m_cycle;
    if (!m_replies.empty())
        at = std::max(at, m_replies.back().at + m_cycle);
    m_replies.push_back({at, tag, status});
    if (m_replies.size() == 1)
        m_reply_due.notify(sc_core::sc_time::from_value(at - now));
}

void utlb::reply_drained(std::uint32_t tag) {
    m_walker.reads().drain(
        [this, tag] { reply_after(tag, PRAWN_STATUS_OK, 1); });
}

void utlb::send_replies() {
    const std::uint64_t now = now_ps();
    while (!m_replies.empty() && m_replies.front().at <= now) {
        const late_reply r = m_replies.pop_front();
        reply(r.tag, r.status);
    }
    if (!m_replies.empty())
        m_reply_due.notify(
            sc_core::sc_time::from_value(m_replies.front().at - now));
}

}  // namespace prawn
