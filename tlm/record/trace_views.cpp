// SPDX-License-Identifier: Apache-2.0
#include "record/trace_views.h"

#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "record/replay_run.h"
#include "record/trace_command.h"
#include "record/trace_model.h"
#include "record/trace_text.h"

namespace prawn {

namespace {

// Events of one message, as they come.
class message_printer final : public event_sink
{
public:
    explicit message_printer(const message_id& message) : m_message(message) {}

    void on_event(const event& e) override {
        if (!(e.message == m_message))
            return;
        const event_kind_info& kind = info(e.kind);
        if (m_count++ == 0) {
            m_first = m_last = e.time_ps;
            if (kind.phase == event_phase::SINCE)
                m_first = m_last = e.b;
            std::printf("%16s %14s %14s  %-6s %-14s %s\n", "time",
                        "since start", "since last", "node", "block", "stage");
        }
        std::printf("%16s %14s %14s  %-6u %-14s %s%s", text(e.time_ps).c_str(),
                    text(e.time_ps - m_first).c_str(),
                    text(e.time_ps - m_last).c_str(), unsigned{e.node},
                    name(e.block), kind.name, phase(kind.phase));
        value(kind.a, e.a);
        value(kind.b, e.b);
        std::printf("\n");
        m_last = e.time_ps;
    }
    std::uint64_t count() const { return m_count; }

private:
    static std::string text(std::uint64_t ps) { return time_text(ps); }
    static const char* phase(event_phase p) {
        switch (p) {
            case event_phase::BEGIN:
                return " begins";
            case event_phase::END:
                return " ends";
            default:
                return "";
        }
    }
    // Two values may share one: "bytes|channel", the latter in bits 47:32.
    static void value(const std::string& what, std::uint64_t v) {
        if (what.empty())
            return;
        const std::size_t bar = what.find('|');
        if (bar == std::string::npos) {
            std::printf(", %s %" PRIu64, what.c_str(), v);
            return;
        }
        std::printf(", %s %" PRIu64 ", %s %" PRIu64,
                    what.substr(0, bar).c_str(), v & 0xffffffff,
                    what.substr(bar + 1).c_str(), v >> 32 & 0xffff);
    }

    const message_id m_message;
    std::uint64_t m_first = 0, m_last = 0;
    std::uint64_t m_count = 0;
};

int finish(const replay_result& r) {
    if (!r.trouble.empty())
        std::fprintf(stderr, "prawn: %s\n", one_line(r.trouble).c_str());
    if (r.interrupted)
        std::fprintf(stderr, "prawn: interrupted\n");
    else if (!r.error.empty())
        std::fprintf(stderr, "prawn: error: %s\n", one_line(r.error).c_str());
    else if (r.differences)
        std::fprintf(stderr,
                     "prawn: error: what is seen here is not what was "
                     "recorded: it does not replay from record %" PRIu64
                     " on: %s\n",
                     r.first.record, one_line(r.first.text).c_str());
    return r.status();
}

}  // namespace

message_id message_of_text(const std::string& text) {
    std::istringstream in(text);
    unsigned long node = 0, context = 0, message = 0;
    char a = 0, b = 0;
    if (!(in >> node >> a >> context >> b >> message) || a != ':' || b != ':' ||
        !in.eof() || node >= RECORD_MAX_NODES ||
        context >= message_id::NO_CONTEXT || message >= message_id::NO_MESSAGE)
        throw std::runtime_error("--message " + text +
                                 ": use NODE:CONTEXT:NUMBER, such as 0:3:17");
    return {static_cast<std::uint16_t>(node),
            static_cast<std::uint16_t>(context),
            static_cast<std::uint32_t>(message)};
}

int export_views(const std::string& file, const trace_files& views) {
    return run_with_model([&] {
        replay_request request;
        request.file = file;
        request.views = views;
        return finish(run_replay(request));
    });
}

int show_message(const std::string& file, const message_id& message) {
    return run_with_model([&] {
        message_printer printer(message);
        replay_request request;
        request.file = file;
        request.sink = &printer;
        const int status = finish(run_replay(request));
        if (status == TRACE_OK && printer.count() == 0)
            throw std::runtime_error(
                file +
                ": there is no such message; completions and "
                "notifications name those that there are");
        return status;
    });
}

}  // namespace prawn
