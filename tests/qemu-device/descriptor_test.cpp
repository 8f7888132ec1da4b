// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that come with messages: none may leak, none may go to the
// wrong message. (The fixture counts open descriptors at the end.)

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class descriptor_test : public vfio_user_test
{
protected:
    // Until the server has dealt with everything, it may hold descriptors.
    std::size_t settled(client& c) {
        c.device_info();
        return open_descriptors();
    }
};

TEST_F(descriptor_test, where_none_belong_they_are_closed) {
    client c = connect();
    const unique_fd fd = make_memory(4096);
    const std::size_t before = settled(c);
    const int n = fd.get();
    const std::uint16_t without[] = {VERSION,
                                     DMA_UNMAP,
                                     DEVICE_GET_INFO,
                                     DEVICE_GET_REGION_INFO,
                                     DEVICE_GET_REGION_IO_FDS,
                                     DEVICE_GET_IRQ_INFO,
                                     REGION_READ,
                                     REGION_WRITE,
                                     REGION_WRITE_MULTI,
                                     DEVICE_RESET,
                                     DEVICE_FEATURE,
                                     999};
    for (std::uint16_t command : without) {
        EXPECT_EQ(c.transact(command, {}, {n}).error(), EINVAL) << command;
        EXPECT_EQ(c.transact(command, bytes(16, 0), {n, n, n}).error(), EINVAL);
    }
    EXPECT_EQ(settled(c), before);
    EXPECT_EQ(m_device[0]->log().size(), 1u);
}

TEST_F(descriptor_test, with_version) {
    client c(path(0));
    const unique_fd fd = make_memory(4096);
    EXPECT_EQ(c.transact(VERSION, to_bytes(version{0, 0}), {fd.get()}).error(),
              EINVAL);
    EXPECT_EQ(c.negotiate().error(), 0);
}

TEST_F(descriptor_test, too_many) {
    client c = connect();
    const unique_fd fd = make_memory(4096);
    const unique_fd event = make_eventfd();
    const std::size_t before = settled(c);
    const protocol::dma_map map{32, 3, 0, 0, 4096};
    const std::vector<int> two{fd.get(), fd.get()};
    EXPECT_EQ(c.transact(DMA_MAP, to_bytes(map), two).error(), EINVAL);
    for (std::size_t n : {17u, 100u, 253u}) {
        const std::vector<int> many(n, event.get());
        EXPECT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 16, many), EINVAL) << n;
        EXPECT_EQ(c.transact(DMA_MAP, to_bytes(map), many).error(), EINVAL);
    }
    EXPECT_EQ(
        c.set_irqs(IRQ_MSIX, 0x24, 0, 16, std::vector<int>(15, event.get())),
        EINVAL)
        << "too few";
    EXPECT_EQ(settled(c), before);
    EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
    EXPECT_EQ(m_server->counters(0).violations, 0u);
}

TEST_F(descriptor_test, kept_no_longer_than_needed) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    const unique_fd event = make_eventfd();
    const std::size_t before = settled(c);
    ASSERT_EQ(c.dma_map(0, MEMORY, fd.get()), 0);
    EXPECT_EQ(settled(c), before) << "the mapping is enough";
    const std::vector<int> all(16, event.get());
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 16, all), 0);
    EXPECT_EQ(settled(c), before + 16);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 16, all), 0);
    EXPECT_EQ(settled(c), before + 16) << "replaced";
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 8), 0);
    EXPECT_EQ(settled(c), before + 8);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x21, 0, 0), 0);
    EXPECT_EQ(settled(c), before);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, 0x24, 0, 1, {event.get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, 0x14, 0, 1, {event.get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_INTX, 0x0c, 0, 1, {event.get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_REQ, 0x24, 0, 1, {event.get()}), 0);
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 3, 1, {event.get()}), 0);
    EXPECT_EQ(settled(c), before + 5);
    c.close();
    // The socket has two ends, and both are in this process.
    EXPECT_TRUE(wait_until([&] { return open_descriptors() == before - 2; }));
}

TEST_F(descriptor_test, are_closed_on_exec) {
    const auto inherited = [] {
        std::size_t n = 0;
        for (int fd = 3; fd < 256; fd++) {
            const int flags = ::fcntl(fd, F_GETFD);
            n += flags >= 0 && (flags & FD_CLOEXEC) == 0 ? 1 : 0;
        }
        return n;
    };
    client c = connect();
    const unique_fd event(::eventfd(0, EFD_NONBLOCK));
    const std::size_t before = inherited();
    ASSERT_EQ(c.set_irqs(IRQ_MSIX, 0x24, 0, 1, {event.get()}), 0);
    EXPECT_EQ(inherited(), before);
}

