// SPDX-License-Identifier: Apache-2.0

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;
using nlohmann::json;

class version_test : public vfio_user_test
{
protected:
    static bytes request(const std::string& text, std::uint16_t major = 0,
                         std::uint16_t minor = 0) {
        bytes b;
        b.reserve(sizeof(version) + text.size() + 1);
        for (const std::uint8_t byte : to_bytes(version{major, minor}))
            b.push_back(byte);
        b.insert(b.end(), text.begin(), text.end());
        b.push_back(0);
        return b;
    }

    static json capabilities_of(const client_message& m) {
        EXPECT_GT(m.payload.size(), sizeof(version));
        EXPECT_EQ(m.payload.back(), 0);
        return json::parse(m.payload.begin() + sizeof(version),
                           m.payload.end() - 1)["capabilities"];
    }
};

TEST_F(version_test, answers_what_qemu_proposes) {
    client c(path(0));
    const bytes proposed = request(client::DEFAULT_CAPABILITIES);
    const client_message m = c.transact(VERSION, proposed);
    ASSERT_EQ(m.error(), 0);
    EXPECT_LE(m.payload.size(), proposed.size());
    const json agreed = capabilities_of(m);
    EXPECT_EQ(agreed["max_msg_fds"], 16);
    EXPECT_EQ(agreed["max_data_xfer_size"], 1048576);
    EXPECT_EQ(agreed["pgsizes"], 4096);
    EXPECT_EQ(agreed["max_dma_maps"], 4096);
    EXPECT_EQ(agreed["write_multiple"], true);
    EXPECT_FALSE(agreed.contains("migration"));
    EXPECT_FALSE(agreed.contains("twin_socket"));
    EXPECT_TRUE(m_server->is_connected(0));
    EXPECT_FALSE(m_server->is_connected(1));
}

TEST_F(version_test, agrees_on_the_smaller_and_on_a_subset) {
    client c(path(0));
    const client_message m = c.transact(
        VERSION, request(R"({"capabilities":{"max_data_xfer_size":4096,)"
                         R"("max_dma_maps":7,"unheard_of":[1,{"a":2}]}})"));
    ASSERT_EQ(m.error(), 0);
    const json agreed = capabilities_of(m);
    EXPECT_EQ(agreed["max_data_xfer_size"], 4096);
    EXPECT_EQ(agreed["max_dma_maps"], 7);
    EXPECT_EQ(agreed.size(), 2u);
}

TEST_F(version_test, refuses_the_twin_socket) {
    client c(path(0));
    const client_message m = c.transact(
        VERSION,
        request(R"({"capabilities":{"twin_socket": {"supported": true}}})"));
    ASSERT_EQ(m.error(), 0);
    EXPECT_EQ(capabilities_of(m)["twin_socket"]["supported"], false);
}

TEST_F(version_test, reply_is_never_longer_than_the_request) {
    for (const char* text :
         {R"({"capabilities":{"max_dma_maps":9,"pgsizes":4096}})",
          R"({"capabilities":{"twin_socket":{}}})",
          R"({"capabilities":{"write_multiple":true}})",
          R"({"capabilities":{}})", "{}"}) {
        client c(path(0));
        const bytes proposed = request(text);
        const client_message m = c.transact(VERSION, proposed);
        ASSERT_EQ(m.error(), 0) << text;
        EXPECT_LE(m.payload.size(), proposed.size()) << text;
        EXPECT_EQ(m.payload.back(), 0) << text;
        c.close();
        ASSERT_TRUE(wait_until([&] { return !m_server->is_connected(0); }));
    }
}

TEST_F(version_test, works_without_version_data) {
    client c(path(0));
    const client_message m = c.transact(VERSION, to_bytes(version{0, 0}));
    ASSERT_EQ(m.error(), 0);
    EXPECT_EQ(m.payload.size(), sizeof(version));
    EXPECT_EQ(c.device_info().num_regions, REGION_COUNT);
}

TEST_F(version_test, answers_a_higher_minor_with_its_own) {
    client c(path(0));
    const client_message m =
        c.transact(VERSION, request(client::DEFAULT_CAPABILITIES, 0, 9));
    ASSERT_EQ(m.error(), 0);
    EXPECT_EQ(m.as<version>().minor, VERSION_MINOR);
}

TEST_F(version_test, refuses_another_major_and_lets_the_client_retry) {
    client c(path(0));
    EXPECT_EQ(c.transact(VERSION, request("{}", 1)).error(), EINVAL);
    EXPECT_FALSE(m_server->is_connected(0));
    EXPECT_EQ(c.negotiate().error(), 0);
}

TEST_F(version_test, refuses_malformed_data) {
    const std::string deep(3000, '[');
    const std::vector<bytes> bad = {
        {},
        {0, 0, 0},
        request("not json"),
        request("[]"),
        request("17"),
        request(deep),
        request(R"({"capabilities":3})"),
        request(R"({"capabilities":{"max_msg_fds":"many"}})"),
        request(R"({"capabilities":{"max_msg_fds":-1}})"),
        request(R"({"capabilities":{"max_data_xfer_size":0}})"),
        request(R"({"capabilities":{"max_dma_maps":1.5}})"),
        request(R"({"capabilities":{"pgsizes":8192}})"),
        request(R"({"capabilities":{"write_multiple":1}})"),
        request(R"({"capabilities":{"twin_socket":true}})"),
        request(std::string(8000, ' ') + "{}"),
        request(std::string("{}\0{}", 5)),
        request("\xff\xfe{}"),
    };
    client c(path(0));
    for (std::size_t i = 0; i < bad.size(); i++)
        EXPECT_EQ(c.transact(VERSION, bad[i]).error(), EINVAL) << i;

    bytes unterminated = request("{}");
    unterminated.back() = '}';
    EXPECT_EQ(c.transact(VERSION, unterminated).error(), EINVAL);
    EXPECT_EQ(c.negotiate().error(), 0);
}

TEST_F(version_test, wants_it_first_and_once) {
    client c(path(0));
    device_info info{};
    info.argsz = sizeof(info);
    EXPECT_EQ(c.transact(DEVICE_GET_INFO, to_bytes(info)).error(), EINVAL);
    EXPECT_EQ(c.reset(), EINVAL);
    EXPECT_TRUE(m_device[0]->log().empty());
    EXPECT_EQ(c.negotiate().error(), 0);
    EXPECT_EQ(c.negotiate().error(), EINVAL);
    EXPECT_EQ(c.transact(DEVICE_GET_INFO, to_bytes(info)).error(), 0);
    EXPECT_EQ(m_device[0]->log(), std::vector<std::string>{"connected"});
}

}  // namespace vfio_user
}  // namespace prawn
