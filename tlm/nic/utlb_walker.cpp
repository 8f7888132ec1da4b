// SPDX-License-Identifier: Apache-2.0
#include "nic/utlb_walker.h"

#include <cstring>
#include <utility>

#include "nic/pools.h"

namespace prawn {

namespace {

constexpr unsigned LEVEL_BITS = 9;
constexpr std::uint64_t LEVEL_MASK = (1 << LEVEL_BITS) - 1;
constexpr std::uint64_t ENTRY_BITS = PRAWN_TABLE_ENTRY_VALID_MASK |
                                     PRAWN_TABLE_ENTRY_WRITE_MASK |
                                     PRAWN_TABLE_ENTRY_ADDRESS_MASK;
constexpr unsigned INDEX_BITS = 8;  // of a DMA tag
constexpr unsigned REGION_BITS = 27;

std::uint64_t load(const std::uint8_t* from) {
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

bool overlap(std::uint64_t a, std::uint64_t a_size, std::uint64_t b,
             std::uint64_t b_size) {
    return a < b + b_size && b < a + a_size;
}

}  // namespace

utlb_walker::utlb_walker(unsigned walks, environment env) :
    m_env(std::move(env)), m_walks(walks), m_directory(DIRECTORY) {}

std::uint64_t utlb_walker::checked(std::uint64_t entry) const {
    if (entry & ~ENTRY_BITS) {
        m_env.bad_entry();
        return 0;
    }
    return entry & PRAWN_TABLE_ENTRY_VALID_MASK ? entry : 0;
}

std::uint64_t utlb_walker::directory_key(std::uint16_t context,
                                         std::uint64_t region) {
    return std::uint64_t{1} << 63 |
           static_cast<std::uint64_t>(context) << REGION_BITS | region;
}

std::size_t utlb_walker::directory_index(std::uint16_t context,
                                         std::uint64_t region) {
    // Contexts use the same regions (stack, heap): keep them apart.
    return (region + context * std::uint64_t{37}) % DIRECTORY;
}

int utlb_walker::find(std::uint16_t context, std::uint64_t line) const {
    for (std::size_t i = 0; i < m_walks.size(); i++) {
        const walk& w = m_walks[i];
        if (w.state != walk::FREE && !w.cancelled && w.page == line &&
            w.context == context)
            return static_cast<int>(i);
    }
    return NONE;
}

int utlb_walker::start(std::uint16_t context, std::uint64_t line,
                       std::uint64_t root) {
    std::size_t i = 0;
    while (m_walks[i].state != walk::FREE)
        i++;
    walk& w = m_walks[i];
    m_used++;
    w.context = context;
    w.page = line;
    w.root = root;
    w.cancelled = false;
    w.reads = 0;
    begin(w);
    send(static_cast<int>(i));
    return static_cast<int>(i);
}

void utlb_walker::begin(walk& w) {
    const std::uint64_t region = w.page >> LEVEL_BITS;
    const directory_entry& d = m_directory[directory_index(w.context, region)];
    w.restart = false;
    w.status = PRAWN_STATUS_OK;
    if (d.key == directory_key(w.context, region)) {
        m_directory_hits++;
        w.level = 0;
        aim(w, d.table);
    } else {
        w.level = PRAWN_TABLE_LEVELS - 1;
        aim(w, w.root);
    }
}

void utlb_walker::aim(walk& w, std::uint64_t table) {
    const std::uint64_t index = w.page >> (w.level * LEVEL_BITS) & LEVEL_MASK;
    w.address = table + index * sizeof(std::uint64_t);
    w.length = static_cast<std::uint32_t>((w.level == 0 ? m_prefetch : 1) *
                                          sizeof(std::uint64_t));
}

void utlb_walker::send(int index) {
    at(index).state = walk::UNSENT;
    m_unsent.push_back(index);
    if (m_unsent.size() == 1)
        send_unsent();
}

void utlb_walker::send_unsent() {
    while (!m_unsent.empty()) {
        const int index = m_unsent.front();
        walk& w = at(index);
        if (w.cancelled) {
            m_unsent.pop_front();
            release(w);
            continue;
        }
        if (w.restart)
            begin(w);
        w.buffer = small_buffer_pool().get();
        dma_request r;
        r.tag = m_generation << INDEX_BITS | static_cast<std::uint32_t>(index);
        r.context = KERNEL_CONTEXT;
        r.address = w.address;
        r.length = w.length;
        r.data = w.buffer->bytes;
        r.keep = w.buffer;
        w.state = walk::READING;
        w.drain = m_reads.begin();
        if (!m_env.read(r)) {
            w.state = walk::UNSENT;
            m_reads.end(w.drain);
            return;
        }
        w.reads++;
        m_unsent.pop_front();
    }
}

void utlb_walker::answer(const dma_reply& reply) {
    const std::uint32_t index = reply.tag & ((1U << INDEX_BITS) - 1);
    if (index >= m_walks.size() ||
        reply.tag != (m_generation << INDEX_BITS | index) ||
        m_walks[index].state != walk::READING)
        return;
    walk& w = m_walks[index];
    w.state = walk::STEP;
    w.status = reply.status;
    m_env.step_soon(static_cast<int>(index));
    m_reads.end(w.drain);
}

// The answer of the last read has been looked at: what now?
void utlb_walker::step(int index) {
    walk& w = at(index);
    if (w.cancelled) {
        release(w);
        return;
    }
    if (w.restart) {
        begin(w);
        send(index);
        return;
    }
    if (w.status != PRAWN_STATUS_OK) {
        m_env.done(w, w.status, nullptr);
        release(w);
        return;
    }
    if (w.level == 0) {
        std::uint64_t entries[MAX_PREFETCH];
        for (unsigned i = 0; i < m_prefetch; i++)
            entries[i] = checked(load(w.buffer->bytes + i * sizeof entries[0]));
        m_env.done(w, PRAWN_STATUS_OK, entries);
        release(w);
        return;
    }
    const std::uint64_t entry = checked(load(w.buffer->bytes));
    if (entry == 0) {
        m_env.done(w, PRAWN_STATUS_OK, nullptr);
        release(w);
        return;
    }
    const std::uint64_t table = entry & PRAWN_TABLE_ENTRY_ADDRESS_MASK;
    w.level--;
    if (w.level == 0) {
        const std::uint64_t region = w.page >> LEVEL_BITS;
        m_directory[directory_index(w.context, region)] = {
            directory_key(w.context, region), table};
    }
    aim(w, table);
    send(index);
}

void utlb_walker::release(walk& w) {
    w.state = walk::FREE;
    w.buffer.reset();
    m_used--;
}

void utlb_walker::invalidate(std::uint16_t context, std::uint64_t page,
                             std::uint64_t pages) {
    const bool all = pages == 0;
    const std::uint64_t first = page >> LEVEL_BITS;
    const std::uint64_t last = (page + pages - 1) >> LEVEL_BITS;
    for (directory_entry& d : m_directory) {
        if (d.key >> REGION_BITS != directory_key(context, 0) >> REGION_BITS)
            continue;
        const std::uint64_t region =
            d.key & ((std::uint64_t{1} << REGION_BITS) - 1);
        if (all || (region >= first && region <= last))
            d = directory_entry();
    }
    for (walk& w : m_walks) {
        if (w.state == walk::FREE || w.context != context)
            continue;
        const std::uint64_t region = w.page >> LEVEL_BITS;
        if (all || overlap(w.page, m_prefetch, page, pages) ||
            (w.level > 0 && region >= first && region <= last))
            w.restart = true;
    }
}

void utlb_walker::cancel(std::uint16_t context,
                         const std::function<void(walk&)>& dropped) {
    invalidate(context, 0, 0);
    for (walk& w : m_walks) {
        if (w.state == walk::FREE || w.context != context || w.cancelled)
            continue;
        w.cancelled = true;
        dropped(w);
    }
}

void utlb_walker::reset() {
    m_generation++;
    for (walk& w : m_walks) {
        w.state = walk::FREE;
        w.buffer.reset();
    }
    m_used = 0;
    m_unsent.clear();
    m_reads.reset();
    m_directory.assign(DIRECTORY, directory_entry());
}

}  // namespace prawn
