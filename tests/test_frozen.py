"""Every number of some ninety runs is what it was when the record was made, but for those that are meant to differ."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sklearn

from tests.helpers import frozen, printed
from tests.helpers.frozen_cases import CASES, PRINTED
from tests.helpers.printed import Texts, same_line, text_differences

OLDER = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)
LEARNED = {
    "evaluate fox news, features",
    "evaluate regimes",
    "recommend stakes, features",
    "sweep features",
    "recommend binary",
    "recommend engine, features",
    "recommend, methods",
    "fit blend",
    "table, mixed features",
    "advice, world 3, features",
    "advice, world 5, features",
    "table, regimes",
    "fit stack-forest",
    "fit stack-boosting",
    "fit boosted, classes",
}
"""Cases whose numbers rest on boosted trees of scikit-learn."""

SLOW = {
    "evaluate weights, clusters, groups",
    "evaluate two models",
    "evaluate counts",
    "evaluate clusters",
    "evaluate weights",
    "evaluate stakes, groups",
    "evaluate another decision threshold",
    "evaluate stakes",
    "evaluate capacity",
    "evaluate regimes",
    "recommend stakes, features",
    "recommend engine, features",
    "recommend, methods",
    "recommend, methods, clusters",
    "recommend three classes, groups",
    "compare",
    "compare stakes",
    "compare capacity",
    "compare three actions",
    "fit blend",
    "sweep stakes",
    "table, two models, features",
    "page, groups",
    "page, features",
    "tied, page",
    "tied, card",
    "fit boosted, classes",
    "plan, no pilot",
    "study",
    "page, stakes",
    "card, stakes, time",
    "comparison, no task, groups",
    "tied, two models",
    "advice, world 5, features",
    "table, parameters, features",
}
"""Cases of a second and more, each with what quicker ones freeze of its verb and of its capabilities."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    frozen.write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def expected() -> frozen.Record:
    return frozen.truth()


@pytest.fixture(scope="module")
def texts() -> dict[str, Texts]:
    return frozen.read_texts()


def marked(cases: Iterable[str]) -> list[Any]:
    return [pytest.param(case, marks=[pytest.mark.long] if case in SLOW else []) for case in cases]


@pytest.mark.ci
@pytest.mark.parametrize("case", marked(CASES))
def test_numbers_and_texts_are_those_of_the_record(
    case: str, inputs: Path, expected: frozen.Record, texts: dict[str, Texts]
) -> None:
    if case in LEARNED and OLDER:
        pytest.skip("the boosted trees of older versions of scikit-learn are others")
    run = frozen.run_frozen_case(inputs, CASES[case])
    found = frozen.differences(case, expected[case], run.leaves)
    shown = "\n".join(f"{each.key}: was {each.was}, is {each.now}" for each in found[:30])
    assert not found, f"{len(found)} values differ from the record of '{case}':\n{shown}"
    _compare(case, texts[case], run.texts, frozen.loose_in(case, expected[case]))


@pytest.mark.ci
@pytest.mark.parametrize("case", marked(PRINTED))
def test_what_a_line_prints_writes_and_draws_is_that_of_the_record(
    case: str, inputs: Path, texts: dict[str, Texts]
) -> None:
    if case in LEARNED and OLDER:
        pytest.skip("the boosted trees of older versions of scikit-learn are others")
    _compare(case, texts[case], frozen.run_printed_case(inputs, PRINTED[case]))


def _compare(case: str, was: Texts, now: Texts, loose: printed.Loose = ()) -> None:
    found = text_differences(was, now, loose)
    shown = "\n".join(found)
    assert not found, f"what '{case}' prints differs; see `python -m tests.helpers.frozen --help`:\n{shown}"
    assert "ufdd" not in str(now), "an option that is not said in words"


def test_the_record_holds_every_case() -> None:
    assert list(frozen.read_record(frozen.FROZEN_RECORD)) == list(CASES)
    assert list(frozen.read_texts()) == [*CASES, *PRINTED]


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ("worth -12 [-14.0, 3], p < .05 for n=1,234", True),
        ("worth -13 [-14.1, 3], p < .05 for n=1,234", True),
        ("worth -14 [-14.0, 3], p < .05 for n=1,234", False),
        ("worth -12 [-14.2, 3], p < .05 for n=1,234", False),
        ("worth -12 [-14.0, 3], p < .05  for n=1,234", False),
        ("worth -12 [-14.0, 3], q < .05 for n=1,234", False),
        ("worth -12 [-14.0, 3], p < .05 for n=1,234 rows", False),
    ],
)
def test_words_are_equal_and_numbers_but_for_one_in_the_last_digit(now: str, same: bool) -> None:
    assert same_line("worth -12 [-14.0, 3], p < .05 for n=1,234", now) == same


def test_every_meant_difference_is_listed_with_its_reason_and_every_line_is_needed() -> None:
    listed, record = frozen.meant_differences(), frozen.read_record(frozen.FROZEN_RECORD)
    reasons = set()
    for case, leaves in frozen.read_record(frozen.MEANT).items():
        for key, value in leaves.items():
            assert not frozen.Difference(case, key, record[case].get(key, frozen.ABSENT), value).none, (case, key)
            reason = frozen.reason_of(case, key, listed)
            assert reason, (case, key)
            reasons.add(reason)
    assert reasons == set(listed)
    assert all(one.reason and one.commit for one in listed)


def test_a_difference_is_found_and_kept_only_where_it_is_listed(tmp_path: Path, monkeypatch) -> None:
    document = {"metrics": {"brier": {"value": 0.2, "interval": [0.1, 0.3]}}, "notes": [], "seconds": 3}
    was = dict(frozen.flattened(document))
    assert was == {
        "metrics.brier.value": 0.2,
        "metrics.brier.interval.0": 0.1,
        "metrics.brier.interval.1": 0.3,
        "notes": "[]",
    }
    near = was | {"metrics.brier.value": 0.2 + 1e-12}
    assert not frozen.differences("one", was, near)
    far = was | {"metrics.brier.value": 0.2 + 1e-8, "metrics.auc.value": 0.7}
    assert {each.key for each in frozen.differences("one", was, far)} == {"metrics.brier.value", "metrics.auc.value"}
    for name in ("FROZEN_RECORD", "MEANT"):
        monkeypatch.setattr(frozen, name, tmp_path / f"{name}.parquet")
    monkeypatch.setattr(frozen, "meant_differences", lambda: [frozen.Meant("o*", "metrics.auc.*", "new", "abc")])
    frozen.write_record(frozen.FROZEN_RECORD, {"one": was})
    assert [each.key for each in frozen.record_what_is_meant({"one": far})] == ["metrics.brier.value"]
    assert frozen.read_record(frozen.MEANT) == {"one": {"metrics.auc.value": 0.7}}
    assert not frozen.differences("one", frozen.truth()["one"], was | {"metrics.auc.value": 0.7})
