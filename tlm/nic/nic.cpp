// SPDX-License-Identifier: Apache-2.0
// Reset and the registers of the whole; nic_wiring.cpp connects the blocks.
#include "nic/nic.h"

namespace prawn {

std::vector<block*> nic_blocks::all() const {
    return {csr.get(),          admin_queue.get(),   command_queue.get(),
            utlb.get(),         dma_engine.get(),    opt.get(),
            packetizer.get(),   outgoing_fifo.get(), reliable.get(),
            link_mac.get(),     depacketizer.get(),  ipt.get(),
            incoming_dma.get(), notifier.get(),      ptp_clock.get()};
}

nic::~nic() = default;

// Every block at the same instant; then the peers are told, if they had been
// told that this node lives. Any instant is safe: whatever the blocks have at
// the bus or at each other is of an earlier life and ignored.
void nic::reset() {
    const bool was_enabled = m_enabled;
    m_enabled = false;
    m_resets++;
    for (block* b : m_blocks.all())
        b->reset();
    for (const auto& reset_twin : m_twin_resets)
        reset_twin();
    if (m_checker)
        m_checker->reset();
    m_rings.fill(kernel_ring());
    m_events.emit(event_kind::RESET, {}, epoch());
    if (was_enabled)
        m_blocks.reliable->say_bye();
}

void nic::set_attached(bool on) {
    if (!on)
        reset();
}

void nic::enable_card(bool on) {
    m_enabled = on;
    m_blocks.depacketizer->set_enabled(on);
    if (on)
        m_blocks.reliable->say_hello();
    else
        m_blocks.reliable->say_bye();
}

std::uint64_t nic::features() const {
    std::uint64_t value =
        PRAWN_FIELD_PUT(FEATURES_UTLB_MODES,
                        std::uint64_t{1} << PRAWN_UTLB_MODE_HIERARCHICAL) |
        PRAWN_FEATURES_PTP_MASK;
    if (m_checker)
        value |= PRAWN_FEATURES_CHECKER_MASK;
    return value;
}

std::uint32_t nic::status() const {
    std::uint32_t value = PRAWN_STATUS_LINK_UP_MASK;
    if (m_bus_master)
        value |= PRAWN_STATUS_BUS_MASTER_MASK;
    if (m_blocks.admin_queue->error())
        value |= PRAWN_STATUS_ADMIN_ERROR_MASK;
    if (m_checker && m_checker->failed())
        value |= PRAWN_STATUS_CHECK_FAILED_MASK;
    return value;
}

void nic::set_admin_ring(std::uint64_t base, unsigned log2) {
    grant_ring(ADMIN, base, log2, sizeof(prawn_admin_command), false);
    m_blocks.admin_queue->set_ring(base, log2);
}

void nic::set_ack_ring(std::uint64_t base, unsigned log2) {
    grant_ring(ACK, base, log2, sizeof(prawn_admin_ack), true);
    m_blocks.notifier->set_ack_ring(base, log2);
}

void nic::set_event_ring(std::uint64_t base, unsigned log2) {
    grant_ring(EVENT, base, log2, sizeof(prawn_kernel_event), true);
    m_blocks.notifier->set_event_ring(base, log2);
}

void nic::grant_ring(kernel_ring_id id, std::uint64_t base, unsigned log2,
                     std::size_t entry, bool write) {
    if (!m_checker)
        return;
    kernel_ring& ring = m_rings[id];
    if (ring.pages)
        m_checker->revoke(KERNEL_CONTEXT, ring.base, ring.pages);
    ring = kernel_ring();
    if (base % PRAWN_PAGE_SIZE || log2 < PRAWN_RING_LOG2_MIN ||
        log2 > PRAWN_RING_LOG2_MAX)
        return;  // not a ring (yet)
    const std::uint64_t bytes = std::uint64_t{entry} << log2;
    ring.base = base;
    ring.pages = (bytes + PRAWN_PAGE_SIZE - 1) / PRAWN_PAGE_SIZE;
    if (m_checker->grant(KERNEL_CONTEXT, ring.base, ring.pages, write) !=
        PRAWN_STATUS_OK)
        ring = kernel_ring();
}

void nic::check_failed() {
    unsigned cause = PRAWN_INT_CAUSE_CHECK_MASK;
    m_blocks.csr->cause_in().try_put(cause);
    interrupt_out->msix(PRAWN_VECTOR_KERNEL);
}

}  // namespace prawn
