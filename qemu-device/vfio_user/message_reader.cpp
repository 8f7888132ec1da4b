// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/message_reader.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace prawn {
namespace vfio_user {

namespace {

// Enough for any burst of small messages; grows for a large one.
constexpr std::size_t INITIAL_CAPACITY = std::size_t{64} * 1024;

// The kernel's limit for one message, so that descriptors are never cut off
// for lack of room here: what the client sends too much is ours to close.
constexpr std::size_t KERNEL_MAX_FDS = 253;

}  // namespace

message_reader::message_reader(std::uint32_t max_message_size) :
    m_max_message_size(max_message_size),
    m_capacity(INITIAL_CAPACITY),
    m_buffer(new std::uint8_t[INITIAL_CAPACITY]) {}

void message_reader::clear() {
    m_begin = 0;
    m_end = 0;
    m_batches.clear();
}

// Room for the message in progress, or at least for the next bytes.
void message_reader::make_room() {
    if (m_begin == m_end) {
        m_begin = 0;
        m_end = 0;
        return;
    }
    std::size_t wanted = sizeof(protocol::header);
    if (m_end - m_begin >= sizeof(protocol::header)) {
        protocol::header header;
        std::memcpy(&header, m_buffer.get() + m_begin, sizeof(header));
        wanted = std::min(header.size, m_max_message_size);
    }
    if (m_begin + wanted <= m_capacity && m_end < m_capacity)
        return;

    const std::size_t capacity = std::max(m_capacity, wanted);
    if (capacity > m_capacity) {
        std::unique_ptr<std::uint8_t[]> larger(new std::uint8_t[capacity]);
        std::memcpy(larger.get(), m_buffer.get() + m_begin, m_end - m_begin);
        m_buffer = std::move(larger);
        m_capacity = capacity;
    } else {
        std::memmove(m_buffer.get(), m_buffer.get() + m_begin, m_end - m_begin);
    }
    for (batch& b : m_batches)
        b.end -= m_begin;
    m_end -= m_begin;
    m_begin = 0;
}

message_reader::received message_reader::receive(int socket) {
    make_room();
    if (m_end == m_capacity)
        return received::NOTHING;  // whole messages wait to be taken

    alignas(cmsghdr) char control[CMSG_SPACE(KERNEL_MAX_FDS * sizeof(int))];
    iovec iov{m_buffer.get() + m_end, m_capacity - m_end};
    msghdr msg{};
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control;
    msg.msg_controllen = sizeof(control);

    ssize_t n;
    do {
        n = ::recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? received::NOTHING
                                                       : received::FAILED;
    }
    m_end += static_cast<std::size_t>(n);

    if (msg.msg_controllen != 0 || (msg.msg_flags & MSG_CTRUNC) != 0) {
        batch b{m_end, {}, (msg.msg_flags & MSG_CTRUNC) != 0, false};
        for (cmsghdr* c = CMSG_FIRSTHDR(&msg); c != nullptr;
             c = CMSG_NXTHDR(&msg, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                continue;
            const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; i++) {
                int fd;
                std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                b.fds.emplace_back(fd);
            }
        }
        if (!b.fds.empty() || b.lost)
            keep(std::move(b));
    }
    return n == 0 ? received::END : received::DATA;
}

// A message may come in a thousand pieces, each with descriptors: what it has
// no use for is closed at once, or one client could take all there are.
void message_reader::keep(batch b) {
    // Whole messages have been taken: what is there already is of the one
    // that has begun, unless that has ended by now.
    protocol::header header{};
    const std::size_t begun = m_end - m_begin;
    if (begun >= sizeof(header))
        std::memcpy(&header, m_buffer.get() + m_begin, sizeof(header));
    const bool ended = begun >= sizeof(header) && begun > header.size;
    const bool more = !m_batches.empty() && !ended;
    const std::size_t before = more ? m_batches.back().fds.size() : 0;
    if (before + b.fds.size() > protocol::OFFERED_MAX_FDS) {
        b.fds.clear();
        b.too_many = true;
    }
    if (!more) {
        m_batches.push_back(std::move(b));
        return;
    }
    batch& same = m_batches.back();
    same.end = b.end;
    same.lost = same.lost || b.lost;
    same.too_many = same.too_many || b.too_many;
    for (unique_fd& fd : b.fds)
        same.fds.push_back(std::move(fd));
}

message_reader::parsed message_reader::next(message& out) {
    const std::size_t available = m_end - m_begin;
    if (available < sizeof(protocol::header))
        return parsed::NONE;
    std::memcpy(&out.header, m_buffer.get() + m_begin, sizeof(out.header));
    if (out.header.size < sizeof(protocol::header) ||
        out.header.size > m_max_message_size)
        return parsed::BAD_SIZE;
    if (available < out.header.size)
        return parsed::NONE;

    out.payload = m_buffer.get() + m_begin + sizeof(protocol::header);
    out.size = out.header.size - sizeof(protocol::header);
    out.fds.clear();
    out.fds_lost = false;
    out.fds_too_many = false;
    m_begin += out.header.size;
    if (!m_batches.empty())
        take_fds(m_begin, out);
    return parsed::MESSAGE;
}

// On a stream socket one recvmsg returns bytes without descriptors and then
// those that came with descriptors, and stops there. So descriptors belong to
// the message that holds the last byte of their chunk, whether the client
// sent header and payload at once or apart. (A client that packs several
// messages in one sendmsg with descriptors gets them counted to the last.)
void message_reader::take_fds(std::size_t message_end, message& out) {
    auto b = m_batches.begin();
    for (; b != m_batches.end() && b->end <= message_end; ++b) {
        out.fds_lost = out.fds_lost || b->lost;
        out.fds_too_many = out.fds_too_many || b->too_many;
        for (unique_fd& fd : b->fds)
            out.fds.push_back(std::move(fd));
    }
    m_batches.erase(m_batches.begin(), b);
}

}  // namespace vfio_user
}  // namespace prawn
