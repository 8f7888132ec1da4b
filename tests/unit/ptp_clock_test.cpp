// SPDX-License-Identifier: Apache-2.0
#include "nic/ptp_clock.h"

#include <gtest/gtest.h>

#include "control_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t TIME = PRAWN_BAR0_PTP_TIME;
constexpr std::uint64_t ADJUST = PRAWN_BAR0_PTP_ADJUST;
constexpr std::uint64_t INCREMENT = PRAWN_BAR0_PTP_INCREMENT;
constexpr std::uint64_t ONE = std::uint64_t{1} << PRAWN_PTP_FRACTION_BITS;
constexpr std::uint64_t SECOND = 1000000000;

// A time base that the test moves, and that counts who asks.
struct hand_clock : time_base_if {
    std::uint64_t now = 0;
    unsigned asked = 0;
    std::uint64_t now_ns() override {
        asked++;
        return now;
    }
};

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{0, 1, &the_profile(), &counters, nullptr};
    hand_clock hand;
    ptp_clock dut{"dut", env};
    counter_registry other_counters{PRAWN_CONTEXTS};
    block_env other_env{1, 2, &the_profile(), &other_counters, nullptr};
    ptp_clock on_model_time{"on_model_time", other_env};
    recorder<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.time_base.bind(hand);
        dut.control_out.bind(replies);
        on_model_time.control_out.bind(replies);
    }
};

class ptp_clock_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    ptp_clock& dut = b().dut;
    hand_clock& hand = b().hand;

    void SetUp() override {
        run(1);
        dut.reset();
        b().on_model_time.reset();
        hand.now = 0;
        hand.asked = 0;
        b().replies.items.clear();
    }
    std::uint64_t time() { return dut.read(TIME, 8); }
    void write(std::uint64_t offset, std::uint64_t value) {
        dut.write(offset, 8, value);
    }
    std::uint64_t count(const std::string& name) const {
        for (std::size_t i = 0; i < b().counters.size(); i++)
            if (b().counters.name(i) == name)
                return b().counters.value(i);
        return ~0ull;
    }
};

TEST_F(ptp_clock_test, shows_its_time_base_after_reset) {
    EXPECT_EQ(time(), 0u);
    hand.now = 123456789012345;
    EXPECT_EQ(time(), 123456789012345u);
    EXPECT_EQ(dut.read(INCREMENT, 8), ONE);
    write(TIME, 5);
    write(INCREMENT, ONE + 12345);
    dut.write(ADJUST, 4, 99);  // a half, held
    hand.now += 1000;
    EXPECT_EQ(time(), 1005u);
    dut.read(TIME, 4);
    dut.reset();
    EXPECT_EQ(dut.read(TIME + 4, 4), 0u);  // the latch
    EXPECT_EQ(time(), hand.now);
    EXPECT_EQ(dut.read(INCREMENT, 8), ONE);
    dut.write(ADJUST + 4, 4, 0);
    EXPECT_EQ(time(), hand.now);
}

TEST_F(ptp_clock_test, runs_on_model_time_by_itself) {
    ptp_clock& model = b().on_model_time;
    const std::uint64_t before = now_ps();
    EXPECT_EQ(model.read(TIME, 8), before / 1000);
    sc_core::sc_start(sc_core::sc_time(1999, sc_core::SC_PS));
    EXPECT_EQ(model.read(TIME, 8), (before + 1999) / 1000);
    model.write(TIME, 8, 1000);
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_US));
    EXPECT_EQ(model.read(TIME, 8), 2000u);
    // Nothing is scheduled: the simulation may end, or sleep.
    EXPECT_FALSE(sc_core::sc_pending_activity());
}

TEST_F(ptp_clock_test, is_set) {
    hand.now = 1000;
    write(TIME, 7 * SECOND);
    EXPECT_EQ(time(), 7 * SECOND);
    hand.now = 1001;
    EXPECT_EQ(time(), 7 * SECOND + 1);
    write(TIME, 0);
    EXPECT_EQ(time(), 0u);
    hand.now += SECOND;
    EXPECT_EQ(time(), SECOND);
}

