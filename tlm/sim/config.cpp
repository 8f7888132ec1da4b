// SPDX-License-Identifier: Apache-2.0
#include "sim/config.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include <toml++/toml.h>

#include "support/toml_limit.h"

namespace prawn {

namespace {

namespace fs = std::filesystem;

// Where a value stands, for messages.
struct place {
    std::string file;  // or "--set"
    std::string key;
    unsigned line = 0;

    [[noreturn]] void fail(const std::string& what,
                           const std::string& mend) const {
        std::string text = file;
        if (line)
            text += ":" + std::to_string(line);
        throw config_error(text + ": " + key + ": " + what + "; " + mend);
    }
};

using setter =
    std::function<void(sim_config&, const toml::node&, const place&)>;
using getter = std::function<std::string(const sim_config&)>;
struct key_access {
    setter set;
    getter get;
};

std::string quoted_list(const std::vector<std::string>& values) {
    std::string text;
    for (const std::string& v : values)
        text += (text.empty() ? "\"" : ", \"") + v + "\"";
    return text;
}

std::string text_of(const toml::node& value, const place& where) {
    const auto text = value.value_exact<std::string>();
    if (!text)
        where.fail("not a text", "write it in quotes");
    return *text;
}

std::int64_t number_of(const toml::node& value, const place& where,
                       std::int64_t low, std::int64_t high) {
    const auto number = value.value_exact<std::int64_t>();
    const std::string range =
        std::to_string(low) + " to " + std::to_string(high);
    if (!number)
        where.fail("not a whole number", "use " + range);
    if (*number < low || *number > high)
        where.fail(std::to_string(*number) + " is out of range",
                   "use " + range);
    return *number;
}

template <typename F>
key_access text(F member) {
    return {[member](sim_config& c, const toml::node& v, const place& w) {
                member(c) = text_of(v, w);
            },
            [member](const sim_config& c) { return member(c); }};
}

template <typename F>
key_access flag(F member) {
    return {
        [member](sim_config& c, const toml::node& v, const place& w) {
            const auto on = v.value_exact<bool>();
            if (!on)
                w.fail("not a truth value", "use true or false");
            member(c) = *on;
        },
        [member](const sim_config& c) { return member(c) ? "true" : "false"; }};
}

template <typename F>
key_access number(std::int64_t low, std::int64_t high, F member) {
    return {[=](sim_config& c, const toml::node& v, const place& w) {
                using T = std::decay_t<decltype(member(c))>;
                member(c) = static_cast<T>(number_of(v, w, low, high));
            },
            [member](const sim_config& c) {
                return std::to_string(static_cast<std::int64_t>(member(c)));
            }};
}

// One of several words; some are known but not available in this version.
template <typename F>
key_access choice(const std::vector<std::string>& values,
                  const std::vector<std::string>& later, F member) {
    const auto set = [=](sim_config& c, const toml::node& v, const place& w) {
        const std::string word = text_of(v, w);
        if (std::count(later.begin(), later.end(), word))
            w.fail("\"" + word + "\" is not available in this version",
                   "use " + quoted_list(values));
        if (!std::count(values.begin(), values.end(), word))
            w.fail("\"" + word + "\" is not known",
                   "use " + quoted_list(values));
        member(c) = word;
    };
    return {set, [member](const sim_config& c) { return member(c); }};
}

key_access block_impl(const std::string& block) {
    const auto set = [=](sim_config& c, const toml::node& v, const place& w) {
        std::string word;
        choice({"tlm", "twin"}, {"rtl", "firmware"},
               [&](const sim_config&) -> std::string& { return word; })
            .set(c, v, w);
        if (word == "twin")
            c.nic.twins.insert(block);
        else
            c.nic.twins.erase(block);
    };
    return {set, [block](const sim_config& c) {
                return c.nic.twins.count(block) ? "twin" : "tlm";
            }};
}

key_access power_of_two(std::int64_t low, std::int64_t high,
                        unsigned nic_config::*log2) {
    const auto set = [=](sim_config& c, const toml::node& v, const place& w) {
        const std::int64_t n = number_of(v, w, low, high);
        if (n & (n - 1))
            w.fail(std::to_string(n) + " is not a power of two",
                   "use one from " + std::to_string(low) + " to " +
                       std::to_string(high));
        c.nic.*log2 =
            static_cast<unsigned>(__builtin_ctzll(static_cast<unsigned>(n)));
    };
    return {set, [log2](const sim_config& c) {
                return std::to_string(1U << c.nic.*log2);
            }};
}

std::map<std::string, key_access> make_schema() {
    std::map<std::string, key_access> s;
    s["time"] = choice(
        {"free-running", "synchronized"}, {"replay"},
        [](auto& c) -> auto& { return c.time; });
    s["quantum_ns"] = number(
        100, 1000000000, [](auto& c) -> auto& { return c.quantum_ns; });
    s["engine"] = choice(
        {"hardwired"}, {"firmware"}, [](auto& c) -> auto& { return c.engine; });
    s["profile"] = text([](auto& c) -> auto& { return c.profile; });
    s["checker"] = flag([](auto& c) -> auto& { return c.checker; });
    s["nodes"] = number(
        1, PRAWN_MAX_NODES, [](auto& c) -> auto& { return c.fabric.nodes; });
    s["fabric.topology"] = choice(
        {"link", "switch"}, {},
        [](auto& c) -> auto& { return c.fabric.topology; });
    s["host.bar_credits"] = number(
        1, 1024, [](auto& c) -> auto& { return c.host.bar_credits; });
    s["host.dma_slots"] = number(
        1, 4096, [](auto& c) -> auto& { return c.host.dma_slots; });
    s["trace.pcapng"] = text([](auto& c) -> auto& { return c.trace.pcapng; });
    s["trace.perfetto"] =
        text([](auto& c) -> auto& { return c.trace.perfetto; });
    s["trace.csv"] = text([](auto& c) -> auto& { return c.trace.csv; });
    s["trace.record"] = text([](auto& c) -> auto& { return c.trace.record; });

    for (const std::string& name : block_names())
        s["blocks." + name + ".impl"] = block_impl(name);
    s["blocks.twin_seed"] = number(
        0, INT64_MAX, [](auto& c) -> auto& { return c.nic.twin_seed; });
    s["blocks.twin_delay_ns"] = number(
        0, 1000000, [](auto& c) -> auto& { return c.nic.twin_delay_ns; });
    s["blocks.twin_refuse_one_in"] = number(
        0, 1000, [](auto& c) -> auto& { return c.nic.twin_refuse_one_in; });
    s["blocks.utlb.entries"] =
        power_of_two(64, 16384, &nic_config::utlb_log2_entries);
    s["blocks.utlb.ways"] = power_of_two(1, 8, &nic_config::utlb_log2_ways);
    s["blocks.utlb.prefetch"] =
        power_of_two(1, 32, &nic_config::utlb_log2_prefetch);
    s["blocks.utlb.offset"] =
        flag([](auto& c) -> auto& { return c.nic.utlb_offset; });
    s["blocks.packetizer.max_payload"] = number(
        64, PRAWN_MAX_PAYLOAD,
        [](auto& c) -> auto& { return c.nic.packetizer_max_payload; });
    s["blocks.packetizer.window"] = number(
        1, 64, [](auto& c) -> auto& { return c.nic.packetizer_window; });
    s["blocks.outgoing_fifo.depth"] = number(
        1, 1024, [](auto& c) -> auto& { return c.nic.outgoing_fifo_depth; });
    s["blocks.incoming_dma.window"] = number(
        1, 32, [](auto& c) -> auto& { return c.nic.incoming_dma_window; });
    return s;
}

const std::map<std::string, key_access>& schema() {
    static const std::map<std::string, key_access> s = make_schema();
    return s;
}

std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); j++)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); i++) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); j++) {
            const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            const std::size_t next =
                std::min({row[j] + 1, row[j - 1] + 1, diagonal + cost});
            diagonal = row[j];
            row[j] = next;
        }
    }
    return row.back();
}

