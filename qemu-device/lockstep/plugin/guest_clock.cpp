// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest_clock.h"

namespace prawn {
namespace lockstep {

void guest_clock::calibrate() {
    constexpr unsigned LOOKS = 8;
    const std::int64_t raw = m_qemu.icount_raw();
    if (m_counter || raw == m_last)
        return;
    m_last = raw;
    auto* words = reinterpret_cast<std::int64_t*>(m_qemu.timers_state);
    unsigned left = 0;
    unsigned which = 0;
    for (unsigned i = 0; i < TIMERS_STATE_WORDS; i++) {
        if (words[i] != raw)
            m_candidates &= ~(1U << i);
        if (m_candidates >> i & 1) {
            left++;
            which = i;
        }
    }
    if (++m_looks >= LOOKS && left == 1)
        m_counter = &words[which];
}

}  // namespace lockstep
}  // namespace prawn
