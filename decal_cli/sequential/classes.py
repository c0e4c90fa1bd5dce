"""A forecaster of the frequencies of K classes, which needs no scores."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.sequential.randomness import uniform
from decal_cli.tables.table import Floats, Ints


class ClassFTPL:
    """The share of each class after a fresh random number of rows is added to each count.

    Algorithm 2 of Kleinberg et al. 2023: the numbers are uniform on 1 .. ceil(sqrt(T)), or ceil(sqrt(t)) in row t
    without a horizon T. Its expected regret grows as K sqrt(T) at most, for each fixed bounded proper scoring rule.
    Classes are numbered from 0.
    """

    def __init__(self, classes: int, seed: int = 0, horizon: int | None = None) -> None:
        self.classes, self.seed, self.horizon = classes, seed, horizon
        self.row = 0
        self.counts = np.zeros(classes, dtype=np.int64)

    def predict_one(self) -> Floats:
        """The probabilities of the next row, shape (K,), from the labels learned so far."""
        row = np.array([self.row], dtype=np.int64)
        self.row += 1
        return perturbed_shares(self.counts[None, :], row, self.seed, self.horizon)[0]

    def learn_one(self, label: int) -> None:
        """Count a label."""
        self.counts[label] += 1

    def replay(self, label: Ints, known: Ints) -> Floats:
        """All predictions of a fresh forecaster at once, shape (T, K); known: as for any forecaster."""
        is_class = np.asarray(label)[:, None] == np.arange(self.classes)
        to_row = np.concatenate((np.zeros((1, self.classes), dtype=np.int64), np.cumsum(is_class, axis=0)))
        rows = np.arange(len(known), dtype=np.int64)
        return perturbed_shares(to_row[known], rows, self.seed, self.horizon)


def perturbed_shares(counts: Ints, row: Ints, seed: int, horizon: int | None) -> Floats:
    """Shares of counts (T, K) after random numbers of these rows are added, shape (T, K)."""
    most = np.ceil(np.sqrt(row + 1.0)) if horizon is None else np.full(len(row), float(math.ceil(math.sqrt(horizon))))
    classes = counts.shape[1]
    added = uniform(seed, (classes * row[:, None] + np.arange(classes)).ravel()).reshape(counts.shape)
    total = counts + 1 + np.floor(most[:, None] * added)
    return np.asarray(total / total.sum(axis=1, keepdims=True))
