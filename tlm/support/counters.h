// SPDX-License-Identifier: Apache-2.0
// Counters of one card: 64 bits, named "block.counter", of the card or one for
// each context. Their numbers are the order of registration, which is the order
// of elaboration: the same in every run of one configuration.

#ifndef PRAWN_SUPPORT_COUNTERS_H
#define PRAWN_SUPPORT_COUNTERS_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <string>
#include <vector>

namespace prawn {

class counter
{
public:
    counter& operator++() {
        m_value++;
        return *this;
    }
    void operator++(int) { m_value++; }
    counter& operator+=(std::uint64_t n) {
        m_value += n;
        return *this;
    }
    // For high-water marks and levels.
    void at_least(std::uint64_t v) {
        if (v > m_value)
            m_value = v;
    }
    void set(std::uint64_t v) { m_value = v; }
    std::uint64_t value() const { return m_value; }

private:
    std::uint64_t m_value = 0;
};

// One counter for each context. A context that does not exist counts nowhere.
class context_counter
{
public:
    explicit context_counter(std::size_t contexts) : m_of(contexts + 1) {}

    counter& operator[](std::size_t context) {
        const std::size_t last = m_of.size() - 1;
        return m_of[context < last ? context : last];
    }
    std::uint64_t value(std::size_t context) const {
        return context + 1 < m_of.size() ? m_of[context].value() : 0;
    }

private:
    std::vector<counter> m_of;
};

class counter_registry
{
public:
    // contexts: as many as the card has (PRAWN_CONTEXTS).
    explicit counter_registry(std::size_t contexts);
    counter_registry(const counter_registry&) = delete;
    counter_registry& operator=(const counter_registry&) = delete;

    // Called by a block's constructor; the reference stays valid as long as
    // the registry. Names: "block.counter", lower case, shorter than
    // PRAWN_COUNTER_NAME_SIZE, used once. Throws std::logic_error else.
    counter& add(const std::string& name);
    context_counter& add_per_context(const std::string& name);

    std::size_t size() const { return m_global.size(); }
    std::size_t per_context_size() const { return m_context.size(); }
    std::size_t contexts() const { return m_contexts; }

    // Of what does not exist: "" and all ones, as register COUNTER_VALUE says.
    const std::string& name(std::size_t index) const;
    std::uint64_t value(std::size_t index) const;
    const std::string& per_context_name(std::size_t index) const;
    std::uint64_t per_context_value(std::size_t index,
                                    std::size_t context) const;

    // All counters of a context to zero: its next owner shall not see what
    // the last one did.
    void clear_context(std::size_t context);

    // Everything that is not zero, for people; contexts that did nothing are
    // left out.
    void write_table(std::ostream& out) const;
    // {"global": {name: value, ...}, "contexts": {"0": {name: value, ...}}}:
    // all global ones; contexts as in write_table.
    void write_json(std::ostream& out) const;

private:
    struct global_entry {
        std::string name;
        counter value;
    };
    struct context_entry {
        std::string name;
        context_counter values;
    };
    void check(const std::string& name) const;
    bool active(std::size_t context) const;

    std::size_t m_contexts;
    std::deque<global_entry> m_global;
    std::deque<context_entry> m_context;
};

}  // namespace prawn

#endif
