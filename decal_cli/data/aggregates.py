"""Aggregates -> Dataset: files of counts, made by a GROUP BY where the rows are, and added up here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decal_cli.data.check import Origin, floats, loaded_parts
from decal_cli.data.columns import nearest_of
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions
from decal_cli.data.labels import group
from decal_cli.data.sources import Source
from decal_cli.data.words import listed, number, quote
from decal_cli.errors import DecalError
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.design import INDEPENDENT, Weighted
from decal_cli.tables.table import Floats, Table

MODEL = "model"
COUNTS = ("n", "pos")
SQUARES = ("n2", "pos2")
ROWS = ("rows", "rows_pos")
LEVELS = ("score", *COUNTS)
OF_ROWS = (
    *("cluster", "features", "proba", "log", "positive", "logit", "margin", *ROW_UTILITIES),
    *("prevalence", "sampled_negatives", "per", "capacity"),
)
"""What can be said of rows, and not of their counts."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of a score in any order, maybe more than once: columns of numbers by name, shape (m,)."""

    columns: Mapping[str, Floats]

    def take(self, which: np.ndarray) -> Levels:
        """These levels, by mask."""
        return Levels({name: values[which] for name, values in self.columns.items()})

    @property
    def weighted(self) -> bool:
        """Whether n and pos are sums of weights."""
        return "n2" in self.columns

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Rows, and rows with label 1, of each level."""
        names = ROWS if self.weighted else COUNTS
        return self.columns[names[0]], self.columns[names[1]]

    def table(self, scale: float) -> Table:
        """Levels of one score added up; weights are multiplied by the scale, a power of two."""
        columns = {name: self.columns[name] for name in (*LEVELS, *(SQUARES if self.weighted else ()))}
        # In an order that does not depend on that of the files: sums of floats do.
        order = np.lexsort(tuple(reversed(columns.values())))
        score = columns["score"][order]
        starts = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
        n, pos, *squares = (np.add.reduceat(values[order], starts) for name, values in list(columns.items())[1:])
        if not self.weighted:
            return Table(score[starts], n.astype(np.int64), pos.astype(np.int64), INDEPENDENT)
        n2, pos2 = squares
        design = Weighted(n2 * scale**2, np.minimum(pos2, n2) * scale**2)
        return Table(score[starts], n * scale, np.minimum(pos, n) * scale, design)

    def counted(self, scale: float, groups: Mapping[str, np.ndarray]) -> Aggregated:
        """The rows that these levels count, and those of every group."""
        parts = {
            column: {str(value): self.take(values == value).counted(scale, {}) for value in np.unique(values)}
            for column, values in groups.items()
        }
        count, ones = (int(values.sum()) for values in self.rows)
        return Aggregated(self.table(scale), count, ones, parts)


def aggregates(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Check and add up files of levels. Errors: DecalError, one line, for anything that they cannot be."""
    refuse_of_rows(columns)
    numbers, weighted = _columns(sources, columns)
    texts = (*((MODEL,) if MODEL in sources[0].names else ()), *columns.group)
    digests = Digests(sources)
    parts = loaded_parts(sources, numbers, texts)
    origin = Origin(parts)
    levels = Levels({name: floats(parts, name) + 0.0 for name in numbers})
    check_levels(levels, origin)
    named = group(parts, MODEL) if MODEL in texts else None
    models = chosen_models(columns, named, origin.shown)
    groups = {name: group(parts, name) for name in columns.group}
    predictions = []
    for name in models:
        mine = np.ones(origin.count, dtype=bool) if named is None else named == name
        of_model = levels.take(mine)
        scale = scale_of(of_model) if weighted else 1.0
        counted = of_model.counted(scale, {column: values[mine] for column, values in groups.items()})
        predictions.append(Predictions(name, (name,), counted))
    inputs = []
    for part, digest in zip(parts, digests.wait(), strict=True):
        inside = slice(part.start, part.start + part.table.num_rows)
        rows, ones = ([values[inside]] for values in levels.rows)
        if named is not None:
            rows, ones = ([each[0][named[inside] == name] for name in models] for each in (rows, ones))
        count, positives = max((int(a.sum()), int(b.sum())) for a, b in zip(rows, ones, strict=True))
        inputs.append(Input(part.source.raw.path, count, positives, digest))
    roles: dict[str, str | tuple[str, ...]] = {"score": models, **({"group": columns.group} if columns.group else {})}
    guessed = () if columns.score else ("score",)
    return Dataset(tuple(inputs), roles, guessed, tuple(predictions), tuple(_notes(sources[0], texts, numbers)))


