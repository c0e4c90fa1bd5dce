"""What `decal evaluate` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.reference import Reference
from decal_cli.render.blocks import Block, Signature, Source
from decal_cli.render.results.by_class import ByClassData, by_class_data, cell_rows, class_blocks
from decal_cli.render.results.capacity import WithPlaces, places_data
from decal_cli.render.results.measurements import MetricKey, ResultData, metric_notes, metric_table, result_data
from decal_cli.render.results.packs import OutcomeData, PackData, outcome_data, pack_blocks, pack_data
from decal_cli.render.results.reference import ReferenceData, reference_blocks, reference_data
from decal_cli.render.results.regimes import RegimeData, regime_data, regime_tables
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import Provenance, one_or_several, provenance, source_lines, title_of
from decal_cli.render.schema import Count, Limit, Positive


class ClustersData(TypedDict):
    """Clusters that the rows were sampled in. effective: as many of one size say as much. design_effect: variance of
    the Brier score with clusters over that of independent rows.
    """

    count: Positive
    effective: Annotated[float, Limit(exclusiveMinimum=0)]
    design_effect: Annotated[float, Limit(minimum=0)]


class MeasuredData(WithPlaces):
    """One model on all rows (group null) or on one group of them; regimes: its bins, where they were asked for.

    positives: null for rows of several classes, which have by_class. clusters: where rows were sampled in such.
    by_outcome: the scores of each label, where a pack shows them.
    """

    model: str
    group: str | None
    rows: Positive
    positives: Count | None
    dropped: Count
    metrics: dict[MetricKey, ResultData]
    regimes: NotRequired[list[RegimeData]]
    by_class: NotRequired[ByClassData]
    clusters: NotRequired[ClustersData]
    by_outcome: NotRequired[list[OutcomeData]]


class Measures(Provenance):
    """All that the metrics rest on; pack: the one that chose them; reference: what the rows are held against."""

    pack: NotRequired[PackData]
    reference: NotRequired[ReferenceData]


class ReportData(Measures, MeasuredData):
    """A model and group with all that it rests on."""


class EvaluatedData(ReportData):
    """What `decal evaluate` prints of one model: its fields, and the same under reports."""

    reports: Annotated[list[ReportData], Limit(minItems=1, maxItems=1)]


class ReportsData(Measures):
    """What `decal evaluate` prints of several models or groups."""

    reports: Annotated[list[ReportData], Limit(minItems=2)]


class Evaluated:
    """An evaluation, for formats to write."""

    def __init__(self, evaluation: Evaluation, reference: Reference | None = None) -> None:
        self.evaluation = evaluation
        self.reference = reference

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.evaluation)

    def blocks(self) -> Iterator[Block]:
        """Data, metrics, notes."""
        evaluation = shortened(self.evaluation)
        notes = metric_notes(evaluation)
        yield Source(tuple(source_lines(evaluation)))
        yield metric_table(evaluation.reports, evaluation.pack)
        for report in evaluation.reports:
            yield from class_blocks(report, named=len(evaluation.reports) > 1)
        yield from notes
        yield from regime_tables(evaluation.reports)
        yield from pack_blocks(evaluation)
        if self.reference is not None:
            yield from reference_blocks(self.reference)
        yield Signature(evaluation.signature, close=bool(notes))

    def data(self) -> dict[str, Any]:
        """EvaluatedData, or ReportsData."""
        shared: dict[str, Any] = dict(provenance(self.evaluation))
        if self.evaluation.pack is not None:
            shared["pack"] = pack_data(self.evaluation.pack, self.evaluation.gaps)
        if self.reference is not None:
            shared["reference"] = reference_data(self.reference)
        return one_or_several(shared, [measured(report) for report in self.evaluation.reports])

    def rows(self) -> Iterator[list[Any]]:
        """One row per model, group and metric."""
        yield ["model", "group", "metric", "value", "low", "high", "reason"]
        for report in self.evaluation.reports:
            for key, result in report.results.items():
                ends = result.interval or (None, None)
                yield [report.model, report.group, key, result.value, *ends, result.missing]
            for key, value in cell_rows(report.by_class) if report.by_class is not None else ():
                yield [report.model, report.group, key, value, None, None, None]


def measured(report: Report) -> dict[str, Any]:
    """MeasuredData of a report."""
    document: dict[str, Any] = {
        "model": report.model,
        "group": report.group,
        "rows": report.rows,
        "positives": report.positives,
        "dropped": report.dropped,
        "metrics": {key: result_data(key, result) for key, result in report.results.items()},
        **({"regimes": [regime_data(regime) for regime in report.regimes]} if report.regimes else {}),
    }
    document |= places_data(report)
    if report.by_class is not None:
        document["by_class"] = by_class_data(report.by_class)
    if report.clusters is not None:
        document["clusters"] = asdict(report.clusters)
    if report.by_outcome:
        document["by_outcome"] = outcome_data(report)
    return document
