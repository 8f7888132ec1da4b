// SPDX-License-Identifier: Apache-2.0
// What each register reads and does.
#include <array>
#include <cstring>

#include "nic/csr.h"
#include "prawn_names.h"

namespace prawn {

namespace {

using info_t = prawn_register_info;

constexpr std::size_t BAR0_WORDS = 0x220 / 4;
constexpr std::size_t DOORBELL_WORDS = 0x30 / 4;

// One pointer for each aligned 32-bit word that belongs to a register.
template <std::size_t WORDS>
std::array<const info_t*, WORDS> make_map(const info_t* list,
                                          std::size_t count) {
    std::array<const info_t*, WORDS> map{};
    for (std::size_t i = 0; i < count; i++) {
        const std::size_t first = list[i].offset / 4;
        const std::size_t words = list[i].count * list[i].width / 32;
        for (std::size_t w = first; w < first + words && w < WORDS; w++)
            map[w] = &list[i];
    }
    return map;
}

// The register that an access of this size may touch, or null.
template <std::size_t WORDS>
const info_t* find(const std::array<const info_t*, WORDS>& map,
                   std::uint64_t offset, unsigned size, bool halves) {
    if (offset / 4 >= WORDS || size < 4)
        return nullptr;
    const info_t* r = map[offset / 4];
    if (!r)
        return nullptr;
    if (size * 8 == r->width)
        return r;
    return halves && r->width == 64 && size == 4 ? r : nullptr;
}

const info_t* find_bar0(std::uint64_t offset, unsigned size) {
    static const auto map =
        make_map<BAR0_WORDS>(prawn_bar0_registers, PRAWN_BAR0_REGISTERS);
    return find(map, offset, size, true);
}

const info_t* find_doorbell(std::uint64_t offset, unsigned size) {
    static const auto map = make_map<DOORBELL_WORDS>(prawn_doorbell_registers,
                                                     PRAWN_DOORBELL_REGISTERS);
    return find(map, offset, size, false);
}

bool is_ptp(const info_t& r) {
    return r.offset >= PRAWN_BAR0_PTP_TIME &&
           r.offset <= PRAWN_BAR0_PTP_INCREMENT;
}

}  // namespace

void csr::bad_access() {
    m_bad++;
}

std::uint64_t csr::read(const access& a) {
    switch (a.bar) {
        case 0:
            return read_bar0(a);
        case 2:
            return read_doorbell_page(a);
        case 4:
            m_proxy_loads++;
            return PRAWN_PROXY_STATUS_INVALID_MASK;
        default:
            bad_access();
            return 0;
    }
}

void csr::write(const access& a, std::uint64_t value) {
    if (a.bar == 4) {
        m_proxy_stores++;
    } else if (!m_ready || m_resetting) {
        m_not_ready++;
    } else if (a.bar == 0) {
        write_bar0(a, value);
    } else if (a.bar == 2) {
        write_doorbell_page(a, value);
    } else {
        bad_access();
    }
}

std::uint64_t csr::read_bar0(const access& a) {
    const info_t* r = find_bar0(a.offset, a.size);
    if (!r || !r->readable) {
        bad_access();
        return 0;
    }
    if (r->width == 32)
        return bar0_value(a.offset) & 0xffffffff;
    if (is_ptp(*r))  // its halves are not independent
        return backend->read_ptp(a.offset, a.size);
    const std::uint64_t whole = bar0_value(a.offset & ~std::uint64_t{7});
    if (a.size == 8)
        return whole;
    return a.offset & 4 ? whole >> 32 : whole & 0xffffffff;
}

void csr::write_bar0(const access& a, std::uint64_t value) {
    const info_t* r = find_bar0(a.offset, a.size);
    if (!r || !r->writable) {
        bad_access();
        return;
    }
    if (is_ptp(*r)) {
        backend->write_ptp(a.offset, a.size, value);
        return;
    }
    if (r->width == 32 || a.size == 8) {
        set_bar0(a.offset, value);
        return;
    }
    const std::uint64_t offset = a.offset & ~std::uint64_t{7};
    const std::uint64_t old = r->readable ? bar0_value(offset) : 0;
    if (a.offset & 4)
        set_bar0(offset, (old & 0xffffffff) | value << 32);
    else
        set_bar0(offset, (old & ~std::uint64_t{0xffffffff}) | value);
}

std::uint64_t csr::counter_value() const {
    const std::size_t index =
        PRAWN_FIELD_GET(COUNTER_SELECT_INDEX, m_counter_select);
    const std::size_t context =
        PRAWN_FIELD_GET(COUNTER_SELECT_CONTEXT, m_counter_select);
    if (context == 0)
        return m_env.counters->value(index);
    return m_env.counters->per_context_value(index, context - 1);
}

std::uint64_t csr::counter_name(std::uint64_t word) const {
    const std::size_t index =
        PRAWN_FIELD_GET(COUNTER_SELECT_INDEX, m_counter_select);
    const bool global =
        PRAWN_FIELD_GET(COUNTER_SELECT_CONTEXT, m_counter_select) == 0;
    const std::string& name = global ? m_env.counters->name(index)
                                     : m_env.counters->per_context_name(index);
    char bytes[PRAWN_COUNTER_NAME_SIZE] = {};
    name.copy(bytes, sizeof(bytes) - 1);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes + word * 8, sizeof(value));
    return value;
}

