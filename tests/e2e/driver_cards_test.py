#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One guest with many cards: bad ones, two that vanish, and two that talk.

Beside the card of the launcher the guest gets one of every kind that bad_card
serves, two of which vanish when the guest asks for it, and two that a model
of their own serves. (Killing that model is no way to take a card away: QEMU
11.1.3 ends by an assertion of its own when it loses a server in use.)

usage: driver_cards_test.py --launch PROGRAM --root DIR --build DIR
                            --sim PROGRAM --bad-card PROGRAM
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

KINDS = """ones id abi limits node small unready deaf vectors1 vectors2
vectors15 silent refuses babbles vanishes fades""".split()
FIRST_SLOT = 0x08
PROGRAMS = ["driver_cards", "driver_vanish"]
TAKE_AWAY = "# take the cards away"
TROUBLE = "BUG|WARNING|Oops|hung task|Call Trace|rcu.*stall"


def device(path, slot, **more):
    return ["-device", json.dumps({
        "driver": "vfio-user-pci", "addr": f"{slot:x}",
        "socket": {"type": "unix", "path": path}, **more})]


def serve(*command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, encoding="utf-8")
    if process.stdout.readline() != "ready\n":
        sys.exit(f"{command[0]}: did not start")
    return process


def run(command, bad):
    """Its lines, shown as they come, and its status."""
    text = []
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          encoding="utf-8", errors="replace") as process:
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                text.append(line.rstrip("\n"))
                if text[-1] == TAKE_AWAY:
                    bad.send_signal(signal.SIGUSR1)
        except BaseException:  # the guest must not outlive us
            process.terminate()
            raise
    return text, process.returncode


def judge(text, status):
    """What is wrong, one line each."""
    wrong = [line for line in text
             if re.match(r"not ok|Bail out!|# FAILED", line)]
    plans = sum(bool(re.match(r"1\.\.[1-9]", line)) for line in text)
    if plans != len(PROGRAMS):
        wrong.append(f"{plans} programs came to their end, not "
                     f"{len(PROGRAMS)}")
    if TAKE_AWAY not in text:
        wrong.append("no card was taken away")
    if status:
        wrong.append(f"the launcher's exit status is {status}")
    return wrong


def test(args, directory):
    share = os.path.join(directory, "share")
    os.mkdir(share, 0o755)
    for name in PROGRAMS:
        shutil.copy(os.path.join(args.build, "guest", "tests", name), share)
    slots = {kind: FIRST_SLOT + i for i, kind in enumerate(KINDS)}
    pair = [FIRST_SLOT + len(KINDS) + i for i in range(2)]
    config = os.path.join(directory, "cards.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("nodes = 1\n")
    sims = os.path.join(directory, "sim")
    qemu = []
    for kind, slot in slots.items():
        qemu += device(os.path.join(directory, f"{kind}.sock"), slot)
    for node, slot in enumerate(pair):
        qemu += device(os.path.join(sims, f"node{node}.sock"), slot)
    cards = " ".join(f"{kind}={slot:02x}" for kind, slot in slots.items())
    # The launcher's own card has the slot that none of ours has.
    inside = f"""
        cd /tmp && cp /host/* . || exit 1
        status=0
        for path in /sys/bus/pci/drivers/prawn/0000:*; do
            slot=${{path##*:}}; slot=${{slot%.0}}
            [ $((0x$slot)) -lt {FIRST_SLOT} ] && own=$slot
        done
        ./driver_cards {cards} || status=1
        ./driver_vanish {pair[0]:02x} {pair[1]:02x} \\
            {slots["vanishes"]:02x} {slots["fades"]:02x} $own || status=1
        if dmesg | grep -E '{TROUBLE}'; then
            echo '# FAILED: the kernel complained'
            dmesg | tail -n 60
            status=1
        fi
        exit $status"""
    bad = serve(args.bad_card, directory, *KINDS)
    sim = serve(args.sim, "--run-dir", sims, "--quiet")
    try:
        text, status = run(
            [args.launch, "--root", args.root, "--build", args.build, "boot",
             "--config", config, "--nodes", "1", "--cpus", "2", "--memory",
             "1024", "--share", share, "--timeout", "300", "--cmd", inside,
             "--", *qemu], bad)
    finally:
        for process in (sim, bad):
            process.kill()
            process.wait()
    return judge(text, status)


def main():
    parser = argparse.ArgumentParser()
    for option in ("launch", "root", "build", "sim", "bad-card"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        wrong = test(args, directory)
    for line in wrong:
        print("FAILED:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
