// SPDX-License-Identifier: Apache-2.0
// Ends the simulation for other threads.

#ifndef PRAWN_QEMU_DEVICE_BRIDGE_KERNEL_STOPPER_H
#define PRAWN_QEMU_DEVICE_BRIDGE_KERNEL_STOPPER_H

#include <systemc>

#include "qemu-device/bridge/kernel_waker.h"

namespace prawn {

// request() from any thread; the SystemC thread then stops the simulation.
class kernel_stopper final : public sc_core::sc_module
{
public:
    explicit kernel_stopper(sc_core::sc_module_name name) :
        sc_core::sc_module(name) {
        SC_HAS_PROCESS(kernel_stopper);
        SC_METHOD(stop);
        dont_initialize();
        sensitive << m_waker.woken();
    }
    void request() { m_waker.wake(); }

private:
    void stop() { sc_core::sc_stop(); }
    kernel_waker m_waker{"waker"};
};

}  // namespace prawn

#endif
