// SPDX-License-Identifier: Apache-2.0
// Packetizer: the packet, and its way to the queue of its peer.
#include <algorithm>

#include "nic/packetizer.h"
#include "nic/pools.h"

namespace prawn {

void packetizer::make_packet(std::uint16_t i) {
    slot& s = m_slots[i];
    const send_job& what = job_of(s).what;
    s.pkt = packet_pool().get();
    header& h = s.pkt->head;
    h = header{};
    h.version = PRAWN_PACKET_VERSION;
    h.type = PRAWN_PACKET_TYPE_DATA;
    h.flags = 0;
    if (s.offset == 0)
        h.flags |= PRAWN_PACKET_FLAG_FIRST;
    if (s.last)
        h.flags |= PRAWN_PACKET_FLAG_LAST;
    if (s.last && (what.command.flags & PRAWN_COMMAND_FLAG_NOTIFY))
        h.flags |= PRAWN_PACKET_FLAG_NOTIFY;
    h.source_node = m_env.node;
    h.destination_node = s.target.node;
    h.destination_epoch = s.target.epoch;
    h.source_context = s.context;
    h.payload_length = static_cast<std::uint16_t>(s.length);
    h.message = what.message;
    h.message_offset = s.offset;
    h.key = s.target.key;
    h.offset = what.command.offset + s.offset;
    h.export_id = s.target.export_id;
    h.import_id = what.command.import_id;
    h.immediate = what.command.immediate;
}

void packetizer::fail(std::uint16_t i, std::uint16_t status,
                      std::uint16_t detail) {
    slot& s = m_slots[i];
    s.status = status;
    s.detail = detail;
    s.to_ask = 0;
    leave_lane(i);
    if (s.asked == 0)
        end_tracking(s);  // else when it is freed
    done(i);
}

void packetizer::done(std::uint16_t i) {
    slot& s = m_slots[i];
    s.at = stage::DONE;
    leave_window(s);
    s.parked = true;
    m_contexts[s.context].parked++;
    settle(s.context);
}

// Lets go of every packet that waits for no earlier one. Earlier ones of the
// same peer come first; one whose peer is not known yet may be of any.
void packetizer::settle(std::uint16_t context) {
    context_state& c = m_contexts[context];
    peer_mask held = 0;
    for (std::uint16_t i = c.slots.front(); i != NONE;) {
        slot& s = m_slots[i];
        const peer_mask bit = s.peer == UNKNOWN ? 0 : peer_mask{1} << s.peer;
        if (s.at != stage::DONE && bit == 0)
            return;
        if (s.at != stage::DONE || (held & bit) != 0) {
            held |= bit;
            i = c.slots.next(m_order, i);
            continue;
        }
        if (s.status != PRAWN_STATUS_OK) {
            fail_job(context, job_of(s), i);
            i = c.slots.front();  // any of the list may have gone
            held = 0;
            continue;
        }
        const std::uint16_t next = c.slots.next(m_order, i);
        const std::uint16_t node = s.peer;
        leave_context(i);
        s.at = stage::QUEUED;
        s.in_lane = true;
        m_peers[node].ready.push_back(m_lane, i);
        m_peers[node].queued++;
        if ((m_blocked & bit) == 0)
            hand_over(node);
        i = next;
    }
}

void packetizer::hand_over(std::uint16_t node) {
    peer_state& p = m_peers[node];
    while (!p.ready.empty()) {
        const std::uint16_t i = p.ready.front();
        slot& s = m_slots[i];
        if (!packet_out->try_put(s.pkt)) {
            m_blocked |= peer_mask{1} << node;
            m_peer_stalls++;
            return;
        }
        const std::uint16_t context = s.context;
        job& j = job_of(s);
        j.handed += s.length;
        j.in_flight--;
        m_packets++;
        m_payload_bytes += s.length;
        m_bytes[context] += s.length;
        m_events.emit(event_kind::PACKET_BUILT,
                      {m_env.node, context, j.what.message}, s.offset,
                      s.length);
        cancel(i);
        if (j.in_flight == 0 && j.all_started)
            complete(context);
    }
}

}  // namespace prawn
