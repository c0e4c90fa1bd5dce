"""Verdicts for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decal_cli.analysis.recommend import Round, Verdict
from decal_cli.render import rounds
from decal_cli.render.ci import finding, place
from decal_cli.render.numbers import plain
from decal_cli.render.page import Page
from decal_cli.render.prose import advice_lines, data_lines, ladder_lines, unknown_lines, worst_lines
from decal_cli.render.tables import console, corrected_lines, metric_tables, undefined_reasons, width_of, written

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


def render_table(verdict: Verdict, page: Page) -> str:
    """An evaluation, a recommendation or a gate's outcome, laid out for the page's width."""
    if verdict.gates is not None:
        return _gates(verdict, page)
    if verdict.advice is not None:
        return _advice(verdict, page)
    return _evaluation(verdict, page)


def _evaluation(verdict: Verdict, page: Page) -> str:
    target = console(page.width, page.color)
    for line in data_lines(verdict.evaluation):
        target.print(line, markup=False)
    reports = verdict.evaluation.reports
    for table in metric_tables(reports, page.width):
        target.print()
        target.print(table)
    target.print()
    for line in worst_lines(reports):
        # Never wrapped: it is there to be copied.
        target.print(line, markup=False, soft_wrap=True)
    for line in [*undefined_reasons(reports), *corrected_lines(reports), *unknown_lines(verdict.evaluation)]:
        target.print(line, markup=False, style="dim")
    target.print(verdict.evaluation.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)


def _advice(verdict: Verdict, page: Page) -> str:
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    target = console(page.width, page.color)
    for line in data_lines(verdict.evaluation):
        target.print(line, markup=False)
    pairs = list(zip(verdict.evaluation.reports, verdict.advice or (), strict=True))
    if len(pairs) > 1:
        summary = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for name in ("model", "group", "action", "method", "gain per 1,000 decisions"):
            summary.add_column(name, justify="right" if "gain" in name else "left")
        for report, advice in pairs:
            gain = "" if advice.gain is None else plain(1000 * advice.gain)
            summary.add_row(report.model, report.group or "", advice.action, advice.method or "", gain)
        target.print()
        target.print(summary)
    for report, advice in pairs:
        target.print()
        name = report.model if report.group is None else f"{report.model}, {report.group}"
        target.print(Rule(Text(name, style="bold"), align="left", style="dim", characters="─"))
        for indent, style, text in [*ladder_lines(report), (0, "", ""), *advice_lines(report, advice)]:
            target.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
        if verdict.rounds is not None and report.group is None:
            _rounds(target, verdict.rounds[report.model])
    target.print()
    target.print(verdict.evaluation.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)


def _rounds(target: Console, found: Sequence[Round]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for number, one in enumerate(found, 1):
        target.print()
        target.print(Text(rounds.intro(number, one)))
        target.print()
        table = _attempts(one, target.width)
        # Wider than the page rather than cut off: names and intervals are there to be read.
        page = target.width
        target.width = max(page, width_of(table))
        target.print(table)
        target.width = page
        for line in rounds.reasons(one):
            target.print(Text(line, style="dim"))
        target.print()
        for line in rounds.conclusion(found, number):
            target.print(Padding(Text(line), (0, 0, 0, 2)))


def _attempts(found: Round, width: int) -> RichTable:
    """The first layout that fits: columns left out, then intervals beneath their values, then on two lines each."""
    rows = rounds.rows(found)
    empty = [name for name, *cells in zip(rounds.HEADINGS, *rows, strict=True) if not any(cells)]
    narrow = ("processor", "kind", *empty)
    for left_out, breaks in (
        ((), ()),
        (("processor",), ()),
        (narrow, ()),
        (narrow, (" [",)),
        (narrow, (" [", ", ")),
    ):
        table = _attempt_table(rows, left_out, breaks)
        if width_of(table) <= width:
            break
    return table


def _attempt_table(rows: Sequence[Sequence[str]], left_out: Sequence[str], breaks: Sequence[str]) -> RichTable:
    """breaks: where a cell of numbers goes on in the next line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    shown = [k for k, name in enumerate(rounds.HEADINGS) if name not in left_out]
    words = [name in ("method", "kind") for name in rounds.HEADINGS]
    for k in shown:
        table.add_column(rounds.HEADINGS[k], justify="left" if words[k] else "right", no_wrap=True)
    for cells in rows:
        broken = (cells[k] if words[k] else _broken(cells[k], breaks) for k in shown)
        table.add_row(*map(Text, broken), style="bold" if cells[0].startswith("→") else "")
    return table


def _broken(cell: str, breaks: Sequence[str]) -> str:
    for at in breaks:
        cell = cell.replace(at, f"{at.rstrip(' [')}\n{'[' if '[' in at else ''}")
    return cell


def _gates(verdict: Verdict, page: Page) -> str:
    from rich.text import Text

    target = console(page.width, page.color)
    styles = {True: ("PASS", "green"), False: ("FAIL", "bold red"), None: ("????", "bold yellow")}
    for row in verdict.gates or ():
        mark, style = styles[row.passed]
        where = f" [{place(row)}]" if len(verdict.evaluation.reports) > 1 and place(row) else ""
        target.print(Text.assemble((mark, style), f" {row.rule}{where}  {finding(row)}"), soft_wrap=True)
    target.print(verdict.evaluation.signature, markup=False, style="dim", soft_wrap=True)
    return written(target)
