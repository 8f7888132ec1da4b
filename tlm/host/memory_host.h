// SPDX-License-Identifier: Apache-2.0
// A host without QEMU: memory, BAR accesses, an interrupt recorder. For tests
// of the model and for benchmarks.

#ifndef PRAWN_HOST_MEMORY_HOST_H
#define PRAWN_HOST_MEMORY_HOST_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "support/ring.h"

namespace prawn {

struct memory_host_config {
    // Memory that is there from the start, in one piece: pointer() of it is
    // good for all of it. Benchmarks use only this.
    std::uint64_t base = 0;
    std::uint64_t size = 0;
};

class memory_host : public sc_core::sc_module, public interrupt_if
{
public:
    tlm::tlm_target_socket<> dma_in{"dma_in"};
    tlm::tlm_initiator_socket<> bar_out{"bar_out"};
    sc_core::sc_export<interrupt_if> interrupt_in{"interrupt_in"};
    sc_core::sc_port<card_control_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND>
        control_out{"control_out"};
    sc_core::sc_port<memory_map_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> map_out{
        "map_out"};

    memory_host(sc_core::sc_module_name name,
                const memory_host_config& config = {});
    ~memory_host() override;

    // Memory. Pages come into being, zeroed, when they are mapped; what was
    // unmapped and mapped again starts from zero. Page granularity.
    void map(std::uint64_t address, std::uint64_t size);
    void unmap(std::uint64_t address, std::uint64_t size);
    // Of one mapped byte, good to the end of its page; null if not mapped.
    std::uint8_t* pointer(std::uint64_t address);
    // False if part of it is not mapped; then nothing is moved.
    bool read_memory(std::uint64_t address, void* data, std::size_t size);
    bool write_memory(std::uint64_t address, const void* data,
                      std::size_t size);
    template <typename T>
    T load(std::uint64_t address) {
        T value{};
        read_memory(address, &value, sizeof value);
        return value;
    }
    template <typename T>
    void store(std::uint64_t address, T value) {
        write_memory(address, &value, sizeof value);
    }

    // The host's control of the card. Bus mastering is off at first. Reset and
    // detaching answer, undone, the BAR accesses that the bus has not taken.
    void set_bus_master(bool on);
    void set_attached(bool on);
    void reset_card();
    bool bus_master() const { return m_bus_master; }

    // BAR accesses of 1, 2, 4 or 8 bytes, in order; split-phase. `done` is
    // called with the value (of a write: 0) when the answer is there.
    using bar_done = std::function<void(std::uint64_t)>;
    void read(unsigned bar, std::uint64_t offset, unsigned size, bar_done done);
    void write(unsigned bar, std::uint64_t offset, unsigned size,
               std::uint64_t value, bool posted = true, bar_done done = {});
    // The same for an SC_THREAD, which waits for the answer.
    std::uint64_t read(unsigned bar, std::uint64_t offset, unsigned size);
    void write_and_wait(unsigned bar, std::uint64_t offset, unsigned size,
                        std::uint64_t value);
    std::size_t bar_accesses() const { return m_bar_under_way; }

    // Interrupts, with the time at which they arrived.
    struct interrupt {
        sc_core::sc_time time;
        unsigned vector;
    };
    const std::vector<interrupt>& interrupts() const { return m_interrupts; }
    const sc_core::sc_event& interrupted() const { return m_interrupted; }
    bool intx_level() const { return m_intx; }
    void msix(unsigned vector) override;
    void intx(bool level) override;

    // Every DMA that arrived, in order, for tests that ask for it.
    struct access {
        sc_core::sc_time time;
        bool write;
        bool ok;
        std::uint16_t context;
        std::uint64_t address;
        std::uint32_t length;
    };
    void record(bool on) { m_record = on; }
    std::vector<access>& accesses() { return m_accesses; }

    // A slow host: DMA is accepted and carried out, or carried out and
    // answered, only by release(). With a limit, no more than that many are
    // accepted before one is released.
    enum class hold { NOTHING, BEFORE_ACCESS, BEFORE_ANSWER };
    void set_hold(hold what, std::size_t limit = ~std::size_t{0});
    std::size_t held() const { return m_held.size(); }
    void release(std::size_t count = 1);

private:
    struct bar_payload : tlm::tlm_generic_payload {
        using tlm::tlm_generic_payload::tlm_generic_payload;
        std::uint64_t value = 0;
        bar_done done;
        bar_extension* extension = nullptr;
    };
    struct payload_pool : tlm::tlm_mm_interface {
        std::vector<std::unique_ptr<bar_payload>> all;
        std::vector<bar_payload*> unused;
        bar_payload* get();
        void free(tlm::tlm_generic_payload* trans) override;
    };
    using page = std::array<std::uint8_t, 4096>;

    tlm::tlm_sync_enum dma(tlm::tlm_generic_payload& trans,
                           tlm::tlm_phase& phase);
    unsigned peek(tlm::tlm_generic_payload& trans);
    tlm::tlm_sync_enum bar_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    std::uint8_t* region(std::uint64_t address, std::size_t size);
    void carry_out(tlm::tlm_generic_payload& trans);
    void access_bar(bar_payload& p);
    void send_bar();
    void drop_bar_queue();
    void finish_bar(bar_payload& p);

    const memory_host_config m_config;
    std::vector<std::uint8_t> m_region;
    std::unordered_map<std::uint64_t, std::unique_ptr<page>> m_pages;
    bool m_bus_master = false;

    forward_end<memory_host> m_dma_end;
    backward_end<memory_host> m_bar_end;

    payload_pool m_payloads;
    ring<bar_payload*> m_bar_queue;
    bool m_bar_blocked = false;  // END_REQ to come
    std::size_t m_bar_under_way = 0;
    std::uint64_t m_order = 0;

    std::vector<interrupt> m_interrupts;
    sc_core::sc_event m_interrupted;
    bool m_intx = false;

    bool m_record = false;
    std::vector<access> m_accesses;
    hold m_hold = hold::NOTHING;
    std::size_t m_hold_limit = 0;
    ring<tlm::tlm_generic_payload*> m_held;
    tlm::tlm_generic_payload* m_door = nullptr;  // END_REQ owed
};

}  // namespace prawn

#endif
