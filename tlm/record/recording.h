// SPDX-License-Identifier: Apache-2.0
// A recording: everything that crossed the host ports of a run, so that the
// run can be looked at, compared, and repeated without its guests.
// docs/recordings.md describes the file.

#ifndef PRAWN_RECORD_RECORDING_H
#define PRAWN_RECORD_RECORDING_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace prawn {

// Raised when the file or a record changes its meaning, and when a kind is
// added: a reader of another version refuses the file.
constexpr std::uint32_t RECORDING_FORMAT = 1;

// What is wrong with a recording, where, and the mend; one line.
class recording_error : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

// Numbers are written to files: append only.
enum class record_kind : std::uint8_t {
    NONE = 0,
    // host -> card
    ATTACH = 1,
    DETACH = 2,
    RESET = 3,
    BUS_MASTER = 4,  // flag: on
    BAR_READ = 5,    // bar, address (offset), length, order
    BAR_WRITE = 6,   // and value, posted
    MAP = 7,         // address, length: guest memory that DMA may reach now
    UNMAP = 8,
    // card -> host
    BAR_RESULT = 9,     // order, length, value: the answer of a BAR_READ
    BAR_WRITTEN = 10,   // order: the response that returns the write credit
    BAR_ACCEPTED = 11,  // order: the bus took what it had let wait (END_REQ)
    DMA_READ = 12,      // order, address, length, context, channel, status,
                        // late, began_ps; data if status is OK
    DMA_WRITE = 13,     // the same; data always
    DMA_ACCEPTED = 14,  // order: the host took what it had let wait (END_REQ)
    MSIX = 15,          // vector
    INTX = 16,          // flag: level
    // neither: for the replay
    MEMORY = 17,  // address, data: what guest memory holds at this time
};
constexpr std::size_t RECORD_KINDS = 18;

// Answers of the host to DMA.
enum class record_status : std::uint8_t {
    OK = 0,
    ADDRESS_ERROR = 1,  // no such memory, not permitted, no bus mastering
    OTHER_ERROR = 2,
};

// One entry. Which fields mean something depends on the kind, as said above;
// the others are zero. time_ps, delta, node are always there.
struct record {
    std::uint64_t time_ps = 0;  // never falls within a file
    // Delta cycles of the kernel since it came to this time: orders what
    // happens at the same instant.
    std::uint32_t delta = 0;
    std::uint16_t node = 0;
    record_kind kind = record_kind::NONE;

    // host -> card: the host made it from within a call by the card's side (an
    // answer or an interrupt that it just got), and not in a process of its
    // own. What called it is the nearest record before it of the same node
    // that goes card -> host and is at the same time and delta.
    bool nested = false;

    std::uint8_t bar = 0;
    bool posted = false;
    bool flag = false;
    // DMA: the answer did not come from within the request's call but at a
    // later time or delta; began_ps is when the request had come.
    bool late = false;
    std::uint8_t channel = 0;   // dma_channel of nic/types.h
    std::uint16_t context = 0;  // 0xffff: the kernel's
    record_status status = record_status::OK;
    std::uint32_t vector = 0;

    // BAR: number of the access as the host counts. DMA: number of the request
    // at this node, from 1, in the order in which they came to the host.
    std::uint64_t order = 0;
    std::uint64_t address = 0;  // BAR offset, bus address
    std::uint64_t length = 0;   // bytes: BAR 1, 2, 4, 8; DMA 1 to 4096
    std::uint64_t value = 0;    // of a BAR access
    std::uint64_t began_ps = 0;

    // DMA and MEMORY. Of a record that a reader has handed out: good until
    // the next call of next().
    const std::uint8_t* data = nullptr;
    std::uint32_t data_size = 0;

