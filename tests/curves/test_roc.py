"""ROC curves and what they become: against scikit-learn, by hand, and back."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from decal_cli.curves.battery import curves_of
from decal_cli.curves.crossings import Roc
from decal_cli.curves.grid import Grid
from decal_cli.metrics import Inputs, interval_of, parse
from decal_cli.tables.population import Population
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask


def rows(size: int = 400, seed: int = 0, weighted: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(1, 2, size), 2)
    label = (rng.random(size) < score**1.5).astype(np.uint8)
    return Rows(score, label, rng.uniform(0.5, 2, size) if weighted else None)


def points_of(given: Rows) -> Roc:
    return Roc.of_table(given.table)


@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_those_of_scikit_learn(weighted: bool) -> None:
    given = rows(weighted=weighted)
    roc = points_of(given)
    x, y, _ = roc_curve(given.label, given.score, sample_weight=given.weight, drop_intermediate=False)
    np.testing.assert_allclose(roc.false_alarms[::-1], x[1:], atol=1e-12)
    np.testing.assert_allclose(roc.recall[::-1], y[1:], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_points_give_the_brier_curve_of_the_calibrated_score(weighted: bool) -> None:
    """Tasche 2021, eq. 5.8a: the least loss over the points of the ROC curve."""
    given, at = rows(weighted=weighted), np.linspace(0.01, 0.99, 99)
    curve = curves_of(given.table, None, Grid(at))["brier_calibrated"]
    np.testing.assert_allclose(points_of(given).brier(at), curve.value, atol=1e-12)


def test_the_brier_curve_gives_the_hull_of_the_roc_curve_back() -> None:
    """Tasche 2021, eq. 5.8b; the hull joins the points of the isotonic fit by lines."""
    given = rows()
    fit = given.table.isotonic.pos / given.table.isotonic.n
    hull = Roc.of_table(given.table.isotonic)
    kinks = fit[(fit > 0) & (fit < 1)]
    at = np.linspace(0, 1, 101)
    back = Roc.of_brier(hull.brier(kinks), kinks, given.table.base_rate, at)
    x, y = np.append(hull.false_alarms, 0.0)[::-1], np.append(hull.recall, 0.0)[::-1]
    # Where several points share an abscissa the hull is at the highest.
    keep = np.append(np.diff(x) > 0, True)
    np.testing.assert_allclose(back.recall, np.interp(at, x[keep], y[keep]), atol=1e-9)


def test_a_curve_by_hand() -> None:
    """Scores .8, .6, .4 with labels 1, 0, 1: from .6 on, recall 1/2, and one false alarm."""
    given = Rows(np.array([0.8, 0.6, 0.4]), np.array([1, 0, 1]))
    roc = Roc.of_table(given.table, np.array([0.6, 0.9]))
    assert (roc.recall[0], roc.false_alarms[0]) == pytest.approx((0.5, 1.0)) and roc.recall[1] == 0


def test_intervals_use_that_the_share_of_a_label_is_known() -> None:
    counted = Population.of_ones(0.2, 0.4, kept=False).counted(rows())
    curves = curves_of(counted.table, None, Grid(np.array([0.3])))
    inputs = Inputs(counted, BinaryTask.of_threshold(0.3))
    for name, metric, sign in (("brier", "expected_utility", -1), ("sensitivity", "sensitivity", 1)):
        ends = sorted(sign * end for end in interval_of(parse(metric), inputs, 0.95) or ())
        assert (curves[name].low[0], curves[name].high[0]) == pytest.approx(ends, abs=1e-12)
