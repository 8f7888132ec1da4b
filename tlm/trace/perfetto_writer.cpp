// SPDX-License-Identifier: Apache-2.0
#include "trace/perfetto_writer.h"

#include <cstring>

#include "prawn_names.h"

namespace prawn {

namespace {

constexpr std::uint64_t PS_PER_NS = 1000;
constexpr std::uint64_t INSTANT_NS = 1;
constexpr std::uint64_t LANES_PER_BLOCK = 1000;

std::uint64_t pid_of(std::uint16_t node) {
    return std::uint64_t{node} + 1;
}

// Unique in the whole trace, and in the order of the blocks.
std::uint64_t tid_of(std::uint16_t node, block_id block, std::size_t lane) {
    return (pid_of(node) * 100 + static_cast<std::uint64_t>(block)) *
               LANES_PER_BLOCK +
           lane % LANES_PER_BLOCK;
}

// The format's unit is the microsecond.
std::string microseconds(std::uint64_t ns) {
    const std::string fraction = std::to_string(ns % 1000);
    return std::to_string(ns / 1000) + '.' +
           std::string(3 - fraction.size(), '0') + fraction;
}

std::string hexadecimal(std::uint64_t value) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    do {
        out.insert(out.begin(), digits[value & 15]);
        value >>= 4;
    } while (value != 0);
    return "0x" + out;
}

std::string quoted(const std::string& text) {
    return '"' + text + '"';
}

// An argument as its reader wants it: codes by name, addresses in hex.
std::string argument(const char* what, std::uint64_t value) {
    const auto code = static_cast<unsigned>(value & 0xffff);
    if (std::strcmp(what, "status") == 0)
        return quoted(prawn_status_name(code));
    if (std::strcmp(what, "opcode") == 0)
        return quoted(prawn_admin_opcode_name(code));
    if (std::strcmp(what, "packet type") == 0)
        return quoted(prawn_packet_type_name(code));
    if (std::strcmp(what, "status|channel") == 0)
        return quoted(std::string(prawn_status_name(code)) + " channel " +
                      std::to_string(value >> 32 & 0xffff));
    if (std::strcmp(what, "bytes|channel") == 0)
        return quoted(std::to_string(value & 0xffffffff) + " channel " +
                      std::to_string(value >> 32 & 0xffff));
    if (std::strcmp(what, "address") == 0 || std::strcmp(what, "value") == 0 ||
        std::strcmp(what, "access") == 0)
        return quoted(hexadecimal(value));
    return std::to_string(value);
}

}  // namespace

perfetto_writer::perfetto_writer(const std::string& path) : m_file(path) {
    // The first entry has no comma before it: it says what the file is.
    m_file.buffer() +=
        "[\n{\"ph\":\"M\",\"pid\":100000,\"tid\":0,\"name\":\"process_name\","
        "\"args\":{\"name\":\"prawn events " +
        std::to_string(EVENT_STREAM_VERSION) + ", model time\"}}";
    m_file.flush();
}

perfetto_writer::~perfetto_writer() {
    m_file.buffer() += "\n]\n";
}

void perfetto_writer::metadata(std::uint64_t pid, std::uint64_t tid,
                               const char* what, const char* key,
                               const std::string& value) {
    std::string& out = m_file.buffer();
    out += ",\n{\"ph\":\"M\",\"pid\":" + std::to_string(pid) +
           ",\"tid\":" + std::to_string(tid) + ",\"name\":\"" + what +
           "\",\"args\":{\"" + key + "\":" + value + "}}";
}

void perfetto_writer::name_node(std::uint16_t node) {
    if (!m_nodes.insert(node).second)
        return;
    metadata(pid_of(node), 0, "process_name", "name",
             quoted("node " + std::to_string(node)));
    metadata(pid_of(node), 0, "process_sort_index", "sort_index",
             std::to_string(node));
}

void perfetto_writer::name_lane(const event& e, std::size_t lane) {
    std::size_t& named = m_named[{e.node, e.block}];
    for (; named <= lane; named++) {
        const std::uint64_t tid = tid_of(e.node, e.block, named);
        std::string text = name(e.block);
        if (named != 0)
            text += ' ' + std::to_string(named + 1);
        metadata(pid_of(e.node), tid, "thread_name", "name", quoted(text));
        metadata(pid_of(e.node), tid, "thread_sort_index", "sort_index",
                 std::to_string(tid));
    }
}

void perfetto_writer::begin_entry(char phase, const event& e, std::uint64_t ns,
                                  std::size_t lane) {
    name_lane(e, lane);
    std::string& out = m_file.buffer();
    out += ",\n{\"ph\":\"";
    out += phase;
    out += "\",\"pid\":" + std::to_string(pid_of(e.node)) +
           ",\"tid\":" + std::to_string(tid_of(e.node, e.block, lane)) +
           ",\"ts\":" + microseconds(ns);
}

