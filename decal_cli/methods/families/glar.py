"""Grouping loss adaptative recalibration: a probability for each region of the features within bins of the score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import LEAVES, Narrow, build_regions, narrow
from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT, Bins
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.isotonic import Curve
from decal_cli.methods.numerics.checks import are_places, are_probabilities, is_increasing, need
from decal_cli.methods.numerics.features import features_of
from decal_cli.methods.numerics.trees import Tree
from decal_cli.metrics.numerics import grouping
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BINS, Floats, Ints, bin_of
from decal_cli.task import BinaryTask

Adjust = Literal["score", "threshold"]
NO_TREE = -1
_HALVES = 2
"""Purpose of the random numbers that split each bin: one half grows the tree, the other counts in its leaves."""
_LEAF_PART = 20
"""A leaf holds at least one in so many of the rows that grow its tree, as for the estimate of the loss."""
MIN_LEAF = 10
"""Rows of a leaf where it is grown. Perez-Lebel et al. 2025 set no limit; at small t* a small leaf without a positive
is expensive."""


@model
@dataclass(frozen=True, eq=False)
class Glar:
    """Bins of the score, each with or without a tree of the features; bins without a tree use the isotonic curve.

    edges: increasing, (bins - 1,), each belongs to the bin below it. tree: index of each bin's tree, -1 for none,
    (bins,). t_star: act when the probability >= t_star. adjust: whether the score or the threshold changes.
    """

    edges: Floats
    tree: Ints
    trees: tuple[Tree, ...]
    otherwise: Curve
    t_star: float
    adjust: str

    def __post_init__(self) -> None:
        """Refuse bins and trees that do not belong together. Errors: ValueError."""
        need(is_increasing(self.edges), "edges of bins must not decrease")
        need(self.tree.shape == (len(self.edges) + 1,), "every bin needs the number of its tree")
        need(are_places(self.tree, NO_TREE, len(self.trees)), "a bin asks for a tree that is not there")
        need(all(are_probabilities(each.value) for each in self.trees), "leaves hold probabilities")
        need(0 < self.t_star < 1 and self.adjust in get_args(Adjust), "a threshold lies in (0, 1)")

    def __call__(self, rows: Unlabelled) -> Applied:
        score = self.otherwise(rows).score
        number = self.tree[bin_of(rows.score, self.edges)]
        features = narrow(features_of(rows)) if self.trees else np.empty(0, dtype=np.float32)
        order = np.argsort(number, kind="stable")
        used, starts = np.unique(number[order], return_index=True)
        for k, here in zip(used.tolist(), np.split(order, starts[1:]), strict=False):
            if k != NO_TREE:
                score[here] = self.trees[k].value[self.trees[k].leaf(features[here])]
        if self.adjust == "score":
            return Applied(score)
        return Applied(rows.score, threshold=thresholds(rows.score, score, self.t_star))

    @property
    def note(self) -> str:
        """The number of bins that are corrected by region."""
        if not self.trees:
            return "No bin of the score is corrected: the grouping regret does not exceed r; isotonic everywhere."
        return f"{len(self.trees)} of {len(self.tree)} bins of the score are corrected by region, isotonic elsewhere."


def thresholds(score: Floats, corrected: Floats, t_star: float) -> Floats:
    """t* - (corrected - score), changed by less than rounding so that each row is decided as by the corrected score."""
    threshold = t_star - (corrected - score)
    acts = corrected >= t_star
    return np.where(acts, np.minimum(threshold, score), np.maximum(threshold, np.nextafter(score, np.inf)))


@method(
    title="GLAR",
    kind="post-training",
    source=cite("Perez-Lebel et al. 2025", "def. 3.7, app. C.3; adjust=threshold: def. B.13"),
    needs=("features", "task"),
)
def glar(
    rows: Training,
    *,
    r: Annotated[
        float | None,
        "grouping regret, in your utility units, above which a bin is corrected; by default .02 u_delta t*",
    ] = None,
    bins: Bins = BINS,
    leaf: Annotated[
        int | None,
        "smallest number of rows in a leaf, among those that grow its tree; by default 10, or 1 in 20 of them if more",
        COUNT,
    ] = None,
    adjust: Annotated[Adjust, "change the score, or the threshold of each row"] = "score",
) -> Glar:
    """Within bins of the score, the frequency of label 1 in regions of the features, where the regret is large enough.

    In each of 15 equal-mass bins, one half of the rows grows a tree of at most 5 leaves of 10 rows or more (Perez-Lebel
    et al. 2025 set no such limit: `leaf=1`), and the other half gives the frequency of label 1 in each leaf. Where the
    mean over bins of the estimated grouping regret (the metric regret_grouping) exceeds r, the bins whose own estimate
    exceeds r get the frequencies of their leaves; all other rows get the isotonic fit of these other rows. r is in your
    utility units. By default it is .02 u_delta t*, which is the .02 of Perez-Lebel et al. 2025, whose u_delta is 1/t*;
    a negative r corrects every bin. `adjust=threshold` keeps the score p and acts when p >= t* - (p' - p), where p' is
    the corrected score: the same decisions.
    """
    assert rows.task is not None
    edges = rows.table.bin_edges(bins)
    number = bin_of(rows.score, edges)
    corrected = corrected_bins(rows, rows.task, _default_r(rows.task) if r is None else r, bins, len(edges) + 1)
    trees = tuple(_tree_of_bin(rows, number, k, (bins, leaf or 0)) for k in np.flatnonzero(corrected).tolist())
    index = np.where(corrected, np.cumsum(corrected) - 1, NO_TREE).astype(np.int64)
    return Glar(edges, index, trees, _curve(rows, ~corrected[number]), rows.task.threshold, adjust)


def _default_r(task: BinaryTask) -> float:
    """.02 at u_delta = 1/t* (Perez-Lebel et al. 2025, app. C.3), in the units of the task."""
    return 0.02 * task.u_delta * task.threshold


def corrected_bins(rows: Training, task: BinaryTask, r: float, bins: int, n_bins: int) -> NDArray[np.bool_]:
    """Which bins have a grouping regret above r, shape (n_bins,); none where the mean over bins is not above r."""
    if r < 0:
        return np.ones(n_bins, dtype=bool)
    losses = rows.cached(("losses", bins), lambda: _losses(rows, bins))
    # One bin at a time: means over bins with the rows of the unit matrix as weights.
    one_each = np.eye(len(losses.loss))
    regret = task.u_delta * grouping.bounds(losses.loss, losses.rate, one_each, task.threshold).middle
    corrected = np.zeros(n_bins, dtype=bool)
    if float(losses.share @ regret) > r:
        corrected[losses.judged[regret > r]] = True
    return corrected


def _losses(rows: Training, bins: int) -> grouping.BinLosses:
    """Grouping loss of each bin, whatever the task is."""
    return grouping.bin_losses(build_regions(rows, seed=rows.seed, bins=bins, loss_only=True))


def _tree_of_bin(rows: Training, number: Ints, k: int, sizes: tuple[int, int]) -> Tree:
    """The tree of one bin, the same for every task; sizes: bins, and rows of a leaf."""

    def grown() -> Tree:
        features = rows.cached("narrow", lambda: narrow(rows.matrix))
        return _tree(rows, features, np.flatnonzero(number == k), sizes[1])

    return rows.cached(("tree", *sizes, k), grown)


def _tree(rows: Training, features: Narrow, here: Ints, least: int) -> Tree:
    """A tree grown on one half of these rows; its leaves hold the frequencies of the other half."""
    from sklearn.tree import DecisionTreeRegressor

    grown, counted = halves(rows, here)
    fitted = DecisionTreeRegressor(
        max_leaf_nodes=LEAVES, min_samples_leaf=least or max(MIN_LEAF, len(grown) // _LEAF_PART), random_state=rows.seed
    ).fit(features[grown], rows.label[grown], rows.weights[grown])
    tree = Tree.of_sklearn(fitted)
    leaf, weights, labels = tree.leaf(features[counted]), rows.weights[counted], rows.label[counted]
    weight = np.bincount(leaf, weights, len(tree.value))
    positive = np.bincount(leaf, weights * labels, len(tree.value))
    # A leaf that none of them reaches holds the frequency of the bin.
    value = np.full(len(tree.value), np.average(labels, weights=weights))
    return replace(tree, value=np.divide(positive, weight, out=value, where=weight > 0))


def halves(rows: Training, here: Ints) -> tuple[Ints, Ints]:
    """The rows of a bin that grow its tree, and those that count in its leaves; a single row, or cluster, does both."""
    if rows.unit is not None:
        half = rows.places(rows.generator(_HALVES), 2)[here] % 2
        if 0 < int(half.sum()) < len(here):
            return here[half == 0], here[half == 1]
        return here, here
    mixed = rows.generator(_HALVES, int(here[0])).permutation(here)
    middle = (len(here) + 1) // 2
    return np.sort(mixed[:middle]), np.sort(mixed[middle:] if middle < len(here) else mixed)


def _curve(rows: Training, left: NDArray[np.bool_]) -> Curve:
    """Isotonic regression of the other rows, so that it is calibrated on them; of all rows where there are none."""
    kept = rows.take(left) if left.any() else rows
    return Curve.fitted(kept.table)
