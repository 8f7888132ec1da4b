// SPDX-License-Identifier: Apache-2.0
// A recorder between a host and the bus of a card that answers by itself: what
// crosses is passed on as it is, and written down.
#include "record/recorder.h"

#include <gtest/gtest.h>

#include "host_bench.h"
#include "record/run_recording.h"
#include "recording_samples.h"
#include "temp_file.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t M = host_bench::MEMORY;
constexpr std::uint64_t PAGE = 4096;
constexpr unsigned CREDITS = 2, SLOTS = 4;

struct recorded_bench {
    temp_file file;
    recording_writer writer{file.path(), sample_header(2)};
    host_bench b{"bench", duplex_profile(), false, {CREDITS, SLOTS}, false};
    unsigned written = 0;
    recorder dut{"recorder", 1, writer, [this] { written++; }};
    std::size_t seen = 0;

    recorded_bench() { connect(b.host, b.bus, &dut); }

    // What has been written since the last call.
    std::vector<kept_record> news() {
        writer.flush();
        const read_back back(file.path());
        EXPECT_EQ(back.records.size(), written);
        std::vector<kept_record> all(
            back.records.begin() + static_cast<std::ptrdiff_t>(seen),
            back.records.end());
        seen = back.records.size();
        return all;
    }
};

class recorder_test : public testing::Test
{
protected:
    static recorded_bench& the() {
        static auto* one = new recorded_bench;
        return *one;
    }
    host_bench& b = the().b;
    std::uint8_t data[PAGE] = {};

    void SetUp() override {
        b.start();
        the().news();
        b.host.reset_card();  // forgets tables
        b.host.set_bus_master(true);
        b.card.resets = 0;
        the().news();
    }
    std::vector<kept_record> news() { return the().news(); }
    static std::vector<record_kind> kinds(const std::vector<kept_record>& all) {
        std::vector<record_kind> list;
        for (const kept_record& k : all)
            list.push_back(k.get().kind);
        return list;
    }
    using list = std::vector<record_kind>;
    void table_read(std::uint64_t address, std::uint32_t length = 64) {
        ASSERT_TRUE(
            b.ask(DMA_UTLB, 0, false, address, length, data, KERNEL_CONTEXT));
        run_ns(5000);
    }
    void doorbell() {
        b.host.write(2, 3 * PAGE, 8, 1);
        run_ns(5000);
    }
};

TEST_F(recorder_test, bar_accesses_and_their_answers) {
    const std::uint64_t begin = now_ps();
    std::uint64_t got = 0;
    b.host.write(2, 0x1008, 8, 0x1122334455667788);
    b.host.read(0, 0x54, 4, [&](std::uint64_t value) { got = value; });
    run_ns(5000);
    EXPECT_EQ(got, 0x80000054u);
    const auto all = news();
    ASSERT_EQ(kinds(all),
              (list{record_kind::BAR_WRITE, record_kind::BAR_READ,
                    record_kind::BAR_WRITTEN, record_kind::BAR_RESULT}));
    const record& w = all[0].get();
    EXPECT_EQ(w.node, 1);
    EXPECT_EQ(w.time_ps, begin);
    EXPECT_EQ(w.bar, 2);
    EXPECT_EQ(w.address, 0x1008u);
    EXPECT_EQ(w.length, 8u);
    EXPECT_EQ(w.value, 0x1122334455667788u);
    EXPECT_TRUE(w.posted);
    EXPECT_FALSE(w.nested);
    const record& r = all[1].get();
    EXPECT_EQ(r.bar, 0);
    EXPECT_EQ(r.address, 0x54u);
    EXPECT_EQ(r.length, 4u);
    EXPECT_EQ(r.order, w.order + 1);
    EXPECT_EQ(all[2].get().order, w.order);
    EXPECT_GT(all[2].get().time_ps, begin);
    EXPECT_EQ(all[3].get().order, r.order);
    EXPECT_EQ(all[3].get().value, 0x80000054u);
    EXPECT_EQ(all[3].get().length, 4u);
}

TEST_F(recorder_test, what_the_bus_lets_wait) {
    b.card.delay = sc_time(1000, SC_NS);
    for (unsigned k = 0; k < CREDITS + 1; k++)
        b.host.write(0, 8 * k, 4, k);
    run_ns(10000);
    EXPECT_EQ(kinds(news()),
              (list{record_kind::BAR_WRITE, record_kind::BAR_WRITE,
                    record_kind::BAR_WRITE, record_kind::BAR_WRITTEN,
                    record_kind::BAR_ACCEPTED, record_kind::BAR_WRITTEN,
                    record_kind::BAR_WRITTEN}));
}

