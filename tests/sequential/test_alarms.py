"""The alarm and the confidence sequence: their martingales by hand, false alarms and coverage by simulation."""

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc
from scipy.stats import gamma

from decal_cli.analysis.online.plan import known_after_rows, known_after_time
from decal_cli.limits import MAX_ROWS_OVER_TIME as MOST
from decal_cli.sequential.anytime import (
    BETS,
    MAX_GUESS,
    MAX_LOG_E,
    RESTART,
    CalibrationAlarm,
    ClusterAlarm,
    DelayedAlarm,
    RunningDifference,
    RunningMeans,
    Runs,
    Sums,
    boundary,
    first_alarm,
    log_mixture,
    utility_difference,
)
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.task import BinaryTask
from simulation.cluster_streams import runs_of

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
        assert bet.bin is None or ((won[1] != 1) == (np.array([0, 0, 0, 1, 2, 3, 4]) == bet.bin)).all()
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
    log_e = CalibrationAlarm().advance(score, label)
    assert log_e[-1] == pytest.approx(math.log(capital + 1 / 4), abs=1e-9)
    # What is seen after a row changes nothing before it.
    np.testing.assert_allclose(CalibrationAlarm().advance(score[:150], label[:150]), log_e[:150], rtol=1e-9, atol=1e-12)


def test_a_label_that_its_score_calls_impossible_raises_the_alarm_and_a_sure_right_score_does_not() -> None:
    score = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    right = CalibrationAlarm().advance(score, np.array([0, 1, 0, 1, 0], dtype=np.uint8))
    assert first_alarm(right, 0.05) is None
    wrong = CalibrationAlarm().advance(score, np.array([0, 1, 0, 1, 1], dtype=np.uint8))
    assert first_alarm(wrong, 0.05) == 4
    assert np.isfinite(wrong).all() and wrong[-1] <= MAX_LOG_E
    assert first_alarm(np.array([0.0, -np.log(0.05)]), 0.05) == 1


@pytest.mark.parametrize("shape", ["uniform", *(pytest.param(each, marks=pytest.mark.long) for each in [*SHAPES][1:])])
def test_false_alarms_are_at_most_alpha_and_a_shift_is_found(shape: str) -> None:
    false_alarms = hits = 0
    for seed in range(100):
        rng = np.random.default_rng([9, seed])
        score = np.clip(SHAPES[shape](rng, 1000), 1e-9, 1 - 1e-9)
        coin = rng.random(1000)
        false_alarms += (
            first_alarm(CalibrationAlarm().advance(score, (coin < score).astype(np.uint8)), 0.05) is not None
        )
        shifted = expit(log_odds(score) + 0.5)
        hits += first_alarm(CalibrationAlarm().advance(score, (coin < shifted).astype(np.uint8)), 0.05) is not None
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
    # At a point of the grid it is where the mixture is 1 / alpha, and above it that at the next point.
    points, enough = 0.01 * 1.005 ** np.arange(0, 2000, 7.0), -math.log(0.025)
    rho = 25 / (2 * enough + math.log(1 + 2 * enough))
    assert log_mixture(boundary(points * (1 - 1e-12), 0.025), points, rho) == pytest.approx(enough, abs=1e-6)
    assert (boundary(points * (1 + 1e-12), 0.025) == boundary(points * 1.004, 0.025)).all()
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


@pytest.mark.long
def test_the_sequence_covers_the_running_mean_at_all_times() -> None:
    """Scores too low by .4 in log-odds: acting on what is right differs in some rows, and wins a known amount."""
    task, rows, missed, widths = BinaryTask.of_threshold(0.3), 8000, 0, []
    for seed in range(100):
        rng = np.random.default_rng([11, seed])
        truth = rng.beta(2, 5, rows)
        score = expit(log_odds(truth) - 0.4)
        label = (rng.random(rows) < truth).astype(np.uint8)
        first, second = score >= 0.3, truth >= 0.3
        sequence = RunningDifference(task).advance(first, second, label).sequence(0.05)
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
    whole = RunningDifference(task).advance(first, second, label).sequence(0.05)
    part = RunningDifference(task).advance(first[:200], second[:200], label[:200]).sequence(0.05)
    assert part.low.tolist() == whole.low[:200].tolist()
    alike = Sums(np.arange(1, 51), np.zeros(50), np.zeros(50), 1.0).sequence(0.05)
    assert alike.high[-1] == pytest.approx(float(boundary(np.zeros(1), 0.025)[0]) / 50)


