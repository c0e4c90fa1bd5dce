"""What a pack shows beside its measures: scores by outcome, gaps between groups, and its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.packs import QUANTILES, Gap, Pack
from decal_cli.numbers import percent, plain
from decal_cli.render.blocks import Block, Cell, Column, Heading, Notes, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.measurements import name_of
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Positive, Share


class OutcomeData(TypedDict):
    """The scores of the rows of one label; quantiles: by their share, such as "0.05"."""

    label: int
    rows: Positive
    mean: Share
    quantiles: dict[str, Share]


class GapData(TypedDict):
    """The largest difference of a metric between two groups of a column; interval: for all pairs of groups at once."""

    model: str
    column: str
    metric: str
    high: str
    low: str
    difference: float
    interval: Ends | None
    groups: Positive
    clear: bool


class PackData(TypedDict):
    """The pack whose measures were asked for; gaps: between groups, where it compares them."""

    name: str
    gaps: NotRequired[list[GapData]]


def pack_data(pack: Pack, gaps: Sequence[Gap]) -> PackData:
    """A pack as JSON has it."""
    document: PackData = {"name": pack.name}
    if pack.compares_groups:
        document["gaps"] = [
            {
                "model": gap.model,
                "column": gap.column,
                "metric": gap.metric,
                "high": gap.high,
                "low": gap.low,
                "difference": gap.difference,
                "interval": pair(gap.interval),
                "groups": gap.groups,
                "clear": gap.clear,
            }
            for gap in gaps
        ]
    return document


def outcome_data(report: Report) -> list[OutcomeData]:
    """Scores by outcome as JSON has them."""
    return [
        {
            "label": each.label,
            "rows": each.rows,
            "mean": each.mean,
            "quantiles": {f"{share:g}": score for share, score in zip(QUANTILES, each.quantiles, strict=True)},
        }
        for each in report.by_outcome
    ]


def pack_blocks(evaluation: Evaluation) -> Iterator[Block]:
    """All that a pack shows below its measures."""
    pack = evaluation.pack
    if pack is None:
        return
    shown = [report for report in evaluation.reports if report.by_outcome]
    if shown:
        yield Heading("Scores by outcome")
        yield _outcome_table(shown)
    for model in dict.fromkeys(gap.model for gap in evaluation.gaps):
        of_model = [gap for gap in evaluation.gaps if gap.model == model]
        several = len({report.model for report in evaluation.reports}) > 1
        yield Heading("The largest gaps between groups" + (f": {model}" if several else ""))
        yield _gap_table(of_model, pack)
    if evaluation.gaps:
        yield Notes((_gap_note(evaluation),), quiet=True)
    yield Notes(pack.notes, quiet=True)


def _outcome_table(reports: Sequence[Report]) -> Table:
    heads = [Column("model", words=True)] if len(reports) > 1 else []
    heads += [Column("label"), Column("rows"), Column("mean")]
    heads += [Column(percent(share)) for share in QUANTILES]
    rows = []
    for report in reports:
        for each in report.by_outcome:
            cells = [words(name_of(report))] if len(reports) > 1 else []
            cells += [Cell((str(each.label),)), Cell((f"{each.rows:,}",))]
            rows.append(Row((*cells, number(each.mean), *(number(score) for score in each.quantiles))))
    return Table(tuple(heads), tuple(rows))


def _gap_table(gaps: Sequence[Gap], pack: Pack) -> Table:
    by_column = len({gap.column for gap in gaps}) > 1
    heads = [Column("column", words=True)] if by_column else []
    heads += [Column("metric", words=True), Column("highest", words=True), Column("lowest", words=True)]
    heads += [Column("gap"), Column("beyond noise", words=True)]
    rows = []
    for gap in gaps:
        cells = [words(gap.column)] if by_column else []
        cells += [words(pack.measures[gap.metric]), words(gap.high), words(gap.low)]
        noise = "unknown" if gap.interval is None else "yes" if gap.clear else "no"
        rows.append(Row((*cells, number(gap.difference, gap.interval), words(noise))))
    return Table(tuple(heads), tuple(rows))


def _gap_note(evaluation: Evaluation) -> str:
    if not evaluation.plan.intervals:
        return "gap: the highest value less the lowest"
    most = max(gap.groups for gap in evaluation.gaps)
    pairs = most * (most - 1) // 2
    sure = plain(100 * evaluation.plan.confidence)
    together = f"; it holds for all pairs of groups of a column at once, up to {pairs:,}" if pairs > 1 else ""
    return f"gap: the highest value less the lowest, with its {sure} % interval{together}; beyond noise: it is above 0"
