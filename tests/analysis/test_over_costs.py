"""Advice where costs are not known: at every number it is that of one decision, and in a known world it is right."""

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import decal_cli as decal
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.over_costs import STEPS, Unknown
from decal_cli.analysis.recommend import LOOKED_AT, Elsewhere
from decal_cli.analysis.sweep import series_for, sweep_tasks
from decal_cli.api.asking import Asked
from decal_cli.data import Columns, Dataset, from_arrays, read
from decal_cli.metrics import Inputs, grouping, parse, value_of
from decal_cli.metrics.families.classes import area_influence, risk_at
from decal_cli.tables.table import tabulate
from decal_cli.task import BinaryTask, ClassTask, parse_varied, task_of
from tests.helpers.command import BINARY

ONE = ("recommend", BINARY, "-s", "p", "-y", "y")


@pytest.fixture(scope="module")
def ranged() -> decal.RecommendAnswer:
    return decal.recommend(str(BINARY), score="p", label="y")


@cache
def advised(**decision: float) -> tuple[str, str | None, str | None]:
    """What `recommend` says to do at one decision: the action, its method, or the constant decision instead."""
    return decal.recommend(str(BINARY), score="p", label="y", **decision).advice.same


@pytest.mark.ci
def test_at_each_number_it_is_the_advice_of_one_decision_and_wins_as_much(ranged) -> None:
    (stretches,) = ranged.stretches
    assert len(stretches) > 2
    for stretch in stretches:
        same = stretch.action, stretch.method, stretch.constant
        assert {advised(threshold=number) for number in (stretch.low, stretch.high)} == {same}
        if stretch.best is not None:
            assert stretch.low <= stretch.best.at <= stretch.high and stretch.best.threshold == stretch.best.at
    best = max((each.best for each in stretches if each.action == "recalibrate"), key=lambda best: best.gain)
    advice = decal.recommend(str(BINARY), best.threshold, score="p", label="y").advice
    assert best.gain == pytest.approx(advice.act_now.gain, rel=1e-9)
    assert advice.interval is None or best.interval == pytest.approx(advice.interval, rel=1e-9)


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
def test_the_interval_of_a_gain_is_after_the_cost_as_the_gain_is() -> None:
    def best(cost: float) -> Any:
        given = {"features": "x*", "costs": decal.Costs(cost), "threshold": "0.3:0.31"}
        ((stretch,),) = decal.recommend(str(BINARY), score="p", label="y", **given).stretches
        return stretch.best

    free, costly = best(0.0), best(0.001)
    assert costly.gain == pytest.approx(free.gain - 0.001)
    assert costly.interval == pytest.approx([end - 0.001 for end in free.interval])


def test_stretches_meet_and_cover_the_range(ranged) -> None:
    (stretches,) = ranged.stretches
    assert (stretches[0].low, stretches[-1].high) == (0.01, 0.99)
    for one, next_one in itertools.pairwise(stretches):
        assert next_one.low == pytest.approx(one.high + 0.01)
        assert (one.action, one.method, one.constant) != (next_one.action, next_one.method, next_one.constant)


@pytest.mark.ci
@pytest.mark.parametrize(
    "decision",
    [
        {"cost_fp": 3.0, "cost_fn": 2.0},
        *(pytest.param({"threshold": t}, marks=pytest.mark.long) for t in (0.3, 0.8, 0.005)),
    ],
)
def test_advice_holds_from_and_to_thresholds_where_it_is_that_of_one_decision(decision: dict[str, float]) -> None:
    answer = decal.recommend(str(BINARY), score="p", label="y", **decision)
    low, high = answer.result.recommendation.holds["p"]
    own = answer.result.evaluation.task.threshold
    assert low <= own <= high
    within = [each for each in (low, (low + own) / 2, (own + high) / 2, high) if 0 < each < 1]
    assert {advised(threshold=each) for each in within} == {answer.advice.same}
    beyond = [max((each for each in LOOKED_AT if each < low), default=None)]
    beyond += [min((each for each in LOOKED_AT if each > high), default=None)]
    assert all(advised(threshold=each) != answer.advice.same for each in beyond if each is not None)


