// SPDX-License-Identifier: Apache-2.0
// Doubly linked lists of small numbers (slots, contexts). All lists that an
// element may be in, one at a time, share one array of links.

#ifndef PRAWN_NIC_INDEX_LIST_H
#define PRAWN_NIC_INDEX_LIST_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prawn {

class index_links
{
public:
    static constexpr std::uint16_t NONE = 0xffff;

    explicit index_links(std::size_t elements) : m_link(elements) {}

private:
    friend class index_list;
    struct link {
        std::uint16_t next = NONE;
        std::uint16_t previous = NONE;
    };
    std::vector<link> m_link;
};

// Does not know its members: the caller keeps in mind what is in which list.
class index_list
{
public:
    static constexpr std::uint16_t NONE = index_links::NONE;

    bool empty() const { return m_head == NONE; }
    std::uint16_t front() const { return m_head; }
    std::uint16_t next(const index_links& links, std::uint16_t i) const {
        return links.m_link[i].next;
    }

    void push_back(index_links& links, std::uint16_t i) {
        links.m_link[i] = {NONE, m_tail};
        (m_tail == NONE ? m_head : links.m_link[m_tail].next) = i;
        m_tail = i;
    }
    void remove(index_links& links, std::uint16_t i) {
        const auto l = links.m_link[i];
        (l.previous == NONE ? m_head : links.m_link[l.previous].next) = l.next;
        (l.next == NONE ? m_tail : links.m_link[l.next].previous) = l.previous;
    }
    std::uint16_t pop_front(index_links& links) {
        const std::uint16_t i = m_head;
        remove(links, i);
        return i;
    }
    void clear() { m_head = m_tail = NONE; }

private:
    std::uint16_t m_head = NONE;
    std::uint16_t m_tail = NONE;
};

}  // namespace prawn

#endif
