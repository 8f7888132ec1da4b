// SPDX-License-Identifier: Apache-2.0
#include "trace/perfetto_lanes.h"

#include <cstring>

namespace prawn {

// any_open() must give the same order in every run, so addresses cannot do.
bool perfetto_lanes::by_name::operator()(const key& a, const key& b) const {
    const int order = std::strcmp(a.first, b.first);
    return order != 0 ? order < 0 : a.second < b.second;
}

std::size_t perfetto_lanes::find(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t i = 0; i < m_lanes.size(); i++) {
        const lane& l = m_lanes[i];
        if (!l.open && (l.free <= begin || (l.begin == begin && l.free == end)))
            return i;
    }
    m_lanes.emplace_back();
    return m_lanes.size() - 1;
}

std::size_t perfetto_lanes::place(std::uint64_t begin, std::uint64_t end) {
    const std::size_t i = find(begin, end);
    m_lanes[i].begin = begin;
    m_lanes[i].free = end;
    return i;
}

std::size_t perfetto_lanes::open(const key& stage, std::uint64_t begin) {
    // No end: nothing can share the lane, so it must be free at its begin.
    const std::size_t i = find(begin, 0);
    m_lanes[i].open = true;
    m_lanes[i].begin = begin;
    m_open[stage] = {i, begin};
    return i;
}

perfetto_lanes::closed perfetto_lanes::close(const key& stage,
                                             std::uint64_t end) {
    const auto it = m_open.find(stage);
    const open_slice slice = it->second;
    m_open.erase(it);
    closed result;
    result.lane = slice.lane;
    result.end = end > slice.begin ? end : slice.begin + 1;
    m_lanes[slice.lane].open = false;
    m_lanes[slice.lane].free = result.end;
    return result;
}

}  // namespace prawn
