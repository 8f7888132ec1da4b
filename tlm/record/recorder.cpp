// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <cstring>

#include "nic/contracts.h"
#include "support/events.h"

namespace prawn {

namespace {

constexpr unsigned DOORBELL_BAR = 2, CONTROL_BAR = 0;

bool is_doorbell(const tlm::tlm_generic_payload& trans, unsigned bar) {
    const std::uint64_t offset = trans.get_address();
    return trans.is_write() &&
           ((bar == DOORBELL_BAR &&
             offset % PRAWN_PAGE_SIZE == PRAWN_DOORBELL_DOORBELL) ||
            (bar == CONTROL_BAR && offset == PRAWN_BAR0_ADMIN_DOORBELL));
}

const bar_extension& bar_of(const tlm::tlm_generic_payload& trans) {
    return *trans.get_extension<bar_extension>();
}

std::uint64_t value_of(const tlm::tlm_generic_payload& trans) {
    std::uint64_t value = 0;
    std::memcpy(&value, trans.get_data_ptr(), trans.get_data_length());
    return value;
}

record_status status_of(const tlm::tlm_generic_payload& trans) {
    switch (trans.get_response_status()) {
        case tlm::TLM_OK_RESPONSE:
            return record_status::OK;
        case tlm::TLM_ADDRESS_ERROR_RESPONSE:
            return record_status::ADDRESS_ERROR;
        default:
            return record_status::OTHER_ERROR;
    }
}

}  // namespace

recorder::recorder(sc_core::sc_module_name name, unsigned node,
                   recording_writer& file, std::function<void()> written) :
    sc_core::sc_module(name),
    m_node(static_cast<std::uint16_t>(node)),
    m_file(file),
    m_written(std::move(written)),
    m_bar_in_end(*this, &recorder::bar_request),
    m_bar_out_end(*this, &recorder::bar_response),
    m_dma_in_end(*this, &recorder::dma_request, &recorder::peek),
    m_dma_out_end(*this, &recorder::dma_response),
    m_tables(
        [this](std::uint64_t address, std::uint8_t* data, std::uint32_t size) {
            return read_memory(address, data, size);
        },
        [this](std::uint64_t address, const std::uint8_t* data,
               std::uint32_t size) {
            record r = at_now(record_kind::MEMORY);
            r.address = address;
            r.data = data;
            r.data_size = size;
            write(r);
        }) {
    bar_in.bind(m_bar_in_end);
    bar_out.bind(m_bar_out_end);
    dma_in.bind(m_dma_in_end);
    dma_out.bind(m_dma_out_end);
    interrupt_in.bind(*this);
    control_in.bind(*this);
    map_in.bind(*this);
}

record recorder::at_now(record_kind kind) const {
    record r;
    r.time_ps = now_ps();
    r.delta =
        static_cast<std::uint32_t>(sc_core::sc_delta_count_at_current_time());
    r.node = m_node;
    r.kind = kind;
    r.nested = r.to_card() && m_in_host > 0;
    return r;
}

void recorder::write(const record& r) {
    m_file.write(r);
    if (m_written)
        m_written();
}

bool recorder::read_memory(std::uint64_t address, std::uint8_t* data,
                           std::uint32_t size) {
    m_peek.set_command(tlm::TLM_READ_COMMAND);
    m_peek.set_address(address);
    m_peek.set_data_ptr(data);
    m_peek.set_data_length(size);
    m_peek.set_streaming_width(size);
    return dma_out->transport_dbg(m_peek) == size;
}

unsigned recorder::peek(tlm::tlm_generic_payload& trans) {
    return dma_out->transport_dbg(trans);
}

// -- BAR accesses -----------------------------------------------------------

tlm::tlm_sync_enum recorder::bar_request(tlm::tlm_generic_payload& trans,
                                         tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return send_forward(bar_out, trans, phase);
    if (is_doorbell(trans, bar_of(trans).bar))
        m_tables.compare();
    write_bar_request(trans);
    m_bar_waiting = &trans;  // unless it is accepted in this call
    const tlm::tlm_sync_enum result = send_forward(bar_out, trans, phase);
    if (result != tlm::TLM_ACCEPTED && m_bar_waiting == &trans)
        m_bar_waiting = nullptr;
    if (result == tlm::TLM_COMPLETED ||
        (result == tlm::TLM_UPDATED && phase == tlm::BEGIN_RESP))
        write_bar_answer(trans);
    return result;
}

tlm::tlm_sync_enum recorder::bar_response(tlm::tlm_generic_payload& trans,
                                          tlm::tlm_phase& phase) {
    if (phase == tlm::BEGIN_RESP)
        write_bar_answer(trans);
    else if (phase == tlm::END_REQ && m_bar_waiting == &trans)
        write_order(record_kind::BAR_ACCEPTED, bar_of(trans).order);
    if (m_bar_waiting == &trans)
        m_bar_waiting = nullptr;
    m_in_host++;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    const tlm::tlm_sync_enum result =
        bar_in->nb_transport_bw(trans, phase, delay);
    m_in_host--;
    return result;
}

void recorder::write_bar_request(const tlm::tlm_generic_payload& trans) {
    const bar_extension& bar = bar_of(trans);
    record r = at_now(trans.is_read() ? record_kind::BAR_READ
                                      : record_kind::BAR_WRITE);
    r.bar = bar.bar;
    r.order = bar.order;
    r.address = trans.get_address();
    r.length = trans.get_data_length();
    if (trans.is_write()) {
        r.posted = bar.posted;
        r.value = value_of(trans);
    }
    write(r);
}

void recorder::write_bar_answer(const tlm::tlm_generic_payload& trans) {
    if (trans.is_write()) {
        write_order(record_kind::BAR_WRITTEN, bar_of(trans).order);
        return;
    }
    record r = at_now(record_kind::BAR_RESULT);
    r.order = bar_of(trans).order;
    r.length = trans.get_data_length();
    r.value = value_of(trans);
    write(r);
}

void recorder::write_order(record_kind kind, std::uint64_t order) {
    record r = at_now(kind);
    r.order = order;
    write(r);
}

// -- DMA --------------------------------------------------------------------

tlm::tlm_sync_enum recorder::dma_request(tlm::tlm_generic_payload& trans,
                                         tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return send_forward(dma_out, trans, phase);
    dma_slot* slot = trans.get_extension<dma_slot>();
    if (!slot) {
        slot = new dma_slot;
        trans.set_extension(slot);
    }
    slot->order = ++m_dma_order;
    slot->began_ps = now_ps();
    slot->open = true;
    slot->waiting = false;
    const dma_slot* before = m_asking;
    m_asking = slot;
    const tlm::tlm_sync_enum result = send_forward(dma_out, trans, phase);
    // If it was not answered from within, in which case it may be another now.
    if (m_asking == slot) {
        if (result == tlm::TLM_COMPLETED ||
            (result == tlm::TLM_UPDATED && phase == tlm::BEGIN_RESP))
            write_dma(trans, *slot);
        else
            slot->waiting = result == tlm::TLM_ACCEPTED;
    }
    m_asking = before;
    return result;
}

tlm::tlm_sync_enum recorder::dma_response(tlm::tlm_generic_payload& trans,
                                          tlm::tlm_phase& phase) {
    dma_slot& slot = *trans.get_extension<dma_slot>();
    if (phase == tlm::BEGIN_RESP)
        write_dma(trans, slot);
    else if (phase == tlm::END_REQ && slot.waiting)
        write_order(record_kind::DMA_ACCEPTED, slot.order);
    slot.waiting = false;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    return dma_in->nb_transport_bw(trans, phase, delay);
}

// The host has answered.
void recorder::write_dma(const tlm::tlm_generic_payload& trans,
                         dma_slot& slot) {
    if (!slot.open)
        return;
    slot.open = false;
    const auto* ext = trans.get_extension<dma_extension>();
    record r = at_now(trans.is_read() ? record_kind::DMA_READ
                                      : record_kind::DMA_WRITE);
    r.order = slot.order;
    r.address = trans.get_address();
    r.length = trans.get_data_length();
    r.context = ext ? ext->context : KERNEL_CONTEXT;
    r.channel = ext ? ext->channel : std::uint8_t{0};
    r.status = status_of(trans);
    r.late = m_asking != &slot;
    if (r.late)
        r.began_ps = slot.began_ps;
    else
        m_asking = nullptr;
    if (trans.is_write() || r.status == record_status::OK) {
        r.data = trans.get_data_ptr();
        r.data_size = trans.get_data_length();
    }
    if (r.channel == DMA_UTLB && trans.is_read() &&
        r.status == record_status::OK)
        m_tables.touch(r.address, static_cast<std::uint32_t>(r.length));
    write(r);
}

// -- Control, interrupts, maps ----------------------------------------------

void recorder::write_host(record_kind kind, bool flag) {
    record r = at_now(kind);
    r.flag = flag;
    write(r);
}

void recorder::reset() {
    write_host(record_kind::RESET);
    m_tables.clear();
    control_out->reset();
}

void recorder::set_bus_master(bool on) {
    write_host(record_kind::BUS_MASTER, on);
    control_out->set_bus_master(on);
}

void recorder::set_attached(bool on) {
    write_host(on ? record_kind::ATTACH : record_kind::DETACH);
    m_tables.clear();
    control_out->set_attached(on);
}

void recorder::msix(unsigned vector) {
    record r = at_now(record_kind::MSIX);
    r.vector = vector;
    write(r);
    m_in_host++;
    interrupt_out->msix(vector);
    m_in_host--;
}

void recorder::intx(bool level) {
    write_host(record_kind::INTX, level);
    m_in_host++;
    interrupt_out->intx(level);
    m_in_host--;
}

void recorder::write_map(record_kind kind, std::uint64_t address,
                         std::uint64_t size) {
    record r = at_now(kind);
    r.address = address;
    r.length = size;
    write(r);
}

void recorder::mapped(std::uint64_t address, std::uint64_t size) {
    write_map(record_kind::MAP, address, size);
}

void recorder::unmapped(std::uint64_t address, std::uint64_t size) {
    write_map(record_kind::UNMAP, address, size);
}

}  // namespace prawn
