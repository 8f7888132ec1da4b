#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes headers, packages and tables from the one register source, hw/data.

Writes only what has changed. With --check nothing is written: one line for
each file that differs from its source, and exit status 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.dont_write_bytecode = True

from reggen import emit_c, emit_lua, emit_md, emit_sv  # noqa: E402
from reggen.load import SourceError, load  # noqa: E402
from reggen.model import Description  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python3 hw/util/regtool.py"

# Output below the root of the tree, and what makes its text.
Maker = Callable[[Description, Path], str]
OUTPUTS: dict[str, Maker] = {
    "hw/autogen/prawn_hw.h": lambda d, _: emit_c.header(d, COMMAND),
    "hw/autogen/prawn_names.h": lambda d, _: emit_c.names_header(d, COMMAND),
    "hw/autogen/prawn_hw_pkg.sv": lambda d, _: emit_sv.package(d, COMMAND),
    "hw/autogen/prawn_fields.lua": lambda d, _: emit_lua.table(d, COMMAND),
    "docs/registers.md": lambda d, path: markdown(d, path),
}


def markdown(description: Description, path: Path) -> str:
    """The reference has text of its own: without it there is no output."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError([f"{path.name}: {error.strerror}: {path}"]) from error
    return emit_md.fill(text, description, path.name)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="regtool.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="outputs:\n  " + "\n  ".join(OUTPUTS),
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail if an output differs from its source",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=ROOT / "hw" / "data",
        metavar="DIR",
        help="folder of the source files (default: hw/data)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=ROOT,
        metavar="DIR",
        help="root of the tree that has the outputs (default: this one)",
    )
    return parser.parse_args()


def run(data: Path, root: Path, check: bool) -> int:
    """0: all is well; 1: an output differs (check); 2: the source is wrong."""
    try:
        description = load(data)
        texts = {
            name: make(description, root / name)
            for name, make in OUTPUTS.items()
        }
    except SourceError as error:
        for line in error.lines:
            print(f"regtool: {line}", file=sys.stderr)
        return 2
    drift = 0
    for name, text in texts.items():
        path = root / name
        old = path.read_text(encoding="utf-8") if path.is_file() else None
        if old == text:
            continue
        if check:
            state = "is missing" if old is None else "differs from hw/data"
            print(f"regtool: {name} {state}; run: {COMMAND}", file=sys.stderr)
            drift = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"regtool: wrote {name}")
    return drift


def main() -> int:
    args = arguments()
    return run(args.data, args.root, args.check)


if __name__ == "__main__":
    sys.exit(main())
