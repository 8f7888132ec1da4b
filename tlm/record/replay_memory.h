// SPDX-License-Identifier: Apache-2.0
// Host memory of a replay whose timing differs from the recording's: what the
// card is to read is known from what it read when it was recorded.

#ifndef PRAWN_RECORD_REPLAY_MEMORY_H
#define PRAWN_RECORD_REPLAY_MEMORY_H

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "record/replay_feed.h"

namespace prawn {

// Pages, as many as were recorded, each with an image of what it holds now and
// with the versions to come. Two rules, by who reads:
//
// Everybody but the translation walker reads commands and data, and each once:
// so the n-th read of a byte gets what the n-th recorded read of it got, no
// matter how reads are cut and when they come. A byte that is read more often
// than that is what the image has: the last version, or what the card has
// written since.
//
// The walker reads the same entries again whenever its cache has lost them. It
// gets the newest version that belongs to an action that the host has done
// (version k was stored before action k); and if it was never told about such
// a byte, the oldest version to come, because what comes earlier than it did
// must be given what was there.
//
// Bytes of which nothing is known read as zero and are counted; the walker must
// not have such an entry.
class replay_memory
{
public:
    // Asks for more of the recording: versions of this page, if there are any.
    // False if there is no more, or none so near.
    using read_more = std::function<bool()>;

    // A recorded DMA read, or memory, with the host's action that it belongs
    // to.
    void add(kept r, bool table, std::uint64_t action);

    // For the card. table: the walker reads. Returns bytes of which nothing
    // is known.
    std::uint32_t read(std::uint64_t address, std::uint8_t* to,
                       std::uint32_t size, bool table, std::uint64_t action,
                       const read_more& more);
    void write(std::uint64_t address, const std::uint8_t* from,
               std::uint32_t size);

    // Memory that DMA may reach. Without any map() at all, all of it.
    void map(std::uint64_t address, std::uint64_t size);
    void unmap(std::uint64_t address, std::uint64_t size);
    bool mapped(std::uint64_t address, std::uint64_t size) const;

    // Versions of records before this number become the past: nobody has asked
    // for them. Returns the bytes that nobody has read.
    std::uint64_t expire(std::uint64_t number);

    std::uint64_t zeros() const { return m_zeros; }  // bytes read as such

private:
    static constexpr std::uint32_t PAGE = 4096;

    struct version {
        std::shared_ptr<feed_record> owner;  // data
        const std::uint8_t* bytes = nullptr;
        std::uint32_t offset = 0;  // in the page
        std::uint32_t size = 0;
        bool table = false;
        std::uint64_t action = 0;
        std::uint64_t number = 0;
    };
    struct page {
        std::array<std::uint8_t, PAGE> now{};
        std::bitset<PAGE> known;
        std::bitset<PAGE> entries;  // known, and of a translation table
        std::deque<version> to_come;
    };
    using wanted = std::bitset<PAGE>;

    page& at(std::uint64_t address);
    static void apply(page& p, const version& v);
    static bool next_version(page& p, std::uint32_t offset, std::uint32_t size,
                             wanted& want, std::uint8_t* to);
    std::uint32_t read_piece(std::uint64_t address, std::uint8_t* to,
                             std::uint32_t size, bool table,
                             std::uint64_t action, const read_more& more);
    static void read_table(page& p, std::uint32_t offset, std::uint32_t size,
                           std::uint64_t action, wanted& want,
                           std::uint8_t* to);

    std::unordered_map<std::uint64_t, std::unique_ptr<page>> m_pages;
    std::map<std::uint64_t, std::uint64_t> m_maps;  // begin -> end
    bool m_any_map = false;
    std::uint64_t m_zeros = 0;
};

}  // namespace prawn

#endif
