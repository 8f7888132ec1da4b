// SPDX-License-Identifier: Apache-2.0
#include "nic/notifier.h"

#include <gtest/gtest.h>

#include "control_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t EVENTS = 0x10000, ACKS = 0x20000;
constexpr std::uint64_t COMPLETIONS = 0x30000, NOTIFICATIONS = 0x40000;
constexpr unsigned LOG2 = 4;
constexpr std::uint32_t SIZE = 1u << LOG2;

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{1, 4, &the_profile(), &counters, nullptr};
    notifier dut{"notifier", env};
    fake_dma dma{"dma"};
    recorder<unsigned> causes{"causes"}, vectors{"vectors"};
    recorder<refusal> refusals{"refusals"};
    recorder<control_reply> replies{"replies"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dma.reply = &dut.dma_reply_in();
        dut.dma_out.bind(dma);
        dut.cause_out.bind(causes);
        dut.msix_out.bind(vectors);
        dut.refusal_out.bind(refusals);
        dut.control_out.bind(replies);
    }
    std::uint64_t count(const std::string& name) const {
        for (std::size_t i = 0; i < counters.size(); i++)
            if (counters.name(i) == name)
                return counters.value(i);
        return ~0ull;
    }
};

class notifier_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    notifier& dut = b().dut;
    fake_dma& dma = b().dma;
    std::uint32_t life = 0;  // of all contexts: one at a time is enabled

    void SetUp() override {
        dut.reset();
        life = 0;
        dma.release();
        run(1000);
        dma.clear();
        b().causes.items.clear();
        b().vectors.items.clear();
        b().refusals.items.clear();
        b().replies.items.clear();
        dut.set_event_ring(EVENTS, LOG2);
        dut.set_ack_ring(ACKS, LOG2);
    }
    std::uint16_t control(control_op op, std::uint16_t context,
                          std::uint32_t vector = 0) {
        control_request r;
        r.tag = 7;
        r.op = op;
        r.context = context;
        r.index = vector;
        r.b = COMPLETIONS;
        r.c = NOTIFICATIONS;
        r.e = LOG2 | LOG2 << 8;
        r.life = op == control_op::CONTEXT_ENABLE ? ++life : life;
        put(dut.control_in(), r);
        run();
        EXPECT_EQ(b().replies.items.size(), 1u);
        return b().replies.take().status;
    }
    void enable(std::uint16_t context = 3, std::uint32_t vector = 5) {
        ASSERT_EQ(control(control_op::CONTEXT_ENABLE, context, vector),
                  PRAWN_STATUS_OK);
    }
    void complete(std::uint32_t index, std::uint16_t context = 3) {
        completion_request r;
        r.context = context;
        r.index = index;
        r.entry.cookie = 1000 + index;
        r.life = life;
        put(dut.completion_in(), r);
    }
    void notify(std::uint32_t id, std::uint32_t message,
                std::uint16_t context = 3) {
        notification_request r;
        r.context = context;
        r.entry.type = PRAWN_NOTIFICATION_TYPE_MESSAGE;
        r.entry.id = id;
        r.entry.message = message;
        r.life = life;
        put(dut.notification_in(), r);
    }
    void update(ring_update::what_t what, std::uint32_t index,
                std::uint16_t context = 3) {
        put(dut.update_in(), ring_update{what, context, index});
    }
    void event(std::uint8_t type, std::uint16_t node, std::uint64_t value) {
        kernel_event_request r;
        r.type = type;
        r.node = node;
        r.value = value;
        put(dut.event_in(), r);
    }
    prawn_notification notification(std::uint32_t index) {
        return dma.at<prawn_notification>(NOTIFICATIONS +
                                          (index % SIZE) * 64ull);
    }
    prawn_kernel_event kernel_event(std::uint32_t index) {
        return dma.at<prawn_kernel_event>(EVENTS + (index % SIZE) * 512ull);
    }
};

TEST_F(notifier_test, completion_is_an_entry_of_the_contexts_ring) {
    enable();
    complete(0);
    complete(17);
    run();
    const auto first = dma.at<prawn_completion>(COMPLETIONS);
    EXPECT_EQ(first.cookie, 1000u);
    EXPECT_EQ(first.seq, 1u);
    const auto second = dma.at<prawn_completion>(COMPLETIONS + 64);
    EXPECT_EQ(second.cookie, 1017u);
    EXPECT_EQ(second.seq, 18u);
    ASSERT_EQ(dma.seen.size(), 2u);
    EXPECT_EQ(dma.seen[0].context, KERNEL_CONTEXT);
    EXPECT_TRUE(b().vectors.items.empty());  // not armed
}

