// SPDX-License-Identifier: Apache-2.0
#include "support/profile.h"

#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>

#include <toml++/toml.h>

#include "support/toml_limit.h"

namespace prawn {

namespace {

constexpr double MAX_NS = 1e9;  // a second: nothing on a card takes longer

class loader
{
public:
    explicit loader(const std::string& path) : m_path(path) {
        const std::string refusal = toml_refusal(path);
        if (!refusal.empty())
            refuse(refusal);
        take([&] { return toml::parse_file(path); });
    }
    loader(const std::string& text, const std::string& name) : m_path(name) {
        if (text.size() > MAX_TOML_BYTES)
            refuse("is longer than " + std::to_string(MAX_TOML_BYTES) +
                   " bytes");
        take([&] { return toml::parse(text); });
    }

    std::string text(const std::string& key) {
        m_known.insert(key);
        const auto value = m_root[key].value<std::string>();
        if (!value || value->empty())
            fail(key, "is missing or not a text", "add " + key + " = \"...\"");
        return *value;
    }

    // A number in the range given, with its provenance.
    double number(const std::string& section, const std::string& key,
                  double least, double most, bool integer = false) {
        const toml::table& entry = find(section, key);
        const toml::node* node = entry.get("value");
        const std::string name = section + "." + key;
        if (!node || !node->is_number())
            fail(name, "value is missing or not a number",
                 "write value = <number>");
        const double value = *node->value<double>();
        if (!std::isfinite(value) || value < least || value > most ||
            (integer && value != std::floor(value))) {
            std::ostringstream range;
            range << "give " << (integer ? "a whole number" : "a number")
                  << " from " << least << " to " << most;
            fail(name, "value is out of range", range.str());
        }
        note(name, value, entry);
        return value;
    }
    std::uint32_t count(const std::string& section, const std::string& key,
                        double least, double most) {
        return static_cast<std::uint32_t>(
            number(section, key, least, most, true));
    }
    std::uint32_t power_of_two(const std::string& section,
                               const std::string& key, double most) {
        const std::uint32_t value = count(section, key, 1, most);
        if (value & (value - 1))
            fail(section + "." + key, "is no power of two",
                 "take the nearest, such as 1, 2 or 16");
        return value;
    }
    sc_core::sc_time ns(const std::string& section, const std::string& key) {
        return sc_core::sc_time(number(section, key, 0.0, MAX_NS),
                                sc_core::SC_NS);
    }
    bool flag(const std::string& section, const std::string& key) {
        const toml::table& entry = find(section, key);
        const toml::node* node = entry.get("value");
        const std::string name = section + "." + key;
        if (!node || !node->is_boolean())
            fail(name, "value is missing or not true or false",
                 "write value = true or value = false");
        const bool value = *node->value<bool>();
        note(name, value ? 1.0 : 0.0, entry);
        return value;
    }

    // After everything has been asked for.
    void refuse_unknown() const {
        for (const auto& [key, node] : m_root) {
            const std::string section(key.str());
            if (m_known.count(section))
                continue;
            if (!node.is_table() || !m_sections.count(section))
                fail(section, "is unknown", "remove it, or correct its name");
            for (const auto& [inner, unused] : *node.as_table()) {
                const std::string name = section + "." + std::string(inner);
                if (!m_known.count(name))
                    fail(name, "is unknown", "remove it, or correct its name");
            }
        }
    }

    std::vector<timing_profile::provenance> sources;

private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw std::runtime_error(m_path + ": " + why +
                                 "; mend the file or name another profile");
    }
    template <typename F>
    void take(F parse) {
        try {
            m_root = parse();
        } catch (const toml::parse_error& e) {
            std::ostringstream text;
            text << m_path;
            if (e.source().begin.line > 0)
                text << ":" << e.source().begin.line;
            text << ": " << e.description()
                 << "; mend the file or name another profile";
            throw std::runtime_error(text.str());
        }
    }

    [[noreturn]] void fail(const std::string& key, const std::string& what,
                           const std::string& mend) const {
        throw std::runtime_error(m_path + ": " + key + ": " + what + "; " +
                                 mend);
    }

    const toml::table& find(const std::string& section,
                            const std::string& key) {
        const std::string name = section + "." + key;
        m_known.insert(name);
        m_sections.insert(section);
        const toml::table* entry = m_root[section][key].as_table();
        if (!entry)
            fail(name, "is missing, or has no provenance",
                 "write " + key +
                     " = { value = ..., kind = \"sourced\", \"derived\" or "
                     "\"fitted\", source = \"...\" } in [" +
                     section + "]");
        for (const auto& [inner, unused] : *entry)
            if (inner != "value" && inner != "kind" && inner != "source")
                fail(name + "." + std::string(inner), "is unknown",
                     "only value, kind and source are known");
        return *entry;
    }

    void note(const std::string& name, double value, const toml::table& entry) {
        const auto kind = entry["kind"].value<std::string>();
        if (!kind ||
            (*kind != "sourced" && *kind != "derived" && *kind != "fitted"))
            fail(name, "kind is missing or unknown",
                 "write kind = \"sourced\", \"derived\" or \"fitted\"");
        const auto source = entry["source"].value<std::string>();
        if (!source || source->empty())
            fail(name, "source is missing",
                 "say where the number comes from, or how it was found");
        sources.push_back({name, value, *kind, *source});
    }

    const std::string m_path;
    toml::table m_root;
    std::set<std::string> m_known;
    std::set<std::string> m_sections;
};

timing_profile take_profile(loader& in) {
    timing_profile p;
    p.name = in.text("name");
    p.description = in.text("description");

    p.card_clock = sc_core::sc_time(
        1000.0 / in.number("card", "clock_mhz", 0.001, 100000.0),
        sc_core::SC_NS);
    p.sram_access = in.ns("card", "sram_access_ns");

    p.bus.half_duplex = in.flag("bus", "half_duplex");
    p.bus.bytes_per_ns = in.number("bus", "bytes_per_ns", 1e-6, 1e6);
    p.bus.max_burst = in.count("bus", "max_burst_bytes", 1, 4096);
    p.bus.overhead = in.count("bus", "overhead_bytes", 0, 4096);
    p.bus.arbitration = in.ns("bus", "arbitration_ns");
    p.bus.read_latency = in.ns("bus", "read_latency_ns");
    p.bus.write_latency = in.ns("bus", "write_latency_ns");
    p.bus.outstanding_reads = in.count("bus", "outstanding_reads", 1, 65536);
    p.bus.mmio_read = in.ns("bus", "mmio_read_ns");
    p.bus.mmio_write = in.ns("bus", "mmio_write_ns");
    p.bus.interrupt = in.ns("bus", "interrupt_ns");

    p.link.bytes_per_ns = in.number("link", "bytes_per_ns", 1e-6, 1e6);
    p.link.latency = in.ns("link", "latency_ns");
    p.link.overhead = in.count("link", "overhead_bytes", 0, 4096);
    p.link.credits = in.count("link", "credits", 1, 65536);
    p.link.switch_latency = in.ns("link", "switch_latency_ns");

    p.instruction_ns = in.power_of_two("cpu", "instruction_ns", 1024);

    in.refuse_unknown();
    p.sources = std::move(in.sources);
    return p;
}

}  // namespace

timing_profile timing_profile::load(const std::string& path) {
    loader in(path);
    return take_profile(in);
}

timing_profile timing_profile::parse(const std::string& text,
                                     const std::string& name) {
    loader in(text, name);
    return take_profile(in);
}

}  // namespace prawn
