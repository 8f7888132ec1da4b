// SPDX-License-Identifier: Apache-2.0
//
// INTx, MSI-X, masking, pending bits, SET_IRQS in all forms.

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "qemu-device/vfio_user/config_space.h"
#include "qemu-device/vfio_user/event_signal.h"
#include "qemu-device/vfio_user/irqs.h"
#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class interrupt_test : public vfio_user_test
{
protected:
    static constexpr std::uint32_t ASSIGN =
        IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_TRIGGER;
    static constexpr std::uint32_t DISABLE =
        IRQ_SET_DATA_NONE | IRQ_SET_ACTION_TRIGGER;
    static constexpr std::uint32_t MASK =
        IRQ_SET_DATA_NONE | IRQ_SET_ACTION_MASK;
    static constexpr std::uint32_t UNMASK =
        IRQ_SET_DATA_NONE | IRQ_SET_ACTION_UNMASK;
    static constexpr std::uint64_t CONTROL =
        config_space::MSIX_CAPABILITY + PCI_MSIX_FLAGS;
    static constexpr std::uint64_t TABLE = 0x8000;
    static constexpr std::uint64_t PBA = 0x9000;

    static void enable(client& c, std::uint64_t bits = PCI_MSIX_FLAGS_ENABLE) {
        c.config_write(CONTROL, 2, bits);
    }

    static void mask_entry(client& c, unsigned vector, bool masked) {
        c.write(0, TABLE + 16 * vector + 12, 4, masked ? 1 : 0);
    }

    static std::vector<int> numbers(const std::vector<unique_fd>& fds) {
        std::vector<int> n;
        for (const unique_fd& fd : fds)
            n.push_back(fd.get());
        return n;
    }

    static std::vector<unique_fd> eventfds(std::size_t n) {
        std::vector<unique_fd> fds;
        for (std::size_t i = 0; i < n; i++)
            fds.push_back(make_eventfd());
        return fds;
    }

    std::uint64_t pending(client& c) { return c.read(0, PBA, 8); }
};

TEST_F(interrupt_test, msix_reaches_its_eventfd) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    for (unsigned i = 0; i < 16; i++)
        m_server->trigger_msix(0, i);
    for (unsigned i = 0; i < 16; i++)
        EXPECT_EQ(take_events(fds[i]), 1u) << i;
    m_server->trigger_msix(0, 16);
    m_server->trigger_msix(0, 0xffffffff);
    m_server->trigger_msix(1, 0);
    m_server->trigger_msix(77, 0);
    EXPECT_EQ(m_server->counters(0).interrupts, 16u);
    EXPECT_EQ(pending(c), 0u);
}

TEST_F(interrupt_test, disabled_capability_loses_the_message) {
    client c = connect();
    const auto fds = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1, numbers(fds)), 0);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(pending(c), 0u);
    enable(c);
    EXPECT_EQ(events_now(fds[0]), 0u);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
    enable(c, 0);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(events_now(fds[0]), 0u);
}

TEST_F(interrupt_test, function_mask_keeps_it_pending) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
    m_server->trigger_msix(0, 3);
    m_server->trigger_msix(0, 15);
    m_server->trigger_msix(0, 15);
    EXPECT_EQ(pending(c), 0x8008u);
    EXPECT_EQ(c.read(0, PBA + 1, 1), 0x80u);
    enable(c);
    EXPECT_EQ(take_events(fds[3]), 1u);
    EXPECT_EQ(take_events(fds[15]), 1u) << "one pending bit, one interrupt";
    EXPECT_EQ(pending(c), 0u);
}

TEST_F(interrupt_test, disabling_forgets_what_is_pending) {
    client c = connect();
    const auto fds = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1, numbers(fds)), 0);
    enable(c, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(pending(c), 1u);
    enable(c, 0);
    EXPECT_EQ(pending(c), 0u);
    enable(c);
    EXPECT_EQ(events_now(fds[0]), 0u);
}

