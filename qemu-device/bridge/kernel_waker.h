// SPDX-License-Identifier: Apache-2.0
// The one door into the SystemC kernel for other threads.

#ifndef PRAWN_QEMU_DEVICE_BRIDGE_KERNEL_WAKER_H
#define PRAWN_QEMU_DEVICE_BRIDGE_KERNEL_WAKER_H

#include <atomic>

#include <systemc>

namespace prawn {

// wake() from any thread; the event follows on the SystemC thread, one for all
// wake-ups that came before it. While a waker exists, an sc_start() that has
// nothing to do sleeps until the next wake-up instead of returning: an idle
// model uses no CPU.
class kernel_waker final : public sc_core::sc_prim_channel
{
public:
    explicit kernel_waker(const char* name) :
        sc_core::sc_prim_channel(name), m_woken("woken") {
        async_attach_suspending();
    }
    ~kernel_waker() override { async_detach_suspending(); }

    void wake() {
        wakes().fetch_add(1, std::memory_order_release);
        if (!m_asked.exchange(true, std::memory_order_acq_rel))
            async_request_update();
        if (const auto tell = listener().load(std::memory_order_acquire))
            tell();
    }
    const sc_core::sc_event& woken() const { return m_woken; }

    // Wake-ups of all wakers so far: who keeps the SystemC thread busy looks
    // here whether somebody else wants it.
    static std::atomic<unsigned>& wakes() {
        static std::atomic<unsigned> count{0};
        return count;
    }

    // Called after each wake-up, on its thread, for a kernel that does not run
    // by itself. Set before other threads start.
    static std::atomic<void (*)()>& listener() {
        static std::atomic<void (*)()> call{nullptr};
        return call;
    }

private:
    void update() override {
        // Before the event: who asks from here on gets another one.
        m_asked.store(false, std::memory_order_release);
        m_woken.notify(sc_core::SC_ZERO_TIME);
    }
    std::atomic<bool> m_asked{false};
    sc_core::sc_event m_woken;
};

}  // namespace prawn

#endif
