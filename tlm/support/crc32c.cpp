// SPDX-License-Identifier: Apache-2.0
#include "support/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace prawn {

namespace {

constexpr std::uint32_t POLYNOMIAL = 0x82f63b78;  // reflected 0x1edc6f41

using table = std::array<std::array<std::uint32_t, 256>, 8>;

// Row 0 advances the sum by one byte; row k by one byte that k more follow, so
// that eight bytes are summed with eight independent look-ups.
constexpr table make_table() {
    table t{};
    for (std::uint32_t i = 0; i < 256; i++) {
        std::uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
        t[0][i] = sum;
    }
    for (std::size_t row = 1; row < 8; row++)
        for (std::size_t i = 0; i < 256; i++)
            t[row][i] = t[row - 1][i] >> 8 ^ t[0][t[row - 1][i] & 0xff];
    return t;
}

constexpr table TABLE = make_table();

// The instruction starts one sum a cycle but answers after three: long data are
// summed in three lanes side by side. Joining them takes a sum over `bytes`
// more zeros, which is linear in the bits of the sum: look-ups by its bytes.
using shift_table = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr shift_table make_shift(std::size_t bytes) {
    shift_table t{};
    for (std::size_t bit = 0; bit < 32; bit++) {
        std::uint32_t sum = 1U << bit;
        for (std::size_t i = 0; i < bytes; i++)
            sum = sum >> 8 ^ TABLE[0][sum & 0xff];
        for (std::size_t i = 0; i < 256; i++)
            if (i >> bit % 8 & 1)
                t[bit / 8][i] ^= sum;
    }
    return t;
}

constexpr std::uint32_t shift(const shift_table& t, std::uint32_t sum) {
    return t[0][sum & 0xff] ^ t[1][sum >> 8 & 0xff] ^ t[2][sum >> 16 & 0xff] ^
           t[3][sum >> 24];
}

// Bytes of a lane: three make most of a full payload, or of a small one.
constexpr std::size_t LONG_LANE = 1360;
constexpr std::size_t SHORT_LANE = 128;
constexpr shift_table LONG_SHIFT = make_shift(LONG_LANE);
constexpr shift_table SHORT_SHIFT = make_shift(SHORT_LANE);

}  // namespace

std::uint32_t crc32c_table(const void* data, std::size_t size,
                           std::uint32_t before) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    std::uint32_t sum = ~before;
    while (size >= 8) {
        const std::uint32_t low =
            sum ^ (static_cast<std::uint32_t>(p[0]) |
                   static_cast<std::uint32_t>(p[1]) << 8 |
                   static_cast<std::uint32_t>(p[2]) << 16 |
                   static_cast<std::uint32_t>(p[3]) << 24);
        sum = TABLE[7][low & 0xff] ^ TABLE[6][low >> 8 & 0xff] ^
              TABLE[5][low >> 16 & 0xff] ^ TABLE[4][low >> 24] ^
              TABLE[3][p[4]] ^ TABLE[2][p[5]] ^ TABLE[1][p[6]] ^ TABLE[0][p[7]];
        p += 8;
        size -= 8;
    }
    while (size-- != 0)
        sum = sum >> 8 ^ TABLE[0][(sum ^ *p++) & 0xff];
    return ~sum;
}

#if defined(__x86_64__)

bool crc32c_has_instruction() {
    return __builtin_cpu_supports("sse4.2") != 0;
}

namespace {

std::uint64_t word_at(const std::uint8_t* p) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    return word;
}

// Over 3 * LANE bytes.
template <std::size_t LANE>
__attribute__((target("sse4.2"))) std::uint64_t three_lanes(
    const std::uint8_t* p, std::uint64_t sum, const shift_table& over_lane) {
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < LANE; i += 8) {
        sum = _mm_crc32_u64(sum, word_at(p + i));
        b = _mm_crc32_u64(b, word_at(p + LANE + i));
        c = _mm_crc32_u64(c, word_at(p + 2 * LANE + i));
    }
    b ^= shift(over_lane, static_cast<std::uint32_t>(sum));
    c ^= shift(over_lane, static_cast<std::uint32_t>(b));
    return c;
}

}  // namespace

__attribute__((target("sse4.2"))) std::uint32_t crc32c_instruction(
    const void* data, std::size_t size, std::uint32_t before) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    std::uint64_t sum = static_cast<std::uint32_t>(~before);
    for (; size >= 3 * LONG_LANE; p += 3 * LONG_LANE, size -= 3 * LONG_LANE)
        sum = three_lanes<LONG_LANE>(p, sum, LONG_SHIFT);
    for (; size >= 3 * SHORT_LANE; p += 3 * SHORT_LANE, size -= 3 * SHORT_LANE)
        sum = three_lanes<SHORT_LANE>(p, sum, SHORT_SHIFT);
    for (; size >= 8; p += 8, size -= 8)
        sum = _mm_crc32_u64(sum, word_at(p));
    auto last = static_cast<std::uint32_t>(sum);
    while (size-- != 0)
        last = _mm_crc32_u8(last, *p++);
    return ~last;
}

#else

bool crc32c_has_instruction() {
    return false;
}

std::uint32_t crc32c_instruction(const void* data, std::size_t size,
                                 std::uint32_t before) {
    return crc32c_table(data, size, before);
}

#endif

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t before) {
    static const bool fast = crc32c_has_instruction();
    return fast ? crc32c_instruction(data, size, before)
                : crc32c_table(data, size, before);
}

}  // namespace prawn
