// SPDX-License-Identifier: Apache-2.0
// prawn-trace diff
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "record/trace_command.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

using json = nlohmann::ordered_json;

// One recording, read step by step; remembers the last few records.
class side
{
public:
    side(const std::string& file, std::size_t context) :
        m_reader(file), m_context(context) {}

    // The next record is in now(), or more is false.
    bool next() {
        if (m_more && m_reader.records()) {
            m_before.emplace_back(m_number, m_now);
            if (m_before.size() > m_context)
                m_before.pop_front();
        }
        record r;
        m_more = m_reader.next(r);
        m_number = m_reader.records();
        if (m_more)
            m_now = r;
        return m_more;
    }
    bool more() const { return m_more; }
    const record& now() const { return m_now.get(); }
    std::uint64_t number() const { return m_number; }
    const recording_reader& reader() const { return m_reader; }
    const std::deque<std::pair<std::uint64_t, kept_record>>& before() const {
        return m_before;
    }

private:
    recording_reader m_reader;
    const std::size_t m_context;
    std::deque<std::pair<std::uint64_t, kept_record>> m_before;
    kept_record m_now;
    std::uint64_t m_number = 0;
    bool m_more = true;
};

struct difference {
    std::string what;
    std::string a, b;
};
using differences = std::vector<difference>;

void compare(differences& out, const std::string& what, const std::string& a,
             const std::string& b) {
    if (a != b)
        out.push_back({what, a, b});
}

std::map<std::string, std::string> items(const recording_header& h) {
    std::map<std::string, std::string> all;
    for (const std::string& item : h.config) {
        const std::size_t at = item.find('=');
        all[item.substr(0, at)] =
            at == std::string::npos ? "" : item.substr(at + 1);
    }
    return all;
}

differences compare(const recording_header& a, const recording_header& b) {
    differences out;
    compare(out, "made by prawn", a.prawn_version, b.prawn_version);
    compare(out, "time", a.time_mode, b.time_mode);
    compare(out, "nodes", std::to_string(a.nodes), std::to_string(b.nodes));
    compare(out, "profile", a.profile_name, b.profile_name);
    if (a.profile_name == b.profile_name && a.profile_text != b.profile_text)
        out.push_back({"text of the profile",
                       "CRC-32C " + std::to_string(a.profile_crc),
                       "CRC-32C " + std::to_string(b.profile_crc)});
    compare(out, "firmware", a.firmware_hash, b.firmware_hash);
    auto of_a = items(a), of_b = items(b);
    for (const auto& [key, value] : of_a)
        compare(out, key, value, of_b.count(key) ? of_b[key] : "(not there)");
    for (const auto& [key, value] : of_b)
        if (!of_a.count(key))
            compare(out, key, "(not there)", value);
    return out;
}

std::string data_difference(const record& a, const record& b) {
    const std::uint32_t both = std::min(a.data_size, b.data_size);
    std::uint32_t at = 0;
    while (at < both && a.data[at] == b.data[at])
        at++;
    return "from byte " + std::to_string(at) + " on";
}

// Which fields say something else. The model's times come first.
differences compare(const record& a, const record& b, bool with_delta) {
    differences out;
    compare(out, "time", time_text(a.time_ps), time_text(b.time_ps));
    if (with_delta)
        compare(out, "delta cycle", std::to_string(a.delta),
                std::to_string(b.delta));
    compare(out, "asked at", time_text(a.began_ps), time_text(b.began_ps));
    const std::size_t times = out.size();
    const auto number = [&out](const char* what, std::uint64_t x,
                               std::uint64_t y) {
        compare(out, what, std::to_string(x), std::to_string(y));
    };
    compare(out, "node", std::to_string(a.node), std::to_string(b.node));
    compare(out, "kind", name(a.kind), name(b.kind));
    if (out.size() > times)
        return out;  // the rest compares different things
    number("bar", a.bar, b.bar);
    number("address", a.address, b.address);
    number("length", a.length, b.length);
    number("order", a.order, b.order);
    number("value", a.value, b.value);
    number("vector", a.vector, b.vector);
    number("channel", a.channel, b.channel);
    number("context", a.context, b.context);
    number("status", static_cast<std::uint64_t>(a.status),
           static_cast<std::uint64_t>(b.status));
    number("posted", a.posted, b.posted);
    number("on", a.flag, b.flag);
    number("nested", a.nested, b.nested);
    number("late", a.late, b.late);
    if (a.data_size != b.data_size ||
        !std::equal(a.data, a.data + a.data_size, b.data)) {
        const std::string from = data_difference(a, b);
        out.push_back({"data", from, from});
    }
    return out;
}

