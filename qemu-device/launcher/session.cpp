// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kvm_probe.h"
#include "report.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

constexpr size_t SHOWN_LINES = 12;
constexpr auto GUEST_GRACE = std::chrono::milliseconds(2000);
// The model writes its counters and traces at the end of a run.
constexpr auto MODEL_GRACE = std::chrono::milliseconds(10000);
constexpr unsigned MODEL_START_S = 30;
// Exit statuses of prawn-sim.
constexpr int MODEL_USAGE = 1;
constexpr int MODEL_CHECKER = 3;
constexpr auto PING_EVERY = std::chrono::seconds(5);

steady::time_point after(unsigned seconds) {
    if (seconds == 0)
        return steady::now() + std::chrono::hours(24 * 365);
    return steady::now() + std::chrono::seconds(seconds);
}

}  // namespace

session::session(const options& opts, const settings& where) :
    m_opts(opts),
    m_where(where),
    m_time(resolve_time(opts)),
    m_dir(where.state_dir),
    m_last_ping(steady::now()) {
    m_loop.on_child = [this] { check_parts(); };
}

session::~session() {
    stop();
}

void session::show(const command& what) const {
    if (m_opts.verbose)
        fmt::print(stderr, "+ {}\n", what.text());
}

command session::model_command() const {
    command result{{m_where.sim().string()}, {}};
    auto& argv = result.argv;
    // Without a file the model has defaults: examples/two-nodes.toml shows
    // them.
    if (!m_opts.config.empty())
        argv.push_back(m_opts.config);
    argv.insert(argv.end(), {"--run-dir", m_dir.path().string()});
    const auto set = [&](const std::string& item) {
        argv.insert(argv.end(), {"--set", item});
    };
    if (m_opts.nodes_given || m_opts.config.empty())
        set(fmt::format("nodes={}", m_opts.nodes));
    if (!m_opts.profile.empty())
        set("profile=" + m_opts.profile);
    for (const auto& item : m_opts.set)
        set(item);
    if (m_time.synchronized) {
        set("time=synchronized");
        set(fmt::format("quantum_ns={}", m_time.quantum_ns));
    }
    if (!m_opts.record.empty())
        argv.insert(argv.end(), {"--record", m_opts.record});
    const bool own = m_opts.command == "sim" && !m_opts.json.empty();
    const std::string counters = m_dir.log("counters.json").string();
    argv.insert(argv.end(), {"--json", !own                 ? counters
                                       : m_opts.json == "-" ? "/dev/stdout"
                                                            : m_opts.json});
    if (own && m_opts.json == "-")
        argv.emplace_back("--quiet");
    return result;
}

std::string session::profile() const {
    return profile_of(m_opts);
}

void session::start_model() {
    stage starting("start the model");
    command what = model_command();
    what.cpu = m_cpu;
    m_model_ready = false;
    if (!fs::exists(m_where.sim())) {
        throw failure(EXIT_SETUP, m_where.sim().string() +
                                      ": missing: the model has not "
                                      "been built");
    }
    show(what);
    m_model = std::make_unique<process>(m_dir, "the model (prawn-sim)", what,
                                        m_dir.log("sim.log"), true);
    m_model_log.open(m_dir.log("sim.out.log"));
    m_loop.watch(m_model->output(), POLLIN, [this](short) {
        if (!read_model())
            m_loop.forget(m_model->output());
    });
    wait([this] { return m_model_ready; }, MODEL_START_S,
         "the model was not ready");
    starting.done();
}

bool session::read_model() {
    char data[4096];
    ssize_t size = 0;
    while ((size = read(m_model->output(), data, sizeof(data))) > 0) {
        m_model_said.append(data, static_cast<size_t>(size));
        size_t end = 0;
        while ((end = m_model_said.find('\n')) != std::string::npos) {
            const std::string line = m_model_said.substr(0, end);
            m_model_said.erase(0, end + 1);
            if (line == "ready")
                m_model_ready = true;
            m_model_log << line << '\n';
            if (on_model_line)
                on_model_line(line);
            else if (m_opts.verbose)
                fmt::print(stderr, "sim: {}\n", line);
        }
    }
    return size < 0 && (errno == EAGAIN || errno == EINTR);
}

std::string session::skew() const {
    const json counters = json::parse(m_counters, nullptr, false);
    if (!counters.is_object())
        return "the model wrote no counters";
    return counters.value("skew", "");
}

