// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "record/replay_memory.h"

namespace prawn {
namespace {

class replay_memory_test : public testing::Test
{
protected:
    // Data outlive the records.
    kept version(std::uint64_t address, const std::string& bytes) {
        m_data.push_back(bytes);
        kept r(new feed_record, kept_release{});
        r->address = address;
        r->data = reinterpret_cast<const std::uint8_t*>(m_data.back().data());
        r->data_size = static_cast<std::uint32_t>(bytes.size());
        r->number = ++m_number;
        return r;
    }
    void data(std::uint64_t address, const std::string& bytes) {
        memory.add(version(address, bytes), false, 0);
    }
    void table(std::uint64_t address, const std::string& bytes,
               std::uint64_t action) {
        memory.add(version(address, bytes), true, action);
    }
    std::string read(std::uint64_t address, std::uint32_t size,
                     bool walker = false, std::uint64_t action = 0) {
        std::string text(size, '?');
        unknown =
            memory.read(address, reinterpret_cast<std::uint8_t*>(text.data()),
                        size, walker, action, [this] { return more(); });
        return text;
    }
    bool more() {
        if (later.empty())
            return false;
        memory.add(std::move(later.front()), false, 0);
        later.pop_front();
        return true;
    }

    replay_memory memory;
    std::uint32_t unknown = 0;
    std::deque<kept> later;

private:
    std::deque<std::string> m_data;
    std::uint64_t m_number = 0;
};

TEST_F(replay_memory_test, nth_read_gets_nth_version) {
    data(0x1000, "first");
    data(0x1000, "again");
    EXPECT_EQ(read(0x1000, 5), "first");
    EXPECT_EQ(read(0x1000, 5), "again");
    EXPECT_EQ(read(0x1000, 5), "again");  // what it holds now
    EXPECT_EQ(unknown, 0u);
    EXPECT_EQ(memory.zeros(), 0u);
}

TEST_F(replay_memory_test, however_reads_are_cut) {
    data(0x1000, "abcdefgh");
    data(0x1000, "ABCDEFGH");
    EXPECT_EQ(read(0x1002, 3), "cde");
    EXPECT_EQ(read(0x1000, 2), "ab");
    EXPECT_EQ(read(0x1004, 4), "Efgh");  // byte 4 for the second time
    EXPECT_EQ(read(0x1000, 8), "ABCDEFGH");
}

TEST_F(replay_memory_test, one_read_of_several) {
    data(0x1ffc, "abcd");
    data(0x2000, "efgh");
    EXPECT_EQ(read(0x1ffc, 8), "abcdefgh");
    EXPECT_EQ(unknown, 0u);
}

TEST_F(replay_memory_test, asks_for_more_before_it_takes_what_there_is) {
    memory.write(0x1000, reinterpret_cast<const std::uint8_t*>("card"), 4);
    later.push_back(version(0x9000, "other"));
    later.push_back(version(0x1000, "host"));
    EXPECT_EQ(read(0x1000, 4), "host");
    EXPECT_TRUE(later.empty());
}

TEST_F(replay_memory_test, what_the_card_wrote_is_there) {
    data(0x1000, "abcd");
    EXPECT_EQ(read(0x1000, 4), "abcd");
    memory.write(0x1001, reinterpret_cast<const std::uint8_t*>("XY"), 2);
    EXPECT_EQ(read(0x1000, 4), "aXYd");
}

TEST_F(replay_memory_test, never_recorded_is_zero_and_counted) {
    data(0x1000, "ab");
    EXPECT_EQ(read(0x1000, 4), std::string("ab\0\0", 4));
    EXPECT_EQ(unknown, 2u);
    EXPECT_EQ(memory.zeros(), 2u);
}

TEST_F(replay_memory_test, walker_sees_versions_of_actions_done) {
    table(0x1000, "11111111", 1);
    table(0x1000, "33333333", 3);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(read(0x1000, 8, true, 2), "11111111");
    EXPECT_EQ(read(0x1000, 8, true, 3), "33333333");
    EXPECT_EQ(unknown, 0u);
}

TEST_F(replay_memory_test, walker_earlier_than_recorded_gets_the_oldest) {
    table(0x1000, "55555555", 5);
    table(0x1000, "66666666", 6);
    EXPECT_EQ(read(0x1000, 8, true, 2), "55555555");
    EXPECT_EQ(unknown, 0u);
}

TEST_F(replay_memory_test, data_are_no_entries) {
    data(0x1000, "abcdefgh");
    EXPECT_EQ(read(0x1000, 8), "abcdefgh");
    read(0x1000, 8, true, 9);
    EXPECT_EQ(unknown, 8u);
    EXPECT_EQ(memory.zeros(), 0u);  // of data only
}

TEST_F(replay_memory_test, what_nobody_asked_for_becomes_the_past) {
    data(0x1000, "abcd");
    data(0x1000, "efgh");
    EXPECT_EQ(memory.expire(2), 4u);  // the first
    EXPECT_EQ(read(0x1000, 4), "efgh");
}

TEST_F(replay_memory_test, maps) {
    EXPECT_TRUE(memory.mapped(0x5000, 8));  // none are known
    memory.map(0x1000, 0x2000);
    memory.map(0x3000, 0x1000);
    EXPECT_TRUE(memory.mapped(0x1000, 0x3000));
    EXPECT_FALSE(memory.mapped(0x0ff8, 16));
    EXPECT_FALSE(memory.mapped(0x3ff8, 16));
    memory.unmap(0x2000, 0x1000);
    EXPECT_TRUE(memory.mapped(0x1000, 0x1000));
    EXPECT_FALSE(memory.mapped(0x1ff8, 16));
    EXPECT_TRUE(memory.mapped(0x3000, 0x1000));
    EXPECT_FALSE(memory.mapped(~std::uint64_t{0} - 7, 16));
}

}  // namespace
}  // namespace prawn
