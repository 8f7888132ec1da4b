// SPDX-License-Identifier: Apache-2.0
#include "record/record_codec.h"

#include <stdexcept>

namespace prawn {

namespace {

// The first byte of a record.
constexpr std::uint8_t KIND = 0x1f;
constexpr std::uint8_t OTHER_NODE = 0x20;  // a byte with the node follows
constexpr std::uint8_t WITH_DELTA = 0x40;  // the delta cycle is not 0
constexpr std::uint8_t IS_NESTED = 0x80;
static_assert(RECORD_KINDS <= KIND + 1);

// The byte of a BAR access.
constexpr std::uint8_t BAR = 0x07;
constexpr unsigned SIZE_SHIFT = 3;  // two bits: log2 of the length
constexpr std::uint8_t POSTED = 0x20;
constexpr std::uint8_t BAR_BITS = 0x3f;

// The byte of a DMA.
constexpr std::uint8_t STATUS = 0x03;
constexpr std::uint8_t LATE = 0x04;
constexpr std::uint8_t OF_KERNEL = 0x08;  // otherwise the context follows
constexpr unsigned CHANNEL_SHIFT = 4;
constexpr std::uint16_t KERNEL = 0xffff;

[[noreturn]] void refuse(const char* what) {
    throw std::invalid_argument(std::string("recording: ") + what);
}

std::uint64_t zigzag(std::uint64_t difference) {
    return difference << 1 ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t code) {
    return code >> 1 ^ (code & 1 ? ~std::uint64_t{0} : 0);
}

// An order number, against the one that was to be expected.
void put_order(std::string& out, std::uint64_t& last, std::uint64_t order) {
    put_number(out, zigzag(order - (last + 1)));
    last = order;
}
bool get_order(byte_input& in, std::uint64_t& last, std::uint64_t& order) {
    std::uint64_t code = 0;
    if (!in.number(code))
        return false;
    order = last = last + 1 + unzigzag(code);
    return true;
}

unsigned log2_of(std::uint64_t length) {
    for (unsigned k = 0; k < 4; k++)
        if (length == std::uint64_t{1} << k)
            return k;
    refuse("a BAR access has 1, 2, 4 or 8 bytes");
}
// Bits of a value beyond the access.
std::uint64_t excess(std::uint64_t value, std::uint64_t length) {
    return length == 8 ? 0 : value >> (8 * length);
}

void encode_dma(std::string& out, record_state::orders& orders,
                const record& r) {
    if (r.length == 0 || r.length > RECORD_MAX_DATA || r.channel > 15 ||
        r.status > record_status::OTHER_ERROR)
        refuse("DMA of this length, channel or status");
    const bool with_data =
        r.kind == record_kind::DMA_WRITE || r.status == record_status::OK;
    if (with_data ? r.data_size != r.length : r.data_size != 0)
        refuse("DMA whose data is not as long as it is");
    if (r.late ? r.began_ps > r.time_ps : r.began_ps != 0)
        refuse("DMA that was answered before it began");
    out += static_cast<char>(static_cast<unsigned>(r.status) |
                             (r.late ? LATE : 0U) |
                             (r.context == KERNEL ? OF_KERNEL : 0U) |
                             static_cast<unsigned>(r.channel) << CHANNEL_SHIFT);
    put_order(out, orders.dma, r.order);
    put_number(out, r.address);
    put_number(out, r.length);
    if (r.context != KERNEL)
        put_number(out, r.context);
    if (r.late)
        put_number(out, r.time_ps - r.began_ps);
    if (with_data)
        out.append(reinterpret_cast<const char*>(r.data), r.data_size);
}

void encode_body(std::string& out, record_state::orders& orders,
                 const record& r) {
    switch (r.kind) {
        case record_kind::NONE:
            refuse("no such kind");
        case record_kind::ATTACH:
        case record_kind::DETACH:
        case record_kind::RESET:
            return;
        case record_kind::BUS_MASTER:
        case record_kind::INTX:
            out += static_cast<char>(r.flag);
            return;
        case record_kind::BAR_READ:
        case record_kind::BAR_WRITE:
        case record_kind::BAR_RESULT:
            if (r.bar > BAR || excess(r.value, r.length))
                refuse("BAR access of this BAR or value");
            out += static_cast<char>(r.bar | log2_of(r.length) << SIZE_SHIFT |
                                     (r.posted ? POSTED : 0U));
            if (r.kind == record_kind::BAR_RESULT) {
                put_order(out, orders.answered, r.order);
            } else {
                put_order(out, orders.asked, r.order);
                put_number(out, r.address);
            }
            if (r.kind != record_kind::BAR_READ)
                put_number(out, r.value);
            return;
        case record_kind::BAR_WRITTEN:
            put_order(out, orders.answered, r.order);
            return;
        case record_kind::BAR_ACCEPTED:
            put_order(out, orders.asked, r.order);
            return;
        case record_kind::MAP:
        case record_kind::UNMAP:
            put_number(out, r.address);
            put_number(out, r.length);
            return;
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            encode_dma(out, orders, r);
            return;
        case record_kind::DMA_ACCEPTED:
            put_order(out, orders.dma, r.order);
            return;
        case record_kind::MSIX:
            put_number(out, r.vector);
            return;
        case record_kind::MEMORY:
            if (r.data_size == 0 || r.data_size > RECORD_MAX_DATA)
                refuse("memory of this size");
            put_number(out, r.address);
            put_number(out, r.data_size);
            out.append(reinterpret_cast<const char*>(r.data), r.data_size);
            return;
    }
    refuse("no such kind");
}

bool take_data(byte_input& in, record& r, std::uint64_t size) {
    if (in.left() < size)
        return false;
    r.data = in.at;
    r.data_size = static_cast<std::uint32_t>(size);
    in.at += size;
    return true;
}

bool decode_dma(byte_input& in, record_state::orders& orders, record& r) {
    std::uint8_t flags = 0;
    if (!in.byte(flags) || (flags & STATUS) > 2 ||
        !get_order(in, orders.dma, r.order) || !in.number(r.address) ||
        !in.number(r.length) || r.length == 0 || r.length > RECORD_MAX_DATA)
        return false;
    r.status = static_cast<record_status>(flags & STATUS);
    r.channel = static_cast<std::uint8_t>(flags >> CHANNEL_SHIFT);
    r.late = (flags & LATE) != 0;
    std::uint64_t number = KERNEL;
    if (!(flags & OF_KERNEL) && (!in.number(number) || number >= KERNEL))
        return false;
    r.context = static_cast<std::uint16_t>(number);
    if (r.late) {
        if (!in.number(number) || number > r.time_ps)
            return false;
        r.began_ps = r.time_ps - number;
    }
    if (r.kind == record_kind::DMA_READ && r.status != record_status::OK)
        return true;
    return take_data(in, r, r.length);
}

bool decode_flag(byte_input& in, bool& flag) {
    std::uint8_t value = 0;
    if (!in.byte(value) || value > 1)
        return false;
    flag = value != 0;
    return true;
}

bool decode_access(byte_input& in, record& r) {
    std::uint8_t bits = 0;
    if (!in.byte(bits) || bits & ~BAR_BITS)
        return false;
    r.bar = bits & BAR;
    r.length = std::uint64_t{1} << (bits >> SIZE_SHIFT & 3);
    r.posted = (bits & POSTED) != 0;
    return true;
}

bool decode_body(byte_input& in, record_state::orders& orders, record& r) {
    std::uint64_t number = 0;
    switch (r.kind) {
        case record_kind::NONE:
            return false;
        case record_kind::ATTACH:
        case record_kind::DETACH:
        case record_kind::RESET:
            return true;
        case record_kind::BUS_MASTER:
        case record_kind::INTX:
            return decode_flag(in, r.flag);
        case record_kind::BAR_READ:
            return decode_access(in, r) && !r.posted &&
                   get_order(in, orders.asked, r.order) && in.number(r.address);
        case record_kind::BAR_WRITE:
            return decode_access(in, r) &&
                   get_order(in, orders.asked, r.order) &&
                   in.number(r.address) && in.number(r.value) &&
                   excess(r.value, r.length) == 0;
        case record_kind::BAR_RESULT:
            return decode_access(in, r) && r.bar == 0 && !r.posted &&
                   get_order(in, orders.answered, r.order) &&
                   in.number(r.value) && excess(r.value, r.length) == 0;
        case record_kind::BAR_WRITTEN:
            return get_order(in, orders.answered, r.order);
        case record_kind::BAR_ACCEPTED:
            return get_order(in, orders.asked, r.order);
        case record_kind::MAP:
        case record_kind::UNMAP:
            return in.number(r.address) && in.number(r.length);
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            return decode_dma(in, orders, r);
        case record_kind::DMA_ACCEPTED:
            return get_order(in, orders.dma, r.order);
        case record_kind::MSIX:
            if (!in.number(number) || number > UINT32_MAX)
                return false;
            r.vector = static_cast<std::uint32_t>(number);
            return true;
        case record_kind::MEMORY:
            return in.number(r.address) && in.number(number) && number > 0 &&
                   number <= RECORD_MAX_DATA && take_data(in, r, number);
    }
    return false;
}

}  // namespace

bool byte_input::number(std::uint64_t& value) {
    std::uint64_t sum = 0;
    for (unsigned shift = 0; shift < 70 && at != end; shift += 7) {
        const std::uint64_t b = *at++;
        if (shift == 63 && b > 1)
            return false;
        sum |= (b & 0x7f) << shift;
        if (b < 0x80) {
            value = sum;
            return true;
        }
    }
    return false;
}

bool byte_input::word(std::uint32_t& value) {
    if (left() < 4)
        return false;
    value = at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
            std::uint32_t{at[3]} << 24;
    at += 4;
    return true;
}

void put_number(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}

void put_word(std::string& out, std::uint32_t value) {
    for (unsigned k = 0; k < 4; k++)
        out += static_cast<char>(value >> (8 * k));
}

void encode(std::string& out, record_state& state, const record& r) {
    if (r.time_ps < state.time_ps)
        refuse("times must not fall");
    if (r.node >= RECORD_MAX_NODES)
        refuse("no such node");
    if (!r.to_card() && r.nested)
        refuse("only what a host does is nested");
    out += static_cast<char>(static_cast<unsigned>(r.kind) |
                             (r.node != state.node ? OTHER_NODE : 0U) |
                             (r.delta ? WITH_DELTA : 0U) |
                             (r.nested ? IS_NESTED : 0U));
    if (r.node != state.node)
        out += static_cast<char>(r.node);
    put_number(out, r.time_ps - state.time_ps);
    if (r.delta)
        put_number(out, r.delta);
    encode_body(out, state.at[r.node], r);
    state.time_ps = r.time_ps;
    state.node = r.node;
}

bool decode(byte_input& in, record_state& state, record& r) {
    std::uint8_t first = 0;
    std::uint64_t number = 0;
    if (!in.byte(first) || (first & KIND) >= RECORD_KINDS)
        return false;
    r = record();
    r.kind = static_cast<record_kind>(first & KIND);
    r.nested = (first & IS_NESTED) != 0;
    if (r.nested && !r.to_card())
        return false;
    if (first & OTHER_NODE) {
        std::uint8_t node = 0;
        if (!in.byte(node) || node >= RECORD_MAX_NODES)
            return false;
        state.node = node;
    }
    if (!in.number(number) || number > ~state.time_ps)
        return false;
    state.time_ps += number;
    if (first & WITH_DELTA) {
        if (!in.number(number) || number == 0 || number > UINT32_MAX)
            return false;
        r.delta = static_cast<std::uint32_t>(number);
    }
    r.time_ps = state.time_ps;
    r.node = state.node;
    return decode_body(in, state.at[r.node], r);
}

void encode(std::string& out, const record_state& state) {
    put_number(out, state.time_ps);
    put_number(out, state.node);
    for (const record_state::orders& o : state.at) {
        put_number(out, o.asked);
        put_number(out, o.answered);
        put_number(out, o.dma);
    }
}

bool decode(byte_input& in, record_state& state) {
    std::uint64_t node = 0;
    if (!in.number(state.time_ps) || !in.number(node) ||
        node >= RECORD_MAX_NODES)
        return false;
    state.node = static_cast<std::uint16_t>(node);
    for (record_state::orders& o : state.at)
        if (!in.number(o.asked) || !in.number(o.answered) || !in.number(o.dma))
            return false;
    return true;
}

}  // namespace prawn
