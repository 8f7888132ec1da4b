// SPDX-License-Identifier: Apache-2.0
// Stand-ins for what surrounds the blocks of the receive path and the fabric.

#ifndef PRAWN_TESTS_UNIT_RECEIVE_BENCH_H
#define PRAWN_TESTS_UNIT_RECEIVE_BENCH_H

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <systemc>

#include "nic/contracts.h"
#include "nic/packet_tools.h"
#include "nic/pools.h"

namespace prawn {
namespace test {

using sc_core::SC_NS;
using sc_core::sc_time;
using sc_core::sc_time_stamp;

inline sc_time ns(double n) {
    return sc_time(n, SC_NS);
}
// Lets everything happen that is due now.
inline void settle() {
    while (sc_core::sc_time_to_pending_activity() == sc_core::SC_ZERO_TIME)
        sc_core::sc_start(sc_core::SC_ZERO_TIME);
}
// What is due at the end happens too.
inline void run(double nanoseconds) {
    sc_core::sc_start(ns(nanoseconds));
    settle();
}

// Numbers that make sums easy to check: 10 ns a cycle, 2 bytes a nanosecond.
inline const timing_profile& the_profile() {
    static const timing_profile one = [] {
        timing_profile p;
        p.name = "test";
        p.card_clock = ns(10);
        p.sram_access = ns(5);
        p.link.bytes_per_ns = 2.0;
        p.link.latency = ns(100);
        p.link.overhead = 8;
        p.link.credits = 4;
        p.link.switch_latency = ns(30);
        return p;
    }();
    return one;
}

inline std::uint64_t count(const counter_registry& counters,
                           const std::string& name) {
    for (std::size_t i = 0; i < counters.size(); i++)
        if (counters.name(i) == name)
            return counters.value(i);
    ADD_FAILURE() << "no counter " << name;
    return 0;
}
inline std::uint64_t count(const counter_registry& counters,
                           const std::string& name, std::size_t context) {
    for (std::size_t i = 0; i < counters.per_context_size(); i++)
        if (counters.per_context_name(i) == name)
            return counters.per_context_value(i, context);
    ADD_FAILURE() << "no counter " << name;
    return 0;
}

// Remembers what it was given, and when. Refuses all, or some, when told.
template <typename T>
class sink : public sc_core::sc_object, public put_if<T>
{
public:
    struct entry {
        sc_time when;
        T item;
    };
    explicit sink(const char* name) : sc_core::sc_object(name) {}
    bool try_put(T& item) override {
        if (refuse || (refuse_if && refuse_if(item))) {
            refusals++;
            return false;
        }
        items.push_back({sc_time_stamp(), std::move(item)});
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void release() {
        refuse = false;
        refuse_if = nullptr;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    void clear() {
        release();
        items.clear();
        refusals = 0;
    }
    std::size_t size() const { return items.size(); }
    T& operator[](std::size_t i) { return items.at(i).item; }
    const sc_time& when(std::size_t i) const { return items.at(i).when; }
    T take() {
        T item = std::move(items.at(0).item);
        items.pop_front();
        return item;
    }

    std::deque<entry> items;
    bool refuse = false;
    std::function<bool(const T&)> refuse_if;
    unsigned refusals = 0;

private:
    sc_core::sc_event m_room;
};

// A packet that every check lets pass; its payload is a pattern of the seed.
inline packet_ref make_packet(unsigned from, unsigned to, unsigned bytes,
                              std::uint8_t type = PRAWN_PACKET_TYPE_DATA,
                              unsigned seed = 1) {
    packet_ref p = packet_pool().get();
    header& h = p->head;
    h = header{};
    h.version = PRAWN_PACKET_VERSION;
    h.type = type;
    h.source_node = static_cast<std::uint16_t>(from);
    h.destination_node = static_cast<std::uint16_t>(to);
    h.source_epoch = 1;
    h.source_context = 3;
    h.message = seed;
    h.payload_length = static_cast<std::uint16_t>(bytes);
    if (type == PRAWN_PACKET_TYPE_DATA)
        h.flags = PRAWN_PACKET_FLAG_FIRST | PRAWN_PACKET_FLAG_LAST;
    for (unsigned i = 0; i < bytes && i < PRAWN_MAX_PAYLOAD; i++)
        p->payload[i] = static_cast<std::uint8_t>(i * 7 + seed);
    return p;
}
inline packet_ref with_crc(packet_ref p) {
    p->crc = packet_crc(*p);
    return p;
}
template <typename T>
bool put(put_if<T>& input, T item) {
    return input.try_put(item);
}
// The control channel answers one request with this status.
inline void expect_control(block& dut, sink<control_reply>& replies,
                           const control_request& request,
                           std::uint16_t status) {
    const std::size_t before = replies.size();
    EXPECT_TRUE(put(dut.control_in(), request));
    EXPECT_EQ(replies.size(), before) << "answered in the asker's own call";
    run(10);
    settle();
    ASSERT_EQ(replies.size(), before + 1);
    EXPECT_EQ(replies[before].tag, request.tag);
    EXPECT_EQ(replies[before].status, status);
}
inline control_request ask(control_op op, std::uint32_t tag = 77,
                           std::uint16_t context = 0, std::uint32_t index = 0) {
    control_request r;
    r.tag = tag;
    r.op = op;
    r.context = context;
    r.index = index;
    return r;
}

}  // namespace test
}  // namespace prawn

#endif
