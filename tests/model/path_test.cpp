// SPDX-License-Identifier: Apache-2.0
// From a command in one host's memory to bytes in another's.
#include <algorithm>

#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

class path_test : public model_test
{
};

std::size_t twins_below(const std::vector<sc_core::sc_object*>& objects) {
    std::size_t n = 0;
    for (const sc_core::sc_object* o : objects) {
        const std::string name = o->basename();
        n += name.size() > 5 && name.compare(name.size() - 5, 5, "_twin") == 0;
        n += twins_below(o->get_child_objects());
    }
    return n;
}

// Every input of every block of both cards, or none.
TEST_F(path_test, twins_stand_where_they_were_asked_for) {
    EXPECT_EQ(twins_below(sc_core::sc_get_top_level_objects()),
              bench::twins() ? 112u : 0u);
}

TEST_F(path_test, one_message) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 7, 2);
    c.from->fill(c.source, c.length, 1);
    c.from->send(7, c.source + 100, 1000, 50, true, 0xabcd);
    const prawn_completion done = c.from->wait_completion();
    EXPECT_EQ(done.status, PRAWN_STATUS_OK);
    EXPECT_EQ(done.bytes, 1000u);
    EXPECT_EQ(done.cookie, 0xc0000000u);
    EXPECT_GT(done.finished, done.accepted);
    const prawn_notification n = c.to->wait_notification();
    EXPECT_EQ(n.type, PRAWN_NOTIFICATION_TYPE_MESSAGE);
    EXPECT_EQ(n.cookie, 0xe007u);
    EXPECT_EQ(n.id, 7u);
    EXPECT_EQ(n.length, 1000u);
    EXPECT_EQ(n.offset, 50u);
    EXPECT_EQ(n.immediate, 0xabcdu);
    EXPECT_EQ(n.source_node, 0u);
    EXPECT_EQ(n.source_context, 1u);
    EXPECT_EQ(n.message, done.message);
    EXPECT_EQ(n.count, 1u);
    EXPECT_GT(n.delivered, done.accepted);
    EXPECT_EQ(c.to->read(c.target + 50, 1000),
              c.from->read(c.source + 100, 1000));
    EXPECT_EQ(c.to->read(c.target, 50), std::vector<std::uint8_t>(50));
    EXPECT_EQ(c.to->read(c.target + 1050, 100), std::vector<std::uint8_t>(100));
}

TEST_F(path_test, every_class_of_length_and_alignment) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 0, 20);
    c.from->fill(c.source, c.length, 2);
    const std::vector<std::uint8_t> zero(c.length);
    for (std::uint32_t length :
         {0u, 1u, 2u, 3u, 7u, 8u, 9u, 63u, 64u, 65u, 255u, 257u, 4095u, 4096u,
          4097u, 8191u, 8192u, 12305u, 65537u})
        for (std::uint64_t source : {0u, 1u, 7u, 4095u})
            for (std::uint64_t target : {0u, 3u, 64u, 4093u}) {
                c.to->write(c.target, zero.data(), zero.size());
                c.from->send(0, c.source + source, length, target, true);
                const prawn_completion done = c.from->wait_completion();
                ASSERT_EQ(done.status, PRAWN_STATUS_OK);
                ASSERT_EQ(done.bytes, length);
                const prawn_notification n = c.to->wait_notification();
                ASSERT_EQ(n.length, length);
                std::vector<std::uint8_t> expected = zero;
                const auto sent = c.from->read(c.source + source, length);
                std::copy(sent.begin(), sent.end(),
                          expected.begin() + static_cast<long>(target));
                ASSERT_EQ(c.to->read(c.target, c.length), expected)
                    << length << " from " << source << " to " << target;
            }
}

