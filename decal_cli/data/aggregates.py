"""Aggregates -> Dataset: files of counts, made by a GROUP BY where the rows are, and added up here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from decal_cli.data.check import Origin, floats, loaded_parts
from decal_cli.data.columns import nearest_of
from decal_cli.data.counts import Cells, Counts, Levels
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions
from decal_cli.data.engines.checks import BAD, VALUE, dropped_of, sound_parts, with_dropped
from decal_cli.data.labels import group
from decal_cli.data.sources import Source
from decal_cli.data.words import listed, quote
from decal_cli.errors import DecalError
from decal_cli.roles import ROW_UTILITIES, Columns

MODEL = "model"
OF_CELLS = "scores are known by cells, with the sums of their rows: the page says which numbers are exact"
OF_ROWS = (
    *("cluster", "features", "proba", "log", "positive", "logit", "margin", *ROW_UTILITIES),
    *("prevalence", "sampled_negatives", "per", "capacity"),
)
"""What can be said of rows, and not of their counts."""


def aggregates(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Check and add up files of counts. Errors: DecalError, one line, for anything that they cannot be."""
    _refuse_of_rows(columns)
    kind, numbers = _columns(sources, columns)
    texts = (*((MODEL,) if MODEL in sources[0].names else ()), *columns.group)
    digests = Digests(sources)
    wrong = tuple(name for name in (BAD, VALUE) if all(name in source.names for source in sources))
    parts, dropped = sound_parts(loaded_parts(sources, numbers, (*texts, *wrong)), columns.missing == "drop")
    origin = Origin(parts)
    counts = kind({name: floats(parts, name) + 0.0 for name in numbers})
    counts.check(origin)
    named = group(parts, MODEL) if MODEL in texts else None
    models = _models(columns, named, origin.shown)
    groups = {name: group(parts, name) for name in columns.group}
    of_models = [np.ones(origin.count, dtype=bool) if named is None else named == name for name in models]
    predictions = []
    for name, mine in zip(models, of_models, strict=True):
        of_model = counts.take(mine)
        counted = of_model.counted(of_model.scale, {column: values[mine] for column, values in groups.items()}, origin)
        predictions.append(Predictions(name, (name,), counted))
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
    notes = (*_notes(sources[0], (*texts, *numbers, *wrong)), *((OF_CELLS,) if kind is Cells else ()))
    return with_dropped(Dataset(tuple(inputs), roles, (), tuple(predictions), notes), dropped)


def _refuse_of_rows(columns: Columns) -> None:
    """Raise a DecalError where more is said of the columns than counts can have."""
    for name in OF_ROWS:
        if getattr(columns, name):
            option = "--from" if name == "log" else f"--{name.replace('_', '-')}"
            raise DecalError(
                f"{option} speaks of rows, and with --aggregated the files hold their counts",
                "drop it, or give the file of rows without --aggregated",
            )


def _columns(sources: Sequence[Source], columns: Columns) -> tuple[type[Counts], tuple[str, ...]]:
    """What the files hold, and the columns of numbers that each of them has."""
    first = sources[0]
    kind: type[Counts] = Cells if "cell" in first.names else Levels
    weighted = any(name in first.names for name in kind.of_weights)
    numbers = (*kind.needed, *(kind.of_weights if weighted else ()))
    what = f"{kind.what} of weighted rows" if weighted else kind.what
    for source in sources:
        if kind is Levels and "cell" in source.names:
            raise DecalError(f"{source.shown}: holds cells, and {first.shown} levels", "aggregate both in one way")
        for name in numbers:
            if name not in source.names:
                raise DecalError(
                    f"{source.shown}: no column {quote(name)}, and {what} have {', '.join(numbers)}",
                    f"aggregate it so; its columns: {listed(source.names)}",
                )
        if not weighted and any(name in source.names for name in kind.of_weights):
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
    return kind, numbers


def _models(columns: Columns, named: np.ndarray | None, shown: str) -> tuple[str, ...]:
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


def _notes(source: Source, used: Sequence[str]) -> Iterator[str]:
    yield "rows were counted before: nothing that needs a single row is known (features, clusters, pairs of scores)"
    others = [name for name in source.names if name not in used]
    if others:
        yield f"counts are added up over {listed(others)}; --group reports every value by itself"
