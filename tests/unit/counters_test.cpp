// SPDX-License-Identifier: Apache-2.0
#include "support/counters.h"

#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prawn_hw.h"

namespace prawn {
namespace {

constexpr std::uint64_t NONE = ~std::uint64_t{0};

TEST(counters, keep_the_order_of_registration) {
    counter_registry r(4);
    counter& misses = r.add("utlb.misses");
    context_counter& sent = r.add_per_context("packetizer.sent");
    counter& hits = r.add("utlb.hits");
    misses++;
    hits += 41;
    ++hits;
    sent[3] += 7;

    ASSERT_EQ(r.size(), 2u);
    ASSERT_EQ(r.per_context_size(), 1u);
    EXPECT_EQ(r.name(0), "utlb.misses");
    EXPECT_EQ(r.value(0), 1u);
    EXPECT_EQ(r.name(1), "utlb.hits");
    EXPECT_EQ(r.value(1), 42u);
    EXPECT_EQ(r.per_context_name(0), "packetizer.sent");
    EXPECT_EQ(r.per_context_value(0, 3), 7u);
    EXPECT_EQ(r.per_context_value(0, 2), 0u);
}

TEST(counters, references_survive_later_registrations) {
    counter_registry r(1);
    counter& first = r.add("block.c0");
    for (int i = 1; i < 200; i++)
        r.add("block.c" + std::to_string(i));
    first += 5;
    EXPECT_EQ(r.value(0), 5u);
}

TEST(counters, what_does_not_exist_reads_all_ones) {
    counter_registry r(2);
    r.add("a.b");
    r.add_per_context("a.c");
    EXPECT_EQ(r.value(1), NONE);
    EXPECT_EQ(r.name(1), "");
    EXPECT_EQ(r.per_context_value(0, 2), NONE);
    EXPECT_EQ(r.per_context_value(1, 0), NONE);
    EXPECT_EQ(r.per_context_name(1), "");
}

TEST(counters, a_context_that_does_not_exist_counts_nowhere) {
    counter_registry r(2);
    context_counter& c = r.add_per_context("a.c");
    c[2] += 3;
    c[0xffff]++;
    EXPECT_EQ(r.per_context_value(0, 0), 0u);
    EXPECT_EQ(r.per_context_value(0, 1), 0u);
    EXPECT_EQ(r.per_context_value(0, 2), NONE);
}

TEST(counters, at_least_is_a_high_water_mark) {
    counter c;
    c.at_least(5);
    c.at_least(3);
    EXPECT_EQ(c.value(), 5u);
}

TEST(counters, bad_names_are_refused) {
    counter_registry r(1);
    r.add("utlb.hits");
    for (const char* bad : {"", "utlb", ".hits", "utlb.", "utlb.Hits",
                            "utlb.h its", "utlb.\"x\""})
        EXPECT_THROW(r.add(bad), std::logic_error) << bad;
    EXPECT_THROW(r.add("utlb.hits"), std::logic_error);
    EXPECT_THROW(r.add_per_context("utlb.hits"), std::logic_error);
    const std::string longest = "a." + std::string(45, 'b');
    ASSERT_EQ(longest.size(), PRAWN_COUNTER_NAME_SIZE - 1u);
    EXPECT_NO_THROW(r.add(longest));
    EXPECT_THROW(r.add(longest + 'b'), std::logic_error);
}

TEST(counters, the_next_owner_of_a_context_starts_at_zero) {
    counter_registry r(2);
    counter& global = r.add("a.g");
    context_counter& c = r.add_per_context("a.c");
    global += 9;
    c[0] += 1;
    c[1] += 2;
    r.clear_context(1);
    r.clear_context(2);  // does not exist: nothing happens
    EXPECT_EQ(r.per_context_value(0, 0), 1u);
    EXPECT_EQ(r.per_context_value(0, 1), 0u);
    EXPECT_EQ(r.value(0), 9u);
}

TEST(counters, table_leaves_out_zeros) {
    counter_registry r(3);
    r.add("utlb.hits") += 12;
    r.add("utlb.misses");
    r.add_per_context("utlb.walks")[1] += 4;
    std::ostringstream out;
    r.write_table(out);
    const std::string text = out.str();
    EXPECT_NE(text.find("utlb.hits"), std::string::npos);
    EXPECT_EQ(text.find("utlb.misses"), std::string::npos);
    EXPECT_NE(text.find("context 1"), std::string::npos);
    EXPECT_EQ(text.find("context 0"), std::string::npos);
    EXPECT_NE(text.find("utlb.walks"), std::string::npos);
}

TEST(counters, json_can_be_read) {
    counter_registry r(3);
    r.add("utlb.hits") += 0xffffffffffffffff;
    r.add("utlb.misses");
    context_counter& c = r.add_per_context("utlb.walks");
    c[0] += 1;
    c[2] += 4;
    std::ostringstream out;
    r.write_json(out);
    const auto j = nlohmann::json::parse(out.str());
    EXPECT_EQ(j["global"]["utlb.hits"], 0xffffffffffffffffu);
    EXPECT_EQ(j["global"]["utlb.misses"], 0u);
    EXPECT_EQ(j["contexts"].size(), 2u);
    EXPECT_EQ(j["contexts"]["0"]["utlb.walks"], 1u);
    EXPECT_EQ(j["contexts"]["2"]["utlb.walks"], 4u);
}

}  // namespace
}  // namespace prawn