TASK = BinaryTask.of_threshold(0.3)


def test_averages_enter_when_a_cluster_is_over() -> None:
    """Clusters of 2, 3 and 1 rows: averages .3, -.2 and .6, guessed by 0, .3 (at most a quarter of .7) and .05."""
    difference = np.array([0.7, -0.1, 0.0, -0.3, -0.3, 0.6])
    means = RunningMeans(TASK)
    sums = means.advance(difference, runs_of(np.array([2, 3, 1])))
    assert sums.rows.tolist() == [1, 2]
    assert sums.total == pytest.approx([0.3, 0.1], abs=1e-12)
    after = means.close(1)
    width = 0.7 * (1 + MAX_GUESS)
    missed = np.array([0.3, -0.2 - 0.7 * MAX_GUESS, 0.6 - 0.05]) / width
    assert after.squares == pytest.approx([(missed**2).sum()], abs=1e-12)
    ends, by_hand = after.sequence(0.05), after._replace(width=width).sequence(0.05)
    assert ends.low == by_hand.low and ends.mean == pytest.approx([0.7 / 3], abs=1e-12)


def test_clusters_of_one_row_are_rows_to_the_alarm() -> None:
    rng = np.random.default_rng(1)
    score, label = rng.random(401), (rng.random(401) < 0.5).astype(np.uint8)
    alarm, rows_alarm = ClusterAlarm(), CalibrationAlarm()
    seen = alarm.advance(score, label, runs_of(np.ones(401, dtype=np.int64)))
    by_row = rows_alarm.advance(score, label)
    assert seen[0] == 0
    assert seen[1:] == pytest.approx(by_row[:-1], abs=1e-9)
    assert alarm.close(1) == pytest.approx(by_row[-1], abs=1e-9)
    # The last row is the first of a start, which the bets that have lost by then would lead.
    assert 400 in alarm.rows_of_starts() == rows_alarm.rows_of_starts()


def test_a_bet_on_a_cluster_is_the_average_of_those_on_its_rows() -> None:
    score, label = np.array([0.2, 0.6, 0.9]), np.array([1, 1, 0], dtype=np.uint8)
    alarm, steps = ClusterAlarm(), CalibrationAlarm()
    alarm.advance(score, label, runs_of(np.array([3])))
    factors = [np.log(np.mean(np.exp(each))) for each in CalibrationAlarm.log_factors(score, label)]
    expected = steps.enter(np.array([0]), (np.array([each]) for each in factors))
    assert alarm.close(3) == pytest.approx(expected[0], abs=1e-12)
    assert len(factors) == len(BETS)


def test_pieces_are_the_whole() -> None:
    rng = np.random.default_rng(2)
    size = rng.integers(1, 30, 250)
    of_row = np.repeat(np.arange(250), size)
    score, label = rng.random(len(of_row)), (rng.random(len(of_row)) < 0.3).astype(np.uint8)
    whole = ClusterAlarm()
    log_e = whole.advance(score, label, runs_of(size))
    pieces, parts, states = ClusterAlarm(), [], []
    cut = int(size[:48].sum()) + 1  # after the first row of a cluster
    for start, end in ((0, cut), (cut, cut + 1), (cut + 1, len(of_row))):
        here = of_row[start:end]
        runs = np.unique(here)
        # Of the first run the rows before this piece count too.
        sizes = np.searchsorted(of_row, runs, side="right").clip(max=end) - np.searchsorted(of_row, runs)
        firsts = np.searchsorted(of_row, runs)
        before = int(of_row[start - 1]) if start else -1
        if before >= 0 and before != runs[0]:
            sizes, firsts = np.insert(sizes, 0, size[before]), np.insert(firsts, 0, np.searchsorted(of_row, before))
            runs = np.insert(runs, 0, before)
        parts.append(pieces.advance(score[start:end], label[start:end], Runs(here - runs[0], sizes, firsts)))
        states.append(pieces.state())
    assert np.concatenate(parts).tobytes() == log_e.tobytes()
    assert pieces.state() == whole.state()
    assert pieces.likely_start() in {0, *whole.rows_of_starts()}
    for rows, state in ((cut, states[0]), (cut + 1, states[1])):
        first = ClusterAlarm()
        log_of_first = first.advance(score[:rows], label[:rows], runs_of(size).up_to(rows))
        assert log_of_first.tobytes() == log_e[:rows].tobytes() and first.state() == state


