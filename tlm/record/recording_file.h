// SPDX-License-Identifier: Apache-2.0
// The frames of a recording. The whole file is also a valid .zst file, whose
// contents are the coded records: what is ours stands in zstd's skippable
// frames.

#ifndef PRAWN_RECORD_RECORDING_FILE_H
#define PRAWN_RECORD_RECORDING_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>

#include "record/recording.h"

namespace prawn {

// Every frame of ours: magic, length of what follows (both little-endian, 32
// bits), contents, CRC-32C of the contents.
constexpr std::uint32_t OUR_FRAME = 0x184d2a5c;
constexpr std::size_t OUR_FRAME_HEAD = 8;
constexpr std::size_t OUR_FRAME_CRC = 4;

// Contents begin with one of these.
constexpr char FILE_MAGIC[] = "PRAWNREC";  // then format, JSON; first frame
constexpr char DATA_MAGIC[] = "DATA";      // before each frame of zstd's
constexpr char TAIL_MAGIC[] = "TAIL";      // the last frame
constexpr std::size_t FILE_MAGIC_SIZE = 8;
constexpr std::size_t PART_MAGIC_SIZE = 4;

// Bounds of what a reader takes into memory.
constexpr std::size_t MAX_HEADER_BYTES = std::size_t{1} << 20;
constexpr std::size_t MAX_PART_BYTES = 4096;                 // DATA, TAIL
constexpr std::size_t FRAME_BYTES = std::size_t{256} << 10;  // is then closed
constexpr std::size_t MAX_FRAME_BYTES = std::size_t{512} << 10;

// Contents and CRC in a frame of ours.
std::string our_frame(const std::string& contents);

std::string header_json(const recording_header& header);
// Throws recording_error with what is wrong with it.
recording_header header_of_json(const std::string& text);

}  // namespace prawn

#endif
