"""What `decal recommend` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import Action, Advice, Answer
from decal_cli.analysis.recommend import Recommendation, Round, ece_advice
from decal_cli.render.blocks import Block, Column, Heading, Row, Signature, Source, Table
from decal_cli.render.cells import words
from decal_cli.render.numbers import plain
from decal_cli.render.results.advice import conclusion_of, walk_of
from decal_cli.render.results.evaluation import MeasuredData, measured
from decal_cli.render.results.ladder import HELD_OUT, ladder
from decal_cli.render.results.measurements import name_of
from decal_cli.render.results.rounds import RoundData, round_blocks, round_data, round_rows
from decal_cli.render.results.source import Provenance, one_or_several, pair, provenance, source_lines, title_of
from decal_cli.render.schema import Ends, Limit


class EvidenceData(TypedDict):
    """A metric that a step rests on."""

    metric: str
    value: float | None
    interval: Ends | None


class StepData(TypedDict):
    """A question of the flowchart with its answer."""

    question: str
    answer: Answer
    reason: str
    evidence: list[EvidenceData]


class AdviceData(TypedDict):
    """Where the walk ended. fit: the method of `decal fit` that carries the action out, null where there is nothing to
    fit. rows_needed: rows that would settle an unknown, null where more rows alone would not. tried: with --try, the
    methods tried on this score, best first, then on the best one's score, until nothing more is won.
    """

    action: Action
    method: str | None
    gain: float | None
    interval: Ends | None
    path: Annotated[list[StepData], Limit(minItems=1)]
    next: list[str]
    ece_advice: Literal["recalibrate", "leave"] | None
    fit: str | None
    rows_needed: int | None
    tried: NotRequired[list[RoundData]]


class AdvisedData(Provenance, MeasuredData):
    """What `decal recommend` prints of one model."""

    recommendation: AdviceData


class AdvisedReportsData(Provenance):
    """What `decal recommend` prints of several models or groups."""

    reports: Annotated[list[AdvisedData], Limit(minItems=2)]


class Recommended:
    """A recommendation, for formats to write."""

    def __init__(self, recommendation: Recommendation) -> None:
        self.recommendation = recommendation
        self.evaluation = recommendation.evaluation

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.evaluation)

    def blocks(self) -> Iterator[Block]:
        """Data; of several models or groups a table; of each the ladder, the walk, the action, and what was tried."""
        yield Source(tuple(source_lines(self.evaluation)))
        advised = self.recommendation.advised
        if len(advised) > 1:
            yield _summary(advised)
        for report, advice in advised:
            yield Heading(name_of(report), gist=advice.action)
            yield replace(ladder(HELD_OUT, report.results), close=True)
            yield walk_of(advice)
            yield conclusion_of(report, advice)
            yield from round_blocks(self.recommendation.rounds_of(report))
        yield Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """AdvisedData, or AdvisedReportsData."""
        entries = [
            {**measured(report), "recommendation": advice_data(report, advice, self.recommendation.rounds_of(report))}
            for report, advice in self.recommendation.advised
        ]
        return one_or_several(provenance(self.evaluation), entries)

    def rows(self) -> Iterator[list[Any]]:
        """One row per model and group; where methods were tried, one per method."""
        if self.recommendation.rounds is not None:
            yield from round_rows(self.recommendation.rounds)
            return
        yield ["model", "group", "action", "method", "gain", "low", "high"]
        for report, advice in self.recommendation.advised:
            ends = advice.interval or (None, None)
            yield [report.model, report.group, advice.action, advice.method, advice.gain, *ends]


def _summary(advised: Sequence[tuple[Report, Advice]]) -> Table:
    """What each model and group is advised."""
    columns = [Column(name, words=True, wraps=True) for name in ("model", "group", "action", "method")]
    rows = []
    for report, advice in advised:
        gain = "" if advice.gain is None else plain(1000 * advice.gain)
        texts = (report.model, report.group or "", advice.action, advice.method or "", gain)
        rows.append(Row(tuple(map(words, texts))))
    return Table((*columns, Column("gain per 1,000 decisions", wraps=True)), tuple(rows))


def advice_data(report: Report, advice: Advice, rounds: Sequence[Round]) -> AdviceData:
    """The advice on a report as JSON has it."""
    document: AdviceData = {
        "action": advice.action,
        "method": advice.method,
        "gain": advice.gain,
        "interval": pair(advice.interval),
        "path": [
            {
                "question": step.question,
                "answer": step.answer,
                "reason": step.reason,
                "evidence": [
                    {"metric": item.metric, "value": item.value, "interval": pair(item.interval)}
                    for item in step.evidence
                ],
            }
            for step in advice.steps
        ],
        "next": list(advice.next_steps),
        "ece_advice": ece_advice(report),
        "fit": advice.fit,
        "rows_needed": advice.rows_needed,
    }
    if rounds:
        document["tried"] = round_data(rounds)
    return document
