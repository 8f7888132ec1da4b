// SPDX-License-Identifier: Apache-2.0
// The UTLB against changes of the tables, resets and refusals at every point.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "utlb_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t VA = 0x7f1234400000;

// All ports behind twins, and the DMA channel too.
struct twinned : sc_core::sc_module {
    utlb_bench inner;
    twin<utlb_request> send{"send", 21, sc_time(60, SC_NS), 5};
    twin<utlb_request> receive{"receive", 22, sc_time(60, SC_NS), 5};
    explicit twinned(sc_core::sc_module_name name) :
        sc_core::sc_module(name), inner("inner", config()) {
        send.out.bind(inner.dut.request_in(UTLB_SEND));
        receive.out.bind(inner.dut.request_in(UTLB_RECEIVE));
    }
    static utlb_config config() {
        utlb_config c;
        c.geometry.log2_entries = 6;
        c.geometry.log2_ways = 1;
        c.walks = 3;
        return c;
    }
};

struct all_benches {
    utlb_bench plain{"plain"};
    twinned twin{"twin"};
};

all_benches& benches() {
    static auto* all = new all_benches;
    return *all;
}

class utlb_race_test : public testing::Test
{
protected:
    utlb_bench& b = benches().plain;
    void TearDown() override {
        b.dut.reset();
        b.dma.clear();
        run_ns(1000);
    }
    // A walk up to a point between its reads: `point` reads answered (0 to 3),
    // and the cycle after the last answer over or not.
    void walk_to(unsigned point, bool stepped) {
        b.ask(UTLB_SEND, 1, 3, VA);
        run_ns(9);
        for (unsigned i = 0; i < point; i++) {
            ASSERT_EQ(b.dma.waiting.size(), 1u);
            b.dma.step();
            if (i + 1 < point || stepped)
                run_ns(5);
        }
    }
    void finish() {
        for (int i = 0; i < 20; i++) {
            if (!b.dma.waiting.empty())
                b.dma.step();
            run_ns(20);
        }
    }
};

// The mapping changes and its page is invalidated, at every point of a walk,
// with data as of the request or as of the answer: the answer is the new page,
// and so is the next one.
TEST_F(utlb_race_test, invalidation_at_every_point) {
    for (unsigned point = 0; point <= 4; point++) {
        for (const bool stepped : {false, true}) {
            for (const bool early : {false, true}) {
                for (const std::uint64_t pages : {1, 5, 0}) {
                    if (point == 4 && stepped)
                        continue;  // over
                    SCOPED_TRACE(testing::Message()
                                 << point << stepped << early << pages);
                    tables t(b.host, 0x10000000);
                    b.start();
                    b.enable(3, t);
                    t.map(VA, 0x5000);
                    b.dma.hold = true;
                    b.dma.early = early;
                    walk_to(point, stepped);
                    t.map(VA, 0x6000);
                    b.command(7, control_op::INVALIDATE, 3,
                              pages ? VA - (pages - 1) * PAGE : 0, pages);
                    finish();
                    ASSERT_EQ(b.replies[UTLB_SEND].all.size(), 1u);
                    const auto& r = b.replies[UTLB_SEND].all[0].item;
                    EXPECT_EQ(r.status, PRAWN_STATUS_OK);
                    EXPECT_EQ(r.address, 0x6000u);
                    EXPECT_EQ(b.control.all.size(), 1u);
                    b.dma.clear();
                    EXPECT_EQ(b.translate(3, VA).address, 0x6000u);
                }
            }
        }
    }
}

