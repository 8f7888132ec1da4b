// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary frames through link_mac, reliable, depacketizer, ipt and
// incoming_dma. The input is a program: each step has an opcode byte and its
// operands; most opcodes put a raw header on the wire, some with its CRC or a
// few fields put right so that it gets further.
//
// Has libFuzzer's entry; linked without libFuzzer it brings a driver of its
// own, which makes inputs out of PRAWN_FUZZ_SEED (default 1) until
// PRAWN_FUZZ_SECONDS (default 10) have passed, or runs the files named on the
// command line.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "receive_path.h"

namespace prawn {
namespace fuzz {
namespace {

// Bytes of the input, zeros behind its end.
class reader
{
public:
    reader(const std::uint8_t* data, std::size_t size) :
        m_data(data), m_left(size) {}
    bool empty() const { return m_left == 0; }
    void read(void* to, std::size_t size) {
        const std::size_t n = std::min(size, m_left);
        std::memset(to, 0, size);
        std::memcpy(to, m_data, n);
        m_data += n;
        m_left -= n;
    }
    template <typename T>
    T get() {
        T value;
        read(&value, sizeof(value));
        return value;
    }

private:
    const std::uint8_t* m_data;
    std::size_t m_left;
};

enum step : std::uint8_t {
    FRAME_RAW,        // header, CRC as given
    FRAME_CRC,        // header with its CRC put right
    FRAME_PLAUSIBLE,  // nodes, version, epochs, sequence put right too
    FRAME_DATA,       // a packet for an export that exists, one field wrong
    SET_EXPORT,
    CLEAR_EXPORT,
    DISABLE,
    STALL,
    FAIL,
    RUN,
    ENABLE,
    HELLO,
    RESET,
    STEPS
};

constexpr std::uint64_t KEY = 0x1234567890abcdef;
constexpr std::uint64_t VA = 0x100000;
constexpr unsigned EXPORTS = 8;

class program
{
public:
    explicit program(receive_path& card) : m_card(card) {}

    void run(reader in) {
        begin_life();
        for (unsigned steps = 0; !in.empty() && steps < 400; steps++)
            execute(static_cast<step>(in.get<std::uint8_t>() % STEPS), in);
        m_card.finish();
    }

private:
    void begin_life() {
        m_card.reset();
        m_card.enable(true);
        for (unsigned i = 0; i < EXPORTS; i++)
            m_card.set_export(i, range(i), KEY + i);
        for (std::uint16_t node = 1; node < NODES; node++)
            hello(node, 1);
        m_sequence = 1;
    }
    static export_range range(unsigned i) {
        export_range r;
        r.context = static_cast<std::uint16_t>(i % 4);
        r.va = VA + i * 0x10000 + i * 0x321;
        r.length = i * 0x1777;
        return r;
    }
    void hello(std::uint16_t node, std::uint16_t epoch) {
        packet_ref p = blank();
        p->head.type = PRAWN_PACKET_TYPE_HELLO;
        p->head.source_node = node;
        p->head.source_epoch = epoch;
        put(p, true);
    }
    static packet_ref blank() {
        packet_ref p = packet_pool().get();
        p->head = header{};
        p->head.version = PRAWN_PACKET_VERSION;
        p->crc = 0;
        return p;
    }
    void put(packet_ref p, bool right_crc) {
        if (right_crc && p->head.payload_length <= PRAWN_MAX_PAYLOAD)
            p->crc = packet_crc(*p);
        m_card.frame(p);
    }

    void frame(step s, reader& in) {
        packet_ref p = blank();
        in.read(&p->head, sizeof(header));
        p->crc = in.get<std::uint32_t>();
        if (s == FRAME_PLAUSIBLE) {
            header& h = p->head;
            h.version = PRAWN_PACKET_VERSION;
            h.type = static_cast<std::uint8_t>(h.type % 8);
            h.source_node %= NODES;
            h.destination_node = SELF;
            h.destination_epoch = 0;
            h.source_epoch = h.source_node == SELF ? m_card.epoch() : 1;
            h.sequence = m_sequence++;
            h.rsvd = 0;
            if (p->crc & 1) {  // and the rest of a management packet
                if (p->crc & 2)
                    h.payload_length %= PRAWN_MGMT_MAX;
                else
                    h.payload_length = static_cast<std::uint16_t>(
                        PRAWN_MGMT_MAX + (p->crc >> 2 & 1));
                h.flags = h.status = 0;
            }
        }
        put(p, s != FRAME_RAW);
    }

