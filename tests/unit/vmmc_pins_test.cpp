// SPDX-License-Identifier: Apache-2.0
// The library's knowledge of pinned pages, against a reference set.

#include <cerrno>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

extern "C" {
#include "pins.h"
}

namespace {

// A kernel that pins up to a limit.
struct fake_kernel {
    std::set<std::uint64_t> pages;
    std::set<std::uint64_t> unmapped;
    std::size_t limit = SIZE_MAX;
    unsigned calls = 0;

    static int pin(void* arg, std::uint64_t va, std::uint64_t length) {
        auto* k = static_cast<fake_kernel*>(arg);
        k->calls++;
        EXPECT_EQ(va % PIN_PAGE, 0u);
        EXPECT_EQ(length % PIN_PAGE, 0u);
        std::set<std::uint64_t> added;
        for (std::uint64_t p = va; p < va + length; p += PIN_PAGE) {
            if (k->unmapped.count(p))
                return -EFAULT;
            if (!k->pages.count(p))
                added.insert(p);
        }
        if (k->pages.size() + added.size() > k->limit)
            return -ENOMEM;
        k->pages.insert(added.begin(), added.end());
        return 0;
    }
    static int unpin(void* arg, std::uint64_t va, std::uint64_t length) {
        auto* k = static_cast<fake_kernel*>(arg);
        k->calls++;
        for (std::uint64_t p = va; p < va + length; p += PIN_PAGE)
            EXPECT_EQ(k->pages.erase(p), 1u) << "not pinned: " << p;
        return 0;
    }
};

class pins : public testing::Test
{
protected:
    pins() {
        pin_ops ops{};
        ops.pin = fake_kernel::pin;
        ops.unpin = fake_kernel::unpin;
        ops.arg = &kernel;
        EXPECT_EQ(pins_init(&table, &ops), 0);
    }
    ~pins() override { pins_free(&table); }

    std::uint64_t get(std::uint64_t va, std::uint64_t length, int want = 0) {
        std::uint64_t held = 0;
        EXPECT_EQ(pins_get(&table, va, length, &held), want);
        return held;
    }

