// SPDX-License-Identifier: Apache-2.0
// host_bus: the host's accesses to the card's BARs.
#include <algorithm>
#include <cstring>

#include "host/host_bus.h"

namespace prawn {

tlm::tlm_sync_enum host_bus::bar_request(tlm::tlm_generic_payload& trans,
                                         tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_ACCEPTED;
    bar_slot* slot = trans.get_extension<bar_slot>();
    if (!slot) {
        slot = new bar_slot;
        slot->bar = true;
        slot->trans = &trans;
        trans.set_extension(slot);
    }
    slot->generation = m_generation;
    slot->answer = false;
    if (m_bar_used >= m_config.bar_credits || m_bar_door) {
        m_bar_stalls++;
        m_bar_door = &trans;
        return tlm::TLM_ACCEPTED;
    }
    accept_bar(trans);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

void host_bus::accept_bar(tlm::tlm_generic_payload& trans) {
    bar_slot& slot = *trans.get_extension<bar_slot>();
    const bool read = trans.is_read();
    read ? m_bar_reads++ : m_bar_writes++;
    m_bar_used++;

    const std::uint64_t now = now_ps();
    bus_medium::job j;
    j.at = now;
    j.user = static_cast<item*>(&slot);
    if (m_half)
        j.tail = read ? m_mmio_read : m_mmio_write;
    else
        j.tail = bytes(m_overhead + (read ? 0 : trans.get_data_length()));
    if (!m_half && m_down.idle(now))
        bar_job_ended(slot, m_down.start_now(now, j.tail));
    else
        down().add(MMIO_FLOW, j);
    schedule();
}

// A request or an answer has been sent. Full duplex: the rest of its way is
// what remains of the unloaded latency.
void host_bus::bar_job_ended(bar_slot& slot, std::uint64_t end) {
    const bool read = slot.trans->is_read();
    std::uint64_t at = end;
    if (!m_half) {
        const std::uint64_t there = m_mmio_read / 2;
        const std::uint64_t latency = slot.answer ? m_mmio_read - there
                                      : read      ? there
                                                  : m_mmio_write;
        const bool data = slot.answer || !read;
        const std::uint64_t sent =
            bytes(m_overhead + (data ? slot.trans->get_data_length() : 0));
        at = std::max(end, end - sent + latency);
    }
    ring<timed<bar_slot>>& queue = slot.answer ? m_answers : m_arrivals;
    if (!queue.empty())
        at = std::max(at, queue.back().at);
    queue.push_back({&slot, at});
}

void host_bus::deliver_bar(std::uint64_t now) {
    while (!m_arrivals.empty() && !m_card_pending &&
           m_arrivals.front().at <= now) {
        bar_slot& slot = *m_arrivals.pop_front().slot;
        to_card(slot);
    }
    while (!m_answers.empty() && m_answers.front().at <= now &&
           m_handed.ended(m_answers.front().slot->fence)) {
        bar_slot& slot = *m_answers.pop_front().slot;
        finish_bar(slot);
    }
}

void host_bus::to_card(bar_slot& slot) {
    tlm::tlm_generic_payload& trans = *slot.trans;
    if (slot.generation != m_generation) {
        m_bar_dropped++;
        if (trans.is_read())
            std::memset(trans.get_data_ptr(), 0, trans.get_data_length());
        trans.set_response_status(tlm::TLM_OK_RESPONSE);
        answer_bar(slot);
        return;
    }
    m_card_pending = &trans;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    const tlm::tlm_sync_enum result = send_forward(bar_out, trans, phase);
    // The response may have come already, from within the call.
    if (m_card_pending != &trans)
        return;
    if (result == tlm::TLM_COMPLETED) {
        m_card_pending = nullptr;
        answer_bar(slot);
    } else if (result == tlm::TLM_UPDATED) {
        m_card_pending = nullptr;
        if (phase == tlm::BEGIN_RESP)
            answer_bar(slot);
    }
}

tlm::tlm_sync_enum host_bus::bar_response(tlm::tlm_generic_payload& trans,
                                          tlm::tlm_phase& phase) {
    if (m_card_pending == &trans)
        m_card_pending = nullptr;
    if (phase == tlm::BEGIN_RESP)
        answer_bar(*trans.get_extension<bar_slot>());
    else
        schedule();
    return phase == tlm::BEGIN_RESP ? tlm::TLM_COMPLETED : tlm::TLM_ACCEPTED;
}

// The card has answered: a write is done, a read goes back.
void host_bus::answer_bar(bar_slot& slot) {
    if (slot.trans->is_write()) {
        finish_bar(slot);
        schedule();
        return;
    }
    const std::uint64_t now = now_ps();
    slot.answer = true;
    slot.fence = m_handed.last();
    if (m_half) {
        bar_job_ended(slot, now);
    } else {
        bus_medium::job j;
        j.at = now;
        j.tail = bytes(m_overhead + slot.trans->get_data_length());
        j.user = static_cast<item*>(&slot);
        if (m_up.idle(now))
            bar_job_ended(slot, m_up.start_now(now, j.tail));
        else
            m_up.add(MMIO_FLOW, j);
    }
    schedule();
}

void host_bus::finish_bar(bar_slot& slot) {
    m_bar_used--;
    send_backward(bar_in, *slot.trans, tlm::BEGIN_RESP);
    if (m_bar_door && m_bar_used < m_config.bar_credits) {
        tlm::tlm_generic_payload& next = *m_bar_door;
        m_bar_door = nullptr;
        accept_bar(next);
        send_backward(bar_in, next, tlm::END_REQ);
    }
}

}  // namespace prawn
