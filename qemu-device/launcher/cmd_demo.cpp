// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "run_report.h"

namespace prawn::launch {

namespace {

struct measurement {
    const char* tool;
    unsigned bytes;
    unsigned messages;
};

// Enough to see the shape of the curve, little enough for a minute.
const std::vector<measurement> FULL = {
    {"vmmc_lat", 4, 500},     {"vmmc_lat", 64, 500},    {"vmmc_lat", 1024, 500},
    {"vmmc_lat", 4096, 500},  {"vmmc_lat", 65536, 100}, {"vmmc_bw", 64, 1000},
    {"vmmc_bw", 1024, 1000},  {"vmmc_bw", 4096, 1000},  {"vmmc_bw", 65536, 500},
    {"vmmc_bw", 1048576, 64},
};
const std::vector<measurement> QUICK = {
    {"vmmc_lat", 4, 50},
    {"vmmc_bw", 4096, 64},
    {"vmmc_bw", 65536, 32},
};

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

using job_ref = std::shared_ptr<guest_job>;

std::string client_command(const measurement& what, unsigned peer) {
    return fmt::format("{} --json -s {} -n {} {}", what.tool, what.bytes,
                       what.messages, peer);
}
std::string server_command(const measurement& what) {
    return fmt::format("{} --json", what.tool);
}

// One measurement from node 0 to another. What the tools found wrong comes
// back as a sentence; a part that dies throws. In step with the model the jobs
// have been given to the guests before they were started.
std::string measure(session& run, const measurement& what, unsigned peer,
                    json& results, const job_ref& scripted_server,
                    const job_ref& scripted_client) {
    guest& client_node = run.node(0);
    guest& server_node = run.node(peer);
    const auto server = scripted_server
                            ? scripted_server
                            : server_node.run(server_command(what), false);
    const auto client =
        scripted_client ? scripted_client
                        : client_node.run(client_command(what, peer), false);
    run.wait([&] { return client->done; }, run.opts().timeout_s,
             fmt::format("node0: {} did not finish", what.tool));
    // A client that failed leaves a server that waits for ever.
    if (client->status != 0 && !server->done)
        server_node.kill(server, SIGTERM);
    run.wait(
        [&] { return server->done; }, run.opts().timeout_s,
        fmt::format("{}: {} did not finish", server_node.name(), what.tool));
    for (const auto& [job, node] :
         {std::pair{client, &client_node}, {server, &server_node}}) {
        if (job->lost) {
            return fmt::format("{} went away during {}", node->name(),
                               what.tool);
        }
    }
    try {
        if (client->status == 0 || !client->out.empty()) {
            json said = parse_tool_output(client->out);
            for (auto& row : said["results"]) {
                row["from"] = 0;
                row["to"] = peer;
                results.push_back(row);
            }
        }
        if (client->status != 0) {
            return fmt::format("node0: {} ended with status {}: {}", what.tool,
                               client->status, first_line(client->err));
        }
        if (server->status != 0) {
            return fmt::format("{}: {} ended with status {}: {}",
                               server_node.name(), what.tool, server->status,
                               first_line(server->err));
        }
        if (!parse_tool_output(server->out).value("ok", false)) {
            return fmt::format("{}: {} says that data arrived wrong",
                               server_node.name(), what.tool);
        }
    } catch (const std::invalid_argument& error) {
        return fmt::format("{}: {}", what.tool, error.what());
    }
    return {};
}

void print_tables(const json& results, const session& run) {
    const std::string profile = run.profile();
    // Free-running guests time their doorbells otherwise in each run, so
    // messages meet a card that is more or less busy.
    std::string mode = "free-running: figures vary from run to run";
    std::string other =
        "Wall-clock time: what the simulator takes on this machine";
    if (run.time().synchronized) {
        const std::string skew = run.skew();
        mode = skew.empty() ? "synchronized" : "synchronized, skewed: " + skew;
        other = fmt::format("The guests' own clocks (profile {}, {})", profile,
                            mode);
    }
    for (const char* side : {"model", "wall"}) {
        const std::string table = result_table(results, side);
        if (table.empty())
            continue;
        fmt::print("\n{}\n{}",
                   side == std::string("model")
                       ? fmt::format("Model time: what the card takes "
                                     "(profile {}, {})",
                                     profile, mode)
                       : other,
                   table);
    }
}

int demo(session& run, json& summary) {
    const options& opts = run.opts();
    run.start_model();
    const auto& plan = opts.quick ? QUICK : FULL;
    std::vector<std::pair<job_ref, job_ref>> jobs;  // server, client
    for (unsigned peer = 1; peer < opts.nodes; peer++) {
        for (const auto& what : plan) {
            jobs.emplace_back();
            if (!run.time().synchronized)
                continue;
            jobs.back().first = run.script(peer, server_command(what), false);
            jobs.back().second =
                run.script(0, client_command(what, peer), false);
        }
    }
    if (run.time().synchronized)
        run.power_off_after_scripts();
    run.start_guests(false);
    run.wait_for_guests();
    summary["kernel"] = run.node(0).release();

    json& results = summary["results"];
    std::string wrong;
    auto job = jobs.begin();
    for (unsigned peer = 1; peer < run.count() && wrong.empty(); peer++) {
        for (const auto& what : plan) {
            stage measuring(
                fmt::format("{} node0 to node{}, {} bytes, {} "
                            "messages",
                            what.tool, peer, what.bytes, what.messages));
            wrong = measure(run, what, peer, results, job->first, job->second);
            ++job;
            if (!wrong.empty())
                break;
            measuring.done();
        }
    }
    if (wrong.empty() && !all_verified(results))
        wrong = "not every byte was verified by its receiver";

    if (run.time().synchronized && wrong.empty())
        run.wait_for_power_off();
    run.stop();  // the model writes its counters
    add_counters(run, summary);
    if (wrong.empty() && run.checker_failed())
        wrong = CHECKER_FAILED;
    if (opts.json != "-") {
        print_tables(results, run);
        fmt::print("\n{}\n", wrong.empty()
                                 ? "Every byte was verified by its receiver."
                                 : "FAILED: " + wrong);
        std::fflush(stdout);
    }
    if (!wrong.empty())
        throw failure(EXIT_CHECK_FAILED, wrong);
    if (run.time().synchronized)
        summary["skewed"] = !run.skew().empty();
    summary["ok"] = true;
    return EXIT_OK;
}

}  // namespace

int run_demo(session& run) {
    json summary = run_facts(run);
    summary["ok"] = false;
    summary["results"] = json::array();
    return reported(run, summary, [&] { return demo(run, summary); });
}

}  // namespace prawn::launch
