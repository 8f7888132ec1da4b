// SPDX-License-Identifier: Apache-2.0
// The array of the UTLB: a set-associative cache of translation table entries
// in card SRAM. Plain arithmetic, no time: also what a trace-driven study uses.

#ifndef PRAWN_NIC_UTLB_CACHE_H
#define PRAWN_NIC_UTLB_CACHE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prawn_hw.h"

namespace prawn {

// Register UTLB_GEOMETRY, taken apart.
struct utlb_geometry {
    unsigned log2_entries = 13;
    unsigned log2_ways = 2;
    bool offset = true;
    unsigned log2_prefetch = 3;

    // False if the card has no such geometry; then g is as it was.
    static bool decode(std::uint32_t word, utlb_geometry& g);
    std::uint32_t encode() const;
};

// Replacement: true LRU within a set (a lookup that hits, and a fill, make an
// entry the newest). Index: low bits of the page number, plus an offset by
// context if the geometry says so: contexts are spread over the sets in
// bit-reversed order, so that few of them are as far apart as they can be.
class utlb_cache
{
public:
    static constexpr std::uint64_t NOTHING = 0;  // no valid entry is 0

    struct evicted {
        bool any = false;
        std::uint16_t context = 0;
        std::uint64_t page = 0;
    };

    explicit utlb_cache(const utlb_geometry& geometry) { configure(geometry); }

    // Empties the cache.
    void configure(const utlb_geometry& geometry);
    const utlb_geometry& geometry() const { return m_geometry; }

    // The entry (TABLE_ENTRY) of a page, or NOTHING.
    std::uint64_t lookup(std::uint16_t context, std::uint64_t page) {
        const std::uint64_t key = make_key(context, page);
        const std::size_t first = set_of(context, page) << m_log2_ways;
        for (std::size_t i = first; i < first + m_ways; i++) {
            if (m_lines[i].key == key) {
                m_lines[i].used = ++m_clock;
                return m_lines[i].entry;
            }
        }
        return NOTHING;
    }

    // Replaces the page's entry if it is there, else the oldest of its set.
    evicted fill(std::uint16_t context, std::uint64_t page,
                 std::uint64_t entry);

    // Forget pages; returns how many there were.
    std::size_t invalidate(std::uint16_t context, std::uint64_t page,
                           std::uint64_t pages);
    std::size_t invalidate(std::uint16_t context);
    void clear();

    std::size_t entries() const { return m_lines.size(); }

private:
    struct line {
        std::uint64_t key = 0;
        std::uint64_t entry = 0;
        std::uint64_t used = 0;
    };
    static constexpr unsigned PAGE_BITS = PRAWN_VA_BITS - PRAWN_PAGE_SHIFT;
    static constexpr std::uint64_t VALID = std::uint64_t{1} << 63;

    static std::uint64_t make_key(std::uint16_t context, std::uint64_t page) {
        return VALID | static_cast<std::uint64_t>(context) << PAGE_BITS | page;
    }
    std::size_t set_of(std::uint16_t context, std::uint64_t page) const {
        return (page + m_offsets[context]) & m_set_mask;
    }

    utlb_geometry m_geometry;
    std::vector<line> m_lines;
    std::size_t m_ways = 1;
    unsigned m_log2_ways = 0;
    std::size_t m_set_mask = 0;
    std::uint64_t m_offsets[PRAWN_CONTEXTS] = {};
    std::uint64_t m_clock = 0;
};

}  // namespace prawn

#endif