bool is_time(const difference& d) {
    return d.what == "time" || d.what == "delta cycle" || d.what == "asked at";
}

bool only_times(const differences& all) {
    return std::all_of(all.begin(), all.end(), is_time);
}

std::string line(const char* mark, std::uint64_t number, const record& r) {
    return std::string(mark) + " " + std::to_string(number) + "  " +
           time_text(r.time_ps) +
           (r.delta ? " +" + std::to_string(r.delta) : "") + "  node " +
           std::to_string(r.node) + "  " + record_text(r);
}

class diff_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("A", m_a, "a recording")->required();
        app.add_option("B", m_b, "another one")->required();
        app.add_option("--context", m_context,
                       "records to show around the first difference")
            ->check(CLI::Range(0, 1000))
            ->capture_default_str();
        app.add_flag("--delta", m_delta,
                     "the delta cycles of the kernel matter, too");
        app.add_flag("--records", m_records,
                     "compare the records only: another profile, "
                     "configuration or version is no difference");
        app.add_flag("--json", m_json, "as one JSON object");
        app.footer(
            "First what their headers say, then the first record that is not "
            "the same, with the records around it. If nothing but times "
            "differs there, it looks on for the first record that says "
            "something else.\n"
            "Exit status: 0 the same, 1 different or not to be read to the "
            "end, 2 wrong use or no recording.");
    }

    int run() override {
        side a(m_a, m_context), b(m_b, m_context);
        if (!m_records)
            m_headers = compare(a.reader().header(), b.reader().header());
        find(a, b);
        m_json ? print_json(a, b) : print(a, b);
        return same(a, b) ? TRACE_OK : TRACE_CHECK;
    }

