"""What `decal recommend` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import Action, Advice, Answer
from decal_cli.analysis.recommend import Recommendation, Round, ece_advice
from decal_cli.numbers import plain
from decal_cli.render.blocks import Block, Column, Heading, Paragraph, Row, Signature, Source, Table
from decal_cli.render.cells import words
from decal_cli.render.results.advice import conclusion_of, constant_line, walk_of
from decal_cli.render.results.by_row import amount_line
from decal_cli.render.results.counts import AmountsData, CountsData, amounts_data, counts_data, counts_table
from decal_cli.render.results.evaluation import MeasuredData, measured
from decal_cli.render.results.ladder import ladder
from decal_cli.render.results.measurements import name_of
from decal_cli.render.results.moving import MovingData, moving_data, moving_line
from decal_cli.render.results.ranked import WithRanked, ranked_blocks, ranked_data
from decal_cli.render.results.rounds import RoundData, round_blocks, round_data, round_rows
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import Provenance, one_or_several, pair, provenance, source_lines, title_of
from decal_cli.render.schema import Ends, Limit
from decal_cli.render.terms import Terms


class EvidenceData(TypedDict):
    """A metric that a step rests on."""

    metric: str
    value: float | None
    interval: Ends | None


class StepData(TypedDict):
    """A question of the flowchart with its answer. small: "yes", but the gain is within the tolerance."""

    question: str
    answer: Answer
    small: bool
    reason: str
    evidence: list[EvidenceData]


class ConstantData(TypedDict):
    """A constant decision. gain: what it is worth more than acting on the score as it is, per decision."""

    decision: int | str
    gain: float
    interval: Ends | None


class InterimData(TypedDict):
    """What can be done at once: act when score >= threshold, or always decide the same; the other one is null."""

    threshold: str | None
    decision: int | str | None
    gain: float
    interval: Ends | None


class AdviceData(TypedDict):
    """Where the walk ended. method, fit: the method as `decal fit` names it, null where there is nothing to fit. small:
    the gain is clear, but within the tolerance. constant: the constant decision that acting on the score does not beat.
    interim: what can be done at once and at no cost. rows_needed: rows that settle an unknown in 4 of 5 cases, null
    where more rows alone would not. tried: with --try, the methods tried on this score, best first, then on the best
    one's score, until nothing more is won.
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
    small: bool
    stakes: float
    tolerance: float
    constant: ConstantData | None
    interim: InterimData | None
    tried: NotRequired[list[RoundData]]


class AdvisedData(Provenance, MeasuredData, WithRanked):
    """A model and group with its advice. counts: its decisions; amounts: in the user's unit, null without
    one.
    """

    recommendation: AdviceData
    counts: CountsData | None
    amounts: AmountsData | None
    moving: NotRequired[MovingData]


class RecommendedData(AdvisedData):
    """What `decal recommend` prints of one model: its fields, and the same under reports."""

    reports: Annotated[list[AdvisedData], Limit(minItems=1, maxItems=1)]


class AdvisedReportsData(Provenance):
    """What `decal recommend` prints of several models or groups."""

    reports: Annotated[list[AdvisedData], Limit(minItems=2)]


class Recommended:
    """A recommendation in the user's terms, for formats to write."""

    def __init__(self, recommendation: Recommendation, terms: Terms | None = None) -> None:
        self.recommendation = recommendation
        self.terms = terms or Terms()
        self.evaluation = recommendation.evaluation

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.evaluation)

    def blocks(self) -> Iterator[Block]:
        """Data; of several models or groups a table; of each the ladder, the walk, the action, and what was tried."""
        evaluation = shortened(self.evaluation)
        yield Source(tuple(source_lines(evaluation)))
        advised = advised_of(self.recommendation, evaluation.reports)
        if len(advised) > 1:
            yield advice_table(advised, self.terms)
        for report, advice in advised:
            yield Heading(name_of(report), gist=advice.action)
            yield from ranked_blocks(self.recommendation, report, self.terms)
            first = constant_line(report, advice, self.terms)
            if first is not None:
                yield Paragraph(first, close=True)
            limited = bool(self.recommendation.ranked_of(report))
            yield replace(ladder(report.results, self.terms), close=first is None and not limited)
            yield from filter(None, (moving_line(report, self.evaluation.population, self.terms),))
            yield from filter(None, (amount_line(report, self.evaluation.by_row, self.terms),))
            yield from filter(None, (counts_table(report, self.terms),))
            yield walk_of(advice, self.terms)
            yield conclusion_of(report, advice, self.evaluation.plan.binary, self.terms)
            yield from round_blocks(self.recommendation.rounds_of(report))
        yield Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """RecommendedData, or AdvisedReportsData."""
        entries = [
            {
                **measured(report),
                "recommendation": advice_data(report, advice, self.recommendation.rounds_of(report)),
                "counts": counts_data(report, self.evaluation.plan.binary, self.terms),
                "amounts": amounts_data(report.results, self.terms),
                **moving_data(report),
                **ranked_data(self.recommendation.ranked_of(report)),
            }
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


def advised_of(recommendation: Recommendation, reports: Sequence[Report]) -> list[tuple[Report, Advice]]:
    """These reports, each with its advice."""
    advice_on = {(report.model, report.group): advice for report, advice in recommendation.advised}
    return [(report, advice_on[report.model, report.group]) for report in reports]


def advice_table(advised: Sequence[tuple[Report, Advice]], terms: Terms) -> Table:
    """What each model and group is advised."""
    grouped = any(report.group is not None for report, _ in advised)
    names = ["model", *(["group"] if grouped else []), "action", "method"]
    rows = []
    for report, advice in advised:
        gain = "" if advice.gain is None else plain(terms.number * advice.gain)
        place = [report.model, *([report.group or ""] if grouped else [])]
        rows.append(Row(tuple(map(words, (*place, advice.action, advice.method or "", gain)))))
    columns = [Column(name, words=True, wraps=True) for name in names]
    return Table((*columns, Column(f"gain {terms.heading}", wraps=True)), tuple(rows))


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
                "small": step.small,
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
        "fit": advice.method,
        "rows_needed": advice.rows_needed,
        "small": advice.small,
        "stakes": advice.stakes,
        "tolerance": advice.tolerance,
        "constant": _constant_data(advice),
        "interim": _interim_data(advice),
    }
    if rounds:
        document["tried"] = round_data(rounds)
    return document


def _constant_data(advice: Advice) -> ConstantData | None:
    constant = advice.constant
    if constant is None:
        return None
    return {"decision": constant.decision, "gain": constant.lead, "interval": pair(constant.interval)}


def _interim_data(advice: Advice) -> InterimData | None:
    interim = advice.interim
    if interim is None:
        return None
    return {
        "threshold": interim.threshold,
        "decision": interim.decision,
        "gain": interim.gain,
        "interval": pair(interim.interval),
    }
