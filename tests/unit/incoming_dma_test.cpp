// SPDX-License-Identifier: Apache-2.0
#include "nic/incoming_dma.h"

#include <random>

#include <gtest/gtest.h>

#include "incoming_dma_bench.h"

namespace prawn {
namespace test {
namespace {

class incoming_dma_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    incoming_dma& dut = b().dut;
    fake_utlb& utlb = b().utlb;
    fake_dma& dma = b().dma;
    sink<notification_request>& notes = b().notes;
    sink<refusal>& refusals = b().refusals;
    sink<control_reply>& replies = b().replies;

    void SetUp() override {
        dut.reset();
        utlb.clear();
        dma.clear();
        run(1000);
        utlb.clear();
        dma.clear();
        notes.clear();
        refusals.clear();
        replies.clear();
        settle();
    }
    static delivery make(std::uint64_t va, unsigned bytes,
                         std::uint32_t message = 1, bool notify = true,
                         std::uint16_t context = 9) {
        delivery d;
        d.pkt = make_packet(1, 0, bytes, PRAWN_PACKET_TYPE_DATA, message);
        d.pkt->head.export_id = 17;
        d.pkt->head.offset = va - VA;
        d.pkt->head.immediate = 0xabcd;
        d.va = va;
        d.context = context;
        d.cookie = 0xc00c1e;
        d.notify = notify;
        return d;
    }
    bool arrive(const delivery& d) { return put(dut.delivery_in(), d); }
    static std::uint8_t byte(fake_dma& d, std::uint64_t va) {
        return d.memory[bus_page(va) + (va & 0xfff)];
    }
    void expect_written(const delivery& d) {
        for (unsigned i = 0; i < d.pkt->head.payload_length; i++)
            ASSERT_EQ(byte(dma, d.va + i), d.pkt->payload[i]) << i;
    }
    static std::uint64_t counted(const char* name) {
        return count(b().counters, name);
    }
};

TEST_F(incoming_dma_test, payload_lands_and_is_told) {
    const sc_time start = sc_time_stamp();
    const delivery d = make(VA + 0x123, 1000, 5);
    const auto bytes = count(b().counters, "incoming_dma.bytes", 9);
    ASSERT_TRUE(arrive(d));
    run(1000);
    expect_written(d);
    ASSERT_EQ(dma.seen.size(), 1u);
    EXPECT_EQ(dma.seen[0].context, 9);
    EXPECT_EQ(dma.seen[0].data, d.pkt->payload) << "straight from the packet";
    ASSERT_EQ(notes.size(), 1u);
    // No time of its own, translation at once, 20 ns of DMA.
    EXPECT_EQ(notes.when(0) - start, ns(20));
    const prawn_notification& n = notes[0].entry;
    EXPECT_EQ(notes[0].context, 9);
    EXPECT_EQ(n.cookie, 0xc00c1eu);
    EXPECT_EQ(n.delivered, notes.when(0).value());
    EXPECT_EQ(n.offset, 0x123u);
    EXPECT_EQ(n.length, 1000u);
    EXPECT_EQ(n.immediate, 0xabcdu);
    EXPECT_EQ(n.id, 17u);
    EXPECT_EQ(n.message, 5u);
    EXPECT_EQ(n.source_node, 1);
    EXPECT_EQ(n.source_context, 3);
    EXPECT_EQ(n.type, PRAWN_NOTIFICATION_TYPE_MESSAGE);
    EXPECT_EQ(n.status, PRAWN_STATUS_OK);
    EXPECT_EQ(refusals.size(), 0u);
    EXPECT_EQ(count(b().counters, "incoming_dma.bytes", 9), bytes + 1000);
}

TEST_F(incoming_dma_test, notification_is_of_the_whole_message) {
    delivery first = make(VA + 100, 4000, 5, false);
    first.pkt->head.flags = PRAWN_PACKET_FLAG_FIRST;
    delivery last = make(VA + 4100, 500, 5);
    last.pkt->head.flags = PRAWN_PACKET_FLAG_LAST;
    last.pkt->head.message_offset = 4000;
    ASSERT_TRUE(arrive(first));
    ASSERT_TRUE(arrive(last));
    run(1000);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].entry.offset, 100u);
    EXPECT_EQ(notes[0].entry.length, 4500u);
}

