// SPDX-License-Identifier: Apache-2.0
// The UTLB's way to the translation tables in host memory: several walks at
// once, each a chain of DMA reads.

#ifndef PRAWN_NIC_UTLB_WALKER_H
#define PRAWN_NIC_UTLB_WALKER_H

#include <cstdint>
#include <functional>
#include <vector>

#include "nic/contracts.h"
#include "support/ring.h"

namespace prawn {

// A walk fetches one line: `prefetch` consecutive entries of the last level,
// aligned, so that they never cross a table page. The directory cache knows
// where the last-level tables of 256 regions of 2 MiB are (direct-mapped); with
// it a walk is a single read, without it three reads of one entry precede.
class utlb_walker
{
public:
    static constexpr unsigned MAX_PREFETCH = 32;
    static constexpr unsigned MAX_WALKS = 64;
    static constexpr std::size_t DIRECTORY = 256;
    static constexpr int NONE = -1;

    struct walk {
        std::uint16_t context = 0;
        std::uint64_t page = 0;  // first of the line
        std::uint64_t root = 0;  // top table
        // Of the caller: its waiters.
        std::uint32_t first = 0, last = 0;
        std::uint64_t number = 0;  // for the event stream
        std::uint32_t reads = 0;   // sent so far

        // Of the walker.
        enum state_t : std::uint8_t {
            FREE,
            UNSENT,
            READING,
            STEP
        } state = FREE;
        bool cancelled = false;
        bool restart = false;
        std::uint16_t status = 0;
        unsigned level = 0;  // 0: last
        std::uint64_t address = 0;
        std::uint32_t length = 0;
        ref<small_buffer> buffer;
        drain_tracker::generation drain = 0;
    };

    // What the walker needs of the block.
    struct environment {
        std::function<bool(dma_request&)> read;  // dma_out; may refuse
        std::function<void(int)> step_soon;      // call step(i), a little later
        // All entries of the line (null: there is no table for it), or a
        // status that is not OK. The walk is over when this returns.
        std::function<void(walk&, std::uint16_t, const std::uint64_t*)> done;
        std::function<void()> bad_entry;  // reserved bits were set
    };

    utlb_walker(unsigned walks, environment env);

    void set_prefetch(unsigned entries) { m_prefetch = entries; }
    std::uint64_t line_of(std::uint64_t page) const {
        return page & ~std::uint64_t{m_prefetch - 1};
    }
    bool full() const { return m_used == m_walks.size(); }
    unsigned used() const { return m_used; }
    walk& at(int index) { return m_walks[static_cast<std::size_t>(index)]; }

    // The walk for this line, or NONE.
    int find(std::uint16_t context, std::uint64_t line) const;
    // Not if full().
    int start(std::uint16_t context, std::uint64_t line, std::uint64_t root);

    void answer(const dma_reply& reply);
    void step(int index);
    void send_unsent();

    // Walks that may have read what is no longer true begin again. pages 0: the
    // whole context.
    void invalidate(std::uint16_t context, std::uint64_t page,
                    std::uint64_t pages);
    // The context's walks are never done; dropped() gets each.
    void cancel(std::uint16_t context,
                const std::function<void(walk&)>& dropped);
    void reset();

    drain_tracker& reads() { return m_reads; }
    std::uint64_t directory_hits() const { return m_directory_hits; }

    // The entry, or 0 if it is not valid or has reserved bits set.
    std::uint64_t checked(std::uint64_t entry) const;

private:
    struct directory_entry {
        std::uint64_t key = 0;  // 0: none
        std::uint64_t table = 0;
    };
    static std::uint64_t directory_key(std::uint16_t context,
                                       std::uint64_t region);
    static std::size_t directory_index(std::uint16_t context,
                                       std::uint64_t region);
    void begin(walk& w);
    void aim(walk& w, std::uint64_t table);
    void send(int index);
    void release(walk& w);

    environment m_env;
    std::vector<walk> m_walks;
    unsigned m_used = 0;
    unsigned m_prefetch = 8;
    std::uint32_t m_generation = 0;
    ring<int> m_unsent;
    drain_tracker m_reads;
    std::vector<directory_entry> m_directory;
    std::uint64_t m_directory_hits = 0;
};

}  // namespace prawn

#endif
