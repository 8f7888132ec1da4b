// SPDX-License-Identifier: Apache-2.0
// The control input of a block: requests act at once, answers leave one cycle
// of the card's clock later, so that no requester is answered in its own call.

#ifndef PRAWN_NIC_CONTROL_CHANNEL_H
#define PRAWN_NIC_CONTROL_CHANNEL_H

#include "nic/contracts.h"
#include "support/ring.h"

namespace prawn {

// What a block does with a request; it calls answer() now or later.
class control_handler
{
public:
    virtual ~control_handler() = default;
    virtual void control(const control_request& request) = 0;
};

class control_channel final : public sc_core::sc_module,
                              public put_if<control_request>
{
public:
    control_channel(sc_core::sc_module_name name, block& owner,
                    control_handler& handler, sc_core::sc_time cycle) :
        sc_core::sc_module(name),
        m_owner(owner),
        m_handler(handler),
        m_cycle(cycle) {
        SC_HAS_PROCESS(control_channel);
        SC_METHOD(send);
        dont_initialize();
        sensitive << m_due;
    }

    bool try_put(control_request& request) override {
        m_handler.control(request);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_never; }

    void answer(std::uint32_t tag, std::uint16_t status,
                std::uint32_t value = 0) {
        m_answers.push_back({tag, status, value});
        m_due.notify(m_cycle);
    }
    void reset() {
        m_answers.clear();
        m_due.cancel();
    }

private:
    void send() {
        while (!m_answers.empty()) {
            control_reply reply = m_answers.pop_front();
            m_owner.control_out->try_put(reply);
        }
    }

    block& m_owner;
    control_handler& m_handler;
    sc_core::sc_time m_cycle;
    ring<control_reply> m_answers;
    sc_core::sc_event m_due;
    sc_core::sc_event m_never;
};

}  // namespace prawn

#endif
