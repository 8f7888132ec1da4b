// SPDX-License-Identifier: Apache-2.0
// What a host's rings are, learnt from what crosses the host port: which DMA
// write is which entry, which DMA read fetches which commands.

#ifndef PRAWN_RECORD_RING_VIEW_H
#define PRAWN_RECORD_RING_VIEW_H

#include <array>
#include <cstdint>

#include "prawn_hw.h"
#include "record/recording.h"

namespace prawn {

// An entry that the card wrote. Entries of one life of a ring have numbers of
// their own, whatever became of the ones before.
struct ring_entry {
    enum kind_t : std::uint8_t {
        NONE,
        COMPLETION,
        NOTIFICATION,
        ACK,
        EVENT
    } kind = NONE;
    std::uint16_t context = 0;
    std::uint32_t life = 0;  // of the context; ACK, EVENT: of the card
    std::uint32_t seq = 0;   // index + 1

    bool operator<(const ring_entry& o) const {
        if (kind != o.kind)
            return kind < o.kind;
        if (context != o.context)
            return context < o.context;
        if (life != o.life)
            return life < o.life;
        return seq < o.seq;
    }
};
const char* name(ring_entry::kind_t kind);

class ring_view
{
public:
    // In the order in which things happened. Writes to registers count when
    // they are made.
    void host_did(const record& r);
    // data: what a DMA read got; null if nothing.
    void card_read(std::uint8_t channel, std::uint64_t address,
                   std::uint32_t length, const std::uint8_t* data);

    // NONE if it is no entry of a ring that is known.
    ring_entry entry(std::uint8_t channel, std::uint64_t address,
                     std::uint32_t length, const std::uint8_t* data) const;

    // Commands that a DMA read fetches: place in the ring of the first, and
    // how many. False if it is no command ring.
    struct fetch {
        std::uint16_t context = 0;
        std::uint32_t life = 0;
        std::uint32_t place = 0;
        std::uint32_t count = 0;
        std::uint32_t size = 0;  // of the ring
    };
    bool commands(std::uint8_t channel, std::uint64_t address,
                  std::uint32_t length, fetch& out) const;

    std::uint32_t life(std::uint16_t context) const {
        return context < PRAWN_CONTEXTS ? m_contexts[context].life : 0;
    }
    std::uint32_t card_life() const { return m_life; }

private:
    struct ring_place {
        std::uint64_t base = 0;
        std::uint32_t entries = 0;
        bool has(std::uint64_t address, std::uint32_t length,
                 std::uint32_t size) const {
            return length == size && address >= base &&
                   address - base < std::uint64_t{entries} * size;
        }
    };
    struct context_rings {
        ring_place commands, completions, notifications;
        std::uint32_t life = 0;
        bool over = false;  // its rings may have become something else
    };
    void bar0(const record& r);
    void set_half(std::uint64_t& value, const record& r,
                  std::uint64_t offset) const;
    void admin(const prawn_admin_command& c);
    void reset();

    std::array<context_rings, PRAWN_CONTEXTS> m_contexts{};
    std::uint64_t m_admin_base = 0, m_ack_base = 0, m_event_base = 0;
    std::uint32_t m_admin_log2 = 0, m_event_log2 = 0;
    std::uint32_t m_life = 0;
};

// The times in an entry are set to zero, so that two can be compared that
// differ in nothing else.
void clear_times(ring_entry::kind_t kind, std::uint8_t* bytes);

}  // namespace prawn

#endif
