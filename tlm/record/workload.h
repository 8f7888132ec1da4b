// SPDX-License-Identifier: Apache-2.0
// What processes on some nodes do, without guests: made out of a text that a
// person writes, or by a generator. Run on the model, with a recorder between
// hosts and cards, it becomes a recording like any other.

#ifndef PRAWN_RECORD_WORKLOAD_H
#define PRAWN_RECORD_WORKLOAD_H

#include <cstdint>
#include <string>
#include <vector>

namespace prawn {

struct workload {
    static constexpr unsigned VERSION = 1;
    static constexpr std::uint64_t MAX_PAGES = 65536;  // of a buffer
    static constexpr std::size_t MAX_STATEMENTS = 4000000;

    struct buffer {
        std::string name;
        unsigned process = 0;
        std::uint64_t pages = 0;
    };
    struct exported {
        std::string name;
        unsigned buffer = 0;
        bool notify = false;
    };
    struct imported {
        std::string name;
        unsigned process = 0;
        unsigned of = 0;  // index of the export
    };
    struct statement {
        enum op_t : std::uint8_t {
            SEND,      // import a, b bytes from buffer c + d to byte e; notify
            FILL,      // buffer a from a generator with seed b
            WAIT,      // a picoseconds
            AT,        // not before a picoseconds after the start
            COMPLETE,  // until at most a commands have not completed
            NOTIFIED,  // until a more notifications have come
            REPEAT,    // a times what follows
            END,
            READ,   // a: bar, b: offset, c: bytes
            WRITE,  // and d: value
        } op = WAIT;
        bool notify = false;
        std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0;
    };
    // A context of a node, or a node's kernel (context KERNEL).
    struct process {
        static constexpr unsigned KERNEL = 0xffff;
        unsigned node = 0;
        unsigned context = KERNEL;
        unsigned ring_log2 = 6, notify_log2 = 6;
        std::vector<statement> body;
    };

    std::vector<std::string> config;  // KEY=VALUE
    std::vector<process> processes;
    std::vector<buffer> buffers;
    std::vector<exported> exports;
    std::vector<imported> imports;
};

// Throws std::runtime_error, one line with file, line and mend.
workload parse_workload(const std::string& path);

std::string workload_text(const workload& w);

// Runs it and writes the recording. Where SystemC may be elaborated, once in a
// process. Later changes win. Throws config_error or std::runtime_error.
// Returns 0, or 130 if it was interrupted: then the recording ends there.
int run_workload(const workload& w, const std::vector<std::string>& changes,
                 const std::string& recording);

// What a generator makes.
struct pattern_options {
    std::string pattern;
    unsigned nodes = 2;
    std::uint64_t messages = 1000;  // of each sending node
    std::uint64_t bytes = 64;
    unsigned window = 16;  // commands of a process under way
    std::uint64_t seed = 1;
    std::uint64_t burst = 32;    // bursts: messages of one
    std::string gap = "20us";    // and the time between two
    std::string order = "zipf";  // pages: sequential, strided, zipf
    std::uint64_t pages = 512;   // working set
    std::uint64_t stride = 8;    // pages
    double skew = 1.0;           // zipf
};
extern const std::vector<std::string> PATTERNS;
workload generate_workload(const pattern_options& o);

}  // namespace prawn

#endif
