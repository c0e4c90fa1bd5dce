"""Analytic errors are those that the derivative by the weight of each row gives: one property of all such metrics."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

import decal_cli

pytestmark = pytest.mark.usefixtures("seen_rows_only")

CONFIDENCE, N_ROWS, STEP = 0.9, 60, 1e-4
Columns = dict[str, np.ndarray]
MEANS = ["brier", "log_loss", "expected_utility", "external_regret"]
SHARES = ["accuracy", "sensitivity", "specificity", "ppv", "npv", "selection_rate", "false_positive_rate"]
TWO_CLASSES = [
    *MEANS,
    *SHARES,
    *["observed_expected", "auc", "calibration_slope", "calibration_intercept", "eu_never", "eu_always"],
    *["net_benefit", "net_benefit_standardised", "interventions_avoided"],
]
OF_CLASSES = [*MEANS, "rps", "accuracy"]
OF_STAKES = ["expected_utility", "external_regret", "eu_never", "eu_always"]
SCALES: dict[str, Callable[[float], float]] = {
    "observed_expected": math.log,
    "auc": lambda value: math.log(value / (1 - value)),
}
"""Where an interval is symmetric on another scale than its own; on Wilson's it is neither."""
WILSON = set(SHARES)


class Weighted(NamedTuple):
    """A world of rows that are weighted or not; `others`: metrics whose error is made in another way, on purpose."""

    name: str
    metrics: list[str]
    others: dict[str, str]
    options: dict[str, Any]
    weights: bool = False
    clusters: bool = False


DELONG = "DeLong's variance divides by one row less of each label"
KISH = "a share rests on no more rows than the weights of its own say, and here its error says more"
EFFECT = "the error of rows alike, times the root of the design effect"
CHANCE = "the share of label 1 counts as chance, though it is known"
_BINARY = {"score": "p", "threshold": 0.4}
CLASSES = {"proba": "m:*", "abstain": 0.4}
STAKES = {"score": "p", "amount": "a", "cost_fp_column": "b"}
WORLDS = [
    Weighted("rows", TWO_CLASSES, {"auc": DELONG}, _BINARY),
    Weighted(
        "weights",
        TWO_CLASSES,
        {"auc": DELONG, "specificity": KISH, "false_positive_rate": KISH},
        _BINARY,
        weights=True,
    ),
    Weighted(
        "clusters",
        TWO_CLASSES,
        {"calibration_slope": EFFECT, "calibration_intercept": EFFECT},
        _BINARY,
        weights=True,
        clusters=True,
    ),
    Weighted("classes", OF_CLASSES, {}, CLASSES),
    Weighted("weights and clusters of classes", OF_CLASSES, {}, CLASSES, weights=True, clusters=True),
    Weighted("stakes", OF_STAKES, {}, STAKES, weights=True, clusters=True),
    Weighted("stakes at a prevalence", OF_STAKES, {}, STAKES | {"prevalence": 0.2}, weights=True),
    Weighted("prevalence", MEANS, dict.fromkeys(MEANS[:2], CHANCE), _BINARY | {"prevalence": 0.2}, weights=True),
]


def columns_of(world: Weighted) -> Columns:
    rng = np.random.default_rng(4)
    score = np.round(rng.uniform(0.05, 0.95, N_ROWS), 2)
    label = (rng.random(N_ROWS) < score).astype(int)
    columns = {"p": score, "a": rng.integers(1, 5, N_ROWS), "b": rng.integers(1, 5, N_ROWS), "w": np.ones(N_ROWS)}
    shares = np.round(rng.dirichlet((1, 1, 1), N_ROWS), 3) + 0.001
    columns |= {f"m:{k}": shares[:, k] / shares.sum(axis=1) for k in range(3)}
    columns["y"] = np.where(rng.random(N_ROWS) < 0.2, 2, label) if "proba" in world.options else label
    if world.weights:
        columns["w"] = rng.integers(2, 9, N_ROWS) / 4
    if world.clusters:
        columns["c"] = rng.integers(0, N_ROWS // 2, N_ROWS)
    return columns


def evaluated(world: Weighted, columns: Columns, **options: Any) -> dict[str, Any]:
    clusters = {"cluster": "c"} if world.clusters else {}
    answer = decal_cli.evaluate(
        columns, label="y", weight="w", **clusters, **world.options, metrics=world.metrics, **options
    )
    return answer.to_dict()["metrics"]


def errors_by_weights(world: Weighted) -> dict[str, float]:
    """How the value on its scale moves with the weight of each row, summed over clusters, squared and summed."""
    columns = columns_of(world)
    pulls = {name: np.zeros(N_ROWS) for name in world.metrics}
    for row in range(N_ROWS):
        for sign in (1, -1):
            moved = columns["w"] * (1 + sign * STEP * (np.arange(N_ROWS) == row))
            for name, got in evaluated(world, columns | {"w": moved}, intervals=False).items():
                pulls[name][row] += sign * SCALES.get(name, float)(got["value"]) / (2 * STEP)
    if world.clusters:
        pulls = {name: np.bincount(columns["c"], each) for name, each in pulls.items()}
    return {name: math.sqrt(each @ each) for name, each in pulls.items()}


def errors_by_intervals(world: Weighted) -> dict[str, float]:
    columns = columns_of(world)
    quantile = float(ndtri((1 + CONFIDENCE) / 2))
    if world.clusters:
        sizes = np.bincount(columns["c"], columns["w"])
        quantile = float(stdtrit(sizes.sum() ** 2 / (sizes**2).sum() - 1, (1 + CONFIDENCE) / 2))
    found = {}
    for name, got in evaluated(world, columns, confidence=CONFIDENCE).items():
        value, (low, high), scale = got["value"], got["interval"], SCALES.get(name, float)
        if name in WILSON:
            # Its ends x solve (value - x)^2 = quantile^2 x (1 - x) / rows.
            rows = quantile**2 * low * (1 - low) / (value - low) ** 2
            found[name] = math.sqrt(value * (1 - value) / rows)
        else:
            found[name] = (scale(high) - scale(low)) / (2 * quantile)
    return found


@pytest.mark.ci
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_errors_are_those_of_the_derivatives_by_weight(world: Weighted) -> None:
    by_weights, by_intervals = errors_by_weights(world), errors_by_intervals(world)
    apart = {name for name, error in by_intervals.items() if error != pytest.approx(by_weights[name], rel=1e-5)}
    assert apart == set(world.others), {name: (by_intervals[name], by_weights[name]) for name in apart}
