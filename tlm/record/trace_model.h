// SPDX-License-Identifier: Apache-2.0
// For subcommands of prawn-trace that run the model.

#ifndef PRAWN_RECORD_TRACE_MODEL_H
#define PRAWN_RECORD_TRACE_MODEL_H

#include <functional>

namespace prawn {

// Runs body, which may elaborate a model (once in a process, within sc_main).
// From now on Ctrl-C and SIGTERM set replay_monitor::interrupt().
int run_with_model(const std::function<int()>& body);

}  // namespace prawn

#endif
