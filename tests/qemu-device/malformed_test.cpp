// SPDX-License-Identifier: Apache-2.0
//
// Clients that break the protocol: an error reply as long as the stream can
// be followed, otherwise the end of the connection and one log line. The card
// of the other client works on all the while.

#include <sys/socket.h>

#include <cerrno>
#include <random>
#include <thread>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class malformed_test : public vfio_user_test
{
protected:
    void SetUp() override {
        vfio_user_test::SetUp();
        m_other = std::make_unique<client>(connect(1));
    }

    void TearDown() override {
        m_other->write(0, 0x40, 4, 99);
        EXPECT_EQ(m_other->read(0, 0x40, 4), 99u) << "the other card suffered";
        m_other.reset();
        vfio_user_test::TearDown();
    }

    // Once each, and counted as what it is.
    void expect_thrown_out(client& c) {
        EXPECT_TRUE(c.is_closed());
        EXPECT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
        EXPECT_EQ(m_server->counters(0).violations, ++m_thrown_out);
    }

    std::size_t m_thrown_out = 0;
    std::unique_ptr<client> m_other;
};

TEST_F(malformed_test, size_smaller_than_a_header) {
    for (std::uint32_t size : {0u, 1u, 15u}) {
        client c = connect();
        c.send_raw(to_bytes(header{1, DEVICE_GET_INFO, size, 0, 0}));
        expect_thrown_out(c);
    }
    EXPECT_EQ(m_server->counters(0).violations, 3u);
    EXPECT_EQ(warnings(), 3u) << "one line for each";
    EXPECT_EQ(warnings("size out of range"), 3u);
}

TEST_F(malformed_test, size_beyond_the_maximum) {
    for (std::uint32_t size : {(1u << 20) + 4097u, 0x80000000u, 0xffffffffu}) {
        client c = connect();
        c.send_raw(to_bytes(header{1, REGION_WRITE, size, 0, 0}));
        expect_thrown_out(c);
    }
    EXPECT_EQ(warnings(), 3u);
}

TEST_F(malformed_test, largest_message_is_taken) {
    client c = connect();
    bytes payload((1u << 20) + 4096 - sizeof(header));
    EXPECT_EQ(c.transact(REGION_WRITE, payload).error(), EINVAL);
    EXPECT_EQ(c.transact(DEVICE_GET_INFO, payload).error(), EINVAL);
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(malformed_test, unknown_commands_and_those_not_offered) {
    client c = connect();
    for (std::uint16_t command :
         {std::uint16_t{0}, std::uint16_t{DMA_READ}, std::uint16_t{DMA_WRITE},
          std::uint16_t{USER_DIRTY_PAGES}, std::uint16_t{DEVICE_FEATURE},
          std::uint16_t{MIG_DATA_READ}, std::uint16_t{MIG_DATA_WRITE},
          std::uint16_t{19}, std::uint16_t{0xffff}}) {
        EXPECT_EQ(c.transact(command, {}).error(), ENOTSUP) << command;
        EXPECT_EQ(c.transact(command, bytes(100, 1)).error(), ENOTSUP);
    }
    EXPECT_EQ(c.read(0, 0, 4), 0u);
    EXPECT_EQ(m_server->counters(0).violations, 0u);
}

TEST_F(malformed_test, error_reply_is_the_bare_header) {
    client c = connect();
    const client_message m = c.transact(999, bytes(64, 7));
    EXPECT_EQ(m.header.size, sizeof(header));
    EXPECT_EQ(m.header.flags, TYPE_REPLY | FLAG_ERROR);
    EXPECT_EQ(m.header.command, 999);
}

TEST_F(malformed_test, message_type_that_does_not_exist) {
    client c = connect();
    for (std::uint32_t type = 2; type < 16; type++) {
        c.send(DEVICE_RESET, {}, type);
        const auto m = c.receive();
        ASSERT_TRUE(m);
        EXPECT_EQ(m->error(), EINVAL);
    }
    EXPECT_EQ(m_device[0]->log().size(), 1u) << "no reset was done";
}

TEST_F(malformed_test, flags_of_a_reply_in_a_command_do_no_harm) {
    client c = connect();
    c.send(DEVICE_RESET, {}, FLAG_ERROR | 0xffffff00);
    const auto m = c.receive();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->error(), 0);
}

TEST_F(malformed_test, reply_to_nothing) {
    for (std::uint32_t flags :
         {TYPE_REPLY, TYPE_REPLY | FLAG_ERROR, TYPE_REPLY | FLAG_NO_REPLY}) {
        client c = connect();
        c.send(DMA_READ, bytes(24, 0), flags);
        expect_thrown_out(c);
    }
    client c(path(0));  // before VERSION too
    c.send(VERSION, {}, TYPE_REPLY);
    EXPECT_TRUE(c.is_closed());
    EXPECT_TRUE(
        wait_until([&] { return m_server->counters(0).violations == 4; }));
    EXPECT_EQ(warnings(), 4u);
}

TEST_F(malformed_test, missing_and_trailing_bytes) {
    struct {
        std::uint16_t command;
        std::size_t size;
    } const fixed[] = {{DMA_MAP, sizeof(dma_map)},
                       {DMA_UNMAP, sizeof(dma_unmap)},
                       {DEVICE_GET_INFO, sizeof(device_info)},
                       {DEVICE_GET_REGION_INFO, sizeof(region_info)},
                       {DEVICE_GET_REGION_IO_FDS, sizeof(region_io_fds)},
                       {DEVICE_GET_IRQ_INFO, sizeof(irq_info)},
                       {DEVICE_SET_IRQS, sizeof(irq_set)},
                       {REGION_READ, sizeof(region_access)},
                       {REGION_WRITE, sizeof(region_access)},
                       {DEVICE_RESET, 0}};
    client c = connect();
    for (const auto& f : fixed) {
        if (f.size != 0) {
            EXPECT_EQ(c.transact(f.command, {}).error(), EINVAL) << f.command;
            EXPECT_EQ(c.transact(f.command, bytes(f.size - 1, 0xff)).error(),
                      EINVAL)
                << f.command;
        }
        EXPECT_EQ(c.transact(f.command, bytes(f.size + 1, 0xff)).error(),
                  EINVAL)
            << f.command;
    }
    EXPECT_EQ(m_device[0]->log().size(), 1u);
}

