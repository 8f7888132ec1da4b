// SPDX-License-Identifier: Apache-2.0
#include "host/bus_medium.h"

#include <algorithm>

namespace prawn {

namespace {
// Served jobs kept at the front of a flow before they are thrown away.
constexpr std::size_t COMPACT = 64;
}  // namespace

void bus_medium::add(unsigned flow, const job& j) {
    std::vector<job>& jobs = m_flows[flow];
    std::size_t& index = m_at.index[flow];
    if (index >= COMPACT && index * 2 >= jobs.size()) {
        jobs.erase(jobs.begin(),
                   jobs.begin() + static_cast<std::ptrdiff_t>(index));
        index = 0;
    }
    if (index == jobs.size())
        m_at.left[flow] = j.bursts;
    m_at.pending |= 1U << flow;
    jobs.push_back(j);
    m_jobs++;
    m_next_known = false;
}

void bus_medium::next_job(position& p, unsigned flow) const {
    if (++p.index[flow] < m_flows[flow].size())
        p.left[flow] = m_flows[flow][p.index[flow]].bursts;
    else
        p.pending &= ~(1U << flow);
}

template <typename F>
void bus_medium::run(position& p, std::uint64_t until, F on_end) const {
    for (;;) {
        // The usual case: one flow alone.
        if ((p.pending & (p.pending - 1)) == 0) {
            if (p.pending == 0)
                return;
            unsigned f = 0;
            while (p.pending >> f != 1)
                f++;
            const job& j = m_flows[f][p.index[f]];
            const std::uint64_t start = std::max(p.free, j.at);
            if (start >= until)
                return;
            p.free = start;
            p.last = f;
            const std::uint64_t full = (p.left[f] - 1) * j.burst;
            if (until - start <= full && full > 0) {
                const std::uint64_t n = (until - start + j.burst - 1) / j.burst;
                p.free += n * j.burst;
                p.left[f] -= static_cast<std::uint32_t>(n);
                return;
            }
            p.free += full + j.tail;
            next_job(p, f);
            if (!on_end(j, p.free))
                return;
            continue;
        }

        std::array<unsigned, FLOWS> active;
        unsigned count = 0;
        std::uint64_t limit = until;
        for (unsigned f = 0; f < FLOWS; f++) {
            if (!(p.pending >> f & 1))
                continue;
            const std::uint64_t at = m_flows[f][p.index[f]].at;
            if (at <= p.free)
                active[count++] = f;
            else
                limit = std::min(limit, at);
        }
        if (count == 0) {
            if (limit >= until)
                return;
            p.free = limit;
            continue;
        }
        if (p.free >= until)
            return;

        // Whole rounds in which every flow sends a full burst.
        std::uint64_t round = 0;
        std::uint32_t rounds = ~std::uint32_t{0};
        for (unsigned i = 0; i < count; i++) {
            const unsigned f = active[i];
            round += m_flows[f][p.index[f]].burst;
            rounds = std::min(rounds, p.left[f] - 1);
        }
        if (rounds > 0 && round > 0 && limit - p.free < rounds * round)
            rounds = static_cast<std::uint32_t>((limit - p.free) / round);
        if (rounds > 0) {
            p.free += rounds * round;
            unsigned end = active[count - 1];  // whose turn ends a round
            for (unsigned i = 0; i < count; i++) {
                p.left[active[i]] -= rounds;
                if (active[i] <= p.last)
                    end = active[i];
            }
            p.last = end;
            if (p.free >= limit)
                continue;
        }

        // One burst of the flow whose turn it is.
        unsigned f = active[0];
        for (unsigned i = 0; i < count; i++) {
            if (active[i] > p.last) {
                f = active[i];
                break;
            }
        }
        const job& j = m_flows[f][p.index[f]];
        p.last = f;
        if (--p.left[f] > 0) {
            p.free += j.burst;
            continue;
        }
        p.free += j.tail;
        next_job(p, f);
        if (!on_end(j, p.free))
            return;
    }
}

void bus_medium::advance(std::uint64_t until, std::vector<finished>& out) {
    if (m_jobs == 0)
        return;
    run(m_at, until, [this, &out](const job& j, std::uint64_t end) {
        m_jobs--;
        m_busy += (j.bursts - 1) * j.burst + j.tail;
        if (j.user) {
            out.push_back({j.user, end});
            m_next_known = false;
        }
        return true;
    });
    if (m_jobs == 0) {
        for (unsigned f = 0; f < FLOWS; f++) {
            m_flows[f].clear();
            m_at.index[f] = 0;
        }
    }
}

std::uint64_t bus_medium::next_end() const {
    if (m_next_known)
        return m_next_end;
    std::uint64_t result = NEVER;
    position p = m_at;
    run(p, NEVER, [&result](const job& j, std::uint64_t end) {
        if (j.user)
            result = end;
        return result == NEVER;
    });
    m_next_end = result;
    m_next_known = true;
    return result;
}

std::uint64_t bus_medium::earliest_end(std::uint64_t now) const {
    std::uint64_t first = NEVER;
    if (m_jobs == 0)
        return first;
    position p = m_at;
    run(p, now, [&first](const job& j, std::uint64_t end) {
        if (j.user)
            first = std::min(first, end);
        return true;
    });
    for (unsigned f = 0; f < FLOWS; f++) {
        if (!(p.pending >> f & 1))
            continue;
        // As if the medium belonged to this flow from now on.
        std::uint64_t end = p.free;
        std::uint32_t bursts = p.left[f];
        for (std::size_t k = p.index[f]; k < m_flows[f].size(); k++) {
            const job& j = m_flows[f][k];
            if (k != p.index[f])
                bursts = j.bursts;
            end = std::max(end, j.at) + (bursts - 1) * j.burst + j.tail;
            if (j.user) {
                first = std::min(first, end);
                break;
            }
        }
    }
    return first;
}

}  // namespace prawn
