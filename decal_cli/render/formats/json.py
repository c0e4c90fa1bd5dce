"""JSON, everything at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.errors import inert
from decal_cli.render.format import Format


class Json(Format):
    """The document at full precision, without NaN; `report.schema.json` says what it holds.

    Texts are exact; characters that do not print are written as JSON escapes them. What is no character, such as a byte
    of a file name that is not UTF-8, is written out: \\udcff is the byte ff.
    """

    name = "json"
    reads = "data"
    suffix = ".json"

    def write(self, result: Any) -> str:
        import json

        text = json.dumps(result.data(), indent=2, allow_nan=False, ensure_ascii=False)
        return "".join(f"{_escaped(line)}\n" for line in text.split("\n"))


def _escaped(line: str) -> str:
    import json

    if inert(line) != line:
        line = line.replace("##", "#\\u0023")
    if line.isprintable():
        return line
    # No JSON parser has to take half of a pair of surrogates, and many do not.
    return "".join(c if c.isprintable() else "\\" * _is_half(c) + json.dumps(c)[1:-1] for c in line)


def _is_half(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"
