"""Inputs -> Dataset: the models' scores and labels, checked once, and the features when someone asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from decal_cli.data.amounts import amounts_of
from decal_cli.data.check import (
    Origin,
    Part,
    checked_scores,
    checked_weights,
    floats,
    margin_notes,
    missing_values,
)
from decal_cli.data.classes import by_usual_names, class_labels, class_scores, labels_in, unseen_classes
from decal_cli.data.columns import Chosen, choose, same_columns
from decal_cli.data.features import FeatureReader
from decal_cli.data.formats.sources import Source
from decal_cli.data.labels import MISSING_LABEL, Labels, clusters, group, periods
from decal_cli.data.percentages import parts_with_scores, percentage_notes
from decal_cli.data.words import quote
from decal_cli.declarations.document import Count, Limit, Positive
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import ALL_COLUMNS, Columns
from decal_cli.tables.aggregated import NEEDS_ROWS, Aggregated
from decal_cli.tables.listed import Capacity
from decal_cli.tables.population import Population
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints


@dataclass(frozen=True)
class Input:
    """One input, for provenance. path: '-' is standard input, '<arrays>' the Python API.

    positives: None where labels are of several classes.
    """

    path: str
    rows: Positive
    positives: Count | None
    sha256: Annotated[str, Limit(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, eq=False)
class Predictions:
    """One model of a data set, with the rows that it is evaluated on, checked.

    columns: those that hold its scores, one for a binary label. rows: arrays may be read-only views of the file; labels
    are uint8, features are read when they are needed, once for all models. feature_names: the feature columns (one name
    where it is one list-valued column). dropped: rows of the data set that are not among them. row_numbers: int64 (T,),
    which rows of the data set they are, from 0; None: all.
    """

    name: str
    columns: tuple[str, ...]
    rows: Rows
    feature_names: tuple[str, ...] = ()
    dropped: int = 0
    row_numbers: Ints | None = None

    def with_classes(self, classes: Sequence[str]) -> Predictions:
        """The same rows with their classes in this order. Errors: DecalError, where they are others."""
        rows = self.rows
        if rows.classes == tuple(classes):
            return self
        if set(rows.classes) != set(classes):
            other = min(set(rows.classes) ^ set(classes))
            raise DecalError(f"{quote(self.name)}: not every file has class {quote(other)}", "name the same classes")
        order = np.array([rows.classes.index(name) for name in classes])
        place = np.argsort(order)
        rows = replace(rows, score=rows.score[:, order], label=place[rows.label], classes=tuple(classes))
        return replace(self, rows=rows, columns=tuple(self.columns[k] for k in order))


NO_LIMIT_FIX = "drop it; evaluate, recommend, report, fit, gate, compare and sweep take it"


@dataclass(frozen=True, eq=False)
class Dataset:
    """All models of one set of inputs.

    columns: role -> column(s); guessed: roles found by their usual names. notes: what was dropped, and why. features:
    what reads them, if the user named any. population: the one that rows are counted as; None: their own. clusters:
    the names of the clusters that rows were sampled in, by number; None where each row stands by itself. capacity: of
    acting on them; None: there is no limit.
    """

    inputs: tuple[Input, ...]
    columns: dict[str, str | tuple[str, ...]]
    guessed: tuple[str, ...]
    models: tuple[Predictions, ...]
    notes: tuple[str, ...]
    features: FeatureReader | None = None
    population: Population | None = None
    clusters: np.ndarray | None = None
    capacity: Capacity | None = None
    apart: bool = False
    """Whether the rows of several models were counted each by themselves, so that nothing tells which are the same."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, where there are several."""
        return self.models[0].rows.classes

    def need_two_classes(self, verb: str) -> None:
        """Raise a DecalError where there are several, which the verb cannot take."""
        if self.classes:
            raise DecalError(
                f"decal {verb} takes scores of two classes, and {Hint('proba')} names {len(self.classes)} classes",
                f"other commands take them; for one class against the rest name its column with {Hint('score')}",
            )

    def need_rows(self, verb: str) -> None:
        """Raise a DecalError where rows were counted before, which the verb cannot work from."""
        if isinstance(self.models[0].rows, Aggregated):
            raise DecalError(
                f"decal {verb} {NEEDS_ROWS}", f"give a file of rows, without {Hint('aggregated')} or {Hint('engine')}"
            )

    def need_no_limit(self, verb: str, fix: str = NO_LIMIT_FIX) -> None:
        """Raise a DecalError where so many rows can be acted on only, which the verb cannot take."""
        if self.capacity is not None:
            raise DecalError(
                f"decal {verb} decides on every row for itself, and {Hint('capacity')} is for all of them together",
                fix,
            )

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and of which kinds the features are, once they were read."""
        note = None if self.features is None else self.features.note
        return self.notes if note is None else (*self.notes, note)


def chosen_columns(sources: Sequence[Source], columns: Columns) -> Chosen:
    """The columns of the first source by role, which the others must have too."""
    first = sources[0]

    def labels_of(name: str) -> set[str]:
        return labels_in(Part(first, first.load((), (name,)), 0), name)

    with_classes = by_usual_names(first.names, columns, labels_of)
    chosen = choose(first.names, with_classes, first.shown)
    if with_classes is not columns:
        chosen, columns = replace(chosen, guessed=(*chosen.guessed, "proba")), with_classes
    for other in sources[1:]:
        same_columns(chosen, first.shown, other.names, columns, other.shown)
    return chosen


def dataset(sources: Sequence[Source], columns: Columns) -> Dataset:
    """Check and assemble opened inputs."""
    if columns.logit and columns.margin:
        raise DecalError(
            f"scores are either log-odds ({Hint('logit')}) or margins ({Hint('margin')})", "give one of them"
        )
    chosen = chosen_columns(sources, columns)
    digests = Digests(sources)
    parts = parts_with_scores(sources, chosen, columns)
    origin = Origin(parts)
    if chosen.models:
        if columns.logit or columns.margin or columns.positive is not None:
            raise DecalError(
                f"{Hint('logit')}, {Hint('margin')} and {Hint('positive')} are for scores of two classes", "drop them"
            )
        classes = chosen.models[0].classes
        label, unlabelled = class_labels(parts, chosen.label, classes, columns, origin)
    else:
        classes = ()
        label, unlabelled = labels_of(parts, chosen.label, columns, origin)
    incomplete = {} if unlabelled is None else {"missing label": unlabelled}
    weight = None
    if chosen.weight is not None:
        weight, unweighted = checked_weights(floats(parts, chosen.weight), chosen.weight, origin, columns)
        incomplete |= {} if unweighted is None else {"missing weight": unweighted}
    names = cluster = None
    if chosen.cluster is not None:
        names, cluster, unknown = clusters(parts, chosen.cluster, origin, columns.missing == "drop")
        incomplete |= {} if unknown is None else {"missing cluster": unknown}
    period = None
    if chosen.per is not None:
        period, undated = periods(parts, chosen.per, origin, columns.missing == "drop")
        incomplete |= {} if undated is None else {"missing day": undated}
    amounts, unpriced = amounts_of(parts, chosen, columns, origin)
    incomplete |= {} if unpriced is None else {"missing amount": unpriced}
    features = None
    if chosen.features:
        features = FeatureReader(sources, chosen.features, origin, all_columns=ALL_COLUMNS in columns.features)
    groups = {name: group(parts, name) for name in chosen.group}
    models, notes = [], []
    absent = unseen_classes(label, classes) if classes else None
    notes += [] if absent is None else [absent]
    for name, of_model in _scored(parts, chosen, columns, origin):
        reasons = incomplete if of_model.unscored is None else {"missing score": of_model.unscored, **incomplete}
        read_features = None if features is None else features.read
        beside: dict[str, Any] = {"groups": groups, "features": read_features, "amounts": amounts}
        rows = Rows(of_model.score, label, weight, cluster, period, classes=classes, **beside)
        model, note = _complete(Predictions(name, of_model.columns, rows, chosen.features), reasons, origin)
        models.append(model)
        notes += [*of_model.notes, *note]
    inputs = []
    for part, digest in zip(parts, digests.wait(), strict=True):
        count = part.table.num_rows
        of_part = label[part.start : part.start + count]
        positives = None if classes else int(np.count_nonzero(of_part == 1))
        inputs.append(Input(part.source.raw.path, count, positives, digest))
    return Dataset(tuple(inputs), chosen.roles(), chosen.guessed, tuple(models), tuple(notes), features, clusters=names)


class _Scores(NamedTuple):
    """Scores of a model, the columns that hold them, the mask of those that are missing, and notes."""

    score: Floats
    columns: tuple[str, ...]
    unscored: np.ndarray | None
    notes: tuple[str, ...] = ()


def _scored(parts: Sequence[Part], chosen: Chosen, columns: Columns, origin: Origin) -> Iterator[tuple[str, _Scores]]:
    """Every model's checked scores."""
    for name in chosen.score:
        values = floats(parts, name)
        score, unscored = checked_scores(values, name, origin, columns)
        notes = margin_notes(values, name) if columns.margin else percentage_notes(parts, name)
        yield name, _Scores(score, (name,), unscored, notes)
    for model in chosen.models:
        score, unscored, note = class_scores(parts, model, columns, origin)
        yield model.model, _Scores(score, model.columns, unscored, () if note is None else (note,))