TEST_F(incoming_dma_test, empty_message_needs_no_memory) {
    utlb.automatic = false;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    ASSERT_TRUE(arrive(make(VA, 0, 2)));
    run(100);
    EXPECT_EQ(notes.size(), 0u) << "not before the one ahead of it";
    utlb.answer(0);
    run(100);
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[1].entry.message, 2u);
    EXPECT_EQ(notes[1].entry.length, 0u);
    EXPECT_EQ(dma.seen.size(), 1u);
}

TEST_F(incoming_dma_test, crossing_a_page_is_split) {
    for (unsigned in_page : {0xffeU, 0xfffU, 0x801U, 1U}) {
        dma.clear();
        const delivery d = make(VA + in_page, 4096);
        ASSERT_TRUE(arrive(d));
        run(200);
        expect_written(d);
        ASSERT_EQ(dma.seen.size(), 2u);
        EXPECT_EQ(dma.seen[0].length, 4096 - in_page);
        EXPECT_EQ(dma.seen[1].length, in_page);
    }
    EXPECT_EQ(notes.size(), 4u);
    dma.clear();
    ASSERT_TRUE(arrive(make(VA, 4096)));
    run(200);
    EXPECT_EQ(dma.seen.size(), 1u) << "a whole page is not split";
}

TEST_F(incoming_dma_test, translations_overtake_memory_does_not) {
    utlb.automatic = false;
    for (unsigned i = 0; i < 3; i++)
        ASSERT_TRUE(arrive(make(VA + i * 4096, 8, i + 1)));
    run(50);
    ASSERT_EQ(utlb.waiting.size(), 3u);
    utlb.answer(2);
    utlb.answer(1);
    run(50);
    EXPECT_EQ(dma.seen.size(), 0u);
    utlb.answer(0);
    run(200);
    ASSERT_EQ(dma.seen.size(), 3u);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(dma.seen[i].address, bus_page(VA + i * 4096));
        EXPECT_EQ(notes[i].entry.message, i + 1);
    }
}

TEST_F(incoming_dma_test, window_bounds_what_is_in_flight) {
    dma.automatic = false;
    for (unsigned i = 0; i < WINDOW; i++)
        ASSERT_TRUE(arrive(make(VA, 8, i + 1)));
    EXPECT_FALSE(arrive(make(VA, 8, 9)));
    run(100);
    EXPECT_EQ(dma.seen.size(), WINDOW) << "all in flight at once";
    EXPECT_FALSE(arrive(make(VA, 8, 9)));
    dma.finish();
    EXPECT_TRUE(arrive(make(VA, 8, 9)));
    EXPECT_FALSE(arrive(make(VA, 8, 9)));
}

TEST_F(incoming_dma_test, utlb_that_refuses) {
    utlb.refuse = true;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    ASSERT_TRUE(arrive(make(VA + 0xfff, 8, 2)));
    run(100);
    EXPECT_EQ(utlb.waiting.size(), 0u);
    utlb.release();
    run(100);
    EXPECT_EQ(notes.size(), 2u);
    EXPECT_EQ(dma.seen.size(), 3u);
}

TEST_F(incoming_dma_test, dma_engine_that_is_full) {
    dma.room_for = 1;
    const delivery d = make(VA + 0xf00, 4096, 1);
    ASSERT_TRUE(arrive(d));
    ASSERT_TRUE(arrive(make(VA + 0x8000, 8, 2)));
    run(500);
    expect_written(d);
    EXPECT_EQ(notes.size(), 2u);
}

