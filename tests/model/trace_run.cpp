// SPDX-License-Identifier: Apache-2.0
// Messages from node 0 to node 1, for views of a run: those of --set trace.*.
// Says on standard output, one a line, what it has sent:
//   SOURCE_NODE:CONTEXT:MESSAGE OFFSET BYTES
#include <cstdio>

#include "model_bench.h"

namespace {

using namespace prawn::model;

int traffic() {
    bench& b = bench::get();
    b.boot_all();
    channel c = make_channel(b.driver(0), 1, b.driver(1), 2, 7, 8);
    c.from->fill(c.source, c.length, 1);
    for (const std::uint32_t bytes : {0u, 1u, 1000u, 4096u, 9000u, 20001u}) {
        const std::uint64_t offset = bytes % 4096 / 2;
        c.from->send(c.import, c.source + 3, bytes, offset, true);
        const prawn_completion done = c.from->wait_completion();
        const prawn_notification n = c.to->wait_notification();
        if (done.status != PRAWN_STATUS_OK || n.message != done.message)
            return 1;
        std::printf("0:1:%u %llu %u\n", done.message,
                    static_cast<unsigned long long>(offset), bytes);
    }
    // Stages that end after the notification.
    sc_core::wait(sc_core::sc_time(100, sc_core::SC_US));
    return testing::Test::HasFailure() || !b.model().failures().empty();
}

}  // namespace

int sc_main(int argc, char** argv) {
    return run_bench(argc, argv, traffic);
}
