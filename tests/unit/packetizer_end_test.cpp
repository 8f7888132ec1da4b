// SPDX-License-Identifier: Apache-2.0
// How jobs end before their time: with their context, import or peer.
#include "packetizer_bench.h"

namespace prawn::test {
namespace {

packetizer_bench* b;

TEST(packetizer_end, a_disabled_context_leaves_nothing_behind) {
    for (unsigned when = 1; when < 700; when += when < 40 ? 1 : 23) {
        b->restart();
        std::vector<send_job> others;
        for (unsigned i = 0; i < 4; i++) {
            b->send(1, i, 0x1800, 0, 9000);
            others.push_back(b->send(2, i, 0x1800, 0, 9000));
        }
        run_cycles(when);
        const std::size_t packets = b->packets.items.size();
        const std::size_t completions = b->completions.items.size();
        b->forget(1);
        b->job.clear();
        b->send_control(control_op::CONTEXT_DISABLE, 1, when);
        run_cycles(1);
        run_cycles(5000);
        ASSERT_EQ(b->answers.items.size(), 1u) << when;
        const std::uint64_t drained = b->answers.items[0].time;
        // Not even for a job that a twin has held meanwhile.
        for (std::size_t i = packets; i < b->packets.items.size(); i++)
            EXPECT_EQ(b->packets.items[i].item->head.source_context, 2);
        for (std::size_t i = completions; i < b->completions.items.size(); i++)
            EXPECT_EQ(b->completions.items[i].item.context, 2);
        if (exact()) {
            for (const send_job& j : others)
                b->expect_sent(j);
            for (const auto& r : b->dma_requests.items)
                EXPECT_TRUE(r.item.context != 1 || r.time <= drained);
        }
        // The next owner of the context.
        b->completions.clear();
        b->packets.clear();
        b->index[1] = 0;
        const send_job j = b->send(1, 3, 0x1000, 0, 5000);
        run_cycles(2000);
        b->expect_sent(j);
    }
}

TEST(packetizer_end, a_job_held_on_its_way_does_not_reach_the_next_life) {
    b->restart();
    const send_job first = b->make(1, 3, 0x1000, 0, 5000);
    b->send_control(control_op::CONTEXT_DISABLE, 1, 1);
    run_cycles(1);
    const send_job second = b->make(1, 3, 0x1000, 0, 5000);
    b->send_control(control_op::CONTEXT_DISABLE, 1, 2);
    run_cycles(1);
    const auto dropped = b->w.count("packetizer.cancelled_jobs");
    b->job.send(first);
    b->job.send(second);
    const send_job third = b->send(1, 3, 0x1000, 0, 5000);
    run_cycles(2000);
    b->expect_sent(third);
    EXPECT_EQ(b->packets.items.size(), 2u);
    ASSERT_EQ(b->completions.items.size(), 1u);
    EXPECT_EQ(b->completions.items[0].item.life, third.life);
    ASSERT_EQ(b->done.items.size(), 1u);
    EXPECT_EQ(b->done.items[0].item.life, third.life);
    EXPECT_EQ(b->w.count("packetizer.cancelled_jobs"), dropped + 2);
}

// Two of ten packets leave, then the peer takes nothing any more; more commands
// wait behind, of this context and of another.
struct blocked_peer {
    bool open = false;
    unsigned room = 2;
    send_job half, other_import, other_context, elsewhere;

