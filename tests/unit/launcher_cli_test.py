#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line that people see: ./prawn's help against what the launcher
takes, exit statuses, one line for each mistake.

usage: launcher_cli_test.py PRAWN-LAUNCH ROOT BUILD
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

LAUNCH, ROOT, BUILD = sys.argv[1:4]
PRAWN = os.path.join(ROOT, "prawn")
LAUNCHED = ["demo", "boot", "sim", "bench"]
OPTION = re.compile(r"(?<![-\w])--[a-z][a-z-]*")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)


class Cli(unittest.TestCase):
    def test_help_teaches_every_option(self):
        for command in LAUNCHED:
            taken = run(LAUNCH, "--root", ROOT, "--build", BUILD, command,
                        "--help")
            self.assertEqual(taken.returncode, 0, taken.stderr)
            told = run(PRAWN, command, "--help")
            self.assertEqual(told.returncode, 0, told.stderr)
            options = set(OPTION.findall(taken.stdout)) - {"--help"}
            self.assertTrue(options)
            self.assertEqual(options - set(OPTION.findall(told.stdout)),
                             set(), command)

    def test_help_needs_neither_set_up_nor_build(self):
        for command in LAUNCHED + ["setup", "test", "trace"]:
            result = run(PRAWN, command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertTrue(result.stdout.startswith(f"usage: ./prawn "
                                                     f"{command}"))
            self.assertEqual(result.stderr, "")
            same = run(PRAWN, "help", command)
            self.assertEqual(same.stdout, result.stdout)

    def test_help_names_files_that_there_are(self):
        for command in LAUNCHED + ["setup", "test", "trace"]:
            text = run(PRAWN, command, "--help").stdout
            for name in re.findall(r"(?<!\S)(?:examples|docs|profiles)/[a-z0-9"
                                   r"_-]+\.[a-z]+", text):
                self.assertTrue(os.path.exists(os.path.join(ROOT, name)),
                                f"{command}: {name}")

    def test_overview(self):
        result = run(PRAWN)
        self.assertEqual(result.returncode, 0)
        for command in LAUNCHED + ["setup", "test", "trace"]:
            self.assertRegex(result.stdout, rf"(?m)^  {command} ")
        self.assertRegex(run(PRAWN, "--version").stdout, r"^prawn \d+\.\d+")

    def test_mistakes_get_one_line(self):
        for words in (["fly"], ["help", "fly"], ["setup", "--fly"],
                      ["test", "--fly"], ["test", "-R"],
                      ["fly", "--help"]):
            result = run(PRAWN, *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertEqual(len(result.stderr.splitlines()), 1, words)
            self.assertIn("error: ", result.stderr)

    def test_launcher_refuses_in_one_line(self):
        for words in (["demo", "--time", "replay"],
                      ["demo", "--nodes", "99"], ["boot", "--fly"]):
            result = run(LAUNCH, "--root", ROOT, "--build", BUILD, *words)
            self.assertEqual(result.returncode, 2, words)
            self.assertEqual(len(result.stderr.splitlines()), 1,
                             result.stderr)

    def test_no_old_result_stays(self):
        for command in LAUNCHED:
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "build"))
                with open(os.path.join(folder, "build", "setup.conf"),
                          "w") as conf:
                    conf.write("kernel=1.2\nqemu=true\nbusybox=true\n")
                file = os.path.join(folder, "result.json")
                with open(file, "w") as old:
                    old.write('{"ok": true}')
                # Nothing has been built there, so nothing starts.
                result = run(LAUNCH, "--root", folder, "--build", folder,
                             command, "--json", file)
                self.assertEqual(result.returncode, 3, result.stderr)
                with open(file) as new:
                    text = new.read()
            if command in ("sim", "bench"):
                self.assertEqual(text, "")
                continue
            report = json.loads(text)
            self.assertIn("has not been built", report["error"])
            self.assertEqual(report["kernel"], "1.2")
            self.assertIs(report.get("ok"),
                          False if command == "demo" else None)

    def test_launcher_without_set_up(self):
        result = run(LAUNCH, "--root", "/nonexistent", "--build", BUILD,
                     "demo")
        self.assertEqual(result.returncode, 3)
        self.assertIn("./prawn setup", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
