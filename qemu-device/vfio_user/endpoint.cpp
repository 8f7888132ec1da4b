// SPDX-License-Identifier: Apache-2.0
//
// The connection of one client, from attach to detach.

#include "qemu-device/vfio_user/endpoint.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace prawn {
namespace vfio_user {

namespace {

// Headers and fixed parts around the largest transfer.
constexpr std::uint32_t MESSAGE_OVERHEAD = 4096;

constexpr unsigned SLOT_LIMIT = 4095;

bool is_power_of_two(std::uint64_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

void require(bool condition, const char* what) {
    if (!condition)
        throw std::invalid_argument(what);
}

void check_msix(const identity& id, unsigned bar, std::uint64_t offset,
                std::uint64_t size) {
    require(bar < id.bars.size() && id.bars[bar].size != 0,
            "identity: MSI-X structures in an absent BAR");
    require(offset % 8 == 0, "identity: MSI-X offsets are multiples of 8");
    require(offset + size <= id.bars[bar].size,
            "identity: MSI-X structures beyond the end of their BAR");
}

}  // namespace

void check_identity(const identity& id) {
    for (std::size_t i = 0; i < id.bars.size(); i++) {
        const bar_info& bar = id.bars[i];
        if (bar.size == 0)
            continue;
        require(is_power_of_two(bar.size) && bar.size >= protocol::PAGE_SIZE,
                "identity: BAR size is no power of two of at least 4096");
        if (!bar.is_64bit) {
            require(bar.size <= (1u << 31), "identity: 32-bit BAR too large");
            continue;
        }
        require(i % 2 == 0 && id.bars[i + 1].size == 0,
                "identity: 64-bit BARs are 0, 2 and 4 and take the next too");
        i++;
    }
    if (id.msix_vectors == 0)
        return;
    require(id.msix_vectors <= 2048, "identity: more than 2048 vectors");
    const std::uint64_t table = 16u * std::uint64_t{id.msix_vectors};
    const std::uint64_t pba = 8u * ((std::uint64_t{id.msix_vectors} + 63) / 64);
    check_msix(id, id.msix_table_bar, id.msix_table_offset, table);
    check_msix(id, id.msix_pba_bar, id.msix_pba_offset, pba);
    require(id.msix_table_bar != id.msix_pba_bar ||
                id.msix_table_offset + table <= id.msix_pba_offset ||
                id.msix_pba_offset + pba <= id.msix_table_offset,
            "identity: MSI-X table and PBA overlap");
}

endpoint::endpoint(std::size_t index, std::string name, device& dev,
                   const server_options& options, event_loop& loop) :
    m_index(index),
    m_name(std::move(name)),
    m_device(dev),
    m_identity(dev.get_identity()),
    m_options(options),
    m_loop(loop),
    m_reader(options.max_data_xfer_size + MESSAGE_OVERHEAD),
    m_config(m_identity),
    m_irqs(m_identity,
           [this](int fd, bool start) {
               m_loop.watch_unmask(m_index, fd, start);
           }),
    m_slots(std::min(std::max(options.max_outstanding, 1u), SLOT_LIMIT)),
    m_dma(options, [this](std::vector<std::uint8_t> bytes) {
        send_locked(bytes.data(), bytes.size());
    }) {
    // The last slot is the drain's: it must never be out of slots.
    for (std::size_t i = m_slots.size(); i-- > 0;)
        m_free.push_back(static_cast<std::uint32_t>(i));
    m_slots.emplace_back();
    m_free_slots = m_free.size();
}

endpoint::~endpoint() = default;

void endpoint::attach(unique_fd socket) {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_socket = std::move(socket);
    }
    m_state = state::CONNECTED;
    m_version_deadline = clock::now() + m_options.version_timeout;
    m_connections++;
}

void endpoint::refuse() {
    m_refused++;
    std::uint64_t suppressed;
    if (m_limiter.allow(suppressed)) {
        spdlog::warn("vfio-user {}: refused a second client", m_name);
    }
}

void endpoint::on_input() {
    if (!m_socket)
        return;
    switch (m_reader.receive(m_socket.get())) {
        case message_reader::received::DATA:
            process();
            break;
        case message_reader::received::NOTHING:
            break;
        case message_reader::received::END:
            detach(m_reader.is_partial() ? "left in mid-message" : "left");
            break;
        case message_reader::received::FAILED:
            detach("connection lost");
            break;
    }
    report_dma();
}

// Only for a connection that is not being read from: otherwise what the
// client sent before it left is still handled.
void endpoint::on_hangup() {
    if (m_socket && m_paused)
        detach("left");
}

void endpoint::finish_if_gone() {
    while (m_socket) {
        pollfd p{m_socket.get(), 0, 0};
        if (::poll(&p, 1, 0) <= 0 || (p.revents & (POLLHUP | POLLERR)) == 0)
            return;
        if (m_paused)
            detach("left");
        else
            on_input();
    }
}

void endpoint::process() {
    message msg;
    while (m_socket) {
        // One answer may be owed for each message.
        if (must_pause())
            return;
        switch (m_reader.next(msg)) {
            case message_reader::parsed::NONE:
                return;
            case message_reader::parsed::BAD_SIZE:
                violation("message size out of range");
                return;
            case message_reader::parsed::MESSAGE:
                m_messages++;
                handle(msg);
                break;
        }
    }
}

bool endpoint::can_go_on() const {
    return m_free_slots != 0 && m_backlog_bytes <= m_options.max_send_backlog &&
           (m_state != state::NEGOTIATED || m_device.can_accept());
}

// Whoever makes room looks at m_paused afterwards, and we look for room after
// having set it: one of the two sees the other.
bool endpoint::must_pause() {
    m_paused = false;
    if (can_go_on())
        return false;
    m_paused = true;
    if (!can_go_on())
        return true;
    m_paused = false;
    return false;
}

void endpoint::wake_if_paused() {
    if (m_paused)
        m_loop.wake();
}

void endpoint::resume() {
    wake_if_paused();
}

void endpoint::service(clock::time_point now) {
    bool drained;
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_dma.expire(now);
        drained = m_drained;
        m_drained = false;
    }
    if (drained && m_state == state::DRAINING) {
        m_maps.clear();
        m_state = state::FREE;
    }
    m_irqs.on_intx_unmask_event();  // which may have come during a loan
    if (m_state == state::CONNECTED && m_version_deadline.load() <= now)
        violation("no version negotiated in time");
    report_dma();
    process();
    report_dma();
}

