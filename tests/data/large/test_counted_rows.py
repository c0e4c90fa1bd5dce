"""Counts of rows that memory holds are these rows: whatever a verb says of them, it says of their counts."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import decal_cli
import decal_cli as decal
from decal_cli.data.large import aggregates
from decal_cli.data.large.counts import DistinctScores
from decal_cli.data.large.engines import counting
from decal_cli.data.parts import Origin
from decal_cli.errors import DecalError
from tests.helpers.agreement import Agreement, rows_of_hard_cases
from tests.helpers.capabilities import CAPABILITIES, Combination
from tests.helpers.command import Decal, refusal, run_here
from tests.helpers.counted_rows import with_database
from tests.helpers.seeded import write_seeded

pytestmark = pytest.mark.usefixtures("one_deal")

OF_FILES = {"inputs", "notes", "signature", "columns", "guessed", "ids", "seconds", "next", "path"}
"""What depends on where rows come from."""
GIVEN = (
    "groups",
    "weights + clusters",
    "weights + capacity",
    "clusters + capacity",
    "weights + prevalence",
    "clusters + prevalence",
    "two models + capacity",
    "weights + stakes per row",
    "clusters + stakes per row",
    "stakes per row + capacity",
    "groups + K classes",
    "weights + K classes",
    "clusters + K classes",
    "three actions",
    "two models + weights",
)
SOME_GIVEN = dict.fromkeys(("gate", "compare", "sweep"), GIVEN[::3])
"""What runs by default of verbs that take longer than evaluate."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    write_seeded(folder, 200, utilities=True)
    return folder


def numbers(folder: Path, verb: str, given: set[str]) -> dict[str, float]:
    """The numbers of a run as JSON, by their place."""
    words = Combination(verb, tuple(each for each in CAPABILITIES if each in given)).words(folder)
    done = run_here(folder, (*words, "--format", "json"))
    assert done.code in (0, 1), done.err
    return dict(_numbers(json.loads(done.out), ""))


def _numbers(document: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield from () if key in OF_FILES else _numbers(value, f"{place}/{key}")
    elif isinstance(document, list):
        for at, value in enumerate(document):
            yield from _numbers(value, f"{place}[{at}]")
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield place, document


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        pytest.param(
            verb, given, marks=[] if verb == "evaluate" or given in SOME_GIVEN.get(verb, ()) else pytest.mark.long
        )
        for verb, given in product(("evaluate", *SOME_GIVEN, "fit", "recommend", "recommend --try"), GIVEN)
        if not (verb == "sweep" and "capacity" in given) and not (verb == "fit" and "two models" in given)
    ],
)
def test_counts_give_all_numbers_of_their_rows(folder: Path, verb: str, given: str) -> None:
    asked = set(given.split(" + "))
    expected = numbers(folder, verb, asked)
    assert len(expected) > 5
    roads = ["an engine"]
    # Of different weights of one score and label a file of counts knows sums, and folds deal rows one by one. Two
    # models that it counts one by one have no curve of both.
    one_by_one = (
        (verb in ("fit", "recommend --try") or ("capacity" in asked and verb == "recommend"))
        and "weights" in asked
        and "K classes" not in asked
    )
    if not one_by_one and not ("two models" in asked and verb == "sweep"):
        roads.append("counts only")
    for road in roads:
        assert numbers(folder, verb, asked | {road}) == pytest.approx(expected, rel=1e-12, abs=1e-13), road


def test_weights_of_a_level_add_up_as_they_were_given() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"score": rng.integers(1, 4, 300) / 4, "y": rng.integers(0, 2, 300), "w": rng.exponential(size=300)}
    )
    data = data.assign(n=data.w, n2=data.w**2, rows=1, pos=data.w * data.y, pos2=data.w**2 * data.y, rows_pos=data.y)
    counts = {name: each.to_numpy(float) for name, each in data.groupby("score").sum().reset_index().items()}
    (rows,) = DistinctScores(counts, Origin()).held({}, {})
    assert len(rows) == 300 and rows.weights.min() > 0
    table = rows.table
    for got, expected in ((table.n, counts["n"]), (table.pos, counts["pos"]), (table.n2, counts["n2"])):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    # One of two rows has all the weight: the other's is above 0 all the same.
    alone = {"score": 0.5, "n": 4.0, "n2": 16.0, "rows": 2, "pos": 0.0, "pos2": 0.0, "rows_pos": 0}
    (rows,) = DistinctScores({name: np.array([value]) for name, value in alone.items()}, Origin()).held({}, {})
    assert rows.weights.tolist() == pytest.approx([4, 0], abs=1e-12) and rows.weights.min() > 0


