// SPDX-License-Identifier: Apache-2.0
#include "nic/admin_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "control_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t RING = 0x1000, MESSAGE = 0x8000;
constexpr unsigned LOG2 = 4;
constexpr unsigned SIZE = 1u << LOG2;

struct fake_checker : sc_core::sc_object, grant_if {
    std::vector<std::uint64_t> calls;
    explicit fake_checker(const char* name) : sc_core::sc_object(name) {}
    std::uint16_t grant(std::uint16_t context, std::uint64_t address,
                        std::uint64_t pages, bool write) override {
        calls.insert(calls.end(), {context, address, pages, write});
        return PRAWN_STATUS_OK;
    }
    std::uint16_t revoke(std::uint16_t context, std::uint64_t address,
                         std::uint64_t pages) override {
        calls.insert(calls.end(), {context, address, pages});
        return PRAWN_STATUS_OK;
    }
};

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{1, 4, &the_profile(), &counters, nullptr};
    admin_queue dut{"admin_queue", env};
    fake_dma dma{"dma"};
    fake_checker checker{"checker"};
    std::vector<std::unique_ptr<recorder<control_request>>> targets;
    recorder<ack_request> acks{"acks"};
    recorder<packet_ref> mgmt{"mgmt"};
    recorder<kernel_event_request> events{"events"};
    recorder<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dma.reply = &dut.dma_reply_in();
        dut.dma_out.bind(dma);
        dut.ack_out.bind(acks);
        dut.mgmt_out.bind(mgmt);
        dut.event_out.bind(events);
        dut.control_out.bind(replies);
        dut.grant_out.bind(checker);
        for (unsigned t = 0; t < CONTROL_TARGETS; t++) {
            targets.push_back(std::make_unique<recorder<control_request>>(
                ("target" + std::to_string(t)).c_str()));
            dut.request_out[t].bind(*targets.back());
        }
    }
};

class admin_queue_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    admin_queue& dut = b().dut;
    fake_dma& dma = b().dma;
    std::uint32_t producer = 0;

    void SetUp() override {
        dut.reset();
        dma.release();
        run(100);
        dma.clear();
        for (auto& t : b().targets)
            t->items.clear();
        b().acks.items.clear();
        b().mgmt.items.clear();
        b().mgmt.refuse = false;
        b().events.items.clear();
        b().checker.calls.clear();
        dut.set_ring(RING, LOG2);
    }
    static prawn_admin_command command(unsigned opcode,
                                       std::uint16_t context = 0,
                                       std::uint32_t index = 0) {
        prawn_admin_command c{};
        c.opcode = static_cast<std::uint8_t>(opcode);
        c.context = context;
        c.index = index;
        return c;
    }
    static prawn_admin_command enable_command(std::uint16_t context) {
        auto c = command(PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE, context, 1);
        c.a = 0x10000;
        c.b = 0x20000;
        c.c = 0x30000;
        c.d = 0x40000;
        c.e = 6 | 5 << 8;
        return c;
    }
    static prawn_admin_command opt_command(std::uint16_t context) {
        auto c = command(PRAWN_ADMIN_OPCODE_OPT_SET, context, 7);
        c.a = 2 | 5u << 16 | 9ull << 32;
        c.b = 0x1234;
        c.c = 0x4000;
        c.d = 99;
        return c;
    }
    static prawn_admin_command ipt_command(std::uint16_t context) {
        auto c = command(PRAWN_ADMIN_OPCODE_IPT_SET, context, 7);
        c.a = 0x7f0000000123;
        c.c = 0x4000;
        c.e = PRAWN_IPT_FLAG_NOTIFY;
        return c;
    }
    void post(const prawn_admin_command& c) {
        dma.store(RING + (producer % SIZE) * sizeof(c), c);
        producer++;
    }
    void ring() {
        dut.ring_doorbell(producer);
        run();
    }
    recorder<control_request>& at(unsigned target) {
        return *b().targets[target];
    }
    // Answers everything that waits at one block.
    std::vector<control_op> answer(unsigned target, std::uint16_t status = 0) {
        std::vector<control_op> ops;
        for (std::size_t n = at(target).items.size(); n > 0; n--) {
            const control_request r = at(target).take();
            ops.push_back(r.op);
            put(dut.reply_in(target), control_reply{r.tag, status, 0});
        }
        run();
        return ops;
    }
    // Answers everything everywhere until nothing is asked any more.
    void answer_all() {
        for (bool any = true; any;) {
            any = false;
            for (unsigned t = 0; t < CONTROL_TARGETS; t++)
                any |= !answer(t).empty();
        }
    }
    std::uint16_t status_of(const prawn_admin_command& c) {
        post(c);
        ring();
        answer_all();
        EXPECT_EQ(b().acks.items.size(), 1u);
        if (b().acks.items.empty())
            return 0xffff;
        const ack_request ack = b().acks.take();
        EXPECT_EQ(ack.index, producer - 1);
        return ack.status;
    }
    void enable(std::uint16_t context) {
        ASSERT_EQ(status_of(enable_command(context)), PRAWN_STATUS_OK);
    }
};

