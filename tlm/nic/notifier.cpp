// SPDX-License-Identifier: Apache-2.0
// Rings, interrupts and what comes in; notifier_output.cpp writes the entries.
#include "nic/notifier.h"

#include <algorithm>

namespace prawn {

notifier::notifier(sc_core::sc_module_name name, const block_env& env) :
    notifier_base(name, env, block_id::NOTIFIER),
    m_completion_in("completion_in", *this),
    m_notification_in([this](auto& r) { on_notification(r); }),
    m_event_in([this](auto& r) { on_event(r); }),
    m_ack_in([this](auto& r) { on_ack(r); }),
    m_update_in([this](auto& u) { on_update(u); }),
    m_reply_in([this](auto& r) { on_reply(r); }),
    m_control("control", *this, *this, cycles(1)),
    m_kick("kick"),
    m_count_completions(env.counters->add("notifier.completions")),
    m_count_notifications(env.counters->add("notifier.notifications")),
    m_count_coalesced(env.counters->add("notifier.coalesced")),
    m_count_events(env.counters->add("notifier.events")),
    m_count_events_refused(env.counters->add("notifier.events_refused")),
    m_count_events_replaced(env.counters->add("notifier.events_replaced")),
    m_count_acks(env.counters->add("notifier.acks")),
    m_count_interrupts(env.counters->add("notifier.interrupts")),
    m_count_dma_errors(env.counters->add("notifier.dma_errors")),
    m_count_bad_index(env.counters->add("notifier.bad_index")),
    m_count_dropped(env.counters->add("notifier.dropped")),
    m_context_completions(
        env.counters->add_per_context("notifier.context_completions")),
    m_context_notifications(
        env.counters->add_per_context("notifier.context_notifications")) {
    SC_HAS_PROCESS(notifier);
    SC_METHOD(work);
    dont_initialize();
    sensitive << m_kick;
}

namespace {

bool ring_fits(std::uint64_t base, unsigned log2) {
    return base % PRAWN_PAGE_SIZE == 0 && log2 >= PRAWN_RING_LOG2_MIN &&
           log2 <= PRAWN_RING_LOG2_MAX;
}

}  // namespace

void notifier::set_event_ring(std::uint64_t base, unsigned log2) {
    m_event_queue.clear();
    m_events_ring = host_ring();
    if (!ring_fits(base, log2))
        return;
    m_events_ring.base = base;
    m_events_ring.log2 = log2;
    m_events_ring.armed = true;
    flush_events();
}

void notifier::set_ack_ring(std::uint64_t base, unsigned log2) {
    m_acks.clear();  // where they belong is no more
    m_ack_ring = host_ring();
    if (!ring_fits(base, log2))
        return;
    m_ack_ring.base = base;
    m_ack_ring.log2 = log2;
}

// -- Notifications ----------------------------------------------------------

bool notifier::of_present_life(std::uint16_t context,
                               std::uint32_t life) const {
    return context < PRAWN_CONTEXTS && m_contexts[context].enabled &&
           m_contexts[context].life == life;
}

void notifier::on_notification(notification_request& r) {
    if (!of_present_life(r.context, r.life)) {
        m_count_dropped++;
        return;
    }
    context_state& c = m_contexts[r.context];
    prawn_notification entry = r.entry;
    entry.count = 1;
    if (c.pending.empty() && !c.notification.full()) {
        queue_notification(r.context, entry);
        return;
    }
    for (prawn_notification& p : c.pending) {
        if (p.type != entry.type || p.id != entry.id)
            continue;
        entry.count = p.count + 1;
        p = entry;
        m_count_coalesced++;
        return;
    }
    c.pending.push_back(entry);
}

void notifier::queue_notification(std::uint16_t context,
                                  prawn_notification entry) {
    host_ring& r = m_contexts[context].notification;
    entry.seq = r.producer + 1;
    m_notifications.push_back({context, r.producer, entry});
    r.producer++;
    kick();
}

void notifier::flush_pending(std::uint16_t context) {
    context_state& c = m_contexts[context];
    while (!c.pending.empty() && !c.notification.full()) {
        queue_notification(context, c.pending.front());
        c.pending.pop_front();
    }
}

// -- Kernel events ----------------------------------------------------------

void notifier::on_event(kernel_event_request& r) {
    const bool room = m_events_ring.usable() && !m_events_ring.full();
    if (r.type == PRAWN_EVENT_TYPE_MGMT) {
        if (room && m_events_held.empty() && r.length <= PRAWN_MGMT_MAX)
            queue_event(r);
        else
            refuse(r);
        return;
    }
    if (room && m_events_held.empty())
        queue_event(r);
    else
        hold_event(r);
}

void notifier::queue_event(kernel_event_request& r) {
    m_event_queue.push_back({m_events_ring.producer, std::move(r)});
    m_events_ring.producer++;
    kick();
}

void notifier::hold_event(kernel_event_request& r) {
    const bool by_address = r.type == PRAWN_EVENT_TYPE_UTLB_MISS ||
                            r.type == PRAWN_EVENT_TYPE_UTLB_EVICT;
    const auto same =
        std::find_if(m_events_held.begin(), m_events_held.end(),
                     [&](const kernel_event_request& held) {
                         return held.type == r.type && held.node == r.node &&
                                held.context == r.context &&
                                (!by_address || held.value == r.value);
                     });
    if (same != m_events_held.end()) {
        m_events_held.erase(same);
        m_count_events_replaced++;
    }
    m_events_held.push_back(std::move(r));
}

void notifier::flush_events() {
    while (!m_events_held.empty() && m_events_ring.usable() &&
           !m_events_ring.full()) {
        queue_event(m_events_held.front());
        m_events_held.pop_front();
    }
}

void notifier::refuse(const kernel_event_request& r) {
    m_count_events_refused++;
    const auto* pkt = dynamic_cast<const packet*>(r.keep.get());
    refusal answer;
    answer.node = r.node;
    answer.status = PRAWN_STATUS_EVENT_FULL;
    if (pkt)
        answer.head = pkt->head;
    refusal_out->try_put(answer);
}

// -- Completions ------------------------------------------------------------

bool notifier::take_completion(completion_request& r) {
    if (m_completions.size() == COMPLETION_DEPTH)
        return false;
    m_completions.push_back(r);
    kick();
    return true;
}

// -- Acknowledgements -------------------------------------------------------

void notifier::on_ack(ack_request& r) {
    if (!m_ack_ring.usable()) {
        m_count_dropped++;
        return;
    }
    m_acks.push_back(r);
    kick();
}

// -- Indices and interrupts -------------------------------------------------

// False for an index that is not between the last one and the producer.
bool notifier::consume(host_ring& r, std::uint32_t index) {
    if (index - r.consumed > r.producer - r.consumed) {
        m_count_bad_index++;
        return false;
    }
    r.consumed = index;
    return true;
}

void notifier::on_update(ring_update& u) {
    if (u.what == ring_update::EVENT_CONSUMED) {
        host_ring& r = m_events_ring;
        if (!r.usable() || !consume(r, u.index))
            return;
        flush_events();
        r.armed = r.written == r.consumed;
        if (!r.armed)
            raise(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_EVENT_MASK);
        return;
    }
    if (u.context >= PRAWN_CONTEXTS || !m_contexts[u.context].enabled)
        return;
    context_state& c = m_contexts[u.context];
    switch (u.what) {
        case ring_update::NOTIFY_CONSUMED:
            if (consume(c.notification, u.index))
                flush_pending(u.context);
            break;
        case ring_update::ARM_NOTIFY:
            arm(u.context, c.notification, u.index);
            break;
        case ring_update::ARM_COMPLETION:
            arm(u.context, c.completion, u.index);
            break;
        default:
            c.completion.consumed = u.index;
            break;
    }
}

void notifier::arm(std::uint16_t context, host_ring& r, std::uint32_t index) {
    r.armed = r.written == index;
    r.arm_index = index;
    if (!r.armed)
        raise(m_contexts[context].vector, PRAWN_INT_CAUSE_CONTEXT_MASK);
}

// The entry is in host memory.
void notifier::landed(std::uint16_t context, host_ring& r,
                      std::uint32_t index) {
    r.written = index + 1;
    if (!r.armed || r.written == r.arm_index)
        return;
    r.armed = false;
    raise(m_contexts[context].vector, PRAWN_INT_CAUSE_CONTEXT_MASK);
}

void notifier::raise(unsigned vector, unsigned cause) {
    m_count_interrupts++;
    m_events.emit(event_kind::MSIX, {}, vector);
    cause_out->try_put(cause);
    msix_out->try_put(vector);
}

// -- Control ----------------------------------------------------------------

void notifier::control(const control_request& r) {
    switch (r.op) {
        case control_op::CONTEXT_ENABLE:
            enable(r);
            break;
        case control_op::CONTEXT_DISABLE:
            disable(r);
            break;
        case control_op::DRAIN:
            answer_drained(r.tag);
            break;
        default:
            m_control.answer(r.tag, PRAWN_STATUS_BAD_OPCODE);
            break;
    }
}

void notifier::enable(const control_request& r) {
    const auto log2_completion = static_cast<unsigned>(r.e & 0xff);
    const auto log2_notification = static_cast<unsigned>(r.e >> 8 & 0xff);
    if (r.context >= PRAWN_CONTEXTS || m_contexts[r.context].enabled) {
        m_control.answer(r.tag, PRAWN_STATUS_BAD_CONTEXT);
        return;
    }
    if (!ring_fits(r.b, log2_completion) ||
        !ring_fits(r.c, log2_notification) || r.index < 1 ||
        r.index >= PRAWN_VECTORS) {
        m_control.answer(r.tag, PRAWN_STATUS_BAD_FIELD);
        return;
    }
    context_state& c = m_contexts[r.context];
    c = context_state();
    c.enabled = true;
    c.life = r.life;
    c.vector = r.index;
    c.completion.base = r.b;
    c.completion.log2 = log2_completion;
    c.notification.base = r.c;
    c.notification.log2 = log2_notification;
    m_control.answer(r.tag, PRAWN_STATUS_OK);
}

void notifier::disable(const control_request& r) {
    if (r.context < PRAWN_CONTEXTS) {
        m_contexts[r.context] = context_state();
        for (std::size_t n = m_notifications.size(); n > 0; n--) {
            queued_notification one = m_notifications.pop_front();
            if (one.context != r.context)
                m_notifications.push_back(one);
        }
        // Completions on their way are dropped when their turn comes.
    }
    answer_drained(r.tag);
}

void notifier::answer_drained(std::uint32_t tag) {
    m_drains.drain([this, tag] { m_control.answer(tag, PRAWN_STATUS_OK); });
}

void notifier::reset() {
    m_completions.clear();
    m_completion_in.has_room();
    m_control.reset();
    for (context_state& c : m_contexts)
        c = context_state();
    m_events_ring = host_ring();
    m_ack_ring = host_ring();
    m_acks.clear();
    m_event_queue.clear();
    m_events_held.clear();
    m_notifications.clear();
    for (flight& f : m_flights)
        f = flight();
    m_in_flight = 0;
    m_generation++;
    m_drains.reset();
    m_refused = false;
    m_request = dma_request();
    m_turn = 0;
    m_next = sc_core::SC_ZERO_TIME;
    m_scheduled = false;
    kick();  // a process that waits for the channel waits no longer
}

}  // namespace prawn
