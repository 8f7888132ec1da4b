// SPDX-License-Identifier: Apache-2.0
// From a command in one host's memory to bytes in another's.
#include "model_bench.h"

namespace prawn {
namespace model {
namespace {

class path_test : public model_test
{
};

TEST_F(path_test, one_message) {
    channel c = make_channel(driver(0), 1, driver(1), 2, 7, 2);
    c.from->fill(c.source, c.length, 1);
    c.from->send(7, c.source + 100, 1000, 50, true, 0xabcd);
    const prawn_completion done = c.from->wait_completion();
    EXPECT_EQ(done.status, PRAWN_STATUS_OK);
    EXPECT_EQ(done.bytes, 1000u);
    EXPECT_GT(done.finished, done.accepted);
    const prawn_notification n = c.to->wait_notification();
    EXPECT_EQ(n.type, PRAWN_NOTIFICATION_TYPE_MESSAGE);
    EXPECT_EQ(n.cookie, 0xe007u);
    EXPECT_EQ(n.length, 1000u);
    EXPECT_EQ(n.offset, 50u);
    EXPECT_EQ(n.immediate, 0xabcdu);
    EXPECT_EQ(n.source_node, 0u);
    EXPECT_EQ(n.source_context, 1u);
    EXPECT_EQ(n.count, 1u);
    EXPECT_GT(n.delivered, done.accepted);
    EXPECT_EQ(c.to->read(c.target + 50, 1000),
              c.from->read(c.source + 100, 1000));
    const auto before = c.to->read(c.target, 50);
    EXPECT_EQ(before, std::vector<std::uint8_t>(50));
    const auto after = c.to->read(c.target + 1050, 100);
    EXPECT_EQ(after, std::vector<std::uint8_t>(100));
}

}  // namespace
}  // namespace model
}  // namespace prawn
