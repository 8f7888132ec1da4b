// SPDX-License-Identifier: Apache-2.0
//
// The vfio-user server: one protocol thread that serves any number of cards,
// each behind a UNIX socket of its own with at most one client (a QEMU).

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_SERVER_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_SERVER_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "qemu-device/vfio_user/device.h"

namespace prawn {
namespace vfio_user {

using endpoint_id = std::size_t;

/// Form of DMA_READ and DMA_WRITE messages. By the specification (and in QEMU
/// 11.1.3, seen on the wire) the count has 64 bits and data starts at byte 32.
/// The clients of QEMU before that have a 32-bit count and data at byte 28 of
/// a message of the same length. DETECT asks the client once, before its
/// first DMA message, in a way that the two answer differently.
enum class dma_layout { DETECT, SPECIFICATION, COUNT32 };

struct server_options {
    /// Requests of one client that may wait for the device at a time. A
    /// client that sends more is not read from until some are answered.
    unsigned max_outstanding = 256;
    /// Largest transfer of one message, offered as max_data_xfer_size.
    std::uint32_t max_data_xfer_size = 1u << 20;
    /// DMA windows of one client at a time.
    unsigned max_dma_maps = 4096;
    /// Bytes of memory that one client may have mapped here: all clients live
    /// in one address space.
    std::uint64_t max_dma_bytes = std::uint64_t{1} << 40;
    /// Bytes of messages that may wait for a client that does not read. Above
    /// it nothing more is read from that client until it has caught up.
    std::size_t max_send_backlog = 1u << 20;
    /// A client that has not negotiated the version this long after it has
    /// connected is thrown out. Until then the next one waits.
    std::chrono::milliseconds version_timeout{10000};
    /// A DMA message that is not answered in this time fails with ETIMEDOUT.
    std::chrono::milliseconds dma_timeout{5000};
    dma_layout dma_messages = dma_layout::DETECT;
};

struct endpoint_counters {
    std::uint64_t connections = 0;
    std::uint64_t refused = 0;       ///< clients turned away: one is there
    std::uint64_t messages = 0;      ///< complete messages received
    std::uint64_t errors = 0;        ///< requests answered with an error
    std::uint64_t disconnects = 0;   ///< clients that went, for any reason
    std::uint64_t violations = 0;    ///< of those, thrown out by us
    std::uint64_t late_replies = 0;  ///< answers whose client was gone
    std::uint64_t interrupts = 0;    ///< signalled to the client
};

/// Called on the protocol thread, exactly once. `error` is 0 or an errno
/// value (ENOTCONN, ETIMEDOUT, EIO, or what the client said); `data` is valid
/// during the call and only when error is 0.
using dma_read_done =
    std::function<void(int error, const std::uint8_t* data, std::size_t size)>;
using dma_write_done = std::function<void(int error)>;

class server
{
public:
    explicit server(const server_options& options = server_options());
    ~server();  ///< stops
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// Before start(). The device must outlive the server's running time.
    /// Throws std::invalid_argument for an impossible identity or path and
    /// std::system_error when the socket cannot be made; a stale socket file
    /// is replaced, one with a living server behind it is not.
    endpoint_id add_endpoint(const std::string& socket_path, device& dev);

    /// Starts the protocol thread.
    void start();

    /// Any thread but the protocol thread; idempotent. Disconnects the
    /// clients without waiting for their devices to drain: the devices keep
    /// the regions they hold, and no device is called after stop() returns.
    /// Removes the sockets.
    void stop();

    // Answers, from any thread. ------------------------------------------
    void complete_read(reply_token token, std::uint64_t value);
    void complete_write(reply_token token) { complete(token, 0); }
    /// `error` is 0 or a positive errno value.
    void complete(reply_token token, int error);

    /// The device can accept again; any thread. Cheap when nothing waits.
    void resume(endpoint_id endpoint);

    // Interrupts, from any thread. ----------------------------------------
    /// Signals the vector, or remembers it as pending while it is masked.
    /// Without an enabled MSI-X capability the message is lost, as on a bus.
    void trigger_msix(endpoint_id endpoint, unsigned vector);
    void set_intx(endpoint_id endpoint, bool level);

    // DMA by message, from any thread: the fallback for regions without a
    // descriptor. Never start one that a pending BAR read of the same client
    // depends on: QEMU serves it under the lock that the read holds.
    // False means there is no client; then the callback is never called.
    bool dma_read(endpoint_id endpoint, std::uint64_t iova, std::size_t size,
                  dma_read_done done);
    /// The data is copied before the call returns.
    bool dma_write(endpoint_id endpoint, std::uint64_t iova, const void* data,
                   std::size_t size, dma_write_done done);

    // A loan of the client's socket: its requests are then handled on the
    // borrower's thread, which saves a wake-up of the protocol thread for each.
    // For microseconds at a time: what else the protocol thread has to do for
    // this client waits. Any thread but the protocol thread; one at a time.
    /// False: not to be had (no client, busy, stopping); nothing to give back.
    bool borrow(endpoint_id endpoint);
    /// Handles what the client has sent, if anything; calls the device's
    /// functions. False: the loan should end now.
    bool poll(endpoint_id endpoint);
    void give_back(endpoint_id endpoint);

    endpoint_counters counters(endpoint_id endpoint) const;
    bool is_connected(endpoint_id endpoint) const;

private:
    class impl;
    std::unique_ptr<impl> m_impl;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
