"""Packs: their measures exist, gaps between groups follow from the groups' intervals, scores by outcome are counted."""

import math

import numpy as np
import pytest

from decal_cli.analysis import packs
from decal_cli.analysis.packs import PACKS, QUANTILES, GroupComparison, by_outcome, compare_groups, simultaneous
from decal_cli.metrics import METRICS, Inputs, Result, measure_all, parse
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

TASK = BinaryTask.of_threshold(0.3)


def grouped(n: int = 600, seed: int = 5) -> Rows:
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    score = rng.uniform(0.01, 0.99, n)
    label = (rng.uniform(size=n) < np.where(group == "a", score, score**2)).astype(int)
    return Rows(score, label, groups={"site": group})


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_names_metrics_of_scores_of_two_classes(name: str) -> None:
    pack = PACKS[name]
    assert all(METRICS[choice.name].takes(False) for choice in pack.choices)
    assert len(set(pack.measures.values())) == len(pack.measures)
    assert all(note and note[0] != " " for note in pack.notes)


def comparison_of(rows: Rows, metric: str, confidence: float | None = 0.95) -> GroupComparison:
    ((_, _, found),) = compare_groups("m", rows, [parse(metric)], lambda part: Inputs(part, TASK), confidence)
    return found


def test_a_gap_follows_from_the_intervals_of_the_groups_at_a_level_for_all_pairs() -> None:
    """Zou and Donner 2008, by hand, at the level of Tukey and Kramer: 3.3145 / sqrt 2 standard errors."""
    rows, choice = grouped(), parse("selection_rate")
    level = math.erf(3.3145 / 2)
    assert simultaneous(0.95, 3) == pytest.approx(level, abs=1e-5)
    found = comparison_of(rows, "selection_rate")
    parts = {str(name): rows.take(rows.groups["site"] == name) for name in "abc"}
    sure = simultaneous(0.95, 3)
    each = {name: measure_all([choice], Inputs(part, TASK), sure)[choice] for name, part in parts.items()}
    rate = {name: float(np.mean(part.score >= 0.3)) for name, part in parts.items()}
    for gap in found.pairs:
        assert (gap.column, gap.groups) == ("site", 3)
        assert gap.difference == pytest.approx(rate[gap.high] - rate[gap.low], abs=1e-12) and gap.difference >= 0
        (high_from, high_to), (low_from, low_to) = each[gap.high].interval or (0, 0), each[gap.low].interval
        down = math.sqrt((rate[gap.high] - high_from) ** 2 + (low_to - rate[gap.low]) ** 2)
        up = math.sqrt((high_to - rate[gap.high]) ** 2 + (rate[gap.low] - low_from) ** 2)
        assert gap.interval == pytest.approx((gap.difference - down, gap.difference + up), abs=1e-12)
        assert (gap.high_rows, gap.low_rows) == (len(parts[gap.high]), len(parts[gap.low]))
    assert found.largest.value == pytest.approx(max(rate.values()) - min(rate.values()), abs=1e-12)


def test_the_largest_gap_may_be_that_of_a_pair_whose_order_noise_turned() -> None:
    """By hand: b is .1 above a. c, measured above both, may be as low as .22, which is .38 below b."""
    ends = {"a": (0.5, (0.5, 0.5)), "b": (0.6, (0.6, 0.6)), "c": (0.62, (0.22, 0.63))}
    measured = {group: Result(value, interval) for group, (value, interval) in ends.items()}
    found = packs._compare("m", "site", "selection_rate", dict.fromkeys(ends, 100.0), measured)
    assert found.largest.value == pytest.approx(0.12) and found.largest.interval == pytest.approx((0.1, 0.38))


