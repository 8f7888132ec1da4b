// SPDX-License-Identifier: Apache-2.0
// What a card refuses, at the sender and at the receiver: status, import in
// error state, and not a byte elsewhere.
#include <functional>

#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

class refusal_test : public model_test
{
protected:
    // The receiver refuses; the import goes to error state with its reason.
    // Bytes of the target from `closed` on stay as they were.
    void expect_nack(channel& c, std::uint16_t reason, std::uint64_t offset = 0,
                     std::uint64_t closed = 0) {
        const auto target = [&] {
            return c.to->read(c.target + closed, c.length - closed);
        };
        const auto before = target();
        c.from->fill(c.source, PAGE, 99);
        EXPECT_EQ(c.send(1000, 0, offset), PRAWN_STATUS_OK);
        const prawn_notification n = c.from->wait_notification();
        EXPECT_EQ(n.type, PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR);
        EXPECT_EQ(n.status, reason);
        EXPECT_EQ(n.id, c.import);
        EXPECT_EQ(n.cookie, 0x1000 + c.import);
        c.from->send(c.import, c.source, 8);
        const prawn_completion done = c.from->wait_completion();
        EXPECT_EQ(done.status, PRAWN_STATUS_IMPORT_ERROR);
        EXPECT_EQ(done.detail, reason);
        EXPECT_EQ(done.bytes, 0u);
        pause(100);
        EXPECT_EQ(target(), before);
    }
    prawn_completion run(context& c, const prawn_command& command) {
        c.post(command);
        c.ring();
        return c.wait_completion();
    }
};

TEST_F(refusal_test, wrong_key) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    ASSERT_EQ(driver(0).set_import(1, 4, driver(1), 4, 666, c.length, 0x1004),
              PRAWN_STATUS_OK);
    expect_nack(c, PRAWN_STATUS_BAD_KEY);
}

TEST_F(refusal_test, withdrawn_export) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    EXPECT_EQ(c.send(100), PRAWN_STATUS_OK);
    ASSERT_EQ(driver(1).clear_export(4), PRAWN_STATUS_OK);
    expect_nack(c, PRAWN_STATUS_BAD_EXPORT);
}

TEST_F(refusal_test, no_such_export) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    ASSERT_EQ(driver(0).set_import(1, 4, driver(1), 4095, 1, c.length, 0x1004),
              PRAWN_STATUS_OK);
    expect_nack(c, PRAWN_STATUS_BAD_EXPORT);
}

TEST_F(refusal_test, beyond_the_export_although_the_import_says_otherwise) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    const std::uint64_t key = 0x9e3779b97f4a7c15 * 5;
    ASSERT_EQ(driver(1).set_export(2, 4, c.target, PAGE, key), PRAWN_STATUS_OK);
    expect_nack(c, PRAWN_STATUS_EXPORT_RANGE, PAGE - 500, PAGE);
}

TEST_F(refusal_test, page_of_the_export_without_translation) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    c.to->clear_entries(c.target, 1);
    expect_nack(c, PRAWN_STATUS_RECEIVE_FAULT);
}

TEST_F(refusal_test, page_of_the_export_not_writable) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    const std::uint64_t other = c.target + 16 * PAGE;
    c.to->map(other, 1, false);
    const std::uint64_t key = 0x9e3779b97f4a7c15 * 5;
    ASSERT_EQ(driver(1).set_export(2, 4, other, PAGE, key), PRAWN_STATUS_OK);
    expect_nack(c, PRAWN_STATUS_RECEIVE_FAULT);
}

TEST_F(refusal_test, peer_without_driver) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    driver(1).write(PRAWN_BAR0_CTRL, 4, 0);  // says BYE
    pause(50);
    c.from->send(4, c.source, 8);
    const prawn_completion done = c.from->wait_completion();
    EXPECT_EQ(done.status, PRAWN_STATUS_IMPORT_ERROR);
    EXPECT_EQ(done.detail, PRAWN_STATUS_PEER_DEAD);
}

TEST_F(refusal_test, peer_in_another_life) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    driver(1).reset();
    driver(1).boot();
    pause(50);
    c.from->send(4, c.source, 8);
    prawn_completion done = c.from->wait_completion();
    EXPECT_EQ(done.status, PRAWN_STATUS_IMPORT_ERROR);
    // An import that still names the old life does no better.
    auto old = card_driver::command(PRAWN_ADMIN_OPCODE_OPT_SET, 1, 5);
    old.a = 1 | std::uint64_t{driver(1).epoch() - 1u} << 16 | 4ull << 32;
    old.c = PAGE;
    ASSERT_EQ(driver(0).admin(old), PRAWN_STATUS_OK);
    c.from->send(5, c.source, 8);
    EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
    for (;;) {
        const prawn_notification n = c.from->wait_notification();
        if (n.status == 0xffff || n.id == 5) {
            EXPECT_EQ(n.status, PRAWN_STATUS_STALE_EPOCH);
            break;
        }
    }
}

