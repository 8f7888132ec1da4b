// SPDX-License-Identifier: Apache-2.0
// Test twin of any contract: stands in front of a block's input, delays every
// item by a random time and refuses at random, order kept. What passes with
// the plain block must pass with the twin too.

#ifndef PRAWN_SUPPORT_TWIN_H
#define PRAWN_SUPPORT_TWIN_H

#include <cstdint>
#include <deque>
#include <random>

#include "support/put.h"

namespace prawn {

// depth 0 makes a twin that only refuses and never holds an item: for inputs
// whose refusals concern single items (per-peer credits), where holding one
// would block the others.
//
// Seeded: the same seed gives the same delays and refusals. Delays are 0 to
// max_delay, uniformly; one put in refuse_one_in is refused although there is
// room (0: none), and room() follows within max_delay.
template <typename T>
class twin : public sc_core::sc_module, public put_if<T>
{
public:
    put_port<T> out;

    twin(sc_core::sc_module_name name, std::uint64_t seed,
         sc_core::sc_time max_delay, unsigned refuse_one_in,
         std::size_t depth = 4) :
        sc_core::sc_module(name),
        out("out"),
        m_random(seed),
        m_max(max_delay),
        m_refuse(refuse_one_in),
        m_depth(depth) {
        SC_HAS_PROCESS(twin);
        SC_METHOD(forward);
        this->dont_initialize();
        this->sensitive << m_due;
        if (depth == 0) {
            SC_METHOD(pass_room);
        }
    }

    bool try_put(T& item) override {
        bool refuse = m_refuse != 0 && m_random() % m_refuse == 0;
        if (m_depth == 0 && !refuse)
            return out->try_put(item);
        if (refuse || m_items.size() >= m_depth) {
            m_refused = true;
            if (m_items.empty())
                m_room.notify(random_delay());
            return false;
        }
        m_items.push_back(std::move(item));
        if (m_items.size() == 1)
            m_due.notify(random_delay());
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }

    // To be called by the reset of the block behind it.
    void reset() {
        m_items.clear();
        m_due.cancel();
        m_room.notify(sc_core::SC_ZERO_TIME);
    }

private:
    sc_core::sc_time random_delay() {
        return m_max * (static_cast<double>(m_random() % 1024) / 1023.0);
    }
    // Runs at start too, to wait on an event only known after elaboration.
    void pass_room() {
        m_room.notify(sc_core::SC_ZERO_TIME);
        sc_core::next_trigger(out->room());
    }
    void forward() {
        if (m_items.empty())
            return;
        if (!out->try_put(m_items.front())) {
            sc_core::next_trigger(out->room());
            return;
        }
        m_items.pop_front();
        if (!m_items.empty())
            m_due.notify(random_delay());
        if (m_refused) {
            m_refused = false;
            m_room.notify(random_delay());
        }
    }

    std::mt19937_64 m_random;
    sc_core::sc_time m_max;
    unsigned m_refuse;
    std::size_t m_depth;
    std::deque<T> m_items;
    bool m_refused = false;
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

}  // namespace prawn

#endif
