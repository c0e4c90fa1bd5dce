"""A sample of the rows that an engine holds: the same rows as of files, by the same hash (`row_hash`), in SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.sources import OwnOrigin
from decal_cli.data.large.engines.connections import Connection
from decal_cli.data.large.engines.dialects import Dialect, label_of, other_label
from decal_cli.data.large.engines.statement import select
from decal_cli.data.large.repeated import COUNT
from decal_cli.data.large.row_hash import LARGEST, N_HASHED_COLUMNS, N_PIECES, PIECE, PRIME, SHIFT, TOP, factor
from decal_cli.data.large.sampling import draw, quotas
from decal_cli.data.words import MISSING
from decal_cli.roles import Columns

_KINDS = (
    ("truth", re.compile(r"bool")),
    (
        "number",
        re.compile(r"u?(tiny|small|big|huge)?int|integer|int\d|float|double|real|decimal|numeric|long|short|byte"),
    ),
    ("text", re.compile(r"(n?var)?char|text|string|enum|bpchar|name|uuid")),
)
"""What a column holds, by how the name of its type begins."""
_SLACK = 6.0
"""Standard errors by which more rows are asked for than are drawn, so that rows do not lack."""


def drawn_rows(
    connection: Connection, source: str, chosen: Chosen, columns: Columns, dialect: Dialect, counted: Dataset
) -> Dataset:
    """A sample of the rows of a source. counted: the same rows, counted and checked. Errors: DecalError."""
    ones = counted.models[0].rows.positives
    counts = (len(counted.models[0].rows) - ones, ones)
    table = _Drawing(source, chosen, columns, dialect, connection.types(source))
    answer = connection.answer(table.statement([_cutoff(*each) for each in zip(quotas(counts), counts, strict=True)]))
    rows = OwnOrigin(counted.inputs[0].path, table.named(answer))
    return draw([rows], chosen, columns, counts=counts)


def _cutoff(quota: int, count: int) -> int:
    """The hash up to which so many of so many rows have theirs, and some more."""
    return min(PRIME, math.ceil(PRIME * (quota + _SLACK * math.sqrt(quota) + 30) / max(count, 1)))


class Given:
    """Columns of a source under names of ours. kinds: what each holds, a number, a truth value, a text or another."""

    def __init__(self, source: str, dialect: Dialect, kinds: Mapping[str, str]) -> None:
        self.source = source
        self.dialect = dialect
        self.kinds = kinds
        self.ours = {name: f"decal_{number}" for number, name in enumerate(kinds, 1)}

    def given(self) -> str:
        """The columns of the user as numbers and texts."""
        return select([*self._given()], self.source)

    def counted(self, most: int) -> str:
        """The statement that counts the rows by all of the columns, so many counts at most."""
        keys = ", ".join(self.ours.values())
        rows = f"(\n{self.given()}\n) AS decal_given"
        return f"SELECT {keys}, COUNT(*) AS {COUNT}\nFROM {rows}\nGROUP BY {keys}\nLIMIT {most}"

    def _given(self) -> Iterator[str]:
        for name, ours in self.ours.items():
            column, kind = self.dialect.name(name), self.kinds[name]
            if kind == "number":
                value = self.dialect.as_double(column)
            elif kind == "truth":
                one, zero = self.dialect.number(1), self.dialect.number(0)
                value = f"CASE WHEN {column} THEN {one} WHEN NOT {column} THEN {zero} END"
            else:
                value = self.dialect.as_text(column)
            yield f"{value} AS {ours}"

    def named(self, table: Any) -> Any:
        """The answer with the user's names, its numbers as such."""
        import pyarrow as pa

        columns = {}
        for name, ours in self.ours.items():
            column = table.column(ours)
            columns[name] = column.cast(pa.float64()) if self.kinds[name] in ("number", "truth") else column
        return pa.table(columns)