def labels_of(
    parts: Sequence[Part], name: str, columns: Columns, origin: Origin
) -> tuple[np.ndarray, np.ndarray | None]:
    """uint8 (T,) labels, MISSING_LABEL where missing, and the mask of these (None when there is none)."""
    labels = Labels(name, columns.positive)
    pieces = [labels.codes(part, chunk) for part in parts for _, chunk in part.chunks(name)]
    codes = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    meaning = labels.meaning(codes, origin)
    missing = codes == MISSING_LABEL if int(codes.max()) == MISSING_LABEL else None
    if missing is not None:
        if missing.all():
            raise DecalError(
                f"{parts[0].source.shown}, column {quote(name)}: every label is missing", "name another column"
            )
        if columns.missing == "error":
            raise missing_values(missing, name, "label", origin)
    return codes if meaning is None else meaning[codes], missing


def _complete(model: Predictions, reasons: dict[str, np.ndarray], origin: Origin) -> tuple[Predictions, list[str]]:
    """The model without the rows that there is a reason to drop, and a note that says so."""
    if not reasons:
        return model, []
    incomplete = np.logical_or.reduce(list(reasons.values()))
    dropped = int(np.count_nonzero(incomplete))
    if not dropped:
        return model, []
    counts = {reason: int(np.count_nonzero(mask)) for reason, mask in reasons.items()}
    why = ", ".join(f"{reason}: {count:,}" if len(counts) > 1 else reason for reason, count in counts.items() if count)
    if dropped == origin.count:
        shown = origin.parts[0].source.shown
        raise DecalError(f"{shown}, column {quote(model.name)}: no row is left ({why})", "name other columns")
    complete = np.flatnonzero(~incomplete)
    model = replace(model, rows=model.rows.take(complete), dropped=dropped, row_numbers=complete)
    return model, [f"{model.name}: dropped {dropped:,} of {origin.count:,} rows ({why})"]


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
        """The digests, of inputs that did not change since they were opened."""
        self.thread.join()
        for result in self.done:
            if isinstance(result, Exception):
                raise result
        for source in self.sources:
            source.raw.check_unchanged()
        return [result for result in self.done if isinstance(result, str)]
