// SPDX-License-Identifier: Apache-2.0
//
// SET_IRQS in all its forms.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "qemu-device/vfio_user/irqs.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

// Only an eventfd can be signalled without ever blocking the model, whatever
// the client does with its end (event_signal.h).
bool is_eventfd(int fd) {
    char path[32];
    char name[32];
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t n = ::readlink(path, name, sizeof(name));
    constexpr char EVENTFD[] = "anon_inode:[eventfd]";
    return n == static_cast<ssize_t>(sizeof(EVENTFD) - 1) &&
           std::memcmp(name, EVENTFD, sizeof(EVENTFD) - 1) == 0;
}

bool prepare_eventfd(int fd) {
    if (!is_eventfd(fd))
        return false;
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && ((flags & O_NONBLOCK) != 0 ||
                          ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

bool is_one_bit(std::uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

}  // namespace

std::vector<irqs::line>* irqs::lines(std::uint32_t index) {
    switch (index) {
        case IRQ_INTX:
            return &m_intx;
        case IRQ_MSIX:
            return &m_msix;
        case IRQ_ERR:
            return &m_err;
        case IRQ_REQ:
            return &m_req;
        default:
            return nullptr;
    }
}

std::uint32_t irqs::count(std::uint32_t index) const {
    // The sizes never change.
    const auto* all = const_cast<irqs*>(this)->lines(index);
    return all == nullptr ? 0 : static_cast<std::uint32_t>(all->size());
}

std::uint32_t irqs::flags(std::uint32_t index) const {
    if (count(index) == 0)
        return 0;
    switch (index) {
        case IRQ_INTX:
            return IRQ_INFO_EVENTFD | IRQ_INFO_MASKABLE | IRQ_INFO_AUTOMASKED;
        case IRQ_MSIX:
            return IRQ_INFO_EVENTFD | IRQ_INFO_MASKABLE;
        default:
            return IRQ_INFO_EVENTFD;
    }
}

int irqs::check(const irq_set& request, std::size_t size, std::size_t fds,
                std::uint32_t limit) {
    const std::uint32_t data = request.flags & IRQ_SET_DATA_MASK;
    const std::uint32_t action = request.flags & IRQ_SET_ACTIONS;
    if ((data | action) != request.flags || !is_one_bit(data) ||
        !is_one_bit(action) || request.index >= IRQ_COUNT)
        return EINVAL;
    if (request.argsz < sizeof(irq_set))
        return EINVAL;
    if (request.start > limit || request.count > limit - request.start)
        return EINVAL;
    if (fds != 0 && data != IRQ_SET_DATA_EVENTFD)
        return EINVAL;

    const bool maskable =
        request.index == IRQ_INTX || request.index == IRQ_MSIX;
    if (action != IRQ_SET_ACTION_TRIGGER && !maskable)
        return EINVAL;
    if (request.count == 0 &&
        (request.start != 0 || data != IRQ_SET_DATA_NONE ||
         action != IRQ_SET_ACTION_TRIGGER))
        return EINVAL;

    std::size_t expected = 0;
    if (data == IRQ_SET_DATA_BOOL)
        expected = request.count;
    else if (data == IRQ_SET_DATA_EVENTFD && size != 0)
        expected = std::size_t{request.count} * sizeof(std::int32_t);
    return size == expected ? 0 : EINVAL;
}

// One slot for each interrupt of the range, empty where none is to be
// assigned. Three forms: no descriptor at all (QEMU: deassign), one for each
// interrupt, or an array like the kernel's in which -1 marks the gaps.
int irqs::check_fds(const irq_set& request, const std::uint8_t* data,
                    std::size_t size, std::vector<unique_fd>& fds,
                    std::vector<unique_fd>& spread) {
    std::vector<bool> given(request.count, !fds.empty());
    std::size_t wanted = fds.empty() ? 0 : request.count;
    if (size != 0) {
        wanted = 0;
        for (std::size_t i = 0; i < request.count; i++) {
            std::int32_t number;
            std::memcpy(&number, data + i * sizeof(number), sizeof(number));
            given[i] = number >= 0;
            wanted += given[i] ? 1 : 0;
        }
    }
    if (wanted != fds.size())
        return EINVAL;
    for (const unique_fd& fd : fds) {
        if (!prepare_eventfd(fd.get()))
            return EINVAL;
    }
    spread.resize(request.count);
    auto next = fds.begin();
    for (std::size_t i = 0; i < request.count; i++) {
        if (given[i])
            spread[i] = std::move(*next++);
    }
    return 0;
}

int irqs::set_irqs(const irq_set& request, const std::uint8_t* data,
                   std::size_t size, std::vector<unique_fd>& fds) {
    const int bad = check(request, size, fds.size(), count(request.index));
    if (bad != 0)
        return bad;
    const std::uint32_t kind = request.flags & IRQ_SET_DATA_MASK;
    std::vector<unique_fd> spread;
    if (kind == IRQ_SET_DATA_EVENTFD) {
        const int wrong = check_fds(request, data, size, fds, spread);
        if (wrong != 0)
            return wrong;
    }

    const std::lock_guard<std::mutex> hold(m_lock);
    if (request.count == 0)
        disable(request.index);
    else if (kind == IRQ_SET_DATA_EVENTFD)
        assign(request, spread);
    else
        act(request, kind == IRQ_SET_DATA_BOOL ? data : nullptr);
    return 0;
}

void irqs::assign(const irq_set& request, std::vector<unique_fd>& spread) {
    std::vector<line>& all = *lines(request.index);
    for (std::uint32_t i = 0; i < request.count; i++) {
        line& l = all[request.start + i];
        switch (request.flags & IRQ_SET_ACTIONS) {
            case IRQ_SET_ACTION_TRIGGER:
                l.trigger = std::move(spread[i]);
                if (request.index == IRQ_MSIX) {
                    deliver_pending(request.start + i);
                } else if (request.index == IRQ_INTX) {
                    l.client_masked = false;
                    evaluate_intx();
                }
                break;
            case IRQ_SET_ACTION_MASK:
                l.mask = std::move(spread[i]);
                break;
            default:
                set_unmask_fd(request.index, l, std::move(spread[i]));
                break;
        }
    }
}

void irqs::act(const irq_set& request, const std::uint8_t* booleans) {
    std::vector<line>& all = *lines(request.index);
    for (std::uint32_t i = 0; i < request.count; i++) {
        if (booleans != nullptr && booleans[i] == 0)
            continue;
        line& l = all[request.start + i];
        switch (request.flags & IRQ_SET_ACTIONS) {
            case IRQ_SET_ACTION_TRIGGER:
                // The client tests its own wiring: masks do not matter.
                signal(l.trigger, true);
                break;
            case IRQ_SET_ACTION_MASK:
                if (!l.client_masked)
                    signal(l.mask, false);
                l.client_masked = true;
                break;
            default:
                // For INTx this descriptor goes the other way (see watch).
                if (l.client_masked && request.index != IRQ_INTX)
                    signal(l.unmask, false);
                l.client_masked = false;
                if (request.index == IRQ_MSIX)
                    deliver_pending(request.start + i);
                else
                    evaluate_intx();
                break;
        }
    }
}

}  // namespace vfio_user
}  // namespace prawn
