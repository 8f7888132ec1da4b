// SPDX-License-Identifier: Apache-2.0
// host_bus: DMA between card and host memory.
#include <algorithm>

#include "host/host_bus.h"

namespace prawn {

tlm::tlm_sync_enum host_bus::dma_request(tlm::tlm_generic_payload& trans,
                                         tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_ACCEPTED;
    dma_slot* slot = trans.get_extension<dma_slot>();
    if (!slot) {
        slot = new dma_slot;
        slot->trans = &trans;
        trans.set_extension(slot);
    }
    slot->generation = m_generation;
    if (m_dma_used >= m_config.dma_slots || m_dma_door) {
        m_dma_door = &trans;
        return tlm::TLM_ACCEPTED;
    }
    accept_dma(trans);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

void host_bus::accept_dma(tlm::tlm_generic_payload& trans) {
    dma_slot& slot = *trans.get_extension<dma_slot>();
    const auto* ext = trans.get_extension<dma_extension>();
    slot.flow = ext ? std::min<unsigned>(ext->channel, MMIO_FLOW - 1) : 0;
    slot.header = false;
    m_dma_used++;

    const std::uint64_t now = now_ps();
    const std::uint32_t length = std::max(trans.get_data_length(), 1U);
    bus_medium::job j;
    j.at = now;
    j.bursts = (length + m_max_burst - 1) / m_max_burst;
    j.burst = bytes(m_overhead + m_max_burst);
    j.tail = bytes(m_overhead + length - (j.bursts - 1) * m_max_burst);
    j.user = static_cast<item*>(&slot);
    if (trans.is_write()) {
        m_dma_writes++;
        slot.number = m_handed.begin();
        m_answered.begin();
        j.burst += m_arbitration;
        j.tail += m_arbitration;
        m_up.add(slot.flow, j);
    } else if (m_half) {
        m_dma_reads++;
        j.burst += m_arbitration + m_read_latency;
        j.tail += m_arbitration + m_read_latency;
        m_up.add(slot.flow, j);
    } else {
        m_dma_reads++;
        bus_medium::job request;
        request.at = now;
        request.burst = request.tail = m_header;
        if (m_up.idle(now)) {
            announce_read(slot, m_up.start_now(now, m_header));
        } else {
            slot.header = true;
            request.user = static_cast<item*>(&slot);
            m_up.add(slot.flow, request);
        }
        if (j.bursts > 1) {
            request.bursts = j.bursts - 1;
            request.user = nullptr;
            m_up.add(slot.flow, request);
        }
    }
    schedule();
}

// The first request of a read has been sent at `at`; the others follow faster
// than data can come.
void host_bus::announce_read(dma_slot& slot, std::uint64_t at) {
    const std::uint32_t length = std::max(slot.trans->get_data_length(), 1U);
    bus_medium::job j;
    j.at = at + m_read_latency;
    j.bursts = (length + m_max_burst - 1) / m_max_burst;
    j.burst = bytes(m_overhead + m_max_burst);
    j.tail = bytes(m_overhead + length - (j.bursts - 1) * m_max_burst);
    j.user = static_cast<item*>(&slot);
    slot.header = false;
    m_down.add(slot.flow, j);
}

void host_bus::dma_job_ended(dma_slot& slot, std::uint64_t end) {
    if (slot.header)
        announce_read(slot, end);
    else if (slot.trans->is_write())
        m_writes.push_back({&slot, end + m_write_latency});
    else
        m_reads.push_back({&slot, end});
}

void host_bus::deliver_dma(std::uint64_t now) {
    while (!m_host_queue.empty() && !m_host_pending) {
        dma_slot& slot = *m_host_queue.pop_front();
        to_host(slot);
    }
    while (!m_writes.empty() && m_writes.front().at <= now) {
        dma_slot& slot = *m_writes.pop_front().slot;
        m_handed.end(slot.number);
        if (m_host_pending)
            m_host_queue.push_back(&slot);
        else
            to_host(slot);
    }
    while (!m_reads.empty() && m_reads.front().at <= now) {
        dma_slot& slot = *m_reads.pop_front().slot;
        if (m_host_pending)
            m_host_queue.push_back(&slot);
        else
            to_host(slot);
    }
}

void host_bus::to_host(dma_slot& slot) {
    tlm::tlm_generic_payload& trans = *slot.trans;
    if (slot.generation != m_generation) {
        trans.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        finish_dma(slot);
        return;
    }
    m_host_pending = &trans;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    const tlm::tlm_sync_enum result = send_forward(dma_out, trans, phase);
    // The response may have come already, from within the call.
    if (m_host_pending != &trans)
        return;
    if (result == tlm::TLM_COMPLETED) {
        m_host_pending = nullptr;
        finish_dma(slot);
    } else if (result == tlm::TLM_UPDATED) {
        m_host_pending = nullptr;
        if (phase == tlm::BEGIN_RESP)
            finish_dma(slot);
    }
}

tlm::tlm_sync_enum host_bus::dma_response(tlm::tlm_generic_payload& trans,
                                          tlm::tlm_phase& phase) {
    if (m_host_pending == &trans)
        m_host_pending = nullptr;
    if (phase == tlm::BEGIN_RESP)
        finish_dma(*trans.get_extension<dma_slot>());
    if (!m_host_queue.empty())
        schedule();
    return phase == tlm::BEGIN_RESP ? tlm::TLM_COMPLETED : tlm::TLM_ACCEPTED;
}

void host_bus::finish_dma(dma_slot& slot) {
    tlm::tlm_generic_payload& trans = *slot.trans;
    m_dma_used--;
    if (trans.is_write()) {
        m_answered.end(slot.number);
        if (!m_interrupts.empty())
            schedule();
    }
    if (trans.get_response_status() != tlm::TLM_OK_RESPONSE)
        m_dma_refused++;
    send_backward(dma_in, trans, tlm::BEGIN_RESP);
    if (m_dma_door && m_dma_used < m_config.dma_slots) {
        tlm::tlm_generic_payload& next = *m_dma_door;
        m_dma_door = nullptr;
        accept_dma(next);
        send_backward(dma_in, next, tlm::END_REQ);
    }
}

}  // namespace prawn
