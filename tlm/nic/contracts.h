// SPDX-License-Identifier: Apache-2.0
// The contract of every block: its output ports, its inputs, what it promises.
// An implementation (TLM, Verilated RTL, firmware, twin) derives from the
// class here; the card's top wires these classes and knows no other.
//
// Common to all: see support/put.h (refusal, answers by tag), support/block.h
// (reset, control, drain). Replies are never refused. Time is charged by the
// block itself: an output appears when the hardware would show it.

#ifndef PRAWN_NIC_CONTRACTS_H
#define PRAWN_NIC_CONTRACTS_H

#include "host/host_port.h"
#include "nic/types.h"
#include "support/block.h"

namespace prawn {

// Fetches commands of enabled contexts by DMA, checks every field, numbers
// messages, and serves contexts in turn (round robin over those with work and
// a free place in JOB_WINDOW). A doorbell that runs more than a ring ahead of
// `consumed` stops that context (RING_OVERRUN, kernel event CONTEXT_ERROR).
// Control: CONTEXT_ENABLE, CONTEXT_DISABLE, DRAIN.
class command_queue_base : public block
{
public:
    put_port<dma_request> dma_out{"dma_out"};
    put_port<send_job> job_out{"job_out"};
    put_port<kernel_event_request> event_out{"event_out"};
    using block::block;
    virtual put_if<doorbell>& doorbell_in() = 0;  // never refuses
    virtual put_if<dma_reply>& dma_reply_in() = 0;
    virtual put_if<job_done>& job_done_in() = 0;
    // For doorbell register STATE: bits as there.
    virtual std::uint32_t context_state(std::uint16_t context) const = 0;
};

// Ports of the UTLB, by asker.
enum utlb_port : unsigned {
    UTLB_SEND,     // packetizer
    UTLB_RECEIVE,  // incoming_dma
    UTLB_PROXY,    // proxy, snoop
    UTLB_PORTS
};

// Translation cache and walker. Answers of one port may come out of order.
// A miss of one context does not hold up hits of others. A walk that was under
// way when its page was invalidated fills nothing; its asker gets a fresh walk.
// Control: CONTEXT_ENABLE (d = table), CONTEXT_DISABLE, INVALIDATE, FILL,
// DRAIN.
class utlb_base : public block
{
public:
    put_port<dma_request> dma_out{"dma_out"};
    sc_core::sc_vector<put_port<utlb_reply>> reply_out{"reply_out", UTLB_PORTS};
    put_port<kernel_event_request> event_out{"event_out"};  // UTLB_MISS, _EVICT
    using block::block;
    virtual put_if<utlb_request>& request_in(unsigned port) = 0;
    virtual put_if<dma_reply>& dma_reply_in() = 0;
    // Registers UTLB_MODE and UTLB_GEOMETRY; set is ignored while a context is
    // enabled or for values the block does not have.
    virtual std::uint32_t mode() const = 0;
    virtual void set_mode(std::uint32_t mode) = 0;
    virtual std::uint32_t geometry() const = 0;
    virtual void set_geometry(std::uint32_t geometry) = 0;
};

// Channels of the DMA engine, by asker; the order breaks ties.
enum dma_channel : unsigned {
    DMA_NOTIFIER,
    DMA_ADMIN,
    DMA_UTLB,
    DMA_COMMAND,
    DMA_INCOMING,
    DMA_SEND,
    DMA_PROXY,
    DMA_CHANNELS
};

// Host bus master: cuts requests into bursts, arbitrates channels round robin
// by burst, keeps several reads outstanding. Replies in order per channel.
// Refused by the host: DMA_ERROR, and nothing after the failed burst is done.
// Control: DRAIN.
class dma_engine_base : public block
{
public:
    sc_core::sc_vector<put_port<dma_reply>> reply_out{"reply_out",
                                                      DMA_CHANNELS};
    using block::block;
    virtual put_if<dma_request>& request_in(unsigned channel) = 0;
};

// Outgoing page table. Control: SET, CLEAR (answered at once), PEER_ERROR,
// IMPORT_ERROR (each affected import whose context is known also gets a
// notification IMPORT_ERROR), CONTEXT_DISABLE (drops its entries).
class opt_base : public block
{
public:
    put_port<opt_reply> reply_out{"reply_out"};
    put_port<notification_request> notify_out{"notify_out"};
    using block::block;
    virtual put_if<opt_request>& request_in() = 0;
};

// Cuts jobs into packets: OPT lookup, translation, DMA, packet. Serves contexts
// in turn by packet; packets of one context to one peer leave in order;
// a peer without room holds up only the jobs that go there. Completes every
// job, in order per context, when its last packet has been accepted by
// outgoing_fifo (the source may then be reused).
// Control: CONTEXT_DISABLE (drops its jobs, no completion), CLEAR (index =
// import) and PEER_ERROR (index = node, a = status): the jobs that name it end
// at once, with BAD_IMPORT or IMPORT_ERROR, and what outgoing_fifo has not
// taken of them does not leave; DRAIN.
class packetizer_base : public block
{
public:
    put_port<opt_request> opt_out{"opt_out"};
    put_port<utlb_request> utlb_out{"utlb_out"};
    put_port<dma_request> dma_out{"dma_out"};
    put_port<packet_ref> packet_out{"packet_out"};
    put_port<completion_request> completion_out{"completion_out"};
    put_port<job_done> job_done_out{"job_done_out"};
    using block::block;
    virtual put_if<send_job>& job_in() = 0;
    virtual put_if<opt_reply>& opt_reply_in() = 0;
    virtual put_if<utlb_reply>& utlb_reply_in() = 0;
    virtual put_if<dma_reply>& dma_reply_in() = 0;
};

// One queue per peer, refused per peer. Order of service: refusals and MGMT
// (reserved room: MGMT_RESERVE packets a peer) before data; peers in turn.
// packet_out may refuse one peer's packet and accept another's.
// Control: PEER_ERROR (drops what is queued for that peer), DRAIN (at once).
class outgoing_fifo_base : public block
{
public:
    put_port<packet_ref> packet_out{"packet_out"};
    sc_core::sc_port<put_if<kernel_event_request>, 1,
                     sc_core::SC_ZERO_OR_MORE_BOUND>
        event_out{"event_out"};
    using block::block;
    static constexpr unsigned MGMT_RESERVE = 4;
    virtual put_if<packet_ref>& packet_in() = 0;  // DATA
    virtual put_if<packet_ref>& mgmt_in() = 0;    // MGMT, HELLO, BYE
    virtual put_if<refusal>& refusal_in() = 0;    // never refuses
    virtual std::uint32_t level() const = 0;      // bytes queued
    // Register FIFO_THRESHOLD: kernel event FIFO_THRESHOLD (value = level)
    // each time the level rises above it; 0: never.
    virtual void set_threshold(std::uint32_t bytes) = 0;
};

// What the reliable block says of a peer: to admin_queue.
struct peer_event {
    std::uint8_t type = 0;  // PRAWN_EVENT_TYPE_PEER_UP, PEER_DOWN
    std::uint16_t node = 0;
    std::uint16_t epoch = 0;
};

// Sequence stamps, checks, acknowledgements, epochs; one state per peer.
// Outgoing: stamps source_epoch, sequence, acknowledge. Incoming: HELLO starts
// a new life of the peer (peer_out PEER_UP), BYE ends it (PEER_DOWN); both end
// here. Duplicates are dropped, gaps counted and reported as events. A packet
// to an earlier epoch of this node is refused STALE_EPOCH (DATA) or dropped.
// Control: DRAIN (at once).
class reliable_base : public block
{
public:
    put_port<packet_ref> link_out{"link_out"};  // to link_mac
    put_port<packet_ref> host_out{"host_out"};  // to depacketizer
    put_port<refusal> refusal_out{"refusal_out"};
    put_port<peer_event> peer_out{"peer_out"};
    put_port<packet_ref> hello_out{"hello_out"};  // outgoing_fifo.mgmt_in
    using block::block;
    virtual put_if<packet_ref>& host_in() = 0;  // from outgoing_fifo
    virtual put_if<packet_ref>& link_in() = 0;  // from link_mac
    virtual std::uint16_t epoch() const = 0;    // of this node; reset() adds 1
    // The driver enabled the card / the host went away: tell every peer.
    virtual void say_hello() = 0;
    virtual void say_bye() = 0;
};

// Framing, CRC, credits per destination. Refuses packets of a destination
// without credits, and any while the link is busy. Broken CRC: dropped,
// counted. Control: DRAIN (at once). reset() keeps the credits that are on
// the fabric's side: links survive the reset of a card.
class link_mac_base : public block
{
public:
    put_port<packet_ref> link_out{"link_out"};      // to the fabric
    put_port<packet_ref> packet_out{"packet_out"};  // to reliable
    // Credits granted back to the fabric: one per packet taken from the
    // receive buffer. Never refused.
    put_port<unsigned> credit_out{"credit_out"};
    using block::block;
    virtual put_if<packet_ref>& packet_in() = 0;
    virtual put_if<packet_ref>& link_in() = 0;  // never refuses: credits
    virtual put_if<unsigned>& credit_in() = 0;  // value = destination node
};

// Sanity of what the network hands us (version, type, lengths, flags, nodes),
// then by type: DATA to ipt, MGMT to the kernel event ring (refused EVENT_FULL
// by the notifier's answer), NACK to opt through admin_queue.
// Works only while enabled; else DATA and MGMT are refused NO_HOST.
// Control: DRAIN (at once).
class depacketizer_base : public block
{
public:
    put_port<packet_ref> data_out{"data_out"};
    put_port<kernel_event_request> event_out{"event_out"};
    put_port<refusal> refusal_out{"refusal_out"};
    put_port<packet_ref> nack_out{"nack_out"};  // to admin_queue
    using block::block;
    virtual put_if<packet_ref>& packet_in() = 0;
    virtual void set_enabled(bool enabled) = 0;  // CTRL.ENABLE
};

// Incoming page table: entry valid, key, range, the message without a hole so
// far, or refused. The notify flag of a delivery is set only if sender and
// receiver both want it.
// Control: SET, CLEAR (answered at once; the admin queue then drains
// incoming_dma), CONTEXT_DISABLE (drops its entries).
class ipt_base : public block
{
public:
    put_port<delivery> delivery_out{"delivery_out"};
    put_port<refusal> refusal_out{"refusal_out"};
    using block::block;
    virtual put_if<packet_ref>& packet_in() = 0;
};

// Translates and writes payloads; several in flight, retired in order. A
// notification follows when its packet and all earlier ones are in memory.
// Control: CONTEXT_DISABLE (refuses what is queued for it), DRAIN.
class incoming_dma_base : public block
{
public:
    put_port<utlb_request> utlb_out{"utlb_out"};
    put_port<dma_request> dma_out{"dma_out"};
    put_port<notification_request> notify_out{"notify_out"};
    put_port<refusal> refusal_out{"refusal_out"};
    using block::block;
    virtual put_if<delivery>& delivery_in() = 0;
    virtual put_if<utlb_reply>& utlb_reply_in() = 0;
    virtual put_if<dma_reply>& dma_reply_in() = 0;
};

// Writes every entry the host reads: completions, notifications, kernel events,
// admin acknowledgements; raises the vector after the entry is in memory.
// Notification ring full: the message is counted in its export's pending entry
// and delivered as one entry when there is room. Kernel event ring full: MGMT
// is refused EVENT_FULL; other events wait, one pending per type and node.
// Control: CONTEXT_ENABLE (index = vector, b, c, e), CONTEXT_DISABLE, DRAIN.
class notifier_base : public block
{
public:
    put_port<dma_request> dma_out{"dma_out"};
    // Bits of INT_CAUSE, before the interrupt; never refused.
    put_port<unsigned> cause_out{"cause_out"};
    put_port<unsigned> msix_out{"msix_out"};  // vector; never refused
    put_port<refusal> refusal_out{"refusal_out"};
    using block::block;
    virtual put_if<completion_request>& completion_in() = 0;
    virtual put_if<notification_request>&
    notification_in() = 0;                                 // never refuses
    virtual put_if<kernel_event_request>& event_in() = 0;  // never refuses
    virtual put_if<ack_request>& ack_in() = 0;             // never refuses
    virtual put_if<ring_update>& update_in() = 0;          // never refuses
    virtual put_if<dma_reply>& dma_reply_in() = 0;
    // Registers of BAR 0.
    virtual void set_event_ring(std::uint64_t base, unsigned log2) = 0;
    virtual void set_ack_ring(std::uint64_t base, unsigned log2) = 0;
};

// The PTP clock, a counter of nanoseconds that software sets and steers.
// Without a host's time base it runs on model time. After a reset it shows its
// time base.
// Control: DRAIN (at once).
class ptp_clock_base : public block
{
public:
    sc_core::sc_port<time_base_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> time_base{
        "time_base"};
    using block::block;
    // Registers PTP_* at their offsets in BAR 0; aligned, 4 or 8 bytes. Takes
    // effect, or is the time, at once.
    virtual std::uint64_t read(std::uint64_t offset, unsigned size) = 0;
    virtual void write(std::uint64_t offset, unsigned size,
                       std::uint64_t value) = 0;
};

// What GRANT and REVOKE tell the checker of host DMA, if there is one. Returns
// PRAWN_STATUS_*. context may be KERNEL_CONTEXT.
class grant_if : public virtual sc_core::sc_interface
{
public:
    virtual std::uint16_t grant(std::uint16_t context, std::uint64_t address,
                                std::uint64_t pages, bool write) = 0;
    virtual std::uint16_t revoke(std::uint16_t context, std::uint64_t address,
                                 std::uint64_t pages) = 0;
};

// Blocks that the admin queue controls, in the order of its ports.
enum control_target : unsigned {
    CONTROL_COMMAND_QUEUE,
    CONTROL_PACKETIZER,
    CONTROL_OPT,
    CONTROL_IPT,
    CONTROL_INCOMING_DMA,
    CONTROL_UTLB,
    CONTROL_NOTIFIER,
    CONTROL_OUTGOING_FIFO,
    CONTROL_TARGETS
};

// Runs the kernel's admin ring: fetches, checks, fans out to the blocks'
// control channels, gathers drains, acknowledges through the notifier. Also
// carries peer events and NACKs to opt, and sends MGMT.
class admin_queue_base : public block
{
public:
    put_port<dma_request> dma_out{"dma_out"};
    put_port<ack_request> ack_out{"ack_out"};
    put_port<packet_ref> mgmt_out{"mgmt_out"};
    put_port<kernel_event_request> event_out{"event_out"};
    sc_core::sc_vector<put_port<control_request>> request_out{"request_out",
                                                              CONTROL_TARGETS};
    // Bound if FEATURES.CHECKER.
    sc_core::sc_port<grant_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> grant_out{
        "grant_out"};
    using block::block;
    virtual put_if<dma_reply>& dma_reply_in() = 0;
    virtual put_if<peer_event>& peer_in() = 0;  // never refuses
    virtual put_if<packet_ref>& nack_in() = 0;  // never refuses
    virtual put_if<control_reply>& reply_in(unsigned target) = 0;
    // Registers of BAR 0.
    virtual void set_ring(std::uint64_t base, unsigned log2) = 0;
    virtual void ring_doorbell(std::uint32_t producer) = 0;
    virtual bool error() const = 0;  // STATUS.ADMIN_ERROR
};

}  // namespace prawn

#endif
