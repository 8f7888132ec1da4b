// SPDX-License-Identifier: Apache-2.0
// Packetizer: construction, reset, the process, control.
#include "nic/packetizer.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = ~std::uint64_t{0};
constexpr unsigned MAX_SLOTS_PER_CONTEXT = 128;  // as many as tags can name

void check(const char* name, unsigned value, unsigned low, unsigned high) {
    if (value < low || value > high)
        throw std::invalid_argument(
            "packetizer: parameter " + std::string(name) + " is " +
            std::to_string(value) + ": choose " + std::to_string(low) + " to " +
            std::to_string(high));
}

const packetizer::params& checked(const packetizer::params& p) {
    check("max_payload", p.max_payload, 1, PRAWN_MAX_PAYLOAD);
    check("lookups", p.lookups, 1, MAX_SLOTS_PER_CONTEXT);
    check("parked", p.parked, 1, MAX_SLOTS_PER_CONTEXT - 1);
    check("window", p.window, 1, MAX_SLOTS_PER_CONTEXT - p.parked);
    check("window_bytes", p.window_bytes, 1, 1u << 30);
    check("peer_ready", p.peer_ready, 1, 1u << 20);
    check("read_chunk", p.read_chunk, 1, PRAWN_MAX_PAYLOAD);
    return p;
}

double bytes_in(const timing_profile& profile, sc_core::sc_time time) {
    return static_cast<double>(time.value()) / 1000 * profile.bus.bytes_per_ns;
}

// Beside its payload a message costs the bus its command, its completion and
// what comes with three transactions.
std::int64_t default_cost(const timing_profile& profile) {
    const double transaction =
        profile.bus.overhead + bytes_in(profile, profile.bus.arbitration);
    return static_cast<std::int64_t>(
        sizeof(prawn_command) + sizeof(prawn_completion) + 3 * transaction);
}

}  // namespace

packetizer::packetizer(sc_core::sc_module_name name, const block_env& env,
                       const params& p) :
    packetizer_base(name, env, block_id::PACKETIZER),
    m_params(checked(p)),
    m_contexts(PRAWN_CONTEXTS),
    m_peers(PRAWN_MAX_NODES),
    m_slots(std::size_t{PRAWN_CONTEXTS} * (p.window + p.parked)),
    m_order(m_slots.size()),
    m_lane(m_slots.size()),
    m_turn_links(PRAWN_CONTEXTS),
    m_read_links(PRAWN_CONTEXTS),
    m_read_cover(p.read_cover != 0
                     ? p.read_cover
                     : static_cast<std::uint64_t>(bytes_in(
                           *env.profile, env.profile->bus.read_latency))),
    m_packet_cost(p.packet_cost != 0 ? std::int64_t{p.packet_cost}
                                     : default_cost(*env.profile)),
    m_cycle(env.profile->card_clock.value()),
    m_job_in("job_in", *this),
    m_opt_in("opt_reply_in", *this),
    m_utlb_in("utlb_reply_in", *this),
    m_dma_in("dma_reply_in", *this),
    m_control("control_in", CONTROL_WINDOW),
    m_wake("wake"),
    m_packets(env.counters->add("packetizer.packets")),
    m_payload_bytes(env.counters->add("packetizer.payload_bytes")),
    m_peer_stalls(env.counters->add("packetizer.peer_stalls")),
    m_ask_stalls(env.counters->add("packetizer.ask_stalls")),
    m_completion_stalls(env.counters->add("packetizer.completion_stalls")),
    m_withdrawn(env.counters->add("packetizer.withdrawn")),
    m_cancelled(env.counters->add("packetizer.cancelled_jobs")),
    m_unexpected(env.counters->add("packetizer.unexpected")),
    m_failed_import(env.counters->add("packetizer.bad_import")),
    m_failed_range(env.counters->add("packetizer.out_of_range")),
    m_failed_import_error(env.counters->add("packetizer.import_error")),
    m_failed_not_pinned(env.counters->add("packetizer.not_pinned")),
    m_failed_dma(env.counters->add("packetizer.dma_error")),
    m_failed_other(env.counters->add("packetizer.other_failures")),
    m_messages(env.counters->add_per_context("packetizer.messages")),
    m_bytes(env.counters->add_per_context("packetizer.bytes")),
    m_failed(env.counters->add_per_context("packetizer.failed")) {
    m_free.reserve(m_slots.size());
    reset();
}

void packetizer::end_of_elaboration() {
    SC_HAS_PROCESS(packetizer);
    SC_METHOD(step);
    dont_initialize();
    sensitive << m_wake << m_control.arrived() << opt_out->room()
              << utlb_out->room() << dma_out->room() << packet_out->room()
              << completion_out->room();
}

