"""Forecasters: what they predict, and that they never look ahead."""

import math

import numpy as np
import pytest

from decal_cli.sequential.base_rate import ForecastFTPL, ForecastHedge, RunningMean
from decal_cli.sequential.classes import ClassFTPL
from decal_cli.sequential.clock import known_after_rows, known_after_time
from decal_cli.sequential.randomness import uniform
from decal_cli.sequential.recalibrators import FadingIsotonic, OnlinePlatt, projected
from decal_cli.sequential.worst_regret import worst_v_regret


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
    known_and_not = (ForecastHedge(horizon=rows).guarantee(rows), ForecastHedge().guarantee(rows))
    assert [each.bound * math.sqrt(rows) for each in known_and_not] == pytest.approx([0.5887, 1.1774], rel=1e-3)


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


def test_ftpl_of_classes_adds_uniform_whole_numbers_to_each_count() -> None:
    label = np.array([2, 0, 2, 1, 2])
    known = np.full(30_000, 5)
    p = ClassFTPL(3, seed=6, horizon=4).replay(np.tile(label, 6000), known)
    assert p.sum(axis=1) == pytest.approx(1)
    # The counts are 1, 1 and 3, and 1 or 2 is added to each: eight ways, all of different shares.
    ways = [np.array([1 + a, 1 + b, 3 + c]) for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    shares = [np.isclose(p, way / way.sum()).all(axis=1).mean() for way in ways]
    assert sum(shares) == pytest.approx(1)
    assert max(abs(share - 1 / 8) for share in shares) < 0.008  # four standard errors


def test_ftpl_of_classes_is_the_same_row_by_row_and_that_of_two_classes_with_two() -> None:
    label = np.random.default_rng(7).integers(0, 4, 300)
    known = known_after_rows(300, 9)
    for horizon in (None, 300):
        forecaster, learned, by_row = ClassFTPL(4, 8, horizon), 0, []
        for until in known.tolist():
            while learned < until:
                forecaster.learn_one(int(label[learned]))
                learned += 1
            by_row.append(forecaster.predict_one())
        assert np.array(by_row).tobytes() == ClassFTPL(4, 8, horizon).replay(label, known).tobytes()
        two = (label > 1).astype(np.uint8)
        binary = ForecastFTPL(8, horizon).replay(np.zeros(300), two, known)
        assert binary.tobytes() == ClassFTPL(2, 8, horizon).replay(two.astype(int), known)[:, 1].tobytes()


@pytest.mark.parametrize("horizon", [True, False])
@pytest.mark.parametrize("forecaster", [ForecastHedge, ForecastFTPL])
def test_the_expected_regret_at_a_fixed_threshold_is_within_its_guarantee(
    forecaster: type[ForecastHedge] | type[ForecastFTPL], horizon: bool
) -> None:
    rows, kink = 2000, 0.5 - 1e-9
    label = np.tile([0, 1], rows // 2).astype(np.uint8)
    known, score = known_after_rows(rows, 0), np.zeros(rows)
    regrets = []
    for seed in range(60):
        made = forecaster(seed, rows if horizon else None)
        acts = made.replay(score, label, known) > kink
        regrets.append(max(float((label - kink).sum()), 0.0) - float((acts * (label - kink)).sum()))
    guarantee = forecaster(0, rows if horizon else None).guarantee(rows)
    assert np.mean(regrets) <= guarantee.bound * rows
    assert guarantee.bound * rows <= 3 * math.sqrt(rows)


def test_the_fading_isotonic_regression_is_that_of_weights_that_halve() -> None:
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(9)
    score = rng.random(400)
    label = (rng.random(400) < score**2).astype(np.uint8)
    forecaster = FadingIsotonic(half_life=50)
    p = forecaster.replay(score, label, known_after_rows(400, 0))
    np.testing.assert_allclose(p[:100], score[:100])  # two half-lives are not known before
    # Fitted every 5 rows, the last time after 395.
    weight = 0.5 ** (np.arange(395)[::-1] / 50)
    fit = IsotonicRegression(out_of_bounds="clip").fit(score[:395], label[:395], sample_weight=weight)
    np.testing.assert_allclose(p[395:], fit.predict(score[395:]), atol=1e-6)