TEST_F(incoming_dma_test, failed_translation_writes_nothing) {
    constexpr std::uint16_t STATUSES[] = {
        PRAWN_STATUS_NOT_PINNED, PRAWN_STATUS_NOT_WRITABLE,
        PRAWN_STATUS_BAD_CONTEXT, PRAWN_STATUS_DMA_ERROR};
    for (const std::uint16_t status : STATUSES) {
        utlb.status = status;
        refusals.clear();
        const auto faults = counted("incoming_dma.faults");
        ASSERT_TRUE(arrive(make(VA, 64, 7)));
        run(100);
        ASSERT_EQ(refusals.size(), 1u);
        EXPECT_EQ(refusals[0].node, 1);
        EXPECT_EQ(refusals[0].status, PRAWN_STATUS_RECEIVE_FAULT);
        EXPECT_EQ(refusals[0].head.message, 7u);
        EXPECT_EQ(counted("incoming_dma.faults"), faults + 1);
    }
    EXPECT_EQ(dma.seen.size(), 0u);
    EXPECT_EQ(notes.size(), 0u);
}

TEST_F(incoming_dma_test, one_bad_page_of_two_writes_nothing) {
    for (unsigned bad = 0; bad < 2; bad++) {
        utlb.automatic = false;
        ASSERT_TRUE(arrive(make(VA + 0xff0, 64)));
        run(50);
        ASSERT_EQ(utlb.waiting.size(), 2u);
        utlb.answer(0, bad == 0 ? PRAWN_STATUS_NOT_PINNED : PRAWN_STATUS_OK);
        utlb.answer(0, bad == 1 ? PRAWN_STATUS_NOT_PINNED : PRAWN_STATUS_OK);
        run(50);
        EXPECT_EQ(dma.seen.size(), 0u);
        EXPECT_EQ(refusals.size(), bad + 1);
    }
}

TEST_F(incoming_dma_test, failed_dma) {
    dma.fails = [](const dma_request& r) { return r.length == 0x10; };
    ASSERT_TRUE(arrive(make(VA + 0xff0, 64, 1)));
    ASSERT_TRUE(arrive(make(VA, 8, 2)));
    run(200);
    ASSERT_EQ(refusals.size(), 1u) << "one for both pieces";
    EXPECT_EQ(refusals[0].status, PRAWN_STATUS_RECEIVE_FAULT);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].entry.message, 2u) << "the next one is not concerned";
}

// The first piece fails while dma_engine has no room for the second.
TEST_F(incoming_dma_test, failed_dma_of_half_a_packet) {
    dma.room_for = 1;
    dma.fails = [](const dma_request&) { return true; };
    ASSERT_TRUE(arrive(make(VA + 0xff0, 64, 1)));
    run(200);
    EXPECT_EQ(refusals.size(), 1u);
    dma.fails = nullptr;
    expect_control(dut, replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    ASSERT_TRUE(arrive(make(VA, 8, 2)));
    run(200);
    EXPECT_EQ(notes.size(), 1u);
}

TEST_F(incoming_dma_test, no_notification_for_a_message_that_failed) {
    delivery first = make(VA, 8, 5, false);
    first.pkt->head.flags = PRAWN_PACKET_FLAG_FIRST;
    delivery last = make(VA + 8, 8, 5);
    last.pkt->head.flags = PRAWN_PACKET_FLAG_LAST;
    last.pkt->head.message_offset = 8;
    utlb.status = PRAWN_STATUS_NOT_PINNED;
    ASSERT_TRUE(arrive(first));
    run(100);
    utlb.status = PRAWN_STATUS_OK;
    ASSERT_TRUE(arrive(last));
    ASSERT_TRUE(arrive(make(VA, 8, 6)));
    run(200);
    EXPECT_EQ(refusals.size(), 1u);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].entry.message, 6u);
}

TEST_F(incoming_dma_test,
       a_message_with_a_hole_is_neither_told_of_nor_counted) {
    const auto messages = count(b().counters, "incoming_dma.messages", 9);
    delivery first = make(VA, 8, 5, false);
    first.pkt->head.flags = PRAWN_PACKET_FLAG_FIRST;
    delivery last = make(VA + 16, 8, 5);
    last.pkt->head.flags = PRAWN_PACKET_FLAG_LAST;
    last.pkt->head.message_offset = 16;
    ASSERT_TRUE(arrive(first));
    ASSERT_TRUE(arrive(last));
    run(200);
    EXPECT_EQ(notes.size(), 0u);
    EXPECT_EQ(count(b().counters, "incoming_dma.messages", 9), messages);
    ASSERT_TRUE(arrive(make(VA, 8, 6)));
    run(200);
    EXPECT_EQ(notes.size(), 1u);
    EXPECT_EQ(count(b().counters, "incoming_dma.messages", 9), messages + 1);
}

