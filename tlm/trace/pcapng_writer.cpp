// SPDX-License-Identifier: Apache-2.0
#include "trace/pcapng_writer.h"

namespace prawn {

namespace {

// Types of block and option, as the pcapng specification numbers them.
constexpr std::uint32_t SECTION_HEADER = 0x0a0d0d0a;
constexpr std::uint32_t INTERFACE_DESCRIPTION = 1;
constexpr std::uint32_t ENHANCED_PACKET = 6;
constexpr std::uint32_t MAGIC = 0x1a2b3c4d;
constexpr std::uint16_t OPTION_END = 0;
constexpr std::uint16_t OPTION_COMMENT = 1;
constexpr std::uint16_t SECTION_APPLICATION = 4;
constexpr std::uint16_t INTERFACE_NAME = 2;
constexpr std::uint16_t INTERFACE_DESCRIPTION_TEXT = 3;
constexpr std::uint16_t INTERFACE_RESOLUTION = 9;
constexpr std::uint16_t PACKET_FLAGS = 2;

constexpr std::uint64_t PS_PER_NS = 1000;
constexpr char NANOSECONDS = 9;  // exponent of the resolution
constexpr std::size_t LONGEST_OPTION = 0xffff;

// Appends one block to a string; its length is known at the end.
class block_writer
{
public:
    block_writer(std::string& out, std::uint32_t type) :
        m_out(out), m_start(out.size()) {
        put32(type);
        put32(0);
    }

    void put16(std::uint16_t v) { put(v, 2); }
    void put32(std::uint32_t v) { put(v, 4); }
    void put64(std::uint64_t v) { put(v, 8); }
    void bytes(const void* data, std::size_t size) {
        m_out.append(static_cast<const char*>(data), size);
    }
    void align() {
        while ((m_out.size() - m_start) % 4 != 0)
            m_out += '\0';
    }
    void option(std::uint16_t code, const void* data, std::size_t size) {
        size = size < LONGEST_OPTION ? size : LONGEST_OPTION;
        put16(code);
        put16(static_cast<std::uint16_t>(size));
        bytes(data, size);
        align();
    }
    void option(std::uint16_t code, const std::string& text) {
        option(code, text.data(), text.size());
    }
    void end_of_options() {
        put16(OPTION_END);
        put16(0);
    }
    void finish() {
        const std::size_t size = m_out.size() - m_start + 4;
        put32(static_cast<std::uint32_t>(size));
        for (std::size_t i = 0; i < 4; i++)
            m_out[m_start + 4 + i] = static_cast<char>(size >> 8 * i & 0xff);
    }

private:
    void put(std::uint64_t v, unsigned size) {
        for (unsigned i = 0; i < size; i++)
            m_out += static_cast<char>(v >> 8 * i & 0xff);
    }

    std::string& m_out;
    std::size_t m_start;
};

}  // namespace

pcapng_writer::pcapng_writer(const std::string& path,
                             const std::string& comment) :
    m_file(path) {
    block_writer block(m_file.buffer(), SECTION_HEADER);
    block.put32(MAGIC);
    block.put16(1);                  // major version
    block.put16(0);                  // minor version
    block.put64(~std::uint64_t{0});  // length of the section: not known
    block.option(SECTION_APPLICATION, "prawn");
    if (!comment.empty())
        block.option(OPTION_COMMENT, comment);
    block.end_of_options();
    block.finish();
    m_file.flush();
}

std::uint32_t pcapng_writer::interface_of(std::uint16_t node,
                                          link_direction direction) {
    const auto next = static_cast<std::uint32_t>(m_interfaces.size());
    const auto [it, fresh] = m_interfaces.try_emplace({node, direction}, next);
    if (!fresh)
        return it->second;
    const bool tx = direction == link_direction::TX;
    const std::string number = std::to_string(node);
    block_writer block(m_file.buffer(), INTERFACE_DESCRIPTION);
    block.put16(LINK_TYPE);
    block.put16(0);
    block.put32(0);  // whole packets
    block.option(INTERFACE_NAME, "node" + number + (tx ? "-tx" : "-rx"));
    block.option(INTERFACE_DESCRIPTION_TEXT,
                 (tx ? "What node " : "What reaches node ") + number +
                     (tx ? " sends" : ""));
    block.option(INTERFACE_RESOLUTION, &NANOSECONDS, 1);
    block.end_of_options();
    block.finish();
    return next;
}

void pcapng_writer::on_packet(const packet_capture& p) {
    if (!ok())
        return;
    const std::uint32_t interface = interface_of(p.node, p.direction);
    const std::uint64_t time = p.time_ps / PS_PER_NS;
    const auto size = static_cast<std::uint32_t>(p.size());
    block_writer block(m_file.buffer(), ENHANCED_PACKET);
    block.put32(interface);
    block.put32(static_cast<std::uint32_t>(time >> 32));
    block.put32(static_cast<std::uint32_t>(time));
    block.put32(size);  // captured
    block.put32(size);  // on the wire
    for (std::size_t i = 0; i < p.part_count; i++)
        block.bytes(p.parts[i].data, p.parts[i].size);
    block.align();
    // Bits 1:0: 1 inbound, 2 outbound.
    const char flags[4] = {p.direction == link_direction::TX ? '\2' : '\1'};
    block.option(PACKET_FLAGS, flags, sizeof(flags));
    block.end_of_options();
    block.finish();
    m_file.end_record(p.time_ps);
}

}  // namespace prawn
