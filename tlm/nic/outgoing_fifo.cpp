// SPDX-License-Identifier: Apache-2.0
#include "nic/outgoing_fifo.h"

#include <algorithm>
#include <utility>

#include "nic/pools.h"

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = ~std::uint64_t{0};

bool card_level(const packet& pkt) {
    return pkt.head.type == PRAWN_PACKET_TYPE_HELLO ||
           pkt.head.type == PRAWN_PACKET_TYPE_BYE;
}

}  // namespace

void outgoing_fifo::queue::push(packet_ref&& pkt, std::uint64_t due) {
    queued& q = items[(first + count++) % items.size()];
    q.due = due;
    q.pkt = std::move(pkt);
}

packet_ref outgoing_fifo::queue::pop() {
    packet_ref pkt = std::move(items[first].pkt);
    first = (first + 1) % static_cast<unsigned>(items.size());
    count--;
    return pkt;
}

outgoing_fifo::outgoing_fifo(sc_core::sc_module_name name, const block_env& env,
                             const params& p) :
    outgoing_fifo_base(name, env, block_id::OUTGOING_FIFO),
    m_peers(std::min<std::size_t>(env.nodes, PRAWN_MAX_NODES)),
    m_cycle(env.profile->card_clock.value()),
    m_packet_in("packet_in", *this),
    m_mgmt_in("mgmt_in", *this),
    m_refusal_in("refusal_in", *this),
    m_control("control_in", CONTROL_WINDOW),
    m_wake("wake"),
    m_packets(env.counters->add("outgoing_fifo.packets")),
    m_bytes(env.counters->add("outgoing_fifo.bytes")),
    m_high_water(env.counters->add("outgoing_fifo.high_water")),
    m_full(env.counters->add("outgoing_fifo.full")),
    m_stalls(env.counters->add("outgoing_fifo.stalls")),
    m_nacks(env.counters->add("outgoing_fifo.nacks")),
    m_nacks_merged(env.counters->add("outgoing_fifo.nacks_merged")),
    m_nacks_dropped(env.counters->add("outgoing_fifo.nacks_dropped")),
    m_dropped(env.counters->add("outgoing_fifo.dropped")),
    m_bad_destination(env.counters->add("outgoing_fifo.bad_destination")) {
    for (peer& one : m_peers) {
        one.data.items.resize(std::max(1u, p.depth));
        one.mgmt.items.resize(MGMT_RESERVE);
        one.refusals.reserve(REFUSALS);
    }
}

void outgoing_fifo::end_of_elaboration() {
    SC_HAS_PROCESS(outgoing_fifo);
    SC_METHOD(step);
    dont_initialize();
    sensitive << m_wake << m_control.arrived() << packet_out->room();
}

void outgoing_fifo::reset() {
    for (peer& p : m_peers) {
        while (p.data.count != 0)
            p.data.pop();
        while (p.mgmt.count != 0)
            p.mgmt.pop();
        p.refusals.clear();
        p.nack.reset();
        p.refusal_next = false;
    }
    m_waiting = {};
    m_refused = {};
    m_turn = {};
    m_level = 0;
    m_threshold = 0;
    m_above = false;
    m_next = 0;
    m_wake.cancel();
    m_wake_at = NEVER;
    m_control.clear();
    m_packet_in.has_room();
    m_mgmt_in.has_room();
}

void outgoing_fifo::wake_at(std::uint64_t time) {
    if (time >= m_wake_at)
        return;
    m_wake_at = time;
    const std::uint64_t now = now_ps();
    m_wake.notify(time > now ? sc_core::sc_time::from_value(time - now)
                             : sc_core::SC_ZERO_TIME);
}

// Input

void outgoing_fifo::entered(const packet& pkt) {
    m_level += pkt.wire_size();
    m_high_water.at_least(m_level);
    check_threshold();
    m_events.emit(
        event_kind::FIFO_IN,
        {pkt.head.source_node, pkt.head.source_context, pkt.head.message},
        m_level, pkt.wire_size());
}

bool outgoing_fifo::take_packet(packet_ref& pkt) {
    return take(pkt, DATA, &peer::data);
}

bool outgoing_fifo::take_mgmt(packet_ref& pkt) {
    return take(pkt, URGENT, &peer::mgmt);
}

