// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "record/replay_causes.h"

namespace prawn {
namespace {

constexpr std::uint64_t US = 1000000;

class replay_causes_test : public testing::Test
{
protected:
    // An access by context 1, unless it is to BAR 0.
    record access(std::uint64_t at, unsigned bar, std::uint64_t offset,
                  std::uint64_t value, bool read = false) {
        record r;
        r.time_ps = at * US;
        r.kind = read ? record_kind::BAR_READ : record_kind::BAR_WRITE;
        r.bar = static_cast<std::uint8_t>(bar);
        r.address = bar == 2 ? PRAWN_PAGE_SIZE + offset : offset;
        r.length = 8;
        r.value = value;
        r.posted = !read;
        r.order = ++m_order;
        return r;
    }
    struct step {
        record r;
        replay_causes c;
    };
    step recorded(const record& r, bool waited = false) {
        step s;
        s.r = r;
        history.recorded_action(r, view, waited, s.c);
        return s;
    }
    step doorbell(std::uint64_t at, std::uint32_t producer,
                  std::uint32_t consumed) {
        return recorded(access(at, 2, PRAWN_DOORBELL_DOORBELL,
                               std::uint64_t{consumed} << 32 | producer));
    }
    static ring_entry entry(ring_entry::kind_t kind, std::uint32_t seq) {
        ring_entry e;
        e.kind = kind;
        e.context = 1;
        e.seq = seq;
        return e;
    }
    void completion_recorded(std::uint32_t seq, std::uint64_t at) {
        history.recorded_entry(entry(ring_entry::COMPLETION, seq), at * US);
    }
    void completion_comes(std::uint32_t seq, std::uint64_t at) {
        history.entry(entry(ring_entry::COMPLETION, seq), at * US);
    }
    // In microseconds; -1: it waits.
    std::int64_t due(const step& s) {
        std::uint64_t at = 0;
        return history.due(s.c, s.r, at, why)
                   ? static_cast<std::int64_t>(at / US)
                   : -1;
    }
    void done(const step& s, std::uint64_t at) {
        history.done(s.c, s.r, at * US);
    }

    replay_history history;
    ring_view view;
    replay_cause why;

private:
    std::uint64_t m_order = 0;
};

TEST_F(replay_causes_test, first_keeps_its_time_and_the_next_its_distance) {
    const step a = recorded(access(10, 0, PRAWN_BAR0_CTRL, 2));
    const step b = recorded(access(13, 0, PRAWN_BAR0_INT_ENABLE, 1));
    EXPECT_EQ(due(a), 10);
    done(a, 20);
    EXPECT_EQ(due(b), 23);
}

TEST_F(replay_causes_test, successor_of_a_read_follows_its_result) {
    const step a = recorded(access(10, 0, PRAWN_BAR0_ID, 0, true));
    record result;
    result.kind = record_kind::BAR_RESULT;
    result.order = a.r.order;
    result.time_ps = 11 * US;
    history.recorded_answer(result);
    const step b = recorded(access(14, 0, PRAWN_BAR0_INT_ENABLE, 1));
    done(a, 10);
    EXPECT_EQ(due(b), -1);
    EXPECT_EQ(why.kind, replay_cause::ANSWER);
    history.answered(a.r.order, 30 * US);
    EXPECT_EQ(due(b), 33);
}

TEST_F(replay_causes_test, doorbell_follows_the_completion_that_it_consumed) {
    const step a = doorbell(10, 1, 0);
    completion_recorded(1, 15);
    const step b = doorbell(17, 2, 1);
    done(a, 10);
    EXPECT_EQ(due(b), -1);
    EXPECT_EQ(why.kind, replay_cause::ENTRY);
    EXPECT_EQ(why.entry.seq, 1u);
    completion_comes(1, 12);  // a faster card
    EXPECT_EQ(due(b), 14);
}

TEST_F(replay_causes_test, or_the_doorbell_before_it_if_that_came_later) {
    completion_recorded(1, 5);
    const step a = doorbell(10, 2, 1);
    const step b = doorbell(11, 3, 1);
    completion_comes(1, 50);
    EXPECT_EQ(due(a), 55);
    done(a, 55);
    EXPECT_EQ(due(b), 56);
}

TEST_F(replay_causes_test, commands_say_what_their_process_had_seen) {
    const step first = doorbell(1, 0, 0);
    history.recorded_entry(entry(ring_entry::NOTIFICATION, 1), 8 * US);
    step a = doorbell(10, 1, 0);
    prawn_command c{};
    c.notifications_seen = 1;
    replay_history::recorded_command(c, a.c);
    done(first, 1);
    EXPECT_EQ(due(a), -1);
    EXPECT_EQ(why.entry.kind, ring_entry::NOTIFICATION);
    history.entry(entry(ring_entry::NOTIFICATION, 1), 20 * US);
    EXPECT_EQ(due(a), 22);
}

TEST_F(replay_causes_test, what_was_not_there_yet_is_no_cause) {
    const step a = doorbell(10, 2, 1);  // a process that lies
    completion_recorded(1, 15);
    EXPECT_EQ(due(a), 10);
}

TEST_F(replay_causes_test, actors_follow_themselves) {
    const step a = doorbell(10, 1, 0);
    record other = access(12, 2, PRAWN_PAGE_SIZE + PRAWN_DOORBELL_DOORBELL, 1);
    const step b = recorded(other);  // context 2, its first: follows a
    completion_recorded(1, 14);
    const step c = doorbell(15, 2, 1);
    other = access(20, 2, PRAWN_PAGE_SIZE + PRAWN_DOORBELL_DOORBELL, 2);
    const step d = recorded(other);
    done(a, 10);
    EXPECT_EQ(due(b), 12);
    done(b, 12);
    completion_comes(1, 40);
    EXPECT_EQ(due(c), 41);
    done(c, 41);
    EXPECT_EQ(due(d), 20);  // 8 after b; that it comes after c is order
}

TEST_F(replay_causes_test, kernel_and_contexts_follow_acknowledgements) {
    ring_entry ack;
    ack.kind = ring_entry::ACK;
    ack.seq = 1;
    const step a = recorded(access(1, 0, PRAWN_BAR0_ADMIN_DOORBELL, 1));
    history.recorded_entry(ack, 5 * US);
    const step b = doorbell(7, 1, 0);
    done(a, 1);
    EXPECT_EQ(due(b), -1);
    EXPECT_EQ(why.kind, replay_cause::ACKS);
    history.entry(ack, 100 * US);
    EXPECT_EQ(due(b), 102);
}

TEST_F(replay_causes_test, what_had_waited_for_the_bus_goes_when_it_can) {
    const step a = doorbell(10, 1, 0);
    const step b =
        recorded(access(30, 2, PRAWN_DOORBELL_ARM_COMPLETION, 0), true);
    done(a, 11);
    EXPECT_EQ(due(b), 11);
}

}  // namespace
}  // namespace prawn
