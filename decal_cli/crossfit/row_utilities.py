"""What is learned on some rows and decides others, each by its own threshold: recalibration, and the amount alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import FEWEST_ROWS, Ints


class ByAmount(NamedTuple):
    """Whether the cost of a miss is at least the one from which acting won most on the other folds, bool (T,)."""

    large: NDArray[np.bool_]


def build_by_amount(utilities: RowUtilities, *, seed: int) -> ByAmount:
    """Five folds, clusters whole, which no score decides: all models have the same ones.

    Errors: Undefined, where there are too few rows to hold some out.
    """
    rows = utilities.rows
    need_rows(rows)
    fold = _without_score(rows, Seed(seed).generator("amounts"))
    large = np.empty(len(rows), dtype=bool)
    for k in range(FOLDS):
        here = fold == k
        large[here] = utilities.benefit[here] >= least_amount(utilities, np.flatnonzero(~here))
    return ByAmount(large)


def need_rows(rows: Rows) -> None:
    """Raise Undefined where there are too few rows, or clusters, to hold some out."""
    if rows.too_few_to_hold_out:
        if len(rows) >= FEWEST_ROWS:
            raise Undefined(f"needs at least {FOLDS} clusters to learn from some and judge on others")
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")


def _without_score(rows: Rows, rng: np.random.Generator) -> Ints:
    """The fold of each row for what no score decides, shape (T,): the same for all models on these rows."""
    keys = [column for values in rows.amounts.values() for column in np.atleast_2d(values.T)]
    order = np.lexsort((rows.weights, *([] if rows.unit is None else [rows.unit]), rows.label, *keys))
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order] = rows.take(order).places(rng) % FOLDS
    return fold


def least_amount(utilities: RowUtilities, which: Ints | slice = slice(None)) -> float:
    """The cost of a miss from which acting on every row wins most on these rows; infinity where it never wins."""
    amount, worth = utilities.benefit[which], (utilities.rows.weights * utilities.worth)[which]
    order = np.argsort(-amount, kind="stable")
    amount = amount[order]
    won = np.cumsum(worth[order])
    # A threshold cannot part rows of one amount.
    last = np.append(amount[1:] != amount[:-1], True)
    best = int(np.argmax(np.where(last, won, -np.inf)))
    return float(amount[best]) if won[best] > 0 else float("inf")
