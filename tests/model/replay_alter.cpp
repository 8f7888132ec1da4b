// SPDX-License-Identifier: Apache-2.0
// Writes a recording with one thing in it changed:
//   replay_alter IN OUT KIND N WHAT
// The N-th record of KIND (from 1) gets other data (data: its first byte; last:
// its last but eight), another value, address, status, or is left out (drop).
// Prints the number of the record.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "record/recording.h"

namespace {

using namespace prawn;

int alter(char** argv) {
    const record_kind kind = record_kind_of(argv[3]);
    const unsigned long wanted = std::strtoul(argv[4], nullptr, 10);
    const std::string what = argv[5];
    recording_reader in(argv[1]);
    recording_writer out(argv[2], in.header());
    record r;
    unsigned long seen = 0, number = 0, altered = 0;
    while (in.next(r)) {
        number++;
        if (r.kind != kind || ++seen != wanted) {
            out.write(r);
            continue;
        }
        altered = number;
        std::vector<std::uint8_t> data(r.data, r.data + r.data_size);
        r.data = data.data();
        if (what == "data" && !data.empty())
            data[0] ^= 0x55;
        else if (what == "last" && data.size() > 16)
            data[data.size() - 16] ^= 0x55;
        else if (what == "value")
            r.value ^= 1;
        else if (what == "vector")
            r.vector ^= 1;
        else if (what == "address")
            r.address += 64;
        else if (what == "status")
            r.status = record_status::ADDRESS_ERROR;
        else if (what != "drop")
            return 2;
        if (what != "drop")
            out.write(r);
    }
    if (!in.trailer() || altered == 0)
        return 1;
    out.finish(in.trailer()->time_ps);
    std::printf("%lu\n", altered);
    return 0;
}

}  // namespace

// The SystemC library wants one; there is no model here.
extern "C" int sc_main(int, char**) {
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 6)
        return 2;
    try {
        return alter(argv);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
