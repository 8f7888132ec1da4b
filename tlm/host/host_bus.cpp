// SPDX-License-Identifier: Apache-2.0
#include "host/host_bus.h"

#include <algorithm>
#include <cmath>

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = bus_medium::NEVER;
constexpr unsigned BAR_BYTES = 8;  // of the widest access

// A job's effect comes this long after its end at the earliest, whatever job
// it is: until then nothing has to look at the upward medium.
std::uint64_t least_effect(const timing_profile& p, double ps_per_byte) {
    if (p.bus.half_duplex)
        return 0;
    const double answer = static_cast<double>(p.bus.mmio_read.value()) / 2.0 -
                          (p.bus.overhead + BAR_BYTES) * ps_per_byte - 1.0;
    const std::uint64_t least = std::min<std::uint64_t>(
        p.bus.write_latency.value(), p.bus.read_latency.value());
    return answer <= 0.0 ? 0
                         : std::min(least, static_cast<std::uint64_t>(answer));
}

}  // namespace

tlm::tlm_extension_base* host_bus::dma_slot::clone() const {
    return new dma_slot;
}
void host_bus::dma_slot::copy_from(const tlm::tlm_extension_base&) {}
tlm::tlm_extension_base* host_bus::bar_slot::clone() const {
    return new bar_slot;
}
void host_bus::bar_slot::copy_from(const tlm::tlm_extension_base&) {}

host_bus::host_bus(sc_core::sc_module_name name, const block_env& env,
                   const host_bus_config& config) :
    sc_core::sc_module(name),
    m_env(env),
    m_config(config),
    m_events(env.events, env.node, block_id::HOST_PORT),
    m_half(env.profile->bus.half_duplex),
    m_max_burst(env.profile->bus.max_burst),
    m_ps_per_byte(1000.0 / env.profile->bus.bytes_per_ns),
    m_overhead(env.profile->bus.overhead),
    m_arbitration(env.profile->bus.arbitration.value()),
    m_read_latency(env.profile->bus.read_latency.value()),
    m_write_latency(env.profile->bus.write_latency.value()),
    m_mmio_read(env.profile->bus.mmio_read.value()),
    m_mmio_write(env.profile->bus.mmio_write.value()),
    m_interrupt_latency(env.profile->bus.interrupt.value()),
    m_header(m_arbitration + bytes(m_overhead)),
    m_up_slack(least_effect(*env.profile, m_ps_per_byte)),
    m_dma_in_end(*this, &host_bus::dma_request),
    m_dma_out_end(*this, &host_bus::dma_response),
    m_bar_in_end(*this, &host_bus::bar_request),
    m_bar_out_end(*this, &host_bus::bar_response),
    m_due("due"),
    m_dma_reads(env.counters->add("host_bus.dma_reads")),
    m_dma_writes(env.counters->add("host_bus.dma_writes")),
    m_dma_refused(env.counters->add("host_bus.dma_refused")),
    m_bar_reads(env.counters->add("host_bus.bar_reads")),
    m_bar_writes(env.counters->add("host_bus.bar_writes")),
    m_bar_stalls(env.counters->add("host_bus.bar_stalls")),
    m_bar_dropped(env.counters->add("host_bus.bar_dropped")),
    m_msix(env.counters->add("host_bus.msix")),
    m_busy_up(env.counters->add("host_bus.busy_up_ns")),
    m_busy_down(env.counters->add("host_bus.busy_down_ns")) {
    dma_in.bind(m_dma_in_end);
    dma_out.bind(m_dma_out_end);
    bar_in.bind(m_bar_in_end);
    bar_out.bind(m_bar_out_end);
    interrupt_in.bind(*this);
    control_in.bind(*this);
    SC_HAS_PROCESS(host_bus);
    SC_METHOD(step);
    sensitive << m_due;
    dont_initialize();
}

std::uint64_t host_bus::bytes(std::uint64_t n) const {
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(n) * m_ps_per_byte));
}

