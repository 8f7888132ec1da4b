// SPDX-License-Identifier: Apache-2.0
#include "qemu-device/bridge/bridge.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <sched.h>

#include "prawn_hw.h"
#include "support/events.h"

namespace prawn {

using vfio_user::reply_token;

namespace {

vfio_user::identity card_identity() {
    vfio_user::identity id;
    id.vendor_id = PRAWN_PCI_VENDOR_ID;
    id.device_id = PRAWN_PCI_DEVICE_ID;
    id.subsystem_vendor_id = PRAWN_PCI_VENDOR_ID;
    id.subsystem_id = PRAWN_PCI_DEVICE_ID;
    id.class_code = PRAWN_PCI_CLASS;
    id.revision = PRAWN_PCI_REVISION;
    id.bars[0].size = PRAWN_BAR0_SIZE;
    id.bars[2].size = PRAWN_BAR2_SIZE;
    // Not prefetchable: a load from it may start a transfer.
    id.bars[4].size = PRAWN_BAR4_SIZE;
    id.bars[4].is_64bit = true;
    id.msix_vectors = PRAWN_VECTORS;
    id.msix_table_bar = 0;
    id.msix_table_offset = PRAWN_MSIX_TABLE_OFFSET;
    id.msix_pba_bar = 0;
    id.msix_pba_offset = PRAWN_MSIX_PBA_OFFSET;
    id.intx = true;
    return id;
}

}  // namespace

bridge::bridge(sc_core::sc_module_name name) :
    sc_core::sc_module(name),
    m_identity(card_identity()),
    m_dma_end(*this, &bridge::dma, &bridge::peek),
    m_bar_end(*this, &bridge::bar_response) {
    SC_HAS_PROCESS(bridge);
    dma_in.bind(m_dma_end);
    bar_out.bind(m_bar_end);
    interrupt_in.bind(*this);
    SC_METHOD(take);
    dont_initialize();
    sensitive << m_waker.woken() << m_again;
    SC_METHOD(spin);
    dont_initialize();
    sensitive << m_look;
    SC_METHOD(due);
    dont_initialize();
    sensitive << m_due;
}

bridge::~bridge() = default;

void bridge::attach(vfio_user::server& server,
                    vfio_user::endpoint_id endpoint) {
    m_server = &server;
    m_endpoint = endpoint;
}

// -- Protocol thread --------------------------------------------------------

void bridge::push(request r) {
    m_queued.fetch_add(1);
    if (m_paced && r.kind != request::WRITE && r.kind != request::DISCONNECTED)
        r.time = m_paced->guest_time(m_node);
    {
        const std::lock_guard<std::mutex> hold(m_mutex);
        m_incoming.push_back(std::move(r));
    }
    if (m_paced)
        m_paced->incoming();
    else if (!m_spinning)
        m_waker.wake();
}

bool bridge::can_accept() const {
    if (m_queued.load() < QUEUE_LIMIT)
        return true;
    m_throttled.store(true);
    // It may have been emptied before it saw the flag.
    return m_queued.load() < QUEUE_LIMIT;
}

void bridge::connected() {
    push({});
}

void bridge::disconnected(reply_token token) {
    request r;
    r.kind = request::DISCONNECTED;
    r.token = token;
    push(std::move(r));
}

void bridge::bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                      reply_token token) {
    request r;
    r.kind = request::READ;
    r.bar = static_cast<std::uint8_t>(bar);
    r.size = static_cast<std::uint8_t>(size);
    r.offset = offset;
    r.token = token;
    push(std::move(r));
}

void bridge::bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                       std::uint64_t data, bool posted, reply_token token) {
    request r;
    r.kind = request::WRITE;
    r.bar = static_cast<std::uint8_t>(bar);
    r.size = static_cast<std::uint8_t>(size);
    r.flag = posted;
    r.offset = offset;
    r.data = data;
    r.token = token;
    push(std::move(r));
}

void bridge::reset(reply_token token) {
    request r;
    r.kind = request::RESET;
    r.token = token;
    push(std::move(r));
}

void bridge::bus_master(bool enabled) {
    request r;
    r.kind = request::BUS_MASTER;
    r.flag = enabled;
    push(std::move(r));
}

void bridge::dma_map(region_ref region) {
    request r;
    r.kind = request::MAP;
    r.region = std::move(region);
    push(std::move(r));
}

void bridge::dma_unmap(region_ref region, reply_token token) {
    request r;
    r.kind = request::UNMAP;
    r.region = std::move(region);
    r.token = token;
    push(std::move(r));
}

