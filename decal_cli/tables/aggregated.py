"""Rows that were counted before decal saw them: the tables of all and of each group, and nothing of a single row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.rows import Groups, Rows
from decal_cli.tables.table import Table

if TYPE_CHECKING:
    from decal_cli.tables.population import Population

COUNTS_HAVE_NONE = "needs features, and counts have none: name those of rows, in files or in an engine"
NEEDS_ROWS = "needs the rows themselves, and only counts of them are known"
APART = DecalError(
    "rows were counted by one score at a time, and a comparison needs both scores of a row at once",
    "count them by both (`decal sql` has the option pairs), or give a file of rows",
)


def needs_rows(what: str) -> DecalError:
    """The error where something needs single rows of those that were counted."""
    return DecalError(f"{what} {NEEDS_ROWS}", f"give a file of rows, without {Hint('aggregated')} or {Hint('engine')}")


class CountedData(Rows):
    """Labelled rows of which only the tables are known, so that whatever asks for a single row is refused.

    count, ones: the rows, and those with label 1, whatever their weight. parts: group column -> value -> its rows.
    pairs: the table of their scores by two models, where rows were counted by both; side: which of the two this is.
    """

    def __init__(
        self,
        table: Table,
        count: int,
        ones: int,
        parts: Mapping[str, Mapping[str, CountedData]] | None = None,
        pairs: PairTable | None = None,
        side: int = 0,
    ) -> None:
        groups: Groups = {column: np.array(list(values)) for column, values in (parts or {}).items()}
        vars(self).update(table=table, groups=groups, count=count, ones=ones, parts=parts or {}, pairs=pairs, side=side)
        vars(self).update(counted=True)

    count: int
    ones: int
    parts: Mapping[str, Mapping[str, CountedData]]
    pairs: PairTable | None
    side: int

    def __len__(self) -> int:
        return self.count

    def __getattr__(self, name: str) -> Any:
        if name in ("score", "label"):
            raise needs_rows("this")
        raise AttributeError(name)

    @property
    def weights(self) -> Any:
        """No single weight is known. Errors: DecalError."""
        return self.__getattr__("label")

    @property
    def positives(self) -> int:
        return self.ones

    def recounted(self, there: Population) -> CountedData:
        """These rows with the weights, and the scores, that they have in another population. Errors: DecalError."""
        # The share of label 1 is known of all rows, and not of a part of them.
        of_part = replace(there, known=False)
        parts = {
            column: {value: rows.recounted(of_part) for value, rows in values.items()}
            for column, values in self.parts.items()
        }
        pairs = None if self.pairs is None else there.pairs(self.pairs)
        return CountedData(there.table(self.table), self.count, self.ones, parts, pairs, self.side)

    def adjusted_confidence(self, confidence: float | None) -> float | None:
        return self.table.design.confidence(confidence)

    def whole(self) -> Rows:
        return CountedData(self.table, self.count, self.ones, pairs=self.pairs, side=self.side)

    def pairs_with(self, other: Rows) -> PairTable:
        if self.pairs is None:
            raise APART
        return self.pairs

    def of_column(self, column: str) -> Iterator[tuple[str, Rows]]:
        yield from self.parts[column].items()
