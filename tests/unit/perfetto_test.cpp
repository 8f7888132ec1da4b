// SPDX-License-Identifier: Apache-2.0
#include "trace/perfetto_writer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prawn_hw.h"
#include "temp_file.h"

namespace prawn {
namespace {

using nlohmann::json;

class perfetto : public testing::Test
{
protected:
    void SetUp() override {
        m_writer = std::make_unique<perfetto_writer>(m_file.path());
    }

    void at(std::uint64_t ns, std::uint16_t node, block_id block,
            event_kind kind, message_id message = {}, std::uint64_t a = 0,
            std::uint64_t b = 0) {
        event e;
        e.time_ps = ns * 1000;
        e.node = node;
        e.block = block;
        e.kind = kind;
        e.message = message;
        e.a = a;
        e.b = b;
        m_writer->on_event(e);
    }

    json finish() {
        m_writer.reset();
        return json::parse(m_file.content());
    }

    // Entries of a phase, in the order of the file.
    static std::vector<json> of(const json& trace, const std::string& phase) {
        std::vector<json> found;
        for (const json& entry : trace)
            if (entry["ph"] == phase)
                found.push_back(entry);
        return found;
    }

    static std::int64_t ns(const json& entry, const char* key = "ts") {
        return std::llround(entry[key].get<double>() * 1000);
    }

    struct slice {
        std::int64_t begin;
        std::int64_t end;
        std::string name;
    };
    using track = std::pair<int, int>;

    // All slices by track, checked: every end has its begin, and slices of one
    // track nest.
    static std::map<track, std::vector<slice>> slices(const json& trace) {
        std::map<track, std::vector<slice>> found;
        std::map<track, std::vector<slice>> open;
        std::vector<json> entries(trace.begin(), trace.end());
        std::stable_sort(entries.begin(), entries.end(),
                         [](const json& a, const json& b) {
                             return a.value("ts", -1.0) < b.value("ts", -1.0);
                         });
        for (const json& e : entries) {
            const track t(e["pid"].get<int>(), e["tid"].get<int>());
            if (e["ph"] == "X") {
                found[t].push_back({ns(e), ns(e) + ns(e, "dur"), e["name"]});
            } else if (e["ph"] == "B") {
                open[t].push_back({ns(e), 0, e["name"]});
            } else if (e["ph"] == "E") {
                EXPECT_EQ(open[t].size(), 1u) << e;
                if (open[t].empty())
                    continue;
                slice s = open[t].back();
                open[t].pop_back();
                s.end = ns(e);
                found[t].push_back(s);
            }
        }
        for (const auto& [t, list] : open)
            EXPECT_TRUE(list.empty()) << "open at the end: " << t.second;
        for (const auto& [t, list] : found)
            for (const slice& a : list)
                for (const slice& b : list) {
                    const bool apart = a.end <= b.begin || b.end <= a.begin;
                    const bool inside =
                        (a.begin <= b.begin && b.end <= a.end) ||
                        (b.begin <= a.begin && a.end <= b.end);
                    EXPECT_TRUE(apart || inside)
                        << a.name << ' ' << a.begin << " and " << b.name << ' '
                        << b.begin;
                    EXPECT_LT(a.begin, a.end) << a.name;
                }
        return found;
    }

