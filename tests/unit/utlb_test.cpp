// SPDX-License-Identifier: Apache-2.0
// The UTLB: pipeline, walks, answers, control.
#include "nic/utlb.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "utlb_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t VA = 0x7f1234400000;

utlb_bench& bench() {
    static auto* one = new utlb_bench("bench");
    return *one;
}

class utlb_test : public testing::Test
{
protected:
    utlb_bench& b = bench();
    tables t{b.host, 0x10000000};
    tables other{b.host, 0x20000000};

    void SetUp() override {
        b.start();
        b.enable(3, t);
        b.enable(5, other);
    }
    void TearDown() override {
        b.dut.reset();
        b.dma.clear();
        run_ns(1000);
    }
    std::vector<answers<utlb_reply>::entry>& got(unsigned port = UTLB_SEND) {
        return b.replies[port].all;
    }
};

TEST_F(utlb_test, cold_miss_warm_miss_hit) {
    t.map(VA + 3 * PAGE, 0xabc000);
    t.map(VA + 9 * PAGE, 0xdef000);
    b.ask(UTLB_SEND, 1, 3, VA + 3 * PAGE + 123);
    run_ns(1000);
    ASSERT_EQ(got().size(), 1u);
    EXPECT_EQ(got()[0].item.tag, 1u);
    EXPECT_EQ(got()[0].item.status, PRAWN_STATUS_OK);
    EXPECT_EQ(got()[0].item.address, 0xabc000u);
    // Lookup and SRAM, then four reads of 100 ns with a cycle after each.
    EXPECT_EQ(got()[0].ns() - b.t0, 8u + 4 * 104);
    ASSERT_EQ(b.dma.seen.size(), 4u);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(b.dma.seen[i].address, t.slot(VA, 3 - i));
        EXPECT_EQ(b.dma.seen[i].length, 8u);
        EXPECT_EQ(b.dma.seen[i].context, KERNEL_CONTEXT);
        EXPECT_FALSE(b.dma.seen[i].write);
    }
    // The whole line of 8.
    EXPECT_EQ(b.dma.seen[3].address, t.slot(VA, 0));
    EXPECT_EQ(b.dma.seen[3].length, 64u);

    // Next line, same region: one read.
    b.start();
    b.enable(3, t);
    b.translate(3, VA + 3 * PAGE);
    b.dma.seen.clear();
    const std::uint64_t asked = now_ns();
    EXPECT_EQ(b.translate(3, VA + 9 * PAGE).address, 0xdef000u);
    EXPECT_EQ(got().back().ns() - asked, 8u + 104);
    EXPECT_EQ(b.dma.seen.size(), 1u);

    const std::uint64_t again = now_ns();
    EXPECT_EQ(b.translate(3, VA + 9 * PAGE, true).address, 0xdef000u);
    EXPECT_EQ(got().back().ns() - again, 8u);
    EXPECT_EQ(b.dma.seen.size(), 1u);
}

TEST_F(utlb_test, one_lookup_a_cycle_and_ports_in_turn) {
    t.map(VA, 0x1000);
    b.translate(3, VA);
    for (auto& r : b.replies)
        r.all.clear();
    const std::uint64_t asked = now_ns();
    for (std::uint32_t i = 0; i < 10; i++)
        b.ask(UTLB_SEND, i, 3, VA);
    for (std::uint32_t i = 0; i < 5; i++)
        b.ask(UTLB_RECEIVE, i, 3, VA);
    run_ns(1000);
    ASSERT_EQ(got(UTLB_SEND).size(), 10u);
    ASSERT_EQ(got(UTLB_RECEIVE).size(), 5u);
    // One answer a cycle; the second port gets every other one.
    std::vector<std::uint64_t> all;
    for (const unsigned p : {UTLB_SEND, UTLB_RECEIVE})
        for (const auto& r : got(p))
            all.push_back(r.ns() - asked);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); i++)
        EXPECT_EQ(all[i], 8 + 4 * i);
    for (std::size_t i = 1; i < 5; i++)
        EXPECT_EQ(got(UTLB_RECEIVE)[i].ns() - got(UTLB_RECEIVE)[i - 1].ns(),
                  8u);
}

