"""Two models compared from counts of both scores at once: levels give every number, cells those that are sums."""

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import decal_cli
from decal_cli.data import reading
from decal_cli.data.formats import sources
from decal_cli.data.large.engines import DIALECTS, counting
from decal_cli.data.large.engines.statement import CountRequest, statement
from decal_cli.errors import DecalError
from tests.helpers.command import Decal
from tests.helpers.counted_rows import assert_close, export_counts, with_database

EXACT = ("brier", "log_loss", "expected_utility", "net_benefit", "accuracy")
SUMS: dict[str, Any] = {"threshold": 0.3, "metrics": EXACT}


def two_models(rows: int = 900) -> pa.Table:
    """Scores with ties, -0.0 and 1, weights of many sizes, and groups."""
    rng = np.random.default_rng(11)
    p = rng.beta(1, 3, rows)
    p[:400] = np.round(p[:400], 1)
    q = np.clip(np.round(p * rng.uniform(0.6, 1.3, rows), 3), 1e-6, 0.999)
    y = (rng.random(rows) < p).astype(int)
    p[:4], q[:4], y[:4] = [-0.0, 0.0, 1.0, 0.3], [0.0, -0.0, 0.3, 1.0], [0, 0, 1, 1]
    w = rng.lognormal(0, 1, rows)
    return pa.table({"p": p, "q": q, "y": y, "w": w, "site": rng.choice(["a", "b"], rows)})


ROWS = two_models()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the rows as preds.parquet, and in file.db."""
    return with_database(ROWS, tmp_path)


def comparison(answer: Any) -> dict[str, Any]:
    """What was compared."""
    document: dict[str, Any] = answer.to_dict()["comparison"]
    return document


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("options", [(), ("--cells", "-t", "0.3")], ids=["levels", "cells"])
def test_an_exported_statement_compares_two_models(
    decal: Decal, files: Path, form: str, options: tuple[str, ...]
) -> None:
    columns = ("-s", "p", "-s", "q", "-y", "y", "--weight", "w", "--group", "site")
    parts = {f"counts.{form}": "true", "a.parquet": "site = 'a'", "b.parquet": "site = 'b'"}
    export_counts(decal, files, ("--table", "preds", *columns, "--pairs", *options), parts)
    shared: dict[str, Any] = {"score": ["p", "q"], "group": "site", **SUMS}
    expected = comparison(decal_cli.compare(files / "preds.parquet", label="y", weight="w", **shared))
    whole = decal_cli.compare(files / f"counts.{form}", aggregated=True, **shared)
    added = decal_cli.compare([files / "b.parquet", files / "a.parquet"], aggregated=True, **SUMS)
    for got in (comparison(whole), comparison(added)):
        assert got["models"] == ["p", "q"]
        for one, other in zip(got["contests"], expected["contests"], strict=False):
            assert_close(one["metrics"], other["metrics"])
            assert_close(one["disagreements"], other["disagreements"])


def test_what_cells_do_not_know_is_not_shown(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_LEVELS", 10)
    engine = f"duckdb:{files}/file.db?table=preds"
    answer = decal_cli.compare(engine, score=["p", "q"], label="y", metrics=("brier", "auc"), threshold=0.3)
    metrics = comparison(answer)["contests"][0]["metrics"]
    assert "cells of two scores" in metrics["auc"]["difference"]["reason"] and metrics["auc"]["better"] is None
    assert "cells of both models" in str(answer)
    with duckdb.connect(files / "file.db") as connection:
        request = CountRequest(("p", "q"), "y", "preds", cells=True, pairs=True, thresholds=(0.5,))
        table = connection.sql(statement(request, DIALECTS["duckdb"])).to_arrow_table()
    other = comparison(decal_cli.compare(table, aggregated=True, **SUMS))["contests"][0]
    assert other["disagreements"] is None
    assert other["metrics"]["brier"]["difference"]["value"] is not None
    unknown = other["metrics"]["expected_utility"]["difference"]
    assert unknown["value"] is None and "`decal sql` makes it one with its threshold" in unknown["reason"]


def many_rows() -> pd.DataFrame:
    return two_models(1500).to_pandas().assign(id=range(1500))


def compared(path: Path | str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """What is compared, and the notes."""
    asked: dict[str, Any] = {"score": ["p", "q"], "label": "y", "threshold": 0.3, "metrics": (*EXACT, "auc")}
    document = decal_cli.compare(path, **{**asked, **more}).to_dict()
    return document["comparison"], document["notes"]


def csv_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a document as CSV, with their numbers."""
    rows = pd.read_csv(io.StringIO(text)).to_dict("records")
    return [{key: "" if pd.isna(value) else value for key, value in row.items()} for row in rows]


def few_pairs(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    """Let every file count as too large to be held, be read in small batches, and keep so many pairs."""
    monkeypatch.setattr(reading, "HELD_SHARE_OF_MEMORY", 0)
    monkeypatch.setattr(sources, "N_BATCH_ROWS", 64)
    monkeypatch.setattr(counting, "MAX_LEVELS", pairs)


@pytest.mark.parametrize("engine", [False, True])
@pytest.mark.parametrize("pairs", [300, 1 << 20])
def test_a_row_that_lacks_a_score_is_dropped_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: int, engine: bool
) -> None:
    rows = many_rows()
    rows["p"] = rows["p"].where(rows.index % 11 != 0)
    rows["q"] = rows["q"].where(rows.index % 7 != 0)
    path = with_database(pa.Table.from_pandas(rows), tmp_path) / "preds.parquet"
    held, _ = compared(path, missing="drop", metrics=EXACT)
    few_pairs(monkeypatch, pairs)
    got, notes = compared(f"duckdb:{tmp_path}/file.db?table=preds" if engine else path, missing="drop", metrics=EXACT)
    assert_close(got["contests"][0]["metrics"], held["contests"][0]["metrics"])
    assert got["contests"][0]["rows"] == held["contests"][0]["rows"] == int(rows[["p", "q"]].notna().all(axis=1).sum())
    # Pairs do not tell which of both it is that lacks one.
    assert "p, q: dropped 332 of 1,500 rows (missing score of either)" in notes
    rows["q"] = rows["q"].where(rows["p"].isna())
    rows.to_parquet(path)
    with pytest.raises(DecalError, match=r"no row is left \(missing score\)"):
        compared(path, missing="drop")


def test_a_rule_on_the_difference_is_judged_and_ids_hold_the_rows(
    decal: Decal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    many_rows().to_parquet(path)
    words = ("-s", "p", "-s", "q", "-y", "y", "--rule", "upper(delta(brier))<=1", "--rule", "delta(brier)<=-0.5")
    held = decal("gate", path, *words, "--format", "csv")
    by_id = decal("compare", path, "-s", "p", "-s", "q", "-y", "y", "--id", "id", "--no-intervals")
    few_pairs(monkeypatch, pairs=300)
    streamed = decal("gate", path, *words, "--format", "csv")
    assert streamed.code == held.code == 1
    assert_close(*(csv_rows(each.out) for each in (streamed, held)))
    assert decal("compare", path, "-s", "p", "-s", "q", "-y", "y", "--id", "id", "--no-intervals").out == by_id.out
