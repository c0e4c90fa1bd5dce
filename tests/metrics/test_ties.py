"""Sums of weights that tie but for rounding: no number depends on the order in which they are added."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.learn.held_out import from_top, highest

METRICS = (
    *("gain_recalibration", "gain_over_constant", "threshold_adjusted", "corp_mcb", "average_precision"),
    *("ece", "ece_debiased", "ece_null", "ece_exact_null", "u_cal", "cdl", "regret_calibration"),
)


def rows(seed: int, count: int, levels: int) -> pd.DataFrame:
    """Rows of few scores, and of few weights in every second draw, so that sums of weights tie."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(count) * (levels - 1)) / (levels - 1)
    label = (rng.random(count) < score**1.2).astype(int)
    weight = rng.choice([1.0, 2.0, 0.5], count) if seed % 2 else rng.exponential(2, count) + 0.1
    return pd.DataFrame({"p": score, "y": label, "w": weight})


def of_whole_and_half_weights(seed: int) -> pd.DataFrame:
    """Rows whose scores, labels, weights and costs tie in many ways: half of them positive, scores in fifths."""
    rng = np.random.default_rng(seed)
    count = (60, 100, 200)[seed % 3]
    score = rng.integers(0, 6, count) / 5
    label = np.zeros(count, dtype=int)
    label[np.argsort(-(score + rng.normal(0, 0.3, count)))[: count // 2]] = 1
    columns = {"amount": rng.choice([1.0, 2.0, 5.0], count), "c": rng.integers(0, count // 4, count)}
    other = np.clip(score + rng.integers(-1, 2, count) / 5, 0, 1)
    weight = np.ones(count) if seed % 2 else rng.choice([1.0, 2.0, 0.5], count)
    return pd.DataFrame({"p": score, "q": other, "y": label, "w": weight, **columns})


DRAWN_ANEW = ("ks.interval", "regret_grouping_worst.interval")
"""Poisson and binomial draws take other random numbers where a chance differs by rounding."""
DATA: dict[str, Any] = {"score": "p", "label": "y", "weight": "w"}
HALF = decal.Decision(0.5)
WORLDS: dict[str, tuple[dict[str, Any], decal.Decision]] = {
    "threshold": ({}, HALF),
    "prevalence": ({"prevalence": 0.2}, HALF),
    "capacity": ({}, HALF.at_capacity(20)),
    "clusters": ({"cluster": "c"}, decal.Decision(0.4)),
    "costs of each row": ({}, decal.Decision.per_row(fn="amount", fp=2)),
    "three actions": ({}, decal.Decision.utility([[0, -20], [-2, -10], [-5, -1]])),
}


@pytest.mark.parametrize(("world", "unit"), [(world, (0.7, 300)[k % 2]) for k, world in enumerate(WORLDS)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_weights_have_no_unit(world: str, unit: float, seed: int) -> None:
    data = of_whole_and_half_weights(seed)
    more, decision = WORLDS[world]

    def results_of(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
        metrics = decal.evaluate(decal.Data(rows, **DATA, **more), decision, metrics="all").to_dict()["metrics"]
        return dict(metrics)

    expected = results_of(data)
    got = results_of(data.assign(w=data["w"] * unit))
    for key, result in expected.items():
        for part in ("value", "interval"):
            same = None if result[part] is None else pytest.approx(result[part], rel=1e-6, abs=1e-9)
            if f"{key}.{part}" not in DRAWN_ANEW:
                assert got[key][part] == same, (key, part)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_which_model_is_better_does_not_depend_on_the_unit_of_weights(seed: int) -> None:
    data = of_whole_and_half_weights(seed)
    said = []
    for unit in (1, 0.7, 1.1):
        rows = decal.Data(data.assign(w=data["w"] * unit), label="y", weight="w").models("p", "q")
        answer = decal.compare(rows, HALF, metrics="all", statistics=decal.Statistics(intervals=False))
        (contest,) = answer.to_dict()["comparison"]["contests"]
        said.append(({key: each["better"] for key, each in contest["metrics"].items()}, contest["thresholds"]))
    for better, thresholds in said[1:]:
        assert better == said[0][0]
        assert thresholds["crossings_on_these_rows"] == said[0][1]["crossings_on_these_rows"]


# Each of these differed by up to a third before sums had a tolerance.
@pytest.mark.parametrize(
    ("seed", "count", "levels", "threshold"), [(1, 300, 101, 0.1), (2, 1500, 11, 0.2), (13, 1500, 5000, 0.1)]
)
def test_neither_the_order_of_rows_nor_the_unit_of_weights_matters(
    seed: int, count: int, levels: int, threshold: float
) -> None:
    data = rows(seed, count, levels)
    ask: dict[str, Any] = {"score": "p", "label": "y", "weight": "w", "threshold": threshold, "metrics": METRICS}
    expected = decal.evaluate(data, **ask).to_dict()["metrics"]
    for same in (data.assign(w=data["w"] * 0.7), data.sample(frac=1, random_state=seed)):
        got = decal.evaluate(same, **ask).to_dict()["metrics"]
        for key, result in expected.items():
            assert got[key]["value"] == pytest.approx(result["value"], rel=1e-9, abs=1e-12), key
            assert got[key]["interval"] == pytest.approx(result["interval"], rel=1e-9, abs=1e-12), key


@pytest.mark.parametrize("tenths", [1, 2, 3, 4, 6, 7, 8, 9])
def test_of_constant_decisions_that_tie_the_first_is_best(tenths: int) -> None:
    # As many positives as the threshold says: never acting and always acting are worth the same.
    data = rows(3, 300, 11).assign(y=lambda d: (d.index % 10 < tenths).astype(int))
    expected = None
    for unit in (1.0, 0.7, 1.1, 1.3):
        ask: dict[str, Any] = {"score": "p", "label": "y", "weight": "w", "metrics": ["gain_over_constant"]}
        got = decal.evaluate(data.assign(w=unit), threshold=tenths / 10, **ask)
        interval = got.to_dict()["metrics"]["gain_over_constant"]["interval"]
        expected = expected or interval
        assert interval == pytest.approx(expected, rel=1e-6)


def test_of_sums_that_tie_the_first_is_highest() -> None:
    # What 3 positives win at t* = .3 is what 7 negatives cost; in floats their sum is 4e-16 and not 0.
    worth = np.array([-0.3] * 7 + [0.7] * 3 + [-0.3])
    assert highest(from_top(worth)) == 7
    assert highest(from_top(np.array([0.7] * 3 + [-0.3] * 7))) == 0
    assert highest(np.zeros(4)) == 0
