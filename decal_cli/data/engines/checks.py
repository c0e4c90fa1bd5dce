"""What an engine can find wrong with rows: the same checks, and the same lines, as for rows that are read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decal_cli.data.words import quote
from decal_cli.errors import DecalError


@dataclass(frozen=True)
class Problem:
    """One thing that can be wrong with a row.

    role: the column that has it. condition: when a row has it, in SQL. value: what is shown of the row, '' for a
    missing value. text: how the line goes on after the column, with {value} and {times}; fix: what to do about it.
    """

    role: str
    condition: str
    value: str = ""
    text: str = ""
    fix: str = ""


PROBLEMS = {
    "score outside [0, 1]": Problem(
        "score",
        "decal_s < 0 OR decal_s > 1",
        "decal_s",
        "score {value} is outside [0, 1]{times}",
        "name a column of probabilities, or correct the rows",
    ),
    "label never positive": Problem(
        "label", "decal_never = 1", "decal_y", "label is never the positive one, it is {value}", "correct --positive"
    ),
    "label of a third value": Problem(
        "label",
        "decal_label = 2",
        "decal_y",
        "label is {value}{times}, and a label is 0 or 1, or has two values",
        "say which counts as 1 with --positive, correct it or name another column",
    ),
    "weight not positive and finite": Problem(
        "weight",
        "decal_w <= 0 OR decal_w = {infinity}",
        "decal_w",
        "weight {value} is not positive and finite{times}",
        "correct the weight or remove the row",
    ),
    "missing score": Problem("score", "decal_unscored = 1"),
    "missing label": Problem("label", "decal_label IS NULL"),
    "missing weight": Problem("weight", "decal_w IS NULL"),
}
"""By what stands in the column `bad`, the worst first: a row has one."""


def sound(table: Any, shown: str, drop: bool, names: Mapping[str, str] | None = None) -> tuple[Any, dict[str, int]]:
    """The rows of an aggregate that count scores, without `bad` and `value`; and the dropped rows by what was missing.

    table: a pyarrow Table as `statement` describes it; `bad` and `value` may be absent. shown: what it is called. drop:
    whether rows with missing values may be dropped. names: the user's columns by role, as far as they are known.
    Errors: DecalError, with the worst problem and how many rows have it.
    """
    if "bad" not in table.column_names:
        return table, {}
    wrong = table.filter(table["bad"].is_valid()).to_pylist()
    kept = table.filter(table["bad"].is_null())
    kept = kept.drop_columns([name for name in ("bad", "value") if name in kept.column_names])
    rows = "rows" if "rows" in table.column_names else "n"
    counts: dict[str, int] = {}
    for problem in [*PROBLEMS, *sorted({str(each["bad"]) for each in wrong} - set(PROBLEMS))]:
        having = [each for each in wrong if each["bad"] == problem]
        if not having:
            continue
        # A row that lacks a value lacks it for every model.
        having = [each for each in having if each.get("model") == having[0].get("model")]
        counts[problem] = sum(int(each[rows] or 0) for each in having)
        known = PROBLEMS.get(problem)
        if known is None:
            raise DecalError(f"{shown}, column 'bad': {quote(problem)} is not known", "export what decal sql asks for")
        if known.text or not drop:
            raise _error(known, having, counts[problem], shown, names or {})
    return kept, counts


def _error(
    problem: Problem, having: list[dict[str, Any]], count: int, shown: str, names: Mapping[str, str]
) -> DecalError:
    column = having[0].get("model") if problem.role == "score" else None
    column = column or names.get(problem.role)
    place = shown if column is None else f"{shown}, column {quote(column)}"
    if not problem.text:
        return DecalError(
            f"{place}: {problem.role} missing in {count:,} rows", "fill them in, or drop these rows with --missing drop"
        )
    values = [str(each["value"]) for each in having if each.get("value") is not None]
    value = min(values) if values else "missing"
    times = f" ({count:,} such rows)" if count > 1 else ""
    return DecalError(f"{place}: {problem.text.format(value=quote(value), times=times)}", problem.fix)
