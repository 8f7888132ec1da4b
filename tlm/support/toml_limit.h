// SPDX-License-Identifier: Apache-2.0
// What a TOML file may be before it is parsed.

#ifndef PRAWN_SUPPORT_TOML_LIMIT_H
#define PRAWN_SUPPORT_TOML_LIMIT_H

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace prawn {

// A dotted key makes a table of each of its parts, and tables within tables
// are taken apart by recursion: some 60 kB of "a.a.a" overflow the stack. All
// keys that there are take 3 kB, a profile 5 kB.
constexpr std::size_t MAX_TOML_BYTES = 16384;

// Why a file cannot be one of ours; empty: no reason known before it is read.
inline std::string toml_refusal(const std::string& path) {
    std::error_code none;
    if (!std::filesystem::exists(path, none))
        return "";
    if (!std::filesystem::is_regular_file(path, none))
        return "is no regular file";
    const auto bytes = std::filesystem::file_size(path, none);
    return none || bytes <= MAX_TOML_BYTES
               ? ""
               : "is longer than " + std::to_string(MAX_TOML_BYTES) + " bytes";
}

}  // namespace prawn

#endif
