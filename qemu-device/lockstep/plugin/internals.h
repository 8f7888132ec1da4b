// SPDX-License-Identifier: GPL-2.0-or-later
// The functions of QEMU that its executable exports, found by name when the
// plugin is loaded.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_INTERNALS_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_INTERNALS_H

#include <cstdint>

namespace prawn {
namespace lockstep {

constexpr int QEMU_CLOCK_VIRTUAL = 1;

struct internals {
    std::int64_t (*clock_get_ns)(int clock) = nullptr;
    std::int64_t (*icount_raw)() = nullptr;
    void (*timer_init)(void* timer, void* list_group, int clock, int scale,
                       int attributes, void (*call)(void*),
                       void* opaque) = nullptr;
    void (*timer_mod_ns)(void* timer, std::int64_t at) = nullptr;
    std::int64_t (*clock_deadline_ns)(int clock, int attributes) = nullptr;
    void (*lock)(const char* file, int line) = nullptr;
    void (*unlock)() = nullptr;
    void* (*get_cpu)(int index) = nullptr;
    void (*run_on_cpu_later)(void* cpu, void (*call)(void* cpu, std::uint64_t),
                             std::uint64_t) = nullptr;
    void (*cpu_exit)(void* cpu) = nullptr;
    // Back to before the block whose generated code returns to `from`.
    void (*leave_block)(void* cpu, std::uintptr_t from) = nullptr;
    bool (*cpu_has_work)(void* cpu) = nullptr;
    bool (*is_running)() = nullptr;
    void* (*find_device)(const char* path, const char* type,
                         bool* ambiguous) = nullptr;
    std::uint64_t (*bar_address)(void* device, int bar) = nullptr;
    void (*msix_notify)(void* device, unsigned vector) = nullptr;
    void (*set_intx)(void* device, int level) = nullptr;
    char* timers_state = nullptr;

    // Of the calling thread.
    static void** current_cpu();

    // The name of what is missing; null if nothing is.
    const char* find();
};

// sizeof(TimersState) of QEMU 11 is well above it; the counter is looked for
// in the first bytes.
constexpr unsigned TIMERS_STATE_WORDS = 16;
// Room for a QEMUTimer, which has 48 bytes in QEMU 11.
constexpr unsigned TIMER_BYTES = 256;

}  // namespace lockstep
}  // namespace prawn

#endif
