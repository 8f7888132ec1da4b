// SPDX-License-Identifier: Apache-2.0
// Reliable delivery between nodes, hardwired. This is the part that a lossless
// fabric needs: stamps, checks, lives of peers. Nothing is retransmitted.

#ifndef PRAWN_NIC_RELIABLE_H
#define PRAWN_NIC_RELIABLE_H

#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "support/input.h"

namespace prawn {

// Both directions are combinational: what the next block refuses is refused
// here, in the same call, and then nothing has changed: a sequence number is
// used up only by a packet that was accepted.
//
// Sequence numbers run from 1 for each peer and direction; a HELLO (sequence
// 0) starts them again for its direction, when it passes. BYE and ACK carry 0
// too. An answer to a HELLO is a HELLO with immediate 1; only a card that has
// said hello itself answers. The node itself is a peer that is always up.
//
// Incoming, in this order:
//   another version, another destination, a source that does not exist: passed
//       on as it is; the depacketizer knows what to do with it
//   HELLO, BYE, ACK: end here; one from an earlier life is dropped
//   a sequence number seen before: dropped
//   to another life of this node: DATA refused STALE_EPOCH, else dropped
//   from a life that has not said HELLO, or after BYE: dropped. From a later
//       life than the known one it proves that the known one has ended:
//       PEER_DOWN
//   a gap: counted, reported as an event, and the packet is delivered; ipt
//       refuses it if what is missing was of its message
class reliable final : public reliable_base, private control_handler
{
public:
    reliable(sc_core::sc_module_name name, const block_env& env);

    put_if<control_request>& control_in() override { return m_control; }
    put_if<packet_ref>& host_in() override { return m_host_in; }
    put_if<packet_ref>& link_in() override { return m_link_in; }
    std::uint16_t epoch() const override { return m_epoch; }
    // Peers that are up already are reported again: the caller has only now
    // begun to listen.
    void say_hello() override;
    // After reset(), if both are meant: a reset forgets what is to be said.
    void say_bye() override;
    void reset() override;

private:
    struct peer {
        std::uint16_t epoch = 0;  // newest life known; 0: none yet
        bool up = false;
        std::uint32_t next = 1;      // sequence number to send
        std::uint32_t expected = 1;  // sequence number to receive
    };

    void end_of_elaboration() override;
    void control(const control_request& request) override;
    void start();

    bool send(packet_ref& item);
    const sc_core::sc_event& send_room() const { return link_out->room(); }
    bool receive(packet_ref& item);
    const sc_core::sc_event& receive_room() const { return host_out->room(); }

    bool receive_sequenced(packet_ref& item);
    void receive_hello(const header& head);
    void receive_bye(const header& head);
    void advance(peer& from, const header& head);
    void refuse_stale(const header& head);
    void suspect(peer& from, const header& head);
    void report(std::uint8_t type, unsigned node);
    void went_down(unsigned node);
    void drop(const header& head, counter& why,
              std::uint16_t status = PRAWN_STATUS_STALE_EPOCH);

    std::uint32_t others() const;
    void announce();
    bool say(unsigned node, std::uint8_t type, std::uint32_t immediate);

    control_channel m_control;
    input<packet_ref, reliable, &reliable::send, &reliable::send_room>
        m_host_in;
    input<packet_ref, reliable, &reliable::receive, &reliable::receive_room>
        m_link_in;

    std::uint16_t m_epoch = 1;
    std::vector<peer> m_peers;
    bool m_said_hello = false;
    // One bit for each node that must be told, or of which must be told.
    std::uint32_t m_hello = 0;
    std::uint32_t m_answer = 0;
    std::uint32_t m_bye = 0;
    std::uint32_t m_report = 0;
    sc_core::sc_event m_announce;

    counter& m_duplicates;
    counter& m_gaps;
    counter& m_lost;
    counter& m_stale_refused;
    counter& m_stale_dropped;
    counter& m_strangers;
    counter& m_hellos;
    counter& m_byes;
    counter& m_acks;
};

}  // namespace prawn

#endif
