#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prawn-sim as its users see it: sockets, signals, files, exit status.

usage: prawn_sim_test.py PRAWN_SIM EXAMPLES [TEST...]
"""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SIM = ""
EXAMPLES = ""


class Sim(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.dir = os.path.join(self.temp.name, "run")

    def start(self, *words):
        process = subprocess.Popen(
            [SIM, *words, "--run-dir", self.dir], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n",
                         "what it said instead")
        return process

    def sockets(self):
        return sorted(n for n in os.listdir(self.dir) if n.endswith(".sock"))

    def stop(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        out = process.stdout.read()
        self.assertEqual(process.wait(20), 0)
        return out

    def test_sockets_come_and_go(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start(os.path.join(EXAMPLES, "four-nodes.toml"))
            names = [f"node{k}.sock" for k in range(4)]
            self.assertEqual(self.sockets(), names)
            for name in names:
                path = os.path.join(self.dir, name)
                self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
                client = socket.socket(socket.AF_UNIX)
                client.connect(path)
                client.close()
            out = self.stop(process, number)
            self.assertIn("node 3", out)
            self.assertIn("fabric", out)
            self.assertEqual(self.sockets(), [])

    def test_a_killed_one_leaves_nothing_in_the_way(self):
        process = self.start()
        process.kill()
        process.wait()
        self.assertEqual(self.sockets(), ["node0.sock", "node1.sock"])
        self.stop(self.start())

    def test_a_second_one_is_refused(self):
        self.start()
        second = subprocess.run([SIM, "--run-dir", self.dir],
                                capture_output=True, text=True, timeout=20)
        self.assertEqual(second.returncode, 1)
        self.assertEqual(len(second.stderr.splitlines()), 1, second.stderr)
        self.assertIn("node0.sock", second.stderr)

    def test_counters_and_views(self):
        files = {k: os.path.join(self.temp.name, k)
                 for k in ("json", "pcap", "perfetto", "csv")}
        words = [w for k, f in files.items() for w in ("--" + k, f)]
        process = self.start("--quiet", *words)
        self.assertEqual(self.stop(process), "")
        with open(files["json"], encoding="utf-8") as f:
            counters = json.load(f)
        self.assertEqual(len(counters["nodes"]), 2)
        self.assertIn("csr.reads", counters["nodes"][0]["global"])
        with open(files["perfetto"], encoding="utf-8") as f:
            json.load(f)
        for name in ("pcap", "csv"):
            self.assertGreater(os.path.getsize(files[name]), 0)

    def test_idle_it_sleeps(self):
        self.idle()

    def test_idle_it_sleeps_with_views_too(self):
        self.idle("--csv", os.path.join(self.temp.name, "csv"))

    def idle(self, *words):
        process = self.start(*words)
        def ticks():
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])
        time.sleep(0.2)
        before = ticks()
        time.sleep(1)
        self.assertLessEqual(ticks() - before, 1)

    def test_synchronized(self):
        """Waits for its guests without using a processor, and goes."""
        file = os.path.join(self.dir, "lockstep")
        process = self.start("--set", "time=synchronized")
        self.assertTrue(os.path.exists(file))
        second = subprocess.run(
            [SIM, "--set", "time=synchronized", "--run-dir", self.dir],
            capture_output=True, text=True, timeout=20)
        self.assertEqual(second.returncode, 1)
        self.assertTrue(os.path.exists(file))
        self.assertIn("lock-step:", self.stop(process))
        self.assertFalse(os.path.exists(file))
        self.stop(self.start("--set", "time=synchronized"))

    def test_idle_it_sleeps_synchronized_too(self):
        self.idle("--set", "time=synchronized")

    def test_wrong_use_is_one_line(self):
        for words, text in (
                (["/no/such.toml"], "no such file"),
                (["--set", "time=replay"], "not available"),
                (["--set", "engine=firmware"], "not available"),
                (["--set", "blocks.opt.impl=rtl"], "not available"),
                (["--set", "nodes=0"], "use 1 to 16"),
                (["--set", "a\nb\x1b[2J=0"], "a?b?[2J: no such key"),
                (["--set", "profile=/"], "no regular file"),
                (["--json", "/no/such/dir/x"], "--json"),
                (["--pcap", "/no/such/dir/x"], "/no/such/dir/x")):
            with self.subTest(words=words):
                process = subprocess.Popen(
                    [SIM, *words, "--run-dir", self.dir],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                if "--json" in words:  # found out at the end
                    process.stdout.readline()
                    process.terminate()
                _, err = process.communicate(timeout=20)
                self.assertEqual(process.returncode, 1)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertIn(text, err)


if __name__ == "__main__":
    SIM, EXAMPLES = sys.argv[1], sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
