// SPDX-License-Identifier: Apache-2.0
#include "kvm_probe.h"

#include <chrono>
#include <cstring>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace prawn::launch {

namespace {

constexpr auto PATIENCE = std::chrono::seconds(4);

// In a child: 0 when a virtual CPU has executed "hlt".
int run_one_instruction() {
    constexpr size_t PAGE = 4096;
    constexpr unsigned char HLT = 0xf4;
    const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (kvm < 0 || ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
        return 1;
    const int machine = ioctl(kvm, KVM_CREATE_VM, 0);
    void* memory = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (machine < 0 || memory == MAP_FAILED)
        return 1;
    memset(memory, HLT, PAGE);
    kvm_userspace_memory_region region{};
    region.memory_size = PAGE;
    region.userspace_addr = reinterpret_cast<__u64>(memory);
    if (ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region) < 0)
        return 1;
    const int cpu = ioctl(machine, KVM_CREATE_VCPU, 0);
    const int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    if (cpu < 0 || size < static_cast<int>(sizeof(kvm_run)))
        return 1;
    auto* state =
        static_cast<kvm_run*>(mmap(nullptr, static_cast<size_t>(size),
                                   PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0));
    kvm_sregs sregs{};
    kvm_regs regs{};
    if (state == MAP_FAILED || ioctl(cpu, KVM_GET_SREGS, &sregs) < 0)
        return 1;
    sregs.cs.base = 0;
    sregs.cs.selector = 0;
    regs.rflags = 2;
    if (ioctl(cpu, KVM_SET_SREGS, &sregs) < 0 ||
        ioctl(cpu, KVM_SET_REGS, &regs) < 0 || ioctl(cpu, KVM_RUN, 0) < 0) {
        return 1;
    }
    return state->exit_reason == KVM_EXIT_HLT ? 0 : 1;
}

}  // namespace

std::string kvm_trouble() {
    if (access("/dev/kvm", R_OK | W_OK) != 0)
        return "/dev/kvm is missing or not yours (group kvm?)";
    const pid_t child = fork();
    if (child == 0)
        _exit(run_one_instruction());
    const auto deadline = std::chrono::steady_clock::now() + PATIENCE;
    int status = 0;
    while (std::chrono::steady_clock::now() < deadline) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return status == 0 ? "" : "KVM does not execute code here";
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // It may hang in the kernel, where no signal reaches it: do not wait.
    kill(child, SIGKILL);
    return "KVM hangs on this machine";
}

}  // namespace prawn::launch