endpoint::clock::time_point endpoint::next_deadline() {
    const std::lock_guard<std::mutex> hold(m_lock);
    return std::min(m_version_deadline.load(), m_dma.next_deadline());
}

void endpoint::report_dma() {
    std::deque<dma_messages::operation> finished;
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        if (!m_dma.has_finished())
            return;
        finished = m_dma.take_finished();
    }
    for (dma_messages::operation& op : finished)
        op.report();
}

bool endpoint::start_dma(dma_messages::operation op) {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        if (!m_connected)
            return false;
        // A client that does not read must not make us keep it all.
        if (m_backlog_bytes > m_options.max_send_backlog)
            m_dma.refuse(std::move(op), EBUSY);
        else
            m_dma.start(std::move(op));
    }
    // The protocol thread has a new deadline, or a result to report.
    m_loop.wake();
    return true;
}

// The client broke the protocol so badly that the stream cannot be followed.
void endpoint::violation(const char* what) {
    m_violations++;
    std::uint64_t suppressed = 0;
    if (m_limiter.allow(suppressed)) {
        spdlog::warn("vfio-user {}: closing the connection: {}{}", m_name, what,
                     suppressed != 0 ? " (and more of the kind)" : "");
    }
    detach(nullptr);
}

void endpoint::detach(const char* reason) {
    if (reason != nullptr)
        spdlog::info("vfio-user {}: client {}", m_name, reason);
    const bool tell = m_state == state::NEGOTIATED;
    reply_token token;
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_socket.reset();
        m_connected = false;
        m_backlog.clear();
        m_backlog_sent = 0;
        m_backlog_bytes = 0;
        m_dma.fail_all(ENOTCONN);
        for (slot& s : m_slots) {
            if (s.token != 0)
                release(s);
        }
        if (tell) {
            slot& drain = m_slots.back();
            m_sequence = (m_sequence + 1) & ((std::uint64_t{1} << 40) - 1);
            drain.token = (std::uint64_t{m_index} + 1) << 52 |
                          (std::uint64_t{m_slots.size()} - 1) << 40 |
                          m_sequence;
            drain.command = 0;
            drain.answers = 1;
            token.value = drain.token;
        }
    }
    m_paused = false;
    m_version_deadline = clock::time_point::max();
    m_reader.clear();
    m_irqs.release();
    m_config.reset();
    m_agreed = capabilities();
    m_disconnects++;
    m_state = tell ? state::DRAINING : state::FREE;
    report_dma();
    if (!tell)
        return;
    if (m_bus_master) {
        m_bus_master = false;
        m_device.bus_master(false);
    }
    m_device.disconnected(token);
}

void endpoint::shut_down() {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_socket.reset();
        m_connected = false;
        m_dma.fail_all(ENOTCONN);
        for (slot& s : m_slots) {
            if (s.token != 0)
                release(s);
        }
    }
    m_irqs.release();
    report_dma();
    m_maps.clear();
    m_state = state::FREE;
}

endpoint_counters endpoint::counters() const {
    endpoint_counters c;
    c.connections = m_connections;
    c.refused = m_refused;
    c.messages = m_messages;
    c.errors = m_errors;
    c.disconnects = m_disconnects;
    c.violations = m_violations;
    c.late_replies = m_late_replies;
    c.interrupts = m_irqs.signalled();
    return c;
}

bool endpoint::is_connected() const {
    return m_connected;
}

}  // namespace vfio_user
}  // namespace prawn
