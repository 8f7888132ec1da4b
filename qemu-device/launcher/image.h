// SPDX-License-Identifier: Apache-2.0
#ifndef PRAWN_QEMU_DEVICE_LAUNCHER_IMAGE_H
#define PRAWN_QEMU_DEVICE_LAUNCHER_IMAGE_H

#include <filesystem>
#include <string>
#include <vector>

#include "settings.h"

namespace prawn::launch {

// What a guest boots: files that QEMU takes by -kernel and -initrd.
struct guest_image {
    std::filesystem::path kernel;
    std::filesystem::path initrd;
};

// Makes the image from Debian's own kernel package, busybox and our files, in
// two layers: the first depends on the kernel release alone and is kept, the
// second (prawn.ko, tools, tests) is made anew each time. With need_card,
// prawn.ko has to be there.
guest_image build_image(const settings& where, bool need_card);

// `initrd` with one more layer: the script of a guest's agent.
void with_script(const std::filesystem::path& initrd, const std::string& script,
                 const std::filesystem::path& result);

// The ELF image inside a compressed bzImage, which QEMU can start directly
// (PVH): the same kernel, spared its decompression by an emulated CPU. Empty
// when the file is something else.
std::string extract_kernel(const std::string& bzimage,
                           const std::filesystem::path& scratch);

// The content of a module without its debug information.
std::string without_debug_info(const std::filesystem::path& module,
                               const std::filesystem::path& scratch);

// Names of the modules that a module needs, as it says itself. Throws failure
// if the file is no module.
std::vector<std::string> module_needs(const std::filesystem::path& module,
                                      const std::filesystem::path& scratch);

// Files, below the directory `modules` of a kernel's modules, of those named
// and of all that they need, by its modules.dep; in the order of loading. A
// module that is not there is built into the kernel and passed over; with
// `all`, it throws failure.
std::vector<std::string> module_order(const std::filesystem::path& modules,
                                      const std::vector<std::string>& wanted,
                                      bool all = false);

// One line of files.list.
struct image_file {
    unsigned mode = 0;
    std::string target;
    std::filesystem::path source;
    bool optional = false;
};
std::vector<image_file> parse_file_list(const std::string& text,
                                        const settings& where);

}  // namespace prawn::launch

#endif