    blocked_peer() {
        b->restart();
        b->packets.accept = [this](const packet_ref& p) {
            const header& h = p->head;
            return open || h.destination_node != 1 ||
                   (room != 0 && room-- != 0);
        };
        half = b->send(1, 1, 0x1000, 0, 40960);
        other_import = b->send(1, 17, 0x1000, 0, 4096);
        run_cycles(6000);
        EXPECT_EQ(room, 0u);
        other_context = b->send(2, 1, 0x1000, 0, 100);
        elsewhere = b->send(3, 2, 0x1000, 0, 9000);
        run_cycles(3000);
        EXPECT_TRUE(b->completion_of(elsewhere));
        EXPECT_FALSE(b->completion_of(half));
        EXPECT_FALSE(b->completion_of(other_context));
    }
    ~blocked_peer() { b->packets.accept = nullptr; }
    void tell(control_op op, std::uint64_t a = 0) const {
        control_request r;
        r.op = op;
        r.index = 1;
        r.a = a;
        b->control.send(r);
        run_cycles(300);
        ASSERT_EQ(b->answers.items.size(), 1u);
        EXPECT_EQ(b->answers.items[0].item.status, PRAWN_STATUS_OK);
    }
    void unblock() {
        open = true;
        b->packets.give_room();
        run_cycles(3000);
    }
};

TEST(packetizer_end, a_cleared_import_waits_for_no_peer) {
    blocked_peer p;
    p.tell(control_op::CLEAR);
    b->expect_completion(p.half, PRAWN_STATUS_BAD_IMPORT, 8192);
    b->expect_completion(p.other_context, PRAWN_STATUS_BAD_IMPORT, 0);
    EXPECT_FALSE(b->completion_of(p.other_import));
    p.unblock();
    b->expect_message(p.half, 8192);
    b->expect_message(p.other_context, 0);
    b->expect_sent(p.other_import);
    b->expect_sent(p.elsewhere);
    b->expect_order();
}

TEST(packetizer_end, a_dead_peer_ends_the_commands_that_wait_for_it) {
    blocked_peer p;
    p.tell(control_op::PEER_ERROR, PRAWN_STATUS_PEER_DEAD);
    b->expect_completion(p.half, PRAWN_STATUS_IMPORT_ERROR, 8192, 0,
                         PRAWN_STATUS_PEER_DEAD);
    b->expect_completion(p.other_import, PRAWN_STATUS_IMPORT_ERROR, 0, 0,
                         PRAWN_STATUS_PEER_DEAD);
    b->expect_completion(p.other_context, PRAWN_STATUS_IMPORT_ERROR, 0, 0,
                         PRAWN_STATUS_PEER_DEAD);
    p.unblock();
    b->expect_message(p.half, 8192);
    b->expect_sent(p.elsewhere);
    b->expect_order();
}

TEST(packetizer_end, what_was_handed_over_is_not_taken_back) {
    for (unsigned when = 1; when < 900; when += when < 60 ? 1 : 13) {
        b->restart();
        const send_job j = b->send(1, 1, 0x1800, 0, 9000);
        const send_job k = b->send(1, 2, 0x1800, 0, 9000);
        run_cycles(when);
        control_request r;
        r.op = control_op::CLEAR;
        r.index = 1;
        b->control.send(r);
        run_cycles(2000);
        std::uint32_t bytes = 0;
        for (const packet_ref& p : b->packets_of(1, j.message))
            bytes += p->head.payload_length;
        if (bytes == 9000)
            b->expect_sent(j);
        else
            b->expect_completion(j, PRAWN_STATUS_BAD_IMPORT, bytes);
        b->expect_sent(k);
        b->expect_order();
        b->send_control(control_op::DRAIN);
        run_cycles(1);
        EXPECT_EQ(b->answers.items.size(), 2u);
    }
}

// The second packet of a message waits for the import table, which has answered
// for the next message already; then the first one fails.
TEST(packetizer_end, a_failure_lets_go_of_what_was_answered_behind_it) {
    b->restart();
    b->opt_requests.accept = [](const opt_request& r) {
        return r.import_id != 1 || r.offset == 0;
    };
    b->on_dma = [](const dma_request& r) -> std::uint16_t {
        return r.address >> 12 << 12 == packetizer_bench::translate(1, 0x1000)
                   ? PRAWN_STATUS_DMA_ERROR
                   : PRAWN_STATUS_OK;
    };
    const send_job bad = b->send(1, 1, 0x1000, 0, 8192);
    const send_job good = b->send(1, 2, 0x9000, 0, 100);
    run_cycles(3000);
    b->expect_completion(bad, PRAWN_STATUS_DMA_ERROR, 0);
    b->expect_sent(good);
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
        [] { return std::string(); });
}
