// SPDX-License-Identifier: Apache-2.0
// Cuts messages into packets and fills them from host memory.

#ifndef PRAWN_NIC_PACKETIZER_H
#define PRAWN_NIC_PACKETIZER_H

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "nic/contracts.h"
#include "nic/direct_in.h"
#include "nic/index_list.h"

namespace prawn {

// Contract: packetizer_base.
//
// A packet carries as much as max_payload, the rest of the message and the page
// of the destination allow (the page of the offset in the import). It passes
// these stages, in a slot of its own:
//   lookup  OPT lookup and the translations of its one or two source pages, all
//           asked at once; then its peer is known and it is admitted
//   DMA     reads of its source, straight into the packet
//   parked  waits until earlier packets of its context for the same peer have
//           gone, then for room in the peer's queue
// Failures are reported in the order of the message: bytes in the completion is
// what went before the failed packet; packets behind it are dropped.
//
// Who is served. Contexts share no slots: each has its own window, so that
// none can take what another needs. Packets start in turns by packet. Reads are
// asked for in turns by bytes, each packet counting packet_cost more, as many
// at a time as keep the bus busy; they are cut to read_chunk while another
// context sends small packets, which would else wait for the large ones. Jobs
// for a peer with peer_ready packets waiting are passed over by jobs that go
// elsewhere (completions are not); a context may have so many packets parked
// that no number of blocked peers keeps it from the others.
//
// A job of a life of its context that has been disabled is dropped, however
// long it was held on its way.
//
// CLEAR and PEER_ERROR wait for nobody: a job that they concern ends at once,
// and its packets that outgoing_fifo has not taken are dropped, read or not.
//
// An import that names something else than at the message's first packet fails
// the message with BAD_IMPORT. Jobs that send nothing take their turn like a
// packet.
class packetizer final : public packetizer_base
{
public:
    // Job accepted to first packet started: queue write and read.
    static constexpr unsigned JOB_CYCLES = 2;
    // From one start to the next: header formed, 16 bytes a clock.
    static constexpr unsigned PACKET_CYCLES = 4;

    struct params {
        unsigned max_payload = PRAWN_MAX_PAYLOAD;
        // Of each context: packets in stage lookup; packets and bytes in
        // stages lookup and DMA; packets parked.
        unsigned lookups = 4;
        unsigned window = 8;
        unsigned window_bytes = 16384;
        unsigned parked = 40;
        unsigned peer_ready = 8;  // see above
        unsigned read_chunk = 512;
        // Bytes that pass while a read waits for the bus. 0: by the timing
        // profile.
        unsigned read_cover = 0;
        // Bytes that a packet costs the bus beside its payload. 0: command,
        // completion and overhead under the timing profile.
        unsigned packet_cost = 0;
    };

    // Throws std::invalid_argument for parameters that make no sense.
    packetizer(sc_core::sc_module_name name, const block_env& env,
               const params& p);
    packetizer(sc_core::sc_module_name name, const block_env& env) :
        packetizer(name, env, params()) {}

    put_if<send_job>& job_in() override { return m_job_in; }
    put_if<opt_reply>& opt_reply_in() override { return m_opt_in; }
    put_if<utlb_reply>& utlb_reply_in() override { return m_utlb_in; }
    put_if<dma_reply>& dma_reply_in() override { return m_dma_in; }
    put_if<control_request>& control_in() override { return m_control; }
    void reset() override;

private:
    using context_mask = std::uint64_t;
    using peer_mask = std::uint32_t;
    static_assert(PRAWN_CONTEXTS <= 64, "context_mask");
    static_assert(PRAWN_MAX_NODES <= 32, "peer_mask");
    static constexpr std::uint16_t NONE = index_list::NONE;
    static constexpr std::uint16_t UNKNOWN = 0xffff;  // peer
    static constexpr unsigned MAX_READS = 64;
    static constexpr unsigned PARTS = 2;  // source pages of a packet

    // A slot's requests, as bits: asked and not answered, or yet to be asked.
    enum ask_t : unsigned {
        ASK_OPT = 1,
        ASK_UTLB = 2,  // << part
    };

