// SPDX-License-Identifier: Apache-2.0
// Traffic that is made by rule. Equal options make equal workloads everywhere:
// only the engine's raw numbers are used.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>

#include "prawn_hw.h"
#include "record/trace_text.h"
#include "record/workload.h"

namespace prawn {

const std::vector<std::string> PATTERNS = {"uniform", "bursts", "permutation",
                                           "all-to-all", "pages"};

namespace {

using statement = workload::statement;

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

class generator
{
public:
    explicit generator(const pattern_options& o) : m_o(o), m_random(o.seed) {}

    workload run() {
        check();
        m_out.config.push_back("nodes=" + std::to_string(m_o.nodes));
        lay_out();
        if (m_o.pattern == "pages")
            pages();
        else
            for (unsigned k = 0; k < m_o.nodes; k++)
                traffic(k);
        return std::move(m_out);
    }

private:
    void check() const {
        const auto refuse = [](const std::string& what,
                               const std::string& mend) {
            throw std::runtime_error("generate: " + what + "; " + mend);
        };
        if (m_o.nodes < 2 || m_o.nodes > PRAWN_MAX_NODES)
            refuse("--nodes " + std::to_string(m_o.nodes),
                   "use 2 to " + std::to_string(PRAWN_MAX_NODES));
        if (m_o.window < 1 || m_o.window > 64)
            refuse("--window " + std::to_string(m_o.window), "use 1 to 64");
        if (m_o.bytes > PAGE * workload::MAX_PAGES / 16)
            refuse("--bytes " + std::to_string(m_o.bytes),
                   "use at most " +
                       std::to_string(PAGE * workload::MAX_PAGES / 16));
        if (m_o.pattern == "pages" && m_o.bytes > PAGE)
            refuse("--bytes " + std::to_string(m_o.bytes) + " of one page",
                   "use at most " + std::to_string(PAGE));
        if (m_o.pages < 1 || m_o.pages > workload::MAX_PAGES)
            refuse("--pages " + std::to_string(m_o.pages),
                   "use 1 to " + std::to_string(workload::MAX_PAGES));
        if (m_o.stride < 1 || m_o.burst < 1)
            refuse("--stride or --burst of 0", "use at least 1");
        if (!(m_o.skew >= 0.0 && m_o.skew <= 10.0))
            refuse("--skew", "use 0 to 10");
        const std::uint64_t senders =
            m_o.pattern == "pages" ? 1 : std::uint64_t{m_o.nodes};
        if (m_o.messages < 1 ||
            m_o.messages > workload::MAX_STATEMENTS / 2 / senders)
            refuse("--messages " + std::to_string(m_o.messages),
                   "use 1 to " +
                       std::to_string(workload::MAX_STATEMENTS / 2 / senders));
    }

    // Evenly, whatever the library's distributions do.
    std::uint64_t below(std::uint64_t n) { return m_random() % n; }

    // At each node a process that sends and one that receives.
    static constexpr unsigned SENDER = 1, RECEIVER = 2;
    unsigned sender(unsigned node) const { return 2 * node; }
    unsigned receiver(unsigned node) const { return 2 * node + 1; }

    void lay_out() {
        const std::uint64_t pages =
            m_o.pattern == "pages"
                ? m_o.pages
                : std::max<std::uint64_t>((m_o.bytes + PAGE - 1) / PAGE, 1);
        for (unsigned k = 0; k < m_o.nodes; k++)
            for (const unsigned context : {SENDER, RECEIVER}) {
                workload::process p;
                p.node = k;
                p.context = context;
                m_out.processes.push_back(p);
            }
        for (unsigned k = 0; k < m_o.nodes; k++) {
            const std::string node = std::to_string(k);
            m_out.buffers.push_back({"out" + node, sender(k), pages});
            m_out.buffers.push_back({"in" + node, receiver(k), pages});
            m_out.exports.push_back({"inbox" + node, 2 * k + 1, false});
        }
        m_to.assign(m_o.nodes, std::vector<unsigned>(m_o.nodes, 0));
        for (unsigned k = 0; k < m_o.nodes; k++)
            for (unsigned to = 0; to < m_o.nodes; to++) {
                if (to == k)
                    continue;
                m_to[k][to] = static_cast<unsigned>(m_out.imports.size());
                m_out.imports.push_back(
                    {"to" + std::to_string(to) + "_from" + std::to_string(k),
                     sender(k), to});
            }
        for (unsigned k = 0; k < m_o.nodes; k++) {
            statement fill;
            fill.op = statement::FILL;
            fill.a = 2 * k;
            fill.b = below(1u << 31);
            body(k).push_back(fill);
        }
    }

