"""Methods that correct the score where the features say that it is wrong: GLAR and multicalibration."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT, Bins
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.learn.method import Training, method
from decal_cli.learn.models import (
    Applied,
    are_places,
    are_probabilities,
    deciding_as,
    features_of,
    model,
    need,
)
from decal_cli.learn.regions import (
    LEAVES,
    NO_CHILD,
    POOLED_LEAVES,
    Curve,
    bin_losses,
    bounds,
    build_regions,
    grown_tree,
    narrow,
)
from decal_cli.learn.trees import Tree
from decal_cli.tables.estimate import ratio
from decal_cli.tables.rows import Groups, Unlabelled
from decal_cli.tables.table import BINS, Floats, Ints, Mask, bin_of
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


@model(edges="k increasing", tree="k+1")
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

    def _check(self) -> None:
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
    return deciding_as(corrected >= t_star, t_star - (corrected - score), score)


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
        "grouping regret, in your utility units, above which a bin is corrected; by default 0.02 u_delta t*",
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
    utility units. By default it is 0.02 u_delta t*, the 0.02 of Perez-Lebel et al. 2025, whose u_delta is 1/t*; a
    negative r corrects every bin. `adjust=threshold` keeps the score p and acts when p >= t* - (p' - p), where p' is
    the corrected score: the same decisions.
    """
    task = rows.binary
    assert task
    # 0.02 at u_delta = 1/t* (Perez-Lebel et al. 2025, app. C.3), in the units of the task.
    least = 0.02 * task.u_delta * task.threshold if r is None else r
    edges = rows.table.bin_edges(bins)
    number = bin_of(rows.score, edges)
    corrected = corrected_bins(rows, task, least, bins, len(edges) + 1)
    # The tree of a bin is the same for every task.
    trees = tuple(
        rows.cached(("tree", bins, leaf, k), partial(_bin_tree, rows, np.flatnonzero(number == k), leaf))
        for k in np.flatnonzero(corrected).tolist()
    )
    index = np.where(corrected, np.cumsum(corrected) - 1, NO_TREE).astype(np.int64)
    others = ~corrected[number]
    # Calibrated on the rows that it is for; where there are none, on all rows.
    curve = Curve.fitted((rows.take(others) if others.any() else rows).table)
    return Glar(edges, index, trees, curve, task.threshold, adjust)


def corrected_bins(rows: Training, task: BinaryTask, r: float, bins: int, n_bins: int) -> Mask:
    """Which bins have a grouping regret above r, shape (n_bins,); none where the mean over bins is not above r."""
    if r < 0:
        return np.ones(n_bins, dtype=bool)
    regions = partial(build_regions, rows, seed=rows.seed, bins=bins, loss_only=True)
    losses = rows.cached(("losses", bins), lambda: bin_losses(regions()))
    # One bin at a time: means over bins with the rows of the unit matrix as weights.
    one_each = np.eye(len(losses.loss))
    regret = task.u_delta * bounds(losses.loss, losses.rate, one_each, task.threshold).middle
    corrected = np.zeros(n_bins, dtype=bool)
    if float(losses.share @ regret) > r:
        corrected[losses.judged[regret > r]] = True
    return corrected


