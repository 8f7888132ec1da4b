// SPDX-License-Identifier: Apache-2.0
// Runs a workload on the model, with recorders between hosts and cards.
#include <algorithm>
#include <memory>
#include <stdexcept>

#include <systemc>

#include "record/replay_monitor.h"
#include "record/run_recording.h"
#include "record/workload.h"
#include "sim/card_driver.h"
#include "sim/cluster.h"

namespace prawn {

namespace {

using sc_core::sc_time;
using statement = workload::statement;

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;
constexpr std::uint64_t FIRST_VA = 0x7f0000000000;
constexpr std::uint64_t BUFFER_SPACE = std::uint64_t{1} << 30;
constexpr double PATIENCE_US = 60e6;  // a minute of model time

std::uint64_t va_of(unsigned buffer) {
    return FIRST_VA + buffer * BUFFER_SPACE;
}
std::uint64_t key_of(unsigned exported) {
    return 0x9e3779b97f4a7c15 * (exported + 1);
}

struct interrupted {
};

// Everything that the processes share.
struct scene {
    scene(const workload& what, const sim_config& config,
          const std::string& path) :
        w(what), cards("model", config), recording(path, config) {
        for (unsigned k = 0; k < cards.nodes(); k++) {
            hosts.push_back(std::make_unique<memory_host>(
                ("host" + std::to_string(k)).c_str()));
            connect(*hosts.back(), cards.at(k).bus, &recording.at(k));
            drivers.push_back(std::make_unique<model::card_driver>(
                *hosts.back(), cards.at(k), k));
        }
    }
    void fail(const std::string& line) {
        if (error.empty())
            error = line;
        sc_core::sc_stop();
    }

    const workload& w;
    cluster cards;
    run_recording recording;
    std::vector<std::unique_ptr<memory_host>> hosts;
    std::vector<std::unique_ptr<model::card_driver>> drivers;
    sc_core::sc_event start{"start"}, ended{"ended"};
    sc_time started;
    std::size_t running = 0;
    std::string error;
    bool stopped = false;  // by Ctrl-C
};

// Runs f in a process; what it throws ends the run.
template <typename F>
void guarded(scene& s, F f) {
    try {
        f();
    } catch (const interrupted&) {
        s.stopped = true;
        sc_core::sc_stop();
    } catch (const std::exception& e) {
        s.fail(e.what());
    }
}

// One process of the workload.
class actor final : public sc_core::sc_module
{
public:
    actor(sc_core::sc_module_name name, scene& s, unsigned index) :
        sc_core::sc_module(name), m_scene(s), m_process(s.w.processes[index]) {
        SC_HAS_PROCESS(actor);
        SC_THREAD(run);
        set_stack_size(256 << 10);
    }

private:
    model::card_driver& driver() { return *m_scene.drivers[m_process.node]; }

    void run() {
        wait(m_scene.start);
        guarded(m_scene, [this] {
            if (m_process.context != workload::process::KERNEL)
                m_context =
                    &driver().at(static_cast<std::uint16_t>(m_process.context));
            body();
            if (m_context)
                complete(0);
        });
        m_scene.running--;
        m_scene.ended.notify(sc_core::SC_ZERO_TIME);
    }

    void body() {
        struct loop {
            std::size_t begin;
            std::uint64_t left;
        };
        std::vector<loop> loops;
        for (std::size_t at = 0; at < m_process.body.size(); at++) {
            if (replay_monitor::interrupt() != 0)
                throw interrupted();
            const statement& s = m_process.body[at];
            if (s.op == statement::REPEAT) {
                loops.push_back({at, s.a - 1});
            } else if (s.op == statement::END) {
                if (loops.back().left-- > 0)
                    at = loops.back().begin;
                else
                    loops.pop_back();
            } else {
                step(s);
            }
        }
    }

    void step(const statement& s) {
        switch (s.op) {
            case statement::SEND:
                complete(m_context->capacity() - 1);
                m_context->send(static_cast<std::uint32_t>(s.a),
                                va_of(static_cast<unsigned>(s.c)) + s.d,
                                static_cast<std::uint32_t>(s.b), s.e, s.notify,
                                m_sent++);
                break;
            case statement::FILL:
                m_context->fill(va_of(static_cast<unsigned>(s.a)),
                                m_scene.w.buffers[s.a].pages * PAGE,
                                static_cast<std::uint32_t>(s.b));
                break;
            case statement::WAIT:
                wait(sc_time::from_value(s.a));
                break;
            case statement::AT: {
                const sc_time at = m_scene.started + sc_time::from_value(s.a);
                if (at > sc_core::sc_time_stamp())
                    wait(at - sc_core::sc_time_stamp());
                break;
            }
            case statement::COMPLETE:
                complete(static_cast<std::uint32_t>(s.a));
                break;
            case statement::NOTIFIED:
                notified(s.a);
                break;
            case statement::READ:
                driver().host().read(static_cast<unsigned>(s.a), s.b,
                                     static_cast<unsigned>(s.c));
                break;
            case statement::WRITE:
                driver().host().write(static_cast<unsigned>(s.a), s.b,
                                      static_cast<unsigned>(s.c), s.d);
                break;
            default:
                break;
        }
    }

