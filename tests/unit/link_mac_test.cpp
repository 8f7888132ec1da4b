// SPDX-License-Identifier: Apache-2.0
#include "nic/link_mac.h"

#include <gtest/gtest.h>

#include "receive_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {
namespace {

constexpr unsigned NODES = 4, CREDITS = 4;

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    event_log log;
    block_env env{0, NODES, &the_profile(), &counters, &log};
    link_mac dut{"link_mac", env};
    twin<packet_ref> refuser{"refuser", 5, ns(50), 2, 0};
    sink<packet_ref> wire{"wire"}, host{"host"};
    sink<unsigned> credits{"credits"};
    sink<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.link_out.bind(wire);
        dut.packet_out.bind(host);
        dut.credit_out.bind(credits);
        dut.control_out.bind(replies);
        refuser.out.bind(dut.packet_in());
        SC_HAS_PROCESS(bench);
        SC_METHOD(count_room);
        dont_initialize();
        sensitive << dut.packet_in().room();
    }
    void count_room() { rooms++; }
    unsigned rooms = 0;
};

class link_mac_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    link_mac& dut = b().dut;
    sink<packet_ref>& wire = b().wire;
    sink<packet_ref>& host = b().host;
    sink<unsigned>& credits = b().credits;

    void SetUp() override {
        wire.clear();
        host.clear();
        dut.reset();
        run(10000);
        for (unsigned node = 0; node < NODES; node++)
            while (dut.credits(node) < CREDITS)
                give(node);
        settle();
        wire.clear();
        host.clear();
        credits.clear();
        b().replies.clear();
        b().rooms = 0;
    }
    void give(unsigned node) { put(dut.credit_in(), node); }
    bool send(unsigned to, unsigned bytes = 100) {
        return put(dut.packet_in(), make_packet(0, to, bytes));
    }
    void arrive(packet_ref p) { EXPECT_TRUE(put(dut.link_in(), p)); }
    unsigned granted() {
        unsigned sum = 0;
        for (const auto& e : credits.items)
            sum += e.item;
        return sum;
    }
    static std::uint64_t counted(const char* name) {
        return count(b().counters, name);
    }
};

TEST_F(link_mac_test, sends_with_the_last_byte) {
    const sc_time start = sc_time_stamp();
    ASSERT_TRUE(send(1, 100));
    run(1000);
    ASSERT_EQ(wire.size(), 1u);
    // Header 64, payload 100, CRC 4, framing 8: 176 bytes at 2 bytes/ns.
    EXPECT_EQ(wire.when(0) - start, ns(88));
    EXPECT_EQ(wire[0]->crc, packet_crc(*wire[0]));
}

TEST_F(link_mac_test, refuses_while_busy_and_says_when_free) {
    ASSERT_TRUE(send(1));
    EXPECT_FALSE(send(2));
    run(87);
    EXPECT_EQ(b().rooms, 0u);
    EXPECT_FALSE(send(1));
    run(2);
    EXPECT_EQ(b().rooms, 1u);
    EXPECT_TRUE(send(2));
}

TEST_F(link_mac_test, no_room_event_for_nobody) {
    ASSERT_TRUE(send(1));
    run(1000);
    EXPECT_EQ(b().rooms, 0u);
}

TEST_F(link_mac_test, back_to_back_at_full_bandwidth) {
    const sc_time start = sc_time_stamp();
    for (unsigned i = 0; i < CREDITS; i++) {
        ASSERT_TRUE(send(1, 4096));
        EXPECT_FALSE(send(1, 4096));
        run(2086);
    }
    settle();
    ASSERT_EQ(wire.size(), CREDITS);
    EXPECT_EQ(wire.when(CREDITS - 1) - start, ns(CREDITS * 2086));
}

TEST_F(link_mac_test, credits_are_of_destinations) {
    EXPECT_TRUE(send(3));
    run(100);
    for (unsigned i = 0; i < CREDITS; i++) {
        EXPECT_TRUE(send(1));
        run(100);
    }
    const auto waits = counted("link_mac.credit_waits");
    EXPECT_FALSE(send(1));
    EXPECT_FALSE(send(1));
    EXPECT_EQ(counted("link_mac.credit_waits"), waits + 1);
    EXPECT_TRUE(send(2)) << "another destination has its own";
    run(100);
    EXPECT_EQ(b().rooms, 0u);
    give(3);
    settle();
    EXPECT_EQ(b().rooms, 0u) << "nobody waits for node 3";
    EXPECT_FALSE(send(1));
    give(1);
    settle();
    EXPECT_EQ(b().rooms, 1u);
    EXPECT_TRUE(send(1));
    EXPECT_EQ(dut.credits(1), 0u);
}

