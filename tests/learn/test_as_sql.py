"""Models written as SQL against `decal apply` on the same rows, run by DuckDB; every dialect parses."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from decal_cli.data.large.engines.dialects import DIALECTS
from decal_cli.learn.as_sql import scoring_statement
from decal_cli.learn.curves import Curve
from decal_cli.learn.model_file import Saved
from tests.helpers.command import BINARY, Decal, refusal

IN_POPULATION = [f"{method} --prevalence .02" for method in ("isotonic", "platt", "threshold")]
METHODS = (
    "isotonic",
    "histogram",
    "platt",
    "'platt(on=p)'",
    "temperature",
    "beta",
    "quadratic",
    "threshold",
    *IN_POPULATION,
)


def rows_to_score() -> pa.Table:
    """Scores between, at and beyond those that a model was fitted to."""
    rng = np.random.default_rng(1)
    fitted = np.genfromtxt(BINARY, delimiter=",", names=True, dtype=None, encoding="utf-8")["p"]
    ends = np.array([0.0, -0.0, 1.0, 1e-300, 1e-13, 1e-9, 1 - 1e-16, 0.5, np.nextafter(0.5, 1)])
    return pa.table({"id": np.arange(2209), "p": np.concatenate([fitted, rng.random(200), ends])})


@pytest.mark.parametrize("method", METHODS)
def test_a_model_scores_in_the_engine_as_decal_apply_does(decal: Decal, tmp_path: Path, method: str) -> None:
    method, *options = method.replace("'", "").split()
    pq.write_table(rows_to_score(), tmp_path / "new.parquet")
    words = ("fit", method, BINARY, "-s", "p", "-y", "y", "--threshold", "0.3", "-o", tmp_path / "model.json", *options)
    assert decal(*words).code == 0
    assert (
        decal("apply", tmp_path / "model.json", tmp_path / "new.parquet", "-o", tmp_path / "scored.parquet").code == 0
    )
    query = f"select * from '{tmp_path}/new.parquet'"
    asked = decal("sql", "--model", tmp_path / "model.json", "--query", query).out
    with duckdb.connect() as connection:
        got = connection.sql(asked).to_arrow_table().sort_by("id")
    expected = pq.read_table(tmp_path / "scored.parquet").sort_by("id")
    assert got.column_names == expected.column_names
    for name in expected.column_names:
        np.testing.assert_allclose(got[name].to_numpy(), expected[name].to_numpy(), rtol=0, atol=1e-12, err_msg=name)
    for name, dialect in DIALECTS.items():
        text = decal("sql", "--model", tmp_path / "model.json", "--table", "a.new", "--dialect", name).out
        assert len(sqlglot.parse(text, read=name)) == 1, dialect


def test_a_curve_may_jump_and_log_odds_are_scores() -> None:
    curve = Curve(np.array([0.2, 0.4, 0.4, 0.9]), np.array([0.1, 0.2, 0.6, 0.7]))
    score = np.array([0.0, 0.2, 0.3, np.nextafter(0.4, 0), 0.4, 0.5, 0.9, 1.0])
    for logit in (False, True):
        with np.errstate(divide="ignore"):
            given = np.log(score[1:-1] / (1 - score[1:-1])) if logit else score
        asked = scoring_statement(Saved("isotonic", curve, "p", logit=logit), "new", None, DIALECTS["duckdb"])
        with duckdb.connect() as connection:
            connection.register("new", pa.table({"p": given}))
            got = connection.sql(asked).to_arrow_table()["p_isotonic"].to_numpy()
        moved = 1 / (1 + np.exp(-given)) if logit else given
        near = np.abs(np.subtract.outer(moved, [0.4])).min(axis=1) > 1e-9 if logit else slice(None)
        np.testing.assert_allclose(got[near], np.interp(moved, curve.at, curve.value)[near], rtol=0, atol=1e-12)


def test_what_is_no_score_gets_no_new_one() -> None:
    curve = Curve(np.array([0.2]), np.array([0.1]))
    asked = scoring_statement(Saved("isotonic", curve, "p"), "new", None, DIALECTS["duckdb"])
    with duckdb.connect() as connection:
        connection.register("new", pa.table({"p": [0.5, None, float("nan"), -0.1, 1.1, float("inf")]}))
        assert connection.sql(asked).to_arrow_table()["p_isotonic"].to_pylist() == [0.1, *[None] * 5]


def test_what_cannot_be_written_is_one_line(decal: Decal, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    assert decal("fit", "stack", BINARY, "-s", "p", "-y", "y", "--features", "x*", "-o", model).code == 0
    assert "stack cannot be written as SQL" in refusal(decal("sql", "--model", model, "--table", "new"))
    assert "give it with --table" in refusal(decal("sql", "--model", model, "--table", "new", "--score", "p"))
    assert decal("fit", "platt", BINARY, "-s", "p", "-y", "y", "-o", model, "--force").code == 0
    assert "rows come from one table or from one query" in refusal(decal("sql", "--model", model))
