// SPDX-License-Identifier: Apache-2.0
#include "nic/ipt.h"

#include <gtest/gtest.h>

#include "receive_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {
namespace {

// Look-up: 3 cycles of 10 ns and an SRAM access of 5 ns.
constexpr double LATENCY = 35;
constexpr std::uint64_t KEY = 0xfeedfacecafebeef;
constexpr std::uint64_t VA = 0x7f0000001234;
constexpr std::uint64_t LENGTH = 10000;
constexpr std::uint32_t EXPORT = 5;

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{0, 4, &the_profile(), &counters, nullptr};
    ipt dut{"ipt", env};
    twin<packet_ref> late{"late", 31, ns(60), 3};
    sink<delivery> deliveries{"deliveries"};
    sink<refusal> refusals{"refusals"};
    sink<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.delivery_out.bind(deliveries);
        dut.refusal_out.bind(refusals);
        dut.control_out.bind(replies);
        late.out.bind(dut.packet_in());
    }
};

class ipt_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    ipt& dut = b().dut;
    sink<delivery>& deliveries = b().deliveries;
    sink<refusal>& refusals = b().refusals;
    sink<control_reply>& replies = b().replies;

    void SetUp() override {
        dut.reset();
        deliveries.clear();
        run(200);
        deliveries.clear();
        refusals.clear();
        replies.clear();
        settle();
        set(EXPORT);
    }
    static control_request entry(std::uint32_t index) {
        control_request r = ask(control_op::SET, 1, 9, index);
        r.a = VA;
        r.b = KEY;
        r.c = LENGTH;
        r.d = 0xc00c1e;
        r.life = 12;
        r.e = PRAWN_IPT_FLAG_NOTIFY;
        return r;
    }
    void set(std::uint32_t index) {
        expect_control(dut, replies, entry(index), PRAWN_STATUS_OK);
    }
    static packet_ref packet_at(std::uint64_t offset, unsigned bytes) {
        packet_ref p = make_packet(1, 0, bytes);
        p->head.export_id = EXPORT;
        p->head.key = KEY;
        p->head.offset = offset;
        return p;
    }
    bool arrive(const packet_ref& p) { return put(dut.packet_in(), p); }
    void expect_refused(const packet_ref& p, std::uint16_t status) {
        deliveries.clear();
        refusals.clear();
        ASSERT_TRUE(arrive(p));
        run(LATENCY);
        EXPECT_EQ(deliveries.size(), 0u);
        ASSERT_EQ(refusals.size(), 1u);
        EXPECT_EQ(refusals[0].status, status);
        EXPECT_EQ(refusals[0].node, p->head.source_node);
        EXPECT_EQ(refusals[0].head.offset, p->head.offset);
    }
    void expect_delivered(const packet_ref& p) {
        deliveries.clear();
        refusals.clear();
        ASSERT_TRUE(arrive(p));
        run(LATENCY);
        EXPECT_EQ(deliveries.size(), 1u);
        EXPECT_EQ(refusals.size(), 0u);
    }
};

TEST_F(ipt_test, delivery_and_its_time) {
    const sc_time start = sc_time_stamp();
    packet_ref p = packet_at(100, 50);
    p->head.flags |= PRAWN_PACKET_FLAG_NOTIFY;
    ASSERT_TRUE(arrive(p));
    run(100);
    ASSERT_EQ(deliveries.size(), 1u);
    EXPECT_EQ(deliveries.when(0) - start, ns(LATENCY));
    const delivery& d = deliveries[0];
    EXPECT_EQ(d.pkt.get(), p.get());
    EXPECT_EQ(d.context, 9);
    EXPECT_EQ(d.life, 12u);
    EXPECT_EQ(d.va, VA + 100);
    EXPECT_EQ(d.cookie, 0xc00c1eu);
    EXPECT_TRUE(d.notify);
}

