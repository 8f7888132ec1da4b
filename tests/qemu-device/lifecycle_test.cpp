// SPDX-License-Identifier: Apache-2.0
//
// Clients that come, go, are killed and come again; the server's own end.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "qemu-device/vfio_user/config_space.h"
#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class lifecycle_test : public vfio_user_test
{
protected:
    bool wait_gone(std::size_t card = 0) {
        return wait_until([&] { return !m_server->is_connected(card); });
    }

    static void expect_reset_state(client& c) {
        EXPECT_EQ(c.config_read(4, 2), 0u);
        EXPECT_EQ(c.config_read(0x10, 4), 4u);
        EXPECT_EQ(c.config_read(config_space::MSIX_CAPABILITY + 2, 2), 15u);
        EXPECT_EQ(c.read(0, 0x100, 8), 0u);
        EXPECT_EQ(c.read(0, 0x800c, 4), 1u);
        EXPECT_EQ(c.read(0, 0x9000, 8), 0u);
    }

    static void make_dirty(client& c, int memory, int event) {
        c.config_write(4, 2, 6);
        c.config_write(0x10, 4, 0xe0000000);
        c.config_write(config_space::MSIX_CAPABILITY + 2, 2, 0x8000);
        c.write(0, 0x100, 8, 77);
        c.write(0, 0x800c, 4, 0);
        EXPECT_EQ(c.dma_map(0, MEMORY, memory), 0);
        EXPECT_EQ(c.dma_map(0x80000000, 4096), 0);
        EXPECT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 1, {event}), 0);
    }
};

TEST_F(lifecycle_test, the_next_client_finds_a_card_in_reset_state) {
    const unique_fd memory = make_memory(MEMORY);
    const unique_fd event = make_eventfd();
    for (int i = 0; i < 5; i++) {
        client c = connect();
        expect_reset_state(c);
        EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
        make_dirty(c, memory.get(), event.get());
        c.close();
        ASSERT_TRUE(wait_gone());
        m_server->trigger_msix(0, 0);
        EXPECT_EQ(events_now(event), 0u) << "the old client's eventfd";
    }
    const auto log = m_device[0]->log();
    ASSERT_GE(log.size(), 4u);
    EXPECT_EQ(log[0], "connected");
    EXPECT_EQ(log[1], "bus master on");
    EXPECT_EQ(log[2], "bus master off");
    EXPECT_EQ(log[3], "disconnected");
    EXPECT_EQ(log[4], "connected");
    EXPECT_EQ(m_server->counters(0).disconnects, 5u);
}

TEST_F(lifecycle_test, the_next_client_waits_for_the_drain) {
    const unique_fd memory = make_memory(MEMORY);
    client c = connect();
    ASSERT_EQ(c.dma_map(0, MEMORY, memory.get()), 0);
    m_device[0]->run([](guest_memory&) {});
    m_device[0]->hold(true);
    c.close();
    ASSERT_TRUE(wait_gone());
    client next(path(0));
    const bytes proposed = to_bytes(version{0, 0});
    next.send(VERSION, proposed);
    EXPECT_TRUE(next.is_silent(100));
    EXPECT_EQ(m_device[0]->waiting_regions(), 1u);
    m_device[0]->hold(false);
    const auto m = next.receive();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->error(), 0);
    EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
    EXPECT_EQ(m_server->counters(0).refused, 0u);
}

TEST_F(lifecycle_test, answers_to_a_client_that_has_gone_are_dropped) {
    client c = connect();
    m_device[0]->hold(true);
    for (int i = 0; i < 10; i++)
        c.send(REGION_READ, to_bytes(region_access{0, 0, 4}));
    c.send(DEVICE_RESET, {});
    const protocol::dma_map map{32, 3, 0, 0, 4096};
    const protocol::dma_unmap unmap{24, 0, 0, 4096};
    c.send(DMA_MAP, to_bytes(map));
    c.send(DMA_UNMAP, to_bytes(unmap));
    ASSERT_TRUE(wait_until([&] { return m_device[0]->queued() == 13; }));
    c.close();
    ASSERT_TRUE(wait_gone());
    m_device[0]->hold(false);
    client next = connect();
    EXPECT_EQ(next.read(0, 0, 4), 0u);
    EXPECT_TRUE(next.is_silent(50)) << "a reply of the last client's";
    EXPECT_GE(m_server->counters(0).late_replies, 12u);
}

TEST_F(lifecycle_test, tokens_that_nobody_knows) {
    m_server->complete(reply_token{}, 0);
    m_server->complete_read(reply_token{}, 1);
    m_server->complete(reply_token{1}, 0);
    m_server->complete_read(reply_token{~std::uint64_t{0}}, 1);
    m_server->complete(reply_token{std::uint64_t{1} << 52 | 5}, 0);
    client c = connect();
    EXPECT_EQ(c.read(0, 0, 4), 0u);
}

