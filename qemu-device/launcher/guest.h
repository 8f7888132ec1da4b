// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_GUEST_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_GUEST_H

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "event_loop.h"
#include "image.h"
#include "options.h"
#include "process.h"
#include "time_mode.h"

namespace prawn::launch {

// One command that runs in a guest.
struct guest_job {
    std::string out;
    std::string err;
    bool done = false;
    bool lost = false;  // the guest went away or was started anew meanwhile
    int status = 0;

    // When set, called with output as it arrives instead of collecting it.
    std::function<void(const std::string& data, bool is_error)> on_output;
};

// What is peculiar to one guest's QEMU.
struct guest_options {
    unsigned node = 0;
    bool shell = false;  // interactive shell on its console
    bool card = true;    // attach the card on <run>/node<k>.sock
    std::string append;  // more words for the kernel
};

// The complete command line of a guest's QEMU.
command guest_command(const settings& where, const options& opts,
                      const time_mode& time, const guest_image& image,
                      const guest_options& guest,
                      const std::filesystem::path& run_path);

// A QEMU, its console and its control channel.
class guest
{
public:
    guest(event_loop& loop, run_dir& dir, const guest_options& what,
          const command& qemu);
    ~guest();
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;

    unsigned node() const { return m_what.node; }
    std::string name() const { return "node" + std::to_string(node()); }
    process& qemu() { return *m_qemu; }
    bool up() const { return m_boots > 0 && !m_restarting; }
    unsigned boots() const { return m_boots; }
    bool said_bye() const { return m_bye; }
    const std::string& release() const { return m_release; }
    steady::time_point last_sign() const { return m_last_sign; }

    // Connects to QEMU's sockets as soon as they exist; true once done.
    bool connect();

    // Starts a command; a guest that is down makes it lost at once.
    std::shared_ptr<guest_job> run(const std::string& text, bool root);

    // What its script lets it run, in order; before it has come up.
    void expect(const std::vector<std::shared_ptr<guest_job>>& jobs);

    // Sends a signal to the process group of a command that still runs.
    void kill(const std::shared_ptr<guest_job>& job, int signal);

    void ping();
    void type(const char* data, size_t size);  // into the console

    // The console's bytes as they arrive, besides the log.
    std::function<void(const char* data, size_t size)> on_console;

    // A sentence when the guest's kernel has given up; empty otherwise.
    std::string panic() const;
    std::string last_console_lines(size_t count) const;

private:
    void console_ready(short revents);
    void control_ready(short revents);
    void handle(const control_message& message);
    void send(const std::string& line);
    void lose_jobs();

    event_loop& m_loop;
    guest_options m_what;
    std::filesystem::path m_run_path;
    std::unique_ptr<process> m_qemu;
    std::ofstream m_console_log;
    std::string m_console_tail;
    int m_console = -1;
    int m_control = -1;
    std::string m_to_send;
    control_parser m_parser;
    std::map<unsigned long, std::shared_ptr<guest_job>> m_jobs;
    unsigned long m_next_id = 1;
    unsigned m_boots = 0;
    bool m_restarting = false;
    bool m_bye = false;
    std::string m_release;
    steady::time_point m_last_sign;
};

}  // namespace prawn::launch

#endif
