"""Verdicts as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Sequence

from decal_cli.analysis.evaluate import Report, Result
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Round, Verdict
from decal_cli.metrics import parse
from decal_cli.render import rounds
from decal_cli.render.ci import finding, place
from decal_cli.render.numbers import DASH, plain, short, span
from decal_cli.render.page import Page
from decal_cli.render.prose import advice_lines, data_lines, ladder, unknown_lines, worst_lines
from decal_cli.render.tables import ARROWS, corrected_lines, heading, undefined_reasons


def render_markdown(verdict: Verdict, page: Page) -> str:
    """A heading-free fragment that can be pasted anywhere."""
    evaluation = verdict.evaluation
    lines = [f"- {line}" for line in data_lines(evaluation)] + [""]
    if verdict.gates is not None:
        marks = {True: "pass", False: "**fail**", None: "**cannot judge**"}
        rows = [[marks[row.passed], f"`{row.rule}`", place(row), finding(row)] for row in verdict.gates]
        lines += markdown_table(["", "rule", "model", "outcome"], rows)
    elif verdict.advice is not None:
        for report, advice in zip(evaluation.reports, verdict.advice, strict=True):
            lines += _advice(report, advice)
            if verdict.rounds is not None and report.group is None:
                lines += _rounds(verdict.rounds[report.model])
    else:
        reports = evaluation.reports
        rows = []
        for key in reports[0].results:
            metric = parse(key).metric
            cells = [_cell(report.results[key]) for report in reports]
            rows.append([f"{metric.title} (`{key}`)", ARROWS[metric.better], *cells])
        lines += markdown_table(["metric", "", *(heading(report).replace("\n", ", ") for report in reports)], rows)
        said = [
            *worst_lines(reports),
            *undefined_reasons(reports),
            *corrected_lines(reports),
            *unknown_lines(evaluation),
        ]
        lines += [""] + [f"- {text}" for text in said]
    return "\n".join([*lines, "", f"`{evaluation.signature}`", ""])


def _advice(report: Report, advice: Advice) -> list[str]:
    rungs = [[name, short(value, 3)] for name, value in ladder(report)]
    lines = [f"**{heading(report).replace(chr(10), ', ')}: {advice.action}**", ""]
    lines += [*markdown_table(["decisions", "expected utility per 1,000"], rungs), ""]
    for indent, style, text in advice_lines(report, advice):
        listed = indent > 3
        if not listed and lines[-1]:
            lines.append("")
        lines.append(f"- {text}" if listed else f"**{text}**" if style == "bold" else text)
    return [*lines, ""]


def _rounds(found: Sequence[Round]) -> list[str]:
    lines = []
    for number, one in enumerate(found, 1):
        lines += [rounds.intro(number, one), "", *markdown_table(rounds.HEADINGS, rounds.rows(one)), ""]
        lines += [f"- {line}" for line in (*rounds.reasons(one), *rounds.conclusion(found, number))] + [""]
    return lines


def _cell(result: Result) -> str:
    if result.value is None:
        return DASH
    value = short(result.value, 4) if abs(result.value) < 10 else plain(result.value)
    return " ".join(filter(None, (value, span(result.interval, 4))))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [_row(head), _row(["---"] * len(head))]
    return lines + [_row([cell.replace("|", "\\|") for cell in row]) for row in rows]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
