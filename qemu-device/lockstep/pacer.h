// SPDX-License-Identifier: Apache-2.0
// Runs the SystemC kernel in step with the guests.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PACER_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PACER_H

#include <atomic>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <systemc>

#include "host/host_bus.h"
#include "qemu-device/bridge/bridge.h"
#include "qemu-device/bridge/paced_host.h"
#include "qemu-device/lockstep/channel.h"
#include "qemu-device/lockstep/shared_file.h"
#include "support/profile.h"

namespace prawn {
namespace lockstep {

// The least time between a guest's write and what it can bring about.
struct lookahead {
    nanoseconds between_guests = 0;
    nanoseconds to_itself = 0;
    std::uint64_t card_to_host_ps = 0;  // from any event in a card
    static lookahead of(const timing_profile& profile);
};

// For the card's register TIME_MODE.
std::uint32_t time_mode_register(nanoseconds quantum,
                                 const timing_profile& profile);

// run() takes the place of sc_start(). Model time goes no further than every
// guest has come, and tells each guest how far nothing will reach it; so what
// happens in the model at a time finds every guest at that time or before, and
// those that are to notice it exactly there. While the model has nothing to do
// it sleeps, and guests bound one another.
//
// A guest's writes come through the shared memory, with their times; their
// copies on the socket are only compared. Everything else that a guest sends is
// sent by a virtual CPU that waits for the answer: the plugin is asked for the
// time.
// The quantum is how far a guest may lead the others. Up to EXACT_QUANTUM the
// run is exact: where the lookahead is less, that is the lead. A longer quantum
// is taken as it is; if it is above the lookahead the run is skewed.
class pacer final : public paced_host
{
public:
    pacer(const std::string& file, nanoseconds quantum,
          const timing_profile& profile);
    ~pacer() override;

    static constexpr nanoseconds EXACT_QUANTUM = 1000;

    // Before run(), in order of the nodes.
    void add(bridge& host, const host_bus& bus);

    void run();

    // What kept this run from being exact; empty if nothing did.
    std::string skew() const;
    void write_statistics(std::ostream& out) const;

    // paced_host
    std::uint64_t guest_time(unsigned node) override;
    void incoming() override;
    void reading(unsigned node) override;
    void read_answered(unsigned node) override;
    void interrupt(unsigned node, std::uint32_t vector) override;
    void delivered(unsigned node) override;
    void present(unsigned node, bool here) override;

private:
    struct guest {
        bridge* host = nullptr;
        const host_bus* bus = nullptr;
        std::uint64_t taken = 0;
        bool reading = false;
    };
    void collect();
    bool started(std::size_t node) const;
    void take_accesses(unsigned node);
    std::uint64_t next_event_ps();
    void publish(std::uint64_t next);
    nanoseconds earliest() const;
    bool news() const;
    bool stopped() const;

    shared_file m_file;
    shared& m_all;
    const lookahead m_look;
    std::vector<guest> m_guests;
    sc_core::sc_event m_far{"far"};
    std::atomic<bool> m_incoming{false};
    unsigned m_wakes = 0;
    std::size_t m_starting = 0;  // all nodes before have started
    // A guest may act at the time that the model has come to.
    bool m_paused = false;
    std::uint64_t m_steps = 0, m_sleeps = 0, m_late = 0;
    std::atomic<std::uint64_t> m_questions{0};
    std::uint64_t m_interrupts = 0, m_deliveries = 0;
};

}  // namespace lockstep
}  // namespace prawn

#endif
