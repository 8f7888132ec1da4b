// SPDX-License-Identifier: Apache-2.0
// Between the protocol thread of the vfio-user server and the SystemC kernel:
// one card's host, when that host is a QEMU.

#ifndef PRAWN_QEMU_DEVICE_BRIDGE_BRIDGE_H
#define PRAWN_QEMU_DEVICE_BRIDGE_BRIDGE_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <systemc>
#include <tlm>

#include "host/host_port.h"
#include "host/transport.h"
#include "qemu-device/bridge/kernel_waker.h"
#include "qemu-device/bridge/paced_host.h"
#include "qemu-device/vfio_user/device.h"
#include "qemu-device/vfio_user/guest_memory.h"
#include "qemu-device/vfio_user/server.h"

namespace prawn {

// Two halves. The protocol thread calls the functions of vfio_user::device;
// they put a request into a queue and wake the kernel. Everything else runs on
// the SystemC thread, which takes all that is queued at each wake-up, hands it
// to the host port in order, and answers directly: a BAR read crosses threads
// once in each direction.
//
// A guest that reads registers one after the other waits mostly for threads to
// wake up. So after an answer that followed the one before within BURST, the
// SystemC thread looks for the next request itself for SPIN, with the client's
// socket on loan, if the model has nothing to do: only in a burst of reads,
// never while idle.
//
// A read waits for the card's registers only, never for DMA: what DMA there is
// goes on behind it. So a guest that is stopped in a read is never waited for.
//
// DMA is one copy between model and guest, at the instant at which the bus
// hands it over. Memory without a descriptor is reached by message; the
// transaction is answered when the message is. An unmap cancels the messages
// of its range (they fail) instead of waiting for them: the guest may be
// waiting for the unmap, and could not serve them.
//
// Order: accesses, maps, unmaps, resets of one guest happen in the order in
// which it sent them. An access that is on the bus when a reset comes is lost,
// as the host port says.
class bridge final : public sc_core::sc_module,
                     public vfio_user::device,
                     public interrupt_if
{
public:
    tlm::tlm_initiator_socket<> bar_out{"bar_out"};
    tlm::tlm_target_socket<> dma_in{"dma_in"};
    sc_core::sc_export<interrupt_if> interrupt_in{"interrupt_in"};
    sc_core::sc_port<card_control_if> control_out{"control_out"};
    sc_core::sc_port<memory_map_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> map_out{
        "map_out"};

    // Requests that may wait; beyond it the client is not read from.
    static constexpr std::size_t QUEUE_LIMIT = 4096;

    // Reads that follow each other within BURST are a burst; after each of its
    // answers the next is looked for during SPIN.
    static constexpr std::chrono::microseconds BURST{200};
    static constexpr std::chrono::microseconds SPIN{50};

    explicit bridge(sc_core::sc_module_name name);
    ~bridge() override;

    // Before the server starts.
    void attach(vfio_user::server& server, vfio_user::endpoint_id endpoint);

    // In step with the guest (lockstep/pacer.h), from before the server starts:
    // nothing happens by itself any more. collect() takes what has come over
    // the socket and lets each request happen at the guest's time at which it
    // came, but for posted writes: those come by write_at(), and their copies
    // on the socket are compared. SystemC thread, between two steps. Returns
    // the time (ps) of the last request for whose answer the guest waits.
    void pace(paced_host& pacer, unsigned node);
    std::uint64_t collect();
    void write_at(std::uint64_t time_ps, unsigned bar, std::uint64_t offset,
                  unsigned size, std::uint64_t data);

    struct statistics {
        std::uint64_t mismatched = 0;  // writes that differ on the socket
        std::uint64_t reads = 0, writes = 0;
        std::uint64_t dma_direct = 0, dma_messages = 0, dma_refused = 0;
        std::uint64_t dma_cancelled = 0, interrupts = 0, throttled = 0;
        std::uint64_t wakeups = 0, spins = 0, spins_hit = 0;
    };
    const statistics& stats() const { return m_stats; }

    // vfio_user::device; protocol thread.
    const vfio_user::identity& get_identity() const override {
        return m_identity;
    }
    bool can_accept() const override;
    void connected() override;
    void disconnected(vfio_user::reply_token token) override;
    void bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                  vfio_user::reply_token token) override;
    void bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                   std::uint64_t data, bool posted,
                   vfio_user::reply_token token) override;
    void reset(vfio_user::reply_token token) override;
    void bus_master(bool enabled) override;
    void dma_map(std::shared_ptr<vfio_user::memory_region> region) override;
    void dma_unmap(std::shared_ptr<vfio_user::memory_region> region,
                   vfio_user::reply_token token) override;

