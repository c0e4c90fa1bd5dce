"""Two models on the same rows: the joint levels, paired differences against row-wise sums, and their coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.metrics import METRICS, parse
from decal_cli.metrics.paired import method
from decal_cli.tables import pairs as pair_tables
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.table import CELLS, Table, tabulate
from decal_cli.task import BinaryTask
from tests.helpers.pairs import any_pairs, difference_of, pair_columns

pytestmark = pytest.mark.usefixtures("seen_rows_only")

TASK = BinaryTask.of_threshold(0.3)


def same_table(actual: Table, expected: Table) -> None:
    for name in ("score", "n", "pos", "n2", "pos2"):
        mine, theirs = getattr(actual, name), getattr(expected, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12, err_msg=name)


@given(any_pairs, st.booleans())
def test_the_tables_of_both_models_are_those_of_the_rows(rows: list, weighted: bool) -> None:
    a, b, label, weight = pair_columns(rows)
    pairs = pair_up(a, b, label, weight if weighted else None)
    for table, score in zip(pairs.tables, (a, b), strict=True):
        same_table(table, tabulate(score, label, weight if weighted else None))
    assert pairs.total == pytest.approx(weight.sum() if weighted else len(a))


@given(any_pairs, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(rows: list, weighted: bool, random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    tables = []
    for some in (rows, shuffled):
        a, b, label, weight = pair_columns(some)
        tables.append(pair_up(a, b, label, weight if weighted else None))
    for name in ("a", "b", "n", "pos", "n2", "pos2"):
        first, second = (getattr(table, name) for table in tables)
        assert first is second is None or first.tobytes() == second.tobytes()


@given(any_pairs, st.booleans(), st.sampled_from([1, 3]))
def test_mean_differences_and_their_errors_are_those_of_the_rows(rows: list, weighted: bool, size: int) -> None:
    """Of clusters of so many rows the sandwich: what the rows of a cluster are off the mean is summed."""
    a, b, label, weight = pair_columns(rows)
    w, unit = weight if weighted else np.ones(len(a)), np.arange(len(a)) // size
    pairs = pair_up(a, b, label, weight if weighted else None, None if size == 1 else unit)

    def decided(score: np.ndarray) -> np.ndarray:
        return np.where(score >= 0.3, np.where(label == 1, 0, -0.3), np.where(label == 1, -0.7, 0))

    def right(score: np.ndarray) -> np.ndarray:
        return ((score >= 0.3) == (label == 1)).astype(float)

    def net(score: np.ndarray) -> np.ndarray:
        return np.where(score >= 0.3, np.where(label == 1, 1, -0.3 / 0.7), 0)

    for name, value in {
        "brier": lambda score: (score - label) ** 2,
        "expected_utility": decided,
        "accuracy": right,
        "net_benefit": net,
        "log_loss(eps=0.001)": lambda score: -np.log(np.abs(np.clip(score, 0.001, 0.999) - 1 + label)),
    }.items():
        each = value(b) - value(a)
        mean = np.average(each, weights=w)
        error = math.sqrt((np.bincount(unit, w * (each - mean)) ** 2).sum()) / w.sum()
        difference = difference_of(parse(name), pairs, TASK)
        assert difference == pytest.approx((mean, error), abs=1e-12), name


def test_the_auc_difference_has_delongs_error() -> None:
    rng = np.random.default_rng(5)
    label = (rng.random(60) < 0.4).astype(np.uint8)
    a, b = (np.round(np.clip(0.3 * label + 0.5 * rng.random(60), 0, 1), 1) for _ in range(2))
    ones, zeros = label == 1, label == 0

    def components(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wins = (score[ones][:, None] > score[zeros]) + 0.5 * (score[ones][:, None] == score[zeros])
        return wins.mean(axis=1), wins.mean(axis=0)

    (pos_a, neg_a), (pos_b, neg_b) = components(a), components(b)
    error = math.sqrt(np.var(pos_b - pos_a, ddof=1) / ones.sum() + np.var(neg_b - neg_a, ddof=1) / zeros.sum())
    difference = difference_of(parse("auc"), pair_up(a, b, label), None)
    assert difference == pytest.approx((pos_b.mean() - pos_a.mean(), error), abs=1e-12)


def test_both_tables_of_a_resample_hold_the_same_rows() -> None:
    rng = np.random.default_rng(3)
    a, b, label = rng.random(300), np.round(rng.random(300), 1), rng.integers(0, 2, 300).astype(np.uint8)
    for weight in (None, rng.gamma(2, size=300)):
        pairs = pair_up(a, b, label, weight)
        for _ in range(5):
            first, second = pairs.resample(rng)
            assert first.total == pytest.approx(second.total)
            assert first.positives == pytest.approx(second.positives)
            assert np.all(np.diff(first.score) > 0) and np.all(first.n > 0)
            assert np.all((second.pos >= 0) & (second.pos <= second.n))


def test_an_empty_resample_is_undefined() -> None:
    pairs = PairTable(np.array([0.5]), np.array([0.4]), np.array([0]), np.array([0]))
    with pytest.raises(Undefined):
        pairs.resample(np.random.default_rng(0))


def test_many_pairs_are_resampled_as_equal_mass_cells() -> None:
    rng = np.random.default_rng(6)
    rows = 90_000
    chance = rng.random(rows)
    label = (rng.random(rows) < chance).astype(np.uint8)
    a, b = np.clip(chance + rng.normal(0, 0.1, rows), 0, 1), rng.random(rows)
    pairs = pair_up(a, b, label)
    cells = pairs.cells
    assert len(pairs) > CELLS >= len(cells) > CELLS / 2
    assert pairs.with_known_share().cells.design.share_known and not cells.design.share_known
    assert cells.total == pairs.total
    assert cells.pos.sum() == label.sum()
    few = cells.n[(cells.a > 0) & (cells.a < 1)]
    assert few.max() <= 3
    for name in ("brier", "auc"):
        whole, pooled = (difference_of(parse(name), side, None) for side in (pairs, cells))
        assert pooled.mean == pytest.approx(whole.mean, abs=2e-3)
        assert pooled.error == pytest.approx(whole.error, rel=0.05)
    order = rng.permutation(rows)
    again = pair_up(a[order], b[order], label[order]).cells
    assert again.a.tobytes() == cells.a.tobytes() and again.n.tobytes() == cells.n.tobytes()
    swapped = pair_up(b, a, label).cells
    assert swapped.b.tobytes() == cells.a.tobytes() and swapped.n.tobytes() == cells.n.tobytes()


def test_pairs_of_the_same_scores_are_drawn_in_one_order_whichever_model_is_a() -> None:
    rng = np.random.default_rng(7)
    scores, label = np.arange(40) / 40, rng.integers(0, 2, 40).astype(np.uint8)
    other = rng.permutation(scores)
    one, swapped = pair_up(scores, other, label).cells, pair_up(other, scores, label).cells
    assert one.a.tobytes() == swapped.b.tobytes() and one.pos.tobytes() == swapped.pos.tobytes()


def test_every_metric_says_how_its_paired_interval_is_made() -> None:
    methods = {name: method(metric) for name, metric in METRICS.items()}
    assert {name for name, how in methods.items() if how == "analytic"} == {
        "brier", "log_loss", "auc", "gini", "expected_utility", "net_benefit", "eu_never", "eu_always",
        "utility_at_stake",
        "external_regret", "accuracy", "sensitivity", "specificity", "ppv", "npv", "selection_rate",
        "false_positive_rate", "net_benefit_standardised", "interventions_avoided",
        "capture", "precision_at_capacity", "lift", "utility_at_capacity", "capacity_cost", "value_capture",
        "eu_score_ranking", "eu_amount_ranking", "gain_over_score_ranking", "gain_over_amount_ranking",
        "eu_by_amount", "gain_over_amount", "top_accuracy", "auc_weighted", "ece_top_debiased", "rps", "aurc",
    }  # fmt: skip
    assert methods["corp_mcb"] == "bootstrap"
    assert methods["ece"] is methods["c_emp"] is None  # noise alone makes them positive
    assert methods["gain_recalibration"] is methods["regret_grouping"] is None
    of_nothing = ("spiegelhalter_z", "c_emp_pvalue", "cdl_threshold", "u_cal_threshold", "dist_cal_upper")
    assert not any(methods[name] or METRICS[name].interval for name in of_nothing)


def test_cells_of_pairs_hold_equal_mass(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 pairs on a grid of eight scores by eight, in four strips of four cells."""
    monkeypatch.setattr(pair_tables, "CELLS", 16)
    a, b = (each.ravel() / 8 for each in np.indices((8, 8)))
    assert pair_up(a, b, np.arange(64) % 2).cells.n.tolist() == [4] * 16


def test_cells_of_pairs_keep_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_tables, "CELLS", 256)
    rng = np.random.default_rng(4)
    values = np.array([0.1, 0.3, 0.7])
    a, weight = rng.choice(values, 3000), rng.lognormal(size=3000)
    cells = pair_up(a, rng.random(3000), rng.integers(0, 2, 3000), weight).cells
    nearest = values[np.abs(cells.a[:, None] - values).argmin(axis=1)]
    of_one_score = np.abs(cells.a - nearest) < 1e-9
    assert of_one_score.sum() > 100
    assert (cells.a == nearest)[of_one_score].all()
