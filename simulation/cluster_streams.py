"""Streams of rows in clusters: false alarms and confidence sequences, a cluster as one step and row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta

from decal_cli.sequential.anytime import (
    CalibrationAlarm,
    ClusterAlarm,
    RunningDifference,
    RunningMeans,
    Runs,
    utility_difference,
)
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask

N_STREAMS, N_CLUSTERS = 1000, 300
TASK, SHIFT = BinaryTask.of_threshold(0.3), 0.4
"""What is decided, and by how much the log-odds of another score lie above those of the calibrated one."""


class Drawn(NamedTuple):
    """Rows, shape (T,) each; size: of each cluster. Given the clusters before, a row has label 1 with its score."""

    score: Floats
    label: np.ndarray
    size: Ints


def _alike(correlation: float, largest: int, a: float, b: float) -> Callable[[np.random.Generator, int], Drawn]:
    """Labels of a cluster whose normal variables are so much correlated; scores around one of the cluster."""

    def draw(rng: np.random.Generator, clusters: int) -> Drawn:
        size = rng.integers(1, largest + 1, clusters)
        unit = np.repeat(np.arange(clusters), size)
        score = expit(log_odds(rng.beta(a, b, clusters))[unit] + 0.3 * rng.normal(size=len(unit)))
        shared, own = rng.normal(size=clusters)[unit], rng.normal(size=len(unit))
        chance = ndtr(math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own)
        return Drawn(score, (chance < score).astype(np.uint8), size)

    return draw


def _games(rng: np.random.Generator, clusters: int, moments: int = 20) -> Drawn:
    """Games that a random walk decides, with the probability of winning at each of its moments."""
    steps = rng.normal(size=(clusters, moments + 1))
    walk = np.cumsum(steps, axis=1)
    score = ndtr(walk[:, :-1] / np.sqrt(np.arange(moments, 0, -1)))
    label = np.repeat(walk[:, -1] > 0, moments).astype(np.uint8)
    return Drawn(score.ravel(), label, np.full(clusters, moments))


KINDS: dict[str, Callable[[np.random.Generator, int], Drawn]] = {
    "1 to 40 rows, labels correlated .2": _alike(0.2, 40, 2, 5),
    "1 to 40 rows, labels correlated .8": _alike(0.8, 40, 1, 1),
    "1 to 5 rows, one draw for all": _alike(1.0, 5, 2, 5),
    "games of 20 moments": _games,
}


def runs_of(size: Ints) -> Runs:
    """Whole clusters, one after the other; the last is still open."""
    return Runs(np.repeat(np.arange(len(size)), size), size, np.cumsum(size) - size)


def cluster_alarm_table(seed: int, share: float) -> Iterator[str]:
    """False alarms of calibrated streams at .05, row by row and by clusters, and at .01, with 99 % upper limits."""
    streams = round(N_STREAMS * share)
    yield "| clusters | streams | false alarms, row by row | one step a cluster | upper limit | at .01 | upper limit |"
    yield "|---|---|---|---|---|---|---|"
    for number, (name, draw) in enumerate(KINDS.items()):
        by_row, by_cluster = [], []
        for stream in range(streams):
            drawn = draw(np.random.default_rng([seed, 11, number, stream]), N_CLUSTERS)
            by_row.append(CalibrationAlarm().advance(drawn.score, drawn.label).max())
            by_cluster.append(ClusterAlarm().advance(drawn.score, drawn.label, runs_of(drawn.size)).max())
        cells = [f"{np.mean(np.array(by_row) >= math.log(20)):.3f}"]
        for alpha in (0.05, 0.01):
            alarms = int(np.sum(np.array(by_cluster) >= -math.log(alpha)))
            cells += [f"{alarms / streams:.4f}", f"{float(beta.ppf(0.99, alarms + 1, streams - alarms)):.4f}"]
        yield f"| {name} | {streams:,} | {' | '.join(cells)} |"


def cluster_sequence_table(seed: int, share: float) -> Iterator[str]:
    """Coverage at all times at once, by rows and by clusters, of what deciding by another score wins."""
    streams = round(N_STREAMS * share)
    yield "| clusters | streams | covered, row by row | one step a cluster | width / fixed-time width |"
    yield "|---|---|---|---|---|"
    for number, (name, draw) in enumerate(KINDS.items()):
        many = draw(np.random.default_rng([seed, 12, number]), 200_000)
        truth = float(np.mean(_means(many)))
        rows_hold, clusters_hold, widths = 0, 0, []
        for stream in range(streams):
            drawn = draw(np.random.default_rng([seed, 13, number, stream]), N_CLUSTERS)
            first, second = _acts(drawn)
            by_row = RunningDifference(TASK).advance(first, second, drawn.label).sequence(0.05)
            rows_hold += bool(((by_row.low <= truth) & (by_row.high >= truth)).all())
            difference = utility_difference(first, second, drawn.label, TASK)
            ends = RunningMeans(TASK).advance(difference, runs_of(drawn.size)).sequence(0.05)
            clusters_hold += bool(((ends.low <= truth) & (ends.high >= truth)).all())
            fixed = 2 * 1.96 * np.std(_means(drawn)) / math.sqrt(N_CLUSTERS)
            widths.append((ends.high[-1] - ends.low[-1]) / fixed)
        cells = f"{rows_hold / streams:.3f} | {clusters_hold / streams:.3f} | {np.mean(widths):.2f}"
        yield f"| {name} | {streams:,} | {cells} |"


def _acts(drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is acted on by the score, and by one that is off."""
    score = np.clip(drawn.score, 1e-9, 1 - 1e-9)
    return score >= TASK.threshold, expit(log_odds(score) + SHIFT) >= TASK.threshold


def _means(drawn: Drawn) -> Floats:
    """What the second wins over the first, the average over each cluster."""
    difference = utility_difference(*_acts(drawn), drawn.label, TASK)
    return np.asarray(np.add.reduceat(difference, np.cumsum(drawn.size) - drawn.size) / drawn.size)
