// SPDX-License-Identifier: Apache-2.0
#include "guest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace prawn::launch {

namespace {

constexpr size_t CONSOLE_TAIL = 16 << 10;

int connect_to(const std::string& path) {
    sockaddr_un address{};
    if (path.size() >= sizeof(address.sun_path))
        return -1;
    const int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

}  // namespace

guest::guest(event_loop& loop, run_dir& dir, const guest_options& what,
             const command& qemu) :
    m_loop(loop),
    m_what(what),
    m_run_path(dir.path()),
    m_console_log(dir.log(name() + ".console.log"), std::ios::binary),
    m_last_sign(steady::now()) {
    m_qemu = std::make_unique<process>(dir, "QEMU of " + name(), qemu,
                                       dir.log(name() + ".qemu.log"));
}

guest::~guest() {
    for (int fd : {m_console, m_control}) {
        if (fd < 0)
            continue;
        m_loop.forget(fd);
        close(fd);
    }
    lose_jobs();
}

bool guest::connect() {
    const std::string base = (m_run_path / name()).string();
    if (m_console < 0) {
        m_console = connect_to(base + ".con");
        if (m_console < 0)
            return false;
        m_loop.watch(m_console, POLLIN,
                     [this](short revents) { console_ready(revents); });
    }
    if (m_control < 0) {
        m_control = connect_to(base + ".ctl");
        if (m_control < 0)
            return false;
        m_loop.watch(m_control, POLLIN,
                     [this](short revents) { control_ready(revents); });
    }
    return true;
}

void guest::console_ready(short) {
    char data[4096];
    const ssize_t size = read(m_console, data, sizeof(data));
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        m_loop.events(m_console, 0);
        m_loop.forget(m_console);
        return;
    }
    if (size < 0)
        return;
    const auto count = static_cast<size_t>(size);
    m_console_log.write(data, size);
    m_console_log.flush();
    m_console_tail.append(data, count);
    if (m_console_tail.size() > CONSOLE_TAIL)
        m_console_tail.erase(0, m_console_tail.size() - CONSOLE_TAIL);
    if (on_console)
        on_console(data, count);
}

void guest::control_ready(short revents) {
    if (revents & POLLOUT) {
        const ssize_t sent =
            ::send(m_control, m_to_send.data(), m_to_send.size(), MSG_NOSIGNAL);
        if (sent > 0)
            m_to_send.erase(0, static_cast<size_t>(sent));
        if (m_to_send.empty())
            m_loop.events(m_control, POLLIN);
    }
    if (!(revents & (POLLIN | POLLHUP | POLLERR)))
        return;
    char data[16384];
    const ssize_t size = read(m_control, data, sizeof(data));
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        m_loop.forget(m_control);
        lose_jobs();
        return;
    }
    if (size < 0)
        return;
    m_parser.feed(data, static_cast<size_t>(size));
    while (auto message = m_parser.next())
        handle(*message);
}

void guest::handle(const control_message& message) {
    m_last_sign = steady::now();
    switch (message.kind) {
        case control_message::HELLO:
            // A second one means that the guest has been started anew.
            if (m_boots > 0)
                lose_jobs();
            m_boots++;
            m_release = message.text;
            m_restarting = message.number != CONTROL_PROTOCOL;
            return;
        case control_message::BYE:
            m_bye = true;
            return;
        case control_message::PONG:
            return;
        default:
            break;
    }
    const auto it = m_jobs.find(message.id);
    if (it == m_jobs.end())
        return;
    const auto job = it->second;  // outlives what a handler may do
    if (message.kind == control_message::EXIT) {
        job->status = message.number;
        job->done = true;
        m_jobs.erase(it);
    } else if (job->on_output) {
        job->on_output(message.text, message.kind == control_message::ERR);
    } else {
        (message.kind == control_message::OUT ? job->out : job->err) +=
            message.text;
    }
}

void guest::lose_jobs() {
    for (auto& [id, job] : m_jobs) {
        job->lost = true;
        job->done = true;
        job->status = 255;
    }
    m_jobs.clear();
}

void guest::send(const std::string& line) {
    m_to_send += line;
    m_loop.events(m_control, POLLIN | POLLOUT);
}

std::shared_ptr<guest_job> guest::run(const std::string& text, bool root) {
    auto job = std::make_shared<guest_job>();
    if (!up() || m_control < 0) {
        job->lost = true;
        job->done = true;
        job->status = 255;
        return job;
    }
    m_jobs[m_next_id] = job;
    send(control_run(m_next_id, root, text));
    m_next_id++;
    return job;
}

void guest::expect(const std::vector<std::shared_ptr<guest_job>>& jobs) {
    for (const auto& job : jobs)
        m_jobs[m_next_id++] = job;
}

void guest::kill(const std::shared_ptr<guest_job>& job, int signal) {
    for (const auto& [id, known] : m_jobs) {
        if (known == job)
            send("kill " + std::to_string(id) + " " + std::to_string(signal) +
                 "\n");
    }
}

void guest::ping() {
    if (m_control >= 0 && m_to_send.empty())
        send("ping\n");
}

void guest::type(const char* data, size_t size) {
    // A person does not type faster than this takes; what a paste loses, the
    // serial line of a real machine would have lost too.
    while (size > 0) {
        const ssize_t sent = ::send(m_console, data, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            pollfd fd{m_console, POLLOUT, 0};
            if ((errno != EAGAIN && errno != EINTR) || poll(&fd, 1, 1000) <= 0)
                return;
            continue;
        }
        data += sent;
        size -= static_cast<size_t>(sent);
    }
}

std::string guest::panic() const {
    const size_t at = m_console_tail.find("] Kernel panic - not syncing");
    if (at == std::string::npos)
        return {};
    const size_t end = m_console_tail.find_first_of("\r\n", at);
    return m_console_tail.substr(at + 2, end - at - 2);
}

std::string guest::last_console_lines(size_t count) const {
    std::string text = m_console_tail;
    text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    size_t at = text.size();
    for (size_t i = 0; i < count && at != std::string::npos && at > 0; i++)
        at = text.rfind('\n', at - 1);
    return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace prawn::launch
