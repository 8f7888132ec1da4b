// SPDX-License-Identifier: Apache-2.0
//
// The vfio-user protocol as it is on the wire: numbers and layouts, nothing
// else. Everything is in host byte order (the peers share a machine).

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_PROTOCOL_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_PROTOCOL_H

#include <cstddef>
#include <cstdint>

namespace prawn {
namespace vfio_user {
namespace protocol {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "PCI data is little-endian and is passed through unconverted");

constexpr std::uint16_t VERSION_MAJOR = 0;
constexpr std::uint16_t VERSION_MINOR = 0;

enum command : std::uint16_t {
    VERSION = 1,
    DMA_MAP = 2,
    DMA_UNMAP = 3,
    DEVICE_GET_INFO = 4,
    DEVICE_GET_REGION_INFO = 5,
    DEVICE_GET_REGION_IO_FDS = 6,
    DEVICE_GET_IRQ_INFO = 7,
    DEVICE_SET_IRQS = 8,
    REGION_READ = 9,
    REGION_WRITE = 10,
    DMA_READ = 11,   // server to client
    DMA_WRITE = 12,  // server to client
    DEVICE_RESET = 13,
    USER_DIRTY_PAGES = 14,  // gone from the specification, still reserved
    REGION_WRITE_MULTI = 15,
    DEVICE_FEATURE = 16,
    MIG_DATA_READ = 17,
    MIG_DATA_WRITE = 18,
};

// Header flags.
constexpr std::uint32_t TYPE_MASK = 0xf;
constexpr std::uint32_t TYPE_COMMAND = 0x0;
constexpr std::uint32_t TYPE_REPLY = 0x1;
constexpr std::uint32_t FLAG_NO_REPLY = 0x10;
constexpr std::uint32_t FLAG_ERROR = 0x20;

// Limits that the peers announce; the values without an announcement.
constexpr std::uint32_t DEFAULT_MAX_FDS = 1;
constexpr std::uint32_t DEFAULT_MAX_DATA_XFER = 1048576;
constexpr std::uint32_t DEFAULT_MAX_DMA_MAPS = 65535;
constexpr std::uint32_t PAGE_SIZE = 4096;
// QEMU's client refuses more than 16.
constexpr std::uint32_t OFFERED_MAX_FDS = 16;
// QEMU packs 200 at most; this bounds what one message does to the device.
constexpr std::uint64_t MAX_MULTI_WRITES = 1024;

// Regions of a PCI device.
constexpr std::uint32_t REGION_ROM = 6;
constexpr std::uint32_t REGION_CONFIG = 7;
constexpr std::uint32_t REGION_VGA = 8;
constexpr std::uint32_t REGION_COUNT = 9;

// Interrupt types of a PCI device.
constexpr std::uint32_t IRQ_INTX = 0;
constexpr std::uint32_t IRQ_MSI = 1;
constexpr std::uint32_t IRQ_MSIX = 2;
constexpr std::uint32_t IRQ_ERR = 3;
constexpr std::uint32_t IRQ_REQ = 4;
constexpr std::uint32_t IRQ_COUNT = 5;

constexpr std::uint32_t DEVICE_FLAG_RESET = 0x1;
constexpr std::uint32_t DEVICE_FLAG_PCI = 0x2;

constexpr std::uint32_t REGION_FLAG_READ = 0x1;
constexpr std::uint32_t REGION_FLAG_WRITE = 0x2;

constexpr std::uint32_t IRQ_INFO_EVENTFD = 0x1;
constexpr std::uint32_t IRQ_INFO_MASKABLE = 0x2;
constexpr std::uint32_t IRQ_INFO_AUTOMASKED = 0x4;

constexpr std::uint32_t IRQ_SET_DATA_NONE = 0x01;
constexpr std::uint32_t IRQ_SET_DATA_BOOL = 0x02;
constexpr std::uint32_t IRQ_SET_DATA_EVENTFD = 0x04;
constexpr std::uint32_t IRQ_SET_DATA_MASK = 0x07;
constexpr std::uint32_t IRQ_SET_ACTION_MASK = 0x08;
constexpr std::uint32_t IRQ_SET_ACTION_UNMASK = 0x10;
constexpr std::uint32_t IRQ_SET_ACTION_TRIGGER = 0x20;
constexpr std::uint32_t IRQ_SET_ACTIONS = 0x38;

constexpr std::uint32_t DMA_FLAG_READ = 0x1;
constexpr std::uint32_t DMA_FLAG_WRITE = 0x2;
constexpr std::uint32_t DMA_FLAG_MMAP = 0x4;
constexpr std::uint32_t DMA_FLAG_FILE_IO = 0x8;
constexpr std::uint32_t DMA_FLAGS = 0xf;

constexpr std::uint32_t DMA_UNMAP_FLAG_DIRTY = 0x1;
constexpr std::uint32_t DMA_UNMAP_FLAG_ALL = 0x2;

// All structures below are naturally aligned; the asserts keep it so.

struct header {
    std::uint16_t id;
    std::uint16_t command;
    std::uint32_t size;  // of the whole message
    std::uint32_t flags;
    std::uint32_t error;
};
static_assert(sizeof(header) == 16, "wire layout");

struct version {
    std::uint16_t major;
    std::uint16_t minor;
    // JSON text and NUL follow
};
static_assert(sizeof(version) == 4, "wire layout");

struct dma_map {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint64_t offset;
    std::uint64_t address;
    std::uint64_t size;
};
static_assert(sizeof(dma_map) == 32, "wire layout");

struct dma_unmap {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint64_t address;
    std::uint64_t size;
};
static_assert(sizeof(dma_unmap) == 24, "wire layout");

struct device_info {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t num_regions;
    std::uint32_t num_irqs;
};
static_assert(sizeof(device_info) == 16, "wire layout");

struct region_info {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t cap_offset;
    std::uint64_t size;
    std::uint64_t offset;
};
static_assert(sizeof(region_info) == 32, "wire layout");

struct region_io_fds {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t count;
};
static_assert(sizeof(region_io_fds) == 16, "wire layout");

struct irq_info {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t count;
};
static_assert(sizeof(irq_info) == 16, "wire layout");

struct irq_set {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t start;
    std::uint32_t count;
    // booleans (a byte each) or descriptor numbers (4 bytes each) may follow
};
static_assert(sizeof(irq_set) == 20, "wire layout");

struct region_access {
    std::uint64_t offset;
    std::uint32_t region;
    std::uint32_t count;
    // data follows
};
static_assert(sizeof(region_access) == 16, "wire layout");

struct write_one {
    std::uint64_t offset;
    std::uint32_t region;
    std::uint32_t count;
    std::uint8_t data[8];
};
static_assert(sizeof(write_one) == 24, "wire layout");

// DMA_READ and DMA_WRITE: address and count, then data. QEMU's client was
// first released with a 32-bit count and the data at once behind it, in a
// message as long as this one (4 bytes at its end mean nothing); 11.1.3 has
// what the specification says.
struct dma_transfer {
    std::uint64_t address;
    std::uint64_t count;
};
static_assert(sizeof(dma_transfer) == 16, "wire layout");
constexpr std::size_t DMA_DATA = 16;  // after the header
constexpr std::size_t DMA_DATA_COUNT32 = 12;

}  // namespace protocol
}  // namespace vfio_user
}  // namespace prawn

#endif
