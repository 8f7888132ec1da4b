// SPDX-License-Identifier: Apache-2.0
// What the tests of the send path share: the world opposite a block, scripted.

#ifndef PRAWN_TESTS_UNIT_SEND_HARNESS_H
#define PRAWN_TESTS_UNIT_SEND_HARNESS_H

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nic/contracts.h"
#include "support/twin.h"

namespace prawn::test {

// Parsed from the command line by run_tests().
struct options {
    std::uint64_t twins = 0;  // seed; 0: no twins
    bool trace = false;       // print the trace of a random run, and stop
    std::string program;
};
inline options& opts() {
    static options o;
    return o;
}
// With twins in between, times are not exact.
inline bool exact() {
    return opts().twins == 0;
}

// A time, in cycles; not looked at with twins in between.
#define EXPECT_CYCLE(actual, expected)   \
    do {                                 \
        if (exact()) {                   \
            EXPECT_EQ(actual, expected); \
        }                                \
    } while (false)

// A card of 10 ns clock and 20 ns SRAM.
inline const timing_profile& test_profile() {
    static const timing_profile p = [] {
        timing_profile t;
        t.name = "test";
        t.card_clock = sc_core::sc_time(10, sc_core::SC_NS);
        t.sram_access = sc_core::sc_time(20, sc_core::SC_NS);
        t.bus.read_latency = sc_core::sc_time(200, sc_core::SC_NS);
        t.bus.bytes_per_ns = 1.6;
        return t;
    }();
    return p;
}
constexpr std::uint64_t CYCLE = 10000;  // ps

inline void run_cycles(std::uint64_t n) {
    sc_core::sc_start(sc_core::sc_time::from_value(n * CYCLE));
}

// Keeps the whole event stream as text.
class text_sink final : public event_sink
{
public:
    void on_event(const event& e) override {
        char line[160];
        std::snprintf(line, sizeof(line), "%llu %s %s %llx %llx %llx\n",
                      static_cast<unsigned long long>(e.time_ps), name(e.block),
                      info(e.kind).id,
                      static_cast<unsigned long long>(e.message.key()),
                      static_cast<unsigned long long>(e.a),
                      static_cast<unsigned long long>(e.b));
        text += line;
    }
    std::size_t count(const char* what) const {
        std::size_t n = 0;
        for (std::size_t at = text.find(what); at != std::string::npos;
             at = text.find(what, at + 1))
            n++;
        return n;
    }
    std::string text;
};

struct world {
    counter_registry counters{PRAWN_CONTEXTS};
    event_log log;
    text_sink events;
    block_env env;

    explicit world(std::uint16_t node = 1, std::uint16_t nodes = 16) {
        log.attach_events(events);
        env.node = node;
        env.nodes = nodes;
        env.profile = &test_profile();
        env.counters = &counters;
        env.events = &log;
    }
    std::uint64_t count(const std::string& name) const {
        for (std::size_t i = 0; i < counters.size(); i++)
            if (counters.name(i) == name)
                return counters.value(i);
        ADD_FAILURE() << "no counter " << name;
        return 0;
    }
    std::uint64_t count(const std::string& name, std::size_t context) const {
        for (std::size_t i = 0; i < counters.per_context_size(); i++)
            if (counters.per_context_name(i) == name)
                return counters.per_context_value(i, context);
        ADD_FAILURE() << "no counter " << name;
        return 0;
    }
};

// Opposite an output port: keeps what it accepts, refuses what it is told to.
template <typename T>
class sink : public put_if<T>
{
public:
    struct seen {
        std::uint64_t time;
        T item;
    };
    std::function<bool(const T&)> accept;  // none: everything
    std::function<void(const T&)> on;      // called for what was accepted
    bool keep = true;
    std::vector<seen> items;
    unsigned refused = 0;

    bool try_put(T& item) override {
        if (accept && !accept(item)) {
            refused++;
            return false;
        }
        T taken = std::move(item);
        if (keep)
            items.push_back({now_ps(), taken});
        if (on)
            on(taken);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void give_room() { m_room.notify(sc_core::SC_ZERO_TIME); }
    void clear() {
        items.clear();
        accept = nullptr;
        refused = 0;
    }
    std::uint64_t cycle(std::size_t i, std::uint64_t base) const {
        return (items.at(i).time - base) / CYCLE;
    }

private:
    sc_core::sc_event m_room;
};

// Puts items at times to come; retries what is refused; order kept.
template <typename T>
class source : public sc_core::sc_module
{
public:
    put_port<T> out{"out"};

