"""What `decal compare` returns: who wins, in sentences, tables and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from decal_cli.analysis.compare import (
    ClassDisagreements,
    Comparison,
    Contest,
    Difference,
    Disagreements,
    SpliceGain,
    Swap,
    SwapPart,
    Thresholds,
)
from decal_cli.curves.crossings import Side
from decal_cli.declarations.document import Absent, Count, Limit, Positive, Share, Size, Words
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval, alike, counts, plain, short, span
from decal_cli.render.blocks import Block, Cell, Column, Heading, Points, Signature, SourceLines, TextTable, Tone
from decal_cli.render.cells import better, counted, left, metric_name, number, reasons, table, words
from decal_cli.render.results.evaluation import DefinedData, MetricKey, UndefinedData, result_data
from decal_cli.render.results.shortened import MAX_GROUPS, Order, lowest_first, worst_of_each
from decal_cli.render.results.source import Provenance, source_lines, title_of
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.resample import FOLDS

MAX_TITLE = 36
"""Columns of a metric's title; longer ones wrap."""
UTILITIES = ("utility_at_capacity", "expected_utility")
"""What decisions are compared by: the first that there is."""
MAX_RANGES = 4
"""Ranges of thresholds that a sentence lists."""
MAX_PAIRS = 10
"""Pairs of actions that a table shows."""
_TONES: dict[bool | None, Tone] = {True: "doubtful", False: "good", None: ""}


class DifferenceData(View):
    """A metric of both models, and B - A with its paired interval. better: the model it favours."""

    a: float | None = of("a.value")
    b: float | None = of("b.value")
    difference: DefinedData | UndefinedData = of(lambda each, _, key: result_data(key, each.difference))
    method: Literal["analytic", "bootstrap"] | None
    better: str | None = of(lambda each, comparison, _: each.better and comparison.name(each.better))
    by_chance: bool | None


class CrossingData(View):
    """A change of the leader beyond chance; below: the model that leads up to it."""

    threshold: Share
    below: str = of(lambda crossing, comparison: comparison.name(crossing.below))


class LeadData(View):
    """Thresholds at which a model is ahead beyond chance; most: the largest loss it saves, at a threshold."""

    model: str = of(lambda lead, comparison: comparison.name(lead.side))
    low: Share
    high: Share
    most: Size
    error: Size
    at: Share


class ThresholdsData(View):
    """Who wins at which thresholds. band: standard errors beyond which a model is ahead, at all thresholds at once;
    null where the two hardly differ.
    """

    dominates: str | None = of(lambda at, comparison: at.curves.dominates and comparison.name(at.curves.dominates))
    band: float | None = of("reach")
    crossings_on_these_rows: Count = of(lambda at, _: len(at.curves.zeros))
    crossings: list[CrossingData]
    ahead: list[LeadData] = of("leads")


RowsByLabel = Annotated[list[Size], Limit(minItems=2, maxItems=2)]


class DisagreementsData(View):
    """Rows by the decisions of the first and the second model, both_0 to both_1. p_value: of McNemar's exact test that
    both are right as often where they disagree; null for weighted rows.
    """

    both_0: RowsByLabel = of("rows.0.0")
    only_b_1: RowsByLabel = of("rows.0.1")
    only_a_1: RowsByLabel = of("rows.1.0")
    both_1: RowsByLabel = of("rows.1.1")
    only_a_right: Size = of("a_right")
    only_b_right: Size = of("b_right")
    p_value: Share | None


class ContestData(View):
    """The two models on all rows (group null) or on one group of them.

    metrics: those that were asked for, and those that the sentences and the table of groups are about. positives,
    thresholds: null for rows of several classes. swap: where so many rows can be acted on only, who is acted on by
    which model; disagreements are null then.
    """

    group: str | None
    rows: Positive
    positives: Count | None
    metrics: dict[MetricKey, DifferenceData] = of(
        lambda contest, comparison: {
            key: DifferenceData(each, comparison, key)
            for key, each in {**contest.differences, **contest.headline}.items()
        }
    )
    thresholds: ThresholdsData | None
    disagreements: DisagreementsData | ClassDisagreements | None = of(
        lambda contest, _: (
            DisagreementsData(contest.disagreements)
            if isinstance(contest.disagreements, Disagreements)
            else contest.disagreements
        )
    )
    swap: Absent[Swap | None]


