// SPDX-License-Identifier: Apache-2.0
// Writes every ring entry that the host reads, and raises interrupts.

#ifndef PRAWN_NIC_NOTIFIER_H
#define PRAWN_NIC_NOTIFIER_H

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "nic/direct_in.h"
#include "nic/pools.h"
#include "support/handler.h"
#include "support/ring.h"

namespace prawn {

// Contract: notifier_base. Kinds of entry take turns at the DMA channel. An
// entry's index is given out when it is queued, so nothing waits for a ring:
//  - Completion ring: cannot be full, command_queue has checked the doorbell.
//  - Notification ring full: see notifier_base; pending entries of a context
//    go out in the order in which each began to wait.
//  - Kernel event ring full, or not yet set up: MGMT is refused; of the rest
//    the newest of each type, node and context waits (UTLB events: of each
//    address), in the order of their newest.
//
// Completions and notifications of another life of their context than the
// present one are dropped and counted.
//
// Interrupts. Vector 0: with an acknowledgement that wants it, and once with
// the first event after EVENT_CONSUMED, or at EVENT_CONSUMED if there is one
// beyond it already. Context: once each time it is armed, when (or if already)
// the producer in memory differs from the index it was armed with. Nothing is
// raised for an entry whose DMA failed; that is counted.
class notifier final : public notifier_base, private control_handler
{
public:
    static constexpr unsigned ENTRY_CYCLES = 4;  // from one entry to the next
    static constexpr unsigned WINDOW = 16;       // DMA writes in flight
    static constexpr std::size_t COMPLETION_DEPTH = 16;

    notifier(sc_core::sc_module_name name, const block_env& env);

    put_if<completion_request>& completion_in() override {
        return m_completion_in;
    }
    put_if<notification_request>& notification_in() override {
        return m_notification_in;
    }
    put_if<kernel_event_request>& event_in() override { return m_event_in; }
    put_if<ack_request>& ack_in() override { return m_ack_in; }
    put_if<ring_update>& update_in() override { return m_update_in; }
    put_if<dma_reply>& dma_reply_in() override { return m_reply_in; }
    put_if<control_request>& control_in() override { return m_control; }
    void set_event_ring(std::uint64_t base, unsigned log2) override;
    void set_ack_ring(std::uint64_t base, unsigned log2) override;
    void reset() override;

private:
    enum kind_t : unsigned { ACK, EVENT, COMPLETION, NOTIFICATION, KINDS };

    // A ring in host memory that this block fills.
    struct host_ring {
        std::uint64_t base = 0;
        unsigned log2 = 0;
        std::uint32_t producer = 0;  // next index to give out
        std::uint32_t written = 0;   // first index not yet in memory
        std::uint32_t consumed = 0;
        bool armed = false;
        std::uint32_t arm_index = 0;

        bool usable() const { return log2 != 0; }
        std::uint32_t mask() const { return (1u << log2) - 1; }
        bool full() const { return producer - consumed > mask(); }
    };
    struct context_state {
        bool enabled = false;
        unsigned vector = 0;
        host_ring completion;
        host_ring notification;
        std::deque<prawn_notification> pending;  // count > 0
        std::uint32_t life = 0;                  // see control_request
    };
    struct queued_notification {
        std::uint16_t context;
        std::uint32_t index;
        prawn_notification entry;
    };
    struct queued_event {
        std::uint32_t index;
        kernel_event_request request;
    };
    // A DMA write in flight.
    struct flight {
        bool used = false;
        kind_t kind = ACK;
        std::uint16_t context = 0;
        std::uint32_t life = 0;
        std::uint32_t index = 0;
        bool interrupt = false;
        drain_tracker::generation drain = 0;
    };

    // Inputs.
    bool take_completion(completion_request& r);
    void on_notification(notification_request& r);
    void on_event(kernel_event_request& r);
    void on_ack(ack_request& r);
    void on_update(ring_update& u);
    void on_reply(dma_reply& r);
    void control(const control_request& r) override;

    bool of_present_life(std::uint16_t context, std::uint32_t life) const;
    void queue_notification(std::uint16_t context, prawn_notification entry);
    void flush_pending(std::uint16_t context);
    void queue_event(kernel_event_request& r);
    void hold_event(kernel_event_request& r);
    void flush_events();
    void refuse(const kernel_event_request& r);
    void enable(const control_request& r);
    void disable(const control_request& r);
    void answer_drained(std::uint32_t tag);
    bool consume(host_ring& r, std::uint32_t index);
    void arm(std::uint16_t context, host_ring& r, std::uint32_t index);
    void landed(std::uint16_t context, host_ring& r, std::uint32_t index);

    // Output.
    bool has_work() const;
    void kick();
    void work();
    bool start_next();
    bool start(kind_t kind);
    bool start_ack();
    bool start_event();
    bool start_completion();
    bool start_notification();
    flight& launch(kind_t kind, std::uint64_t address, std::uint32_t length,
                   ref<small_buffer> buffer, std::uint16_t context);
    void raise(unsigned vector, unsigned cause);

    direct_in<completion_request, notifier, &notifier::take_completion>
        m_completion_in;
    handler<notification_request> m_notification_in;
    handler<kernel_event_request> m_event_in;
    handler<ack_request> m_ack_in;
    handler<ring_update> m_update_in;
    handler<dma_reply> m_reply_in;
    control_channel m_control;

    std::array<context_state, PRAWN_CONTEXTS> m_contexts;
    host_ring m_events_ring;
    host_ring m_ack_ring;
    ring<completion_request> m_completions{COMPLETION_DEPTH};
    ring<ack_request> m_acks;
    ring<queued_event> m_event_queue;
    std::deque<kernel_event_request> m_events_held;
    ring<queued_notification> m_notifications;

    std::array<flight, WINDOW> m_flights;
    unsigned m_in_flight = 0;
    std::uint32_t m_generation = 0;
    drain_tracker m_drains;
    unsigned m_turn = 0;
    bool m_refused = false;
    dma_request m_request;     // refused by the DMA channel, to be put again
    sc_core::sc_time m_next;   // the next entry may begin
    bool m_scheduled = false;  // m_kick is under way
    sc_core::sc_event m_kick;

    counter& m_count_completions;
    counter& m_count_notifications;
    counter& m_count_coalesced;
    counter& m_count_events;
    counter& m_count_events_refused;
    counter& m_count_events_replaced;
    counter& m_count_acks;
    counter& m_count_interrupts;
    counter& m_count_dma_errors;
    counter& m_count_bad_index;
    counter& m_count_dropped;
    context_counter& m_context_completions;
    context_counter& m_context_notifications;
};

}  // namespace prawn

#endif
