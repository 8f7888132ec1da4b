// SPDX-License-Identifier: Apache-2.0
// A card with all that belongs to it: I/O bus, counters and, where it is
// wanted, the checker of its DMA. What stands at the host's side of the bus is
// somebody else's: a bridge to QEMU, a test, a recorded trace.

#ifndef PRAWN_SIM_NODE_H
#define PRAWN_SIM_NODE_H

#include <memory>

#include <systemc>

#include "host/grant_checker.h"
#include "host/host_bus.h"
#include "nic/nic.h"
#include "sim/config.h"

namespace prawn {

class node final : public sc_core::sc_module
{
private:
    counter_registry m_counters;
    block_env m_env;
    std::unique_ptr<grant_checker> m_checker;

public:
    nic card;
    // Its host side is to be bound: bar_in, dma_out, interrupt_out, control_in.
    host_bus bus;

    node(sc_core::sc_module_name name, std::uint16_t number,
         const sim_config& config, const timing_profile& profile,
         event_log* events);

    const counter_registry& counters() const { return m_counters; }
    grant_checker* checker() { return m_checker.get(); }
};

}  // namespace prawn

#endif
