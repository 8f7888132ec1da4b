// SPDX-License-Identifier: Apache-2.0
// Ends of TLM-2.0 sockets for modules that have several: each calls a member
// function for nb_transport. What the host port does not use is refused; debug
// transport too, unless a function for it is given.

#ifndef PRAWN_HOST_TRANSPORT_H
#define PRAWN_HOST_TRANSPORT_H

#include <tlm>

namespace prawn {

template <typename OWNER>
class forward_end final : public tlm::tlm_fw_transport_if<>
{
public:
    using call = tlm::tlm_sync_enum (OWNER::*)(tlm::tlm_generic_payload&,
                                               tlm::tlm_phase&);
    using debug_call = unsigned (OWNER::*)(tlm::tlm_generic_payload&);
    forward_end(OWNER& owner, call f, debug_call debug = nullptr) :
        m_owner(owner), m_call(f), m_debug(debug) {}

    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& trans,
                                       tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
        return (m_owner.*m_call)(trans, phase);
    }
    void b_transport(tlm::tlm_generic_payload& trans,
                     sc_core::sc_time&) override {
        trans.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    }
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override {
        return false;
    }
    unsigned transport_dbg(tlm::tlm_generic_payload& trans) override {
        return m_debug ? (m_owner.*m_debug)(trans) : 0;
    }

private:
    OWNER& m_owner;
    call m_call;
    debug_call m_debug;
};

template <typename OWNER>
class backward_end final : public tlm::tlm_bw_transport_if<>
{
public:
    using call = tlm::tlm_sync_enum (OWNER::*)(tlm::tlm_generic_payload&,
                                               tlm::tlm_phase&);
    backward_end(OWNER& owner, call f) : m_owner(owner), m_call(f) {}

    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& trans,
                                       tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
        return (m_owner.*m_call)(trans, phase);
    }
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

private:
    OWNER& m_owner;
    call m_call;
};

// One call on a socket, at the current time. The phase comes back.
template <typename SOCKET>
tlm::tlm_sync_enum send_forward(SOCKET& socket, tlm::tlm_generic_payload& trans,
                                tlm::tlm_phase& phase) {
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    return socket->nb_transport_fw(trans, phase, delay);
}
template <typename SOCKET>
void send_backward(SOCKET& socket, tlm::tlm_generic_payload& trans,
                   tlm::tlm_phase phase) {
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->nb_transport_bw(trans, phase, delay);
}

}  // namespace prawn

#endif