ROWS = 300
KNOWN = {
    "1 row": known_after_rows(ROWS, 1),
    "7 rows": known_after_rows(ROWS, 7),
    "more than all": known_after_rows(ROWS, ROWS),
    "in time": known_after_time(np.random.default_rng(4).integers(0, 4, ROWS).cumsum(), 9),
}


def rows(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(ROWS)
    return score, (rng.random(ROWS) < score**2).astype(np.uint8)


def by_hand(score: np.ndarray, label: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The inverse of the p-value after each row: block by block, in two lists of average bets."""
    factors = [np.exp(each) for each in CalibrationAlarm.log_factors(score, label)]
    starts, most, inverse = [0], 1.0, []
    turns: tuple[list, list] = ([], [])
    for row in range(ROWS):
        if row > starts[-1] and known[row] >= starts[-1]:
            starts.append(row)
            over = len(starts) - 3
            if over >= 0:
                shared = starts[over] - starts[over - 1] if over else 1
                mine = slice(starts[over], min(starts[over + 1], starts[over] + shared))
                kept = shared - (mine.stop - mine.start)
                assert known[row] >= starts[over + 1], "its labels are known"
                turns[over % 2].append((starts[over], [(kept + each[mine].sum()) / shared for each in factors]))
                steps, turn = turns[over % 2], CalibrationAlarm()
                log_e = turn.enter(np.array([step[0] for step in steps]), np.log(np.transpose([s[1] for s in steps])))
                most = max(most, math.exp(log_e[-1]) / 2)
        inverse.append(most)
    return np.array(inverse)


@pytest.mark.parametrize("delay", KNOWN)
def test_even_and_odd_blocks_are_two_e_processes_and_pieces_are_the_whole(delay: str) -> None:
    (score, label), known = rows(), KNOWN[delay]
    whole = DelayedAlarm()
    log_inverse = whole.advance(score, label, known)
    assert log_inverse == pytest.approx(np.log(by_hand(score, label, known)), abs=1e-9)
    assert (log_inverse[-1] > 0.5) == (delay != "more than all")
    piece, parts = DelayedAlarm(), []
    for start, end in ((0, 1), (1, 97), (97, 98), (98, ROWS)):
        text = json.dumps(piece.state())
        piece = DelayedAlarm()
        piece.restore(json.loads(text))
        parts.append(piece.advance(score[start:end], label[start:end], known[start:end]))
        assert piece.likely_start() in piece.rows_of_starts()
    assert np.concatenate(parts).tobytes() == log_inverse.tobytes()
    assert json.dumps(piece.state()) == json.dumps(whole.state())


def test_labels_that_are_not_known_yet_change_nothing() -> None:
    (score, label), known = rows(), KNOWN["7 rows"]
    before = DelayedAlarm().advance(score, label, known)
    for row in (0, 8, 100, 237):
        after = DelayedAlarm().advance(score, np.where(np.arange(ROWS) < row, label, 1 - label), known)
        first = int(np.searchsorted(known, row + 1))
        assert after[:first].tobytes() == before[:first].tobytes()


N_BETS = len(BETS)
BLOCK = {"first": 0, "size": 3, "shared": 1, "log_sums": [0.0] * N_BETS}
ONE_BLOCK = {"rows": 3, "begun": 1, "held": [BLOCK]}
TWO_BLOCKS = {"rows": 5, "begun": 2, "held": [BLOCK, {**BLOCK, "first": 3, "size": 2, "shared": 3}]}


def bets(value: float) -> list[float]:
    """One bet of this value, others of 0."""
    return [0.0] * (N_BETS - 1) + [value]


DIFFERING = {"rows": 3, "differing": [1, 2]}
STARTED = {"rows": 2, "capital": bets(0), "of_starts": bets(0), "lead": bets(0), "leader": bets(0)}


@pytest.mark.parametrize(
    ("kind", "can_be", "cannot_be"),
    [
        ("difference", {"rows": MOST}, {"rows": MOST + 1}),
        ("difference", {}, {"rows": -1}),
        *(("difference", {"total": 2.0 * sign}, {"total": 2.01 * sign}) for sign in (1, -1)),
        ("difference", {"squares": 4}, {"squares": 4.1}),
        ("difference", {}, {"squares": -0.1}),
        ("difference", DIFFERING, {**DIFFERING, "differing": [2, 2]}),
        *(("difference", {**DIFFERING, "positives": p}, {**DIFFERING, "positives": q})
          for p, q in (([1, 2], [2, 2]), ([1, 2], [1, 3]), ([0, 0], [-1, 0]))),
        ("difference", {"differing": [0, 0]}, {"differing": [1, -1]}),
        ("difference", {"differing": [0, 0]}, {"differing": [0, 0, 0]}),
        ("difference", {"positives": [0, 0]}, {"positives": [0, 0, 0]}),
        ("means", {"steps": MOST}, {"steps": MOST + 1}),
        *(("means", {"open": 1.5 * MOST * sign}, {"open": 1.501 * MOST * sign}) for sign in (1, -1)),
        ("alarm", {**STARTED, "rows": MOST}, {**STARTED, "rows": MOST + 1}),
        ("alarm", STARTED, {**STARTED, "rows": -1}),
        ("alarm", STARTED, {**STARTED, "rows": 0}),
        ("alarm", {}, {"rows": 1}),
        *(("alarm", {**STARTED, name: bets(3 * MAX_LOG_E * sign)}, {**STARTED, name: bets(3.01 * MAX_LOG_E * sign)})
          for name in ("capital", "of_starts", "lead") for sign in (1, -1)),
        ("alarm", {**STARTED, "leader": bets(1)}, {**STARTED, "leader": bets(2)}),
        ("alarm", STARTED, {**STARTED, "leader": bets(-1)}),
        *(("alarm", STARTED, {**STARTED, name: bets(0)[1:]}) for name in STARTED if name != "rows"),
        *(("clusters", {"log_e": MAX_LOG_E * sign}, {"log_e": 1.01 * MAX_LOG_E * sign}) for sign in (1, -1)),
        *(("clusters", {"open": bets(2 * most)}, {"open": bets(2.01 * most)}) for most in (MAX_LOG_E, -MAX_LOG_E)),
        ("clusters", {"open": bets(0)}, {"open": bets(0)[1:]}),
        ("clusters", {"first_rows": [[0, 0]]}, {"first_rows": [[1, 0]]}),
        ("clusters", {"first_rows": [[0, MOST]]}, {"first_rows": [[0, MOST + 1]]}),
        ("clusters", {"first_rows": [[0, 0], [100, 0]]}, {"first_rows": [[0, 0], [100, -1]]}),
        ("delayed", {"log_inverse": MAX_LOG_E}, {"log_inverse": 1.01 * MAX_LOG_E}),
        ("delayed", {"log_inverse": 0}, {"log_inverse": -0.01}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "begun": 0}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "begun": 2}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "rows": 4}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "rows": 0}),
        ("delayed", TWO_BLOCKS, {**TWO_BLOCKS, "held": [{**BLOCK, "size": 2}, TWO_BLOCKS["held"][1]]}),
        ("delayed", {**TWO_BLOCKS, "begun": 5}, {**TWO_BLOCKS, "begun": 6}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "held": [{**BLOCK, "first": -1, "size": 4}]}),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "held": [{**BLOCK, "first": 3, "size": 0}]}),
        *(("delayed", {**ONE_BLOCK, "held": [{**BLOCK, "shared": s}]}, {**ONE_BLOCK, "held": [{**BLOCK, "shared": t}]})
          for s, t in ((1, 0), (3, 4))),
        *(("delayed", {**ONE_BLOCK, "held": [{**BLOCK, "log_sums": bets(2 * MAX_LOG_E * sign)}]},
           {**ONE_BLOCK, "held": [{**BLOCK, "log_sums": bets(2.01 * MAX_LOG_E * sign)}]}) for sign in (1, -1)),
        ("delayed", ONE_BLOCK, {**ONE_BLOCK, "held": [{**BLOCK, "log_sums": bets(0)[1:]}]}),
    ],
)  # fmt: skip
def test_a_state_holds_what_can_be(kind: str, can_be: dict[str, object], cannot_be: dict[str, object]) -> None:
    """Counts end with the rows there are, or with the limit; sums with what each row can add. u_delta is 2."""
    task = BinaryTask.of_costs(0.5, 1.5)
    made = {
        "difference": lambda: RunningDifference(task),
        "means": lambda: RunningMeans(task),
        "alarm": CalibrationAlarm,
        "clusters": ClusterAlarm,
        "delayed": DelayedAlarm,
    }[kind]()
    state = json.loads(json.dumps(made.state()))
    made.restore({**state, **can_be})
    with pytest.raises(ValueError):
        made.restore({**state, **cannot_be})
