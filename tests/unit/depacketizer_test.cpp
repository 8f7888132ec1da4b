// SPDX-License-Identifier: Apache-2.0
#include "nic/depacketizer.h"

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
    depacketizer dut{"depacketizer", env};
    twin<packet_ref> late{"late", 21, ns(40), 3};
    sink<packet_ref> data{"data"}, nacks{"nacks"};
    sink<kernel_event_request> events{"events"};
    sink<refusal> refusals{"refusals"};
    sink<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.data_out.bind(data);
        dut.event_out.bind(events);
        dut.refusal_out.bind(refusals);
        dut.nack_out.bind(nacks);
        dut.control_out.bind(replies);
        late.out.bind(dut.packet_in());
    }
};

class depacketizer_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    depacketizer& dut = b().dut;
    sink<packet_ref>& data = b().data;
    sink<packet_ref>& nacks = b().nacks;
    sink<kernel_event_request>& events = b().events;
    sink<refusal>& refusals = b().refusals;

    void SetUp() override {
        dut.reset();
        dut.set_enabled(true);
        data.clear();
        nacks.clear();
        events.clear();
        refusals.clear();
        b().replies.clear();
        settle();
    }
    bool arrive(packet_ref p) { return put(dut.packet_in(), p); }
    void expect_nothing_passed() {
        EXPECT_EQ(data.size(), 0u);
        EXPECT_EQ(events.size(), 0u);
        EXPECT_EQ(nacks.size(), 0u);
    }
    static std::uint64_t counted(const char* name) {
        return count(b().counters, name);
    }
    static packet_ref nack(unsigned from) {
        packet_ref p = make_packet(from, 0, 0, PRAWN_PACKET_TYPE_NACK);
        p->head.status = PRAWN_STATUS_BAD_KEY;
        return p;
    }
};

TEST_F(depacketizer_test, by_type) {
    packet_ref message = make_packet(2, 0, 200, PRAWN_PACKET_TYPE_MGMT);
    message->head.source_epoch = 9;
    EXPECT_TRUE(arrive(make_packet(1, 0, 100)));
    EXPECT_TRUE(arrive(message));
    EXPECT_TRUE(arrive(nack(3)));
    EXPECT_TRUE(arrive(make_packet(0, 0, 100))) << "from the own node";
    ASSERT_EQ(data.size(), 2u);
    EXPECT_EQ(data[1]->head.source_node, 0);
    ASSERT_EQ(nacks.size(), 1u);
    EXPECT_EQ(nacks[0]->head.source_node, 3);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].type, PRAWN_EVENT_TYPE_MGMT);
    EXPECT_EQ(events[0].node, 2);
    EXPECT_EQ(events[0].epoch, 9);
    ASSERT_EQ(events[0].length, 200u);
    message.reset();
    EXPECT_EQ(events[0].data[199], static_cast<std::uint8_t>(199 * 7 + 1));
    EXPECT_EQ(refusals.size(), 0u);
}

