// SPDX-License-Identifier: Apache-2.0
// What a bridge tells whoever keeps its guest in step with the model.

#ifndef PRAWN_QEMU_DEVICE_BRIDGE_PACED_HOST_H
#define PRAWN_QEMU_DEVICE_BRIDGE_PACED_HOST_H

#include <cstdint>

namespace prawn {

// All calls but the first two come on the SystemC thread, at the model time at
// which the thing happens.
class paced_host
{
public:
    virtual ~paced_host() = default;
    // The guest's clock, ps, while its virtual CPU waits for an answer (or has
    // not been started); any thread.
    virtual std::uint64_t guest_time(unsigned node) = 0;
    // Something waits to be collected; any thread.
    virtual void incoming() = 0;
    // The guest waits for a BAR read from here on; the answer is about to go.
    virtual void reading(unsigned node) = 0;
    virtual void read_answered(unsigned node) = 0;
    // An MSI-X vector, or 0x10000 | the level of INTA.
    virtual void interrupt(unsigned node, std::uint32_t vector) = 0;
    // The card reads or writes the guest's memory.
    virtual void delivered(unsigned node) = 0;
    // A client has come or gone.
    virtual void present(unsigned node, bool here) = 0;
};

}  // namespace prawn

#endif
