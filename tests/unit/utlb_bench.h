// SPDX-License-Identifier: Apache-2.0
// A UTLB with translation tables and a DMA channel that can be stepped.

#ifndef PRAWN_TESTS_UNIT_UTLB_BENCH_H
#define PRAWN_TESTS_UNIT_UTLB_BENCH_H

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "host_bench.h"
#include "nic/utlb.h"
#include "support/twin.h"

namespace prawn {
namespace test {

constexpr std::uint64_t PAGE = 4096;
constexpr std::uint64_t VALID = PRAWN_TABLE_ENTRY_VALID_MASK;
constexpr std::uint64_t WRITE = PRAWN_TABLE_ENTRY_WRITE_MASK;

// The kernel's side: a radix tree in a host's memory.
class tables
{
public:
    tables(memory_host& host, std::uint64_t base) :
        m_host(host), m_base(base), m_next(base) {
        m_root = page();
    }
    ~tables() { m_host.unmap(m_base, m_next - m_base); }

    std::uint64_t root() const { return m_root; }
    void set(std::uint64_t va, std::uint64_t entry) {
        m_host.store(slot(va, 0), entry);
    }
    void map(std::uint64_t va, std::uint64_t address, bool write = true) {
        set(va, address | VALID | (write ? WRITE : 0));
    }
    void unmap(std::uint64_t va) { set(va, 0); }
    // Address of the entry for va at a level (0: last); makes what is missing.
    std::uint64_t slot(std::uint64_t va, unsigned level) {
        std::uint64_t table = m_root;
        for (unsigned l = PRAWN_TABLE_LEVELS - 1; l > level; l--) {
            const std::uint64_t at = table + index(va, l) * 8;
            std::uint64_t entry = m_host.load<std::uint64_t>(at);
            if (!(entry & VALID)) {
                entry = page() | VALID;
                m_host.store(at, entry);
            }
            table = entry & PRAWN_TABLE_ENTRY_ADDRESS_MASK;
        }
        return table + index(va, level) * 8;
    }
    static std::uint64_t index(std::uint64_t va, unsigned level) {
        return va >> (12 + 9 * level) & 511;
    }
    std::uint64_t page() {
        m_host.map(m_next, PAGE);
        m_next += PAGE;
        return m_next - PAGE;
    }

private:
    memory_host& m_host;
    std::uint64_t m_base, m_next, m_root = 0;
};

// Answers reads from a host's memory after 100 ns, or when told. The data are
// those of the time of the request, or of the answer.
class stepped_dma : public sc_core::sc_module, public put_if<dma_request>
{
public:
    memory_host* host = nullptr;
    put_if<dma_reply>* reply = nullptr;
    bool hold = false;
    bool early = false;  // data as of the request
    bool fail = false;
    bool refuse = false;
    std::vector<dma_request> seen;
    std::deque<dma_request> waiting;

