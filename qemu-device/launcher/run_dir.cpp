// SPDX-License-Identifier: Apache-2.0
#include "run_dir.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "failure.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

constexpr size_t KEPT_LOGS = 10;
constexpr const char* LONGEST_NAME = "/node15.sock";

bool fits_a_socket(const fs::path& directory) {
    return directory.string().size() + strlen(LONGEST_NAME) <
           sizeof(sockaddr_un::sun_path);
}

// A directory whose lock nobody holds belongs to a run that is over, or to one
// that has just begun: see run_dir::make.
void clear_stale(const fs::path& parent, const std::string& prefix) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(parent, ignored)) {
        if (entry.path().filename().string().rfind(prefix, 0) != 0)
            continue;
        const int fd =
            open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            // Not even begun: killed between two system calls.
            const auto age = fs::file_time_type::clock::now() -
                             fs::last_write_time(entry.path(), ignored);
            if (!ignored && age > std::chrono::minutes(1))
                ::rmdir(entry.path().c_str());
            continue;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            fs::remove_all(entry.path(), ignored);
        close(fd);
    }
}

// The terminal as the launcher has found it.
struct terminal {
    int fd = -1;
    termios saved{};

    void look() {
        if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &saved) == 0)
            fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    }

    // Unless somebody else has done so: a shell does when its job is killed.
    void give_back() const {
        termios now{};
        if (fd < 0 || tcgetattr(fd, &now) != 0)
            return;
        if ((now.c_lflag & (ICANON | ISIG | IEXTEN)) == 0)
            tcsetattr(fd, TCSANOW, &saved);
    }
};

fs::path make_private(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string name = (parent / "prawn-XXXXXX").string();
    if (!mkdtemp(name.data()))
        return {};
    return name;
}

// Reads "+GROUP", "-GROUP", "raw", "cooked" and "quit" lines until the launcher
// is gone.
[[noreturn]] void janitor(int pipe, const std::string& directory,
                          const terminal& console) {
    setsid();
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        signal(number, SIG_IGN);
    std::set<pid_t> groups;
    bool raw = false;
    std::string text;
    char data[256];
    ssize_t size = 0;
    while ((size = read(pipe, data, sizeof(data))) != 0) {
        if (size < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        text.append(data, static_cast<size_t>(size));
        size_t end = 0;
        while ((end = text.find('\n')) != std::string::npos) {
            const char kind = text[0];
            const auto group =
                static_cast<pid_t>(strtol(text.c_str() + 1, nullptr, 10));
            text.erase(0, end + 1);
            if (kind == 'q')
                _exit(0);
            if (kind == '+' && group > 1)
                groups.insert(group);
            else if (kind == '-')
                groups.erase(group);
            else
                raw = kind == 'r';
        }
    }
    for (pid_t group : groups)
        kill(-group, SIGKILL);
    if (raw)
        console.give_back();
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    _exit(0);
}

}  // namespace

run_dir::run_dir(const fs::path& build_dir) : m_logs(build_dir / "logs") {
    const char* runtime = getenv("XDG_RUNTIME_DIR");
    std::vector<fs::path> parents{build_dir / "run"};
    if (runtime && *runtime)
        parents.emplace_back(runtime);
    parents.emplace_back("/tmp");
    for (const auto& parent : parents) {
        if (!fits_a_socket(parent / "prawn-XXXXXX"))
            continue;
        clear_stale(parent, "prawn-");
        if (make(parent))
            break;
    }
    if (m_path.empty()) {
        throw failure(EXIT_SETUP,
                      "cannot make a directory for this run's sockets in " +
                          parents[0].string() + " or /tmp: " + strerror(errno));
    }
    start_janitor();
}

// Another launcher that clears away may find the lock before we hold it, and
// take the directory for a dead run's: then that one is lost, try another.
bool run_dir::make(const fs::path& parent) {
    for (int attempt = 0; attempt < 10; attempt++) {
        m_path = make_private(parent);
        if (m_path.empty())
            return false;
        const fs::path lock = m_path / "lock";
        m_lock = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct stat mine {
        };
        struct stat there {
        };
        std::error_code error;
        if (m_lock >= 0 && flock(m_lock, LOCK_EX | LOCK_NB) == 0 &&
            fstat(m_lock, &mine) == 0 && stat(lock.c_str(), &there) == 0 &&
            mine.st_ino == there.st_ino &&
            fs::create_directory(m_path / "log", error))
            return true;
        const int reason = error ? error.value() : errno;
        if (m_lock >= 0)
            close(m_lock);
        fs::remove_all(m_path, error);
        m_path.clear();
        errno = reason;
    }
    return false;
}

run_dir::~run_dir() {
    std::error_code ignored;
    fs::remove_all(m_path, ignored);
    tell("quit\n");
    close(m_janitor);
    waitpid(m_janitor_pid, nullptr, 0);
    close(m_lock);
}

void run_dir::start_janitor() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw failure(EXIT_SETUP, "no pipe: too many open files");
    terminal console;
    console.look();
    m_janitor_pid = fork();
    if (m_janitor_pid == 0) {
        close(ends[1]);
        // The terminal, or a pipe that a script reads to its end, must not
        // stay open because of us.
        const int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        janitor(ends[0], m_path.string(), console);
    }
    close(ends[0]);
    if (console.fd >= 0)
        close(console.fd);
    m_janitor = ends[1];
}

void run_dir::tell(const std::string& line) const {
    // A janitor that is gone is no reason to stop: it is the second line.
    const ssize_t written = write(m_janitor, line.data(), line.size());
    (void)written;
}

void run_dir::started(pid_t group) {
    tell("+" + std::to_string(group) + "\n");
}

void run_dir::reaped(pid_t group) {
    tell("-" + std::to_string(group) + "\n");
}

void run_dir::terminal_is_raw(bool raw) const {
    tell(raw ? "raw\n" : "cooked\n");
}

fs::path run_dir::log(const std::string& name) const {
    return m_path / "log" / name;
}

fs::path run_dir::keep_logs() {
    std::error_code error;
    fs::create_directories(m_logs, error);
    fs::path target = m_logs / m_path.filename();
    fs::copy(m_path / "log", target, fs::copy_options::recursive, error);
    if (error)
        return m_path / "log";

    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(m_logs, error))
        all.push_back(entry.path());
    const auto age = [](const fs::path& path) {
        std::error_code gone;
        return fs::last_write_time(path, gone);
    };
    std::sort(all.begin(), all.end(),
              [&](const auto& a, const auto& b) { return age(a) > age(b); });
    for (size_t i = KEPT_LOGS; i < all.size(); i++)
        fs::remove_all(all[i], error);
    return target;
}

}  // namespace prawn::launch