void packetizer::reset() {
    std::fill(m_contexts.begin(), m_contexts.end(), context_state());
    std::fill(m_peers.begin(), m_peers.end(), peer_state());
    m_free.clear();
    for (std::size_t i = m_slots.size(); i-- > 0;) {
        m_slots[i] = slot();
        m_free.push_back(static_cast<std::uint16_t>(i));
    }
    m_asking.clear();
    m_dma_refused = false;
    m_turn.clear();
    m_read_turn.clear();
    m_reads = 0;
    m_read_bytes = 0;
    m_busy = 0;
    m_small = 0;
    m_startable = 0;
    m_completing = 0;
    m_blocked = 0;
    m_next_start = 0;
    m_generation++;
    m_drain.reset();
    m_control.clear();
    m_wake.cancel();
    m_wake_at = NEVER;
    m_job_in.has_room();
}

void packetizer::wake_at(std::uint64_t time) {
    if (time >= m_wake_at)
        return;
    m_wake_at = time;
    const std::uint64_t now = now_ps();
    m_wake.notify(time > now ? sc_core::sc_time::from_value(time - now)
                             : sc_core::SC_ZERO_TIME);
}

void packetizer::kick() {
    if (m_startable != 0 && !m_free.empty())
        wake_at(m_next_start);
}

void packetizer::step() {
    m_wake_at = NEVER;
    while (!m_control.empty())
        control(m_control.pop());

    if (!m_asking.empty()) {
        for (std::uint16_t i = m_asking.front(); i != NONE;) {
            const std::uint16_t next = m_asking.next(m_lane, i);
            ask(i);
            i = next;
        }
    }
    if (m_dma_refused && dma_out->room().triggered()) {
        m_dma_refused = false;
        pump_reads();
    }
    if (m_blocked != 0 && packet_out->room().triggered()) {
        peer_mask blocked = m_blocked;
        for (m_blocked = 0; blocked != 0; blocked &= blocked - 1)
            hand_over(static_cast<std::uint16_t>(__builtin_ctz(blocked)));
    }
    if (m_completing != 0 && completion_out->room().triggered()) {
        for (context_mask m = m_completing; m != 0; m &= m - 1)
            complete(static_cast<std::uint16_t>(__builtin_ctzll(m)));
    }

    const std::uint64_t now = now_ps();
    if (now >= m_next_start && start_one())
        m_next_start = now + m_cycle * PACKET_CYCLES;
    kick();
}

// Control

void packetizer::disable(std::uint16_t context, std::uint32_t life) {
    context_state& c = m_contexts[context];
    for (std::size_t i = 0; i < m_slots.size(); i++) {
        const slot& s = m_slots[i];
        if (s.at != stage::FREE && !s.cancelled && s.context == context)
            cancel(static_cast<std::uint16_t>(i));
    }
    m_cancelled += c.count;
    c.first = 0;
    c.count = 0;
    c.unstarted = 0;
    c.life = life + 1;
    leave_turn(context);
    m_busy &= ~(context_mask{1} << context);
    m_completing &= ~(context_mask{1} << context);
    m_job_in.has_room();
}

void packetizer::control(const control_request& r) {
    const std::uint32_t t = r.tag;
    const auto answer = [this, t] { reply(t, PRAWN_STATUS_OK); };
    switch (r.op) {
        case control_op::CONTEXT_DISABLE:
            if (r.context >= m_contexts.size()) {
                reply(t, PRAWN_STATUS_BAD_CONTEXT);
                break;
            }
            disable(r.context, r.life);
            m_drain.drain(answer);
            break;
        case control_op::CLEAR:
            end_jobs(
                [&r](const job& j) {
                    return j.what.command.import_id == r.index;
                },
                PRAWN_STATUS_BAD_IMPORT);
            answer();
            break;
        case control_op::PEER_ERROR:
            if (r.index >= m_peers.size() || r.a == PRAWN_STATUS_OK ||
                r.a >> 16) {
                reply(t, PRAWN_STATUS_BAD_FIELD);
                break;
            }
            end_jobs([&r](const job& j) { return j.peer == r.index; },
                     PRAWN_STATUS_IMPORT_ERROR,
                     static_cast<std::uint16_t>(r.a));
            answer();
            break;
        case control_op::DRAIN:
            m_drain.drain(answer);
            break;
        default:
            reply(t, PRAWN_STATUS_BAD_OPCODE);
    }
}

}  // namespace prawn
