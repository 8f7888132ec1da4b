// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_SESSION_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_SESSION_H

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "event_loop.h"
#include "failure.h"
#include "guest.h"
#include "options.h"
#include "process.h"
#include "run_dir.h"
#include "settings.h"
#include "time_mode.h"

namespace prawn::launch {

// What a failed checker means, for people.
constexpr const char* CHECKER_FAILED =
    "the card touched memory that no kernel granted (--verbose shows which)";

// One run: the model and the guests, started in order, watched while anything
// is waited for, stopped in order. A part that dies unasked ends the run with
// one line that says which and how, and its last log lines.
class session
{
public:
    session(const options& opts, const settings& where);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    event_loop& loop() { return m_loop; }
    const options& opts() const { return m_opts; }
    options& change_opts() { return m_opts; }  // before the next start
    const settings& where() const { return m_where; }
    run_dir& dir() { return m_dir; }

    void start_model();
    // With shell, node 0 has one on its console.
    void start_guests(bool shell);
    void wait_for_guests();

    // The timing profile of this run, by the name its configuration gives it.
    std::string profile() const;

    // What the model prints, line by line; it ends with its counters.
    std::function<void(const std::string& line)> on_model_line;

    // After stop(): the model's counters as it wrote them, a JSON text; empty
    // when there are none.
    const std::string& counters() const { return m_counters; }

    // After stop(): whether the model has seen a DMA that no kernel granted.
    bool checker_failed() const { return m_checker_failed; }

    guest& node(unsigned number) { return *m_guests.at(number); }
    unsigned count() const { return static_cast<unsigned>(m_guests.size()); }

    const time_mode& time() const { return m_time; }
    // What kept a synchronized run from being exact, as the model said when it
    // was stopped; empty if nothing did.
    std::string skew() const;
    // In step with the model nothing comes into a guest from outside: what it
    // is to run is said before it starts, and runs one after the other.
    std::shared_ptr<guest_job> script(unsigned number, const std::string& text,
                                      bool root);
    // Guests power themselves off at the end of their scripts: whoever stopped
    // them from outside would do it at some other time in each run.
    void power_off_after_scripts();
    void wait_for_power_off();

    // Kills a guest's QEMU as a power failure would, and starts it again. The
    // model and the other guests go on.
    void kill_guest(unsigned number);
    void restart_guest(unsigned number);
    pid_t model_pid() const { return m_model ? m_model->pid() : -1; }

    // Runs until the condition holds; a dead part throws. No limit when the
    // time-out is 0. "what" completes the sentence "... within N s".
    void wait(const std::function<bool()>& done, unsigned timeout_s,
              const std::string& what);

    // A powered-off guest ends its QEMU; that is no accident when expected.
    void expect_power_off() { m_power_off_expected = true; }
    bool powered_off(unsigned number);

    // Model and guests that are started from now on run on this CPU only;
    // free again when negative.
    void pin(int cpu) { m_cpu = cpu; }

    // Stops all parts in order; the destructor does, too. Parts may be
    // started again afterwards.
    void stop();

private:
    command model_command() const;
    bool read_model();
    void check_parts();
    void check_guest(guest& which);
    void start_guest(unsigned number);
    void heartbeat();
    void show(const command& what) const;

    options m_opts;
    const settings& m_where;
    const time_mode m_time;
    event_loop m_loop;
    run_dir m_dir;
    std::unique_ptr<process> m_model;
    bool m_model_ready = false;
    std::string m_model_said;
    std::ofstream m_model_log;
    // How each guest was started, for a restart; a guest that was killed on
    // purpose is empty.
    std::vector<guest_options> m_guest_options;
    std::vector<command> m_guest_commands;
    std::vector<std::unique_ptr<guest>> m_guests;
    std::map<unsigned, std::string> m_scripts;  // by node
    std::map<unsigned, std::vector<std::shared_ptr<guest_job>>> m_expected;
    bool m_power_off_expected = false;
    bool m_stopping = false;
    int m_cpu = -1;
    bool m_checker_failed = false;
    std::string m_counters;
    steady::time_point m_last_ping;
};

// A stage of a run: says how long it took when it is over, and on a terminal
// that it has begun.
class stage
{
public:
    explicit stage(std::string what);
    ~stage();
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    void done(const std::string& remark = "");

    // Called often while something is waited for: without a terminal, says
    // now and then that the stage is not over.
    static void tick();

private:
    std::string m_what;
    steady::time_point m_begin = steady::now();
    steady::time_point m_last_said = steady::now();
    bool m_open = false;
};

}  // namespace prawn::launch

#endif
