// SPDX-License-Identifier: GPL-2.0-or-later
// The guest's virtual clock under -icount: reading and moving it.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_GUEST_CLOCK_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_GUEST_CLOCK_H

#include <cstdint>

#include "internals.h"

namespace prawn {
namespace lockstep {

// add() needs the place of QEMU's instruction counter inside timers_state. It
// is found by looking for its value, a few times, while the counter moves.
class guest_clock
{
public:
    explicit guest_clock(const internals& qemu) : m_qemu(qemu) {}

    // In nanoseconds. Within a block: as if all of it had been executed.
    std::uint64_t now() const {
        return static_cast<std::uint64_t>(
            m_qemu.clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    // Instructions that pass without being executed, or (negative) that were
    // counted and will be executed again. Only after now() in the same place,
    // and only if known().
    void add(std::int64_t insns) {
        __atomic_store_n(m_counter, *m_counter + insns, __ATOMIC_SEQ_CST);
    }
    bool known() const { return m_counter != nullptr; }
    // Call it after now(), at different times, until known().
    void calibrate();
    // No word of timers_state behaves like the counter.
    bool hopeless() const { return m_candidates == 0; }

private:
    const internals& m_qemu;
    std::int64_t* m_counter = nullptr;
    std::uint32_t m_candidates = (1U << TIMERS_STATE_WORDS) - 1;
    std::int64_t m_last = 0;
    unsigned m_looks = 0;
};

}  // namespace lockstep
}  // namespace prawn

#endif
