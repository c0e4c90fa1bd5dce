"""Inputs -> Dataset: the models' scores and labels, checked once, and the features when someone asks.

A data set is used in the population that decisions are made in, and at the capacity of acting on rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from decal_cli.data.check import (
    amounts_of,
    checked_weights,
    clusters,
    group,
    labels_of,
    may_be_text,
    periods,
    scores_of,
)
from decal_cli.data.columns import Chosen, choose, same_columns
from decal_cli.data.features import FeatureReader
from decal_cli.data.formats.files import Source, Wanted
from decal_cli.data.parts import Origin, Part, Texts, floats, loaded_parts
from decal_cli.data.times import times_of
from decal_cli.data.words import MAX_LISTED, label_text, listed, number_with_sign, quote
from decal_cli.declarations.document import Count, Hidden, Limit, Positive
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MIN_PREVALENCE
from decal_cli.numbers import many
from decal_cli.roles import ROLES, Columns
from decal_cli.tables.aggregated import CountedData, needs_rows
from decal_cli.tables.cells import CellTable
from decal_cli.tables.population import Population, Shares, class_shares, population_share
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity
from decal_cli.tables.table import Ints
from decal_cli.tables.threads import beside
from decal_cli.task import few_names


@dataclass(frozen=True)
class Input:
    """One input, for provenance. path: '-' is standard input, '<arrays>' the Python API, 'made-up pilot' a plan's.

    positives: None where labels are of several classes. unlabelled: rows without a label, where they are dropped.
    """

    path: str
    rows: Positive
    positives: Count | None
    sha256: Annotated[str, Limit(pattern="^[0-9a-f]{64}$")]
    unlabelled: Hidden[int] = 0


@dataclass(frozen=True, eq=False)
class Predictions:
    """One model of a data set, with the rows that it is evaluated on, checked.

    columns: those of its scores. rows: arrays may be read-only views of the file; features are read when needed.
    feature_names: feature columns, or one list-valued column. dropped: rows of the data set that are not among them.
    row_numbers: int64 (T,), their places in it, from 0; None: all. without_label: rows that lack a label alone, with
    label 0; None: none, or rows were counted.
    """

    name: str
    columns: tuple[str, ...]
    rows: Rows
    feature_names: tuple[str, ...] = ()
    dropped: int = 0
    row_numbers: Ints | None = None
    without_label: Rows | None = None

    def with_classes(self, classes: Sequence[str]) -> Predictions:
        """The model with its classes in this order. Errors: DecalError, where its classes are not these."""
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


NO_LABEL = "missing label"
"""The reason, in notes, for dropping a row whose label is missing."""
MAX_OFF = 1e-6
"""How far the shares of all classes may be from a sum of 1, since people round them."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """All models of one set of inputs.

    columns: role -> column(s); guessed: roles found by their usual names. notes: what was dropped, and why. features:
    what reads them, if the user named any. population: the one that rows are weighted to; None: their own. clusters:
    the names of the clusters that rows were sampled in, by number; None where rows are independent. capacity: on how
    many rows one can act; None: there is no limit.
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
    unused_times: tuple[str, ...] = ()
    """Columns without a role whose names look like those of times."""
    apart: bool = False
    """Whether the rows of each model were counted by themselves, so that nothing tells which rows two models share."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, where there are several."""
        return self.models[0].rows.classes

    def changed(self, change: Callable[[Rows], Rows]) -> Dataset:
        """The data set with the rows of each model replaced by `change` of them."""
        return replace(self, models=tuple(replace(each, rows=change(each.rows)) for each in self.models))

    @property
    def judged(self) -> Dataset:
        """The data set with the rows that fits are judged on when each is held out: see `Rows.judged`."""
        return self.changed(lambda rows: rows.judged)

    def need_two_classes(self, verb: str) -> None:
        """Raise a DecalError where there are several classes, which the verb cannot take."""
        if self.classes:
            raise DecalError(
                f"decal {verb} takes scores of two classes, and {Hint('proba')} names {len(self.classes)} classes",
                f"other commands take them; for one class against the rest name its column with {Hint('score')}, and "
                f"one that is 1 where it is the class with {Hint('label')}",
            )

    def need_rows(self, verb: str) -> None:
        """Raise a DecalError where rows were counted before, which the verb cannot work from."""
        if isinstance(self.models[0].rows, CountedData):
            raise needs_rows(f"decal {verb}")

    def need_no_limit(self, verb: str) -> None:
        """Raise a DecalError where a capacity limits the rows to act on, which the verb cannot take."""
        if self.capacity is not None:
            raise DecalError(
                f"decal {verb} decides on every row for itself, and {Hint('capacity')} is for all of them together",
                "drop it; evaluate, recommend, report, fit, gate, compare and sweep take it",
            )

    @property
    def in_time(self) -> bool:
        """Whether fits are to learn from earlier rows only."""
        return "time" in self.columns

    def need_no_time(self, verb: str) -> None:
        """Raise a DecalError where fits are to learn from earlier rows only, and the verb deals rows into folds."""
        if self.in_time:
            raise DecalError(
                f"decal {verb} fits to random folds, and {Hint('time')} asks for fits to earlier rows",
                "drop it; evaluate, recommend, report, gate, compare and fit take it",
            )

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and once features were read what kinds of columns they are."""
        return (*self.notes, *(self.features.notes if self.features else ()))


def chosen_columns(sources: Sequence[Source], columns: Columns) -> Chosen:
    """The columns of the first source by role, which the others must have too."""
    first = sources[0]
    of_classes = _of_classes_by_name(first, columns)
    columns = columns.updated({"proba": ("p_*",)}) if of_classes else columns
    chosen = choose(first.names, columns, first.shown)
    for other in sources[1:]:
        same_columns(chosen, first.shown, other.names, columns, other.shown)
    return replace(chosen, guessed=(*chosen.guessed, "proba")) if of_classes else chosen


def _of_classes_by_name(source: Source, columns: Columns) -> bool:
    """Whether 'p_*' are columns of classes: the user names no scores, and of three labels at least each has one."""
    classes = {label_text(name[2:]) for name in source.names if name.startswith("p_") and len(name) > 2}
    if columns.score or columns.proba or columns.logit or columns.positive or len(classes) < 3:
        return False
    usual = [name for name in source.names if name.lower() in ROLES["label"].usual]
    label = columns.label or (usual[0] if len(usual) == 1 else "")
    if label not in source.names:
        return False
    texts = Texts([Part(source, source.load({label: "texts"}), 0)], label).values
    labels = {label_text(text) for text in texts} - {None}
    return len(labels) >= 3 and labels <= classes


def parts_of(sources: Sequence[Source], chosen: Chosen) -> Origin:
    """The chosen columns of every input; scores may be texts, such as percentages."""
    texts: Wanted = dict.fromkeys(chosen.score if may_be_text(chosen) else (), "typed")
    return loaded_parts(sources, {**chosen.read, **texts})


def dataset(sources: Sequence[Source], chosen: Chosen) -> Dataset:
    """The data set of the chosen columns of opened inputs, checked."""
    if chosen.logit and chosen.margin:
        raise DecalError(
            f"scores are either log-odds ({Hint('logit')}) or margins ({Hint('margin')})", "give one of them"
        )
    digests = Digests(sources)
    parts = parts_of(sources, chosen)
    classes = chosen.models[0].classes if chosen.models else ()
    label = labels_of(parts, chosen.label, chosen, classes)
    weight = cluster = period = names = None
    if chosen.weight:
        weight = checked_weights(floats(parts, chosen.weight), chosen.weight, parts, chosen)
    if chosen.cluster:
        names, cluster = clusters(parts, chosen.cluster, chosen)
    if chosen.per:
        period = periods(parts, chosen.per, chosen)
    time = None
    if chosen.time:
        time = times_of(parts, chosen.time)[0]
        if len(time) and time.min() == time.max():
            raise DecalError(f"{parts.of_column(chosen.time)}: every time is the same", "name another column")
    amounts, of_all = amounts_of(parts, chosen), parts.incomplete
    features = None
    if chosen.features:
        features = FeatureReader(chosen.features, parts, all_columns=chosen.every_feature)
    groups = {name: group(parts, name) for name in chosen.group}
    read_features = None if features is None else features.read
    beside: dict[str, Any] = {"groups": groups, "features": read_features, "amounts": amounts, "time": time}
    models, notes = [], []
    if classes and (absent := [name for k, name in enumerate(classes) if not (label == k).any()]):
        notes.append(f"no row has class {listed(absent)}")
    for scored in chosen.scored:
        parts.incomplete = {}
        score, of_scores = scores_of(parts, scored, chosen)
        rows = Rows(score, label, weight, cluster, period, classes=classes, **beside)
        model = Predictions(scored.model, scored.columns, rows, chosen.features)
        model, note = _complete(model, parts.incomplete | of_all, parts)
        models.append(model)
        notes += [*of_scores, *note]
    inputs = digests.inputs(counts_of(parts, None if classes else label, of_all.get(NO_LABEL)))
    found = inputs, chosen.shown(), chosen.guessed, tuple(models), tuple(notes), features
    return Dataset(*found, clusters=names)


def _complete(model: Predictions, reasons: dict[str, np.ndarray], parts: Origin) -> tuple[Predictions, list[str]]:
    """The model without the rows that there is a reason to drop, and a note that says so."""
    incomplete = np.logical_or.reduce(list(reasons.values())) if reasons else np.zeros(1, dtype=bool)
    dropped = int(np.count_nonzero(incomplete))
    if not dropped:
        return model, []
    counts, left = dict[str, int](), np.ones_like(incomplete)
    for reason in sorted(reasons, key=lambda reason: reason != NO_LABEL):
        # A row counts for one reason, as in an engine, so that these numbers add up.
        counts[reason] = int(np.count_nonzero(reasons[reason] & left))
        left &= ~reasons[reason]
    why = why_dropped({reason: count for reason, count in counts.items() if count})
    if dropped == parts.n_rows:
        shown = parts[0].source.shown
        raise DecalError(f"{shown}, column {quote(model.name)}: no row is left ({why})", "name other columns")
    complete, apart = np.flatnonzero(~incomplete), None
    if NO_LABEL in reasons:
        # Rows that lack a label and nothing else.
        others = np.logical_or.reduce([mask for reason, mask in reasons.items() if reason != NO_LABEL])
        rows = model.rows.take(np.flatnonzero(reasons[NO_LABEL] & ~others))
        apart = replace(rows, label=np.zeros_like(rows.label)) if len(rows) else None
    model = replace(model, rows=model.rows.take(complete), dropped=dropped, row_numbers=complete, without_label=apart)
    return model, [f"{model.name}: dropped {dropped:,} of {parts.n_rows:,} rows ({why})"]


def why_dropped(counts: Mapping[str, int]) -> str:
    """The reasons for which rows are dropped, with how many rows have each where there are several."""
    return ", ".join(f"{reason}: {count:,}" if len(counts) > 1 else reason for reason, count in counts.items())


InputCounts = tuple[int, int | None, int]
"""Rows, rows of label 1 (None of several classes) and rows without a label of an input."""


class Digests:
    """SHA-256 of every input, computed beside the parsing."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.raws = [source.raw for source in sources]
        self.result = beside(lambda: [raw.sha256() for raw in self.raws])

    def inputs(self, counts: Iterable[InputCounts]) -> tuple[Input, ...]:
        """The inputs as results name them, none of which changed since it was opened."""
        found = zip(self.raws, counts, self.result(), strict=True)
        for raw in self.raws:
            raw.check_unchanged()
        return tuple(Input(raw.path, rows, ones, digest, lacking) for raw, (rows, ones, lacking), digest in found)


