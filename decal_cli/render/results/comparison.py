"""What `decal compare` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from decal_cli.analysis.compare import Comparison, Contest, Difference, Thresholds
from decal_cli.analysis.splice import SpliceGain
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import DASH, alike, short
from decal_cli.render.blocks import Block, Cell, Column, Heading, Notes, Points, Row, Signature, Source, Table
from decal_cli.render.cells import metric_cells, number, words
from decal_cli.render.results.differences import difference_cell, who_wins
from decal_cli.render.results.disagreements import (
    ClassDisagreementsData,
    DisagreementsData,
    disagreements_data,
    disagreements_table,
)
from decal_cli.render.results.measurements import MetricKey, ResultData, result_data
from decal_cli.render.results.shortened import Order, lowest_first, worst_groups
from decal_cli.render.results.source import Provenance, pair, provenance, source_lines, title_of
from decal_cli.render.results.swap import SwapData, swap_data, swap_table
from decal_cli.render.results.winners import group_key, sides_line, summary
from decal_cli.render.schema import Count, Ends, Limit, Positive, Share, Size, Words
from decal_cli.render.terms import Terms

MAX_TITLE = 36
"""Columns of a metric's title; longer ones wrap."""


class DifferenceData(TypedDict):
    """A metric of both models, and B - A with its paired interval. better: the model it favours."""

    a: float | None
    b: float | None
    difference: ResultData
    method: Literal["analytic", "bootstrap"] | None
    better: str | None
    by_chance: bool | None


class CrossingData(TypedDict):
    """A change of the leader beyond chance; below: the model that leads up to it."""

    threshold: Share
    below: str


class LeadData(TypedDict):
    """Thresholds at which a model is ahead beyond chance; most: the largest loss it saves, at a threshold."""

    model: str
    low: Share
    high: Share
    most: Size
    error: Size
    at: Share


class ThresholdsData(TypedDict):
    """Who wins at which thresholds. band: standard errors beyond which a model is ahead, at all thresholds at once;
    null where the two hardly differ.
    """

    dominates: str | None
    band: float | None
    crossings_on_these_rows: Count
    crossings: list[CrossingData]
    ahead: list[LeadData]


class ContestData(TypedDict):
    """The two models on all rows (group null) or on one group of them.

    metrics: those that were asked for, and those that the sentences and the table of groups are about. positives,
    thresholds: null for rows of several classes. swap: where so many rows can be acted on only, who is acted on by
    which model; disagreements are null then.
    """

    group: str | None
    rows: Positive
    positives: Count | None
    metrics: dict[MetricKey, DifferenceData]
    thresholds: ThresholdsData | None
    disagreements: DisagreementsData | ClassDisagreementsData | None
    swap: NotRequired[SwapData]


class HeldOutData(TypedDict):
    """On held-out rows; difference: to the better single model."""

    value: float
    single: str
    difference: float
    interval: Ends | None


class SpliceData(TypedDict):
    """One model below a threshold, the other above."""

    threshold: Share
    below: str
    above: str
    brier: HeldOutData
    expected_utility: HeldOutData | None
    folds_agreeing: Count


class NoSpliceData(TypedDict):
    """Why there is no splice."""

    threshold: None
    reason: Words


class ComparisonData(TypedDict):
    """Two models on the same rows."""

    models: Annotated[list[str], Limit(minItems=2, maxItems=2)]
    contests: Annotated[list[ContestData], Limit(minItems=1)]
    splice: SpliceData | NoSpliceData


class ComparedData(Provenance):
    """What `decal compare` prints: differences are of the second model minus the first, with paired intervals."""

    comparison: ComparisonData


