// SPDX-License-Identifier: Apache-2.0
// Timing profile: everything about time that belongs to the machine and not to
// a block. One TOML file in profiles/ each; there every number carries its
// source and whether it is sourced, derived or fitted.

#ifndef PRAWN_SUPPORT_PROFILE_H
#define PRAWN_SUPPORT_PROFILE_H

#include <cstdint>
#include <string>
#include <vector>

#include <systemc>

namespace prawn {

struct timing_profile {
    // One number as the file states it, for reports.
    struct provenance {
        std::string key;  // "bus.read_latency_ns"
        double value = 0.0;
        std::string kind;    // "sourced", "derived" or "fitted"
        std::string source;  // paper and section, formula, or what was fitted
    };

    std::string name;
    std::string description;

    sc_core::sc_time card_clock;  // period of the card's clock

    // I/O bus between card and host (EISA, PCIe ...).
    struct {
        bool half_duplex = false;        // reads, writes, MMIO share one medium
        double bytes_per_ns = 1.0;       // peak, each direction if full duplex
        std::uint32_t max_burst = 256;   // bytes of one transaction
        std::uint32_t overhead = 0;      // header bytes per transaction
        sc_core::sc_time arbitration;    // fixed occupancy per transaction
        sc_core::sc_time read_latency;   // request to first data, unloaded
        sc_core::sc_time write_latency;  // last byte sent to visible in memory
        std::uint32_t outstanding_reads = 1;
        sc_core::sc_time mmio_read;   // CPU read of a card register, round trip
        sc_core::sc_time mmio_write;  // CPU write until the card sees it
        sc_core::sc_time interrupt;   // MSI-X or INTx until the CPU sees it
    } bus;

    // Links and switches.
    struct {
        double bytes_per_ns = 1.0;
        sc_core::sc_time latency;    // propagation, SerDes and all
        std::uint32_t overhead = 0;  // framing bytes per packet
        std::uint32_t credits = 32;  // packets per destination at the next hop
        sc_core::sc_time switch_latency;
    } link;

    // The host's processor, for guests in step with the model: time of an
    // instruction, ns; a power of two from 1 to 1024.
    std::uint32_t instruction_ns = 1;

    // On-card memory.
    sc_core::sc_time sram_access;

    std::vector<provenance> sources;

    sc_core::sc_time cycles(std::uint64_t n) const {
        return card_clock * static_cast<double>(n);
    }

    // Throws std::runtime_error with one line that says file, key, mend.
    static timing_profile load(const std::string& path);
    // The same for the text of such a file; `name` is for messages.
    static timing_profile parse(const std::string& text,
                                const std::string& name);
};

}  // namespace prawn

#endif
