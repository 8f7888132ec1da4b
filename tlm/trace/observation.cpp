// SPDX-License-Identifier: Apache-2.0
#include "trace/observation.h"

#include <set>
#include <stdexcept>

#include "trace/csv_writer.h"
#include "trace/pcapng_writer.h"
#include "trace/perfetto_writer.h"

namespace prawn {

observation::observation(event_log& log, const trace_files& files,
                         const std::string& about) :
    m_log(log) {
    std::set<std::string> paths;
    for (const std::string& path :
         {files.pcapng, files.perfetto, files.csv, files.record})
        if (!path.empty() && !paths.insert(path).second)
            throw std::runtime_error(
                "trace.pcapng, trace.perfetto, trace.csv, trace.record: two "
                "have the same path: give each a file of its own");
    // All files first, so that nothing is attached if one of them fails.
    std::unique_ptr<event_sink> pcapng;
    if (!files.pcapng.empty())
        pcapng = std::make_unique<pcapng_writer>(files.pcapng, about);
    if (!files.perfetto.empty())
        m_sinks.push_back(std::make_unique<perfetto_writer>(files.perfetto));
    if (!files.csv.empty())
        m_sinks.push_back(std::make_unique<csv_writer>(files.csv));
    for (auto& sink : m_sinks)
        m_log.attach_events(*sink);
    if (pcapng) {
        m_log.attach_packets(*pcapng);
        m_sinks.push_back(std::move(pcapng));
    }
}

observation::~observation() {
    for (auto& sink : m_sinks)
        m_log.detach(*sink);
}

}  // namespace prawn
