// SPDX-License-Identifier: Apache-2.0
// The card's end of the link: framing, CRC-32C, credits.

#ifndef PRAWN_NIC_LINK_MAC_H
#define PRAWN_NIC_LINK_MAC_H

#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "nic/packet_tools.h"
#include "support/input.h"
#include "support/ring.h"

namespace prawn {

// Transmit: one packet at a time; it goes to the fabric when its last byte has
// left, after (wire size + framing) / bandwidth. A packet takes one credit of
// its destination when it is accepted. No store: what is refused stays with
// the asker.
//
// Receive: a packet arrives with its last byte, the CRC's verdict with it, and
// is offered to the reliable block in the same instant. What that refuses
// waits here; the fabric's credits bound how much. A credit goes back for each
// packet that leaves, in order of arrival, broken ones included.
//
// reset(): the packet whose last byte has not left is lost and its credit is
// kept; received packets that nobody has taken are lost and their credits go
// back. Credits at the fabric, and packets in it, are not touched.
//
// What cannot be framed (no such destination, impossible length) is dropped
// and counted.
class link_mac final : public link_mac_base, private control_handler
{
public:
    link_mac(sc_core::sc_module_name name, const block_env& env);

    put_if<control_request>& control_in() override { return m_control; }
    put_if<packet_ref>& packet_in() override { return m_packet_in; }
    put_if<packet_ref>& link_in() override { return m_link_in; }
    put_if<unsigned>& credit_in() override { return m_credit_in; }
    void reset() override;

    // Packets that may be sent to a node before a credit comes back.
    unsigned credits(unsigned node) const { return m_credits[node]; }

private:
    void end_of_elaboration() override;
    void control(const control_request& request) override;

    bool send(packet_ref& item);
    const sc_core::sc_event& send_room() const { return m_room; }
    void sent();
    void hand_over();
    void take_credit(unsigned& node);

    void receive(packet_ref& item);
    bool intact(const packet& p);
    void drain();
    void return_credits(unsigned count);

    control_channel m_control;
    input<packet_ref, link_mac, &link_mac::send, &link_mac::send_room>
        m_packet_in;
    taker<packet_ref, link_mac, &link_mac::receive> m_link_in;
    taker<unsigned, link_mac, &link_mac::take_credit> m_credit_in;

    const link_rate m_rate;
    std::vector<unsigned> m_credits;  // by destination
    std::uint32_t m_starved = 0;      // destinations refused for want of them
    bool m_busy_refused = false;
    packet_ref m_tx;          // being sent
    bool m_tx_stuck = false;  // sent, but the fabric refused it
    sc_core::sc_time m_tx_end;
    std::uint64_t m_tx_tag = 0;
    sc_core::sc_event m_tx_done;
    sc_core::sc_event m_room;

    ring<packet_ref> m_rx;  // null: a broken packet's place
    std::uint64_t m_rx_tag = 0;

    counter& m_tx_packets;
    counter& m_tx_bytes;
    counter& m_tx_dropped;
    counter& m_credit_waits;
    counter& m_rx_packets;
    counter& m_rx_bytes;
    counter& m_rx_bad_crc;
    counter& m_rx_bad_frame;
    counter& m_rx_high_water;
};

}  // namespace prawn

#endif
