// SPDX-License-Identifier: Apache-2.0
#include "host/memory_host.h"

#include <algorithm>
#include <cstring>

namespace prawn {

namespace {
constexpr std::uint64_t PAGE = 4096;
}

memory_host::bar_payload* memory_host::payload_pool::get() {
    if (unused.empty()) {
        all.push_back(std::make_unique<bar_payload>(this));
        bar_payload* p = all.back().get();
        p->extension = new bar_extension;
        p->set_extension(p->extension);
        unused.push_back(p);
    }
    bar_payload* p = unused.back();
    unused.pop_back();
    p->acquire();
    return p;
}

void memory_host::payload_pool::free(tlm::tlm_generic_payload* trans) {
    unused.push_back(static_cast<bar_payload*>(trans));
}

memory_host::memory_host(sc_core::sc_module_name name,
                         const memory_host_config& config) :
    sc_core::sc_module(name),
    m_config(config),
    m_region(config.size),
    m_dma_end(*this, &memory_host::dma, &memory_host::peek),
    m_bar_end(*this, &memory_host::bar_response),
    m_interrupted("interrupted") {
    dma_in.bind(m_dma_end);
    bar_out.bind(m_bar_end);
    interrupt_in.bind(*this);
}

memory_host::~memory_host() = default;

void memory_host::map(std::uint64_t address, std::uint64_t size) {
    for (std::uint64_t a = address / PAGE; a < (address + size) / PAGE; a++) {
        std::unique_ptr<page>& p = m_pages[a];
        if (!p)
            p = std::make_unique<page>();
    }
    if (map_out.size() > 0)
        map_out->mapped(address, size);
}

void memory_host::unmap(std::uint64_t address, std::uint64_t size) {
    for (std::uint64_t a = address / PAGE; a < (address + size) / PAGE; a++)
        m_pages.erase(a);
    if (map_out.size() > 0)
        map_out->unmapped(address, size);
}

std::uint8_t* memory_host::pointer(std::uint64_t address) {
    const std::uint64_t offset = address - m_config.base;
    if (offset < m_region.size())
        return m_region.data() + offset;
    const auto found = m_pages.find(address / PAGE);
    return found == m_pages.end() ? nullptr
                                  : found->second->data() + address % PAGE;
}

// All of it in the piece that is there from the start, or null.
std::uint8_t* memory_host::region(std::uint64_t address, std::size_t size) {
    const std::uint64_t offset = address - m_config.base;
    return size <= m_region.size() && offset <= m_region.size() - size
               ? m_region.data() + offset
               : nullptr;
}

bool memory_host::read_memory(std::uint64_t address, void* data,
                              std::size_t size) {
    if (const std::uint8_t* from = region(address, size)) {
        std::memcpy(data, from, size);
        return true;
    }
    for (std::uint64_t a = address & ~(PAGE - 1); a < address + size; a += PAGE)
        if (!pointer(a))
            return false;
    auto* to = static_cast<std::uint8_t*>(data);
    while (size > 0) {
        const std::size_t n =
            std::min<std::size_t>(size, PAGE - address % PAGE);
        std::memcpy(to, pointer(address), n);
        to += n;
        address += n;
        size -= n;
    }
    return true;
}

bool memory_host::write_memory(std::uint64_t address, const void* data,
                               std::size_t size) {
    if (std::uint8_t* to = region(address, size)) {
        std::memcpy(to, data, size);
        return true;
    }
    for (std::uint64_t a = address & ~(PAGE - 1); a < address + size; a += PAGE)
        if (!pointer(a))
            return false;
    const auto* from = static_cast<const std::uint8_t*>(data);
    while (size > 0) {
        const std::size_t n =
            std::min<std::size_t>(size, PAGE - address % PAGE);
        std::memcpy(pointer(address), from, n);
        from += n;
        address += n;
        size -= n;
    }
    return true;
}

void memory_host::set_bus_master(bool on) {
    m_bus_master = on;
    if (control_out.size() > 0)
        control_out->set_bus_master(on);
}

void memory_host::set_attached(bool on) {
    if (!on) {
        m_bus_master = false;
        drop_bar_queue();
    }
    if (control_out.size() > 0)
        control_out->set_attached(on);
}

void memory_host::reset_card() {
    m_bus_master = false;
    drop_bar_queue();
    if (control_out.size() > 0)
        control_out->reset();
}

// --- DMA

tlm::tlm_sync_enum memory_host::dma(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_ACCEPTED;
    if (m_hold == hold::NOTHING) {
        carry_out(trans);
        send_backward(dma_in, trans, tlm::BEGIN_RESP);
        phase = tlm::END_REQ;
        return tlm::TLM_UPDATED;
    }
    if (m_held.size() >= m_hold_limit) {
        m_door = &trans;
        return tlm::TLM_ACCEPTED;
    }
    if (m_hold == hold::BEFORE_ANSWER)
        carry_out(trans);
    m_held.push_back(&trans);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

unsigned memory_host::peek(tlm::tlm_generic_payload& trans) {
    const bool ok = trans.is_read() &&
                    read_memory(trans.get_address(), trans.get_data_ptr(),
                                trans.get_data_length());
    return ok ? trans.get_data_length() : 0;
}

void memory_host::carry_out(tlm::tlm_generic_payload& trans) {
    bool ok = m_bus_master;
    if (ok && trans.is_write())
        ok = write_memory(trans.get_address(), trans.get_data_ptr(),
                          trans.get_data_length());
    else if (ok)
        ok = read_memory(trans.get_address(), trans.get_data_ptr(),
                         trans.get_data_length());
    trans.set_response_status(ok ? tlm::TLM_OK_RESPONSE
                                 : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    if (m_record) {
        const auto* ext = trans.get_extension<dma_extension>();
        m_accesses.push_back({sc_core::sc_time_stamp(), trans.is_write(), ok,
                              ext ? ext->context : std::uint16_t{0xffff},
                              trans.get_address(), trans.get_data_length()});
    }
}

void memory_host::set_hold(hold what, std::size_t limit) {
    m_hold = what;
    m_hold_limit = limit;
    if (what == hold::NOTHING)
        release(m_held.size() + 1);
}

void memory_host::release(std::size_t count) {
    for (; count > 0 && (!m_held.empty() || m_door); count--) {
        if (!m_held.empty()) {
            tlm::tlm_generic_payload& trans = *m_held.pop_front();
            if (m_hold != hold::BEFORE_ANSWER)
                carry_out(trans);
            send_backward(dma_in, trans, tlm::BEGIN_RESP);
        }
        if (m_door) {
            tlm::tlm_generic_payload& trans = *m_door;
            m_door = nullptr;
            if (m_hold == hold::BEFORE_ANSWER)
                carry_out(trans);
            m_held.push_back(&trans);
            send_backward(dma_in, trans, tlm::END_REQ);
        }
    }
}

// --- BAR accesses

void memory_host::read(unsigned bar, std::uint64_t offset, unsigned size,
                       bar_done done) {
    bar_payload& p = *m_payloads.get();
    p.value = 0;
    p.done = std::move(done);
    p.set_command(tlm::TLM_READ_COMMAND);
    p.set_address(offset);
    p.set_data_length(size);
    p.extension->bar = static_cast<std::uint8_t>(bar);
    p.extension->posted = false;
    access_bar(p);
}

void memory_host::write(unsigned bar, std::uint64_t offset, unsigned size,
                        std::uint64_t value, bool posted, bar_done done) {
    bar_payload& p = *m_payloads.get();
    p.value = value;
    p.done = std::move(done);
    p.set_command(tlm::TLM_WRITE_COMMAND);
    p.set_address(offset);
    p.set_data_length(size);
    p.extension->bar = static_cast<std::uint8_t>(bar);
    p.extension->posted = posted;
    access_bar(p);
}

void memory_host::access_bar(bar_payload& p) {
    p.set_data_ptr(reinterpret_cast<unsigned char*>(&p.value));
    p.set_streaming_width(p.get_data_length());
    p.set_byte_enable_ptr(nullptr);
    p.set_dmi_allowed(false);
    p.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    p.extension->order = ++m_order;
    m_bar_under_way++;
    m_bar_queue.push_back(&p);
    send_bar();
}

void memory_host::send_bar() {
    while (!m_bar_queue.empty() && !m_bar_blocked) {
        bar_payload& p = *m_bar_queue.pop_front();
        m_bar_blocked = true;  // before the call: it may answer from within
        tlm::tlm_phase phase = tlm::BEGIN_REQ;
        if (send_forward(bar_out, p, phase) != tlm::TLM_ACCEPTED)
            m_bar_blocked = false;
    }
}

tlm::tlm_sync_enum memory_host::bar_response(tlm::tlm_generic_payload& trans,
                                             tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_RESP) {
        m_bar_blocked = false;
        send_bar();
        return tlm::TLM_ACCEPTED;
    }
    finish_bar(static_cast<bar_payload&>(trans));
    return tlm::TLM_COMPLETED;
}

// What the bus has not taken yet will not be done.
void memory_host::drop_bar_queue() {
    for (std::size_t n = m_bar_queue.size(); n > 0; n--) {
        bar_payload& p = *m_bar_queue.pop_front();
        p.value = 0;
        finish_bar(p);
    }
}

void memory_host::finish_bar(bar_payload& p) {
    const std::uint64_t value = p.is_read() ? p.value : 0;
    const bar_done done = std::move(p.done);
    p.done = nullptr;
    m_bar_under_way--;
    p.release();
    if (done)
        done(value);
}

std::uint64_t memory_host::read(unsigned bar, std::uint64_t offset,
                                unsigned size) {
    sc_core::sc_event answered;
    std::uint64_t result = 0;
    read(bar, offset, size, [&](std::uint64_t value) {
        result = value;
        answered.notify(sc_core::SC_ZERO_TIME);
    });
    sc_core::wait(answered);
    return result;
}

void memory_host::write_and_wait(unsigned bar, std::uint64_t offset,
                                 unsigned size, std::uint64_t value) {
    sc_core::sc_event answered;
    write(bar, offset, size, value, false,
          [&](std::uint64_t) { answered.notify(sc_core::SC_ZERO_TIME); });
    sc_core::wait(answered);
}

// --- Interrupts

void memory_host::msix(unsigned vector) {
    m_interrupts.push_back({sc_core::sc_time_stamp(), vector});
    m_interrupted.notify(sc_core::SC_ZERO_TIME);
}

void memory_host::intx(bool level) {
    m_intx = level;
    m_interrupted.notify(sc_core::SC_ZERO_TIME);
}

}  // namespace prawn
