"""The lowest Brier curve of several models on the same rows, and how far each model lies above it.

A model whose calibrated curve lies above another's at some threshold is not sufficient: the other knows something of
the label that it does not (Tasche 2021, thm. 3.4, cor. 3.5). Curves are those of the isotonic fits, at the thresholds
of a grid. Whether chance explains a difference is judged by fits to other rows: a fit to the same rows bends to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from decal_cli.curves.crossings import MIN_DIFFERENT_ROWS
from decal_cli.declarations.defaults import SEED
from decal_cli.learn.regions import fits_of_other_folds
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Ints

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Rival:
    """One model among the others. refinement_loss: its calibrated Brier score, twice the area under its curve.

    gap: the largest distance to the lowest curve, with u_delta 1, and `at` which threshold. share: of the thresholds
    at which its curve alone is the lowest. beaten_by: the model that is lower beyond chance, `beaten_at` the threshold
    where that is clearest; None where no model is.
    """

    name: str
    refinement_loss: float
    gap: float
    at: float
    share: float
    beaten_by: str | None
    beaten_at: float | None


@dataclass(frozen=True, eq=False)
class Lowest:
    """The lowest curve at each threshold, shape (K,), and how every model does beside it."""

    value: Floats
    rivals: tuple[Rival, ...]
    confidence: float

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """Models that no other one beats beyond chance."""
        return tuple(rival.name for rival in self.rivals if rival.beaten_by is None)


def lowest_curve(models: Sequence[tuple[str, Rows]], at: Floats, confidence: float, seed: int = SEED) -> Lowest:
    """The lowest calibrated Brier curve of models on the same rows, at thresholds of shape (K,).

    Chance is judged at all thresholds and for all pairs of models at once (Bonferroni), on held-out rows.
    """
    rows = models[0][1]
    fold = _folds([each for _, each in models], seed)
    decided = [np.searchsorted(at, _fitted(each), side="right") for _, each in models]
    held_out = [np.searchsorted(at, fits_of_other_folds(each, fold), side="right") for _, each in models]
    curves = np.array([_curve(each, rows, at) for each in decided])
    lowest = curves.min(axis=0)
    as_low = curves <= lowest + _ROUNDING
    looks = len(at) * len(models) * (len(models) - 1) / 2
    reach = quantile(1 - (1 - confidence) / looks)
    clearest: list[tuple[float, int, int]] = [(0.0, 0, 0)] * len(models)
    for a, b in combinations(range(len(models)), 2):
        z = _advantage(held_out[a], held_out[b], rows, at)
        # Of two models, the one that loses more and the one that loses less.
        for more, less, signed in ((a, b, z), (b, a, -z)):
            k = int(signed.argmax())
            clearest[more] = max(clearest[more], (float(signed[k]), less, k))
    rivals = []
    for number, (name, each) in enumerate(models):
        gap = curves[number] - lowest
        signal, other, k = clearest[number]
        beaten = signal > reach
        fitted = each.table.isotonic
        rivals.append(
            Rival(
                name,
                float(fitted.pos @ (1 - fitted.pos / fitted.n)) / each.table.total,
                float(gap.max()),
                float(at[int(gap.argmax())]),
                float(np.mean(as_low[number] & (as_low.sum(axis=0) == 1))),
                models[other][0] if beaten else None,
                float(at[k]) if beaten else None,
            )
        )
    return Lowest(lowest, tuple(rivals), confidence)


def same_rows(models: Sequence[Rows]) -> bool:
    """Whether all models have the same rows, as far as labels and weights tell."""
    first = models[0]
    return all(
        len(each) == len(first)
        and np.array_equal(each.label, first.label)
        and np.array_equal(each.weights, first.weights)
        for each in models[1:]
    )


def _fitted(rows: Rows) -> Floats:
    """The isotonic fit at each row, shape (T,)."""
    table = rows.table
    fitted = table.isotonic
    pool = np.searchsorted(table.score[table.pools], rows.score, side="right") - 1
    return np.asarray((fitted.pos / fitted.n)[pool])


def _folds(models: Sequence[Rows], seed: int) -> Ints:
    """A fold for each row, the same for all models and whatever the order of the rows, shape (T,)."""
    first = models[0]
    order = np.lexsort((first.weights, first.label, *(each.score for each in models)))
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = first.take(order).places(Seed(seed).generator("lowest")) % FOLDS
    return fold


def _curve(decided: Ints, rows: Rows, at: Floats) -> Floats:
    """(1 - t) FN + t FP per row at each threshold, shape (K,)."""
    label, weight = rows.label > 0.5, rows.weights
    ones, zeros = (np.bincount(decided, weight * which, len(at) + 1) for which in (label, ~label))
    return ((1 - at) * np.cumsum(ones)[:-1] + at * (zeros.sum() - np.cumsum(zeros)[:-1])) / weight.sum()


def _advantage(a: Ints, b: Ints, rows: Rows, at: Floats) -> Floats:
    """What A loses more than B at each threshold, in standard errors, shape (K,); 0 where they hardly ever differ.

    The error counts one more row of each label among those decided differently, as in `curves.crossings`: near 0 and 1
    the rows may not yet hold the rare label, which costs most.
    """
    label, weight, effect = rows.label > 0.5, rows.weights, rows.table.design.effect
    lost, signed, squares, counts = np.zeros((4, len(at)))
    for which, cost in ((label, 1 - at), (~label, at)):
        # With label 1 the one that decides 0 loses, with label 0 the one that decides 1.
        sign = 1.0 if which is label else -1.0
        for more, less, side in ((a, b, -sign), (b, a, sign)):
            apart = which & (more > less)
            w = weight[apart]
            first, second, count = (
                _between(less[apart], more[apart], values, len(at)) for values in (w, effect * w * w, np.ones(len(w)))
            )
            lost += side * cost * first
            signed += side * cost * second
            squares += cost**2 * second
            counts += count
    total, total2 = weight.sum(), effect * (weight @ weight)
    mean = lost / total
    variance = np.maximum(squares - 2 * mean * signed + mean**2 * total2, 0.0) / total**2
    error = np.hypot(np.sqrt(variance), total2 / total**2 * np.hypot(at, 1 - at))
    return np.where(counts >= MIN_DIFFERENT_ROWS, mean / error, 0.0)


def _between(low: Ints, high: Ints, values: Floats, size: int) -> Floats:
    """Sums of values over the thresholds from low to high, the end not included, shape (size,)."""
    steps = np.bincount(low, values, size + 1) - np.bincount(high, values, size + 1)
    return np.cumsum(steps)[:-1]
