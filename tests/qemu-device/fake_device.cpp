// SPDX-License-Identifier: Apache-2.0

#include "tests/qemu-device/fake_device.h"

#include <chrono>

namespace prawn {
namespace vfio_user {

identity test_identity() {
    identity id;
    id.vendor_id = 0x1b36;
    id.device_id = 0x0b0b;
    id.subsystem_vendor_id = 0x1af4;
    id.subsystem_id = 0x1100;
    id.class_code = 0x028000;
    id.revision = 1;
    id.bars[0] = bar_info{1u << 20, true, false};
    id.bars[2] = bar_info{256u << 10, true, false};
    id.bars[4] = bar_info{std::uint64_t{4} << 30, true, true};
    id.msix_vectors = 16;
    id.msix_table_offset = 0x8000;
    id.msix_pba_offset = 0x9000;
    id.intx = true;
    return id;
}

fake_device::fake_device(const identity& id) :
    m_identity(id), m_thread([this] { thread(); }) {}

fake_device::~fake_device() {
    stop();
}

void fake_device::bind(server& s, endpoint_id endpoint) {
    m_server = &s;
    m_endpoint = endpoint;
}

void fake_device::stop() {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_stop = true;
    }
    m_work.notify_all();
    if (m_thread.joinable())
        m_thread.join();
    m_queue.clear();
    m_memory.clear();
}

void fake_device::hold(bool on) {
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_held = on;
    }
    m_work.notify_all();
}

void fake_device::push(std::function<void()> work) {
    if (m_immediate) {
        work();
        return;
    }
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        m_queue.push_back(std::move(work));
        m_queued++;
    }
    m_work.notify_all();
}

void fake_device::thread() {
    std::unique_lock<std::mutex> hold(m_lock);
    for (;;) {
        m_work.wait(hold,
                    [this] { return m_stop || (!m_held && !m_queue.empty()); });
        if (m_stop)
            return;
        auto work = std::move(m_queue.front());
        m_queue.pop_front();
        hold.unlock();
        work();
        work = nullptr;
        m_queued--;
        if (m_server != nullptr)
            m_server->resume(m_endpoint);
        hold.lock();
    }
}

void fake_device::run(const std::function<void(guest_memory&)>& work) {
    bool done = false;
    std::condition_variable finished;
    std::mutex lock;
    push([&] {
        work(m_memory);
        const std::lock_guard<std::mutex> hold(lock);
        done = true;
        finished.notify_all();
    });
    std::unique_lock<std::mutex> hold(lock);
    finished.wait(hold, [&] { return done; });
}

void fake_device::note(const std::string& line) {
    const std::lock_guard<std::mutex> hold(m_lock);
    m_log.push_back(line);
}

std::vector<std::string> fake_device::log() {
    const std::lock_guard<std::mutex> hold(m_lock);
    return m_log;
}

std::size_t fake_device::queued() {
    return m_queued;
}

bool fake_device::wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; i++) {
        if (condition())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

bool fake_device::can_accept() const {
    return m_queued < m_capacity;
}

void fake_device::connected() {
    note("connected");
}

void fake_device::disconnected(reply_token token) {
    note("disconnected");
    push([this, token] {
        m_memory.clear();
        m_regions = 0;
        m_bytes.clear();
        m_server->complete(token, 0);
    });
}

void fake_device::bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                           reply_token token) {
    push([=] {
        if (const int error = m_error) {
            m_server->complete(token, error);
            return;
        }
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size; i++) {
            const auto it =
                m_bytes.find((std::uint64_t{bar} << 40) + offset + i);
            if (it != m_bytes.end())
                value |= std::uint64_t{it->second} << (8 * i);
        }
        m_server->complete_read(token, value);
    });
}

void fake_device::bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                            std::uint64_t data, bool posted,
                            reply_token token) {
    push([=] {
        if (const int error = m_error) {
            m_server->complete(token, error);
            return;
        }
        for (unsigned i = 0; i < size; i++) {
            m_bytes[(std::uint64_t{bar} << 40) + offset + i] =
                static_cast<std::uint8_t>(data >> (8 * i));
        }
        m_writes++;
        if (posted != !token)
            note("a posted write is one without token");
        m_server->complete_write(token);
    });
}

void fake_device::reset(reply_token token) {
    note("reset");
    push([this, token] {
        m_bytes.clear();
        m_server->complete(token, 0);
    });
}

void fake_device::bus_master(bool enabled) {
    note(enabled ? "bus master on" : "bus master off");
    m_bus_master = enabled;
}

void fake_device::dma_map(std::shared_ptr<memory_region> region) {
    push([this, region = std::move(region)] {
        if (m_memory.add(region))
            m_regions++;
        else
            note("overlapping region");
    });
}

void fake_device::dma_unmap(std::shared_ptr<memory_region> region,
                            reply_token token) {
    // Moved, not copied: at the answer nobody may hold the region any more.
    push([this, region = std::move(region), token]() mutable {
        if (m_memory.remove(*region))
            m_regions--;
        region.reset();
        m_server->complete(token, 0);
    });
}

}  // namespace vfio_user
}  // namespace prawn