TEST_F(notifier_test, nothing_is_written_for_a_context_that_is_off) {
    complete(0);
    notify(1, 1);
    put(dut.notification_in(), notification_request{999, {}});
    put(dut.completion_in(), completion_request{999, 0, {}});
    run();
    EXPECT_TRUE(dma.seen.empty());
}

TEST_F(notifier_test, armed_before_means_one_interrupt_after_the_entry) {
    enable();
    update(ring_update::ARM_COMPLETION, 0);
    run();
    EXPECT_TRUE(b().vectors.items.empty());
    dma.hold = true;
    complete(0);
    run();
    EXPECT_TRUE(b().vectors.items.empty());  // not in memory yet
    dma.release();
    run();
    ASSERT_EQ(b().vectors.items.size(), 1u);
    EXPECT_EQ(b().vectors.take(), 5u);
    EXPECT_EQ(b().causes.take(), PRAWN_INT_CAUSE_CONTEXT_MASK);
    complete(1);
    run();
    EXPECT_TRUE(b().vectors.items.empty());  // once
}

TEST_F(notifier_test, armed_behind_the_entry_means_an_interrupt_at_once) {
    enable();
    notify(1, 1);
    run();
    update(ring_update::ARM_NOTIFY, 1);  // all seen
    run();
    EXPECT_TRUE(b().vectors.items.empty());
    update(ring_update::ARM_NOTIFY, 0);  // one unseen
    run();
    EXPECT_EQ(b().vectors.items.size(), 1u);
}

TEST_F(notifier_test, full_notification_ring_coalesces_by_export) {
    enable();
    for (std::uint32_t i = 0; i < SIZE; i++)
        notify(1, i);
    notify(1, 100);
    notify(2, 200);
    notify(1, 101);
    run();
    EXPECT_EQ(notification(0).message, 0u);  // not overwritten
    EXPECT_EQ(dma.seen.size(), SIZE);
    update(ring_update::NOTIFY_CONSUMED, 1);
    run();
    EXPECT_EQ(notification(SIZE).id, 1u);
    EXPECT_EQ(notification(SIZE).count, 2u);
    EXPECT_EQ(notification(SIZE).message, 101u);
    EXPECT_EQ(notification(SIZE).seq, SIZE + 1);
    notify(3, 300);  // behind what waits
    update(ring_update::NOTIFY_CONSUMED, 3);
    run();
    EXPECT_EQ(notification(SIZE + 1).id, 2u);
    EXPECT_EQ(notification(SIZE + 1).count, 1u);
    EXPECT_EQ(notification(SIZE + 2).id, 3u);
}

TEST_F(notifier_test, consumer_index_out_of_range_is_ignored) {
    enable();
    for (std::uint32_t i = 0; i <= SIZE; i++)
        notify(1, i);
    run();
    const std::uint64_t before = b().count("notifier.bad_index");
    update(ring_update::NOTIFY_CONSUMED, SIZE + 1);
    update(ring_update::NOTIFY_CONSUMED, ~0u);
    run();
    EXPECT_EQ(dma.seen.size(), SIZE);
    EXPECT_EQ(b().count("notifier.bad_index"), before + 2);
}

TEST_F(notifier_test, disable_cancels_and_waits_for_the_bus_as_drain_does) {
    enable();
    dma.hold = true;
    for (std::uint32_t i = 0; i < SIZE; i++)
        notify(1, i);
    run();
    complete(0);
    run();
    control_request r;
    r.tag = 8;
    r.op = control_op::CONTEXT_DISABLE;
    r.context = 3;
    put(dut.control_in(), r);
    r.tag = 9;
    r.op = control_op::DRAIN;
    put(dut.control_in(), r);
    run();
    EXPECT_TRUE(b().replies.items.empty());
    dma.release();
    run();
    ASSERT_EQ(b().replies.items.size(), 2u);
    EXPECT_EQ(b().replies.take().tag, 8u);
    EXPECT_EQ(b().replies.take().tag, 9u);
    EXPECT_EQ(dma.seen.size(), notifier::WINDOW);
}

