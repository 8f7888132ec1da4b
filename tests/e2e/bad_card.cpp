// SPDX-License-Identifier: Apache-2.0
//
// Cards that misbehave, for the driver to meet: one vfio-user socket for each
// KIND, DIRECTORY/KIND.sock. Prints "ready", serves until it is terminated.
// SIGUSR1 makes those that can vanish do so.
//
// usage: bad_card DIRECTORY KIND...
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "prawn_hw.h"
#include "qemu-device/vfio_user/guest_memory.h"
#include "qemu-device/vfio_user/server.h"

namespace prawn {
namespace {

using vfio_user::reply_token;

constexpr std::uint64_t ALL_ONES = ~std::uint64_t{0};

struct kind {
    std::uint16_t vectors = PRAWN_VECTORS;
    bool intx = true;
    std::uint64_t bar0 = PRAWN_BAR0_SIZE;
    std::uint32_t id = PRAWN_ID_MAGIC;
    std::uint32_t abi = PRAWN_ABI_MAJOR << 16;
    unsigned contexts = PRAWN_CONTEXTS;
    unsigned node = 0;
    bool ones = false;      // every register reads so
    bool ready = true;      // reset comes to an end
    bool answers = true;    // acknowledges admin commands
    bool refuses = false;   // each of them with an error
    bool babbles = false;   // events and messages that make no sense
    bool vanishes = false;  // on SIGUSR1; good until then, but sends nothing,
                            // and its PTP clock stands still
};

kind kind_named(const std::string& name) {
    kind k;
    if (name == "ones")
        k.ones = true;
    else if (name == "id")
        k.id = 0x12345678;
    else if (name == "abi")
        k.abi = (PRAWN_ABI_MAJOR + 1) << 16;
    else if (name == "limits")
        k.contexts = 0;
    else if (name == "node")
        k.node = PRAWN_MAX_NODES;
    else if (name == "small")
        k.bar0 = 64 << 10;
    else if (name == "unready")
        k.ready = false;
    else if (name == "deaf")
        k.vectors = 1, k.intx = false;
    else if (name == "vectors1")
        k.vectors = 1;
    else if (name == "vectors2")
        k.vectors = 2;
    else if (name == "vectors15")
        k.vectors = 15;
    else if (name == "silent")
        k.answers = false;
    else if (name == "refuses")
        k.refuses = true;
    else if (name == "babbles")
        k.babbles = true;
    else if (name == "vanishes" || name == "fades")
        k.vanishes = true;
    else
        throw std::invalid_argument("no such kind of card: " + name);
    return k;
}

// Everything happens on the protocol thread, within the server's calls.
class bad_card final : public vfio_user::device
{
public:
    explicit bad_card(const std::string& name) : m_kind(kind_named(name)) {
        m_identity.vendor_id = PRAWN_PCI_VENDOR_ID;
        m_identity.device_id = PRAWN_PCI_DEVICE_ID;
        m_identity.class_code = PRAWN_PCI_CLASS;
        m_identity.bars[0].size = m_kind.bar0;
        m_identity.bars[2].size = PRAWN_BAR2_SIZE;
        m_identity.bars[4].size = PRAWN_BAR4_SIZE;
        m_identity.bars[4].is_64bit = true;
        m_identity.msix_vectors = m_kind.vectors;
        m_identity.msix_table_offset = PRAWN_MSIX_TABLE_OFFSET;
        m_identity.msix_pba_offset = PRAWN_MSIX_PBA_OFFSET;
        m_identity.intx = m_kind.intx;
    }

    void attach(vfio_user::server& server, vfio_user::endpoint_id endpoint) {
        m_server = &server;
        m_endpoint = endpoint;
    }

    void vanish() {  // any thread
        if (m_kind.vanishes)
            m_gone = true;
    }

