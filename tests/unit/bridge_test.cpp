// SPDX-License-Identifier: Apache-2.0
// Two real cards behind a real server, with clients that need no QEMU. The
// tests run in a thread of their own, the model on the main thread.
#include "qemu-device/bridge/bridge.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "qemu-device/bridge/kernel_stopper.h"
#include "sim/cluster.h"
#include "tests/qemu-device/client.h"

namespace prawn {
namespace test {
namespace {

using namespace vfio_user;
using vfio_user::protocol::IRQ_SET_ACTION_TRIGGER;
using vfio_user::protocol::IRQ_SET_DATA_EVENTFD;

constexpr std::uint64_t GUEST = 0x100000;
constexpr std::size_t GUEST_SIZE = 1 << 20;
constexpr std::uint64_t RING = GUEST, ACKS = GUEST + 0x1000;

struct world {
    std::string directory;
    std::unique_ptr<cluster> model;
    std::vector<std::unique_ptr<bridge>> bridges;
    server_options options;
    std::unique_ptr<server> vfio;

    world() {
        std::string name = "/tmp/prawn-bridge-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        model = std::make_unique<cluster>("model", load_config(""));
        options.dma_timeout = std::chrono::milliseconds(2000);
        vfio = std::make_unique<server>(options);
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
        }
    }
    ~world() {
        vfio->stop();
        ::rmdir(directory.c_str());
    }
    std::string path(unsigned k) const {
        return directory + "/node" + std::to_string(k) + ".sock";
    }
};

world* the_world = nullptr;

// A guest's kernel in miniature.
class guest
{
public:
    explicit guest(unsigned k) : wire(connect(k)) {
        wire.negotiate();
        wire.config_write(4, 2, 0x6);  // memory, bus master
    }
    // The last client of the card may still be on its way out.
    static client connect(unsigned k) {
        for (int tries = 0;; tries++) {
            try {
                client c(the_world->path(k));
                c.set_timeout(5000);
                return c;
            } catch (const std::runtime_error&) {
                if (tries == 100)
                    throw;
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
    }
    // Memory by descriptor.
    void map_shared() {
        m_fd = unique_fd(::memfd_create("guest", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(m_fd.get(), GUEST_SIZE), 0);
        m_view = static_cast<std::uint8_t*>(::mmap(nullptr, GUEST_SIZE,
                                                   PROT_READ | PROT_WRITE,
                                                   MAP_SHARED, m_fd.get(), 0));
        ASSERT_EQ(wire.dma_map(GUEST, GUEST_SIZE, m_fd.get()), 0);
    }
    // Memory by message.
    void map_message() {
        memory.assign(GUEST_SIZE, 0);
        m_view = memory.data();
        ASSERT_EQ(wire.dma_map(GUEST, GUEST_SIZE), 0);
    }
    std::uint64_t reg(std::uint64_t offset, unsigned size = 4) {
        return wire.read(0, offset, size);
    }
    void wait_ready() {
        until([&] { return reg(PRAWN_BAR0_STATUS) & PRAWN_STATUS_READY_MASK; },
              "READY");
    }
    void set_admin_ring() {
        wait_ready();
        wire.post(0, PRAWN_BAR0_ADMIN_BASE, 8, RING);
        wire.post(0, PRAWN_BAR0_ADMIN_ACK_BASE, 8, ACKS);
        wire.post(0, PRAWN_BAR0_ADMIN_LOG2, 4, 4);
    }
    void post_nop(bool interrupt = false) {
        prawn_admin_command c{};
        c.flags = interrupt ? PRAWN_ADMIN_FLAG_INTERRUPT : 0;
        std::memcpy(m_view + (RING - GUEST) + (m_produced % 16) * sizeof(c), &c,
                    sizeof(c));
        wire.post(0, PRAWN_BAR0_ADMIN_DOORBELL, 4, ++m_produced);
    }
    bool acked() {
        const auto* a = reinterpret_cast<const prawn_admin_ack*>(
            m_view + (ACKS - GUEST) + (m_produced - 1) % 16 * 16);
        return __atomic_load_n(&a->seq, __ATOMIC_ACQUIRE) == m_produced;
    }
    static bool until(const std::function<bool()>& holds, const char* what) {
        for (int i = 0; i < 5000; i++) {
            if (holds())
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ADD_FAILURE() << "timed out: " << what;
        return false;
    }

    client wire;
    bytes memory;

private:
    unique_fd m_fd;
    std::uint8_t* m_view = nullptr;
    std::uint32_t m_produced = 0;
};

double cpu_seconds() {
    rusage r{};
    ::getrusage(RUSAGE_SELF, &r);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) +
               static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(r.ru_utime) + seconds(r.ru_stime);
}

TEST(bridge_test, registers_answer_through_the_socket) {
    guest g(0);
    g.wait_ready();
    EXPECT_EQ(g.reg(PRAWN_BAR0_ID), PRAWN_ID_MAGIC);
    EXPECT_EQ(g.reg(PRAWN_BAR0_NODE), 2u << 16);
    EXPECT_EQ(g.wire.read(4, 0, 8), PRAWN_PROXY_STATUS_INVALID_MASK);
    guest other(1);
    EXPECT_EQ(other.reg(PRAWN_BAR0_NODE), 2u << 16 | 1);
}

TEST(bridge_test, accesses_keep_their_order) {
    guest g(0);
    g.wait_ready();
    for (std::uint32_t i = 0; i < 1000; i++) {
        g.wire.post(0, PRAWN_BAR0_COUNTER_SELECT, 4, i);
        g.wire.post(0, PRAWN_BAR0_COUNTER_SELECT, 4, i + 7);
        ASSERT_EQ(g.reg(PRAWN_BAR0_COUNTER_SELECT), i + 7);
    }
}

TEST(bridge_test, a_flood_of_posted_writes_is_taken_in_order) {
    guest g(0);
    g.wait_ready();
    guest other(1);
    for (std::uint32_t i = 0; i < 100000; i++)
        g.wire.post(0, PRAWN_BAR0_COUNTER_SELECT, 4, i);
    other.wait_ready();
    EXPECT_EQ(g.reg(PRAWN_BAR0_COUNTER_SELECT), 99999u);
}

TEST(bridge_test, direct_dma_and_interrupt) {
    guest g(0);
    g.map_shared();
    g.set_admin_ring();
    const unique_fd event(::eventfd(0, EFD_CLOEXEC));
    ASSERT_EQ(g.wire.set_irqs(protocol::IRQ_MSIX,
                              IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_TRIGGER, 0,
                              1, {event.get()}),
              0);
    // MSI-X on: table entry 0 unmasked, then the capability's enable bit.
    g.wire.write(0, PRAWN_MSIX_TABLE_OFFSET + 12, 4, 0);
    std::uint64_t cap = g.wire.config_read(0x34, 1);
    while (cap && g.wire.config_read(cap, 1) != 0x11)
        cap = g.wire.config_read(cap + 1, 1);
    ASSERT_NE(cap, 0u);
    g.wire.config_write(cap + 2, 2, 0x8000);
    g.post_nop(true);
    EXPECT_TRUE(guest::until([&] { return g.acked(); }, "ack"));
    std::uint64_t count = 0;
    ASSERT_EQ(::read(event.get(), &count, 8), 8);  // blocks until it comes
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(g.reg(PRAWN_BAR0_INT_CAUSE), PRAWN_INT_CAUSE_ADMIN_MASK);
}

TEST(bridge_test, no_dma_without_bus_mastering_or_memory) {
    guest g(0);
    g.map_shared();
    g.set_admin_ring();
    g.wire.config_write(4, 2, 0x2);
    g.post_nop();
    guest::until(
        [&] {
            return g.reg(PRAWN_BAR0_STATUS) & PRAWN_STATUS_ADMIN_ERROR_MASK;
        },
        "error");
    EXPECT_FALSE(g.acked());
    ASSERT_EQ(g.wire.reset(), 0);
    g.wire.config_write(4, 2, 0x6);
    g.set_admin_ring();
    ASSERT_EQ(g.wire.dma_unmap(GUEST, GUEST_SIZE), 0);
    g.post_nop();
    guest::until(
        [&] {
            return g.reg(PRAWN_BAR0_STATUS) & PRAWN_STATUS_ADMIN_ERROR_MASK;
        },
        "error");
}

TEST(bridge_test, dma_by_message_holds_up_no_read) {
    guest g(0);
    g.map_message();
    g.set_admin_ring();
    g.post_nop();
    // The card waits for memory that only this client can give; its registers
    // answer all the same.
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(g.reg(PRAWN_BAR0_ID), PRAWN_ID_MAGIC);
    for (int i = 0; i < 8 && !g.acked(); i++)
        ASSERT_TRUE(g.wire.serve_dma(g.memory, GUEST));
    EXPECT_TRUE(g.acked());
}

TEST(bridge_test, unmap_does_not_wait_for_a_message_that_cannot_be_served) {
    guest g(0);
    g.map_message();
    g.set_admin_ring();
    g.post_nop();
    ASSERT_TRUE(g.wire.receive_command());  // the card asks; no answer
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(g.wire.dma_unmap(GUEST, GUEST_SIZE), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(1));
    guest::until(
        [&] {
            return g.reg(PRAWN_BAR0_STATUS) & PRAWN_STATUS_ADMIN_ERROR_MASK;
        },
        "error");
}

TEST(bridge_test, a_client_that_goes_leaves_a_card_in_reset_state) {
    guest other(1);
    other.wait_ready();
    std::uint64_t epoch = 0;
    for (int i = 0; i < 20; i++) {
        guest g(0);
        g.map_message();
        g.wait_ready();
        const std::uint64_t now = g.reg(PRAWN_BAR0_EPOCH);
        EXPECT_NE(now, epoch);
        epoch = now;
        EXPECT_EQ(g.reg(PRAWN_BAR0_CTRL), 0u);
        EXPECT_EQ(g.reg(PRAWN_BAR0_ADMIN_BASE, 8), 0u);
        g.set_admin_ring();
        g.wire.post(0, PRAWN_BAR0_CTRL, 4, PRAWN_CTRL_ENABLE_MASK);
        g.post_nop();
        if (i % 2)
            g.wire.receive_command();
        // goes away with DMA under way
    }
    EXPECT_EQ(other.reg(PRAWN_BAR0_ID), PRAWN_ID_MAGIC);
}

TEST(bridge_test, function_reset_starts_a_new_life) {
    guest g(0);
    g.map_shared();
    g.set_admin_ring();
    const std::uint64_t epoch = g.reg(PRAWN_BAR0_EPOCH);
    EXPECT_EQ(g.wire.reset(), 0);
    g.wait_ready();
    EXPECT_EQ(g.reg(PRAWN_BAR0_EPOCH), epoch + 1);
    EXPECT_EQ(g.reg(PRAWN_BAR0_ADMIN_LOG2), 0u);
    // Maps survive it.
    g.wire.config_write(4, 2, 0x6);
}

TEST(bridge_test, an_idle_model_uses_no_processor) {
    guest g(0);
    g.wait_ready();
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_LT(cpu_seconds() - before, 0.02);
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
    sc_core::sc_start();
    tests.join();
    return result;
}