    temp_file m_file;
    std::unique_ptr<perfetto_writer> m_writer;
};

constexpr message_id MESSAGE{0, 3, 17};

TEST_F(perfetto, one_message_is_followed_through_both_nodes) {
    at(100, 0, block_id::CSR, event_kind::DOORBELL,
       message_id::of_context(0, 3), 1, 0);
    at(400, 0, block_id::COMMAND_QUEUE, event_kind::COMMAND_FETCHED, MESSAGE, 0,
       100'000);
    at(420, 0, block_id::UTLB, event_kind::UTLB_MISS, MESSAGE, 0x7000);
    at(420, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, MESSAGE, 1, 0x7000);
    at(900, 0, block_id::UTLB, event_kind::UTLB_WALK_END, MESSAGE, 1, 0);
    at(910, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_BEGIN, MESSAGE, 5,
       4096);
    at(1500, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_END, MESSAGE, 5, 0);
    at(1500, 0, block_id::LINK_MAC, event_kind::TX_BEGIN, MESSAGE, 1, 4164);
    at(2000, 0, block_id::LINK_MAC, event_kind::TX_END, MESSAGE, 1, 4164);
    at(2100, 1, block_id::LINK_MAC, event_kind::RX_BEGIN, MESSAGE, 1, 4164);
    at(2600, 1, block_id::LINK_MAC, event_kind::RX_END, MESSAGE, 1, 4164);
    at(2610, 1, block_id::IPT, event_kind::IPT_OK, MESSAGE, 2, 0);
    at(2620, 1, block_id::INCOMING_DMA, event_kind::INCOMING_DMA_BEGIN, MESSAGE,
       9, 4096);
    at(3000, 1, block_id::INCOMING_DMA, event_kind::INCOMING_DMA_END, MESSAGE,
       9, 0);
    at(3100, 1, block_id::NOTIFIER, event_kind::NOTIFICATION_WRITTEN, MESSAGE,
       PRAWN_NOTIFICATION_TYPE_MESSAGE, 0);
    const json trace = finish();
    const auto tracks = slices(trace);

    // The arrow starts at the doorbell, ends at the notification, passes both
    // nodes, and holds on to the begin of a slice everywhere.
    std::vector<json> arrow;
    for (const json& e : trace)
        if (e["ph"] == "s" || e["ph"] == "t" || e["ph"] == "f")
            arrow.push_back(e);
    ASSERT_EQ(arrow.size(), 9u);
    EXPECT_EQ(arrow.front()["ph"], "s");
    EXPECT_EQ(ns(arrow.front()), 100);
    EXPECT_EQ(arrow.back()["ph"], "f");
    EXPECT_EQ(ns(arrow.back()), 3100);
    std::set<int> nodes;
    std::vector<std::string> stations;
    for (const json& e : arrow) {
        EXPECT_EQ(e["id"], arrow.front()["id"]);
        EXPECT_EQ(e["bp"], "e");
        nodes.insert(e["pid"].get<int>());
        const auto& list = tracks.at({e["pid"], e["tid"]});
        const auto held =
            std::find_if(list.begin(), list.end(),
                         [&e](const slice& s) { return s.begin == ns(e); });
        ASSERT_NE(held, list.end()) << e;
        stations.push_back(held->name);
    }
    EXPECT_EQ(nodes, (std::set<int>{1, 2}));
    EXPECT_EQ(stations,
              (std::vector<std::string>{
                  "doorbell to fetch", "utlb miss", "utlb walk", "dma read",
                  "tx", "rx", "ipt ok", "incoming dma", "notification"}));
    for (const json& e : of(trace, "t"))
        EXPECT_GE(ns(e), 100);
}

TEST_F(perfetto, stages_that_overlap_get_tracks_of_their_own) {
    // Three reads open at a time, ending in another order.
    for (std::uint64_t tag = 0; tag < 3; tag++)
        at(100 + tag * 10, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_BEGIN,
           {}, tag, 64);
    at(150, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_END, {}, 1);
    // The same tag, another stage: not the same slice.
    at(155, 0, block_id::DMA_ENGINE, event_kind::DMA_WRITE_BEGIN, {}, 2, 8);
    at(160, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_END, {}, 0);
    at(170, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_END, {}, 2);
    at(175, 0, block_id::DMA_ENGINE, event_kind::DMA_WRITE_END, {}, 2);
    const json trace = finish();
    const auto tracks = slices(trace);
    EXPECT_EQ(tracks.size(), 3u);
    std::set<std::string> names;
    for (const json& e : of(trace, "M"))
        if (e["name"] == "thread_name")
            names.insert(e["args"]["name"]);
    EXPECT_EQ(names, (std::set<std::string>{"dma_engine", "dma_engine 2",
                                            "dma_engine 3"}));
}

TEST_F(perfetto, instants_at_one_time_and_beside_each_other_nest) {
    for (int i = 0; i < 5; i++)
        at(100, 0, block_id::UTLB, event_kind::UTLB_HIT, MESSAGE, 0x1000);
    at(101, 0, block_id::UTLB, event_kind::UTLB_HIT, MESSAGE, 0x2000);
    const auto tracks = slices(finish());
    EXPECT_EQ(tracks.size(), 1u);
    EXPECT_EQ(tracks.begin()->second.size(), 6u);
}

TEST_F(perfetto, a_stage_shorter_than_the_viewer_sees_is_still_seen) {
    at(100, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, {}, 1);
    at(100, 0, block_id::UTLB, event_kind::UTLB_WALK_END, {}, 1);
    at(100, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, {}, 2);
    at(105, 0, block_id::UTLB, event_kind::UTLB_WALK_END, {}, 2);
    slices(finish());
}

TEST_F(perfetto, codes_are_shown_by_name) {
    at(5, 1, block_id::IPT, event_kind::IPT_REFUSED, MESSAGE, 2,
       PRAWN_STATUS_BAD_KEY);
    at(6, 1, block_id::DMA_ENGINE, event_kind::DMA_READ_BEGIN, MESSAGE, 2,
       std::uint64_t{3} << 32 | 64);
    at(9, 1, block_id::DMA_ENGINE, event_kind::DMA_READ_END, MESSAGE, 2,
       std::uint64_t{3} << 32 | PRAWN_STATUS_DMA_ERROR);
    const json trace = finish();
    const json refused = of(trace, "X").at(0);
    EXPECT_EQ(refused["args"]["status"], "BAD_KEY");
    EXPECT_EQ(refused["args"]["export"], 2);
    EXPECT_EQ(refused["args"]["ps"], 5000);
    EXPECT_EQ(refused["args"]["message"], "0:3:17");
    EXPECT_EQ(of(trace, "B").at(0)["args"]["bytes|channel"], "64 channel 3");
    EXPECT_EQ(of(trace, "E").at(0)["args"]["status|channel"],
              "DMA_ERROR channel 3");
}

TEST_F(perfetto, levels_are_curves) {
    at(10, 0, block_id::OUTGOING_FIFO, event_kind::FIFO_IN, MESSAGE, 4164,
       4164);
    at(20, 0, block_id::OUTGOING_FIFO, event_kind::FIFO_OUT, MESSAGE, 0, 4164);
    const json trace = finish();
    const auto curve = of(trace, "C");
    ASSERT_EQ(curve.size(), 2u);
    EXPECT_EQ(curve[0]["name"], curve[1]["name"]);
    EXPECT_EQ(curve[0]["args"]["level"], 4164);
    EXPECT_EQ(curve[1]["args"]["level"], 0);
}

TEST_F(perfetto, a_reset_ends_the_stages_of_its_node_only) {
    at(10, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_BEGIN, {}, 1);
    at(10, 1, block_id::DMA_ENGINE, event_kind::DMA_READ_BEGIN, {}, 1);
    at(12, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, {}, 1);
    at(20, 0, block_id::RELIABLE, event_kind::RESET, {}, 2);
    at(30, 1, block_id::DMA_ENGINE, event_kind::DMA_READ_END, {}, 1);
    at(31, 0, block_id::DMA_ENGINE, event_kind::DMA_READ_END, {}, 1);
    const json trace = finish();
    slices(trace);
    std::map<int, std::vector<std::int64_t>> ends;
    for (const json& e : of(trace, "E"))
        ends[e["pid"]].push_back(ns(e));
    EXPECT_EQ(ends[1], (std::vector<std::int64_t>{20, 20}));
    EXPECT_EQ(ends[2], (std::vector<std::int64_t>{30}));
}

TEST_F(perfetto, odd_streams_do_no_harm) {
    // An end without begin, a begin twice, a begin in the future, numbers that
    // no table knows.
    at(10, 0, block_id::UTLB, event_kind::UTLB_WALK_END, MESSAGE, 7);
    at(11, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, MESSAGE, 7);
    at(12, 0, block_id::UTLB, event_kind::UTLB_WALK_BEGIN, MESSAGE, 7);
    at(13, 0, block_id::UTLB, event_kind::UTLB_WALK_END, MESSAGE, 7);
    at(14, 0, block_id::COMMAND_QUEUE, event_kind::COMMAND_FETCHED, MESSAGE, 0,
       ~std::uint64_t{0});
    at(15, 0xffff, static_cast<block_id>(255), static_cast<event_kind>(255));
    slices(finish());
}

TEST_F(perfetto, a_killed_run_leaves_a_readable_file) {
    at(10, 0, block_id::CSR, event_kind::DOORBELL, {}, 1);
    at(20, 0, block_id::CSR, event_kind::DOORBELL, {}, 2);
    m_writer->flush();
    // The format lets the closing bracket be absent; a strict reader does not.
    const json trace = json::parse(m_file.content() + "\n]");
    EXPECT_EQ(of(trace, "X").size(), 2u);
}

TEST_F(perfetto, many_messages_need_bounded_memory) {
    for (std::uint32_t i = 0; i < 70000; i++)
        at(10 + i, 0, block_id::OPT, event_kind::OPT_LOOKUP, {0, 1, i});
    // The oldest is forgotten and begins again, the newest goes on.
    at(80000, 0, block_id::OPT, event_kind::OPT_LOOKUP, {0, 1, 0});
    at(80001, 0, block_id::OPT, event_kind::OPT_LOOKUP, {0, 1, 69999});
    const json trace = finish();
    EXPECT_EQ(of(trace, "s").size(), 70001u);
    EXPECT_EQ(of(trace, "t").size(), 1u);
}

}  // namespace
}  // namespace prawn
