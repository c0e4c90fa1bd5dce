"""Brier curves of two models, the splice, and the comparison of all metrics: brute force, algebra, known worlds."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import decal_cli
from decal_cli.analysis.compare import (
    Comparison,
    SwapPart,
    Thresholds,
    compare,
    disagreements,
    exact_sign_test,
    swap,
)
from decal_cli.analysis.evaluate import Plan, all_choices
from decal_cli.analysis.splice import Cut, NoSplice, Splice, best_cut, splice
from decal_cli.curves.crossings import BrierDifference, Crossing, band, brier_difference
from decal_cli.data import Columns, Dataset, from_arrays
from decal_cli.errors import Undefined
from decal_cli.metrics import parse
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.families.ranking import delong
from decal_cli.render.results.comparison import Compared
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity, selected
from decal_cli.task import BinaryTask, ClassDecision
from tests.helpers.command import FOX, Decal
from tests.helpers.pairs import any_pairs, pair_columns
from tests.helpers.results import as_text

LEVELS = np.array([0.05, 0.1, 0.25, 0.3, 0.5, 0.8, 0.9, 1.0])


def cost_of(score: np.ndarray, label: np.ndarray, t: float) -> np.ndarray:
    """What deciding 1 iff score >= t costs each row [T 3.3a]."""
    return np.where(label == 1, (1 - t) * (score < t), t * (score >= t))


def difference_at(curves: BrierDifference, threshold: float) -> tuple[float, float]:
    """D at a threshold in (0, 1], and its standard error."""
    at = np.array([threshold])
    k = curves.segment_of(at)
    value = curves.alpha[k] + curves.beta[k] * at
    return float(value[0]), float(curves.error_at(at, k)[0])


@given(any_pairs, st.booleans(), st.booleans(), st.floats(0.001, 1.0))
def test_the_difference_of_the_curves_is_that_of_the_rows(rows: list, weighted: bool, known: bool, t: float) -> None:
    """Where the share of label 1 is known, rows vary about the mean of their label."""
    a, b, label, weight = pair_columns(rows)
    w = weight if weighted else np.ones(len(a))
    known = known and 0 < label.mean() < 1
    pairs = pair_up(a, b, label, weight if weighted else None)
    curves = brier_difference(pairs.with_known_share() if known else pairs)
    of_label = label == label[:, None] if known else np.ones((len(a), len(a)))
    for threshold in (t, *LEVELS):
        each = cost_of(b, label, threshold) - cost_of(a, label, threshold)
        centre = of_label @ (w * each) / (of_label @ w)
        # One more row of each label, as heavy as those there are, may be decided differently.
        weights = [w[label == one] if (label == one).any() else w for one in (1, 0)]
        heavy = [(of_one**2).sum() / of_one.sum() for of_one in weights]
        unseen = math.hypot(heavy[0] * (1 - threshold), heavy[1] * threshold)
        error = math.hypot(math.sqrt((w**2 * (each - centre) ** 2).sum()), unseen) / w.sum()
        mean = np.average(each, weights=w)
        assert difference_at(curves, threshold) == pytest.approx((mean, error), abs=1e-7)


def test_a_crossing_worked_by_hand() -> None:
    # A acts on the positive row alone up to .6, B on both rows up to .8: D(t) = t/2 on (.2, .6], then
    # B(t) = t/2 against A's (1 - t)/2, which cross at t = 1/2 were it not for the jump at .6.
    a, b, label = np.array([0.6, 0.2]), np.array([0.8, 0.8]), np.array([1, 0], dtype=np.uint8)
    curves = brier_difference(pair_up(a, b, label))
    assert difference_at(curves, 0.5)[0] == pytest.approx(0.25)
    assert difference_at(curves, 0.7)[0] == pytest.approx(0.35 - 0.15)
    assert difference_at(curves, 0.1)[0] == 0
    assert curves.dominates == "a" and brier_difference(pair_up(b, a, label)).dominates == "b"
    assert len(curves.zeros) == 0
    # On one segment: A decides 0 on both rows and B decides 1 on both, so D(t) = t/2 - (1 - t)/2 is 0 at 1/2.
    flat = brier_difference(pair_up(np.array([0.1, 0.1]), np.array([0.9, 0.9]), np.array([1, 0], dtype=np.uint8)))
    assert flat.zeros == pytest.approx([0.5])
    assert flat.dominates is None


SINGLE_90, SINGLE_95 = float(np.float32(0.9)), float(np.float32(0.95))


def stairs(edge: list[float], steps: list[float]) -> BrierDifference:
    """A difference of curves that is constant on each segment; 2 standard errors are about 0.02."""
    alpha = np.array(steps)
    nothing, many, rows = np.zeros((len(alpha), 2)), np.full((len(alpha), 2), 150.0), np.full(2, 500.0)
    return BrierDifference(np.array(edge), alpha, 0 * alpha, many, nothing, many[:, 0], rows, rows)


@pytest.mark.parametrize(
    ("edge", "steps", "ranges"),
    [
        ([0, 0.4, 1], [0.1, 0.2], [("a", 0, 1)]),
        ([0, 0.5, 0.55, 1], [0.1, 0.001, 0.1], [("a", 0, 1)]),
        ([0, SINGLE_90, SINGLE_95, 1], [0.1, 0.001, 0.1], [("a", 0, 1)]),
        ([0, 0.5, 0.56, 1], [0.1, 0.001, 0.1], [("a", 0, 0.5), ("a", 0.56, 1)]),
        ([0, 0.5, 1], [0.1, -0.1], [("a", 0, 0.5), ("b", 0.5, 1)]),
    ],
    ids=["wide segments", "a gap of 0.05", "a gap of 0.05 in single precision", "a wider gap", "the other one"],
)
def test_a_lead_goes_on_until_a_gap_or_the_other_one(edge: list[float], steps: list[float], ranges: list) -> None:
    assert [(lead.model, lead.low, lead.high) for lead in stairs(edge, steps).leads(2.0)] == ranges


@pytest.mark.parametrize(("back", "forth", "at"), [(-0.01, 0.005, 0.3), (-0.005, 0.01, 0.5)])
def test_of_crossings_within_noise_between_two_leads_the_one_is_taken_that_saves_most(
    back: float, forth: float, at: float
) -> None:
    """A leads up to 0.3 and B from 0.5 on. In between B saves 0.1 |back|, then A 0.1 forth."""
    curves = stairs([0, 0.3, 0.4, 0.5, 1], [0.2, back, forth, -0.2])
    assert curves.zeros.tolist() == [0.3, 0.4, 0.5]
    assert curves.crossings(2.0) == (Crossing(at, "a"),)


@given(any_pairs, st.floats(0.01, 0.99), st.sampled_from(["a", "b"]))
def test_a_splice_decides_by_both_and_stays_in_bounds(rows: list, z: float, below: str) -> None:
    a, b, label, _ = pair_columns(rows)
    score = Cut(z, below).scores(a, b)
    first, second = (a, b) if below == "a" else (b, a)
    assert ((score >= 0) & (score <= 1 + 1e-15)).all()
    # Z is the integral of the decisions, each by the model of its threshold (Tasche 2021, ex. 4.4).
    expected = np.minimum(first, z) + np.maximum(second - z, 0)
    np.testing.assert_allclose(score, expected, atol=1e-15)
    # And so its Brier score is at most what the two curves enclose (Tasche 2021, eq. 4.3b).
    curves = brier_difference(pair_up(first, second, label))
    area = ((first - label) ** 2).mean() + 2 * (curves.area[-1] - curves.areas_to(np.array([z]))[0])
    assert ((score - label) ** 2).mean() <= area + 1e-9


@given(any_pairs)
def test_the_best_cut_is_no_worse_than_any_other(rows: list) -> None:
    a, b, label, _ = pair_columns(rows)
    curves = brier_difference(pair_up(a, b, label))
    cut = best_cut(curves)
    grid = np.linspace(0, 1, 301)
    to = curves.areas_to(grid)
    least = min(float((curves.area[-1] - to).min()), float(to.min()))
    if cut is None:
        assert least >= min(0.0, curves.area[-1]) - 1e-12
        return
    at = curves.areas_to(np.array([cut.threshold]))[0]
    assert (curves.area[-1] - at if cut.below == "a" else at) <= least + 1e-12


def crossing_world(rows: int, seed: int) -> tuple[np.ndarray, ...]:
    """A knows only who is likely above one half, B only below: their curves cross there."""
    rng = np.random.default_rng(seed)
    chance = rng.random(rows)
    label = (rng.random(rows) < chance).astype(np.uint8)
    a, b = np.where(chance < 0.5, 0.25, chance), np.where(chance < 0.5, chance, 0.75)
    return a, b, label


def test_a_true_crossing_is_found_and_its_splice_wins_on_rows_held_out() -> None:
    a, b, label = crossing_world(4000, 0)
    pairs = pair_up(a, b, label)
    curves = brier_difference(pairs)
    reach = band(pairs, 0.95, np.random.default_rng(0))
    assert 2 < reach < 4
    assert [side for side, _ in itertools.groupby(lead.model for lead in curves.leads(reach))] == ["b", "a"]
    (crossing,) = curves.crossings(reach)
    assert crossing.below == "b"
    assert crossing.threshold == pytest.approx(0.5, abs=0.1)
    spliced = splice(pairs, curves, (crossing,), BinaryTask.of_threshold(0.3), np.random.default_rng(0), 0.95)
    assert spliced.cut.below == spliced.below == "b" and spliced.folds_agreeing == 5
    assert spliced.brier.interval[1] < 0
    # Held out it is a little worse than the cut that saw the rows.
    on_all = ((spliced.cut.scores(a, b) - label) ** 2).mean()
    assert on_all - 1e-3 < spliced.brier.value < on_all + 5e-3


def test_the_band_is_wider_than_the_pointwise_interval_and_infinite_without_disagreement() -> None:
    a, _, label = crossing_world(300, 1)
    assert band(pair_up(a, a, label), 0.95, np.random.default_rng(0)) == math.inf
    assert brier_difference(pair_up(a, a, label)).leads(math.inf) == ()


def test_the_band_of_a_known_share_is_that_of_both_orders_and_another_one() -> None:
    """Rows are drawn in one order of the models; the cells in that order know the share too."""
    a, b, label = crossing_world(300, 1)
    weight = np.where(label == 1, 3.0, 0.5)
    reach = [
        [band(pairs, 0.95, np.random.default_rng(0)) for pairs in (each, each.with_known_share())]
        for each in (pair_up(a, b, label, weight), pair_up(b, a, label, weight))
    ]
    assert reach[0] == pytest.approx(reach[1], rel=1e-9)
    assert abs(reach[0][0] - reach[0][1]) > 0.01


def test_no_splice_where_one_model_dominates_or_rows_are_too_few() -> None:
    label = np.array([0, 1] * 20, dtype=np.uint8)
    better, worse = np.where(label == 1, 0.9, 0.1), np.where(label == 1, 0.6, 0.4)
    rng = np.random.default_rng(0)
    pairs = pair_up(better, worse, label)
    with pytest.raises(Undefined, match="do not cross"):
        splice(pairs, brier_difference(pairs), (), None, rng, 0.95)
    crossing = Crossing(0.5, "a")
    few = pair_up(*(column[:9] for column in crossing_world(9, 0)))
    with pytest.raises(Undefined, match="at least 10 rows"):
        splice(few, brier_difference(few), (crossing,), None, rng, 0.95)


PAIRS = list(itertools.combinations(("p_profanity", "p_hatesonar", "p_hgb_hatemoji", "p_svm_waseem", "p_gnb_olid"), 2))


@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
@pytest.mark.parametrize("rows", [300, pytest.param(1519, marks=pytest.mark.long)])
def test_one_page_says_one_thing_of_the_crossings(names: tuple[str, str], rows: int) -> None:
    table = pq.read_table(FOX, columns=[*names, "y"])[:rows].drop_null()
    scores = {name: table[name].to_numpy() for name in names}
    result = Compared(compare(from_arrays(scores, table["y"].to_numpy()), Plan((parse("brier"),))))
    text, data = " ".join(as_text(result).split()), result.data()["comparison"]
    at, spliced = data["contests"][0]["thresholds"], data["splice"]
    met, clear = at["crossings_on_these_rows"], [each["threshold"] for each in at["crossings"]]
    assert ("clearly cross" in text) == bool(clear)
    assert ("smaller crossing" in text) == (met > len(clear) > 0)
    within = f"cross {'once' if met == 1 else f'{met} times'} on these rows, {'each time ' * (met > 1)}within noise"
    assert (within in text) == (met > 0 and not clear) == ("cross only within noise" in text)
    assert ("do not cross" in text) == (met == 0) == ("is nowhere above the other" in text)
    assert spliced["threshold"] in (clear if spliced["threshold"] is not None else [None])


def two_models(a: np.ndarray, b: np.ndarray, label: np.ndarray, **more: object) -> Dataset:
    return from_arrays({"p_a": a, "p_b": b}, label, **more)


PLAN = Plan(
    tuple(map(parse, ("brier", "auc", "ece", "spiegelhalter_z", "eu_never", "corp_mcb"))), BinaryTask.of_threshold(0.3)
)


@pytest.mark.ci
@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_every_interval_of_a_difference_holds_it(decimals: int) -> None:
    """A is so rounded that its levels have rows, of B every row has a level of its own."""
    rng = np.random.default_rng(0)
    chance = rng.random(600)
    dataset = two_models(chance.round(decimals), chance**1.3, (rng.random(600) < chance).astype(np.uint8))
    comparison = compare(dataset, replace(PLAN, choices=all_choices()))
    held = {key: each.difference for key, each in comparison.contests[0].differences.items()}
    held = {key: each for key, each in held.items() if each.interval is not None}
    assert len(held) > 30
    assert not [key for key, each in held.items() if not each.interval[0] <= each.value <= each.interval[1]]


@pytest.mark.ci
def test_that_a_score_has_fewer_levels_is_not_taken_for_a_difference() -> None:
    """Chance adds .01 to the miscalibration of 300 levels and .003 to that of ten, and to what is possible likewise."""
    claims = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        few = rng.choice(np.arange(1, 11) / 11, 300)
        many = few + rng.uniform(-0.01, 0.01, 300)
        dataset = two_models(many, few, (rng.random(300) < few).astype(np.uint8))
        choices = tuple(map(parse, ("corp_mcb", "corp_dsc", "utility_share")))
        both = compare(dataset, replace(PLAN, choices=choices)).contests[0].differences.values()
        claims += sum(each.by_chance is False for each in both)
    assert claims <= 2


@pytest.mark.ci
def test_chance_adds_more_to_the_largest_loss_over_all_agents_where_a_score_has_more_levels() -> None:
    """Without that, the score of ten levels was better, not by chance, in .15 of such samples."""
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        few = rng.choice(np.arange(1, 11) / 11, 400)
        dataset = two_models(few + rng.uniform(-0.01, 0.01, 400), few, (rng.random(400) < few).astype(np.uint8))
        (found,) = compare(dataset, replace(PLAN, choices=(parse("u_cal"),))).contests[0].differences.values()
        claims += found.by_chance is False
    assert claims <= 3


def test_what_is_possible_is_within_its_noise_by_the_confidence_that_is_asked_for() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.random(150)
    label = (rng.random(150) < 0.3 + 0.4 * drawn).astype(np.uint8)
    score = 0.3 + 0.4 * drawn
    dataset = two_models(score, np.clip(score + rng.normal(0, 0.15, 150), 0, 1), label)
    plan = Plan((parse("utility_share"),), BinaryTask.of_threshold(0.4))
    for confidence, has_interval in ((0.8, True), (0.95, False)):
        (found,) = compare(dataset, replace(plan, confidence=confidence)).contests[0].differences.values()
        assert (found.difference.interval is not None) is has_interval


def test_what_does_not_depend_on_the_model_differs_by_chance_at_most() -> None:
    """Sums of weights in two orders differ by rounding, which no interval tells from 0."""
    for seed in (9, 23, 28):
        rng = np.random.default_rng(seed)
        a, b, label = rng.random(200), rng.random(200), rng.random(200)
        weight = np.round(rng.lognormal(0, 0.7, 200) + 0.01, 3)
        dataset = two_models(a, b, (label < a).astype(np.uint8), weight=weight)
        (found,) = compare(dataset, replace(PLAN, choices=(parse("corp_unc"),))).contests[0].differences.values()
        assert found.difference.value and found.by_chance and found.better is None


@pytest.mark.parametrize("role", ["alone", "weight", "cluster"])
def test_two_models_differ_twice_as_much_in_gini_as_in_auc(role: str) -> None:
    a, b, label = crossing_world(300, 8)
    rng = np.random.default_rng(9)
    roles = {"weight": rng.uniform(0.5, 2.0, 300), "cluster": rng.integers(0, 60, 300)}
    rest = {name: values for name, values in roles.items() if name == role}
    of_both = replace(PLAN, choices=(parse("auc"), parse("gini")))
    auc, gini = compare(two_models(a, b, label, **rest), of_both).contests[0].differences.values()
    assert gini.difference.value == pytest.approx(2 * auc.difference.value)
    assert gini.difference.interval == pytest.approx(2 * np.array(auc.difference.interval))
    table = Rows(a, label, rest.get("weight"), rest.get("cluster")).table
    assert (delong(table) * 2 - 1).error == pytest.approx(2 * delong(table).error)


def test_a_model_is_the_same_as_itself() -> None:
    a, _, label = crossing_world(500, 4)
    comparison = compare(two_models(a, a.copy(), label), PLAN)
    for key, difference in comparison.contests[0].differences.items():
        assert difference.difference.value == 0, key
        assert difference.better is None, key
        if difference.difference.interval is not None:
            assert difference.difference.interval == pytest.approx((0, 0), abs=1e-12)
    assert isinstance(comparison.splice, NoSplice)
    assert "the same" in as_text(Compared(comparison))


@pytest.mark.ci
def test_shuffled_rows_give_the_same_document_to_the_last_byte() -> None:
    a, b, label = crossing_world(400, 5)
    rng = np.random.default_rng(0)
    weight, group = rng.gamma(2, size=400), rng.choice(["n", "s"], 400)
    order = rng.permutation(400)
    for extra in ({}, {"weight": weight, "group": group}):
        first = Compared(compare(two_models(a, b, label, **extra), PLAN)).data()
        again = {name: values[order] for name, values in extra.items()}
        second = Compared(compare(two_models(a[order], b[order], label[order], **again), PLAN)).data()
        assert repr(first["comparison"]) == repr(second["comparison"])


@pytest.mark.parametrize("role", ["alone", "weight", "cluster"])
def test_models_that_change_places_draw_the_same(role: str) -> None:
    a, b, label = crossing_world(2000, 5)
    rng = np.random.default_rng(6)
    a, b = a.round(2), np.clip(b + rng.normal(0, 0.03, 2000), 0, 1).round(2)
    roles = {"weight": rng.uniform(0.5, 2.0, 2000), "cluster": rng.integers(0, 400, 2000)}
    rest = {name: values for name, values in roles.items() if name == role}

    def of(*models: str) -> Comparison:
        dataset = from_arrays({name: {"A": a, "B": b}[name] for name in models}, label, **rest)
        return compare(dataset, Plan((parse("corp_mcb"), parse("auc")), BinaryTask.of_threshold(0.3)))

    forth, back = of("A", "B"), of("B", "A")
    (there,), (here,) = forth.contests, back.contests
    for name, each in there.results.items():
        low, high = np.array(each.interval)
        assert here.results[name].interval == pytest.approx((-high, -low), abs=1e-9)
    at_forth, at_back = there.find(Thresholds), here.find(Thresholds)
    assert at_forth is not None and at_back is not None
    assert at_back.band == pytest.approx(at_forth.band)
    assert [each.model for each in at_back.ahead] == [each.model for each in at_forth.ahead]
    assert isinstance(forth.splice, Splice) and isinstance(back.splice, Splice)
    assert back.splice.below == forth.splice.below
    assert back.splice.brier.interval == pytest.approx(forth.splice.brier.interval)


def test_models_that_change_places_at_a_capacity_rest_on_as_many_clusters() -> None:
    """A knows the clusters, which then agree no more than its score says; B does not."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(40), 5)
    a = rng.random(40)[cluster].round(2)
    label, weight = (rng.random(200) < a).astype(np.uint8), rng.gamma(2, size=200)
    plan = Plan((parse("utility_at_capacity"), parse("capture")), BinaryTask.of_threshold(0.3))

    def intervals(**scores: np.ndarray) -> list:
        limited = from_arrays(scores, label, weight=weight, cluster=cluster, columns=Columns(capacity="0.2"))
        differences = compare(limited, plan).contests[0].differences
        return [differences[spec.key].difference.interval for spec in plan.choices]

    b = rng.random(200)
    there, here = intervals(A=a, B=b), intervals(B=b, A=a)
    np.testing.assert_allclose(there, -np.array(here)[:, ::-1], rtol=1e-9)


