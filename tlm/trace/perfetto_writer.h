// SPDX-License-Identifier: Apache-2.0
// The event stream as a Chrome JSON trace for https://ui.perfetto.dev (or any
// other viewer of that format).
//
// A node is a process, a block one or more of its tracks. Stages are slices;
// what happens at one instant is a slice one nanosecond wide, so that arrows
// can hold on to it; levels are curves. Arrows follow a message by its identity
// through all blocks and nodes: from the doorbell to the notification. The
// viewer knows nanoseconds; argument "ps" of each slice has the exact time.
//
// Written as an array without its closing bracket until close: the format
// allows that, so that the trace of a killed run can be opened.

#ifndef PRAWN_TRACE_PERFETTO_WRITER_H
#define PRAWN_TRACE_PERFETTO_WRITER_H

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "support/events.h"
#include "trace/output_file.h"
#include "trace/perfetto_lanes.h"

namespace prawn {

class perfetto_writer : public event_sink
{
public:
    explicit perfetto_writer(const std::string& path);
    ~perfetto_writer() override;

    void on_event(const event& e) override;
    void flush() override { m_file.flush(); }
    bool ok() const { return m_file.ok(); }

private:
    using track = std::pair<std::uint16_t, block_id>;

    // Messages whose arrow is remembered; beyond that the oldest start anew.
    static constexpr std::size_t MESSAGES = 65536;

    void begin_entry(char phase, const event& e, std::uint64_t ns,
                     std::size_t lane);
    void arguments(const event& e, bool end);
    void end_entry();
    void slice(const event& e, std::uint64_t begin, std::uint64_t end);
    void close_stage(const event& e, perfetto_lanes& lanes,
                     const perfetto_lanes::key& stage, bool with_arguments);
    void arrow(const event& e, std::uint64_t ns, std::size_t lane);
    void name_node(std::uint16_t node);
    void name_lane(const event& e, std::size_t lane);
    void metadata(std::uint64_t pid, std::uint64_t tid, const char* what,
                  const char* key, const std::string& value);

    output_file m_file;
    std::map<track, perfetto_lanes> m_lanes;
    std::map<track, std::size_t> m_named;  // lanes that have a name already
    std::unordered_set<std::uint16_t> m_nodes;
    std::unordered_set<std::uint64_t> m_messages;  // arrow has begun
    std::deque<std::uint64_t> m_oldest;
};

}  // namespace prawn

#endif
