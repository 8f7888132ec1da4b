// SPDX-License-Identifier: Apache-2.0
#include "trace/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace prawn {

output_file::output_file(const std::string& path) : m_path(path) {
    m_fd = ::open(path.c_str(),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (m_fd < 0)
        throw std::runtime_error("trace file " + path + ": " +
                                 std::strerror(errno) +
                                 ": give a path that can be written");
    struct stat st = {};
    if (::fstat(m_fd, &st) != 0 ||
        !(S_ISREG(st.st_mode) || S_ISCHR(st.st_mode))) {
        ::close(m_fd);
        throw std::runtime_error("trace file " + path +
                                 ": not a regular file: give another path");
    }
}

output_file::~output_file() {
    flush();
    if (m_fd >= 0)
        ::close(m_fd);
}

void output_file::end_record(std::uint64_t time_ps) {
    if (m_buffer.size() >= MANY_BYTES || time_ps >= m_flushed_ps + LONG_PS) {
        flush();
        m_flushed_ps = time_ps;
    }
}

void output_file::flush() {
    const char* p = m_buffer.data();
    std::size_t left = m_buffer.size();
    while (left != 0 && m_fd >= 0) {
        const ssize_t n = ::write(m_fd, p, left);
        if (n > 0) {
            p += n;
            left -= static_cast<std::size_t>(n);
        } else if (n == 0 || errno != EINTR) {
            std::fprintf(stderr,
                         "trace file %s: %s: it ends here; free space and run "
                         "again\n",
                         m_path.c_str(),
                         n == 0 ? "nothing written" : std::strerror(errno));
            ::close(m_fd);
            m_fd = -1;
        }
    }
    m_buffer.clear();
}

}  // namespace prawn
