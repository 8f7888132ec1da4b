// SPDX-License-Identifier: Apache-2.0
// The ring and the plumbing; admin_queue_commands.cpp has what commands do,
// admin_queue_peers.cpp what comes from the network.
#include "nic/admin_queue.h"

#include <algorithm>
#include <cstring>

namespace prawn {

namespace {

constexpr std::uint32_t OWNER_BITS = 8;
constexpr unsigned FETCH = admin_queue::SLOTS;  // tag of the ring's own DMA

std::uint32_t make_tag(std::uint32_t generation, unsigned owner) {
    return generation << OWNER_BITS | owner;
}

bool of_generation(std::uint32_t tag, std::uint32_t generation) {
    return tag >> OWNER_BITS == (generation & (~0u >> OWNER_BITS));
}

}  // namespace

admin_queue::admin_queue(sc_core::sc_module_name name, const block_env& env) :
    admin_queue_base(name, env, block_id::ADMIN_QUEUE),
    m_dma_reply_in([this](auto& r) { on_dma_reply(r); }),
    m_peer_in([this](auto& e) { on_peer(e); }),
    m_nack_in([this](auto& p) { on_nack(p); }),
    m_control_in([this](auto& r) { on_control(r); }),
    m_kick("kick"),
    m_count_commands(env.counters->add("admin_queue.commands")),
    m_count_refused(env.counters->add("admin_queue.refused")),
    m_count_messages(env.counters->add("admin_queue.mgmt_sent")),
    m_count_busy(env.counters->add("admin_queue.mgmt_busy")),
    m_count_nacks(env.counters->add("admin_queue.nacks")),
    m_count_nacks_ignored(env.counters->add("admin_queue.nacks_ignored")),
    m_count_peer_events(env.counters->add("admin_queue.peer_events")),
    m_count_errors(env.counters->add("admin_queue.errors")) {
    SC_HAS_PROCESS(admin_queue);
    for (unsigned t = 0; t < CONTROL_TARGETS; t++)
        m_reply_in.emplace_back([this, t](auto& r) { on_reply(t, r); });
    SC_METHOD(work);
    dont_initialize();
    sensitive << m_kick;
}

put_if<control_reply>& admin_queue::reply_in(unsigned target) {
    return m_reply_in.at(target);
}

void admin_queue::set_ring(std::uint64_t base, unsigned log2) {
    m_base = base;
    m_log2 = log2;
    m_producer = m_fetched = 0;
}

void admin_queue::ring_doorbell(std::uint32_t producer) {
    if (m_error)
        return;
    const bool sound = m_base % PRAWN_PAGE_SIZE == 0 &&
                       m_log2 >= PRAWN_RING_LOG2_MIN &&
                       m_log2 <= PRAWN_RING_LOG2_MAX;
    if (!sound) {
        fail(PRAWN_STATUS_BAD_FIELD);
        return;
    }
    if (producer - m_fetched > 1u << m_log2) {
        fail(PRAWN_STATUS_RING_OVERRUN);
        return;
    }
    m_producer = producer;
    kick();
}

void admin_queue::fail(std::uint16_t status) {
    m_error = true;
    m_count_errors++;
    m_events.emit(event_kind::ERROR, {}, status);
}

void admin_queue::kick() {
    m_kick.notify(sc_core::SC_ZERO_TIME);
}

void admin_queue::work() {
    while (!m_dma_queue.empty() && dma_out->try_put(m_dma_queue.front()))
        m_dma_queue.pop_front();
    fetch();
    const sc_core::sc_time& now = sc_core::sc_time_stamp();
    if (now < m_next)
        m_kick.notify(m_next - now);
    else if (start_next()) {
        m_next = now + cycles(DECODE_CYCLES);
        m_kick.notify(cycles(DECODE_CYCLES));
    }
    if (!m_dma_queue.empty())
        next_trigger(dma_out->room() | m_kick);
}

// Fetches what is contiguous in the ring, one batch at a time.
bool admin_queue::fetch() {
    const std::uint32_t available = m_producer - m_fetched;
    if (m_error || m_fetching || !m_decoded.empty() || available == 0)
        return false;
    const std::uint32_t place = m_fetched & ((1u << m_log2) - 1);
    m_fetching = std::min({available, (1u << m_log2) - place, BATCH});
    m_fetch_buffer = small_buffer_pool().get();
    dma_request r;
    r.tag = FETCH;
    r.context = KERNEL_CONTEXT;
    r.address = m_base + std::uint64_t{place} * sizeof(prawn_admin_command);
    r.length =
        static_cast<std::uint32_t>(m_fetching * sizeof(prawn_admin_command));
    r.data = m_fetch_buffer->bytes;
    r.keep = m_fetch_buffer;
    put_dma(std::move(r));
    return true;
}

void admin_queue::put_dma(dma_request request) {
    m_dma_drains[request.tag] = m_drains.begin();
    request.tag = make_tag(m_generation, request.tag);
    if (m_dma_queue.empty() && dma_out->try_put(request))
        return;
    m_dma_queue.push_back(std::move(request));
    kick();
}

void admin_queue::on_dma_reply(dma_reply& r) {
    const unsigned owner = r.tag & ((1u << OWNER_BITS) - 1);
    if (!of_generation(r.tag, m_generation) || owner > FETCH)
        return;  // from before a reset
    m_drains.end(m_dma_drains[owner]);
    if (owner == FETCH)
        fetched(r.status);
    else
        message_read(m_slots[owner], r.status);
}

void admin_queue::fetched(std::uint16_t status) {
    const unsigned count = m_fetching;
    m_fetching = 0;
    if (status != PRAWN_STATUS_OK) {
        fail(status);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        command c;
        c.index = m_fetched++;
        std::memcpy(&c.entry, m_fetch_buffer->bytes + i * sizeof(c.entry),
                    sizeof(c.entry));
        m_decoded.push_back(c);
    }
    m_fetch_buffer.reset();
    kick();
}

bool admin_queue::start_next() {
    if (m_decoded.empty())
        return false;
    const auto free = std::find_if(m_slots.begin(), m_slots.end(),
                                   [](const slot_t& s) { return !s.used; });
    if (free == m_slots.end() || !may_start(m_decoded.front().entry))
        return false;
    *free = slot_t();
    free->used = true;
    free->cmd = m_decoded.front();
    m_decoded.pop_front();
    begin(*free);
    return true;
}

// Commands of one context around its enabling or disabling go one by one.
bool admin_queue::may_start(const prawn_admin_command& c) const {
    const auto exclusive = [](unsigned opcode) {
        return opcode == PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE ||
               opcode == PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE;
    };
    for (const slot_t& s : m_slots) {
        if (!s.used || s.cmd.entry.context != c.context)
            continue;
        if (exclusive(c.opcode) || exclusive(s.cmd.entry.opcode))
            return false;
    }
    return true;
}

// -- Control channels of the blocks -----------------------------------------

void admin_queue::put_control(control_target target, control_request request,
                              unsigned owner) {
    request.tag = make_tag(m_generation, owner);
    m_channels[target].queue.push_back(request);
    pump(target);
}

void admin_queue::pump(unsigned target) {
    channel& c = m_channels[target];
    while (!c.queue.empty() && c.in_flight < CONTROL_WINDOW) {
        control_request r = c.queue.front();
        c.queue.pop_front();
        c.in_flight++;
        request_out[target]->try_put(r);
    }
}

void admin_queue::on_reply(unsigned target, control_reply& r) {
    if (!of_generation(r.tag, m_generation))
        return;  // from before a reset
    m_channels[target].in_flight--;
    pump(target);
    const unsigned owner = r.tag & ((1u << OWNER_BITS) - 1);
    if (owner == INTERNAL) {
        internal_done();
        return;
    }
    slot_t& s = m_slots.at(owner);
    if (s.status == PRAWN_STATUS_OK)
        s.status = r.status;
    if (--s.waiting == 0)
        stage_done(s);
}

// Nobody controls the admin queue in this card; the firmware may.
void admin_queue::on_control(control_request& r) {
    if (r.op != control_op::DRAIN) {
        reply(r.tag, PRAWN_STATUS_BAD_OPCODE);
        return;
    }
    const std::uint32_t tag = r.tag;
    m_drains.drain([this, tag] { reply(tag, PRAWN_STATUS_OK); });
}

void admin_queue::reset() {
    m_generation++;
    m_base = 0;
    m_log2 = 0;
    m_producer = m_fetched = 0;
    m_error = false;
    for (slot_t& s : m_slots)
        s = slot_t();
    m_decoded.clear();
    m_enabled.reset();
    m_lives.fill(0);
    for (channel& c : m_channels)
        c = channel();
    m_fetch_buffer.reset();
    m_fetching = 0;
    m_drains.reset();
    m_dma_queue.clear();
    m_peers.clear();
    m_nacks.clear();
    m_nack_queued.reset();
    m_internal_waiting = 0;
    m_internal_peer = false;
    m_next = sc_core::SC_ZERO_TIME;
    kick();
}

}  // namespace prawn
