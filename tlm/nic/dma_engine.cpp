// SPDX-License-Identifier: Apache-2.0
#include "nic/dma_engine.h"

#include <algorithm>

namespace prawn {

namespace {

constexpr std::uint32_t PAGE = PRAWN_PAGE_SIZE;
constexpr std::uint64_t NEVER = ~std::uint64_t{0};

std::uint64_t size_and_channel(std::uint64_t value, unsigned channel) {
    return value | static_cast<std::uint64_t>(channel) << 32;
}

bool well_formed(const dma_request& r) {
    return r.length > 0 && r.length <= PAGE && r.data &&
           r.address + (r.length - 1) >= r.address;
}

}  // namespace

dma_engine::payload* dma_engine::payload_pool::get() {
    if (unused.empty()) {
        all.push_back(std::make_unique<payload>(this));
        payload* p = all.back().get();
        p->extension = new dma_extension;
        p->set_extension(p->extension);
        unused.push_back(p);
    }
    payload* p = unused.back();
    unused.pop_back();
    p->acquire();
    return p;
}

void dma_engine::payload_pool::free(tlm::tlm_generic_payload* trans) {
    unused.push_back(static_cast<payload*>(trans));
}

dma_engine::dma_engine(sc_core::sc_module_name name, const block_env& env) :
    dma_engine_base(name, env, block_id::DMA_ENGINE),
    m_half(env.profile->bus.half_duplex),
    m_max_burst(env.profile->bus.max_burst),
    m_tags(env.profile->bus.outstanding_reads),
    m_read_size(m_half || m_tags >= (PAGE + m_max_burst - 1) / m_max_burst
                    ? PAGE
                    : m_max_burst),
    m_request_time(env.profile->cycles(REQUEST_CYCLES).value()),
    m_bus_end(*this, &dma_engine::response),
    m_control([this](control_request& r) { control(r); }),
    m_due("due"),
    m_reads(env.counters->add("dma_engine.reads")),
    m_writes(env.counters->add("dma_engine.writes")),
    m_read_bytes(env.counters->add("dma_engine.read_bytes")),
    m_write_bytes(env.counters->add("dma_engine.write_bytes")),
    m_bursts(env.counters->add("dma_engine.bursts")),
    m_errors(env.counters->add("dma_engine.errors")),
    m_stalls(env.counters->add("dma_engine.stalls")),
    m_context_read_bytes(
        env.counters->add_per_context("dma_engine.context_read_bytes")),
    m_context_write_bytes(
        env.counters->add_per_context("dma_engine.context_write_bytes")) {
    for (unsigned i = 0; i < DMA_CHANNELS; i++) {
        m_channels[i].engine = this;
        m_channels[i].index = i;
    }
    bus_out.bind(m_bus_end);
    SC_HAS_PROCESS(dma_engine);
    SC_METHOD(issue);
    sensitive << m_due;
    dont_initialize();
}

// Payloads still at the bus hold references into m_flights.
dma_engine::~dma_engine() {
    for (auto& p : m_payloads.all)
        p->owner.reset();
    for (channel& c : m_channels)
        c.flights.clear();
}

bool dma_engine::accept(channel& c, dma_request& request) {
    if (c.flights.size() >= DEPTH) {
        c.refused = true;
        m_stalls++;
        return false;
    }
    ref<flight> f = m_flights.get();
    f->request = std::move(request);
    f->ready = now_ps() + m_request_time;
    f->number = m_number++;
    f->issued = 0;
    f->under_way = 0;
    f->generation = m_generation;
    f->status = PRAWN_STATUS_OK;
    f->drain = m_drain.begin();
    const std::uint64_t ready = f->ready;
    c.flights.push_back(std::move(f));
    m_waiting |= 1U << c.index;
    wake(ready);
    return true;
}

void dma_engine::wake(std::uint64_t at) {
    if (at >= m_wake)
        return;
    m_wake = at;
    const std::uint64_t now = now_ps();
    m_due.notify(sc_core::sc_time::from_value(at > now ? at - now : 0));
}

void dma_engine::issue() {
    const std::uint64_t now = now_ps();
    m_wake = NEVER;
    while (!m_drained.empty())
        reply(m_drained.pop_front(), PRAWN_STATUS_OK);

    while (m_waiting != 0 && !m_blocked) {
        bool issued = false;
        for (unsigned k = 1; k <= DMA_CHANNELS && !issued; k++) {
            const unsigned i = (m_last + k) % DMA_CHANNELS;
            if (!(m_waiting >> i & 1) || !issue_from(m_channels[i], now))
                continue;
            issued = true;
            m_last = i;
        }
        if (!issued)
            break;
    }
    // What is ready and could not go waits for a response or END_REQ.
    m_held = false;
    for (unsigned i = 0; m_waiting >> i != 0; i++) {
        if (!(m_waiting >> i & 1))
            continue;
        channel& c = m_channels[i];
        if (c.flights[c.next]->ready > now)
            wake(c.flights[c.next]->ready);
        else
            m_held = true;
    }
}

// Issues at most one transaction; false if the channel has none that may go.
bool dma_engine::issue_from(channel& c, std::uint64_t now) {
    flight& f = *c.flights[c.next];
    const dma_request& r = f.request;
    if (f.ready > now)
        return false;
    // Order within the channel: turn only when it is empty, and the second
    // part of a write only when the first is in memory.
    if (c.under_way > 0 && (c.writing != r.write || (r.write && f.issued > 0)))
        return false;
    if (!well_formed(r))
        f.status = PRAWN_STATUS_DMA_ERROR;
    if (f.issued == 0) {
        if (m_events.enabled())
            m_events.emit(r.write ? event_kind::DMA_WRITE_BEGIN
                                  : event_kind::DMA_READ_BEGIN,
                          subject(r, m_env.node), f.number,
                          size_and_channel(r.length, c.index));
        (r.write ? m_writes : m_reads)++;
    }
    if (f.status != PRAWN_STATUS_OK) {
        advance(c);
        retire(c);
        return true;
    }
    const std::uint64_t address = r.address + f.issued;
    std::uint32_t length = std::min(
        r.length - f.issued, PAGE - static_cast<std::uint32_t>(address % PAGE));
    if (!r.write)
        length = std::min(length, m_read_size);
    payload& p = *m_payloads.get();
    p.shared_tags = 0;
    p.own_tag = false;
    if (!may_go(c, f, length, p)) {
        p.release();
        return false;
    }
    send(c, f, length, p);
    return true;
}

// The channel's next request has been issued wholly.
void dma_engine::advance(channel& c) {
    if (++c.next == c.flights.size())
        m_waiting &= ~(1U << c.index);
}

// Takes the read tags that the transaction needs, if it needs any.
bool dma_engine::may_go(const channel& c, const flight& f, std::uint32_t length,
                        payload& p) {
    if (f.request.write || m_half)
        return true;
    const std::uint32_t n = bursts(length);
    if (m_tags_used + n <= m_tags)
        p.shared_tags = n;
    else if (n == 1 && !c.own_tag)
        p.own_tag = true;
    return p.shared_tags > 0 || p.own_tag;
}

void dma_engine::send(channel& c, flight& f, std::uint32_t length, payload& p) {
    const dma_request& r = f.request;
    p.owner = c.flights[c.next];
    p.channel = c.index;
    p.set_command(r.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    p.set_address(r.address + f.issued);
    p.set_data_ptr(r.data + f.issued);
    p.set_data_length(length);
    p.set_streaming_width(length);
    p.set_byte_enable_ptr(nullptr);
    p.set_dmi_allowed(false);
    p.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    p.extension->context = r.context;
    p.extension->channel = static_cast<std::uint8_t>(c.index);

    m_tags_used += p.shared_tags;
    c.own_tag = c.own_tag || p.own_tag;
    c.writing = r.write;
    c.under_way++;
    f.under_way++;
    f.issued += length;
    if (f.issued == r.length)
        advance(c);
    m_bursts += bursts(length);

    // Before the call: the response may come from within.
    m_blocked = true;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    const tlm::tlm_sync_enum result = send_forward(bus_out, p, phase);
    if (result != tlm::TLM_ACCEPTED)
        m_blocked = false;
    if (result == tlm::TLM_COMPLETED ||
        (result == tlm::TLM_UPDATED && phase == tlm::BEGIN_RESP)) {
        phase = tlm::BEGIN_RESP;
        response(p, phase);
    }
}

tlm::tlm_sync_enum dma_engine::response(tlm::tlm_generic_payload& trans,
                                        tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_RESP) {
        m_blocked = false;
        wake(now_ps());
        return tlm::TLM_ACCEPTED;
    }
    payload& p = static_cast<payload&>(trans);
    channel& c = m_channels[p.channel];
    const ref<flight> f = std::move(p.owner);
    p.owner.reset();
    m_tags_used -= p.shared_tags;
    if (p.own_tag)
        c.own_tag = false;
    const bool ok = p.is_response_ok();
    p.release();
    f->under_way--;
    if (f->generation != m_generation) {
        if (f->under_way == 0)
            f->request.keep.reset();
        wake(now_ps());  // its tags may be wanted
        return tlm::TLM_COMPLETED;
    }
    c.under_way--;
    if (!ok && f->status == PRAWN_STATUS_OK) {
        f->status = PRAWN_STATUS_DMA_ERROR;
        if (f->issued < f->request.length) {
            f->issued = f->request.length;  // nothing more is done
            advance(c);
        }
    }
    if (c.flights.front().get() == f.get())
        retire(c);
    if (m_held)
        wake(now_ps());
    return tlm::TLM_COMPLETED;
}

// Answers what is done, in order.
void dma_engine::retire(channel& c) {
    const std::uint32_t generation = m_generation;
    while (c.next > 0 && c.flights.front()->under_way == 0) {
        const ref<flight> f = c.flights.pop_front();
        c.next--;
        finish(c, *f);
        if (generation != m_generation)  // reset by the one who got the answer
            return;
    }
}

void dma_engine::finish(channel& c, flight& f) {
    const dma_request& r = f.request;
    if (f.status == PRAWN_STATUS_OK) {
        (r.write ? m_write_bytes : m_read_bytes) += r.length;
        (r.write ? m_context_write_bytes : m_context_read_bytes)[r.context] +=
            r.length;
    } else {
        m_errors++;
    }
    if (m_events.enabled())
        m_events.emit(
            r.write ? event_kind::DMA_WRITE_END : event_kind::DMA_READ_END,
            subject(r, m_env.node), f.number,
            size_and_channel(f.status, c.index));
    if (c.refused) {
        c.refused = false;
        c.room_event.notify(sc_core::SC_ZERO_TIME);
    }
    const drain_tracker::generation drain = f.drain;
    dma_reply answer{r.tag, f.status};
    reply_out[c.index]->try_put(answer);
    f.request.keep.reset();  // f goes back to its pool as it is
    m_drain.end(drain);
}

void dma_engine::control(control_request& request) {
    const std::uint32_t tag = request.tag;
    if (request.op != control_op::DRAIN) {
        reply(tag, PRAWN_STATUS_BAD_OPCODE);
        return;
    }
    m_drain.drain([this, tag] {
        m_drained.push_back(tag);
        wake(now_ps());
    });
}

void dma_engine::reset() {
    m_generation++;
    for (channel& c : m_channels) {
        for (std::size_t i = 0; i < c.flights.size(); i++)
            if (c.flights[i]->under_way == 0)
                c.flights[i]->request.keep.reset();
        c.flights.clear();
        c.next = 0;
        c.under_way = 0;
        if (c.refused) {
            c.refused = false;
            c.room_event.notify(sc_core::SC_ZERO_TIME);
        }
    }
    m_last = DMA_CHANNELS - 1;
    m_waiting = 0;
    m_held = false;
    m_drain.reset();
    m_drained.clear();
    m_due.cancel();
    m_wake = NEVER;
}

}  // namespace prawn
