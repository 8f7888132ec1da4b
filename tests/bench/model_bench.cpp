// SPDX-License-Identifier: Apache-2.0
// How fast the model is, without QEMU: two cards and a link, the full path with
// timing on, driven by hosts that cost next to nothing. Wall time. Prints a
// JSON list of {name, value, unit, ...}; --json is the only form and accepted.
// --record FILE: the same while all of it is recorded, to see what that costs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "record/run_recording.h"
#include "sim/card_driver.h"
#include "sim/cluster.h"

namespace prawn {
namespace {

using wall = std::chrono::steady_clock;
using model::card_driver;

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;
constexpr unsigned CONTEXTS = 4, LOG2 = 10;
constexpr std::uint64_t SOURCE = 0x10000000000, TARGET = 0x20000000000;
constexpr std::uint64_t RAM = std::uint64_t{256} << 20;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "model_bench: %s\n", what.c_str());
    std::exit(1);
}

class bench final : public sc_core::sc_module
{
public:
    explicit bench(sc_core::sc_module_name name) :
        bench(name, load_config("", {"trace.record=" + record_to})) {}
    static std::string record_to;
    nlohmann::json results = nlohmann::json::array();

private:
    bench(sc_core::sc_module_name name, const sim_config& config) :
        sc_core::sc_module(name), m_model("model", config) {
        SC_HAS_PROCESS(bench);
        if (!config.trace.record.empty())
            m_recording =
                std::make_unique<run_recording>(config.trace.record, config);
        for (unsigned k = 0; k < 2; k++) {
            // The driver's memory begins at (k + 1) << 32.
            m_hosts.push_back(std::make_unique<memory_host>(
                ("host" + std::to_string(k)).c_str(),
                memory_host_config{(std::uint64_t{k} + 1) << 32, RAM}));
            memory_host& host = *m_hosts.back();
            connect(host, m_model.at(k).bus,
                    m_recording ? &m_recording->at(k) : nullptr);
            m_drivers.push_back(
                std::make_unique<card_driver>(host, m_model.at(k), k));
        }
        SC_THREAD(run);
        set_stack_size(1 << 20);
    }
    void run() {
        for (auto& d : m_drivers)
            d->boot();
        sc_core::wait(sc_core::sc_time(50, sc_core::SC_US));
        for (std::uint16_t c = 0; c < CONTEXTS; c++) {
            m_from.push_back(&m_drivers[0]->open(c, LOG2));
            auto& to = m_drivers[1]->open(c, LOG2);
            const std::uint64_t pages = 256;
            m_from.back()->map(SOURCE, pages);
            to.map(TARGET, pages);
            m_drivers[1]->set_export(c, c, TARGET, pages * PAGE, 7, false);
            m_drivers[0]->set_import(c, c, *m_drivers[1], c, 7, pages * PAGE);
        }
        measure("model small messages", 16, 300000, false);
        measure("model 4 KiB packets", 1 << 20, 1000, true);
        if (m_recording)
            m_recording->finish();
        sc_core::sc_stop();
    }

    void measure(const char* name, std::uint32_t size, std::uint64_t total,
                 bool bytes) {
        send(size, total / 20);  // warm up
        const auto begin = wall::now();
        send(size, total);
        const std::chrono::duration<double> took = wall::now() - begin;
        const double count = static_cast<double>(total) / took.count();
        results.push_back(
            {{"name", name},
             {"value", bytes ? count * size / 1e6 : count},
             {"unit", bytes ? "MB/s" : "messages/s"},
             {"baseline", "aim of the design"},
             {"baseline_value", bytes ? 2000.0 : 1e6},
             {"ratio", bytes ? count * size / 2e9 : count / 1e6}});
    }

    void send(std::uint32_t size, std::uint64_t total) {
        std::uint64_t posted = 0, completed = 0;
        prawn_command one{};
        one.opcode = PRAWN_OPCODE_SEND;
        one.source = SOURCE;
        one.length = size;
        while (completed < total) {
            for (std::uint16_t c = 0; c < CONTEXTS; c++) {
                prawn_completion done;
                while (m_from[c]->poll(done)) {
                    if (done.status != PRAWN_STATUS_OK)
                        fail("status " + std::to_string(done.status));
                    completed++;
                }
                one.import_id = c;
                bool any = false;
                while (posted < total && m_from[c]->room()) {
                    m_from[c]->post(one);
                    posted++;
                    any = true;
                }
                if (any)
                    m_from[c]->ring();
            }
            sc_core::wait(sc_core::sc_time(5, sc_core::SC_US));
        }
    }

    cluster m_model;
    std::unique_ptr<run_recording> m_recording;
    std::vector<std::unique_ptr<memory_host>> m_hosts;
    std::vector<std::unique_ptr<card_driver>> m_drivers;
    std::vector<model::context*> m_from;
};

std::string bench::record_to;

}  // namespace
}  // namespace prawn

int sc_main(int, char**) {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
                                            sc_core::SC_DO_NOTHING);
    auto one = std::make_unique<prawn::bench>("bench");
    sc_core::sc_start();
    std::printf("%s\n", one->results.dump(1).c_str());
    return one->results.size() == 2 ? 0 : 1;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--record") == 0 && i + 1 < argc) {
            prawn::bench::record_to = argv[++i];
        } else if (std::strcmp(argv[i], "--json") != 0) {
            std::fprintf(stderr,
                         "usage: model_bench [--json] [--record FILE]\n");
            return std::strcmp(argv[i], "--help") == 0 ? 0 : 1;
        }
    }
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
