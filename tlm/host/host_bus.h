// SPDX-License-Identifier: Apache-2.0
// The I/O bus between a card and its host: charges the time that the profile
// says, keeps the order that the bus keeps, and moves no data.

#ifndef PRAWN_HOST_HOST_BUS_H
#define PRAWN_HOST_HOST_BUS_H

#include <cstdint>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/bus_medium.h"
#include "host/completion_window.h"
#include "host/host_port.h"
#include "host/transport.h"
#include "support/block.h"
#include "support/ring.h"

namespace prawn {

struct host_bus_config {
    unsigned bar_credits = 32;  // BAR accesses between host and card at once
    unsigned dma_slots = 256;   // DMA transactions on the bus at once
};

// Everything between the two passes here, in both directions: sockets as
// host_port.h says, interrupts, and the host's control of the card.
//
// Half duplex (EISA): one medium. A DMA burst holds it for arbitration, read
// latency if it reads, and its bytes; a BAR access for mmio_read or mmio_write.
// Full duplex (PCIe): a DMA write holds the upward medium; a read sends one
// header a burst upward and its data come downward after read_latency; BAR
// requests go downward, their answers upward.
// A transaction of several bursts is charged burst by burst, and the media turn
// between DMA channels and the CPU after every burst, whatever the size of the
// transactions: a small one never waits for a large one to end.
//
// Order: BAR accesses reach the card in the order in which the host made them.
// DMA of one channel in one direction stays in order. An interrupt comes after
// every DMA write that was accepted before it has been answered; the answer of
// a BAR read comes after every earlier DMA write has been handed to the host
// (it does not wait for the host's answer, which may need that host's
// processor).
// Data are moved by the host when the bus hands it the transaction: that is
// when a write becomes visible and when the last byte of a read arrives.
//
// reset() and set_attached(false) by the host: what is on its way to the card
// never reaches it, and DMA on its way to the host is refused; both are
// answered at their time. CTRL.RESET does not come through here and leaves the
// bus alone.
class host_bus : public sc_core::sc_module,
                 public card_control_if,
                 public interrupt_if
{
public:
    tlm::tlm_target_socket<> dma_in{"dma_in"};       // from the card
    tlm::tlm_initiator_socket<> dma_out{"dma_out"};  // to the host
    tlm::tlm_target_socket<> bar_in{"bar_in"};       // from the host
    tlm::tlm_initiator_socket<> bar_out{"bar_out"};  // to the card
    sc_core::sc_export<interrupt_if> interrupt_in{"interrupt_in"};
    sc_core::sc_port<interrupt_if> interrupt_out{"interrupt_out"};
    sc_core::sc_export<card_control_if> control_in{"control_in"};
    sc_core::sc_port<card_control_if> control_out{"control_out"};

    host_bus(sc_core::sc_module_name name, const block_env& env,
             const host_bus_config& config = {});

    // Nothing that is on the bus now reaches the host's memory or its
    // interrupt controller before this time (ps); NEVER (bus_medium) if there
    // is nothing. Answers of BAR reads are not counted. What the card starts
    // from now on takes at least the shortest of write_latency, read_latency
    // and interrupt of the profile.
    std::uint64_t next_effect() const;

    // Nothing is under way.
    bool idle() const { return m_dma_used == 0 && m_bar_used == 0; }

private:
    // What the bus knows of a transaction; stays on its payload.
    struct item {
        bool bar = false;
    };
    struct dma_slot : tlm::tlm_extension<dma_slot>, item {
        tlm::tlm_generic_payload* trans = nullptr;
        std::uint64_t number = 0;  // among the writes
        std::uint32_t generation = 0;
        unsigned flow = 0;
        bool header = false;  // a read whose request is on its way up
        tlm::tlm_extension_base* clone() const override;
        void copy_from(const tlm::tlm_extension_base& other) override;
    };
    struct bar_slot : tlm::tlm_extension<bar_slot>, item {
        tlm::tlm_generic_payload* trans = nullptr;
        std::uint64_t fence = 0;  // answer after this DMA write
        std::uint32_t generation = 0;
        bool answer = false;  // on its way back
        tlm::tlm_extension_base* clone() const override;
        void copy_from(const tlm::tlm_extension_base& other) override;
    };
    template <typename T>
    struct timed {
        T* slot = nullptr;
        std::uint64_t at = 0;
    };
    struct interrupt {
        std::uint64_t at = 0;
        std::uint64_t fence = 0;  // after this DMA write
        unsigned vector = 0;
        bool intx = false;
        bool level = false;
    };

    // Transport.
    tlm::tlm_sync_enum dma_request(tlm::tlm_generic_payload& trans,
                                   tlm::tlm_phase& phase);
    tlm::tlm_sync_enum dma_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    tlm::tlm_sync_enum bar_request(tlm::tlm_generic_payload& trans,
                                   tlm::tlm_phase& phase);
    tlm::tlm_sync_enum bar_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);

