// SPDX-License-Identifier: Apache-2.0
// First to look at what the network brings: sanity, then by type.

#ifndef PRAWN_NIC_DEPACKETIZER_H
#define PRAWN_NIC_DEPACKETIZER_H

#include <cstdint>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "support/input.h"

namespace prawn {

// Combinational: in hardware the header is checked while the payload still
// comes in. Nothing is stored; DATA that ipt refuses is refused here.
//
// Sanity, in this order:
//   source that does not exist, another destination: dropped
//   another version; reserved bits or unknown flags set; impossible lengths,
//   offsets, contexts or combinations: DATA and MGMT are refused BAD_PACKET,
//   others dropped
//   unknown type, and types that end in the reliable block: dropped
// Then, unless enabled: DATA and MGMT refused NO_HOST, NACK dropped.
//
// Not checked here: NOTIFY without LAST (means nothing, ipt ignores it), key,
// export and range (ipt), what a management message says (the driver).
class depacketizer final : public depacketizer_base, private control_handler
{
public:
    depacketizer(sc_core::sc_module_name name, const block_env& env);

    put_if<control_request>& control_in() override { return m_control; }
    put_if<packet_ref>& packet_in() override { return m_packet_in; }
    void set_enabled(bool enabled) override { m_enabled = enabled; }
    void reset() override;

private:
    void control(const control_request& request) override;
    bool receive(packet_ref& item);
    const sc_core::sc_event& receive_room() const { return data_out->room(); }
    bool accept_data(packet_ref& item);
    void accept_mgmt(packet_ref& item);
    void drop(const packet& p, counter& why);
    void refuse(const packet& p, counter& why, std::uint16_t status);

    control_channel m_control;
    input<packet_ref, depacketizer, &depacketizer::receive,
          &depacketizer::receive_room>
        m_packet_in;
    bool m_enabled = false;

    counter& m_data;
    counter& m_bytes;
    counter& m_mgmt;
    counter& m_nacks;
    counter& m_bad_node;
    counter& m_bad_packet;
    counter& m_bad_type;
    counter& m_no_host;
};

}  // namespace prawn

#endif
