// SPDX-License-Identifier: Apache-2.0
// A recording on its way into a replay: records with data of their own, read
// ahead as far as somebody asks.

#ifndef PRAWN_RECORD_REPLAY_FEED_H
#define PRAWN_RECORD_REPLAY_FEED_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/recording.h"

namespace prawn {

class replay_feed;
struct kept_release;

// A record that outlives the reader's next one.
struct feed_record : record {
    std::uint64_t number = 0;  // in the file, from 1

private:
    friend class replay_feed;
    friend struct kept_release;
    std::vector<std::uint8_t> bytes;
};

// Goes back to the feed when nobody wants it any more; one without a feed is
// deleted.
struct kept_release {
    replay_feed* feed = nullptr;
    void operator()(feed_record* r) const;
};
using kept = std::unique_ptr<feed_record, kept_release>;

class replay_feed
{
public:
    // Throws recording_error as the reader does.
    explicit replay_feed(const std::string& path) : m_reader(path) {}
    replay_feed(const replay_feed&) = delete;
    replay_feed& operator=(const replay_feed&) = delete;

    const recording_reader& reader() const { return m_reader; }

    // The next record; null at the end of what can be read. Throws
    // recording_error for a record of a node that the recording has not.
    kept next();

    std::uint64_t position() const { return m_position; }  // records read
    std::uint64_t time_ps() const { return m_time; }       // of the last
    bool at_end() const { return m_end; }
    std::uint64_t bytes() const { return m_bytes; }  // of records that live

private:
    friend struct kept_release;

    recording_reader m_reader;
    std::uint64_t m_position = 0;
    std::uint64_t m_time = 0;
    std::uint64_t m_bytes = 0;
    bool m_end = false;
    std::vector<std::unique_ptr<feed_record>> m_unused;
};

// Which node, and what the record says: for messages.
std::string describe(const record& r);

}  // namespace prawn

#endif
