// SPDX-License-Identifier: Apache-2.0
#include "nic/reliable.h"

#include <gtest/gtest.h>

#include "receive_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {
namespace {

constexpr unsigned NODES = 4;

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{0, NODES, &the_profile(), &counters, nullptr};
    reliable dut{"reliable", env};
    twin<packet_ref> refuser{"refuser", 11, ns(50), 2, 0};
    sink<packet_ref> link{"link"}, host{"host"}, hellos{"hellos"};
    sink<refusal> refusals{"refusals"};
    sink<peer_event> peers{"peers"};
    sink<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.link_out.bind(link);
        dut.host_out.bind(host);
        dut.refusal_out.bind(refusals);
        dut.peer_out.bind(peers);
        dut.hello_out.bind(hellos);
        dut.control_out.bind(replies);
        refuser.out.bind(dut.host_in());
    }
};

class reliable_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    reliable& dut = b().dut;
    sink<packet_ref>& link = b().link;
    sink<packet_ref>& host = b().host;
    sink<packet_ref>& hellos = b().hellos;
    sink<refusal>& refusals = b().refusals;
    sink<peer_event>& peers = b().peers;

    void SetUp() override {
        dut.reset();
        settle();
        clear();
        b().replies.clear();
        settle();
    }
    void clear() {
        link.clear();
        host.clear();
        hellos.clear();
        refusals.clear();
        peers.clear();
    }
    bool send(unsigned to, std::uint8_t type = PRAWN_PACKET_TYPE_DATA) {
        return put(dut.host_in(), make_packet(0, to, 8, type));
    }
    bool arrive(unsigned from, unsigned epoch, std::uint32_t sequence,
                std::uint8_t type = PRAWN_PACKET_TYPE_DATA,
                unsigned to_epoch = 0) {
        packet_ref p = make_packet(from, 0, 8, type, sequence);
        p->head.source_epoch = static_cast<std::uint16_t>(epoch);
        p->head.sequence = sequence;
        p->head.destination_epoch = static_cast<std::uint16_t>(to_epoch);
        return put(dut.link_in(), p);
    }
    void hello(unsigned from, unsigned epoch, unsigned immediate = 1) {
        packet_ref p = make_packet(from, 0, 0, PRAWN_PACKET_TYPE_HELLO);
        p->head.source_epoch = static_cast<std::uint16_t>(epoch);
        p->head.immediate = immediate;
        EXPECT_TRUE(put(dut.link_in(), p));
    }
    void bye(unsigned from, unsigned epoch) {
        EXPECT_TRUE(arrive(from, epoch, 0, PRAWN_PACKET_TYPE_BYE));
    }
    void expect_peer(std::size_t i, unsigned type, unsigned node,
                     unsigned epoch) {
        ASSERT_LT(i, peers.size());
        EXPECT_EQ(peers[i].type, type);
        EXPECT_EQ(peers[i].node, node);
        EXPECT_EQ(peers[i].epoch, epoch);
    }
    static std::uint64_t counted(const char* name) {
        return count(b().counters, name);
    }
};

TEST_F(reliable_test, stamps_for_each_peer) {
    const std::uint16_t epoch = dut.epoch();
    for (unsigned to : {1, 1, 2, 1})
        ASSERT_TRUE(send(to));
    const std::uint32_t want[] = {1, 2, 1, 3};
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(link[i]->head.sequence, want[i]);
        EXPECT_EQ(link[i]->head.source_epoch, epoch);
        EXPECT_EQ(link[i]->head.acknowledge, 0u);
    }
}

TEST_F(reliable_test, refused_packet_is_untouched_and_uses_no_number) {
    packet_ref p = make_packet(0, 1, 8);
    p->head.source_epoch = 0x5555;
    p->head.sequence = 0x66666666;
    p->head.acknowledge = 0x77777777;
    const header before = p->head;
    link.refuse = true;
    for (int i = 0; i < 3; i++)
        EXPECT_FALSE(dut.host_in().try_put(p));
    ASSERT_TRUE(p);
    EXPECT_EQ(std::memcmp(&p->head, &before, sizeof(before)), 0);
    link.release();
    EXPECT_TRUE(dut.host_in().try_put(p));
    EXPECT_EQ(link[0]->head.sequence, 1u);
    EXPECT_EQ(&dut.host_in().room(), &link.room());
    EXPECT_EQ(&dut.link_in().room(), &host.room());
}

TEST_F(reliable_test, one_refused_peer_does_not_concern_another) {
    link.refuse_if = [](const packet_ref& p) {
        return p->head.destination_node == 1;
    };
    EXPECT_FALSE(send(1));
    EXPECT_TRUE(send(2));
}

