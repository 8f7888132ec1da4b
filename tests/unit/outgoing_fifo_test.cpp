// SPDX-License-Identifier: Apache-2.0
#include "nic/outgoing_fifo.h"

#include "nic/pools.h"
#include "send_harness.h"

namespace prawn::test {
namespace {

constexpr std::uint16_t NODES = 5;

struct bench {
    world w{1, NODES};
    outgoing_fifo dut;
    source<packet_ref> data{"data"};
    source<packet_ref> mgmt{"mgmt"};
    source<refusal> refuse{"refuse"};
    source<control_request> control{"control"};
    sink<packet_ref> out;
    sink<control_reply> answers;
    sink<kernel_event_request> kernel;
    twins between;
    std::uint64_t base = 0;
    std::uint32_t number = 0;

    bench() : dut("fifo", w.env) {
        data.out.bind(between.before(dut.packet_in(), "data_twin", true, 0));
        mgmt.out.bind(between.before(dut.mgmt_in(), "mgmt_twin", true));
        refuse.out.bind(
            between.before(dut.refusal_in(), "refusal_twin", false));
        control.out.bind(dut.control_in());
        dut.packet_out.bind(out);
        dut.control_out.bind(answers);
        dut.event_out.bind(kernel);
    }
    void restart() {
        dut.reset();
        between.reset();
        data.clear();
        mgmt.clear();
        refuse.clear();
        control.clear();
        run_cycles(1000);
        out.clear();
        answers.clear();
        kernel.clear();
        w.events.text.clear();
        number = 0;
        base = now_ps();
    }
    packet_ref make(std::uint16_t node, std::uint16_t length,
                    std::uint8_t type = PRAWN_PACKET_TYPE_DATA) {
        packet_ref p = packet_pool().get();
        p->head = header{};
        p->head.type = type;
        p->head.source_node = 1;
        p->head.destination_node = node;
        p->head.payload_length = length;
        p->head.message = ++number;
        return p;
    }
    refusal refused(std::uint16_t node, std::uint32_t import_id,
                    std::uint16_t status,
                    std::uint8_t type = PRAWN_PACKET_TYPE_DATA) {
        refusal r;
        r.node = node;
        r.status = status;
        r.head.type = type;
        r.head.source_node = node;
        r.head.source_epoch = 9;
        r.head.source_context = 6;
        r.head.message = 100 + import_id;
        r.head.message_offset = 8192;
        r.head.key = 0x5ec2e7;
        r.head.offset = 0x123456789;
        r.head.export_id = 44;
        r.head.import_id = import_id;
        return r;
    }
    std::uint16_t op(control_op o, std::uint32_t index = 0) {
        const std::size_t n = answers.items.size();
        control_request r;
        r.op = o;
        r.index = index;
        r.tag = 77;
        control.send(r);
        run_cycles(1);
        EXPECT_EQ(answers.items.size(), n + 1);
        EXPECT_EQ(answers.items.back().item.tag, 77u);
        return answers.items.back().item.status;
    }
    // Times are those of exact runs; with twins, wait a little.
    void settle() { run_cycles(exact() ? 1 : 200); }
    const header& head(std::size_t i) const {
        return out.items.at(i).item->head;
    }
    std::vector<std::uint32_t> messages() const {
        std::vector<std::uint32_t> m;
        for (const auto& seen : out.items)
            m.push_back(seen.item->head.message);
        return m;
    }
};
bench* b;

std::uint64_t occupancy(const packet& p) {
    return (p.wire_size() + outgoing_fifo::DATA_WIDTH - 1) /
           outgoing_fifo::DATA_WIDTH;
}

TEST(outgoing_fifo, passes_packets_on_at_its_width) {
    b->restart();
    constexpr std::uint16_t LENGTHS[] = {0, 4096, 100};
    for (const std::uint16_t length : LENGTHS)
        b->data.send(b->make(2, length));
    b->settle();
    run_cycles(400);
    ASSERT_EQ(b->out.items.size(), 3u);
    EXPECT_EQ(b->messages(), (std::vector<std::uint32_t>{1, 2, 3}));
    std::uint64_t at = outgoing_fifo::FIFO_CYCLES;
    for (std::size_t i = 0; i < 3; i++) {
        EXPECT_CYCLE(b->out.cycle(i, b->base), at);
        at += occupancy(*b->out.items[i].item);
    }
    EXPECT_EQ(b->dut.level(), 0u);
    EXPECT_EQ(b->w.events.count("FIFO_IN"), 3u);
    EXPECT_EQ(b->w.events.count("FIFO_OUT"), 3u);
}

TEST(outgoing_fifo, counts_its_level) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    b->data.send(b->make(2, 1000));
    b->mgmt.send(b->make(3, 200, PRAWN_PACKET_TYPE_MGMT));
    b->settle();
    EXPECT_EQ(b->dut.level(), 1000u + 200 + 2 * 68);
    EXPECT_GE(b->w.count("outgoing_fifo.high_water"), b->dut.level());
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(200);
    EXPECT_EQ(b->dut.level(), 0u);
}

TEST(outgoing_fifo, tells_the_kernel_when_it_rises_above_its_threshold) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    packet_ref p;
    b->dut.set_threshold(400);
    for (unsigned i = 0; i < 4; i++)
        b->dut.packet_in().try_put(p = b->make(2, 132));  // 200 on the wire
    ASSERT_EQ(b->kernel.items.size(), 1u) << "once";
    EXPECT_EQ(b->kernel.items[0].item.type, PRAWN_EVENT_TYPE_FIFO_THRESHOLD);
    EXPECT_EQ(b->kernel.items[0].item.value, 600u);
    run_cycles(50);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(200);
    EXPECT_EQ(b->dut.level(), 0u);
    b->out.accept = [](const packet_ref&) { return false; };
    for (unsigned i = 0; i < 3; i++)
        b->dut.packet_in().try_put(p = b->make(2, 132));
    EXPECT_EQ(b->kernel.items.size(), 2u) << "once more";
    b->dut.set_threshold(0);
    for (unsigned i = 0; i < 3; i++)
        b->dut.packet_in().try_put(p = b->make(3, 132));
    EXPECT_EQ(b->kernel.items.size(), 2u) << "never";
    b->dut.set_threshold(500);
    EXPECT_EQ(b->kernel.items.size(), 3u) << "it is above already";
}

