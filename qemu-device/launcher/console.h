// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_CONSOLE_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_CONSOLE_H

#include <termios.h>

#include "run_dir.h"

namespace prawn::launch {

// Puts our terminal into raw mode for as long as it exists, so that a guest's
// shell gets every key, Ctrl-C among them. Does nothing when standard input is
// no terminal.
class raw_terminal
{
public:
    // A launcher that is killed cannot undo it: the run's janitor does.
    explicit raw_terminal(run_dir& dir);
    ~raw_terminal();
    raw_terminal(const raw_terminal&) = delete;
    raw_terminal& operator=(const raw_terminal&) = delete;

    bool is_terminal() const { return m_raw; }

    // Rows and columns; false when unknown.
    static bool size(unsigned& rows, unsigned& columns);

private:
    run_dir& m_dir;
    termios m_saved{};
    bool m_raw = false;
};

}  // namespace prawn::launch

#endif
