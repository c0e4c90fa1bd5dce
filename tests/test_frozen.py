"""Every number of some seventy runs is what it was when the record was made, but for those that are meant to differ."""

from pathlib import Path

import pytest
import sklearn

from tests.helpers import frozen
from tests.helpers.frozen import (
    ABSENT,
    Meant,
    differences,
    flattened,
    meant_differences,
    read_record,
    reason_of,
    record_what_is_meant,
    run_frozen_case,
    truth,
    write_inputs,
)
from tests.helpers.frozen_cases import CASES

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
    "recommend stakes, features",
    "recommend engine, features",
    "recommend, methods, clusters",
    "recommend three classes, groups",
    "compare stakes",
    "compare capacity",
    "compare three actions",
    "fit blend",
    "sweep stakes",
}
"""Cases of a second and more, each with what quicker ones freeze of its verb and of its capabilities."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def expected() -> frozen.Record:
    return truth()


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.long] if case in SLOW else []) for case in CASES]
)
def test_numbers_are_those_of_the_record(case: str, inputs: Path, expected: frozen.Record) -> None:
    if case in LEARNED and OLDER:
        pytest.skip("the boosted trees of older versions of scikit-learn are others")
    found = differences(case, expected[case], run_frozen_case(inputs, CASES[case]))
    shown = "\n".join(f"{each.key}: was {each.was}, is {each.now}" for each in found[:30])
    assert not found, f"{len(found)} values differ from the record of '{case}':\n{shown}"


def test_the_record_holds_every_case() -> None:
    assert list(frozen.read_record(frozen.FROZEN_RECORD)) == list(CASES)


def test_every_meant_difference_is_listed_with_its_reason_and_every_line_is_needed() -> None:
    listed, record = meant_differences(), read_record(frozen.FROZEN_RECORD)
    reasons = set()
    for case, leaves in read_record(frozen.MEANT).items():
        for key, value in leaves.items():
            assert not frozen.Difference(case, key, record[case].get(key, ABSENT), value).none, (case, key)
            reason = reason_of(case, key, listed)
            assert reason, (case, key)
            reasons.add(reason)
    assert reasons == set(listed)
    assert all(one.reason and one.commit for one in listed)


def test_a_difference_is_found_and_kept_only_where_it_is_listed(tmp_path: Path, monkeypatch) -> None:
    was = dict(flattened({"metrics": {"brier": {"value": 0.2, "interval": [0.1, 0.3]}}, "notes": [], "seconds": 3}))
    assert was == {
        "metrics.brier.value": 0.2,
        "metrics.brier.interval.0": 0.1,
        "metrics.brier.interval.1": 0.3,
        "notes": "[]",
    }
    near = was | {"metrics.brier.value": 0.2 + 1e-12}
    assert not differences("one", was, near)
    far = was | {"metrics.brier.value": 0.2 + 1e-8, "metrics.auc.value": 0.7}
    assert {each.key for each in differences("one", was, far)} == {"metrics.brier.value", "metrics.auc.value"}
    for name in ("FROZEN_RECORD", "MEANT"):
        monkeypatch.setattr(frozen, name, tmp_path / f"{name}.parquet")
    monkeypatch.setattr(frozen, "meant_differences", lambda: [Meant("o*", "metrics.auc.*", "a new metric", "abc")])
    frozen.write_record(frozen.FROZEN_RECORD, {"one": was})
    assert [each.key for each in record_what_is_meant({"one": far})] == ["metrics.brier.value"]
    assert read_record(frozen.MEANT) == {"one": {"metrics.auc.value": 0.7}}
    assert not differences("one", truth()["one"], was | {"metrics.auc.value": 0.7})
