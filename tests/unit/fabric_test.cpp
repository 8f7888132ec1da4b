// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fabric_bench.h"

namespace prawn {
namespace test {
namespace {

// Profile of the bench: 2 bytes/ns, 8 bytes of framing, 100 ns of link, 30 ns
// of switch, 4 credits.
constexpr unsigned CREDITS = 4;
double length_ns(unsigned bytes) {
    return (64 + bytes + 4 + 8) / 2.0;
}

timing_profile wide() {
    timing_profile p = the_profile();
    p.link.credits = 32;
    return p;
}

struct bench {
    network alone{"alone", {1, "link"}};
    network pair{"pair", {2, "link"}};
    network four{"four", {4, "switch"}};
    network sixteen{"sixteen", {16, "switch"}, false, wide()};
    network shy_pair{"shy_pair", {2, "link"}, true};
    network shy_four{"shy_four", {4, "switch"}, true};
    std::vector<std::string> errors;

    bench() {
        // Must be tried before the simulation starts.
        const fabric_config wrong[] = {
            {0, "switch"}, {17, "switch"}, {3, "link"}, {2, "ring"}};
        for (const fabric_config& config : wrong) {
            counter_registry counters{PRAWN_CONTEXTS};
            try {
                fabric one(sc_core::sc_gen_unique_name("wrong"), config,
                           the_profile(), counters);
                errors.emplace_back("accepted");
            } catch (const std::invalid_argument& e) {
                errors.emplace_back(e.what());
            }
        }
    }
    std::vector<network*> all() {
        return {&alone, &pair, &four, &sixteen, &shy_pair, &shy_four};
    }
};

class fabric_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench;
        return *one;
    }
    void SetUp() override {
        for (network* n : b().all())
            n->clear();
    }
    static sc_time latency(network& n, unsigned from, unsigned to,
                           unsigned bytes) {
        const std::size_t before = n.host(to).when.size();
        const sc_time start = sc_time_stamp();
        n.start(from, to, 1, bytes);
        run(100000);
        EXPECT_EQ(n.host(to).when.size(), before + 1);
        return n.host(to).when.back() - start;
    }
};

TEST_F(fabric_test, wrong_configurations_say_what_to_mend) {
    ASSERT_EQ(b().errors.size(), 4u);
    EXPECT_EQ(b().errors[0], "fabric: nodes = 0: choose 1 to 16");
    EXPECT_EQ(b().errors[1], "fabric: nodes = 17: choose 1 to 16");
    EXPECT_EQ(b().errors[2],
              "fabric: topology = \"link\" joins 2 nodes, not 3: choose "
              "\"switch\"");
    EXPECT_EQ(b().errors[3],
              "fabric: topology = \"ring\": choose \"link\" or \"switch\"");
}

TEST_F(fabric_test, latency_is_the_sum_of_its_parts) {
    for (unsigned bytes : {0U, 1U, 100U, 4096U}) {
        EXPECT_EQ(latency(b().pair, 0, 1, bytes), ns(length_ns(bytes) + 100));
        EXPECT_EQ(latency(b().pair, 1, 0, bytes), ns(length_ns(bytes) + 100));
        // Cut-through: one serialization, two links, the switch.
        EXPECT_EQ(latency(b().four, 0, 3, bytes),
                  ns(length_ns(bytes) + 100 + 30 + 100));
        EXPECT_EQ(latency(b().sixteen, 15, 0, bytes),
                  ns(length_ns(bytes) + 100 + 30 + 100));
    }
}

TEST_F(fabric_test, own_node) {
    EXPECT_EQ(latency(b().alone, 0, 0, 100), ns(length_ns(100) + 100));
    EXPECT_EQ(latency(b().pair, 1, 1, 100), ns(length_ns(100) + 100));
    EXPECT_EQ(latency(b().four, 2, 2, 100), ns(length_ns(100) + 230));
}

TEST_F(fabric_test, link_both_ways_and_loops_at_once) {
    network& n = b().pair;
    for (unsigned from : {0U, 1U})
        for (unsigned to : {0U, 1U})
            n.start(from, to, 100, 64);
    run(200000);
    for (unsigned to : {0U, 1U}) {
        EXPECT_EQ(n.host(to).got, (std::vector<unsigned>{100, 100}));
        EXPECT_TRUE(n.host(to).in_order);
    }
    n.expect_all_credits();
}

// Four packets in flight, a round trip of a credit is the packet, two links:
// bandwidth is what the credits allow, no more and no less.
TEST_F(fabric_test, bandwidth_with_few_credits) {
    network& n = b().pair;
    const sc_time start = sc_time_stamp();
    n.start(0, 1, 40, 24);  // 50 ns each
    run(100000);
    ASSERT_EQ(n.host(1).total(), 40u);
    // The first four leave back to back, then one credit comes back 250 ns
    // after its packet began.
    const sc_time last = n.host(1).when.back();
    EXPECT_EQ(last - start, ns(9 * 250 + 4 * 50 + 100));
}

TEST_F(fabric_test, bandwidth_with_many_credits) {
    network& n = b().sixteen;
    const sc_time start = sc_time_stamp();
    n.start(0, 1, 200, 24);
    run(100000);
    ASSERT_EQ(n.host(1).total(), 200u);
    EXPECT_EQ(n.host(1).when.back() - start, ns(200 * 50 + 230));
}

TEST_F(fabric_test, stalled_receiver_holds_exactly_its_credits) {
    network& n = b().pair;
    n.host(1).stalled = true;
    n.start(0, 1, 20, 64);
    run(100000);
    EXPECT_EQ(n.card(0).sent[1], CREDITS);
    n.host(1).release();
    run(100000);
    EXPECT_EQ(n.host(1).total(), 20u);
    n.expect_all_credits();

    network& s = b().four;
    s.host(1).stalled = true;
    s.start(0, 1, 20, 64);
    run(100000);
    EXPECT_EQ(s.card(0).sent[1], 2 * CREDITS) << "switch and receiver";
    s.host(1).release();
    run(100000);
    EXPECT_EQ(s.host(1).total(), 20u);
    s.expect_all_credits();
}

TEST_F(fabric_test, blocked_destination_delays_no_other) {
    network& n = b().sixteen;
    const auto all_to_all = [&n](unsigned packets) {
        const sc_time start = sc_time_stamp();
        for (unsigned from = 0; from < 16; from++) {
            n.card(from).backlog.assign(16, packets);
            n.card(from).bytes = 1000;
            n.card(from).go();
        }
        run(10000000);
        sc_time last;
        for (unsigned to = 1; to < 16; to++) {
            EXPECT_EQ(n.host(to).got, std::vector<unsigned>(16, packets));
            last = std::max(last, n.host(to).when.back());
        }
        return last - start;
    };
    const sc_time free = all_to_all(30);
    n.clear();
    n.host(0).stalled = true;
    const sc_time blocked = all_to_all(30);
    EXPECT_EQ(n.host(0).total(), 0u);
    EXPECT_LE(blocked, free) << "the others have the bandwidth for themselves";
    // 15 destinations, 30 packets of each source, at the links' full rate; a
    // packet each for what the blocked one took before it blocked.
    const double ideal = 15 * 30 * length_ns(1000);
    EXPECT_LE(blocked, ns(1.15 * ideal));
    n.host(0).release();
    run(1000000);
    EXPECT_EQ(n.host(0).got, std::vector<unsigned>(16, 30));
    n.expect_all_credits();
}

TEST_F(fabric_test, switch_is_fair) {
    network& n = b().sixteen;
    for (unsigned from = 1; from < 16; from++)
        n.start(from, 0, 100, 500);
    run(15 * 50 * length_ns(500));
    const endpoint::host_side& h = n.host(0);
    ASSERT_GT(h.total(), 700u) << "the output is never idle";
    for (unsigned from = 1; from < 16; from++) {
        EXPECT_GE(h.got[from], 49u);
        EXPECT_LE(h.got[from], 51u);
    }
    // All came in the same instant: port order, then in turn.
    for (unsigned i = 0; i < 45; i++)
        EXPECT_EQ(h.order[i], i % 15 + 1);
    run(1000000);
    EXPECT_EQ(h.total(), 1500u);
}

// Short packets do not get more turns than long ones; the output is shared by
// packets and never idle.
TEST_F(fabric_test, output_sends_one_packet_at_a_time) {
    network& n = b().four;
    n.start(0, 3, 3, 1000);
    n.start(1, 3, 3, 100);
    run(100000);
    const endpoint::host_side& h = n.host(3);
    ASSERT_EQ(h.total(), 6u);
    for (unsigned i = 1; i < 6; i++)
        EXPECT_GE(h.when[i] - h.when[i - 1],
                  ns(length_ns(h.order[i] == 0 ? 1000 : 100)))
            << i;
}

TEST_F(fabric_test, destination_that_does_not_exist) {
    network& n = b().four;
    const auto before = count(n.counters, "fabric.misrouted");
    EXPECT_TRUE(put(n.dut.in(0), make_packet(0, 4, 8)));
    EXPECT_TRUE(put(n.dut.in(0), make_packet(0, 0xffff, 8)));
    run(10000);
    EXPECT_EQ(count(n.counters, "fabric.misrouted"), before + 2);
    n.expect_all_credits();
}

TEST_F(fabric_test, credits_that_nobody_had) {
    for (network* n : {&b().pair, &b().four}) {
        const auto before = count(n->counters, "fabric.credit_errors");
        put(n->dut.taken_in(0), 3U);
        run(10000);
        EXPECT_EQ(count(n->counters, "fabric.credit_errors"), before + 1);
        n->expect_all_credits();
    }
}

// Last of those that use these networks as cards do: it spends credits that
// the link_mac believes it has.
TEST_F(fabric_test, sending_without_credit_is_refused) {
    network& n = b().alone;
    n.host(0).stalled = true;
    for (unsigned i = 0; i < CREDITS; i++)
        EXPECT_TRUE(put(n.dut.in(0), with_crc(make_packet(0, 0, 8))));
    EXPECT_FALSE(put(n.dut.in(0), with_crc(make_packet(0, 0, 8))));
    n.host(0).release();
    run(1000);
    EXPECT_TRUE(put(n.dut.in(0),
                    with_crc(make_packet(0, 0, 8, PRAWN_PACKET_TYPE_DATA, 9))));
    run(1000);
}

// Traffic between all nodes with resets of cards at random instants: what
// arrives is in order and intact, and no credit is lost or invented.
void random_resets(network& n, unsigned seed) {
    std::mt19937_64 random(seed);
    for (unsigned round = 0; round < 300; round++) {
        for (auto& c : n.cards) {
            for (unsigned& waiting : c->backlog)
                waiting = static_cast<unsigned>(random() % 6);
            c->bytes = static_cast<unsigned>(random() % 600);
            c->host.stalled = random() % 5 == 0;
            c->go();
        }
        sc_core::sc_start(
            sc_time(static_cast<double>(random() % 900000), sc_core::SC_PS));
        if (random() % 2)
            n.card(static_cast<unsigned>(random() % n.nodes())).mac.reset();
        for (auto& c : n.cards)
            if (random() % 2)
                c->host.release();
    }
    for (auto& c : n.cards) {
        c->backlog.assign(n.nodes(), 0);
        c->host.release();
    }
    run(1000000);
    n.expect_all_credits();
    unsigned total = 0;
    for (auto& c : n.cards) {
        EXPECT_TRUE(c->host.in_order);
        EXPECT_EQ(count(c->counters, "link_mac.rx_bad_crc"), 0u);
        total += c->host.total();
    }
    EXPECT_GT(total, 500u);
    for (auto& c : n.cards)  // and it still works
        for (unsigned to = 0; to < n.nodes(); to++)
            n.start(c->env.node, to, 10, 64);
    for (auto& c : n.cards) {
        c->host.got.assign(n.nodes(), 0);
    }
    run(1000000);
    for (auto& c : n.cards)
        EXPECT_EQ(c->host.got, std::vector<unsigned>(n.nodes(), 10));
}

TEST_F(fabric_test, credits_survive_resets_link) {
    random_resets(b().pair, 51);
}
TEST_F(fabric_test, credits_survive_resets_switch) {
    random_resets(b().four, 52);
}
TEST_F(fabric_test, credits_survive_resets_of_sixteen) {
    random_resets(b().sixteen, 53);
}
// Twins hold packets back in both directions; they are not reset with a card.
TEST_F(fabric_test, credits_survive_resets_behind_twins) {
    random_resets(b().shy_pair, 54);
    random_resets(b().shy_four, 55);
}

TEST_F(fabric_test, the_same_twice) {
    const auto trace = [](network& n) {
        n.clear();
        const sc_time start = sc_time_stamp();
        for (unsigned from = 0; from < 4; from++)
            for (unsigned to = 0; to < 4; to++)
                n.start(from, to, 20, 100 * from + 50);
        run(1000000);
        std::vector<std::pair<unsigned, std::uint64_t>> seen;
        for (unsigned to = 0; to < 4; to++)
            for (std::size_t i = 0; i < n.host(to).when.size(); i++)
                seen.emplace_back(n.host(to).order[i],
                                  (n.host(to).when[i] - start).value());
        return seen;
    };
    trace(b().four);  // round robin pointers are where it leaves them
    const auto first = trace(b().four);
    EXPECT_EQ(first.size(), 320u);
    EXPECT_EQ(trace(b().four), first);
}

}  // namespace
}  // namespace test
}  // namespace prawn