private:
    // A place where they differ, and what is around it.
    struct place {
        std::uint64_t number = 0;  // of the record, from 1
        differences what;
        std::vector<std::string> before;
        std::vector<std::string> of_a, of_b;  // it, and what follows
        bool found() const { return number != 0; }
    };

    bool same(const side& a, const side& b) const {
        return m_headers.empty() && !m_first.found() && m_end.empty() &&
               a.reader().trailer() && b.reader().trailer();
    }

    void find(side& a, side& b) {
        for (;;) {
            a.next();
            b.next();
            if (!a.more() || !b.more())
                break;
            m_common++;
            if (a.now() == b.now())
                continue;
            differences what = compare(a.now(), b.now(), m_delta);
            if (what.empty())
                continue;  // only the delta cycle
            m_common--;
            if (!only_times(what)) {
                (m_first.found() ? m_later : m_first) =
                    look(a, b, std::move(what));
                return;
            }
            if (!m_first.found())
                m_first = peek(a, b, std::move(what));
            m_late++;
        }
        if (a.more() != b.more())
            m_end = one_ends(a, b);
        else if (const auto* x = a.reader().trailer(),
                 *y = b.reader().trailer();
                 x && y && x->time_ps != y->time_ps)
            m_end = "the runs end at different times: A at " +
                    time_text(x->time_ps) + ", B at " + time_text(y->time_ps);
    }

    std::string one_ends(const side& a, const side& b) const {
        const side& longer = a.more() ? a : b;
        const side& shorter = a.more() ? b : a;
        return std::string(a.more() ? "B" : "A") + " ends (" +
               ending_text(shorter.reader().end()) + ") after record " +
               std::to_string(shorter.reader().records()) + "; " +
               (a.more() ? "A" : "B") + " goes on with\n" +
               line(" ", longer.number(), longer.now());
    }

    // The two records where they are now.
    place peek(const side& a, const side& b, differences what) const {
        place p;
        p.number = a.number();
        p.what = std::move(what);
        for (const auto& [number, r] : a.before())
            p.before.push_back(line(" ", number, r.get()));
        p.of_a.push_back(line("A", a.number(), a.now()));
        p.of_b.push_back(line("B", b.number(), b.now()));
        return p;
    }
    // And what follows: nothing is compared afterwards.
    place look(side& a, side& b, differences what) const {
        place p = peek(a, b, std::move(what));
        for (std::size_t i = 0; i < m_context && a.next(); i++)
            p.of_a.push_back(line("A", a.number(), a.now()));
        for (std::size_t i = 0; i < m_context && b.next(); i++)
            p.of_b.push_back(line("B", b.number(), b.now()));
        return p;
    }

    static void print(const char* title, const place& p) {
        std::cout << title << p.number << ":\n";
        for (const difference& d : p.what)
            std::cout << "  " << d.what << ": " << d.a
                      << (d.a == d.b ? "" : " / " + d.b) << "\n";
        for (const auto* lines : {&p.before, &p.of_a, &p.of_b})
            for (const std::string& l : *lines)
                std::cout << l << "\n";
    }

    void print(const side& a, const side& b) const {
        for (const difference& d : m_headers)
            std::cout << "header: " << d.what << ": A " << one_line(d.a)
                      << ", B " << one_line(d.b) << "\n";
        if (m_first.found()) {
            print(m_late ? "times differ first at record "
                         : "first difference at record ",
                  m_first);
            if (m_late)
                std::cout << m_late << " records differ in their times only";
            if (m_late && m_later.found())
                print("\nfirst record that says something else: ", m_later);
            else if (m_late)
                std::cout << "\n";
        }
        if (!m_end.empty())
            std::cout << m_end << "\n";
        for (const side* s : {&a, &b})
            if (!s->reader().trouble().empty())
                std::cout << one_line(s->reader().trouble()) << "\n";
        if (same(a, b))
            std::cout << "the same: " << m_common << " records\n";
    }

    static json to_json(const differences& all) {
        json list = json::array();
        for (const difference& d : all)
            list.push_back({{"what", d.what}, {"a", d.a}, {"b", d.b}});
        return list;
    }
    static json to_json(const place& p) {
        if (!p.found())
            return {};
        return {{"record", p.number},
                {"what", to_json(p.what)},
                {"before", p.before},
                {"a", p.of_a},
                {"b", p.of_b}};
    }

    void print_json(const side& a, const side& b) const {
        json j = {{"same", same(a, b)},
                  {"header", to_json(m_headers)},
                  {"first", to_json(m_first)},
                  {"time_only", m_late},
                  {"first_other", to_json(m_later)},
                  {"end", m_end},
                  {"a",
                   {{"state", ending_text(a.reader().end())},
                    {"trouble", a.reader().trouble()}}},
                  {"b",
                   {{"state", ending_text(b.reader().end())},
                    {"trouble", b.reader().trouble()}}}};
        std::cout << j.dump(1, ' ', false, json::error_handler_t::replace)
                  << "\n";
    }

    std::string m_a, m_b;
    std::size_t m_context = 3;
    bool m_delta = false;
    bool m_records = false;
    bool m_json = false;

    differences m_headers;
    place m_first;  // anything but the delta cycle
    place m_later;  // if m_first is about times: more than a time
    std::uint64_t m_common = 0;
    std::uint64_t m_late = 0;  // records that differ in times only
    std::string m_end;         // one ends before the other
};

}  // namespace

std::unique_ptr<trace_command> make_trace_diff() {
    return std::make_unique<diff_command>();
}

}  // namespace prawn