    struct job {
        send_job what;
        std::uint32_t started = 0;    // bytes in packets begun
        std::uint32_t handed = 0;     // bytes taken by outgoing_fifo
        std::uint32_t in_flight = 0;  // packets begun and not handed
        bool all_started = false;     // nothing more to begin
        std::uint16_t peer = UNKNOWN;
        bool bound = false;  // target is set
        opt_reply target;    // of the first packet
        std::uint16_t status = PRAWN_STATUS_OK;
        std::uint16_t detail = 0;
        std::uint64_t fault = 0;
        std::uint64_t finished = 0;  // ps, last byte read; 0: none yet
    };
    struct context_state {
        std::array<job, JOB_WINDOW> jobs;  // ring
        unsigned first = 0;
        unsigned count = 0;
        unsigned unstarted = 0;           // jobs that are not all_started
        unsigned lookups = 0;             // slots in stage lookup
        unsigned packets = 0;             // slots in stages lookup and DMA
        std::uint64_t bytes = 0;          // of those
        unsigned parked = 0;              // slots parked
        index_list slots;                 // in order of start, till QUEUED
        std::uint16_t unadmitted = NONE;  // first one
        bool in_turn = false;             // member of m_turn
        index_list reads;                 // slots with reads to ask for
        bool in_read_turn = false;        // member of m_read_turn
        std::int64_t credit = 0;          // what is left of that turn
        std::uint32_t life = 0;           // the first that is served

        job& at(unsigned i) { return jobs[(first + i) % JOB_WINDOW]; }
    };
    enum class stage : std::uint8_t { FREE, LOOKUP, DMA, DONE, QUEUED };
    struct slot {
        stage at = stage::FREE;
        bool cancelled = false;  // freed when the last answer has come
        bool in_lookup = false;  // counts in context_state::lookups
        bool in_window = false;  // counts in packets, bytes
        bool parked = false;     // counts in parked
        bool tracked = false;    // by m_drain
        bool in_lane = false;    // member of m_asking, reads or ready
        bool answered = false;   // by the OPT
        bool admitted = false;
        bool last = false;
        std::uint8_t asked = 0;
        std::uint8_t to_ask = 0;
        std::uint8_t job = 0;  // place in the ring
        std::uint16_t context = 0;
        std::uint16_t peer = UNKNOWN;
        std::uint16_t status = PRAWN_STATUS_OK;
        std::uint16_t detail = 0;
        std::uint64_t fault = 0;
        std::uint32_t offset = 0;  // in the message
        std::uint32_t length = 0;
        std::uint32_t read = 0;                   // bytes asked for
        std::uint32_t reads = 0;                  // answers to come
        std::array<std::uint32_t, PARTS> part{};  // bytes in each page
        std::array<utlb_reply, PARTS> page;
        opt_reply target;
        packet_ref pkt;
        drain_tracker::generation drain = 0;
    };
    struct peer_state {
        unsigned queued = 0;       // members of ready
        index_list ready;          // slots to be handed over
        context_mask waiters = 0;  // contexts with jobs that were passed over
    };

    void end_of_elaboration() override;
    void step();
    void wake_at(std::uint64_t time);
    void kick();  // starts a packet as soon as possible, if any can be

    // Jobs (packetizer_jobs.cpp).
    bool take_job(send_job& j);
    job& job_of(const slot& s) { return m_contexts[s.context].jobs[s.job]; }
    bool start_one();
    bool has_window(const context_state& c) const;
    job* pick(std::uint16_t context);
    void start(std::uint16_t context, job& j);
    void enter_turn(std::uint16_t context);
    void leave_turn(std::uint16_t context);
    void restartable(std::uint16_t context);
    void all_started(std::uint16_t context, job& j);
    void fail_job(std::uint16_t context, job& j, std::uint16_t i);
    void failed(std::uint16_t context, const job& j);
    void end_jobs(const std::function<bool(const job&)>& concerns,
                  std::uint16_t status, std::uint16_t detail = 0);
    void complete(std::uint16_t context);