bool outgoing_fifo::take(packet_ref& pkt, class_t which, queue peer::*into) {
    const std::uint16_t node = pkt->head.destination_node;
    if (node >= m_peers.size()) {
        m_bad_destination++;
        pkt.reset();
        return true;
    }
    queue& q = m_peers[node].*into;
    if (q.full()) {
        m_full++;
        return false;
    }
    entered(*pkt);
    const std::uint64_t due = now_ps() + m_cycle * FIFO_CYCLES;
    q.push(std::move(pkt), due);
    m_waiting[which] |= 1u << node;
    wake_at(std::max(due, m_next));
    return true;
}

bool outgoing_fifo::take_refusal(refusal& r) {
    const bool data = r.head.type == PRAWN_PACKET_TYPE_DATA;
    if (!data && r.head.type != PRAWN_PACKET_TYPE_MGMT)
        return true;
    if (r.node >= m_peers.size()) {
        m_bad_destination++;
        return true;
    }
    peer& p = m_peers[r.node];
    const std::uint32_t import_id = data ? r.head.import_id : NO_IMPORT;
    for (const waiting_refusal& w : p.refusals) {
        if (w.import_id == import_id) {
            m_nacks_merged++;
            return true;
        }
    }
    if (p.refusals.size() == REFUSALS) {
        m_nacks_dropped++;
        return true;
    }
    const std::uint64_t due = now_ps() + m_cycle * FIFO_CYCLES;
    p.refusals.push_back({due, import_id, r});
    m_waiting[URGENT] |= 1u << r.node;
    wake_at(std::max(due, m_next));
    return true;
}

// Output

// Tells the kernel once each time the level rises above the threshold.
void outgoing_fifo::check_threshold() {
    const bool above = m_threshold != 0 && m_level > m_threshold;
    if (above && !m_above && event_out.size()) {
        kernel_event_request e;
        e.type = PRAWN_EVENT_TYPE_FIFO_THRESHOLD;
        e.context = KERNEL_CONTEXT;
        e.value = m_level;
        event_out->try_put(e);
    }
    m_above = above;
}

void outgoing_fifo::set_threshold(std::uint32_t bytes) {
    m_threshold = bytes;
    check_threshold();
}

void outgoing_fifo::left(const packet& pkt) {
    m_level -= pkt.wire_size();
    check_threshold();
    m_events.emit(
        event_kind::FIFO_OUT,
        {pkt.head.source_node, pkt.head.source_context, pkt.head.message},
        m_level, pkt.wire_size());
}

void outgoing_fifo::update(std::uint16_t node) {
    const peer& p = m_peers[node];
    const peer_mask bit = 1u << node;
    if (p.data.count == 0)
        m_waiting[DATA] &= ~bit;
    if (p.mgmt.count == 0 && p.refusals.empty())
        m_waiting[URGENT] &= ~bit;
}

bool outgoing_fifo::refusal_first(const peer& p) const {
    return !p.refusals.empty() && (p.refusal_next || p.mgmt.count == 0);
}

std::uint64_t outgoing_fifo::front_due(peer& p, class_t c) const {
    if (c == DATA)
        return p.data.front().due;
    return refusal_first(p) ? p.refusals.front().due : p.mgmt.front().due;
}

void outgoing_fifo::step() {
    m_wake_at = NEVER;
    while (!m_control.empty())
        control(m_control.pop());
    if (packet_out->room().triggered())
        m_refused = {};

    const std::uint64_t now = now_ps();
    if (now >= m_next) {
        m_earliest = NEVER;
        if (!send_one(now)) {
            if (m_earliest != NEVER)
                wake_at(m_earliest);
            return;
        }
    }
    if ((m_waiting[URGENT] & ~m_refused[URGENT]) != 0 ||
        (m_waiting[DATA] & ~m_refused[DATA]) != 0)
        wake_at(m_next);
}

bool outgoing_fifo::send_one(std::uint64_t now) {
    for (const class_t c : {URGENT, DATA}) {
        const auto n = static_cast<std::uint16_t>(m_peers.size());
        if ((m_waiting[c] & ~m_refused[c]) == 0)
            continue;
        std::uint16_t node = m_turn[c];
        for (unsigned i = 0; i < n; i++, node++) {
            if (node >= n)
                node = 0;
            const peer_mask bit = 1u << node;
            if ((m_waiting[c] & ~m_refused[c] & bit) == 0)
                continue;
            const std::uint64_t due = front_due(m_peers[node], c);
            if (due > now) {
                m_earliest = std::min(m_earliest, due);
                continue;
            }
            if (send(node, c)) {
                m_turn[c] = static_cast<std::uint16_t>(node + 1);
                update(node);
                return true;
            }
            m_stalls++;
            m_refused[c] |= bit;
        }
    }
    return false;
}

