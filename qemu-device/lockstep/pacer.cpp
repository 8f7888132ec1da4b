// SPDX-License-Identifier: Apache-2.0
#include "qemu-device/lockstep/pacer.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>

#include "qemu-device/lockstep/bell.h"
#include "prawn_hw.h"
#include "support/block.h"

namespace prawn {
namespace lockstep {

namespace {

constexpr unsigned SPINS = 300;
constexpr std::uint64_t NEVER_PS = ~std::uint64_t{0};

nanoseconds up(std::uint64_t ps) {
    return (ps + 999) / 1000;
}

// A zombie does not.
bool process_lives(std::uint32_t pid) {
    const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0)
        return false;
    pollfd exited{fd, POLLIN, 0};
    const bool lives = ::poll(&exited, 1, 0) == 0;
    ::close(fd);
    return lives;
}

}  // namespace

// The shortest way from one guest to another: a write reaches the card, which
// sends a packet (that it is up, say), and the other card writes memory. To
// itself: the card writes memory or interrupts.
lookahead lookahead::of(const timing_profile& p) {
    lookahead l;
    l.card_to_host_ps =
        std::min({p.bus.write_latency.value(), p.bus.read_latency.value(),
                  p.bus.interrupt.value()});
    const std::uint64_t there = p.bus.mmio_write.value();
    l.to_itself = (there + l.card_to_host_ps) / 1000;
    l.between_guests =
        (there + p.link.latency.value() + l.card_to_host_ps) / 1000;
    return l;
}

std::uint32_t time_mode_register(nanoseconds quantum,
                                 const timing_profile& profile) {
    constexpr std::uint32_t SYNCHRONIZED = 1;
    const bool skewed = quantum > pacer::EXACT_QUANTUM &&
                        quantum > lookahead::of(profile).between_guests;
    return SYNCHRONIZED | (skewed ? PRAWN_TIME_MODE_SKEWED_MASK : 0);
}

namespace {
bell* model_bell = nullptr;  // of the one pacer of this process
}

pacer::pacer(const std::string& file, nanoseconds quantum,
             const timing_profile& profile) :
    m_file(file), m_all(m_file.get()), m_look(lookahead::of(profile)) {
    m_all.quantum = quantum;
    m_all.lead = quantum <= EXACT_QUANTUM
                     ? std::min(quantum, m_look.between_guests)
                     : quantum;
    m_all.to_itself = m_look.to_itself;
    model_bell = &m_all.model_bell;
    kernel_waker::listener().store([] { ring(*model_bell); });
}

pacer::~pacer() {
    kernel_waker::listener().store(nullptr);
    m_all.ended.store(1);
    for (unsigned i = 0; i < m_all.guests; i++)
        ring(m_all.guest[i].guest_bell);
}

void pacer::add(bridge& host, const host_bus& bus) {
    const auto node = static_cast<unsigned>(m_guests.size());
    guest g;
    g.host = &host;
    g.bus = &bus;
    m_guests.push_back(g);
    m_all.guests = node + 1;
    host.pace(*this, node);
}

// -- The loop ---------------------------------------------------------------

bool pacer::stopped() const {
    return sc_core::sc_get_status() >= sc_core::SC_STOPPED;
}

void pacer::run() {
    // With an event always ahead the kernel never goes to sleep by itself.
    m_far.notify(sc_core::sc_time::from_value(NEVER * 1000));
    while (!stopped()) {
        m_steps++;
        collect();
        const unsigned wakes = kernel_waker::wakes().load();
        if (wakes != m_wakes) {
            m_wakes = wakes;
            sc_core::sc_start(sc_core::SC_ZERO_TIME);
            continue;
        }
        std::uint64_t next = next_event_ps();
        publish(next);
        const nanoseconds all_at = earliest();
        if (next != NEVER_PS && up(next) <= all_at) {
            // From event to event: the time at which the model comes to rest
            // is that of the last one.
            m_paused = false;
            do {
                sc_core::sc_start(
                    sc_core::sc_time::from_value(next - now_ps()));
                next = next_event_ps();
            } while (!m_paused && !stopped() && next != NEVER_PS &&
                     up(next) <= all_at);
            continue;
        }
        m_sleeps++;
        const nanoseconds needs = next == NEVER_PS ? NEVER : up(next);
        wait(
            m_all.model_bell, needs, SPINS,
            [&] { return news() || (needs != NEVER && earliest() >= needs); },
            [] { return true; });
    }
}

std::uint64_t pacer::next_event_ps() {
    const std::uint64_t now = now_ps();
    const std::uint64_t next =
        now + sc_core::sc_time_to_pending_activity().value();
    return next >= NEVER * 1000 ? NEVER_PS : next;
}

bool pacer::news() const {
    if (m_incoming.load() || kernel_waker::wakes().load() != m_wakes ||
        (m_starting < m_guests.size() && started(m_starting)))
        return true;
    for (std::size_t i = 0; i < m_guests.size(); i++)
        if (m_all.guest[i].guest.accesses.load() != m_guests[i].taken)
            return true;
    return false;
}

bool pacer::started(std::size_t node) const {
    return m_all.guest[node].guest.started.load() != 0;
}

// No guest does anything before, as far as it depends on itself. One that
// waits for a read does nothing before the answer, which ends a step.
nanoseconds pacer::earliest() const {
    nanoseconds first = NEVER;
    for (std::size_t i = 0; i < m_guests.size(); i++)
        if (!m_guests[i].reading)
            first = std::min(first, earliest_action(m_all.guest[i], false));
    return first;
}

void pacer::publish(std::uint64_t next) {
    m_all.model_next.store(next == NEVER_PS ? NEVER : up(next));
    const std::uint64_t now = now_ps();
    for (std::size_t i = 0; i < m_guests.size(); i++) {
        channel& c = m_all.guest[i];
        std::uint64_t effect = m_guests[i].bus->next_effect();
        if (next != NEVER_PS)
            effect = std::min(effect, next + m_look.card_to_host_ps);
        const auto guest_time = [](std::uint64_t ps) {
            return ps >= NEVER * 1000 ? NEVER : up(ps);
        };
        c.model.disturbed.store(guest_time(effect));
        // Nothing happens but by an event.
        const nanoseconds horizon =
            guest_time(next == NEVER_PS ? effect : std::max(effect, next));
        bool changed = horizon != c.model.horizon.load();
        if (changed)
            c.model.horizon.store(horizon);
        if (m_guests[i].reading)
            c.model.floor.store(std::max(c.model.floor.load(), now / 1000));
        // After the horizon that accounts for them.
        if (c.model.accesses_taken.load() != m_guests[i].taken) {
            c.model.accesses_taken.store(m_guests[i].taken);
            changed = true;
        }
        if (changed)
            ring(c.guest_bell);
    }
    for (std::size_t i = 0; i < m_guests.size(); i++)
        if (m_guests[i].reading)
            for (std::size_t k = 0; k < m_guests.size(); k++)
                reached(m_all.guest[k].guest_bell, now / 1000);
}

// -- What guests do -----------------------------------------------------------

void pacer::incoming() {
    m_incoming.store(true);
    ring(m_all.model_bell);
}

// Before a guest executes its first instruction its QEMU sets up the card. That
// is heard of one node after the other, so that it does not matter which of
// them came first.
void pacer::collect() {
    bool sockets = m_incoming.exchange(false);
    while (m_starting < m_guests.size() && started(m_starting)) {
        m_starting++;
        sockets = true;
    }
    for (unsigned i = 0; i < m_guests.size(); i++) {
        if (sockets && i <= m_starting) {
            // It does nothing else before that answer.
            std::atomic<nanoseconds>& floor = m_all.guest[i].model.floor;
            const std::uint64_t since = m_guests[i].host->collect();
            floor.store(std::max(floor.load(), since / 1000));
        }
        take_accesses(i);
    }
}

void pacer::take_accesses(unsigned node) {
    channel& c = m_all.guest[node];
    guest& g = m_guests[node];
    const std::uint64_t made = c.guest.accesses.load();
    if (made - g.taken > ACCESSES)
        g.taken = made - ACCESSES;  // a guest that is none of ours
    for (; g.taken != made; g.taken++) {
        const access& a = c.ring[g.taken % ACCESSES];
        g.host->write_at(a.time * 1000, a.bar, a.offset, a.size, a.data);
    }
}

// A thread of the plugin answers at once, whatever the virtual CPU does.
std::uint64_t pacer::guest_time(unsigned node) {
    m_questions++;
    channel& c = m_all.guest[node];
    if (c.guest.joined.load() == 0)
        return 0;
    const std::uint32_t number = c.model.asked.load() + 1;
    c.model.asked.store(number);
    futex(c.model.asked, FUTEX_WAKE, 1, nullptr);
    unsigned looks = 0;
    for (;;) {
        const std::uint32_t answered = c.guest.answered.load();
        if (answered == number)
            return c.guest.answer.load() * 1000;
        if (++looks < SPINS) {
            __builtin_ia32_pause();
            continue;
        }
        const timespec timeout{0, 20'000'000};
        futex(c.guest.answered, FUTEX_WAIT, answered, &timeout);
        if (!process_lives(c.guest.pid.load()))
            return 0;
    }
}

// -- What the model does
// --------------------------------------------------------

void pacer::reading(unsigned node) {
    m_guests[node].reading = true;
    m_all.guest[node].model.floor.store(up(now_ps()));
}

void pacer::read_answered(unsigned node) {
    channel& c = m_all.guest[node];
    const nanoseconds end = up(now_ps());
    c.model.stalled_until.store(end);
    c.model.floor.store(end);
    m_guests[node].reading = false;
    // The guest may act from here on.
    m_paused = true;
}

void pacer::interrupt(unsigned node, std::uint32_t vector) {
    m_interrupts++;
    delivered(node);
    channel& c = m_all.guest[node];
    const std::uint64_t n = c.model.interrupts.load();
    if (n - c.guest.interrupts_taken.load() >= INTERRUPTS) {
        m_late++;
        return;
    }
    c.interrupts[n % INTERRUPTS] = {up(now_ps()), vector, 0};
    c.model.interrupts.store(n + 1);
    ring(c.guest_bell);
    m_paused = true;
}

void pacer::delivered(unsigned node) {
    m_deliveries++;
    const channel& c = m_all.guest[node];
    if (!m_guests[node].reading && c.guest.idle_until.load() == 0 &&
        c.guest.time.load() > up(now_ps()) && c.guest.time.load() < NEVER &&
        c.model.state.load() == presence::HERE)
        m_late++;
}

void pacer::present(unsigned node, bool here) {
    channel& c = m_all.guest[node];
    if (here) {
        c.model.base.store(up(now_ps()));
        c.model.floor.store(up(now_ps()));
        c.model.state.store(presence::HERE);
        return;
    }
    m_guests[node].reading = false;
    c.guest.joined.store(0);
    c.guest.started.store(0);
    c.guest.time.store(0);
    c.guest.idle_until.store(0);
    c.model.interrupts.store(c.guest.interrupts_taken.load());
    c.model.state.store(presence::GONE);
    for (std::size_t k = 0; k < m_guests.size(); k++)
        ring(m_all.guest[k].guest_bell);
}

std::string pacer::skew() const {
    if (m_all.lead > m_look.between_guests)
        return "a guest may lead by " + std::to_string(m_all.lead) +
               " ns, the lookahead is " +
               std::to_string(m_look.between_guests) + " ns";
    if (m_late > 0)
        return std::to_string(m_late) + " effects came late";
    std::uint64_t mismatched = 0;
    for (const guest& g : m_guests)
        mismatched += g.host->stats().mismatched;
    if (mismatched > 0)
        return std::to_string(mismatched) +
               " writes were seen otherwise by the plugin";
    return {};
}

void pacer::write_statistics(std::ostream& out) const {
    out << "lock-step: " << m_steps << " steps, " << m_sleeps << " sleeps, "
        << m_questions.load() << " questions, " << m_deliveries
        << " deliveries, " << m_interrupts << " interrupts; "
        << (skew().empty() ? "exact" : "skewed: " + skew()) << "\n";
}

}  // namespace lockstep
}  // namespace prawn