TEST_F(admin_queue_test, acknowledges_with_index_and_interrupt_flag) {
    auto c = command(PRAWN_ADMIN_OPCODE_NOP);
    post(c);
    c.flags = PRAWN_ADMIN_FLAG_INTERRUPT;
    post(c);
    ring();
    ASSERT_EQ(b().acks.items.size(), 2u);
    EXPECT_EQ(b().acks.items[0].index, 0u);
    EXPECT_FALSE(b().acks.items[0].interrupt);
    EXPECT_EQ(b().acks.items[1].index, 1u);
    EXPECT_TRUE(b().acks.items[1].interrupt);
    EXPECT_EQ(dma.seen[0].context, KERNEL_CONTEXT);
}

TEST_F(admin_queue_test, follows_the_ring_round) {
    for (unsigned lap = 0; lap < 5; lap++) {
        for (unsigned i = 0; i < 13; i++)
            post(command(PRAWN_ADMIN_OPCODE_NOP));
        ring();
    }
    EXPECT_EQ(b().acks.items.size(), 65u);
    EXPECT_EQ(b().acks.items.back().index, 64u);
}

TEST_F(admin_queue_test, enable_goes_to_utlb_notifier_command_queue) {
    post(enable_command(3));
    ring();
    for (unsigned target :
         {CONTROL_UTLB, CONTROL_NOTIFIER, CONTROL_COMMAND_QUEUE}) {
        for (unsigned t = 0; t < CONTROL_TARGETS; t++)
            EXPECT_EQ(at(t).items.size(), t == target ? 1u : 0u);
        const control_request& r = at(target).items[0];
        EXPECT_EQ(r.context, 3u);
        EXPECT_EQ(r.index, 1u);
        EXPECT_EQ(r.d, 0x40000u);
        EXPECT_EQ(r.life, 1u);
        EXPECT_TRUE(b().acks.items.empty());
        answer(target);
    }
    ASSERT_EQ(b().acks.items.size(), 1u);
    EXPECT_EQ(b().acks.items[0].status, PRAWN_STATUS_OK);
}

TEST_F(admin_queue_test, enable_that_fails_is_undone) {
    post(enable_command(3));
    ring();
    answer(CONTROL_UTLB);
    answer(CONTROL_NOTIFIER, PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(at(CONTROL_COMMAND_QUEUE).items[0].op,
              control_op::CONTEXT_DISABLE);
    answer_all();
    ASSERT_EQ(b().acks.items.size(), 1u);
    EXPECT_EQ(b().acks.take().status, PRAWN_STATUS_BAD_FIELD);
    enable(3);
}

TEST_F(admin_queue_test, disable_stops_along_the_path) {
    enable(3);
    post(command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, 3));
    ring();
    for (unsigned target :
         {CONTROL_COMMAND_QUEUE, CONTROL_PACKETIZER, CONTROL_OPT, CONTROL_IPT,
          CONTROL_INCOMING_DMA, CONTROL_UTLB, CONTROL_NOTIFIER}) {
        EXPECT_TRUE(b().acks.items.empty());
        for (unsigned t = 0; t < CONTROL_TARGETS; t++)
            ASSERT_EQ(at(t).items.size(), t == target ? 1u : 0u) << target;
        EXPECT_EQ(answer(target)[0], control_op::CONTEXT_DISABLE);
    }
    EXPECT_EQ(b().acks.items.size(), 1u);
}

