"""The Python API: the same numbers as the command, from arrays and data frames."""

import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

import decal_cli as decal
from decal_cli.declarations.option import keys_of
from decal_cli.errors import DecalError
from decal_cli.roles import DECLARATIONS
from decal_cli.task import SPELLINGS
from tests.helpers.command import FIXTURES

VERBS = [
    *(decal.evaluate, decal.recommend, decal.gate, decal.compare, decal.sweep, decal.report),
    *(decal.fit, decal.study, decal.online),
]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pyarrow.csv.read_csv(FIXTURES / "binary_n2000.csv").to_pandas()


def test_single_fields_are_taken_as_keywords() -> None:
    answer = decal.evaluate([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0], threshold=0.5)
    assert answer["brier"].value == pytest.approx(0.0625)


def test_arrays_frames_and_arrow_tables_give_the_same(frame: pd.DataFrame) -> None:
    features = frame[["x1", "x2", "x3"]].to_numpy()
    answers = [
        decal.evaluate(frame["p"].to_numpy(), frame["y"].to_numpy(), features=features, threshold=0.3),
        decal.evaluate(frame, score="p", label="y", features="x*", threshold=0.3),
        decal.evaluate(pyarrow.Table.from_pandas(frame), score="p", label="y", features="x*", threshold=0.3),
    ]
    results = [answer.reports[0].results for answer in answers]
    assert results[0] == results[1] == results[2]
    assert results[0]["brier"].value == pytest.approx(0.1969580170, abs=1e-9)


def test_recommend_on_arrays(frame: pd.DataFrame) -> None:
    answer = decal.recommend(frame, score="p", label="y", features="x*", threshold=0.3, cost={"post-train": 0.001})
    assert answer.advice.action == "post-train"
    assert answer.to_dict()["recommendation"]["action"] == "post-train"
    assert "per 1,000 decisions" in str(answer)


def test_groups_and_metrics(frame: pd.DataFrame) -> None:
    answer = decal.evaluate(frame, score="p", label="y", group="group", metrics=["ece(bins=10)"], intervals=False)
    assert [report.group for report in answer.reports] == [None, "A", "B"]
    assert answer.reports[0].results["ece(bins=10)"].interval is None
    with pytest.raises(DecalError, match="pick one"):
        answer["ece(bins=10)"]


def test_rows_of_pandas_that_are_named_in_two_orders_are_refused() -> None:
    rng = np.random.default_rng(3)
    p = pd.Series(rng.random(60), name="p")
    y = pd.Series((rng.random(60) < p).astype(int), name="y")
    shuffled = y.sample(frac=1, random_state=1)
    for call in (
        lambda: decal.evaluate(p, shuffled),
        lambda: decal.evaluate({"p": p, "q": p**2}, shuffled),
        lambda: decal.evaluate({"p": p, "y": shuffled}),
        lambda: decal.evaluate(p, y, weight=shuffled + 1),
        lambda: decal.evaluate(p, y, features=pd.DataFrame({"x": shuffled})),
        lambda: decal.evaluate(pd.DataFrame({"p": p}), shuffled),
        lambda: decal.fit(p, shuffled, method="platt"),
        lambda: decal.online(p, shuffled),
    ):
        with pytest.raises(DecalError, match=r"the index of '\w+' is not that of .*\.to_numpy\(\).*\.loc"):
            call()
    expected = decal.evaluate(p.to_numpy(), y.to_numpy(), metrics="brier")["brier"]
    for scores, labels in ((p.loc[shuffled.index], shuffled), (p, y.to_numpy()), (p.to_numpy(), y), (list(p), y)):
        assert decal.evaluate(scores, labels, metrics="brier")["brier"].value == pytest.approx(expected.value)
    other = pd.Series(y.to_numpy(), index=[f"row {at}" for at in range(60)])
    with pytest.raises(DecalError, match="index"):
        decal.evaluate(p, other)
    with pytest.raises(DecalError, match="59 rows"):
        decal.evaluate(p, y.iloc[1:])


def test_probabilities_of_several_classes_are_told_how_to_be_given() -> None:
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet(np.ones(4), 80)
    labels = rng.integers(0, 4, 80)
    for call in (
        lambda: decal.evaluate(probabilities),
        lambda: decal.evaluate(probabilities, labels),
        lambda: decal.recommend(probabilities, labels, threshold=0.3),
    ):
        with pytest.raises(DecalError, match=r"shape \(80, 4\); .*proba='p:\*'"):
            call()
    with pytest.raises(DecalError, match=r"shape \(80, 2\); .*predict_proba\(X\)\[:, 1\]"):
        decal.evaluate(probabilities[:, :2], labels % 2)
    columns = {f"p:{name}": probabilities[:, name] for name in range(4)}
    assert "accuracy" in decal.evaluate({**columns, "y": labels}, proba="p:*")


def test_misspelt_arguments_and_missing_tasks() -> None:
    with pytest.raises(TypeError, match="treshold"):
        decal.evaluate([0.2, 0.8], [0, 1], treshold=0.3)
    with pytest.raises(DecalError, match="decision"):
        decal.recommend(decal.Data(str(FIXTURES / "multiclass_n1500_k3.csv"), proba="p_*", label="y"))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_help_of_a_verb_is_numpydoc_on_one_screen(verb: Callable[..., object]) -> None:
    text = pydoc.render_doc(verb, renderer=pydoc.plaintext)
    headings = [f"{name}\n    {'-' * len(name)}" for name in ("Parameters", "Returns", "Examples")]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places) and len(text.splitlines()) <= 56
    named = [name for name in inspect.signature(verb).parameters if name != "fields"]
    assert len(named) <= 5 and all(re.search(rf"^    .*\b{name}\b", text, re.MULTILINE) for name in named)


def test_every_declared_field_is_a_keyword_and_an_option() -> None:
    assert {*DECLARATIONS, *SPELLINGS} <= {*keys_of(decal.Data), *keys_of(decal.Decision)}


def test_the_positive_label_may_be_a_number() -> None:
    table = {"p": [0.2, 0.8, 0.4], "y": [1, 2, 2]}
    by_number, by_text = (decal.evaluate(table, positive=one, metrics=["brier"]) for one in (2, "2"))
    assert by_number["brier"].value == by_text["brier"].value == pytest.approx((0.04 + 0.04 + 0.36) / 3)


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, decal_cli; print([m for m in ('numpy', 'pyarrow', 'typer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
