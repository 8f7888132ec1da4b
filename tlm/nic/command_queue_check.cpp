// SPDX-License-Identifier: Apache-2.0
#include "nic/command_queue_check.h"

namespace prawn {

std::uint16_t check_command(const prawn_command& c, bool utlb_index) {
    switch (c.opcode) {
        case PRAWN_OPCODE_NOP:
        case PRAWN_OPCODE_SEND:
        case PRAWN_OPCODE_FENCE:
            break;
        default:
            return PRAWN_STATUS_BAD_OPCODE;
    }
    if ((c.flags & ~PRAWN_COMMAND_FLAGS) != 0 || c.rsvd0 != 0 ||
        (c.rsvd1[0] | c.rsvd1[1] | c.rsvd1[2]) != 0)
        return PRAWN_STATUS_BAD_FIELD;
    if (c.opcode != PRAWN_OPCODE_SEND)
        return PRAWN_STATUS_OK;
    if (c.utlb_index != 0 && !utlb_index)
        return PRAWN_STATUS_BAD_FIELD;
    constexpr std::uint64_t VA_END = std::uint64_t{1} << PRAWN_VA_BITS;
    if (c.length > PRAWN_MAX_MESSAGE || c.source > VA_END ||
        c.length > VA_END - c.source || c.offset + c.length < c.offset)
        return PRAWN_STATUS_BAD_LENGTH;
    return PRAWN_STATUS_OK;
}

}  // namespace prawn
