// SPDX-License-Identifier: Apache-2.0
// One replay of a recording, from the file to the figures.

#ifndef PRAWN_RECORD_REPLAY_RUN_H
#define PRAWN_RECORD_REPLAY_RUN_H

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "record/recording.h"
#include "record/replay_monitor.h"
#include "record/replay_statistics.h"
#include "sim/config.h"
#include "support/events.h"
#include "trace/observation.h"

namespace prawn {

struct replay_request {
    std::string file;
    // What is to be different; both empty: nothing.
    std::string profile;
    std::vector<std::string> changes;  // KEY=VALUE
    bool dependencies = false;         // else open loop
    // Run the unchanged recording beside a changed one, in a process of its
    // own, to have its counters too.
    bool baseline = true;

    trace_files views;           // of the replay's events
    event_sink* sink = nullptr;  // and one more; outlives the replay
};

struct replay_result {
    struct node {
        replay_statistics recorded, replayed;
    };

    recording_header header;
    bool changed = false;              // compared by outcome, not by time
    std::vector<std::string> changes;  // "blocks.utlb.entries: 1024 -> 256"
    std::string profile;               // of the replay

    recording_reader::ending ending = recording_reader::ending::OPEN;
    std::string trouble;        // of the file; empty if it is complete
    std::uint64_t records = 0;  // read
    std::uint64_t recorded_end_ps = 0, replayed_end_ps = 0;

    bool interrupted = false;
    std::string error;  // it could not go on
    std::uint64_t differences = 0;
    replay_difference first;
    std::uint64_t actions_left = 0;

    // Of an unchanged one: records that came in another order within their
    // instant.
    std::uint64_t reordered = 0;

    // Of a changed replay.
    std::vector<node> nodes;
    std::uint64_t zeros = 0, unread = 0, excused = 0, beyond = 0;
    nlohmann::json counters;           // as cluster::write_json has them
    nlohmann::json recorded_counters;  // null without a baseline
    std::string baseline_trouble;      // why there is none, if it was wanted

    // 0 as recorded (or: same outcome), 1 different or damaged, 130.
    int status() const;
};

// Once in a process, since a model can be elaborated only once. Throws
// recording_error, config_error or std::runtime_error for what is wrong before
// it starts.
replay_result run_replay(const replay_request& request);

// The configuration of the recorded run, changed as asked. Also says what is
// different.
sim_config replay_config(const recording_header& was_run,
                         const replay_request& request,
                         std::vector<std::string>& differences);

// The results as text and as JSON.
void write_text(const replay_request& request, const replay_result& result);
nlohmann::ordered_json to_json(const replay_result& result);

}  // namespace prawn

#endif
