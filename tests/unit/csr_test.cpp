// SPDX-License-Identifier: Apache-2.0
#include "nic/csr.h"

#include <gtest/gtest.h>

#include <memory>

#include "control_bench.h"
#include "prawn_names.h"
#include "support/crc32c.h"

namespace prawn {
namespace test {
namespace {

using sc_core::SC_NS;
using sc_core::sc_time;

struct fake_backend : sc_core::sc_object, csr_backend_if {
    csr* dut = nullptr;
    unsigned resets = 0;
    int enabled = -1;
    bool intx = false;
    std::uint64_t admin = 0, ack = 0, event = 0;
    unsigned admin_log2 = 0, event_log2 = 0;
    std::uint32_t doorbell = 0, mode = 0, geometry = 0x29, threshold = 0;
    std::uint64_t ptp_read = 0, ptp_written = 0, ptp_value = 0;

    explicit fake_backend(const char* name) : sc_core::sc_object(name) {}
    std::uint64_t features() const override { return 0x100; }
    std::uint32_t status() const override { return PRAWN_STATUS_LINK_UP_MASK; }
    std::uint16_t epoch() const override { return 9; }
    void reset_card() override {
        resets++;
        dut->reset();
    }
    void enable_card(bool on) override { enabled = on; }
    void set_admin_ring(std::uint64_t base, unsigned log2) override {
        admin = base;
        admin_log2 = log2;
    }
    void set_ack_ring(std::uint64_t base, unsigned) override { ack = base; }
    void set_event_ring(std::uint64_t base, unsigned log2) override {
        event = base;
        event_log2 = log2;
    }
    void ring_admin(std::uint32_t producer) override { doorbell = producer; }
    std::uint32_t utlb_mode() const override { return mode; }
    void set_utlb_mode(std::uint32_t m) override { mode = m; }
    std::uint32_t utlb_geometry() const override { return geometry; }
    void set_utlb_geometry(std::uint32_t g) override { geometry = g; }
    std::uint32_t fifo_level() const override { return 123; }
    void set_fifo_threshold(std::uint32_t bytes) override { threshold = bytes; }
    std::uint32_t context_state(std::uint16_t context) const override {
        return 0x10000u * context + 1;
    }
    std::uint64_t read_ptp(std::uint64_t offset, unsigned size) override {
        ptp_read = offset << 4 | size;
        return 0x1122334455667788 >> (8 * (8 - size));
    }
    void write_ptp(std::uint64_t offset, unsigned size,
                   std::uint64_t value) override {
        ptp_written = offset << 4 | size;
        ptp_value = value;
    }
    void set_intx(bool level) override { intx = level; }
};

class free_payload : public tlm::tlm_mm_interface
{
public:
    void free(tlm::tlm_generic_payload* trans) override { trans->reset(); }
};

struct bench : sc_core::sc_module, tlm::tlm_bw_transport_if<> {
    counter_registry counters{PRAWN_CONTEXTS};
    block_env env{1, 4, &the_profile(), &counters, nullptr};
    fake_backend backend{"backend"};
    csr dut{"csr", env};
    tlm::tlm_initiator_socket<> socket{"socket"};
    recorder<doorbell> doorbells{"doorbells"};
    recorder<ring_update> updates{"updates"};
    recorder<control_reply> replies{"replies"};
    std::vector<tlm::tlm_generic_payload*> answered;
    std::vector<sc_time> answered_at;
    unsigned late_accepts = 0;

    explicit bench(sc_core::sc_module_name name) : sc_core::sc_module(name) {
        counters.add("test.some_counter") += 42;
        counters.add_per_context("test.of_context")[2] += 7;
        backend.dut = &dut;
        socket.bind(*static_cast<tlm::tlm_bw_transport_if<>*>(this));
        socket.bind(dut.bar_in);
        dut.backend.bind(backend);
        dut.doorbell_out.bind(doorbells);
        dut.update_out.bind(updates);
        dut.control_out.bind(replies);
    }
    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& trans,
                                       tlm::tlm_phase& phase,
                                       sc_time&) override {
        if (phase == tlm::END_REQ) {
            late_accepts++;
            return tlm::TLM_ACCEPTED;
        }
        EXPECT_EQ(phase, tlm::BEGIN_RESP);
        answered.push_back(&trans);
        answered_at.push_back(sc_core::sc_time_stamp());
        return tlm::TLM_COMPLETED;
    }
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
    std::uint64_t count(const std::string& name) const {
        for (std::size_t i = 0; i < counters.size(); i++)
            if (counters.name(i) == name)
                return counters.value(i);
        return ~0ull;
    }
};

struct transaction {
    tlm::tlm_generic_payload trans;
    bar_extension bar;
    std::uint64_t data = 0;
    static free_payload& manager() {
        static free_payload one;
        return one;
    }
    transaction() { trans.set_mm(&manager()); }
    ~transaction() { trans.clear_extension(&bar); }
};

class csr_test : public testing::Test
{
protected:
    static bench& b() {
        static auto* one = new bench("bench");
        return *one;
    }
    csr& dut = b().dut;
    std::vector<std::unique_ptr<transaction>> all;

