// SPDX-License-Identifier: Apache-2.0
// What the network says: lives and deaths of peers, and refusals of packets.
// One at a time goes to opt and, when opt has it, to the kernel: what the
// driver then writes into the table is not undone by old news.
#include <iterator>

#include "nic/admin_queue.h"

namespace prawn {

namespace {

// Field b of IMPORT_ERROR: what the import must still name (see opt.h). A
// refusal that comes late, or from somebody else, does no harm then.
std::uint64_t expected(std::uint16_t node, std::uint32_t export_id) {
    return std::uint64_t{1} << 63 | std::uint64_t{node} << 32 | export_id;
}

// Who must hear of a peer's end, one after the other: what one of them drops
// does not come again from the one before.
constexpr control_target PEER_PATH[] = {CONTROL_OPT, CONTROL_PACKETIZER,
                                        CONTROL_OUTGOING_FIFO};

}  // namespace

void admin_queue::on_peer(peer_event& e) {
    if (e.node >= m_env.nodes)
        return;
    m_count_peer_events++;
    const bool up = e.type == PRAWN_EVENT_TYPE_PEER_UP;
    m_events.emit(event_kind::PEER_STATE, {}, e.node, up ? e.epoch : 0);
    const auto status = static_cast<std::uint16_t>(
        up ? PRAWN_STATUS_UNKNOWN_OUTCOME : PRAWN_STATUS_PEER_DEAD);
    m_peers.push_back({e, status, true});
    run_internal();
}

void admin_queue::declare_dead(slot_t& s) {
    peer_event e;
    e.type = PRAWN_EVENT_TYPE_PEER_DOWN;
    e.node = static_cast<std::uint16_t>(s.cmd.entry.index);
    m_events.emit(event_kind::PEER_STATE, {}, e.node, 0);
    m_peers.push_back({e, PRAWN_STATUS_PEER_DEAD, false});
    run_internal();
}

void admin_queue::on_nack(packet_ref& p) {
    const header& h = p->head;
    m_count_nacks++;
    m_events.emit(event_kind::NACK_RECEIVED,
                  {m_env.node, h.source_context, h.message}, h.status,
                  h.source_node);
    if (h.import_id >= PRAWN_OPT_ENTRIES) {
        m_count_nacks_ignored++;  // of a management message
        return;
    }
    if (m_nack_queued[h.import_id]) {
        m_count_nacks_ignored++;  // the first reason counts
        return;
    }
    m_nack_queued[h.import_id] = true;
    m_nack_status[h.import_id] = h.status;
    m_nack_target[h.import_id] = expected(h.source_node, h.export_id);
    m_nacks.push_back(h.import_id);
    run_internal();
}

void admin_queue::run_internal() {
    if (m_internal_waiting)
        return;
    if (!m_peers.empty()) {
        m_current_peer = m_peers.front();
        m_peers.pop_front();
        m_internal_peer = true;
        m_internal_waiting = std::size(PEER_PATH);
        put_peer_error();
    } else if (!m_nacks.empty()) {
        const std::uint32_t import = m_nacks.front();
        m_nacks.pop_front();
        m_nack_queued[import] = false;
        m_internal_peer = false;
        control_request r;
        r.op = control_op::IMPORT_ERROR;
        r.index = import;
        r.a = m_nack_status[import];
        r.b = m_nack_target[import];
        m_internal_waiting = 1;
        put_control(CONTROL_OPT, r, INTERNAL);
    }
}

void admin_queue::put_peer_error() {
    control_request r;
    r.op = control_op::PEER_ERROR;
    r.index = m_current_peer.event.node;
    r.a = m_current_peer.status;
    put_control(PEER_PATH[std::size(PEER_PATH) - m_internal_waiting], r,
                INTERNAL);
}

void admin_queue::internal_done() {
    if (--m_internal_waiting) {
        put_peer_error();
        return;
    }
    if (m_internal_peer && m_current_peer.tell_kernel) {
        kernel_event_request e;
        e.type = m_current_peer.event.type;
        e.node = m_current_peer.event.node;
        e.epoch = m_current_peer.event.epoch;
        e.context = KERNEL_CONTEXT;
        e.value = m_current_peer.event.epoch;
        event_out->try_put(e);
    }
    run_internal();
}

}  // namespace prawn
