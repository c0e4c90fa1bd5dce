"""What `decal evaluate` returns: metrics of models and groups, and the sections that stand below them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from decal_cli.analysis.described import (
    MAX_PVALUE,
    OF_ONE_ROW,
    ActionCounts,
    ByClass,
    Clusters,
    GainByAge,
    GainsOverTime,
    Places,
    Reference,
    Regime,
    Shift,
    Utility,
    WithoutLabels,
    Worth,
)
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.packs import MIN_DENOMINATOR, QUANTILES, Gap, OutcomeScores, Pack, TooSmall
from decal_cli.analysis.recommend import amounts_of
from decal_cli.data.words import grouped
from decal_cli.declarations.document import Absent, Count, Inside, Limit, Positive, Share, Two, Words
from decal_cli.hints import Hint, Verb, said
from decal_cli.limits import MAX_ACTIONS
from decal_cli.metrics import Metric, Result, WorstCaseTask, parse
from decal_cli.metrics.declare import Side, Within
from decal_cli.metrics.label_shift import N_BINS
from decal_cli.numbers import (
    DASH,
    MAX_DECIMALS,
    Interval,
    bracketed,
    counts,
    decimals_for,
    fixed,
    percent,
    plain,
    rounded,
    saying,
    short,
    sized,
    times,
    within,
)
from decal_cli.render.blocks import Block, Blocks, Cell, Column, Heading, Lines, Notes, Paragraph, Row, TextTable
from decal_cli.render.cells import (
    Columns,
    amount,
    better,
    by_words,
    counted,
    left,
    metric_name,
    number,
    table,
    texts,
    words,
    written,
)
from decal_cli.render.results.source import (
    Provenance,
    WrittenResult,
    ends_of,
    lowest_first,
    one_or_several,
    shortened,
    source_lines,
    without_labels_line,
)
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import StatedTerms
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
MAX_ACROSS = 8
"""Classes that stand side by side; of more, the cells that cost most are listed."""
N_COSTLIEST = 10
"""How many of the costliest cells are listed."""
MAX_PAIRS = 10
"""Pairs of groups of one metric that a table shows."""
MAX_CLASSES_SHOWN, N_LOWEST = 30, 20
"""Most classes that the table of classes shows; where there are more, how many of the lowest recall it shows."""
REGIMES_EXPLAINED = (
    "a regret is what the bin adds to the metric of that name, the grouping regret between its lower and its sharp "
    "upper bound; a grouping loss up to Vmin may change no decision, one above it does; larger: the larger of the two "
    "regrets"
)
PER = 1000
"""Decisions that the amounts of a summary are of."""
WORTH, SCORE, CALIBRATION, TREES = (f"Per {PER:,} decisions", "Score", "Calibration", "What trees of five leaves see")
LIMITED = "At this capacity"
SHORT = {
    "gain_recalibration": (WORTH, "recalibration"),
    "gain_beyond": (WORTH, "features"),
    "gain_post_training": (WORTH, "both"),
    "eu_by_amount": (WORTH, "by amount alone"),
    "brier": (SCORE, "Brier score"),
    "log_loss": (SCORE, "log loss"),
    "auc": (SCORE, "AUC"),
    "accuracy": (SCORE, "accuracy"),
    "corp_mcb": (CALIBRATION, "miscalibration"),
    "ece": (CALIBRATION, "ECE"),
    "ece_null": (CALIBRATION, "ECE by chance"),
    "ece_top": (CALIBRATION, "ECE, top class"),
    "ece_top_null": (CALIBRATION, "by chance"),
    "ece_classwise": (CALIBRATION, "ECE by class"),
    "shadow_price": (LIMITED, "one more place"),
    "capture": (LIMITED, "capture"),
    "precision_at_capacity": (LIMITED, "precision"),
    "lift": (LIMITED, "lift"),
    "value_capture": (LIMITED, "value captured"),
    "regret_calibration": (TREES, "calibration regret"),
    "regret_grouping": (TREES, "grouping regret"),
    "regret": (TREES, "regret"),
    "grouping_loss": (TREES, "grouping loss"),
}
"""The section in which a metric stands, and what it is called there; others are in `--all`."""
TREES_SENTENCE = (
    "Noise makes these plug-in numbers larger, and a better model can win more than such trees see: decide by the "
    "gains."
)
SKIPPED_AT_LIMIT = ("log_loss", "ece", "ece_null")
"""What makes way for the numbers of a capacity."""
COLUMNS = ("gain_recalibration", "gain_beyond", "auc", "brier", "ece", "ece_top")
"""Metrics that are columns where several models or groups are rows."""
MAX_NAMED = 3
"""Models that a sentence names."""
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
    and the other is the least or the most that the quantity can be.
    """

    value: float
    interval: Interval | None
    reason: Words | None = of("missing")
    parameters: dict[str, int | float | str] = of(lambda _, key: parse(key).parameters)
    worst_agent: Absent[WorstAgentData | None] = of("worst_case_task")
    within: Absent[Within | None]
    side: Absent[Side | None]