TEST_F(notifier_test, answers_of_an_earlier_life_raise_nothing) {
    enable();
    dma.hold = true;
    complete(0);
    update(ring_update::ARM_COMPLETION, 0);
    run();
    control_request r;
    r.op = control_op::CONTEXT_DISABLE;
    r.context = 3;
    put(dut.control_in(), r);
    dma.release();
    run();
    EXPECT_TRUE(b().vectors.items.empty());
    b().replies.items.clear();
    enable();
    update(ring_update::ARM_COMPLETION, 0);
    run();
    EXPECT_TRUE(b().vectors.items.empty());
}

TEST_F(notifier_test, what_was_held_since_an_earlier_life_is_dropped) {
    enable();
    const std::uint32_t old = life;
    control(control_op::CONTEXT_DISABLE, 3);
    enable();
    const std::uint64_t dropped = b().count("notifier.dropped");
    completion_request c;
    c.context = 3;
    c.life = old;
    put(dut.completion_in(), c);
    notification_request n;
    n.context = 3;
    n.life = old;
    put(dut.notification_in(), n);
    run();
    EXPECT_TRUE(dma.seen.empty());
    EXPECT_EQ(b().count("notifier.dropped"), dropped + 2);
    complete(0);
    notify(1, 1);
    run();
    EXPECT_EQ(dma.seen.size(), 2u);
}

TEST_F(notifier_test, a_completion_that_waits_here_does_not_see_the_next_life) {
    enable();
    dma.hold = true;
    for (std::uint32_t i = 0; i < notifier::WINDOW + 2; i++)
        complete(i);
    run();
    EXPECT_EQ(dma.seen.size(), notifier::WINDOW);
    control_request r;
    r.op = control_op::CONTEXT_DISABLE;
    r.context = 3;
    put(dut.control_in(), r);
    dma.release();
    control_request again;
    again.op = control_op::CONTEXT_ENABLE;
    again.context = 3;
    again.index = 5;
    again.b = COMPLETIONS;
    again.c = NOTIFICATIONS;
    again.e = LOG2 | LOG2 << 8;
    again.life = ++life;
    put(dut.control_in(), again);
    run();
    EXPECT_EQ(dma.seen.size(), notifier::WINDOW);
}

