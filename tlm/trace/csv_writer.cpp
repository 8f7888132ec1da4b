// SPDX-License-Identifier: Apache-2.0
#include "trace/csv_writer.h"

namespace prawn {

csv_writer::csv_writer(const std::string& path) : m_file(path) {
    m_file.buffer() += "# prawn-events ";
    m_file.buffer() += std::to_string(EVENT_STREAM_VERSION);
    m_file.buffer() +=
        "\ntime_ps,node,block,kind,source_node,context,message,a,b\n";
    m_file.flush();
}

void csv_writer::on_event(const event& e) {
    std::string& out = m_file.buffer();
    const auto number = [&out](std::uint64_t value, char end) {
        out += std::to_string(value);
        out += end;
    };
    number(e.time_ps, ',');
    number(e.node, ',');
    out += name(e.block);
    out += ',';
    out += info(e.kind).id;
    out += ',';
    if (e.message.has_context()) {
        number(e.message.source_node, ',');
        number(e.message.context, ',');
        if (e.message.has_message())
            out += std::to_string(e.message.message);
        out += ',';
    } else {
        out += ",,,";
    }
    number(e.a, ',');
    number(e.b, '\n');
    m_file.end_record(e.time_ps);
}

}  // namespace prawn
