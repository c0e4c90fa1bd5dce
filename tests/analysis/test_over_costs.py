"""Advice where costs are not known: at every number it is that of one decision, and in a known world it is right."""

import itertools
import json
import re
from functools import cache

import numpy as np
import pytest

import decal_cli as decal
from decal_cli.analysis.recommend import LOOKED_AT, STEPS, Unknown
from tests.helpers.command import BINARY, FIXTURES, Decal

ONE = ("recommend", BINARY, "-s", "p", "-y", "y")


@pytest.fixture(scope="module")
def ranged() -> decal.RecommendAnswer:
    return decal.recommend(str(BINARY), score="p", label="y")


@cache
def advised(**decision: float) -> tuple[str, str | None, str | None]:
    """What `recommend` says to do at one decision: the action, its method, or the constant decision instead."""
    return decal.recommend(str(BINARY), score="p", label="y", **decision).advice.same


def test_at_each_number_it_is_the_advice_of_one_decision(ranged) -> None:
    (stretches,) = ranged.stretches
    assert len(stretches) > 2
    for stretch in stretches:
        same = stretch.action, stretch.method, stretch.constant
        for number in {stretch.low, stretch.high}:
            assert advised(threshold=number) == same
        if stretch.best is not None:
            assert stretch.low <= stretch.best.at <= stretch.high and stretch.best.threshold == stretch.best.at


def test_what_is_won_is_the_gain_of_one_decision(ranged) -> None:
    (stretches,) = ranged.stretches
    best = max((each.best for each in stretches if each.action == "recalibrate"), key=lambda best: best.gain)
    advice = decal.recommend(str(BINARY), best.threshold, score="p", label="y").advice
    assert best.gain == pytest.approx(advice.act_now.gain, rel=1e-9)
    assert advice.interval is None or best.interval == pytest.approx(advice.interval, rel=1e-9)


def test_stretches_meet_and_cover_the_range(ranged) -> None:
    (stretches,) = ranged.stretches
    assert (stretches[0].low, stretches[-1].high) == (0.01, 0.99)
    for one, next_one in itertools.pairwise(stretches):
        assert next_one.low == pytest.approx(one.high + 0.01)
        assert (one.action, one.method, one.constant) != (next_one.action, next_one.method, next_one.constant)


def test_a_score_that_is_wrong_between_two_thresholds_is_recalibrated_there_alone() -> None:
    """Scores say .5 where the truth is .2, and are right elsewhere: decisions are wrong from .2 to .5."""
    rng = np.random.default_rng(0)
    score = rng.choice([0.05, 0.5, 0.9], 20_000)
    label = rng.random(20_000) < np.where(score == 0.5, 0.2, score)
    answer = decal.recommend((score, label))
    (stretches,) = answer.stretches
    (wrong,) = [each for each in stretches if each.action == "recalibrate"]
    assert wrong.low == pytest.approx(0.23, abs=0.03) and wrong.high == 0.5
    assert wrong.best is not None and wrong.best.at == 0.5
    # A third of the rows is acted on, which loses .5 - .2 each.
    assert wrong.best.gain == pytest.approx(0.3 / 3, abs=0.01)


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


def test_where_rows_have_costs_of_their_own_no_threshold_is_named(decal: Decal) -> None:
    assert "This advice holds for thresholds from 0.2 to 0.54." in decal(*ONE, "-t", "0.3").out
    assert "advice holds" not in decal(*ONE, "-t", "0.3", "--capacity", "0.1").out


def test_numbers_of_a_range_have_the_decimals_of_its_steps_and_its_ends() -> None:
    thresholds = Unknown("threshold", 0.01, 0.99)
    assert [thresholds.at(step) for step in range(STEPS + 1)] == [round(0.01 * k, 2) for k in range(1, 100)]
    costs = Unknown("cost_fn", 3.0, 8.0)
    assert (costs.at(0), costs.at(1), costs.at(STEPS)) == (3.0, 3.05, 8.0)


def test_a_cost_that_is_not_known_is_a_range_of_thresholds(decal: Decal) -> None:
    done = decal(*ONE, "--cost-fp", "1", "--cost-fn", "3:8", "-f", "json")
    assert done.code == 0
    (report,) = json.loads(done.out)["reports"]
    named = report["range"]
    assert (named["number"], named["low"], named["high"]) == ("cost_fn", 3, 8)
    assert named["stretches"][0]["thresholds"][0] == 1 / 4 and named["stretches"][-1]["thresholds"][1] == 1 / 9
    assert report["task"] is None


def test_the_page_says_what_to_do_first_and_where_in_a_table(decal: Decal) -> None:
    out = decal(*ONE, "-t", "0.5:0.9").out
    lines = out.splitlines()
    assert lines[1].startswith("→ What to do depends on the costs.") and "threshold from 0.5 to 0.9" in lines[-2]
    assert any(re.match(r"from 0.7\d* to 0.9 ", line) and "Never act" in line for line in lines)
    assert decal(*ONE, "-t", "0.25:0.35").out.splitlines()[1] == (
        "→ Use the model as it is at every threshold from 0.25 to 0.35."
    )
    rows = decal(*ONE, "-t", "0.5:0.9", "-f", "csv").out.splitlines()
    assert rows[0].startswith("model,group,number,low,high,action") and len(rows) > 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("-t", "0.4:0.3"), "write the lower first: --threshold 0.1:0.4"),
        (("-t", "0.4:2"), "is no range of thresholds between 0 and 1"),
        (("-t", "a:b"), "is no range of thresholds"),
        (("--cost-fp", "0:3", "--cost-fn", "1"), "is no range of costs above 0"),
        (("--cost-fp", "1:3", "--cost-fn", "3:8"), "are both ranges"),
        (("--cost-fn", "3:8"), "one cost alone does not make a task; give --cost-fp too"),
        (("-t", "0.1:0.4", "--try"), "methods are tried for one decision"),
        (("-t", "0.1:0.4", "--capacity", "50/1000"), "--capacity needs one decision"),
    ],
)
def test_what_is_no_range_gets_one_line(line: tuple[str, ...], words: str, decal: Decal) -> None:
    done = decal(*ONE, *line)
    assert done.code == 2 and words in done.err and len(done.err.splitlines()) == 1


def test_a_range_is_for_advice_on_two_classes(decal: Decal) -> None:
    done = decal("evaluate", BINARY, "-t", "0.1:0.4")
    assert done.code == 2 and "decal recommend answers for a range" in done.err
    classes = (FIXTURES / "multiclass_n1500_k3.csv", "--proba", "p_*", "--label", "y")
    assert "a range is for scores of two classes" in decal("recommend", *classes, "-t", "0.1:0.4").err
    assert "needs the decision" in decal("recommend", *classes).err