TEST_F(ipt_test, one_packet_a_cycle) {
    const sc_time start = sc_time_stamp();
    for (unsigned i = 0; i < 4; i++)
        ASSERT_TRUE(arrive(packet_at(0, 8)));
    EXPECT_FALSE(arrive(packet_at(0, 8))) << "the pipeline is full";
    run(100);
    ASSERT_EQ(deliveries.size(), 4u);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(deliveries.when(i) - start, ns(LATENCY + 10 * i));
}

TEST_F(ipt_test, export_must_be_valid) {
    packet_ref p = packet_at(0, 8);
    p->head.export_id = EXPORT + 1;
    expect_refused(p, PRAWN_STATUS_BAD_EXPORT);
    p->head.export_id = PRAWN_IPT_ENTRIES;
    expect_refused(p, PRAWN_STATUS_BAD_EXPORT);
    p->head.export_id = 0xffffffff;
    expect_refused(p, PRAWN_STATUS_BAD_EXPORT);
}

TEST_F(ipt_test, every_bit_of_the_key_counts) {
    for (unsigned bit = 0; bit < 64; bit++) {
        packet_ref p = packet_at(0, 8);
        p->head.key ^= std::uint64_t{1} << bit;
        expect_refused(p, PRAWN_STATUS_BAD_KEY);
    }
}

TEST_F(ipt_test, range) {
    expect_delivered(packet_at(0, 4096));
    expect_delivered(packet_at(LENGTH - 8, 8));
    expect_delivered(packet_at(LENGTH, 0));
    expect_refused(packet_at(LENGTH - 8, 9), PRAWN_STATUS_EXPORT_RANGE);
    expect_refused(packet_at(LENGTH, 1), PRAWN_STATUS_EXPORT_RANGE);
    expect_refused(packet_at(LENGTH + 1, 0), PRAWN_STATUS_EXPORT_RANGE);
    expect_refused(packet_at(~0ull, 1), PRAWN_STATUS_EXPORT_RANGE);
    expect_refused(packet_at(~0ull - 7, 8), PRAWN_STATUS_EXPORT_RANGE);
    expect_refused(packet_at(1ull << 63, 8), PRAWN_STATUS_EXPORT_RANGE);
}

TEST_F(ipt_test, notification_takes_both_flags_and_the_last_packet) {
    struct {
        unsigned flags;
        bool wanted, expected;
    } const cases[] = {
        {PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY, true, true},
        {PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY, false, false},
        {PRAWN_PACKET_FLAG_LAST, true, false},
        {PRAWN_PACKET_FLAG_NOTIFY, true, false},
    };
    for (const auto& c : cases) {
        control_request r = entry(EXPORT);
        r.e = c.wanted ? PRAWN_IPT_FLAG_NOTIFY : 0;
        expect_control(dut, replies, r, PRAWN_STATUS_OK);
        packet_ref p = packet_at(0, 8);
        p->head.flags =
            static_cast<std::uint16_t>(c.flags | PRAWN_PACKET_FLAG_FIRST);
        expect_delivered(p);
        EXPECT_EQ(deliveries[0].notify, c.expected);
    }
}

TEST_F(ipt_test, no_notification_after_a_refusal_in_the_message) {
    packet_ref first = packet_at(0, 8);
    first->head.flags = PRAWN_PACKET_FLAG_FIRST;
    first->head.key = 0;
    packet_ref last = packet_at(8, 8);
    last->head.flags = PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY;
    expect_refused(first, PRAWN_STATUS_BAD_KEY);
    expect_delivered(last);
    EXPECT_FALSE(deliveries[0].notify);
    packet_ref other = packet_at(0, 8);
    other->head.source_context = 4;
    other->head.flags |= PRAWN_PACKET_FLAG_NOTIFY;
    expect_delivered(other);
    EXPECT_TRUE(deliveries[0].notify) << "another context's message";
    packet_ref again = packet_at(0, 8);
    again->head.flags |= PRAWN_PACKET_FLAG_NOTIFY;
    expect_delivered(again);
    EXPECT_TRUE(deliveries[0].notify) << "a new message of the same number";
}

