// SPDX-License-Identifier: Apache-2.0
#include "nic/depacketizer.h"

#include "nic/packet_tools.h"

namespace prawn {

namespace {

// The packetizer cuts a message into pieces of at least a byte: only a message
// of no bytes has a packet without payload.
bool sane_data(const header& h) {
    const bool first = h.flags & PRAWN_PACKET_FLAG_FIRST;
    const bool last = h.flags & PRAWN_PACKET_FLAG_LAST;
    return h.source_context < PRAWN_CONTEXTS && h.status == 0 &&
           first == (h.message_offset == 0) &&
           (h.payload_length != 0 || (first && last)) &&
           std::uint64_t{h.message_offset} + h.payload_length <=
               PRAWN_MAX_MESSAGE &&
           h.offset >= h.message_offset;
}

bool sane_mgmt(const header& h) {
    constexpr unsigned WHOLE = PRAWN_PACKET_FLAG_FIRST | PRAWN_PACKET_FLAG_LAST;
    return h.payload_length >= 1 && h.payload_length <= PRAWN_MGMT_MAX &&
           (h.flags & ~WHOLE) == 0 && h.status == 0;
}

bool sane_nack(const header& h) {
    return h.payload_length == 0 && h.status != PRAWN_STATUS_OK;
}

bool sane(const header& h) {
    if (h.version != PRAWN_PACKET_VERSION ||
        h.payload_length > PRAWN_MAX_PAYLOAD || h.rsvd != 0 ||
        (h.flags & ~unsigned{PRAWN_PACKET_FLAGS}) != 0)
        return false;
    switch (h.type) {
        case PRAWN_PACKET_TYPE_DATA:
            return sane_data(h);
        case PRAWN_PACKET_TYPE_MGMT:
            return sane_mgmt(h);
        case PRAWN_PACKET_TYPE_NACK:
            return sane_nack(h);
        default:
            return true;  // dropped anyway
    }
}

}  // namespace

depacketizer::depacketizer(sc_core::sc_module_name name, const block_env& env) :
    depacketizer_base(name, env, block_id::DEPACKETIZER),
    m_control("control", *this, *this, cycles(1)),
    m_packet_in(*this),
    m_data(env.counters->add("depacketizer.data_packets")),
    m_bytes(env.counters->add("depacketizer.data_bytes")),
    m_mgmt(env.counters->add("depacketizer.mgmt_packets")),
    m_nacks(env.counters->add("depacketizer.nack_packets")),
    m_bad_node(env.counters->add("depacketizer.bad_node")),
    m_bad_packet(env.counters->add("depacketizer.bad_packet")),
    m_bad_type(env.counters->add("depacketizer.bad_type")),
    m_no_host(env.counters->add("depacketizer.no_host")) {}

void depacketizer::control(const control_request& request) {
    m_control.answer(request.tag, request.op == control_op::DRAIN
                                      ? PRAWN_STATUS_OK
                                      : PRAWN_STATUS_BAD_OPCODE);
}

void depacketizer::reset() {
    m_control.reset();
    m_enabled = false;
}

bool depacketizer::receive(packet_ref& item) {
    const header& h = item->head;
    if (h.source_node >= m_env.nodes || h.destination_node != m_env.node) {
        drop(*item, m_bad_node);
    } else if (!sane(h)) {
        refuse(*item, m_bad_packet, PRAWN_STATUS_BAD_PACKET);
    } else if (h.type != PRAWN_PACKET_TYPE_DATA &&
               h.type != PRAWN_PACKET_TYPE_MGMT &&
               h.type != PRAWN_PACKET_TYPE_NACK) {
        drop(*item, m_bad_type);
    } else if (!m_enabled) {
        refuse(*item, m_no_host, PRAWN_STATUS_NO_HOST);
    } else if (h.type == PRAWN_PACKET_TYPE_DATA) {
        return accept_data(item);
    } else if (h.type == PRAWN_PACKET_TYPE_MGMT) {
        accept_mgmt(item);
    } else {
        m_nacks++;
        // Of the refused message, which is one of ours.
        m_events.emit(event_kind::PACKET_RECEIVED,
                      {m_env.node, h.source_context, h.message}, h.type, 0);
        nack_out->try_put(item);
    }
    item.reset();
    return true;
}

bool depacketizer::accept_data(packet_ref& item) {
    const header& h = item->head;
    const message_id message = message_of(h);
    const std::uint16_t bytes = h.payload_length;
    if (!data_out->try_put(item))
        return false;
    m_data++;
    m_bytes += bytes;
    m_events.emit(event_kind::PACKET_RECEIVED, message, PRAWN_PACKET_TYPE_DATA,
                  bytes);
    return true;
}

void depacketizer::accept_mgmt(packet_ref& item) {
    const header& h = item->head;
    m_mgmt++;
    m_events.emit(event_kind::MGMT_RECEIVED, message_of(h), h.source_node,
                  h.payload_length);
    kernel_event_request e;
    e.type = PRAWN_EVENT_TYPE_MGMT;
    e.node = h.source_node;
    e.epoch = h.source_epoch;
    e.length = h.payload_length;
    e.data = item->payload;
    e.keep = item;
    event_out->try_put(e);
}

void depacketizer::drop(const packet& p, counter& why) {
    why++;
    m_events.emit(event_kind::PACKET_DROPPED, message_of(p.head),
                  PRAWN_STATUS_BAD_PACKET, p.head.payload_length);
}

// Only what somebody waits for is answered, never an answer.
void depacketizer::refuse(const packet& p, counter& why, std::uint16_t status) {
    why++;
    m_events.emit(event_kind::PACKET_DROPPED, message_of(p.head), status,
                  p.head.payload_length);
    if (p.head.type != PRAWN_PACKET_TYPE_DATA &&
        p.head.type != PRAWN_PACKET_TYPE_MGMT)
        return;
    refusal r;
    r.node = p.head.source_node;
    r.status = status;
    r.head = p.head;
    refusal_out->try_put(r);
}

}  // namespace prawn
