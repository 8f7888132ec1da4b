// SPDX-License-Identifier: Apache-2.0
#include "support/events.h"

#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "temp_file.h"
#include "trace/csv_writer.h"
#include "trace/observation.h"

namespace prawn {
namespace {

class recorder : public event_sink
{
public:
    void on_event(const event& e) override { events.push_back(e); }
    void on_packet(const packet_capture& p) override {
        std::string bytes;
        for (std::size_t i = 0; i < p.part_count; i++)
            bytes.append(static_cast<const char*>(p.parts[i].data),
                         p.parts[i].size);
        packets.push_back(bytes);
        sizes.push_back(p.size());
        last = p;
    }
    void flush() override { flushes++; }

    std::vector<event> events;
    std::vector<std::string> packets;
    std::vector<std::size_t> sizes;
    packet_capture last;
    int flushes = 0;
};

TEST(events, off_means_nothing_is_computed_or_kept) {
    event_log log;
    const event_source source(&log, 1, block_id::UTLB);
    EXPECT_FALSE(source.enabled());
    EXPECT_FALSE(source.capturing());
    source.emit(event_kind::UTLB_HIT);
    recorder r;
    log.attach_events(r);
    EXPECT_TRUE(source.enabled());
    EXPECT_FALSE(source.capturing());
    EXPECT_TRUE(r.events.empty());
}

TEST(events, carry_what_was_said_at_the_current_time) {
    event_log log;
    recorder r;
    log.attach_events(r);
    const event_source source(&log, 3, block_id::DMA_ENGINE);
    sc_core::sc_start(sc_core::sc_time(1234567, sc_core::SC_PS));
    source.emit(event_kind::DMA_READ_BEGIN, {3, 5, 17}, 8, 4096);
    ASSERT_EQ(r.events.size(), 1u);
    const event& e = r.events[0];
    EXPECT_EQ(e.time_ps, 1234567u);
    EXPECT_EQ(e.node, 3);
    EXPECT_EQ(e.block, block_id::DMA_ENGINE);
    EXPECT_EQ(e.kind, event_kind::DMA_READ_BEGIN);
    EXPECT_EQ(e.message.key(), 0x0003'0005'0000'0011u);
    EXPECT_EQ(e.a, 8u);
    EXPECT_EQ(e.b, 4096u);
}

TEST(events, a_block_without_log_is_silent) {
    const event_source source(nullptr, 0, block_id::IPT);
    EXPECT_FALSE(source.enabled());
    source.emit(event_kind::IPT_OK);
    const byte_span part{"x", 1};
    source.capture(link_direction::TX, &part, 1);
    recorder r;
    EXPECT_THROW(event_log::none().attach_events(r), std::logic_error);
    EXPECT_THROW(event_log::none().attach_packets(r), std::logic_error);
}

TEST(events, sinks_are_served_once_and_can_leave) {
    event_log log;
    recorder a;
    recorder b;
    log.attach_events(a);
    log.attach_events(a);
    log.attach_events(b);
    const event_source source(&log, 0, block_id::CSR);
    source.emit(event_kind::DOORBELL);
    EXPECT_EQ(a.events.size(), 1u);
    EXPECT_EQ(b.events.size(), 1u);
    log.detach(a);
    source.emit(event_kind::DOORBELL);
    EXPECT_EQ(a.events.size(), 1u);
    EXPECT_EQ(b.events.size(), 2u);
    log.flush();
    EXPECT_EQ(a.flushes, 0);
    EXPECT_EQ(b.flushes, 1);
    log.detach(b);
    EXPECT_FALSE(log.enabled());
}

TEST(events, packets_come_in_parts) {
    event_log log;
    recorder r;
    log.attach_packets(r);
    EXPECT_FALSE(log.enabled());
    const event_source source(&log, 2, block_id::LINK_MAC);
    const byte_span parts[] = {{"head", 4}, {"payload", 7}, {"crc", 3}};
    source.capture(link_direction::RX, parts, 3);
    ASSERT_EQ(r.packets.size(), 1u);
    EXPECT_EQ(r.packets[0], "headpayloadcrc");
    EXPECT_EQ(r.sizes[0], 14u);
    EXPECT_EQ(r.last.node, 2);
    EXPECT_EQ(r.last.direction, link_direction::RX);
}

TEST(events, identity_says_what_it_names) {
    EXPECT_FALSE(message_id{}.has_context());
    EXPECT_FALSE(message_id{}.has_message());
    const message_id context = message_id::of_context(1, 2);
    EXPECT_TRUE(context.has_context());
    EXPECT_FALSE(context.has_message());
    EXPECT_TRUE((message_id{1, 2, 0}.has_message()));
}

TEST(events, every_stage_has_two_ends_and_every_kind_a_name) {
    std::multiset<std::string> begins;
    std::multiset<std::string> ends;
    std::set<std::string> ids;
    for (std::size_t i = 0; i < EVENT_KIND_COUNT; i++) {
        const event_kind_info& k = info(static_cast<event_kind>(i));
        EXPECT_TRUE(ids.insert(k.id).second) << k.id;
        if (k.phase == event_phase::BEGIN)
            begins.insert(k.name);
        if (k.phase == event_phase::END)
            ends.insert(k.name);
        if (k.phase == event_phase::BEGIN || k.phase == event_phase::END) {
            EXPECT_STREQ(k.a, "tag") << k.id;
        }
    }
    EXPECT_FALSE(begins.empty());
    EXPECT_EQ(begins, ends);
    std::set<std::string> blocks;
    for (std::size_t i = 0; i < BLOCK_COUNT; i++)
        EXPECT_TRUE(blocks.insert(name(static_cast<block_id>(i))).second);
    EXPECT_STREQ(info(static_cast<event_kind>(255)).id, "NONE");
    EXPECT_STREQ(name(static_cast<block_id>(255)), "?");
}

// Numbers are in files: these may never change.
TEST(events, numbers_stay) {
    EXPECT_EQ(EVENT_STREAM_VERSION, 1u);
    EXPECT_EQ(static_cast<int>(event_kind::DOORBELL), 10);
    EXPECT_EQ(static_cast<int>(event_kind::CHECK_FAILED), 57);
    EXPECT_EQ(static_cast<int>(block_id::DMA_ENGINE), 7);
    EXPECT_EQ(static_cast<int>(block_id::PEERS), 21);
    EXPECT_EQ(static_cast<int>(block_id::PTP_CLOCK), 22);
}

TEST(csv, one_line_for_each_event) {
    const temp_file file;
    {
        csv_writer csv(file.path());
        event e;
        e.time_ps = 5'000'000'000'123;
        e.node = 1;
        e.block = block_id::NOTIFIER;
        e.kind = event_kind::NOTIFICATION_WRITTEN;
        e.message = {0, 2, 9};
        e.a = 1;
        e.b = 33;
        csv.on_event(e);
        e.message = message_id::of_context(0, 2);
        csv.on_event(e);
        e.message = {};
        csv.on_event(e);
    }
    EXPECT_EQ(file.content(),
              "# prawn-events 1\n"
              "time_ps,node,block,kind,source_node,context,message,a,b\n"
              "5000000000123,1,notifier,NOTIFICATION_WRITTEN,0,2,9,1,33\n"
              "5000000000123,1,notifier,NOTIFICATION_WRITTEN,0,2,,1,33\n"
              "5000000000123,1,notifier,NOTIFICATION_WRITTEN,,,,1,33\n");
}

TEST(csv, an_impossible_path_is_refused_in_one_line) {
    try {
        csv_writer csv("/nonexistent/x.csv");
        FAIL();
    } catch (const std::runtime_error& e) {
        const std::string what = e.what();
        EXPECT_NE(what.find("/nonexistent/x.csv"), std::string::npos);
        EXPECT_EQ(what.find('\n'), std::string::npos);
    }
    EXPECT_THROW(csv_writer("/"), std::runtime_error);
}

TEST(csv, a_full_disk_ends_the_file_and_nothing_else) {
    csv_writer csv("/dev/full");
    EXPECT_FALSE(csv.ok());
    csv.on_event(event());
    csv.flush();
    EXPECT_FALSE(csv.ok());
}

TEST(observation, switches_on_what_is_wanted_and_off_again) {
    event_log log;
    const temp_file pcapng;
    const temp_file perfetto;
    const temp_file csv;
    const event_source source(&log, 0, block_id::LINK_MAC);
    {
        observation none(log, {}, "");
        EXPECT_FALSE(log.enabled());
        EXPECT_FALSE(log.capturing());
    }
    {
        observation packets(log, {pcapng.path(), "", "", ""}, "profile p");
        EXPECT_FALSE(log.enabled());
        EXPECT_TRUE(log.capturing());
    }
    {
        observation all(log, {pcapng.path(), perfetto.path(), csv.path(), ""},
                        "profile p");
        EXPECT_TRUE(log.enabled());
        source.emit(event_kind::TX_BEGIN);
        const byte_span part{"x", 1};
        source.capture(link_direction::TX, &part, 1);
        all.flush();
        EXPECT_NE(csv.content().find("TX_BEGIN"), std::string::npos);
    }
    EXPECT_FALSE(log.enabled());
    EXPECT_FALSE(log.capturing());
    EXPECT_NE(pcapng.content().find("profile p"), std::string::npos);
    EXPECT_NE(perfetto.content().find("\"tx\""), std::string::npos);
    EXPECT_EQ(perfetto.content().substr(perfetto.content().size() - 3),
              "\n]\n");
}

TEST(observation, a_bad_file_attaches_nothing) {
    event_log log;
    const temp_file csv;
    EXPECT_THROW(
        observation(log, {"", "/nonexistent/t.json", csv.path(), ""}, ""),
        std::runtime_error);
    EXPECT_THROW(observation(log, {csv.path(), "", csv.path(), ""}, ""),
                 std::runtime_error);
    EXPECT_THROW(observation(log, {"", "", csv.path(), csv.path()}, ""),
                 std::runtime_error);
    EXPECT_FALSE(log.enabled());
    EXPECT_FALSE(log.capturing());
}

}  // namespace
}  // namespace prawn
