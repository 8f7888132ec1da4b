// SPDX-License-Identifier: Apache-2.0
#include "record/replay_exact.h"

#include <algorithm>
#include <cstring>

#include "record/trace_text.h"
#include "support/events.h"

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = ~std::uint64_t{0};

std::uint64_t delta_now() {
    return sc_core::sc_delta_count_at_current_time();
}

// But for the time, and for how requests of one instant were numbered.
bool same(const record& a, const record& b) {
    return a.kind == b.kind && (a.order == b.order || a.dma()) &&
           a.value == b.value && a.vector == b.vector && a.flag == b.flag &&
           a.address == b.address && (a.length == b.length || !a.dma()) &&
           a.channel == b.channel && a.context == b.context &&
           (a.kind != record_kind::DMA_WRITE ||
            std::memcmp(a.data, b.data, a.length) == 0);
}

}  // namespace

exact_replay::exact_replay(replay_feed& feed,
                           const std::vector<replay_host*>& hosts,
                           replay_monitor& monitor) :
    m_feed(feed), m_monitor(monitor) {
    for (std::size_t k = 0; k < hosts.size(); k++) {
        m_ports.push_back(std::make_unique<port>(
            *this, *hosts[k], static_cast<std::uint16_t>(k)));
        hosts[k]->set_script(*m_ports.back());
    }
}

exact_replay::~exact_replay() = default;

// -- Reading ----------------------------------------------------------------

bool exact_replay::read_one() {
    if (m_monitor.over() || m_monitor.check_interrupt())
        return false;
    try {
        kept r = m_feed.next();
        if (!r)
            return false;
        port& to = *m_ports[r->node];
        to.push(std::move(r));
        return true;
    } catch (const recording_error& e) {
        m_monitor.fail(e.what());
        return false;
    }
}

// While one action waits, everything that must have come before it has been
// read.
void exact_replay::read_on() {
    while (m_actions_left == 0 && read_one()) {
    }
    if (m_feed.at_end() && m_actions_left == 0)
        m_ports[0]->arm();
}

std::uint64_t exact_replay::end_time() const {
    const recording_trailer* trailer = m_feed.reader().trailer();
    return trailer ? std::max(trailer->time_ps, m_feed.time_ps())
                   : m_feed.time_ps();
}

void exact_replay::differs(const feed_record* expected, const record* came,
                           const std::string& why) {
    if (m_monitor.over())
        return;
    replay_difference d;
    d.record = expected ? expected->number : m_feed.position() + 1;
    d.time_ps = expected ? expected->time_ps : now_ps();
    d.text = "expected ";
    if (expected)
        d.text += describe(*expected) + " at " + time_text(expected->time_ps);
    else
        d.text += "nothing more";
    d.text += ", ";
    if (came)
        d.text += "came " + describe(*came) + " at " + time_text(now_ps());
    else
        d.text += "nothing came until " + time_text(now_ps());
    if (!why.empty())
        d.text += " (" + why + ")";
    m_monitor.differ(d);
    m_monitor.stop();
}

// -- One node ---------------------------------------------------------------

void exact_replay::port::push(kept r) {
    if (r->kind == record_kind::MEMORY) {
        m_run.m_matched++;
        return;
    }
    const bool is_action = action(*r);
    m_late = m_late || (r->dma() && r->late);
    if (is_action) {
        m_actions.push_back(r->time_ps);
        m_run.m_actions_left++;
    }
    m_queue.push_back(std::move(r));
    if (is_action && m_actions.size() == 1 && !m_busy)
        arm();
}

feed_record* exact_replay::port::head() {
    std::uint64_t read = 0;
    while (m_queue.empty() && read++ < AHEAD && m_run.read_one()) {
    }
    return m_queue.empty() ? nullptr : m_queue.front().get();
}

const feed_record* exact_replay::port::left() {
    return m_queue.empty() ? nullptr : m_queue.front().get();
}

void exact_replay::port::pop() {
    if (action(*m_queue.front())) {
        m_actions.pop_front();
        m_run.m_actions_left--;
    }
    m_queue.pop_front();
    m_run.m_matched++;
}

