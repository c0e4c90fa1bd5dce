"""Checks of columns: numbers, labels, probabilities of several classes, groups, clusters and periods.

A check gives values, shape (T,), and writes down which rows lack one (`Origin.lacking`). Masks are built only once
something is wrong. Errors are of the first row that is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from decal_cli.data.columns import Chosen, ClassColumns, class_pattern
from decal_cli.data.formats.files import Source
from decal_cli.data.parts import Origin, Part, Texts, floats, is_list, is_text, lists_of, part_floats, part_texts, plain
from decal_cli.data.words import (
    MISSING,
    NATURAL,
    NUMBER,
    label_text,
    listed,
    not_a_number,
    number,
    number_with_sign,
    quote,
    shell_word,
)
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_UTILITY, MIN_SHARE_OF_MEAN
from decal_cli.numbers import many
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import BLOCK, Floats

MISSING_LABEL = 255
MOST_LABELS = 64
NO_GROUP = "(missing)"
"""What a group of missing values is called: nothing that a column is likely to hold as a text."""
MAX_OFF = 1e-3
"""How far the probabilities of a row may be from a sum of 1."""
ROUNDING = 1e-12
"""How far the probabilities of a row may be from a sum of 1 without a note."""
_AMOUNTS = {"amount": "amount", "cost_fp_column": "cost", "cost_fn_column": "cost", "utility_columns": "utility"}
_DECIMAL = re.compile(r"[+-]?\d+(\.\d*)?")
_TIME, _DATE_LENGTH = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?"), len("2026-01-31")


Scores = tuple[Floats, list[str]]
"""Scores in [0, 1], NaN where one is missing, and notes on how they were read."""


def scores_of(parts: Origin, model: ClassColumns, columns: Columns) -> Scores:
    """The scores of a model, (T,) or (T, K). Texts such as '90%', '90 percent' and '0.9' are read each by its sign."""
    if model.classes:
        return _class_scores(parts, model, columns)
    name, percentages = model.model, 0
    if may_be_text(columns) and any(is_text(part.type_of(name)) for part in parts):
        values, percentages = read_texts(parts, name)
    else:
        values = floats(parts, name)
    score, notes = checked_scores(values, name, parts, columns), []
    if columns.margin:
        low, high = number(np.nanmin(values)), number(np.nanmax(values))
        notes.append(f"{name}: margins from {low} to {high} were rescaled to [0, 1]")
    if percentages:
        notes.append(percentages_note(name, percentages, parts.n_rows))
    return score, notes


def read_texts(parts: Origin, name: str) -> tuple[Floats, int]:
    """Scores that are texts as numbers, each read by its own sign; and how many are percentages. Errors: DecalError."""
    texts = Texts(parts, name, missing=MISSING.__contains__)
    known = [number_with_sign(text) for text in texts.values]
    wrong = texts.each([each is None for each in known], False)
    if wrong.any():
        row = int(wrong.argmax())
        raise not_a_number(parts.place(name, row), texts.values[texts.codes[row]])
    signs = [(value / 100 if sign else value, sign) for value, sign in filter(None, known)]
    values = texts.each([value for value, _ in signs], math.nan, float)
    return values, int(np.count_nonzero(texts.each([sign for _, sign in signs], False, bool)))


def percentages_note(name: str, percentages: int, rows: int) -> str:
    """The note on scores of which so many were read as percentages."""
    of_rows = "all " if percentages == rows > 1 else f"{percentages:,} of "
    return f"{name}: read {of_rows}{many(rows, 'value')} as percentages, such as 90% as 0.9"


def may_be_text(columns: Columns) -> bool:
    """Whether scores may be texts: neither log-odds nor margins are percentages."""
    return not (columns.logit or columns.margin)


def holds_texts(source: Source, name: str) -> bool:
    """Whether the first rows of a column are texts, or are no numbers in a format that has no types."""
    try:
        first = next(iter(source.batches({name: "numbers"})), None)
    except DecalError:
        return True
    return first is not None and is_text(first.schema.field(name).type)


def _known_span(values: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The least and the greatest known value, and the mask of missing values, which is empty where none is missing."""
    missing = np.zeros(0, dtype=bool)
    if np.isnan(values.min(initial=np.inf)):
        missing = np.isnan(values)
        values = values[~missing]
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)), missing


