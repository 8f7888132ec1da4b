// SPDX-License-Identifier: Apache-2.0
// A packetizer and, opposite it, tables, memory and a network of the test's
// own.

#ifndef PRAWN_TESTS_UNIT_PACKETIZER_BENCH_H
#define PRAWN_TESTS_UNIT_PACKETIZER_BENCH_H

#include <algorithm>

#include "nic/packetizer.h"
#include "send_harness.h"

namespace prawn::test {

constexpr unsigned OPT_DELAY = 4;  // cycles
constexpr unsigned UTLB_DELAY = 6;
constexpr unsigned DMA_DELAY = 20;
constexpr unsigned DMA_WIDTH = 16;  // bytes a cycle

// Imports: id % 16 is the node. Translation: by context and page. Memory: every
// byte is a function of its bus address.
struct packetizer_bench {
    world w;
    packetizer dut;
    source<send_job> job{"job"};
    source<opt_reply> opt_reply_source{"opt_reply"};
    source<utlb_reply> utlb_reply_source{"utlb_reply"};
    source<dma_reply> dma_reply_source{"dma_reply"};
    source<control_request> control{"control"};
    sink<opt_request> opt_requests;
    sink<utlb_request> utlb_requests;
    sink<dma_request> dma_requests;
    sink<packet_ref> packets;
    sink<completion_request> completions;
    sink<job_done> done;
    sink<control_reply> answers;
    twins between;
    std::uint64_t base = 0;

    // What a test changes.
    std::function<void(const opt_request&, opt_reply&)> on_opt;
    std::function<unsigned(const utlb_request&, utlb_reply&)> on_utlb;
    std::function<std::uint16_t(const dma_request&)> on_dma;

    // Contexts with more to send than JOB_WINDOW allows.
    std::array<std::deque<send_job>, PRAWN_CONTEXTS> todo;
    std::array<unsigned, PRAWN_CONTEXTS> under_way{};
    std::array<std::uint32_t, PRAWN_CONTEXTS> index{};
    std::array<std::uint32_t, PRAWN_CONTEXTS> life{};
    std::uint64_t dma_free = 0;

    explicit packetizer_bench(const packetizer::params& p) :
        dut("packetizer", w.env, p) {
        job.out.bind(between.before(dut.job_in(), "job_twin", true));
        opt_reply_source.out.bind(
            between.before(dut.opt_reply_in(), "opt_twin", false));
        utlb_reply_source.out.bind(
            between.before(dut.utlb_reply_in(), "utlb_twin", false));
        dma_reply_source.out.bind(
            between.before(dut.dma_reply_in(), "dma_twin", false));
        control.out.bind(dut.control_in());
        dut.opt_out.bind(opt_requests);
        dut.utlb_out.bind(utlb_requests);
        dut.dma_out.bind(dma_requests);
        dut.packet_out.bind(packets);
        dut.completion_out.bind(completions);
        dut.job_done_out.bind(done);
        dut.control_out.bind(answers);

        opt_requests.on = [this](const opt_request& r) { answer(r); };
        utlb_requests.on = [this](const utlb_request& r) { answer(r); };
        dma_requests.on = [this](const dma_request& r) { answer(r); };
        done.on = [this](const job_done& d) {
            if (under_way[d.context] != 0)  // else of a life that is over
                under_way[d.context]--;
            feed(d.context);
        };
    }

    static std::uint8_t byte_at(std::uint64_t address) {
        return static_cast<std::uint8_t>((address * 0x9e3779b97f4a7c15u) >> 56);
    }
    static std::uint64_t translate(std::uint16_t context, std::uint64_t va) {
        return std::uint64_t{context + 1u} << 40 | (va & ~0xfffull);
    }
    static std::uint64_t key_of(std::uint32_t import_id) {
        return 0xabcd0000u + import_id;
    }