@pytest.mark.ci
def test_no_other_advice_hides_between_thresholds_of_the_same() -> None:
    """Few rows, of which thresholds a hundredth apart are advised differently."""
    rng = np.random.default_rng(5)
    score = rng.random(300)
    rows = score, (rng.random(300) < score).astype(int)
    (stretches,) = decal.recommend(rows).stretches
    answer = decal.recommend(rows, 0.5)
    low, high = answer.result.recommendation.holds["score"]
    for threshold in (0.45, 0.49, 0.51, 0.53, 0.57, 0.58, 0.59):
        same = decal.recommend(rows, threshold).advice.same
        assert same == answer.advice.same or not low <= threshold <= high
        (stretch,) = (each for each in stretches if each.low <= threshold <= each.high)
        assert (stretch.action, stretch.method, stretch.constant) == same


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
def test_advice_holds_for_costs_that_add_up_to_the_same() -> None:
    """Post-training at a cost of .1 pays where errors cost 100 together, and nowhere where they cost 1."""
    data, held = decal.Data(str(BINARY), score="p", label="y", features="x*"), []
    for both in (100.0, 1.0):
        decision = decal.Decision.costs(fp=0.3 * both, fn=0.7 * both)
        answer = decal.recommend(data, decision, costs=decal.Costs(0.1))
        held.append((answer.advice.act_now.action, *answer.result.recommendation.holds["p"]))
    (dear, *some), (cheap, *_) = held
    assert (dear, cheap) == ("post-train", "done")
    assert some[0] < 0.3 < some[1]


def test_rows_are_counted_apart_at_every_number_of_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, rows = [], Asked.rows
    monkeypatch.setattr(Asked, "rows", lambda asked, edges: counted.extend(edges) or rows(asked, edges))
    decal.recommend((np.array([0.2, 0.7] * 20), np.array([0, 1] * 20)), cost_fp=1.0, cost_fn="3:8")
    numbers = Unknown("cost_fn", 3.0, 8.0)
    assert counted == pytest.approx(sorted(1 / (1 + numbers.at(step)) for step in range(STEPS + 1)))


@pytest.mark.parametrize(("tolerance", "drawn"), [(0.0, 0), (1.0, STEPS + 1)])
def test_the_end_of_the_worst_case_is_drawn_only_where_it_may_be_small(
    monkeypatch: pytest.MonkeyPatch, tolerance: float, drawn: int
) -> None:
    ends, worst = [], grouping.worst
    monkeypatch.setattr(grouping, "worst", lambda *given: ends.append(worst(*given)) or ends[-1])
    decal.recommend((np.array([0.2, 0.7] * 20), np.array([0, 0, 1, 1] * 10)), tolerance=tolerance)
    assert len(ends) == drawn


def test_numbers_of_a_range_have_the_decimals_of_its_steps_and_its_ends() -> None:
    thresholds = Unknown("threshold", 0.01, 0.99)
    assert [thresholds.at(step) for step in range(STEPS + 1)] == [round(0.01 * k, 2) for k in range(1, 100)]
    costs = Unknown("cost_fn", 3.0, 8.0)
    assert (costs.at(0), costs.at(1), costs.at(STEPS)) == (3.0, 3.05, 8.0)


CLASSES = ("a", "b", "c")
COSTS = "a,0,2,2;b,5,0,2;c,5,1,0"


def write(path: Path, rows: int = 200) -> Path:
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.full(3, 0.8), rows)
    label = [CLASSES[rng.choice(3, p=each)] for each in score]
    lines = [",".join((label[k], "uv"[k % 2], *map(repr, score[k].tolist()))) for k in range(rows)]
    path.write_text("\n".join(["y,g,m:a,m:b,m:c", *lines]) + "\n")
    return path


def of_two(path: Path) -> Dataset:
    rng = np.random.default_rng(1)
    score = rng.random(300)
    return from_arrays({"p": score}, (rng.random(300) < score).astype(int))


def of_three(path: Path) -> Dataset:
    return read([str(write(path))], Columns(proba=("m:*",), label="y"))


VARIED: dict[str, tuple[Any, Any, str, tuple[float, ...], Callable[[float], Any], tuple[str, ...]]] = {
    "the price of abstaining": (
        *(of_three, ClassTask(abstain=0.3), "abstain=0.05,0.2,0.45,1", (0.05, 0.2, 0.3, 0.45, 1.0)),
        *(lambda price: np.vstack((np.eye(3), np.full(3, 1 - price))), ()),
    ),
    "an entry of a cost matrix, in units of cost": (
        *(of_three, task_of(cost_matrix=COSTS), "c:a=1:9:4", (1, 5, 9)),
        *(lambda cost: -np.array([[0, 2, 2], [5, 0, 2], [cost, 1, 0]]), CLASSES),
    ),
    "an entry of two classes and three actions": (
        *(of_two, task_of(utility="wait,0,-20;test,-2,-3;treat,-5,-1"), "test:1=-9,-3", (-9, -3)),
        *(lambda value: np.array([[0, -20], [-2, value], [-5, -1]]), ("wait", "test", "treat")),
    ),
}
"""Rows, task, what varies, its values, utilities at each, and actions."""


