# SPDX-License-Identifier: Apache-2.0
"""Markdown: the tables inside docs/registers.md.

The text around them is written by hand. A table lives between the lines
<!-- BEGIN regtool NAME --> and <!-- END regtool NAME -->.
"""

from __future__ import annotations

import re

from .load import SourceError
from .model import OPERANDS, BitField, Description, Register, Struct

MARK = re.compile(
    r"^<!-- BEGIN regtool (?P<name>[a-z0-9_-]+) -->\n"
    r"(?P<body>.*?)"
    r"^<!-- END regtool (?P=name) -->$",
    re.M | re.S,
)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in rows]
    return out


def _bits(f: BitField) -> str:
    return f"{f.high}:{f.low}" if f.width > 1 else str(f.low)


def _field_table(fields: list[BitField]) -> list[str]:
    rows = [[_bits(f), f"`{f.name}`", f.desc]
            for f in sorted(fields, key=lambda f: -f.high)]
    return _table(["bits", "field", "meaning"], rows)


def constants(d: Description, files: tuple[str, ...]) -> list[str]:
    rows = [[f"`{c.name}`", c.spelling, c.desc]
            for c in d.constants if c.file in files]
    return _table(["constant", "value", "meaning"], rows)


def _offset(r: Register) -> str:
    if r.count == 1:
        return f"`0x{r.offset:03x}`"
    return f"`0x{r.offset:03x}` to `0x{r.offset + r.size - r.width // 8:03x}`"


def registers(d: Description, space: str) -> list[str]:
    ordered = sorted(d.space(space), key=lambda r: r.offset)
    rows = []
    for r in ordered:
        reset = "" if r.reset is None else f"`0x{r.reset:x}`"
        width = str(r.width) if r.count == 1 else f"{r.count} × {r.width}"
        rows.append([_offset(r), f"`{r.name}`", width, r.access, reset, r.desc])
    out = _table(
        ["offset", "register", "bits", "access", "reset", "meaning"], rows
    )
    for r in ordered:
        if r.fields:
            out += ["", f"**{r.name}** (`0x{r.offset:03x}`): {r.desc}", ""]
            out += _field_table(r.fields)
    return out


def words(d: Description) -> list[str]:
    out: list[str] = []
    for w in d.words:
        out += ([""] if out else []) + [f"**{w.name}**: {w.desc}", ""]
        out += _field_table(w.fields)
    return out


def _struct(s: Struct) -> list[str]:
    out = [f"**{s.name}** ({s.size} bytes): {s.desc}", ""]
    rows = []
    for f in s.fields:
        kind = f.type if f.count == 1 else f"{f.type}[{f.count}]"
        rows.append([str(f.offset), f"`{f.name}`", kind, f.desc])
    return out + _table(["byte", "field", "type", "meaning"], rows)


def structs(d: Description, names: tuple[str, ...]) -> list[str]:
    out: list[str] = []
    for name in names:
        out += ([""] if out else []) + _struct(d.struct(name))
    return out


def usages(d: Description) -> list[str]:
    known = {u.opcode: u for u in d.usages}
    return _table(
        ["opcode", *(f"`{o}`" for o in OPERANDS)],
        [
            [f"`{v.name}`",
             *(known[v.name].operands.get(o, "") if v.name in known else ""
               for o in OPERANDS)]
            for v in d.enum("admin_opcode").values
        ],
    )


def enums(d: Description, names: tuple[str, ...]) -> list[str]:
    out: list[str] = []
    for name in names:
        e = d.enum(name)
        out += ([""] if out else []) + [f"**{e.name}**: {e.desc}", ""]
        out += _table(
            ["value", "name", "meaning"],
            [[str(v.value), f"`{v.name}`", v.desc] for v in e.values],
        )
    return out


def blocks(d: Description) -> dict[str, list[str]]:
    """Every table, by the name of its markers."""
    placed = ("slot_kind", "packet_type", "mgmt_type", "notification_type",
              "event_type", "opcode", "admin_opcode", "status", "utlb_mode")
    others = [e.name for e in d.enums if e.name not in placed]
    rings = ("command", "completion", "notification", "admin_command",
             "admin_ack", "kernel_event")
    wire = tuple(s.name for s in d.structs if s.file == "packet.toml")
    return {
        "card": constants(d, ("card.toml",)),
        "bar0": registers(d, "bar0"),
        "doorbell": registers(d, "doorbell"),
        "ring-constants": constants(d, ("rings.toml",)),
        "context-rings": structs(d, rings[:3]),
        "opcode": enums(d, ("opcode", "notification_type")),
        "admin-rings": structs(d, rings[3:]),
        "admin-opcode": enums(d, ("admin_opcode", "event_type")),
        "admin-usage": usages(d),
        "tables": words(d),
        "packet-constants": constants(d, ("packet.toml",)),
        "packet": structs(d, wire[:1]),
        "packet-type": enums(d, ("packet_type",)),
        "mgmt": structs(d, wire[1:]),
        "mgmt-type": enums(d, ("mgmt_type",)),
        "status": enums(d, ("status",)),
        "modes": enums(d, ("slot_kind", "utlb_mode", *others)),
    }


def fill(text: str, d: Description, file: str) -> str:
    """The hand-written text with its tables renewed; raises SourceError."""
    tables = blocks(d)
    errors: list[str] = []
    seen: list[str] = []

    def renew(match: re.Match[str]) -> str:
        name = match["name"]
        seen.append(name)
        if name not in tables:
            errors.append(f"{file}: marker {name}: no such table")
            return match[0]
        body = "\n".join(tables[name])
        return (f"<!-- BEGIN regtool {name} -->\n\n{body}\n\n"
                f"<!-- END regtool {name} -->")

    text = MARK.sub(renew, text)
    for name in tables:
        if seen.count(name) != 1:
            errors.append(
                f"{file}: marker {name}: wanted once, found {seen.count(name)}"
            )
    marks = len(re.findall(r"^<!-- (?:BEGIN|END) regtool ", text, re.M))
    if marks != 2 * len(seen):
        errors.append(f"{file}: a BEGIN or END marker has no partner")
    if errors:
        raise SourceError(errors)
    return text
