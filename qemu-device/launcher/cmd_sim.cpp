// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <fmt/format.h>

#include "commands.h"

namespace prawn::launch {

// The model alone, for people who start QEMU by themselves. It runs until it
// is interrupted, which is its ordinary end.
int run_sim(session& run) {
    // With --json - nothing but the counters goes to standard output.
    const bool only_json = run.opts().json == "-";
    run.on_model_line = [only_json](const std::string& line) {
        fmt::print(only_json && line == "ready" ? stderr : stdout, "{}\n",
                   line);
        std::fflush(stdout);
    };
    run.start_model();
    fmt::print(stderr,
               "prawn: waiting for QEMUs, Ctrl-C ends it. Attach a "
               "card to a QEMU by\n");
    fmt::print(stderr,
               "  -machine q35,memory-backend=m \\\n"
               "  -object memory-backend-memfd,id=m,size={}M,share=on \\\n"
               "  -device '{{\"driver\":\"vfio-user-pci\",\"socket\":{{"
               "\"type\":\"unix\",\"path\":\"{}/node0.sock\"}},"
               "\"x-msg-timeout\":600000}}'\n",
               run.opts().memory_mib, run.dir().path().string());
    try {
        run.wait([] { return false; }, 0, "");
    } catch (const failure& end) {
        if (end.code() != EXIT_INTERRUPTED)
            throw;
    }
    run.stop();
    return EXIT_OK;
}

}  // namespace prawn::launch
