"""Two models on the same rows: two score columns of one data set, or two files joined on a column of row ids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from decal_cli.data.dataset import Dataset, Predictions
from decal_cli.data.labels import NO_GROUP
from decal_cli.data.population import as_used
from decal_cli.data.reading import Counting, read
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import DEFAULTS, ROLES, Columns
from decal_cli.tables.aggregated import NEEDS_ROWS
from decal_cli.tables.table import Ints

_APART = DecalError(
    "rows were counted by one score at a time, and a comparison needs both scores of a row at once",
    "count them by both (`decal sql` has the option pairs), or give a file of rows",
)


@dataclass(frozen=True, eq=False)
class Paired:
    """A data set of two models on the same rows, and what names these rows.

    ids: (T,) text, or int64 row numbers from 1 where no id column was named; none where rows were counted. id_name: the
    column's name, or 'row'.
    """

    dataset: Dataset
    ids: np.ndarray
    id_name: str

    @property
    def counted(self) -> bool:
        """Whether no single row is known, and so no id."""
        return self.dataset.models[0].rows.counted


def read_pair(
    paths: Sequence[str],
    columns: Columns,
    id_column: str | None = None,
    stdin: BinaryIO | None = None,
    counting: Counting | None = None,
) -> Paired:
    """Read two models: two score columns of one data set, or with an id column one score of each of two files.

    counting: where counts of pairs of scores will do, and no id is named.

    Rows that a score is missing for, and ids that have no counterpart, are named twice or disagree on the label, are
    an error, or with columns.missing 'drop' dropped and reported. Errors: DecalError, one line.
    """
    if columns.aggregated:
        return pair_up(read(paths, columns, stdin), columns, id_column)
    if id_column is not None and len(paths) == 2:
        return _joined(paths, columns, id_column, stdin)
    if id_column is not None and len(paths) > 2:
        raise DecalError(
            f"{Hint('id')} joins two files, and {len(paths)} are named", f"name two files, or leave {Hint('id')} out"
        )
    if id_column is not None:
        counting = None
    return pair_up(read(paths, with_ids(columns, id_column), stdin, counting), columns, id_column)


def with_ids(columns: Columns, id_column: str | None) -> Columns:
    """The columns, and the row ids read as groups are."""
    return columns if id_column is None else replace(columns, group=(*columns.group, id_column))


def pair_up(whole: Dataset, columns: Columns, id_column: str | None = None) -> Paired:
    """The two models of a data set that was read `with_ids`. Errors: DecalError, where there are more or fewer."""
    rows = whole.models[0].rows
    if rows.counted:
        if id_column is not None:
            raise DecalError(
                f"decal compare {Hint('id').words} {NEEDS_ROWS}",
                f"give a file of rows, without {Hint('aggregated')} or {Hint('engine')}",
            )
        if len(whole.models) == 1 and not rows.classes:
            raise _APART
    if len(whole.models) != 2:
        raise _not_two(whole)
    if rows.counted:
        return Paired(on_same_rows(whole), np.empty(0, dtype=np.int64), "row")
    together = on_same_rows(whole)
    first = together.models[0]
    if id_column is None:
        return Paired(together, _row_numbers(first) + 1, "row")
    ids = first.rows.groups[id_column]
    return Paired(_without_ids(together, columns, id_column), ids, id_column)


def on_same_rows(dataset: Dataset) -> Dataset:
    """The two models of a data set on the rows that both have; a note reports how many rows that drops.

    Errors: DecalError, where nothing tells which rows these are.
    """
    if dataset.apart:
        raise _APART
    first, second = dataset.models
    if first.row_numbers is None and second.row_numbers is None:
        return dataset
    count = sum(item.rows for item in dataset.inputs)
    shared = np.intersect1d(_row_numbers(first), _row_numbers(second), assume_unique=True)
    if not len(shared):
        raise DecalError(
            f"no row has both scores, {quote(first.name)} and {quote(second.name)}",
            "name two models of the same rows",
        )
    dropped = count - len(shared)
    models = tuple(
        replace(
            model,
            rows=model.rows.take(np.searchsorted(_row_numbers(model), shared)),
            dropped=dropped,
            row_numbers=shared,
        )
        for model in (first, second)
    )
    note = f"compared on the {len(shared):,} rows of {count:,} that both models have"
    notes = dataset.notes if first.dropped == second.dropped == dropped else (*dataset.notes, note)
    return replace(dataset, models=models, notes=notes)


def _row_numbers(model: Predictions) -> Ints:
    """Which rows of the data set the model's are, from 0."""
    return np.arange(len(model.rows)) if model.row_numbers is None else model.row_numbers


def _not_two(dataset: Dataset) -> Exception:
    names, count = ", ".join(quote(model.name) for model in dataset.models), len(dataset.models)
    fix = f"name two score columns: {Hint('score', ('p_a', 'p_b')).words}"
    if len(dataset.inputs) == 2 and len(dataset.models) == 1:
        fix = f"to join two files of one score each, name their column of row ids with {Hint('id').words}"
    are = f"is {count}" if count == 1 else f"are {count}"
    return DecalError(f"a comparison needs two models, and there {are}: {names}", fix)