[[noreturn]] void unknown_key(const place& where) {
    std::string best;
    std::size_t least = 4;
    for (const std::string& key : config_keys()) {
        const std::size_t d = distance(where.key, key);
        if (d < least) {
            least = d;
            best = key;
        }
    }
    where.fail("no such key",
               best.empty() ? "examples/two-nodes.toml names all that there are"
                            : "did you mean " + best + "?");
}

class loader
{
public:
    explicit loader(sim_config& out) : m_out(out) {}

    void file(const std::string& path) {
        m_name = path;
        const std::string refusal = toml_refusal(path);
        if (!refusal.empty())
            throw config_error(path + ": " + refusal +
                               "; see examples/two-nodes.toml for what one is");
        try {
            const toml::table table = toml::parse_file(path);
            walk(table, "");
        } catch (const toml::parse_error& e) {
            const auto line = e.source().begin.line;
            throw config_error(
                path + (line ? ":" + std::to_string(line) : std::string()) +
                ": " + std::string(e.description()) +
                "; see examples/two-nodes.toml for how it is written");
        }
    }

    // KEY=VALUE; a value that is no TOML is a text.
    void change(const std::string& item) {
        m_name = "--set";
        const std::size_t at = item.find('=');
        if (at == std::string::npos || at == 0)
            throw config_error("--set " + item + ": no value; use KEY=VALUE");
        const std::string key = item.substr(0, at);
        const std::string value = item.substr(at + 1);
        if (item.size() > MAX_TOML_BYTES)
            throw config_error("--set: longer than " +
                               std::to_string(MAX_TOML_BYTES) +
                               " bytes; use KEY=VALUE");
        toml::table one;
        try {
            one = toml::parse("v = " + value);
        } catch (const toml::parse_error&) {
            one.insert("v", value);
        }
        if (one.size() != 1)
            throw config_error("--set " + key +
                               ": says more than one thing; use KEY=VALUE once "
                               "for each");
        if (key.rfind("node.", 0) == 0) {
            node_key(key, *one.get("v"));
            return;
        }
        apply(key, *one.get("v"));
    }

