// SPDX-License-Identifier: Apache-2.0
// From queued entries to DMA writes, and what follows when they have landed.
#include <cstring>

#include "nic/notifier.h"

namespace prawn {

namespace {

constexpr std::uint32_t FLIGHT_BITS = 8;

template <typename T>
std::uint64_t entry_address(std::uint64_t base, std::uint32_t mask,
                            std::uint32_t index) {
    return base + std::uint64_t{index & mask} * sizeof(T);
}

}  // namespace

bool notifier::has_work() const {
    return !m_completions.empty() || !m_notifications.empty() ||
           !m_acks.empty() || !m_event_queue.empty();
}

void notifier::kick() {
    if (m_scheduled)
        return;
    m_scheduled = true;
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    if (now < m_next)
        m_kick.notify(m_next - now);
    else
        m_kick.notify(sc_core::SC_ZERO_TIME);
}

void notifier::work() {
    m_scheduled = false;
    if (m_refused && dma_out->try_put(m_request))
        m_refused = false;
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    if (!m_refused && m_in_flight < WINDOW && now >= m_next && start_next())
        m_next = now + cycles(ENTRY_CYCLES);
    if (m_refused)
        next_trigger(dma_out->room() | m_kick);
    else if (m_in_flight < WINDOW && has_work())
        kick();  // without a place in the window, the next reply does
}

// One entry, of the kind whose turn it is. False if there is nothing to do.
bool notifier::start_next() {
    for (unsigned i = 0; i < KINDS; i++) {
        const auto kind = static_cast<kind_t>((m_turn + i) % KINDS);
        if (!start(kind))
            continue;
        m_turn = (kind + 1u) % KINDS;
        return true;
    }
    return false;
}

bool notifier::start(kind_t kind) {
    switch (kind) {
        case ACK:
            return start_ack();
        case EVENT:
            return start_event();
        case COMPLETION:
            return start_completion();
        default:
            return start_notification();
    }
}

bool notifier::start_ack() {
    if (m_acks.empty())
        return false;
    const ack_request r = m_acks.pop_front();
    ref<small_buffer> buffer = small_buffer_pool().get();
    prawn_admin_ack entry{};
    entry.value = r.value;
    entry.status = r.status;
    entry.seq = r.index + 1;
    std::memcpy(buffer->bytes, &entry, sizeof(entry));
    flight& f = launch(ACK,
                       entry_address<prawn_admin_ack>(
                           m_ack_ring.base, m_ack_ring.mask(), r.index),
                       sizeof(entry), std::move(buffer), KERNEL_CONTEXT);
    f.index = r.index;
    f.interrupt = r.interrupt;
    m_count_acks++;
    return true;
}

bool notifier::start_event() {
    if (m_event_queue.empty())
        return false;
    const queued_event e = m_event_queue.pop_front();
    const kernel_event_request& r = e.request;
    ref<small_buffer> buffer = small_buffer_pool().get();
    static_assert(sizeof(prawn_kernel_event) <= sizeof(buffer->bytes), "");
    prawn_kernel_event entry{};
    entry.type = r.type;
    entry.node = r.node;
    entry.epoch = r.epoch;
    entry.context = r.context;
    entry.value = r.value;
    entry.time = now_ps();
    entry.length = r.data ? r.length : 0;
    if (entry.length)
        std::memcpy(entry.data, r.data, entry.length);
    entry.seq = e.index + 1;
    std::memcpy(buffer->bytes, &entry, sizeof(entry));
    flight& f = launch(EVENT,
                       entry_address<prawn_kernel_event>(
                           m_events_ring.base, m_events_ring.mask(), e.index),
                       sizeof(entry), std::move(buffer), KERNEL_CONTEXT);
    f.index = e.index;
    m_count_events++;
    m_events.emit(event_kind::KERNEL_EVENT, {}, r.type, e.index);
    return true;
}

bool notifier::start_completion() {
    while (!m_completions.empty()) {
        completion_request r = m_completions.pop_front();
        m_completion_in.has_room();
        if (!of_present_life(r.context, r.life)) {
            m_count_dropped++;
            continue;
        }
        const host_ring& c = m_contexts[r.context].completion;
        ref<small_buffer> buffer = small_buffer_pool().get();
        r.entry.seq = r.index + 1;
        std::memcpy(buffer->bytes, &r.entry, sizeof(r.entry));
        flight& f =
            launch(COMPLETION,
                   entry_address<prawn_completion>(c.base, c.mask(), r.index),
                   sizeof(r.entry), std::move(buffer), r.context);
        f.index = r.index;
        m_count_completions++;
        m_context_completions[r.context]++;
        m_events.emit(event_kind::COMPLETION_WRITTEN,
                      {m_env.node, r.context, r.entry.message}, r.entry.status,
                      r.index);
        return true;
    }
    return false;
}

bool notifier::start_notification() {
    if (m_notifications.empty())
        return false;
    const queued_notification n = m_notifications.pop_front();
    const host_ring& c = m_contexts[n.context].notification;
    ref<small_buffer> buffer = small_buffer_pool().get();
    std::memcpy(buffer->bytes, &n.entry, sizeof(n.entry));
    flight& f =
        launch(NOTIFICATION,
               entry_address<prawn_notification>(c.base, c.mask(), n.index),
               sizeof(n.entry), std::move(buffer), n.context);
    f.index = n.index;
    m_count_notifications++;
    m_context_notifications[n.context]++;
    m_events.emit(
        event_kind::NOTIFICATION_WRITTEN,
        {n.entry.source_node, n.entry.source_context, n.entry.message},
        n.entry.type, n.index);
    return true;
}

notifier::flight& notifier::launch(kind_t kind, std::uint64_t address,
                                   std::uint32_t length,
                                   ref<small_buffer> buffer,
                                   std::uint16_t context) {
    std::uint32_t slot = 0;
    while (m_flights[slot].used)
        slot++;
    flight& f = m_flights[slot];
    f = flight();
    f.used = true;
    f.kind = kind;
    f.context = context;
    f.life = context < PRAWN_CONTEXTS ? m_contexts[context].life : 0;
    f.drain = m_drains.begin();
    m_in_flight++;

    m_request = dma_request();
    m_request.tag = m_generation << FLIGHT_BITS | slot;
    m_request.write = true;
    m_request.context = KERNEL_CONTEXT;  // the kernel owns every ring
    m_request.address = address;
    m_request.length = length;
    m_request.data = buffer->bytes;
    m_request.keep = std::move(buffer);
    m_refused = !dma_out->try_put(m_request);
    return f;
}

void notifier::on_reply(dma_reply& r) {
    const std::uint32_t slot = r.tag & ((1u << FLIGHT_BITS) - 1);
    const std::uint32_t generation = r.tag >> FLIGHT_BITS;
    if (slot >= WINDOW || !m_flights[slot].used ||
        generation != (m_generation & (~0u >> FLIGHT_BITS)))
        return;  // from before a reset
    const flight f = m_flights[slot];
    m_flights[slot].used = false;
    m_in_flight--;
    m_drains.end(f.drain);
    if (has_work())
        kick();
    if (r.status != PRAWN_STATUS_OK) {
        m_count_dma_errors++;
        m_events.emit(event_kind::ERROR, {}, r.status, f.kind);
        return;
    }
    switch (f.kind) {
        case ACK:
            if (f.interrupt)
                raise(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_ADMIN_MASK);
            return;
        case EVENT:
            if (!m_events_ring.usable())
                return;
            m_events_ring.written = f.index + 1;
            if (m_events_ring.armed) {
                m_events_ring.armed = false;
                raise(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_EVENT_MASK);
            }
            return;
        default:
            break;
    }
    context_state& c = m_contexts[f.context];
    if (c.life != f.life)
        return;  // disabled since
    landed(f.context, f.kind == COMPLETION ? c.completion : c.notification,
           f.index);
}

}  // namespace prawn