    bool to_card() const {
        return kind >= record_kind::ATTACH && kind <= record_kind::UNMAP;
    }
    bool to_host() const {
        return kind >= record_kind::BAR_RESULT && kind <= record_kind::INTX;
    }
    bool dma() const {
        return kind == record_kind::DMA_READ || kind == record_kind::DMA_WRITE;
    }
    // The same entry, data included.
    bool operator==(const record& o) const;
    bool operator!=(const record& o) const { return !(*this == o); }
};
constexpr std::uint32_t RECORD_MAX_DATA = 4096;
constexpr unsigned RECORD_MAX_NODES = 16;

// "bar_write", as show, export and the text form call it; nullptr if there is
// no such kind.
const char* name(record_kind kind);
record_kind record_kind_of(const std::string& name);  // NONE if there is none

// What was recorded, at the beginning of the file.
struct recording_header {
    std::uint32_t format = RECORDING_FORMAT;
    std::string prawn_version;
    std::string time_mode;  // "free-running", ...
    unsigned nodes = 0;
    // KEY=VALUE of the whole effective configuration, defaults included, as
    // load_config("", config) takes them. Without the profile, which stands
    // below, and without the run's files and sockets (trace.*, node.*).
    std::vector<std::string> config;
    std::string profile_name;
    std::string profile_text;       // the whole TOML file
    std::uint32_t profile_crc = 0;  // CRC-32C of it
    std::string firmware_hash;      // empty: no firmware
    bool operator==(const recording_header& o) const;
};

// Says that the recording is complete; at its end.
struct recording_trailer {
    std::uint64_t time_ps = 0;  // when the run ended
    std::uint64_t records = 0;
    std::array<std::uint64_t, RECORD_KINDS> by_kind{};
    std::uint64_t bytes = 0;  // of all records, as they are before zstd
    // CRC-32C of these bytes. Two runs with the same configuration that did
    // the same have the same; when each was flushed does not matter.
    std::uint32_t digest = 0;
};

// Appends records to a file, in compressed frames of bounded size. Whenever
// the process is killed, what is in the file can be read up to a whole frame.
class recording_writer
{
public:
    // Replaces what is there. Throws std::runtime_error with one line if the
    // file cannot be made.
    recording_writer(const std::string& path, const recording_header& header);
    recording_writer(const recording_writer&) = delete;
    recording_writer& operator=(const recording_writer&) = delete;
    // Flushes; only finish() makes the recording complete.
    ~recording_writer();

    // Records of all nodes, in order; times must not fall.
    void write(const record& r);
    // All records so far are in the file, as far as other processes see.
    void flush();
    // Writes the trailer and closes the file. Nothing can follow.
    void finish(std::uint64_t time_ps);

    // False after a write has failed (disk full): one line was printed, and
    // later records are dropped.
    bool ok() const;
    std::uint64_t records() const;
    const std::string& path() const;

private:
    struct impl;
    std::unique_ptr<impl> m;
};

// Reads one from front to back in bounded memory, whatever is in the file.
class recording_reader
{
public:
    // Throws recording_error if the file cannot be read, is no recording, or
    // is of another format.
    explicit recording_reader(const std::string& path);
    recording_reader(const recording_reader&) = delete;
    recording_reader& operator=(const recording_reader&) = delete;
    ~recording_reader();

    const recording_header& header() const;

    // The next record, or false at the end of what can be read.
    bool next(record& r);

    // When next() has returned false:
    enum class ending {
        OPEN,       // not there yet
        COMPLETE,   // with its trailer, which agrees with what was read
        TRUNCATED,  // the run was killed or goes on: no trailer
        DAMAGED,    // the bytes that follow are not what was written
    };
    ending end() const;
    // What is wrong, where, and the mend, in one line; empty if COMPLETE.
    const std::string& trouble() const;
    const recording_trailer* trailer() const;  // null if not COMPLETE

    std::uint64_t records() const;  // handed out so far
    const std::string& path() const;

private:
    struct impl;
    std::unique_ptr<impl> m;
};

}  // namespace prawn

#endif