TEST_F(interrupt_test, table_is_memory_and_its_mask_bit_works) {
    client c = connect();
    const auto fds = eventfds(16);
    EXPECT_EQ(c.read(0, TABLE + 12, 4), 1u) << "masked after reset";
    c.write(0, TABLE + 0x30, 8, 0xfee0100000000000);
    c.write(0, TABLE + 0x38, 4, 0x4041);
    EXPECT_EQ(c.read(0, TABLE + 0x34, 4), 0xfee01000u);
    EXPECT_EQ(c.read(0, TABLE + 0x38, 2), 0x4041u);
    c.write(0, TABLE + 0x3c, 4, 0xffffffff);
    EXPECT_EQ(c.read(0, TABLE + 0x3c, 4), 1u) << "reserved bits";
    EXPECT_EQ(m_device[0]->writes(), 0u) << "the device sees none of it";

    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    m_server->trigger_msix(0, 3);
    EXPECT_EQ(pending(c), 8u);
    EXPECT_EQ(events_now(fds[3]), 0u);
    mask_entry(c, 3, false);
    EXPECT_EQ(take_events(fds[3]), 1u);
    EXPECT_EQ(pending(c), 0u);
    c.write(0, TABLE + 0x38, 8, std::uint64_t{1} << 32);  // data and mask
    m_server->trigger_msix(0, 3);
    EXPECT_EQ(pending(c), 8u);
    c.write(0, PBA, 8, 0);
    EXPECT_EQ(pending(c), 8u) << "pending bits are read-only";
    c.write(0, TABLE + 0x3c, 1, 0);
    EXPECT_EQ(take_events(fds[3]), 1u);
}

TEST_F(interrupt_test, client_masks_with_set_irqs) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, MASK, 2, 3), 0);
    for (unsigned i = 0; i < 8; i++)
        m_server->trigger_msix(0, i);
    EXPECT_EQ(pending(c), 0x1cu);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, IRQ_SET_DATA_BOOL | IRQ_SET_ACTION_UNMASK, 2,
                         3, {}, {1, 0, 1}),
              0);
    EXPECT_EQ(pending(c), 8u);
    EXPECT_EQ(take_events(fds[2]), 1u);
    EXPECT_EQ(events_now(fds[3]), 0u);
    EXPECT_EQ(take_events(fds[4]), 1u);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, UNMASK, 0, 16), 0);
    EXPECT_EQ(take_events(fds[3]), 1u);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, IRQ_SET_DATA_BOOL | IRQ_SET_ACTION_MASK, 0,
                         2, {}, {0, 1}),
              0);
    m_server->trigger_msix(0, 0);
    m_server->trigger_msix(0, 1);
    EXPECT_EQ(pending(c), 2u);
}

TEST_F(interrupt_test, client_triggers_by_itself) {
    client c = connect();
    const auto fds = eventfds(4);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 4, 4, numbers(fds)), 0);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, DISABLE, 4, 2), 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
    EXPECT_EQ(take_events(fds[1]), 1u);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, IRQ_SET_DATA_BOOL | IRQ_SET_ACTION_TRIGGER,
                         6, 2, {}, {0, 1}),
              0);
    EXPECT_EQ(events_now(fds[2]), 0u);
    EXPECT_EQ(take_events(fds[3]), 1u);
    const auto err = eventfds(1);
    for (const std::uint32_t index : {IRQ_ERR, IRQ_REQ}) {
        ASSERT_EQ(c.set_irqs(index, ASSIGN, 0, 1, numbers(err)), 0);
        ASSERT_EQ(c.set_irqs(index, DISABLE, 0, 1), 0);
        EXPECT_EQ(take_events(err[0]), 1u);
        ASSERT_EQ(c.set_irqs(index, DISABLE, 0, 0), 0);
        ASSERT_EQ(c.set_irqs(index, DISABLE, 0, 1), 0);
        EXPECT_EQ(events_now(err[0]), 0u);
    }
}

TEST_F(interrupt_test, eventfd_without_descriptor_takes_it_away) {
    client c = connect();
    const auto fds = eventfds(2);
    // QEMU does this first, to enable MSI-X without a vector.
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1), 0);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 2, numbers(fds)), 0);
    enable(c);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1), 0);
    m_server->trigger_msix(0, 0);
    m_server->trigger_msix(0, 1);
    EXPECT_EQ(take_events(fds[1]), 1u);
    EXPECT_EQ(events_now(fds[0]), 0u);
    EXPECT_EQ(pending(c), 1u) << "waits for a descriptor";
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1, {fds[0].get()}), 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
}

TEST_F(interrupt_test, minus_one_marks_a_gap) {
    client c = connect();
    const auto fds = eventfds(3);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 3, numbers(fds)), 0);
    bytes gaps;
    for (const std::int32_t n : {-1, 0, -1}) {
        const bytes b = to_bytes(n);
        gaps.insert(gaps.end(), b.begin(), b.end());
    }
    const auto one = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 3, numbers(one), gaps), 0);
    enable(c);
    for (unsigned i = 0; i < 3; i++)
        m_server->trigger_msix(0, i);
    EXPECT_EQ(take_events(one[0]), 1u);
    for (const unique_fd& fd : fds)
        EXPECT_EQ(events_now(fd), 0u);
    EXPECT_EQ(pending(c), 5u);
    // As many descriptors as numbers that are not -1, no more and no less.
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 3, numbers(fds), gaps), EINVAL);
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 3, {}, gaps), EINVAL);
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 3, {}, bytes(12, 0xff)), 0);
}

