// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus_watch.h"

#include <cstring>

namespace prawn {
namespace lockstep {

void* bus_watch::card() {
    if (!m_card) {
        bool ambiguous = false;
        m_card = m_qemu.find_device("", "vfio-user-pci", &ambiguous);
    }
    return m_card;
}

int bus_watch::bar_of(qemu_plugin_meminfo_t info, std::uint64_t vaddr,
                      std::uint64_t& offset) {
    const qemu_plugin_hwaddr* where = qemu_plugin_get_hwaddr(info, vaddr);
    if (!where || !qemu_plugin_hwaddr_is_io(where))
        return -1;
    const char* name = qemu_plugin_hwaddr_device_name(where);
    for (unsigned i = 0; i < m_others; i++)
        if (m_other[i] == name)
            return -1;
    int bar = -1;
    for (int i = 0; i < 6; i++)
        if (m_known[i] == name)
            bar = i;
    if (bar < 0 && name) {
        // "vfio-user:PATH BAR N"
        const std::size_t size = std::strlen(name);
        if (size > 6 && std::strncmp(name, "vfio-user:", 10) == 0 &&
            std::strncmp(name + size - 6, " BAR ", 5) == 0 &&
            name[size - 1] >= '0' && name[size - 1] <= '5') {
            bar = name[size - 1] - '0';
            m_known[bar] = name;
        }
    }
    if (bar < 0 || !card()) {
        if (m_others < 16)
            m_other[m_others++] = name;
        return -1;
    }
    offset =
        qemu_plugin_hwaddr_phys_addr(where) - m_qemu.bar_address(m_card, bar);
    return bar;
}

bool bus_watch::may_access(const std::uint8_t* code, std::size_t size) {
    for (std::size_t i = 0; i < size; i++) {
        const std::uint8_t b = code[i];
        const bool prefix = b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x3e ||
                            b == 0x66 || (b >= 0x40 && b <= 0x4f);
        if (prefix)
            continue;
        if (b == 0xc3 || b == 0xe8 || b == 0xe9 || b == 0xeb ||
            (b >= 0x70 && b <= 0x7f))
            return false;
        return b != 0x0f || i + 1 >= size || code[i + 1] < 0x80 ||
               code[i + 1] > 0x8f;
    }
    return true;
}

}  // namespace lockstep
}  // namespace prawn