// Everything that is due happens here; whatever changes what will be due next
// calls schedule().
void host_bus::step() {
    const std::uint64_t now = now_ps();
    m_scheduled = NEVER;
    advance();
    deliver_dma(now);
    deliver_bar(now);
    deliver_interrupts(now);
    schedule();
}

void host_bus::advance() {
    const std::uint64_t now = now_ps();
    // Upward first: it announces what comes down. Never the other way round.
    m_ended.clear();
    m_up.advance(now, m_ended);
    m_down.advance(now, m_ended);
    for (const bus_medium::finished& f : m_ended) {
        auto* i = static_cast<item*>(f.user);
        if (i->bar)
            bar_job_ended(static_cast<bar_slot&>(*i), f.end);
        else
            dma_job_ended(static_cast<dma_slot&>(*i), f.end);
    }
    m_busy_up.set(m_up.busy() / 1000);
    m_busy_down.set(m_down.busy() / 1000);
}

void host_bus::schedule() {
    std::uint64_t next = m_up.next_end();
    if (next != NEVER)
        next += m_up_slack;
    next = std::min(next, m_down.next_end());
    if (!m_writes.empty())
        next = std::min(next, m_writes.front().at);
    if (!m_reads.empty())
        next = std::min(next, m_reads.front().at);
    if (!m_host_queue.empty() && !m_host_pending)
        next = 0;
    if (!m_arrivals.empty() && !m_card_pending)
        next = std::min(next, m_arrivals.front().at);
    if (!m_answers.empty() && m_handed.ended(m_answers.front().slot->fence))
        next = std::min(next, m_answers.front().at);
    if (!m_interrupts.empty() && m_answered.ended(m_interrupts.front().fence))
        next = std::min(next, m_interrupts.front().at);
    if (next == m_scheduled)
        return;
    m_scheduled = next;
    m_due.cancel();
    if (next == NEVER)
        return;
    const std::uint64_t now = now_ps();
    m_due.notify(sc_core::sc_time::from_value(next > now ? next - now : 0));
}

std::uint64_t host_bus::next_effect() const {
    if (!m_host_queue.empty())
        return now_ps();
    std::uint64_t next = NEVER;
    const auto consider = [&](std::uint64_t end, std::uint64_t latency) {
        if (end != NEVER)
            next = std::min(next, end + latency);
    };
    // A read on a half-duplex bus ends with its data.
    const std::uint64_t now = now_ps();
    consider(m_up.earliest_end(now),
             m_half ? 0 : std::min(m_write_latency, m_read_latency));
    consider(m_down.earliest_end(now), 0);
    if (!m_writes.empty())
        consider(m_writes.front().at, 0);
    if (!m_reads.empty())
        consider(m_reads.front().at, 0);
    if (!m_interrupts.empty())
        consider(m_interrupts.front().at, 0);
    return next;
}

void host_bus::reset() {
    abandon();
    control_out->reset();
}

void host_bus::set_bus_master(bool on) {
    control_out->set_bus_master(on);
}

void host_bus::set_attached(bool on) {
    if (!on)
        abandon();
    control_out->set_attached(on);
}

void host_bus::abandon() {
    m_generation++;
    m_interrupts.clear();
}

void host_bus::msix(unsigned vector) {
    interrupt i;
    i.vector = vector;
    raise(i);
}

void host_bus::intx(bool level) {
    interrupt i;
    i.intx = true;
    i.level = level;
    raise(i);
}

void host_bus::raise(interrupt i) {
    i.at = now_ps() + m_interrupt_latency;
    i.fence = m_answered.last();
    m_interrupts.push_back(i);
    schedule();
}

void host_bus::deliver_interrupts(std::uint64_t now) {
    while (!m_interrupts.empty() && m_interrupts.front().at <= now &&
           m_answered.ended(m_interrupts.front().fence)) {
        const interrupt i = m_interrupts.pop_front();
        if (i.intx) {
            interrupt_out->intx(i.level);
        } else {
            m_msix++;
            interrupt_out->msix(i.vector);
        }
    }
}

}  // namespace prawn
