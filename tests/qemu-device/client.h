// SPDX-License-Identifier: Apache-2.0
//
// A vfio-user client without QEMU, for tests and benchmarks. It can speak the
// protocol properly, and break it in every way that a socket permits.

#ifndef PRAWN_TESTS_QEMU_DEVICE_CLIENT_H
#define PRAWN_TESTS_QEMU_DEVICE_CLIENT_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qemu-device/vfio_user/protocol.h"
#include "qemu-device/vfio_user/unique_fd.h"

namespace prawn {
namespace vfio_user {

using bytes = std::vector<std::uint8_t>;

template <typename T>
bytes to_bytes(const T& value) {
    bytes b(sizeof(value));
    __builtin_memcpy(b.data(), &value, sizeof(value));
    return b;
}

struct client_message {
    protocol::header header{};
    bytes payload;

    bool is_error() const { return (header.flags & protocol::FLAG_ERROR) != 0; }
    /// Of an error reply, 0 otherwise.
    int error() const {
        return is_error() ? static_cast<int>(header.error) : 0;
    }
    template <typename T>
    T as() const {
        T value{};
        if (payload.size() >= sizeof(T))
            __builtin_memcpy(&value, payload.data(), sizeof(T));
        return value;
    }
};

/// Not thread-safe. Calls throw std::runtime_error when the server does not
/// answer in time or has closed the connection, where that is not the answer.
class client
{
public:
    explicit client(const std::string& socket_path);
    /// Takes a connected socket.
    explicit client(unique_fd socket);

    static constexpr const char* DEFAULT_CAPABILITIES =
        R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,)"
        R"("pgsizes":4096,"max_dma_maps":65535,"write_multiple":true,)"
        R"("migration":{"pgsize":4096,"max_bitmap_size":268435456}}})";

    void set_timeout(int milliseconds);
    int socket() const { return m_socket.get(); }
    void close() { m_socket.reset(); }

    // Whole messages. ------------------------------------------------------
    /// Returns the message id.
    std::uint16_t send(std::uint16_t command, const bytes& payload,
                       std::uint32_t flags = 0,
                       const std::vector<int>& fds = {});
    void send_raw(const void* data, std::size_t size,
                  const std::vector<int>& fds = {});
    void send_raw(const bytes& data, const std::vector<int>& fds = {}) {
        send_raw(data.data(), data.size(), fds);
    }
    /// The next reply; empty if the server has closed the connection.
    std::optional<client_message> receive();
    /// The next command of the server (DMA_READ, DMA_WRITE).
    std::optional<client_message> receive_command();
    /// Sends and waits for the reply, which must be this request's.
    client_message transact(std::uint16_t command, const bytes& payload,
                            const std::vector<int>& fds = {});
    /// Whether the server closes the connection within the time-out.
    bool is_closed();
    /// Whether nothing comes for so long.
    bool is_silent(int milliseconds);

    // Commands; the int ones return the error of the reply, or 0. -----------
    client_message negotiate(const char* text = DEFAULT_CAPABILITIES);
    protocol::device_info device_info();
    protocol::region_info region_info(std::uint32_t index);
    protocol::irq_info irq_info(std::uint32_t index);

    /// Throws on an error reply.
    std::uint64_t read(std::uint32_t region, std::uint64_t offset,
                       std::uint32_t size);
    void write(std::uint32_t region, std::uint64_t offset, std::uint32_t size,
               std::uint64_t value);
    void post(std::uint32_t region, std::uint64_t offset, std::uint32_t size,
              std::uint64_t value);
    client_message read_block(std::uint32_t region, std::uint64_t offset,
                              std::uint32_t size);
    client_message write_block(std::uint32_t region, std::uint64_t offset,
                               const bytes& data);

    std::uint64_t config_read(std::uint64_t offset, std::uint32_t size) {
        return read(protocol::REGION_CONFIG, offset, size);
    }
    void config_write(std::uint64_t offset, std::uint32_t size,
                      std::uint64_t value) {
        write(protocol::REGION_CONFIG, offset, size, value);
    }

    int dma_map(std::uint64_t iova, std::uint64_t size, int fd = -1,
                std::uint64_t offset = 0,
                std::uint32_t flags = protocol::DMA_FLAG_READ |
                                      protocol::DMA_FLAG_WRITE);
    int dma_unmap(std::uint64_t iova, std::uint64_t size,
                  std::uint32_t flags = 0);
    int set_irqs(std::uint32_t index, std::uint32_t flags, std::uint32_t start,
                 std::uint32_t count, const std::vector<int>& fds = {},
                 const bytes& data = {});
    int reset();

    /// Answers one DMA_READ or DMA_WRITE of the server, the way QEMU does,
    /// from `memory` whose first byte has the address `base`. With count32
    /// like the QEMUs whose count has 32 bits.
    bool serve_dma(bytes& memory, std::uint64_t base, bool count32 = false);
    void reply(const protocol::header& request, const bytes& payload,
               int error = 0);

private:
    bool wait_readable(int milliseconds);
    bool receive_exactly(void* data, std::size_t size);
    std::optional<client_message> receive_any();

    unique_fd m_socket;
    int m_timeout = 10000;
    std::uint16_t m_next_id = 100;
    bytes m_leftover;  ///< received, but not yet taken
    std::deque<client_message> m_commands;
    std::deque<client_message> m_replies;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
