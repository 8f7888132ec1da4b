// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include "failure.h"
#include "support/toml_limit.h"
#include "time_mode.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

constexpr unsigned MAX_NODES = 16;

void add_shared(CLI::App& app, options& o) {
    app.add_option("--config", o.config, "configuration of the model (TOML)");
    app.add_option("--profile", o.profile, "timing profile, by name or file");
    app.add_option("--time", o.time, "free-running or synchronized");
    app.add_option("--quantum", o.quantum, "of synchronized time");
    app.add_option("--engine", o.engine, "hardwired or firmware");
    app.add_option("--rtl", o.rtl, "blocks to run as RTL");
    app.add_option("--record", o.record,
                   "write what crosses the host ports to this file");
    app.add_option("--set", o.set, "KEY=VALUE of the configuration")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--json", o.json, "write the results to this file");
    app.add_flag("--verbose", o.verbose, "show every command line");
}

void add_guests(CLI::App& app, options& o) {
    app.add_option("--nodes", o.nodes, "number of guests, 1 to 16");
    app.add_option("--memory", o.memory_mib, "MiB of RAM of each guest");
    app.add_option("--cpus", o.cpus, "virtual CPUs of each guest");
    app.add_option("--accel", o.accel, "QEMU accelerator: tcg or kvm");
    app.add_option("--timeout", o.timeout_s,
                   "seconds a boot or a tool may take");
    app.add_option("--module-params", o.module_params,
                   "parameters for prawn.ko");
}

void refuse_unavailable(const options& o) {
    const auto refuse = [](const std::string& what, const char* instead) {
        throw failure(EXIT_USAGE, fmt::format("{}: not available in this "
                                              "version ({})",
                                              what, instead));
    };
    if (!o.time.empty() && o.time != "free-running" &&
        o.time != "synchronized") {
        if (o.time != "replay") {
            throw failure(EXIT_USAGE,
                          fmt::format("--time {}: no such mode (there are "
                                      "free-running and synchronized)",
                                      o.time));
        }
        refuse("--time replay", "guests run in the other modes only");
    }
    if (!o.quantum.empty() && parse_quantum(o.quantum) == 0) {
        throw failure(EXIT_USAGE,
                      fmt::format("--quantum {}: must be a number with ns, us "
                                  "or ms, as 1us",
                                  o.quantum));
    }
    if (!o.engine.empty() && o.engine != "hardwired") {
        if (o.engine != "firmware") {
            throw failure(EXIT_USAGE,
                          fmt::format("--engine {}: no such engine "
                                      "(hardwired is the one there is)",
                                      o.engine));
        }
        refuse("--engine firmware", "use hardwired");
    }
    if (!o.rtl.empty())
        refuse("--rtl", "all blocks are TLM");
    // It runs the model many times, and a recording would slow each down.
    if (!o.record.empty() && o.command == "bench")
        throw failure(EXIT_USAGE,
                      "--record: not with bench, which measures speed (record "
                      "a demo or a boot)");
    if (!o.record.empty() && o.no_card)
        throw failure(EXIT_USAGE,
                      "--record: not with --no-card, where no card has a host "
                      "port to record");
}

void check_profile(options& o) {
    if (o.profile.empty() || fs::is_regular_file(o.profile))
        return;
    const fs::path directory = o.root / "profiles";
    if (o.profile.find('/') == std::string::npos &&
        fs::is_regular_file(directory / (o.profile + ".toml"))) {
        return;
    }
    std::set<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
        if (entry.path().extension() == ".toml")
            names.insert(entry.path().stem());
    }
    throw failure(EXIT_USAGE,
                  fmt::format("--profile {}: no such profile (there are: {})",
                              o.profile, fmt::join(names, ", ")));
}

// A configuration says how many nodes there are unless --nodes does.
void nodes_of_configuration(options& o) {
    for (const auto& item : o.set) {
        unsigned count = 0;
        if (!o.nodes_given && sscanf(item.c_str(), "nodes=%u", &count) == 1)
            o.nodes = count;
    }
    if (o.nodes_given || o.config.empty())
        return;
    const std::string refusal = toml_refusal(o.config);
    if (!refusal.empty())
        throw failure(EXIT_USAGE,
                      fmt::format("--config {}: {} (examples/two-nodes.toml "
                                  "is one)",
                                  o.config, refusal));
    try {
        const toml::table all = toml::parse_file(o.config);
        if (const auto* nodes = all["node"].as_array())
            o.nodes = static_cast<unsigned>(nodes->size());
        if (const auto count = all["nodes"].value<unsigned>())
            o.nodes = *count;
    } catch (const toml::parse_error& error) {
        throw failure(EXIT_USAGE, fmt::format("{}:{}: {}", o.config,
                                              error.source().begin.line,
                                              error.description()));
    }
}

// QEMU's own ways to ask for KVM: past our probe they end in a guest that
// hangs where KVM does not work.
void check_qemu_args(const options& o) {
    std::string option;
    for (const auto& word : o.qemu_args) {
        const std::string name = word.substr(word.rfind("--", 0) == 0 ? 1 : 0);
        const bool accelerator =
            option == "-accel" && word.rfind("kvm", 0) == 0;
        const bool machine = (option == "-machine" || option == "-M") &&
                             word.find("accel=kvm") != std::string::npos;
        if (name == "-enable-kvm" || accelerator || machine) {
            throw failure(
                EXIT_USAGE,
                fmt::format("{}{}: use --accel kvm, which looks first "
                            "whether KVM works here",
                            name == "-enable-kvm" ? "" : option + " ", word));
        }
        option = name;
    }
}

