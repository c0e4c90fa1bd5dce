"""What an engine exported of the statement: its counts give the numbers of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import CREATE, ENGINE_ROWS, assert_close, reports


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("options", [(), ("--cells", "-t", "0.3")], ids=["levels", "cells"])
def test_an_exported_result_gives_the_numbers_of_the_rows(
    decal: Decal, tmp_path: Path, form: str, options: tuple[str, ...]
) -> None:
    columns = ("-s", "p", "-s", "q", "-y", "y", "--positive", "yes", "--weight", "w", "--group", "the site")
    asked = decal("sql", "--table", "preds", *columns, *options).out.rstrip().removesuffix(";")
    with duckdb.connect() as connection:
        connection.execute(CREATE["duckdb"])
        connection.register("rows", pa.table(ENGINE_ROWS))
        connection.execute("INSERT INTO preds SELECT * FROM rows")
        connection.execute(f"COPY ({asked}) TO '{tmp_path}/counts.{form}'")
    pq.write_table(pa.table(ENGINE_ROWS), tmp_path / "preds.parquet")
    measured = ("--threshold", "0.3", "-m", "brier", "-m", "log_loss", "-m", "expected_utility", "--format", "json")
    of_rows = decal("evaluate", tmp_path / "preds.parquet", *columns, *measured)
    of_counts = decal("evaluate", tmp_path / f"counts.{form}", "--aggregated", "--group", "the site", *measured)
    expected, got = reports(of_rows), reports(of_counts)
    for each in (*expected, *got):
        each["metrics"] = {key: (value["value"], value["interval"]) for key, value in each["metrics"].items()}
    assert len(got) == 10
    assert_close(json.loads(json.dumps(got)), json.loads(json.dumps(expected)))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_the_engine_found_wrong_is_told_by_the_reader(decal: Decal, tmp_path: Path, form: str) -> None:
    def export(query: str) -> Path:
        asked = decal("sql", "--query", query, "-s", "p", "-y", "y").out.rstrip().removesuffix(";")
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({asked}) TO '{tmp_path}/counts.{form}'")
        return tmp_path / f"counts.{form}"

    rows = "(values (0.2, 0), (0.7, 1), (0.7, 1), (null, 0), (null, 1)) as preds (p, y)"
    path = export(f"select * from {rows}")
    assert "score missing in 2 rows" in refusal(decal("evaluate", path, "--aggregated"))
    out = decal("evaluate", path, "--aggregated", "--missing", "drop", "-m", "brier").out
    assert "5 rows" in out and "score: dropped 2 of 5 rows (missing score)" in out
    path = export("select 1.5 as p, 1 as y")
    assert "score 1.5 is outside [0, 1]" in refusal(decal("evaluate", path, "--aggregated", "--missing", "drop"))


def test_null_of_an_export_is_nothing_wrong(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text(
        "score,n,pos,bad,value\n0.2,5,1,\\N,\\N\n0.7,4,3,NULL,NULL\n", encoding="utf-8"
    )
    told = decal("evaluate", tmp_path / "counts.csv", "--aggregated", "-m", "brier").out
    assert "9 rows, 4 positive" in " ".join(told.split())
    (tmp_path / "counts.csv").write_text("score,n,pos,bad,value\n0.2,5,1,mischief,\n", encoding="utf-8")
    assert "'mischief' is not known" in refusal(decal("evaluate", tmp_path / "counts.csv", "--aggregated"))
