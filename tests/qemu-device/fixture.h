// SPDX-License-Identifier: Apache-2.0
//
// One server with two cards in a directory of its own. Every test ends with
// the check that no descriptor has been left open.

#ifndef PRAWN_TESTS_QEMU_DEVICE_FIXTURE_H
#define PRAWN_TESTS_QEMU_DEVICE_FIXTURE_H

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/qemu-device/client.h"
#include "tests/qemu-device/fake_device.h"

namespace prawn {
namespace vfio_user {

/// Descriptors that this process has open.
std::size_t open_descriptors();

/// A memfd of this size.
unique_fd make_memory(std::size_t size);

unique_fd make_eventfd();
/// Counter of an eventfd, read and cleared; waits a little for the first.
std::uint64_t take_events(const unique_fd& fd, int milliseconds = 2000);
/// Without waiting.
std::uint64_t events_now(const unique_fd& fd);

class vfio_user_test : public ::testing::Test
{
protected:
    static constexpr std::uint64_t MEMORY = 1u << 20;

    vfio_user_test();
    ~vfio_user_test() override;

    void SetUp() override;
    void TearDown() override;

    /// Before the server starts; the default does nothing.
    virtual void configure(server_options&) {}

    std::string path(std::size_t card) const;
    client connect(std::size_t card = 0);

    /// Log lines of warning level and above that contain the text.
    std::size_t warnings(const std::string& text = "");
    bool wait_until(const std::function<bool()>& condition);

    std::unique_ptr<server> m_server;
    std::unique_ptr<fake_device> m_device[2];

private:
    struct capture;

    std::string m_directory;
    std::size_t m_descriptors = 0;
    std::shared_ptr<capture> m_capture;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
