// SPDX-License-Identifier: Apache-2.0
// prawn-trace replay
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "record/replay_run.h"
#include "record/trace_command.h"
#include "record/trace_model.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

class replay_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("FILE", m_request.file, "the recording")->required();
        app.add_option("--profile", m_request.profile,
                       "another timing profile: a name or a file");
        app.add_option("--set", m_request.changes,
                       "KEY=VALUE of the configuration; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--mode", m_mode,
                       "when hosts do what they did, if something is changed: "
                       "open-loop: at the recorded times; dependency: as long "
                       "after what they followed as they did")
            ->check(CLI::IsMember({"open-loop", "dependency"}))
            ->capture_default_str();
        app.add_flag("--no-baseline{false}", m_request.baseline,
                     "do not run the unchanged recording too, for its "
                     "counters");
        app.add_flag("--json", m_json, "the results as JSON");
        app.footer(
            "Unchanged, every record is compared as it comes, times included. "
            "Changed, the outcome is compared: what the guests got to see. "
            "docs/replay.md says how.\n"
            "Exit status: 0 as recorded (changed: the same outcome), 1 "
            "different or damaged, 2 wrong use or no recording, 130 "
            "interrupted.");
    }

    int run() override {
        return run_with_model([this] {
            m_request.dependencies = m_mode == "dependency";
            const replay_result result = run_replay(m_request);
            if (m_json)
                std::printf("%s\n",
                            to_json(result)
                                .dump(1, ' ', false,
                                      nlohmann::json::error_handler_t::replace)
                                .c_str());
            else
                write_text(m_request, result);
            return result.status();
        });
    }

private:
    replay_request m_request;
    std::string m_mode = "open-loop";
    bool m_json = false;
};

}  // namespace

std::unique_ptr<trace_command> make_trace_replay() {
    return std::make_unique<replay_command>();
}

}  // namespace prawn