    // Lookup (packetizer_lookup.cpp).
    bool take_opt(opt_reply& r);
    bool take_utlb(utlb_reply& r);
    void ask(std::uint16_t i);
    bool ask_opt(std::uint16_t i);
    bool ask_utlb(std::uint16_t i, unsigned part);
    void admit(std::uint16_t context);
    void decide(std::uint16_t i);
    bool must_wait(std::uint16_t context, const job& j);
    void withdraw(std::uint16_t i);
    void looked_up(std::uint16_t i);

    // Reads (packetizer_reads.cpp).
    bool take_dma(dma_reply& r);
    void begin_reads(std::uint16_t i);
    void pump_reads();
    bool ask_read(std::uint16_t i);
    void end_reads(std::uint16_t i);
    void drop_reads(std::uint16_t i);
    std::uint32_t longest_read(std::uint16_t context) const;

    // The end of packets (packetizer_packets.cpp).
    void make_packet(std::uint16_t i);
    void fail(std::uint16_t i, std::uint16_t status, std::uint16_t detail = 0);
    void done(std::uint16_t i);
    void settle(std::uint16_t context);
    void hand_over(std::uint16_t node);

    // Slots, and what they are counted in (packetizer_slots.cpp).
    std::uint32_t tag(std::uint16_t i, unsigned part = 0) const;
    std::uint16_t find(std::uint32_t tag) const;
    std::uint16_t find(std::uint32_t tag, unsigned ask);
    std::uint16_t take_slot();
    void leave_lookup(slot& s);
    void leave_window(slot& s);
    void leave_context(std::uint16_t i);
    void leave_lane(std::uint16_t i);
    void end_tracking(slot& s);
    void cancel(std::uint16_t i);
    void free_slot(std::uint16_t i);

    void control(const control_request& r);
    void disable(std::uint16_t context, std::uint32_t life);

    const params m_params;
    std::vector<context_state> m_contexts;
    std::vector<peer_state> m_peers;
    std::vector<slot> m_slots;
    index_links m_order;  // context_state::slots
    index_links m_lane;   // m_asking, context_state::reads, ready
    std::vector<std::uint16_t> m_free;
    index_list m_asking;         // stage LOOKUP: requests that were refused
    bool m_dma_refused = false;  // until room()
    index_links m_turn_links;
    index_list m_turn;  // contexts with something to start
    index_links m_read_links;
    index_list m_read_turn;  // contexts with reads to ask for
    // Bytes of the reads under way (ring): answers come in their order.
    std::array<std::uint32_t, MAX_READS> m_read_sizes{};
    unsigned m_first_read = 0;
    unsigned m_reads = 0;
    std::uint64_t m_read_bytes = 0;
    std::uint64_t m_read_cover;
    context_mask m_busy = 0;        // contexts with jobs
    context_mask m_small = 0;       // contexts whose last packet was small
    context_mask m_startable = 0;   // of m_turn, perhaps
    context_mask m_completing = 0;  // a completion was refused
    peer_mask m_blocked = 0;        // a packet was refused
    std::int64_t m_packet_cost;
    std::uint64_t m_cycle;            // ps
    std::uint64_t m_next_start = 0;   // ps
    std::uint64_t m_wake_at = ~0ull;  // pending m_wake
    std::uint32_t m_generation = 0;   // of resets, in tags
    drain_tracker m_drain;

    direct_in<send_job, packetizer, &packetizer::take_job> m_job_in;
    direct_in<opt_reply, packetizer, &packetizer::take_opt> m_opt_in;
    direct_in<utlb_reply, packetizer, &packetizer::take_utlb> m_utlb_in;
    direct_in<dma_reply, packetizer, &packetizer::take_dma> m_dma_in;
    inbox<control_request> m_control;
    sc_core::sc_event m_wake;

    counter& m_packets;
    counter& m_payload_bytes;
    counter& m_peer_stalls;
    counter& m_ask_stalls;
    counter& m_completion_stalls;
    counter& m_withdrawn;
    counter& m_cancelled;
    counter& m_unexpected;
    counter& m_failed_import;
    counter& m_failed_range;
    counter& m_failed_import_error;
    counter& m_failed_not_pinned;
    counter& m_failed_dma;
    counter& m_failed_other;
    context_counter& m_messages;
    context_counter& m_bytes;
    context_counter& m_failed;
};

}  // namespace prawn

#endif
