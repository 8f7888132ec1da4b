// SPDX-License-Identifier: Apache-2.0
// How one record is coded: a byte stream in which most numbers are differences
// to what came before. docs/recordings.md has the table.

#ifndef PRAWN_RECORD_RECORD_CODEC_H
#define PRAWN_RECORD_RECORD_CODEC_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "record/recording.h"

namespace prawn {

// What the coding of the next record depends on. A frame begins with it, so
// that it can be decoded alone.
struct record_state {
    struct orders {
        std::uint64_t asked = 0;     // BAR_READ, BAR_WRITE, BAR_ACCEPTED
        std::uint64_t answered = 0;  // BAR_RESULT, BAR_WRITTEN
        std::uint64_t dma = 0;
        bool operator==(const orders& o) const {
            return asked == o.asked && answered == o.answered && dma == o.dma;
        }
    };
    std::uint64_t time_ps = 0;
    std::uint16_t node = 0;
    std::array<orders, RECORD_MAX_NODES> at{};

    bool operator==(const record_state& o) const {
        return time_ps == o.time_ps && node == o.node && at == o.at;
    }
};

// Bytes to be taken apart; never reads beyond their end.
struct byte_input {
    const std::uint8_t* at = nullptr;
    const std::uint8_t* end = nullptr;

    std::size_t left() const { return static_cast<std::size_t>(end - at); }
    bool byte(std::uint8_t& value) {
        if (at == end)
            return false;
        value = *at++;
        return true;
    }
    // Little-endian, seven bits a byte, at most ten bytes.
    bool number(std::uint64_t& value);
    bool word(std::uint32_t& value);  // four bytes
};
void put_number(std::string& out, std::uint64_t value);
void put_word(std::string& out, std::uint32_t value);

// A record is at most this long, its data included.
constexpr std::size_t RECORD_MAX_BYTES = RECORD_MAX_DATA + 128;

// Appends one record. Throws std::invalid_argument for what is no record: a
// time that falls, a node, kind, length that there is not.
void encode(std::string& out, record_state& state, const record& r);

// Takes one record off; its data points into the input. False if these bytes
// are none.
bool decode(byte_input& in, record_state& state, record& r);

void encode(std::string& out, const record_state& state);
bool decode(byte_input& in, record_state& state);

}  // namespace prawn

#endif
