// SPDX-License-Identifier: Apache-2.0
// prawn-trace export
#include <cstdio>
#include <stdexcept>
#include <string>

#include "record/trace_command.h"
#include "record/trace_text.h"
#include "record/trace_views.h"
#include "trace/output_file.h"

namespace prawn {

namespace {

class export_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("FILE", m_file, "the recording")->required();
        app.add_option("--csv", m_csv,
                       "write its records to this file as comma-separated "
                       "values; /dev/stdout works too");
        app.add_option("--perfetto", m_views.perfetto,
                       "replay it, and write the stages of every block for "
                       "Perfetto");
        app.add_option("--pcapng", m_views.pcapng,
                       "replay it, and write all packets for Wireshark");
        app.add_option("--events", m_views.csv,
                       "replay it, and write every event as comma-separated "
                       "values");
        app.footer(
            "CSV: the first line is \"# prawn-recording FORMAT\", the second "
            "has the names of the columns; numbers are decimal, data is "
            "hexadecimal; what means nothing for a kind is empty.\n"
            "Exit status: 0 ok, 1 truncated or damaged (what can be read has "
            "been written) or the disk is full, 2 wrong use or no recording.");
    }

    int run() override {
        const bool views = !m_views.perfetto.empty() ||
                           !m_views.pcapng.empty() || !m_views.csv.empty();
        if (m_csv.empty() && !views)
            throw std::runtime_error(
                "export: nothing to write: name a file, such as --csv x.csv");
        if (m_csv.empty())
            return export_views(m_file, m_views);
        recording_reader reader(m_file);
        const bool written = csv(reader);
        if (!reader.trouble().empty())
            std::fprintf(stderr, "prawn: %s\n",
                         one_line(reader.trouble()).c_str());
        const int status = written && reader.trailer() ? TRACE_OK : TRACE_CHECK;
        const int replayed = views ? export_views(m_file, m_views) : TRACE_OK;
        return replayed == TRACE_OK ? status : replayed;
    }

private:
    bool csv(recording_reader& reader) const {
        output_file file(m_csv);
        std::string& out = file.buffer();
        out += "# prawn-recording " + std::to_string(RECORDING_FORMAT) + "\n";
        const char* comma = "";
        for (const char* column : COLUMNS) {
            out += comma;
            out += column;
            comma = ",";
        }
        out += '\n';
        record r;
        while (reader.next(r) && file.ok()) {
            const auto fields = record_json(reader.records(), r);
            comma = "";
            for (const char* column : COLUMNS) {
                out += comma;
                comma = ",";
                const auto found = fields.find(column);
                if (found == fields.end() || found->is_null())
                    continue;
                if (found->is_string())
                    out += found->get<std::string>();
                else if (found->is_boolean())
                    out += found->get<bool>() ? '1' : '0';
                else
                    out += found->dump();
            }
            out += '\n';
            file.end_record(r.time_ps);
        }
        file.flush();
        return file.ok();
    }

    static constexpr const char* COLUMNS[] = {
        "record",  "time_ps", "delta",  "node",  "kind",     "nested", "bar",
        "address", "length",  "order",  "value", "posted",   "on",     "vector",
        "channel", "context", "status", "late",  "began_ps", "data"};

    std::string m_file;
    std::string m_csv;
    trace_files m_views;
};

}  // namespace

std::unique_ptr<trace_command> make_trace_export() {
    return std::make_unique<export_command>();
}

}  // namespace prawn
