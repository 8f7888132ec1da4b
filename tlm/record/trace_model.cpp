// SPDX-License-Identifier: Apache-2.0
#include "record/trace_model.h"

#include <csignal>

#include <systemc>

#include "record/replay_monitor.h"

namespace prawn {

namespace {

void interrupted(int) {
    replay_monitor::interrupt() = 1;
}

}  // namespace

int run_with_model(const std::function<int()>& body) {
    struct sigaction action = {};
    action.sa_handler = interrupted;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // Standard output is ours: no word about the end of a simulation.
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
                                            sc_core::SC_DO_NOTHING);
    return body();
}

}  // namespace prawn
