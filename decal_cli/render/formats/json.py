"""JSON, everything at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.errors import inert
from decal_cli.render.format import Format


class Json(Format):
    """The document at full precision, without NaN; `report.schema.json` says what it holds.

    Texts are exact; characters that do not print are written as JSON escapes them.
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
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
