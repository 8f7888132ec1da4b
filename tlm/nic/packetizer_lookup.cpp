// SPDX-License-Identifier: Apache-2.0
// Packetizer: OPT lookup and translation of a packet, admission to its peer.
#include "nic/packetizer.h"

namespace prawn {

// Puts what is still to be asked; what is refused is tried again when any
// block has room. A refusal may concern this context only, so that others go
// on trying.
void packetizer::ask(std::uint16_t i) {
    slot& s = m_slots[i];
    if ((s.to_ask & ASK_OPT) && ask_opt(i)) {
        s.to_ask &= static_cast<std::uint8_t>(~ASK_OPT);
        s.asked |= ASK_OPT;
    }
    for (unsigned part = 0; part < PARTS; part++) {
        const auto bit = static_cast<std::uint8_t>(ASK_UTLB << part);
        if ((s.to_ask & bit) && ask_utlb(i, part)) {
            s.to_ask &= static_cast<std::uint8_t>(~bit);
            s.asked |= bit;
        }
    }
    if (s.to_ask == 0) {
        leave_lane(i);
    } else if (!s.in_lane) {
        s.in_lane = true;
        m_asking.push_back(m_lane, i);
        m_ask_stalls++;
    }
}

bool packetizer::ask_opt(std::uint16_t i) {
    const slot& s = m_slots[i];
    const prawn_command& command = job_of(s).what.command;
    opt_request r;
    r.tag = tag(i);
    r.context = s.context;
    r.import_id = command.import_id;
    r.offset = command.offset + s.offset;
    r.length = command.length - s.offset;
    r.message = {m_env.node, s.context, job_of(s).what.message};
    return opt_out->try_put(r);
}

bool packetizer::ask_utlb(std::uint16_t i, unsigned part) {
    const slot& s = m_slots[i];
    const prawn_command& command = job_of(s).what.command;
    utlb_request r;
    r.tag = tag(i, part);
    r.context = s.context;
    r.va = command.source + s.offset + (part == 0 ? 0 : s.part[0]);
    r.hint = command.utlb_index +
             static_cast<std::uint32_t>((r.va >> PRAWN_PAGE_SHIFT) -
                                        (command.source >> PRAWN_PAGE_SHIFT));
    r.message = {m_env.node, s.context, job_of(s).what.message};
    return utlb_out->try_put(r);
}

bool packetizer::take_opt(opt_reply& r) {
    const std::uint16_t i = find(r.tag, ASK_OPT);
    if (i == NONE)
        return true;
    slot& s = m_slots[i];
    if (s.cancelled) {
        free_slot(i);
    } else {
        s.target = r;
        s.answered = true;
        admit(s.context);
    }
    kick();
    return true;
}

bool packetizer::take_utlb(utlb_reply& r) {
    const std::uint16_t i = find(r.tag, ASK_UTLB);
    if (i == NONE)
        return true;
    slot& s = m_slots[i];
    if (s.cancelled) {
        free_slot(i);
    } else {
        s.page[r.tag & 1] = r;
        looked_up(i);
    }
    kick();
    return true;
}

// In the order of their start, so that a packet that has to wait for its peer
// keeps back those behind it.
void packetizer::admit(std::uint16_t context) {
    context_state& c = m_contexts[context];
    while (c.unadmitted != NONE && m_slots[c.unadmitted].answered) {
        const std::uint16_t i = c.unadmitted;
        c.unadmitted = c.slots.next(m_order, i);
        decide(i);
    }
}

void packetizer::decide(std::uint16_t i) {
    slot& s = m_slots[i];
    job& j = job_of(s);
    const opt_reply& t = s.target;
    if (t.status != PRAWN_STATUS_OK) {
        fail(i, t.status, t.detail);
        return;
    }
    const bool changed =
        j.bound && (t.node != j.target.node || t.epoch != j.target.epoch ||
                    t.export_id != j.target.export_id || t.key != j.target.key);
    if (changed || t.node >= m_peers.size() ||
        (s.peer != UNKNOWN && s.peer != t.node)) {
        fail(i, PRAWN_STATUS_BAD_IMPORT);
        return;
    }
    if (s.peer == UNKNOWN) {
        j.peer = t.node;
        if (must_wait(s.context, j)) {
            withdraw(i);
            return;
        }
        s.peer = t.node;
    }
    j.bound = true;
    j.target = t;
    s.admitted = true;
    restartable(s.context);
    looked_up(i);
}

// Too much waits for its peer, or an earlier job does.
bool packetizer::must_wait(std::uint16_t context, const job& j) {
    if (m_peers[j.peer].queued >= m_params.peer_ready)
        return true;
    context_state& c = m_contexts[context];
    for (unsigned i = 0; &c.at(i) != &j; i++)
        if (!c.at(i).all_started && c.at(i).peer == j.peer)
            return true;
    return false;
}

// Undoes the start of a job's first packet.
void packetizer::withdraw(std::uint16_t i) {
    slot& s = m_slots[i];
    job& j = job_of(s);
    context_state& c = m_contexts[s.context];
    m_withdrawn++;
    j.started = 0;
    j.in_flight--;
    if (j.all_started) {
        j.all_started = false;
        c.unstarted++;
    }
    m_peers[j.peer].waiters |= context_mask{1} << s.context;
    enter_turn(s.context);
    cancel(i);
}

void packetizer::looked_up(std::uint16_t i) {
    slot& s = m_slots[i];
    constexpr unsigned TRANSLATIONS = ASK_UTLB | ASK_UTLB << 1;
    if (!s.admitted || ((s.asked | s.to_ask) & TRANSLATIONS) != 0)
        return;
    leave_lookup(s);
    for (unsigned part = 0; part < PARTS; part++) {
        if (s.part[part] == 0 || s.page[part].status == PRAWN_STATUS_OK)
            continue;
        if (s.page[part].status == PRAWN_STATUS_NOT_PINNED) {
            const std::uint64_t va = job_of(s).what.command.source + s.offset +
                                     (part == 0 ? 0 : s.part[0]);
            s.fault = va & ~std::uint64_t{PRAWN_PAGE_SIZE - 1};
        }
        fail(i, s.page[part].status);
        return;
    }
    make_packet(i);
    if (s.length == 0)
        done(i);
    else
        begin_reads(i);
}

}  // namespace prawn
