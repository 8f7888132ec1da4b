// SPDX-License-Identifier: Apache-2.0

#include <linux/pci_regs.h>

#include <cerrno>

#include "qemu-device/vfio_user/config_space.h"
#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class config_space_test : public vfio_user_test
{
protected:
    // Walks the list of capabilities as an operating system does.
    static std::uint64_t find(client& c, std::uint64_t id) {
        std::uint64_t at = c.config_read(PCI_CAPABILITY_LIST, 1);
        for (int i = 0; at != 0 && i < 48; i++) {
            if (c.config_read(at, 1) == id)
                return at;
            at = c.config_read(at + 1, 1);
        }
        return 0;
    }
};

TEST_F(config_space_test, identity) {
    client c = connect();
    EXPECT_EQ(c.config_read(PCI_VENDOR_ID, 2), 0x1b36u);
    EXPECT_EQ(c.config_read(PCI_DEVICE_ID, 2), 0x0b0bu);
    EXPECT_EQ(c.config_read(PCI_VENDOR_ID, 4), 0x0b0b1b36u);
    EXPECT_EQ(c.config_read(PCI_CLASS_REVISION, 4), 0x02800001u);
    EXPECT_EQ(c.config_read(PCI_HEADER_TYPE, 1), 0u);
    EXPECT_EQ(c.config_read(PCI_SUBSYSTEM_VENDOR_ID, 4), 0x11001af4u);
    EXPECT_EQ(c.config_read(PCI_INTERRUPT_PIN, 1), 1u);
    EXPECT_EQ(c.config_read(PCI_STATUS, 2), unsigned{PCI_STATUS_CAP_LIST});
    EXPECT_EQ(c.config_read(PCI_ROM_ADDRESS, 4), 0u);
    EXPECT_EQ(c.config_read(0x100, 4), 0u) << "no extended capabilities";
    // Identity is not writable.
    c.config_write(PCI_VENDOR_ID, 4, 0xffffffff);
    EXPECT_EQ(c.config_read(PCI_VENDOR_ID, 4), 0x0b0b1b36u);
}

TEST_F(config_space_test, bars_show_their_size_and_keep_their_address) {
    client c = connect();
    struct {
        unsigned bar;
        std::uint64_t size;
        std::uint32_t flags;
    } const bars[] = {{0, 1u << 20, 0x4},
                      {2, 256u << 10, 0x4},
                      {4, std::uint64_t{4} << 30, 0xc}};
    for (const auto& b : bars) {
        const std::uint64_t at = PCI_BASE_ADDRESS_0 + 4 * b.bar;
        EXPECT_EQ(c.config_read(at, 4), b.flags);
        c.config_write(at, 4, 0xffffffff);
        c.config_write(at + 4, 4, 0xffffffff);
        const std::uint64_t probe =
            c.config_read(at, 4) | c.config_read(at + 4, 4) << 32;
        EXPECT_EQ(~(probe & ~std::uint64_t{0xf}) + 1, b.size);
        EXPECT_EQ(probe & 0xf, b.flags);
        c.config_write(at, 4, 0xe0000000);
        c.config_write(at + 4, 4, 0x12);
        const std::uint64_t address =
            c.config_read(at, 4) | c.config_read(at + 4, 4) << 32;
        EXPECT_EQ(address, (0x12e0000000u & ~(b.size - 1)) | b.flags);
    }
}

