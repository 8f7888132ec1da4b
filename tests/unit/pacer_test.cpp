// SPDX-License-Identifier: Apache-2.0
// Model and guests in step, without QEMU: each guest is a thread that keeps the
// rules of the plugin and, besides, is held up at random by its host.
#include "qemu-device/lockstep/pacer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "qemu-device/bridge/kernel_stopper.h"
#include "qemu-device/lockstep/bell.h"
#include "sim/cluster.h"
#include "tests/qemu-device/client.h"

namespace prawn {
namespace test {
namespace {

using namespace vfio_user;
using lockstep::nanoseconds;

constexpr std::uint64_t GUEST = 0x100000;
constexpr std::size_t GUEST_SIZE = 1 << 20;
constexpr std::uint64_t RING = GUEST, ACKS = GUEST + 0x1000;
constexpr auto PATIENCE = std::chrono::seconds(60);

struct world {
    std::string directory;
    std::unique_ptr<cluster> model;
    std::vector<std::unique_ptr<bridge>> bridges;
    std::unique_ptr<lockstep::pacer> pacer;
    std::unique_ptr<server> vfio;

    world() {
        std::string name = "/tmp/prawn-pacer-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        model = std::make_unique<cluster>("model", load_config(""));
        pacer =
            std::make_unique<lockstep::pacer>(file(), 1000, model->profile());
        vfio = std::make_unique<server>();
        for (unsigned k = 0; k < 2; k++) {
            bridges.push_back(
                std::make_unique<bridge>(("host" + std::to_string(k)).c_str()));
            bridge& b = *bridges.back();
            host_bus& bus = model->at(k).bus;
            b.bar_out.bind(bus.bar_in);
            bus.dma_out.bind(b.dma_in);
            bus.interrupt_out.bind(b.interrupt_in);
            b.control_out.bind(bus.control_in);
            b.attach(*vfio, vfio->add_endpoint(path(k), b));
            pacer->add(b, bus);
        }
    }
    ~world() {
        vfio->stop();
        pacer.reset();
        ::rmdir(directory.c_str());
    }
    std::string path(unsigned k) const {
        return directory + "/node" + std::to_string(k) + ".sock";
    }
    std::string file() const { return directory + "/lockstep"; }
};

world* the_world = nullptr;

// A virtual CPU with its plugin.
class guest
{
public:
    explicit guest(unsigned node) :
        m_node(node),
        m_random(node + 1),
        m_all(map()),
        m_me(m_all->guest[node]) {
        m_me.guest.pid.store(static_cast<std::uint32_t>(::getpid()));
        m_me.guest.joined.store(1);
        m_answers = std::thread([this] { answer(); });
    }
    ~guest() {
        wire.reset();
        // A process answers until it is gone.
        while (m_me.model.state.load() != lockstep::presence::GONE)
            std::this_thread::yield();
        m_end.store(true);
        m_answers.join();
        ::munmap(m_all, sizeof *m_all);
    }
    void start() {
        wire = std::make_unique<client>(the_world->path(m_node));
        wire->set_timeout(60000);
        wire->negotiate();
        wire->config_write(4, 2, 0x6);
        m_fd = unique_fd(::memfd_create("guest", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(m_fd.get(), GUEST_SIZE), 0);
        memory = static_cast<std::uint8_t*>(::mmap(nullptr, GUEST_SIZE,
                                                   PROT_READ | PROT_WRITE,
                                                   MAP_SHARED, m_fd.get(), 0));
        ASSERT_EQ(wire->dma_map(GUEST, GUEST_SIZE, m_fd.get()), 0);
        m_me.guest.started.store(1);
        lockstep::ring(m_all->model_bell);
    }

    nanoseconds now() const { return m_now.load(); }

    // Runs to that time, or until `over`; wherever it stops on the way, and at
    // the end, `look` sees memory as it is then.
    void run_to(
        nanoseconds end, const std::function<void()>& look = [] {},
        const std::atomic<bool>* over = nullptr) {
        const auto patience = std::chrono::steady_clock::now() + PATIENCE;
        for (;;) {
            hold_up();
            const nanoseconds to = limit();
            if (over && over->load())
                return;
            if (to <= now()) {
                ASSERT_LT(std::chrono::steady_clock::now(), patience)
                    << "node " << m_node << " is held at " << now();
                std::this_thread::yield();
                continue;
            }
            look();
            if (now() >= end)
                return;
            m_now.store(std::min(end, to));
            publish();
        }
    }
    void write(unsigned bar, std::uint64_t offset, unsigned size,
               std::uint64_t data, std::uint64_t on_socket) {
        m_now.fetch_add(1);
        const std::uint64_t n = m_me.guest.accesses.load();
        m_me.ring[n % lockstep::ACCESSES] = {now(), data, offset, bar, size};
        m_me.guest.accesses.store(n + 1);
        lockstep::ring(m_all->model_bell);
        wire->post(bar, offset, size, on_socket);
    }
    void write(std::uint64_t offset, unsigned size, std::uint64_t data) {
        write(0, offset, size, data, data);
    }
    std::uint64_t read(std::uint64_t offset, unsigned size) {
        m_now.fetch_add(1);
        const std::uint64_t value = wire->read(0, offset, size);
        m_now.store(std::max(now(), m_me.model.stalled_until.load()));
        publish();
        return value;
    }

    std::unique_ptr<client> wire;
    std::uint8_t* memory = nullptr;

private:
    static lockstep::shared* map() {
        const int fd = ::open(the_world->file().c_str(), O_RDWR | O_CLOEXEC);
        void* at = ::mmap(nullptr, sizeof(lockstep::shared),
                          PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return static_cast<lockstep::shared*>(at);
    }
    nanoseconds limit() const {
        nanoseconds result = lockstep::NEVER;
        for (unsigned i = 0; i < m_all->guests; i++)
            if (i != m_node)
                result = std::min(
                    result, lockstep::earliest_action(m_all->guest[i], true) +
                                m_all->lead);
        result = std::min(result, lockstep::limit_by_access(*m_all, m_me));
        return std::min(result, m_me.model.horizon.load());
    }
    void publish() {
        m_me.guest.time.store(now());
        lockstep::reached(m_all->model_bell, now());
    }
    void hold_up() {
        if (m_random() % 64 == 0)
            std::this_thread::sleep_for(
                std::chrono::microseconds(m_random() % 300));
    }
    void answer() {
        while (!m_end.load()) {
            const std::uint32_t asked = m_me.model.asked.load();
            if (asked == m_me.guest.answered.load()) {
                const timespec timeout{0, 1'000'000};
                lockstep::futex(m_me.model.asked, FUTEX_WAIT, asked, &timeout);
                continue;
            }
            m_me.guest.answer.store(now());
            m_me.guest.answered.store(asked);
            lockstep::futex(m_me.guest.answered, FUTEX_WAKE, 1, nullptr);
        }
    }

    const unsigned m_node;
    std::mt19937 m_random;
    lockstep::shared* const m_all;
    lockstep::channel& m_me;
    std::atomic<nanoseconds> m_now{0};
    std::atomic<bool> m_end{false};
    unique_fd m_fd;
    std::thread m_answers;
};

// All in one: the run has one beginning.
class pacer_test : public testing::Test
{
protected:
    static std::unique_ptr<guest> first, second;
};
std::unique_ptr<guest> pacer_test::first;
std::unique_ptr<guest> pacer_test::second;

// While `action` runs, the other guest executes instructions.
template <typename F>
void beside_a_busy_guest(guest& other, F action) {
    std::atomic<bool> over{false};
    std::thread runs([&] {
        while (!over.load())
            other.run_to(
                other.now() + 1000000, [] {}, &over);
    });
    action();
    over.store(true);
    runs.join();
}

// The order in which they come does not matter: the second first.
TEST_F(pacer_test, guests_come) {
    first = std::make_unique<guest>(0);
    second = std::make_unique<guest>(1);
    std::thread late([] { second->start(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first->start();
    late.join();
    ASSERT_NE(first->memory, nullptr);
    ASSERT_NE(second->memory, nullptr);
}

TEST_F(pacer_test, a_read_costs_what_the_profile_says_on_the_guests_clock) {
    beside_a_busy_guest(*second, [] {
        first->run_to(100000);
        const nanoseconds before = first->now();
        std::uint64_t last_time = first->read(PRAWN_BAR0_TIME, 8);
        const nanoseconds cost = first->now() - before;
        EXPECT_GE(cost, 800U);  // mmio_read of pcie-gen3, and the card's cycles
        EXPECT_LE(cost, 840U);
        nanoseconds last = first->now();
        for (int i = 0; i < 30; i++) {
            first->run_to(first->now() + 1000U * static_cast<unsigned>(i % 5));
            const nanoseconds begin = first->now();
            const std::uint64_t time = first->read(PRAWN_BAR0_TIME, 8);
            EXPECT_EQ(first->now() - begin, cost);
            // The card's clock, in ps, and the guest's are the same.
            EXPECT_EQ(time - last_time, (first->now() - last) * 1000);
            last = first->now();
            last_time = time;
        }
    });
}

TEST_F(pacer_test, an_effect_is_seen_at_its_time_whatever_the_host_does) {
    constexpr unsigned COMMANDS = 60;
    std::vector<nanoseconds> taken;
    beside_a_busy_guest(*second, [&] {
        while ((first->read(PRAWN_BAR0_STATUS, 4) & PRAWN_STATUS_READY_MASK) ==
               0)
            first->run_to(first->now() + 1000);
        first->write(PRAWN_BAR0_ADMIN_BASE, 8, RING);
        first->write(PRAWN_BAR0_ADMIN_ACK_BASE, 8, ACKS);
        first->write(PRAWN_BAR0_ADMIN_LOG2, 4, 4);
        for (unsigned i = 0; i < COMMANDS; i++) {
            first->run_to(first->now() + 5000 + 64 * i);
            prawn_admin_command c{};
            std::memcpy(first->memory + (RING - GUEST) + i % 16 * sizeof c, &c,
                        sizeof c);
            first->write(PRAWN_BAR0_ADMIN_DOORBELL, 4, i + 1);
            const nanoseconds begin = first->now();
            nanoseconds seen = 0;
            const auto* ack = reinterpret_cast<const prawn_admin_ack*>(
                first->memory + (ACKS - GUEST) +
                i % 16 * sizeof(prawn_admin_ack));
            first->run_to(begin + 4000, [&] {
                if (seen == 0 &&
                    __atomic_load_n(&ack->seq, __ATOMIC_ACQUIRE) == i + 1)
                    seen = first->now();
            });
            ASSERT_NE(seen, 0U) << i;
            taken.push_back(seen - begin);
        }
    });
    // The card's clock has a period of 4 ns, the commands come at any of its
    // phases: an effect is seen at the first look at or after its time.
    for (const nanoseconds t : taken)
        EXPECT_NEAR(static_cast<double>(t), static_cast<double>(taken[0]), 4.0);
    EXPECT_EQ(the_world->pacer->skew(), "");
}

TEST_F(pacer_test, a_guest_that_stands_still_stops_all_time) {
    const nanoseconds before = second->now();
    first->run_to(before);
    std::atomic<bool> passed{false};
    std::thread runs([&] {
        first->run_to(before + 20000);
        passed.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(passed.load());
    EXPECT_LE(first->now(), before + 650);  // the lookahead of pcie-gen3
    second->run_to(before + 20000);
    runs.join();
    EXPECT_TRUE(passed.load());
}

TEST_F(pacer_test, a_write_that_the_socket_tells_otherwise_is_reported) {
    beside_a_busy_guest(*second, [] {
        first->write(0, PRAWN_BAR0_COUNTER_SELECT, 4, 1, 2);
        // What the plugin saw is what happens.
        EXPECT_EQ(first->read(PRAWN_BAR0_COUNTER_SELECT, 4), 1U);
        first->run_to(first->now() + 5000);
    });
    EXPECT_EQ(the_world->pacer->skew(),
              "1 writes were seen otherwise by the plugin");
}

TEST_F(pacer_test, a_guest_that_goes_holds_up_nobody) {
    beside_a_busy_guest(*first, [] { second.reset(); });
    first->run_to(first->now() + 1000000);
    first.reset();
}

}  // namespace
}  // namespace test
}  // namespace prawn

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    testing::InitGoogleTest(&argc, argv);
    auto w = std::make_unique<world>();
    the_world = w.get();
    auto end = std::make_unique<prawn::kernel_stopper>("stop");
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    w->vfio->start();
    int result = 1;
    std::thread tests([&] {
        result = RUN_ALL_TESTS();
        end->request();
    });
    w->pacer->run();
    tests.join();
    return result;
}
