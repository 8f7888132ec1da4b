// SPDX-License-Identifier: Apache-2.0
//
// DMA_READ and DMA_WRITE: the fallback for memory without descriptor.

#include <cerrno>
#include <condition_variable>
#include <cstring>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class dma_message_test : public vfio_user_test
{
protected:
    static constexpr std::uint64_t BASE = 0x100000;

    void configure(server_options& options) override {
        options.dma_timeout = std::chrono::milliseconds(200);
        options.max_data_xfer_size = 65536;
    }

    void SetUp() override {
        vfio_user_test::SetUp();
        for (std::size_t i = 0; i < m_guest.size(); i++)
            m_guest[i] = static_cast<std::uint8_t>(i * 13 + (i >> 9) + 1);
    }

    // What a callback has said; it comes on the protocol thread.
    struct result {
        std::mutex lock;
        std::condition_variable changed;
        int calls = 0;
        int error = -1;
        bytes data;

        void set(int e, const std::uint8_t* p = nullptr, std::size_t n = 0) {
            const std::lock_guard<std::mutex> hold(lock);
            calls++;
            error = e;
            data.assign(p, p + n);
            changed.notify_all();
        }
        int wait() {
            std::unique_lock<std::mutex> hold(lock);
            changed.wait_for(hold, std::chrono::seconds(10),
                             [this] { return calls != 0; });
            return calls == 1 ? error : -1;
        }
    };

    bool read(result& r, std::uint64_t iova, std::size_t size) {
        return m_server->dma_read(
            0, iova, size, [&r](int e, const std::uint8_t* p, std::size_t n) {
                r.set(e, p, n);
            });
    }

    bool write(result& r, std::uint64_t iova, const bytes& data) {
        return m_server->dma_write(0, iova, data.data(), data.size(),
                                   [&r](int e) { r.set(e); });
    }

    bytes slice(std::size_t from, std::size_t size) const {
        const auto at = m_guest.begin() + static_cast<std::ptrdiff_t>(from);
        return bytes(at, at + static_cast<std::ptrdiff_t>(size));
    }

    void round_trip(bool count32) {
        client c = connect();
        result r;
        ASSERT_TRUE(read(r, BASE + 5, 1000));
        ASSERT_TRUE(c.serve_dma(m_guest, BASE, count32));  // the probe
        ASSERT_TRUE(c.serve_dma(m_guest, BASE, count32));
        EXPECT_EQ(r.wait(), 0);
        EXPECT_EQ(r.data, slice(5, 1000));
        const bytes data(777, 0xa5);
        result w;
        ASSERT_TRUE(write(w, BASE + 100, data));
        ASSERT_TRUE(c.serve_dma(m_guest, BASE, count32));
        EXPECT_EQ(w.wait(), 0);
        EXPECT_EQ(slice(100, 777), data);
        EXPECT_NE(m_guest[99], 0xa5);
        EXPECT_NE(m_guest[877], 0xa5);
    }

    bytes m_guest = bytes(1u << 20);
};

TEST_F(dma_message_test, with_the_count_of_the_specification) {
    round_trip(false);
}

TEST_F(dma_message_test, with_the_count_of_older_qemu) {
    round_trip(true);
}

TEST_F(dma_message_test, long_transfers_go_in_pieces) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 300000));
    for (int i = 0; i < 6; i++)
        ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    EXPECT_EQ(r.wait(), 0);
    EXPECT_EQ(r.data, slice(0, 300000));
    bytes data(200001);
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::uint8_t>(i ^ (i >> 8));
    result w;
    ASSERT_TRUE(write(w, BASE + 3, data));
    for (int i = 0; i < 4; i++)
        ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    EXPECT_EQ(w.wait(), 0);
    EXPECT_EQ(slice(3, data.size()), data);
}

TEST_F(dma_message_test, several_at_a_time_and_nothing_at_all) {
    client c = connect();
    result r[20];
    for (std::size_t i = 0; i < 20; i++)
        ASSERT_TRUE(read(r[i], BASE + 100 * i, 100));
    for (std::size_t i = 0; i < 21; i++)
        ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    for (std::size_t i = 0; i < 20; i++) {
        EXPECT_EQ(r[i].wait(), 0);
        EXPECT_EQ(r[i].data, slice(100 * i, 100));
    }
    result none;
    ASSERT_TRUE(read(none, BASE, 0));
    EXPECT_EQ(none.wait(), 0);
    result nothing;
    ASSERT_TRUE(write(nothing, BASE, {}));
    EXPECT_EQ(nothing.wait(), 0);
}

