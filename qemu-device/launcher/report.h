// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_REPORT_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_REPORT_H

#include <string>

#include <nlohmann/json.hpp>

namespace prawn::launch {

using json = nlohmann::ordered_json;

// The object that a tool in a guest printed, its results checked: a list of
// objects with tool, path, update, bytes, iterations, verified. Throws
// std::invalid_argument with what is wrong with it: a guest's output is input.
json parse_tool_output(const std::string& text);

// One table of results as text. Figures in model time and in wall-clock time
// never share one, so "side" is "model" or "wall". Rows that have no figures
// of that side are left out; empty when none is left.
std::string result_table(const json& results, const std::string& side);

// Whether there are results and all of them were verified by the receiver.
bool all_verified(const json& results);

// Writes "what" to a file, or to standard output when that is "-".
void write_json(const std::string& file, const json& what);

}  // namespace prawn::launch

#endif