def test_features_of_an_engine_go_with_everything(folder: Path) -> None:
    asked: dict[str, Any] = {"score": ["p", "q"], "label": "y", "features": ["x1", "x2", "x3"], "threshold": 0.4}
    asked |= {"cluster": "c", "metrics": ["brier", "gain_post_training"]}
    rows, engine = (
        decal.compare(data, **asked).to_dict()
        for data in (folder / "rows.parquet", f"duckdb:{folder}/file.db?table=rows")
    )
    assert dict(_numbers(engine["comparison"], "")) == pytest.approx(dict(_numbers(rows["comparison"], "")), rel=1e-12)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--amount", "fp", "--cost-fp", "1"), "column 'fp': amount -3 is negative (200 such rows)"),
        (("--amount", "g", "--cost-fp", "1"), "Could not convert string"),
    ],
)
def test_what_is_wrong_with_rows_of_an_engine_names_no_row(
    decal: Decal, folder: Path, words: tuple[str, ...], text: str
) -> None:
    line = refusal(decal("evaluate", "--engine", f"duckdb:{folder}/file.db?table=rows", "-s", "p", "-y", "y", *words))
    assert text in line and "row 1" not in line


def test_rows_of_too_many_values_are_refused_in_one_line(
    decal: Decal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MAX_LEVELS", 20)
    words = ("-s", "p", "-y", "y", "--margin")
    line = refusal(decal("evaluate", "--engine", f"duckdb:{folder}/file.db?table=rows", *words))
    assert "more than 20 different values of y, p; round them in --query" in line


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


def agree(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Whether values and intervals are the same to 1e-12."""
    assert all(each["value"] is not None for each in expected.values())
    one, other = (
        dict(_numbers({key: [each["value"], each["interval"]] for key, each in metrics.items()}, ""))
        for metrics in (got, expected)
    )
    assert one == pytest.approx(other, rel=1e-12, abs=1e-14)


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


ASKED: dict[str, Any] = {"label": "y", "positive": "it's", "threshold": 0.05}
FOUND = ["capture", "precision_at_capacity", "lift", "capacity_threshold"]


@pytest.fixture(scope="module")
def capacity_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_database(rows_of_hard_cases(800), tmp_path_factory.mktemp("capacity"))


@pytest.fixture
def both(capacity_files: Path) -> Iterator[tuple[Path, str]]:
    yield capacity_files / "preds.parquet", f"duckdb:{capacity_files}/file.db?table=preds"


def test_a_sweep_over_capacities(decal: Decal, both: tuple[Path, str]) -> None:
    words = ("-s", "p", "-y", "y", "--positive", "it's", "-t", "0.05", "--vary", "capacity=10:90", "--format", "json")
    result = Agreement()
    result.of(*(json.loads(decal("sweep", *data, *words).out) for data in (("--engine", both[1]), (both[0],))))
    assert not result.apart and result.n_values > 20


def test_a_column_that_counts_are_added_up_over_may_be_their_cluster(decal: Decal, tmp_path: Path) -> None:
    """Without --cluster the second time, rows of a cluster count as independent: the file does not say what it is."""
    rows = "".join(f"{site},{p / 10},{site % 2 + 2},{1 + p % 2}\n" for site in range(12) for p in range(1, 9))
    (tmp_path / "counts.csv").write_text("site,score,n,pos\n" + rows)
    line = ("evaluate", "counts.csv", "--aggregated", "-m", "brier")
    (note,) = (each for each in decal.json(*line)["notes"] if "site" in each)
    assert note.endswith("over site; --group reports every value by itself, and --cluster counts it as one cluster")
    wide = [np.ptp(decal.json(*line, *more)["metrics"]["brier"]["interval"]) for more in ((), ("--cluster", "site"))]
    assert wide[0] != pytest.approx(wide[1], rel=0.02)


def test_exported_counts_take_a_capacity() -> None:
    counts = pa.table({"score": [0.1, 0.4, 0.8], "n": [5, 3, 2], "pos": [0, 1, 1]})
    answer = decal_cli.evaluate(counts, aggregated=True, capacity=3, metrics=FOUND)
    # The two rows of .8 have a place, and one of three rows of .4: label 1 is 1 + 1/3 of 2.
    expected = [2 / 3, 4 / 9, 20 / 9, 0.4]
    assert [answer[name].value for name in FOUND] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("module", "limit", "most", "problem"),
    [
        (counting, "MAX_LEVELS", 10, "only cells of it are known"),
        (aggregates, "MAX_IN_MEMORY_BYTES", 8000, "800 rows are more than memory can hold"),
    ],
)
def test_cells_and_levels_of_too_many_rows_tell_no_ranks(
    decal: Decal,
    both: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    limit: str,
    most: int,
    problem: str,
) -> None:
    asked = ("-s", "p", "-y", "y", "--positive", "it's", "--capacity", "5", "-t", "0.05")
    monkeypatch.setattr(module, limit, most)
    assert problem in refusal(decal("evaluate", "--engine", both[1], *asked))
