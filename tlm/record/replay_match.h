// SPDX-License-Identifier: Apache-2.0
// What a node's card did in a replay with another timing, against what it did
// when it was recorded: the same things may come at other times and in another
// order, but the guest must see the same.

#ifndef PRAWN_RECORD_REPLAY_MATCH_H
#define PRAWN_RECORD_REPLAY_MATCH_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "record/replay_feed.h"
#include "record/replay_monitor.h"
#include "record/ring_view.h"

namespace prawn {

// Either side may be ahead. What is compared with what:
//  - the answer of a BAR read with that of the same read. Registers that say
//    how late it is, how full a FIFO is or what the configuration is may
//    differ; they are counted apart;
//  - an entry of a ring with the entry of the same number, its times aside;
//  - other data that were written to a page with what was written to that
//    page, byte by byte in order, however it was cut;
//  - the n-th interrupt of a vector with the n-th, and likewise levels of INTx.
class replay_match
{
public:
    replay_match(unsigned node, replay_monitor& monitor) :
        m_node(node), m_monitor(monitor) {}

    unsigned node() const { return m_node; }

    // A BAR read of which both answers will be heard.
    void expect_result(const record& access);
    void recorded_result(const feed_record& r);
    void came_result(std::uint64_t order, std::uint64_t value);

    void recorded_write(const feed_record& r, const ring_entry& e);
    void came_write(const ring_entry& e, std::uint64_t address,
                    std::uint32_t length, const std::uint8_t* data, bool ok);

    void recorded_interrupt(const feed_record& r);
    void came_interrupt(bool intx, std::uint32_t value);

    // Nothing is missing on either side.
    bool settled() const { return m_open_recorded == 0; }
    // What was recorded before this number and has not come by now is missing.
    void expire(std::uint64_t number);
    // Everything that is left, at the end. came_too: what came and had not
    // been recorded is a difference.
    void finish(bool came_too);

    std::uint64_t excused() const { return m_excused; }  // clocks and such
    std::uint64_t beyond() const { return m_beyond; }    // see finish()
    std::size_t waiting() const { return m_open_recorded + m_open_came; }

private:
    struct result {
        bool excused = false;
        bool recorded = false, came = false;
        std::uint64_t value = 0;
        std::uint64_t number = 0, time_ps = 0;
        std::uint64_t address = 0;
        std::uint8_t bar = 0;
    };
    // One side of something whose other side has not come yet.
    struct half {
        bool recorded = false;
        bool ok = true;
        std::uint64_t number = 0, time_ps = 0;
        std::uint64_t address = 0;
        std::uint32_t done = 0;  // bytes matched already
        std::vector<std::uint8_t> data;
    };
    struct signal {
        bool recorded = false;
        std::uint32_t value = 0;
        std::uint64_t number = 0, time_ps = 0;
    };

    void differ(std::uint64_t number, std::uint64_t time_ps,
                const std::string& text);
    void settle(result& r, std::uint64_t other);
    void one_side(const ring_entry& e, half h);
    void compare(const ring_entry& e, const half& recorded, const half& came);
    void stream(half h);
    void match_stream(std::deque<half>& waiting, half& h);
    void interrupt(bool intx, const signal& s);
    void missing(const half& h, const char* what);
    void opened(bool recorded) { recorded ? m_open_recorded++ : m_open_came++; }
    void closed(bool recorded) { recorded ? m_open_recorded-- : m_open_came--; }

    const unsigned m_node;
    replay_monitor& m_monitor;
    std::map<std::uint64_t, result> m_results;
    std::map<ring_entry, half> m_entries;
    std::map<std::uint64_t, std::deque<half>> m_pages;
    std::map<std::uint32_t, std::deque<signal>> m_vectors;
    std::deque<signal> m_intx;
    std::size_t m_open_recorded = 0, m_open_came = 0;
    std::uint64_t m_excused = 0;
    std::uint64_t m_beyond = 0;
};

}  // namespace prawn

#endif
