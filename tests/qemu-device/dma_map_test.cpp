// SPDX-License-Identifier: Apache-2.0
//
// Guest memory that comes and goes.

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

class dma_map_test : public vfio_user_test
{
protected:
    void configure(server_options& options) override {
        options.max_dma_maps = 16;
    }

    // Mappings of the memfds of make_memory() in this process.
    static std::size_t mappings() {
        std::ifstream maps("/proc/self/maps");
        std::string line;
        std::size_t n = 0;
        while (std::getline(maps, line))
            n += line.find("/memfd:guest") != std::string::npos ? 1 : 0;
        return n;
    }

    dma_status read(std::uint64_t iova, void* data, std::size_t size) {
        dma_status status{};
        m_device[0]->run(
            [&](guest_memory& m) { status = m.read(iova, data, size); });
        return status;
    }
};

TEST_F(dma_map_test, mapped_memory_is_shared) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0x40000000, MEMORY / 2, fd.get(), MEMORY / 2), 0);
    auto* const p = static_cast<char*>(::mmap(
        nullptr, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    ASSERT_NE(p, MAP_FAILED);
    std::strcpy(p + MEMORY / 2 + 0x123, "from the guest");
    char text[32] = {};
    EXPECT_EQ(read(0x40000123, text, 15), dma_status::OK);
    EXPECT_STREQ(text, "from the guest");
    m_device[0]->run([&](guest_memory& m) {
        EXPECT_EQ(m.write(0x40000200, "from the card", 14), dma_status::OK);
    });
    EXPECT_STREQ(p + MEMORY / 2 + 0x200, "from the card");
    ::munmap(p, MEMORY);
    EXPECT_EQ(mappings(), 1u);
    ASSERT_EQ(c.dma_unmap(0x40000000, MEMORY / 2), 0);
    EXPECT_EQ(mappings(), 0u) << "unmapped before the reply";
    EXPECT_EQ(read(0x40000123, text, 15), dma_status::UNMAPPED);
}

TEST_F(dma_map_test, without_descriptor_only_messages_go) {
    client c = connect();
    ASSERT_EQ(c.dma_map(0xfe000000, 0x1000), 0);
    char b;
    EXPECT_EQ(read(0xfe000000, &b, 1), dma_status::MESSAGE_ONLY);
    EXPECT_EQ(c.dma_unmap(0xfe000000, 0x1000), 0);
    EXPECT_EQ(read(0xfe000000, &b, 1), dma_status::UNMAPPED);
}

TEST_F(dma_map_test, permissions) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0, 4096, fd.get(), 0, DMA_FLAG_READ), 0);
    ASSERT_EQ(c.dma_map(4096, 4096, fd.get(), 4096, DMA_FLAG_WRITE), 0);
    m_device[0]->run([](guest_memory& m) {
        char b = 0;
        EXPECT_EQ(m.read(0, &b, 1), dma_status::OK);
        EXPECT_EQ(m.write(0, &b, 1), dma_status::DENIED);
        EXPECT_EQ(m.read(4096, &b, 1), dma_status::DENIED);
        EXPECT_EQ(m.write(4096, &b, 1), dma_status::OK);
        char both[2];
        EXPECT_EQ(m.read(4095, both, 2), dma_status::DENIED);
    });
}

TEST_F(dma_map_test, wrong_arguments) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    const int n = fd.get();
    const std::uint64_t end = ~std::uint64_t{0};
    EXPECT_EQ(c.dma_map(0, 0, n), EINVAL);
    EXPECT_EQ(c.dma_map(0, 100, n), EINVAL);
    EXPECT_EQ(c.dma_map(100, 4096, n), EINVAL);
    EXPECT_EQ(c.dma_map(0, 4096, n, 100), EINVAL);
    EXPECT_EQ(c.dma_map(end - 4095, 8192, n), EINVAL) << "wraps";
    EXPECT_EQ(c.dma_map(4096, end - 4095, -1), 0) << "ends at the very end";
    EXPECT_EQ(c.dma_unmap(4096, end - 4095), 0);
    EXPECT_EQ(c.dma_map(0, 4096, n, 0, 0), EINVAL) << "no permission";
    EXPECT_EQ(c.dma_map(0, 4096, n, 0, 0x13), EINVAL) << "unknown flag";
    EXPECT_EQ(c.dma_map(0, 4096, -1, 0, DMA_FLAG_READ | DMA_FLAG_MMAP), EINVAL);
    EXPECT_EQ(c.dma_map(0, 4096, -1, 0, DMA_FLAG_READ | DMA_FLAG_FILE_IO),
              EINVAL);
    EXPECT_EQ(c.dma_map(0, 4096, n, 0, DMA_FLAG_READ | DMA_FLAG_MMAP), 0);
    EXPECT_EQ(c.dma_unmap(0, 4096), 0);
    const protocol::dma_map tiny{31, 3, 0, 0, 4096};
    EXPECT_EQ(c.transact(DMA_MAP, to_bytes(tiny), {n}).error(), EINVAL);
    for (std::size_t size : {0u, 31u, 33u})
        EXPECT_EQ(c.transact(DMA_MAP, bytes(size, 32), {n}).error(), EINVAL);
    EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
    EXPECT_EQ(mappings(), 0u);
}

