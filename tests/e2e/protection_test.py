#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Protection, and the library, in two real guests (one boot for all of it).

The programs are those of tests/driver; what they print is TAP. A program that
was to run and printed no plan has failed.

usage: protection_test.py --launch PROGRAM --root DIR --build DIR
                          [--tier ci|slow] [--cpus N] [PROGRAM...]
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ALL = """hostile_commands hostile_garbage hostile_doorbell hostile_mappings
hostile_withdrawn hostile_exhaust hostile_ioctl hostile_kill lib_send lib_notify
lib_threads lib_access lib_withdraw lib_pins""".split()
AROUND = ["protect_peer", "protect_victim", "protect_end"]
HERE = os.path.dirname(os.path.abspath(__file__))


def make_share(build, programs, directory):
    source = os.path.join(build, "guest", "tests")
    for name in programs + AROUND:
        program = os.path.join(source, name)
        if not os.path.exists(program):
            sys.exit(f"{program}: missing: build prawn-guest-tests")
        shutil.copy(program, directory)
    shutil.copy(os.path.join(HERE, "protection_guest.sh"), directory)


def boot(args, share):
    inside = " ".join([args.tier] + args.programs)
    return [args.launch, "--root", args.root, "--build", args.build, "boot",
            "--nodes", "2", "--cpus", str(args.cpus), "--set", "checker=true", "--share", share,
            "--timeout", "600", "--cmd",
            f"sh /host/protection_guest.sh {inside}"]


def run(command):
    """Its lines, shown as they come, and its status."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          encoding="utf-8", errors="replace") as process:
        begin = time.monotonic()
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                print(f"{time.monotonic() - begin:7.1f} {lines[-1]}",
                      flush=True)
        except BaseException:  # the guests must not outlive us
            process.terminate()
            raise
    return lines, process.returncode


def judge(lines, status, expected_plans):
    """What is wrong, one line each."""
    text = [re.sub(r"^node\d+: ", "", line) for line in lines]
    wrong = [line for line in text
             if re.match(r"not ok|Bail out!|# .*FAILED", line)]
    plans = sum(bool(re.match(r"1\.\.[1-9]", line)) for line in text)
    if plans != expected_plans:
        wrong.append(f"{plans} programs came to their end, not "
                     f"{expected_plans}")
    if status:
        wrong.append(f"the launcher's exit status is {status}")
    passed = sum(line.startswith("ok ") for line in text)
    return wrong, passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--tier", choices=["ci", "slow"], default="ci")
    parser.add_argument("--cpus", type=int, default=1, help="of each guest")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unknown = set(args.programs) - set(ALL)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    programs = args.programs or ALL
    # Peer, victim, two looks at the checker, and the word to end.
    plans = len(programs) + 5
    if args.tier == "slow":  # these run with two seeds
        plans += len({"hostile_garbage", "hostile_ioctl"} & set(programs))
    with tempfile.TemporaryDirectory() as share:
        os.chmod(share, 0o755)
        make_share(args.build, programs, share)
        lines, status = run(boot(args, share))
    wrong, passed = judge(lines, status, plans)
    for line in wrong:
        print("FAILED:", line)
    print(f"{passed} cases passed, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