TEST_F(utlb_test, prefetch_brings_the_line_and_no_more) {
    for (unsigned log2 = 0; log2 <= 5; log2++) {
        utlb_geometry g;
        g.log2_prefetch = log2;
        b.start(g);
        b.enable(3, t);
        const std::uint64_t size = std::uint64_t{1} << log2;
        for (std::uint64_t i = 0; i < 512; i++)
            t.map(VA + i * PAGE, (i + 1) * PAGE);
        const std::uint64_t page = 512 - 37;
        b.translate(3, VA + page * PAGE);
        EXPECT_EQ(b.dma.seen.back().length, 8 * size);
        EXPECT_EQ(b.dma.seen.back().address % (8 * size), 0u);
        const std::uint64_t first = page / size * size;
        const std::uint64_t reads = b.dma.seen.size();
        for (std::uint64_t i = first; i < first + size; i++)
            EXPECT_EQ(b.translate(3, VA + i * PAGE).address, (i + 1) * PAGE);
        EXPECT_EQ(b.dma.seen.size(), reads);
        b.translate(3, VA + (first + size) * PAGE);
        EXPECT_EQ(b.dma.seen.size(), reads + 1);
    }
}

TEST_F(utlb_test, invalid_entries_are_never_cached) {
    t.map(VA + PAGE, 0x5000);
    EXPECT_EQ(b.translate(3, VA).status, PRAWN_STATUS_NOT_PINNED);
    const std::size_t reads = b.dma.seen.size();
    EXPECT_EQ(b.translate(3, VA).status, PRAWN_STATUS_NOT_PINNED);
    EXPECT_EQ(b.dma.seen.size(), reads + 1);
    t.map(VA, 0x9000);  // nobody tells the card
    EXPECT_EQ(b.translate(3, VA).address, 0x9000u);
    // A table that is missing higher up, likewise.
    EXPECT_EQ(b.translate(3, 0x1000).status, PRAWN_STATUS_NOT_PINNED);
    t.map(0x1000, 0x7000);
    EXPECT_EQ(b.translate(3, 0x1000).address, 0x7000u);
}

TEST_F(utlb_test, permission) {
    t.map(VA, 0x5000, false);
    EXPECT_EQ(b.translate(3, VA, true).status, PRAWN_STATUS_NOT_WRITABLE);
    EXPECT_EQ(b.translate(3, VA, false).address, 0x5000u);
    EXPECT_EQ(b.translate(3, VA, true).status, PRAWN_STATUS_NOT_WRITABLE);
    t.map(VA, 0x5000, true);  // more rights need no invalidation
    EXPECT_EQ(b.translate(3, VA, true).status, PRAWN_STATUS_OK);
}

TEST_F(utlb_test, reserved_bits) {
    for (unsigned level = 0; level < PRAWN_TABLE_LEVELS; level++) {
        for (const unsigned bit : {2u, 11u, 52u, 63u}) {
            t.map(VA, 0x5000);
            b.command(1, control_op::INVALIDATE, 3);
            run_ns(1000);
            const std::uint64_t at = t.slot(VA, level);
            const auto good = b.host.load<std::uint64_t>(at);
            b.host.store(at, good | std::uint64_t{1} << bit);
            const std::uint64_t bad = b.count("bad_entries");
            EXPECT_EQ(b.translate(3, VA).status, PRAWN_STATUS_NOT_PINNED);
            EXPECT_EQ(b.count("bad_entries"), bad + 1);
            b.host.store(at, good);
            EXPECT_EQ(b.translate(3, VA).address, 0x5000u);
        }
    }
}

TEST_F(utlb_test, contexts_and_addresses_that_do_not_exist) {
    EXPECT_EQ(b.translate(4, VA).status, PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b.translate(64, VA).status, PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b.translate(0xffff, VA).status, PRAWN_STATUS_BAD_CONTEXT);
    t.map(VA, 0x5000);
    EXPECT_EQ(b.translate(3, VA | std::uint64_t{1} << 48).status,
              PRAWN_STATUS_NOT_PINNED);
    EXPECT_EQ(b.translate(3, VA | std::uint64_t{1} << 63).status,
              PRAWN_STATUS_NOT_PINNED);
    EXPECT_TRUE(b.dma.seen.empty());
    // The same address in another context is another page.
    other.map(VA, 0x6000);
    EXPECT_EQ(b.translate(3, VA).address, 0x5000u);
    EXPECT_EQ(b.translate(5, VA).address, 0x6000u);
}

