// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.h"
#include "console.h"
#include "run_report.h"

namespace prawn::launch {

raw_terminal::raw_terminal(run_dir& dir) : m_dir(dir) {
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &m_saved) != 0)
        return;
    termios raw = m_saved;
    cfmakeraw(&raw);
    raw.c_oflag |= OPOST;  // for the lines that are ours
    m_dir.terminal_is_raw(true);
    m_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

raw_terminal::~raw_terminal() {
    if (m_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &m_saved);
    m_dir.terminal_is_raw(false);
}

bool raw_terminal::size(unsigned& rows, unsigned& columns) {
    winsize window{};
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0)
        return false;
    rows = window.ws_row;
    columns = window.ws_col;
    return true;
}

namespace {

constexpr char LEAVE_KEY = 0x1d;      // Ctrl-]
constexpr char INTERRUPT_KEY = 0x03;  // Ctrl-C
constexpr char END_OF_INPUT = 0x04;

void write_all(int fd, const char* data, size_t size) {
    while (size > 0) {
        const ssize_t written = write(fd, data, size);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN) {
                pollfd wait{fd, POLLOUT, 0};
                poll(&wait, 1, 1000);
                continue;
            }
            return;  // whoever read this is gone: nothing to report to
        }
        data += written;
        size -= static_cast<size_t>(written);
    }
}

// Writes a guest's output with the guest's name before every line.
class line_printer
{
public:
    line_printer(int fd, std::string prefix) :
        m_fd(fd), m_prefix(std::move(prefix)) {}

    void print(const std::string& data) {
        if (m_prefix.empty()) {
            write_all(m_fd, data.data(), data.size());
            return;
        }
        m_line += data;
        size_t end = 0;
        while ((end = m_line.find('\n')) != std::string::npos) {
            const std::string line = m_prefix + m_line.substr(0, end + 1);
            write_all(m_fd, line.data(), line.size());
            m_line.erase(0, end + 1);
        }
    }

    void finish() {
        if (!m_line.empty())
            print("\n");
    }

private:
    int m_fd;
    std::string m_prefix;
    std::string m_line;
};