// Beyond any guest's memory: every page of the message is the same few pages.
TEST_F(path_test, the_largest_message) {
    const bool slow =
        bench::twins() || bench::get().model().profile().bus.bytes_per_ns < 1;
    const std::uint64_t bytes =
        slow ? std::uint64_t{16} << 20 : PRAWN_MAX_MESSAGE;
    const std::uint64_t pages = bytes / PAGE, few = 16;
    context& from = driver(0).open(1);
    context& to = driver(1).open(2);
    const std::uint64_t here = 0x10000000000, there = 0x20000000000;
    const std::uint64_t source = driver(0).alloc(few);
    const std::uint64_t target = driver(1).alloc(few);
    from.map(here, pages, false, source, few);
    to.map(there, pages, true, target, few);
    from.fill(here, few * PAGE, 3);
    ASSERT_EQ(driver(1).set_export(2, 1, there, bytes, 5), PRAWN_STATUS_OK);
    ASSERT_EQ(driver(0).set_import(1, 1, driver(1), 1, 5, bytes),
              PRAWN_STATUS_OK);
    from.send(1, here, static_cast<std::uint32_t>(bytes), 0, true);
    const prawn_completion done = from.wait_completion(5e6);
    EXPECT_EQ(done.status, PRAWN_STATUS_OK);
    EXPECT_EQ(done.bytes, bytes);
    EXPECT_EQ(to.wait_notification(1e6).length, bytes);
    EXPECT_EQ(to.read(there, few * PAGE), from.read(here, few * PAGE));
}

TEST_F(path_test, both_ways_at_once_with_full_rings) {
    channel ab = make_channel(driver(0), 1, driver(1), 2, 0, 64);
    channel ba = make_channel(driver(1), 2, driver(0), 1, 1, 64);
    ab.from->fill(ab.source, ab.length, 4);
    ba.from->fill(ba.source, ba.length, 5);
    const std::uint32_t messages = 64;  // the whole ring
    for (std::uint32_t i = 0; i < messages; i++) {
        const std::uint32_t length = 1 + i * 61 % 4096;
        ab.from->send(0, ab.source + i * PAGE, length, i * PAGE);
        ba.from->send(1, ba.source + i * PAGE, length, i * PAGE);
    }
    for (std::uint32_t i = 0; i < messages; i++) {
        EXPECT_EQ(ab.from->wait_completion().status, PRAWN_STATUS_OK);
        EXPECT_EQ(ba.from->wait_completion().status, PRAWN_STATUS_OK);
    }
    pause(200);
    for (std::uint32_t i = 0; i < messages; i++) {
        const std::uint32_t length = 1 + i * 61 % 4096;
        for (const channel* c : {&ab, &ba})
            EXPECT_EQ(c->to->read(c->target + i * PAGE, length),
                      c->from->read(c->source + i * PAGE, length));
    }
}

TEST_F(path_test, sixty_four_contexts) {
    std::vector<channel> all;
    for (std::uint16_t k = 0; k < PRAWN_CONTEXTS; k++) {
        all.push_back(make_channel(driver(0), k, driver(1),
                                   static_cast<std::uint16_t>(63 - k), k, 2));
        all.back().from->fill(all.back().source, all.back().length, k);
    }
    for (int round = 0; round < 3; round++)
        for (channel& c : all)
            c.from->send(c.import, c.source, 5000, 100, round == 2);
    for (channel& c : all) {
        for (int round = 0; round < 3; round++)
            EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
        EXPECT_EQ(c.to->wait_notification().length, 5000u);
        EXPECT_EQ(c.to->read(c.target + 100, 5000),
                  c.from->read(c.source, 5000));
    }
    for (std::uint16_t k = 0; k < PRAWN_CONTEXTS; k++)
        EXPECT_EQ(driver(0).close(k), PRAWN_STATUS_OK);
}

TEST_F(path_test, a_node_may_send_to_itself) {
    channel c = make_channel(driver(0), 1, driver(0), 2, 3, 4);
    c.from->fill(c.source, c.length, 6);
    c.from->send(3, c.source, 10000, 17, true);
    EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
    EXPECT_EQ(c.to->wait_notification().source_node, 0u);
    EXPECT_EQ(c.to->read(c.target + 17, 10000), c.from->read(c.source, 10000));
}