    std::size_t node_tables() const { return m_node_tables; }

private:
    place where(const std::string& key, const toml::node& value) const {
        return {m_name, key, static_cast<unsigned>(value.source().begin.line)};
    }

    void walk(const toml::table& table, const std::string& prefix) {
        for (const auto& [name, value] : table) {
            const std::string key = prefix + std::string(name.str());
            if (const toml::table* inner = value.as_table()) {
                const bool known = std::any_of(
                    schema().begin(), schema().end(), [&](const auto& entry) {
                        return entry.first.rfind(key + ".", 0) == 0;
                    });
                if (!known)
                    unknown_key(where(key, value));
                walk(*inner, key + ".");
            } else if (key == "node") {
                node_tables_of(value);
            } else {
                apply(key, value);
            }
        }
    }

    void apply(const std::string& key, const toml::node& value) {
        place p = where(key, value);
        if (m_name == "--set")
            p.line = 0;
        const auto found = schema().find(key);
        if (found == schema().end())
            unknown_key(p);
        if (key == "fabric.topology")
            topology_given = true;
        if (key == "nodes") {
            nodes_given = true;
            nodes_changed = m_name == "--set";
        }
        found->second.set(m_out, value, p);
    }

    void node_tables_of(const toml::node& value) {
        const toml::array* list = value.as_array();
        if (!list || !list->is_homogeneous(toml::node_type::table))
            where("node", value)
                .fail("not a list of tables", "write [[node]] for each node");
        for (const toml::node& one : *list) {
            const std::string prefix =
                "node." + std::to_string(m_node_tables++) + ".";
            for (const auto& [name, v] : *one.as_table())
                node_key(prefix + std::string(name.str()), v);
        }
    }

