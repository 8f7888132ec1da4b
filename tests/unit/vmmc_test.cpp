// SPDX-License-Identifier: Apache-2.0
// libvmmc on a card of this test: rings in plain memory, commands done when
// the test says so.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include <vmmc.h>
#include "card.h"
}

namespace {

constexpr std::uint64_t PAGE = 4096;

// What the driver and the card would do.
struct fake_card {
    std::vector<prawn_command> command;
    std::vector<prawn_completion> completion;
    std::vector<prawn_notification> notification;
    std::vector<std::uint64_t> doorbell = std::vector<std::uint64_t>(512);
    std::uint32_t done = 0;       // commands completed
    std::uint32_t announced = 0;  // notifications written
    std::set<std::uint64_t> pinned;
    std::size_t pin_limit = SIZE_MAX;
    unsigned pin_calls = 0;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 20);
    std::uint64_t cookie = 0;  // of the last export or import
    int import_error = 0;
    int wait_error = 0;
    int event_error = -EAGAIN;  // when there is none
    std::vector<card_event> events;
    std::function<void()> on_wait;
    std::vector<prawn_command> seen;

    std::uint32_t producer() const {
        return static_cast<std::uint32_t>(doorbell[0]);
    }
    std::uint32_t size() const {
        return static_cast<std::uint32_t>(command.size());
    }
    // Complete the next command; false if there is none.
    bool step(std::uint16_t status = 0, std::uint64_t fault = 0) {
        if (done == producer())
            return false;
        prawn_command c = command[done % size()];
        seen.push_back(c);
        if (!status) {
            for (std::uint64_t p = c.source / PAGE * PAGE;
                 p < c.source + c.length; p += PAGE)
                if (!pinned.count(p) && !status) {
                    status = PRAWN_STATUS_NOT_PINNED;
                    fault = p;
                }
        }
        if (!status && c.length)
            std::memcpy(memory.data() + c.offset,
                        reinterpret_cast<void*>(c.source), c.length);
        prawn_completion& e = completion[done % size()];
        e = {};
        e.cookie = c.cookie;
        e.accepted = 1000 + done;
        e.finished = 2000 + done;
        e.fault = fault;
        e.bytes = status ? 0 : c.length;
        e.status = status;
        done++;
        __atomic_store_n(&e.seq, done, __ATOMIC_RELEASE);
        return true;
    }
    void notify(std::uint64_t to, std::uint8_t type, std::uint32_t immediate,
                std::uint16_t status = 0) {
        prawn_notification& n = notification[announced % notification.size()];
        n = {};
        n.cookie = to;
        n.type = type;
        n.immediate = immediate;
        n.count = 1;
        n.status = status;
        announced++;
        __atomic_store_n(&n.seq, announced, __ATOMIC_RELEASE);
    }
};

fake_card* fake;

}  // namespace

extern "C" {
int card_open(card* c, const char*, unsigned log2) {
    std::memset(c, 0, sizeof(*c));
    fake->command.resize(1u << log2);
    fake->completion.resize(1u << log2);
    fake->notification.resize(1u << log2);
    c->commands = c->notifications = 1u << log2;
    c->command = fake->command.data();
    c->completion = fake->completion.data();
    c->notification = fake->notification.data();
    c->doorbell = fake->doorbell.data();
    c->node = 1;
    c->nodes = 4;
    return 0;
}
void card_close(card*) {}
void card_forget(card*) {}
int card_pin(card*, std::uint64_t va, std::uint64_t length) {
    fake->pin_calls++;
    if (fake->pinned.size() + length / PAGE > fake->pin_limit)
        return -ENOMEM;
    for (std::uint64_t p = va; p < va + length; p += PAGE)
        fake->pinned.insert(p);
    return 0;
}
int card_unpin(card*, std::uint64_t va, std::uint64_t length) {
    for (std::uint64_t p = va; p < va + length; p += PAGE)
        fake->pinned.erase(p);
    return 0;
}
int card_export(card*, std::uint64_t, std::uint64_t, const char*, unsigned,
                std::uint64_t cookie, std::uint32_t* id) {
    fake->cookie = cookie;
    *id = 5;
    return 0;
}
int card_unexport(card*, std::uint32_t) {
    return 0;
}
int card_import(card*, unsigned, const char*, int, std::uint64_t cookie,
                std::uint32_t* id, std::uint64_t* length) {
    fake->cookie = cookie;
    *id = 9;
    *length = fake->memory.size();
    return fake->import_error;
}
int card_unimport(card*, std::uint32_t) {
    return 0;
}
int card_next_event(card*, struct card_event* e) {
    if (fake->events.empty())
        return fake->event_error;
    *e = fake->events.front();
    fake->events.erase(fake->events.begin());
    return 0;
}
int card_wait(card*, int, std::uint32_t, int, std::uint32_t, std::int64_t) {
    if (fake->on_wait)
        fake->on_wait();
    else
        std::this_thread::yield();
    return fake->wait_error;
}
int card_eventfd(card*, int) {
    return 0;
}
}

