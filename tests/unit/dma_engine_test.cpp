// SPDX-License-Identifier: Apache-2.0
// The DMA engine on its bus, with a host at the other end.
#include "nic/dma_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "host_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t M = host_bench::MEMORY;

// In front of one channel, for the random test.
struct twinned : sc_core::sc_module {
    host_bench inner;
    twin<dma_request> in;
    twinned(sc_core::sc_module_name name, std::uint64_t seed) :
        sc_core::sc_module(name),
        inner("inner", duplex_profile(8), false, {32, 3}),
        in("in", seed, sc_time(300, SC_NS), 4) {
        in.out.bind(inner.engine.request_in(DMA_PROXY));
    }
};

struct all_benches {
    host_bench duplex{"duplex", duplex_profile()};
    host_bench few{"few", duplex_profile(4)};
    host_bench shared{"shared", shared_profile()};
    host_bench narrow{"narrow", duplex_profile(), false, {32, 2}};
    twinned twin{"twin", 11};
};

all_benches& benches() {
    static auto* all = new all_benches;
    return *all;
}

class dma_engine_test : public testing::Test
{
protected:
    host_bench& b = benches().duplex;
    std::vector<std::uint8_t> data = std::vector<std::uint8_t>(1 << 20);

    void SetUp() override {
        b.start();
        std::mt19937 random(1);
        for (auto& byte : data)
            byte = static_cast<std::uint8_t>(random());
    }
    // What is held points into this test's buffers.
    void TearDown() override {
        b.host.set_hold(memory_host::hold::NOTHING);
        run_ns(1000000);
    }
    static std::uint64_t time(host_bench& in, unsigned channel,
                              std::size_t i = 0) {
        return in.since(in.replies[channel].all.at(i).ns());
    }
};

TEST_F(dma_engine_test, exact_times_of_one_request) {
    b.ask(DMA_NOTIFIER, 7, true, M, 64, data.data());
    run_ns(1000);
    ASSERT_EQ(b.replies[DMA_NOTIFIER].all.size(), 1u);
    EXPECT_EQ(b.replies[DMA_NOTIFIER].all[0].item.tag, 7u);
    EXPECT_EQ(b.replies[DMA_NOTIFIER].all[0].item.status, PRAWN_STATUS_OK);
    // 2 cycles, 88 bytes, and the way to memory.
    EXPECT_EQ(time(b, DMA_NOTIFIER), 8u + 11 + 200);
    EXPECT_EQ(std::memcmp(b.host.pointer(M), data.data(), 64), 0);

    b.start();
    std::uint8_t back[64] = {};
    b.ask(DMA_UTLB, 8, false, M, 64, back);
    run_ns(1000);
    ASSERT_EQ(b.replies[DMA_UTLB].all.size(), 1u);
    // 2 cycles, a header, to memory, 88 bytes.
    EXPECT_EQ(time(b, DMA_UTLB), 8u + 3 + 450 + 11);
    EXPECT_EQ(std::memcmp(back, data.data(), 64), 0);
}

TEST_F(dma_engine_test, exact_times_of_a_page) {
    b.ask(DMA_INCOMING, 1, true, M, 4096, data.data());
    run_ns(3000);
    EXPECT_EQ(time(b, DMA_INCOMING), 8u + 16 * 35 + 200);

    b.start();
    b.ask(DMA_SEND, 1, false, M, 4096, data.data());
    run_ns(3000);
    EXPECT_EQ(time(b, DMA_SEND), 8u + 3 + 450 + 16 * 35);
    // An odd length: 15 bursts of 256 and one of 1 byte.
    b.start();
    b.ask(DMA_SEND, 1, false, M + 3, 15 * 256 + 1, data.data());
    run_ns(3000);
    EXPECT_EQ(b.since(b.replies[DMA_SEND].all.at(0).ps / 1000),
              (8000u + 3000 + 450000 + 15 * 35000 + 3125) / 1000);
}