TEST_F(ptp_clock_test, is_adjusted_by_exactly_that_much) {
    hand.now = 5000;
    write(ADJUST, 123);
    EXPECT_EQ(time(), 5123u);
    write(ADJUST, static_cast<std::uint64_t>(-5124));
    EXPECT_EQ(time(), ~0ull);  // -1
    write(ADJUST, 1);
    EXPECT_EQ(time(), 0u);
    hand.now += 10;
    write(ADJUST, 0);
    EXPECT_EQ(time(), 10u);
}

TEST_F(ptp_clock_test, wraps) {
    write(TIME, ~0ull - 4);
    hand.now = 3;
    EXPECT_EQ(time(), ~0ull - 1);
    hand.now = 6;
    EXPECT_EQ(time(), 1u);
    write(TIME, INT64_MAX);
    write(ADJUST, 1);
    EXPECT_EQ(time(), std::uint64_t{1} << 63);
    // All of the time base's range at once, at one and a half of its rate.
    write(INCREMENT, PRAWN_PTP_INCREMENT_MAX);
    write(TIME, 0);
    hand.now = ~0ull;
    const std::uint64_t passed = ~0ull - 6;
    EXPECT_EQ(time(), passed + passed / 2);  // modulo 2^64
}

// 1 ppm is 2^48 / 10^6 = 281474976.71: the nearest is 281474977, and after an
// hour the clock is ahead by 3600 s * 281474977 / 2^48 = 3600000.0037 us.
TEST_F(ptp_clock_test, gains_and_loses) {
    write(INCREMENT, ONE + 281474977);
    hand.now = 3600 * SECOND;
    EXPECT_EQ(time(), 3600 * SECOND + 3600000);
    write(TIME, 0);
    write(INCREMENT, ONE - 281474977);
    hand.now += 3600 * SECOND;
    EXPECT_EQ(time(), 3600 * SECOND - 3600001);  // the floor
    write(TIME, 0);
    write(INCREMENT, PRAWN_PTP_INCREMENT_MIN);
    hand.now += 999;
    EXPECT_EQ(time(), 499u);
    hand.now += 1;
    EXPECT_EQ(time(), 500u);
    write(TIME, 0);
    write(INCREMENT, PRAWN_PTP_INCREMENT_MAX);
    hand.now += 999;
    EXPECT_EQ(time(), 1498u);
}

// However often it is looked at, and adjusted, and steered: nothing is lost.
TEST_F(ptp_clock_test, does_not_drift_by_rounding) {
    constexpr std::uint64_t RATE = ONE + ONE / 3;
    write(INCREMENT, RATE);
    for (unsigned i = 0; i < 30000; i++) {
        hand.now++;
        time();
        write(ADJUST, 1);
        write(INCREMENT, RATE);
    }
    // 30000 * (1 + 1/3 - 2^-48/3) and what was added: just below 70000.
    EXPECT_EQ(time(), 69999u);
    hand.now++;
    EXPECT_EQ(time(), 70001u);

    // The fraction outlives a change of the rate, and goes with a new time.
    dut.reset();
    hand.now = 0;
    write(INCREMENT, PRAWN_PTP_INCREMENT_MIN);
    hand.now = 1;  // a half
    write(INCREMENT, PRAWN_PTP_INCREMENT_MAX);
    hand.now = 2;  // and one and a half
    EXPECT_EQ(time(), 2u);
    hand.now = 3;
    EXPECT_EQ(time(), 3u);  // 3.5
    write(TIME, 3);
    hand.now = 4;
    EXPECT_EQ(time(), 4u);  // 4.5
    hand.now = 5;
    EXPECT_EQ(time(), 6u);
}

TEST_F(ptp_clock_test, ignores_rates_that_it_does_not_have) {
    const std::uint64_t ignored = count("ptp_clock.ignored");
    const std::uint64_t bad[] = {0,
                                 1,
                                 PRAWN_PTP_INCREMENT_MIN - 1,
                                 PRAWN_PTP_INCREMENT_MAX + 1,
                                 ~0ull,
                                 std::uint64_t{1} << 63};
    write(INCREMENT, ONE + 7);
    for (const std::uint64_t value : bad) {
        write(INCREMENT, value);
        EXPECT_EQ(dut.read(INCREMENT, 8), ONE + 7) << value;
    }
    EXPECT_EQ(count("ptp_clock.ignored"), ignored + 6);
    write(INCREMENT, PRAWN_PTP_INCREMENT_MIN);
    EXPECT_EQ(dut.read(INCREMENT, 8), PRAWN_PTP_INCREMENT_MIN);
    write(INCREMENT, PRAWN_PTP_INCREMENT_MAX);
    EXPECT_EQ(dut.read(INCREMENT, 8), PRAWN_PTP_INCREMENT_MAX);
}

