// SPDX-License-Identifier: Apache-2.0
// Compares every DMA with what the kernel has granted.

#ifndef PRAWN_HOST_GRANT_CHECKER_H
#define PRAWN_HOST_GRANT_CHECKER_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "nic/contracts.h"

namespace prawn {

// Stands between dma_engine and host_bus; takes no time. A DMA outside of the
// grants of its context is answered TLM_ADDRESS_ERROR_RESPONSE and recorded. A
// DMA that is on the bus when its page is revoked can no longer be stopped: it
// is recorded.
//
// Grants nest by page: a page is granted until it has been revoked as often as
// it was granted, and may be written as long as one of these grants allowed
// it. (REVOKE does not say which grant it takes back; so write permission goes
// with the last one.) Grants of KERNEL_CONTEXT cover DMA of KERNEL_CONTEXT
// only.
class grant_checker : public sc_core::sc_module, public grant_if
{
public:
    tlm::tlm_target_socket<> dma_in{"dma_in"};       // from dma_engine
    tlm::tlm_initiator_socket<> dma_out{"dma_out"};  // to host_bus
    sc_core::sc_export<grant_if> grant_in{"grant_in"};

    // The most that one GRANT may name: 4 GiB.
    static constexpr std::uint64_t MAX_PAGES = 1 << 20;

    grant_checker(sc_core::sc_module_name name, const block_env& env);

    // Called by the admin queue. A wrong context, an address that is not a
    // page's, 0 or too many pages, or a revoke of what is not granted:
    // BAD_FIELD, and nothing is done.
    std::uint16_t grant(std::uint16_t context, std::uint64_t address,
                        std::uint64_t pages, bool write) override;
    std::uint16_t revoke(std::uint16_t context, std::uint64_t address,
                         std::uint64_t pages) override;

    // With the card: forgets all grants, and judges no longer what is on the
    // bus. Failures stay.
    void reset();

    struct failure {
        std::uint64_t time = 0;  // ps
        std::uint64_t address = 0;
        std::uint32_t length = 0;
        std::uint16_t context = 0;
        std::uint8_t channel = 0;
        bool write = false;
        bool revoked = false;  // was granted when it began
        std::string text() const;
    };
    // For STATUS.CHECK_FAILED and INT_CAUSE.CHECK: notified (delta) at every
    // failure.
    bool failed() const { return m_failed; }
    const sc_core::sc_event& failed_event() const { return m_failed_event; }
    // The first MAX_FAILURES of them.
    static constexpr std::size_t MAX_FAILURES = 64;
    const std::vector<failure>& failures() const { return m_failures; }

private:
    struct page_grant {
        std::uint32_t count = 0;
        bool write = false;
    };
    // Its place in the list of what is under way; stays on the payload.
    struct watch : tlm::tlm_extension<watch> {
        tlm::tlm_generic_payload* trans = nullptr;
        std::size_t index = 0;
        tlm::tlm_extension_base* clone() const override { return new watch; }
        void copy_from(const tlm::tlm_extension_base&) override {}
    };
    static constexpr std::size_t NOT_WATCHED = ~std::size_t{0};

    tlm::tlm_sync_enum request(tlm::tlm_generic_payload& trans,
                               tlm::tlm_phase& phase);
    tlm::tlm_sync_enum response(tlm::tlm_generic_payload& trans,
                                tlm::tlm_phase& phase);
    bool granted(const tlm::tlm_generic_payload& trans) const;
    bool well_formed(std::uint16_t context, std::uint64_t address,
                     std::uint64_t pages) const;
    std::uint64_t key(std::uint16_t context, std::uint64_t page) const;
    void forget(tlm::tlm_generic_payload& trans);
    void fail(const tlm::tlm_generic_payload& trans, bool revoked);

    forward_end<grant_checker> m_in_end;
    backward_end<grant_checker> m_out_end;
    const block_env m_env;
    event_source m_events;
    std::unordered_map<std::uint64_t, page_grant> m_grants;
    std::vector<watch*> m_watched;
    std::vector<failure> m_failures;
    bool m_failed = false;
    sc_core::sc_event m_failed_event;
    counter& m_checked;
    counter& m_failed_count;
    counter& m_granted_pages;
    counter& m_bad_requests;
};

}  // namespace prawn

#endif
