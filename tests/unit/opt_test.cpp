// SPDX-License-Identifier: Apache-2.0
#include "nic/opt.h"

#include "send_harness.h"

namespace prawn::test {
namespace {

constexpr unsigned LATENCY = opt::LOOKUP_CYCLES + 2;  // and the SRAM's 20 ns

struct bench {
    world w;
    opt dut{"opt", w.env};
    source<opt_request> request{"request"};
    source<control_request> control{"control"};
    sink<opt_reply> replies;
    sink<notification_request> notes;
    sink<control_reply> answers;
    twins between;
    std::uint64_t base = 0;

    bench() {
        request.out.bind(between.before(dut.request_in(), "twin", true));
        control.out.bind(dut.control_in());
        dut.reply_out.bind(replies);
        dut.notify_out.bind(notes);
        dut.control_out.bind(answers);
    }
    void restart() {
        dut.reset();
        between.reset();
        request.clear();
        run_cycles(100);
        replies.clear();
        notes.clear();
        answers.clear();
        base = now_ps();
    }
    std::uint16_t ask(control_request r) {
        const std::size_t n = answers.items.size();
        r.tag = static_cast<std::uint32_t>(n);
        control.send(r);
        run_cycles(2);
        EXPECT_EQ(answers.items.size(), n + 1);
        EXPECT_EQ(answers.items.back().item.tag, n);
        value = answers.items.back().item.value;
        return answers.items.back().item.status;
    }
    std::uint16_t set(std::uint32_t index, std::uint16_t context,
                      std::uint16_t node, std::uint64_t length) {
        control_request r;
        r.op = control_op::SET;
        r.context = context;
        r.index = index;
        r.a = node | 7u << 16 | std::uint64_t{index + 100} << 32;
        r.b = 0x1122334455667788u + index;
        r.c = length;
        r.d = 900 + index;
        r.life = 50 + index;
        return ask(r);
    }
    std::uint16_t op(control_op o, std::uint32_t index, std::uint64_t a = 0,
                     std::uint64_t b = 0, std::uint16_t context = 0) {
        control_request r;
        r.op = o;
        r.index = index;
        r.context = context;
        r.a = a;
        r.b = b;
        return ask(r);
    }
    opt_reply look(std::uint16_t context, std::uint32_t import_id,
                   std::uint64_t offset, std::uint64_t length) {
        replies.clear();
        base = now_ps();
        request.send({42, context, import_id, offset, length});
        run_cycles(60);
        EXPECT_EQ(replies.items.size(), 1u);
        if (replies.items.size() != 1)
            return {};
        EXPECT_EQ(replies.items[0].item.tag, 42u);
        EXPECT_CYCLE(replies.cycle(0, base), LATENCY);
        return replies.items[0].item;
    }
    std::uint32_t value = 0;
};
bench* b;

TEST(opt, answers_with_the_entry) {
    b->restart();
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    const opt_reply r = b->look(3, 5, 100, 8092);
    EXPECT_EQ(r.status, PRAWN_STATUS_OK);
    EXPECT_EQ(r.node, 2);
    EXPECT_EQ(r.epoch, 7);
    EXPECT_EQ(r.export_id, 105u);
    EXPECT_EQ(r.key, 0x1122334455667788u + 5);
    EXPECT_EQ(b->w.count("opt.context_lookups", 3), 1u);
}

TEST(opt, refuses_other_contexts_and_entries) {
    b->restart();
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    const auto before = b->w.count("opt.bad_import");
    for (const std::uint32_t id : {4u, 6u, 4095u, 4096u, 0xffffffffu})
        EXPECT_EQ(b->look(3, id, 0, 1).status, PRAWN_STATUS_BAD_IMPORT) << id;
    const opt_reply r = b->look(2, 5, 0, 1);
    EXPECT_EQ(r.status, PRAWN_STATUS_BAD_IMPORT);
    EXPECT_EQ(r.key, 0u) << "nothing of the entry may show";
    EXPECT_EQ(b->w.count("opt.bad_import"), before + 6);
}

TEST(opt, checks_the_range_without_wrapping) {
    b->restart();
    ASSERT_EQ(b->set(0, 0, 0, 4096), PRAWN_STATUS_OK);
    const std::uint64_t top = ~std::uint64_t{0};
    EXPECT_EQ(b->look(0, 0, 0, 4096).status, PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(0, 0, 4096, 0).status, PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(0, 0, 0, 4097).status, PRAWN_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(b->look(0, 0, 4097, 0).status, PRAWN_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(b->look(0, 0, top, 2).status, PRAWN_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(b->look(0, 0, 2, top).status, PRAWN_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(b->look(0, 0, top, top).status, PRAWN_STATUS_OUT_OF_RANGE);
}

TEST(opt, checks_what_the_kernel_writes) {
    b->restart();
    EXPECT_EQ(b->set(4096, 0, 0, 1), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->set(0, 64, 0, 1), PRAWN_STATUS_BAD_CONTEXT);
    EXPECT_EQ(b->set(0, 0, 16, 1), PRAWN_STATUS_BAD_FIELD);
    control_request r;
    r.op = control_op::SET;
    r.f = 1;
    EXPECT_EQ(b->ask(r), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::CLEAR, 4096), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, 16, 39), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, 1, 0), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, 1, 0x10000),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 4096, 33),
              PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 1, 0), PRAWN_STATUS_BAD_FIELD);
    EXPECT_EQ(b->op(control_op::FILL, 0), PRAWN_STATUS_BAD_OPCODE);
    EXPECT_EQ(b->op(control_op::DRAIN, 0), PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(0, 0, 0, 0).status, PRAWN_STATUS_BAD_IMPORT);
}