TEST_F(recorder_test, an_access_from_within_an_answer) {
    b.host.read(0, 0, 4, [&](std::uint64_t) { b.host.write(0, 8, 4, 1); });
    run_ns(10000);
    const auto all = news();
    ASSERT_EQ(kinds(all),
              (list{record_kind::BAR_READ, record_kind::BAR_RESULT,
                    record_kind::BAR_WRITE, record_kind::BAR_WRITTEN}));
    EXPECT_FALSE(all[0].get().nested);
    EXPECT_TRUE(all[2].get().nested);
    EXPECT_EQ(all[2].get().time_ps, all[1].get().time_ps);
    EXPECT_EQ(all[2].get().delta, all[1].get().delta);
}

TEST_F(recorder_test, dma_with_its_data) {
    b.host.store<std::uint64_t>(M + 0x100, 0xfeedbeef);
    data[0] = 7;
    std::uint8_t other[16] = {};
    ASSERT_TRUE(b.ask(DMA_SEND, 0, false, M + 0x100, 16, other, 5));
    run_ns(5000);
    ASSERT_TRUE(b.ask(DMA_NOTIFIER, 0, true, M + 0x200, 8, data, 6));
    run_ns(5000);
    const auto all = news();
    ASSERT_EQ(kinds(all),
              (list{record_kind::DMA_READ, record_kind::DMA_WRITE}));
    const record& r = all[0].get();
    EXPECT_EQ(r.address, M + 0x100);
    EXPECT_EQ(r.length, 16u);
    EXPECT_EQ(r.context, 5);
    EXPECT_EQ(r.channel, DMA_SEND);
    EXPECT_EQ(r.status, record_status::OK);
    EXPECT_FALSE(r.late);
    EXPECT_EQ(hex_text(r.data, r.data_size),
              "efbeedfe000000000000000000000000");
    const record& w = all[1].get();
    EXPECT_EQ(w.order, r.order + 1);
    EXPECT_EQ(w.context, 6);
    EXPECT_EQ(w.channel, DMA_NOTIFIER);
    EXPECT_EQ(hex_text(w.data, w.data_size), "0700000000000000");
}

TEST_F(recorder_test, dma_that_is_refused) {
    b.host.set_bus_master(false);
    ASSERT_TRUE(b.ask(DMA_SEND, 0, false, M, 16, data, 5));
    run_ns(5000);
    ASSERT_TRUE(b.ask(DMA_SEND, 0, true, M, 4, data, 5));
    run_ns(5000);
    const auto all = news();
    ASSERT_EQ(kinds(all), (list{record_kind::BUS_MASTER, record_kind::DMA_READ,
                                record_kind::DMA_WRITE}));
    EXPECT_FALSE(all[0].get().flag);
    EXPECT_EQ(all[1].get().status, record_status::ADDRESS_ERROR);
    EXPECT_EQ(all[1].get().data_size, 0u);
    EXPECT_EQ(all[2].get().status, record_status::ADDRESS_ERROR);
    EXPECT_EQ(all[2].get().data_size, 4u);
}

TEST_F(recorder_test, a_host_that_answers_late) {
    b.host.set_hold(memory_host::hold::BEFORE_ACCESS, 1);
    ASSERT_TRUE(b.ask(DMA_SEND, 0, false, M, 16, data, 5));
    run_ns(5000);
    ASSERT_TRUE(b.ask(DMA_NOTIFIER, 1, true, M, 4, data, 5));
    run_ns(5000);
    EXPECT_TRUE(news().empty());
    b.host.release();
    const std::uint64_t at = now_ps();
    run_ns(5000);
    b.host.release();
    run_ns(5000);
    const auto all = news();
    ASSERT_EQ(kinds(all),
              (list{record_kind::DMA_READ, record_kind::DMA_ACCEPTED,
                    record_kind::DMA_WRITE}));
    const record& r = all[0].get();
    EXPECT_TRUE(r.late);
    EXPECT_EQ(r.time_ps, at);
    EXPECT_LT(r.began_ps, at - 5000000);
    EXPECT_EQ(all[1].get().order, r.order + 1);
    EXPECT_EQ(all[1].get().time_ps, at);
    EXPECT_EQ(all[2].get().order, r.order + 1);
    EXPECT_GE(all[2].get().time_ps, at + 5000000);
}

TEST_F(recorder_test, interrupts_control_and_maps) {
    b.interrupt->msix(9);
    b.interrupt->intx(true);
    run_ns(5000);
    EXPECT_EQ(b.host.interrupts().back().vector, 9u);
    EXPECT_TRUE(b.host.intx_level());
    b.host.set_attached(false);
    b.host.set_attached(true);
    b.host.reset_card();
    b.host.map(0x80000000, 2 * PAGE);
    b.host.unmap(0x80000000, PAGE);
    EXPECT_EQ(b.card.attached, 1);
    EXPECT_EQ(b.card.resets, 1u);
    const auto all = news();
    ASSERT_EQ(kinds(all),
              (list{record_kind::MSIX, record_kind::INTX, record_kind::DETACH,
                    record_kind::ATTACH, record_kind::RESET, record_kind::MAP,
                    record_kind::UNMAP}));
    EXPECT_EQ(all[0].get().vector, 9u);
    EXPECT_TRUE(all[1].get().flag);
    EXPECT_EQ(all[5].get().address, 0x80000000u);
    EXPECT_EQ(all[5].get().length, 2 * PAGE);
    EXPECT_EQ(all[6].get().length, PAGE);
}

