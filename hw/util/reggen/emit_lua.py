# SPDX-License-Identifier: Apache-2.0
"""Lua: prawn_fields.lua, which the Wireshark dissector loads."""

from __future__ import annotations

from .model import Description, enum_of

HEAD = """\
-- SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
-- Made by '{command}' from hw/data; do not edit.
-- Packet layout and codes, for docs/wireshark/prawn.lua.

return {{
"""


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def table(d: Description, command: str) -> str:
    """prawn_fields.lua: what concerns the wire."""
    out = ["  constants = {"]
    for c in d.constants:
        if c.file == "packet.toml" or c.name in ("MAX_PAYLOAD", "MGMT_MAX"):
            out.append(f"    {c.name} = {c.value},")
    out += ["  },", "  enums = {"]
    for e in d.enums:
        out.append(f"    {e.name} = {{")
        out += [f"      [{v.value}] = {_text(v.name)}," for v in e.values]
        out.append("    },")
    out += ["  },", "  structs = {"]
    for s in d.structs:
        if s.file != "packet.toml":
            continue
        out.append(f"    {s.name} = {{")
        out += [f"      size = {s.size},", "      fields = {"]
        for f in s.fields:
            enum = enum_of(f.desc)
            extra = f", enum = {_text(enum)}" if enum else ""
            out.append(
                f"        {{ name = {_text(f.name)}, type = {_text(f.type)}, "
                f"offset = {f.offset}, size = {f.size}, count = {f.count}, "
                f"desc = {_text(f.desc)}{extra} }},"
            )
        out += ["      },", "    },"]
    out += ["  },", "}", ""]
    return HEAD.format(command=command) + "\n".join(out)