TEST(outgoing_fifo, refuses_per_peer) {
    b->restart();
    b->out.accept = [](const packet_ref& p) {
        return p->head.destination_node != 2;
    };
    const unsigned depth = outgoing_fifo::params().depth;
    for (unsigned i = 0; i < depth; i++) {
        packet_ref p = b->make(2, 8);
        EXPECT_TRUE(b->dut.packet_in().try_put(p));
        EXPECT_FALSE(p) << "moved";
    }
    packet_ref extra = b->make(2, 8);
    EXPECT_FALSE(b->dut.packet_in().try_put(extra));
    EXPECT_TRUE(extra) << "untouched";
    for (unsigned i = 0; i < 100; i++) {
        packet_ref other = b->make(3, 4096);
        EXPECT_TRUE(b->dut.packet_in().try_put(other)) << "peer 3 is free";
        run_cycles(140);
    }
    EXPECT_EQ(b->out.items.size(), 100u);
    EXPECT_FALSE(b->dut.packet_in().try_put(extra));
    // Room is told when there is some.
    bool told = false;
    b->data.send(extra);
    run_cycles(1);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(400);
    told = b->data.idle();
    EXPECT_TRUE(told);
    EXPECT_EQ(b->out.items.size(), 100 + depth + 1);
}

TEST(outgoing_fifo, serves_peers_in_turn) {
    constexpr std::uint16_t NODE_LIST[] = {0, 2, 4};
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    for (unsigned i = 0; i < 3; i++) {
        packet_ref p;
        for (const std::uint16_t node : NODE_LIST)
            b->dut.packet_in().try_put(p = b->make(node, 64));
    }
    run_cycles(20);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(100);
    ASSERT_EQ(b->out.items.size(), 9u);
    for (std::size_t i = 0; i < 9; i++)
        EXPECT_EQ(b->head(i).destination_node, i % 3 * 2);
}

