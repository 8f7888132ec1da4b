// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_FAILURE_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_FAILURE_H

#include <stdexcept>
#include <string>
#include <utility>

namespace prawn::launch {

// What the launcher's exit status means. Scripts of users hang on these.
enum exit_code : int {
    EXIT_OK = 0,
    EXIT_CHECK_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_SETUP = 3,
    EXIT_PART_DIED = 4,
    EXIT_INTERRUPTED = 130,
};

// Ends a run: one line for the user and the exit status. Everything that was
// started is stopped by destructors on the way out.
class failure : public std::runtime_error
{
public:
    failure(exit_code code, const std::string& line, std::string details = "") :
        std::runtime_error(line), m_code(code), m_details(std::move(details)) {}

    exit_code code() const { return m_code; }
    const std::string& details() const { return m_details; }

private:
    exit_code m_code;
    std::string m_details;  // last lines of a log; may be empty
};

}  // namespace prawn::launch

#endif