class UndefinedData(View):
    """A value that does not exist, and why."""

    value: None
    interval: None = of(lambda *_: None)
    reason: Words = of(lambda result, _: result.reason or "")
    parameters: dict[str, int | float | str] = of(lambda _, key: parse(key).parameters)


def result_data(key: str, result: Result) -> DefinedData | UndefinedData:
    """The result of a metric as JSON has it."""
    return UndefinedData(result, key) if result.value is None else DefinedData(result, key)


class PackData(View):
    """The pack whose measures were asked for; gaps: between groups, where it compares them, of each metric the most
    certain first, then all that are clear; too_small: groups that are not compared.
    """

    name: str = of("pack.name")
    gaps: Absent[list[Gap] | None] = of(
        lambda evaluation, *_: list(evaluation.gaps) if evaluation.pack.compares_groups else None
    )
    too_small: Absent[list[TooSmall] | None] = of(
        lambda evaluation, *_: list(evaluation.too_small) if evaluation.pack.compares_groups else None
    )


class MeasuredData(View):
    """One model on all rows (group null) or on one group of them; regimes: its bins, where they were asked for.

    positives: null for rows of several classes, which have by_class. clusters: where rows were sampled in such.
    places: where so many rows can be acted on only. by_outcome: the scores of each label, where a pack shows them.
    """

    model: str
    group: str | None
    rows: Positive
    positives: Count | None
    dropped: Count
    metrics: dict[MetricKey, DefinedData | UndefinedData] = of(
        lambda report, *_: {key: result_data(key, result) for key, result in report.results.items()}
    )
    regimes: Absent[list[Regime]]
    places: Absent[Places | None]
    by_class: Absent[ByClass | None]
    clusters: Absent[Clusters | None]
    without_labels: Absent[WithoutLabels | None]
    over_time: Absent[GainsOverTime | None]
    by_outcome: Absent[list[OutcomeScores]]


class Measures(Provenance):
    """All that the metrics rest on; pack: the one that chose them; reference: what the rows are held against."""

    pack: Absent[PackData | None] = of(lambda evaluation, _: evaluation if evaluation.pack else None)
    reference: Absent[Reference | None] = of(lambda _, reference: reference)


class Evaluated(WrittenResult):
    """An evaluation, for formats to write."""

    def __init__(self, evaluation: Evaluation, reference: Reference | None = None, listed: bool = False) -> None:
        """listed: the metrics were named, so that all of them stand in a table."""
        super().__init__(evaluation)
        self.reference = reference
        self.listed = listed

    def sections(self) -> Blocks:
        """What acting is worth and the numbers that say most, or the metrics that were named; then data and method."""
        evaluation = shortened(self.evaluation)
        reports = evaluation.reports
        notes = metric_notes(evaluation, self.listed)
        self.apart = self.listed and not notes
        source = Notes(source_lines(evaluation))
        if self.listed:
            yield source
            yield metric_table(reports, evaluation.pack)
        else:
            summary = Opening(evaluation)
            yield from summary.blocks()
            whole = [each for each in reports if each.group is None]
            for report in whole:
                yield from beside_blocks(report, evaluation, self.terms, named=len(whole) > 1)
        for report in reports:
            yield from class_blocks(report, named=len(reports) > 1)
        yield from regime_tables(reports)
        yield from pack_blocks(evaluation)
        if self.reference is not None:
            yield from reference_blocks(self.reference)
        yield from notes
        if not self.listed:
            yield summary.next_steps()
            yield source

    def data(self) -> Document:
        """One report, or several."""
        reports = [data_of(MeasuredData(report)) for report in self.evaluation.reports]
        return one_or_several(data_of(Measures(self.evaluation, self.reference)), reports)

    def rows(self) -> Records:
        """One row per model, group and metric."""
        yield ["model", "group", "metric", "value", "low", "high", "reason"]
        for report in self.evaluation.reports:
            for key, result in report.results.items():
                yield [*report.place, key, result.value, *ends_of(result), result.missing]
            for key, value in cell_rows(report.by_class):
                yield [*report.place, key, value, None, None, None]


def beside_blocks(report: Report, evaluation: Evaluation, terms: StatedTerms, named: bool = False) -> Blocks:
    """What rows without a label and the time of rows come to; named: say which model it is."""
    yield from without_labels_line(report, "weight" in evaluation.columns, terms, named)
    yield from over_time_blocks(report, terms, named)


