"""Multicalibration: corrections of the score within groups and regions of the features, until none helps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import POOLED_LEAVES, narrow
from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.isotonic import Curve
from decal_cli.methods.numerics.checks import are_places, is_finite, need
from decal_cli.methods.numerics.features import features_of
from decal_cli.methods.numerics.trees import Tree
from decal_cli.tables.rows import Groups, Unlabelled
from decal_cli.tables.table import Floats, Ints

N_CELLS = 10
"""Bins of the current score, one of which limits each patch; Hébert-Johnson et al. 2018 call their width lambda."""
MAX_PATCHES = 200
MAX_FAILURES = 10
"""It stops after so many patches that do not lower the loss of the held-out rows."""
MIN_ROWS = 30
"""Rows that it needs: ten of them are held out."""
MIN_GAIN = 1e-12
"""Squared error per row below which a patch is only rounding."""
_HELD_OUT = 3
"""One in so many rows is held out; also the purpose of the random numbers that choose them."""
EVERYONE, LEAF, GROUP = 0, 1, 2


@model
@dataclass(frozen=True, eq=False)
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

    def __post_init__(self) -> None:
        """Refuse patches of subsets or cells that are not there. Errors: ValueError."""
        need(
            self.kind.shape == self.column.shape == self.value.shape, "every subset needs a kind, a column and a value"
        )
        need(are_places(self.kind, EVERYONE, GROUP + 1), "a subset is everyone, a leaf or a group")
        need(self.subset.shape == self.cell.shape == self.shift.shape, "every patch needs a subset, a cell and a shift")
        need(len(self.subset) <= MAX_PATCHES, f"there are at most {MAX_PATCHES} patches")
        need(are_places(self.subset, 0, len(self.kind)), "a patch asks for a subset that is not there")
        need(self.cells > 0 and are_places(self.cell, 0, self.cells), "a patch asks for a cell that is not there")
        need(is_finite(self.shift), "shifts must be finite")

    def __call__(self, rows: Unlabelled) -> Applied:
        score = self.curve(rows).score
        used, number = np.unique(self.subset, return_inverse=True)
        member = self._only(used).members(rows)
        for subset, cell, shift in zip(number, self.cell, self.shift, strict=True):
            here = member[subset] & (cell_of(score, self.cells) == cell)
            score[here] = np.clip(score[here] + shift, 0.0, 1.0)
        return Applied(score)

    def _only(self, subsets: Ints) -> Patches:
        """These subsets, without patches."""
        no = {name: getattr(self, name)[:0] for name in ("subset", "cell", "shift")}
        return replace(self, kind=self.kind[subsets], column=self.column[subsets], value=self.value[subsets], **no)

    def members(self, rows: Unlabelled) -> NDArray[np.bool_]:
        """Which rows belong to which subset, shape (subsets, T)."""
        leaf = self.tree.leaf(narrow(features_of(rows))).astype(str)
        member = np.ones((len(self.kind), len(rows)), dtype=bool)
        for k, (kind, column, value) in enumerate(zip(self.kind, self.column, self.value, strict=True)):
            if kind == LEAF:
                member[k] = leaf == value
            elif kind == GROUP:
                member[k] = _groups(rows)[column] == value
        return member


def _groups(rows: Unlabelled) -> list[NDArray[np.str_]]:
    if not rows.groups:
        raise DecalError(
            "the model corrects groups, and these rows have none", f"name the columns with {Hint('group')}"
        )
    return [np.asarray(values, dtype=str) for values in rows.groups.values()]


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
    member: NDArray[np.bool_]

    def take(self, rows: NDArray[np.bool_]) -> PatchedRows:
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
    held = rows.places(rows.generator(_HELD_OUT), _HELD_OUT) % _HELD_OUT == 0
    learned = rows.take(~held)
    learned.table.need_both_classes()
    curve = Curve.fitted(learned.table)
    start = _without_patches(curve, _tree(learned, curve), learned.groups, bins)
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
        if patch is None:
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
    gain = np.divide(missing**2, weight, out=np.zeros_like(weight), where=weight > 0)
    subset, of_cell = np.unravel_index(int(gain.argmax()), gain.shape)
    if gain[subset, of_cell] <= MIN_GAIN * sample.weight.sum():
        return None
    return Patch(int(subset), int(of_cell), float(missing[subset, of_cell] / weight[subset, of_cell]))


def _without_patches(curve: Curve, tree: Tree, groups: Groups, cells: int) -> Patches:
    """The curve and the subsets: all rows, then the leaves, then the values of each group column."""
    leaves = np.flatnonzero(tree.left < 0).astype(str)
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


def _tree(rows: Training, curve: Curve) -> Tree:
    """A tree whose leaves are regions where the labels deviate from the curve."""
    from sklearn.tree import DecisionTreeRegressor

    smallest = max(5, len(rows) // 100)
    tree = DecisionTreeRegressor(max_leaf_nodes=POOLED_LEAVES, min_samples_leaf=smallest, random_state=rows.seed)
    return Tree.of_sklearn(tree.fit(narrow(rows.matrix), rows.label - curve(rows).score, rows.weights))
