"""Probabilities of several classes -> checked rows: which column is which class, what sums to 1, which label is which.

A pattern such as 'lr:*' names the columns of one model; what stands for the star is the class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from decal_cli.data.check import Origin, Part, missing_values, part_floats, plain
from decal_cli.data.labels import label_text, plain_encoded
from decal_cli.data.words import listed, number, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import ROLES, Columns

MAX_OFF = 1e-3
"""How far the probabilities of a row may be from a sum of 1."""
ROUNDING = 1e-12
"""How far they may be without a word."""
MAX_CLASSES = 10_000


@dataclass(frozen=True)
class ClassColumns:
    """A model's columns, one for each class, in the order of the classes."""

    model: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]


def class_columns(
    patterns: Sequence[str], names: Sequence[str], shown: str, classes: str | None = None
) -> tuple[ClassColumns, ...]:
    """The models that patterns name, all with the classes of the first. Errors: DecalError.

    classes: names, 'a,b,c', of what list-valued columns hold; None where every class has a column.
    """
    models: list[ClassColumns] = []
    for pattern in patterns:
        model = _one_model(pattern, names, shown) if classes is None else _one_list(pattern, names, shown, classes)
        if any(model.model == other.model for other in models):
            raise DecalError(f"two patterns name the model {quote(model.model)}", "name every model once")
        models.append(_as_first(model, models[0], shown) if models else model)
    return tuple(models)


def _one_model(pattern: str, names: Sequence[str], shown: str) -> ClassColumns:
    if pattern.count("*") != 1:
        raise DecalError(
            f"{Hint('proba', f'{quote(pattern)}')} holds no star, or more than one", "write 'lr:*': * is the class"
        )
    start, end = pattern.split("*")
    columns = tuple(
        name for name in names if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end)
    )
    classes = tuple(label_text(name[len(start) : len(name) - len(end)]) or "" for name in columns)
    if len(columns) < 2 or len(columns) > MAX_CLASSES:
        raise DecalError(
            f"{shown}: {len(columns)} columns match {Hint('proba', f'{quote(pattern)}')}, not 2 to {MAX_CLASSES:,}",
            f"a column for each class; columns: {listed(names)}",
        )
    twice = next((name for at, name in enumerate(classes) if name in classes[:at] or not name), None)
    if twice is not None:
        raise DecalError(
            f"{shown}: two columns of {Hint('proba', f'{quote(pattern)}')} are class {quote(twice)}", "rename one"
        )
    return ClassColumns((start + end).strip(":_-. ") or "proba", columns, classes)


def _one_list(name: str, names: Sequence[str], shown: str, classes: str) -> ClassColumns:
    """A model whose column holds a list of probabilities."""
    if name not in names:
        raise DecalError(
            f"{shown}: no column {quote(name)}", f"with {Hint('classes')}, name one list; columns: {listed(names)}"
        )
    named = tuple(label_text(each) or "" for each in classes.split(","))
    if len(named) < 2 or "" in named or len(set(named)) < len(named):
        raise DecalError(
            f"{Hint('classes', f'{quote(classes)}')} are not different names", "write 'a,b,c', in the list's order"
        )
    return ClassColumns(name, (name,), named)


def by_usual_names(names: Sequence[str], columns: Columns, labels_of: Callable[[str], set[str]]) -> Columns:
    """The columns, with 'p_*' as those of classes where the user names none and they match the labels.

    labels_of: the values of a column. There must be three labels at least, each with a column p_<label>.
    """
    classes = {label_text(name[2:]) for name in names if name.startswith("p_") and len(name) > 2}
    if columns.score or columns.proba or columns.logit or columns.positive is not None or len(classes) < 3:
        return columns
    usual = [name for name in names if name.lower() in ROLES["label"].usual]
    label = columns.label if columns.label is not None else usual[0] if len(usual) == 1 else None
    if label is None or label not in names:
        return columns
    labels = labels_of(label)
    return columns.updated({"proba": ("p_*",)}) if len(labels) >= 3 and labels <= classes else columns


def labels_in(part: Part, name: str) -> set[str]:
    """The different labels of a column."""
    texts = {text for _, chunk in part.chunks(name) for text in plain_encoded(part, name, chunk)[0]}
    return {label for text in texts if (label := label_text(text)) is not None}


def _as_first(model: ClassColumns, first: ClassColumns, shown: str) -> ClassColumns:
    """The model with its columns in the order of the first one's classes."""
    for here, there, name in ((first, model, model.model), (model, first, first.model)):
        if lacking := [each for each in here.classes if each not in there.classes]:
            raise DecalError(
                f"{shown}: model {quote(name)} has no column for class {quote(lacking[0])}, which another model has",
                "models side by side need the same classes",
            )
    order = [model.classes.index(name) for name in first.classes]
    return ClassColumns(model.model, tuple(model.columns[k] for k in order), first.classes)


