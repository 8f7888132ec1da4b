// SPDX-License-Identifier: Apache-2.0
// Host bus master of the card.

#ifndef PRAWN_NIC_DMA_ENGINE_H
#define PRAWN_NIC_DMA_ENGINE_H

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "nic/contracts.h"
#include "support/handler.h"
#include "support/ring.h"

namespace prawn {

// Hands each request to the bus as one transaction where it can; the bus
// charges burst by burst and turns between channels after every burst (see
// host_bus.h), so a small request does not wait for a large one. A request is
// cut
//  - at 4 KiB boundaries; the second part of a write follows when the first
//    is in memory;
//  - for reads over a bus that has fewer read tags than a page has bursts:
//    into single bursts.
// Read tags (full duplex only): outstanding_reads bursts, shared, and one burst
// more for each channel, so that none waits for the bulk of another.
// Within a channel, reads and writes keep their order: the channel turns when
// what is under way is done.
//
// Errors: as in the contract. A length of 0 or beyond 4 KiB, no data, or an
// address that wraps is DMA_ERROR without any access.
class dma_engine final : public dma_engine_base
{
public:
    // From a request to its first burst.
    static constexpr unsigned REQUEST_CYCLES = 2;
    // Requests of one channel that are waiting or under way.
    static constexpr std::size_t DEPTH = 32;

    tlm::tlm_initiator_socket<> bus_out{"bus_out"};

    dma_engine(sc_core::sc_module_name name, const block_env& env);
    ~dma_engine() override;

    put_if<dma_request>& request_in(unsigned port) override {
        return m_channels[port];
    }
    put_if<control_request>& control_in() override { return m_control; }
    void reset() override;

private:
    // One accepted request; lives until the bus has answered all of it.
    struct flight : pooled {
        dma_request request;
        std::uint64_t ready = 0;      // ps, when it may go to the bus
        std::uint64_t number = 0;     // for the event stream
        std::uint32_t issued = 0;     // bytes
        std::uint32_t under_way = 0;  // transactions
        std::uint32_t generation = 0;
        std::uint16_t status = PRAWN_STATUS_OK;
        drain_tracker::generation drain = 0;
    };
    struct payload : tlm::tlm_generic_payload {
        using tlm::tlm_generic_payload::tlm_generic_payload;
        ref<flight> owner;
        unsigned channel = 0;
        std::uint32_t shared_tags = 0;
        bool own_tag = false;
        dma_extension* extension = nullptr;
    };
    struct payload_pool : tlm::tlm_mm_interface {
        std::vector<std::unique_ptr<payload>> all;
        std::vector<payload*> unused;
        payload* get();
        void free(tlm::tlm_generic_payload* trans) override;
    };
    struct channel : put_if<dma_request> {
        dma_engine* engine = nullptr;
        unsigned index = 0;
        ring<ref<flight>> flights{DEPTH};
        std::size_t next = 0;         // first flight not wholly issued
        std::uint32_t under_way = 0;  // transactions of this life
        bool writing = false;         // what they are
        bool own_tag = false;         // in use
        bool refused = false;
        sc_core::sc_event room_event;
        bool try_put(dma_request& request) override {
            return engine->accept(*this, request);
        }
        const sc_core::sc_event& room() const override { return room_event; }
    };

    bool accept(channel& c, dma_request& request);
    void issue();
    void advance(channel& c);
    bool issue_from(channel& c, std::uint64_t now);
    bool may_go(const channel& c, const flight& f, std::uint32_t length,
                payload& p);
    void send(channel& c, flight& f, std::uint32_t length, payload& p);
    void wake(std::uint64_t at);
    tlm::tlm_sync_enum response(tlm::tlm_generic_payload& trans,
                                tlm::tlm_phase& phase);
    void finish(channel& c, flight& f);
    void retire(channel& c);
    void control(control_request& request);
    std::uint32_t bursts(std::uint32_t length) const {
        return (length + m_max_burst - 1) / m_max_burst;
    }

    const bool m_half;
    const std::uint32_t m_max_burst;
    const std::uint32_t m_tags;
    const std::uint32_t m_read_size;  // largest transaction of a read
    const std::uint64_t m_request_time;

    backward_end<dma_engine> m_bus_end;
    payload_pool m_payloads;
    pool<flight> m_flights;
    std::array<channel, DMA_CHANNELS> m_channels;
    handler<control_request> m_control;
    unsigned m_last = DMA_CHANNELS - 1;  // channel that issued last
    std::uint32_t m_tags_used = 0;       // shared ones, also of earlier lives
    std::uint64_t m_number = 0;
    std::uint32_t m_generation = 0;
    unsigned m_waiting = 0;  // bit per channel with something to issue
    bool m_blocked = false;  // END_REQ to come
    bool m_held = false;     // something is ready and could not go
    drain_tracker m_drain;
    ring<std::uint32_t> m_drained;  // tags to answer
    std::uint64_t m_wake = ~std::uint64_t{0};
    sc_core::sc_event m_due;

    counter& m_reads;
    counter& m_writes;
    counter& m_read_bytes;
    counter& m_write_bytes;
    counter& m_bursts;
    counter& m_errors;
    counter& m_stalls;
    context_counter& m_context_read_bytes;
    context_counter& m_context_write_bytes;
};

}  // namespace prawn

#endif