def over_time_blocks(report: Report, terms: StatedTerms, named: bool = False) -> Blocks:
    """What was judged on what, a table by age, and how long a fit lasts; nothing where rows have no time.

    named: say which model it is.
    """
    over_time = report.over_time
    if over_time is None:
        return
    model = f" of {report.model}" if named else ""
    yield Paragraph(
        f"Gains are those of fits that learn from earlier rows only. They are judged on {over_time.rows:,} of "
        f"{report.rows:,} rows, those after the first block, each by a fit that ends just before its block. The table "
        "shows how older fits do.",
        strong=f"Over time{model}.",
    )
    scale = terms.scale(*amounts_of(report))
    days = over_time.unit == "days"
    say = saying(scale.factor)

    lasting = {"recalibration": over_time.recalibration_lasts}
    if over_time.ages[0].gain_post_training is not None:
        lasting["post-training"] = over_time.post_training_lasts

    def gain(method: str) -> Callable[[GainByAge], str]:
        won = attrgetter(f"gain_{method.replace('-', '_')}")
        return lambda age: DASH if won(age) is None else say(*won(age))

    yield table(
        over_time.ages,
        [
            (Column(f"{'days' if days else 'time'} after the fit", breaks=(10,)), lambda age: within(age.after)),
            ("rows", lambda age: f"{age.rows:,}"),
            *((Column(f"gain of {name}", breaks=(16, 8)), gain(name)) for name in lasting),
        ],
        keys=1,
        title=f"Gain by the age of the fit{model}",
        caption=f"Gains {scale.heading}.",
    )
    lines = []
    for name, after in lasting.items():
        lasts = "is not above 0 on the rows that follow a fit"
        if after is not None:
            far = f"up to {within(after)} {'days' if days else 'units of time'} after a fit"
            lasts = f"is above 0 {far}, and not in the next block"
            if after == over_time.ages[-1].after:
                lasts = f"stays above 0 as far as these rows show: {far}"
        lines.append(f"The gain of {name} {lasts}.")
    yield Notes(lines, close=True)


def metric_table(reports: Sequence[Report], pack: Pack | None = None, factor: float = 1.0) -> TextTable:
    """Metrics down, models and groups across; those of a pack as it calls them.

    factor: of utilities per decision, where the page writes amounts of many decisions.
    """

    def value(key: str, report: Report) -> Cell:
        each = report.results[key]
        if factor != 1.0 and each.value is not None and is_amount(parse(key).declared):
            return written(within(factor * each.value, times(each.interval, factor)))
        return number(each.value, each.interval, fewer=3, reason=each.reason, text=each.text, side=each.side)

    def name(key: str) -> Cell:
        cell = metric_name(key)
        return cell if pack is None else replace(cell, parts=(pack.measures[key],))

    def row(key: str) -> dict[str, Any]:
        metric = parse(key).declared
        # What is undefined everywhere keeps its row, with dashes, where people look for it.
        empty = all(report.results[key].value is None for report in reports) and not metric.shown
        return {"section": metric.family, "empty": empty} if pack is None else {}

    values = ((Column(each.model, each.group or ""), partial(value, report=each)) for each in reports)
    columns: Columns[str] = [(left("metric", wraps=True), name), (left(""), better), *values]
    return table(reports[0].results, columns, row, keys=2, dense=True)


def metric_notes(evaluation: Evaluation, listed: bool = True) -> list[Block]:
    """What stands below the numbers: tasks to paste, why some are missing, what intervals and features do not say.

    listed: of every metric in a table; else of those that the summary shows, which says itself what was not given.
    """
    reports = evaluation.reports
    worst = [*_worst_lines(reports)] if listed else []
    quiet = [*_within_lines(reports), *_places_lines(evaluation), *_part_lines(reports)]
    if listed:
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


def unknown_lines(evaluation: Evaluation) -> Lines:
    """Without features: what cannot be known, with the worst case, as such."""
    for report in evaluation.reports:
        worst, grouping = report.value("regret_grouping_worst"), report.results.get("regret_grouping")
        if not report.group and worst is not None and grouping is not None and grouping.value is None:
            yield (
                f"{_whose(report, evaluation.reports)}without {Hint('features').words}, the gain beyond recalibration "
                f"is unknown: between 0 and {plain(worst)} per decision (an upper limit, not an estimate)"
            )


def _part_lines(reports: Sequence[Report]) -> Lines:
    """The Brier score of each model as the sum of three parts, with so many decimals that what is printed adds up."""
    for report in reports:
        results = [report.results[key] for key in BRIER_PARTS if key in report.results]
        whole, *parts = (result.value for result in results if result.value is not None) if results else (None,)
        if report.group or whole is None or 1 + len(parts) < len(BRIER_PARTS):
            continue
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
    for report in evaluation.reports:
        places = report.places
        if places is None or report.group is not None:
            continue
        acted, room, reaching, without = counts((places.acted, places.places, places.reaching, places.without))
        text = f"{acted} of {room} places are taken, and no row that would be acted on is without one"
        if places.full:
            low, high = (plain(each) for each in places.thresholds)
            what = "a score" if places.ranked_by == "score" else "an expected gain"
            begins = f"{what} of {low} on" if low == high else f"{what} between {low} and {high} on, depending on {per}"
            every = f"; every place is taken in {places.full:,} of {places.lists:,} values of {per}" if per else ""
            text = (
                f"{acted} of {report.rows:,} rows are acted on, from {begins}; {reaching} would be without the limit, "
                f"so that {without} have no place{every}"
            )
        yield f"{'' if len(evaluation.models) == 1 else f'{report.model}: '}{text}"


