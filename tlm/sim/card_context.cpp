// SPDX-License-Identifier: Apache-2.0
#include "sim/card_driver.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace prawn {
namespace model {

namespace {

constexpr std::uint64_t PAGE = PRAWN_PAGE_SIZE;

}  // namespace

context::context(card_driver& driver, std::uint16_t id, unsigned log2,
                 unsigned notify_log2) :
    m_driver(driver),
    m_id(id),
    m_mask((1u << log2) - 1),
    m_notify_mask((1u << notify_log2) - 1) {
    const auto ring = [&](unsigned size, bool write) {
        const std::uint64_t pages =
            ((std::uint64_t{64} << size) + PAGE - 1) / PAGE;
        const std::uint64_t address = driver.alloc(pages);
        driver.must(driver.grant(KERNEL_CONTEXT, address, pages, write),
                    "grant of a ring");
        return address;
    };
    m_commands = ring(log2, false);
    m_completions = ring(log2, true);
    m_notifications = ring(notify_log2, true);
    m_root = driver.alloc(1);
    driver.grant(KERNEL_CONTEXT, m_root, 1, false);
    m_tables[~std::uint64_t{0}] = m_root;
}

// Bus address of the entry for this page; 0 if a table is missing.
std::uint64_t context::table_entry(std::uint64_t va, bool make) {
    std::uint64_t table = m_root;
    for (unsigned level = 3; level > 0; level--) {
        const unsigned shift = 12 + 9 * level;
        const std::uint64_t entry = table + (va >> shift & 511) * 8;
        // Prefix and level name a table.
        const std::uint64_t name = va >> shift << shift | level;
        auto found = m_tables.find(name);
        if (found == m_tables.end()) {
            if (!make)
                return 0;
            const std::uint64_t page = m_driver.alloc(1);
            m_driver.must(m_driver.grant(KERNEL_CONTEXT, page, 1, false),
                          "grant of a table");
            m_driver.host().store(entry, page | PRAWN_TABLE_ENTRY_VALID_MASK);
            found = m_tables.emplace(name, page).first;
        }
        table = found->second;
    }
    return table + (va >> 12 & 511) * 8;
}

void context::map(std::uint64_t va, std::uint64_t pages, bool write,
                  std::uint64_t alias, std::uint64_t alias_pages) {
    for (std::uint64_t i = 0; i < pages; i++) {
        const std::uint64_t here = va + i * PAGE;
        const std::uint64_t bus =
            alias ? alias + i % alias_pages * PAGE : m_driver.alloc(1);
        m_pages[here] = {bus, write, !alias};
        if (!alias || i < alias_pages) {
            m_driver.must(m_driver.grant(m_id, bus, 1, write),
                          "grant of a page");
        }
        m_driver.host().store(table_entry(here, true),
                              bus | PRAWN_TABLE_ENTRY_VALID_MASK |
                                  (write ? PRAWN_TABLE_ENTRY_WRITE_MASK : 0));
    }
}

void context::clear_entries(std::uint64_t va, std::uint64_t pages) {
    for (std::uint64_t i = 0; i < pages; i++)
        m_driver.host().store(table_entry(va + i * PAGE, true),
                              std::uint64_t{0});
}

bool context::unmap(std::uint64_t va, std::uint64_t pages) {
    clear_entries(va, pages);
    const std::uint16_t status = m_driver.invalidate(m_id, va, pages);
    for (std::uint64_t i = 0; i < pages; i++) {
        const auto page = m_pages.find(va + i * PAGE);
        if (page == m_pages.end())
            continue;
        m_driver.revoke(m_id, page->second.bus, 1);
        if (page->second.owned)
            m_driver.free(page->second.bus, 1);
        m_pages.erase(page);
    }
    return status == PRAWN_STATUS_OK;
}

std::uint64_t context::bus_address(std::uint64_t va) const {
    return m_pages.at(va / PAGE * PAGE).bus + va % PAGE;
}

void context::write(std::uint64_t va, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    while (size) {
        const std::size_t n = std::min<std::size_t>(size, PAGE - va % PAGE);
        m_driver.host().write_memory(bus_address(va), bytes, n);
        va += n;
        bytes += n;
        size -= n;
    }
}

std::vector<std::uint8_t> context::read(std::uint64_t va,
                                        std::size_t size) const {
    std::vector<std::uint8_t> out(size);
    for (std::size_t done = 0; done < size;) {
        const std::uint64_t here = va + done;
        const std::size_t n =
            std::min<std::size_t>(size - done, PAGE - here % PAGE);
        m_driver.host().read_memory(bus_address(here), out.data() + done, n);
        done += n;
    }
    return out;
}

void context::fill(std::uint64_t va, std::size_t size, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> data(size);
    for (std::uint8_t& byte : data)
        byte = static_cast<std::uint8_t>(random());
    write(va, data.data(), size);
}

// -- Commands ---------------------------------------------------------------

std::uint32_t context::post(const prawn_command& c) {
    m_driver.host().store(
        m_commands + std::uint64_t{m_produced & m_mask} * sizeof(c), c);
    return m_produced++;
}

void context::ring() {
    m_driver.host().write(2, std::uint64_t{m_id} * PAGE, 8,
                          std::uint64_t{m_completed} << 32 | m_produced);
}

std::uint32_t context::send(std::uint32_t import, std::uint64_t va,
                            std::uint32_t length, std::uint64_t offset,
                            bool notify, std::uint32_t immediate) {
    prawn_command c{};
    c.opcode = PRAWN_OPCODE_SEND;
    c.flags = notify ? PRAWN_COMMAND_FLAG_NOTIFY : 0;
    c.length = length;
    c.source = va;
    c.offset = offset;
    c.cookie = 0xc0000000u + m_produced;
    c.import_id = import;
    c.immediate = immediate;
    c.completions_seen = m_completed;
    c.notifications_seen = m_notified;
    const std::uint32_t index = post(c);
    ring();
    return index;
}

bool context::poll(prawn_completion& out) {
    out = m_driver.host().load<prawn_completion>(
        m_completions + std::uint64_t{m_completed & m_mask} * sizeof(out));
    if (out.seq != m_completed + 1)
        return false;
    m_completed++;
    return true;
}

prawn_completion context::wait_completion(double timeout_us) {
    prawn_completion c{};
    if (!m_driver.until([&] { return poll(c); }, timeout_us, "completion"))
        c.status = 0xffff;
    return c;
}

bool context::poll_notification(prawn_notification& out) {
    out = m_driver.host().load<prawn_notification>(
        m_notifications +
        std::uint64_t{m_notified & m_notify_mask} * sizeof(out));
    if (out.seq != m_notified + 1)
        return false;
    m_notified++;
    if (!m_hold)
        consume_notifications();
    return true;
}

void context::consume_notifications() {
    m_driver.host().write(
        2, std::uint64_t{m_id} * PAGE + PRAWN_DOORBELL_NOTIFY_CONSUMED, 8,
        m_notified);
}

prawn_notification context::wait_notification(double timeout_us) {
    prawn_notification n{};
    if (!m_driver.until([&] { return poll_notification(n); }, timeout_us,
                        "notification"))
        n.status = 0xffff;
    return n;
}

void context::arm_notify() {
    m_driver.host().write(
        2, std::uint64_t{m_id} * PAGE + PRAWN_DOORBELL_ARM_NOTIFY, 8,
        m_notified);
}

void context::arm_completion() {
    m_driver.host().write(
        2, std::uint64_t{m_id} * PAGE + PRAWN_DOORBELL_ARM_COMPLETION, 8,
        m_completed);
}

std::uint32_t context::state() {
    return static_cast<std::uint32_t>(m_driver.host().read(
        2, std::uint64_t{m_id} * PAGE + PRAWN_DOORBELL_STATE, 4));
}

}  // namespace model
}  // namespace prawn