// A page as one transaction takes as long as its bursts one by one.
TEST_F(dma_engine_test, one_page_equals_its_bursts) {
    for (const bool write : {false, true}) {
        b.start();
        b.ask(DMA_SEND, 0, write, M, 4096, data.data());
        run_ns(3000);
        const std::uint64_t whole = time(b, DMA_SEND);
        b.start();
        for (unsigned i = 0; i < 16; i++)
            ASSERT_TRUE(b.ask(DMA_SEND, i, write, M + i * 256, 256,
                              data.data() + i * 256));
        run_ns(3000);
        ASSERT_EQ(b.replies[DMA_SEND].all.size(), 16u);
        EXPECT_EQ(time(b, DMA_SEND, 15), whole) << write;
    }
    host_bench& s = benches().shared;
    for (const bool write : {false, true}) {
        s.start();
        s.ask(DMA_SEND, 0, write, M, 1024, data.data());
        run_ns(300000);
        const std::uint64_t whole = time(s, DMA_SEND);
        EXPECT_EQ(whole, 20u + 16 * (240 + 1920 + (write ? 0 : 600)) +
                             (write ? 200 : 0));
        s.start();
        for (unsigned i = 0; i < 16; i++)
            ASSERT_TRUE(s.ask(DMA_SEND, i, write, M + i * 64, 64,
                              data.data() + i * 64));
        run_ns(300000);
        EXPECT_EQ(time(s, DMA_SEND, 15), whole) << write;
    }
}

TEST_F(dma_engine_test, small_request_waits_for_one_burst_only) {
    for (unsigned i = 0; i < 8; i++)
        b.ask(DMA_SEND, i, true, M + i * 4096, 4096, data.data());
    run_ns(100);
    std::uint8_t word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    b.ask(DMA_NOTIFIER, 0, true, M + 0x20000, 8, word);
    run_ns(20000);
    // On the bus at 108, in the middle of the third burst (78 to 113).
    EXPECT_EQ(time(b, DMA_NOTIFIER), 113u + 4 + 200);
    // And the large ones have lost those 4 ns.
    EXPECT_EQ(time(b, DMA_SEND, 7), 8u + 8 * 16 * 35 + 4 + 200);
}

TEST_F(dma_engine_test, two_channels_share_the_bandwidth) {
    for (host_bench* in : {&benches().duplex, &benches().shared}) {
        in->start();
        for (unsigned i = 0; i < 20; i++) {
            in->ask(DMA_INCOMING, i, true, M, 4096, data.data());
            in->ask(DMA_PROXY, i, true, M + 8192, 4096, data.data());
        }
        run_ns(20000000);
        ASSERT_EQ(in->replies[DMA_INCOMING].all.size(), 20u);
        ASSERT_EQ(in->replies[DMA_PROXY].all.size(), 20u);
        // They end within one burst of each other all the time, and together
        // take what both take alone.
        const std::uint64_t burst = in == &benches().duplex ? 35 : 2160;
        const std::uint64_t page = burst * (burst == 35 ? 16 : 64);
        for (std::size_t i = 0; i < 20; i++) {
            const std::uint64_t x = time(*in, DMA_PROXY, i);
            const std::uint64_t y = time(*in, DMA_INCOMING, i);
            EXPECT_EQ(std::max(x, y) - std::min(x, y), burst);
        }
        EXPECT_EQ(
            std::max(time(*in, DMA_PROXY, 19), time(*in, DMA_INCOMING, 19)),
            (burst == 35 ? 8 : 20) + 40 * page + 200);
    }
}

