// SPDX-License-Identifier: GPL-2.0-or-later
// One guest in step with the others and with the model.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_PACING_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_PACING_H

#include <atomic>
#include <cstdint>

#include "bus_watch.h"
#include "guest_clock.h"
#include "internals.h"
#include "qemu-device/lockstep/channel.h"
#include "qemu_abi.h"

namespace prawn {
namespace lockstep {

// The guest's clock counts instructions. At the start of a block that might
// pass a limit, check() publishes the time and waits until the limit has moved.
// Limits are: the model's horizon, the next interrupt, what the other guests
// may do, and the guest's own writes that the model has not seen. If nobody can
// go on without this guest, the block is split: QEMU is made to stop exactly at
// the limit (a timer of its virtual clock, which -icount keeps to the
// instruction), and exact_stop() waits there, between two instructions and
// without QEMU's big lock. Interrupts are raised there too.
//
// Everything runs on the virtual CPU's thread, but for answer_questions().
class pacing
{
public:
    pacing(shared& all, unsigned node, unsigned shift, const internals& qemu);

    void translated(qemu_plugin_tb* tb);
    void started();
    void ended();
    // A thread of its own: tells the model the time while the virtual CPU
    // waits for an answer of the card.
    [[noreturn]] void answer_questions();

    bool trace = false;

private:
    struct limit {
        nanoseconds at;
        bool by_interrupt = false;
        // Whoever set it gets further without this guest.
        bool moves_alone = false;
    };
    static constexpr std::uint64_t FULL = std::uint64_t{1} << 40;

    static void on_block(unsigned, void* insns);
    static void on_halt(unsigned, void*);
    static void on_memory(unsigned, qemu_plugin_meminfo_t info,
                          std::uint64_t vaddr, void*);

    void check(nanoseconds begin, std::uint64_t insns, std::uintptr_t from);
    void exact_stop();
    void idle(nanoseconds now);
    limit find_limit(nanoseconds now) const;
    bool interrupt_due(nanoseconds now) const;
    void raise_interrupts(nanoseconds now);
    void publish(nanoseconds now);
    void wait_for(nanoseconds now, nanoseconds needed);
    bool may_wait();
    [[noreturn]] void leave_block(std::uintptr_t from);
    void arm(nanoseconds at);
    void stop_at_next_block() { *m_executed = FULL; }
    std::uint64_t insns_until(nanoseconds from, nanoseconds to) const {
        return (to - from + (nanoseconds{1} << m_shift) - 1) >> m_shift;
    }

    shared& m_all;
    channel& m_me;
    const unsigned m_node;
    const unsigned m_shift;
    const internals m_qemu;
    guest_clock m_clock;
    bus_watch m_bus;
    qemu_plugin_u64 m_count{};
    std::uint64_t* m_executed = nullptr;
    std::atomic<void*> m_cpu{nullptr};
    alignas(16) char m_timer[TIMER_BYTES] = {};
    nanoseconds m_armed = 0;
    bool m_halted = false;
    struct {
        std::uint64_t checks = 0, waits = 0, splits = 0, stops = 0, idles = 0;
        std::uint64_t halts = 0, interrupts = 0, writes = 0, reads = 0;
    } m_counts;
    bool m_free = false;  // the model has gone: nothing to wait for
};

}  // namespace lockstep
}  // namespace prawn

#endif
