// SPDX-License-Identifier: Apache-2.0
//
// Signals eventfds that belong to somebody else, and never waits.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_EVENT_SIGNAL_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_EVENT_SIGNAL_H

#include <linux/aio_abi.h>

#include <atomic>
#include <memory>

#include "qemu-device/vfio_user/unique_fd.h"

namespace prawn {
namespace vfio_user {

/// write() to an eventfd whose counter is full waits, unless the descriptor
/// is in non-blocking mode; and that mode is the client's as much as ours: it
/// can take it away between any look at it and the write. So the kernel
/// signals in our place, which never waits: at the end of an asynchronous
/// read of nothing (IOCB_FLAG_RESFD, see io_submit(2)).
class event_signal
{
public:
    /// One for all cards of the process: the kernel counts them.
    static std::shared_ptr<event_signal> shared();

    event_signal();
    ~event_signal();
    event_signal(const event_signal&) = delete;
    event_signal& operator=(const event_signal&) = delete;

    /// Adds one to the counter; a full one stays full. Any thread. False if
    /// it could not be done.
    bool raise(int eventfd);

    /// False where the kernel has no asynchronous I/O (left): raise() then
    /// writes, and waits if the client is out to make it.
    bool never_waits() const { return m_context != 0; }

private:
    void reap();

    aio_context_t m_context = 0;
    unique_fd m_nothing;  ///< an empty file
    char m_byte = 0;      ///< never read into
    std::atomic<unsigned> m_finished{0};
};

/// Takes what an eventfd holds, without waiting whatever its mode is. False
/// if there was nothing.
bool take_event(int eventfd);

}  // namespace vfio_user
}  // namespace prawn

#endif