TEST_F(dma_engine_test, shared_bus_has_one_direction_at_a_time) {
    host_bench& s = benches().shared;
    s.start();
    for (unsigned i = 0; i < 10; i++) {
        s.ask(DMA_INCOMING, i, true, M, 4096, data.data());
        s.ask(DMA_SEND, i, false, M + 8192, 4096, data.data());
    }
    run_ns(20000000);
    const std::uint64_t end =
        std::max(time(s, DMA_INCOMING, 9), time(s, DMA_SEND, 9));
    EXPECT_EQ(end, 20u + 10 * 64 * (2160 + 2760) + 200);

    // Full duplex: both directions at once, but for the headers.
    b.start();
    for (unsigned i = 0; i < 10; i++) {
        b.ask(DMA_INCOMING, i, true, M, 4096, data.data());
        b.ask(DMA_SEND, i, false, M + 8192, 4096, data.data());
    }
    run_ns(20000000);
    EXPECT_EQ(time(b, DMA_INCOMING, 9), 8u + 10 * 16 * (35 + 3) + 200);
    EXPECT_LE(time(b, DMA_SEND, 9), 8u + 35 + 3 + 450 + 10 * 16 * 38);
}

TEST_F(dma_engine_test, reads_hide_their_latency) {
    for (unsigned i = 0; i < 32; i++)
        ASSERT_TRUE(b.ask(DMA_SEND, i, false, M, 4096, data.data()));
    run_ns(100000);
    EXPECT_EQ(time(b, DMA_SEND, 31), 8u + 3 + 450 + 32 * 16 * 35);
}

// Four shared tags and one of the channel: five bursts under way.
TEST_F(dma_engine_test, read_tags_limit_what_is_outstanding) {
    host_bench& f = benches().few;
    f.start();
    f.ask(DMA_SEND, 0, false, M, 4096, data.data());
    run_ns(10000);
    // Bursts 0 to 4 end at 496 and every 35 ns; each lets one more go, which
    // ends 488 ns later.
    EXPECT_EQ(time(f, DMA_SEND), 496u + 3 * 488);

    // Another channel is not shut out: it has a tag of its own.
    f.start();
    f.ask(DMA_SEND, 0, false, M, 4096, data.data());
    run_ns(100);
    f.ask(DMA_UTLB, 0, false, M, 64, data.data());
    run_ns(10000);
    EXPECT_LE(time(f, DMA_UTLB), 100u + 8 + 3 + 450 + 35 + 11);
}

TEST_F(dma_engine_test, channel_keeps_order_of_reads_and_writes) {
    std::uint8_t first[8] = {1}, back[8] = {}, second[8] = {2}, last[8] = {};
    b.ask(DMA_PROXY, 0, true, M, 8, first);
    b.ask(DMA_PROXY, 1, false, M, 8, back);
    b.ask(DMA_PROXY, 2, true, M, 8, second);
    b.ask(DMA_PROXY, 3, false, M, 8, last);
    run_ns(10000);
    ASSERT_EQ(b.replies[DMA_PROXY].all.size(), 4u);
    for (std::uint32_t i = 0; i < 4; i++)
        EXPECT_EQ(b.replies[DMA_PROXY].all[i].item.tag, i);
    EXPECT_EQ(back[0], 1);
    EXPECT_EQ(last[0], 2);
}

TEST_F(dma_engine_test, replies_in_order_although_the_host_answers_otherwise) {
    b.host.set_hold(memory_host::hold::BEFORE_ACCESS);
    b.ask(DMA_SEND, 0, false, M, 8, data.data());
    b.ask(DMA_SEND, 1, false, M + 8, 8, data.data() + 8);
    run_ns(2000);
    EXPECT_EQ(b.host.held(), 2u);
    EXPECT_TRUE(b.replies[DMA_SEND].all.empty());
    b.host.release(1);
    run_ns(10);
    EXPECT_EQ(b.replies[DMA_SEND].all.size(), 1u);
    EXPECT_EQ(b.replies[DMA_SEND].all[0].item.tag, 0u);
}