TEST(outgoing_fifo, sends_urgent_packets_first) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    packet_ref p;
    for (unsigned i = 0; i < 3; i++)
        b->dut.packet_in().try_put(p = b->make(2, 64));
    for (unsigned i = 0; i < 2; i++)
        b->dut.mgmt_in().try_put(p = b->make(2, 64, PRAWN_PACKET_TYPE_MGMT));
    for (std::uint32_t i = 0; i < 2; i++) {
        refusal r = b->refused(2, i, PRAWN_STATUS_BAD_KEY);
        b->dut.refusal_in().try_put(r);
    }
    run_cycles(20);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(200);
    ASSERT_EQ(b->out.items.size(), 7u);
    const std::uint8_t order[] = {
        PRAWN_PACKET_TYPE_MGMT, PRAWN_PACKET_TYPE_NACK, PRAWN_PACKET_TYPE_MGMT,
        PRAWN_PACKET_TYPE_NACK, PRAWN_PACKET_TYPE_DATA, PRAWN_PACKET_TYPE_DATA,
        PRAWN_PACKET_TYPE_DATA};
    for (std::size_t i = 0; i < 7; i++)
        EXPECT_EQ(b->head(i).type, order[i]) << i;
}

TEST(outgoing_fifo, management_has_room_of_its_own) {
    b->restart();
    b->out.accept = [](const packet_ref& p) {
        return p->head.type == PRAWN_PACKET_TYPE_MGMT;
    };
    packet_ref p;
    while (b->dut.packet_in().try_put(p = b->make(2, 8))) {
    }
    for (unsigned i = 0; i < outgoing_fifo::MGMT_RESERVE; i++)
        EXPECT_TRUE(b->dut.mgmt_in().try_put(
            p = b->make(2, 8, PRAWN_PACKET_TYPE_MGMT)));
    EXPECT_FALSE(
        b->dut.mgmt_in().try_put(p = b->make(2, 8, PRAWN_PACKET_TYPE_MGMT)));
    EXPECT_TRUE(
        b->dut.mgmt_in().try_put(p = b->make(3, 8, PRAWN_PACKET_TYPE_MGMT)));
    run_cycles(100);
    EXPECT_EQ(b->out.items.size(), outgoing_fifo::MGMT_RESERVE + 1)
        << "credits for MGMT are no credits for DATA";
}

TEST(outgoing_fifo, a_blocked_peer_delays_no_other) {
    b->restart();
    b->out.accept = [](const packet_ref& p) {
        return p->head.destination_node == 4;
    };
    for (unsigned i = 0; i < 10; i++)
        for (std::uint16_t node = 0; node < NODES; node++)
            b->data.send(b->make(node, 64));
    b->settle();
    run_cycles(1000);
    EXPECT_EQ(b->out.items.size(), 10u);
    const unsigned refused = b->out.refused;
    run_cycles(1000);
    EXPECT_EQ(b->out.refused, refused) << "waits for room, does not poll";
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(1000);
    EXPECT_EQ(b->out.items.size(), 50u);
    std::array<std::uint32_t, NODES> last{};
    for (std::size_t i = 0; i < 50; i++) {
        EXPECT_GT(b->head(i).message, last[b->head(i).destination_node]);
        last[b->head(i).destination_node] = b->head(i).message;
    }
}

TEST(outgoing_fifo, a_refusal_becomes_a_nack) {
    b->restart();
    b->refuse.send(b->refused(3, 21, PRAWN_STATUS_BAD_KEY));
    b->settle();
    run_cycles(20);
    ASSERT_EQ(b->out.items.size(), 1u);
    const header& h = b->head(0);
    EXPECT_EQ(h.version, PRAWN_PACKET_VERSION);
    EXPECT_EQ(h.type, PRAWN_PACKET_TYPE_NACK);
    EXPECT_EQ(h.flags, 0);
    EXPECT_EQ(h.source_node, 1);
    EXPECT_EQ(h.destination_node, 3);
    EXPECT_EQ(h.destination_epoch, 9);
    EXPECT_EQ(h.source_context, 6);
    EXPECT_EQ(h.payload_length, 0);
    EXPECT_EQ(h.message, 121u);
    EXPECT_EQ(h.message_offset, 8192u);
    EXPECT_EQ(h.key, 0u) << "not echoed";
    EXPECT_EQ(h.offset, 0x123456789u);
    EXPECT_EQ(h.export_id, 44u);
    EXPECT_EQ(h.import_id, 21u);
    EXPECT_EQ(h.status, PRAWN_STATUS_BAD_KEY);
    EXPECT_CYCLE(b->out.cycle(0, b->base), outgoing_fifo::FIFO_CYCLES);
    EXPECT_EQ(b->w.events.count("NACK_SENT"), 1u);
}

