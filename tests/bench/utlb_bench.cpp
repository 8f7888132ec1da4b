// SPDX-License-Identifier: Apache-2.0
// How fast the model of the UTLB is, by itself. Wall time. The array as a
// trace-driven study uses it: lookups that hit, and a stream that also misses
// and fills. Prints a JSON list of {name, value, unit, baseline,
// baseline_value, ratio}.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>
#include <systemc>

#include "nic/utlb_cache.h"

namespace prawn {
namespace {

using wall = std::chrono::steady_clock;

constexpr double AIM = 20e6;  // lookups a second
constexpr std::uint64_t LOOKUPS = 5000000;

// Small and repeatable; its cost is part of what is measured.
struct pages {
    std::uint64_t state = 1;
    std::uint64_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return state >> 33;
    }
};

nlohmann::json measure(unsigned log2_ways, std::uint64_t span, bool misses) {
    utlb_geometry g;
    g.log2_ways = log2_ways;
    utlb_cache cache(g);
    pages p;
    std::uint64_t missed = 0;
    const auto once = [&](std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; i++) {
            const std::uint64_t n = p.next();
            const auto context = static_cast<std::uint16_t>(n & 3);
            const std::uint64_t page = (n >> 2) % span;
            if (cache.lookup(context, page) == utlb_cache::NOTHING) {
                missed++;
                cache.fill(
                    context, page,
                    page << PRAWN_PAGE_SHIFT | PRAWN_TABLE_ENTRY_VALID_MASK);
            }
        }
    };
    once(LOOKUPS / 10);  // warm up
    missed = 0;
    const auto begin = wall::now();
    once(LOOKUPS);
    const std::chrono::duration<double> took = wall::now() - begin;
    const double rate = static_cast<double>(LOOKUPS) / took.count();
    const double share = 100.0 * static_cast<double>(missed) / LOOKUPS;
    std::string name = "UTLB array, " + std::to_string(1U << log2_ways) +
                       (log2_ways ? " ways, " : " way, ");
    name += misses ? std::to_string(static_cast<int>(share + 0.5)) +
                         " % misses filled"
                   : "hits";
    return {{"name", name},
            {"value", rate / 1e6},
            {"unit", "million lookups/s"},
            {"baseline", "aim of the design"},
            {"baseline_value", AIM / 1e6},
            {"ratio", rate / AIM}};
}

}  // namespace
}  // namespace prawn

int sc_main(int, char**) {
    nlohmann::json all = nlohmann::json::array();
    for (unsigned log2_ways = 0; log2_ways <= 3; log2_ways++) {
        all.push_back(prawn::measure(log2_ways, 1024, false));
        all.push_back(prawn::measure(log2_ways, 4096, true));
    }
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
}