    // card_control_if, called by the host.
    void reset() override;
    void set_bus_master(bool on) override;
    void set_attached(bool on) override;
    // interrupt_if, called by the card.
    void msix(unsigned vector) override;
    void intx(bool level) override;

    // host_bus.cpp: time.
    void step();
    void advance();
    void schedule();
    bus_medium& down() { return m_half ? m_up : m_down; }
    std::uint64_t bytes(std::uint64_t n) const;

    // host_bus_dma.cpp.
    void accept_dma(tlm::tlm_generic_payload& trans);
    void announce_read(dma_slot& slot, std::uint64_t at);
    void dma_job_ended(dma_slot& slot, std::uint64_t end);
    void deliver_dma(std::uint64_t now);
    void to_host(dma_slot& slot);
    void finish_dma(dma_slot& slot);

    // host_bus_bar.cpp.
    void accept_bar(tlm::tlm_generic_payload& trans);
    void bar_job_ended(bar_slot& slot, std::uint64_t end);
    void deliver_bar(std::uint64_t now);
    void to_card(bar_slot& slot);
    void answer_bar(bar_slot& slot);
    void finish_bar(bar_slot& slot);
    void abandon();
    void raise(interrupt i);
    void deliver_interrupts(std::uint64_t now);

    static constexpr unsigned MMIO_FLOW = bus_medium::FLOWS - 1;

    const block_env m_env;
    const host_bus_config m_config;
    event_source m_events;

    // The profile in picoseconds.
    const bool m_half;
    const std::uint32_t m_max_burst;
    const double m_ps_per_byte;
    const std::uint32_t m_overhead;
    const std::uint64_t m_arbitration, m_read_latency, m_write_latency;
    const std::uint64_t m_mmio_read, m_mmio_write, m_interrupt_latency;
    const std::uint64_t m_header;    // of a read burst, upward
    const std::uint64_t m_up_slack;  // from a job's end to its least effect

    forward_end<host_bus> m_dma_in_end;
    backward_end<host_bus> m_dma_out_end;
    forward_end<host_bus> m_bar_in_end;
    backward_end<host_bus> m_bar_out_end;

    bus_medium m_up;  // also the only one
    bus_medium m_down;
    std::vector<bus_medium::finished> m_ended;
    std::uint64_t m_scheduled = bus_medium::NEVER;
    sc_core::sc_event m_due;
    std::uint32_t m_generation = 0;

    // DMA.
    unsigned m_dma_used = 0;
    tlm::tlm_generic_payload* m_dma_door = nullptr;  // END_REQ to come
    ring<timed<dma_slot>> m_writes;                  // sent, not yet visible
    ring<timed<dma_slot>> m_reads;                   // data on their way
    ring<dma_slot*> m_host_queue;  // due, but the host is busy
    tlm::tlm_generic_payload* m_host_pending = nullptr;
    completion_window m_handed;    // writes handed to the host
    completion_window m_answered;  // writes answered by the host

    // BAR accesses.
    unsigned m_bar_used = 0;
    tlm::tlm_generic_payload* m_bar_door = nullptr;
    ring<timed<bar_slot>> m_arrivals;
    ring<timed<bar_slot>> m_answers;
    tlm::tlm_generic_payload* m_card_pending = nullptr;

    ring<interrupt> m_interrupts;

    counter& m_dma_reads;
    counter& m_dma_writes;
    counter& m_dma_refused;
    counter& m_bar_reads;
    counter& m_bar_writes;
    counter& m_bar_stalls;
    counter& m_bar_dropped;
    counter& m_msix;
    counter& m_busy_up;
    counter& m_busy_down;
};

}  // namespace prawn

#endif