TEST_F(interrupt_test, count_zero_disables_the_type) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, DISABLE, 0, 0), 0);
    m_server->trigger_msix(0, 5);
    EXPECT_EQ(events_now(fds[5]), 0u);
    EXPECT_EQ(c.set_irqs(IRQ_MSI, DISABLE, 0, 0), 0);
    EXPECT_EQ(c.set_irqs(IRQ_INTX, DISABLE, 0, 0), 0);
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, DISABLE, 1, 0), EINVAL);
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, MASK, 0, 0), EINVAL);
    EXPECT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 0), EINVAL);
}

TEST_F(interrupt_test, intx_is_level_triggered) {
    client c = connect();
    const auto fds = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, numbers(fds)), 0);
    m_server->set_intx(0, true);
    EXPECT_EQ(take_events(fds[0]), 1u);
    EXPECT_NE(c.config_read(PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, 0u);
    m_server->set_intx(0, true);
    EXPECT_EQ(events_now(fds[0]), 0u) << "masked itself";
    ASSERT_EQ(c.set_irqs(IRQ_INTX, UNMASK, 0, 1), 0);
    EXPECT_EQ(take_events(fds[0]), 1u) << "still asserted";
    m_server->set_intx(0, false);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, UNMASK, 0, 1), 0);
    EXPECT_EQ(events_now(fds[0]), 0u);
    EXPECT_EQ(c.config_read(PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, 0u);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, MASK, 0, 1), 0);
    m_server->set_intx(0, true);
    EXPECT_EQ(events_now(fds[0]), 0u);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, UNMASK, 0, 1), 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
    m_server->set_intx(0, false);
}

TEST_F(interrupt_test, intx_can_be_disabled_and_yields_to_msix) {
    client c = connect();
    const auto fds = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, numbers(fds)), 0);
    c.config_write(PCI_COMMAND, 2, PCI_COMMAND_INTX_DISABLE);
    m_server->set_intx(0, true);
    EXPECT_EQ(events_now(fds[0]), 0u);
    EXPECT_NE(c.config_read(PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, 0u);
    c.config_write(PCI_COMMAND, 2, 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
    enable(c);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, UNMASK, 0, 1), 0);
    EXPECT_EQ(events_now(fds[0]), 0u);
    enable(c, 0);
    EXPECT_EQ(take_events(fds[0]), 1u);
    // A level that is there already reaches a new descriptor.
    const auto fresh = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, numbers(fresh)), 0);
    EXPECT_EQ(take_events(fresh[0]), 1u);
    EXPECT_EQ(c.reset(), 0);
    EXPECT_EQ(c.config_read(PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, 0u);
}

TEST_F(interrupt_test, intx_is_unmasked_by_the_clients_eventfd) {
    client c = connect();
    const auto fds = eventfds(3);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, {fds[0].get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                         0, 1, {fds[1].get()}),
              0);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_MASK,
                         0, 1, {fds[2].get()}),
              0);
    m_server->set_intx(0, true);
    EXPECT_EQ(take_events(fds[0]), 1u);
    EXPECT_EQ(take_events(fds[2]), 1u) << "told that it has masked itself";
    const std::uint64_t one = 1;
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(::write(fds[1].get(), &one, 8), 8);
        EXPECT_EQ(take_events(fds[0]), 1u);
    }
    // Taken away, it is not watched any more, though the client still has it.
    ASSERT_EQ(c.set_irqs(IRQ_INTX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                         0, 1),
              0);
    ASSERT_EQ(::write(fds[1].get(), &one, 8), 8);
    EXPECT_EQ(take_events(fds[0], 50), 0u);
    m_server->set_intx(0, false);
}

TEST_F(interrupt_test, mask_and_unmask_are_reported_for_msix) {
    client c = connect();
    const auto mask = eventfds(1);
    const auto unmask = eventfds(1);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_MASK,
                         7, 1, numbers(mask)),
              0);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                         7, 1, numbers(unmask)),
              0);
    mask_entry(c, 7, true);
    EXPECT_EQ(take_events(mask[0]), 1u);
    mask_entry(c, 7, true);
    EXPECT_EQ(events_now(mask[0]), 0u);
    mask_entry(c, 7, false);
    EXPECT_EQ(take_events(unmask[0]), 1u);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, MASK, 7, 1), 0);
    EXPECT_EQ(take_events(mask[0]), 1u);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, UNMASK, 7, 1), 0);
    EXPECT_EQ(take_events(unmask[0]), 1u);
}