class HeldOutData(View):
    """On held-out rows; difference: to the better single model."""

    value: float
    single: str = of(lambda reached, comparison: comparison.name(reached.single))
    difference: float = of("difference.0")
    interval: Interval | None = of(lambda reached, comparison: _ends(comparison, reached))


class SpliceData(View):
    """One model below a threshold, the other above."""

    threshold: Share = of("cut.threshold")
    below: str = of(lambda splice, comparison: comparison.name(splice.cut.below))
    above: str = of(lambda splice, comparison: comparison.name(_other(splice.cut.below)))
    brier: HeldOutData
    expected_utility: HeldOutData | None = of("utility")
    folds_agreeing: Count = of("agreeing")


class NoSpliceData(View):
    """Why there is no splice."""

    threshold: None = of(lambda *_: None)
    reason: Words = of(lambda comparison: comparison.no_splice or "")


class ComparisonData(View):
    """Two models on the same rows."""

    models: Annotated[list[str], Limit(minItems=2, maxItems=2)]
    contests: Annotated[list[ContestData], Limit(minItems=1)] = of(
        lambda comparison: [ContestData(contest, comparison) for contest in comparison.contests]
    )
    splice: SpliceData | NoSpliceData = of(
        lambda comparison: SpliceData(comparison.splice, comparison) if comparison.splice else NoSpliceData(comparison)
    )


class ComparedData(Provenance):
    """What `decal compare` prints: differences are of the second model minus the first, with paired intervals."""

    comparison: ComparisonData


class Compared:
    """A comparison in the user's terms, for formats to write; drawing: pictures in characters to put below."""

    def __init__(
        self, comparison: Comparison, terms: StatedTerms | None = None, drawing: tuple[Block, ...] = ()
    ) -> None:
        self.comparison = comparison
        self.terms = terms or StatedTerms()
        self.drawing = drawing
        self.title = title_of(comparison.evaluation)

    def blocks(self) -> Iterator[Block]:
        """Who wins in words first, then the figures, of all rows and of every group."""
        comparison = self.comparison
        whole, *groups = comparison.contests
        worst, notes = worst_of_each(groups, lambda _: _by_difference(comparison), whose=lambda _: "")
        evaluation = replace(comparison.evaluation, notes=(*comparison.evaluation.notes, *notes))
        yield SourceLines((*source_lines(evaluation), sides_line(comparison)))
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
            why = ((key, each.difference.reason) for key, each in contest.differences.items())
            yield from reasons(why, together=True)
        yield Signature(comparison.evaluation.signature)
        yield from self.drawing

    def data(self) -> dict[str, Any]:
        """ComparedData: the inputs, as in every result, and under "comparison" the contests and the splice."""
        whole = data_of(Provenance(self.comparison.evaluation))
        if whole["intervals"] is not None:
            whole["intervals"]["cells"] = self.comparison.cells
        return {**whole, "comparison": data_of(ComparisonData(self.comparison))}

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


def _metric_table(comparison: Comparison, contest: Contest, close: bool) -> TextTable:
    of_classes = comparison.evaluation.reports[0].by_class is not None
    differences = contest.differences

    def row(key: str) -> dict[str, Any]:
        metric, each = parse(key).declared.form(of_classes), differences[key]
        return {"section": metric.family, "empty": each.a.value is None and each.b.value is None and not metric.shown}

    def side(name: str, letter: str) -> tuple[Column, Callable[[str], Cell]]:
        def value(key: str) -> Cell:
            result = getattr(differences[key], letter.lower())
            return number(result.value, reason=result.reason)

        return Column(name, short=letter), value

    return table(
        differences,
        [
            (left("metric", wraps=True, most=MAX_TITLE), metric_name),
            (left(""), better),
            *map(side, comparison.models, "AB"),
            ("B - A", lambda key: difference_cell(differences[key])),
            (left("who wins"), lambda key: who_wins(differences[key], comparison.models)),
        ],
        row,
        dense=True,
        close=close,
    )


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


