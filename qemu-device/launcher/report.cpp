// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "failure.h"

namespace prawn::launch {

namespace {

void require(bool good, const std::string& what) {
    if (!good)
        throw std::invalid_argument(what);
}

std::string number(const json& object, const char* key, double divisor) {
    if (!object.contains(key) || !object[key].is_number())
        return "";
    return fmt::format("{:.2f}", object[key].get<double>() / divisor);
}

}  // namespace

json parse_tool_output(const std::string& text) {
    json object = json::parse(text, nullptr, false);
    require(object.is_object(), "it printed no JSON object");
    require(object.contains("results") && object["results"].is_array(),
            "its JSON has no results");
    for (const auto& row : object["results"]) {
        require(row.is_object(), "a result is no object");
        for (const char* key : {"tool", "path", "update"}) {
            require(row.contains(key) && row[key].is_string(),
                    fmt::format("a result has no {}", key));
        }
        for (const char* key : {"bytes", "iterations"}) {
            require(row.contains(key) && row[key].is_number_unsigned(),
                    fmt::format("a result has no {}", key));
        }
        require(row.contains("verified") && row["verified"].is_boolean(),
                "a result does not say whether it was verified");
        for (const char* side : {"model", "wall"}) {
            require(!row.contains(side) || row[side].is_object(),
                    fmt::format("a result's {} is no object", side));
            if (row.contains(side) && row[side].contains("ns")) {
                require(row[side]["ns"].is_object(),
                        fmt::format("a result's {}.ns is no object", side));
            }
        }
    }
    return object;
}

std::string result_table(const json& results, const std::string& side) {
    using cells = std::vector<std::string>;
    std::vector<cells> rows{{"from", "to", "tool", "path", "update", "bytes",
                             "messages", "verified", "min us", "median us",
                             "p99 us", "max us", "MB/s"}};
    constexpr size_t FIRST_NUMBER = 5;
    constexpr double NS_PER_US = 1000;
    const auto node = [](const json& row, const char* key) {
        return row.contains(key) ? fmt::format("node{}", row[key].dump())
                                 : std::string();
    };
    for (const auto& row : results) {
        if (!row.contains(side) || row[side].empty())
            continue;
        const json& figures = row[side];
        const json ns = figures.value("ns", json::object());
        rows.push_back(
            {node(row, "from"), node(row, "to"), row["tool"], row["path"],
             row["update"], row["bytes"].dump(), row["iterations"].dump(),
             row["verified"].get<bool>() ? "yes" : "NO",
             number(ns, "min", NS_PER_US), number(ns, "median", NS_PER_US),
             number(ns, "p99", NS_PER_US), number(ns, "max", NS_PER_US),
             number(figures, "MBps", 1)});
    }
    if (rows.size() == 1)
        return {};
    std::vector<size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows) {
        for (size_t i = 0; i < row.size(); i++)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); i++) {
            line += i < FIRST_NUMBER
                        ? fmt::format("  {:<{}}", row[i], widths[i])
                        : fmt::format("  {:>{}}", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

bool all_verified(const json& results) {
    return !results.empty() &&
           std::all_of(results.begin(), results.end(), [](const json& row) {
               return row["verified"].get<bool>();
           });
}

void write_json(const std::string& file, const json& what) {
    const std::string text = what.dump(2) + "\n";
    std::FILE* out = file == "-" ? stdout : std::fopen(file.c_str(), "we");
    bool good = out != nullptr;
    if (good) {
        good = std::fwrite(text.data(), 1, text.size(), out) == text.size();
        good =
            (out == stdout ? std::fflush(out) : std::fclose(out)) == 0 && good;
    }
    if (!good) {
        throw failure(EXIT_SETUP, fmt::format("--json {}: cannot be written: "
                                              "{}",
                                              file, strerror(errno)));
    }
}

}  // namespace prawn::launch
