"""Rows that engines hold in tests, and what their documents say."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, valid_json

CREATE = {
    "duckdb": 'CREATE TABLE preds (p DOUBLE, q DECIMAL(9, 6), y VARCHAR, w DOUBLE, "the site" VARCHAR)',
    "sqlite": 'CREATE TABLE preds (p REAL, q NUMERIC, y TEXT, w REAL, "the site" TEXT)',
    "postgres": 'CREATE TABLE preds (p DOUBLE PRECISION, q NUMERIC(9, 6), y TEXT, w REAL, "the site" TEXT)',
}


def engine_rows(rows: int = 1500) -> dict[str, list[Any]]:
    """Ties, -0.0 and 1, rare positives, weights, labels as text, groups with a quote in their name."""
    rng = np.random.default_rng(3)
    p = np.where(rng.random(rows) < 0.5, np.round(rng.beta(1, 6, rows), 2), rng.beta(1, 6, rows))
    p[:9] = [-0.0, 0.0, -0.0, 1.0, 1.0, 1e-9, 1e-9, 0.3, 0.3]
    y = rng.random(rows) < p
    return {
        "p": p.tolist(),
        "q": np.round(np.sqrt(np.abs(p)), 6).tolist(),
        "y": np.where(y, "yes", "no").tolist(),
        "w": (rng.integers(1, 64, rows) / 16).tolist(),
        "the site": np.array(["a", "it's", "", "ü"])[rng.integers(0, 4, rows)].tolist(),
    }


ENGINE_ROWS = engine_rows()
ENGINE_TUPLES = list(zip(*ENGINE_ROWS.values(), strict=True))


def assert_close(got: Any, expected: Any, place: str = "") -> None:
    """Whether two documents agree, numbers to 1e-12."""
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), place
        for key, value in expected.items():
            assert_close(got[key], value, f"{place}/{key}")
    elif isinstance(expected, list) and expected and not isinstance(expected[0], str):
        assert len(got) == len(expected), place
        for at, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_close(one, other, f"{place}[{at}]")
    elif isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-14), place
    else:
        assert got == expected, place


def with_database(rows: pa.Table, folder: Path) -> Path:
    """The folder, with the rows as preds.parquet and as the table preds of file.db."""
    pq.write_table(rows, folder / "preds.parquet")
    with duckdb.connect(folder / "file.db") as connection:
        connection.execute(f"CREATE TABLE preds AS SELECT * FROM '{folder}/preds.parquet'")
    return folder


def export_counts(decal: Decal, folder: Path, words: Sequence[str], parts: Mapping[str, str]) -> None:
    """Files of what `decal sql` asks of file.db, each with the counts that a condition chooses."""
    asked = decal("sql", *words).out.rstrip().removesuffix(";")
    with duckdb.connect(folder / "file.db") as connection:
        for file, which in parts.items():
            connection.execute(f"COPY (SELECT * FROM ({asked}) WHERE {which}) TO '{folder}/{file}'")


def reports(done: Any) -> list[dict[str, Any]]:
    """The reports of a document, without what needs single rows."""
    document = valid_json(done.out)
    kept = []
    for report in document.get("reports", [document]):
        metrics = {key: each for key, each in report["metrics"].items() if each["value"] is not None}
        kept.append({"model": report.get("model"), "group": report.get("group"), "metrics": metrics})
    return kept