TEST_F(admin_queue_test, every_enable_begins_another_life) {
    const auto life_in = [&](const prawn_admin_command& c, unsigned target) {
        post(c);
        ring();
        const std::uint32_t life = at(target).items.at(0).life;
        answer_all();
        return life;
    };
    for (std::uint32_t life = 1; life < 4; life++) {
        EXPECT_EQ(life_in(enable_command(3), CONTROL_UTLB), life);
        EXPECT_EQ(life_in(ipt_command(3), CONTROL_IPT), life);
        EXPECT_EQ(life_in(opt_command(3), CONTROL_OPT), life);
        EXPECT_EQ(life_in(command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, 3),
                          CONTROL_COMMAND_QUEUE),
                  life);
    }
    EXPECT_EQ(life_in(enable_command(4), CONTROL_UTLB), 1u);
    EXPECT_EQ(life_in(ipt_command(4), CONTROL_IPT), 1u);
}

TEST_F(admin_queue_test, clears_and_invalidation_drain_before_the_ack) {
    enable(3);
    struct {
        prawn_admin_command c;
        std::vector<unsigned> told;
        std::set<unsigned> drained;
    } const cases[] = {
        {command(PRAWN_ADMIN_OPCODE_OPT_CLEAR, 3, 1),
         {CONTROL_OPT, CONTROL_PACKETIZER},
         {CONTROL_PACKETIZER}},
        {command(PRAWN_ADMIN_OPCODE_IPT_CLEAR, 3, 1),
         {CONTROL_IPT},
         {CONTROL_INCOMING_DMA}},
        {command(PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE, 3),
         {CONTROL_UTLB},
         {CONTROL_UTLB, CONTROL_PACKETIZER, CONTROL_INCOMING_DMA}}};
    for (const auto& one : cases) {
        post(one.c);
        ring();
        for (unsigned t : one.told) {
            ASSERT_EQ(at(t).items.size(), 1u);
            EXPECT_EQ(at(t).items[0].index, one.c.index);
            EXPECT_NE(answer(t)[0], control_op::DRAIN);
            EXPECT_TRUE(b().acks.items.empty());
        }
        for (unsigned t = 0; t < CONTROL_TARGETS; t++)
            EXPECT_EQ(at(t).items.size(), one.drained.count(t));
        for (unsigned t : one.drained) {
            EXPECT_TRUE(b().acks.items.empty());
            EXPECT_EQ(answer(t)[0], control_op::DRAIN);
        }
        ASSERT_EQ(b().acks.items.size(), 1u);
        b().acks.items.clear();
    }
}

TEST_F(admin_queue_test, several_in_progress_and_acks_out_of_order) {
    enable(3);
    enable(4);
    post(ipt_command(3));
    post(opt_command(4));
    ring();
    answer(CONTROL_OPT);
    answer(CONTROL_IPT);
    ASSERT_EQ(b().acks.items.size(), 2u);
    EXPECT_EQ(b().acks.items[0].index, 3u);
    EXPECT_EQ(b().acks.items[1].index, 2u);
}

TEST_F(admin_queue_test, disabling_a_context_keeps_its_place_in_the_order) {
    enable(3);
    post(ipt_command(3));
    post(command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, 3));
    post(ipt_command(3));
    ring();
    EXPECT_TRUE(at(CONTROL_COMMAND_QUEUE).items.empty());
    answer(CONTROL_IPT);
    EXPECT_EQ(at(CONTROL_COMMAND_QUEUE).items.size(), 1u);
    answer_all();
    ASSERT_EQ(b().acks.items.size(), 3u);
    EXPECT_EQ(b().acks.items[2].status, PRAWN_STATUS_BAD_CONTEXT);
}

TEST_F(admin_queue_test, no_block_gets_more_than_its_window) {
    enable(3);
    for (unsigned i = 0; i < SIZE; i++)
        post(ipt_command(3));
    ring();
    EXPECT_EQ(at(CONTROL_IPT).items.size(), block::CONTROL_WINDOW);
    answer_all();
    EXPECT_EQ(b().acks.items.size(), SIZE);
}

