// SPDX-License-Identifier: GPL-2.0-or-later
// The lock-step plugin: holds a guest's virtual CPU wherever the guest might
// miss an effect, and tells model and other guests how far it has come.
//
// Options: channel=PATH of the shared memory, node=N, shift=N as of -icount.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pacing.h"

#define EXPORT __attribute__((visibility("default")))

extern "C" {
EXPORT int qemu_plugin_version = 7;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info,
                               int argc, char** argv);
}

namespace prawn {
namespace lockstep {

namespace {

pacing* the_guest = nullptr;

int refuse(const std::string& what) {
    std::fprintf(stderr, "prawn-lockstep: %s\n", what.c_str());
    return -1;
}

void translated(qemu_plugin_tb* tb, void*) {
    the_guest->translated(tb);
}

shared* map(const std::string& path, std::string& trouble) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {
    };
    if (fd < 0 || ::fstat(fd, &status) != 0) {
        trouble = "channel=" + path + ": " + std::strerror(errno);
        return nullptr;
    }
    if (status.st_size != static_cast<off_t>(sizeof(shared))) {
        trouble = "channel=" + path + ": not of this version of prawn-sim";
        ::close(fd);
        return nullptr;
    }
    void* at = ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) {
        trouble = "channel=" + path + ": " + std::strerror(errno);
        return nullptr;
    }
    auto* all = static_cast<shared*>(at);
    if (all->magic != MAGIC) {
        trouble = "channel=" + path + ": not of this version of prawn-sim";
        return nullptr;
    }
    return all;
}

}  // namespace

int install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
            char** argv) {
    std::string file;
    unsigned node = 0;
    unsigned shift = 0;
    bool trace = false;
    for (int i = 0; i < argc; i++) {
        const std::string word = argv[i];
        const std::string value = word.substr(word.find('=') + 1);
        if (word.rfind("channel=", 0) == 0)
            file = value;
        else if (word.rfind("node=", 0) == 0)
            node =
                static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
        else if (word.rfind("shift=", 0) == 0)
            shift =
                static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
        else if (word == "trace=on")
            trace = true;
        else
            return refuse("unknown option " + word +
                          " (there are channel=, node=, shift=)");
    }
    if (!info->system_emulation || info->system.smp_vcpus != 1)
        return refuse("needs a system with -smp 1");
    internals qemu;
    if (const char* name = qemu.find())
        return refuse(std::string("this QEMU exports no ") + name);
    std::string trouble;
    shared* all = map(file, trouble);
    if (!all)
        return refuse(trouble);
    if (node >= all->guests || shift > 10)
        return refuse("node=" + std::to_string(node) +
                      ", shift=" + std::to_string(shift) + ": out of range");
    the_guest = new pacing(*all, node, shift, qemu);
    the_guest->trace = trace;
    qemu_plugin_register_vcpu_init_cb(
        id, [](unsigned, void*) { the_guest->started(); }, nullptr);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated, nullptr);
    qemu_plugin_register_atexit_cb(
        id, [](void*) { the_guest->ended(); }, nullptr);
    std::thread([] { the_guest->answer_questions(); }).detach();
    return 0;
}

}  // namespace lockstep
}  // namespace prawn

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                        char** argv) {
    return prawn::lockstep::install(id, info, argc, argv);
}
