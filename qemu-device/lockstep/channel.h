// SPDX-License-Identifier: Apache-2.0
// What guests and model tell one another about time: one file of shared memory
// for a run, one channel for each guest.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_CHANNEL_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_CHANNEL_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace prawn {
namespace lockstep {

// All times here are nanoseconds since the start of the run: the guest's own
// clock plus `base`. Model time is finer; an effect at a fraction of a
// nanosecond takes place at the next whole one.
using nanoseconds = std::uint64_t;
constexpr nanoseconds NEVER = ~std::uint64_t{0} >> 2;

constexpr std::uint64_t MAGIC = 0x505241574e4c0001ULL;  // changes with layout
constexpr unsigned MAX_GUESTS = 16;
constexpr unsigned ACCESSES = 1024;   // posted writes not yet taken
constexpr unsigned INTERRUPTS = 256;  // not yet taken

// Something to sleep on. Who waits says so, looks once more and sleeps; who
// changes what others wait for calls ring() or reached().
struct alignas(64) bell {
    std::atomic<std::uint32_t> rung{0};
    std::atomic<std::uint32_t> sleeping{0};
    // Only news of a clock that has reached this are worth waking up for.
    std::atomic<nanoseconds> needs{0};
};

// A posted write, as seen on the guest's bus.
struct access {
    nanoseconds time;
    std::uint64_t data;
    std::uint64_t offset;
    std::uint32_t bar;
    std::uint32_t size;
};

struct interrupt {
    static constexpr std::uint32_t INTX = 0x10000;  // | level
    nanoseconds time;
    std::uint32_t vector;
    std::uint32_t rsvd;
};

enum class presence : std::uint32_t { AWAITED, HERE, GONE };

struct channel {
    // Written by the guest. -----------------------------------------------
    struct alignas(64) {
        // The plugin is there, in this process.
        std::atomic<std::uint32_t> joined{0};
        std::atomic<std::uint32_t> pid{0};
        // The virtual CPU runs.
        std::atomic<std::uint32_t> started{0};
        // All accesses up to this time are in the ring; the next comes later.
        std::atomic<nanoseconds> time{0};
        // Not 0: halted; acts at this time at the earliest, unless an
        // interrupt comes first.
        std::atomic<nanoseconds> idle_until{0};
        std::atomic<std::uint64_t> accesses{0};
        std::atomic<std::uint64_t> interrupts_taken{0};
        std::atomic<std::uint32_t> answered{0};
        std::atomic<nanoseconds> answer{0};
    } guest;
    // Written by the model. -------------------------------------------------
    struct alignas(64) {
        std::atomic<presence> state{presence::AWAITED};
        std::atomic<nanoseconds> base{0};
        // Nothing reaches this guest before; it waits when it gets there.
        std::atomic<nanoseconds> horizon{0};
        // The same, should the guest access the card meanwhile: an access can
        // shift what is on the bus already.
        std::atomic<nanoseconds> disturbed{0};
        // The guest itself does nothing before (it waits in a BAR read).
        std::atomic<nanoseconds> floor{0};
        std::atomic<std::uint64_t> accesses_taken{0};
        std::atomic<std::uint64_t> interrupts{0};
        // When the latest BAR read or stalled write ended.
        std::atomic<nanoseconds> stalled_until{0};
        // Asks what time it is, while the guest waits for an answer.
        std::atomic<std::uint32_t> asked{0};
    } model;
    bell guest_bell;
    access ring[ACCESSES];
    interrupt interrupts[INTERRUPTS];
};

struct shared {
    std::uint64_t magic = MAGIC;
    std::uint32_t guests = 0;
    std::uint32_t model_pid = 0;
    nanoseconds quantum = 0;
    // How far a guest may be ahead of what others can still do.
    nanoseconds lead = 0;
    // From a guest's write to its first effect on itself.
    nanoseconds to_itself = 0;
    alignas(64) std::atomic<std::uint32_t> ended{0};
    // The model goes on by itself as soon as every guest has come this far.
    std::atomic<nanoseconds> model_next{NEVER};
    bell model_bell;
    channel guest[MAX_GUESTS];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "atomics work between processes");

// Where a guest has to wait until the model has seen its last access.
inline nanoseconds limit_by_access(const shared& all, const channel& c) {
    const std::uint64_t seen = c.model.accesses_taken.load();
    if (seen == c.guest.accesses.load())
        return NEVER;
    const nanoseconds time = c.ring[seen % ACCESSES].time;
    return std::min(time + all.to_itself,
                    std::max(time, c.model.disturbed.load()));
}

// Before this time the guest does nothing that others can notice. The order of
// the loads matters: what may end its sleep first, then whether it sleeps.
inline nanoseconds earliest_action(const channel& c, bool seen_by_guest) {
    if (c.model.state.load() == presence::GONE)
        return NEVER;
    const nanoseconds floor = c.model.floor.load();
    nanoseconds wakes = seen_by_guest ? c.model.horizon.load() : NEVER;
    const std::uint64_t taken = c.guest.interrupts_taken.load();
    if (c.model.interrupts.load() != taken)
        wakes = std::min(wakes, c.interrupts[taken % INTERRUPTS].time);
    nanoseconds first = c.guest.idle_until.load();
    first = first ? std::min(first, wakes) : c.guest.time.load();
    first = std::max(first, floor);
    const std::uint64_t seen = c.model.accesses_taken.load();
    if (c.guest.accesses.load() != seen)
        first = std::min(first, c.ring[seen % ACCESSES].time);
    return first;
}

}  // namespace lockstep
}  // namespace prawn

#endif
