// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <fstream>
#include <regex>

#include <cstdio>
#include <sys/wait.h>

#include "failure.h"

namespace fs = std::filesystem;

namespace prawn::launch {

fs::path settings::sim() const {
    return build_dir / "tlm" / "sim" / "prawn-sim";
}

fs::path settings::image_dir() const {
    return build_dir / "image";
}

command settings::qemu_command() const {
    if (!qemu_private)
        return {{qemu.string()}, {}};
    // A QEMU of a newer Debian with that Debian's libraries, loader included.
    const fs::path libs = qemu / "usr/lib/x86_64-linux-gnu";
    const fs::path share = qemu / "usr/share";
    return {{qemu / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libs,
             qemu / "usr/bin/qemu-system-x86_64", "-L", share / "qemu", "-L",
             share / "seabios"},
            {{"QEMU_MODULE_DIR", libs / "qemu"}}};
}

std::string settings::qemu_version() const {
    command what = qemu_command();
    what.argv.emplace_back("-version");
    const std::string text = output_of(what);
    std::smatch match;
    if (std::regex_search(text, match, std::regex("version ([0-9.]+)")))
        return match[1];
    return "unknown";
}

settings load_settings(const options& opts) {
    settings result;
    result.root = fs::absolute(opts.root);
    result.build_dir = fs::absolute(opts.build_dir);
    result.state_dir = result.root / "build";
    const fs::path conf = result.state_dir / "setup.conf";
    std::ifstream in(conf);
    std::string line;
    while (std::getline(in, line)) {
        const size_t at = line.find('=');
        if (at == std::string::npos)
            continue;
        const std::string key = line.substr(0, at);
        const std::string value = line.substr(at + 1);
        if (key == "kernel")
            result.kernel = value;
        else if (key == "qemu")
            result.qemu = value;
        else if (key == "busybox")
            result.busybox = value;
        else if (key == "qemu_kind")
            result.qemu_private = value == "private";
    }
    if (result.kernel.empty() || result.qemu.empty() ||
        result.busybox.empty()) {
        throw failure(EXIT_SETUP, conf.string() +
                                      ": missing or incomplete: run "
                                      "./prawn setup");
    }
    return result;
}

std::string output_of(const command& what) {
    std::FILE* pipe =
        popen((what.text() + " 2>/dev/null </dev/null").c_str(), "re");
    if (!pipe)
        return {};
    std::string text;
    char data[4096];
    size_t size = 0;
    while ((size = fread(data, 1, sizeof(data), pipe)) > 0)
        text.append(data, size);
    return pclose(pipe) == 0 ? text : std::string();
}

}  // namespace prawn::launch
