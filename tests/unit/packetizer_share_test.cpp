// SPDX-License-Identifier: Apache-2.0
// Who is served when: fair shares, blocked peers, slow translations.
#include <algorithm>

#include "packetizer_bench.h"

namespace prawn::test {
namespace {

packetizer_bench* b;

// A context that always has something to send.
struct stream {
    std::uint16_t context;
    std::uint32_t import_id;
    std::uint32_t length;
};

// Bytes of each stream taken by the network, all of them backlogged, over a
// time in which the memory could deliver `cycles` times DMA_WIDTH bytes.
std::vector<std::uint64_t> serve(const std::vector<stream>& streams,
                                 std::uint64_t cycles) {
    b->restart();
    b->check_data = false;
    b->packets.keep = b->completions.keep = b->done.keep = false;
    b->opt_requests.keep = b->utlb_requests.keep = false;
    b->dma_requests.keep = false;
    std::array<std::uint64_t, PRAWN_CONTEXTS> bytes{};
    bool counting = false;
    b->packets.on = [&](const packet_ref& p) {
        if (counting)
            bytes[p->head.source_context] += p->head.payload_length;
    };
    for (const stream& s : streams) {
        const std::uint64_t messages =
            2 * cycles * DMA_WIDTH / (s.length + 16) / streams.size() + 100;
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(messages, 40000);
             i++)
            b->todo[s.context].push_back(
                b->make(s.context, s.import_id, 0x10000, 0, s.length));
        b->feed(s.context);
    }
    run_cycles(cycles / 10);  // into the steady state
    counting = true;
    run_cycles(cycles);
    counting = false;
    b->packets.on = nullptr;
    b->packets.keep = b->completions.keep = b->done.keep = true;
    b->opt_requests.keep = b->utlb_requests.keep = true;
    b->dma_requests.keep = true;
    std::vector<std::uint64_t> served;
    for (const stream& s : streams) {
        if (b->todo[s.context].empty()) {
            ADD_FAILURE() << "context " << s.context << " had too little";
        }
        served.push_back(bytes[s.context]);
    }
    return served;
}

void expect_fair(const std::vector<stream>& streams) {
    constexpr std::uint64_t CYCLES = 60000;
    const auto together = serve(streams, CYCLES);
    for (std::size_t i = 0; i < streams.size(); i++) {
        const auto solo = serve({streams[i]}, CYCLES);
        const double share =
            static_cast<double>(together[i]) / static_cast<double>(solo[0]);
        EXPECT_GE(share, 0.5 / static_cast<double>(streams.size()))
            << "context " << streams[i].context << " with messages of "
            << streams[i].length;
    }
}

TEST(packetizer_share, two_contexts_whatever_their_messages) {
    const std::uint32_t sizes[] = {8, 64, 1000, 4096, 65536};
    for (const std::uint32_t x : sizes)
        for (const std::uint32_t y : sizes)
            if (x <= y)
                expect_fair({{3, 1, x}, {9, 2, y}});
}

TEST(packetizer_share, many_contexts) {
    expect_fair({{0, 1, 8}, {1, 1, 65536}, {2, 2, 65536}, {3, 2, 4096}});
    std::vector<stream> all;
    for (std::uint16_t c = 0; c < 16; c++)
        all.push_back({c, c % 3u, c % 2 == 0 ? 64u : 100000u});
    expect_fair(all);
}

TEST(packetizer_share, those_who_wait_for_the_same_peer_take_turns) {
    // Contexts 0 and 1 share a peer that takes a packet now and then; context
    // 2 has all the rest.
    b->restart();
    b->packets.keep = false;
    std::array<std::uint64_t, 3> bytes{};
    unsigned permits = 0;
    b->packets.accept = [&](const packet_ref& p) {
        if (p->head.destination_node != 1)
            return true;
        if (permits == 0)
            return false;
        permits--;
        return true;
    };
    b->packets.on = [&](const packet_ref& p) {
        bytes[p->head.source_context] += p->head.payload_length;
    };
    for (unsigned i = 0; i < 300; i++)
        for (std::uint16_t c = 0; c < 3; c++)
            b->todo[c].push_back(b->make(c, c < 2 ? 1 : 2, 0x10000, 0, 16384));
    for (std::uint16_t c = 0; c < 3; c++)
        b->feed(c);
    for (unsigned i = 0; i < 300; i++) {
        permits = 1;
        b->packets.give_room();
        run_cycles(1000);
    }
    b->packets.on = nullptr;
    EXPECT_NEAR(static_cast<double>(bytes[0]), 150 * 4096, 16384);
    EXPECT_NEAR(static_cast<double>(bytes[1]), 150 * 4096, 16384);
    EXPECT_GT(bytes[2], (300u * 1000 * DMA_WIDTH - 300u * 4096) * 8 / 10);
}

TEST(packetizer_share, a_blocked_peer_delays_no_other) {
    b->restart();
    bool blocked = true;
    b->packets.accept = [&](const packet_ref& p) {
        return !blocked || p->head.destination_node == 5;
    };
    // 15 contexts to 15 peers that take nothing, each with many small jobs; and
    // one context with one job for each of them before what it really wants.
    std::vector<send_job> stuck;
    for (std::uint16_t c = 0; c < 16; c++)
        for (unsigned i = 0; c != 5 && i < 50; i++)
            stuck.push_back(b->send(c, c, 0x1000, 0, 6000));
    for (std::uint16_t i = 0; i < JOB_WINDOW - 1u; i++)
        stuck.push_back(b->send(20, i < 5 ? i : i + 1u, 0x1000, 0, 100));
    run_cycles(200000);
    EXPECT_TRUE(b->packets.items.empty());
    const std::uint64_t from = now_ps();
    const send_job overtakes = b->send(20, 5, 0x3000, 0, 40000);
    const send_job free_one = b->send(5, 5, 0x3000, 0, 40000);
    run_cycles(7000);
    b->expect_sent(free_one);
    b->expect_message(overtakes, 40000);
    EXPECT_FALSE(b->completion_of(overtakes)) << "completions stay in order";
    if (exact()) {
        EXPECT_LT(b->packets.items.back().time - from, 6000 * CYCLE)
            << "80000 bytes take the memory 5000 cycles";
    }
    blocked = false;
    b->packets.give_room();
    run_cycles(400000);
    for (const send_job& j : stuck)
        b->expect_sent(j);
    b->expect_sent(overtakes);
    b->expect_order();
}

TEST(packetizer_share, disabling_a_context_frees_its_places) {
    b->restart();
    b->packets.accept = [](const packet_ref&) { return false; };
    for (unsigned i = 0; i < 8; i++)
        b->send(1, 3, 0x1000, 0, 40000);
    run_cycles(30000);
    const send_job waits = b->send(2, 3, 0x1000, 0, 100);
    run_cycles(1000);
    b->forget(1);
    b->send_control(control_op::CONTEXT_DISABLE, 1, 1);
    run_cycles(10);
    EXPECT_EQ(b->answers.items.size(), 1u) << "does not wait for the peer";
    b->packets.accept = nullptr;
    b->packets.give_room();
    run_cycles(1000);
    b->expect_sent(waits);
    EXPECT_EQ(b->packets.items.size(), 1u);
}

TEST(packetizer_share, misses_of_one_context_hold_up_no_other) {
    b->restart();
    b->on_utlb = [](const utlb_request& r, utlb_reply&) {
        return r.context == 1 ? 5000 : UTLB_DELAY;
    };
    for (unsigned i = 0; i < 8; i++)
        b->send(1, 3, 0x1000, 0, 40000);
    run_cycles(100);
    const send_job j = b->send(2, 3, 0x1000, 0, 40000);
    run_cycles(4000);
    b->expect_sent(j);
    EXPECT_LE(b->utlb_requests.items.size(),
              2u * packetizer::params().lookups + 20);
}

TEST(packetizer_share, an_utlb_that_refuses_one_context_serves_others) {
    b->restart();
    bool refuse = true;
    b->utlb_requests.accept = [&](const utlb_request& r) {
        return !refuse || r.context != 1;
    };
    const send_job late = b->send(1, 3, 0x1000, 0, 4000);
    run_cycles(50);
    const send_job j = b->send(2, 3, 0x1000, 0, 40000);
    run_cycles(4000);
    b->expect_sent(j);
    refuse = false;
    b->utlb_requests.give_room();
    run_cycles(1000);
    b->expect_sent(late);
}

TEST(packetizer_share, the_memory_is_kept_busy_but_not_flooded) {
    b->restart();
    std::uint64_t most = 0;
    std::uint64_t asked = 0;
    std::uint64_t got = 0;
    b->dma_requests.accept = [&](const dma_request& r) {
        asked += r.length;
        most = std::max(most, asked - got);
        return true;
    };
    b->packets.on = [&](const packet_ref& p) { got += p->head.payload_length; };
    const send_job j = b->send(1, 3, 0x1000, 0, 1 << 20);
    run_cycles((1 << 20) / DMA_WIDTH + 2000);
    b->packets.on = nullptr;
    b->expect_sent(j);
    const packetizer::params p;
    EXPECT_LE(most, p.window_bytes + 4096u);
    if (exact()) {
        EXPECT_LT(b->completion_of(j)->finished - b->base,
                  ((1 << 20) / DMA_WIDTH + 200) * CYCLE);
    }
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
