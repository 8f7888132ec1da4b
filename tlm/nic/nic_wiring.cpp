// SPDX-License-Identifier: Apache-2.0
// Who is connected to whom; where test twins stand.
#include "nic/nic.h"
#include "support/handler.h"
#include "support/twin.h"

namespace prawn {

namespace {

// How an input may refuse; decides what a twin in front of it may do.
enum class input_kind {
    REFUSES,   // in order: the twin delays and refuses
    PER_ITEM,  // refuses single items: the twin only refuses, and holds none
    TAKES_ALL  // never refuses: the twin only delays
};

constexpr std::size_t TWIN_DEPTH = 4;
constexpr std::size_t UNLIMITED = std::size_t{1} << 30;

// End of ports that lead nowhere in this card.
template <typename T>
class sink final : public sc_core::sc_object, public put_if<T>
{
public:
    explicit sink(const char* name) : sc_core::sc_object(name) {}
    bool try_put(T&) override { return true; }
    const sc_core::sc_event& room() const override { return m_never; }

private:
    sc_core::sc_event m_never;
};

// Calls a function for each item.
template <typename T>
class call final : public sc_core::sc_object
{
public:
    call(const char* name, std::function<void(T&)> f) :
        sc_core::sc_object(name), in(std::move(f)) {}
    handler<T> in;
};

}  // namespace

class nic::wiring
{
public:
    wiring(nic& card, const nic_config& config) :
        m_card(card), m_config(config) {}

    // What to bind to, to reach an input of a block: the input or its twin.
    template <typename T>
    put_if<T>& to(const std::string& block, const std::string& port,
                  put_if<T>& input, input_kind kind, bool resettable = true) {
        if (!m_config.twins.count(block))
            return input;
        const bool refuses = kind != input_kind::TAKES_ALL;
        const std::size_t depth = kind == input_kind::PER_ITEM ? 0
                                  : refuses                    ? TWIN_DEPTH
                                                               : UNLIMITED;
        const std::uint64_t seed = m_config.twin_seed * 0x9e3779b97f4a7c15 +
                                   m_card.m_env.node * 1024u + m_number++;
        auto one = std::make_shared<twin<T>>(
            (block + "_" + port + "_twin").c_str(), seed,
            sc_core::sc_time(m_config.twin_delay_ns, sc_core::SC_NS),
            refuses ? m_config.twin_refuse_one_in : 0, depth);
        one->out.bind(input);
        twin<T>& result = *one;
        if (resettable)
            m_card.m_twin_resets.push_back([&result] { result.reset(); });
        m_card.m_parts.push_back(std::move(one));
        return result;
    }

    template <typename T>
    put_if<T>& nowhere(const char* name) {
        auto one = std::make_shared<sink<T>>(name);
        sink<T>& result = *one;
        m_card.m_parts.push_back(std::move(one));
        return result;
    }

    template <typename T>
    put_if<T>& function(const char* name, std::function<void(T&)> f) {
        auto one = std::make_shared<call<T>>(name, std::move(f));
        put_if<T>& result = one->in;
        m_card.m_parts.push_back(std::move(one));
        return result;
    }

    void connect();

private:
    void connect_host_side();
    void connect_control();
    void connect_dma();
    void connect_translation();
    void connect_send_path();
    void connect_receive_path();

    nic& m_card;
    const nic_config& m_config;
    std::uint64_t m_number = 0;

