// SPDX-License-Identifier: Apache-2.0
//
// The command line of a guest's QEMU. An argument whose reason is not plain has
// it beside it.
#include <chrono>
#include <cmath>
#include <thread>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "guest.h"

namespace prawn::launch {

namespace {

// An emulated guest sees the host's time stamp counter, and measures its rate
// while it boots. On a busy host it measures nonsense, and its clock then runs
// several times too fast; so tell it. 0: not known.
unsigned long tsc_khz() {
#if defined(__x86_64__)
    using clock = std::chrono::steady_clock;
    const auto sample = [](clock::time_point& time) {
        // The tightest of a few: nothing came between the two readings.
        unsigned long long ticks = 0;
        unsigned long long best = ~0ull;
        for (int i = 0; i < 20; i++) {
            const auto before = __rdtsc();
            const auto now = clock::now();
            const auto after = __rdtsc();
            if (after - before < best) {
                best = after - before;
                ticks = before + (after - before) / 2;
                time = now;
            }
        }
        return ticks;
    };
    clock::time_point begin;
    clock::time_point end;
    const auto first = sample(begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto last = sample(end);
    const std::chrono::duration<double, std::milli> ms = end - begin;
    return static_cast<unsigned long>(
        std::llround(static_cast<double>(last - first) / ms.count()));
#else
    return 0;
#endif
}

// QEMU separates suboptions by commas and takes a doubled one for itself.
std::string escaped(const std::string& path) {
    std::string text;
    for (char c : path) {
        text += c;
        if (c == ',')
            text += c;
    }
    return text;
}

// Virtual time counts instructions, nothing else, and our plugin holds the CPU
// wherever it might get ahead of the others.
void add_lockstep(std::vector<std::string>& argv, const settings& where,
                  const time_mode& time, unsigned node,
                  const std::filesystem::path& run_path) {
    const auto plugin =
        where.build_dir / "qemu-device" / "lockstep" / "prawn-lockstep.so";
    for (const std::string& word :
         {std::string("-accel"), std::string("tcg,thread=single"),
          std::string("-icount"), fmt::format("shift={},sleep=off", time.shift),
          std::string("-rtc"), std::string("base=2026-01-01T00:00:00,clock=vm"),
          std::string("-seed"), std::string("1"), std::string("-plugin"),
          fmt::format(
              "{},channel={},node={},shift={}", escaped(plugin.string()),
              escaped((run_path / "lockstep").string()), node, time.shift)})
        argv.push_back(word);
}

}  // namespace

command guest_command(const settings& where, const options& opts,
                      const time_mode& time, const guest_image& image,
                      const guest_options& guest,
                      const std::filesystem::path& run_path) {
    command result = where.qemu_command();
    auto& argv = result.argv;
    const auto add = [&](std::initializer_list<std::string> words) {
        argv.insert(argv.end(), words);
    };
    const std::string name = fmt::format("node{}", guest.node);
    const std::string base = (run_path / name).string();

    add({"-name", "prawn-" + name, "-nodefaults", "-display", "none"});
    add({"-machine", "q35,memory-backend=m"});
    // The card's DMA is a memcpy in memory that both processes share.
    add({"-object", fmt::format("memory-backend-memfd,id=m,size={}M,share=on",
                                opts.memory_mib)});
    add({"-smp", std::to_string(opts.cpus)});
    if (opts.accel == "kvm")
        add({"-accel", "kvm", "-cpu", "host"});
    else if (time.synchronized)
        add_lockstep(argv, where, time, guest.node, run_path);
    else
        add({"-accel", opts.cpus > 1 ? "tcg,thread=multi" : "tcg"});
    add({"-kernel", image.kernel, "-initrd", image.initrd});

    // The kernel's check of the timer interrupt counts ticks in a busy loop: on
    // a busy host an emulated guest fails it and panics.
    std::string append = fmt::format(
        "console=ttyS0 quiet tsc=reliable no_timer_check panic=0 "
        "prawn_node={} prawn_nodes={}",
        guest.node, opts.nodes);
    static const unsigned long host_khz = tsc_khz();
    // Under -icount the time stamp counter counts nanoseconds.
    const unsigned long khz = time.synchronized ? 1000000 : host_khz;
    if (khz != 0 && opts.accel != "kvm")
        append += fmt::format(" tsc_early_khz={}", khz);
    if (guest.shell)
        append += " prawn_shell=1";
    if (!opts.share.empty())
        append += " prawn_share=1";
    if (!opts.module_params.empty())
        append += " prawn_params=\"" + opts.module_params + "\"";
    append += opts.kernel_append;
    append += guest.append;
    add({"-append", append});

    // Console and control channel. The control channel is a serial port of
    // its own, so kernel messages cannot get into what commands print.
    for (const char* port : {"con", "ctl"}) {
        add({"-chardev",
             fmt::format("socket,id={0},path={1}.{0},server=on,wait={2}", port,
                         escaped(base),
                         // or what a guest says early would be lost or not
                         time.synchronized ? "on" : "off"),
             "-serial", fmt::format("chardev:{}", port)});
    }
    if (!opts.share.empty()) {
        const auto dir = std::filesystem::absolute(opts.share).string();
        add({"-fsdev",
             "local,id=host,readonly=on,security_model=none,path=" +
                 escaped(dir),
             "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"});
    }
    if (guest.card) {
        // A reply that comes after QEMU's time-out would put every later one
        // in the wrong place, so let it wait as long as a person would.
        constexpr int TIMEOUT_MS = 600000;
        const nlohmann::ordered_json device = {
            {"driver", "vfio-user-pci"},
            {"socket", {{"type", "unix"}, {"path", base + ".sock"}}},
            {"x-msg-timeout", TIMEOUT_MS},
        };
        add({"-device", device.dump()});
    }
    argv.insert(argv.end(), opts.qemu_args.begin(), opts.qemu_args.end());
    return result;
}

}  // namespace prawn::launch
