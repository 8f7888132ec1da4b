// SPDX-License-Identifier: Apache-2.0
// Resets, withdrawals and deaths at many instants of a transfer. The checker
// stands behind each card: no DMA after the acknowledgement that ends a grant.
#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;
constexpr std::uint32_t BYTES = 16 * PAGE;

class reset_test : public model_test
{
protected:
    static unsigned instants() { return bench::twins() ? 12 : 40; }
    // Instants that fall into all parts of a transfer of BYTES.
    static double instant(unsigned i) {
        const double rate = bench::get().model().profile().bus.bytes_per_ns;
        return (0.05 + 0.391 * i) * (rate < 1 ? 60 : 1);
    }

    void expect_works(unsigned a, unsigned b, std::uint32_t id) {
        channel c = make_channel(driver(a), 20, driver(b), 21, id, 2);
        c.from->fill(c.source, c.length, id);
        c.from->send(id, c.source, 8000, 9, true);
        EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
        EXPECT_EQ(c.to->wait_notification().length, 8000u);
        EXPECT_EQ(c.to->read(c.target + 9, 8000), c.from->read(c.source, 8000));
        EXPECT_EQ(driver(a).close(20), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(b).close(21), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(a).clear_import(id), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(b).clear_export(id), PRAWN_STATUS_OK);
    }
};

