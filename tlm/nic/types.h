// SPDX-License-Identifier: Apache-2.0
// What travels between the blocks of the card.

#ifndef PRAWN_NIC_TYPES_H
#define PRAWN_NIC_TYPES_H

#include <cstdint>

#include <systemc>

#include "prawn_hw.h"
#include "support/events.h"
#include "support/pool.h"

namespace prawn {

using header = prawn_packet_header;

// What the card keeps or carries for a context belongs to one life of it (see
// control_request::life in support/block.h). Modulo 2^32.
inline bool earlier_life(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
}

// A packet anywhere between packetizer and incoming_dma, in one fabric.
struct packet : pooled {
    header head{};
    std::uint8_t payload[PRAWN_MAX_PAYLOAD];
    std::uint32_t crc = 0;  // CRC-32C of header and payload; set by link_mac

    // Header, payload and CRC: what occupies a link, framing aside (bytes).
    std::uint32_t wire_size() const {
        return static_cast<std::uint32_t>(sizeof(header)) +
               head.payload_length + PRAWN_PACKET_CRC_SIZE;
    }
};
using packet_ref = ref<packet>;

// Staging for ring entries, table entries, management messages.
struct small_buffer : pooled {
    alignas(8) std::uint8_t bytes[512];
};

// csr -> command_queue. Always accepted: per context the newest one counts.
struct doorbell {
    std::uint16_t context = 0;
    std::uint32_t producer = 0;
    std::uint32_t consumed = 0;  // of the completion ring
    std::uint64_t accepted = 0;  // ps, when the BAR write reached the card
};

// csr -> notifier. Always accepted.
struct ring_update {
    enum what_t : std::uint8_t {
        NOTIFY_CONSUMED,
        ARM_NOTIFY,
        ARM_COMPLETION,
        COMPLETION_CONSUMED,  // from a doorbell
        EVENT_CONSUMED,       // kernel event ring; context unused
    } what = NOTIFY_CONSUMED;
    std::uint16_t context = 0;
    std::uint32_t index = 0;
};

// command_queue -> packetizer: one command, fetched and checked.
struct send_job {
    std::uint16_t context = 0;
    std::uint32_t index = 0;     // in the command ring, free running
    std::uint32_t message = 0;   // message number; 0 if it sends nothing
    std::uint16_t status = 0;    // not OK: only to be completed, in order
    std::uint64_t accepted = 0;  // ps
    prawn_command command{};
    std::uint32_t life = 0;  // of the context
};

// packetizer -> command_queue: a job of this context has left the packetizer
// (its completion has gone to the notifier). command_queue keeps at most
// JOB_WINDOW jobs of a context in the packetizer.
struct job_done {
    std::uint16_t context = 0;
    std::uint32_t life = 0;  // of the context, as the job said
};
constexpr unsigned JOB_WINDOW = 8;

// Translation. Tags belong to the asker and its port.
struct utlb_request {
    std::uint32_t tag = 0;
    std::uint16_t context = 0;
    bool write = false;      // the card wants to write the page
    std::uint64_t va = 0;    // any address in the page
    std::uint32_t hint = 0;  // PER_PROCESS: index of the entry
    message_id message{};    // for events; none: of the context
};
struct utlb_reply {
    std::uint32_t tag = 0;
    std::uint16_t status = 0;   // OK, NOT_PINNED, NOT_WRITABLE, BAD_CONTEXT,
                                // DMA_ERROR (table not readable)
    std::uint64_t address = 0;  // bus address of the page
};

// Host DMA through one channel of dma_engine. Any length from 1 byte to 4 KiB,
// any alignment; the engine cuts it into bus bursts. Replies of one channel
// come in the order of its requests (writes are then in memory).
struct dma_request {
    std::uint32_t tag = 0;
    bool write = false;
    std::uint16_t context = 0;  // whose grant covers it; KERNEL_CONTEXT
    std::uint64_t address = 0;  // bus address
    std::uint32_t length = 0;
    std::uint8_t* data = nullptr;  // valid until the reply, or as long as keep
    ref<pooled> keep;              // owner of data
    message_id message{};          // for events; none: of the context
};
struct dma_reply {
    std::uint32_t tag = 0;
    std::uint16_t status = 0;  // OK or DMA_ERROR
};
constexpr std::uint16_t KERNEL_CONTEXT = 0xffff;

// What an event about a request belongs to.
template <typename REQUEST>
message_id subject(const REQUEST& r, std::uint16_t node) {
    return r.message.has_message() ? r.message
                                   : message_id::of_context(node, r.context);
}

// Outgoing page table: asked for every packet, so that a cleared entry stops a
// message in its middle.
struct opt_request {
    std::uint32_t tag = 0;
    std::uint16_t context = 0;
    std::uint32_t import_id = 0;
    std::uint64_t offset = 0;  // of the piece
    std::uint64_t length = 0;  // of the rest of the message from offset on
    message_id message{};      // for events
};
struct opt_reply {
    std::uint32_t tag = 0;
    std::uint16_t status = 0;  // OK, BAD_IMPORT, OUT_OF_RANGE, IMPORT_ERROR
    std::uint16_t detail = 0;  // IMPORT_ERROR: its reason
    std::uint16_t node = 0;
    std::uint16_t epoch = 0;
    std::uint32_t export_id = 0;
    std::uint64_t key = 0;
};

// ipt -> incoming_dma: a DATA packet that may be delivered.
struct delivery {
    packet_ref pkt;
    std::uint16_t context = 0;  // owner of the export
    std::uint64_t va = 0;       // where the payload goes; never crosses a
                                // page unless the sender misbehaves: then
                                // incoming_dma splits it
    std::uint64_t cookie = 0;
    bool notify = false;     // sender's and receiver's flag, LAST packet
    std::uint32_t life = 0;  // of the context, at IPT_SET
};

// To refuse a received packet: ipt, depacketizer, incoming_dma ->
// outgoing_fifo. Always accepted: one pending refusal per peer and import is
// kept.
struct refusal {
    std::uint16_t node = 0;  // to whom
    std::uint16_t status = 0;
    header head{};  // of the refused packet
};

// -> notifier. Completions of a context arrive in the order of its ring.
struct completion_request {
    std::uint16_t context = 0;
    std::uint32_t index = 0;
    prawn_completion entry{};  // all but seq
    std::uint32_t life = 0;    // of the context
};
struct notification_request {
    std::uint16_t context = 0;
    prawn_notification entry{};  // all but seq, count
    std::uint32_t life = 0;      // of the context
};
struct kernel_event_request {
    std::uint8_t type = 0;  // PRAWN_EVENT_TYPE_*
    std::uint16_t node = 0;
    std::uint16_t epoch = 0;
    std::uint16_t context = 0;
    std::uint64_t value = 0;
    std::uint32_t length = 0;
    ref<pooled> keep;  // owner of data
    const std::uint8_t* data = nullptr;
};
// admin_queue -> notifier: acknowledge admin command `index`.
struct ack_request {
    std::uint32_t index = 0;
    std::uint16_t status = 0;
    std::uint32_t value = 0;
    bool interrupt = false;
};

}  // namespace prawn

#endif
