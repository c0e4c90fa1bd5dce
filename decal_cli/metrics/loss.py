"""Losses: proper scores of the scores themselves, and their decomposition by the isotonic fit."""

from __future__ import annotations

from decal_cli.metrics import intervals
from decal_cli.metrics.declare import metric
from decal_cli.table import Floats, Table


def squared(score: Floats) -> tuple[Floats, Floats]:
    """(p - y)^2 at label 0 and at label 1."""
    return score**2, (1 - score) ** 2


@metric(
    title="Brier score",
    better="lower",
    unit="squared probability",
    source="[T] eq. 4.2a",
    range=(0, 1),
    streams=True,
    shown=True,
    interval=intervals.of_mean(squared),
    interval_text=intervals.MEAN,
)
def brier(t: Table) -> float:
    """Mean squared difference between score and label.

    sum n_i ((1 - h_i) q_i^2 + h_i (1 - q_i)^2) / T; 0 is perfect, b (1 - b) is what the base rate alone scores.
    """
    return t.mean_of(squared).mean
