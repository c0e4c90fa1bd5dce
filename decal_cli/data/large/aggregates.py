"""Aggregates -> Dataset: counts made by a GROUP BY where the rows are, added up here, and what was wrong with the rows.

Counts of few rows become the rows that they stand for, so that whatever works on rows works on them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from decal_cli.data.check import amounts_of, clusters, group
from decal_cli.data.columns import Chosen, check_utilities, has_usual, nearest_of
from decal_cli.data.dataset import (
    NO_LABEL,
    Dataset,
    Digests,
    InputCounts,
    Predictions,
    chosen_columns,
    dataset,
    why_dropped,
)
from decal_cli.data.formats.files import Source, Wanted
from decal_cli.data.formats.sources import Repeated
from decal_cli.data.large.counts import CLUSTER, OF_COARSE_CLUSTERS, CellCounts, Counts, DistinctScores
from decal_cli.data.large.engines.statement import (
    BAD,
    BY_CLUSTER,
    ENDS,
    PROBLEMS,
    SIDES,
    VALUE,
    Problem,
    has_cells,
    has_pairs,
)
from decal_cli.data.parts import Origin, Part, floats, loaded_parts, missing_fix
from decal_cli.data.words import listed, number, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import HELD_BYTES_OF_ROW, MAX_COUNTED_ROWS, MAX_IN_MEMORY_BYTES
from decal_cli.numbers import many
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.rows import Rows

COUNT = "n"
"""The column that says how many rows a line stands for."""
MODEL = "model"
OF_CELLS = "scores are known by cells, with the sums of their rows: some numbers are exact; an evaluation says which"
OF_PAIRS = (
    "scores are known by cells of both models: comparing them shows the Brier score, log loss and decisions at edges, "
    "which are exact, and nothing else"
)
OF_ROWS = ("features", "log", "time")
"""Options that cannot be used with counts of rows."""
OF_LINES = (*OF_ROWS, "proba", "positive", "logit", "margin", "per")
"""Options that cannot be used where a line counts both labels of a score."""
_NULLS = ["", "\\N", "NULL", "null"]
"""What engines write for NULL where they export CSV."""
_BYTES_OF_COLUMN = 8


@dataclass
class DroppedRows:
    """Rows of a model that were dropped: how many for each reason, and how many of them have label 1."""

    why: Counter[str] = field(default_factory=Counter)
    ones: int = 0

    def add(self, line: Mapping[str, Any], rows: str) -> None:
        """Add the rows of a line of an aggregate. rows: the name of the column of their number."""
        count = int(line[rows])
        self.why[str(line[BAD])] += count
        ones = count * (line["label"] == 1) if "label" in line else line.get("rows_pos" if "n2" in line else "pos")
        self.ones += int(ones or 0)


Dropped = dict[str | None, DroppedRows]
"""By model, how many rows were dropped for each problem."""


def aggregates(sources: Sequence[Source], columns: Columns, hold: bool = True) -> Dataset:
    """Check and add up files of counts. Errors: DecalError, one line, for anything that they cannot be.

    hold: whether the rows that they count may be held as such, where memory can.
    """
    if _counts_rows(sources[0].names, columns):
        return _of_counted_rows(sources, columns)
    kind, numbers = _columns(sources, columns)
    stakes = tuple(name for role in ROW_UTILITIES for name in columns.names(role))
    check_utilities(columns.utility_columns, classes=2)
    _refuse(OF_LINES if kind is DistinctScores else (*OF_LINES, *ROW_UTILITIES), columns)
    paired = has_pairs(numbers)
    naming = [name for name in ([MODEL + side for side in SIDES] if paired else [MODEL]) if name in sources[0].names]
    of_cluster = () if columns.cluster in columns.group else columns.names("cluster")
    texts = tuple(dict.fromkeys((*naming, *columns.group, *of_cluster)))
    wrong = tuple(name for name in (BAD, VALUE) if all(name in source.names for source in sources))
    digests = Digests(sources)
    wanted: Wanted = {**dict.fromkeys((*numbers, *stakes), "numbers"), **dict.fromkeys((*texts, *wrong), "texts")}
    parts, dropped = _sound_parts(sources, wanted, columns.missing == "drop")
    counts, names = _counts(parts, columns, kind, numbers)
    called = getattr(sources[0], "called", {})
    groups = {called.get(name, name): group(parts, name) for name in columns.group}
    named = [group(parts, name) for name in naming]
    models = _both_models(columns, named, parts.shown) if paired else _models(columns, named, parts.shown)
    amounts = amounts_of(parts, Chosen(**vars(replace(columns, missing="error"))))
    total, width = int(counts.rows[0].sum()), len(numbers) + len(groups) + len(stakes)
    held = hold and can_hold(total, width)
    if stakes and not held:
        raise too_many(parts.shown, total, width)
    everything = np.ones(parts.n_rows, dtype=bool)
    apart = [named[0] == name for name in models] if named and not paired else [everything]
    rows = [each for mine in apart for each in _rows_of(counts, mine, groups, amounts, held, paired)]
    # Both models of pairs are on every line.
    lines = dict(zip(models, apart * len(models) if paired else apart, strict=True))
    inputs = digests.inputs(_counts_in(*each, counts, lines) for each in zip(parts, dropped, strict=True))
    roles: dict[str, str | tuple[str, ...]] = {"score": models, **({"group": columns.group} if columns.group else {})}
    roles |= {role: getattr(columns, role) for role in ("cluster", *ROW_UTILITIES) if columns.names(role)}
    roles |= {"weight": "n"} if counts.weighted else {}
    said = [*_notes(sources[0], columns, (*texts, *numbers, *stakes, *wrong), paired)]
    if isinstance(counts, CellCounts):
        said += [OF_PAIRS if paired else OF_CELLS, *([OF_COARSE_CLUSTERS] if counts.coarse else [])]
    predictions, of_dropped = [], []
    for name, its_rows in zip(models, rows, strict=True):
        why: Counter[str] = sum((_dropped_of(of_part, name).why for of_part in dropped), Counter())
        count = why.total()
        predictions.append(Predictions(name, (name,), its_rows, dropped=count))
        if paired and (absent := why.pop("missing score", 0)):
            why["missing score of either"] = absent
        if count:
            whose = ", ".join(models) if paired else name
            of_dropped.append(f"{whose}: dropped {count:,} of {len(its_rows) + count:,} rows ({why_dropped(why)})")
    one_by_one = len(models) > 1 and not paired
    return Dataset(
        inputs, roles, (), tuple(predictions), (*dict.fromkeys(of_dropped), *said), clusters=names, apart=one_by_one
    )


def _of_counted_rows(sources: Sequence[Source], columns: Columns) -> Dataset:
    """The data set of files whose every line is a row and how often it occurs. Errors: DecalError."""
    _refuse(OF_ROWS, columns)
    for source in sources:
        nearest_of(COUNT, source.names, source.shown)
    chosen = chosen_columns(sources, columns)
    lines = [repeated(source, chosen.read) for source in sources]
    notes = _notes(sources[0], columns, (*chosen.read, COUNT), pairs=True)
    return dataset_of_counted(lines, chosen, tuple(notes))


def _sound_parts(sources: Sequence[Source], wanted: Wanted, drop: bool) -> tuple[Origin, list[Dropped]]:
    """The lines that count scores, by file, and what was dropped of each."""
    parts, dropped = Origin(), list[Dropped]()
    for part in loaded_parts(sources, wanted):
        table, of_part = sound(part.table, part.source.shown, drop, getattr(part.source, "of_role", None))
        parts.append(Part(part.source, table, parts.n_rows if parts else 0))
        dropped.append(of_part)
    return parts, dropped


def _counts(
    parts: Origin, columns: Columns, kind: type[Counts], numbers: Sequence[str]
) -> tuple[Counts, np.ndarray | None]:
    """The counts of all lines, and the names of their clusters; None where there are none. Errors: DecalError."""
    values = {name: floats(parts, name) + 0.0 for name in numbers}
    names = None
    if columns.cluster:
        # Where clusters are counted apart, the cells of all rows have none.
        of_some = replace(columns, missing="drop" if BY_CLUSTER in values else "error")
        names, cluster = clusters(parts, columns.cluster, of_some)
        values[CLUSTER] = cluster.astype(np.float64)
    counts = kind(values, parts)
    counts.check()
    return counts, names


def _rows_of(
    counts: Counts,
    mine: np.ndarray,
    groups: Mapping[str, np.ndarray],
    amounts: Mapping[str, np.ndarray],
    held: bool,
    paired: bool,
) -> Iterator[Rows]:
    """The rows that these lines count, for one model or both of a pair. held: whether as single rows, not as counts."""
    of_model = counts.take(mine).scaled()
    of_groups, of_amounts = ({name: each[mine] for name, each in of.items()} for of in (groups, amounts))
    if not (held and isinstance(of_model, DistinctScores)):
        yield from of_model.counted(of_groups)
        return
    for rows in of_model.held(of_groups, of_amounts):
        if not paired:
            # They need no sort: they come counted.
            vars(rows)["table"] = of_model.table()
        yield rows


def _counts_in(part: Part, dropped: Dropped, counts: Counts, lines: Mapping[str, np.ndarray]) -> InputCounts:
    """What a file holds of the model that has most there. lines: those of each model."""
    inside = slice(part.start, part.start + part.table.num_rows)
    rows, ones = (each[inside] for each in counts.rows)
    most = max(
        (int(rows[mine[inside]].sum()) + out.why.total(), int(ones[mine[inside]].sum()) + out.ones)
        for name, mine in lines.items()
        for out in [_dropped_of(dropped, name)]
    )
    return *most, max((out.why[NO_LABEL] for out in dropped.values()), default=0)


def _counts_rows(names: Sequence[str], columns: Columns) -> bool:
    """Whether lines hold rows as they are, with their label, and how many there are of each."""
    if COUNT not in names or "pos" in names or has_cells(names) or has_pairs(names):
        return False
    return columns.label in names if columns.label else has_usual("label", names)


def _refuse(names: Sequence[str], columns: Columns) -> None:
    """Raise a DecalError where more is said of the columns than counts can have."""
    for name in names:
        if getattr(columns, name):
            option = Hint("from" if name == "log" else name)
            raise DecalError(
                f"{option} speaks of rows, and with {Hint('aggregated')} the files hold their counts",
                f"drop it, or give the file of rows without {Hint('aggregated')}",
            )


def _columns(sources: Sequence[Source], columns: Columns) -> tuple[type[Counts], tuple[str, ...]]:
    """The kind of counts that the files hold, and the columns of numbers that each of them has."""
    first = sources[0]
    kind: type[Counts] = CellCounts if has_cells(first.names) else DistinctScores
    paired = has_pairs(first.names)
    of_weights = [name for name in kind.names(True, paired) if name not in kind.names(False, paired)]
    weighted = any(name in first.names for name in of_weights)
    numbers = kind.names(weighted, paired)
    what = f"{kind.what}{' of pairs' if paired else ''}{' of weighted rows' if weighted else ''}"
    if kind is CellCounts and paired and columns.cluster:
        raise DecalError(
            f"{first.shown}: cells of two scores do not hold clusters",
            f"drop {Hint('cluster')}, or aggregate levels by cluster",
        )

    def holds(names: Sequence[str]) -> dict[str, bool]:
        return {
            "cells": has_cells(names),
            "two scores at once": has_pairs(names),
            "weighted rows": any(name in names for name in of_weights),
            f"a column {quote(MODEL)}": MODEL in names,
            "clusters of cells": kind is CellCounts and not paired and BY_CLUSTER in names,
        }

    for source in sources:
        for held, is_held in holds(source.names).items():
            if is_held != holds(first.names)[held]:
                raise DecalError(
                    f"{source.shown} and {first.shown}: one has {held}, and the other has not",
                    "aggregate both in one way",
                )
        for name in numbers:
            if name not in source.names:
                raise DecalError(
                    f"{source.shown}: no column {quote(name)}, and {what} have {', '.join(numbers)}",
                    f"aggregate it so; its columns: {listed(source.names)}",
                )
        for role in ("group", "cluster", *ROW_UTILITIES):
            for name in columns.names(role):
                nearest_of(name, source.names, source.shown)
    if not paired and all(name in source.names for source in sources for name in kind.optional):
        numbers += kind.optional
    if holds(first.names)["clusters of cells"]:
        numbers += (BY_CLUSTER,)
    return kind, numbers


def _both_models(columns: Columns, named: Sequence[np.ndarray], shown: str) -> tuple[str, ...]:
    """The names of A and of B: of the columns that hold them, or as --score names them."""
    known: list[str] = []
    for side, values in zip(SIDES, named, strict=False):
        names = np.unique(values)
        if len(names) > 1:
            raise DecalError(
                f"{shown}, column {quote(MODEL + side)}: several models, {listed(list(map(str, names)))}",
                "aggregate two models by themselves",
            )
        known.append(str(names[0]))
    if columns.score and known and tuple(known) != columns.score:
        raise DecalError(
            f"{shown} counts rows by the scores {listed(known)}, and {Hint('score')} names {listed(columns.score)}",
            f"drop {Hint('score')}",
        )
    if len(columns.score) not in (0, 2):
        raise DecalError(f"{shown} counts rows by two scores, and {Hint('score')} names 1", "name two, or none")
    return tuple(known) or columns.score or ("score_a", "score_b")


def _models(columns: Columns, named: Sequence[np.ndarray], shown: str) -> tuple[str, ...]:
    """The models of the column that names them, or those of them that --score names; without one, the only model."""
    if not named:
        if len(columns.score) > 1:
            raise DecalError(
                f"{shown}: no column {quote(MODEL)}, and {Hint('score')} names {len(columns.score)} models",
                "aggregate them with that column, or name one",
            )
        return columns.score or ("score",)
    known = tuple(map(str, np.unique(named[0])))
    for name in columns.score:
        nearest_of(name, known, f"{shown}, column {quote(MODEL)}", "value")
    return columns.score or known


def _notes(source: Source, columns: Columns, used: Sequence[str], pairs: bool) -> Iterator[str]:
    known = {"clusters": columns.cluster, "pairs of scores": pairs}
    unknown = ", ".join(["features", *(what for what, is_known in known.items() if not is_known)])
    # An engine has the rows: what is asked for is known.
    if note := getattr(source, "note", "rows were counted before"):
        yield f"{note}: nothing that needs a single row is known ({unknown})"
    others = [name for name in source.names if name not in (*used, *ENDS)]
    if others:
        ways = f"{Hint('group').words} reports every value by itself"
        if not columns.cluster:
            ways += f", and {Hint('cluster').words} counts it as one cluster"
        yield f"counts are added up over {listed(others)}; {ways}"


def sound(table: Any, shown: str, drop: bool, names: Mapping[str, str] | None = None) -> tuple[Any, Dropped]:
    """The rows of an aggregate that count scores, without `bad` and `value`; and what was dropped.

    table: a pyarrow Table as `statement` describes it; `bad` and `value` may be absent. shown: what it is called. drop:
    whether rows with missing values may be dropped. names: the user's columns by role, as far as they are known.
    Errors: DecalError, with the worst problem and how many rows have it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if BAD not in table.column_names:
        return table, {}
    is_bad = pc.invert(pc.is_in(table[BAD].cast(pa.string()).fill_null(""), pa.array(_NULLS)))
    wrong = table.filter(is_bad).to_pylist()
    kept = table.filter(pc.invert(is_bad)).drop_columns([name for name in (BAD, VALUE) if name in table.column_names])
    rows = "rows" if "rows" in table.column_names else "n"
    unknown = sorted({str(each[BAD]) for each in wrong} - PROBLEMS.keys())
    if unknown:
        raise DecalError(f"{shown}, column 'bad': {quote(unknown[0])} is not known", "export what decal sql asks for")
    dropped: Dropped = {}
    for name, problem in PROBLEMS.items():
        bad_rows = [each for each in wrong if each[BAD] == name]
        if bad_rows and (problem.text or not drop):
            # The first model that has it: all have the same labels and weights.
            bad_rows = [each for each in bad_rows if each.get(MODEL) == bad_rows[0].get(MODEL)]
            raise _error(problem, bad_rows, sum(int(each[rows]) for each in bad_rows), shown, names or {})
        for each in bad_rows:
            dropped.setdefault(each.get(MODEL), DroppedRows()).add(each, rows)
    if dropped and not kept.num_rows:
        raise DecalError(
            f"{shown}: no row is left ({why_dropped(next(iter(dropped.values())).why)})", "name other columns"
        )
    return kept, dropped


