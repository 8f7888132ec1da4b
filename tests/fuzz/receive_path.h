// SPDX-License-Identifier: Apache-2.0
// The receive path of a card, from the link to memory, with a host around it
// that checks everything that comes out. What it finds wrong ends the process.

#ifndef PRAWN_TESTS_FUZZ_RECEIVE_PATH_H
#define PRAWN_TESTS_FUZZ_RECEIVE_PATH_H

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include <systemc>

#include "nic/depacketizer.h"
#include "nic/incoming_dma.h"
#include "nic/ipt.h"
#include "nic/link_mac.h"
#include "nic/pools.h"
#include "nic/reliable.h"

namespace prawn {
namespace fuzz {

#define FUZZ_CHECK(condition)                                              \
    do {                                                                   \
        if (!(condition)) {                                                \
            std::fprintf(stderr, "%s:%d: wrong: %s\n", __FILE__, __LINE__, \
                         #condition);                                      \
            std::abort();                                                  \
        }                                                                  \
    } while (false)

constexpr unsigned NODES = 4, SELF = 0;

// A port of the card whose other side looks at each item.
template <typename T, typename Owner, void (Owner::*CHECK)(T&)>
class checker final : public put_if<T>
{
public:
    explicit checker(Owner& owner) : m_owner(owner) {}
    bool try_put(T& item) override {
        if (stalled)
            return false;
        (m_owner.*CHECK)(item);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_room; }
    void release() {
        stalled = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }
    bool stalled = false;

private:
    Owner& m_owner;
    sc_core::sc_event m_room;
};

struct export_range {
    bool valid = false;
    std::uint16_t context = 0;
    std::uint64_t va = 0, length = 0;
};

class receive_path : public sc_core::sc_module
{
public:
    explicit receive_path(sc_core::sc_module_name name);

    // One frame as it comes from the link.
    void frame(packet_ref p);
    void reset();
    void set_export(std::uint32_t index, const export_range& range,
                    std::uint64_t key);
    void clear_export(std::uint32_t index);
    void disable(std::uint16_t context);
    void say_hello() { m_reliable.say_hello(); }
    void enable(bool on) { m_depacketizer.set_enabled(on); }
    // Bits: memory, translation, hello output.
    void stall(unsigned which);
    void fail_next(bool translation, bool dma);
    // Everything that was stalled goes on; nothing may be left in the card.
    void finish();
    std::uint16_t epoch() const { return m_reliable.epoch(); }

    // Outcomes seen, so that a run can show that it reached all of them.
    struct {
        std::uint64_t frames = 0, dmas = 0, notifications = 0, events = 0,
                      nacks = 0, peers = 0;
        std::uint64_t refusals[64] = {};
    } seen;
    counter_registry counters{PRAWN_CONTEXTS};

private:
    void on_translation(utlb_request& r);
    void on_dma(dma_request& r);
    void on_notification(notification_request& r);
    void on_refusal(refusal& r);
    void on_event(kernel_event_request& r);
    void on_nack(packet_ref& p);
    void on_peer(peer_event& e);
    void on_hello(packet_ref& p);
    void on_link(packet_ref& p);
    void on_credit(unsigned& n);
    void on_reply(control_reply& r);
    void answer_later();
    void answer();
    void control(block& target, control_op op, std::uint16_t context,
                 std::uint32_t index, std::uint32_t tag = 0);
    // Any export of which covers() says so, withdrawn ones included.
    template <typename F>
    bool any_export(F covers) const {
        for (const export_range& e : m_exports)
            if (e.valid && covers(e))
                return true;
        for (const export_range& e : m_withdrawn)
            if (covers(e))
                return true;
        return false;
    }

    timing_profile m_profile;
    block_env m_env;
    link_mac m_link_mac;
    reliable m_reliable;
    depacketizer m_depacketizer;
    ipt m_ipt;
    incoming_dma m_incoming_dma;

    checker<utlb_request, receive_path, &receive_path::on_translation> m_utlb{
        *this};
    checker<dma_request, receive_path, &receive_path::on_dma> m_dma{*this};
    checker<notification_request, receive_path, &receive_path::on_notification>
        m_notify{*this};
    checker<refusal, receive_path, &receive_path::on_refusal> m_refusal{*this};
    checker<kernel_event_request, receive_path, &receive_path::on_event>
        m_event{*this};
    checker<packet_ref, receive_path, &receive_path::on_nack> m_nack{*this};
    checker<peer_event, receive_path, &receive_path::on_peer> m_peer{*this};
    checker<packet_ref, receive_path, &receive_path::on_hello> m_hello{*this};
    checker<packet_ref, receive_path, &receive_path::on_link> m_link{*this};
    checker<unsigned, receive_path, &receive_path::on_credit> m_credit{*this};
    checker<control_reply, receive_path, &receive_path::on_reply> m_reply{
        *this};

    std::vector<export_range> m_exports;
    std::array<std::uint32_t, PRAWN_CONTEXTS> m_lives{};
    // Ranges whose packets may still be on their way through incoming_dma:
    // until the drain that followed the withdrawal has been answered.
    struct withdrawn_range : export_range {
        std::uint32_t drain = 0;
    };
    std::vector<withdrawn_range> m_withdrawn;
    std::uint32_t m_drain = 0;  // the last one asked for
    std::deque<utlb_request> m_translations;
    std::deque<dma_request> m_dmas;
    bool m_fail_translation = false, m_fail_dma = false;
    std::uint64_t m_owed = 0;  // credits
    unsigned m_answers = 0;
    sc_core::sc_event m_answer;
};

}  // namespace fuzz
}  // namespace prawn

#endif
