// SPDX-License-Identifier: Apache-2.0
// prawn-trace info
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "record/record_codec.h"
#include "record/trace_command.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

using json = nlohmann::ordered_json;

class info_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("FILE", m_file, "the recording")->required();
        app.add_flag("--json", m_json, "as one JSON object");
        app.footer(
            "Reads the whole file, so that it also checks it. Exit status: 0 "
            "complete, 1 truncated (the run was killed or still goes on) or "
            "damaged, 2 wrong use or no recording.");
    }

    int run() override {
        recording_reader reader(m_file);
        std::vector<counts> nodes(reader.header().nodes);
        std::uint64_t last = 0;
        record r;
        while (reader.next(r)) {
            nodes.at(r.node).of(r.kind)++;
            last = r.time_ps;
        }
        if (m_json)
            print_json(reader, nodes, last);
        else
            print(reader, nodes, last);
        return reader.trailer() ? TRACE_OK : TRACE_CHECK;
    }

private:
    struct counts {
        std::array<std::uint64_t, RECORD_KINDS> by_kind{};
        std::uint64_t& of(record_kind kind) {
            return by_kind[static_cast<std::size_t>(kind)];
        }
    };

    std::uint64_t file_bytes() const {
        std::error_code none;
        const auto size = std::filesystem::file_size(m_file, none);
        return none ? 0 : size;
    }

    void print_json(const recording_reader& reader,
                    const std::vector<counts>& nodes,
                    std::uint64_t last) const {
        const recording_header& h = reader.header();
        json j = {{"file", m_file},
                  {"format", h.format},
                  {"prawn", h.prawn_version},
                  {"time_mode", h.time_mode},
                  {"nodes", h.nodes},
                  {"config", h.config},
                  {"profile", h.profile_name},
                  {"profile_crc32c", h.profile_crc},
                  {"firmware", h.firmware_hash},
                  {"state", ending_text(reader.end())},
                  {"complete", reader.trailer() != nullptr},
                  {"trouble", reader.trouble()},
                  {"records", reader.records()},
                  {"file_bytes", file_bytes()},
                  {"last_record_ps", last}};
        if (const recording_trailer* t = reader.trailer()) {
            j["end_ps"] = t->time_ps;
            j["bytes"] = t->bytes;
            j["digest"] = t->digest;
        }
        for (std::size_t k = 0; k < nodes.size(); k++) {
            json kinds = json::object();
            for (std::size_t i = 1; i < RECORD_KINDS; i++)
                kinds[name(static_cast<record_kind>(i))] = nodes[k].by_kind[i];
            j["by_node"].push_back(kinds);
        }
        std::cout << j.dump(1, ' ', false, json::error_handler_t::replace)
                  << "\n";
    }

    void print(const recording_reader& reader, const std::vector<counts>& nodes,
               std::uint64_t last) const {
        const recording_header& h = reader.header();
        const recording_trailer* t = reader.trailer();
        std::cout << "format " << h.format << ", made by prawn "
                  << one_line(h.prawn_version) << ", time "
                  << one_line(h.time_mode) << ", " << h.nodes
                  << (h.nodes == 1 ? " node" : " nodes") << ", profile "
                  << one_line(h.profile_name) << ", "
                  << (h.firmware_hash.empty()
                          ? "no firmware"
                          : "firmware " + one_line(h.firmware_hash))
                  << "\n";
        if (t) {
            char digest[16];
            std::snprintf(digest, sizeof digest, "%08x", t->digest);
            std::cout << "complete: " << t->records << " records in "
                      << time_text(t->time_ps) << ", digest " << digest << "\n";
        } else {
            std::cout << ending_text(reader.end()) << ": " << reader.records()
                      << " records, the last at " << time_text(last) << "\n"
                      << one_line(reader.trouble()) << "\n";
        }
        if (reader.records())
            std::cout << file_bytes() << " bytes, "
                      << static_cast<double>(file_bytes() * 10 /
                                             reader.records()) /
                             10
                      << " a record\n";
        print_counts(nodes);
        std::cout << "\nconfiguration\n";
        for (const std::string& item : h.config)
            std::cout << "  " << one_line(item) << "\n";
    }

    static void print_counts(const std::vector<counts>& nodes) {
        std::printf("\n%-14s", "records");
        for (std::size_t k = 0; k < nodes.size(); k++)
            std::printf("%12s", ("node " + std::to_string(k)).c_str());
        std::printf("\n");
        for (std::size_t i = 1; i < RECORD_KINDS; i++) {
            if (std::none_of(nodes.begin(), nodes.end(),
                             [i](const counts& c) { return c.by_kind[i]; }))
                continue;
            std::printf("  %-12s", name(static_cast<record_kind>(i)));
            for (const counts& c : nodes)
                std::printf("%12llu",
                            static_cast<unsigned long long>(c.by_kind[i]));
            std::printf("\n");
        }
        std::fflush(stdout);
    }

    std::string m_file;
    bool m_json = false;
};

}  // namespace

std::unique_ptr<trace_command> make_trace_info() {
    return std::make_unique<info_command>();
}

}  // namespace prawn
