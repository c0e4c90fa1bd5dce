"""The alarm and the confidence sequence: their martingales by hand, false alarms and coverage by simulation."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc
from scipy.stats import gamma

from decal_cli.sequential.calibration_alarm import BETS, MAX_LOG_E, RESTART, first_alarm, log_e_process
from decal_cli.sequential.confidence_sequence import boundary, log_mixture, mean_sequence
from decal_cli.sequential.difference import difference_sequence, utility_difference
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.task import BinaryTask

SHAPES = {
    "uniform": lambda rng, rows: rng.random(rows),
    "beta(2,5)": lambda rng, rows: rng.beta(2, 5, rows),
    "beta(1,9)": lambda rng, rows: rng.beta(1, 9, rows),
    "near .5": lambda rng, rows: 0.45 + 0.1 * rng.random(rows),
}


def test_no_bet_gains_on_a_calibrated_row_and_all_shares_are_one_capital() -> None:
    score = np.array([1e-6, 0.01, 0.19, 0.2, 0.5, 0.77, 0.999])
    logit = log_odds(score)
    for bet in BETS:
        won = [np.exp(bet.log_factors(score, logit, np.full(7, y, dtype=np.uint8))) for y in (0, 1)]
        np.testing.assert_allclose((1 - score) * won[0] + score * won[1], 1, rtol=1e-9)
    assert sum(bet.share for bet in BETS) == pytest.approx(1)


def test_the_e_process_is_the_mixture_over_bets_and_starts() -> None:
    rng = np.random.default_rng(1)
    rows = 2 * RESTART + 30
    score = rng.random(rows)
    label = (rng.random(rows) < score).astype(np.uint8)
    logit = log_odds(score)
    capital = 0.0
    for number, start in enumerate((0, RESTART, 2 * RESTART), start=1):
        each = [bet.share * math.exp(bet.log_factors(score, logit, label)[start:].sum()) for bet in BETS]
        capital += sum(each) / (number * (number + 1))
    log_e = log_e_process(score, label)
    assert log_e[-1] == pytest.approx(math.log(capital + 1 / 4), abs=1e-9)
    # What is seen after a row changes nothing before it.
    np.testing.assert_allclose(log_e_process(score[:150], label[:150]), log_e[:150], rtol=1e-9, atol=1e-12)


def test_a_label_that_its_score_calls_impossible_raises_the_alarm_and_a_sure_right_score_does_not() -> None:
    score = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    right = log_e_process(score, np.array([0, 1, 0, 1, 0], dtype=np.uint8))
    assert first_alarm(right, 0.05) is None
    wrong = log_e_process(score, np.array([0, 1, 0, 1, 1], dtype=np.uint8))
    assert first_alarm(wrong, 0.05) == 4
    assert np.isfinite(wrong).all() and wrong[-1] <= MAX_LOG_E


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_are_at_most_alpha_and_a_shift_is_found(shape: str) -> None:
    false_alarms = hits = 0
    for seed in range(100):
        rng = np.random.default_rng([9, seed])
        score = np.clip(SHAPES[shape](rng, 1000), 1e-9, 1 - 1e-9)
        coin = rng.random(1000)
        false_alarms += first_alarm(log_e_process(score, (coin < score).astype(np.uint8)), 0.05) is not None
        shifted = expit(log_odds(score) + 0.5)
        hits += first_alarm(log_e_process(score, (coin < shifted).astype(np.uint8)), 0.05) is not None
    assert false_alarms <= 11  # P(more | .05) < .01
    assert hits >= 85


def test_the_mixture_is_the_integral_that_it_stands_for() -> None:
    rho = 3.0

    def density(rate: float) -> float:
        return float(gamma.pdf(1 - rate, rho, scale=1 / rho) / gammainc(rho, rho))

    for total, squares in ((0.5, 0.2), (4.0, 6.0), (12.0, 20.0)):
        integral = quad(
            lambda rate, s=total, v=squares: density(rate) * math.exp(rate * s - (-math.log1p(-rate) - rate) * v), 0, 1
        )[0]
        computed = log_mixture(np.array([total]), np.array([squares]), rho)[0]
        assert computed == pytest.approx(math.log(integral), abs=1e-6)


def test_the_boundary_grows_and_is_within_twice_that_of_a_fixed_time() -> None:
    squares = np.linspace(0, 5000, 20_001)
    margin = boundary(squares, 0.025)
    assert (np.diff(margin) >= 0).all()
    assert (margin[squares >= 100] < 2 * 1.96 * np.sqrt(squares[squares >= 100])).all()


def test_the_difference_is_what_the_utilities_say() -> None:
    task = BinaryTask.of_utility(((1.0, -3.0), (0.0, 2.0)))
    first, second = np.array([0, 0, 1, 1], dtype=bool), np.array([0, 1, 0, 1], dtype=bool)
    for label in (0, 1):
        won = utility_difference(first, second, np.full(4, label, dtype=np.uint8), task)
        expected = [
            task.utility[int(b)][label] - task.utility[int(a)][label] for a, b in zip(first, second, strict=True)
        ]
        np.testing.assert_allclose(won, expected, atol=1e-12)


def test_the_sequence_covers_the_running_mean_at_all_times() -> None:
    """Scores too low by .4 in log-odds: acting on what is right differs in some rows, and wins a known amount."""
    task, rows, missed, widths = BinaryTask.of_threshold(0.3), 8000, 0, []
    for seed in range(100):
        rng = np.random.default_rng([11, seed])
        truth = rng.beta(2, 5, rows)
        score = expit(log_odds(truth) - 0.4)
        label = (rng.random(rows) < truth).astype(np.uint8)
        first, second = score >= 0.3, truth >= 0.3
        sequence = difference_sequence(first, second, label, task, 0.05)
        running = np.cumsum((second.astype(float) - first) * (truth - 0.3)) / np.arange(1, rows + 1)
        missed += bool(((sequence.low > running + 1e-12) | (sequence.high < running - 1e-12)).any())
        fixed = 2 * 1.96 * np.std(utility_difference(first, second, label, task)) / math.sqrt(rows)
        widths.append((sequence.high[-1] - sequence.low[-1]) / fixed)
    assert missed <= 11
    assert max(widths) < 3


def test_rows_decided_alike_widen_nothing_and_the_guess_uses_earlier_rows_only() -> None:
    task = BinaryTask.of_threshold(0.5)
    rng = np.random.default_rng(3)
    first = rng.random(400) < 0.5
    second = np.where(rng.random(400) < 0.1, ~first, first)
    label = (rng.random(400) < 0.5).astype(np.uint8)
    whole = difference_sequence(first, second, label, task, 0.05)
    part = difference_sequence(first[:200], second[:200], label[:200], task, 0.05)
    # The grid of the boundary reaches as far as the rows do, which moves its points a little.
    np.testing.assert_allclose(part.low, whole.low[:200], rtol=0.01, atol=1e-4)
    alike = mean_sequence(np.zeros(50), np.zeros(50), 1.0, 0.05)
    assert alike.high[-1] == pytest.approx(float(boundary(np.zeros(1), 0.025)[0]) / 50)
