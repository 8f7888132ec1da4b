// SPDX-License-Identifier: Apache-2.0
#include "support/counters.h"

#include <iomanip>
#include <ostream>
#include <stdexcept>

#include "prawn_hw.h"

namespace prawn {

namespace {

const std::string NO_NAME;

bool well_formed(const std::string& name) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == name.size())
        return false;
    for (char c : name)
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' &&
            c != '.')
            return false;
    return true;
}

}  // namespace

counter_registry::counter_registry(std::size_t contexts) :
    m_contexts(contexts) {}

void counter_registry::check(const std::string& name) const {
    if (!well_formed(name))
        throw std::logic_error("counter '" + name +
                               "': name it block.counter, in lower case");
    if (name.size() >= PRAWN_COUNTER_NAME_SIZE)
        throw std::logic_error("counter '" + name + "': shorten its name to " +
                               std::to_string(PRAWN_COUNTER_NAME_SIZE - 1) +
                               " characters");
    for (const global_entry& e : m_global)
        if (e.name == name)
            throw std::logic_error("counter '" + name + "': registered twice");
    for (const context_entry& e : m_context)
        if (e.name == name)
            throw std::logic_error("counter '" + name + "': registered twice");
}

counter& counter_registry::add(const std::string& name) {
    check(name);
    m_global.push_back({name, counter()});
    return m_global.back().value;
}

context_counter& counter_registry::add_per_context(const std::string& name) {
    check(name);
    m_context.push_back({name, context_counter(m_contexts)});
    return m_context.back().values;
}

const std::string& counter_registry::name(std::size_t index) const {
    return index < m_global.size() ? m_global[index].name : NO_NAME;
}

std::uint64_t counter_registry::value(std::size_t index) const {
    return index < m_global.size() ? m_global[index].value.value()
                                   : ~std::uint64_t{0};
}

const std::string& counter_registry::per_context_name(std::size_t index) const {
    return index < m_context.size() ? m_context[index].name : NO_NAME;
}

std::uint64_t counter_registry::per_context_value(std::size_t index,
                                                  std::size_t context) const {
    if (index >= m_context.size() || context >= m_contexts)
        return ~std::uint64_t{0};
    return m_context[index].values.value(context);
}

void counter_registry::clear_context(std::size_t context) {
    if (context >= m_contexts)
        return;
    for (context_entry& e : m_context)
        e.values[context].set(0);
}

bool counter_registry::active(std::size_t context) const {
    for (const context_entry& e : m_context)
        if (e.values.value(context) != 0)
            return true;
    return false;
}

void counter_registry::write_table(std::ostream& out) const {
    const auto line = [&out](const std::string& name, std::uint64_t value) {
        if (value != 0)
            out << "  " << std::left << std::setw(PRAWN_COUNTER_NAME_SIZE)
                << name << ' ' << std::right << std::setw(16) << value << '\n';
    };
    for (const global_entry& e : m_global)
        line(e.name, e.value.value());
    for (std::size_t c = 0; c < m_contexts; c++) {
        if (!active(c))
            continue;
        out << "  context " << c << '\n';
        for (const context_entry& e : m_context)
            line("  " + e.name, e.values.value(c));
    }
}

void counter_registry::write_json(std::ostream& out) const {
    // Names are well-formed: nothing to escape.
    const char* comma = "";
    out << "{\"global\": {";
    for (const global_entry& e : m_global) {
        out << comma << '"' << e.name << "\": " << e.value.value();
        comma = ", ";
    }
    out << "}, \"contexts\": {";
    const char* between = "";
    for (std::size_t c = 0; c < m_contexts; c++) {
        if (!active(c))
            continue;
        out << between << '"' << c << "\": {";
        between = ", ";
        comma = "";
        for (const context_entry& e : m_context) {
            out << comma << '"' << e.name << "\": " << e.values.value(c);
            comma = ", ";
        }
        out << '}';
    }
    out << "}}";
}

}  // namespace prawn
