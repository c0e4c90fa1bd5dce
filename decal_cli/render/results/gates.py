"""What `decal gate` returns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from decal_cli.analysis.gate import GateOutcome, GateRow
from decal_cli.declarations.document import Names
from decal_cli.errors import DecalError
from decal_cli.numbers import many, plain, rounded, short
from decal_cli.render.blocks import Blocks, Check, Checks, Notes
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.source import (
    Order,
    WrittenResult,
    ends_of,
    source_lines,
    without_limit_lines,
    worst_of_each,
)
from decal_cli.render.schema import Document, Records, data_of, keys_of

DIGITS = 4
"""Fewest decimals of a value in the line of a rule; a value below 1 gets as many significant digits."""


class Refused:
    """Why nothing could be judged, for people and for CI systems."""

    def __init__(self, error: DecalError) -> None:
        self.error = error
        self.title = self.suite = "decal gate"
        self.seconds = 0.0
        self.notes: Names = ()

    def blocks(self) -> Blocks:
        """The error."""
        yield Checks(self.checks())

    def checks(self) -> tuple[Check, ...]:
        """The error in the place of a rule."""
        return (Check("rules", "", None, f"cannot judge: {self.error}"),)


class Gated(WrittenResult):
    """A gate's outcome, for formats to write. suite: the command, which CI systems name the rules after."""

    suite = "decal gate"

    def __init__(self, outcome: GateOutcome) -> None:
        super().__init__(outcome.evaluation)
        self.outcome, self.notes = outcome, outcome.evaluation.notes

    def sections(self) -> Blocks:
        """The rules, each with its outcome."""
        evaluation = self.evaluation
        rows, notes = worst_of_each(self.outcome.rows, _by_outcome, lambda row: f"{row.rule}, {row.model}")
        source = source_lines(replace(evaluation, notes=(*evaluation.notes, *notes)))
        yield Notes((*source, *without_limit_lines(evaluation, evaluation.reports[0].results)))
        yield Checks(checks_of(rows), places=len(evaluation.reports) > 1)

    def data(self) -> Document:
        """The data of the evaluation, and the rules."""
        return {**Evaluated(self.evaluation).data(), "gates": data_of(self.outcome.rows)}

    def rows(self) -> Records:
        """One row per rule, model and group; an interval has a column for each end."""
        names = [*keys_of(GateRow)]
        at = names.index("interval")
        yield [*names[:at], "low", "high", *names[at + 1 :]]
        for row in self.outcome.rows:
            values = [getattr(row, name) for name in names]
            yield [*values[:at], *ends_of(row), *values[at + 1 :]]

    def checks(self) -> tuple[Check, ...]:
        """The rules, for CI systems."""
        files = [item.path for item in self.evaluation.inputs if not item.path.startswith("<")]
        return checks_of(self.outcome.rows, "".join(files[:1]))


def checks_of(rows: Sequence[GateRow], file: str = "") -> tuple[Check, ...]:
    """Rules with their outcomes, for people and for CI systems."""
    checks = []
    for row in rows:
        low, high = ends_of(row)
        named = {"value": row.value, "low": low, "high": high, "bound": row.bound, "rows": row.rows}
        known = row.passed is not None
        numbers = tuple((name, value) for name, value in named.items() if known and value is not None)
        place = ", ".join(filter(None, (row.model, row.group)))
        checks.append(Check(row.rule, place, row.passed, _finding(row), row.answer, numbers, file))
    return tuple(checks)


def _by_outcome(rows: Sequence[GateRow]) -> Order[GateRow]:
    """What cannot be judged first, then what fails by most, last what passes by most."""
    n_of = Counter(row.passed for row in rows)
    counts = f"{n_of[None]:,} cannot be judged, {n_of[False]:,} failed, {n_of[True]:,} passed"

    def place(row: GateRow) -> tuple[bool, bool, float]:
        return row.passed is not None, bool(row.passed), row.distance or 0.0

    return place, f"outcome ({counts})"


def _finding(row: GateRow) -> str:
    """The value a rule met, how far it is from the bound, and what the rows show; or why it cannot be judged."""
    if row.passed is None or row.value is None:
        return f"cannot judge: {row.reason}"
    bound = "" if row.bound is None or "baseline" not in row.rule else f" (bound {plain(row.bound)})"
    if row.distance is None:
        return plain(row.value) + bound
    value = plain(row.value)
    if row.interval is not None and row.estimate is not None:
        sizes = [abs(each) for each in (row.estimate, *row.interval) if each]
        decimals = max(DIGITS, DIGITS - 1 - math.floor(math.log10(max(sizes, default=1))))
        value = rounded(row.estimate, row.interval, decimals)
    distance, side, shown = abs(row.distance), "at the bound", _shown(row)
    if distance and row.bound is not None:
        holds = row.distance > 0  # now, where a sequence failed at an earlier look
        where = "within" if holds else "over" if row.value > row.bound else "short"
        digits = 0 if distance.is_integer() else max(0, 1 - math.floor(math.log10(distance)))
        side = f"{where} by {short(round(distance, digits), digits)}"
    changed = "; the mean changed along the way, so that no interval holds" if row.interval is None and shown else ""
    return f"{value}{bound}: {side}{shown}{changed}"


def _shown(row: GateRow) -> str:
    """What the rows show of it, and how many would show more."""
    if row.shown is None or row.rows is None:
        return ""
    if row.since is not None and (row.distance or 0) > 0:
        return f" now, but the first {many(row.since, 'row')} clearly failed"
    if row.since is not None:
        return f", clearly so from row {row.since:,} on"
    rows = many(row.rows, "row")
    if row.shown:
        # A sequence is judged on one side with the whole risk, and its interval has half of it on each.
        low, high = row.interval or (math.nan, math.nan)
        by = " by a test of one side" if row.bound is not None and low < row.bound < high else ""
        return f", and {rows} {'shows' if row.rows == 1 else 'show'} it{by}"
    more = row.rows_needed
    needed = f" about {more:,}{row.clusters.words(more, row.rows)} would" if more else ""
    if row.answer == "passed":
        return f", which {rows} {'does' if row.rows == 1 else 'do'} not show{needed and ';'}{needed}"
    counts = ", and counts as passed" if row.passed else ""
    if row.interval is not None and row.bound is not None and not row.interval[0] <= row.bound <= row.interval[1]:
        return f"; {rows} {'shows' if row.rows == 1 else 'show'} it by itself, but not beside the other rules{counts}"
    return f"; not shown with {rows}{needed and f',{needed} show it'}{counts}"
