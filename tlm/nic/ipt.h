// SPDX-License-Identifier: Apache-2.0
// Incoming page table: the receiver's say in what may be written where.

#ifndef PRAWN_NIC_IPT_H
#define PRAWN_NIC_IPT_H

#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "nic/received_messages.h"
#include "support/input.h"
#include "support/ring.h"

namespace prawn {

// A pipeline: a packet is looked up LOOKUP_CYCLES and an SRAM access after it
// came in, one packet a cycle, in order. The verdict is formed in the instant
// of the hand-over to incoming_dma and with the table of that instant: after
// CLEAR has been answered, no packet for that entry reaches incoming_dma, not
// even one that had been waiting here.
//
// Verdicts, first that applies: no valid entry BAD_EXPORT, BAD_KEY, payload
// not inside of the export EXPORT_RANGE, a packet before it is missing
// UNKNOWN_OUTCOME (once a message). A message of which a packet was refused or
// lost raises no notification, whatever follows.
//
// SET is refused BAD_FIELD (index, flags), BAD_CONTEXT, BAD_LENGTH (wraps, or
// ends beyond the VA_BITS that a table covers); CLEAR BAD_FIELD (index).
class ipt final : public ipt_base, private control_handler
{
public:
    static constexpr unsigned LOOKUP_CYCLES = 3;  // in, compare, out
    static constexpr std::size_t DEPTH = 4;

    ipt(sc_core::sc_module_name name, const block_env& env);

    put_if<control_request>& control_in() override { return m_control; }
    put_if<packet_ref>& packet_in() override { return m_packet_in; }
    void reset() override;

private:
    struct entry {
        std::uint64_t va = 0;
        std::uint64_t length = 0;
        std::uint64_t key = 0;
        std::uint64_t cookie = 0;
        std::uint32_t life = 0;  // of the context
        std::uint16_t context = 0;
        bool notify = false;
        bool valid = false;
    };
    struct waiting {
        packet_ref pkt;
        sc_core::sc_time ready;
    };

    void end_of_elaboration() override;
    void control(const control_request& request) override;
    std::uint16_t set(const control_request& request);
    void disable(std::uint16_t context);

    bool receive(packet_ref& item);
    const sc_core::sc_event& receive_room() const { return m_room; }
    void look_up();
    std::uint16_t verdict(const header& head) const;
    bool deliver(const packet_ref& item);
    void refuse(const header& head, std::uint16_t status);

    control_channel m_control;
    input<packet_ref, ipt, &ipt::receive, &ipt::receive_room> m_packet_in;
    const sc_core::sc_time m_latency;
    const sc_core::sc_time m_interval;

    std::vector<entry> m_entries;
    received_messages m_messages;
    ring<waiting> m_queue;
    sc_core::sc_time m_last;  // when the newest one is looked up
    bool m_refused = false;
    sc_core::sc_event m_ready;
    sc_core::sc_event m_room;

    counter& m_delivered;
    counter& m_bad_export;
    counter& m_bad_key;
    counter& m_out_of_range;
    counter& m_holes;
    counter& m_stalls;
};

}  // namespace prawn

#endif
