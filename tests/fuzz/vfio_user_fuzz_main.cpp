// SPDX-License-Identifier: Apache-2.0
//
// Runs the fuzz target without a fuzzing engine: a seeded loop of mutations
// over a built-in corpus of well-formed sessions, for PRAWN_FUZZ_SECONDS
// (default 10), seed PRAWN_FUZZ_SEED (default 1). With arguments it runs those
// files, so that a crash found elsewhere can be looked at here.

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "qemu-device/vfio_user/protocol.h"
#include "tests/fuzz/vfio_user_fuzz.h"

namespace {

using namespace prawn::vfio_user::protocol;
using bytes = std::vector<std::uint8_t>;

std::size_t open_descriptors() {
    DIR* const dir = ::opendir("/proc/self/fd");
    std::size_t n = 0;
    while (dir != nullptr && ::readdir(dir) != nullptr)
        n++;
    if (dir != nullptr)
        ::closedir(dir);
    return n;
}

template <typename T>
bytes raw(const T& value) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(&value);
    return bytes(p, p + sizeof(value));
}

// One record: a whole message.
bytes record(std::uint8_t control, std::uint16_t command, const bytes& payload,
             std::uint32_t flags = 0) {
    header head{command, command, 0, flags, 0};
    head.size = static_cast<std::uint32_t>(sizeof(head) + payload.size());
    bytes b{control, static_cast<std::uint8_t>(head.size)};
    const bytes h = raw(head);
    b.insert(b.end(), h.begin(), h.end());
    b.insert(b.end(), payload.begin(), payload.end());
    return b;
}

bytes with(bytes head, std::size_t n, std::uint8_t fill) {
    head.insert(head.end(), n, fill);
    return head;
}

std::vector<bytes> corpus() {
    const char json[] =
        R"({"capabilities":{"max_msg_fds":16,"write_multiple":true}})";
    bytes hello = raw(version{0, 0});
    hello.insert(hello.end(), json, json + sizeof(json));
    bytes multi = raw(std::uint64_t{2});
    for (std::uint64_t offset : {0x10u, 0x8000u}) {
        const bytes w = raw(write_one{offset, 0, 4, {1, 2, 3, 4, 5, 6, 7, 8}});
        multi.insert(multi.end(), w.begin(), w.end());
    }
    const auto info = [](std::uint32_t size, std::uint32_t index) {
        return raw(irq_info{size, 0, index, 0});
    };
    bytes region = raw(region_info{32, 0, 4, 0, 0, 0});
    return {
        record(0, VERSION, hello),
        record(0, VERSION, raw(version{0, 0})),
        record(0, DEVICE_GET_INFO, raw(device_info{16, 0, 0, 0})),
        record(0, DEVICE_GET_REGION_INFO, region),
        record(0, DEVICE_GET_REGION_IO_FDS, info(16, 2)),
        record(0, DEVICE_GET_IRQ_INFO, info(16, IRQ_MSIX)),
        record(1, DEVICE_SET_IRQS, raw(irq_set{20, 0x24, IRQ_MSIX, 3, 1})),
        record(1, DEVICE_SET_IRQS, raw(irq_set{20, 0x24, IRQ_INTX, 0, 1})),
        record(1, DEVICE_SET_IRQS, raw(irq_set{20, 0x14, IRQ_INTX, 0, 1})),
        record(12, DEVICE_SET_IRQS, raw(irq_set{20, 0x11, IRQ_INTX, 0, 1})),
        record(0, DEVICE_SET_IRQS,
               with(raw(irq_set{36, 0x12, IRQ_MSIX, 0, 16}), 16, 1)),
        record(0, DEVICE_SET_IRQS, raw(irq_set{20, 0x21, IRQ_MSIX, 0, 0})),
        record(2, DMA_MAP, raw(dma_map{32, 3, 0, 0x10000, 0x10000})),
        record(2, DMA_MAP, raw(dma_map{32, 1, 4096, 0, 0x1000})),
        record(0, DMA_MAP, raw(dma_map{32, 3, 0, 0x80000000, 0x1000})),
        record(0, DMA_UNMAP, raw(dma_unmap{24, 0, 0x10000, 0x10000})),
        record(0, DMA_UNMAP, raw(dma_unmap{24, 2, 0, 0})),
        record(8, REGION_READ, raw(region_access{0x100, 0, 4})),
        record(8, REGION_READ, raw(region_access{0x9000, 0, 8})),
        record(0, REGION_READ, raw(region_access{0, REGION_CONFIG, 256})),
        record(0, REGION_WRITE, with(raw(region_access{0x20, 2, 8}), 8, 0x77)),
        record(0, REGION_WRITE, with(raw(region_access{0x8000, 0, 8}), 8, 0)),
        record(0, REGION_WRITE,
               with(raw(region_access{0x82, REGION_CONFIG, 2}), 2, 0x80)),
        record(0, REGION_WRITE,
               with(raw(region_access{0x49, REGION_CONFIG, 1}), 1, 0x80)),
        record(0, REGION_WRITE, with(raw(region_access{0x10, 0, 4}), 4, 9),
               FLAG_NO_REPLY),
        record(0, REGION_WRITE_MULTI, multi),
        record(0, REGION_WRITE_MULTI, multi, FLAG_NO_REPLY),
        record(8, DEVICE_RESET, {}),
        record(24, DMA_READ, raw(dma_transfer{0, 24}), TYPE_REPLY),
        record(8, DMA_WRITE, {}, TYPE_REPLY | FLAG_ERROR),
        record(0, DEVICE_FEATURE, bytes(12, 0)),
        record(0, USER_DIRTY_PAGES, bytes(8, 0)),
    };
}

