// SPDX-License-Identifier: Apache-2.0
// Messages of which a packet could not be delivered: none of them may raise a
// notification.

#ifndef PRAWN_NIC_FAILED_MESSAGES_H
#define PRAWN_NIC_FAILED_MESSAGES_H

#include <cstdint>
#include <vector>

#include "nic/types.h"

namespace prawn {

// Messages of one context to one node follow one another, so one place for
// each source suffices. A new message (flag FIRST) frees it. Sources that
// cannot exist (the depacketizer lets none pass) share one place.
class failed_messages
{
public:
    explicit failed_messages(unsigned nodes) :
        m_failed(std::size_t{nodes} * PRAWN_CONTEXTS + 1) {}

    // A packet comes by. False if an earlier one of its message has failed.
    bool good(const header& head) {
        place& p = at(head);
        if (head.flags & PRAWN_PACKET_FLAG_FIRST)
            p.failed = false;
        return !p.failed || p.message != head.message;
    }
    void fail(const header& head) { at(head) = {head.message, true}; }
    void clear() { m_failed.assign(m_failed.size(), place()); }

private:
    struct place {
        std::uint32_t message = 0;
        bool failed = false;
    };
    place& at(const header& head) {
        const std::size_t last = m_failed.size() - 1;
        const std::size_t i = std::size_t{head.source_node} * PRAWN_CONTEXTS +
                              head.source_context;
        const bool exists = head.source_context < PRAWN_CONTEXTS && i < last;
        return m_failed[exists ? i : last];
    }
    std::vector<place> m_failed;
};

}  // namespace prawn

#endif
