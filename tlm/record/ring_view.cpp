// SPDX-License-Identifier: Apache-2.0
#include "record/ring_view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nic/contracts.h"

namespace prawn {

namespace {

std::uint32_t size_of_log2(std::uint64_t log2) {
    const std::uint64_t least = PRAWN_RING_LOG2_MIN, most = PRAWN_RING_LOG2_MAX;
    return log2 < least || log2 > most ? 0 : 1u << log2;
}

std::uint32_t seq_at(const std::uint8_t* data, std::size_t offset) {
    std::uint32_t seq = 0;
    std::memcpy(&seq, data + offset, sizeof(seq));
    return seq;
}

}  // namespace

const char* name(ring_entry::kind_t kind) {
    switch (kind) {
        case ring_entry::COMPLETION:
            return "completion";
        case ring_entry::NOTIFICATION:
            return "notification";
        case ring_entry::ACK:
            return "admin acknowledgement";
        case ring_entry::EVENT:
            return "kernel event";
        default:
            return "no entry";
    }
}

void ring_view::host_did(const record& r) {
    switch (r.kind) {
        case record_kind::DETACH:
        case record_kind::RESET:
            reset();
            break;
        case record_kind::BAR_WRITE:
            if (r.bar == 0)
                bar0(r);
            break;
        default:
            break;
    }
}

// What is still under way goes to the rings that there were.
void ring_view::reset() {
    m_life++;
    for (context_rings& c : m_contexts)
        c.over = true;
}

// A 64-bit register may be written in halves.
void ring_view::set_half(std::uint64_t& value, const record& r,
                         std::uint64_t offset) const {
    if (r.length == 8)
        value = r.value;
    else if (r.address == offset)
        value = (value & ~std::uint64_t{0xffffffff}) | (r.value & 0xffffffff);
    else
        value = (value & 0xffffffff) | r.value << 32;
}

void ring_view::bar0(const record& r) {
    switch (r.address & ~std::uint64_t{3}) {
        case PRAWN_BAR0_CTRL:
            if (r.value & PRAWN_CTRL_RESET_MASK)
                reset();
            break;
        case PRAWN_BAR0_ADMIN_BASE:
        case PRAWN_BAR0_ADMIN_BASE + 4:
            set_half(m_admin_base, r, PRAWN_BAR0_ADMIN_BASE);
            break;
        case PRAWN_BAR0_ADMIN_ACK_BASE:
        case PRAWN_BAR0_ADMIN_ACK_BASE + 4:
            set_half(m_ack_base, r, PRAWN_BAR0_ADMIN_ACK_BASE);
            break;
        case PRAWN_BAR0_ADMIN_LOG2:
            m_admin_log2 = static_cast<std::uint32_t>(r.value);
            break;
        case PRAWN_BAR0_EVENT_BASE:
        case PRAWN_BAR0_EVENT_BASE + 4:
            set_half(m_event_base, r, PRAWN_BAR0_EVENT_BASE);
            break;
        case PRAWN_BAR0_EVENT_LOG2:
            m_event_log2 = static_cast<std::uint32_t>(r.value);
            break;
        default:
            break;
    }
}

void ring_view::card_read(std::uint8_t channel, std::uint64_t address,
                          std::uint32_t length, const std::uint8_t* data) {
    constexpr std::uint32_t SIZE = sizeof(prawn_admin_command);
    const ring_place commands = {m_admin_base, size_of_log2(m_admin_log2)};
    // The same channel fetches messages, too.
    if (channel != DMA_ADMIN || !data || !commands.has(address, SIZE, SIZE))
        return;
    for (std::uint32_t at = 0; at + SIZE <= length; at += SIZE) {
        prawn_admin_command c;
        std::memcpy(&c, data + at, sizeof(c));
        admin(c);
    }
}

void ring_view::admin(const prawn_admin_command& c) {
    if (c.context >= PRAWN_CONTEXTS)
        return;
    context_rings& of = m_contexts[c.context];
    if (c.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE)
        of.over = true;
    if (c.opcode != PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE)
        return;
    for (context_rings& other : m_contexts)
        if (other.over)
            other.commands = other.completions = other.notifications = {};
    of.over = false;
    const std::uint32_t size = size_of_log2(c.e & 0xff);
    of.life++;
    of.commands = {c.a, size};
    of.completions = {c.b, size};
    of.notifications = {c.c, size_of_log2(c.e >> 8 & 0xff)};
}

ring_entry ring_view::entry(std::uint8_t channel, std::uint64_t address,
                            std::uint32_t length,
                            const std::uint8_t* data) const {
    ring_entry e;
    if (channel != DMA_NOTIFIER || !data)
        return e;
    const ring_place acks = {m_ack_base, size_of_log2(m_admin_log2)};
    const ring_place events = {m_event_base, size_of_log2(m_event_log2)};
    if (acks.has(address, length, sizeof(prawn_admin_ack))) {
        e.kind = ring_entry::ACK;
        e.life = m_life;
        e.seq = seq_at(data, offsetof(prawn_admin_ack, seq));
        return e;
    }
    if (events.has(address, length, sizeof(prawn_kernel_event))) {
        e.kind = ring_entry::EVENT;
        e.life = m_life;
        e.seq = seq_at(data, offsetof(prawn_kernel_event, seq));
        return e;
    }
    for (std::uint16_t k = 0; k < PRAWN_CONTEXTS; k++) {
        const context_rings& c = m_contexts[k];
        if (c.completions.has(address, length, sizeof(prawn_completion)))
            e.kind = ring_entry::COMPLETION;
        else if (c.notifications.has(address, length,
                                     sizeof(prawn_notification)))
            e.kind = ring_entry::NOTIFICATION;
        else
            continue;
        static_assert(offsetof(prawn_completion, seq) ==
                          offsetof(prawn_notification, seq),
                      "");
        e.context = k;
        e.life = c.life;
        e.seq = seq_at(data, offsetof(prawn_completion, seq));
        return e;
    }
    return e;
}

bool ring_view::commands(std::uint8_t channel, std::uint64_t address,
                         std::uint32_t length, fetch& out) const {
    if (channel != DMA_COMMAND)
        return false;
    constexpr std::uint32_t SIZE = sizeof(prawn_command);
    for (std::uint16_t k = 0; k < PRAWN_CONTEXTS; k++) {
        const context_rings& c = m_contexts[k];
        if (!c.commands.has(address, SIZE, SIZE))
            continue;
        out.context = k;
        out.life = c.life;
        out.place =
            static_cast<std::uint32_t>((address - c.commands.base) / SIZE);
        out.count = length / SIZE;
        out.size = c.commands.entries;
        return true;
    }
    return false;
}

void clear_times(ring_entry::kind_t kind, std::uint8_t* bytes) {
    const auto clear = [bytes](std::size_t offset) {
        std::memset(bytes + offset, 0, sizeof(std::uint64_t));
    };
    switch (kind) {
        case ring_entry::COMPLETION:
            clear(offsetof(prawn_completion, accepted));
            clear(offsetof(prawn_completion, finished));
            break;
        case ring_entry::NOTIFICATION:
            clear(offsetof(prawn_notification, delivered));
            break;
        case ring_entry::EVENT:
            clear(offsetof(prawn_kernel_event, time));
            break;
        default:
            break;
    }
}

}  // namespace prawn
