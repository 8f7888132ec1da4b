// SPDX-License-Identifier: Apache-2.0
// What stands opposite incoming_dma in its test: a UTLB and a DMA engine that
// answer when the test wants.

#ifndef PRAWN_TESTS_UNIT_INCOMING_DMA_BENCH_H
#define PRAWN_TESTS_UNIT_INCOMING_DMA_BENCH_H

#include <algorithm>
#include <random>

#include "nic/incoming_dma.h"
#include "receive_bench.h"
#include "support/twin.h"

namespace prawn {
namespace test {

constexpr unsigned WINDOW = 4;
constexpr std::uint64_t VA = 0x10000;
constexpr std::uint64_t PAGES = 64;
// Bus address of a page: not its virtual address, and not in its order.
constexpr std::uint64_t bus_page(std::uint64_t va) {
    return ((va >> 12) * 7 % PAGES) << 12;
}

// Answers when told, or by itself after a random time; out of order if asked.
class fake_utlb : public sc_core::sc_module, public put_if<utlb_request>
{
public:
    put_if<utlb_reply>* reply = nullptr;
    std::deque<utlb_request> waiting;
    std::uint16_t status = PRAWN_STATUS_OK;
    bool automatic = true;
    bool refuse = false;
    double max_delay = 0;

    explicit fake_utlb(sc_core::sc_module_name name) :
        sc_core::sc_module(name) {
        SC_HAS_PROCESS(fake_utlb);
        SC_METHOD(serve);
        dont_initialize();
        sensitive << m_due;
    }
    bool try_put(utlb_request& r) override {
        if (refuse)
            return false;
        EXPECT_TRUE(r.write);
        waiting.push_back(r);
        if (automatic)
            m_due.notify(
                ns(max_delay * static_cast<double>(m_random() % 100) / 100.0));
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void release() {
        refuse = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    void answer(std::size_t which, std::uint16_t with = PRAWN_STATUS_OK) {
        const utlb_request r = waiting.at(which);
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
        utlb_reply a{r.tag, with, bus_page(r.va)};
        reply->try_put(a);
    }
    void clear() {
        waiting.clear();
        automatic = true;
        status = PRAWN_STATUS_OK;
        max_delay = 0;
        release();
    }

private:
    void serve() {
        if (waiting.empty())
            return;
        answer(m_random() % waiting.size(), status);
        if (!waiting.empty())
            m_due.notify(
                ns(max_delay * static_cast<double>(m_random() % 100) / 100.0));
    }
    std::mt19937_64 m_random{41};
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

// Memory; one request each 20 ns, answered in order.
class fake_dma : public sc_core::sc_module, public put_if<dma_request>
{
public:
    put_if<dma_reply>* reply = nullptr;
    std::vector<std::uint8_t> memory =
        std::vector<std::uint8_t>(PAGES * PRAWN_PAGE_SIZE);
    std::deque<dma_request> waiting;
    std::vector<dma_request> seen;
    std::function<bool(const dma_request&)> fails;
    bool automatic = true;
    unsigned room_for = 100;

    explicit fake_dma(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        SC_HAS_PROCESS(fake_dma);
        SC_METHOD(serve);
        dont_initialize();
        sensitive << m_due;
    }
    bool try_put(dma_request& r) override {
        if (waiting.size() >= room_for)
            return false;
        EXPECT_TRUE(r.write);
        EXPECT_LE((r.address & 0xfff) + r.length, PRAWN_PAGE_SIZE);
        EXPECT_GE(r.length, 1u);
        EXPECT_TRUE(r.keep);
        seen.push_back(r);
        seen.back().keep.reset();
        waiting.push_back(std::move(r));
        if (automatic)
            m_due.notify(ns(20));
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void finish() {
        const dma_request r = waiting.at(0);
        waiting.pop_front();
        dma_reply a{r.tag, PRAWN_STATUS_OK};
        if (fails && fails(r))
            a.status = PRAWN_STATUS_DMA_ERROR;
        else
            std::memcpy(&memory[r.address], r.data, r.length);
        reply->try_put(a);
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    void clear() {
        waiting.clear();
        seen.clear();
        automatic = true;
        fails = nullptr;
        room_for = 100;
        std::fill(memory.begin(), memory.end(), std::uint8_t{0});
        m_room.notify(sc_core::SC_ZERO_TIME);
    }

private:
    void serve() {
        if (waiting.empty())
            return;
        finish();
        if (!waiting.empty())
            m_due.notify(ns(20));
    }
    sc_core::sc_event m_due;
    sc_core::sc_event m_room;
};

struct bench : sc_core::sc_module {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{0, 4, &the_profile(), &counters, nullptr};
    incoming_dma dut{"incoming_dma", env, {WINDOW}};
    twin<delivery> late{"late", 42, ns(60), 3};
    twin<utlb_request> utlb_twin{"utlb_twin", 43, ns(30), 3};
    twin<dma_request> dma_twin{"dma_twin", 44, ns(30), 3};
    fake_utlb utlb{"utlb"};
    fake_dma dma{"dma"};
    sink<notification_request> notes{"notes"};
    sink<refusal> refusals{"refusals"};
    sink<control_reply> replies{"replies"};

    // A second one with twins all around, and its own counters.
    counter_registry counters2{PRAWN_CONTEXTS};
    block_env env2{0, 4, &the_profile(), &counters2, nullptr};
    incoming_dma shy{"shy", env2};
    fake_utlb utlb2{"utlb2"};
    fake_dma dma2{"dma2"};

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        dut.utlb_out.bind(utlb);
        dut.dma_out.bind(dma);
        utlb.reply = &dut.utlb_reply_in();
        dma.reply = &dut.dma_reply_in();
        shy.utlb_out.bind(utlb_twin);
        utlb_twin.out.bind(utlb2);
        shy.dma_out.bind(dma_twin);
        dma_twin.out.bind(dma2);
        utlb2.reply = &shy.utlb_reply_in();
        dma2.reply = &shy.dma_reply_in();
        late.out.bind(shy.delivery_in());
        for (incoming_dma* one : {&dut, &shy}) {
            one->notify_out.bind(notes);
            one->refusal_out.bind(refusals);
            one->control_out.bind(replies);
        }
        // Must be tried before the simulation starts.
        counter_registry none{PRAWN_CONTEXTS};
        for (unsigned window : {0U, incoming_dma::MAX_WINDOW + 1}) {
            try {
                incoming_dma one(
                    sc_core::sc_gen_unique_name("wrong"),
                    block_env{0, 4, &the_profile(), &none, nullptr}, {window});
            } catch (const std::invalid_argument& e) {
                errors.emplace_back(e.what());
            }
        }
    }
    std::vector<std::string> errors;
};

}  // namespace test
}  // namespace prawn

#endif
