"""A page of advice follows from its own numbers, on real scores and in random worlds."""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.recommend import EVIDENCE, Preferences, recommend
from decal_cli.data import Columns, read
from decal_cli.render.format import Page
from decal_cli.render.formats import write
from decal_cli.render.results.recommendation import Recommended
from decal_cli.task import RowTask, task_of
from tests.helpers.command import BINARY, FIXTURES, FOX, run_here
from tests.helpers.consistency import capacity_contradictions, contradictions

pytestmark = pytest.mark.usefixtures("one_deal")

TASKS: tuple[Mapping[str, Any], ...] = ({"threshold": 0.1}, {"threshold": 0.3}, {"odds": "1:19"}, {"odds": "1:49"})
SOME_TASKS = [pytest.param(task, marks=[pytest.mark.long] if k != 2 else []) for k, task in enumerate(TASKS)]
FOX_SCORES = ("p_profanity", "p_hatesonar", "p_svm_waseem")


def split(text: str) -> dict[str, str]:
    """By model, its part of the text."""
    parts = re.split(r"^(\S+) ─{3,}.*$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def wrong(path: Path, columns: Columns, task: Mapping[str, Any]) -> list[str]:
    """What JSON and text of the same recommendation, computed once, say against its numbers; no line is wrapped."""
    plan = Plan(EVIDENCE, task_of(**task), 0.95, 0)
    result = Recommended(recommend(read([str(path)], columns), plan, Preferences()))
    document, text = json.loads(json.dumps(result.data())), write(result, "table", Page(1000))
    assert isinstance(text, str)
    text_of = split(text)
    return [
        f"{entry['model']}: {each}"
        for entry in document.get("reports", [document])
        for each in contradictions(entry, text_of[entry["model"]])
    ]


REAL = Columns(score=FOX_SCORES, label="y", missing="drop")
ROWS = {
    "real scores with features": (FOX, replace(REAL, features=("x*",))),
    "real scores without features": (FOX, REAL),
    "ties": (FIXTURES / "ties_edges_n300.csv", Columns(score=("p",), label="y")),
    "simulated scores": (BINARY, Columns(score=("p",), label="y", features=("x*",))),
}


@pytest.mark.parametrize("task", SOME_TASKS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
def test_a_page_contradicts_none_of_its_numbers(rows: str, task: Mapping[str, Any]) -> None:
    assert not wrong(*ROWS[rows], task)


@pytest.mark.parametrize(
    ("capacity", "features"),
    [
        ("50/1000", ()),
        *(
            pytest.param(*given, marks=pytest.mark.long)
            for given in (("700", ()), ("50/1000", ("x*",)), ("700", ("x*",)))
        ),
    ],
)
def test_a_limited_capacity(capacity: str, features: tuple[str, ...]) -> None:
    columns = Columns(score=("p",), label="y", capacity=capacity, features=features)
    assert not wrong(BINARY, columns, {"threshold": 0.3})


PRICED = RowTask(("amount",), cost_fp=1.0)


@pytest.mark.parametrize(
    ("capacity", "features"), [pytest.param("50/1000", ("x",), marks=pytest.mark.long), ("1/1", ()), ("100", ())]
)
def test_a_limited_capacity_of_rows_with_utilities_of_their_own(
    tmp_path: Path, capacity: str, features: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(4)
    z, x = rng.normal(-1, 1, 400), rng.normal(size=400)
    label = (rng.random(400) < 1 / (1 + np.exp(-0.6 * z - x))).astype(int)
    table = pa.table({"p": 1 / (1 + np.exp(-2 * z)), "y": label, "amount": np.exp(1 + rng.normal(size=400)), "x": x})
    pacsv.write_csv(table, tmp_path / "priced.csv")
    columns = Columns(score=("p",), label="y", capacity=capacity, amount="amount", features=features)
    plan = Plan(EVIDENCE, PRICED, 0.95, 0)
    result = Recommended(recommend(read([str(tmp_path / "priced.csv")], columns), plan, Preferences()))
    document, text = json.loads(json.dumps(result.data())), write(result, "table", Page(1000))
    assert isinstance(text, str)
    assert capacity_contradictions(document, text) == []
    worse = changed(document, "at_capacity", 0, "utility", to=0.3)
    assert capacity_contradictions(worse, text) != []


@pytest.mark.ci
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_random_worlds(tmp_path: Path, seed: int) -> None:
    """Calibrated, distorted, backward and useless scores, rare and common labels, with and without a useful feature."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([150, 600, 3000]))
    features = rng.normal(size=(rows, 2))
    signal = rng.choice([-1.0, 0.0, 1.0, 2.0]) * features[:, 0] + rng.choice([-4.0, -1.0, 0.0])
    chance = 1 / (1 + np.exp(-signal - rng.choice([0.0, 1.5]) * features[:, 1]))
    score = 1 / (1 + np.exp(-rng.choice([0.5, 1.0, 2.0]) * signal))
    label = (rng.random(rows) < chance).astype(int)
    label[:2] = 0, 1
    table = pa.table({"p": score, "y": label, "x0": features[:, 0], "x1": features[:, 1]})
    pacsv.write_csv(table, tmp_path / "world.csv")
    task = {"threshold": float(rng.choice([0.05, 0.3, 0.5]))}
    assert not wrong(tmp_path / "world.csv", Columns(score=("p",), label="y"), task)
    assert not wrong(tmp_path / "world.csv", Columns(score=("p",), label="y", features=("x*",)), task)


def changed(document: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """A copy of the document in which one value is another."""
    copied = copy.deepcopy(document)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copied


@cache
def printed() -> tuple[dict[str, Any], str]:
    """The JSON and the text of a score, as the command prints them."""
    asked = ("recommend", FOX, "-s", "p_hatesonar", "-y", "y", "--features", "x0*", "-t", ".3")
    document = run_here(FIXTURES, (*asked, "-f", "json"))
    text = run_here(FIXTURES, asked, environment={"COLUMNS": "1000"})
    return json.loads(document.out), split(text.out)["p_hatesonar"]


class TestTheReader:
    """It finds what it is there to find."""

    @pytest.fixture
    def page(self) -> tuple[dict[str, Any], str]:
        entry, text = printed()
        assert not contradictions(entry, text) and entry["recommendation"]["action"] == "post-train"
        return entry, text

    @pytest.mark.parametrize(
        ("path", "value", "problem"),
        [
            (("metrics", "gain_beyond", "value"), 0.2, "gains do not add up"),
            (("recommendation", "action"), "done", "done beside a gain above 0"),
            (("recommendation", "method"), "stack", "names the method stack"),
            (("recommendation", "gain"), 0.3, "not the gain of the chain"),
            (("recommendation", "small"), True, "small disagrees"),
            (("metrics", "gain_recalibration", "interval"), [0.01, 0.02], "does not follow from the numbers"),
            (("metrics", "eu_always", "value"), 0.0, "constant None that is"),
            (("metrics", "expected_utility", "value"), -0.15, "score as it is is worth"),
        ],
    )
    def test_a_changed_number(
        self, page: tuple[dict[str, Any], str], path: tuple[str, ...], value: Any, problem: str
    ) -> None:
        entry, text = page
        assert any(problem in each for each in contradictions(changed(entry, *path, to=value), text))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("the features clearly win", "the features may win"),
            ("using the features on top of recalibration wins", "recalibration wins"),
            ("Post-train on the features with blend", "Post-train on the features with stack"),
            ("which may win", "which wins"),
            ("A false alarm (acting at label 0) costs 0.3", "A false alarm (acting at label 0) costs 0.7"),
            ("ECE is 0.", "ECE is 0.9"),
        ],
    )
    def test_a_changed_sentence(self, page: tuple[dict[str, Any], str], old: str, new: str) -> None:
        entry, text = page
        assert old in text and contradictions(entry, text.replace(old, new))
