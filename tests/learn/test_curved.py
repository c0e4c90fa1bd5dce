"""Quadratic and spline scaling: scikit-learn's regression, and what makes a natural spline and a maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.method import Training
from decal_cli.tables.rows import Unlabelled
from tests.helpers.training import fit_method, shipped_training, unlabelled


def test_quadratic_is_scikit_learns_regression_on_the_smoothed_labels() -> None:
    rows: Any = shipped_training("cal")
    z = logit(rows.score)
    positives, negatives = rows.label.sum(), (1 - rows.label).sum()
    target = np.where(rows.label == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    columns = np.column_stack((z**2, z))
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        np.vstack((columns, columns)), np.repeat([1, 0], len(z)), np.concatenate((target, 1 - target))
    )
    model = fit_method("quadratic", rows)
    assert [model.square, model.slope] == pytest.approx(peer.coef_[0], abs=1e-5)
    assert model.intercept == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_a_spline_is_natural_and_the_likeliest() -> None:
    rows: Any = shipped_training("cal")
    model = fit_method("spline", rows)
    knots = model.knots
    assert knots == pytest.approx(np.quantile(logit(rows.score), (0.05, 0.275, 0.5, 0.725, 0.95)), abs=0.05)

    def curve(z: np.ndarray) -> np.ndarray:
        return logit(model(Unlabelled(expit(z))).score)

    inside = np.linspace(knots[0], knots[-1], 50)
    through = CubicSpline(knots, curve(knots), bc_type="natural")
    assert curve(inside) == pytest.approx(through(inside), abs=1e-6)
    beyond = knots[-1] + np.array([0.1, 0.2, 0.3])
    assert np.diff(curve(beyond), 2) == pytest.approx(0, abs=1e-7)
    positives, negatives = rows.label.sum(), (1 - rows.label).sum()
    target = np.where(rows.label == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    left = target - model(unlabelled(rows)).score
    z = np.clip(logit(rows.score), knots[0], knots[-1])
    for k in range(len(knots)):
        cardinal = CubicSpline(knots, np.eye(len(knots))[k], bc_type="natural")
        off = logit(rows.score) - z
        term = cardinal(z) + off * np.where(off < 0, cardinal(knots[0], 1), cardinal(knots[-1], 1))
        assert float(left @ term) == pytest.approx(0, abs=1e-4)


def test_few_scores_cannot_bend() -> None:
    rows = Training(np.array([0.2, 0.8] * 20), np.array([0.0, 1.0, 1.0, 0.0] * 10))
    for key, reason in (("quadratic", "3 distinct scores"), ("spline", "3 different knots")):
        with pytest.raises(Undefined, match=reason):
            fit_method(key, rows)
