// SPDX-License-Identifier: Apache-2.0
#include "record/replay_causes.h"

#include <algorithm>
#include <utility>

#include "prawn_hw.h"

namespace prawn {

namespace {

constexpr std::uint32_t KERNEL = 0xffffffff;
// Entries of a ring whose times are kept: behind the newest that was replayed,
// and altogether.
constexpr std::uint32_t BEHIND = 2u << PRAWN_RING_LOG2_MAX;
constexpr std::uint32_t KEPT = 1u << 20;

std::uint32_t actor_of(const record& r) {
    if (r.kind != record_kind::BAR_READ && r.kind != record_kind::BAR_WRITE)
        return KERNEL;
    if (r.bar == 2)
        return static_cast<std::uint32_t>(r.address >> PRAWN_PAGE_SHIFT);
    if (r.bar == 4)
        return static_cast<std::uint32_t>(r.address >>
                                          PRAWN_BAR4_CONTEXT_SHIFT);
    return KERNEL;
}

bool later(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

replay_history::times* replay_history::stream::at(std::uint32_t seq,
                                                  bool make) {
    if (list.empty() && make)
        first = seq;
    const std::uint32_t distance = seq - first;
    if (distance >= KEPT)  // before the first, or far beyond
        return nullptr;
    if (distance >= list.size()) {
        if (!make)
            return nullptr;
        list.resize(distance + 1);
    }
    return &list[distance];
}

void replay_history::stream::forget(std::uint32_t seq) {
    while (!list.empty() && later(seq, first)) {
        list.pop_front();
        first++;
    }
}

replay_history::stream& replay_history::of(const ring_entry& e) {
    ring_entry key = e;
    key.seq = 0;
    return m_streams[key];
}

// -- As it was recorded -----------------------------------------------------

void replay_history::follow_entry(replay_causes& out, ring_entry::kind_t kind,
                                  std::uint16_t context, std::uint32_t life,
                                  std::uint32_t seq) {
    if (seq == 0)
        return;
    replay_cause c;
    c.kind = replay_cause::ENTRY;
    c.entry.kind = kind;
    c.entry.context = context;
    c.entry.life = life;
    c.entry.seq = seq;
    const times* t = of(c.entry).at(seq, false);
    if (!t || t->recorded == 0)
        return;  // it says so, but it was not there
    c.recorded_ps = t->recorded;
    out.list.push_back(c);
}

void replay_history::recorded_action(const record& r, const ring_view& view,
                                     bool after_wait, replay_causes& out) {
    out.actor = actor_of(r);
    out.as_soon_as_possible = after_wait;
    actor_t& actor = m_actors[out.actor];
    const actor_t& before = actor.any ? actor : m_host;
    if (before.any) {
        replay_cause c;
        c.recorded_ps = before.recorded_ps;
        out.list.push_back(c);
    }
    if (actor.answer != 0) {
        replay_cause c;
        c.kind = replay_cause::ANSWER;
        c.recorded_ps = actor.answer_ps;
        c.number = actor.answer;
        out.list.push_back(c);
    }
    if (m_acks != 0 && m_ack_life == view.card_life()) {
        replay_cause c;
        c.kind = replay_cause::ACKS;
        c.recorded_ps = m_ack_ps;
        c.number = m_acks;
        c.life = m_ack_life;
        out.list.push_back(c);
    }
    actor.any = m_host.any = true;
    actor.recorded_ps = m_host.recorded_ps = r.time_ps;
    const bool bar =
        r.kind == record_kind::BAR_READ || r.kind == record_kind::BAR_WRITE;
    if (!bar)
        return;
    if (!r.posted)
        m_open.push_back({r.order, out.actor});
    if (r.kind != record_kind::BAR_WRITE)
        return;
    const auto low = static_cast<std::uint32_t>(r.value);
    if (r.bar == 0 && r.address == PRAWN_BAR0_EVENT_CONSUMED)
        follow_entry(out, ring_entry::EVENT, 0, view.card_life(), low);
    if (r.bar != 2 || out.actor >= PRAWN_CONTEXTS)
        return;
    const auto context = static_cast<std::uint16_t>(out.actor);
    const std::uint32_t life = view.life(context);
    switch (r.address % PRAWN_PAGE_SIZE) {
        case PRAWN_DOORBELL_DOORBELL: {
            const auto consumed = static_cast<std::uint32_t>(r.value >> 32);
            auto& [of_life, producer] = m_producers[context];
            if (of_life != life) {
                of_life = life;
                producer = 0;
            }
            out.doorbell = true;
            out.context = context;
            out.life = life;
            out.first = producer;
            out.count = low - producer <= (1u << PRAWN_RING_LOG2_MAX)
                            ? low - producer
                            : 0;
            producer = low;
            out.any_completion = true;
            out.completions = consumed;
            break;
        }
        case PRAWN_DOORBELL_NOTIFY_CONSUMED:
        case PRAWN_DOORBELL_ARM_NOTIFY:
            follow_entry(out, ring_entry::NOTIFICATION, context, life, low);
            break;
        case PRAWN_DOORBELL_ARM_COMPLETION:
            follow_entry(out, ring_entry::COMPLETION, context, life, low);
            break;
        default:
            break;
    }
}

void replay_history::recorded_answer(const record& r) {
    const auto found =
        std::find_if(m_open.begin(), m_open.end(),
                     [&](const open_access& o) { return o.order == r.order; });
    if (found == m_open.end())
        return;
    actor_t& actor = m_actors[found->actor];
    actor.answer = r.order;
    actor.answer_ps = r.time_ps;
    m_open.erase(found);
}

void replay_history::recorded_entry(const ring_entry& e,
                                    std::uint64_t time_ps) {
    if (e.kind == ring_entry::ACK) {
        if (m_ack_life != e.life)
            m_acks = 0;
        m_ack_life = e.life;
        m_acks++;
        m_ack_ps = time_ps;
        return;
    }
    if (times* t = of(e).at(e.seq, true))
        t->recorded = std::max<std::uint64_t>(time_ps, 1);
}

void replay_history::recorded_command(const prawn_command& c,
                                      replay_causes& of) {
    of.seen++;
    if (!of.any_completion || later(c.completions_seen, of.completions))
        of.completions = c.completions_seen;
    of.any_completion = true;
    if (!of.any_notification || later(c.notifications_seen, of.notifications))
        of.notifications = c.notifications_seen;
    of.any_notification = true;
}

// -- As it is replayed ------------------------------------------------------

void replay_history::done(const replay_causes& c, const record& r,
                          std::uint64_t now) {
    for (actor_t* a : {&m_actors[c.actor], &m_host}) {
        a->any_done = true;
        a->done_recorded_ps = r.time_ps;
        a->done_ps = now;
    }
    for (const replay_cause& cause : c.list) {
        if (cause.kind == replay_cause::ENTRY)
            of(cause.entry).forget(cause.entry.seq);
    }
}

void replay_history::answered(std::uint64_t order, std::uint64_t now) {
    m_answers[order] = now;
    if (m_answers.size() > BEHIND)
        m_answers.erase(m_answers.begin());
}

void replay_history::entry(const ring_entry& e, std::uint64_t now) {
    if (e.kind == ring_entry::ACK) {
        std::deque<std::uint64_t>& list = m_ack_times[e.life];
        list.push_back(now);
        if (list.size() > BEHIND) {
            list.pop_front();
            m_acks_forgotten[e.life]++;
        }
        return;
    }
    stream& s = of(e);
    if (times* t = s.at(e.seq, true))
        t->replayed = std::max<std::uint64_t>(now, 1);
    s.forget(e.seq - BEHIND);
}

bool replay_history::happened(const replay_cause& c, const replay_causes& of_,
                              std::uint64_t& at) {
    switch (c.kind) {
        case replay_cause::ACTION: {
            const actor_t& a = m_actors[of_.actor];
            at = a.any_done ? a.done_ps : m_host.done_ps;
            return true;
        }
        case replay_cause::ANSWER: {
            const auto found = m_answers.find(c.number);
            if (found == m_answers.end())
                return false;
            at = found->second;
            return true;
        }
        case replay_cause::ACKS: {
            const std::deque<std::uint64_t>& list = m_ack_times[c.life];
            const std::uint64_t forgotten = m_acks_forgotten[c.life];
            if (list.size() + forgotten < c.number)
                return false;
            at = c.number > forgotten ? list[c.number - forgotten - 1] : 0;
            return true;
        }
        default: {
            stream& s = of(c.entry);
            if (!s.list.empty() && later(s.first, c.entry.seq)) {
                at = 0;  // long ago
                return true;
            }
            const times* t = s.at(c.entry.seq, false);
            if (!t || t->replayed == 0)
                return false;
            at = t->replayed;
            return true;
        }
    }
}

bool replay_history::due(const replay_causes& c, const record& r,
                         std::uint64_t& at, replay_cause& why) {
    replay_causes all = c;
    if (c.doorbell) {
        if (c.any_completion)
            follow_entry(all, ring_entry::COMPLETION, c.context, c.life,
                         c.completions);
        if (c.any_notification)
            follow_entry(all, ring_entry::NOTIFICATION, c.context, c.life,
                         c.notifications);
    }
    if (all.list.empty()) {
        at = r.time_ps;
        return true;
    }
    std::uint64_t anchor_recorded = 0, anchor = 0, earliest = 0;
    for (const replay_cause& cause : all.list) {
        if (cause.recorded_ps > r.time_ps)
            continue;  // it was not there yet, whatever is said of it
        std::uint64_t when = 0;
        if (!happened(cause, c, when)) {
            why = cause;
            return false;
        }
        earliest = std::max(earliest, when);
        if (cause.recorded_ps >= anchor_recorded) {
            anchor_recorded = cause.recorded_ps;
            anchor = when;
        }
    }
    // Of what had to wait for the bus, nobody knows when the host wanted it.
    const std::uint64_t after =
        c.as_soon_as_possible ? 0 : r.time_ps - anchor_recorded;
    at = std::max(anchor + after, earliest);
    return true;
}

}  // namespace prawn
