// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/guest_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/qemu-device/fixture.h"

namespace prawn {
namespace vfio_user {

class guest_memory_test : public ::testing::Test
{
protected:
    static constexpr std::uint64_t SIZE = 1u << 20;
    static constexpr std::uint64_t TOP = ~std::uint64_t{0};

    std::shared_ptr<memory_region> region(std::uint64_t iova,
                                          std::uint64_t size,
                                          std::uint64_t offset = 0,
                                          bool readable = true,
                                          bool writable = true) {
        int error = -1;
        auto r = memory_region::create(iova, size, readable, writable,
                                       m_fd.get(), offset, error);
        EXPECT_EQ(error, 0);
        return r;
    }

    unique_fd m_fd = make_memory(SIZE);
    guest_memory m_memory;
};

TEST_F(guest_memory_test, copies_across_regions) {
    // Neighbours in addresses, apart in the file.
    ASSERT_TRUE(m_memory.add(region(0x11000, 0x1000, 0x5000)));
    ASSERT_TRUE(m_memory.add(region(0x10000, 0x1000, 0x9000)));
    ASSERT_TRUE(m_memory.add(region(0x12000, 0x2000, 0)));
    bytes out(0x4000);
    for (std::size_t i = 0; i < out.size(); i++)
        out[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8));
    EXPECT_EQ(m_memory.write(0x10000, out.data(), out.size()), dma_status::OK);
    bytes in(out.size());
    EXPECT_EQ(m_memory.read(0x10000, in.data(), in.size()), dma_status::OK);
    EXPECT_EQ(in, out);
    for (std::uint64_t at : {0xff0u, 0xfffu, 0x1001u, 0x1ff9u}) {
        for (std::size_t size : {1u, 2u, 7u, 8u, 9u, 33u, 300u, 4097u}) {
            EXPECT_EQ(m_memory.read(0x10000 + at, in.data(), size),
                      dma_status::OK);
            EXPECT_EQ(std::memcmp(in.data(), out.data() + at, size), 0);
        }
    }
}

TEST_F(guest_memory_test, every_alignment_and_length) {
    ASSERT_TRUE(m_memory.add(region(0, SIZE)));
    auto* const host = static_cast<std::uint8_t*>(::mmap(
        nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m_fd.get(), 0));
    ASSERT_NE(host, MAP_FAILED);
    bytes source(1024);
    for (std::size_t i = 0; i < source.size(); i++)
        source[i] = static_cast<std::uint8_t>(i + 1);
    for (std::size_t at = 0; at < 17; at++) {
        for (std::size_t skew = 0; skew < 9; skew++) {
            for (std::size_t size : {0u, 1u, 3u, 7u, 8u, 9u, 15u, 16u, 17u, 63u,
                                     64u, 255u, 256u, 264u, 280u, 777u}) {
                std::memset(host, 0, 1024);
                ASSERT_EQ(m_memory.write(at, source.data() + skew, size),
                          dma_status::OK);
                ASSERT_EQ(std::memcmp(host + at, source.data() + skew, size),
                          0);
                ASSERT_EQ(host[at + size], 0);
                ASSERT_TRUE(at == 0 || host[at - 1] == 0);
                bytes back(size + 1, 0xee);
                ASSERT_EQ(m_memory.read(at, back.data(), size), dma_status::OK);
                ASSERT_EQ(std::memcmp(back.data(), host + at, size), 0);
                ASSERT_EQ(back[size], 0xee);
            }
        }
    }
    ::munmap(host, SIZE);
}

TEST_F(guest_memory_test, ranges_outside_or_wrapping) {
    ASSERT_TRUE(m_memory.add(region(0x10000, 0x1000)));
    ASSERT_TRUE(m_memory.add(region(0x12000, 0x1000)));
    char b[64] = {};
    EXPECT_EQ(m_memory.read(0xffff, b, 1), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(0xffff, b, 2), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(0x10fff, b, 2), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(0x11000, b, 1), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(TOP, b, 2), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(TOP - 5, b, 64), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.check(0x10000, TOP, dma_access::READ),
              dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(TOP, b, 0), dma_status::OK);
    // Nothing is done if a part of it is not allowed.
    std::memset(b, 0x55, sizeof(b));
    EXPECT_EQ(m_memory.write(0x10fe0, b, 64), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(0x10fe0, b, 32), dma_status::OK);
    EXPECT_EQ(b[0], 0);
}

TEST_F(guest_memory_test, the_whole_address_space) {
    int error;
    EXPECT_EQ(memory_region::create(4096, TOP, true, true, -1, 0, error),
              nullptr);
    EXPECT_EQ(error, EINVAL);
    auto top =
        memory_region::create(TOP - 4095, 4096, true, true, -1, 0, error);
    ASSERT_NE(top, nullptr);
    ASSERT_TRUE(m_memory.add(top));
    char b;
    EXPECT_EQ(m_memory.read(TOP, &b, 1), dma_status::MESSAGE_ONLY);
    EXPECT_EQ(m_memory.read(TOP, &b, 2), dma_status::UNMAPPED);
}

TEST_F(guest_memory_test, resolve_gives_pieces) {
    ASSERT_TRUE(m_memory.add(region(0x10000, 0x1000)));
    ASSERT_TRUE(m_memory.add(region(0x11000, 0x1000, 0x4000, true, false)));
    int error;
    ASSERT_TRUE(m_memory.add(
        memory_region::create(0x14000, 0x1000, true, true, -1, 0, error)));
    auto p = m_memory.resolve(0x10800, 0x10000, dma_access::WRITE);
    EXPECT_EQ(p.status, dma_status::OK);
    EXPECT_NE(p.host, nullptr);
    EXPECT_EQ(p.length, 0x800u);
    p = m_memory.resolve(0x11000, 0x10000, dma_access::WRITE);
    EXPECT_EQ(p.status, dma_status::DENIED);
    EXPECT_EQ(p.host, nullptr);
    EXPECT_EQ(p.length, 0x1000u);
    p = m_memory.resolve(0x12000, 0x10000, dma_access::READ);
    EXPECT_EQ(p.status, dma_status::UNMAPPED);
    EXPECT_EQ(p.length, 0x2000u) << "up to the next region";
    p = m_memory.resolve(0x14000, 0x10, dma_access::READ);
    EXPECT_EQ(p.status, dma_status::MESSAGE_ONLY);
    EXPECT_EQ(p.length, 0x10u);
    EXPECT_STREQ(to_string(p.status), "message only");
}

TEST_F(guest_memory_test, add_and_remove) {
    const auto r = region(0x10000, 0x2000);
    EXPECT_TRUE(m_memory.add(r));
    EXPECT_FALSE(m_memory.add(r));
    EXPECT_FALSE(m_memory.add(region(0x11000, 0x2000)));
    EXPECT_FALSE(m_memory.add(region(0xf000, 0x2000)));
    EXPECT_FALSE(m_memory.add(nullptr));
    EXPECT_TRUE(m_memory.add(region(0x12000, 0x1000)));
    EXPECT_EQ(m_memory.count(), 2u);
    EXPECT_TRUE(m_memory.remove(*r));
    EXPECT_FALSE(m_memory.remove(*r));
    char b;
    EXPECT_EQ(m_memory.read(0x10000, &b, 1), dma_status::UNMAPPED);
    EXPECT_EQ(m_memory.read(0x12000, &b, 1), dma_status::OK);
    m_memory.clear();
    EXPECT_EQ(m_memory.read(0x12000, &b, 1), dma_status::UNMAPPED);
}

// A consumer polls the last word of an entry and then reads the rest.
TEST_F(guest_memory_test, the_last_word_is_published_last) {
    ASSERT_TRUE(m_memory.add(region(0, SIZE)));
    auto* const host = static_cast<std::uint64_t*>(::mmap(
        nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m_fd.get(), 0));
    ASSERT_NE(host, MAP_FAILED);
    constexpr std::size_t WORDS = 8;
    constexpr std::uint64_t LAST = 20000;
    std::atomic<bool> torn{false};
    std::thread consumer([&] {
        std::uint64_t seen = 0;
        while (seen < LAST) {
            const std::uint64_t now =
                __atomic_load_n(host + WORDS - 1, __ATOMIC_ACQUIRE);
            if (now == seen) {
                std::this_thread::yield();
                continue;
            }
            for (std::size_t i = 0; i < WORDS - 1; i++) {
                // The producer may be on to later entries, never behind.
                const std::uint64_t word =
                    __atomic_load_n(host + i, __ATOMIC_RELAXED);
                if (word < now || (word >> 32) != (word & 0xffffffff))
                    torn = true;
            }
            seen = now & 0xffffffff;
        }
    });
    for (std::uint64_t n = 1; n <= LAST; n++) {
        std::uint64_t entry[WORDS];
        for (std::uint64_t& word : entry)
            word = n << 32 | n;
        ASSERT_EQ(m_memory.write(0, entry, sizeof(entry)), dma_status::OK);
    }
    consumer.join();
    EXPECT_FALSE(torn);
    ::munmap(host, SIZE);
}

TEST_F(guest_memory_test, truncation_while_copying) {
    ASSERT_TRUE(m_memory.add(region(0, SIZE)));
    std::atomic<bool> stop{false};
    std::thread client([&] {
        while (!stop) {
            EXPECT_EQ(::ftruncate(m_fd.get(), 4096), 0);
            EXPECT_EQ(::ftruncate(m_fd.get(), SIZE), 0);
        }
    });
    bytes buffer(SIZE);
    std::size_t faults = 0;
    for (int i = 0; i < 20000 && faults < 20; i++) {
        const dma_status s = i % 2 != 0
                                 ? m_memory.read(0, buffer.data(), SIZE)
                                 : m_memory.write(0, buffer.data(), SIZE);
        faults += s == dma_status::FAULT ? 1 : 0;
        EXPECT_TRUE(s == dma_status::OK || s == dma_status::FAULT);
    }
    stop = true;
    client.join();
    EXPECT_GT(faults, 0u);
    EXPECT_EQ(m_memory.read(0, buffer.data(), SIZE), dma_status::OK);
}

// What is not ours goes on to the default: the process dies of SIGBUS.
TEST_F(guest_memory_test, another_sigbus_is_not_swallowed) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        auto* const p = static_cast<volatile char*>(
            ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, m_fd.get(), 0));
        if (::ftruncate(m_fd.get(), 0) != 0)
            ::_exit(41);
        const char c = *p;
        ::_exit(c == 0 ? 42 : 43);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // The sanitizer is the previous handler and reports in its own way.
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) > 40 &&
                 WEXITSTATUS(status) < 44);
#else
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGBUS);
#endif
}

}  // namespace vfio_user
}  // namespace prawn
