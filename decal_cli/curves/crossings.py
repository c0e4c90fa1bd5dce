"""Brier curves on the same rows: where each model wins, where the curves cross, and how certain that is.

B(t) is the cost-weighted loss of deciding 1 iff score >= t (Tasche 2021, def. 5.1). Curves of samples cross many times
by noise alone. So a crossing counts only where a model that was ahead beyond chance gives way to the other that is
ahead beyond chance, and chance is assessed at all thresholds at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np

from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.document import Names, Said, Share, Size
from decal_cli.learn.regions import fits_of_other_folds
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.estimate import ratio
from decal_cli.tables.isotonic import pool
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Ints, Mask, Table
from decal_cli.tables.units import runs

Side = Literal["a", "b"]
MAX_GAP = 0.05
"""A lead continues over a range of thresholds without evidence that is no wider than this."""
N_BAND_DRAWS = 400
"""Draws of the difference of the curves, for the band that holds at all thresholds at once."""
MIN_DIFFERENT_ROWS = 6
"""Rows on which the two must decide differently: on fewer, an exact sign test cannot reach 5 %."""


_ROUNDING = 1e-12
"""Losses per decision that differ by less are the same but for rounding."""
_SINGLE_PRECISION = 1e-6
"""Gaps between scores that differ by less are the same: scores of single precision are rounded to about 1e-7."""


@dataclass(frozen=True)
class Lead:
    """Thresholds at which a model is ahead beyond chance; most: the largest loss it saves, at a threshold."""

    model: str
    low: Share
    high: Share
    most: Size
    error: Size
    at: Share


@dataclass(frozen=True)
class Crossing:
    """A change of the leader beyond chance; below: the model that leads up to it."""

    threshold: Share
    below: str


# Between neighbouring scores of either model both curves are straight lines. So their difference D(t) = B_b(t) - B_a(t)
# is known exactly from its coefficients on these segments, and its zeros and jumps are the crossings. Its standard
# error comes from the rows on which the two decide differently.
@dataclass(frozen=True, eq=False)
class BrierDifference:
    """The difference of two Brier curves, D(t) = alpha + beta t for t in (edge[k], edge[k + 1]].

    edge: (s + 1,), from 0 to 1. alpha, beta: (s,). squares: (s, 2), sums of squared weights of the rows of label 1 and
    of 0 on which the two decide differently; signed: each square with the sign of what B loses there. count: (s,),
    effective rows of these. weight, square: (2,), summed weights and squares of all rows of label 1 and of 0.
    share_known: whether the share of label 1 is, so that rows vary within their label only. names: of A and B.
    """

    edge: Floats
    alpha: Floats
    beta: Floats
    squares: Floats
    signed: Floats
    count: Floats
    weight: Floats
    square: Floats
    share_known: bool = False
    names: tuple[str, str] = ("a", "b")

    def segment_of(self, thresholds: Floats) -> Ints:
        """The segment that each threshold is in."""
        return np.maximum(np.searchsorted(self.edge, thresholds, side="left") - 1, 0)

    @cached_property
    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Thresholds just after each segment's start and at its end, D and its error there, shape (2 s,) each."""
        k = np.repeat(np.arange(len(self.alpha)), 2)
        t = np.stack([self.edge[:-1], self.edge[1:]], axis=1).ravel()
        value = self.alpha[k] + self.beta[k] * t
        value[np.isclose(value, 0.0, atol=_ROUNDING)] = 0.0
        error = np.empty(len(t))
        for part in runs(len(t)):
            error[part] = self.error_at(t[part], k[part])
        return t, value, error

    def centres(self, t: Floats, k: Ints) -> Floats:
        """The mean that what B loses at a row of label 1, and of 0, varies about: D, or the label's own; (2, n)."""
        lost = np.stack((self.alpha[k] * (1 - t), (self.alpha[k] + self.beta[k]) * t))
        if not self.share_known:
            return np.tile(lost.sum(axis=0), (2, 1))
        return lost * self.weight.sum() / self.weight[:, None]

    def error_at(self, t: Floats, k: Ints, effect: float = 1.0) -> Floats:
        """Standard error of D at thresholds t in segments k, shape (n,). effect: of the design.

        One more row of each label counts among those decided differently: near 0 and 1 the rows may not yet hold the
        rare label, which costs most, and their spread would then miss it.
        """
        costs, centre, total = np.stack((1 - t, t)), self.centres(t, k), self.weight.sum()
        squares, signed, square = (effect * each for each in (self.squares[k].T, self.signed[k].T, self.square))
        variance = (squares * costs**2 - 2 * centre * signed * costs + centre**2 * square[:, None]).sum(axis=0)
        # It weighs as much as the rows of its label, or as all rows where there are none of it.
        heavy = ratio(square, self.weight, square.sum() / total)
        return np.hypot(np.sqrt(np.maximum(variance, 0.0)), np.hypot(*(heavy[:, None] * costs))) / total

    @cached_property
    def zeros(self) -> Floats:
        """Every crossing on these rows: where D changes its sign, by a zero inside a segment or a jump."""
        t, value, _ = self.ends
        signed = np.flatnonzero(value != 0)
        sign = np.sign(value[signed])
        change = np.flatnonzero(sign[1:] != sign[:-1])
        before, after = signed[change], signed[change + 1]
        inside = (before % 2 == 0) & (after == before + 1)
        step = np.where(inside, value[before] - value[after], 1.0)
        share = np.where(inside, value[before] / step, 0.0)
        # At a jump, or after a stretch where the curves coincide, it is the start of the new leader's first segment.
        return np.where(inside, t[before] + share * (t[after] - t[before]), t[after - after % 2])

    @cached_property
    def area(self) -> Floats:
        """The integral of D from 0 to each edge, shape (s + 1,); twice the last is the difference of Brier scores."""
        steps = self.alpha * np.diff(self.edge) + self.beta * np.diff(self.edge**2) / 2
        return np.concatenate(([0.0], np.cumsum(steps)))

    def areas_to(self, thresholds: Floats) -> Floats:
        """The integral of D from 0 to each threshold."""
        k = self.segment_of(thresholds)
        low = self.edge[k]
        return self.area[k] + self.alpha[k] * (thresholds - low) + self.beta[k] * (thresholds**2 - low**2) / 2

    @cached_property
    def enough(self) -> Mask:
        """Whether the two models decide differently on enough rows, at each of `ends`, shape (2 s,)."""
        return np.repeat(self.count >= MIN_DIFFERENT_ROWS, 2)

    @property
    def dominates(self) -> str | None:
        """The model whose curve lies nowhere above the other's on these rows, and somewhere below."""
        above, below = bool((self.ends[1] > 0).any()), bool((self.ends[1] < 0).any())
        return None if above == below else self.names[0] if above else self.names[1]

    def leads(self, z: float) -> tuple[Lead, ...]:
        """Ranges of thresholds on which one model is ahead by more than z standard errors, gaps to MAX_GAP joined.

        Each from the first to the last threshold with such evidence; the loss is per decision (u_delta 1).
        """
        t, value, error = self.ends
        where = np.flatnonzero(self.enough & (np.abs(value) > z * error))
        if not len(where):
            return ()
        sign, at = np.sign(value[where]), t[where]
        # Evidence at both ends of a segment holds all along it: D is linear there, and its error convex.
        gap = (np.diff(at) > MAX_GAP + _SINGLE_PRECISION) & (np.diff(where // 2) > 0)
        breaks = np.flatnonzero((sign[1:] != sign[:-1]) | gap) + 1
        leads = []
        for part in np.split(where, breaks):
            best = part[int(np.argmax(np.abs(value[part])))]
            numbers = (t[part[0]], t[part[-1]], abs(value[best]), error[best], t[best])
            leads.append(Lead(self.names[0 if value[best] > 0 else 1], *map(float, numbers)))
        return tuple(leads)

    def crossings(self, z: float) -> tuple[Crossing, ...]:
        """Crossings beyond noise: one between neighbouring leads of different models, where splicing saves most."""
        leads = self.leads(z)
        crossings = []
        for left, right in pairwise(leads):
            if left.model == right.model:
                continue
            between = self.zeros[(self.zeros >= left.high) & (self.zeros <= right.low)]
            sign = 1.0 if left.model == self.names[0] else -1.0
            crossings.append(Crossing(float(between[int(np.argmax(sign * self.areas_to(between)))]), left.model))
        return tuple(crossings)


def brier_difference(pairs: PairTable, names: tuple[str, str] = ("a", "b")) -> BrierDifference:
    """The difference of the two Brier curves of a pair table; O(k log k)."""
    edge, first, last, side = _segments(pairs)
    n, pos, n2, pos2 = (np.asarray(each, dtype=float) for each in (pairs.n, pairs.pos, *pairs.squares_of_rows))

    def over_segments(n: Floats, pos: Floats, sign: Floats) -> Floats:
        """Sums over the pairs that disagree on each segment, at label 1 and at label 0, shape (s, 2)."""
        return np.stack([_spread(sign * values, first, last, len(edge)) for values in (pos, n - pos)], axis=1)

    one = np.ones(len(n))
    # Where the two decide alike every sum is 0, except for rounding.
    apart = over_segments(2 * one, one, (side != 0).astype(float)).any(axis=1, keepdims=True)
    # A row with label 1 that A alone acts on costs B (1 - t); one with label 0 that A alone acts on saves B t.
    lost, signed = (over_segments(*sums, side) * apart * (1, -1) for sums in ((n, pos), (n2, pos2)))
    weight, squares = (np.maximum(over_segments(*sums, abs(side)) * apart, 0.0) for sums in ((n, pos), (n2, pos2)))
    whole, whole2 = weight.sum(axis=1), squares.sum(axis=1)
    count = ratio(whole**2, whole2)
    of_labels, of_labels2 = (np.array([pos.sum(), (n - pos).sum()]) for n, pos in ((n, pos), (n2, pos2)))
    alpha, at1 = (lost / n.sum()).T
    known = pairs.design.share_known
    return BrierDifference(edge, alpha, at1 - alpha, squares, signed, count, of_labels, of_labels2, known, names)


def band(pairs: PairTable, confidence: float, rng: np.random.Generator) -> float:
    """Half the width, in standard errors, of a band around D that holds at all thresholds at once.

    The quantile of the largest |D* - D| / error over all thresholds, in Gaussian draws of the contributions of the rows
    of each cell (a multiplier bootstrap); never below the pointwise quantile. Infinite where the two never disagree on
    enough rows.
    """
    cells = pairs.cells
    on_cells = brier_difference(cells)
    t, _, error = on_cells.ends
    looked = on_cells.enough
    if not looked.any():
        return float("inf")
    edge, first, last, side = _segments(cells)
    segment = np.repeat(np.arange(len(edge) - 1), 2)
    centre1, centre0 = on_cells.centres(t, segment)
    largest = np.empty(N_BAND_DRAWS)
    for k in range(N_BAND_DRAWS):
        at0, at1 = cells.design.scattered(cells, rng)
        lost1, lost0 = (_spread(side * values, first, last, len(edge))[segment] for values in (at1, at0))
        difference = (1 - t) * lost1 - t * lost0 - centre1 * at1.sum() - centre0 * at0.sum()
        largest[k] = np.max(np.abs(difference[looked]) / error[looked]) / on_cells.weight.sum()
    return max(float(np.quantile(largest, confidence)), quantile(confidence))


def _segments(pairs: PairTable) -> tuple[Floats, Ints, Ints, Floats]:
    """Edges of the segments; the first segment on which each pair disagrees and the one after the last; and a sign.

    The two decide differently for thresholds in (min, max] of a pair. A alone decides 1 where the sign is 1, B alone
    where it is -1.
    """
    edge = np.unique(np.concatenate(([0.0], pairs.a, pairs.b, [1.0])))
    first = np.searchsorted(edge, np.minimum(pairs.a, pairs.b))
    last = np.searchsorted(edge, np.maximum(pairs.a, pairs.b))
    return edge, first, last, np.sign(pairs.a - pairs.b)


def _spread(values: Floats, first: Ints, last: Ints, edges: int) -> Floats:
    """Sums of values over the pairs that disagree on each segment, shape (edges - 1,)."""
    steps = np.bincount(first, values, edges) - np.bincount(last, values, edges)
    return np.cumsum(steps)[:-1]


# Of several models, the lowest curve is that of the isotonic fits, at the thresholds of a grid. A model whose
# calibrated curve lies above another's at some threshold is not sufficient: the other knows something of the label that
# it does not (Tasche 2021, thm. 3.4, cor. 3.5). Whether chance explains a difference is judged by fits to other rows: a
# fit to the same rows bends to them.
@dataclass(frozen=True)
class Rival:
    """A model beside the others: refinement_loss is twice the area under its calibrated Brier curve; gap: its largest
    distance to the lowest curve (u_delta 1), at the threshold gap_at; lowest_share: of the thresholds at which its
    curve alone is the lowest; beaten_by: the model that is lower beyond chance, clearest at the threshold beaten_at.
    """

    model: str
    refinement_loss: float
    gap: float
    gap_at: float
    lowest_share: float
    beaten_by: str | None
    beaten_at: float | None


@dataclass(frozen=True, eq=False)
class Lowest:
    """The lowest calibrated Brier curve of all models on the thresholds, and every model beside it; sufficient: models
    that no other one beats beyond chance.
    """

    value: Annotated[Floats, Said(kind=list[float])]
    sufficient: Names
    models: tuple[Rival, ...]


def lowest_curve(models: Sequence[tuple[str, Rows]], at: Floats, confidence: float, seed: int = SEED) -> Lowest:
    """The lowest calibrated Brier curve of models on the same rows, at thresholds of shape (K,).

    Chance is judged at all thresholds and for all pairs of models at once (Bonferroni), on held-out rows.
    """
    rows = models[0][1]
    # A fold for each row, the same for all models and whatever the order of the rows.
    order = np.lexsort((rows.weights, rows.label, *(each.score for _, each in models)))
    fold = np.empty(len(rows), dtype=int)
    fold[order] = rows.take(order).folds(Seed(seed).generator("lowest"))
    held_out = [fits_of_other_folds(each, fold) for _, each in models]
    curves = np.array([_curve(each.table.isotonic, at) for _, each in models])
    lowest = curves.min(axis=0)
    as_low = np.isclose(curves, lowest, rtol=0.0, atol=_ROUNDING)
    looks = len(at) * len(models) * (len(models) - 1) / 2
    critical_value = quantile(1 - (1 - confidence) / looks)
    # The first index is the model that loses more, the second the one that loses less.
    signal = np.zeros((len(models), *curves.shape))
    for a, b in combinations(range(len(models)), 2):
        signal[a, b] = _advantage(held_out[a], held_out[b], rows, at)
        signal[b, a] = -signal[a, b]
    rivals = []
    for number, (name, each) in enumerate(models):
        gap = curves[number] - lowest
        other, k = np.unravel_index(signal[number].argmax(), curves.shape)
        beaten = signal[number, other, k] > critical_value
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
    return Lowest(lowest, tuple(each.model for each in rivals if each.beaten_by is None), tuple(rivals))


def same_rows(models: Sequence[Rows]) -> bool:
    """Whether all models have the same rows, as far as labels and weights tell."""
    first = models[0]
    return all(
        len(each) == len(first)
        and np.array_equal(each.label, first.label)
        and np.array_equal(each.weights, first.weights)
        for each in models[1:]
    )


def _curve(fitted: Table, at: Floats) -> Floats:
    """(1 - t) FN + t FP per row of acting on an isotonic fit, at each threshold, shape (K,)."""
    neg, pos = (np.append(0.0, np.cumsum(each)) for each in fitted.of_labels)
    reached = np.searchsorted(fitted.pos / fitted.n, at)
    return ((1 - at) * pos[reached] + at * (neg[-1] - neg[reached])) / fitted.total


def _advantage(a: Floats, b: Floats, rows: Rows, at: Floats) -> Floats:
    """What A loses more than B at each threshold, in standard errors, shape (K,); 0 where too few decisions differ."""
    pairs = pair_up(a, b, rows.label, rows.weight)
    apart = brier_difference(pairs.with_known_share() if rows.share_known else pairs)
    k = apart.segment_of(at)
    value, error = apart.alpha[k] + apart.beta[k] * at, apart.error_at(at, k, rows.table.design.effect)
    return np.where(apart.count[k] >= MIN_DIFFERENT_ROWS, -value / error, 0.0)


# A ROC curve needs no calibration: it only orders the rows. Its upper hull and the Brier curve of the calibrated score
# hold the same (Tasche 2021, remarks 5.3 and 5.4).
@dataclass(frozen=True, eq=False)
class Roc:
    """Points of a ROC curve, shape (k,) each, of a population in which this share has label 1.

    recall: share of the rows of label 1 that are decided 1; false_alarms: of the rows of label 0.
    """

    recall: Floats
    false_alarms: Floats
    base_rate: float

    @classmethod
    def of_table(cls, t: Table, at: Floats | None = None) -> Roc:
        """The points of deciding 1 from each threshold on, by default each score; NaN where a label has no rows."""
        cut = np.searchsorted(t.score, t.score if at is None else at, side="left")
        pos, neg = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (t.pos * 1.0, (t.n - t.pos) * 1.0))
        recall, false_alarms = (ratio(each, each[0], np.nan) for each in (pos, neg))
        return cls(recall[cut], false_alarms[cut], t.base_rate)

    @classmethod
    def of_brier(cls, brier: Floats, at: Floats, base_rate: float, false_alarms: Floats) -> Roc:
        """The hull of the ROC curve at these false alarms, from a calibrated score's Brier curve: eq. 5.8b.

        Exact where the curve is known at the kinks; with fewer thresholds the hull lies above.
        """
        at, brier = np.append(at, 0.0), np.append(brier, 0.0)
        missed = (brier - at * (1 - base_rate) * false_alarms[:, None]) / ((1 - at) * base_rate)
        return cls(np.clip(1 - missed.max(axis=1), 0.0, 1.0), false_alarms, base_rate)

    def brier(self, at: Floats) -> Floats:
        """The least loss that any of the points, or a constant decision, has at each threshold, shape (K,): eq. 5.8a.

        This is the Brier curve of the calibrated score where the points are all points of its ROC curve.
        """
        recall, false_alarms = (np.append(each, (0.0, 1.0)) for each in (self.recall, self.false_alarms))
        missed, alarmed = (1 - at) * self.base_rate, at * (1 - self.base_rate)
        return (missed[:, None] * (1 - recall) + alarmed[:, None] * false_alarms).min(axis=1)


N_LABEL_DRAWS = 200
MAX_BAND_CELLS = 512


class Band(NamedTuple):
    """The values between which the isotonic fit of a calibrated model lies at each score, shape (k,)."""

    score: Floats
    low: Floats
    high: Floats


def consistency_band(t: Table, confidence: float, rng: np.random.Generator) -> Band:
    """The band: the pointwise central range of fits to 200 draws of labels from the scores, on at most 512 cells.

    After Dimitriadis et al. 2021, sec. 3: a calibrated model has a fit inside the band.
    """
    # Cells of clustered rows hold several clusters each.
    most = max(BINS, min(MAX_BAND_CELLS, int(t.effective_rows / 5))) if t.design.clustered else MAX_BAND_CELLS
    cells = gaps.cells(t, most)
    n = np.asarray(cells.n, dtype=float)
    rows = gaps.whole_rows(cells)
    share = rng.binomial(rows, cells.score, size=(N_LABEL_DRAWS, len(n))) / rows
    weight = np.tile(n, N_LABEL_DRAWS)
    # Each draw is lifted by 2 above the one before, so that one call pools them all.
    lift = 2.0 * np.repeat(np.arange(N_LABEL_DRAWS), len(n))
    starts, pooled, positives = pool(np.arange(N_LABEL_DRAWS * len(n)), weight, (share.ravel() + lift) * weight)
    fits = np.repeat(positives / pooled, np.diff(np.append(starts, N_LABEL_DRAWS * len(n)))) - lift
    low, high = np.quantile(fits.reshape(N_LABEL_DRAWS, -1), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Band(cells.score, low, high)
