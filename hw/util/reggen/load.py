# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the source files.

load() gives a Description, or raises SourceError with one line for each thing
that is wrong: file, item, what. It stops at nothing, so that one run shows
everything.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from .model import (
    OPERANDS,
    SCALARS,
    SPACES,
    BitField,
    Constant,
    Description,
    Enum,
    EnumValue,
    Register,
    Struct,
    StructField,
    Usage,
    Word,
)

FILES = (
    "card.toml",
    "registers.toml",
    "rings.toml",
    "tables.toml",
    "packet.toml",
    "codes.toml",
)

UPPER = re.compile(r"[A-Z][A-Z0-9_]*\Z")
LOWER = re.compile(r"[a-z][a-z0-9_]*\Z")
ACCESS = ("ro", "rw", "wo", "rw1c")
U64_MAX = (1 << 64) - 1


class SourceError(Exception):
    """The source is wrong; lines has one line for each mistake."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class _Loader:
    def __init__(self) -> None:
        self.out = Description()
        self.errors: list[str] = []
        self.file = ""

    def bad(self, item: str, what: str) -> None:
        self.errors.append(f"{self.file}: {item}: {what}")

    # -- pieces of an item -------------------------------------------------

    def keys(
        self, item: str, data: Any, need: dict[str, type], may: dict[str, type]
    ) -> bool:
        """True if data has the keys of need, at most those of may besides."""
        if not isinstance(data, dict):
            self.bad(item, "is not a table")
            return False
        good = True
        for key in need:
            if key not in data:
                self.bad(item, f"has no '{key}'")
                good = False
        for key, value in data.items():
            kind = need.get(key) or may.get(key)
            if kind is None:
                self.bad(item, f"unknown key '{key}'")
                good = False
            elif not isinstance(value, kind) or isinstance(value, bool):
                self.bad(item, f"'{key}' must be of type {kind.__name__}")
                good = False
            elif kind is int and not 0 <= value <= U64_MAX:
                self.bad(item, f"'{key}' is not within 0 and 2^64-1")
                good = False
        return good

    def named(self, item: str, name: str, pattern: re.Pattern[str]) -> bool:
        if pattern.match(name):
            return True
        case = "UPPER_CASE" if pattern is UPPER else "lower_case"
        self.bad(item, f"name '{name}' is not {case}")
        return False

    def bit_fields(
        self, item: str, width: int, data: list[Any]
    ) -> list[BitField]:
        fields: list[BitField] = []
        for raw in data:
            where = f"{item}.{raw.get('name', '?')}" if isinstance(
                raw, dict
            ) else item
            need = {"name": str, "bits": list, "desc": str}
            if not self.keys(where, raw, need, {}):
                continue
            if not self.named(where, raw["name"], UPPER):
                continue
            bits = raw["bits"]
            if len(bits) != 2 or not all(type(b) is int for b in bits):
                self.bad(where, "bits must be [high, low]")
                continue
            high, low = bits
            if low > high:
                self.bad(where, f"bits [{high}, {low}] are not [high, low]")
                continue
            if low < 0 or high >= width:
                self.bad(where, f"bits [{high}, {low}] outside of {width} bits")
                continue
            new = BitField(raw["name"], high, low, raw["desc"])
            for old in fields:
                if old.name == new.name:
                    self.bad(where, "duplicate field name")
                if old.mask & new.mask:
                    self.bad(where, f"overlaps field {old.name}")
            fields.append(new)
        return sorted(fields, key=lambda f: f.low)

    # -- items ------------------------------------------------------------

    def constant(self, raw: Any, spellings: dict[str, str]) -> None:
        item = f"constant {_name(raw)}"
        need = {"name": str, "value": int, "desc": str}
        if not self.keys(item, raw, need, {}):
            return
        if not self.named(item, raw["name"], UPPER):
            return
        if any(c.name == raw["name"] for c in self.out.constants):
            self.bad(item, "duplicate name")
            return
        spelling = spellings.get(raw["name"], str(raw["value"]))
        self.out.constants.append(
            Constant(
                self.file, raw["name"], raw["value"], raw["desc"], spelling
            )
        )

    def enum(self, raw: Any) -> None:
        item = f"enum {_name(raw)}"
        need = {"name": str, "desc": str, "values": list}
        if not self.keys(item, raw, need, {}):
            return
        if not self.named(item, raw["name"], LOWER):
            return
        if any(e.name == raw["name"] for e in self.out.enums):
            self.bad(item, "duplicate name")
            return
        if not raw["values"]:
            self.bad(item, "has no values")
            return
        values: list[EnumValue] = []
        for one in raw["values"]:
            where = f"{item}.{_name(one)}"
            need = {"name": str, "value": int, "desc": str}
            if not self.keys(where, one, need, {}):
                continue
            if not self.named(where, one["name"], UPPER):
                continue
            if one["value"] > 0xFFFF:
                self.bad(where, "value does not fit in 16 bits")
                continue
            for old in values:
                if old.name == one["name"]:
                    self.bad(where, "duplicate name")
                if old.value == one["value"]:
                    self.bad(where, f"same value as {old.name}")
            values.append(EnumValue(one["name"], one["value"], one["desc"]))
        self.out.enums.append(Enum(self.file, raw["name"], raw["desc"], values))

    def register(self, raw: Any) -> None:
        item = f"register {_name(raw)}"
        need = {
            "space": str,
            "name": str,
            "offset": int,
            "width": int,
            "access": str,
            "desc": str,
        }
        may = {"reset": int, "count": int, "fields": list}
        if not self.keys(item, raw, need, may):
            return
        if not self.named(item, raw["name"], UPPER):
            return
        item = f"register {raw['space']}.{raw['name']}"
        if raw["space"] not in SPACES:
            self.bad(item, f"no space '{raw['space']}'")
            return
        width = raw["width"]
        if width not in (32, 64):
            self.bad(item, f"width {width} is neither 32 nor 64")
            return
        if raw["access"] not in ACCESS:
            self.bad(item, f"access '{raw['access']}' is not one of {ACCESS}")
        count = raw.get("count", 1)
        if count < 1:
            self.bad(item, "count is 0")
            return
        reset = raw.get("reset")
        if reset is not None and reset >> width:
            self.bad(item, f"reset value does not fit in {width} bits")
        new = Register(
            file=self.file,
            space=raw["space"],
            name=raw["name"],
            offset=raw["offset"],
            width=width,
            access=raw["access"],
            desc=raw["desc"],
            reset=reset,
            count=count,
            fields=self.bit_fields(item, width, raw.get("fields", [])),
        )
        if new.offset % (width // 8):
            self.bad(item, f"offset {new.offset:#x} is misaligned")
        if new.offset + new.size > SPACES[new.space]:
            self.bad(item, "outside of its space")
        for old in self.out.space(new.space):
            if old.name == new.name:
                self.bad(item, "duplicate name")
            if old.offset == new.offset:
                self.bad(item, f"same offset as {old.name}")
            elif (
                old.offset < new.offset + new.size
                and new.offset < old.offset + old.size
            ):
                self.bad(item, f"overlaps {old.name}")
        self.out.registers.append(new)

    def word(self, raw: Any) -> None:
        item = f"word {_name(raw)}"
        need = {"name": str, "desc": str, "fields": list}
        if not self.keys(item, raw, need, {}):
            return
        if not self.named(item, raw["name"], UPPER):
            return
        if any(w.name == raw["name"] for w in self.out.words):
            self.bad(item, "duplicate name")
            return
        fields = self.bit_fields(item, 64, raw["fields"])
        self.out.words.append(Word(self.file, raw["name"], raw["desc"], fields))

    def struct(self, raw: Any) -> None:
        item = f"struct {_name(raw)}"
        need = {"name": str, "size": int, "desc": str, "fields": list}
        if not self.keys(item, raw, need, {}):
            return
        if not self.named(item, raw["name"], LOWER):
            return
        if any(s.name == raw["name"] for s in self.out.structs):
            self.bad(item, "duplicate name")
            return
        new = Struct(self.file, raw["name"], raw["size"], raw["desc"], [])
        end = 0
        whole = True
        for one in raw["fields"]:
            where = f"{item}.{_name(one)}"
            got = self.struct_field(where, one)
            if got is None:
                whole = False
                continue
            if any(f.name == got.name for f in new.fields):
                self.bad(where, "duplicate name")
            if got.offset % got.align:
                self.bad(where, f"offset {got.offset} is misaligned")
            if whole and got.offset > end:
                self.bad(where, f"hole before it: bytes {end} to {got.offset-1}")
            if whole and got.offset < end:
                self.bad(where, f"overlaps the field before it (ends at {end})")
            end = got.offset + got.size * got.count
            new.align = max(new.align, got.align)
            new.fields.append(got)
        if whole and end != new.size:
            self.bad(item, f"fields end at {end}, but its size is {new.size}")
        if new.size == 0 or new.size % new.align:
            self.bad(item, f"size {new.size} is not a multiple of {new.align}")
        self.out.structs.append(new)

    def struct_field(self, where: str, raw: Any) -> StructField | None:
        need = {"name": str, "type": str, "offset": int, "desc": str}
        if not self.keys(where, raw, need, {"count": int}):
            return None
        if not self.named(where, raw["name"], LOWER):
            return None
        kind = raw["type"]
        if kind in SCALARS:
            size = align = SCALARS[kind]
        else:
            inner = [s for s in self.out.structs if s.name == kind]
            if not inner:
                self.bad(where, f"unknown type '{kind}'")
                return None
            size, align = inner[0].size, inner[0].align
        count = raw.get("count", 1)
        if count < 1:
            self.bad(where, "count is 0")
            return None
        return StructField(
            raw["name"], kind, raw["offset"], count, raw["desc"], size, align
        )

    def usage(self, raw: Any) -> None:
        opcode = raw.get("opcode", "?") if isinstance(raw, dict) else "?"
        item = f"usage {opcode}"
        may = {name: str for name in OPERANDS}
        if not self.keys(item, raw, {"opcode": str}, may):
            return
        if any(u.opcode == opcode for u in self.out.usages):
            self.bad(item, "duplicate opcode")
            return
        operands = {k: raw[k] for k in OPERANDS if k in raw}
        self.out.usages.append(Usage(self.file, opcode, operands))

    # -- files ------------------------------------------------------------

    def read(self, path: Path) -> None:
        self.file = path.name
        try:
            text = path.read_text(encoding="utf-8")
            data = tomllib.loads(text)
        except FileNotFoundError:
            self.errors.append(f"{path.name}: no such file in {path.parent}")
            return
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            self.errors.append(f"{path.name}: {error}")
            return
        spellings = dict(
            re.findall(
                r'^name = "([A-Z0-9_]+)"\nvalue = (0x[0-9a-fA-F]+)', text, re.M
            )
        )
        kinds = {
            "constant": lambda raw: self.constant(raw, spellings),
            "enum": self.enum,
            "register": self.register,
            "word": self.word,
            "struct": self.struct,
            "usage": self.usage,
        }
        for kind, items in data.items():
            if kind not in kinds:
                self.errors.append(f"{self.file}: unknown kind '{kind}'")
                continue
            if not isinstance(items, list):
                self.errors.append(f"{self.file}: '{kind}' must be [[{kind}]]")
                continue
            for raw in items:
                kinds[kind](raw)

    def cross_check(self) -> None:
        """What can only be seen when all files are read."""
        enums = {e.name: {v.name for v in e.values} for e in self.out.enums}
        for usage in self.out.usages:
            if usage.opcode not in enums.get("admin_opcode", set()):
                self.file = usage.file
                self.bad(f"usage {usage.opcode}", "no such admin_opcode")


def _name(raw: Any) -> str:
    if isinstance(raw, dict) and isinstance(raw.get("name"), str):
        return str(raw["name"])
    return "?"


def load(folder: Path) -> Description:
    """Reads all files of folder; raises SourceError."""
    loader = _Loader()
    for name in FILES:
        loader.read(folder / name)
    loader.cross_check()
    if loader.errors:
        raise SourceError(loader.errors)
    return loader.out
