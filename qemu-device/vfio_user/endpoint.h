// SPDX-License-Identifier: Apache-2.0
//
// One card's end of the protocol: its client's connection, the requests that
// wait for the device, config space, interrupts and guest memory maps.

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_ENDPOINT_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_ENDPOINT_H

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qemu-device/vfio_user/config_space.h"
#include "qemu-device/vfio_user/device.h"
#include "qemu-device/vfio_user/dma_messages.h"
#include "qemu-device/vfio_user/guest_memory.h"
#include "qemu-device/vfio_user/irqs.h"
#include "qemu-device/vfio_user/log_limiter.h"
#include "qemu-device/vfio_user/message_reader.h"
#include "qemu-device/vfio_user/server.h"
#include "qemu-device/vfio_user/version.h"

namespace prawn {
namespace vfio_user {

/// What an endpoint asks of the thread that runs it.
class event_loop
{
public:
    virtual ~event_loop() = default;

    /// Any thread: have service() called soon.
    virtual void wake() = 0;

    /// Protocol thread: call on_unmask_event() when `fd` is readable, or stop.
    virtual void watch_unmask(std::size_t endpoint, int fd, bool start) = 0;
};

/// Throws std::invalid_argument with the reason if no PCI function can look
/// like this.
void check_identity(const identity& id);

class endpoint
{
public:
    using clock = std::chrono::steady_clock;

    endpoint(std::size_t index, std::string name, device& dev,
             const server_options& options, event_loop& loop);
    ~endpoint();
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    // Protocol thread, or the borrower (server.h). -------------------------
    /// No client, and the device has let go of the last one.
    bool is_free() const { return m_state == state::FREE; }
    /// It will soon be known whether the card is free or taken: the next
    /// client is to wait for that.
    bool holds_up_next() const {
        return m_state == state::DRAINING || m_state == state::CONNECTED;
    }
    int socket() const { return m_socket.get(); }
    bool wants_input() const { return m_socket && !m_paused; }
    bool wants_output() const { return m_backlog_bytes != 0; }
    clock::time_point next_deadline();

    void attach(unique_fd socket);
    void on_input();
    void on_output();
    void on_hangup();
    /// Handles what a client that has hung up has sent, and its end.
    void finish_if_gone();
    void on_unmask_event() { m_irqs.on_intx_unmask_event(); }
    void service(clock::time_point now);
    void refuse();
    /// At stop: drops the client, tells nobody.
    void shut_down();

    // Any thread. ---------------------------------------------------------
    void complete_read(std::uint64_t token, std::uint64_t value);
    void complete(std::uint64_t token, int error);
    void resume();
    void trigger_msix(unsigned vector) { m_irqs.trigger_msix(vector); }
    void set_intx(bool level) { m_irqs.set_intx(level); }
    bool start_dma(dma_messages::operation op);
    endpoint_counters counters() const;
    bool is_connected() const;

    /// Tokens: endpoint + 1 (12 bits), slot (12), sequence number (40).
    static std::size_t index_of(std::uint64_t token) {
        return (token >> 52) - 1;
    }

private:
    enum class state { FREE, CONNECTED, NEGOTIATED, DRAINING };

    /// A request that waits for the device. Command 0 is the drain.
    struct slot {
        std::uint64_t token = 0;  ///< 0 = free
        std::uint16_t id = 0;
        std::uint16_t command = 0;
        bool no_reply = false;
        unsigned answers = 0;
        int error = 0;
        protocol::region_access access{};
        protocol::dma_unmap unmap{};
        std::uint64_t write_count = 0;
        std::vector<std::shared_ptr<memory_region>> regions;
    };

    // endpoint.cpp: connection and its end
    void process();
    bool can_go_on() const;
    bool must_pause();
    void violation(const char* what);
    void detach(const char* reason);
    void report_dma();

    // replies.cpp: tokens, answers, sending
    slot& take_slot(const protocol::header& head);
    reply_token token_for(const protocol::header& head,
                          const protocol::region_access& access);
    slot* find(std::uint64_t token);
    void release(slot& s);
    void answer(const slot& s);
    void send_locked(const void* data, std::size_t size);
    void queue_locked(const std::uint8_t* data, std::size_t size,
                      std::size_t sent);
    void send_reply(const protocol::header& head, const void* payload,
                    std::size_t size);
    void send_reply_locked(std::uint16_t id, std::uint16_t command,
                           const void* payload, std::size_t size);
    void send_error_locked(std::uint16_t id, std::uint16_t command, int error);
    void send_error(const message& msg, int error);
    void wake_if_paused();

    // dispatch.cpp: 0, or an errno value for the reply
    void handle(message& msg);
    int handle_command(message& msg);
    void handle_reply(const message& msg);
    int on_version(message& msg);
    int on_device_info(const message& msg);
    int on_region_info(const message& msg);
    int on_region_io_fds(const message& msg);
    int on_irq_info(const message& msg);
    int on_set_irqs(message& msg);
    int on_dma_map(message& msg);
    int on_dma_unmap(const message& msg);
    int on_reset(const message& msg);
    void reset_function(reply_token token);
    std::uint64_t mapped_bytes();

    // region_access.cpp
    int on_region_read(const message& msg);
    int on_region_write(const message& msg);
    int on_write_multi(const message& msg);
    bool goes_to_device(const protocol::region_access& access) const;
    int check_access(const protocol::region_access& access) const;
    std::uint64_t region_size(std::uint32_t region) const;
    enum class target { DEVICE, TABLE, PBA };
    target locate(const protocol::region_access& access,
                  std::uint64_t& offset) const;
    void write_bar(const protocol::region_access& access,
                   const std::uint8_t* data, bool posted, reply_token token);
    bool write_config(const protocol::region_access& access,
                      const std::uint8_t* data);
    void apply_config();

    const std::size_t m_index;
    const std::string m_name;
    device& m_device;
    const identity m_identity;
    const server_options m_options;
    event_loop& m_loop;

    // Protocol thread or borrower only.
    state m_state = state::FREE;
    message_reader m_reader;
    config_space m_config;
    irqs m_irqs;
    capabilities m_agreed;
    std::map<std::uint64_t, std::shared_ptr<memory_region>> m_maps;
    bool m_bus_master = false;
    log_limiter m_limiter;

    // Shared; m_socket changes on the protocol thread only, with the lock.
    mutable std::mutex m_lock;
    unique_fd m_socket;
    std::vector<slot> m_slots;
    std::vector<std::uint32_t> m_free;
    std::uint64_t m_sequence = 0;
    std::deque<std::vector<std::uint8_t>> m_backlog;
    std::size_t m_backlog_sent = 0;  ///< of the first message
    dma_messages m_dma;
    bool m_drained = false;

    std::atomic<clock::time_point> m_version_deadline{clock::time_point::max()};
    std::atomic<std::size_t> m_backlog_bytes{0};
    std::atomic<std::size_t> m_free_slots{0};
    std::atomic<bool> m_paused{false};
    std::atomic<bool> m_connected{false};

    std::atomic<std::uint64_t> m_connections{0};
    std::atomic<std::uint64_t> m_refused{0};
    std::atomic<std::uint64_t> m_messages{0};
    std::atomic<std::uint64_t> m_errors{0};
    std::atomic<std::uint64_t> m_disconnects{0};
    std::atomic<std::uint64_t> m_violations{0};
    std::atomic<std::uint64_t> m_late_replies{0};
};

}  // namespace vfio_user
}  // namespace prawn

#endif
