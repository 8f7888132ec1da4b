// SPDX-License-Identifier: Apache-2.0
// The bus: BAR accesses, interrupts, order, reset. DMA timing is tested with
// the DMA engine.
#include "host/host_bus.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "host_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t M = host_bench::MEMORY;

struct thread_user : sc_core::sc_module {
    memory_host& host;
    std::uint64_t value = 0;
    bool done = false;
    thread_user(sc_core::sc_module_name name, memory_host& h) :
        sc_core::sc_module(name), host(h) {
        SC_HAS_PROCESS(thread_user);
        SC_THREAD(main);
    }
    void main() {
        host.write_and_wait(0, 4, 4, 1);
        value = host.read(0, 8, 4);
        done = true;
    }
};

struct all_benches {
    host_bench duplex{"duplex", duplex_profile(), false, {4, 256}};
    host_bench shared{"shared", shared_profile(), false, {4, 256}};
    thread_user user{"user", duplex.host};
};

all_benches& benches() {
    static auto* all = new all_benches;
    return *all;
}

class host_bus_test : public testing::Test
{
protected:
    host_bench& b = benches().duplex;
    host_bench& s = benches().shared;
    std::vector<std::uint8_t> data = std::vector<std::uint8_t>(1 << 16, 0x5a);
    struct answer {
        std::uint64_t ns;
        std::uint64_t value;
    };
    std::vector<answer> answered;

    void SetUp() override {
        b.start();
        s.start();
        answered.clear();
        b.t0 = s.t0 = now_ns();
    }
    void TearDown() override {
        b.card.open();
        b.host.set_hold(memory_host::hold::NOTHING);
        run_ns(1000000);
        EXPECT_TRUE(b.bus.idle());
        EXPECT_TRUE(s.bus.idle());
    }
    memory_host::bar_done note(host_bench& in) {
        return [this, &in](std::uint64_t value) {
            answered.push_back({in.since(now_ns()), value});
        };
    }
};

TEST_F(host_bus_test, exact_times_of_bar_accesses) {
    b.host.read(0, 0x10, 4, note(b));
    run_ns(2000);
    ASSERT_EQ(b.card.seen.size(), 1u);
    EXPECT_EQ(b.since(b.card.seen[0].ns), 400u);
    ASSERT_EQ(answered.size(), 1u);
    EXPECT_EQ(answered[0].ns, 800u);
    EXPECT_EQ(answered[0].value, 0x80000010u);

    b.start();
    answered.clear();
    b.host.write(2, 0x20, 8, 0x1122334455667788, true, note(b));
    run_ns(2000);
    ASSERT_EQ(b.card.seen.size(), 1u);
    EXPECT_EQ(b.since(b.card.seen[0].ns), 250u);
    EXPECT_EQ(b.card.seen[0].value, 0x1122334455667788u);
    EXPECT_EQ(answered.at(0).ns, 250u);  // as soon as the card has it

    // What the card takes comes on top.
    b.start();
    answered.clear();
    b.card.delay = sc_time(16, SC_NS);
    b.host.read(0, 0x10, 4, note(b));
    run_ns(2000);
    EXPECT_EQ(answered.at(0).ns, 816u);
}

TEST_F(host_bus_test, exact_times_on_a_shared_bus) {
    s.host.read(0, 0x10, 4, note(s));
    run_ns(5000);
    EXPECT_EQ(answered.at(0).ns, 960u);
    s.start();
    s.host.write(0, 0x10, 4, 5, true, note(s));
    s.host.write(0, 0x14, 4, 6, true, note(s));
    run_ns(5000);
    ASSERT_EQ(s.card.seen.size(), 2u);
    EXPECT_EQ(s.since(s.card.seen[0].ns), 480u);
    EXPECT_EQ(s.since(s.card.seen[1].ns), 960u);
}

TEST_F(host_bus_test, shared_bus_makes_the_cpu_wait_for_a_burst) {
    s.ask(DMA_SEND, 0, true, M, 4096, data.data());
    run_ns(1000);
    s.host.write(0, 0, 4, 1, true, note(s));
    run_ns(1000000);
    // The first burst lasts from 20 to 2180.
    EXPECT_EQ(answered.at(0).ns, 2180u + 480);
    EXPECT_EQ(s.since(s.replies[DMA_SEND].all.at(0).ns()),
              20u + 64 * 2160 + 480 + 200);
}

TEST_F(host_bus_test, order_of_bar_accesses) {
    // A read would be slower than the write behind it.
    b.host.read(0, 1, 4, note(b));
    b.host.write(0, 2, 4, 0, true, note(b));
    b.host.write(0, 3, 4, 0, true, note(b));
    b.host.read(0, 4, 4, note(b));
    run_ns(5000);
    ASSERT_EQ(b.card.seen.size(), 4u);
    for (std::size_t i = 0; i < 4; i++) {
        EXPECT_EQ(b.card.seen[i].offset, i + 1);
        if (i > 0) {
            EXPECT_EQ(b.card.seen[i].order, b.card.seen[i - 1].order + 1);
        }
    }
    EXPECT_EQ(answered.size(), 4u);
}