TEST_F(dma_engine_test, bad_requests) {
    std::uint8_t byte[8] = {};
    b.host.record(true);
    b.ask(DMA_SEND, 0, true, M, 0, byte);
    b.ask(DMA_SEND, 1, true, M, 4097, data.data());
    b.ask(DMA_SEND, 2, true, M, 8, nullptr);
    b.ask(DMA_SEND, 3, true, ~std::uint64_t{0} - 3, 8, byte);
    b.ask(DMA_SEND, 4, true, M, 8, byte);
    run_ns(5000);
    b.host.record(false);
    ASSERT_EQ(b.replies[DMA_SEND].all.size(), 5u);
    for (std::uint32_t i = 0; i < 5; i++) {
        EXPECT_EQ(b.replies[DMA_SEND].all[i].item.tag, i);
        EXPECT_EQ(b.replies[DMA_SEND].all[i].item.status,
                  i < 4 ? PRAWN_STATUS_DMA_ERROR : PRAWN_STATUS_OK);
    }
    EXPECT_EQ(b.host.accesses().size(), 1u);
}

TEST_F(dma_engine_test, refused_by_the_host) {
    const std::uint64_t errors = b.count("dma_engine.errors");
    std::uint8_t byte[8] = {};
    b.ask(DMA_SEND, 0, false, 0x10000000, 8, byte);  // no such memory
    run_ns(2000);
    EXPECT_EQ(b.replies[DMA_SEND].all.at(0).item.status,
              PRAWN_STATUS_DMA_ERROR);
    b.host.set_bus_master(false);
    b.ask(DMA_SEND, 1, true, M, 8, byte);
    run_ns(2000);
    EXPECT_EQ(b.replies[DMA_SEND].all.at(1).item.status,
              PRAWN_STATUS_DMA_ERROR);
    b.host.set_bus_master(true);
    b.ask(DMA_SEND, 2, true, M, 8, byte);
    run_ns(2000);
    EXPECT_EQ(b.replies[DMA_SEND].all.at(2).item.status, PRAWN_STATUS_OK);
    EXPECT_EQ(b.count("dma_engine.errors"), errors + 2);
}

