// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "guest.h"
#include "options.h"
#include "time_mode.h"

namespace prawn::launch {
namespace {

options parse(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"prawn-launch", "--root", "/nonexistent", "--build", "b"});
    std::vector<char*> argv;
    for (auto& word : words)
        argv.push_back(word.data());
    options result;
    EXPECT_TRUE(
        parse_options(static_cast<int>(argv.size()), argv.data(), result));
    return result;
}

// The one line with which a command line is refused.
std::string refusal(const std::vector<std::string>& words) {
    try {
        parse(words);
    } catch (const failure& error) {
        EXPECT_EQ(error.code(), EXIT_USAGE);
        const std::string line = error.what();
        EXPECT_EQ(line.find('\n'), std::string::npos);
        return line;
    }
    return {};
}

TEST(options, defaults) {
    const options o = parse({"demo"});
    EXPECT_EQ(o.command, "demo");
    EXPECT_EQ(o.nodes, 2U);
    EXPECT_FALSE(o.verbose);
}

TEST(options, boot_takes_a_command_and_qemu_arguments) {
    const options o =
        parse({"boot", "--nodes", "3", "--cmd", "exit 3", "--set", "a=1",
               "--set", "b.c=2", "--", "-device", "edu", "--cmd"});
    EXPECT_TRUE(o.cmd_given);
    EXPECT_EQ(o.cmd, "exit 3");
    EXPECT_EQ(o.set, (std::vector<std::string>{"a=1", "b.c=2"}));
    EXPECT_EQ(o.qemu_args,
              (std::vector<std::string>{"-device", "edu", "--cmd"}));
    EXPECT_FALSE(parse({"boot"}).cmd_given);
    EXPECT_TRUE(parse({"boot", "--cmd", ""}).cmd_given);
}

TEST(options, module_parameters_are_one_line) {
    EXPECT_EQ(parse({"boot", "--module-params", "a=1 b=2"}).module_params,
              "a=1 b=2");
    for (const char* bad : {"a=1\nb=2", "a=\"1\"", "a=\x1b[2J"})
        EXPECT_NE(refusal({"boot", "--module-params", bad}).find("one line"),
                  std::string::npos);
}

TEST(options, what_does_not_exist_yet_is_refused_by_name) {
    const std::vector<std::vector<std::string>> all = {
        {"--time", "replay"},
        {"--engine", "firmware"},
        {"--rtl", "utlb"},
    };
    for (const char* command : {"demo", "boot", "sim", "bench"}) {
        for (const auto& words : all) {
            const std::string line = refusal({command, words[0], words[1]});
            EXPECT_EQ(line.rfind(words[0], 0), 0U) << line;
            EXPECT_NE(line.find("not available in this version"),
                      std::string::npos)
                << line;
        }
        EXPECT_EQ(refusal({command, "--time", "free-running", "--engine",
                           "hardwired"}),
                  "");
    }
}

TEST(options, synchronized_time) {
    const auto sync = [](std::vector<std::string> words) {
        words.insert(words.end(), {"--time", "synchronized"});
        return refusal(words);
    };
    EXPECT_EQ(sync({"demo"}), "");
    EXPECT_EQ(sync({"demo", "--quantum", "1us"}), "");
    EXPECT_EQ(sync({"boot", "--quantum", "100ns"}), "");
    EXPECT_EQ(sync({"sim", "--quantum", "1ms"}), "");
    for (const char* quantum : {"1", "us", "1us ", "1s", "0us", "-1us", "99ns",
                                "1001ms", "1.5us", "99999999999999ns"})
        EXPECT_NE(sync({"demo", "--quantum", quantum}).find("--quantum"),
                  std::string::npos)
            << quantum;
    EXPECT_NE(refusal({"demo", "--quantum", "1us"}), "");
    EXPECT_NE(sync({"bench"}), "");
    EXPECT_NE(sync({"boot", "--cpus", "2"}).find("--cpus 2"),
              std::string::npos);
    EXPECT_NE(sync({"boot", "--accel", "kvm"}).find("--accel kvm"),
              std::string::npos);
    EXPECT_NE(sync({"boot", "--share", "/tmp"}).find("--share"),
              std::string::npos);
    // Wherever it was said.
    EXPECT_NE(refusal({"boot", "--cpus", "2", "--set", "time=synchronized"}),
              "");
}

TEST(options, quanta) {
    EXPECT_EQ(parse_quantum("1us"), 1000U);
    EXPECT_EQ(parse_quantum("250ns"), 250U);
    EXPECT_EQ(parse_quantum("2ms"), 2000000U);
    EXPECT_EQ(parse_quantum("1us "), 0U);
}

TEST(options, what_a_run_may_record) {
    for (const char* command : {"demo", "boot", "sim"})
        EXPECT_EQ(parse({command, "--record", "x.rec"}).record, "x.rec");
    EXPECT_EQ(refusal({"bench", "--record", "x.rec"}).rfind("--record: ", 0),
              0U);
    EXPECT_EQ(refusal({"boot", "--no-card", "--record", "x.rec"})
                  .rfind("--record: ", 0),
              0U);
}