TEST_F(reliable_test, destination_that_does_not_exist_is_left_to_link_mac) {
    EXPECT_TRUE(send(NODES));
    EXPECT_TRUE(send(0xffff));
    EXPECT_EQ(link.size(), 2u);
}

TEST_F(reliable_test, acknowledges_what_came_in_order) {
    hello(1, 7);
    for (std::uint32_t s = 1; s <= 3; s++)
        EXPECT_TRUE(arrive(1, 7, s));
    send(1);
    send(2);
    EXPECT_EQ(link[0]->head.acknowledge, 3u);
    EXPECT_EQ(link[1]->head.acknowledge, 0u);
}

TEST_F(reliable_test, first_contact_is_peer_up) {
    hello(1, 7);
    expect_peer(0, PRAWN_EVENT_TYPE_PEER_UP, 1, 7);
    hello(1, 7);
    EXPECT_EQ(peers.size(), 1u) << "the same life is no news";
    EXPECT_TRUE(arrive(1, 7, 1));
    EXPECT_EQ(host.size(), 1u);
}

TEST_F(reliable_test, hello_is_answered_only_by_those_who_said_hello) {
    hello(1, 7, 0);
    settle();
    EXPECT_EQ(hellos.size(), 0u);
    dut.say_hello();
    settle();
    ASSERT_EQ(hellos.size(), NODES - 1);
    for (unsigned i = 0; i < NODES - 1; i++) {
        const header& h = hellos[i]->head;
        EXPECT_EQ(h.type, PRAWN_PACKET_TYPE_HELLO);
        EXPECT_EQ(h.version, PRAWN_PACKET_VERSION);
        EXPECT_EQ(h.source_node, 0);
        EXPECT_EQ(h.destination_node, i + 1);
        EXPECT_EQ(h.destination_epoch, 0);
        EXPECT_EQ(h.immediate, 0u);
        EXPECT_EQ(h.payload_length, 0);
    }
    hellos.clear();
    hello(2, 3, 0);
    settle();
    ASSERT_EQ(hellos.size(), 1u);
    EXPECT_EQ(hellos[0]->head.destination_node, 2);
    EXPECT_EQ(hellos[0]->head.immediate, 1u);
    hello(3, 3, 1);
    settle();
    EXPECT_EQ(hellos.size(), 1u) << "an answer is not answered";
}

TEST_F(reliable_test, hello_carries_zero_and_starts_the_numbers_again) {
    send(1);
    send(1);
    dut.say_hello();
    settle();
    for (auto& e : hellos.items)
        EXPECT_TRUE(put(dut.host_in(), e.item));
    send(1);
    EXPECT_EQ(link[2]->head.type, PRAWN_PACKET_TYPE_HELLO);
    EXPECT_EQ(link[2]->head.sequence, 0u);
    EXPECT_EQ(link[2]->head.source_epoch, dut.epoch());
    EXPECT_EQ(link[5]->head.sequence, 1u);
}

TEST_F(reliable_test, refused_hello_is_said_later) {
    hellos.refuse_if = [](const packet_ref& p) {
        return p->head.destination_node == 2;
    };
    dut.say_hello();
    settle();
    EXPECT_EQ(hellos.size(), NODES - 2);
    hellos.release();
    settle();
    ASSERT_EQ(hellos.size(), NODES - 1);
    EXPECT_EQ(hellos[2]->head.destination_node, 2);
    hellos.release();
    settle();
    EXPECT_EQ(hellos.size(), NODES - 1);
}

TEST_F(reliable_test, say_hello_reports_who_is_up_already) {
    hello(1, 7);
    peers.clear();
    dut.say_hello();
    settle();
    ASSERT_EQ(peers.size(), 1u);
    expect_peer(0, PRAWN_EVENT_TYPE_PEER_UP, 1, 7);
}

TEST_F(reliable_test, bye_ends_a_life) {
    hello(1, 7);
    bye(1, 7);
    expect_peer(1, PRAWN_EVENT_TYPE_PEER_DOWN, 1, 7);
    bye(1, 7);
    EXPECT_EQ(peers.size(), 2u);
    const auto before = counted("reliable.strangers");
    EXPECT_TRUE(arrive(1, 7, 1));
    EXPECT_EQ(host.size(), 0u);
    EXPECT_EQ(counted("reliable.strangers"), before + 1);
    hello(1, 7);
    expect_peer(2, PRAWN_EVENT_TYPE_PEER_UP, 1, 7);
}

TEST_F(reliable_test, bye_of_a_later_life_counts_of_an_earlier_not) {
    hello(1, 7);
    bye(1, 6);
    EXPECT_EQ(peers.size(), 1u);
    bye(1, 8);
    expect_peer(1, PRAWN_EVENT_TYPE_PEER_DOWN, 1, 7);
    hello(1, 7);
    EXPECT_EQ(peers.size(), 2u) << "that life is over";
    hello(1, 8);
    expect_peer(2, PRAWN_EVENT_TYPE_PEER_UP, 1, 8);
}