TEST_F(interrupt_test, reset_masks_and_forgets_but_keeps_descriptors) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    mask_entry(c, 1, true);
    m_server->trigger_msix(0, 1);
    EXPECT_EQ(c.reset(), 0);
    EXPECT_EQ(pending(c), 0u);
    EXPECT_EQ(c.read(0, TABLE + 0x1c, 4), 1u);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(events_now(fds[0]), 0u) << "the capability is disabled";
    enable(c);
    m_server->trigger_msix(0, 1);
    EXPECT_EQ(take_events(fds[1]), 1u);
}

TEST_F(interrupt_test, malformed_requests_change_nothing) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    const std::vector<int> one{fds[0].get()};
    const auto bad = [&](std::uint32_t index, std::uint32_t flags,
                         std::uint32_t start, std::uint32_t count,
                         const std::vector<int>& with = {},
                         const bytes& data = {}) {
        return c.set_irqs(index, flags, start, count, with, data) == EINVAL;
    };
    EXPECT_TRUE(bad(IRQ_MSIX, 0, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, IRQ_SET_DATA_NONE, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, IRQ_SET_ACTION_MASK, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, 0x38 | IRQ_SET_DATA_NONE, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, 0x23, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE | 0x40, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 0, 17));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 16, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 0xffffffff, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 1, 0xffffffff));
    EXPECT_TRUE(bad(IRQ_MSI, DISABLE, 0, 1));
    EXPECT_TRUE(bad(IRQ_COUNT, DISABLE, 0, 0));
    EXPECT_TRUE(bad(0xffffffff, DISABLE, 0, 1));
    EXPECT_TRUE(bad(IRQ_INTX, DISABLE, 0, 2));
    EXPECT_TRUE(bad(IRQ_ERR, MASK, 0, 1));
    EXPECT_TRUE(bad(IRQ_REQ, UNMASK, 0, 1));
    EXPECT_TRUE(bad(IRQ_MSIX, ASSIGN, 0, 2, one));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 0, 1, one));
    EXPECT_TRUE(bad(IRQ_MSIX, DISABLE, 0, 1, {}, {1}));
    EXPECT_TRUE(bad(IRQ_MSIX, IRQ_SET_DATA_BOOL | IRQ_SET_ACTION_TRIGGER, 0, 2,
                    {}, {1}));
    EXPECT_TRUE(bad(IRQ_MSIX, ASSIGN, 0, 2, one, bytes(7, 0)));
    irq_set tiny{19, DISABLE, IRQ_MSIX, 0, 1};
    EXPECT_EQ(c.transact(DEVICE_SET_IRQS, to_bytes(tiny)).error(), EINVAL);
    EXPECT_EQ(c.transact(DEVICE_SET_IRQS, bytes(19, 0)).error(), EINVAL);

    const unique_fd memory = make_memory(4096);
    EXPECT_TRUE(bad(IRQ_MSIX, ASSIGN, 0, 1, {memory.get()}));
    EXPECT_TRUE(bad(IRQ_MSIX, ASSIGN, 0, 2, {fds[1].get(), memory.get()}));
    for (unsigned i = 0; i < 16; i++)
        m_server->trigger_msix(0, i);
    for (unsigned i = 0; i < 16; i++)
        EXPECT_EQ(take_events(fds[i]), 1u) << i;
}

TEST_F(interrupt_test, a_full_eventfd_never_blocks_the_device) {
    client c = connect();
    unique_fd fd(::eventfd(0, EFD_CLOEXEC));  // blocking, as the client likes
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1, {fd.get()}), 0);
    enable(c);
    const std::uint64_t full = 0xfffffffffffffffe;
    ASSERT_EQ(::write(fd.get(), &full, 8), 8);
    m_server->trigger_msix(0, 0);
    EXPECT_GE(events_now(fd), full);
    m_server->trigger_msix(0, 0);
    EXPECT_EQ(take_events(fd), 1u);
}

