// SPDX-License-Identifier: Apache-2.0
// Records and times as text.

#ifndef PRAWN_RECORD_TRACE_TEXT_H
#define PRAWN_RECORD_TRACE_TEXT_H

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "record/recording.h"

namespace prawn {

// What came out of a file may hold anything, such as a terminal's commands.
std::string one_line(std::string text);

// "12.345678 us"; exact.
std::string time_text(std::uint64_t ps);
// "1500", "1500ps", "1.5us", "2ms", "0.1s". Throws std::runtime_error.
std::uint64_t time_of_text(const std::string& text);

std::string hex_text(const std::uint8_t* data, std::size_t size);

// What a record says, without its number, time and node:
// "bar_write    bar 0 +0x54 ADMIN_DOORBELL, 4 bytes 0x1, access 17, posted"
std::string record_text(const record& r);
// The same as an object with every field that means something.
nlohmann::ordered_json record_json(std::uint64_t number, const record& r);

// "complete", "truncated", "damaged".
const char* ending_text(recording_reader::ending end);

// A copy that outlives what the reader has handed out.
class kept_record
{
public:
    kept_record() = default;
    explicit kept_record(const record& r) { *this = r; }
    kept_record(const kept_record& o) { *this = o.m_record; }
    kept_record& operator=(const kept_record& o) { return *this = o.m_record; }
    kept_record& operator=(const record& r);
    ~kept_record() = default;
    const record& get() const { return m_record; }

private:
    record m_record;
    std::string m_data;
};

}  // namespace prawn

#endif
