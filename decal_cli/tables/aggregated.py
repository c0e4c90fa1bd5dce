"""Rows that were counted before decal saw them: the tables of all and of each group, and nothing of a single row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.bundles import Bundles, bundles
from decal_cli.tables.listed import Capacity, Listed, listed
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.recount import Recount
from decal_cli.tables.rows import Groups, Rows
from decal_cli.tables.table import Table

NEEDS_ROWS = "needs the rows themselves, and only counts of them are known"


class Aggregated(Rows):
    """Labelled rows of which only the tables are known, so that whatever asks for a single row is refused.

    count, ones: the rows, and those with label 1, whatever their weight. parts: group column -> value -> its rows.
    pairs: of their scores by two models, where rows were counted by both; side: which of the two this is, 0 or 1.
    """

    def __init__(
        self,
        table: Table,
        count: int,
        ones: int,
        parts: Mapping[str, Mapping[str, Aggregated]] | None = None,
        pairs: PairTable | None = None,
        side: int = 0,
    ) -> None:
        groups: Groups = {column: np.array(list(values)) for column, values in (parts or {}).items()}
        vars(self).update(table=table, groups=groups, count=count, ones=ones, parts=parts or {}, pairs=pairs, side=side)
        vars(self).update(counted=True)

    count: int
    ones: int
    parts: Mapping[str, Mapping[str, Aggregated]]
    pairs: PairTable | None
    side: int

    def __len__(self) -> int:
        return self.count

    def __getattr__(self, name: str) -> Any:
        if name in ("score", "label"):
            raise DecalError(
                f"this {NEEDS_ROWS}", f"give a file of rows, without {Hint('aggregated')} or {Hint('engine')}"
            )
        raise AttributeError(name)

    @property
    def weights(self) -> Any:
        """No single weight is known. Errors: DecalError."""
        return self.__getattr__("label")

    @property
    def positives(self) -> int:
        return self.ones

    def recounted(self, recount: Recount) -> Aggregated:
        """The same rows with other weights by label, and other scores. Errors: DecalError."""
        parts = {
            column: {value: rows.recounted(recount.of_group()) for value, rows in values.items()}
            for column, values in self.parts.items()
        }
        pairs = None if self.pairs is None else recount.pairs(self.pairs)
        return Aggregated(recount.table(self.table), self.count, self.ones, parts, pairs, self.side)

    @cached_property
    def bundles(self) -> Bundles:
        """The rows of one score (or two) and label as one. Errors: DecalError, where counts tell too little."""
        if self.pairs is None:
            return bundles(self.table, self.table, self.table.score, self.count)
        return bundles(self.pairs, self.table, (self.pairs.a, self.pairs.b)[self.side], self.count)

    @property
    def as_listed(self) -> Rows:
        return self.bundles

    def with_lists(self, capacity: Capacity, act_from: float | None) -> Aggregated:
        """The same with what their list says of them, as `listed` does of rows. Errors: DecalError."""
        whole = listed(self.bundles, capacity, act_from)
        assert whole.listed is not None  # it was made just now
        with_list = copy(self)
        parts = {
            column: {value: part._of_whole(whole, whole.listed.given) for value, part in values.items()}
            for column, values in self.parts.items()
        }
        vars(with_list).update(listed=whole.listed, parts=parts)
        return with_list

    def _of_whole(self, whole: Rows, of_rows: Listed) -> Aggregated:
        """The same with what the list of all rows says of those of a group."""
        order = whole.by_score
        # Of the rows of one score it says the same.
        same = order[np.searchsorted(whole.score[order], self.bundles.score)]
        part = copy(self)
        vars(part).update(listed=of_rows.take(same))
        return part

    def sure(self, confidence: float) -> float | None:
        return self.table.design.confidence(confidence)

    def whole(self) -> Rows:
        rows = Aggregated(self.table, self.count, self.ones, pairs=self.pairs, side=self.side)
        vars(rows).update(listed=self.listed)
        return rows

    def pairs_with(self, other: Rows) -> PairTable:
        if self.pairs is None:
            raise DecalError(
                "rows were counted by one score at a time, and a comparison needs both scores of a row at once",
                "count them by both (`decal sql` has the option pairs), or give a file of rows",
            )
        return self.pairs

    def of_column(self, column: str) -> Iterator[tuple[str, Rows]]:
        yield from self.parts[column].items()