def _group_table(comparison: Comparison, contests: Sequence[Contest]) -> TextTable:
    """For each group: its rows, the difference that counts, and in words who is better."""
    key = group_key(comparison)

    def winner(contest: Contest) -> str:
        each = contest.headline.get(key)
        return "undefined" if each is None else who_wins(each, comparison.models).text

    def difference(contest: Contest) -> str:
        each = contest.headline.get(key)
        return "" if each is None else difference_cell(each).text

    return table(
        contests,
        [
            (left("group", wraps=True), lambda contest: str(contest.group)),
            (left("rows", wraps=True), lambda contest: f"{contest.rows:,}"),
            (left(f"{parse(key).declared.title.lower()}, B - A", wraps=True), difference),
            (left("who wins", wraps=True), winner),
        ],
    )


def _lead_table(comparison: Comparison, at: Thresholds, terms: StatedTerms) -> TextTable:
    """For each range of thresholds: who is ahead, by how much at most in the user's unit, and where."""
    task = comparison.evaluation.task
    # Thresholds of rows are not those of one task: there is no unit but that of u_delta 1.
    terms = terms if comparison.evaluation.by_row is None else StatedTerms()
    scale = terms.number * (1.0 if task is None else task.u_delta)
    return table(
        at.leads,
        [
            (left("thresholds", wraps=True), lambda lead: f"{short(lead.low, 3)} – {short(lead.high, 3)}"),
            (left("clearly ahead", wraps=True), lambda lead: comparison.name(lead.side)),
            (
                left(f"most saved, {terms.noun} {terms.span}", wraps=True),
                lambda lead: " ± ".join(alike((scale * lead.most, scale * at.reach * lead.error))),
            ),
            (left("at t", wraps=True), lambda lead: short(lead.at, 3)),
        ],
    )


def sides_line(comparison: Comparison) -> str:
    """Which model is A and which is B, and what the intervals are."""
    first, second = comparison.models
    plan = comparison.evaluation.plan
    level = f"{100 * plan.confidence:g} % paired" if plan.intervals else "no"
    return f"A = {first}, B = {second}, {comparison.contests[0].rows:,} rows; B - A with {level} intervals"


def summary(comparison: Comparison, terms: StatedTerms) -> Iterator[tuple[str, str]]:
    """Heading and text of each thing that a decision-maker wants to know, most important first."""
    whole = comparison.contests[0]
    task = comparison.evaluation.task
    if group_key(comparison) in UTILITIES:
        at = "" if task is None else f" at t* = {' and '.join(map(plain, task.thresholds))}"
        limit = comparison.evaluation.capacity
        at += "" if limit is None else f", capacity {limit.text}"
        yield f"Decisions{at}", _utility_sentence(comparison, whole, terms)
    if whole.swap is not None:
        yield "Rows acted on", swap_sentence(whole.swap, comparison.models)
    if whole.disagreements is not None:
        yield "Disagreements", disagreements_sentence(whole.disagreements, comparison.models)
    if "brier" in whole.headline:
        yield "Brier score", _brier_sentence(comparison, whole)
    if whole.thresholds is not None:
        yield "Thresholds", _threshold_sentence(comparison, whole.thresholds)
    if len(comparison.contests) > 1:
        yield "Groups", _group_sentence(comparison)
    if whole.thresholds is not None and (comparison.splice is not None or comparison.no_splice is not None):
        yield "Splice", _splice_sentence(comparison, terms)