TEST_F(recorder_test, table_pages_whole_and_then_their_changes) {
    for (std::uint64_t i = 0; i < PAGE; i += 8)
        b.host.store<std::uint64_t>(M + PAGE + i, i);
    table_read(M + PAGE + 128);
    auto all = news();
    ASSERT_EQ(kinds(all), (list{record_kind::MEMORY, record_kind::DMA_READ}));
    EXPECT_EQ(all[0].get().address, M + PAGE);
    ASSERT_EQ(all[0].get().data_size, PAGE);
    EXPECT_EQ(hex_text(all[0].get().data + 0xff8, 8), "f80f000000000000");

    table_read(M + PAGE + 512);  // known, and the same
    doorbell();
    EXPECT_EQ(kinds(news()),
              (list{record_kind::DMA_READ, record_kind::BAR_WRITE,
                    record_kind::BAR_WRITTEN}));

    b.host.store<std::uint64_t>(M + PAGE + 16, 1);
    b.host.store<std::uint32_t>(M + PAGE + 36, 2);
    b.host.write(2, 3 * PAGE + 8, 8, 1);  // no doorbell
    run_ns(5000);
    EXPECT_EQ(kinds(news()),
              (list{record_kind::BAR_WRITE, record_kind::BAR_WRITTEN}));
    b.host.write(0, PRAWN_BAR0_ADMIN_DOORBELL, 4, 1);
    run_ns(5000);
    all = news();
    ASSERT_EQ(kinds(all), (list{record_kind::MEMORY, record_kind::BAR_WRITE,
                                record_kind::BAR_WRITTEN}));
    EXPECT_EQ(all[0].get().address, M + PAGE + 16);
    EXPECT_EQ(hex_text(all[0].get().data, all[0].get().data_size),
              "0100000000000000"
              "1800000000000000"
              "2000000002000000");
    doorbell();
    EXPECT_EQ(kinds(news()),
              (list{record_kind::BAR_WRITE, record_kind::BAR_WRITTEN}));
}

TEST_F(recorder_test, pages_that_are_tables_no_longer) {
    table_read(M + 2 * PAGE);
    table_read(M + 3 * PAGE - 8, 16);  // the engine cuts it in two
    EXPECT_EQ(kinds(news()), (list{record_kind::MEMORY, record_kind::DMA_READ,
                                   record_kind::DMA_READ, record_kind::MEMORY,
                                   record_kind::DMA_READ}));
    unsigned written = 0;
    for (unsigned k = 0; k < 2 * table_pages::CHANGES_UNREAD; k++) {
        b.host.store<std::uint32_t>(M + 2 * PAGE, k + 1);
        doorbell();
        for (const kept_record& r : news())
            written += r.get().kind == record_kind::MEMORY;
    }
    EXPECT_EQ(written, table_pages::CHANGES_UNREAD + 1);
    // The other one is still followed; after a reset none is.
    b.host.store<std::uint32_t>(M + 3 * PAGE, 99);
    doorbell();
    EXPECT_EQ(news().size(), 3u);
    b.host.reset_card();
    b.host.set_bus_master(true);
    b.host.store<std::uint32_t>(M + 3 * PAGE, 100);
    news();
    doorbell();
    EXPECT_EQ(news().size(), 2u);
    // And it is written whole when it is read again.
    table_read(M + 3 * PAGE);
    EXPECT_EQ(news()[0].get().data_size, PAGE);
}

TEST(table_pages, memory_that_cannot_be_seen) {
    bool there = false;
    unsigned written = 0;
    table_pages pages(
        [&](std::uint64_t, std::uint8_t* data, std::uint32_t size) {
            std::fill_n(data, size, std::uint8_t{1});
            return there;
        },
        [&](std::uint64_t, const std::uint8_t*, std::uint32_t) { written++; });
    pages.touch(0x1000, 8);
    EXPECT_EQ(pages.count(), 0u);
    there = true;
    pages.touch(0x1000, 8);
    pages.touch(0x3000, 8);
    EXPECT_EQ(pages.count(), 2u);
    EXPECT_EQ(written, 2u);
    there = false;
    pages.compare();
    EXPECT_EQ(pages.count(), 0u);
    EXPECT_EQ(written, 2u);
}

}  // namespace
}  // namespace test
}  // namespace prawn
