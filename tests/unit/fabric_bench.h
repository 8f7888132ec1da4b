// SPDX-License-Identifier: Apache-2.0
// Fabrics with real link_macs and simple hosts, for fabric_test.

#ifndef PRAWN_TESTS_UNIT_FABRIC_BENCH_H
#define PRAWN_TESTS_UNIT_FABRIC_BENCH_H

#include <memory>
#include <random>
#include <vector>

#include "fabric/fabric.h"
#include "nic/link_mac.h"
#include "receive_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {

// A card of which only the link's end exists. Sends, for each destination in
// turn, as fast as it is let; checks what arrives: order within each source,
// and the payload.
struct endpoint : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env;
    link_mac mac;
    sink<control_reply> replies{"replies"};

    // What is still to be sent, by destination, and how long.
    std::vector<unsigned> backlog;
    unsigned bytes = 64;
    std::vector<std::uint32_t> sent;

    struct host_side : put_if<packet_ref> {
        bool stalled = false;
        std::vector<unsigned> got;             // by source
        std::vector<std::uint64_t> got_bytes;  // by source
        std::vector<std::uint32_t> last;       // number, by source
        std::vector<sc_time> when;
        std::vector<unsigned> order;  // sources as they came
        bool in_order = true;
        sc_core::sc_event room_event;

        bool try_put(packet_ref& p) override {
            if (stalled)
                return false;
            const unsigned from = p->head.source_node;
            in_order = in_order && p->head.message > last[from];
            last[from] = p->head.message;
            got[from]++;
            got_bytes[from] += p->head.payload_length;
            when.push_back(sc_time_stamp());
            order.push_back(from);
            p.reset();
            return true;
        }
        const sc_core::sc_event& room() const override { return room_event; }
        void release() {
            stalled = false;
            room_event.notify(sc_core::SC_ZERO_TIME);
        }
        unsigned total() const {
            unsigned sum = 0;
            for (unsigned n : got)
                sum += n;
            return sum;
        }
    } host;

    endpoint(sc_core::sc_module_name name, const timing_profile& profile,
             unsigned node, unsigned nodes) :
        sc_core::sc_module(name),
        env{static_cast<std::uint16_t>(node), static_cast<std::uint16_t>(nodes),
            &profile, &counters, nullptr},
        mac("mac", env),
        backlog(nodes),
        sent(nodes) {
        mac.packet_out.bind(host);
        mac.control_out.bind(replies);
        host.got.resize(nodes);
        host.got_bytes.resize(nodes);
        host.last.resize(nodes);
        SC_HAS_PROCESS(endpoint);
        SC_METHOD(feed);
        dont_initialize();
        sensitive << m_go << mac.packet_in().room();
    }
    void go() { m_go.notify(sc_core::SC_ZERO_TIME); }

    // As outgoing_fifo does: the destinations in turn, a refusal concerns one.
    void feed() {
        const auto nodes = static_cast<unsigned>(backlog.size());
        for (unsigned tries = 0; tries < nodes;) {
            const unsigned to = m_turn;
            m_turn = (m_turn + 1) % nodes;
            if (backlog[to] == 0) {
                tries++;
                continue;
            }
            packet_ref p = make_packet(env.node, to, bytes,
                                       PRAWN_PACKET_TYPE_DATA, sent[to] + 1);
            if (!mac.packet_in().try_put(p)) {
                tries++;
                continue;
            }
            sent[to]++;
            backlog[to]--;
            tries = 0;
        }
    }
    void clear() {
        const std::size_t n = backlog.size();
        backlog.assign(n, 0);
        sent.assign(n, 0);
        host.got.assign(n, 0);
        host.got_bytes.assign(n, 0);
        host.last.assign(n, 0);
        host.when.clear();
        host.order.clear();
        host.in_order = true;
        bytes = 64;
        host.release();
    }

private:
    unsigned m_turn = 0;
    sc_core::sc_event m_go;
};

// A fabric with an endpoint at each port; with twins that refuse between link
// and card if wanted.
struct network : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    timing_profile profile;
    fabric dut;
    std::vector<std::unique_ptr<endpoint>> cards;
    std::vector<std::unique_ptr<twin<packet_ref>>> twins;

    network(sc_core::sc_module_name name, const fabric_config& config,
            bool with_twins = false,
            const timing_profile& timing = the_profile()) :
        sc_core::sc_module(name),
        profile(timing),
        dut("fabric", config, profile, counters) {
        for (unsigned node = 0; node < config.nodes; node++) {
            const std::string card = "card" + std::to_string(node);
            cards.push_back(std::make_unique<endpoint>(card.c_str(), profile,
                                                       node, config.nodes));
            link_mac& mac = cards.back()->mac;
            mac.credit_out.bind(dut.taken_in(node));
            dut.credit_out[node].bind(mac.credit_in());
            if (with_twins) {
                mac.link_out.bind(add_twin(2 * node, dut.in(node)));
                dut.out[node].bind(add_twin(2 * node + 1, mac.link_in()));
            } else {
                mac.link_out.bind(dut.in(node));
                dut.out[node].bind(mac.link_in());
            }
        }
    }
    put_if<packet_ref>& add_twin(unsigned number, put_if<packet_ref>& behind) {
        const std::string name = "twin" + std::to_string(number);
        twins.push_back(std::make_unique<twin<packet_ref>>(name.c_str(), number,
                                                           ns(150), 3));
        twins.back()->out.bind(behind);
        return *twins.back();
    }
    endpoint& card(unsigned node) { return *cards[node]; }
    endpoint::host_side& host(unsigned node) { return cards[node]->host; }
    unsigned nodes() const { return dut.nodes(); }

    void start(unsigned from, unsigned to, unsigned packets, unsigned bytes) {
        card(from).backlog[to] = packets;
        card(from).bytes = bytes;
        card(from).go();
    }
    // Nothing under way: every credit is at its card or on its way back.
    void expect_all_credits() {
        for (unsigned from = 0; from < nodes(); from++)
            for (unsigned to = 0; to < nodes(); to++)
                EXPECT_EQ(
                    card(from).mac.credits(to) + dut.credits_pending(from, to),
                    profile.link.credits)
                    << from << " to " << to;
    }
    void clear() {
        for (auto& c : cards)
            c->clear();
        run(100000);
        for (auto& c : cards)
            c->clear();
        settle();
    }
};

}  // namespace test
}  // namespace prawn

#endif