// One change to a good packet, and it is refused BAD_PACKET.
struct nonsense {
    const char* what;
    void (*change)(header&);
};
const nonsense DATA_NONSENSE[] = {
    {"version 0", [](header& h) { h.version = 0; }},
    {"version 2", [](header& h) { h.version = 2; }},
    {"payload", [](header& h) { h.payload_length = PRAWN_MAX_PAYLOAD + 1; }},
    {"longest", [](header& h) { h.payload_length = 0xffff; }},
    {"reserved", [](header& h) { h.rsvd = 1; }},
    {"flag 4", [](header& h) { h.flags |= 16; }},
    {"flag 15", [](header& h) { h.flags |= 0x8000; }},
    {"context", [](header& h) { h.source_context = PRAWN_CONTEXTS; }},
    {"no context", [](header& h) { h.source_context = 0xffff; }},
    {"status", [](header& h) { h.status = PRAWN_STATUS_BAD_KEY; }},
    {"first in the middle",
     [](header& h) { h.offset = h.message_offset = 4096; }},
    {"not first at the start",
     [](header& h) { h.flags = PRAWN_PACKET_FLAG_LAST; }},
    {"nothing, first only",
     [](header& h) {
         h.payload_length = 0;
         h.flags = PRAWN_PACKET_FLAG_FIRST;
     }},
    {"nothing at the end",
     [](header& h) {
         h.payload_length = 0;
         h.offset = h.message_offset = 4096;
         h.flags = PRAWN_PACKET_FLAG_LAST;
     }},
    {"message too long",
     [](header& h) {
         h.flags = PRAWN_PACKET_FLAG_LAST;
         h.message_offset = PRAWN_MAX_MESSAGE - h.payload_length + 1;
         h.offset = h.message_offset;
     }},
    {"message offset wraps",
     [](header& h) {
         h.flags = PRAWN_PACKET_FLAG_LAST;
         h.message_offset = 0xffffffff;
         h.offset = h.message_offset;
     }},
    {"starts before the export",
     [](header& h) {
         h.flags = 0;
         h.message_offset = 4096;
         h.offset = 4095;
     }},
};
const nonsense MGMT_NONSENSE[] = {
    {"empty", [](header& h) { h.payload_length = 0; }},
    {"too long", [](header& h) { h.payload_length = PRAWN_MGMT_MAX + 1; }},
    {"flags", [](header& h) { h.flags = PRAWN_PACKET_FLAG_NOTIFY; }},
    {"status", [](header& h) { h.status = 1; }},
    {"version", [](header& h) { h.version = 3; }},
    {"reserved", [](header& h) { h.rsvd = 0x8000; }},
};
const nonsense NACK_NONSENSE[] = {
    {"payload", [](header& h) { h.payload_length = 1; }},
    {"no reason", [](header& h) { h.status = 0; }},
    {"version", [](header& h) { h.version = 0xff; }},
};

TEST_F(depacketizer_test, nonsense_in_data_is_refused) {
    for (const nonsense& n : DATA_NONSENSE) {
        SCOPED_TRACE(n.what);
        const auto before = counted("depacketizer.bad_packet");
        refusals.clear();
        packet_ref p = make_packet(1, 0, 100);
        n.change(p->head);
        EXPECT_TRUE(arrive(p));
        expect_nothing_passed();
        ASSERT_EQ(refusals.size(), 1u);
        EXPECT_EQ(refusals[0].node, 1);
        EXPECT_EQ(refusals[0].status, PRAWN_STATUS_BAD_PACKET);
        EXPECT_EQ(refusals[0].head.message, 1u);
        EXPECT_EQ(counted("depacketizer.bad_packet"), before + 1);
    }
}

TEST_F(depacketizer_test, nonsense_in_management_is_refused) {
    for (const nonsense& n : MGMT_NONSENSE) {
        SCOPED_TRACE(n.what);
        refusals.clear();
        packet_ref p = make_packet(1, 0, 100, PRAWN_PACKET_TYPE_MGMT);
        n.change(p->head);
        EXPECT_TRUE(arrive(p));
        expect_nothing_passed();
        ASSERT_EQ(refusals.size(), 1u);
        EXPECT_EQ(refusals[0].status, PRAWN_STATUS_BAD_PACKET);
    }
}

TEST_F(depacketizer_test, an_answer_is_never_answered) {
    for (const nonsense& n : NACK_NONSENSE) {
        SCOPED_TRACE(n.what);
        const auto before = counted("depacketizer.bad_packet");
        packet_ref p = nack(1);
        n.change(p->head);
        EXPECT_TRUE(arrive(p));
        expect_nothing_passed();
        EXPECT_EQ(refusals.size(), 0u);
        EXPECT_EQ(counted("depacketizer.bad_packet"), before + 1);
    }
}

TEST_F(depacketizer_test, types_that_do_not_belong_here) {
    for (unsigned type = 0; type < 256; type++) {
        if (type == PRAWN_PACKET_TYPE_DATA || type == PRAWN_PACKET_TYPE_MGMT ||
            type == PRAWN_PACKET_TYPE_NACK)
            continue;
        const auto before = counted("depacketizer.bad_type");
        EXPECT_TRUE(
            arrive(make_packet(1, 0, 0, static_cast<std::uint8_t>(type))));
        EXPECT_EQ(counted("depacketizer.bad_type"), before + 1) << type;
    }
    expect_nothing_passed();
    EXPECT_EQ(refusals.size(), 0u);
}

