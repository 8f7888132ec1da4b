// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as iSCSI, SCTP and the packets of the card use it.

#ifndef PRAWN_SUPPORT_CRC32C_H
#define PRAWN_SUPPORT_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace prawn {

// Of size bytes, continuing a sum over what came before (0: nothing):
// crc32c(b, n, crc32c(a, m)) is the sum over a followed by b.
std::uint32_t crc32c(const void* data, std::size_t size,
                     std::uint32_t before = 0);

// The two ways it is computed; results are the same. crc32c() takes the
// machine's instruction where there is one.
std::uint32_t crc32c_table(const void* data, std::size_t size,
                           std::uint32_t before = 0);
bool crc32c_has_instruction();
// Only if crc32c_has_instruction().
std::uint32_t crc32c_instruction(const void* data, std::size_t size,
                                 std::uint32_t before = 0);

}  // namespace prawn

#endif
