// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_TIME_MODE_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_TIME_MODE_H

#include <cstdint>
#include <string>

#include "options.h"

namespace prawn::launch {

// How a run keeps time, from wherever it was said: --time, --set, --config.
struct time_mode {
    bool synchronized = false;
    std::uint64_t quantum_ns = 1000;
    // Of -icount: the guests' CPU executes an instruction in 2^shift ns.
    unsigned shift = 0;

    std::string name() const {
        return synchronized ? "synchronized" : "free-running";
    }
};

// Nanoseconds of a text such as 1us, 250ns, 1ms; 0 when it is none.
std::uint64_t parse_quantum(const std::string& text);

// Name of the profile's file without its directory, and the file.
std::string profile_of(const options& opts);
std::string profile_file(const options& opts);

// Throws a failure (EXIT_USAGE) when what the run is to be does not go together
// with its mode.
time_mode resolve_time(const options& opts);

}  // namespace prawn::launch

#endif
