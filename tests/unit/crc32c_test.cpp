// SPDX-License-Identifier: Apache-2.0
#include "support/crc32c.h"

#include <cstdio>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace prawn {
namespace {

using function = std::uint32_t (*)(const void*, std::size_t, std::uint32_t);

// Known answers: RFC 3720, appendix B.4, and the check value of the CRC
// catalogues.
void known_answers(function crc) {
    EXPECT_EQ(crc("", 0, 0), 0u);
    EXPECT_EQ(crc("123456789", 9, 0), 0xe3069283u);

    std::vector<std::uint8_t> data(32, 0x00);
    EXPECT_EQ(crc(data.data(), data.size(), 0), 0x8a9136aau);
    data.assign(32, 0xff);
    EXPECT_EQ(crc(data.data(), data.size(), 0), 0x62a8ab43u);
    for (std::size_t i = 0; i < 32; i++)
        data[i] = static_cast<std::uint8_t>(i);
    EXPECT_EQ(crc(data.data(), data.size(), 0), 0x46dd794eu);
    for (std::size_t i = 0; i < 32; i++)
        data[i] = static_cast<std::uint8_t>(31 - i);
    EXPECT_EQ(crc(data.data(), data.size(), 0), 0x113fdb5cu);
}

TEST(crc32c, known_answers) {
    known_answers(crc32c);
}
TEST(crc32c, table_known_answers) {
    known_answers(crc32c_table);
}

TEST(crc32c, instruction_known_answers) {
    if (!crc32c_has_instruction()) {
        std::puts("this processor has no CRC-32C instruction");
        GTEST_SKIP();
    }
    known_answers(crc32c_instruction);
}

TEST(crc32c, ways_agree_at_any_length_and_alignment) {
    if (!crc32c_has_instruction())
        GTEST_SKIP();
    std::mt19937 random(1);
    std::vector<std::uint8_t> data(4200);
    for (std::uint8_t& b : data)
        b = static_cast<std::uint8_t>(random());
    for (std::size_t at = 0; at < 9; at++)
        for (std::size_t size = 0; size < 70; size++)
            ASSERT_EQ(crc32c_table(&data[at], size, 7),
                      crc32c_instruction(&data[at], size, 7))
                << at << ' ' << size;
    // Every way to be cut into lanes.
    for (std::size_t size = 0; size < data.size() - 3; size++)
        ASSERT_EQ(crc32c_table(&data[3], size),
                  crc32c_instruction(&data[3], size))
            << size;
    data.resize(20000, 0x3c);
    EXPECT_EQ(crc32c_table(data.data(), data.size(), 9),
              crc32c_instruction(data.data(), data.size(), 9));
}

TEST(crc32c, parts_make_the_whole) {
    std::vector<std::uint8_t> data(257);
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::uint8_t>(i * 7);
    const std::uint32_t whole = crc32c(data.data(), data.size());
    for (std::size_t cut = 0; cut <= data.size(); cut++) {
        const std::uint32_t first = crc32c(data.data(), cut);
        ASSERT_EQ(crc32c(data.data() + cut, data.size() - cut, first), whole);
    }
}

TEST(crc32c, sees_every_single_bit) {
    std::vector<std::uint8_t> data(80, 0x5a);
    const std::uint32_t good = crc32c(data.data(), data.size());
    for (std::size_t bit = 0; bit < data.size() * 8; bit++) {
        data[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        ASSERT_NE(crc32c(data.data(), data.size()), good) << bit;
        data[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    }
}

}  // namespace
}  // namespace prawn
