// SPDX-License-Identifier: Apache-2.0
#include "support/profile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace prawn {
namespace {

using sc_core::SC_NS;
using sc_core::sc_time;

// The directory of the shipped profiles is the program's argument.
std::string shipped(const std::string& name) {
    return testing::internal::GetArgvs().at(1) + "/" + name + ".toml";
}

class profile_file
{
public:
    profile_file() {
        char path[] = "/tmp/prawn-profile-XXXXXX";
        const int fd = mkstemp(path);
        if (fd >= 0)
            close(fd);
        m_path = path;
        std::ifstream in(shipped("pcie-gen3"));
        m_text.assign(std::istreambuf_iterator<char>(in), {});
    }
    ~profile_file() { std::remove(m_path.c_str()); }
    // Replaces the line that begins with `key`.
    profile_file& line(const std::string& key, const std::string& text) {
        const std::size_t at = m_text.find("\n" + key + " ");
        EXPECT_NE(at, std::string::npos) << key;
        const std::size_t end = m_text.find('\n', at + 1);
        m_text.replace(at + 1, end - at - 1, text);
        return *this;
    }
    profile_file& append(const std::string& text) {
        m_text += text;
        return *this;
    }
    timing_profile load() const {
        std::ofstream(m_path) << m_text;
        return timing_profile::load(m_path);
    }
    // The refusal, which must be one line, begin with the file and have a
    // mend.
    std::string refusal() const {
        try {
            load();
        } catch (const std::runtime_error& e) {
            const std::string text = e.what();
            EXPECT_EQ(text.find('\n'), std::string::npos);
            EXPECT_EQ(text.compare(0, m_path.size(), m_path), 0);
            EXPECT_NE(text.find("; "), std::string::npos);
            return text.substr(m_path.size());
        }
        return "accepted";
    }

private:
    std::string m_path;
    std::string m_text;
};

TEST(profile, pcie_gen3) {
    const timing_profile p = timing_profile::load(shipped("pcie-gen3"));
    EXPECT_EQ(p.name, "pcie-gen3");
    EXPECT_FALSE(p.description.empty());
    EXPECT_EQ(p.card_clock, sc_time(4, SC_NS));
    EXPECT_FALSE(p.bus.half_duplex);
    EXPECT_DOUBLE_EQ(p.bus.bytes_per_ns, 7.877);
    EXPECT_EQ(p.bus.max_burst, 256u);
    EXPECT_EQ(p.bus.overhead, 24u);
    EXPECT_EQ(p.bus.read_latency, sc_time(450, SC_NS));
    EXPECT_EQ(p.bus.outstanding_reads, 64u);
    EXPECT_DOUBLE_EQ(p.link.bytes_per_ns, 12.5);
    EXPECT_EQ(p.link.credits, 32u);
    EXPECT_EQ(p.sources.size(), 19u);
}

TEST(profile, shrimp_1996) {
    const timing_profile p = timing_profile::load(shipped("shrimp-1996"));
    EXPECT_EQ(p.name, "shrimp-1996");
    EXPECT_TRUE(p.bus.half_duplex);
    EXPECT_EQ(p.bus.outstanding_reads, 1u);
    EXPECT_EQ(p.card_clock, sc_time(1000.0 / 60.0, SC_NS));
    // The one figure that the profile is fitted to: 23 MB/s, within 5 %.
    const double burst_ns =
        p.bus.arbitration / sc_time(1, SC_NS) +
        p.bus.read_latency / sc_time(1, SC_NS) +
        (p.bus.overhead + p.bus.max_burst) / p.bus.bytes_per_ns;
    EXPECT_NEAR(p.bus.max_burst / burst_ns * 1000.0, 23.0, 23.0 * 0.05);
}

TEST(profile, every_number_has_its_source) {
    for (const char* name : {"pcie-gen3", "shrimp-1996"}) {
        const timing_profile p = timing_profile::load(shipped(name));
        for (const auto& s : p.sources) {
            EXPECT_TRUE(s.kind == "sourced" || s.kind == "derived" ||
                        s.kind == "fitted");
            EXPECT_GT(s.source.size(), 5u) << s.key;
            // Remembered numbers say so.
            if (s.source.find("ISCA") != std::string::npos ||
                s.source.find("UTLB paper") != std::string::npos) {
                EXPECT_NE(s.source.find("unverified recollection"),
                          std::string::npos)
                    << s.key;
            }
        }
    }
}

TEST(profile, no_such_file) {
    try {
        timing_profile::load("/nonexistent/p.toml");
        FAIL();
    } catch (const std::runtime_error& e) {
        EXPECT_EQ(std::string(e.what()).find("/nonexistent/p.toml"), 0u);
    }
}

TEST(profile, not_toml) {
    EXPECT_NE(profile_file().append("\n[[[").refusal(), "accepted");
    EXPECT_NE(profile_file().append("\nbroken = \"").refusal(), "accepted");
}

TEST(profile, refusals) {
    struct {
        const char* key;
        const char* text;
        const char* expected;
    } const cases[] = {
        {"read_latency_ns", "", "bus.read_latency_ns: is missing"},
        {"read_latency_ns", "read_latency_ns = 450", "has no provenance"},
        {"read_latency_ns",
         "read_latency_ns = { kind = \"fitted\", source = \"x\" }",
         "value is missing"},
        {"read_latency_ns",
         "read_latency_ns = { value = \"fast\", kind = \"fitted\", source = "
         "\"x\" }",
         "not a number"},
        {"read_latency_ns",
         "read_latency_ns = { value = -1, kind = \"fitted\", source = \"x\" }",
         "out of range"},
        {"read_latency_ns",
         "read_latency_ns = { value = nan, kind = \"fitted\", source = \"x\" }",
         "out of range"},
        {"read_latency_ns",
         "read_latency_ns = { value = inf, kind = \"fitted\", source = \"x\" }",
         "out of range"},
        {"read_latency_ns", "read_latency_ns = { value = 1, source = \"x\" }",
         "kind is missing"},
        {"read_latency_ns",
         "read_latency_ns = { value = 1, kind = \"guessed\", source = \"x\" }",
         "kind is missing or unknown"},
        {"read_latency_ns",
         "read_latency_ns = { value = 1, kind = \"fitted\" }",
         "source is missing"},
        {"read_latency_ns",
         "read_latency_ns = { value = 1, kind = \"fitted\", source = \"\" }",
         "source is missing"},
        {"read_latency_ns",
         "read_latency_ns = { value = 1, kind = \"fitted\", source = \"x\", "
         "unit = \"ns\" }",
         "bus.read_latency_ns.unit: is unknown"},
        {"max_burst_bytes",
         "max_burst_bytes = { value = 64.5, kind = \"fitted\", source = \"x\" "
         "}",
         "whole number"},
        {"max_burst_bytes",
         "max_burst_bytes = { value = 0, kind = \"fitted\", source = \"x\" }",
         "from 1 to 4096"},
        {"max_burst_bytes",
         "max_burst_bytes = { value = 8192, kind = \"fitted\", source = \"x\" "
         "}",
         "from 1 to 4096"},
        {"half_duplex",
         "half_duplex = { value = 1, kind = \"fitted\", source = \"x\" }",
         "true or false"},
        {"clock_mhz",
         "clock_mhz = { value = 0, kind = \"fitted\", source = \"x\" }",
         "card.clock_mhz: value is out of range"},
        {"instruction_ns",
         "instruction_ns = { value = 3, kind = \"fitted\", source = \"x\" }",
         "cpu.instruction_ns: is no power of two"},
        {"name", "", "name: is missing"},
        {"name", "name = 5", "name: is missing or not a text"},
        {"name", "name = \"x\"\nspeed = 1", "speed: is unknown"},
    };
    for (const auto& c : cases) {
        const std::string text = profile_file().line(c.key, c.text).refusal();
        EXPECT_NE(text.find(c.expected), std::string::npos)
            << c.text << " -> " << text;
    }
    EXPECT_NE(profile_file()
                  .append("\nwarp = { value = 1, kind = \"fitted\", source = "
                          "\"x\" }\n")
                  .refusal()
                  .find("link.warp: is unknown"),
              std::string::npos);
    EXPECT_NE(profile_file()
                  .append("\n[memory]\n")
                  .refusal()
                  .find("memory: is unknown"),
              std::string::npos);
}

}  // namespace
}  // namespace prawn
