// SPDX-License-Identifier: Apache-2.0
// The packets of all links as a pcapng file for Wireshark, with link type
// USER0 (147), which docs/wireshark/prawn.lua dissects.
//
// One interface for each node and direction ("node0-tx"): a packet that crosses
// the fabric appears twice, when it leaves and when it arrives. Time stamps are
// model time in nanoseconds (Wireshark reads no finer ones correctly); the
// event stream has the picoseconds.

#ifndef PRAWN_TRACE_PCAPNG_WRITER_H
#define PRAWN_TRACE_PCAPNG_WRITER_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "support/events.h"
#include "trace/output_file.h"

namespace prawn {

class pcapng_writer : public event_sink
{
public:
    static constexpr std::uint16_t LINK_TYPE = 147;

    // comment: shown by Wireshark among the file's properties (profile,
    // configuration); may be empty. Throws as output_file does.
    pcapng_writer(const std::string& path, const std::string& comment);

    void on_packet(const packet_capture& p) override;
    void flush() override { m_file.flush(); }
    bool ok() const { return m_file.ok(); }

private:
    std::uint32_t interface_of(std::uint16_t node, link_direction direction);

    output_file m_file;
    std::map<std::pair<std::uint16_t, link_direction>, std::uint32_t>
        m_interfaces;
};

}  // namespace prawn

#endif