TEST_F(ipt_test, a_message_with_a_hole_is_refused_there_and_never_told_of) {
    const auto piece = [](unsigned at, unsigned flags, unsigned message = 1,
                          unsigned context = 3, unsigned epoch = 1) {
        packet_ref p = packet_at(at, 8);
        p->head.message_offset = at;
        p->head.flags = static_cast<std::uint16_t>(flags);
        p->head.message = message;
        p->head.source_context = static_cast<std::uint16_t>(context);
        p->head.source_epoch = static_cast<std::uint16_t>(epoch);
        return p;
    };
    constexpr unsigned FIRST = PRAWN_PACKET_FLAG_FIRST;
    constexpr unsigned END = PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY;
    const auto holes = count(b().counters, "ipt.holes");
    // Nothing is missing; another context in between does not matter.
    expect_delivered(piece(0, FIRST));
    expect_delivered(piece(0, FIRST, 1, 4));
    expect_delivered(piece(8, 0));
    expect_delivered(piece(16, END));
    EXPECT_TRUE(deliveries[0].notify);
    // The middle.
    expect_delivered(piece(0, FIRST, 2));
    expect_refused(piece(16, 0, 2), PRAWN_STATUS_UNKNOWN_OUTCOME);
    expect_delivered(piece(24, END, 2));  // one refusal is enough
    EXPECT_FALSE(deliveries[0].notify);
    // The middle, and the end comes next.
    expect_delivered(piece(0, FIRST, 3));
    expect_refused(piece(16, END, 3), PRAWN_STATUS_UNKNOWN_OUTCOME);
    // The beginning, of the first message here and of a later one.
    expect_refused(piece(8, END, 1, 5), PRAWN_STATUS_UNKNOWN_OUTCOME);
    expect_refused(piece(8, END, 4), PRAWN_STATUS_UNKNOWN_OUTCOME);
    // What one life of the node began another does not end.
    expect_delivered(piece(0, FIRST, 5));
    expect_refused(piece(8, END, 5, 3, 2), PRAWN_STATUS_UNKNOWN_OUTCOME);
    EXPECT_EQ(count(b().counters, "ipt.holes"), holes + 5);
    // The end is missing: the next message is none the worse for it.
    expect_delivered(piece(0, FIRST, 6));
    expect_delivered(piece(0, FIRST | END, 7));
    EXPECT_TRUE(deliveries[0].notify);
}

// Back-pressure makes ipt look at a packet again and again.
TEST_F(ipt_test, a_message_stays_whole_when_it_has_to_wait) {
    deliveries.refuse = true;
    for (unsigned i = 0; i < 3; i++) {
        packet_ref p = packet_at(i * 8, 8);
        p->head.message_offset = i * 8;
        p->head.flags = static_cast<std::uint16_t>(
            i == 0   ? PRAWN_PACKET_FLAG_FIRST
            : i == 2 ? PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY
                     : 0);
        ASSERT_TRUE(arrive(p));
        run(100);
    }
    for (unsigned i = 0; i < 5; i++) {
        deliveries.release();
        deliveries.refuse = i % 2 == 0;
        run(100);
    }
    deliveries.release();
    run(100);
    ASSERT_EQ(deliveries.size(), 3u);
    EXPECT_TRUE(deliveries[2].notify);
    EXPECT_EQ(refusals.size(), 0u);
}

TEST_F(ipt_test, set_checks_its_fields) {
    const auto refused = [&](std::uint16_t status, auto change) {
        control_request r = entry(EXPORT);
        change(r);
        expect_control(dut, replies, r, status);
    };
    refused(PRAWN_STATUS_BAD_FIELD,
            [](auto& r) { r.index = PRAWN_IPT_ENTRIES; });
    refused(PRAWN_STATUS_BAD_FIELD, [](auto& r) { r.e = 2; });
    refused(PRAWN_STATUS_BAD_FIELD, [](auto& r) { r.e = 1ull << 63; });
    refused(PRAWN_STATUS_BAD_CONTEXT,
            [](auto& r) { r.context = PRAWN_CONTEXTS; });
    refused(PRAWN_STATUS_BAD_LENGTH, [](auto& r) { r.c = ~0ull; });
    refused(PRAWN_STATUS_BAD_LENGTH, [](auto& r) { r.a = ~0ull; });
    refused(PRAWN_STATUS_BAD_LENGTH, [](auto& r) {
        r.a = (1ull << PRAWN_VA_BITS) - 10;
        r.c = 11;
    });
    refused(PRAWN_STATUS_OK, [](auto& r) {
        r.a = (1ull << PRAWN_VA_BITS) - 10;
        r.c = 10;
    });
}

