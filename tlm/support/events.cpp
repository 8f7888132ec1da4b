// SPDX-License-Identifier: Apache-2.0
#include "support/events.h"

#include <algorithm>
#include <stdexcept>

namespace prawn {

namespace {

const char* const BLOCK_NAMES[] = {
#define PRAWN_X(NAME, name) name,
    PRAWN_BLOCKS(PRAWN_X)
#undef PRAWN_X
};

const event_kind_info KINDS[] = {
#define PRAWN_X(NAME, phase, name, a, b) \
    {#NAME, event_phase::phase, name, a, b},
    PRAWN_EVENT_KINDS(PRAWN_X)
#undef PRAWN_X
};

void attach(std::vector<event_sink*>& sinks, event_sink& sink) {
    if (std::find(sinks.begin(), sinks.end(), &sink) == sinks.end())
        sinks.push_back(&sink);
}

void remove(std::vector<event_sink*>& sinks, event_sink& sink) {
    sinks.erase(std::remove(sinks.begin(), sinks.end(), &sink), sinks.end());
}

}  // namespace

const std::size_t BLOCK_COUNT = std::size(BLOCK_NAMES);
const std::size_t EVENT_KIND_COUNT = std::size(KINDS);

const event_kind_info& info(event_kind kind) {
    const auto i = static_cast<std::size_t>(kind);
    return KINDS[i < std::size(KINDS) ? i : 0];
}

const char* name(block_id block) {
    const auto i = static_cast<std::size_t>(block);
    return i < std::size(BLOCK_NAMES) ? BLOCK_NAMES[i] : "?";
}

event_log::event_log() {
    if (sc_core::sc_get_time_resolution() !=
        sc_core::sc_time(1, sc_core::SC_PS))
        throw std::runtime_error(
            "event log: the SystemC time resolution must be 1 ps: do not call "
            "sc_set_time_resolution");
}

event_log& event_log::none() {
    static event_log log;
    return log;
}

void event_log::attach_events(event_sink& sink) {
    if (this == &none())
        throw std::logic_error("event log: the empty log takes no sinks");
    attach(m_event_sinks, sink);
    m_enabled = true;
}

void event_log::attach_packets(event_sink& sink) {
    if (this == &none())
        throw std::logic_error("event log: the empty log takes no sinks");
    attach(m_packet_sinks, sink);
    m_capturing = true;
}

void event_log::detach(event_sink& sink) {
    remove(m_event_sinks, sink);
    remove(m_packet_sinks, sink);
    m_enabled = !m_event_sinks.empty();
    m_capturing = !m_packet_sinks.empty();
}

void event_log::emit(const event& e) {
    for (event_sink* sink : m_event_sinks)
        sink->on_event(e);
}

void event_log::capture(std::uint16_t node, link_direction direction,
                        const byte_span* parts, std::size_t part_count) {
    const packet_capture p{now_ps(), node, direction, parts, part_count};
    for (event_sink* sink : m_packet_sinks)
        sink->on_packet(p);
}

void event_log::flush() {
    for (event_sink* sink : m_event_sinks)
        sink->flush();
    for (event_sink* sink : m_packet_sinks)
        sink->flush();
}

void event_source::put(event_kind kind, const message_id& message,
                       std::uint64_t a, std::uint64_t b) const {
    event e;
    e.time_ps = now_ps();
    e.a = a;
    e.b = b;
    e.message = message;
    e.node = m_node;
    e.block = m_block;
    e.kind = kind;
    m_log->emit(e);
}

}  // namespace prawn