TEST_F(dma_map_test, longer_than_the_file) {
    client c = connect();
    const unique_fd fd = make_memory(8192);
    EXPECT_EQ(c.dma_map(0, 12288, fd.get()), EINVAL);
    EXPECT_EQ(c.dma_map(0, 4096, fd.get(), 8192), EINVAL);
    EXPECT_EQ(c.dma_map(0, 8192, fd.get(), 4096), EINVAL);
    EXPECT_EQ(c.dma_map(0, 4096, fd.get(), std::uint64_t{1} << 63), EINVAL);
    EXPECT_EQ(c.dma_map(0, std::uint64_t{1} << 39, fd.get()), EINVAL);
    EXPECT_EQ(c.dma_map(0, std::uint64_t{1} << 62, fd.get()), ENOSPC)
        << "longer than all that one client may map";
    EXPECT_EQ(c.dma_map(0, 8192, fd.get()), 0);
}

TEST_F(dma_map_test, descriptors_that_are_no_memory) {
    client c = connect();
    const unique_fd event = make_eventfd();
    EXPECT_EQ(c.dma_map(0, 4096, event.get()), EINVAL);
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    EXPECT_EQ(c.dma_map(0, 4096, pipes[0]), EINVAL);
    ::close(pipes[0]);
    ::close(pipes[1]);
    EXPECT_EQ(c.dma_map(0, 4096, c.socket()), EINVAL);
    const unique_fd directory(::open("/", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(c.dma_map(0, 4096, directory.get()), EINVAL);
    const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(c.dma_map(0, 4096, null.get()), ENODEV);
    const unique_fd executable(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(c.dma_map(0, 4096, executable.get()), EACCES)
        << "cannot be written";
    EXPECT_EQ(c.dma_map(0, 4096, executable.get(), 0, DMA_FLAG_READ), 0);
}

TEST_F(dma_map_test, overlap_is_refused) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0x10000, 0x4000, fd.get()), 0);
    EXPECT_EQ(c.dma_map(0x10000, 0x4000, fd.get()), EEXIST);
    EXPECT_EQ(c.dma_map(0xf000, 0x2000, fd.get()), EEXIST);
    EXPECT_EQ(c.dma_map(0x13000, 0x2000, fd.get()), EEXIST);
    EXPECT_EQ(c.dma_map(0x11000, 0x1000, fd.get()), EEXIST);
    EXPECT_EQ(c.dma_map(0, 0x100000, fd.get()), EEXIST);
    EXPECT_EQ(c.dma_map(0xf000, 0x1000, fd.get()), 0);
    EXPECT_EQ(c.dma_map(0x14000, 0x1000, fd.get()), 0);
}

TEST_F(dma_map_test, unmap_must_match_exactly) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0x10000, 0x4000, fd.get()), 0);
    EXPECT_EQ(c.dma_unmap(0x10000, 0x2000), ENOENT);
    EXPECT_EQ(c.dma_unmap(0x10000, 0x8000), ENOENT);
    EXPECT_EQ(c.dma_unmap(0x11000, 0x1000), ENOENT);
    EXPECT_EQ(c.dma_unmap(0, 0x4000), ENOENT);
    EXPECT_EQ(c.dma_unmap(0x10000, 0x4000, 4), EINVAL);
    EXPECT_EQ(c.dma_unmap(0x10000, 0x4000, 1), ENOTSUP) << "dirty bitmap";
    EXPECT_EQ(c.dma_unmap(0x10000, 0x4000, 2), EINVAL);
    const protocol::dma_unmap tiny{23, 0, 0x10000, 0x4000};
    EXPECT_EQ(c.transact(DMA_UNMAP, to_bytes(tiny)).error(), EINVAL);
    const protocol::dma_unmap good{24, 0, 0x10000, 0x4000};
    const client_message m = c.transact(DMA_UNMAP, to_bytes(good));
    EXPECT_EQ(m.error(), 0);
    EXPECT_EQ(m.as<protocol::dma_unmap>().address, 0x10000u);
    EXPECT_EQ(m.as<protocol::dma_unmap>().size, 0x4000u);
    EXPECT_EQ(c.dma_unmap(0x10000, 0x4000), ENOENT);
}

TEST_F(dma_map_test, unmap_of_everything) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    for (std::uint64_t i = 0; i < 16; i++)
        ASSERT_EQ(c.dma_map(0x10000 * i, 0x1000, fd.get()), 0);
    EXPECT_EQ(c.dma_map(0x200000, 0x1000, fd.get()), ENOSPC);
    EXPECT_EQ(mappings(), 16u);
    EXPECT_EQ(c.dma_unmap(0, 0, DMA_UNMAP_FLAG_ALL), 0);
    EXPECT_EQ(mappings(), 0u);
    EXPECT_EQ(m_device[0]->waiting_regions(), 0u);
    EXPECT_EQ(c.dma_unmap(0, 0, DMA_UNMAP_FLAG_ALL), 0) << "nothing is fine";
    EXPECT_EQ(c.dma_map(0, 0x1000, fd.get()), 0);
}

