// SPDX-License-Identifier: Apache-2.0
#include "record/replay_match.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "prawn_hw.h"
#include "prawn_names.h"
#include "support/events.h"

namespace prawn {

namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

// Registers whose value is the moment's or the configuration's.
bool may_differ(const record& access) {
    const std::uint64_t at = access.address;
    if (access.bar == 2)
        return at % PAGE == PRAWN_DOORBELL_TIME;
    if (access.bar != 0)
        return false;
    switch (at & ~std::uint64_t{3}) {
        case PRAWN_BAR0_TIME:
        case PRAWN_BAR0_TIME + 4:
        case PRAWN_BAR0_COUNTER_VALUE:
        case PRAWN_BAR0_COUNTER_VALUE + 4:
        case PRAWN_BAR0_FIFO_LEVEL:
        case PRAWN_BAR0_PROFILE:
        case PRAWN_BAR0_UTLB_GEOMETRY:
            return true;
        default:
            return false;
    }
}

std::string hex(std::uint64_t v) {
    std::ostringstream out;
    out << "0x" << std::hex << v;
    return out.str();
}

std::string title(const ring_entry& e) {
    std::string text = std::string(name(e.kind)) + " " + std::to_string(e.seq);
    if (e.kind == ring_entry::COMPLETION || e.kind == ring_entry::NOTIFICATION)
        text += " of context " + std::to_string(e.context);
    return text;
}

// What people want to know of an entry.
std::string content(const ring_entry& e, const std::vector<std::uint8_t>& d) {
    std::ostringstream out;
    if (e.kind == ring_entry::COMPLETION && d.size() == 64) {
        prawn_completion c;
        std::memcpy(&c, d.data(), sizeof(c));
        out << "status " << c.status << ", " << c.bytes << " bytes, message "
            << c.message;
    } else if (e.kind == ring_entry::NOTIFICATION && d.size() == 64) {
        prawn_notification n;
        std::memcpy(&n, d.data(), sizeof(n));
        out << "type " << unsigned{n.type} << ", message " << n.message
            << " of context " << n.source_context << " of node "
            << n.source_node << ", " << n.length << " bytes, count " << n.count;
    } else if (e.kind == ring_entry::ACK &&
               d.size() == sizeof(prawn_admin_ack)) {
        prawn_admin_ack a;
        std::memcpy(&a, d.data(), sizeof(a));
        out << "status " << a.status << ", value " << a.value;
    } else if (e.kind == ring_entry::EVENT &&
               d.size() == sizeof(prawn_kernel_event)) {
        prawn_kernel_event k;
        std::memcpy(&k, d.data(), sizeof(k));
        out << "type " << unsigned{k.type} << ", node " << k.node << ", epoch "
            << k.epoch << ", value " << k.value;
    } else {
        out << d.size() << " bytes";
    }
    return out.str();
}

}  // namespace

void replay_match::differ(std::uint64_t number, std::uint64_t time_ps,
                          const std::string& text) {
    m_monitor.differ(
        {number, time_ps, "node " + std::to_string(m_node) + ": " + text});
}

// -- BAR reads --------------------------------------------------------------

void replay_match::expect_result(const record& access) {
    result& r = m_results[access.order];
    r.excused = may_differ(access);
    r.address = access.address;
    r.bar = access.bar;
}

void replay_match::recorded_result(const feed_record& r) {
    const auto found = m_results.find(r.order);
    if (found == m_results.end())
        return;
    found->second.number = r.number;
    found->second.time_ps = r.time_ps;
    if (found->second.came) {
        m_open_came--;
        const std::uint64_t came = found->second.value;
        found->second.value = r.value;
        settle(found->second, came);
        m_results.erase(found);
    } else {
        found->second.recorded = true;
        found->second.value = r.value;
        m_open_recorded++;
    }
}

void replay_match::came_result(std::uint64_t order, std::uint64_t value) {
    const auto found = m_results.find(order);
    if (found == m_results.end())
        return;
    if (found->second.recorded) {
        m_open_recorded--;
        settle(found->second, value);
        m_results.erase(found);
    } else {
        found->second.came = true;
        found->second.value = value;
        m_open_came++;
    }
}