TEST_F(malformed_test, a_message_in_single_bytes) {
    client c(path(0));
    bytes all;
    const auto add = [&all](std::uint16_t id, std::uint16_t command,
                            const bytes& payload) {
        header head{id, command, 0, 0, 0};
        head.size = static_cast<std::uint32_t>(sizeof(head) + payload.size());
        const bytes h = to_bytes(head);
        all.insert(all.end(), h.begin(), h.end());
        all.insert(all.end(), payload.begin(), payload.end());
    };
    add(1, VERSION, to_bytes(version{0, 0}));
    add(2, REGION_READ, to_bytes(region_access{0, REGION_CONFIG, 4}));
    add(3, DEVICE_RESET, {});
    for (const std::uint8_t b : all)
        c.send_raw(&b, 1);
    for (unsigned id : {1u, 2u, 3u}) {
        const auto m = c.receive();
        ASSERT_TRUE(m);
        EXPECT_EQ(m->header.id, id);
        EXPECT_EQ(m->error(), 0);
    }
}

TEST_F(malformed_test, many_messages_in_one_piece) {
    client c = connect();
    bytes all;
    for (std::uint16_t i = 0; i < 5000; i++) {
        const bytes h = to_bytes(header{i, REGION_READ, 32, 0, 0});
        const bytes p = to_bytes(region_access{0, REGION_CONFIG, 4});
        all.insert(all.end(), h.begin(), h.end());
        all.insert(all.end(), p.begin(), p.end());
    }
    std::thread sender([&] { c.send_raw(all); });
    for (std::uint16_t i = 0; i < 5000; i++) {
        const auto m = c.receive();
        ASSERT_TRUE(m);
        ASSERT_EQ(m->header.id, i);
    }
    sender.join();
}

TEST_F(malformed_test, end_in_mid_message) {
    const bytes whole = to_bytes(header{1, REGION_READ, 32, 0, 0});
    for (std::size_t n : {1u, 8u, 15u, 16u}) {
        client c = connect();
        c.send_raw(whole.data(), n);
        c.close();
        EXPECT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
    }
    EXPECT_EQ(m_server->counters(0).violations, 0u);
    EXPECT_EQ(connect().device_info().num_regions, REGION_COUNT);
}

TEST_F(malformed_test, half_a_message_holds_up_nobody) {
    client c = connect();
    c.send_raw(to_bytes(header{1, REGION_READ, 32, 0, 0}));
    m_other->write(0, 0x20, 8, 5);
    EXPECT_EQ(m_other->read(0, 0x20, 8), 5u);
    c.send_raw(to_bytes(region_access{0, 0, 4}));
    const auto m = c.receive();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->error(), 0);
}

TEST_F(malformed_test, repeated_faults_do_not_fill_the_log) {
    client c = connect();
    for (int i = 0; i < 2000; i++)
        EXPECT_EQ(c.transact(999, {}).error(), ENOTSUP);
    EXPECT_LT(warnings(), 40u);
    EXPECT_GT(warnings(), 0u);
    EXPECT_EQ(m_server->counters(0).errors, 2000u);
}

TEST_F(malformed_test, half_closed_by_the_client) {
    client c = connect();
    c.send(REGION_READ, to_bytes(region_access{0, 0, 4}));
    ASSERT_EQ(::shutdown(c.socket(), SHUT_WR), 0);
    // The end of its stream is the end of the client; a reply may still come.
    EXPECT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
}

// One client sends noise of all kinds; the other's traffic goes on.
TEST_F(malformed_test, noise_beside_a_client_that_works) {
    std::mt19937 random(1);
    for (int round = 0; round < 60; round++) {
        client c(path(0));
        if (round % 3 != 0 && c.negotiate().error() != 0)
            ADD_FAILURE();
        try {
            for (int i = 0; i < 30; i++) {
                bytes b(random() % 80);
                for (std::uint8_t& byte : b)
                    byte = static_cast<std::uint8_t>(random());
                if (b.size() >= sizeof(header) && random() % 4 != 0) {
                    header head{};
                    head.id = static_cast<std::uint16_t>(i);
                    head.command = static_cast<std::uint16_t>(random() % 20);
                    head.size = static_cast<std::uint32_t>(b.size());
                    head.flags = random() % 2 != 0 ? 0 : FLAG_NO_REPLY;
                    __builtin_memcpy(b.data(), &head, sizeof(head));
                }
                c.send_raw(b);
            }
        } catch (const std::runtime_error&) {
            // Thrown out already.
        }
        m_other->write(0, 0x30, 4, static_cast<std::uint32_t>(round));
        ASSERT_EQ(m_other->read(0, 0x30, 4), static_cast<std::uint32_t>(round));
        c.close();
        ASSERT_TRUE(wait_until([&] {
            const auto k = m_server->counters(0);
            return k.disconnects == k.connections;
        }));
    }
    EXPECT_EQ(m_server->counters(1).disconnects, 0u);
}

}  // namespace vfio_user
}  // namespace prawn