TEST_F(descriptor_test, belong_to_their_own_message) {
    client c = connect();
    const unique_fd fd = make_memory(2 * 4096);
    // All three in flight at once: only the second has a descriptor.
    const protocol::dma_map maps[] = {{32, 3, 0, 0x0000, 4096},
                                      {32, 3, 0, 0x10000, 8192},
                                      {32, 3, 0, 0x20000, 4096}};
    m_device[0]->run([](guest_memory&) {});
    c.send(DMA_MAP, to_bytes(maps[0]));
    c.send(DMA_MAP, to_bytes(maps[1]), 0, {fd.get()});
    c.send(DMA_MAP, to_bytes(maps[2]));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(c.receive()->error(), 0);
    m_device[0]->run([](guest_memory& m) {
        EXPECT_EQ(m.check(0, 1, dma_access::READ), dma_status::MESSAGE_ONLY);
        EXPECT_EQ(m.check(0x10000, 8192, dma_access::READ), dma_status::OK);
        EXPECT_EQ(m.check(0x20000, 1, dma_access::READ),
                  dma_status::MESSAGE_ONLY);
    });
}

TEST_F(descriptor_test, belong_to_their_message_however_it_is_cut) {
    client c = connect();
    const unique_fd fd = make_memory(4096);
    header head{7, DMA_MAP, sizeof(header) + sizeof(dma_map), 0, 0};
    std::uint64_t address = 0;
    for (std::size_t cut = 1; cut < head.size; cut++) {
        bytes all = to_bytes(head);
        const bytes map = to_bytes(protocol::dma_map{32, 3, 0, address, 4096});
        all.insert(all.end(), map.begin(), map.end());
        if (cut % 2 == 0) {
            c.send_raw(all.data(), cut, {fd.get()});
            c.send_raw(all.data() + cut, all.size() - cut);
        } else {
            c.send_raw(all.data(), cut);
            c.send_raw(all.data() + cut, all.size() - cut, {fd.get()});
        }
        ASSERT_EQ(c.receive()->error(), 0);
        m_device[0]->run([&](guest_memory& m) {
            EXPECT_EQ(m.check(address, 4096, dma_access::READ), dma_status::OK)
                << cut;
        });
        address += 4096;
    }
}

// Else one client takes all that this process may have, and no other can
// connect or map.
TEST_F(descriptor_test, are_not_hoarded_by_a_message_in_pieces) {
    client c = connect();
    const unique_fd event = make_eventfd();
    const std::size_t before = settled(c);
    const std::vector<int> some(16, event.get());
    c.send_raw(to_bytes(header{1, DEVICE_SET_IRQS, 16 + 20 + 60, 0, 0}));
    c.send_raw(to_bytes(irq_set{20, 0x24, IRQ_MSIX, 0, 16}));
    for (int i = 0; i < 59; i++)
        c.send_raw(bytes(1, 0), some);
    client other = connect(1);
    other.device_info();
    // Both ends of the other connection are in this process; what is closed
    // was open for a moment.
    EXPECT_TRUE(
        wait_until([&] { return open_descriptors() <= before + 16 + 2; }));
    c.send_raw(bytes(1, 0), some);
    const auto m = c.receive();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->error(), EINVAL);
    EXPECT_EQ(settled(c), before + 2);
}

// The limit is for one message, not for what happens to arrive with it.
TEST_F(descriptor_test, of_two_messages_one_of_them_in_pieces) {
    client c = connect();
    const unique_fd event = make_eventfd();
    const std::vector<int> ten(10, event.get());
    const bytes set = to_bytes(irq_set{20, 0x24, IRQ_MSIX, 0, 10});
    bytes all = to_bytes(header{1, DEVICE_SET_IRQS, 16 + 20, 0, 0});
    all.insert(all.end(), set.begin(), set.end());
    for (int i = 0; i < 100; i++) {
        c.send_raw(all.data(), 20, ten);
        c.send_raw(all.data() + 20, all.size() - 20);
        c.send_raw(all, ten);
        EXPECT_EQ(c.receive()->error(), 0);
        EXPECT_EQ(c.receive()->error(), 0);
    }
}

TEST_F(descriptor_test, end_in_mid_message) {
    const unique_fd fd = make_memory(4096);
    const bytes head = to_bytes(header{1, DMA_MAP, 48, 0, 0});
    client c = connect();
    const std::size_t before = settled(c);
    c.send_raw(head, {fd.get(), fd.get()});
    EXPECT_TRUE(wait_until([&] { return open_descriptors() == before + 2; }));
    c.close();
    EXPECT_TRUE(wait_until([&] { return open_descriptors() == before - 2; }));
}

TEST_F(descriptor_test, with_a_message_that_ends_the_connection) {
    const unique_fd fd = make_memory(4096);
    client c = connect();
    c.send_raw(to_bytes(header{1, DMA_MAP, 3, 0, 0}), {fd.get(), fd.get()});
    EXPECT_TRUE(c.is_closed());
    client again = connect();
    again.send(DMA_READ, bytes(16, 0), TYPE_REPLY, {fd.get()});
    EXPECT_TRUE(again.is_closed());
}

// The kernel cuts them off when this process may have no more.
TEST_F(descriptor_test, that_could_not_be_delivered) {
    client c = connect();
    const unique_fd fd = make_memory(4096);
    c.device_info();
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
    const int next = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(next, 0);
    ::close(next);
    rlimit tight = old;
    tight.rlim_cur = static_cast<rlim_t>(next);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const int error = c.dma_map(0, 4096, fd.get());
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_EQ(error, EMFILE);
    EXPECT_EQ(c.dma_map(0, 4096, fd.get()), 0);
    EXPECT_EQ(m_server->counters(0).violations, 0u);
}

}  // namespace vfio_user
}  // namespace prawn
