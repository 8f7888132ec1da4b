// SPDX-License-Identifier: GPL-2.0-or-later
#include "internals.h"

#include <type_traits>

#include <dlfcn.h>

namespace prawn {
namespace lockstep {

void** internals::current_cpu() {
    return static_cast<void**>(dlsym(RTLD_DEFAULT, "current_cpu"));
}

const char* internals::find() {
    const char* missing = nullptr;
    const auto get = [&](auto& pointer, const char* name) {
        void* address = dlsym(RTLD_DEFAULT, name);
        if (!address && !missing)
            missing = name;
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(
            address);
    };
    get(clock_get_ns, "qemu_clock_get_ns");
    get(icount_raw, "icount_get_raw");
    get(timer_init, "timer_init_full");
    get(timer_mod_ns, "timer_mod_ns");
    get(clock_deadline_ns, "qemu_clock_deadline_ns_all");
    get(lock, "bql_lock_impl");
    get(unlock, "bql_unlock");
    get(get_cpu, "qemu_get_cpu");
    get(run_on_cpu_later, "async_run_on_cpu");
    get(cpu_exit, "cpu_exit");
    get(leave_block, "cpu_loop_exit_restore");
    get(cpu_has_work, "cpu_has_work");
    get(is_running, "runstate_is_running");
    get(find_device, "object_resolve_path_type");
    get(bar_address, "pci_get_bar_addr");
    get(msix_notify, "msix_notify");
    get(set_intx, "pci_set_irq");
    get(timers_state, "timers_state");
    if (!missing && !current_cpu())
        missing = "current_cpu";
    return missing;
}

}  // namespace lockstep
}  // namespace prawn