def regime_tables(reports: Sequence[Report], factor: float = 1.0, measured_in: str = "") -> Blocks:
    """A table of bins for each model and group that has them, from the lowest score up, and what its columns mean.

    factor: of regrets per decision, and measured_in what they are then in, where the page writes amounts of many.
    """
    shown = [report for report in reports if report.regimes]
    for report in shown:
        yield _regime_table(report, f"{report.name}: " if len(reports) > 1 else "", factor)
    if shown:
        yield Notes((REGIMES_EXPLAINED + (f"; regrets are {measured_in}" if measured_in else ""),), quiet=True)


def _regime_table(report: Report, name: str, factor: float) -> TextTable:
    """The bins of a model, from the lowest score up, and their sum."""
    # All alike, with three digits of the largest, so that rows add up.
    sizes = [factor * size for r in report.regimes for size in (r.regret_calibration, r.regret_grouping or 0.0)]
    decimals = decimals_for((), sizes)

    def regret(value: float | None, low: float | None = None, high: float | None = None) -> Cell:
        bounds = None if low is None or high is None else (low, high)
        if factor == 1.0 or value is None:
            return by_words(number(value, bounds).text)
        return by_words(amount(factor * value, times(bounds, factor), decimals).text)

    bins = table(
        report.regimes,
        [
            (left(f"{name}score from, to", breaks=(9,)), lambda r: Cell((short(r.low, 4), f"to {short(r.high, 4)}"))),
            ("rows", lambda r: counted(r.rows)),
            (Column("mean score", drops=2), "score"),
            ("c", "rate"),
            (Column("grouping loss", breaks=(9,)), "grouping_loss"),
            (Column("Vmin", drops=1), "least_variance"),
            (Column("calibration regret", breaks=(9,)), lambda r: regret(r.regret_calibration)),
            (
                Column("grouping regret", breaks=(9,)),
                lambda r: regret(r.regret_grouping, r.regret_grouping_lower, r.regret_grouping_upper_sharp),
            ),
            (left("larger"), "larger"),
        ],
        keys=1,
    )
    # The metrics are the sums of the columns.
    known = [r.regret_grouping for r in report.regimes if r.regret_grouping is not None]
    regrets = regret(sum(r.regret_calibration for r in report.regimes)), regret(sum(known) if known else None)
    cells = map(words, ("all", counted(sum(r.rows for r in report.regimes)), *[""] * 4))
    return replace(bins, rows=(*bins.rows, Row((*cells, *regrets, words("")), apart=True)))


def class_blocks(report: Report, named: bool) -> Blocks:
    """A table of several classes, and of the actions on each. named: whether model and group stand above."""
    by_class = report.by_class
    if by_class is None:
        return
    whose, shown, which = f"{report.name}: " if named else "", by_class.classes, ""
    names = [each.name for each in shown]
    if len(names) > MAX_CLASSES_SHOWN:
        shown = tuple(sorted(shown, key=lambda each: (*lowest_first(each.recall), each.name))[:N_LOWEST])
        has = f"{Hint('format', 'json').words} has all"
        which = f", the {N_LOWEST} of {len(names)} with the lowest recall ({has})"
    yield table(
        shown,
        [
            (left("class"), "name"),
            ("rows", lambda each: counted(each.rows)),
            ("predicted", lambda each: counted(each.predicted)),
            ("right", lambda each: counted(each.right)),
            ("precision", "precision"),
            ("recall", "recall"),
        ],
        title=f"{whose}classes{which}",
        keys=1,
    )
    done = by_class.decisions
    if done is None:
        return
    if len(names) <= MAX_ACROSS and len(done.actions) <= 2 * MAX_ACROSS:
        yield from _across(done, names, "class", whose, report.places is not None)
    else:
        yield _costliest(done, names, whose)


def action_tables(report: Report) -> Iterator[TextTable]:
    """What is done with scores of two classes where there are more than two actions."""
    assert report.by_action is not None  # asked where there are such
    return _across(report.by_action, ("label 0", "label 1"), "label", "", report.places is not None)


def cell_rows(by_class: ByClass | None) -> Iterator[tuple[str, float]]:
    """Rows and loss of every cell that holds rows, by a key, for CSV."""
    if by_class is None or by_class.decisions is None:
        return
    done = by_class.decisions
    for what, cells in (("rows", done.rows), ("loss", done.loss)):
        for a, action in enumerate(done.actions):
            for k, each in enumerate(by_class.classes):
                if done.rows[a][k] > 0:
                    yield f"{what}[{action}, {each.name}]", cells[a][k]


