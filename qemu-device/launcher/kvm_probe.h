// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_KVM_PROBE_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_KVM_PROBE_H

#include <string>

namespace prawn::launch {

// Whether KVM executes code here: runs one instruction in a machine of its
// own, in a process of its own, and gives up after a few seconds, because
// there are machines where /dev/kvm opens and then hangs. Empty when it works,
// else what is wrong.
std::string kvm_trouble();

}  // namespace prawn::launch

#endif
