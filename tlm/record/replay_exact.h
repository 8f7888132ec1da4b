// SPDX-License-Identifier: Apache-2.0
// The replay of an unchanged configuration: what the hosts did is done again
// at the same picosecond and delta cycle, what the cards do is compared with
// the recording, record by record, while it happens. Ends at the first
// difference. What a card does to its host within one picosecond may come in
// another order: SystemC defines none between events of one instant, and a
// host's own events are others now.

#ifndef PRAWN_RECORD_REPLAY_EXACT_H
#define PRAWN_RECORD_REPLAY_EXACT_H

#include <cstdint>
#include <memory>
#include <vector>

#include "record/replay_feed.h"
#include "record/replay_host.h"
#include "record/replay_monitor.h"
#include "support/ring.h"

namespace prawn {

// Needs no image of host memory: a DMA read gets the data of its own record.
// Reads ahead to the next action of any host only, so memory is bounded by what
// happens between two of them, and by AHEAD where a host answers late.
class exact_replay
{
public:
    // Records that are looked at beyond those that must have come by now.
    static constexpr std::uint64_t AHEAD = 65536;

    exact_replay(replay_feed& feed, const std::vector<replay_host*>& hosts,
                 replay_monitor& monitor);
    ~exact_replay();

    // Records that were done or came as they were recorded.
    std::uint64_t matched() const { return m_matched; }
    // Of these: came before another one of their instant, and had come after.
    std::uint64_t reordered() const { return m_reordered; }

private:
    // One node's part.
    class port final : public replay_script
    {
    public:
        port(exact_replay& run, replay_host& host, std::uint16_t node) :
            m_run(run), m_host(host), m_node(node) {}

        void push(kept r);
        void arm();
        const feed_record* left();  // the oldest that has not come

        void step() override;
        void accepted(std::uint64_t order) override;
        void answered(bool read, std::uint64_t order,
                      std::uint64_t value) override;
        void msix(unsigned vector) override;
        void intx(bool level) override;
        dma_answer dma(const dma_access& a) override;

    private:
        // What the host does by itself, at its time.
        static bool action(const record& r) {
            return r.to_card() || r.kind == record_kind::DMA_ACCEPTED ||
                   (r.dma() && r.late);
        }
        feed_record* head();
        void execute();
        const feed_record* expected(const record& came);
        void arrived(const record& came);
        void explain(const record& came);
        void pop();
        void goes_on();
        dma_answer put_off(const dma_access& a, const record& came);

        exact_replay& m_run;
        replay_host& m_host;
        const std::uint16_t m_node;
        ring<kept> m_queue;
        ring<std::uint64_t> m_actions;  // times of those in the queue
        std::uint64_t m_armed = ~std::uint64_t{0};
        bool m_busy = false;
        bool m_late = false;  // there are hosts that answer late
    };

    bool read_one();
    void read_on();
    void differs(const feed_record* expected, const record* came,
                 const std::string& why);
    std::uint64_t end_time() const;

    replay_feed& m_feed;
    replay_monitor& m_monitor;
    std::vector<std::unique_ptr<port>> m_ports;
    std::uint64_t m_actions_left = 0;
    std::uint64_t m_matched = 0;
    std::uint64_t m_reordered = 0;
};

}  // namespace prawn

#endif