def counts_of(parts: Origin, label: np.ndarray | None, lacks: np.ndarray | None) -> Iterator[InputCounts]:
    """What each input holds. label: 1 where positive; None: several classes. lacks: rows without one."""
    for part in parts:
        of_part = slice(part.start, part.start + part.table.num_rows)
        positives, unlabelled = (
            None if of is None else int(np.count_nonzero(of[of_part] == 1)) for of in (label, lacks)
        )
        yield part.table.num_rows, positives, unlabelled or 0


def as_used(dataset: Dataset, columns: Columns) -> Dataset:
    """The data set in the user's population, and with the user's capacity. Errors: DecalError."""
    dataset = in_population(dataset, columns)
    if not columns.capacity:
        return dataset
    capacity = parse_capacity(columns.capacity)
    rows = min(len(model.rows) for model in dataset.models)
    counts = dataset.models[0].rows
    if isinstance(counts, CountedData):
        cells = isinstance(counts.table, CellTable)
        problem = "only cells of it are known" if cells else f"{rows:,} rows are more than memory can hold"
        raise DecalError(
            f"{Hint('capacity')} ranks rows by their score, and {problem}",
            f"round the scores, or draw a sample of rows, in {Hint('query')}; or give a file of rows",
        )
    if not (columns.per or capacity.among) and capacity.places > rows:
        raise DecalError(
            f"{Hint('capacity', capacity.text)} is more than the {many(rows, 'row')}",
            f"give a smaller count or a share, or the column of days with {Hint('per')}",
        )
    return replace(dataset, capacity=capacity)


