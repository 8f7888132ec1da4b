// SPDX-License-Identifier: Apache-2.0
// A DMA engine, its bus and a host, with stand-ins for the rest of the card.

#ifndef PRAWN_TESTS_UNIT_HOST_BENCH_H
#define PRAWN_TESTS_UNIT_HOST_BENCH_H

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include <systemc>

#include "host/grant_checker.h"
#include "host/host_bus.h"
#include "host/memory_host.h"
#include "nic/dma_engine.h"

namespace prawn {
namespace test {

using sc_core::SC_NS;
using sc_core::sc_time;

inline void run_ns(double ns) {
    if (ns > 0)
        sc_core::sc_start(sc_time(ns, SC_NS));
}
inline std::uint64_t now_ns() {
    return now_ps() / 1000;
}

// Round numbers: a burst of 256 bytes takes 35 ns, a header 3 ns.
inline timing_profile duplex_profile(std::uint32_t reads = 64) {
    timing_profile p;
    p.name = "duplex";
    p.card_clock = sc_time(4, SC_NS);
    p.bus.bytes_per_ns = 8;
    p.bus.max_burst = 256;
    p.bus.overhead = 24;
    p.bus.read_latency = sc_time(450, SC_NS);
    p.bus.write_latency = sc_time(200, SC_NS);
    p.bus.outstanding_reads = reads;
    p.bus.mmio_read = sc_time(800, SC_NS);
    p.bus.mmio_write = sc_time(250, SC_NS);
    p.bus.interrupt = sc_time(1000, SC_NS);
    p.sram_access = sc_time(4, SC_NS);
    return p;
}

// 64 bytes: 240 + 1920 ns, 600 more to read.
inline timing_profile shared_profile() {
    timing_profile p;
    p.name = "shared";
    p.card_clock = sc_time(10, SC_NS);
    p.bus.half_duplex = true;
    p.bus.bytes_per_ns = 1.0 / 30.0;
    p.bus.max_burst = 64;
    p.bus.arbitration = sc_time(240, SC_NS);
    p.bus.read_latency = sc_time(600, SC_NS);
    p.bus.write_latency = sc_time(200, SC_NS);
    p.bus.mmio_read = sc_time(960, SC_NS);
    p.bus.mmio_write = sc_time(480, SC_NS);
    p.bus.interrupt = sc_time(5000, SC_NS);
    p.sram_access = sc_time(20, SC_NS);
    return p;
}

// Gathers answers with their times.
template <typename T>
class answers : public put_if<T>
{
public:
    struct entry {
        T item;
        std::uint64_t ps;
        std::uint64_t ns() const { return ps / 1000; }
    };
    bool try_put(T& item) override {
        all.push_back({item, now_ps()});
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    std::vector<entry> all;

private:
    sc_core::sc_event m_room;
};

// The card's end of BAR accesses: takes `delay` for each, one after another,
// and can be told to accept nothing.
class fake_card : public sc_core::sc_module, public card_control_if
{
public:
    tlm::tlm_target_socket<> bar_in{"bar_in"};
    sc_core::sc_export<card_control_if> control_in{"control_in"};
    sc_time delay;
    bool closed = false;
    struct access {
        std::uint64_t ns;
        std::uint64_t offset;
        std::uint64_t order;
        bool write;
        std::uint64_t value;
    };
    std::vector<access> seen;
    unsigned resets = 0;
    bool master = false;
    int attached = -1;

