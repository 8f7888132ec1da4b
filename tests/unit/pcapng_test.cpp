// SPDX-License-Identifier: Apache-2.0
// pcapng_writer and the Wireshark dissector, seen through tshark.

#include "trace/pcapng_writer.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prawn_hw.h"
#include "support/crc32c.h"
#include "temp_file.h"

namespace prawn {
namespace {

using nlohmann::json;

struct packet {
    prawn_packet_header head = {};
    std::string payload;
};

packet data_packet(std::uint32_t message, std::uint16_t flags,
                   const std::string& payload) {
    packet p;
    p.head.version = PRAWN_PACKET_VERSION;
    p.head.type = PRAWN_PACKET_TYPE_DATA;
    p.head.flags = flags;
    p.head.source_node = 0;
    p.head.destination_node = 1;
    p.head.source_epoch = 4;
    p.head.destination_epoch = 9;
    p.head.sequence = 100;
    p.head.acknowledge = 77;
    p.head.source_context = 3;
    p.head.payload_length = static_cast<std::uint16_t>(payload.size());
    p.head.message = message;
    p.head.message_offset = 8192;
    p.head.key = 0x0123456789abcdef;
    p.head.offset = 0x1234567890;
    p.head.export_id = 11;
    p.head.import_id = 12;
    p.head.immediate = 0xcafe;
    p.payload = payload;
    return p;
}

template <typename T>
packet mgmt_packet(std::uint16_t from, std::uint16_t to, const T& message) {
    packet p;
    p.head.version = PRAWN_PACKET_VERSION;
    p.head.type = PRAWN_PACKET_TYPE_MGMT;
    p.head.flags = PRAWN_PACKET_FLAG_FIRST | PRAWN_PACKET_FLAG_LAST;
    p.head.source_node = from;
    p.head.destination_node = to;
    p.head.payload_length = sizeof(message);
    p.payload.assign(reinterpret_cast<const char*>(&message), sizeof(message));
    return p;
}

class pcapng : public testing::Test
{
protected:
    // Writes the packet in the three parts in which a model holds it.
    void write(const packet& p, std::uint64_t time_ps, std::uint16_t node,
               link_direction direction, std::uint32_t crc_error = 0) {
        std::uint32_t crc = crc32c(&p.head, sizeof(p.head));
        crc = crc32c(p.payload.data(), p.payload.size(), crc) ^ crc_error;
        const byte_span parts[] = {{&p.head, sizeof(p.head)},
                                   {p.payload.data(), p.payload.size()},
                                   {&crc, sizeof(crc)}};
        m_writer.on_packet({time_ps, node, direction, parts, 3});
    }

    // Everything tshark says about the file, an entry for each packet.
    json tshark(const std::string& extra = "") {
        m_writer.flush();
        const std::string command =
            "tshark -X lua_script:" PRAWN_DISSECTOR " -r " + m_file.path() +
            " -T json --no-duplicate-keys " + extra + " 2>" + m_errors.path();
        std::string text;
        std::FILE* pipe = ::popen(command.c_str(), "r");
        if (!pipe) {
            ADD_FAILURE() << command;
            return json::array();
        }
        std::array<char, 4096> part{};
        std::size_t n = 0;
        while ((n = std::fread(part.data(), 1, part.size(), pipe)) != 0)
            text.append(part.data(), n);
        m_status = ::pclose(pipe);
        json result = json::parse(text, nullptr, false);
        if (result.is_discarded()) {
            ADD_FAILURE() << command << "\n"
                          << text << m_errors.content()
                          << "\n(tshark is needed: ./prawn setup)";
            return json::array();
        }
        return result;
    }

    static const json& layer(const json& entry) {
        return entry.at("_source").at("layers").at("prawn");
    }
    static std::string frame(const json& entry, const char* field) {
        return entry.at("_source").at("layers").at("frame").at(field);
    }
    // The value of a field anywhere below the packet; "" if it is not there.
    static std::string find(const json& tree, const std::string& field) {
        if (!tree.is_object())
            return "";
        for (const auto& [key, value] : tree.items()) {
            if (key == field && value.is_string())
                return value;
            const std::string below = find(value, field);
            if (!below.empty())
                return below;
        }
        return "";
    }
    static bool has(const json& entry, const std::string& field) {
        return entry.dump().find('"' + field + '"') != std::string::npos;
    }