TEST_F(lifecycle_test, a_second_client_is_refused) {
    client c = connect();
    for (int i = 0; i < 3; i++) {
        client second(path(0));
        EXPECT_TRUE(second.is_closed());
    }
    EXPECT_EQ(m_server->counters(0).refused, 3u);
    EXPECT_EQ(warnings("refused a second client"), 3u);
    EXPECT_EQ(warnings(), 3u);
    EXPECT_EQ(c.read(0, 0, 4), 0u);
    client other = connect(1);
    EXPECT_EQ(other.read(0, 0, 4), 0u);
}

TEST_F(lifecycle_test, a_client_that_never_spoke_leaves_no_trace) {
    for (int i = 0; i < 20; i++) {
        client c(path(0));
        c.close();
        ASSERT_TRUE(wait_until([&] {
            return m_server->counters(0).disconnects ==
                   static_cast<std::uint64_t>(i) + 1;
        }));
    }
    EXPECT_TRUE(m_device[0]->log().empty());
    EXPECT_EQ(connect().read(0, 0, 4), 0u);
}

TEST_F(lifecycle_test, reconnects_in_quick_succession) {
    for (int i = 0; i < 300; i++) {
        client c = connect(0);
        c.post(0, 0x100, 8, 1);
        if (i % 2 == 0) {
            EXPECT_EQ(c.read(0, 0x100, 8), 1u);
        }
    }
    EXPECT_EQ(m_server->counters(0).refused, 0u);
    EXPECT_TRUE(wait_gone());
    EXPECT_EQ(m_server->counters(0).connections, 300u);
}

// Fork and kill: the child is the client, and dies without a word.
TEST_F(lifecycle_test, a_client_is_killed_in_mid_message) {
    const unique_fd memory = make_memory(MEMORY);
    const unique_fd event = make_eventfd();
    client other = connect(1);
    for (int how = 0; how < 4; how++) {
        int ready[2];
        ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
        const pid_t pid = ::fork();
        if (pid == 0) {
            // No gtest, no destructors in here.
            client c(path(0));
            if (c.negotiate().error() != 0)
                ::_exit(1);
            c.dma_map(0, MEMORY, memory.get());
            c.set_irqs(IRQ_MSIX, 0x24, 0, 1, {event.get()});
            const bytes head =
                to_bytes(header{1, DMA_MAP, how == 3 ? 500u : 48u, 0, 0});
            if (how == 1)
                c.send_raw(head.data(), 7);
            if (how == 2)
                c.send_raw(head, {memory.get()});
            if (how == 3)
                c.send_raw(bytes(head), {event.get(), memory.get()});
            if (::write(ready[1], "x", 1) != 1)
                ::_exit(2);
            for (;;)
                ::pause();
        }
        char x;
        ASSERT_EQ(::read(ready[0], &x, 1), 1);
        EXPECT_TRUE(m_server->is_connected(0));
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        ::close(ready[0]);
        ::close(ready[1]);
        ASSERT_TRUE(wait_gone());
        client next = connect();
        expect_reset_state(next);
        EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
        next.close();
        ASSERT_TRUE(wait_gone());
        EXPECT_EQ(other.read(0, 0, 4), 0u);
    }
}

TEST_F(lifecycle_test, stop_with_everything_under_way) {
    const unique_fd memory = make_memory(MEMORY);
    const unique_fd event = make_eventfd();
    client c = connect();
    make_dirty(c, memory.get(), event.get());
    client silent(path(1));
    std::atomic<bool> done{false};
    std::thread model([&] {
        while (!done) {
            m_server->trigger_msix(0, 0);
            m_server->set_intx(0, true);
            m_server->dma_write(0, 0x80000000, "x", 1, [](int) {});
        }
    });
    for (int i = 0; i < 50; i++)
        c.send(REGION_READ, to_bytes(region_access{0, 0, 4}));
    m_server->stop();
    m_server->stop();
    done = true;
    model.join();
    EXPECT_FALSE(m_server->is_connected(0));
    EXPECT_THROW(client(path(0)), std::runtime_error);
    EXPECT_THROW(m_server->start(), std::logic_error);
    EXPECT_TRUE(silent.is_closed());
}

