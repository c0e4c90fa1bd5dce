"""Two models on the same rows: two score columns of one data set, or two files joined on a column of row ids."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from decal_cli.data.check import NO_GROUP
from decal_cli.data.dataset import Dataset, Predictions, as_used
from decal_cli.data.reading import read
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.numbers import many
from decal_cli.roles import DEFAULTS, ROLES, Columns
from decal_cli.tables.aggregated import APART, needs_rows
from decal_cli.tables.table import Ints


@dataclass(frozen=True, eq=False)
class Paired:
    """A data set of two models on the same rows, and the ids of these rows.

    ids: (T,) text, or int64 row numbers from 1 where no id column was named; none where rows were counted. id_name: the
    column's name, or 'row'.
    """

    dataset: Dataset
    ids: np.ndarray
    id_name: str

    @property
    def counted(self) -> bool:
        """Whether rows were counted, so that no single row and no id is known."""
        return self.dataset.models[0].rows.counted


def pair_up(whole: Dataset, columns: Columns, id_column: str | None = None) -> Paired:
    """The two models of a data set, whose ids were read as a group. Errors: DecalError, where there are not two."""
    rows, count = whole.models[0].rows, len(whole.models)
    if rows.counted and id_column is not None:
        raise needs_rows(f"decal compare {Hint('id').words}")
    if rows.counted and count == 1 and not rows.classes:
        raise APART
    if count != 2:
        names = ", ".join(quote(model.name) for model in whole.models)
        fix = f"name two score columns: {Hint('score', ('p_a', 'p_b')).words}"
        if len(whole.inputs) == 2 and count == 1:
            fix = f"to join two files of one score each, name their column of row ids with {Hint('id').words}"
        raise DecalError(
            f"a comparison needs two models, and there {'is' if count == 1 else 'are'} {count}: {names}", fix
        )
    together = on_same_rows(whole)
    first = together.models[0]
    if rows.counted:
        return Paired(together, np.empty(0, dtype=np.int64), "row")
    if id_column is None:
        return Paired(together, _row_numbers(first) + 1, "row")
    return Paired(_without_ids(together, columns, id_column), first.rows.groups[id_column], id_column)


def on_same_rows(dataset: Dataset) -> Dataset:
    """The two models of a data set on the rows that both have; a note reports how many rows that drops.

    Errors: DecalError, where nothing tells which rows these are.
    """
    if dataset.apart:
        raise APART
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
    taken = (model.rows.take(np.searchsorted(_row_numbers(model), shared)) for model in dataset.models)
    models = tuple(
        replace(model, rows=rows, dropped=dropped, row_numbers=shared)
        for model, rows in zip(dataset.models, taken, strict=True)
    )
    note = f"compared on the {many(len(shared), 'row')} of {count:,} that both models have"
    notes = dataset.notes if first.dropped == second.dropped == dropped else (*dataset.notes, note)
    return replace(dataset, models=models, notes=notes)


def _row_numbers(model: Predictions) -> Ints:
    """Which rows of the data set the model's are, from 0."""
    return np.arange(len(model.rows)) if model.row_numbers is None else model.row_numbers


def join_files(paths: Sequence[str], columns: Columns, id_column: str, stdin: BinaryIO | None = None) -> Paired:
    """One score of each of two files, joined on a column of row ids.

    Rows that a score is missing for, and ids that have no counterpart, are named twice or disagree on the label, are
    an error, or with columns.missing 'drop' dropped and reported. Errors: DecalError, one line.
    """
    role = "proba" if columns.proba else "score"
    wanted = _wanted(paths, columns, role, id_column)
    sides = [read([path], asked, stdin) for path, asked in zip(paths, wanted, strict=True)]
    for path, side in zip(paths, sides, strict=True):
        if len(side.models) != 1:
            raise DecalError(f"{path}: {len(side.models)} scores match", "name one score column for each file")
    first, second = (side.models[0] for side in sides)
    second = second.with_classes(first.rows.classes)
    ids = [model.rows.groups[id_column] for model in (first, second)]
    notes = [note for side in sides for note in side.notes]
    say = partial(_say, notes, id_column, columns.missing == "drop")
    at_a, at_b = _places(paths, ids, say)
    both = f"{paths[0]} and {paths[1]}"
    agree = first.rows.label[at_a] == second.rows.label[at_b]
    say(both, ids[0][at_a[~agree]], "has another label in each file")
    # In the order of the first file.
    order = np.flatnonzero(agree)[np.argsort(at_a[agree], kind="stable")]
    at_a, at_b = at_a[order], at_b[order]
    if not len(at_a):
        raise DecalError(f"{both} share no id in column {quote(id_column)}", "name files of the same rows")
    dropped = max(len(of) + model.dropped for of, model in zip(ids, (first, second), strict=True)) - len(at_a)
    rows = first.rows.take(at_a)
    names = _names(paths, first.name, second.name)
    a = replace(first, name=names[0], rows=rows, dropped=dropped, row_numbers=None)
    b = replace(a, name=names[1], columns=second.columns, rows=replace(rows, score=second.rows.score[at_b]))
    roles = {**sides[0].columns, role: tuple(dict.fromkeys((*first.columns, *second.columns))), "id": id_column}
    inputs = sides[0].inputs + sides[1].inputs
    whole = replace(sides[0], inputs=inputs, columns=roles, models=(a, b), notes=tuple(notes))
    return Paired(_without_ids(as_used(whole, columns), columns, id_column), ids[0][at_a], id_column)


