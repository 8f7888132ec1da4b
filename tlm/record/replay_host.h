// SPDX-License-Identifier: Apache-2.0
// A host that does what a script says: the place of a guest in a replay. It
// has the sockets and nothing else; when to do what is the script's business.

#ifndef PRAWN_RECORD_REPLAY_HOST_H
#define PRAWN_RECORD_REPLAY_HOST_H

#include <cstdint>
#include <memory>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "record/recording.h"

namespace prawn {

// What decides. Called on the SystemC thread; may call the host back.
class replay_script
{
public:
    virtual ~replay_script() = default;

    // The time or the delta cycle asked for has come.
    virtual void step() = 0;

    // Answers to BAR accesses. accepted(): the bus takes what it had refused
    // at first, and the next access may go.
    virtual void accepted(std::uint64_t order) = 0;
    virtual void answered(bool read, std::uint64_t order,
                          std::uint64_t value) = 0;

    virtual void msix(unsigned vector) = 0;
    virtual void intx(bool level) = 0;

    // A DMA request, with its number at this host from 1 on.
    struct dma_access {
        std::uint64_t order = 0;
        bool write = false;
        std::uint8_t channel = 0;
        std::uint16_t context = 0;
        std::uint64_t address = 0;
        std::uint32_t length = 0;
        std::uint8_t* data = nullptr;  // of a read: to be filled
    };
    enum class dma_answer {
        OK,
        REFUSED,
        LATER,    // accepted; answer_dma() follows
        NOT_YET,  // accept_dma() and then answer_dma() follow
    };
    virtual dma_answer dma(const dma_access& a) = 0;
};

class replay_host final : public sc_core::sc_module, public interrupt_if
{
public:
    tlm::tlm_target_socket<> dma_in{"dma_in"};
    tlm::tlm_initiator_socket<> bar_out{"bar_out"};
    sc_core::sc_export<interrupt_if> interrupt_in{"interrupt_in"};
    sc_core::sc_port<card_control_if> control_out{"control_out"};

    explicit replay_host(sc_core::sc_module_name name);
    ~replay_host() override;

    // Before the simulation starts.
    void set_script(replay_script& script) { m_script = &script; }

    // step() at this time (not before now), once; replaces an earlier wish.
    void wake_at(std::uint64_t time_ps);
    void wake_next_delta();
    void wake_in_this_delta();

    // A BAR access with the fields of the record. Not while blocked().
    void access(const record& r);
    bool blocked() const { return m_blocked; }
    // ATTACH, DETACH, RESET or BUS_MASTER.
    void control(const record& r);

    // Requests that dma() has put off. False if there is no such request.
    bool accept_dma(std::uint64_t order);
    bool answer_dma(std::uint64_t order, bool ok, const std::uint8_t* data,
                    std::uint32_t size);

private:
    struct bar_payload : tlm::tlm_generic_payload {
        using tlm::tlm_generic_payload::tlm_generic_payload;
        std::uint64_t value = 0;
        bar_extension* extension = nullptr;
    };
    struct payload_pool : tlm::tlm_mm_interface {
        std::vector<std::unique_ptr<bar_payload>> all;
        std::vector<bar_payload*> unused;
        bar_payload* get();
        void free(tlm::tlm_generic_payload* trans) override;
    };
    struct held_dma {
        std::uint64_t order;
        tlm::tlm_generic_payload* trans;
        bool accepted;
    };

    void run_script() { m_script->step(); }
    tlm::tlm_sync_enum dma(tlm::tlm_generic_payload& trans,
                           tlm::tlm_phase& phase);
    tlm::tlm_sync_enum bar_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    void msix(unsigned vector) override { m_script->msix(vector); }
    void intx(bool level) override { m_script->intx(level); }

    replay_script* m_script = nullptr;
    sc_core::sc_event m_due;
    forward_end<replay_host> m_dma_end;
    backward_end<replay_host> m_bar_end;
    payload_pool m_payloads;
    bool m_blocked = false;
    std::uint64_t m_dma_order = 0;
    std::vector<held_dma> m_held;
};

}  // namespace prawn

#endif
