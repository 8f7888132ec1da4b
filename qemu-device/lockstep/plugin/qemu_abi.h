// SPDX-License-Identifier: GPL-2.0-or-later
// What this plugin uses of QEMU: the TCG plugin interface, version 7 (QEMU
// 11.x), and functions of QEMU itself that its executable exports. Debian
// packages no header for either.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_QEMU_ABI_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_PLUGIN_QEMU_ABI_H

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = std::uint64_t;
struct qemu_info_t {
    const char* target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus, max_vcpus;
    } system;
};
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_hwaddr;
struct qemu_plugin_u64 {
    qemu_plugin_scoreboard* score;
    std::size_t offset;
};
using qemu_plugin_meminfo_t = std::uint32_t;
struct qemu_plugin_mem_value {
    int type;  // 0 to 4: 8 to 128 bits
    union {
        std::uint8_t u8;
        std::uint16_t u16;
        std::uint32_t u32;
        std::uint64_t u64;
        struct {
            std::uint64_t low, high;
        } u128;
    } data;
};

enum qemu_plugin_cb_flags {
    QEMU_PLUGIN_CB_NO_REGS,
    QEMU_PLUGIN_CB_R_REGS,
    QEMU_PLUGIN_CB_RW_REGS
};
enum qemu_plugin_mem_rw {
    QEMU_PLUGIN_MEM_R = 1,
    QEMU_PLUGIN_MEM_W,
    QEMU_PLUGIN_MEM_RW
};
enum qemu_plugin_cond { QEMU_PLUGIN_COND_GT = 6 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

using qemu_plugin_udata_cb_t = void (*)(void*);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_tb_trans_cb_t = void (*)(qemu_plugin_tb*, void*);
using qemu_plugin_mem_cb_t = void (*)(unsigned, qemu_plugin_meminfo_t,
                                      std::uint64_t vaddr, void*);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t,
                                       qemu_plugin_vcpu_udata_cb_t, void*);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           qemu_plugin_tb_trans_cb_t, void*);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t,
                                    void*);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(qemu_plugin_tb*, int op,
                                                       qemu_plugin_u64,
                                                       std::uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(qemu_plugin_tb*,
                                               qemu_plugin_vcpu_udata_cb_t,
                                               int flags, int cond,
                                               qemu_plugin_u64,
                                               std::uint64_t imm, void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_mem_cb_t,
                                      int flags, int rw, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*,
                                            qemu_plugin_vcpu_udata_cb_t,
                                            int flags, void*);
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
std::size_t qemu_plugin_insn_data(const qemu_plugin_insn*, void* dest,
                                  std::size_t length);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
qemu_plugin_mem_value qemu_plugin_mem_get_value(qemu_plugin_meminfo_t);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t,
                                           std::uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr*);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);
const char* qemu_plugin_hwaddr_device_name(const qemu_plugin_hwaddr*);
qemu_plugin_scoreboard* qemu_plugin_scoreboard_new(std::size_t);
void* qemu_plugin_scoreboard_find(qemu_plugin_scoreboard*, unsigned);

}  // extern "C"

#endif