def _utility_sentence(comparison: Comparison, contest: Contest, terms: StatedTerms) -> str:
    difference = contest.headline[group_key(comparison)]
    if difference.better is None:
        return "both models are worth the same."
    size, ends = _size(difference)
    more = terms.phrase(size, ends, more=" more")
    return f"{comparison.name(difference.better)} is worth {more}; {_chance(difference)}."


def _brier_sentence(comparison: Comparison, contest: Contest) -> str:
    difference = contest.headline["brier"]
    if difference.better is None:
        return "the same."
    size, ends = _size(difference)
    return (
        f"{comparison.name(difference.better)} is better by {short(size, 4)}"
        f"{' ' + span(ends, 4) if ends else ''}; {_chance(difference)}."
    )


def _size(difference: Difference) -> tuple[float, Interval | None]:
    """How far the two are apart, whichever is ahead, with its interval."""
    value, interval = difference.difference.value or 0.0, difference.difference.interval
    if interval is None or value > 0:
        return abs(value), interval
    return abs(value), (-interval[1], -interval[0])


def _chance(difference: Difference) -> str:
    if difference.by_chance is None:
        return "there is no interval"
    return "chance could explain this" if difference.by_chance else "chance does not explain this"


def _threshold_sentence(comparison: Comparison, at: Thresholds) -> str:
    exact = comparison.name(at.curves.dominates) if at.curves.dominates else None
    sides = {lead.side for lead in at.leads}
    if not sides:
        text = "at no threshold is one model clearly ahead (tested at all thresholds together)"
    elif len(sides) == 1:
        side = next(iter(sides))
        other = comparison.name(_other(side))
        text = f"{comparison.name(side)} is clearly ahead {_ranges(comparison, at)}; {other} nowhere"
    else:
        text = f"it depends: {_ranges(comparison, at, named=True)}"
    crossings = len(at.curves.zeros)
    if exact is not None:
        return f"{text}. On these rows the Brier curve of {exact} is nowhere above the other."
    if at.crossings:
        places = ", ".join(short(crossing.threshold, 3) for crossing in at.crossings)
        times = "once" if len(at.crossings) == 1 else f"{len(at.crossings)} times"
        noise = crossings - len(at.crossings)
        smaller = f"; {noise} smaller crossing{'s are' if noise > 1 else ' is'} within noise"
        rest = smaller if noise > 0 else ""
        return f"{text}. The Brier curves clearly cross {times}, at t = {places}{rest}."
    if not crossings:
        return f"{text}. The Brier curves are the same."
    met = "once" if crossings == 1 else f"{crossings} times"
    return f"{text}. The Brier curves cross {met} on these rows, each time within noise."


def _ranges(comparison: Comparison, at: Thresholds, named: bool = False) -> str:
    parts = []
    several = len(at.leads) > MAX_RANGES
    for lead in at.leads:
        who = f"{comparison.name(lead.side)} is clearly ahead " if named else ""
        where = (
            f"at t = {short(lead.low, 3)}"
            if lead.low == lead.high
            else (f"for t from {short(lead.low, 3)} to {short(lead.high, 3)}")
        )
        parts.append(who + where)
    return ", ".join(parts[:MAX_RANGES]) + (f", and {len(parts) - MAX_RANGES} more (below)" if several else "")


def group_key(comparison: Comparison) -> str:
    """What groups are compared by: utility where there is a task, else the Brier score."""
    whole = comparison.contests[0].headline
    return next((utility for utility in UTILITIES if utility in whole), "brier")


def _group_sentence(comparison: Comparison) -> str:
    key = group_key(comparison)
    places: dict[str, list[str]] = {}
    for contest in comparison.contests[1:]:
        difference = contest.headline.get(key)
        words = "undefined" if difference is None else who_wins(difference, comparison.models).text or "the same"
        places.setdefault(words, []).append(str(contest.group))
    title = parse(key).declared.title.lower()
    many = len(comparison.contests) > MAX_GROUPS + 1
    named = (f"{len(groups):,} groups" if many else ", ".join(groups) for groups in places.values())
    return f"by {title}, " + "; ".join(f"{words}: {groups}" for words, groups in zip(places, named, strict=True)) + "."