TEST_F(path_test, notification_only_if_both_sides_want_it) {
    channel quiet = make_channel(driver(0), 1, driver(1), 2, 0, 1, false);
    channel loud = make_channel(driver(0), 1, driver(1), 2, 1, 1, true);
    for (channel* c : {&quiet, &loud})
        for (bool flag : {false, true}) {
            c->from->send(c->import, c->source, 64, 0, flag);
            EXPECT_EQ(c->from->wait_completion().status, PRAWN_STATUS_OK);
        }
    EXPECT_EQ(loud.to->wait_notification().id, 1u);
    pause(50);
    prawn_notification n;
    EXPECT_FALSE(loud.to->poll_notification(n));
}

TEST_F(path_test, nop_and_fence_complete_in_order) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
    c.from->send(0, c.source, 60000);
    prawn_command fence{};
    fence.opcode = PRAWN_OPCODE_FENCE;
    fence.cookie = 77;
    c.from->post(fence);
    prawn_command nop{};
    nop.cookie = 78;
    c.from->post(nop);
    c.from->ring();
    EXPECT_EQ(c.from->wait_completion().bytes, 60000u);
    EXPECT_EQ(c.from->wait_completion().cookie, 77u);
    EXPECT_EQ(c.from->wait_completion().cookie, 78u);
}

TEST_F(path_test, full_notification_ring_coalesces) {
    context& to = driver(1).open(2, 4, 4);
    channel c = make_channel(driver(0), 1, driver(1), 2, 0, 1);
    to.hold_notifications();
    for (std::uint32_t i = 0; i < 40; i++) {
        c.from->send(0, c.source, 8, 0, true, i);
        EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
    }
    pause(50);
    for (std::uint32_t i = 0; i < 16; i++)
        EXPECT_EQ(to.wait_notification().immediate, i);
    prawn_notification n;
    EXPECT_FALSE(to.poll_notification(n));
    to.consume_notifications();
    n = to.wait_notification();
    EXPECT_EQ(n.count, 24u);
    EXPECT_EQ(n.immediate, 39u);
}

TEST_F(path_test, arming_gives_the_contexts_vector_once) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 0, 1);
    memory_host& host = bench::get().host(1);
    const auto vector_3 = [&] {
        std::size_t n = 0;
        for (const auto& i : host.interrupts())
            n += i.vector == 3;
        return n;
    };
    const std::size_t before = vector_3();
    c.from->send(0, c.source, 8, 0, true);
    c.to->wait_notification();
    EXPECT_EQ(vector_3(), before);
    c.to->arm_notify();
    c.from->send(0, c.source, 8, 0, true);
    c.from->send(0, c.source, 8, 0, true);
    c.to->wait_notification();
    c.to->wait_notification();
    pause(20);
    EXPECT_EQ(vector_3(), before + 1);
}

TEST_F(path_test, management_messages_reach_the_other_driver) {
    std::vector<std::uint8_t> message(PRAWN_MGMT_MAX);
    for (std::size_t i = 0; i < message.size(); i++)
        message[i] = static_cast<std::uint8_t>(i);
    for (std::size_t size : {std::size_t{1}, message.size()}) {
        message.resize(size);
        std::uint16_t status = PRAWN_STATUS_BUSY;
        while (status == PRAWN_STATUS_BUSY)
            status = driver(0).send_mgmt(1, message);
        ASSERT_EQ(status, PRAWN_STATUS_OK);
        const prawn_kernel_event e =
            driver(1).wait_event(PRAWN_EVENT_TYPE_MGMT);
        EXPECT_EQ(e.node, 0u);
        EXPECT_EQ(e.epoch, driver(0).epoch());
        EXPECT_EQ(e.length, size);
        EXPECT_EQ(std::vector<std::uint8_t>(e.data, e.data + size), message);
    }
}

TEST_F(path_test, peers_are_announced) {
    for (unsigned k = 0; k < 2; k++) {
        const prawn_kernel_event e =
            driver(k).wait_event(PRAWN_EVENT_TYPE_PEER_UP);
        EXPECT_EQ(e.node, 1 - k);
        EXPECT_EQ(e.value, driver(1 - k).epoch());
    }
}

}  // namespace
}  // namespace model
}  // namespace prawn