TEST_F(config_space_test, express_capability) {
    client c = connect();
    const std::uint64_t at = find(c, PCI_CAP_ID_EXP);
    ASSERT_NE(at, 0u);
    const std::uint64_t flags = c.config_read(at + PCI_EXP_FLAGS, 2);
    EXPECT_EQ(flags & PCI_EXP_FLAGS_VERS, 2u);
    EXPECT_EQ((flags & PCI_EXP_FLAGS_TYPE) >> 4, 0u) << "endpoint";
    EXPECT_NE(c.config_read(at + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_FLR, 0u);
    const std::uint64_t link = c.config_read(at + PCI_EXP_LNKSTA, 2);
    EXPECT_EQ(link & PCI_EXP_LNKSTA_CLS, 3u);
    EXPECT_EQ((link & PCI_EXP_LNKSTA_NLW) >> 4, 8u);
}

TEST_F(config_space_test, msix_capability) {
    client c = connect();
    const std::uint64_t at = find(c, PCI_CAP_ID_MSIX);
    ASSERT_NE(at, 0u);
    EXPECT_EQ(c.config_read(at + PCI_MSIX_FLAGS, 2), 15u);
    EXPECT_EQ(c.config_read(at + PCI_MSIX_TABLE, 4), 0x8000u);
    EXPECT_EQ(c.config_read(at + PCI_MSIX_PBA, 4), 0x9000u);
    c.config_write(at + PCI_MSIX_FLAGS, 2, 0xffff);
    EXPECT_EQ(c.config_read(at + PCI_MSIX_FLAGS, 2), 0xc00fu);
    EXPECT_EQ(find(c, PCI_CAP_ID_PM), 0u);
}

TEST_F(config_space_test, blocks_of_any_size_and_place) {
    client c = connect();
    client_message m = c.read_block(REGION_CONFIG, 0, 4096);
    ASSERT_EQ(m.error(), 0);
    ASSERT_EQ(m.payload.size(), sizeof(region_access) + 4096);
    EXPECT_EQ(m.payload[sizeof(region_access)], 0x36);
    m = c.read_block(REGION_CONFIG, 3, 7);
    ASSERT_EQ(m.error(), 0);
    ASSERT_EQ(m.payload.size(), sizeof(region_access) + 7);
    EXPECT_EQ(m.payload[sizeof(region_access)], 0x0b);
    EXPECT_EQ(c.write_block(REGION_CONFIG, 0, bytes(4096, 0)).error(), 0);

    EXPECT_EQ(c.read_block(REGION_CONFIG, 0, 0).error(), EINVAL);
    EXPECT_EQ(c.read_block(REGION_CONFIG, 1, 4096).error(), EINVAL);
    EXPECT_EQ(c.read_block(REGION_CONFIG, 4096, 1).error(), EINVAL);
    EXPECT_EQ(c.read_block(REGION_CONFIG, ~std::uint64_t{0}, 2).error(),
              EINVAL);
    EXPECT_EQ(c.write_block(REGION_CONFIG, 4095, bytes(2, 0)).error(), EINVAL);
}

TEST_F(config_space_test, bus_master_enable_is_told) {
    client c = connect();
    c.config_write(PCI_COMMAND, 2, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
    EXPECT_TRUE(m_device[0]->is_bus_master());
    EXPECT_EQ(c.config_read(PCI_COMMAND, 2), 6u);
    c.config_write(PCI_COMMAND, 1, PCI_COMMAND_MEMORY);
    EXPECT_FALSE(m_device[0]->is_bus_master());
    c.config_write(PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
    EXPECT_EQ(m_device[0]->log(),
              (std::vector<std::string>{"connected", "bus master on",
                                        "bus master off"}));
}

TEST_F(config_space_test, device_reset) {
    client c = connect();
    c.config_write(PCI_COMMAND, 2, 0x7);
    c.config_write(PCI_BASE_ADDRESS_0, 4, 0xe0000000);
    c.config_write(config_space::MSIX_CAPABILITY + 2, 2, 0x8000);
    c.write(0, 0x40, 4, 77);
    EXPECT_EQ(c.reset(), 0);
    EXPECT_EQ(c.config_read(PCI_COMMAND, 2), 0u);
    EXPECT_EQ(c.config_read(PCI_BASE_ADDRESS_0, 4), 4u);
    EXPECT_EQ(c.config_read(config_space::MSIX_CAPABILITY + 2, 2), 15u);
    EXPECT_EQ(c.read(0, 0x40, 4), 0u);
    EXPECT_EQ(m_device[0]->log(),
              (std::vector<std::string>{"connected", "bus master on",
                                        "bus master off", "reset"}));
    EXPECT_EQ(c.transact(DEVICE_RESET, {0}).error(), EINVAL);
}

TEST_F(config_space_test, function_level_reset) {
    client c = connect();
    const std::uint64_t control =
        config_space::PCIE_CAPABILITY + PCI_EXP_DEVCTL;
    c.config_write(PCI_COMMAND, 2, 0x6);
    c.config_write(control, 2, 0x1000);
    EXPECT_EQ(c.config_read(control, 2), 0x1000u);
    c.config_write(control, 2, 0x1000 | PCI_EXP_DEVCTL_BCR_FLR);
    EXPECT_EQ(c.config_read(control, 2), 0x2810u);
    EXPECT_EQ(c.config_read(PCI_COMMAND, 2), 0u);
    EXPECT_EQ(m_device[0]->log().back(), "reset");
}

TEST_F(config_space_test, without_interrupts) {
    identity id = test_identity();
    id.intx = false;
    id.msix_vectors = 0;
    fake_device device(id);
    server s;
    device.bind(s, s.add_endpoint(path(5), device));
    s.start();
    client c(path(5));
    ASSERT_EQ(c.negotiate().error(), 0);
    EXPECT_EQ(c.config_read(PCI_INTERRUPT_PIN, 1), 0u);
    EXPECT_NE(find(c, PCI_CAP_ID_EXP), 0u);
    EXPECT_EQ(find(c, PCI_CAP_ID_MSIX), 0u);
    EXPECT_EQ(c.irq_info(IRQ_INTX).count, 0u);
    EXPECT_EQ(c.irq_info(IRQ_MSIX).count, 0u);
    c.write(0, 0x8000, 4, 5);  // an ordinary register
    EXPECT_EQ(c.read(0, 0x8000, 4), 5u);
    s.trigger_msix(0, 0);
    s.set_intx(0, true);
    s.stop();
    device.stop();
}

}  // namespace vfio_user
}  // namespace prawn
