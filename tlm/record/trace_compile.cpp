// SPDX-License-Identifier: Apache-2.0
// prawn-trace compile
#include <string>
#include <vector>

#include "record/trace_command.h"
#include "record/trace_model.h"
#include "record/workload.h"

namespace prawn {

namespace {

class compile_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("TEXT", m_text, "what the processes do")->required();
        app.add_option("OUT", m_out, "the recording to write")->required();
        app.add_option("--set", m_changes,
                       "KEY=VALUE of the configuration, after those of the "
                       "text; may be repeated")
            ->allow_extra_args(false);
        app.footer(
            "The text is run on the model, by drivers without guests, and "
            "recorded. docs/replay.md describes it, with an example.\n"
            "Exit status: 0 ok, 2 wrong use or text, 130 interrupted.");
    }

    int run() override {
        const workload w = parse_workload(m_text);
        return run_with_model(
            [&] { return run_workload(w, m_changes, m_out); });
    }

private:
    std::string m_text, m_out;
    std::vector<std::string> m_changes;
};

}  // namespace

std::unique_ptr<trace_command> make_trace_compile() {
    return std::make_unique<compile_command>();
}

}  // namespace prawn