TEST_F(utlb_test, table_that_cannot_be_read) {
    t.map(VA, 0x5000);
    b.dma.fail = true;
    b.ask(UTLB_SEND, 1, 3, VA);
    b.ask(UTLB_RECEIVE, 2, 3, VA + PAGE);
    run_ns(2000);
    EXPECT_EQ(got(UTLB_SEND).at(0).item.status, PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(got(UTLB_RECEIVE).at(0).item.status, PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(b.dma.seen.size(), 1u);
    b.dma.fail = false;
    EXPECT_EQ(b.translate(3, VA).address, 0x5000u);
}

TEST_F(utlb_test, misses_of_one_line_share_a_walk) {
    for (std::uint64_t i = 0; i < 8; i++)
        t.map(VA + i * PAGE, (i + 1) * PAGE);
    const std::uint64_t walks = b.count("walks");
    for (std::uint32_t i = 0; i < 8; i++)
        b.ask(i % 2 ? UTLB_RECEIVE : UTLB_SEND, i, 3, VA + i * PAGE);
    run_ns(3000);
    EXPECT_EQ(b.dma.seen.size(), 4u);
    EXPECT_EQ(b.count("walks"), walks + 1);
    ASSERT_EQ(got(UTLB_SEND).size(), 4u);
    ASSERT_EQ(got(UTLB_RECEIVE).size(), 4u);
    for (const unsigned p : {UTLB_SEND, UTLB_RECEIVE})
        for (const auto& r : got(p))
            EXPECT_EQ(r.item.address, (r.item.tag + 1) * PAGE);
}

TEST_F(utlb_test, hit_under_miss) {
    t.map(VA, 0x5000);
    other.map(VA, 0x6000);
    b.translate(5, VA);
    b.replies[UTLB_SEND].all.clear();
    b.dma.hold = true;
    // More misses than there are walks.
    for (std::uint32_t i = 0; i < utlb::LIMIT; i++)
        ASSERT_TRUE(b.ask(UTLB_SEND, i, 3, VA + i * 0x100000));
    ASSERT_TRUE(b.ask(UTLB_SEND, 99, 5, VA));
    run_ns(200);
    ASSERT_EQ(got().size(), 1u);
    EXPECT_EQ(got()[0].item.tag, 99u);
    EXPECT_EQ(b.dma.waiting.size(), 8u);  // walks at once
}

TEST_F(utlb_test, waiting_contexts_take_turns) {
    b.dma.hold = true;
    for (std::uint32_t i = 0; i < utlb::LIMIT; i++)
        ASSERT_TRUE(b.ask(UTLB_SEND, i, 3, VA + i * 0x100000));
    run_ns(200);
    ASSERT_TRUE(b.ask(UTLB_SEND, 99, 5, VA));
    run_ns(200);
    // Nothing is mapped: one read ends a walk. The other context is served
    // before the rest of the first.
    b.dma.step();
    run_ns(50);
    b.dma.step();
    run_ns(50);
    unsigned mine = 0;
    for (const dma_request& r : b.dma.seen)
        mine += r.address == other.slot(VA, 3);
    EXPECT_EQ(mine, 1u);
    b.dma.hold = false;
    while (!b.dma.waiting.empty()) {
        b.dma.step();
        run_ns(50);
    }
    run_ns(3000);
    EXPECT_EQ(got().size(), utlb::LIMIT + 1);
}

TEST_F(utlb_test, refuses_a_context_and_no_other) {
    b.dma.hold = true;
    for (std::uint32_t i = 0; i < utlb::LIMIT; i++)
        ASSERT_TRUE(b.ask(UTLB_SEND, i, 3, VA));
    EXPECT_FALSE(b.ask(UTLB_SEND, 50, 3, VA));
    EXPECT_TRUE(b.ask(UTLB_SEND, 51, 5, VA));
    EXPECT_TRUE(b.ask(UTLB_RECEIVE, 52, 3, VA));
    run_ns(500);
    EXPECT_EQ(b.rooms, 0u);
    b.dma.hold = false;
    b.dma.step();
    run_ns(3000);
    EXPECT_GE(b.rooms, 1u);
    EXPECT_TRUE(b.ask(UTLB_SEND, 50, 3, VA));
}

TEST_F(utlb_test, engine_that_refuses) {
    t.map(VA, 0x5000);
    b.dma.refuse = true;
    b.ask(UTLB_SEND, 1, 3, VA);
    run_ns(1000);
    EXPECT_TRUE(b.dma.seen.empty());
    b.dma.open();
    run_ns(1000);
    EXPECT_EQ(got().at(0).item.address, 0x5000u);
}

TEST_F(utlb_test, control_requests) {
    const auto status = [&](control_op op, std::uint16_t context,
                            std::uint64_t a, std::uint64_t d) {
        b.command(7, op, context, a, 1, d);
        run_ns(500);
        EXPECT_FALSE(b.control.all.empty());
        EXPECT_EQ(b.control.all.back().item.tag, 7u);
        return b.control.all.back().item.status;
    };
    using op = control_op;
    EXPECT_EQ(status(op::CONTEXT_ENABLE, 3, 0, 0), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(status(op::CONTEXT_ENABLE, 64, 0, 0), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(status(op::CONTEXT_ENABLE, 7, 0, 8), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(status(op::CONTEXT_ENABLE, 7, 0, std::uint64_t{1} << 52),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(status(op::CONTEXT_DISABLE, 64, 0, 0), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(status(op::CONTEXT_DISABLE, 9, 0, 0), PRAWN_STATUS_OK);
    EXPECT_EQ(status(op::INVALIDATE, 64, 0, 0), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(status(op::INVALIDATE, 3, std::uint64_t{1} << 48, 0),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(status(op::FILL, 3, 0, 0), PRAWN_STATUS_UNSUPPORTED);
    EXPECT_EQ(status(op::SET, 3, 0, 0), PRAWN_STATUS_BAD_OPCODE);
    EXPECT_EQ(status(op::DRAIN, 0, 0, 0), PRAWN_STATUS_OK);
}

TEST_F(utlb_test, time_of_an_invalidation) {
    b.command(1, control_op::INVALIDATE, 3, VA, 1);
    b.command(2, control_op::INVALIDATE, 3, VA, 100);
    b.command(3, control_op::INVALIDATE, 3, 0, std::uint64_t{1} << 40);
    EXPECT_TRUE(b.control.all.empty());
    run_ns(100000);
    ASSERT_EQ(b.control.all.size(), 3u);
    EXPECT_EQ(b.control.all[0].ns() - b.t0, 4u * (2 + 1));
    EXPECT_EQ(b.control.all[1].ns() - b.t0, 4u * (2 + 100));
    EXPECT_EQ(b.control.all[2].ns() - b.t0, 4u * (2 + 2048));  // its sets
}

TEST_F(utlb_test, drain_waits_for_table_reads) {
    b.dma.hold = true;
    b.ask(UTLB_SEND, 1, 3, VA);
    run_ns(100);
    b.command(7, control_op::DRAIN);
    b.command(8, control_op::INVALIDATE, 3, VA, 1);
    run_ns(100);
    ASSERT_EQ(b.control.all.size(), 1u);  // the invalidation need not wait
    EXPECT_EQ(b.control.all[0].item.tag, 8u);
    b.command(9, control_op::INVALIDATE, 3);  // pages 0: table pages too
    run_ns(100);
    EXPECT_EQ(b.control.all.size(), 1u);
    b.dma.step();
    run_ns(100);
    EXPECT_EQ(b.control.all.size(), 3u);
}

TEST_F(utlb_test, geometry_and_mode) {
    const std::uint32_t before = b.dut.geometry();
    b.dut.set_geometry(0x006);  // contexts are enabled
    EXPECT_EQ(b.dut.geometry(), before);
    b.dut.reset();
    b.dut.set_geometry(0x005);  // 32 entries: there is no such cache
    EXPECT_EQ(b.dut.geometry(), before);
    b.dut.set_geometry(0x546);
    EXPECT_EQ(b.dut.geometry(), 0x546u);
    EXPECT_EQ(b.dut.card_read(0), 0x546u);
    EXPECT_EQ(b.dut.mode(),
              static_cast<std::uint32_t>(PRAWN_UTLB_MODE_HIERARCHICAL));
    b.dut.set_mode(PRAWN_UTLB_MODE_KERNEL_MANAGED);
    EXPECT_EQ(b.dut.mode(),
              static_cast<std::uint32_t>(PRAWN_UTLB_MODE_HIERARCHICAL));
}

TEST_F(utlb_test, counters) {
    utlb_geometry g;
    g.log2_entries = 6;
    g.log2_ways = 0;
    g.log2_prefetch = 1;
    g.offset = false;
    b.start(g);
    b.enable(3, t);
    const auto all = [&](const char* name) { return b.count(name, 3); };
    const char* const names[] = {"lookups",    "hits",          "misses",
                                 "compulsory", "fetched",       "walks",
                                 "evictions",  "invalidations", "not_pinned"};
    std::map<std::string, std::uint64_t> base;
    for (const char* name : names)
        base[name] = all(name);
    for (std::uint64_t i = 0; i < 128; i++)
        t.map(VA + i * PAGE, (i + 1) * PAGE);
    b.translate(3, VA);               // miss, brings 0 and 1
    b.translate(3, VA + PAGE);        // hit
    b.translate(3, VA + 64 * PAGE);   // miss, evicts both
    b.translate(3, VA + PAGE);        // miss, not compulsory; evicts both
    b.translate(3, VA + 200 * PAGE);  // miss, not pinned
    b.command(1, control_op::INVALIDATE, 3, VA, 1);
    run_ns(100);
    const std::map<std::string, std::uint64_t> expected = {
        {"lookups", 5},    {"hits", 1},          {"misses", 4},
        {"compulsory", 2}, {"fetched", 8},       {"walks", 4},
        {"evictions", 4},  {"invalidations", 1}, {"not_pinned", 1}};
    for (const char* name : names)
        EXPECT_EQ(all(name) - base[name], expected.at(name)) << name;
}

}  // namespace
}  // namespace test
}  // namespace prawn