// The mode belongs to the open file, which is the client's too.
TEST_F(interrupt_test, nor_does_one_whose_mode_the_client_changes) {
    if (!event_signal().never_waits())
        GTEST_SKIP() << "no asynchronous I/O: fs.aio-max-nr used up?";
    client c = connect();
    const unique_fd fd = make_eventfd();
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 1, {fd.get()}), 0);
    enable(c);
    ASSERT_EQ(::fcntl(fd.get(), F_SETFL, 0), 0);
    const std::uint64_t full = 0xfffffffffffffffe;
    ASSERT_EQ(::write(fd.get(), &full, 8), 8);
    std::atomic<bool> done{false};
    std::thread model([&] {
        for (int i = 0; i < 300; i++)
            m_server->trigger_msix(0, 0);
        done = true;
    });
    EXPECT_TRUE(wait_until([&] { return done.load(); }));
    ASSERT_EQ(::fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_GE(events_now(fd), full);  // and lets go of who waits
    model.join();
    events_now(fd);
    for (std::uint64_t n = 1; n < 300; n++) {
        m_server->trigger_msix(0, 0);
        ASSERT_EQ(take_events(fd), 1u);
    }
}

TEST_F(interrupt_test, an_unmask_that_the_client_takes_back_does_not_wait) {
    irqs one(test_identity(), [](int, bool) {});
    std::vector<unique_fd> fds;
    const unique_fd fd = make_eventfd();
    fds.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    ASSERT_EQ(
        one.set_irqs(irq_set{20, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                             IRQ_INTX, 0, 1},
                     nullptr, 0, fds),
        0);
    ASSERT_EQ(::fcntl(fd.get(), F_SETFL, 0), 0);
    std::atomic<bool> done{false};
    std::thread protocol([&] {
        one.on_intx_unmask_event();
        done = true;
    });
    EXPECT_TRUE(wait_until([&] { return done.load(); }));
    const std::uint64_t x = 1;
    ASSERT_EQ(::write(fd.get(), &x, 8), 8);  // lets go of who waits
    protocol.join();
}

TEST_F(interrupt_test, an_unmask_during_a_loan_is_not_lost) {
    client c = connect();
    const auto fds = eventfds(2);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, {fds[0].get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                         0, 1, {fds[1].get()}),
              0);
    m_server->set_intx(0, true);
    ASSERT_EQ(take_events(fds[0]), 1u);
    ASSERT_TRUE(wait_until([&] { return m_server->borrow(0); }));
    const std::uint64_t once = 1;
    ASSERT_EQ(::write(fds[1].get(), &once, 8), 8);
    EXPECT_EQ(take_events(fds[0], 100), 0u) << "it has to wait";
    m_server->give_back(0);
    EXPECT_EQ(take_events(fds[0]), 1u);
}

TEST_F(interrupt_test, an_unmask_that_stays_readable_keeps_nobody_busy) {
    client c = connect();
    const unique_fd fd(
        ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
    ASSERT_EQ(c.set_irqs(IRQ_INTX, IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_UNMASK,
                         0, 1, {fd.get()}),
              0);
    const std::uint64_t many = std::uint64_t{1} << 60;
    ASSERT_EQ(::write(fd.get(), &many, 8), 8);
    const auto used = [] {
        timespec t{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) +
               1e-9 * static_cast<double>(t.tv_nsec);
    };
    c.device_info();
    const double before = used();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_LT(used() - before, 0.05);
    const unique_fd trigger = make_eventfd();
    ASSERT_EQ(c.set_irqs(IRQ_INTX, ASSIGN, 0, 1, {trigger.get()}), 0);
    m_server->set_intx(0, true);
    EXPECT_EQ(take_events(trigger), 1u);
    const std::uint64_t once = 1;
    ASSERT_EQ(::write(fd.get(), &once, 8), 8);
    EXPECT_EQ(take_events(trigger), 1u) << "each write unmasks";
}

TEST_F(interrupt_test, triggers_from_many_threads_against_masking) {
    client c = connect();
    const auto fds = eventfds(16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, ASSIGN, 0, 16, numbers(fds)), 0);
    enable(c);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([this] {
            for (unsigned i = 0; i < 3000; i++) {
                m_server->trigger_msix(0, i % 16);
                m_server->set_intx(0, i % 2 != 0);
            }
        });
    }
    for (int i = 0; i < 100; i++) {
        ASSERT_EQ(c.set_irqs(IRQ_MSIX, MASK, 0, 16), 0);
        ASSERT_EQ(c.set_irqs(IRQ_MSIX, UNMASK, 0, 16), 0);
    }
    for (std::thread& t : threads)
        t.join();
    EXPECT_EQ(pending(c), 0u);
    for (const unique_fd& fd : fds)
        EXPECT_GT(events_now(fd), 0u);
}

}  // namespace vfio_user
}  // namespace prawn
