// SPDX-License-Identifier: Apache-2.0
// What a replay found, for people and for programs. All times are model time.
#include <cinttypes>
#include <cstdio>

#include "record/replay_run.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

double us(double ps) {
    return ps / 1e6;
}

void heading(const replay_request& request, const replay_result& r) {
    std::printf("recording  %s: %" PRIu64 " records, %s, profile %s, %s\n",
                one_line(request.file).c_str(), r.records,
                time_text(r.recorded_end_ps).c_str(),
                one_line(r.header.profile_name).c_str(),
                one_line(r.header.time_mode).c_str());
    if (!r.changed)
        return;
    std::printf("replay     %s\n",
                request.dependencies ? "dependency-preserving" : "open loop");
    for (const std::string& c : r.changes)
        std::printf("           %s\n", one_line(c).c_str());
}

void row(const std::string& what, double recorded, double replayed,
         int digits) {
    std::printf("%-44s %16.*f %16.*f", what.c_str(), digits, recorded, digits,
                replayed);
    if (recorded != 0.0)
        std::printf(" %+9.2f %%", (replayed / recorded - 1.0) * 100.0);
    std::printf("\n");
}

void count_row(const std::string& what, std::uint64_t recorded,
               std::uint64_t replayed) {
    if (recorded || replayed)
        row(what, static_cast<double>(recorded), static_cast<double>(replayed),
            0);
}

void node_rows(unsigned k, const replay_result::node& n) {
    const std::string node = "node " + std::to_string(k) + ": ";
    const time_distribution &a = n.recorded.latency, &b = n.replayed.latency;
    count_row(node + "commands completed", a.count(), b.count());
    if (a.count() && b.count()) {
        const auto at = [&](const char* what, std::uint64_t x,
                            std::uint64_t y) {
            row(node + "accepted to completed, " + what + " (us)",
                us(static_cast<double>(x)), us(static_cast<double>(y)), 6);
        };
        at("least", a.least(), b.least());
        row(node + "accepted to completed, mean (us)", us(a.mean()),
            us(b.mean()), 6);
        at("median", a.quantile(500), b.quantile(500));
        at("99 %", a.quantile(990), b.quantile(990));
        at("most", a.most(), b.most());
    }
    const replay_statistics &x = n.recorded, &y = n.replayed;
    count_row(node + "DMA reads", x.dma_reads, y.dma_reads);
    count_row(node + "  of translation tables", x.table_reads, y.table_reads);
    count_row(node + "DMA writes", x.dma_writes, y.dma_writes);
    count_row(node + "interrupts", x.interrupts, y.interrupts);
}

// Counters of both, in the order of their names, where they differ.
void counter_rows(const std::string& where, const nlohmann::json& recorded,
                  const nlohmann::json& replayed) {
    for (const auto& [name, value] : recorded.items()) {
        if (!replayed.contains(name))
            continue;
        if (value.is_object())
            counter_rows(where + (name == "global" ? "" : name + ": "), value,
                         replayed[name]);
        else if (value.is_number_unsigned() && value != replayed[name])
            count_row(where + name, value.get<std::uint64_t>(),
                      replayed[name].get<std::uint64_t>());
    }
}

void tables(const replay_result& r) {
    std::printf("\n%-44s %16s %16s\n",
                "model time, " /* and what follows */
                "counts",
                "recorded", "replayed");
    row("last activity (us)", us(static_cast<double>(r.recorded_end_ps)),
        us(static_cast<double>(r.replayed_end_ps)), 6);
    for (std::size_t k = 0; k < r.nodes.size(); k++)
        node_rows(static_cast<unsigned>(k), r.nodes[k]);
    if (r.recorded_counters.is_object()) {
        std::printf("\ncounters that differ\n");
        const auto& was = r.recorded_counters["nodes"];
        const auto& is = r.counters["nodes"];
        for (std::size_t k = 0; k < was.size() && k < is.size(); k++)
            counter_rows("node " + std::to_string(k) + ": ", was[k], is[k]);
        counter_rows("fabric: ", r.recorded_counters["fabric"],
                     r.counters["fabric"]);
    } else if (!r.baseline_trouble.empty()) {
        std::printf(
            "\nno counters of the recording: it does not replay unchanged "
            "(%s)\n",
            one_line(r.baseline_trouble).c_str());
    }
    std::printf("\n");
    if (r.zeros)
        std::printf("%" PRIu64
                    " bytes were read that were never recorded: as zero\n",
                    r.zeros);
    if (r.unread)
        std::printf("%" PRIu64 " bytes that were recorded were not read\n",
                    r.unread);
    if (r.excused)
        std::printf("%" PRIu64
                    " reads of clocks, counters, levels and configuration got "
                    "other values\n",
                    r.excused);
    if (r.beyond)
        std::printf("%" PRIu64
                    " things came after the end of what was recorded\n",
                    r.beyond);
}

}  // namespace

