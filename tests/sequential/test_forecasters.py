"""Forecasters: what they predict, and that they never look ahead."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from decal_cli.analysis.online.judged import worst_v_regret
from decal_cli.analysis.online.plan import known_after_rows, known_after_time
from decal_cli.limits import MAX_ROWS_OVER_TIME as MOST
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as parse_metric
from decal_cli.sequential import ONLINE, forecaster_of, parse
from decal_cli.sequential.forecasters import (
    AlmostOneStepAhead,
    CdlForecaster,
    FadingIsotonic,
    ForecastFTPL,
    ForecastHedge,
    OnlinePlatt,
    one_by_one,
    perturbed_shares,
    projected,
    uniform,
)
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from simulation.sequences import SEQUENCES


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


def test_the_guarantee_of_hedge_by_hand() -> None:
    """sqrt(ln 2 / 2) / sqrt T where T is known, and twice that where it is not."""
    known_and_not = (ForecastHedge(horizon=8000).guarantee(8000), ForecastHedge().guarantee(8000))
    assert [each.bound * math.sqrt(8000) for each in known_and_not] == pytest.approx([0.5887, 1.1774], rel=1e-3)


@pytest.mark.parametrize("method", ["hedge", "ftpl", "cdl-algorithm", "almost-one-step-ahead"])
def test_the_guarantee_of_bins_holds_however_rows_fall_into_them(method: str) -> None:
    binned, one = (forecaster_of(parse(key), 0, None).guarantee for key in (f"{method}(bins=3)", method))
    assert binned(100).bound == pytest.approx(1.02 * one(34).bound)
    assert binned(100).bound >= max(sum(n * one(n).bound for n in split) / 100 for split in ((34, 33, 33), (98, 1, 1)))


def test_the_worst_v_regret_is_the_largest_on_a_fine_grid() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        p, y = rng.integers(0, 11, 30) / 10, rng.integers(0, 2, 30)
        steps = np.concatenate([np.linspace(0, 1, 2001), p - 1e-9, p + 1e-9, [y.mean()]])
        grid = steps[(steps >= 0) & (steps <= 1)]
        regrets = [max(float((y - mu).sum()), 0.0) - float(((p > mu) * (y - mu)).sum()) for mu in grid]
        assert worst_v_regret(tabulate(p, y.astype(np.uint8), None)).regret == pytest.approx(max(regrets), abs=1e-6)


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


def test_ftpl_adds_uniform_whole_numbers_to_the_count_of_each_class() -> None:
    p = perturbed_shares(np.tile([1, 1, 3], (30_000, 1)), np.arange(30_000), 6, 4)
    assert p.sum(axis=1) == pytest.approx(1)
    # 1 or 2 is added to each count: eight ways, all of different shares.
    ways = [np.array([1 + a, 1 + b, 3 + c]) for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    shares = [np.isclose(p, way / way.sum()).all(axis=1).mean() for way in ways]
    assert sum(shares) == pytest.approx(1)
    assert max(abs(share - 1 / 8) for share in shares) < 0.008  # four standard errors


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


METHODS = [
    *ONLINE,
    *("frozen-isotonic(warm_up=50)", "rolling-isotonic(window=90)", "rolling-isotonic(window=7)"),
    *("fading-isotonic(half_life=20)", "fading-isotonic(half_life=3)", "rolling-isotonic(window=20,bins=3)"),
    *("online-platt(bins=3)", "hedge(bins=4)", "ftpl(bins=2)", "cdl-algorithm(bins=3)"),
    "almost-one-step-ahead(bins=3)",
]
"""Every declared one, with small windows too, and inside bins of the score."""
ROWS = 240
TIMES = np.repeat(np.arange(ROWS // 4), 4)
DELAYS = {
    "none": known_after_rows(ROWS, 0),
    "3 rows": known_after_rows(ROWS, 3),
    "longer than the warm-up": known_after_rows(ROWS, 110),
    "longer than the stream": known_after_rows(ROWS, ROWS + 1),
    "equal times": known_after_time(TIMES, 0),
    "a delay in time": known_after_time(TIMES, 20),
}


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(2)
    score[::7], score[3::11] = 0, 1
    return score, (rng.random(rows) < score**2).astype(np.uint8)


@pytest.mark.parametrize(
    ("delay", "horizon"),
    [*((delay, None) for delay in DELAYS), *(("none", ROWS), ("3 rows", 180), ("equal times", 180))],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_replay_predicts_what_row_by_row_does_and_its_pieces_too(
    method: str, delay: str, horizon: int | None
) -> None:
    (score, label), known = stream(ROWS, seed=1), DELAYS[delay]
    fast, slow, piece = (forecaster_of(parse(method), 3, horizon) for _ in range(3))
    predictions = fast.replay(score, label, known)
    assert predictions.tobytes() == one_by_one(slow, score, label, known).tobytes()
    assert ((predictions >= 0) & (predictions <= 1)).all()
    cuts = sorted(np.random.default_rng(1).choice(ROWS, 6).tolist())
    pieces, learned = [], 0
    for start, end in pairwise([0, *cuts, ROWS]):
        text = json.dumps(piece.state())
        piece = forecaster_of(parse(method), 3, horizon)
        piece.restore(json.loads(text))
        pieces.append(piece.replay(score[learned:end], label[learned:end], known[start:end] - learned))
        learned = int(known[end - 1]) if end > start else learned
    assert np.concatenate(pieces).tobytes() == predictions.tobytes()
    assert json.dumps(fast.state()) == json.dumps(slow.state()) == json.dumps(piece.state())


def test_bins_of_the_score_are_groups_of_equal_width_and_1_is_in_the_last() -> None:
    (score, label), known = stream(ROWS, seed=5), DELAYS["none"]
    number = np.searchsorted([1 / 3, 2 / 3], score, side="right")
    grouped = forecaster_of(parse("hedge"), 3, None, groups=True)
    expected = grouped.replay(score, label, known, number.astype(str).tolist())
    assert forecaster_of(parse("hedge(bins=3)"), 3, None).replay(score, label, known).tobytes() == expected.tobytes()


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", ["hedge", "rolling-isotonic(window=30)", "cdl-algorithm", "online-platt(bins=2)"])
def test_a_group_is_predicted_as_if_there_were_no_other(method: str, delay: str) -> None:
    score, label = stream(ROWS, seed=5)
    known, group = DELAYS[delay], np.random.default_rng(6).choice(["a", "b", "ü"], ROWS)
    inside = forecaster_of(parse(method), 3, None, groups=True)
    step = forecaster_of(parse(method), 3, None, groups=True)
    together = inside.replay(score, label, known, group.tolist())
    learned, by_row = 0, []
    for row in range(ROWS):
        while learned < known[row]:
            step.learn_one(score[learned], int(label[learned]), group[learned])
            learned += 1
        by_row.append(step.predict_one(score[row], group[row]))
    assert together.tobytes() == np.array(by_row).tobytes()
    assert json.dumps(inside.state()) == json.dumps(step.state())
    other = label.copy()
    other[group != "b"] = 1 - other[group != "b"]
    without = forecaster_of(parse(method), 3, None, groups=True)
    changed = without.replay(score, other, known, group.tolist())
    assert changed[group == "b"].tobytes() == together[group == "b"].tobytes()
    back = forecaster_of(parse(method), 3, None, groups=True)
    back.restore(json.loads(json.dumps(inside.state())))
    assert json.dumps(back.state()) == json.dumps(inside.state())


def test_the_experts_expect_to_win_at_most_one_by_t_whatever_the_label() -> None:
    rng = np.random.default_rng(2)
    forecaster = CdlForecaster(seed=3, horizon=1000)
    between = 0
    for _ in range(1000):
        draw, lead, m = forecaster.draw(), forecaster.lead(), forecaster.buckets
        for label in (0, 1):
            won = 0.0
            for p, chance in ((draw.low, draw.chance), (draw.high, 1 - draw.chance)):
                # Bucket i is ((i-1)/m, i/m], and 0 lies in the first.
                bucket = next(i for i in range(m) if p <= (i + 1) / m + 1e-12)
                won += chance * lead[bucket] * (p - label)
            assert won <= 1 / 1000 + 1e-12
        between += 0 < draw.chance < 1
        forecaster.predict_one(0.0)
        forecaster.learn_one(0.0, int(rng.random() < 0.4))
    assert between > 300


@pytest.mark.parametrize(
    ("lead", "low", "high", "chance"),
    [
        ((0.0, -0.1, -0.1, -0.1), 0.0, 0.0, 1.0),
        ((-0.1, 0.2, 0.1, 0.0), 1.0, 1.0, 1.0),
        ((-0.2, -0.1, 0.3, 0.2), 0.5, 0.5 + 1 / 700, 0.75),
        ((-0.2, 0.0, 0.1, 0.3), 0.25, 0.25 + 1 / 700, 0.0),
    ],
    ids=["all begin above", "none ends above", "between two", "0 is above"],
)
def test_draws_by_hand(lead: tuple[float, ...], low: float, high: float, chance: float) -> None:
    """Of four buckets in 700 rows."""
    forecaster = CdlForecaster(horizon=700)
    assert forecaster.buckets == 4
    forecaster._lead = np.array(lead)
    assert forecaster.draw() == pytest.approx((low, high, chance))


def test_the_experts_by_hand() -> None:
    """Of nine experts of rate 1/2, a label 1 at 0 and a label 0 at 1 halve two shares and raise two by a half."""
    forecaster = CdlForecaster(horizon=700)
    for predicted, label in ((0.25, 1), (1.0, 0)):
        assert forecaster.predict_one(0.0) == predicted
        forecaster.learn_one(0.0, label)
    assert forecaster.lead() == pytest.approx((-1 / 9, 0.0, 0.0, 1 / 9))
    assert forecaster.predict_one(0.0) == 0.5


def test_without_a_horizon_the_experts_start_over_at_rows_1_2_4_and_8() -> None:
    forecaster, starts = CdlForecaster(), []
    for _ in range(9):
        forecaster.predict_one(0.0)
        starts.append((forecaster.start + 1, forecaster.rows))
    assert starts == [(1, 1), (2, 2), (2, 2), *[(4, 4)] * 4, *[(8, 8)] * 2]


def test_before_the_first_label_hedge_is_as_sure_as_it_can_be() -> None:
    nothing = np.zeros(50, dtype=int)
    assert set(ForecastHedge(seed=3).replay(np.zeros(50), nothing.astype(np.uint8), nothing)) == {0.0, 1.0}


def distance(forecaster: AlmostOneStepAhead, label: Callable[[int, float], int], rows: int) -> tuple[float, np.ndarray]:
    """How far the theorem's own sequence is from the predictions, and from calibration, and the predictions.

    The distance to calibration is at most the sum of both. label: of a row, which may answer its prediction.
    """
    p, away, bias = np.empty(rows), 0.0, defaultdict(float)
    for row in range(rows):
        p[row] = forecaster.predict_one(0.0)
        lower, steps = forecaster.pairs[-1]
        y = label(row, p[row])
        forecaster.learn_one(0.0, y)
        ahead = (lower + y) / steps
        away += abs(ahead - p[row])
        bias[ahead] += ahead - y
    assert max(map(abs, bias.values())) <= 1 + 1e-9
    at_most = away + sum(map(abs, bias.values()))
    assert forecaster.account() == pytest.approx(at_most, abs=1e-9)
    return at_most, p


@pytest.mark.parametrize("rows", [10, 300, 2000])
@pytest.mark.parametrize("kind", SEQUENCES)
def test_the_distance_is_within_its_bound_on_any_sequence(kind: str, rows: int) -> None:
    label = SEQUENCES[kind](rows, 2, np.random.default_rng(rows)).astype(np.uint8)
    for forecaster in (AlmostOneStepAhead(rows), AlmostOneStepAhead()):
        bound = forecaster.guarantee(rows).bound * rows
        at_most, p = distance(forecaster, lambda row, _: int(label[row]), rows)
        assert at_most <= bound <= (2 * math.sqrt(rows) + 1 if forecaster.horizon else 4 * math.sqrt(rows))
        if rows <= 300:  # by a linear program, which knows nothing of the algorithm
            assert value_of(parse_metric("dist_cal_lower"), Inputs(Rows(p, label))) * rows <= at_most + 1e-6


def test_its_predictions_by_hand() -> None:
    """T = 4, so that the grid is 0, .5, 1."""
    p = AlmostOneStepAhead(4).replay(np.zeros(4), np.array([1, 1, 0, 0], dtype=np.uint8), known_after_rows(4, 0))
    # Both pairs will do, and are as far from 1/2: the lower one, of which 0 is further off. The first label 1 counts to
    # .5, whose bias falls to -.5: only the pair of .5 and 1 is left. The second counts to 1, with bias 0. The label 0
    # counts to .5, whose bias is 0 again: of both pairs the upper one is nearer to the share, 2/3.
    np.testing.assert_allclose(p, [0, 1, 1, 1])


def test_a_declared_forecaster_is_named_with_its_parameters() -> None:
    assert parse("rolling-isotonic(window=500)").key == "rolling-isotonic(window=500)"
    assert parse("rolling-isotonic(window=1000)").key == "rolling-isotonic"


ROLLING, FROZEN, PLATT = "rolling-isotonic(window=7)", "frozen-isotonic(warm_up=10)", "online-platt"
ONE_BIN = {"learned": 6, "scores": [0.5] * 6, "labels": [1] * 6, "curve": None}
UNLEARNED = {"learned": 0, "positives": 0, "moved": 0, "bias": [0] * 9, "pairs": [[0, 8]] * 30}
LARGEST = 100 * math.log(1e-6) ** 2 * MOST


@pytest.mark.parametrize(
    ("method", "can_be", "cannot_be"),
    [
        *((name, {"row": MOST}, {"row": MOST + 1}) for name in ("running-mean", "hedge", "ftpl")),
        *(("hedge", {"rows": rows, "positives": rows}, {"rows": rows, "positives": rows + 1}) for rows in (0, 26)),
        ("hedge", {"rows": 30}, {"rows": 31}),
        ("hedge", {"positives": 0}, {"positives": -1}),
        (ROLLING, {"learned": MOST}, {"learned": MOST + 1}),
        (ROLLING, {"scores": [0, 1, 0, 1, 0, 1, 0]}, {"scores": [0, 1, 0, 1, 0, 1, -1e-9]}),
        (ROLLING, {"scores": [1, 1, 0, 1, 0, 1, 0]}, {"scores": [1 + 1e-9, 1, 0, 1, 0, 1, 0]}),
        (ROLLING, {"labels": [1] * 7}, {"labels": [1] * 6 + [2]}),
        (ROLLING, {"scores": [0] * 7, "labels": [0] * 7}, {"scores": [0] * 7, "labels": [0] * 6}),
        (ROLLING, {"scores": [0] * 7, "labels": [0] * 7}, {"scores": [0] * 6, "labels": [0] * 6}),
        (ROLLING, ONE_BIN, {**ONE_BIN, "learned": 7}),
        (ROLLING, {"learned": 7}, {"learned": 7, "curve": None}),
        (ROLLING, {"learned": 0, "scores": [], "labels": [], "curve": None}, {"learned": 1}),
        (FROZEN, {"learned": 10}, {"learned": 9}),
        (PLATT, {"slope": -100.0, "intercept": 0.0}, {"slope": -100.1, "intercept": 0.0}),
        (PLATT, {"slope": 60.0, "intercept": 80.0}, {"slope": 60.0, "intercept": 80.1}),
        (PLATT, {"curvature": [100, 99.9, 100]}, {"curvature": [100, 100, 100]}),
        (PLATT, {"curvature": [100, 0, 200]}, {"curvature": [99.9, 0, 200]}),
        (PLATT, {"curvature": [200, 0, 100]}, {"curvature": [200, 0, 99.9]}),
        *((PLATT, {"curvature": [LARGEST, 0, 100][::way]}, {"curvature": [1.01 * LARGEST, 0, 100][::way]})
          for way in (1, -1)),
        *(("cdl-algorithm", {}, {name: 32}) for name in ("start", "rows", "learned")),
        ("cdl-algorithm", {"start": 30, "rows": 31}, {"start": 31, "rows": 32}),
        ("cdl-algorithm", {"row": MOST, "learned": MOST - 4}, {"row": MOST + 1, "learned": MOST - 3}),
        ("cdl-algorithm", {"row": 26, "drawn": []}, {"row": 25, "drawn": []}),
        ("cdl-algorithm", {"drawn": [0, 0, 1, 1]}, {"drawn": [0, 0, 1]}),
        ("cdl-algorithm", {"drawn": [0, 0, 1, 1]}, {"drawn": [0, 0, 1, 1 + 1e-9]}),
        ("cdl-algorithm", {"drawn": [0, 0, 1, 1]}, {"drawn": [-1e-9, 0, 1, 1]}),
        ("cdl-algorithm", {"squares": [1] * 5}, {"squares": [1] * 4 + [0.99]}),
        ("cdl-algorithm", {"squares": [1 + 4 * MOST] * 5}, {"squares": [1] * 4 + [2 + 4 * MOST]}),
        ("cdl-algorithm", {"squares": [1] * 5}, {"squares": [1] * 6}),
        *(("cdl-algorithm", {"log_weight": [0, 0, 0, 0, sign * 26.99 * 12 * math.log(10)]},
           {"log_weight": [0, 0, 0, 0, sign * 27.01 * 12 * math.log(10)]}) for sign in (1, -1)),
        ("cdl-algorithm", {"learned": 0, "drawn": [0] * 30}, {"learned": -1, "drawn": [0] * 31}),
        ("almost-one-step-ahead", {"positives": 0}, {"positives": -1}),
        ("almost-one-step-ahead", UNLEARNED, {**UNLEARNED, "bias": [0] * 7 + [1, 0]}),
        *(("almost-one-step-ahead", {"pairs": [[p, s]] * 4}, {"pairs": [[0, 8]] * 3 + [[q, r]]})
          for p, s, q, r in ((0, 1, -1, 8), (7, 8, 8, 8), (3, 4, 0, 3))),
        *(("almost-one-step-ahead", {"bias": [0] * 9}, {"bias": bias})
          for bias in ([1] + [0] * 8, [0] * 8 + [-1], [0] * 10, [0] * 7 + [26 * 8 + 1, 0])),
        ("almost-one-step-ahead", {"positives": 26}, {"positives": 27}),
        ("almost-one-step-ahead", {"moved": 0}, {"moved": -1}),
        ("almost-one-step-ahead", {"moved": 26 * 8}, {"moved": 26 * 8 + 1}),
    ],
)  # fmt: skip
def test_a_state_of_30_rows_and_26_labels_holds_what_can_be(
    method: str, can_be: dict[str, object], cannot_be: dict[str, object]
) -> None:
    """Counts end with the rows there are, or with the limit; shares with 0 and 1; sums with what each row can add."""
    (score, label), forecaster = stream(30, seed=1), forecaster_of(parse(method), 3, None)
    forecaster.replay(score, label, known_after_rows(30, 3))
    state = json.loads(json.dumps(forecaster.state()))
    forecaster.restore({**state, **can_be})
    with pytest.raises(ValueError):
        forecaster.restore({**state, **cannot_be})
