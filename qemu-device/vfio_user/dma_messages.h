// SPDX-License-Identifier: Apache-2.0
//
// DMA by message: the fallback for guest memory without a descriptor.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_DMA_MESSAGES_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_DMA_MESSAGES_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "qemu-device/vfio_user/protocol.h"
#include "qemu-device/vfio_user/server.h"

namespace prawn {
namespace vfio_user {

/// The operations under way for one client. A long one goes piece by piece,
/// one piece at a time; several operations overlap. The owner locks; nothing
/// here calls back while a lock is held: what has ended is collected with
/// take_finished() and reported afterwards.
class dma_messages
{
public:
    using clock = std::chrono::steady_clock;
    /// Takes one complete message for the socket.
    using send_function = std::function<void(std::vector<std::uint8_t>)>;

    struct operation {
        bool is_read = false;
        std::uint64_t iova = 0;
        std::vector<std::uint8_t> data;
        std::size_t done = 0;
        std::size_t piece = 0;
        dma_read_done on_read;
        dma_write_done on_write;
        clock::time_point deadline;
        int error = 0;

        void report();
    };

    dma_messages(const server_options& options, send_function send);

    /// A new client, with this limit.
    void begin(std::uint32_t max_transfer);

    void start(operation op);
    /// Ends before it has begun.
    void refuse(operation op, int error);

    enum class answer { TAKEN, UNKNOWN, MALFORMED };

    /// A reply has come. UNKNOWN: to nothing that we asked.
    answer on_reply(const protocol::header& header, const std::uint8_t* payload,
                    std::size_t size);

    void expire(clock::time_point now);
    void fail_all(int error);

    /// Of the operation that times out first; max() if there is none.
    clock::time_point next_deadline() const;

    bool has_finished() const { return !m_finished.empty(); }
    std::deque<operation> take_finished();

private:
    void launch(operation op);
    void launch_waiting();
    void send_probe();
    bool take_id();
    void send_message(bool is_read, std::uint64_t address, std::uint64_t count,
                      const std::uint8_t* data);
    bool send_piece(operation& op);
    std::size_t data_offset() const {
        return m_layout == dma_layout::COUNT32 ? protocol::DMA_DATA_COUNT32
                                               : protocol::DMA_DATA;
    }
    int accept(operation& op, const protocol::header& header,
               const std::uint8_t* payload, std::size_t size);

    std::chrono::milliseconds m_timeout;
    const dma_layout m_configured_layout;
    dma_layout m_layout;  ///< DETECT until the client has shown its own
    std::uint32_t m_max_transfer;
    send_function m_send;
    std::uint16_t m_next_id = 0;
    std::unordered_map<std::uint16_t, operation> m_active;
    /// Given up, but the reply may still come: the number is not reused.
    std::unordered_set<std::uint16_t> m_expired;
    std::deque<operation> m_finished;

    bool m_probing = false;
    std::uint16_t m_probe_id = 0;
    clock::time_point m_probe_deadline;
    std::deque<operation> m_waiting;  ///< for the probe
};

}  // namespace vfio_user
}  // namespace prawn

#endif