def _wanted(paths: Sequence[str], columns: Columns, role: str, id_column: str) -> tuple[Columns, Columns]:
    """What to read of each of the two files. Errors: DecalError, where more is named than two files have."""
    if len(paths) > 2:
        raise DecalError(
            f"{Hint('id')} joins two files, and {len(paths)} are named",
            f"name two files, or leave {Hint('id')} out",
        )
    named = columns.names(role)
    if len(named) > 2:
        raise DecalError(f"{len(named)} scores are named for two files", "name one for both files, or one for each")
    # Population and capacity apply later, once it is known which rows both files have.
    own = columns.updated({"prevalence": "", "sampled_negatives": "", "keep_scores": False, "capacity": ""})
    # What is said of a row is read from the first file; the second gives a score, and a label to agree with.
    elsewhere: dict[str, Any] = {role: DEFAULTS[role] for role in ROLES if role != "label"}
    return (
        own.updated({role: named[:1], "group": (*columns.group, id_column)}),
        own.updated(elsewhere | {role: named[-1:], "group": (id_column,)}),
    )


def _say(notes: list[str], id_column: str, drop: bool, where: str, ids: np.ndarray, what: str) -> None:
    """Raise a DecalError on these ids, if there are any, or add a note where they may be dropped."""
    count = len(ids)
    if not count:
        return
    example = "" if ids[0] == NO_GROUP else f" {quote(str(ids[0]))}"
    rows = f" ({many(count, 'such row')}{', dropped' if drop else ''})"
    problem = f"{where}, column {quote(id_column)}: id{example} {what}{rows if count > 1 or drop else ''}"
    if not drop:
        raise DecalError(problem, f"correct the files, or drop such rows with {Hint('missing', 'drop')}")
    notes.append(problem)


def _places(
    paths: Sequence[str], ids: Sequence[np.ndarray], say: Callable[[str, np.ndarray, str], None]
) -> tuple[Ints, Ints]:
    """The rows of each file, int64, whose ids both files name once, in one order; `say` reports all other ids."""
    single = []
    for path, its_ids in zip(paths, ids, strict=True):
        missing = its_ids == NO_GROUP
        say(path, its_ids[missing], "is missing")
        _, place, times = np.unique(its_ids, return_inverse=True, return_counts=True)
        twice = (times[place] > 1) & ~missing
        say(path, its_ids[twice], "is named more than once")
        single.append(np.flatnonzero(~twice & ~missing))
    once = [its_ids[which] for its_ids, which in zip(ids, single, strict=True)]
    shared, *at = np.intersect1d(once[0], once[1], assume_unique=True, return_indices=True)
    for path, other, its_ids in zip(paths, reversed(paths), once, strict=True):
        lonely = its_ids[~np.isin(its_ids, shared, assume_unique=True)]
        say(path, lonely, f"has no row to join in {other}")
    at_a, at_b = (which[places] for which, places in zip(single, at, strict=True))
    return at_a, at_b


def _names(paths: Sequence[str], first: str, second: str) -> tuple[str, str]:
    """The names of the two models: their score columns, or the files where both columns have one name."""
    if first != second:
        return first, second
    stems = [os.path.basename(path).split(".")[0] for path in paths]
    if stems[0] != stems[1]:
        return stems[0], stems[1]
    return (paths[0], paths[1]) if paths[0] != paths[1] else (f"{first} (1)", f"{second} (2)")


def _without_ids(dataset: Dataset, columns: Columns, id_column: str) -> Dataset:
    """The data set without the ids among its groups, unless the user groups by them."""
    if id_column in columns.group:
        return dataset
    without = dataset.changed(
        lambda rows: replace(rows, groups={name: each for name, each in rows.groups.items() if name != id_column})
    )
    roles = {role: names for role, names in dataset.columns.items() if role != "group"}
    roles |= {"group": columns.group} if columns.group else {}
    return replace(without, columns={**roles, "id": id_column})
