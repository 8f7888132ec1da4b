// SPDX-License-Identifier: Apache-2.0
// Reference-counted objects that go back to a free list: packets and buffers
// cross many blocks and outlive a reset of any of them.

#ifndef PRAWN_SUPPORT_POOL_H
#define PRAWN_SUPPORT_POOL_H

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace prawn {

class pool_base;

// Base of pooled objects. Not thread-safe: SystemC thread only.
class pooled
{
public:
    pooled() = default;
    pooled(const pooled&) = delete;
    pooled& operator=(const pooled&) = delete;
    virtual ~pooled() = default;

private:
    template <typename T>
    friend class ref;
    template <typename T>
    friend class pool;
    friend class pool_base;
    std::uint32_t m_count = 0;
    pool_base* m_home = nullptr;
};

class pool_base
{
public:
    virtual ~pool_base() = default;
    virtual void put_back(pooled* object) = 0;
};

// Shared handle. ref<packet> converts to ref<pooled>.
template <typename T>
class ref
{
public:
    ref() = default;
    explicit ref(T* object) : m_object(object) { hold(); }
    ref(const ref& other) : m_object(other.m_object) { hold(); }
    ref(ref&& other) noexcept : m_object(std::exchange(other.m_object, {})) {}
    template <typename U>
    ref(const ref<U>& other) : m_object(other.get()) {
        hold();
    }
    ref& operator=(ref other) noexcept {
        std::swap(m_object, other.m_object);
        return *this;
    }
    ~ref() { release(); }

    T* get() const { return m_object; }
    T* operator->() const { return m_object; }
    T& operator*() const { return *m_object; }
    explicit operator bool() const { return m_object != nullptr; }
    void reset() {
        release();
        m_object = nullptr;
    }

private:
    void hold() {
        if (m_object)
            static_cast<pooled*>(m_object)->m_count++;
    }
    void release() {
        if (!m_object)
            return;
        auto* base = static_cast<pooled*>(m_object);
        if (--base->m_count == 0)
            base->m_home->put_back(base);
    }
    T* m_object = nullptr;
};

// Grows on demand, never shrinks. Must outlive every ref it gave out. The
// object comes back as its last user left it: the taker sets every field.
template <typename T>
class pool final : public pool_base
{
public:
    ref<T> get() {
        if (m_free.empty()) {
            m_all.push_back(std::make_unique<T>());
            m_all.back()->m_home = this;
            m_free.push_back(m_all.back().get());
        }
        T* object = m_free.back();
        m_free.pop_back();
        return ref<T>(object);
    }
    void put_back(pooled* object) override {
        m_free.push_back(static_cast<T*>(object));
    }
    // Objects now in use.
    std::size_t used() const { return m_all.size() - m_free.size(); }

private:
    std::vector<std::unique_ptr<T>> m_all;
    std::vector<T*> m_free;
};

}  // namespace prawn

#endif