// With --json - standard output is the report's alone.
int output_fd(const session& run) {
    return run.opts().json == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

int one_command(session& run, json& report,
                const std::vector<std::shared_ptr<guest_job>>& scripted) {
    struct running {
        line_printer out;
        line_printer err;
        std::shared_ptr<guest_job> job;
    };
    std::vector<std::unique_ptr<running>> all;
    for (unsigned k = 0; k < run.count(); k++) {
        const std::string prefix =
            run.count() > 1 ? run.node(k).name() + ": " : "";
        all.push_back(std::make_unique<running>(
            running{line_printer(output_fd(run), prefix),
                    line_printer(STDERR_FILENO, prefix), nullptr}));
        running* mine = all.back().get();
        mine->job = k < scripted.size()
                        ? scripted[k]
                        : run.node(k).run(run.opts().cmd, !run.opts().as_user);
        mine->job->on_output = [mine](const std::string& data, bool error) {
            (error ? mine->err : mine->out).print(data);
        };
    }
    report["status"] = std::vector<json>(run.count());  // null: not known
    int status = EXIT_OK;
    for (unsigned k = 0; k < run.count(); k++) {
        running& mine = *all[k];
        run.wait([&] { return mine.job->done; }, 0, "");
        mine.out.finish();
        mine.err.finish();
        if (mine.job->lost) {
            throw failure(
                EXIT_PART_DIED,
                run.node(k).name() + " went away while the command ran",
                run.node(k).last_console_lines(12));
        }
        report["status"][k] = mine.job->status;
        if (status == EXIT_OK)
            status = mine.job->status;
    }
    return status;
}

void resize(session& run) {
    unsigned rows = 0;
    unsigned columns = 0;
    if (raw_terminal::size(rows, columns)) {
        run.node(0).run(
            fmt::format("stty -F /dev/ttyS0 rows {} cols {}", rows, columns),
            true);
    }
}

// What is typed into a shell that may not be there yet.
class shell_input
{
public:
    shell_input(guest& where, bool terminal) :
        m_guest(where), m_terminal(terminal) {}

    bool left() const { return m_left; }

    // There is no more. From a terminal: it is gone, and the user with it.
    void end() {
        m_left = m_left || m_terminal;
        m_ended = true;
    }

    // Called often: makes the shell see the end of its input. A ^D is lost
    // when it comes before the shell reads its terminal by itself, and one
    // that a command of the shell reads is that command's, so it is typed
    // until the shell has gone.
    void tick() {
        if (!m_open || !m_ended || steady::now() < m_next_end)
            return;
        // What lacks its newline is a line all the same.
        if (m_last >= ' ')
            type("\n", 1);
        type(&END_OF_INPUT, 1);
        m_next_end = steady::now() + m_pause;
        m_pause = std::min(m_pause * 2, LONGEST_PAUSE);
    }

    void take(const char* data, size_t size) {
        for (size_t i = 0; i < size && m_terminal; i++) {
            m_left = m_left || data[i] == LEAVE_KEY;
            // Ours as long as there is no shell that it could be for.
            if (!m_open && data[i] == INTERRUPT_KEY)
                throw failure(EXIT_INTERRUPTED, "interrupted");
        }
        if (m_left)
            return;
        if (m_open)
            type(data, size);
        else
            m_early.append(data, size);
    }

    // The shell is there: a booting kernel would have lost it.
    void open() {
        m_open = true;
        type(m_early.data(), m_early.size());
        m_early.clear();
    }

private:
    static constexpr auto LONGEST_PAUSE = std::chrono::milliseconds(2000);

    void type(const char* data, size_t size) {
        m_guest.type(data, size);
        if (size > 0)
            m_last = data[size - 1];
    }

    guest& m_guest;
    bool m_terminal;
    bool m_left = false;
    bool m_open = false;
    bool m_ended = false;
    char m_last = 0;
    steady::time_point m_next_end;
    std::chrono::milliseconds m_pause{200};
    std::string m_early;
};

int shell(session& run) {
    guest& first = run.node(0);
    const raw_terminal terminal(run.dir());
    shell_input input(first, terminal.is_terminal());
    run.loop().watch(STDIN_FILENO, POLLIN, [&](short) {
        char data[512];
        const ssize_t size = read(STDIN_FILENO, data, sizeof(data));
        if (size > 0) {
            input.take(data, static_cast<size_t>(size));
            return;
        }
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        run.loop().forget(STDIN_FILENO);
        input.end();
    });
    const auto over = [&] { return input.left() || run.powered_off(0); };
    // The others may take longer; they are watched all the same.
    run.wait([&] { return over() || first.up(); }, run.opts().timeout_s,
             "node0 did not come up");
    if (first.up() && !over()) {
        if (terminal.is_terminal()) {
            resize(run);
            run.loop().on_resize = [&run] { resize(run); };
        }
        input.open();
        run.wait(
            [&] {
                input.tick();
                return over();
            },
            0, "");
    }
    run.loop().forget(STDIN_FILENO);
    run.loop().on_resize = nullptr;
    return EXIT_OK;
}

int boot(session& run, json& report) {
    if (!run.opts().no_card)
        run.start_model();
    std::vector<std::shared_ptr<guest_job>> scripted;
    for (unsigned k = 0; k < run.opts().nodes; k++)
        if (run.opts().cmd_given && run.time().synchronized)
            scripted.push_back(
                run.script(k, run.opts().cmd, !run.opts().as_user));
    if (!scripted.empty())
        run.power_off_after_scripts();
    run.start_guests(!run.opts().cmd_given);
    if (run.opts().cmd_given) {
        run.wait_for_guests();
        report["kernel"] = run.node(0).release();
        const int status = one_command(run, report, scripted);
        if (!scripted.empty())
            run.wait_for_power_off();
        return status;
    }
    // A person wants to see from the first line on.
    run.expect_power_off();
    run.node(0).on_console = [fd = output_fd(run)](const char* data,
                                                   size_t size) {
        write_all(fd, data, size);
    };
    fmt::print(stderr,
               "prawn: the shell is node 0's; leave by exit{}\n"
               "prawn: logs of all nodes: {}\n",
               isatty(STDIN_FILENO) ? " or Ctrl-]" : "",
               run.dir().log("").string());
    return shell(run);
}

}  // namespace

int run_boot(session& run) {
    json report = run_facts(run);
    return reported(run, report, [&] {
        const int status = boot(run, report);
        run.stop();  // the model writes its counters
        add_counters(run, report);
        if (run.checker_failed())
            report["error"] = CHECKER_FAILED;
        return status;
    });
}

}  // namespace prawn::launch
