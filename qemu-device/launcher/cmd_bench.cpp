// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "bench_host.h"
#include "commands.h"
#include "report.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

// The first CPU that this process may use.
int one_cpu() {
    cpu_set_t all;
    CPU_ZERO(&all);
    int cpu = 0;
    if (sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) > 0) {
        while (!CPU_ISSET(static_cast<size_t>(cpu), &all))
            cpu++;
    }
    return cpu;
}

// One line of the result: a figure of ours beside a baseline of this run.
json line(const std::string& name, double value, const std::string& unit,
          const std::string& baseline = "", double baseline_value = 0) {
    json result = {{"name", name}, {"value", value}, {"unit", unit}};
    if (!baseline.empty()) {
        result["baseline"] = baseline;
        result["baseline_value"] = baseline_value;
        if (baseline_value > 0)
            result["ratio"] = value / baseline_value;
    }
    return result;
}

json run_in_guest(session& run, const std::string& text) {
    const auto job = run.node(0).run(text, true);
    run.wait([&] { return job->done; }, run.opts().timeout_s,
             "node0: the measurement did not finish");
    json result = json::parse(job->out, nullptr, false);
    if (job->status != 0 || !result.is_object()) {
        throw failure(EXIT_CHECK_FAILED,
                      "node0: the measurement failed: " + job->err,
                      run.node(0).last_console_lines(12));
    }
    return result;
}

// Accesses of a guest to the card, beside edu and a bare ping-pong.
void accesses(session& run, bool pinned, json& all) {
    const char* how = pinned ? "one core" : "free";
    const int cpu = pinned ? one_cpu() : -1;
    const double ping_pong = socket_ping_pong_ns(cpu);

    run.pin(cpu);
    options& opts = run.change_opts();
    const options saved = opts;
    opts.nodes = 1;
    opts.nodes_given = true;
    opts.kernel_append += " prawn_bench=1";
    opts.qemu_args.insert(opts.qemu_args.end(), {"-device", "edu"});
    run.start_model();
    run.start_guests(false);
    run.wait_for_guests();
    json got;
    {
        stage measuring(fmt::format("measure accesses, {}", how));
        got = run_in_guest(run,
                           "insmod /lib/prawn/prawn_bench.ko && "
                           "cat /proc/prawn_bench");
        measuring.done();
    }
    run.stop();
    run.pin(-1);
    opts = saved;

    const auto median = [&](const char* device, const char* what) {
        if (!got.contains(device) || !got[device].contains(what))
            return 0.0;
        return got[device][what].value("median", 0.0);
    };
    if (median("card", "read_ns") <= 0) {
        throw failure(EXIT_CHECK_FAILED, "node0: the measurement saw no card");
    }
    const auto add = [&](const std::string& name, const char* what) {
        if (median("card", what) > 0) {
            all.push_back(line(name + ", " + how, median("card", what), "ns",
                               "same of QEMU's edu", median("edu", what)));
        }
    };
    all.push_back(line(fmt::format("BAR read round trip, {}", how),
                       median("card", "read_ns"), "ns", "UNIX socket ping-pong",
                       ping_pong));
    add("BAR read round trip", "read_ns");
    add("posted BAR write", "write_ns");
    add("posted BAR write, sustained", "write_sustained_ns");
    add("MSI-X trigger to handler", "irq_ns");
    if (median("card", "irq_ns") > 0) {
        all.push_back(line(fmt::format("MSI-X trigger to handler, {}", how),
                           median("card", "irq_ns"), "ns",
                           "UNIX socket ping-pong", ping_pong));
    }
}

// Two guests, one direction, 1 MiB messages, wall-clock time.
void bandwidth(session& run, json& all) {
    constexpr size_t MESSAGE = 1 << 20;
    run.change_opts().nodes = 2;
    run.change_opts().nodes_given = true;
    run.start_model();
    run.start_guests(false);
    run.wait_for_guests();
    stage measuring("measure bandwidth between two guests");
    const auto server = run.node(1).run("vmmc_bw --json --no-verify", false);
    const auto client = run.node(0).run(
        fmt::format("vmmc_bw --json --no-verify -s {} -n 256 1", MESSAGE),
        false);
    run.wait([&] { return client->done; }, run.opts().timeout_s,
             "node0: vmmc_bw did not finish");
    const json said = json::parse(client->out, nullptr, false);
    if (client->status != 0 || !said.is_object() || said["results"].empty()) {
        throw failure(EXIT_CHECK_FAILED,
                      "node0: vmmc_bw failed: " + client->err);
    }
    measuring.done();
    run.stop();
    const json& wall = said["results"][0]["wall"];
    all.push_back(line("vmmc_bw between two guests, 1 MiB, wall clock",
                       wall.value("MBps", 0.0), "MB/s", "memcpy of the host",
                       memcpy_mbps(MESSAGE)));
}

// Programs of other parts that measure without guests: each prints a JSON
// list of lines as above.
void host_programs(const session& run, json& all) {
    std::vector<fs::path> programs;
    std::error_code none;
    for (const auto& entry :
         fs::directory_iterator(run.where().build_dir / "bench", none)) {
        if (entry.is_regular_file() &&
            (entry.status().permissions() & fs::perms::owner_exec) !=
                fs::perms::none) {
            programs.push_back(entry.path());
        }
    }
    std::sort(programs.begin(), programs.end());
    for (const auto& program : programs) {
        stage measuring(program.filename().string());
        const json list =
            json::parse(output_of({{program.string()}, {}}), nullptr, false);
        if (!list.is_array()) {
            throw failure(EXIT_CHECK_FAILED,
                          program.string() + ": printed no JSON list");
        }
        for (const auto& each : list)
            all.push_back(each);
        measuring.done();
    }
}

void print(const json& all) {
    fmt::print("\n{:<50} {:>14} {:<10} {:<28} {:>14} {:>8}\n", "what", "value",
               "unit", "baseline", "value", "ratio");
    for (const auto& each : all) {
        const auto text = [&](const char* key, const char* format) {
            if (!each.contains(key) || !each[key].is_number())
                return std::string();
            return fmt::format(fmt::runtime(format), each[key].get<double>());
        };
        fmt::print("{:<50} {:>14} {:<10} {:<28} {:>14} {:>8}\n",
                   each.value("name", ""), text("value", "{:.1f}"),
                   each.value("unit", ""), each.value("baseline", ""),
                   text("baseline_value", "{:.1f}"), text("ratio", "{:.2f}"));
    }
    std::fflush(stdout);
}

}  // namespace

int run_bench(session& run) {
    json all = json::array();
    host_programs(run, all);
    accesses(run, true, all);
    accesses(run, false, all);
    bandwidth(run, all);
    if (run.opts().json != "-")
        print(all);
    if (!run.opts().json.empty())
        write_json(run.opts().json, all);
    return EXIT_OK;
}

}  // namespace prawn::launch
