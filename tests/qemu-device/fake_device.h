// SPDX-License-Identifier: Apache-2.0
//
// A device behind the server: memory in its BARs, a thread of its own in
// place of the model's, and registers that start DMA and raise interrupts.

#ifndef PRAWN_TESTS_QEMU_DEVICE_FAKE_DEVICE_H
#define PRAWN_TESTS_QEMU_DEVICE_FAKE_DEVICE_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "qemu-device/vfio_user/guest_memory.h"
#include "qemu-device/vfio_user/server.h"

namespace prawn {
namespace vfio_user {

/// The identity of the tests: our card's shape.
identity test_identity();

class fake_device : public device
{
public:
    explicit fake_device(const identity& id = test_identity());
    ~fake_device() override;

    void bind(server& s, endpoint_id endpoint);
    /// Ends the thread; queued work is dropped. Done by the destructor too.
    void stop();

    // Behaviour. -----------------------------------------------------------
    /// Answers from within the server's call.
    void set_immediate(bool on) { m_immediate = on; }
    /// While held, requests pile up unanswered.
    void hold(bool on);
    /// Requests that may pile up before can_accept() is false.
    void set_capacity(std::size_t n) { m_capacity = n; }
    /// The next BAR accesses are answered with this error.
    void set_error(int error) { m_error = error; }

    /// Runs on the device's thread; waits for its end.
    void run(const std::function<void(guest_memory&)>& work);

    // Observation. ---------------------------------------------------------
    std::vector<std::string> log();
    std::size_t queued();
    bool wait_for(const std::function<bool()>& condition);
    std::size_t waiting_regions() const { return m_regions; }
    bool is_bus_master() const { return m_bus_master; }
    std::uint64_t writes() const { return m_writes; }

    // device
    const identity& get_identity() const override { return m_identity; }
    bool can_accept() const override;
    void connected() override;
    void disconnected(reply_token token) override;
    void bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                  reply_token token) override;
    void bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                   std::uint64_t data, bool posted, reply_token token) override;
    void reset(reply_token token) override;
    void bus_master(bool enabled) override;
    void dma_map(std::shared_ptr<memory_region> region) override;
    void dma_unmap(std::shared_ptr<memory_region> region,
                   reply_token token) override;

private:
    void push(std::function<void()> work);
    void thread();
    void note(const std::string& line);

    identity m_identity;
    server* m_server = nullptr;
    endpoint_id m_endpoint = 0;
    std::atomic<bool> m_immediate{false};
    std::atomic<std::size_t> m_capacity{1u << 20};
    std::atomic<int> m_error{0};
    std::atomic<bool> m_bus_master{false};
    std::atomic<std::size_t> m_regions{0};
    std::atomic<std::uint64_t> m_writes{0};
    std::atomic<std::size_t> m_queued{0};

    // The device's thread only.
    guest_memory m_memory;
    std::map<std::uint64_t, std::uint8_t> m_bytes;

    std::mutex m_lock;
    std::condition_variable m_work;
    std::deque<std::function<void()>> m_queue;
    std::vector<std::string> m_log;
    bool m_held = false;
    bool m_stop = false;
    std::thread m_thread;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