// With pages = 0 the table pages go too: once it is acknowledged, no read of
// them begins, whatever was under way.
TEST_F(utlb_race_test, tables_are_free_after_the_acknowledgement) {
    for (unsigned point = 0; point <= 4; point++) {
        SCOPED_TRACE(point);
        tables t(b.host, 0x10000000);
        b.start();
        b.enable(3, t);
        t.map(VA, 0x5000);
        const std::uint64_t old_leaf = t.slot(VA, 0) & ~(PAGE - 1);
        const std::uint64_t old_middle = t.slot(VA, 1) & ~(PAGE - 1);
        // The directory cache knows the leaf.
        EXPECT_EQ(b.translate(3, VA + 64 * PAGE).status,
                  PRAWN_STATUS_NOT_PINNED);
        b.dma.hold = true;
        b.replies[UTLB_SEND].all.clear();
        if (point > 0) {
            b.ask(UTLB_SEND, 1, 3, VA);
            run_ns(9);
            if (point > 1)
                b.dma.step();
        }
        // New tables below the root.
        b.host.store<std::uint64_t>(t.slot(VA, 2), 0);
        t.map(VA, 0x6000);
        b.command(7, control_op::INVALIDATE, 3);
        for (int i = 0; i < 10 && b.control.all.empty(); i++) {
            if (!b.dma.waiting.empty())
                b.dma.step();
            run_ns(3);
        }
        ASSERT_EQ(b.control.all.size(), 1u);
        const std::size_t before = b.dma.seen.size();
        for (const dma_request& r : b.dma.waiting) {
            EXPECT_NE(r.address & ~(PAGE - 1), old_leaf);
            EXPECT_NE(r.address & ~(PAGE - 1), old_middle);
        }
        b.dma.hold = false;
        finish();
        EXPECT_EQ(b.translate(3, VA).address, 0x6000u);
        for (std::size_t i = before; i < b.dma.seen.size(); i++) {
            EXPECT_NE(b.dma.seen[i].address & ~(PAGE - 1), old_leaf);
            EXPECT_NE(b.dma.seen[i].address & ~(PAGE - 1), old_middle);
        }
    }
}

// A page is pinned after the line of its neighbour has been read, and asked for
// before that walk is over: it must not be refused. Nobody invalidates, for
// nothing was taken away.
TEST_F(utlb_race_test, pinned_while_its_line_is_being_read) {
    for (unsigned point = 3; point <= 4; point++) {
        for (const bool write : {false, true}) {
            tables t(b.host, 0x10000000);
            b.start();
            b.enable(3, t);
            t.map(VA, 0x5000);
            if (write)
                t.map(VA + PAGE, 0x6000, false);
            b.dma.hold = true;
            b.dma.early = true;
            walk_to(point, point == 3);  // the line's read is on its way, or
                                         // its answer has just come
            t.map(VA + PAGE, 0x6000);
            b.ask(UTLB_RECEIVE, 2, 3, VA + PAGE, write);
            if (point == 3)
                run_ns(9);  // through the pipeline
            finish();
            EXPECT_EQ(b.replies[UTLB_SEND].all.at(0).item.address, 0x5000u);
            EXPECT_EQ(b.replies[UTLB_RECEIVE].all.at(0).item.address, 0x6000u);
        }
    }
}

TEST_F(utlb_race_test, other_pages_do_not_disturb_a_walk) {
    tables t(b.host, 0x10000000);
    b.start();
    b.enable(3, t);
    b.enable(4, t);
    t.map(VA, 0x5000);
    b.dma.hold = true;
    walk_to(3, true);  // the line is being read
    b.command(1, control_op::INVALIDATE, 3, VA + 8 * PAGE, 100);
    b.command(2, control_op::INVALIDATE, 3, VA - PAGE, 1);
    b.command(3, control_op::INVALIDATE, 4, VA, 1);
    finish();
    EXPECT_EQ(b.dma.seen.size(), 4u);
    EXPECT_EQ(b.replies[UTLB_SEND].all.at(0).item.address, 0x5000u);
}