TEST_F(refusal_test, commands_that_make_no_sense) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    make_channel(driver(0), 9, driver(1), 2, 6, 2);  // somebody else's
    prawn_command good{};
    good.opcode = PRAWN_OPCODE_SEND;
    good.source = c.source;
    good.length = 64;
    good.import_id = 4;
    const struct {
        std::uint16_t status;
        std::function<void(prawn_command&)> change;
    } cases[] = {
        {PRAWN_STATUS_BAD_OPCODE, [](auto& x) { x.opcode = 3; }},
        {PRAWN_STATUS_BAD_OPCODE, [](auto& x) { x.opcode = 255; }},
        {PRAWN_STATUS_BAD_FIELD, [](auto& x) { x.flags = 2; }},
        {PRAWN_STATUS_BAD_FIELD, [](auto& x) { x.rsvd0 = 1; }},
        {PRAWN_STATUS_BAD_FIELD, [](auto& x) { x.rsvd1[2] = 1; }},
        {PRAWN_STATUS_BAD_FIELD, [](auto& x) { x.utlb_index = 1; }},
        {PRAWN_STATUS_BAD_LENGTH,
         [](auto& x) { x.length = PRAWN_MAX_MESSAGE + 1; }},
        {PRAWN_STATUS_BAD_LENGTH, [](auto& x) { x.source = ~0ull - 10; }},
        {PRAWN_STATUS_BAD_IMPORT, [](auto& x) { x.import_id = 5; }},
        {PRAWN_STATUS_BAD_IMPORT, [](auto& x) { x.import_id = 6; }},
        {PRAWN_STATUS_BAD_IMPORT, [](auto& x) { x.import_id = 4096; }},
        {PRAWN_STATUS_BAD_IMPORT, [](auto& x) { x.import_id = ~0u; }},
        {PRAWN_STATUS_OUT_OF_RANGE, [](auto& x) { x.offset = 2 * PAGE; }},
        {PRAWN_STATUS_OUT_OF_RANGE, [](auto& x) { x.offset = 2 * PAGE - 63; }},
        {PRAWN_STATUS_BAD_LENGTH, [](auto& x) { x.offset = ~0ull; }},
        {PRAWN_STATUS_NOT_PINNED, [](auto& x) { x.source += 2 * PAGE; }},
        {PRAWN_STATUS_NOT_PINNED, [](auto& x) { x.source = 0; }}};
    for (std::size_t i = 0; i < std::size(cases); i++) {
        prawn_command bad = good;
        cases[i].change(bad);
        const prawn_completion done = run(*c.from, bad);
        EXPECT_EQ(done.status, cases[i].status) << "case " << i;
        EXPECT_EQ(done.bytes, 0u) << "case " << i;
        EXPECT_EQ(run(*c.from, good).status, PRAWN_STATUS_OK);
    }
}

TEST_F(refusal_test, a_hole_in_the_middle_ends_the_message_there) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 4);
    c.from->clear_entries(c.source + 2 * PAGE, 1);
    c.from->send(4, c.source, 4 * PAGE);
    const prawn_completion done = c.from->wait_completion();
    EXPECT_EQ(done.status, PRAWN_STATUS_NOT_PINNED);
    EXPECT_EQ(done.bytes, 2 * PAGE);
    EXPECT_EQ(done.fault, c.source + 2 * PAGE);
}

TEST_F(refusal_test, a_doorbell_too_far_stops_that_context_only) {
    channel bad = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    channel good = make_channel(driver(0), 3, driver(1), 2, 5, 2);
    driver(0).host().write(2, PAGE, 8, 1000);
    const prawn_kernel_event e =
        driver(0).wait_event(PRAWN_EVENT_TYPE_CONTEXT_ERROR);
    EXPECT_EQ(e.context, 1u);
    EXPECT_EQ(e.value, PRAWN_STATUS_RING_OVERRUN);
    EXPECT_EQ(bad.from->state(),
              PRAWN_STATE_ERROR_MASK |
                  PRAWN_STATUS_RING_OVERRUN << PRAWN_STATE_STATUS_SHIFT |
                  (bad.from->state() & PRAWN_STATE_ENABLED_MASK));
    EXPECT_EQ(good.send(100), PRAWN_STATUS_OK);
    EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
    channel again = make_channel(driver(0), 1, driver(1), 2, 6, 2);
    EXPECT_EQ(again.send(100), PRAWN_STATUS_OK);
}

TEST_F(refusal_test, doorbells_of_nobody_do_nothing) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    for (unsigned page = 0; page < PRAWN_CONTEXTS; page++)
        if (page != 1)
            driver(0).host().write(2, page * PAGE, 8, ~0ull);
    EXPECT_EQ(c.send(100), PRAWN_STATUS_OK);
}

TEST_F(refusal_test, full_event_ring_refuses_messages_only) {
    // Nobody polls events of node 1 here.
    const std::vector<std::uint8_t> message(8);
    unsigned sent = 0;
    while (sent < 100)
        sent += driver(0).send_mgmt(1, message) == PRAWN_STATUS_OK;
    pause(5000);
    EXPECT_GT(driver(1).counter("notifier.events_refused"), 30u);
    prawn_kernel_event e;
    unsigned received = 0;
    while (driver(1).poll_event(e))
        received += e.type == PRAWN_EVENT_TYPE_MGMT;
    EXPECT_GT(received, 50u);
    EXPECT_LE(received, 64u);
    channel c = make_channel(driver(0), 1, driver(1), 2, 4, 2);
    EXPECT_EQ(c.send(100), PRAWN_STATUS_OK);
}

}  // namespace
}  // namespace model
}  // namespace prawn
