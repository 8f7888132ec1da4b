// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "commands.h"
#include "run_report.h"

namespace {

using namespace prawn::launch;

void print_details(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        fmt::print(stderr, "  | {}\n", line);
}

// Whoever started us may have closed the standard descriptors: what is opened
// next must not be taken for one of them.
void open_standard_descriptors() {
    int fd = 0;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int run(const options& opts) {
    const settings where = load_settings(opts);
    forget_last_report(opts);
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
        if (status == EXIT_OK && parts.checker_failed())
            throw failure(EXIT_CHECK_FAILED, CHECKER_FAILED);
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
    open_standard_descriptors();
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
