// SPDX-License-Identifier: Apache-2.0
//
// Requests that wait for the device, their answers, and what is sent.

#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>

#include "qemu-device/vfio_user/endpoint.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

constexpr std::uint64_t SEQUENCE_MASK = (std::uint64_t{1} << 40) - 1;
constexpr std::uint64_t SLOT_MASK = 0xfff;

struct read_reply {
    header head;
    region_access access;
    std::uint64_t value;
};
static_assert(sizeof(read_reply) == 40, "wire layout");

}  // namespace

// There is one: process() looks before it takes a message, and a message
// takes one at most. With m_lock held.
endpoint::slot& endpoint::take_slot(const header& head) {
    const std::uint32_t index = m_free.back();
    m_free.pop_back();
    m_free_slots = m_free.size();
    slot& s = m_slots[index];
    m_sequence = (m_sequence + 1) & SEQUENCE_MASK;
    s.token = (std::uint64_t{m_index} + 1) << 52 | std::uint64_t{index} << 40 |
              m_sequence;
    s.id = head.id;
    s.command = head.command;
    s.no_reply = (head.flags & FLAG_NO_REPLY) != 0;
    s.answers = 1;
    s.error = 0;
    return s;
}

// No token for what is not to be answered.
reply_token endpoint::token_for(const header& head,
                                const region_access& access) {
    reply_token token;
    if ((head.flags & FLAG_NO_REPLY) != 0)
        return token;
    const std::lock_guard<std::mutex> hold(m_lock);
    slot& s = take_slot(head);
    s.access = access;
    token.value = s.token;
    return token;
}

endpoint::slot* endpoint::find(std::uint64_t token) {
    const std::uint64_t index = (token >> 40) & SLOT_MASK;
    if (token == 0 || index >= m_slots.size() || m_slots[index].token != token)
        return nullptr;
    return &m_slots[index];
}

void endpoint::release(slot& s) {
    const auto index = static_cast<std::size_t>(&s - m_slots.data());
    s.token = 0;
    s.regions.clear();
    if (index + 1 == m_slots.size())
        return;  // the drain's
    m_free.push_back(static_cast<std::uint32_t>(index));
    m_free_slots = m_free.size();
}

void endpoint::complete_read(std::uint64_t token, std::uint64_t value) {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        slot* const s = find(token);
        if (s == nullptr || s->command != REGION_READ) {
            m_late_replies++;
            return;
        }
        read_reply reply;
        reply.head = header{
            s->id, REGION_READ,
            static_cast<std::uint32_t>(sizeof(header) + sizeof(region_access) +
                                       s->access.count),
            TYPE_REPLY, 0};
        reply.access = s->access;
        reply.value = value;
        release(*s);
        send_locked(&reply, reply.head.size);
    }
    wake_if_paused();
}

void endpoint::complete(std::uint64_t token, int error) {
    std::vector<std::shared_ptr<memory_region>> regions;
    bool drained = false;
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        slot* const s = find(token);
        if (s == nullptr) {
            m_late_replies++;
            return;
        }
        if (s->error == 0)
            s->error = error;
        if (--s->answers != 0)
            return;
        regions.swap(s->regions);
        if (s->command == 0) {
            m_drained = true;
            drained = true;
            release(*s);
        } else if (regions.empty()) {
            answer(*s);
            release(*s);
        }
    }
    if (!regions.empty()) {
        // Unmap before the reply says so, but not under the lock: it may take
        // a while. The client may have gone in between.
        regions.clear();
        const std::lock_guard<std::mutex> hold(m_lock);
        slot* const s = find(token);
        if (s == nullptr)
            return;
        answer(*s);
        release(*s);
    }
    if (drained)
        m_loop.wake();
    else
        wake_if_paused();
}