    void answer(const opt_request& r) {
        opt_reply a;
        a.tag = r.tag;
        a.node = static_cast<std::uint16_t>(r.import_id % 16);
        a.epoch = 3;
        a.export_id = r.import_id + 1000;
        a.key = key_of(r.import_id);
        if (on_opt)
            on_opt(r, a);
        opt_reply_source.send(a, OPT_DELAY);
    }
    void answer(const utlb_request& r) {
        utlb_reply a;
        a.tag = r.tag;
        a.address = translate(r.context, r.va);
        const unsigned delay = on_utlb ? on_utlb(r, a) : UTLB_DELAY;
        utlb_reply_source.send(a, delay);
    }
    void answer(const dma_request& r) {
        dma_reply a;
        a.tag = r.tag;
        a.status = on_dma ? on_dma(r) : std::uint16_t{PRAWN_STATUS_OK};
        if (check_data)
            for (std::uint32_t i = 0; i < r.length; i++)
                r.data[i] = byte_at(r.address + i);
        const std::uint64_t now = now_ps() / CYCLE;
        dma_free =
            std::max(dma_free, now) + (r.length + DMA_WIDTH - 1) / DMA_WIDTH;
        dma_reply_source.send(a, dma_free - now + DMA_DELAY);
    }
    bool check_data = true;

    void feed(std::uint16_t context) {
        while (!todo[context].empty() && under_way[context] < JOB_WINDOW) {
            under_way[context]++;
            job.send(todo[context].front());
            todo[context].pop_front();
        }
    }
    send_job make(std::uint16_t context, std::uint32_t import_id,
                  std::uint64_t source_va, std::uint64_t offset,
                  std::uint32_t length) {
        send_job j;
        j.context = context;
        j.life = life[context];
        j.index = index[context]++;
        j.message = j.index + 1;
        j.accepted = 12345;
        j.command.opcode = PRAWN_OPCODE_SEND;
        j.command.length = length;
        j.command.source = source_va;
        j.command.offset = offset;
        j.command.import_id = import_id;
        j.command.cookie = 0x100000000u * (context + 1u) + j.index;
        j.command.immediate = 77;
        return j;
    }
    void add(const send_job& j) {
        todo[j.context].push_back(j);
        feed(j.context);
    }
    send_job send(std::uint16_t context, std::uint32_t import_id,
                  std::uint64_t source_va, std::uint64_t offset,
                  std::uint32_t length) {
        const send_job j = make(context, import_id, source_va, offset, length);
        add(j);
        return j;
    }
    void send_control(control_op op, std::uint16_t context = 0,
                      std::uint32_t tag = 0) {
        control_request r;
        r.tag = tag;
        r.op = op;
        r.context = context;
        if (context < PRAWN_CONTEXTS)
            r.life = life[context];
        control.send(r);
        if (op == control_op::CONTEXT_DISABLE && context < PRAWN_CONTEXTS)
            life[context]++;
    }
    void forget(std::uint16_t context) {
        todo[context].clear();
        under_way[context] = 0;
    }

    void reset_only() {
        dut.reset();
        between.reset();
        job.clear();
        control.clear();
        life = {};
        for (std::uint16_t c = 0; c < PRAWN_CONTEXTS; c++)
            forget(c);
    }
    // A fresh block and a fresh world; answers to what was asked before may
    // still come in between.
    void restart() {
        reset_only();
        on_opt = nullptr;
        on_utlb = nullptr;
        on_dma = nullptr;
        check_data = true;
        opt_requests.clear();
        utlb_requests.clear();
        dma_requests.clear();
        packets.clear();
        packets.keep = true;
        completions.clear();
        done.clear();
        answers.clear();
        run_cycles(2000);
        opt_reply_source.clear();
        utlb_reply_source.clear();
        dma_reply_source.clear();
        index = {};
        dma_free = 0;
        w.events.text.clear();
        base = now_ps();
    }

    // Packets of one message, in the order of their arrival.
    std::vector<packet_ref> packets_of(std::uint16_t context,
                                       std::uint32_t message) const {
        std::vector<packet_ref> found;
        for (const auto& seen : packets.items)
            if (seen.item->head.source_context == context &&
                seen.item->head.message == message)
                found.push_back(seen.item);
        return found;
    }