def _dropped_of(dropped: Dropped, model: str) -> DroppedRows:
    """What was dropped of a model, which has no name where it is the only one."""
    return dropped.get(model) or dropped.get(None) or DroppedRows()


def _error(
    problem: Problem, bad_rows: list[dict[str, Any]], count: int, shown: str, names: Mapping[str, str]
) -> DecalError:
    model = bad_rows[0].get(MODEL) if problem.role == "score" else None
    column = model or names.get(problem.role)
    place = f"{shown}, column {quote(column)}" if column else shown
    if not problem.text:
        return DecalError(f"{place}: {problem.role} missing in {many(count, 'row')}", missing_fix(problem.role))
    values = [str(each[VALUE]) for each in bad_rows if each.get(VALUE) is not None]
    value = "missing" if not values else quote(min(values)) if problem.role == "label" else _number(values[0])
    times = f" ({count:,} such rows)" if count > 1 else ""
    if values and problem.role != "label" and _number(values[0]) == quote(values[0]):
        # An engine whose columns have no types holds texts above all numbers.
        return DecalError(
            f"{place}: {value} is not a number{times}", f"give numbers, or make them so in {Hint('query')}"
        )
    return DecalError(f"{place}: {problem.text.format(value=value, times=times)}", problem.fix)


def _number(text: str) -> str:
    """A number as it is shown; a column of some engines may hold a text all the same."""
    try:
        return number(float(text))
    except ValueError:
        return quote(text)