    // At most so many commands are left.
    void complete(std::uint32_t left) {
        driver().until(
            [&] {
                prawn_completion c;
                while (m_context->poll(c)) {
                }
                if (replay_monitor::interrupt() != 0)
                    throw interrupted();
                return m_context->produced() - m_context->completed() <= left;
            },
            PATIENCE_US, "commands to complete");
    }

    void notified(std::uint64_t count) {
        driver().until(
            [&] {
                prawn_notification n;
                while (m_notified < count && m_context->poll_notification(n))
                    m_notified += n.count;
                if (replay_monitor::interrupt() != 0)
                    throw interrupted();
                return m_notified >= count;
            },
            PATIENCE_US, "notifications");
        m_notified -= count;
    }

    scene& m_scene;
    const workload::process& m_process;
    model::context* m_context = nullptr;
    std::uint32_t m_sent = 0;
    std::uint64_t m_notified = 0;
};

// Boots the cards, opens what the workload names, lets it run.
class director final : public sc_core::sc_module
{
public:
    director(sc_core::sc_module_name name, scene& s) :
        sc_core::sc_module(name), m_scene(s) {
        SC_HAS_PROCESS(director);
        SC_THREAD(run);
        set_stack_size(256 << 10);
    }

private:
    void run() {
        guarded(m_scene, [this] {
            // Nobody asks a card whether it is ready the moment it has power.
            for (auto& h : m_scene.hosts)
                h->set_attached(true);
            wait(sc_time(50, sc_core::SC_US));
            for (auto& d : m_scene.drivers)
                d->boot();
            wait(sc_time(100, sc_core::SC_US));  // HELLO and its answers
            set_up();
            wait(sc_time(10, sc_core::SC_US));
            m_scene.started = sc_core::sc_time_stamp();
            m_scene.start.notify(sc_core::SC_ZERO_TIME);
            while (m_scene.running > 0)
                wait(m_scene.ended);
            if (m_scene.error.empty() && !m_scene.stopped) {
                wait(sc_time(100, sc_core::SC_US));
                sc_core::sc_stop();
            }
        });
    }

    void set_up() {
        const workload& w = m_scene.w;
        const auto context = [&](unsigned process) {
            return static_cast<std::uint16_t>(w.processes[process].context);
        };
        const auto driver = [&](unsigned process) -> model::card_driver& {
            return *m_scene.drivers[w.processes[process].node];
        };
        for (unsigned p = 0; p < w.processes.size(); p++)
            if (w.processes[p].context != workload::process::KERNEL)
                driver(p).open(context(p), w.processes[p].ring_log2,
                               w.processes[p].notify_log2);
        for (unsigned b = 0; b < w.buffers.size(); b++) {
            const unsigned p = w.buffers[b].process;
            driver(p).at(context(p)).map(va_of(b), w.buffers[b].pages);
        }
        for (unsigned e = 0; e < w.exports.size(); e++) {
            const workload::buffer& b = w.buffers[w.exports[e].buffer];
            model::card_driver& d = driver(b.process);
            d.must(
                d.set_export(context(b.process), e, va_of(w.exports[e].buffer),
                             b.pages * PAGE, key_of(e), w.exports[e].notify, e),
                "export");
        }
        for (unsigned i = 0; i < w.imports.size(); i++) {
            const unsigned of = w.imports[i].of;
            const workload::buffer& b = w.buffers[w.exports[of].buffer];
            model::card_driver& d = driver(w.imports[i].process);
            d.must(d.set_import(context(w.imports[i].process), i,
                                driver(b.process), of, key_of(of),
                                b.pages * PAGE, i),
                   "import");
        }
    }

    scene& m_scene;
};

void check(const workload& w, unsigned nodes) {
    if (w.exports.size() > PRAWN_IPT_ENTRIES ||
        w.imports.size() > PRAWN_OPT_ENTRIES)
        throw std::runtime_error(
            "more exports or imports than a card has entries; use fewer");
    for (const workload::process& p : w.processes)
        if (p.node >= nodes)
            throw std::runtime_error(
                "there is something to do for node " + std::to_string(p.node) +
                ", and there are " + std::to_string(nodes) +
                " nodes; set nodes=" + std::to_string(p.node + 1));
}

}  // namespace

int run_workload(const workload& w, const std::vector<std::string>& changes,
                 const std::string& recording) {
    std::vector<std::string> items = w.config;
    items.insert(items.end(), changes.begin(), changes.end());
    const sim_config config = load_config("", items);
    check(w, config.fabric.nodes);
    scene s(w, config, recording);
    std::vector<std::unique_ptr<actor>> actors;
    for (unsigned p = 0; p < w.processes.size(); p++)
        actors.push_back(std::make_unique<actor>(
            ("process" + std::to_string(p)).c_str(), s, p));
    s.running = actors.size();
    const director first("director", s);
    sc_core::sc_start();
    if (!s.error.empty())
        throw std::runtime_error(s.error);
    s.recording.finish();
    return s.stopped ? 130 : 0;
}

}  // namespace prawn
