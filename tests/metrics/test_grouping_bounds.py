"""The bounds on the grouping regret that `decal evaluate` prints for each bin, against the moment problem.

Of all true probabilities Q in [0, 1] with the frequency c of a bin as mean and its grouping loss as variance, those
that win most, and least, over knowing c: a linear program over the probabilities of a grid of values of Q.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.helpers.command import Decal

THRESHOLDS = (0.01, 0.04, 0.1, 0.3, 0.5, 0.8, 0.97)


def grouped_rows(path: Path, seed: int) -> Path:
    """Rows whose features say much beyond the score, and as much everywhere on it: bins of every frequency and loss."""
    rng = np.random.default_rng(seed)
    score, x, strength = rng.random(3000), rng.normal(size=3000), rng.choice([0.3, 1.5, 4.0], 3000)
    chance = 1 / (1 + np.exp(-(4 * score - 2.5 + seed + strength * np.sign(x))))
    label = (rng.random(3000) < chance).astype(int)
    np.savetxt(path, np.column_stack([score, label, x, strength]), "%.9g", ",", header="p,y,x1,x2", comments="")
    return path


def most_and_least(mean: float, variance: float, t: float) -> tuple[float, float]:
    """What knowing Q wins over knowing its mean, per u_delta: the largest and the smallest value."""
    m, n = mean**2 + variance, (1 - mean) ** 2 + variance
    reach = np.sqrt(variance + (mean - t) ** 2)
    # A grid, and where the optimum may have its mass, so that the grid costs no precision.
    exact = [t, mean, m / max(mean, 1e-9), 1 - n / max(1 - mean, 1e-9), t - reach, t + reach]
    q = np.unique(np.clip([*np.linspace(0, 1, 201), *exact], 0, 1))
    won = np.maximum(q - t, 0) - max(mean - t, 0)
    moments = {"A_eq": np.vstack([np.ones_like(q), q, q**2]), "b_eq": [1, mean, m]}
    high, low = (linprog(sign * won, **moments, bounds=(0, None), method="highs") for sign in (-1, 1))
    assert high.status == low.status == 0
    return -high.fun, low.fun


@pytest.mark.parametrize(
    ("seed", "given"), [(0, ()), (1, ("--decision-threshold", "0.4"))], ids=["t*", "another threshold in use"]
)
def test_the_bounds_of_each_bin_are_those_of_the_moment_problem(
    decal: Decal, tmp_path: Path, seed: int, given: tuple[str, ...]
) -> None:
    rows, unlike_published, largest = grouped_rows(tmp_path / "rows.csv", seed), 0, 0.0
    for t in THRESHOLDS:
        metrics = ("-m", "regret_grouping", "-m", "regret_grouping_upper_sharp", "--no-intervals")
        asked = ("-s", "p", "-y", "y", "--features", "x*", "--regimes", *metrics, "-f", "json", *given)
        report = json.loads(decal("evaluate", rows, *asked, "--cost-fp", 5 * t, "--cost-fn", 5 * (1 - t)).out)
        middle, sharp = 0.0, 0.0
        for each in report["regimes"]:
            c, u_delta = each["rate"], 5 * each["share"]
            variance = min(max(each["grouping_loss"], 0.0), c * (1 - c))
            high, low = (u_delta * bound for bound in most_and_least(c, variance, t))
            assert each["regret_grouping_upper_sharp"] == pytest.approx(high, abs=1e-6)
            assert each["regret_grouping_lower"] == pytest.approx(low, abs=1e-6)
            assert each["regret_grouping"] == pytest.approx((high + low) / 2, abs=1e-6)
            assert each["regret_grouping_upper"] >= each["regret_grouping_upper_sharp"] - 1e-12
            unlike_published += each["regret_grouping_upper"] > high + 1e-4
            middle, sharp, largest = middle + (high + low) / 2, sharp + high, max(largest, variance)
        assert report["metrics"]["regret_grouping_upper_sharp"]["value"] == pytest.approx(sharp, abs=1e-5)
        assert report["metrics"]["regret_grouping"]["value"] == pytest.approx(middle, abs=1e-5)
    assert unlike_published > 20 and largest > 0.1


def test_the_worst_case_at_a_small_threshold_is_what_is_at_stake(decal: Decal, tmp_path: Path) -> None:
    """At t* = .01 all bins are acted on once recalibrated: knowing every label spares .01 for each label 0."""
    rows = grouped_rows(tmp_path / "rows.csv", 0)
    asked = ("-s", "p", "-y", "y", "-m", "regret_grouping_worst", "-m", "utility_at_stake", "-t", "0.01", "-f", "json")
    report = json.loads(decal("evaluate", rows, *asked).out)
    worst, at_stake = (report["metrics"][name] for name in ("regret_grouping_worst", "utility_at_stake"))
    assert worst["value"] == pytest.approx(0.01 * (1 - report["positives"] / report["rows"]), abs=1e-12)
    assert worst["value"] == pytest.approx(at_stake["value"], abs=1e-12)
    low, high = worst["interval"]
    assert 0.9 * worst["value"] < low <= worst["value"] <= high < 1.1 * worst["value"]
