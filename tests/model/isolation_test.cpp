// SPDX-License-Identifier: Apache-2.0
// Contexts and destinations do not suffer from one another. Three nodes.
#include <algorithm>

#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

class isolation_test : public model_test
{
protected:
    struct stream {
        channel c;
        std::uint32_t size;
        std::uint64_t bytes = 0;  // completed
        double solo = 0;          // bytes per us, alone
    };

    // 16 messages to node 2, whose host stops in mid-transfer; how many of them
    // had left by then.
    static unsigned send_to_stuck_host(const channel& c) {
        bench::get().host(2).set_hold(memory_host::hold::BEFORE_ANSWER, 4);
        for (int i = 0; i < 16; i++)
            c.from->send(0, c.source, 65536, 0, true);
        pause(500);
        prawn_completion done;
        unsigned whole = 0;
        while (c.from->poll(done)) {
            EXPECT_EQ(done.status, PRAWN_STATUS_OK);
            whole++;
        }
        return whole;
    }

    // Keeps the rings of these streams full for a while; the bytes that were
    // completed while all of them were backlogged.
    void run(std::vector<stream*> all, double us) {
        for (stream* s : all)
            s->bytes = 0;
        const sc_core::sc_time warm =
            sc_core::sc_time_stamp() + sc_core::sc_time(us / 4, sc_core::SC_US);
        const sc_core::sc_time end =
            warm + sc_core::sc_time(us, sc_core::SC_US);
        while (sc_core::sc_time_stamp() < end) {
            const bool counted = sc_core::sc_time_stamp() >= warm;
            for (stream* s : all) {
                prawn_completion done;
                while (s->c.from->poll(done)) {
                    ASSERT_EQ(done.status, PRAWN_STATUS_OK);
                    if (counted)
                        s->bytes += done.bytes;
                }
                prawn_command one{};
                one.opcode = PRAWN_OPCODE_SEND;
                one.source = s->c.source;
                one.length = s->size;
                one.import_id = s->c.import;
                bool posted = false;
                while (s->c.from->room()) {
                    s->c.from->post(one);
                    posted = true;
                }
                if (posted)
                    s->c.from->ring();
            }
            sc_core::wait(sc_core::sc_time(200, sc_core::SC_NS));
        }
        for (stream* s : all)
            while (s->c.from->completed() != s->c.from->produced())
                ASSERT_EQ(s->c.from->wait_completion().status, PRAWN_STATUS_OK);
    }
};

TEST_F(isolation_test, everybody_gets_a_fair_share_whatever_the_sizes) {
    const std::uint32_t sizes[] = {64,   100,  512,   1000,
                                   4096, 4097, 16384, 65536};
    const double window = bench::twins() ? 400 : 1000;
    std::vector<stream> streams;
    for (std::uint16_t k = 0; k < std::size(sizes); k++)
        streams.push_back({make_channel(driver(0), k, driver(1), k, k,
                                        (sizes[k] + PAGE - 1) / PAGE),
                           sizes[k]});
    std::vector<stream*> all;
    for (stream& s : streams) {
        run({&s}, window);
        s.solo = static_cast<double>(s.bytes) / window;
        all.push_back(&s);
    }
    run(all, window * static_cast<double>(all.size()) / 2);
    const double least = 0.5 / static_cast<double>(all.size());
    for (stream& s : streams) {
        const double share = static_cast<double>(s.bytes) /
                             (window * static_cast<double>(all.size()) / 2) /
                             s.solo;
        EXPECT_GE(share, least)
            << "size " << s.size << ", alone " << s.solo << " MB/s";
        RecordProperty("share_of_" + std::to_string(s.size),
                       std::to_string(share));
    }
}

TEST_F(isolation_test, sixteen_large_ones_leave_room_for_a_small_one) {
    std::vector<stream> streams;
    for (std::uint16_t k = 0; k < 17; k++)
        streams.push_back({make_channel(driver(0), k, driver(1), k, k, 16),
                           k ? 65536u : 64u});
    std::vector<stream*> all;
    for (stream& s : streams)
        all.push_back(&s);
    run({all[0]}, 200);
    const double solo = static_cast<double>(all[0]->bytes) / 200;
    run(all, 1000);
    EXPECT_GE(static_cast<double>(all[0]->bytes) / 1000, 0.5 / 17 * solo);
}

