"""What `decal evaluate` returns: metrics of models and groups, and the sections that stand below them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from decal_cli.analysis.described import (
    ActionCounts,
    ByClass,
    ClassCounts,
    Clusters,
    GainsOverTime,
    Places,
    Reference,
    Regime,
    Regimes,
    Section,
    WithoutLabels,
)
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.packs import ByOutcome, Gap, OutcomeScores, Packed, TooSmall
from decal_cli.data.words import grouped
from decal_cli.declarations.document import Absent, Count, Inside, Limit, Positive, Share, Two, Words
from decal_cli.hints import Hint
from decal_cli.limits import MAX_ACTIONS
from decal_cli.metrics import Result, WorstCaseTask, parse
from decal_cli.metrics.declare import Side, Within
from decal_cli.numbers import DASH, MAX_DECIMALS, Interval, counts, many, plain, rounded, times, within
from decal_cli.render.blocks import Block, Blocks, Cell, Column, Lines, Notes, TextTable
from decal_cli.render.cells import Columns, better, left, metric_name, number, table, written
from decal_cli.render.results.opening import COLUMNS, SHORT, Opening, is_amount
from decal_cli.render.results.sections import (
    beside_blocks,
    cell_rows,
    class_blocks,
    having,
    pack_blocks,
    reference_blocks,
    regime_tables,
)
from decal_cli.render.results.source import (
    Provenance,
    WrittenResult,
    ends_of,
    one_or_several,
    shortened,
    source_lines,
    without_limit_lines,
)
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.task import utility_text

MAX_PLACES = 4
"""Models and groups that a reason lists; of more, only the metrics are named."""
BRIER_PARTS = {
    "brier": "Brier score",
    "irreducible_loss": "irreducible loss",
    "grouping_loss": "grouping loss",
    "corp_mcb": "miscalibration",
}
"""By metric: the first is the sum of the others (Tasche 2021, prop. 2.6)."""
_NOT_GIVEN = ("needs a task", "needs features")
"""The beginnings of reasons that the summary gives in its first sentences."""
MAX_PASTED = 40
"""Payoffs of a worst agent that a line of text holds; of more, JSON has them."""
MetricKey = Annotated[str, Limit(pattern=r"^[a-z_0-9]+(\([a-z_]+=[^(),]+(,[a-z_]+=[^(),]+)*\))?$")]


class TwoActionsData(View):
    """The worst task of two actions; loss: what is lost in it, as the metric shown_by shows."""

    utility: Two[Two[Share]]
    loss: Share
    shown_by: str


class WorstAgentData(View):
    """The decision at which a worst case is attained, payoffs in [0, 1], as --utility takes it.

    A row for each action, a number for each class: of two classes two or three rows with one or two thresholds between
    them, of several classes any number of rows and no thresholds. loss: what is lost in it, as the metric shown_by
    shows. two_actions: of two classes.
    """

    utility: Annotated[list[Annotated[list[Share], Limit(minItems=2)]], Limit(minItems=2, maxItems=MAX_ACTIONS)]
    thresholds: Annotated[list[Inside], Limit(minItems=0, maxItems=2)]
    loss: Share
    shown_by: str
    two_actions: Absent[TwoActionsData | None] = of(
        lambda worst, *_: (worst.of_two or worst) if worst.thresholds else None
    )


class DefinedData(View):
    """A value with its interval, null where it has none; parameters: those of the metric, defaults included.

    reason: why an interval that the metric has on other rows is missing. within: where the value is computed from cells
    of the score. side: "at least" or "at most", where the lower or the upper end of the interval alone says something,
    and the other is the least or the most that the quantity can be. levels: what the parameter levels=auto has taken.
    """

    value: float
    interval: Interval | None
    reason: Words | None = of("missing")
    parameters: dict[str, int | float | str] = of(lambda _, key: parse(key).parameters)
    worst_agent: Absent[WorstAgentData | None] = of("worst_case_task")
    within: Absent[Within | None]
    side: Absent[Side | None]
    levels: Absent[Words | None] = of(lambda result, _: result.levels or None)


class UndefinedData(View):
    """A value that does not exist, and why."""

    value: None
    interval: None = of(lambda *_: None)
    reason: Words = of(lambda result, _: result.reason or "")
    parameters: dict[str, int | float | str] = of(lambda _, key: parse(key).parameters)


def result_data(key: str, result: Result) -> DefinedData | UndefinedData:
    """The result of a metric as JSON has it."""
    return UndefinedData(result, key) if result.value is None else DefinedData(result, key)


def found(kind: type[Section], part: str = "") -> Any:
    """Where a key of a view comes from: the section of this kind, or a part of it; null where there is none."""

    def value(whole: Report | Evaluation, *_: Any) -> Any:
        section = whole.find(kind)
        return getattr(section, part, None) if part else section

    return of(value)


class PackData(View):
    """The pack whose measures were asked for; gaps: between groups, where it compares them, of each metric the most
    certain first, then all that are clear; too_small: groups that are not compared.
    """

    name: str = of("pack.name")
    gaps: Absent[list[Gap] | None] = of(lambda packed, *_: list(packed.gaps) if packed.pack.compares_groups else None)
    too_small: Absent[list[TooSmall] | None] = of(
        lambda packed, *_: list(packed.too_small) if packed.pack.compares_groups else None
    )


class ByClassData(View):
    """Every class; with a task, what is done."""

    classes: list[ClassCounts] = found(ByClass, "classes")
    decisions: Absent[ActionCounts | None] = found(ActionCounts)


class MeasuredData(View):
    """One model on all rows (group null) or on one group of them; regimes: its bins, where they were asked for.

    positives: null for rows of several classes, which have by_class. clusters: where rows were sampled in such.
    places: where so many rows can be acted on only. over_time: gains by the age of a fit, where a time was named.
    by_outcome: the scores of each label, where a pack shows them.
    """

    model: str
    group: str | None
    rows: Positive
    positives: Count | None
    dropped: Count
    metrics: dict[MetricKey, DefinedData | UndefinedData] = of(
        lambda report, *_: {key: result_data(key, result) for key, result in report.results.items()}
    )
    regimes: Absent[list[Regime]] = found(Regimes, "bins")
    places: Absent[Places | None] = found(Places)
    by_class: Absent[ByClassData | None] = of(lambda report, *_: report if report.of_classes else None)
    clusters: Absent[Clusters | None] = found(Clusters)
    without_labels: Absent[WithoutLabels | None] = found(WithoutLabels)
    over_time: Absent[GainsOverTime | None] = found(GainsOverTime)
    by_outcome: Absent[list[OutcomeScores]] = found(ByOutcome, "labels")


class Measures(Provenance):
    """All that the metrics rest on; pack: the one that chose them; reference: what the rows are held against."""

    pack: Absent[PackData | None] = found(Packed)
    reference: Absent[Reference | None] = found(Reference)


class Evaluated(WrittenResult):
    """An evaluation, for formats to write."""

    def __init__(self, evaluation: Evaluation, listed: bool = False) -> None:
        """listed: the metrics were named, so that all of them stand in a table."""
        super().__init__(evaluation)
        self.listed = listed

    def sections(self) -> Blocks:
        """What acting is worth and the numbers that say most, or the metrics that were named; then data and method."""
        evaluation = shortened(self.evaluation)
        reports = evaluation.reports
        notes = metric_notes(evaluation, self.listed)
        self.apart = self.listed and not notes
        source, packed = Notes(source_lines(evaluation)), evaluation.find(Packed)
        if self.listed:
            yield source
            yield metric_table(reports, packed.pack.measures if packed else {})
        else:
            summary = Opening(evaluation)
            yield from summary.blocks()
            for report in evaluation.whole:
                yield from beside_blocks(report, evaluation, self.terms, named=len(evaluation.whole) > 1)
        for report, by_class in having(reports, ByClass):
            yield from class_blocks(report, by_class, named=len(reports) > 1)
        yield from regime_tables(reports)
        if packed:
            yield from pack_blocks(evaluation, packed)
        if reference := evaluation.find(Reference):
            yield from reference_blocks(reference)
        yield from notes
        if not self.listed:
            yield summary.next_steps()
            yield source

    def data(self) -> Document:
        """One report, or several."""
        reports = [data_of(MeasuredData(report)) for report in self.evaluation.reports]
        return one_or_several(data_of(Measures(self.evaluation)), reports)

    def rows(self) -> Records:
        """One row per model, group and metric."""
        yield ["model", "group", "metric", "value", "low", "high", "reason"]
        for report in self.evaluation.reports:
            for key, result in report.results.items():
                yield [*report.place, key, result.value, *ends_of(result), result.missing]
        for report, done in having(self.evaluation.reports, ActionCounts):
            for key, value in cell_rows(done) if report.of_classes else ():
                yield [*report.place, key, value, None, None, None]


def metric_table(reports: Sequence[Report], called: Mapping[str, str], factor: float = 1.0) -> TextTable:
    """Metrics down, models and groups across. called: what a pack calls them, in one section.

    factor: of utilities per decision, where the page writes amounts of many decisions.
    """

    def value(key: str, report: Report) -> Cell:
        each = report.results[key]
        if factor != 1.0 and each.value is not None and is_amount(parse(key).declared):
            return written(within(factor * each.value, times(each.interval, factor)))
        return number(each.value, each.interval, fewer=3, reason=each.reason, text=each.text, side=each.side)

    def name(key: str) -> Cell:
        return replace(metric_name(key), parts=(called[key],)) if called else metric_name(key)

    def row(key: str) -> dict[str, Any]:
        metric = parse(key).declared
        # What is undefined everywhere keeps its row, with dashes, where people look for it.
        empty = all(report.results[key].value is None for report in reports) and not metric.shown
        return {} if called else {"section": metric.family, "empty": empty}

    values = ((Column(each.model, each.group or ""), partial(value, report=each)) for each in reports)
    columns: Columns[str] = [(left("metric", wraps=True), name), (left(""), better), *values]
    return table(reports[0].results, columns, row, keys=2, dense=True)


def metric_notes(evaluation: Evaluation, listed: bool = True) -> list[Block]:
    """What stands below the numbers: tasks to paste, why some are missing, what intervals and features do not say.

    listed: of every metric in a table; else of those that the summary shows, which says itself what was not given.
    """
    reports = evaluation.reports
    worst = [*_worst_lines(reports)] if listed else []
    quiet = [*_within_lines(reports), *_places_lines(evaluation), *_part_lines(reports), *_half_brier_lines(reports)]
    if listed:
        quiet += levels_lines(reports)
        quiet += without_limit_lines(evaluation, reports[0].results)
        quiet += [*undefined_reasons(reports), *unknown_lines(evaluation)]
    else:
        quiet += undefined_reasons(reports, SHORT if len(reports) == 1 else COLUMNS, _NOT_GIVEN)
    blocks = (Notes(worst, copy=True), Notes(quiet, quiet=True, close=bool(worst)))
    return [block for block in blocks if block.lines]


def _whose(report: Report, reports: Sequence[Report]) -> str:
    """The model before a sentence, where there are several."""
    return "" if len(reports) == 1 else f"{report.model}: "


def _within_lines(reports: Sequence[Report]) -> Lines:
    """Which values from cells of the score are exact, and how far others may be from those of the rows."""
    known = [(key, each) for report in reports for key, each in report.results.items() if each.value is not None]
    bounds = {key: max(of) for key, of in grouped((key, each.within) for key, each in known if each.within).items()}
    exact = [key for key, each in bounds.items() if not any(each)]
    if bounds:
        exactly = "all numbers are exact" if len(exact) == len(bounds) else f"exact: {', '.join(exact) or 'none'}"
        yield f"from cells of the score; {exactly}"
    inexact = [(each.drawn, f"{key} {plain(each.bound)}") for key, each in bounds.items() if any(each)]
    for drawn, near in sorted(grouped(inexact).items()):
        what = "at most so far from the value of the rows"
        if drawn:
            what = "from folds or draws of cells, and what these estimate is at most so far off"
        yield f"{what}: {', '.join(near)}"


def levels_lines(reports: Sequence[Report]) -> Lines:
    """What levels=auto has taken, of each report where that differs."""
    taken = [(each.levels, report, key) for report in reports for key, each in report.results.items() if each.levels]
    alike = len({levels for levels, *_ in taken}) == 1
    keys = grouped(((levels, "" if alike else f" on {report.name}"), key) for levels, report, key in taken)
    for (levels, where), taking in keys.items():
        yield f"levels=auto of {', '.join(dict.fromkeys(taking))}{where}: {levels}"


def _half_brier_lines(reports: Sequence[Report]) -> Lines:
    """The Brier score of one of two classes, which tools differ in."""
    for report, by_class in having(reports, ByClass):
        both = report.value("brier")
        if both is not None and len(by_class.classes) == 2 and not report.group:
            one = f"the Brier score is the sum over both classes; that of one class is {plain(both / 2)}"
            yield f"{_whose(report, reports)}{one}"


def unknown_lines(evaluation: Evaluation, unit: str | None = None) -> Lines:
    """Without features: what cannot be known, with the worst case, as such. unit: the user's, of utility."""
    for report in evaluation.whole:
        worst = report.value("regret_grouping_worst")
        if worst and "regret_grouping" in report.results and not report.features:
            most = f"{plain(worst)} {unit or ''}".rstrip()
            yield (
                f"{_whose(report, evaluation.reports)}without {Hint('features').words}, the gain beyond recalibration "
                f"is unknown: between 0 and {most} per decision (an upper limit, not an estimate)"
            )


