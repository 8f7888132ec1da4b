// SPDX-License-Identifier: Apache-2.0
#include "record/trace_text.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "prawn_names.h"

namespace prawn {

namespace {

constexpr std::uint16_t KERNEL = 0xffff;
constexpr std::size_t SHOWN_DATA = 16;

// By dma_channel of nic/contracts.h.
constexpr const char* CHANNELS[] = {"notifier", "admin", "utlb", "command",
                                    "incoming", "send",  "proxy"};

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx",
                  static_cast<unsigned long long>(value));
    return text;
}

std::string count(std::uint64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

template <std::size_t N>
std::string register_name(const prawn_register_info (&all)[N],
                          std::uint64_t offset) {
    for (const prawn_register_info& info : all) {
        const std::uint64_t bytes = info.width / 8;
        if (offset >= info.offset && offset < info.offset + bytes * info.count)
            return std::string(" ") + info.name;
    }
    return "";
}

// What is at this place of a BAR, if it has a name.
std::string place_name(unsigned bar, std::uint64_t offset) {
    if (bar == 0)
        return register_name(prawn_bar0_registers, offset);
    if (bar == 2)
        return " context " + std::to_string(offset / PRAWN_PAGE_SIZE) +
               register_name(prawn_doorbell_registers,
                             offset % PRAWN_PAGE_SIZE);
    return "";
}

std::string channel_text(unsigned channel) {
    return channel < sizeof CHANNELS / sizeof CHANNELS[0]
               ? CHANNELS[channel]
               : "channel " + std::to_string(channel);
}

std::string data_text(const record& r) {
    if (r.data_size == 0)
        return "";
    const std::size_t n = std::min<std::size_t>(r.data_size, SHOWN_DATA);
    return ": " + hex_text(r.data, n) + (n < r.data_size ? "..." : "");
}

const char* status_text(record_status status) {
    switch (status) {
        case record_status::OK:
            return "ok";
        case record_status::ADDRESS_ERROR:
            return "address error";
        case record_status::OTHER_ERROR:
            break;
    }
    return "error";
}

std::string dma_text(const record& r) {
    std::string text =
        hex(r.address) + ", " + count(r.length, "byte") + ", " +
        channel_text(r.channel) + " for " +
        (r.context == KERNEL ? std::string("the kernel")
                             : "context " + std::to_string(r.context)) +
        ", dma " + std::to_string(r.order);
    if (r.status != record_status::OK)
        text += std::string(", ") + status_text(r.status);
    if (r.late)
        text += ", asked at " + time_text(r.began_ps);
    return text + data_text(r);
}

std::string body_text(const record& r) {
    const std::string access = "access " + std::to_string(r.order);
    const std::string value = count(r.length, "byte") + " " + hex(r.value);
    const std::string place = "bar " + std::to_string(r.bar) + " +" +
                              hex(r.address) + place_name(r.bar, r.address);
    switch (r.kind) {
        case record_kind::NONE:
        case record_kind::ATTACH:
        case record_kind::DETACH:
        case record_kind::RESET:
            return "";
        case record_kind::BUS_MASTER:
            return r.flag ? "on" : "off";
        case record_kind::INTX:
            return r.flag ? "asserted" : "not asserted";
        case record_kind::BAR_READ:
            return place + ", " + count(r.length, "byte") + ", " + access;
        case record_kind::BAR_WRITE:
            return place + ", " + value + ", " + access +
                   (r.posted ? ", posted" : "");
        case record_kind::BAR_RESULT:
            return access + ", " + value;
        case record_kind::BAR_WRITTEN:
        case record_kind::BAR_ACCEPTED:
            return access;
        case record_kind::MAP:
        case record_kind::UNMAP:
            return hex(r.address) + ", " + count(r.length, "byte");
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            return dma_text(r);
        case record_kind::DMA_ACCEPTED:
            return "dma " + std::to_string(r.order);
        case record_kind::MSIX:
            return "vector " + std::to_string(r.vector);
        case record_kind::MEMORY:
            return hex(r.address) + ", " + count(r.data_size, "byte") +
                   data_text(r);
    }
    return "";
}

}  // namespace

std::string one_line(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
            c = '?';
    return text;
}

std::string time_text(std::uint64_t ps) {
    char text[40];
    std::snprintf(text, sizeof text, "%llu.%06llu us",
                  static_cast<unsigned long long>(ps / 1000000),
                  static_cast<unsigned long long>(ps % 1000000));
    return text;
}

