// SPDX-License-Identifier: Apache-2.0
// Input of a block that is handled in the caller's process, without a queue:
// saves one activation of the kernel for each item.

#ifndef PRAWN_NIC_DIRECT_IN_H
#define PRAWN_NIC_DIRECT_IN_H

#include <string>

#include "support/put.h"

namespace prawn {

// TAKE is a member function of Owner: true if it took the item. It must not
// call the block that put the item: a request is answered later.
template <typename T, typename Owner, bool (Owner::*TAKE)(T&)>
class direct_in : public sc_core::sc_object, public put_if<T>
{
public:
    direct_in(const char* name, Owner& owner) :
        sc_core::sc_object(name),
        m_owner(owner),
        m_room((std::string(name) + "_room").c_str()) {}

    bool try_put(T& item) override {
        if ((m_owner.*TAKE)(item))
            return true;
        m_refused = true;
        return false;
    }
    const sc_core::sc_event& room() const override { return m_room; }

    // The owner has room again; tells those who were refused.
    void has_room() {
        if (!m_refused)
            return;
        m_refused = false;
        m_room.notify(sc_core::SC_ZERO_TIME);
    }

private:
    Owner& m_owner;
    bool m_refused = false;
    sc_core::sc_event m_room;
};

}  // namespace prawn

#endif
