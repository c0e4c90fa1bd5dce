"""Regions: parts of the feature space where the true probability may differ from what the score alone can say.

Grouping loss is estimated on bins of the score times leaves of an honest tree within each bin (Perez-Lebel et al. 2023
and 2025): grown on one half of its rows, counted on the other, halves swapped. Decisions per region are judged on
held-out rows. Rows are first ordered by their content, so that no number depends on their order.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn.encoding import encoded_for
from decal_cli.learn.models import Applied, are_probabilities, is_increasing, model, need
from decal_cli.tables.estimate import ratio
from decal_cli.tables.features import Matrix
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows, Unlabelled, of_rows
from decal_cli.tables.table import BINS, Floats, Ints, Mask, Table, tabulate
from decal_cli.task import Task

Narrow = NDArray[np.float32]

LEAVES = 5
"""At most so many leaves of the tree within a bin."""
NO_CHILD = -1
"""The child of a leaf, as scikit-learn has it."""
POOLED_LEAVES = 12
"""At most so many regions of the tree over all scores."""
GROWN_ON = 16_384
"""At most so many rows decide where a fold's regions are cut; all of its rows say what holds inside."""
LARGEST = 1e30
"""Features beyond it, infinite ones too, count as this: trees see 32 bits, and add them up."""
DOUBT = 4.0
"""Squared standard errors that are taken off a region's squared deviation before it is believed."""


class Leaves(NamedTuple):
    """What one half of the rows counts in the leaves grown on the other: shape (leaves,) each."""

    bin: Ints
    n: Floats
    pos: Floats
    n2: Floats
    """Sum of squared weights."""


class HeldOutRegions(NamedTuple):
    """Rows with what the other folds say about them, shape (T,) each."""

    label: Floats
    weight: Floats
    region: Floats
    """Isotonic fit of the other folds at the row's score, plus the shrunken deviation of the row's region."""


@dataclass(frozen=True, eq=False)
class Regions:
    """Counts by bin and leaf for the grouping loss.

    n, pos, n2, induced: shape (bins,): weight, positive weight, squared weights, and the variance of the isotonic fit
    inside the bin, which bins alone would pass off as grouping loss. halves: one Leaves for each half. sketches: Leaves
    of trees grown on a quarter of the rows, which show how much more trees on more rows would find.
    """

    n: Floats
    pos: Floats
    n2: Floats
    induced: Floats
    halves: tuple[Leaves, Leaves]
    sketches: tuple[Leaves, Leaves]


def build_regions(rows: Rows, *, seed: int, bins: int = BINS, loss_only: bool = False) -> Regions:
    """Regions of rows with features, in any order.

    loss_only: skip what the loss itself does not need; the halves stand in for the sketches.
    """
    rows = _narrow(rows)
    rng = np.random.default_rng(seed)
    number = np.searchsorted(rows.table.score[rows.table.bin_starts(bins)], rows.score, side="right") - 1
    fit, weight, effect = Curve.fitted(rows.table).of(rows.score), rows.weights, rows.table.design.effect
    n, pos, n2, first, second = (
        np.bincount(number, values).astype(np.float64, copy=False)
        for values in (weight, weight * rows.label, effect * weight**2, weight * fit, weight * fit**2)
    )
    induced = np.maximum(second / n - (first / n) ** 2, 0.0)
    half = _halves(number, rng) if rows.unit is None else rows.folds(rng, 2)
    quarter = rng.random(len(number)) < 0.25

    def of_rows(grown: Mask) -> tuple[Leaves, Leaves]:
        one = _honest_leaves(rows, number, half == 0, grown & (half == 1), seed)
        return one, _honest_leaves(rows, number, half == 1, grown & (half == 0), seed)

    halves = of_rows(np.ones_like(quarter))
    if loss_only:
        return Regions(n, pos, n2, induced, halves, halves)
    return Regions(n, pos, n2, induced, halves, of_rows(quarter))


