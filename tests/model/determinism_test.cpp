// SPDX-License-Identifier: Apache-2.0
// The same stimulus gives the same event stream, bit by bit: in two processes,
// whose addresses, environment and age differ. Plain and with twins everywhere.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

struct outcome {
    std::uint64_t hash = 0;
    std::uint64_t events = 0;
    std::uint64_t failures = 1;
};

int the_pipe = -1;

// Traffic of all kinds: both directions, all sizes, errors, resets.
int stimulus() {
    bench& b = bench::get();
    b.boot_all();
    std::vector<channel> all;
    for (std::uint16_t k = 0; k < 6; k++)
        all.push_back(
            make_channel(b.driver(k % 2), k, b.driver(1 - k % 2), k, k, 32));
    std::uint32_t seed = 1;
    for (int round = 0; round < 100; round++) {
        sc_core::wait(sc_core::sc_time(3, sc_core::SC_US));
        for (channel& c : all) {
            seed = seed * 1664525 + 1013904223;
            prawn_completion done;
            while (c.from->poll(done)) {
            }
            if (c.from->room())
                c.from->send(c.import, c.source + seed % 5000,
                             seed >> 8 & 0x1ffff, seed % 3 * 1000, seed & 1);
            if (seed % 50 == 0)
                b.driver(c.import % 2).invalidate(c.from->id(), 0, 0);
        }
    }
    b.driver(1).reset();
    b.driver(1).boot();
    sc_core::wait(sc_core::sc_time(300, sc_core::SC_US));
    outcome o{b.hash().value(), b.hash().count(), 0};
    o.failures = testing::Test::HasFailure() ? 1 : b.model().failures().size();
    return ::write(the_pipe, &o, sizeof(o)) == sizeof(o) ? 0 : 1;
}

// In a process of its own.
outcome run(const std::vector<std::string>& arguments, std::size_t age) {
    int ends[2];
    outcome o;
    if (::pipe(ends))
        return o;
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        the_pipe = ends[1];
        // Another heap, another environment.
        static std::vector<std::vector<char>> junk;
        for (std::size_t i = 0; i < age; i++)
            junk.emplace_back(1000 + i * 77);
        ::setenv("PRAWN_TEST_AGE", std::string(age, 'x').c_str(), 1);
        std::vector<std::string> words = {"determinism"};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        for (std::string& w : words)
            argv.push_back(w.data());
        argv.push_back(nullptr);
        std::_Exit(sc_core::sc_elab_and_sim(static_cast<int>(words.size()),
                                            argv.data()));
    }
    ::close(ends[1]);
    if (::read(ends[0], &o, sizeof(o)) != sizeof(o))
        o = outcome();
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0)
        o.failures++;
    return o;
}

TEST(determinism, same_stimulus_same_events) {
    const outcome a = run({}, 0), b = run({}, 1000);
    EXPECT_EQ(a.failures, 0u);
    EXPECT_EQ(b.failures, 0u);
    EXPECT_GT(a.events, 10000u);
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.hash, b.hash);
}

TEST(determinism, twins_too_and_their_seed_matters) {
    const outcome a = run({"--twins"}, 0), b = run({"--twins"}, 1000);
    const outcome c = run({"--twins", "--set", "blocks.twin_seed=2"}, 0);
    EXPECT_EQ(a.failures + b.failures + c.failures, 0u);
    EXPECT_EQ(a.hash, b.hash);
    EXPECT_NE(a.hash, c.hash);
}

}  // namespace
}  // namespace model
}  // namespace prawn

// In the children.
int sc_main(int argc, char** argv) {
    return prawn::model::run_bench(argc, argv, prawn::model::stimulus);
}

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