    // Good but for the bytes that the input changes.
    void data(reader& in) {
        packet_ref p = blank();
        header& h = p->head;
        const unsigned index = in.get<std::uint8_t>() % EXPORTS;
        const export_range e = range(index);
        h.type = PRAWN_PACKET_TYPE_DATA;
        h.source_node = static_cast<std::uint16_t>(1 + in.get<std::uint8_t>() %
                                                           (NODES - 1));
        h.destination_node = SELF;
        h.source_epoch = 1;
        h.sequence = m_sequence++;
        h.source_context = in.get<std::uint8_t>() % PRAWN_CONTEXTS;
        h.flags = in.get<std::uint8_t>() & PRAWN_PACKET_FLAGS;
        h.message = in.get<std::uint8_t>();
        h.export_id = index;
        h.key = KEY + index;
        const auto length = in.get<std::uint16_t>();
        h.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(
            length % (PRAWN_MAX_PAYLOAD + 1), e.length));
        const std::uint64_t room = e.length - h.payload_length;
        const auto place = in.get<std::uint16_t>();
        h.offset = place & 1 ? place % (room + 1) : room + (place >> 1) % 3;
        h.message_offset = h.flags & PRAWN_PACKET_FLAG_FIRST
                               ? 0
                               : static_cast<std::uint32_t>(h.offset);
        header& before = m_last[h.source_node][h.source_context];
        if (!(h.flags & PRAWN_PACKET_FLAG_FIRST) && (place & 4) != 0) {
            // Goes on where the last packet of this source ended.
            h.message = before.message;
            h.export_id = before.export_id;
            h.key = before.key;
            h.message_offset = before.message_offset + before.payload_length;
            h.offset = before.offset + before.payload_length;
        }
        before = h;
        const unsigned changes = in.get<std::uint8_t>() % 4;
        for (unsigned i = 1; i < changes; i++) {
            const unsigned at = in.get<std::uint8_t>() % sizeof(header);
            reinterpret_cast<std::uint8_t*>(&h)[at] = in.get<std::uint8_t>();
        }
        put(p, true);
    }

    void set_export(reader& in) {
        const unsigned index = in.get<std::uint8_t>() % (EXPORTS + 1);
        if (index < EXPORTS) {
            m_card.set_export(index, range(index), KEY + index);
            return;
        }
        export_range r;
        r.context = in.get<std::uint8_t>();
        r.va = in.get<std::uint64_t>();
        r.length = in.get<std::uint64_t>();
        m_card.set_export(in.get<std::uint16_t>(), r, KEY);
    }

    void execute(step s, reader& in) {
        switch (s) {
            case FRAME_RAW:
            case FRAME_CRC:
            case FRAME_PLAUSIBLE:
                frame(s, in);
                break;
            case FRAME_DATA:
                data(in);
                break;
            case SET_EXPORT:
                set_export(in);
                break;
            case CLEAR_EXPORT:
                m_card.clear_export(in.get<std::uint8_t>());
                break;
            case DISABLE:
                m_card.disable(in.get<std::uint8_t>() % 5);
                break;
            case STALL:
                m_card.stall(in.get<std::uint8_t>());
                break;
            case FAIL: {
                const auto which = in.get<std::uint8_t>();
                m_card.fail_next(which & 1, which & 2);
                break;
            }
            case RUN:
                sc_core::sc_start(sc_core::sc_time(in.get<std::uint8_t>() + 1.0,
                                                   sc_core::SC_NS));
                break;
            case ENABLE:
                m_card.enable(in.get<std::uint8_t>() % 4 != 0);
                break;
            case HELLO: {
                const auto node = in.get<std::uint8_t>();
                const auto epoch = in.get<std::uint16_t>();
                if (node & 0x80)
                    m_card.say_hello();
                else
                    hello(node % NODES, epoch % 4);
                break;
            }
            case RESET: {
                const auto how = in.get<std::uint8_t>() % 8;
                if (how == 0)
                    m_card.reset();
                else if (how < 4)
                    begin_life();
                break;
            }
            default:
                break;
        }
    }

