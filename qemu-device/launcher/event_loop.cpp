// SPDX-License-Identifier: Apache-2.0
#include "event_loop.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "failure.h"

namespace prawn::launch {

namespace {

sigset_t handled() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH}) {
        sigaddset(&set, number);
    }
    return set;
}

}  // namespace

void restore_signals() {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
}

event_loop::event_loop() {
    const sigset_t set = handled();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    m_signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (m_signals < 0)
        throw failure(EXIT_SETUP, "no signalfd: this kernel is too old");
}

event_loop::~event_loop() {
    close(m_signals);
}

void event_loop::watch(int fd, short events, handler call) {
    m_watched[fd] = {events, std::move(call)};
}

void event_loop::events(int fd, short events) {
    auto it = m_watched.find(fd);
    if (it != m_watched.end())
        it->second.events = events;
}

void event_loop::forget(int fd) {
    m_watched.erase(fd);
}

void event_loop::signals() {
    signalfd_siginfo info;
    bool child = false;
    while (read(m_signals, &info, sizeof(info)) == sizeof(info)) {
        switch (info.ssi_signo) {
            case SIGCHLD:
                child = true;
                break;
            case SIGWINCH:
                if (on_resize)
                    on_resize();
                break;
            case SIGINT:
                throw failure(EXIT_INTERRUPTED, "interrupted");
            default:
                throw failure(EXIT_INTERRUPTED,
                              std::string("stopped by ") +
                                  strsignal(static_cast<int>(info.ssi_signo)));
        }
    }
    if (child && on_child)
        on_child();
}

void event_loop::once(int timeout_ms) {
    std::vector<pollfd> fds{{m_signals, POLLIN, 0}};
    for (const auto& [fd, entry] : m_watched)
        fds.push_back({fd, entry.events, 0});
    const int ready = poll(fds.data(), fds.size(), timeout_ms);
    if (ready <= 0)
        return;
    // Descriptors first: what a process said before it died explains why.
    for (size_t i = 1; i < fds.size(); i++) {
        if (!fds[i].revents)
            continue;
        auto it = m_watched.find(fds[i].fd);
        if (it == m_watched.end())
            continue;  // another handler has just removed it
        const handler call = it->second.call;
        call(fds[i].revents);
    }
    if (fds[0].revents)
        signals();
}

bool event_loop::run_until(const std::function<bool()>& done,
                           steady::time_point deadline) {
    using std::chrono::milliseconds;
    while (!done()) {
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - steady::now());
        if (left.count() <= 0)
            return false;
        const auto step = std::min<long>(left.count() + 1, 200);
        once(static_cast<int>(step));
    }
    return true;
}

}  // namespace prawn::launch