    explicit source(sc_core::sc_module_name name) : sc_core::sc_module(name) {}

    void end_of_elaboration() override {
        SC_HAS_PROCESS(source);
        SC_METHOD(work);
        this->dont_initialize();
        this->sensitive << m_due << out->room();
    }
    // After delay, but not before what was sent earlier with less delay.
    void send(T item, std::uint64_t delay_cycles = 0) {
        m_items.emplace(now_ps() + delay_cycles * CYCLE, std::move(item));
        arm();
    }
    bool idle() const { return m_items.empty(); }
    void clear() { m_items.clear(); }

private:
    void arm() {
        if (m_items.empty())
            return;
        const std::uint64_t due = m_items.begin()->first;
        const std::uint64_t now = now_ps();
        m_due.notify(due > now ? sc_core::sc_time::from_value(due - now)
                               : sc_core::SC_ZERO_TIME);
    }
    void work() {
        while (!m_items.empty() && m_items.begin()->first <= now_ps()) {
            if (!out->try_put(m_items.begin()->second))
                return;
            m_items.erase(m_items.begin());
        }
        arm();
    }
    std::multimap<std::uint64_t, T> m_items;
    sc_core::sc_event m_due;
};

// Twins between the test and a block's inputs, if they were asked for.
class twins
{
public:
    // Replies and inputs that never refuse get twins that only delay. Depth 0:
    // see twin; for inputs that refuse single items.
    template <typename T>
    put_if<T>& before(put_if<T>& input, const char* name, bool may_refuse,
                      std::size_t depth = 4) {
        if (opts().twins == 0)
            return input;
        const std::uint64_t seed = opts().twins + m_resets.size();
        auto t = std::make_shared<twin<T>>(
            name, seed, sc_core::sc_time(70, sc_core::SC_NS),
            may_refuse ? 3 : 0, may_refuse ? depth : 1000);
        t->out.bind(input);
        m_resets.push_back([t] { t->reset(); });
        return *t;
    }
    void reset() {
        for (auto& r : m_resets)
            r();
    }

private:
    std::vector<std::function<void()>> m_resets;
};

// Small repeatable random numbers.
class random_source
{
public:
    explicit random_source(std::uint64_t seed) : m_state(seed) {}
    std::uint64_t operator()(std::uint64_t below) {
        m_state = m_state * 6364136223846793005u + 1442695040888963407u;
        return (m_state >> 33) % below;
    }

private:
    std::uint64_t m_state;
};

// What a run of this program with --trace prints.
inline std::string trace_of_child() {
    std::string command =
        "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE=1 '" + opts().program + "' --trace";
    if (opts().twins != 0)
        command += " --twins " + std::to_string(opts().twins);
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe)
        return text;
    char buffer[4096];
    for (std::size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
        text.append(buffer, n);
    return pclose(pipe) == 0 ? text : std::string();
}
inline void expect_same_traces() {
    const std::string first = trace_of_child();
    EXPECT_GT(first.size(), 1000u);
    EXPECT_TRUE(first == trace_of_child()) << "the traces differ";
}

// build() makes the bench, which lives to the end; trace() runs something
// random and returns its trace.
inline int run_tests(int argc, char** argv, const std::function<void()>& build,
                     const std::function<std::string()>& trace) {
    testing::InitGoogleTest(&argc, argv);
    opts().program = argv[0];
    for (int i = 1; i < argc; i++) {
        const std::string arg = argv[i];
        if (arg == "--twins" && i + 1 < argc)
            opts().twins = std::stoull(argv[++i]);
        else if (arg == "--trace")
            opts().trace = true;
    }
    build();
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    if (opts().trace) {
        const std::string text = trace();
        std::fwrite(text.data(), 1, text.size(), stdout);
        return 0;
    }
    return RUN_ALL_TESTS();
}

}  // namespace prawn::test

#endif