def memory() -> int:
    """Bytes that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def can_hold(rows: float, columns: int) -> bool:
    """Whether so many rows, with so many columns beside the label, take no more than rows of files may."""
    return rows * (HELD_BYTES_OF_ROW + _BYTES_OF_COLUMN * (columns - 1)) <= min(MAX_IN_MEMORY_BYTES, memory() // 16)


def repeated(source: Source, wanted: Wanted, numbered: bool = True) -> Repeated:
    """A source whose lines count rows, as these. Errors: DecalError, where they do not, or are too many to hold."""
    table = source.load({**wanted, COUNT: "numbers"})
    times = floats([Part(source, table, 0)], COUNT)
    wrong = ~((times >= 1) & (times == np.floor(times)) & (times <= MAX_COUNTED_ROWS))
    if wrong.any():
        row = int(wrong.argmax())
        raise DecalError(
            f"{source.shown}, column {quote(COUNT)}, row {row + 1}: {number(times[row])} is not a number of rows",
            "correct the counts",
        )
    if not can_hold(float(times.sum()), len(wanted)):
        raise too_many(source.shown, int(times.sum()), len(wanted))
    return Repeated(source, table.drop_columns([COUNT]), times.astype(np.int64), numbered)


class TooManyRows(DecalError):
    """Rows that no memory holds, where more is asked of them than cells of the score tell."""


def too_many(shown: str, rows: int, columns: int) -> TooManyRows:
    """The error for so many rows, with so many columns."""
    return TooManyRows(
        f"{shown}: {rows:,} rows with {columns} columns are more than is held in memory",
        "ask for fewer columns, or give a sample of the rows",
    )


def dataset_of_counted(sources: Sequence[Repeated], chosen: Chosen, notes: Sequence[str]) -> Dataset:
    """The data set of rows that were counted by all columns that are asked for. Errors: DecalError."""
    data = dataset(sources, chosen)
    return replace(data.changed(lambda rows: replace(rows, counted=True)), notes=(*notes, *data.notes))
