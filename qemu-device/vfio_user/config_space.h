// SPDX-License-Identifier: Apache-2.0
//
// The PCI configuration space of one card: type 0 header, PCI Express
// endpoint capability, MSI-X capability.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_CONFIG_SPACE_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_CONFIG_SPACE_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "qemu-device/vfio_user/device.h"

namespace prawn {
namespace vfio_user {

class config_space
{
public:
    static constexpr std::size_t SIZE = 4096;
    static constexpr std::size_t PCIE_CAPABILITY = 0x40;
    static constexpr std::size_t MSIX_CAPABILITY = 0x80;

    explicit config_space(const identity& id);

    /// The range must lie inside SIZE.
    void read(std::size_t offset, void* data, std::size_t size,
              bool intx_pending) const;

    /// Writes what is writable and ignores the rest, as hardware does. True
    /// if the guest asked for a function level reset; the caller does it.
    bool write(std::size_t offset, const void* data, std::size_t size);

    void reset();

    bool bus_master() const;
    bool intx_disabled() const;
    bool msix_enabled() const;
    bool msix_function_mask() const;

private:
    void put(std::size_t offset, unsigned size, std::uint64_t value,
             std::uint64_t writable);
    void put_bars(const identity& id);
    void put_pcie(const identity& id, std::uint8_t next);
    void put_msix(const identity& id);
    std::uint16_t word(std::size_t offset) const;

    std::array<std::uint8_t, SIZE> m_initial{};
    std::array<std::uint8_t, SIZE> m_writable{};
    std::array<std::uint8_t, SIZE> m_value{};
    bool m_has_msix;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
