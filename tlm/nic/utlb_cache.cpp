// SPDX-License-Identifier: Apache-2.0
#include "nic/utlb_cache.h"

namespace prawn {

namespace {

constexpr unsigned MIN_LOG2_ENTRIES = 6;
constexpr unsigned MAX_LOG2_ENTRIES = 14;
constexpr unsigned MAX_LOG2_PREFETCH = 5;
constexpr unsigned CONTEXT_BITS = 6;
static_assert(PRAWN_CONTEXTS == 1 << CONTEXT_BITS, "bit reversal below");

}  // namespace

bool utlb_geometry::decode(std::uint32_t word, utlb_geometry& g) {
    utlb_geometry n;
    n.log2_entries = PRAWN_FIELD_GET(UTLB_GEOMETRY_LOG2_ENTRIES, word);
    n.log2_ways = PRAWN_FIELD_GET(UTLB_GEOMETRY_LOG2_WAYS, word);
    n.offset = PRAWN_FIELD_GET(UTLB_GEOMETRY_OFFSET, word) != 0;
    n.log2_prefetch = PRAWN_FIELD_GET(UTLB_GEOMETRY_LOG2_PREFETCH, word);
    if (n.encode() != word || n.log2_entries < MIN_LOG2_ENTRIES ||
        n.log2_entries > MAX_LOG2_ENTRIES ||
        n.log2_prefetch > MAX_LOG2_PREFETCH)
        return false;
    g = n;
    return true;
}

std::uint32_t utlb_geometry::encode() const {
    return PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_ENTRIES, log2_entries) |
           PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_WAYS, log2_ways) |
           PRAWN_FIELD_PUT(UTLB_GEOMETRY_OFFSET, offset ? 1U : 0U) |
           PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_PREFETCH, log2_prefetch);
}

void utlb_cache::configure(const utlb_geometry& geometry) {
    m_geometry = geometry;
    m_log2_ways = geometry.log2_ways;
    m_ways = std::size_t{1} << m_log2_ways;
    const std::size_t sets = (std::size_t{1} << geometry.log2_entries) / m_ways;
    m_set_mask = sets - 1;
    for (unsigned c = 0; c < PRAWN_CONTEXTS; c++) {
        std::uint64_t reversed = 0;
        for (unsigned bit = 0; bit < CONTEXT_BITS; bit++)
            reversed |= static_cast<std::uint64_t>(c >> bit & 1)
                        << (CONTEXT_BITS - 1 - bit);
        m_offsets[c] = geometry.offset ? reversed * sets / PRAWN_CONTEXTS : 0;
    }
    m_lines.assign(std::size_t{1} << geometry.log2_entries, line());
    m_clock = 0;
}

utlb_cache::evicted utlb_cache::fill(std::uint16_t context, std::uint64_t page,
                                     std::uint64_t entry) {
    const std::uint64_t key = make_key(context, page);
    const std::size_t first = set_of(context, page) << m_log2_ways;
    std::size_t victim = first;
    for (std::size_t i = first; i < first + m_ways; i++) {
        if (m_lines[i].key == key) {
            victim = i;
            break;
        }
        // An empty line has never been used: it is the oldest.
        if (m_lines[i].used < m_lines[victim].used)
            victim = i;
    }
    line& l = m_lines[victim];
    evicted out;
    if (l.key != 0 && l.key != key) {
        out.any = true;
        out.context = static_cast<std::uint16_t>((l.key & ~VALID) >> PAGE_BITS);
        out.page = l.key & ((std::uint64_t{1} << PAGE_BITS) - 1);
    }
    l = {key, entry, ++m_clock};
    return out;
}

std::size_t utlb_cache::invalidate(std::uint16_t context, std::uint64_t page,
                                   std::uint64_t pages) {
    std::size_t count = 0;
    if (pages > m_lines.size()) {
        for (line& l : m_lines) {
            const std::uint64_t at = l.key - make_key(context, page);
            if (l.key >= make_key(context, page) && at < pages &&
                l.key >> PAGE_BITS == make_key(context, 0) >> PAGE_BITS) {
                l = line();
                count++;
            }
        }
        return count;
    }
    for (std::uint64_t p = page; p < page + pages; p++) {
        const std::uint64_t key = make_key(context, p);
        const std::size_t first = set_of(context, p) << m_log2_ways;
        for (std::size_t i = first; i < first + m_ways; i++) {
            if (m_lines[i].key == key) {
                m_lines[i] = line();
                count++;
            }
        }
    }
    return count;
}

std::size_t utlb_cache::invalidate(std::uint16_t context) {
    std::size_t count = 0;
    for (line& l : m_lines) {
        if (l.key >> PAGE_BITS == make_key(context, 0) >> PAGE_BITS) {
            l = line();
            count++;
        }
    }
    return count;
}

void utlb_cache::clear() {
    for (line& l : m_lines)
        l = line();
}

}  // namespace prawn
