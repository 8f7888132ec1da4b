// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_BENCH_HOST_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_BENCH_HOST_H

#include <cstddef>

namespace prawn::launch {

// Median round trip in nanoseconds of two processes that send each other a
// short message over a UNIX stream socket: what any split into two processes
// costs on this machine. On one CPU when pinned (cpu >= 0), else free.
double socket_ping_pong_ns(int cpu);

// Bytes per second, in MB/s, of memcpy for pieces of this size within a memory
// of 64 MiB each, so that it is the memory's speed and not a cache's.
double memcpy_mbps(size_t piece);

}  // namespace prawn::launch

#endif