class Compared:
    """A comparison in the user's terms, for formats to write; drawing: pictures in characters to put below."""

    def __init__(self, comparison: Comparison, terms: Terms | None = None, drawing: tuple[Block, ...] = ()) -> None:
        self.comparison = comparison
        self.terms = terms or Terms()
        self.drawing = drawing

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.comparison.evaluation)

    def blocks(self) -> Iterator[Block]:
        """Who wins in words first, then the figures, of all rows and of every group."""
        comparison = self.comparison
        whole, *groups = comparison.contests
        worst, notes = worst_groups(groups, _by_difference(comparison))
        evaluation = replace(comparison.evaluation, notes=(*comparison.evaluation.notes, *notes))
        yield Source((*source_lines(evaluation), sides_line(comparison)))
        yield Points(tuple(summary(comparison, self.terms)))
        several = len(groups) > 0
        if several:
            yield _group_table(comparison, worst)
        for contest in (whole, *worst):
            if several:
                yield Heading("all rows" if contest.group is None else f"{contest.group}, {contest.rows:,} rows")
            yield _metric_table(comparison, contest, close=several)
            if contest.disagreements is not None:
                yield disagreements_table(contest.disagreements, self.terms)
            if contest.swap is not None and evaluation.capacity is not None:
                yield swap_table(contest.swap, evaluation.capacity.text)
            if contest.thresholds is not None and contest.thresholds.leads:
                yield _lead_table(comparison, contest.thresholds, self.terms)
            reasons = tuple(_reasons(contest))
            if reasons:
                yield Notes(reasons, quiet=True, close=True)
        yield Signature(comparison.evaluation.signature)
        yield from self.drawing

    def data(self) -> dict[str, Any]:
        """ComparedData: the inputs, as in every result, and under "comparison" the contests and the splice."""
        comparison = self.comparison
        whole = provenance(comparison.evaluation)
        if whole["intervals"] is not None:
            whole["intervals"]["cells"] = comparison.cells
        document: ComparisonData = {
            "models": list(comparison.models),
            "contests": [_contest(comparison, contest) for contest in comparison.contests],
            "splice": _splice(comparison),
        }
        return {**whole, "comparison": document}

    def rows(self) -> Iterator[list[Any]]:
        """One row per group and metric."""
        comparison = self.comparison
        head = ["model_a", "model_b", "group", "metric", "a", "b", "difference", "low", "high", "better", "by_chance"]
        yield [*head, "method", "reason"]
        for contest in comparison.contests:
            for key, each in contest.differences.items():
                ends = each.difference.interval or (None, None)
                better = None if each.better is None else comparison.name(each.better)
                row = [*comparison.models, contest.group, key, each.a.value, each.b.value, each.difference.value]
                yield [*row, *ends, better, each.by_chance, each.method, each.difference.reason]


def _metric_table(comparison: Comparison, contest: Contest, close: bool) -> Table:
    columns = (
        Column("metric", words=True, wraps=True, most=MAX_TITLE),
        Column("", words=True),
        *(Column(name, short=letter) for name, letter in zip(comparison.models, "AB", strict=True)),
        Column("B - A"),
        Column("who wins", words=True),
    )
    return Table(columns, tuple(_metric_rows(comparison, contest)), dense=True, close=close)


def _metric_rows(comparison: Comparison, contest: Contest) -> Iterator[Row]:
    of_classes = comparison.evaluation.reports[0].by_class is not None
    for key, each in contest.differences.items():
        metric = parse(key).declared.form(of_classes)
        empty = each.a.value is None and each.b.value is None and not metric.shown
        sides = (number(side.value, reason=side.reason) for side in (each.a, each.b))
        cells = (*metric_cells(key), *sides, difference_cell(each), who_wins(each, comparison.models))
        yield Row(cells, metric.family, empty=empty)


def _by_difference(comparison: Comparison) -> Order[Contest]:
    """Where B is worse than A by most first."""
    key = group_key(comparison)
    metric = parse(key).declared
    sign = 1 if metric.better == "higher" else -1

    def place(contest: Contest) -> tuple[bool, float]:
        each = contest.headline.get(key)
        value = None if each is None else each.difference.value
        return lowest_first(None if value is None else sign * value)

    return place, f"{metric.title}, B - A"


