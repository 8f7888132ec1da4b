// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "cpio.h"
#include "failure.h"

namespace fs = std::filesystem;

namespace prawn::launch {

namespace {

std::uint32_t le32(const std::string& data, size_t at) {
    std::uint32_t value = 0;
    memcpy(&value, data.data() + at, sizeof(value));  // x86 reads x86 files
    return value;
}

// Which program undoes a compression, by the first bytes of the data.
std::vector<std::string> decompressor(const std::string& data) {
    static const std::vector<std::pair<std::string, std::vector<std::string>>>
        known = {
            {std::string("\xfd"
                         "7zXZ",
                         5),
             {"xz", "-dc", "--single-stream"}},
            {std::string("\x28\xb5\x2f\xfd", 4), {"zstd", "-dcq"}},
            {std::string("\x1f\x8b", 2), {"gzip", "-dc"}},
        };
    for (const auto& [magic, program] : known) {
        if (data.compare(0, magic.size(), magic) == 0)
            return program;
    }
    return {};
}

// A module as insmod wants it, whatever Debian packed it with.
std::string module_content(const fs::path& file) {
    std::string packed = read_file(file);
    const auto program = decompressor(packed);
    if (program.empty())
        return packed;
    command what{program, {}};
    what.argv.push_back(file);
    std::string plain = output_of(what);
    if (plain.empty()) {
        throw failure(EXIT_SETUP, fmt::format("{}: {} cannot unpack it",
                                              file.string(), program[0]));
    }
    return plain;
}

// A module as the kernel knows it, whatever its file is called.
std::string module_name(const std::string& file) {
    std::string name = fs::path(file).filename();
    name = name.substr(0, name.find('.'));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

// Debian's modules below /lib/prawn/DIR of the guest, and the file "order",
// which names them in the order of loading.
void add_modules(cpio_writer& out, const std::string& dir,
                 const fs::path& modules,
                 const std::vector<std::string>& paths) {
    std::string order;
    for (const auto& path : paths) {
        const std::string name = module_name(path) + ".ko";
        out.file("/lib/prawn/" + dir + "/" + name, 0644,
                 module_content(modules / path));
        order += name + "\n";
    }
    out.file("/lib/prawn/" + dir + "/order", 0644, order);
}

fs::path modules_of(const settings& where) {
    return fs::path("/lib/modules") / where.kernel;
}

std::string base_layer(const settings& where, const fs::path& busybox) {
    const fs::path source = where.root / "guest-driver" / "image";
    const fs::path modules = modules_of(where);
    cpio_writer out;
    for (const char* path : {"/dev", "/proc", "/sys", "/run", "/root", "/home",
                             "/bin", "/sbin", "/etc"}) {
        out.directory(path);
    }
    out.directory("/tmp", 01777);
    out.char_device("/dev/console", 0600, 5, 1);
    out.file("/init", 0755, read_file(source / "init"));
    out.file("/etc/passwd", 0644, read_file(source / "passwd"));
    out.file("/etc/group", 0644, read_file(source / "group"));
    out.file("/etc/profile", 0644, read_file(source / "profile"));
    out.file("/bin/busybox", 0755, read_file(busybox));

    std::istringstream applets(output_of({{busybox.string(), "--list"}, {}}));
    for (std::string name; std::getline(applets, name);) {
        if (name != "busybox" && name != "init")
            out.symlink("/bin/" + name, "busybox");
    }

    add_modules(out, "share", modules,
                module_order(modules, {"virtio_pci", "9pnet_virtio", "9p"}));
    return out.finish();
}

// Our module sheds its debug information, which would be most of the image.
std::string tools_layer(const settings& where, bool need_card) {
    cpio_writer out;
    std::vector<std::string> needs;
    const auto list = parse_file_list(
        read_file(where.root / "guest-driver" / "image" / "files.list"), where);
    for (const auto& item : list) {
        if (!fs::exists(item.source)) {
            const bool driver = item.source.filename() == "prawn.ko";
            if (item.optional && !(driver && need_card))
                continue;
            throw failure(EXIT_SETUP,
                          fmt::format("{}: missing, so the guest image "
                                      "cannot be made: run ./prawn test or "
                                      "build it",
                                      item.source.string()));
        }
        std::string content;
        if (item.source.extension() == ".ko") {
            content = without_debug_info(item.source, where.image_dir());
            if (item.source.filename() == "prawn.ko")
                needs = module_needs(item.source, where.image_dir());
        } else {
            content = read_file(item.source);
        }
        out.file(item.target, item.mode, content);
    }
    add_modules(out, "needs", modules_of(where),
                module_order(modules_of(where), needs, true));
    return out.finish();
}

bool newer(const fs::path& file, const fs::path& than) {
    std::error_code error;
    const auto time = fs::last_write_time(file, error);
    return !error && time > fs::last_write_time(than, error) && !error;
}

}  // namespace

std::vector<image_file> parse_file_list(const std::string& text,
                                        const settings& where) {
    std::vector<image_file> result;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); number++) {
        if (line.empty() || line[0] == '#')
            continue;
        std::istringstream words(line);
        std::string mode;
        std::string source;
        std::string rest;
        image_file item;
        words >> mode >> item.target >> source >> rest;
        const auto replace = [&](const std::string& word,
                                 const std::string& by) {
            if (source.compare(0, word.size(), word) == 0)
                source.replace(0, word.size(), by);
        };
        replace("@BUILD@", where.build_dir);
        replace("@ROOT@", where.root);
        const size_t release = source.find("@KERNEL@");
        if (release != std::string::npos)
            source.replace(release, strlen("@KERNEL@"), where.kernel);
        item.source = source;
        item.optional = rest == "optional";
        char* end = nullptr;
        item.mode = static_cast<unsigned>(strtoul(mode.c_str(), &end, 8));
        if (source.empty() || item.target[0] != '/' || *end ||
            item.mode > 07777 || (!rest.empty() && !item.optional)) {
            throw failure(EXIT_SETUP,
                          fmt::format("guest-driver/image/files.list:{}: must "
                                      "be: MODE /PATH SOURCE [optional]",
                                      number));
        }
        result.push_back(item);
    }
    return result;
}

