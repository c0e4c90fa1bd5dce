"""The splice of two models (Tasche 2021, ex. 4.4): one decides below a threshold z, the other above it.

Z = min(z, Z1) + (Z2 - z) 1[Z2 > z], Z1 the model used below z. Where Z1 has the lower Brier curve up to z and Z2 from
there on, the Brier score of Z is at most that of either. On a sample z is learned, so what a splice reaches is judged
on rows that did not choose it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decal_cli.crossfit import recalibration as crossfit
from decal_cli.curves.crossings import BrierDifference, Side, brier_difference
from decal_cli.errors import Undefined
from decal_cli.metrics.numerics.corp import squared
from decal_cli.metrics.paired import payoff_loss
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.table import FEWEST_ROWS, FOLDS, Estimate, Floats, Loss
from decal_cli.task import BinaryTask


class Cut(NamedTuple):
    """Where to splice: the threshold z in (0, 1), and the model used below it."""

    threshold: float
    below: Side

    def scores(self, a: Floats, b: Floats) -> Floats:
        """The spliced scores in [0, 1] (Tasche 2021, ex. 4.4); a, b: the scores of the two models, shape (T,) each."""
        z, (first, second) = self.threshold, (a, b) if self.below == "a" else (b, a)
        return np.minimum(z, first) + np.where(second > z, second - z, 0.0)


@dataclass(frozen=True)
class HeldOut:
    """What the splice reaches on held-out rows: a mean per row, and its difference to the better single model."""

    value: float
    single: Side
    difference: Estimate


@dataclass(frozen=True)
class Splice:
    """The cut that all rows choose, and what cuts chosen on the other folds reach on each fold.

    folds: in how many of the folds the others chose the same model to stand below. utility: None without a task.
    """

    cut: Cut
    brier: HeldOut
    utility: HeldOut | None
    agreeing: int


def best_cut(curves: BrierDifference) -> Cut | None:
    """The cut that saves most area under the Brier curve; None where one model alone does as well."""
    zeros = curves.zeros
    zeros = zeros[(zeros > 0) & (zeros < 1)]
    if not len(zeros):
        return None
    to, whole = curves.areas_to(zeros), curves.area[-1]
    # Beside A alone: A below z and B above adds what D has from z on; B below z adds what it has up to there.
    costs = np.concatenate((whole - to, to))
    best = int(np.argmin(costs))
    if costs[best] >= min(0.0, whole) - 1e-15:
        return None
    return Cut(float(zeros[best % len(zeros)]), "a" if best < len(zeros) else "b")


def splice(pairs: PairTable, task: BinaryTask | None, rng: np.random.Generator) -> Splice:
    """Choose the cut, and judge on each fold the cut that the other folds choose."""
    if pairs.effective_rows < FEWEST_ROWS:
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to choose a crossing on some and judge it on others")
    cut = best_cut(brier_difference(pairs))
    if cut is None:
        raise Undefined("the Brier curves do not cross: one model alone does as well at every threshold")
    folds = [_Fold(pairs, neg, pos) for neg, pos in _dealt(pairs, rng)]
    cuts = [best_cut(brier_difference(fold.others)) if fold.others is not None else None for fold in folds]
    utility = None
    if task is not None:
        utility = _held_out(pairs, folds, cuts, payoff_loss(task.utility, task.decision_threshold), larger=True)
    agreeing = sum(other is not None and other.below == cut.below for other in cuts)
    return Splice(cut, _held_out(pairs, folds, cuts, squared, larger=False), utility, agreeing)


def _dealt(pairs: PairTable, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    neg, pos = crossfit.split(pairs, rng)
    return [(neg[k], pos[k]) for k in range(FOLDS) if (neg[k] + pos[k]).any()]


class _Fold:
    """The rows of one fold, and the pair table of all others; weighted cells keep their mean squares."""

    def __init__(self, pairs: PairTable, neg: Floats, pos: Floats) -> None:
        self.neg, self.pos = neg, pos
        whole_neg, whole_pos = np.asarray(pairs.n - pairs.pos, dtype=np.float64), np.asarray(pairs.pos, np.float64)
        if pairs.n2 is None or pairs.pos2 is None:
            self.unit_neg = self.unit_pos = np.ones(len(neg))
        else:
            self.unit_neg, self.unit_pos = _ratio(pairs.n2 - pairs.pos2, whole_neg), _ratio(pairs.pos2, whole_pos)
        rest_neg, rest_pos = np.maximum(whole_neg - neg, 0.0), np.maximum(whole_pos - pos, 0.0)
        left = rest_neg + rest_pos > 1e-12 * pairs.total
        self.others = _pair_table(pairs, left, rest_neg, rest_pos, self) if left.any() else None


def _pair_table(pairs: PairTable, left: Any, neg: Floats, pos: Floats, fold: _Fold) -> PairTable:
    n, of_pos = (neg + pos)[left], pos[left]
    if pairs.n2 is None:
        return PairTable(pairs.a[left], pairs.b[left], n, of_pos)
    pos2 = (pos * fold.unit_pos)[left]
    return PairTable(pairs.a[left], pairs.b[left], n, of_pos, (neg * fold.unit_neg)[left] + pos2, pos2)


def _held_out(pairs: PairTable, folds: list[_Fold], cuts: list[Cut | None], loss: Loss, larger: bool) -> HeldOut:
    """The splices of the other folds on each fold, against the model that is better on all rows."""
    change = pairs.difference(loss).mean
    single: Side = "b" if (change > 0 if larger else change < 0) else "a"
    alone = loss(pairs.a if single == "a" else pairs.b)
    means, spreads = [], []
    for fold, cut in zip(folds, cuts, strict=True):
        joined = alone if cut is None else loss(cut.scores(pairs.a, pairs.b))
        means.append((fold, joined, [np.subtract(x, y) for x, y in zip(joined, alone, strict=True)]))
    total = pairs.total
    value = _sum(means, lambda joined, apart: joined) / total
    mean = _sum(means, lambda joined, apart: apart) / total
    for fold, _, apart in means:
        spreads.append(float((fold.neg * fold.unit_neg * (apart[0] - mean) ** 2).sum()))
        spreads.append(float((fold.pos * fold.unit_pos * (apart[1] - mean) ** 2).sum()))
    return HeldOut(value, single, Estimate(mean, float(np.sqrt(sum(spreads))) / total))


def _sum(means: list[Any], pick: Callable[[Any, Any], Any]) -> float:
    sums = 0.0
    for fold, joined, apart in means:
        at0, at1 = pick(joined, apart)
        sums += float((fold.neg * at0).sum() + (fold.pos * at1).sum())
    return sums


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
