#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The launcher with real guests, but without the card: what it hands through,
and that nothing is left behind however a run ends.

usage: launcher_test.py --launch PROGRAM --root DIR --build DIR [TEST...]
"""
import argparse
import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = None
LONG = 180  # seconds; a loaded machine boots a guest in 30


def launch_command(*words):
    return [ARGS.launch, "--root", ARGS.root, "--build", ARGS.build, *words]


def run(*words, **options):
    return subprocess.run(
        launch_command(*words), capture_output=True, timeout=LONG, **options)


def run_directories():
    parent = os.path.join(ARGS.root, "build", "run")
    return set(os.listdir(parent)) if os.path.isdir(parent) else set()


def descendants(pid):
    """Processes below pid, by their parents."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as stat:
                fields = stat.read().rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
        except OSError:
            continue
    found, new = set(), {pid}
    while new:
        new = {p for p, parent in parents.items() if parent in new} - found
        found |= new
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="latin-1") as line:
            return line.read()
    except OSError:
        return ""


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Running:
    """A launcher in the background that waits inside a guest's command."""

    def __init__(self, *words):
        self.before = run_directories()
        self.error = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            launch_command("boot", "--no-card", *words,
                           "--cmd", "echo inside; sleep 1000"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.error)
        line = self.process.stdout.readline()
        if b"inside" not in line:
            self.process.kill()
            self.process.wait()
            why = self.messages()
            self.close()
            raise AssertionError(f"no guest came up: {why}")
        self.pids = descendants(self.process.pid)

    def qemus(self):
        return sorted(p for p in self.pids
                      if "qemu-system" in command_line(p))

    def messages(self):
        self.error.seek(0)
        return self.error.read().decode(errors="replace")

    def wait(self):
        return self.process.wait(timeout=LONG)

    def assert_nothing_left(self, case):
        gone = lambda: not any(map(is_alive, self.pids))
        wait_until(gone, 10, "processes that should be gone")
        gone = lambda: run_directories() <= self.before
        wait_until(gone, 10, "a run directory that should be gone")
        case.assertTrue(self.pids)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.error.close()