TEST_F(dma_message_test, replies_in_any_order) {
    client c = connect();
    result first;
    ASSERT_TRUE(read(first, BASE, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    EXPECT_EQ(first.wait(), 0);
    result a;
    result b;
    ASSERT_TRUE(read(a, BASE, 8));
    ASSERT_TRUE(read(b, BASE + 8, 8));
    const auto ask_a = c.receive_command();
    const auto ask_b = c.receive_command();
    ASSERT_TRUE(ask_a && ask_b);
    bytes reply = ask_b->payload;
    reply.insert(reply.end(), 8, 0xbb);
    c.reply(ask_b->header, reply);
    EXPECT_EQ(b.wait(), 0);
    EXPECT_EQ(a.calls, 0);
    reply = ask_a->payload;
    reply.insert(reply.end(), 8, 0xaa);
    c.reply(ask_a->header, reply);
    EXPECT_EQ(a.wait(), 0);
    EXPECT_EQ(a.data, bytes(8, 0xaa));
}

TEST_F(dma_message_test, the_client_may_refuse) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, 0, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    EXPECT_EQ(r.wait(), EFAULT);
    EXPECT_TRUE(r.data.empty());
    result w;
    ASSERT_TRUE(write(w, 0, bytes(4, 0)));
    const auto ask = c.receive_command();
    ASSERT_TRUE(ask);
    // An error without number, and one that is no number.
    c.reply(ask->header, {}, -1);
    EXPECT_EQ(w.wait(), EIO);
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(dma_message_test, short_transfers_go_on) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    auto ask = c.receive_command();
    ASSERT_TRUE(ask);
    bytes reply = to_bytes(dma_transfer{BASE, 3});
    reply.insert(reply.end(), {1, 2, 3});
    c.reply(ask->header, reply);
    ask = c.receive_command();
    ASSERT_TRUE(ask);
    EXPECT_EQ(ask->as<dma_transfer>().address, BASE + 3);
    EXPECT_EQ(ask->as<dma_transfer>().count, 5u);
    reply = to_bytes(dma_transfer{BASE + 3, 5});
    reply.insert(reply.end(), {4, 5, 6, 7, 8});
    c.reply(ask->header, reply);
    EXPECT_EQ(r.wait(), 0);
    EXPECT_EQ(r.data, (bytes{1, 2, 3, 4, 5, 6, 7, 8}));
    // None at all is no progress.
    result w;
    ASSERT_TRUE(write(w, BASE, bytes(4, 0)));
    ask = c.receive_command();
    ASSERT_TRUE(ask);
    c.reply(ask->header, to_bytes(dma_transfer{BASE, 0}));
    EXPECT_EQ(w.wait(), EIO);
}

TEST_F(dma_message_test, malformed_replies_close_the_connection) {
    const auto broken = [this](bool is_read, std::uint16_t command,
                               const bytes& payload) {
        client c = connect();
        result r;
        EXPECT_TRUE(is_read ? read(r, BASE, 8) : write(r, BASE, bytes(8, 0)));
        EXPECT_TRUE(c.serve_dma(m_guest, BASE));
        const auto ask = c.receive_command();
        EXPECT_TRUE(ask);
        header head = ask->header;
        head.command = command;
        c.reply(head, payload);
        EXPECT_EQ(r.wait(), EPROTO);
        EXPECT_TRUE(c.is_closed());
        EXPECT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
    };
    bytes good = to_bytes(dma_transfer{BASE, 8});
    good.resize(24);
    bytes longer = to_bytes(dma_transfer{BASE, 9});
    longer.resize(25);
    broken(true, DMA_READ, {});
    broken(true, DMA_READ, bytes(15, 0));
    broken(true, DMA_READ, bytes(good.begin(), good.end() - 1));
    broken(true, DMA_READ, longer);
    broken(true, DMA_WRITE, good);
    broken(false, DMA_READ, to_bytes(dma_transfer{BASE, 8}));
    broken(false, DMA_WRITE, bytes(3, 0));
    EXPECT_EQ(m_server->counters(0).violations, 7u);
    EXPECT_EQ(warnings("malformed reply"), 7u);
}

TEST_F(dma_message_test, time_out_and_a_reply_that_comes_too_late) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    const auto ask = c.receive_command();
    ASSERT_TRUE(ask);
    EXPECT_EQ(r.wait(), ETIMEDOUT);
    bytes reply = ask->payload;
    reply.resize(24);
    c.reply(ask->header, reply);
    EXPECT_EQ(c.read(0, 0, 4), 0u) << "tolerated once";
    EXPECT_EQ(r.calls, 1);
    result again;
    ASSERT_TRUE(read(again, BASE, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    EXPECT_EQ(again.wait(), 0);
    c.reply(ask->header, reply);
    EXPECT_TRUE(c.is_closed()) << "but not twice";
}

TEST_F(dma_message_test, probe_that_is_never_answered) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 8));
    EXPECT_EQ(r.wait(), ETIMEDOUT);
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(dma_message_test, a_client_that_reads_nothing_is_not_written_for) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 8));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));  // the probe
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    ASSERT_EQ(r.wait(), 0);
    // Each of these would be kept until somebody takes it.
    const bytes data(65536, 1);
    std::vector<result> all(100);
    for (result& one : all)
        ASSERT_TRUE(write(one, BASE, data));
    int refused = 0;
    for (result& one : all) {
        const int error = one.wait();
        EXPECT_TRUE(error == EBUSY || error == ETIMEDOUT) << error;
        refused += error == EBUSY ? 1 : 0;
    }
    EXPECT_GT(refused, 50);
}

TEST_F(dma_message_test, ends_with_the_client) {
    result early;
    EXPECT_FALSE(read(early, BASE, 8)) << "nobody there";
    client c = connect();
    result r;
    result w;
    ASSERT_TRUE(read(r, BASE, 8));
    ASSERT_TRUE(write(w, BASE, bytes(100, 1)));
    ASSERT_TRUE(c.serve_dma(m_guest, BASE));
    ASSERT_TRUE(c.receive_command());
    c.close();
    EXPECT_EQ(r.wait(), ENOTCONN);
    EXPECT_EQ(w.wait(), ENOTCONN);
    EXPECT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
    EXPECT_FALSE(read(early, BASE, 8));
    EXPECT_EQ(early.calls, 0);
    EXPECT_FALSE(m_server->dma_read(9, BASE, 1, {}));
    EXPECT_FALSE(m_server->dma_write(9, BASE, "x", 1, {}));
}

TEST_F(dma_message_test, ends_with_the_server) {
    client c = connect();
    result r;
    ASSERT_TRUE(read(r, BASE, 8));
    m_server->stop();
    EXPECT_EQ(r.calls, 1);
    EXPECT_EQ(r.error, ENOTCONN);
    EXPECT_FALSE(read(r, BASE, 8));
}

}  // namespace vfio_user
}  // namespace prawn