TEST(outgoing_fifo, one_refusal_of_each_import_waits) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    const auto merged = b->w.count("outgoing_fifo.nacks_merged");
    for (unsigned i = 0; i < 1000; i++) {
        b->refuse.send(b->refused(
            3, 21, i == 0 ? PRAWN_STATUS_BAD_KEY : PRAWN_STATUS_NO_HOST));
        b->refuse.send(b->refused(3, 22, PRAWN_STATUS_EXPORT_RANGE));
        b->refuse.send(b->refused(2, 21, PRAWN_STATUS_BAD_EXPORT));
        b->refuse.send(
            b->refused(3, 0, PRAWN_STATUS_EVENT_FULL, PRAWN_PACKET_TYPE_MGMT));
        b->refuse.send(b->refused(3, 0, PRAWN_STATUS_BAD_KEY));
    }
    run_cycles(20000);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(200);
    ASSERT_EQ(b->out.items.size(), 5u);
    EXPECT_EQ(b->w.count("outgoing_fifo.nacks_merged"), merged + 4995);
    std::map<std::pair<unsigned, std::uint32_t>, unsigned> status;
    for (std::size_t i = 0; i < 5; i++)
        status[{b->head(i).destination_node, b->head(i).import_id}] =
            b->head(i).status;
    EXPECT_EQ((status[{3, 21}]), unsigned{PRAWN_STATUS_BAD_KEY}) << "the first";
    EXPECT_EQ((status[{3, 22}]), unsigned{PRAWN_STATUS_EXPORT_RANGE});
    EXPECT_EQ((status[{2, 21}]), unsigned{PRAWN_STATUS_BAD_EXPORT});
    EXPECT_EQ((status[{3, 0}]), unsigned{PRAWN_STATUS_BAD_KEY});
    EXPECT_EQ((status[{3, outgoing_fifo::NO_IMPORT}]),
              unsigned{PRAWN_STATUS_EVENT_FULL})
        << "a refused message of the kernel belongs to no import";
    // Once it is sent, the next one counts again.
    b->refuse.send(b->refused(3, 21, PRAWN_STATUS_NO_HOST));
    run_cycles(200);
    EXPECT_EQ(b->out.items.size(), 6u);
}

TEST(outgoing_fifo, keeps_only_so_many_refusals) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    const auto dropped = b->w.count("outgoing_fifo.nacks_dropped");
    for (std::uint32_t i = 0; i < outgoing_fifo::REFUSALS + 10; i++)
        b->refuse.send(b->refused(3, i, PRAWN_STATUS_BAD_KEY));
    b->refuse.send(b->refused(2, 0, PRAWN_STATUS_BAD_KEY));
    run_cycles(2000);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(1000);
    EXPECT_EQ(b->out.items.size(), outgoing_fifo::REFUSALS + 1);
    EXPECT_EQ(b->w.count("outgoing_fifo.nacks_dropped"), dropped + 10);
}

TEST(outgoing_fifo, ignores_what_cannot_be) {
    b->restart();
    const auto bad = b->w.count("outgoing_fifo.bad_destination");
    b->data.send(b->make(NODES, 8));
    b->mgmt.send(b->make(0xffff, 8, PRAWN_PACKET_TYPE_MGMT));
    b->refuse.send(b->refused(NODES, 1, PRAWN_STATUS_BAD_KEY));
    for (const unsigned type :
         {PRAWN_PACKET_TYPE_NACK, PRAWN_PACKET_TYPE_ACK, PRAWN_PACKET_TYPE_BYE,
          PRAWN_PACKET_TYPE_HELLO, 0})
        b->refuse.send(b->refused(2, 1, PRAWN_STATUS_BAD_PACKET,
                                  static_cast<std::uint8_t>(type)));
    run_cycles(300);
    EXPECT_TRUE(b->out.items.empty());
    EXPECT_EQ(b->dut.level(), 0u);
    EXPECT_EQ(b->w.count("outgoing_fifo.bad_destination"), bad + 3);
}