TEST_F(host_bus_test, credits_run_out_and_come_back) {
    const std::uint64_t stalls = b.count("host_bus.bar_stalls");
    b.card.delay = sc_time(1000, SC_NS);
    for (std::uint64_t i = 0; i < 10; i++)
        b.host.write(0, i, 4, i, true, note(b));
    run_ns(900);
    EXPECT_EQ(b.card.seen.size(), 4u);  // 4 credits
    EXPECT_GT(b.count("host_bus.bar_stalls"), stalls);
    run_ns(20000);
    ASSERT_EQ(b.card.seen.size(), 10u);
    for (std::size_t i = 0; i < 10; i++)
        EXPECT_EQ(b.card.seen[i].value, i);
    EXPECT_EQ(answered.size(), 10u);
}

TEST_F(host_bus_test, card_that_accepts_nothing_for_a_while) {
    b.card.closed = true;
    b.host.write(0, 1, 4, 1, true, note(b));
    b.host.write(0, 2, 4, 2, true, note(b));
    b.host.read(0, 3, 4, note(b));
    run_ns(5000);
    EXPECT_TRUE(b.card.seen.empty());
    EXPECT_TRUE(answered.empty());
    b.card.open();
    run_ns(5000);
    ASSERT_EQ(b.card.seen.size(), 3u);
    EXPECT_EQ(b.card.seen[2].offset, 3u);
    EXPECT_EQ(answered.size(), 3u);
}

TEST_F(host_bus_test, interrupt_latency) {
    const std::size_t before = b.host.interrupts().size();
    b.interrupt->msix(3);
    run_ns(2000);
    ASSERT_EQ(b.host.interrupts().size(), before + 1);
    EXPECT_EQ(b.host.interrupts().back().vector, 3u);
    EXPECT_EQ(b.since(b.host.interrupts().back().time.value() / 1000), 1000u);
    b.interrupt->intx(true);
    run_ns(999);
    EXPECT_FALSE(b.host.intx_level());
    run_ns(2);
    EXPECT_TRUE(b.host.intx_level());
    b.interrupt->intx(false);
    run_ns(2000);
    EXPECT_FALSE(b.host.intx_level());
}

TEST_F(host_bus_test, interrupt_never_overtakes_a_write) {
    const std::size_t before = b.host.interrupts().size();
    for (std::uint32_t i = 0; i < 8; i++)
        b.ask(DMA_INCOMING, i, true, M, 4096, data.data());
    run_ns(100);
    b.interrupt->msix(1);
    run_ns(20000);
    ASSERT_EQ(b.host.interrupts().size(), before + 1);
    const std::uint64_t last = b.replies[DMA_INCOMING].all.at(7).ns();
    EXPECT_GT(last, b.t0 + 1100);  // or this would prove nothing
    EXPECT_EQ(b.host.interrupts().back().time.value() / 1000, last);

    // Nor does it overtake a write for which the host takes its time; and
    // later writes do not hold it up.
    b.host.set_hold(memory_host::hold::BEFORE_ACCESS);
    b.ask(DMA_INCOMING, 8, true, M, 8, data.data());
    run_ns(100);
    b.interrupt->msix(2);
    b.ask(DMA_INCOMING, 9, true, M, 8, data.data());
    run_ns(5000);
    EXPECT_EQ(b.host.interrupts().size(), before + 1);
    b.host.release(1);
    run_ns(1);
    EXPECT_EQ(b.host.interrupts().size(), before + 2);
    EXPECT_EQ(b.host.held(), 1u);
}

TEST_F(host_bus_test, bar_answer_never_overtakes_a_write) {
    b.host.store<std::uint64_t>(M + 7 * 4096, 0);
    for (std::uint32_t i = 0; i < 8; i++)
        b.ask(DMA_INCOMING, i, true, M + i * 4096, 4096, data.data());
    run_ns(20);
    std::uint64_t seen = 0;
    b.host.read(0, 0, 4, [&](std::uint64_t) {
        seen = b.host.load<std::uint64_t>(M + 7 * 4096);
        answered.push_back({b.since(now_ns()), 0});
    });
    run_ns(20000);
    EXPECT_EQ(seen, 0x5a5a5a5a5a5a5a5au);
    EXPECT_EQ(answered.at(0).ns,
              b.since(b.replies[DMA_INCOMING].all.at(7).ns()));
}

// The host may need the processor that waits for the BAR read.
TEST_F(host_bus_test, bar_read_does_not_wait_for_a_held_dma) {
    b.host.set_hold(memory_host::hold::BEFORE_ACCESS, 1);
    for (std::uint32_t i = 0; i < 4; i++)
        b.ask(DMA_INCOMING, i, true, M, 64, data.data());
    b.ask(DMA_SEND, 0, false, M, 64, data.data());
    run_ns(1000);
    b.host.read(0, 0, 4, note(b));
    run_ns(1000);
    EXPECT_EQ(answered.size(), 1u);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.size(), 0u);
    for (int i = 0; i < 5; i++) {
        b.host.release(1);
        run_ns(100);
    }
    EXPECT_EQ(b.replies[DMA_INCOMING].all.size(), 4u);
    EXPECT_EQ(b.replies[DMA_SEND].all.size(), 1u);
}

