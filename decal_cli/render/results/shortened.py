"""Of many groups, a table shows the worst and says where the rest is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.hints import Hint, said
from decal_cli.metrics import parse

MAX_GROUPS = 100
"""Groups of one model that a table shows."""
N_WORST = 20
"""Of more groups, so many are shown."""
IN_FULL = f"{Hint('format', 'json')} or csv"


T = TypeVar("T")
Order = tuple[Callable[[T], Any], str]
"""What groups are sorted by, the worst first, and the same in words."""


def worst_of_each(
    results: Sequence[Any],
    order_of: Callable[[Sequence[Any]], Order[Any] | None],
    whose: Callable[[Any], str] = lambda result: str(result.model),
    in_full: str = IN_FULL,
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Of each model, or whatever else results are of, all groups, or of more than a table shows the worst, and a note.

    What they say of all rows stays. order_of: the order of many groups of one model; None keeps all of them. in_full:
    what shows them all.
    """
    by_name: dict[str, list[Any]] = {}
    for result in results:
        by_name.setdefault(whose(result), []).append(result)
    shown: list[Any] = []
    notes: list[str] = []
    for name, of_name in by_name.items():
        groups = [result for result in of_name if result.group is not None]
        order = order_of(groups) if len(groups) > MAX_GROUPS else None
        if order is None:
            shown += of_name
            continue
        place, by = order
        shown += [result for result in of_name if result.group is None] + sorted(groups, key=place)[:N_WORST]
        notes.append(
            f"{name + ': ' if name else ''}the table shows the {N_WORST} worst of {len(groups):,} groups by {by};"
            f" {said(in_full)} has all of them"
        )
    return tuple(shown), tuple(notes)


def lowest_first(value: float | None) -> tuple[bool, float]:
    """To sort by; what has no value comes last."""
    return value is None, value or 0.0


def shortened(evaluation: Evaluation, in_full: str = IN_FULL) -> Evaluation:
    """With the worst groups of a model that has more than a table shows, worst first, and a note about the rest."""
    reports, notes = worst_of_each(evaluation.reports, _by_metric, in_full=in_full)
    return evaluation if not notes else replace(evaluation, reports=reports, notes=(*evaluation.notes, *notes))


def _by_metric(reports: Sequence[Report]) -> Order[Report] | None:
    """By what acting on the score loses, else by the first metric that has a best."""
    defined = [
        key
        for key in reports[0].results
        if parse(key).declared.better in ("lower", "higher") and any(r.results[key].value is not None for r in reports)
    ]
    key = next((key for key in ("regret", "regret_calibration") if key in defined), next(iter(defined), None))
    if key is None:
        return None
    metric = parse(key).declared
    sign = -1 if metric.better == "lower" else 1

    def place(report: Report) -> tuple[bool, float]:
        value = report.results[key].value
        return lowest_first(None if value is None else sign * value)

    return place, metric.title