TEST_F(notifier_test, refuses_impossible_contexts_and_rings) {
    EXPECT_EQ(control(control_op::CONTEXT_ENABLE, 64, 1),
              PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(control(control_op::CONTEXT_ENABLE, 1, 0),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(control(control_op::CONTEXT_ENABLE, 1, 16),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(control(control_op::CONTEXT_DISABLE, 64), PRAWN_STATUS_OK);
    EXPECT_EQ(control(control_op::FILL, 1), PRAWN_STATUS_BAD_OPCODE);
    enable();
    EXPECT_EQ(control(control_op::CONTEXT_ENABLE, 3, 1),
              PRAWN_STATUS_BAD_CONTEXT);
}

TEST_F(notifier_test, first_event_interrupts_and_consuming_rearms) {
    event(PRAWN_EVENT_TYPE_PEER_UP, 2, 9);
    run();
    EXPECT_EQ(kernel_event(0).type, PRAWN_EVENT_TYPE_PEER_UP);
    EXPECT_EQ(kernel_event(0).node, 2u);
    EXPECT_EQ(kernel_event(0).value, 9u);
    EXPECT_EQ(kernel_event(0).seq, 1u);
    EXPECT_EQ(b().vectors.items.size(), 1u);
    EXPECT_EQ(b().vectors.take(), 0u);
    EXPECT_EQ(b().causes.take(), PRAWN_INT_CAUSE_EVENT_MASK);
    event(PRAWN_EVENT_TYPE_PEER_DOWN, 2, 0);
    run();
    EXPECT_TRUE(b().vectors.items.empty());
    update(ring_update::EVENT_CONSUMED, 1);  // the second is beyond it
    run();
    EXPECT_EQ(b().vectors.items.size(), 1u);
    update(ring_update::EVENT_CONSUMED, 2);
    run();
    EXPECT_EQ(b().vectors.items.size(), 1u);
    event(PRAWN_EVENT_TYPE_PEER_UP, 2, 10);
    run();
    EXPECT_EQ(b().vectors.items.size(), 2u);
}

TEST_F(notifier_test, full_event_ring_refuses_messages_and_keeps_the_rest) {
    for (std::uint32_t i = 0; i < SIZE; i++)
        event(PRAWN_EVENT_TYPE_PEER_UP, 1, i);
    static pool<packet> packets;
    auto pkt = packets.get();
    pkt->head = header();
    pkt->head.message = 77;
    kernel_event_request m;
    m.type = PRAWN_EVENT_TYPE_MGMT;
    m.node = 2;
    m.length = 8;
    m.keep = pkt;
    m.data = pkt->payload;
    put(dut.event_in(), m);
    ASSERT_EQ(b().refusals.items.size(), 1u);
    EXPECT_EQ(b().refusals.items[0].status, PRAWN_STATUS_EVENT_FULL);
    EXPECT_EQ(b().refusals.items[0].node, 2u);
    EXPECT_EQ(b().refusals.items[0].head.message, 77u);

    event(PRAWN_EVENT_TYPE_PEER_UP, 3, 1);
    event(PRAWN_EVENT_TYPE_PEER_DOWN, 3, 0);
    event(PRAWN_EVENT_TYPE_PEER_UP, 3, 2);  // replaces the first
    run();
    update(ring_update::EVENT_CONSUMED, SIZE);
    run();
    EXPECT_EQ(kernel_event(SIZE).type, PRAWN_EVENT_TYPE_PEER_DOWN);
    EXPECT_EQ(kernel_event(SIZE + 1).value, 2u);
    EXPECT_EQ(kernel_event(SIZE + 2).seq, 3u);  // of the first lap
}

TEST_F(notifier_test, events_wait_for_a_ring) {
    dut.set_event_ring(0, 0);
    event(PRAWN_EVENT_TYPE_PEER_UP, 1, 4);
    run();
    EXPECT_TRUE(dma.seen.empty());
    dut.set_event_ring(EVENTS + 1, LOG2);  // not aligned: no ring
    run();
    EXPECT_TRUE(dma.seen.empty());
    dut.set_event_ring(EVENTS, LOG2);
    run();
    EXPECT_EQ(kernel_event(0).value, 4u);
}

TEST_F(notifier_test, acknowledges_and_interrupts_where_wanted) {
    put(dut.ack_in(), ack_request{18, PRAWN_STATUS_BUSY, 5, false});
    put(dut.ack_in(), ack_request{19, PRAWN_STATUS_OK, 6, true});
    run();
    const auto a = dma.at<prawn_admin_ack>(ACKS + 2 * 16);
    EXPECT_EQ(a.status, PRAWN_STATUS_BUSY);
    EXPECT_EQ(a.value, 5u);
    EXPECT_EQ(a.seq, 19u);
    EXPECT_EQ(dma.at<prawn_admin_ack>(ACKS + 3 * 16).seq, 20u);
    ASSERT_EQ(b().vectors.items.size(), 1u);
    EXPECT_EQ(b().causes.items[0], PRAWN_INT_CAUSE_ADMIN_MASK);
}

TEST_F(notifier_test, acknowledgements_do_not_outlive_their_ring) {
    put(dut.ack_in(), ack_request{0, PRAWN_STATUS_OK, 0, true});
    dut.set_ack_ring(0, 0);
    run();
    EXPECT_TRUE(dma.seen.empty());
    EXPECT_TRUE(b().vectors.items.empty());
}

TEST_F(notifier_test, failed_dma_is_counted_and_raises_nothing) {
    const std::uint64_t before = b().count("notifier.dma_errors");
    dma.fail = true;
    event(PRAWN_EVENT_TYPE_PEER_UP, 1, 4);
    put(dut.ack_in(), ack_request{0, 0, 0, true});
    run();
    EXPECT_EQ(b().count("notifier.dma_errors"), before + 2);
    EXPECT_TRUE(b().vectors.items.empty());
}

TEST_F(notifier_test, survives_a_channel_that_refuses) {
    enable();
    dma.refuse = 5;
    for (std::uint32_t i = 0; i < 8; i++)
        complete(i);
    run();
    EXPECT_EQ(dma.at<prawn_completion>(COMPLETIONS + 7 * 64).seq, 8u);
    EXPECT_EQ(dma.seen.size(), 8u);
}

TEST_F(notifier_test, reset_forgets_what_is_in_flight) {
    enable();
    update(ring_update::ARM_COMPLETION, 0);
    dma.hold = true;
    complete(0);
    run();
    dut.reset();
    dma.release();
    run();
    EXPECT_TRUE(b().vectors.items.empty());
    EXPECT_EQ(control(control_op::DRAIN, 0), PRAWN_STATUS_OK);
}

}  // namespace
}  // namespace test
}  // namespace prawn
