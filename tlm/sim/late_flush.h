// SPDX-License-Identifier: Apache-2.0
// Brings the files of a run up to date soon after something has happened, so
// that a reader of a running simulation sees it; does nothing while nothing
// happens.

#ifndef PRAWN_SIM_LATE_FLUSH_H
#define PRAWN_SIM_LATE_FLUSH_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <systemc>

#include "qemu-device/bridge/kernel_waker.h"
#include "support/events.h"

namespace prawn {

// Attach it behind the sinks that it is to flush. The model's thread pays one
// branch for an event; wall time only decides when files are written, never
// what is in them.
//
// also: another file that is to be flushed; whoever writes it calls touch().
class late_flush final : public sc_core::sc_module, public event_sink
{
public:
    late_flush(sc_core::sc_module_name name, event_log& log,
               std::function<void()> also = {}) :
        sc_core::sc_module(name), m_log(log), m_also(std::move(also)) {
        SC_HAS_PROCESS(late_flush);
        SC_METHOD(flush_now);
        dont_initialize();
        sensitive << m_waker.woken();
        if (log.enabled())
            log.attach_events(*this);
        if (log.capturing())
            log.attach_packets(*this);
        m_thread = std::thread([this] { wait_and_wake(); });
    }
    ~late_flush() override {
        m_log.detach(*this);
        {
            const std::lock_guard<std::mutex> hold(m_mutex);
            m_end = true;
        }
        m_changed.notify_one();
        m_thread.join();
    }

    void on_event(const event&) override { touch(); }
    void on_packet(const packet_capture&) override { touch(); }
    // SystemC thread only.
    void touch() {
        if (m_dirty)
            return;
        m_dirty = true;
        {
            const std::lock_guard<std::mutex> hold(m_mutex);
            m_asked = true;
        }
        m_changed.notify_one();
    }

private:
    static constexpr std::chrono::milliseconds DELAY{500};

    void wait_and_wake() {
        std::unique_lock<std::mutex> hold(m_mutex);
        while (!m_end) {
            m_changed.wait(hold, [this] { return m_asked || m_end; });
            m_asked = false;
            if (!m_changed.wait_for(hold, DELAY, [this] { return m_end; }))
                m_waker.wake();
        }
    }
    void flush_now() {
        m_dirty = false;
        m_log.flush();
        if (m_also)
            m_also();
    }

    event_log& m_log;
    const std::function<void()> m_also;
    bool m_dirty = false;  // SystemC thread only
    kernel_waker m_waker{"waker"};
    std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_asked = false;
    bool m_end = false;
    std::thread m_thread;
};

}  // namespace prawn

#endif
