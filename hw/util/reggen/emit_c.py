# SPDX-License-Identifier: Apache-2.0
"""C: prawn_hw.h (everybody) and prawn_names.h (user space and model)."""

from __future__ import annotations

from .load import SourceError
from .model import BitField, Description, Register, Struct

LICENCE = "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\n"
INT_MAX = 0x7FFFFFFF

PREAMBLE = """\
#ifndef PRAWN_HW_H
#define PRAWN_HW_H

/*
 * The card as its driver, library, firmware and model see it. Little-endian.
 * PRAWN_BAR0_x and PRAWN_DOORBELL_x are byte offsets of registers;
 * PRAWN_x_y_MASK and _SHIFT describe field y of register or word x, in place.
 */

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
typedef __u8 prawn_u8;
typedef __le16 prawn_le16;
typedef __le32 prawn_le32;
typedef __le64 prawn_le64;
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t prawn_u8;
typedef uint16_t prawn_le16;
typedef uint32_t prawn_le32;
typedef uint64_t prawn_le64;
#endif

#if defined(__KERNEL__) || defined(__cplusplus)
#define PRAWN_ASSERT(condition, text) static_assert(condition, text)
#else
#define PRAWN_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* Field NAME (without PRAWN_) out of a word; a word with only that field. */
#define PRAWN_FIELD_GET(NAME, word) \\
\t(((word) & PRAWN_##NAME##_MASK) >> PRAWN_##NAME##_SHIFT)
#define PRAWN_FIELD_PUT(NAME, value) \\
\t((((PRAWN_##NAME##_MASK & 0) | (value)) << PRAWN_##NAME##_SHIFT) & \\
\t PRAWN_##NAME##_MASK)
"""

C_TYPES = {
    "u8": "prawn_u8",
    "u16": "prawn_le16",
    "u32": "prawn_le32",
    "u64": "prawn_le64",
}


class _Names:
    """Macro names, each of which may be made only once."""

    def __init__(self) -> None:
        self.origin: dict[str, str] = {}
        self.errors: list[str] = []
        self.lines: list[str] = []

    def define(self, name: str, value: str, desc: str, origin: str) -> None:
        name = f"PRAWN_{name}"
        if name in self.origin:
            self.errors.append(
                f"{origin}: makes {name}, as {self.origin[name]} does"
            )
        self.origin[name] = origin
        line = f"#define {name:<39} {value}"
        if desc:
            line = f"{line:<63} /* {_comment(desc)} */"
        self.lines.append(line)


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *")


def _block(text: str) -> list[str]:
    return ["", f"/* {_comment(text)} */"]


def _literal(value: int, spelling: str) -> str:
    return f"{spelling}ULL" if value > INT_MAX else spelling


def _fields(
    names: _Names, owner: str, width: int, fields: list[BitField], origin: str
) -> None:
    suffix = "ULL" if width == 64 else "U"
    for f in fields:
        where = f"{origin}.{f.name}"
        mask = f"0x{f.mask:0{width // 4}x}{suffix}"
        names.define(f"{owner}_{f.name}_MASK", mask, f.desc, where)
        names.define(f"{owner}_{f.name}_SHIFT", str(f.low), "", where)


def _register(names: _Names, r: Register) -> None:
    origin = f"{r.file}: register {r.space}.{r.name}"
    full = f"{r.space.upper()}_{r.name}"
    names.define(full, f"0x{r.offset:03x}", f"{r.access} {r.width}: {r.desc}",
                 origin)
    if r.count > 1:
        names.define(f"{full}_COUNT", str(r.count), "", origin)
    if r.reset is not None:
        suffix = "ULL" if r.width == 64 else "U"
        value = f"0x{r.reset:0{r.width // 4}x}{suffix}"
        names.define(f"{full}_RESET", value, "", origin)
    _fields(names, r.name, r.width, r.fields, origin)


