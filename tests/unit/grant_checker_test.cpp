// SPDX-License-Identifier: Apache-2.0
#include "host/grant_checker.h"

#include <gtest/gtest.h>

#include "host_bench.h"

namespace prawn {
namespace test {
namespace {

constexpr std::uint64_t M = host_bench::MEMORY;
constexpr std::uint64_t PAGE = 4096;

host_bench& bench() {
    static auto* one = new host_bench("bench", duplex_profile(), true);
    return *one;
}

class grant_checker_test : public testing::Test
{
protected:
    host_bench& b = bench();
    grant_checker& dut = *b.checker;
    std::uint8_t data[256] = {1, 2, 3};
    std::size_t failures = 0;

    void SetUp() override {
        b.start();
        dut.reset();
        failures = count();
    }
    std::uint64_t count() const { return b.count("grant_checker.failed"); }
    std::uint16_t dma(std::uint16_t context, bool write, std::uint64_t address,
                      std::uint32_t length = 16) {
        const std::size_t before = b.replies[DMA_PROXY].all.size();
        b.ask(DMA_PROXY, 0, write, address, length, data, context);
        run_ns(5000);
        EXPECT_EQ(b.replies[DMA_PROXY].all.size(), before + 1);
        return b.replies[DMA_PROXY].all.back().item.status;
    }
    static constexpr std::uint16_t OK = PRAWN_STATUS_OK;
    static constexpr std::uint16_t BAD = PRAWN_STATUS_DMA_ERROR;
};

TEST_F(grant_checker_test, nothing_is_granted_at_first) {
    EXPECT_EQ(dma(3, false, M), BAD);
    EXPECT_TRUE(dut.failed());
    EXPECT_EQ(count(), failures + 1);
    const grant_checker::failure& f = dut.failures().back();
    EXPECT_EQ(f.context, 3);
    EXPECT_EQ(f.address, M);
    EXPECT_EQ(f.length, 16u);
    EXPECT_EQ(f.channel, DMA_PROXY);
    EXPECT_FALSE(f.write);
    EXPECT_FALSE(f.revoked);
    EXPECT_NE(f.text().find("read of 16 bytes at 0x100000 for context 3"),
              std::string::npos)
        << f.text();
}

TEST_F(grant_checker_test, context_page_and_permission_count) {
    EXPECT_EQ(dut.grant(3, M, 2, false), OK);
    EXPECT_EQ(dma(3, false, M), OK);
    EXPECT_EQ(dma(3, false, M + PAGE + 4080, 16), OK);
    EXPECT_EQ(count(), failures);
    EXPECT_EQ(dma(3, false, M + 2 * PAGE - 8, 16), BAD);  // half outside
    EXPECT_EQ(dma(3, true, M), BAD);                      // not to be written
    EXPECT_EQ(dma(4, false, M), BAD);                     // another context
    EXPECT_EQ(dma(KERNEL_CONTEXT, false, M), BAD);
    EXPECT_EQ(count(), failures + 4);
    EXPECT_EQ(dut.grant(KERNEL_CONTEXT, M, 1, true), OK);
    EXPECT_EQ(dma(KERNEL_CONTEXT, true, M), OK);
    EXPECT_EQ(dma(3, true, M), BAD);  // the kernel's does not help
    EXPECT_EQ(dma(99, false, M), BAD);
}

TEST_F(grant_checker_test, grants_nest) {
    dut.grant(1, M, 4, true);
    dut.grant(1, M + PAGE, 1, false);
    EXPECT_EQ(dut.revoke(1, M, 4), OK);
    EXPECT_EQ(dma(1, false, M + PAGE), OK);
    EXPECT_EQ(dma(1, true, M + PAGE), OK);  // goes with the last grant
    EXPECT_EQ(dma(1, false, M), BAD);
    EXPECT_EQ(dut.revoke(1, M + PAGE, 1), OK);
    EXPECT_EQ(dma(1, false, M + PAGE), BAD);
}

TEST_F(grant_checker_test, bad_grants) {
    const std::uint16_t bad = PRAWN_STATUS_BAD_FIELD;
    EXPECT_EQ(dut.grant(64, M, 1, false), bad);
    EXPECT_EQ(dut.grant(0, M + 1, 1, false), bad);
    EXPECT_EQ(dut.grant(0, M, 0, false), bad);
    EXPECT_EQ(dut.grant(0, M, grant_checker::MAX_PAGES + 1, false), bad);
    EXPECT_EQ(dut.grant(0, ~std::uint64_t{4095}, 2, false), bad);
    EXPECT_EQ(dut.grant(0, ~std::uint64_t{4095}, 1, false), OK);
    EXPECT_EQ(dut.revoke(0, M, 1), bad);
    // All or nothing.
    dut.grant(0, M, 1, false);
    EXPECT_EQ(dut.revoke(0, M, 2), bad);
    EXPECT_EQ(dma(0, false, M), OK);
    EXPECT_EQ(count(), failures);
}

TEST_F(grant_checker_test, revoked_while_under_way) {
    dut.grant(2, M, 1, true);
    b.ask(DMA_PROXY, 0, true, M, 64, data, 2);
    run_ns(50);  // on the bus
    EXPECT_EQ(dut.revoke(2, M, 1), OK);
    EXPECT_EQ(count(), failures + 1);
    EXPECT_TRUE(dut.failures().back().revoked);
    run_ns(5000);
    // Counted once, and the bus is as before.
    EXPECT_EQ(count(), failures + 1);
    EXPECT_EQ(b.replies[DMA_PROXY].all.size(), 1u);

    // Revoked after its answer: no failure.
    dut.grant(2, M, 1, true);
    EXPECT_EQ(dma(2, true, M), OK);
    EXPECT_EQ(dut.revoke(2, M, 1), OK);
    EXPECT_EQ(count(), failures + 1);
}

TEST_F(grant_checker_test, reset_forgets_but_does_not_judge) {
    dut.grant(2, M, 1, true);
    b.ask(DMA_PROXY, 0, true, M, 64, data, 2);
    run_ns(50);
    b.engine.reset();
    dut.reset();
    dut.grant(2, M, 1, true);
    EXPECT_EQ(dut.revoke(2, M, 1), OK);
    run_ns(5000);
    EXPECT_EQ(count(), failures);
    EXPECT_EQ(dma(2, true, M), BAD);
}

}  // namespace
}  // namespace test
}  // namespace prawn
