// SPDX-License-Identifier: Apache-2.0
// Translation of virtual addresses on the card: cache in SRAM, tables in host
// memory.

#ifndef PRAWN_NIC_UTLB_H
#define PRAWN_NIC_UTLB_H

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nic/contracts.h"
#include "nic/utlb_cache.h"
#include "nic/utlb_walker.h"
#include "support/handler.h"
#include "support/ring.h"

namespace prawn {

struct utlb_config {
    utlb_geometry geometry;
    unsigned walks = 8;  // at once, 1 to utlb_walker::MAX_WALKS
};

// Mode HIERARCHICAL only; set_mode ignores the others and FILL is answered
// UNSUPPORTED.
//
// Pipeline: one lookup a cycle, ports in turn; a lookup takes LOOKUP_CYCLES and
// one SRAM access. A miss leaves the pipeline and waits for a walk: for the
// one of its line if there is one, else for a free one (contexts in turn).
// A walk takes STEP_CYCLES after each DMA answer; filling takes the pipeline
// one cycle an entry.
// What is not valid is never cached: the next lookup walks again, also if it
// joined a walk whose last read had been sent before. So does a lookup for
// writing that finds an entry for reading only. A mapping may thus get more
// rights without an INVALIDATE.
// A port takes LIMIT unanswered requests of each context, whatever the others
// have there.
//
// INVALIDATE takes effect at once; its answer comes INVALIDATE_CYCLES and one
// cycle a page later (at most one a set). With pages = 0, and for
// CONTEXT_DISABLE, it also waits for the table reads under way: the kernel may
// then free the tables. CONTEXT_DISABLE answers what waits with BAD_CONTEXT.
// A reset, or an INVALIDATE, makes no counter smaller.
class utlb final : public utlb_base
{
public:
    static constexpr unsigned LOOKUP_CYCLES = 1;
    static constexpr unsigned STEP_CYCLES = 1;
    static constexpr unsigned INVALIDATE_CYCLES = 2;
    static constexpr unsigned LIMIT = 16;
    // For FEATURES.UTLB_MODES.
    static constexpr std::uint32_t MODES = 1U << PRAWN_UTLB_MODE_HIERARCHICAL;

    utlb(sc_core::sc_module_name name, const block_env& env,
         const utlb_config& config = {});

    put_if<utlb_request>& request_in(unsigned port) override {
        return m_ports[port];
    }
    put_if<dma_reply>& dma_reply_in() override { return m_dma_reply; }
    put_if<control_request>& control_in() override { return m_control; }
    void reset() override;

    std::uint32_t mode() const override { return PRAWN_UTLB_MODE_HIERARCHICAL; }
    void set_mode(std::uint32_t) override {}
    std::uint32_t geometry() const override {
        return m_cache.geometry().encode();
    }
    void set_geometry(std::uint32_t word) override;

    // 0: geometry, 4: mode, 8: walks under way.
    std::uint32_t card_read(std::uint32_t offset) override;

private:
    static constexpr std::uint32_t NO_WAITER = ~std::uint32_t{0};
    struct asked {
        utlb_request request;
        std::uint64_t ready = 0;  // ps
    };
    struct input : put_if<utlb_request> {
        utlb* owner = nullptr;
        unsigned index = 0;
        ring<asked> queue;
        // Unanswered ones; the last is for contexts that do not exist.
        std::array<std::uint8_t, PRAWN_CONTEXTS + 1> open{};
        bool refused = false;
        sc_core::sc_event room_event;
        bool try_put(utlb_request& request) override {
            return owner->accept(*this, request);
        }
        const sc_core::sc_event& room() const override { return room_event; }
    };
    struct waiter {
        utlb_request request;
        std::uint32_t next = NO_WAITER;
        std::uint32_t joined = 0;  // reads that its walk had sent by then
        std::uint8_t port = 0;
    };
    struct context_state {
        bool enabled = false;
        std::uint64_t table = 0;
        std::uint32_t first = NO_WAITER, last = NO_WAITER;  // without a walk
        // Pages that have been in the cache, 512 a word group.
        std::unordered_map<std::uint64_t, std::array<std::uint64_t, 8>> seen;
    };
    struct late_reply {
        std::uint64_t at = 0;
        std::uint32_t tag = 0;
        std::uint16_t status = 0;
    };
    struct late_step {
        std::uint64_t at = 0;
        int walk = 0;
    };
    // A counter of the card and the same of each context.
    struct counted {
        counter& all;
        context_counter& each;
        counted(counter_registry& r, const char* name);
        void add(std::uint16_t context, std::uint64_t n = 1) {
            all += n;
            each[context] += n;
        }
    };

    bool accept(input& p, utlb_request& request);
    void lookup_next();
    void wake_lookup();
    void look_up(input& p, const utlb_request& request);
    void answer(input& p, const utlb_request& request, std::uint16_t status,
                std::uint64_t address = 0);
    bool answer_from(std::uint64_t entry, input& p,
                     const utlb_request& request);

    // utlb_miss.cpp
    void miss(input& p, const utlb_request& request);
    void place(std::uint32_t w);
    void assign(std::uint32_t w);
    void serve_parked();
    void walk_done(utlb_walker::walk& w, std::uint16_t status,
                   const std::uint64_t* entries);
    void fill(const utlb_walker::walk& w, std::uint32_t wanted,
              const std::uint64_t* entries);
    bool first_time(std::uint16_t context, std::uint64_t page);
    void append(std::uint32_t& first, std::uint32_t& last, std::uint32_t w);
    std::uint32_t take_waiter(input& p, const utlb_request& request);
    void answer_all(std::uint32_t first, std::uint16_t status);
    void step();
    void retry_dma();

    // utlb_control.cpp
    void control(control_request& request);
    void enable(const control_request& request);
    void disable(const control_request& request);
    void invalidate(const control_request& request);
    void reply_after(std::uint32_t tag, std::uint16_t status,
                     std::uint64_t cycles);
    void reply_drained(std::uint32_t tag);
    void send_replies();

    const std::uint64_t m_cycle, m_latency, m_step_time;
    utlb_cache m_cache;
    utlb_walker m_walker;
    std::array<input, UTLB_PORTS> m_ports;
    handler<dma_reply> m_dma_reply;
    handler<control_request> m_control;
    std::vector<context_state> m_contexts;
    unsigned m_enabled = 0;

    unsigned m_last_port = UTLB_PORTS - 1;
    std::uint64_t m_next_slot = 0;  // ps
    std::uint64_t m_lookup_wake = ~std::uint64_t{0};
    sc_core::sc_event m_lookup_due;

    std::vector<waiter> m_waiters;
    std::vector<std::uint32_t> m_free_waiters;
    std::uint32_t m_again_first = NO_WAITER, m_again_last = NO_WAITER;
    std::uint64_t m_parked = 0;  // bit per context that waits for a walk
    unsigned m_last_parked = PRAWN_CONTEXTS - 1;
    ring<late_step> m_steps;
    sc_core::sc_event m_step_due;
    std::uint64_t m_walk_number = 0;

    ring<late_reply> m_replies;
    sc_core::sc_event m_reply_due;

    counted m_lookups, m_hits, m_misses, m_compulsory, m_fetched, m_walks;
    counted m_evictions, m_invalidations, m_not_pinned;
    counter& m_bad_entries;
    counter& m_merged;
    counter& m_stalls;
    counter& m_directory_hits;
};

}  // namespace prawn

#endif
