// SPDX-License-Identifier: Apache-2.0
// The event stream as comma-separated values, one event a line. The first line
// is "# prawn-events VERSION", the second has the names of the columns.

#ifndef PRAWN_TRACE_CSV_WRITER_H
#define PRAWN_TRACE_CSV_WRITER_H

#include <string>

#include "support/events.h"
#include "trace/output_file.h"

namespace prawn {

class csv_writer : public event_sink
{
public:
    explicit csv_writer(const std::string& path);

    void on_event(const event& e) override;
    void flush() override { m_file.flush(); }
    bool ok() const { return m_file.ok(); }

private:
    output_file m_file;
};

}  // namespace prawn

#endif
