"""What a forecaster is: it predicts one row, later learns its label, and never looks ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Floats, Ints


class Forecaster(ABC):
    """Predicts rows one after the other, and learns labels in the order of the rows.

    title: its name for users. randomised: whether its predictions rest on random numbers. needs_score: whether it looks
    at the score at all.
    """

    title: ClassVar[str]
    randomised: ClassVar[bool] = False
    needs_score: ClassVar[bool] = True

    @abstractmethod
    def predict_one(self, score: float) -> float:
        """The probability of label 1 of the next row, from the labels learned so far."""

    @abstractmethod
    def learn_one(self, score: float, label: int) -> None:
        """Learn the label of the next row whose label is not learned yet."""

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """What a fresh forecaster predicts for every row, shape (T,): `one_by_one`, faster.

        known: int64 (T,), never decreasing, known[t] <= t: how many first rows have a known label when row t is
        predicted.
        """
        return one_by_one(self, score, label, known)


def one_by_one(forecaster: Forecaster, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
    """The predictions of a fresh forecaster that is asked and taught row by row, shape (T,)."""
    predictions = np.empty(len(score))
    learned = 0
    for row, until in enumerate(known.tolist()):
        while learned < until:
            forecaster.learn_one(float(score[learned]), int(label[learned]))
            learned += 1
        predictions[row] = forecaster.predict_one(float(score[row]))
    return predictions