TEST_F(admin_queue_test, refuses_what_is_not_sound) {
    enable(3);
    const auto with = [](prawn_admin_command c, auto change) {
        change(c);
        return c;
    };
    EXPECT_EQ(status_of(command(15)), PRAWN_STATUS_BAD_OPCODE);
    EXPECT_EQ(status_of(command(255)), PRAWN_STATUS_BAD_OPCODE);
    // Every field that NOP does not use.
    const auto nop = command(PRAWN_ADMIN_OPCODE_NOP);
    for (auto field : {&prawn_admin_command::a, &prawn_admin_command::b,
                       &prawn_admin_command::c, &prawn_admin_command::d,
                       &prawn_admin_command::e, &prawn_admin_command::f,
                       &prawn_admin_command::rsvd})
        EXPECT_EQ(status_of(with(nop, [&](auto& c) { c.*field = 1; })),
                  PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(status_of(with(nop, [](auto& c) { c.index = 1; })),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(status_of(with(nop, [](auto& c) { c.flags = 2; })),
              PRAWN_STATUS_BAD_FIELD);

    const auto bad = [&](prawn_admin_command c, auto change,
                         std::uint16_t status) {
        EXPECT_EQ(status_of(with(c, change)), status) << unsigned{c.opcode};
    };
    const std::uint16_t FIELD = PRAWN_STATUS_BAD_FIELD;
    const std::uint16_t CONTEXT = PRAWN_STATUS_BAD_CONTEXT;
    const std::uint16_t LENGTH = PRAWN_STATUS_BAD_LENGTH;
    const auto e = enable_command(5);
    bad(
        e, [](auto& c) { c.context = 64; }, CONTEXT);
    bad(
        e, [](auto& c) { c.context = 3; }, CONTEXT);  // enabled already
    bad(
        e, [](auto& c) { c.index = 0; }, FIELD);
    bad(
        e, [](auto& c) { c.index = 16; }, FIELD);
    bad(
        e, [](auto& c) { c.a += 64; }, FIELD);
    bad(
        e, [](auto& c) { c.b = ~0xfffull; }, FIELD);
    bad(
        e, [](auto& c) { c.d = 1; }, FIELD);
    bad(
        e, [](auto& c) { c.e = 13 | 5 << 8; }, FIELD);
    bad(
        e, [](auto& c) { c.e = 6 | 3 << 8; }, FIELD);
    bad(
        e, [](auto& c) { c.e |= 1 << 16; }, FIELD);
    bad(
        command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, 6), [](auto&) {}, CONTEXT);
    bad(
        command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, 999), [](auto&) {},
        CONTEXT);
    const auto o = opt_command(3);
    bad(
        o, [](auto& c) { c.index = 4096; }, FIELD);
    bad(
        o, [](auto& c) { c.context = 5; }, CONTEXT);
    bad(
        o, [](auto& c) { c.a = 4 | 5u << 16; }, FIELD);  // no such node
    bad(
        o, [](auto& c) { c.a = 2; }, FIELD);  // no epoch
    bad(
        o, [](auto& c) { c.a |= 4096ull << 32; }, FIELD);
    bad(
        o, [](auto& c) { c.c = 0; }, LENGTH);
    bad(
        o, [](auto& c) { c.e = 1; }, FIELD);
    const auto i = ipt_command(3);
    bad(
        i, [](auto& c) { c.index = ~0u; }, FIELD);
    bad(
        i, [](auto& c) { c.e = 2; }, FIELD);
    bad(
        i, [](auto& c) { c.c = ~0ull; }, LENGTH);
    bad(
        i, [](auto& c) { c.c = 1ull << 48; }, LENGTH);
    bad(
        i, [](auto& c) { c.context = 77; }, CONTEXT);
    bad(
        command(PRAWN_ADMIN_OPCODE_OPT_CLEAR, 3, 4096), [](auto&) {}, FIELD);
    const auto u = command(PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE, 3);
    bad(
        u, [](auto& c) { c.a = 8; }, FIELD);
    bad(
        u, [](auto& c) { c.a = 1ull << 48; }, FIELD);
    bad(
        u, [](auto& c) { c.b = ~0ull; }, FIELD);
    bad(
        u, [](auto& c) { c.context = 9; }, CONTEXT);
    const auto m = command(PRAWN_ADMIN_OPCODE_MGMT_SEND, 0, 2);
    bad(
        m, [](auto& c) { c.a = MESSAGE; }, LENGTH);
    bad(
        m, [](auto& c) { c.a = MESSAGE, c.b = 257; }, LENGTH);
    bad(
        m, [](auto& c) { c.a = MESSAGE + 4, c.b = 8; }, FIELD);
    bad(
        m, [](auto& c) { c.a = MESSAGE, c.b = 8, c.index = 4; }, FIELD);
    const auto g = command(PRAWN_ADMIN_OPCODE_GRANT, 3);
    bad(
        g, [](auto& c) { c.a = 0x1000; }, FIELD);
    bad(
        g, [](auto& c) { c.a = 0x1008, c.b = 1; }, FIELD);
    bad(
        g, [](auto& c) { c.a = 0x1000, c.b = ~0ull; }, FIELD);
    bad(
        g, [](auto& c) { c.a = 0x1000, c.b = 1, c.c = 2; }, FIELD);
    bad(
        g, [](auto& c) { c.a = 0x1000, c.b = 1, c.context = 64; }, CONTEXT);
    bad(
        command(PRAWN_ADMIN_OPCODE_PEER_CONTROL, 0, 4), [](auto&) {}, FIELD);
    bad(
        command(PRAWN_ADMIN_OPCODE_PEER_CONTROL, 0, 2),
        [](auto& c) { c.a = 2; }, FIELD);
    EXPECT_EQ(status_of(command(PRAWN_ADMIN_OPCODE_SLOT_SET)),
              PRAWN_STATUS_UNSUPPORTED);
    EXPECT_EQ(status_of(command(PRAWN_ADMIN_OPCODE_SLOT_CLEAR)),
              PRAWN_STATUS_UNSUPPORTED);
    EXPECT_FALSE(dut.error());
}

