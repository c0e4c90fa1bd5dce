"""Utilities that differ from row to row: in words, as data, and what the amounts alone would win."""

from __future__ import annotations

from typing import Annotated, TypedDict

from decal_cli.analysis.by_row import ByRow
from decal_cli.analysis.evaluate import Report
from decal_cli.numbers import plain
from decal_cli.render.blocks import Paragraph
from decal_cli.render.schema import Count, Inside, Limit
from decal_cli.render.terms import Terms


class RowTaskData(TypedDict):
    """Utilities that differ from row to row. columns: their names by role. cost_fp, cost_fn: of every row, null where a
    column says it. u_delta: the mean over rows. thresholds: the lowest, the median and the highest t* between 0 and 1,
    null where there is none. never, always: rows on which acting never, or always, pays. least_amount: the cost of a
    miss from which acting on every row wins most on these rows, null where that never wins.
    """

    columns: dict[str, list[str]]
    cost_fp: float | None
    cost_fn: float | None
    u_delta: float
    thresholds: Annotated[list[Inside], Limit(minItems=3, maxItems=3)] | None
    never: Count
    always: Count
    least_amount: float | None


def row_task_data(by_row: ByRow) -> RowTaskData:
    """Utilities of rows as JSON has them."""
    low, middle, high = by_row.low, by_row.middle, by_row.high
    return {
        "columns": {role: list(names) for role, names in by_row.columns.items()},
        "cost_fp": by_row.task.cost_fp,
        "cost_fn": by_row.task.cost_fn,
        "u_delta": by_row.u_delta,
        "thresholds": None if low is None or middle is None or high is None else [low, middle, high],
        "never": by_row.never,
        "always": by_row.always,
        "least_amount": by_row.least_amount,
    }


def row_task_line(by_row: ByRow) -> str:
    """Utilities of rows in words."""
    if by_row.low is None or by_row.middle is None or by_row.high is None:
        thresholds = "no row has a threshold between 0 and 1"
    else:
        thresholds = f"t* from {plain(by_row.low)} to {plain(by_row.high)}, median {plain(by_row.middle)}"
    never = f"; {by_row.never:,} rows where acting never pays" if by_row.never else ""
    always = f"; {by_row.always:,} rows where acting always pays" if by_row.always else ""
    said = f"act when score >= t* of the row, {_threshold_words(by_row)}: {thresholds}{never}{always}"
    return f"{said} (mean u_delta = {plain(by_row.u_delta)})"


def _threshold_words(by_row: ByRow) -> str:
    """How the threshold of a row follows from its columns."""
    if "utility_columns" in by_row.columns:
        return "from its four utilities"
    missed = by_row.columns.get("amount") or by_row.columns.get("cost_fn_column")
    miss = missed[0] if missed else plain(by_row.task.cost_fn or 0.0)
    of_alarm = by_row.columns.get("cost_fp_column")
    alarm = of_alarm[0] if of_alarm else plain(by_row.task.cost_fp or 0.0)
    return f"{alarm} / ({alarm} + {miss})"


def amount_line(report: Report, by_row: ByRow | None, terms: Terms) -> Paragraph | None:
    """What acting on large amounts wins without any score, and whether the score beats that."""
    alone, over = (report.results.get(key) for key in ("eu_by_amount", "gain_over_amount"))
    if by_row is None or by_row.least_amount is None or alone is None or over is None or over.value is None:
        return None
    sign = -1 if over.value < 0 else 1
    ends_of = sorted(sign * end for end in over.interval or ())
    (worth, gain, *ends), unit = terms.amounts(alone.value or 0.0, sign * over.value, *ends_of)
    words = " ".join(filter(None, (unit, terms.span)))
    interval = f" [{', '.join(ends)}]" if ends else ""
    won = f"wins {gain}{interval} over" if sign > 0 else f"loses {gain}{interval} against"
    least = plain(by_row.least_amount)
    beaten = over.interval is not None and over.interval[1] < 0
    until = " Until a score beats that, act on the amount alone." if beaten else ""
    return Paragraph(
        f"Acting on every row that costs about {least} or more to miss, whatever its score, is worth {worth} {words} "
        f"on held-out rows; acting on the score as it is {won} that.{until}"
    )
