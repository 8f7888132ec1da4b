// SPDX-License-Identifier: Apache-2.0
// What a register read costs outside QEMU: server, bridge and model, and a
// client with QEMU's two threads, one that asks and sleeps, one that takes the
// answer and wakes it. Beside it a bare ping-pong of two threads on a socket.
// Wall time, medians. Prints a JSON list of {name, value, unit, ...}; --json is
// the only form and accepted.
#include <dirent.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "qemu-device/bridge/bridge.h"
#include "qemu-device/bridge/kernel_stopper.h"
#include "sim/cluster.h"
#include "tests/qemu-device/client.h"

namespace prawn {
namespace {

using wall = std::chrono::steady_clock;
using vfio_user::client;
namespace protocol = vfio_user::protocol;

constexpr int ROUNDS = 20000;
constexpr int WARM_UP = 1000;
// As long as the message that asks for a register.
constexpr std::size_t MESSAGE = 32;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "bar_bench: %s\n", what.c_str());
    std::exit(1);
}

double median_ns(const std::function<void()>& round) {
    std::vector<double> samples;
    for (int i = 0; i < WARM_UP + ROUNDS; i++) {
        const auto begin = wall::now();
        round();
        const std::chrono::duration<double, std::nano> took =
            wall::now() - begin;
        if (i >= WARM_UP)
            samples.push_back(took.count());
    }
    const auto middle = samples.begin() + ROUNDS / 2;
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

double ping_pong_ns() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail("no socket pair");
    std::thread echo([fd = ends[1]] {
        char data[MESSAGE];
        while (::recv(fd, data, MESSAGE, MSG_WAITALL) ==
                   static_cast<ssize_t>(MESSAGE) &&
               ::send(fd, data, MESSAGE, MSG_NOSIGNAL) > 0) {
        }
    });
    char data[MESSAGE] = {};
    const double result = median_ns([&] {
        if (::send(ends[0], data, MESSAGE, MSG_NOSIGNAL) < 0 ||
            ::recv(ends[0], data, MESSAGE, MSG_WAITALL) <= 0)
            fail("ping-pong broke off");
    });
    ::close(ends[0]);
    echo.join();
    ::close(ends[1]);
    return result;
}

// The two threads of QEMU's client that a vCPU's read passes.
class two_threads
{
public:
    explicit two_threads(client& c) :
        m_socket(c.socket()), m_receiver([this] {
            std::uint8_t data[MESSAGE + 4];
            while (::recv(m_socket, data, sizeof(data), MSG_WAITALL) ==
                   static_cast<ssize_t>(sizeof(data))) {
                const std::lock_guard<std::mutex> hold(m_lock);
                std::memcpy(&m_value, data + MESSAGE, 4);
                m_answered = true;
                m_wake.notify_one();
            }
        }) {}
    ~two_threads() {
        ::shutdown(m_socket, SHUT_RD);
        m_receiver.join();
    }
    std::uint32_t read(std::uint64_t offset) {
        struct {
            protocol::header head;
            protocol::region_access access;
        } ask{};
        static_assert(sizeof(ask) == MESSAGE, "wire layout");
        ask.head = {++m_id, protocol::REGION_READ, MESSAGE,
                    protocol::TYPE_COMMAND, 0};
        ask.access.offset = offset;
        ask.access.region = 0;
        ask.access.count = 4;
        std::unique_lock<std::mutex> hold(m_lock);
        m_answered = false;
        if (::send(m_socket, &ask, sizeof(ask), MSG_NOSIGNAL) < 0)
            fail("the server has gone");
        m_wake.wait(hold, [this] { return m_answered; });
        return m_value;
    }

private:
    const int m_socket;
    std::mutex m_lock;
    std::condition_variable m_wake;
    bool m_answered = false;
    std::uint32_t m_value = 0;
    std::uint16_t m_id = 0;
    std::thread m_receiver;
};

void pin_all_threads(const cpu_set_t& set) {
    DIR* tasks = ::opendir("/proc/self/task");
    if (!tasks)
        fail("no /proc");
    while (const dirent* d = ::readdir(tasks))
        if (const int task = std::atoi(d->d_name))
            ::sched_setaffinity(task, sizeof(set), &set);
    ::closedir(tasks);
}

void measure(const std::string& path, nlohmann::json& results) {
    client c(path);
    c.negotiate();
    while (!(c.read(0, PRAWN_BAR0_STATUS, 4) & PRAWN_STATUS_READY_MASK))
        ::usleep(1000);
    two_threads reader(c);

    cpu_set_t all, one;
    ::sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    for (const bool pinned : {true, false}) {
        pin_all_threads(pinned ? one : all);
        const double base = ping_pong_ns();
        const double value = median_ns([&] {
            if (reader.read(PRAWN_BAR0_ID) != PRAWN_ID_MAGIC)
                fail("wrong value");
        });
        results.push_back({{"name", std::string("BAR read without QEMU, ") +
                                        (pinned ? "one core" : "free")},
                           {"value", value},
                           {"unit", "ns"},
                           {"baseline", "socket ping-pong"},
                           {"baseline_value", base},
                           {"ratio", value / base}});
    }
}

}  // namespace
}  // namespace prawn

int sc_main(int, char**) {
    using namespace prawn;
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
                                            sc_core::SC_DO_NOTHING);
    spdlog::set_level(spdlog::level::warn);  // standard output is the result
    std::string directory = "/tmp/prawn-bench-XXXXXX";
    if (!::mkdtemp(directory.data()))
        fail("no place in /tmp");
    nlohmann::json results = nlohmann::json::array();
    {
        cluster model("model", load_config(""));
        vfio_user::server server;
        std::vector<std::unique_ptr<bridge>> bridges;
        for (unsigned k = 0; k < 2; k++) {
            const std::string name = "host" + std::to_string(k);
            bridges.push_back(std::make_unique<bridge>(name.c_str()));
            bridge& b = *bridges.back();
            host_bus& bus = model.at(k).bus;
            b.bar_out.bind(bus.bar_in);
            bus.dma_out.bind(b.dma_in);
            bus.interrupt_out.bind(b.interrupt_in);
            b.control_out.bind(bus.control_in);
            b.attach(server, server.add_endpoint(directory + "/" + name, b));
        }
        kernel_stopper end("end");
        server.start();
        std::thread guest([&] {
            measure(directory + "/host0", results);
            end.request();
        });
        sc_core::sc_start();
        guest.join();
        server.stop();
    }
    ::rmdir(directory.c_str());
    std::printf("%s\n", results.dump(1).c_str());
    return 0;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--json") != 0) {
            std::fprintf(stderr, "usage: bar_bench [--json]\n");
            return std::strcmp(argv[i], "--help") == 0 ? 0 : 1;
        }
    }
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
    return sc_core::sc_elab_and_sim(argc, argv);
}
