// SPDX-License-Identifier: Apache-2.0
#include "nic/ptp_clock.h"

namespace prawn {

namespace {

__extension__ using wide = unsigned __int128;

constexpr std::uint64_t FIRST = PRAWN_BAR0_PTP_TIME;
constexpr std::uint64_t FRACTION_MASK =
    (std::uint64_t{1} << PRAWN_PTP_FRACTION_BITS) - 1;

static_assert(PRAWN_BAR0_PTP_ADJUST == FIRST + 8 &&
                  PRAWN_BAR0_PTP_INCREMENT == FIRST + 16,
              "the registers are counted from PTP_TIME on");
static_assert(PRAWN_BAR0_PTP_INCREMENT_RESET == FRACTION_MASK + 1,
              "after a reset the clock shows its time base");

}  // namespace

ptp_clock::ptp_clock(sc_core::sc_module_name name, const block_env& env) :
    ptp_clock_base(name, env, block_id::PTP_CLOCK),
    m_control("control", *this, *this, cycles(1)),
    m_steps(env.counters->add("ptp_clock.steps")),
    m_rates(env.counters->add("ptp_clock.rates")),
    m_ignored(env.counters->add("ptp_clock.ignored")) {}

// There is nothing to drain, and no context here.
void ptp_clock::control(const control_request& request) {
    m_control.answer(request.tag, request.op == control_op::DRAIN
                                      ? PRAWN_STATUS_OK
                                      : PRAWN_STATUS_BAD_OPCODE);
}

// Without asking for the time: from zero on, at the nominal rate, the clock is
// the time base.
void ptp_clock::reset() {
    m_control.reset();
    m_base = m_time = m_fraction = 0;
    m_increment = PRAWN_BAR0_PTP_INCREMENT_RESET;
    m_high = 0;
    m_low.fill(0);
}

std::uint64_t ptp_clock::now_ns() {
    return time_base.size() ? time_base->now_ns() : now_ps() / 1000;
}

// A time base that falls, which it must not, stops the clock until it is back
// where it was.
void ptp_clock::advance() {
    const std::uint64_t now = now_ns();
    if (now <= m_base)
        return;
    const wide gain = wide{now - m_base} * m_increment + m_fraction;
    m_time += static_cast<std::uint64_t>(gain >> PRAWN_PTP_FRACTION_BITS);
    m_fraction = static_cast<std::uint64_t>(gain) & FRACTION_MASK;
    m_base = now;
}

std::uint64_t ptp_clock::read(std::uint64_t offset, unsigned size) {
    const bool high = size == 4 && offset & 4;
    switch (static_cast<reg>((offset - FIRST) / 8)) {
        case TIME:
            if (high)
                return m_high;
            advance();
            if (size == 8)
                return m_time;
            m_high = static_cast<std::uint32_t>(m_time >> 32);
            return m_time & 0xffffffff;
        case INCREMENT:
            if (size == 8)
                return m_increment;
            return high ? m_increment >> 32 : m_increment & 0xffffffff;
        default:
            return 0;
    }
}

void ptp_clock::write(std::uint64_t offset, unsigned size,
                      std::uint64_t value) {
    const auto which = static_cast<reg>((offset - FIRST) / 8);
    if (which >= REGISTERS)
        return;
    if (size == 8)
        set(which, value);
    else if (offset & 4)
        set(which, value << 32 | m_low[which]);
    else
        m_low[which] = static_cast<std::uint32_t>(value);
}

void ptp_clock::set(reg which, std::uint64_t value) {
    switch (which) {
        case TIME:
            advance();
            m_time = value;
            m_fraction = 0;
            m_steps++;
            break;
        case ADJUST:
            m_time += value;
            m_steps++;
            break;
        default:
            if (value < PRAWN_PTP_INCREMENT_MIN ||
                value > PRAWN_PTP_INCREMENT_MAX) {
                m_ignored++;
                break;
            }
            advance();
            m_increment = value;
            m_rates++;
            break;
    }
}

}  // namespace prawn
