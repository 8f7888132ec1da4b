// SPDX-License-Identifier: Apache-2.0
// The one shape of every connection between blocks: a put that may be refused.

#ifndef PRAWN_SUPPORT_PUT_H
#define PRAWN_SUPPORT_PUT_H

#include <cstddef>
#include <deque>
#include <utility>

#include <systemc>

namespace prawn {

// One direction of a block's contract (valid/ready in RTL terms).
//
// try_put(item) true: the item was accepted and moved from.
// try_put(item) false: refused, the item is untouched. A refusal concerns this
// item only (say, its peer has no credits); another item may be accepted.
// room() is notified (delta or later, never immediately) when an item refused
// before might be accepted now; wake-ups without cause are allowed.
//
// A request is answered later, through another put_if, by tag. Responders'
// puts are never refused: whoever asks has room for as many answers as it has
// requests under way. No call waits. SystemC thread only.
template <typename T>
class put_if : public virtual sc_core::sc_interface
{
public:
    virtual bool try_put(T& item) = 0;
    virtual const sc_core::sc_event& room() const = 0;
};

template <typename T>
using put_port = sc_core::sc_port<put_if<T>>;
template <typename T>
using put_export = sc_core::sc_export<put_if<T>>;

// Bounded input queue of a block: bind its other side's put_port to it.
// Does not keep time: the block that pops charges what a pop costs.
template <typename T>
class inbox : public sc_core::sc_object, public put_if<T>
{
public:
    inbox(const char* name, std::size_t depth) :
        sc_core::sc_object(name),
        m_depth(depth),
        m_arrived((std::string(name) + "_arrived").c_str()),
        m_room((std::string(name) + "_room").c_str()) {}

    bool try_put(T& item) override {
        if (m_items.size() >= m_depth) {
            m_refused = true;
            return false;
        }
        m_items.push_back(std::move(item));
        m_arrived.notify(sc_core::SC_ZERO_TIME);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }

    // Notified one delta after every accepted item.
    const sc_core::sc_event& arrived() const { return m_arrived; }
    bool empty() const { return m_items.empty(); }
    bool full() const { return m_items.size() >= m_depth; }
    std::size_t size() const { return m_items.size(); }
    T& front() { return m_items.front(); }
    T& at(std::size_t i) { return m_items[i]; }

    T pop() {
        T item = std::move(m_items.front());
        m_items.pop_front();
        if (m_refused) {
            m_refused = false;
            m_room.notify(sc_core::SC_ZERO_TIME);
        }
        return item;
    }

    void clear() {
        m_items.clear();
        if (m_refused) {
            m_refused = false;
            m_room.notify(sc_core::SC_ZERO_TIME);
        }
    }

private:
    std::size_t m_depth;
    std::deque<T> m_items;
    bool m_refused = false;
    sc_core::sc_event m_arrived;
    sc_core::sc_event m_room;
};

}  // namespace prawn

#endif
