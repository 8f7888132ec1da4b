// SPDX-License-Identifier: Apache-2.0
// Which of a sequence of operations is the oldest one still under way, when
// they end in any order.

#ifndef PRAWN_HOST_COMPLETION_WINDOW_H
#define PRAWN_HOST_COMPLETION_WINDOW_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace prawn {

class completion_window
{
public:
    // Returns the number of the operation, from 1 on.
    std::uint64_t begin() {
        if (m_last - m_done == m_ended.size())
            grow();
        m_last++;
        m_ended[m_last % m_ended.size()] = false;
        return m_last;
    }
    void end(std::uint64_t number) {
        m_ended[number % m_ended.size()] = true;
        while (m_done < m_last && m_ended[(m_done + 1) % m_ended.size()])
            m_done++;
    }
    std::uint64_t last() const { return m_last; }  // begun
    // This one and all before it have ended.
    bool ended(std::uint64_t number) const { return m_done >= number; }

private:
    void grow() {
        std::vector<char> larger(m_ended.size() * 2);
        for (std::uint64_t i = m_done + 1; i <= m_last; i++)
            larger[i % larger.size()] = m_ended[i % m_ended.size()];
        m_ended = std::move(larger);
    }
    std::vector<char> m_ended = std::vector<char>(64);
    std::uint64_t m_last = 0;
    std::uint64_t m_done = 0;
};

}  // namespace prawn

#endif