def _part_lines(reports: Sequence[Report]) -> Lines:
    """The Brier score of each model as the sum of three parts, with so many decimals that what is printed adds up."""
    for report in reports:
        results = [report.results[key] for key in BRIER_PARTS if report.known(key)]
        if report.group or len(results) < len(BRIER_PARTS):
            continue
        whole, *parts = (result.value or 0.0 for result in results)
        for decimals in range(4, MAX_DECIMALS):
            if abs(sum(round(part, decimals) for part in parts) - round(whole, decimals)) < 0.5 / 10**decimals:
                break
        of_whole, *texts = (
            f"{name} {rounded(each.value or 0.0, each.interval, decimals, each.side)}"
            for name, each in zip(BRIER_PARTS.values(), results, strict=True)
        )
        yield f"{_whose(report, reports)}{of_whole} = {' + '.join(texts)}"


def _worst_lines(reports: Sequence[Report]) -> Lines:
    """The tasks of the worst agents, to be pasted: one line for all metrics of a report that share one."""
    for report in reports:
        keys = grouped(
            (_worst(each.worst_case_task), key) for key, each in report.results.items() if each.worst_case_task
        )
        where = "" if len(reports) == 1 else f" on {report.name}"
        yield from (f"worst agent of {', '.join(shared)}{where}: {text}" for text, shared in keys.items())


