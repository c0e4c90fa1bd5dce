"""The terminal table: metrics down, models and groups across, laid out for the width there is."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decal_cli.analysis.evaluate import Report, Result
from decal_cli.metrics import Metric, parse
from decal_cli.render.numbers import DASH, short, span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0", "one": "→1", "neither": ""}


@dataclass(frozen=True)
class Layout:
    """How a cell is written: decimals, and whether its interval stands on a line of its own."""

    decimals: int
    stacked: bool

    def cell(self, result: Result) -> str:
        """A value with its interval, or a dash."""
        if result.value is None:
            return DASH
        parts = (short(result.value, self.decimals), span(result.interval, self.decimals))
        return ("\n" if self.stacked else " ").join(filter(None, parts))


LAYOUTS = (Layout(4, False), Layout(4, True), Layout(3, True))


def console(width: int, color: bool) -> Console:
    """A console that writes into memory."""
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="auto" if color else None,
        highlight=False,
        legacy_windows=False,
    )


def written(target: Console) -> str:
    """What was printed to such a console, without spaces at the ends of lines."""
    text = target.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def metric_tables(reports: Sequence[Report], width: int) -> list[RichTable]:
    """One table where all reports fit side by side, else as few as it takes."""
    for layout in LAYOUTS:
        table = _table(reports, layout)
        if width_of(table) <= width:
            return [table]
    layout = LAYOUTS[1]
    fits = max((k for k in range(1, len(reports)) if width_of(_table(reports[:k], layout)) <= width), default=1)
    most = math.ceil(len(reports) / math.ceil(len(reports) / fits))
    return [_table(reports[start : start + most], layout) for start in range(0, len(reports), most)]


def heading(report: Report) -> str:
    """A report's column heading."""
    return report.model if report.group is None else f"{report.model}\n{report.group}"


def _table(reports: Sequence[Report], layout: Layout) -> RichTable:
    from rich.table import Table as RichTable

    table = RichTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    for report in reports:
        table.add_column(heading(report), justify="right", no_wrap=True)
    family = ""
    for key in reports[0].results:
        metric = parse(key).metric
        results = [report.results[key] for report in reports]
        if all(result.value is None for result in results) and not _worth_a_row(metric):
            continue
        if metric.family != family:
            if family:
                table.add_row()
            family = metric.family
            table.add_row(f"[dim]{family}[/dim]")
        table.add_row(_label(key, metric), ARROWS[metric.better], *map(layout.cell, results))
    return table


def _worth_a_row(metric: Metric) -> bool:
    """A metric that is undefined everywhere keeps its row, with dashes, where people look for it."""
    return metric.shown


def _label(key: str, metric: Metric) -> str:
    return metric.title if key == metric.name else f"{metric.title} {key.removeprefix(metric.name)}"


def width_of(table: RichTable) -> int:
    """Columns that a table takes."""
    return table.__rich_measure__(_MEASURE.get(), _MEASURE.get().options).maximum


class _Measure:
    """A wide console to measure tables on, made once."""

    def __init__(self) -> None:
        self._console: Console | None = None

    def get(self) -> Console:
        """The console."""
        if self._console is None:
            self._console = console(10_000, color=False)
        return self._console


_MEASURE = _Measure()


def corrected_lines(reports: Sequence[Report]) -> list[str]:
    """Which values lie outside of their own intervals, and why that is no mistake."""
    names = [
        parse(key).metric.title
        for report in reports
        for key, result in report.results.items()
        if result.value is not None
        and result.interval is not None
        and not result.interval[0] <= result.value <= result.interval[1]
    ]
    if not names:
        return []
    listed = ", ".join(dict.fromkeys(names))
    return [f"Noise alone moves {listed}; the interval is corrected for that, and so need not hold the value."]


def undefined_reasons(reports: Sequence[Report]) -> list[str]:
    """Why cells show a dash, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for report in reports:
        for key, result in report.results.items():
            if result.value is None and result.reason is not None:
                where = key if len(reports) == 1 else f"{key} of {heading(report)}".replace("\n", " in ")
                reasons.setdefault(result.reason, []).append(where)
    lines = []
    for reason, places in reasons.items():
        shown = (
            ", ".join(dict.fromkeys(place.split(" of ")[0] for place in places))
            if len(places) > 4
            else ", ".join(places)
        )
        lines.append(f"{DASH} {shown}: {reason}")
    return lines
