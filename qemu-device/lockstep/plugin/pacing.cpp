// SPDX-License-Identifier: GPL-2.0-or-later
#include "pacing.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "qemu-device/lockstep/bell.h"

namespace prawn {
namespace lockstep {

namespace {

pacing* the_guest = nullptr;

// Spinning is for what comes within a few microseconds.
constexpr unsigned SPINS = 300;

}  // namespace

pacing::pacing(shared& all, unsigned node, unsigned shift,
               const internals& qemu) :
    m_all(all),
    m_me(all.guest[node]),
    m_node(node),
    m_shift(shift),
    m_qemu(qemu),
    m_clock(m_qemu),
    m_bus(m_qemu) {
    the_guest = this;
    m_me.guest.pid.store(static_cast<std::uint32_t>(::getpid()));
    m_me.guest.joined.store(1);
    m_count.score = qemu_plugin_scoreboard_new(sizeof(std::uint64_t));
}

void pacing::started() {
    m_executed = static_cast<std::uint64_t*>(
        qemu_plugin_scoreboard_find(m_count.score, 0));
    stop_at_next_block();
    void* cpu = m_qemu.get_cpu(0);
    m_qemu.timer_init(
        m_timer, nullptr, QEMU_CLOCK_VIRTUAL, 1, 0,
        [](void* self) {
            auto& guest = *static_cast<pacing*>(self);
            guest.m_armed = 0;
            const auto nothing = [](void*, std::uint64_t) {};
            guest.m_qemu.run_on_cpu_later(
                guest.m_cpu,
                [](void*, std::uint64_t) { the_guest->exact_stop(); }, 0);
            // Or the main loop sees an idle CPU once the first has begun, and
            // moves the clock on.
            guest.m_qemu.run_on_cpu_later(guest.m_cpu, nothing, 0);
        },
        this);
    m_cpu = cpu;
}

void pacing::ended() {
    if (trace)
        std::fprintf(stderr,
                     "prawn-lockstep: %lu ns: %lu checks, %lu waits, %lu "
                     "splits, %lu stops, %lu idles, %lu halts, %lu interrupts, "
                     "%lu writes, %lu reads, counter %s\n",
                     m_clock.now(), m_counts.checks, m_counts.waits,
                     m_counts.splits, m_counts.stops, m_counts.idles,
                     m_counts.halts, m_counts.interrupts, m_counts.writes,
                     m_counts.reads, m_clock.known() ? "known" : "unknown");
    m_me.guest.time.store(NEVER);
    m_me.guest.idle_until.store(0);
    for (unsigned i = 0; i < m_all.guests; i++)
        ring(m_all.guest[i].guest_bell);
    ring(m_all.model_bell);
}

void pacing::translated(qemu_plugin_tb* tb) {
    const std::uint64_t n = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(
        tb, on_block, QEMU_PLUGIN_CB_RW_REGS, QEMU_PLUGIN_COND_GT, m_count,
        FULL - n, reinterpret_cast<void*>(n));
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
        tb, QEMU_PLUGIN_INLINE_ADD_U64, m_count, n);
    // Under -icount an access to a device is always the last of its block.
    qemu_plugin_insn* last = qemu_plugin_tb_get_insn(tb, n - 1);
    std::uint8_t code[16];
    const std::size_t size = qemu_plugin_insn_data(last, code, sizeof code);
    if (bus_watch::halts(code, size))
        qemu_plugin_register_vcpu_insn_exec_cb(last, on_halt,
                                               QEMU_PLUGIN_CB_NO_REGS, nullptr);
    else if (bus_watch::may_access(code, size))
        qemu_plugin_register_vcpu_mem_cb(last, on_memory,
                                         QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, nullptr);
}

// -- Limits -----------------------------------------------------------------

// The order of the loads matters: what a guest has done, then what the model
// has made of it.
pacing::limit pacing::find_limit(nanoseconds now) const {
    limit result{NEVER};
    for (unsigned i = 0; i < m_all.guests; i++) {
        if (i == m_node)
            continue;
        const nanoseconds other = earliest_action(m_all.guest[i], true);
        if (other + m_all.lead < result.at) {
            result.at = other + m_all.lead;
            result.moves_alone = now > other || (now == other && m_node > i);
        }
    }
    const nanoseconds unseen = limit_by_access(m_all, m_me);
    if (unseen < result.at)
        result = {unseen, false, true};
    const nanoseconds horizon = m_me.model.horizon.load();
    if (horizon < result.at)
        result = {horizon, false, now >= m_all.model_next.load()};
    const std::uint64_t seen = m_me.guest.interrupts_taken.load();
    if (m_me.model.interrupts.load() != seen) {
        const nanoseconds at = m_me.interrupts[seen % INTERRUPTS].time;
        if (at <= result.at)
            result = {at, true, false};
    }
    return result;
}

bool pacing::interrupt_due(nanoseconds now) const {
    const std::uint64_t seen = m_me.guest.interrupts_taken.load();
    return m_me.model.interrupts.load() != seen &&
           m_me.interrupts[seen % INTERRUPTS].time <= now;
}

void pacing::publish(nanoseconds now) {
    if (now > m_me.guest.time.load())
        m_me.guest.time.store(now);
    if (m_me.guest.idle_until.load() != 0)
        m_me.guest.idle_until.store(0);
    for (unsigned i = 0; i < m_all.guests; i++)
        if (i != m_node)
            reached(m_all.guest[i].guest_bell, now);
    reached(m_all.model_bell, now);
}

// False: QEMU is to be paused, or there is nobody left to wait for.
bool pacing::may_wait() {
    if (m_all.ended.load() != 0 ||
        (::kill(static_cast<pid_t>(m_all.model_pid), 0) != 0 && errno == ESRCH))
        m_free = true;
    return !m_free && m_qemu.is_running();
}

// Until the limit is beyond `needed`, or an interrupt is due.
void pacing::wait_for(nanoseconds now, nanoseconds needed) {
    m_counts.waits++;
    wait(
        m_me.guest_bell, needed > m_all.lead ? needed - m_all.lead : 0, SPINS,
        [&] {
            const limit l = find_limit(now);
            return l.by_interrupt || l.at >= needed || !l.moves_alone;
        },
        [&] { return may_wait(); });
}

// -- At the start of a block --------------------------------------------------

void pacing::on_block(unsigned, void* insns) {
    const auto from =
        reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    pacing& self = *the_guest;
    const auto n = reinterpret_cast<std::uint64_t>(insns);
    const nanoseconds end = self.m_clock.now();
    if (!self.m_clock.known())
        self.m_clock.calibrate();
    self.m_halted = false;
    self.check(self.m_me.model.base.load() + end - (n << self.m_shift), n,
               from);
}

void pacing::check(nanoseconds begin, std::uint64_t insns,
                   std::uintptr_t from) {
    m_counts.checks++;
    if (m_me.guest.started.load() == 0) {
        m_me.guest.started.store(1);
        ring(m_all.model_bell);
    }
    publish(begin);
    while (!m_free) {
        const limit l = find_limit(begin);
        if (l.by_interrupt && l.at <= begin) {
            m_qemu.run_on_cpu_later(
                m_cpu, [](void*, std::uint64_t) { the_guest->exact_stop(); },
                0);
            leave_block(from);
        }
        const std::uint64_t room = l.at > begin ? insns_until(begin, l.at) : 0;
        if (room >= insns) {
            const std::uint64_t step =
                std::max(insns, insns_until(0, m_all.quantum));
            *m_executed = FULL - std::min(room, step);
            return;
        }
        if (room > 0 && !l.moves_alone) {
            arm(l.at);
            leave_block(from);
        }
        wait_for(begin, begin + (insns << m_shift));
        if (!m_qemu.is_running())
            leave_block(from);
    }
    *m_executed = 0;
}

// None of the block has been executed; QEMU takes back that it has counted it.
void pacing::leave_block(std::uintptr_t from) {
    m_counts.splits++;
    stop_at_next_block();
    m_qemu.cpu_exit(m_cpu);
    // As QEMU's own helpers say where they were called: inside the call.
    m_qemu.leave_block(m_cpu, from - 2);
    __builtin_unreachable();
}

void pacing::arm(nanoseconds at) {
    if (m_armed && m_armed <= at)
        return;
    m_armed = at;
    m_qemu.timer_mod_ns(m_timer,
                        static_cast<std::int64_t>(at - m_me.model.base.load()));
}

// -- Between two instructions
// ---------------------------------------------------

// With QEMU's big lock.
void pacing::exact_stop() {
    const nanoseconds now = m_me.model.base.load() + m_clock.now();
    m_counts.stops++;
    stop_at_next_block();
    if (m_free)
        return;
    raise_interrupts(now);
    if (m_halted && !m_qemu.cpu_has_work(m_cpu)) {
        idle(now);
        return;
    }
    publish(now);
    while (!m_free) {
        raise_interrupts(now);
        const limit l = find_limit(now);
        if (l.at > now)
            return;
        m_qemu.unlock();
        wait_for(now, now + 1);
        m_qemu.lock(__FILE__, __LINE__);
        if (!m_qemu.is_running())
            return;
    }
}

void pacing::raise_interrupts(nanoseconds now) {
    while (interrupt_due(now)) {
        publish(now);
        const std::uint64_t seen = m_me.guest.interrupts_taken.load();
        const interrupt i = m_me.interrupts[seen % INTERRUPTS];
        if (void* card = m_bus.card()) {
            if (i.vector & interrupt::INTX)
                m_qemu.set_intx(card, static_cast<int>(i.vector & 1));
            else
                m_qemu.msix_notify(card, i.vector);
        }
        m_me.guest.interrupts_taken.store(seen + 1);
        m_counts.interrupts++;
    }
}

// The CPU has halted. QEMU moves the clock of a halted guest to its next timer
// at once; ours is there where it may go at most.
void pacing::idle(nanoseconds now) {
    m_counts.idles++;
    const std::int64_t until = m_qemu.clock_deadline_ns(QEMU_CLOCK_VIRTUAL, -1);
    const nanoseconds deadline =
        until < 0 ? NEVER : now + static_cast<nanoseconds>(until);
    if (deadline <= now) {
        publish(now);
        arm(now + 1);
        return;
    }
    m_me.guest.time.store(now);
    m_me.guest.idle_until.store(deadline);
    for (unsigned i = 0; i < m_all.guests; i++)
        if (i != m_node)
            reached(m_all.guest[i].guest_bell, deadline);
    reached(m_all.model_bell, deadline);
    nanoseconds target = 0;
    const auto found = [&] {
        const limit l = find_limit(now);
        if (l.by_interrupt)
            target = std::max(l.at, now + 1);
        else if (l.at >= deadline)
            target = deadline;
        else
            return false;
        return true;
    };
    if (!found()) {
        m_qemu.unlock();
        wait(m_me.guest_bell, deadline > m_all.lead ? deadline - m_all.lead : 0,
             SPINS, found, [&] { return may_wait(); });
        m_qemu.lock(__FILE__, __LINE__);
    }
    arm(target > now ? target : now + 1);
}

void pacing::on_halt(unsigned, void*) {
    pacing& self = *the_guest;
    self.m_halted = true;
    self.m_counts.halts++;
    self.stop_at_next_block();
    self.arm(self.m_me.model.base.load() + self.m_clock.now() + 1);
}

// -- The card's registers
// -------------------------------------------------------

void pacing::on_memory(unsigned, qemu_plugin_meminfo_t info,
                       std::uint64_t vaddr, void*) {
    if (bus_watch::plain(vaddr))
        return;
    pacing& self = *the_guest;
    std::uint64_t offset = 0;
    const int bar = self.m_bus.bar_of(info, vaddr, offset);
    if (bar < 0 || self.m_free)
        return;
    channel& me = self.m_me;
    const nanoseconds now = me.model.base.load() + self.m_clock.now();
    self.stop_at_next_block();
    if (!qemu_plugin_mem_is_store(info)) {
        self.m_counts.reads++;
        const nanoseconds until = me.model.stalled_until.load();
        if (until > now && self.m_clock.known()) {
            self.m_clock.add(
                static_cast<std::int64_t>(self.insns_until(now, until)));
            self.m_qemu.cpu_exit(self.m_cpu);
        }
        return;
    }
    self.m_counts.writes++;
    const qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);
    const std::uint64_t words[2] = {
        value.type == 4 ? value.data.u128.low : value.data.u64,
        value.data.u128.high};
    // QEMU hands an access on in naturally aligned pieces.
    std::uint64_t left = std::uint64_t{1} << qemu_plugin_mem_size_shift(info);
    for (std::uint64_t done = 0; left > 0;) {
        const std::uint64_t at = offset + done;
        const std::uint64_t size = std::uint64_t{1}
                                   << __builtin_ctzll(left | at | 8);
        const std::uint64_t n = me.guest.accesses.load();
        while (n - me.model.accesses_taken.load() >= ACCESSES &&
               self.may_wait())
            sched_yield();
        std::uint64_t data = 0;
        std::memcpy(&data, reinterpret_cast<const char*>(words) + done, size);
        me.ring[n % ACCESSES] = {now, data, at, static_cast<std::uint32_t>(bar),
                                 static_cast<std::uint32_t>(size)};
        me.guest.accesses.store(n + 1);
        done += size;
        left -= size;
    }
    ring(self.m_all.model_bell);
}

void pacing::answer_questions() {
    for (;;) {
        const std::uint32_t asked = m_me.model.asked.load();
        if (asked == m_me.guest.answered.load()) {
            futex(m_me.model.asked, FUTEX_WAIT, asked, nullptr);
            continue;
        }
        nanoseconds now = m_me.model.base.load();
        if (void* cpu = m_cpu) {
            // QEMU reads the clock of the CPU that this thread claims to be;
            // that one waits for the card.
            *internals::current_cpu() = cpu;
            now += m_clock.now();
        }
        m_me.guest.answer.store(now);
        m_me.guest.answered.store(asked);
        futex(m_me.guest.answered, FUTEX_WAKE, 1, nullptr);
    }
}

}  // namespace lockstep
}  // namespace prawn