bool outgoing_fifo::send(std::uint16_t node, class_t c) {
    peer& p = m_peers[node];
    if (c == DATA) {
        if (!send_queued(p.data))
            return false;
        m_packet_in.has_room();
        return true;
    }
    const bool is_refusal = refusal_first(p);
    if (!(is_refusal ? send_refusal(p) : send_queued(p.mgmt)))
        return false;
    p.refusal_next = !is_refusal;
    if (!is_refusal)
        m_mgmt_in.has_room();
    return true;
}

bool outgoing_fifo::send_queued(queue& q) {
    packet_ref kept = q.front().pkt;  // what is put is moved from
    if (!packet_out->try_put(q.front().pkt))
        return false;
    q.pop();
    left(*kept);
    m_packets++;
    m_bytes += kept->wire_size();
    m_next = now_ps() +
             m_cycle * ((kept->wire_size() + DATA_WIDTH - 1) / DATA_WIDTH);
    return true;
}

bool outgoing_fifo::send_refusal(peer& p) {
    const waiting_refusal& w = p.refusals.front();
    if (!p.nack)
        p.nack = make_nack(w.what);
    const std::uint32_t size = p.nack->wire_size();
    if (!packet_out->try_put(p.nack))
        return false;
    p.nack.reset();
    m_nacks++;
    m_packets++;
    m_bytes += size;
    m_next = now_ps() + m_cycle * ((size + DATA_WIDTH - 1) / DATA_WIDTH);
    m_events.emit(event_kind::NACK_SENT,
                  {w.what.head.source_node, w.what.head.source_context,
                   w.what.head.message},
                  w.what.status, w.what.node);
    p.refusals.erase(p.refusals.begin());
    return true;
}

packet_ref outgoing_fifo::make_nack(const refusal& r) const {
    packet_ref pkt = packet_pool().get();
    header& h = pkt->head;
    h = header{};
    h.version = PRAWN_PACKET_VERSION;
    h.type = PRAWN_PACKET_TYPE_NACK;
    h.source_node = m_env.node;
    h.destination_node = r.node;
    h.destination_epoch = r.head.source_epoch;
    h.source_context = r.head.source_context;
    h.message = r.head.message;
    h.message_offset = r.head.message_offset;
    h.offset = r.head.offset;
    h.export_id = r.head.export_id;
    h.import_id =
        r.head.type == PRAWN_PACKET_TYPE_DATA ? r.head.import_id : NO_IMPORT;
    h.status = r.status;
    return pkt;
}

// Control

std::uint16_t outgoing_fifo::peer_error(std::uint32_t node) {
    if (node >= m_peers.size())
        return PRAWN_STATUS_BAD_FIELD;
    peer& p = m_peers[node];
    while (p.data.count != 0) {
        left(*p.data.front().pkt);
        p.data.pop();
        m_dropped++;
    }
    for (unsigned i = p.mgmt.count; i != 0; i--) {
        const std::uint64_t due = p.mgmt.front().due;
        packet_ref pkt = p.mgmt.pop();
        if (card_level(*pkt)) {
            p.mgmt.push(std::move(pkt), due);
            continue;
        }
        left(*pkt);
        m_dropped++;
    }
    m_dropped += p.refusals.size();
    p.refusals.clear();
    p.nack.reset();
    update(static_cast<std::uint16_t>(node));
    m_packet_in.has_room();
    m_mgmt_in.has_room();
    return PRAWN_STATUS_OK;
}

void outgoing_fifo::control(const control_request& r) {
    switch (r.op) {
        case control_op::PEER_ERROR:
            reply(r.tag, peer_error(r.index));
            break;
        case control_op::DRAIN:  // begins no host DMA
            reply(r.tag, PRAWN_STATUS_OK);
            break;
        default:
            reply(r.tag, PRAWN_STATUS_BAD_OPCODE);
    }
}

}  // namespace prawn
