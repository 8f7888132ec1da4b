// SPDX-License-Identifier: Apache-2.0
// The bench of whole-card tests: a cluster with a memory_host at every node.
// One for each executable; GoogleTest runs in its SC_THREAD, so tests may wait.
//
//   --set KEY=VALUE   configuration, as of prawn-sim; trace.* too
//   --twins           every block with a test twin

#ifndef PRAWN_TESTS_MODEL_MODEL_BENCH_H
#define PRAWN_TESTS_MODEL_MODEL_BENCH_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "record/run_recording.h"
#include "sim/card_driver.h"
#include "sim/cluster.h"
#include "support/events.h"

namespace prawn {
namespace model {

// FNV-1a over every event of the run.
class stream_hash : public event_sink
{
public:
    void on_event(const event& e) override;
    std::uint64_t value() const { return m_hash; }
    std::uint64_t count() const { return m_count; }

private:
    std::uint64_t m_hash = 0xcbf29ce484222325;
    std::uint64_t m_count = 0;
};

class bench final : public sc_core::sc_module
{
public:
    static bench& get();
    static bool twins() { return get().m_config.nic.twins.size() > 1; }

    cluster& model() { return *m_cluster; }
    card_driver& driver(unsigned k) { return *m_drivers.at(k); }
    memory_host& host(unsigned k) { return *m_hosts.at(k); }
    stream_hash& hash() { return m_hash; }

    // All cards from power-on state, booted, and introduced to each other.
    void boot_all();

private:
    explicit bench(const sim_config& config);
    friend int run_bench(int argc, char** argv, std::function<int()> body);
    void thread();

    sim_config m_config;
    event_log m_log;
    std::unique_ptr<observation> m_views;
    stream_hash m_hash;
    std::unique_ptr<cluster> m_cluster;
    std::unique_ptr<run_recording> m_recording;
    std::vector<std::unique_ptr<memory_host>> m_hosts;
    std::vector<std::unique_ptr<card_driver>> m_drivers;
    std::function<int()> m_body;
    int m_result = 1;
};

// To be called by sc_main. Runs all tests, or `body` instead, and returns what
// that returns.
int run_bench(int argc, char** argv, std::function<int()> body = {});

// Base of the tests: fresh cards for each; no DMA outside of the grants.
class model_test : public testing::Test
{
protected:
    void SetUp() override;
    void TearDown() override;
    card_driver& driver(unsigned k) { return bench::get().driver(k); }
    static void pause(double us) {
        sc_core::wait(sc_core::sc_time(us, sc_core::SC_US));
    }
};

// A buffer of one context, exported; and its import by a context elsewhere.
struct channel {
    context* from;
    context* to;
    std::uint32_t import;
    std::uint64_t source, target;  // virtual addresses
    std::uint64_t length;

    std::uint16_t send(std::uint32_t bytes, std::uint64_t source_offset = 0,
                       std::uint64_t target_offset = 0);
};
// Opens contexts where they are not open yet. id names both table entries.
channel make_channel(card_driver& from, std::uint16_t from_context,
                     card_driver& to, std::uint16_t to_context,
                     std::uint32_t id, std::uint64_t pages, bool notify = true);

}  // namespace model
}  // namespace prawn

#endif
