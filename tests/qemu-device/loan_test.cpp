// SPDX-License-Identifier: Apache-2.0
//
// Loans of a client's socket: its requests on another thread.

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class loan_test : public vfio_user_test
{
protected:
    // The protocol thread has had time to do what it should not.
    static void pause() {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    bool borrow(std::size_t card = 0) {
        return wait_until([&] { return m_server->borrow(card); });
    }
    // Until the borrower has handled something, for a while.
    bool poll_until(const std::function<bool()>& done) {
        for (int i = 0; i < 2000 && !done(); i++) {
            m_server->poll(0);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return done();
    }
};

TEST_F(loan_test, needs_a_client) {
    EXPECT_FALSE(m_server->borrow(0));
    EXPECT_FALSE(m_server->borrow(2));  // no such card
    client c = connect();
    ASSERT_TRUE(borrow());
    EXPECT_FALSE(m_server->borrow(0)) << "lent already";
    EXPECT_FALSE(m_server->borrow(1)) << "a card without a client";
    m_server->give_back(0);
    ASSERT_TRUE(borrow());
    m_server->give_back(0);
}

TEST_F(loan_test, requests_are_handled_by_the_borrower_only) {
    client c = connect();
    c.write(0, 0x100, 4, 1);
    ASSERT_TRUE(borrow());
    const std::uint64_t before = m_server->counters(0).messages;
    c.post(0, 0x100, 4, 2);
    pause();
    EXPECT_EQ(m_server->counters(0).messages, before);
    EXPECT_TRUE(m_server->poll(0));
    EXPECT_EQ(m_server->counters(0).messages, before + 1);
    EXPECT_TRUE(m_server->poll(0)) << "nothing there is no reason to end it";

    auto value =
        std::async(std::launch::async, [&] { return c.read(0, 0x100, 4); });
    EXPECT_TRUE(poll_until([&] {
        return value.wait_for(std::chrono::seconds(0)) ==
               std::future_status::ready;
    }));
    EXPECT_EQ(value.get(), 2u);
    m_server->give_back(0);
    EXPECT_EQ(c.read(0, 0x100, 4), 2u);
}

TEST_F(loan_test, what_comes_during_it_is_handled_after_it) {
    client c = connect();
    ASSERT_TRUE(borrow());
    const std::uint16_t id = c.send(DEVICE_RESET, {});
    pause();
    m_server->give_back(0);
    const auto reply = c.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.id, id);
}

TEST_F(loan_test, the_other_card_goes_on) {
    client c = connect();
    client other = connect(1);
    ASSERT_TRUE(borrow());
    for (std::uint32_t i = 0; i < 100; i++) {
        other.write(0, 0x100, 4, i);
        ASSERT_EQ(other.read(0, 0x100, 4), i);
    }
    m_server->give_back(0);
}

TEST_F(loan_test, ends_when_the_client_leaves) {
    for (int i = 0; i < 20; i++) {
        client c = connect();
        ASSERT_TRUE(borrow());
        if (i % 2)
            c.post(0, 0x100, 4, 2);
        c.close();
        EXPECT_TRUE(wait_until([&] { return !m_server->poll(0); }));
        m_server->give_back(0);
        ASSERT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
        EXPECT_FALSE(m_server->borrow(0));
    }
    client c = connect();
    c.write(0, 0x100, 4, 9);
    EXPECT_EQ(c.read(0, 0x100, 4), 9u);
}

TEST_F(loan_test, ends_when_the_client_breaks_the_protocol) {
    client c = connect();
    ASSERT_TRUE(borrow());
    c.send_raw(bytes(16, 0xff));
    EXPECT_TRUE(wait_until([&] { return !m_server->poll(0); }));
    m_server->give_back(0);
    EXPECT_TRUE(c.is_closed());
    EXPECT_EQ(m_server->counters(0).violations, 1u);
}

TEST_F(loan_test, ends_when_another_client_comes) {
    client c = connect();
    ASSERT_TRUE(borrow());
    client second(path(0));
    EXPECT_TRUE(wait_until([&] { return !m_server->poll(0); }));
    m_server->give_back(0);
    EXPECT_TRUE(second.is_closed());
    EXPECT_EQ(m_server->counters(0).refused, 1u);
    c.write(0, 0x100, 4, 5);
    EXPECT_EQ(c.read(0, 0x100, 4), 5u);
}

TEST_F(loan_test, stop_waits_for_its_end) {
    client c = connect();
    ASSERT_TRUE(borrow());
    auto stopped = std::async(std::launch::async, [&] { m_server->stop(); });
    EXPECT_TRUE(wait_until([&] { return !m_server->poll(0); }));
    EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(50)),
              std::future_status::timeout);
    m_server->give_back(0);
    stopped.get();
    EXPECT_FALSE(m_server->borrow(0));
}

// Loans as short and as many as can be, while the client works.
TEST_F(loan_test, nothing_is_lost_at_the_ends_of_loans) {
    client c = connect();
    std::atomic<bool> end{false};
    std::thread borrower([&] {
        while (!end) {
            if (!m_server->borrow(0))
                continue;
            m_server->poll(0);
            m_server->give_back(0);
        }
    });
    for (std::uint32_t i = 0; i < 3000; i++) {
        c.post(0, 0x100, 4, i);
        c.write(0, 0x108, 4, i);
        const std::uint64_t got = c.read(0, 0x100, 4);
        EXPECT_EQ(got, i);
        if (got != i)
            break;
    }
    end = true;
    borrower.join();
}

}  // namespace vfio_user
}  // namespace prawn
