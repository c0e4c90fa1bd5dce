"""Comparisons as text: for the terminal, as Markdown, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from decal_cli.analysis.compare import Comparison, Contest, Difference
from decal_cli.analysis.evaluate import Result
from decal_cli.analysis.splice import HeldOut
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import quantile
from decal_cli.render import contest as words
from decal_cli.render.document import provenance
from decal_cli.render.markdown import markdown_table
from decal_cli.render.numbers import DASH, short
from decal_cli.render.page import Page
from decal_cli.render.prose import data_lines
from decal_cli.render.tables import ARROWS, console, width_of, written

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_TITLE = 36
"""Columns of a metric's title; longer ones wrap."""
_STYLES = {True: "yellow", False: "green", None: ""}


def render_table(comparison: Comparison, page: Page) -> str:
    """Who wins in words first, then the figures; laid out for the page's width."""
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.text import Text

    target = console(page.width, page.color)
    for line in [*data_lines(comparison.evaluation), words.sides_line(comparison)]:
        target.print(line, markup=False)
    target.print()
    for heading, text in words.summary(comparison):
        target.print(Text.assemble((f"{heading}: ", "bold"), text), soft_wrap=False)
    if len(comparison.contests) > 1:
        target.print()
        target.print(_plain_table(words.group_headings(comparison), words.group_rows(comparison)))
    for contest in comparison.contests:
        target.print()
        if len(comparison.contests) > 1:
            name = "all rows" if contest.group is None else f"{contest.group}, {contest.rows:,} rows"
            target.print(Rule(Text(name, style="bold"), align="left", style="dim", characters="─"))
        target.print(_metric_table(comparison, contest, page.width))
        if contest.thresholds.leads:
            target.print()
            target.print(_plain_table(words.LEAD_HEADINGS, words.lead_rows(comparison, contest)))
        for line in _reasons(contest):
            target.print(Padding(Text(line, style="dim"), (0, 0, 0, 0)))
    target.print()
    target.print(comparison.evaluation.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)


def _plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(name)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _metric_table(comparison: Comparison, contest: Contest, width: int) -> RichTable:
    """Names and intervals in line where they fit; else intervals below, else A and B for the names."""
    layouts = [(names, separator) for names in (comparison.models, ("A", "B")) for separator in (" ", "\n")]
    order = [layouts[0], layouts[2], layouts[1], layouts[3]]
    for names, separator in order:
        table = _table(contest, names, separator)
        if width_of(table) <= width:
            return table
    return table


def _table(contest: Contest, names: tuple[str, str], separator: str) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("metric", max_width=_TITLE)
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("B - A", justify="right", no_wrap=True)
    table.add_column("who wins", no_wrap=True)
    family = ""
    for key, found in contest.differences.items():
        metric = parse(key).metric
        if found.a.value is None and found.b.value is None and not metric.shown:
            continue
        if metric.family != family:
            if family:
                table.add_row()
            family = metric.family
            table.add_row(Text(family, style="dim"))
        label = metric.title if key == metric.name else f"{metric.title} {key.removeprefix(metric.name)}"
        who = Text(words.verdict_words(found, names, separator), style=_STYLES[found.by_chance] if found.better else "")
        cells = [Text(text) for text in (_value(found.a), _value(found.b), words.difference_cell(found, separator))]
        table.add_row(Text(label), ARROWS[metric.better], *cells, who)
    return table


def _value(found: Result) -> str:
    return DASH if found.value is None else short(found.value, 4)