void perfetto_writer::arguments(const event& e, bool end) {
    const event_kind_info& kind = info(e.kind);
    std::string& out = m_file.buffer();
    out += ",\"args\":{\"";
    out += end ? "end ps" : "ps";
    out += "\":" + std::to_string(e.time_ps);
    if (e.message.has_message() && !end)
        out += ",\"message\":\"" + std::to_string(e.message.source_node) + ':' +
               std::to_string(e.message.context) + ':' +
               std::to_string(e.message.message) + '"';
    else if (e.message.has_context() && !end)
        out += ",\"context\":" + std::to_string(e.message.context);
    if (kind.a[0] != '\0' && !end)
        out += ",\"" + std::string(kind.a) + "\":" + argument(kind.a, e.a);
    if (kind.b[0] != '\0')
        out += ",\"" + std::string(kind.b) + "\":" + argument(kind.b, e.b);
    out += '}';
}

void perfetto_writer::end_entry() {
    m_file.buffer() += '}';
}

void perfetto_writer::slice(const event& e, std::uint64_t begin,
                            std::uint64_t end) {
    const std::size_t lane = m_lanes[{e.node, e.block}].place(begin, end);
    begin_entry('X', e, begin, lane);
    m_file.buffer() += ",\"dur\":" + microseconds(end - begin) +
                       ",\"name\":" + quoted(info(e.kind).name);
    arguments(e, false);
    end_entry();
    arrow(e, begin, lane);
}

void perfetto_writer::arrow(const event& e, std::uint64_t ns,
                            std::size_t lane) {
    if (!e.message.has_message())
        return;
    const std::uint64_t key = e.message.key();
    char phase = 't';
    if (m_messages.insert(key).second) {
        phase = 's';
        m_oldest.push_back(key);
        if (m_oldest.size() > MESSAGES) {
            m_messages.erase(m_oldest.front());
            m_oldest.pop_front();
        }
    } else if (e.kind == event_kind::NOTIFICATION_WRITTEN) {
        phase = 'f';
    }
    begin_entry(phase, e, ns, lane);
    m_file.buffer() += ",\"cat\":\"message\",\"name\":\"message\",\"id\":" +
                       quoted(hexadecimal(key)) + ",\"bp\":\"e\"";
    end_entry();
}

void perfetto_writer::close_stage(const event& e, perfetto_lanes& lanes,
                                  const perfetto_lanes::key& stage,
                                  bool with_arguments) {
    const auto closed = lanes.close(stage, e.time_ps / PS_PER_NS);
    begin_entry('E', e, closed.end, closed.lane);
    if (with_arguments)
        arguments(e, true);
    end_entry();
}

void perfetto_writer::on_event(const event& e) {
    if (!ok())
        return;
    name_node(e.node);
    const event_kind_info& kind = info(e.kind);
    const std::uint64_t ns = e.time_ps / PS_PER_NS;
    perfetto_lanes& lanes = m_lanes[{e.node, e.block}];
    const perfetto_lanes::key stage(kind.name, e.a);

    switch (kind.phase) {
        case event_phase::INSTANT:
            slice(e, ns, ns + INSTANT_NS);
            break;
        case event_phase::SINCE: {
            // A block that claims to have begun later than now began now.
            const std::uint64_t since = e.b / PS_PER_NS;
            const std::uint64_t begin = since < ns ? since : ns;
            slice(e, begin, begin < ns ? ns : ns + INSTANT_NS);
            break;
        }
        case event_phase::BEGIN: {
            if (lanes.is_open(stage))
                close_stage(e, lanes, stage, false);
            const std::size_t lane = lanes.open(stage, ns);
            begin_entry('B', e, ns, lane);
            m_file.buffer() += ",\"name\":" + quoted(kind.name);
            arguments(e, false);
            end_entry();
            arrow(e, ns, lane);
            break;
        }
        case event_phase::END:
            // An end without begin: the trace was switched on in between.
            if (lanes.is_open(stage))
                close_stage(e, lanes, stage, true);
            break;
        case event_phase::LEVEL:
            begin_entry('C', e, ns, 0);
            m_file.buffer() += ",\"name\":\"" + std::string(name(e.block)) +
                               ' ' + kind.name + "\",\"args\":{\"" + kind.a +
                               "\":" + std::to_string(e.a) + '}';
            end_entry();
            break;
    }

    // A reset of any block is one of the whole card, and forgets what was in
    // flight: those stages get no end.
    if (e.kind == event_kind::RESET) {
        for (auto& [place, of_block] : m_lanes) {
            if (place.first != e.node)
                continue;
            event end = e;
            end.block = place.second;
            while (!of_block.none_open())
                close_stage(end, of_block, of_block.any_open(), false);
        }
    }
    m_file.end_record(e.time_ps);
}

}  // namespace prawn
