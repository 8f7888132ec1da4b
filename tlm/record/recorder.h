// SPDX-License-Identifier: Apache-2.0
// Writes down what crosses the host port of one node.

#ifndef PRAWN_RECORD_RECORDER_H
#define PRAWN_RECORD_RECORDER_H

#include <cstdint>
#include <functional>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "record/recording.h"
#include "record/table_pages.h"

namespace prawn {

// Stands between a host and a node's host_bus, on all of their connections;
// both see what they would see of each other. Every call is passed on at once
// and from within, so that nothing of the model happens earlier, later or in
// another order than without it.
//
// A call by the host is written before it is passed on, a call by the card's
// side before the host gets it: an answer comes after what it answers. DMA is
// written when the host answers it, with its data.
//
// Translation tables: see table_pages. They are looked at when the card's
// walker reads one, and at every doorbell of a context and of the admin queue,
// before it.
class recorder : public sc_core::sc_module,
                 public card_control_if,
                 public interrupt_if,
                 public memory_map_if
{
public:
    // Towards the host.
    tlm::tlm_target_socket<> bar_in{"bar_in"};
    tlm::tlm_initiator_socket<> dma_out{"dma_out"};
    sc_core::sc_port<interrupt_if> interrupt_out{"interrupt_out"};
    sc_core::sc_export<card_control_if> control_in{"control_in"};
    sc_core::sc_export<memory_map_if> map_in{"map_in"};
    // Towards the card.
    tlm::tlm_initiator_socket<> bar_out{"bar_out"};
    tlm::tlm_target_socket<> dma_in{"dma_in"};
    sc_core::sc_export<interrupt_if> interrupt_in{"interrupt_in"};
    sc_core::sc_port<card_control_if> control_out{"control_out"};

    // written() is called after each record, on the SystemC thread; may be
    // empty.
    recorder(sc_core::sc_module_name name, unsigned node,
             recording_writer& file, std::function<void()> written = {});

private:
    // A DMA between the bus's request and the host's answer; stays on the
    // payload.
    struct dma_slot : tlm::tlm_extension<dma_slot> {
        std::uint64_t order = 0;
        std::uint64_t began_ps = 0;
        bool open = false;
        bool waiting = false;  // END_REQ to come
        tlm::tlm_extension_base* clone() const override { return new dma_slot; }
        void copy_from(const tlm::tlm_extension_base&) override {}
    };

    tlm::tlm_sync_enum bar_request(tlm::tlm_generic_payload& trans,
                                   tlm::tlm_phase& phase);
    tlm::tlm_sync_enum bar_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    tlm::tlm_sync_enum dma_request(tlm::tlm_generic_payload& trans,
                                   tlm::tlm_phase& phase);
    tlm::tlm_sync_enum dma_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    unsigned peek(tlm::tlm_generic_payload& trans);

    void reset() override;
    void set_bus_master(bool on) override;
    void set_attached(bool on) override;
    void msix(unsigned vector) override;
    void intx(bool level) override;
    void mapped(std::uint64_t address, std::uint64_t size) override;
    void unmapped(std::uint64_t address, std::uint64_t size) override;

    record at_now(record_kind kind) const;
    void write(const record& r);
    void write_host(record_kind kind, bool flag = false);
    void write_map(record_kind kind, std::uint64_t address, std::uint64_t size);
    void write_order(record_kind kind, std::uint64_t order);
    void write_bar_request(const tlm::tlm_generic_payload& trans);
    void write_bar_answer(const tlm::tlm_generic_payload& trans);
    void write_dma(const tlm::tlm_generic_payload& trans, dma_slot& slot);
    bool read_memory(std::uint64_t address, std::uint8_t* data,
                     std::uint32_t size);

    const std::uint16_t m_node;
    recording_writer& m_file;
    const std::function<void()> m_written;
    forward_end<recorder> m_bar_in_end;
    backward_end<recorder> m_bar_out_end;
    forward_end<recorder> m_dma_in_end;
    backward_end<recorder> m_dma_out_end;

    table_pages m_tables;
    tlm::tlm_generic_payload m_peek;
    unsigned m_in_host = 0;  // calls into the host that are under way
    std::uint64_t m_dma_order = 0;
    const dma_slot* m_asking = nullptr;  // its request is being passed on
    const tlm::tlm_generic_payload* m_bar_waiting = nullptr;  // for END_REQ
};

}  // namespace prawn

#endif
