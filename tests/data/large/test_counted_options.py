"""Options that change what rows count or score, where rows are counted elsewhere: the numbers are those of the rows."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import decal_cli
from decal_cli.data.large.engines import counting
from decal_cli.errors import DecalError
from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import with_database

EXACT = ("brier", "log_loss", "expected_utility")
METRICS = (*EXACT, "auc", "corp_mcb", "observed_expected")
POPULATIONS: list[dict[str, Any]] = [
    {"prevalence": 0.05},
    {"sampled_negatives": 0.1},
    {"prevalence": 0.4, "keep_scores": True},
]


def sampled(rows: int = 600) -> pa.Table:
    """Scores with ties, their log-odds, weights and clusters."""
    rng = np.random.default_rng(8)
    p = np.round(np.clip(rng.beta(1, 2, rows), 0.01, 0.99), 2)
    columns = {"p": p, "q": np.clip(p * rng.uniform(0.5, 1.4, rows), 0.01, 0.99), "lo": np.log(p / (1 - p)) * 5}
    columns |= {"y": (rng.random(rows) < p).astype(int), "w": rng.lognormal(0, 1, rows)}
    return pa.table(columns | {"c": rng.integers(0, 50, rows)})


ROWS = sampled()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the rows as preds.parquet, and in file.db."""
    return with_database(ROWS, tmp_path)


def numbers(metrics: dict[str, Any]) -> dict[str, list[float]]:
    return {key: [each["value"], *(each["interval"] or ())] for key, each in metrics.items()}


def agree(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Whether values and intervals are the same to 1e-12."""
    of_rows = numbers(expected)
    assert all(values[0] is not None for values in of_rows.values())
    assert numbers(got) == {key: pytest.approx(values, rel=1e-12, abs=1e-14) for key, values in of_rows.items()}


def test_cells_tell_what_rows_count_and_not_how_their_scores_move(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_LEVELS", 10)
    asked: dict[str, Any] = {"label": "y", "threshold": 0.3, "weight": "w", "prevalence": 0.4, "metrics": EXACT}
    engine = f"duckdb:{files}/file.db?table=preds"
    of_rows = decal_cli.evaluate(files / "preds.parquet", score="q", keep_scores=True, **asked)
    of_engine = decal_cli.evaluate(engine, score="q", keep_scores=True, **asked)
    agree(of_engine.to_dict()["metrics"], of_rows.to_dict()["metrics"])
    with pytest.raises(DecalError, match="do not tell how the scores of their rows move; add keep_scores=True"):
        decal_cli.evaluate(engine, score="q", **asked)
    with pytest.raises(DecalError, match="not of another population"):
        decal_cli.compare(engine, score=["p", "q"], keep_scores=True, **asked)


def test_advice_in_another_population_is_that_of_the_rows(files: Path) -> None:
    asked: dict[str, Any] = {"score": "p", "label": "y", "threshold": 0.3, "prevalence": 0.05}
    of_rows, of_engine = (
        decal_cli.recommend(data, **asked).to_dict()
        for data in (files / "preds.parquet", f"duckdb:{files}/file.db?table=preds")
    )
    assert of_engine["recommendation"]["action"] == of_rows["recommendation"]["action"]
    for key in ("kept", "moved", "interval", "threshold"):
        assert of_engine["moving"][key] == pytest.approx(of_rows["moving"][key], rel=1e-12)


def test_log_odds_become_probabilities_in_the_statement(decal: Decal, files: Path) -> None:
    asked: dict[str, Any] = {"label": "y", "threshold": 0.3, "metrics": METRICS}
    expected = decal_cli.evaluate(files / "preds.parquet", score="lo", logit=True, **asked).to_dict()["metrics"]
    engine = f"duckdb:{files}/file.db?table=preds"
    agree(decal_cli.evaluate(engine, score="lo", logit=True, **asked).to_dict()["metrics"], expected)
    text = decal("sql", "--table", "preds", "-s", "lo", "-y", "y", "--logit").out.rstrip().removesuffix(";")
    with duckdb.connect(files / "file.db") as connection:
        counts = connection.sql(text).to_arrow_table()
    agree(decal_cli.evaluate(counts, aggregated=True, threshold=0.3, metrics=METRICS).to_dict()["metrics"], expected)
    query = "select 1000.0 as p, 1 as y union all select -1000.0, 0"
    words = ("--engine", "duckdb:", "-s", "p", "-y", "y", "--logit", "-m", "brier")
    assert decal("evaluate", *words, "--query", query).code == 0
    missing = "select 1.5 as p, 1 as y union all select null, 0"
    assert "score missing in 1 row" in refusal(decal("evaluate", *words, "--query", missing))
    endless = "select cast('-inf' as double) as p, 1 as y"
    assert "score -inf is outside [0, 1]" in refusal(decal("evaluate", *words, "--query", endless))


def test_what_an_engine_cannot_count_is_one_line(decal: Decal, files: Path) -> None:
    words = ("--engine", f"duckdb:{files}/file.db?table=preds", "-y", "y", "--proba", "p", "--classes", "a,b")
    assert "--classes needs the rows, and an engine only counts them" in refusal(decal("evaluate", *words))
