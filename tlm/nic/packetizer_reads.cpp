// SPDX-License-Identifier: Apache-2.0
// Packetizer: which bytes of host memory are read next.
#include <algorithm>

#include "nic/packetizer.h"

namespace prawn {

void packetizer::begin_reads(std::uint16_t i) {
    slot& s = m_slots[i];
    context_state& c = m_contexts[s.context];
    s.at = stage::DMA;
    s.in_lane = true;
    c.reads.push_back(m_lane, i);
    if (!c.in_read_turn) {
        c.in_read_turn = true;
        c.credit = m_params.read_chunk + m_packet_cost;
        m_read_turn.push_back(m_read_links, s.context);
    }
    pump_reads();
}

// Takes a slot out of its context's reads.
void packetizer::drop_reads(std::uint16_t i) {
    const std::uint16_t context = m_slots[i].context;
    context_state& c = m_contexts[context];
    c.reads.remove(m_lane, i);
    if (!c.reads.empty())
        return;
    c.in_read_turn = false;
    m_read_turn.remove(m_read_links, context);
}

// Large reads of one context would make small ones of another wait.
std::uint32_t packetizer::longest_read(std::uint16_t context) const {
    const bool mixed = (m_busy & m_small & ~(context_mask{1} << context)) != 0;
    return mixed ? m_params.read_chunk : PRAWN_MAX_PAYLOAD;
}

void packetizer::pump_reads() {
    while (!m_dma_refused && m_reads < MAX_READS && !m_read_turn.empty()) {
        const std::uint16_t context = m_read_turn.front();
        // One read on top, so that there is always one to go on with.
        if (m_read_bytes >= m_read_cover + longest_read(context))
            return;
        context_state& c = m_contexts[context];
        if (c.credit <= 0) {
            c.credit += m_params.read_chunk + m_packet_cost;
            m_read_turn.remove(m_read_links, context);
            m_read_turn.push_back(m_read_links, context);
            continue;
        }
        const std::uint16_t i = c.reads.front();
        if (!ask_read(i)) {
            m_dma_refused = true;
            m_ask_stalls++;
            return;
        }
        if (m_slots[i].read == m_slots[i].length)
            leave_lane(i);
    }
}

// Asks for the next bytes of a packet, within one source page.
bool packetizer::ask_read(std::uint16_t i) {
    slot& s = m_slots[i];
    const bool second = s.read >= s.part[0];
    const std::uint32_t end = second ? s.length : s.part[0];
    const std::uint32_t length =
        std::min(end - s.read, longest_read(s.context));

    const std::uint64_t va = job_of(s).what.command.source + s.offset + s.read;
    dma_request r;
    r.tag = tag(i);
    r.context = s.context;
    r.address = s.page[second ? 1 : 0].address + (va & (PRAWN_PAGE_SIZE - 1));
    r.length = length;
    r.data = s.pkt->payload + s.read;
    r.keep = s.pkt;
    r.message = {m_env.node, s.context, job_of(s).what.message};
    if (!dma_out->try_put(r))
        return false;
    m_contexts[s.context].credit -= length + (s.read == 0 ? m_packet_cost : 0);
    s.read += length;
    s.reads++;
    m_read_sizes[(m_first_read + m_reads++) % MAX_READS] = length;
    m_read_bytes += length;
    return true;
}

bool packetizer::take_dma(dma_reply& r) {
    const std::uint16_t i = find(r.tag);
    if (i == NONE || m_slots[i].reads == 0) {
        m_unexpected++;
        return true;
    }
    m_read_bytes -= m_read_sizes[m_first_read];
    m_first_read = (m_first_read + 1) % MAX_READS;
    m_reads--;

    slot& s = m_slots[i];
    s.reads--;
    if (r.status != PRAWN_STATUS_OK && s.status == PRAWN_STATUS_OK)
        s.status = r.status;
    if (s.cancelled)
        free_slot(i);
    else if (s.reads == 0 && s.read == s.length)
        end_reads(i);
    pump_reads();
    kick();
    return true;
}

void packetizer::end_reads(std::uint16_t i) {
    slot& s = m_slots[i];
    end_tracking(s);
    job_of(s).finished = now_ps();
    if (s.status == PRAWN_STATUS_OK)
        done(i);
    else
        fail(i, s.status);
}

}  // namespace prawn