TEST(opt, a_cleared_entry_stops_what_is_on_its_way) {
    b->restart();
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    b->request.send({1, 3, 5, 0, 1});
    run_cycles(1);
    control_request r;
    r.op = control_op::CLEAR;
    r.index = 5;
    b->control.send(r);
    run_cycles(60);
    ASSERT_EQ(b->replies.items.size(), 1u);
    EXPECT_EQ(b->replies.items[0].item.status, PRAWN_STATUS_BAD_IMPORT);
    EXPECT_EQ(b->op(control_op::CLEAR, 5), PRAWN_STATUS_OK) << "no error";
}

TEST(opt, a_refused_import_enters_error_state_once) {
    b->restart();
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 5, PRAWN_STATUS_BAD_KEY),
              PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 5, PRAWN_STATUS_NO_HOST),
              PRAWN_STATUS_OK);
    const opt_reply r = b->look(3, 5, 0, 1 << 20);
    EXPECT_EQ(r.status, PRAWN_STATUS_IMPORT_ERROR);
    EXPECT_EQ(r.detail, PRAWN_STATUS_BAD_KEY) << "the first reason stays";
    ASSERT_EQ(b->notes.items.size(), 1u);
    const notification_request& n = b->notes.items[0].item;
    EXPECT_EQ(n.context, 3);
    EXPECT_EQ(n.life, 55u);
    EXPECT_EQ(n.entry.cookie, 905u);
    EXPECT_EQ(n.entry.id, 5u);
    EXPECT_EQ(n.entry.type, PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR);
    EXPECT_EQ(n.entry.status, PRAWN_STATUS_BAD_KEY);
    // Another context's entry says nothing of it.
    EXPECT_EQ(b->look(4, 5, 0, 1).detail, 0);
    // A new import in the same place starts afresh.
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(3, 5, 0, 1).status, PRAWN_STATUS_OK);
}

TEST(opt, a_late_refusal_does_not_hit_the_next_import) {
    b->restart();
    ASSERT_EQ(b->set(5, 3, 2, 8192), PRAWN_STATUS_OK);
    const auto ignored = b->w.count("opt.errors_ignored");
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 5, PRAWN_STATUS_BAD_KEY,
                    opt::expected(2, 999)),
              PRAWN_STATUS_BAD_IMPORT);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 6, PRAWN_STATUS_BAD_KEY),
              PRAWN_STATUS_BAD_IMPORT);
    EXPECT_EQ(b->w.count("opt.errors_ignored"), ignored + 2);
    EXPECT_EQ(b->look(3, 5, 0, 1).status, PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::IMPORT_ERROR, 5, PRAWN_STATUS_BAD_KEY,
                    opt::expected(2, 105)),
              PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(3, 5, 0, 1).status, PRAWN_STATUS_IMPORT_ERROR);
}