    explicit fake_card(sc_core::sc_module_name name) :
        sc_core::sc_module(name), m_end(*this, &fake_card::request) {
        bar_in.bind(m_end);
        control_in.bind(*this);
        SC_HAS_PROCESS(fake_card);
        SC_METHOD(serve);
        sensitive << m_due;
        dont_initialize();
    }
    void open() {
        closed = false;
        if (m_door) {
            tlm::tlm_generic_payload& trans = *m_door;
            m_door = nullptr;
            take(trans);
            send_backward(bar_in, trans, tlm::END_REQ);
        }
    }
    void reset() override { resets++; }
    void set_bus_master(bool on) override { master = on; }
    void set_attached(bool on) override { attached = on; }

private:
    tlm::tlm_sync_enum request(tlm::tlm_generic_payload& trans,
                               tlm::tlm_phase& phase) {
        if (closed) {
            m_door = &trans;
            return tlm::TLM_ACCEPTED;
        }
        take(trans);
        phase = tlm::END_REQ;
        return tlm::TLM_UPDATED;
    }
    void take(tlm::tlm_generic_payload& trans) {
        std::uint64_t value = 0;
        if (trans.is_write())
            std::memcpy(&value, trans.get_data_ptr(), trans.get_data_length());
        seen.push_back({now_ns(), trans.get_address(),
                        trans.get_extension<bar_extension>()->order,
                        trans.is_write(), value});
        m_waiting.push_back(&trans);
        if (m_waiting.size() == 1)
            m_due.notify(delay);
    }
    // A read returns its offset, and bit 31 to tell it from nothing.
    void serve() {
        tlm::tlm_generic_payload& trans = *m_waiting.front();
        m_waiting.pop_front();
        if (trans.is_read()) {
            const std::uint64_t value = trans.get_address() | 0x80000000u;
            std::memcpy(trans.get_data_ptr(), &value, trans.get_data_length());
        }
        trans.set_response_status(tlm::TLM_OK_RESPONSE);
        send_backward(bar_in, trans, tlm::BEGIN_RESP);
        if (!m_waiting.empty())
            m_due.notify(delay);
    }
    forward_end<fake_card> m_end;
    std::deque<tlm::tlm_generic_payload*> m_waiting;
    tlm::tlm_generic_payload* m_door = nullptr;
    sc_core::sc_event m_due;
};

struct host_bench : sc_core::sc_module {
    static constexpr std::uint64_t MEMORY = 0x100000;
    static constexpr std::uint64_t MEMORY_SIZE = 0x400000;

    timing_profile profile;
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env;
    dma_engine engine;
    std::unique_ptr<grant_checker> checker;
    host_bus bus;
    memory_host host;
    fake_card card{"card"};
    answers<dma_reply> replies[DMA_CHANNELS];
    answers<control_reply> control;
    sc_core::sc_port<interrupt_if> interrupt{"interrupt"};

    // bind_host: otherwise something is to be put between bus and host.
    host_bench(sc_core::sc_module_name name, const timing_profile& p,
               bool check = false, const host_bus_config& config = {},
               bool bind_host = true) :
        sc_core::sc_module(name),
        profile(p),
        env{1, 2, &profile, &counters, nullptr},
        engine("engine", env),
        bus("bus", env, config),
        host("host", {MEMORY, MEMORY_SIZE}) {
        for (unsigned i = 0; i < DMA_CHANNELS; i++)
            engine.reply_out[i].bind(replies[i]);
        engine.control_out.bind(control);
        if (check) {
            checker = std::make_unique<grant_checker>("checker", env);
            engine.bus_out.bind(checker->dma_in);
            checker->dma_out.bind(bus.dma_in);
        } else {
            engine.bus_out.bind(bus.dma_in);
        }
        if (bind_host) {
            bus.dma_out.bind(host.dma_in);
            host.bar_out.bind(bus.bar_in);
            bus.interrupt_out.bind(host.interrupt_in);
            host.control_out.bind(bus.control_in);
        }
        bus.bar_out.bind(card.bar_in);
        bus.control_out.bind(card.control_in);
        interrupt.bind(bus.interrupt_in);
        SC_HAS_PROCESS(host_bench);
        SC_METHOD(hear_room);
        sensitive << engine.request_in(DMA_SEND).room();
        dont_initialize();
    }
    void hear_room() { rooms++; }

    // Quiet, empty, bus mastering on.
    void start() {
        host.set_hold(memory_host::hold::NOTHING);
        card.open();
        run_ns(1000000);
        engine.reset();
        host.set_bus_master(true);
        for (auto& r : replies)
            r.all.clear();
        control.all.clear();
        card.seen.clear();
        card.delay = sc_core::SC_ZERO_TIME;
        card.resets = 0;
        host.accesses().clear();
        t0 = now_ns();
    }
    // Since start().
    std::uint64_t since(std::uint64_t ns) const { return ns - t0; }

    bool ask(unsigned channel, std::uint32_t tag, bool write,
             std::uint64_t address, std::uint32_t length, std::uint8_t* data,
             std::uint16_t context = 0) {
        dma_request r;
        r.tag = tag;
        r.write = write;
        r.context = context;
        r.address = address;
        r.length = length;
        r.data = data;
        return engine.request_in(channel).try_put(r);
    }
    std::uint64_t count(const char* name) const {
        for (std::size_t i = 0; i < counters.size(); i++)
            if (counters.name(i) == name)
                return counters.value(i);
        return ~std::uint64_t{0};
    }
    std::uint64_t t0 = 0;
    unsigned rooms = 0;  // times that channel DMA_SEND had room again
};

}  // namespace test
}  // namespace prawn

#endif
