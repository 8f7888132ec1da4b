// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "session.h"

namespace prawn::launch {

namespace {

constexpr auto SAY_EVERY = std::chrono::seconds(10);

stage* g_current = nullptr;  // stages do not nest

}  // namespace

stage::stage(std::string what) : m_what(std::move(what)) {
    g_current = this;
    if (!isatty(STDERR_FILENO))
        return;
    fmt::print(stderr, "prawn: {} ...", m_what);
    std::fflush(stderr);
    m_open = true;
}

stage::~stage() {
    if (g_current == this)
        g_current = nullptr;
    if (m_open)
        fmt::print(stderr, "\n");
}

void stage::tick() {
    stage* current = g_current;
    const auto now = steady::now();
    if (!current || current->m_open || now < current->m_last_said + SAY_EVERY)
        return;
    current->m_last_said = now;
    const std::chrono::duration<double> taken = now - current->m_begin;
    fmt::print(stderr, "prawn: {} ... {:.0f} s and not over\n", current->m_what,
               taken.count());
}

void stage::done(const std::string& remark) {
    g_current = nullptr;
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
