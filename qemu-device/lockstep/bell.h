// SPDX-License-Identifier: Apache-2.0
// Sleeping and waking between the processes of a run.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_BELL_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_BELL_H

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qemu-device/lockstep/channel.h"

namespace prawn {
namespace lockstep {

inline long futex(std::atomic<std::uint32_t>& word, int operation,
                  std::uint32_t value, const timespec* timeout) {
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
                     operation, value, timeout, nullptr, 0);
}

inline void ring(bell& b) {
    if (b.sleeping.load() == 0)
        return;
    b.rung.fetch_add(1);
    futex(b.rung, FUTEX_WAKE, INT_MAX, nullptr);
}

// A clock has been moved to `time`.
inline void reached(bell& b, nanoseconds time) {
    if (b.sleeping.load() != 0 && time >= b.needs.load())
        ring(b);
}

// Until done() holds: looks `spins` times, then sleeps. Every 20 ms it calls
// alive(); false ends the wait. Returns done(). The caller is the only one who
// waits on this bell.
template <typename DONE, typename ALIVE>
bool wait(bell& b, nanoseconds needs, unsigned spins, DONE done, ALIVE alive) {
    for (unsigned i = 0; i < spins; i++) {
        if (done())
            return true;
        __builtin_ia32_pause();
    }
    b.needs.store(needs);
    b.sleeping.store(1);
    bool held = false;
    for (;;) {
        const std::uint32_t rung = b.rung.load();
        held = done();
        if (held)
            break;
        const timespec timeout{0, 20'000'000};
        if (futex(b.rung, FUTEX_WAIT, rung, &timeout) != 0 &&
            errno == ETIMEDOUT && !alive())
            break;
    }
    b.sleeping.store(0);
    return held;
}

}  // namespace lockstep
}  // namespace prawn

#endif
