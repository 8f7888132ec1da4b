// SPDX-License-Identifier: GPL-2.0-or-later
// Which of a guest's memory accesses go to the card.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_BUS_WATCH_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_BUS_WATCH_H

#include <cstdint>

#include "internals.h"
#include "qemu_abi.h"

namespace prawn {
namespace lockstep {

class bus_watch
{
public:
    explicit bus_watch(const internals& qemu) : m_qemu(qemu) {}

    // The card; null while the guest has none.
    void* card();

    // The BAR that an access goes to and the offset in it; -1: another device,
    // or memory.
    int bar_of(qemu_plugin_meminfo_t info, std::uint64_t vaddr,
               std::uint64_t& offset);

    // Linux maps all memory here: an access is memory.
    static bool plain(std::uint64_t vaddr) {
        return vaddr >= 0xffff888000000000 && vaddr < 0xffffc88000000000;
    }
    // Could the last instruction of a block access memory? Jumps, calls and
    // returns reach no device.
    static bool may_access(const std::uint8_t* code, std::size_t size);
    static bool halts(const std::uint8_t* code, std::size_t size) {
        return size == 1 && code[0] == 0xf4;
    }

private:
    const internals& m_qemu;
    void* m_card = nullptr;
    // Names of memory regions are interned: one address, one region.
    const char* m_known[6] = {};
    const char* m_other[16] = {};
    unsigned m_others = 0;
};

}  // namespace lockstep
}  // namespace prawn

#endif