class Commands(unittest.TestCase):
    def test_output_and_status(self):
        result = run("boot", "--no-card", "--nodes", "2", "--cmd",
                     "echo I am $(hostname); echo oops >&2; "
                     "[ $(hostname) = node0 ] || exit 7")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertEqual(sorted(result.stdout.decode().splitlines()),
                         ["node0: I am node0", "node1: I am node1"])
        self.assertIn(b"node0: oops\n", result.stderr)
        self.assertIn(b"node1: oops\n", result.stderr)

    def test_every_byte_comes_through(self):
        script = ("i=0; while [ $i -lt 256 ]; do "
                  "printf \"\\\\$(printf %o $i)\"; i=$((i+1)); done; "
                  "head -c 1000000 /dev/zero")
        result = run("boot", "--no-card", "--nodes", "1", "--cmd", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        expected = bytes(range(256)) + bytes(1000000)
        self.assertEqual(len(result.stdout), len(expected))
        self.assertEqual(hashlib.sha256(result.stdout).digest(),
                         hashlib.sha256(expected).digest())

    def test_ordinary_user(self):
        result = run("boot", "--no-card", "--nodes", "1", "--user", "--cmd",
                     "id -u; id -gn; id -Gn; pwd; ulimit -l; "
                     "cat /proc/1/environ || echo denied")
        lines = result.stdout.decode().split("\n")
        self.assertEqual(lines[0], "1000")
        self.assertIn("prawn", lines[2].split())
        self.assertEqual(lines[3:6], ["/home/user", "262144", "denied"])

    def test_shared_folder_is_read_only(self):
        with tempfile.TemporaryDirectory(prefix="with,comma") as folder:
            with open(os.path.join(folder, "hello"), "w") as file:
                file.write("from the host\n")
            result = run("boot", "--no-card", "--nodes", "1", "--share",
                         folder, "--cmd",
                         "cat /host/hello; touch /host/new || echo refused")
            self.assertEqual(result.stdout, b"from the host\nrefused\n",
                             result.stderr)
            self.assertEqual(os.listdir(folder), ["hello"])

    def test_first_command_within_ten_seconds(self):
        load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
        if load > 2:
            self.skipTest(f"the machine is busy ({load:.1f} a core)")
        result = run("boot", "--no-card", "--nodes", "1", "--cmd",
                     "cut -d' ' -f1 /proc/uptime")
        self.assertLess(float(result.stdout), 10.0)

    def test_two_at_a_time_in_one_tree(self):
        both = [subprocess.Popen(
            launch_command("boot", "--no-card", "--nodes", "1", "--cmd",
                           f"echo {k}; exit {k}"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for k in (3, 4)]
        for k, one in zip((3, 4), both):
            out = one.communicate(timeout=LONG)[0]
            self.assertEqual(one.returncode, k, out)
            self.assertIn(f"{k}\n".encode(), out)

    def test_qemu_arguments(self):
        result = run("boot", "--no-card", "--nodes", "1", "--cmd",
                     "cat /sys/bus/pci/devices/*/device", "--",
                     "-device", "edu")
        self.assertIn(b"0x11e8", result.stdout)


    def test_report(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            result = run("boot", "--no-card", "--nodes", "2", "--json",
                         file.name, "--cmd", "exit ${prawn_node}3")
            self.assertEqual(result.returncode, 3, result.stderr)
            report = json.load(file)
        self.assertEqual(report["nodes"], 2)
        self.assertEqual(report["status"], [3, 13])
        self.assertRegex(report["qemu"], r"^\d+\.\d+")
        self.assertRegex(report["kernel"], r"^\d+\.\d+.*amd64$")
        self.assertIsNone(report["profile"])
        self.assertNotIn("counters", report)
        self.assertNotIn("error", report)

    def test_report_on_standard_output(self):
        result = run("boot", "--no-card", "--nodes", "1", "--json", "-",
                     "--cmd", "echo hello; poweroff; sleep 1000")
        self.assertEqual(result.returncode, 4)
        report = json.loads(result.stdout)
        self.assertEqual(report["status"], [None])
        self.assertIn("node0 ", report["error"])
        self.assertIn(b"hello\n", result.stderr)


class Endings(unittest.TestCase):
    def start(self, *words):
        running = Running(*words)
        self.addCleanup(running.close)
        return running

    def test_interrupt(self):
        running = self.start("--nodes", "2")
        running.process.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(), 130)
        running.assert_nothing_left(self)

    def test_terminate(self):
        running = self.start("--nodes", "2")
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 130)
        running.assert_nothing_left(self)

    def test_launcher_killed(self):
        running = self.start("--nodes", "2")
        running.process.kill()
        running.wait()
        running.assert_nothing_left(self)

    def test_launcher_and_janitor_killed(self):
        running = self.start("--nodes", "1")
        for pid in running.pids - set(running.qemus()):
            os.kill(pid, signal.SIGKILL)
        running.process.kill()
        running.wait()
        wait_until(lambda: not any(map(is_alive, running.pids)), 10,
                   "processes that should be gone")
        # Nobody was left to remove the directory: the next run does.
        self.assertEqual(run("boot", "--no-card", "--nodes", "1", "--cmd",
                             "true").returncode, 0)
        running.assert_nothing_left(self)

    def test_qemu_killed(self):
        running = self.start("--nodes", "2")
        self.assertEqual(len(running.qemus()), 2)
        victim = next(p for p in running.qemus()
                      if "prawn-node1" in command_line(p))
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(running.wait(), 4)
        self.assertRegex(running.messages(),
                         r"error: QEMU of node1 was killed by signal 9")
        running.assert_nothing_left(self)

    def test_guest_panics(self):
        result = run("boot", "--no-card", "--nodes", "2", "--cmd",
                     "[ $(hostname) = node0 ] && sleep 1000; "
                     "echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr.decode(),
                         r"error: node1: Kernel panic - not syncing")

    def test_guest_hangs(self):
        # The same limit holds for the boot, so leave a busy machine time.
        running = self.start("--nodes", "1", "--timeout", "60")
        os.kill(running.qemus()[0], signal.SIGSTOP)
        self.assertEqual(running.wait(), 4)
        self.assertRegex(running.messages(),
                         r"error: node0 hangs: no sign of life for 60 s")
        running.assert_nothing_left(self)

    def test_powered_off(self):
        result = run("boot", "--no-card", "--nodes", "1", "--cmd",
                     "poweroff; sleep 1000")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr.decode(), r"error: node0 ")


class Piped(unittest.TestCase):
    """The shell without a terminal: it ends with its input."""

    def boot(self, *words, **options):
        before = run_directories()
        result = run("boot", "--no-card", "--nodes", "1", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(run_directories() - before, set())
        return result.stdout

    def test_nothing(self):
        self.boot(stdin=subprocess.DEVNULL)

    def test_closed(self):
        self.boot(preexec_fn=lambda: os.close(0))

    def test_commands_and_a_last_line_without_newline(self):
        out = self.boot(input=b"echo $((6 * 7))x\nsleep 3\necho $((7 * 9))x")
        self.assertIn(b"42x\r\n", out)
        self.assertIn(b"63x\r\n", out)

    def test_command_that_reads_and_a_stopped_one(self):
        out = self.boot(input=b"sleep 1000\n\x1a\ntr a-c d-f\nabc\n")
        self.assertIn(b"def\r\n", out)


class Shell(unittest.TestCase):
    def setUp(self):
        self.before = run_directories()
        self.pid, self.tty = pty.fork()
        if self.pid == 0:
            command = launch_command("boot", "--no-card", "--nodes", "2")
            os.execv(command[0], command)
        self.seen = b""
        self.status = None

    def tearDown(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.tty)

    def expect(self, pattern, seconds=LONG):
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            left = end - time.monotonic()
            if left < 0:
                self.fail(f"{pattern!r} did not come; seen: {self.seen!r}")
            if select.select([self.tty], [], [], min(left, 1))[0]:
                try:
                    self.seen += os.read(self.tty, 4096)
                except OSError:
                    self.fail(f"ended before {pattern!r}: {self.seen!r}")

    def type(self, data):
        os.write(self.tty, data)

    def leave(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if select.select([self.tty], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.tty, 4096)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        return self.fail(f"did not end: {self.seen!r}")

    def test_job_control_and_exit(self):
        self.expect(rb"root@node0:\S+ ")
        self.type(b"sleep 1000\n")
        time.sleep(0.5)
        self.type(b"\x03")  # for the guest's shell, not for us
        self.expect(rb"root@node0:\S+ ")
        self.type(b"echo status $?\n")
        self.expect(rb"status 130\r+\n")
        self.type(b"sleep 1000 &\n")
        self.type(b"jobs\n")
        self.expect(rb"\[1\]\+\s+Running\s+sleep 1000")
        self.type(b"exit\n")
        self.assertEqual(self.leave(), 0)
        wait_until(lambda: run_directories() <= self.before, 10,
                   "a run directory that should be gone")

    def test_key_leaves(self):
        self.expect(rb"root@node0:\S+ ")
        self.type(b"\x1d")
        self.assertEqual(self.leave(), 0)

    def test_reboot_brings_the_shell_back(self):
        self.expect(rb"root@node0:\S+ ")
        self.type(b"reboot\n")
        self.expect(rb"Restarting system")
        self.expect(rb"root@node0:\S+ ")
        self.type(b"echo again $(hostname)\n")
        self.expect(rb"again node0\r+\n")
        self.type(b"poweroff\n")
        self.assertEqual(self.leave(), 0)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], "-v", *rest])


if __name__ == "__main__":
    main()
