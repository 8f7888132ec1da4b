// SPDX-License-Identifier: Apache-2.0
// All blocks and kinds of the event stream. Numbers are in files: append at
// the end, change none.

#ifndef PRAWN_SUPPORT_EVENT_KINDS_H
#define PRAWN_SUPPORT_EVENT_KINDS_H

#include <cstddef>
#include <cstdint>

namespace prawn {

// X(NAME, name)
#define PRAWN_BLOCKS(X)               \
    X(CARD, "card")                   \
    X(HOST_PORT, "host_port")         \
    X(CSR, "csr")                     \
    X(ADMIN_QUEUE, "admin_queue")     \
    X(COMMAND_QUEUE, "command_queue") \
    X(PROXY, "proxy")                 \
    X(UTLB, "utlb")                   \
    X(DMA_ENGINE, "dma_engine")       \
    X(OPT, "opt")                     \
    X(SNOOP, "snoop")                 \
    X(PACKETIZER, "packetizer")       \
    X(OUTGOING_FIFO, "outgoing_fifo") \
    X(RELIABLE, "reliable")           \
    X(LINK_MAC, "link_mac")           \
    X(FABRIC, "fabric")               \
    X(DEPACKETIZER, "depacketizer")   \
    X(IPT, "ipt")                     \
    X(INCOMING_DMA, "incoming_dma")   \
    X(NOTIFIER, "notifier")           \
    X(CARD_CPU, "card_cpu")           \
    X(MANAGEMENT, "management")       \
    X(PEERS, "peers")                 \
    X(PTP_CLOCK, "ptp_clock")

enum class block_id : std::uint8_t {
#define PRAWN_X(NAME, name) NAME,
    PRAWN_BLOCKS(PRAWN_X)
#undef PRAWN_X
};

// How a kind becomes a picture.
//   INSTANT  something happened
//   BEGIN    a stage begins; a is a tag that no other open stage of the same
//            name in the same block has
//   END      the stage with that name and tag a ends
//   SINCE    a stage that began at time b (ps) ends
//   LEVEL    a is a level: a curve
enum class event_phase : std::uint8_t { INSTANT, BEGIN, END, SINCE, LEVEL };

// X(NAME, phase, stage or name, what a is, what b is)
// "tag": see event_phase. "bytes|channel": channel in bits 47:32.
#define PRAWN_EVENT_KINDS(X)                                                 \
    X(NONE, INSTANT, "none", "", "")                                         \
    X(RESET, INSTANT, "reset", "epoch", "")                                  \
    X(ERROR, INSTANT, "error", "status", "detail")                           \
    /* The host's side. access: offset 31:0, bar 39:32, bytes 47:40 */       \
    X(BAR_READ, INSTANT, "bar read", "access", "value")                      \
    X(BAR_WRITE, INSTANT, "bar write", "access", "value")                    \
    X(ADMIN_BEGIN, BEGIN, "admin", "tag", "opcode")                          \
    X(ADMIN_END, END, "admin", "tag", "status")                              \
    X(MSIX, INSTANT, "msix", "vector", "")                                   \
    X(INTX, INSTANT, "intx", "level", "")                                    \
    X(KERNEL_EVENT, INSTANT, "kernel event", "type", "index")                \
    /* Commands */                                                           \
    X(DOORBELL, INSTANT, "doorbell", "producer", "consumed")                 \
    X(COMMAND_FETCHED, SINCE, "doorbell to fetch", "index", "doorbell time") \
    X(COMPLETION_WRITTEN, INSTANT, "completion", "status", "index")          \
    X(CONTEXT_STOPPED, INSTANT, "context stopped", "context", "status")      \
    X(PROXY_STORE, INSTANT, "proxy store", "slot", "count")                  \
    X(PROXY_LOAD, INSTANT, "proxy load", "slot", "status word")              \
    X(UPDATE_STORE, INSTANT, "update store", "address", "value")             \
    X(UPDATE_CLOSED, INSTANT, "combined", "bytes", "reason")                 \
    /* Translation */                                                        \
    X(UTLB_HIT, INSTANT, "utlb hit", "address", "")                          \
    X(UTLB_MISS, INSTANT, "utlb miss", "address", "")                        \
    X(UTLB_WALK_BEGIN, BEGIN, "utlb walk", "tag", "address")                 \
    X(UTLB_WALK_END, END, "utlb walk", "tag", "status")                      \
    X(UTLB_EVICT, INSTANT, "utlb evict", "address", "")                      \
    X(UTLB_INVALIDATE, INSTANT, "utlb invalidate", "address", "pages")       \
    X(OPT_LOOKUP, INSTANT, "opt lookup", "import", "status")                 \
    /* Host memory */                                                        \
    X(DMA_READ_BEGIN, BEGIN, "dma read", "tag", "bytes|channel")             \
    X(DMA_READ_END, END, "dma read", "tag", "status|channel")                \
    X(DMA_WRITE_BEGIN, BEGIN, "dma write", "tag", "bytes|channel")           \
    X(DMA_WRITE_END, END, "dma write", "tag", "status|channel")              \
    /* Sending */                                                            \
    X(PACKET_BUILT, INSTANT, "packet", "message offset", "payload bytes")    \
    X(FIFO_IN, LEVEL, "fifo bytes", "level", "bytes in")                     \
    X(FIFO_OUT, LEVEL, "fifo bytes", "level", "bytes out")                   \
    X(CREDIT_WAIT_BEGIN, BEGIN, "credit wait", "tag", "peer")                \
    X(CREDIT_WAIT_END, END, "credit wait", "tag", "peer")                    \
    X(RETRANSMIT, INSTANT, "retransmit", "sequence", "peer")                 \
    X(SEQUENCE_GAP, INSTANT, "sequence gap", "expected", "got")              \
    X(TX_BEGIN, BEGIN, "tx", "tag", "bytes")                                 \
    X(TX_END, END, "tx", "tag", "bytes")                                     \
    X(FABRIC_BEGIN, BEGIN, "hop", "tag", "port")                             \
    X(FABRIC_END, END, "hop", "tag", "port")                                 \
    /* Receiving */                                                          \
    X(RX_BEGIN, BEGIN, "rx", "tag", "bytes")                                 \
    X(RX_END, END, "rx", "tag", "bytes")                                     \
    X(PACKET_RECEIVED, INSTANT, "packet received", "packet type", "bytes")   \
    X(PACKET_DROPPED, INSTANT, "packet dropped", "status", "bytes")          \
    X(IPT_OK, INSTANT, "ipt ok", "export", "offset")                         \
    X(IPT_REFUSED, INSTANT, "ipt refused", "export", "status")               \
    X(INCOMING_DMA_BEGIN, BEGIN, "incoming dma", "tag", "bytes")             \
    X(INCOMING_DMA_END, END, "incoming dma", "tag", "status")                \
    X(MESSAGE_DELIVERED, INSTANT, "delivered", "export", "bytes")            \
    X(NOTIFICATION_WRITTEN, INSTANT, "notification", "type", "index")        \
    X(NACK_SENT, INSTANT, "nack sent", "status", "peer")                     \
    X(NACK_RECEIVED, INSTANT, "nack received", "status", "peer")             \
    X(PEER_STATE, INSTANT, "peer", "node", "epoch, 0: down")                 \
    X(MGMT_SENT, INSTANT, "mgmt sent", "node", "bytes")                      \
    X(MGMT_RECEIVED, INSTANT, "mgmt received", "node", "bytes")              \
    X(DRAIN_BEGIN, BEGIN, "drain", "tag", "")                                \
    X(DRAIN_END, END, "drain", "tag", "")                                    \
    X(CHECK_FAILED, INSTANT, "check failed", "address", "bytes")

enum class event_kind : std::uint8_t {
#define PRAWN_X(NAME, phase, name, a, b) NAME,
    PRAWN_EVENT_KINDS(PRAWN_X)
#undef PRAWN_X
};

struct event_kind_info {
    const char* id;  // "DMA_READ_BEGIN"
    event_phase phase;
    const char* name;  // "dma read": the same for both ends of a stage
    const char* a;     // what a is; "" if unused
    const char* b;
};

// Of what is not in the table: the entry of NONE, "?".
const event_kind_info& info(event_kind kind);
const char* name(block_id block);

extern const std::size_t BLOCK_COUNT;
extern const std::size_t EVENT_KIND_COUNT;

}  // namespace prawn

#endif