// Value of a register that may be read, at its own offset. Registers of parts
// that this card has not (automatic update, processor) read as zero.
std::uint64_t csr::bar0_value(std::uint64_t offset) const {
    switch (offset) {
        case PRAWN_BAR0_ID:
            return PRAWN_ID_MAGIC;
        case PRAWN_BAR0_ABI:
            return PRAWN_BAR0_ABI_RESET;
        case PRAWN_BAR0_FEATURES:
            return backend->features();
        case PRAWN_BAR0_CTRL:
            return PRAWN_FIELD_PUT(CTRL_RESET, !m_ready || m_resetting) |
                   PRAWN_FIELD_PUT(CTRL_ENABLE, m_enabled);
        case PRAWN_BAR0_STATUS:
            return backend->status() |
                   PRAWN_FIELD_PUT(STATUS_READY, m_ready && !m_resetting);
        case PRAWN_BAR0_NODE:
            return PRAWN_FIELD_PUT(NODE_ID, std::uint32_t{m_env.node}) |
                   PRAWN_FIELD_PUT(NODE_COUNT, std::uint32_t{m_env.nodes});
        case PRAWN_BAR0_EPOCH:
            return backend->epoch();
        case PRAWN_BAR0_LIMITS:
            return PRAWN_FIELD_PUT(LIMITS_CONTEXTS, PRAWN_CONTEXTS) |
                   PRAWN_FIELD_PUT(LIMITS_OPT_ENTRIES, PRAWN_OPT_ENTRIES) |
                   PRAWN_FIELD_PUT(LIMITS_IPT_ENTRIES, PRAWN_IPT_ENTRIES) |
                   PRAWN_FIELD_PUT(LIMITS_VECTORS, PRAWN_VECTORS);
        case PRAWN_BAR0_TIME:
            return now_ps();
        case PRAWN_BAR0_TIME_MODE:
            return m_identity.time_mode;
        case PRAWN_BAR0_PROFILE:
            return m_profile_id;
        case PRAWN_BAR0_ADMIN_BASE:
            return m_admin_base;
        case PRAWN_BAR0_ADMIN_ACK_BASE:
            return m_ack_base;
        case PRAWN_BAR0_ADMIN_LOG2:
            return m_admin_log2;
        case PRAWN_BAR0_EVENT_BASE:
            return m_event_base;
        case PRAWN_BAR0_EVENT_LOG2:
            return m_event_log2;
        case PRAWN_BAR0_INT_CAUSE:
            return m_cause;
        case PRAWN_BAR0_INT_ENABLE:
            return m_int_enable;
        case PRAWN_BAR0_COUNTER_COUNT:
            return PRAWN_FIELD_PUT(
                       COUNTER_COUNT_GLOBAL,
                       static_cast<std::uint32_t>(m_env.counters->size())) |
                   PRAWN_FIELD_PUT(COUNTER_COUNT_CONTEXT,
                                   static_cast<std::uint32_t>(
                                       m_env.counters->per_context_size()));
        case PRAWN_BAR0_COUNTER_SELECT:
            return m_counter_select;
        case PRAWN_BAR0_COUNTER_VALUE:
            return counter_value();
        case PRAWN_BAR0_UTLB_MODE:
            return backend->utlb_mode();
        case PRAWN_BAR0_UTLB_GEOMETRY:
            return backend->utlb_geometry();
        case PRAWN_BAR0_FIFO_THRESHOLD:
            return m_fifo_threshold;
        case PRAWN_BAR0_FIFO_LEVEL:
            return backend->fifo_level();
        default:
            break;
    }
    if (offset >= PRAWN_BAR0_COUNTER_NAME &&
        offset < PRAWN_BAR0_COUNTER_NAME + PRAWN_COUNTER_NAME_SIZE)
        return counter_name((offset - PRAWN_BAR0_COUNTER_NAME) / 8);
    return 0;
}

