// SPDX-License-Identifier: Apache-2.0
#include "host/grant_checker.h"

#include <cstdio>

namespace prawn {

namespace {
constexpr unsigned PAGE_SHIFT = PRAWN_PAGE_SHIFT;
constexpr unsigned CONTEXT_SHIFT = 52;  // page numbers have fewer bits
}  // namespace

grant_checker::grant_checker(sc_core::sc_module_name name,
                             const block_env& env) :
    sc_core::sc_module(name),
    m_in_end(*this, &grant_checker::request),
    m_out_end(*this, &grant_checker::response),
    m_env(env),
    m_events(env.events, env.node, block_id::HOST_PORT),
    m_failed_event("failed_event"),
    m_checked(env.counters->add("grant_checker.checked")),
    m_failed_count(env.counters->add("grant_checker.failed")),
    m_granted_pages(env.counters->add("grant_checker.pages")),
    m_bad_requests(env.counters->add("grant_checker.bad_requests")) {
    dma_in.bind(m_in_end);
    dma_out.bind(m_out_end);
    grant_in.bind(*this);
}

// One table for all contexts: the kernel's is number CONTEXTS.
std::uint64_t grant_checker::key(std::uint16_t context,
                                 std::uint64_t page) const {
    const std::uint64_t c =
        context == KERNEL_CONTEXT ? PRAWN_CONTEXTS : context;
    return c << CONTEXT_SHIFT | page;
}

bool grant_checker::well_formed(std::uint16_t context, std::uint64_t address,
                                std::uint64_t pages) const {
    return (context < PRAWN_CONTEXTS || context == KERNEL_CONTEXT) &&
           address % PRAWN_PAGE_SIZE == 0 && pages > 0 && pages <= MAX_PAGES &&
           (address >> PAGE_SHIFT) + pages <= std::uint64_t{1}
                                                  << (64 - PAGE_SHIFT);
}

std::uint16_t grant_checker::grant(std::uint16_t context, std::uint64_t address,
                                   std::uint64_t pages, bool write) {
    if (!well_formed(context, address, pages)) {
        m_bad_requests++;
        return PRAWN_STATUS_BAD_FIELD;
    }
    for (std::uint64_t i = 0; i < pages; i++) {
        page_grant& g = m_grants[key(context, (address >> PAGE_SHIFT) + i)];
        g.count++;
        g.write = g.write || write;
    }
    m_granted_pages.set(m_grants.size());
    return PRAWN_STATUS_OK;
}

std::uint16_t grant_checker::revoke(std::uint16_t context,
                                    std::uint64_t address,
                                    std::uint64_t pages) {
    bool ok = well_formed(context, address, pages);
    for (std::uint64_t i = 0; ok && i < pages; i++)
        ok = m_grants.count(key(context, (address >> PAGE_SHIFT) + i)) > 0;
    if (!ok) {
        m_bad_requests++;
        return PRAWN_STATUS_BAD_FIELD;
    }
    for (std::uint64_t i = 0; i < pages; i++) {
        const auto g = m_grants.find(key(context, (address >> PAGE_SHIFT) + i));
        if (--g->second.count == 0)
            m_grants.erase(g);
    }
    m_granted_pages.set(m_grants.size());
    for (std::size_t i = m_watched.size(); i-- > 0;) {
        tlm::tlm_generic_payload& trans = *m_watched[i]->trans;
        if (!granted(trans)) {
            fail(trans, true);
            forget(trans);
        }
    }
    return PRAWN_STATUS_OK;
}

bool grant_checker::granted(const tlm::tlm_generic_payload& trans) const {
    const auto* ext = trans.get_extension<dma_extension>();
    const std::uint16_t context = ext ? ext->context : KERNEL_CONTEXT;
    if (context >= PRAWN_CONTEXTS && context != KERNEL_CONTEXT)
        return false;
    const std::uint64_t first = trans.get_address();
    const std::uint64_t last = first + trans.get_data_length() - 1;
    if (last < first)
        return false;
    for (std::uint64_t page = first >> PAGE_SHIFT; page <= last >> PAGE_SHIFT;
         page++) {
        const auto g = m_grants.find(key(context, page));
        if (g == m_grants.end() || (trans.is_write() && !g->second.write))
            return false;
    }
    return true;
}

tlm::tlm_sync_enum grant_checker::request(tlm::tlm_generic_payload& trans,
                                          tlm::tlm_phase& phase) {
    if (phase != tlm::BEGIN_REQ)
        return tlm::TLM_ACCEPTED;
    m_checked++;
    if (!granted(trans)) {
        fail(trans, false);
        trans.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        send_backward(dma_in, trans, tlm::BEGIN_RESP);
        phase = tlm::END_REQ;
        return tlm::TLM_UPDATED;
    }
    watch* w = trans.get_extension<watch>();
    if (!w) {
        w = new watch;
        w->trans = &trans;
        trans.set_extension(w);
    }
    w->index = m_watched.size();
    m_watched.push_back(w);
    return send_forward(dma_out, trans, phase);
}

tlm::tlm_sync_enum grant_checker::response(tlm::tlm_generic_payload& trans,
                                           tlm::tlm_phase& phase) {
    if (phase == tlm::BEGIN_RESP)
        forget(trans);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    return dma_in->nb_transport_bw(trans, phase, delay);
}

void grant_checker::forget(tlm::tlm_generic_payload& trans) {
    watch& w = *trans.get_extension<watch>();
    if (w.index == NOT_WATCHED)
        return;
    m_watched.back()->index = w.index;
    m_watched[w.index] = m_watched.back();
    m_watched.pop_back();
    w.index = NOT_WATCHED;
}

void grant_checker::fail(const tlm::tlm_generic_payload& trans, bool revoked) {
    const auto* ext = trans.get_extension<dma_extension>();
    failure f;
    f.time = now_ps();
    f.address = trans.get_address();
    f.length = trans.get_data_length();
    f.context = ext ? ext->context : KERNEL_CONTEXT;
    f.channel = ext ? ext->channel : std::uint8_t{0};
    f.write = trans.is_write();
    f.revoked = revoked;
    m_failed_count++;
    m_events.emit(event_kind::CHECK_FAILED,
                  message_id::of_context(m_env.node, f.context), f.address,
                  f.length);
    if (!m_failed)
        SC_REPORT_WARNING(name(), f.text().c_str());
    m_failed = true;
    m_failed_event.notify(sc_core::SC_ZERO_TIME);
    if (m_failures.size() < MAX_FAILURES)
        m_failures.push_back(f);
}

std::string grant_checker::failure::text() const {
    char who[32];
    if (context == KERNEL_CONTEXT)
        std::snprintf(who, sizeof who, "the kernel");
    else
        std::snprintf(who, sizeof who, "context %u", context);
    char line[200];
    std::snprintf(line, sizeof line,
                  "%s of %u bytes at 0x%llx for %s (channel %u, %llu ps) %s",
                  write ? "write" : "read", length,
                  static_cast<unsigned long long>(address), who, channel,
                  static_cast<unsigned long long>(time),
                  revoked ? "was under way when its page was revoked"
                          : "is outside of its grants");
    return line;
}

void grant_checker::reset() {
    m_grants.clear();
    m_granted_pages.set(0);
    for (watch* w : m_watched)
        w->index = NOT_WATCHED;
    m_watched.clear();
}

}  // namespace prawn