def test_an_undefined_metric_names_the_model() -> None:
    label = np.array([0, 1] * 10, dtype=np.uint8)
    a, b = np.full(20, 0.4), np.where(np.arange(20) == 0, 1.0, 0.5)
    comparison = compare(two_models(a, b, label), Plan((parse("log_loss"),)))
    difference = comparison.contests[0].differences["log_loss"]
    assert difference.difference.value is None
    assert (difference.difference.reason or "").startswith("p_b: infinite")


def test_no_intervals_where_none_are_asked_for_and_where_rows_are_a_handful() -> None:
    a, b, label = crossing_world(200, 7)
    unasked = compare(two_models(a, b, label), Plan(PLAN.choices, PLAN.task, intervals=False))
    few = compare(two_models(np.tile([0.1, 0.9], 2), np.tile([0.4, 0.6], 2), np.array([0, 1, 0, 1])), PLAN)
    for comparison in (unasked, few):
        for difference in comparison.contests[0].differences.values():
            assert difference.by_chance is None and (comparison is few or difference.difference.interval is None)
        assert "ahead, no interval" in as_text(Compared(comparison))
    brier = few.contests[0].differences["brier"]
    assert brier.better == "p_a" and brier.difference.interval is None


@pytest.mark.parametrize("weighted", [False, True])
def test_the_table_by_hand(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    a, b, label = np.round(rng.random(300), 2), np.round(rng.random(300), 2), (rng.random(300) < 0.4).astype(int)
    weight = rng.gamma(2.0, size=300) if weighted else np.ones(300)
    pairs, task = pair_up(a, b, label, weight if weighted else None), BinaryTask.of_threshold(0.5)
    counted = disagreements(*Decisions.of_pairs(pairs, task), ("0", "1"), pairs.design, 300)
    weight *= 300 / weight.sum()
    for (by_a, by_b, at), cell in np.ndenumerate(counted.cells):
        which = ((a >= 0.5) == by_a) & ((b >= 0.5) == by_b) & (label == at)
        assert cell == pytest.approx(weight[which].sum(), rel=1e-12)
    only_a = (((a >= 0.5) == label) & ((b >= 0.5) != label)) * weight
    assert counted.a_better == pytest.approx(only_a.sum(), rel=1e-12)
    assert (counted.p_value is None) == weighted
    # At t* = 1/2 either error loses 1/2: where B acts and A does not, it wins so much or loses it.
    only_b_acts = ((a < 0.5) & (b >= 0.5)) * weight
    assert counted.gains[0, 1] == pytest.approx(only_b_acts @ (label - 0.5), rel=1e-12)


def test_of_several_classes_weights_count_as_so_many_rows_of_a_cluster_do() -> None:
    """Clusters whose decisions differ vary by the weight of their rows: repeated rows say the same."""
    rng = np.random.default_rng(3)
    a, b = rng.dirichlet(np.ones(3), (2, 240))
    label, unit, times = rng.integers(0, 3, 240), np.repeat(np.arange(60), 4), rng.integers(1, 4, 240)
    decision, ends = ClassDecision(((1, 0, 0), (0, 1, 0), (0, 0, 1)), ("x", "y", "z")), []
    for repeated, weight in ((np.ones(240, dtype=int), times.astype(float)), (times, None)):
        one, other = (
            ClassTable(
                np.repeat(score, repeated, axis=0),
                np.repeat(label, repeated),
                weight,
                ("x", "y", "z"),
                np.repeat(unit, repeated),
            )
            for score in (a, b)
        )
        sides = (Decisions.of_classes(each, decision) for each in (one, other))
        ends.append(disagreements(*sides, decision.actions, one.top.design, len(one)))
    weighed, whole = ends
    assert weighed.p_value == pytest.approx(whole.p_value, rel=1e-9) and 0 < whole.p_value < 1
    share = 240 / times.sum()
    assert (weighed.a_better, weighed.b_better) == pytest.approx((share * whole.a_better, share * whole.b_better))


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (3, 9), (10, 10), (883, 967), (40, 200)])
def test_the_exact_test_is_the_binomial_one(one: int, other: int) -> None:
    expected = binomtest(one, one + other).pvalue if one + other else 1.0
    assert exact_sign_test(one, other) == pytest.approx(expected, rel=1e-9)


