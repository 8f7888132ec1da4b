// SPDX-License-Identifier: Apache-2.0
#include "nic/opt.h"

#include <algorithm>

namespace prawn {

opt::opt(sc_core::sc_module_name name, const block_env& env) :
    opt_base(name, env, block_id::OPT),
    m_table(PRAWN_OPT_ENTRIES),
    m_cycle(env.profile->card_clock.value()),
    m_latency(m_cycle * LOOKUP_CYCLES + env.profile->sram_access.value()),
    m_request_in("request_in", *this),
    m_control("control_in", CONTROL_WINDOW),
    m_wake("wake"),
    m_lookups(env.counters->add("opt.lookups")),
    m_bad_import(env.counters->add("opt.bad_import")),
    m_out_of_range(env.counters->add("opt.out_of_range")),
    m_import_error(env.counters->add("opt.import_error")),
    m_errors_entered(env.counters->add("opt.errors_entered")),
    m_errors_ignored(env.counters->add("opt.errors_ignored")),
    m_of_context(env.counters->add_per_context("opt.context_lookups")),
    m_refused_of_context(env.counters->add_per_context("opt.context_refused")) {
    SC_HAS_PROCESS(opt);
    SC_METHOD(step);
    dont_initialize();
    sensitive << m_wake << m_control.arrived();
}

void opt::reset() {
    std::fill(m_table.begin(), m_table.end(), entry());
    m_count = 0;
    m_next = 0;
    m_wake.cancel();
    m_control.clear();
    m_request_in.has_room();
}

bool opt::take_request(opt_request& r) {
    if (m_count == PIPELINE)
        return false;
    const std::uint64_t now = now_ps();
    const std::uint64_t slot = std::max(now, m_next);
    m_next = slot + m_cycle;
    m_pipe[(m_first + m_count++) % PIPELINE] = {slot + m_latency, r};
    if (m_count == 1)
        m_wake.notify(sc_core::sc_time::from_value(slot + m_latency - now));
    return true;
}

void opt::step() {
    while (!m_control.empty())
        control(m_control.pop());

    const std::uint64_t now = now_ps();
    while (m_count != 0 && m_pipe[m_first].due <= now) {
        lookup(m_pipe[m_first].request);
        m_first = (m_first + 1) % PIPELINE;
        m_count--;
        m_request_in.has_room();
    }
    if (m_count != 0)
        m_wake.notify(sc_core::sc_time::from_value(m_pipe[m_first].due - now));
}

std::uint16_t opt::check(const opt_request& r, const entry& e) const {
    if (!e.valid || e.context != r.context)
        return PRAWN_STATUS_BAD_IMPORT;
    if (e.error != PRAWN_STATUS_OK)
        return PRAWN_STATUS_IMPORT_ERROR;
    if (r.offset > e.length || r.length > e.length - r.offset)
        return PRAWN_STATUS_OUT_OF_RANGE;
    return PRAWN_STATUS_OK;
}

void opt::lookup(const opt_request& r) {
    static const entry nothing;
    const entry& e =
        r.import_id < m_table.size() ? m_table[r.import_id] : nothing;
    opt_reply reply;
    reply.tag = r.tag;
    reply.status = check(r, e);
    m_lookups++;
    m_of_context[r.context]++;
    switch (reply.status) {
        case PRAWN_STATUS_OK:
            reply.node = e.node;
            reply.epoch = e.epoch;
            reply.export_id = e.export_id;
            reply.key = e.key;
            break;
        case PRAWN_STATUS_IMPORT_ERROR:
            reply.detail = e.error;
            m_import_error++;
            break;
        case PRAWN_STATUS_OUT_OF_RANGE:
            m_out_of_range++;
            break;
        default:
            m_bad_import++;
    }
    if (reply.status != PRAWN_STATUS_OK)
        m_refused_of_context[r.context]++;
    m_events.emit(event_kind::OPT_LOOKUP, subject(r, m_env.node), r.import_id,
                  reply.status);
    reply_out->try_put(reply);
}

std::uint16_t opt::set(const control_request& r) {
    const std::uint64_t node = r.a & 0xffff;
    if (r.context >= PRAWN_CONTEXTS)
        return PRAWN_STATUS_BAD_CONTEXT;
    if (r.index >= m_table.size() || node >= m_env.nodes ||
        node >= PRAWN_MAX_NODES || r.e != 0 || r.f != 0)
        return PRAWN_STATUS_BAD_FIELD;
    entry& e = m_table[r.index];
    e.valid = true;
    e.error = PRAWN_STATUS_OK;
    e.context = r.context;
    e.node = static_cast<std::uint16_t>(node);
    e.epoch = static_cast<std::uint16_t>(r.a >> 16);
    e.export_id = static_cast<std::uint32_t>(r.a >> 32);
    e.key = r.b;
    e.length = r.c;
    e.cookie = r.d;
    e.life = r.life;
    return PRAWN_STATUS_OK;
}

void opt::enter_error(std::uint32_t index, std::uint16_t status) {
    entry& e = m_table[index];
    e.error = status;
    m_errors_entered++;
    m_events.emit(event_kind::ERROR,
                  message_id::of_context(m_env.node, e.context), status, index);
    notification_request n;
    n.context = e.context;
    n.life = e.life;
    n.entry.cookie = e.cookie;
    n.entry.delivered = now_ps();
    n.entry.id = index;
    n.entry.source_node = e.node;
    n.entry.type = PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR;
    n.entry.status = status;
    notify_out->try_put(n);
}

std::uint16_t opt::import_error(const control_request& r) {
    const auto status = static_cast<std::uint16_t>(r.a);
    if (r.index >= m_table.size() || status == PRAWN_STATUS_OK || r.a >> 16)
        return PRAWN_STATUS_BAD_FIELD;
    const entry& e = m_table[r.index];
    const bool other = r.b != 0 && r.b != expected(e.node, e.export_id);
    if (!e.valid || other)
        return PRAWN_STATUS_BAD_IMPORT;
    if (e.error == PRAWN_STATUS_OK)  // the first reason stays
        enter_error(r.index, status);
    return PRAWN_STATUS_OK;
}

void opt::control(const control_request& r) {
    std::uint16_t status = PRAWN_STATUS_OK;
    std::uint32_t hit = 0;
    switch (r.op) {
        case control_op::SET:
            status = set(r);
            break;
        case control_op::CLEAR:
            if (r.index < m_table.size())
                m_table[r.index] = entry();
            else
                status = PRAWN_STATUS_BAD_FIELD;
            break;
        case control_op::PEER_ERROR:
            if (r.index >= PRAWN_MAX_NODES || r.a == PRAWN_STATUS_OK ||
                r.a >> 16) {
                status = PRAWN_STATUS_BAD_FIELD;
                break;
            }
            for (std::uint32_t i = 0; i < m_table.size(); i++) {
                const entry& e = m_table[i];
                if (!e.valid || e.node != r.index || e.error != PRAWN_STATUS_OK)
                    continue;
                enter_error(i, static_cast<std::uint16_t>(r.a));
                hit++;
            }
            break;
        case control_op::IMPORT_ERROR:
            status = import_error(r);
            if (status != PRAWN_STATUS_OK)
                m_errors_ignored++;
            break;
        case control_op::CONTEXT_DISABLE:
            for (entry& e : m_table) {
                if (!e.valid || e.context != r.context)
                    continue;
                e = entry();
                hit++;
            }
            break;
        case control_op::DRAIN:  // begins no host DMA
            break;
        default:
            status = PRAWN_STATUS_BAD_OPCODE;
    }
    reply(r.tag, status, hit);
}

}  // namespace prawn
