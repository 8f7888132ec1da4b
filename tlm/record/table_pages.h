// SPDX-License-Identifier: Apache-2.0
// The pages of translation tables that a recording follows.

#ifndef PRAWN_RECORD_TABLE_PAGES_H
#define PRAWN_RECORD_TABLE_PAGES_H

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace prawn {

// The walker reads a few entries of a page, and how many depends on the UTLB's
// geometry. For a replay with another one, a page that it has read from is
// written whole, and later what has changed in it. The guest may put a page to
// another use without a word: one that changes again and again, and is read
// from no more, is followed no longer.
class table_pages
{
public:
    static constexpr std::uint32_t PAGE = 4096;
    static constexpr unsigned CHANGES_UNREAD = 64;

    // False if the memory cannot be seen.
    using reader = std::function<bool(std::uint64_t address, std::uint8_t* data,
                                      std::uint32_t size)>;
    using writer = std::function<void(
        std::uint64_t address, const std::uint8_t* data, std::uint32_t size)>;
    table_pages(reader read, writer write) :
        m_read(std::move(read)), m_write(std::move(write)) {}

    // The walker has read [address, address + size).
    void touch(std::uint64_t address, std::uint32_t size);
    // Writes what has changed in all pages.
    void compare();
    // The guest is another one now.
    void clear();
    std::size_t count() const { return m_pages.size(); }

private:
    struct page {
        std::uint64_t address = 0;
        unsigned changes = 0;  // since it was last read from
        std::array<std::uint8_t, PAGE> bytes{};
    };
    void follow(std::uint64_t address);
    bool changed(page& p);
    void forget(std::size_t index);

    const reader m_read;
    const writer m_write;
    std::vector<page> m_pages;
    std::unordered_map<std::uint64_t, std::size_t> m_index;  // by address
    std::array<std::uint8_t, PAGE> m_now{};
};

}  // namespace prawn

#endif