def parse_capacity(text: str) -> Capacity:
    """'50/1000', '0.05' or '200'. Errors: DecalError."""
    try:
        places, *among = (float(part) for part in text.split("/"))
    except ValueError:
        places, among = math.nan, []
    share = bool(among) or places < 1
    whole = among[0] if among else 1.0
    wrong = ""
    if len(among) > 1 or not all(map(math.isfinite, (places, *among))):
        wrong = "is not a count or a share"
    elif places <= 0 or whole <= 0:
        wrong = "is not positive"
    elif among and places > whole:
        wrong = "is more than all rows"
    elif not share and places != int(places):
        wrong = "is neither a whole count nor a share below 1"
    elif not share and places == 1 and "." in text:
        wrong = "could be one row or all of them"
    if wrong:
        raise DecalError(f"{Hint('capacity', text)} {wrong}", "give for example 50/1000, 0.05 or 200")
    return Capacity(text, places, whole if share else 0.0)


def in_population(dataset: Dataset, columns: Columns) -> Dataset:
    """The data set with weights and scores of the user's population; unchanged without one. Errors: DecalError."""
    if not (columns.prevalence or columns.sampled_negatives):
        if columns.keep_scores:
            raise DecalError(
                f"{Hint('keep_scores')} keeps scores in another population", f"name it with {Hint('prevalence')}"
            )
        return dataset
    if columns.prevalence and columns.sampled_negatives:
        raise DecalError(
            f"{Hint('prevalence')} and {Hint('sampled_negatives')} both name the population", "give one of them"
        )
    rows = dataset.models[0].rows
    population = _of_classes(rows, columns) if dataset.classes else _of_ones(rows, columns)
    left_out = [
        f"{model.name}: nothing is said of the {many(len(model.without_label), 'row')} with a score and no label: "
        "which share of the population they are is not known"
        for model in dataset.models
        if model.without_label is not None
    ]
    counted = replace(dataset.changed(population.counted), population=population)
    return replace(counted, notes=(*dataset.notes, *left_out))