def narrow(features: Matrix) -> Narrow:
    """Features as trees see them, shape (T, d): 32 bits; values beyond LARGEST count as LARGEST, NaN is missing."""
    return np.clip(features, -LARGEST, LARGEST).astype(np.float32)


def _narrow(rows: Rows) -> Rows:
    """The rows in canonical order, with labels as float64 and numbers as float32, as trees take them."""
    rows = rows.in_order()
    features = rows.typed
    return replace(
        rows,
        score=rows.score + 0.0,
        label=rows.label.astype(np.float64),
        features=features if features.categories else narrow(features.numbers),
    )


def _as_taught(rows: Rows, learn: Mask, seed: int) -> Rows:
    """The rows with features as trees take them: missing values as they are, categories as some of the rows teach."""
    return replace(rows, features=narrow(encoded_for(rows, learn, seed=seed))) if rows.typed.categories else rows


def _halves(number: Ints, rng: np.random.Generator) -> Ints:
    """Which half each row falls into: at random, evenly within each bin."""
    order = np.lexsort((rng.random(len(number)), number))
    half = np.empty(len(number), dtype=np.int64)
    half[order] = (np.arange(len(number)) + int(rng.integers(2))) % 2
    return half


def _honest_leaves(rows: Rows, number: Ints, counted: Mask, grown: Mask, seed: int) -> Leaves:
    """Leaves of each bin grown on some rows, with the sums of others."""
    effect = rows.table.design.effect
    rows = _as_taught(rows, grown, seed)
    parts = []
    for k in range(int(number[-1]) + 1):
        inside = slice(*np.searchsorted(number, (k, k + 1)))
        first = inside.start
        judge, grow = first + np.flatnonzero(counted[inside]), first + np.flatnonzero(grown[inside])
        parts.append(_leaves_of_bin(rows, grow, judge, seed, effect))
    size = [len(part) for part in parts]
    n, pos, n2 = np.concatenate(parts).T
    return Leaves(np.repeat(np.arange(len(parts)), size), n, pos, n2)


def _leaves_of_bin(rows: Rows, grown: Ints, judged: Ints, seed: int, effect: float) -> Floats:
    """Sums of weight, positive weight and squared weight of the judged rows in each leaf, shape (leaves, 3)."""
    features, label, weights = rows.matrix, rows.label, rows.weights
    weight, positive = weights[judged], weights[judged] * label[judged]
    sums = np.column_stack((weight, positive, effect * weight**2))
    if min(len(grown), len(judged)) < 2:
        return sums.sum(axis=0, keepdims=True)
    smallest = max(1, len(grown) // 20)
    tree = grown_tree(features[grown], label[grown], weights[grown], LEAVES, smallest, seed)
    node = tree.apply(features[judged])
    per_node = np.array([np.bincount(node, column, tree.tree_.node_count) for column in sums.T]).T
    count = np.bincount(node, minlength=tree.tree_.node_count)
    return _merged(tree.tree_.children_left, tree.tree_.children_right, per_node, count)


def grown_tree(columns: Narrow, off: Floats, weight: Floats, leaves: int, smallest: int, seed: int) -> Any:
    """A fitted DecisionTreeRegressor of at most so many leaves, of so many rows each at least where it is grown."""
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=smallest, random_state=seed)
    return tree.fit(columns, off, weight)


def _merged(left: Ints, right: Ints, sums: Floats, count: Ints) -> Floats:
    """Sums of the leaves, a leaf with one row (or none, or weights that act as one row) merged with its sibling."""

    def below(node: int) -> list[tuple[Floats, int]]:
        if left[node] == NO_CHILD:
            return [(sums[node], int(count[node]))]
        leaves = below(int(left[node])) + below(int(right[node]))
        if all(rows >= 2 and leaf[0] ** 2 >= 1.5 * leaf[2] for leaf, rows in leaves):
            return leaves
        return [(np.sum([leaf for leaf, _ in leaves], axis=0), sum(rows for _, rows in leaves))]

    return np.array([leaf for leaf, _ in below(0)])