    receive_path& m_card;
    std::uint32_t m_sequence = 1;
    header m_last[NODES][PRAWN_CONTEXTS] = {};
};

receive_path& the_card() {
    static auto* one = new receive_path("card");
    return *one;
}

}  // namespace
}  // namespace fuzz
}  // namespace prawn

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
    prawn::fuzz::program(prawn::fuzz::the_card()).run({data, size});
    return 0;
}

namespace {

using prawn::fuzz::the_card;

// Inputs: random steps, of which frames get most. No coverage feedback; what
// the steps put right takes its place.
std::vector<std::uint8_t> make_input(std::mt19937_64& random) {
    using namespace prawn::fuzz;
    static const step USUAL[] = {FRAME_RAW,  FRAME_CRC,  FRAME_PLAUSIBLE,
                                 FRAME_DATA, FRAME_DATA, FRAME_DATA,
                                 FRAME_DATA, RUN,        RUN};
    std::vector<std::uint8_t> input;
    const std::size_t steps = 1 + random() % 60;
    for (std::size_t i = 0; i < steps; i++) {
        const bool usual = random() % 4 != 0;
        input.push_back(static_cast<std::uint8_t>(
            usual ? std::uint64_t{USUAL[random() % std::size(USUAL)]}
                  : random() % STEPS));
        const std::size_t operands = input.back() <= FRAME_PLAUSIBLE
                                         ? sizeof(prawn::header) + 4
                                         : random() % 24;
        const bool sparse = random() % 2;
        for (std::size_t k = 0; k < operands; k++)
            input.push_back(sparse && random() % 4
                                ? 0
                                : static_cast<std::uint8_t>(random()));
    }
    return input;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool all_outcomes_seen(std::uint64_t inputs) {
    const auto& seen = the_card().seen;
    std::printf(
        "%llu inputs, %llu frames: %llu dmas, %llu notifications, "
        "%llu events, %llu nacks, %llu peer changes; refused:",
        static_cast<unsigned long long>(inputs),
        static_cast<unsigned long long>(seen.frames),
        static_cast<unsigned long long>(seen.dmas),
        static_cast<unsigned long long>(seen.notifications),
        static_cast<unsigned long long>(seen.events),
        static_cast<unsigned long long>(seen.nacks),
        static_cast<unsigned long long>(seen.peers));
    bool all = seen.dmas && seen.notifications && seen.events && seen.nacks &&
               seen.peers;
    for (unsigned status :
         {PRAWN_STATUS_BAD_EXPORT, PRAWN_STATUS_BAD_KEY,
          PRAWN_STATUS_EXPORT_RANGE, PRAWN_STATUS_STALE_EPOCH,
          PRAWN_STATUS_RECEIVE_FAULT, PRAWN_STATUS_NO_HOST,
          PRAWN_STATUS_BAD_PACKET, PRAWN_STATUS_UNKNOWN_OUTCOME}) {
        std::printf(" %u:%llu", status,
                    static_cast<unsigned long long>(seen.refusals[status]));
        all = all && seen.refusals[status];
    }
    std::printf("\n");
    return all;
}

}  // namespace

int sc_main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        std::ifstream file(argv[i], std::ios::binary);
        if (!file) {
            std::fprintf(stderr, "%s: cannot be read: name inputs to run\n",
                         argv[i]);
            return 1;
        }
        const std::string bytes((std::istreambuf_iterator<char>(file)), {});
        LLVMFuzzerTestOneInput(
            reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    if (argc > 1)
        return 0;

    const std::uint64_t seed = from_environment("PRAWN_FUZZ_SEED", 1);
    const std::chrono::seconds budget(
        from_environment("PRAWN_FUZZ_SECONDS", 10));
    // First, so that a run that is aborted can be repeated.
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    const auto end = std::chrono::steady_clock::now() + budget;
    std::mt19937_64 random(seed);
    std::uint64_t inputs = 0;
    do {
        for (unsigned i = 0; i < 100; i++, inputs++) {
            const auto input = make_input(random);
            LLVMFuzzerTestOneInput(input.data(), input.size());
        }
    } while (std::chrono::steady_clock::now() < end);
    if (!all_outcomes_seen(inputs)) {
        std::fprintf(stderr, "an outcome was never reached: run longer\n");
        return 1;
    }
    return 0;
}
