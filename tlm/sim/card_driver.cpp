// SPDX-License-Identifier: Apache-2.0
#include "sim/card_driver.h"

#include <stdexcept>

namespace prawn {
namespace model {

namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

std::uint64_t pages_of(std::uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE;
}

}  // namespace

card_driver::card_driver(memory_host& host, node& where, unsigned index,
                         failure failed) :
    m_host(host),
    m_node(where),
    m_index(index),
    m_failed(std::move(failed)),
    m_next_page((std::uint64_t{index} + 1) << 32) {}

void card_driver::fail(const std::string& what) const {
    const std::string line = "node " + std::to_string(m_index) + ": " + what;
    if (!m_failed)
        throw std::runtime_error(line);
    m_failed(line);
}

void card_driver::must(std::uint64_t got, const char* what,
                       std::uint64_t expected) const {
    if (got != expected)
        fail(std::string(what) + ": " + std::to_string(got) + ", not " +
             std::to_string(expected));
}

bool card_driver::until(const std::function<bool()>& holds, double timeout_us,
                        const char* what) {
    using sc_core::sc_time;
    const sc_time end =
        sc_core::sc_time_stamp() + sc_time(timeout_us, sc_core::SC_US);
    while (!holds()) {
        if (sc_core::sc_time_stamp() > end) {
            fail(std::string("timed out: ") + what);
            return false;
        }
        sc_core::wait(sc_time(200, sc_core::SC_NS));
    }
    return true;
}

// -- Memory -----------------------------------------------------------------

std::uint64_t card_driver::alloc(std::uint64_t pages) {
    std::vector<std::uint64_t>& unused = m_free[pages];
    std::uint64_t address = m_next_page;
    if (unused.empty()) {
        m_next_page += (pages + 1) * PAGE;  // a hole behind each
    } else {
        address = unused.back();
        unused.pop_back();
    }
    m_host.map(address, pages * PAGE);
    return address;
}

void card_driver::free(std::uint64_t address, std::uint64_t pages) {
    m_host.unmap(address, pages * PAGE);
    m_free[pages].push_back(address);
}

// -- Registers --------------------------------------------------------------

std::uint64_t card_driver::read(std::uint64_t offset, unsigned size) {
    return m_host.read(0, offset, size);
}

void card_driver::write(std::uint64_t offset, unsigned size,
                        std::uint64_t value) {
    m_host.write(0, offset, size, value);
}

std::uint64_t card_driver::counter(const std::string& name) {
    const counter_registry& all = m_node.counters();
    for (std::size_t i = 0; i < all.size(); i++)
        if (all.name(i) == name)
            return all.value(i);
    fail("no counter " + name);
    return 0;
}

void card_driver::boot() {
    m_contexts.clear();
    m_admin_produced = m_event_consumed = 0;
    m_host.set_attached(true);
    m_host.set_bus_master(true);
    until([&] { return read(PRAWN_BAR0_STATUS, 4) & PRAWN_STATUS_READY_MASK; },
          1000, "READY after reset");
    must(read(PRAWN_BAR0_ID, 4), "register ID", PRAWN_ID_MAGIC);
    m_checked = read(PRAWN_BAR0_FEATURES, 8) & PRAWN_FEATURES_CHECKER_MASK;
    m_epoch = static_cast<std::uint16_t>(read(PRAWN_BAR0_EPOCH, 4));
    if (!m_admin) {
        m_admin = alloc(pages_of(sizeof(prawn_admin_command) << ADMIN_LOG2));
        m_acks = alloc(pages_of(sizeof(prawn_admin_ack) << ADMIN_LOG2));
        m_events = alloc(pages_of(sizeof(prawn_kernel_event) << EVENT_LOG2));
        m_message = alloc(1);
    }
    // What an earlier life left must not look like an answer.
    const std::vector<std::uint8_t> zero(sizeof(prawn_kernel_event)
                                         << EVENT_LOG2);
    m_host.write_memory(m_acks, zero.data(),
                        sizeof(prawn_admin_ack) << ADMIN_LOG2);
    m_host.write_memory(m_events, zero.data(), zero.size());
    write(PRAWN_BAR0_ADMIN_BASE, 8, m_admin);
    write(PRAWN_BAR0_ADMIN_ACK_BASE, 8, m_acks);
    write(PRAWN_BAR0_ADMIN_LOG2, 4, ADMIN_LOG2);
    write(PRAWN_BAR0_EVENT_BASE, 8, m_events);
    write(PRAWN_BAR0_EVENT_LOG2, 4, EVENT_LOG2);
    write(PRAWN_BAR0_CTRL, 4, PRAWN_CTRL_ENABLE_MASK);
    must(read(PRAWN_BAR0_CTRL, 4), "register CTRL", PRAWN_CTRL_ENABLE_MASK);
}

void card_driver::reset() {
    write(PRAWN_BAR0_CTRL, 4, PRAWN_CTRL_RESET_MASK);
    until([&] { return !(read(PRAWN_BAR0_CTRL, 4) & PRAWN_CTRL_RESET_MASK); },
          1000, "CTRL.RESET");
}

void card_driver::shut_down() {
    m_host.set_attached(false);
    m_contexts.clear();
}

// -- Admin ring -------------------------------------------------------------

prawn_admin_command card_driver::command(unsigned opcode, unsigned context,
                                         std::uint32_t index) {
    prawn_admin_command c{};
    c.opcode = static_cast<std::uint8_t>(opcode);
    c.context = static_cast<std::uint16_t>(context);
    c.index = index;
    return c;
}

std::uint32_t card_driver::post_admin(prawn_admin_command c) {
    const std::uint32_t mask = (1u << ADMIN_LOG2) - 1;
    if (m_admin_produced > mask)
        wait_ack(m_admin_produced - mask - 1);
    const std::uint32_t index = m_admin_produced++;
    m_host.store(m_admin + std::uint64_t{index & mask} * sizeof(c), c);
    write(PRAWN_BAR0_ADMIN_DOORBELL, 4, m_admin_produced);
    return index;
}

bool card_driver::acked(std::uint32_t index) {
    const std::uint32_t mask = (1u << ADMIN_LOG2) - 1;
    const auto ack = m_host.load<prawn_admin_ack>(
        m_acks + std::uint64_t{index & mask} * sizeof(prawn_admin_ack));
    return static_cast<std::int32_t>(ack.seq - (index + 1)) >= 0 && ack.seq;
}

prawn_admin_ack card_driver::wait_ack(std::uint32_t index, double timeout_us) {
    const std::uint32_t mask = (1u << ADMIN_LOG2) - 1;
    if (!until([&] { return acked(index); }, timeout_us, "admin ack")) {
        prawn_admin_ack none{};
        none.status = 0xffff;
        return none;
    }
    return m_host.load<prawn_admin_ack>(m_acks + std::uint64_t{index & mask} *
                                                     sizeof(prawn_admin_ack));
}

std::uint16_t card_driver::grant(unsigned context, std::uint64_t address,
                                 std::uint64_t pages, bool write) {
    if (!m_checked)
        return PRAWN_STATUS_OK;
    auto c = command(PRAWN_ADMIN_OPCODE_GRANT, context);
    c.a = address;
    c.b = pages;
    c.c = write;
    return admin(c);
}

std::uint16_t card_driver::revoke(unsigned context, std::uint64_t address,
                                  std::uint64_t pages) {
    if (!m_checked)
        return PRAWN_STATUS_OK;
    auto c = command(PRAWN_ADMIN_OPCODE_REVOKE, context);
    c.a = address;
    c.b = pages;
    return admin(c);
}

std::uint16_t card_driver::set_export(std::uint16_t context,
                                      std::uint32_t index, std::uint64_t va,
                                      std::uint64_t length, std::uint64_t key,
                                      bool notify, std::uint64_t cookie) {
    auto c = command(PRAWN_ADMIN_OPCODE_IPT_SET, context, index);
    c.a = va;
    c.b = key;
    c.c = length;
    c.d = cookie;
    c.e = notify ? PRAWN_IPT_FLAG_NOTIFY : 0;
    return admin(c);
}

std::uint16_t card_driver::clear_export(std::uint32_t index) {
    return admin(command(PRAWN_ADMIN_OPCODE_IPT_CLEAR, 0, index));
}

std::uint16_t card_driver::set_import(std::uint16_t context,
                                      std::uint32_t index,
                                      const card_driver& peer,
                                      std::uint32_t export_id,
                                      std::uint64_t key, std::uint64_t length,
                                      std::uint64_t cookie) {
    auto c = command(PRAWN_ADMIN_OPCODE_OPT_SET, context, index);
    c.a = peer.index() | std::uint64_t{peer.epoch()} << 16 |
          std::uint64_t{export_id} << 32;
    c.b = key;
    c.c = length;
    c.d = cookie;
    return admin(c);
}

std::uint16_t card_driver::clear_import(std::uint32_t index) {
    return admin(command(PRAWN_ADMIN_OPCODE_OPT_CLEAR, 0, index));
}

std::uint16_t card_driver::invalidate(std::uint16_t context, std::uint64_t va,
                                      std::uint64_t pages) {
    auto c = command(PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE, context);
    c.a = va;
    c.b = pages;
    return admin(c);
}

std::uint16_t card_driver::send_mgmt(unsigned node,
                                     const std::vector<std::uint8_t>& m) {
    m_host.write_memory(m_message, m.data(), m.size());
    auto c = command(PRAWN_ADMIN_OPCODE_MGMT_SEND, 0, node);
    c.a = m_message;
    c.b = m.size();
    return admin(c);
}

// -- Kernel events ----------------------------------------------------------

bool card_driver::poll_event(prawn_kernel_event& out) {
    const std::uint32_t mask = (1u << EVENT_LOG2) - 1;
    out = m_host.load<prawn_kernel_event>(
        m_events +
        std::uint64_t{m_event_consumed & mask} * sizeof(prawn_kernel_event));
    if (out.seq != m_event_consumed + 1)
        return false;
    m_event_consumed++;
    write(PRAWN_BAR0_EVENT_CONSUMED, 4, m_event_consumed);
    return true;
}

prawn_kernel_event card_driver::wait_event(unsigned type, double timeout_us) {
    prawn_kernel_event e{};
    const bool came = until([&] { return poll_event(e) && e.type == type; },
                            timeout_us, "kernel event");
    return came ? e : prawn_kernel_event{};
}

// -- Contexts ---------------------------------------------------------------

context& card_driver::open(std::uint16_t id, unsigned log2,
                           unsigned notify_log2) {
    auto one = std::make_unique<context>(*this, id, log2, notify_log2);
    auto c = command(PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE, id, 1 + id % 15);
    c.a = one->m_commands;
    c.b = one->m_completions;
    c.c = one->m_notifications;
    c.d = one->m_root;
    c.e = log2 | notify_log2 << 8;
    must(admin(c), "CONTEXT_ENABLE");
    return *(m_contexts[id] = std::move(one));
}

std::uint16_t card_driver::close(std::uint16_t id) {
    const std::uint16_t status =
        admin(command(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE, id));
    context& c = *m_contexts.at(id);
    // At once, so that the checker sees what an early acknowledgement allowed;
    // a command would come later.
    const auto revoke_now = [this](std::uint16_t of, std::uint64_t address,
                                   std::uint64_t pages) {
        if (m_checked) {
            must(m_node.checker()->revoke(of, address, pages), "revoke");
        }
    };
    for (const auto& [va, page] : c.m_pages) {
        revoke_now(id, page.bus, 1);
        if (page.owned)
            free(page.bus, 1);
    }
    for (const auto& [prefix, page] : c.m_tables) {
        revoke_now(KERNEL_CONTEXT, page, 1);
        free(page, 1);
    }
    for (const auto& [address, bytes] :
         {std::pair<std::uint64_t, std::uint64_t>{c.m_commands,
                                                  (c.m_mask + 1) * 64ull},
          {c.m_completions, (c.m_mask + 1) * 64ull},
          {c.m_notifications, (c.m_notify_mask + 1) * 64ull}}) {
        revoke_now(KERNEL_CONTEXT, address, pages_of(bytes));
        free(address, pages_of(bytes));
    }
    m_contexts.erase(id);
    return status;
}

}  // namespace model
}  // namespace prawn
