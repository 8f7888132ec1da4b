#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo and the model alone, as users and their scripts see them.

usage: demo_test.py --launch PROGRAM --root DIR --build DIR [TEST...]
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = None
LONG = 300


def launch_command(*words):
    return [ARGS.launch, "--root", ARGS.root, "--build", ARGS.build, *words]


def run(*words):
    return subprocess.run(launch_command(*words), capture_output=True,
                          text=True, timeout=LONG, stdin=subprocess.DEVNULL)


def run_directories():
    parent = os.path.join(ARGS.root, "build", "run")
    return set(os.listdir(parent)) if os.path.isdir(parent) else set()


class Demo(unittest.TestCase):
    def check(self, summary, nodes, profile):
        self.assertEqual(summary["time_mode"], "free-running")
        self.assertEqual(summary["profile"], profile)
        self.assertRegex(summary["qemu"], r"^\d+\.\d+")
        self.assertRegex(summary["kernel"], r"^\d+\.\d+.*amd64$")
        self.assertEqual(summary["nodes"], nodes)
        self.assertIs(summary["ok"], True)
        self.assertIn("counters", summary)
        tools = set()
        peers = set()
        for row in summary["results"]:
            tools.add(row["tool"])
            peers.add(row["to"])
            self.assertEqual((row["path"], row["update"]),
                             ("queue", "deliberate"))
            self.assertIs(row["verified"], True)
            self.assertGreater(row["iterations"], 0)
            for side in ("model", "wall"):
                if row["tool"] == "vmmc_lat":
                    ns = row[side]["ns"]
                    self.assertEqual(list(ns), ["min", "median", "p99",
                                                "max"])
                    self.assertGreater(ns["min"], 0)
                    self.assertLessEqual(ns["min"], ns["median"])
                    self.assertLessEqual(ns["median"], ns["p99"])
                    self.assertLessEqual(ns["p99"], ns["max"])
                else:
                    self.assertGreater(row[side]["MBps"], 0)
        self.assertEqual(tools, {"vmmc_lat", "vmmc_bw"})
        self.assertEqual(peers, set(range(1, nodes)))

    def test_two_guests(self):
        before = run_directories()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "out.json")
            result = run("demo", "--quick", "--json", file)
            self.assertEqual(result.returncode, 0,
                             result.stdout + result.stderr)
            with open(file) as text:
                self.check(json.load(text), 2, "pcie-gen3")
        self.assertRegex(result.stdout, "(?m)^Model time.*free-running: "
                         "figures vary from run to run")
        self.assertIn("Wall-clock time", result.stdout)
        self.assertIn("Every byte was verified", result.stdout)
        self.assertEqual(run_directories() - before, set())

    def test_other_profile_and_output(self):
        result = run("demo", "--quick", "--profile", "shrimp-1996",
                     "--verbose", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check(json.loads(result.stdout), 2, "shrimp-1996")
        self.assertRegex(result.stderr, r"(?m)^\+ .*prawn-sim .*--run-dir")
        self.assertEqual(
            len(re.findall(r"(?m)^\+ .*vfio-user-pci", result.stderr)), 2)

    def test_three_guests(self):
        result = run("demo", "--quick", "--nodes", "3", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check(json.loads(result.stdout), 3, "pcie-gen3")

    def test_a_part_that_dies_leaves_no_old_success(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".json") as file:
            file.write('{"ok": true}')
            file.flush()
            process = subprocess.Popen(
                launch_command("demo", "--verbose", "--json", file.name),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if "vmmc_lat node0 to node1" in line:
                    break
            self.assertEqual(os.path.getsize(file.name), 0)
            children = subprocess.run(
                ["pgrep", "-P", str(process.pid), "prawn-sim"],
                capture_output=True, text=True).stdout.split()
            self.assertEqual(len(children), 1)
            os.kill(int(children[0]), signal.SIGKILL)
            message = process.communicate(timeout=LONG)[1]
            self.assertEqual(process.returncode, 4, message)
            file.seek(0)
            summary = json.load(file)
        self.assertIs(summary["ok"], False)
        self.assertIn("prawn-sim", summary["error"])
        self.assertEqual(summary["nodes"], 2)

    def test_boot_reports_too(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            result = run("boot", "--profile", "shrimp-1996", "--json",
                         file.name, "--cmd", "exit $prawn_node")
            self.assertEqual(result.returncode, 1, result.stderr)
            report = json.load(file)
        self.assertEqual(report["time_mode"], "free-running")
        self.assertEqual(report["profile"], "shrimp-1996")
        self.assertEqual(report["nodes"], 2)
        self.assertEqual(report["status"], [0, 1])
        self.assertEqual(len(report["counters"]["nodes"]), 2)

    def test_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "demo.rec")
            result = run("demo", "--quick", "--record", file, "--json", "-")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check(json.loads(result.stdout), 2, "pcie-gen3")
            trace = os.path.join(ARGS.build, "tlm", "record", "prawn-trace")
            told = subprocess.run([trace, "info", "--json", file],
                                  capture_output=True, text=True, timeout=LONG)
            self.assertEqual(told.returncode, 0, told.stderr)
            info = json.loads(told.stdout)
            shown = subprocess.run(
                [trace, "show", file, "--kind", "bar_read", "--limit", "1"],
                capture_output=True, text=True, timeout=LONG).stdout
        self.assertIs(info["complete"], True)
        self.assertEqual(info["nodes"], 2)
        self.assertEqual(info["profile"], "pcie-gen3")
        counters = json.loads(result.stdout)["counters"]["nodes"]
        for node, told in zip(info["by_node"], counters):
            told = told["global"]
            for kind in ("attach", "bus_master", "map", "unmap", "dma_read",
                         "dma_write", "msix", "memory"):
                self.assertGreater(node[kind], 0, kind)
            self.assertEqual(node["bar_read"], told["host_bus.bar_reads"])
            self.assertEqual(node["bar_write"], told["host_bus.bar_writes"])
            self.assertEqual(node["msix"], told["host_bus.msix"])
        self.assertRegex(shown, r"-> bar_read +bar 0 \+0x")

    def test_twin_in_front_of_every_block(self):
        with open(os.path.join(ARGS.root, "examples",
                               "two-nodes.toml")) as text:
            blocks = re.findall(r'(?m)^\[blocks\.(\w+)\]\nimpl = "tlm"$',
                                text.read())
        self.assertEqual(len(blocks), 15, blocks)
        words = [w for name in blocks
                 for w in ("--set", f"blocks.{name}.impl=twin")]
        plain = run("demo", "--quick", "--json", "-")
        twins = run("demo", "--quick", "--json", "-", *words)
        fastest = []
        for result in (plain, twins):
            self.assertEqual(result.returncode, 0, result.stderr)
            summary = json.loads(result.stdout)
            self.check(summary, 2, "pcie-gen3")
            fastest.append(min(row["model"]["ns"]["min"]
                               for row in summary["results"]
                               if row["tool"] == "vmmc_lat"))
        # They were there: they delay what passes.
        self.assertGreater(fastest[1], fastest[0] * 1.2)

    def test_bad_configuration_is_one_line(self):
        result = run("demo", "--set", "blocks.utlb.entires=64")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertRegex(result.stderr, "entires.*blocks.utlb.entries")


class Sim(unittest.TestCase):
    def test_alone_until_interrupted(self):
        process = subprocess.Popen(
            launch_command("sim", "--set", "nodes=3"), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        line = process.stdout.readline()
        while line and line != "ready\n":
            line = process.stdout.readline()
        self.assertEqual(line, "ready\n")
        end = time.monotonic() + 20
        socket = None
        while not socket and time.monotonic() < end:
            text = process.stderr.readline()
            socket = re.search(r'"path":"([^"]*)/node0.sock"', text)
        directory = socket.group(1)
        self.assertEqual(
            sorted(n for n in os.listdir(directory) if n.endswith(".sock")),
            ["node0.sock", "node1.sock", "node2.sock"])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 0)
        process.stdout.close()
        process.stderr.close()
        self.assertFalse(os.path.exists(directory))

    def test_json_is_all_there_is_on_standard_output(self):
        process = subprocess.Popen(
            launch_command("sim", "--json", "-"), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        while process.stderr.readline() not in ("", "ready\n"):
            pass
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(json.loads(out)["nodes"]), 2)


class Example(unittest.TestCase):
    def test_own_program(self):
        # As README.md says.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # for the guest's ordinary user
            subprocess.run(
                ["cc", "-static", "-Wall", "-Wextra", "-Werror", "-o",
                 os.path.join(folder, "box"),
                 os.path.join(ARGS.root, "examples", "box.c"),
                 "-I" + os.path.join(ARGS.root, "guest-driver", "include"),
                 os.path.join(ARGS.build, "guest-driver", "lib",
                              "libvmmc.a")],
                check=True, timeout=LONG)
            result = run("boot", "--share", folder, "--user", "--cmd",
                         "if [ $prawn_node = 0 ]; then /host/box; "
                         "else /host/box 0; fi")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "node0: hello (6 bytes from node 1)\n")


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
