// SPDX-License-Identifier: Apache-2.0
#include "sim/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

namespace prawn {
namespace {

class file
{
public:
    explicit file(const std::string& text) {
        char name[] = "/tmp/prawn-config-XXXXXX";
        const int fd = ::mkstemp(name);
        EXPECT_GE(fd, 0);
        ::close(fd);
        path = name;
        std::ofstream(path) << text;
    }
    ~file() { std::remove(path.c_str()); }
    std::string path;
};

// The one line that says what is wrong.
std::string refusal_of(const std::string& text,
                       const std::vector<std::string>& changes = {}) {
    const file f(text);
    try {
        load_config(f.path, changes);
    } catch (const config_error& e) {
        std::string line = e.what();
        EXPECT_EQ(line.find('\n'), std::string::npos);
        if (line.rfind(f.path, 0) == 0)
            line = "FILE" + line.substr(f.path.size());
        return line;
    }
    return "accepted";
}

TEST(config, defaults_are_what_the_example_says) {
    const sim_config none = load_config("");
    const sim_config all = load_config(PRAWN_EXAMPLES "/two-nodes.toml");
    EXPECT_EQ(none.time, all.time);
    EXPECT_EQ(none.profile, all.profile);
    EXPECT_EQ(none.engine, all.engine);
    EXPECT_EQ(none.checker, all.checker);
    EXPECT_EQ(none.fabric.nodes, all.fabric.nodes);
    EXPECT_EQ(none.fabric.topology, all.fabric.topology);
    EXPECT_EQ(none.host.bar_credits, all.host.bar_credits);
    EXPECT_EQ(none.host.dma_slots, all.host.dma_slots);
    EXPECT_EQ(none.nic.twins, all.nic.twins);
    EXPECT_EQ(none.nic.twin_seed, all.nic.twin_seed);
    EXPECT_EQ(none.nic.twin_delay_ns, all.nic.twin_delay_ns);
    EXPECT_EQ(none.nic.twin_refuse_one_in, all.nic.twin_refuse_one_in);
    EXPECT_EQ(none.nic.utlb_log2_entries, all.nic.utlb_log2_entries);
    EXPECT_EQ(none.nic.utlb_log2_ways, all.nic.utlb_log2_ways);
    EXPECT_EQ(none.nic.utlb_log2_prefetch, all.nic.utlb_log2_prefetch);
    EXPECT_EQ(none.nic.utlb_offset, all.nic.utlb_offset);
    EXPECT_EQ(none.nic.packetizer_max_payload, all.nic.packetizer_max_payload);
    EXPECT_EQ(none.nic.packetizer_window, all.nic.packetizer_window);
    EXPECT_EQ(none.nic.outgoing_fifo_depth, all.nic.outgoing_fifo_depth);
    EXPECT_EQ(none.nic.incoming_dma_window, all.nic.incoming_dma_window);
    EXPECT_EQ(none.profile_path, PRAWN_PROFILES "/pcie-gen3.toml");
}

TEST(config, the_example_names_every_key) {
    std::ifstream in(PRAWN_EXAMPLES "/two-nodes.toml");
    std::string line, section, all;
    while (std::getline(in, line)) {
        if (line.rfind('[', 0) == 0)
            section = line.substr(1, line.find(']') - 1) + ".";
        const std::size_t equals = line.find(" = ");
        if (line.rfind('#', 0) != 0 && equals != std::string::npos)
            all += "|" + section + line.substr(0, equals) + "|";
    }
    for (const std::string& key : config_keys())
        EXPECT_NE(all.find("|" + key + "|"), std::string::npos) << key;
}

// A recording says with these what ran, and a replay takes them.
TEST(config, effective_configuration_loads_again) {
    const sim_config c = load_config(
        PRAWN_EXAMPLES "/four-nodes.toml",
        {"checker=true", "host.dma_slots=17", "blocks.utlb.entries=128",
         "blocks.utlb.ways=2", "blocks.utlb.offset=false",
         "blocks.ipt.impl=twin", "blocks.twin_seed=9223372036854775807",
         "profile=shrimp-1996", "trace.csv=/x", "node.1.socket=/y"});
    const std::vector<std::string> items = effective_config(c);
    const std::set<std::string> all(items.begin(), items.end());
    EXPECT_TRUE(all.count("nodes=4"));
    EXPECT_TRUE(all.count("blocks.utlb.entries=128"));
    EXPECT_TRUE(all.count("blocks.ipt.impl=twin"));
    EXPECT_TRUE(all.count("blocks.opt.impl=tlm"));
    for (const std::string& key : config_keys()) {
        const bool left_out = key == "profile" || key.rfind("trace.", 0) == 0;
        EXPECT_EQ(std::count_if(items.begin(), items.end(),
                                [&](const std::string& item) {
                                    return item.rfind(key + "=", 0) == 0;
                                }),
                  left_out ? 0 : 1)
            << key;
    }
    const sim_config again = load_config("", items);
    EXPECT_EQ(effective_config(again), items);
    EXPECT_EQ(again.fabric.nodes, 4u);
    EXPECT_TRUE(again.checker);
    EXPECT_EQ(again.host.dma_slots, 17u);
    EXPECT_EQ(again.nic.twins, c.nic.twins);
    EXPECT_EQ(again.profile, sim_config().profile);
    EXPECT_EQ(again.nodes[1].socket, "");
}

TEST(config, every_example_loads) {
    unsigned count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(PRAWN_EXAMPLES)) {
        if (entry.path().extension() != ".toml")
            continue;
        EXPECT_NO_THROW(load_config(entry.path().string())) << entry.path();
        count++;
    }
    EXPECT_GE(count, 2u);
    const sim_config four = load_config(PRAWN_EXAMPLES "/four-nodes.toml");
    EXPECT_EQ(four.fabric.nodes, 4u);
    EXPECT_EQ(four.nodes.size(), 4u);
    EXPECT_EQ(four.fabric.topology, "switch");
}

TEST(config, changes_win_and_the_last_most) {
    const file f("nodes = 3\n[blocks.utlb]\nentries = 64\n");
    const sim_config c =
        load_config(f.path, {"blocks.utlb.entries=128", "nodes=4",
                             "blocks.utlb.entries=256", "blocks.ipt.impl=twin",
                             "blocks.opt.impl=\"twin\"", "node.2.socket=/x"});
    EXPECT_EQ(c.nic.utlb_log2_entries, 8u);
    EXPECT_EQ(c.fabric.nodes, 4u);
    EXPECT_EQ(c.fabric.topology, "switch");
    EXPECT_EQ(c.nic.twins, (std::set<std::string>{"ipt", "opt"}));
    EXPECT_EQ(c.nodes[2].socket, "/x");
    EXPECT_EQ(
        load_config(f.path, {"blocks.ipt.impl=twin", "blocks.ipt.impl=tlm"})
            .nic.twins.size(),
        0u);
}

TEST(config, node_tables_count) {
    const file f("[[node]]\nsocket = \"a\"\n[[node]]\n[[node]]\n");
    const sim_config c = load_config(f.path);
    EXPECT_EQ(c.fabric.nodes, 3u);
    EXPECT_EQ(c.nodes[0].socket, "a");
    EXPECT_EQ(c.nodes[1].socket, "");
    // Another number for one run needs no other file.
    EXPECT_EQ(load_config(f.path, {"nodes=1"}).nodes.size(), 1u);
    EXPECT_EQ(
        load_config(PRAWN_EXAMPLES "/two-nodes.toml", {"nodes=1"}).fabric.nodes,
        1u);
}

TEST(config, says_file_line_key_and_mend) {
    EXPECT_EQ(refusal_of("\n[blocks.utlb]\nentires = 4\n"),
              "FILE:3: blocks.utlb.entires: no such key; did you mean "
              "blocks.utlb.entries?");
    EXPECT_EQ(refusal_of("[nothing]\nx = 1\n"),
              "FILE:1: nothing: no such key; examples/two-nodes.toml names all "
              "that there are");
    EXPECT_EQ(refusal_of("nodes = 17\n"),
              "FILE:1: nodes: 17 is out of range; use 1 to 16");
    EXPECT_EQ(refusal_of("nodes = \"2\"\n"),
              "FILE:1: nodes: not a whole number; use 1 to 16");
    EXPECT_EQ(refusal_of("checker = 1\n"),
              "FILE:1: checker: not a truth value; use true or false");
    EXPECT_EQ(refusal_of("profile = 7\n"),
              "FILE:1: profile: not a text; write it in quotes");
    EXPECT_EQ(refusal_of("nodes = 3\nfabric.topology = \"link\"\n"),
              "FILE: fabric.topology: a link has two ends, 3 nodes were given; "
              "use \"switch\"");
    EXPECT_EQ(refusal_of("nodes = 1\n[[node]]\n[[node]]\n"),
              "FILE: node: 2 described, but nodes = 1; make them agree");
    EXPECT_EQ(refusal_of("[blocks.utlb]\nways = 3\n"),
              "FILE:2: blocks.utlb.ways: 3 is not a power of two; use one from "
              "1 to 8");
    EXPECT_EQ(refusal_of("node = 1\n"),
              "FILE:1: node: not a list of tables; write [[node]] for each "
              "node");
    EXPECT_EQ(refusal_of("[[node]]\nname = \"x\"\n"),
              "FILE:2: node.0.name: no such key; use node.<k>.socket");
    EXPECT_NE(refusal_of("nodes = = 2\n").find("FILE:1: "), std::string::npos);
    EXPECT_NE(refusal_of("profile = \"vax-11\"\n").find("vax-11.toml"),
              std::string::npos);
}

// Enough dots would overflow the stack of whoever takes the tables apart.
TEST(config, too_much_of_it_is_refused_unread) {
    std::string key = "a";
    while (key.size() < 100000)
        key += ".a";
    EXPECT_EQ(refusal_of(key + " = 1\n"),
              "FILE: is longer than 16384 bytes; see examples/two-nodes.toml "
              "for what one is");
    EXPECT_EQ(refusal_of("", {"nodes={" + key + "=1}"}),
              "--set: longer than 16384 bytes; use KEY=VALUE");
    // What is accepted is survived.
    key.resize(16376);
    key.back() = 'a';
    EXPECT_EQ(refusal_of(key + "=1\n"),
              "FILE:1: a: no such key; examples/two-nodes.toml names all that "
              "there are");
}

TEST(config, what_is_not_there_yet_is_refused_by_name) {
    EXPECT_EQ(refusal_of("time = \"replay\"\n"),
              "FILE:1: time: \"replay\" is not available in this "
              "version; use \"free-running\", \"synchronized\"");
    EXPECT_EQ(refusal_of("engine = \"firmware\"\n"),
              "FILE:1: engine: \"firmware\" is not available in this version; "
              "use \"hardwired\"");
    for (const char* impl : {"rtl", "firmware"})
        EXPECT_EQ(refusal_of("", {"blocks.utlb.impl=" + std::string(impl)}),
                  "--set: blocks.utlb.impl: \"" + std::string(impl) +
                      "\" is not available in this version; use \"tlm\", "
                      "\"twin\"");
}

TEST(config, changes_are_checked_too) {
    EXPECT_EQ(refusal_of("", {"nodes"}),
              "--set nodes: no value; use KEY=VALUE");
    EXPECT_EQ(refusal_of("", {"nodes=2\nprofile=\"x\""}),
              "--set nodes: says more than one thing; use KEY=VALUE once for "
              "each");
    EXPECT_EQ(refusal_of("", {"nodes=many"}),
              "--set: nodes: not a whole number; use 1 to 16");
    EXPECT_EQ(refusal_of("", {"node.99.socket=x"}),
              "--set: node.99.socket: no such node; use 0 to 15");
    EXPECT_EQ(refusal_of("", {"node.x.socket=x"}),
              "--set: node.x.socket: no such key; use node.<k>.socket");
    EXPECT_THROW(load_config("/no/such.toml"), config_error);
}

}  // namespace
}  // namespace prawn
