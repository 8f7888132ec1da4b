// SPDX-License-Identifier: Apache-2.0

#include "tests/qemu-device/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error("vfio-user client: " + what);
}

void append(bytes& to, const void* data, std::size_t size) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    to.insert(to.end(), p, p + size);
}

}  // namespace

client::client(const std::string& socket_path) :
    m_socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!m_socket || socket_path.size() >= sizeof(address.sun_path))
        fail("no socket for " + socket_path);
    std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
    if (::connect(m_socket.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) != 0)
        fail("cannot connect to " + socket_path + ": " + std::strerror(errno));
    set_timeout(m_timeout);
}

client::client(unique_fd socket) : m_socket(std::move(socket)) {
    set_timeout(m_timeout);
}

void client::set_timeout(int milliseconds) {
    m_timeout = milliseconds;
    const timeval t{milliseconds / 1000, milliseconds % 1000 * 1000};
    ::setsockopt(m_socket.get(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

void client::send_raw(const void* data, std::size_t size,
                      const std::vector<int>& fds) {
    alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {};
    const auto* p = static_cast<const std::uint8_t*>(data);
    bool with_fds = !fds.empty();
    while (size != 0) {
        iovec iov{const_cast<std::uint8_t*>(p), size};
        msghdr msg{};
        msg.msg_iov = &iov;
        msg.msg_iovlen = 1;
        if (with_fds) {
            msg.msg_control = control;
            msg.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
            cmsghdr* const c = CMSG_FIRSTHDR(&msg);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
            std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
        }
        const ssize_t n = ::sendmsg(m_socket.get(), &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail(std::string("send: ") + std::strerror(errno));
        with_fds = false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
}

std::uint16_t client::send(std::uint16_t command, const bytes& payload,
                           std::uint32_t flags, const std::vector<int>& fds) {
    header head{};
    head.id = m_next_id++;
    head.command = command;
    head.size = static_cast<std::uint32_t>(sizeof(head) + payload.size());
    head.flags = flags;
    bytes all = to_bytes(head);
    append(all, payload.data(), payload.size());
    send_raw(all, fds);
    return head.id;
}

bool client::wait_readable(int milliseconds) {
    pollfd p{m_socket.get(), POLLIN, 0};
    int n;
    do {
        n = ::poll(&p, 1, milliseconds);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

bool client::receive_exactly(void* data, std::size_t size) {
    auto* p = static_cast<std::uint8_t*>(data);
    const std::size_t early = std::min(size, m_leftover.size());
    std::copy_n(m_leftover.begin(), early, p);
    m_leftover.erase(m_leftover.begin(),
                     m_leftover.begin() + static_cast<std::ptrdiff_t>(early));
    p += early;
    size -= early;
    while (size != 0) {
        ssize_t n = ::recv(m_socket.get(), p, size, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (!wait_readable(m_timeout))
                fail("no answer in time");
            continue;
        }
        if (n <= 0)
            return false;
        p += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

std::optional<client_message> client::receive_any() {
    client_message m;
    if (!receive_exactly(&m.header, sizeof(m.header)))
        return std::nullopt;
    if (m.header.size < sizeof(header) || m.header.size > (64u << 20))
        fail("bad size in a message of the server");
    m.payload.resize(m.header.size - sizeof(header));
    if (!receive_exactly(m.payload.data(), m.payload.size()))
        return std::nullopt;
    return m;
}

std::optional<client_message> client::receive() {
    while (m_replies.empty()) {
        auto m = receive_any();
        if (!m)
            return std::nullopt;
        const bool reply = (m->header.flags & TYPE_MASK) == TYPE_REPLY;
        (reply ? m_replies : m_commands).push_back(std::move(*m));
    }
    client_message m = std::move(m_replies.front());
    m_replies.pop_front();
    return m;
}

std::optional<client_message> client::receive_command() {
    while (m_commands.empty()) {
        auto m = receive_any();
        if (!m)
            return std::nullopt;
        const bool reply = (m->header.flags & TYPE_MASK) == TYPE_REPLY;
        (reply ? m_replies : m_commands).push_back(std::move(*m));
    }
    client_message m = std::move(m_commands.front());
    m_commands.pop_front();
    return m;
}

client_message client::transact(std::uint16_t command, const bytes& payload,
                                const std::vector<int>& fds) {
    const std::uint16_t id = send(command, payload, 0, fds);
    auto m = receive();
    if (!m)
        fail("connection closed instead of a reply to command " +
             std::to_string(command));
    if (m->header.id != id || m->header.command != command)
        fail("reply to another request");
    return std::move(*m);
}

bool client::is_closed() {
    char c;
    if (!wait_readable(m_timeout))
        return false;
    return ::recv(m_socket.get(), &c, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

bool client::is_silent(int milliseconds) {
    return m_replies.empty() && m_leftover.empty() &&
           !wait_readable(milliseconds);
}

client_message client::negotiate(const char* text) {
    bytes payload = to_bytes(version{VERSION_MAJOR, VERSION_MINOR});
    append(payload, text, std::strlen(text) + 1);
    return transact(VERSION, payload);
}

protocol::device_info client::device_info() {
    protocol::device_info info{};
    info.argsz = sizeof(info);
    return transact(DEVICE_GET_INFO, to_bytes(info))
        .as<protocol::device_info>();
}

protocol::region_info client::region_info(std::uint32_t index) {
    protocol::region_info info{};
    info.argsz = sizeof(info);
    info.index = index;
    return transact(DEVICE_GET_REGION_INFO, to_bytes(info))
        .as<protocol::region_info>();
}

protocol::irq_info client::irq_info(std::uint32_t index) {
    protocol::irq_info info{};
    info.argsz = sizeof(info);
    info.index = index;
    return transact(DEVICE_GET_IRQ_INFO, to_bytes(info))
        .as<protocol::irq_info>();
}

client_message client::read_block(std::uint32_t region, std::uint64_t offset,
                                  std::uint32_t size) {
    return transact(REGION_READ, to_bytes(region_access{offset, region, size}));
}

client_message client::write_block(std::uint32_t region, std::uint64_t offset,
                                   const bytes& data) {
    bytes payload = to_bytes(
        region_access{offset, region, static_cast<std::uint32_t>(data.size())});
    append(payload, data.data(), data.size());
    return transact(REGION_WRITE, payload);
}

// Without allocation, one send and one recv: this one is measured.
std::uint64_t client::read(std::uint32_t region, std::uint64_t offset,
                           std::uint32_t size) {
    struct {
        header head;
        region_access access;
        std::uint64_t value;
    } m{};
    constexpr std::size_t FIXED = sizeof(header) + sizeof(region_access);
    if (size > sizeof(m.value))
        fail("read of more than 8 bytes");
    const std::uint16_t id = m_next_id++;
    m.head = header{id, REGION_READ, FIXED, 0, 0};
    m.access = region_access{offset, region, size};
    if (::send(m_socket.get(), &m, FIXED, MSG_NOSIGNAL) !=
        static_cast<ssize_t>(FIXED))
        fail(std::string("send: ") + std::strerror(errno));
    if (m_leftover.empty() && m_replies.empty()) {
        const ssize_t n = ::recv(m_socket.get(), &m, FIXED + size, 0);
        if (n == static_cast<ssize_t>(FIXED + size) && m.head.id == id &&
            m.head.flags == TYPE_REPLY && m.head.size == FIXED + size)
            return m.value;
        if (n > 0)
            append(m_leftover, &m, static_cast<std::size_t>(n));
    }
    // Something else came, or only a part: the general way.
    const auto reply = receive();
    if (!reply)
        fail("connection closed instead of a reply to a read");
    if (reply->header.id != id || reply->is_error() ||
        reply->payload.size() != sizeof(region_access) + size)
        fail("read of region " + std::to_string(region) + " failed, error " +
             std::to_string(reply->header.error));
    m.value = 0;
    std::memcpy(&m.value, reply->payload.data() + sizeof(region_access), size);
    return m.value;
}

void client::write(std::uint32_t region, std::uint64_t offset,
                   std::uint32_t size, std::uint64_t value) {
    bytes data = to_bytes(value);
    data.resize(size);
    const client_message m = write_block(region, offset, data);
    if (m.is_error())
        fail("write failed, error " + std::to_string(m.header.error));
}

void client::post(std::uint32_t region, std::uint64_t offset,
                  std::uint32_t size, std::uint64_t value) {
    bytes payload = to_bytes(region_access{offset, region, size});
    append(payload, &value, size);
    send(REGION_WRITE, payload, FLAG_NO_REPLY);
}

int client::dma_map(std::uint64_t iova, std::uint64_t size, int fd,
                    std::uint64_t offset, std::uint32_t flags) {
    const protocol::dma_map map{sizeof(protocol::dma_map), flags, offset, iova,
                                size};
    return transact(DMA_MAP, to_bytes(map),
                    fd < 0 ? std::vector<int>{} : std::vector<int>{fd})
        .error();
}

int client::dma_unmap(std::uint64_t iova, std::uint64_t size,
                      std::uint32_t flags) {
    const protocol::dma_unmap unmap{sizeof(protocol::dma_unmap), flags, iova,
                                    size};
    return transact(DMA_UNMAP, to_bytes(unmap)).error();
}

int client::set_irqs(std::uint32_t index, std::uint32_t flags,
                     std::uint32_t start, std::uint32_t count,
                     const std::vector<int>& fds, const bytes& data) {
    const irq_set set{static_cast<std::uint32_t>(sizeof(irq_set) + data.size()),
                      flags, index, start, count};
    bytes payload = to_bytes(set);
    append(payload, data.data(), data.size());
    return transact(DEVICE_SET_IRQS, payload, fds).error();
}

int client::reset() {
    return transact(DEVICE_RESET, {}).error();
}

void client::reply(const header& request, const bytes& payload, int error) {
    header head = request;
    head.flags = TYPE_REPLY | (error != 0 ? FLAG_ERROR : 0);
    head.error = static_cast<std::uint32_t>(error);
    head.size = static_cast<std::uint32_t>(sizeof(head) + payload.size());
    bytes all = to_bytes(head);
    append(all, payload.data(), payload.size());
    send_raw(all);
}

bool client::serve_dma(bytes& memory, std::uint64_t base, bool count32) {
    auto m = receive_command();
    if (!m)
        return false;
    const auto access = m->as<dma_transfer>();
    const std::uint64_t count =
        count32 ? access.count & 0xffffffff : access.count;
    const std::size_t data = count32 ? DMA_DATA_COUNT32 : DMA_DATA;
    if (count > DEFAULT_MAX_DATA_XFER) {
        reply(m->header, {}, E2BIG);
        return true;
    }
    const std::uint64_t at = access.address - base;
    if (access.address < base || at > memory.size() ||
        count > memory.size() - at) {
        reply(m->header, {}, EFAULT);
        return true;
    }
    std::uint8_t* const place = memory.data() + at;
    if (m->header.command == DMA_READ) {
        bytes payload = to_bytes(access);
        payload.resize(sizeof(access) + count);
        std::memcpy(payload.data() + data, place, count);
        reply(m->header, payload);
    } else {
        std::memcpy(place, m->payload.data() + data, count);
        reply(m->header, {});
    }
    return true;
}

}  // namespace vfio_user
}  // namespace prawn