    // Every packet of a message, byte by byte, up to `bytes`.
    void expect_message(const send_job& j, std::uint32_t bytes,
                        unsigned max_payload = PRAWN_MAX_PAYLOAD) const {
        const prawn_command& c = j.command;
        std::uint32_t at = 0;
        for (const packet_ref& pkt : packets_of(j.context, j.message)) {
            const header& h = pkt->head;
            EXPECT_EQ(h.version, PRAWN_PACKET_VERSION);
            EXPECT_EQ(h.type, PRAWN_PACKET_TYPE_DATA);
            EXPECT_EQ(h.source_node, w.env.node);
            EXPECT_EQ(h.destination_node, c.import_id % 16);
            EXPECT_EQ(h.source_epoch, 0);
            EXPECT_EQ(h.destination_epoch, 3);
            EXPECT_EQ(h.message_offset, at);
            EXPECT_EQ(h.key, key_of(c.import_id));
            EXPECT_EQ(h.offset, c.offset + at);
            EXPECT_EQ(h.export_id, c.import_id + 1000);
            EXPECT_EQ(h.import_id, c.import_id);
            EXPECT_EQ(h.immediate, c.immediate);
            EXPECT_EQ(h.status, 0);
            EXPECT_EQ(h.rsvd, 0);
            const std::uint64_t room = 4096 - ((c.offset + at) & 4095);
            ASSERT_EQ(h.payload_length,
                      std::min<std::uint64_t>(
                          {c.length - at, room, std::uint64_t{max_payload}}));
            const bool last = at + h.payload_length == c.length;
            unsigned flags = at == 0 ? PRAWN_PACKET_FLAG_FIRST : 0;
            flags |= last ? PRAWN_PACKET_FLAG_LAST : 0;
            if (last && (c.flags & PRAWN_COMMAND_FLAG_NOTIFY))
                flags |= PRAWN_PACKET_FLAG_NOTIFY;
            EXPECT_EQ(h.flags, flags);
            for (std::uint32_t i = 0; i < h.payload_length; i++) {
                const std::uint64_t va = c.source + at + i;
                ASSERT_EQ(pkt->payload[i],
                          byte_at(translate(j.context, va) + (va & 4095)))
                    << "byte " << at + i;
            }
            at += h.payload_length;
        }
        EXPECT_EQ(at, bytes);
    }
    const prawn_completion* completion_of(const send_job& j) const {
        for (const auto& seen : completions.items)
            if (seen.item.context == j.context && seen.item.index == j.index)
                return &seen.item.entry;
        return nullptr;
    }
    void expect_completion(const send_job& j, std::uint16_t status,
                           std::uint32_t bytes, std::uint64_t fault = 0,
                           std::uint16_t detail = 0) const {
        const prawn_completion* e = completion_of(j);
        ASSERT_TRUE(e) << "no completion of " << j.context << "/" << j.index;
        EXPECT_EQ(e->status, status);
        EXPECT_EQ(e->bytes, bytes);
        EXPECT_EQ(e->fault, fault);
        EXPECT_EQ(e->detail, detail);
        EXPECT_EQ(e->cookie, j.command.cookie);
        EXPECT_EQ(e->accepted, j.accepted);
        EXPECT_EQ(e->message, j.message);
        EXPECT_GE(e->finished, base);
        EXPECT_LE(e->finished, now_ps());
    }
    void expect_sent(const send_job& j,
                     unsigned max_payload = PRAWN_MAX_PAYLOAD) const {
        expect_message(j, j.command.length, max_payload);
        expect_completion(j, PRAWN_STATUS_OK, j.command.length);
    }
    // Completions of every context came in the order of its ring.
    void expect_order() const {
        std::array<std::uint32_t, PRAWN_CONTEXTS> next{};
        for (const auto& seen : completions.items) {
            EXPECT_EQ(seen.item.index, next[seen.item.context]);
            next[seen.item.context] = seen.item.index + 1;
        }
    }
};

}  // namespace prawn::test

#endif