std::shared_ptr<guest_job> session::script(unsigned number,
                                           const std::string& text, bool root) {
    auto job = std::make_shared<guest_job>();
    m_expected[number].push_back(job);
    m_scripts[number] += control_run(m_expected[number].size(), root, text);
    return job;
}

void session::power_off_after_scripts() {
    for (unsigned k = 0; k < m_opts.nodes; k++)
        m_scripts[k] += "poweroff\n";
    m_power_off_expected = true;
}

void session::wait_for_power_off() {
    for (unsigned k = 0; k < count(); k++)
        wait([&] { return powered_off(k); }, m_opts.timeout_s,
             m_guests[k]->name() + " did not power off");
}

void session::start_guests(bool shell) {
    if (m_opts.accel == "kvm") {
        const std::string trouble = kvm_trouble();
        if (!trouble.empty()) {
            throw failure(EXIT_SETUP,
                          "--accel kvm: " + trouble + ": use --accel tcg");
        }
    }
    stage making("make the guest image");
    const guest_image image = build_image(m_where, !m_opts.no_card);
    making.done();

    stage starting(fmt::format("start {} guest{}", m_opts.nodes,
                               m_opts.nodes > 1 ? "s" : ""));
    const char* terminal = getenv("TERM");
    for (unsigned k = 0; k < m_opts.nodes; k++) {
        guest_options what;
        what.node = k;
        what.shell = shell && k == 0;
        what.card = !m_opts.no_card;
        const std::string name = terminal ? terminal : "";
        if (what.shell && !name.empty() &&
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") ==
                std::string::npos) {
            what.append = " TERM=" + name;
        }
        guest_image mine = image;
        if (m_time.synchronized) {
            mine.initrd = m_dir.path() / (fmt::format("node{}.initrd", k));
            with_script(image.initrd, m_scripts[k], mine.initrd);
        }
        command qemu =
            guest_command(m_where, m_opts, m_time, mine, what, m_dir.path());
        qemu.cpu = m_cpu;
        show(qemu);
        m_guest_options.push_back(what);
        m_guest_commands.push_back(qemu);
        m_guests.emplace_back();
        start_guest(k);
        m_guests[k]->expect(m_expected[k]);
    }
    starting.done();
}

void session::start_guest(unsigned number) {
    auto& fresh = m_guests.at(number);
    fresh = std::make_unique<guest>(m_loop, m_dir, m_guest_options[number],
                                    m_guest_commands[number]);
    const auto deadline = after(MODEL_START_S);
    while (!fresh->connect()) {
        m_loop.run_until([] { return false; },
                         steady::now() + std::chrono::milliseconds(10));
        check_guest(*fresh);
        if (steady::now() > deadline) {
            throw failure(EXIT_PART_DIED,
                          fresh->qemu().name() + " opened no console");
        }
    }
}

void session::kill_guest(unsigned number) {
    m_guests.at(number)->qemu().stop(std::chrono::milliseconds(0));
    m_guests.at(number).reset();
}

void session::restart_guest(unsigned number) {
    if (m_guests.at(number))
        kill_guest(number);
    start_guest(number);
}

void session::wait_for_guests() {
    stage booting(fmt::format("boot {} guest{} (Linux {})", count(),
                              count() > 1 ? "s" : "", m_where.kernel));
    for (auto& which : m_guests) {
        if (!which)
            continue;
        wait([&] { return which->up(); }, m_opts.timeout_s,
             which->name() + " did not come up");
    }
    booting.done();
}

void session::wait(const std::function<bool()>& done, unsigned timeout_s,
                   const std::string& what) {
    const auto deadline = after(timeout_s);
    const bool held = m_loop.run_until(
        [&] {
            check_parts();
            heartbeat();
            stage::tick();
            return done();
        },
        deadline);
    if (held)
        return;
    std::string details;
    for (auto& which : m_guests) {
        if (which && what.rfind(which->name(), 0) == 0)
            details = which->last_console_lines(SHOWN_LINES);
    }
    throw failure(EXIT_PART_DIED,
                  fmt::format("{} within {} s", what, timeout_s), details);
}