TEST_F(ptp_clock_test, two_reads_of_a_half_each_are_of_one_instant) {
    write(TIME, 0xffffffff);
    EXPECT_EQ(dut.read(TIME, 4), 0xffffffffu);
    hand.now = 1;  // the carry
    EXPECT_EQ(dut.read(TIME + 4, 4), 0u);
    EXPECT_EQ(dut.read(TIME, 4), 0u);
    EXPECT_EQ(dut.read(TIME + 4, 4), 1u);
    // Whole reads and writes in between do not touch the latch.
    dut.read(TIME, 4);
    hand.now += 5ull << 32;
    EXPECT_EQ(time(), 6ull << 32);
    write(TIME, 0);
    write(ADJUST, ~0ull);
    dut.write(TIME, 4, 3);
    dut.write(TIME + 4, 4, 2);
    EXPECT_EQ(dut.read(TIME + 4, 4), 1u);
    EXPECT_EQ(dut.read(TIME + 4, 4), 1u);
    EXPECT_EQ(time(), 2ull << 32 | 3);
    EXPECT_EQ(dut.read(INCREMENT, 4), 0u);
    EXPECT_EQ(dut.read(INCREMENT + 4, 4), 0x10000u);
}

TEST_F(ptp_clock_test, two_writes_of_a_half_each_are_one) {
    dut.write(TIME, 4, 0x89abcdef);
    EXPECT_EQ(time(), 0u);
    hand.now = 50;
    dut.write(INCREMENT, 4, 1);
    dut.write(ADJUST, 4, 0xfffffff0);
    EXPECT_EQ(time(), 50u);
    EXPECT_EQ(dut.read(INCREMENT, 8), ONE);
    dut.write(TIME + 4, 4, 0x01234567);
    EXPECT_EQ(time(), 0x0123456789abcdefu);
    dut.write(ADJUST + 4, 4, 0xffffffff);
    EXPECT_EQ(time(), 0x0123456789abcddfu);
    dut.write(INCREMENT + 4, 4, 0x10000);
    EXPECT_EQ(dut.read(INCREMENT, 8), ONE + 1);
    // A whole write neither uses nor drops what is held.
    write(TIME, 0);
    dut.write(TIME + 4, 4, 0);
    EXPECT_EQ(time(), 0x89abcdefu);
}

// What a recording has to keep, and a replay to give again.
TEST_F(ptp_clock_test, asks_for_the_time_once_an_access_and_never_else) {
    time();
    EXPECT_EQ(hand.asked, 1u);
    dut.read(TIME, 4);
    EXPECT_EQ(hand.asked, 2u);
    dut.read(TIME + 4, 4);
    dut.read(INCREMENT, 8);
    dut.write(TIME, 4, 0);
    write(ADJUST, 5);
    write(INCREMENT, 0);
    dut.reset();
    run(5);
    EXPECT_EQ(hand.asked, 2u);
    write(TIME, 1);
    write(INCREMENT, ONE);
    EXPECT_EQ(hand.asked, 4u);
}

TEST_F(ptp_clock_test, stands_while_its_time_base_falls) {
    hand.now = 100;
    EXPECT_EQ(time(), 100u);
    hand.now = 40;
    EXPECT_EQ(time(), 100u);
    hand.now = 101;
    EXPECT_EQ(time(), 101u);
}

TEST_F(ptp_clock_test, answers_its_controller) {
    put(dut.control_in(), control_request{7, control_op::DRAIN});
    put(dut.control_in(), control_request{8, control_op::SET});
    run(1);
    ASSERT_EQ(b().replies.items.size(), 2u);
    EXPECT_EQ(b().replies.items[0].tag, 7u);
    EXPECT_EQ(b().replies.items[0].status, PRAWN_STATUS_OK);
    EXPECT_EQ(b().replies.items[1].tag, 8u);
    EXPECT_EQ(b().replies.items[1].status, PRAWN_STATUS_BAD_OPCODE);
}

}  // namespace
}  // namespace test
}  // namespace prawn