    void SetUp() override {
        dut.reset();
        run();
        b().backend.resets = 0;
        b().backend.enabled = -1;
        b().doorbells.items.clear();
        b().updates.items.clear();
        b().answered.clear();
        b().answered_at.clear();
        b().late_accepts = 0;
    }
    void TearDown() override { run(); }
    bool start(bool write, unsigned bar, std::uint64_t offset, unsigned size,
               std::uint64_t value = 0) {
        all.push_back(std::make_unique<transaction>());
        transaction& t = *all.back();
        t.data = write ? value : ~0ull;
        t.bar.bar = static_cast<std::uint8_t>(bar);
        t.trans.acquire();
        t.trans.set_command(write ? tlm::TLM_WRITE_COMMAND
                                  : tlm::TLM_READ_COMMAND);
        t.trans.set_address(offset);
        t.trans.set_data_ptr(reinterpret_cast<unsigned char*>(&t.data));
        t.trans.set_data_length(size);
        t.trans.set_streaming_width(size);
        t.trans.set_extension(&t.bar);
        tlm::tlm_phase phase = tlm::BEGIN_REQ;
        sc_time delay;
        return b().socket->nb_transport_fw(t.trans, phase, delay) ==
               tlm::TLM_UPDATED;
    }
    std::uint64_t read(unsigned bar, std::uint64_t offset, unsigned size) {
        EXPECT_TRUE(start(false, bar, offset, size));
        run(1);
        const std::uint64_t mask = size == 8 ? ~0ull : (1ull << size * 8) - 1;
        return all.back()->data & mask;
    }
    void write(unsigned bar, std::uint64_t offset, unsigned size,
               std::uint64_t value) {
        EXPECT_TRUE(start(true, bar, offset, size, value));
        run(1);
    }
    void enable() { write(0, PRAWN_BAR0_CTRL, 4, PRAWN_CTRL_ENABLE_MASK); }
};

TEST_F(csr_test, says_who_it_is) {
    EXPECT_EQ(read(0, PRAWN_BAR0_ID, 4), PRAWN_ID_MAGIC);
    EXPECT_EQ(read(0, PRAWN_BAR0_ABI, 4), PRAWN_BAR0_ABI_RESET);
    EXPECT_EQ(read(0, PRAWN_BAR0_NODE, 4), 4u << 16 | 1);
    EXPECT_EQ(read(0, PRAWN_BAR0_EPOCH, 4), 9u);
    EXPECT_EQ(read(0, PRAWN_BAR0_FEATURES, 8), 0x100u);
    EXPECT_EQ(read(0, PRAWN_BAR0_LIMITS, 8),
              16ull << 48 | 4096ull << 32 | 4096ull << 16 | 64);
    EXPECT_EQ(read(0, PRAWN_BAR0_PROFILE, 4), crc32c("test", 4));
    EXPECT_EQ(read(0, PRAWN_BAR0_STATUS, 4),
              PRAWN_STATUS_READY_MASK | PRAWN_STATUS_LINK_UP_MASK);
    EXPECT_EQ(read(0, PRAWN_BAR0_FIFO_LEVEL, 4), 123u);
}

TEST_F(csr_test, an_access_costs_its_cycles_and_order_is_kept) {
    const sc_time begin = sc_core::sc_time_stamp();
    start(false, 0, PRAWN_BAR0_ID, 4);
    start(true, 0, PRAWN_BAR0_COUNTER_SELECT, 4, 1);
    start(false, 0, PRAWN_BAR0_COUNTER_SELECT, 4);
    run(1);
    ASSERT_EQ(b().answered.size(), 3u);
    EXPECT_EQ(b().answered[0], &all[0]->trans);
    EXPECT_EQ(b().answered_at[0] - begin, sc_time(16, SC_NS));
    EXPECT_EQ(b().answered_at[1] - begin, sc_time(20, SC_NS));
    EXPECT_EQ(b().answered_at[2] - begin, sc_time(36, SC_NS));
    EXPECT_EQ(all[2]->data & 0xffffffff, 1u);
}

// Every register, every size, every alignment, against the generated table.
TEST_F(csr_test, access_rules_of_the_register_source) {
    std::uint64_t bad = b().count("csr.bad_access");
    for (std::uint64_t offset = 0; offset < 0x240; offset += 4) {
        const prawn_register_info* r = nullptr;
        for (const auto& one : prawn_bar0_registers)
            if (offset >= one.offset &&
                offset < one.offset + one.count * one.width / 8)
                r = &one;
        for (unsigned size : {1u, 2u, 4u, 8u}) {
            const bool aligned = offset % size == 0;
            const bool fits =
                r && aligned &&
                (size * 8 == r->width || (r->width == 64 && size == 4));
            const std::uint64_t value = read(0, offset, size);
            if (!fits || !r->readable) {
                bad++;
                EXPECT_EQ(value, 0u) << offset << " " << size;
            }
            EXPECT_EQ(b().count("csr.bad_access"), bad)
                << "read " << offset << " " << size;
            if (offset == PRAWN_BAR0_CTRL)
                continue;
            write(0, offset, size, 0);
            if (!fits || !r->writable)
                bad++;
            EXPECT_EQ(b().count("csr.bad_access"), bad)
                << "write " << offset << " " << size;
        }
    }
}

TEST_F(csr_test, holes_and_other_bars_read_zero) {
    EXPECT_EQ(read(0, PRAWN_MSIX_TABLE_OFFSET, 4), 0u);
    EXPECT_EQ(read(0, PRAWN_BAR0_SIZE - 8, 8), 0u);
    EXPECT_EQ(read(1, 0, 4), 0u);
    EXPECT_EQ(read(2, 0x30, 4), 0u);
    EXPECT_EQ(read(2, PRAWN_DOORBELL_TIME, 4), 0u);  // 64 bits only
    EXPECT_EQ(read(2, PRAWN_DOORBELL_DOORBELL, 8), 0u);
    write(1, 0, 4, 1);
    EXPECT_EQ(b().backend.resets, 0u);
}

TEST_F(csr_test, halves_of_a_wide_register) {
    write(0, PRAWN_BAR0_ADMIN_BASE, 4, 0x1000);
    write(0, PRAWN_BAR0_ADMIN_BASE + 4, 4, 0x2);
    EXPECT_EQ(b().backend.admin, 0x200001000u);
    EXPECT_EQ(read(0, PRAWN_BAR0_ADMIN_BASE + 4, 4), 2u);
    EXPECT_EQ(read(0, PRAWN_BAR0_ADMIN_BASE, 8), 0x200001000u);
}

// Unlike those of other registers, their halves are the block's own matter.
TEST_F(csr_test, the_ptp_clock_sees_each_access_as_it_is) {
    EXPECT_EQ(read(0, PRAWN_BAR0_PTP_TIME, 8), 0x1122334455667788u);
    EXPECT_EQ(b().backend.ptp_read, PRAWN_BAR0_PTP_TIME << 4 | 8);
    EXPECT_EQ(read(0, PRAWN_BAR0_PTP_INCREMENT + 4, 4), 0x11223344u);
    EXPECT_EQ(b().backend.ptp_read, (PRAWN_BAR0_PTP_INCREMENT + 4) << 4 | 4);
    b().backend.ptp_read = 0;
    EXPECT_EQ(read(0, PRAWN_BAR0_PTP_ADJUST, 8), 0u);  // write only
    EXPECT_EQ(b().backend.ptp_read, 0u);
    write(0, PRAWN_BAR0_PTP_ADJUST, 8, ~0ull);
    EXPECT_EQ(b().backend.ptp_written, PRAWN_BAR0_PTP_ADJUST << 4 | 8);
    EXPECT_EQ(b().backend.ptp_value, ~0ull);
    write(0, PRAWN_BAR0_PTP_TIME + 4, 4, 77);
    EXPECT_EQ(b().backend.ptp_written, (PRAWN_BAR0_PTP_TIME + 4) << 4 | 4);
    EXPECT_EQ(b().backend.ptp_value, 77u);
    write(0, PRAWN_BAR0_PTP_TIME, 2, 1);  // no such access
    EXPECT_EQ(b().backend.ptp_value, 77u);
}

TEST_F(csr_test, rings_go_to_their_blocks) {
    write(0, PRAWN_BAR0_ADMIN_BASE, 8, 0x1000);
    write(0, PRAWN_BAR0_ADMIN_ACK_BASE, 8, 0x2000);
    write(0, PRAWN_BAR0_ADMIN_LOG2, 4, 6);
    write(0, PRAWN_BAR0_EVENT_BASE, 8, 0x3000);
    write(0, PRAWN_BAR0_EVENT_LOG2, 4, 5);
    write(0, PRAWN_BAR0_ADMIN_DOORBELL, 4, 77);
    write(0, PRAWN_BAR0_EVENT_CONSUMED, 4, 8);
    EXPECT_EQ(b().backend.admin, 0x1000u);
    EXPECT_EQ(b().backend.admin_log2, 6u);
    EXPECT_EQ(b().backend.ack, 0x2000u);
    EXPECT_EQ(b().backend.event, 0x3000u);
    EXPECT_EQ(b().backend.event_log2, 5u);
    EXPECT_EQ(b().backend.doorbell, 77u);
    ASSERT_EQ(b().updates.items.size(), 1u);
    EXPECT_EQ(b().updates.items[0].what, ring_update::EVENT_CONSUMED);
    EXPECT_EQ(b().updates.items[0].index, 8u);
}

TEST_F(csr_test, reset_is_seen_by_who_polls_behind_it) {
    enable();
    start(true, 0, PRAWN_BAR0_CTRL, 4, PRAWN_CTRL_RESET_MASK);
    start(false, 0, PRAWN_BAR0_CTRL, 4);
    start(false, 0, PRAWN_BAR0_STATUS, 4);
    start(true, 0, PRAWN_BAR0_ADMIN_LOG2, 4, 9);
    start(false, 0, PRAWN_BAR0_ADMIN_LOG2, 4);
    run(0.2);
    EXPECT_EQ(b().backend.resets, 1u);
    EXPECT_EQ(all[2]->data & 0xffffffff, PRAWN_CTRL_RESET_MASK);
    EXPECT_EQ(all[3]->data & PRAWN_STATUS_READY_MASK, 0u);
    EXPECT_EQ(all[5]->data & 0xffffffff, 0u);  // not taken before READY
    run(1);
    EXPECT_EQ(read(0, PRAWN_BAR0_CTRL, 4), 0u);
    EXPECT_TRUE(read(0, PRAWN_BAR0_STATUS, 4) & PRAWN_STATUS_READY_MASK);
}

TEST_F(csr_test, reset_by_the_host_answers_what_waits) {
    for (int i = 0; i < 4; i++)
        start(false, 0, PRAWN_BAR0_ID, 4);
    dut.reset();
    ASSERT_EQ(b().answered.size(), 4u);
    for (const auto& t : all) {
        EXPECT_EQ(t->data & 0xffffffff, 0u);
        EXPECT_EQ(t->trans.get_ref_count(), 1);
    }
    run(1);
    EXPECT_EQ(b().answered.size(), 4u);
}

TEST_F(csr_test, enable_is_told_once) {
    enable();
    EXPECT_EQ(b().backend.enabled, 1);
    EXPECT_EQ(read(0, PRAWN_BAR0_CTRL, 4), PRAWN_CTRL_ENABLE_MASK);
    b().backend.enabled = -1;
    enable();
    EXPECT_EQ(b().backend.enabled, -1);
    write(0, PRAWN_BAR0_CTRL, 4, 0);
    EXPECT_EQ(b().backend.enabled, 0);
}

TEST_F(csr_test, doorbells_reach_their_blocks) {
    write(2, 5 * 0x1000, 8, 9ull << 32 | 11);
    EXPECT_TRUE(b().doorbells.items.empty());  // not enabled
    enable();
    write(2, 5 * 0x1000, 8, 9ull << 32 | 11);
    ASSERT_EQ(b().doorbells.items.size(), 1u);
    EXPECT_EQ(b().doorbells.items[0].context, 5u);
    EXPECT_EQ(b().doorbells.items[0].producer, 11u);
    EXPECT_EQ(b().doorbells.items[0].consumed, 9u);
    ASSERT_EQ(b().updates.items.size(), 1u);
    EXPECT_EQ(b().updates.items[0].what, ring_update::COMPLETION_CONSUMED);
    write(2, 63 * 0x1000 + 0x08, 8, 1);
    write(2, 63 * 0x1000 + 0x10, 8, 2);
    write(2, 63 * 0x1000 + 0x18, 8, 3);
    ASSERT_EQ(b().updates.items.size(), 4u);
    EXPECT_EQ(b().updates.items[1].what, ring_update::NOTIFY_CONSUMED);
    EXPECT_EQ(b().updates.items[2].what, ring_update::ARM_NOTIFY);
    EXPECT_EQ(b().updates.items[3].what, ring_update::ARM_COMPLETION);
    EXPECT_EQ(b().updates.items[3].context, 63u);
    write(2, 64 * 0x1000, 8, 1);  // no such context
    write(2, 5 * 0x1000, 4, 1);   // wrong size
    EXPECT_EQ(b().doorbells.items.size(), 1u);
    EXPECT_EQ(read(2, 5 * 0x1000 + 0x28, 4), 0x50001u);
    const std::uint64_t before = now_ps();
    EXPECT_EQ(read(2, PRAWN_DOORBELL_TIME, 8), before + 16000);
}

TEST_F(csr_test, proxy_space_is_closed) {
    const std::uint64_t stores = b().count("csr.proxy_stores");
    EXPECT_EQ(read(4, 0xfffff000, 8), PRAWN_PROXY_STATUS_INVALID_MASK);
    EXPECT_EQ(read(4, 0, 1), PRAWN_PROXY_STATUS_INVALID_MASK);
    write(4, 0, 8, 64);
    EXPECT_EQ(b().count("csr.proxy_stores"), stores + 1);
}

TEST_F(csr_test, counters_by_window) {
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_COUNT, 4),
              b().counters.per_context_size() << 16 | b().counters.size());
    std::size_t index = 0;
    while (b().counters.name(index) != "test.some_counter")
        index++;
    write(0, PRAWN_BAR0_COUNTER_SELECT, 4, index);
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_VALUE, 8), 42u);
    char name[PRAWN_COUNTER_NAME_SIZE];
    for (unsigned i = 0; i < 6; i++) {
        const std::uint64_t word = read(0, PRAWN_BAR0_COUNTER_NAME + 8 * i, 8);
        std::memcpy(name + 8 * i, &word, 8);
    }
    EXPECT_STREQ(name, "test.some_counter");
    index = 0;
    while (b().counters.per_context_name(index) != "test.of_context")
        index++;
    write(0, PRAWN_BAR0_COUNTER_SELECT, 4, index | 3u << 16);
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_VALUE, 8), 7u);
    write(0, PRAWN_BAR0_COUNTER_SELECT, 4, 0xffff);
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_VALUE, 8), ~0ull);
    write(0, PRAWN_BAR0_COUNTER_SELECT, 4, 0xffffffff);
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_VALUE, 8), ~0ull);
    EXPECT_EQ(read(0, PRAWN_BAR0_COUNTER_NAME, 8), 0u);
}

