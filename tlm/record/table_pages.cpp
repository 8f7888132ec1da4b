// SPDX-License-Identifier: Apache-2.0
#include "record/table_pages.h"

#include <cstring>

namespace prawn {

void table_pages::touch(std::uint64_t address, std::uint32_t size) {
    const std::uint64_t last = (address + size - 1) / PAGE;
    for (std::uint64_t number = address / PAGE; number <= last; number++) {
        const auto found = m_index.find(number * PAGE);
        if (found == m_index.end())
            follow(number * PAGE);
        else
            m_pages[found->second].changes = 0;
    }
}

void table_pages::follow(std::uint64_t address) {
    page p;
    p.address = address;
    if (!m_read(address, p.bytes.data(), PAGE))
        return;
    m_index[address] = m_pages.size();
    m_pages.push_back(p);
    m_write(address, p.bytes.data(), PAGE);
}

void table_pages::compare() {
    // Backwards: forget() fills the gap with the last one.
    for (std::size_t i = m_pages.size(); i-- > 0;) {
        page& p = m_pages[i];
        if (!m_read(p.address, m_now.data(), PAGE))
            forget(i);
        else if (changed(p) && ++p.changes > CHANGES_UNREAD)
            forget(i);
    }
}

// Writes from the first word that differs to the last one.
bool table_pages::changed(page& p) {
    if (std::memcmp(p.bytes.data(), m_now.data(), PAGE) == 0)
        return false;
    constexpr std::uint32_t WORD = 8;
    const auto differs = [&](std::uint32_t at) {
        return std::memcmp(p.bytes.data() + at, m_now.data() + at, WORD) != 0;
    };
    std::uint32_t first = 0, last = PAGE - WORD;
    while (!differs(first))
        first += WORD;
    while (!differs(last))
        last -= WORD;
    p.bytes = m_now;
    m_write(p.address + first, p.bytes.data() + first, last + WORD - first);
    return true;
}

void table_pages::forget(std::size_t index) {
    m_index.erase(m_pages[index].address);
    if (index + 1 < m_pages.size()) {
        m_pages[index] = m_pages.back();
        m_index[m_pages[index].address] = index;
    }
    m_pages.pop_back();
}

void table_pages::clear() {
    m_pages.clear();
    m_index.clear();
}

}  // namespace prawn