def _group_table(comparison: Comparison, contests: Sequence[Contest]) -> Table:
    """For each group: its rows, the difference that counts, and in words who is better."""
    key = group_key(comparison)
    rows = []
    for contest in contests:
        each = contest.headline.get(key)
        cells = (words(""), words("undefined"))
        if each is not None:
            cells = (difference_cell(each), who_wins(each, comparison.models))
        rows.append(Row((words(str(contest.group)), words(f"{contest.rows:,}"), *map(_inline, cells))))
    heads = ("group", "rows", f"{parse(key).declared.title.lower()}, B - A", "who wins")
    return _plain_table(heads, rows)


def _lead_table(comparison: Comparison, at: Thresholds, terms: Terms) -> Table:
    """For each range of thresholds: who is ahead, by how much at most in the user's unit, and where."""
    reach, task = at.reach, comparison.evaluation.task
    # Thresholds of rows are not those of one task: there is no unit but that of u_delta 1.
    terms = terms if comparison.evaluation.by_row is None else Terms()
    scale = terms.number * (1.0 if task is None else task.u_delta)
    rows = []
    for lead in at.leads:
        texts = (
            f"{short(lead.low, 3)} – {short(lead.high, 3)}",
            comparison.name(lead.side),
            " ± ".join(alike((scale * lead.most, scale * reach * lead.error))),
            short(lead.at, 3),
        )
        rows.append(Row(tuple(map(words, texts))))
    return _plain_table(("thresholds", "clearly ahead", f"most saved, {terms.noun} {terms.span}", "at t"), rows)


def _plain_table(heads: tuple[str, ...], rows: list[Row]) -> Table:
    return Table(tuple(Column(head, words=True, wraps=True) for head in heads), tuple(rows))


def _inline(cell: Cell) -> Cell:
    return words(cell.text)


def _reasons(contest: Contest) -> Iterator[str]:
    """Why a cell shows a dash, one line for each reason."""
    keys: dict[str, list[str]] = {}
    for key, each in contest.differences.items():
        if each.difference.reason is not None:
            keys.setdefault(each.difference.reason, []).append(key)
    return (f"{DASH} {', '.join(of_reason)}: {reason}" for reason, of_reason in keys.items())


def _contest(comparison: Comparison, contest: Contest) -> ContestData:
    document: ContestData = {
        "group": contest.group,
        "rows": contest.rows,
        "positives": contest.positives,
        "metrics": {
            key: _difference(comparison, key, each) for key, each in {**contest.differences, **contest.headline}.items()
        },
        "thresholds": None if contest.thresholds is None else _thresholds(comparison, contest.thresholds),
        "disagreements": None if contest.disagreements is None else disagreements_data(contest.disagreements),
    }
    if contest.swap is not None:
        document["swap"] = swap_data(contest.swap)
    return document


def _thresholds(comparison: Comparison, at: Thresholds) -> ThresholdsData:
    dominates = at.curves.dominates
    return {
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
    }


def _difference(comparison: Comparison, key: str, each: Difference) -> DifferenceData:
    return {
        "a": each.a.value,
        "b": each.b.value,
        "difference": result_data(key, each.difference),
        "method": each.method,
        "better": None if each.better is None else comparison.name(each.better),
        "by_chance": each.by_chance,
    }


def _splice(comparison: Comparison) -> SpliceData | NoSpliceData:
    splice = comparison.splice
    if splice is None:
        return {"threshold": None, "reason": comparison.no_splice or ""}
    return {
        "threshold": splice.cut.threshold,
        "below": comparison.name(splice.cut.below),
        "above": comparison.name("a" if splice.cut.below == "b" else "b"),
        "brier": _held_out(comparison, splice.brier),
        "expected_utility": None if splice.utility is None else _held_out(comparison, splice.utility),
        "folds_agreeing": splice.agreeing,
    }


def _held_out(comparison: Comparison, reached: SpliceGain) -> HeldOutData:
    mean, error = reached.difference
    reach = quantile(comparison.evaluation.plan.confidence) * error
    return {
        "value": reached.value,
        "single": comparison.name(reached.single),
        "difference": mean,
        "interval": pair((mean - reach, mean + reach)),
    }
