#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Command lines of the tools, good and bad. They are static programs for the
guests and run here just as well, as far as one comes without a card.

usage: tools_test.py DIRECTORY-OF-TOOLS
"""
import os
import subprocess
import sys
import unittest

TOOLS = ""
NO_CARD = "/nonexistent/prawn0"


def run(tool, *words, device=NO_CARD):
    environment = dict(os.environ, VMMC_DEVICE=device)
    return subprocess.run([os.path.join(TOOLS, tool), *words],
                          capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=environment)


class Tools(unittest.TestCase):
    def expect(self, status, tool, *words, **more):
        got = run(tool, *words, **more)
        self.assertEqual(got.returncode, status,
                         f"{tool} {words}: {got.stdout}{got.stderr}")
        self.assertEqual(got.stdout if status else got.stderr, "",
                         f"{tool} {words}")
        self.assertTrue(got.stderr if status else got.stdout,
                        f"{tool} {words}: said nothing")
        return got

    def test_help(self):
        for tool in ("vmmc_lat", "vmmc_bw", "vmmc_info", "vmmc_stat"):
            for word in ("-h", "--help"):
                text = self.expect(0, tool, word).stdout
                self.assertTrue(text.startswith(f"usage: {tool}"), text)

    def test_bad_usage_of_the_measuring_tools(self):
        for tool in ("vmmc_lat", "vmmc_bw"):
            for words in (
                    ["--no-such"], ["-x"], ["-s"], ["-s", ""], ["-s", "x"],
                    ["-s", "-1"], ["-s", " -18446744073709551612"],
                    ["-s", "+4"], ["-s", "4x"], ["-s", "4kk"], ["-s", "1.5"],
                    ["-s", "99999999999999999999"], ["-s", "17179869184G"],
                    ["-s", "1G"], ["-n", "0"], ["-n", "-3"],
                    ["-n", "100000001"], ["-t", "0"], ["-t", "1000001"],
                    ["-p", ""], ["-p", "x" * 41], ["node1"], ["-2"],
                    ["65536"], ["1", "2"]):
                got = self.expect(2, tool, *words)
                self.assertLess(len(got.stderr.splitlines()), 3, got.stderr)
                self.assertIn(tool, got.stderr)

    def test_bad_usage_of_the_others(self):
        for words in (["-x"], ["extra"], ["-d"]):
            self.expect(2, "vmmc_info", *words)
        for words in (["-x"], ["extra"], ["-i", "0"], ["-i", "x"],
                      ["-i", "4294967297"], ["-i", "-1"], ["-i", " -1"],
                      ["-i", "1", "-c", "0"], ["-c", "3"]):
            self.expect(2, "vmmc_stat", *words)

    def test_no_card(self):
        for tool, words in (("vmmc_lat", []), ("vmmc_lat", ["1"]),
                            ("vmmc_bw", []), ("vmmc_bw", ["0x1", "-s", "1k"]),
                            ("vmmc_info", []), ("vmmc_stat", [])):
            got = self.expect(1, tool, *words)
            self.assertEqual(len(got.stderr.splitlines()), 1, got.stderr)
            # The option goes before the environment.
            got = self.expect(1, tool, "-d", "/nonexistent/other", *words)
            self.assertIn("/nonexistent/other", got.stderr)

    def test_a_file_that_is_no_card(self):
        for tool in ("vmmc_lat", "vmmc_bw", "vmmc_info", "vmmc_stat"):
            self.expect(1, tool, device="/dev/null")


if __name__ == "__main__":
    TOOLS = sys.argv.pop(1)
    unittest.main()