def checked_scores(values: np.ndarray, name: str, origin: Origin, columns: Columns) -> np.ndarray:
    """Scores in [0, 1].

    Errors: infinite, outside [0, 1] (unless --logit or --margin takes them there), or missing unless they may be
    dropped.
    """
    low, high, missing = _known_span(values)
    any_size = columns.logit or columns.margin
    if np.isinf(low) or np.isinf(high):
        fix = "clip them to a finite range where they are written" if any_size else "correct or remove the row"
        origin.refuse(np.isinf(values), name, values, "score is {}", fix)
    if columns.margin:
        if low == high:
            raise DecalError(f"{origin.of_column(name)}: every margin is {number(low)}", "name another column")
        # (x - min) / (max - min) [Gao et al. 2017, footnote 5]; halved, so that the range of two huge ones is a number.
        values = (values / 2 - low / 2) / (high / 2 - low / 2)
    elif columns.logit:
        out = np.empty(len(values))
        for start in range(0, len(values), BLOCK):
            out[start : start + BLOCK] = expit(values[start : start + BLOCK])
        values = out
    elif low < 0 or high > 1:
        if not columns.label:
            # Rows that a model scores: it takes scores as they were when it was fitted.
            fix = "give probabilities between 0 and 1, as the model was fitted on"
        elif low >= 0 and 2 < high <= 100:
            fix = f"percentages must be divided by 100; for log-odds add {Hint('logit').words}"
        elif low >= -1e-6 and high <= 1 + 1e-6:
            fix = "it looks like rounding: clip scores to [0, 1] where they are written"
        else:
            fix = (
                f"for log-odds add {Hint('logit').words}, for margins of any size {Hint('margin').words}, else "
                "name a column of probabilities"
            )
        with np.errstate(invalid="ignore"):
            origin.refuse((values < 0) | (values > 1), name, values, "score {} is outside [0, 1]", fix)
    origin.lacking(missing, name, "score", columns)
    return values


def checked_weights(values: np.ndarray, name: str, origin: Origin, columns: Columns) -> np.ndarray | None:
    """Weights over the power of two nearest to their mean, which rounds none; None of equal ones, which say nothing.

    Errors: not in (0, inf), or far below the mean; missing unless they may be dropped.
    """
    low, high, missing = _known_span(values)
    if low <= 0 or np.isinf(high):
        with np.errstate(invalid="ignore"):
            bad = (values <= 0) | np.isinf(values)
        origin.refuse(bad, name, values, "weight {} is not positive and finite", "correct the weight or remove the row")
    origin.lacking(missing, name, "weight", columns)
    if low >= high:
        return None
    # First over one that is near the largest: the sum of weights as they are may be no float.
    weight = np.ldexp(values, -math.frexp(high)[1])
    mean = float((weight[~missing] if len(missing) else weight).mean())
    lost = f"weight is less than {MIN_SHARE_OF_MEAN:g} of the mean weight{{times}}, and sums would lose it"
    origin.refuse(weight < MIN_SHARE_OF_MEAN * mean, name, values, lost, "drop such rows, or correct the weights")
    return np.ldexp(weight, -round(math.log2(mean)))


def amounts_of(parts: Origin, chosen: Chosen) -> dict[str, Floats]:
    """What decisions on each row are worth: the columns by role, shape (T,), of utilities (T, A K).

    Errors: DecalError, for a negative amount or cost, an infinite one, a missing one unless it may be dropped, and
    utilities that look swapped.
    """
    roles = [role for role in ROW_UTILITIES if chosen.names(role)]
    if roles and chosen.models and roles != ["utility_columns"]:
        raise DecalError(
            f"{Hint(roles[0])} says what one kind of error costs, and of several classes there are more kinds",
            f"give {Hint('utility_columns')} with a column for each action and class",
        )
    amounts: dict[str, Floats] = {}
    for role in roles:
        what = _AMOUNTS[role]
        values = {name: floats(parts, name) for name in chosen.names(role)}
        spans = {name: _known_span(column) for name, column in values.items()}
        for name, (low, high, _) in spans.items():
            column, correct = values[name], "correct it or remove the row"
            if max(high, -low) > MAX_UTILITY:
                parts.refuse(abs(column) > MAX_UTILITY, name, column, f"{what} {{}} is beyond {MAX_UTILITY:g}", correct)
            if low < 0 and role != "utility_columns":
                either = f"correct it, or give {Hint('utility_columns')}: utilities may have either sign"
                parts.refuse(column < 0, name, column, f"{what} {{}} is negative", either)
        for name, (_, _, missing) in spans.items():
            parts.lacking(missing, name, what, chosen, of="amount")
        several = role == "utility_columns"
        amounts[role] = np.column_stack([*values.values()]) if several else next(iter(values.values()))
        if several and not chosen.models and len(values) == 4:
            tn, fn, fp, tp = values.values()
            with np.errstate(invalid="ignore"):
                swapped = (tn < fp) & (tp < fn)
            at = int(swapped.argmax())
            shown = ", ".join(f"{name} {number(column[at])}" for name, column in values.items())
            problem = f"wrong decisions are worth more than right ones ({shown})"
            parts.refuse(swapped, next(iter(values)), tn, problem, "name the columns in the order tn,fn,fp,tp")
    return amounts