namespace {

class vmmc_library : public testing::Test
{
protected:
    vmmc_library() {
        fake = &card_state;
        EXPECT_EQ(vmmc_open("test", 4, &v), 0);
        EXPECT_EQ(vmmc_import(v, 2, "there", 0, &tag, &import), 0);
        import_cookie = card_state.cookie;
    }
    ~vmmc_library() override { vmmc_close(v); }

    vmmc_request_t isend(const void* p, std::size_t n, unsigned flags = 0) {
        vmmc_request_t r = 0;
        EXPECT_EQ(vmmc_isend(import, 0, p, n, flags, 77, &r), 0);
        return r;
    }

    fake_card card_state;
    vmmc_t* v = nullptr;
    vmmc_import_t* import = nullptr;
    std::uint64_t import_cookie = 0;
    int tag = 0;
    alignas(4096) std::uint8_t buffer[8 * PAGE] = {};
};

TEST_F(vmmc_library, send_delivers_and_reports_times) {
    std::strcpy(reinterpret_cast<char*>(buffer), "prawn");
    vmmc_request_t r = isend(buffer, 6, VMMC_SEND_NOTIFY);
    vmmc_completion c{};
    EXPECT_EQ(vmmc_test(v, r, &c), 0);
    ASSERT_TRUE(card_state.step());
    EXPECT_EQ(vmmc_test(v, r, &c), 1);
    EXPECT_EQ(c.error, 0);
    EXPECT_EQ(c.bytes, 6u);
    EXPECT_EQ(c.accepted_ps, 1000u);
    EXPECT_EQ(c.finished_ps, 2000u);
    EXPECT_STREQ(reinterpret_cast<char*>(card_state.memory.data()), "prawn");
    EXPECT_EQ(card_state.seen[0].flags, PRAWN_COMMAND_FLAG_NOTIFY);
    EXPECT_EQ(card_state.seen[0].immediate, 77u);
    EXPECT_EQ(card_state.seen[0].import_id, 9u);
    EXPECT_EQ(vmmc_test(v, r, &c), -EINVAL) << "a request ends once";
}

TEST_F(vmmc_library, no_length_is_a_message_too) {
    vmmc_request_t r = isend(nullptr, 0);
    ASSERT_TRUE(card_state.step());
    EXPECT_EQ(vmmc_test(v, r, nullptr), 1);
    EXPECT_EQ(card_state.pin_calls, 0u);
}

TEST_F(vmmc_library, second_send_of_a_page_needs_no_system_call) {
    isend(buffer, 100);
    unsigned calls = card_state.pin_calls;
    isend(buffer + 50, 100);
    EXPECT_EQ(card_state.pin_calls, calls);
}

TEST_F(vmmc_library, unmapped_page_is_pinned_anew_and_the_piece_repeated) {
    isend(buffer, 2 * PAGE);
    card_state.step();
    std::uint64_t page = reinterpret_cast<std::uintptr_t>(buffer) + PAGE;
    card_state.pinned.erase(page);
    std::memset(buffer, 0x5a, 2 * PAGE);
    vmmc_request_t r = isend(buffer, 2 * PAGE, VMMC_SEND_NOTIFY);
    card_state.step();  // NOT_PINNED
    vmmc_completion c{};
    EXPECT_EQ(vmmc_test(v, r, &c), 0);
    EXPECT_TRUE(card_state.pinned.count(page));
    ASSERT_TRUE(card_state.step());
    EXPECT_EQ(vmmc_test(v, r, &c), 1);
    EXPECT_EQ(c.error, 0);
    EXPECT_EQ(c.bytes, 2 * PAGE);
    EXPECT_EQ(card_state.seen.back().length, 2 * PAGE);
    EXPECT_EQ(card_state.seen.back().flags, PRAWN_COMMAND_FLAG_NOTIFY);
    EXPECT_EQ(card_state.memory[2 * PAGE - 1], 0x5a);
}

TEST_F(vmmc_library, page_that_keeps_going_ends_in_an_error) {
    vmmc_request_t r = isend(buffer, 10);
    vmmc_completion c{};
    int got = 0;
    int rounds = 0;
    while (!(got = vmmc_test(v, r, &c)) && rounds++ < 1000)
        card_state.step(PRAWN_STATUS_NOT_PINNED,
                        reinterpret_cast<std::uintptr_t>(buffer));
    EXPECT_EQ(got, 1);
    EXPECT_EQ(c.error, VMMC_CARD_ERROR(PRAWN_STATUS_NOT_PINNED));
    EXPECT_LT(rounds, 100);
}

TEST_F(vmmc_library, more_than_the_pin_limit_goes_in_pieces) {
    card_state.pin_limit = 3;
    for (unsigned i = 0; i < sizeof(buffer); i++)
        buffer[i] = static_cast<std::uint8_t>(i * 7);
    vmmc_request_t r = isend(buffer, sizeof(buffer), VMMC_SEND_NOTIFY);
    vmmc_completion c{};
    int rounds = 0;
    while (!vmmc_test(v, r, &c) && rounds++ < 100)
        card_state.step();
    EXPECT_EQ(c.error, 0);
    EXPECT_EQ(c.bytes, sizeof(buffer));
    EXPECT_EQ(std::memcmp(buffer, card_state.memory.data(), sizeof(buffer)), 0);
    for (std::size_t i = 0; i + 1 < card_state.seen.size(); i++)
        EXPECT_EQ(card_state.seen[i].flags, 0) << "only the last notifies";
    EXPECT_EQ(card_state.seen.back().flags, PRAWN_COMMAND_FLAG_NOTIFY);
    EXPECT_LE(card_state.pinned.size(), 3u);
}

TEST_F(vmmc_library, full_ring_says_again_and_loses_nothing) {
    std::vector<vmmc_request_t> requests;
    vmmc_request_t r = 0;
    while (vmmc_isend(import, 0, buffer, 4, 0, 0, &r) == 0)
        requests.push_back(r);
    EXPECT_EQ(requests.size(), 16u);
    EXPECT_EQ(vmmc_isend(import, 0, buffer, 4, 0, 0, &r), -EAGAIN);
    while (card_state.step()) {
    }
    for (vmmc_request_t x : requests)
        EXPECT_EQ(vmmc_test(v, x, nullptr), 1);
    EXPECT_EQ(vmmc_isend(import, 0, buffer, 4, 0, 0, &r), 0);
}

TEST_F(vmmc_library, indices_wrap) {
    for (unsigned i = 0; i < 100; i++) {
        vmmc_request_t r = isend(buffer, 4);
        ASSERT_TRUE(card_state.step());
        ASSERT_EQ(vmmc_test(v, r, nullptr), 1);
    }
    EXPECT_EQ(card_state.producer(), 100u);
}

TEST_F(vmmc_library, bad_arguments) {
    vmmc_request_t r = 0;
    EXPECT_EQ(vmmc_isend(import, 0, buffer, 1, 8, 0, &r), -EINVAL);
    EXPECT_EQ(vmmc_isend(import, card_state.memory.size(), buffer, 1, 0, 0, &r),
              VMMC_CARD_ERROR(PRAWN_STATUS_OUT_OF_RANGE));
    EXPECT_EQ(vmmc_isend(import, ~0ull, buffer, 2, 0, 0, &r),
              VMMC_CARD_ERROR(PRAWN_STATUS_OUT_OF_RANGE));
    EXPECT_EQ(vmmc_test(v, 12345, nullptr), -EINVAL);
    vmmc_export_t* e = nullptr;
    EXPECT_EQ(vmmc_export(v, buffer + 1, PAGE, "x", 0, nullptr, &e), -EINVAL);
    EXPECT_EQ(vmmc_export(v, buffer, 100, "x", 0, nullptr, &e), -EINVAL);
    EXPECT_EQ(vmmc_export(v, buffer, 0, "x", 0, nullptr, &e), -EINVAL);
    EXPECT_EQ(vmmc_export(v, buffer, PAGE, "", 0, nullptr, &e), -EINVAL);
    std::string name(64, 'x');
    EXPECT_EQ(vmmc_export(v, buffer, PAGE, name.c_str(), 0, nullptr, &e),
              -EINVAL);
    vmmc_import_t* i = nullptr;
    EXPECT_EQ(vmmc_import(v, 4, "x", 0, nullptr, &i), -EHOSTUNREACH);
    card_state.import_error = -ENOENT;
    EXPECT_EQ(vmmc_import(v, 2, "x", 0, nullptr, &i), -ENOENT);
    vmmc_t* other = nullptr;
    EXPECT_EQ(vmmc_open("test", 13, &other), -EINVAL);
    // What wraps is no memory, and nothing is done for it.
    const void* end = reinterpret_cast<const void*>(~0ull - PAGE + 1);
    EXPECT_EQ(vmmc_isend(import, 0, end, 2 * PAGE, 0, 0, &r), -EFAULT);
    EXPECT_EQ(vmmc_pin(v, end, 2 * PAGE), -EFAULT);
    EXPECT_EQ(vmmc_unpin(v, end, 2 * PAGE), -EFAULT);
    EXPECT_EQ(card_state.producer(), 0u);
    EXPECT_EQ(card_state.pin_calls, 0u);
}

// An import's number may name another one next time.
TEST_F(vmmc_library, nothing_goes_out_for_an_import_that_was_let_go) {
    vmmc_completion c{};
    vmmc_request_t r = isend(buffer, PAGE);
    card_state.step(PRAWN_STATUS_NOT_PINNED,
                    reinterpret_cast<std::uintptr_t>(buffer));
    EXPECT_EQ(vmmc_unimport(import), 0);
    EXPECT_EQ(vmmc_test(v, r, &c), 1);
    EXPECT_EQ(c.error, VMMC_CARD_ERROR(PRAWN_STATUS_BAD_IMPORT));
    EXPECT_EQ(card_state.producer(), 1u) << "sent again";

    ASSERT_EQ(vmmc_import(v, 2, "there", 0, &tag, &import), 0);
    card_state.pinned.clear();
    card_state.pin_limit = 3;
    EXPECT_EQ(vmmc_unpin(v, buffer, sizeof(buffer)), 0);
    r = isend(buffer, sizeof(buffer));
    EXPECT_EQ(card_state.producer(), 2u);
    vmmc_import_t* other = nullptr;
    ASSERT_EQ(vmmc_import(v, 2, "other", 0, &tag, &other), 0);
    EXPECT_EQ(vmmc_unimport(import), 0);
    card_state.step();
    EXPECT_EQ(vmmc_test(v, r, &c), 1);
    EXPECT_EQ(c.error, VMMC_CARD_ERROR(PRAWN_STATUS_BAD_IMPORT));
    EXPECT_EQ(c.bytes, 3 * PAGE);
    EXPECT_EQ(card_state.producer(), 2u) << "the rest was sent";
    // The other one is as good as before.
    import = other;
    r = isend(buffer, PAGE);
    card_state.step();
    EXPECT_EQ(vmmc_test(v, r, &c), 1);
    EXPECT_EQ(c.error, 0);
}

// The driver knows that the card has gone; whoever waits has to hear of it.
TEST_F(vmmc_library, a_card_that_has_gone_ends_every_wait) {
    vmmc_notification n{};
    vmmc_request_t r = 0;
    card_state.wait_error = -EIO;
    EXPECT_EQ(vmmc_wait(v, &n, -1), -EIO);
    while (vmmc_isend(import, 0, buffer, 4, 0, 0, &r) == 0) {
    }
    EXPECT_EQ(vmmc_complete(v, r, nullptr, -1), -EIO);
    EXPECT_EQ(vmmc_send(import, 0, buffer, 4, 0, 0), -EIO);
    card_state.wait_error = 0;
    card_state.event_error = -EIO;
    EXPECT_EQ(vmmc_wait(v, &n, 0), -EIO);
}

TEST_F(vmmc_library, also_a_wait_that_has_to_post_meanwhile) {
    vmmc_notification n{};
    card_state.pin_limit = 3;
    isend(buffer, sizeof(buffer));  // waits for its pages
    card_state.wait_error = -EIO;
    EXPECT_EQ(vmmc_wait(v, &n, -1), -EIO);
    // While the card lives, the rest is posted without being asked for.
    card_state.wait_error = 0;
    unsigned sleeps = 0;
    card_state.on_wait = [&] {
        sleeps++;
        if (!card_state.step())
            card_state.notify(import_cookie,
                              PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR, 0, 0);
    };
    EXPECT_EQ(vmmc_wait(v, &n, 10000), 1);
    EXPECT_EQ(card_state.producer(), 3u);
    EXPECT_EQ(sleeps, 4u);
}

TEST_F(vmmc_library, card_errors_have_names) {
    for (int status = 1; status <= 15; status++)
        EXPECT_STRNE(vmmc_strerror(VMMC_CARD_ERROR(status)),
                     "unknown status of the card")
            << status;
    EXPECT_STREQ(vmmc_strerror(VMMC_CARD_ERROR(999)),
                 "unknown status of the card");
    EXPECT_STREQ(vmmc_strerror(0), "success");
    EXPECT_STREQ(vmmc_strerror(-99999), "unknown status of the card");
}

TEST_F(vmmc_library, notifications_reach_their_object) {
    vmmc_export_t* e = nullptr;
    int mine = 0;
    ASSERT_EQ(vmmc_export(v, buffer, PAGE, "n", VMMC_EXPORT_NOTIFY, &mine, &e),
              0);
    std::uint64_t cookie = card_state.cookie;
    vmmc_notification n{};
    EXPECT_EQ(vmmc_poll(v, &n), 0);
    card_state.notify(cookie, PRAWN_NOTIFICATION_TYPE_MESSAGE, 11);
    card_state.notify(import_cookie, PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR, 0,
                      PRAWN_STATUS_BAD_EXPORT);
    ASSERT_EQ(vmmc_poll(v, &n), 1);
    EXPECT_EQ(n.type, VMMC_MESSAGE);
    EXPECT_EQ(n.object, &mine);
    EXPECT_EQ(n.immediate, 11u);
    ASSERT_EQ(vmmc_poll(v, &n), 1);
    EXPECT_EQ(n.type, VMMC_IMPORT_LOST);
    EXPECT_EQ(n.object, &tag);
    EXPECT_EQ(n.error, VMMC_CARD_ERROR(PRAWN_STATUS_BAD_EXPORT));
    // What is still in the ring when its export goes is dropped.
    card_state.notify(cookie, PRAWN_NOTIFICATION_TYPE_MESSAGE, 12);
    EXPECT_EQ(vmmc_unexport(e), 0);
    EXPECT_EQ(vmmc_poll(v, &n), 0);
    card_state.notify(0xdeadbeef00000099ull, PRAWN_NOTIFICATION_TYPE_MESSAGE,
                      13);
    EXPECT_EQ(vmmc_poll(v, &n), 0) << "a cookie that never was";
}

TEST_F(vmmc_library, consumer_index_is_told_before_the_ring_fills) {
    vmmc_export_t* e = nullptr;
    ASSERT_EQ(vmmc_export(v, buffer, PAGE, "n", VMMC_EXPORT_NOTIFY, this, &e),
              0);
    vmmc_notification n{};
    for (std::uint32_t i = 0; i < 100; i++) {
        card_state.notify(card_state.cookie, PRAWN_NOTIFICATION_TYPE_MESSAGE,
                          i);
        ASSERT_EQ(vmmc_poll(v, &n), 1);
        EXPECT_EQ(n.immediate, i);
        std::uint64_t told =
            card_state.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8];
        EXPECT_LE(i + 1 - told, 4u);
    }
    vmmc_unexport(e);
}

