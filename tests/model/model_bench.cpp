// SPDX-License-Identifier: Apache-2.0
#include "model_bench.h"

#include <cstring>
#include <iostream>

namespace prawn {
namespace model {

namespace {

bench* the_bench = nullptr;

constexpr std::uint64_t SOURCE = 0x7f0000000000, TARGET = 0x500000000000;
constexpr std::uint64_t CHANNEL_SPACE = std::uint64_t{1} << 32;

}  // namespace

void stream_hash::on_event(const event& e) {
    std::uint8_t bytes[sizeof(event)];
    std::memcpy(bytes, &e, sizeof(e));
    for (std::uint8_t b : bytes)
        m_hash = (m_hash ^ b) * 0x100000001b3;
    m_count++;
}

bench& bench::get() {
    return *the_bench;
}

bench::bench(const sim_config& config) :
    sc_core::sc_module(sc_core::sc_module_name("bench")), m_config(config) {
    SC_HAS_PROCESS(bench);
    m_log.attach_events(m_hash);
    m_views = std::make_unique<observation>(
        m_log, config.trace, "profile " + config.profile + ", " + config.time);
    m_cluster = std::make_unique<cluster>("model", config, &m_log);
    if (!config.trace.record.empty())
        m_recording =
            std::make_unique<run_recording>(config.trace.record, config);
    for (unsigned k = 0; k < config.fabric.nodes; k++) {
        m_hosts.push_back(std::make_unique<memory_host>(
            ("host" + std::to_string(k)).c_str()));
        memory_host& host = *m_hosts.back();
        connect(host, m_cluster->at(k).bus,
                m_recording ? &m_recording->at(k) : nullptr);
        m_drivers.push_back(std::make_unique<card_driver>(
            host, m_cluster->at(k), k,
            [](const std::string& line) { ADD_FAILURE() << line; }));
    }
    SC_THREAD(thread);
    set_stack_size(16 << 20);
}

void bench::thread() {
    m_result = m_body ? m_body() : RUN_ALL_TESTS();
    sc_core::sc_stop();
}

void bench::boot_all() {
    for (auto& d : m_drivers)
        d->boot();
    // HELLO and its answers.
    sc_core::wait(sc_core::sc_time(100, sc_core::SC_US));
}

int run_bench(int argc, char** argv, std::function<int()> body) {
    testing::InitGoogleTest(&argc, argv);
    std::vector<std::string> changes = {"checker=true"};
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--set" && i + 1 < argc) {
            changes.emplace_back(argv[++i]);
        } else if (word == "--twins") {
            for (const std::string& name : block_names())
                changes.push_back("blocks." + name + ".impl=twin");
        } else {
            std::cerr << word << ": no such option; use --set or --twins\n";
            return 2;
        }
    }
    the_bench = new bench(load_config("", changes));
    the_bench->m_body = std::move(body);
    sc_core::sc_start();
    the_bench->m_views.reset();  // completes the files
    if (the_bench->m_recording)
        the_bench->m_recording->finish();
    return the_bench->m_result;
}

// -- Tests ------------------------------------------------------------------

void model_test::SetUp() {
    for (unsigned k = 0; k < bench::get().model().nodes(); k++) {
        bench::get().host(k).set_hold(memory_host::hold::NOTHING);
        driver(k).shut_down();
    }
    pause(500);
    bench::get().boot_all();
}

void model_test::TearDown() {
    for (const std::string& line : bench::get().model().failures())
        ADD_FAILURE() << line;
}

std::uint16_t channel::send(std::uint32_t bytes, std::uint64_t source_offset,
                            std::uint64_t target_offset) {
    from->send(import, source + source_offset, bytes, target_offset);
    return from->wait_completion().status;
}

channel make_channel(card_driver& from, std::uint16_t from_context,
                     card_driver& to, std::uint16_t to_context,
                     std::uint32_t id, std::uint64_t pages, bool notify) {
    const auto opened = [](card_driver& d, std::uint16_t context_id) {
        return d.is_open(context_id) ? &d.at(context_id) : &d.open(context_id);
    };
    channel c{};
    c.to = opened(to, to_context);
    c.from = opened(from, from_context);
    c.import = id;
    c.source = SOURCE + id * CHANNEL_SPACE;
    c.target = TARGET + id * CHANNEL_SPACE;
    c.length = pages * PRAWN_PAGE_SIZE;
    c.from->map(c.source, pages);
    c.to->map(c.target, pages);
    const std::uint64_t key = 0x9e3779b97f4a7c15 * (id + 1);
    EXPECT_EQ(to.set_export(to_context, id, c.target, c.length, key, notify,
                            0xe000 + id),
              PRAWN_STATUS_OK);
    EXPECT_EQ(
        from.set_import(from_context, id, to, id, key, c.length, 0x1000 + id),
        PRAWN_STATUS_OK);
    return c;
}

}  // namespace model
}  // namespace prawn