// Bus mastering is looked at when the access reaches the host.
TEST_F(dma_engine_test, bus_master_off_while_under_way) {
    std::uint8_t bytes[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    b.host.store<std::uint64_t>(M, 0);
    b.ask(DMA_SEND, 0, true, M, 8, bytes);
    run_ns(50);
    b.host.set_bus_master(false);
    run_ns(2000);
    EXPECT_EQ(b.replies[DMA_SEND].all.at(0).item.status,
              PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(b.host.load<std::uint64_t>(M), 0u);
}

TEST_F(dma_engine_test, page_crossing) {
    // Two pages, both there.
    b.ask(DMA_INCOMING, 0, true, M + 4000, 4096, data.data());
    run_ns(5000);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.at(0).item.status, PRAWN_STATUS_OK);
    std::vector<std::uint8_t> back(4096);
    b.host.read_memory(M + 4000, back.data(), back.size());
    EXPECT_EQ(std::memcmp(back.data(), data.data(), 4096), 0);

    // The first page is missing: the second must not be written.
    b.host.store<std::uint64_t>(M, 0x1111);
    b.ask(DMA_INCOMING, 1, true, M - 8, 16, data.data());
    run_ns(5000);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.at(1).item.status,
              PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(b.host.load<std::uint64_t>(M), 0x1111u);

    // The second is missing: the first has been written, and it is an error.
    const std::uint64_t end = M + host_bench::MEMORY_SIZE;
    b.ask(DMA_INCOMING, 2, true, end - 8, 16, data.data());
    run_ns(5000);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.at(2).item.status,
              PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(std::memcmp(b.host.pointer(end - 8), data.data(), 8), 0);
}

TEST_F(dma_engine_test, full_channel_refuses_and_says_when_there_is_room) {
    std::size_t taken = 0;
    while (b.ask(DMA_SEND, 0, false, M, 8, data.data()))
        taken++;
    EXPECT_EQ(taken, dma_engine::DEPTH);
    // Others are not full.
    EXPECT_TRUE(b.ask(DMA_UTLB, 0, false, M, 8, data.data()));
    b.rooms = 0;
    run_ns(1);
    EXPECT_EQ(b.rooms, 0u);
    run_ns(5000);
    EXPECT_EQ(b.rooms, 1u);
    EXPECT_TRUE(b.ask(DMA_SEND, 0, false, M, 8, data.data()));
}

TEST_F(dma_engine_test, reset_forgets_and_keeps_memory_alive) {
    pool<small_buffer> buffers;
    for (const double when : {0.0, 4.0, 9.0, 20.0, 300.0, 460.0}) {
        b.start();
        dma_request r;
        r.tag = 1;
        r.write = false;
        r.address = M;
        r.length = 256;
        {
            ref<small_buffer> buffer = buffers.get();
            r.data = buffer->bytes;
            r.keep = buffer;
        }
        b.engine.request_in(DMA_SEND).try_put(r);
        b.ask(DMA_INCOMING, 2, true, M + 4096, 4096, data.data());
        if (when > 0)
            run_ns(when);
        b.engine.reset();
        EXPECT_EQ(buffers.used(), when < 8 ? 0u : 1u) << when;
        // A new life at once, with the same tags.
        b.ask(DMA_SEND, 1, false, M, 64, data.data());
        run_ns(5000);
        EXPECT_EQ(buffers.used(), 0u);
        ASSERT_EQ(b.replies[DMA_SEND].all.size(), 1u) << when;
        EXPECT_TRUE(b.replies[DMA_INCOMING].all.empty()) << when;
        EXPECT_GE(time(b, DMA_SEND), static_cast<std::uint64_t>(when) + 472);
    }
}

TEST_F(dma_engine_test, reset_with_all_tags_in_use) {
    host_bench& f = benches().few;
    f.start();
    f.ask(DMA_SEND, 0, false, M, 4096, data.data());
    run_ns(50);
    f.engine.reset();
    f.ask(DMA_SEND, 1, false, M, 4096, data.data());
    run_ns(10000);
    ASSERT_EQ(f.replies[DMA_SEND].all.size(), 1u);
    EXPECT_EQ(f.replies[DMA_SEND].all[0].item.tag, 1u);
}

TEST_F(dma_engine_test, drain_waits_for_what_began_before) {
    b.host.set_hold(memory_host::hold::BEFORE_ACCESS);
    b.ask(DMA_SEND, 0, false, M, 8, data.data());
    run_ns(1000);
    control_request r;
    r.tag = 77;
    r.op = control_op::DRAIN;
    b.engine.control_in().try_put(r);
    b.ask(DMA_SEND, 1, false, M, 8, data.data());
    run_ns(1000);
    EXPECT_TRUE(b.control.all.empty());
    b.host.release(1);
    run_ns(10);
    ASSERT_EQ(b.control.all.size(), 1u);  // the second is still held
    EXPECT_EQ(b.control.all[0].item.tag, 77u);
    EXPECT_EQ(b.control.all[0].item.status, PRAWN_STATUS_OK);
    EXPECT_EQ(b.host.held(), 1u);

    r.tag = 78;
    r.op = control_op::SET;
    b.engine.control_in().try_put(r);
    run_ns(10);
    EXPECT_EQ(b.control.all.at(1).item.status, PRAWN_STATUS_BAD_OPCODE);
}

TEST_F(dma_engine_test, idle_drain_is_answered) {
    control_request r;
    r.tag = 5;
    b.engine.control_in().try_put(r);
    EXPECT_TRUE(b.control.all.empty());  // answers come later
    run_ns(1);
    EXPECT_EQ(b.control.all.size(), 1u);
}

TEST_F(dma_engine_test, bus_without_room_holds_the_engine_back) {
    host_bench& n = benches().narrow;
    n.start();
    for (std::uint32_t i = 0; i < 20; i++)
        ASSERT_TRUE(n.ask(i % 2 ? DMA_SEND : DMA_UTLB, i, false, M + i * 8, 8,
                          data.data() + i * 8));
    run_ns(20000);
    EXPECT_EQ(n.replies[DMA_SEND].all.size(), 10u);
    EXPECT_EQ(n.replies[DMA_UTLB].all.size(), 10u);
    EXPECT_EQ(std::memcmp(data.data(), n.host.pointer(M), 160), 0);
}

// Random requests on all channels, one of them behind a twin, a host that is
// slow and refuses, few read tags, few places on the bus: data and order as in
// a memory that is accessed at once. Channels have memory of their own.
TEST_F(dma_engine_test, random_traffic) {
    twinned& t = benches().twin;
    host_bench& in = t.inner;
    in.start();
    std::mt19937 random(5);
    struct pending {
        std::uint32_t tag;
        bool write;
        std::uint64_t address;
        std::vector<std::uint8_t> bytes;     // where the DMA goes
        std::vector<std::uint8_t> expected;  // of a read
    };
    constexpr std::uint64_t WINDOW = 3 * 4096;
    std::array<std::deque<pending>, DMA_CHANNELS> open;
    std::array<std::size_t, DMA_CHANNELS> answered{};
    std::array<std::vector<std::uint8_t>, DMA_CHANNELS> memory;
    for (unsigned c = 0; c < DMA_CHANNELS; c++) {
        memory[c].assign(WINDOW, 0);
        in.host.write_memory(M + c * WINDOW, memory[c].data(), WINDOW);
    }
    in.host.set_hold(memory_host::hold::BEFORE_ACCESS, 3);
    std::uint32_t tag = 0;
    std::size_t done = 0;
    for (int step = 0; step < 60000; step++) {
        const unsigned c = static_cast<unsigned>(random()) % DMA_CHANNELS;
        if (open[c].size() < 40 && random() % 3 == 0) {
            pending p;
            p.tag = tag++;
            p.write = random() % 2;
            const std::uint32_t length =
                1 + static_cast<std::uint32_t>(random()) %
                        (random() % 2 ? 4096 : 64);
            const std::uint64_t offset = random() % (WINDOW - length + 1);
            p.address = M + c * WINDOW + offset;
            p.bytes.resize(length);
            if (p.write)
                for (auto& byte : p.bytes)
                    byte = static_cast<std::uint8_t>(random());
            open[c].push_back(std::move(p));
            pending& q = open[c].back();
            dma_request r;
            r.tag = q.tag;
            r.write = q.write;
            r.address = q.address;
            r.length = length;
            r.data = q.bytes.data();
            put_if<dma_request>& to =
                c == DMA_PROXY ? static_cast<put_if<dma_request>&>(t.in)
                               : in.engine.request_in(c);
            if (!to.try_put(r)) {
                open[c].pop_back();
            } else if (q.write) {
                std::memcpy(memory[c].data() + offset, q.bytes.data(), length);
            } else {
                q.expected.assign(
                    memory[c].begin() + static_cast<std::ptrdiff_t>(offset),
                    memory[c].begin() +
                        static_cast<std::ptrdiff_t>(offset + length));
            }
        }
        run_ns(static_cast<double>(random() % 60));
        if (random() % 2)
            in.host.release(random() % 4);
        for (unsigned k = 0; k < DMA_CHANNELS; k++) {
            while (answered[k] < in.replies[k].all.size()) {
                const dma_reply& reply = in.replies[k].all[answered[k]++].item;
                pending& p = open[k].front();
                ASSERT_EQ(reply.tag, p.tag);
                ASSERT_EQ(reply.status, PRAWN_STATUS_OK);
                if (!p.write) {
                    ASSERT_EQ(p.bytes, p.expected);
                }
                open[k].pop_front();
                done++;
            }
        }
    }
    EXPECT_GT(done, 2000u);
    in.host.set_hold(memory_host::hold::NOTHING);
    run_ns(1000000);
    for (unsigned c = 0; c < DMA_CHANNELS; c++) {
        EXPECT_EQ(in.replies[c].all.size() - answered[c], open[c].size());
        std::vector<std::uint8_t> now(WINDOW);
        in.host.read_memory(M + c * WINDOW, now.data(), WINDOW);
        EXPECT_EQ(now, memory[c]);
    }
}

}  // namespace
}  // namespace test
}  // namespace prawn