void bridge::message_done(const std::shared_ptr<message>& m) {
    {
        const std::lock_guard<std::mutex> hold(m_mutex);
        m_done.push_back(m);
    }
    m_waker.wake();
}

// -- SystemC thread ---------------------------------------------------------

void bridge::take() {
    m_stats.wakeups++;
    {
        const std::lock_guard<std::mutex> hold(m_mutex);
        m_taken.swap(m_incoming);
        m_done_taken.swap(m_done);
    }
    for (const auto& m : m_done_taken)
        finish_message(*m);
    m_done_taken.clear();
    for (request& r : m_taken)
        m_work.push_back(std::move(r));
    m_taken.clear();
    pump();
}

// -- In step with the guest --------------------------------------------------

void bridge::pace(paced_host& pacer, unsigned node) {
    m_paced = &pacer;
    m_node = node;
}

std::uint64_t bridge::collect() {
    std::uint64_t waits_since = 0;
    {
        const std::lock_guard<std::mutex> hold(m_mutex);
        m_taken.swap(m_incoming);
    }
    for (request& r : m_taken) {
        if (r.kind == request::WRITE) {
            m_queued.fetch_sub(1);
            if (!r.flag)
                m_server->complete_write(r.token);
            m_copies.push_back(std::move(r));
            compare_writes();
            continue;
        }
        if (r.kind == request::DISCONNECTED) {
            // What it has sent before happens before, though maybe too early.
            for (request& left : m_timed)
                left.time = now_ps();
            r.time = now_ps();
            m_seen.clear();
            m_copies.clear();
        } else if (r.token) {
            waits_since = r.time;
        }
        happen(std::move(r));
    }
    m_taken.clear();
    return waits_since;
}

void bridge::write_at(std::uint64_t time_ps, unsigned bar, std::uint64_t offset,
                      unsigned size, std::uint64_t data) {
    request r;
    r.kind = request::WRITE;
    r.bar = static_cast<std::uint8_t>(bar);
    r.size = static_cast<std::uint8_t>(size);
    r.flag = true;
    r.offset = offset;
    r.data = data;
    r.time = time_ps;
    m_seen.push_back(r);
    compare_writes();
    m_queued.fetch_add(1);
    happen(std::move(r));
}

void bridge::compare_writes() {
    while (!m_seen.empty() && !m_copies.empty()) {
        const request& a = m_seen.front();
        const request& b = m_copies.front();
        if (a.bar != b.bar || a.offset != b.offset || a.size != b.size ||
            a.data != b.data)
            m_stats.mismatched++;
        m_seen.pop_front();
        m_copies.pop_front();
    }
}

// In order of time; of one time, in order of arrival.
void bridge::happen(request r) {
    auto at = m_timed.end();
    while (at != m_timed.begin() && std::prev(at)->time > r.time)
        --at;
    const bool first = at == m_timed.begin();
    const std::uint64_t time = std::max(r.time, now_ps());
    m_timed.insert(at, std::move(r));
    if (first)
        m_due.notify(sc_core::sc_time::from_value(time - now_ps()));
}

void bridge::due() {
    const std::uint64_t now = now_ps();
    while (!m_timed.empty() && m_timed.front().time <= now) {
        if (m_timed.front().kind == request::READ)
            m_paced->reading(m_node);
        m_work.push_back(std::move(m_timed.front()));
        m_timed.pop_front();
    }
    if (!m_timed.empty())
        m_due.notify(sc_core::sc_time::from_value(m_timed.front().time - now));
    pump();
}

// -- SystemC thread, running by itself
// -----------------------------------------

// The socket is lent since before the answer went: the guest may have been as
// quick as to ask again already.
void bridge::spin() {
    m_stats.spins++;
    const unsigned wakes = kernel_waker::wakes().load();
    const clock::time_point end = m_answered + SPIN;
    m_spinning = true;
    while (m_server->poll(m_endpoint) && m_queued.load() == 0 &&
           !sc_core::sc_pending_activity() &&
           kernel_waker::wakes().load() == wakes && clock::now() < end)
        ::sched_yield();
    m_spinning = false;
    give_back();
    if (m_queued.load() == 0)
        return;
    m_stats.spins_hit++;
    take();
}

void bridge::give_back() {
    if (std::exchange(m_lent, false))
        m_server->give_back(m_endpoint);
}

void bridge::end_of_simulation() {
    give_back();
}

