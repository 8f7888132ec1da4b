// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "console.h"
#include "control.h"
#include "cpio.h"
#include "event_loop.h"
#include "failure.h"
#include "image.h"
#include "process.h"
#include "report.h"
#include "run_dir.h"

namespace fs = std::filesystem;

namespace prawn::launch {
namespace {

class scratch : public testing::Test
{
protected:
    void SetUp() override {
        char name[] = "/tmp/launcher-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        m_dir = name;
    }
    void TearDown() override { fs::remove_all(m_dir); }

    fs::path m_dir;
};

using cpio = scratch;
using image = scratch;
using processes = scratch;

TEST_F(cpio, is_read_by_the_system_s_cpio) {
    cpio_writer out;
    out.directory("/tmp", 01777);
    out.file("/a/b/odd.name", 0640, "seven b");
    out.file("/empty", 0755, "");
    out.symlink("/a/link", "b/odd.name");
    std::string archive = out.finish();
    EXPECT_EQ(archive.size() % 512, 0U);
    // A second archive behind the first, as the kernel takes them.
    cpio_writer second;
    second.file("/a/b/odd.name", 0600, "replaced");
    archive += second.finish();
    write_file(m_dir / "x.cpio", archive);

    // The kernel reads on behind a trailer; cpio reads one archive a time.
    const std::string command =
        "cd " + m_dir.string() +
        " && { cpio -idu --quiet && test -f a/b/odd.name; } < x.cpio";
    ASSERT_EQ(system(command.c_str()), 0);
    EXPECT_EQ(read_file(m_dir / "a/b/odd.name"), "seven b");
    EXPECT_EQ(fs::read_symlink(m_dir / "a/link"), "b/odd.name");
    struct stat info {
    };
    ASSERT_EQ(stat((m_dir / "a/b/odd.name").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0640U);
    ASSERT_EQ(stat((m_dir / "tmp").c_str(), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
}

TEST_F(cpio, missing_file_is_named) {
    try {
        read_file(m_dir / "not-there");
        FAIL() << "no failure";
    } catch (const failure& error) {
        EXPECT_EQ(error.code(), EXIT_SETUP);
        EXPECT_NE(std::string(error.what()).find("not-there"),
                  std::string::npos);
    }
}

TEST(base64, round_trip) {
    std::mt19937 random(1);
    for (size_t size = 0; size < 70; size++) {
        std::string data;
        for (size_t i = 0; i < size; i++)
            data += static_cast<char>(random() & 255U);
        const auto back = base64_decode(base64_encode(data));
        ASSERT_TRUE(back.has_value());
        EXPECT_EQ(*back, data);
    }
    EXPECT_EQ(base64_encode("Man"), "TWFu");
    EXPECT_EQ(base64_encode("Ma"), "TWE=");
    EXPECT_EQ(base64_encode("M"), "TQ==");
}

TEST(base64, refuses_what_it_is_not) {
    EXPECT_FALSE(base64_decode("abc"));
    EXPECT_FALSE(base64_decode("ab!d"));
    EXPECT_FALSE(base64_decode("====").value_or("") != "");
}

TEST(control, messages) {
    control_parser parser;
    const std::string text =
        "hello 1 3 6.1.0-57-amd64\nout 7 aGk=\n"
        "err 7 Cg==\nexit 7 137\nbye 0\npong\n";
    std::vector<control_message> seen;
    for (char c : text) {  // arriving byte by byte
        parser.feed(&c, 1);
        while (auto message = parser.next())
            seen.push_back(*message);
    }
    ASSERT_EQ(seen.size(), 6U);
    EXPECT_EQ(seen[0].kind, control_message::HELLO);
    EXPECT_EQ(seen[0].text, "6.1.0-57-amd64");
    EXPECT_EQ(seen[1].kind, control_message::OUT);
    EXPECT_EQ(seen[1].id, 7U);
    EXPECT_EQ(seen[1].text, "hi");
    EXPECT_EQ(seen[2].text, "\n");
    EXPECT_EQ(seen[3].number, 137);
    EXPECT_EQ(seen[5].kind, control_message::PONG);
    EXPECT_EQ(parser.ignored(), 0U);
}

TEST(control, rubbish_is_counted_and_ignored) {
    control_parser parser;
    const std::string long_line(control_parser::LONGEST * 3, 'x');
    const std::string text =
        "\xff\xfe garbage\nexit 1 256\nexit -1 0\n"
        "exit 99999999999999999999 0\nout 1 a!==\n"
        "hello\nbye x\n\n" +
        long_line + "\npong\n";
    std::vector<control_message> seen;
    for (size_t at = 0; at < text.size(); at += 1000) {
        const std::string part = text.substr(at, 1000);
        parser.feed(part.data(), part.size());
        while (auto message = parser.next())
            seen.push_back(*message);
    }
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].kind, control_message::PONG);
    EXPECT_EQ(parser.ignored(), 9U);
}

TEST_F(image, file_list) {
    settings where;
    where.root = "/src";
    where.build_dir = "/out";
    where.kernel = "6.1.0";
    const auto list = parse_file_list(
        "# comment\n\n"
        "755 /bin/x @BUILD@/x optional\n"
        "644 /m @ROOT@/k/@KERNEL@/m.ko\n",
        where);
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0].mode, 0755U);
    EXPECT_EQ(list[0].source, "/out/x");
    EXPECT_TRUE(list[0].optional);
    EXPECT_EQ(list[1].source, "/src/k/6.1.0/m.ko");
    EXPECT_FALSE(list[1].optional);
    for (const char* bad :
         {"9 /x y", "755 x y", "755 /x", "755 /x y maybe", "77777 /x y"}) {
        EXPECT_THROW(parse_file_list(bad, where), failure) << bad;
    }
}

TEST_F(image, kernel_is_taken_out_of_a_bzimage) {
    const std::string elf =
        "\x7f"
        "ELF" +
        std::string(100000, 'k');
    write_file(m_dir / "elf", elf);
    ASSERT_EQ(system(("gzip -k " + (m_dir / "elf").string()).c_str()), 0);
    const std::string packed = read_file(m_dir / "elf.gz");

    // A boot sector that says two setup sectors, then the payload at 64.
    std::string bzimage(3 * 512 + 64, '\0');
    bzimage[0x1f1] = 2;
    bzimage.replace(0x202, 4, "HdrS");
    bzimage[0x248] = 64;
    const size_t size = packed.size() + 4;
    for (size_t i = 0; i < 4; i++)
        bzimage[0x24c + i] = static_cast<char>(size >> 8 * i & 255U);
    bzimage += packed + "size" + std::string(8192, '\0');
    EXPECT_EQ(extract_kernel(bzimage, m_dir), elf);

    EXPECT_EQ(extract_kernel("short", m_dir), "");
    std::string beyond = bzimage;
    beyond[0x24f] = 0x7f;
    EXPECT_EQ(extract_kernel(beyond, m_dir), "");
    std::string unknown = bzimage;
    unknown[3 * 512 + 64] = 'x';
    EXPECT_EQ(extract_kernel(unknown, m_dir), "");
}

TEST_F(image, two_runs_strip_the_same_module) {
    const fs::path module = fs::read_symlink("/proc/self/exe");
    const std::string whole = without_debug_info(module, m_dir);
    EXPECT_EQ(whole.substr(1, 3), "ELF");
    EXPECT_TRUE(fs::is_empty(m_dir));
    std::vector<pid_t> all;
    for (int k = 0; k < 3; k++) {
        all.push_back(fork());
        if (all.back() != 0)
            continue;
        int wrong = 0;
        for (int i = 0; i < 10; i++) {
            try {
                wrong += without_debug_info(module, m_dir) == whole ? 0 : 1;
            } catch (const failure&) {
                wrong++;
            }
        }
        _exit(wrong);
    }
    for (const pid_t pid : all) {
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    }
}

// As kbuild and depmod write them; with names as Debian has them, too.
TEST_F(image, modules_come_with_what_they_need) {
    const std::string object = fs::read_symlink("/proc/self/exe");
    const fs::path module = m_dir / "x.ko";
    const auto with_info = [&](const std::string& info) {
        write_file(m_dir / "info", info);
        const std::string command =
            "objcopy --add-section .modinfo=" + (m_dir / "info").string() +
            " " + object + " " + module.string();
        ASSERT_EQ(system(command.c_str()), 0);
        fs::remove(m_dir / "info");
    };
    using names = std::vector<std::string>;
    with_info(std::string("license=GPL\0depends=ptp,i2c-core\0name=x\0", 40));
    EXPECT_EQ(module_needs(module, m_dir), (names{"ptp", "i2c-core"}));
    with_info(std::string("xdepends=no\0depends=\0", 21));
    EXPECT_EQ(module_needs(module, m_dir), names{});
    with_info(std::string("license=GPL\0", 12));
    EXPECT_THROW(module_needs(module, m_dir), failure);
    EXPECT_THROW(module_needs(object, m_dir), failure);
    write_file(m_dir / "text", "no module");
    EXPECT_THROW(module_needs(m_dir / "text", m_dir), failure);
    EXPECT_THROW(module_needs(m_dir / "none", m_dir), failure);
    fs::remove(module);
    fs::remove(m_dir / "text");
    EXPECT_TRUE(fs::is_empty(m_dir));

    write_file(m_dir / "modules.dep",
               "kernel/drivers/ptp/ptp.ko.xz: kernel/drivers/pps/pps_core.ko\n"
               "kernel/drivers/pps/pps_core.ko:\n"
               "kernel/i2c/i2c-core.ko: kernel/lib/b.ko kernel/lib/a.ko\n"
               "kernel/lib/a.ko:\n"
               "kernel/lib/b.ko: kernel/lib/a.ko\n");
    EXPECT_EQ(module_order(m_dir, {"ptp"}),
              (names{"kernel/drivers/pps/pps_core.ko",
                     "kernel/drivers/ptp/ptp.ko.xz"}));
    EXPECT_EQ(
        module_order(m_dir, {"i2c_core", "a", "pps-core"}, true),
        (names{"kernel/lib/a.ko", "kernel/lib/b.ko", "kernel/i2c/i2c-core.ko",
               "kernel/drivers/pps/pps_core.ko"}));
    EXPECT_EQ(module_order(m_dir, {"builtin", "a"}), names{"kernel/lib/a.ko"});
    EXPECT_THROW(module_order(m_dir, {"a", "builtin"}, true), failure);
    EXPECT_EQ(module_order(m_dir, {}, true), names{});
}

TEST_F(processes, output_status_and_log) {
    run_dir dir(m_dir);
    process child(dir, "child",
                  {{"sh", "-c", "echo $WORD >&2; exit 3"}, {{"WORD", "it's"}}},
                  dir.log("x.log"));
    while (!child.ended())
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(child.how_it_ended(), "exited with status 3");
    EXPECT_EQ(child.last_lines(5), "it's");
}

TEST_F(processes, stubborn_ones_are_killed_with_their_children) {
    run_dir dir(m_dir);
    const std::string file = (m_dir / "pid").string();
    process child(dir, "child",
                  {{"sh", "-c",
                    "trap '' TERM; sleep 1000 & echo $! >" + file +
                        "; while :; do sleep 1; done"},
                   {}},
                  dir.log("x.log"));
    std::string pid;
    for (int i = 0; i < 500 && pid.empty(); i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::ifstream(file) >> pid;
    }
    ASSERT_FALSE(pid.empty());
    child.stop(std::chrono::milliseconds(50));
    EXPECT_EQ(child.how_it_ended(), "was killed by signal 9 (Killed)");
    bool gone = false;
    for (int i = 0; i < 500 && !gone; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::ifstream stat("/proc/" + pid + "/stat");
        std::string text;
        std::getline(stat, text);
        gone = text.empty() || text.find(") Z ") != std::string::npos;
    }
    EXPECT_TRUE(gone);
}

TEST_F(processes, run_directory_is_private_and_goes) {
    fs::path path;
    {
        run_dir dir(m_dir);
        path = dir.path();
        struct stat info {
        };
        ASSERT_EQ(stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777U, 0700U);
        write_file(dir.log("a.log"), "kept\n");
        EXPECT_EQ(read_file(dir.keep_logs() / "a.log"), "kept\n");
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST_F(processes, what_killed_runs_have_left_is_cleared_away) {
    const fs::path old = m_dir / "run" / "prawn-killed";
    fs::create_directories(old / "log");
    write_file(old / "lock", "");
    const fs::path empty = m_dir / "run" / "prawn-empty0";
    fs::create_directories(empty);
    { const run_dir young(m_dir); }
    EXPECT_FALSE(fs::exists(old));
    EXPECT_TRUE(fs::exists(empty)) << "may just be beginning";
    fs::last_write_time(
        empty, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    { const run_dir later(m_dir); }
    EXPECT_FALSE(fs::exists(empty));
}

// Another launcher may look for what dead runs have left at any instant, and
// must not take one that has just begun for such.
TEST_F(processes, a_run_begins_while_others_clear_away) {
    const fs::path parent = m_dir / "run";
    fs::create_directories(parent);
    std::vector<pid_t> others;
    for (int k = 0; k < 2; k++) {
        others.push_back(fork());
        if (others.back() != 0)
            continue;
        for (std::error_code ignored;;) {
            for (const auto& entry : fs::directory_iterator(parent, ignored)) {
                const int fd = open((entry.path() / "lock").c_str(), O_RDWR);
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                    fs::remove_all(entry.path(), ignored);
                close(fd);
            }
        }
    }
    int lost = 0;
    for (int i = 0; i < 300; i++) {
        try {
            const run_dir dir(m_dir);
            lost += fs::exists(dir.path() / "log") ? 0 : 1;
        } catch (const std::exception&) {
            lost++;
        }
    }
    for (const pid_t pid : others) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    EXPECT_EQ(lost, 0);
}

TEST_F(processes, a_killed_launcher_leaves_the_terminal_as_it_was) {
    int master = -1;
    int slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    termios before{};
    ASSERT_EQ(tcgetattr(slave, &before), 0);
    const auto is_raw = [&] {
        termios now{};
        return tcgetattr(slave, &now) == 0 && (now.c_lflag & ICANON) == 0;
    };
    const auto becomes = [&](bool raw) {
        for (int i = 0; i < 500 && is_raw() != raw; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return is_raw() == raw;
    };
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(slave, 0);
        run_dir dir(m_dir);
        const raw_terminal terminal(dir);
        for (;;)
            pause();
    }
    EXPECT_TRUE(becomes(true));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_TRUE(becomes(false));
    termios after{};
    ASSERT_EQ(tcgetattr(slave, &after), 0);
    EXPECT_EQ(after.c_lflag, before.c_lflag);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    close(master);
    close(slave);
}

TEST_F(processes, long_paths_get_a_short_run_directory) {
    const fs::path deep = m_dir / std::string(60, 'd') / std::string(60, 'e');
    fs::create_directories(deep);
    const run_dir dir(deep);
    EXPECT_LT((dir.path() / "node15.sock").string().size(), 108U);
    EXPECT_TRUE(fs::exists(dir.path()));
}

TEST(commands, are_shown_as_a_shell_takes_them) {
    const command what{{"a", "b c", "it's", "", "{\"x\"}"}, {{"K", "v w"}}};
    EXPECT_EQ(what.text(), "K='v w' a 'b c' 'it'\\''s' '' '{\"x\"}'");
    EXPECT_EQ(output_of({{"printf", "%s", "it's \"$x\" \\n"}, {}}),
              "it's \"$x\" \\n");
}

TEST(reports, tool_output_is_checked) {
    const std::string good =
        R"({"ok":true,"results":[{"tool":"t","path":"queue",)"
        R"("update":"deliberate","bytes":4,"iterations":5,"verified":true,)"
        R"("model":{"ns":{"min":1000,"median":2000,"p99":3,"max":4}},)"
        R"("wall":{"MBps":12.5}}]})";
    const json object = parse_tool_output(good);
    EXPECT_TRUE(all_verified(object["results"]));
    const std::string model = result_table(object["results"], "model");
    EXPECT_NE(model.find("1.00"), std::string::npos);
    EXPECT_EQ(model.find("12.50"), std::string::npos);
    const std::string wall = result_table(object["results"], "wall");
    EXPECT_NE(wall.find("12.50"), std::string::npos);
    EXPECT_EQ(wall.find("2.00"), std::string::npos);

    EXPECT_FALSE(all_verified(json::array()));
    for (const char* bad : {"", "nonsense", "[]", "{}", R"({"results":3})",
                            R"({"results":[3]})", R"({"results":[{}]})"}) {
        EXPECT_THROW(parse_tool_output(bad), std::invalid_argument) << bad;
    }
    std::string negative = good;
    negative.replace(negative.find("\"bytes\":4"), 9, "\"bytes\":-");
    EXPECT_THROW(parse_tool_output(negative), std::invalid_argument);
}

TEST(loop, waits_for_descriptors_and_time) {
    event_loop loop;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::string got;
    loop.watch(ends[0], POLLIN, [&](short) {
        char data[8];
        const ssize_t size = read(ends[0], data, sizeof(data));
        got.append(data, static_cast<size_t>(size));
    });
    const auto soon = [] {
        return steady::now() + std::chrono::milliseconds(50);
    };
    EXPECT_FALSE(loop.run_until([&] { return !got.empty(); }, soon()));
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_TRUE(loop.run_until([&] { return !got.empty(); }, soon()));
    kill(getpid(), SIGTERM);
    try {
        loop.run_until([] { return false; }, soon());
        ADD_FAILURE() << "no failure";
    } catch (const failure& error) {
        EXPECT_EQ(error.code(), EXIT_INTERRUPTED);
    }
    close(ends[0]);
    close(ends[1]);
}

}  // namespace
}  // namespace prawn::launch