    // Inputs with several writers.
    put_if<kernel_event_request>* m_events = nullptr;
    put_if<notification_request>* m_notifications = nullptr;
    put_if<refusal>* m_refusals = nullptr;
    put_if<packet_ref>* m_mgmt = nullptr;
};

void nic::wiring::connect() {
    nic_blocks& b = m_card.m_blocks;
    m_events = &to("notifier", "event_in", b.notifier->event_in(),
                   input_kind::TAKES_ALL);
    m_notifications = &to("notifier", "notification_in",
                          b.notifier->notification_in(), input_kind::TAKES_ALL);
    m_refusals = &to("outgoing_fifo", "refusal_in",
                     b.outgoing_fifo->refusal_in(), input_kind::TAKES_ALL);
    m_mgmt = &to("outgoing_fifo", "mgmt_in", b.outgoing_fifo->mgmt_in(),
                 input_kind::PER_ITEM);
    connect_host_side();
    connect_control();
    connect_dma();
    connect_translation();
    connect_send_path();
    connect_receive_path();
}

void nic::wiring::connect_host_side() {
    nic_blocks& b = m_card.m_blocks;
    m_card.bar_in.bind(b.csr->bar_in);
    b.dma_bus->bind(m_card.dma_out);
    b.csr->backend.bind(m_card);
    b.ptp_clock->time_base.bind(m_card.time_base);
    b.csr->doorbell_out.bind(to("command_queue", "doorbell_in",
                                b.command_queue->doorbell_in(),
                                input_kind::TAKES_ALL));
    b.csr->update_out.bind(to("notifier", "update_in", b.notifier->update_in(),
                              input_kind::TAKES_ALL));
    b.notifier->cause_out.bind(
        to("csr", "cause_in", b.csr->cause_in(), input_kind::TAKES_ALL));
    b.notifier->msix_out.bind(
        function<unsigned>("msix", [this_card = &m_card](unsigned& vector) {
            this_card->interrupt_out->msix(vector);
        }));
}

void nic::wiring::connect_control() {
    nic_blocks& b = m_card.m_blocks;
    const struct {
        control_target target;
        const char* name;
        block* controlled;
    } targets[] = {
        {CONTROL_COMMAND_QUEUE, "command_queue", b.command_queue.get()},
        {CONTROL_PACKETIZER, "packetizer", b.packetizer.get()},
        {CONTROL_OPT, "opt", b.opt.get()},
        {CONTROL_IPT, "ipt", b.ipt.get()},
        {CONTROL_INCOMING_DMA, "incoming_dma", b.incoming_dma.get()},
        {CONTROL_UTLB, "utlb", b.utlb.get()},
        {CONTROL_NOTIFIER, "notifier", b.notifier.get()},
        {CONTROL_OUTGOING_FIFO, "outgoing_fifo", b.outgoing_fifo.get()}};
    for (const auto& t : targets) {
        b.admin_queue->request_out[t.target].bind(to(t.name, "control_in",
                                                     t.controlled->control_in(),
                                                     input_kind::TAKES_ALL));
        t.controlled->control_out.bind(
            to("admin_queue", "reply_in" + std::to_string(t.target),
               b.admin_queue->reply_in(t.target), input_kind::TAKES_ALL));
    }
    // Nobody controls these in this card.
    put_if<control_reply>& none = nowhere<control_reply>("no_control");
    for (block* one : {static_cast<block*>(b.csr.get()),
                       static_cast<block*>(b.admin_queue.get()),
                       static_cast<block*>(b.dma_engine.get()),
                       static_cast<block*>(b.reliable.get()),
                       static_cast<block*>(b.link_mac.get()),
                       static_cast<block*>(b.depacketizer.get()),
                       static_cast<block*>(b.ptp_clock.get())})
        one->control_out.bind(none);
    b.admin_queue->ack_out.bind(
        to("notifier", "ack_in", b.notifier->ack_in(), input_kind::TAKES_ALL));
    b.admin_queue->mgmt_out.bind(*m_mgmt);
    b.admin_queue->event_out.bind(*m_events);
    if (m_card.m_checker)
        b.admin_queue->grant_out.bind(*m_card.m_checker);
}

void nic::wiring::connect_dma() {
    nic_blocks& b = m_card.m_blocks;
    put_if<dma_reply>& nobody = nowhere<dma_reply>("no_dma");
    const struct {
        dma_channel channel;
        const char* name;
        put_port<dma_request>* out;
        put_if<dma_reply>* reply;
    } channels[] = {
        {DMA_NOTIFIER, "notifier", &b.notifier->dma_out,
         &b.notifier->dma_reply_in()},
        {DMA_ADMIN, "admin_queue", &b.admin_queue->dma_out,
         &b.admin_queue->dma_reply_in()},
        {DMA_UTLB, "utlb", &b.utlb->dma_out, &b.utlb->dma_reply_in()},
        {DMA_COMMAND, "command_queue", &b.command_queue->dma_out,
         &b.command_queue->dma_reply_in()},
        {DMA_INCOMING, "incoming_dma", &b.incoming_dma->dma_out,
         &b.incoming_dma->dma_reply_in()},
        {DMA_SEND, "packetizer", &b.packetizer->dma_out,
         &b.packetizer->dma_reply_in()},
        {DMA_PROXY, "", nullptr, &nobody}};
    for (const auto& c : channels) {
        if (c.out)
            c.out->bind(
                to("dma_engine", "request_in" + std::to_string(c.channel),
                   b.dma_engine->request_in(c.channel), input_kind::REFUSES));
        b.dma_engine->reply_out[c.channel].bind(
            to(c.name, "dma_reply_in", *c.reply, input_kind::TAKES_ALL));
    }
}

void nic::wiring::connect_translation() {
    nic_blocks& b = m_card.m_blocks;
    b.packetizer->utlb_out.bind(to("utlb", "request_in0",
                                   b.utlb->request_in(UTLB_SEND),
                                   input_kind::REFUSES));
    b.incoming_dma->utlb_out.bind(to("utlb", "request_in1",
                                     b.utlb->request_in(UTLB_RECEIVE),
                                     input_kind::REFUSES));
    b.utlb->reply_out[UTLB_SEND].bind(to("packetizer", "utlb_reply_in",
                                         b.packetizer->utlb_reply_in(),
                                         input_kind::TAKES_ALL));
    b.utlb->reply_out[UTLB_RECEIVE].bind(to("incoming_dma", "utlb_reply_in",
                                            b.incoming_dma->utlb_reply_in(),
                                            input_kind::TAKES_ALL));
    b.utlb->reply_out[UTLB_PROXY].bind(nowhere<utlb_reply>("no_proxy"));
    b.utlb->event_out.bind(*m_events);
}

void nic::wiring::connect_send_path() {
    nic_blocks& b = m_card.m_blocks;
    b.command_queue->job_out.bind(to(
        "packetizer", "job_in", b.packetizer->job_in(), input_kind::PER_ITEM));
    b.command_queue->event_out.bind(*m_events);
    b.packetizer->job_done_out.bind(to("command_queue", "job_done_in",
                                       b.command_queue->job_done_in(),
                                       input_kind::TAKES_ALL));
    b.packetizer->opt_out.bind(
        to("opt", "request_in", b.opt->request_in(), input_kind::REFUSES));
    b.opt->reply_out.bind(to("packetizer", "opt_reply_in",
                             b.packetizer->opt_reply_in(),
                             input_kind::TAKES_ALL));
    b.opt->notify_out.bind(*m_notifications);
    b.packetizer->completion_out.bind(to("notifier", "completion_in",
                                         b.notifier->completion_in(),
                                         input_kind::REFUSES));
    b.packetizer->packet_out.bind(to("outgoing_fifo", "packet_in",
                                     b.outgoing_fifo->packet_in(),
                                     input_kind::PER_ITEM));
    b.outgoing_fifo->packet_out.bind(
        to("reliable", "host_in", b.reliable->host_in(), input_kind::PER_ITEM));
    b.outgoing_fifo->event_out.bind(*m_events);
    b.reliable->link_out.bind(to("link_mac", "packet_in",
                                 b.link_mac->packet_in(),
                                 input_kind::PER_ITEM));
    b.reliable->hello_out.bind(*m_mgmt);
    b.link_mac->link_out.bind(m_card.link_out);
    // Links survive the reset of a card, and so must what is in these twins.
    m_card.m_credit_in = &to("link_mac", "credit_in", b.link_mac->credit_in(),
                             input_kind::TAKES_ALL, false);
    m_card.m_link_in = &to("link_mac", "link_in", b.link_mac->link_in(),
                           input_kind::TAKES_ALL, false);
}

void nic::wiring::connect_receive_path() {
    nic_blocks& b = m_card.m_blocks;
    b.link_mac->credit_out.bind(m_card.credit_out);
    b.link_mac->packet_out.bind(
        to("reliable", "link_in", b.reliable->link_in(), input_kind::PER_ITEM));
    b.reliable->host_out.bind(to("depacketizer", "packet_in",
                                 b.depacketizer->packet_in(),
                                 input_kind::REFUSES));
    b.reliable->peer_out.bind(to("admin_queue", "peer_in",
                                 b.admin_queue->peer_in(),
                                 input_kind::TAKES_ALL));
    b.depacketizer->data_out.bind(
        to("ipt", "packet_in", b.ipt->packet_in(), input_kind::REFUSES));
    b.depacketizer->event_out.bind(*m_events);
    b.depacketizer->nack_out.bind(to("admin_queue", "nack_in",
                                     b.admin_queue->nack_in(),
                                     input_kind::TAKES_ALL));
    b.ipt->delivery_out.bind(to("incoming_dma", "delivery_in",
                                b.incoming_dma->delivery_in(),
                                input_kind::REFUSES));
    b.incoming_dma->notify_out.bind(*m_notifications);
    b.reliable->refusal_out.bind(*m_refusals);
    b.depacketizer->refusal_out.bind(*m_refusals);
    b.ipt->refusal_out.bind(*m_refusals);
    b.incoming_dma->refusal_out.bind(*m_refusals);
    b.notifier->refusal_out.bind(*m_refusals);
}

nic::nic(sc_core::sc_module_name name, const block_env& env,
         const nic_config& config, grant_checker* checker) :
    sc_core::sc_module(name),
    m_env(env),
    m_events(env.events, env.node, block_id::CARD),
    m_checker(checker),
    m_blocks(make_blocks(config, env)),
    m_resets(env.counters->add("card.resets")) {
    SC_HAS_PROCESS(nic);
    wiring(*this, config).connect();
    if (m_checker) {
        SC_METHOD(check_failed);
        dont_initialize();
        sensitive << m_checker->failed_event();
    }
}

}  // namespace prawn