// r.value is the recorded one.
void replay_match::settle(result& r, std::uint64_t came) {
    if (r.value == came)
        return;
    if (r.excused) {
        m_excused++;
        return;
    }
    differ(r.number, r.time_ps,
           "a read of bar " + std::to_string(r.bar) + " + " + hex(r.address) +
               " got " + hex(r.value) + ", and gets " + hex(came) + " now");
}

// -- DMA writes -------------------------------------------------------------

void replay_match::recorded_write(const feed_record& r, const ring_entry& e) {
    half h;
    h.recorded = true;
    h.ok = r.status == record_status::OK;
    h.number = r.number;
    h.time_ps = r.time_ps;
    h.address = r.address;
    h.data.assign(r.data, r.data + r.data_size);
    if (e.kind == ring_entry::NONE)
        stream(std::move(h));
    else
        one_side(e, std::move(h));
}

void replay_match::came_write(const ring_entry& e, std::uint64_t address,
                              std::uint32_t length, const std::uint8_t* data,
                              bool ok) {
    half h;
    h.ok = ok;
    h.time_ps = now_ps();
    h.address = address;
    h.data.assign(data, data + length);
    if (e.kind == ring_entry::NONE)
        stream(std::move(h));
    else
        one_side(e, std::move(h));
}

void replay_match::one_side(const ring_entry& e, half h) {
    clear_times(e.kind, h.data.data());
    const auto found = m_entries.find(e);
    if (found == m_entries.end()) {
        opened(h.recorded);
        m_entries.emplace(e, std::move(h));
        return;
    }
    const half& other = found->second;
    if (other.recorded == h.recorded) {
        // The same number twice on one side: the later one counts.
        found->second = std::move(h);
        return;
    }
    closed(other.recorded);
    if (other.recorded)
        compare(e, other, h);
    else
        compare(e, h, other);
    m_entries.erase(found);
}

void replay_match::compare(const ring_entry& e, const half& recorded,
                           const half& came) {
    if (recorded.ok != came.ok)
        differ(recorded.number, recorded.time_ps,
               title(e) + (recorded.ok ? " was written, and is refused now"
                                       : " was refused, and is written now"));
    else if (recorded.data != came.data)
        differ(recorded.number, recorded.time_ps,
               title(e) + " said " + content(e, recorded.data) + ", and says " +
                   content(e, came.data) + " now");
    else if (recorded.address != came.address)
        differ(recorded.number, recorded.time_ps,
               title(e) + " was written to " + hex(recorded.address) +
                   ", and goes to " + hex(came.address) + " now");
}

// A write to memory that is no ring. Never crosses a page.
void replay_match::stream(half h) {
    std::deque<half>& waiting = m_pages[h.address / PAGE];
    match_stream(waiting, h);
    if (h.done < h.data.size()) {
        opened(h.recorded);
        waiting.push_back(std::move(h));
    } else if (waiting.empty()) {
        m_pages.erase(h.address / PAGE);
    }
}

void replay_match::match_stream(std::deque<half>& waiting, half& h) {
    while (h.done < h.data.size() && !waiting.empty() &&
           waiting.front().recorded != h.recorded) {
        half& other = waiting.front();
        const half& recorded = h.recorded ? h : other;
        const half& came = h.recorded ? other : h;
        const std::size_t n =
            std::min(h.data.size() - h.done, other.data.size() - other.done);
        const std::uint64_t at = recorded.address + recorded.done;
        const bool same_place = at == came.address + came.done;
        const bool same = same_place && recorded.ok == came.ok &&
                          std::equal(recorded.data.begin() + recorded.done,
                                     recorded.data.begin() + recorded.done +
                                         static_cast<std::ptrdiff_t>(n),
                                     came.data.begin() + came.done);
        if (!same_place)
            differ(recorded.number, recorded.time_ps,
                   "data were written to " + hex(at) + ", and " +
                       hex(came.address + came.done) + " comes first now");
        else if (!same)
            differ(recorded.number, recorded.time_ps,
                   recorded.ok != came.ok
                       ? "data for " + hex(at) +
                             (recorded.ok ? " were written, and are refused now"
                                          : " were refused, and are written "
                                            "now")
                       : "other data than were written to " + hex(at) +
                             " come now");
        h.done += static_cast<std::uint32_t>(n);
        other.done += static_cast<std::uint32_t>(n);
        if (other.done == other.data.size()) {
            closed(other.recorded);
            waiting.pop_front();
        }
    }
}