TEST_F(admin_queue_test, grants_go_to_the_checker) {
    auto c = command(PRAWN_ADMIN_OPCODE_GRANT, KERNEL_CONTEXT);
    c.a = 0x5000;
    c.b = 2;
    c.c = 1;
    EXPECT_EQ(status_of(c), PRAWN_STATUS_OK);
    c = command(PRAWN_ADMIN_OPCODE_REVOKE, 3);
    c.a = 0x5000;
    c.b = 1;
    EXPECT_EQ(status_of(c), PRAWN_STATUS_OK);
    EXPECT_EQ(b().checker.calls,
              (std::vector<std::uint64_t>{KERNEL_CONTEXT, 0x5000, 2, 1, 3,
                                          0x5000, 1}));
}

TEST_F(admin_queue_test, sends_management_messages) {
    dma.store(MESSAGE, 0x1122334455667788ull);
    auto c = command(PRAWN_ADMIN_OPCODE_MGMT_SEND, 0, 2);
    c.a = MESSAGE;
    c.b = 8;
    EXPECT_EQ(status_of(c), PRAWN_STATUS_OK);
    ASSERT_EQ(b().mgmt.items.size(), 1u);
    const packet_ref p = b().mgmt.take();
    EXPECT_EQ(p->head.type, PRAWN_PACKET_TYPE_MGMT);
    EXPECT_EQ(p->head.destination_node, 2u);
    EXPECT_EQ(p->head.source_node, 1u);
    EXPECT_EQ(p->head.payload_length, 8u);
    EXPECT_EQ(p->payload[0], 0x88u);
    b().mgmt.refuse = true;
    EXPECT_EQ(status_of(c), PRAWN_STATUS_BUSY);
    c.a = 0x10000000;  // no such memory
    EXPECT_EQ(status_of(c), PRAWN_STATUS_DMA_ERROR);
    EXPECT_EQ(status_of(command(PRAWN_ADMIN_OPCODE_NOP)), PRAWN_STATUS_OK);
}

TEST_F(admin_queue_test, a_bad_ring_stops_it_until_reset) {
    post(command(PRAWN_ADMIN_OPCODE_NOP));
    dut.ring_doorbell(SIZE + 1);
    EXPECT_TRUE(dut.error());
    ring();
    EXPECT_TRUE(b().acks.items.empty());
    dut.reset();
    EXPECT_FALSE(dut.error());
    dut.set_ring(RING + 8, LOG2);
    ring();
    EXPECT_TRUE(dut.error());
    dut.reset();
    dut.set_ring(RING, 13);
    ring();
    EXPECT_TRUE(dut.error());
    dut.reset();
    dut.set_ring(0x10000000, LOG2);  // no such memory
    ring();
    EXPECT_TRUE(dut.error());
    dut.reset();
    dut.set_ring(RING, LOG2);
    ring();
    EXPECT_EQ(b().acks.items.size(), 1u);
}