// With m_lock held.
void endpoint::answer(const slot& s) {
    if (s.no_reply)
        return;
    if (s.error != 0 || s.command == REGION_READ) {
        send_error_locked(s.id, s.command, s.error != 0 ? s.error : EIO);
        return;
    }
    switch (s.command) {
        case REGION_WRITE:
            send_reply_locked(s.id, s.command, &s.access, sizeof(s.access));
            break;
        case REGION_WRITE_MULTI:
            send_reply_locked(s.id, s.command, &s.write_count,
                              sizeof(s.write_count));
            break;
        case DMA_UNMAP:
            send_reply_locked(s.id, s.command, &s.unmap, sizeof(s.unmap));
            break;
        default:
            send_reply_locked(s.id, s.command, nullptr, 0);
            break;
    }
}

void endpoint::send_reply(const header& head, const void* payload,
                          std::size_t size) {
    if ((head.flags & FLAG_NO_REPLY) != 0)
        return;
    const std::lock_guard<std::mutex> hold(m_lock);
    send_reply_locked(head.id, head.command, payload, size);
}

void endpoint::send_reply_locked(std::uint16_t id, std::uint16_t command,
                                 const void* payload, std::size_t size) {
    std::uint8_t
        bytes[sizeof(header) + sizeof(region_access) + config_space::SIZE];
    const std::size_t total = sizeof(header) + size;
    if (total > sizeof(bytes))
        return;  // no reply of ours is longer
    const header head{id, command, static_cast<std::uint32_t>(total),
                      TYPE_REPLY, 0};
    std::memcpy(bytes, &head, sizeof(head));
    if (size != 0)
        std::memcpy(bytes + sizeof(head), payload, size);
    send_locked(bytes, total);
}

void endpoint::send_error_locked(std::uint16_t id, std::uint16_t command,
                                 int error) {
    m_errors++;
    const header head{id, command, sizeof(header), TYPE_REPLY | FLAG_ERROR,
                      static_cast<std::uint32_t>(error)};
    send_locked(&head, sizeof(head));
}

void endpoint::send_error(const message& msg, int error) {
    std::uint64_t suppressed = 0;
    if (m_limiter.allow(suppressed)) {
        spdlog::warn("vfio-user {}: command {} of {} bytes: {}{}", m_name,
                     msg.header.command, msg.header.size, std::strerror(error),
                     suppressed != 0 ? " (and more before)" : "");
    }
    if ((msg.header.flags & FLAG_NO_REPLY) != 0) {
        m_errors++;
        return;
    }
    const std::lock_guard<std::mutex> hold(m_lock);
    send_error_locked(msg.header.id, msg.header.command, error);
}

// One message, one send: QEMU takes a header that comes in two parts for the
// end of the connection. A socket that is full takes all of a small message
// or nothing; of a large one it takes at least the header.
void endpoint::send_locked(const void* data, std::size_t size) {
    if (!m_socket)
        return;
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    if (!m_backlog.empty()) {
        queue_locked(bytes, size, 0);
        return;
    }
    ssize_t n;
    do {
        n = ::send(m_socket.get(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n == static_cast<ssize_t>(size))
        return;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return;  // the client has gone; reading will tell
    queue_locked(bytes, size, n < 0 ? 0 : static_cast<std::size_t>(n));
    m_loop.wake();  // to wait for output
}

void endpoint::queue_locked(const std::uint8_t* data, std::size_t size,
                            std::size_t sent) {
    if (m_backlog.empty())
        m_backlog_sent = sent;
    m_backlog.emplace_back(data, data + size);
    m_backlog_bytes += size;
}

void endpoint::on_output() {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        while (m_socket && !m_backlog.empty()) {
            const std::vector<std::uint8_t>& first = m_backlog.front();
            const ssize_t n = ::send(
                m_socket.get(), first.data() + m_backlog_sent,
                first.size() - m_backlog_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0) {
                if (errno == EINTR)
                    continue;
                if (errno == EAGAIN || errno == EWOULDBLOCK)
                    break;
                m_backlog.clear();
                m_backlog_bytes = 0;
                break;
            }
            m_backlog_sent += static_cast<std::size_t>(n);
            if (m_backlog_sent < first.size())
                continue;
            m_backlog_bytes -= first.size();
            m_backlog.pop_front();
            m_backlog_sent = 0;
        }
    }
    if (m_paused)
        process();
    report_dma();
}

}  // namespace vfio_user
}  // namespace prawn
