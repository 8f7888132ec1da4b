// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/guest_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "qemu-device/vfio_user/guarded_copy.h"
#include "qemu-device/vfio_user/protocol.h"

namespace prawn {
namespace vfio_user {

namespace {

constexpr std::uint64_t U64_MAX = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t PAGE_MASK = protocol::PAGE_SIZE - 1;

}  // namespace

const char* to_string(dma_status status) {
    switch (status) {
        case dma_status::OK:
            return "ok";
        case dma_status::UNMAPPED:
            return "unmapped";
        case dma_status::DENIED:
            return "denied";
        case dma_status::MESSAGE_ONLY:
            return "message only";
        case dma_status::FAULT:
            return "fault";
    }
    return "unknown";
}

memory_region::memory_region(std::uint64_t iova, std::uint64_t size,
                             bool readable, bool writable, std::uint8_t* host) :
    m_iova(iova),
    m_size(size),
    m_readable(readable),
    m_writable(writable),
    m_host(host) {}

memory_region::~memory_region() {
    if (m_host != nullptr)
        ::munmap(m_host, m_size);
}

std::shared_ptr<memory_region> memory_region::create(
    std::uint64_t iova, std::uint64_t size, bool readable, bool writable,
    int fd, std::uint64_t offset, int& error) {
    error = EINVAL;
    if (size == 0 || size - 1 > U64_MAX - iova || (!readable && !writable))
        return nullptr;
    if (((iova | size | offset) & PAGE_MASK) != 0)
        return nullptr;

    std::uint8_t* host = nullptr;
    if (fd >= 0) {
        struct stat info {
        };
        if (::fstat(fd, &info) != 0) {
            error = errno;
            return nullptr;
        }
        // Directories, sockets, pipes and eventfds have no pages to share.
        if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode))
            return nullptr;
        if (S_ISREG(info.st_mode)) {
            const auto length = static_cast<std::uint64_t>(info.st_size);
            if (offset > length || size > length - offset)
                return nullptr;
        }
        if (size > std::numeric_limits<std::size_t>::max() / 2 ||
            offset > U64_MAX / 2)
            return nullptr;
        const int protection =
            (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
        void* const address = ::mmap(nullptr, size, protection, MAP_SHARED, fd,
                                     static_cast<off_t>(offset));
        if (address == MAP_FAILED) {
            error = errno;
            return nullptr;
        }
        ::madvise(address, size, MADV_DONTDUMP);
        host = static_cast<std::uint8_t*>(address);
    }
    error = 0;
    return std::shared_ptr<memory_region>(
        new memory_region(iova, size, readable, writable, host));
}

guest_memory::guest_memory() {
    install_sigbus_handler();
}

guest_memory::~guest_memory() = default;

bool guest_memory::add(std::shared_ptr<memory_region> region) {
    if (!region)
        return false;
    const std::uint64_t first = region->iova();
    const std::uint64_t last = first + (region->size() - 1);
    const auto at = std::lower_bound(
        m_regions.begin(), m_regions.end(), first,
        [](const entry& e, std::uint64_t value) { return e.last < value; });
    if (at != m_regions.end() && at->first <= last)
        return false;
    m_regions.insert(at, entry{first, last, std::move(region)});
    return true;
}

bool guest_memory::remove(const memory_region& region) {
    for (auto it = m_regions.begin(); it != m_regions.end(); ++it) {
        if (it->region.get() == &region) {
            m_regions.erase(it);
            return true;
        }
    }
    return false;
}

void guest_memory::clear() {
    m_regions.clear();
}

// The whole of a range that lies in the region used last; null otherwise.
std::uint8_t* guest_memory::fast(std::uint64_t iova, std::uint64_t length,
                                 dma_access access) const {
    if (m_hint >= m_regions.size())
        return nullptr;
    const entry& e = m_regions[m_hint];
    const memory_region& region = *e.region;
    const std::uint64_t at = iova - e.first;
    if (at >= region.size() || length > region.size() - at ||
        region.message_only() ||
        !(access == dma_access::READ ? region.readable() : region.writable()))
        return nullptr;
    return region.host() + at;
}

const guest_memory::entry* guest_memory::find(std::uint64_t iova) const {
    // Nearly all DMA goes to one region: guest RAM below or above 4 GiB.
    if (m_hint < m_regions.size()) {
        const entry& e = m_regions[m_hint];
        if (iova >= e.first && iova <= e.last)
            return &e;
    }
    const auto at = std::lower_bound(
        m_regions.begin(), m_regions.end(), iova,
        [](const entry& e, std::uint64_t value) { return e.last < value; });
    if (at == m_regions.end() || at->first > iova)
        return nullptr;
    m_hint = static_cast<std::size_t>(at - m_regions.begin());
    return &*at;
}

guest_memory::piece guest_memory::resolve(std::uint64_t iova,
                                          std::uint64_t length,
                                          dma_access access) const {
    piece p;
    p.length = length;
    if (length == 0) {
        p.status = dma_status::OK;
        return p;
    }
    if (length - 1 > U64_MAX - iova)
        return p;
    const entry* const e = find(iova);
    if (e == nullptr) {
        // Up to the next region, so that a caller that splits gets on.
        for (const entry& next : m_regions) {
            if (next.first > iova) {
                p.length = std::min(length, next.first - iova);
                break;
            }
        }
        return p;
    }
    // Without overflow: a region may be all 2^64 bytes.
    if (length - 1 > e->last - iova)
        p.length = e->last - iova + 1;
    const memory_region& region = *e->region;
    if (access == dma_access::READ ? !region.readable() : !region.writable()) {
        p.status = dma_status::DENIED;
    } else if (region.message_only()) {
        p.status = dma_status::MESSAGE_ONLY;
    } else {
        p.status = dma_status::OK;
        p.host = region.host() + (iova - e->first);
    }
    return p;
}

dma_status guest_memory::check(std::uint64_t iova, std::uint64_t length,
                               dma_access access) const {
    if (length != 0 && length - 1 > U64_MAX - iova)
        return dma_status::UNMAPPED;
    while (length != 0) {
        const piece p = resolve(iova, length, access);
        if (p.status != dma_status::OK)
            return p.status;
        iova += p.length;
        length -= p.length;
    }
    return dma_status::OK;
}

dma_status guest_memory::read(std::uint64_t iova, void* data,
                              std::uint64_t length) {
    if (std::uint8_t* const host = fast(iova, length, dma_access::READ)) {
        return guarded_copy(data, host, length) ? dma_status::OK
                                                : dma_status::FAULT;
    }
    piece p = resolve(iova, length, dma_access::READ);
    if (p.length != length && p.status == dma_status::OK)
        p.status = check(iova, length, dma_access::READ);
    if (p.status != dma_status::OK || length == 0)
        return p.status;

    auto* to = static_cast<std::uint8_t*>(data);
    for (;;) {
        if (!guarded_copy(to, p.host, p.length))
            return dma_status::FAULT;
        iova += p.length;
        to += p.length;
        length -= p.length;
        if (length == 0)
            return dma_status::OK;
        p = resolve(iova, length, dma_access::READ);
    }
}

dma_status guest_memory::write(std::uint64_t iova, const void* data,
                               std::uint64_t length) {
    if (std::uint8_t* const host = fast(iova, length, dma_access::WRITE)) {
        return guarded_publish(host, data, length) ? dma_status::OK
                                                   : dma_status::FAULT;
    }
    piece p = resolve(iova, length, dma_access::WRITE);
    if (p.length != length && p.status == dma_status::OK)
        p.status = check(iova, length, dma_access::WRITE);
    if (p.status != dma_status::OK || length == 0)
        return p.status;

    const auto* from = static_cast<const std::uint8_t*>(data);
    for (;;) {
        if (!guarded_publish(p.host, from, p.length))
            return dma_status::FAULT;
        iova += p.length;
        from += p.length;
        length -= p.length;
        if (length == 0)
            return dma_status::OK;
        p = resolve(iova, length, dma_access::WRITE);
    }
}

}  // namespace vfio_user
}  // namespace prawn