def _joined(paths: Sequence[str], columns: Columns, id_column: str, stdin: BinaryIO | None) -> Paired:
    role = "proba" if columns.proba else "score"
    named = columns.names(role)
    scores = named if len(named) == 2 else named * 2
    if len(named) > 2:
        raise DecalError(f"{len(named)} scores are named for two files", "name one for both files, or one for each")
    # The rows are counted in another population when it is known which they are.
    own = columns.updated({"prevalence": None, "sampled_negatives": None, "keep_scores": False, "capacity": None})
    wanted_a = own.updated({role: scores[:1], "group": (*columns.group, id_column)})
    # What is said of a row is read from the first file; the second gives a score, and a label to agree with.
    elsewhere: dict[str, Any] = {role: DEFAULTS[role] for role in ROLES if role != "label"}
    wanted_b = own.updated(elsewhere | {role: scores[1:], "group": (id_column,)})
    sides = [read([path], wanted, stdin) for path, wanted in zip(paths, (wanted_a, wanted_b), strict=True)]
    for path, side in zip(paths, sides, strict=True):
        if len(side.models) != 1:
            raise DecalError(f"{path}: {len(side.models)} scores match", "name one score column for each file")
    first, second = (side.models[0] for side in sides)
    second = second.with_classes(first.rows.classes)
    ids_a, ids_b = first.rows.groups[id_column], second.rows.groups[id_column]
    drop = columns.missing == "drop"
    notes = [note for side in sides for note in side.notes]
    single_a = _single(paths[0], id_column, ids_a, notes, drop)
    single_b = _single(paths[1], id_column, ids_b, notes, drop)
    shared, at_a, at_b = np.intersect1d(ids_a[single_a], ids_b[single_b], assume_unique=True, return_indices=True)
    at_a, at_b = single_a[at_a], single_b[at_b]
    for path, other, ids, mine in ((paths[0], paths[1], ids_a, single_a), (paths[1], paths[0], ids_b, single_b)):
        lonely = ids[mine][~np.isin(ids[mine], shared, assume_unique=True)]
        _said(path, id_column, lonely, f"has no row to join in {other}", notes, drop)
    agree = first.rows.label[at_a] == second.rows.label[at_b]
    disagreeing = ids_a[at_a[~agree]]
    _said(f"{paths[0]} and {paths[1]}", id_column, disagreeing, "has another label in each file", notes, drop)
    # In the order of the first file.
    at_a, at_b = at_a[agree], at_b[agree]
    order = np.argsort(at_a, kind="stable")
    at_a, at_b = at_a[order], at_b[order]
    if not len(at_a):
        raise DecalError(
            f"{paths[0]} and {paths[1]} share no id in column {quote(id_column)}", "name files of the same rows"
        )
    dropped = max(len(ids_a) + first.dropped, len(ids_b) + second.dropped) - len(at_a)
    rows = first.rows.take(at_a)
    names = _names(paths, first.name, second.name)
    a = replace(first, name=names[0], rows=rows, dropped=dropped, row_numbers=None)
    b = replace(a, name=names[1], columns=second.columns, rows=replace(rows, score=second.rows.score[at_b]))
    roles = {**sides[0].columns, role: tuple(dict.fromkeys((*first.columns, *second.columns))), "id": id_column}
    inputs = sides[0].inputs + sides[1].inputs
    source = roles, sides[0].guessed, (a, b), tuple(notes), sides[0].features
    whole = Dataset(inputs, *source, clusters=sides[0].clusters)
    whole = as_used(whole, columns)
    return Paired(_without_ids(whole, columns, id_column), ids_a[at_a], id_column)


def _names(paths: Sequence[str], first: str, second: str) -> tuple[str, str]:
    """The score columns; where both are called alike, the files."""
    if first != second:
        return first, second
    stems = [os.path.basename(path).split(".")[0] for path in paths]
    if stems[0] != stems[1]:
        return stems[0], stems[1]
    return (paths[0], paths[1]) if paths[0] != paths[1] else (f"{first} (1)", f"{second} (2)")


def _without_ids(dataset: Dataset, columns: Columns, id_column: str) -> Dataset:
    """Without the ids among the groups, unless the user groups by them."""
    if id_column in columns.group:
        return dataset
    models = tuple(
        replace(model, rows=replace(model.rows, groups={k: v for k, v in model.rows.groups.items() if k != id_column}))
        for model in dataset.models
    )
    roles = {role: names for role, names in dataset.columns.items() if role != "group"}
    roles |= {"group": columns.group} if columns.group else {}
    return replace(dataset, models=models, columns={**roles, "id": id_column})


def _single(path: str, column: str, ids: np.ndarray, notes: list[str], drop: bool) -> np.ndarray:
    """Rows whose id is there and named once."""
    missing = ids == NO_GROUP
    _said(path, column, ids[missing], "is missing", notes, drop)
    _, place, times = np.unique(ids, return_inverse=True, return_counts=True)
    twice = (times[place] > 1) & ~missing
    _said(path, column, ids[twice], "is named more than once", notes, drop)
    return np.flatnonzero(~twice & ~missing)


def _said(where: str, column: str, ids: np.ndarray, what: str, notes: list[str], drop: bool) -> None:
    """An error on such ids, or a note where they may be dropped."""
    count = len(ids)
    if not count:
        return
    example = "" if ids[0] == NO_GROUP else f" {quote(str(ids[0]))}"
    rows = f" ({count:,} such row{'s' if count > 1 else ''}{', dropped' if drop else ''})" if count > 1 or drop else ""
    problem = f"{where}, column {quote(column)}: id{example} {what}{rows}"
    if not drop:
        raise DecalError(problem, f"correct the files, or drop such rows with {Hint('missing', 'drop')}")
    notes.append(problem)
