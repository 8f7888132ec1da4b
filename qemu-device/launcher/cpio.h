// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_CPIO_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_CPIO_H

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace prawn::launch {

// Writes a cpio archive in the "newc" format, which is what a Linux kernel
// unpacks as its initramfs. Archives may follow one another in one file; later
// files replace earlier ones. All files belong to root. Parent directories are
// added by themselves.
class cpio_writer
{
public:
    void directory(const std::string& path, unsigned mode = 0755);
    void file(const std::string& path, unsigned mode,
              const std::string& content);
    void symlink(const std::string& path, const std::string& target);
    void char_device(const std::string& path, unsigned mode, unsigned major,
                     unsigned minor);

    // Ends the archive and returns it; its size is a multiple of 512.
    std::string finish();

private:
    void entry(const std::string& path, unsigned mode,
               const std::string& content, unsigned major = 0,
               unsigned minor = 0);
    void parents(const std::string& path);

    std::string m_data;
    std::set<std::string> m_directories;
    std::uint32_t m_inode = 1;
};

// Whole files. Reading throws a failure (EXIT_SETUP) that names the file.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace prawn::launch

#endif
