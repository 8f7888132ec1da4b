// SPDX-License-Identifier: Apache-2.0
// First in, first out, in one array that grows on demand and never shrinks: no
// allocation once it has reached its size.

#ifndef PRAWN_SUPPORT_RING_H
#define PRAWN_SUPPORT_RING_H

#include <cstddef>
#include <utility>
#include <vector>

namespace prawn {

template <typename T>
class ring
{
public:
    explicit ring(std::size_t capacity = 16) : m_items(1) {
        while (m_items.size() < capacity)
            m_items.resize(m_items.size() * 2);
    }
    bool empty() const { return m_first == m_last; }
    std::size_t size() const { return m_last - m_first; }
    T& front() { return m_items[m_first & mask()]; }
    const T& front() const { return m_items[m_first & mask()]; }
    T& back() { return m_items[(m_last - 1) & mask()]; }
    // From the front.
    T& operator[](std::size_t i) { return m_items[(m_first + i) & mask()]; }

    void push_back(T item) {
        if (size() == m_items.size())
            grow();
        m_items[m_last++ & mask()] = std::move(item);
    }
    T pop_front() { return std::move(m_items[m_first++ & mask()]); }
    void pop_back() { m_items[--m_last & mask()] = T(); }
    void clear() {
        while (!empty())
            pop_front();
    }

private:
    std::size_t mask() const { return m_items.size() - 1; }
    void grow() {
        std::vector<T> larger(m_items.size() * 2);
        const std::size_t n = size();
        for (std::size_t i = 0; i < n; i++)
            larger[i] = std::move((*this)[i]);
        m_items = std::move(larger);
        m_first = 0;
        m_last = n;
    }
    std::vector<T> m_items;
    std::size_t m_first = 0;
    std::size_t m_last = 0;
};

}  // namespace prawn

#endif
