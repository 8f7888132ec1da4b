// SPDX-License-Identifier: Apache-2.0
// Stand-ins for what surrounds csr, admin queue and notifier.

#ifndef PRAWN_TESTS_UNIT_CONTROL_BENCH_H
#define PRAWN_TESTS_UNIT_CONTROL_BENCH_H

#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include <systemc>

#include "nic/contracts.h"

namespace prawn {
namespace test {

inline timing_profile flat_profile() {
    timing_profile p;
    p.name = "test";
    p.card_clock = sc_core::sc_time(4, sc_core::SC_NS);
    return p;
}

inline const timing_profile& the_profile() {
    static const timing_profile p = flat_profile();
    return p;
}

// Takes everything, remembers it.
template <typename T>
class recorder : public sc_core::sc_object, public put_if<T>
{
public:
    explicit recorder(const char* name) : sc_core::sc_object(name) {}
    bool try_put(T& item) override {
        if (refuse)
            return false;
        items.push_back(std::move(item));
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void make_room() {
        refuse = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    T take() {
        T item = std::move(items.front());
        items.pop_front();
        return item;
    }

    std::deque<T> items;
    bool refuse = false;

private:
    sc_core::sc_event m_room;
};

// A DMA channel with a memory behind it. Serves one request each LATENCY, in
// order; holds them back, or fails them, when told.
class fake_dma : public sc_core::sc_module, public put_if<dma_request>
{
public:
    put_if<dma_reply>* reply = nullptr;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 20);
    std::vector<dma_request> seen;
    bool hold = false;
    bool fail = false;
    unsigned refuse = 0;  // this many puts

    explicit fake_dma(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        SC_HAS_PROCESS(fake_dma);
        SC_METHOD(serve);
        dont_initialize();
        sensitive << m_due;
    }
    bool try_put(dma_request& r) override {
        if (refuse) {
            refuse--;
            m_room.notify(latency());
            return false;
        }
        seen.push_back(r);
        m_waiting.push_back(std::move(r));
        m_due.notify(latency());
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void release() {
        hold = false;
        m_due.notify(latency());
    }
    std::size_t waiting() const { return m_waiting.size(); }

    template <typename T>
    T at(std::uint64_t address) const {
        T value;
        std::memcpy(&value, memory.data() + address, sizeof(T));
        return value;
    }
    template <typename T>
    void store(std::uint64_t address, const T& value) {
        std::memcpy(memory.data() + address, &value, sizeof(T));
    }
    void clear() {
        memory.assign(memory.size(), 0);
        seen.clear();
        hold = fail = false;
        refuse = 0;
    }

private:
    static sc_core::sc_time latency() {
        return sc_core::sc_time(100, sc_core::SC_NS);
    }
    void serve() {
        if (hold || m_waiting.empty())
            return;
        dma_request r = std::move(m_waiting.front());
        m_waiting.pop_front();
        const bool fits = r.address + r.length <= memory.size();
        dma_reply answer{r.tag, PRAWN_STATUS_DMA_ERROR};
        if (fits && !fail) {
            answer.status = PRAWN_STATUS_OK;
            std::uint8_t* place = memory.data() + r.address;
            if (r.write)
                std::memcpy(place, r.data, r.length);
            else
                std::memcpy(r.data, place, r.length);
        }
        reply->try_put(answer);
        if (!m_waiting.empty())
            m_due.notify(latency());
    }

    std::deque<dma_request> m_waiting;
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

inline void run(double us = 20) {
    sc_core::sc_start(sc_core::sc_time(us, sc_core::SC_US));
}

template <typename T>
void put(put_if<T>& to, T item) {
    to.try_put(item);
}

}  // namespace test
}  // namespace prawn

#endif
