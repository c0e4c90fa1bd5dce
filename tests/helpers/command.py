"""The installed command: what a run of it leaves behind, and what every run must keep to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
FOX = FIXTURES / "fox_news.parquet"
BINARY = FIXTURES / "binary_n2000.csv"
GOLDEN = ROOT / "tests" / "golden"
DECAL = Path(sys.executable).with_name("decal")
SCHEMA = json.loads((ROOT / "decal_cli" / "report.schema.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


Decal = Callable[..., Done]


def valid_json(text: str) -> dict[str, Any]:
    """Parse JSON strictly and hold it against the shipped schema."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    document = json.loads(text, parse_constant=refuse)
    jsonschema.validate(document, SCHEMA)
    return document


def refusal(done: Done) -> str:
    """The single line that bad input gets, with nothing on standard output and exit code 2."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert done.err.startswith("decal: ")
    return done.err