std::string extract_kernel(const std::string& bzimage,
                           const fs::path& scratch) {
    // Linux' boot protocol: Documentation/arch/x86/boot.rst
    constexpr size_t SETUP_SECTORS = 0x1f1;
    constexpr size_t MAGIC = 0x202;
    constexpr size_t PAYLOAD_OFFSET = 0x248;
    constexpr size_t PAYLOAD_LENGTH = 0x24c;
    if (bzimage.size() < 0x1000 || bzimage.compare(MAGIC, 4, "HdrS") != 0)
        return {};
    const size_t sectors = static_cast<unsigned char>(bzimage[SETUP_SECTORS]);
    const size_t begin =
        ((sectors ? sectors : 4) + 1) * 512 + le32(bzimage, PAYLOAD_OFFSET);
    const size_t size = le32(bzimage, PAYLOAD_LENGTH);
    if (size < 64 || begin > bzimage.size() || size > bzimage.size() - begin)
        return {};
    // The last four bytes are the uncompressed size, appended by kbuild.
    std::string payload = bzimage.substr(begin, size - 4);
    auto program = decompressor(payload);
    if (program.empty())
        return {};
    const fs::path packed = scratch / fmt::format("kernel.packed.{}", getpid());
    write_file(packed, payload);
    program.push_back(packed);
    std::string elf = output_of({program, {}});
    std::error_code ignored;
    fs::remove(packed, ignored);
    return elf.compare(0, 4,
                       "\x7f"
                       "ELF") == 0
               ? elf
               : std::string();
}

// Through a file of this process alone: two runs may do it at a time.
std::string without_debug_info(const fs::path& module,
                               const fs::path& scratch) {
    const fs::path bare =
        scratch / fmt::format("{}.{}", module.filename().string(), getpid());
    std::error_code ignored;
    fs::remove(bare, ignored);
    output_of(
        {{"strip", "--strip-debug", "-o", bare.string(), module.string()}, {}});
    std::string content = read_file(fs::exists(bare) ? bare : module);
    fs::remove(bare, ignored);
    return content;
}

