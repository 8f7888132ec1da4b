// SPDX-License-Identifier: Apache-2.0
// What the PTP clocks of cards run on while guests run free.

#ifndef PRAWN_QEMU_DEVICE_BRIDGE_WALL_CLOCK_H
#define PRAWN_QEMU_DEVICE_BRIDGE_WALL_CLOCK_H

#include <cstdint>

#include <time.h>

#include "host/host_port.h"

namespace prawn {

// CLOCK_MONOTONIC, which is what a guest without instruction counting has its
// time from, since this object was made.
class wall_clock final : public time_base_if
{
public:
    std::uint64_t now_ns() override { return monotonic_ns() - m_origin; }

private:
    static std::uint64_t monotonic_ns() {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1000000000 +
               static_cast<std::uint64_t>(t.tv_nsec);
    }
    const std::uint64_t m_origin = monotonic_ns();
};

}  // namespace prawn

#endif
