// SPDX-License-Identifier: Apache-2.0
// The text form of a workload: one statement a line. docs/replay.md describes
// it.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "prawn_hw.h"
#include "record/trace_text.h"
#include "record/workload.h"

namespace prawn {

namespace {

using statement = workload::statement;

class parser
{
public:
    explicit parser(const std::string& path) : m_path(path) {}

    workload run() {
        std::ifstream file(m_path);
        if (!file)
            throw std::runtime_error(
                m_path + ": cannot be read; name a text form of a trace");
        for (std::string line; std::getline(file, line);) {
            m_line++;
            split(line);
            if (m_words.empty())
                continue;
            if (!m_begun)
                first_line();
            else
                one();
        }
        m_line = 0;
        if (!m_begun)
            fail("is empty", "begin it with: trace 1");
        for (std::size_t p = 0; p < m_loops.size(); p++)
            if (!m_loops[p].empty()) {
                m_line = m_loops[p].back();
                fail("repeat has no end", "add \"" + title(p) + " end\"");
            }
        return std::move(m_out);
    }

private:
    [[noreturn]] void fail(const std::string& what,
                           const std::string& mend) const {
        throw std::runtime_error(
            m_path + (m_line ? ":" + std::to_string(m_line) : std::string()) +
            ": " + one_line(what) + "; " + one_line(mend));
    }

    void split(const std::string& line) {
        m_words.clear();
        m_at = 0;
        std::istringstream in(line.substr(0, line.find('#')));
        for (std::string w; in >> w;)
            m_words.push_back(w);
    }
    bool more() const { return m_at < m_words.size(); }
    const std::string& word(const char* what) {
        if (!more())
            fail("the line ends where " + std::string(what) + " is missing",
                 "see the example in docs/replay.md");
        return m_words[m_at++];
    }
    bool next_is(const char* w) {
        if (!more() || m_words[m_at] != w)
            return false;
        m_at++;
        return true;
    }
    void expect(const char* w) {
        const std::string& got = word(w);
        if (got != w)
            fail("\"" + got + "\" where \"" + w + "\" belongs",
                 "see the example in docs/replay.md");
    }
    void line_ends() {
        if (more())
            fail("\"" + m_words[m_at] + "\" is too much",
                 "one statement a line, a comment begins with #");
    }
    std::uint64_t number_of(const std::string& text, const char* what,
                            std::uint64_t low, std::uint64_t high) {
        std::string digits = text;
        std::uint64_t unit = 1;
        if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M')) {
            unit = digits.back() == 'K' ? 1024 : 1024 * 1024;
            digits.pop_back();
        }
        std::size_t used = 0;
        std::uint64_t value = 0;
        try {
            if (digits.empty() || digits[0] == '-')
                throw std::invalid_argument("");
            value = std::stoull(digits, &used, 0);
        } catch (const std::exception&) {
            used = ~std::size_t{0};
        }
        if (used != digits.size() || value > ~std::uint64_t{0} / unit ||
            value * unit < low || value * unit > high)
            fail(std::string(what) + " is \"" + text + "\"",
                 "use a whole number from " + std::to_string(low) + " to " +
                     std::to_string(high));
        return value * unit;
    }
    std::uint64_t number(const char* what, std::uint64_t low,
                         std::uint64_t high) {
        return number_of(word(what), what, low, high);
    }
    std::uint64_t time(const char* what) {
        const std::string& text = word(what);
        try {
            return time_of_text(text);
        } catch (const std::exception& e) {
            fail(e.what(), "write for example 1.5us");
        }
    }
    // An unknown or a taken name.
    template <typename LIST>
    unsigned find(const LIST& list, const std::string& name, const char* what) {
        for (std::size_t i = 0; i < list.size(); i++)
            if (list[i].name == name)
                return static_cast<unsigned>(i);
        fail("there is no " + std::string(what) + " \"" + name + "\"",
             "name one that stands further up");
    }
    template <typename LIST>
    std::string new_name(const LIST& list, const char* what) {
        const std::string name = word(what);
        if (!std::isalpha(static_cast<unsigned char>(name[0])) ||
            name.find('+') != std::string::npos)
            fail(std::string(what) + " is called \"" + name + "\"",
                 "begin with a letter, and use no +");
        for (const auto& one : list)
            if (one.name == name)
                fail("there is a " + std::string(what) + " \"" + name +
                         "\" already",
                     "choose another name");
        return name;
    }