def refuse_of_rows(columns: Columns) -> None:
    """Raise a DecalError where more is said of the columns than counts can have."""
    for name in OF_ROWS:
        if columns.names(name) and columns.names(name) != (False,):
            option = "--from" if name == "log" else f"--{name.replace('_', '-')}"
            raise DecalError(
                f"{option} speaks of rows, and with --aggregated the files hold their counts",
                "drop it, or give the file of rows without --aggregated",
            )


def _columns(sources: Sequence[Source], columns: Columns) -> tuple[tuple[str, ...], bool]:
    """The columns of numbers that every file has, and whether rows are weighted."""
    first = sources[0]
    weighted = any(name in first.names for name in (*SQUARES, *ROWS))
    numbers = (*LEVELS, *((*SQUARES, *ROWS) if weighted else ()))
    for source in sources:
        what = "levels of weighted rows" if weighted else "levels"
        for name in numbers:
            if name not in source.names:
                raise DecalError(
                    f"{source.shown}: no column {quote(name)}, and --aggregated needs {listed(numbers)} for {what}",
                    f"here: {listed(source.names)}",
                )
        for name in (*SQUARES, *ROWS):
            if not weighted and name in source.names:
                raise DecalError(
                    f"{source.shown}: counts weighted rows, and {first.shown} rows without weights",
                    "aggregate both in one way",
                )
        for name in columns.group:
            nearest_of(name, source.names, source.shown)
        if (MODEL in source.names) != (MODEL in first.names):
            raise DecalError(
                f"{source.shown} and {first.shown}: one has a column {quote(MODEL)}, and the other has none",
                "aggregate both in one way",
            )
    return numbers, weighted


def check_levels(levels: Levels, origin: Origin) -> None:
    """Raise a DecalError that names the first value that cannot be, with its file, column and row."""
    of = levels.columns
    for name, values in of.items():
        _need(np.isfinite(values), values, name, "is missing or not finite", origin)
    score, n, pos = of["score"], of["n"], of["pos"]
    _need((score >= 0) & (score <= 1), score, "score", "is outside [0, 1]", origin)
    whole = ROWS if levels.weighted else COUNTS
    for name in whole:
        _need(of[name] == np.floor(of[name]), of[name], name, "is not a whole number of rows", origin)
    _need(n > 0, n, "n", "is not positive", origin)
    _need((pos >= 0) & (pos <= n * (1 + 1e-12)), pos, "pos", "is not between 0 and n", origin)
    if levels.weighted:
        n2, pos2, rows, ones = (of[name] for name in (*SQUARES, *ROWS))
        _need(rows > 0, rows, ROWS[0], "is not positive", origin)
        _need((ones >= 0) & (ones <= rows), ones, ROWS[1], "is not between 0 and rows", origin)
        # By Cauchy-Schwarz, and because weights are positive.
        _need((n2 * rows >= n**2 * (1 - 1e-9)) & (n2 <= n**2 * (1 + 1e-9)), n2, "n2", "cannot be that of n", origin)
        _need((pos2 >= 0) & (pos2 <= n2 * (1 + 1e-12)), pos2, "pos2", "is not between 0 and n2", origin)
        _need((ones > 0) == (pos > 0), ones, ROWS[1], "does not agree with pos", origin)


def _need(sound: np.ndarray, values: Floats, name: str, problem: str, origin: Origin) -> None:
    if not sound.all():
        row = int(np.argmin(sound))
        raise DecalError(f"{origin.place(name, row)}: {number(values[row])} {problem}", "correct the aggregates")


def chosen_models(columns: Columns, named: np.ndarray | None, shown: str) -> tuple[str, ...]:
    """The models of the column that names them, or those of them that --score names; without one, the only model."""
    if named is None:
        if len(columns.score) > 1:
            raise DecalError(
                f"{shown}: no column {quote(MODEL)}, and --score names {len(columns.score)} models",
                "aggregate them with that column, or name one",
            )
        return columns.score or ("score",)
    known = tuple(map(str, np.unique(named)))
    for name in columns.score:
        nearest_of(name, known, f"{shown}, column {quote(MODEL)}", "value")
    return columns.score or known


def scale_of(levels: Levels) -> float:
    """The power of two that brings the mean weight near 1, as weights of rows are read."""
    return float(2.0 ** -round(np.log2(float(levels.columns["n"].sum()) / float(levels.rows[0].sum()))))


def _notes(source: Source, texts: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    yield "rows were counted before: nothing that needs a single row is known (features, clusters, pairs of scores)"
    others = [name for name in source.names if name not in (*texts, *numbers)]
    if others:
        yield f"counts are added up over {listed(others)}; --group reports every value by itself"
