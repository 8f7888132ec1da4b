// SPDX-License-Identifier: Apache-2.0
// Slices of one track must nest. A block may have many stages open at a time
// and they end in any order, so each block has as many tracks ("lanes") as it
// needs, and this class says which slice goes where.

#ifndef PRAWN_TRACE_PERFETTO_LANES_H
#define PRAWN_TRACE_PERFETTO_LANES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace prawn {

// Times in nanoseconds, which is what the viewer shows.
class perfetto_lanes
{
public:
    struct open_slice {
        std::size_t lane = 0;
        std::uint64_t begin = 0;
    };
    // Names an open stage: its name (by address) and tag.
    using key = std::pair<const char*, std::uint64_t>;

    // The first lane free from begin on; it is taken until end. Slices with
    // the same times share a lane: they nest.
    std::size_t place(std::uint64_t begin, std::uint64_t end);

    // The lane of a stage that begins now and has no end yet.
    std::size_t open(const key& stage, std::uint64_t begin);

    bool is_open(const key& stage) const { return m_open.count(stage) != 0; }

    // Ends it; the time is at least one after its begin. Precondition: open.
    struct closed {
        std::size_t lane = 0;
        std::uint64_t end = 0;
    };
    closed close(const key& stage, std::uint64_t end);

    // Some open stage; precondition: there is one.
    key any_open() const { return m_open.begin()->first; }
    bool none_open() const { return m_open.empty(); }
    std::size_t size() const { return m_lanes.size(); }

private:
    struct lane {
        bool open = false;
        std::uint64_t begin = 0;
        std::uint64_t free = 0;  // from this time on
    };
    std::size_t find(std::uint64_t begin, std::uint64_t end);

    // In order of the stages' names, not of addresses: see the .cpp.
    struct by_name {
        bool operator()(const key& a, const key& b) const;
    };
    std::vector<lane> m_lanes;
    std::map<key, open_slice, by_name> m_open;
};

}  // namespace prawn

#endif