def test_rows_that_change_places_count_by_their_weight() -> None:
    """Two places, of rows of mean weight 2: the heaviest row takes both, or the three others do."""
    label, weight = np.array([1, 0, 1, 1]), np.array([1.0, 1, 2, 4])
    a, b = (
        selected(Rows(np.array(score), label, weight), Capacity("2", 2.0), None)
        for score in ([0.1, 0.2, 0.3, 0.9], [0.9, 0.8, 0.7, 0.1])
    )
    found = swap(a, b, np.arange(4))
    assert found.both == SwapPart(0, 0)
    assert (found.only_a, found.only_b) == (SwapPart(2, 2, (3,)), SwapPart(2, 1.5, (0, 1, 2)))


def test_where_one_row_weighs_as_all_others_together_no_threshold_is_tested(decal: Decal, tmp_path: Path) -> None:
    rows = [f"{k % 40 / 40},{k % 30 / 30},{k % 3 == 0:d},{1_000_000 if k == 0 else 1}" for k in range(120)]
    (tmp_path / "heavy.csv").write_text("\n".join(["p,q,y,w", *rows]) + "\n")
    compared = decal("compare", "heavy.csv", "-s", "p,q", "-y", "y", "--weight", "w", "-t", "0.3").text
    assert "B - A with no intervals" in compared
    assert "Thresholds: where one model is clearly ahead is unknown, since there are no intervals." in compared


def test_the_nearer_to_an_ideal_is_told_where_both_lie_on_one_side_of_it_alone() -> None:
    """Two O/E ratios, .95 and 1.05, are equally far from 1: in any sample one is nearer, and that is noise."""
    rng = np.random.default_rng(1)
    q = rng.beta(4, 6, 500) * 0.9
    y = (rng.random(500) < q).astype(int)
    metrics = ["observed_expected"]
    alike = decal_cli.compare({"a": q / 0.95, "b": q / 1.05, "y": y}, score=["a", "b"], label="y", metrics=metrics)
    (found,) = alike.comparison.contests[0].differences.values()
    assert found.difference.interval and found.difference.interval[0] > 0 and found.by_chance is None
    apart = decal_cli.compare({"a": q * 0.7, "b": q * 0.6, "y": y}, score=["a", "b"], label="y", metrics=metrics)
    (found,) = apart.comparison.contests[0].differences.values()
    assert found.by_chance is False and found.better == "a"
