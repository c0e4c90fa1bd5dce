"""Aggregates -> Dataset: files of counts, made by a GROUP BY where the rows are, and added up here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from decal_cli.data.check import amounts_of
from decal_cli.data.columns import Chosen, check_utilities, has_usual, nearest_of
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions, chosen_columns
from decal_cli.data.formats.sources import Source
from decal_cli.data.labels import clusters, group
from decal_cli.data.large.counts import CLUSTER, OF_COARSE_CLUSTERS, CellCounts, Counts, DistinctScores
from decal_cli.data.large.engines.checks import BAD, VALUE, dropped_of, sound_parts, with_dropped
from decal_cli.data.large.engines.statement import BY_CLUSTER, ENDS, SIDES, has_cells, has_pairs
from decal_cli.data.large.repeated import COUNT, can_hold, dataset_of_counted, repeated, rows_of_levels, too_many
from decal_cli.data.parts import floats, loaded_parts
from decal_cli.data.words import listed, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.rows import Rows

MODEL = "model"
OF_CELLS = "scores are known by cells, with the sums of their rows: the page says which numbers are exact"
OF_PAIRS = (
    "scores are known by cells of both models: comparing them shows the Brier score, log loss and decisions at edges, "
    "which are exact, and nothing else"
)
COUNTED_BEFORE = "rows were counted before"
OF_ROWS = ("features", "log")
"""What can be said of rows, and not of their counts."""
OF_LINES = (*OF_ROWS, "proba", "positive", "logit", "margin", "per")
"""The same where the labels of a score are counted on one line."""


def aggregates(sources: Sequence[Source], columns: Columns, hold: bool = True) -> Dataset:
    """Check and add up files of counts. Errors: DecalError, one line, for anything that they cannot be.

    hold: whether the rows that they count may be held as such, where memory can.
    """
    if _counts_rows(sources[0].names, columns):
        return _of_rows(sources, columns)
    kind, numbers = _columns(sources, columns)
    stakes = tuple(name for role in ROW_UTILITIES for name in columns.names(role))
    check_utilities(columns.utility_columns, classes=2)
    _refuse(OF_LINES if kind is DistinctScores else (*OF_LINES, *ROW_UTILITIES), columns)
    paired = has_pairs(numbers)
    naming = [f"{MODEL}{side}" for side in SIDES] if paired else [MODEL]
    of_cluster = () if columns.cluster is None or columns.cluster in columns.group else (columns.cluster,)
    texts = (*(name for name in naming if name in sources[0].names), *columns.group, *of_cluster)
    digests = Digests(sources)
    wrong = tuple(name for name in (BAD, VALUE) if all(name in source.names for source in sources))
    loaded = loaded_parts(sources, tuple(dict.fromkeys((*numbers, *stakes))), (*texts, *wrong))
    parts, dropped = sound_parts(loaded, columns.missing == "drop")
    origin = parts
    values = {name: floats(parts, name) + 0.0 for name in numbers}
    names = None
    if columns.cluster is not None:
        # Where clusters are counted apart, the cells of all rows have none.
        of_some = replace(columns, missing="drop" if BY_CLUSTER in values else "error")
        names, number, _ = clusters(parts, columns.cluster, of_some)
        values[CLUSTER] = number.astype(np.float64)
    counts = kind(values)
    counts.check(origin)
    called = getattr(sources[0], "called", {})
    groups = {called.get(name, name): group(parts, name) for name in columns.group}
    everything = np.ones(origin.n_rows, dtype=bool)
    if paired:
        models = _both_models(columns, [group(parts, name) for name in naming if name in texts], origin.shown)
        of_models = [everything] * len(models)
    else:
        named = group(parts, MODEL) if MODEL in texts else None
        models = _models(columns, named, origin.shown)
        of_models = [everything if named is None else named == name for name in models]
    amounts, _ = amounts_of(parts, Chosen(**vars(columns)), replace(columns, missing="error"))
    total, width = int(counts.rows[0].sum()), len(numbers) + len(groups) + len(stakes)
    held = hold and kind is DistinctScores and can_hold(total, width)
    if stakes and not held:
        raise too_many(origin.shown, total, width)
    rows_of: list[Rows] = []
    apart = [(counts.take(mine), mine) for mine in (of_models[:1] if paired else of_models)]
    if held:
        scores = tuple(f"score{side}" for side in SIDES) if paired else ("score",)
        for of_model, mine in apart:
            beside = [{name: each[mine] for name, each in of.items()} for of in (groups, amounts)]
            cluster = of_model.columns[CLUSTER].astype(np.int64) if CLUSTER in values else None
            rows_of += rows_of_levels(of_model.columns, scores, of_model.scale, beside[0], cluster, beside[1])
            if not paired:
                # They need no sort: they come counted.
                vars(rows_of[-1])["table"] = of_model.table(of_model.scale, origin)
    else:
        for of_model, mine in apart:
            of_groups = {name: of[mine] for name, of in groups.items()}
            rows_of += of_model.counted(of_model.scale, of_groups, origin)
    predictions = [Predictions(name, (name,), rows) for name, rows in zip(models, rows_of, strict=True)]
    inputs = []
    for part, of_part, digest in zip(parts, dropped, digests.wait(), strict=True):
        inside = slice(part.start, part.start + part.table.num_rows)
        rows, ones = (values[inside] for values in counts.rows)
        most = max(
            (int(rows[mine[inside]].sum()) + sum(dropped_of(of_part, name).values()), int(ones[mine[inside]].sum()))
            for name, mine in zip(models, of_models, strict=True)
        )
        inputs.append(Input(part.source.raw.path, *most, digest))
    roles: dict[str, str | tuple[str, ...]] = {"score": models, **({"group": columns.group} if columns.group else {})}
    roles |= {} if columns.cluster is None else {"cluster": columns.cluster}
    notes = (
        *_notes(sources[0], columns, (*texts, *numbers, *stakes, *wrong), paired),
        *(((OF_PAIRS if paired else OF_CELLS),) if kind is CellCounts else ()),
        *((OF_COARSE_CLUSTERS,) if isinstance(counts, CellCounts) and counts.coarse else ()),
    )
    roles |= {role: getattr(columns, role) for role in ROW_UTILITIES if columns.names(role)}
    one_by_one = len(models) > 1 and not paired
    data = Dataset(tuple(inputs), roles, (), tuple(predictions), tuple(notes), clusters=names, apart=one_by_one)
    return with_dropped(data, dropped)


def _counts_rows(names: Sequence[str], columns: Columns) -> bool:
    """Whether lines hold rows as they are, with their label, and how many there are of each."""
    if COUNT not in names or "pos" in names or has_cells(names) or has_pairs(names):
        return False
    return columns.label in names if columns.label is not None else has_usual("label", names)


def _of_rows(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Lines that hold rows, and how many there are of each."""
    _refuse(OF_ROWS, columns)
    for source in sources:
        nearest_of(COUNT, source.names, source.shown)
    chosen = chosen_columns(sources, columns)
    used = tuple(dict.fromkeys((*chosen.numbers, *chosen.texts)))
    rows = [repeated(source, used, chosen.numbers) for source in sources]
    notes = tuple(_notes(sources[0], columns, (*used, COUNT), pairs=True))
    return dataset_of_counted(rows, columns, notes)


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
    """What the files hold, and the columns of numbers that each of them has."""
    first = sources[0]
    kind: type[Counts] = CellCounts if has_cells(first.names) else DistinctScores
    paired = has_pairs(first.names)
    of_weights = [name for name in kind.names(True, paired) if name not in kind.names(False, paired)]
    weighted = any(name in first.names for name in of_weights)
    numbers = kind.names(weighted, paired)
    what = f"{kind.what}{' of pairs' if paired else ''}{' of weighted rows' if weighted else ''}"
    if kind is CellCounts and paired and columns.cluster is not None:
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
        stakes = (name for role in ROW_UTILITIES for name in columns.names(role))
        for name in (*columns.group, *columns.names("cluster"), *stakes):
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
            f"{shown}: counts rows by the scores {listed(known)}, and {Hint('score')} names {listed(columns.score)}",
            f"drop {Hint('score')}",
        )
    if len(columns.score) not in (0, 2):
        raise DecalError(f"{shown}: counts rows by two scores, and {Hint('score')} names 1", "name two, or none")
    return tuple(known) or columns.score or ("score_a", "score_b")


def _models(columns: Columns, named: np.ndarray | None, shown: str) -> tuple[str, ...]:
    """The models of the column that names them, or those of them that --score names; without one, the only model."""
    if named is None:
        if len(columns.score) > 1:
            raise DecalError(
                f"{shown}: no column {quote(MODEL)}, and {Hint('score')} names {len(columns.score)} models",
                "aggregate them with that column, or name one",
            )
        return columns.score or ("score",)
    known = tuple(map(str, np.unique(named)))
    for name in columns.score:
        nearest_of(name, known, f"{shown}, column {quote(MODEL)}", "value")
    return columns.score or known


def _notes(source: Source, columns: Columns, used: Sequence[str], pairs: bool) -> Iterator[str]:
    known = {"clusters": columns.cluster is not None, "pairs of scores": pairs}
    unknown = ", ".join(["features", *(what for what, is_known in known.items() if not is_known)])
    yield f"{getattr(source, 'note', COUNTED_BEFORE)}: nothing that needs a single row is known ({unknown})"
    others = [name for name in source.names if name not in (*used, *ENDS)]
    if others:
        yield f"counts are added up over {listed(others)}; {Hint('group').words} reports every value by itself"
