// SPDX-License-Identifier: Apache-2.0
//
// Guest memory as the device sees it: regions of I/O addresses, mapped shared
// from the descriptors that the client sent, and checked copies to and from
// them. No copy on the way: DMA is one memcpy between model and guest.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_GUEST_MEMORY_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_GUEST_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace prawn {
namespace vfio_user {

enum class dma_status {
    OK,
    UNMAPPED,      ///< no region there, or the range wraps
    DENIED,        ///< the region does not permit this direction
    MESSAGE_ONLY,  ///< region without descriptor: only by DMA message
    FAULT          ///< the file behind the region is shorter than it said
};

const char* to_string(dma_status status);

enum class dma_access { READ, WRITE };

/// One DMA window of a client. Created and destroyed by the server; immutable
/// in between, so it may be shared between threads. The memory stays mapped
/// as long as anybody holds the shared pointer.
class memory_region
{
public:
    /// Maps `size` bytes of `fd` at `offset`; takes no ownership of `fd`.
    /// With fd < 0 the region is reachable by message only. On failure
    /// returns null and sets `error` to an errno value:
    /// EINVAL (empty, unaligned, wraps, file shorter than the range, not a
    /// mappable file), EACCES (descriptor lacks the permission), ENOMEM, ...
    static std::shared_ptr<memory_region> create(std::uint64_t iova,
                                                 std::uint64_t size,
                                                 bool readable, bool writable,
                                                 int fd, std::uint64_t offset,
                                                 int& error);

    ~memory_region();
    memory_region(const memory_region&) = delete;
    memory_region& operator=(const memory_region&) = delete;

    std::uint64_t iova() const { return m_iova; }
    std::uint64_t size() const { return m_size; }
    bool readable() const { return m_readable; }
    bool writable() const { return m_writable; }
    bool message_only() const { return m_host == nullptr; }

    /// First byte in this process, null if message_only().
    std::uint8_t* host() const { return m_host; }

private:
    memory_region(std::uint64_t iova, std::uint64_t size, bool readable,
                  bool writable, std::uint8_t* host);

    std::uint64_t m_iova;
    std::uint64_t m_size;
    bool m_readable;
    bool m_writable;
    std::uint8_t* m_host;
};

/// The map of one guest. Used by one thread, the model's; the device adds and
/// removes what dma_map and dma_unmap hand to it.
///
/// Nothing here throws or faults on bad addresses: a copy from or to a file
/// that has been truncated ends in FAULT for this access alone. That needs a
/// SIGBUS handler, which the first guest_memory installs; a SIGBUS that has
/// nothing to do with a copy goes on to whatever was installed before.
class guest_memory
{
public:
    guest_memory();
    ~guest_memory();
    guest_memory(const guest_memory&) = delete;
    guest_memory& operator=(const guest_memory&) = delete;

    /// False if the region overlaps one that is there already.
    bool add(std::shared_ptr<memory_region> region);

    /// False if it is not there.
    bool remove(const memory_region& region);
    void clear();
    std::size_t count() const { return m_regions.size(); }

    /// The first piece of a range: all of it, or up to the end of the region
    /// in which it starts. `host` is null unless status is OK.
    struct piece {
        dma_status status = dma_status::UNMAPPED;
        std::uint8_t* host = nullptr;
        std::uint64_t length = 0;
    };

    /// For those who split a range themselves (direct and by message). The
    /// pointer must only be used through guarded_copy, or with the knowledge
    /// that a truncated file then raises SIGBUS in this process.
    piece resolve(std::uint64_t iova, std::uint64_t length,
                  dma_access access) const;

    /// Whether the whole range may be accessed, without touching it.
    dma_status check(std::uint64_t iova, std::uint64_t length,
                     dma_access access) const;

    /// Copies the whole range or, if any part of it is not permitted,
    /// nothing. Only FAULT may leave a part done. Zero length is OK anywhere.
    dma_status read(std::uint64_t iova, void* data, std::uint64_t length);

    /// Like read. The bytes become visible in an order that rings can rely
    /// on: the last aligned 8-byte word of the range (if the range holds one
    /// that ends it) is stored with release semantics after all before it,
    /// and no aligned 8-byte word inside the range is ever seen half written.
    dma_status write(std::uint64_t iova, const void* data,
                     std::uint64_t length);

private:
    struct entry {
        std::uint64_t first;
        std::uint64_t last;  ///< inclusive, so that 2^64-1 is expressible
        std::shared_ptr<memory_region> region;
    };

    const entry* find(std::uint64_t iova) const;
    std::uint8_t* fast(std::uint64_t iova, std::uint64_t length,
                       dma_access access) const;

    std::vector<entry> m_regions;  ///< sorted by address
    mutable std::size_t m_hint = 0;
};

/// Copies with SIGBUS turned into `false`. The two may not overlap.
bool guarded_copy(void* destination, const void* source, std::size_t length);

/// The same with the order that guest_memory::write promises.
bool guarded_publish(void* destination, const void* source, std::size_t length);

}  // namespace vfio_user
}  // namespace prawn

#endif