class _Drawing(Given):
    """The statement that draws. types: of the columns of the source, as its engine names them."""

    def __init__(
        self, source: str, chosen: Chosen, columns: Columns, dialect: Dialect, types: Mapping[str, str]
    ) -> None:
        self.positive = columns.positive
        self.label = chosen.label
        self.hashed = sorted({*chosen.score, *chosen.features})[:N_HASHED_COLUMNS]
        kinds = {name: kind_of(types[name]) for name in (*chosen.group, *chosen.features)}
        kinds |= dict.fromkeys((*chosen.score, *((chosen.weight,) if chosen.weight else ())), "number")
        super().__init__(source, dialect, kinds | {chosen.label: "other"})

    def statement(self, cutoffs: Sequence[int]) -> str:
        """The rows of each label whose hash does not exceed its cutoff."""
        label, sources = f"TRIM({self.ours[self.label]})", ["decal_given"]
        parts = {"decal_given": self.given()}
        if self.positive is not None:
            labels = other_label(label, self.positive, "decal_given", self.dialect)
            parts["decal_labels"] = labels
            sources.append("decal_labels")
        pieces = [f"{value} AS {name}" for name, value in self._left()]
        of_label = f"{label_of(label, self.positive, self.dialect)} AS decal_label"
        parts["decal_left"] = select(["decal_given.*", of_label, *pieces], " CROSS JOIN ".join(sources))
        parts["decal_first"] = select(
            ["decal_left.*", f"MOD({' + '.join(self._sums())}, {PRIME}) AS decal_h1"], "decal_left"
        )
        parts["decal_second"] = select(
            ["decal_first.*", f"MOD(decal_h1 * decal_h1, {PRIME}) AS decal_h2"], "decal_first"
        )
        parts["decal_fourth"] = select(
            ["decal_second.*", f"MOD(decal_h2 * decal_h2, {PRIME}) AS decal_h4"], "decal_second"
        )
        named = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in parts.items())
        kept = " OR ".join(
            f"decal_label = {code} AND MOD(decal_h4 * decal_h1, {PRIME}) <= {cutoff}"
            for code, cutoff in enumerate(cutoffs)
        )
        return f"WITH {named}\nSELECT {', '.join(self.ours.values())}\nFROM decal_fourth\nWHERE {kept}"

    def _left(self) -> Iterator[tuple[str, str]]:
        """What is left of every number to be cut in pieces; of texts, their piece."""
        number = self.dialect.number
        for name in self.hashed:
            ours = self.ours[name]
            if self.kinds[name] == "text":
                words = ", ".join(map(self.dialect.text, MISSING))
                hashed = self.dialect.first_bits.format(value=ours)
                yield f"{ours}_p", f"CASE WHEN {ours} IS NULL OR {ours} IN ({words}) THEN 0 ELSE {hashed} END"
            elif self.kinds[name] != "other":
                bounded = f"GREATEST(LEAST({ours}, {number(LARGEST)}), {number(-LARGEST)})"
                missing = f"{ours} IS NULL OR {self.dialect.is_nan(ours)}"
                yield f"{ours}_p", f"CASE WHEN {missing} THEN NULL ELSE {bounded} / {number(TOP)} END"

    def _sums(self) -> Iterator[str]:
        """Pieces times their factors."""
        for at, name in enumerate(self.hashed):
            left = f"{self.ours[name]}_p"
            if self.kinds[name] == "text":
                yield f"{left} * {factor(at)}"
            elif self.kinds[name] != "other":
                for piece in range(N_PIECES):
                    whole = self.dialect.as_integer(f"FLOOR({left})")
                    shifted = f"({whole} + {SHIFT})" if piece == 0 else whole
                    yield f"COALESCE({shifted} * {factor(at, piece)}, 0)"
                    left = f"(({left} - FLOOR({left})) * {self.dialect.number(PIECE)})"


def kind_of(kind: str) -> str:
    """What a column holds, by what its engine calls its type."""
    return next((name for name, begins in _KINDS if begins.match(kind.lower())), "other")