TEST(options, nonsense_is_refused) {
    EXPECT_NE(refusal({}), "");
    EXPECT_NE(refusal({"fly"}), "");
    EXPECT_NE(refusal({"demo", "--fly"}), "");
    EXPECT_NE(refusal({"demo", "--nodes", "1"}), "");
    EXPECT_NE(refusal({"boot", "--nodes", "0"}), "");
    EXPECT_NE(refusal({"boot", "--nodes", "17"}), "");
    EXPECT_NE(refusal({"boot", "--nodes", "two"}), "");
    EXPECT_NE(refusal({"boot", "--nodes", "-1"}), "");
    EXPECT_NE(refusal({"boot", "--memory", "16"}), "");
    EXPECT_NE(refusal({"boot", "--cpus", "0"}), "");
    EXPECT_NE(refusal({"boot", "--accel", "xen"}), "");
    EXPECT_NE(refusal({"boot", "--share", "/nonexistent"}), "");
    EXPECT_NE(refusal({"boot", "--set", "novalue"}), "");
    EXPECT_NE(refusal({"boot", "--set", "=1"}), "");
    EXPECT_NE(refusal({"boot", "--profile", "nonesuch"}), "");
    EXPECT_NE(refusal({"demo", "--config", "/nonexistent.toml"}), "");
    EXPECT_NE(
        refusal({"demo", "--config", "/dev/zero"}).find("no regular file"),
        std::string::npos);
    EXPECT_NE(refusal({"demo", "--time", "sometimes"}), "");
    EXPECT_NE(refusal({"demo", "--engine", "steam"}), "");
}

TEST(options, words_for_qemu_come_behind_the_dashes) {
    EXPECT_EQ(refusal({"boot", "nodes", "4"}).rfind("nodes: not expected", 0),
              0U);
    EXPECT_NE(refusal({"boot", "x", "--", "-s"}), "");
    EXPECT_EQ(refusal({"boot", "--nodes", "1", "--", "-s", "x"}), "");
}

// Past the launcher's probe it ends in a guest that hangs.
TEST(options, kvm_is_asked_for_by_our_option) {
    const std::vector<std::vector<std::string>> all = {
        {"-enable-kvm"},         {"--enable-kvm"},
        {"-accel", "kvm"},       {"--accel", "kvm,dirty-ring-size=4096"},
        {"-M", "q35,accel=kvm"}, {"-s", "-machine", "accel=kvm:tcg"},
    };
    for (auto words : all) {
        words.insert(words.begin(), {"boot", "--"});
        const std::string line = refusal(words);
        EXPECT_NE(line.find(words.back()), std::string::npos) << line;
        EXPECT_NE(line.find("use --accel kvm"), std::string::npos) << line;
    }
    EXPECT_EQ(refusal({"boot", "--", "-accel", "tcg", "-device", "kvm"}), "");
    EXPECT_EQ(refusal({"boot", "--accel", "kvm"}), "");
}

TEST(options, where_the_results_go_is_looked_at_first) {
    const std::string line = refusal({"demo", "--json", "/nonexistent/x"});
    EXPECT_EQ(
        line.rfind("--json /nonexistent/x: cannot be written: No such", 0), 0U)
        << line;
    EXPECT_NE(refusal({"demo", "--json", "/tmp"}), "");
    EXPECT_EQ(refusal({"demo", "--json", "/tmp/not-there-yet.json"}), "");
    EXPECT_EQ(refusal({"demo", "--json", "-"}), "");
    EXPECT_EQ(refusal({"demo", "--json", "/dev/stdout"}), "");
}

TEST(guest_command, has_what_the_card_needs) {
    options opts = parse({"boot", "--memory", "256", "--", "-s"});
    settings where;
    where.qemu = "/usr/bin/qemu-system-x86_64";
    guest_options what;
    what.node = 3;
    const command qemu =
        guest_command(where, opts, {}, {"/k", "/i"}, what, "/run,dir");
    const auto has = [&](const std::string& word) {
        for (const auto& each : qemu.argv) {
            if (each.find(word) != std::string::npos)
                return true;
        }
        return false;
    };
    EXPECT_EQ(qemu.argv.front(), "/usr/bin/qemu-system-x86_64");
    EXPECT_EQ(qemu.argv.back(), "-s");
    EXPECT_TRUE(has("memory-backend-memfd,id=m,size=256M,share=on"));
    EXPECT_TRUE(has("path=/run,,dir/node3.con"));
    EXPECT_TRUE(has("prawn_node=3"));
    EXPECT_FALSE(has("prawn_shell"));
    for (size_t i = 0; i + 1 < qemu.argv.size(); i++) {
        if (qemu.argv[i + 1].find("vfio-user-pci") == std::string::npos)
            continue;
        EXPECT_EQ(qemu.argv[i], "-device");
        const auto device = nlohmann::json::parse(qemu.argv[i + 1]);
        EXPECT_EQ(device["driver"], "vfio-user-pci");
        EXPECT_EQ(device["socket"]["path"], "/run,dir/node3.sock");
        EXPECT_GE(device["x-msg-timeout"], 60000);
        return;
    }
    FAIL() << "no card";
}

TEST(guest_command, counts_instructions_in_synchronized_time) {
    const options opts = parse({"boot"});
    settings where;
    where.qemu = "/usr/bin/qemu-system-x86_64";
    where.build_dir = "/build";
    time_mode time;
    time.synchronized = true;
    time.shift = 4;
    guest_options what;
    what.node = 1;
    const std::string line =
        guest_command(where, opts, time, {"/k", "/i"}, what, "/run").text();
    for (const char* words :
         {"-icount shift=4,sleep=off", "-accel tcg,thread=single", "clock=vm",
          "-seed 1", "tsc_early_khz=1000000",
          "/build/qemu-device/lockstep/prawn-lockstep.so,channel=/run/"
          "lockstep,node=1,shift=4"})
        EXPECT_NE(line.find(words), std::string::npos) << words << "\n" << line;
    EXPECT_EQ(line.find("wait=off"), std::string::npos);
}

}  // namespace
}  // namespace prawn::launch