// Asks for the next step. An action that waits for what must come first is
// looked at again when it has come, or one picosecond later: too late.
void exact_replay::port::arm() {
    if (m_run.m_monitor.over())
        return;
    const std::uint64_t now = now_ps();
    std::uint64_t at = NEVER;
    if (!m_actions.empty()) {
        at = m_actions.front();
        if (at <= now && action(*m_queue.front())) {
            m_armed = NEVER;
            if (m_queue.front()->nested ||
                m_queue.front()->delta <= delta_now())
                m_host.wake_in_this_delta();
            else
                m_host.wake_next_delta();
            return;
        }
        at = std::max(at, now + 1);
    } else if (m_node == 0 && m_run.m_feed.at_end() &&
               m_run.m_actions_left == 0) {
        at = std::max(m_run.end_time(), now) + 1;
    }
    if (at == m_armed || at == NEVER)
        return;
    m_armed = at;
    m_host.wake_at(at);
}

void exact_replay::port::step() {
    if (m_run.m_monitor.over())
        return;
    m_armed = NEVER;
    const std::uint64_t now = now_ps();
    m_busy = true;
    m_run.read_on();
    while (!m_queue.empty() && !m_run.m_monitor.over()) {
        const feed_record& next = *m_queue.front();
        if (!action(next)) {
            if (next.time_ps < now)
                m_run.differs(&next, nullptr, "");
            break;
        }
        if (next.time_ps > now ||
            (next.time_ps == now && !next.nested && next.delta > delta_now()))
            break;
        execute();
    }
    m_busy = false;
    if (m_run.m_monitor.over())
        return;
    if (m_node == 0 && m_run.m_feed.at_end() && m_run.m_actions_left == 0 &&
        now > m_run.end_time()) {
        for (const auto& p : m_run.m_ports)
            if (const feed_record* r = p->left())
                m_run.differs(r, nullptr, "");
        m_run.m_monitor.stop();
        return;
    }
    arm();
}

void exact_replay::port::execute() {
    const kept r = m_queue.pop_front();
    m_actions.pop_front();
    m_run.m_actions_left--;
    m_run.m_matched++;
    switch (r->kind) {
        case record_kind::BAR_READ:
        case record_kind::BAR_WRITE:
            if (m_host.blocked())
                m_run.differs(r.get(), nullptr,
                              "the bus has not taken the access before it");
            else
                m_host.access(*r);
            break;
        case record_kind::DMA_ACCEPTED:
            if (!m_host.accept_dma(r->order))
                m_run.differs(r.get(), nullptr, "there is no such request");
            break;
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            if (!m_host.answer_dma(r->order, r->status == record_status::OK,
                                   r->data, r->data_size))
                m_run.differs(r.get(), nullptr, "there is no such request");
            break;
        default:
            m_host.control(*r);
            break;
    }
    m_run.read_on();
}

// -- What comes from the card -----------------------------------------------

// Brings what has come to the head of the queue, if it is one of this instant.
const feed_record* exact_replay::port::expected(const record& came) {
    const std::uint64_t now = now_ps();
    const feed_record* e = head();
    if (e && e->time_ps == now && !action(*e) && same(*e, came))
        return e;
    while (m_run.m_feed.time_ps() <= now && m_run.read_one()) {
    }
    for (std::size_t i = 0; i < m_queue.size(); i++) {
        const feed_record& r = *m_queue[i];
        if (r.time_ps > now)
            break;
        if (r.time_ps < now || action(r) || !same(r, came))
            continue;
        if (i > 0)
            m_run.m_reordered++;
        for (; i > 0; i--)
            std::swap(m_queue[i], m_queue[i - 1]);
        return m_queue.front().get();
    }
    return nullptr;
}

void exact_replay::port::arrived(const record& came) {
    if (m_run.m_monitor.over())
        return;
    if (expected(came))
        pop();
    else if (left() || !m_run.m_feed.at_end() || now_ps() < m_run.end_time())
        explain(came);
    // Else the recording had been ended at this instant.
}

// Why it is not what is at the head.
void exact_replay::port::explain(const record& came) {
    const feed_record* e = left();
    const char* why = "";
    std::string more;
    if (!e || e->kind != came.kind || e->time_ps != now_ps())
        why = "";
    else if (e->order != came.order)
        why = "another number";
    else if (e->value != came.value || e->vector != came.vector ||
             e->flag != came.flag)
        why = "another value";
    else if (!e->dma())
        why = "another one";
    else if (e->address != came.address || e->length != came.length ||
             e->channel != came.channel || e->context != came.context)
        why = "another request";
    else if (came.data_size) {
        const std::uint8_t* at =
            std::mismatch(e->data, e->data + e->data_size, came.data).first;
        more = "other data from byte " + std::to_string(at - e->data) +
               " on: " + std::to_string(*at) + " expected, " +
               std::to_string(came.data[at - e->data]) + " came";
    }
    m_run.differs(e, &came, why + more);
}

