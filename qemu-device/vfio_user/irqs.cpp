// SPDX-License-Identifier: Apache-2.0
//
// State and delivery of interrupts. What the client says is in set_irqs.cpp.

#include "qemu-device/vfio_user/irqs.h"

#include <algorithm>
#include <cstring>

namespace prawn {
namespace vfio_user {

namespace {

constexpr std::size_t ENTRY_SIZE = 16;
constexpr std::size_t ENTRY_CONTROL = 12;
constexpr std::uint8_t ENTRY_MASKED = 1;

}  // namespace

irqs::irqs(const identity& id, watch_function watch) :
    m_watch(std::move(watch)),
    m_intx(id.intx ? 1 : 0),
    m_msix(id.msix_vectors),
    m_err(1),
    m_req(1),
    m_table(ENTRY_SIZE * id.msix_vectors),
    m_pending((id.msix_vectors + 63u) / 64u) {
    reset();
}

void irqs::trigger_msix(unsigned vector) {
    const std::lock_guard<std::mutex> hold(m_lock);
    if (vector >= m_msix.size() || !m_msix_enabled)
        return;
    if (deliverable(vector))
        signal(m_msix[vector].trigger, true);
    else
        m_pending[vector / 64] |= std::uint64_t{1} << (vector % 64);
}

void irqs::set_intx(bool level) {
    const std::lock_guard<std::mutex> hold(m_lock);
    m_intx_level = level;
    evaluate_intx();
}

bool irqs::intx_level() const {
    const std::lock_guard<std::mutex> hold(m_lock);
    return m_intx_level;
}

std::uint64_t irqs::signalled() const {
    const std::lock_guard<std::mutex> hold(m_lock);
    return m_signalled;
}

void irqs::set_msix_control(bool enabled, bool function_mask) {
    const std::lock_guard<std::mutex> hold(m_lock);
    m_msix_enabled = enabled;
    m_function_mask = function_mask;
    if (enabled) {
        deliver_pending();
    } else {
        for (std::uint64_t& bits : m_pending)
            bits = 0;
        evaluate_intx();
    }
}

void irqs::set_intx_disabled(bool disabled) {
    const std::lock_guard<std::mutex> hold(m_lock);
    m_intx_disabled = disabled;
    evaluate_intx();
}

void irqs::on_intx_unmask_event() {
    const std::lock_guard<std::mutex> hold(m_lock);
    if (m_intx.empty() || !m_intx[0].unmask)
        return;
    if (!take_event(m_intx[0].unmask.get()))
        return;  // the client has taken it back
    m_intx[0].client_masked = false;
    evaluate_intx();
}

void irqs::table_read(std::size_t offset, void* data, std::size_t size) const {
    const std::lock_guard<std::mutex> hold(m_lock);
    std::memcpy(data, &m_table[offset], size);
}

void irqs::table_write(std::size_t offset, const void* data, std::size_t size) {
    const std::lock_guard<std::mutex> hold(m_lock);
    const std::size_t vector = offset / ENTRY_SIZE;
    line& l = m_msix[vector];
    const bool was_masked = table_masks(vector);
    std::memcpy(&m_table[offset], data, size);
    if (offset % ENTRY_SIZE + size <= ENTRY_CONTROL)
        return;
    // All but the mask bit of the vector control word is reserved.
    std::uint8_t* const control = &m_table[vector * ENTRY_SIZE + ENTRY_CONTROL];
    control[0] &= ENTRY_MASKED;
    std::memset(control + 1, 0, 3);
    l.table_written = true;
    const bool is_masked = table_masks(vector);
    if (is_masked != was_masked)
        signal(is_masked ? l.mask : l.unmask, false);
    deliver_pending(vector);
}

void irqs::pba_read(std::size_t offset, void* data, std::size_t size) const {
    const std::lock_guard<std::mutex> hold(m_lock);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(m_pending.data());
    std::memcpy(data, bytes + offset, size);
}

void irqs::reset() {
    const std::lock_guard<std::mutex> hold(m_lock);
    m_msix_enabled = false;
    m_function_mask = false;
    m_intx_disabled = false;
    m_intx_level = false;
    for (std::uint64_t& bits : m_pending)
        bits = 0;
    std::fill(m_table.begin(), m_table.end(), std::uint8_t{0});
    for (std::size_t i = 0; i < m_msix.size(); i++) {
        m_table[i * ENTRY_SIZE + ENTRY_CONTROL] = ENTRY_MASKED;
        m_msix[i].table_written = false;
        m_msix[i].client_masked = false;
    }
    for (line& l : m_intx)
        l.client_masked = false;
}

void irqs::release() {
    reset();
    const std::lock_guard<std::mutex> hold(m_lock);
    for (std::uint32_t index = 0; index < protocol::IRQ_COUNT; index++)
        disable(index);
}

// Drops every descriptor of one type.
void irqs::disable(std::uint32_t index) {
    std::vector<line>* const all = lines(index);
    if (all == nullptr)
        return;
    for (line& l : *all) {
        l.trigger.reset();
        l.mask.reset();
        set_unmask_fd(index, l, unique_fd());
        l.client_masked = false;
    }
}

void irqs::set_unmask_fd(std::uint32_t index, line& l, unique_fd fd) {
    const bool watched = index == protocol::IRQ_INTX;
    if (watched && l.unmask)
        m_watch(l.unmask.get(), false);
    l.unmask = std::move(fd);
    if (watched && l.unmask)
        m_watch(l.unmask.get(), true);
}

bool irqs::table_masks(std::size_t vector) const {
    return m_msix[vector].table_written &&
           m_table[vector * ENTRY_SIZE + ENTRY_CONTROL] == ENTRY_MASKED;
}

bool irqs::deliverable(std::size_t vector) const {
    const line& l = m_msix[vector];
    return m_msix_enabled && !m_function_mask && !l.client_masked &&
           l.trigger && !table_masks(vector);
}

void irqs::deliver_pending() {
    for (std::size_t i = 0; i < m_msix.size(); i++)
        deliver_pending(i);
}

void irqs::deliver_pending(std::size_t vector) {
    const std::uint64_t bit = std::uint64_t{1} << (vector % 64);
    std::uint64_t& bits = m_pending[vector / 64];
    if ((bits & bit) == 0 || !deliverable(vector))
        return;
    bits &= ~bit;
    signal(m_msix[vector].trigger, true);
}

void irqs::evaluate_intx() {
    if (m_intx.empty())
        return;
    line& l = m_intx[0];
    if (!m_intx_level || m_intx_disabled || m_msix_enabled || l.client_masked ||
        !l.trigger)
        return;
    l.client_masked = true;
    signal(l.trigger, true);
    signal(l.mask, false);
}

// A full counter means that the client has yet to see an earlier event.
void irqs::signal(const unique_fd& fd, bool is_interrupt) {
    if (!fd)
        return;
    if (m_events->raise(fd.get()) && is_interrupt)
        m_signalled++;
}

}  // namespace vfio_user
}  // namespace prawn
