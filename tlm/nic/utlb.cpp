// SPDX-License-Identifier: Apache-2.0
// utlb: the lookup pipeline.
#include "nic/utlb.h"

#include <algorithm>
#include <string>

namespace prawn {

namespace {

constexpr std::uint64_t NEVER = ~std::uint64_t{0};
constexpr std::uint64_t VA_MASK = (std::uint64_t{1} << PRAWN_VA_BITS) - 1;

std::size_t open_index(std::uint16_t context) {
    return std::min<std::size_t>(context, PRAWN_CONTEXTS);
}

}  // namespace

utlb::counted::counted(counter_registry& r, const char* name) :
    all(r.add(std::string("utlb.") + name)),
    each(r.add_per_context(std::string("utlb.context_") + name)) {}

utlb::utlb(sc_core::sc_module_name name, const block_env& env,
           const utlb_config& config) :
    utlb_base(name, env, block_id::UTLB),
    m_cycle(env.profile->card_clock.value()),
    m_latency(LOOKUP_CYCLES * m_cycle + env.profile->sram_access.value()),
    m_step_time(STEP_CYCLES * m_cycle),
    m_cache(config.geometry),
    m_walker(
        std::clamp(config.walks, 1U, utlb_walker::MAX_WALKS),
        {[this](dma_request& r) { return dma_out->try_put(r); },
         [this](int walk) {
             m_steps.push_back({now_ps() + m_step_time, walk});
             if (m_steps.size() == 1)
                 m_step_due.notify(sc_core::sc_time::from_value(m_step_time));
         },
         [this](utlb_walker::walk& w, std::uint16_t status,
                const std::uint64_t* entries) {
             walk_done(w, status, entries);
         },
         [this] { m_bad_entries++; }}),
    m_dma_reply([this](dma_reply& r) { m_walker.answer(r); }),
    m_control([this](control_request& r) { control(r); }),
    m_contexts(PRAWN_CONTEXTS),
    m_lookup_due("lookup_due"),
    m_step_due("step_due"),
    m_reply_due("reply_due"),
    m_lookups(*env.counters, "lookups"),
    m_hits(*env.counters, "hits"),
    m_misses(*env.counters, "misses"),
    m_compulsory(*env.counters, "compulsory"),
    m_fetched(*env.counters, "fetched"),
    m_walks(*env.counters, "walks"),
    m_evictions(*env.counters, "evictions"),
    m_invalidations(*env.counters, "invalidations"),
    m_not_pinned(*env.counters, "not_pinned"),
    m_bad_entries(env.counters->add("utlb.bad_entries")),
    m_merged(env.counters->add("utlb.merged")),
    m_stalls(env.counters->add("utlb.stalls")),
    m_directory_hits(env.counters->add("utlb.directory_hits")) {
    for (unsigned i = 0; i < UTLB_PORTS; i++) {
        m_ports[i].owner = this;
        m_ports[i].index = i;
    }
    // As many as the ports can have open: nobody has to wait for one.
    m_waiters.resize(std::size_t{UTLB_PORTS} * (PRAWN_CONTEXTS + 1) * LIMIT);
    for (std::size_t i = m_waiters.size(); i-- > 0;)
        m_free_waiters.push_back(static_cast<std::uint32_t>(i));
    m_walker.set_prefetch(1U << config.geometry.log2_prefetch);
    SC_HAS_PROCESS(utlb);
    SC_METHOD(lookup_next);
    sensitive << m_lookup_due;
    dont_initialize();
    SC_METHOD(step);
    sensitive << m_step_due;
    dont_initialize();
    SC_METHOD(send_replies);
    sensitive << m_reply_due;
    dont_initialize();
    SC_METHOD(retry_dma);  // runs at start, to find its event
}

void utlb::set_geometry(std::uint32_t word) {
    utlb_geometry g;
    if (m_enabled > 0 || !utlb_geometry::decode(word, g))
        return;
    m_cache.configure(g);
    m_walker.set_prefetch(1U << g.log2_prefetch);
}

std::uint32_t utlb::card_read(std::uint32_t offset) {
    switch (offset) {
        case 0:
            return geometry();
        case 4:
            return mode();
        case 8:
            return m_walker.used();
        default:
            return 0;
    }
}

bool utlb::accept(input& p, utlb_request& request) {
    std::uint8_t& open = p.open[open_index(request.context)];
    if (open >= LIMIT) {
        p.refused = true;
        m_stalls++;
        return false;
    }
    open++;
    p.queue.push_back({request, now_ps() + m_latency});
    if (p.queue.size() == 1)
        wake_lookup();
    return true;
}

void utlb::wake_lookup() {
    std::uint64_t at = NEVER;
    for (input& p : m_ports)
        if (!p.queue.empty())
            at = std::min(at, p.queue.front().ready);
    if (at == NEVER)
        return;
    at = std::max(at, m_next_slot);
    if (at >= m_lookup_wake)
        return;
    m_lookup_wake = at;
    const std::uint64_t now = now_ps();
    m_lookup_due.notify(sc_core::sc_time::from_value(at > now ? at - now : 0));
}

// The end of the pipeline: the lookup counts now, also against invalidations.
void utlb::lookup_next() {
    const std::uint64_t now = now_ps();
    m_lookup_wake = NEVER;
    if (now >= m_next_slot) {
        for (unsigned i = 1; i <= UTLB_PORTS; i++) {
            input& p = m_ports[(m_last_port + i) % UTLB_PORTS];
            if (p.queue.empty() || p.queue.front().ready > now)
                continue;
            m_last_port = p.index;
            m_next_slot = now + m_cycle;
            const utlb_request request = p.queue.pop_front().request;
            look_up(p, request);
            break;
        }
    }
    wake_lookup();
}

void utlb::look_up(input& p, const utlb_request& request) {
    const std::uint16_t c = request.context;
    if (c >= PRAWN_CONTEXTS || !m_contexts[c].enabled) {
        answer(p, request, PRAWN_STATUS_BAD_CONTEXT);
        return;
    }
    m_lookups.add(c);
    if (request.va & ~VA_MASK) {
        answer(p, request, PRAWN_STATUS_NOT_PINNED);
        return;
    }
    const std::uint64_t entry =
        m_cache.lookup(c, request.va >> PRAWN_PAGE_SHIFT);
    if (answer_from(entry, p, request)) {
        m_hits.add(c);
        m_events.emit(event_kind::UTLB_HIT, subject(request, m_env.node),
                      request.va);
        return;
    }
    m_misses.add(c);
    m_events.emit(event_kind::UTLB_MISS, subject(request, m_env.node),
                  request.va);
    miss(p, request);
}

// True if the cache's entry is enough.
bool utlb::answer_from(std::uint64_t entry, input& p,
                       const utlb_request& request) {
    if (entry == utlb_cache::NOTHING ||
        (request.write && !(entry & PRAWN_TABLE_ENTRY_WRITE_MASK)))
        return false;
    answer(p, request, PRAWN_STATUS_OK, entry & PRAWN_TABLE_ENTRY_ADDRESS_MASK);
    return true;
}

void utlb::answer(input& p, const utlb_request& request, std::uint16_t status,
                  std::uint64_t address) {
    if (status == PRAWN_STATUS_NOT_PINNED)
        m_not_pinned.add(request.context);
    p.open[open_index(request.context)]--;
    if (p.refused) {
        p.refused = false;
        p.room_event.notify(sc_core::SC_ZERO_TIME);
    }
    utlb_reply r{request.tag, status, address};
    reply_out[p.index]->try_put(r);
}

void utlb::reset() {
    m_cache.clear();
    m_walker.reset();
    for (input& p : m_ports) {
        p.queue.clear();
        p.open.fill(0);
        if (p.refused) {
            p.refused = false;
            p.room_event.notify(sc_core::SC_ZERO_TIME);
        }
    }
    for (context_state& c : m_contexts)
        c = context_state();
    m_enabled = 0;
    m_last_port = UTLB_PORTS - 1;
    m_next_slot = 0;
    m_lookup_wake = NEVER;
    m_lookup_due.cancel();
    m_free_waiters.clear();
    for (std::size_t i = m_waiters.size(); i-- > 0;)
        m_free_waiters.push_back(static_cast<std::uint32_t>(i));
    m_again_first = m_again_last = NO_WAITER;
    m_parked = 0;
    m_last_parked = PRAWN_CONTEXTS - 1;
    m_steps.clear();
    m_step_due.cancel();
    m_replies.clear();
    m_reply_due.cancel();
}

}  // namespace prawn