    fake_kernel kernel;
    pin_table table{};
};

TEST_F(pins, second_use_costs_no_call) {
    EXPECT_EQ(get(0x10000123, 10000), 10000u);
    EXPECT_EQ(kernel.pages.size(), 3u);
    unsigned calls = kernel.calls;
    pins_put(&table, 0x10000123, 10000);
    EXPECT_EQ(get(0x10001000, 4096), 4096u);
    EXPECT_EQ(kernel.calls, calls);
    pins_put(&table, 0x10001000, 4096);
}

TEST_F(pins, no_length_pins_nothing) {
    EXPECT_EQ(get(0x5000, 0), 0u);
    EXPECT_TRUE(kernel.pages.empty());
}

TEST_F(pins, crosses_chunks) {
    const std::uint64_t va = 3 * PIN_CHUNK - 5;
    EXPECT_EQ(get(va, 2 * PIN_CHUNK), 2 * PIN_CHUNK);
    EXPECT_EQ(kernel.pages.size(), 2 * PIN_CHUNK / PIN_PAGE + 1);
    pins_put(&table, va, 2 * PIN_CHUNK);
}

TEST_F(pins, unmapped_page_ends_what_is_held) {
    kernel.unmapped.insert(0x40003000);
    EXPECT_EQ(get(0x40003000, 1, -EFAULT), 0u);
    std::uint64_t held = get(0x40000000, 0x8000, -EFAULT);
    EXPECT_EQ(held, 0u);  // one call for the chunk, all or nothing
}

TEST_F(pins, limit_evicts_the_least_recently_used) {
    kernel.limit = 64;
    get(1 * PIN_CHUNK, PIN_CHUNK / 2);
    pins_put(&table, 1 * PIN_CHUNK, PIN_CHUNK / 2);
    get(2 * PIN_CHUNK, PIN_CHUNK / 2);
    pins_put(&table, 2 * PIN_CHUNK, PIN_CHUNK / 2);
    get(1 * PIN_CHUNK, 1);  // 1 is now the newer one
    pins_put(&table, 1 * PIN_CHUNK, 1);
    EXPECT_EQ(get(3 * PIN_CHUNK, PIN_CHUNK / 2), PIN_CHUNK / 2);
    EXPECT_TRUE(kernel.pages.count(1 * PIN_CHUNK));
    EXPECT_FALSE(kernel.pages.count(2 * PIN_CHUNK));
    pins_put(&table, 3 * PIN_CHUNK, PIN_CHUNK / 2);
}

TEST_F(pins, limit_never_evicts_what_is_in_use) {
    kernel.limit = 10;
    EXPECT_EQ(get(1 * PIN_CHUNK, 10 * PIN_PAGE), 10 * PIN_PAGE);
    EXPECT_EQ(get(2 * PIN_CHUNK, PIN_PAGE, -ENOMEM), 0u);
    pins_put(&table, 1 * PIN_CHUNK, 10 * PIN_PAGE);
    EXPECT_EQ(get(2 * PIN_CHUNK, PIN_PAGE), PIN_PAGE);
    pins_put(&table, 2 * PIN_CHUNK, PIN_PAGE);
}

TEST_F(pins, more_than_the_limit_is_held_in_part) {
    kernel.limit = 10;
    std::uint64_t held = get(PIN_CHUNK + 100, 20 * PIN_PAGE);
    EXPECT_EQ(held, 10 * PIN_PAGE - 100);
    pins_put(&table, PIN_CHUNK + 100, held);
    EXPECT_EQ(pins_drop(&table, PIN_CHUNK, PIN_CHUNK), 0);
    EXPECT_TRUE(kernel.pages.empty());
}

TEST_F(pins, forgotten_pages_are_asked_for_anew) {
    get(PIN_CHUNK, 4 * PIN_PAGE);
    kernel.pages.erase(PIN_CHUNK + PIN_PAGE);  // the process unmapped it
    pins_forget(&table, PIN_CHUNK + PIN_PAGE, PIN_PAGE);
    get(PIN_CHUNK, 4 * PIN_PAGE);
    EXPECT_TRUE(kernel.pages.count(PIN_CHUNK + PIN_PAGE));
}

TEST_F(pins, drop_refuses_what_is_in_use) {
    get(PIN_CHUNK, PIN_PAGE);
    EXPECT_EQ(pins_drop(&table, PIN_CHUNK, PIN_PAGE), -EBUSY);
    pins_put(&table, PIN_CHUNK, PIN_PAGE);
    EXPECT_EQ(pins_drop(&table, PIN_CHUNK, PIN_PAGE), 0);
    EXPECT_TRUE(kernel.pages.empty());
}

TEST_F(pins, random_use_agrees_with_the_kernel) {
    std::mt19937_64 random(7);
    std::multimap<std::uint64_t, std::uint64_t> in_use;
    kernel.limit = 3000;
    for (int i = 0; i < 2000; i++) {
        std::uint64_t va = random() % (512 * PIN_CHUNK);
        std::uint64_t length = random() % (3 * PIN_CHUNK) + 1;
        std::uint64_t held = 0;
        int e = pins_get(&table, va, length, &held);
        ASSERT_TRUE(e == 0 || e == -ENOMEM) << e;
        if (held)
            in_use.emplace(va, held);
        for (auto& u : in_use)
            for (std::uint64_t p = u.first / PIN_PAGE;
                 p <= (u.first + u.second - 1) / PIN_PAGE; p += 7)
                ASSERT_TRUE(kernel.pages.count(p * PIN_PAGE));
        while (in_use.size() > 8) {
            pins_put(&table, in_use.begin()->first, in_use.begin()->second);
            in_use.erase(in_use.begin());
        }
    }
}

}  // namespace
