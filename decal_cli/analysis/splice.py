"""One model below a threshold and the other above: where to splice, and what the splice wins on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decal_cli.curves.crossings import BrierDifference, Crossing, Side, brier_difference
from decal_cli.declarations.document import Count, Hidden, Share, Words
from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.metrics.families.scores import squared
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.table import FEWEST_ROWS, Floats, Loss
from decal_cli.task import Task


class Cut(NamedTuple):
    """Where to splice: the threshold z in (0, 1), and the model used below it."""

    threshold: float
    below: Side

    def scores(self, a: Floats, b: Floats) -> Floats:
        """The spliced scores in [0, 1] (Tasche 2021, ex. 4.4); a, b: the scores of the two models, shape (T,) each."""
        z, (first, second) = self.threshold, (a, b) if self.below == "a" else (b, a)
        return np.minimum(z, first) + np.maximum(second - z, 0.0)


@dataclass(frozen=True)
class HeldOut:
    """The splice on held-out rows. difference: from the better single model."""

    value: float
    single: str
    difference: float
    interval: Interval


@dataclass(frozen=True)
class Splice:
    """One model below a threshold, the other above. folds_agreeing: how many folds chose this model below."""

    threshold: Share
    below: str
    above: str
    brier: HeldOut
    expected_utility: HeldOut | None
    folds_agreeing: Count
    cut: Hidden[Cut]


@dataclass(frozen=True)
class NoSplice:
    """Why there is no splice."""

    threshold: None
    reason: Words


def best_cut(curves: BrierDifference, crossings: Sequence[Crossing] | None = None) -> Cut | None:
    """The cut that saves most area under the Brier curve; None where one model alone does as well.

    crossings: where it may lie, and who stands below it; by default at any crossing on these rows, in either order.
    """
    if crossings is None:
        at, a_below = np.tile(curves.zeros, 2), np.repeat([True, False], len(curves.zeros))
    else:
        at = np.array([crossing.threshold for crossing in crossings])
        a_below = np.array([crossing.below == curves.names[0] for crossing in crossings])
    if not len(at):
        return None
    to, whole = curves.areas_to(at), curves.area[-1]
    # Beside A alone: A below z and B above adds what D has from z on; B below z adds what it has up to there.
    costs = np.where(a_below, whole - to, to)
    best = int(np.argmin(costs))
    return None if costs[best] >= min(0.0, whole) - 1e-15 else Cut(float(at[best]), "a" if a_below[best] else "b")


def splice(
    pairs: PairTable,
    curves: BrierDifference,
    crossings: Sequence[Crossing],
    task: Task | None,
    rng: np.random.Generator,
    confidence: float,
) -> Splice:
    """Choose the cut among the crossings beyond noise, and judge on each fold the cut that the other folds choose.

    Z = min(z, Z1) + (Z2 - z) 1[Z2 > z], Z1 the model used below z. Where Z1 has the lower Brier curve up to z and Z2
    from there on, the Brier score of Z is at most that of either. A splice is judged on
    rows that did not choose z.
    """
    if not len(curves.zeros):
        raise Undefined("the Brier curves do not cross on these rows")
    if pairs.design.confidence(confidence) is None:
        raise Undefined("there are no intervals, which would tell crossings from noise")
    if pairs.effective_rows < FEWEST_ROWS:
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to choose a crossing on some and judge it on others")
    if not crossings:
        raise Undefined("the Brier curves cross only within noise")
    cut = best_cut(curves, crossings)
    if cut is None:
        raise Undefined("one model alone has as low a Brier score as a splice where the curves clearly cross")
    folds = list(_folds(pairs.to_draw, rng))
    cuts = [best_cut(brier_difference(others)) if len(others) else None for _, others in folds]
    utility = None

    def held_out(loss: Loss, larger: bool) -> HeldOut:
        """What the splices of the other folds reach on each fold, and what they win over the model that is better on
        all rows.
        """
        of_a, of_b = (t.mean_of(loss).value for t in pairs.tables)
        single = int(of_b > of_a if larger else of_b < of_a)
        spliced = won = variance = 0.0
        of_folds = []
        for (own, _), cut in zip(folds, cuts, strict=True):
            alone = loss((own.a, own.b)[single])
            of_cut = alone if cut is None else loss(cut.scores(own.a, own.b))
            spliced += float(of_cut.ravel() @ own.units.weight) / pairs.total
            won += float((of_cut - alone).ravel() @ own.units.weight) / pairs.total
            of_folds.append((own.units, (of_cut - alone).ravel()))
        squares, missed = np.zeros(2), np.zeros(2)
        for units, values in of_folds:
            # Folds hold whole clusters, so that what is summed over clusters adds up over folds.
            variance += units.spread(values - won) / pairs.total**2
            own_squares = units.sampling.squares(units.weight)
            squares += np.bincount(units.label, own_squares, 2)
            missed += np.bincount(units.label, own_squares * (values - won) ** 2, 2)
        error = with_missed(variance, (missed / np.maximum(squares, 1e-300)).max(), pairs.effective_rows)
        half_width = quantile(confidence) * float(error)
        return HeldOut(spliced, curves.names[single], won, (won - half_width, won + half_width))

    if task is not None:
        by_label, at = np.array(task.undominated).T, np.array(task.decision_thresholds)

        def won(score: Floats) -> Floats:
            """The payoff at each label of the action, which is how many of the thresholds the score reaches."""
            return by_label[:, np.searchsorted(at, score, side="right")]

        utility = held_out(won, larger=True)
    agreeing = sum(other is not None and other.below == cut.below for other in cuts)
    below, above = curves.names if cut.below == "a" else curves.names[::-1]
    return Splice(cut.threshold, below, above, held_out(squared, larger=False), utility, agreeing, cut)


def _folds(pairs: PairTable, rng: np.random.Generator) -> Iterator[tuple[PairTable, PairTable]]:
    """The rows of each fold that holds any, and those of all others."""
    all_neg, all_pos = (np.asarray(values, dtype=float) for values in (pairs.n - pairs.pos, pairs.pos))
    for neg, pos, design in pairs.design.parts(pairs, rng):
        if (neg + pos).any():
            others = pairs.part(np.maximum(all_neg - neg, 0.0), np.maximum(all_pos - pos, 0.0))
            yield pairs.part(neg, pos, design), others
