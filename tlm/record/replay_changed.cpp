// SPDX-License-Identifier: Apache-2.0
#include "record/replay_changed.h"

#include <algorithm>
#include <cstring>

#include "nic/contracts.h"
#include "record/trace_text.h"
#include "support/events.h"

namespace prawn {

changed_replay::changed_replay(replay_feed& feed,
                               const std::vector<replay_host*>& hosts,
                               replay_monitor& monitor, bool dependencies) :
    m_feed(feed), m_monitor(monitor), m_dependencies(dependencies) {
    for (std::size_t k = 0; k < hosts.size(); k++) {
        m_ports.push_back(
            std::make_unique<port>(*this, *hosts[k], static_cast<unsigned>(k)));
        hosts[k]->set_script(*m_ports.back());
    }
}

changed_replay::~changed_replay() = default;

// -- Reading ----------------------------------------------------------------

bool changed_replay::may_read() const {
    if (m_feed.at_end() || m_monitor.over())
        return false;
    std::uint64_t oldest = ~std::uint64_t{0};
    for (const auto& p : m_ports)
        oldest = std::min(oldest, p->oldest());
    return oldest == ~std::uint64_t{0} ||
           (m_feed.position() < oldest + WINDOW && m_feed.bytes() < MEMORY);
}

bool changed_replay::read_one() {
    if (!may_read() || m_monitor.check_interrupt())
        return false;
    try {
        kept r = m_feed.next();
        if (!r)
            return false;
        port& to = *m_ports[r->node];
        to.push(std::move(r));
    } catch (const recording_error& e) {
        m_monitor.fail(e.what());
        return false;
    }
    if (m_feed.position() - m_tidied >= PATIENCE / 16)
        tidy_up();
    return true;
}

// Until every host has something to do.
void changed_replay::read_on() {
    const auto hungry = [](const auto& p) { return p->hungry(); };
    while (std::any_of(m_ports.begin(), m_ports.end(), hungry) && read_one()) {
    }
}

void changed_replay::tidy_up() {
    m_tidied = m_feed.position();
    std::uint64_t patience = PATIENCE;
    if (m_feed.bytes() > MEMORY)
        patience = WINDOW;
    std::uint64_t number =
        m_tidied > patience ? m_tidied - patience : std::uint64_t{0};
    for (const auto& p : m_ports)
        number = std::min(number, p->oldest());
    for (const auto& p : m_ports)
        p->expire(number);
}

// Everything was done, and everything came.
void changed_replay::check_end() {
    if (!m_feed.at_end() || m_monitor.over())
        return;
    for (const auto& p : m_ports)
        if (!p->finished())
            return;
    m_monitor.stop();
}

void changed_replay::finish() {
    for (const auto& p : m_ports) {
        if (!p->m_actions.empty() && !m_monitor.interrupted() &&
            m_monitor.error().empty()) {
            const feed_record& r = *p->m_actions.front().r;
            m_monitor.differ({r.number, r.time_ps,
                              describe(r) + ": was done, and waits for " +
                                  p->waits_for() + " now"});
        }
    }
    if (m_monitor.interrupted() || !m_monitor.error().empty())
        return;
    for (const auto& p : m_ports) {
        p->m_match.finish(m_feed.reader().trailer() != nullptr);
        p->unread += p->memory.expire(~std::uint64_t{0});
    }
}

const changed_replay::side& changed_replay::node(unsigned k) const {
    return m_ports[k]->figures;
}

std::uint64_t changed_replay::zeros() const {
    std::uint64_t sum = 0;
    for (const auto& p : m_ports)
        sum += p->memory.zeros();
    return sum;
}

std::uint64_t changed_replay::unread() const {
    std::uint64_t sum = 0;
    for (const auto& p : m_ports)
        sum += p->unread;
    return sum;
}

std::uint64_t changed_replay::excused() const {
    std::uint64_t sum = 0;
    for (const auto& p : m_ports)
        sum += p->m_match.excused();
    return sum;
}

std::uint64_t changed_replay::beyond() const {
    std::uint64_t sum = 0;
    for (const auto& p : m_ports)
        sum += p->m_match.beyond();
    return sum;
}

std::uint64_t changed_replay::actions_left() const {
    std::uint64_t sum = 0;
    for (const auto& p : m_ports)
        sum += p->m_actions.size();
    return sum;
}

// -- What was recorded ------------------------------------------------------

void changed_replay::port::push(kept r) {
    const bool waited = m_waited;
    m_waited = false;
    replay_statistics& s = figures.recorded;
    if (r->kind != record_kind::MEMORY)
        s.last_ps = r->time_ps;
    switch (r->kind) {
        case record_kind::MEMORY:
            m_new_memory.push_back(std::move(r));
            m_waited = waited;
            return;
        case record_kind::BAR_RESULT:
            m_match.recorded_result(*r);
            [[fallthrough]];
        case record_kind::BAR_WRITTEN:
            if (m_run.m_dependencies)
                m_history.recorded_answer(*r);
            break;
        case record_kind::BAR_ACCEPTED:
            m_waited = true;
            break;
        case record_kind::MSIX:
        case record_kind::INTX:
            s.interrupts++;
            m_match.recorded_interrupt(*r);
            break;
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            recorded_dma(std::move(r));
            return;
        default:
            if (r->to_card()) {
                m_waited = waited;
                recorded_action(std::move(r));
                m_waited = false;
            }
            break;
    }
    place_memory(m_read_actions);
}

// Memory that stands before a doorbell was stored before it; what stands before
// a walk was stored before the action that the walk followed.
void changed_replay::port::place_memory(std::uint64_t action) {
    while (!m_new_memory.empty()) {
        memory.add(std::move(m_new_memory.front()), true, action);
        m_new_memory.pop_front();
    }
}

void changed_replay::port::recorded_action(kept r) {
    replay_statistics& s = figures.recorded;
    if (r->kind == record_kind::BAR_READ) {
        s.bar_reads++;
        m_match.expect_result(*r);
    } else if (r->kind == record_kind::BAR_WRITE) {
        s.bar_writes++;
    }
    action a;
    a.number = ++m_read_actions;
    place_memory(a.number);
    if (m_run.m_dependencies)
        m_history.recorded_action(*r, m_recorded, r->nested && m_waited,
                                  a.causes);
    m_recorded.host_did(*r);
    a.r = std::move(r);
    m_actions.push_back(std::move(a));
    if (m_actions.size() == 1)
        look();
}

void changed_replay::port::recorded_dma(kept r) {
    place_memory(m_read_actions);
    replay_statistics& s = figures.recorded;
    const auto length = static_cast<std::uint32_t>(r->length);
    s.dma_bytes += length;
    if (r->kind == record_kind::DMA_WRITE) {
        s.dma_writes++;
        const ring_entry e =
            m_recorded.entry(r->channel, r->address, length, r->data);
        if (e.kind == ring_entry::COMPLETION &&
            r->status == record_status::OK) {
            prawn_completion c;
            std::memcpy(&c, r->data, sizeof(c));
            s.latency.add(c.finished - c.accepted);
        }
        if (m_run.m_dependencies && e.kind != ring_entry::NONE &&
            r->status == record_status::OK)
            m_history.recorded_entry(e, r->time_ps);
        m_match.recorded_write(*r, e);
        return;
    }
    s.dma_reads++;
    if (r->channel == DMA_UTLB)
        s.table_reads++;
    if (r->data_size == 0)
        return;
    m_recorded.card_read(r->channel, r->address, length, r->data);
    ring_view::fetch f;
    if (m_run.m_dependencies &&
        m_recorded.commands(r->channel, r->address, length, f)) {
        for (std::uint32_t i = 0; i < f.count; i++) {
            prawn_command c;
            std::memcpy(&c, r->data + i * sizeof(c), sizeof(c));
            const std::uint32_t place = (f.place + i) & (f.size - 1);
            for (action& a : m_actions) {
                replay_causes& d = a.causes;
                if (!d.doorbell || d.context != f.context || d.life != f.life ||
                    d.seen >= d.count ||
                    ((d.first + d.seen) & (f.size - 1)) != place)
                    continue;
                replay_history::recorded_command(c, d);
                break;
            }
        }
    }
    const bool table = r->channel == DMA_UTLB;
    memory.add(std::move(r), table, m_read_actions);
}

void changed_replay::port::expire(std::uint64_t number) {
    m_match.expire(number);
    unread += memory.expire(number);
}

// -- What the host does -----------------------------------------------------

void changed_replay::port::step() {
    if (m_run.m_monitor.over())
        return;
    m_busy = true;
    m_run.read_on();
    run_actions();
    m_busy = false;
    m_run.check_end();
}

// The commands of a doorbell say what it followed, and stand behind it.
bool changed_replay::port::wants_commands(const action& a) const {
    return a.causes.doorbell && a.causes.seen < a.causes.count &&
           m_run.m_feed.position() < a.r->number + FETCH_WINDOW;
}

void changed_replay::port::run_actions() {
    while (!m_run.m_monitor.over()) {
        if (m_actions.empty()) {
            m_run.read_on();
            if (m_actions.empty())
                break;
        }
        const std::uint64_t now = now_ps();
        std::uint64_t due = m_actions.front().r->time_ps;
        if (m_run.m_dependencies) {
            while (wants_commands(m_actions.front()) && m_run.read_one()) {
            }
            const action& a = m_actions.front();
            m_waiting = !m_history.due(a.causes, *a.r, due, m_why);
            if (m_waiting)
                break;
        }
        const feed_record& r = *m_actions.front().r;
        if (due > now) {
            m_host.wake_at(due);
            break;
        }
        if (due == now && due == r.time_ps && !r.nested &&
            r.delta > sc_core::sc_delta_count_at_current_time()) {
            m_host.wake_next_delta();
            break;
        }
        const bool bar =
            r.kind == record_kind::BAR_READ || r.kind == record_kind::BAR_WRITE;
        if (bar && m_host.blocked())
            break;
        execute();
    }
}

void changed_replay::port::execute() {
    const action a = std::move(m_actions.front());
    m_actions.pop_front();
    m_done_actions = a.number;
    const record& r = *a.r;
    replay_statistics& s = figures.replayed;
    s.last_ps = now_ps();
    if (m_run.m_dependencies)
        m_history.done(a.causes, r, now_ps());
    m_replayed.host_did(r);
    switch (r.kind) {
        case record_kind::BAR_READ:
            s.bar_reads++;
            m_unanswered++;
            m_host.access(r);
            break;
        case record_kind::BAR_WRITE:
            s.bar_writes++;
            m_unanswered++;
            m_host.access(r);
            break;
        case record_kind::MAP:
            memory.map(r.address, r.length);
            break;
        case record_kind::UNMAP:
            memory.unmap(r.address, r.length);
            break;
        case record_kind::BUS_MASTER:
            m_bus_master = r.flag;
            m_host.control(r);
            break;
        case record_kind::DETACH:
            m_bus_master = false;
            m_host.control(r);
            break;
        default:
            m_host.control(r);
            break;
    }
}

std::string changed_replay::port::waits_for() const {
    if (!m_waiting)
        return "the bus";
    switch (m_why.kind) {
        case replay_cause::ANSWER:
            return "the answer of access " + std::to_string(m_why.number);
        case replay_cause::ACKS:
            return std::to_string(m_why.number) + " admin acknowledgements";
        case replay_cause::ENTRY:
            return std::string(name(m_why.entry.kind)) + " " +
                   std::to_string(m_why.entry.seq) + " of context " +
                   std::to_string(m_why.entry.context);
        default:
            return "the action before it";
    }
}

// -- What comes from the card -----------------------------------------------

void changed_replay::port::accepted(std::uint64_t) {
    look();
}

// What may wait for it looks again.
void changed_replay::port::came() {
    figures.replayed.last_ps = now_ps();
    if (m_run.m_dependencies || m_run.m_feed.at_end())
        look();
}

void changed_replay::port::answered(bool read, std::uint64_t order,
                                    std::uint64_t value) {
    if (m_run.m_monitor.over())
        return;
    m_unanswered--;
    if (m_run.m_dependencies)
        m_history.answered(order, now_ps());
    if (read)
        m_match.came_result(order, value);
    came();
}

void changed_replay::port::msix(unsigned vector) {
    if (m_run.m_monitor.over())
        return;
    figures.replayed.interrupts++;
    m_match.came_interrupt(false, vector);
    came();
}

void changed_replay::port::intx(bool level) {
    if (m_run.m_monitor.over())
        return;
    figures.replayed.interrupts++;
    m_match.came_interrupt(true, level ? 1 : 0);
    came();
}

replay_script::dma_answer changed_replay::port::dma(const dma_access& a) {
    if (m_run.m_monitor.over())
        return dma_answer::REFUSED;
    replay_statistics& s = figures.replayed;
    s.last_ps = now_ps();
    s.dma_bytes += a.length;
    const bool ok = m_bus_master && memory.mapped(a.address, a.length);
    if (a.write) {
        s.dma_writes++;
        const ring_entry e =
            m_replayed.entry(a.channel, a.address, a.length, a.data);
        if (ok) {
            memory.write(a.address, a.data, a.length);
            if (e.kind == ring_entry::COMPLETION) {
                prawn_completion c;
                std::memcpy(&c, a.data, sizeof(c));
                s.latency.add(c.finished - c.accepted);
            }
            if (e.kind != ring_entry::NONE && m_run.m_dependencies)
                m_history.entry(e, now_ps());
        }
        m_match.came_write(e, a.address, a.length, a.data, ok);
        came();
        return ok ? dma_answer::OK : dma_answer::REFUSED;
    }
    s.dma_reads++;
    if (a.channel == DMA_UTLB)
        s.table_reads++;
    if (!ok)
        return dma_answer::REFUSED;
    if (a.channel == DMA_UTLB)
        return read_table(a) ? dma_answer::OK : dma_answer::REFUSED;
    memory.read(a.address, a.data, a.length, false, m_done_actions,
                [this] { return m_run.read_one(); });
    m_replayed.card_read(a.channel, a.address, a.length, a.data);
    return dma_answer::OK;
}

// All of what was recorded until the next action must be known.
bool changed_replay::port::read_table(const dma_access& a) {
    while (m_read_actions <= m_done_actions && m_run.read_one()) {
    }
    place_memory(m_read_actions);
    const std::uint32_t unknown =
        memory.read(a.address, a.data, a.length, true, m_done_actions,
                    [this] { return m_run.read_one(); });
    if (unknown == 0)
        return true;
    record r;
    r.kind = record_kind::DMA_READ;
    r.node = static_cast<std::uint16_t>(m_match.node());
    r.address = a.address;
    r.length = a.length;
    r.channel = a.channel;
    r.context = a.context;
    m_run.m_monitor.fail(
        "after record " + std::to_string(m_run.m_feed.position()) + ", at " +
        time_text(now_ps()) + ": " + describe(r) + ": " +
        std::to_string(unknown / 8) +
        " translation entries that were never recorded; record again with this "
        "configuration");
    return false;
}

}  // namespace prawn