TEST_F(isolation_test, a_blocked_destination_delays_no_other) {
    stream blocked{make_channel(driver(0), 1, driver(2), 1, 0, 16), 65536};
    stream flowing{make_channel(driver(0), 2, driver(1), 2, 1, 16), 65536};
    run({&flowing}, 500);
    const double solo = static_cast<double>(flowing.bytes);
    // Node 2's host stops answering DMA.
    bench::get().host(2).set_hold(memory_host::hold::BEFORE_ANSWER, 4);
    for (int i = 0; i < 40; i++)
        blocked.c.from->send(0, blocked.c.source, 65536);
    pause(300);
    const std::uint32_t stuck = blocked.c.from->completed();
    run({&flowing}, 500);
    EXPECT_GE(static_cast<double>(flowing.bytes), 0.8 * solo);
    prawn_completion done;
    while (blocked.c.from->poll(done)) {
    }
    EXPECT_LT(blocked.c.from->completed(), 40u);
    EXPECT_GE(blocked.c.from->completed(), stuck);
    // Admin commands do not wait for peers either.
    EXPECT_EQ(driver(0).invalidate(1, 0, 0), PRAWN_STATUS_OK);
    EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
    bench::get().host(2).set_hold(memory_host::hold::NOTHING);
    bench::get().host(2).release(1000);
    pause(300);
    EXPECT_EQ(flowing.c.send(100), PRAWN_STATUS_OK);
}

// All credits of a destination are with data, and far more data waits: the
// first that comes back is the management message's.
TEST_F(isolation_test, management_goes_before_the_data_that_waits) {
    channel c = make_channel(driver(0), 1, driver(1), 1, 0, 16);
    const auto arrived = [&] {
        return driver(1).counter("depacketizer.data_packets");
    };
    const std::uint64_t before = arrived();
    const std::uint64_t waits = driver(0).counter("link_mac.credit_waits");
    bench::get().host(1).set_hold(memory_host::hold::BEFORE_ANSWER, 4);
    for (int i = 0; i < 60; i++)
        c.from->send(0, c.source, 65536);
    pause(300);
    ASSERT_GT(driver(0).counter("link_mac.credit_waits"), waits);
    ASSERT_EQ(driver(0).send_mgmt(1, {1, 2, 3}), PRAWN_STATUS_OK);
    bench::get().host(1).set_hold(memory_host::hold::NOTHING);
    bench::get().host(1).release(1000);
    const prawn_kernel_event e = driver(1).wait_event(PRAWN_EVENT_TYPE_MGMT);
    EXPECT_EQ(e.length, 3u);
    EXPECT_LT(arrived() - before, 60u * 16 / 2);
    while (c.from->completed() != c.from->produced())
        ASSERT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
}

// What the network has taken goes on its way; of the rest nothing leaves, and
// no command waits for the peer any more.
TEST_F(isolation_test, a_cleared_import_waits_for_no_peer) {
    channel c = make_channel(driver(0), 1, driver(2), 1, 0, 16);
    c.from->fill(c.source, c.length, 8);
    const std::uint64_t sent = driver(0).counter("packetizer.packets");
    const std::uint64_t arrived = driver(2).counter("ipt.delivered");
    const unsigned whole = send_to_stuck_host(c);
    ASSERT_LT(whole, 14u);
    prawn_completion done;
    EXPECT_EQ(driver(0).clear_import(0), PRAWN_STATUS_OK);
    const std::uint64_t packets = driver(0).counter("packetizer.packets");
    std::uint64_t bytes = whole * 65536ull;
    for (unsigned i = whole; i < 16; i++) {
        done = c.from->wait_completion(1000);
        EXPECT_EQ(done.status, PRAWN_STATUS_BAD_IMPORT);
        EXPECT_LT(done.bytes, 65536u);
        bytes += done.bytes;
    }
    EXPECT_EQ(bytes, (packets - sent) * PRAWN_MAX_PAYLOAD);
    bench::get().host(2).set_hold(memory_host::hold::NOTHING);
    bench::get().host(2).release(1000);
    pause(1000);
    EXPECT_EQ(driver(0).counter("packetizer.packets"), packets);
    EXPECT_EQ(driver(2).counter("ipt.delivered") - arrived, packets - sent);
    prawn_notification n;
    unsigned told = 0;
    while (c.to->poll_notification(n))
        told += n.count;
    EXPECT_EQ(told, whole);
}

// The same of a peer that is declared dead; what waited in the FIFO goes too.
TEST_F(isolation_test, a_peer_declared_dead_is_waited_for_no_longer) {
    channel c = make_channel(driver(0), 1, driver(2), 1, 0, 16);
    const unsigned whole = send_to_stuck_host(c);
    ASSERT_LT(whole, 14u);
    prawn_completion done;
    EXPECT_EQ(driver(0).admin(
                  card_driver::command(PRAWN_ADMIN_OPCODE_PEER_CONTROL, 0, 2)),
              PRAWN_STATUS_OK);
    for (unsigned i = whole; i < 16; i++) {
        done = c.from->wait_completion(1000);
        EXPECT_EQ(done.status, PRAWN_STATUS_IMPORT_ERROR);
        EXPECT_EQ(done.detail, PRAWN_STATUS_PEER_DEAD);
    }
    const std::uint64_t packets = driver(0).counter("packetizer.packets");
    bench::get().host(2).set_hold(memory_host::hold::NOTHING);
    bench::get().host(2).release(1000);
    pause(1000);
    EXPECT_EQ(driver(0).counter("packetizer.packets"), packets);
    prawn_notification n;
    unsigned told = 0;
    while (c.to->poll_notification(n))
        told += n.count;
    EXPECT_LE(told, whole) << "a message that was cut has been told of";
}

