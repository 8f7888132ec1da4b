// SPDX-License-Identifier: Apache-2.0
// The one event stream out of the model. pcapng, Perfetto and CSV (tlm/trace)
// are views of it.
//
// Cheap when off: one predictable branch for each emit(). Nothing here knows
// wall time, and all of it runs on the SystemC thread only.

#ifndef PRAWN_SUPPORT_EVENTS_H
#define PRAWN_SUPPORT_EVENTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include <systemc>

#include "support/event_kinds.h"

namespace prawn {

// Raised when event, a block or a kind changes its meaning. New blocks and
// kinds are appended and do not raise it.
constexpr std::uint32_t EVENT_STREAM_VERSION = 1;

// Names a message everywhere: all three are in every packet's header, so RTL
// can produce it too.
struct message_id {
    static constexpr std::uint16_t NO_CONTEXT = 0xffff;
    static constexpr std::uint32_t NO_MESSAGE = 0xffffffff;

    std::uint16_t source_node = 0;
    std::uint16_t context = NO_CONTEXT;
    std::uint32_t message = NO_MESSAGE;

    // About a context, but about no message in particular (a doorbell).
    static message_id of_context(std::uint16_t node, std::uint16_t context) {
        return {node, context, NO_MESSAGE};
    }
    bool has_context() const { return context != NO_CONTEXT; }
    bool has_message() const { return has_context() && message != NO_MESSAGE; }
    std::uint64_t key() const {
        return static_cast<std::uint64_t>(source_node) << 48 |
               static_cast<std::uint64_t>(context) << 32 | message;
    }
    bool operator==(const message_id& o) const { return key() == o.key(); }
};

// One entry of the stream. What a and b mean is said in event_kinds.h.
struct event {
    std::uint64_t time_ps = 0;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    message_id message;
    std::uint16_t node = 0;
    block_id block = block_id::CARD;
    event_kind kind = event_kind::NONE;
    std::uint32_t rsvd = 0;
};
static_assert(sizeof(message_id) == 8, "written to files as it is");
static_assert(sizeof(event) == 40, "written to files as it is");

struct byte_span {
    const void* data = nullptr;
    std::size_t size = 0;
};

enum class link_direction : std::uint8_t { TX, RX };

// A packet as it is on the wire: header, payload and CRC, one after the other,
// in as many parts as the model happens to hold it in. The parts are valid
// during the call only.
struct packet_capture {
    std::uint64_t time_ps = 0;
    std::uint16_t node = 0;
    link_direction direction = link_direction::TX;
    const byte_span* parts = nullptr;
    std::size_t part_count = 0;

    std::size_t size() const {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < part_count; i++)
            sum += parts[i].size;
        return sum;
    }
};

// Takes the stream. Events come with times that never fall.
class event_sink
{
public:
    virtual ~event_sink() = default;
    virtual void on_event(const event& e) { (void)e; }
    virtual void on_packet(const packet_capture& p) { (void)p; }
    // Brings what is buffered to where a reader finds it.
    virtual void flush() {}
};

// Model time in picoseconds: the kernel's resolution, which event_log checks.
inline std::uint64_t now_ps() {
    return sc_core::sc_time_stamp().value();
}

// Distributes the stream to its sinks, in the order they were attached. One
// for the whole simulation.
class event_log
{
public:
    event_log();
    event_log(const event_log&) = delete;
    event_log& operator=(const event_log&) = delete;

    // Sinks outlive the log or are detached. A sink may want only one of the
    // two kinds of input.
    void attach_events(event_sink& sink);
    void attach_packets(event_sink& sink);
    void detach(event_sink& sink);

    bool enabled() const { return m_enabled; }      // somebody wants events
    bool capturing() const { return m_capturing; }  // somebody wants packets

    void emit(const event& e);
    void capture(std::uint16_t node, link_direction direction,
                 const byte_span* parts, std::size_t part_count);
    void flush();

    // A log without sinks, for blocks that were given none.
    static event_log& none();

private:
    bool m_enabled = false;
    bool m_capturing = false;
    std::vector<event_sink*> m_event_sinks;
    std::vector<event_sink*> m_packet_sinks;
};

// A block's own end of the stream.
class event_source
{
public:
    event_source() : event_source(nullptr, 0, block_id::CARD) {}
    event_source(event_log* log, std::uint16_t node, block_id block) :
        m_log(log ? log : &event_log::none()), m_node(node), m_block(block) {}

    // Ask first where computing the arguments costs something.
    bool enabled() const { return m_log->enabled(); }
    bool capturing() const { return m_log->capturing(); }

    void emit(event_kind kind, const message_id& message = {},
              std::uint64_t a = 0, std::uint64_t b = 0) const {
        if (m_log->enabled())
            put(kind, message, a, b);
    }

    // The bytes of a packet as they pass the link of this node.
    void capture(link_direction direction, const byte_span* parts,
                 std::size_t part_count) const {
        if (m_log->capturing())
            m_log->capture(m_node, direction, parts, part_count);
    }

    std::uint16_t node() const { return m_node; }
    block_id block() const { return m_block; }

private:
    void put(event_kind kind, const message_id& message, std::uint64_t a,
             std::uint64_t b) const;

    event_log* m_log;
    std::uint16_t m_node;
    block_id m_block;
};

}  // namespace prawn

#endif