    std::vector<statement>& body(unsigned node) {
        return m_out.processes[sender(node)].body;
    }

    void send(unsigned from, unsigned to, std::uint64_t source_page,
              std::uint64_t target_page) {
        statement wait;
        wait.op = statement::COMPLETE;
        wait.a = m_o.window - 1;
        statement s;
        s.op = statement::SEND;
        s.a = m_to[from][to];
        s.b = m_o.bytes;
        s.c = 2 * from;
        s.d = source_page * PAGE;
        s.e = target_page * PAGE;
        body(from).push_back(wait);
        body(from).push_back(s);
    }

    void traffic(unsigned k) {
        // Another node, the same for all: a permutation without fixed points.
        const auto shift =
            static_cast<unsigned>(1 + m_o.seed % (m_o.nodes - 1));
        statement gap;
        gap.op = statement::WAIT;
        gap.a = time_of_text(m_o.gap);
        statement idle;
        idle.op = statement::COMPLETE;
        for (std::uint64_t i = 0; i < m_o.messages; i++) {
            unsigned to = 0;
            if (m_o.pattern == "permutation")
                to = (k + shift) % m_o.nodes;
            else if (m_o.pattern == "all-to-all")
                to = static_cast<unsigned>((k + 1 + i % (m_o.nodes - 1)) %
                                           m_o.nodes);
            else
                to = static_cast<unsigned>((k + 1 + below(m_o.nodes - 1)) %
                                           m_o.nodes);
            if (m_o.pattern == "bursts" && i > 0 && i % m_o.burst == 0) {
                body(k).push_back(idle);
                body(k).push_back(gap);
            }
            send(k, to, 0, 0);
        }
    }

    // Node 0 sends from, and to, pages in an order of references.
    void pages() {
        std::vector<double> upto;  // zipf: probabilities, summed up
        std::vector<std::uint64_t> page_of;
        double sum = 0.0;
        for (std::uint64_t rank = 1; rank <= m_o.pages; rank++) {
            sum += 1.0 / std::pow(static_cast<double>(rank), m_o.skew);
            upto.push_back(sum);
            page_of.push_back(rank - 1);
        }
        // Which page is how popular has nothing to do with where it lies.
        for (std::size_t i = page_of.size(); i > 1; i--)
            std::swap(page_of[i - 1], page_of[below(i)]);
        for (std::uint64_t i = 0; i < m_o.messages; i++) {
            std::uint64_t page = 0;
            if (m_o.order == "sequential") {
                page = i % m_o.pages;
            } else if (m_o.order == "strided") {
                page = i * m_o.stride % m_o.pages;
            } else {
                const double u =
                    static_cast<double>(m_random() >> 11) * 0x1p-53 * sum;
                const auto rank = std::min<std::size_t>(
                    static_cast<std::size_t>(
                        std::upper_bound(upto.begin(), upto.end(), u) -
                        upto.begin()),
                    upto.size() - 1);
                page = page_of[rank];
            }
            send(0, 1, page, page);
        }
    }

    const pattern_options& m_o;
    std::mt19937_64 m_random;
    workload m_out;
    std::vector<std::vector<unsigned>> m_to;
};

}  // namespace

workload generate_workload(const pattern_options& o) {
    return generator(o).run();
}

}  // namespace prawn
