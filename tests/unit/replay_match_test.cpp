// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "prawn_hw.h"
#include "record/replay_match.h"

namespace prawn {
namespace {

class replay_match_test : public testing::Test
{
protected:
    feed_record written(std::uint64_t address, const std::string& data) {
        feed_record r;
        r.kind = record_kind::DMA_WRITE;
        r.address = address;
        r.data = reinterpret_cast<const std::uint8_t*>(data.data());
        r.data_size = static_cast<std::uint32_t>(data.size());
        r.number = ++m_number;
        return r;
    }
    void recorded(std::uint64_t address, const std::string& data) {
        match.recorded_write(written(address, data), {});
    }
    void comes(std::uint64_t address, const std::string& data, bool ok = true) {
        match.came_write({}, address, static_cast<std::uint32_t>(data.size()),
                         reinterpret_cast<const std::uint8_t*>(data.data()),
                         ok);
    }
    static std::string completion(std::uint16_t status,
                                  std::uint64_t finished) {
        prawn_completion c{};
        c.status = status;
        c.finished = finished;
        c.seq = 7;
        return {reinterpret_cast<const char*>(&c), sizeof(c)};
    }
    void interrupt(std::uint32_t vector) {
        feed_record r;
        r.kind = record_kind::MSIX;
        r.vector = vector;
        r.number = ++m_number;
        match.recorded_interrupt(r);
    }
    void read(std::uint64_t offset, std::uint64_t was, std::uint64_t is) {
        record access;
        access.kind = record_kind::BAR_READ;
        access.order = ++m_order;
        access.address = offset;
        match.expect_result(access);
        feed_record r;
        r.order = m_order;
        r.value = was;
        r.number = ++m_number;
        match.recorded_result(r);
        match.came_result(m_order, is);
    }

    replay_monitor monitor;
    replay_match match{1, monitor};

private:
    std::uint64_t m_number = 0, m_order = 0;
};

TEST_F(replay_match_test, either_side_may_be_ahead_and_cut_otherwise) {
    recorded(0x1000, "abcdefgh");
    comes(0x1000, "abc");
    comes(0x1003, "de");
    EXPECT_FALSE(match.settled());
    comes(0x1005, "fgh");
    EXPECT_TRUE(match.settled());
    comes(0x2000, "abcd");
    recorded(0x2000, "ab");
    recorded(0x2002, "cd");
    match.finish(true);
    EXPECT_EQ(monitor.differences(), 0u);
}

TEST_F(replay_match_test, pages_are_streams_of_their_own) {
    recorded(0x1000, "a");
    recorded(0x2000, "b");
    comes(0x2000, "b");
    comes(0x1000, "a");
    match.finish(true);
    EXPECT_EQ(monitor.differences(), 0u);
}

TEST_F(replay_match_test, other_data) {
    recorded(0x1000, "abcd");
    comes(0x1000, "abXd");
    EXPECT_EQ(monitor.differences(), 1u);
    EXPECT_EQ(monitor.first().record, 1u);
    EXPECT_NE(monitor.first().text.find("node 1: other data than"),
              std::string::npos);
}

TEST_F(replay_match_test, another_place_or_status) {
    recorded(0x1000, "abcd");
    comes(0x1004, "abcd");
    EXPECT_EQ(monitor.differences(), 1u);
    recorded(0x2000, "abcd");
    comes(0x2000, "abcd", false);
    EXPECT_EQ(monitor.differences(), 2u);
}

TEST_F(replay_match_test, entries_match_by_number_whatever_their_times) {
    ring_entry seven, eight;
    seven.kind = eight.kind = ring_entry::COMPLETION;
    seven.seq = 7;
    eight.seq = 8;
    const std::string a = completion(0, 5), b = completion(0, 9),
                      c = completion(PRAWN_STATUS_NOT_PINNED, 9);
    const auto entry_comes = [&](const ring_entry& e, const std::string& data) {
        match.came_write(e, 0x1000, 64,
                         reinterpret_cast<const std::uint8_t*>(data.data()),
                         true);
    };
    entry_comes(eight, a);
    match.recorded_write(written(0x1000, a), seven);
    match.recorded_write(written(0x1000, b), eight);
    EXPECT_EQ(monitor.differences(), 0u);
    entry_comes(seven, c);
    EXPECT_EQ(monitor.differences(), 1u);
    EXPECT_NE(monitor.first().text.find("completion 7 of context 0 said status "
                                        "0"),
              std::string::npos)
        << monitor.first().text;
}

TEST_F(replay_match_test, missing_is_told_at_the_end_or_after_long) {
    recorded(0x1000, "abcd");
    interrupt(3);
    match.expire(2);
    EXPECT_EQ(monitor.differences(), 1u);
    EXPECT_EQ(monitor.first().record, 1u);
    match.finish(true);
    EXPECT_EQ(monitor.differences(), 2u);
    EXPECT_TRUE(match.settled());
}

TEST_F(replay_match_test, what_comes_beyond_a_cut_recording_is_no_difference) {
    match.came_interrupt(false, 2);
    match.finish(false);
    EXPECT_EQ(monitor.differences(), 0u);
    EXPECT_EQ(match.beyond(), 1u);
    match.finish(true);
    EXPECT_EQ(monitor.differences(), 1u);
}

TEST_F(replay_match_test, vectors_are_counted_each) {
    interrupt(1);
    interrupt(2);
    match.came_interrupt(false, 2);
    match.came_interrupt(false, 1);
    match.finish(true);
    EXPECT_EQ(monitor.differences(), 0u);
}

TEST_F(replay_match_test, clocks_may_differ_states_may_not) {
    read(PRAWN_BAR0_TIME, 5, 6);
    read(PRAWN_BAR0_COUNTER_VALUE, 5, 6);
    EXPECT_EQ(match.excused(), 2u);
    EXPECT_EQ(monitor.differences(), 0u);
    read(PRAWN_BAR0_STATUS, 7, 6);
    EXPECT_EQ(monitor.differences(), 1u);
    EXPECT_EQ(monitor.first().text,
              "node 1: a read of bar 0 + 0x14 got 0x7, and gets 0x6 now");
}

}  // namespace
}  // namespace prawn
