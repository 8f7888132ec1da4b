#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real guests in step with the model: every run is the same run.

usage: synchronized_test.py --launch PROGRAM --root DIR --build DIR [TEST...]
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ARGS = None
LONG = 900


def launch_command(*words):
    return [ARGS.launch, "--root", ARGS.root, "--build", ARGS.build, *words,
            "--time", "synchronized", "--quantum", "1us"]


def descendants(pid):
    """Process ids and command lines below a process."""
    children = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parent = int(stat.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/cmdline", "rb") as line:
                command = line.read().decode(errors="replace")
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append((int(entry), command))
    found = []
    waiting = [pid]
    while waiting:
        for child, command in children.get(waiting.pop(), []):
            found.append((child, command))
            waiting.append(child)
    return found


def part(pid, text):
    """Waits for a part of a run: the process whose command line has a text."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        for child, command in descendants(pid):
            if text in command:
                return child
        time.sleep(0.1)
    raise AssertionError(f"no process with {text}")


def disturb(process, stop):
    """Holds up each part of a run now and then, and keeps all cores busy."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count() or 1)]
    try:
        parts = [part(process.pid, text)
                 for text in ("prawn-sim", "prawn-node0", "prawn-node1")]
        for turn in range(1000):
            which = parts[turn % len(parts)]
            try:
                os.kill(which, signal.SIGSTOP)
                time.sleep(0.7)
                os.kill(which, signal.SIGCONT)
            except ProcessLookupError:
                return
            if stop.wait(2.5):
                return
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


class Synchronized(unittest.TestCase):
    def demo(self, folder, name, disturbed):
        report = os.path.join(folder, name + ".json")
        trace = os.path.join(folder, name + ".csv")
        command = launch_command("demo", "--quick", "--json", report, "--set",
                                 "trace.csv=" + trace, "--timeout", "600")
        with subprocess.Popen(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL) as process:
            stop = threading.Event()
            trouble = threading.Thread(target=disturb, args=(process, stop))
            if disturbed:
                trouble.start()
            output = process.communicate(timeout=LONG)[0]
            stop.set()
            if disturbed:
                trouble.join()
        self.assertEqual(process.returncode, 0, output)
        with open(report) as text:
            summary = json.load(text)
        with open(trace) as text:
            return summary, text.read(), output

    def test_two_runs_are_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            first, first_trace, output = self.demo(folder, "first", False)
            second, second_trace, _ = self.demo(folder, "second", True)
        for summary in (first, second):
            self.assertEqual(summary["time_mode"], "synchronized")
            self.assertIs(summary["skewed"], False)
            self.assertIs(summary["ok"], True)
        # What the guests measured by their own clocks, and what the card took.
        self.assertGreater(len(first["results"]), 2)
        self.assertEqual(first["results"], second["results"])
        # A message cannot take the guest less than the card.
        for row in first["results"]:
            if row["tool"] == "vmmc_lat":
                self.assertGreater(row["wall"]["ns"]["min"],
                                   row["model"]["ns"]["min"])
            else:
                self.assertLess(row["wall"]["MBps"], row["model"]["MBps"])
        self.assertIn("The guests' own clocks", output)
        self.assertNotIn("Wall-clock", output)
        # Every event of the model, to the picosecond, but for the resets of
        # cards whose QEMUs are gone once all is over.
        events = self.events(first_trace)
        second_events = self.events(second_trace)
        self.assertGreater(len(events), 1000)
        self.assertEqual(len(events), len(second_events))
        for one, other in zip(events, second_events):
            self.assertEqual(one, other)

    @staticmethod
    def events(trace):
        lines = trace.splitlines()
        last = max(i for i, line in enumerate(lines) if ",RESET," not in line)
        return lines[:last + 1]

    def test_a_part_that_dies_ends_the_run(self):
        for what, name in (("prawn-node1", "QEMU of node1"),
                           ("prawn-sim", "prawn-sim")):
            with self.subTest(name):
                self.killed(what, name)

    def killed(self, what, name):
        process = subprocess.Popen(
            launch_command("boot", "--nodes", "2", "--cmd", "sleep 1000"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL)
        with process:
            part(process.pid, "prawn-node1")
            victim = part(process.pid, what)
            time.sleep(5)  # in the middle of something
            os.kill(victim, signal.SIGKILL)
            output = process.communicate(timeout=LONG)[0]
        self.assertEqual(process.returncode, 4, output)
        self.assertIn(name, output)
        self.assertEqual([c for _, c in descendants(os.getpid())
                          if "prawn-sim" in c or "prawn-node" in c], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("launch", "root", "build"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("tests", nargs="*")
    ARGS = parser.parse_args()
    unittest.main(argv=sys.argv[:1] + ARGS.tests, verbosity=2)
