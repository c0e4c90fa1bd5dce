"""Inputs -> Dataset: the models' scores and labels, checked once, and the features when someone asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decal_cli.data.check import Part, Rows, checked_scores, checked_weights, floats, missing_values
from decal_cli.data.columns import Chosen, choose, same_columns
from decal_cli.data.csvfile import no_rows
from decal_cli.data.features import Features
from decal_cli.data.labels import MISSING_LABEL, Labels, group
from decal_cli.data.roles import Columns
from decal_cli.data.sources import Source
from decal_cli.data.words import quote
from decal_cli.errors import DecalError


@dataclass(frozen=True)
class Input:
    """One input, for provenance. path: '-' is standard input, '<arrays>' the Python API."""

    path: str
    rows: int
    positives: int
    sha256: str


@dataclass(frozen=True, eq=False)
class Predictions:
    """One model on its rows, checked. Arrays may be read-only views of the file.

    model: the score column. score: float64 (T,) in [0, 1]. label: uint8 (T,), 0 or 1. weight: float64 (T,), positive
    and finite, or None. groups: column -> (T,) str. features: reads float64 (T, d) when called, once for all models;
    None where none were named. feature_names: the columns (one name where it is one list-valued column).
    dropped: rows left out for this model. rows: int64 (T,), where they stand in the data set; None: all do.
    """

    model: str
    score: np.ndarray
    label: np.ndarray
    weight: np.ndarray | None
    groups: dict[str, np.ndarray]
    features: Callable[[], np.ndarray] | None
    feature_names: tuple[str, ...]
    dropped: int
    rows: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """All models of one set of inputs. columns: role -> column(s); found: roles found by their usual names."""

    inputs: tuple[Input, ...]
    columns: dict[str, str | tuple[str, ...]]
    found: tuple[str, ...]
    models: tuple[Predictions, ...]
    notes: tuple[str, ...]


def chosen_columns(sources: Sequence[Source], columns: Columns) -> Chosen:
    """The columns of the first source by role, which the others must have too."""
    first = sources[0]
    chosen = choose(first.names, columns, first.shown)
    for other in sources[1:]:
        same_columns(chosen, first.shown, other.names, columns, other.shown)
    return chosen


def dataset(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Check and assemble opened inputs."""
    chosen = chosen_columns(sources, columns)
    digests = Digests(sources)
    parts: list[Part] = []
    start = 0
    for source in sources:
        table = source.load(chosen.numbers, chosen.texts)
        if not table.num_rows:
            raise no_rows(source.shown)
        parts.append(Part(source, table, start))
        start += table.num_rows
    rows = Rows(parts)
    label, unlabelled = _labels(parts, chosen.label, columns, rows)
    gone = {} if unlabelled is None else {"label missing": unlabelled}
    weight = None
    if chosen.weight is not None:
        weight = floats(parts, chosen.weight)
        unweighted = checked_weights(weight, chosen.weight, rows, columns)
        gone |= {} if unweighted is None else {"weight missing": unweighted}
    features = Features(sources, chosen.features, columns, rows) if chosen.features else None
    if features is not None and columns.missing == "drop":
        # Which rows are left depends on the features, so here they cannot wait.
        gone |= features.missing()
    everything = Predictions(
        model="",
        score=label,
        label=label,
        weight=weight,
        groups={name: group(parts, name) for name in chosen.group},
        features=None if features is None else features.read,
        feature_names=chosen.features,
        dropped=0,
    )
    models, notes = [], []
    for name in chosen.score:
        score, unscored = checked_scores(floats(parts, name), name, rows, columns)
        reasons = gone if unscored is None else {"score missing": unscored, **gone}
        model, note = _model(replace(everything, model=name, score=score), reasons, rows)
        models.append(model)
        notes += note
    inputs = []
    for part, digest in zip(parts, digests.wait(), strict=True):
        count = part.table.num_rows
        here = label[part.start : part.start + count]
        inputs.append(Input(part.source.raw.path, count, int(np.count_nonzero(here == 1)), digest))
    return Dataset(tuple(inputs), chosen.roles(), chosen.found, tuple(models), tuple(notes))


def _labels(parts: Sequence[Part], name: str, columns: Columns, rows: Rows) -> tuple[np.ndarray, np.ndarray | None]:
    """uint8 (T,) labels, MISSING_LABEL where missing, and the mask of these (None when there is none)."""
    labels = Labels(name, columns.positive)
    pieces = [labels.codes(part, chunk) for part in parts for _, chunk in part.chunks(name)]
    codes = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    meaning = labels.meaning(codes, rows)
    missing = codes == MISSING_LABEL if int(codes.max()) == MISSING_LABEL else None
    if missing is not None:
        if missing.all():
            raise DecalError(
                f"{parts[0].source.shown}, column {quote(name)}: every label is missing", "name another column"
            )
        if columns.missing == "error":
            raise missing_values(missing, name, "label", rows)
    return codes if meaning is None else meaning[codes], missing


def _model(whole: Predictions, reasons: dict[str, np.ndarray], rows: Rows) -> tuple[Predictions, list[str]]:
    """Leave out the rows that have a reason to be left out, and say so."""
    if not reasons:
        return whole, []
    out = np.logical_or.reduce(list(reasons.values()))
    dropped = int(np.count_nonzero(out))
    if not dropped:
        return whole, []
    counts = {reason: int(np.count_nonzero(mask)) for reason, mask in reasons.items()}
    told = [f"{reason} ({count})" if len(counts) > 1 else reason for reason, count in counts.items() if count]
    note = f"{whole.model}: {dropped} of {rows.count} rows left out: {', '.join(told)}"
    if dropped == rows.count:
        shown = rows.parts[0].source.shown
        raise DecalError(
            f"{shown}, column {quote(whole.model)}: no row is left ({', '.join(told)})", "name other columns"
        )
    keep = ~out
    features = whole.features
    return (
        replace(
            whole,
            score=whole.score[keep],
            label=whole.label[keep],
            weight=None if whole.weight is None else whole.weight[keep],
            groups={name: values[keep] for name, values in whole.groups.items()},
            features=None if features is None else lambda: features()[keep],
            dropped=dropped,
            rows=np.flatnonzero(keep),
        ),
        [note],
    )


class Digests:
    """SHA-256 of every input, computed beside the parsing."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.done: list[str | Exception] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for source in self.sources:
            try:
                self.done.append(source.raw.sha256())
            except Exception as error:
                self.done.append(error)

    def wait(self) -> list[str]:
        self.thread.join()
        for result in self.done:
            if isinstance(result, Exception):
                raise result
        return [result for result in self.done if isinstance(result, str)]
