// SPDX-License-Identifier: Apache-2.0
// Why a host did something when it did: what each of its actions is known to
// follow, in the recording and, later, in the replay.

#ifndef PRAWN_RECORD_REPLAY_CAUSES_H
#define PRAWN_RECORD_REPLAY_CAUSES_H

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "record/recording.h"
#include "record/ring_view.h"

namespace prawn {

// Rules (docs/replay.md has them for people). An action follows
//  - the action before it of the same actor: a context's page of BAR 2 or BAR
//    4, or the kernel (everything else); the first of an actor follows the
//    action before it of whoever;
//  - the answer to the last read, or write that was not posted, of that actor
//    which had been answered;
//  - the acknowledgements of admin commands that were there;
//  - a doorbell: the completions that its `consumed`, and the completions and
//    notifications that the commands' `completions_seen` and
//    `notifications_seen` name; a NOTIFY_CONSUMED, ARM_* or EVENT_CONSUMED: the
//    entry that its index names;
// as far as the recording has it before the action. Whichever of these came
// last is its anchor: the action comes as long after it as it did.
struct replay_cause {
    enum kind_t : std::uint8_t { ACTION, ANSWER, ACKS, ENTRY } kind = ACTION;
    std::uint64_t recorded_ps = 0;
    std::uint64_t number = 0;  // ANSWER: order; ACKS: how many
    std::uint32_t life = 0;    // ACKS: of the card
    ring_entry entry;          // ENTRY
};

struct replay_causes {
    std::uint32_t actor = 0;
    bool as_soon_as_possible = false;  // it had waited for the bus
    std::vector<replay_cause> list;

    // A doorbell: commands that it made known, and what they say.
    bool doorbell = false;
    std::uint16_t context = 0;
    std::uint32_t life = 0;  // of the context
    std::uint32_t first = 0, count = 0;
    std::uint32_t seen = 0;  // commands that have been looked at
    bool any_completion = false, any_notification = false;
    std::uint32_t completions = 0, notifications = 0;
};

class replay_history
{
public:
    // -- As the recording is read, in order.
    // Fills in what an action follows.
    void recorded_action(const record& r, const ring_view& view,
                         bool after_wait, replay_causes& out);
    void recorded_answer(const record& r);
    void recorded_entry(const ring_entry& e, std::uint64_t time_ps);
    // A command of this doorbell has been fetched.
    static void recorded_command(const prawn_command& c, replay_causes& of);

    // -- As the replay goes.
    void done(const replay_causes& c, const record& r, std::uint64_t now);
    void answered(std::uint64_t order, std::uint64_t now);
    void entry(const ring_entry& e, std::uint64_t now);

    // When the action is to be done. False if something that it follows has
    // not happened yet; then `why` says what.
    bool due(const replay_causes& c, const record& r, std::uint64_t& at,
             replay_cause& why);

private:
    struct times {
        std::uint64_t recorded = 0, replayed = 0;  // 0: not yet
    };
    // Entries of one life of one ring, by seq.
    struct stream {
        std::uint32_t first = 0;
        std::deque<times> list;
        times* at(std::uint32_t seq, bool make);
        void forget(std::uint32_t seq);
    };
    struct actor_t {
        bool any = false;
        std::uint64_t recorded_ps = 0;  // of its newest action read
        bool any_done = false;
        std::uint64_t done_recorded_ps = 0, done_ps = 0;
        std::uint64_t answer = 0, answer_ps = 0;  // order; recorded
    };
    struct open_access {
        std::uint64_t order;
        std::uint32_t actor;
    };
    void follow_entry(replay_causes& out, ring_entry::kind_t kind,
                      std::uint16_t context, std::uint32_t life,
                      std::uint32_t seq);
    stream& of(const ring_entry& e);
    bool happened(const replay_cause& c, const replay_causes& of,
                  std::uint64_t& at);

    // By kind, context, life; seq of the key is 0.
    std::map<ring_entry, stream> m_streams;
    std::map<std::uint32_t, actor_t> m_actors;
    actor_t m_host;
    std::deque<open_access> m_open;  // not posted, not answered
    std::map<std::uint64_t, std::uint64_t> m_answers;  // replayed, by order
    std::uint32_t m_ack_life = 0;                      // as recorded
    std::uint64_t m_acks = 0, m_ack_ps = 0;
    std::map<std::uint32_t, std::deque<std::uint64_t>> m_ack_times;  // replayed
    std::map<std::uint32_t, std::uint64_t> m_acks_forgotten;
    std::map<std::uint16_t, std::pair<std::uint32_t, std::uint32_t>>
        m_producers;  // of a context: life, index
};

}  // namespace prawn

#endif
