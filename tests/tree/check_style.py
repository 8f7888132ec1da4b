#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for every file in the tree: licence line, size, words; or the format.

Usage: check_style.py SOURCE rules|format. Prints one line per finding; exit
status 1 if any, 77 if there is no program to judge the format.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

MAX_LINES = 600
# Debian 12's. Later ones break some lines elsewhere, so they do not judge.
CLANG_FORMAT = 14
SOURCE = {".cpp", ".h", ".c", ".sv", ".py", ".S", ".sh"}
FORMATTED = {".cpp", ".h", ".c"}
# JSON, licence texts and account files have no comments; help texts are
# printed as they are; samples are data.
NO_SPDX = re.compile(r"(\.json|\.cbor|\.bin|\.pcapng)$|^LICENSES/|/corpus/|"
                     r"/image/(passwd|group)$|/help/\w+\.txt$")
# Brackets keep the patterns from finding themselves.
LEFT_OVER = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b")
FOREIGN = re.compile(
    r"(?<![\w.])/(?:[w]ork|[f]arm)/[a-z]|/tmp/[b]ash_|"
    r"\bdeb\.debian\.org|\bregistry\.npmjs")


def tracked(root: Path) -> list[str]:
    out = subprocess.run(["git", "ls-files"], cwd=root, check=True,
                         capture_output=True, text=True)
    return [f for f in out.stdout.splitlines() if (root / f).is_file()]


def check_file(root: Path, name: str) -> list[str]:
    raw = (root / name).read_bytes()
    if b"\0" in raw:
        return []
    text = raw.decode("utf-8", errors="replace")
    lines = text.splitlines()
    found = []
    # "#!" and ".so" (manual pages) have to stand on line 1.
    if not NO_SPDX.search(name):
        late = bool(lines) and lines[0].startswith(("#!", ".so "))
        if not any("SPDX-License-Identifier:" in x
                   for x in lines[:2 if late else 1]):
            found.append(f"{name}:1: no SPDX-License-Identifier: add it")
    if "autogen/" in name:
        return found
    suffix = Path(name).suffix
    if suffix in SOURCE and len(lines) > MAX_LINES:
        found.append(f"{name}: {len(lines)} lines, at most {MAX_LINES}: "
                     "split it by concern")
    for number, line in enumerate(lines, 1):
        if suffix in SOURCE and LEFT_OVER.search(line):
            found.append(f"{name}:{number}: left-over marker: finish it")
        if FOREIGN.search(line):
            found.append(f"{name}:{number}: path or host of one machine: "
                         "take it out")
        if line != line.rstrip() and suffix in SOURCE | {".md", ".toml"}:
            found.append(f"{name}:{number}: trailing space: take it out")
    return found


def formatter() -> str | None:
    for name in (f"clang-format-{CLANG_FORMAT}", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], text=True,
                                     check=True, capture_output=True).stdout
            if f" version {CLANG_FORMAT}." in version:
                return name
    return None


def check_format(root: Path, names: list[str]) -> list[str]:
    program = formatter()
    if not program:
        print(f"skipped: no clang-format {CLANG_FORMAT} here (Debian 12 has it)")
        sys.exit(77)
    files = [n for n in names
             if Path(n).suffix in FORMATTED and "autogen/" not in n
             # The driver follows the kernel's own tools.
             and not n.startswith("guest-driver/kernel/")
             and "include/uapi" not in n]
    run = subprocess.run([program, "--dry-run", "--Werror", *files],
                         cwd=root, capture_output=True, text=True)
    bad = sorted({m.group(1) for m in
                  re.finditer(r"^(\S+?):\d+:\d+: error", run.stderr, re.M)})
    return [f"{name}: not formatted: {program} -i {name}" for name in bad]


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[2] not in ("rules", "format"):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    names = tracked(root)
    if not names:
        print("no tracked files: run this in a git checkout")
        return 1
    if sys.argv[2] == "format":
        found = check_format(root, names)
    else:
        found = [f for name in names for f in check_file(root, name)]
    for line in found:
        print(line)
    print(f"{len(names)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