TEST_F(link_mac_test, credit_of_no_node_is_ignored) {
    give(NODES);
    give(0xffffffff);
    for (unsigned node = 0; node < NODES; node++)
        EXPECT_EQ(dut.credits(node), CREDITS);
}

TEST_F(link_mac_test, what_cannot_be_framed_is_dropped) {
    const auto before = counted("link_mac.tx_dropped");
    EXPECT_TRUE(send(NODES));
    EXPECT_TRUE(send(0xffff));
    EXPECT_TRUE(send(1, PRAWN_MAX_PAYLOAD + 1));
    run(10000);
    EXPECT_EQ(wire.size(), 0u);
    EXPECT_EQ(counted("link_mac.tx_dropped"), before + 3);
    EXPECT_EQ(dut.credits(1), CREDITS);
}

TEST_F(link_mac_test, receives_in_the_same_instant) {
    arrive(with_crc(make_packet(1, 0, 100)));
    ASSERT_EQ(host.size(), 1u);
    EXPECT_EQ(granted(), 1u);
}

TEST_F(link_mac_test, every_broken_bit_is_seen) {
    const auto before = counted("link_mac.rx_bad_crc");
    unsigned tried = 0;
    const auto arrive_broken = [&](auto breaker) {
        packet_ref p = with_crc(make_packet(1, 0, 24));
        breaker(*p);
        arrive(p);
        tried++;
    };
    for (unsigned bit = 0; bit < 8 * sizeof(header); bit++) {
        if (bit / 8 == offsetof(header, payload_length) + 1)
            continue;  // makes the length impossible: another counter
        arrive_broken([bit](packet& p) {
            reinterpret_cast<std::uint8_t*>(&p.head)[bit / 8] ^=
                static_cast<std::uint8_t>(1 << bit % 8);
        });
    }
    for (unsigned bit = 0; bit < 8 * 24; bit++)
        arrive_broken([bit](packet& p) {
            p.payload[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
        });
    for (unsigned bit = 0; bit < 32; bit++)
        arrive_broken([bit](packet& p) { p.crc ^= 1U << bit; });
    EXPECT_EQ(host.size(), 0u);
    EXPECT_EQ(counted("link_mac.rx_bad_crc"), before + tried);
    EXPECT_EQ(granted(), tried) << "a broken packet also leaves the buffer";
}

TEST_F(link_mac_test, impossible_length_is_not_read) {
    const auto before = counted("link_mac.rx_bad_frame");
    packet_ref p = with_crc(make_packet(1, 0, 8));
    p->head.payload_length = 0xffff;
    arrive(p);
    EXPECT_EQ(host.size(), 0u);
    EXPECT_EQ(counted("link_mac.rx_bad_frame"), before + 1);
    EXPECT_EQ(granted(), 1u);
}

TEST_F(link_mac_test, back_pressure_keeps_order_and_credits) {
    host.refuse = true;
    for (unsigned i = 0; i < 3; i++)
        arrive(with_crc(make_packet(1, 0, 10, PRAWN_PACKET_TYPE_DATA, i + 1)));
    packet_ref broken = make_packet(2, 0, 10);
    broken->crc = 0;
    arrive(broken);
    arrive(with_crc(make_packet(1, 0, 10, PRAWN_PACKET_TYPE_DATA, 4)));
    run(1000);
    EXPECT_EQ(granted(), 0u);
    host.release();
    settle();
    ASSERT_EQ(host.size(), 4u);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(host[i]->head.message, i + 1);
    EXPECT_EQ(granted(), 5u);
}

TEST_F(link_mac_test, reset_while_sending_keeps_the_credit) {
    ASSERT_TRUE(send(1));
    EXPECT_EQ(dut.credits(1), CREDITS - 1);
    run(50);
    dut.reset();
    EXPECT_EQ(dut.credits(1), CREDITS);
    const sc_time start = sc_time_stamp();
    ASSERT_TRUE(send(2, 36));  // 112 bytes
    run(1000);
    ASSERT_EQ(wire.size(), 1u) << "the first one never left";
    EXPECT_EQ(wire[0]->head.destination_node, 2);
    EXPECT_EQ(wire.when(0) - start, ns(56));
}

// Too late to cancel what is due in the same instant.
TEST_F(link_mac_test, reset_in_the_instant_of_the_last_byte) {
    ASSERT_TRUE(send(1));
    sc_core::sc_start(ns(88));  // stops before what is due at its end
    dut.reset();
    EXPECT_EQ(dut.credits(1) + wire.size(), CREDITS);
    wire.clear();
    const sc_time start = sc_time_stamp();
    ASSERT_TRUE(send(2));
    run(1000);
    ASSERT_EQ(wire.size(), 1u);
    EXPECT_EQ(wire.when(0) - start, ns(88));
}

TEST_F(link_mac_test, reset_while_receiving_returns_the_credits) {
    host.refuse = true;
    for (unsigned i = 0; i < 3; i++)
        arrive(with_crc(make_packet(1, 0, 10)));
    dut.reset();
    EXPECT_EQ(granted(), 3u);
    host.release();
    run(100);
    EXPECT_EQ(host.size(), 0u);
}

TEST_F(link_mac_test, reset_wakes_those_who_were_refused) {
    ASSERT_TRUE(send(1));
    EXPECT_FALSE(send(1));
    dut.reset();
    settle();
    EXPECT_EQ(b().rooms, 1u);
    EXPECT_TRUE(send(1));
}

// The fabric refuses nothing of a card with credits; a twin before it does.
TEST_F(link_mac_test, wire_that_refuses) {
    wire.refuse = true;
    ASSERT_TRUE(send(1));
    run(200);
    EXPECT_FALSE(send(1)) << "it is still there";
    wire.release();
    settle();
    EXPECT_EQ(wire.size(), 1u);
    EXPECT_EQ(b().rooms, 1u);

    wire.refuse = true;
    ASSERT_TRUE(send(1));
    run(200);
    dut.reset();
    wire.clear();
    const sc_time start = sc_time_stamp();
    ASSERT_TRUE(send(2));
    run(10);
    wire.release();  // must not let the new one out early
    run(1000);
    ASSERT_EQ(wire.size(), 1u);
    EXPECT_EQ(wire.when(0) - start, ns(88));
}

TEST_F(link_mac_test, twin_in_front_loses_nothing) {
    unsigned sent = 0;
    std::uint32_t next = 1;
    for (unsigned i = 0; next <= 40 && i < 10000; i++) {
        if (put<packet_ref>(
                b().refuser,
                make_packet(0, next % NODES, 64, PRAWN_PACKET_TYPE_DATA, next)))
            next++;
        run(7);
        for (; sent < wire.size(); sent++)
            give(wire[sent]->head.destination_node);
    }
    run(1000);
    ASSERT_EQ(wire.size(), 40u);
    for (unsigned i = 0; i < 40; i++)
        EXPECT_EQ(wire[i]->head.message, i + 1);
}

TEST_F(link_mac_test, captures_what_is_on_the_wire) {
    struct recorder : event_sink {
        std::vector<std::pair<link_direction, std::size_t>> seen;
        void on_packet(const packet_capture& p) override {
            seen.emplace_back(p.direction, p.size());
        }
    } file;
    b().log.attach_packets(file);
    ASSERT_TRUE(send(1, 100));
    run(1000);
    arrive(wire[0]);
    b().log.detach(file);
    ASSERT_EQ(file.seen.size(), 2u);
    EXPECT_EQ(file.seen[0],
              std::make_pair(link_direction::TX, std::size_t{168}));
    EXPECT_EQ(file.seen[1],
              std::make_pair(link_direction::RX, std::size_t{168}));
}

TEST_F(link_mac_test, control) {
    expect_control(dut, b().replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    expect_control(dut, b().replies, ask(control_op::SET),
                   PRAWN_STATUS_BAD_OPCODE);
}

}  // namespace
}  // namespace test
}  // namespace prawn
