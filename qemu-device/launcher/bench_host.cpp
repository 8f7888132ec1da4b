// SPDX-License-Identifier: Apache-2.0
#include "bench_host.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.h"

namespace prawn::launch {

namespace {

using bench_clock = std::chrono::steady_clock;

constexpr int ROUNDS = 20000;
constexpr int WARM_UP = 1000;
// As long as a message of the vfio-user protocol that reads a register.
constexpr size_t MESSAGE = 32;

double ns_since(bench_clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(bench_clock::now() - begin)
        .count();
}

[[noreturn]] void echo(int fd) {
    char data[MESSAGE];
    for (;;) {
        const ssize_t size = recv(fd, data, sizeof(data), MSG_WAITALL);
        if (size <= 0)
            _exit(0);
        if (send(fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
            _exit(0);
    }
}

}  // namespace

double socket_ping_pong_ns(int cpu) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw failure(EXIT_SETUP, "no socket pair: too many open files");
    cpu_set_t before;
    sched_getaffinity(0, sizeof(before), &before);
    if (cpu >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<size_t>(cpu), &one);
        sched_setaffinity(0, sizeof(one), &one);
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        echo(ends[1]);
    }
    close(ends[1]);
    std::vector<double> samples;
    char data[MESSAGE] = {};
    for (int i = 0; i < WARM_UP + ROUNDS; i++) {
        const auto begin = bench_clock::now();
        if (send(ends[0], data, sizeof(data), MSG_NOSIGNAL) < 0 ||
            recv(ends[0], data, sizeof(data), MSG_WAITALL) <= 0) {
            break;
        }
        if (i >= WARM_UP)
            samples.push_back(ns_since(begin));
    }
    close(ends[0]);
    waitpid(child, nullptr, 0);
    sched_setaffinity(0, sizeof(before), &before);
    if (samples.empty())
        throw failure(EXIT_SETUP, "the socket ping-pong failed");
    const auto middle =
        samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

double memcpy_mbps(size_t piece) {
    constexpr size_t SIZE = 64 << 20;
    constexpr double BYTES_PER_MB = 1e6;
    std::vector<char> from(SIZE, 1);
    std::vector<char> to(SIZE, 2);
    double best = 0;
    for (int round = 0; round < 5; round++) {
        const auto begin = bench_clock::now();
        for (size_t at = 0; at + piece <= SIZE; at += piece)
            memcpy(to.data() + at, from.data() + at, piece);
        const double seconds = ns_since(begin) / 1e9;
        // Looked at, so that it cannot be optimized away.
        if (to[SIZE / 2] == 1)
            best = std::max(best, SIZE / BYTES_PER_MB / seconds);
    }
    return best;
}

}  // namespace prawn::launch
