// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of BARs, config space, MSI-X table and pending bits.

#include <cerrno>
#include <cstring>

#include "qemu-device/vfio_user/endpoint.h"

namespace prawn {
namespace vfio_user {

using namespace protocol;

namespace {

bool is_access_size(std::uint32_t n) {
    return n == 1 || n == 2 || n == 4 || n == 8;
}

bool is_inside(std::uint64_t offset, std::uint64_t first, std::uint64_t size) {
    return offset >= first && offset - first < size;
}

}  // namespace

std::uint64_t endpoint::region_size(std::uint32_t region) const {
    if (region < m_identity.bars.size())
        return m_identity.bars[region].size;
    return region == REGION_CONFIG ? config_space::SIZE : 0;
}

int endpoint::check_access(const region_access& access) const {
    if (access.region >= REGION_COUNT || access.count == 0)
        return EINVAL;
    const std::uint64_t size = region_size(access.region);
    if (access.offset > size || access.count > size - access.offset)
        return EINVAL;
    if (access.region == REGION_CONFIG)
        return 0;  // any piece of it
    const bool good =
        is_access_size(access.count) && access.offset % access.count == 0;
    return good ? 0 : EINVAL;
}

// Both structures start and end on multiples of 8: no access straddles.
endpoint::target endpoint::locate(const region_access& access,
                                  std::uint64_t& offset) const {
    const identity& id = m_identity;
    if (id.msix_vectors != 0 && access.region == id.msix_table_bar &&
        is_inside(access.offset, id.msix_table_offset, m_irqs.table_size())) {
        offset = access.offset - id.msix_table_offset;
        return target::TABLE;
    }
    if (id.msix_vectors != 0 && access.region == id.msix_pba_bar &&
        is_inside(access.offset, id.msix_pba_offset, m_irqs.pba_size())) {
        offset = access.offset - id.msix_pba_offset;
        return target::PBA;
    }
    offset = access.offset;
    return target::DEVICE;
}

int endpoint::on_region_read(const message& msg) {
    region_access access;
    if (msg.size != sizeof(access))
        return EINVAL;
    std::memcpy(&access, msg.payload, sizeof(access));
    const int error = check_access(access);
    if (error != 0)
        return error;

    std::uint64_t offset = access.offset;
    const bool is_config = access.region == REGION_CONFIG;
    const target where = is_config ? target::DEVICE : locate(access, offset);
    if (!is_config && where == target::DEVICE) {
        m_device.bar_read(access.region, offset, access.count,
                          token_for(msg.header, access));
        return 0;
    }

    std::uint8_t reply[sizeof(access) + config_space::SIZE];
    std::memcpy(reply, &access, sizeof(access));
    std::uint8_t* const data = reply + sizeof(access);
    const auto at = static_cast<std::size_t>(offset);
    if (is_config)
        m_config.read(at, data, access.count, m_irqs.intx_level());
    else if (where == target::TABLE)
        m_irqs.table_read(at, data, access.count);
    else
        m_irqs.pba_read(at, data, access.count);
    send_reply(msg.header, reply, sizeof(access) + access.count);
    return 0;
}

int endpoint::on_region_write(const message& msg) {
    region_access access;
    if (msg.size < sizeof(access))
        return EINVAL;
    std::memcpy(&access, msg.payload, sizeof(access));
    const int error = check_access(access);
    if (error != 0)
        return error;
    if (msg.size - sizeof(access) != access.count)
        return EINVAL;

    const std::uint8_t* const data = msg.payload + sizeof(access);
    if (goes_to_device(access)) {
        const bool posted = (msg.header.flags & FLAG_NO_REPLY) != 0;
        write_bar(access, data, posted, token_for(msg.header, access));
        return 0;
    }
    if (access.region == REGION_CONFIG) {
        if (write_config(access, data)) {
            // The guest's write ends when the function has been reset.
            reset_function(token_for(msg.header, access));
            return 0;
        }
    } else {
        write_bar(access, data, false, reply_token());
    }
    send_reply(msg.header, &access, sizeof(access));
    return 0;
}

bool endpoint::goes_to_device(const region_access& access) const {
    std::uint64_t offset;
    return access.region != REGION_CONFIG &&
           locate(access, offset) == target::DEVICE;
}

void endpoint::write_bar(const region_access& access, const std::uint8_t* data,
                         bool posted, reply_token token) {
    std::uint64_t offset;
    switch (locate(access, offset)) {
        case target::TABLE:
            m_irqs.table_write(static_cast<std::size_t>(offset), data,
                               access.count);
            break;
        case target::PBA:
            break;  // read-only
        case target::DEVICE: {
            std::uint64_t value = 0;
            std::memcpy(&value, data, access.count);
            m_device.bar_write(access.region, offset, access.count, value,
                               posted, token);
            break;
        }
    }
}

// True if the guest asks for a function level reset.
bool endpoint::write_config(const region_access& access,
                            const std::uint8_t* data) {
    const bool reset = m_config.write(static_cast<std::size_t>(access.offset),
                                      data, access.count);
    apply_config();
    return reset;
}

// All writes or, if any of them is wrong, none. One reply, when the last one
// that goes to the device is done; the device works in order.
int endpoint::on_write_multi(const message& msg) {
    if (!m_agreed.write_multiple)
        return ENOTSUP;
    std::uint64_t count;
    if (msg.size < sizeof(count))
        return EINVAL;
    std::memcpy(&count, msg.payload, sizeof(count));
    const std::size_t body = msg.size - sizeof(count);
    if (body % sizeof(write_one) != 0 || body / sizeof(write_one) != count ||
        count > MAX_MULTI_WRITES)
        return EINVAL;

    const std::uint8_t* const first = msg.payload + sizeof(count);
    std::size_t last_for_device = body;
    for (std::size_t at = 0; at < body; at += sizeof(write_one)) {
        region_access access;
        std::memcpy(&access, first + at, sizeof(access));
        const int error = access.count > sizeof(write_one::data)
                              ? EINVAL
                              : check_access(access);
        if (error != 0)
            return error;
        if (goes_to_device(access))
            last_for_device = at;
    }

    reply_token token;
    if (last_for_device != body && !(msg.header.flags & FLAG_NO_REPLY)) {
        const std::lock_guard<std::mutex> hold(m_lock);
        slot& s = take_slot(msg.header);
        s.write_count = count;
        token.value = s.token;
    }
    for (std::size_t at = 0; at < body; at += sizeof(write_one)) {
        region_access access;
        std::memcpy(&access, first + at, sizeof(access));
        const std::uint8_t* const data = first + at + sizeof(access);
        if (access.region == REGION_CONFIG) {
            if (write_config(access, data))
                reset_function(reply_token());
        } else if (at == last_for_device && token) {
            write_bar(access, data, false, token);
        } else {
            write_bar(access, data, true, reply_token());
        }
    }
    if (last_for_device == body)
        send_reply(msg.header, &count, sizeof(count));
    return 0;
}

}  // namespace vfio_user
}  // namespace prawn
