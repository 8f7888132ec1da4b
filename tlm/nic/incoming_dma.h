// SPDX-License-Identifier: Apache-2.0
// Writes what the network brings into the memory of processes.

#ifndef PRAWN_NIC_INCOMING_DMA_H
#define PRAWN_NIC_INCOMING_DMA_H

#include <array>
#include <cstdint>
#include <vector>

#include "nic/contracts.h"
#include "nic/control_channel.h"
#include "nic/received_messages.h"
#include "support/input.h"
#include "support/ring.h"

namespace prawn {

struct incoming_dma_config {
    unsigned window = 16;  // packets in flight, 1 to MAX_WINDOW
};

// Each packet goes through a window of fixed size, in order:
//   accepted: in the same instant its translations are asked for (two if it
//   crosses a page); answers may overtake one another;
//   its DMA is begun when all of its translations have come and every packet
//   before it has begun: memory is written in the order of arrival;
//   retired when its DMA and every packet before it are done: then the
//   notification, or the refusal RECEIVE_FAULT.
// A packet whose translation fails writes nothing. A message of which a packet
// failed, or never came, raises no notification and is not counted.
//
// Payload is written straight out of the packet. No time of its own: requests
// leave combinationally, utlb and dma_engine register them.
//
// CONTEXT_DISABLE: packets of the context whose DMA has not begun are refused
// BAD_EXPORT, and so are those that come later although they are of the life
// that has ended; none of them raises a notification any more; answered when
// none of its DMA is in flight. DRAIN is answered when all packets that were in
// the window have left it.
//
// Throws std::invalid_argument if the configuration makes no sense.
class incoming_dma final : public incoming_dma_base, private control_handler
{
public:
    static constexpr unsigned MAX_WINDOW = 256;

    incoming_dma(sc_core::sc_module_name name, const block_env& env,
                 const incoming_dma_config& config = {});

    put_if<control_request>& control_in() override { return m_control; }
    put_if<delivery>& delivery_in() override { return m_delivery_in; }
    put_if<utlb_reply>& utlb_reply_in() override { return m_utlb_reply_in; }
    put_if<dma_reply>& dma_reply_in() override { return m_dma_reply_in; }
    void reset() override;

private:
    // One packet in the window.
    struct operation {
        delivery what;
        std::uint64_t address[2] = {};  // bus address of each piece
        std::uint32_t length[2] = {};   // of each piece
        std::uint16_t status = 0;
        std::uint8_t pieces = 0;
        std::uint8_t asked = 0;       // translations requested
        std::uint8_t translated = 0;  // and answered
        std::uint8_t begun = 0;       // DMAs requested
        std::uint8_t done = 0;        // and answered
    };
    struct drain {
        std::uint32_t tag = 0;
        std::uint64_t upto = 0;  // number of the first packet not awaited
    };
    struct disable {
        std::uint32_t tag = 0;
        std::uint16_t context = 0;
    };

    void end_of_elaboration() override;
    void control(const control_request& request) override;
    void begin_disable(const control_request& request);
    bool in_flight(std::uint16_t context) const;
    bool ended(const delivery& item) const;
    void cancel(operation& op);
    void finish_waiting();

    bool receive(delivery& item);
    const sc_core::sc_event& receive_room() const { return m_room; }
    void take_translation(utlb_reply& reply);
    void take_done(dma_reply& reply);

    void work();
    void ask();
    void write();
    bool write_pieces(operation& op, std::uint64_t number);
    void retire();
    void deliver(const operation& op);
    void refuse(const operation& op);

    operation& at(std::uint64_t number) {
        return m_window[number % m_window.size()];
    }
    std::uint32_t tag_of(std::uint64_t number, unsigned piece) const;
    // Null: an answer to somebody before the last reset.
    operation* find(std::uint32_t tag);

    control_channel m_control;
    input<delivery, incoming_dma, &incoming_dma::receive,
          &incoming_dma::receive_room>
        m_delivery_in;
    taker<utlb_reply, incoming_dma, &incoming_dma::take_translation>
        m_utlb_reply_in;
    taker<dma_reply, incoming_dma, &incoming_dma::take_done> m_dma_reply_in;

    // Packets by number: retired < m_head <= m_write <= m_ask <= m_tail. Those
    // from m_write on have not begun (m_write itself perhaps in part).
    std::vector<operation> m_window;
    std::uint64_t m_head = 0;
    std::uint64_t m_write = 0;
    std::uint64_t m_ask = 0;
    std::uint64_t m_tail = 0;
    std::uint32_t m_generation = 0;
    received_messages m_received;
    ring<drain> m_drains;
    ring<disable> m_disables;
    std::array<std::uint32_t, PRAWN_CONTEXTS> m_lives{};  // first one served
    bool m_refused = false;
    sc_core::sc_event m_room;

    counter& m_packets;
    counter& m_split;
    counter& m_faults;
    counter& m_cancelled;
    counter& m_notifications;
    counter& m_stalls;
    context_counter& m_bytes;
    context_counter& m_messages;
};

}  // namespace prawn

#endif
