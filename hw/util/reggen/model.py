# SPDX-License-Identifier: Apache-2.0
"""What the source files describe, as plain records.

Every record keeps the file it came from, so that a complaint can name it.
Nothing here checks anything; see load.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Places where registers live: name, bytes that registers may use.
SPACES: dict[str, int] = {"bar0": 0x8000, "doorbell": 0x1000}

SCALARS: dict[str, int] = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}

# Operands of an admin command, in the order of its structure.
OPERANDS = ("context", "index", "a", "b", "c", "d", "e", "f")


@dataclass
class Constant:
    file: str
    name: str
    value: int
    desc: str
    spelling: str  # as written in the source: 0x... or decimal


@dataclass
class EnumValue:
    name: str
    value: int
    desc: str


@dataclass
class Enum:
    file: str
    name: str
    desc: str
    values: list[EnumValue]


@dataclass
class BitField:
    name: str
    high: int
    low: int
    desc: str

    @property
    def width(self) -> int:
        return self.high - self.low + 1

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.low


@dataclass
class Register:
    file: str
    space: str
    name: str
    offset: int
    width: int
    access: str
    desc: str
    reset: int | None
    count: int
    fields: list[BitField]

    @property
    def size(self) -> int:
        return self.width // 8 * self.count


@dataclass
class Word:
    file: str
    name: str
    desc: str
    fields: list[BitField]
    width: int = 64


@dataclass
class StructField:
    name: str
    type: str
    offset: int
    count: int
    desc: str
    size: int  # of one element, bytes
    align: int


@dataclass
class Struct:
    file: str
    name: str
    size: int
    desc: str
    fields: list[StructField]
    align: int = 1


@dataclass
class Usage:
    file: str
    opcode: str
    operands: dict[str, str]


@dataclass
class Description:
    """All of the register source, in the order of the files."""

    constants: list[Constant] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    structs: list[Struct] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)

    def constant(self, name: str) -> int:
        return next(c.value for c in self.constants if c.name == name)

    def enum(self, name: str) -> Enum:
        return next(e for e in self.enums if e.name == name)

    def struct(self, name: str) -> Struct:
        return next(s for s in self.structs if s.name == name)

    def space(self, name: str) -> list[Register]:
        return [r for r in self.registers if r.space == name]


def enum_of(desc: str) -> str | None:
    """The enumeration that a field's description names ("enum status")."""
    found = re.search(r"\benum ([a-z][a-z0-9_]*)", desc)
    return found.group(1) if found else None
