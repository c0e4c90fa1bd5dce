"""Sequences of labels that forecasters of the base rate are tried on, and an adversary who answers them.

The adversary knows the algorithm and the past, but not the next coin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.online.judged import worst_v_regret
from decal_cli.sequential.forecasters import logistic, uniform
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import Floats, tabulate

Labels = np.ndarray
Rng = np.random.Generator


def _random(rows: int, classes: int, rng: Rng) -> Labels:
    return rng.integers(classes, size=rows)


def _drifting(rows: int, classes: int, rng: Rng) -> Labels:
    """Each class has its turn of being the likeliest, once."""
    angle = 2 * np.pi * (np.arange(rows)[:, None] / rows - np.arange(classes) / classes)
    to_class = np.cumsum(1 - 0.8 * np.sin(angle), axis=1)
    return (rng.random(rows)[:, None] * to_class[:, -1:] > to_class).sum(axis=1)


def _alternating(rows: int, classes: int, rng: Rng) -> Labels:
    return np.arange(rows) % classes


def _blocks(rows: int, classes: int, rng: Rng) -> Labels:
    """One class after the other, each block as long as all before it."""
    return np.floor(np.log2(np.arange(rows) + 1.0)).astype(np.int64) % classes


SEQUENCES: dict[str, Callable[[int, int, Rng], Labels]] = {
    "random": _random,
    "drifting": _drifting,
    "alternating": _alternating,
    "blocks": _blocks,
}


class Run(NamedTuple):
    """What was predicted, and the labels, shape (T, runs) each."""

    prediction: Floats
    label: np.ndarray


def against_an_adversary(key: str, rows: int, seeds: int) -> Run:
    """Runs of one forecaster against labels that are set, each, to cost it most at the kink that is worst so far.

    key: hedge, hedge-unknown, ftpl, ftpl-unknown or mean; unknown: of the horizon.
    """
    prediction, label = np.empty((rows, seeds)), np.zeros((rows, seeds), dtype=np.uint8)
    positives, kink, looked = np.zeros(seeds), np.full(seeds, 0.5), 100
    run = np.arange(seeds)
    for row in range(rows):
        horizon = row + 1 if key.endswith("unknown") else rows
        lead = positives - row * kink
        if key.startswith("ftpl"):
            most = math.ceil(math.sqrt(horizon))
            one, zero = (1 + np.floor(most * uniform(2 * row + side, run)) for side in (0, 1))
            prediction[row] = (positives + one) / (row + one + zero)
            # The adversary takes the numbers that it does not know as their mean.
            acts = 1.0 * (lead + (most + 1) / 2 * (1 - 2 * kink) > 0)
        elif key == "mean":
            prediction[row] = positives / row if row else 0.5
            acts = 1.0 * (lead > 0)
        else:
            eta = math.sqrt(8 * math.log(2) / horizon)
            noise = logistic(row, run) / eta
            prediction[row] = np.clip((positives + noise) / row, 0, 1) if row else noise > 0
            acts = expit(eta * lead)
        label[row] = acts < kink
        positives += label[row]
        if row == looked:
            looked = int(1.3 * looked)
            worst = [worst_v_regret(tabulate(prediction[: row + 1, k], label[: row + 1, k], None)).kink for k in run]
            kink = np.clip(worst, 0.01, 0.99)
    return Run(prediction, label)
