"""Forecasters: what they predict, and that they never look ahead."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from decal_cli.sequential.base_rate import ForecastFTPL, ForecastHedge, RunningMean
from decal_cli.sequential.clock import known_after_rows, known_after_time
from decal_cli.sequential.forecaster import Forecaster, one_by_one
from decal_cli.sequential.randomness import uniform
from decal_cli.sequential.recalibrators import AsItIs, FrozenIsotonic, OnlinePlatt, RollingIsotonic, projected
from decal_cli.sequential.worst_regret import worst_v_regret

FORECASTERS: dict[str, Callable[[], Forecaster]] = {
    "as it is": AsItIs,
    "running mean": RunningMean,
    "hedge": lambda: ForecastHedge(seed=3),
    "hedge with a horizon": lambda: ForecastHedge(seed=3, horizon=700),
    "ftpl": lambda: ForecastFTPL(seed=3),
    "ftpl with a horizon": lambda: ForecastFTPL(seed=3, horizon=700),
    "frozen": lambda: FrozenIsotonic(warm_up=90),
    "rolling": lambda: RollingIsotonic(window=120),
    "platt": OnlinePlatt,
}
TIMES = np.repeat(np.arange(350), 2)
DELAYS = {
    "none": known_after_rows(700, 0),
    "3 rows": known_after_rows(700, 3),
    "longer than the warm-up": known_after_rows(700, 250),
    "equal times": known_after_time(TIMES, 0),
    "a delay in time": known_after_time(TIMES, 20),
}


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(2)
    return score, (rng.random(rows) < score**2).astype(np.uint8)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("name", FORECASTERS)
def test_the_fast_replay_predicts_what_predict_one_and_learn_one_do(name: str, delay: str) -> None:
    score, label = stream(700, seed=1)
    fast = FORECASTERS[name]().replay(score, label, DELAYS[delay])
    np.testing.assert_allclose(fast, one_by_one(FORECASTERS[name](), score, label, DELAYS[delay]), rtol=1e-12)
    assert ((fast >= 0) & (fast <= 1)).all()


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("name", FORECASTERS)
def test_no_later_row_and_no_unknown_label_changes_a_prediction(name: str, delay: str) -> None:
    score, label = stream(700, seed=2)
    known = DELAYS[delay]
    before = FORECASTERS[name]().replay(score, label, known)
    other_score, other_label = stream(700, seed=3)
    for row in np.random.default_rng(4).choice(700, 40, replace=False):
        first = known[row]
        changed_score, changed_label = score.copy(), label.copy()
        changed_score[first:], changed_label[first:] = other_score[first:], other_label[first:]
        changed_score[row] = score[row]
        after = FORECASTERS[name]().replay(changed_score, changed_label, known)
        np.testing.assert_allclose(after[row], before[row], rtol=1e-12)
        np.testing.assert_allclose(after[:first], before[:first], rtol=1e-12)


def test_a_label_is_known_after_its_delay_and_never_at_its_own_time() -> None:
    assert known_after_rows(5, 0).tolist() == [0, 1, 2, 3, 4]
    assert known_after_rows(5, 2).tolist() == [0, 0, 0, 1, 2]
    time = np.array([0, 0, 1, 5, 5, 9])
    assert known_after_time(time, 0).tolist() == [0, 0, 2, 3, 3, 5]
    assert known_after_time(time, 4).tolist() == [0, 0, 0, 3, 3, 5]
    assert known_after_time(time, 5).tolist() == [0, 0, 0, 2, 2, 3]


def test_random_numbers_are_those_of_splitmix64() -> None:
    # The first two outputs of the public-domain reference implementation (Vigna 2015) for the seed 0.
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    np.testing.assert_allclose(uniform(0, np.array([0, 1])), np.array(expected, dtype=float) / 2.0**64, rtol=1e-14)
    u = uniform(7, np.arange(100_000))
    assert abs(u.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 100_000)
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / math.sqrt(100_000)


def test_hedge_exceeds_each_threshold_as_often_as_the_algorithm_says() -> None:
    label = np.array([1, 0, 0, 1, 0, 0, 0, 1, 0, 0], dtype=np.uint8)
    known = np.full(20_000, 10)
    p = ForecastHedge(seed=5, horizon=50).replay(np.zeros(20_000), label, known)
    eta = math.sqrt(8 * math.log(2) / 50)
    for mu in (0.1, 0.3, 0.45, 0.8):
        share = 1 / (1 + math.exp(-eta * float((label - mu).sum())))
        assert abs((p > mu).mean() - share) < 4 * math.sqrt(share * (1 - share) / 20_000)


def test_ftpl_predicts_each_ratio_of_its_counts_as_often_as_the_algorithm_says() -> None:
    known = np.full(30_000, 4)
    label = np.array([1, 0, 0, 1], dtype=np.uint8)
    p = ForecastFTPL(seed=5, horizon=9).replay(np.zeros(30_000), np.tile(label, 7500), known)
    ratios = [(2 + one) / (4 + one + zero) for one in (1, 2, 3) for zero in (1, 2, 3)]
    values, times = np.unique(p.round(12), return_counts=True)
    expected, multiples = np.unique(np.round(ratios, 12), return_counts=True)
    np.testing.assert_allclose(values, expected)
    assert (np.abs(times / 30_000 - multiples / 9) < 0.011).all()  # four standard errors


def test_hedge_keeps_its_bound_where_the_running_mean_loses_a_quarter() -> None:
    rows = 8000
    label = np.tile([0, 1], rows // 2).astype(np.uint8)
    known, score = known_after_rows(rows, 0), np.zeros(rows)
    mean = worst_v_regret(RunningMean().replay(score, label, known), label)
    assert mean.regret == pytest.approx(rows / 4, rel=0.01)
    for horizon in (rows, None):
        worst = [
            worst_v_regret(ForecastHedge(seed, horizon).replay(score, label, known), label).regret for seed in range(40)
        ]
        assert np.mean(worst) < 0.7 * math.sqrt(rows)
    ftpl = [worst_v_regret(ForecastFTPL(seed, rows).replay(score, label, known), label).regret for seed in range(40)]
    assert np.mean(ftpl) < 0.7 * math.sqrt(rows)
    assert ForecastHedge(horizon=rows).bound(rows) == pytest.approx(0.5887 * math.sqrt(rows), rel=1e-3)
    assert ForecastHedge().bound(rows) == pytest.approx(1.1774 * math.sqrt(rows), rel=1e-3)


def test_the_worst_v_regret_is_the_largest_on_a_fine_grid() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        p, y = rng.integers(0, 11, 30) / 10, rng.integers(0, 2, 30)
        steps = np.concatenate([np.linspace(0, 1, 2001), p - 1e-9, p + 1e-9, [y.mean()]])
        grid = steps[(steps >= 0) & (steps <= 1)]
        regrets = [max(float((y - mu).sum()), 0.0) - float(((p > mu) * (y - mu)).sum()) for mu in grid]
        assert worst_v_regret(p, y.astype(np.uint8)).regret == pytest.approx(max(regrets), abs=1e-6)


def test_online_platt_comes_near_the_curve_that_made_the_labels() -> None:
    rng = np.random.default_rng(8)
    logit = rng.normal(size=20_000)
    score = 1 / (1 + np.exp(-logit))
    truth = 1 / (1 + np.exp(-(0.6 * logit - 0.8)))
    label = (rng.random(20_000) < truth).astype(np.uint8)
    predicted = OnlinePlatt().replay(score, label, known_after_rows(20_000, 0))
    assert np.abs(predicted[10_000:] - truth[10_000:]).mean() < 0.02


def test_the_projection_is_the_nearest_point_of_the_disc() -> None:
    curvature = (4.0, 1.0, 2.0)
    matrix = np.array([[4.0, 1.0], [1.0, 2.0]])
    point = np.array([3.0, -2.0])
    angle = np.linspace(0, 2 * np.pi, 200_001)
    circle = np.stack((np.cos(angle), np.sin(angle)))
    away = circle - point[:, None]
    best = circle[:, np.argmin(np.einsum("ik,ij,jk->k", away, matrix, away))]
    np.testing.assert_allclose(projected(3.0, -2.0, curvature, 1.0), best, atol=1e-4)