def _worst(task: WorstCaseTask) -> str:
    actions, loses = f"{len(task.utility)} actions", f"(loses {plain(task.loss)}, see {task.shown_by})"
    if len(task.utility) * len(task.utility[0]) > MAX_PASTED:
        return f"{actions}, {Hint('utility').words} in JSON, as worst_agent {loses}"
    kinks = " and ".join(plain(threshold) for threshold in task.thresholds)
    if kinks:
        actions = f"{actions}, the rule with kinks at {kinks}"
        actions = actions if len(task.utility) > 2 else f"the V-shaped rule with its kink at {kinks}"
    return f"{actions}, {Hint('utility').words} '{utility_text(task.utility)}' {loses}"


def undefined_reasons(
    reports: Sequence[Report], among: Container[str] | None = None, known: Sequence[str] = ()
) -> Lines:
    """Why cells show a dash, or a value without its interval: one line for each reason.

    among: the metrics that are shown, by default all. known: how reasons begin that stand elsewhere.
    """
    missing = grouped(
        (result.missing, (key, "" if len(reports) == 1 else f" of {' in '.join(filter(None, report.place))}"))
        for report in reports
        for key, result in report.results.items()
        if among is None or key in among
    )
    for reason, places in missing.items():
        if reason is not None and not reason.startswith(tuple(known)):
            named = dict.fromkeys(key + where * (len(places) <= MAX_PLACES) for key, where in places)
            yield f"{DASH} {', '.join(named)}: {reason}"


def _places_lines(evaluation: Evaluation) -> Lines:
    """A sentence on the places of each model, on all of its rows."""
    per = evaluation.columns.get("per")
    for report, places in having(evaluation.whole, Places):
        acted, room, reaching, without = counts((places.acted, places.places, places.reaching, places.without))
        text = f"{acted} of {room} places are taken, and no row that would be acted on is without one"
        if places.full:
            low, high = (plain(each) for each in places.thresholds)
            what = "a score" if places.ranked_by == "score" else "an expected gain"
            begins = f"{what} of {low} on" if low == high else f"{what} between {low} and {high} on, depending on {per}"
            every = f"; every place is taken in {places.full:,} of {places.lists:,} values of {per}" if per else ""
            text = (
                f"{acted} of {many(report.rows, 'row')} {'is' if acted == '1' else 'are'} acted on, from "
                f"{begins}; {reaching} would be without the limit, so that {without} "
                f"{'has' if without == '1' else 'have'} no place{every}"
            )
        yield f"{'' if len(evaluation.models) == 1 else f'{report.model}: '}{text}"
