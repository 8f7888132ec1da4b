// SPDX-License-Identifier: Apache-2.0
#include "nic/utlb_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

namespace prawn {
namespace {

constexpr std::uint64_t E = PRAWN_TABLE_ENTRY_VALID_MASK;

utlb_geometry shape(unsigned log2_entries, unsigned log2_ways, bool offset) {
    utlb_geometry g;
    g.log2_entries = log2_entries;
    g.log2_ways = log2_ways;
    g.offset = offset;
    return g;
}

TEST(utlb_geometry, encodes_and_decodes) {
    for (std::uint32_t word = 0; word < 0x1000; word++) {
        utlb_geometry g;
        const bool fits = (word & 15) >= 6 && (word & 15) <= 14 &&
                          (word & 0x880) == 0 && (word >> 8 & 7) <= 5;
        ASSERT_EQ(utlb_geometry::decode(word, g), fits) << word;
        if (fits) {
            ASSERT_EQ(g.encode(), word);
        } else {
            ASSERT_EQ(g.encode(), utlb_geometry().encode());
        }
    }
    utlb_geometry g;
    EXPECT_FALSE(utlb_geometry::decode(0x80000000u | g.encode(), g));
}

TEST(utlb_cache, least_recently_used_goes) {
    utlb_cache c(shape(6, 1, false));  // 32 sets of 2
    c.fill(0, 5, E | 0x1000);
    c.fill(0, 5 + 32, E | 0x2000);
    EXPECT_EQ(c.lookup(0, 5), E | 0x1000);  // now the newer
    const auto e = c.fill(0, 5 + 64, E | 0x3000);
    EXPECT_TRUE(e.any);
    EXPECT_EQ(e.context, 0);
    EXPECT_EQ(e.page, 5u + 32);
    EXPECT_EQ(c.lookup(0, 5 + 32), utlb_cache::NOTHING);
    EXPECT_EQ(c.lookup(0, 5), E | 0x1000);
    EXPECT_EQ(c.lookup(0, 5 + 64), E | 0x3000);
    // An entry that is there is replaced, not doubled.
    EXPECT_FALSE(c.fill(0, 5, E | 0x9000).any);
    EXPECT_EQ(c.lookup(0, 5), E | 0x9000);
    EXPECT_EQ(c.lookup(0, 5 + 64), E | 0x3000);
}

TEST(utlb_cache, offset_keeps_contexts_apart) {
    utlb_cache with(shape(8, 0, true));
    utlb_cache without(shape(8, 0, false));
    for (std::uint16_t context = 0; context < 4; context++) {
        for (std::uint64_t page = 0; page < 64; page++) {
            with.fill(context, page, E);
            without.fill(context, page, E);
        }
    }
    unsigned kept_with = 0, kept_without = 0;
    for (std::uint16_t context = 0; context < 4; context++) {
        for (std::uint64_t page = 0; page < 64; page++) {
            kept_with += with.lookup(context, page) != 0;
            kept_without += without.lookup(context, page) != 0;
        }
    }
    EXPECT_EQ(kept_with, 256u);
    EXPECT_EQ(kept_without, 64u);
}

// Every geometry against a list per set.
TEST(utlb_cache, equals_a_model) {
    struct entry {
        std::uint16_t context;
        std::uint64_t page;
        std::uint64_t value;
    };
    for (const unsigned log2_entries : {6u, 9u, 14u}) {
        for (unsigned log2_ways = 0; log2_ways <= 3; log2_ways++) {
            std::mt19937_64 random(log2_entries * 8 + log2_ways);
            utlb_cache c(shape(log2_entries, log2_ways, false));
            const std::uint64_t sets =
                (std::uint64_t{1} << log2_entries) >> log2_ways;
            std::map<std::uint64_t, std::list<entry>> model;  // newest first
            const auto find = [&](std::uint16_t context, std::uint64_t page) {
                auto& set = model[page % sets];
                return std::find_if(
                    set.begin(), set.end(), [&](const entry& e) {
                        return e.context == context && e.page == page;
                    });
            };
            const std::uint64_t span = std::uint64_t{3} << log2_entries;
            for (int i = 0; i < 60000; i++) {
                const auto context =
                    static_cast<std::uint16_t>(random() % 3 * 31);
                const std::uint64_t page =
                    (random() % 2 ? 0 : 0xfffff0000) +
                    (random() % 2 ? random() % span : random() % 20);
                auto& set = model[page % sets];
                const auto at = find(context, page);
                const unsigned what = static_cast<unsigned>(random() % 100);
                if (what < 60) {
                    const std::uint64_t got = c.lookup(context, page);
                    ASSERT_EQ(got, at == set.end() ? 0 : at->value);
                    if (at != set.end())
                        set.splice(set.begin(), set, at);
                } else if (what < 98) {
                    const std::uint64_t value = E | random() << 12;
                    const auto gone = c.fill(context, page, value);
                    bool expect = false;
                    if (at != set.end()) {
                        set.erase(at);
                    } else if (set.size() == std::size_t{1} << log2_ways) {
                        expect = true;
                        ASSERT_EQ(gone.context, set.back().context);
                        ASSERT_EQ(gone.page, set.back().page);
                        set.pop_back();
                    }
                    ASSERT_EQ(gone.any, expect);
                    set.push_front({context, page, value});
                } else {
                    const bool all = what == 99;
                    const std::uint64_t pages =
                        random() % 10 ? 1 + random() % 40 : 1 + random() % span;
                    std::size_t expect = 0;
                    for (auto& s : model) {
                        for (auto e = s.second.begin(); e != s.second.end();) {
                            if (e->context == context &&
                                (all ||
                                 (e->page >= page && e->page - page < pages))) {
                                e = s.second.erase(e);
                                expect++;
                            } else {
                                ++e;
                            }
                        }
                    }
                    ASSERT_EQ(all ? c.invalidate(context)
                                  : c.invalidate(context, page, pages),
                              expect);
                }
            }
            c.clear();
            EXPECT_EQ(c.lookup(0, 0), utlb_cache::NOTHING);
        }
    }
}

}  // namespace
}  // namespace prawn