@model()
class Curve:
    """A piecewise linear, increasing function of the score: at, value, shape (k,) each; constant outside."""

    at: Floats
    value: Floats

    def _check(self) -> None:
        need(self.at.shape == self.value.shape != (0,), "a curve needs one value for each of its points")
        need(is_increasing(self.at) and is_increasing(self.value), "a curve must not decrease")
        need(are_probabilities(self.value), "a curve's values lie in [0, 1]")

    def of(self, score: Floats) -> Floats:
        """The probability at scores."""
        return np.interp(score, self.at, self.value)

    def reaches(self, value: float) -> float | None:
        """The least score at which the curve is this much, None where there is none."""
        if value > self.value[-1]:
            return None
        place = int(np.argmax(self.value >= value))
        if not place:
            return 0.0
        below, above = self.value[place - 1], self.value[place]
        share = (value - below) / (above - below)
        return float(self.at[place - 1] + share * (self.at[place] - self.at[place - 1]))

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(self.of(rows.score))

    @classmethod
    def fitted(cls, table: Table) -> Self:
        """The isotonic regression of a table."""
        pools, fitted = table.pools, table.isotonic
        last = np.append(pools[1:], len(table)) - 1
        at = np.column_stack((table.score[pools], table.score[last])).ravel()
        return cls(at, np.repeat(fitted.pos / fitted.n, 2))


def isotonic_fit(rows: Rows, which: NDArray[Any] | slice = slice(None)) -> Curve:
    """Isotonic regression of some of the rows, by mask or index."""
    return Curve.fitted(tabulate(*(of_rows(each, which) for each in (rows.score, rows.label, rows.weight))))


def fits_of_other_folds(rows: Rows, fold: Ints) -> Floats:
    """The isotonic fit at each row, to the rows of the other folds, shape (T,); fold: a number for each row."""
    fitted = np.empty(len(rows))
    for k in np.unique(fold):
        here = fold == k
        fitted[here] = isotonic_fit(rows, ~here).of(rows.score[here])
    return fitted