def _of_ones(rows: Rows, columns: Columns) -> Population:
    sampled = population_share(rows)
    if not 0 < sampled < 1:
        raise DecalError(
            f"every label is {sampled:.0f}: there is nothing to count as other labels", "give rows of both labels"
        )
    if not columns.prevalence:
        rate = columns.sampled_negatives
        kept = _share(rate, f"{Hint('sampled_negatives', rate)}", 0.1)
        share = sampled / (sampled + (1 - sampled) / kept)
        return Population.of_ones(share, sampled, columns.keep_scores, known=False)
    if "=" in columns.prevalence:
        raise DecalError(
            f"{Hint('prevalence', columns.prevalence)} names classes, and labels are 0 and 1",
            f"give the share of labels 1, for example {Hint('prevalence', '0.02')}",
        )
    share = _share(columns.prevalence, f"{Hint('prevalence', columns.prevalence)}", 0.02)
    return Population.of_ones(share, sampled, columns.keep_scores)


def _of_classes(rows: Rows, columns: Columns) -> Population:
    if not columns.prevalence:
        raise DecalError(
            f"{Hint('sampled_negatives')} is for scores of two classes", f"name the shares with {Hint('prevalence')}"
        )
    here = class_shares(rows)
    absent = [name for name, share in zip(rows.classes, here, strict=True) if not share]
    if absent:
        raise DecalError(
            f"no row has the label {absent[0]!r}, so that none can count as one of another population",
            "give rows of every class",
        )
    return Population(_shares(columns.prevalence, rows.classes), here, columns.keep_scores, classes=rows.classes)


