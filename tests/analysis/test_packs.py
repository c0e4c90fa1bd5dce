"""Packs: their measures exist, gaps between groups follow from the groups' intervals, scores by outcome are counted."""

import math

import numpy as np
import pytest

from decal_cli.analysis.packs import PACKS, QUANTILES, by_outcome, gaps_of
from decal_cli.metrics import METRICS, Inputs, measure_all, parse
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


def test_a_gap_is_that_of_the_two_extreme_groups_at_a_level_for_all_pairs() -> None:
    """Zou and Donner 2008, by hand, from intervals at 1 - .05 / 3: three groups make three pairs."""
    rows, choice = grouped(), parse("selection_rate")
    (gap,) = gaps_of("m", rows, [choice], Inputs(None, TASK), 0.95)
    parts = {str(name): rows.take(rows.groups["site"] == name) for name in "abc"}
    each = {name: measure_all([choice], Inputs(part, TASK), 1 - 0.05 / 3)[choice] for name, part in parts.items()}
    rate = {name: float(np.mean(part.score >= 0.3)) for name, part in parts.items()}
    high, low = max(rate, key=rate.__getitem__), min(rate, key=rate.__getitem__)
    assert (gap.high, gap.low, gap.column, gap.groups) == (high, low, "site", 3)
    assert gap.difference == pytest.approx(rate[high] - rate[low], abs=1e-12)
    (high_from, high_to), (low_from, low_to) = each[high].interval or (0, 0), each[low].interval or (0, 0)
    down = math.sqrt((rate[high] - high_from) ** 2 + (low_to - rate[low]) ** 2)
    up = math.sqrt((high_to - rate[high]) ** 2 + (rate[low] - low_from) ** 2)
    assert gap.interval == pytest.approx((gap.difference - down, gap.difference + up), abs=1e-12)
    assert gap.clear == (gap.interval[0] > 0)


def test_groups_that_are_alike_differ_beyond_noise_at_most_as_often_as_stated() -> None:
    rng, clear = np.random.default_rng(11), 0
    for _ in range(200):
        score = rng.uniform(size=300)
        rows = Rows(
            score, (rng.uniform(size=300) < score).astype(int), groups={"g": rng.integers(4, size=300).astype(str)}
        )
        clear += next(iter(gaps_of("m", rows, [parse("selection_rate")], Inputs(None, TASK), 0.9))).clear
    # .1 of 200, and three standard errors.
    assert clear <= 33


def test_a_metric_that_one_group_alone_has_makes_no_gap() -> None:
    rows = Rows(np.array([0.2, 0.8, 0.5, 0.6]), np.array([0, 1, 1, 1]), groups={"g": np.array(["a", "a", "b", "b"])})
    keys = [gap.metric for gap in gaps_of("m", rows, [parse("auc"), parse("brier")], Inputs(None, TASK), None)]
    assert keys == ["brier"]


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_by_outcome_are_those_of_numpy(weighted: bool) -> None:
    rows = grouped()
    weight = np.random.default_rng(3).integers(1, 4, len(rows)).astype(float) if weighted else None
    zero, one = by_outcome(Rows(rows.score, rows.label, weight))
    for each in (zero, one):
        which = rows.label == each.label
        repeated = rows.score[which] if weight is None else np.repeat(rows.score[which], weight[which].astype(int))
        assert each.rows == which.sum()
        assert each.mean == pytest.approx(repeated.mean(), abs=1e-12)
        expected = np.quantile(repeated, QUANTILES, method="inverted_cdf")
        assert list(each.quantiles.values()) == pytest.approx(expected, abs=1e-12)