TEST_F(isolation_test, a_hostile_context_stops_nobody) {
    channel victim = make_channel(driver(0), 1, driver(1), 1, 0, 16);
    victim.from->fill(victim.source, victim.length, 7);
    context& hostile = driver(0).open(2, 4, 4);
    std::uint64_t state = 88172645463325252ull;
    const auto random = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    unsigned good = 0;
    for (int i = 0; i < 300; i++) {
        prawn_completion done;
        while (hostile.poll(done))
            EXPECT_NE(done.status, PRAWN_STATUS_OK);
        while (hostile.room()) {
            prawn_command junk;
            auto* words = reinterpret_cast<std::uint64_t*>(&junk);
            for (std::size_t w = 0; w < sizeof(junk) / 8; w++)
                words[w] = random();
            if (random() % 2) {
                junk = prawn_command{};
                junk.opcode = PRAWN_OPCODE_SEND;
                junk.source = random() % 2 ? victim.source : random();
                junk.length = static_cast<std::uint32_t>(random());
                junk.import_id = 0;
                junk.offset = random() % 2 ? 0 : random();
            }
            hostile.post(junk);
        }
        for (int bells = 0; bells < 20; bells++)
            hostile.ring();
        for (std::uint64_t reg : {0x08u, 0x10u, 0x18u, 0x20u, 0x28u, 0x30u})
            driver(0).host().write(2, 2 * PAGE + reg, 8, random());
        if (i % 10 == 0) {
            victim.from->send(0, victim.source + 13, 60000, 7);
            EXPECT_EQ(victim.from->wait_completion(2000).status,
                      PRAWN_STATUS_OK);
            good++;
        }
    }
    EXPECT_EQ(good, 30u);
    pause(100);
    EXPECT_EQ(victim.to->read(victim.target + 7, 60000),
              victim.from->read(victim.source + 13, 60000));
    EXPECT_EQ(driver(0).close(2), PRAWN_STATUS_OK);
}

TEST_F(isolation_test, a_full_outgoing_fifo_tells_the_kernel) {
    channel c = make_channel(driver(0), 1, driver(2), 1, 0, 16);
    driver(0).write(PRAWN_BAR0_FIFO_THRESHOLD, 4, 8192);
    EXPECT_EQ(driver(0).read(PRAWN_BAR0_FIFO_THRESHOLD, 4), 8192u);
    EXPECT_EQ(driver(0).read(PRAWN_BAR0_FIFO_LEVEL, 4), 0u);
    bench::get().host(2).set_hold(memory_host::hold::BEFORE_ANSWER, 4);
    for (int i = 0; i < 8; i++)
        c.from->send(0, c.source, 65536);
    EXPECT_GT(driver(0).wait_event(PRAWN_EVENT_TYPE_FIFO_THRESHOLD).value,
              8192u);
    driver(0).until(
        [&] { return driver(0).read(PRAWN_BAR0_FIFO_LEVEL, 4) > 8192; }, 500,
        "FIFO_LEVEL above the threshold");
    bench::get().host(2).set_hold(memory_host::hold::NOTHING);
    bench::get().host(2).release(1000);
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
    pause(50);
    EXPECT_EQ(driver(0).read(PRAWN_BAR0_FIFO_LEVEL, 4), 0u);
}

// All nodes that there are, each to each and to itself.
TEST_F(isolation_test, all_to_all) {
    const unsigned nodes = bench::get().model().nodes();
    std::vector<channel> all;
    std::uint32_t id = 0;
    for (unsigned a = 0; a < nodes; a++)
        for (unsigned b = 0; b < nodes; b++, id++)
            all.push_back(make_channel(
                driver(a), static_cast<std::uint16_t>(b), driver(b),
                static_cast<std::uint16_t>(32 + a), id, 4));
    for (channel& c : all) {
        c.from->fill(c.source, c.length, c.import);
        for (int i = 0; i < 4; i++)
            c.from->send(c.import, c.source, 16000, 5, i == 3);
    }
    for (channel& c : all) {
        for (int i = 0; i < 4; i++)
            EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
        EXPECT_EQ(c.to->wait_notification().length, 16000u);
        EXPECT_EQ(c.to->read(c.target + 5, 16000),
                  c.from->read(c.source, 16000));
    }
}

}  // namespace
}  // namespace model
}  // namespace prawn
