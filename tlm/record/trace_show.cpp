// SPDX-License-Identifier: Apache-2.0
// prawn-trace show
#include <cstdio>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "record/trace_command.h"
#include "record/trace_text.h"
#include "record/trace_views.h"

namespace prawn {

namespace {

class show_command final : public trace_command
{
public:
    void declare(CLI::App& app) override {
        app.add_option("FILE", m_file, "the recording")->required();
        app.add_option("--node", m_nodes, "of this node only (repeatable)")
            ->allow_extra_args(false);
        app.add_option("--kind", m_kinds,
                       "of this kind only, such as bar_write (repeatable)")
            ->allow_extra_args(false);
        app.add_option("--from", m_from,
                       "from this model time on: a number of picoseconds, or "
                       "with ns, us, ms or s");
        app.add_option("--to", m_to, "up to this model time");
        app.add_option("--limit", m_limit, "at most so many records");
        app.add_flag("--data", m_data, "all bytes of each, not the first 16");
        app.add_flag("--json", m_json, "one JSON object a line");
        app.add_option("--message", m_message,
                       "replay the run, and show every stage of this message "
                       "instead: NODE:CONTEXT:NUMBER of its sender");
        app.footer(
            "Columns: number of the record, model time, delta cycle at that "
            "time (+N, if not 0), node, kind, what it says. -> goes from host "
            "to card, <- from card to host.\n"
            "Exit status: 0 ok, 1 truncated or damaged (what can be read has "
            "been shown), 2 wrong use or no recording.");
    }

    int run() override {
        if (!m_message.empty())
            return show_message(m_file, message_of_text(m_message));
        prepare();
        recording_reader reader(m_file);
        record r;
        std::uint64_t shown = 0;
        while (shown < m_limit && reader.next(r)) {
            if (r.time_ps > m_last)
                return TRACE_OK;
            if (!wanted(r))
                continue;
            shown++;
            if (m_json)
                std::printf("%s\n",
                            record_json(reader.records(), r).dump().c_str());
            else
                print(reader.records(), r);
            if (std::ferror(stdout))
                return TRACE_CHECK;  // a closed pipe, a full disk
        }
        if (reader.trouble().empty())
            return TRACE_OK;
        std::fflush(stdout);
        std::fprintf(stderr, "prawn: %s\n", one_line(reader.trouble()).c_str());
        return TRACE_CHECK;
    }

private:
    void prepare() {
        for (const std::string& k : m_kinds) {
            const record_kind kind = record_kind_of(k);
            if (kind == record_kind::NONE)
                throw std::runtime_error("--kind " + k +
                                         ": no such kind: use one of " +
                                         all_kinds());
            m_wanted.insert(kind);
        }
        if (!m_from.empty())
            m_first = time_of_text(m_from);
        if (!m_to.empty())
            m_last = time_of_text(m_to);
        m_of.insert(m_nodes.begin(), m_nodes.end());
    }

    static std::string all_kinds() {
        std::string text;
        for (std::size_t k = 1; k < RECORD_KINDS; k++)
            text += (k > 1 ? ", " : "") +
                    std::string(name(static_cast<record_kind>(k)));
        return text;
    }

    bool wanted(const record& r) const {
        return r.time_ps >= m_first && (m_of.empty() || m_of.count(r.node)) &&
               (m_wanted.empty() || m_wanted.count(r.kind));
    }

    void print(std::uint64_t number, const record& r) const {
        const std::string delta = r.delta ? "+" + std::to_string(r.delta) : "";
        std::printf("%8llu %18s %-5s node %-2u %s %s\n",
                    static_cast<unsigned long long>(number),
                    time_text(r.time_ps).c_str(), delta.c_str(), r.node,
                    r.to_card()   ? "->"
                    : r.to_host() ? "<-"
                                  : "  ",
                    record_text(r).c_str());
        if (!m_data)
            return;
        constexpr std::size_t LINE = 32;
        for (std::size_t at = 0; at < r.data_size; at += LINE)
            std::printf("%14s%04zx  %s\n", "", at,
                        hex_text(r.data + at,
                                 std::min<std::size_t>(LINE, r.data_size - at))
                            .c_str());
    }

    std::string m_file;
    std::string m_message;
    std::vector<unsigned> m_nodes;
    std::vector<std::string> m_kinds;
    std::string m_from, m_to;
    std::uint64_t m_limit = ~std::uint64_t{0};
    bool m_data = false;
    bool m_json = false;

    std::set<unsigned> m_of;
    std::set<record_kind> m_wanted;
    std::uint64_t m_first = 0, m_last = ~std::uint64_t{0};
};

}  // namespace

std::unique_ptr<trace_command> make_trace_show() {
    return std::make_unique<show_command>();
}

}  // namespace prawn
