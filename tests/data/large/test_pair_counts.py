"""Two models compared from counts of both scores at once: levels give every number, cells those that are sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli
from decal_cli.data.large.engines import counting
from decal_cli.data.large.engines.dialects import DIALECTS
from decal_cli.data.large.engines.request import CountRequest
from decal_cli.data.large.engines.statement import statement
from decal_cli.errors import DecalError
from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import assert_close, with_database

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


def test_levels_give_every_number_of_the_rows(files: Path) -> None:
    names = ("brier", "auc", "corp_mcb", "gain_over_constant", "expected_utility")
    shared: dict[str, Any] = {"score": ["p", "q"], "label": "y", "group": "site", "threshold": 0.3, "metrics": names}
    of_rows = decal_cli.compare(files / "preds.parquet", **shared)
    of_engine = decal_cli.compare(f"duckdb:{files}/file.db?table=preds", **shared)
    assert_close(comparison(of_engine), comparison(of_rows))


@pytest.mark.parametrize("weight", [None, "w"])
def test_cells_give_what_is_a_sum_over_rows(files: Path, weight: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_LEVELS", 10)
    shared: dict[str, Any] = {"score": ["p", "q"], "label": "y", "weight": weight, "group": "site", **SUMS}
    expected = comparison(decal_cli.compare(files / "preds.parquet", **shared))
    got = comparison(decal_cli.compare(f"duckdb:{files}/file.db?table=preds", **shared))
    for contest in (*expected["contests"], *got["contests"]):
        del contest["thresholds"]
    assert_close(got["contests"], expected["contests"])
    assert expected["contests"][0]["metrics"]["brier"]["difference"]["interval"] is not None
    assert got["splice"] == {"threshold": None, "reason": "cells of two scores give no curves"}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("options", [(), ("--cells", "-t", "0.3")], ids=["levels", "cells"])
def test_an_exported_statement_compares_two_models(
    decal: Decal, files: Path, form: str, options: tuple[str, ...]
) -> None:
    columns = ("-s", "p", "-s", "q", "-y", "y", "--weight", "w", "--group", "site")
    asked = decal("sql", "--table", "preds", *columns, "--pairs", *options).out.rstrip().removesuffix(";")
    with duckdb.connect(files / "file.db") as connection:
        connection.execute(f"COPY ({asked}) TO '{files}/counts.{form}'")
        for site in ("a", "b"):
            connection.execute(f"COPY (SELECT * FROM ({asked}) WHERE site = '{site}') TO '{files}/{site}.parquet'")
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
    assert other["metrics"]["expected_utility"]["difference"]["value"] is None


@pytest.mark.parametrize("cells", [False, True])
def test_a_row_that_lacks_a_score_is_dropped_for_both(
    files: Path, cells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MAX_LEVELS", 10 if cells else 10_000)
    rows = ROWS.set_column(1, "q", pa.array([None if at % 7 == 0 else q for at, q in enumerate(ROWS["q"].to_pylist())]))
    pq.write_table(rows, files / "lacks.parquet")
    with duckdb.connect(files / "file.db") as connection:
        connection.execute(f"CREATE TABLE lacks AS SELECT * FROM '{files}/lacks.parquet'")
    shared: dict[str, Any] = {"score": ["p", "q"], "label": "y", "missing": "drop", **SUMS}
    expected = comparison(decal_cli.compare(files / "lacks.parquet", **shared))["contests"][0]
    answer = decal_cli.compare(f"duckdb:{files}/file.db?table=lacks", **shared)
    assert_close(comparison(answer)["contests"][0]["metrics"], expected["metrics"])
    assert "dropped 129 of 900 rows (missing score)" in str(answer)


def test_a_rule_on_the_difference_is_judged_by_an_engine(decal: Decal, files: Path) -> None:
    words = ("-s", "p", "-s", "q", "-y", "y", "--rule", "upper(delta(brier))<=1", "--rule", "delta(brier)<=-0.5")
    of_rows = decal("gate", files / "preds.parquet", *words, "--format", "csv")
    of_engine = decal("gate", "--engine", f"duckdb:{files}/file.db?table=preds", *words, "--format", "csv")
    assert (of_engine.code, of_engine.out) == (of_rows.code, of_rows.out) == (1, of_rows.out)


def changed(**columns: list[Any]) -> dict[str, list[Any]]:
    """Levels of two pairs, some columns of which are others."""
    names = {"model_a": ["p", "p"], "model_b": ["q", "q"]}
    counts: dict[str, list[Any]] = {"score_a": [0.2, 0.4], "score_b": [0.1, 0.4], "n": [2, 2], "pos": [1, 1]}
    return names | counts | columns


@pytest.mark.parametrize(
    ("counts", "given", "problem"),
    [
        (changed(score_b=[0.1, 1.5]), {}, "column 'score_b', row 2: 1.5 is outside"),
        (changed(model_a=["p", "r"]), {}, "column 'model_a': several models, p, r"),
        (changed(), {"score": ["q", "p"]}, "counts rows by the scores p, q, and score= names q, p"),
        (changed(), {"score": ["q"]}, "counts rows by"),
        ({"score": [0.2], "n": [1], "pos": [0]}, {}, "rows were counted by one score at a time"),
        (changed(bad=[None, "missing score"]), {}, "score missing in 2 rows"),
    ],
)
def test_pairs_that_cannot_be_are_one_line(counts: dict[str, Any], given: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecalError) as error:
        decal_cli.compare(pa.table(counts), aggregated=True, **given)
    assert problem in str(error.value) and "\n" not in str(error.value)


def test_what_needs_rows_of_a_comparison_is_one_line(decal: Decal, files: Path) -> None:
    engine = ("--engine", f"duckdb:{files}/file.db?table=preds", "-y", "y")
    assert "pairs are of two scores, and 1 is named" in refusal(decal("compare", *engine, "-s", "p"))
    assert "compare --id needs the rows" in refusal(decal("compare", *engine, "-s", "p", "-s", "q", "--id", "site"))
    out = files / "splice.parquet"
    refusal(decal("compare", *engine, "-s", "p", "-s", "q", "-t", "0.3", "--write-splice", out))
    assert not out.exists()
    assert "pairs are of two scores" in refusal(decal("sql", "--table", "a", "-s", "p", "-y", "y", "--pairs"))