class dma_bytes_test : public dma_map_test
{
protected:
    void configure(server_options& options) override {
        options.max_dma_bytes = 2 * MEMORY;
    }
};

// All cards share the address space of this process.
TEST_F(dma_bytes_test, one_client_gets_its_share_of_address_space) {
    client c = connect();
    const unique_fd fd = make_memory(4 * MEMORY);
    EXPECT_EQ(c.dma_map(0, 3 * MEMORY, fd.get()), ENOSPC);
    EXPECT_EQ(c.dma_map(0, MEMORY, fd.get()), 0);
    EXPECT_EQ(c.dma_map(MEMORY, MEMORY, fd.get()), 0);
    EXPECT_EQ(c.dma_map(2 * MEMORY, 4096, fd.get()), ENOSPC);
    EXPECT_EQ(c.dma_map(2 * MEMORY, 1024 * MEMORY), 0) << "takes none";
    m_device[0]->hold(true);
    const protocol::dma_unmap unmap{24, 0, 0, MEMORY};
    c.send(DMA_UNMAP, to_bytes(unmap));
    EXPECT_EQ(c.dma_map(0, MEMORY, fd.get()), ENOSPC) << "still mapped here";
    m_device[0]->hold(false);
    EXPECT_EQ(c.receive()->error(), 0);
    EXPECT_EQ(c.dma_map(0, MEMORY, fd.get()), 0);
    EXPECT_EQ(connect(1).dma_map(0, 2 * MEMORY, fd.get()), 0);
}

TEST_F(dma_map_test, unmap_waits_for_the_device) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0, MEMORY, fd.get()), 0);
    m_device[0]->run([](guest_memory&) {});
    m_device[0]->hold(true);
    const protocol::dma_unmap unmap{24, 0, 0, MEMORY};
    c.send(DMA_UNMAP, to_bytes(unmap));
    EXPECT_TRUE(c.is_silent(50));
    EXPECT_EQ(mappings(), 1u);
    // QEMU maps the same addresses again without waiting.
    const protocol::dma_map map{32, 3, 0, 0, MEMORY / 2};
    c.send(DMA_MAP, to_bytes(map), 0, {fd.get()});
    const auto mapped = c.receive();
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped->header.command, DMA_MAP);
    EXPECT_EQ(mapped->error(), 0);
    m_device[0]->hold(false);
    const auto unmapped = c.receive();
    ASSERT_TRUE(unmapped);
    EXPECT_EQ(unmapped->header.command, DMA_UNMAP);
    EXPECT_EQ(unmapped->error(), 0);
    EXPECT_EQ(mappings(), 1u);
    m_device[0]->run([](guest_memory& m) {
        char b;
        EXPECT_EQ(m.read(MEMORY / 2 - 1, &b, 1), dma_status::OK);
        EXPECT_EQ(m.read(MEMORY / 2, &b, 1), dma_status::UNMAPPED);
    });
    for (const std::string& line : m_device[0]->log())
        EXPECT_NE(line, "overlapping region");
}

TEST_F(dma_map_test, a_file_that_shrinks_fails_the_access_only) {
    client c = connect();
    const unique_fd fd = make_memory(MEMORY);
    ASSERT_EQ(c.dma_map(0, MEMORY, fd.get()), 0);
    bytes buffer(MEMORY, 0x77);
    m_device[0]->run([&](guest_memory& m) {
        EXPECT_EQ(m.write(0, buffer.data(), MEMORY), dma_status::OK);
    });
    ASSERT_EQ(::ftruncate(fd.get(), 8192), 0);
    m_device[0]->run([&](guest_memory& m) {
        EXPECT_EQ(m.read(0, buffer.data(), MEMORY), dma_status::FAULT);
        EXPECT_EQ(m.write(0, buffer.data(), MEMORY), dma_status::FAULT);
        EXPECT_EQ(m.write(8192, buffer.data(), 4), dma_status::FAULT);
        EXPECT_EQ(m.read(0, buffer.data(), 8192), dma_status::OK);
        EXPECT_EQ(m.write(4096, buffer.data(), 4096), dma_status::OK);
    });
    EXPECT_EQ(c.read(0, 0, 4), 0u);
    ASSERT_EQ(::ftruncate(fd.get(), MEMORY), 0);
    m_device[0]->run([&](guest_memory& m) {
        EXPECT_EQ(m.read(0, buffer.data(), MEMORY), dma_status::OK);
    });
    EXPECT_EQ(c.dma_unmap(0, MEMORY), 0);
}

}  // namespace vfio_user
}  // namespace prawn