def _across(done: ActionCounts, names: Sequence[str], of_rows: str, whose: str, limited: bool) -> Iterator[TextTable]:
    """A row for each action and a column for each class: rows, and what they lose; limited: to so many places."""
    lost = [[round(1000 * loss, 2) for loss in row] for row in done.loss]
    limit = " without the limit" if limited else ""
    title = f"{whose}what each loses against the best action for the {of_rows}, per 1,000 rows"
    for cells, above in ((done.rows, f"{whose}actions taken{limit}, by {of_rows}: rows"), (lost, title)):
        rows = [(action, *map(counted, row)) for action, row in zip(done.actions, cells, strict=True)]
        yield texts(("action", *names), rows, title=above, keys=1)


def _costliest(done: ActionCounts, names: Sequence[str], whose: str) -> TextTable:
    """The cells of action and class that lose most against the best action for the class."""
    places = ((a, k) for a in range(len(done.actions)) for k in range(len(names)) if done.loss[a][k] > 0)
    cells = sorted(places, key=lambda at: (-done.loss[at[0]][at[1]], done.actions[at[0]], names[at[1]]))
    return table(
        cells[:N_COSTLIEST],
        [
            (left("action"), lambda at: done.actions[at[0]]),
            (left("class"), lambda at: names[at[1]]),
            ("rows", lambda at: counted(done.rows[at[0]][at[1]])),
            ("loss per row", lambda at: plain(done.loss[at[0]][at[1]])),
        ],
        title=f"{whose}the {len(cells[:N_COSTLIEST])} of {len(cells):,} cells of action and class that lose most",
        keys=2,
    )


def pack_blocks(evaluation: Evaluation) -> Blocks:
    """All that a pack shows below its measures."""
    pack = evaluation.pack
    if pack is None:
        return
    by_outcome = [(report, each) for report in evaluation.reports for each in report.by_outcome]
    if by_outcome:
        yield Heading("Scores by outcome")
        yield table(
            by_outcome,
            [
                len({id(report) for report, _ in by_outcome}) > 1 and (left("model"), lambda row: row[0].name),
                ("label", lambda row: str(row[1].label)),
                ("rows", lambda row: f"{row[1].rows:,}"),
                ("mean", lambda row: row[1].mean),
                *((percent(share), lambda row, at=f"{share:g}": row[1].quantiles[at]) for share in QUANTILES),
            ],
        )
    for model, gaps in grouped((gap.model, gap) for gap in evaluation.gaps).items():
        yield Heading("Groups that are apart" + (f": {model}" if len(evaluation.models) > 1 else ""))
        yield _gap_table(gaps, pack)
    if evaluation.gaps or evaluation.too_small:
        yield Notes(_gap_notes(evaluation, pack), quiet=True)
    yield Notes(map(said, pack.notes), quiet=True)


def _gap_table(gaps: Sequence[Gap], pack: Pack) -> TextTable:
    """The clear pairs of each metric, or the most certain one where none is clear."""
    by_metric = grouped(((gap.column, gap.metric), gap) for gap in gaps)
    return table(
        [gap for of_metric in by_metric.values() for gap in of_metric[:MAX_PAIRS]],
        [
            len({gap.column for gap in gaps}) > 1 and (left("column"), "column"),
            (left("metric"), lambda gap: pack.measures[gap.metric]),
            (left("higher (rows)"), lambda gap: f"{gap.high} ({counted(gap.high_rows)})"),
            (left("lower (rows)"), lambda gap: f"{gap.low} ({counted(gap.low_rows)})"),
            ("gap", lambda gap: number(gap.difference, gap.interval)),
            (left("beyond noise"), lambda gap: "unknown" if gap.interval is None else "yes" if gap.clear else "no"),
        ],
    )


def _gap_notes(evaluation: Evaluation, pack: Pack) -> Lines:
    """What a gap is, how sure its interval is, and which groups are not compared."""
    if evaluation.gaps:
        together = ""
        if evaluation.plan.intervals:
            sure = plain(100 * evaluation.plan.confidence)
            together = f", with an interval that holds for all pairs of groups at once ({sure} %)"
        yield (
            f"gap: the higher value less the lower{together}; every pair that is clearly apart is listed, the most "
            "certain first, or the most certain one where none is; rows: those of the denominator"
        )
    counts = Counter((gap.model, gap.column, gap.metric) for gap in evaluation.gaps)
    cut = [f"{pack.measures[key]} {count:,}" for (_, _, key), count in counts.items() if count > MAX_PAIRS]
    if cut:
        has = f"{Hint('format', 'json').words} has all"
        yield f"the {MAX_PAIRS} most certain pairs of each metric are listed; {has}: {', '.join(cut)}"
    small = grouped(
        (f"{each.group} ({counted(each.rows)})", pack.measures[each.metric]) for each in evaluation.too_small
    )
    if small:
        listed = [f"{group} for {', '.join(dict.fromkeys(names))}" for group, names in small.items()]
        more = f"; and {len(listed) - MAX_PAIRS:,} more" if len(listed) > MAX_PAIRS else ""
        yield (
            f"too small to be compared, fewer than {MIN_DENOMINATOR} rows in the denominator: "
            f"{'; '.join(listed[:MAX_PAIRS])}{more}"
        )


