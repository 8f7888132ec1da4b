#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hw/util/regtool.py: what it makes is right, what is wrong it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "hw" / "util" / "regtool.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOL.parent))

from reggen import emit_c, emit_md, emit_sv  # noqa: E402
from reggen.load import SourceError, load  # noqa: E402
from reggen.model import Description  # noqa: E402


def run(*command: object, cwd: Path | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout


class WithCopy(unittest.TestCase):
    """A copy of the sources and outputs, to be spoilt."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.data = self.root / "hw" / "data"
        shutil.copytree(ROOT / "hw" / "data", self.data)
        shutil.copytree(ROOT / "hw" / "autogen", self.root / "hw" / "autogen")
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "docs" / "registers.md", self.root / "docs")

    def tool(self, *extra: str) -> tuple[int, str]:
        return run(
            sys.executable, TOOL, "--root", self.root, "--data", self.data,
            *extra,
        )


# Per case: file, text to replace (None: append), new text, wanted complaint.
BAD: dict[str, tuple[str, str | None, str, str]] = {
    "overlapping registers": (
        "registers.toml", "offset = 0x014", "offset = 0x008",
        "register bar0.STATUS: same offset as FEATURES",
    ),
    "register inside a wider one": (
        "registers.toml", "offset = 0x014", "offset = 0x00c",
        "register bar0.STATUS: overlaps FEATURES",
    ),
    "misaligned register": (
        "registers.toml", "offset = 0x040\n", "offset = 0x044\n",
        "register bar0.ADMIN_BASE: offset 0x44 is misaligned",
    ),
    "register outside of its space": (
        "registers.toml", "offset = 0x21c", "offset = 0x8000",
        "register bar0.FW_TIMER_MS: outside of its space",
    ),
    "duplicate register": (
        "registers.toml", 'name = "ABI"', 'name = "ID"',
        "register bar0.ID: duplicate name",
    ),
    "width": (
        "registers.toml", "offset = 0x000\nwidth = 32",
        "offset = 0x000\nwidth = 16",
        "register bar0.ID: width 16 is neither 32 nor 64",
    ),
    "access": (
        "registers.toml", 'access = "rw1c"', 'access = "w1s"',
        "register bar0.INT_CAUSE: access 'w1s' is not one of",
    ),
    "reset too wide": (
        "registers.toml", "reset = 0x4e575250", "reset = 0x14e575250",
        "register bar0.ID: reset value does not fit in 32 bits",
    ),
    "unknown space": (
        "registers.toml", 'space = "bar0"\nname = "ID"',
        'space = "bar1"\nname = "ID"',
        "register bar1.ID: no space 'bar1'",
    ),
    "field outside of its register": (
        "registers.toml", "bits = [31, 16], desc = \"ABI_MAJOR\"",
        "bits = [32, 16], desc = \"ABI_MAJOR\"",
        "register bar0.ABI.MAJOR: bits [32, 16] outside of 32 bits",
    ),
    "overlapping fields": (
        "registers.toml", "bits = [31, 16], desc = \"ABI_MAJOR\"",
        "bits = [31, 15], desc = \"ABI_MAJOR\"",
        "register bar0.ABI.MAJOR: overlaps field MINOR",
    ),
    "duplicate field": (
        "registers.toml", 'name = "MAJOR"', 'name = "MINOR"',
        "register bar0.ABI.MINOR: duplicate field name",
    ),
    "bits the wrong way round": (
        "tables.toml", "bits = [51, 12]", "bits = [12, 51]",
        "word TABLE_ENTRY.ADDRESS: bits [12, 51] are not [high, low]",
    ),
    "hole in a structure": (
        "rings.toml", '  { name = "rsvd0", type = "u16", offset = 2, desc = "0" },\n',
        "", "struct command.length: hole before it: bytes 2 to 3",
    ),
    "overlap in a structure": (
        "rings.toml", 'name = "length", type = "u32", offset = 4, desc = "Bytes, 0',
        'name = "length", type = "u32", offset = 0, desc = "Bytes, 0',
        "struct command.length: overlaps the field before it",
    ),
    "misaligned field": (
        "packet.toml", 'name = "key", type = "u64", offset = 32',
        'name = "key", type = "u64", offset = 33',
        "struct packet_header.key: offset 33 is misaligned",
    ),
    "structure too short": (
        "packet.toml", 'name = "packet_header"\nsize = 64',
        'name = "packet_header"\nsize = 72',
        "struct packet_header: fields end at 64, but its size is 72",
    ),
    "unknown type": (
        "packet.toml", 'type = "mgmt_header", offset = 0',
        'type = "mgmt_haeder", offset = 0',
        "struct mgmt_import_request.header: unknown type 'mgmt_haeder'",
    ),
    "duplicate field of a structure": (
        "packet.toml", 'name = "gid"', 'name = "uid"',
        "struct mgmt_import_request.uid: duplicate name",
    ),
    "duplicate value": (
        "codes.toml", 'name = "BAD_KEY", value = 33',
        'name = "BAD_KEY", value = 32',
        "enum status.BAD_KEY: same value as BAD_EXPORT",
    ),
    "value too wide": (
        "codes.toml", 'name = "BAD_KEY", value = 33',
        'name = "BAD_KEY", value = 65536',
        "enum status.BAD_KEY: value does not fit in 16 bits",
    ),
    "negative value": (
        "codes.toml", 'name = "BAD_KEY", value = 33',
        'name = "BAD_KEY", value = -1',
        "enum status.BAD_KEY: 'value' is not within 0 and 2^64-1",
    ),
    "duplicate constant": (
        "card.toml", 'name = "BAR2_SIZE"', 'name = "BAR0_SIZE"',
        "constant BAR0_SIZE: duplicate name",
    ),
    "lower-case constant": (
        "card.toml", 'name = "BAR2_SIZE"', 'name = "bar2_size"',
        "constant bar2_size: name 'bar2_size' is not UPPER_CASE",
    ),
    "two items with one C name": (
        "card.toml", 'name = "BAR2_SIZE"', 'name = "BAR0_CTRL"',
        "register bar0.CTRL: makes PRAWN_BAR0_CTRL, "
        "as card.toml: constant BAR0_CTRL does",
    ),
    "missing key": (
        "card.toml", 'desc = "Bytes"', "", "constant PAGE_SIZE: has no 'desc'",
    ),
    "unknown key": (
        "card.toml", 'desc = "Bytes"', 'desc = "Bytes"\ndecs = ""',
        "constant PAGE_SIZE: unknown key 'decs'",
    ),
    "wrong type": (
        "card.toml", "value = 4096\ndesc = \"Bytes\"",
        "value = \"4096\"\ndesc = \"Bytes\"",
        "constant PAGE_SIZE: 'value' must be of type int",
    ),
    "usage of no opcode": (
        "rings.toml", 'opcode = "OPT_CLEAR"', 'opcode = "OPT_CLAER"',
        "usage OPT_CLAER: no such admin_opcode",
    ),
    "unknown operand": (
        "rings.toml", 'opcode = "OPT_CLEAR"', 'opcode = "OPT_CLEAR"\ng = "x"',
        "usage OPT_CLEAR: unknown key 'g'",
    ),
    "unknown kind": (
        "tables.toml", None, "\n[[wrod]]\nname = \"X\"\n", "unknown kind 'wrod'",
    ),
    "not TOML": ("tables.toml", None, "\n[[word\n", "tables.toml: "),
}


class Refused(WithCopy):
    def test_bad_sources(self) -> None:
        for case, (file, old, new, complaint) in BAD.items():
            with self.subTest(case):
                path = self.data / file
                good = path.read_text(encoding="utf-8")
                if old is None:
                    path.write_text(good + new, encoding="utf-8")
                else:
                    self.assertIn(old, good, "the case has lost its target")
                    path.write_text(
                        good.replace(old, new, 1), encoding="utf-8"
                    )
                status, output = self.tool("--check")
                path.write_text(good, encoding="utf-8")
                self.assertEqual(status, 2, output)
                self.assertIn(complaint, output)
                for line in output.splitlines():
                    self.assertTrue(line.startswith("regtool: "), line)
                    self.assertRegex(line, r"\w+\.toml: ")

    def test_missing_file(self) -> None:
        (self.data / "packet.toml").unlink()
        status, output = self.tool()
        self.assertEqual(status, 2)
        self.assertIn("regtool: packet.toml: no such file", output)

    def test_all_mistakes_in_one_run(self) -> None:
        path = self.data / "card.toml"
        text = path.read_text(encoding="utf-8")
        text = text.replace('"BAR0_SIZE"', '"bar0"').replace(
            '"BAR2_SIZE"', '"bar2"'
        )
        path.write_text(text, encoding="utf-8")
        with self.assertRaises(SourceError) as caught:
            load(self.data)
        self.assertEqual(len(caught.exception.lines), 2)

    def test_bad_source_writes_nothing(self) -> None:
        before = (self.root / "hw/autogen/prawn_hw.h").read_bytes()
        (self.data / "tables.toml").write_text("[[word", encoding="utf-8")
        status, _ = self.tool()
        self.assertEqual(status, 2)
        after = (self.root / "hw/autogen/prawn_hw.h").read_bytes()
        self.assertEqual(before, after)


class Drift(WithCopy):
    def test_clean(self) -> None:
        self.assertEqual(self.tool("--check"), (0, ""))
        self.assertEqual(self.tool(), (0, ""))

    def test_each_output(self) -> None:
        outputs = [*sorted(self.root.glob("hw/autogen/*")),
                   self.root / "docs/registers.md"]
        self.assertEqual(len(outputs), 5)
        for path in outputs:
            name = str(path.relative_to(self.root))
            with self.subTest(name):
                good = path.read_text(encoding="utf-8")
                # Not what is written by hand: nobody makes that again.
                word = "| `BAD_KEY` |" if path.suffix == ".md" else "BAD_KEY"
                spoilt = good.replace(word, word.replace("Y", "X")).replace(
                    "BadKey", "BadKex"
                )
                self.assertNotEqual(good, spoilt)
                path.write_text(spoilt, encoding="utf-8")
                status, output = self.tool("--check")
                self.assertEqual(status, 1)
                self.assertEqual(len(output.splitlines()), 1)
                self.assertIn(f"{name} differs from hw/data", output)
                self.assertEqual(path.read_text(encoding="utf-8"), spoilt)
                self.assertEqual(self.tool()[0], 0)
                self.assertEqual(path.read_text(encoding="utf-8"), good)

    def test_source_change_is_drift_of_all(self) -> None:
        path = self.data / "codes.toml"
        text = path.read_text(encoding="utf-8").replace("BAD_KEY", "BAD_KEX")
        path.write_text(text, encoding="utf-8")
        status, output = self.tool("--check")
        self.assertEqual(status, 1)
        self.assertEqual(len(output.splitlines()), 5)

    def test_missing_output(self) -> None:
        (self.root / "hw/autogen/prawn_hw.h").unlink()
        status, output = self.tool("--check")
        self.assertEqual(status, 1)
        self.assertIn("hw/autogen/prawn_hw.h is missing", output)


class Markers(unittest.TestCase):
    def setUp(self) -> None:
        self.source: Description = load(ROOT / "hw" / "data")
        path = ROOT / "docs" / "registers.md"
        self.text = path.read_text(encoding="utf-8")

    def refused(self, text: str) -> str:
        with self.assertRaises(SourceError) as caught:
            emit_md.fill(text, self.source, "registers.md")
        return "\n".join(caught.exception.lines)

    def test_hand_written_text_stays(self) -> None:
        text = self.text.replace("## Codes", "## Codes of all kinds")
        self.assertEqual(
            emit_md.fill(text, self.source, "registers.md"), text
        )

    def test_missing(self) -> None:
        text = self.text.replace("regtool status -->", "-->")
        self.assertIn("marker status: wanted once, found 0", self.refused(text))

    def test_twice(self) -> None:
        text = self.text + (
            "<!-- BEGIN regtool status -->\n<!-- END regtool status -->\n"
        )
        self.assertIn("marker status: wanted once, found 2", self.refused(text))

    def test_unknown(self) -> None:
        text = self.text + (
            "<!-- BEGIN regtool nosuch -->\n<!-- END regtool nosuch -->\n"
        )
        self.assertIn("marker nosuch: no such table", self.refused(text))

    def test_without_end(self) -> None:
        text = self.text + "<!-- BEGIN regtool status -->\n"
        self.assertIn("has no partner", self.refused(text))


class Languages(WithCopy):
    """The outputs mean the same to compilers as to the source."""

    def setUp(self) -> None:
        super().setUp()
        self.source = load(self.data)

    def program(self) -> str:
        """Asks a compiler about every name of the header."""
        lines = ['#include "prawn_names.h"', "#include <string.h>",
                 "int main(void) {", "    int bad = 0;"]
        for c in self.source.constants:
            lines.append(f"    bad += PRAWN_{c.name} != {c.value}ULL;")
        for r in self.source.registers:
            name = f"PRAWN_{r.space.upper()}_{r.name}"
            lines.append(f"    bad += {name} != {r.offset};")
            for f in r.fields:
                name = f"{r.name}_{f.name}"
                lines.append(f"    bad += PRAWN_{name}_MASK != {f.mask}ULL;")
                lines.append(f"    bad += PRAWN_{name}_SHIFT != {f.low};")
                top = (1 << f.width) - 1
                lines.append(
                    f"    bad += PRAWN_FIELD_GET({name}, "
                    f"PRAWN_FIELD_PUT({name}, {top}ULL)) != {top}ULL;"
                )
        for e in self.source.enums:
            for v in e.values:
                name = f"PRAWN_{e.name.upper()}_{v.name}"
                lines.append(
                    f'    bad += strcmp(prawn_{e.name}_name({name}), '
                    f'"{v.name}") != 0;'
                )
            lines.append(
                f'    bad += strcmp(prawn_{e.name}_name(54321), "?") != 0;'
            )
        for space in ("bar0", "doorbell"):
            for i, r in enumerate(
                sorted(self.source.space(space), key=lambda r: r.offset)
            ):
                lines.append(
                    f"    bad += prawn_{space}_registers[{i}].offset "
                    f"!= {r.offset};"
                )
            count = len(self.source.space(space))
            lines.append(
                f"    bad += PRAWN_{space.upper()}_REGISTERS != {count};"
            )
        for s in self.source.structs:
            tag = f"struct prawn_{s.name}"
            lines.append(f"    bad += sizeof({tag}) != {s.size};")
            for f in s.fields:
                lines.append(
                    f"    bad += offsetof({tag}, {f.name}) != {f.offset};"
                )
        lines += ["    return bad != 0;", "}", ""]
        return "\n".join(lines)

    def test_c_and_cpp(self) -> None:
        flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
                 "-Werror", "-Wno-overlength-strings", "-I",
                 ROOT / "hw" / "autogen"]
        for compiler, standard, suffix in (
            ("cc", "c11", "c"), ("cc", "gnu11", "c"), ("c++", "c++17", "cpp"),
        ):
            with self.subTest(standard):
                file = self.root / f"all.{suffix}"
                file.write_text(self.program(), encoding="utf-8")
                binary = self.root / "all"
                status, output = run(compiler, f"-std={standard}", *flags,
                                     file, "-o", binary)
                self.assertEqual(status, 0, output)
                self.assertEqual(run(binary), (0, ""))

    def test_wrong_layout_does_not_compile(self) -> None:
        header = emit_c.header(self.source, "test")
        broken = header.replace("prawn_le16 rsvd0;", "prawn_le64 rsvd0;", 1)
        self.assertNotEqual(header, broken)
        (self.root / "broken.h").write_text(broken, encoding="utf-8")
        file = self.root / "broken.c"
        file.write_text('#include "broken.h"\n', encoding="utf-8")
        status, output = run("cc", "-std=c11", "-c", file, "-o", "/dev/null",
                             cwd=self.root)
        self.assertNotEqual(status, 0)
        self.assertIn("static assertion failed", output)

    def test_systemverilog(self) -> None:
        """Lint, sizes and the place of every field, asked of Verilator."""
        if shutil.which("verilator") is None:
            self.fail("verilator is missing; run ./prawn setup")
        package = ROOT / "hw" / "autogen" / "prawn_hw_pkg.sv"
        lint = ["verilator", "--lint-only", "-Wall"]
        self.assertEqual(run(*lint, package), (0, ""))
        checks: list[str] = []
        for s in self.source.structs:
            kind = f"prawn_hw_pkg::{s.name}_t"
            checks.append(f"$bits({kind}) != {s.size * 8}")
        values: list[str] = []
        for number, s in enumerate(self.source.structs):
            kind = f"prawn_hw_pkg::{s.name}_t"
            for f in s.fields:
                one = f"V{number}_{emit_sv.camel(f.name)}"
                bits = f.size * f.count * 8
                pattern = ((1 << bits) - 1) << f.offset * 8
                values.append(
                    f"  localparam {kind} {one} = "
                    f"{kind}'({s.size * 8}'h{pattern:x});"
                )
                member = emit_sv.member(f.name)
                checks.append(f"{one}.{member} != '1")
        for r in self.source.registers:
            if r.fields:
                kind = f"prawn_hw_pkg::{r.space}_{r.name.lower()}_t"
                checks.append(f"$bits({kind}) != {r.width}")
        for w in self.source.words:
            checks.append(f"$bits(prawn_hw_pkg::{w.name.lower()}_t) != 64")
        for e in self.source.enums:
            for v in e.values:
                name = emit_sv.camel(e.name) + emit_sv.camel(v.name)
                checks.append(f"32'(prawn_hw_pkg::{name}) != {v.value}")
        body = "\n".join(
            f"  if ({c}) $error(\"wrong: {c}\");" for c in checks
        )
        top = self.root / "top.sv"
        values_text = "\n".join(values)
        top.write_text(
            f"module top;\n{values_text}\n{body}\nendmodule\n", encoding="utf-8"
        )
        status, output = run(*lint, "-Wno-WIDTH", "-Wno-UNUSED", package, top,
                             "--top-module", "top")
        self.assertEqual(status, 0, output[:2000])
        # The question itself must be able to fail.
        top.write_text(
            "module top;\n  if ($bits(prawn_hw_pkg::command_t) == 512) "
            '$error("seen");\nendmodule\n', encoding="utf-8"
        )
        status, output = run(*lint, package, top, "--top-module", "top")
        self.assertNotEqual(status, 0)
        self.assertIn("seen", output)

    def test_name_of_systemverilog_taken_twice(self) -> None:
        path = self.data / "card.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace('"PAGE_SIZE"', '"STATUS_BUSY_"'), encoding="utf-8"
        )
        with self.assertRaises(SourceError) as caught:
            emit_sv.package(load(self.data), "test")
        self.assertIn("enum status.BUSY: makes StatusBusy",
                      "\n".join(caught.exception.lines))


class CommandLine(unittest.TestCase):
    def test_help(self) -> None:
        status, output = run(sys.executable, TOOL, "--help")
        self.assertEqual(status, 0)
        for word in ("--check", "--data", "--root", "prawn_hw.h"):
            self.assertIn(word, output)

    def test_unknown_option(self) -> None:
        status, output = run(sys.executable, TOOL, "--chekc")
        self.assertEqual(status, 2)
        self.assertIn("--chekc", output)


if __name__ == "__main__":
    unittest.main()
