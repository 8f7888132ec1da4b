// SPDX-License-Identifier: Apache-2.0

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_GUARDED_COPY_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_GUARDED_COPY_H

namespace prawn {
namespace vfio_user {

/// Needed once before guarded_copy and guarded_publish (guest_memory.h).
/// Any thread, any number of times. Keeps what was installed before and hands
/// every SIGBUS to it that does not come from a guarded copy.
void install_sigbus_handler();

}  // namespace vfio_user
}  // namespace prawn

#endif
