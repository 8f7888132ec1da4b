// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/event_signal.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>

namespace prawn {
namespace vfio_user {

namespace {

// Requests whose end nobody has taken yet; each has ended when the call that
// made it returns.
constexpr unsigned DEPTH = 128;
constexpr unsigned REAP_AT = 64;

}  // namespace

std::shared_ptr<event_signal> event_signal::shared() {
    static std::mutex lock;
    static std::weak_ptr<event_signal> only;
    const std::lock_guard<std::mutex> hold(lock);
    auto one = only.lock();
    if (!one) {
        one = std::make_shared<event_signal>();
        only = one;
    }
    return one;
}

event_signal::event_signal() :
    m_nothing(::memfd_create("prawn-nothing", MFD_CLOEXEC)) {
    if (m_nothing && ::syscall(SYS_io_setup, DEPTH, &m_context) != 0)
        m_context = 0;
}

event_signal::~event_signal() {
    if (m_context != 0)
        ::syscall(SYS_io_destroy, m_context);
}

bool event_signal::raise(int eventfd) {
    if (m_context == 0) {
        const std::uint64_t one = 1;
        return ::write(eventfd, &one, sizeof(one)) ==
               static_cast<ssize_t>(sizeof(one));
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        iocb request{};
        request.aio_lio_opcode = IOCB_CMD_PREAD;
        request.aio_fildes = static_cast<std::uint32_t>(m_nothing.get());
        request.aio_buf = reinterpret_cast<std::uintptr_t>(&m_byte);
        request.aio_nbytes = sizeof(m_byte);
        request.aio_flags = IOCB_FLAG_RESFD;
        request.aio_resfd = static_cast<std::uint32_t>(eventfd);
        iocb* list[] = {&request};
        if (::syscall(SYS_io_submit, m_context, 1L, list) == 1) {
            if (m_finished.fetch_add(1) + 1 >= REAP_AT)
                reap();
            return true;
        }
        if (errno != EAGAIN)
            return false;
        reap();
    }
    return false;
}

void event_signal::reap() {
    m_finished.store(0);
    io_event events[DEPTH];
    timespec at_once{};
    ::syscall(SYS_io_getevents, m_context, 0L, static_cast<long>(DEPTH), events,
              &at_once);
}

bool take_event(int eventfd) {
    std::uint64_t count = 0;
    const iovec iov{&count, sizeof(count)};
    return ::preadv2(eventfd, &iov, 1, -1, RWF_NOWAIT) ==
           static_cast<ssize_t>(sizeof(count));
}

}  // namespace vfio_user
}  // namespace prawn
