// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/dma_messages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

constexpr std::size_t MAX_ACTIVE = 4096;
constexpr int MAX_ERRNO = 4095;

}  // namespace

void dma_messages::operation::report() {
    if (is_read && on_read)
        on_read(error, error == 0 ? data.data() : nullptr,
                error == 0 ? data.size() : 0);
    else if (!is_read && on_write)
        on_write(error);
}

dma_messages::dma_messages(const server_options& options, send_function send) :
    m_timeout(options.dma_timeout),
    m_configured_layout(options.dma_messages),
    m_layout(options.dma_messages),
    m_max_transfer(options.max_data_xfer_size),
    m_send(std::move(send)) {}

void dma_messages::begin(std::uint32_t max_transfer) {
    m_max_transfer = max_transfer;
    m_layout = m_configured_layout;
    m_probing = false;
}

void dma_messages::start(operation op) {
    if (op.data.empty()) {
        m_finished.push_back(std::move(op));
        return;
    }
    if (m_active.size() + m_waiting.size() >= MAX_ACTIVE) {
        refuse(std::move(op), EBUSY);
        return;
    }
    if (m_layout != dma_layout::DETECT) {
        launch(std::move(op));
        return;
    }
    m_waiting.push_back(std::move(op));
    if (!m_probing)
        send_probe();
}

void dma_messages::refuse(operation op, int error) {
    op.error = error;
    m_finished.push_back(std::move(op));
}

void dma_messages::launch(operation op) {
    if (send_piece(op))
        m_active.emplace(m_next_id, std::move(op));
    else
        refuse(std::move(op), EBUSY);
}

void dma_messages::launch_waiting() {
    std::deque<operation> waiting;
    waiting.swap(m_waiting);
    for (operation& op : waiting)
        launch(std::move(op));
}

// A read of 2^32 bytes. Who takes the count for 64 bits must refuse: it is
// more than any transfer may be. Who sees the lower half reads nothing, and
// succeeds. Nothing is touched either way.
void dma_messages::send_probe() {
    if (!take_id())
        return;
    m_probing = true;
    m_probe_id = m_next_id;
    m_probe_deadline = clock::now() + m_timeout;
    send_message(true, m_waiting.front().iova, std::uint64_t{1} << 32, nullptr);
}

// The next free number, in m_next_id. False when too many are in use.
bool dma_messages::take_id() {
    if (m_active.size() + m_expired.size() >= 0xffff)
        return false;
    do {
        m_next_id++;
    } while (m_active.count(m_next_id) != 0 || m_expired.count(m_next_id) != 0);
    return true;
}

void dma_messages::send_message(bool is_read, std::uint64_t address,
                                std::uint64_t count, const std::uint8_t* data) {
    const dma_transfer access{address, count};
    const std::size_t size = sizeof(header) + sizeof(access) +
                             (is_read ? 0 : static_cast<std::size_t>(count));
    const header head{m_next_id, is_read ? DMA_READ : DMA_WRITE,
                      static_cast<std::uint32_t>(size), TYPE_COMMAND, 0};
    std::vector<std::uint8_t> bytes(size);
    std::memcpy(bytes.data(), &head, sizeof(head));
    std::memcpy(bytes.data() + sizeof(head), &access, sizeof(access));
    if (!is_read) {
        std::memcpy(bytes.data() + sizeof(head) + data_offset(), data,
                    static_cast<std::size_t>(count));
    }
    m_send(std::move(bytes));
}

bool dma_messages::send_piece(operation& op) {
    if (!take_id())
        return false;
    op.piece = std::min<std::size_t>(op.data.size() - op.done, m_max_transfer);
    op.deadline = clock::now() + m_timeout;
    send_message(op.is_read, op.iova + op.done, op.piece,
                 op.data.data() + op.done);
    return true;
}

// Bytes that the reply accounts for, or a negative errno value.
int dma_messages::accept(operation& op, const header& head,
                         const std::uint8_t* payload, std::size_t size) {
    std::size_t count = op.piece;
    if (op.is_read || size != 0) {
        // QEMU answers a write with the bare header.
        std::uint32_t low;
        if (head.command != (op.is_read ? DMA_READ : DMA_WRITE) ||
            size < sizeof(dma_transfer))
            return -EPROTO;
        std::memcpy(&low, payload + offsetof(dma_transfer, count), sizeof(low));
        if (low > op.piece)
            return -EPROTO;
        count = low;
    }
    if (op.is_read) {
        if (size != sizeof(dma_transfer) + count)
            return -EPROTO;
        std::memcpy(op.data.data() + op.done, payload + data_offset(), count);
    }
    return static_cast<int>(count);
}

dma_messages::answer dma_messages::on_reply(const header& head,
                                            const std::uint8_t* payload,
                                            std::size_t size) {
    if (m_expired.erase(head.id) != 0)
        return answer::TAKEN;
    if (m_probing && head.id == m_probe_id) {
        m_probing = false;
        m_layout = (head.flags & FLAG_ERROR) != 0 ? dma_layout::SPECIFICATION
                                                  : dma_layout::COUNT32;
        launch_waiting();
        return answer::TAKEN;
    }
    const auto it = m_active.find(head.id);
    if (it == m_active.end())
        return answer::UNKNOWN;
    operation op = std::move(it->second);
    m_active.erase(it);

    if ((head.flags & FLAG_ERROR) != 0) {
        op.error = head.error != 0 && head.error <= MAX_ERRNO
                       ? static_cast<int>(head.error)
                       : EIO;
    } else {
        const int count = accept(op, head, payload, size);
        if (count <= 0)
            op.error = count == 0 ? EIO : -count;
        else
            op.done += static_cast<std::size_t>(count);
    }
    const bool malformed = op.error == EPROTO && !(head.flags & FLAG_ERROR);
    if (op.error == 0 && op.done < op.data.size()) {
        if (send_piece(op)) {
            m_active.emplace(m_next_id, std::move(op));
            return answer::TAKEN;
        }
        op.error = EBUSY;
    }
    m_finished.push_back(std::move(op));
    return malformed ? answer::MALFORMED : answer::TAKEN;
}

void dma_messages::expire(clock::time_point now) {
    if (m_probing && m_probe_deadline <= now) {
        m_probing = false;
        m_expired.insert(m_probe_id);
        for (operation& op : m_waiting) {
            op.error = ETIMEDOUT;
            m_finished.push_back(std::move(op));
        }
        m_waiting.clear();
    }
    for (auto it = m_active.begin(); it != m_active.end();) {
        if (it->second.deadline > now) {
            ++it;
            continue;
        }
        it->second.error = ETIMEDOUT;
        m_expired.insert(it->first);
        m_finished.push_back(std::move(it->second));
        it = m_active.erase(it);
    }
}

void dma_messages::fail_all(int error) {
    for (auto& active : m_active) {
        active.second.error = error;
        m_finished.push_back(std::move(active.second));
    }
    for (operation& op : m_waiting) {
        op.error = error;
        m_finished.push_back(std::move(op));
    }
    m_active.clear();
    m_waiting.clear();
    m_expired.clear();
    m_probing = false;
}

dma_messages::clock::time_point dma_messages::next_deadline() const {
    auto first = m_probing ? m_probe_deadline : clock::time_point::max();
    for (const auto& active : m_active)
        first = std::min(first, active.second.deadline);
    return first;
}

std::deque<dma_messages::operation> dma_messages::take_finished() {
    std::deque<operation> finished;
    finished.swap(m_finished);
    return finished;
}

}  // namespace vfio_user
}  // namespace prawn
