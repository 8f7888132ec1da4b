// SPDX-License-Identifier: Apache-2.0
// prawn-trace: one subcommand each in trace_NAME.cpp, listed in main.cpp.

#ifndef PRAWN_RECORD_TRACE_COMMAND_H
#define PRAWN_RECORD_TRACE_COMMAND_H

#include <memory>

#include <CLI/CLI.hpp>

namespace prawn {

// Exit statuses, as those of ./prawn.
constexpr int TRACE_OK = 0;
constexpr int TRACE_CHECK = 1;  // different, incomplete, damaged
constexpr int TRACE_USAGE = 2;  // options, or a file that is no recording

class trace_command
{
public:
    virtual ~trace_command() = default;
    // Declares its options and what --help says besides them.
    virtual void declare(CLI::App& app) = 0;
    // Returns an exit status. A recording_error and any other std::exception
    // is one line for the user and TRACE_USAGE.
    virtual int run() = 0;
};

std::unique_ptr<trace_command> make_trace_info();
std::unique_ptr<trace_command> make_trace_show();
std::unique_ptr<trace_command> make_trace_diff();
std::unique_ptr<trace_command> make_trace_export();
std::unique_ptr<trace_command> make_trace_replay();
std::unique_ptr<trace_command> make_trace_compile();
std::unique_ptr<trace_command> make_trace_generate();

}  // namespace prawn

#endif
