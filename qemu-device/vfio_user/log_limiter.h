// SPDX-License-Identifier: Apache-2.0
//
// Keeps a client that misbehaves all the time from filling the log.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_LOG_LIMITER_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_LOG_LIMITER_H

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace prawn {
namespace vfio_user {

/// Lets a burst through, then one line a second. Not thread-safe.
class log_limiter
{
public:
    /// Whether the line may be written. If so, `suppressed` is the number of
    /// lines that were held back before it.
    bool allow(std::uint64_t& suppressed) {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double> passed = now - m_last;
        m_last = now;
        m_tokens = std::min(BURST, m_tokens + passed.count());
        if (m_tokens < 1.0) {
            m_suppressed++;
            return false;
        }
        m_tokens -= 1.0;
        suppressed = m_suppressed;
        m_suppressed = 0;
        return true;
    }

private:
    static constexpr double BURST = 16.0;

    double m_tokens = BURST;
    std::chrono::steady_clock::time_point m_last{};
    std::uint64_t m_suppressed = 0;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