def _reasons(contest: Contest) -> list[str]:
    """Why a cell shows a dash, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for key, found in contest.differences.items():
        if found.difference.reason is not None:
            reasons.setdefault(found.difference.reason, []).append(key)
    return [f"{DASH} {', '.join(keys)}: {reason}" for reason, keys in reasons.items()]


def render_markdown(comparison: Comparison, page: Page) -> str:
    """A heading-free fragment that can be pasted anywhere."""
    lines = [f"- {line}" for line in [*data_lines(comparison.evaluation), words.sides_line(comparison)]]
    lines += ["", *(f"- **{heading}:** {text}" for heading, text in words.summary(comparison))]
    if len(comparison.contests) > 1:
        lines += ["", *markdown_table(words.group_headings(comparison), words.group_rows(comparison))]
    for contest in comparison.contests:
        if len(comparison.contests) > 1:
            name = "All rows" if contest.group is None else f"{contest.group}, {contest.rows:,} rows"
            lines += ["", f"**{name}**"]
        rows = []
        for key, found in contest.differences.items():
            metric = parse(key).metric
            cells = [_value(found.a), _value(found.b), words.difference_cell(found)]
            who = words.verdict_words(found, comparison.models)
            rows.append([f"{metric.title} (`{key}`)", ARROWS[metric.better], *cells, who])
        lines += ["", *markdown_table(["metric", "", *comparison.models, "B - A", "who wins"], rows)]
        if contest.thresholds.leads:
            lines += ["", *markdown_table(words.LEAD_HEADINGS, words.lead_rows(comparison, contest))]
        reasons = _reasons(contest)
        lines += ["", *(f"- {text}" for text in reasons)] if reasons else []
    return "\n".join([*lines, "", f"`{comparison.evaluation.signature}`", ""])


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document: what every report says of its inputs, and under "comparison" the contests and the splice."""
    whole = provenance(comparison.evaluation)
    if whole["intervals"] is not None:
        whole["intervals"]["cells"] = comparison.cells
    return {
        **whole,
        "comparison": {
            "models": list(comparison.models),
            "contests": [_contest(comparison, contest) for contest in comparison.contests],
            "splice": _splice(comparison),
        },
    }


def render_json(comparison: Comparison) -> str:
    """Full precision, no NaN."""
    return json.dumps(document(comparison), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _contest(comparison: Comparison, contest: Contest) -> dict[str, Any]:
    at = contest.thresholds
    dominates = at.curves.dominates
    return {
        "group": contest.group,
        "rows": contest.rows,
        "positives": contest.positives,
        "metrics": {key: _difference(comparison, found) for key, found in contest.differences.items()},
        "thresholds": {
            "dominates": None if dominates is None else comparison.name(dominates),
            "band": at.reach if math.isfinite(at.reach) else None,
            "crossings_on_these_rows": len(at.curves.zeros),
            "crossings": [
                {"threshold": crossing.threshold, "below": comparison.name(crossing.below)} for crossing in at.crossings
            ],
            "ahead": [
                {
                    "model": comparison.name(lead.side),
                    "low": lead.low,
                    "high": lead.high,
                    "most": lead.most,
                    "error": lead.error,
                    "at": lead.at,
                }
                for lead in at.leads
            ],
        },
    }


def _difference(comparison: Comparison, found: Difference) -> dict[str, Any]:
    return {
        "a": found.a.value,
        "b": found.b.value,
        "difference": {
            "value": found.difference.value,
            "interval": None if found.difference.interval is None else list(found.difference.interval),
            "reason": found.difference.reason,
        },
        "method": found.method,
        "better": None if found.better is None else comparison.name(found.better),
        "by_chance": found.by_chance,
    }


def _splice(comparison: Comparison) -> dict[str, Any]:
    made = comparison.splice
    if made is None:
        return {"threshold": None, "reason": comparison.no_splice}
    reach = quantile(comparison.evaluation.plan.confidence)

    def held_out(found: HeldOut | None) -> dict[str, Any] | None:
        if found is None:
            return None
        mean, error = found.difference
        ends = [mean - reach * error, mean + reach * error]
        return {"value": found.value, "single": comparison.name(found.single), "difference": mean, "interval": ends}

    return {
        "threshold": made.cut.threshold,
        "below": comparison.name(made.cut.below),
        "above": comparison.name("a" if made.cut.below == "b" else "b"),
        "brier": held_out(made.brier),
        "expected_utility": held_out(made.utility),
        "folds_agreeing": made.agreeing,
    }


def render_csv(comparison: Comparison) -> str:
    """One line per group and metric."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["model_a", "model_b", "group", "metric", "a", "b", "difference", "low", "high", "better", "by_chance"]
    writer.writerow([*head, "method", "reason"])
    for contest in comparison.contests:
        for key, found in contest.differences.items():
            ends = found.difference.interval or (None, None)
            better = None if found.better is None else comparison.name(found.better)
            chance = None if found.by_chance is None else str(found.by_chance).lower()
            row = [*comparison.models, contest.group, key, found.a.value, found.b.value, found.difference.value]
            writer.writerow([*row, *ends, better, chance, found.method, found.difference.reason])
    return out.getvalue()


COMPARE_RENDERERS: dict[str, Callable[[Comparison, Page], str]] = {
    "table": render_table,
    "json": lambda comparison, page: render_json(comparison),
    "markdown": render_markdown,
    "csv": lambda comparison, page: render_csv(comparison),
}
"""By the name of the format."""