@pytest.mark.parametrize("what", VARIED)
def test_what_is_done_and_won_at_each_value_is_that_of_the_rows(what: str, tmp_path: Path) -> None:
    rows_of, task, text, values, utility, actions = VARIED[what]
    data, plan = rows_of(tmp_path / "rows.csv"), Plan((), task)
    sweep = sweep_tasks(data, plan, series_for(data, plan, parse_varied(text), costs=":a=" in text))
    rows, report = data.models[0].rows, sweep.reports[0]
    assert sweep.series.values == values and sweep.series.own in (0.3, 5, -3)
    shares = rows.score if rows.classes else np.column_stack((1 - rows.score, rows.score))
    for k, value in enumerate(values):
        matrix = utility(value)
        taken = np.argmax(np.round(shares @ matrix.T, 12), axis=1)
        won = matrix[taken, rows.label.astype(int)]
        assert report.worth["expected_utility"].value[k] == pytest.approx(won.mean(), abs=1e-9)
        for number, name in enumerate(actions):
            assert report.done[f"share[{name}]"].value[k] == pytest.approx((taken == number).mean())
        if not actions:
            assert report.done["coverage"].value[k] == pytest.approx((taken < 3).mean())
            assert report.done["accepted_error"].value[k] == pytest.approx(1 - won[taken < 3].mean())
            inputs = Inputs(rows, ClassTask(abstain=value).for_classes(CLASSES), 0)
            for name in ("external_regret", "gain_recalibration"):
                assert report.worth[name].value[k] == pytest.approx(value_of(parse(name), inputs), abs=1e-12), name
    assert bool(report.risks) != bool(actions)


def test_of_more_than_eight_actions_the_share_of_the_varied_one_alone_is_shown(tmp_path: Path) -> None:
    utility = np.array([[-(k**2), -((8 - k) ** 2)] for k in range(9)])
    data = of_two(tmp_path / "rows.csv")
    plan = Plan((), task_of(utility=";".join(f"a{k},{no},{yes}" for k, (no, yes) in enumerate(utility))))
    (report,) = sweep_tasks(data, plan, series_for(data, plan, parse_varied("a3:1=-30,-20"))).reports
    score, shares = data.models[0].rows.score, []
    for value in (-30, -25, -20):
        utility[3, 1] = value
        shares.append((np.argmax(np.column_stack((1 - score, score)) @ utility.T, axis=1) == 3).mean())
    assert {name: curve.value.tolist() for name, curve in report.done.items()} == {"share[a3]": pytest.approx(shares)}


def test_the_risk_of_ties_is_the_mean_over_their_orders() -> None:
    t = tabulate(np.array([0.9, 0.9, 0.9, 0.5]), np.array([1, 1, 0, 0]))
    risk, rows = risk_at(t, np.array([0.25, 0.5, 0.75, 1.0]))
    assert risk == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.5])
    assert rows == pytest.approx([1, 2, 3, 4])
    weighted = tabulate(np.array([0.9, 0.5]), np.array([1, 0]), np.array([1.0, 3.0]))
    assert risk_at(weighted, np.array([0.25, 0.5, 1.0]))[0] == pytest.approx([0, 0.5, 0.75])


def test_the_error_of_the_area_is_that_of_redrawn_rows() -> None:
    rng = np.random.default_rng(2)
    score = rng.beta(4, 1, 600)
    right = rng.random(600) < score
    t = tabulate(score, right)
    good, bad = area_influence(t)
    each = np.where(right, good[np.searchsorted(t.score, score)], bad[np.searchsorted(t.score, score)])
    assert abs(each.mean()) < 1e-3

    def area(which: np.ndarray) -> float:
        order = np.argsort(-score[which], kind="stable")
        return float((np.cumsum(~right[which][order]) / np.arange(1, 601)).mean())

    drawn = [area(rng.integers(0, 600, 600)) for _ in range(400)]
    assert each.std() / np.sqrt(600) == pytest.approx(np.std(drawn), rel=0.12)


class Stepped(Elsewhere):
    """Advice that is another one from .3 on, but for a stretch about .58."""

    def __init__(self) -> None:
        pass

    def advise(self, task: BinaryTask) -> Any:
        return SimpleNamespace(same=task.threshold > 0.299 and not 0.5795 < task.threshold < 0.5835)


@pytest.mark.parametrize("steps", [100, 1000])
def test_advice_along_thresholds_is_that_at_each_of_them(steps: int) -> None:
    """It is asked for at every hundredth, and where it changes between two of these."""
    at = (np.arange(1, steps) / steps).tolist()
    along = Stepped().along(BinaryTask.of_threshold(at[40]), at)
    assert [each.same for each in along] == [Stepped().advise(BinaryTask.of_threshold(each)).same for each in at]