def _class_scores(parts: Origin, model: ClassColumns, columns: Columns) -> Scores:
    """Probabilities, float64 (T, K), rows of sum 1; a note where they were rescaled."""
    size, first = len(model.classes), model.columns[0]
    score = np.empty((parts.n_rows, size), order="F")
    if len(model.columns) < size:
        for part in parts:
            if not is_list(part.type_of(first)):
                raise DecalError(
                    f"{part.source.shown}, column {quote(first)} holds no lists ({part.type_of(first)})",
                    f"name a list-valued column, or drop {Hint('classes')} and name a column for each class",
                )
        problem = f"holds {{}} numbers, and {Hint('classes')} names {{}}"
        score[:] = lists_of(parts, first, size, (problem, "give every row a probability for each class"))
    else:
        for k, name in enumerate(model.columns):
            for part in parts:
                part_floats(part, name, score[part.start : part.start + part.table.num_rows, k])
    for k in range(score.shape[1]):
        values, name = score[:, k], model.columns[min(k, len(model.columns) - 1)]
        parts.lacking(np.isnan(values), name, "probability", columns, of="score")
        with np.errstate(invalid="ignore"):
            outside = (values < 0) | (values > 1 + MAX_OFF)
        parts.refuse(outside, name, values, "probability {} is outside [0, 1]", "name probabilities")
    total = score.sum(axis=1)
    missing = np.isnan(total)
    off = np.abs(total - 1)
    with np.errstate(invalid="ignore"):
        wrong = off > MAX_OFF
    if wrong.any():
        row = int(wrong.argmax())
        place = parts.place(first, row).replace(f"column {quote(first)}, ", "")
        more = int(np.count_nonzero(wrong))
        raise DecalError(
            f"{place}: the probabilities of {quote(model.model)} sum to {number(total[row])}"
            + (f" ({more:,} such rows)" if more > 1 else ""),
            "they must sum to 1; correct the rows, or name the columns of all classes and no others",
        )
    most, notes = off[~missing].max(initial=0.0), []
    if most > ROUNDING:
        score /= total[:, None]
        notes.append(f"{model.model}: probabilities were divided by their sum, which is off 1 by at most {most:.1g}")
    return score, notes