TEST_F(incoming_dma_test, drain_waits_for_what_is_in_the_window) {
    dma.automatic = false;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    run(50);
    put(dut.control_in(), ask(control_op::DRAIN, 123));
    ASSERT_TRUE(arrive(make(VA, 8, 2)));
    run(100);
    EXPECT_EQ(replies.size(), 0u);
    dma.finish();
    run(20);
    ASSERT_EQ(replies.size(), 1u) << "what came later is not awaited";
    EXPECT_EQ(replies[0].tag, 123u);
    EXPECT_EQ(replies[0].status, PRAWN_STATUS_OK);
    EXPECT_EQ(dma.waiting.size(), 1u);
}

TEST_F(incoming_dma_test, drain_waits_for_what_has_only_been_accepted) {
    utlb.refuse = true;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    put(dut.control_in(), ask(control_op::DRAIN, 1));
    run(100);
    EXPECT_EQ(replies.size(), 0u);
    utlb.release();
    run(100);
    EXPECT_EQ(replies.size(), 1u);
}

TEST_F(incoming_dma_test, drain_of_nothing) {
    expect_control(dut, replies, ask(control_op::DRAIN), PRAWN_STATUS_OK);
    expect_control(dut, replies, ask(control_op::CONTEXT_DISABLE),
                   PRAWN_STATUS_OK);
    expect_control(dut, replies, ask(control_op::SET), PRAWN_STATUS_BAD_OPCODE);
}

TEST_F(incoming_dma_test, disable_cancels_what_has_not_begun) {
    dma.automatic = false;
    utlb.automatic = false;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));           // in memory's hands
    ASSERT_TRUE(arrive(make(VA + 0x1000, 8, 2)));  // being translated
    ASSERT_TRUE(arrive(make(VA + 0x2000, 8, 3, true, 10)));  // of another
    run(50);
    utlb.answer(0);
    ASSERT_TRUE(arrive(make(VA + 0x3000, 8, 4)));  // not even asked
    put(dut.control_in(), ask(control_op::CONTEXT_DISABLE, 5, 9));
    run(100);
    EXPECT_EQ(replies.size(), 0u) << "its DMA is in flight";
    dma.finish();
    run(10);
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].tag, 5u);
    EXPECT_EQ(notes.size(), 0u) << "not even for what was written";
    dma.automatic = true;
    while (!utlb.waiting.empty())
        utlb.answer(0);
    run(200);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].context, 10);
    ASSERT_EQ(refusals.size(), 2u);
    EXPECT_EQ(refusals[0].status, PRAWN_STATUS_BAD_EXPORT);
    EXPECT_EQ(refusals[0].head.message, 2u);
    EXPECT_EQ(refusals[1].head.message, 4u);
    EXPECT_EQ(dma.seen.size(), 2u);
}

TEST_F(incoming_dma_test,
       a_packet_held_on_its_way_does_not_reach_the_next_life) {
    delivery d = make(VA, 8, 1);
    d.life = 7;
    control_request r = ask(control_op::CONTEXT_DISABLE, 5, 9);
    r.life = 7;
    expect_control(dut, replies, r, PRAWN_STATUS_OK);
    ASSERT_TRUE(arrive(d));
    run(100);
    EXPECT_TRUE(utlb.waiting.empty());
    EXPECT_EQ(dma.seen.size(), 0u);
    EXPECT_EQ(notes.size(), 0u);
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals[0].status, PRAWN_STATUS_BAD_EXPORT);
    d = make(VA, 8, 2);
    d.life = 8;
    ASSERT_TRUE(arrive(d));
    run(100);
    EXPECT_EQ(dma.seen.size(), 1u);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].life, 8u);
}

