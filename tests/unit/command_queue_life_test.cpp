// SPDX-License-Identifier: Apache-2.0
// How a context's life goes wrong, and how it ends.
#include "command_queue_bench.h"

namespace prawn::test {
namespace {

using bench = command_bench;
bench* b;

TEST(command_queue_life, stops_a_context_that_overruns_its_ring) {
    b->restart();
    b->enable(4);
    b->enable(5);
    b->put_send(5, 0);
    b->ring_bell(4, SIZE + 1);
    b->ring_bell(5, 1);
    run_cycles(300);
    EXPECT_EQ(b->dut.context_state(4),
              b->error_state(PRAWN_STATUS_RING_OVERRUN));
    ASSERT_EQ(b->kernel.items.size(), 1u);
    const kernel_event_request& e = b->kernel.items[0].item;
    EXPECT_EQ(e.type, PRAWN_EVENT_TYPE_CONTEXT_ERROR);
    EXPECT_EQ(e.context, 4);
    EXPECT_EQ(e.value, unsigned{PRAWN_STATUS_RING_OVERRUN});
    EXPECT_TRUE(b->jobs_of(4).empty());
    EXPECT_EQ(b->jobs_of(5).size(), 1u) << "the neighbour goes on";
    EXPECT_EQ(b->dut.context_state(5), PRAWN_STATE_ENABLED_MASK);
    EXPECT_EQ(b->w.events.count("CONTEXT_STOPPED"), 1u);
    // It stays stopped: further doorbells are counted and ignored.
    const auto ignored = b->w.count("command_queue.doorbells_ignored");
    b->ring_bell(4, 1);
    run_cycles(300);
    EXPECT_EQ(b->w.count("command_queue.doorbells_ignored"), ignored + 1);
    EXPECT_TRUE(b->jobs_of(4).empty());
    EXPECT_EQ(b->ask(control_op::CONTEXT_ENABLE, 4, bench::ring(4), LOG2),
              PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b->ask(control_op::CONTEXT_DISABLE, 4), PRAWN_STATUS_OK);
    b->enable(4);
    b->put_send(4, 0);
    b->ring_bell(4, 1);
    run_cycles(300);
    ASSERT_EQ(b->jobs_of(4).size(), 1u);
    EXPECT_EQ(b->jobs_of(4)[0].message, 1u);
}

TEST(command_queue_life, a_full_ring_is_no_overrun) {
    b->restart();
    b->enable(4);
    for (std::uint32_t i = 0; i < SIZE; i++)
        b->put_send(4, i);
    b->ring_bell(4, SIZE);
    run_cycles(1500);
    EXPECT_EQ(b->jobs_of(4).size(), SIZE);
    b->ring_bell(4, SIZE + 1, 1);
    run_cycles(300);
    EXPECT_EQ(b->jobs_of(4).size(), SIZE + 1);
    EXPECT_EQ(b->dut.context_state(4), PRAWN_STATE_ENABLED_MASK);
}

TEST(command_queue_life, stops_a_context_that_consumes_what_cannot_exist) {
    b->restart();
    b->enable(4);
    for (std::uint32_t i = 0; i < 3; i++)
        b->put_send(4, i);
    b->ring_bell(4, 3);
    run_cycles(300);
    b->ring_bell(4, 5, 4);
    run_cycles(300);
    EXPECT_EQ(b->dut.context_state(4), b->error_state(PRAWN_STATUS_BAD_FIELD));
    EXPECT_EQ(b->kernel.items.size(), 1u);
    EXPECT_EQ(b->jobs_of(4).size(), 3u);
}

TEST(command_queue_life, random_doorbells_hurt_only_their_context) {
    random_source random(2);
    for (unsigned i = 0; i < 200; i++) {
        b->restart();
        b->enable(1);
        b->enable(2);
        for (std::uint32_t k = 0; k < 8; k++)
            b->put_send(2, k);
        for (unsigned k = 0; k < 8; k++) {
            b->ring_bell(1, static_cast<std::uint32_t>(random(1ull << 31)) * 2,
                         static_cast<std::uint32_t>(random(1ull << 31)) * 2);
            b->ring_bell(2, k + 1);
            run_cycles(50);
        }
        run_cycles(500);
        EXPECT_EQ(b->jobs_of(2).size(), 8u);
        EXPECT_EQ(b->dut.context_state(2), PRAWN_STATE_ENABLED_MASK);
        EXPECT_LE(b->jobs_of(1).size(), SIZE);
    }
}

TEST(command_queue_life, ignores_contexts_that_are_not_enabled) {
    b->restart();
    const auto ignored = b->w.count("command_queue.doorbells_ignored");
    b->ring_bell(7, 1);
    b->ring_bell(64, 1);
    b->ring_bell(0xffff, 1);
    run_cycles(300);
    EXPECT_EQ(b->w.count("command_queue.doorbells_ignored"), ignored + 3);
    EXPECT_TRUE(b->dma.items.empty());
    EXPECT_EQ(b->dut.context_state(7), 0u);
    EXPECT_EQ(b->dut.context_state(64), 0u);
}

TEST(command_queue_life, checks_what_the_kernel_asks) {
    b->restart();
    using op = control_op;
    EXPECT_EQ(b->ask(op::CONTEXT_ENABLE, 64, 0x1000, 4),
              PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b->ask(op::CONTEXT_ENABLE, 0, 0x1000, 3), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->ask(op::CONTEXT_ENABLE, 0, 0x1000, 13),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->ask(op::CONTEXT_ENABLE, 0, 0x1020, 4), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->ask(op::CONTEXT_ENABLE, 0, ~0ull << 8, 4),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->ask(op::CONTEXT_DISABLE, 64), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b->ask(op::CONTEXT_DISABLE, 0), PRAWN_STATUS_OK);
    EXPECT_EQ(b->ask(op::INVALIDATE, 0), PRAWN_STATUS_BAD_OPCODE);
    EXPECT_EQ(b->ask(op::DRAIN, 0), PRAWN_STATUS_OK);
}

TEST(command_queue_life, a_refused_fetch_stops_the_context) {
    b->restart();
    b->enable(4);
    for (std::uint32_t i = 0; i < 20; i++)
        b->put_send(4, i);
    b->fail_at = bench::ring(4) + 10 * 64;
    b->ring_bell(4, 20);
    run_cycles(1000);
    EXPECT_EQ(b->dut.context_state(4), b->error_state(PRAWN_STATUS_DMA_ERROR));
    EXPECT_EQ(b->kernel.items.size(), 1u);
    EXPECT_LE(b->jobs_of(4).size(), 8u) << "what was checked before";
    EXPECT_EQ(b->ask(control_op::DRAIN, 0), PRAWN_STATUS_OK);
}

TEST(command_queue_life, disable_waits_for_its_fetches_and_drops_the_rest) {
    for (unsigned when = 0; when < 120; when += exact() ? 1 : 5) {
        b->restart();
        b->enable(1);
        b->enable(2);
        for (std::uint32_t i = 0; i < 20; i++) {
            b->put_send(1, i);
            b->put_send(2, i);
        }
        b->ring_bell(1, 20);
        b->ring_bell(2, 20);
        run_cycles(when);
        if (!exact())
            b->bell.clear();
        control_request r;
        r.op = control_op::CONTEXT_DISABLE;
        r.context = 1;
        b->answers.items.clear();
        b->control.send(r);
        run_cycles(0);
        const std::size_t jobs = b->jobs_of(1).size();
        run_cycles(2000);
        ASSERT_EQ(b->answers.items.size(), 1u);
        if (exact()) {
            EXPECT_EQ(b->jobs_of(1).size(), jobs);
            EXPECT_EQ(b->jobs_of(2).size(), when == 0 ? 20u : 20u);
            for (const auto& seen : b->dma.items) {
                const bool of_one = seen.item.address < bench::ring(2);
                EXPECT_TRUE(!of_one || seen.time + b->dma_delay * CYCLE <=
                                           b->answers.items[0].time);
            }
        }
        EXPECT_EQ(b->dut.context_state(1), 0u);
        // Its next life starts at 0, and says that it is another; its messages
        // are none of those before.
        const auto sent = static_cast<std::uint32_t>(b->jobs_of(1).size());
        b->jobs.items.clear();
        b->enable(1);
        b->ring_bell(1, 2);
        run_cycles(1000);
        ASSERT_EQ(b->jobs_of(1).size(), 2u);
        EXPECT_EQ(b->jobs_of(1)[0].index, 0u);
        EXPECT_EQ(b->jobs_of(1)[0].message, sent + 1);
        EXPECT_EQ(b->jobs_of(1)[0].life, b->lives[1]);
    }
}

TEST(command_queue_life, what_an_earlier_life_has_done_makes_no_room) {
    b->restart();
    b->auto_done = false;
    b->enable(1);
    const std::uint32_t old = b->lives[1];
    EXPECT_EQ(b->ask(control_op::CONTEXT_DISABLE, 1), PRAWN_STATUS_OK);
    b->enable(1);
    for (std::uint32_t i = 0; i < 20; i++)
        b->put_send(1, i);
    b->ring_bell(1, 20);
    run_cycles(1000);
    ASSERT_EQ(b->jobs_of(1).size(), JOB_WINDOW);
    const auto unexpected = b->w.count("command_queue.unexpected_replies");
    for (unsigned i = 0; i < 3; i++)
        b->done.send(job_done{1, old});
    run_cycles(300);
    EXPECT_EQ(b->jobs_of(1).size(), JOB_WINDOW);
    EXPECT_EQ(b->w.count("command_queue.unexpected_replies"), unexpected + 3);
    b->done.send(job_done{1, b->lives[1]});
    run_cycles(300);
    EXPECT_EQ(b->jobs_of(1).size(), JOB_WINDOW + 1);
}

TEST(command_queue_life, drain_waits_for_the_fetches_begun_before) {
    b->restart();
    b->enable(1);
    for (std::uint32_t i = 0; i < 20; i++)
        b->put_send(1, i);
    b->dma_delay = 500;
    b->ring_bell(1, 1);
    run_cycles(exact() ? 10 : 50);
    b->answers.items.clear();
    control_request r;
    b->control.send(r);  // DRAIN
    b->ring_bell(1, 9, 0, 300);
    run_cycles(300);
    EXPECT_TRUE(b->answers.items.empty());
    run_cycles(300);
    EXPECT_EQ(b->answers.items.size(), 1u) << "not for the second fetch";
    run_cycles(2000);
    EXPECT_EQ(b->jobs_of(1).size(), 9u);
}

TEST(command_queue_life, reset_at_any_time_is_clean) {
    for (unsigned when = 0; when < 120; when++) {
        b->restart();
        b->enable(1);
        for (std::uint32_t i = 0; i < 20; i++)
            b->put_send(1, i);
        b->ring_bell(1, 20);
        run_cycles(when);
        b->reset_only();
        b->jobs.items.clear();
        EXPECT_EQ(b->dut.context_state(1), 0u);
        // At once a new life, while answers of the old one come.
        b->enable(1);
        b->ring_bell(1, 9);
        run_cycles(1500);
        const auto jobs = b->jobs_of(1);
        ASSERT_EQ(jobs.size(), 9u);
        for (std::uint32_t i = 0; i < 9; i++) {
            EXPECT_EQ(jobs[i].index, i);
            EXPECT_EQ(jobs[i].message, i + 1);
        }
        EXPECT_EQ(b->ask(control_op::DRAIN, 0), PRAWN_STATUS_OK);
    }
}

}  // namespace
}  // namespace prawn::test

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    std::unique_ptr<bench> own;
    return run_tests(
        argc, argv,
        [&own] {
            own =
                std::make_unique<bench>("life", prawn::command_queue::params());
            b = own.get();
        },
        [] { return std::string(); });
}