TEST(opt, a_dead_peer_takes_its_imports_along) {
    b->restart();
    ASSERT_EQ(b->set(1, 0, 2, 64), PRAWN_STATUS_OK);
    ASSERT_EQ(b->set(2, 1, 3, 64), PRAWN_STATUS_OK);
    ASSERT_EQ(b->set(4095, 9, 2, 64), PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::PEER_ERROR, 2, PRAWN_STATUS_PEER_DEAD),
              PRAWN_STATUS_OK);
    EXPECT_EQ(b->value, 2u);
    ASSERT_EQ(b->notes.items.size(), 2u);
    EXPECT_EQ(b->notes.items[0].item.entry.id, 1u);
    EXPECT_EQ(b->notes.items[1].item.entry.id, 4095u);
    EXPECT_EQ(b->notes.items[1].item.context, 9);
    EXPECT_EQ(b->look(0, 1, 0, 1).detail, PRAWN_STATUS_PEER_DEAD);
    EXPECT_EQ(b->look(1, 2, 0, 1).status, PRAWN_STATUS_OK);
    EXPECT_EQ(b->look(9, 4095, 0, 1).status, PRAWN_STATUS_IMPORT_ERROR);
}

TEST(opt, a_disabled_context_loses_its_imports) {
    b->restart();
    ASSERT_EQ(b->set(1, 5, 2, 64), PRAWN_STATUS_OK);
    ASSERT_EQ(b->set(2, 6, 2, 64), PRAWN_STATUS_OK);
    EXPECT_EQ(b->op(control_op::CONTEXT_DISABLE, 0, 0, 0, 5), PRAWN_STATUS_OK);
    EXPECT_EQ(b->value, 1u);
    EXPECT_EQ(b->look(5, 1, 0, 1).status, PRAWN_STATUS_BAD_IMPORT);
    EXPECT_EQ(b->look(6, 2, 0, 1).status, PRAWN_STATUS_OK);
    EXPECT_TRUE(b->notes.items.empty());
}

TEST(opt, looks_up_one_a_cycle_in_order) {
    b->restart();
    for (std::uint16_t i = 0; i < 100; i++)
        ASSERT_EQ(b->set(i, 0, i % 16, 64), PRAWN_STATUS_OK);
    b->base = now_ps();
    for (std::uint32_t i = 0; i < 100; i++)
        b->request.send({i, 0, i, 0, 64});
    run_cycles(2000);
    ASSERT_EQ(b->replies.items.size(), 100u);
    for (std::uint32_t i = 0; i < 100; i++) {
        EXPECT_EQ(b->replies.items[i].item.tag, i);
        EXPECT_EQ(b->replies.items[i].item.node, i % 16);
        EXPECT_CYCLE(b->replies.cycle(i, b->base), LATENCY + i);
    }
}

TEST(opt, reset_forgets_everything) {
    b->restart();
    ASSERT_EQ(b->set(1, 5, 2, 64), PRAWN_STATUS_OK);
    b->request.send({1, 5, 1, 0, 1});
    run_cycles(1);
    b->restart();
    EXPECT_TRUE(b->replies.items.empty());
    EXPECT_EQ(b->look(5, 1, 0, 1).status, PRAWN_STATUS_BAD_IMPORT);
}

TEST(opt, is_deterministic) {
    expect_same_traces();
}

std::string trace() {
    b->restart();
    random_source random(1);
    for (unsigned i = 0; i < 400; i++) {
        control_request c;
        c.op = random(4) == 0 ? control_op::PEER_ERROR : control_op::SET;
        c.index = static_cast<std::uint32_t>(random(8));
        c.context = static_cast<std::uint16_t>(random(3));
        c.a = c.op == control_op::SET ? random(16) : 39;
        c.c = random(4096);
        b->control.send(c, 10 * i);
        opt_request r;
        r.tag = i;
        r.context = static_cast<std::uint16_t>(random(3));
        r.import_id = static_cast<std::uint32_t>(random(9));
        r.length = random(4096);
        b->request.send(r, 10 * i + random(30));
    }
    run_cycles(20000);
    std::string text = b->w.events.text;
    for (const auto& seen : b->replies.items)
        text += std::to_string(seen.time) + " " +
                std::to_string(seen.item.tag) + " " +
                std::to_string(seen.item.status) + "\n";
    return text;
}

}  // namespace
}  // namespace prawn::test

int sc_main(int argc, char** argv) {
    using namespace prawn::test;
    std::unique_ptr<bench> own;
    return run_tests(
        argc, argv,
        [&own] {
            own = std::make_unique<bench>();
            b = own.get();
        },
        trace);
}
