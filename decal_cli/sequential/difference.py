"""What one way to decide is worth more than another, row by row, and its confidence sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from decal_cli.sequential.confidence_sequence import Sequence, mean_sequence
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

Acts = NDArray[np.bool_]
"""Whether each row is acted on, shape (T,)."""


def utility_difference(first: Acts, second: Acts, label: NDArray[np.uint8], task: BinaryTask) -> Floats:
    """What deciding as the second wins over the first in every row, shape (T,)."""
    return (second.astype(np.float64) - first) * task.u_delta * (label - task.threshold)


def difference_sequence(
    first: Acts, second: Acts, label: NDArray[np.uint8], task: BinaryTask, alpha: float
) -> Sequence:
    """The running mean of that difference, and its confidence sequence of level 1 - alpha.

    Rows that both decide alike differ by 0 for certain, and widen nothing. A row that they decide differently is
    guessed from the rows before it that differ in the same direction; before the first of them the guess is 0.
    """
    difference = utility_difference(first, second, label, task)
    guess = np.zeros(len(label))
    for differs, sign in ((second & ~first, 1.0), (first & ~second, -1.0)):
        positives = np.concatenate(([0.0], np.cumsum(label[differs])[:-1]))[: int(differs.sum())]
        share = (positives + task.threshold) / np.arange(1, len(positives) + 1)
        guess[differs] = sign * task.u_delta * (share - task.threshold)
    return mean_sequence(difference, guess, task.u_delta, alpha)
