// SPDX-License-Identifier: Apache-2.0
//
// BAR accesses: sizes, checks, order, posting, back-pressure.

#include <fcntl.h>

#include <cerrno>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class region_test : public vfio_user_test
{
protected:
    void configure(server_options& options) override {
        options.max_outstanding = 8;
    }

    static write_one one(std::uint32_t region, std::uint64_t offset,
                         std::uint32_t size, std::uint64_t value) {
        write_one w{offset, region, size, {}};
        __builtin_memcpy(w.data, &value, sizeof(value));
        return w;
    }

    static bytes multi(const std::vector<write_one>& writes) {
        bytes b = to_bytes(std::uint64_t{writes.size()});
        for (const write_one& w : writes) {
            const bytes raw = to_bytes(w);
            b.insert(b.end(), raw.begin(), raw.end());
        }
        return b;
    }
};

TEST_F(region_test, one_two_four_and_eight_bytes) {
    client c = connect();
    const std::uint64_t value = 0x8877665544332211;
    for (const std::uint32_t bar : {0u, 2u, 4u}) {
        c.write(bar, 0x100, 8, value);
        for (std::uint32_t size : {1u, 2u, 4u, 8u}) {
            const std::uint64_t mask =
                size == 8 ? ~std::uint64_t{0}
                          : (std::uint64_t{1} << (8 * size)) - 1;
            EXPECT_EQ(c.read(bar, 0x100, size), value & mask);
            c.write(bar, 0x200, size, value);
            EXPECT_EQ(c.read(bar, 0x200, 8), value & mask);
            c.write(bar, 0x200, 8, 0);
        }
    }
    EXPECT_EQ(c.read(4, (std::uint64_t{4} << 30) - 8, 8), 0u);
    EXPECT_EQ(c.read(0, (1u << 20) - 1, 1), 0u);
}

TEST_F(region_test, everything_else_is_refused) {
    client c = connect();
    for (std::uint32_t size : {0u, 3u, 5u, 6u, 7u, 9u, 16u, 4096u}) {
        EXPECT_EQ(c.read_block(0, 0, size).error(), EINVAL) << size;
        EXPECT_EQ(c.write_block(0, 0, bytes(size, 1)).error(), EINVAL) << size;
    }
    EXPECT_EQ(c.read_block(0, 0, 0xffffffff).error(), EINVAL);
    for (std::uint32_t size : {2u, 4u, 8u}) {
        EXPECT_EQ(c.read_block(0, size / 2, size).error(), EINVAL);
        EXPECT_EQ(c.write_block(0, size / 2, bytes(size, 1)).error(), EINVAL);
    }
    for (std::uint64_t offset :
         {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0} - 7,
          ~std::uint64_t{0} << 32}) {
        EXPECT_EQ(c.read_block(0, offset, 8).error(), EINVAL) << offset;
        EXPECT_EQ(c.write_block(0, offset, bytes(8, 1)).error(), EINVAL);
    }
    for (std::uint32_t region :
         {1u, 3u, 5u, REGION_ROM, REGION_VGA, REGION_COUNT, 0xffffffffu}) {
        EXPECT_EQ(c.read_block(region, 0, 4).error(), EINVAL) << region;
        EXPECT_EQ(c.write_block(region, 0, bytes(4, 1)).error(), EINVAL);
    }
    EXPECT_EQ(m_device[0]->writes(), 0u);
    EXPECT_EQ(c.read(0, 0, 4), 0u) << "the connection goes on";
}

TEST_F(region_test, payload_and_count_must_agree) {
    client c = connect();
    bytes payload = to_bytes(region_access{0, 0, 4});
    for (std::size_t extra : {0u, 3u, 5u, 8u}) {
        bytes wrong = payload;
        wrong.resize(payload.size() + extra);
        EXPECT_EQ(c.transact(REGION_WRITE, wrong).error(), EINVAL) << extra;
    }
    for (std::size_t size : {0u, 15u, 17u, 20u})
        EXPECT_EQ(c.transact(REGION_READ, bytes(size, 0)).error(), EINVAL);
    EXPECT_EQ(c.transact(REGION_WRITE, {}).error(), EINVAL);
}

