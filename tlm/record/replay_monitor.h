// SPDX-License-Identifier: Apache-2.0
// How a replay is going: what was different first, and why it ended.

#ifndef PRAWN_RECORD_REPLAY_MONITOR_H
#define PRAWN_RECORD_REPLAY_MONITOR_H

#include <csignal>
#include <cstdint>
#include <string>

#include <systemc>

namespace prawn {

// Something that came otherwise than it was recorded.
struct replay_difference {
    std::uint64_t record = 0;  // number in the file, from 1; 0: of none
    std::uint64_t time_ps = 0;
    std::string text;  // one line: what was expected, what came
};

class replay_monitor
{
public:
    // Set by a signal handler: the replay ends soon.
    static volatile std::sig_atomic_t& interrupt() {
        static volatile std::sig_atomic_t flag = 0;
        return flag;
    }

    // The replay is over: scripts do nothing any more.
    bool over() const { return m_over; }
    void stop() {
        if (!m_over)
            sc_core::sc_stop();
        m_over = true;
    }
    bool check_interrupt() {
        if (interrupt() == 0)
            return false;
        m_interrupted = true;
        stop();
        return true;
    }
    bool interrupted() const { return m_interrupted; }

    // It cannot go on; one line that says what, where, and the mend.
    void fail(const std::string& why) {
        if (m_error.empty())
            m_error = why;
        stop();
    }
    const std::string& error() const { return m_error; }

    // The one with the lowest record stands for all.
    void differ(const replay_difference& d) {
        if (m_differences++ == 0 || d.record < m_first.record)
            m_first = d;
    }
    std::uint64_t differences() const { return m_differences; }
    const replay_difference& first() const { return m_first; }

private:
    bool m_over = false;
    bool m_interrupted = false;
    std::string m_error;
    std::uint64_t m_differences = 0;
    replay_difference m_first;
};

}  // namespace prawn

#endif
