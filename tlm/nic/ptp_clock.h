// SPDX-License-Identifier: Apache-2.0
// The clock that software can set and steer: registers PTP_*.

#ifndef PRAWN_NIC_PTP_CLOCK_H
#define PRAWN_NIC_PTP_CLOCK_H

#include <array>
#include <cstdint>

#include "nic/contracts.h"
#include "nic/control_channel.h"

namespace prawn {

// Exact: with the time base at t, PTP_TIME is
//     floor(value + sum over the past of (length of a stretch of the time base
//                                         * its PTP_INCREMENT / 2^48))
// since it was last written. What is below a nanosecond is kept over reads,
// PTP_ADJUST and changes of PTP_INCREMENT; a write of PTP_TIME drops it.
//
// There is no process and no event here: the clock is brought up to date by
// whoever looks at it, so it never keeps the simulation running.
class ptp_clock final : public ptp_clock_base, private control_handler
{
public:
    ptp_clock(sc_core::sc_module_name name, const block_env& env);

    put_if<control_request>& control_in() override { return m_control; }
    std::uint64_t read(std::uint64_t offset, unsigned size) override;
    void write(std::uint64_t offset, unsigned size,
               std::uint64_t value) override;
    void reset() override;

private:
    enum reg : unsigned { TIME, ADJUST, INCREMENT, REGISTERS };

    void control(const control_request& request) override;
    std::uint64_t now_ns();
    void advance();
    void set(reg which, std::uint64_t value);

    control_channel m_control;

    std::uint64_t m_base = 0;      // of the time base, when last looked at
    std::uint64_t m_time = 0;      // PTP_TIME then,
    std::uint64_t m_fraction = 0;  // and this many 2^-48 ns
    std::uint64_t m_increment = PRAWN_BAR0_PTP_INCREMENT_RESET;

    std::uint32_t m_high = 0;                      // latched for the reader
    std::array<std::uint32_t, REGISTERS> m_low{};  // held for the writer

    counter& m_steps;
    counter& m_rates;
    counter& m_ignored;
};

}  // namespace prawn

#endif