// Not after minutes of measuring.
void check_json(const options& o) {
    if (o.json.empty() || o.json == "-")
        return;
    std::error_code ignored;
    const fs::path file = fs::absolute(o.json);
    const fs::path place =
        fs::exists(file, ignored) ? file : file.parent_path();
    int trouble = 0;
    if (fs::is_directory(file, ignored))
        trouble = EISDIR;
    else if (access(place.c_str(), W_OK) != 0)
        trouble = errno;
    if (trouble != 0) {
        throw failure(EXIT_USAGE,
                      fmt::format("--json {}: cannot be written: {}", o.json,
                                  strerror(trouble)));
    }
}

void check(options& o) {
    refuse_unavailable(o);
    check_qemu_args(o);
    check_json(o);
    if (!o.config.empty() && !std::ifstream(o.config))
        throw failure(EXIT_USAGE, fmt::format("{}: cannot be read", o.config));
    nodes_of_configuration(o);
    if (o.nodes < 1 || o.nodes > MAX_NODES) {
        throw failure(EXIT_USAGE, fmt::format("--nodes {}: must be 1 to {}",
                                              o.nodes, MAX_NODES));
    }
    if (o.command == "demo" && o.nodes < 2) {
        throw failure(EXIT_USAGE,
                      "--nodes 1: the demo sends from one guest to another, "
                      "so it needs at least 2");
    }
    if (o.memory_mib < 128 || o.memory_mib > 65536) {
        throw failure(
            EXIT_USAGE,
            fmt::format("--memory {}: must be 128 to 65536 MiB", o.memory_mib));
    }
    if (o.cpus < 1 || o.cpus > 16) {
        throw failure(EXIT_USAGE,
                      fmt::format("--cpus {}: must be 1 to 16", o.cpus));
    }
    if (!o.accel.empty() && o.accel != "tcg" && o.accel != "kvm") {
        throw failure(EXIT_USAGE,
                      fmt::format("--accel {}: must be tcg or kvm", o.accel));
    }
    if (!o.share.empty() && !fs::is_directory(o.share)) {
        throw failure(EXIT_USAGE,
                      fmt::format("--share {}: is no directory", o.share));
    }
    // They become one quoted word of the kernel's command line.
    if (std::any_of(o.module_params.begin(), o.module_params.end(), [](char c) {
            return c == '"' || std::iscntrl(static_cast<unsigned char>(c));
        })) {
        throw failure(EXIT_USAGE,
                      "--module-params: must be one line without quotation "
                      "marks, as \"NAME=VALUE NAME=VALUE\"");
    }
    for (const auto& item : o.set) {
        if (item.find('=') == std::string::npos || item[0] == '=') {
            throw failure(EXIT_USAGE,
                          fmt::format("--set {}: must be KEY=VALUE", item));
        }
    }
    check_profile(o);
    resolve_time(o);  // refuses what does not go together
}

}  // namespace

bool parse_options(int argc, char** argv, options& result) {
    CLI::App app(
        "Starts the parts of Prawn. People use ./prawn, which sees "
        "to it that everything is built.",
        "prawn-launch");
    app.add_option("--root", result.root, "source tree")->required();
    app.add_option("--build", result.build_dir, "build directory")->required();
    app.require_subcommand(1);

    CLI::App* demo = app.add_subcommand("demo", "send data between guests");
    add_shared(*demo, result);
    add_guests(*demo, result);
    demo->add_flag("--quick", result.quick, "few sizes, few iterations");

    CLI::App* boot = app.add_subcommand("boot", "boot guests with the card");
    add_shared(*boot, result);
    add_guests(*boot, result);
    CLI::Option* cmd =
        boot->add_option("--cmd", result.cmd, "run this in every guest");
    boot->add_flag("--user", result.as_user, "as the ordinary user");
    boot->add_flag("--no-card", result.no_card, "guests without the card");
    boot->add_option("--share", result.share, "host folder for the guests");
    boot->add_option("qemu-args", result.qemu_args, "after --, for QEMU");

    CLI::App* sim = app.add_subcommand("sim", "the model alone");
    add_shared(*sim, result);
    sim->add_option("CONFIG", result.config, "configuration (TOML)");

    CLI::App* bench = app.add_subcommand("bench", "speed of the simulator");
    add_shared(*bench, result);
    add_guests(*bench, result);

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        app.exit(asked);
        return false;
    } catch (const CLI::ParseError& error) {
        std::string line = error.what();
        for (char& c : line)
            c = c == '\n' ? ' ' : c;
        throw failure(EXIT_USAGE, line + " (--help shows the options)");
    }
    // CLI11 takes words for QEMU from anywhere on the line.
    const auto behind = std::distance(
        std::find(argv, argv + argc, std::string("--")), argv + argc);
    const auto meant = static_cast<size_t>(std::max<long>(behind - 1, 0));
    if (result.qemu_args.size() > meant) {
        throw failure(EXIT_USAGE,
                      fmt::format("{}: not expected (what is for QEMU comes "
                                  "after --; --help shows the options)",
                                  result.qemu_args.front()));
    }
    result.command = app.get_subcommands().front()->get_name();
    result.cmd_given = cmd->count() > 0;
    if (auto* nodes =
            app.get_subcommands().front()->get_option_no_throw("--nodes")) {
        result.nodes_given = nodes->count() > 0;
    }
    check(result);
    return true;
}

}  // namespace prawn::launch
