// SPDX-License-Identifier: Apache-2.0
// The pools of what travels between blocks and cards. One of each for the
// process, never destroyed: references may outlive every block.

#ifndef PRAWN_NIC_POOLS_H
#define PRAWN_NIC_POOLS_H

#include "nic/types.h"

namespace prawn {

inline pool<packet>& packet_pool() {
    static auto* p = new pool<packet>;
    return *p;
}

inline pool<small_buffer>& small_buffer_pool() {
    static auto* p = new pool<small_buffer>;
    return *p;
}

}  // namespace prawn

#endif
