// SPDX-License-Identifier: Apache-2.0
#include "record/replay_host.h"

#include <algorithm>
#include <cstring>

#include "support/events.h"

namespace prawn {

replay_host::bar_payload* replay_host::payload_pool::get() {
    if (unused.empty()) {
        all.push_back(std::make_unique<bar_payload>(this));
        bar_payload* p = all.back().get();
        p->extension = new bar_extension;  // goes with the payload
        p->set_extension(p->extension);
        p->set_data_ptr(reinterpret_cast<unsigned char*>(&p->value));
        p->set_byte_enable_ptr(nullptr);
        p->set_dmi_allowed(false);
        unused.push_back(p);
    }
    bar_payload* p = unused.back();
    unused.pop_back();
    p->acquire();
    return p;
}

void replay_host::payload_pool::free(tlm::tlm_generic_payload* trans) {
    unused.push_back(static_cast<bar_payload*>(trans));
}

replay_host::replay_host(sc_core::sc_module_name name) :
    sc_core::sc_module(name),
    m_due("due"),
    m_dma_end(*this, &replay_host::dma),
    m_bar_end(*this, &replay_host::bar_response) {
    SC_HAS_PROCESS(replay_host);
    dma_in.bind(m_dma_end);
    bar_out.bind(m_bar_end);
    interrupt_in.bind(*this);
    SC_METHOD(run_script);
    sensitive << m_due;
}

replay_host::~replay_host() = default;

void replay_host::wake_at(std::uint64_t time_ps) {
    const std::uint64_t now = now_ps();
    m_due.cancel();
    if (time_ps > now)
        m_due.notify(sc_core::sc_time::from_value(time_ps - now));
    else
        m_due.notify(sc_core::SC_ZERO_TIME);
}

void replay_host::wake_next_delta() {
    m_due.cancel();
    m_due.notify(sc_core::SC_ZERO_TIME);
}

void replay_host::wake_in_this_delta() {
    m_due.cancel();
    m_due.notify();
}

// -- BAR accesses -----------------------------------------------------------

void replay_host::access(const record& r) {
    bar_payload& p = *m_payloads.get();
    const auto length = static_cast<unsigned>(r.length);
    p.value = r.kind == record_kind::BAR_WRITE ? r.value : 0;
    p.set_command(r.kind == record_kind::BAR_WRITE ? tlm::TLM_WRITE_COMMAND
                                                   : tlm::TLM_READ_COMMAND);
    p.set_address(r.address);
    p.set_data_length(length);
    p.set_streaming_width(length);
    p.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    p.extension->bar = r.bar;
    p.extension->posted = r.posted;
    p.extension->order = r.order;
    m_blocked = true;  // before the call: it may answer from within
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    if (send_forward(bar_out, p, phase) != tlm::TLM_ACCEPTED)
        m_blocked = false;
}

tlm::tlm_sync_enum replay_host::bar_response(tlm::tlm_generic_payload& trans,
                                             tlm::tlm_phase& phase) {
    auto& p = static_cast<bar_payload&>(trans);
    if (phase != tlm::BEGIN_RESP) {
        m_blocked = false;
        m_script->accepted(p.extension->order);
        return tlm::TLM_ACCEPTED;
    }
    const bool read = p.is_read();
    const std::uint64_t order = p.extension->order;
    const std::uint64_t value = read ? p.value : 0;
    p.release();
    m_script->answered(read, order, value);
    return tlm::TLM_COMPLETED;
}

void replay_host::control(const record& r) {
    switch (r.kind) {
        case record_kind::ATTACH:
            control_out->set_attached(true);
            break;
        case record_kind::DETACH:
            control_out->set_attached(false);
            break;
        case record_kind::RESET:
            control_out->reset();
            break;
        case record_kind::BUS_MASTER:
            control_out->set_bus_master(r.flag);
            break;
        default:
            break;
    }
}

// -- DMA --------------------------------------------------------------------

tlm::tlm_sync_enum replay_host::dma(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_COMPLETED;
    const auto* ext = trans.get_extension<dma_extension>();
    replay_script::dma_access a;
    a.order = ++m_dma_order;
    a.write = trans.is_write();
    a.channel = ext ? ext->channel : std::uint8_t{0};
    a.context = ext ? ext->context : std::uint16_t{0xffff};
    a.address = trans.get_address();
    a.length = trans.get_data_length();
    a.data = trans.get_data_ptr();
    switch (m_script->dma(a)) {
        case replay_script::dma_answer::OK:
            trans.set_response_status(tlm::TLM_OK_RESPONSE);
            break;
        case replay_script::dma_answer::REFUSED:
            trans.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
            break;
        case replay_script::dma_answer::LATER:
            trans.acquire();
            m_held.push_back({a.order, &trans, true});
            phase = tlm::END_REQ;
            return tlm::TLM_UPDATED;
        case replay_script::dma_answer::NOT_YET:
            trans.acquire();
            m_held.push_back({a.order, &trans, false});
            return tlm::TLM_ACCEPTED;
    }
    phase = tlm::BEGIN_RESP;
    return tlm::TLM_UPDATED;
}

bool replay_host::accept_dma(std::uint64_t order) {
    const auto held = std::find_if(
        m_held.begin(), m_held.end(),
        [=](const held_dma& h) { return h.order == order && !h.accepted; });
    if (held == m_held.end())
        return false;
    held->accepted = true;
    send_backward(dma_in, *held->trans, tlm::END_REQ);
    return true;
}

bool replay_host::answer_dma(std::uint64_t order, bool ok,
                             const std::uint8_t* data, std::uint32_t size) {
    const auto held =
        std::find_if(m_held.begin(), m_held.end(),
                     [=](const held_dma& h) { return h.order == order; });
    if (held == m_held.end())
        return false;
    tlm::tlm_generic_payload& trans = *held->trans;
    m_held.erase(held);
    if (ok && trans.is_read() && data)
        std::memcpy(trans.get_data_ptr(), data,
                    std::min(size, trans.get_data_length()));
    trans.set_response_status(ok ? tlm::TLM_OK_RESPONSE
                                 : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    send_backward(dma_in, trans, tlm::BEGIN_RESP);
    trans.release();
    return true;
}

}  // namespace prawn
