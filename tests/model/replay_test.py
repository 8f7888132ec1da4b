#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of models that are replayed: unchanged, changed, and spoilt.

usage: replay_test.py PRAWN_TRACE ALTER DIRECTORY EXAMPLES [TEST...]

DIRECTORY has the executables of the model's tests; EXAMPLES is the directory of
the traces that are shipped.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRACE = ALTER = DIRECTORY = EXAMPLES = ""


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temp.cleanup)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.temp.name, name)

    def trace(self, *words, status=0):
        result = subprocess.run([TRACE, *words], capture_output=True,
                                text=True, timeout=600,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, status,
                         f"{words}\n{result.stdout}{result.stderr}")
        return result

    def replay(self, *words, status=0):
        return json.loads(
            self.trace("replay", "--json", *words, status=status).stdout)

    def one_line(self, result):
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]


class Traffic(Base):
    """The traffic of the model's own tests."""

    def record(self, test, *words):
        file = self.path("run.prec")
        run = subprocess.run(
            [os.path.join(DIRECTORY, "test_model_" + test), *words, "--set",
             "trace.record=" + file],
            capture_output=True, text=True, timeout=600,
            stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return file

    def check(self, test, *words):
        result = self.replay(self.record(test, *words))
        self.assertFalse(result["changed"])
        self.assertEqual(result["differences"], 0)
        self.assertEqual(result["ending"], "complete")
        self.assertGreater(result["records"], 1000)

    def test_path(self):
        self.check("path")

    def test_path_with_twins(self):
        self.check("path", "--twins")

    def test_path_on_the_other_machine(self):
        self.check("path", "--set", "profile=shrimp-1996")

    def test_refusals(self):
        self.check("refusal")

    def test_resets(self):
        self.check("reset")

    def test_resets_with_twins(self):
        self.check("reset", "--twins")

    def test_isolation(self):
        self.check("isolation", "--set", "nodes=3")


class Changed(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.path("pages.prec")
        subprocess.run([TRACE, "generate", "pages", cls.file, "--messages",
                        "2000", "--pages", "512", "--skew", "0.5"], check=True,
                       timeout=120, stdin=subprocess.DEVNULL)

    def test_unchanged(self):
        result = self.replay(self.file)
        self.assertEqual(result["differences"], 0)
        self.assertFalse(result["changed"])
        self.assertEqual(result["recorded_end_ps"], result["replayed_end_ps"])

    def test_naming_what_is_so_anyway_changes_nothing(self):
        result = self.replay(self.file, "--set", "blocks.utlb.entries=1024",
                             "--profile", "pcie-gen3")
        self.assertFalse(result["changed"])

    def check_same_times(self, mode):
        """Something else is changed that has no effect here: the image of
        memory, and all that is computed, must give the recorded run."""
        result = self.replay(self.file, "--mode", mode, "--set",
                             "host.dma_slots=255")
        self.assertTrue(result["changed"])
        self.assertEqual(result["differences"], 0, result.get("first"))
        self.assertEqual(result["zero_bytes"], 0)
        self.assertEqual(result["unread_bytes"], 0)
        self.assertEqual(result["excused_reads"], 0)
        for node in result["nodes"]:
            self.assertEqual(node["recorded"], node["replayed"])
        for part in ("nodes", "fabric"):
            self.assertEqual(result["counters"][part],
                             result["recorded_counters"][part])

    def test_no_effect_open_loop(self):
        self.check_same_times("open-loop")

    def test_no_effect_dependency(self):
        self.check_same_times("dependency")

    SMALL = ("--set", "blocks.utlb.entries=64", "--set",
             "blocks.utlb.prefetch=1")

    def test_a_smaller_utlb_misses_more(self):
        result = self.replay(self.file, "--mode", "dependency", *self.SMALL)
        self.assertEqual(result["differences"], 0, result.get("first"))
        self.assertEqual(result["zero_bytes"], 0)
        sender = result["nodes"][0]
        self.assertGreater(sender["replayed"]["table_reads"],
                           sender["recorded"]["table_reads"])
        self.assertGreater(sender["replayed"]["latency_ps"]["mean"],
                           sender["recorded"]["latency_ps"]["mean"])
        misses = [result[c]["nodes"][0]["global"]["utlb.misses"]
                  for c in ("recorded_counters", "counters")]
        self.assertGreater(misses[1], misses[0])

    def test_open_loop_goes_on_where_no_guest_would(self):
        """The doorbells consume completions that have not come yet: the card
        stops the context."""
        result = self.replay(self.file, *self.SMALL, status=1)
        self.assertIn("completion", result["first"]["text"])
        self.assertGreater(result["first"]["record"], 100)
        self.assertEqual(result["actions_left"], 0)
        self.assertEqual(
            result["counters"]["nodes"][0]["global"]
            ["command_queue.contexts_stopped"], 1)

    def test_another_machine(self):
        result = self.replay(self.file, "--mode", "dependency", "--profile",
                             "shrimp-1996")
        self.assertEqual(result["differences"], 0, result.get("first"))
        self.assertEqual(result["actions_left"], 0)
        self.assertGreater(result["replayed_end_ps"],
                           2 * result["recorded_end_ps"])
        self.assertEqual(
            [n["recorded"]["commands"] for n in result["nodes"]],
            [n["replayed"]["commands"] for n in result["nodes"]])

    def test_smaller_packets(self):
        result = self.replay(self.file, "--set",
                             "blocks.packetizer.max_payload=64")
        self.assertEqual(result["differences"], 0, result.get("first"))

    def test_the_table_names_what_changed(self):
        result = self.trace("replay", self.file, "--mode", "dependency",
                            "--set", "blocks.utlb.entries=64")
        self.assertIn("blocks.utlb.entries: 1024 -> 64", result.stdout)
        self.assertIn("accepted to completed, mean", result.stdout)
        self.assertIn("utlb.misses", result.stdout)
        self.assertIn("outcome    the same, at other times", result.stdout)

    def test_wrong_use(self):
        for words, text in (
                (["--set", "blocks.utlb.entrys=64"], "did you mean"),
                (["--set", "nodes=1"], "leave the number as it is"),
                (["--profile", "no-such"], "no file no-such.toml"),
                (["--mode", "backwards"], "--mode")):
            with self.subTest(words):
                result = self.trace("replay", self.file, *words, status=2)
                self.assertIn(text, self.one_line(result))


class Spoilt(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.path("ping-pong.prec")
        subprocess.run([TRACE, "compile",
                        os.path.join(EXAMPLES, "ping-pong.txt"), cls.file],
                       check=True, timeout=120, stdin=subprocess.DEVNULL)
        with open(cls.file, "rb") as file:
            cls.bytes = file.read()

    def alter(self, kind, number, what):
        target = self.path("altered.prec")
        run = subprocess.run([ALTER, self.file, target, kind, str(number),
                              what], capture_output=True, text=True,
                             timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 0, run.stderr)
        return target, int(run.stdout)

    def test_what_came_otherwise_is_found_where_it_is(self):
        for kind, number, what in (("dma_write", 40, "data"),
                                   ("dma_write", 71, "last"),
                                   ("dma_write", 12, "address"),
                                   ("bar_result", 5, "value"),
                                   ("dma_read", 30, "address")):
            with self.subTest(kind=kind, what=what):
                file, record = self.alter(kind, number, what)
                result = self.replay(file, status=1)
                self.assertEqual(result["first"]["record"], record)

    def test_it_is_explained_in_one_line(self):
        file, record = self.alter("dma_write", 40, "data")
        out = self.trace("replay", file, status=1).stdout
        lines = [line for line in out.splitlines()
                 if line.startswith("diverged")]
        self.assertEqual(len(lines), 1, out)
        self.assertRegex(lines[0], rf"record {record}, at [0-9.]+ us: expected "
                                   r".*dma_write.*, came .*dma_write.*other "
                                   r"data from byte 0 on")

    def test_something_missing_is_noticed(self):
        file, record = self.alter("dma_write", 40, "drop")
        result = self.replay(file, status=1)
        # The next one of its node comes instead.
        self.assertIn(result["first"]["record"], range(record, record + 20))
        self.assertIn("dma_write", result["first"]["text"].split("came")[1])

    def test_other_data_of_a_read_change_what_follows(self):
        # A payload: its bytes arrive elsewhere.
        shown = self.trace("show", self.file, "--kind", "dma_read",
                           "--json").stdout.splitlines()
        reads = [json.loads(line) for line in shown]
        number = next(k + 1 for k, r in enumerate(reads)
                      if r["length"] == 4096)
        file, record = self.alter("dma_read", number, "data")
        result = self.replay(file, status=1)
        self.assertGreater(result["first"]["record"], record)
        self.assertIn("dma_write", result["first"]["text"])

    def test_outcome_of_a_changed_replay(self):
        for kind, number, what, text in (
                ("dma_write", 71, "last", "says"),
                ("bar_result", 5, "value", "and gets"),
                ("dma_write", 40, "drop", "")):
            with self.subTest(kind=kind, what=what):
                file, record = self.alter(kind, number, what)
                result = self.replay(file, "--no-baseline", "--set",
                                     "host.dma_slots=255", status=1)
                self.assertGreater(result["differences"], 0)
                if what != "drop":
                    self.assertEqual(result["first"]["record"], record)

    def test_a_translation_that_was_never_recorded(self):
        spoilt = self.path("no-tables.prec")
        # Left is what the walker read: one line, and the next was not.
        count = 0
        source = self.file
        while True:
            target = self.path(f"less{count}.prec")
            run = subprocess.run([ALTER, source, target, "memory", "1",
                                  "drop"], capture_output=True, text=True,
                                 timeout=60, stdin=subprocess.DEVNULL)
            if run.returncode != 0:
                break
            count += 1
            source = target
            if count > 64:
                break
        self.assertGreater(count, 3)
        os.rename(source, spoilt)
        result = self.trace("replay", spoilt, "--no-baseline", "--set",
                            "blocks.utlb.prefetch=32", status=1)
        self.assertRegex(self.one_line(result),
                         "translation entries that were never recorded; "
                         "record again")

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_truncated(self):
        generated = self.path("long.prec")
        self.trace("generate", "uniform", generated, "--messages", "3000",
                   "--bytes", "2000")
        with open(generated, "rb") as file:
            data = file.read()
        short = self.write("short.prec", data[:len(data) * 2 // 3])
        result = self.trace("replay", short)
        self.assertIn("identical", result.stdout)
        self.assertNotEqual(self.one_line(result), "")
        self.assertEqual(self.replay(short)["ending"], "truncated")
        # Changed as well: what was under way when it ended may be missing,
        # what was recorded is not.
        self.replay(short, "--set", "host.dma_slots=255")

    def test_damaged(self):
        middle = len(self.bytes) // 2
        for wrong in (middle, len(self.bytes) - 30):
            data = bytearray(self.bytes)
            data[wrong] ^= 0xff
            damaged = self.write("damaged.prec", data)
            result = self.trace("replay", damaged, status=1)
            self.assertNotEqual(self.one_line(result), "")

    def test_foreign(self):
        for name, data in (("text.prec", b"no recording at all\n" * 100),
                           ("empty.prec", b"")):
            result = self.trace("replay", self.write(name, data), status=2)
            self.assertIn(name, self.one_line(result))
        result = self.trace("replay", self.path("none.prec"), status=2)
        self.assertIn("none.prec", self.one_line(result))

    def test_of_a_later_version(self):
        data = bytearray(self.bytes)
        size = int.from_bytes(data[4:8], "little")
        data[16:20] = (2).to_bytes(4, "little")
        data[8 + size - 4:8 + size] = crc32c(
            data[8:8 + size - 4]).to_bytes(4, "little")
        result = self.trace("replay", self.write("later.prec", data),
                            status=2)
        self.assertRegex(self.one_line(result), "format 2")

    @staticmethod
    def catches(pid, number):
        """It is so far that it has a handler for this signal."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            mask = next(line for line in file if line.startswith("SigCgt"))
        return int(mask.split()[1], 16) >> (number - 1) & 1

    def test_interrupted(self):
        generated = self.path("long.prec")
        self.trace("generate", "uniform", generated, "--messages", "30000")
        for changes in ([], ["--set", "blocks.utlb.entries=64"]):
            process = subprocess.Popen(
                [TRACE, "replay", generated, *changes], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            while not self.catches(process.pid, signal.SIGINT):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, out + err)
            self.assertEqual(err, "prawn: interrupted\n")


class Views(Base):
    """The events of a replay are those of the run."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.path("run.prec")
        words = [os.path.join(DIRECTORY, "trace_run")]
        for key, name in (("record", "run.prec"), ("csv", "run.csv"),
                          ("perfetto", "run.json"), ("pcapng", "run.pcapng")):
            words += ["--set", f"trace.{key}={cls.path(name)}"]
        subprocess.run(words, check=True, timeout=120, capture_output=True,
                       stdin=subprocess.DEVNULL)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_export(self):
        self.trace("export", self.file, "--events", self.path("again.csv"),
                   "--perfetto", self.path("again.json"), "--pcapng",
                   self.path("again.pcapng"), "--csv", self.path("records"))
        self.assertEqual(self.content("again.csv"), self.content("run.csv"))
        self.assertEqual(self.content("again.json"), self.content("run.json"))
        # Their headers name the run; all packets follow.
        packets = self.content("run.pcapng")[-4096:]
        self.assertTrue(self.content("again.pcapng").endswith(packets))
        self.assertTrue(self.content("records").startswith(
            b"# prawn-recording "))

    def test_one_message(self):
        rows = [line.split(",") for line in
                self.content("run.csv").decode().splitlines()[2:]]
        wanted = [r for r in rows if r[4:7] == ["0", "1", "3"]]
        self.assertGreater(len(wanted), 10)
        lines = self.trace("show", self.file, "--message",
                           "0:1:3").stdout.splitlines()
        self.assertEqual(len(lines), len(wanted) + 1)
        for line, row in zip(lines[1:], wanted):
            words = line.split()
            self.assertEqual(words[6:8], row[1:3], line)
            ps = round(float(words[0]) * 1e6)
            self.assertEqual(ps, int(row[0]), line)
        self.assertIn("doorbell to fetch", lines[1])
        self.assertIn("notification", lines[-1])

    def test_no_such_message(self):
        for text, words in (("0:1:77777", "no such message"),
                            ("0:1", "use NODE:CONTEXT:NUMBER"),
                            ("a:b:c", "use NODE:CONTEXT:NUMBER")):
            result = self.trace("show", self.file, "--message", text, status=2)
            self.assertIn(words, self.one_line(result))


class Examples(Base):
    def test_each_replays(self):
        names = sorted(n for n in os.listdir(EXAMPLES) if n.endswith(".txt"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            with self.subTest(name):
                text = os.path.join(EXAMPLES, name)
                self.assertLess(os.path.getsize(text), 100 * 1024)
                file = self.path(name + ".prec")
                self.trace("compile", text, file)
                result = self.trace("replay", file)
                self.assertIn("identical", result.stdout)
                result = self.replay(file, "--mode", "dependency", "--set",
                                     "blocks.utlb.entries=64")
                self.assertEqual(result["differences"], 0,
                                 result.get("first"))

    def test_generated_ones_replay_and_are_the_same_each_time(self):
        for pattern, words in (("uniform", ["--nodes", "4"]),
                               ("bursts", ["--nodes", "3"]),
                               ("permutation", ["--nodes", "5"]),
                               ("all-to-all", ["--nodes", "3"]),
                               ("pages", ["--order", "sequential"]),
                               ("pages", ["--order", "strided"])):
            with self.subTest(pattern):
                a, b = self.path("a.prec"), self.path("b.prec")
                for file in (a, b):
                    self.trace("generate", pattern, file, "--messages", "100",
                               *words)
                self.replay(a)
                self.trace("diff", a, b)

    def test_text_form_and_recording_of_a_generator_agree(self):
        words = ["generate", "bursts"]
        options = ["--nodes", "3", "--messages", "70", "--seed", "5"]
        self.trace(*words, self.path("a.prec"), *options)
        self.trace(*words, self.path("a.txt"), *options, "--text")
        self.trace("compile", self.path("a.txt"), self.path("b.prec"))
        self.trace("diff", self.path("a.prec"), self.path("b.prec"))

    def test_wrong_text(self):
        begin = "trace 1\ncontext 0:1\nbuffer b 0:1 1 pages\nexport e b\n" \
                "context 1:1\nbuffer c 1:1 2 pages\nimport i 1:1 e\n"
        for text, line, words in (
                ("", None, "begin it with: trace 1"),
                ("hello\n", 1, "begin it with: trace 1"),
                ("trace 2\n", 1, "use version 1"),
                ("trace 1\nset a\n", 2, "write set KEY=VALUE"),
                ("trace 1\ncontext 99:1\n", 2, "from 0 to 15"),
                ("trace 1\n0:1 wait 5us\n", 2, "declare it first"),
                (begin + "1:1 send nothing 8 from c\n", 8, "further up"),
                (begin + "1:1 send i 16K from c\n", 8, "more pages"),
                (begin + "1:1 send i 8 from b\n", 8, "belongs to 0:1"),
                (begin + "1:1 send i 8\n", 8, "the line ends where"),
                (begin + "1:1 wait 5 parsecs\n", 8, "too much"),
                (begin + "1:1 wait soon\n", 8, "1.5us"),
                (begin + "1:1 repeat 3\n", 8, "add \"1:1 end\""),
                (begin + "1:1 end\n", 8, "remove it"),
                (begin + "1 send i 8 from c\n", 8, "name a context"),
                (begin + "1:1 juggle\n", 8, "use send"),
                (begin + "buffer b 0:1 1 pages\n", 8, "another name")):
            with self.subTest(text):
                file = self.path("wrong.txt")
                with open(file, "w", encoding="utf-8") as out:
                    out.write(text)
                result = self.trace("compile", file, self.path("x.prec"),
                                    status=2)
                message = self.one_line(result)
                place = file if line is None else f"{file}:{line}:"
                self.assertIn(place, message)
                self.assertIn(words, message)

    def test_a_message_to_nowhere_completes_with_its_status(self):
        file = self.path("beyond.txt")
        with open(file, "w", encoding="utf-8") as out:
            out.write("trace 1\ncontext 0:1\ncontext 1:1\n"
                      "buffer b 0:1 1 pages\nbuffer c 1:1 1 pages\n"
                      "export e c\nimport i 0:1 e\n"
                      "0:1 send i 64 from b to 8192\n")
        self.trace("compile", file, self.path("beyond.prec"))
        self.replay(self.path("beyond.prec"))


if __name__ == "__main__":
    TRACE, ALTER, DIRECTORY, EXAMPLES = sys.argv[1:5]
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