TEST_F(region_test, replies_echo_the_request) {
    client c = connect();
    client_message m = c.write_block(2, 0x18, bytes(8, 0x5a));
    ASSERT_EQ(m.payload.size(), sizeof(region_access));
    EXPECT_EQ(m.as<region_access>().offset, 0x18u);
    EXPECT_EQ(m.as<region_access>().region, 2u);
    EXPECT_EQ(m.as<region_access>().count, 8u);
    m = c.read_block(2, 0x1c, 4);
    ASSERT_EQ(m.payload.size(), sizeof(region_access) + 4);
    EXPECT_EQ(m.as<region_access>().offset, 0x1cu);
    EXPECT_EQ(m.payload.back(), 0x5a);
}

TEST_F(region_test, the_device_may_refuse) {
    client c = connect();
    m_device[0]->set_error(EIO);
    EXPECT_EQ(c.read_block(0, 0, 4).error(), EIO);
    EXPECT_EQ(c.write_block(0, 0, bytes(4, 1)).error(), EIO);
    m_device[0]->set_error(0);
    EXPECT_EQ(c.read_block(0, 0, 4).error(), 0);
}

TEST_F(region_test, posted_writes_are_done_in_order_before_a_read) {
    client c = connect();
    for (std::uint64_t i = 1; i <= 500; i++)
        c.post(0, 0x100, 8, i);
    EXPECT_EQ(c.read(0, 0x100, 8), 500u);
    EXPECT_EQ(m_device[0]->writes(), 500u);
    EXPECT_TRUE(c.is_silent(20)) << "a posted write was answered";
}

TEST_F(region_test, no_reply_holds_for_errors_and_for_every_command) {
    client c = connect();
    c.post(0, 3, 4, 0);             // misaligned
    c.post(REGION_COUNT, 0, 4, 0);  // no such region
    c.send(DEVICE_RESET, {}, FLAG_NO_REPLY);
    c.send(DEVICE_RESET, {1}, FLAG_NO_REPLY);
    c.send(999, {}, FLAG_NO_REPLY);
    c.send(VERSION, {}, FLAG_NO_REPLY);
    c.send(DEVICE_GET_INFO, to_bytes(device_info{16, 0, 0, 0}), FLAG_NO_REPLY);
    c.send(REGION_READ, to_bytes(region_access{0, 0, 4}), FLAG_NO_REPLY);
    c.send(REGION_READ, to_bytes(region_access{0, REGION_CONFIG, 4}),
           FLAG_NO_REPLY);
    c.send(DMA_MAP, to_bytes(dma_map{32, 3, 0, 0, 4096}), FLAG_NO_REPLY);
    c.send(DMA_UNMAP, to_bytes(dma_unmap{24, 0, 0, 4096}), FLAG_NO_REPLY);
    c.send(DEVICE_SET_IRQS, to_bytes(irq_set{20, 0x21, IRQ_MSIX, 0, 0}),
           FLAG_NO_REPLY);
    EXPECT_TRUE(c.is_silent(100));
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(region_test, requests_may_be_pipelined_beyond_the_slots) {
    client c = connect();
    m_device[0]->hold(true);
    std::vector<std::uint16_t> ids;
    for (std::uint32_t i = 0; i < 50; i++) {
        ids.push_back(
            c.send(REGION_READ, to_bytes(region_access{8 * i, 0, 8})));
    }
    ASSERT_TRUE(wait_until([&] { return m_device[0]->queued() == 8; }));
    EXPECT_TRUE(c.is_silent(50));
    EXPECT_EQ(m_device[0]->queued(), 8u) << "more than max_outstanding";
    m_device[0]->hold(false);
    for (const std::uint16_t id : ids) {
        const auto m = c.receive();
        ASSERT_TRUE(m);
        EXPECT_EQ(m->header.id, id);
    }
}

TEST_F(region_test, a_flood_of_posted_writes_is_held_back) {
    client c = connect();
    m_device[0]->set_capacity(32);
    m_device[0]->hold(true);
    // More would fill the socket, and then the sender waits too.
    for (std::uint64_t i = 1; i <= 200; i++)
        c.post(0, 0x100, 8, i);
    ASSERT_TRUE(wait_until([&] { return m_device[0]->queued() == 32; }));
    EXPECT_TRUE(c.is_silent(50));
    EXPECT_EQ(m_device[0]->queued(), 32u);
    // The other card does not notice.
    client other = connect(1);
    EXPECT_EQ(other.read(0, 0, 4), 0u);
    m_device[0]->hold(false);
    EXPECT_EQ(c.read(0, 0x100, 8), 200u);
    EXPECT_EQ(m_device[0]->writes(), 200u);
}

TEST_F(region_test, a_client_that_reads_no_replies_only_stalls_itself) {
    client c = connect();
    const int flags = ::fcntl(c.socket(), F_GETFL);
    ASSERT_EQ(::fcntl(c.socket(), F_SETFL, flags | O_NONBLOCK), 0);
    std::size_t sent = 0;
    try {
        for (; sent < 100000; sent++)
            c.send(REGION_READ,
                   to_bytes(region_access{0, REGION_CONFIG, 4096}));
        ADD_FAILURE() << "the server took everything";
    } catch (const std::runtime_error&) {
        // The socket is full: the server has stopped reading.
    }
    client other = connect(1);
    EXPECT_EQ(other.read(0, 0, 4), 0u);
    ASSERT_EQ(::fcntl(c.socket(), F_SETFL, flags), 0);
    for (std::size_t i = 0; i < sent; i++) {
        const auto m = c.receive();
        ASSERT_TRUE(m) << i;
        ASSERT_EQ(m->payload.size(), sizeof(region_access) + 4096) << i;
    }
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(region_test, answers_may_come_from_within_the_call) {
    m_device[0]->set_immediate(true);
    client c = connect();
    c.write(0, 0, 4, 5);
    EXPECT_EQ(c.read(0, 0, 4), 5u);
    EXPECT_EQ(c.reset(), 0);
    EXPECT_EQ(c.read(0, 0, 4), 0u);
    EXPECT_EQ(c.dma_map(0, 4096), 0);
    EXPECT_EQ(c.dma_unmap(0, 4096), 0);
}

TEST_F(region_test, several_writes_in_one_message) {
    client c = connect();
    const bytes writes =
        multi({one(0, 0x10, 4, 0x11111111), one(2, 0x20, 8, 0x2222222222),
               one(REGION_CONFIG, 4, 2, 6), one(0, 0x10, 1, 0xff),
               one(0, 0x8000, 4, 0xfee00000)});
    const client_message m = c.transact(REGION_WRITE_MULTI, writes);
    ASSERT_EQ(m.error(), 0);
    EXPECT_EQ(m.as<std::uint64_t>(), 5u);
    EXPECT_EQ(c.read(0, 0x10, 4), 0x111111ffu);
    EXPECT_EQ(c.read(2, 0x20, 8), 0x2222222222u);
    EXPECT_EQ(c.read(0, 0x8000, 4), 0xfee00000u);
    EXPECT_TRUE(m_device[0]->is_bus_master());

    c.send(REGION_WRITE_MULTI, multi({one(0, 0x10, 4, 9)}), FLAG_NO_REPLY);
    EXPECT_EQ(c.read(0, 0x10, 4), 9u);
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, multi({})).as<std::uint64_t>(),
              0u);
    EXPECT_EQ(
        c.transact(REGION_WRITE_MULTI, multi({one(REGION_CONFIG, 4, 2, 0)}))
            .as<std::uint64_t>(),
        1u);
    EXPECT_FALSE(m_device[0]->is_bus_master());
}

