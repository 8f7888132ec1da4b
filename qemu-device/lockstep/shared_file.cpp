// SPDX-License-Identifier: Apache-2.0
#include "qemu-device/lockstep/shared_file.h"

#include <cerrno>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace prawn {
namespace lockstep {

shared_file::shared_file(const std::string& path) : m_path(path) {
    const auto fail = [&] {
        throw std::system_error(errno, std::generic_category(), path);
    };
    ::unlink(path.c_str());
    const int fd =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        fail();
    if (::ftruncate(fd, sizeof(shared)) != 0)
        fail();
    void* at = ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED)
        fail();
    m_shared = new (at) shared;
    m_shared->model_pid = static_cast<std::uint32_t>(::getpid());
}

shared_file::~shared_file() {
    ::munmap(m_shared, sizeof(shared));
    ::unlink(m_path.c_str());
}

}  // namespace lockstep
}  // namespace prawn