TEST_F(utlb_race_test, context_disable_at_every_point) {
    for (unsigned point = 0; point <= 4; point++) {
        for (const bool stepped : {false, true}) {
            if (point == 4 && stepped)
                continue;
            SCOPED_TRACE(testing::Message() << point << stepped);
            tables t(b.host, 0x10000000), next(b.host, 0x20000000);
            b.start();
            b.enable(3, t);
            t.map(VA, 0x5000);
            next.map(VA, 0x7000);
            b.dma.hold = true;
            walk_to(point, stepped);
            b.command(7, control_op::CONTEXT_DISABLE, 3);
            // Answered at once; the acknowledgement waits for the read.
            EXPECT_EQ(b.replies[UTLB_SEND].all.at(0).item.status,
                      PRAWN_STATUS_BAD_CONTEXT);
            const bool reading = !b.dma.waiting.empty();
            run_ns(50);
            EXPECT_EQ(b.control.all.size(), reading ? 0u : 1u);
            // The next owner, before the old read has been answered.
            b.command(8, control_op::CONTEXT_ENABLE, 3, 0, 0, next.root());
            run_ns(50);
            b.ask(UTLB_SEND, 2, 3, VA);
            run_ns(50);
            finish();
            EXPECT_EQ(b.control.all.size(), 2u);
            ASSERT_EQ(b.replies[UTLB_SEND].all.size(), 2u);
            EXPECT_EQ(b.replies[UTLB_SEND].all[1].item.address, 0x7000u);
        }
    }
}

// Disabled while it is in the pipeline, or waits for a free walk.
TEST_F(utlb_race_test, context_disable_answers_everybody) {
    tables t(b.host, 0x10000000);
    b.start();
    b.enable(3, t);
    b.dma.hold = true;
    for (std::uint32_t i = 0; i < utlb::LIMIT; i++)
        ASSERT_TRUE(b.ask(UTLB_SEND, i, 3, VA + i * 0x1000000));
    run_ns(30);  // some looked up, some not
    b.command(7, control_op::CONTEXT_DISABLE, 3);
    finish();
    ASSERT_EQ(b.replies[UTLB_SEND].all.size(), utlb::LIMIT);
    for (const auto& r : b.replies[UTLB_SEND].all)
        EXPECT_EQ(r.item.status, PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b.control.all.size(), 1u);
    EXPECT_EQ(b.dut.card_read(8), 0u);
}

TEST_F(utlb_race_test, reset_at_every_point) {
    for (unsigned point = 0; point <= 4; point++) {
        for (const bool stepped : {false, true}) {
            for (const bool late : {false, true}) {
                if (point == 4 && stepped)
                    continue;
                SCOPED_TRACE(testing::Message() << point << stepped << late);
                tables t(b.host, 0x10000000), next(b.host, 0x20000000);
                b.start();
                b.enable(3, t);
                t.map(VA, 0x5000);
                next.map(VA, 0x7000);
                b.dma.hold = true;
                walk_to(point, stepped);
                b.dut.reset();
                // The old answer comes, or is lost with the engine's reset.
                if (!late)
                    b.dma.waiting.clear();
                b.command(8, control_op::CONTEXT_ENABLE, 3, 0, 0, next.root());
                run_ns(50);
                b.ask(UTLB_SEND, 2, 3, VA);
                finish();
                ASSERT_EQ(b.replies[UTLB_SEND].all.size(), 1u);
                EXPECT_EQ(b.replies[UTLB_SEND].all[0].item.tag, 2u);
                EXPECT_EQ(b.replies[UTLB_SEND].all[0].item.address, 0x7000u);
            }
        }
    }
}