    const vfio_user::identity& get_identity() const override {
        return m_identity;
    }
    void connected() override {}
    void disconnected(reply_token token) override {
        m_memory.clear();
        restart();
        m_server->complete(token, 0);
    }
    void reset(reply_token token) override {
        restart();
        m_server->complete(token, 0);
    }
    void bus_master(bool) override {}
    void dma_map(std::shared_ptr<vfio_user::memory_region> region) override {
        m_memory.add(std::move(region));
    }
    void dma_unmap(std::shared_ptr<vfio_user::memory_region> region,
                   reply_token token) override {
        m_memory.remove(*region);
        region.reset();
        m_server->complete(token, 0);
    }

    void bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                  reply_token token) override {
        std::uint64_t value = 0;
        if (m_kind.ones || m_gone)
            value = ALL_ONES >> (64 - 8 * size);
        else if (bar == 0)
            value = read(offset);
        m_server->complete_read(token, value);
    }

    void bar_write(unsigned bar, std::uint64_t offset, unsigned,
                   std::uint64_t data, bool, reply_token token) override {
        if (bar == 0 && !m_kind.ones && !m_gone)
            write(offset, data);
        else if (bar == 2 && !m_gone)
            doorbell(static_cast<unsigned>(offset / PRAWN_PAGE_SIZE),
                     offset % PRAWN_PAGE_SIZE);
        m_server->complete_write(token);
    }

private:
    void restart() {
        m_register.clear();
        m_vector.clear();
        m_producer = 0;
        m_events = 0;
        m_exports = 0;
        m_consumed = 0;
        m_cause = 0;
        m_server->set_intx(m_endpoint, false);
    }

    std::uint64_t read(std::uint64_t offset) {
        switch (offset) {
            case PRAWN_BAR0_ID:
                return m_kind.id;
            case PRAWN_BAR0_ABI:
                return m_kind.abi;
            case PRAWN_BAR0_FEATURES:
                return m_kind.vanishes ? PRAWN_FEATURES_PTP_MASK : 0;
            case PRAWN_BAR0_STATUS:
                return m_kind.ready ? PRAWN_STATUS_READY_MASK : 0;
            case PRAWN_BAR0_NODE:
                return m_kind.node | 2u << PRAWN_NODE_COUNT_SHIFT;
            case PRAWN_BAR0_EPOCH:
                return 1;
            case PRAWN_BAR0_LIMITS:
                return m_kind.contexts |
                       std::uint64_t{PRAWN_OPT_ENTRIES}
                           << PRAWN_LIMITS_OPT_ENTRIES_SHIFT |
                       std::uint64_t{PRAWN_IPT_ENTRIES}
                           << PRAWN_LIMITS_IPT_ENTRIES_SHIFT |
                       std::uint64_t{m_kind.vectors}
                           << PRAWN_LIMITS_VECTORS_SHIFT;
            case PRAWN_BAR0_INT_CAUSE:
                return m_cause;
            default:
                return m_register[offset];
        }
    }

    void write(std::uint64_t offset, std::uint64_t data) {
        switch (offset) {
            case PRAWN_BAR0_CTRL:
                if (data & PRAWN_CTRL_RESET_MASK)
                    restart();
                m_register[offset] = data & PRAWN_CTRL_ENABLE_MASK;
                break;
            case PRAWN_BAR0_INT_CAUSE:
                m_cause &= ~static_cast<std::uint32_t>(data);
                show_cause();
                break;
            case PRAWN_BAR0_INT_ENABLE:
                m_register[offset] = data;
                show_cause();
                break;
            case PRAWN_BAR0_ADMIN_DOORBELL:
                while (m_producer != static_cast<std::uint32_t>(data) &&
                       m_kind.answers)
                    admin();
                break;
            case PRAWN_BAR0_EVENT_CONSUMED:
                m_consumed = static_cast<std::uint32_t>(data);
                if (m_kind.babbles && m_exports >= BABBLE_FROM)
                    babble();
                break;
            default:
                m_register[offset] = data;
        }
    }