def _splice_sentence(comparison: Comparison, terms: StatedTerms) -> str:
    splice = comparison.splice
    if splice is None:
        return f"none: {comparison.no_splice}."
    below, above = comparison.name(splice.cut.below), comparison.name(_other(splice.cut.below))
    if _ends(comparison, splice.brier)[1] < 0:
        advice = "worth it if you use many thresholds"
    else:
        advice = "not worth it: the gain is within noise"
    reached = f"on held-out rows, Brier score {short(splice.brier.value, 4)}, {_beside(comparison, splice.brier, None)}"
    if splice.utility is not None and comparison.evaluation.capacity is None:
        reached += f"; {_beside(comparison, splice.utility, terms)}"
    doubt = "" if splice.agreeing == FOLDS else f" Only {splice.agreeing} of {FOLDS} folds choose this order."
    return f"{advice}. {below} below t = {short(splice.cut.threshold, 3)} and {above} above: {reached}.{doubt}"


def _beside(comparison: Comparison, reached: SpliceGain, terms: StatedTerms | None) -> str:
    """How far it is from the better single model; terms: of an amount, with what is reached."""
    mean, ends = reached.difference.mean, _ends(comparison, reached)
    if terms is None:
        text = f"{signed(mean, 4)} {span(ends, 4)}"
    else:
        (value,), unit = terms.amounts(reached.value)
        (change, low, high), of_change = terms.amounts(mean, *ends)
        sign, size = "+" if mean > 0 else "", "" if of_change == unit else f" {of_change}"
        text = f"{value} {unit or terms.noun} {terms.span}, {sign}{change} [{low}, {high}]{size}"
    return f"{text} compared with {comparison.name(reached.single)} alone"


def difference_cell(each: Difference) -> Cell:
    """B - A with its sign, and its paired interval."""
    value = each.difference.value
    if value is None:
        return words("")
    return Cell(tuple(filter(None, (signed(value, 4), span(each.difference.interval, 4)))))


def who_wins(each: Difference, names: tuple[str, str]) -> Cell:
    """Who is better, and whether it could be chance: 'p_b better, not by chance'; in short 'B better, ..'."""
    if each.difference.value is None or (each.better is None and each.difference.value != 0):
        return words("")
    if each.better is None:
        return words("the same")
    side = 0 if each.better == "a" else 1
    parts, short = (_better(each, name) for name in (names[side], "AB"[side]))
    return Cell(parts, short, tone=_TONES[each.by_chance])


def _better(each: Difference, name: str) -> tuple[str, ...]:
    if each.by_chance is None:
        return (f"{name} ahead,", "no interval") if each.difference.interval is None else (f"{name} nearer the ideal",)
    return (f"{name} ahead,", "could be chance") if each.by_chance else (f"{name} better,", "not by chance")


def signed(value: float, decimals: int) -> str:
    """A difference, with its sign where it does not round to zero."""
    text = short(value, decimals)
    return f"+{text}" if value > 0 and text.strip(".0") else text


def disagreements_table(apart: Disagreements | ClassDisagreements, terms: StatedTerms) -> TextTable:
    """A row for each pair of decisions, columns by label; of several classes, the pairs of most rows."""
    if isinstance(apart, ClassDisagreements):
        return _pairs_table(apart)
    names = terms.names or ("0", "1")

    def rows(*labels: int) -> Callable[[tuple[int, int]], str]:
        return lambda by: counted(sum(apart.rows[by[0]][by[1]][label] for label in labels))

    return table(
        ((1, 1), (1, 0), (0, 1), (0, 0)),
        [
            (left("A decides"), lambda by: names[by[0]]),
            (left("B decides"), lambda by: names[by[1]]),
            ("rows", rows(0, 1)),
            ("with label 1", rows(1)),
            ("with label 0", rows(0)),
            (left("who is right"), lambda by: _right(*by)),
        ],
        title=f"Decisions of both models, {counted(sum(sum(cell) for row in apart.rows for cell in row))} rows",
    )