void write_text(const replay_request& request, const replay_result& r) {
    heading(request, r);
    if (r.changed && !r.nodes.empty())
        tables(r);
    if (!r.trouble.empty())
        std::fprintf(stderr, "prawn: %s\n", one_line(r.trouble).c_str());
    if (r.interrupted) {
        std::fprintf(stderr, "prawn: interrupted\n");
        return;
    }
    if (!r.error.empty()) {
        std::fprintf(stderr, "prawn: error: %s\n", one_line(r.error).c_str());
        return;
    }
    if (r.reordered)
        std::printf("reordered  %" PRIu64
                    " records, each within its picosecond\n",
                    r.reordered);
    if (r.differences == 0) {
        std::printf("%s\n", r.changed
                                ? "outcome    the same, at other times"
                                : "identical  every record, to the picosecond");
        return;
    }
    const std::string at = r.first.record && r.first.record != ~std::uint64_t{0}
                               ? "record " + std::to_string(r.first.record)
                               : std::string("no record");
    if (r.changed)
        std::printf("outcome    %" PRIu64
                    " differences: the recorded guest could not have gone on "
                    "like this\n",
                    r.differences);
    std::printf("%s %s, at %s: %s\n", r.changed ? "first     " : "diverged  ",
                at.c_str(), time_text(r.first.time_ps).c_str(),
                one_line(r.first.text).c_str());
}

nlohmann::ordered_json to_json(const replay_result& r) {
    nlohmann::ordered_json j;
    j["changed"] = r.changed;
    j["changes"] = r.changes;
    j["profile"] = r.profile;
    j["ending"] = ending_text(r.ending);
    j["trouble"] = r.trouble;
    j["records"] = r.records;
    j["recorded_end_ps"] = r.recorded_end_ps;
    j["replayed_end_ps"] = r.replayed_end_ps;
    j["interrupted"] = r.interrupted;
    j["error"] = r.error;
    j["differences"] = r.differences;
    if (r.differences) {
        j["first"]["record"] = r.first.record;
        if (r.first.record == ~std::uint64_t{0})
            j["first"]["record"] = nullptr;
        j["first"]["time_ps"] = r.first.time_ps;
        j["first"]["text"] = r.first.text;
    }
    if (!r.changed)
        j["reordered"] = r.reordered;
    if (r.changed) {
        j["actions_left"] = r.actions_left;
        j["zero_bytes"] = r.zeros;
        j["unread_bytes"] = r.unread;
        j["excused_reads"] = r.excused;
        j["beyond_end"] = r.beyond;
    }
    const auto side = [](const replay_statistics& s) {
        nlohmann::ordered_json o;
        o["last_ps"] = s.last_ps;
        o["commands"] = s.latency.count();
        o["latency_ps"] = {
            {"least", s.latency.least()},     {"mean", s.latency.mean()},
            {"p50", s.latency.quantile(500)}, {"p90", s.latency.quantile(900)},
            {"p99", s.latency.quantile(990)}, {"p999", s.latency.quantile(999)},
            {"most", s.latency.most()}};
        o["bar_reads"] = s.bar_reads;
        o["bar_writes"] = s.bar_writes;
        o["dma_reads"] = s.dma_reads;
        o["table_reads"] = s.table_reads;
        o["dma_writes"] = s.dma_writes;
        o["dma_bytes"] = s.dma_bytes;
        o["interrupts"] = s.interrupts;
        return o;
    };
    for (const auto& n : r.nodes)
        j["nodes"].push_back(
            {{"recorded", side(n.recorded)}, {"replayed", side(n.replayed)}});
    j["counters"] = r.counters;
    j["recorded_counters"] = r.recorded_counters;
    return j;
}

}  // namespace prawn
