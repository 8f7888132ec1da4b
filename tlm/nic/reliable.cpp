// SPDX-License-Identifier: Apache-2.0
#include "nic/reliable.h"

#include "nic/packet_tools.h"
#include "nic/pools.h"

namespace prawn {

namespace {

// Epochs count 1 to 65535 and start again.
bool earlier(std::uint16_t a, std::uint16_t b) {
    return static_cast<std::int16_t>(a - b) < 0;
}

bool sequenced(std::uint8_t type) {
    return type != PRAWN_PACKET_TYPE_HELLO && type != PRAWN_PACKET_TYPE_BYE &&
           type != PRAWN_PACKET_TYPE_ACK;
}

}  // namespace

reliable::reliable(sc_core::sc_module_name name, const block_env& env) :
    reliable_base(name, env, block_id::RELIABLE),
    m_control("control", *this, *this, cycles(1)),
    m_host_in(*this),
    m_link_in(*this),
    m_peers(env.nodes),
    m_duplicates(env.counters->add("reliable.duplicates")),
    m_gaps(env.counters->add("reliable.gaps")),
    m_lost(env.counters->add("reliable.lost")),
    m_stale_refused(env.counters->add("reliable.stale_refused")),
    m_stale_dropped(env.counters->add("reliable.stale_dropped")),
    m_strangers(env.counters->add("reliable.strangers")),
    m_hellos(env.counters->add("reliable.hellos")),
    m_byes(env.counters->add("reliable.byes")),
    m_acks(env.counters->add("reliable.acks")) {
    start();
}

void reliable::end_of_elaboration() {
    SC_HAS_PROCESS(reliable);
    SC_METHOD(announce);
    dont_initialize();
    sensitive << m_announce << hello_out->room();
}

void reliable::control(const control_request& request) {
    m_control.answer(request.tag, request.op == control_op::DRAIN
                                      ? PRAWN_STATUS_OK
                                      : PRAWN_STATUS_BAD_OPCODE);
}

void reliable::start() {
    for (peer& p : m_peers)
        p = peer();
    if (m_env.node < m_peers.size()) {
        m_peers[m_env.node].epoch = m_epoch;
        m_peers[m_env.node].up = true;
    }
    m_said_hello = false;
    m_hello = m_answer = m_bye = m_report = 0;
}

void reliable::reset() {
    m_control.reset();
    m_epoch++;
    if (m_epoch == 0)
        m_epoch = 1;
    m_announce.cancel();
    start();
    m_events.emit(event_kind::RESET, {}, m_epoch);
}

// -- Outgoing ----------------------------------------------------------------

bool reliable::send(packet_ref& item) {
    header& h = item->head;
    const unsigned to = h.destination_node;
    if (to >= m_peers.size())
        return link_out->try_put(item);
    peer& p = m_peers[to];
    const std::uint8_t type = h.type;
    const auto epoch_before = h.source_epoch;
    const auto sequence_before = h.sequence;
    const auto acknowledge_before = h.acknowledge;
    h.source_epoch = m_epoch;
    h.sequence = sequenced(type) ? p.next : 0;
    h.acknowledge = p.expected - 1;
    if (!link_out->try_put(item)) {
        h.source_epoch = epoch_before;
        h.sequence = sequence_before;
        h.acknowledge = acknowledge_before;
        return false;
    }
    if (type == PRAWN_PACKET_TYPE_HELLO)
        p.next = 1;
    else if (sequenced(type))
        p.next++;
    return true;
}

std::uint32_t reliable::others() const {
    return ((1U << m_peers.size()) - 1) & ~(1U << m_env.node);
}

void reliable::say_hello() {
    m_said_hello = true;
    m_hello = others();
    for (unsigned node = 0; node < m_peers.size(); node++)
        if (m_peers[node].up && (others() >> node & 1))
            m_report |= 1U << node;
    m_announce.notify(sc_core::SC_ZERO_TIME);
}

void reliable::say_bye() {
    m_said_hello = false;
    m_hello = m_answer = m_report = 0;
    m_bye = others();
    m_announce.notify(sc_core::SC_ZERO_TIME);
}

void reliable::announce() {
    if ((m_hello | m_answer | m_bye | m_report) == 0)
        return;
    for (unsigned node = 0; node < m_peers.size(); node++) {
        const std::uint32_t bit = 1U << node;
        if (m_report & bit)
            report(PRAWN_EVENT_TYPE_PEER_UP, node);
        if ((m_bye & bit) && say(node, PRAWN_PACKET_TYPE_BYE, 0))
            m_bye &= ~bit;
        if (m_bye & bit)
            continue;  // it must come before a HELLO
        if ((m_hello & bit) && say(node, PRAWN_PACKET_TYPE_HELLO, 0))
            m_hello &= ~bit;
        if ((m_answer & bit) && say(node, PRAWN_PACKET_TYPE_HELLO, 1))
            m_answer &= ~bit;
    }
    m_report = 0;
}

bool reliable::say(unsigned node, std::uint8_t type, std::uint32_t immediate) {
    packet_ref p = packet_pool().get();
    p->head = header{};
    p->head.version = PRAWN_PACKET_VERSION;
    p->head.type = type;
    p->head.source_node = m_env.node;
    p->head.destination_node = static_cast<std::uint16_t>(node);
    p->head.source_context = message_id::NO_CONTEXT;
    p->head.immediate = immediate;
    return hello_out->try_put(p);
}

// -- Incoming ----------------------------------------------------------------

bool reliable::receive(packet_ref& item) {
    const header& h = item->head;
    if (h.version != PRAWN_PACKET_VERSION || h.source_node >= m_peers.size() ||
        h.destination_node != m_env.node)
        return host_out->try_put(item);
    switch (h.type) {
        case PRAWN_PACKET_TYPE_HELLO:
            receive_hello(h);
            break;
        case PRAWN_PACKET_TYPE_BYE:
            receive_bye(h);
            break;
        case PRAWN_PACKET_TYPE_ACK:
            m_acks++;  // nothing is kept that it could release
            break;
        default:
            return receive_sequenced(item);
    }
    item.reset();
    return true;
}

bool reliable::receive_sequenced(packet_ref& item) {
    const packet_ref held = item;  // the header outlives the hand-over
    const header& h = held->head;
    peer& from = m_peers[h.source_node];
    const bool known = from.up && h.source_epoch == from.epoch;
    if (known && static_cast<std::int32_t>(h.sequence - from.expected) < 0) {
        drop(h, m_duplicates, PRAWN_STATUS_OK);
        item.reset();
        return true;
    }
    if (h.destination_epoch != 0 && h.destination_epoch != m_epoch) {
        refuse_stale(h);
        item.reset();
    } else if (!known) {
        drop(h, m_strangers);
        item.reset();
    } else if (!host_out->try_put(item)) {
        return false;
    }
    if (known)
        advance(from, h);
    else
        suspect(from, h);
    return true;
}

void reliable::advance(peer& from, const header& head) {
    if (head.sequence != from.expected) {
        m_gaps++;
        m_lost += head.sequence - from.expected;
        m_events.emit(event_kind::SEQUENCE_GAP, message_of(head), from.expected,
                      head.sequence);
    }
    from.expected = head.sequence + 1;
}

void reliable::refuse_stale(const header& head) {
    if (head.type != PRAWN_PACKET_TYPE_DATA) {
        drop(head, m_stale_dropped);
        return;
    }
    drop(head, m_stale_refused);
    refusal r;
    r.node = head.source_node;
    r.status = PRAWN_STATUS_STALE_EPOCH;
    r.head = head;
    refusal_out->try_put(r);
}

// A later life than the known one has been seen without its HELLO.
void reliable::suspect(peer& from, const header& head) {
    if (!from.up || head.source_node == m_env.node ||
        !earlier(from.epoch, head.source_epoch))
        return;
    went_down(head.source_node);
}

void reliable::receive_hello(const header& head) {
    m_hellos++;
    peer& from = m_peers[head.source_node];
    if (head.source_epoch == 0 || head.source_node == m_env.node ||
        (from.epoch != 0 && earlier(head.source_epoch, from.epoch))) {
        drop(head, m_strangers);
        return;
    }
    const bool new_life = !from.up || from.epoch != head.source_epoch;
    from.epoch = head.source_epoch;
    from.up = true;
    from.expected = 1;
    if (new_life)
        report(PRAWN_EVENT_TYPE_PEER_UP, head.source_node);
    if (head.immediate == 0 && m_said_hello) {
        m_answer |= 1U << head.source_node;
        m_announce.notify(sc_core::SC_ZERO_TIME);
    }
}

void reliable::receive_bye(const header& head) {
    m_byes++;
    peer& from = m_peers[head.source_node];
    if (head.source_epoch == 0 || head.source_node == m_env.node ||
        (from.epoch != 0 && earlier(head.source_epoch, from.epoch))) {
        drop(head, m_strangers);
        return;
    }
    if (from.up)
        went_down(head.source_node);
    from.epoch = head.source_epoch;
}

void reliable::went_down(unsigned node) {
    m_peers[node].up = false;
    m_report &= ~(1U << node);
    report(PRAWN_EVENT_TYPE_PEER_DOWN, node);
}

void reliable::report(std::uint8_t type, unsigned node) {
    const std::uint16_t life = m_peers[node].epoch;
    m_events.emit(event_kind::PEER_STATE, {}, node,
                  type == PRAWN_EVENT_TYPE_PEER_UP ? life : 0);
    peer_event e{type, static_cast<std::uint16_t>(node), life};
    peer_out->try_put(e);
}

void reliable::drop(const header& head, counter& why, std::uint16_t status) {
    why++;
    m_events.emit(event_kind::PACKET_DROPPED, message_of(head), status,
                  head.payload_length);
}

}  // namespace prawn