TEST_F(reliable_test, say_bye_tells_everybody_and_comes_before_hello) {
    dut.say_hello();
    dut.say_bye();
    dut.say_hello();
    settle();
    ASSERT_EQ(hellos.size(), 2 * (NODES - 1));
    for (unsigned i = 0; i < NODES - 1; i++) {
        EXPECT_EQ(hellos[2 * i]->head.type, PRAWN_PACKET_TYPE_BYE);
        EXPECT_EQ(hellos[2 * i + 1]->head.type, PRAWN_PACKET_TYPE_HELLO);
    }
}

TEST_F(reliable_test, a_new_life_is_peer_up_and_restarts_numbers) {
    hello(1, 7);
    for (std::uint32_t s = 1; s <= 5; s++)
        arrive(1, 7, s);
    hello(1, 8);
    expect_peer(1, PRAWN_EVENT_TYPE_PEER_UP, 1, 8);
    EXPECT_TRUE(arrive(1, 8, 1));
    EXPECT_EQ(host.size(), 6u);
    EXPECT_TRUE(arrive(1, 7, 6)) << "late packet of the old life";
    EXPECT_EQ(host.size(), 6u);
    EXPECT_EQ(peers.size(), 2u);
}

TEST_F(reliable_test, later_life_without_hello_proves_the_old_one_ended) {
    hello(1, 7);
    EXPECT_TRUE(arrive(1, 9, 1, PRAWN_PACKET_TYPE_MGMT));
    EXPECT_EQ(host.size(), 0u);
    expect_peer(1, PRAWN_EVENT_TYPE_PEER_DOWN, 1, 7);
    hello(1, 9);
    expect_peer(2, PRAWN_EVENT_TYPE_PEER_UP, 1, 9);
}

TEST_F(reliable_test, earlier_and_later_hold_across_the_wrap) {
    hello(1, 65535);
    hello(1, 1);
    expect_peer(1, PRAWN_EVENT_TYPE_PEER_UP, 1, 1);
    hello(1, 65535);
    EXPECT_EQ(peers.size(), 2u);
}

TEST_F(reliable_test, hello_that_makes_no_sense) {
    hello(1, 0);
    hello(0, dut.epoch());
    EXPECT_EQ(peers.size(), 0u);
    bye(0, dut.epoch());
    EXPECT_EQ(peers.size(), 0u);
}

TEST_F(reliable_test, duplicates_are_dropped) {
    hello(1, 7);
    const auto before = counted("reliable.duplicates");
    arrive(1, 7, 1);
    arrive(1, 7, 2);
    arrive(1, 7, 1);
    arrive(1, 7, 2);
    EXPECT_EQ(host.size(), 2u);
    EXPECT_EQ(counted("reliable.duplicates"), before + 2);
    EXPECT_EQ(refusals.size(), 0u);
}

TEST_F(reliable_test, gap_is_counted_once_and_delivered) {
    hello(1, 7);
    const auto gaps = counted("reliable.gaps");
    const auto lost = counted("reliable.lost");
    arrive(1, 7, 1);
    host.refuse = true;
    for (int i = 0; i < 5; i++)
        EXPECT_FALSE(arrive(1, 7, 5));
    EXPECT_EQ(counted("reliable.gaps"), gaps) << "not before it was taken";
    host.release();
    EXPECT_TRUE(arrive(1, 7, 5));
    EXPECT_TRUE(arrive(1, 7, 6));
    EXPECT_EQ(host.size(), 3u);
    EXPECT_EQ(counted("reliable.gaps"), gaps + 1);
    EXPECT_EQ(counted("reliable.lost"), lost + 3);
}

TEST_F(reliable_test, numbers_wrap) {
    hello(1, 7);
    arrive(1, 7, 0x7fffffff);
    arrive(1, 7, 0xfffffffe);
    const auto gaps = counted("reliable.gaps");
    for (std::uint32_t s : {0xffffffffU, 0U, 1U})
        EXPECT_TRUE(arrive(1, 7, s));
    EXPECT_EQ(counted("reliable.gaps"), gaps);
    EXPECT_EQ(host.size(), 5u);
}