    // Whoever arms is interrupted at once, without news.
    void doorbell(unsigned context, std::uint64_t offset) {
        if (offset != PRAWN_DOORBELL_ARM_COMPLETION &&
            offset != PRAWN_DOORBELL_ARM_NOTIFY)
            return;
        const auto it = m_vector.find(context);
        if (it != m_vector.end())
            interrupt(it->second, PRAWN_INT_CAUSE_CONTEXT_MASK);
    }

    // INTx only while it is enabled, which the driver does without MSI-X.
    void interrupt(unsigned vector, std::uint32_t cause) {
        m_server->trigger_msix(m_endpoint, vector);
        m_cause |= cause;
        show_cause();
    }

    void show_cause() {
        m_server->set_intx(m_endpoint,
                           (m_cause & m_register[PRAWN_BAR0_INT_ENABLE]) != 0);
    }

    void admin() {
        const std::uint32_t size = 1u << m_register[PRAWN_BAR0_ADMIN_LOG2];
        prawn_admin_command c{};
        prawn_admin_ack ack{};
        m_memory.read(
            m_register[PRAWN_BAR0_ADMIN_BASE] + m_producer % size * sizeof(c),
            &c, sizeof(c));
        if (c.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE)
            m_vector[c.context] = c.index;
        if (c.opcode == PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE)
            m_vector.erase(c.context);
        if (c.opcode == PRAWN_ADMIN_OPCODE_IPT_SET)
            m_exports++;
        ack.status = m_kind.refuses ? PRAWN_STATUS_BAD_FIELD : PRAWN_STATUS_OK;
        ack.seq = m_producer + 1;
        m_memory.write(m_register[PRAWN_BAR0_ADMIN_ACK_BASE] +
                           m_producer % size * sizeof(ack),
                       &ack, sizeof(ack));
        m_producer++;
        if (c.flags & PRAWN_ADMIN_FLAG_INTERRUPT)
            interrupt(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_ADMIN_MASK);
        if (m_kind.vanishes && c.opcode == PRAWN_ADMIN_OPCODE_MGMT_SEND)
            answer(c.a, c.b);
        if (m_kind.babbles && m_exports >= BABBLE_FROM)
            babble();
    }

    void event(prawn_kernel_event e) {
        const std::uint32_t size = 1u << m_register[PRAWN_BAR0_EVENT_LOG2];
        e.seq = m_events + 1;
        m_memory.write(
            m_register[PRAWN_BAR0_EVENT_BASE] + m_events % size * sizeof(e), &e,
            sizeof(e));
        m_events++;
    }

    // Node 1 has an export of every name but one.
    void answer(std::uint64_t address, std::uint64_t bytes) {
        prawn_mgmt_import_request request{};
        prawn_mgmt_import_reply reply{};
        prawn_kernel_event e{};
        if (bytes != sizeof(request))
            return;
        m_memory.read(address, &request, sizeof(request));
        reply.header = request.header;
        reply.header.type = PRAWN_MGMT_TYPE_IMPORT_REPLY;
        if (std::strcmp(reinterpret_cast<const char*>(request.name),
                        "vanish.never") == 0)
            reply.header.status = ENOENT;
        reply.length = 1 << 20;
        e.type = PRAWN_EVENT_TYPE_MGMT;
        e.node = 1;
        e.epoch = 1;
        e.length = sizeof(reply);
        std::memcpy(e.data, &reply, sizeof(reply));
        event(e);
        interrupt(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_EVENT_MASK);
    }