    // node.<k>.socket
    void node_key(const std::string& key, const toml::node& value) {
        place p = where(key, value);
        if (m_name == "--set")
            p.line = 0;
        const std::size_t dot = key.find('.', 5);
        const std::string digits =
            dot == std::string::npos ? "" : key.substr(5, dot - 5);
        if (digits.empty() || digits.size() > 2 ||
            digits.find_first_not_of("0123456789") != std::string::npos ||
            key.substr(dot + 1) != "socket")
            p.fail("no such key", "use node.<k>.socket");
        const auto k = static_cast<std::size_t>(std::stoi(digits));
        if (k >= PRAWN_MAX_NODES)
            p.fail("no such node",
                   "use 0 to " + std::to_string(PRAWN_MAX_NODES - 1));
        if (m_out.nodes.size() <= k)
            m_out.nodes.resize(k + 1);
        m_out.nodes[k].socket = text_of(value, p);
    }

    sim_config& m_out;
    std::string m_name;
    std::size_t m_node_tables = 0;

public:
    bool topology_given = false;
    bool nodes_given = false;
    bool nodes_changed = false;  // by --set: surplus [[node]] do not matter
};

// A profile is a file, or the name of one in profiles/ beside the directory of
// the configuration, or in the source tree.
std::string find_profile(const std::string& name, const std::string& config) {
    std::error_code none;
    if (name.find('/') != std::string::npos || fs::path(name).has_extension())
        return name;
    const fs::path file = name + ".toml";
    std::vector<fs::path> places;
    if (!config.empty()) {
        const fs::path here = fs::absolute(config).parent_path();
        places = {here, here / "profiles", here.parent_path() / "profiles"};
    }
    places.emplace_back(PRAWN_PROFILE_DIR);
    for (const fs::path& p : places)
        if (fs::is_regular_file(p / file, none))
            return (p / file).string();
    throw config_error((config.empty() ? "configuration" : config) +
                       ": profile: no file " + file.string() +
                       "; use the path of a profile, or a name out of " +
                       std::string(PRAWN_PROFILE_DIR));
}

}  // namespace

std::vector<std::string> config_keys() {
    std::vector<std::string> keys;
    for (const auto& entry : schema())
        keys.push_back(entry.first);
    return keys;
}

std::vector<std::string> effective_config(const sim_config& config) {
    std::vector<std::string> items;
    for (const auto& [key, access] : schema())
        if (key != "profile" && key.rfind("trace.", 0) != 0)
            items.push_back(key + "=" + access.get(config));
    return items;
}

sim_config load_config(const std::string& file,
                       const std::vector<std::string>& changes) {
    sim_config c;
    loader l(c);
    if (!file.empty()) {
        std::error_code none;
        if (!fs::is_regular_file(file, none))
            throw config_error(file +
                               ": no such file; name a configuration "
                               "such as examples/two-nodes.toml");
        l.file(file);
    }
    for (const std::string& item : changes)
        l.change(item);
    const std::string name = file.empty() ? "configuration" : file;
    const std::size_t named = std::max(c.nodes.size(), l.node_tables());
    if (!l.nodes_given && named)
        c.fabric.nodes = static_cast<unsigned>(
            std::min<std::size_t>(named, PRAWN_MAX_NODES));
    if (named > c.fabric.nodes && !l.nodes_changed)
        throw config_error(
            name + ": node: " + std::to_string(named) +
            " described, but nodes = " + std::to_string(c.fabric.nodes) +
            "; make them agree");
    if (!l.topology_given)
        c.fabric.topology = c.fabric.nodes > 2 ? "switch" : "link";
    if (c.fabric.topology == "link" && c.fabric.nodes > 2)
        throw config_error(name + ": fabric.topology: a link has two ends, " +
                           std::to_string(c.fabric.nodes) +
                           " nodes were given; use \"switch\"");
    if (c.nic.utlb_log2_ways > c.nic.utlb_log2_entries)
        throw config_error(name +
                           ": blocks.utlb.ways: more than entries; "
                           "use at most blocks.utlb.entries");
    c.nodes.resize(c.fabric.nodes);
    c.profile_path = find_profile(c.profile, file);
    return c;
}

}  // namespace prawn
