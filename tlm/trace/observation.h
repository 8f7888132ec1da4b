// SPDX-License-Identifier: Apache-2.0
// The views of the event stream that one run writes.

#ifndef PRAWN_TRACE_OBSERVATION_H
#define PRAWN_TRACE_OBSERVATION_H

#include <memory>
#include <string>
#include <vector>

#include "support/events.h"

namespace prawn {

// Paths, keys trace.pcapng and so on of a configuration; empty: not wanted.
struct trace_files {
    std::string pcapng;
    std::string perfetto;
    std::string csv;
    std::string record;  // no view of the events: see tlm/record
};

// Opens the files and attaches them to the log; its destructor completes them.
// Whoever runs the model calls flush() when the model stands still and before
// the process ends by a signal.
class observation
{
public:
    // about: profile and configuration, for the properties of the files.
    // Throws std::runtime_error with one line if a file cannot be made or is
    // named twice. The recording is only looked at for that.
    observation(event_log& log, const trace_files& files,
                const std::string& about);
    observation(const observation&) = delete;
    observation& operator=(const observation&) = delete;
    ~observation();

    void flush() { m_log.flush(); }

private:
    event_log& m_log;
    std::vector<std::unique_ptr<event_sink>> m_sinks;
};

}  // namespace prawn

#endif