void session::heartbeat() {
    if (steady::now() < m_last_ping + PING_EVERY)
        return;
    m_last_ping = steady::now();
    for (auto& which : m_guests) {
        if (!which)
            continue;
        // KVM without all instructions passes a probe and stops later.
        const std::string log = which->qemu().last_lines(100);
        if (m_opts.accel != "kvm" ||
            log.find("KVM internal error") == std::string::npos) {
            continue;
        }
        throw failure(EXIT_PART_DIED, which->name() +
                                          ": this machine's KVM cannot execute "
                                          "the guest: use --accel tcg");
    }
    // In step with the model a question would change what follows.
    if (m_opts.timeout_s == 0 || m_time.synchronized)
        return;
    for (auto& which : m_guests) {
        if (!which || !which->up() || which->qemu().ended())
            continue;
        which->ping();
        const auto silent = steady::now() - which->last_sign();
        if (silent > std::chrono::seconds(m_opts.timeout_s)) {
            throw failure(EXIT_PART_DIED,
                          fmt::format("{} hangs: no sign of life for {} s",
                                      which->name(), m_opts.timeout_s),
                          which->last_console_lines(SHOWN_LINES));
        }
    }
}

void session::check_guest(guest& which) {
    const std::string panic = which.panic();
    if (!panic.empty()) {
        throw failure(EXIT_PART_DIED, which.name() + ": " + panic,
                      which.last_console_lines(SHOWN_LINES));
    }
    if (!which.qemu().ended())
        return;
    const int status = which.qemu().wait_status();
    const bool off = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (off && (m_power_off_expected || which.said_bye()))
        return;
    // A dead model takes its guests along; blame who died first.
    for (int i = 0; i < 20 && m_model && !off; i++) {
        if (m_model->ended())
            return;
        usleep(5000);
    }
    if (off) {
        throw failure(EXIT_PART_DIED,
                      which.name() + " was powered off while it was needed",
                      which.last_console_lines(SHOWN_LINES));
    }
    std::string log = which.qemu().last_lines(SHOWN_LINES);
    if (log.empty())
        log = which.last_console_lines(SHOWN_LINES);
    throw failure(EXIT_PART_DIED,
                  which.qemu().name() + " " + which.qemu().how_it_ended(), log);
}

void session::check_parts() {
    if (m_stopping)
        return;
    for (auto& which : m_guests) {
        if (which)
            check_guest(*which);
    }
    if (m_model && m_model->ended()) {
        const int status = m_model->wait_status();
        if (!m_model_ready && WIFEXITED(status) &&
            WEXITSTATUS(status) == MODEL_USAGE) {
            // It has said what is wrong with its configuration, in one line.
            throw failure(EXIT_USAGE, m_model->last_lines(1));
        }
        throw failure(EXIT_PART_DIED,
                      m_model->name() + " " + m_model->how_it_ended(),
                      m_model->last_lines(SHOWN_LINES));
    }
}

bool session::powered_off(unsigned number) {
    return m_guests.at(number)->qemu().ended();
}

void session::stop() {
    m_stopping = true;
    for (auto& which : m_guests) {
        // One after the other, or their ends would mix differently each time.
        if (which && !m_time.synchronized)
            which->qemu().terminate();
    }
    for (auto& which : m_guests) {
        if (which)
            which->qemu().stop(GUEST_GRACE);
    }
    m_guests.clear();
    m_guest_options.clear();
    m_guest_commands.clear();
    m_scripts.clear();
    m_expected.clear();
    if (!m_model) {
        m_stopping = false;
        return;
    }
    // It must not wait for us to read what it says at the end.
    m_loop.forget(m_model->output());
    m_model->terminate();
    const auto deadline = steady::now() + MODEL_GRACE;
    while (!m_model->ended() && steady::now() < deadline) {
        pollfd fd{m_model->output(), POLLIN, 0};
        poll(&fd, 1, 10);
        read_model();
    }
    read_model();
    m_model->stop(std::chrono::milliseconds(0));
    m_checker_failed = m_checker_failed ||
                       (WIFEXITED(m_model->wait_status()) &&
                        WEXITSTATUS(m_model->wait_status()) == MODEL_CHECKER);
    m_model.reset();
    m_model_log.close();
    std::ifstream counters(m_dir.log("counters.json"));
    m_counters.assign(std::istreambuf_iterator<char>(counters), {});
    m_stopping = false;
}

}  // namespace prawn::launch
