// SPDX-License-Identifier: Apache-2.0
#include "time_mode.h"

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "failure.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

// What is said last wins: the configuration, --set in order, an option.
std::string said(const options& opts, const std::string& key,
                 const std::string& option) {
    if (!option.empty())
        return option;
    for (auto item = opts.set.rbegin(); item != opts.set.rend(); ++item)
        if (item->rfind(key + "=", 0) == 0)
            return item->substr(key.size() + 1);
    if (opts.config.empty())
        return {};
    const toml::table all = toml::parse_file(opts.config);
    if (const auto text = all[key].value<std::string>())
        return *text;
    if (const auto number = all[key].value<std::int64_t>())
        return std::to_string(*number);
    return {};
}

void refuse(bool wrong, const std::string& what, const std::string& mend) {
    if (wrong)
        throw failure(
            EXIT_USAGE,
            fmt::format("{}: not with synchronized time: {}", what, mend));
}

}  // namespace

std::uint64_t parse_quantum(const std::string& text) {
    unsigned long number = 0;
    char unit[3] = "";
    int end = 0;
    if (std::sscanf(text.c_str(), "%9lu%2s%n", &number, unit, &end) != 2 ||
        static_cast<size_t>(end) != text.size())
        return 0;
    const std::string name = unit;
    const std::uint64_t factor = name == "ns"   ? 1
                                 : name == "us" ? 1000
                                 : name == "ms" ? 1000000
                                                : 0;
    return number * factor;
}

std::string profile_of(const options& opts) {
    const std::string name = said(opts, "profile", opts.profile);
    return name.empty() ? "pcie-gen3" : fs::path(name).stem().string();
}

std::string profile_file(const options& opts) {
    const std::string name = said(opts, "profile", opts.profile);
    if (!name.empty() && fs::is_regular_file(name))
        return name;
    return opts.root / "profiles" / (profile_of(opts) + ".toml");
}

time_mode resolve_time(const options& opts) {
    time_mode mode;
    mode.synchronized =
        !opts.no_card && said(opts, "time", opts.time) == "synchronized";
    if (!mode.synchronized) {
        if (!opts.quantum.empty())
            throw failure(EXIT_USAGE,
                          "--quantum: belongs to --time "
                          "synchronized");
        return mode;
    }
    const std::string quantum = said(
        opts, "quantum_ns",
        opts.quantum.empty() ? ""
                             : std::to_string(parse_quantum(opts.quantum)));
    if (!quantum.empty())
        mode.quantum_ns = std::stoull(quantum);
    if (mode.quantum_ns < 100 || mode.quantum_ns > 1000000000)
        throw failure(
            EXIT_USAGE,
            fmt::format("--quantum {}: must be 100ns to 1000ms", opts.quantum));
    refuse(opts.command == "bench", "bench",
           "it measures wall-clock time, use free-running");
    refuse(opts.cpus != 1, fmt::format("--cpus {}", opts.cpus),
           "QEMU counts the instructions of one CPU, use --cpus 1");
    refuse(opts.accel == "kvm", "--accel kvm",
           "KVM counts no instructions, use --accel tcg");
    refuse(!opts.share.empty(), "--share",
           "a folder of the host answers in the host's time");
    try {
        const toml::table profile = toml::parse_file(profile_file(opts));
        const auto ns =
            profile["cpu"]["instruction_ns"]["value"].value<std::int64_t>();
        while (ns && mode.shift < 10 && std::int64_t{1} << mode.shift < *ns)
            mode.shift++;
    } catch (const toml::parse_error&) {
        // The model says in a moment what is wrong with it.
    }
    return mode;
}

}  // namespace prawn::launch
