// SPDX-License-Identifier: Apache-2.0
// The card: makes the blocks that the configuration names and wires their
// contracts. Has no function of its own beside reset and what the registers
// show of the whole.

#ifndef PRAWN_NIC_NIC_H
#define PRAWN_NIC_NIC_H

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/grant_checker.h"
#include "host/host_port.h"
#include "nic/contracts.h"
#include "nic/csr.h"

namespace prawn {

// Names of the blocks as in blocks.NAME of a configuration.
const std::vector<std::string>& block_names();

struct nic_config {
    // Blocks with a test twin in front of every input.
    std::set<std::string> twins;
    std::uint64_t twin_seed = 1;
    double twin_delay_ns = 200;
    unsigned twin_refuse_one_in = 4;

    // UTLB as after reset; the driver may choose another geometry.
    unsigned utlb_log2_entries = 10;
    unsigned utlb_log2_ways = 2;
    bool utlb_offset = true;
    unsigned utlb_log2_prefetch = 3;
    unsigned packetizer_max_payload = PRAWN_MAX_PAYLOAD;
    unsigned packetizer_window = 16;
    unsigned outgoing_fifo_depth = 16;
    unsigned incoming_dma_window = 16;

    csr_identity identity;
};

// The blocks of one card, by contract.
struct nic_blocks {
    std::unique_ptr<csr_base> csr;
    std::unique_ptr<admin_queue_base> admin_queue;
    std::unique_ptr<command_queue_base> command_queue;
    std::unique_ptr<utlb_base> utlb;
    std::unique_ptr<dma_engine_base> dma_engine;
    tlm::tlm_initiator_socket<>* dma_bus = nullptr;  // of dma_engine
    std::unique_ptr<opt_base> opt;
    std::unique_ptr<packetizer_base> packetizer;
    std::unique_ptr<outgoing_fifo_base> outgoing_fifo;
    std::unique_ptr<reliable_base> reliable;
    std::unique_ptr<link_mac_base> link_mac;
    std::unique_ptr<depacketizer_base> depacketizer;
    std::unique_ptr<ipt_base> ipt;
    std::unique_ptr<incoming_dma_base> incoming_dma;
    std::unique_ptr<notifier_base> notifier;
    std::unique_ptr<ptp_clock_base> ptp_clock;

    // Every block, in the order in which they are reset.
    std::vector<block*> all() const;
};

// The only place that knows implementations. To be called in the constructor
// of the module that will own the blocks. Throws std::invalid_argument.
nic_blocks make_blocks(const nic_config& config, const block_env& env);

class nic final : public sc_core::sc_module,
                  public card_control_if,
                  private csr_backend_if
{
public:
    tlm::tlm_target_socket<> bar_in{"bar_in"};
    tlm::tlm_initiator_socket<> dma_out{"dma_out"};
    sc_core::sc_port<interrupt_if> interrupt_out{"interrupt_out"};
    put_port<packet_ref> link_out{"link_out"};
    put_port<unsigned> credit_out{"credit_out"};
    // Unbound: model time.
    sc_core::sc_port<time_base_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> time_base{
        "time_base"};

    // checker: what GRANT and REVOKE go to, or null.
    nic(sc_core::sc_module_name name, const block_env& env,
        const nic_config& config, grant_checker* checker = nullptr);
    ~nic() override;

    put_if<packet_ref>& link_in() { return *m_link_in; }
    put_if<unsigned>& credit_in() { return *m_credit_in; }

    // card_control_if.
    void reset() override;
    void set_bus_master(bool on) override { m_bus_master = on; }
    void set_attached(bool on) override;

private:
    class wiring;

    // csr_backend_if.
    std::uint64_t features() const override;
    std::uint32_t status() const override;
    std::uint16_t epoch() const override { return m_blocks.reliable->epoch(); }
    void reset_card() override { reset(); }
    void enable_card(bool on) override;
    void set_admin_ring(std::uint64_t base, unsigned log2) override;
    void set_ack_ring(std::uint64_t base, unsigned log2) override;
    void set_event_ring(std::uint64_t base, unsigned log2) override;
    void ring_admin(std::uint32_t producer) override {
        m_blocks.admin_queue->ring_doorbell(producer);
    }
    std::uint32_t utlb_mode() const override { return m_blocks.utlb->mode(); }
    void set_utlb_mode(std::uint32_t mode) override {
        m_blocks.utlb->set_mode(mode);
    }
    std::uint32_t utlb_geometry() const override {
        return m_blocks.utlb->geometry();
    }
    void set_utlb_geometry(std::uint32_t geometry) override {
        m_blocks.utlb->set_geometry(geometry);
    }
    std::uint32_t fifo_level() const override {
        return m_blocks.outgoing_fifo->level();
    }
    void set_fifo_threshold(std::uint32_t bytes) override {
        m_blocks.outgoing_fifo->set_threshold(bytes);
    }
    std::uint32_t context_state(std::uint16_t context) const override {
        return m_blocks.command_queue->context_state(context);
    }
    std::uint64_t read_ptp(std::uint64_t offset, unsigned size) override {
        return m_blocks.ptp_clock->read(offset, size);
    }
    void write_ptp(std::uint64_t offset, unsigned size,
                   std::uint64_t value) override {
        m_blocks.ptp_clock->write(offset, size, value);
    }
    void set_intx(bool level) override { interrupt_out->intx(level); }

    // Rings that registers name are granted by that; the rest by GRANT.
    struct kernel_ring {
        std::uint64_t base = 0;
        std::uint64_t pages = 0;
    };
    enum kernel_ring_id : unsigned { ADMIN, ACK, EVENT, KERNEL_RINGS };
    void grant_ring(kernel_ring_id id, std::uint64_t base, unsigned log2,
                    std::size_t entry, bool write);
    void check_failed();

    const block_env m_env;
    event_source m_events;
    grant_checker* m_checker;
    nic_blocks m_blocks;
    std::vector<std::shared_ptr<void>> m_parts;  // twins, sinks
    std::vector<std::function<void()>> m_twin_resets;
    put_if<packet_ref>* m_link_in = nullptr;
    put_if<unsigned>* m_credit_in = nullptr;
    std::array<kernel_ring, KERNEL_RINGS> m_rings;
    bool m_enabled = false;
    bool m_bus_master = false;
    counter& m_resets;
};

}  // namespace prawn

#endif
