// SPDX-License-Identifier: Apache-2.0
// An input of a block whose puts are calls of the block's own functions, for
// blocks that decide at once instead of keeping an inbox.

#ifndef PRAWN_SUPPORT_INPUT_H
#define PRAWN_SUPPORT_INPUT_H

#include "support/put.h"

namespace prawn {

// PUT as put_if::try_put; ROOM says which event put_if::room() is.
template <typename T, typename Owner, bool (Owner::*PUT)(T&),
          const sc_core::sc_event& (Owner::*ROOM)() const>
class input final : public put_if<T>
{
public:
    explicit input(Owner& owner) : m_owner(owner) {}
    bool try_put(T& item) override { return (m_owner.*PUT)(item); }
    const sc_core::sc_event& room() const override { return (m_owner.*ROOM)(); }

private:
    Owner& m_owner;
};

// An input that never refuses: its room() is never notified.
template <typename T, typename Owner, void (Owner::*TAKE)(T&)>
class taker final : public put_if<T>
{
public:
    explicit taker(Owner& owner) : m_owner(owner) {}
    bool try_put(T& item) override {
        (m_owner.*TAKE)(item);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_never; }

private:
    Owner& m_owner;
    sc_core::sc_event m_never;
};

}  // namespace prawn

#endif
