// SPDX-License-Identifier: Apache-2.0
// Doorbells, fetching, checking, turns.
#include <algorithm>

#include "command_queue_bench.h"
#include "nic/command_queue_check.h"

namespace prawn::test {
namespace {

using bench = command_bench;
bench* b;
bench* wrapping;  // its indices start at WRAP_FROM
constexpr std::uint32_t WRAP_FROM = 0xffffffff - 40;

TEST(command_queue, fetches_checks_and_hands_over) {
    b->restart();
    b->enable(3);
    EXPECT_EQ(b->dut.context_state(3), PRAWN_STATE_ENABLED_MASK);
    b->put_send(3, 0).cookie = 0xc001;
    b->ring_bell(3, 1);
    const std::uint64_t rung = now_ps();
    run_cycles(200);
    ASSERT_EQ(b->dma.items.size(), 1u);
    const dma_request& d = b->dma.items[0].item;
    EXPECT_EQ(d.context, KERNEL_CONTEXT);
    EXPECT_FALSE(d.write);
    EXPECT_EQ(d.address, bench::ring(3));
    EXPECT_EQ(d.length, 64u);
    ASSERT_EQ(b->jobs.items.size(), 1u);
    const send_job& j = b->jobs.items[0].item;
    EXPECT_EQ(j.context, 3);
    EXPECT_EQ(j.index, 0u);
    EXPECT_EQ(j.message, 1u);
    EXPECT_EQ(j.status, PRAWN_STATUS_OK);
    EXPECT_EQ(j.accepted, rung);
    EXPECT_EQ(j.command.cookie, 0xc001u);
    EXPECT_CYCLE(b->dma.cycle(0, b->base), command_queue::DOORBELL_CYCLES);
    EXPECT_CYCLE(b->jobs.cycle(0, b->base), command_queue::DOORBELL_CYCLES +
                                                DMA_DELAY +
                                                command_queue::CHECK_CYCLES);
    EXPECT_EQ(b->w.events.count("DOORBELL"), 1u);
    EXPECT_EQ(b->w.events.count("COMMAND_FETCHED"), 1u);
}

TEST(command_queue, fetches_in_batches_up_to_the_end_of_the_ring) {
    b->restart();
    b->enable(0);
    for (std::uint32_t i = 0; i < SIZE; i++)
        b->put_send(0, i);
    b->ring_bell(0, 20);
    run_cycles(2000);
    ASSERT_EQ(b->dma.items.size(), 3u);
    EXPECT_EQ(b->dma.items[0].item.length, 512u);
    EXPECT_EQ(b->dma.items[1].item.length, 512u);
    EXPECT_EQ(b->dma.items[2].item.length, 256u);
    EXPECT_CYCLE(b->dma.cycle(1, b->base),
                 command_queue::DOORBELL_CYCLES + command_queue::FETCH_CYCLES);
    ASSERT_EQ(b->jobs.items.size(), 20u);
    for (std::uint32_t i = 0; i < 8; i++)
        EXPECT_CYCLE(b->jobs.cycle(i, b->base),
                     command_queue::DOORBELL_CYCLES + DMA_DELAY +
                         (i + 1) * command_queue::CHECK_CYCLES);
    b->ring_bell(0, 20 + SIZE - 4, 20);
    run_cycles(2000);
    ASSERT_EQ(b->jobs.items.size(), 20u + SIZE - 4);
    for (std::uint32_t i = 0; i < b->jobs.items.size(); i++) {
        EXPECT_EQ(b->jobs.items[i].item.index, i);
        EXPECT_EQ(b->jobs.items[i].item.message, i + 1);
        EXPECT_EQ(b->jobs.items[i].item.command.cookie, i % SIZE);
    }
    for (const auto& seen : b->dma.items) {
        EXPECT_LE(seen.item.length, 512u);
        EXPECT_LE(seen.item.address + seen.item.length,
                  bench::ring(0) + SIZE * 64);
    }
}

TEST(command_queue, indices_wrap_at_32_bits) {
    bench* const usual = b;
    b = wrapping;
    b->restart();
    b->enable(1);
    for (std::uint32_t i = 0; i < SIZE; i++)
        b->put_send(1, i);
    const std::uint32_t first = WRAP_FROM;
    for (std::uint32_t n = 1; n <= 100; n++) {
        b->ring_bell(1, first + n, first + (n < 20 ? 0 : n - 20));
        run_cycles(100);
        EXPECT_EQ(b->jobs.items.size(), n);
        EXPECT_EQ(b->jobs.items.back().item.index, first + n - 1);
    }
    EXPECT_EQ(b->dut.context_state(1), PRAWN_STATE_ENABLED_MASK);
    // Old ones are old across the wrap too, and a ring ahead is too far.
    b->ring_bell(1, first + 2, first);
    run_cycles(300);
    EXPECT_EQ(b->jobs.items.size(), 100u);
    EXPECT_EQ(b->dut.context_state(1), PRAWN_STATE_ENABLED_MASK);
    b->ring_bell(1, first + 100 + SIZE + 1, first + 100);
    run_cycles(300);
    EXPECT_EQ(b->dut.context_state(1),
              b->error_state(PRAWN_STATUS_RING_OVERRUN));
    b = usual;
}

TEST(command_queue, checks_every_field) {
    prawn_command good{};
    good.opcode = PRAWN_OPCODE_SEND;
    good.flags = PRAWN_COMMAND_FLAG_NOTIFY;
    good.length = PRAWN_MAX_MESSAGE;
    good.source = (1ull << 48) - PRAWN_MAX_MESSAGE;
    good.offset = ~0ull - PRAWN_MAX_MESSAGE;
    good.cookie = ~0ull;
    good.import_id = ~0u;
    good.immediate = ~0u;
    good.completions_seen = ~0u;
    good.notifications_seen = ~0u;
    EXPECT_EQ(check_command(good, false), PRAWN_STATUS_OK);

    using change = std::function<void(prawn_command&)>;
    const std::vector<std::pair<change, unsigned>> cases = {
        {[](auto& c) { c.opcode = 3; }, PRAWN_STATUS_BAD_OPCODE},
        {[](auto& c) { c.opcode = 255; }, PRAWN_STATUS_BAD_OPCODE},
        {[](auto& c) { c.flags = 2; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.flags = 128; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.rsvd0 = 1; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.rsvd1[0] = 1; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.rsvd1[1] = 1u << 31; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.rsvd1[2] = 1; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.utlb_index = 1; }, PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.length++; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.length = ~0u; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.source++; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.source = ~0ull; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.source = 1ull << 63; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.offset += 2; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.offset = ~0ull; }, PRAWN_STATUS_BAD_LENGTH},
        {[](auto& c) { c.opcode = PRAWN_OPCODE_NOP, c.flags = 4; },
         PRAWN_STATUS_BAD_FIELD},
        {[](auto& c) { c.opcode = PRAWN_OPCODE_FENCE, c.length = ~0u; },
         PRAWN_STATUS_OK},
        {[](auto& c) { c.opcode = PRAWN_OPCODE_NOP, c.source = ~0ull; },
         PRAWN_STATUS_OK},
    };
    for (std::size_t i = 0; i < cases.size(); i++) {
        prawn_command c = good;
        cases[i].first(c);
        EXPECT_EQ(check_command(c, false), cases[i].second) << "case " << i;
    }
    prawn_command c = good;
    c.utlb_index = 1;
    EXPECT_EQ(check_command(c, true), PRAWN_STATUS_OK);
    c = prawn_command{};
    c.opcode = PRAWN_OPCODE_SEND;
    EXPECT_EQ(check_command(c, false), PRAWN_STATUS_OK) << "0 bytes of nowhere";
    c.source = 1ull << 48;
    EXPECT_EQ(check_command(c, false), PRAWN_STATUS_OK) << "0 bytes at the end";
}

TEST(command_queue, bad_commands_keep_their_place) {
    b->restart();
    b->enable(2);
    b->put_send(2, 0);
    b->put_send(2, 1).opcode = 99;
    b->put_send(2, 2).opcode = PRAWN_OPCODE_FENCE;
    b->put_send(2, 3).rsvd0 = 1;
    b->put_send(2, 4).length = ~0u;
    b->put_send(2, 5);
    const auto bad = b->w.count("command_queue.bad_commands", 2);
    b->ring_bell(2, 6);
    run_cycles(500);
    const unsigned status[] = {PRAWN_STATUS_OK,         PRAWN_STATUS_BAD_OPCODE,
                               PRAWN_STATUS_OK,         PRAWN_STATUS_BAD_FIELD,
                               PRAWN_STATUS_BAD_LENGTH, PRAWN_STATUS_OK};
    const std::uint32_t message[] = {1, 0, 0, 0, 0, 2};
    ASSERT_EQ(b->jobs.items.size(), 6u);
    for (std::uint32_t i = 0; i < 6; i++) {
        EXPECT_EQ(b->jobs.items[i].item.index, i);
        EXPECT_EQ(b->jobs.items[i].item.status, status[i]);
        EXPECT_EQ(b->jobs.items[i].item.message, message[i]);
    }
    EXPECT_EQ(b->w.count("command_queue.bad_commands", 2), bad + 3);
    EXPECT_TRUE(b->kernel.items.empty()) << "no reason to stop the context";
}

TEST(command_queue, merges_doorbells_and_remembers_the_first) {
    b->restart();
    b->enable(0);
    for (std::uint32_t i = 0; i < SIZE; i++)
        b->put_send(0, i);
    b->jobs.accept = [](const send_job&) { return false; };
    std::vector<std::uint64_t> times;
    for (std::uint32_t i = 1; i <= 20; i++) {
        times.push_back(now_ps());
        b->ring_bell(0, i);
        b->ring_bell(0, i);  // and once more
        run_cycles(exact() ? 1 : 300);
    }
    run_cycles(exact() ? 100 : 3000);
    b->jobs.accept = nullptr;
    b->jobs.give_room();
    run_cycles(2000);
    ASSERT_EQ(b->jobs.items.size(), 20u);
    for (std::size_t i = 0; i < 20; i++) {
        const std::size_t mark =
            std::min<std::size_t>(i, command_queue::MARKS - 1);
        EXPECT_EQ(b->jobs.items[i].item.accepted, times[mark]) << i;
    }
    EXPECT_LT(b->dma.items.size(), 12u);
}

TEST(command_queue, a_flood_of_doorbells_costs_the_others_nothing) {
    b->restart();
    b->enable(0);
    b->enable(1);
    for (std::uint32_t i = 0; i < 20; i++)
        b->put_send(1, i);
    b->put_send(0, 0);
    const std::uint64_t from = now_ps();
    for (unsigned i = 0; i < 100000; i++) {
        doorbell d{0, 1, 0, now_ps()};
        b->dut.doorbell_in().try_put(d);
    }
    b->ring_bell(1, 20);
    run_cycles(1000);
    EXPECT_EQ(b->jobs_of(0).size(), 1u);
    EXPECT_EQ(b->jobs_of(1).size(), 20u);
    EXPECT_EQ(b->dma.items.size(), 4u);
    if (exact()) {
        EXPECT_LT(b->jobs.items.back().time - from, 260 * CYCLE);
    }
}

TEST(command_queue, older_doorbells_change_nothing) {
    b->restart();
    b->enable(4);
    for (std::uint32_t i = 0; i < 10; i++)
        b->put_send(4, i);
    b->ring_bell(4, 6);
    run_cycles(400);
    const auto stale = b->w.count("command_queue.doorbells_stale");
    b->ring_bell(4, 4);
    run_cycles(400);
    EXPECT_EQ(b->w.count("command_queue.doorbells_stale"), stale + 1);
    b->ring_bell(4, 8, 3);
    run_cycles(400);
    EXPECT_EQ(b->jobs_of(4).size(), 8u);
    EXPECT_EQ(b->dut.context_state(4), PRAWN_STATE_ENABLED_MASK);
}

TEST(command_queue, keeps_to_the_job_window) {
    b->restart();
    b->enable(0);
    b->enable(1);
    b->auto_done = false;
    for (std::uint32_t i = 0; i < 20; i++) {
        b->put_send(0, i);
        b->put_send(1, i);
    }
    b->ring_bell(0, 20);
    run_cycles(1000);
    EXPECT_EQ(b->jobs_of(0).size(), JOB_WINDOW);
    b->ring_bell(1, 20);
    run_cycles(1000);
    EXPECT_EQ(b->jobs_of(1).size(), JOB_WINDOW);
    b->done.send(job_done{0, b->lives[0]});
    run_cycles(100);
    EXPECT_EQ(b->jobs_of(0).size(), JOB_WINDOW + 1);
    EXPECT_EQ(b->jobs_of(1).size(), JOB_WINDOW);
    // More than were given out: counted, nothing else.
    const auto unexpected = b->w.count("command_queue.unexpected_replies");
    for (unsigned i = 0; i < 30; i++)
        b->done.send(job_done{5});
    b->done.send(job_done{77});
    run_cycles(1000);
    EXPECT_EQ(b->w.count("command_queue.unexpected_replies"), unexpected + 31);
}

TEST(command_queue, serves_contexts_in_turn) {
    b->restart();
    for (const std::uint16_t c :
         {std::uint16_t{0}, std::uint16_t{31}, std::uint16_t{63}}) {
        b->enable(c);
        for (std::uint32_t i = 0; i < SIZE; i++)
            b->put_send(c, i);
    }
    b->dma_delay = 4;
    for (const std::uint16_t c :
         {std::uint16_t{0}, std::uint16_t{31}, std::uint16_t{63}})
        b->ring_bell(c, SIZE);
    run_cycles(2000);
    ASSERT_EQ(b->jobs.items.size(), 3u * SIZE);
    // After the first few, one of each in any three.
    if (exact()) {
        for (std::size_t i = 3; i + 3 <= 3u * SIZE; i += 3) {
            std::uint32_t sum = 0;
            for (std::size_t k = 0; k < 3; k++)
                sum += b->jobs.items[i + k].item.context;
            EXPECT_EQ(sum, 94u) << i;
        }
    }
}

TEST(command_queue, waits_for_whoever_has_no_room) {
    b->restart();
    random_source random(9);
    for (std::uint16_t c = 0; c < 4; c++) {
        b->enable(c);
        for (std::uint32_t i = 0; i < SIZE; i++)
            b->put_send(c, i);
    }
    b->dma.accept = [&random](const dma_request&) { return random(3) == 0; };
    b->jobs.accept = [&random](const send_job& j) {
        return j.context != 2 && random(3) == 0;
    };
    for (std::uint16_t c = 0; c < 4; c++)
        b->ring_bell(c, SIZE);
    for (unsigned i = 0; i < 3000; i++) {
        b->dma.give_room();
        b->jobs.give_room();
        run_cycles(5);
    }
    for (const std::uint16_t c :
         {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{3}})
        EXPECT_EQ(b->jobs_of(c).size(), SIZE);
    EXPECT_TRUE(b->jobs_of(2).empty());
    b->jobs.accept = nullptr;
    b->dma.accept = nullptr;
    b->jobs.give_room();
    b->dma.give_room();
    run_cycles(1000);
    const auto late = b->jobs_of(2);
    ASSERT_EQ(late.size(), SIZE);
    for (std::uint32_t i = 0; i < SIZE; i++) {
        EXPECT_EQ(late[i].index, i);
        EXPECT_EQ(late[i].message, i + 1) << "numbers are not wasted";
    }
}

std::string trace() {
    b->restart();
    random_source random(4);
    for (std::uint16_t c = 0; c < 8; c++) {
        b->enable(c);
        for (std::uint32_t i = 0; i < SIZE; i++)
            b->put_send(c, i).opcode = static_cast<std::uint8_t>(random(4));
    }
    std::array<std::uint32_t, 8> producer{};
    b->jobs.accept = [&random](const send_job&) { return random(3) != 0; };
    for (unsigned i = 0; i < 2000; i++) {
        const auto c = static_cast<std::uint16_t>(random(8));
        const std::size_t seen = b->jobs_of(c).size();
        producer[c] =
            std::min(producer[c] + static_cast<std::uint32_t>(random(10)),
                     static_cast<std::uint32_t>(seen) + SIZE);
        b->ring_bell(c, producer[c], static_cast<std::uint32_t>(seen));
        b->jobs.give_room();
        run_cycles(1 + random(30));
    }
    std::string text = b->w.events.text;
    for (const auto& seen : b->jobs.items)
        text += std::to_string(seen.time) + " " +
                std::to_string(seen.item.context) + " " +
                std::to_string(seen.item.index) + "\n";
    return text;
}

TEST(command_queue, is_deterministic) {
    expect_same_traces();
}

}  // namespace
}  // namespace prawn::test

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    std::unique_ptr<bench> own;
    std::unique_ptr<bench> other;
    return run_tests(
        argc, argv,
        [&] {
            prawn::command_queue::params p;
            own = std::make_unique<bench>("usual", p);
            b = own.get();
            p.first_index = WRAP_FROM;
            other = std::make_unique<bench>("wrapping", p);
            wrapping = other.get();
        },
        trace);
}
