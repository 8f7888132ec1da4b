#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of whole runs: the run does not notice, the file says what
happened, prawn-trace shows it; and prawn-sim --record, whatever ends it.

usage: recording_test.py TRACE_RUN TEST_ISOLATION TEST_RESET PRAWN_TRACE
                         PRAWN_SIM ROOT [TEST...]
"""
import csv
import filecmp
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TRACE_RUN = ISOLATION = RESET = TRACE = SIM = ROOT = ""
KINDS = ["attach", "detach", "reset", "bus_master", "bar_read", "bar_write",
         "map", "unmap", "bar_result", "bar_written", "bar_accepted",
         "dma_read", "dma_write", "dma_accepted", "msix", "intx", "memory"]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)


class Base(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.dir = temp.name

    def path(self, name):
        return os.path.join(self.dir, name)

    def trace(self, *words, status=0):
        result = run(TRACE, *words)
        self.assertEqual(result.returncode, status,
                         result.stdout + result.stderr)
        return result.stdout

    def info(self, file, status=0):
        return json.loads(self.trace("info", file, "--json", status=status))

    def record(self, name, *words, program=None):
        """Runs some traffic; returns the paths of recording and events."""
        paths = self.path(name + ".rec"), self.path(name + ".csv")
        result = run(program or TRACE_RUN, "--set", "trace.record=" + paths[0],
                     "--set", "trace.csv=" + paths[1], *words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return paths


class Run(Base):
    def test_the_model_does_not_notice(self):
        for words in ([TRACE_RUN], [TRACE_RUN, "--twins"],
                      [TRACE_RUN, "--set", "profile=shrimp-1996"],
                      [ISOLATION, "--set", "nodes=3"], [RESET],
                      [RESET, "--set", "host.bar_credits=1",
                       "--set", "host.dma_slots=2"]):
            with self.subTest(words=words):
                recording, with_it = self.record("with", *words[1:],
                                                 program=words[0])
                without = self.path("without.csv")
                result = run(*words, "--set", "trace.csv=" + without)
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertGreater(os.path.getsize(without), 30000)
                self.assertTrue(filecmp.cmp(with_it, without, shallow=False))
                self.assertTrue(self.info(recording)["complete"])

    def test_same_run_same_bytes(self):
        for words in ([], ["--twins"]):
            a, _ = self.record("a", *words)
            b, _ = self.record("b", *words)
            self.assertTrue(filecmp.cmp(a, b, shallow=False))

    def test_what_is_in_it(self):
        file, events = self.record("run")
        info = self.info(file)
        self.assertEqual(info["state"], "complete")
        self.assertEqual(info["nodes"], 2)
        self.assertEqual(info["time_mode"], "free-running")
        self.assertEqual(info["profile"], "pcie-gen3")
        self.assertIn("checker=true", info["config"])
        self.assertFalse([c for c in info["config"] if c.startswith("trace.")])
        self.assertEqual(list(info["by_node"][0]), KINDS)
        self.assertEqual(sum(sum(n.values()) for n in info["by_node"]),
                         info["records"])
        for node in info["by_node"]:
            self.assertEqual(node["bar_read"], node["bar_result"])
            self.assertEqual(node["bar_write"], node["bar_written"])
            self.assertEqual(node["bus_master"], 1)
            for kind in ("bar_write", "dma_read", "dma_write", "msix", "map",
                         "memory"):
                self.assertGreater(node[kind], 0, kind)
        # Against what the model itself says: every doorbell of a context.
        with open(events, encoding="utf-8") as f:
            doorbells = sum(",csr,DOORBELL," in line for line in f)
        shown = self.trace("show", file, "--kind", "bar_write")
        self.assertEqual(len(re.findall(r"bar 2 .* DOORBELL,", shown)),
                         doorbells)

    def test_show(self):
        file, _ = self.record("run")
        everything = self.trace("show", file).splitlines()
        self.assertEqual(len(everything), self.info(file)["records"])
        for n, line in enumerate(everything, 1):
            self.assertRegex(line, rf"^ *{n} +\d+\.\d{{6}} us .* node [01] ")
        writes = self.trace("show", file, "--kind", "bar_write", "--kind",
                            "msix", "--node", "1").splitlines()
        self.assertTrue(all("node 1" in w for w in writes))
        self.assertEqual({w.split("node 1")[1].split()[1] for w in writes},
                         {"bar_write", "msix"})
        self.assertEqual(self.trace("show", file, "--limit", "7"),
                         "".join(e + "\n" for e in everything[:7]))
        rows = [json.loads(r) for r in
                self.trace("show", file, "--json", "--from", "120.5us", "--to",
                           "121500000ps").splitlines()]
        self.assertTrue(rows)
        self.assertTrue(all(120500000 <= r["time_ps"] <= 121500000
                            for r in rows))
        self.assertEqual([r["time_ps"] for r in rows],
                         sorted(r["time_ps"] for r in rows))
        page = self.trace("show", file, "--kind", "memory", "--limit", "1",
                          "--data").splitlines()
        self.assertEqual(len(page), 1 + 4096 // 32)

    def test_export_csv(self):
        file, _ = self.record("run")
        out = self.path("out.csv")
        self.trace("export", file, "--csv", out)
        with open(out, encoding="utf-8", newline="") as f:
            self.assertEqual(f.readline(), "# prawn-recording 1\n")
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), self.info(file)["records"])
        shown = [json.loads(line) for line in
                 self.trace("show", file, "--json").splitlines()]
        for row, record in zip(rows, shown):
            for key, value in record.items():
                text = {True: "1", False: "0", None: ""}.get(
                    value if isinstance(value, (bool, type(None))) else "",
                    str(value))
                self.assertEqual(row[key], text, (key, record))
        self.assertEqual(run(TRACE, "export", file, "--csv",
                             "/dev/full").returncode, 1)

    def test_diff(self):
        a, _ = self.record("a")
        same, _ = self.record("same")
        self.assertRegex(self.trace("diff", a, same), r"^the same: \d+ records")
        self.assertTrue(json.loads(self.trace("diff", "--json", a,
                                              same))["same"])
        # Another bus: the driver polls, so it reads more often.
        slow, _ = self.record("slow", "--set", "profile=shrimp-1996")
        text = self.trace("diff", a, slow, status=1)
        self.assertIn("header: profile: A pcie-gen3, B shrimp-1996\n", text)
        self.assertRegex(text, r"first difference at record \d+:\n"
                         r"  time: \d+\.\d+ us / \d+\.\d+ us\n  value: ")
        # Interrupts a little later, for which this driver does not wait.
        profile = self.path("later.toml")
        with open(os.path.join(ROOT, "profiles", "pcie-gen3.toml"),
                  encoding="utf-8") as f:
            text = f.read()
        with open(profile, "w", encoding="utf-8") as f:
            f.write(text.replace("interrupt_ns = { value = 1000,",
                                 "interrupt_ns = { value = 1001,"))
        later, _ = self.record("later", "--set", "profile=" + profile)
        j = json.loads(self.trace("diff", "--json", "--records", a, later,
                                  status=1))
        self.assertEqual(j["header"], [])
        self.assertEqual([w["what"] for w in j["first"]["what"]], ["time"])
        self.assertIn("msix", j["first"]["a"][0])
        self.assertEqual(j["time_only"], sum(
            n["msix"] for n in self.info(a)["by_node"]))
        self.assertIsNone(j["first_other"])
        text = self.trace("diff", a, later, status=1)
        self.assertIn("header: profile: A pcie-gen3, B later\n", text)
        self.assertRegex(text, r"times differ first at record \d+:\n")
        self.assertIn("records differ in their times only\n", text)
        other, _ = self.record("other", "--set", "blocks.utlb.prefetch=1")
        j = json.loads(self.trace("diff", "--json", a, other, status=1))
        self.assertEqual(j["header"], [{"what": "blocks.utlb.prefetch",
                                        "a": "8", "b": "1"}])
        place = j["first_other"] or j["first"]
        self.assertIn("length", [w["what"] for w in place["what"]])
        self.assertEqual(len(place["before"]), 3)
        self.assertEqual((len(place["a"]), len(place["b"])), (4, 4))

    def test_diff_with_one_that_was_cut(self):
        a, _ = self.record("a")
        cut = self.path("cut.rec")
        with open(a, "rb") as f:
            content = f.read()
        with open(cut, "wb") as f:
            f.write(content[:-1])
        info = self.info(cut, status=1)
        self.assertEqual(info["state"], "truncated")
        self.assertEqual(info["records"], self.info(a)["records"])
        text = self.trace("diff", a, cut, status=1)
        self.assertIn("ends at byte", text)
        self.assertIn("cut.rec: ends at byte", self.trace("info", cut,
                                                         status=1))
        result = run(TRACE, "show", cut)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_mistakes_get_one_line(self):
        a, _ = self.record("a")
        odd = self.path("odd\n\x1b[2J")
        with open(odd, "w", encoding="utf-8") as f:
            f.write("time_ps,node\n")
        for words, text in (
                ([], ""), (["fly"], ""), (["info"], "FILE"),
                (["info", "/no/such"], "No such file"),
                (["info", self.dir], "not a regular file"),
                (["info", odd], "odd??[2J: not a recording"),
                (["info", a, "--fly"], "--fly"),
                (["show", a, "--kind", "x"], "bar_write"),
                (["show", a, "--from", "1hour"], "1.5us"),
                (["show", a, "--limit", "x"], "--limit"),
                (["diff", a], "B"), (["diff", a, odd], "not a recording"),
                (["export", a], "--csv"),
                (["export", a, "--csv", "/no/such/x"], "/no/such/x")):
            with self.subTest(words=words):
                result = run(TRACE, *words)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1,
                                 result.stderr)
                self.assertIn(text, result.stderr)

    def test_help_teaches_every_option(self):
        option = re.compile(r"(?<![-\w])--[a-z][a-z-]*")
        told = run(os.path.join(ROOT, "prawn"), "help", "trace").stdout
        top = self.trace("--help")
        for command in ("info", "show", "diff", "export"):
            self.assertIn(command, top)
            self.assertRegex(told, rf"(?m)^  {command} ")
            taken = set(option.findall(self.trace(command, "--help")))
            self.assertEqual(taken - {"--help"} - set(option.findall(told)),
                             set(), command)


class Simulator(Base):
    """prawn-sim --record, with a client that says little."""

    def setUp(self):
        super().setUp()
        self.file = self.path("run.rec")

    def start(self, file):
        process = subprocess.Popen(
            [SIM, "--run-dir", self.dir, "--quiet", "--record", file],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def client(self):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(20)
        client.connect(self.path("node0.sock"))
        offer = json.dumps({"capabilities": {"max_msg_fds": 8,
                                             "filler": "x" * 500}})
        self.ask(client, 1, struct.pack("<HH", 0, 0) + offer.encode() + b"\0")
        return client

    @staticmethod
    def ask(client, command, payload):
        client.sendall(struct.pack("<HHIII", 7, command, 16 + len(payload), 0,
                                   0) + payload)
        head = client.recv(16, socket.MSG_WAITALL)
        size, flags = struct.unpack("<II", head[4:12])
        assert flags == 1, flags
        return client.recv(size - 16, socket.MSG_WAITALL)

    def read_id(self, client):
        answer = self.ask(client, 9, struct.pack("<QII", 0, 0, 4))
        return struct.unpack("<I", answer[16:])[0]

    def kinds(self, status):
        return [json.loads(line)["kind"] for line in self.trace(
            "show", self.file, "--json", status=status).splitlines()]

    def test_told_to_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start(self.file)
            client = self.client()
            self.assertEqual(self.read_id(client), 0x4e575250)
            client.close()
            time.sleep(0.3)
            process.send_signal(number)
            self.assertEqual(process.wait(20), 0)
            info = self.info(self.file)
            self.assertTrue(info["complete"])
            kinds = self.kinds(0)
            self.assertEqual([k for k in kinds if k.startswith("bar")],
                             ["bar_read", "bar_result"])
            self.assertEqual((kinds[0], kinds[-1]), ("attach", "detach"))

    def test_with_nothing_to_record(self):
        process = self.start(self.file)
        process.terminate()
        self.assertEqual(process.wait(20), 0)
        info = self.info(self.file)
        self.assertEqual((info["complete"], info["records"]), (True, 0))

    def test_killed(self):
        process = self.start(self.file)
        client = self.client()
        for _ in range(3):
            self.read_id(client)
        # Brought into the file while the model stands still.
        deadline = time.monotonic() + 20
        while self.info(self.file, status=1)["records"] < 7:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        process.kill()
        process.wait()
        kinds = self.kinds(1)
        self.assertEqual(kinds.count("bar_result"), 3)
        self.assertEqual(self.info(self.file, status=1)["state"], "truncated")

    def test_a_full_disk(self):
        process = self.start("/dev/full")
        self.assertEqual(self.read_id(self.client()), 0x4e575250)
        process.terminate()
        self.assertEqual(process.wait(20), 0)
        said = [line for line in process.stderr.read().splitlines()
                if "[info]" not in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn("/dev/full: No space left", said[0])

    def test_a_file_that_cannot_be_made(self):
        for words, text in ((["--record", "/no/such/dir/x"], "/no/such/dir/x"),
                            (["--record", self.dir], self.dir),
                            (["--record", self.file, "--csv", self.file],
                             "two have the same path")):
            result = run(SIM, "--run-dir", self.dir, *words)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(result.stderr.splitlines()), 1)
            self.assertIn(text, result.stderr)


if __name__ == "__main__":
    TRACE_RUN, ISOLATION, RESET, TRACE, SIM, ROOT = sys.argv[1:7]
    unittest.main(argv=[sys.argv[0], *sys.argv[7:]])