// Random lookups, changes and invalidations of a few contexts, through twins.
// Each answer must have been true at some time since it was asked for.
TEST_F(utlb_race_test, random) {
    twinned& tw = benches().twin;
    utlb_bench& in = tw.inner;
    for (unsigned seed = 0; seed < 6; seed++) {
        in.dut.reset();
        tw.send.reset();
        tw.receive.reset();
        in.dma.clear();
        run_ns(1000);
        for (auto& r : in.replies)
            r.all.clear();
        in.control.all.clear();
        std::mt19937 random(seed);
        in.dma.early = seed % 2;
        constexpr unsigned CONTEXTS = 3;
        constexpr std::uint64_t PAGES = 200;
        std::vector<std::unique_ptr<tables>> t;
        for (unsigned c = 0; c < CONTEXTS; c++) {
            t.push_back(
                std::make_unique<tables>(in.host, 0x10000000u * (c + 1)));
            in.enable(static_cast<std::uint16_t>(c), *t[c]);
        }
        // History of each entry: since when it has been what.
        struct change {
            std::uint64_t ps;
            std::uint64_t entry;
        };
        std::map<std::pair<unsigned, std::uint64_t>, std::vector<change>> past;
        struct question {
            unsigned context;
            std::uint64_t page;
            bool write;
            std::uint64_t ps;
        };
        std::map<std::uint32_t, question> open;
        std::uint32_t tag = 0;
        std::size_t answered[2] = {};
        std::size_t checked = 0;
        for (int step = 0; step < 20000; step++) {
            const unsigned c = static_cast<unsigned>(random()) % CONTEXTS;
            const std::uint64_t page = random() % PAGES;
            const std::uint64_t va = VA + page * PAGE;
            if (random() % 8 == 0) {
                auto& h = past[{c, page}];
                const std::uint64_t old = h.empty() ? 0 : h.back().entry;
                std::uint64_t entry =
                    random() % 3 ? ((1 + random() % 1000) << 12 | VALID) : 0;
                if (entry && random() % 2)
                    entry |= WRITE;
                t[c]->set(va, entry);
                h.push_back({now_ps(), entry});
                // Only what takes something away must be announced.
                if (old != 0)
                    in.command(7, control_op::INVALIDATE,
                               static_cast<std::uint16_t>(c), va,
                               1 + random() % 3);
                if (random() % 50 == 0)
                    in.command(7, control_op::INVALIDATE,
                               static_cast<std::uint16_t>(c));
            } else {
                utlb_request r;
                r.tag = tag;
                r.context = static_cast<std::uint16_t>(c);
                r.va = va + random() % PAGE;
                r.write = random() % 2;
                const bool write = r.write;
                put_if<utlb_request>& to =
                    random() % 2 ? static_cast<put_if<utlb_request>&>(tw.send)
                                 : tw.receive;
                if (to.try_put(r))
                    open[tag++] = {c, page, write, now_ps()};
            }
            run_ns(static_cast<double>(random() % 50));
            for (const unsigned p : {UTLB_SEND, UTLB_RECEIVE}) {
                auto& all = in.replies[p].all;
                for (; answered[p] < all.size(); answered[p]++) {
                    const auto& a = all[answered[p]];
                    ASSERT_EQ(open.count(a.item.tag), 1u);
                    const question q = open[a.item.tag];
                    open.erase(a.item.tag);
                    const auto& h = past[{q.context, q.page}];
                    bool ok = false;
                    // From the state when it was asked to the last one.
                    for (std::size_t i = 0; i <= h.size() && !ok; i++) {
                        const std::uint64_t entry = i ? h[i - 1].entry : 0;
                        const std::uint64_t until =
                            i < h.size() ? h[i].ps : ~std::uint64_t{0};
                        const std::uint64_t from = i ? h[i - 1].ps : 0;
                        if (until < q.ps || from > a.ps)
                            continue;
                        std::uint16_t status = PRAWN_STATUS_OK;
                        if (entry == 0)
                            status = PRAWN_STATUS_NOT_PINNED;
                        else if (q.write && !(entry & WRITE))
                            status = PRAWN_STATUS_NOT_WRITABLE;
                        ok = a.item.status == status &&
                             (status != PRAWN_STATUS_OK ||
                              a.item.address ==
                                  (entry & PRAWN_TABLE_ENTRY_ADDRESS_MASK));
                    }
                    ASSERT_TRUE(ok)
                        << "seed " << seed << " tag " << a.item.tag << " page "
                        << q.page << " status " << a.item.status;
                    checked++;
                }
            }
        }
        EXPECT_GT(checked, 3000u);
        run_ns(100000);
        std::size_t rest = 0;
        for (const unsigned p : {UTLB_SEND, UTLB_RECEIVE})
            rest += in.replies[p].all.size() - answered[p];
        EXPECT_EQ(rest, open.size());
        EXPECT_GT(in.count("evictions"), 0u);
        EXPECT_GT(in.count("merged"), 0u);
        in.dut.reset();
    }
}

}  // namespace
}  // namespace test
}  // namespace prawn