def reference_blocks(reference: Reference) -> Blocks:
    """A row for each model, what follows, and what the columns mean."""

    def pvalue(shift: Shift) -> str:
        value = shift.pvalue
        return DASH if value is None else "< 0.0001" if value < 1e-4 else plain(round(value, 4))

    names = ", ".join(item.path for item in reference.inputs)
    yield Heading(f"Against the reference: {names}, {sum(item.rows for item in reference.inputs):,} rows")
    yield table(
        reference.models,
        [
            (left("model"), "model"),
            ("PSI", "psi"),
            ("labels 1 in the reference", lambda shift: percent(shift.reference_share)),
            ("in these rows", lambda shift: percent(shift.share)),
            ("by the scores alone", lambda shift: number(shift.by_scores, shift.interval, reason=shift.reason)),
            ("p-value", pvalue),
        ],
    )
    yield Notes(f"{shift.model}: {_meaning(shift)}" for shift in reference.models)
    explained = (
        f"PSI: population stability index on {N_BINS} equal-mass bins of the reference; p-value: how often scores "
        "differ so much where the scores of each label are those of the reference"
    )
    yield Notes((explained,), quiet=True)


def _meaning(shift: Shift) -> str:
    if shift.alike is None:
        return f"the scores alone cannot tell the share of labels 1: {shift.reason}"
    if not shift.alike:
        return (
            f"the scores of one label are not those of the reference (p-value up to {plain(MAX_PVALUE)}): "
            "what was learned on the reference, such as a calibration, need not hold here"
        )
    low, high = shift.interval or (-math.inf, math.inf)
    if not low <= shift.share <= high:
        return (
            "the scores look like those of the reference with another share of labels 1, but not with the share that "
            "these labels have: the labels mean something else, or the scores tell less here"
        )
    if shift.interval is not None and low <= shift.reference_share <= high:
        return "nothing differs from the reference beyond noise"
    return (
        f"no more than the share of labels 1 differs from the reference; {Verb('recommend').words} on the "
        "reference with "
        f"{Hint('prevalence', f'{plain(round(shift.by_scores or 0.0, 4))}').words} says what moving its scores "
        "to that share wins"
    )


