// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/config_space.h"

#include <linux/pci_regs.h>

#include <cstring>

namespace prawn {
namespace vfio_user {

namespace {

constexpr std::uint16_t COMMAND_WRITABLE =
    PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE;

// Everything but the reset bit, which acts and reads as zero.
constexpr std::uint16_t DEVCTL_WRITABLE = 0x7fff;
// Relaxed ordering, no snoop, 512-byte read requests: the values that the
// PCI Express specification gives a function after reset.
constexpr std::uint16_t DEVCTL_INITIAL = 0x2810;

constexpr std::size_t DEVCTL = config_space::PCIE_CAPABILITY + PCI_EXP_DEVCTL;
constexpr std::size_t MSIX_FLAGS =
    config_space::MSIX_CAPABILITY + PCI_MSIX_FLAGS;

}  // namespace

config_space::config_space(const identity& id) :
    m_has_msix(id.msix_vectors != 0) {
    put(PCI_VENDOR_ID, 2, id.vendor_id, 0);
    put(PCI_DEVICE_ID, 2, id.device_id, 0);
    put(PCI_COMMAND, 2, 0, COMMAND_WRITABLE);
    put(PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
    put(PCI_REVISION_ID, 1, id.revision, 0);
    put(PCI_CLASS_PROG, 1, id.class_code & 0xff, 0);
    put(PCI_CLASS_DEVICE, 2, (id.class_code >> 8) & 0xffff, 0);
    put(PCI_CACHE_LINE_SIZE, 1, 0, 0xff);
    put(PCI_HEADER_TYPE, 1, PCI_HEADER_TYPE_NORMAL, 0);
    put_bars(id);
    put(PCI_SUBSYSTEM_VENDOR_ID, 2, id.subsystem_vendor_id, 0);
    put(PCI_SUBSYSTEM_ID, 2, id.subsystem_id, 0);
    put(PCI_CAPABILITY_LIST, 1, PCIE_CAPABILITY, 0);
    put(PCI_INTERRUPT_LINE, 1, 0, 0xff);
    put(PCI_INTERRUPT_PIN, 1, id.intx ? 1 : 0, 0);
    put_pcie(id, m_has_msix ? MSIX_CAPABILITY : 0);
    if (m_has_msix)
        put_msix(id);
    reset();
}

void config_space::put(std::size_t offset, unsigned size, std::uint64_t value,
                       std::uint64_t writable) {
    std::memcpy(&m_initial[offset], &value, size);
    std::memcpy(&m_writable[offset], &writable, size);
}

// The size of a BAR shows in the address bits that cannot be set.
void config_space::put_bars(const identity& id) {
    for (std::size_t i = 0; i < id.bars.size(); i++) {
        const bar_info& bar = id.bars[i];
        if (bar.size == 0)
            continue;
        std::uint32_t flags = PCI_BASE_ADDRESS_SPACE_MEMORY;
        if (bar.prefetchable)
            flags |= PCI_BASE_ADDRESS_MEM_PREFETCH;
        if (bar.is_64bit)
            flags |= PCI_BASE_ADDRESS_MEM_TYPE_64;
        const std::uint64_t address_bits = ~(bar.size - 1);
        put(PCI_BASE_ADDRESS_0 + 4 * i, bar.is_64bit ? 8 : 4, flags,
            address_bits);
        if (bar.is_64bit)
            i++;
    }
}

void config_space::put_pcie(const identity& id, std::uint8_t next) {
    const std::size_t at = PCIE_CAPABILITY;
    const std::uint32_t link = id.link_speed | (id.link_width << 4u);
    put(at + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP, 0);
    put(at + PCI_CAP_LIST_NEXT, 1, next, 0);
    put(at + PCI_EXP_FLAGS, 2, 2 | (PCI_EXP_TYPE_ENDPOINT << 4), 0);
    // 256-byte payloads, role-based error reporting, function level reset.
    put(at + PCI_EXP_DEVCAP, 4, 0x1 | PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR,
        0);
    put(at + PCI_EXP_DEVCTL, 2, DEVCTL_INITIAL, DEVCTL_WRITABLE);
    put(at + PCI_EXP_LNKCAP, 4, link, 0);
    put(at + PCI_EXP_LNKCTL, 2, 0, 0x00fb);
    put(at + PCI_EXP_LNKSTA, 2, link, 0);
    put(at + PCI_EXP_DEVCTL2, 2, 0, 0x001f);
    const std::uint32_t speeds = (1u << (id.link_speed + 1u)) - 2u;
    put(at + PCI_EXP_LNKCAP2, 4, speeds, 0);
    put(at + PCI_EXP_LNKCTL2, 2, id.link_speed, 0x000f);
}

void config_space::put_msix(const identity& id) {
    const std::size_t at = MSIX_CAPABILITY;
    put(at + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_MSIX, 0);
    put(at + PCI_CAP_LIST_NEXT, 1, 0, 0);
    put(at + PCI_MSIX_FLAGS, 2, id.msix_vectors - 1u,
        PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
    put(at + PCI_MSIX_TABLE, 4, id.msix_table_offset | id.msix_table_bar, 0);
    put(at + PCI_MSIX_PBA, 4, id.msix_pba_offset | id.msix_pba_bar, 0);
}

void config_space::read(std::size_t offset, void* data, std::size_t size,
                        bool intx_pending) const {
    std::memcpy(data, &m_value[offset], size);
    if (intx_pending && offset <= PCI_STATUS && offset + size > PCI_STATUS) {
        auto* bytes = static_cast<std::uint8_t*>(data);
        bytes[PCI_STATUS - offset] |= PCI_STATUS_INTERRUPT;
    }
}

bool config_space::write(std::size_t offset, const void* data,
                         std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; i++) {
        const std::uint8_t mask = m_writable[offset + i];
        std::uint8_t& value = m_value[offset + i];
        value = static_cast<std::uint8_t>((value & ~mask) | (bytes[i] & mask));
    }
    const std::size_t reset_byte = DEVCTL + 1;
    return offset <= reset_byte && offset + size > reset_byte &&
           (bytes[reset_byte - offset] & (PCI_EXP_DEVCTL_BCR_FLR >> 8)) != 0;
}

void config_space::reset() {
    m_value = m_initial;
}

std::uint16_t config_space::word(std::size_t offset) const {
    std::uint16_t value;
    std::memcpy(&value, &m_value[offset], sizeof(value));
    return value;
}

bool config_space::bus_master() const {
    return (word(PCI_COMMAND) & PCI_COMMAND_MASTER) != 0;
}

bool config_space::intx_disabled() const {
    return (word(PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE) != 0;
}

bool config_space::msix_enabled() const {
    return m_has_msix && (word(MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE) != 0;
}

bool config_space::msix_function_mask() const {
    return (word(MSIX_FLAGS) & PCI_MSIX_FLAGS_MASKALL) != 0;
}

}  // namespace vfio_user
}  // namespace prawn
