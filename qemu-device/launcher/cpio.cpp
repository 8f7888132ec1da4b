// SPDX-License-Identifier: Apache-2.0
#include "cpio.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

// The kernel wants names without a leading slash.
std::string relative(const std::string& path) {
    const size_t at = path.find_first_not_of('/');
    return at == std::string::npos ? "." : path.substr(at);
}

void pad(std::string& data, size_t unit) {
    data.append((unit - data.size() % unit) % unit, '\0');
}

}  // namespace

void cpio_writer::entry(const std::string& path, unsigned mode,
                        const std::string& content, unsigned major,
                        unsigned minor) {
    const std::string name = relative(path);
    m_data += "070701";
    const auto field = [&](size_t value) {
        m_data += fmt::format("{:08x}", value);
    };
    field(m_inode++);
    field(mode);
    field(0);  // owner
    field(0);  // group
    field(1);  // links
    field(0);  // time: an image is a function of its contents
    field(content.size());
    field(0);  // device that holds the file
    field(0);
    field(major);
    field(minor);
    field(name.size() + 1);
    field(0);  // no checksum
    m_data += name;
    m_data += '\0';
    pad(m_data, 4);
    m_data += content;
    pad(m_data, 4);
}

void cpio_writer::parents(const std::string& path) {
    const std::string name = relative(path);
    for (size_t at = name.find('/'); at != std::string::npos;
         at = name.find('/', at + 1)) {
        directory(name.substr(0, at));
    }
}

void cpio_writer::directory(const std::string& path, unsigned mode) {
    if (!m_directories.insert(relative(path)).second)
        return;
    parents(path);
    entry(path, S_IFDIR | mode, "");
}

void cpio_writer::file(const std::string& path, unsigned mode,
                       const std::string& content) {
    parents(path);
    entry(path, S_IFREG | mode, content);
}

void cpio_writer::symlink(const std::string& path, const std::string& target) {
    parents(path);
    entry(path, S_IFLNK | 0777, target);
}

void cpio_writer::char_device(const std::string& path, unsigned mode,
                              unsigned major, unsigned minor) {
    parents(path);
    entry(path, S_IFCHR | mode, "", major, minor);
}

std::string cpio_writer::finish() {
    entry("TRAILER!!!", 0, "");
    pad(m_data, 512);
    return std::move(m_data);
}

std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        throw failure(EXIT_SETUP,
                      path.string() + ": cannot be read: " + strerror(errno));
    }
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& content) {
    // Written aside and moved: two runs may want the same file at a time.
    const fs::path part = path.string() + ".part." + std::to_string(getpid());
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(part, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (out)
        fs::rename(part, path, error);
    if (!out || error) {
        fs::remove(part, error);
        throw failure(EXIT_SETUP, path.string() + ": cannot be written: " +
                                      strerror(errno));
    }
}

}  // namespace prawn::launch
