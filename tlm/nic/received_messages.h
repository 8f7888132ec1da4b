// SPDX-License-Identifier: Apache-2.0
// How far each message has come, as its packets pass a block of the receive
// path: one that has a hole, or of which a packet was refused, must never raise
// a notification.

#ifndef PRAWN_NIC_RECEIVED_MESSAGES_H
#define PRAWN_NIC_RECEIVED_MESSAGES_H

#include <cstdint>
#include <vector>

#include "nic/types.h"

namespace prawn {

// Messages of one context to one node follow one another, so one place for
// each source suffices; flag FIRST begins a new message there. A message is
// known by its number and the life of its node: a number does not come twice in
// a life. Sources that cannot exist (the depacketizer lets none pass) share one
// place.
class received_messages
{
public:
    explicit received_messages(unsigned nodes) :
        m_places(std::size_t{nodes} * PRAWN_CONTEXTS + 1) {}

    // Every packet of its message before this one has passed.
    bool whole(const header& head) const {
        if (head.flags & PRAWN_PACKET_FLAG_FIRST)
            return true;
        const place& p = m_places[index(head)];
        return known(p, head) && !p.failed && p.next == head.message_offset;
    }
    // Its message is known not to be whole.
    bool failed(const header& head) const {
        const place& p = m_places[index(head)];
        return !(head.flags & PRAWN_PACKET_FLAG_FIRST) && known(p, head) &&
               p.failed;
    }
    void pass(const header& head) {
        m_places[index(head)] = {head.message,
                                 head.message_offset + head.payload_length,
                                 head.source_epoch, !whole(head)};
    }
    void fail(const header& head) {
        m_places[index(head)] = {head.message, 0, head.source_epoch, true};
    }
    void clear() { m_places.assign(m_places.size(), place()); }

private:
    struct place {
        std::uint32_t message = 0;
        std::uint32_t next = 0;  // message_offset to come
        std::uint16_t epoch = 0;
        bool failed = false;
    };
    static bool known(const place& p, const header& head) {
        return p.message == head.message && p.epoch == head.source_epoch;
    }
    std::size_t index(const header& head) const {
        const std::size_t last = m_places.size() - 1;
        const std::size_t i = std::size_t{head.source_node} * PRAWN_CONTEXTS +
                              head.source_context;
        const bool exists = head.source_context < PRAWN_CONTEXTS && i < last;
        return exists ? i : last;
    }
    std::vector<place> m_places;
};

}  // namespace prawn

#endif
