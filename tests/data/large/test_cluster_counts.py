"""Rows in clusters, counted by cluster: the intervals are those of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli
from tests.helpers.command import Decal, refusal

METRICS = ("brier", "log_loss", "auc", "observed_expected", "expected_utility", "corp_mcb", "ece", "sensitivity")
SHARED: dict[str, Any] = {"threshold": 0.3, "metrics": METRICS, "group": "site"}


def visits(rows: int = 800) -> pa.Table:
    """Visits of patients that are alike, with ties, weights and groups."""
    rng = np.random.default_rng(2)
    patient = rng.integers(0, 60, rows)
    p = np.clip(np.round(rng.beta(1, 3, rows) + rng.normal(0, 0.1, 60)[patient], 2), 0.01, 0.99)
    y = (rng.random(rows) < np.clip(p + rng.normal(0, 0.2, 60)[patient], 0, 1)).astype(int)
    columns = {"p": p, "y": y, "w": rng.lognormal(0, 1, rows), "patient": np.char.add("#", patient.astype(str))}
    return pa.table(columns | {"site": rng.choice(["a", "b"], rows)})


ROWS = visits()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the rows as visits.parquet, and in file.db."""
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM '{tmp_path}/visits.parquet'")
    return tmp_path


def measured(answer: Any) -> dict[Any, Any]:
    """Values and intervals by group and metric, and the clusters."""
    kept: dict[Any, Any] = {}
    for report in answer.to_dict()["reports"]:
        for key, each in report["metrics"].items():
            kept[report["group"], key] = [each["value"], *(each["interval"] or ())]
        kept[report["group"], "clusters"] = list(report["clusters"].values())
    return kept


def approximately(kept: dict[Any, Any]) -> dict[Any, Any]:
    return {key: pytest.approx(values, rel=1e-12, abs=1e-14) for key, values in kept.items()}


@pytest.mark.parametrize("weight", [None, "w"])
def test_counts_by_cluster_give_the_numbers_of_the_rows(decal: Decal, files: Path, weight: str | None) -> None:
    columns: dict[str, Any] = {"score": "p", "label": "y", "weight": weight}
    of_rows = decal_cli.evaluate(files / "visits.parquet", cluster="patient", **columns, **SHARED)
    engine = f"duckdb:{files}/file.db?table=visits"
    of_engine = decal_cli.evaluate(engine, cluster="patient", **columns, **SHARED)
    words = ("-s", "p", "-y", "y", "--group", "site", "--cluster", "patient")
    weighing = () if weight is None else ("--weight", weight)
    asked = decal("sql", "--table", "visits", *words, *weighing).out.rstrip().removesuffix(";")
    with duckdb.connect(files / "file.db") as connection:
        connection.execute(f"COPY ({asked}) TO '{files}/counts.csv'")
        connection.execute(f"COPY (SELECT * FROM ({asked}) WHERE score < 0.2) TO '{files}/low.parquet'")
        connection.execute(f"COPY (SELECT * FROM ({asked}) WHERE score >= 0.2) TO '{files}/high.parquet'")
    of_file = decal_cli.evaluate(files / "counts.csv", aggregated=True, cluster="patient", **SHARED)
    added = decal_cli.evaluate(
        [files / "high.parquet", files / "low.parquet"], aggregated=True, cluster="patient", **SHARED
    )
    expected = measured(of_rows)
    assert len(expected[None, "brier"]) == 3
    for answer in (of_engine, of_file, added):
        assert measured(answer) == approximately(expected)
    assert "visits" not in str(of_file) and "800 rows in 60 clusters" in str(of_file)
    independent = decal_cli.evaluate(files / "counts.csv", aggregated=True, **SHARED)
    assert measured_interval(independent) != pytest.approx(expected[None, "brier"][1:], rel=1e-3)


def measured_interval(answer: Any) -> list[float]:
    return list(answer.to_dict()["reports"][0]["metrics"]["brier"]["interval"])


def test_clusters_of_one_row_are_independent_rows(files: Path) -> None:
    rows = ROWS.append_column("row", pa.array(range(len(ROWS))))
    with duckdb.connect(files / "file.db") as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE alone AS SELECT * FROM rows")
    columns: dict[str, Any] = {"score": "p", "label": "y", "metrics": "brier"}
    answer = decal_cli.evaluate(f"duckdb:{files}/file.db?table=alone", cluster="row", **columns)
    assert answer["brier"].interval == pytest.approx(decal_cli.evaluate(rows, **columns)["brier"].interval)
    assert "every cluster has one row" in str(answer)


def test_what_is_wrong_with_clusters_is_one_line(decal: Decal, files: Path) -> None:
    engine = ("--engine", f"duckdb:{files}/file.db", "-s", "p", "-y", "y", "--cluster", "c")
    few = "select p, y, case when p < 0.1 then null else 'a' || (p > 0.3) end as c from visits"
    lacking = int((ROWS["p"].to_numpy() < 0.1).sum())
    line = refusal(decal("evaluate", *engine, "--query", few))
    assert f"column 'c': cluster missing in {lacking} rows" in line
    out = decal("evaluate", *engine, "--query", few, "--missing", "drop", "-m", "brier").out
    assert f"dropped {lacking} of 800 rows (missing cluster)" in " ".join(out.split())
    one = "select p, y, 'a' as c from visits"
    assert "the cluster of every row is 'a'" in refusal(decal("evaluate", *engine, "--query", one))