def _pairs_table(apart: ClassDisagreements) -> TextTable:
    shown = apart.pairs[:MAX_PAIRS]
    cut = f", the {len(shown)} of {len(apart.pairs):,} pairs with most rows" if len(shown) < len(apart.pairs) else ""
    return table(
        shown,
        [
            (left("A takes"), lambda pair: pair.a),
            (left("B takes"), lambda pair: pair.b),
            ("rows", lambda pair: counted(pair.rows)),
            ("B wins there, summed", lambda pair: plain(round(pair.gain, 10))),
        ],
        title=f"Different actions, {counted(apart.a_better + apart.b_better + apart.same)} rows{cut}",
        keys=2,
    )


def _right(a: int, b: int) -> str:
    if a == b:
        return "both, or neither"
    return "A at label 1, else B" if a else "B at label 1, else A"


def disagreements_sentence(each: Disagreements | ClassDisagreements, models: tuple[str, str]) -> str:
    """On how many rows they disagree, who is right more often there, and whether chance could explain it."""
    if isinstance(each, ClassDisagreements):
        return _class_sentence(each, models)
    apart = each.a_right + each.b_right
    if not apart:
        return "the two models decide every row alike."
    first, second = models
    text = (
        f"on {counted(apart)} rows the two decide differently: {first} is right on {counted(each.a_right)}, {second} "
        f"on {counted(each.b_right)}"
    )
    if each.p_value is None:
        return f"{text}."
    test = "McNemar's p, over clusters," if each.clustered else "McNemar's exact p"
    return f"{text} ({test} = {plain(each.p_value)}; it counts both errors alike)."


def _class_sentence(each: ClassDisagreements, models: tuple[str, str]) -> str:
    apart = each.a_better + each.b_better + each.same
    if not apart:
        return "the two models take the same action for every row."
    first, second = models
    text = (
        f"for {counted(apart)} rows the two take different actions: that of {first} is worth more for "
        f"{counted(each.a_better)}, that of {second} for {counted(each.b_better)}"
    )
    test = "sign test over clusters" if each.clustered else "exact sign test"
    return f"{text}." if each.p_value is None else f"{text} ({test}, p = {plain(each.p_value)})."


def swap_table(swap: Swap, capacity: str) -> TextTable:
    """A row for each part, columns by label."""

    def rows(number: int) -> Callable[[tuple[str, SwapPart]], str]:
        return lambda item: counts((item[1].rows, item[1].positives, item[1].rows - item[1].positives))[number]

    heads = ("rows", "with label 1", "with label 0")
    return table(
        (("A and B", swap.both), ("A, not B", swap.only_a), ("B, not A", swap.only_b)),
        [(left("acted on by"), lambda item: item[0]), *((head, rows(k)) for k, head in enumerate(heads))],
        title=f"Rows acted on, capacity {capacity}",
    )


def swap_sentence(swap: Swap, models: tuple[str, str]) -> str:
    """Who takes the places of whom."""
    a, b = models
    both, more, fewer, right, wrong = counts(
        (swap.both.rows, swap.only_b.rows, swap.only_a.rows, swap.only_b.positives, swap.only_a.positives)
    )
    if swap.only_a.rows == 0 and swap.only_b.rows == 0:
        return f"both act on the same {both} rows."
    return (
        f"both act on {both} rows; {b} acts on {more} others, {right} of them with label 1, and {a} on {fewer} others, "
        f"{wrong} of them with label 1."
    )


def _other(side: str) -> Side:
    return "a" if side == "b" else "b"


def _ends(comparison: Comparison, reached: SpliceGain) -> Interval:
    """The interval of what a splice wins over the better single model."""
    mean, error = reached.difference
    reach = quantile(comparison.evaluation.plan.confidence) * error
    return mean - reach, mean + reach
