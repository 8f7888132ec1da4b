// SPDX-License-Identifier: Apache-2.0
// What happened inside the cards of a recorded run: the replay does it again,
// and its event stream is looked at.

#ifndef PRAWN_RECORD_TRACE_VIEWS_H
#define PRAWN_RECORD_TRACE_VIEWS_H

#include <string>

#include "support/events.h"
#include "trace/observation.h"

namespace prawn {

// "0:3:17": source node, context, message. Throws std::runtime_error.
message_id message_of_text(const std::string& text);

// Both return an exit status; what is wrong with the recording, or that it does
// not replay, is said in one line on standard error.
int export_views(const std::string& file, const trace_files& views);
// Every stage of one message, one a line.
int show_message(const std::string& file, const message_id& message);

}  // namespace prawn

#endif