    // As a node would that wants to find a hole in this one: requests under
    // every number there is, answers to nothing, lengths that lie.
    prawn_kernel_event nonsense() {
        prawn_kernel_event e{};
        auto* header = reinterpret_cast<prawn_mgmt_header*>(e.data);
        for (auto& byte : e.data)
            byte = static_cast<prawn_u8>(m_random());
        // Peers that come and go: not in the second half, which is to pile up.
        e.type = m_random() % 16 || m_events > LIMIT / 2
                     ? PRAWN_EVENT_TYPE_MGMT
                     : static_cast<prawn_u8>(m_random() % 12);
        e.node = m_random() % 8 ? 1 : static_cast<prawn_le16>(m_random());
        e.epoch = static_cast<prawn_le16>(m_random() % 3);
        e.context = static_cast<prawn_le16>(m_random());
        e.value = m_random();
        e.length = m_random() % 8 ? sizeof(prawn_mgmt_import_request)
                                  : static_cast<prawn_le32>(m_random());
        if (m_random() % 8 == 0)
            return e;
        header->type = m_random() % 2 ? PRAWN_MGMT_TYPE_IMPORT_REQUEST
                                      : static_cast<prawn_u8>(m_random() % 9);
        header->version = 1;
        header->transaction = static_cast<prawn_le32>(m_random() % 64);
        header->export_id = static_cast<prawn_le32>(m_random() % 64);
        header->import_id = static_cast<prawn_le32>(
            m_random() % 8 ? m_random() % 64 : m_random());
        if (header->type == PRAWN_MGMT_TYPE_IMPORT_REQUEST) {
            // Exports of the test: bad.0 to bad.7, and their neighbours.
            auto* request =
                reinterpret_cast<prawn_mgmt_import_request*>(e.data);
            const std::string name = "bad." + std::to_string(m_random() % 9);
            std::memcpy(request->name, name.c_str(), name.size() + 1);
        }
        return e;
    }

    // Fills the event ring whenever there is room.
    void babble() {
        const std::uint32_t size = 1u << m_register[PRAWN_BAR0_EVENT_LOG2];
        bool any = false;
        while (m_events - m_consumed < size && m_events < LIMIT) {
            event(nonsense());
            any = true;
        }
        m_register[PRAWN_BAR0_PROFILE] = m_events;  // for the test to see
        if (any)
            interrupt(PRAWN_VECTOR_KERNEL, PRAWN_INT_CAUSE_EVENT_MASK);
    }

    static constexpr std::uint32_t LIMIT = 8000;  // events
    static constexpr unsigned BABBLE_FROM = 8;    // exports

    const kind m_kind;
    vfio_user::identity m_identity;
    vfio_user::server* m_server = nullptr;
    vfio_user::endpoint_id m_endpoint = 0;
    vfio_user::guest_memory m_memory;
    std::map<std::uint64_t, std::uint64_t> m_register;
    std::map<unsigned, unsigned> m_vector;  // by context
    std::uint32_t m_producer = 0;
    std::uint32_t m_events = 0;
    unsigned m_exports = 0;  // set so far
    std::uint32_t m_consumed = 0;
    std::uint32_t m_cause = 0;
    std::atomic<bool> m_gone{false};
    std::mt19937_64 m_random{1};
};

int serve(const std::string& directory, const std::vector<std::string>& names) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread

    vfio_user::server server;
    std::vector<std::unique_ptr<bad_card>> cards;
    for (const std::string& name : names) {
        cards.push_back(std::make_unique<bad_card>(name));
        cards.back()->attach(
            server, server.add_endpoint(directory + "/" + name + ".sock",
                                        *cards.back()));
    }
    server.start();
    std::puts("ready");
    std::fflush(stdout);
    int number = 0;
    while (sigwait(&set, &number) == 0 && number == SIGUSR1)
        for (const auto& card : cards)
            card->vanish();
    server.stop();
    return 0;
}

}  // namespace
}  // namespace prawn

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("usage: bad_card DIRECTORY KIND...\n", stderr);
        return 2;
    }
    try {
        return prawn::serve(argv[1], {argv + 2, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bad_card: %s\n", error.what());
        return 1;
    }
}
