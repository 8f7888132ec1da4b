// SPDX-License-Identifier: Apache-2.0
// prawn-trace generate
#include <string>
#include <vector>

#include "record/trace_command.h"
#include "record/trace_model.h"
#include "record/workload.h"
#include "trace/output_file.h"

namespace prawn {

namespace {

class generate_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("PATTERN", m_o.pattern,
                       "uniform: to random nodes; bursts: the same with "
                       "pauses; permutation: each to one other; all-to-all: "
                       "to all in turn; pages: node 0 to 1, from and to pages "
                       "of a working set")
            ->required()
            ->check(CLI::IsMember(PATTERNS));
        app.add_option("OUT", m_out, "the recording to write")->required();
        const auto number = [&](const char* name, auto& to, const char* what) {
            app.add_option(name, to, what)->capture_default_str();
        };
        number("--nodes", m_o.nodes, "cards");
        number("--messages", m_o.messages, "messages of each sending node");
        number("--bytes", m_o.bytes, "bytes of a message");
        number("--window", m_o.window, "commands of a process under way");
        number("--seed", m_o.seed, "equal seeds make equal recordings");
        number("--burst", m_o.burst, "bursts: messages of one");
        number("--gap", m_o.gap, "bursts: time between two");
        number("--pages", m_o.pages, "pages: size of the working set");
        app.add_option("--order", m_o.order, "pages: order of references")
            ->check(CLI::IsMember({"sequential", "strided", "zipf"}))
            ->capture_default_str();
        number("--stride", m_o.stride, "pages, strided: pages between two");
        number("--skew", m_o.skew, "pages, zipf: exponent");
        app.add_option("--set", m_changes,
                       "KEY=VALUE of the configuration; may be repeated")
            ->allow_extra_args(false);
        app.add_flag("--text", m_text,
                     "write the text form instead, for compile");
        app.footer(
            "The pattern is run on the model, by drivers without guests, and "
            "recorded.\n"
            "Exit status: 0 ok, 1 the disk is full, 2 wrong use, 130 "
            "interrupted.");
    }

    int run() override {
        const workload w = generate_workload(m_o);
        if (m_text) {
            output_file file(m_out);
            file.buffer() = workload_text(w);
            file.flush();
            return file.ok() ? TRACE_OK : TRACE_CHECK;
        }
        return run_with_model(
            [&] { return run_workload(w, m_changes, m_out); });
    }

private:
    pattern_options m_o;
    std::string m_out;
    std::vector<std::string> m_changes;
    bool m_text = false;
};

}  // namespace

std::unique_ptr<trace_command> make_trace_generate() {
    return std::make_unique<generate_command>();
}

}  // namespace prawn
