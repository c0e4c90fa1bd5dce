"""Counts of rows that memory holds are these rows: whatever a verb says of them, it says of their counts."""

import json
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.data.large import repeated
from decal_cli.data.large.engines import reading
from decal_cli.errors import DecalError
from tests.helpers.capabilities import CAPABILITIES, Combination
from tests.helpers.command import Decal, refusal, run_here
from tests.helpers.seeded import write_seeded

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
        *product(("evaluate", "gate"), GIVEN),
        *product(("compare", "sweep"), GIVEN[::3]),
        *(
            pytest.param(verb, given, marks=pytest.mark.long)
            for verb, given in product(("compare", "sweep", "fit", "recommend", "recommend --try"), GIVEN)
            if verb not in ("compare", "sweep") or given not in GIVEN[::3]
        ),
    ],
)
def test_counts_give_all_numbers_of_their_rows(folder: Path, verb: str, given: str) -> None:
    asked = set(given.split(" + "))
    if (verb == "sweep" and "capacity" in asked) or (verb == "fit" and "two models" in asked):
        pytest.skip("the verb takes no such thing")
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
        got = numbers(folder, verb, asked | {road})
        apart = {
            at: (expected.get(at), got.get(at))
            for at in expected.keys() | got.keys()
            if not math.isclose(expected.get(at, math.inf), got.get(at, -math.inf), rel_tol=1e-12, abs_tol=1e-13)
        }
        assert not apart, road


def test_weights_of_a_level_add_up_as_they_were_given() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"score": rng.integers(1, 4, 300) / 4, "y": rng.integers(0, 2, 300), "w": rng.exponential(size=300)}
    )
    data = data.assign(n=data.w, n2=data.w**2, rows=1, pos=data.w * data.y, pos2=data.w**2 * data.y, rows_pos=data.y)
    counts = {name: each.to_numpy(float) for name, each in data.groupby("score").sum().reset_index().items()}
    (rows,) = repeated.rows_of_levels(counts, ("score",), 1.0, {}, None, {})
    assert len(rows) == 300 and rows.weights.min() > 0
    table = rows.table
    for got, expected in ((table.n, counts["n"]), (table.pos, counts["pos"]), (table.n2, counts["n2"])):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


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


@pytest.mark.parametrize(
    ("n", "problem"), [(0, "row 2: 0 is not"), (1.5, "row 2: 1.5 is not"), (1e12, "more than is held")]
)
def test_counts_of_rows_are_numbers_of_rows(n: float, problem: str) -> None:
    counts = {"p_a": [0.2, 0.3], "p_b": [0.8, 0.7], "y": ["a", "b"], "n": [2, n]}
    with pytest.raises(DecalError, match=problem):
        decal.evaluate(counts, aggregated=True, proba="p_*")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"utility_columns": ["n", "pos", "amount"]}, "names 3 columns, and each of two"),
        ({"amount": "amuont", "cost_fp": 1}, "no column 'amuont'; did you mean 'amount'"),
        ({"amount": "amount", "cost_fp": 1}, "column 'amount', row 2: amount -1 is negative"),
    ],
)
def test_stakes_of_levels_are_checked_as_those_of_rows(asked: dict[str, Any], problem: str) -> None:
    counts = {"score": [0.2, 0.4], "amount": [3, -1], "n": [2, 2], "pos": [1, 1]}
    with pytest.raises(DecalError) as error:
        decal.evaluate(counts, aggregated=True, **asked)
    assert problem in str(error.value)


def test_rows_of_too_many_values_are_refused_in_one_line(
    decal: Decal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LEVELS", 20)
    words = ("-s", "p", "-y", "y", "--amount", "amount", "--cost-fp", "1")
    line = refusal(decal("evaluate", "--engine", f"duckdb:{folder}/file.db?table=rows", *words))
    assert "more than 20 different values of y, p, amount; round them in --query" in line