// What the host did from within this call, it does again from within it.
void exact_replay::port::goes_on() {
    while (!m_queue.empty() && m_queue.front()->nested &&
           action(*m_queue.front()) && m_queue.front()->time_ps == now_ps() &&
           !m_run.m_monitor.over())
        execute();
    if (!m_busy)
        arm();
}

void exact_replay::port::accepted(std::uint64_t order) {
    record came;
    came.kind = record_kind::BAR_ACCEPTED;
    came.node = m_node;
    came.order = order;
    arrived(came);
    goes_on();
}

void exact_replay::port::answered(bool read, std::uint64_t order,
                                  std::uint64_t value) {
    record came;
    came.kind = read ? record_kind::BAR_RESULT : record_kind::BAR_WRITTEN;
    came.node = m_node;
    came.order = order;
    came.value = value;
    arrived(came);
    goes_on();
}

void exact_replay::port::msix(unsigned vector) {
    record came;
    came.kind = record_kind::MSIX;
    came.node = m_node;
    came.vector = vector;
    arrived(came);
    goes_on();
}

void exact_replay::port::intx(bool level) {
    record came;
    came.kind = record_kind::INTX;
    came.node = m_node;
    came.flag = level;
    arrived(came);
    goes_on();
}

replay_script::dma_answer exact_replay::port::dma(const dma_access& a) {
    if (m_run.m_monitor.over())
        return dma_answer::REFUSED;
    record came;
    came.kind = a.write ? record_kind::DMA_WRITE : record_kind::DMA_READ;
    came.node = m_node;
    came.order = a.order;
    came.address = a.address;
    came.length = a.length;
    came.channel = a.channel;
    came.context = a.context;
    if (a.write) {
        came.data = a.data;
        came.data_size = a.length;
    }
    const feed_record* e = expected(came);
    if (!e) {
        e = left();
        if (!e || !e->dma() || e->late || e->order != a.order)
            return put_off(a, came);
        explain(came);
        return dma_answer::REFUSED;
    }
    const bool ok = e->status == record_status::OK;
    if (!a.write && ok)
        std::memcpy(a.data, e->data, a.length);
    pop();
    // What follows from within this call can only follow after it.
    if (!m_busy)
        arm();
    return ok ? dma_answer::OK : dma_answer::REFUSED;
}

// Not answered from within its call: then its record comes later.
replay_script::dma_answer exact_replay::port::put_off(const dma_access& a,
                                                      const record& came) {
    bool accepted_late = false;
    std::uint64_t left_to_read = AHEAD;
    for (std::size_t i = 0;; i++) {
        while (i >= m_queue.size() && left_to_read-- > 0 && m_run.read_one()) {
        }
        if (i >= m_queue.size())
            break;
        const feed_record& r = *m_queue[i];
        if (r.kind == record_kind::DMA_ACCEPTED && r.order == a.order)
            accepted_late = true;
        if (!r.dma() || r.order != a.order)
            continue;
        const bool same = r.late && r.began_ps == now_ps() &&
                          r.address == a.address && r.length == a.length &&
                          (r.kind == record_kind::DMA_WRITE) == a.write;
        if (!same || (a.write && std::memcmp(r.data, a.data, a.length) != 0)) {
            m_run.differs(left(), &came, "");
            return dma_answer::REFUSED;
        }
        if (!m_busy)
            arm();
        return accepted_late ? dma_answer::NOT_YET : dma_answer::LATER;
    }
    // A host that answers late may have had it when the recording ended.
    const bool complete = m_run.m_feed.reader().trailer() != nullptr;
    if (complete && !m_late && now_ps() < m_run.end_time()) {
        m_run.differs(left(), &came, "");
        return dma_answer::REFUSED;
    }
    return accepted_late ? dma_answer::NOT_YET : dma_answer::LATER;
}

}  // namespace prawn