    temp_file m_file;
    temp_file m_errors;
    pcapng_writer m_writer{m_file.path(), "profile shrimp-1996"};
    int m_status = 0;
};

TEST_F(pcapng, every_field_of_a_data_packet) {
    write(data_packet(17, PRAWN_PACKET_FLAG_LAST | PRAWN_PACKET_FLAG_NOTIFY,
                      "hello"),
          2'000'000'123'456, 0, link_direction::TX);
    const json all = tshark();
    ASSERT_EQ(all.size(), 1u) << m_errors.content();
    EXPECT_EQ(m_status, 0);
    const json& p = layer(all[0]);
    const std::pair<const char*, const char*> wanted[] = {
        {"prawn.version", "1"},
        {"prawn.type", "1"},
        {"prawn.flags", "0x0006"},
        {"prawn.source_node", "0"},
        {"prawn.destination_node", "1"},
        {"prawn.source_epoch", "4"},
        {"prawn.destination_epoch", "9"},
        {"prawn.sequence", "100"},
        {"prawn.acknowledge", "77"},
        {"prawn.source_context", "3"},
        {"prawn.payload_length", "5"},
        {"prawn.message", "17"},
        {"prawn.message_offset", "8192"},
        {"prawn.key", "0x0123456789abcdef"},
        {"prawn.offset", "78187493520"},
        {"prawn.export_id", "11"},
        {"prawn.import_id", "12"},
        {"prawn.immediate", "51966"},
        {"prawn.status", "0"},
        {"prawn.rsvd", "0"},
        {"prawn.payload", "68:65:6c:6c:6f"},
        {"prawn.crc.status", "good"},
        {"prawn.message_id", "0:3:17"},
    };
    for (const auto& [field, value] : wanted)
        EXPECT_EQ(find(p, field), value) << field;
    EXPECT_EQ(find(p, "prawn.flags.first"), "0");
    EXPECT_EQ(find(p, "prawn.flags.last"), "1");
    EXPECT_EQ(find(p, "prawn.flags.notify"), "1");
    EXPECT_FALSE(has(all[0], "_ws.expert")) << p.dump(1);
    EXPECT_EQ(frame(all[0], "frame.time_epoch"), "2.000000123");
    EXPECT_EQ(frame(all[0], "frame.len"), "73");
    EXPECT_EQ(frame(all[0], "frame.protocols"), "prawn");
}

TEST_F(pcapng, interfaces_name_node_and_direction) {
    const packet p = data_packet(1, 0, "x");
    write(p, 1000, 0, link_direction::TX);
    write(p, 2000, 1, link_direction::RX);
    write(p, 3000, 0, link_direction::TX);
    write(p, 4000, 15, link_direction::TX);
    const json all = tshark();
    ASSERT_EQ(all.size(), 4u);
    const char* const names[] = {"node0-tx", "node1-rx", "node0-tx",
                                 "node15-tx"};
    for (std::size_t i = 0; i < 4; i++)
        EXPECT_EQ(find(all[i], "frame.interface_name"), names[i]);
    EXPECT_EQ(find(all[0], "frame.packet_flags_direction"), "0x00000002");
    EXPECT_EQ(find(all[1], "frame.packet_flags_direction"), "0x00000001");
    EXPECT_EQ(tshark("-Y 'frame.interface_name == \"node1-rx\"'").size(), 1u);
}

TEST_F(pcapng, bad_crc_is_found) {
    write(data_packet(1, 0, "good"), 1000, 0, link_direction::TX);
    write(data_packet(2, 0, "bad!"), 2000, 0, link_direction::TX, 0x10);
    const json all = tshark();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(find(all[0], "prawn.crc.status"), "good");
    EXPECT_EQ(find(all[1], "prawn.crc.status"), "bad");
    EXPECT_FALSE(has(all[0], "prawn.expert.crc"));
    EXPECT_TRUE(has(all[1], "prawn.expert.crc"));
    const json filtered = tshark("-Y prawn.expert.crc");
    ASSERT_EQ(filtered.size(), 1u);
    EXPECT_EQ(find(filtered[0], "prawn.message"), "2");
}

TEST_F(pcapng, crc_of_the_largest_packet) {
    std::string payload(PRAWN_MAX_PAYLOAD, '\0');
    for (std::size_t i = 0; i < payload.size(); i++)
        payload[i] = static_cast<char>(i * 31);
    write(data_packet(1, 0, payload), 1000, 0, link_direction::TX);
    const json all = tshark();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(find(all[0], "prawn.crc.status"), "good");
    EXPECT_FALSE(has(all[0], "_ws.expert"));
}

TEST_F(pcapng, truncated_packets_are_said_to_be) {
    const packet p = data_packet(1, 0, "hello");
    for (std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{67}}) {
        std::string bytes(reinterpret_cast<const char*>(&p.head),
                          sizeof(p.head));
        bytes.resize(size, '\7');
        const byte_span part{bytes.data(), bytes.size()};
        m_writer.on_packet({1000, 0, link_direction::RX, &part, 1});
    }
    // Long enough for a header, but not for the payload it promises.
    const std::uint32_t crc = 0;
    const byte_span parts[] = {{&p.head, sizeof(p.head)}, {&crc, 4}};
    m_writer.on_packet({2000, 0, link_direction::RX, parts, 2});
    const json all = tshark();
    ASSERT_EQ(all.size(), 5u);
    for (std::size_t i = 1; i < 4; i++) {
        EXPECT_TRUE(has(all[i], "prawn.expert.truncated")) << i;
        EXPECT_FALSE(has(all[i], "prawn.version")) << i;
    }
    EXPECT_TRUE(has(all[4], "prawn.expert.length"));
    EXPECT_TRUE(has(all[4], "prawn.expert.crc"));
}

TEST_F(pcapng, nonsense_in_the_header_is_pointed_out) {
    packet p = data_packet(1, 0x8001, "x");
    p.head.version = 2;
    p.head.type = 99;
    p.head.rsvd = 7;
    write(p, 1000, 0, link_direction::TX);
    const json all = tshark();
    ASSERT_EQ(all.size(), 1u);
    for (const char* what : {"version", "type", "reserved"})
        EXPECT_TRUE(has(all[0], std::string("prawn.expert.") + what)) << what;
    EXPECT_FALSE(has(all[0], "prawn.expert.crc"));
}

TEST_F(pcapng, a_message_is_followed_from_first_to_last_and_to_its_refusal) {
    write(data_packet(5, PRAWN_PACKET_FLAG_FIRST, "a"), 1000, 0,
          link_direction::TX);
    write(data_packet(6, PRAWN_PACKET_FLAG_FIRST | PRAWN_PACKET_FLAG_LAST, "z"),
          2000, 0, link_direction::TX);
    write(data_packet(5, 0, "b"), 3000, 0, link_direction::TX);
    write(data_packet(5, PRAWN_PACKET_FLAG_LAST, "c"), 4000, 0,
          link_direction::TX);
    packet nack = data_packet(5, 0, "");
    nack.head.type = PRAWN_PACKET_TYPE_NACK;
    nack.head.source_node = 1;
    nack.head.destination_node = 0;
    nack.head.status = PRAWN_STATUS_BAD_KEY;
    write(nack, 5000, 1, link_direction::TX);

    // -2: as in the window, where all packets are known when one is shown.
    const json one = tshark("-2 -Y 'prawn.message_id == \"0:3:5\"'");
    ASSERT_EQ(one.size(), 4u);
    EXPECT_EQ(find(one[0], "prawn.message_last"), "4");
    EXPECT_EQ(find(one[0], "prawn.message_first"), "");
    EXPECT_EQ(find(one[0], "prawn.refused_in"), "5");
    EXPECT_EQ(find(one[1], "prawn.message_first"), "1");
    EXPECT_EQ(find(one[1], "prawn.message_last"), "4");
    EXPECT_EQ(find(one[3], "prawn.type"), "3");
    EXPECT_EQ(find(one[3], "prawn.status"), "33");
    EXPECT_TRUE(has(one[3], "prawn.expert.nack"));
}

TEST_F(pcapng, management_messages_are_decoded_and_matched) {
    prawn_mgmt_import_request request = {};
    request.header.type = PRAWN_MGMT_TYPE_IMPORT_REQUEST;
    request.header.version = 1;
    request.header.transaction = 42;
    request.header.import_id = 8;
    request.uid = 1000;
    request.gid = 100;
    std::strcpy(reinterpret_cast<char*>(request.name), "ring-of-alice");
    prawn_mgmt_import_reply reply = {};
    reply.header.type = PRAWN_MGMT_TYPE_IMPORT_REPLY;
    reply.header.version = 1;
    reply.header.status = 13;
    reply.header.transaction = 42;
    reply.header.export_id = 3;
    reply.key = 0xfeed;
    reply.length = 65536;
    prawn_mgmt_header ping = {};
    ping.type = PRAWN_MGMT_TYPE_PING;
    ping.version = 1;
    ping.transaction = 42;

    write(mgmt_packet(0, 1, request), 1'000'000, 0, link_direction::TX);
    write(mgmt_packet(0, 1, request), 2'000'000, 1, link_direction::RX);
    write(mgmt_packet(0, 1, ping), 3'000'000, 0, link_direction::TX);
    write(mgmt_packet(1, 0, reply), 5'000'000, 1, link_direction::TX);
    packet cut = mgmt_packet(1, 0, ping);
    cut.payload.resize(10);
    cut.head.payload_length = 10;
    write(cut, 6'000'000, 1, link_direction::TX);

    const json all = tshark("-2");
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(find(all[0], "prawn.mgmt.type"), "1");
    EXPECT_EQ(find(all[0], "prawn.mgmt.transaction"), "42");
    EXPECT_EQ(find(all[0], "prawn.mgmt.import_id"), "8");
    EXPECT_EQ(find(all[0], "prawn.mgmt.import_request.uid"), "1000");
    EXPECT_EQ(find(all[0], "prawn.mgmt.import_request.gid"), "100");
    EXPECT_EQ(find(all[0], "prawn.mgmt.import_request.name"), "ring-of-alice");
    EXPECT_EQ(find(all[0], "prawn.mgmt.response_in"), "4");
    EXPECT_EQ(find(all[3], "prawn.mgmt.type"), "2");
    EXPECT_EQ(find(all[3], "prawn.mgmt.status"), "13");
    EXPECT_EQ(find(all[3], "prawn.mgmt.import_reply.key"),
              "0x000000000000feed");
    EXPECT_EQ(find(all[3], "prawn.mgmt.import_reply.length"), "65536");
    EXPECT_EQ(find(all[3], "prawn.mgmt.request_in"), "1");
    EXPECT_EQ(find(all[3], "prawn.mgmt.response_time"), "4000");
    EXPECT_EQ(find(all[2], "prawn.mgmt.response_in"), "");
    EXPECT_TRUE(has(all[4], "prawn.expert.truncated"));
    for (std::size_t i = 0; i < 4; i++)
        EXPECT_FALSE(has(all[i], "_ws.expert")) << i;
}

// Every filter that docs/observation.md recommends is one that tshark knows.
TEST_F(pcapng, documented_filters_work) {
    write(data_packet(17, 0, "x"), 1000, 0, link_direction::TX);
    std::ifstream doc(PRAWN_OBSERVATION_PAGE);
    std::string line;
    int count = 0;
    int shown = 0;
    while (std::getline(doc, line)) {
        if (line.compare(0, 9, "| `prawn.") != 0)
            continue;
        const std::string filter = line.substr(3, line.find('`', 3) - 3);
        shown += static_cast<int>(tshark("-Y '" + filter + "'").size());
        EXPECT_EQ(m_status, 0) << filter << "\n" << m_errors.content();
        count++;
    }
    EXPECT_GE(count, 5);
    EXPECT_EQ(shown, 1);  // the one that follows message 0:3:17
}

TEST_F(pcapng, file_carries_who_wrote_it_and_how) {
    const std::string bytes = m_file.content();
    EXPECT_NE(bytes.find("prawn"), std::string::npos);
    EXPECT_NE(bytes.find("profile shrimp-1996"), std::string::npos);
    EXPECT_EQ(bytes.size() % 4, 0u);
}

TEST_F(pcapng, a_killed_run_leaves_whole_packets) {
    for (std::uint32_t i = 0; i < 3000; i++)
        write(data_packet(i, 0, "some bytes"), i * 1000, 0, link_direction::TX);
    // No flush, no destructor: what the file has now is what a kill leaves.
    const std::string now = m_file.content();
    const temp_file copy;
    copy.replace(now);
    const std::string command = "tshark -r " + copy.path() +
                                " -T fields -e frame.number 2>&1 | tail -1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[256] = {};
    const char* got = std::fgets(line, sizeof(line), pipe);
    ::pclose(pipe);
    ASSERT_NE(got, nullptr);
    EXPECT_GT(std::atoi(line), 2000) << line;
}

}  // namespace
}  // namespace prawn
