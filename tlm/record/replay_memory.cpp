// SPDX-License-Identifier: Apache-2.0
#include "record/replay_memory.h"

#include <algorithm>
#include <cstring>

namespace prawn {

replay_memory::page& replay_memory::at(std::uint64_t address) {
    std::unique_ptr<page>& p = m_pages[address / PAGE];
    if (!p)
        p = std::make_unique<page>();
    return *p;
}

void replay_memory::add(kept r, bool table, std::uint64_t action) {
    const std::uint64_t address = r->address;
    const std::uint32_t size = r->data_size;
    const std::shared_ptr<feed_record> owner = std::move(r);
    for (std::uint32_t done = 0; done < size;) {
        version v;
        v.owner = owner;
        v.bytes = owner->data + done;
        v.offset = static_cast<std::uint32_t>((address + done) % PAGE);
        v.size = std::min(size - done, PAGE - v.offset);
        v.table = table;
        v.action = action;
        v.number = owner->number;
        at(address + done).to_come.push_back(v);
        done += v.size;
    }
}

void replay_memory::apply(page& p, const version& v) {
    std::memcpy(p.now.data() + v.offset, v.bytes, v.size);
    for (std::uint32_t i = v.offset; i < v.offset + v.size; i++) {
        p.known.set(i);
        if (v.table)
            p.entries.set(i);
    }
}

std::uint32_t replay_memory::read(std::uint64_t address, std::uint8_t* to,
                                  std::uint32_t size, bool table,
                                  std::uint64_t action, const read_more& more) {
    std::uint32_t unknown = 0;
    while (size > 0) {
        const std::uint32_t n =
            std::min(size, PAGE - static_cast<std::uint32_t>(address % PAGE));
        unknown += read_piece(address, to, n, table, action, more);
        address += n;
        to += n;
        size -= n;
    }
    return unknown;
}

// Within one page. `want` are the bytes that are still to be found.
std::uint32_t replay_memory::read_piece(std::uint64_t address, std::uint8_t* to,
                                        std::uint32_t size, bool table,
                                        std::uint64_t action,
                                        const read_more& more) {
    page& p = at(address);
    const auto offset = static_cast<std::uint32_t>(address % PAGE);
    wanted want;
    for (std::uint32_t i = offset; i < offset + size; i++)
        want.set(i);
    if (table)
        read_table(p, offset, size, action, want, to);
    while (want.any()) {
        if (!table && next_version(p, offset, size, want, to))
            continue;
        if (!more())
            break;
        if (table)
            read_table(p, offset, size, action, want, to);
    }
    std::uint32_t unknown = 0;
    for (std::uint32_t i = offset; i < offset + size; i++) {
        if (!want[i])
            continue;
        const bool known = table ? p.entries[i] : p.known[i];
        to[i - offset] = known ? p.now[i] : std::uint8_t{0};
        unknown += known ? 0 : 1;
    }
    if (!table)
        m_zeros += unknown;
    return unknown;
}

// Takes wanted bytes out of the oldest version that has some. False if there
// is none.
bool replay_memory::next_version(page& p, std::uint32_t offset,
                                 std::uint32_t size, wanted& want,
                                 std::uint8_t* to) {
    for (std::size_t k = 0; k < p.to_come.size(); k++) {
        version v = p.to_come[k];
        if (v.table)
            continue;
        std::uint32_t first = std::max(v.offset, offset);
        const std::uint32_t end = std::min(v.offset + v.size, offset + size);
        while (first < end && !want[first])
            first++;
        std::uint32_t last = first;
        while (last < end && want[last])
            last++;
        if (first >= last)
            continue;
        version taken = v;
        taken.bytes += first - v.offset;
        taken.offset = first;
        taken.size = last - first;
        std::memcpy(to + (first - offset), taken.bytes, taken.size);
        apply(p, taken);
        for (std::uint32_t i = first; i < last; i++)
            want.reset(i);
        // What is left of it, before and behind.
        version behind = v;
        behind.bytes += last - v.offset;
        behind.offset = last;
        behind.size = v.offset + v.size - last;
        v.size = first - v.offset;
        const auto here = p.to_come.begin() + static_cast<std::ptrdiff_t>(k);
        if (v.size && behind.size) {
            *here = v;
            p.to_come.insert(here + 1, behind);
        } else if (v.size) {
            *here = v;
        } else if (behind.size) {
            *here = behind;
        } else {
            p.to_come.erase(here);
        }
        return true;
    }
    return false;
}

void replay_memory::read_table(page& p, std::uint32_t offset,
                               std::uint32_t size, std::uint64_t action,
                               wanted& want, std::uint8_t* to) {
    for (auto v = p.to_come.begin(); v != p.to_come.end();) {
        if (!v->table || v->action > action) {
            ++v;
            continue;
        }
        apply(p, *v);
        v = p.to_come.erase(v);
    }
    for (std::uint32_t i = offset; i < offset + size; i++) {
        if (!want[i])
            continue;
        if (p.entries[i]) {
            to[i - offset] = p.now[i];
            want.reset(i);
            continue;
        }
        const auto later = std::find_if(
            p.to_come.begin(), p.to_come.end(), [=](const version& v) {
                return v.table && v.offset <= i && i < v.offset + v.size;
            });
        if (later == p.to_come.end())
            continue;
        to[i - offset] = later->bytes[i - later->offset];
        want.reset(i);
    }
}

void replay_memory::write(std::uint64_t address, const std::uint8_t* from,
                          std::uint32_t size) {
    while (size > 0) {
        version v;
        v.bytes = from;
        v.offset = static_cast<std::uint32_t>(address % PAGE);
        v.size = std::min(size, PAGE - v.offset);
        apply(at(address), v);
        address += v.size;
        from += v.size;
        size -= v.size;
    }
}

void replay_memory::map(std::uint64_t address, std::uint64_t size) {
    if (size == 0)
        return;
    m_any_map = true;
    std::uint64_t end = address + size;
    if (end < address)
        end = ~std::uint64_t{0};
    auto next = m_maps.lower_bound(address);
    if (next != m_maps.begin() && std::prev(next)->second >= address) {
        --next;
        address = next->first;
    }
    while (next != m_maps.end() && next->first <= end) {
        end = std::max(end, next->second);
        next = m_maps.erase(next);
    }
    m_maps[address] = end;
}

void replay_memory::unmap(std::uint64_t address, std::uint64_t size) {
    std::uint64_t end = address + size;
    if (end < address)
        end = ~std::uint64_t{0};
    auto next = m_maps.lower_bound(address);
    if (next != m_maps.begin())
        --next;
    while (next != m_maps.end() && next->first < end) {
        const auto [begin, stop] = *next;
        if (stop <= address) {
            ++next;
            continue;
        }
        next = m_maps.erase(next);
        if (begin < address)
            m_maps[begin] = address;
        if (stop > end)
            m_maps[end] = stop;
    }
}

bool replay_memory::mapped(std::uint64_t address, std::uint64_t size) const {
    if (!m_any_map)
        return true;
    auto next = m_maps.upper_bound(address);
    if (next == m_maps.begin())
        return false;
    --next;
    return address >= next->first && address + size >= address &&
           address + size <= next->second;
}

std::uint64_t replay_memory::expire(std::uint64_t number) {
    std::uint64_t unread = 0;
    // The order of pages does not matter: each is on its own.
    for (auto& [index, p] : m_pages) {
        for (auto v = p->to_come.begin(); v != p->to_come.end();) {
            if (v->number >= number) {
                ++v;
                continue;
            }
            if (!v->table)
                unread += v->size;
            apply(*p, *v);
            v = p->to_come.erase(v);
        }
    }
    return unread;
}

}  // namespace prawn