TEST_F(reliable_test, data_to_an_earlier_life_is_refused) {
    hello(1, 7);
    const std::uint16_t old = dut.epoch();
    dut.reset();
    EXPECT_EQ(dut.epoch(), old + 1);
    hello(1, 7);
    const auto gaps = counted("reliable.gaps");
    EXPECT_TRUE(arrive(1, 7, 1, PRAWN_PACKET_TYPE_DATA, old));
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals[0].node, 1);
    EXPECT_EQ(refusals[0].status, PRAWN_STATUS_STALE_EPOCH);
    EXPECT_EQ(refusals[0].head.message, 1u);
    EXPECT_TRUE(arrive(1, 7, 2, PRAWN_PACKET_TYPE_MGMT, old));
    EXPECT_TRUE(arrive(1, 7, 3, PRAWN_PACKET_TYPE_NACK, old));
    EXPECT_EQ(refusals.size(), 1u);
    EXPECT_EQ(host.size(), 0u);
    EXPECT_TRUE(arrive(1, 7, 4, PRAWN_PACKET_TYPE_DATA, dut.epoch()));
    EXPECT_EQ(host.size(), 1u);
    EXPECT_EQ(counted("reliable.gaps"), gaps) << "refused ones were counted";
}

TEST_F(reliable_test, stale_data_of_a_stranger_is_refused_too) {
    EXPECT_TRUE(arrive(1, 7, 9, PRAWN_PACKET_TYPE_DATA, dut.epoch() - 1u));
    EXPECT_EQ(refusals.size(), 1u);
}

TEST_F(reliable_test, strangers_are_dropped) {
    const auto before = counted("reliable.strangers");
    EXPECT_TRUE(arrive(1, 7, 1));
    EXPECT_TRUE(arrive(1, 7, 1, PRAWN_PACKET_TYPE_MGMT));
    EXPECT_EQ(host.size(), 0u);
    EXPECT_EQ(counted("reliable.strangers"), before + 2);
}

TEST_F(reliable_test, acknowledgements_end_here) {
    hello(1, 7);
    EXPECT_TRUE(arrive(1, 7, 0, PRAWN_PACKET_TYPE_ACK));
    EXPECT_EQ(host.size(), 0u);
    EXPECT_TRUE(arrive(1, 7, 1));
    EXPECT_EQ(host.size(), 1u);
}

TEST_F(reliable_test, nonsense_is_left_to_the_depacketizer) {
    packet_ref version = make_packet(1, 0, 8, PRAWN_PACKET_TYPE_HELLO);
    version->head.version = 9;
    packet_ref node = make_packet(NODES, 0, 8, PRAWN_PACKET_TYPE_HELLO);
    packet_ref other = make_packet(1, 2, 8, PRAWN_PACKET_TYPE_HELLO);
    for (const packet_ref& p : {version, node, other})
        EXPECT_TRUE(put(dut.link_in(), p));
    EXPECT_EQ(host.size(), 3u);
    EXPECT_EQ(peers.size(), 0u);
}

TEST_F(reliable_test, own_node_needs_no_hello) {
    ASSERT_TRUE(send(0));
    ASSERT_TRUE(send(0));
    for (auto& e : link.items)
        EXPECT_TRUE(put(dut.link_in(), e.item));
    EXPECT_EQ(host.size(), 2u);
    EXPECT_EQ(peers.size(), 0u);
    ASSERT_TRUE(send(0));
    packet_ref late = link[2];
    dut.reset();
    EXPECT_TRUE(put(dut.link_in(), late));
    EXPECT_EQ(host.size(), 2u) << "of the life before the reset";
    EXPECT_EQ(peers.size(), 0u);
    EXPECT_TRUE(arrive(0, dut.epoch() + 1u, 1)) << "a lie";
    EXPECT_EQ(peers.size(), 0u);
    ASSERT_TRUE(send(0));
    EXPECT_TRUE(put(dut.link_in(), link[3]));
    EXPECT_EQ(host.size(), 3u);
}

TEST_F(reliable_test, reset_forgets_what_was_to_be_said) {
    dut.say_hello();
    dut.reset();
    settle();
    EXPECT_EQ(hellos.size(), 0u);
}

TEST_F(reliable_test, epoch_is_never_zero) {
    for (unsigned i = 0; i < 65535; i++) {
        dut.reset();
        ASSERT_NE(dut.epoch(), 0);
    }
}

TEST_F(reliable_test, twin_in_front_keeps_the_numbers) {
    std::uint32_t sent = 0;
    for (unsigned i = 0; sent < 50 && i < 10000; i++) {
        if (put<packet_ref>(b().refuser, make_packet(0, 1, 8)))
            sent++;
        run(1);
    }
    for (std::uint32_t i = 0; i < 50; i++)
        EXPECT_EQ(link[i]->head.sequence, i + 1);
}

TEST_F(reliable_test, control) {
    expect_control(dut, b().replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    expect_control(dut, b().replies, ask(control_op::PEER_ERROR),
                   PRAWN_STATUS_BAD_OPCODE);
}

}  // namespace
}  // namespace test
}  // namespace prawn