class RegionRule:
    """Isotonic recalibration, moved in each region by what its rows say, as far as noise does not explain it."""

    def __init__(self, rows: Rows, rng: np.random.Generator, seed: int) -> None:
        self.isotonic = Curve.fitted(rows.table)
        fit, weight = self.isotonic.of(rows.score), rows.weights
        off = rows.label - fit
        some = np.sort(rng.permutation(len(off))[:GROWN_ON])
        smallest = max(5, len(some) // 100)
        inputs = with_score(rows.score, rows.matrix)
        self.tree = grown_tree(inputs[some], off[some], weight[some], POOLED_LEAVES, smallest, seed)
        self.shift = _shrunken(self.tree.apply(inputs), off, fit * (1 - fit), weight)

    def __call__(self, score: Floats, features: Narrow) -> Floats:
        """The region's probability at new rows."""
        node = self.tree.apply(with_score(score, features))
        return np.clip(self.isotonic.of(score) + self.shift[node], 0.0, 1.0)


def with_score(score: Floats, features: Matrix) -> Narrow:
    """Scores, (T,) or (T, K), and features side by side as trees see them, shape (T, 1 + d) or (T, K + d)."""
    return np.column_stack((score.astype(np.float32), narrow(features)))


def _shrunken(node: Ints, off: Floats, variance: Floats, weight: Floats) -> Floats:
    """Mean deviation in each node times [1 - DOUBT (error / deviation)^2]+, shape (nodes,)."""
    total, sums = np.bincount(node, weight), np.bincount(node, weight * off)
    noise = np.bincount(node, weight**2 * variance)
    return ratio(sums, total) * np.maximum(1 - DOUBT * ratio(noise, sums**2, np.inf), 0.0)


def hold_out(rows: Rows, *, seed: int) -> HeldOutRegions | None:
    """What regions grown on the other folds say of each row; None where there are too few rows to hold some out."""
    rows = _narrow(rows)
    if rows.too_few_to_hold_out:
        return None
    rng = np.random.default_rng([seed, FOLDS])
    fold, region = rows.folds(rng), np.empty(len(rows))
    for k in range(FOLDS):
        here = fold == k
        seen = _as_taught(rows, ~here, seed)
        rule = RegionRule(seen.take(~here), rng, seed)
        region[here] = rule(rows.score[here], seen.matrix[here])
    return HeldOutRegions(rows.label, rows.weights, region)


class BinLosses(NamedTuple):
    """Grouping loss of each bin that has an estimate, shape (bins,) each."""

    share: Floats
    rate: Floats
    """Frequency of label 1."""
    rate_error: Floats
    loss: Floats
    """The unclipped grouping loss."""
    first: Floats
    """Variance of the loss that vanishes where there is no grouping; its sum over bins is to be kept above 0."""
    second: Floats
    """Variance of the loss that is left where there is none."""
    judged: NDArray[np.int64]
    """Numbers of these bins."""


class Bounds(NamedTuple):
    """Bounds on the grouping regret per unit of u_delta, averaged over bins.

    lower, upper: Perez-Lebel et al. 2025, thm. 3.4, 3.5. sharp: the best possible upper bound.
    """

    lower: Floats
    upper: Floats
    sharp: Floats

    @property
    def middle(self) -> Floats:
        """The estimate: Perez-Lebel et al. 2025, def. 3.6, with the sharp upper bound."""
        return (self.lower + self.sharp) / 2


def bin_losses(regions: Regions, leaves: tuple[Leaves, Leaves] | None = None) -> BinLosses:
    """The mean of both halves' estimates, or of both sketches', less the spread of the isotonic fit inside the bin."""
    halves = [_half_losses(half, len(regions.n)) for half in leaves or regions.halves]
    loss, first, second = (np.array(parts) for parts in zip(*halves, strict=True))
    count = np.isfinite(loss).sum(axis=0)
    judged = np.flatnonzero(count)
    if not len(judged):
        raise Undefined("needs more rows: no bin of the score has two in each half")
    count = count[judged]
    mean = np.nansum(loss[:, judged], axis=0) / count
    n, rate = regions.n[judged], regions.pos[judged] / regions.n[judged]
    one_over = regions.n2[judged] / n**2
    return BinLosses(
        n / n.sum(),
        rate,
        np.sqrt(rate * (1 - rate) * one_over / np.maximum(1 - one_over, one_over)),
        mean - regions.induced[judged],
        np.nansum(first[:, judged], axis=0) / count**2,
        np.nansum(second[:, judged], axis=0) / count**2,
        judged,
    )


def _half_losses(leaves: Leaves, bins: int) -> tuple[Floats, Floats, Floats]:
    """Debiased variance of the leaves' frequencies and the two parts of its variance; NaN where a bin says nothing."""

    def per_bin(values: Floats) -> Floats:
        return np.bincount(leaves.bin, values, minlength=bins).astype(np.float64, copy=False)

    n, pos, n2 = per_bin(leaves.n), per_bin(leaves.pos), per_bin(leaves.n2)
    rate, one_over = ratio(pos, n, np.nan), ratio(n2, n**2, 1.0)
    noise = _noise(rate, one_over)
    leaf_rate = ratio(leaves.pos, leaves.n, np.nan)
    leaf_noise = np.nan_to_num(_noise(leaf_rate, ratio(leaves.n2, leaves.n**2, 1.0)))
    weight = ratio(leaves.n, n[leaves.bin])
    square = (leaf_rate - rate[leaves.bin]) ** 2
    loss = per_bin(weight * square) - (per_bin(weight * leaf_noise) - noise)
    # The frequency of the bin moves with that of its leaves: their distance is less noisy than a leaf on its own.
    true_square = square - leaf_noise * (1 - 2 * weight) - per_bin(weight**2 * leaf_noise)[leaves.bin]
    positive = np.maximum(true_square, 0.0)
    mass = per_bin(weight * positive**2) - per_bin(weight * positive) ** 2
    first = 4 * per_bin(weight**2 * true_square * leaf_noise) + mass * one_over
    # 2 tr((M V)^2) with M = diag(w) - w w', V = diag(noise): the variance of the quadratic form in the leaves' noise.
    own = (weight * leaf_noise) ** 2
    second = 2 * (per_bin(own * ((1 - weight) ** 2 - weight**2)) + per_bin(weight**2 * leaf_noise) ** 2)
    return loss, first, second


def _noise(rate: Floats, one_over: Floats) -> Floats:
    """Unbiased variance of a frequency, one_over its effective rows; NaN for a single row."""
    single = np.isclose(one_over, 1.0, rtol=0.0, atol=1e-9)
    return np.where(single, np.nan, rate * (1 - rate) * one_over / np.where(single, 1.0, 1 - one_over))


def least_variance(rate: Floats, threshold: Floats | float) -> Floats:
    """Vmin: the largest grouping loss at which recalibrated decisions may be right for every row of a bin."""
    off = rate - threshold
    return np.maximum((1 - rate) * off, -rate * off)


def bounds_of_bins(loss: Floats, rate: Floats, threshold: Floats | float) -> Bounds:
    """The bounds of each bin, in any shape; losses are cut to [0, c (1 - c)]."""
    loss, off = np.clip(loss, 0.0, rate * (1 - rate)), rate - threshold
    lower = np.maximum(loss - least_variance(rate, threshold), 0.0)
    upper = (np.sqrt(loss + off**2) - np.abs(off)) / 2
    return Bounds(lower, upper, _sharp(loss, rate, threshold, upper))


def _sharp(loss: Floats, rate: Floats, threshold: Floats | float, upper: Floats) -> Floats:
    """The most that knowing the true probability Q wins over knowing its mean c, of all Q in [0, 1] of this variance.

    Two values of Q win most: those of theorem 3.5, as far from t* on either side, unless one of them lies outside
    [0, 1]; then it is 0, or 1.
    """
    at_0 = 2 * rate * threshold <= rate**2 + loss
    at_1 = 2 * (1 - rate) * (1 - threshold) <= (1 - rate) ** 2 + loss
    high = np.where(at_1, _won_from_0(loss, 1 - rate, 1 - threshold), upper)
    return np.where(at_0, _won_from_0(loss, rate, threshold), high)


def _won_from_0(loss: Floats, rate: Floats, threshold: Floats | float) -> Floats:
    """What knowing Q wins over knowing its mean c where Q is 0 or (c^2 + GL) / c."""
    square = rate**2 + loss
    won = np.where(rate >= threshold, threshold * loss, rate * (square - threshold * rate))
    return ratio(won, square)


def bounds(loss: Floats, rate: Floats, share: Floats, threshold: float) -> Bounds:
    """Bounds from grouping losses and frequencies of bins, shape (.., bins) each; losses are cut to [0, c (1 - c)].

    share: of the rows, (bins,), or (.., bins) where it differs from draw to draw.
    """
    return Bounds(*((bound * share).sum(axis=-1) for bound in bounds_of_bins(loss, rate, threshold)))


def task_bounds(loss: Floats, rate: Floats, share: Floats, task: Task) -> Bounds:
    """The bounds for a task, per unit of its u_delta: the sum over its steps bounds what all of them lose.

    loss, rate, share: as `bounds` has them.
    """
    each = [bounds(loss, rate, share, threshold) for threshold in task.thresholds]
    return Bounds(*(np.asarray(sum(map(operator.mul, task.shares, bound))) for bound in zip(*each, strict=True)))
