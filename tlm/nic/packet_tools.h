// SPDX-License-Identifier: Apache-2.0
// What several blocks need to know of a packet.

#ifndef PRAWN_NIC_PACKET_TOOLS_H
#define PRAWN_NIC_PACKET_TOOLS_H

#include <cmath>
#include <cstdint>

#include "nic/types.h"
#include "support/crc32c.h"
#include "support/events.h"
#include "support/profile.h"

namespace prawn {

// The message that a packet belongs to, as the event stream names it: of a NACK
// the one that it refuses; what is neither DATA nor NACK belongs to none.
inline message_id message_of(const header& head) {
    if (head.type == PRAWN_PACKET_TYPE_DATA)
        return {head.source_node, head.source_context, head.message};
    if (head.type == PRAWN_PACKET_TYPE_NACK)
        return {head.destination_node, head.source_context, head.message};
    return {};
}

// payload_length must have been checked against PRAWN_MAX_PAYLOAD.
inline std::uint32_t packet_crc(const packet& p) {
    return crc32c(p.payload, p.head.payload_length,
                  crc32c(&p.head, sizeof(p.head)));
}

// How long a packet occupies a link.
class link_rate
{
public:
    explicit link_rate(const timing_profile& profile) :
        m_ps_per_byte(1000.0 / profile.link.bytes_per_ns),
        m_overhead(profile.link.overhead) {}

    sc_core::sc_time time(const packet& p) const {
        const double bytes = static_cast<double>(p.wire_size()) + m_overhead;
        return sc_core::sc_time::from_value(
            static_cast<sc_core::sc_time::value_type>(
                std::llround(bytes * m_ps_per_byte)));
    }

private:
    double m_ps_per_byte;
    double m_overhead;
};

}  // namespace prawn

#endif