TEST_F(lifecycle_test, sockets_of_a_dead_server_are_replaced) {
    const std::string stale = path(3);
    {
        // Bound, and closed without being removed.
        const unique_fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        stale.copy(address.sun_path, sizeof(address.sun_path) - 1);
        ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address),
                         sizeof(address)),
                  0);
    }
    ASSERT_TRUE(std::filesystem::exists(stale));
    fake_device device;
    server s;
    device.bind(s, s.add_endpoint(stale, device));
    s.start();
    client c(stale);
    EXPECT_EQ(c.negotiate().error(), 0);
    s.stop();
    EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST_F(lifecycle_test, what_is_no_socket_is_left_alone) {
    const std::string file = path(3);
    const unique_fd fd(
        ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd);
    {
        fake_device device;
        server s;
        EXPECT_THROW(s.add_endpoint(file, device), std::system_error);
    }
    EXPECT_TRUE(std::filesystem::exists(file));
    std::filesystem::remove(file);
}

TEST_F(lifecycle_test, idle_uses_no_cpu) {
    const unique_fd memory = make_memory(MEMORY);
    const unique_fd event = make_eventfd();
    client c = connect();
    client silent(path(1));
    make_dirty(c, memory.get(), event.get());
    const auto used = [] {
        rusage r{};
        ::getrusage(RUSAGE_SELF, &r);
        return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
               1e-6 *
                   static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
    };
    const auto switches = [] {
        rusage r{};
        ::getrusage(RUSAGE_SELF, &r);
        return r.ru_nvcsw;
    };
    const double before = used();
    const long switches_before = switches();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_LT(used() - before, 0.01);
    // A sanitizer's own thread wakes ten times a second.
    EXPECT_LT(switches() - switches_before, 30) << "something polls";
}

class version_timeout_test : public lifecycle_test
{
protected:
    void configure(server_options& options) override {
        options.version_timeout = std::chrono::milliseconds(300);
    }
};

TEST_F(version_timeout_test, a_silent_client_does_not_keep_the_card) {
    client silent(path(0));
    client next(path(0));
    next.send(VERSION, to_bytes(version{0, 0}));
    EXPECT_TRUE(next.is_silent(50)) << "it waits, and is not turned away";
    const auto m = next.receive();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->error(), 0);
    EXPECT_TRUE(silent.is_closed());
    EXPECT_EQ(warnings("no version negotiated in time"), 1u);
    EXPECT_EQ(m_server->counters(0).violations, 1u);
    EXPECT_EQ(m_server->counters(0).refused, 0u);
    // Whoever has negotiated may be silent for as long as it likes.
    EXPECT_TRUE(next.is_silent(700));
    EXPECT_EQ(next.read(0, 0, 4), 0u);
}

TEST_F(version_timeout_test, nor_does_one_that_only_talks) {
    client talker(path(0));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    bool thrown_out = false;
    while (!thrown_out && std::chrono::steady_clock::now() < end) {
        try {
            thrown_out = talker.transact(VERSION, {}).error() != EINVAL;
        } catch (const std::runtime_error&) {
            thrown_out = true;
        }
    }
    EXPECT_TRUE(thrown_out);
    EXPECT_EQ(connect().read(0, 0, 4), 0u);
}

TEST_F(version_timeout_test, holds_while_another_card_is_busy) {
    client busy = connect(1);
    std::atomic<bool> done{false};
    std::thread flood([&] {
        // Always something to read: no wait of the server's ever times out.
        const bytes info = to_bytes(protocol::device_info{16, 0, 0, 0});
        while (!done)
            busy.send(DEVICE_GET_INFO, info, FLAG_NO_REPLY);
    });
    client silent(path(0));
    EXPECT_TRUE(silent.is_closed());
    done = true;
    flood.join();
}

TEST_F(lifecycle_test, no_descriptor_left_for_a_client) {
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
    const int next = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(next, 0);
    ::close(next);
    rlimit tight = old;
    tight.rlim_cur = static_cast<rlim_t>(next) + 1;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    client c(path(0));
    // It tries ten times a second, and says so less often.
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    const std::size_t lines = warnings("cannot accept");
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_GE(lines, 1u);
    EXPECT_LE(lines, 20u);
    EXPECT_EQ(c.negotiate().error(), 0);
}

TEST_F(lifecycle_test, a_client_that_is_held_back_and_leaves) {
    client c = connect();
    m_device[0]->set_capacity(4);
    m_device[0]->hold(true);
    for (int i = 0; i < 100; i++)
        c.post(0, 0x100, 8, 5);
    ASSERT_TRUE(wait_until([&] { return m_device[0]->queued() == 4; }));
    c.close();
    ASSERT_TRUE(wait_gone());
    m_device[0]->hold(false);
    m_device[0]->set_capacity(1000);
    client next = connect();
    expect_reset_state(next);
}

}  // namespace vfio_user
}  // namespace prawn
