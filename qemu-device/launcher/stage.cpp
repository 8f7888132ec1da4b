// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "session.h"

namespace prawn::launch {

namespace {

bool g_quiet = false;

}  // namespace

void stage::quiet(bool on) {
    g_quiet = on;
}

stage::stage(std::string what) : m_what(std::move(what)) {
    if (g_quiet || !isatty(STDERR_FILENO))
        return;
    fmt::print(stderr, "prawn: {} ...", m_what);
    std::fflush(stderr);
    m_open = true;
}

stage::~stage() {
    if (m_open)
        fmt::print(stderr, "\n");
}

void stage::done(const std::string& remark) {
    if (g_quiet)
        return;
    const std::chrono::duration<double> taken = steady::now() - m_begin;
    const std::string extra = remark.empty() ? "" : ", " + remark;
    if (m_open)
        fmt::print(stderr, " {:.1f} s{}\n", taken.count(), extra);
    else
        fmt::print(stderr, "prawn: {} ... {:.1f} s{}\n", m_what, taken.count(),
                   extra);
    m_open = false;
}

}  // namespace prawn::launch
