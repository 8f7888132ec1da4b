// SPDX-License-Identifier: Apache-2.0
//
// What the vfio-user server needs to know of the card behind it. The server
// knows no SystemC; a bridge implements this class, a test fakes it.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_DEVICE_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_DEVICE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace prawn {
namespace vfio_user {

class memory_region;

/// Names one request that is to be answered later, from any thread, once.
/// A zero token means that nobody waits for an answer. Answering twice, or
/// after the client has gone, does nothing (and is counted).
struct reply_token {
    std::uint64_t value = 0;

    explicit operator bool() const { return value != 0; }
    bool operator==(const reply_token& other) const {
        return value == other.value;
    }
};

/// One base address register. A 64-bit BAR takes the next register too.
struct bar_info {
    std::uint64_t size = 0;  ///< power of two, at least 4096; 0 = absent
    bool is_64bit = false;
    bool prefetchable = false;
};

/// What the PCI function looks like; constant while the server runs.
struct identity {
    std::uint16_t vendor_id = 0;
    std::uint16_t device_id = 0;
    std::uint16_t subsystem_vendor_id = 0;
    std::uint16_t subsystem_id = 0;
    std::uint32_t class_code = 0;  ///< 24 bits: base, sub-class, interface
    std::uint8_t revision = 0;
    std::array<bar_info, 6> bars{};

    // MSI-X. The server owns table and PBA: accesses to them never reach the
    // device. Vectors = 0 leaves the capability out.
    std::uint16_t msix_vectors = 0;
    std::uint8_t msix_table_bar = 0;
    std::uint32_t msix_table_offset = 0;  ///< multiple of 8
    std::uint8_t msix_pba_bar = 0;
    std::uint32_t msix_pba_offset = 0;  ///< multiple of 8

    bool intx = false;            ///< offer INTA
    std::uint8_t link_speed = 3;  ///< PCIe generation shown in link status
    std::uint8_t link_width = 8;
};

/// The card as the protocol sees it.
///
/// Every call comes from the server's one protocol thread, or from the thread
/// that has borrowed this client (server::borrow), in the order in which the
/// client sent the requests, and must not block: it queues the request and
/// returns. Answers are given later through server::complete_*;
/// answering from within the call is allowed. No call may throw.
///
/// Between connected() and disconnected() there is exactly one client. A
/// device never sees an access that is out of a BAR's range, misaligned, or
/// not of 1, 2, 4 or 8 bytes, nor one to the MSI-X table or PBA.
class device
{
public:
    virtual ~device() = default;

    virtual const identity& get_identity() const = 0;

    /// Back-pressure, mainly against floods of posted writes. While this is
    /// false the server hands nothing more over and reads nothing more from
    /// the client. The device calls server::resume() once it has room again.
    /// Writes that one message carries together may still arrive (up to
    /// 1024).
    virtual bool can_accept() const { return true; }

    /// A client has negotiated the version. The device is in reset state.
    virtual void connected() = 0;

    /// The client has gone, in whatever way. The device cancels what is in
    /// flight, drops every region it was given by dma_map, resets itself and
    /// then calls server::complete(token, 0). Only then are the regions
    /// unmapped and the next client accepted.
    virtual void disconnected(reply_token token) = 0;

    /// Answer with server::complete_read(token, value), or an error with
    /// server::complete(token, errno).
    virtual void bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                          reply_token token) = 0;

    /// A posted write carries no token; the others are answered with
    /// server::complete_write(token) or server::complete(token, errno).
    /// `data` holds `size` bytes, little-endian, zero-extended.
    virtual void bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                           std::uint64_t data, bool posted,
                           reply_token token) = 0;

    /// Function reset; the server has already reset config space and MSI-X.
    /// Guest memory maps survive it, bus mastering does not (bus_master(false)
    /// is called before). Answer with server::complete(token, 0).
    virtual void reset(reply_token token) = 0;

    /// The bus master enable bit has changed. Starts as false.
    virtual void bus_master(bool enabled) = 0;

    /// The region may be used for DMA from now on: after everything that was
    /// handed over before, before everything that comes after. The device
    /// adds it to its guest_memory when it gets there.
    virtual void dma_map(std::shared_ptr<memory_region> region) = 0;

    /// The region goes away. The device removes it from its guest_memory,
    /// finishes or cancels the DMA that still touches it, lets go of every
    /// copy of the pointer (so move the argument), and then calls
    /// server::complete(token, 0), once for every call (an unmap of everything
    /// hands the same token over once for each region). The memory stays mapped
    /// until then. The drain must not wait for anything the guest does: the
    /// guest may wait for the answer with its big lock held. QEMU pipelines: a
    /// dma_map of the same addresses may come before the drain has ended, so
    /// remove first, then drain.
    virtual void dma_unmap(std::shared_ptr<memory_region> region,
                           reply_token token) = 0;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
