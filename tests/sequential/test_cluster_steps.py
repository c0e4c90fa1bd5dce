"""A cluster as one step: its averages by hand, false alarms of streams whose rows are not independent, coverage."""

import numpy as np
import pytest

from decal_cli.sequential.calibration_alarm import BETS, CalibrationAlarm, log_e_process
from decal_cli.sequential.cluster_steps import MAX_GUESS, ClusterAlarm, RunningMeans, Runs
from decal_cli.sequential.confidence_sequence import sequence_of_sums
from decal_cli.task import BinaryTask
from simulation.cluster_streams import KINDS, runs_of

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
    ends, by_hand = after.sequence(0.05), sequence_of_sums(after.total, after.squares, after.rows, width, 0.05)
    assert ends.low == by_hand.low and ends.mean == pytest.approx([0.7 / 3], abs=1e-12)


def test_clusters_of_one_row_are_rows_to_the_alarm() -> None:
    rng = np.random.default_rng(1)
    score, label = rng.random(400), (rng.random(400) < 0.5).astype(np.uint8)
    alarm = ClusterAlarm()
    seen = alarm.advance(score, label, runs_of(np.ones(400, dtype=np.int64)))
    by_row = log_e_process(score, label)
    assert seen[0] == 0
    assert seen[1:] == pytest.approx(by_row[:-1], abs=1e-9)
    assert alarm.close(1) == pytest.approx(by_row[-1], abs=1e-9)


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
    pieces, parts = ClusterAlarm(), []
    for start, end in ((0, 777), (777, 778), (778, len(of_row))):
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
    assert np.concatenate(parts).tobytes() == log_e.tobytes()
    assert pieces.state() == whole.state()
    assert pieces.likely_start() in {0, *whole.rows_of_starts()}


@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_stay_under_the_level_where_rows_cry_wolf(kind: str) -> None:
    """60 calibrated streams of 60 clusters: at most .05, with three standard errors; row by row many are false."""
    by_row = by_cluster = 0
    for stream in range(60):
        drawn = KINDS[kind](np.random.default_rng([5, stream]), 60)
        by_row += log_e_process(drawn.score, drawn.label).max() >= np.log(20)
        by_cluster += ClusterAlarm().advance(drawn.score, drawn.label, runs_of(drawn.size)).max() >= np.log(20)
    assert by_cluster <= 3 + 3 * np.sqrt(60 * 0.05 * 0.95)
    assert by_row > 15


def test_a_score_that_is_off_is_found() -> None:
    found = 0
    for stream in range(10):
        drawn = KINDS["1 to 40 rows, labels correlated .8"](np.random.default_rng([6, stream]), 400)
        shifted = drawn.score / (drawn.score + (1 - drawn.score) * np.exp(0.8))
        found += ClusterAlarm().advance(shifted, drawn.label, runs_of(drawn.size)).max() >= np.log(20)
    assert found >= 9