TEST_F(region_test, several_writes_all_or_none) {
    client c = connect();
    const write_one good = one(0, 0x10, 4, 7);
    for (const write_one& bad :
         {one(0, 0x11, 4, 7), one(0, 0x10, 3, 7), one(0, 1u << 20, 4, 7),
          one(REGION_CONFIG, 0, 16, 7), one(1, 0, 4, 7), one(0, 0, 0, 7)}) {
        EXPECT_EQ(
            c.transact(REGION_WRITE_MULTI, multi({good, bad, good})).error(),
            EINVAL);
    }
    bytes counts = multi({good, good});
    counts[0] = 3;
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, counts).error(), EINVAL);
    counts[0] = 1;
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, counts).error(), EINVAL);
    counts[7] = 0xff;
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, counts).error(), EINVAL);
    counts.resize(7);
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, counts).error(), EINVAL);
    const std::vector<write_one> many(MAX_MULTI_WRITES + 1, good);
    EXPECT_EQ(c.transact(REGION_WRITE_MULTI, multi(many)).error(), EINVAL);
    EXPECT_EQ(c.read(0, 0x10, 4), 0u);
    EXPECT_EQ(m_device[0]->writes(), 0u);
}

TEST_F(region_test, several_writes_only_if_negotiated) {
    client c(path(0));
    ASSERT_EQ(c.negotiate("{}").error(), 0);
    EXPECT_EQ(
        c.transact(REGION_WRITE_MULTI, multi({one(0, 0x10, 4, 7)})).error(),
        ENOTSUP);
}

}  // namespace vfio_user
}  // namespace prawn
