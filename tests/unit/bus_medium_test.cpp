// SPDX-License-Identifier: Apache-2.0
#include "host/bus_medium.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "host/completion_window.h"

namespace prawn {
namespace {

using job = bus_medium::job;

// The same rules, one burst at a time.
class burst_by_burst
{
public:
    void add(unsigned flow, const job& j) { m_flows[flow].push_back(j); }
    void run(std::vector<bus_medium::finished>& out) {
        for (;;) {
            int chosen = -1;
            std::uint64_t next = bus_medium::NEVER;
            for (unsigned i = 1; i <= bus_medium::FLOWS; i++) {
                const unsigned f = (m_last + i) % bus_medium::FLOWS;
                if (m_flows[f].empty())
                    continue;
                if (m_flows[f].front().at <= m_free) {
                    chosen = static_cast<int>(f);
                    break;
                }
                next = std::min(next, m_flows[f].front().at);
            }
            if (chosen < 0) {
                if (next == bus_medium::NEVER)
                    return;
                m_free = next;
                continue;
            }
            m_last = static_cast<unsigned>(chosen);
            job& j = m_flows[m_last].front();
            const bool over = --j.bursts == 0;
            m_free += over ? j.tail : j.burst;
            if (over) {
                if (j.user)
                    out.push_back({j.user, m_free});
                m_flows[m_last].pop_front();
            }
        }
    }

private:
    std::deque<job> m_flows[bus_medium::FLOWS];
    std::uint64_t m_free = 0;
    unsigned m_last = bus_medium::FLOWS - 1;
};

TEST(bus_medium, one_job) {
    bus_medium m;
    int a = 0;
    EXPECT_TRUE(m.idle(0));
    EXPECT_EQ(m.next_end(), bus_medium::NEVER);
    m.add(3, {100, 4, 10, 7, &a});
    EXPECT_FALSE(m.idle(100));
    EXPECT_EQ(m.next_end(), 137u);
    std::vector<bus_medium::finished> out;
    m.advance(130, out);  // the last burst starts at 130: not before it
    EXPECT_TRUE(out.empty());
    m.advance(131, out);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].user, &a);
    EXPECT_EQ(out[0].end, 137u);
    EXPECT_FALSE(m.idle(136));
    EXPECT_TRUE(m.idle(137));
    EXPECT_EQ(m.busy(), 37u);
}

TEST(bus_medium, turns_after_every_burst) {
    bus_medium m;
    int large = 0, small = 0;
    m.add(0, {0, 16, 100, 100, &large});
    m.add(5, {250, 1, 0, 10, &small});
    std::vector<bus_medium::finished> out;
    m.advance(10000, out);
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].user, &small);
    EXPECT_EQ(out[0].end, 310u);  // the burst under way ends at 300
    EXPECT_EQ(out[1].end, 1610u);
}

TEST(bus_medium, arrival_at_the_end_of_a_burst_takes_part) {
    bus_medium m;
    int a = 0, b = 0;
    m.add(0, {0, 2, 100, 100, &a});
    std::vector<bus_medium::finished> out;
    m.advance(100, out);
    m.add(1, {100, 1, 0, 30, &b});
    EXPECT_EQ(m.next_end(), 130u);
    m.advance(bus_medium::NEVER, out);
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].user, &b);
    EXPECT_EQ(out[1].end, 230u);
}

TEST(bus_medium, starts_at_once_when_idle) {
    bus_medium m;
    int a = 0;
    EXPECT_EQ(m.start_now(50, 20), 70u);
    EXPECT_FALSE(m.idle(60));
    m.add(0, {60, 1, 0, 5, &a});
    EXPECT_EQ(m.next_end(), 75u);
}