// The entry "depends=a,b" that kbuild writes into .modinfo. What is built into
// the kernel is not among them.
std::vector<std::string> module_needs(const fs::path& module,
                                      const fs::path& scratch) {
    const fs::path section =
        scratch /
        fmt::format("{}.modinfo.{}", module.filename().string(), getpid());
    std::error_code ignored;
    fs::remove(section, ignored);
    output_of({{"objcopy", "-O", "binary", "--only-section=.modinfo",
                "--set-section-flags", ".modinfo=alloc", module.string(),
                section.string()},
               {}});
    const std::string info =
        fs::exists(section) ? read_file(section) : std::string();
    fs::remove(section, ignored);
    std::istringstream entries(info);
    for (std::string entry; std::getline(entries, entry, '\0');) {
        const std::string key = "depends=";
        if (entry.compare(0, key.size(), key) != 0)
            continue;
        std::vector<std::string> names;
        std::istringstream list(entry.substr(key.size()));
        for (std::string name; std::getline(list, name, ',');)
            names.push_back(name);
        return names;
    }
    throw failure(EXIT_SETUP,
                  fmt::format("{}: does not say what modules it needs: build "
                              "it anew",
                              module.string()));
}

std::vector<std::string> module_order(const fs::path& modules,
                                      const std::vector<std::string>& wanted,
                                      bool all) {
    std::map<std::string, std::vector<std::string>> needs;
    std::map<std::string, std::string> by_name;
    std::istringstream lines(read_file(modules / "modules.dep"));
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string path;
        words >> path;
        if (path.empty() || path.back() != ':')
            continue;
        path.pop_back();
        by_name[module_name(path)] = path;
        auto& list = needs[path];
        for (std::string word; words >> word;)
            list.push_back(word);
    }
    std::vector<std::string> order;
    const auto add = [&](const std::string& path) {
        if (std::find(order.begin(), order.end(), path) == order.end())
            order.push_back(path);
    };
    for (const auto& name : wanted) {
        const auto it = by_name.find(module_name(name));
        if (it == by_name.end()) {
            if (all) {
                throw failure(
                    EXIT_SETUP,
                    fmt::format("{}: no module {}, which prawn.ko needs: "
                                "build prawn.ko for this kernel, or install "
                                "its package anew",
                                (modules / "modules.dep").string(), name));
            }
            continue;  // built into this kernel
        }
        const auto& list = needs[it->second];
        // modules.dep lists a module's needs with the deepest last
        for (auto need = list.rbegin(); need != list.rend(); ++need)
            add(*need);
        add(it->second);
    }
    return order;
}

void with_script(const fs::path& initrd, const std::string& script,
                 const fs::path& result) {
    cpio_writer layer;
    layer.file("/lib/prawn/script", 0644, script);
    write_file(result, read_file(initrd) + layer.finish());
}

guest_image build_image(const settings& where, bool need_card) {
    const fs::path dir = where.image_dir();
    const fs::path bzimage = "/boot/vmlinuz-" + where.kernel;
    const fs::path& busybox = where.busybox;
    fs::create_directories(dir);

    fs::path kernel = dir / ("vmlinux-" + where.kernel);
    if (!fs::exists(kernel) || newer(bzimage, kernel)) {
        const std::string elf = extract_kernel(read_file(bzimage), dir);
        if (elf.empty())
            kernel = bzimage;  // unknown packing: slower to start, no worse
        else
            write_file(kernel, elf);
    }

    const fs::path base = dir / ("base-" + where.kernel + ".cpio");
    const fs::path source = where.root / "guest-driver" / "image";
    bool stale = !fs::exists(base);
    for (const fs::path& input :
         {source / "init", source / "passwd", source / "group",
          source / "profile", busybox, bzimage, fs::path("/proc/self/exe")}) {
        stale = stale || newer(fs::canonical(input), base);
    }
    if (stale)
        write_file(base, base_layer(where, busybox));

    const fs::path initrd = dir / ("initrd-" + where.kernel + ".cpio");
    write_file(initrd, read_file(base) + tools_layer(where, need_card));
    return {kernel, initrd};
}

}  // namespace prawn::launch
