"""Rows in clusters: errors are the sandwich written out, folds keep clusters whole, one row each is no cluster."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, ndtr, softmax, stdtrit

import decal_cli
from decal_cli.errors import Undefined
from decal_cli.learn import probe, scaling
from decal_cli.limits import MIN_RISK
from decal_cli.metrics import METRICS, Inputs, measure_all, parse
from decal_cli.metrics.confidence import wilson
from decal_cli.metrics.families import smooth
from decal_cli.metrics.families.scores import squared
from decal_cli.metrics.gaps import noise, variance_terms
from decal_cli.metrics.inputs import stakes_on
from decal_cli.metrics.regret_cells import ClassRegrets
from decal_cli.tables import classes, design, isotonic, table, units
from decal_cli.tables.design import confidence_of, design_effect
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask, ClassDecision
from tests.helpers.frozen import flattened
from tests.helpers.seeded import seeded_columns
from tests.helpers.worlds import interval_of, value_of

pytestmark = pytest.mark.usefixtures("seen_rows_only")

TASK = BinaryTask.of_threshold(0.3)


def clustered(clusters: int = 40, weighted: bool = False, ties: bool = True, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(clusters), rng.integers(1, 12, clusters))
    shared = rng.normal(size=clusters)[unit]
    score = expit(rng.normal(size=len(unit)) + 0.5 * shared)
    score = np.round(score, 1) if ties else score
    label = (rng.random(len(unit)) < expit(2 * score - 1 + shared)).astype(np.uint8)
    return Rows(score, label, rng.gamma(2, size=len(unit)) if weighted else None, unit * 7)


def sandwich(values: NDArray[np.float64], weight: NDArray[np.float64], unit: NDArray[np.int64]) -> float:
    """The cluster-robust error of a weighted mean without small-sample factor, as statsmodels' WLS on a constant.

    bread = 1 / sum w, meat = sum over clusters of (sum w (v - mean))^2.
    """
    mean = float(weight @ values / weight.sum())
    meat = sum(float((weight * (values - mean))[unit == g].sum()) ** 2 for g in np.unique(unit))
    return math.sqrt(meat) / float(weight.sum())


def test_some_cells_keep_their_rows_whichever_they_are() -> None:
    table = clustered(weighted=True).table
    for which in (np.arange(3), np.array([0, 4]), np.array([2, 5])):
        for kept, every in zip(table.design.select(which).own, table.design.own, strict=True):
            assert kept == pytest.approx(every[which])


@pytest.mark.parametrize(("clusters", "weighted", "few"), [(40, True, True), (400, False, False), (400, True, False)])
def test_the_error_of_a_mean_over_levels_is_the_sandwich(clusters: int, weighted: bool, few: bool) -> None:
    rows = clustered(clusters, weighted, ties=False)
    table, unit = rows.table, rows.unit
    assert (len(table) <= design.MAX_GRAM_CELLS) is few
    units = table.design.units_of(np.stack(table.of_labels))
    acts = table.score >= 0.3
    won = units.mean(np.concatenate((acts * -0.3, acts * 0.7)))
    assert won.error == pytest.approx(sandwich((rows.score >= 0.3) * (rows.label - 0.3), rows.weights, unit), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_base_rate_behind_corp_unc_varies_between_clusters_however_well_scores_tell_them_apart(
    weighted: bool,
) -> None:
    rows = clustered(weighted=weighted)
    table, rate = rows.table, float(rows.weights @ rows.label / rows.weights.sum())
    error = sandwich(rows.label.astype(float), rows.weights, rows.unit)
    ends = wilson(rate, rate * (1 - rate) / error**2, 0.95)
    low, high = sorted(end * (1 - end) for end in ends)
    expected = low, 0.25 if ends[0] < 0.5 < ends[1] else high
    assert interval_of("corp_unc", table) == pytest.approx(expected, rel=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("known", [True, False], ids=["scores tell clusters apart", "scores miss what clusters share"])
def test_parts_of_a_loss_vary_as_clusters_make_them_vary(known: bool) -> None:
    """The errors of labels do not say how: labels vary by themselves in the one world, and together in the other."""
    keys = ["refinement_loss", "refinement_lower", "refinement_upper", "corp_dsc", "corp_dsc(loss=log)"]

    def world(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        unit, shared = np.repeat(np.arange(60), 20), rng.normal(size=60)
        own = rng.normal(size=1200)
        of_score = 1.2 * shared[unit] - 2 if known else 1.5 * own - 1
        label = rng.random(1200) < expit(of_score if known else own - 1 + shared[unit])
        return Rows(np.round(expit(of_score), 6), label.astype(np.uint8), None, unit).table

    varied = np.std([[value_of(key, world(seed)) for key in keys] for seed in range(100)], axis=0)
    ends = np.array([[interval_of(key, world(seed)) or (0.0, 0.0) for key in keys] for seed in range(5)])
    times = np.diff(ends).mean(axis=0)[:, 0] / (2 * 1.96 * varied)
    assert ((times > 0.95) & (times < 1.75)).all(), dict(zip(keys, times.tolist(), strict=True))


def test_bins_of_clusters_vary_together() -> None:
    rows = clustered(ties=False)
    levels, unit = rows.table.bins(5), rows.unit
    number = np.searchsorted(rows.table.score[rows.table.bin_starts(5)], rows.score, side="right") - 1
    rate = levels.pos / levels.n
    sums = np.zeros((len(levels), unit.max() + 1))
    sizes = np.zeros_like(sums)
    np.add.at(sums, (number, unit), rows.label - rate[number])
    np.add.at(sizes, (number, unit), 1.0)
    clusters = levels.n**2 / (sizes**2).sum(axis=1)
    scale = np.sqrt(clusters / (clusters - 1)) / levels.n
    expected = sums @ sums.T * np.outer(scale, scale)
    covariance = noise(levels).covariance
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-15)
    share = levels.n / levels.total
    assert variance_terms(levels)[1] == pytest.approx(2 * float(share @ expected**2 @ share))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [("MAX_DENSE", 1 << 24), ("MAX_DENSE", 100), ("MAX_WHOLE", 0), ("FEW_PRODUCTS", 0)],
    ids=["whole", "parts", "64 bits", "sparse"],
)
def test_products_of_counts_are_sums_over_clusters(
    name: str, value: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(design, name, value)
    monkeypatch.setattr(design, "DENSE", 0)
    rows = clustered(weighted=weighted)
    cells = rows.table
    place = np.searchsorted(cells.score, rows.score) + len(cells) * rows.label
    counts = np.array([np.bincount(place, rows.weights * (rows.unit == g), 2 * len(cells)) for g in range(40)])
    drawn = cells.design.resample(cells, np.random.default_rng(0))[2]
    for each in (cells.design, drawn):
        assert each.gram == pytest.approx((each.times * counts.T) @ counts, abs=1e-9)
    assert drawn.times.max() > 1


@pytest.mark.parametrize("weight", [4097.0, 0.1])
def test_products_that_32_bits_would_round_are_exact(weight: float) -> None:
    each = np.full(2, weight)
    rows = design.RowsOfCells(np.arange(2), np.zeros(2, dtype=int), np.array([0, 1]), each, each**2, False)
    products = design.Clustered(rows, 2, np.ones(1), 1.0).gram
    assert products[0].tolist() == [weight**2, 0.0, 0.0, weight**2]


@pytest.mark.ci
@pytest.mark.parametrize(
    "asked",
    [
        {"score": "p", "threshold": 0.3},
        {"proba": "a:*", "label": "z", "abstain": 0.4},
        {"score": "p", "amount": "amount", "cost_fp": 1.0},
    ],
)
def test_runs_of_any_length_give_the_same(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {name: np.array(values) for name, values in seeded_columns(60).items()}

    def found() -> dict[str, float]:
        given = {"label": "y", "weight": "w", "cluster": "c", "features": ["x1", "x2"], **asked}
        metrics = decal_cli.evaluate(columns, metrics="all", **given).to_dict()["metrics"]
        return {key: value for key, value in flattened(metrics) if isinstance(value, float)}

    whole = found()
    for module in (units, table, classes, smooth, scaling, probe):
        monkeypatch.setattr(module, "BLOCK", 7)
    for module, name in ((classes, "WORTH_BLOCK"), (isotonic, "_BLOCK")):
        monkeypatch.setattr(module, name, 7)
    assert found() == pytest.approx(whole, rel=1e-7, abs=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_of_one_row_change_no_bit(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    score = expit(rng.normal(size=120))
    label, weight = (rng.random(120) < score).astype(np.uint8), rng.gamma(2, size=120) if weighted else None
    features = None if weighted else rng.normal(size=(120, 2))
    without = Rows(score, label, weight, features=features)
    single = Rows(score, label, weight, rng.permutation(120), features=features)
    one, other = (
        measure_all(METRICS.specs(), Inputs(rows, TASK), rows.adjusted_confidence(0.9)) for rows in (without, single)
    )
    assert one == other


def test_order_of_rows_and_names_of_clusters_do_not_matter() -> None:
    rows = clustered(weighted=True)
    order = np.random.default_rng(0).permutation(len(rows))
    specs = [parse(name) for name in ("brier", "auc", "ece_debiased", "gain_recalibration", "average_precision")]
    one, other = (measure_all(specs, Inputs(r, TASK), 0.9) for r in (rows, rows.take(order)))
    for spec in specs:
        assert one[spec].value == pytest.approx(other[spec].value, rel=1e-12)
        assert one[spec].interval == pytest.approx(other[spec].interval, rel=1e-9)


def test_folds_and_draws_take_whole_clusters() -> None:
    rows = clustered()
    unit = rows.unit
    for parts in (2, 5):
        fold = rows.places(np.random.default_rng(0), parts) % parts
        assert set(fold.tolist()) == set(range(parts))
        assert all(len(set(fold[unit == g].tolist())) == 1 for g in range(unit.max() + 1))
    t, rng = rows.table, np.random.default_rng(2)
    neg, pos = t.split(rng)
    np.testing.assert_allclose(neg.sum(axis=0) + pos.sum(axis=0), t.n)
    sizes = np.bincount(unit)
    assert {int(n) for n in (neg + pos).sum(axis=1)} <= {int(sizes[k].sum()) for k in _folds_of(t)}
    draws = [t.resample(rng) for _ in range(300)]
    means = np.array([draw.mean_of(squared).value for draw in draws])
    assert means.std() == pytest.approx(t.mean_of(squared).error, rel=0.15)


def _folds_of(t: object) -> list[NDArray[np.bool_]]:
    design = t.design
    fold = np.random.default_rng(2).permutation(len(design.times)) % 5
    return [fold == k for k in range(5)]


def test_few_clusters_take_t_quantiles_and_fewer_none() -> None:
    rows = clustered(12)
    design = rows.table.design
    n = np.bincount(np.asarray(rows.unit))
    assert design.effective_clusters == pytest.approx(n.sum() ** 2 / (n**2).sum())
    sure = rows.adjusted_confidence(0.9)
    brier = parse("brier")
    low, high = measure_all([brier], Inputs(rows), sure)[brier].interval
    reach = float(stdtrit(design.effective_clusters - 1, 0.95)) * rows.table.mean_of(squared).error
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-9)
    assert confidence_of(5.0, 1 - MIN_RISK) == 1 - MIN_RISK
    few = clustered(4)
    assert few.adjusted_confidence(0.9) is None
    with pytest.raises(Undefined, match="at least 5 clusters"):
        few.places(np.random.default_rng(0))


def test_design_effect_by_hand() -> None:
    # Clusters (1, 1) and (0, 0): off the mean .5, .5, -.5, -.5; (1 + 1) / (4 x .25).
    assert design_effect(np.array([1.0, 1, 0, 0]), None, np.array([0, 0, 1, 1])) == pytest.approx(2)
    assert design_effect(np.array([1.0, 0, 1, 0]), None, np.array([0, 0, 1, 1])) == pytest.approx(0)


def widths(rows: Rows, decision: BinaryTask | ClassDecision) -> dict[str, float]:
    classes = bool(rows.classes)
    specs = [spec for spec in METRICS.specs() if spec.declared.takes(classes) and not spec.declared.form(classes).slow]
    results = measure_all(specs, Inputs(rows, decision, 0), rows.adjusted_confidence(0.9))
    return {spec.key: each.interval[1] - each.interval[0] for spec, each in results.items() if each.interval}


def two_classes(rng: np.random.Generator) -> tuple[Rows, BinaryTask]:
    latent = rng.normal(size=400)
    return Rows(expit(1.5 * latent), (rng.random(400) < expit(latent - 0.3)).astype(np.uint8)), TASK


def three_classes(rng: np.random.Generator) -> tuple[Rows, ClassDecision]:
    logits = rng.normal(size=(300, 3))
    score, true = (softmax(c * logits, axis=1) for c in (1.5, 1.0))
    label = (rng.random(300)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    names = ("a", "b", "c")
    decision = ClassDecision(((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.7, 0.7, 0.7)), (*names, "abstain"))
    return Rows(score, label, classes=names), decision


WIDER = {"u_cal", "v_cal", "v_cal_kleinberg", "swap_regret", "cfdl", "concavity_gap_null"}
"""Near 0, or drawn on other cells: their intervals may be other than those of the rows themselves."""


@pytest.mark.ci
@pytest.mark.parametrize(("world", "metrics"), [(two_classes, 30), (three_classes, 8)])
def test_rows_repeated_within_a_cluster_say_no_more_than_once(world: Any, metrics: int) -> None:
    once, decision = world(np.random.default_rng(0))
    unit = np.repeat(np.arange(len(once)), 4)
    often = replace(once.take(unit), cluster=unit)
    alone, together = (widths(rows, decision) for rows in (once, often))
    assert alone.keys() == together.keys()
    off = {key: together[key] / alone[key] for key in alone if alone[key] > 0 and key not in WIDER}
    assert len(off) > metrics and {key: ratio for key, ratio in off.items() if not 0.75 < ratio < 1.35} == {}
    if once.classes:
        by_row = [ClassRegrets(rows.class_table, stakes_on(rows, decision)) for rows in (once, often)]
        cells = [(each.swaps(), each.bins(5)) for each in by_row]
        own = [[np.ptp(each.interval(np.random.default_rng(0), 0.95)) for each in of_rows] for of_rows in cells]
        assert np.divide(own[1], own[0]) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("rank", [7, 3])
def test_a_root_does_not_depend_on_the_eigenvectors_that_a_processor_chooses(rank: int) -> None:
    made = np.random.default_rng(rank).normal(size=(7, rank))
    covariance = made @ made.T
    root = design.root_of(covariance)
    assert np.allclose(root @ root, covariance, atol=1e-12)
    # Only one root is symmetric without an eigenvalue below 0.
    assert np.allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root).min() > -1e-12


def test_rows_of_an_entry_lie_evenly_with_its_mean_and_spread() -> None:
    """Three rows at .5 and .1 sqrt(1.5) to either side: their lowest, .3775, is above a row at .375."""
    rows, one = np.array([3.0, 1.0]), np.array([0, 1])
    entries = design.CountedRows(design.RowsOfCells(0 * one, one, 0 * one, rows, rows, False), rows)
    mean, spread, ends = np.array([0.5, 0.375]), np.array([0.1, 0.0]), (np.array([0.3, 0.375]), np.array([0.7, 0.375]))
    parted = entries.parted(np.array([[1.0, 3.0], [0.0, 0.0]]), mean, spread, ends)
    by_cluster_and_cell = np.bincount(2 * parted.behind.unit + parted.behind.cell, parted.rows, 4)
    assert by_cluster_and_cell.tolist() == [0.0, 3.0, 1.0, 0.0]


NULLS = ("ece_null", "ece_exact_null", "k2_null", "cdl_null", "v_cdl_null", "cfdl_null", "concavity_gap_null")


def test_chance_counts_the_rows_of_a_cluster_where_they_are_together() -> None:
    """Copies of a row say as much as one. Rows of different scores say more, however alike their labels are."""
    rng = np.random.default_rng(5)
    score = np.repeat([0.1, 0.3, 0.6, 0.9], 40)
    label = (rng.random(160) < score).astype(np.uint8)
    for key in NULLS:
        plain = value_of(key, table.tabulate(score, label), TASK)
        copies = table.tabulate(np.repeat(score, 5), np.repeat(label, 5), None, np.repeat(np.arange(160), 5))
        assert value_of(key, copies, TASK) == pytest.approx(plain, rel=0.15, abs=5e-4), key
        # A cluster has a row of each score: the design effect is 4, and each level has as many clusters as rows.
        ranked = (np.tile(rng.permuted(np.arange(40) + 0.5) / 40, 4) < score).astype(np.uint8)
        apart = table.tabulate(score, ranked, None, np.tile(np.arange(40), 4))
        assert apart.design.effect > 2
        assert value_of(key, apart, TASK) == pytest.approx(plain, rel=0.15, abs=5e-4) or key == "concavity_gap_null"


def test_chance_on_few_levels_counts_how_much_more_labels_of_one_score_agree() -> None:
    """Labels of a cluster follow one normal number: of two scores that are far apart they hardly agree."""
    rng, unit = np.random.default_rng(3), np.repeat(np.arange(60), 20)
    levels = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
    score = np.where(rng.random(1200) < 0.5, rng.choice(levels, 60)[unit], rng.choice(levels, 1200))

    def drawn() -> Table:
        normal = np.sqrt(0.9) * rng.normal(size=60)[unit] + np.sqrt(0.1) * rng.normal(size=1200)
        return table.tabulate(score, (ndtr(normal) < score).astype(np.uint8), None, unit)

    for key in ("ece_exact", "k2", "v_cdl"):
        seen = np.mean([value_of(key, drawn()) for _ in range(200)])
        assert np.mean([value_of(f"{key}_null", drawn()) for _ in range(8)]) == pytest.approx(seen, rel=0.15), key


@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_chance_of_rows_that_clusters_do_not_tie_is_that_of_independent_ones(rate: float) -> None:
    """On one row in each cell, and of rare labels: there normal numbers were cut at no row and at all of them."""
    rng = np.random.default_rng(6)
    score = np.clip(rate * 2 * rng.random(300), 1e-4, 1)
    label = (rng.random(300) < score).astype(np.uint8)
    plain, pairs = table.tabulate(score, label), table.tabulate(score, label, None, np.arange(300) // 2)
    for key in ("ece_null", "cdl_null(levels=exact)", "cfdl_null(levels=exact)", "concavity_gap_null"):
        assert value_of(key, pairs, TASK) == pytest.approx(value_of(key, plain, TASK), rel=0.1, abs=1e-4), key


@pytest.mark.parametrize("levels", [127, 128, 129])
def test_numbers_of_cells_hold_the_end_of_the_last_cell(levels: int) -> None:
    """The number after the last of 128 cells takes more than 8 bits."""
    at = np.arange(3 * levels)
    score, label, unit = at % levels / levels, (at % 5 == 0).astype(np.uint8), at % 20
    brier = measure_all([parse("brier")], Inputs(Rows(score, label, None, unit)), 0.95)[parse("brier")]
    assert brier.value == pytest.approx(float(np.mean((score - label) ** 2)))
