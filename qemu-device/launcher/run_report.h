// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_RUN_REPORT_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_RUN_REPORT_H

#include <functional>

#include "report.h"
#include "session.h"

namespace prawn::launch {

// What --json says of any run with guests, before it begins.
json run_facts(const session& run);

// After stop(): adds the model's counters, if it has written them.
void add_counters(const session& run, json& report);

// Runs "body", then writes the report that it fills to --json, if given. When
// the body fails the report is written all the same, with "error".
int reported(const session& run, json& report,
             const std::function<int()>& body);

// Empties the file of --json: whatever ends this run, what an earlier one
// said must not be taken for its result.
void forget_last_report(const options& opts);

}  // namespace prawn::launch

#endif