TEST_F(host_bus_test, control_passes) {
    EXPECT_TRUE(b.card.master);
    b.host.set_attached(true);
    EXPECT_EQ(b.card.attached, 1);
    b.host.set_bus_master(false);
    EXPECT_FALSE(b.card.master);
    b.host.reset_card();
    EXPECT_EQ(b.card.resets, 1u);
    b.host.set_attached(false);
    EXPECT_EQ(b.card.attached, 0);
}

// At any time of the way: answered, but it does not reach the card.
TEST_F(host_bus_test, host_reset_drops_bar_accesses) {
    for (const double when : {0.0, 1.0, 100.0, 249.0}) {
        b.start();
        answered.clear();
        for (std::uint64_t i = 0; i < 6; i++)  // two wait for credits
            b.host.write(0, 0x10, 4, 1, true, note(b));
        b.host.read(0, 0x20, 4, note(b));
        run_ns(when);
        b.host.reset_card();
        EXPECT_EQ(b.card.resets, 1u);
        b.host.write(0, 0x30, 4, 2, true);
        run_ns(5000);
        EXPECT_EQ(answered.size(), 7u) << when;
        for (const answer& a : answered)
            EXPECT_EQ(a.value, 0u);
        ASSERT_EQ(b.card.seen.size(), 1u) << when;
        EXPECT_EQ(b.card.seen.back().offset, 0x30u);
    }
}

TEST_F(host_bus_test, host_reset_refuses_dma_under_way) {
    for (const double when : {0.0, 5.0, 9.0, 100.0, 218.0}) {
        b.start();
        b.host.store<std::uint64_t>(M, 0x77);
        b.ask(DMA_INCOMING, 0, true, M, 64, data.data());
        run_ns(when);
        b.host.reset_card();
        b.engine.reset();  // as the card does
        b.host.set_bus_master(true);
        run_ns(5000);
        EXPECT_EQ(b.host.load<std::uint64_t>(M), 0x77u) << when;
        EXPECT_TRUE(b.replies[DMA_INCOMING].all.empty()) << when;
    }
    // The bus itself answers with an error; the card may be alive.
    b.start();
    b.ask(DMA_INCOMING, 0, true, M, 64, data.data());
    b.ask(DMA_SEND, 0, false, M, 64, data.data());
    run_ns(100);
    b.host.reset_card();
    b.host.set_bus_master(true);
    run_ns(5000);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.at(0).item.status,
              PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(b.replies[DMA_SEND].all.at(0).item.status,
              PRAWN_STATUS_DMA_ERROR);
}

TEST_F(host_bus_test, host_reset_drops_interrupts) {
    const std::size_t before = b.host.interrupts().size();
    b.interrupt->msix(1);
    run_ns(500);
    b.host.set_attached(false);
    run_ns(5000);
    EXPECT_EQ(b.host.interrupts().size(), before);
}

TEST_F(host_bus_test, unmapped_while_under_way) {
    b.host.map(0x9000000, 8192);
    b.ask(DMA_INCOMING, 0, true, 0x9000000, 64, data.data());
    run_ns(50);
    b.host.unmap(0x9000000, 8192);
    run_ns(1000);
    EXPECT_EQ(b.replies[DMA_INCOMING].all.at(0).item.status,
              PRAWN_STATUS_DMA_ERROR);
    b.host.map(0x9000000, 4096);
    EXPECT_EQ(b.host.load<std::uint64_t>(0x9000000), 0u);
    b.host.unmap(0x9000000, 4096);
}

// 30 ns a byte and 240 ns for each 64 bytes: what is left of 33 MB/s, whoever
// uses the bus.
TEST_F(host_bus_test, bandwidth_of_a_shared_bus_emerges) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < 16; i++) {
        s.ask(DMA_INCOMING, i, true, M, 4096, data.data());
        s.ask(DMA_COMMAND, i, false, M + 4096, 64, data.data() + 8192);
        bytes += 4096 + 64;
        s.host.write(0, 0, 4, i, true);
    }
    run_ns(3000000);
    std::uint64_t end = 0;
    for (const unsigned c : {DMA_INCOMING, DMA_COMMAND}) {
        ASSERT_EQ(s.replies[c].all.size(), 16u);
        end = std::max(end, s.since(s.replies[c].all.back().ns()));
    }
    EXPECT_EQ(end, 20u + 16 * 64 * 2160 + 16 * 2760 + 16 * 480 + 200 - 20);
    EXPECT_EQ(s.card.seen.size(), 16u);
}

TEST_F(host_bus_test, blocking_accesses) {
    EXPECT_TRUE(benches().user.done);
    EXPECT_EQ(benches().user.value, 0x80000008u);
}

}  // namespace
}  // namespace test
}  // namespace prawn
