// SPDX-License-Identifier: Apache-2.0
//
// Interrupts of one card: INTx, MSI-X with table and pending bits, and the
// client's event descriptors (SET_IRQS).

#ifndef PRAWN_QEMU_DEVICE_VFIO_USER_IRQS_H
#define PRAWN_QEMU_DEVICE_VFIO_USER_IRQS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "qemu-device/vfio_user/device.h"
#include "qemu-device/vfio_user/event_signal.h"
#include "qemu-device/vfio_user/protocol.h"
#include "qemu-device/vfio_user/unique_fd.h"

namespace prawn {
namespace vfio_user {

/// Thread-safe: interrupts come from the model's thread, everything else from
/// the protocol thread.
///
/// A vector is delivered when the MSI-X capability is enabled, neither the
/// function, nor the table entry, nor the client (SET_IRQS) masks it, and an
/// event descriptor is assigned; otherwise it waits in its pending bit. QEMU
/// keeps the MSI-X table to itself, so that ours stays at its reset value,
/// all masked: an entry's mask bit counts only once it has been written.
///
/// INTx is level-triggered and masks itself when it is signalled; the client
/// unmasks it, and it is signalled again if the level is still asserted.
class irqs
{
public:
    /// Watching starts (true) or ends for the descriptor with which a client
    /// asks to unmask INTx: once for each write to it, not for as long as it
    /// is readable. Called on the protocol thread, with lock held.
    using watch_function = std::function<void(int fd, bool start)>;

    irqs(const identity& id, watch_function watch);

    // From any thread.
    void trigger_msix(unsigned vector);
    void set_intx(bool level);
    bool intx_level() const;
    std::uint64_t signalled() const;

    // From the protocol thread.
    /// Number of interrupts of a type.
    std::uint32_t count(std::uint32_t index) const;
    std::uint32_t flags(std::uint32_t index) const;

    /// SET_IRQS; `data` is what follows the fixed part. Takes the descriptors
    /// it keeps. Returns 0 or an errno value, then nothing has changed.
    int set_irqs(const protocol::irq_set& request, const std::uint8_t* data,
                 std::size_t size, std::vector<unique_fd>& fds);

    void set_msix_control(bool enabled, bool function_mask);
    void set_intx_disabled(bool disabled);

    /// The client has written to its unmask descriptor for INTx.
    void on_intx_unmask_event();

    // MSI-X table and pending bits; the range lies inside.
    std::size_t table_size() const { return m_table.size(); }
    std::size_t pba_size() const { return m_pending.size() * 8; }
    void table_read(std::size_t offset, void* data, std::size_t size) const;
    void table_write(std::size_t offset, const void* data, std::size_t size);
    void pba_read(std::size_t offset, void* data, std::size_t size) const;

    /// Function reset: table, masks and pending bits; descriptors stay.
    void reset();
    /// The client has gone: descriptors too.
    void release();

private:
    struct line {
        unique_fd trigger;
        unique_fd mask;
        unique_fd unmask;
        bool client_masked = false;
        bool table_written = false;
    };

    std::vector<line>* lines(std::uint32_t index);
    static int check(const protocol::irq_set& request, std::size_t size,
                     std::size_t fds, std::uint32_t limit);
    int check_fds(const protocol::irq_set& request, const std::uint8_t* data,
                  std::size_t size, std::vector<unique_fd>& fds,
                  std::vector<unique_fd>& spread);
    void assign(const protocol::irq_set& request,
                std::vector<unique_fd>& spread);
    void act(const protocol::irq_set& request, const std::uint8_t* data);
    void disable(std::uint32_t index);
    void set_unmask_fd(std::uint32_t index, line& l, unique_fd fd);

    bool table_masks(std::size_t vector) const;
    bool deliverable(std::size_t vector) const;
    void deliver_pending();
    void deliver_pending(std::size_t vector);
    void evaluate_intx();
    void signal(const unique_fd& fd, bool is_interrupt);

    const std::shared_ptr<event_signal> m_events = event_signal::shared();
    mutable std::mutex m_lock;
    watch_function m_watch;
    std::vector<line> m_intx;
    std::vector<line> m_msix;
    std::vector<line> m_err;
    std::vector<line> m_req;
    std::vector<std::uint8_t> m_table;
    std::vector<std::uint64_t> m_pending;
    bool m_msix_enabled = false;
    bool m_function_mask = false;
    bool m_intx_disabled = false;
    bool m_intx_level = false;
    std::uint64_t m_signalled = 0;
};

}  // namespace vfio_user
}  // namespace prawn

#endif