TEST_F(reset_test, context_disabled_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->send(0, c.source, BYTES, 0, true);
        c.from->send(0, c.source, BYTES, 0, true);
        pause(instant(i));
        // The sender's on even, the receiver's on odd turns.
        const unsigned first = i % 2;
        EXPECT_EQ(driver(first).close(first ? 2 : 1), PRAWN_STATUS_OK);
        pause(20);
        EXPECT_EQ(driver(1 - first).close(first ? 1 : 2), PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

// A host that answers no DMA of the context: no acknowledgement either. The
// sender's card reads, the receiver's writes.
TEST_F(reset_test, disabling_a_context_waits_for_its_dma) {
    for (unsigned node = 0; node < 2; node++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        card_driver& d = driver(node);
        memory_host& host = d.host();
        host.set_hold(memory_host::hold::BEFORE_ACCESS);
        for (int i = 0; i < 40; i++)
            c.from->send(0, c.source, BYTES, 0, true);
        // Let commands and translations through.
        const char* moved =
            node == 0 ? "packetizer.packets" : "incoming_dma.packets";
        const std::uint64_t before = d.counter(moved);
        d.until(
            [&] {
                host.release(1);
                return d.counter(moved) > before + 8;
            },
            50000, moved);
        const std::uint64_t commands = d.counter("admin_queue.commands");
        const std::uint64_t acks = d.counter("notifier.acks");
        const std::uint32_t index = d.post_admin(card_driver::command(
            PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, node ? 2 : 1));
        d.until(
            [&] {
                if (d.counter("admin_queue.commands") > commands)
                    return true;
                if (host.held() > 1)  // and never all that there is
                    host.release(1);
                return false;
            },
            50000, "the command");
        ASSERT_GT(host.held(), 0u);
        pause(50);
        EXPECT_EQ(d.counter("notifier.acks"), acks) << "node " << node;
        host.set_hold(memory_host::hold::NOTHING);
        EXPECT_EQ(d.wait_ack(index).status, PRAWN_STATUS_OK);
        pause(200);
        for (unsigned k = 0; k < 2; k++)
            EXPECT_EQ(driver(k).close(k ? 2 : 1),
                      k == node ? PRAWN_STATUS_BAD_CONTEXT : PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

TEST_F(reset_test, source_invalidated_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->send(0, c.source, BYTES);
        pause(instant(i));
        EXPECT_TRUE(c.from->unmap(c.source + (i % 16) * PAGE, 1));
        const prawn_completion done = c.from->wait_completion();
        if (done.status == PRAWN_STATUS_NOT_PINNED) {
            EXPECT_EQ(done.fault, c.source + (i % 16) * PAGE);
        } else {
            EXPECT_EQ(done.status, PRAWN_STATUS_OK);
        }
        EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

TEST_F(reset_test, target_invalidated_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->send(0, c.source, BYTES);
        pause(instant(i));
        EXPECT_TRUE(c.to->unmap(c.target + (i % 16) * PAGE, 1));
        const std::uint16_t status = c.from->wait_completion().status;
        EXPECT_TRUE(status == PRAWN_STATUS_OK ||
                    status == PRAWN_STATUS_IMPORT_ERROR)
            << status;
        EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

TEST_F(reset_test, export_withdrawn_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->send(0, c.source, BYTES);
        pause(instant(i));
        EXPECT_EQ(driver(1).clear_export(0), PRAWN_STATUS_OK);
        // From now on not a byte of the buffer changes, and the checker, told
        // at this very instant, sees no DMA.
        for (std::uint64_t at = 0; at < c.length; at += PAGE)
            driver(1).where().checker()->revoke(
                2, c.to->bus_address(c.target + at), 1);
        const auto before = c.to->read(c.target, c.length);
        c.from->wait_completion();
        pause(20);
        EXPECT_EQ(c.to->read(c.target, c.length), before);
        for (std::uint64_t at = 0; at < c.length; at += PAGE)
            driver(1).where().checker()->grant(
                2, c.to->bus_address(c.target + at), 1, true);
        EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

TEST_F(reset_test, import_cleared_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->send(0, c.source, BYTES);
        pause(instant(i));
        EXPECT_EQ(driver(0).clear_import(0), PRAWN_STATUS_OK);
        const std::uint16_t status = c.from->wait_completion().status;
        EXPECT_TRUE(status == PRAWN_STATUS_OK ||
                    status == PRAWN_STATUS_BAD_IMPORT)
            << status;
        EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
    }
    expect_works(0, 1, 3);
}

TEST_F(reset_test, sender_reset_at_many_instants) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        channel back = make_channel(driver(1), 2, driver(0), 1, 1, 16);
        c.from->send(0, c.source, BYTES, 0, true);
        back.from->send(1, back.source, BYTES, 0, true);
        pause(instant(i));
        switch (i % 3) {
            case 0:
                driver(0).reset();
                break;
            case 1:
                bench::get().host(0).reset_card();
                break;
            default:
                driver(0).shut_down();
                break;
        }
        driver(0).boot();
        // The other side's send ends, one way or the other.
        const std::uint16_t status = back.from->wait_completion().status;
        EXPECT_TRUE(status == PRAWN_STATUS_OK ||
                    status == PRAWN_STATUS_IMPORT_ERROR)
            << status;
        pause(50);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).clear_export(0), PRAWN_STATUS_OK);
        expect_works(0, 1, 3);
        expect_works(1, 0, 4);
    }
}

TEST_F(reset_test, a_reset_peer_is_announced_and_its_imports_fail) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
    prawn_kernel_event e;
    while (driver(0).poll_event(e)) {
    }
    driver(1).reset();
    EXPECT_EQ(driver(0).wait_event(PRAWN_EVENT_TYPE_PEER_DOWN).node, 1u);
    const prawn_notification n = c.from->wait_notification();
    EXPECT_EQ(n.type, PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR);
    EXPECT_EQ(n.status, PRAWN_STATUS_PEER_DEAD);
    driver(1).boot();
    e = driver(0).wait_event(PRAWN_EVENT_TYPE_PEER_UP);
    EXPECT_EQ(e.epoch, driver(1).epoch());
    expect_works(0, 1, 3);
}

TEST_F(reset_test, invalidate_everything_in_mid_transfer) {
    for (unsigned i = 0; i < instants(); i++) {
        channel c = make_channel(driver(0), 1, driver(1), 2, 0, 16);
        c.from->fill(c.source, c.length, i);
        c.from->send(0, c.source, BYTES, 0, true);
        pause(instant(i));
        EXPECT_EQ(driver(0).invalidate(1, 0, 0), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).invalidate(2, 0, 0), PRAWN_STATUS_OK);
        // The tables still say the same: nothing is lost by it.
        EXPECT_EQ(c.from->wait_completion().status, PRAWN_STATUS_OK);
        EXPECT_EQ(c.to->wait_notification().length, BYTES);
        EXPECT_EQ(c.to->read(c.target, BYTES), c.from->read(c.source, BYTES));
        EXPECT_EQ(driver(0).close(1), PRAWN_STATUS_OK);
        EXPECT_EQ(driver(1).close(2), PRAWN_STATUS_OK);
    }
}

}  // namespace
}  // namespace model
}  // namespace prawn