def _cut_behind_shares(text: str) -> Iterator[str]:
    """The parts of 'a=0.2,b,c=0.3', which names the classes 'a' and 'b,c'."""
    begun: list[str] = []
    for piece in text.split(","):
        begun.append(piece)
        if "=" in piece:
            yield ",".join(begun)
            begun = []
    if begun:
        yield ",".join(begun)


def _shares(text: str, classes: Sequence[str]) -> Shares:
    """'a=0.2,b=0.3': the share of each class; one class may be missing and gets the rest. Errors: DecalError."""
    shown = Hint("prevalence", text)
    example = ",".join(f"{name}={1 / len(classes):.2g}" for name in classes[:-1][:MAX_LISTED])
    example += ",..." if len(classes) - 1 > MAX_LISTED else ""
    fix = f"give a share for each class (one may be missing), as in {Hint('prevalence', example)}"
    given: dict[str, float] = {}
    for part in _cut_behind_shares(text):
        name, equals, share = (each.strip() for each in part.rpartition("="))
        if not equals:
            raise DecalError(f"{shown} does not say which class has the share {share!r}", fix)
        if name not in classes or name in given:
            wrong = "is named twice" if name in given else f"is no class; the classes are {few_names(classes)}"
            raise DecalError(f"{shown}: {name!r} {wrong}", fix)
        given[name] = _share(share, f"{shown}: {name}={share}", 0.02)
    left = [name for name in classes if name not in given]
    if len(left) > 1:
        raise DecalError(f"{shown} leaves out {len(left)} classes: {few_names(left)}", fix)
    total = sum(given.values())
    if left:
        given[left[0]] = 1 - total
    wrong_sum = total > 1 - MIN_PREVALENCE if left else abs(total - 1) > MAX_OFF
    if wrong_sum:
        rest = f", which leaves nothing for {quote(left[0])}" if left else ""
        raise DecalError(
            f"the shares of {shown} add up to {total:.10g}{rest}",
            f"give shares that add up to {'less than 1' if left else '1'}",
        )
    total = sum(given.values())
    return tuple(given[name] / total for name in classes)


def _share(text: str, shown: str, example: float) -> float:
    """The share that a text is. shown: the text with its option. Errors: DecalError."""
    share, percent = number_with_sign(text) or (math.nan, False)
    if percent or not MIN_PREVALENCE <= share <= 1 - MIN_PREVALENCE:
        of_100 = (0 if percent else 1) < share < 100
        fix = f"did you mean {share / 100:g}?" if of_100 else f"give for example {example:g}"
        raise DecalError(f"{shown} is not a share between 0 and 1", fix)
    return share
