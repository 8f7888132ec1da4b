// SPDX-License-Identifier: Apache-2.0
#include "nic/ipt.h"

#include "nic/packet_tools.h"

namespace prawn {

ipt::ipt(sc_core::sc_module_name name, const block_env& env) :
    ipt_base(name, env, block_id::IPT),
    m_control("control", *this, *this, cycles(1)),
    m_packet_in(*this),
    m_latency(cycles(LOOKUP_CYCLES) + env.profile->sram_access),
    m_interval(cycles(1)),
    m_entries(PRAWN_IPT_ENTRIES),
    m_messages(env.nodes),
    m_delivered(env.counters->add("ipt.delivered")),
    m_bad_export(env.counters->add("ipt.bad_export")),
    m_bad_key(env.counters->add("ipt.bad_key")),
    m_out_of_range(env.counters->add("ipt.export_range")),
    m_holes(env.counters->add("ipt.holes")),
    m_stalls(env.counters->add("ipt.stalls")) {}

void ipt::end_of_elaboration() {
    SC_HAS_PROCESS(ipt);
    SC_METHOD(look_up);
    dont_initialize();
    sensitive << m_ready << delivery_out->room();
}

void ipt::reset() {
    m_control.reset();
    m_entries.assign(m_entries.size(), entry());
    m_messages.clear();
    m_queue.clear();
    m_last = sc_core::SC_ZERO_TIME;
    m_ready.cancel();
    m_refused = false;
    m_room.notify(sc_core::SC_ZERO_TIME);
}

// -- Control -----------------------------------------------------------------

void ipt::control(const control_request& request) {
    std::uint16_t status = PRAWN_STATUS_OK;
    switch (request.op) {
        case control_op::SET:
            status = set(request);
            break;
        case control_op::CLEAR:
            if (request.index < m_entries.size())
                m_entries[request.index].valid = false;
            else
                status = PRAWN_STATUS_BAD_FIELD;
            break;
        case control_op::CONTEXT_DISABLE:
            disable(request.context);
            break;
        case control_op::DRAIN:
            break;
        default:
            status = PRAWN_STATUS_BAD_OPCODE;
    }
    m_control.answer(request.tag, status);
}

std::uint16_t ipt::set(const control_request& request) {
    constexpr std::uint64_t END = std::uint64_t{1} << PRAWN_VA_BITS;
    if (request.index >= m_entries.size() ||
        (request.e & ~std::uint64_t{PRAWN_IPT_FLAG_NOTIFY}) != 0)
        return PRAWN_STATUS_BAD_FIELD;
    if (request.context >= PRAWN_CONTEXTS)
        return PRAWN_STATUS_BAD_CONTEXT;
    if (request.a > END || request.c > END - request.a)
        return PRAWN_STATUS_BAD_LENGTH;
    entry& e = m_entries[request.index];
    e.va = request.a;
    e.key = request.b;
    e.length = request.c;
    e.cookie = request.d;
    e.notify = (request.e & PRAWN_IPT_FLAG_NOTIFY) != 0;
    e.context = request.context;
    e.life = request.life;
    e.valid = true;
    return PRAWN_STATUS_OK;
}

void ipt::disable(std::uint16_t context) {
    for (entry& e : m_entries)
        if (e.context == context)
            e.valid = false;
}

// -- Packets -----------------------------------------------------------------

bool ipt::receive(packet_ref& item) {
    if (m_queue.size() >= DEPTH) {
        if (!m_refused)
            m_stalls++;
        m_refused = true;
        return false;
    }
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    sc_core::sc_time ready = now + m_latency;
    if (ready < m_last + m_interval)
        ready = m_last + m_interval;
    m_last = ready;
    m_queue.push_back({std::move(item), ready});
    if (m_queue.size() == 1)
        m_ready.notify(ready - now);
    return true;
}

// Woken by time and by room behind; both may come too early.
void ipt::look_up() {
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    while (!m_queue.empty()) {
        if (m_queue.front().ready > now) {
            m_ready.notify(m_queue.front().ready - now);
            break;
        }
        const packet_ref& p = m_queue.front().pkt;
        const std::uint16_t status = verdict(p->head);
        if (status != PRAWN_STATUS_OK)
            refuse(p->head, status);
        else if (!deliver(p))
            break;
        m_queue.pop_front();
        if (m_refused) {
            m_refused = false;
            m_room.notify(sc_core::SC_ZERO_TIME);
        }
    }
}

std::uint16_t ipt::verdict(const header& head) const {
    if (head.export_id >= m_entries.size() || !m_entries[head.export_id].valid)
        return PRAWN_STATUS_BAD_EXPORT;
    const entry& e = m_entries[head.export_id];
    if (head.key != e.key)
        return PRAWN_STATUS_BAD_KEY;
    if (head.offset > e.length || head.payload_length > e.length - head.offset)
        return PRAWN_STATUS_EXPORT_RANGE;
    // Whatever became of the missing packet: nobody may take the message for
    // whole. Its sender is told by a refusal, as of any packet.
    if (!m_messages.whole(head) && !m_messages.failed(head))
        return PRAWN_STATUS_UNKNOWN_OUTCOME;
    return PRAWN_STATUS_OK;
}

bool ipt::deliver(const packet_ref& item) {
    constexpr unsigned WANTED =
        PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY;
    const header& h = item->head;
    const entry& e = m_entries[h.export_id];
    delivery d;
    d.pkt = item;
    d.context = e.context;
    d.life = e.life;
    d.va = e.va + h.offset;
    d.cookie = e.cookie;
    d.notify = m_messages.whole(h) && e.notify && (h.flags & WANTED) == WANTED;
    if (!delivery_out->try_put(d))
        return false;
    m_messages.pass(h);
    m_delivered++;
    m_events.emit(event_kind::IPT_OK, message_of(h), h.export_id, h.offset);
    return true;
}

void ipt::refuse(const header& head, std::uint16_t status) {
    switch (status) {
        case PRAWN_STATUS_BAD_EXPORT:
            m_bad_export++;
            break;
        case PRAWN_STATUS_BAD_KEY:
            m_bad_key++;
            break;
        case PRAWN_STATUS_UNKNOWN_OUTCOME:
            m_holes++;
            break;
        default:
            m_out_of_range++;
    }
    m_messages.fail(head);
    m_events.emit(event_kind::IPT_REFUSED, message_of(head), head.export_id,
                  status);
    refusal r;
    r.node = head.source_node;
    r.status = status;
    r.head = head;
    refusal_out->try_put(r);
}

}  // namespace prawn