TEST_F(admin_queue_test, peers_reach_opt_before_the_kernel) {
    put(dut.peer_in(), peer_event{PRAWN_EVENT_TYPE_PEER_UP, 2, 5});
    put(dut.peer_in(), peer_event{PRAWN_EVENT_TYPE_PEER_DOWN, 2, 5});
    put(dut.peer_in(), peer_event{PRAWN_EVENT_TYPE_PEER_UP, 9, 5});  // none
    run();
    ASSERT_EQ(at(CONTROL_OPT).items.size(), 1u);
    EXPECT_EQ(at(CONTROL_OPT).items[0].op, control_op::PEER_ERROR);
    EXPECT_EQ(at(CONTROL_OPT).items[0].index, 2u);
    EXPECT_EQ(at(CONTROL_OPT).items[0].a, PRAWN_STATUS_UNKNOWN_OUTCOME);
    EXPECT_TRUE(b().events.items.empty());
    answer_all();
    ASSERT_EQ(b().events.items.size(), 2u);
    EXPECT_EQ(b().events.items[0].type, PRAWN_EVENT_TYPE_PEER_UP);
    EXPECT_EQ(b().events.items[0].value, 5u);
    EXPECT_EQ(b().events.items[1].type, PRAWN_EVENT_TYPE_PEER_DOWN);
}

TEST_F(admin_queue_test, declaring_a_peer_dead_reaches_its_imports) {
    auto c = command(PRAWN_ADMIN_OPCODE_PEER_CONTROL, 0, 3);
    post(c);
    ring();
    for (unsigned target :
         {CONTROL_OPT, CONTROL_PACKETIZER, CONTROL_OUTGOING_FIFO}) {
        for (unsigned t = 0; t < CONTROL_TARGETS; t++)
            ASSERT_EQ(at(t).items.size(), t == target ? 1u : 0u) << target;
        EXPECT_EQ(at(target).items[0].op, control_op::PEER_ERROR);
        EXPECT_EQ(at(target).items[0].index, 3u);
        EXPECT_EQ(at(target).items[0].a, PRAWN_STATUS_PEER_DEAD);
        answer(target);
    }
    EXPECT_TRUE(b().events.items.empty());
    EXPECT_EQ(b().acks.take().status, PRAWN_STATUS_OK);
    c.a = 1;
    EXPECT_EQ(status_of(c), PRAWN_STATUS_OK);
}

TEST_F(admin_queue_test, refusals_put_imports_into_error_state) {
    static pool<packet> packets;
    const auto nack = [&](std::uint32_t import, std::uint16_t status) {
        packet_ref p = packets.get();
        p->head = header();
        p->head.type = PRAWN_PACKET_TYPE_NACK;
        p->head.import_id = import;
        p->head.status = status;
        p->head.source_node = 2;
        put(dut.nack_in(), p);
    };
    nack(7, PRAWN_STATUS_BAD_KEY);
    for (int i = 0; i < 1000; i++)
        nack(8, PRAWN_STATUS_BAD_EXPORT);
    nack(~0u, PRAWN_STATUS_EVENT_FULL);
    nack(PRAWN_OPT_ENTRIES, PRAWN_STATUS_BAD_KEY);
    run();
    std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
    while (!at(CONTROL_OPT).items.empty()) {
        const control_request r = at(CONTROL_OPT).items[0];
        EXPECT_EQ(r.op, control_op::IMPORT_ERROR);
        seen.emplace_back(r.index, r.a);
        answer(CONTROL_OPT);
    }
    EXPECT_EQ(seen,
              (std::vector<std::pair<std::uint32_t, std::uint64_t>>{
                  {7, PRAWN_STATUS_BAD_KEY}, {8, PRAWN_STATUS_BAD_EXPORT}}));
}

TEST_F(admin_queue_test, reset_forgets_everything_under_way) {
    enable(3);
    post(ipt_command(3));
    ring();
    const control_request old = at(CONTROL_IPT).take();
    dut.reset();
    put(dut.reply_in(CONTROL_IPT), control_reply{old.tag, 0, 0});
    run();
    EXPECT_TRUE(b().acks.items.empty());
    dut.set_ring(RING, LOG2);
    producer = 0;
    enable(3);
}

}  // namespace
}  // namespace test
}  // namespace prawn