def _struct(s: Struct) -> list[str]:
    lines = _block(s.desc)
    lines.append(f"struct prawn_{s.name} {{")
    for f in s.fields:
        kind = C_TYPES.get(f.type, f"struct prawn_{f.type}")
        array = f"[{f.count}]" if f.count > 1 else ""
        line = f"\t{kind} {f.name}{array};"
        if f.desc:
            line = f"{line:<40} /* {_comment(f.desc)} */"
        lines.append(line)
    lines.append("};")
    tag = f"struct prawn_{s.name}"
    lines.append(f'PRAWN_ASSERT(sizeof({tag}) == {s.size}, "size");')
    for f in s.fields:
        lines.append(
            f"PRAWN_ASSERT(offsetof({tag}, {f.name}) == {f.offset},"
            f' "{f.name}");'
        )
    return lines


def _banner(command: str) -> str:
    return f"/* Made by '{command}' from hw/data; do not edit. */\n\n"


def header(d: Description, command: str) -> str:
    """prawn_hw.h; raises SourceError if two items make the same name."""
    names = _Names()
    out = names.lines

    files = list(dict.fromkeys(c.file for c in d.constants))
    for file in files:
        out += _block(f"Constants of {file}")
        for c in d.constants:
            if c.file == file:
                names.define(c.name, _literal(c.value, c.spelling), c.desc,
                             f"{c.file}: constant {c.name}")
    for e in d.enums:
        out += _block(f"enum {e.name}: {e.desc}")
        for v in e.values:
            names.define(f"{e.name.upper()}_{v.name}", str(v.value), v.desc,
                         f"{e.file}: enum {e.name}.{v.name}")
    titles = {"bar0": "Registers of BAR 0",
              "doorbell": "Registers of a doorbell page (BAR 2)"}
    for space, title in titles.items():
        out += _block(title)
        for r in d.space(space):
            _register(names, r)
    for w in d.words:
        out += _block(f"{w.name}: {w.desc}")
        _fields(names, w.name, w.width, w.fields, f"{w.file}: word {w.name}")
    for s in d.structs:
        out += _struct(s)
    if names.errors:
        raise SourceError(names.errors)
    body = "\n".join(out)
    return f"{LICENCE}{_banner(command)}{PREAMBLE}{body}\n\n#endif\n"


NAMES_PREAMBLE = """\
#ifndef PRAWN_NAMES_H
#define PRAWN_NAMES_H

/*
 * Names of codes and registers, for people. For user space and the model:
 * the kernel module does not include this.
 */

#include "prawn_hw.h"

struct prawn_register_info {
    const char* name;
    uint32_t offset;
    uint32_t width;     /* bits */
    uint32_t count;     /* consecutive registers of that width */
    uint32_t readable;  /* 0 or 1 */
    uint32_t writable;  /* 0 or 1 */
    uint64_t reset;     /* 0 where the source names none */
};
"""


def names_header(d: Description, command: str) -> str:
    """prawn_names.h"""
    out: list[str] = []
    for e in d.enums:
        out += ["", f"/* Name of a value of enum {e.name}; \"?\" if none. */"]
        out.append(
            f"static inline const char* prawn_{e.name}_name(unsigned value) {{"
        )
        out.append("    switch (value) {")
        for v in e.values:
            out.append(f"        case {v.value}:")
            out.append(f'            return "{v.name}";')
        out += ["        default:", '            return "?";', "    }", "}"]
    for space in ("bar0", "doorbell"):
        registers = sorted(d.space(space), key=lambda r: r.offset)
        upper = space.upper()
        out += ["", f"#define PRAWN_{upper}_REGISTERS {len(registers)}"]
        out += ["/* By rising offset. */"]
        out.append(
            "static const struct prawn_register_info "
            f"prawn_{space}_registers[] = {{"
        )
        for r in registers:
            read = int(r.access != "wo")
            write = int(r.access != "ro")
            out.append(
                f'    {{"{r.name}", 0x{r.offset:03x}, {r.width}, {r.count}, '
                f"{read}, {write}, 0x{r.reset or 0:x}}},"
            )
        out.append("};")
    body = "\n".join(out)
    licence = "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\n"
    return f"{licence}{_banner(command)}{NAMES_PREAMBLE}{body}\n\n#endif\n"
