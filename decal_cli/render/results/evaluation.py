"""What `decal evaluate` returns: metrics of models and groups, and the sections that stand below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from decal_cli.analysis.described import (
    MAX_PVALUE,
    ActionCounts,
    ByClass,
    Clusters,
    Places,
    Reference,
    Regime,
    Shift,
    WithoutLabels,
)
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.packs import MIN_DENOMINATOR, QUANTILES, Gap, OutcomeScores, Pack, TooSmall
from decal_cli.declarations.document import Absent, Count, Inside, Limit, Positive, Share, Size, Words
from decal_cli.hints import Hint, Verb, said
from decal_cli.limits import MAX_ACTIONS
from decal_cli.metrics import Result, Witness, parse
from decal_cli.metrics.declare import Side, Within
from decal_cli.metrics.label_shift import N_BINS
from decal_cli.numbers import (
    DASH,
    MAX_DECIMALS,
    Interval,
    counts,
    decimals_for,
    percent,
    plain,
    short,
    span,
    times,
    within,
)
from decal_cli.render.blocks import Block, Cell, Column, Heading, Notes, Row, Signature, SourceLines, TextTable
from decal_cli.render.cells import counted, left, metric_cells, number, table, words
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import Provenance, one_or_several, source_lines, title_of, without_labels_line
from decal_cli.render.results.summary import is_amount, next_steps, opening, shown_in
from decal_cli.render.schema import View, data_of, of
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
"""How reasons begin that the summary says in its first sentences."""
MAX_PASTED = 40
"""Payoffs of a worst agent that a line of text holds; of more, JSON has them."""
MAX_ACROSS = 8
"""Classes that stand side by side; of more, the cells that cost most are listed."""
N_COSTLIEST = 10
"""So many of them."""
MAX_PAIRS = 10
"""Pairs of groups of one metric that a table shows."""
MAX_CLASSES_SHOWN, N_LOWEST = 30, 20
"""Classes that the table of classes shows; of more, so many with the lowest recall."""
REGIMES_EXPLAINED = (
    "a regret is what the bin adds to the metric of that name, the grouping regret between its lower and its sharp "
    "upper bound; a grouping loss up to Vmin may change no decision, one above it does; larger: the larger of the two "
    "regrets"
)
MetricKey = Annotated[str, Limit(pattern=r"^[a-z_0-9]+(\([a-z_]+=[^(),]+(,[a-z_]+=[^(),]+)*\))?$")]
Payoffs = Annotated[list[Share], Limit(minItems=2, maxItems=2)]


class TwoActionsData(View):
    """The worst task of two actions; loss: what is lost in it, as the metric shown_by shows."""

    utility: Annotated[list[Payoffs], Limit(minItems=2, maxItems=2)]
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


class WithinData(View):
    """Of a value from cells of the score. bound: how far it may be from that of the rows, 0 where it is exact. drawn:
    it rests on folds or draws of cells, and bound is of what they estimate.
    """

    bound: Size
    drawn: bool


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
    worst_agent: Absent[WorstAgentData | None] = of("witness")
    within: Absent[WithinData | None]
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
        lambda evaluation, *_: evaluation.gaps if evaluation.pack.compares_groups else None
    )
    too_small: Absent[list[TooSmall] | None] = of(
        lambda evaluation, *_: evaluation.too_small if evaluation.pack.compares_groups else None
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
    regimes: Absent[list[Regime] | None] = of(lambda report, *_: report.regimes or None)
    places: Absent[Places | None]
    by_class: Absent[ByClass | None]
    clusters: Absent[Clusters | None]
    without_labels: Absent[WithoutLabels | None]
    by_outcome: Absent[list[OutcomeScores] | None] = of(lambda report, *_: report.by_outcome or None)


class Measures(Provenance):
    """All that the metrics rest on; pack: the one that chose them; reference: what the rows are held against."""

    pack: Absent[PackData | None] = of(lambda evaluation, _: evaluation if evaluation.pack else None)
    reference: Absent[Reference | None] = of(lambda _, reference: reference)


class Evaluated:
    """An evaluation, for formats to write."""

    def __init__(self, evaluation: Evaluation, reference: Reference | None = None, listed: bool = False) -> None:
        """listed: the metrics were named, so that all of them stand in a table."""
        self.evaluation = evaluation
        self.reference = reference
        self.listed = listed
        self.title = title_of(evaluation)

    def blocks(self) -> Iterator[Block]:
        """What acting is worth and the numbers that say most, or the metrics that were named; then data and method."""
        evaluation = shortened(self.evaluation)
        reports = evaluation.reports
        notes = metric_notes(evaluation, self.listed)
        source = SourceLines(tuple(source_lines(evaluation)))
        if self.listed:
            yield source
            yield metric_table(reports, evaluation.pack)
        else:
            yield from opening(evaluation)
            weighted, whole = "weight" in evaluation.columns, [each for each in reports if each.group is None]
            for report in whole:
                line = without_labels_line(report, weighted, StatedTerms(), named=len(whole) > 1)
                yield from filter(None, (line,))
        for report in reports:
            yield from class_blocks(report, named=len(reports) > 1)
        yield from regime_tables(reports)
        yield from pack_blocks(evaluation)
        if self.reference is not None:
            yield from reference_blocks(self.reference)
        yield from notes
        if not self.listed:
            yield next_steps(evaluation)
            yield source
        yield Signature(evaluation.signature, close=not self.listed or bool(notes))

    def data(self) -> dict[str, Any]:
        """One report, or several."""
        reports = [data_of(MeasuredData(report)) for report in self.evaluation.reports]
        return one_or_several(data_of(Measures(self.evaluation, self.reference)), reports)

    def rows(self) -> Iterator[list[Any]]:
        """One row per model, group and metric."""
        yield ["model", "group", "metric", "value", "low", "high", "reason"]
        for report in self.evaluation.reports:
            for key, result in report.results.items():
                ends = result.interval or (None, None)
                yield [report.model, report.group, key, result.value, *ends, result.missing]
            for key, value in cell_rows(report.by_class):
                yield [report.model, report.group, key, value, None, None, None]


def name_of(report: Report) -> str:
    """The model, and the group if it is one."""
    return ", ".join(filter(None, (report.model, report.group)))


def metric_table(reports: Sequence[Report], pack: Pack | None = None, factor: float = 1.0) -> TextTable:
    """Metrics down, models and groups across; those of a pack as it calls them.

    factor: of utilities per decision, where the page writes amounts of many decisions.
    """
    columns = [Column("metric", words=True), Column("", words=True)]
    columns += [Column(report.model, report.group or "") for report in reports]
    rows = tuple(_rows(reports, factor))
    if pack is not None:
        rows = tuple(_as_called(row, pack) for row in rows)
    return TextTable(tuple(columns), rows, keys=2, dense=True)


def _as_called(row: Row, pack: Pack) -> Row:
    name, *others = row.cells
    return replace(row, cells=(replace(name, parts=(pack.measures[name.code],)), *others), section="", empty=False)


def _rows(reports: Sequence[Report], factor: float) -> Iterator[Row]:
    for key in reports[0].results:
        metric = parse(key).declared
        results = [report.results[key] for report in reports]
        cells = (_amount(each, factor) if factor != 1.0 and is_amount(metric) else _value(each) for each in results)
        # What is undefined everywhere keeps its row, with dashes, where people look for it.
        empty = all(each.value is None for each in results) and not metric.shown
        yield Row((*metric_cells(key), *cells), metric.family, empty=empty)


def _value(result: Result) -> Cell:
    return number(result.value, result.interval, fewer=3, reason=result.reason, text=result.text, side=result.side)


def _amount(result: Result, factor: float) -> Cell:
    if result.value is None:
        return _value(result)
    value, _, ends = within(factor * result.value, times(result.interval, factor)).partition(" ")
    return Cell(tuple(filter(None, (value, ends))))


def metric_notes(evaluation: Evaluation, listed: bool = True) -> list[Block]:
    """What stands below the numbers: tasks to paste, why some are missing, what intervals and features do not say.

    listed: of every metric in a table; else of those that the summary shows, which says itself what was not given.
    """
    reports = evaluation.reports
    worst = worst_lines(reports) if listed else []
    per = evaluation.columns.get("per")
    places = places_lines(reports, per if isinstance(per, str) else None)
    quiet = [
        *within_lines(reports),
        *places,
        *part_lines(reports),
        *(undefined_reasons(reports) if listed else undefined_reasons(reports, shown_in(reports), _NOT_GIVEN)),
        *(unknown_lines(evaluation) if listed else ()),
    ]
    blocks: list[Block] = [Notes(tuple(worst), copy=True)] if worst else []
    blocks += [Notes(tuple(quiet), quiet=True)] if quiet else []
    return [replace(block, close=bool(number)) for number, block in enumerate(blocks)]


def within_lines(reports: Sequence[Report]) -> list[str]:
    """Of values from cells of the score: which are exact, and how far the others may be from those of the rows."""
    bounds: dict[str, Within] = {}
    for report in reports:
        for key, result in report.results.items():
            if result.within is not None and result.value is not None:
                bounds[key] = max(result.within, bounds.get(key, result.within))
    if not bounds:
        return []
    exact = [key for key, each in bounds.items() if not each.bound and not each.drawn]
    near = [f"{key} {plain(each.bound)}" for key, each in bounds.items() if each.bound and not each.drawn]
    drawn = [f"{key} {plain(each.bound)}" for key, each in bounds.items() if each.drawn]
    lines = [f"from cells of the score; exact: {', '.join(exact) or 'none'}"]
    if len(exact) == len(bounds):
        lines = ["from cells of the score; all numbers are exact"]
    lines += [f"at most so far from the value of the rows: {', '.join(near)}"] if near else []
    lines += [
        f"from folds or draws of cells, and what these estimate is at most so far off: {', '.join(drawn)}"
    ] * bool(drawn)
    return lines


def unknown_lines(evaluation: Evaluation) -> list[str]:
    """Without features: what cannot be known, with the worst case, as such."""
    lines = []
    for report in evaluation.reports:
        worst = report.results.get("regret_grouping_worst")
        grouping = report.results.get("regret_grouping")
        if report.group or worst is None or worst.value is None or grouping is None or grouping.value is not None:
            continue
        name = "" if len(evaluation.reports) == 1 else f"{report.model}: "
        lines.append(
            f"{name}without {Hint('features').words}, the gain beyond recalibration is unknown: between 0 and "
            f"{plain(worst.value)} "
            "per decision (an upper limit, not an estimate)"
        )
    return lines


def part_lines(reports: Sequence[Report]) -> list[str]:
    """The Brier score of each model as the sum of three parts, with so many decimals that what is printed adds up."""
    lines = []
    for report in reports:
        whole, *parts = (report.results.get(key) for key in BRIER_PARTS)
        results = [result for result in (whole, *parts) if result is not None and result.value is not None]
        if report.group or len(results) < len(BRIER_PARTS):
            continue
        decimals = _adding(*(result.value or 0.0 for result in results))
        sizes = [
            f"{short(result.value or 0.0, decimals)} {span(result.interval, decimals, result.side)}"
            for result in results
        ]
        of_whole, *texts = (f"{name} {size}".strip() for name, size in zip(BRIER_PARTS.values(), sizes, strict=True))
        lines.append(f"{'' if len(reports) == 1 else f'{report.model}: '}{of_whole} = {' + '.join(texts)}")
    return lines


def _adding(whole: float, *parts: float) -> int:
    """The fewest decimals, from 4 on, with which rounded parts add up to the rounded whole."""
    for decimals in range(4, MAX_DECIMALS):
        if abs(sum(round(part, decimals) for part in parts) - round(whole, decimals)) < 0.5 / 10**decimals:
            break
    return decimals


def worst_lines(reports: Sequence[Report]) -> list[str]:
    """The tasks of the worst agents, to be pasted: one line for all metrics of a report that share one."""
    lines = []
    for report in reports:
        keys: dict[str, list[str]] = {}
        for key, result in report.results.items():
            if result.witness is not None:
                keys.setdefault(_worst(result.witness), []).append(key)
        where = "" if len(reports) == 1 else f" on {name_of(report)}"
        lines += [f"worst agent of {', '.join(shared)}{where}: {text}" for text, shared in keys.items()]
    return lines


def _worst(witness: Witness) -> str:
    actions, loses = f"{len(witness.utility)} actions", f"(loses {plain(witness.loss)}, see {witness.shown_by})"
    if len(witness.utility) * len(witness.utility[0]) > MAX_PASTED:
        return f"{actions}, {Hint('utility').words} in JSON, as worst_agent {loses}"
    paste = f"{Hint('utility').words} '{utility_text(witness.utility)}' {loses}"
    if not witness.thresholds:
        return f"{actions}, {paste}"
    kinks = " and ".join(plain(threshold) for threshold in witness.thresholds)
    if len(witness.utility) == 2:
        return f"the V-shaped rule with its kink at {kinks}, {paste}"
    return f"{actions}, the rule with kinks at {kinks}, {paste}"


def undefined_reasons(
    reports: Sequence[Report], among: Container[str] | None = None, known: Sequence[str] = ()
) -> list[str]:
    """Why cells show a dash, or a value without its interval: one line for each reason.

    among: the metrics that are shown, by default all. known: how reasons begin that stand elsewhere.
    """
    places: dict[str, list[tuple[str, str]]] = {}
    for report in reports:
        where = "" if len(reports) == 1 else f" of {' in '.join(filter(None, (report.model, report.group)))}"
        for key, result in report.results.items():
            reason = result.missing
            if reason is not None and (among is None or key in among) and not reason.startswith(tuple(known)):
                places.setdefault(reason, []).append((key, where))
    lines = []
    for reason, all_places in places.items():
        many = len(all_places) > MAX_PLACES
        named = dict.fromkeys(key if many else key + where for key, where in all_places)
        lines.append(f"{DASH} {', '.join(named)}: {reason}")
    return lines


def places_lines(reports: Sequence[Report], per: str | None) -> Iterator[str]:
    """A sentence on the places of each model, on all of its rows; per: the column whose values have places each."""
    models = {report.model for report in reports}
    for report in reports:
        if report.places is not None and report.group is None:
            yield ("" if len(models) == 1 else f"{report.model}: ") + _sentence(report.rows, report.places, per)


def _sentence(rows: int, places: Places, per: str | None) -> str:
    acted, room, reaching, without = counts((places.acted, places.places, places.reaching, places.without))
    if not places.full:
        return f"{acted} of {room} places are taken, and no row that would be acted on is without one"
    low, high = (plain(each) for each in places.thresholds)
    what = "a score" if places.ranked_by == "score" else "an expected gain"
    begins = f"{what} of {low} on" if low == high else f"{what} between {low} and {high} on, depending on {per}"
    lists = "" if per is None else f"; every place is taken in {places.full:,} of {places.lists:,} values of {per}"
    return (
        f"{acted} of {rows:,} rows are acted on, from {begins}; {reaching} would be without the limit, so that "
        f"{without} have no place{lists}"
    )


def regime_tables(reports: Sequence[Report], factor: float = 1.0, measured_in: str = "") -> Iterator[Block]:
    """A table of bins for each model and group that has them, and what its columns mean.

    factor: of regrets per decision, and measured_in what they are then in, where the page writes amounts of many.
    """
    shown = [report for report in reports if report.regimes]
    for report in shown:
        yield _regime_table(report, f"{name_of(report)}: " if len(reports) > 1 else "", factor)
    if shown:
        yield Notes((REGIMES_EXPLAINED + (f"; regrets are {measured_in}" if measured_in else ""),), quiet=True)


def _regime_table(report: Report, name: str, factor: float) -> TextTable:
    """The bins of a model, from the lowest score up, and their sum."""

    def regret(value: float | None, bounds: Interval | None = None) -> Cell:
        if factor == 1.0 or value is None:
            return number(value, bounds)
        first, *ends = (f"{factor * each:,.{decimals}f}" for each in (value, *(bounds or ())))
        return words(f"{first} [{', '.join(ends)}]" if ends else first)

    # All alike, with three digits of the largest, so that rows add up.
    sizes = [(r.regret_calibration, r.regret_grouping or 0.0) for r in report.regimes]
    decimals = decimals_for((), [factor * size for both in sizes for size in both])
    bins = table(
        report.regimes,
        [
            (left(f"{name}score from, to"), lambda r: f"{short(r.low, 4)} to {short(r.high, 4)}"),
            ("rows", lambda r: plain(r.rows)),
            (Column("mean score", drops=2), lambda r: r.score),
            ("c", lambda r: r.rate),
            ("grouping loss", lambda r: r.grouping_loss),
            (Column("Vmin", drops=1), lambda r: r.least_variance),
            ("calibration regret", lambda r: regret(r.regret_calibration)),
            ("grouping regret", lambda r: regret(r.regret_grouping, _bounds(r))),
            (left("larger"), lambda r: r.larger),
        ],
    )
    return replace(bins, rows=(*bins.rows, _sum(report.regimes, regret)))


def _bounds(regime: Regime) -> tuple[float, float] | None:
    if regime.regret_grouping_lower is None or regime.regret_grouping_upper_sharp is None:
        return None
    return regime.regret_grouping_lower, regime.regret_grouping_upper_sharp


def _sum(regimes: Sequence[Regime], regret: Callable[[float | None], Cell]) -> Row:
    """The metrics, as the sums of the columns."""
    known = [regime.regret_grouping for regime in regimes if regime.regret_grouping is not None]
    rows = plain(sum(regime.rows for regime in regimes))
    regrets = regret(sum(regime.regret_calibration for regime in regimes)), regret(sum(known) if known else None)
    return Row((words("all"), words(rows), *[words("")] * 4, *regrets, words("")), apart=True)


def class_blocks(report: Report, named: bool) -> Iterator[Block]:
    """Of several classes, a table of them, and what is done with each; named: its model and group stand above."""
    by_class = report.by_class
    if by_class is None:
        return
    whose = f"{', '.join(filter(None, (report.model, report.group)))}: " if named else ""
    shown, size = by_class.classes, len(by_class.classes)
    if size > MAX_CLASSES_SHOWN:
        shown = tuple(sorted(shown, key=lambda each: (each.recall is None, each.recall or 0.0, each.name))[:N_LOWEST])
    which = (
        ""
        if len(shown) == size
        else f", the {len(shown)} of {size} with the lowest recall ({Hint('format', 'json').words} has all)"
    )
    yield table(
        shown,
        [
            (left("class"), lambda each: each.name),
            ("rows", lambda each: counted(each.rows)),
            ("predicted", lambda each: counted(each.predicted)),
            ("right", lambda each: counted(each.right)),
            ("precision", lambda each: each.precision),
            ("recall", lambda each: each.recall),
        ],
        title=f"{whose}classes{which}",
        keys=1,
    )
    done = by_class.decisions
    if done is None:
        return
    names = tuple(each.name for each in by_class.classes)
    if len(names) <= MAX_ACROSS and len(done.actions) <= 2 * MAX_ACROSS:
        yield from _across(done, names, "class", whose)
    else:
        yield _costliest(done, names, whose)


def action_tables(done: ActionCounts) -> Iterator[TextTable]:
    """What is done with scores of two classes where there are more than two actions."""
    return _across(done, ("label 0", "label 1"), "label")


def cell_rows(by_class: ByClass | None) -> Iterator[tuple[str, float]]:
    """Rows and loss of every cell that holds rows, by a key, for CSV."""
    done = None if by_class is None else by_class.decisions
    if by_class is None or done is None:
        return
    for what, cells in (("rows", done.rows), ("loss", done.loss)):
        for a, action in enumerate(done.actions):
            for k, each in enumerate(by_class.classes):
                if done.rows[a][k] > 0:
                    yield f"{what}[{action}, {each.name}]", cells[a][k]


def _across(done: ActionCounts, names: Sequence[str], of_rows: str, whose: str = "") -> Iterator[TextTable]:
    """A row for each action and a column for each class: rows, and what they lose."""
    lost = [[round(1000 * loss, 2) for loss in row] for row in done.loss]
    title = f"{whose}what each loses against the best action for the {of_rows}, per 1,000 rows"
    for cells, above in ((done.rows, f"{whose}actions taken, by {of_rows}: rows"), (lost, title)):
        rows = (Row((words(a), *(words(counted(n)) for n in row))) for a, row in zip(done.actions, cells, strict=True))
        yield TextTable((left("action"), *map(Column, names)), tuple(rows), title=above, keys=1)


def _costliest(done: ActionCounts, names: Sequence[str], whose: str) -> TextTable:
    """The cells of action and class that lose most against the best action for the class."""
    lost = done.loss
    cells = [
        (lost[a][k], done.actions[a], names[k], rows) for a, row in enumerate(done.rows) for k, rows in enumerate(row)
    ]
    cells = sorted((each for each in cells if each[0] > 0), key=lambda each: (-each[0], each[1], each[2]))
    shown = cells[:N_COSTLIEST]
    return table(
        shown,
        [
            (left("action"), lambda cell: cell[1]),
            (left("class"), lambda cell: cell[2]),
            ("rows", lambda cell: counted(cell[3])),
            ("loss per row", lambda cell: plain(cell[0])),
        ],
        title=f"{whose}the {len(shown)} of {len(cells):,} cells of action and class that lose most",
        keys=2,
    )


def pack_blocks(evaluation: Evaluation) -> Iterator[Block]:
    """All that a pack shows below its measures."""
    pack = evaluation.pack
    if pack is None:
        return
    if any(report.by_outcome for report in evaluation.reports):
        yield Heading("Scores by outcome")
        yield _outcome_table([report for report in evaluation.reports if report.by_outcome])
    for model in dict.fromkeys(gap.model for gap in evaluation.gaps):
        of_model = [gap for gap in evaluation.gaps if gap.model == model]
        several = len({report.model for report in evaluation.reports}) > 1
        yield Heading("Groups that are apart" + (f": {model}" if several else ""))
        yield _gap_table(of_model, pack)
    if evaluation.gaps or evaluation.too_small:
        yield Notes((*_gap_notes(evaluation, pack),), quiet=True)
    yield Notes(tuple(map(said, pack.notes)), quiet=True)


def _outcome_table(reports: Sequence[Report]) -> TextTable:
    rows = [(report, each) for report in reports for each in report.by_outcome]
    return table(
        rows,
        [
            *([(left("model"), lambda row: name_of(row[0]))] if len(reports) > 1 else []),
            ("label", lambda row: str(row[1].label)),
            ("rows", lambda row: f"{row[1].rows:,}"),
            ("mean", lambda row: row[1].mean),
            *((percent(share), lambda row, at=f"{share:g}": row[1].quantiles[at]) for share in QUANTILES),
        ],
    )


def _gap_table(gaps: Sequence[Gap], pack: Pack) -> TextTable:
    """The clear pairs of each metric, or the most certain one where none is clear."""
    by_metric: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        by_metric.setdefault((gap.column, gap.metric), []).append(gap)
    shown = [gap for of_metric in by_metric.values() for gap in of_metric[:MAX_PAIRS]]
    return table(
        shown,
        [
            *([(left("column"), lambda gap: gap.column)] if len({gap.column for gap in gaps}) > 1 else []),
            (left("metric"), lambda gap: pack.measures[gap.metric]),
            (left("higher (rows)"), lambda gap: f"{gap.high} ({counted(gap.high_rows)})"),
            (left("lower (rows)"), lambda gap: f"{gap.low} ({counted(gap.low_rows)})"),
            ("gap", lambda gap: number(gap.difference, gap.interval)),
            (left("beyond noise"), lambda gap: "unknown" if gap.interval is None else "yes" if gap.clear else "no"),
        ],
    )


def _gap_notes(evaluation: Evaluation, pack: Pack) -> Iterator[str]:
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
        all_of_them = Hint("format", "json").words
        yield f"the {MAX_PAIRS} most certain pairs of each metric are listed; {all_of_them} has all: {', '.join(cut)}"
    small: dict[str, list[str]] = {}
    for each in evaluation.too_small:
        small.setdefault(f"{each.group} ({counted(each.rows)})", []).append(pack.measures[each.metric])
    if small:
        listed = [f"{group} for {', '.join(dict.fromkeys(names))}" for group, names in small.items()]
        more = f"; and {len(listed) - MAX_PAIRS:,} more" if len(listed) > MAX_PAIRS else ""
        yield (
            f"too small to be compared, fewer than {MIN_DENOMINATOR} rows in the denominator: "
            f"{'; '.join(listed[:MAX_PAIRS])}{more}"
        )


def reference_blocks(reference: Reference) -> Iterator[Block]:
    """A row for each model, what follows, and what the columns mean."""
    names = ", ".join(item.path for item in reference.inputs)
    yield Heading(f"Against the reference: {names}, {sum(item.rows for item in reference.inputs):,} rows")
    yield table(
        reference.models,
        [
            (left("model"), lambda shift: shift.model),
            ("PSI", lambda shift: shift.psi),
            ("labels 1 in the reference", lambda shift: percent(shift.reference_share)),
            ("in these rows", lambda shift: percent(shift.share)),
            ("by the scores alone", lambda shift: number(shift.by_scores, shift.interval, reason=shift.reason)),
            ("p-value", lambda shift: _pvalue(shift.pvalue)),
        ],
    )
    yield Notes(tuple(f"{shift.model}: {_meaning(shift)}" for shift in reference.models))
    explained = (
        f"PSI: population stability index on {N_BINS} equal-mass bins of the reference; p-value: how often scores "
        "differ so much where the scores of each label are those of the reference"
    )
    yield Notes((explained,), quiet=True)


def _pvalue(value: float | None) -> str:
    return DASH if value is None else "< 0.0001" if value < 1e-4 else plain(round(value, 4))


def _meaning(shift: Shift) -> str:
    if shift.alike is None:
        return f"the scores alone cannot tell the share of labels 1: {shift.reason}"
    if not shift.alike:
        return (
            f"the scores of one label are not those of the reference (p-value up to {plain(MAX_PVALUE)}): "
            "what was learned on the reference, such as a calibration, need not hold here"
        )
    inside = shift.interval is None or shift.interval[0] <= shift.share <= shift.interval[1]
    if not inside:
        return (
            "the scores look like those of the reference with another share of labels 1, but not with the share that "
            "these labels have: the labels mean something else, or the scores tell less here"
        )
    same = shift.interval is not None and shift.interval[0] <= shift.reference_share <= shift.interval[1]
    if same:
        return "nothing differs from the reference beyond noise"
    return (
        f"no more than the share of labels 1 differs from the reference; {Verb('recommend').words} on the "
        "reference with "
        f"{Hint('prevalence', f'{plain(round(shift.by_scores or 0.0, 4))}').words} says what moving its scores "
        "to that share wins"
    )
