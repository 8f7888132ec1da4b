// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event_loop.h"
#include "failure.h"

namespace prawn::launch {

namespace {

std::string quoted(const std::string& word) {
    static const std::string plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-+=/.,:@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
        return word;
    }
    std::string text = "'";
    for (char c : word) {
        if (c == '\'')
            text += "'\\''";
        else
            text += c;
    }
    return text + "'";
}

[[noreturn]] void become(const command& what, pid_t parent, int log, int out) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);  // the launcher was gone before the line above
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(log, 2);
    restore_signals();
    if (what.cpu >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<size_t>(what.cpu), &one);
        sched_setaffinity(0, sizeof(one), &one);
    }
    for (const auto& [key, value] : what.environment)
        setenv(key.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const auto& word : what.argv)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

}  // namespace

std::string command::text() const {
    std::string line;
    for (const auto& [key, value] : environment)
        line += key + "=" + quoted(value) + " ";
    if (cpu >= 0)
        line += "taskset -c " + std::to_string(cpu) + " ";
    for (const auto& word : argv)
        line += quoted(word) + " ";
    if (!line.empty())
        line.pop_back();
    return line;
}

process::process(run_dir& dir, std::string name, const command& what,
                 const std::filesystem::path& log, bool output_pipe) :
    m_dir(dir), m_name(std::move(name)), m_log(log) {
    const int log_fd =
        open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) {
        throw failure(EXIT_SETUP,
                      "cannot write " + log.string() + ": " + strerror(errno));
    }
    int ends[2] = {-1, -1};
    if (output_pipe && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        close(log_fd);
        throw failure(EXIT_SETUP, "no pipe: too many open files");
    }
    const pid_t parent = getpid();
    m_pid = fork();
    if (m_pid == 0) {
        if (output_pipe)
            fcntl(ends[1], F_SETFL, 0);
        become(what, parent, log_fd, output_pipe ? ends[1] : log_fd);
    }
    close(log_fd);
    if (output_pipe) {
        close(ends[1]);
        m_output = ends[0];
    }
    if (m_pid < 0) {
        m_ended = true;
        throw failure(EXIT_SETUP,
                      "cannot start " + m_name + ": " + strerror(errno));
    }
    setpgid(m_pid, m_pid);  // whoever comes first
    m_dir.started(m_pid);
}

process::~process() {
    stop(std::chrono::milliseconds(0));
    if (m_output >= 0)
        close(m_output);
}

bool process::ended() {
    if (!m_ended && waitpid(m_pid, &m_status, WNOHANG) == m_pid) {
        m_ended = true;
        kill(-m_pid, SIGKILL);  // whatever it left in its group
        m_dir.reaped(m_pid);
    }
    return m_ended;
}

std::string process::how_it_ended() const {
    if (WIFSIGNALED(m_status)) {
        return std::string("was killed by signal ") +
               std::to_string(WTERMSIG(m_status)) + " (" +
               strsignal(WTERMSIG(m_status)) + ")";
    }
    return "exited with status " + std::to_string(WEXITSTATUS(m_status));
}

void process::terminate() const {
    if (!m_ended)
        kill(-m_pid, SIGTERM);
}

void process::stop(std::chrono::milliseconds grace) {
    const auto deadline = steady::now() + grace;
    if (grace.count() > 0)
        terminate();
    while (!ended() && steady::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (m_ended)
        return;
    kill(-m_pid, SIGKILL);
    while (!ended())
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

std::string process::last_lines(size_t count) const {
    return tail(m_log, count);
}

std::string tail(const std::filesystem::path& file, size_t lines) {
    constexpr std::streamoff MOST = 8192;
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    if (!in)
        return {};
    const std::streamoff size = in.tellg();
    in.seekg(std::max<std::streamoff>(0, size - MOST));
    std::string text{std::istreambuf_iterator<char>(in), {}};
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
        text.pop_back();
    size_t at = text.size();
    for (size_t i = 0; i < lines && at != std::string::npos && at > 0; i++)
        at = text.rfind('\n', at - 1);
    return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace prawn::launch
