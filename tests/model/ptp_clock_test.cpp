// SPDX-License-Identifier: Apache-2.0
// The PTP clock of whole cards, by model time: which instant a read is of, who
// has a clock of its own, what a reset leaves.
#include "model_bench.h"
#include "nic/csr.h"

namespace prawn {
namespace model {
namespace {

constexpr std::uint64_t ONE = std::uint64_t{1} << PRAWN_PTP_FRACTION_BITS;

class ptp_clock_test : public model_test
{
protected:
    static std::uint64_t time_of(card_driver& d) {
        return d.read(PRAWN_BAR0_PTP_TIME, 8);
    }
    static const timing_profile& profile() {
        return bench::get().model().profile();
    }
};

// The card's end of the bus, in the last of the cycles that the register costs.
TEST_F(ptp_clock_test, a_read_is_of_the_instant_at_the_register) {
    card_driver& d = driver(0);
    EXPECT_TRUE(d.read(PRAWN_BAR0_FEATURES, 8) & PRAWN_FEATURES_PTP_MASK);
    for (const double gap : {0.1, 1.7, 20.0, 1000.0}) {
        pause(gap);
        const std::uint64_t begin = now_ps();
        const std::uint64_t value = time_of(d);
        const std::uint64_t end = now_ps();
        const std::uint64_t cycles = profile().cycles(csr::READ_CYCLES).value();
        const std::uint64_t bus = profile().bus.mmio_read.value();
        EXPECT_EQ(end - begin, bus + cycles);
        EXPECT_EQ(value, (begin + bus / 2 + cycles) / 1000);
    }
}

// The register beside it, read right behind it.
TEST_F(ptp_clock_test, is_model_time_until_it_is_set) {
    memory_host& host = driver(0).host();
    std::uint64_t nanoseconds = 0, picoseconds = 0;
    host.read(0, PRAWN_BAR0_PTP_TIME, 8,
              [&](std::uint64_t value) { nanoseconds = value; });
    host.read(0, PRAWN_BAR0_TIME, 8,
              [&](std::uint64_t value) { picoseconds = value; });
    pause(20);
    ASSERT_GT(nanoseconds, 0u);
    const std::uint64_t later = profile().cycles(csr::READ_CYCLES).value();
    EXPECT_EQ(nanoseconds, (picoseconds - later) / 1000);
}

TEST_F(ptp_clock_test, each_card_has_its_own) {
    card_driver& a = driver(0);
    card_driver& b = driver(1);
    const std::uint64_t hour = 3600ull * 1000000000;
    a.write(PRAWN_BAR0_PTP_TIME, 8, hour);
    a.write(PRAWN_BAR0_PTP_INCREMENT, 8, ONE + ONE / 2);
    pause(100);
    const std::uint64_t first = time_of(a);
    pause(1000);
    const std::uint64_t gain = time_of(a) - first;
    EXPECT_GT(first, hour);
    EXPECT_LT(first, hour + 200000);
    EXPECT_GT(gain, 1500000u);
    EXPECT_LT(gain, 1520000u);
    const std::uint64_t other = time_of(b);
    EXPECT_LT(other, now_ps() / 1000);
    EXPECT_GT(other + 20000, now_ps() / 1000);
}

TEST_F(ptp_clock_test, every_reset_brings_it_back) {
    card_driver& d = driver(0);
    for (int way = 0; way < 3; way++) {
        d.write(PRAWN_BAR0_PTP_INCREMENT, 8, PRAWN_PTP_INCREMENT_MIN);
        d.write(PRAWN_BAR0_PTP_TIME, 8, std::uint64_t{1} << 60);
        EXPECT_GE(time_of(d), std::uint64_t{1} << 60);
        if (way == 0)
            d.reset();
        else if (way == 1)
            d.host().reset_card();
        else
            d.shut_down();
        d.boot();
        EXPECT_EQ(d.read(PRAWN_BAR0_PTP_INCREMENT, 8), ONE);
        const std::uint64_t begin = now_ps() / 1000;
        const std::uint64_t value = time_of(d);
        EXPECT_GE(value, begin);
        EXPECT_LE(value, now_ps() / 1000);
    }
}

// Posted, and yet before the read that follows them.
TEST_F(ptp_clock_test, a_read_sees_the_writes_before_it) {
    memory_host& host = driver(0).host();
    std::uint64_t value = 0;
    host.write(0, PRAWN_BAR0_PTP_TIME, 8, 1000000);
    host.write(0, PRAWN_BAR0_PTP_ADJUST, 8,
               static_cast<std::uint64_t>(-900000));
    host.read(0, PRAWN_BAR0_PTP_TIME, 8,
              [&](std::uint64_t answer) { value = answer; });
    pause(20);
    EXPECT_GE(value, 100000u);
    EXPECT_LT(value, 110000u);
}

}  // namespace
}  // namespace model
}  // namespace prawn
