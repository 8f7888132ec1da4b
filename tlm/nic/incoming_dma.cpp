// SPDX-License-Identifier: Apache-2.0
#include "nic/incoming_dma.h"

#include <stdexcept>
#include <string>

#include "nic/packet_tools.h"

namespace prawn {

namespace {

// Tags: generation, place in the window, piece.
constexpr unsigned PIECE_BITS = 1;
constexpr unsigned PLACE_BITS = 8;
constexpr std::uint32_t PLACE_MASK = (1U << PLACE_BITS) - 1;
static_assert(incoming_dma::MAX_WINDOW == 1U << PLACE_BITS, "places");

unsigned checked_window(unsigned window) {
    if (window < 1 || window > incoming_dma::MAX_WINDOW)
        throw std::invalid_argument(
            "blocks.incoming_dma.window = " + std::to_string(window) +
            ": choose 1 to " + std::to_string(incoming_dma::MAX_WINDOW));
    return window;
}

}  // namespace

incoming_dma::incoming_dma(sc_core::sc_module_name name, const block_env& env,
                           const incoming_dma_config& config) :
    incoming_dma_base(name, env, block_id::INCOMING_DMA),
    m_control("control", *this, *this, cycles(1)),
    m_delivery_in(*this),
    m_utlb_reply_in(*this),
    m_dma_reply_in(*this),
    m_window(checked_window(config.window)),
    m_received(env.nodes),
    m_packets(env.counters->add("incoming_dma.packets")),
    m_split(env.counters->add("incoming_dma.split")),
    m_faults(env.counters->add("incoming_dma.faults")),
    m_cancelled(env.counters->add("incoming_dma.cancelled")),
    m_notifications(env.counters->add("incoming_dma.notifications")),
    m_stalls(env.counters->add("incoming_dma.stalls")),
    m_bytes(env.counters->add_per_context("incoming_dma.bytes")),
    m_messages(env.counters->add_per_context("incoming_dma.messages")) {}

void incoming_dma::end_of_elaboration() {
    SC_HAS_PROCESS(incoming_dma);
    SC_METHOD(work);
    dont_initialize();
    sensitive << utlb_out->room() << dma_out->room();
}

void incoming_dma::reset() {
    m_control.reset();
    for (; m_head != m_tail; m_head++)
        at(m_head) = operation();
    m_write = m_ask = m_tail;
    m_generation++;
    m_received.clear();
    m_drains.clear();
    m_disables.clear();
    m_lives.fill(0);
    m_refused = false;
    m_room.notify(sc_core::SC_ZERO_TIME);
}

// -- Into the window ---------------------------------------------------------

bool incoming_dma::receive(delivery& item) {
    if (m_tail - m_head == m_window.size()) {
        if (!m_refused)
            m_stalls++;
        m_refused = true;
        return false;
    }
    operation& op = at(m_tail);
    const std::uint32_t length = item.pkt->head.payload_length;
    const auto in_page =
        static_cast<std::uint32_t>(item.va & (PRAWN_PAGE_SIZE - 1));
    op = operation();
    op.what = std::move(item);
    op.length[0] = length;
    if (in_page + length > PRAWN_PAGE_SIZE) {
        op.length[0] = PRAWN_PAGE_SIZE - in_page;
        op.length[1] = length - op.length[0];
        m_split++;
    }
    op.pieces = length == 0 ? 0 : op.length[1] == 0 ? 1 : 2;
    if (ended(op.what))
        cancel(op);
    m_tail++;
    if (m_ask + 1 == m_tail)
        work();
    return true;
}

std::uint32_t incoming_dma::tag_of(std::uint64_t number, unsigned piece) const {
    const auto place = static_cast<std::uint32_t>(number % m_window.size());
    return m_generation << (PLACE_BITS + PIECE_BITS) | place << PIECE_BITS |
           piece;
}

incoming_dma::operation* incoming_dma::find(std::uint32_t tag) {
    const std::uint32_t place = tag >> PIECE_BITS & PLACE_MASK;
    if (place >= m_window.size() || (tag ^ tag_of(place, tag & 1)) != 0)
        return nullptr;
    return &m_window[place];
}

// Also woken by room at utlb or dma_engine; may find nothing to do.
void incoming_dma::work() {
    ask();
    write();
}

// -- Translation -------------------------------------------------------------

void incoming_dma::ask() {
    for (; m_ask != m_tail; m_ask++) {
        operation& op = at(m_ask);
        while (op.asked < op.pieces) {
            utlb_request request;
            request.tag = tag_of(m_ask, op.asked);
            request.context = op.what.context;
            request.write = true;
            request.va = op.what.va + (op.asked == 0 ? 0 : op.length[0]);
            request.message = message_of(op.what.pkt->head);
            if (!utlb_out->try_put(request))
                return;
            op.asked++;
        }
    }
}

void incoming_dma::take_translation(utlb_reply& reply) {
    operation* op = find(reply.tag);
    if (!op)
        return;
    const unsigned piece = reply.tag & 1;
    op->translated++;
    if (reply.status == PRAWN_STATUS_OK)
        op->address[piece] =
            piece == 0 ? reply.address | (op->what.va & (PRAWN_PAGE_SIZE - 1))
                       : reply.address;
    else if (op->status == PRAWN_STATUS_OK)
        op->status = PRAWN_STATUS_RECEIVE_FAULT;
    write();
}

// -- Memory ------------------------------------------------------------------

void incoming_dma::write() {
    for (; m_write != m_ask; m_write++) {
        operation& op = at(m_write);
        if (op.translated < op.pieces)
            break;
        if (op.status == PRAWN_STATUS_OK && !write_pieces(op, m_write))
            break;
    }
    retire();
}

bool incoming_dma::write_pieces(operation& op, std::uint64_t number) {
    packet& p = *op.what.pkt;
    while (op.begun < op.pieces) {
        dma_request request;
        request.tag = tag_of(number, op.begun);
        request.write = true;
        request.context = op.what.context;
        request.address = op.address[op.begun];
        request.length = op.length[op.begun];
        request.data = p.payload + (op.begun == 0 ? 0 : op.length[0]);
        request.keep = op.what.pkt;
        request.message = message_of(p.head);
        if (!dma_out->try_put(request))
            return false;
        if (op.begun++ == 0)
            m_events.emit(event_kind::INCOMING_DMA_BEGIN, message_of(p.head),
                          number, p.head.payload_length);
    }
    return true;
}

void incoming_dma::take_done(dma_reply& reply) {
    operation* op = find(reply.tag);
    if (!op)
        return;
    op->done++;
    if (reply.status != PRAWN_STATUS_OK && op->status == PRAWN_STATUS_OK)
        op->status = PRAWN_STATUS_RECEIVE_FAULT;
    retire();
}

// -- Out of the window -------------------------------------------------------

void incoming_dma::retire() {
    while (m_head != m_write) {
        operation& op = at(m_head);
        if (op.done < op.begun)
            break;
        const header& h = op.what.pkt->head;
        if (op.begun != 0)
            m_events.emit(event_kind::INCOMING_DMA_END, message_of(h), m_head,
                          op.status);
        if (op.status == PRAWN_STATUS_OK)
            deliver(op);
        else
            refuse(op);
        op.what.pkt.reset();
        m_head++;
        if (m_refused) {
            m_refused = false;
            m_room.notify(sc_core::SC_ZERO_TIME);
        }
    }
    finish_waiting();
}

void incoming_dma::deliver(const operation& op) {
    const header& h = op.what.pkt->head;
    m_packets++;
    m_bytes[op.what.context] += h.payload_length;
    const bool good = m_received.whole(h);
    m_received.pass(h);
    if (!(h.flags & PRAWN_PACKET_FLAG_LAST) || !good)
        return;
    const std::uint32_t length = h.message_offset + h.payload_length;
    m_messages[op.what.context]++;
    m_events.emit(event_kind::MESSAGE_DELIVERED, message_of(h), h.export_id,
                  length);
    if (!op.what.notify)
        return;
    m_notifications++;
    notification_request n;
    n.context = op.what.context;
    n.life = op.what.life;
    n.entry.cookie = op.what.cookie;
    n.entry.delivered = now_ps();
    n.entry.offset = h.offset - h.message_offset;
    n.entry.length = length;
    n.entry.immediate = h.immediate;
    n.entry.id = h.export_id;
    n.entry.message = h.message;
    n.entry.source_node = h.source_node;
    n.entry.source_context = h.source_context;
    n.entry.type = PRAWN_NOTIFICATION_TYPE_MESSAGE;
    notify_out->try_put(n);
}

void incoming_dma::refuse(const operation& op) {
    const header& h = op.what.pkt->head;
    m_received.fail(h);
    if (op.status == PRAWN_STATUS_RECEIVE_FAULT)
        m_faults++;
    m_events.emit(event_kind::PACKET_DROPPED, message_of(h), op.status,
                  h.payload_length);
    refusal r;
    r.node = h.source_node;
    r.status = op.status;
    r.head = h;
    refusal_out->try_put(r);
}

// -- Control -----------------------------------------------------------------

void incoming_dma::control(const control_request& request) {
    switch (request.op) {
        case control_op::CONTEXT_DISABLE:
            begin_disable(request);
            break;
        case control_op::DRAIN:
            m_drains.push_back({request.tag, m_tail});
            finish_waiting();
            break;
        default:
            m_control.answer(request.tag, PRAWN_STATUS_BAD_OPCODE);
    }
}

// It was on its way here when its context was disabled.
bool incoming_dma::ended(const delivery& item) const {
    return item.context < m_lives.size() &&
           earlier_life(item.life, m_lives[item.context]);
}

void incoming_dma::cancel(operation& op) {
    m_cancelled++;
    op.status = PRAWN_STATUS_BAD_EXPORT;
    op.pieces = op.asked;
    op.what.notify = false;
}

// What has not begun is cancelled where it stands; it leaves the window in its
// turn, when the translations it has asked for have been answered.
void incoming_dma::begin_disable(const control_request& request) {
    for (std::uint64_t n = m_head; n != m_tail; n++) {
        operation& op = at(n);
        if (op.what.context != request.context)
            continue;
        if (n < m_write)
            op.what.notify = false;
        else
            cancel(op);
    }
    if (request.context < m_lives.size())
        m_lives[request.context] = request.life + 1;
    m_disables.push_back({request.tag, request.context});
    write();
}

bool incoming_dma::in_flight(std::uint16_t context) const {
    for (std::uint64_t n = m_head; n != m_tail; n++) {
        const operation& op = m_window[n % m_window.size()];
        if (op.what.context == context && op.done < op.begun)
            return true;
    }
    return false;
}

void incoming_dma::finish_waiting() {
    while (!m_drains.empty() && m_drains.front().upto <= m_head)
        m_control.answer(m_drains.pop_front().tag, PRAWN_STATUS_OK);
    for (std::size_t waiting = m_disables.size(); waiting != 0; waiting--) {
        const disable d = m_disables.pop_front();
        if (in_flight(d.context))
            m_disables.push_back(d);
        else
            m_control.answer(d.tag, PRAWN_STATUS_OK);
    }
}

}  // namespace prawn