def _bin_tree(rows: Training, here: Ints, least: int | None) -> Tree:
    """A tree grown on one half of these rows; its leaves hold the frequencies of the other half."""
    features = rows.cached("narrow", lambda: narrow(rows.matrix))
    grown, counted = halves(rows, here)
    smallest = least or max(MIN_LEAF, len(grown) // _LEAF_PART)
    columns, label = features[grown], rows.label[grown]
    tree = Tree.of_sklearn(grown_tree(columns, label, rows.weights[grown], LEAVES, smallest, rows.seed))
    leaf, weights, labels = tree.leaf(features[counted]), rows.weights[counted], rows.label[counted]
    weight, positive = (np.bincount(leaf, each, len(tree.value)) for each in (weights, weights * labels))
    # A leaf that none of them reaches holds the frequency of the bin.
    return replace(tree, value=ratio(positive, weight, float(np.average(labels, weights=weights))))


def halves(rows: Training, here: Ints) -> tuple[Ints, Ints]:
    """The rows of a bin that grow its tree, and those that count in its leaves; a single row, or cluster, does both."""
    if rows.unit is not None:
        half = rows.folds(rows.generator(_HALVES), 2)[here]
        if 0 < int(half.sum()) < len(here):
            return here[half == 0], here[half == 1]
        return here, here
    mixed = rows.generator(_HALVES, int(here[0])).permutation(here)
    middle = (len(here) + 1) // 2
    return np.sort(mixed[:middle]), np.sort(mixed[middle:] if middle < len(here) else mixed)


N_CELLS = 10
"""Bins of the current score, one of which limits each patch; Hébert-Johnson et al. 2018 call their width lambda."""
MAX_PATCHES = 200
MAX_FAILURES = 10
"""Patches in turn that do not lower the loss of the held-out rows, after which none is looked for."""
MIN_ROWS = 30
"""Rows that multicalibration needs: ten of them are held out."""
MIN_GAIN = 1e-12
"""Squared error per row below which a patch is only rounding."""
_HELD_OUT = 3
"""One in so many rows is held out; also the purpose of the random numbers that choose them."""
EVERYONE, LEAF, GROUP = 0, 1, 2


@model(kind="s", column="s", value="s", subset="p", cell="p", shift="p finite")
class Patches:
    """An isotonic curve, then patches in turn: `shift` for the members of `subset` whose score lies in `cell`.

    subset, cell, shift: shape (patches,). kind, column, value: shape (subsets,), the members of a subset: all rows; the
    rows of a leaf of the tree (its node, as text, in value); or the rows whose group column (by number) holds the
    value. cells: the current score is in cell floor(score * cells); 1 is in the last cell.
    """

    curve: Curve
    tree: Tree
    kind: Ints
    column: Ints
    value: NDArray[np.str_]
    cells: int
    subset: Ints
    cell: Ints
    shift: Floats

    def _check(self) -> None:
        need(are_places(self.kind, EVERYONE, GROUP + 1), "a subset is everyone, a leaf or a group")
        need(len(self.subset) <= MAX_PATCHES, f"there are at most {MAX_PATCHES} patches")
        need(are_places(self.subset, 0, len(self.kind)), "a patch asks for a subset that is not there")
        need(self.cells > 0 and are_places(self.cell, 0, self.cells), "a patch asks for a cell that is not there")

    def __call__(self, rows: Unlabelled) -> Applied:
        score = self.curve(rows).score
        used, number = np.unique(self.subset, return_inverse=True)
        member = self.members(rows, used)
        for subset, cell, shift in zip(number, self.cell, self.shift, strict=True):
            here = member[subset] & (cell_of(score, self.cells) == cell)
            score[here] = np.clip(score[here] + shift, 0.0, 1.0)
        return Applied(score)

    def members(self, rows: Unlabelled, subsets: Ints | slice = slice(None)) -> Mask:
        """Which rows belong to which of these subsets, shape (subsets, T)."""
        leaf = self.tree.leaf(narrow(features_of(rows))).astype(str)
        each = list(zip(self.kind[subsets], self.column[subsets], self.value[subsets], strict=True))
        member = np.ones((len(each), len(rows)), dtype=bool)
        for k, (kind, column, value) in enumerate(each):
            if kind == LEAF:
                member[k] = leaf == value
            elif kind == GROUP:
                if not rows.groups:
                    without = "the model corrects groups, and these rows have none"
                    raise DecalError(without, f"name the columns with {Hint('group')}")
                member[k] = np.asarray(list(rows.groups.values())[column], dtype=str) == value
        return member


class Patch(NamedTuple):
    """One correction: a subset, a cell of the current score, and the shift of the score there."""

    subset: int
    cell: int
    shift: float


class PatchedRows(NamedTuple):
    """Rows to correct: current score, label, weight, shape (T,); member, bool (subsets, T)."""

    score: Floats
    label: Floats
    weight: Floats
    member: Mask

    def take(self, rows: Mask) -> PatchedRows:
        """These rows."""
        return PatchedRows(self.score[rows], self.label[rows], self.weight[rows], self.member[:, rows])

    @property
    def loss(self) -> float:
        """Summed squared error of the score."""
        return float(self.weight @ (self.score - self.label) ** 2)

    def patched(self, patch: Patch, cells: int) -> PatchedRows:
        """The rows with the patch applied to their scores."""
        here = self.member[patch.subset] & (cell_of(self.score, cells) == patch.cell)
        return self._replace(score=np.where(here, np.clip(self.score + patch.shift, 0.0, 1.0), self.score))


def cell_of(score: Floats, cells: int) -> Ints:
    """Number of the cell of each score."""
    return np.minimum((score * cells).astype(np.int64), cells - 1)


@method(
    title="Multicalibration",
    kind="post-training",
    source=f"{cite('Hébert-Johnson et al. 2018')}; with a stopping rule on held-out rows",
    needs=("features",),
    uses=("groups",),
)
def multicalibration(
    rows: Training, *, bins: Annotated[int, "bins of the score within which it corrects", COUNT] = N_CELLS
) -> Patches:
    """Isotonic regression, then corrections within groups and regions of the features until none helps.

    The regions are the leaves of a tree of at most 12 leaves, grown on the residuals of the isotonic fit; the groups
    are the values of each group column, if any. Each step adds the mean of y - p' to p' in one subset (all rows, a
    region or a group) and one tenth of the range of p', chosen to lower the squared error most. A third of the rows is
    held out; the steps up to the smallest squared error on them are kept. It needs features, 30 rows, and both classes
    among the rows it learns from.
    """
    if len(rows) < MIN_ROWS:
        raise Undefined(f"needs at least {MIN_ROWS} rows, a third of them held out; there are {len(rows)}")
    held = rows.folds(rows.generator(_HELD_OUT), _HELD_OUT) == 0
    learned = rows.take(~held)
    learned.table.need_both_classes()
    curve = Curve.fitted(learned.table)
    off, smallest = learned.label - curve.of(learned.score), max(5, len(learned) // 100)
    grown = grown_tree(narrow(learned.matrix), off, learned.weights, POOLED_LEAVES, smallest, rows.seed)
    start = _without_patches(curve, Tree.of_sklearn(grown), learned.groups, bins)
    whole = PatchedRows(curve(rows).score, rows.label, rows.weights, start.members(rows))
    kept = kept_patches(whole.take(~held), whole.take(held), bins)
    subset, cell = (np.array([patch[k] for patch in kept], dtype=np.int64) for k in (0, 1))
    return replace(start, subset=subset, cell=cell, shift=np.array([patch.shift for patch in kept]))


def kept_patches(learned: PatchedRows, held: PatchedRows, cells: int, most: int = MAX_PATCHES) -> list[Patch]:
    """The patches up to the one with the smallest loss on the held-out rows."""
    patches: list[Patch] = []
    best, keep = held.loss, 0
    while len(patches) < most and len(patches) - keep < MAX_FAILURES:
        patch = best_patch(learned, cells)
        if not patch:
            break
        learned, held = learned.patched(patch, cells), held.patched(patch, cells)
        patches.append(patch)
        if held.loss < best:
            best, keep = held.loss, len(patches)
    return patches[:keep]


def best_patch(sample: PatchedRows, cells: int) -> Patch | None:
    """The patch that lowers the squared error most; None where every subset is calibrated in every cell."""
    cell = cell_of(sample.score, cells)
    off = sample.weight * (sample.label - sample.score)
    weight, missing = (
        np.array([np.bincount(cell[member], values[member], cells) for member in sample.member])
        for values in (sample.weight, off)
    )
    gain = ratio(missing**2, weight)
    subset, of_cell = np.unravel_index(int(gain.argmax()), gain.shape)
    if gain[subset, of_cell] <= MIN_GAIN * sample.weight.sum():
        return None
    return Patch(int(subset), int(of_cell), float(missing[subset, of_cell] / weight[subset, of_cell]))


def _without_patches(curve: Curve, tree: Tree, groups: Groups, cells: int) -> Patches:
    """The curve and the subsets: all rows, then the leaves, then the values of each group column."""
    leaves = np.flatnonzero(tree.left == NO_CHILD).astype(str)
    values = [np.unique(np.asarray(column, dtype=str)) for column in groups.values()]
    columns = [np.full(len(each), k) for k, each in enumerate(values)]
    kind = [EVERYONE, *[LEAF] * len(leaves), *[GROUP] * sum(map(len, values))]
    none = np.zeros(0, dtype=np.int64)
    return Patches(
        curve,
        tree,
        np.array(kind, dtype=np.int64),
        np.concatenate((np.zeros(1 + len(leaves), dtype=np.int64), *columns)),
        np.concatenate(([""], leaves, *values)),
        cells,
        none,
        none,
        np.zeros(0),
    )