def test_every_clear_pair_is_listed_and_the_most_certain_comes_first() -> None:
    rng = np.random.default_rng(2)
    rates = {"a": (0.6, 900), "b": (0.3, 900), "c": (0.3, 300), "d": (0.9, 40)}
    group = np.repeat(list(rates), [size for _, size in rates.values()])
    score = np.concatenate([np.where(rng.uniform(size=size) < rate, 0.8, 0.1) for rate, size in rates.values()])
    label = (rng.uniform(size=len(score)) < 0.5).astype(int)
    found = comparison_of(Rows(score, label, groups={"g": group}), "selection_rate")
    pairs = [(gap.high, gap.low) for gap in found.pairs]
    assert set(pairs) == {("a", "b"), ("a", "c"), ("d", "a"), ("d", "b"), ("d", "c")}
    assert all(gap.clear for gap in found.pairs)
    noise = [gap.difference / (gap.difference - gap.interval[0]) for gap in found.pairs if gap.interval]
    assert noise == sorted(noise, reverse=True)
    assert found.largest.interval[0] == max(gap.interval[0] for gap in found.pairs if gap.interval)


def test_of_gaps_within_noise_the_one_nearest_to_certain_is_listed() -> None:
    """Not that of the largest groups, whose interval may reach least far below 0 however small it is."""
    rates = {"a": (0.50, 1000), "b": (0.505, 1000), "c": (0.60, 100)}
    score = np.concatenate([np.arange(size) < rate * size for rate, size in rates.values()]) * 0.7 + 0.1
    group = np.repeat(list(rates), [size for _, size in rates.values()])
    found = comparison_of(Rows(score, np.arange(len(score)) % 2, groups={"g": group}), "selection_rate")
    assert [(gap.high, gap.low, gap.clear) for gap in found.pairs] == [("c", "a", False)]


def test_groups_that_are_too_small_change_no_interval_and_are_named() -> None:
    rows, rng = grouped(), np.random.default_rng(4)
    more = 5 * 29
    many = Rows(
        np.append(rows.score, rng.uniform(size=more)),
        np.append(rows.label, rng.integers(2, size=more)),
        groups={"site": np.append(rows.groups["site"], np.repeat([f"s{k}" for k in range(5)], 29))},
    )
    for metric in ("selection_rate", "sensitivity", "auc", "expected_utility"):
        alone, among = comparison_of(rows, metric), comparison_of(many, metric)
        assert among.pairs == alone.pairs and among.largest == alone.largest and not alone.too_small
        assert {each.group for each in among.too_small} == {f"s{k}" for k in range(5)}
        assert all(each.rows < 30 for each in among.too_small)


@pytest.mark.long
@pytest.mark.parametrize("shape", [(75, 75, 75, 75), (300, 60, 40, 40, 35, 35)])
def test_intervals_of_all_pairs_hold_at_once_as_often_as_stated(shape: tuple[int, ...]) -> None:
    """Groups of one rate: a pair that is clear is an interval that misses."""
    rng, missed, times = np.random.default_rng(11), 0, 300
    group = np.repeat([f"g{k}" for k in range(len(shape))], shape)
    for _ in range(times):
        score = rng.uniform(size=len(group))
        rows = Rows(score, (rng.uniform(size=len(group)) < score).astype(int), groups={"g": group})
        missed += comparison_of(rows, "selection_rate", 0.9).pairs[0].clear
    # .1 of 300, and three standard errors.
    assert missed <= 45


def test_a_metric_that_one_group_alone_has_makes_no_gap() -> None:
    score, group = np.linspace(0.01, 0.99, 80), np.repeat(["a", "b"], 40)
    rows = Rows(score, np.append(np.zeros(40, int), np.arange(40) % 2), groups={"g": group})
    assert comparison_of(rows, "brier", None).pairs
    found = comparison_of(rows, "auc", None)
    assert not found.pairs and found.largest.value is None


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_by_outcome_are_those_of_numpy(weighted: bool) -> None:
    rows = grouped()
    weight = np.random.default_rng(3).integers(1, 4, len(rows)).astype(float) if weighted else None
    zero, one = by_outcome(Rows(rows.score, rows.label, weight)).labels
    for each in (zero, one):
        which = rows.label == each.label
        repeated = rows.score[which] if weight is None else np.repeat(rows.score[which], weight[which].astype(int))
        assert each.rows == which.sum()
        assert each.mean == pytest.approx(repeated.mean(), abs=1e-12)
        expected = np.quantile(repeated, QUANTILES, method="inverted_cdf")
        assert list(each.quantiles.values()) == pytest.approx(expected, abs=1e-12)