void bridge::pump() {
    while (!m_work.empty()) {
        const request::kind_t kind = m_work.front().kind;
        if (m_door && (kind == request::READ || kind == request::WRITE))
            break;
        request r = std::move(m_work.front());
        m_work.pop_front();
        m_queued.fetch_sub(1);
        execute(r);
    }
    if (m_throttled.load() && m_queued.load() < QUEUE_LIMIT / 2) {
        m_throttled.store(false);
        m_stats.throttled++;
        m_server->resume(m_endpoint);
    }
}

void bridge::execute(request& r) {
    switch (r.kind) {
        case request::CONNECTED:
            m_bus_master = false;
            if (m_paced)
                m_paced->present(m_node, true);
            control_out->set_attached(true);
            break;
        case request::DISCONNECTED:
            disconnect(r.token);
            break;
        case request::READ:
        case request::WRITE:
            send_access(r);
            break;
        case request::RESET:
            control_out->reset();
            m_server->complete(r.token, 0);
            break;
        case request::BUS_MASTER:
            m_bus_master = r.flag;
            control_out->set_bus_master(r.flag);
            break;
        case request::MAP:
            if (map_out.size() > 0)
                map_out->mapped(r.region->iova(), r.region->size());
            m_memory.add(std::move(r.region));
            break;
        case request::UNMAP:
            unmap(r);
            break;
    }
}

void bridge::disconnect(reply_token token) {
    m_life++;  // accesses under way have nobody who waits
    if (m_paced)
        m_paced->present(m_node, false);
    m_bus_master = false;
    control_out->set_bus_master(false);
    control_out->set_attached(false);
    cancel(0, ~std::uint64_t{0});
    m_memory.clear();
    m_server->complete(token, 0);
}

void bridge::unmap(request& r) {
    const std::uint64_t first = r.region->iova();
    const std::uint64_t last = first + (r.region->size() - 1);
    if (map_out.size() > 0)
        map_out->unmapped(first, r.region->size());
    m_memory.remove(*r.region);
    cancel(first, last);
    r.region.reset();
    m_server->complete(r.token, 0);
}

// -- BAR accesses -----------------------------------------------------------

bridge::access* bridge::access_pool::get() {
    if (unused.empty()) {
        all.push_back(std::make_unique<access>(this));
        access& a = *all.back();
        a.bar = new bar_extension;  // goes with the payload
        a.set_extension(a.bar);
        a.set_data_ptr(reinterpret_cast<unsigned char*>(&a.data));
        unused.push_back(&a);
    }
    access* a = unused.back();
    unused.pop_back();
    return a;
}

void bridge::access_pool::free(tlm::tlm_generic_payload* trans) {
    unused.push_back(static_cast<access*>(trans));
}

