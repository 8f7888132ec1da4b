// SPDX-License-Identifier: Apache-2.0
// What each admin command needs to be sound, and its sequence of stages.
#include "nic/admin_queue.h"

namespace prawn {

namespace {

constexpr std::uint64_t VA_END = std::uint64_t{1} << PRAWN_VA_BITS;
constexpr std::uint64_t BUS_END = std::uint64_t{1} << 52;

enum field : unsigned {
    INDEX = 1 << 0,
    A = 1 << 1,
    B = 1 << 2,
    C = 1 << 3,
    D = 1 << 4,
    E = 1 << 5,
    F = 1 << 6,
};

// Fields that an opcode uses; the others must be zero.
unsigned fields_of(unsigned opcode) {
    switch (opcode) {
        case PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE:
            return INDEX | A | B | C | D | E;
        case PRAWN_ADMIN_OPCODE_OPT_SET:
            return INDEX | A | B | C | D;
        case PRAWN_ADMIN_OPCODE_IPT_SET:
            return INDEX | A | B | C | D | E;
        case PRAWN_ADMIN_OPCODE_OPT_CLEAR:
        case PRAWN_ADMIN_OPCODE_IPT_CLEAR:
            return INDEX;
        case PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE:
        case PRAWN_ADMIN_OPCODE_UTLB_FILL:
        case PRAWN_ADMIN_OPCODE_REVOKE:
            return A | B;
        case PRAWN_ADMIN_OPCODE_SLOT_SET:
        case PRAWN_ADMIN_OPCODE_MGMT_SEND:
            return INDEX | A | B;
        case PRAWN_ADMIN_OPCODE_SLOT_CLEAR:
        case PRAWN_ADMIN_OPCODE_PEER_CONTROL:
            return INDEX | A;
        case PRAWN_ADMIN_OPCODE_GRANT:
            return A | B | C;
        default:  // NOP, CONTEXT_DISABLE
            return 0;
    }
}

bool unused_are_zero(const prawn_admin_command& c) {
    const unsigned used = fields_of(c.opcode);
    return (used & INDEX || c.index == 0) && (used & A || c.a == 0) &&
           (used & B || c.b == 0) && (used & C || c.c == 0) &&
           (used & D || c.d == 0) && (used & E || c.e == 0) &&
           (used & F || c.f == 0) && c.rsvd == 0;
}

bool page_aligned(std::uint64_t address) {
    return address % PRAWN_PAGE_SIZE == 0;
}

bool log2_fits(std::uint64_t log2) {
    return log2 >= PRAWN_RING_LOG2_MIN && log2 <= PRAWN_RING_LOG2_MAX;
}

// Ring of 64-byte entries.
bool ring_fits(std::uint64_t base, std::uint64_t log2) {
    return page_aligned(base) && log2_fits(log2) && base < BUS_END &&
           (std::uint64_t{64} << log2) <= BUS_END - base;
}

// Pages from address on, in a space of `end` bytes.
bool pages_fit(std::uint64_t address, std::uint64_t pages, std::uint64_t end) {
    return page_aligned(address) && address < end &&
           pages <= (end - address) / PRAWN_PAGE_SIZE;
}

}  // namespace

std::uint16_t admin_queue::check(const prawn_admin_command& c) const {
    if (c.opcode > PRAWN_ADMIN_OPCODE_PEER_CONTROL)
        return PRAWN_STATUS_BAD_OPCODE;
    if (c.flags & ~PRAWN_ADMIN_FLAGS || !unused_are_zero(c))
        return PRAWN_STATUS_BAD_FIELD;
    switch (c.opcode) {
        case PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE:
            return check_context_enable(c);
        case PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE:
            if (c.context >= PRAWN_CONTEXTS || !m_enabled[c.context])
                return PRAWN_STATUS_BAD_CONTEXT;
            return PRAWN_STATUS_OK;
        case PRAWN_ADMIN_OPCODE_OPT_SET:
        case PRAWN_ADMIN_OPCODE_OPT_CLEAR:
        case PRAWN_ADMIN_OPCODE_IPT_SET:
        case PRAWN_ADMIN_OPCODE_IPT_CLEAR:
            return check_tables(c);
        case PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE:
        case PRAWN_ADMIN_OPCODE_UTLB_FILL:
        case PRAWN_ADMIN_OPCODE_GRANT:
        case PRAWN_ADMIN_OPCODE_REVOKE:
            return check_pages(c);
        case PRAWN_ADMIN_OPCODE_SLOT_SET:
        case PRAWN_ADMIN_OPCODE_SLOT_CLEAR:
            return PRAWN_STATUS_UNSUPPORTED;
        case PRAWN_ADMIN_OPCODE_MGMT_SEND:
            if (c.b < 1 || c.b > PRAWN_MGMT_MAX)
                return PRAWN_STATUS_BAD_LENGTH;
            return c.index < m_env.nodes && c.a % 8 == 0 && c.a < BUS_END
                       ? PRAWN_STATUS_OK
                       : PRAWN_STATUS_BAD_FIELD;
        case PRAWN_ADMIN_OPCODE_PEER_CONTROL:
            return c.index < m_env.nodes && c.a <= 1 ? PRAWN_STATUS_OK
                                                     : PRAWN_STATUS_BAD_FIELD;
        default:
            return PRAWN_STATUS_OK;
    }
}

std::uint16_t admin_queue::check_context_enable(
    const prawn_admin_command& c) const {
    if (c.context >= PRAWN_CONTEXTS || m_enabled[c.context])
        return PRAWN_STATUS_BAD_CONTEXT;
    const std::uint64_t log2 = c.e & 0xff;
    const bool sound = c.index >= 1 && c.index < PRAWN_VECTORS &&
                       c.e <= 0xffff && ring_fits(c.a, log2) &&
                       ring_fits(c.b, log2) && ring_fits(c.c, c.e >> 8) &&
                       page_aligned(c.d) && c.d < BUS_END;
    return sound ? PRAWN_STATUS_OK : PRAWN_STATUS_BAD_FIELD;
}

std::uint16_t admin_queue::check_tables(const prawn_admin_command& c) const {
    const bool outgoing = c.opcode == PRAWN_ADMIN_OPCODE_OPT_SET ||
                          c.opcode == PRAWN_ADMIN_OPCODE_OPT_CLEAR;
    std::uint32_t entries = PRAWN_IPT_ENTRIES;
    if (outgoing)
        entries = PRAWN_OPT_ENTRIES;
    if (c.index >= entries)
        return PRAWN_STATUS_BAD_FIELD;
    if (c.opcode == PRAWN_ADMIN_OPCODE_OPT_CLEAR ||
        c.opcode == PRAWN_ADMIN_OPCODE_IPT_CLEAR)
        return PRAWN_STATUS_OK;
    if (c.context >= PRAWN_CONTEXTS || !m_enabled[c.context])
        return PRAWN_STATUS_BAD_CONTEXT;
    if (c.c == 0 || c.c > VA_END)
        return PRAWN_STATUS_BAD_LENGTH;
    if (outgoing) {
        const bool sound = (c.a & 0xffff) < m_env.nodes &&
                           (c.a >> 16 & 0xffff) != 0 &&
                           c.a >> 32 < PRAWN_IPT_ENTRIES;
        return sound ? PRAWN_STATUS_OK : PRAWN_STATUS_BAD_FIELD;
    }
    if (c.e & ~std::uint64_t{PRAWN_IPT_FLAG_NOTIFY})
        return PRAWN_STATUS_BAD_FIELD;
    return c.a < VA_END && c.c <= VA_END - c.a ? PRAWN_STATUS_OK
                                               : PRAWN_STATUS_BAD_LENGTH;
}

std::uint16_t admin_queue::check_pages(const prawn_admin_command& c) const {
    if (c.opcode == PRAWN_ADMIN_OPCODE_GRANT ||
        c.opcode == PRAWN_ADMIN_OPCODE_REVOKE) {
        if (grant_out.size() == 0)
            return PRAWN_STATUS_UNSUPPORTED;
        if (c.context >= PRAWN_CONTEXTS && c.context != KERNEL_CONTEXT)
            return PRAWN_STATUS_BAD_CONTEXT;
        return c.b != 0 && c.c <= 1 && pages_fit(c.a, c.b, BUS_END)
                   ? PRAWN_STATUS_OK
                   : PRAWN_STATUS_BAD_FIELD;
    }
    if (c.context >= PRAWN_CONTEXTS || !m_enabled[c.context])
        return PRAWN_STATUS_BAD_CONTEXT;
    if (c.opcode == PRAWN_ADMIN_OPCODE_UTLB_FILL) {
        const std::uint64_t defined = PRAWN_TABLE_ENTRY_VALID_MASK |
                                      PRAWN_TABLE_ENTRY_WRITE_MASK |
                                      PRAWN_TABLE_ENTRY_ADDRESS_MASK;
        return pages_fit(c.a, 1, VA_END) && !(c.b & ~defined)
                   ? PRAWN_STATUS_OK
                   : PRAWN_STATUS_BAD_FIELD;
    }
    return pages_fit(c.a, c.b, VA_END) ? PRAWN_STATUS_OK
                                       : PRAWN_STATUS_BAD_FIELD;
}

const admin_queue::sequence& admin_queue::sequence_of(unsigned opcode) {
    using op = control_op;
    static const sequence nothing;
    // The UTLB first: nobody may ask it before it knows the context. The
    // command queue last: it starts the traffic.
    static const sequence enable = {
        {{CONTROL_UTLB, op::CONTEXT_ENABLE}},
        {{CONTROL_NOTIFIER, op::CONTEXT_ENABLE}},
        {{CONTROL_COMMAND_QUEUE, op::CONTEXT_ENABLE}}};
    // Along the data path, so that each block gets nothing new from the one
    // before. Each answers when its own DMA is over: there is nothing to drain.
    static const sequence disable = {
        {{CONTROL_COMMAND_QUEUE, op::CONTEXT_DISABLE}},
        {{CONTROL_PACKETIZER, op::CONTEXT_DISABLE}},
        {{CONTROL_OPT, op::CONTEXT_DISABLE}},
        {{CONTROL_IPT, op::CONTEXT_DISABLE}},
        {{CONTROL_INCOMING_DMA, op::CONTEXT_DISABLE}},
        {{CONTROL_UTLB, op::CONTEXT_DISABLE}},
        {{CONTROL_NOTIFIER, op::CONTEXT_DISABLE}}};
    static const sequence opt_set = {{{CONTROL_OPT, op::SET}}};
    // The table first: a command that comes later finds nothing there.
    static const sequence opt_clear = {{{CONTROL_OPT, op::CLEAR}},
                                       {{CONTROL_PACKETIZER, op::CLEAR}},
                                       {{CONTROL_PACKETIZER, op::DRAIN}}};
    static const sequence ipt_set = {{{CONTROL_IPT, op::SET}}};
    static const sequence ipt_clear = {{{CONTROL_IPT, op::CLEAR}},
                                       {{CONTROL_INCOMING_DMA, op::DRAIN}}};
    static const sequence invalidate = {{{CONTROL_UTLB, op::INVALIDATE}},
                                        {{CONTROL_UTLB, op::DRAIN},
                                         {CONTROL_PACKETIZER, op::DRAIN},
                                         {CONTROL_INCOMING_DMA, op::DRAIN}}};
    static const sequence fill = {{{CONTROL_UTLB, op::FILL}}};
    switch (opcode) {
        case PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE:
            return enable;
        case PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE:
            return disable;
        case PRAWN_ADMIN_OPCODE_OPT_SET:
            return opt_set;
        case PRAWN_ADMIN_OPCODE_OPT_CLEAR:
            return opt_clear;
        case PRAWN_ADMIN_OPCODE_IPT_SET:
            return ipt_set;
        case PRAWN_ADMIN_OPCODE_IPT_CLEAR:
            return ipt_clear;
        case PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE:
            return invalidate;
        case PRAWN_ADMIN_OPCODE_UTLB_FILL:
            return fill;
        default:
            return nothing;
    }
}

void admin_queue::begin(slot_t& s) {
    const prawn_admin_command& c = s.cmd.entry;
    m_count_commands++;
    m_events.emit(event_kind::ADMIN_BEGIN, {}, s.cmd.index, c.opcode);
    const std::uint16_t status = check(c);
    if (status != PRAWN_STATUS_OK) {
        m_count_refused++;
        finish(s, status);
        return;
    }
    switch (c.opcode) {
        case PRAWN_ADMIN_OPCODE_MGMT_SEND:
            begin_message(s);
            return;
        case PRAWN_ADMIN_OPCODE_GRANT:
        case PRAWN_ADMIN_OPCODE_REVOKE:
            finish(s, checker_command(c));
            return;
        case PRAWN_ADMIN_OPCODE_PEER_CONTROL:
            if (c.a == 0)
                declare_dead(s);
            finish(s, PRAWN_STATUS_OK);
            return;
        case PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE:
            // The context's next owner shall not see what the last one did.
            m_env.counters->clear_context(c.context);
            m_enabled[c.context] = true;
            m_lives[c.context]++;
            break;
        default:
            break;
    }
    s.steps = &sequence_of(c.opcode);
    run_stage(s);
}

void admin_queue::run_stage(slot_t& s) {
    if (s.stage == s.steps->size()) {
        finish(s, s.status);
        return;
    }
    const prawn_admin_command& c = s.cmd.entry;
    const stage& now = (*s.steps)[s.stage];
    const auto owner = static_cast<unsigned>(&s - m_slots.data());
    s.waiting = static_cast<unsigned>(now.size());
    for (const step& one : now) {
        control_request r;
        r.op = one.op;
        r.context = c.context;
        if (c.context < PRAWN_CONTEXTS)
            r.life = m_lives[c.context];
        if (one.op != control_op::DRAIN) {
            r.index = c.index;
            r.a = c.a;
            r.b = c.b;
            r.c = c.c;
            r.d = c.d;
            r.e = c.e;
            r.f = c.f;
        }
        put_control(one.target, r, owner);
    }
}

void admin_queue::stage_done(slot_t& s) {
    const bool enabling =
        s.cmd.entry.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE;
    if (enabling && s.status != PRAWN_STATUS_OK &&
        s.steps == &sequence_of(PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE)) {
        // A block did not want it: undo the rest, keep the status.
        s.steps = &sequence_of(PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE);
        s.stage = 0;
    } else {
        s.stage++;
    }
    run_stage(s);
}

void admin_queue::finish(slot_t& s, std::uint16_t status) {
    const prawn_admin_command& c = s.cmd.entry;
    const bool off =
        (c.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE && s.steps &&
         status != PRAWN_STATUS_OK) ||
        (c.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE && s.steps);
    if (off)
        m_enabled[c.context] = false;
    ack_request ack;
    ack.index = s.cmd.index;
    ack.status = status;
    ack.interrupt = c.flags & PRAWN_ADMIN_FLAG_INTERRUPT;
    m_events.emit(event_kind::ADMIN_END, {}, ack.index, status);
    s = slot_t();
    ack_out->try_put(ack);
    kick();
}

// -- MGMT_SEND --------------------------------------------------------------

namespace {

std::uint64_t message_pages(const prawn_admin_command& c) {
    const std::uint64_t last = c.a + c.b - 1;
    return (last >> PRAWN_PAGE_SHIFT) - (c.a >> PRAWN_PAGE_SHIFT) + 1;
}

std::uint64_t page_of(std::uint64_t address) {
    return address & ~std::uint64_t{PRAWN_PAGE_SIZE - 1};
}

}  // namespace

// The command itself is the kernel's grant of the message.
void admin_queue::begin_message(slot_t& s) {
    const prawn_admin_command& c = s.cmd.entry;
    if (grant_out.size())
        grant_out->grant(KERNEL_CONTEXT, page_of(c.a), message_pages(c), false);
    s.message = packet_pool().get();
    dma_request r;
    r.tag = static_cast<std::uint32_t>(&s - m_slots.data());
    r.context = KERNEL_CONTEXT;
    r.address = c.a;
    r.length = static_cast<std::uint32_t>(c.b);
    r.data = s.message->payload;
    r.keep = s.message;
    put_dma(std::move(r));
}

void admin_queue::message_read(slot_t& s, std::uint16_t status) {
    if (!s.used || !s.message)
        return;
    const prawn_admin_command& c = s.cmd.entry;
    if (grant_out.size())
        grant_out->revoke(KERNEL_CONTEXT, page_of(c.a), message_pages(c));
    if (status != PRAWN_STATUS_OK) {
        finish(s, status);
        return;
    }
    header& h = s.message->head;
    h = header();
    h.version = PRAWN_PACKET_VERSION;
    h.type = PRAWN_PACKET_TYPE_MGMT;
    h.source_node = m_env.node;
    h.destination_node = static_cast<std::uint16_t>(c.index);
    h.source_context = KERNEL_CONTEXT;
    h.payload_length = static_cast<std::uint16_t>(c.b);
    h.message = ++m_messages;
    h.import_id = ~0u;  // a NACK of it concerns no import
    if (mgmt_out->try_put(s.message)) {
        m_count_messages++;
        m_events.emit(event_kind::MGMT_SENT,
                      {m_env.node, KERNEL_CONTEXT, m_messages}, c.index, c.b);
        finish(s, PRAWN_STATUS_OK);
    } else {
        m_count_busy++;
        finish(s, PRAWN_STATUS_BUSY);
    }
}

// -- GRANT, REVOKE ----------------------------------------------------------

std::uint16_t admin_queue::checker_command(const prawn_admin_command& c) {
    return c.opcode == PRAWN_ADMIN_OPCODE_GRANT
               ? grant_out->grant(c.context, c.a, c.b, c.c != 0)
               : grant_out->revoke(c.context, c.a, c.b);
}

}  // namespace prawn
