// SPDX-License-Identifier: Apache-2.0
// Outgoing page table: what each import of this card is, and whose.

#ifndef PRAWN_NIC_OPT_H
#define PRAWN_NIC_OPT_H

#include <array>
#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/direct_in.h"

namespace prawn {

// Contract: opt_base. One lookup a clock, each answered LOOKUP_CYCLES and one
// SRAM access later; it sees the table as it is when it is answered, so that a
// cleared entry stops everything that is still on its way.
//
// SET overwrites what was there and takes it out of error state. An entry in
// error state answers IMPORT_ERROR whatever the range. CLEAR of an entry that
// is not valid is no error.
// IMPORT_ERROR: b may say what the entry must still name (see expected()); a
// refusal that arrives after its entry was given to another import is then
// ignored. Replies to PEER_ERROR and CONTEXT_DISABLE say how many entries were
// hit.
class opt final : public opt_base
{
public:
    // Address register, comparator.
    static constexpr unsigned LOOKUP_CYCLES = 2;
    // Requests on their way: covers the longest latency at full rate.
    static constexpr unsigned PIPELINE = 32;

    // Field b of IMPORT_ERROR: the node and IPT entry that the entry must name.
    static constexpr std::uint64_t expected(std::uint16_t node,
                                            std::uint32_t export_id) {
        return std::uint64_t{1} << 63 | std::uint64_t{node} << 32 | export_id;
    }

    opt(sc_core::sc_module_name name, const block_env& env);

    put_if<opt_request>& request_in() override { return m_request_in; }
    put_if<control_request>& control_in() override { return m_control; }
    void reset() override;

private:
    struct entry {
        bool valid = false;
        std::uint16_t error = PRAWN_STATUS_OK;  // not OK: error state
        std::uint16_t context = 0;
        std::uint16_t node = 0;
        std::uint16_t epoch = 0;
        std::uint32_t export_id = 0;
        std::uint64_t key = 0;
        std::uint64_t length = 0;
        std::uint64_t cookie = 0;
        std::uint32_t life = 0;  // of the context
    };
    struct pending {
        std::uint64_t due = 0;  // ps
        opt_request request;
    };

    bool take_request(opt_request& r);
    void step();
    void lookup(const opt_request& r);
    std::uint16_t check(const opt_request& r, const entry& e) const;
    void control(const control_request& r);
    std::uint16_t set(const control_request& r);
    std::uint16_t import_error(const control_request& r);
    void enter_error(std::uint32_t index, std::uint16_t status);

    std::vector<entry> m_table;
    std::array<pending, PIPELINE> m_pipe;  // ring
    unsigned m_first = 0;
    unsigned m_count = 0;
    std::uint64_t m_cycle;     // ps
    std::uint64_t m_latency;   // ps
    std::uint64_t m_next = 0;  // earliest time of the next lookup

    direct_in<opt_request, opt, &opt::take_request> m_request_in;
    inbox<control_request> m_control;
    sc_core::sc_event m_wake;

    counter& m_lookups;
    counter& m_bad_import;
    counter& m_out_of_range;
    counter& m_import_error;
    counter& m_errors_entered;
    counter& m_errors_ignored;
    context_counter& m_of_context;
    context_counter& m_refused_of_context;
};

}  // namespace prawn

#endif
