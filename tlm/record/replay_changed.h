// SPDX-License-Identifier: Apache-2.0
// The replay of a recording on another configuration: the hosts do what they
// did, at the recorded times (open loop) or after what they followed
// (dependency-preserving), and what they get to see is compared with what they
// saw.

#ifndef PRAWN_RECORD_REPLAY_CHANGED_H
#define PRAWN_RECORD_REPLAY_CHANGED_H

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "record/replay_causes.h"
#include "record/replay_feed.h"
#include "record/replay_host.h"
#include "record/replay_match.h"
#include "record/replay_memory.h"
#include "record/replay_monitor.h"
#include "record/replay_statistics.h"
#include "record/ring_view.h"

namespace prawn {

// Reads so far ahead that every host's next action is known, and farther where
// the card asks for memory or a doorbell's commands are wanted; WINDOW records
// beyond the oldest action not yet done at most.
class changed_replay
{
public:
    static constexpr std::uint64_t WINDOW = 200000;
    // Records that nothing has come for are given up after so many others, or
    // earlier when they take more memory than this.
    static constexpr std::uint64_t PATIENCE = 1000000;
    static constexpr std::uint64_t MEMORY = std::uint64_t{1} << 29;
    // Records to look at for the commands of a doorbell.
    static constexpr std::uint64_t FETCH_WINDOW = 4096;

    changed_replay(replay_feed& feed, const std::vector<replay_host*>& hosts,
                   replay_monitor& monitor, bool dependencies);
    ~changed_replay();

    // After the simulation has ended.
    void finish();

    struct side {
        replay_statistics recorded, replayed;
    };
    const side& node(unsigned k) const;
    std::uint64_t zeros() const;    // bytes read that were never recorded
    std::uint64_t unread() const;   // recorded bytes that nobody read
    std::uint64_t excused() const;  // see replay_match
    std::uint64_t beyond() const;
    std::uint64_t actions_left() const;

private:
    struct action {
        kept r;
        std::uint64_t number = 0;  // of the host's, from 1
        replay_causes causes;
    };

    // One node's part.
    class port final : public replay_script
    {
    public:
        port(changed_replay& run, replay_host& host, unsigned node) :
            m_run(run), m_host(host), m_match(node, run.m_monitor) {}

        void push(kept r);
        bool hungry() const { return m_actions.empty(); }
        std::uint64_t oldest() const {
            return m_actions.empty() ? ~std::uint64_t{0}
                                     : m_actions.front().r->number;
        }
        void look() {
            if (!m_busy)
                m_host.wake_in_this_delta();
        }
        void expire(std::uint64_t number);

        void step() override;
        void accepted(std::uint64_t order) override;
        void answered(bool read, std::uint64_t order,
                      std::uint64_t value) override;
        void msix(unsigned vector) override;
        void intx(bool level) override;
        dma_answer dma(const dma_access& a) override;

        changed_replay& m_run;
        replay_host& m_host;
        replay_match m_match;
        side figures;
        replay_memory memory;
        std::uint64_t unread = 0;
        std::deque<action> m_actions;
        std::string waits_for() const;
        // Nothing is to be done, and nothing is waited for.
        bool finished() const {
            return m_actions.empty() && m_unanswered == 0 && m_match.settled();
        }

    private:
        void recorded_action(kept r);
        void recorded_dma(kept r);
        void place_memory(std::uint64_t action);
        void run_actions();
        void came();
        bool wants_commands(const action& a) const;
        void execute();
        bool read_table(const dma_access& a);

        ring_view m_recorded, m_replayed;
        replay_history m_history;
        std::deque<kept> m_new_memory;  // its action is not known yet
        std::uint64_t m_read_actions = 0, m_done_actions = 0;
        std::uint64_t m_unanswered = 0;  // accesses
        bool m_bus_master = false;
        bool m_waited = false;  // the last record was BAR_ACCEPTED
        bool m_busy = false;
        bool m_waiting = false;
        replay_cause m_why;
    };

    bool read_one();
    void read_on();
    bool may_read() const;
    void tidy_up();
    void check_end();

    replay_feed& m_feed;
    replay_monitor& m_monitor;
    const bool m_dependencies;
    std::vector<std::unique_ptr<port>> m_ports;
    std::uint64_t m_tidied = 0;
};

}  // namespace prawn

#endif