    explicit stepped_dma(sc_core::sc_module_name name) :
        sc_core::sc_module(name) {
        SC_HAS_PROCESS(stepped_dma);
        SC_METHOD(serve);
        sensitive << m_due;
        dont_initialize();
    }
    bool try_put(dma_request& r) override {
        if (refuse)
            return false;
        seen.push_back(r);
        seen.back().keep.reset();
        if (early)
            carry_out(r);
        waiting.push_back(std::move(r));
        m_times.push_back(now_ns() + 100);
        if (!hold && waiting.size() == 1)
            m_due.notify(sc_time(100, SC_NS));
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void open() {
        refuse = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    void step() {
        dma_request r = std::move(waiting.front());
        waiting.pop_front();
        m_times.pop_front();
        if (!early)
            carry_out(r);
        dma_reply answer{
            r.tag, static_cast<std::uint16_t>(r.data ? PRAWN_STATUS_OK
                                                     : PRAWN_STATUS_DMA_ERROR)};
        reply->try_put(answer);
    }
    void clear() {
        waiting.clear();
        m_times.clear();
        seen.clear();
        m_due.cancel();
        hold = early = fail = refuse = false;
    }

private:
    void carry_out(dma_request& r) {
        if (fail || !host->read_memory(r.address, r.data, r.length))
            r.data = nullptr;  // remembered as an error
    }
    void serve() {
        if (hold || waiting.empty())
            return;
        step();
        if (!waiting.empty())
            m_due.notify(sc_time(
                static_cast<double>(std::max(m_times.front(), now_ns()) -
                                    now_ns()),
                SC_NS));
    }
    std::deque<std::uint64_t> m_times;
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

struct utlb_bench : sc_core::sc_module {
    timing_profile profile = duplex_profile();
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env;
    utlb dut;
    stepped_dma dma{"dma"};
    memory_host host{"host"};
    answers<utlb_reply> replies[UTLB_PORTS];
    answers<control_reply> control;
    answers<kernel_event_request> events;
    host_bus bus;  // only so that the host's sockets are bound
    fake_card card{"card"};
    dma_engine engine;
    answers<dma_reply> engine_replies;
    unsigned rooms = 0;

    explicit utlb_bench(sc_core::sc_module_name name,
                        const utlb_config& config = {}) :
        sc_core::sc_module(name),
        env{1, 2, &profile, &counters, nullptr},
        dut("utlb", env, config),
        bus("bus", env),
        engine("engine", env) {
        dma.host = &host;
        dma.reply = &dut.dma_reply_in();
        dut.dma_out.bind(dma);
        for (unsigned i = 0; i < UTLB_PORTS; i++)
            dut.reply_out[i].bind(replies[i]);
        dut.control_out.bind(control);
        dut.event_out.bind(events);
        host.bar_out.bind(bus.bar_in);
        bus.bar_out.bind(card.bar_in);
        bus.dma_out.bind(host.dma_in);
        bus.interrupt_out.bind(host.interrupt_in);
        bus.control_out.bind(card.control_in);
        engine.bus_out.bind(bus.dma_in);
        for (unsigned i = 0; i < DMA_CHANNELS; i++)
            engine.reply_out[i].bind(engine_replies);
        engine.control_out.bind(control);
        SC_HAS_PROCESS(utlb_bench);
        SC_METHOD(hear_room);
        sensitive << dut.request_in(UTLB_SEND).room();
        dont_initialize();
    }
    void hear_room() { rooms++; }

    void start(const utlb_geometry& g = {}) {
        dut.reset();
        dma.clear();
        run_ns(1000);
        dut.set_geometry(g.encode());
        for (auto& r : replies)
            r.all.clear();
        control.all.clear();
        rooms = 0;
        t0 = now_ns();
    }
    std::uint64_t t0 = 0;
    std::uint64_t since() const { return now_ns() - t0; }

    bool ask(unsigned port, std::uint32_t tag, std::uint16_t context,
             std::uint64_t va, bool write = false) {
        utlb_request r;
        r.tag = tag;
        r.context = context;
        r.va = va;
        r.write = write;
        return dut.request_in(port).try_put(r);
    }
    void command(std::uint32_t tag, control_op op, std::uint16_t context = 0,
                 std::uint64_t a = 0, std::uint64_t b = 0,
                 std::uint64_t d = 0) {
        control_request r;
        r.tag = tag;
        r.op = op;
        r.context = context;
        r.a = a;
        r.b = b;
        r.d = d;
        dut.control_in().try_put(r);
    }
    void enable(std::uint16_t context, const tables& t) {
        command(1000, control_op::CONTEXT_ENABLE, context, 0, 0, t.root());
        run_ns(20);
        EXPECT_EQ(control.all.back().item.status, PRAWN_STATUS_OK);
        control.all.clear();
        t0 = now_ns();
    }
    // Asks, waits, returns the answer.
    utlb_reply translate(std::uint16_t context, std::uint64_t va,
                         bool write = false) {
        const std::size_t before = replies[UTLB_SEND].all.size();
        EXPECT_TRUE(ask(UTLB_SEND, 4242, context, va, write));
        run_ns(3000);
        EXPECT_EQ(replies[UTLB_SEND].all.size(), before + 1);
        return replies[UTLB_SEND].all.back().item;
    }
    std::uint64_t count(const std::string& name) const {
        for (std::size_t i = 0; i < counters.size(); i++)
            if (counters.name(i) == "utlb." + name)
                return counters.value(i);
        return ~std::uint64_t{0};
    }
    std::uint64_t count(const std::string& name, std::uint16_t context) const {
        for (std::size_t i = 0; i < counters.per_context_size(); i++)
            if (counters.per_context_name(i) == "utlb.context_" + name)
                return counters.per_context_value(i, context);
        return ~std::uint64_t{0};
    }
};

}  // namespace test
}  // namespace prawn

#endif