std::uint64_t time_of_text(const std::string& text) {
    static const struct {
        const char* name;
        unsigned digits;  // picoseconds: ten to this power
    } UNITS[] = {{"ps", 0}, {"ns", 3}, {"us", 6}, {"ms", 9}, {"s", 12}};
    const auto refuse = [&text]() {
        throw std::runtime_error(text +
                                 ": no time: use a number of picoseconds, or "
                                 "one with ps, ns, us, ms or s, such as 1.5us");
    };
    std::size_t at = text.find_first_not_of("0123456789.");
    if (at == std::string::npos)
        at = text.size();
    std::string number = text.substr(0, at);
    const std::string unit = at == text.size() ? "ps" : text.substr(at);
    unsigned digits = ~0U;
    for (const auto& u : UNITS)
        if (unit == u.name)
            digits = u.digits;
    const std::size_t dot = number.find('.');
    std::string fraction;
    if (dot != std::string::npos) {
        fraction = number.substr(dot + 1);
        number.resize(dot);
    }
    if (digits == ~0U || number.empty() || fraction.size() > digits ||
        fraction.find('.') != std::string::npos)
        refuse();
    fraction.resize(digits, '0');
    std::uint64_t ps = 0;
    for (const char c : number + fraction) {
        if (ps > (~std::uint64_t{0} - 9) / 10)
            refuse();
        ps = ps * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return ps;
}

std::string hex_text(const std::uint8_t* data, std::size_t size) {
    constexpr char DIGITS[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * size);
    for (std::size_t i = 0; i < size; i++) {
        text += DIGITS[data[i] >> 4];
        text += DIGITS[data[i] & 15];
    }
    return text;
}

std::string record_text(const record& r) {
    std::string text = name(r.kind);
    const std::string body = body_text(r) + (r.nested ? ", nested" : "");
    if (!body.empty())
        text.resize(std::max<std::size_t>(text.size() + 1, 14), ' ');
    return text + body;
}

nlohmann::ordered_json record_json(std::uint64_t number, const record& r) {
    nlohmann::ordered_json j = {{"record", number},
                                {"time_ps", r.time_ps},
                                {"delta", r.delta},
                                {"node", r.node},
                                {"kind", name(r.kind)}};
    if (r.to_card())
        j["nested"] = r.nested;
    switch (r.kind) {
        case record_kind::NONE:
        case record_kind::ATTACH:
        case record_kind::DETACH:
        case record_kind::RESET:
            break;
        case record_kind::BUS_MASTER:
        case record_kind::INTX:
            j["on"] = r.flag;
            break;
        case record_kind::BAR_WRITE:
            j["value"] = r.value;
            j["posted"] = r.posted;
            [[fallthrough]];
        case record_kind::BAR_READ:
            j["bar"] = r.bar;
            j["address"] = r.address;
            j["length"] = r.length;
            j["order"] = r.order;
            break;
        case record_kind::BAR_RESULT:
            j["length"] = r.length;
            j["value"] = r.value;
            [[fallthrough]];
        case record_kind::BAR_WRITTEN:
        case record_kind::BAR_ACCEPTED:
        case record_kind::DMA_ACCEPTED:
            j["order"] = r.order;
            break;
        case record_kind::MAP:
        case record_kind::UNMAP:
            j["address"] = r.address;
            j["length"] = r.length;
            break;
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            j["address"] = r.address;
            j["length"] = r.length;
            j["order"] = r.order;
            j["channel"] = channel_text(r.channel);
            j["context"] = r.context == KERNEL
                               ? nlohmann::ordered_json()
                               : nlohmann::ordered_json(r.context);
            j["status"] = status_text(r.status);
            j["late"] = r.late;
            if (r.late)
                j["began_ps"] = r.began_ps;
            break;
        case record_kind::MSIX:
            j["vector"] = r.vector;
            break;
        case record_kind::MEMORY:
            j["address"] = r.address;
            break;
    }
    if (r.data_size)
        j["data"] = hex_text(r.data, r.data_size);
    return j;
}

const char* ending_text(recording_reader::ending end) {
    switch (end) {
        case recording_reader::ending::OPEN:
            break;
        case recording_reader::ending::COMPLETE:
            return "complete";
        case recording_reader::ending::TRUNCATED:
            return "truncated";
        case recording_reader::ending::DAMAGED:
            return "damaged";
    }
    return "open";
}

kept_record& kept_record::operator=(const record& r) {
    if (&r == &m_record)
        return *this;
    m_data.assign(reinterpret_cast<const char*>(r.data), r.data_size);
    m_record = r;
    m_record.data = reinterpret_cast<const std::uint8_t*>(m_data.data());
    return *this;
}

}  // namespace prawn
