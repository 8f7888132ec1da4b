// SPDX-License-Identifier: Apache-2.0
// How fast recordings are replayed, and whether a long one takes more memory
// than a short one. Wall time. Prints a JSON list of {name, value, unit, ...};
// --json is the only form and accepted.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "record/replay_run.h"
#include "record/workload.h"

namespace prawn {
namespace {

using wall = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "replay_bench: %s\n", what.c_str());
    std::exit(1);
}

struct figures {
    std::uint64_t records = 0;
    double seconds = 0.0;
    double peak_mb = 0.0;
};

// A model can be elaborated once in a process: each has its own.
figures in_child(const std::function<figures()>& body) {
    int ends[2];
    if (::pipe(ends) != 0)
        fail("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        figures f;
        try {
            f = body();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "replay_bench: %s\n", e.what());
            ::_exit(1);
        }
        ::_exit(::write(ends[1], &f, sizeof(f)) == sizeof(f) ? 0 : 1);
    }
    ::close(ends[1]);
    figures f;
    const bool got = ::read(ends[0], &f, sizeof(f)) == sizeof(f);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!got || status != 0)
        fail("a process of it has died");
    return f;
}

void record(const std::string& file, std::uint64_t messages) {
    in_child([&] {
        pattern_options o;
        o.pattern = "pages";
        o.order = "sequential";
        o.pages = 64;
        o.messages = messages;
        o.bytes = 16;
        if (run_workload(generate_workload(o), {}, file) != 0)
            fail("the workload was interrupted");
        return figures();
    });
}

figures replay(const std::string& file) {
    return in_child([&] {
        replay_request request;
        request.file = file;
        const auto begin = wall::now();
        const replay_result r = run_replay(request);
        const std::chrono::duration<double> took = wall::now() - begin;
        if (r.status() != 0)
            fail("it does not replay: " + r.first.text + r.error);
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
        return figures{r.records, took.count(),
                       static_cast<double>(used.ru_maxrss) / 1024.0};
    });
}

int run() {
    std::string place = "/tmp/prawn_replay_bench_XXXXXX";
    const int fd = ::mkstemp(place.data());
    if (fd < 0)
        fail(place + " cannot be made");
    ::close(fd);
    constexpr std::uint64_t MESSAGES = 20000;
    record(place, MESSAGES);
    const figures small = replay(place);
    record(place, 10 * MESSAGES);
    const figures large = replay(place);
    ::unlink(place.c_str());
    const double rate = static_cast<double>(large.records) / large.seconds;
    nlohmann::json results = nlohmann::json::array();
    results.push_back({{"name", "replay, every record compared"},
                       {"value", rate},
                       {"unit", "records/s"},
                       {"baseline", "aim of the design"},
                       {"baseline_value", 1e6},
                       {"ratio", rate / 1e6}});
    results.push_back({{"name", "memory for ten times the records"},
                       {"value", large.peak_mb},
                       {"unit", "MB"},
                       {"baseline", "memory for a tenth of them"},
                       {"baseline_value", small.peak_mb},
                       {"ratio", large.peak_mb / small.peak_mb}});
    std::printf("%s\n", results.dump(1).c_str());
    return 0;
}

}  // namespace
}  // namespace prawn

int sc_main(int, char**) {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
                                            sc_core::SC_DO_NOTHING);
    return prawn::run();
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--json") != 0) {
            std::fprintf(stderr, "usage: replay_bench [--json]\n");
            return std::strcmp(argv[i], "--help") == 0 ? 0 : 1;
        }
    }
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
