"""Aggregates -> Dataset: files of counts, made by a GROUP BY where the rows are, and added up here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from decal_cli.data.check import Origin, floats, loaded_parts
from decal_cli.data.columns import nearest_of
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions
from decal_cli.data.formats.sources import Source
from decal_cli.data.labels import clusters, group
from decal_cli.data.large.counts import CLUSTER, OF_COARSE_CLUSTERS, CellCounts, Counts, DistinctScores
from decal_cli.data.large.engines.aggregate import BY_CLUSTER, ENDS, SIDES, has_cells, has_pairs
from decal_cli.data.large.engines.checks import BAD, VALUE, dropped_of, sound_parts, with_dropped
from decal_cli.data.large.pair_counts import PairCounts, pair_columns
from decal_cli.data.words import listed, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import ROW_UTILITIES, Columns

MODEL = "model"
OF_CELLS = "scores are known by cells, with the sums of their rows: the page says which numbers are exact"
OF_PAIRS = (
    "scores are known by cells of both models: comparing them shows the Brier score, log loss and decisions at edges, "
    "which are exact, and nothing else"
)
COUNTED_BEFORE = "rows were counted before"
OF_ROWS = (
    *("features", "proba", "log", "positive", "logit", "margin", *ROW_UTILITIES),
    "per",
)
"""What can be said of rows, and not of their counts."""


def aggregates(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Check and add up files of counts. Errors: DecalError, one line, for anything that they cannot be."""
    _refuse_of_rows(columns)
    kind, numbers = _columns(sources, columns)
    paired = has_pairs(numbers)
    naming = [f"{MODEL}{side}" for side in SIDES] if paired else [MODEL]
    of_cluster = () if columns.cluster is None or columns.cluster in columns.group else (columns.cluster,)
    texts = (*(name for name in naming if name in sources[0].names), *columns.group, *of_cluster)
    digests = Digests(sources)
    wrong = tuple(name for name in (BAD, VALUE) if all(name in source.names for source in sources))
    parts, dropped = sound_parts(loaded_parts(sources, numbers, (*texts, *wrong)), columns.missing == "drop")
    origin = Origin(parts)
    values = {name: floats(parts, name) + 0.0 for name in numbers}
    names = None
    if columns.cluster is not None:
        # Where clusters are counted apart, the cells of all rows have none.
        names, number, _ = clusters(parts, columns.cluster, origin, drop=BY_CLUSTER in values)
        values[CLUSTER] = number.astype(np.float64)
    counts = PairCounts(kind, values) if paired else kind(values)
    counts.check(origin)
    called = getattr(sources[0], "called", {})
    groups = {called.get(name, name): group(parts, name) for name in columns.group}
    everything = np.ones(origin.count, dtype=bool)
    if isinstance(counts, PairCounts):
        models = _both_models(columns, [group(parts, name) for name in naming if name in texts], origin.shown)
        of_models = [everything] * len(models)
        scale = counts.scale
        both = counts.counted(scale, {name: counts.by_value(scale, of, origin) for name, of in groups.items()}, origin)
        predictions = [Predictions(name, (name,), rows) for name, rows in zip(models, both, strict=True)]
    else:
        named = group(parts, MODEL) if MODEL in texts else None
        models = _models(columns, named, origin.shown)
        of_models = [everything if named is None else named == name for name in models]
        predictions = []
        for name, mine in zip(models, of_models, strict=True):
            of_model = counts.take(mine)
            of_groups = {column: values[mine] for column, values in groups.items()}
            predictions.append(Predictions(name, (name,), of_model.counted(of_model.scale, of_groups, origin)))
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
        *_notes(sources[0], columns, (*texts, *numbers, *wrong)),
        *(((OF_PAIRS if paired else OF_CELLS),) if kind is CellCounts else ()),
        *((OF_COARSE_CLUSTERS,) if isinstance(counts, CellCounts) and counts.coarse else ()),
    )
    return with_dropped(Dataset(tuple(inputs), roles, (), tuple(predictions), tuple(notes), clusters=names), dropped)


def _refuse_of_rows(columns: Columns) -> None:
    """Raise a DecalError where more is said of the columns than counts can have."""
    for name in OF_ROWS:
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

    def numbers_of(weighted: bool) -> tuple[str, ...]:
        return pair_columns(kind, weighted) if paired else (*kind.needed, *(kind.of_weights if weighted else ()))

    of_weights = [name for name in numbers_of(True) if name not in numbers_of(False)]
    weighted = any(name in first.names for name in of_weights)
    numbers = numbers_of(weighted)
    what = f"{kind.what}{' of pairs' if paired else ''}{' of weighted rows' if weighted else ''}"
    if kind is CellCounts and paired and columns.cluster is not None:
        raise DecalError(
            f"{first.shown}: cells of two scores do not hold clusters",
            f"drop {Hint('cluster')}, or aggregate levels by cluster",
        )
    by_cluster = kind is CellCounts and not paired and BY_CLUSTER in first.names
    for source in sources:
        if kind is DistinctScores and has_cells(source.names):
            raise DecalError(f"{source.shown}: holds cells, and {first.shown} levels", "aggregate both in one way")
        if has_pairs(source.names) != paired:
            raise DecalError(
                f"{source.shown} and {first.shown}: one counts rows by two scores at once, and the other does not",
                "aggregate both in one way",
            )
        for name in numbers:
            if name not in source.names:
                raise DecalError(
                    f"{source.shown}: no column {quote(name)}, and {what} have {', '.join(numbers)}",
                    f"aggregate it so; its columns: {listed(source.names)}",
                )
        if not weighted and any(name in source.names for name in of_weights):
            raise DecalError(
                f"{source.shown}: counts weighted rows, and {first.shown} rows without weights",
                "aggregate both in one way",
            )
        for name in (*columns.group, *columns.names("cluster")):
            nearest_of(name, source.names, source.shown)
        if (MODEL in source.names) != (MODEL in first.names):
            raise DecalError(
                f"{source.shown} and {first.shown}: one has a column {quote(MODEL)}, and the other has none",
                "aggregate both in one way",
            )
        if by_cluster != (BY_CLUSTER in source.names):
            raise DecalError(
                f"{source.shown} and {first.shown}: one counts clusters, and the other does not",
                "aggregate both in one way",
            )
    if not paired and all(name in source.names for source in sources for name in kind.optional):
        numbers += kind.optional
    if by_cluster:
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


def _notes(source: Source, columns: Columns, used: Sequence[str]) -> Iterator[str]:
    known = {"clusters": columns.cluster is not None, "pairs of scores": has_pairs(source.names)}
    unknown = ", ".join(["features", *(what for what, is_known in known.items() if not is_known)])
    yield f"{getattr(source, 'note', COUNTED_BEFORE)}: nothing that needs a single row is known ({unknown})"
    others = [name for name in source.names if name not in (*used, *ENDS)]
    if others:
        yield f"counts are added up over {listed(others)}; {Hint('group').words} reports every value by itself"
