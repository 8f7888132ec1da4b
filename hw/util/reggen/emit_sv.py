# SPDX-License-Identifier: Apache-2.0
"""SystemVerilog: prawn_hw_pkg.sv."""

from __future__ import annotations

from .load import SourceError
from .model import (
    SCALARS,
    BitField,
    Constant,
    Description,
    Enum,
    Struct,
    enum_of,
)

HEAD = """\
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// Made by '{command}' from hw/data; do not edit.
//
// The card for SystemVerilog. In every packed structure the byte that comes
// first in memory or on the wire is the least significant one, so that a
// little-endian word of memory can be assigned as it is: members are declared
// from the last byte to the first. A name that the language reserves has an
// underscore at its end (type_, time_).

/* verilator lint_off UNUSEDPARAM */
package prawn_hw_pkg;
"""

# Reserved words of IEEE 1800 that a field of ours might be called.
KEYWORDS = frozenset(
    """
    accept_on alias and assert assign assume automatic before begin bind bins
    bit break buf byte case cell chandle checker class clocking config const
    constraint context continue cover cross deassign default design disable
    dist do edge else end enum event expect export extends extern final first
    for force foreach forever fork function generate genvar global if iff
    implements implies import in initial inout input inside instance int
    integer interface intersect join large let library local logic longint
    macromodule matches medium modport module nand new nexttime nor not null
    or output package packed parameter primitive priority program property
    protected pull pure rand randc ref reg reject_on release repeat restrict
    return scalared sequence shortint signed small solve static string strong
    struct super supply0 supply1 table tagged task this throughout time tran
    tri type typedef union unique unsigned until use uwire var vectored
    virtual void wait weak while wildcard wire with within wor xnor xor
    """.split()
)


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.lower().split("_"))


def member(name: str) -> str:
    name = name.lower()
    return f"{name}_" if name in KEYWORDS else name


def _range(width: int) -> str:
    return f"logic [{width - 1}:0]" if width > 1 else "logic"


class _Package:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.origin: dict[str, str] = {}
        self.errors: list[str] = []

    def claim(self, name: str, origin: str) -> None:
        if name in self.origin:
            self.errors.append(
                f"{origin}: makes {name}, as {self.origin[name]} does"
            )
        self.origin[name] = origin

    def note(self, text: str, indent: str = "  ") -> None:
        """Text as comment lines of at most 100 columns."""
        line = f"{indent}//"
        for word in text.split():
            if len(line) + 1 + len(word) > 100:
                self.lines.append(line)
                line = f"{indent}//"
            line += f" {word}"
        self.lines.append(line)

    def commented(self, line: str, text: str) -> None:
        """A line with its comment beside it, or above where it is long."""
        beside = f"{line:<44} // {text}"
        if len(beside) > 100:
            self.note(text, "    ")
            beside = line
        self.lines.append(beside)

    def title(self, text: str) -> None:
        self.lines.append("")
        self.note(text)

    def parameter(self, name: str, kind: str, value: str, origin: str) -> None:
        self.claim(name, origin)
        self.lines.append(f"  parameter {kind} {name} = {value};")

    # -- items ------------------------------------------------------------

    def constant(self, c: Constant) -> None:
        origin = f"{c.file}: constant {c.name}"
        if c.value > 0xFFFFFFFF:
            kind, value = "logic [63:0]", f"64'h{c.value:x}"
        elif c.spelling.startswith("0x"):
            kind, value = "int unsigned", f"32'h{c.value:x}"
        else:
            kind, value = "int unsigned", str(c.value)
        self.note(c.desc)
        self.parameter(camel(c.name), kind, value, origin)

    def enum(self, e: Enum, width: int) -> None:
        self.title(e.desc)
        self.lines.append(f"  typedef enum {_range(width)} {{")
        for i, v in enumerate(e.values):
            name = f"{camel(e.name)}{camel(v.name)}"
            self.claim(name, f"{e.file}: enum {e.name}.{v.name}")
            comma = "," if i + 1 < len(e.values) else ""
            self.commented(f"    {name} = {width}'d{v.value}{comma}", v.desc)
        self.claim(f"{e.name}_e", f"{e.file}: enum {e.name}")
        self.lines.append(f"  }} {e.name}_e;")

    def bits(
        self, name: str, width: int, fields: list[BitField], origin: str
    ) -> None:
        """A packed structure of bit fields, gaps named."""
        self.claim(name, origin)
        self.lines.append("  typedef struct packed {")
        gap = 0
        top = width

        def fill(high: int) -> None:
            nonlocal gap, top
            if top > high:
                self.lines.append(f"    {_range(top - high)} rsvd{gap};")
                gap += 1

        for f in sorted(fields, key=lambda f: -f.high):
            fill(f.high + 1)
            self.commented(f"    {_range(f.width)} {member(f.name)};", f.desc)
            top = f.low
        fill(0)
        self.lines.append(f"  }} {name};")

    def struct(self, s: Struct) -> None:
        self.title(f"{s.desc} {s.size} bytes.")
        self.claim(f"{s.name}_t", f"{s.file}: struct {s.name}")
        self.lines.append("  typedef struct packed {")
        for f in reversed(s.fields):
            array = f"[{f.count - 1}:0]" if f.count > 1 else ""
            if f.type in SCALARS:
                kind = f"logic {array}[{f.size * 8 - 1}:0]"
            else:
                kind = f"{f.type}_t {array}".rstrip()
            self.commented(f"    {kind} {member(f.name)};",
                           f"{f.offset}: {f.desc}".rstrip(": "))
        self.lines.append(f"  }} {s.name}_t;")


def enum_width(d: Description, e: Enum) -> int:
    """As wide as the structure fields that hold it, else just wide enough."""
    widths = [
        f.size * 8
        for s in d.structs
        for f in s.fields
        if enum_of(f.desc) == e.name
    ]
    need = max(1, max(v.value for v in e.values).bit_length())
    return max(widths, default=need)


def package(d: Description, command: str) -> str:
    """prawn_hw_pkg.sv; raises SourceError if two items make one name."""
    p = _Package()
    for file in dict.fromkeys(c.file for c in d.constants):
        p.title(f"Constants of {file}")
        for c in d.constants:
            if c.file == file:
                p.constant(c)
    for e in d.enums:
        p.enum(e, enum_width(d, e))
    for space, width in (("bar0", 20), ("doorbell", 12)):
        p.title(f"Registers: byte offsets in {space}")
        for r in d.space(space):
            origin = f"{r.file}: register {r.space}.{r.name}"
            name = f"{camel(space)}{camel(r.name)}"
            p.note(f"{r.access} {r.width}: {r.desc}")
            p.parameter(f"{name}Offset", f"logic [{width - 1}:0]",
                        f"{width}'h{r.offset:03x}", origin)
            if r.reset is not None:
                p.parameter(f"{name}Reset", f"logic [{r.width - 1}:0]",
                            f"{r.width}'h{r.reset:x}", origin)
        for r in d.space(space):
            if r.fields:
                origin = f"{r.file}: register {r.space}.{r.name}"
                p.title(f"{space} {r.name}: {r.desc}")
                p.bits(f"{space}_{r.name.lower()}_t", r.width, r.fields, origin)
    for w in d.words:
        p.title(w.desc)
        p.bits(f"{w.name.lower()}_t", w.width, w.fields,
               f"{w.file}: word {w.name}")
    for s in d.structs:
        p.struct(s)
    if p.errors:
        raise SourceError(p.errors)
    body = "\n".join(p.lines)
    return f"{HEAD.format(command=command)}{body}\n\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n"