def class_labels(
    parts: Sequence[Part], name: str, classes: Sequence[str], columns: Columns, origin: Origin
) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of classes, int64 (T,), -1 where missing, and the mask of these (None when there is none)."""
    number_of = {text: k for k, text in enumerate(classes)}
    label = np.empty(origin.count, dtype=np.int64)
    for part in parts:
        for at, chunk in part.chunks(name):
            texts, indices = plain_encoded(part, name, chunk)
            known = [label_text(text) for text in texts]
            table = np.array([-1 if text is None else number_of.get(text, -2) for text in known] + [-1])
            label[at : at + len(indices)] = table[indices]
            unknown = np.flatnonzero(label[at : at + len(indices)] == -2)
            if len(unknown):
                row = at + int(unknown[0])
                raise DecalError(
                    f"{origin.place(name, row)}: label is {quote(known[indices[unknown[0]]])}, and no column is of"
                    " that class",
                    f"the classes are {listed(list(classes))}",
                )
    missing = label < 0
    if not missing.any():
        return label, None
    if missing.all():
        raise DecalError(f"{origin.shown}, column {quote(name)}: every label is missing", "name another column")
    if columns.missing == "error":
        raise missing_values(missing, name, "label", origin)
    return label, missing


def class_scores(
    parts: Sequence[Part], model: ClassColumns, columns: Columns, origin: Origin
) -> tuple[np.ndarray, np.ndarray | None, str | None]:
    """Probabilities, float64 (T, K), rows of sum 1; the mask of rows that lack one; a note where they were rescaled."""
    score = np.empty((origin.count, len(model.classes)), order="F")
    if len(model.columns) < len(model.classes):
        for part in parts:
            _fill_lists(part, model, score, origin)
    else:
        for k, name in enumerate(model.columns):
            for part in parts:
                part_floats(part, name, score[part.start : part.start + part.table.num_rows, k])
    for k in range(score.shape[1]):
        _check(score[:, k], model.columns[min(k, len(model.columns) - 1)], columns, origin)
    total = score.sum(axis=1)
    missing = np.isnan(total)
    off = np.abs(total - 1)
    with np.errstate(invalid="ignore"):
        wrong = off > MAX_OFF
    if wrong.any():
        row = int(wrong.argmax())
        place = origin.place(model.columns[0], row).replace(f"column {quote(model.columns[0])}, ", "")
        more = int(np.count_nonzero(wrong))
        raise DecalError(
            f"{place}: the probabilities of {quote(model.model)} sum to {number(total[row])}"
            + (f" ({more:,} such rows)" if more > 1 else ""),
            "they must sum to 1; name the columns of all classes",
        )
    known = off[~missing]
    note = None
    if len(known) and known.max() > ROUNDING:
        score /= total[:, None]
        note = f"{model.model}: probabilities were divided by their sum, which is off 1 by at most {known.max():.1g}"
    return score, missing if missing.any() else None, note


def _fill_lists(part: Part, model: ClassColumns, score: np.ndarray, origin: Origin) -> None:
    """Write the lists of one part to the rows of `score`; NaN where a list is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name, size = model.columns[0], len(model.classes)
    for at, chunk in part.chunks(name):
        if not (pa.types.is_list(chunk.type) or pa.types.is_large_list(chunk.type)
                or pa.types.is_fixed_size_list(chunk.type)):  # fmt: skip
            raise DecalError(
                f"{part.source.shown}, column {quote(name)}: holds no lists ({chunk.type})",
                f"name a list-valued column, or drop {Hint('classes')} and name a column for each class",
            )
        known = np.asarray(chunk.is_valid().to_pylist(), dtype=bool)
        lengths = np.asarray(pc.list_value_length(chunk).fill_null(size).to_pylist(), dtype=np.int64)
        ragged = np.flatnonzero(lengths != size)
        if len(ragged):
            row = at + int(ragged[0])
            raise DecalError(
                f"{origin.place(name, row)}: holds {lengths[ragged[0]]} numbers, and {Hint('classes')} names {size}",
                "give every row a probability for each class",
            )
        values = pc.list_flatten(chunk).cast(pa.float64()).fill_null(float("nan"))
        score[at : at + len(chunk)] = np.nan
        score[at + np.flatnonzero(known)] = plain(values).reshape(-1, size)


def _check(values: np.ndarray, name: str, columns: Columns, origin: Origin) -> None:
    missing = np.isnan(values)
    if missing.any() and columns.missing == "error":
        raise missing_values(missing, name, "probability", origin)
    with np.errstate(invalid="ignore"):
        outside = (values < 0) | (values > 1 + MAX_OFF)
    if outside.any():
        row = int(outside.argmax())
        raise DecalError(
            f"{origin.place(name, row)}: probability {number(values[row])} is outside [0, 1]", "name probabilities"
        )


def unseen_classes(label: np.ndarray, classes: Sequence[str]) -> str | None:
    """A note on the classes that no row has."""
    absent = [name for k, name in enumerate(classes) if not (label == k).any()]
    return None if not absent else f"no row has class {listed(absent)}"