class Labels:
    """Label values of two classes as 0 and 1; which counts as 1 is told by all that were seen so far."""

    def __init__(self, name: str, positive: str) -> None:
        self.name = name
        self.positive = label_text(positive) or positive
        self.codes: dict[str, int] = {"0": 0, "1": 1}
        self.seen: set[str] = set()

    def read(self, parts: Origin) -> np.ndarray:
        """The labels of further rows, uint8 (T,), MISSING_LABEL where missing; maybe a read-only view.

        Errors: neither 0/1 nor two values with one of them named as positive.
        """
        pieces = [self._codes(part, chunk) for part in parts for _, chunk in part.pieces(self.name)]
        codes = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        texts = sorted(self.seen, key=_by_number)
        what = f"{parts.of_column(self.name)}: label"
        if len(self.seen) > MOST_LABELS:
            raise DecalError(f"{what} has more than {MOST_LABELS} different values", "name a column of two values")
        if not self.natural and len(texts) > 2:
            odd = next(t for t in [*(t for t in texts if t not in NATURAL), *texts] if np.any(codes == self.codes[t]))
            row = int((codes == self.codes[odd]).argmax())
            pattern = class_pattern(parts[0].source.names, texts)
            raise DecalError(
                f"{parts.place(self.name, row)}: label is {quote(odd)}, and the column has {len(texts)} values:"
                f" {listed(texts)}",
                "a label has two; correct it or name another column"
                if not pattern
                else f"for several classes name their columns with {Hint('proba', quote(pattern))}",
            )
        if not (self.positive or self.natural):
            if len(texts) == 1:
                problem = f"{what} is always {quote(texts[0])}"
                raise DecalError(problem, f"add {Hint('positive')} with the value that counts as 1")
            if _by_number(texts[0])[0] == 0:
                problem = f"{what} is {texts[0]} or {texts[1]}, not 0 or 1"
                raise DecalError(problem, f"use {Hint('positive', texts[1])}")
            either = " or ".join(f"{Hint('positive', shell_word(text))}" for text in texts)
            raise DecalError(f"{what} is {listed(texts)}, not 0 or 1", f"say which counts as 1: {either}")
        if not self.positive and self.seen <= {"0", "1"}:
            return codes
        one = self.positive or "1"
        ones = {text for text in NATURAL if NATURAL[text] == NATURAL[one]} if self.natural and one in NATURAL else {one}
        label = np.full(256, MISSING_LABEL, dtype=np.uint8)
        for text in self.seen:
            label[self.codes[text]] = text in ones
        return label[codes]

    def _codes(self, part: Part, chunk: Any) -> np.ndarray:
        """The number of each row's value, MISSING_LABEL where missing."""
        import pyarrow as pa

        if pa.types.is_integer(chunk.type) and not chunk.null_count:
            values = plain(chunk)
            low, high = values.min(), values.max()
            if low in (0, 1) and high in (0, 1):
                self.seen.update({str(int(low)), str(int(high))})
                return values.view(np.uint8) if values.itemsize == 1 else values.astype(np.uint8)
        texts, indices = part_texts(part, self.name, chunk)
        codes = [MISSING_LABEL] * len(texts)
        for at, text in enumerate(map(label_text, texts)):
            if text is None:
                continue
            self.seen.add(text)
            if len(self.seen) > MOST_LABELS:
                break
            codes[at] = self.codes.setdefault(text, len(self.codes))
        return np.array([*codes, MISSING_LABEL], dtype=np.uint8)[indices]

    @property
    def natural(self) -> bool:
        """Whether the values say by themselves which of them counts as 1."""
        return self.seen <= NATURAL.keys()

    def need_positive(self, shown: str) -> None:
        """Raise a DecalError where all rows were read, and none has the value named as positive.

        With 0/1 labels it may be the one not seen.
        """
        if not self.positive or self.positive in self.seen or (self.natural and self.positive in NATURAL):
            return
        texts = listed(sorted(self.seen, key=_by_number))
        raise DecalError(
            f"{shown}, column {quote(self.name)}: label is never {quote(self.positive)}, it is {texts}",
            f"correct {Hint('positive')}",
        )


def labels_of(parts: Origin, name: str, columns: Columns, classes: Sequence[str] = ()) -> np.ndarray:
    """uint8 (T,) labels, MISSING_LABEL where missing; numbers of several classes, int64 (T,), -1 where missing."""
    if classes:
        return _class_labels(parts, name, columns, classes)
    labels = Labels(name, columns.positive)
    label = labels.read(parts)
    labels.need_positive(parts.shown)
    if label.max() == MISSING_LABEL:
        _some_lacking(label == MISSING_LABEL, parts, name, columns)
    return label


def _some_lacking(missing: np.ndarray, parts: Origin, name: str, columns: Columns) -> None:
    """Record which labels are missing. Errors: DecalError, where all are, or they may not be dropped."""
    if missing.all():
        raise DecalError(
            f"{parts[0].source.shown}, column {quote(name)}: every label is missing", "name another column"
        )
    parts.lacking(missing, name, "label", columns)


