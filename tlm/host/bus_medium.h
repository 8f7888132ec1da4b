// SPDX-License-Identifier: Apache-2.0
// One medium of the I/O bus (the whole of EISA, one direction of PCIe): shared
// by flows, round robin by burst. Plain arithmetic, no SystemC: bursts pass
// when advance() says so, so that a burst costs no event.

#ifndef PRAWN_HOST_BUS_MEDIUM_H
#define PRAWN_HOST_BUS_MEDIUM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace prawn {

// All times are picoseconds. A job is a run of bursts of one flow; all but the
// last occupy the medium for `burst`, the last one for `tail`. Jobs of a flow
// are served in order; between flows the medium turns after every burst. A
// burst under way is never interrupted. What arrives at the very instant a
// burst ends takes part in the choice of the next.
class bus_medium
{
public:
    static constexpr unsigned FLOWS = 8;
    static constexpr std::uint64_t NEVER = ~std::uint64_t{0};

    struct job {
        std::uint64_t at = 0;  // arrival; not before what came before it
        std::uint32_t bursts = 1;
        std::uint64_t burst = 0;
        std::uint64_t tail = 0;
        void* user = nullptr;  // null: only occupies, is never reported
    };
    struct finished {
        void* user;
        std::uint64_t end;
    };

    // Jobs of one flow come in order of `at`, which may lie in the future but
    // not before the time already advanced to.
    void add(unsigned flow, const job& j);

    // Starts every burst that starts before `until`, and appends the jobs whose
    // last burst has been started, in order of their ends; an end may lie
    // beyond `until`.
    void advance(std::uint64_t until, std::vector<finished>& out);

    // Nothing is on the medium and nothing is announced.
    bool idle(std::uint64_t now) const {
        return m_jobs == 0 && m_at.free <= now;
    }
    // Only if idle(now): one burst starts at once. Returns its end.
    std::uint64_t start_now(std::uint64_t now, std::uint64_t burst) {
        m_at.free = now + burst;
        m_busy += burst;
        return m_at.free;
    }

    // When the next reported job will end if nothing else arrives; NEVER if
    // there is none.
    std::uint64_t next_end() const;

    // No reported job ends before, whatever arrives from now on. That is less
    // than next_end() may say: a burst is never interrupted, so one that
    // arrives can shift others such that a third finds its turn earlier.
    std::uint64_t earliest_end(std::uint64_t now) const;

    // Time occupied by the jobs that have been started to their end.
    std::uint64_t busy() const { return m_busy; }

private:
    // How far each flow has come.
    struct position {
        std::uint64_t free = 0;     // end of the last burst started
        unsigned last = FLOWS - 1;  // flow it belonged to
        unsigned pending = 0;       // bit per flow that has jobs left
        std::array<std::size_t, FLOWS> index{};   // of the current job
        std::array<std::uint32_t, FLOWS> left{};  // bursts of the current job
    };
    void next_job(position& p, unsigned flow) const;
    // Runs p forward; on_end(job, end) returns false to stop.
    template <typename F>
    void run(position& p, std::uint64_t until, F on_end) const;

    std::array<std::vector<job>, FLOWS> m_flows;
    position m_at;
    std::size_t m_jobs = 0;
    std::uint64_t m_busy = 0;
    mutable std::uint64_t m_next_end = NEVER;
    mutable bool m_next_known = true;
};

}  // namespace prawn

#endif
