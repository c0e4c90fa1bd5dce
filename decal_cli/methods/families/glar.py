"""Grouping loss adaptative recalibration: within bins of the score, one probability for each region of the features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import LEAVES, IsotonicFit, build_regions
from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.binned import Bins, bin_of, edges_of
from decal_cli.methods.families.isotonic import Curve
from decal_cli.methods.numerics.trees import Narrow, Tree, narrow
from decal_cli.metrics.numerics import grouping
from decal_cli.spec import COUNT
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BINS, Floats, Ints, tabulate
from decal_cli.task import BinaryTask

Adjust = Literal["score", "threshold"]
NOWHERE = -1
_HALVES = 2
"""Purpose of the random numbers that split each bin: one half grows its tree, all of it counts in the leaves."""
_SHARE = 20
"""A leaf holds at least one in so many of the rows that grow its tree, as where the loss is estimated."""
LEAST = 10
"""Rows of a leaf where it is grown. [R] sets no limit; at small t* a small leaf without a positive costs dearly."""


@model
@dataclass(frozen=True, eq=False)
class Glar:
    """Bins of the score, each with a tree of the features or without; the isotonic curve where there is none.

    edges: increasing, (bins - 1,), each belongs to the bin below it. tree: index of each bin's tree, -1 for none,
    (bins,). t_star: probability from which to act. adjust: whether the score or the threshold moves.
    """

    edges: Floats
    tree: Ints
    trees: tuple[Tree, ...]
    otherwise: Curve
    t_star: float
    adjust: str

    def __call__(self, rows: Unlabelled) -> Applied:
        score = self.otherwise(rows).score
        number = self.tree[bin_of(rows.score, self.edges)]
        for k, tree in enumerate(self.trees):
            here = np.flatnonzero(number == k)
            score[here] = tree.value[tree.leaf(_narrow(rows, here))]
        if self.adjust == "score":
            return Applied(score)
        return Applied(rows.score, threshold=thresholds(rows.score, score, self.t_star))

    @property
    def note(self) -> str:
        """How much of the score is corrected by region."""
        if not self.trees:
            return "No bin of the score is corrected: the grouping regret does not exceed r; isotonic everywhere."
        return f"{len(self.trees)} of {len(self.tree)} bins of the score are corrected by region, isotonic elsewhere."


def _narrow(rows: Unlabelled, here: Ints) -> Narrow:
    if rows.features is None:
        raise Undefined("needs the features that the model was fitted with")
    return narrow(rows.matrix[here])


def thresholds(score: Floats, corrected: Floats, t_star: float) -> Floats:
    """t* - (corrected - score), moved by less than rounding so that each row is decided as the corrected score is."""
    threshold = t_star - (corrected - score)
    acts = corrected >= t_star
    return np.where(acts, np.minimum(threshold, score), np.maximum(threshold, np.nextafter(score, np.inf)))


@method(
    title="GLAR",
    kind="post-training",
    source="[R] def. 3.7, app. C.3; adjust=threshold: [R] def. B.13",
    needs=("features", "task"),
)
def glar(
    rows: Training,
    *,
    r: Annotated[float, "grouping regret, in your utility units, beyond which a bin is corrected"] = 0.02,
    bins: Bins = BINS,
    leaf: Annotated[int, "fewest rows of a leaf, of those that grow its tree", COUNT] = LEAST,
    adjust: Annotated[Adjust, "whether the score moves, or each row's threshold"] = "score",
) -> Glar:
    """Within bins of the score, the frequency of label 1 in regions of the features, where that promises enough.

    15 equal-mass bins; in each, one half of the rows grows a tree of at most 5 leaves, each of 10 rows or more there
    ([R] sets no such limit: `leaf=1`), and all of them say how frequent label 1 is in each leaf. Where the mean over
    bins of the estimated grouping regret (the metric regret_grouping) exceeds r, the bins whose own estimate exceeds r
    get their leaves' frequencies; all other rows get the isotonic fit of these other rows. It is calibrated on the rows
    it was fitted to. r is in your utility units: [R] uses .02 with u_delta = 1/t*, which is .02 u_delta t* for
    utilities of any scale; a negative r corrects every bin.
    `adjust=threshold` leaves the score p and decides 1 from t* - (p' - p), p' the corrected score: the same decisions.
    """
    assert rows.task is not None
    edges = edges_of(rows.table, bins)
    number = bin_of(rows.score, edges)
    corrected = corrected_bins(rows, rows.task, r, bins, len(edges) + 1)
    trees = tuple(_tree_of_bin(rows, number, k, (bins, leaf)) for k in np.flatnonzero(corrected).tolist())
    index = np.where(corrected, np.cumsum(corrected) - 1, NOWHERE).astype(np.int64)
    return Glar(edges, index, trees, _curve(rows, ~corrected[number]), rows.task.threshold, adjust)


def corrected_bins(rows: Training, task: BinaryTask, r: float, bins: int, found: int) -> NDArray[np.bool_]:
    """Which bins have a grouping regret beyond r, shape (found,); none where the mean over bins has not."""
    if r < 0:
        return np.ones(found, dtype=bool)
    losses = rows.once(("losses", bins), lambda: _losses(rows, bins))
    # One bin at a time: the mean over bins weighted by the rows of the unit matrix.
    one_each = np.eye(len(losses.loss))
    regret = task.u_delta * grouping.bounds(losses.loss, losses.rate, one_each, task.threshold).middle
    corrected = np.zeros(found, dtype=bool)
    if float(losses.share @ regret) > r:
        corrected[losses.judged[regret > r]] = True
    return corrected


def _losses(rows: Training, bins: int) -> grouping.BinLosses:
    """Grouping loss of each bin, whatever the task is."""
    return grouping.bin_losses(build_regions(rows, seed=rows.seed, bins=bins, loss_only=True))


def _tree_of_bin(rows: Training, number: Ints, k: int, sizes: tuple[int, int]) -> Tree:
    """The same whatever the task; sizes: bins, and rows of a leaf."""

    def grown() -> Tree:
        features = rows.once("narrow", lambda: narrow(rows.matrix))
        return _tree(rows, features, np.flatnonzero(number == k), sizes[1])

    return rows.once(("tree", *sizes, k), grown)


def _tree(rows: Training, features: Narrow, here: Ints, least: int) -> Tree:
    """A tree grown on one half of these rows; its leaves hold the frequencies of all of them."""
    from sklearn.tree import DecisionTreeRegressor

    half = rows.generator(_HALVES, int(here[0])).permutation(here)[: (len(here) + 1) // 2]
    grown = np.sort(half)
    fitted = DecisionTreeRegressor(
        max_leaf_nodes=LEAVES, min_samples_leaf=max(least, len(grown) // _SHARE), random_state=rows.seed
    ).fit(features[grown], rows.label[grown], rows.weights[grown])
    tree = Tree.of_sklearn(fitted)
    leaf = tree.leaf(features[here])
    weight = np.bincount(leaf, rows.weights[here], len(tree.value))
    positive = np.bincount(leaf, (rows.weights * rows.label)[here], len(tree.value))
    return replace(tree, value=np.divide(positive, weight, out=tree.value.copy(), where=weight > 0))


def _curve(rows: Training, left: NDArray[np.bool_]) -> Curve:
    """Isotonic regression of the rows that are left, so that it is calibrated on them; of all where none is."""
    kept = rows.take(left) if left.any() else rows
    fit = IsotonicFit(tabulate(kept.score, kept.label, kept.weight))
    return Curve(fit.at, fit.value)
