// SPDX-License-Identifier: Apache-2.0
// The only file that knows which classes implement the contracts.
#include "nic/admin_queue.h"
#include "nic/command_queue.h"
#include "nic/depacketizer.h"
#include "nic/dma_engine.h"
#include "nic/incoming_dma.h"
#include "nic/ipt.h"
#include "nic/link_mac.h"
#include "nic/nic.h"
#include "nic/notifier.h"
#include "nic/opt.h"
#include "nic/outgoing_fifo.h"
#include "nic/packetizer.h"
#include "nic/ptp_clock.h"
#include "nic/reliable.h"
#include "nic/utlb.h"

namespace prawn {

const std::vector<std::string>& block_names() {
    static const std::vector<std::string> names = {
        "csr",          "admin_queue", "command_queue", "utlb",
        "dma_engine",   "opt",         "packetizer",    "outgoing_fifo",
        "reliable",     "link_mac",    "depacketizer",  "ipt",
        "incoming_dma", "notifier",    "ptp_clock"};
    return names;
}

nic_blocks make_blocks(const nic_config& config, const block_env& env) {
    nic_blocks b;
    b.csr = std::make_unique<csr>("csr", env, config.identity);
    b.admin_queue = std::make_unique<admin_queue>("admin_queue", env);
    b.command_queue = std::make_unique<command_queue>("command_queue", env);
    b.utlb = std::make_unique<utlb>("utlb", env);
    b.utlb->set_geometry(
        PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_ENTRIES, config.utlb_log2_entries) |
        PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_WAYS, config.utlb_log2_ways) |
        PRAWN_FIELD_PUT(UTLB_GEOMETRY_OFFSET, config.utlb_offset ? 1u : 0u) |
        PRAWN_FIELD_PUT(UTLB_GEOMETRY_LOG2_PREFETCH,
                        config.utlb_log2_prefetch));
    auto dma = std::make_unique<dma_engine>("dma_engine", env);
    b.dma_bus = &dma->bus_out;
    b.dma_engine = std::move(dma);
    b.opt = std::make_unique<opt>("opt", env);
    packetizer::params packets;
    packets.max_payload = config.packetizer_max_payload;
    packets.window = config.packetizer_window;
    b.packetizer = std::make_unique<packetizer>("packetizer", env, packets);
    outgoing_fifo::params fifo;
    fifo.depth = config.outgoing_fifo_depth;
    b.outgoing_fifo =
        std::make_unique<outgoing_fifo>("outgoing_fifo", env, fifo);
    b.reliable = std::make_unique<reliable>("reliable", env);
    b.link_mac = std::make_unique<link_mac>("link_mac", env);
    b.depacketizer = std::make_unique<depacketizer>("depacketizer", env);
    b.ipt = std::make_unique<ipt>("ipt", env);
    incoming_dma_config incoming;
    incoming.window = config.incoming_dma_window;
    b.incoming_dma =
        std::make_unique<incoming_dma>("incoming_dma", env, incoming);
    b.notifier = std::make_unique<notifier>("notifier", env);
    b.ptp_clock = std::make_unique<ptp_clock>("ptp_clock", env);
    return b;
}

}  // namespace prawn
