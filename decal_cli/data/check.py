"""Checks of columns of numbers: each gives values, shape (T,), and the mask of rows that lack one, None for none.

Errors are of the first row that is wrong. Masks are built only once something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decal_cli.data.columns import Chosen
from decal_cli.data.formats.sources import FileSource
from decal_cli.data.parts import Origin, Part, floats, is_text, part_floats
from decal_cli.data.texts import Texts
from decal_cli.data.words import MISSING, not_a_number, number, number_with_sign
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_UTILITY, MIN_SHARE_OF_MEAN
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import BLOCK, Floats

Checked = tuple[np.ndarray, np.ndarray | None]
"""Values, and the mask of the missing ones."""


class Scores(NamedTuple):
    """Scores in [0, 1], the mask of those that are missing, and notes on how they were read."""

    score: Floats
    missing: np.ndarray | None
    notes: tuple[str, ...] = ()


def scores_of(parts: Origin, name: str, columns: Columns) -> Scores:
    """A column of scores. Texts such as '90%', '90 percent' and '0.9' are read each by its own sign."""
    if not may_be_text(columns) or not any(is_text(part.type_of(name)) for part in parts):
        values = floats(parts, name)
        score, missing = checked_scores(values, name, parts, columns)
        if not columns.margin:
            return Scores(score, missing)
        low, high = np.nanmin(values), np.nanmax(values)
        note = f"{name}: margins from {number(low)} to {number(high)} were rescaled to [0, 1]"
        return Scores(score, missing, (note,))
    values, percentages = np.empty(parts.n_rows), 0
    for part in parts:
        here = values[part.start : part.start + part.table.num_rows]
        if is_text(part.type_of(name)):
            percentages += _read_signs(part, name, here)
        else:
            part_floats(part, name, here)
    score, missing = checked_scores(values, name, parts, columns)
    of_rows = f"all {parts.n_rows:,}" if percentages == parts.n_rows else f"{percentages:,} of {parts.n_rows:,}"
    note = f"{name}: read {of_rows} values as percentages, such as 90% as 0.9"
    return Scores(score, missing, (note,) if percentages else ())


def may_be_text(columns: Columns) -> bool:
    """Whether scores may be texts: neither log-odds nor margins are percentages."""
    return not (columns.logit or columns.margin)


def _read_signs(part: Part, name: str, into: np.ndarray) -> int:
    """Write a column of texts as numbers, NaN where missing; gives how many rows are percentages."""
    alone = Part(part.source, part.table, 0, part.skipped)
    texts = Texts([alone], name, missing=MISSING.__contains__)
    known = [number_with_sign(text) for text in texts.values]
    wrong = texts.each([each is None for each in known], False)
    if wrong.any():
        row = int(wrong.argmax())
        raise not_a_number(Origin([alone]).place(name, row), texts.values[texts.codes[row]])
    signs = [(value / 100 if sign else value, sign) for value, sign in filter(None, known)]
    into[:] = texts.each([value for value, _ in signs], math.nan, float)
    return int(np.count_nonzero(texts.each([sign for _, sign in signs], False, bool)))


def holds_texts(source: FileSource, name: str) -> bool:
    """Whether the first rows of a column are texts, or are no numbers in a format that has no types."""
    try:
        first = next(iter(source.rows((name,), ())), None)
    except DecalError:
        return True
    return first is not None and is_text(first.schema.field(name).type)


def span(values: np.ndarray) -> tuple[float, float]:
    """Least and greatest value, both NaN as soon as one value is; block by block, so without temporaries."""
    low, high = np.inf, -np.inf
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        least, most = float(block.min()), float(block.max())
        if least != least:
            return np.nan, np.nan
        low, high = min(low, least), max(high, most)
    return low, high


def _known_span(values: np.ndarray) -> tuple[float, float, np.ndarray | None]:
    """Least and greatest of the values that are not missing, and the mask of those that are."""
    low, high = span(values)
    if low == low:
        return low, high, None
    missing = np.isnan(values)
    return *span(values[~missing]), missing


def checked_scores(values: np.ndarray, name: str, origin: Origin, columns: Columns) -> Checked:
    """Scores in [0, 1].

    Errors: infinite, outside [0, 1] (unless --logit or --margin takes them there), or missing unless they may be
    dropped.
    """
    low, high, missing = _known_span(values)
    if low > high:
        return values, origin.lacking(missing, name, "score", columns)
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
        if low >= 0 and 2 < high <= 100:
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
    return values, origin.lacking(missing, name, "score", columns)


def checked_weights(values: np.ndarray, name: str, origin: Origin, columns: Columns) -> Checked:
    """Weights over the power of two nearest to their mean, which rounds none.

    Errors: not in (0, inf), or far below the mean; missing unless they may be dropped.
    """
    low, high, missing = _known_span(values)
    if low <= 0 or np.isinf(high):
        with np.errstate(invalid="ignore"):
            bad = (values <= 0) | np.isinf(values)
        origin.refuse(bad, name, values, "weight {} is not positive and finite", "correct the weight or remove the row")
    missing = origin.lacking(missing, name, "weight", columns)
    if low > high:
        return values, missing
    # First over one that is near the largest: the sum of weights as they are may be no float.
    weight = np.ldexp(values, -math.frexp(high)[1])
    mean = float((weight if missing is None else weight[~missing]).mean())
    lost = f"weight is less than {MIN_SHARE_OF_MEAN:g} of the mean weight{{times}}, and sums would lose it"
    origin.refuse(weight < MIN_SHARE_OF_MEAN * mean, name, values, lost, "drop such rows, or correct the weights")
    return np.ldexp(weight, -round(math.log2(mean))), missing


_AMOUNTS = {"amount": "amount", "cost_fp_column": "cost", "cost_fn_column": "cost", "utility_columns": "utility"}


def amounts_of(parts: Origin, chosen: Chosen, columns: Columns) -> tuple[dict[str, Floats], np.ndarray | None]:
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
    lacking: list[np.ndarray] = []
    for role in roles:
        names, what = chosen.names(role), _AMOUNTS[role]
        values = [floats(parts, name) for name in names]
        for name, column in zip(names, values, strict=True):
            with np.errstate(invalid="ignore"):
                beyond, negative = np.abs(column) > MAX_UTILITY, column < 0
            correct = "correct it or remove the row"
            parts.refuse(beyond, name, column, f"{what} {{}} is beyond {MAX_UTILITY:g}", correct)
            if role != "utility_columns":
                either = f"correct it, or give {Hint('utility_columns')}: utilities may have either sign"
                parts.refuse(negative, name, column, f"{what} {{}} is negative", either)
        for name, column in zip(names, values, strict=True):
            missing = parts.lacking(np.isnan(column), name, what, columns)
            lacking += [] if missing is None else [missing]
        amounts[role] = np.column_stack(values) if role == "utility_columns" else values[0]
    names = chosen.utility_columns
    if "utility_columns" in amounts and not chosen.models and len(names) == 4:
        _check_order(amounts["utility_columns"], names, parts)
    return amounts, np.logical_or.reduce(lacking) if lacking else None


def _check_order(utility: Floats, names: Sequence[str], parts: Origin) -> None:
    """Raise where both of two decisions are worth more when they are wrong."""
    tn, fn, fp, tp = utility.T
    with np.errstate(invalid="ignore"):
        swapped = (tn < fp) & (tp < fn)
    first = utility[int(swapped.argmax())]
    shown = ", ".join(f"{name} {number(value)}" for name, value in zip(names, first, strict=True))
    problem = f"wrong decisions are worth more than right ones ({shown})"
    parts.refuse(swapped, names[0], tn, problem, "name the columns in the order tn,fn,fp,tp")