TEST_F(csr_test, causes_and_intx) {
    put(dut.cause_in(), unsigned{PRAWN_INT_CAUSE_EVENT_MASK});
    EXPECT_EQ(read(0, PRAWN_BAR0_INT_CAUSE, 4), PRAWN_INT_CAUSE_EVENT_MASK);
    EXPECT_FALSE(b().backend.intx);
    write(0, PRAWN_BAR0_INT_ENABLE, 4, ~0u);
    EXPECT_EQ(read(0, PRAWN_BAR0_INT_ENABLE, 4), 15u);
    EXPECT_TRUE(b().backend.intx);
    write(0, PRAWN_BAR0_INT_CAUSE, 4, PRAWN_INT_CAUSE_ADMIN_MASK);
    EXPECT_TRUE(b().backend.intx);
    write(0, PRAWN_BAR0_INT_CAUSE, 4, PRAWN_INT_CAUSE_EVENT_MASK);
    EXPECT_FALSE(b().backend.intx);
    put(dut.cause_in(), unsigned{PRAWN_INT_CAUSE_ADMIN_MASK});
    EXPECT_TRUE(b().backend.intx);
    dut.reset();
    EXPECT_FALSE(b().backend.intx);
}

TEST_F(csr_test, back_pressure_at_the_socket) {
    std::size_t sent = 0;
    while (start(true, 2, 0, 8, sent))
        sent++;
    EXPECT_EQ(sent, csr::DEPTH);
    run(2);
    EXPECT_EQ(b().late_accepts, 1u);
    EXPECT_EQ(b().answered.size(), csr::DEPTH + 1);
}

TEST_F(csr_test, impossible_sizes_do_no_harm) {
    start(false, 0, 0, 3);
    start(false, 0, 1, 4);
    start(true, 0, PRAWN_BAR0_CTRL, 3, 1);
    run(1);
    EXPECT_EQ(b().answered.size(), 3u);
    EXPECT_EQ(b().backend.resets, 0u);
}

}  // namespace
}  // namespace test
}  // namespace prawn
