// SPDX-License-Identifier: Apache-2.0
#include "run_report.h"

#include <filesystem>

#include <fmt/format.h>

namespace fs = std::filesystem;

namespace prawn::launch {

json run_facts(const session& run) {
    json facts = {
        {"time_mode", nullptr},
        {"profile", nullptr},
        {"qemu", run.where().qemu_version()},
        {"kernel", run.where().kernel},
        {"nodes", run.opts().nodes},
    };
    if (run.opts().no_card)
        return facts;
    facts["time_mode"] = run.time().name();
    try {
        facts["profile"] = run.profile();
    } catch (const std::exception&) {
        // The model says in a moment what is wrong with its configuration.
    }
    return facts;
}

void add_counters(const session& run, json& report) {
    const json counters = json::parse(run.counters(), nullptr, false);
    if (counters.is_object())
        report["counters"] = counters;
}

int reported(const session& run, json& report,
             const std::function<int()>& body) {
    const std::string& file = run.opts().json;
    int status = EXIT_OK;
    try {
        status = body();
    } catch (const std::exception& error) {
        report["error"] = error.what();
        if (!file.empty()) {
            try {
                write_json(file, report);
            } catch (const failure& second) {
                fmt::print(stderr, "prawn: {}\n", second.what());
            }
        }
        throw;
    }
    if (!file.empty())
        write_json(file, report);
    return status;
}

void forget_last_report(const options& opts) {
    std::error_code error;
    // Neither a device, nor a pipe, nor what is not there yet.
    if (opts.json.empty() || opts.json == "-" ||
        !fs::is_regular_file(opts.json, error)) {
        return;
    }
    fs::resize_file(opts.json, 0, error);
    if (error) {
        throw failure(EXIT_SETUP,
                      fmt::format("--json {}: cannot be written: {}", opts.json,
                                  error.message()));
    }
}

}  // namespace prawn::launch