TEST_F(vmmc_library, wait_sleeps_and_software_events_arrive) {
    vmmc_notification n{};
    EXPECT_EQ(vmmc_wait(v, &n, 0), 0);
    unsigned sleeps = 0;
    card_state.on_wait = [&] {
        if (++sleeps == 2)
            card_state.events.push_back(
                {2 /* PRAWN_EVENT_IMPORT_WITHDRAWN */, import_cookie, 0});
    };
    ASSERT_EQ(vmmc_wait(v, &n, 10000), 1);
    EXPECT_EQ(sleeps, 2u);
    EXPECT_EQ(n.type, VMMC_IMPORT_LOST);
    EXPECT_EQ(n.object, &tag);
}

TEST_F(vmmc_library, complete_waits_and_times_out) {
    vmmc_request_t r = isend(buffer, 4);
    vmmc_completion c{};
    EXPECT_EQ(vmmc_complete(v, r, &c, 1), 0);
    card_state.on_wait = [&] { card_state.step(); };
    EXPECT_EQ(vmmc_complete(v, r, &c, -1), 1);
}

TEST_F(vmmc_library, child_may_not_use_it) {
    pid_t child = fork();
    if (child == 0) {
        vmmc_request_t r = 0;
        vmmc_notification n{};
        bool ok = vmmc_isend(import, 0, buffer, 4, 0, 0, &r) == -EPERM &&
                  vmmc_poll(v, &n) == -EPERM &&
                  vmmc_pin(v, buffer, 4) == -EPERM;
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    isend(buffer, 4);  // the parent goes on
}

// A card of a thread, which completes whatever comes.
class busy_card
{
public:
    explicit busy_card(fake_card& state) :
        m_state(state), m_thread([this] { serve(); }) {}
    ~busy_card() {
        m_stop = true;
        m_thread.join();
    }

private:
    void serve() {
        // The card sees the doorbell only as the process wrote it.
        while (!m_stop) {
            std::uint32_t producer = static_cast<std::uint32_t>(
                __atomic_load_n(&m_state.doorbell[0], __ATOMIC_ACQUIRE));
            while (m_state.done != producer) {
                prawn_completion& e = m_state.completion[m_state.done % 16];
                e.status = 0;
                e.bytes = 4;
                m_state.done++;
                __atomic_store_n(&e.seq, m_state.done, __ATOMIC_RELEASE);
            }
            std::this_thread::yield();
        }
    }

    fake_card& m_state;
    std::atomic<bool> m_stop{false};
    std::thread m_thread;
};

TEST_F(vmmc_library, threads_share_an_endpoint) {
    // Fewer than the ring has places, and more.
    for (unsigned threads : {4u, 40u}) {
        std::atomic<unsigned> failed{0};
        {
            busy_card card(card_state);
            std::vector<std::thread> users;
            for (unsigned t = 0; t < threads; t++)
                users.emplace_back([&, t] {
                    for (unsigned i = 0; i < 2000 / threads; i++)
                        if (vmmc_send(import, t * 8, buffer + t * 8, 4, 0, 0))
                            failed++;
                });
            for (auto& u : users)
                u.join();
        }
        EXPECT_EQ(failed, 0u) << threads;
    }
    EXPECT_EQ(card_state.done, 4000u);
}

// Requests that are over and nobody ends leave no room, for ever.
TEST_F(vmmc_library, a_ring_full_of_forgotten_requests_is_said_to_be_so) {
    vmmc_request_t r = 0;
    while (vmmc_isend(import, 0, buffer, 4, 0, 0, &r) == 0) {
    }
    while (card_state.step()) {
    }
    EXPECT_EQ(vmmc_send(import, 0, buffer, 4, 0, 0), -EAGAIN);
}

}  // namespace