TEST(outgoing_fifo, peer_error_drops_all_but_hello_and_bye) {
    b->restart();
    b->out.accept = [](const packet_ref&) { return false; };
    packet_ref p;
    constexpr std::uint16_t PEERS[] = {2, 3};
    for (const std::uint16_t node : PEERS) {
        for (unsigned i = 0; i < 20; i++)
            b->dut.packet_in().try_put(p = b->make(node, 100));
        b->dut.mgmt_in().try_put(p = b->make(node, 9, PRAWN_PACKET_TYPE_MGMT));
        b->dut.mgmt_in().try_put(p = b->make(node, 0, PRAWN_PACKET_TYPE_HELLO));
        b->dut.mgmt_in().try_put(p = b->make(node, 9, PRAWN_PACKET_TYPE_MGMT));
        b->dut.mgmt_in().try_put(p = b->make(node, 0, PRAWN_PACKET_TYPE_BYE));
        refusal r = b->refused(node, 1, PRAWN_STATUS_BAD_KEY);
        b->dut.refusal_in().try_put(r);
    }
    run_cycles(50);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, NODES), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, 2), PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::DRAIN), PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::SET), PRAWN_STATUS_BAD_OPCODE);
    b->out.accept = nullptr;
    b->out.give_room();
    run_cycles(1000);
    unsigned of_two = 0;
    for (std::size_t i = 0; i < b->out.items.size(); i++) {
        if (b->head(i).destination_node != 2)
            continue;
        of_two++;
        EXPECT_TRUE(b->head(i).type == PRAWN_PACKET_TYPE_HELLO ||
                    b->head(i).type == PRAWN_PACKET_TYPE_BYE);
    }
    EXPECT_EQ(of_two, 2u);
    EXPECT_EQ(b->out.items.size() - of_two, outgoing_fifo::params().depth + 5);
    EXPECT_EQ(b->dut.level(), 0u);
}

TEST(outgoing_fifo, reset_drops_everything) {
    for (unsigned when = 0; when < 40; when++) {
        b->restart();
        const std::size_t used = packet_pool().used();
        for (unsigned i = 0; i < 10; i++)
            b->data.send(b->make(2, 100));
        b->mgmt.send(b->make(2, 9, PRAWN_PACKET_TYPE_MGMT));
        b->refuse.send(b->refused(2, 1, PRAWN_STATUS_BAD_KEY));
        run_cycles(when);
        b->restart();
        EXPECT_TRUE(b->out.items.empty());
        EXPECT_EQ(b->dut.level(), 0u);
        EXPECT_EQ(packet_pool().used(), used) << "nothing is kept";
        b->data.send(b->make(2, 100));
        run_cycles(200);
        EXPECT_EQ(b->out.items.size(), 1u);
    }
}

std::string trace() {
    b->restart();
    random_source random(4);
    b->out.accept = [&random](const packet_ref&) { return random(3) == 0; };
    for (unsigned i = 0; i < 1000; i++) {
        const auto node = static_cast<std::uint16_t>(random(NODES));
        const std::uint64_t when = 20 * i;
        switch (random(4)) {
            case 0:
                b->refuse.send(
                    b->refused(node, static_cast<std::uint32_t>(random(5)),
                               PRAWN_STATUS_BAD_KEY),
                    when);
                break;
            case 1:
                b->mgmt.send(b->make(node, 100, PRAWN_PACKET_TYPE_MGMT), when);
                break;
            default:
                b->data.send(
                    b->make(node, static_cast<std::uint16_t>(random(4097))),
                    when);
        }
    }
    for (unsigned i = 0; i < 10000; i++) {
        b->out.give_room();
        run_cycles(7);
    }
    std::string text = b->w.events.text;
    for (const auto& seen : b->out.items)
        text += std::to_string(seen.time) + " " +
                std::to_string(seen.item->head.message) + "\n";
    return text;
}

TEST(outgoing_fifo, is_deterministic) {
    expect_same_traces();
}

TEST(outgoing_fifo, loses_and_invents_nothing) {
    trace();
    unsigned data = 0;
    std::map<std::uint32_t, unsigned> seen;
    for (std::size_t i = 0; i < b->out.items.size(); i++) {
        if (b->head(i).type == PRAWN_PACKET_TYPE_NACK)
            continue;
        data++;
        EXPECT_EQ(seen[b->head(i).message]++, 0u);
    }
    EXPECT_EQ(data, b->number);
    EXPECT_EQ(b->dut.level(), 0u);
}

}  // namespace
}  // namespace prawn::test

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    std::unique_ptr<bench> own;
    return run_tests(
        argc, argv,
        [&own] {
            own = std::make_unique<bench>();
            b = own.get();
        },
        trace);
}
