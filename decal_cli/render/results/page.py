"""The page that `decal report` writes: recommendation, pictures, every metric with its explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.recommend import Recommendation
from decal_cli.metrics import parse
from decal_cli.render.blocks import Block, Cell, Folded, Heading, Notes, Paragraph, Picture, Signature, Source, Table
from decal_cli.render.results.advice import conclusion_of, constant_line, walk_of
from decal_cli.render.results.explained import explanation, metric_facts
from decal_cli.render.results.ladder import ladder
from decal_cli.render.results.measurements import metric_notes, metric_table, name_of
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import source_lines, title_of


class ReportPage:
    """An evaluation, what it recommends, and SVG pictures by their headings; recommendation: None without a task."""

    def __init__(
        self, evaluation: Evaluation, recommendation: Recommendation | None, pictures: Mapping[str, bytes]
    ) -> None:
        self.evaluation = evaluation
        self.recommendation = recommendation
        self.pictures = pictures
        self.title = title_of(evaluation)

    def blocks(self) -> Iterator[Block]:
        """The most wanted first."""
        evaluation = shortened(self.evaluation)
        yield Source(tuple(source_lines(evaluation)))
        yield from self._advice()
        for name, picture in self.pictures.items():
            yield Picture(name, svg=picture)
        yield Heading("Measurements", level=1)
        text = "Open a metric's name for its formula, range, source and how its interval is made."
        yield Notes((text,), quiet=True)
        yield _explained(metric_table(evaluation.reports))
        yield from metric_notes(evaluation)
        yield Signature(evaluation.signature)

    def _advice(self) -> Iterator[Block]:
        if self.recommendation is None:
            yield Paragraph(
                "No decision was named, so nothing is recommended: give --threshold, --utility, costs or --odds."
            )
            return
        yield Heading("Recommendation", level=1)
        for report, advice in self.recommendation.advised:
            yield Heading(name_of(report))
            first = constant_line(report, advice)
            if first is not None:
                yield Paragraph(first)
            yield conclusion_of(report, advice)
            yield ladder(report.results)
            yield Folded("How this was concluded", (walk_of(advice),))


def _explained(table: Table) -> Table:
    """The table of metrics, each name with its explanation."""
    rows = []
    for row in table.rows:
        name, *rest = row.cells
        rows.append(replace(row, cells=(_with_details(name), *rest)))
    return replace(table, rows=tuple(rows))


def _with_details(name: Cell) -> Cell:
    metric = parse(name.code).declared
    return replace(name, details=lambda: explanation(metric.text, metric_facts(metric)))
