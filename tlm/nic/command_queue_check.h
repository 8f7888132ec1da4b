// SPDX-License-Identifier: Apache-2.0
// The checks that a command has to pass before anything is done with it.

#ifndef PRAWN_NIC_COMMAND_QUEUE_CHECK_H
#define PRAWN_NIC_COMMAND_QUEUE_CHECK_H

#include <cstdint>

#include "prawn_hw.h"

namespace prawn {

// PRAWN_STATUS_OK, or why the command is refused: BAD_OPCODE, BAD_FIELD (flags,
// reserved fields), BAD_LENGTH (beyond MAX_MESSAGE, or source or offset plus
// length out of their ranges), the first that applies. Fields that the opcode
// does not use are not looked at. Whether the import exists and reaches so far
// is for the outgoing page table to say.
// utlb_index: the UTLB is one where processes name entries; else it must be 0.
std::uint16_t check_command(const prawn_command& c, bool utlb_index);

}  // namespace prawn

#endif
