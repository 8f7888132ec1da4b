#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prawn.ko in real guests: one, whose processes send to their own node, or two.

The programs are those of tests/driver; what they print is TAP. A program that
was to run and printed no plan has failed.

usage: driver_test.py --launch PROGRAM --root DIR --build DIR
                      [--nodes N] [PROGRAM...]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ALONE = """driver_uapi driver_space driver_wait driver_quota driver_stress
driver_life driver_probe driver_ptp""".split()
TOGETHER = ["driver_peer"]
HERE = os.path.dirname(os.path.abspath(__file__))


def boot(args, share, config):
    inside = " ".join(args.programs)
    return [args.launch, "--root", args.root, "--build", args.build, "boot",
            "--config", config, "--nodes", str(args.nodes),
            "--cpus", "2" if args.nodes == 1 else "1", "--memory", "1024",
            "--share", share, "--timeout", "300", "--cmd",
            f"sh /host/driver_guest.sh {inside}"]


def judge(text, status, programs):
    """What is wrong, one line each."""
    wrong = [line for line in text if re.match(r"not ok|Bail out!|# FAILED",
                                               line)]
    plans = sum(bool(re.match(r"1\.\.[1-9]", line)) for line in text)
    if plans != programs:
        wrong.append(f"{plans} programs came to their end, not {programs}")
    if status:
        wrong.append(f"the launcher's exit status is {status}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--nodes", type=int, default=1, choices=[1, 2])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    args = parser.parse_args()
    args.programs = args.programs or (ALONE if args.nodes == 1
                                      else TOGETHER)
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "one-node.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"nodes = {args.nodes}\nchecker = true\n")
        share = os.path.join(directory, "share")
        os.mkdir(share, 0o755)
        shutil.copy(os.path.join(HERE, "driver_guest.sh"), share)
        for name in args.programs:
            program = os.path.join(args.build, "guest", "tests", name)
            if not os.path.exists(program):
                sys.exit(f"{program}: missing: build prawn-guest-tests")
            shutil.copy(program, share)
        for module in ("prawn_fault.ko", "prawn_no_ptp.ko"):
            shutil.copy(os.path.join(args.build, "guest", "tests", module),
                        share)
        text = []
        with subprocess.Popen(boot(args, share, config), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, encoding="utf-8",
                              errors="replace") as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                text.append(re.sub(r"^node\d+: ", "", line.rstrip("\n")))
        wrong = judge(text, process.returncode, len(args.programs))
    for line in wrong:
        print("FAILED:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