TEST_F(ipt_test, clear) {
    expect_control(dut, replies, ask(control_op::CLEAR, 3, 0, EXPORT),
                   PRAWN_STATUS_OK);
    expect_refused(packet_at(0, 8), PRAWN_STATUS_BAD_EXPORT);
    expect_control(dut, replies,
                   ask(control_op::CLEAR, 3, 0, PRAWN_IPT_ENTRIES),
                   PRAWN_STATUS_BAD_FIELD);
}

TEST_F(ipt_test, clear_stops_what_waits_here) {
    deliveries.refuse = true;
    ASSERT_TRUE(arrive(packet_at(0, 8)));
    ASSERT_TRUE(arrive(packet_at(8, 8)));
    run(100);
    EXPECT_GT(deliveries.refusals, 0u);
    expect_control(dut, replies, ask(control_op::CLEAR, 3, 0, EXPORT),
                   PRAWN_STATUS_OK);
    deliveries.release();
    settle();
    EXPECT_EQ(deliveries.size(), 0u);
    EXPECT_EQ(refusals.size(), 2u);
}

TEST_F(ipt_test, context_disable_drops_its_entries_only) {
    control_request other = entry(EXPORT + 1);
    other.context = 10;
    expect_control(dut, replies, other, PRAWN_STATUS_OK);
    expect_control(dut, replies, ask(control_op::CONTEXT_DISABLE, 3, 9),
                   PRAWN_STATUS_OK);
    expect_refused(packet_at(0, 8), PRAWN_STATUS_BAD_EXPORT);
    packet_ref p = packet_at(0, 8);
    p->head.export_id = EXPORT + 1;
    expect_delivered(p);
}

TEST_F(ipt_test, back_pressure_and_room) {
    deliveries.refuse = true;
    unsigned taken = 0;
    while (arrive(packet_at(taken, 8)))
        taken++;
    run(1000);
    EXPECT_FALSE(arrive(packet_at(0, 8)));
    deliveries.release();
    settle();
    EXPECT_EQ(deliveries.size(), taken);
    for (unsigned i = 0; i < taken; i++)
        EXPECT_EQ(deliveries[i].va, VA + i);
    EXPECT_TRUE(arrive(packet_at(0, 8)));
}

TEST_F(ipt_test, reset_at_any_instant) {
    for (unsigned at = 0; at <= 40; at += 5) {
        deliveries.clear();
        set(EXPORT);
        ASSERT_TRUE(arrive(packet_at(0, 8)));
        ASSERT_TRUE(arrive(packet_at(0, 8)));
        sc_core::sc_start(ns(at));
        const std::size_t before = deliveries.size();
        dut.reset();
        run(200);
        EXPECT_EQ(deliveries.size(), before);
        EXPECT_EQ(refusals.size(), 0u);
        expect_refused(packet_at(0, 8), PRAWN_STATUS_BAD_EXPORT);
        refusals.clear();
    }
}

TEST_F(ipt_test, twin_in_front) {
    unsigned sent = 0;
    for (unsigned i = 0; sent < 50 && i < 10000; i++) {
        if (put<packet_ref>(b().late, packet_at(sent, 8)))
            sent++;
        run(3);
    }
    run(5000);
    ASSERT_EQ(deliveries.size(), 50u);
    for (unsigned i = 0; i < 50; i++)
        EXPECT_EQ(deliveries[i].va, VA + i);
}

TEST_F(ipt_test, control) {
    expect_control(dut, replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    expect_control(dut, replies, ask(control_op::FILL),
                   PRAWN_STATUS_BAD_OPCODE);
}

}  // namespace
}  // namespace test
}  // namespace prawn
