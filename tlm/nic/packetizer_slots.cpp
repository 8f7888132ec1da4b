// SPDX-License-Identifier: Apache-2.0
// Packetizer: slots, and everything that a slot can be counted in.
#include "nic/packetizer.h"

namespace prawn {

// Tag: generation 31:14, slot 13:1, part 0.
std::uint32_t packetizer::tag(std::uint16_t i, unsigned part) const {
    return m_generation << 14 | std::uint32_t{i} << 1 | part;
}

// The slot of a tag; NONE if it was asked for before a reset.
std::uint16_t packetizer::find(std::uint32_t t) const {
    const auto i = static_cast<std::uint16_t>(t >> 1 & 0x1fff);
    const bool current = t >> 14 == (m_generation & 0x3ffff);
    return current && i < m_slots.size() ? i : NONE;
}

// The slot that an answer is for, its request taken off; NONE if nobody waits
// for it.
std::uint16_t packetizer::find(std::uint32_t t, unsigned ask) {
    const std::uint16_t i = find(t);
    const auto bit = static_cast<std::uint8_t>(ask << (t & 1));
    if (i == NONE || (m_slots[i].asked & bit) == 0) {
        m_unexpected++;
        return NONE;
    }
    m_slots[i].asked &= static_cast<std::uint8_t>(~bit);
    return i;
}

std::uint16_t packetizer::take_slot() {
    const std::uint16_t i = m_free.back();
    m_free.pop_back();
    return i;
}

// Back to the free ones, if no answer is still to come.
void packetizer::free_slot(std::uint16_t i) {
    slot& s = m_slots[i];
    if (s.asked != 0 || s.reads != 0)
        return;
    leave_lookup(s);
    leave_window(s);
    if (s.parked)
        m_contexts[s.context].parked--;
    restartable(s.context);
    end_tracking(s);
    s.pkt.reset();
    s.at = stage::FREE;
    s.cancelled = false;
    s.parked = false;
    s.answered = false;
    s.admitted = false;
    s.peer = UNKNOWN;
    s.to_ask = 0;
    s.read = 0;
    s.status = PRAWN_STATUS_OK;
    s.detail = 0;
    s.fault = 0;
    m_free.push_back(i);
}

// Takes a slot out of everything but what its pending answers need.
void packetizer::cancel(std::uint16_t i) {
    slot& s = m_slots[i];
    leave_lane(i);
    if (s.at != stage::QUEUED)
        leave_context(i);
    s.to_ask = 0;
    s.cancelled = true;
    free_slot(i);
}

void packetizer::leave_lookup(slot& s) {
    if (!s.in_lookup)
        return;
    s.in_lookup = false;
    m_contexts[s.context].lookups--;
    restartable(s.context);
}

void packetizer::leave_window(slot& s) {
    if (!s.in_window)
        return;
    s.in_window = false;
    context_state& c = m_contexts[s.context];
    c.packets--;
    c.bytes -= s.length;
    restartable(s.context);
}

void packetizer::leave_context(std::uint16_t i) {
    context_state& c = m_contexts[m_slots[i].context];
    if (c.unadmitted == i)
        c.unadmitted = c.slots.next(m_order, i);
    c.slots.remove(m_order, i);
}

void packetizer::leave_lane(std::uint16_t i) {
    slot& s = m_slots[i];
    if (!s.in_lane)
        return;
    s.in_lane = false;
    if (s.at == stage::DMA) {
        drop_reads(i);
    } else if (s.at == stage::QUEUED) {
        peer_state& p = m_peers[s.peer];
        p.ready.remove(m_lane, i);
        if (--p.queued < m_params.peer_ready) {
            m_startable |= p.waiters;
            p.waiters = 0;
        }
    } else {
        m_asking.remove(m_lane, i);
    }
}

void packetizer::end_tracking(slot& s) {
    if (!s.tracked)
        return;
    s.tracked = false;
    m_drain.end(s.drain);
}

}  // namespace prawn
