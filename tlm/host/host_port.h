// SPDX-License-Identifier: Apache-2.0
// Host port: where a host (a QEMU guest, a recorded trace, a test) meets a
// card. Two TLM-2.0 sockets, an interrupt set, and a control interface.

#ifndef PRAWN_HOST_HOST_PORT_H
#define PRAWN_HOST_HOST_PORT_H

#include <cstdint>

#include <systemc>
#include <tlm>

namespace prawn {

// Both sockets use the base protocol's nb_transport (approximately timed), with
// these rules, which keep it to two calls a transaction in the common case:
//  - BEGIN_REQ (fw) is answered TLM_UPDATED with END_REQ (accepted) or
//    TLM_ACCEPTED, and END_REQ follows on the backward path when there is room
//    again; until then the initiator sends no other BEGIN_REQ.
//  - Every accepted transaction ends with BEGIN_RESP (bw), which the initiator
//    answers TLM_COMPLETED. Responses may overtake one another.
//  - Delays are SC_ZERO_TIME: everything happens at the current time.
//  - Byte enables and DMI are not used; data length is at most 4096 bytes;
//    streaming width equals the length.
//  - Debug transport is used for reads of the host's memory only, by observers
//    such as a recorder: the number of bytes that could be read at once, all
//    or none. It takes no time and asks nobody's permission.
// Payloads have a memory manager; extensions below are always present. The
// owner of the data keeps it alive until BEGIN_RESP, also across a reset.

// BAR access: in from the host. Address = offset in the BAR; length 1, 2, 4, 8.
// A posted write also gets its response (the card has taken it): that is the
// return of a write credit; the guest does not wait for it.
struct bar_extension : tlm::tlm_extension<bar_extension> {
    std::uint8_t bar = 0;
    bool posted = false;
    std::uint64_t order = 0;  // counts the accesses of this host, from 1

    tlm::tlm_extension_base* clone() const override {
        return new bar_extension(*this);
    }
    void copy_from(const tlm::tlm_extension_base& other) override {
        *this = static_cast<const bar_extension&>(other);
    }
};

// DMA burst: out from the card. Address = bus address. Response status
// TLM_ADDRESS_ERROR_RESPONSE: no such memory, not permitted, bus mastering off,
// or the host has gone. Data of a write is in memory, in address order with the
// last aligned eight bytes last, when the response comes.
struct dma_extension : tlm::tlm_extension<dma_extension> {
    std::uint16_t context = 0xffff;  // whose grant covers it; 0xffff: kernel
    std::uint8_t channel = 0;        // dma_channel, for traces

    tlm::tlm_extension_base* clone() const override {
        return new dma_extension(*this);
    }
    void copy_from(const tlm::tlm_extension_base& other) override {
        *this = static_cast<const dma_extension&>(other);
    }
};

// Host -> card. SystemC thread only; nothing here waits.
class card_control_if : public virtual sc_core::sc_interface
{
public:
    // Function-level reset (device reset, guest gone, CTRL.RESET): the card is
    // in reset state when this returns. Accesses not yet answered are answered
    // (reads as zero); DMA under way is not cancelled at the bus but its
    // answers are ignored by the card.
    virtual void reset() = 0;
    // PCI command register, bus master bit. Off: DMA is refused.
    virtual void set_bus_master(bool on) = 0;
    // A host is attached (a guest is connected) or has gone. Gone implies
    // reset().
    virtual void set_attached(bool on) = 0;
};

// Card -> host: what the card's PTP clock runs on, for hosts whose own clock is
// not model time. Nanoseconds from any origin near the start of the run; never
// falls. SystemC thread only; answers at once.
//
// It is asked within BAR accesses to registers PTP_*, at most once in each, and
// never otherwise: who records a run keeps the answers, in order, and a replay
// gives them again.
class time_base_if : public virtual sc_core::sc_interface
{
public:
    virtual std::uint64_t now_ns() = 0;
};

// Host -> observer: guest memory that DMA may reach comes and goes. The card
// need not know.
class memory_map_if : public virtual sc_core::sc_interface
{
public:
    virtual void mapped(std::uint64_t address, std::uint64_t size) = 0;
    virtual void unmapped(std::uint64_t address, std::uint64_t size) = 0;
};

// Card -> host. SystemC thread only; never refused.
class interrupt_if : public virtual sc_core::sc_interface
{
public:
    virtual void msix(unsigned vector) = 0;
    virtual void intx(bool level) = 0;
};

}  // namespace prawn

#endif
