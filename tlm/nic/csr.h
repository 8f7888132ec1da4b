// SPDX-License-Identifier: Apache-2.0
// Control and status registers: the target of every BAR access.

#ifndef PRAWN_NIC_CSR_H
#define PRAWN_NIC_CSR_H

#include <array>
#include <cstdint>
#include <deque>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "nic/contracts.h"

namespace prawn {

// What stands behind the registers that belong to the card as a whole or to
// another block. Implemented by the card's top; nothing here waits.
class csr_backend_if : public virtual sc_core::sc_interface
{
public:
    // Register FEATURES, and STATUS without READY.
    virtual std::uint64_t features() const = 0;
    virtual std::uint32_t status() const = 0;
    virtual std::uint16_t epoch() const = 0;

    // CTRL.RESET: resets every block at once, this one too.
    virtual void reset_card() = 0;
    virtual void enable_card(bool on) = 0;  // CTRL.ENABLE has changed

    virtual void set_admin_ring(std::uint64_t base, unsigned log2) = 0;
    virtual void set_ack_ring(std::uint64_t base, unsigned log2) = 0;
    virtual void set_event_ring(std::uint64_t base, unsigned log2) = 0;
    virtual void ring_admin(std::uint32_t producer) = 0;

    virtual std::uint32_t utlb_mode() const = 0;
    virtual void set_utlb_mode(std::uint32_t mode) = 0;
    virtual std::uint32_t utlb_geometry() const = 0;
    virtual void set_utlb_geometry(std::uint32_t geometry) = 0;
    virtual std::uint32_t fifo_level() const = 0;
    virtual void set_fifo_threshold(std::uint32_t bytes) = 0;
    virtual std::uint32_t context_state(std::uint16_t context) const = 0;

    // Registers PTP_*: an access of 4 or 8 bytes.
    virtual std::uint64_t read_ptp(std::uint64_t offset, unsigned size) = 0;
    virtual void write_ptp(std::uint64_t offset, unsigned size,
                           std::uint64_t value) = 0;

    virtual void set_intx(bool level) = 0;
};

// Serves the accesses of the host bus in order, each in a fixed number of
// cycles: no access waits for a DMA, for firmware or for another block. Rules
// of access as in hw/data/registers.toml; what breaks them reads as zero,
// writes nothing and is counted. MSI-X table and PBA belong to whoever serves
// the host's side of the protocol; here they are as any other hole.
//
// Without FEATURES.PROXY, a load from BAR 4 returns PROXY_STATUS.INVALID and a
// store is dropped and counted.
//
// reset() answers what waits (reads as zero). A reset by CTRL.RESET comes one
// cycle after the write has been answered and keeps what waits: a driver that
// polls CTRL or STATUS behind its write sees the truth.
class csr_base : public block
{
public:
    tlm::tlm_target_socket<> bar_in{"bar_in"};
    put_port<doorbell> doorbell_out{"doorbell_out"};
    put_port<ring_update> update_out{"update_out"};
    sc_core::sc_port<csr_backend_if> backend{"backend"};
    using block::block;
    // Bits of INT_CAUSE to set. Never refuses.
    virtual put_if<unsigned>& cause_in() = 0;
};

// What the registers that never change show.
struct csr_identity {
    std::uint32_t time_mode = 0;  // register TIME_MODE
};

class csr final : public csr_base, private tlm::tlm_fw_transport_if<>
{
public:
    // Cycles of the card's clock that an access occupies this block.
    static constexpr unsigned READ_CYCLES = 4;
    static constexpr unsigned WRITE_CYCLES = 1;
    // From a reset to STATUS.READY.
    static constexpr unsigned READY_CYCLES = 64;
    static constexpr std::size_t DEPTH = 32;

    csr(sc_core::sc_module_name name, const block_env& env,
        const csr_identity& identity = {});

    put_if<unsigned>& cause_in() override { return m_cause_in; }
    put_if<control_request>& control_in() override { return m_control_in; }
    void reset() override;
    bool ready() const { return m_ready; }

private:
    // Both inputs act at once.
    struct cause_input : put_if<unsigned> {
        csr* owner = nullptr;
        sc_core::sc_event never;
        bool try_put(unsigned& bits) override;
        const sc_core::sc_event& room() const override { return never; }
    };
    struct control_input : put_if<control_request> {
        csr* owner = nullptr;
        sc_core::sc_event never;
        bool try_put(control_request& request) override;
        const sc_core::sc_event& room() const override { return never; }
    };
    struct access {
        unsigned bar;
        std::uint64_t offset;
        unsigned size;
    };

    // Transport.
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& trans,
                                       tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override;
    void b_transport(tlm::tlm_generic_payload& trans,
                     sc_core::sc_time& delay) override;
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override {
        return false;
    }
    unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
    void schedule();
    void serve();
    void finish(tlm::tlm_generic_payload& trans);
    void execute(tlm::tlm_generic_payload& trans);
    void become_ready();
    void do_reset();

    // Registers; csr_registers.cpp.
    void bad_access();
    std::uint64_t read(const access& a);
    void write(const access& a, std::uint64_t value);
    std::uint64_t read_bar0(const access& a);
    void write_bar0(const access& a, std::uint64_t value);
    std::uint64_t read_doorbell_page(const access& a);
    void write_doorbell_page(const access& a, std::uint64_t value);
    std::uint64_t bar0_value(std::uint64_t offset) const;
    std::uint64_t counter_value() const;
    std::uint64_t counter_name(std::uint64_t word) const;
    void set_bar0(std::uint64_t offset, std::uint64_t value);
    void write_ctrl(std::uint64_t value);
    void update_intx();

    const csr_identity m_identity;
    const std::uint32_t m_profile_id;
    cause_input m_cause_in;
    control_input m_control_in;

    std::deque<tlm::tlm_generic_payload*> m_waiting;
    tlm::tlm_generic_payload* m_refused = nullptr;  // END_REQ still to come
    bool m_busy = false;
    sc_core::sc_event m_due;
    sc_core::sc_event m_reset_due;
    sc_core::sc_event m_ready_due;

    bool m_ready = false;
    bool m_resetting = false;  // CTRL.RESET written, reset_card not yet called
    bool m_enabled = false;
    bool m_intx = false;
    std::uint32_t m_cause = 0;
    std::uint32_t m_int_enable = 0;
    std::uint32_t m_counter_select = 0;
    std::uint64_t m_admin_base = 0, m_ack_base = 0, m_event_base = 0;
    std::uint32_t m_admin_log2 = 0, m_event_log2 = 0;
    std::uint32_t m_fifo_threshold = 0;

    counter& m_reads;
    counter& m_writes;
    counter& m_bad;
    counter& m_not_ready;
    counter& m_proxy_loads;
    counter& m_proxy_stores;
    counter& m_ignored_doorbells;
    context_counter& m_doorbells;
};

}  // namespace prawn

#endif
