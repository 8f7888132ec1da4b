// SPDX-License-Identifier: Apache-2.0
// Input of a block that never refuses and acts at once: calls a function.

#ifndef PRAWN_SUPPORT_HANDLER_H
#define PRAWN_SUPPORT_HANDLER_H

#include <functional>
#include <utility>

#include "support/put.h"

namespace prawn {

template <typename T>
class handler final : public put_if<T>
{
public:
    explicit handler(std::function<void(T&)> call) : m_call(std::move(call)) {}

    bool try_put(T& item) override {
        m_call(item);
        return true;
    }
    const sc_core::sc_event& room() const override { return m_never; }

private:
    std::function<void(T&)> m_call;
    sc_core::sc_event m_never;
};

}  // namespace prawn

#endif