def _class_labels(parts: Origin, name: str, columns: Columns, classes: Sequence[str]) -> np.ndarray:
    if columns.logit or columns.margin or columns.positive:
        raise DecalError(
            f"{Hint('logit')}, {Hint('margin')} and {Hint('positive')} are for scores of two classes", "drop them"
        )
    place = {text: k for k, text in enumerate(classes)}
    texts = Texts(parts, name, missing=lambda text: label_text(text) is None)
    known = [label_text(text) or "" for text in texts.values]
    label = texts.each([place.get(text, -2) for text in known], -1, np.int64)
    unknown = label == -2
    if unknown.any():
        row = int(unknown.argmax())
        pattern = class_pattern(parts[0].source.names, sorted({*known} - {""}))
        better = f"; {Hint('proba', quote(pattern))} has a column for each label" if pattern else ""
        raise DecalError(
            f"{parts.place(name, row)}: label is {quote(known[texts.codes[row]])}, and no column is of that class",
            f"the classes are {listed(list(classes))}{better}",
        )
    _some_lacking(label < 0, parts, name, columns)
    return label


def _by_number(text: str) -> tuple[int, float, str]:
    return (0, float(text), "") if NUMBER.fullmatch(text) else (1, 0.0, text)


def group(parts: Sequence[Part], name: str, called: Mapping[str, str] | None = None) -> np.ndarray:
    """A column of group names, str (T,); the same strings from every format, NO_GROUP where null or empty.

    called: what each text is called, where these rows are a batch of more.
    """
    texts = Texts(parts, name)
    names = _names(texts, parts) if called is None else [called[text] for text in texts.values]
    no_group = NO_GROUP if (texts.codes < 0).any() else ""
    wide = max(map(len, (*names, no_group))) * 4 * len(texts.codes) > 1 << 30
    return texts.each(names, no_group, object if wide else str)


def group_names(parts: Iterable[Part], name: str) -> dict[str, str]:
    """What each text of a column of groups is called: no batch of rows can know it by itself."""
    known: dict[str, None] = {}
    place, some_missing = "", False
    for part in parts:
        texts, place = Texts([part], name), Origin([part]).of_column(name)
        known |= dict.fromkeys(texts.values)
        some_missing = some_missing or bool((texts.codes < 0).any())
    return dict(zip(known, _settled(list(known), some_missing, place), strict=True))


def _names(texts: Texts, parts: Sequence[Part]) -> list[str]:
    place = f"{parts[0].source.shown}, column {quote(texts.name)}"
    return _settled(texts.values, bool((texts.codes < 0).any()), place)


def _settled(known: list[str], some_missing: bool, place: str) -> list[str]:
    """Group names that do not depend on the format: among numbers '2.0' is '2', and 'True' is 'true'.

    Where that would merge two names, all of them stay as they are.
    """
    if some_missing and NO_GROUP in known:
        raise DecalError(f"{place}: a group is called {NO_GROUP}, and so are missing values", "rename it")
    if known and all(t.lower() in ("true", "false") for t in known):
        return [t.lower() for t in known]
    if any("." in t for t in known) and all(_DECIMAL.fullmatch(t) for t in known):
        whole = [re.sub(r"\.0*$", "", t) for t in known]
        if len(set(whole)) == len(set(known)):
            return whole
    return known


def clusters(parts: Origin, name: str, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """A column of clusters: their names in order, and (T,) numbers of them.

    Errors: DecalError, for a missing value that may not be dropped, or only one cluster.
    """
    texts = Texts(parts, name)
    missing = texts.codes < 0
    parts.lacking(missing, name, "cluster", columns)
    names = _names(texts, parts)
    if len(set(names)) < 2:
        one = f"is {quote(names[0])}" if names else "is missing"
        raise DecalError(
            f"{parts.of_column(name)}: the cluster of every row {one}",
            "name the column of what was sampled independently, such as the patient",
        )
    order = sorted({*names, NO_GROUP} if missing.any() else set(names))
    number = {each: k for k, each in enumerate(order)}
    return np.array(order), texts.each([number[each] for each in names], number.get(NO_GROUP, -1), np.int32)


def periods(parts: Origin, name: str, columns: Columns) -> np.ndarray:
    """A column of periods: (T,) numbers of them, times as their days.

    Errors: DecalError, for a missing value that may not be dropped.
    """
    texts = Texts(parts, name)
    parts.lacking(texts.codes < 0, name, "day", columns)
    names = _names(texts, parts)
    if all(map(_TIME.fullmatch, names)):
        names = [each[:_DATE_LENGTH] for each in names]
    _, rank = np.unique([*names, NO_GROUP], return_inverse=True)
    return rank[texts.codes]
