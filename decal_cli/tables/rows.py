"""Rows: what every command, method, fold and study holds and cuts.

What ignores the identity of rows needs only their table. What needs more (features, groups, folds of rows) takes
the rows themselves, cuts them with `take`, and puts them with `in_order` into an order that depends on their content
alone, so that no number depends on the order in which a file lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.hints import Hint
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.design import need_clusters
from decal_cli.tables.features import Features, Matrix, mixed_bits
from decal_cli.tables.order import lexical_order, stable_order
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.resample import BLOCKS, FOLDS
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints, Table, tabulate
from decal_cli.tables.units import Units, index_type, runs, units_of_rows

if TYPE_CHECKING:
    from decal_cli.tables.selection import Selection

Groups = Mapping[str, NDArray[Any]]
"""Name of a group column -> its values, str (T,)."""


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Rows to be scored: what a fitted model sees of rows.

    score: float64 (T,) in [0, 1]; (T, K), rows of sum 1, where classes names K of them. groups: name -> str (T,).
    features: typed columns, or numbers of shape (T, d), or a function that reads them when they are needed, or None.
    """

    score: Floats
    classes: tuple[str, ...] = field(default=(), kw_only=True)
    groups: Groups = field(default_factory=dict, kw_only=True)
    features: Features | Matrix | Callable[[], Features | Matrix] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Number of rows, T."""
        return len(self.score)

    @property
    def has_features(self) -> bool:
        """Whether they have features."""
        return self.features is not None

    @property
    def typed(self) -> Features:
        """The features as typed columns, read or cut now where that was put off; no column where there are none."""
        features = self.features() if callable(self.features) else self.features
        if isinstance(features, Features):
            return features
        return Features.of_numbers(np.empty((len(self), 0)) if features is None else features)

    @property
    def matrix(self) -> Matrix:
        """The features where all are numbers, shape (T, d). Errors: Undefined, where there are categories."""
        return self.typed.matrix

    def take(self, which: NDArray[Any]) -> Self:
        """These rows, by mask or index; features that were not read yet are cut when they are read."""
        return replace(self, **{each.name: of_rows(getattr(self, each.name), which) for each in fields(self)})


@dataclass(frozen=True, eq=False)
class Rows(Unlabelled):
    """Labelled rows. label: (T,), 0 or 1. weight: float64 (T,), positive, or None. cluster: (T,), or None.

    Labels of several classes are numbers of classes. Rows of one cluster were sampled together.
    period: (T,), or None: rows of one period share a capacity. selection: which rows are acted on, where that is
    limited. time: (T,), given where fits learn from earlier rows only. amounts: what decisions on a row are worth, by
    role, (T,) or (T, A K).
    """

    label: NDArray[Any]
    weight: Floats | None = None
    cluster: NDArray[Any] | None = None
    period: NDArray[Any] | None = None
    selection: Selection | None = None
    time: NDArray[Any] | None = field(default=None, kw_only=True)
    amounts: Mapping[str, Floats] = field(default_factory=dict, kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the rows were counted before decal saw them, by the only columns that are known of them."""
    share_known: bool = field(default=False, kw_only=True)
    """Whether weights make the share of each label among all of them what it is known to be."""

    @cached_property
    def table(self) -> Table:
        """The distinct scores with their rows and positives."""
        table = tabulate(self.score, self.label, self.weight, self.unit)
        return table.with_known_share() if self.share_known else table

    @cached_property
    def unit(self) -> Ints | None:
        """The cluster of each row, numbered from 0 in order of their names; None where every row stands by itself."""
        if self.cluster is None:
            return None
        if self.cluster.dtype.kind == "i" and int(self.cluster.min()) >= 0 and int(self.cluster.max()) < 4 * len(self):
            # Numbers of clusters, as the reader gives them, need no sort.
            seen = np.bincount(self.cluster) > 0
            names, number = np.flatnonzero(seen), self.cluster
            if not seen.all():
                number = (np.cumsum(seen) - 1)[number]
        else:
            names, number = np.unique(self.cluster, return_inverse=True)
        return None if len(names) == len(self) else number.reshape(-1)

    @property
    def clusters(self) -> int:
        """How many clusters there are; a row that stands by itself is one."""
        return len(self) if self.unit is None else int(self.unit.max()) + 1

    def pairs_with(self, other: Rows) -> PairTable:
        """The pairs of these scores and those of another model; other: the same rows in the same order."""
        pairs = pair_up(self.score, other.score, self.label, self.weight, self.unit)
        return pairs.with_known_share() if self.share_known else pairs

    def places(self, rng: np.random.Generator, parts: int = FOLDS) -> Ints:
        """Random places of the rows, from 0: modulo the number of parts they are parts, each with whole clusters.

        Errors: Undefined, where there are fewer clusters than parts.
        """
        if self.unit is None:
            return rng.permutation(np.arange(len(self), dtype=index_type(len(self))))
        clusters = self.clusters
        need_clusters(clusters, parts)
        place = rng.permutation(clusters)[self.unit]
        return (place * len(self) // clusters) // parts * parts + place % parts

    def folds(self, rng: np.random.Generator, parts: int = FOLDS) -> Ints:
        """The random part that each row is in: `places` modulo the number of parts. Errors: as `places`."""
        if self.unit is None:
            # Of many rows, bytes stay in the processor's cache while they are shuffled.
            number: Any = np.arange(parts, dtype=np.int8)
            return rng.permutation(np.tile(number, -(-len(self) // parts))[: len(self)])
        return self.places(rng, parts) % parts

    @property
    def too_few_to_hold_out(self) -> bool:
        """Whether there are too few rows, or clusters, to learn from some and judge on others."""
        return len(self) < FEWEST_ROWS or self.clusters < FOLDS

    @cached_property
    def block(self) -> Ints:
        """The block of time of each row, from 0 on, shape (T,): about as many rows each, those of one time together.

        Errors: Undefined, where rows have no time, or all the same.
        """
        if self.time is None:
            raise Undefined(f"needs the time of rows: {Hint('time').words}")
        first = np.searchsorted(np.sort(self.time), self.time)
        block = np.unique(BLOCKS * first // len(self), return_inverse=True)[1].reshape(-1)
        if block.max() < 1:
            raise Undefined(f"needs rows of several times: {Hint('time').words}")
        return block

    @property
    def in_time(self) -> bool:
        """Whether fits learn from earlier rows only."""
        return self.time is not None

    @cached_property
    def judged(self) -> Self:
        """The rows that fits are judged on when each is held out: all, or those after the first block of time."""
        return self.take(self.block > 0) if self.in_time else self

    def adjusted_confidence(self, confidence: float | None) -> float | None:
        """The confidence to ask of normal quantiles, more for few clusters; None for too few of them, or rows."""
        if self.unit is None:
            # One row of several classes tells nothing of how far others are from it.
            return None if self.classes and len(self) == 1 else confidence
        return (self.class_table.top if self.classes else self.table).design.confidence(confidence)

    @cached_property
    def class_table(self) -> ClassTable:
        """Rows of several classes as metrics look at them."""
        return ClassTable(self.score, self.label, self.weight, self.classes, self.unit, self.share_known)

    @cached_property
    def units(self) -> Units:
        """A unit for each row."""
        if self.classes:
            return self.class_table.units
        effective = self.table.effective_rows
        return units_of_rows(self.label, self.weight, self.unit, effective, self.share_known)

    @property
    def weights(self) -> Floats:
        """Weights, ones where there are none."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def positives(self) -> int:
        """Rows with label 1, whatever their weight."""
        return int(np.count_nonzero(self.label))

    @cached_property
    def order(self) -> Ints:
        """Indices that sort the rows by their content alone: score, label, weight, features, and all else."""
        keys = [np.asarray(values, dtype=str) for values in self.groups.values()]
        keys += [column for values in self.amounts.values() for column in np.atleast_2d(values.T)]
        hashes = row_hashes(self.typed) if self.has_features else None
        keys += [each for each in (self.time, self.period, self.unit, hashes, self.weight) if each is not None]
        if self.score.ndim > 1:
            return self.class_table.in_content_order(keys)
        return _sorted_by((*keys, self.label, self.score))

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return self.weight is not None

    @cached_property
    def by_score(self) -> Ints:
        """Indices that sort the rows by their score, and rows of one score by label and weight."""
        return self.by_rank(self.score)

    def by_rank(self, rank: Floats) -> Ints:
        """Indices that sort the rows by a rank of each, shape (T,), and rows of one rank by label and weight."""
        return np.lexsort((self.label, rank) if self.weight is None else (self.weight, self.label, rank))

    def in_order(self) -> Self:
        """The rows in an order that depends on their content alone, with their features read; sorted once."""
        return self._ordered

    @cached_property
    def _ordered(self) -> Self:
        rows = replace(self, features=self.features()) if callable(self.features) else self
        table = vars(self).get("table") if self.unit is None else None
        alike = {"score": table.score, "label": table.pos} if table is not None and table.one_row_each else {}
        cut = {each.name for each in fields(rows)} - alike.keys()
        ordered = replace(rows, **{name: of_rows(getattr(rows, name), rows.order) for name in cut}, **alike)
        vars(rows).pop("order")  # it takes as much memory as a column
        vars(ordered).update(_ordered=ordered)
        if table is not None:
            vars(ordered).update(table=table)
        return ordered

    def by_group(self) -> Iterator[tuple[str | None, Rows]]:
        """All rows under None, then the rows of every value of every group column; the parts carry no groups."""
        yield None, self.whole()
        for column in self.groups:
            for value, rows in self.of_column(column):
                yield value if len(self.groups) == 1 else f"{column}={value}", rows

    def whole(self) -> Rows:
        """All rows, without groups."""
        return replace(self, groups={})

    def of_column(self, column: str) -> Iterator[tuple[str, Rows]]:
        """The rows of every value of a group column; the parts carry no groups."""
        rows = self.whole()
        names, number = np.unique(self.groups[column], return_inverse=True)
        order = np.argsort(number, kind="stable")
        ends = np.searchsorted(number[order], np.arange(len(names) + 1))
        for value, start, end in zip(names, ends, ends[1:], strict=False):
            part = rows.take(order[start:end])
            yield (
                str(value),
                part if part.selection is None else replace(part, selection=part.selection.with_fixed_threshold),
            )

    def take(self, which: NDArray[Any]) -> Self:
        # Of some of the rows the share of each label is no longer known.
        return replace(super().take(which), share_known=False)


def _sorted_by(keys: Sequence[NDArray[Any]]) -> Ints:
    """`lexical_order`, in less time where the last key, which it sorts by first, is seldom the same."""
    last = keys[-1]
    order = stable_order(last)
    new = np.ones(len(order) + 1, dtype=bool)
    for part in runs(len(order) - 1):
        values = last[order[part.start : part.stop + 1]]
        np.not_equal(values[1:], values[:-1], out=new[part.start + 1 : part.stop + 1])
    tied = np.flatnonzero(~(new[1:] & new[:-1]))
    if len(tied):
        some = order[tied]
        order[tied] = some[lexical_order([key[some] for key in keys])]
    return order


def of_rows(value: Any, which: Any) -> Any:
    """What a field of rows holds of these ones: arrays, by name or not, and all that is cut as they are."""
    if callable(value):
        return lambda: value()[which]
    if isinstance(value, Mapping):
        return {name: of_rows(each, which) for name, each in value.items()}
    if isinstance(value, (np.ndarray, Features)):
        return value[which]
    return value.take(which) if hasattr(value, "take") else value


def row_hashes(features: Features | Matrix) -> NDArray[np.uint64]:
    """64 bits of each row's features: equal rows get equal bits, independent of the other rows."""
    typed = features if isinstance(features, Features) else Features.of_numbers(features)
    return mixed_bits(typed.hashed(), len(typed))
