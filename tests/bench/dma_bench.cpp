// SPDX-License-Identifier: Apache-2.0
// DMA between the model and guest RAM against memcpy of the same sizes, in one
// process, side by side and in turn. Guest RAM is what QEMU gives: a shared
// memfd. Addresses wander through 64 MiB so that neither side lives in cache
// by luck. Prints a JSON list of {name, value, unit, baseline, baseline_value,
// ratio}; a ratio is the median of the pairs' ratios.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vfio_user/guest_memory.h"

namespace {

using prawn::vfio_user::dma_status;
using prawn::vfio_user::guest_memory;
using prawn::vfio_user::memory_region;
using wall = std::chrono::steady_clock;

constexpr std::size_t RAM = std::size_t{64} << 20;
constexpr std::uint64_t IOVA = 0x100000000;
constexpr int PAIRS = 15;
constexpr std::size_t BYTES_PER_RUN = std::size_t{64} << 20;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "dma_bench: %s\n", what);
    std::exit(1);
}

// Seconds for BYTES_PER_RUN in pieces of `size`.
template <typename Copy>
double run(std::size_t size, Copy copy) {
    const std::size_t slots = RAM / size;
    std::size_t at = 0;
    const auto begin = wall::now();
    for (std::size_t done = 0; done < BYTES_PER_RUN; done += size) {
        at = (at + 7919) % slots;  // a prime: visits every slot
        copy(at * size);
    }
    return std::chrono::duration<double>(wall::now() - begin).count();
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + PAIRS / 2, v.end());
    return v[PAIRS / 2];
}

template <typename Dma, typename Memcpy>
nlohmann::json compare(const std::string& name, std::size_t size, Dma dma,
                       Memcpy plain) {
    std::vector<double> dma_s, plain_s, ratio;
    run(size, plain);  // both warm
    run(size, dma);
    for (int i = 0; i < PAIRS; i++) {
        const double p = run(size, plain);
        const double d = run(size, dma);
        plain_s.push_back(p);
        dma_s.push_back(d);
        ratio.push_back(p / d);
    }
    const double mb = static_cast<double>(BYTES_PER_RUN) / 1e6;
    return {{"name", name},
            {"value", mb / median(dma_s)},
            {"unit", "MB/s"},
            {"baseline", "memcpy"},
            {"baseline_value", mb / median(plain_s)},
            {"ratio", median(ratio)}};
}

}  // namespace

int main() {
    const int fd = memfd_create("guest", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, RAM) != 0)
        fail("cannot make guest RAM");
    int error = 0;
    auto region = memory_region::create(IOVA, RAM, true, true, fd, 0, error);
    guest_memory memory;
    if (!region || !memory.add(region))
        fail("cannot map guest RAM");
    std::uint8_t* ram = region->host();
    std::memset(ram, 0x5a, RAM);
    std::vector<std::uint8_t> mine(std::size_t{1} << 20, 0xa5);

    nlohmann::json all = nlohmann::json::array();
    for (std::size_t size : {64, 512, 4096, 65536, 1 << 20}) {
        const std::string bytes = std::to_string(size) + " B";
        all.push_back(compare(
            "DMA write to guest RAM, " + bytes, size,
            [&](std::size_t at) {
                if (memory.write(IOVA + at, mine.data(), size) !=
                    dma_status::OK)
                    fail("DMA write refused");
            },
            [&](std::size_t at) {
                std::memcpy(ram + at, mine.data(), size);
                asm volatile("" ::: "memory");
            }));
        all.push_back(compare(
            "DMA read from guest RAM, " + bytes, size,
            [&](std::size_t at) {
                if (memory.read(IOVA + at, mine.data(), size) != dma_status::OK)
                    fail("DMA read refused");
            },
            [&](std::size_t at) {
                std::memcpy(mine.data(), ram + at, size);
                asm volatile("" ::: "memory");
            }));
    }
    std::printf("%s\n", all.dump(2).c_str());
    close(fd);
    return 0;
}
