// SPDX-License-Identifier: Apache-2.0
//
// The commands, except for access to regions (region_access.cpp). A handler
// returns an errno value for the error reply, or 0 when it has replied or
// left that to the device.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "qemu-device/vfio_user/endpoint.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

// The fixed part of a request that has nothing else.
template <typename T>
bool take(const message& msg, T& out) {
    if (msg.size != sizeof(T))
        return false;
    std::memcpy(&out, msg.payload, sizeof(T));
    return true;
}

std::size_t allowed_fds(std::uint16_t command) {
    switch (command) {
        case DMA_MAP:
            return 1;
        case DEVICE_SET_IRQS:
            return OFFERED_MAX_FDS;
        default:
            return 0;
    }
}

}  // namespace

void endpoint::handle(message& msg) {
    const std::uint32_t type = msg.header.flags & TYPE_MASK;
    if (type == TYPE_REPLY) {
        handle_reply(msg);
        return;
    }
    int error = 0;
    const bool known = type == TYPE_COMMAND;
    if (known && msg.fds_lost)
        error = EMFILE;
    else if (!known || msg.fds_too_many ||
             msg.fds.size() > allowed_fds(msg.header.command))
        error = EINVAL;
    else
        error = handle_command(msg);
    msg.fds.clear();
    if (error != 0)
        send_error(msg, error);
}

void endpoint::handle_reply(const message& msg) {
    auto answer = dma_messages::answer::UNKNOWN;
    if (msg.fds.empty() && !msg.fds_lost && !msg.fds_too_many) {
        const std::lock_guard<std::mutex> hold(m_lock);
        answer = m_dma.on_reply(msg.header, msg.payload, msg.size);
    }
    if (answer == dma_messages::answer::UNKNOWN)
        violation("reply to nothing that was asked");
    else if (answer == dma_messages::answer::MALFORMED)
        violation("malformed reply");
}

int endpoint::handle_command(message& msg) {
    if ((m_state == state::NEGOTIATED) == (msg.header.command == VERSION))
        return EINVAL;  // VERSION comes first, and once
    switch (msg.header.command) {
        case VERSION:
            return on_version(msg);
        case DMA_MAP:
            return on_dma_map(msg);
        case DMA_UNMAP:
            return on_dma_unmap(msg);
        case DEVICE_GET_INFO:
            return on_device_info(msg);
        case DEVICE_GET_REGION_INFO:
            return on_region_info(msg);
        case DEVICE_GET_REGION_IO_FDS:
            return on_region_io_fds(msg);
        case DEVICE_GET_IRQ_INFO:
            return on_irq_info(msg);
        case DEVICE_SET_IRQS:
            return on_set_irqs(msg);
        case REGION_READ:
            return on_region_read(msg);
        case REGION_WRITE:
            return on_region_write(msg);
        case REGION_WRITE_MULTI:
            return on_write_multi(msg);
        case DEVICE_RESET:
            return on_reset(msg);
        default:
            // Migration, dirty pages, features: not offered. DMA_READ and
            // DMA_WRITE go the other way.
            return ENOTSUP;
    }
}

int endpoint::on_version(message& msg) {
    capabilities offer;
    offer.max_msg_fds = OFFERED_MAX_FDS;
    offer.max_data_xfer_size = m_options.max_data_xfer_size;
    offer.max_dma_maps = m_options.max_dma_maps;
    offer.write_multiple = true;
    std::vector<std::uint8_t> reply;
    const int error =
        negotiate_version(msg.payload, msg.size, offer, m_agreed, reply);
    if (error != 0)
        return error;
    spdlog::info("vfio-user {}: client connected", m_name);
    m_state = state::NEGOTIATED;
    m_version_deadline = clock::time_point::max();
    m_device.connected();
    // From here on there may be DMA messages, but none before the reply.
    const std::lock_guard<std::mutex> hold(m_lock);
    m_dma.begin(m_agreed.max_data_xfer_size);
    m_connected = true;
    if ((msg.header.flags & FLAG_NO_REPLY) == 0) {
        send_reply_locked(msg.header.id, VERSION, reply.data(), reply.size());
    }
    return 0;
}

int endpoint::on_device_info(const message& msg) {
    device_info info;
    if (!take(msg, info) || info.argsz < sizeof(info))
        return EINVAL;
    info.argsz = sizeof(info);
    info.flags = DEVICE_FLAG_RESET | DEVICE_FLAG_PCI;
    info.num_regions = REGION_COUNT;
    info.num_irqs = IRQ_COUNT;
    send_reply(msg.header, &info, sizeof(info));
    return 0;
}

int endpoint::on_region_info(const message& msg) {
    region_info info;
    if (!take(msg, info) || info.argsz < sizeof(info) ||
        info.index >= REGION_COUNT)
        return EINVAL;
    info.argsz = sizeof(info);
    info.cap_offset = 0;
    info.offset = 0;
    info.size = region_size(info.index);
    // Never mappable: one mappable region, and QEMU's client makes every
    // write of the device wait for its reply.
    info.flags = info.size == 0 ? 0 : REGION_FLAG_READ | REGION_FLAG_WRITE;
    send_reply(msg.header, &info, sizeof(info));
    return 0;
}

int endpoint::on_region_io_fds(const message& msg) {
    region_io_fds info;
    if (!take(msg, info) || info.argsz < sizeof(info) || info.flags != 0 ||
        info.index >= REGION_COUNT)
        return EINVAL;
    info.argsz = sizeof(info);
    info.count = 0;
    send_reply(msg.header, &info, sizeof(info));
    return 0;
}

