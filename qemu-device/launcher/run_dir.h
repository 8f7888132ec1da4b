// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_RUN_DIR_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_RUN_DIR_H

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace prawn::launch {

// The private directory of one run: sockets, logs, configuration. It is gone
// when the run is over, however it ends: a small second process, the janitor,
// stops the run's processes, gives the terminal back and removes the directory
// should the launcher be killed. What even the janitor did not survive, the
// next run clears away.
class run_dir
{
public:
    // Below build/run, or where the user's sockets belong when that path is
    // too long for a socket's name.
    explicit run_dir(const std::filesystem::path& build_dir);
    ~run_dir();
    run_dir(const run_dir&) = delete;
    run_dir& operator=(const run_dir&) = delete;

    const std::filesystem::path& path() const { return m_path; }
    std::filesystem::path log(const std::string& name) const;

    // Process groups that the janitor has to know.
    void started(pid_t group);
    void reaped(pid_t group);

    // Standard input is a terminal in raw mode from now on, or no longer.
    void terminal_is_raw(bool raw) const;

    // Moves the logs to where they outlive the run; returns that place.
    std::filesystem::path keep_logs();

private:
    bool make(const std::filesystem::path& parent);
    void start_janitor();
    void tell(const std::string& line) const;

    std::filesystem::path m_logs;  // build/logs
    std::filesystem::path m_path;
    int m_lock = -1;
    int m_janitor = -1;  // write end of its pipe
    pid_t m_janitor_pid = -1;
};

}  // namespace prawn::launch

#endif
