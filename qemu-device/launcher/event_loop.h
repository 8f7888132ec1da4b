// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_EVENT_LOOP_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_EVENT_LOOP_H

#include <chrono>
#include <functional>
#include <map>

namespace prawn::launch {

using steady = std::chrono::steady_clock;

// File descriptors and signals of the one thread that the launcher has.
// A handler may add and remove descriptors, its own among them; it may throw.
class event_loop
{
public:
    using handler = std::function<void(short revents)>;

    event_loop();
    ~event_loop();
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    void watch(int fd, short events, handler call);
    void events(int fd, short events);  // change what a watched fd waits for
    void forget(int fd);

    // Called once for any number of SIGCHLD, and for each SIGWINCH.
    std::function<void()> on_child;
    std::function<void()> on_resize;

    // Runs until the condition holds (true) or the time is over (false).
    // Throws a failure when the user interrupts.
    bool run_until(const std::function<bool()>& done,
                   steady::time_point deadline);

private:
    struct watched {
        short events;
        handler call;
    };

    void once(int timeout_ms);
    void signals();

    std::map<int, watched> m_watched;
    int m_signals;
};

// In a child, between fork and exec: signals as a program expects them.
void restore_signals();

}  // namespace prawn::launch

#endif
