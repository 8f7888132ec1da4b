// SPDX-License-Identifier: Apache-2.0
// Figures of one side of a replay: as recorded, or as replayed.

#ifndef PRAWN_RECORD_REPLAY_STATISTICS_H
#define PRAWN_RECORD_REPLAY_STATISTICS_H

#include <algorithm>
#include <array>
#include <cstdint>

namespace prawn {

// Any number of times in a fixed space: sum and bounds exact, quantiles to
// within 1/64 of their value.
class time_distribution
{
public:
    void add(std::uint64_t ps) {
        m_count++;
        m_sum += static_cast<double>(ps);
        m_least = std::min(m_least, ps);
        m_most = std::max(m_most, ps);
        m_buckets[bucket(ps)]++;
    }
    std::uint64_t count() const { return m_count; }
    std::uint64_t least() const { return m_count ? m_least : 0; }
    std::uint64_t most() const { return m_most; }
    double mean() const {
        return m_count ? m_sum / static_cast<double>(m_count) : 0.0;
    }
    // per_mille of 1 to 1000; the upper bound of the bucket, at most most().
    std::uint64_t quantile(std::uint64_t per_mille) const {
        std::uint64_t left = (m_count * per_mille + 999) / 1000;
        for (std::size_t b = 0; b < m_buckets.size() && left; b++) {
            if (m_buckets[b] >= left)
                return std::min(m_most, top(b));
            left -= m_buckets[b];
        }
        return m_most;
    }

private:
    static constexpr unsigned BITS = 6;  // linear within a power of two
    static std::size_t bucket(std::uint64_t v) {
        if (v < (1u << BITS))
            return v;
        const auto shift =
            static_cast<unsigned>(63 - __builtin_clzll(v)) - BITS;
        return (std::size_t{shift} + 1) << BITS |
               (v >> shift & ((1u << BITS) - 1));
    }
    static std::uint64_t top(std::size_t b) {
        if (b < (1u << BITS))
            return b;
        const auto shift = static_cast<unsigned>((b >> BITS) - 1);
        const std::uint64_t low =
            (std::uint64_t{1} << BITS | (b & ((1u << BITS) - 1))) << shift;
        return low + ((std::uint64_t{1} << shift) - 1);
    }

    std::uint64_t m_count = 0;
    double m_sum = 0.0;
    std::uint64_t m_least = ~std::uint64_t{0};
    std::uint64_t m_most = 0;
    std::array<std::uint64_t, (64 - BITS + 1) << BITS> m_buckets{};
};

// One node's.
struct replay_statistics {
    time_distribution latency;  // of a command: accepted to finished
    std::uint64_t bar_reads = 0, bar_writes = 0;
    std::uint64_t dma_reads = 0, dma_writes = 0;
    std::uint64_t table_reads = 0;  // of the DMA reads: by the walker
    std::uint64_t dma_bytes = 0;
    std::uint64_t interrupts = 0;
    std::uint64_t last_ps = 0;  // when the last of all this was
};

}  // namespace prawn

#endif
