"""JSON, everything at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class Json(Format):
    """The document at full precision, without NaN; `report.schema.json` says what it holds."""

    name = "json"
    reads = "data"
    suffix = ".json"

    def write(self, result: Any) -> str:
        import json

        return json.dumps(result.data(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
