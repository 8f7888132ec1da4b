// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_PROCESS_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_PROCESS_H

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "run_dir.h"

namespace prawn::launch {

// A command line and what it adds to the environment.
struct command {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment;
    int cpu = -1;  // the only CPU it may use; any when negative

    std::string text() const;  // as one would type it into a shell
};

// One part of a run (the model, a QEMU) in a process group of its own. It
// dies with its object, and with the launcher, even when that is killed.
class process
{
public:
    // Standard output and error go to the log; with output_pipe, standard
    // output can be read from output() instead. Standard input is empty.
    process(run_dir& dir, std::string name, const command& what,
            const std::filesystem::path& log, bool output_pipe = false);
    ~process();
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    const std::string& name() const { return m_name; }
    pid_t pid() const { return m_pid; }
    int output() const { return m_output; }

    // Whether it has ended, and how; never waits.
    bool ended();
    int wait_status() const { return m_status; }
    std::string how_it_ended() const;  // "exited with status 1", "was killed…"

    // SIGTERM, then SIGKILL when the grace period is over.
    void stop(std::chrono::milliseconds grace);
    void terminate() const;  // SIGTERM, without waiting

    std::string last_lines(size_t count) const;  // of the log

private:
    run_dir& m_dir;
    std::string m_name;
    std::filesystem::path m_log;
    pid_t m_pid = -1;
    int m_output = -1;
    int m_status = 0;
    bool m_ended = false;
};

// The last lines of a file; empty when it cannot be read.
std::string tail(const std::filesystem::path& file, size_t lines);

}  // namespace prawn::launch

#endif
