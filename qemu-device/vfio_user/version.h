// SPDX-License-Identifier: Apache-2.0
//
// VERSION negotiation.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_VERSION_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_VERSION_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qemu-device/vfio_user/protocol.h"

namespace prawn {
namespace vfio_user {

/// What client and server have agreed upon.
struct capabilities {
    std::uint32_t max_msg_fds = protocol::DEFAULT_MAX_FDS;
    std::uint32_t max_data_xfer_size = protocol::DEFAULT_MAX_DATA_XFER;
    std::uint32_t max_dma_maps = protocol::DEFAULT_MAX_DMA_MAPS;
    bool write_multiple = false;
};

/// Answers the payload of a VERSION request. `offer` is what the server can
/// do. Returns 0 and fills `agreed` and the payload of the reply, or an errno
/// value. The reply holds only capabilities that the client proposed, and is
/// never longer than the request (QEMU's client requires both).
int negotiate_version(const std::uint8_t* payload, std::size_t size,
                      const capabilities& offer, capabilities& agreed,
                      std::vector<std::uint8_t>& reply);

}  // namespace vfio_user
}  // namespace prawn

#endif