// Whatever the jobs and however time is cut, the result is that of the burst
// by burst simulation, and next_end() is right each time.
TEST(bus_medium, equals_burst_by_burst) {
    std::mt19937 random(7);
    for (int round = 0; round < 400; round++) {
        bus_medium m;
        burst_by_burst r;
        struct planned {
            unsigned flow;
            job j;
        };
        std::vector<planned> plan;
        std::vector<int> names(60);
        std::uint64_t at = 0;
        const unsigned flows = 1 + random() % bus_medium::FLOWS;
        for (std::size_t i = 0; i < names.size(); i++) {
            at += random() % 3 ? random() % 200 : random() % 3000;
            job j;
            j.at = at;
            j.bursts =
                random() % 2 ? 1 : 1 + static_cast<unsigned>(random()) % 40;
            j.burst = 1 + random() % 50;
            j.tail = 1 + random() % 50;
            j.user = random() % 8 ? &names[i] : nullptr;
            plan.push_back({static_cast<unsigned>(random()) % flows, j});
        }
        std::vector<bus_medium::finished> expected, out;
        for (const planned& p : plan)
            r.add(p.flow, p.j);
        r.run(expected);

        // Jobs are added when they arrive, or some time ahead.
        std::size_t next = 0;
        std::uint64_t now = 0;
        while (next < plan.size() || m.next_end() != bus_medium::NEVER) {
            const std::size_t before = out.size();
            const std::uint64_t promised = m.next_end();
            std::uint64_t to = now + random() % 500;
            if (next < plan.size())
                to = std::min(to, plan[next].j.at);
            m.advance(to, out);
            if (out.size() > before) {
                EXPECT_EQ(out[before].end, promised);
            } else {
                EXPECT_EQ(m.next_end(), promised);
            }
            now = to;
            const std::uint64_t ahead = random() % 4 ? 0 : random() % 700;
            while (next < plan.size() && plan[next].j.at <= now + ahead) {
                m.add(plan[next].flow, plan[next].j);
                next++;
            }
        }
        ASSERT_EQ(out.size(), expected.size());
        for (std::size_t i = 0; i < out.size(); i++) {
            ASSERT_EQ(out[i].user, expected[i].user) << round << " " << i;
            ASSERT_EQ(out[i].end, expected[i].end) << round << " " << i;
        }
    }
}

// A burst that arrives can shift the others so that a third finds its turn
// earlier than it would have without: next_end() is no lower limit then,
// earliest_end() is.
TEST(bus_medium, an_arrival_can_make_another_job_earlier) {
    int large = 0;
    int small = 0;
    const auto fill = [&](bus_medium& m) {
        m.add(0, {0, 10, 35, 35, &large});
        m.add(1, {100, 1, 7, 7, &small});
    };
    std::vector<bus_medium::finished> out;
    bus_medium alone;
    fill(alone);
    EXPECT_EQ(alone.next_end(), 112U);  // bursts end at 70, 105, then it
    EXPECT_EQ(alone.earliest_end(0), 107U);
    bus_medium disturbed;
    fill(disturbed);
    disturbed.add(2, {1, 1, 31, 31, nullptr});
    disturbed.advance(1000, out);
    ASSERT_FALSE(out.empty());
    EXPECT_EQ(out[0].user, &small);
    EXPECT_EQ(out[0].end, 108U);  // 35, 66, 101, 108
}

TEST(bus_medium, no_job_ends_before_the_earliest_end) {
    std::mt19937 random(11);
    std::vector<int> names(200);
    unsigned compared = 0;
    for (int round = 0; round < 200; round++) {
        bus_medium m;
        std::uint64_t now = 0;
        std::vector<std::uint64_t> last(bus_medium::FLOWS, 0);
        std::vector<std::uint64_t> limit(names.size(), 0);
        std::vector<bus_medium::finished> out;
        std::size_t added = 0;
        while (added < names.size()) {
            const unsigned f =
                static_cast<unsigned>(random()) % bus_medium::FLOWS;
            job j;
            j.at = std::max(last[f], now + (random() % 3 ? 0 : random() % 300));
            last[f] = j.at;
            j.bursts = 1 + static_cast<unsigned>(random()) % 8;
            j.burst = 1 + random() % 50;
            j.tail = 1 + random() % 50;
            j.user = &names[added];
            m.add(f, j);
            added++;
            const std::uint64_t least = m.earliest_end(now);
            for (std::size_t i = 0; i < added; i++)
                limit[i] = std::max(limit[i], least);
            now += random() % 60;
            out.clear();
            m.advance(now, out);
            for (const bus_medium::finished& f2 : out) {
                const auto i = static_cast<std::size_t>(
                    static_cast<int*>(f2.user) - names.data());
                EXPECT_GE(f2.end, limit[i]);
                limit[i] = 0;
                compared++;
                names[i] = round;
            }
        }
    }
    EXPECT_GT(compared, 1000U);
}

TEST(completion_window, oldest_of_many) {
    completion_window w;
    std::mt19937 random(3);
    std::vector<std::uint64_t> open;
    for (int i = 0; i < 20000; i++) {
        if (open.size() < 300 && (open.empty() || random() % 2)) {
            open.push_back(w.begin());
        } else {
            // Mostly in order, some linger.
            const std::size_t k =
                random() % 8 ? 0
                             : static_cast<std::size_t>(random()) % open.size();
            w.end(open[k]);
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
        }
        const std::uint64_t oldest =
            open.empty() ? w.last() + 1
                         : *std::min_element(open.begin(), open.end());
        ASSERT_TRUE(w.ended(oldest - 1));
        ASSERT_TRUE(open.empty() || !w.ended(oldest));
    }
}

}  // namespace
}  // namespace prawn
