// SPDX-License-Identifier: Apache-2.0

#include "tests/qemu-device/fixture.h"

#include <dirent.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace prawn {
namespace vfio_user {

std::size_t open_descriptors() {
    DIR* const dir = ::opendir("/proc/self/fd");
    if (dir == nullptr)
        return 0;
    std::size_t n = 0;
    while (::readdir(dir) != nullptr)
        n++;
    ::closedir(dir);
    return n;
}

unique_fd make_memory(std::size_t size) {
    unique_fd fd(::memfd_create("guest", MFD_CLOEXEC));
    EXPECT_TRUE(fd);
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
}

unique_fd make_eventfd() {
    unique_fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    EXPECT_TRUE(fd);
    return fd;
}

std::uint64_t events_now(const unique_fd& fd) {
    std::uint64_t n = 0;
    return ::read(fd.get(), &n, sizeof(n)) == sizeof(n) ? n : 0;
}

std::uint64_t take_events(const unique_fd& fd, int milliseconds) {
    pollfd p{fd.get(), POLLIN, 0};
    ::poll(&p, 1, milliseconds);
    return events_now(fd);
}

struct vfio_user_test::capture : spdlog::sinks::base_sink<std::mutex> {
    std::vector<std::string> warnings;
    std::mutex lock;

    void sink_it_(const spdlog::details::log_msg& msg) override {
        if (msg.level < spdlog::level::warn)
            return;
        const std::lock_guard<std::mutex> hold(lock);
        warnings.emplace_back(msg.payload.data(), msg.payload.size());
    }
    void flush_() override {}
};

vfio_user_test::vfio_user_test() = default;
vfio_user_test::~vfio_user_test() = default;

void vfio_user_test::SetUp() {
    const char* const base = std::getenv("TMPDIR");
    std::string name =
        std::string(base != nullptr ? base : "/tmp") + "/prawn-vfu-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    m_directory = name;
    m_capture = std::make_shared<capture>();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", m_capture));
    m_descriptors = open_descriptors();

    server_options options;
    configure(options);
    m_server = std::make_unique<server>(options);
    for (std::size_t i = 0; i < 2; i++) {
        m_device[i] = std::make_unique<fake_device>();
        m_device[i]->bind(*m_server,
                          m_server->add_endpoint(path(i), *m_device[i]));
    }
    m_server->start();
}

void vfio_user_test::TearDown() {
    m_server->stop();
    for (auto& device : m_device) {
        if (device)
            device->stop();
    }
    m_server.reset();
    EXPECT_EQ(open_descriptors(), m_descriptors) << "descriptors leaked";
    EXPECT_TRUE(std::filesystem::is_empty(m_directory)) << "socket left over";
    std::filesystem::remove_all(m_directory);
}

std::string vfio_user_test::path(std::size_t card) const {
    return m_directory + "/card" + std::to_string(card);
}

client vfio_user_test::connect(std::size_t card) {
    client c(path(card));
    const client_message m = c.negotiate();
    EXPECT_EQ(m.error(), 0);
    return c;
}

std::size_t vfio_user_test::warnings(const std::string& text) {
    const std::lock_guard<std::mutex> hold(m_capture->lock);
    std::size_t n = 0;
    for (const std::string& line : m_capture->warnings)
        n += line.find(text) != std::string::npos ? 1 : 0;
    return n;
}

bool vfio_user_test::wait_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; i++) {
        if (condition())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

}  // namespace vfio_user
}  // namespace prawn
