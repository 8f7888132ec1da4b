// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <sstream>

#include <fmt/format.h>

#include "commands.h"

namespace {

using namespace prawn::launch;

void print_details(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        fmt::print(stderr, "  | {}\n", line);
}

int run(const options& opts) {
    const settings where = load_settings(opts);
    session parts(opts, where);
    try {
        int status = EXIT_OK;
        if (opts.command == "boot")
            status = run_boot(parts);
        else if (opts.command == "demo")
            status = run_demo(parts);
        else if (opts.command == "sim")
            status = run_sim(parts);
        else
            status = run_bench(parts);
        parts.stop();
        if (status == EXIT_OK && parts.checker_failed()) {
            throw failure(EXIT_CHECK_FAILED,
                          "the card touched memory that no kernel granted "
                          "(--verbose shows which)");
        }
        return status;
    } catch (const failure& error) {
        if (error.code() != EXIT_PART_DIED)
            throw;
        // Still inside the run: its logs are there to be kept.
        const auto logs = parts.dir().keep_logs();
        throw failure(error.code(),
                      fmt::format("{} (logs: {})", error.what(), logs.string()),
                      error.details());
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        options opts;
        if (!parse_options(argc, argv, opts))
            return EXIT_OK;
        return run(opts);
    } catch (const failure& error) {
        print_details(error.details());
        fmt::print(
            stderr, "prawn: {}{}\n",
            error.code() == EXIT_INTERRUPTED ? "" : "error: ", error.what());
        return error.code();
    } catch (const std::exception& error) {
        fmt::print(stderr, "prawn: error: {}\n", error.what());
        return EXIT_SETUP;
    }
}
