"""Cells of the score: what their sums give exactly, and bounds that hold for all else."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.errors import DecalError
from decal_cli.metrics import METRICS
from tests.helpers.cells import cells_of

BOUNDED = [name for name, metric in METRICS.items() if metric.within_cells is not None]


def hard_rows(seed: int, count: int = 600, tied: bool = True) -> dict[str, Any]:
    """Scores within few cells, so that bounds are put to the test, with ties, 0, -0 and 1; labels and weights."""
    rng = np.random.default_rng(seed)
    width = 10.0 ** -rng.integers(1, 6)
    score = rng.random() * (1 - width) + width * rng.random(count)
    if tied:
        score = np.where(rng.random(count) < 0.5, np.round(score, rng.integers(1, 5)), score)
        score[:4] = -0.0, 0.0, 1.0, 1.0
    label = (rng.random(count) < rng.choice([0.05, 0.5, 0.9])).astype(int)
    label[:6] = 0, 0, 1, 1, 0, 1
    return {"score": score, "label": label, "weight": rng.exponential(2, count) + 0.1}


@pytest.mark.parametrize("seed", range(8))
def test_values_from_cells_are_within_their_bounds(seed: int) -> None:
    rows = hard_rows(seed)
    threshold = float(np.quantile(rows["score"], 0.6))
    threshold = min(max(threshold, 1e-6), 1 - 1e-6)
    weight = rows["weight"] if seed % 2 else None
    asked = {"metrics": BOUNDED, "threshold": threshold, "intervals": False}
    whole = decal.evaluate(rows["score"], rows["label"], weight=weight, **asked)
    counts = [cells_of(rows["score"], rows["label"], weight, edges) for edges in ((), (threshold,))]
    # Aggregates of before cells told the ends of their scores stay valid.
    for each in (*counts, counts[0].drop(columns=["min_score", "max_score"])):
        metrics = decal.evaluate(each, aggregated=True, **asked).to_dict()["metrics"]
        for key in BOUNDED:
            value, result = whole[key].value, metrics[key]
            if value is None or result["value"] is None or result["within"]["drawn"]:
                continue
            assert abs(result["value"] - value) <= result["within"]["bound"] + 1e-11 * max(abs(value), 1e-3), key


def test_sums_give_values_and_intervals_exactly() -> None:
    rows = hard_rows(3, 500)
    exact = ("brier", "log_loss", "observed_expected", "expected_utility", "net_benefit", "ppv", "accuracy", "corp_unc")
    for weight in (None, rows["weight"]):
        asked = {"metrics": exact, "threshold": 0.3}
        whole = decal.evaluate(rows["score"], rows["label"], weight=weight, **asked)
        counts = cells_of(rows["score"], rows["label"], weight, (0.3,))
        of_cells = decal.evaluate(counts, aggregated=True, **asked)
        for key in exact:
            assert of_cells[key].value == pytest.approx(whole[key].value, rel=1e-12), key
            assert of_cells[key].interval == pytest.approx(whole[key].interval, rel=1e-12), key
            assert of_cells.to_dict()["metrics"][key]["within"] == {"bound": 0.0, "drawn": False}


def test_rows_that_tie_in_a_cell_widen_no_bound() -> None:
    score, label = np.array([0.2] * 50 + [0.5000010, 0.5000011] + [0.7] * 48), np.tile([0, 1], 50)
    counts = cells_of(score, label)
    within = {
        known: decal.evaluate(each, aggregated=True, metrics=("auc", "ks")).to_dict()["metrics"]
        for known, each in ((True, counts), (False, counts.drop(columns=["min_score", "max_score"])))
    }
    # The one negative and the one positive near .5: half a pair of 50 x 50, and a step of 1 in 50.
    assert within[True]["auc"]["within"]["bound"] == pytest.approx(0.5 / 2500)
    assert within[True]["ks"]["within"]["bound"] == pytest.approx(1 / 50)
    assert within[False]["auc"]["within"]["bound"] == pytest.approx((25**2 + 1 + 24**2) / 2 / 2500)


def test_a_metric_without_a_bound_is_not_shown() -> None:
    rows = hard_rows(1)
    answer = decal.evaluate(
        cells_of(rows["score"], rows["label"]), aggregated=True, metrics=("cdl", "log_loss(eps=0.01)")
    )
    for result in answer.to_dict()["metrics"].values():
        assert result["value"] is None
        assert "no bound is known" in result["reason"]


def test_cells_of_several_files_add_up_by_their_edges() -> None:
    rows = hard_rows(5, 400)
    halves = [
        cells_of(rows["score"][part], rows["label"][part], None, (0.3,)) for part in (slice(150), slice(150, None))
    ]
    together = decal.evaluate(pd.concat(halves), aggregated=True, metrics=("brier", "auc"))
    whole = decal.evaluate(
        cells_of(rows["score"], rows["label"], None, (0.3,)), aggregated=True, metrics=("brier", "auc")
    )
    for key in ("brier", "auc"):
        assert together[key].value == pytest.approx(whole[key].value, rel=1e-13)
    other = cells_of([0.3], [1], None, (0.300001,))
    with pytest.raises(DecalError, match=r"cells \[.*\) overlap"):
        decal.evaluate(pd.concat([cells_of([0.3], [0], None, (0.3,)), other]), aggregated=True)


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("label", 2, "2 is not 0 or 1"),
        ("rows", 0, "0 is not positive"),
        ("n", 2.5, "2.5 is not rows"),
        ("low", -0.1, "-0.1 is outside"),
        ("high", 0.1, "0.1 is not between low and 1"),
        ("s1", 9.0, "9 cannot be the sum over n of scores in the cell"),
        ("min_score", 0.5, "0.5 is not between low and high"),
        ("max_score", 0.39999, "0.39999 is not between min_score and high"),
        ("s3", float("nan"), "nan is missing or not finite"),
        ("l1", -1.0, "-1 is negative"),
        ("l2", 0.0, "0 does not agree with l1"),
    ],
)
def test_cells_that_cannot_be_are_named(column: str, value: float, problem: str) -> None:
    counts = cells_of([0.2, 0.4, 0.4, 0.9], [0, 1, 0, 1])
    counts[column] = counts[column].astype(float)
    counts.loc[1, column] = value
    with pytest.raises(DecalError) as error:
        decal.evaluate(counts, aggregated=True)
    assert f"column '{column}', row 2: {problem}" in str(error.value)