TEST_F(incoming_dma_test, disable_in_the_middle_of_a_packet) {
    dma.automatic = false;
    dma.room_for = 1;
    ASSERT_TRUE(arrive(make(VA + 0xff0, 64, 1)));
    run(50);
    ASSERT_EQ(dma.seen.size(), 1u);
    put(dut.control_in(), ask(control_op::CONTEXT_DISABLE, 5, 9));
    run(50);
    EXPECT_EQ(replies.size(), 0u);
    dma.finish();
    run(50);
    EXPECT_EQ(replies.size(), 1u);
    EXPECT_EQ(dma.seen.size(), 1u) << "the other half is not written";
    EXPECT_EQ(refusals.size(), 1u);
}

TEST_F(incoming_dma_test, reset_at_any_instant) {
    for (unsigned at = 0; at <= 70; at += 5) {
        utlb.max_delay = 10;
        for (unsigned i = 0; i < WINDOW; i++)
            ASSERT_TRUE(arrive(make(VA + i * 0x1000 + 0xff0, 64, i + 1)));
        sc_core::sc_start(ns(at));
        const std::size_t before = notes.size();
        dut.reset();
        run(1000);  // late answers still come
        EXPECT_EQ(notes.size(), before);
        EXPECT_EQ(refusals.size(), 0u);
        notes.clear();
        const delivery d = make(VA + 0x5000, 100, 77);
        ASSERT_TRUE(arrive(d));
        run(1000);
        ASSERT_EQ(notes.size(), 1u);
        expect_written(d);
        notes.clear();
    }
}

TEST_F(incoming_dma_test, late_answer_does_not_hit_a_new_packet) {
    utlb.automatic = false;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    run(50);
    dut.reset();
    // As many as make the last one take the place of the first.
    for (unsigned i = 1; i <= WINDOW; i++)
        ASSERT_TRUE(arrive(make(VA + i * 0x1000, 8, i + 1)));
    run(50);
    ASSERT_EQ(utlb.waiting.size(), WINDOW + 1);
    for (unsigned i = 0; i < WINDOW; i++)
        utlb.answer(0);
    run(500);
    EXPECT_EQ(dma.seen.size(), WINDOW - 1) << "the last one still waits";
    utlb.answer(0);
    run(100);
    ASSERT_EQ(dma.seen.size(), WINDOW);
    for (unsigned i = 1; i <= WINDOW; i++)
        EXPECT_EQ(dma.seen[i - 1].address, bus_page(VA + i * 0x1000));
}

TEST_F(incoming_dma_test, reset_forgets_failures_and_requests) {
    dma.automatic = false;
    ASSERT_TRUE(arrive(make(VA, 8, 1)));
    run(50);
    put(dut.control_in(), ask(control_op::DRAIN, 1));
    put(dut.control_in(), ask(control_op::CONTEXT_DISABLE, 2, 9));
    dut.reset();
    dma.finish();
    run(100);
    EXPECT_EQ(replies.size(), 0u);
}

TEST_F(incoming_dma_test, twins_all_around) {
    std::mt19937_64 random(45);
    b().utlb2.max_delay = 80;
    unsigned sent = 0;
    std::vector<delivery> all;
    for (unsigned i = 0; sent < 200 && i < 100000; i++) {
        const delivery d =
            make(VA + random() % 0x8000, static_cast<unsigned>(random() % 4097),
                 sent + 1);
        if (put<delivery>(b().late, d)) {
            all.push_back(d);
            sent++;
        }
        run(5);
    }
    run(100000);
    ASSERT_EQ(notes.size(), 200u);
    for (unsigned i = 0; i < 200; i++)
        EXPECT_EQ(notes[i].entry.message, i + 1);
    std::vector<std::uint8_t> want(PAGES * PRAWN_PAGE_SIZE);
    for (const delivery& d : all)
        for (unsigned i = 0; i < d.pkt->head.payload_length; i++) {
            const std::uint64_t va = d.va + i;
            want[bus_page(va) + (va & 0xfff)] = d.pkt->payload[i];
        }
    EXPECT_EQ(b().dma2.memory, want) << "memory as if written in order";
}

TEST_F(incoming_dma_test, window_that_makes_no_sense) {
    for (const std::string& error : b().errors)
        EXPECT_NE(error.find("blocks.incoming_dma.window"), std::string::npos)
            << error;
    EXPECT_EQ(b().errors.size(), 2u);
}

}  // namespace
}  // namespace test
}  // namespace prawn
