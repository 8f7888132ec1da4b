// SPDX-License-Identifier: Apache-2.0
//
// Cuts the byte stream of one client into messages, together with the file
// descriptors that came with each.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_MESSAGE_READER_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_MESSAGE_READER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "qemu-device/vfio_user/protocol.h"
#include "qemu-device/vfio_user/unique_fd.h"

namespace prawn {
namespace vfio_user {

/// One message. The payload points into the reader's buffer and is valid
/// until the reader is called again; it has no particular alignment.
struct message {
    protocol::header header{};
    const std::uint8_t* payload = nullptr;
    std::size_t size = 0;  ///< of the payload
    std::vector<unique_fd> fds;
    bool fds_lost = false;      ///< the kernel could not deliver all of them
    bool fds_too_many = false;  ///< more than any message may have: closed
};

class message_reader
{
public:
    explicit message_reader(std::uint32_t max_message_size);

    enum class received { DATA, NOTHING, END, FAILED };

    /// One recvmsg that takes what is there, up to the next descriptors.
    received receive(int socket);

    enum class parsed { NONE, MESSAGE, BAD_SIZE };

    /// The next complete message. After BAD_SIZE the stream is lost.
    parsed next(message& out);

    /// Whether a message has begun and not ended.
    bool is_partial() const { return m_begin != m_end; }

    void clear();

private:
    struct batch {
        std::size_t end;  ///< offset after the bytes it came with
        std::vector<unique_fd> fds;
        bool lost;
        bool too_many;
    };

    void make_room();
    void keep(batch b);
    void take_fds(std::size_t message_end, message& out);

    std::uint32_t m_max_message_size;
    std::size_t m_capacity;
    std::unique_ptr<std::uint8_t[]> m_buffer;
    std::size_t m_begin = 0;
    std::size_t m_end = 0;
    std::vector<batch> m_batches;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