class mutator
{
public:
    explicit mutator(std::uint64_t seed) : m_random(seed) {}

    bytes next() {
        bytes input = pick(m_random() % 8 == 0 ? any() : 0);
        const std::size_t n = any() % 24;
        for (std::size_t i = 0; i < n; i++) {
            const bytes more = pick(any());
            input.insert(input.end(), more.begin(), more.end());
        }
        // A good part of the sessions stays well-formed, to get deep.
        const std::size_t spoils = m_random() % 4 == 0 ? 0 : any() % 12;
        for (std::size_t i = 0; i < spoils; i++)
            spoil(input);
        return input;
    }

private:
    std::size_t any() { return static_cast<std::size_t>(m_random()); }
    bytes pick(std::size_t n) { return m_corpus[n % m_corpus.size()]; }

    void spoil(bytes& b) {
        if (b.empty())
            return;
        const std::size_t at = any() % b.size();
        const auto place = b.begin() + static_cast<std::ptrdiff_t>(at);
        static const std::uint8_t EDGES[] = {0, 1, 7, 8, 15, 16, 127, 128, 255};
        switch (any() % 6) {
            case 0:
                b[at] ^= static_cast<std::uint8_t>(1u << (any() % 8));
                break;
            case 1:
                b[at] = EDGES[any() % sizeof(EDGES)];
                break;
            case 2:
                b[at] = static_cast<std::uint8_t>(any());
                break;
            case 3:
                b.insert(place, static_cast<std::uint8_t>(any()));
                break;
            case 4:
                b.erase(place,
                        std::min(place + static_cast<std::ptrdiff_t>(any() % 9),
                                 b.end()));
                break;
            default:
                std::fill(
                    place,
                    std::min(place + static_cast<std::ptrdiff_t>(any() % 9),
                             b.end()),
                    any() % 2 != 0 ? std::uint8_t{0xff} : std::uint8_t{0});
                break;
        }
    }

    std::mt19937_64 m_random;
    const std::vector<bytes> m_corpus = corpus();
};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        std::ifstream file(argv[i], std::ios::binary);
        const bytes input{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    if (argc > 1)
        return 0;

    const std::uint64_t seed = from_environment("PRAWN_FUZZ_SEED", 1);
    const std::chrono::seconds budget(
        from_environment("PRAWN_FUZZ_SECONDS", 10));
    // First, so that a run that is aborted can be repeated.
    std::printf("vfio_user_fuzz: seed %llu\n",
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    mutator inputs(seed);
    LLVMFuzzerTestOneInput(nullptr, 0);
    const std::size_t before = open_descriptors();
    const auto end = std::chrono::steady_clock::now() + budget;
    std::uint64_t runs = 0;
    while (std::chrono::steady_clock::now() < end) {
        const bytes input = inputs.next();
        LLVMFuzzerTestOneInput(input.data(), input.size());
        runs++;
        if (open_descriptors() != before) {
            std::fprintf(stderr,
                         "vfio_user_fuzz: run %llu with seed %llu leaked a "
                         "descriptor\n",
                         static_cast<unsigned long long>(runs),
                         static_cast<unsigned long long>(seed));
            return 1;
        }
    }
    std::printf("vfio_user_fuzz: %llu runs with seed %llu, none failed\n",
                static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(seed));
    return runs == 0 ? 1 : 0;
}