    void first_line() {
        if (m_words.size() != 2 || m_words[0] != "trace")
            fail("this is no text form of a trace", "begin it with: trace 1");
        m_at = 1;
        const std::string& version = word("version");
        if (version != std::to_string(workload::VERSION))
            fail("version \"" + version + "\" is not known to this program",
                 "use version " + std::to_string(workload::VERSION));
        m_begun = true;
    }

    void one() {
        const std::string& first = word("statement");
        if (first == "set") {
            const std::string& item = word("KEY=VALUE");
            if (item.find('=') == std::string::npos)
                fail("set \"" + item + "\"", "write set KEY=VALUE");
            m_out.config.push_back(item);
        } else if (first == "context") {
            context();
        } else if (first == "buffer") {
            workload::buffer b;
            b.name = new_name(m_out.buffers, "buffer");
            b.process = process(false);
            b.pages = number("pages", 1, workload::MAX_PAGES);
            expect("pages");
            m_out.buffers.push_back(b);
        } else if (first == "export") {
            workload::exported e;
            e.name = new_name(m_out.exports, "export");
            e.buffer = find(m_out.buffers, word("buffer"), "buffer");
            e.notify = next_is("notify");
            m_out.exports.push_back(e);
        } else if (first == "import") {
            workload::imported i;
            i.name = new_name(m_out.imports, "import");
            i.process = process(false);
            i.of = find(m_out.exports, word("export"), "export");
            m_out.imports.push_back(i);
        } else {
            m_at--;
            step(process(true));
        }
        line_ends();
    }

    std::string title(std::size_t p) const {
        const workload::process& one = m_out.processes[p];
        return std::to_string(one.node) +
               (one.context == workload::process::KERNEL
                    ? std::string()
                    : ":" + std::to_string(one.context));
    }

    void node_and_context(unsigned& node, unsigned& context) {
        const std::string text = word("NODE:CONTEXT");
        const std::size_t colon = text.find(':');
        if (!std::isdigit(static_cast<unsigned char>(text[0])))
            fail("\"" + text + "\" is no statement",
                 "use set, context, buffer, export, import, or begin with "
                 "NODE:CONTEXT");
        node = static_cast<unsigned>(
            number_of(text.substr(0, colon), "node", 0, PRAWN_MAX_NODES - 1));
        context = colon == std::string::npos
                      ? workload::process::KERNEL
                      : static_cast<unsigned>(number_of(text.substr(colon + 1),
                                                        "context", 0,
                                                        PRAWN_CONTEXTS - 1));
    }

    // Of NODE:CONTEXT, or of a node alone: its kernel.
    unsigned process(bool kernel_too) {
        unsigned node = 0, context = 0;
        node_and_context(node, context);
        for (std::size_t p = 0; p < m_out.processes.size(); p++)
            if (m_out.processes[p].node == node &&
                m_out.processes[p].context == context &&
                (kernel_too || context != workload::process::KERNEL))
                return static_cast<unsigned>(p);
        if (context != workload::process::KERNEL || !kernel_too)
            fail("there is no context " + m_words[m_at - 1],
                 "declare it first: context " + m_words[m_at - 1]);
        return add(node, context);
    }
    unsigned add(unsigned node, unsigned context) {
        workload::process p;
        p.node = node;
        p.context = context;
        m_out.processes.push_back(p);
        m_loops.emplace_back();
        return static_cast<unsigned>(m_out.processes.size() - 1);
    }

