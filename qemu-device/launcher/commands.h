// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_COMMANDS_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_COMMANDS_H

#include "session.h"

namespace prawn::launch {

// The sub-commands. Each returns the launcher's exit status or throws a
// failure; the session stops what was started.
int run_boot(session& run);
int run_demo(session& run);
int run_sim(session& run);
int run_bench(session& run);

}  // namespace prawn::launch

#endif
