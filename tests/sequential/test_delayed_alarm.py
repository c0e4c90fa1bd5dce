"""Blocks where labels come late: the two e-processes by hand, pieces, and false alarms of windows that overlap."""

import json
import math

import numpy as np
import pytest

from decal_cli.sequential.calibration_alarm import CalibrationAlarm, log_e_process
from decal_cli.sequential.clock import known_after_rows, known_after_time
from decal_cli.sequential.delayed_alarm import DelayedAlarm
from simulation.late_labels import alarms, overlapping

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


@pytest.mark.parametrize("delay", [1, 5, 30])
def test_calibrated_forecasts_of_windows_that_overlap_raise_few_alarms(delay: int) -> None:
    """40 streams of 1,000 rows: at most .05, with three standard errors; row by row many are false."""
    in_blocks, by_row = alarms(delay, 1000, 0.0, 40, seed=7)
    assert in_blocks <= 2 + 3 * math.sqrt(40 * 0.05 * 0.95)
    assert by_row > in_blocks + 3


def test_a_shift_is_found_though_labels_come_late() -> None:
    for delay, shift in ((1, 0.6), (5, 0.8), (30, 2.0)):
        assert alarms(delay, 1000, shift, 5, seed=8)[0] >= 4, delay


def test_the_windows_overlap_and_their_forecasts_are_calibrated() -> None:
    drawn = overlapping(5, 100_000, 0.0, np.random.default_rng(1))
    missed = drawn.label - drawn.score
    assert abs(missed.mean()) < 0.01 and abs(np.mean(missed * drawn.score)) < 0.01
    apart = [float(np.corrcoef(missed[:-lag], missed[lag:])[0, 1]) for lag in (1, 5, 6)]
    assert apart[0] > 0.3 > apart[1] > 0.02 > abs(apart[2])
    assert log_e_process(*overlapping(5, 1000, 0.0, np.random.default_rng(2))).max() > math.log(20)