void csr::set_bar0(std::uint64_t offset, std::uint64_t value) {
    const auto low = static_cast<std::uint32_t>(value);
    switch (offset) {
        case PRAWN_BAR0_CTRL:
            write_ctrl(value);
            break;
        case PRAWN_BAR0_ADMIN_BASE:
            m_admin_base = value;
            backend->set_admin_ring(m_admin_base, m_admin_log2);
            break;
        case PRAWN_BAR0_ADMIN_ACK_BASE:
            m_ack_base = value;
            backend->set_ack_ring(m_ack_base, m_admin_log2);
            break;
        case PRAWN_BAR0_ADMIN_LOG2:
            m_admin_log2 = low;
            backend->set_admin_ring(m_admin_base, m_admin_log2);
            backend->set_ack_ring(m_ack_base, m_admin_log2);
            break;
        case PRAWN_BAR0_ADMIN_DOORBELL:
            backend->ring_admin(low);
            break;
        case PRAWN_BAR0_EVENT_BASE:
            m_event_base = value;
            backend->set_event_ring(m_event_base, m_event_log2);
            break;
        case PRAWN_BAR0_EVENT_LOG2:
            m_event_log2 = low;
            backend->set_event_ring(m_event_base, m_event_log2);
            break;
        case PRAWN_BAR0_EVENT_CONSUMED: {
            ring_update u{ring_update::EVENT_CONSUMED, KERNEL_CONTEXT, low};
            update_out->try_put(u);
            break;
        }
        case PRAWN_BAR0_INT_CAUSE:
            m_cause &= ~low;
            update_intx();
            break;
        case PRAWN_BAR0_INT_ENABLE:
            m_int_enable =
                low &
                (PRAWN_INT_CAUSE_EVENT_MASK | PRAWN_INT_CAUSE_ADMIN_MASK |
                 PRAWN_INT_CAUSE_CONTEXT_MASK | PRAWN_INT_CAUSE_CHECK_MASK);
            update_intx();
            break;
        case PRAWN_BAR0_COUNTER_SELECT:
            m_counter_select = low;
            break;
        case PRAWN_BAR0_UTLB_MODE:
            backend->set_utlb_mode(low);
            break;
        case PRAWN_BAR0_UTLB_GEOMETRY:
            backend->set_utlb_geometry(low);
            break;
        case PRAWN_BAR0_FIFO_THRESHOLD:
            m_fifo_threshold = low;
            backend->set_fifo_threshold(low);
            break;
        default:  // of a part that this card has not
            break;
    }
}

void csr::write_ctrl(std::uint64_t value) {
    if (value & PRAWN_CTRL_RESET_MASK) {
        m_resetting = true;
        m_reset_due.notify(cycles(1));
        return;
    }
    const bool enable = value & PRAWN_CTRL_ENABLE_MASK;
    if (enable == m_enabled)
        return;
    m_enabled = enable;
    backend->enable_card(enable);
}

void csr::update_intx() {
    const bool level = m_cause & m_int_enable;
    if (level == m_intx)
        return;
    m_intx = level;
    m_events.emit(event_kind::INTX, {}, level);
    backend->set_intx(level);
}

std::uint64_t csr::read_doorbell_page(const access& a) {
    const std::uint64_t context = a.offset >> PRAWN_PAGE_SHIFT;
    const std::uint64_t offset = a.offset % PRAWN_PAGE_SIZE;
    const info_t* r = find_doorbell(offset, a.size);
    if (!r || !r->readable || context >= PRAWN_CONTEXTS) {
        bad_access();
        return 0;
    }
    if (offset == PRAWN_DOORBELL_TIME)
        return now_ps();
    return backend->context_state(static_cast<std::uint16_t>(context));
}

void csr::write_doorbell_page(const access& a, std::uint64_t value) {
    const std::uint64_t page = a.offset >> PRAWN_PAGE_SHIFT;
    const std::uint64_t offset = a.offset % PRAWN_PAGE_SIZE;
    const info_t* r = find_doorbell(offset, a.size);
    if (!r || !r->writable || page >= PRAWN_CONTEXTS) {
        bad_access();
        return;
    }
    if (!m_enabled) {
        m_ignored_doorbells++;
        return;
    }
    const auto context = static_cast<std::uint16_t>(page);
    const auto low = static_cast<std::uint32_t>(value);
    ring_update u{ring_update::COMPLETION_CONSUMED, context, low};
    switch (offset) {
        case PRAWN_DOORBELL_DOORBELL: {
            u.index = static_cast<std::uint32_t>(value >> 32);
            doorbell d{context, low, u.index, now_ps()};
            m_doorbells[context]++;
            m_events.emit(event_kind::DOORBELL,
                          message_id::of_context(m_env.node, context), low,
                          u.index);
            update_out->try_put(u);
            doorbell_out->try_put(d);
            return;
        }
        case PRAWN_DOORBELL_NOTIFY_CONSUMED:
            u.what = ring_update::NOTIFY_CONSUMED;
            break;
        case PRAWN_DOORBELL_ARM_NOTIFY:
            u.what = ring_update::ARM_NOTIFY;
            break;
        default:
            u.what = ring_update::ARM_COMPLETION;
            break;
    }
    update_out->try_put(u);
}

}  // namespace prawn
