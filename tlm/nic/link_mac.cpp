// SPDX-License-Identifier: Apache-2.0
#include "nic/link_mac.h"

namespace prawn {

namespace {

// Header, payload and CRC as they are on the wire. Pad bytes are not captured.
void capture(const event_source& events, link_direction direction,
             const packet& p) {
    const byte_span parts[] = {{&p.head, sizeof(p.head)},
                               {p.payload, p.head.payload_length},
                               {&p.crc, sizeof(p.crc)}};
    events.capture(direction, parts, std::size(parts));
}

}  // namespace

link_mac::link_mac(sc_core::sc_module_name name, const block_env& env) :
    link_mac_base(name, env, block_id::LINK_MAC),
    m_control("control", *this, *this, cycles(1)),
    m_packet_in(*this),
    m_link_in(*this),
    m_credit_in(*this),
    m_rate(*env.profile),
    m_credits(env.nodes, env.profile->link.credits),
    m_rx(64),
    m_tx_packets(env.counters->add("link_mac.tx_packets")),
    m_tx_bytes(env.counters->add("link_mac.tx_bytes")),
    m_tx_dropped(env.counters->add("link_mac.tx_dropped")),
    m_credit_waits(env.counters->add("link_mac.credit_waits")),
    m_rx_packets(env.counters->add("link_mac.rx_packets")),
    m_rx_bytes(env.counters->add("link_mac.rx_bytes")),
    m_rx_bad_crc(env.counters->add("link_mac.rx_bad_crc")),
    m_rx_bad_frame(env.counters->add("link_mac.rx_bad_frame")),
    m_rx_high_water(env.counters->add("link_mac.rx_high_water")) {
    SC_HAS_PROCESS(link_mac);
    SC_METHOD(sent);
    dont_initialize();
    sensitive << m_tx_done;
}

void link_mac::end_of_elaboration() {
    SC_HAS_PROCESS(link_mac);
    SC_METHOD(hand_over);
    dont_initialize();
    sensitive << link_out->room();
    SC_METHOD(drain);
    dont_initialize();
    sensitive << packet_out->room();
}

void link_mac::control(const control_request& request) {
    m_control.answer(request.tag, request.op == control_op::DRAIN
                                      ? PRAWN_STATUS_OK
                                      : PRAWN_STATUS_BAD_OPCODE);
}

void link_mac::reset() {
    m_control.reset();
    if (m_tx) {
        m_credits[m_tx->head.destination_node]++;
        m_tx.reset();
        m_tx_stuck = false;
        m_tx_done.cancel();
        m_tx_tag++;
    }
    const auto waiting = static_cast<unsigned>(m_rx.size());
    m_rx.clear();
    m_rx_tag += waiting;
    if (waiting != 0)
        return_credits(waiting);
    m_starved = 0;
    m_busy_refused = false;
    m_room.notify(sc_core::SC_ZERO_TIME);
}

bool link_mac::send(packet_ref& item) {
    packet& p = *item;
    const unsigned to = p.head.destination_node;
    if (to >= m_credits.size() || p.head.payload_length > PRAWN_MAX_PAYLOAD) {
        m_tx_dropped++;
        m_events.emit(event_kind::PACKET_DROPPED, message_of(p.head),
                      PRAWN_STATUS_BAD_PACKET, p.head.payload_length);
        item.reset();
        return true;
    }
    if (m_tx) {
        m_busy_refused = true;
        return false;
    }
    if (m_credits[to] == 0) {
        if (!(m_starved >> to & 1)) {
            m_starved |= 1U << to;
            m_credit_waits++;
            m_events.emit(event_kind::CREDIT_WAIT_BEGIN, {}, to, to);
        }
        return false;
    }
    m_credits[to]--;
    p.crc = packet_crc(p);
    m_events.emit(event_kind::TX_BEGIN, message_of(p.head), m_tx_tag,
                  p.wire_size());
    m_tx = std::move(item);
    const sc_core::sc_time length = m_rate.time(*m_tx);
    m_tx_end = sc_core::sc_time_stamp() + length;
    m_tx_done.notify(length);
    return true;
}

void link_mac::sent() {
    // A reset in this very instant comes too late to cancel the event.
    if (!m_tx || m_tx_stuck || sc_core::sc_time_stamp() < m_tx_end)
        return;
    const packet& p = *m_tx;
    m_tx_packets++;
    m_tx_bytes += p.wire_size();
    m_events.emit(event_kind::TX_END, message_of(p.head), m_tx_tag++,
                  p.wire_size());
    if (m_events.capturing())
        capture(m_events, link_direction::TX, p);
    m_tx_stuck = true;
    hand_over();
}

void link_mac::hand_over() {
    if (!m_tx_stuck || !link_out->try_put(m_tx))
        return;
    m_tx_stuck = false;
    m_tx.reset();
    if (m_busy_refused) {
        m_busy_refused = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
}

void link_mac::take_credit(unsigned& node) {
    if (node >= m_credits.size())
        return;
    m_credits[node]++;
    if (m_starved >> node & 1) {
        m_starved &= ~(1U << node);
        m_events.emit(event_kind::CREDIT_WAIT_END, {}, node, node);
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
}

bool link_mac::intact(const packet& p) {
    if (p.head.payload_length > PRAWN_MAX_PAYLOAD) {
        m_rx_bad_frame++;
        return false;
    }
    if (m_events.capturing())
        capture(m_events, link_direction::RX, p);
    if (p.crc != packet_crc(p)) {
        m_rx_bad_crc++;
        return false;
    }
    return true;
}

void link_mac::receive(packet_ref& item) {
    const packet& p = *item;
    m_rx_packets++;
    m_rx_bytes += p.wire_size();
    m_events.emit(event_kind::RX_BEGIN, message_of(p.head),
                  m_rx_tag + m_rx.size(), p.wire_size());
    if (!intact(p)) {
        m_events.emit(event_kind::PACKET_DROPPED, message_of(p.head),
                      PRAWN_STATUS_BAD_PACKET, p.wire_size());
        item.reset();
    }
    m_rx.push_back(std::move(item));
    m_rx_high_water.at_least(m_rx.size());
    if (m_rx.size() == 1)
        drain();
}

void link_mac::drain() {
    while (!m_rx.empty()) {
        packet_ref& p = m_rx.front();
        message_id message;
        std::uint64_t bytes = 0;
        if (p && m_events.enabled()) {
            message = message_of(p->head);
            bytes = p->wire_size();
        }
        if (p && !packet_out->try_put(p))
            return;
        m_events.emit(event_kind::RX_END, message, m_rx_tag, bytes);
        m_rx_tag++;
        m_rx.pop_front();
        return_credits(1);
    }
}

void link_mac::return_credits(unsigned count) {
    credit_out->try_put(count);
}

}  // namespace prawn