private:
    using clock = std::chrono::steady_clock;
    using region_ref = std::shared_ptr<vfio_user::memory_region>;

    // A DMA transaction that travels by message.
    struct message {
        tlm::tlm_generic_payload* trans = nullptr;  // null: cancelled
        std::vector<std::uint8_t> data;
        int error = 0;
    };
    struct request {
        enum kind_t : std::uint8_t {
            CONNECTED,
            DISCONNECTED,
            READ,
            WRITE,
            RESET,
            BUS_MASTER,
            MAP,
            UNMAP
        } kind = CONNECTED;
        std::uint8_t bar = 0;
        std::uint8_t size = 0;
        bool flag = false;  // posted; bus master
        std::uint64_t offset = 0;
        std::uint64_t data = 0;
        std::uint64_t time = 0;  // ps; in step with the guest only
        vfio_user::reply_token token;
        region_ref region;
    };
    // One BAR access on its way through the host port.
    struct access : tlm::tlm_generic_payload {
        using tlm::tlm_generic_payload::tlm_generic_payload;
        std::uint64_t data = 0;
        vfio_user::reply_token token;
        std::uint32_t life = 0;
        bar_extension* bar = nullptr;
    };
    struct access_pool : tlm::tlm_mm_interface {
        std::vector<std::unique_ptr<access>> all;
        std::vector<access*> unused;
        access* get();
        void free(tlm::tlm_generic_payload* trans) override;
    };

    // Protocol thread.
    void push(request r);
    void happen(request r);
    void due();
    void compare_writes();
    void message_done(const std::shared_ptr<message>& m);

    // SystemC thread.
    void take();
    void spin();
    void give_back();
    void end_of_simulation() override;
    void pump();
    void execute(request& r);
    void send_access(const request& r);
    void answer_read(const access& a);
    void unmap(request& r);
    void cancel(std::uint64_t first, std::uint64_t last);
    void disconnect(vfio_user::reply_token token);
    void finish_message(message& m);
    tlm::tlm_sync_enum dma(tlm::tlm_generic_payload& trans,
                           tlm::tlm_phase& phase);
    unsigned peek(tlm::tlm_generic_payload& trans);
    bool start_message(tlm::tlm_generic_payload& trans);
    tlm::tlm_sync_enum bar_response(tlm::tlm_generic_payload& trans,
                                    tlm::tlm_phase& phase);
    void msix(unsigned vector) override;
    void intx(bool level) override;

    vfio_user::identity m_identity;
    vfio_user::server* m_server = nullptr;
    vfio_user::endpoint_id m_endpoint = 0;
    kernel_waker m_waker{"waker"};
    sc_core::sc_event m_again{"again"};
    sc_core::sc_event m_look{"look"};
    sc_core::sc_event m_due{"due_time"};

    // Shared between the threads.
    mutable std::mutex m_mutex;
    std::vector<request> m_incoming;
    std::vector<std::shared_ptr<message>> m_done;
    std::atomic<std::size_t> m_queued{0};  // in m_incoming and m_work
    mutable std::atomic<bool> m_throttled{false};

    // SystemC thread only.
    forward_end<bridge> m_dma_end;
    backward_end<bridge> m_bar_end;
    std::vector<request> m_taken;
    std::vector<std::shared_ptr<message>> m_done_taken;
    std::deque<request> m_work;
    access_pool m_accesses;
    access* m_door = nullptr;  // END_REQ to come
    std::uint32_t m_life = 0;  // of the client
    std::uint64_t m_order = 0;
    bool m_bus_master = false;
    vfio_user::guest_memory m_memory;
    std::vector<std::shared_ptr<message>> m_messages;
    clock::time_point m_answered;  // the last read
    bool m_lent = false;           // the client's socket, to this thread
    bool m_spinning = false;       // it is this thread that pushes

    // In step with the guest.
    paced_host* m_paced = nullptr;
    unsigned m_node = 0;
    std::deque<request> m_timed;           // by time
    std::deque<request> m_seen, m_copies;  // writes: by the plugin, by socket

    statistics m_stats;
};

}  // namespace prawn

#endif
