// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_SETTINGS_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_SETTINGS_H

#include <filesystem>
#include <string>

#include "options.h"
#include "process.h"

namespace prawn::launch {

// What ./prawn setup found on this machine (build/setup.conf), and where the
// things are that have been built.
struct settings {
    std::string kernel;  // release, such as 6.1.0-57-amd64
    std::filesystem::path qemu;
    std::filesystem::path busybox;  // a static one
    bool qemu_private = false;  // qemu is an extracted directory, not a program

    std::filesystem::path root;
    std::filesystem::path build_dir;  // build/<preset>
    std::filesystem::path state_dir;  // build

    std::filesystem::path sim() const;
    std::filesystem::path image_dir() const;

    // QEMU as it is started here, without further arguments.
    command qemu_command() const;
    std::string qemu_version() const;  // such as 11.1.3; "unknown" otherwise
};

// Throws a failure (EXIT_SETUP) when there has been no set-up.
settings load_settings(const options& opts);

// Standard output of a command that is expected to be quick.
// Empty when it fails.
std::string output_of(const command& what);

}  // namespace prawn::launch

#endif
