// SPDX-License-Identifier: Apache-2.0
// Packets, their order, failures, reset and control. Who is served when is in
// packetizer_share_test.cpp.
#include "packetizer_bench.h"

namespace prawn::test {
namespace {

packetizer_bench* b;

TEST(packetizer, sends_a_small_message) {
    b->restart();
    send_job j = b->make(5, 0x23, 0x7000001f0, 0x4008, 40);
    j.command.flags = PRAWN_COMMAND_FLAG_NOTIFY;
    b->add(j);
    run_cycles(200);
    b->expect_sent(j);
    ASSERT_EQ(b->packets.items.size(), 1u);

    ASSERT_EQ(b->opt_requests.items.size(), 1u);
    const opt_request& o = b->opt_requests.items[0].item;
    EXPECT_EQ(o.context, 5);
    EXPECT_EQ(o.import_id, 0x23u);
    EXPECT_EQ(o.offset, 0x4008u);
    EXPECT_EQ(o.length, 40u);
    ASSERT_EQ(b->utlb_requests.items.size(), 1u);
    EXPECT_EQ(b->utlb_requests.items[0].item.context, 5);
    EXPECT_FALSE(b->utlb_requests.items[0].item.write);
    ASSERT_EQ(b->dma_requests.items.size(), 1u);
    const dma_request& d = b->dma_requests.items[0].item;
    EXPECT_EQ(d.context, 5);
    EXPECT_FALSE(d.write);
    EXPECT_EQ(d.length, 40u);
    EXPECT_EQ(d.data, b->packets.items[0].item->payload) << "no copy";

    // Lookup and translation overlap.
    const std::uint64_t asked = packetizer::JOB_CYCLES;
    const std::uint64_t read = asked + UTLB_DELAY;
    const std::uint64_t over = read + DMA_DELAY + 3;
    EXPECT_CYCLE(b->opt_requests.cycle(0, b->base), asked);
    EXPECT_CYCLE(b->utlb_requests.cycle(0, b->base), asked);
    EXPECT_CYCLE(b->dma_requests.cycle(0, b->base), read);
    EXPECT_CYCLE(b->packets.cycle(0, b->base), over);
    EXPECT_CYCLE(b->completions.cycle(0, b->base), over);
    EXPECT_CYCLE(b->done.cycle(0, b->base), over);
    EXPECT_CYCLE(b->completion_of(j)->finished, b->base + over * CYCLE);
    EXPECT_EQ(b->w.events.count("PACKET_BUILT"), 1u);
    EXPECT_EQ(b->w.count("packetizer.bytes", 5), 40u);
}

TEST(packetizer, starts_a_packet_every_few_cycles) {
    b->restart();
    std::vector<send_job> jobs;
    for (std::uint16_t c = 0; c < 8; c++)
        jobs.push_back(b->send(c, c, 0x1000, 0, 8));
    run_cycles(400);
    for (const send_job& j : jobs)
        b->expect_sent(j);
    ASSERT_EQ(b->opt_requests.items.size(), 8u);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_CYCLE(b->opt_requests.cycle(i, b->base),
                     packetizer::JOB_CYCLES + i * packetizer::PACKET_CYCLES);
        EXPECT_CYCLE(b->opt_requests.items[i].item.context, i);
    }
}

TEST(packetizer, sends_nothing_in_one_packet) {
    b->restart();
    const send_job j = b->send(1, 2, 0, 4096, 0);
    run_cycles(100);
    b->expect_sent(j);
    EXPECT_EQ(b->packets_of(1, j.message).size(), 1u);
    EXPECT_TRUE(b->utlb_requests.items.empty());
    EXPECT_TRUE(b->dma_requests.items.empty());
    EXPECT_CYCLE(b->packets.cycle(0, b->base),
                 packetizer::JOB_CYCLES + OPT_DELAY);
}

TEST(packetizer, cuts_at_pages_of_both_sides) {
    b->restart();
    std::vector<send_job> jobs;
    const std::uint64_t ends[] = {0, 1, 2047, 4095, 4096};
    for (const std::uint64_t s : ends)
        for (const std::uint64_t o : ends)
            for (const std::uint32_t n : {1u, 4095u, 4096u, 4097u, 12289u})
                jobs.push_back(b->send(2, 7, 0x50000 + s, 0x90000 + o, n));
    random_source random(3);
    for (unsigned i = 0; i < 200; i++)
        jobs.push_back(b->send(static_cast<std::uint16_t>(random(4)),
                               static_cast<std::uint32_t>(random(16)),
                               random(1u << 20), random(1u << 20),
                               static_cast<std::uint32_t>(random(20000))));
    run_cycles(600000);
    for (const send_job& j : jobs)
        b->expect_sent(j);
    b->expect_order();
    for (const auto& r : b->dma_requests.items)
        EXPECT_LE((r.item.address & 4095) + r.item.length, 4096u);
}

TEST(packetizer, gives_the_utlb_its_hint_by_page) {
    b->restart();
    send_job j = b->make(2, 7, 0x50ff0, 0, 8192);
    j.command.utlb_index = 30;
    b->add(j);
    run_cycles(3000);
    for (const auto& r : b->utlb_requests.items)
        EXPECT_EQ(r.item.hint, 30 + (r.item.va >> 12) - 0x50);
    EXPECT_EQ(b->utlb_requests.items.size(), 4u);
}

TEST(packetizer, completes_in_order_what_sends_nothing) {
    b->restart();
    const send_job first = b->send(3, 1, 0x1000, 0, 5000);
    send_job nop = b->make(3, 0, 0, 0, 0);
    nop.command.opcode = PRAWN_OPCODE_NOP;
    nop.message = 0;
    b->add(nop);
    send_job bad = b->make(3, 0, 0, 0, 12);
    bad.status = PRAWN_STATUS_BAD_FIELD;
    bad.message = 0;
    b->add(bad);
    send_job fence = b->make(3, 0, 0, 0, 0);
    fence.command.opcode = PRAWN_OPCODE_FENCE;
    fence.message = 0;
    b->add(fence);
    const send_job after = b->send(3, 1, 0x1000, 0, 5);
    run_cycles(1500);
    b->expect_sent(first);
    b->expect_completion(nop, PRAWN_STATUS_OK, 0);
    b->expect_completion(bad, PRAWN_STATUS_BAD_FIELD, 0);
    b->expect_completion(fence, PRAWN_STATUS_OK, 0);
    b->expect_sent(after);
    b->expect_order();
    EXPECT_EQ(b->done.items.size(), 5u);
}

TEST(packetizer, completes_a_lone_nop_in_its_turn) {
    b->restart();
    send_job nop = b->make(3, 0, 0, 0, 0);
    nop.command.opcode = PRAWN_OPCODE_NOP;
    nop.message = 0;
    nop.index = 0xffffffff;  // indices are free running
    b->add(nop);
    run_cycles(100);
    b->expect_completion(nop, PRAWN_STATUS_OK, 0);
    EXPECT_CYCLE(b->completions.cycle(0, b->base), packetizer::JOB_CYCLES);
}

// Failures

TEST(packetizer, reports_what_the_opt_says) {
    b->restart();
    b->on_opt = [](const opt_request& r, opt_reply& a) {
        a.status = r.import_id == 1   ? PRAWN_STATUS_BAD_IMPORT
                   : r.import_id == 2 ? PRAWN_STATUS_OUT_OF_RANGE
                   : r.import_id == 3 ? PRAWN_STATUS_IMPORT_ERROR
                                      : PRAWN_STATUS_OK;
        a.detail = r.import_id == 3 ? PRAWN_STATUS_BAD_KEY : 0;
    };
    const send_job bad = b->send(0, 1, 0x1000, 0, 9000);
    const send_job range = b->send(0, 2, 0x1000, 0, 10);
    const send_job error = b->send(0, 3, 0x1000, 0, 0);
    const send_job good = b->send(0, 4, 0x1000, 0, 9000);
    const auto counted = b->w.count("packetizer.bad_import");
    run_cycles(3000);
    b->expect_completion(bad, PRAWN_STATUS_BAD_IMPORT, 0);
    b->expect_completion(range, PRAWN_STATUS_OUT_OF_RANGE, 0);
    b->expect_completion(error, PRAWN_STATUS_IMPORT_ERROR, 0, 0,
                         PRAWN_STATUS_BAD_KEY);
    b->expect_sent(good);
    b->expect_order();
    EXPECT_EQ(b->packets.items.size(), 3u) << "of the good one only";
    EXPECT_EQ(b->w.count("packetizer.bad_import"), counted + 1);
    EXPECT_GE(b->w.count("packetizer.failed", 0), 3u);
}

TEST(packetizer, reports_pages_that_are_not_pinned) {
    for (unsigned page = 0; page < 6; page++) {
        b->restart();
        b->on_utlb = [page](const utlb_request& r, utlb_reply& a) {
            if (r.va >> 12 == 0x100 + page)
                a.status = PRAWN_STATUS_NOT_PINNED;
            return UTLB_DELAY;
        };
        // Source pages 0x100 to 0x105, packets are cut at 0x...800.
        const send_job j = b->send(9, 4, 0x100800, 0, 5 * 4096);
        const send_job next = b->send(9, 4, 0x200000, 0, 100);
        run_cycles(4000);
        const std::uint32_t bytes = page == 0 ? 0 : (page - 1) * 4096;
        b->expect_message(j, bytes);
        b->expect_completion(j, PRAWN_STATUS_NOT_PINNED, bytes,
                             (0x100u + page) << 12);
        b->expect_sent(next);
        b->expect_order();
    }
}

TEST(packetizer, reports_other_translation_failures) {
    for (const unsigned status :
         {PRAWN_STATUS_BAD_CONTEXT, PRAWN_STATUS_DMA_ERROR}) {
        b->restart();
        b->on_utlb = [status](const utlb_request&, utlb_reply& a) {
            a.status = static_cast<std::uint16_t>(status);
            return UTLB_DELAY;
        };
        const send_job j = b->send(9, 4, 0x100800, 0, 5);
        run_cycles(300);
        b->expect_completion(j, static_cast<std::uint16_t>(status), 0);
        EXPECT_TRUE(b->packets.items.empty());
    }
}

TEST(packetizer, reports_refused_dma) {
    for (unsigned nth = 0; nth < 6; nth++) {
        b->restart();
        unsigned n = 0;
        b->on_dma = [&n, nth](const dma_request&) {
            return static_cast<std::uint16_t>(
                n++ == nth ? PRAWN_STATUS_DMA_ERROR : PRAWN_STATUS_OK);
        };
        // Each packet takes two reads.
        const send_job j = b->send(9, 4, 0x100800, 0, 3 * 4096);
        run_cycles(3000);
        b->expect_message(j, nth / 2 * 4096);
        b->expect_completion(j, PRAWN_STATUS_DMA_ERROR, nth / 2 * 4096);
    }
}

TEST(packetizer, a_cleared_import_stops_a_message_in_its_middle) {
    b->restart();
    b->on_opt = [](const opt_request& r, opt_reply& a) {
        if (r.offset >= 5 * 4096)
            a.status = PRAWN_STATUS_BAD_IMPORT;
    };
    const send_job j = b->send(9, 4, 0x100000, 0, 100 * 4096);
    run_cycles(6000);
    b->expect_message(j, 5 * 4096);
    b->expect_completion(j, PRAWN_STATUS_BAD_IMPORT, 5 * 4096);
}

TEST(packetizer, a_message_never_changes_its_destination) {
    for (unsigned what = 0; what < 4; what++) {
        b->restart();
        b->on_opt = [what](const opt_request& r, opt_reply& a) {
            if (r.offset < 2 * 4096)
                return;
            switch (what) {
                case 0:
                    a.node = 9;
                    break;
                case 1:
                    a.epoch++;
                    break;
                case 2:
                    a.export_id++;
                    break;
                default:
                    a.key++;
            }
        };
        const send_job j = b->send(9, 4, 0x100000, 0, 8 * 4096);
        run_cycles(4000);
        b->expect_message(j, 2 * 4096);
        b->expect_completion(j, PRAWN_STATUS_BAD_IMPORT, 2 * 4096);
    }
}

TEST(packetizer, refuses_a_node_that_cannot_be) {
    b->restart();
    b->on_opt = [](const opt_request&, opt_reply& a) { a.node = 16; };
    const send_job j = b->send(9, 4, 0x100000, 0, 8);
    run_cycles(300);
    b->expect_completion(j, PRAWN_STATUS_BAD_IMPORT, 0);
}

// Order

TEST(packetizer, keeps_order_whatever_order_translations_come_in) {
    b->restart();
    random_source random(5);
    b->on_utlb = [&random](const utlb_request&, utlb_reply&) {
        return static_cast<unsigned>(1 + random(200));
    };
    std::vector<send_job> jobs;
    for (unsigned i = 0; i < 60; i++)
        jobs.push_back(b->send(static_cast<std::uint16_t>(i % 3),
                               i % 2 == 0 ? 4 : 5, 0x1000 * i + 100, 0,
                               static_cast<std::uint32_t>(random(9000))));
    run_cycles(60000);
    for (const send_job& j : jobs)
        b->expect_sent(j);
    b->expect_order();
    // Per context and peer: messages one after the other.
    std::map<std::pair<unsigned, unsigned>, std::uint32_t> last;
    for (const auto& seen : b->packets.items) {
        const header& h = seen.item->head;
        std::uint32_t& m = last[{h.source_context, h.destination_node}];
        EXPECT_GE(h.message, m);
        m = h.message;
    }
}

// Refusals of whatever is downstream

TEST(packetizer, waits_for_whoever_has_no_room) {
    b->restart();
    random_source random(6);
    const auto sometimes = [&random](const auto&) { return random(3) == 0; };
    b->opt_requests.accept = sometimes;
    b->utlb_requests.accept = sometimes;
    b->dma_requests.accept = sometimes;
    b->packets.accept = sometimes;
    b->completions.accept = sometimes;
    std::vector<send_job> jobs;
    for (unsigned i = 0; i < 100; i++)
        jobs.push_back(b->send(static_cast<std::uint16_t>(i % 5), i % 7,
                               0x1000 * i + 100, 50 * i,
                               static_cast<std::uint32_t>(random(9000))));
    for (unsigned i = 0; i < 20000; i++) {
        b->opt_requests.give_room();
        b->utlb_requests.give_room();
        b->dma_requests.give_room();
        b->packets.give_room();
        b->completions.give_room();
        run_cycles(5);
    }
    for (const send_job& j : jobs)
        b->expect_sent(j);
    b->expect_order();
    EXPECT_GT(b->w.count("packetizer.completion_stalls"), 0u);
}

TEST(packetizer, takes_so_many_jobs_of_a_context) {
    b->restart();
    b->completions.accept = [](const auto&) { return false; };
    for (unsigned i = 0; i < JOB_WINDOW + 3; i++) {
        b->job.send(b->make(1, 1, 0x1000, 0, 8));
        b->job.send(b->make(2, 1, 0x1000, 0, 8));
    }
    run_cycles(1000);
    EXPECT_TRUE(b->completions.items.empty());
    if (exact()) {
        EXPECT_FALSE(b->job.idle());
    }
    b->completions.accept = nullptr;
    b->completions.give_room();
    run_cycles(1000);
    EXPECT_TRUE(b->job.idle());
    EXPECT_EQ(b->completions.items.size(), 2 * (JOB_WINDOW + 3));
    b->expect_order();
}

// Control

TEST(packetizer, drains_what_was_begun_and_no_more) {
    b->restart();
    const send_job j = b->send(1, 1, 0x1000, 0, 4096);
    run_cycles(packetizer::JOB_CYCLES + 1 + (exact() ? 0 : 10));
    b->send_control(control_op::DRAIN, 0, 50);
    b->send(2, 1, 0x1000, 0, 400000);  // not awaited
    run_cycles(2000);
    ASSERT_EQ(b->answers.items.size(), 1u);
    EXPECT_EQ(b->answers.items[0].item.tag, 50u);
    EXPECT_EQ(b->answers.items[0].item.status, PRAWN_STATUS_OK);
    EXPECT_CYCLE(b->answers.items[0].time, b->completion_of(j)->finished);
    run_cycles(40000);
    // Nothing under way: at once.
    const std::uint64_t idle = now_ps();
    b->send_control(control_op::DRAIN, 0, 51);
    run_cycles(1);
    ASSERT_EQ(b->answers.items.size(), 2u);
    EXPECT_EQ(b->answers.items[1].time, idle);
    b->send_control(control_op::SET, 0, 52);
    run_cycles(1);
    EXPECT_EQ(b->answers.items.at(2).item.status, PRAWN_STATUS_BAD_OPCODE);
}

TEST(packetizer, drain_does_not_wait_for_a_peer) {
    b->restart();
    b->packets.accept = [](const auto&) { return false; };
    b->send(1, 1, 0x1000, 0, 400000);
    run_cycles(10000);
    b->send_control(control_op::DRAIN, 0, 9);
    run_cycles(1);
    EXPECT_EQ(b->answers.items.size(), 1u);
    EXPECT_TRUE(b->completions.items.empty());
}

TEST(packetizer, refuses_control_of_contexts_that_are_not) {
    b->restart();
    b->send_control(control_op::CONTEXT_DISABLE, 64, 1);
    run_cycles(1);
    ASSERT_EQ(b->answers.items.size(), 1u);
    EXPECT_EQ(b->answers.items[0].item.status, PRAWN_STATUS_BAD_CONTEXT);
    control_request r;
    r.op = control_op::PEER_ERROR;
    r.index = 0xffff;
    r.a = PRAWN_STATUS_PEER_DEAD;
    b->control.send(r);
    run_cycles(1);
    EXPECT_EQ(b->answers.items.at(1).item.status, PRAWN_STATUS_BAD_FIELD);
    send_job j = b->make(1, 1, 0, 0, 0);
    j.context = 64;
    b->job.send(j);
    run_cycles(100);
    EXPECT_TRUE(b->job.idle()) << "dropped";
    EXPECT_TRUE(b->completions.items.empty());
}

TEST(packetizer, reset_at_any_time_is_clean) {
    for (unsigned when = 0; when < 600; when += when < 60 ? 1 : 17) {
        b->restart();
        for (unsigned i = 0; i < 10; i++)
            b->send(static_cast<std::uint16_t>(i % 3), i, 0x1800, 0, 9000);
        b->send_control(control_op::DRAIN, 0, 1);
        run_cycles(when);
        b->reset_only();
        b->packets.clear();
        b->completions.clear();
        b->done.clear();
        b->answers.clear();
        b->index = {};
        // At once, while the old answers still come.
        const send_job j = b->send(1, 3, 0x1000, 0, 5000);
        run_cycles(3000);
        b->expect_sent(j);
        EXPECT_EQ(b->packets.items.size(), 2u);
        EXPECT_EQ(b->completions.items.size(), 1u);
        EXPECT_EQ(b->done.items.size(), 1u);
        EXPECT_TRUE(b->answers.items.empty());
        b->send_control(control_op::DRAIN, 0, 2);
        run_cycles(1);
        EXPECT_EQ(b->answers.items.size(), 1u);
    }
}

TEST(packetizer, sends_the_largest_message) {
    b->restart();
    b->check_data = false;
    b->packets.keep = false;
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
    b->packets.on = [&](const packet_ref& p) {
        bytes += p->head.payload_length;
        packets++;
    };
    b->opt_requests.keep = b->utlb_requests.keep = false;
    b->dma_requests.keep = false;
    b->w.log.detach(b->w.events);
    const send_job j = b->send(1, 3, 0x1000, 0, PRAWN_MAX_MESSAGE);
    run_cycles(PRAWN_MAX_MESSAGE / DMA_WIDTH + 1000000);
    b->packets.on = nullptr;
    b->w.log.attach_events(b->w.events);
    b->opt_requests.keep = b->utlb_requests.keep = true;
    b->dma_requests.keep = true;
    EXPECT_EQ(bytes, PRAWN_MAX_MESSAGE);
    EXPECT_EQ(packets, PRAWN_MAX_MESSAGE / 4096);
    b->expect_completion(j, PRAWN_STATUS_OK, PRAWN_MAX_MESSAGE);
    // The memory is the bottleneck, not the packetizer.
    if (exact()) {
        EXPECT_LT(b->completion_of(j)->finished - b->base,
                  (PRAWN_MAX_MESSAGE / DMA_WIDTH + 1000) * CYCLE);
    }
}

TEST(packetizer, is_deterministic) {
    expect_same_traces();
}

std::string trace() {
    b->restart();
    random_source random(8);
    b->on_utlb = [&random](const utlb_request&, utlb_reply& a) {
        a.status = random(50) == 0 ? PRAWN_STATUS_NOT_PINNED : PRAWN_STATUS_OK;
        return static_cast<unsigned>(1 + random(40));
    };
    b->packets.accept = [&random](const auto&) { return random(4) != 0; };
    for (unsigned i = 0; i < 300; i++)
        b->send(static_cast<std::uint16_t>(random(7)),
                static_cast<std::uint32_t>(random(40)), random(100000),
                random(100000), static_cast<std::uint32_t>(random(12000)));
    for (unsigned i = 0; i < 4000; i++) {
        b->packets.give_room();
        run_cycles(20);
    }
    std::string text = b->w.events.text;
    for (const auto& seen : b->packets.items)
        text += std::to_string(seen.time) + " " +
                std::to_string(seen.item->head.message) + "\n";
    for (const auto& seen : b->completions.items)
        text += std::to_string(seen.time) + " " +
                std::to_string(seen.item.index) + "\n";
    return text;
}

}  // namespace
}  // namespace prawn::test

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    std::unique_ptr<packetizer_bench> own;
    return run_tests(
        argc, argv,
        [&own] {
            own =
                std::make_unique<packetizer_bench>(prawn::packetizer::params());
            b = own.get();
        },
        trace);
}
