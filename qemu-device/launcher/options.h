// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_OPTIONS_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_OPTIONS_H

#include <filesystem>
#include <string>
#include <vector>

namespace prawn::launch {

// What demo, boot, sim and bench have in common, and what each has besides.
struct options {
    std::string command;  // demo, boot, sim or bench

    // Given by ./prawn, not by people.
    std::filesystem::path root;       // the source tree
    std::filesystem::path build_dir;  // build/<preset>

    std::string config;
    std::string profile;
    std::string time;
    std::string quantum;
    std::string engine;
    std::string rtl;
    std::string record;
    std::vector<std::string> set;
    std::string json;
    bool verbose = false;

    unsigned nodes = 2;
    bool nodes_given = false;  // on the command line, not by a configuration
    unsigned memory_mib = 512;
    unsigned cpus = 1;
    std::string accel;
    unsigned timeout_s = 300;

    // boot
    std::string cmd;
    bool cmd_given = false;
    bool as_user = false;
    bool no_card = false;
    std::string share;
    std::string module_params;
    std::vector<std::string> qemu_args;

    // Of no command line: more words for the guests' kernel.
    std::string kernel_append;

    // demo
    bool quick = false;
};

// Parses the command line. Throws a failure (EXIT_USAGE) with one line that
// names the option; an option that exists but cannot be served in this version
// is refused by name. Returns false when the text that was asked for (--help,
// --version) has been printed and nothing else is to be done.
bool parse_options(int argc, char** argv, options& result);

}  // namespace prawn::launch

#endif
