"""Sweeps as text and data: a table with sparklines, long CSV, JSON, and the same rows for Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from decal_cli.analysis.sweep import Sweep, Swept
from decal_cli.curves import Curve
from decal_cli.render.document import provenance
from decal_cli.render.numbers import DASH, short, span
from decal_cli.render.page import Page
from decal_cli.render.prose import data_lines
from decal_cli.render.tables import console, written

if TYPE_CHECKING:
    from rich.table import Table as RichTable

SHOWN = 11
"""At most so many thresholds in the table, unless all are asked for."""
SPARKS = "▁▂▃▄▅▆▇█"
BLOCKS = {
    "loss": "Brier curves: utility lost per decision, (1 - t*) FN + t* FP",
    "regret": "Regret and gains: utility per decision",
    "decision": "Decisions: net benefit in true positives per row, the threshold as a score, the rest as utility",
}
COLUMNS = ("model", "group", "curve", "threshold", "value", "low", "high", "unit")


def render_sweep(sweep: Sweep, page: Page, everything: bool = False) -> str:
    """The table: thresholds down, curves across, block by block for each model and group."""
    from rich.rule import Rule
    from rich.text import Text

    target = console(page.width, page.color)
    for line in data_lines(sweep.head):
        target.print(line, markup=False)
    target.print("every unit task of t*: u_delta = 1, a false positive costs t*, a false negative 1 - t*", markup=False)
    if sweep.head.plan.intervals:
        level = f"{100 * sweep.head.plan.confidence:g}"
        target.print(f"[..]: {level} % intervals, each for its own t*", markup=False)
    rows = _chosen(sweep, everything)
    for report in sweep.reports:
        target.print()
        target.print(Rule(Text(report.name, style="bold"), align="left", style="dim", characters="─"))
        for block, title in BLOCKS.items():
            curves = [curve for curve in report.curves.values() if curve.kind.block == block]
            target.print()
            target.print(title, markup=False, style="bold")
            for number, table in enumerate(_tables(sweep, curves, rows, page.width)):
                target.print(*[""] * bool(number), table, sep="\n")
        target.print()
        for line in area_lines(report):
            target.print(line, markup=False)
        for line in _reasons(report):
            target.print(line, markup=False, style="dim")
    target.print()
    target.print(sweep.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)


def _chosen(sweep: Sweep, everything: bool) -> list[int]:
    """Which thresholds to print: the ends, and those nearest to round numbers between them."""
    at = sweep.grid.thresholds
    if everything or len(at) <= SHOWN:
        return list(range(len(at)))
    for step in (0.01, 0.02, 0.05, 0.1, 0.2):
        inside = [step * i for i in range(round(1 / step)) if at[0] < step * i < at[-1]]
        if len(inside) <= SHOWN - 2:
            break
    nearest = {int(np.abs(at - t).argmin()) for t in inside}
    return sorted(nearest | {0, len(at) - 1})


def _tables(sweep: Sweep, curves: list[Curve], rows: list[int], width: int) -> Iterator[RichTable]:
    """As few tables as fit the page, of about as many columns each."""
    wide = console(10_000, color=False)
    for count in range(1, len(curves) + 1):
        size = math.ceil(len(curves) / count)
        starts = range(0, len(curves), size)
        tables = [_table(sweep, curves[start : start + size], rows) for start in starts]
        if size == 1 or max(wide.measure(table).maximum for table in tables) <= width:
            yield from tables
            return


def _table(sweep: Sweep, curves: list[Curve], rows: list[int]) -> RichTable:
    from rich.table import Table as RichTable

    table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("t*", no_wrap=True)
    for curve in curves:
        heading = "\n".join([*textwrap.wrap(curve.kind.heading, 16, break_on_hyphens=False), sparkline(curve.value)])
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for k in rows:
        table.add_row(short(float(sweep.grid.thresholds[k]), 3), *(_cell(curve, k) for curve in curves))
    if sweep.grid.prior is not None:
        table.add_row()
        table.add_row("prior", *(_expected(curve) for curve in curves))
    return table


def _cell(curve: Curve, k: int) -> str:
    value = float(curve.value[k])
    if math.isnan(value):
        return DASH
    if curve.low is None or curve.high is None or math.isnan(float(curve.low[k])):
        return short(value, 4)
    return f"{short(value, 4)}\n{span((float(curve.low[k]), float(curve.high[k])), 4)}"


def _expected(curve: Curve) -> str:
    if curve.expectation is None:
        return DASH
    return "\n".join(filter(None, (short(curve.expectation, 4), span(curve.expectation_interval, 4))))


def sparkline(values: np.ndarray, width: int = 12) -> str:
    """The course of a curve in a few blocks, from its lowest to its highest value; blank where undefined."""
    some = values[np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)]
    if np.isnan(some).all():
        return ""
    low, high = np.nanmin(some), np.nanmax(some)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if math.isnan(v) else SPARKS[round((v - low) * scale)] for v in some)


def area_lines(report: Swept) -> Iterator[str]:
    """Twice the areas under the Brier curves, which are Brier scores, and what lies between them."""
    brier = {name: curve.brier for name, curve in report.curves.items() if curve.brier is not None}
    now, calibrated = brier["brier"], brier["brier_calibrated"]
    yield (
        f"2 x area under the Brier curve = Brier score: {short(now, 4)} as it is, {short(calibrated, 4)} calibrated; "
        f"between them miscalibration, {short(now - calibrated, 4)}"
    )
    plug_in = brier.get("brier_regions_plug_in")
    if plug_in is None:
        return
    parts = [f"{short(calibrated - plug_in, 4)} plug-in"]
    if "brier_regions" in brier:
        parts.append(f"{short(calibrated - brier['brier_regions'], 4)} held out")
    loss = report.grouping_loss
    parts.append(f"grouping loss {DASH if loss is None else short(loss, 4)}")
    yield f"2 x area between calibrated and by region: {', '.join(parts)}"
    yield (
        "   (plug-in: frequencies of leaves on their own rows, so their noise counts as knowledge; the grouping loss "
        "takes that noise off; held out: what was learned on other rows, with what learning costs)"
    )


def _reasons(report: Swept) -> Iterator[str]:
    for curve in report.curves.values():
        if curve.reason is not None:
            yield f"{DASH} {curve.kind.title.lower()}: {curve.reason}"


def sweep_rows(sweep: Sweep) -> dict[str, list[Any]]:
    """Long columns: one row per model, group, curve and threshold; those without a threshold are expectations."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for report in sweep.reports:
        for name, curve in report.curves.items():
            points: list[tuple[Any, ...]] = [
                (float(t), _number(curve.value, k), _number(curve.low, k), _number(curve.high, k))
                for k, t in enumerate(sweep.grid.thresholds)
            ]
            if curve.expectation is not None:
                points.append((None, curve.expectation, *(curve.expectation_interval or (None, None))))
            for point in points:
                row = (report.model, report.group, name, *point, curve.kind.unit)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    return columns


