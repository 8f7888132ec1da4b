// SPDX-License-Identifier: Apache-2.0
//
// What the device says about itself.

#include <cerrno>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

using info_test = vfio_user_test;

TEST_F(info_test, device) {
    client c = connect();
    const device_info info = c.device_info();
    EXPECT_EQ(info.argsz, sizeof(info));
    EXPECT_EQ(info.flags, DEVICE_FLAG_RESET | DEVICE_FLAG_PCI);
    EXPECT_EQ(info.num_regions, 9u);
    EXPECT_EQ(info.num_irqs, 5u);
}

TEST_F(info_test, regions_have_their_size_and_none_can_be_mapped) {
    client c = connect();
    const std::uint64_t sizes[REGION_COUNT] = {
        1u << 20, 0, 256u << 10, 0, std::uint64_t{4} << 30, 0, 0, 4096, 0};
    for (std::uint32_t i = 0; i < REGION_COUNT; i++) {
        const region_info info = c.region_info(i);
        EXPECT_EQ(info.index, i);
        EXPECT_EQ(info.argsz, sizeof(info));
        EXPECT_EQ(info.size, sizes[i]) << i;
        EXPECT_EQ(info.cap_offset, 0u);
        EXPECT_EQ(info.flags,
                  sizes[i] == 0 ? 0 : REGION_FLAG_READ | REGION_FLAG_WRITE)
            << i;
    }
}

TEST_F(info_test, interrupts) {
    client c = connect();
    const std::uint32_t counts[IRQ_COUNT] = {1, 0, 16, 1, 1};
    for (std::uint32_t i = 0; i < IRQ_COUNT; i++) {
        const irq_info info = c.irq_info(i);
        EXPECT_EQ(info.index, i);
        EXPECT_EQ(info.count, counts[i]) << i;
        EXPECT_EQ((info.flags & IRQ_INFO_EVENTFD) != 0, counts[i] != 0) << i;
    }
    EXPECT_EQ(c.irq_info(IRQ_INTX).flags,
              IRQ_INFO_EVENTFD | IRQ_INFO_MASKABLE | IRQ_INFO_AUTOMASKED);
}

TEST_F(info_test, region_io_fds_are_none) {
    client c = connect();
    for (std::uint32_t i = 0; i < REGION_COUNT; i++) {
        const region_io_fds ask{64, 0, i, 0};
        const client_message m =
            c.transact(DEVICE_GET_REGION_IO_FDS, to_bytes(ask));
        ASSERT_EQ(m.error(), 0);
        ASSERT_EQ(m.payload.size(), sizeof(ask));
        EXPECT_EQ(m.as<region_io_fds>().argsz, sizeof(ask));
        EXPECT_EQ(m.as<region_io_fds>().index, i);
        EXPECT_EQ(m.as<region_io_fds>().count, 0u);
    }
    for (const region_io_fds& ask :
         {region_io_fds{15, 0, 0, 0}, region_io_fds{16, 1, 0, 0},
          region_io_fds{16, 0, REGION_COUNT, 0}}) {
        EXPECT_EQ(c.transact(DEVICE_GET_REGION_IO_FDS, to_bytes(ask)).error(),
                  EINVAL);
    }
}

TEST_F(info_test, index_out_of_range) {
    client c = connect();
    for (std::uint32_t index : {REGION_COUNT, 100u, 0xffffffffu}) {
        const region_info region{sizeof(region), 0, index, 0, 0, 0};
        EXPECT_EQ(c.transact(DEVICE_GET_REGION_INFO, to_bytes(region)).error(),
                  EINVAL);
        const irq_info irq{sizeof(irq), 0, index, 0};
        EXPECT_EQ(c.transact(DEVICE_GET_IRQ_INFO, to_bytes(irq)).error(),
                  EINVAL);
    }
}

TEST_F(info_test, room_for_the_reply_is_too_small) {
    client c = connect();
    const device_info device{15, 0, 0, 0};
    EXPECT_EQ(c.transact(DEVICE_GET_INFO, to_bytes(device)).error(), EINVAL);
    const region_info region{31, 0, 0, 0, 0, 0};
    EXPECT_EQ(c.transact(DEVICE_GET_REGION_INFO, to_bytes(region)).error(),
              EINVAL);
    const irq_info irq{0, 0, 0, 0};
    EXPECT_EQ(c.transact(DEVICE_GET_IRQ_INFO, to_bytes(irq)).error(), EINVAL);
}

TEST_F(info_test, an_identity_that_cannot_be_is_refused) {
    const auto refused = [this](const std::function<void(identity&)>& spoil) {
        identity id = test_identity();
        spoil(id);
        fake_device device(id);
        server s;
        try {
            s.add_endpoint(path(7), device);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    EXPECT_FALSE(refused([](identity&) {}));
    EXPECT_TRUE(refused([](identity& id) { id.bars[0].size = 5000; }));
    EXPECT_TRUE(refused([](identity& id) { id.bars[0].size = 2048; }));
    EXPECT_TRUE(refused([](identity& id) { id.bars[1].size = 4096; }));
    EXPECT_TRUE(refused([](identity& id) { id.bars[4].is_64bit = false; }));
    EXPECT_TRUE(refused([](identity& id) { id.msix_table_bar = 1; }));
    EXPECT_TRUE(refused([](identity& id) { id.msix_table_offset = 4; }));
    EXPECT_TRUE(refused([](identity& id) { id.msix_pba_offset = 1 << 20; }));
    EXPECT_TRUE(refused([](identity& id) { id.msix_pba_offset = 0x8008; }));
    EXPECT_TRUE(refused([](identity& id) { id.msix_vectors = 3000; }));
}

TEST_F(info_test, socket_paths) {
    fake_device device;
    server s;
    EXPECT_THROW(s.add_endpoint("", device), std::invalid_argument);
    EXPECT_THROW(s.add_endpoint(std::string(200, 'x'), device),
                 std::invalid_argument);
    EXPECT_THROW(s.add_endpoint("/nonexistent/card", device),
                 std::system_error);
    // One that a living server has.
    EXPECT_THROW(s.add_endpoint(path(0), device), std::system_error);
    client c = connect();
    EXPECT_EQ(c.device_info().num_regions, REGION_COUNT);
}

}  // namespace vfio_user
}  // namespace prawn