void bridge::send_access(const request& r) {
    access& a = *m_accesses.get();
    const bool is_read = r.kind == request::READ;
    is_read ? m_stats.reads++ : m_stats.writes++;
    a.acquire();
    a.set_command(is_read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    a.set_address(r.offset);
    a.set_data_length(r.size);
    a.set_streaming_width(r.size);
    a.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    a.data = r.data;
    a.token = r.token;
    a.life = m_life;
    a.bar->bar = r.bar;
    a.bar->posted = r.flag;
    a.bar->order = ++m_order;
    m_door = &a;  // until the host port says otherwise
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    if (send_forward(bar_out, a, phase) != tlm::TLM_ACCEPTED && m_door == &a)
        m_door = nullptr;
}

tlm::tlm_sync_enum bridge::bar_response(tlm::tlm_generic_payload& trans,
                                        tlm::tlm_phase& phase) {
    auto& a = static_cast<access&>(trans);
    const bool was_door = m_door == &a;
    if (was_door)
        m_door = nullptr;
    if (phase == tlm::BEGIN_RESP) {
        if (a.token && a.life == m_life) {
            if (a.is_read())
                answer_read(a);
            else
                m_server->complete_write(a.token);
        }
        a.release();
    }
    // Not from within the host port's call: what waits goes on in its turn.
    if (was_door && !m_work.empty())
        m_again.notify(sc_core::SC_ZERO_TIME);
    return phase == tlm::BEGIN_RESP ? tlm::TLM_COMPLETED : tlm::TLM_ACCEPTED;
}

void bridge::answer_read(const access& a) {
    if (m_paced) {
        m_paced->read_answered(m_node);
        m_server->complete_read(a.token, a.data);
        return;
    }
    const clock::time_point now = clock::now();
    if (now - m_answered < BURST && !m_lent && m_server->borrow(m_endpoint)) {
        m_lent = true;
        m_look.notify(sc_core::SC_ZERO_TIME);
    }
    m_answered = now;
    m_server->complete_read(a.token, a.data);
}

// -- DMA --------------------------------------------------------------------

tlm::tlm_sync_enum bridge::dma(tlm::tlm_generic_payload& trans,
                               tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_COMPLETED;
    if (m_paced)
        m_paced->delivered(m_node);
    using vfio_user::dma_status;
    dma_status status = dma_status::DENIED;
    if (m_bus_master) {
        status = trans.is_write()
                     ? m_memory.write(trans.get_address(), trans.get_data_ptr(),
                                      trans.get_data_length())
                     : m_memory.read(trans.get_address(), trans.get_data_ptr(),
                                     trans.get_data_length());
    }
    if (status == dma_status::MESSAGE_ONLY && start_message(trans)) {
        phase = tlm::END_REQ;
        return tlm::TLM_UPDATED;
    }
    const bool ok = status == dma_status::OK;
    ok ? m_stats.dma_direct++ : m_stats.dma_refused++;
    trans.set_response_status(ok ? tlm::TLM_OK_RESPONSE
                                 : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    phase = tlm::BEGIN_RESP;
    return tlm::TLM_UPDATED;
}

// Without a message: memory that only these reach is not seen.
unsigned bridge::peek(tlm::tlm_generic_payload& trans) {
    const bool ok =
        trans.is_read() &&
        m_memory.read(trans.get_address(), trans.get_data_ptr(),
                      trans.get_data_length()) == vfio_user::dma_status::OK;
    return ok ? trans.get_data_length() : 0;
}

bool bridge::start_message(tlm::tlm_generic_payload& trans) {
    auto m = std::make_shared<message>();
    m->trans = &trans;
    const std::size_t size = trans.get_data_length();
    bool started = false;
    if (trans.is_write()) {
        started = m_server->dma_write(m_endpoint, trans.get_address(),
                                      trans.get_data_ptr(), size,
                                      [this, m](int error) {
                                          m->error = error;
                                          message_done(m);
                                      });
    } else {
        started = m_server->dma_read(
            m_endpoint, trans.get_address(), size,
            [this, m](int error, const std::uint8_t* data, std::size_t n) {
                m->error = error;
                if (!error)
                    m->data.assign(data, data + n);
                message_done(m);
            });
    }
    if (!started)
        return false;
    trans.acquire();
    m_messages.push_back(std::move(m));
    m_stats.dma_messages++;
    return true;
}

void bridge::finish_message(message& m) {
    tlm::tlm_generic_payload* trans = m.trans;
    if (!trans)
        return;  // cancelled, and answered then
    m.trans = nullptr;
    m_messages.erase(
        std::find_if(m_messages.begin(), m_messages.end(),
                     [&](const auto& one) { return one.get() == &m; }));
    bool ok = m.error == 0;
    if (ok && trans->is_read()) {
        ok = m.data.size() == trans->get_data_length();
        if (ok)
            std::memcpy(trans->get_data_ptr(), m.data.data(), m.data.size());
    }
    trans->set_response_status(ok ? tlm::TLM_OK_RESPONSE
                                  : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    send_backward(dma_in, *trans, tlm::BEGIN_RESP);
    trans->release();
}

// Answers as refused what is under way by message to a range.
void bridge::cancel(std::uint64_t first, std::uint64_t last) {
    std::vector<std::shared_ptr<message>> hit;
    for (const auto& m : m_messages) {
        const std::uint64_t from = m->trans->get_address();
        const std::uint64_t to = from + (m->trans->get_data_length() - 1);
        if (from <= last && to >= first)
            hit.push_back(m);
    }
    for (const auto& m : hit) {
        m_stats.dma_cancelled++;
        message failed;
        std::swap(failed.trans, m->trans);
        m_messages.erase(std::find(m_messages.begin(), m_messages.end(), m));
        failed.trans->set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        send_backward(dma_in, *failed.trans, tlm::BEGIN_RESP);
        failed.trans->release();
    }
}

// -- Interrupts -------------------------------------------------------------

void bridge::msix(unsigned vector) {
    m_stats.interrupts++;
    if (m_paced)
        m_paced->interrupt(m_node, vector);
    else
        m_server->trigger_msix(m_endpoint, vector);
}

void bridge::intx(bool level) {
    if (m_paced)
        m_paced->interrupt(m_node, 0x10000U | (level ? 1U : 0U));
    else
        m_server->set_intx(m_endpoint, level);
}

}  // namespace prawn
