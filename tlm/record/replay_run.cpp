// SPDX-License-Identifier: Apache-2.0
#include "record/replay_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <sstream>

#include "record/replay_changed.h"
#include "record/replay_exact.h"
#include "record/replay_feed.h"
#include "record/replay_host.h"
#include "sim/cluster.h"

namespace prawn {

namespace {

// One value of a KEY=VALUE list.
std::string value_of(const std::vector<std::string>& items,
                     const std::string& key) {
    for (const std::string& item : items)
        if (item.compare(0, key.size() + 1, key + "=") == 0)
            return item.substr(key.size() + 1);
    return "";
}

nlohmann::json counters_of(const cluster& model) {
    std::ostringstream text;
    model.write_json(text);
    return nlohmann::json::parse(text.str());
}

// The model with a host of ours at every node.
class stage
{
public:
    stage(const sim_config& config, event_log& log) :
        model("model", config, &log) {
        for (unsigned k = 0; k < model.nodes(); k++) {
            m_hosts.push_back(std::make_unique<replay_host>(
                ("host" + std::to_string(k)).c_str()));
            replay_host& host = *m_hosts.back();
            host_bus& bus = model.at(k).bus;
            host.bar_out.bind(bus.bar_in);
            bus.dma_out.bind(host.dma_in);
            bus.interrupt_out.bind(host.interrupt_in);
            host.control_out.bind(bus.control_in);
            hosts.push_back(&host);
        }
    }
    cluster model;
    std::vector<replay_host*> hosts;

private:
    std::vector<std::unique_ptr<replay_host>> m_hosts;
};

void note_end(const replay_feed& feed, const replay_monitor& monitor,
              replay_result& result) {
    result.ending = feed.reader().end();
    result.trouble = feed.reader().trouble();
    result.records = feed.position();
    const recording_trailer* trailer = feed.reader().trailer();
    result.recorded_end_ps = trailer ? trailer->time_ps : feed.time_ps();
    result.interrupted = monitor.interrupted();
    result.error = monitor.error();
    result.differences = monitor.differences();
    result.first = monitor.first();
}

void run_exact(replay_feed& feed, stage& on, replay_result& result) {
    replay_monitor monitor;
    {
        exact_replay replay(feed, on.hosts, monitor);
        sc_core::sc_start();
        result.reordered = replay.reordered();
    }
    note_end(feed, monitor, result);
    result.replayed_end_ps =
        monitor.differences() ? now_ps() : result.recorded_end_ps;
    result.counters = counters_of(on.model);
}

void run_changed(replay_feed& feed, stage& on, bool dependencies,
                 replay_result& result) {
    replay_monitor monitor;
    changed_replay replay(feed, on.hosts, monitor, dependencies);
    sc_core::sc_start();
    replay.finish();
    note_end(feed, monitor, result);
    for (unsigned k = 0; k < on.model.nodes(); k++) {
        const changed_replay::side& s = replay.node(k);
        result.nodes.push_back({s.recorded, s.replayed});
        result.replayed_end_ps =
            std::max(result.replayed_end_ps, s.replayed.last_ps);
    }
    result.recorded_end_ps = 0;
    for (const auto& n : result.nodes)
        result.recorded_end_ps =
            std::max(result.recorded_end_ps, n.recorded.last_ps);
    result.zeros = replay.zeros();
    result.unread = replay.unread();
    result.excused = replay.excused();
    result.beyond = replay.beyond();
    result.actions_left = replay.actions_left();
    result.counters = counters_of(on.model);
}

// The unchanged replay in a process of its own: what it counts, through a pipe.
class baseline_process
{
public:
    explicit baseline_process(const replay_request& request) {
        int ends[2];
        if (::pipe(ends) != 0)
            return;
        m_pid = ::fork();
        if (m_pid == 0) {
            ::close(ends[0]);
            run(request, ends[1]);
        }
        ::close(ends[1]);
        m_pipe = ends[0];
    }
    baseline_process(const baseline_process&) = delete;
    baseline_process& operator=(const baseline_process&) = delete;
    ~baseline_process() {
        if (m_pipe >= 0)
            ::close(m_pipe);
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            ::waitpid(m_pid, nullptr, 0);
        }
    }
    // Waits for it.
    void take(replay_result& result) {
        std::string text;
        char part[4096];
        while (m_pid > 0) {
            const ssize_t n = ::read(m_pipe, part, sizeof(part));
            if (n > 0)
                text.append(part, static_cast<std::size_t>(n));
            else if (n == 0 || errno != EINTR ||
                     replay_monitor::interrupt() != 0)
                break;
        }
        const auto j = nlohmann::json::parse(text, nullptr, false);
        if (j.is_discarded() || !j.contains("counters")) {
            result.baseline_trouble = "its process died";
            return;
        }
        result.baseline_trouble = j["trouble"].get<std::string>();
        if (result.baseline_trouble.empty())
            result.recorded_counters = j["counters"];
    }

private:
    [[noreturn]] static void run(const replay_request& request, int out) {
        nlohmann::json j;
        j["counters"] = nullptr;
        try {
            replay_request same;
            same.file = request.file;
            const replay_result r = run_replay(same);
            j["counters"] = r.counters;
            j["trouble"] = r.differences ? r.first.text : r.error;
        } catch (const std::exception& e) {
            j["trouble"] = e.what();
        }
        const std::string text =
            j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        for (std::size_t done = 0; done < text.size();) {
            const ssize_t n =
                ::write(out, text.data() + done, text.size() - done);
            if (n <= 0)
                break;
            done += static_cast<std::size_t>(n);
        }
        ::_exit(0);
    }
    pid_t m_pid = -1;
    int m_pipe = -1;
};

}  // namespace

