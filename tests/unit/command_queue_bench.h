// SPDX-License-Identifier: Apache-2.0
// A command queue and, opposite it, rings and a packetizer of the test's own.

#ifndef PRAWN_TESTS_UNIT_COMMAND_QUEUE_BENCH_H
#define PRAWN_TESTS_UNIT_COMMAND_QUEUE_BENCH_H

#include <array>
#include <cstring>

#include "nic/command_queue.h"
#include "send_harness.h"

namespace prawn::test {

constexpr unsigned DMA_DELAY = 20;  // cycles
constexpr unsigned LOG2 = 5;
constexpr std::uint32_t SIZE = 1u << LOG2;

// Rings in a memory of the test's own; jobs are done after done_delay cycles.
struct command_bench {
    world w;
    const std::string prefix;
    std::deque<std::string> names;  // SystemC keeps pointers for a while
    command_queue dut;
    source<doorbell> bell{named("bell")};
    source<dma_reply> dma_replies{named("dma_replies")};
    source<job_done> done{named("done")};
    source<control_request> control{named("control")};
    sink<dma_request> dma;
    sink<send_job> jobs;
    sink<kernel_event_request> kernel;
    sink<control_reply> answers;
    twins between;
    std::uint64_t base = 0;
    std::map<std::uint64_t, prawn_command> memory;
    std::uint64_t fail_at = ~0ull;  // bus address
    bool auto_done = true;
    unsigned dma_delay = DMA_DELAY;
    std::array<std::uint32_t, PRAWN_CONTEXTS> lives{};

    const char* named(const char* name) {
        names.push_back(prefix + name);
        return names.back().c_str();
    }

    command_bench(const std::string& name, const command_queue::params& p) :
        prefix(name + "_"), dut(named("command_queue"), w.env, p) {
        bell.out.bind(
            between.before(dut.doorbell_in(), named("bell_twin"), false));
        dma_replies.out.bind(
            between.before(dut.dma_reply_in(), named("dma_twin"), false));
        done.out.bind(
            between.before(dut.job_done_in(), named("done_twin"), false));
        control.out.bind(dut.control_in());
        dut.dma_out.bind(dma);
        dut.job_out.bind(jobs);
        dut.event_out.bind(kernel);
        dut.control_out.bind(answers);
        dma.on = [this](const dma_request& r) {
            dma_reply a{r.tag, PRAWN_STATUS_OK};
            for (std::uint32_t i = 0; i < r.length; i += 64) {
                if (r.address + i == fail_at)
                    a.status = PRAWN_STATUS_DMA_ERROR;
                std::memcpy(r.data + i, &memory[r.address + i], 64);
            }
            dma_replies.send(a, dma_delay);
        };
        jobs.on = [this](const send_job& j) {
            if (auto_done)
                done.send(job_done{j.context, j.life}, 10);
        };
    }
    void reset_only() {
        dut.reset();
        between.reset();
        bell.clear();
        done.clear();
        control.clear();
    }
    void restart() {
        reset_only();
        fail_at = ~0ull;
        auto_done = true;
        dma_delay = DMA_DELAY;
        run_cycles(1000);
        dma_replies.clear();
        dma.clear();
        jobs.clear();
        kernel.clear();
        answers.clear();
        memory.clear();
        w.events.text.clear();
        base = now_ps();
    }
    static std::uint64_t ring(std::uint16_t context) {
        return 0x100000u * (context + 1u);
    }
    std::uint16_t ask(control_op op, std::uint16_t context, std::uint64_t a = 0,
                      std::uint64_t e = 0) {
        const std::size_t n = answers.items.size();
        control_request r;
        r.tag = 5;
        r.op = op;
        r.context = context;
        r.a = a;
        r.e = e;
        if (op == control_op::CONTEXT_ENABLE && context < PRAWN_CONTEXTS)
            r.life = ++lives[context];
        control.send(r);
        run_cycles(1);
        if (answers.items.size() != n + 1) {
            ADD_FAILURE() << "no answer";
            return 0xffff;
        }
        return answers.items.back().item.status;
    }
    void enable(std::uint16_t context, unsigned log2 = LOG2) {
        ASSERT_EQ(ask(control_op::CONTEXT_ENABLE, context, ring(context), log2),
                  PRAWN_STATUS_OK);
        base = now_ps();
    }
    prawn_command& command(std::uint16_t context, std::uint32_t index,
                           unsigned log2 = LOG2) {
        return memory[ring(context) + (index & ((1u << log2) - 1)) * 64];
    }
    prawn_command& put_send(std::uint16_t context, std::uint32_t index) {
        prawn_command& c = command(context, index);
        c = prawn_command{};
        c.opcode = PRAWN_OPCODE_SEND;
        c.length = 64;
        c.source = 0x1000;
        c.cookie = index;
        return c;
    }
    void ring_bell(std::uint16_t context, std::uint32_t producer,
                   std::uint32_t consumed = 0, std::uint64_t delay = 0) {
        bell.send({context, producer, consumed, now_ps() + delay * CYCLE},
                  delay);
    }
    std::uint32_t error_state(unsigned status) const {
        return PRAWN_STATE_ERROR_MASK | status << 16;
    }
    std::vector<send_job> jobs_of(std::uint16_t context) const {
        std::vector<send_job> found;
        for (const auto& seen : jobs.items)
            if (seen.item.context == context)
                found.push_back(seen.item);
        return found;
    }
};
}  // namespace prawn::test

#endif
