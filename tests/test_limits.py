"""Options, numbers and files at their limits: the least and the most that is taken, and what lies just outside."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import decal_cli as decal
from decal_cli import documents
from decal_cli.analysis.online.plan import MAX_WARM_UP, MIN_WARM_UP
from decal_cli.analysis.plan import made_up_pilot
from decal_cli.api import asking
from decal_cli.commands import settings
from decal_cli.curves.grid import parse_prior, parse_thresholds
from decal_cli.data.columns import check_utilities, class_columns
from decal_cli.data.large.counts import ROUNDING
from decal_cli.data.large.engines.statement import DIFFERENCES, SIDES, SQUARES, SUMS
from decal_cli.data.words import first_line, listed, number, quote
from decal_cli.documents import json_of, read_document
from decal_cli.errors import DecalError
from decal_cli.learn.methods import METHODS
from decal_cli.limits import (
    MAX_ACTIONS,
    MAX_COUNTED_ROWS,
    MAX_DEPTH,
    MAX_ROWS_OVER_TIME,
    MAX_SEED,
    MAX_SUM_OF_WEIGHTS,
    MAX_THRESHOLDS,
    MAX_UTILITY,
    MIN_PREVALENCE,
    MIN_RISK,
    MIN_THRESHOLD,
)
from decal_cli.metrics import METRICS
from decal_cli.plot.style import MAX_NAME, drawable
from decal_cli.sequential import ONLINE
from decal_cli.task import (
    BinaryTask,
    abstaining,
    by_factor,
    by_prevalence,
    by_price,
    parse_varied,
    row_task_of,
    task_of,
)

P = np.linspace(0.02, 0.98, 60)
Y = (np.arange(60) % 3 == 0).astype(int)
CLASSES = {"p:a": P, "p:b": 1 - P, "y": np.where(Y, "a", "b")}
PATIENT, DAYS = np.repeat(np.arange(20), 3), np.repeat(["mon", "tue"], 30)
BELOW_0, BELOW_1, ABOVE_1 = math.nextafter(0, -1), math.nextafter(1, 0), math.nextafter(1, 2)
BEYOND = math.nextafter(MAX_UTILITY, math.inf)
LEAST_STAKES = 0.5 / MAX_UTILITY
LESS_STAKES = math.nextafter(LEAST_STAKES, 0)
TASK = BinaryTask.of_threshold(0.3)


class Limit(NamedTuple):
    """What becomes of a value, those just inside of what is taken, and those just outside."""

    done: Callable[[Any], object]
    taken: tuple[Any, ...]
    refused: tuple[Any, ...]


def asked_of(**given: Any) -> object:
    return decal.evaluate(P, Y, metrics="brier", intervals=False, **given)


def of_classes(**given: Any) -> object:
    return decal.evaluate(CLASSES, proba="p:*", label="y", metrics="brier", intervals=False, **given)


def costing(**given: Any) -> object:
    """What is taken of the costs of a recommendation; no advice is computed."""
    return asking.preferences_of(decal.Costs(**given), decal.Terms())


def lines(count: int) -> list[list[float]]:
    return [[-k, k] for k in range(count)]


def online(**given: Any) -> object:
    return decal.online(P, Y, threshold=0.3, methods="as-it-is", **given)


def scores(*given: float) -> object:
    return decal.OnlineForecaster("as-it-is").predict_one(*given)


def counted(levels: tuple[tuple[float, ...], ...]) -> object:
    """Levels of weighted rows: score, n, pos, n2, pos2, rows and rows_pos; of rows: score, n and pos."""
    names = ("score", "n", "pos", "n2", "pos2", "rows", "rows_pos")[: len(levels[0])]
    table = {name: list(column) for name, column in zip(names, zip(*levels, strict=True), strict=True)}
    return decal.evaluate(table, aggregated=True, metrics="brier", intervals=False)


def a_cell(changed: dict[str, Any]) -> object:
    """Two rows of a label, by default 0 on the low edge of the cell from 0.25 to 0.5; with n2 their weights are 1."""
    score, label = np.full(2, changed.get("min_score", 0.25)), changed.get("label", 0)
    loss = -np.log(score if label == 1 else 1 - score)
    sums = [float((of**k).sum()) for of, powers in ((score, range(5)), (loss, (1, 2))) for k in powers]
    cell: dict[str, Any] = {"cell": 0, "low": 0.25, "high": 0.5, "label": label, "rows": 2}
    for names in (SUMS, SQUARES) if "n2" in changed else (SUMS,):
        cell |= dict(zip(names, sums, strict=True))
    return of_cell(decal.evaluate, cell | changed)


def a_pair(changed: dict[str, float]) -> object:
    """One row of label 0 with two scores of 0.25; d, e: what B loses more than A, of which sums are known."""
    sums = [*(0.25**k for k in range(1, 5)), *((-math.log(0.75)) ** k for k in (1, 2))]
    side = dict(zip(SUMS[1:], sums, strict=True)) | {"cell": 0, "low": 0.25, "high": 0.5}
    sides = {name + end: value for name, value in side.items() for end in SIDES}
    return of_cell(
        decal.compare, {"n": 1, "rows": 1, "label": 0, **sides, **dict.fromkeys(DIFFERENCES, 0.0), **changed}
    )


def of_cell(verb: Callable[..., object], cell: dict[str, float]) -> object:
    return verb({name: [value] for name, value in cell.items()}, aggregated=True, metrics="brier", intervals=False)


def at_score(at: float, **changed: float) -> dict[str, float]:
    return {"min_score": at, "max_score": at, **changed}


def sums_off(share: float) -> list[dict[str, float]]:
    """Rows at either end of their cell, with a sum of the powers of their scores moved outwards by a share."""
    ends, weighted = ((0.25, 1 - share), (BELOW_HALF, 1 + share)), {"n2": 2.0}
    of = [(SUMS, {}), (SQUARES, weighted)]
    return [
        at_score(at, **{names[k]: 2 * at**k * by}, **n2) for names, n2 in of for at, by in ends for k in range(1, 5)
    ]


BELOW_HALF = math.nextafter(0.5, 0)
MOST_LOST = {"l1": 2 * 745, "l2": 2 * 745**2}
ENDLESS = {"k1": math.inf, "n2": 2.0}


LIMITS = {
    "threshold": Limit(BinaryTask.of_threshold, (MIN_THRESHOLD, BELOW_1), (0.0, MIN_THRESHOLD / 2, 1.0)),
    "threshold of costs": Limit(lambda v: task_of(cost_fp=v, cost_fn=1.0), (2e-30, MAX_UTILITY), (1e-31, 0.0, BEYOND)),
    "costs": Limit(lambda v: task_of(cost_fp=v, cost_fn=v), (LEAST_STAKES, MAX_UTILITY), (LESS_STAKES, BEYOND)),
    "another threshold": Limit(lambda v: BinaryTask.of_threshold(0.3, v), (0.0, 1.0), (BELOW_0, ABOVE_1)),
    "best threshold": Limit(lambda v: task_of(utility=[[v, 0], [0, 1 - v]]), (1e-9, 1 - 1e-9), (0, 1)),
    "stakes of three": Limit(
        lambda v: task_of(utility=[[0, -v], [-v, 0], [-v, -v]]), (LEAST_STAKES, MAX_UTILITY), (LESS_STAKES, BEYOND)
    ),
    "actions": Limit(lambda v: task_of(utility=lines(v)), (2, 3, MAX_ACTIONS), (0, 1, MAX_ACTIONS + 1)),
    "classes of a utility": Limit(
        lambda v: task_of(utility=[[0.0] * v, [1.0] * v]).for_classes(tuple("abcd"[:v])), (3, 4), (0, 1)
    ),
    "price of abstention": Limit(abstaining, (0, 1), (BELOW_0, ABOVE_1)),
    "cost of a row": Limit(lambda v: row_task_of(("amount",), {"cost_fp": v}), (1e-300, MAX_UTILITY), (0.0, BEYOND)),
    "range of costs": Limit(
        lambda v: asking.unknown_of(decal.Decision.costs(fp=v, fn=1)), ("0.1:0.2", "1e-300:2"), ("0:1", "1:1", "2:1")
    ),
    "range of thresholds": Limit(
        lambda v: asking.unknown_of(decal.Decision(v)), ("0.1:0.2",), ("0:0.1", "0.3:0.3", "0.3:1", "0.3:0.2")
    ),
    "varied": Limit(
        lambda v: parse_varied(f"a:b={v}"),
        ("1:1:1", "0:1", f"1:{MAX_THRESHOLDS}:1", f"{-MAX_UTILITY},{MAX_UTILITY}"),
        ("1:1", "2:1", "1:2:0", "2:1:1", "1:2:-1", f"0:{MAX_THRESHOLDS}:1", f"0,{BEYOND}", "0:1:1e-320", "0:inf:1"),
    ),
    "varied price": Limit(
        lambda v: by_price(parse_varied(f"abstain={v}"), ("a", "b", "c"), None), ("0,1",), ("0,1.1", "-.1,1")
    ),
    "varied prevalence": Limit(
        lambda v: by_prevalence(parse_varied(f"prevalence={v}"), TASK),
        (MIN_PREVALENCE, 1 - MIN_PREVALENCE),
        (MIN_PREVALENCE / 2, 1 - MIN_PREVALENCE / 2),
    ),
    "varied factor": Limit(
        lambda v: by_factor(parse_varied(f"cost-fp={v}"), row_task_of(("amount",), {"cost_fp": 1.0})), (1e-9,), (0,)
    ),
    "thresholds": Limit(
        parse_thresholds,
        ("1e-30", str(BELOW_1), "0.0005:0.9995:0.001", ",".join(f"0.{k:04}" for k in range(1, MAX_THRESHOLDS + 1))),
        ("", "0", "1", "9e-31", "0.1:0.9:0.0008", "0.2:0.1:0.1", "0.1:0.2:0"),
    ),
    "prior": Limit(
        lambda v: parse_prior(f"beta:{v}"), ("1e-3,1", "1,999999", "999999,1"), ("0,1", "1,0", "1e6,1", "1,1e6", "1")
    ),
    "confidence": Limit(
        lambda v: asked_of(confidence=v), (MIN_RISK, 1 - MIN_RISK), (0, MIN_RISK / 2, 1 - MIN_RISK / 2, 1, ABOVE_1)
    ),
    "seed": Limit(lambda v: asked_of(seed=v), (0, MAX_SEED), (-1, MAX_SEED + 1)),
    "prevalence": Limit(
        lambda v: asked_of(prevalence=v),
        (MIN_PREVALENCE, 1 - MIN_PREVALENCE),
        (MIN_PREVALENCE / 2, 1 - MIN_PREVALENCE / 2),
    ),
    "prevalence of classes": Limit(
        lambda v: of_classes(prevalence=v),
        ({"a": 1 - MIN_PREVALENCE}, {"a": MIN_PREVALENCE}, {"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5000009}),
        ({"a": 1 - MIN_PREVALENCE / 2}, {"a": MIN_PREVALENCE / 2}, {"a": 0.5, "b": 0.51}, {"a": 1.0}),
    ),
    "capacity": Limit(lambda v: asked_of(capacity=v), (1, 60, "60/60", 0.01), (0, 61, "61/60", "1/0", -1)),
    "capacity of days": Limit(
        lambda v: decal.evaluate(P, Y, per=DAYS, capacity=v, metrics="brier", intervals=False), (1, 61), (0, -1)
    ),
    "cluster": Limit(lambda v: asked_of(cluster=PATIENT * v), (1,), (0,)),
    "cost": Limit(lambda v: costing(both=v), (0, MAX_UTILITY), (BELOW_0, BEYOND)),
    "tolerance": Limit(lambda v: costing(tolerance=v), (0, MAX_UTILITY), (BELOW_0, BEYOND)),
    "satisfied at": Limit(lambda v: costing(satisfied_at=v), (-MAX_UTILITY, MAX_UTILITY), (-BEYOND, BEYOND)),
    "decisions": Limit(
        lambda v: decal.Terms(decisions=v), (1 / MAX_UTILITY, MAX_UTILITY), (0.9 / MAX_UTILITY, BEYOND, 0)
    ),
    "bound of a rule": Limit(
        lambda v: decal.gate(P, Y, rules=f"brier<={v}"), (0.0, 0.999), (-0.001, 1.001, "inf", "1e999")
    ),
    "warm-up": Limit(lambda v: online(warm_up=v), (MIN_WARM_UP,), (MIN_WARM_UP - 1, MAX_WARM_UP + 1)),
    "horizon": Limit(lambda v: online(horizon=v), (60, MAX_ROWS_OVER_TIME), (0, MAX_ROWS_OVER_TIME + 1)),
    "score": Limit(scores, (0, 1), (BELOW_0, ABOVE_1)),
    "AUC of a plan": Limit(lambda v: made_up_pilot(v, 0.5), (0.501, 0.999), (0.5, 1.0)),
    "prevalence of a plan": Limit(lambda v: made_up_pilot(0.8, v), (0.01, 0.99), (0.0, 1.0)),
    "columns of classes": Limit(
        lambda v: class_columns(("p:*",), [f"p:{k}" for k in range(v)], "a file"), (2, 3), (0, 1)
    ),
    "names of classes": Limit(
        lambda v: class_columns(("p",), ["p"], "a file", v), ("a,b", "a,b,c"), ("a", "a,a", "a,", "a,b,a")
    ),
    "columns of utilities": Limit(lambda v: check_utilities(tuple("abcdefgh"[:v]), 2), (0, 4, 6, 8), (1, 2, 3, 5, 7)),
    "counted rows": Limit(
        counted,
        (((0, 1, 0), (1, 1, 1)), ((0, MAX_COUNTED_ROWS - 1, 0), (1, 1, 1)), ((0.5, MAX_COUNTED_ROWS, 1),)),
        (
            *(((BELOW_0, 1, 0),), ((ABOVE_1, 1, 0),), ((0.5, 0, 0),), ((0.5, 1, 2),), ((0.5, 1, -1),)),
            *(((0.5, 1.5, 1),), ((0, MAX_COUNTED_ROWS, 0), (1, 1, 1))),
        ),
    ),
    "counted weights": Limit(
        counted,
        # One row of each label; two rows of one weight; two of different weights, of one label or of both.
        (
            *(((0, 2, 0, 4, 0, 1, 0), (1, 2, 2, 4, 4, 1, 1)), ((0.5, 2, 1, 2, 1, 2, 1),)),
            *(((0.5, 3, 3, 5, 5, 2, 2), (0.6, 3, 0, 5, 0, 2, 0)), ((0.5, 3, 1, 5, 1, 2, 1),)),
            # The heaviest row and the lightest; squares, and label 1, off by as much as rounding explains.
            *(((0.5, weight, 0, weight**2, 0, 1, 0),) for weight in (MAX_SUM_OF_WEIGHTS, 1 / MAX_SUM_OF_WEIGHTS)),
            *(((0.5, 2, 0, 4 * by, 0, 1, 0),) for by in (1 - ROUNDING, 1 + ROUNDING)),
            *(((0.5, 2, 2 * by, 4, 4 * by, 1, 1),) for by in (1, 1 + ROUNDING)),
        ),
        (
            *(((0.5, 0, 0, 1, 0, 1, 0),), ((0.5, 2, 3, 4, 4, 1, 1),), ((0.5, 2, -1, 4, 0, 1, 0),)),
            *(((0.5, 2, 1, 0, 0, 2, 1),), ((0.5, 2, 1, 1.99, 1, 2, 1),), ((0.5, 2, 2, 4.01, 4.01, 1, 1),)),
            *(((0.5, 2, 1, 2, 2.1, 2, 1),), ((0.5, 2, 1, 2, -1, 2, 1),), ((0.5, 2, 1, 2, 1, 2, 0),)),
            *(((0.5, 2, 0, 2, 0, 2, 1),), ((0.5, 3, 1, 5, 0.9, 2, 1),), ((0.5, 3, 1, 5, 1.1, 2, 1),)),
            *(((0.5, 3, 2, 5, 5, 2, 2),), ((0.5, 3, 3, 5, 5, 2, 1),)),
            *(((0.5, weight, 0, weight**2, 0, 1, 0),) for weight in (1.1e100, 0.9e-100)),
        ),
    ),
    "counted cells": Limit(
        a_cell,
        (
            *({}, {"n2": 2.0}, at_score(0.25), at_score(BELOW_HALF), at_score(1.0, low=1.0, high=1.0, label=1)),
            *({"low": 0.0}, at_score(0.0, low=0.0), {"high": 1.0}, MOST_LOST, {"l1": 0.0, "l2": 0.0}),
            *(*sums_off(ROUNDING), {"l1": 1.0, "l2": (1 - ROUNDING) / 2}),
            *({"l1": math.inf, "l2": math.inf}, {"l1": 1.0, "l2": math.inf}, {**ENDLESS, "k2": math.inf}),
        ),
        (
            *({"low": BELOW_0}, {"low": ABOVE_1}, {"low": 0.5}, {"high": 0.25}, {"high": ABOVE_1}, {"high": 0.2}),
            *({"label": 2}, {"label": 0.5}, {"n": 1.9}, {"n": -2.0}, {"rows": 3}),
            *({"rows": 0, "n": 0}, {"rows": 1.5, "n": 1.5}, {"n2": 1.99}, {"n2": 4.01}, {"n2": 0.0}),
            *(at_score(math.nextafter(0.25, 0)), at_score(0.5), at_score(0.3, max_score=math.nextafter(0.3, 0))),
            *(at_score(0.3, max_score=0.5), *sums_off(1e-8), {"l1": -1e-9, "l2": 0.0}, {"l1": math.inf}, ENDLESS),
            *({**MOST_LOST, "l1": 2 * 745.1}, {**MOST_LOST, "l2": 2.1 * 745**2}, {"l1": 1.0, "l2": 0.4999}),
            *({"n2": 2.0, "k1": -1e-9, "k2": 0.0},),
        ),
    ),
    "counted pairs": Limit(
        a_pair,
        ({}, {"d1": -1.0, "d2": 1.0}, {"d2": 1.0}, {"e1": 0.5, "e2": 0.25}, {"d1": 1.0, "d2": 1 - ROUNDING}),
        (
            *({"d1": 1.0, "d2": 1 - 1e-8}, {"d1": -1.0}, {"e1": 0.5, "e2": 0.2499}, {"d1": math.inf, "d2": math.inf}),
            *({"e2": math.inf}, {"e1": math.nan}, {"s1_b": 0.6}, {"l1_a": -1.0}),
        ),
    ),
    "nested JSON": Limit(
        lambda v: [json_of(v * "[" + "1" + v * "]", "", ""), json_of(v * '{"a":' + "1" + v * "}", "", "")],
        (1, MAX_DEPTH),
        (MAX_DEPTH + 1,),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_taken_at_most_and_at_least(name: str) -> None:
    limit = LIMITS[name]
    for value in limit.taken:
        limit.done(value)
    for value in limit.refused:
        with pytest.raises(DecalError) as error:
            limit.done(value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("kinds", [METRICS, METHODS, ONLINE], ids=["metrics", "methods", "forecasters"])
def test_parameters_lie_between_the_limits_that_they_declare(kinds: dict[str, Any]) -> None:
    limited = [each for declared in kinds.values() for each in declared.parameters if each.kind in (int, float)]
    limited = [each for each in limited if all(map(math.isfinite, each.limits))]
    assert limited
    for parameter in limited:
        low, high = parameter.limits
        step = 1 if parameter.kind is int else (high - low) / 1e9
        for inside, outside in ((low + step, low), (high - step, high)):
            assert parameter.parse(str(parameter.kind(inside))) == parameter.kind(inside)
            if outside != parameter.default:
                with pytest.raises(DecalError):
                    parameter.parse(str(parameter.kind(outside)))


def test_a_document_holds_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("abc")
    assert read_document(str(path), "a file", "shorten it", 3) == "abc"
    with pytest.raises(DecalError, match="holds more than"):
        read_document(str(path), "a file", "shorten it", 2)
    monkeypatch.setattr(documents, "MAX_VALUES", 4)
    for text, more in (("[1,2,3,4]", "[1,2,3,4,5]"), ('[{"a":{}},2]', '[{"a":{}},{}]'), ("[[],[]]", "[[],[],[]]")):
        json_of(text, "a file", "shorten it")
        with pytest.raises(DecalError, match="holds more than 4 values"):
            json_of(more, "a file", "shorten it")


@pytest.mark.parametrize(
    ("value", "number"), [(0, True), (9.9e299, True), (1e300, False), (True, False), (math.inf, False), ("1", False)]
)
def test_a_setting_is_a_number_a_matrix_or_neither(value: object, number: bool) -> None:
    assert settings._is_number(value) == number
    assert settings._is_matrix([[0, value], [1, 0]]) == number
    assert not settings._is_matrix([[0, 1]]) and not settings._is_matrix([[0], [1]])


def test_scores_and_labels_look_swapped_only_where_the_scores_are_labels() -> None:
    assert asking.swapped([0, 1, 1], [0.0, 0.3, 1.0], "evaluate(scores, labels)")
    for scores, labels in (([0, 1], [0, 1]), ([0, 1], [0.5, 1.1]), ([0, 1], [0.5, -0.1]), ([0, 0.5], [0.1, 0.2])):
        assert asking.swapped(scores, labels, "evaluate(scores, labels)") is None
    shapes = {(): True, (1, 2): False, (2, 1): False, (2, 2): True, (3, 3): True, (4,): False}
    assert {shape: asking.is_decision(np.zeros(shape)) for shape in shapes} == shapes


def test_texts_are_cut_where_they_are_long() -> None:
    assert [quote("x" * size) for size in (58, 59)] == [f"'{58 * 'x'}'", f"'{44 * 'x'}...{9 * 'x'}'"]
    assert [listed("abc", most) for most in (3, 2)] == ["a, b, c", "a, b, ... (3 in all)"]
    assert listed("abcdefg", 6) == "a, b, c, d, ..., f, g (7 in all)"
    assert [drawable("x" * size) for size in (MAX_NAME, MAX_NAME + 1)] == [
        "x" * MAX_NAME, f"{'x' * (MAX_NAME // 2)}...{'x' * -(-MAX_NAME // 4)}"
    ]  # fmt: skip


@pytest.mark.parametrize("value", [0.0, 1.0, ABOVE_1, BELOW_0, BELOW_1, 1e-300, -1e-300, 2.5, -0.0])
def test_a_number_is_shown_on_its_side_of_0_and_of_1(value: float) -> None:
    shown = float(number(value))
    assert (shown > 1, shown < 0) == (value > 1, value < 0)
    assert len(number(value)) <= 6 or value in (ABOVE_1, BELOW_0, -1e-300)


def test_what_a_library_says_is_cut_where_it_is_long() -> None:
    said = [first_line(ValueError(f" {'x' * size} \nmore")) for size in (200, 201)]
    assert said == ["x" * 200, "x" * 197 + "..."]


def test_long_values_are_shown_by_their_type() -> None:
    assert repr(decal.Data("x" * 47)) == f"Data(source='{'x' * 47}')"
    assert repr(decal.Data("x" * 48)) == "Data(source=<str>)"