class Opening:
    """What `decal evaluate` opens with: what acting is worth, the numbers that say most, where to look next.

    Amounts are per 1,000 decisions, with the decimals that the widest interval of what acting on a model is worth
    deserves, or else the largest amount.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation, self.reports = evaluation, evaluation.reports
        self.models = sorted((report for report in evaluation.reports if report.group is None), key=_place)
        self.groups = len({report.group for report in evaluation.reports} - {None})
        worths = [report.worth for report in self.models if report.worth is not None]
        self.limited = any(worth.limited for worth in worths)
        ends = filter(None, (times(each.now.interval, PER) for each in worths))
        widest = max(ends, key=lambda each: each[1] - each[0], default=None)
        amounts = [PER * value for each in worths for value in (each.now.value, each.over.value)]
        self.decimals = decimals_for((widest,), amounts)

    def blocks(self) -> Blocks:
        """A sentence on each model, or on all of several; then the numbers."""
        if len(self.reports) == 1:
            yield Paragraph(" ".join(self._of_one(self.reports[0])))
            yield from self._numbers(self.reports[0])
        else:
            yield Paragraph(" ".join(self._of_several()))
            yield self._ranked_table()

    def _amount(self, value: float, interval: Interval | None = None) -> str:
        """A utility per decision as an amount, with its interval."""
        return bracketed(fixed(PER * each, self.decimals) for each in (value, *(interval or ())))

    def _of_one(self, report: Report) -> Lines:
        """What acting on the score is worth, what would win more, and what is unknown."""
        worth, model = report.worth, report.model
        if worth is None:
            yield from _undecided(report)
            return
        acting, best, ideal = model, ", the best constant decision", "perfect knowledge"
        if self.limited:
            acting, best, ideal = f"the rows that {model} puts first", "", "without the limit it"
        yield (
            f"Acting on {acting} is worth {self._amount(*worth.now)} per {PER:,} decisions, "
            f"{self._against(worth.over)} {_constant(worth)}{best} ({self._amount(worth.constant)}); {ideal} would be "
            f"worth {self._amount(worth.perfect)}."
        )
        share = report.value("utility_share")
        if share is not None and share > 0 and worth.over.value > 0 and not self.limited:
            yield f"That is {percent(round(share, 2))} of what the best threshold on these scores would win."
        gain, beyond = map(report.known, ("gain_recalibration", "gain_beyond"))
        if gain is not None:
            yield f"{self._without_limit('Recalibration')} {self._would_win(*gain)}."
        elif "gain_recalibration" in report.results:
            yield f"What recalibration would win is unknown: it {report.results['gain_recalibration'].reason}."
        if beyond is not None:
            yield f"Beyond that, the features {self._would_win(*beyond)}."
        elif not report.features:
            worst, most = report.value("regret_grouping_worst"), ""
            if worst is not None:
                most = f": at most {self._amount(worst)}, which is an upper limit and not an estimate"
            yield f"What features would win beyond that is unknown without {Hint('features').words}{most}."

    def _without_limit(self, words: str) -> str:
        """The beginning of a sentence, which says first that it is of decisions without a limit, where there is one."""
        return f"Without the limit, {words[0].lower()}{words[1:]}" if self.limited else words

    def _against(self, over: Utility) -> str:
        """'6.5 [2.0, 11.0] more than', or less."""
        if not over.value and (over.interval is None or not any(over.interval)):
            return "as much as"
        return f"{self._amount(*sized(*over))} {'less' if over.value < 0 else 'more'} than"

    def _would_win(self, value: float, ends: Interval | None) -> str:
        if ends is not None and ends[0] <= 0 <= ends[1]:
            return f"may win or lose: {self._amount(value, ends)}"
        return f"would {'lose' if value < 0 else 'win'} {self._amount(*sized(value, ends))}"

    def _of_several(self) -> Lines:
        """Which model is worth most, which are worth less than a constant, and where recalibration wins most."""
        first, count = self.models[0], len(self.models)
        worth = first.worth
        if count == 1:
            yield from self._of_one(first)
        elif worth is None:
            brier = first.known("brier")
            if brier is not None:
                yield f"Of {count} models, {first.model} has the lowest Brier score, {told(*brier)}."
            yield f"What acting on them wins or loses needs a decision: give {needed(first.by_class is not None)}."
        else:
            yield (
                f"Of {count} models, {first.model} is worth most: {self._amount(*worth.now)} per {PER:,} decisions; "
                f"{_constant(worth)} is worth {self._amount(worth.constant)}, "
                f"{f'{first.model} without the limit' if self.limited else 'perfect knowledge'} "
                f"{self._amount(worth.perfect)}."
            )
            lose = [report.model for report in self.models if report.worth and report.worth.over.value <= 0]
            if lose:
                more = f" and {len(lose) - MAX_NAMED} more" if len(lose) > MAX_NAMED else ""
                than = "acting on none" if self.limited else "the best constant decision"
                yield f"No better than {than}: {', '.join(lose[:MAX_NAMED])}{more}."
            yield from self._most_to_win()
        if self.groups:
            each = f"each of {self.groups:,} groups" if self.groups > 1 else "the only group"
            yield f"The table has {'each model and' if count > 1 else 'all rows, and'} {each}."

    def _most_to_win(self) -> Lines:
        whole = [report for report in self.reports if report.group is None]
        known = [(gain, report.model) for report in whole if (gain := report.known("gain_recalibration"))]
        winning = [each for each in known if (each[0].interval or each[0])[0] > 0]
        wins = "Recalibration clearly wins" if any(gain.interval for gain, _ in known) else "Recalibration wins"
        wins = self._without_limit(wins)
        if winning:
            most, model = max(winning, key=lambda each: each[0].value)
            of_all = f"for {len(winning)} of them" if len(winning) < len(known) else "for all of them"
            yield f"{wins} {of_all}, most for {model}: {self._amount(*most)}."
        elif known:
            yield f"{wins} for none of them."
        if not any(report.features for report in whole):
            yield f"What features would win is unknown without {Hint('features').words}."

    def _heading(self, key: str, wins: str = "") -> str:
        """What a metric is called; wins: what is said of it, where it is a gain, which is one without a limit."""
        section, name = SHORT[key]
        return f"{name}{wins}{' without limit' * self.limited}" if section == WORTH else name

    def _numbers(self, report: Report) -> Blocks:
        """The numbers that say most, in sections that stand side by side; apart from them, those of small trees."""
        rows, apart, worth = list[Row](), [], report.worth
        if worth is not None:
            constant = "acting on none" if self.limited else f"always {worth.action}"
            perfect = "without limit" if self.limited else "perfect"
            known = {"as it is": self._amount(*worth.now)}
            known |= {constant: self._amount(worth.constant), perfect: self._amount(worth.perfect)}
            rows = [Row((words(name), written(amount)), WORTH) for name, amount in known.items()]
        for key, result in report.results.items():
            section, _ = SHORT.get(key, ("", ""))
            if not section or result.value is None or (self.limited and key in SKIPPED_AT_LIMIT):
                continue
            cell, name = self._cell(key, result), self._heading(key)
            if section == TREES:
                apart.append(f"{name} {cell.text}")
            else:
                rows.append(Row((Cell((name,), code=key), cell), section))
        rows.sort(key=lambda row: (WORTH, LIMITED, SCORE, CALIBRATION).index(row.section))
        if rows:
            yield TextTable((left("metric"), Column(report.model)), rows, beside=True)
        if report.features and len(apart) > 1:
            yield Paragraph(f"{', '.join(apart)}. {TREES_SENTENCE}", strong=f"{TREES}:")

    def _cell(self, key: str, result: Result | None) -> Cell:
        """Utilities as amounts, all else as it is; a value that says itself as it does."""
        if result is None or result.value is None:
            return Cell((DASH,), reason="" if result is None else result.reason or "")
        metric = parse(key).declared
        if is_amount(metric):
            return written(self._amount(result.value, result.interval))
        # The range of what chance shows is not an interval of anything.
        interval = None if metric.name.endswith("_null") else result.interval
        return written(told(result.value, interval, result.side), result.text)

    def _ranked_table(self) -> TextTable:
        """A row for each model and group, the model that is worth most first, each followed by its groups."""
        order = {report.model: number for number, report in enumerate(self.models)}
        keys = [key for key in COLUMNS if any(report.value(key) is not None for report in self.reports)]
        decided, several = any(report.worth is not None for report in self.reports), len(self.models) > 1

        def worth(of: str) -> Callable[[Report], Cell]:
            return lambda each: written(self._amount(*getattr(each.worth, of))) if each.worth else words(DASH)

        def values(key: str) -> tuple[Column, Callable[[Report], Cell]]:
            # Where there is little room, those that decide least go first.
            drops = {"ece": 1, "ece_top": 1, "brier": 2, "auc": 2}.get(key, 0)
            heading = self._heading(key, " win" if key == "gain_beyond" else " wins")
            return Column(heading, breaks=(9,), drops=drops), lambda each: self._cell(key, each.results.get(key))

        over = "over acting on none" if self.limited else "over best constant"
        return table(
            sorted(self.reports, key=lambda report: (order.get(report.model, len(order)), report.group is not None)),
            [
                (several or not self.groups) and (left("model"), "model"),
                self.groups > 0 and (left("group"), lambda each: each.group or "all rows"),
                self.groups > 0 and (Column("rows", drops=2), lambda each: f"{each.rows:,}"),
                decided and (Column(f"worth per {PER:,}", breaks=(9,)), worth("now")),
                decided and (Column(over, breaks=(9,)), worth("over")),
                *map(values, keys),
            ],
            keys=1 + (self.groups > 0 and several),
            dense=True,
        )

    def next_steps(self) -> Notes:
        """Where to look next."""
        evaluation = self.evaluation
        shared = evaluation.decision is None and evaluation.by_row is None
        steps = [
            f"{Verb('recommend').words} (what to do)" if evaluation.plan.decision is not None else "",
            f"{Verb('compare').words} (two models row by row)" if len(evaluation.models) > 1 else "",
            f"{Verb('sweep').words} (every threshold)" if shared else "",
            f"{Verb('evaluate', 'all').words} (every metric)",
        ]
        return Notes((f"Next: {', '.join(filter(None, steps))}.",), quiet=True)


def told(value: float, interval: Interval | None, side: str | None = None) -> str:
    """A number with its interval, or the side of it that says something, and as many decimals as that deserves."""
    if interval is None:
        return fixed(value, decimals_for([], [value]))
    known = {"at least": interval[:1], "at most": interval[1:]}.get(side or "", interval)
    decimals = decimals_for([interval if side is None else (min(value, *known), max(value, *known))], [value])
    ends = ", ".join(fixed(end, decimals) for end in known)
    return f"{fixed(value, decimals)} [{ends if side is None else f'{side} {ends}'}]"


def _undecided(report: Report) -> Lines:
    """Without a decision: how it ranks, how far off it is, and what is needed to say what it is worth."""
    auc, brier, off = report.known("auc"), report.known("brier"), report.value("corp_mcb")
    its = f"{report.model}'s"
    if auc is not None and report.by_class is None:
        its = "Its"
        yield f"{report.model} puts a row of label 1 above one of label 0 with probability {told(*auc)} (AUC)."
    if brier is not None:
        of_that = "" if off is None else f", of which {told(off, None)} is miscalibration"
        yield f"{its} Brier score is {told(*brier)}{of_that}."
    yield f"What acting on it wins or loses needs a decision: give {needed(report.by_class is not None)}."


def needed(of_classes: bool) -> str:
    """The options that name a decision."""
    if of_classes:
        return f"{Hint('abstain').words}, or {Hint('utility').words} with a column for each class"
    costs = f"{Hint('cost_fp').words} and {Hint('cost_fn').words}"
    return f"{costs}, {Hint('threshold').words}, {Hint('odds').words} or {Hint('utility').words}"


def _constant(worth: Worth) -> str:
    """What is always done instead."""
    return "acting on none" if worth.limited else f"always deciding {worth.action}"


def _place(report: Report) -> tuple[bool, float]:
    """To sort by: what is worth most first, without a decision the lowest Brier score."""
    return lowest_first(report.value("brier") if report.worth is None else -report.worth.now.value)


def is_amount(metric: Metric) -> bool:
    """Whether a metric is a utility per decision, so that many decisions have so many times that."""
    return metric.unit == "utility" and metric.name not in OF_ONE_ROW
