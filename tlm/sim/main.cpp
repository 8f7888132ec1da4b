// SPDX-License-Identifier: Apache-2.0
// prawn-sim: the model behind vfio-user sockets, until it is told to stop.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <systemc>

#include "qemu-device/bridge/bridge.h"
#include "qemu-device/bridge/kernel_stopper.h"
#include "qemu-device/bridge/wall_clock.h"
#include "qemu-device/lockstep/pacer.h"
#include "record/run_recording.h"
#include "sim/cluster.h"
#include "sim/config.h"
#include "sim/late_flush.h"

namespace prawn {

namespace {

struct options {
    std::string config;
    std::string run_dir = ".";
    std::vector<std::string> changes;
    trace_files trace;
    std::string json;
    bool quiet = false;
};

// SIGTERM, SIGINT and SIGHUP, which no other thread takes.
class signal_thread
{
public:
    // Before any thread is started: they inherit the mask.
    static sigset_t block() {
        sigset_t set;
        sigemptyset(&set);
        for (int s : {SIGTERM, SIGINT, SIGHUP})
            sigaddset(&set, s);
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
        std::signal(SIGPIPE, SIG_IGN);
        return set;
    }
    signal_thread(const sigset_t& set, kernel_stopper& end) :
        m_thread([set, &end] {
            int number = 0;
            sigwait(&set, &number);
            end.request();
        }) {}
    ~signal_thread() {
        pthread_kill(m_thread.native_handle(), SIGTERM);
        m_thread.join();
    }

private:
    std::thread m_thread;
};

void write_bridge(std::ostream& out, std::size_t k, const bridge& host) {
    const bridge::statistics& s = host.stats();
    out << "node " << k << ", towards QEMU: " << s.reads << " reads, "
        << s.writes << " writes, " << s.interrupts << " interrupts; DMA "
        << s.dma_direct << " direct, " << s.dma_messages << " by message, "
        << s.dma_refused << " refused, " << s.dma_cancelled
        << " cancelled; the kernel was woken " << s.wakeups << " times, "
        << s.spins_hit << " of " << s.spins << " spins found work, "
        << s.throttled << " floods were held back\n";
}

void write_counters(const cluster& model,
                    const std::vector<std::unique_ptr<bridge>>& bridges,
                    const lockstep::pacer* pacer, const options& o) {
    if (!o.quiet) {
        model.write_table(std::cout);
        std::cout << "\n";
        for (std::size_t k = 0; k < bridges.size(); k++)
            write_bridge(std::cout, k, *bridges[k]);
        if (pacer)
            pacer->write_statistics(std::cout);
        std::cout.flush();
    }
    if (o.json.empty())
        return;
    std::ofstream out(o.json);
    model.write_json(out, pacer ? pacer->skew() : "");
    out.flush();
    if (!out)
        throw std::runtime_error(o.json +
                                 ": cannot be written; choose another "
                                 "place for --json");
}

int simulate(const options& o) {
    sim_config config = load_config(o.config, o.changes);
    const auto override_with = [](std::string& key, const std::string& file) {
        if (!file.empty())
            key = file;
    };
    override_with(config.trace.pcapng, o.trace.pcapng);
    override_with(config.trace.perfetto, o.trace.perfetto);
    override_with(config.trace.csv, o.trace.csv);
    override_with(config.trace.record, o.trace.record);
    std::filesystem::create_directories(o.run_dir);
    const bool synchronized = config.time == "synchronized";
    if (synchronized)
        config.nic.identity.time_mode = lockstep::time_mode_register(
            config.quantum_ns, timing_profile::load(config.profile_path));

    // What the server says does not belong among what is printed here.
    spdlog::set_default_logger(spdlog::stderr_logger_mt("prawn-sim"));
    const sigset_t signals = signal_thread::block();
    event_log log;
    const observation views(log, config.trace,
                            "profile " + config.profile + ", " + config.time);
    wall_clock wall;
    cluster model("model", config, &log);
    std::unique_ptr<run_recording> recording;
    if (!config.trace.record.empty())
        recording =
            std::make_unique<run_recording>(config.trace.record, config);
    kernel_stopper end("stopper");
    std::unique_ptr<late_flush> flush;
    if (recording) {
        flush = std::make_unique<late_flush>(
            "flush", log, [&recording] { recording->flush(); });
        recording->written = [&flush] { flush->touch(); };
    } else if (log.enabled() || log.capturing()) {
        flush = std::make_unique<late_flush>("flush", log);
    }
    std::vector<std::unique_ptr<bridge>> bridges;
    std::unique_ptr<lockstep::pacer> pacer;
    vfio_user::server server;  // stops before the bridges go
    for (unsigned k = 0; k < model.nodes(); k++) {
        const std::string name = "node" + std::to_string(k);
        bridges.push_back(std::make_unique<bridge>((name + "_host").c_str()));
        bridge& host = *bridges.back();
        host_bus& bus = model.at(k).bus;
        connect(host, bus, recording ? &recording->at(k) : nullptr);
        // Model time stands still while a guest that runs free computes.
        if (config.time == "free-running")
            model.at(k).card.time_base.bind(wall);
        std::string socket = config.nodes[k].socket;
        if (socket.empty())
            socket = o.run_dir + "/" + name + ".sock";
        host.attach(server, server.add_endpoint(socket, host));
    }
    // Once the sockets are ours, so is the directory.
    if (synchronized) {
        pacer = std::make_unique<lockstep::pacer>(
            o.run_dir + "/lockstep", config.quantum_ns, model.profile());
        for (unsigned k = 0; k < model.nodes(); k++)
            pacer->add(*bridges[k], model.at(k).bus);
    }
    // Elaborated before the first client can come.
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    server.start();
    const signal_thread signal_taker(signals, end);
    std::cout << "ready" << std::endl;
    if (pacer)
        pacer->run();
    else
        sc_core::sc_start();
    server.stop();
    if (recording)
        recording->finish();
    write_counters(model, bridges, pacer.get(), o);
    return model.failures().empty() ? 0 : 3;
}

// What came out of a file may hold anything, such as a terminal's commands.
std::string one_line(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
            c = '?';
    return text;
}

}  // namespace

int simulator(int argc, char** argv) {
    options o;
    CLI::App app(
        "The model of a cluster of Prawn cards, one vfio-user socket for each: "
        "DIR/node<k>.sock. Prints \"ready\" when all of them listen, runs "
        "until SIGTERM or SIGINT, then prints the counters.",
        "prawn-sim");
    app.add_option("CONFIG", o.config,
                   "configuration (TOML); without it, the defaults");
    app.add_option("--run-dir", o.run_dir, "where the sockets are made")
        ->capture_default_str();
    app.add_option("--set", o.changes,
                   "KEY=VALUE of the configuration; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--pcap", o.trace.pcapng, "write the packets (pcapng)");
    app.add_option("--perfetto", o.trace.perfetto, "write a Perfetto trace");
    app.add_option("--csv", o.trace.csv, "write every event");
    app.add_option("--record", o.trace.record,
                   "record what crosses the host ports, for prawn-trace");
    app.add_option("--json", o.json, "write the counters at the end");
    app.add_flag("--quiet", o.quiet, "do not print the counters at the end");
    app.footer(
        "Exit status: 0 stopped as asked, 1 wrong use or configuration, 3 the "
        "checker (checker = true) saw DMA outside of the kernel's grants.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 1;
    }
    try {
        return simulate(o);
    } catch (const std::exception& e) {
        std::cerr << "prawn-sim: " << one_line(e.what()) << std::endl;
        return 1;
    }
}

}  // namespace prawn

int sc_main(int argc, char** argv) {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
                                            sc_core::SC_DO_NOTHING);
    return prawn::simulator(argc, argv);
}

// Instead of the library's: without its banner.
int main(int argc, char** argv) {
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