int endpoint::on_irq_info(const message& msg) {
    irq_info info;
    if (!take(msg, info) || info.argsz < sizeof(info) ||
        info.index >= IRQ_COUNT)
        return EINVAL;
    info.argsz = sizeof(info);
    info.flags = m_irqs.flags(info.index);
    info.count = m_irqs.count(info.index);
    send_reply(msg.header, &info, sizeof(info));
    return 0;
}

int endpoint::on_set_irqs(message& msg) {
    irq_set request;
    if (msg.size < sizeof(request))
        return EINVAL;
    std::memcpy(&request, msg.payload, sizeof(request));
    const int error = m_irqs.set_irqs(request, msg.payload + sizeof(request),
                                      msg.size - sizeof(request), msg.fds);
    if (error == 0)
        send_reply(msg.header, nullptr, 0);
    return error;
}

int endpoint::on_dma_map(message& msg) {
    dma_map map;
    if (!take(msg, map) || map.argsz < sizeof(map) ||
        (map.flags & ~DMA_FLAGS) != 0)
        return EINVAL;
    const bool needs_fd = (map.flags & (DMA_FLAG_MMAP | DMA_FLAG_FILE_IO)) != 0;
    if (needs_fd && msg.fds.empty())
        return EINVAL;
    if (map.size != 0) {
        const std::uint64_t last = map.address + (map.size - 1);
        const auto next = m_maps.upper_bound(last);
        if (last >= map.address && next != m_maps.begin()) {
            const memory_region& before = *std::prev(next)->second;
            if (before.iova() + (before.size() - 1) >= map.address)
                return EEXIST;
        }
    }
    if (m_maps.size() >= m_agreed.max_dma_maps)
        return ENOSPC;
    if (!msg.fds.empty()) {
        const std::uint64_t mapped = mapped_bytes();
        if (mapped > m_options.max_dma_bytes ||
            map.size > m_options.max_dma_bytes - mapped)
            return ENOSPC;
    }

    int error = 0;
    auto region = memory_region::create(
        map.address, map.size, (map.flags & DMA_FLAG_READ) != 0,
        (map.flags & DMA_FLAG_WRITE) != 0,
        msg.fds.empty() ? -1 : msg.fds[0].get(), map.offset, error);
    if (!region)
        return error;
    m_maps.emplace(map.address, region);
    m_device.dma_map(std::move(region));
    send_reply(msg.header, nullptr, 0);
    return 0;
}

// Together with what waits for the device to let go of it.
std::uint64_t endpoint::mapped_bytes() {
    std::uint64_t bytes = 0;
    const auto add = [&](const memory_region& region) {
        bytes += region.message_only() ? 0 : region.size();
    };
    for (const auto& map : m_maps)
        add(*map.second);
    const std::lock_guard<std::mutex> hold(m_lock);
    for (const slot& s : m_slots) {
        for (const auto& region : s.regions)
            add(*region);
    }
    return bytes;
}

int endpoint::on_dma_unmap(const message& msg) {
    dma_unmap unmap;
    if (!take(msg, unmap) || unmap.argsz < sizeof(unmap))
        return EINVAL;
    if ((unmap.flags & DMA_UNMAP_FLAG_DIRTY) != 0)
        return ENOTSUP;
    const bool all = unmap.flags == DMA_UNMAP_FLAG_ALL;
    if (!all && unmap.flags != 0)
        return EINVAL;

    // Out of our map at once, so that the client may map the same addresses
    // again without waiting; the memory lives on in the slot.
    std::vector<std::shared_ptr<memory_region>> regions;
    if (all) {
        if (unmap.address != 0 || unmap.size != 0)
            return EINVAL;
        for (auto& map : m_maps)
            regions.push_back(std::move(map.second));
        m_maps.clear();
    } else {
        const auto it = m_maps.find(unmap.address);
        if (it == m_maps.end() || it->second->size() != unmap.size)
            return ENOENT;
        regions.push_back(std::move(it->second));
        m_maps.erase(it);
    }
    if (regions.empty()) {
        send_reply(msg.header, &unmap, sizeof(unmap));
        return 0;
    }
    reply_token token;
    {
        const std::lock_guard<std::mutex> hold(m_lock);
        slot& s = take_slot(msg.header);
        s.unmap = unmap;
        s.answers = static_cast<unsigned>(regions.size());
        s.regions = regions;
        token.value = s.token;
    }
    for (auto& region : regions)
        m_device.dma_unmap(std::move(region), token);
    return 0;
}

int endpoint::on_reset(const message& msg) {
    if (msg.size != 0)
        return EINVAL;
    reset_function(token_for(msg.header, region_access{}));
    return 0;
}

void endpoint::reset_function(reply_token token) {
    m_irqs.reset();
    m_config.reset();
    apply_config();
    m_device.reset(token);
}

// What follows from the command register and the MSI-X control word.
void endpoint::apply_config() {
    m_irqs.set_intx_disabled(m_config.intx_disabled());
    m_irqs.set_msix_control(m_config.msix_enabled(),
                            m_config.msix_function_mask());
    if (m_config.bus_master() != m_bus_master) {
        m_bus_master = m_config.bus_master();
        m_device.bus_master(m_bus_master);
    }
}

}  // namespace vfio_user
}  // namespace prawn
