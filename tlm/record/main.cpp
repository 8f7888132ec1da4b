// SPDX-License-Identifier: Apache-2.0
// prawn-trace: looks at recordings of host ports (./prawn trace).
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <systemc>

#include "record/trace_command.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

struct subcommand {
    const char* name;
    const char* about;
    std::unique_ptr<trace_command> (*make)();
};

constexpr subcommand SUBCOMMANDS[] = {
    {"info", "what is in a recording, and whether it is complete",
     make_trace_info},
    {"show", "its records as text, one a line", make_trace_show},
    {"diff", "where two recordings begin to differ", make_trace_diff},
    {"export", "its records in a form that other tools read",
     make_trace_export},
    {"replay", "does again what its hosts did, and compares",
     make_trace_replay},
    {"compile", "makes a recording out of a text that a person writes",
     make_trace_compile},
    {"generate", "makes a recording of a pattern of traffic",
     make_trace_generate},
};

int fail(const std::string& line) {
    std::fprintf(stderr, "prawn: error: %s\n", one_line(line).c_str());
    return TRACE_USAGE;
}

int run(int argc, char** argv) {
    CLI::App app(
        "Looks at recordings, the files that --record of ./prawn demo, boot "
        "and sim writes: everything that crossed the host ports of the cards. "
        "docs/recordings.md describes them.",
        "./prawn trace");
    app.require_subcommand(1);
    app.set_version_flag("--version", "prawn-trace " PRAWN_VERSION);
    std::vector<std::pair<CLI::App*, std::unique_ptr<trace_command>>> all;
    for (const subcommand& s : SUBCOMMANDS) {
        CLI::App* sub = app.add_subcommand(s.name, s.about);
        all.emplace_back(sub, s.make());
        all.back().second->declare(*sub);
    }
    app.footer("./prawn trace SUBCOMMAND --help explains each.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);
    } catch (const CLI::ParseError& e) {
        return fail("trace: " + std::string(e.what()) +
                    " (./prawn trace --help)");
    }
    try {
        for (const auto& [sub, command] : all)
            if (sub->parsed())
                return command->run();
    } catch (const std::exception& e) {
        return fail(e.what());
    }
    return TRACE_USAGE;
}

}  // namespace

}  // namespace prawn

int sc_main(int argc, char** argv) {
    return prawn::run(argc, argv);
}

// Instead of the library's: without its banner.
int main(int argc, char** argv) {
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