    void context() {
        unsigned node = 0, context = 0;
        node_and_context(node, context);
        if (context == workload::process::KERNEL)
            fail("a context has a number", "write context NODE:CONTEXT");
        for (const workload::process& p : m_out.processes)
            if (p.node == node && p.context == context)
                fail("there is a context " + m_words[1] + " already",
                     "choose another number");
        workload::process& p = m_out.processes[add(node, context)];
        if (next_is("ring"))
            p.ring_log2 = ring();
        if (next_is("notifications"))
            p.notify_log2 = ring();
    }
    unsigned ring() {
        const std::uint64_t n = number("entries", 1u << PRAWN_RING_LOG2_MIN,
                                       1u << PRAWN_RING_LOG2_MAX);
        if (n & (n - 1))
            fail("a ring of " + std::to_string(n) + " entries",
                 "use a power of two");
        return static_cast<unsigned>(__builtin_ctzll(n));
    }

    void step(unsigned p) {
        statement s;
        const std::string& op = word("statement");
        if (++m_statements > workload::MAX_STATEMENTS)
            fail("more than " + std::to_string(workload::MAX_STATEMENTS) +
                     " statements",
                 "use repeat");
        const bool kernel =
            m_out.processes[p].context == workload::process::KERNEL;
        if (op == "wait") {
            s.op = statement::WAIT;
            s.a = time("time");
        } else if (op == "at") {
            s.op = statement::AT;
            s.a = time("time");
        } else if (op == "repeat") {
            s.op = statement::REPEAT;
            s.a = number("count", 1, 1000000000);
            m_loops[p].push_back(m_line);
        } else if (op == "end") {
            if (m_loops[p].empty())
                fail("end without repeat", "remove it");
            m_loops[p].pop_back();
            s.op = statement::END;
        } else if (op == "read" || op == "write") {
            access(s, op == "write");
        } else if (kernel) {
            fail("a kernel does not " + op,
                 "use wait, at, read, write, repeat, end, or name a context");
        } else if (op == "send") {
            send(s, p);
        } else if (op == "fill") {
            s.op = statement::FILL;
            s.a = own_buffer(word("buffer"), p);
            s.b = number("seed", 0, 0xffffffff);
        } else if (op == "complete") {
            s.op = statement::COMPLETE;
            s.a = more() ? number("count", 0, 1u << PRAWN_RING_LOG2_MAX) : 0;
        } else if (op == "notified") {
            s.op = statement::NOTIFIED;
            s.a = more() ? number("count", 1, 1000000000) : 1;
        } else {
            fail("\"" + op + "\" is nothing that a process does",
                 "use send, fill, complete, notified, wait, at, repeat, end, "
                 "read, write");
        }
        m_out.processes[p].body.push_back(s);
    }

    unsigned own_buffer(const std::string& name, unsigned p) {
        const unsigned b = find(m_out.buffers, name, "buffer");
        if (m_out.buffers[b].process != p)
            fail("buffer \"" + name + "\" belongs to " +
                     title(m_out.buffers[b].process),
                 "name one of " + title(p));
        return b;
    }

    void access(statement& s, bool write) {
        s.op = write ? statement::WRITE : statement::READ;
        s.a = number("bar", 0, 4);
        s.b = number("offset", 0, PRAWN_BAR4_SIZE - 1);
        s.c = number("bytes", 1, 8);
        if (s.c & (s.c - 1))
            fail("an access of " + std::to_string(s.c) + " bytes",
                 "use 1, 2, 4 or 8");
        if (write)
            s.d = number("value", 0, ~std::uint64_t{0});
    }

