// SPDX-License-Identifier: Apache-2.0
// Packetizer: slots, and everything that a slot can be counted in.
#include "nic/packetizer.h"

namespace prawn {

// Tag: generation 31:12, slot 11:1, part 0.
std::uint32_t packetizer::tag(std::uint16_t i, unsigned part) const {
    return m_generation << 12 | std::uint32_t{i} << 1 | part;
}

// The slot that an answer is for, its request taken off; NONE if nobody waits
// for it (it was asked before a reset).
std::uint16_t packetizer::find(std::uint32_t t, unsigned ask) {
    const auto i = static_cast<std::uint16_t>(t >> 1 & 0x7ff);
    const auto bit = static_cast<std::uint8_t>(ask << (t & 1));
    if (t >> 12 != (m_generation & 0xfffff) || i >= m_slots.size() ||
        (m_slots[i].asked & bit) == 0) {
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
    if (s.asked != 0)
        return;
    leave_lookup(s);
    end_dma(s);
    end_tracking(s);
    s.pkt.reset();
    s.at = stage::FREE;
    s.cancelled = false;
    s.answered = false;
    s.admitted = false;
    s.to_ask = 0;
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
    leave_peer(s);
    s.to_ask = 0;
    s.cancelled = true;
    free_slot(i);
}

void packetizer::leave_lookup(slot& s) {
    if (!s.in_lookup)
        return;
    s.in_lookup = false;
    context_state& c = m_contexts[s.context];
    c.lookups--;
    if (c.unstarted != 0)
        m_startable |= context_mask{1} << s.context;
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
    switch (s.at) {
        case stage::QUEUED:
            m_peers[s.peer].ready.remove(m_lane, i);
            break;
        case stage::DMA:
            m_reading.remove(m_lane, i);
            break;
        default:
            m_asking.remove(m_lane, i);
    }
}

// Gives its place at its peer to whoever waits for one.
void packetizer::leave_peer(slot& s) {
    if (s.peer == UNKNOWN)
        return;
    peer_state& p = m_peers[s.peer];
    s.peer = UNKNOWN;
    p.held--;
    m_startable |= p.waiters;
    p.waiters = 0;
}

void packetizer::end_dma(slot& s) {
    if (!s.in_dma)
        return;
    s.in_dma = false;
    m_dma_packets--;
    m_dma_bytes -= s.length;
}

void packetizer::end_tracking(slot& s) {
    if (!s.tracked)
        return;
    s.tracked = false;
    m_drain.end(s.drain);
}

}  // namespace prawn