int replay_result::status() const {
    if (interrupted)
        return 130;
    return error.empty() && differences == 0 &&
                   ending != recording_reader::ending::DAMAGED
               ? 0
               : 1;
}

sim_config replay_config(const recording_header& was_run,
                         const replay_request& request,
                         std::vector<std::string>& differences) {
    std::vector<std::string> items = was_run.config;
    items.insert(items.end(), request.changes.begin(), request.changes.end());
    bool other_profile = !request.profile.empty();
    for (const std::string& item : request.changes)
        other_profile = other_profile || item.rfind("profile=", 0) == 0;
    if (!request.profile.empty())
        items.push_back("profile=" + request.profile);
    sim_config config = load_config("", items);
    config.trace = request.views;
    if (config.fabric.nodes != was_run.nodes)
        throw config_error(
            "--set nodes=" + std::to_string(config.fabric.nodes) +
            ": the recording has hosts for " + std::to_string(was_run.nodes) +
            "; leave the number as it is");
    const std::vector<std::string> now = effective_config(config);
    for (const std::string& item : now) {
        const std::string key = item.substr(0, item.find('='));
        const std::string value = item.substr(key.size() + 1);
        const std::string was = value_of(was_run.config, key);
        if (value != was)
            differences.push_back(key + ": " + was + " -> " + value);
    }
    if (!other_profile) {
        config.profile = was_run.profile_name;
        config.profile_text = was_run.profile_text;
        return config;
    }
    const timing_profile is = timing_profile::load(config.profile_path);
    const timing_profile was =
        timing_profile::parse(was_run.profile_text, "the recording's profile");
    const auto same = [](const timing_profile::provenance& a,
                         const timing_profile::provenance& b) {
        return a.key == b.key && a.value == b.value;
    };
    if (is.name != was.name ||
        !std::equal(is.sources.begin(), is.sources.end(), was.sources.begin(),
                    was.sources.end(), same))
        differences.push_back("profile: " + was.name + " -> " + is.name);
    return config;
}

replay_result run_replay(const replay_request& request) {
    replay_feed feed(request.file);
    replay_result result;
    result.header = feed.reader().header();
    const sim_config config =
        replay_config(result.header, request, result.changes);
    result.changed = !result.changes.empty();
    result.profile = config.profile;

    // Before there is any thread, and before the model.
    std::unique_ptr<baseline_process> baseline;
    if (result.changed && request.baseline)
        baseline = std::make_unique<baseline_process>(request);

    event_log log;
    {
        const observation views(
            log, config.trace,
            "profile " + config.profile + ", replay of " + request.file);
        if (request.sink)
            log.attach_events(*request.sink);
        stage on(config, log);
        if (result.changed)
            run_changed(feed, on, request.dependencies, result);
        else
            run_exact(feed, on, result);
        if (request.sink)
            log.detach(*request.sink);
    }
    if (baseline && !result.interrupted)
        baseline->take(result);
    return result;
}

}  // namespace prawn