def render_sweep_csv(sweep: Sweep) -> str:
    """The long rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = sweep_rows(sweep)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def sweep_document(sweep: Sweep) -> dict[str, Any]:
    """The JSON document: one report flat, several under "reports", each whole in itself."""
    prior = sweep.grid.prior
    head = {**provenance(sweep.head), "signature": sweep.signature}
    reports = []
    for report in sweep.reports:
        swept = {
            "u_delta": 1,
            "thresholds": [float(t) for t in sweep.grid.thresholds],
            "prior": None if prior is None else prior.name,
            "grouping_loss": report.grouping_loss,
            "curves": {name: _curve(curve) for name, curve in report.curves.items()},
        }
        names = ("model", "group", "rows", "positives", "dropped")
        reports.append({**head, **{name: getattr(report, name) for name in names}, "sweep": swept})
    return reports[0] if len(reports) == 1 else {**head, "reports": reports}


def render_sweep_json(sweep: Sweep) -> str:
    """Full precision, no NaN."""
    return json.dumps(sweep_document(sweep), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _curve(curve: Curve) -> dict[str, Any]:
    ends = curve.expectation_interval
    expected = {"value": curve.expectation, "interval": None if ends is None else list(ends)}
    return {
        "title": curve.kind.title,
        "unit": curve.kind.unit,
        "source": curve.kind.source,
        "value": _numbers(curve.value),
        "low": None if curve.low is None else _numbers(curve.low),
        "high": None if curve.high is None else _numbers(curve.high),
        "brier": curve.brier,
        "expectation": None if curve.expectation is None else expected,
        "reason": curve.reason,
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(values, k) for k in range(len(values))]


def _number(values: np.ndarray | None, k: int) -> float | None:
    return None if values is None or math.isnan(float(values[k])) else float(values[k])
