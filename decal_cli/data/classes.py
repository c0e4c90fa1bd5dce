"""Probabilities of several classes -> checked rows: what sums to 1, and which label is which class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decal_cli.data.check import Scores
from decal_cli.data.columns import ClassColumns
from decal_cli.data.labels import label_text, need_some
from decal_cli.data.parts import Origin, Part, is_list, lists_of, part_floats
from decal_cli.data.texts import Texts
from decal_cli.data.words import listed, number, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import Columns

MAX_OFF = 1e-3
"""How far the probabilities of a row may be from a sum of 1."""
ROUNDING = 1e-12
"""How far they may be without a word."""


def labels_in(part: Part, name: str) -> set[str]:
    """The different labels of a column."""
    return {label for text in Texts([part], name).values if (label := label_text(text)) is not None}


def class_labels(
    parts: Origin, name: str, classes: Sequence[str], columns: Columns
) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of the classes, int64 (T,), -1 where missing, and the mask of these. Errors: a label that is no class."""
    number_of = {text: k for k, text in enumerate(classes)}
    texts = Texts(parts, name, missing=lambda text: label_text(text) is None)
    known = [label_text(text) or "" for text in texts.values]
    label = texts.each([number_of.get(text, -2) for text in known], -1, np.int64)
    unknown = label == -2
    if unknown.any():
        row = int(unknown.argmax())
        raise DecalError(
            f"{parts.place(name, row)}: label is {quote(known[texts.codes[row]])}, and no column is of that class",
            f"the classes are {listed(list(classes))}",
        )
    missing = label < 0
    need_some(missing, parts, name)
    return label, parts.lacking(missing, name, "label", columns)


def class_scores(parts: Origin, model: ClassColumns, columns: Columns) -> Scores:
    """Probabilities, float64 (T, K), rows of sum 1; a note where they were rescaled."""
    size, first = len(model.classes), model.columns[0]
    score = np.empty((parts.n_rows, size), order="F")
    if len(model.columns) < size:
        for part in parts:
            if not is_list(part.type_of(first)):
                raise DecalError(
                    f"{part.source.shown}, column {quote(first)}: holds no lists ({part.type_of(first)})",
                    f"name a list-valued column, or drop {Hint('classes')} and name a column for each class",
                )
        wrong_size = (
            f"holds {{}} numbers, and {Hint('classes')} names {{}}",
            "give every row a probability for each class",
        )
        score[:] = lists_of(parts, first, size, wrong_size)
    else:
        for k, name in enumerate(model.columns):
            for part in parts:
                part_floats(part, name, score[part.start : part.start + part.table.num_rows, k])
    for k in range(score.shape[1]):
        values, name = score[:, k], model.columns[min(k, len(model.columns) - 1)]
        parts.lacking(np.isnan(values), name, "probability", columns)
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
            "they must sum to 1; name the columns of all classes",
        )
    known = off[~missing]
    notes: tuple[str, ...] = ()
    if len(known) and known.max() > ROUNDING:
        score /= total[:, None]
        notes = (
            f"{model.model}: probabilities were divided by their sum, which is off 1 by at most {known.max():.1g}",
        )
    return Scores(score, missing if missing.any() else None, notes)