TEST_F(depacketizer_test, nodes) {
    const auto before = counted("depacketizer.bad_node");
    EXPECT_TRUE(arrive(make_packet(NODES, 0, 8)));
    EXPECT_TRUE(arrive(make_packet(0xffff, 0, 8)));
    EXPECT_TRUE(arrive(make_packet(1, 2, 8)));
    EXPECT_TRUE(arrive(make_packet(1, 0xffff, 8)));
    expect_nothing_passed();
    EXPECT_EQ(refusals.size(), 0u);
    EXPECT_EQ(counted("depacketizer.bad_node"), before + 4);
}

TEST_F(depacketizer_test, limits_are_inside) {
    packet_ref largest = make_packet(1, 0, PRAWN_MAX_PAYLOAD);
    packet_ref nothing = make_packet(1, 0, 0);
    packet_ref end = make_packet(1, 0, 1);
    end->head.flags = PRAWN_PACKET_FLAG_LAST;
    end->head.message_offset = PRAWN_MAX_MESSAGE - 1;
    end->head.offset = PRAWN_MAX_MESSAGE - 1;
    packet_ref notify_early = make_packet(1, 0, 8);
    notify_early->head.flags =
        PRAWN_PACKET_FLAG_FIRST | PRAWN_PACKET_FLAG_NOTIFY;
    for (const packet_ref& p : {largest, nothing, end, notify_early})
        EXPECT_TRUE(arrive(p));
    EXPECT_EQ(data.size(), 4u);
    EXPECT_TRUE(
        arrive(make_packet(1, 0, PRAWN_MGMT_MAX, PRAWN_PACKET_TYPE_MGMT)));
    EXPECT_EQ(events.size(), 1u);
}

TEST_F(depacketizer_test, no_host) {
    dut.set_enabled(false);
    EXPECT_TRUE(arrive(make_packet(1, 0, 8)));
    EXPECT_TRUE(arrive(make_packet(2, 0, 8, PRAWN_PACKET_TYPE_MGMT)));
    EXPECT_TRUE(arrive(nack(3)));
    expect_nothing_passed();
    ASSERT_EQ(refusals.size(), 2u);
    EXPECT_EQ(refusals[0].status, PRAWN_STATUS_NO_HOST);
    EXPECT_EQ(refusals[1].status, PRAWN_STATUS_NO_HOST);
    EXPECT_EQ(refusals[1].node, 2);
    dut.set_enabled(true);
    EXPECT_TRUE(arrive(make_packet(1, 0, 8)));
    EXPECT_EQ(data.size(), 1u);
    dut.reset();
    EXPECT_TRUE(arrive(make_packet(1, 0, 8)));
    EXPECT_EQ(data.size(), 1u) << "a reset card has no host";
}

TEST_F(depacketizer_test, back_pressure_of_data_only) {
    data.refuse = true;
    packet_ref p = make_packet(1, 0, 8);
    EXPECT_FALSE(dut.packet_in().try_put(p));
    EXPECT_TRUE(p);
    EXPECT_TRUE(arrive(make_packet(1, 0, 8, PRAWN_PACKET_TYPE_MGMT)));
    EXPECT_TRUE(arrive(nack(1)));
    EXPECT_EQ(&dut.packet_in().room(), &data.room());
    const auto before = counted("depacketizer.data_packets");
    data.release();
    EXPECT_TRUE(dut.packet_in().try_put(p));
    EXPECT_EQ(counted("depacketizer.data_packets"), before + 1);
}

TEST_F(depacketizer_test, twin_in_front) {
    unsigned sent = 0;
    for (unsigned i = 0; sent < 30 && i < 10000; i++) {
        if (put<packet_ref>(
                b().late,
                make_packet(1, 0, 8, PRAWN_PACKET_TYPE_DATA, sent + 1)))
            sent++;
        data.refuse = i % 5 == 0;
        run(5);
        if (data.refuse)
            data.release();
    }
    run(2000);
    ASSERT_EQ(data.size(), 30u);
    for (unsigned i = 0; i < 30; i++)
        EXPECT_EQ(data[i]->head.message, i + 1);
}

TEST_F(depacketizer_test, control) {
    expect_control(dut, b().replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    expect_control(dut, b().replies, ask(control_op::CLEAR),
                   PRAWN_STATUS_BAD_OPCODE);
}

}  // namespace
}  // namespace test
}  // namespace prawn
