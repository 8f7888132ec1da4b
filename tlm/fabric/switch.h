// SPDX-License-Identifier: Apache-2.0
// N-port crossbar switch between links of equal latency.

#ifndef PRAWN_FABRIC_SWITCH_H
#define PRAWN_FABRIC_SWITCH_H

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/link.h"

namespace prawn {

// Input-buffered, one virtual output queue (VOQ) for each pair of input and
// output, as deep as the credits of a link: a blocked output delays only what
// goes there. Each output takes the inputs that have something for it in turn
// (round robin, ties by port number), needs a credit of the receiving card for
// each packet, and sends at the bandwidth of a link.
//
// Cut-through: a packet starts to leave switch_latency after its first byte
// came in, if the output is free. All links run at one rate, so its last byte
// leaves switch_latency after it came in; later if it had to wait. The decision
// is made when the last byte is there (store and forward would add a whole
// serialization).
//
// Time: a packet is known here when it leaves its card, one link latency before
// it reaches the switch. All links have the same latency, therefore everything
// the switch sees (packets and returned credits) is early by the same amount,
// and the arbiter runs that much early too; two latencies are added on the way
// out. Instants at the cards are exact, and a packet costs one event less.
class crossbar final : public topology
{
public:
    crossbar(const fabric_env& env,
             std::vector<std::unique_ptr<credit_account>>& accounts);
    void enter(unsigned destination, hop item) override;
    void taken(unsigned node, unsigned count) override;

private:
    struct waiting {
        hop item;
        sc_core::sc_time arrival;
    };
    class output;

    std::vector<std::unique_ptr<output>> m_outputs;
    counter& m_credit_errors;
};

// One output with its VOQs.
class crossbar::output final : public sc_core::sc_module
{
public:
    output(sc_core::sc_module_name name, const fabric_env& env, unsigned node,
           std::vector<std::unique_ptr<credit_account>>& accounts);

    void enter(hop item);
    // False: more credits than there are.
    bool give(unsigned count);

private:
    void ask();
    void arbitrate();
    unsigned next_input() const;
    void grant(unsigned input);

    unsigned m_node;
    const link_rate m_rate;
    sc_core::sc_time m_switch_latency;
    sc_core::sc_time m_links;  // both latencies
    std::vector<std::unique_ptr<credit_account>>& m_accounts;
    const unsigned m_limit;
    unsigned m_credits;
    std::vector<ring<waiting>> m_queues;  // by input
    std::uint32_t m_ready = 0;            // inputs with something for us
    unsigned m_turn = 0;                  // first input to be looked at
    sc_core::sc_time m_free;              // when the last packet has left
    bool m_asked = false;
    sc_core::sc_event m_arbitrate;
    wire m_wire;
    counter& m_credit_waits;
};

}  // namespace prawn

#endif