// -- Interrupts -------------------------------------------------------------

void replay_match::recorded_interrupt(const feed_record& r) {
    const bool intx = r.kind == record_kind::INTX;
    interrupt(intx, {true, intx ? std::uint32_t{r.flag} : r.vector, r.number,
                     r.time_ps});
}

void replay_match::came_interrupt(bool intx, std::uint32_t value) {
    interrupt(intx, {false, value, 0, now_ps()});
}

void replay_match::interrupt(bool intx, const signal& s) {
    std::deque<signal>& waiting = intx ? m_intx : m_vectors[s.value];
    if (waiting.empty() || waiting.front().recorded == s.recorded) {
        opened(s.recorded);
        waiting.push_back(s);
        return;
    }
    const signal other = waiting.front();
    waiting.pop_front();
    closed(other.recorded);
    const signal& recorded = s.recorded ? s : other;
    if (s.value != other.value)
        differ(recorded.number, recorded.time_ps,
               "INTx had another level than it has now");
}

// -- What is left -----------------------------------------------------------

void replay_match::missing(const half& h, const char* what) {
    differ(h.number, h.time_ps,
           std::string(what) + " at " + hex(h.address + h.done) +
               " was written, and nothing comes now");
}

void replay_match::expire(std::uint64_t number) {
    for (auto it = m_entries.begin(); it != m_entries.end();) {
        if (!it->second.recorded || it->second.number >= number) {
            ++it;
            continue;
        }
        missing(it->second, title(it->first).c_str());
        closed(true);
        it = m_entries.erase(it);
    }
    for (auto page = m_pages.begin(); page != m_pages.end();) {
        std::deque<half>& waiting = page->second;
        while (!waiting.empty() && waiting.front().recorded &&
               waiting.front().number < number) {
            missing(waiting.front(), "data");
            closed(true);
            waiting.pop_front();
        }
        page = waiting.empty() ? m_pages.erase(page) : std::next(page);
    }
    const auto old = [&](std::deque<signal>& waiting, const std::string& what) {
        while (!waiting.empty() && waiting.front().recorded &&
               waiting.front().number < number) {
            differ(waiting.front().number, waiting.front().time_ps,
                   what + " was raised, and is not now");
            closed(true);
            waiting.pop_front();
        }
    };
    for (auto& [vector, waiting] : m_vectors)
        old(waiting, "vector " + std::to_string(vector));
    old(m_intx, "INTx");
    for (auto it = m_results.begin(); it != m_results.end();) {
        const result& r = it->second;
        if (!r.recorded || r.number >= number) {
            ++it;
            continue;
        }
        differ(r.number, r.time_ps,
               "a read of bar " + std::to_string(r.bar) + " + " +
                   hex(r.address) + " was answered, and is not now");
        closed(true);
        it = m_results.erase(it);
    }
}

void replay_match::finish(bool came_too) {
    expire(~std::uint64_t{0});
    m_beyond += m_open_came;
    if (!came_too)
        return;
    for (const auto& [e, h] : m_entries)
        differ(
            ~std::uint64_t{0}, h.time_ps,
            title(e) + " comes, and was not recorded: " + content(e, h.data));
    for (const auto& [page, waiting] : m_pages)
        for (const half& h : waiting)
            differ(~std::uint64_t{0}, h.time_ps,
                   "data come for " + hex(h.address + h.done) +
                       ", and none were recorded");
    for (const auto& [vector, waiting] : m_vectors)
        for (const signal& s : waiting)
            differ(~std::uint64_t{0}, s.time_ps,
                   "vector " + std::to_string(vector) +
                       " is raised, and was not recorded");
    for (const signal& s : m_intx)
        differ(~std::uint64_t{0}, s.time_ps,
               "INTx changes, and did not when it was recorded");
    m_beyond = 0;
}

}  // namespace prawn