    // send IMPORT BYTES from BUFFER[+OFFSET] [to OFFSET] [notify]
    void send(statement& s, unsigned p) {
        const std::string& name = word("import");
        s.op = statement::SEND;
        s.a = find(m_out.imports, name, "import");
        if (m_out.imports[s.a].process != p)
            fail("import \"" + name + "\" belongs to " +
                     title(m_out.imports[s.a].process),
                 "name one of " + title(p));
        s.b = number("bytes", 0, PRAWN_MAX_MESSAGE);
        expect("from");
        const std::string& place = word("buffer");
        const std::size_t plus = place.find('+');
        s.c = own_buffer(place.substr(0, plus), p);
        const std::uint64_t size = m_out.buffers[s.c].pages * PRAWN_PAGE_SIZE;
        if (plus != std::string::npos)
            s.d = number_of(place.substr(plus + 1), "offset", 0, size);
        if (s.d + s.b > size)
            fail("the message ends behind its buffer of " +
                     std::to_string(size) + " bytes",
                 "send less, or give the buffer more pages");
        if (next_is("to"))
            s.e = number("offset", 0, ~std::uint64_t{0} >> 1);
        s.notify = next_is("notify");
    }

    const std::string m_path;
    workload m_out;
    unsigned m_line = 0;
    bool m_begun = false;
    std::size_t m_statements = 0;
    std::vector<std::string> m_words;
    std::size_t m_at = 0;
    std::vector<std::vector<unsigned>> m_loops;  // lines, by process
};

std::string time_word(std::uint64_t ps) {
    return std::to_string(ps) + "ps";
}

void write_step(std::ostream& out, const workload& w, const statement& s) {
    switch (s.op) {
        case statement::SEND:
            out << "send " << w.imports[s.a].name << " " << s.b << " from "
                << w.buffers[s.c].name;
            if (s.d)
                out << "+" << s.d;
            if (s.e)
                out << " to " << s.e;
            if (s.notify)
                out << " notify";
            break;
        case statement::FILL:
            out << "fill " << w.buffers[s.a].name << " " << s.b;
            break;
        case statement::WAIT:
            out << "wait " << time_word(s.a);
            break;
        case statement::AT:
            out << "at " << time_word(s.a);
            break;
        case statement::COMPLETE:
            out << "complete " << s.a;
            break;
        case statement::NOTIFIED:
            out << "notified " << s.a;
            break;
        case statement::REPEAT:
            out << "repeat " << s.a;
            break;
        case statement::END:
            out << "end";
            break;
        case statement::READ:
            out << "read " << s.a << " " << s.b << " " << s.c;
            break;
        case statement::WRITE:
            out << "write " << s.a << " " << s.b << " " << s.c << " " << s.d;
            break;
    }
    out << "\n";
}

}  // namespace

workload parse_workload(const std::string& path) {
    return parser(path).run();
}

std::string workload_text(const workload& w) {
    const auto title = [&](unsigned p) {
        const workload::process& one = w.processes[p];
        std::string text = std::to_string(one.node);
        if (one.context != workload::process::KERNEL)
            text += ":" + std::to_string(one.context);
        return text;
    };
    std::ostringstream out;
    out << "trace " << workload::VERSION << "\n";
    for (const std::string& item : w.config)
        out << "set " << item << "\n";
    for (std::size_t p = 0; p < w.processes.size(); p++) {
        const workload::process& one = w.processes[p];
        if (one.context != workload::process::KERNEL)
            out << "context " << title(static_cast<unsigned>(p)) << " ring "
                << (1u << one.ring_log2) << " notifications "
                << (1u << one.notify_log2) << "\n";
    }
    for (const workload::buffer& b : w.buffers)
        out << "buffer " << b.name << " " << title(b.process) << " " << b.pages
            << " pages\n";
    for (const workload::exported& e : w.exports)
        out << "export " << e.name << " " << w.buffers[e.buffer].name
            << (e.notify ? " notify" : "") << "\n";
    for (const workload::imported& i : w.imports)
        out << "import " << i.name << " " << title(i.process) << " "
            << w.exports[i.of].name << "\n";
    for (std::size_t p = 0; p < w.processes.size(); p++)
        for (const statement& s : w.processes[p].body) {
            out << title(static_cast<unsigned>(p)) << " ";
            write_step(out, w, s);
        }
    return out.str();
}

}  // namespace prawn
