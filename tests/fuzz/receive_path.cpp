// SPDX-License-Identifier: Apache-2.0
#include "receive_path.h"

#include <algorithm>

namespace prawn {
namespace fuzz {

namespace {

timing_profile make_profile() {
    timing_profile p;
    p.name = "fuzz";
    p.card_clock = sc_core::sc_time(4, sc_core::SC_NS);
    p.sram_access = sc_core::sc_time(2, sc_core::SC_NS);
    p.link.latency = sc_core::sc_time(100, sc_core::SC_NS);
    return p;
}

constexpr std::uint64_t BUS = std::uint64_t{1} << 40;  // of address 0

}  // namespace

receive_path::receive_path(sc_core::sc_module_name name) :
    sc_core::sc_module(name),
    m_profile(make_profile()),
    m_env{SELF, NODES, &m_profile, &counters, nullptr},
    m_link_mac("link_mac", m_env),
    m_reliable("reliable", m_env),
    m_depacketizer("depacketizer", m_env),
    m_ipt("ipt", m_env),
    m_incoming_dma("incoming_dma", m_env),
    m_exports(PRAWN_IPT_ENTRIES) {
    m_link_mac.link_out.bind(m_link);
    m_link_mac.packet_out.bind(m_reliable.link_in());
    m_link_mac.credit_out.bind(m_credit);
    m_reliable.link_out.bind(m_link_mac.packet_in());
    m_reliable.host_out.bind(m_depacketizer.packet_in());
    m_reliable.refusal_out.bind(m_refusal);
    m_reliable.peer_out.bind(m_peer);
    m_reliable.hello_out.bind(m_hello);
    m_depacketizer.data_out.bind(m_ipt.packet_in());
    m_depacketizer.event_out.bind(m_event);
    m_depacketizer.refusal_out.bind(m_refusal);
    m_depacketizer.nack_out.bind(m_nack);
    m_ipt.delivery_out.bind(m_incoming_dma.delivery_in());
    m_ipt.refusal_out.bind(m_refusal);
    m_incoming_dma.utlb_out.bind(m_utlb);
    m_incoming_dma.dma_out.bind(m_dma);
    m_incoming_dma.notify_out.bind(m_notify);
    m_incoming_dma.refusal_out.bind(m_refusal);
    for (block* b : std::initializer_list<block*>{&m_link_mac, &m_reliable,
                                                  &m_depacketizer, &m_ipt,
                                                  &m_incoming_dma})
        b->control_out.bind(m_reply);
    SC_HAS_PROCESS(receive_path);
    SC_METHOD(answer);
    dont_initialize();
    sensitive << m_answer;
}

// -- Stimulus ----------------------------------------------------------------

void receive_path::frame(packet_ref p) {
    seen.frames++;
    m_owed++;
    m_link_mac.link_in().try_put(p);
}

void receive_path::reset() {
    for (block* b : std::initializer_list<block*>{&m_link_mac, &m_reliable,
                                                  &m_depacketizer, &m_ipt,
                                                  &m_incoming_dma})
        b->reset();
    FUZZ_CHECK(m_owed == 0);
    m_exports.assign(m_exports.size(), export_range());
    m_lives.fill(0);
    m_withdrawn.clear();
}

void receive_path::control(block& target, control_op op, std::uint16_t context,
                           std::uint32_t index, std::uint32_t tag) {
    control_request r;
    r.tag = tag;
    r.op = op;
    r.context = context;
    r.index = index;
    if (context < m_lives.size())
        r.life = m_lives[context];
    target.control_in().try_put(r);
}

void receive_path::set_export(std::uint32_t index, const export_range& range,
                              std::uint64_t key) {
    control_request r;
    r.op = control_op::SET;
    r.context = range.context;
    r.index = index;
    r.a = range.va;
    r.b = key;
    r.c = range.length;
    r.e = PRAWN_IPT_FLAG_NOTIFY;
    if (r.context < m_lives.size())
        r.life = m_lives[r.context];
    clear_export(index);
    m_ipt.control_in().try_put(r);
    if (index >= m_exports.size() || range.context >= PRAWN_CONTEXTS ||
        range.va > std::uint64_t{1} << PRAWN_VA_BITS ||
        range.length > (std::uint64_t{1} << PRAWN_VA_BITS) - range.va)
        return;  // refused
    m_exports[index] = range;
    m_exports[index].valid = true;
}

void receive_path::clear_export(std::uint32_t index) {
    control(m_ipt, control_op::CLEAR, 0, index);
    if (index >= m_exports.size() || !m_exports[index].valid)
        return;
    withdrawn_range range;
    static_cast<export_range&>(range) = m_exports[index];
    range.drain = ++m_drain;
    m_withdrawn.push_back(range);
    m_exports[index].valid = false;
    control(m_incoming_dma, control_op::DRAIN, 0, 0, m_drain);
}

void receive_path::disable(std::uint16_t context) {
    control(m_ipt, control_op::CONTEXT_DISABLE, context, 0);
    control(m_incoming_dma, control_op::CONTEXT_DISABLE, context, 0);
    if (context < m_lives.size())
        m_lives[context]++;
    // Nothing may be asked for it any more, withdrawn before or not.
    for (export_range& e : m_exports)
        if (e.context == context)
            e.valid = false;
    m_withdrawn.erase(std::remove_if(m_withdrawn.begin(), m_withdrawn.end(),
                                     [context](const export_range& e) {
                                         return e.context == context;
                                     }),
                      m_withdrawn.end());
}

void receive_path::stall(unsigned which) {
    m_dma.stalled = which & 1;
    m_utlb.stalled = which & 2;
    m_hello.stalled = which & 4;
    if (!m_dma.stalled)
        m_dma.release();
    if (!m_utlb.stalled)
        m_utlb.release();
    if (!m_hello.stalled)
        m_hello.release();
}

void receive_path::fail_next(bool translation, bool dma) {
    m_fail_translation = m_fail_translation || translation;
    m_fail_dma = m_fail_dma || dma;
}

void receive_path::finish() {
    stall(0);
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
    FUZZ_CHECK(m_owed == 0);
    FUZZ_CHECK(m_translations.empty() && m_dmas.empty());
    FUZZ_CHECK(m_withdrawn.empty());
    m_fail_translation = m_fail_dma = false;
}

// -- Checks ------------------------------------------------------------------

void receive_path::on_translation(utlb_request& r) {
    FUZZ_CHECK(r.write);
    FUZZ_CHECK(any_export([&r](const export_range& e) {
        return e.context == r.context && r.va >= e.va && r.va - e.va < e.length;
    }));
    m_translations.push_back(r);
    answer_later();
}

void receive_path::on_dma(dma_request& r) {
    seen.dmas++;
    FUZZ_CHECK(r.write && r.keep && r.data != nullptr);
    FUZZ_CHECK(r.length >= 1);
    FUZZ_CHECK((r.address & (PRAWN_PAGE_SIZE - 1)) + r.length <=
               PRAWN_PAGE_SIZE);
    const auto* p = static_cast<const packet*>(r.keep.get());
    FUZZ_CHECK(r.data >= p->payload &&
               r.data + r.length <= p->payload + p->head.payload_length);
    const std::uint64_t va = r.address - BUS;
    FUZZ_CHECK(any_export([&](const export_range& e) {
        return e.context == r.context && va >= e.va &&
               va + r.length <= e.va + e.length;
    }));
    m_dmas.push_back(std::move(r));
    answer_later();
}

// Sometimes at once, sometimes after a reset and new packets.
void receive_path::answer_later() {
    m_answers++;
    m_answer.notify(sc_core::sc_time(1.0 + m_answers % 5 * 20, sc_core::SC_NS));
}

void receive_path::answer() {
    std::deque<utlb_request> translations;
    translations.swap(m_translations);
    for (; !translations.empty(); translations.pop_back()) {
        const utlb_request& r = translations.back();  // the newest first
        utlb_reply a;
        a.tag = r.tag;
        a.status =
            m_fail_translation ? PRAWN_STATUS_NOT_PINNED : PRAWN_STATUS_OK;
        a.address = BUS + (r.va & ~std::uint64_t{PRAWN_PAGE_SIZE - 1});
        m_fail_translation = false;
        m_incoming_dma.utlb_reply_in().try_put(a);
    }
    std::deque<dma_request> dmas;
    dmas.swap(m_dmas);
    for (const dma_request& r : dmas) {
        dma_reply a;
        a.tag = r.tag;
        a.status = m_fail_dma ? PRAWN_STATUS_DMA_ERROR : PRAWN_STATUS_OK;
        m_fail_dma = false;
        m_incoming_dma.dma_reply_in().try_put(a);
    }
}

void receive_path::on_notification(notification_request& r) {
    seen.notifications++;
    FUZZ_CHECK(r.context < PRAWN_CONTEXTS);
    FUZZ_CHECK(r.entry.source_node < NODES);
    FUZZ_CHECK(r.entry.source_context < PRAWN_CONTEXTS);
    FUZZ_CHECK(r.entry.length <= PRAWN_MAX_MESSAGE);
    FUZZ_CHECK(any_export([&r](const export_range& e) {
        return e.context == r.context && r.entry.offset <= e.length &&
               r.entry.length <= e.length - r.entry.offset;
    }));
}

void receive_path::on_refusal(refusal& r) {
    FUZZ_CHECK(r.node < NODES);
    FUZZ_CHECK(r.head.type == PRAWN_PACKET_TYPE_DATA ||
               r.head.type == PRAWN_PACKET_TYPE_MGMT);
    FUZZ_CHECK(r.status < std::size(seen.refusals) && r.status != 0);
    seen.refusals[r.status]++;
}

void receive_path::on_event(kernel_event_request& r) {
    seen.events++;
    FUZZ_CHECK(r.node < NODES);
    FUZZ_CHECK(r.length >= 1 && r.length <= PRAWN_MGMT_MAX);
    const auto* p = static_cast<const packet*>(r.keep.get());
    FUZZ_CHECK(r.data == p->payload && r.length == p->head.payload_length);
}

void receive_path::on_nack(packet_ref& p) {
    seen.nacks++;
    FUZZ_CHECK(p->head.source_node < NODES && p->head.status != 0);
    p.reset();
}

void receive_path::on_peer(peer_event& e) {
    seen.peers++;
    FUZZ_CHECK(e.node < NODES && e.node != SELF && e.epoch != 0);
}

void receive_path::on_hello(packet_ref& p) {
    FUZZ_CHECK(p->head.destination_node < NODES);
    m_reliable.host_in().try_put(p);  // may be refused: it is then lost
    p.reset();
}

void receive_path::on_link(packet_ref& p) {
    unsigned credit = p->head.destination_node;
    p.reset();
    m_link_mac.credit_in().try_put(credit);
}

void receive_path::on_credit(unsigned& n) {
    FUZZ_CHECK(n >= 1 && n <= m_owed);
    m_owed -= n;
}

void receive_path::on_reply(control_reply& r) {
    FUZZ_CHECK(r.status == PRAWN_STATUS_OK ||
               r.status == PRAWN_STATUS_BAD_FIELD ||
               r.status == PRAWN_STATUS_BAD_CONTEXT ||
               r.status == PRAWN_STATUS_BAD_LENGTH);
    if (r.tag == 0)
        return;
    const std::uint32_t drained = r.tag;
    m_withdrawn.erase(std::remove_if(m_withdrawn.begin(), m_withdrawn.end(),
                                     [drained](const withdrawn_range& e) {
                                         return e.drain <= drained;
                                     }),
                      m_withdrawn.end());
}

}  // namespace fuzz
}  // namespace prawn
