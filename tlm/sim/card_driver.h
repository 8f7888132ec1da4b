// SPDX-License-Identifier: Apache-2.0
// A driver without a guest, for tests of whole cards and for workloads: does
// with a memory_host what prawn.ko and libvmmc do in a guest, through the same
// registers, rings and tables. For use in an SC_THREAD; what takes too long or
// is refused is a failure, which the owner hears of.

#ifndef PRAWN_SIM_CARD_DRIVER_H
#define PRAWN_SIM_CARD_DRIVER_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/memory_host.h"
#include "nic/types.h"
#include "sim/node.h"

namespace prawn {
namespace model {

class card_driver;

// One process's context.
class context
{
public:
    context(card_driver& driver, std::uint16_t id, unsigned log2,
            unsigned notify_log2);

    std::uint16_t id() const { return m_id; }

    // Memory of the process. Pages are new and zero, unless aliased: then all
    // of them are the pages that begin at bus address `alias` (repeated after
    // `alias_pages`).
    void map(std::uint64_t va, std::uint64_t pages, bool write = true,
             std::uint64_t alias = 0, std::uint64_t alias_pages = 1);
    // Takes the translations away, has them forgotten, then frees the pages.
    // False if the card did not acknowledge.
    bool unmap(std::uint64_t va, std::uint64_t pages);
    // Only what the kernel writes into the table.
    void clear_entries(std::uint64_t va, std::uint64_t pages);
    std::uint64_t bus_address(std::uint64_t va) const;
    void write(std::uint64_t va, const void* data, std::size_t size);
    std::vector<std::uint8_t> read(std::uint64_t va, std::size_t size) const;
    void fill(std::uint64_t va, std::size_t size, std::uint32_t seed);

    // Commands. post() only writes the entry, ring() tells the card.
    std::uint32_t post(const prawn_command& c);
    void ring();
    std::uint32_t send(std::uint32_t import, std::uint64_t va,
                       std::uint32_t length, std::uint64_t offset = 0,
                       bool notify = false, std::uint32_t immediate = 0);
    bool room() const { return m_produced - m_completed <= m_mask; }
    std::uint32_t capacity() const { return m_mask + 1; }  // commands

    // The next completion in order; the blocking form waits for it.
    bool poll(prawn_completion& out);
    prawn_completion wait_completion(double timeout_us = 50000);
    bool poll_notification(prawn_notification& out);
    prawn_notification wait_notification(double timeout_us = 50000);
    void consume_notifications();  // tells the card what has been polled
    void hold_notifications() { m_hold = true; }  // ring fills up
    void arm_notify();
    void arm_completion();
    std::uint32_t state();

    std::uint32_t produced() const { return m_produced; }
    std::uint32_t completed() const { return m_completed; }

private:
    friend class card_driver;
    std::uint64_t table_entry(std::uint64_t va, bool make);

    card_driver& m_driver;
    std::uint16_t m_id;
    std::uint32_t m_mask, m_notify_mask;
    std::uint64_t m_commands, m_completions, m_notifications, m_root;
    std::map<std::uint64_t, std::uint64_t> m_tables;  // va prefix -> page
    struct mapping {
        std::uint64_t bus;
        bool write;
        bool owned;
    };
    std::map<std::uint64_t, mapping> m_pages;  // by va
    std::uint32_t m_produced = 0, m_completed = 0, m_notified = 0;
    bool m_hold = false;
};

class card_driver
{
public:
    static constexpr unsigned ADMIN_LOG2 = 6, EVENT_LOG2 = 6;

    // failed gets one line; without it, a failure is a std::runtime_error.
    using failure = std::function<void(const std::string&)>;
    card_driver(memory_host& host, node& where, unsigned index,
                failure failed = {});
    void fail(const std::string& what) const;
    // Fails if it is not what is expected.
    void must(std::uint64_t got, const char* what,
              std::uint64_t expected = PRAWN_STATUS_OK) const;

    // From power-on, or after reset_card(): rings, enable. All contexts gone.
    void boot();
    void reset();      // CTRL.RESET, waits for READY
    void shut_down();  // the host goes away
    unsigned index() const { return m_index; }
    std::uint16_t epoch() const { return m_epoch; }
    memory_host& host() { return m_host; }
    node& where() { return m_node; }

    std::uint64_t alloc(std::uint64_t pages);
    void free(std::uint64_t address, std::uint64_t pages);

    // Admin ring.
    std::uint32_t post_admin(prawn_admin_command c);
    bool acked(std::uint32_t index);
    prawn_admin_ack wait_ack(std::uint32_t index, double timeout_us = 50000);
    std::uint16_t admin(const prawn_admin_command& c) {
        return wait_ack(post_admin(c)).status;
    }
    static prawn_admin_command command(unsigned opcode, unsigned context = 0,
                                       std::uint32_t index = 0);

    context& open(std::uint16_t id, unsigned log2 = 6,
                  unsigned notify_log2 = 6);
    std::uint16_t close(std::uint16_t id);  // CONTEXT_DISABLE, frees memory
    context& at(std::uint16_t id) { return *m_contexts.at(id); }
    bool is_open(std::uint16_t id) const { return m_contexts.count(id) != 0; }

    std::uint16_t set_export(std::uint16_t context, std::uint32_t index,
                             std::uint64_t va, std::uint64_t length,
                             std::uint64_t key, bool notify = true,
                             std::uint64_t cookie = 0);
    std::uint16_t clear_export(std::uint32_t index);
    std::uint16_t set_import(std::uint16_t context, std::uint32_t index,
                             const card_driver& peer, std::uint32_t export_id,
                             std::uint64_t key, std::uint64_t length,
                             std::uint64_t cookie = 0);
    std::uint16_t clear_import(std::uint32_t index);
    std::uint16_t invalidate(std::uint16_t context, std::uint64_t va,
                             std::uint64_t pages);
    std::uint16_t send_mgmt(unsigned node, const std::vector<std::uint8_t>& m);
    std::uint16_t grant(unsigned context, std::uint64_t address,
                        std::uint64_t pages, bool write);
    std::uint16_t revoke(unsigned context, std::uint64_t address,
                         std::uint64_t pages);

    bool poll_event(prawn_kernel_event& out);
    prawn_kernel_event wait_event(unsigned type, double timeout_us = 50000);

    std::uint64_t read(std::uint64_t offset, unsigned size);
    void write(std::uint64_t offset, unsigned size, std::uint64_t value);
    std::uint64_t counter(const std::string& name);

    // Waits until the condition holds; fails at the time-out.
    bool until(const std::function<bool()>& holds, double timeout_us,
               const char* what);

private:
    memory_host& m_host;
    node& m_node;
    unsigned m_index;
    failure m_failed;
    bool m_checked = false;
    std::uint16_t m_epoch = 0;
    std::uint64_t m_next_page;
    std::map<std::uint64_t, std::vector<std::uint64_t>> m_free;  // by pages
    std::uint64_t m_admin = 0, m_acks = 0, m_events = 0, m_message = 0;
    std::uint32_t m_admin_produced = 0, m_event_consumed = 0;
    std::map<std::uint16_t, std::unique_ptr<context>> m_contexts;
};

}  // namespace model
}  // namespace prawn

#endif
