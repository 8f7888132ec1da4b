// SPDX-License-Identifier: Apache-2.0
#include "nic/csr.h"

#include <cstring>

#include "support/crc32c.h"

namespace prawn {

namespace {

const bar_extension NO_EXTENSION;

}  // namespace

csr::csr(sc_core::sc_module_name name, const block_env& env,
         const csr_identity& identity) :
    csr_base(name, env, block_id::CSR),
    m_identity(identity),
    m_profile_id(crc32c(env.profile->name.data(), env.profile->name.size())),
    m_due("due"),
    m_reset_due("reset_due"),
    m_ready_due("ready_due"),
    m_reads(env.counters->add("csr.reads")),
    m_writes(env.counters->add("csr.writes")),
    m_bad(env.counters->add("csr.bad_access")),
    m_not_ready(env.counters->add("csr.not_ready")),
    m_proxy_loads(env.counters->add("csr.proxy_loads")),
    m_proxy_stores(env.counters->add("csr.proxy_stores")),
    m_ignored_doorbells(env.counters->add("csr.ignored_doorbells")),
    m_doorbells(env.counters->add_per_context("csr.doorbells")) {
    SC_HAS_PROCESS(csr);
    m_cause_in.owner = this;
    m_control_in.owner = this;
    bar_in.bind(*static_cast<tlm::tlm_fw_transport_if<>*>(this));
    SC_METHOD(serve);
    dont_initialize();
    sensitive << m_due;
    SC_METHOD(do_reset);
    dont_initialize();
    sensitive << m_reset_due;
    SC_METHOD(become_ready);
    dont_initialize();
    sensitive << m_ready_due;
    m_ready_due.notify(cycles(READY_CYCLES));
}

bool csr::cause_input::try_put(unsigned& bits) {
    owner->m_cause |= bits;
    owner->update_intx();
    return true;
}

// There is nothing to drain: no access outlasts its cycles.
bool csr::control_input::try_put(control_request& request) {
    const bool drain = request.op == control_op::DRAIN;
    owner->reply(request.tag,
                 drain ? PRAWN_STATUS_OK : PRAWN_STATUS_BAD_OPCODE);
    return true;
}

tlm::tlm_sync_enum csr::nb_transport_fw(tlm::tlm_generic_payload& trans,
                                        tlm::tlm_phase& phase,
                                        sc_core::sc_time&) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_COMPLETED;  // END_RESP of a verbose initiator
    trans.acquire();
    if (m_waiting.size() >= DEPTH) {
        m_refused = &trans;
        return tlm::TLM_ACCEPTED;
    }
    m_waiting.push_back(&trans);
    schedule();
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
}

// For loosely timed initiators (a debugger): at once, no time charged.
void csr::b_transport(tlm::tlm_generic_payload& trans, sc_core::sc_time&) {
    execute(trans);
}

void csr::schedule() {
    if (m_busy || m_waiting.empty())
        return;
    m_busy = true;
    m_due.notify(
        cycles(m_waiting.front()->is_read() ? READ_CYCLES : WRITE_CYCLES));
}

void csr::serve() {
    m_busy = false;
    if (m_waiting.empty())
        return;
    tlm::tlm_generic_payload* trans = m_waiting.front();
    m_waiting.pop_front();
    execute(*trans);
    finish(*trans);
    if (m_refused && m_waiting.size() < DEPTH) {
        tlm::tlm_generic_payload* accepted = m_refused;
        m_refused = nullptr;
        m_waiting.push_back(accepted);
        tlm::tlm_phase phase = tlm::END_REQ;
        sc_core::sc_time delay;
        bar_in->nb_transport_bw(*accepted, phase, delay);
    }
    schedule();
}

void csr::finish(tlm::tlm_generic_payload& trans) {
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay;
    trans.set_response_status(tlm::TLM_OK_RESPONSE);
    bar_in->nb_transport_bw(trans, phase, delay);
    trans.release();
}

void csr::execute(tlm::tlm_generic_payload& trans) {
    const auto* extension = trans.get_extension<bar_extension>();
    if (!extension)
        extension = &NO_EXTENSION;
    const unsigned size = trans.get_data_length();
    const access a{extension->bar, trans.get_address(), size};
    const bool sound = (size == 1 || size == 2 || size == 4 || size == 8) &&
                       a.offset % size == 0;
    const std::uint64_t where = (a.offset & 0xffffffff) |
                                static_cast<std::uint64_t>(a.bar) << 32 |
                                static_cast<std::uint64_t>(size) << 40;
    std::uint64_t value = 0;
    if (trans.is_read()) {
        m_reads++;
        if (sound)
            value = read(a);
        else
            bad_access();
        m_events.emit(event_kind::BAR_READ, {}, where, value);
        if (size <= sizeof(value))
            std::memcpy(trans.get_data_ptr(), &value, size);
        else
            std::memset(trans.get_data_ptr(), 0, size);
    } else {
        m_writes++;
        if (size <= sizeof(value))
            std::memcpy(&value, trans.get_data_ptr(), size);
        m_events.emit(event_kind::BAR_WRITE, {}, where, value);
        if (sound)
            write(a, value);
        else
            bad_access();
    }
}

void csr::do_reset() {
    if (m_resetting)
        backend->reset_card();
}

void csr::become_ready() {
    m_ready = true;
}

void csr::reset() {
    const bool own = m_resetting;  // by CTRL.RESET: what waits is served
    m_resetting = false;
    m_reset_due.cancel();
    m_ready = false;
    m_ready_due.cancel();
    m_ready_due.notify(cycles(READY_CYCLES));
    m_enabled = false;
    m_cause = m_int_enable = 0;
    m_counter_select = 0;
    m_admin_base = m_ack_base = m_event_base = 0;
    m_admin_log2 = m_event_log2 = 0;
    m_fifo_threshold = 0;
    update_intx();
    if (own)
        return;
    m_due.cancel();
    m_busy = false;
    // Whoever is answered may ask again at once: take the list first.
    std::deque<tlm::tlm_generic_payload*> answered;
    answered.swap(m_waiting);
    if (m_refused)
        answered.push_back(m_refused);
    m_refused = nullptr;
    for (tlm::tlm_generic_payload* trans : answered) {
        if (trans->is_read())
            std::memset(trans->get_data_ptr(), 0, trans->get_data_length());
        finish(*trans);
    }
}

}  // namespace prawn
