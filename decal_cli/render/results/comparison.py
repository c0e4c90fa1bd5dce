"""What `decal compare` returns: who wins, in sentences, tables and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from decal_cli.analysis.compare import (
    ActionPair,
    Comparison,
    Difference,
    Disagreements,
    ModelComparison,
    Swap,
    Thresholds,
)
from decal_cli.analysis.evaluate import resampled_cells
from decal_cli.analysis.splice import NoSplice, Splice
from decal_cli.curves.crossings import Lead
from decal_cli.data.words import grouped
from decal_cli.declarations.document import Absent, Count, Positive, Share, Size, Some, Two
from decal_cli.metrics import Result, parse
from decal_cli.numbers import (
    Interval,
    alike,
    bracketed,
    counts,
    decimal,
    decimals_of,
    many,
    p_value,
    pieces,
    plain,
    short,
    sized,
)
from decal_cli.render.blocks import Blocks, Cell, Column, Heading, Notes, Points, TextTable, Tone
from decal_cli.render.cells import better, by_words, counted, left, metric_name, number, reasons, table, texts, words
from decal_cli.render.results.evaluation import DefinedData, MetricKey, UndefinedData, found, levels_lines, result_data
from decal_cli.render.results.source import (
    MAX_GROUPS,
    Order,
    Provenance,
    WrittenResult,
    ends_of,
    source_lines,
    without_limit_lines,
    worst_first,
    worst_of_each,
)
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.tables.resample import FOLDS

MAX_TITLE = 36
"""Columns of a metric's title; longer ones wrap."""
UTILITIES = ("utility_at_capacity", "expected_utility")
"""What decisions are compared by: the first that there is."""
MAX_RANGES = 4
"""Ranges of thresholds that a sentence lists."""
MAX_PAIRS = 10
"""Pairs of actions that a table shows."""
RowsByLabel = tuple[Size, Size]
"""Rows with label 0 and with label 1."""
_TONES: dict[bool | None, Tone] = {True: "doubtful", False: "good", None: ""}


class DifferenceData(View):
    """A metric of both models, and B - A with its paired interval. better: the model it favours. by_chance: whether the
    interval holds 0; null where there is none, or where the two may lie on different sides of an ideal value.
    """

    a: float | None = of("a.value")
    b: float | None = of("b.value")
    difference: DefinedData | UndefinedData = of(lambda each, key: result_data(key, each.difference))
    method: Literal["analytic", "bootstrap"] | None
    better: str | None
    by_chance: bool | None


def _cell(by_a: int, by_b: int) -> Any:
    return of(lambda apart: apart.cells[by_a, by_b])


class DisagreementsData(View):
    """Rows by the decisions of the first and the second model, both_0 to both_1, each by label. p_value: of McNemar's
    exact test that both are right as often where they disagree; null for weighted rows.
    """

    both_0: RowsByLabel = _cell(0, 0)
    only_b_1: RowsByLabel = _cell(0, 1)
    only_a_1: RowsByLabel = _cell(1, 0)
    both_1: RowsByLabel = _cell(1, 1)
    only_a_right: Size = of("a_better")
    only_b_right: Size = of("b_better")
    p_value: Share | None


class ClassDisagreementsData(View):
    """Rows of several classes for which two models take different actions.

    a_better, b_better: rows, by their weight, on which the action of A, or of B, is worth more. same: on which
    both are worth the same. p_value: of the exact sign test that neither is better more often; null for weighted rows.
    pairs: of actions, those of most rows first.
    """

    a_better: Size
    b_better: Size
    same: Size
    p_value: Share | None
    pairs: list[ActionPair]


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
        lambda contest: {k: DifferenceData(each, k) for k, each in {**contest.differences, **contest.headline}.items()}
    )
    thresholds: Thresholds | None = found(Thresholds)
    disagreements: DisagreementsData | ClassDisagreementsData | None = of(
        lambda contest: (
            (apart := contest.find(Disagreements))
            and (ClassDisagreementsData if contest.of_classes else DisagreementsData)(apart)
        )
    )
    swap: Absent[Swap | None] = found(Swap)


class ComparisonData(View):
    """Two models on the same rows."""

    models: Two[str]
    contests: Some[ContestData]
    splice: Splice | NoSplice


class Compared(WrittenResult):
    """A comparison in the user's terms, for formats to write."""

    apart = True

    def __init__(self, comparison: Comparison, terms: StatedTerms = PLAIN) -> None:
        super().__init__(comparison.evaluation, terms)
        self.comparison, self.models = comparison, comparison.models
        self.whole, *self.groups = comparison.contests
        self.key = next((utility for utility in UTILITIES if utility in self.whole.headline), "brier")
        """What groups are compared by: utility where there is a task, else the Brier score."""

    def sections(self) -> Blocks:
        """Who wins in words first, then the figures, of all rows and of every group."""
        worst, notes = worst_of_each(self.groups, lambda _: self._order(), whose=lambda _: "")
        evaluation = replace(self.evaluation, notes=(*self.evaluation.notes, *notes))
        plan = evaluation.plan
        some = any(
            each.difference.interval for each in (*self.whole.differences.values(), *self.whole.headline.values())
        )
        level = f"{100 * plan.confidence:g} % paired" if some else "no"
        sides = "A = {}, B = {}, {:,} rows; B - A with {} intervals".format(*self.models, self.whole.rows, level)
        yield Notes((*source_lines(evaluation), *without_limit_lines(evaluation, self.whole.differences), sides))
        yield Points(self.summary())
        several = len(self.groups) > 0
        if several:
            yield self._group_table(worst)
        for contest in (self.whole, *worst):
            if several:
                yield Heading("all rows" if contest.of_all_rows else f"{contest.group}, {many(contest.rows, 'row')}")
            yield self._metric_table(contest, close=several)
            if (apart := contest.find(Disagreements)) and (apart.apart or not contest.of_classes):
                yield self._pairs_table(apart) if contest.of_classes else self._disagreements_table(apart)
            if swap := contest.find(Swap):
                yield _swap_table(swap, evaluation.limit)
            if (at := contest.find(Thresholds)) and at.ahead:
                yield self._lead_table(at)
            why = ((key, each.difference.reason) for key, each in contest.differences.items())
            yield from reasons(why, together=True)
        if levels := tuple(levels_lines(evaluation.reports)):
            yield Notes(levels, quiet=True)

    def data(self) -> Document:
        """The inputs, as in every result, and under "comparison" the contests and the splice."""
        whole = data_of(Provenance(self.evaluation))
        if whole["intervals"] is not None:
            whole["intervals"]["cells"] = resampled_cells(each.pairs for each in self.comparison.contests)
        return {**whole, "comparison": data_of(ComparisonData(self.comparison))}

    def rows(self) -> Records:
        """One row per group and metric."""
        head = ["model_a", "model_b", "group", "metric", "a", "b", "difference", "low", "high", "better", "by_chance"]
        yield [*head, "method", "reason"]
        for contest in self.comparison.contests:
            for key, each in contest.differences.items():
                won, row = each.difference, [*self.models, contest.group, key, each.a.value, each.b.value]
                how = each.better, each.by_chance, each.method, won.reason
                yield [*row, won.value, *ends_of(won), *how]

    def summary(self) -> Iterator[tuple[str, str]]:
        """Heading and text of each thing that a decision-maker wants to know, most important first."""
        whole, own, limit = self.whole, self.evaluation.plan.thresholds, self.evaluation.limit
        if self.key in UTILITIES:
            at = f" at t* = {' and '.join(map(plain, own))}" if own else ""
            limited = f", capacity {limit}" if limit else ""
            yield f"Decisions{at}{limited}", self._ahead(whole.headline[self.key], self.terms)
        if swap := whole.find(Swap):
            yield "Rows acted on", self._swap_sentence(swap)
        if apart := whole.find(Disagreements):
            yield "Disagreements", self._disagreements_sentence(apart)
        if "brier" in whole.headline:
            yield "Brier score", self._ahead(whole.headline["brier"])
        if thresholds := whole.find(Thresholds):
            yield "Thresholds", self._threshold_sentence(thresholds)
        if self.groups:
            yield "Groups", self._group_sentence()
        if thresholds and self.comparison.splice is not None:
            yield "Splice", self._splice_sentence(self.comparison.splice)

    def _ahead(self, each: Difference, terms: StatedTerms | None = None) -> str:
        """Who is ahead by how much, and whether chance could explain it; terms: of a utility."""
        if each.better is None:
            return "the same." if terms is None else "both models are worth the same."
        won = sized(each.difference.value or 0.0, each.difference.interval)
        chance = "chance could explain this" if each.by_chance else "chance does not explain this"
        chance = "there is no interval" if each.by_chance is None else chance
        by = f"better by {' '.join(_written(*won))}" if terms is None else f"worth {terms.phrase(*won, more=' more')}"
        return f"{each.better} is {by}; {chance}."

    def _threshold_sentence(self, at: Thresholds) -> str:
        leaders, crossings = [*dict.fromkeys(lead.model for lead in at.ahead)], at.crossings_on_these_rows
        parts, text = [], "at no threshold is one model clearly ahead (tested at all thresholds together)"
        if not at.tested:
            text = "where one model is clearly ahead is unknown, since there are no intervals"
        for lead in at.ahead:
            who = f"{lead.model} is clearly ahead " if len(leaders) > 1 else ""
            first, *last = _ends(lead)
            parts.append(f"{who}for t from {first} to {last[0]}" if last else f"{who}at t = {first}")
        more = f", and {len(parts) - MAX_RANGES} more (below)" if len(parts) > MAX_RANGES else ""
        ranges = ", ".join(parts[:MAX_RANGES]) + more
        if len(leaders) > 1:
            text = f"it depends: {ranges}"
        elif leaders:
            (other,) = {*self.models} - {*leaders}
            text = f"{leaders[0]} is clearly ahead {ranges}; {other} nowhere"

        def often(times: int) -> str:
            return "once" if times == 1 else f"{times} times"

        within = f",{' each time' if crossings > 1 else ''} within noise" if at.tested else ""
        curves = f"The Brier curves cross {often(crossings)} on these rows{within}"
        if at.dominates:
            curves = f"On these rows the Brier curve of {at.dominates} is nowhere above the other"
        elif at.crossings:
            places = ", ".join(_place(crossing.threshold) for crossing in at.crossings)
            noise = crossings - len(at.crossings)
            smaller = f"; {noise} smaller crossing{'s are' if noise > 1 else ' is'} within noise" if noise > 0 else ""
            curves = f"The Brier curves clearly cross {often(len(at.crossings))}, at t = {places}{smaller}"
        elif not crossings:
            curves = "The Brier curves are the same"
        return f"{text}. {curves}."

    def _winner(self, contest: ModelComparison, otherwise: str = "") -> str:
        each = contest.headline.get(self.key)
        return "undefined" if each is None else who_wins(each, self.models).text or otherwise

    def _group_sentence(self) -> str:
        places, several = [], len(self.groups) > MAX_GROUPS
        of = grouped((self._winner(contest, "the same"), str(contest.group)) for contest in self.groups)
        for won, groups in of.items():
            places.append(f"{won}: {many(len(groups), 'group') if several else ', '.join(groups)}")
        return f"by {parse(self.key).declared.title.lower()}, {'; '.join(places)}."

    def _splice_sentence(self, splice: Splice | NoSplice) -> str:
        if isinstance(splice, NoSplice):
            return f"none: {splice.reason}."
        brier, utility = splice.brier, splice.expected_utility
        advice = "not worth it: the gain is within noise"
        if brier.interval[1] < 0:
            advice = "worth it if you use many thresholds"
        reached = (
            f"on held-out rows, Brier score {short(brier.value, 4)}, "
            f"{' '.join(signed(brier.difference, brier.interval))} compared with {brier.single} alone"
        )
        if utility is not None and not self.evaluation.limit:
            change, of_change = self.terms.amounts(utility.difference, *utility.interval)
            sign = "+" if utility.difference > 0 else ""
            size = "" if of_change.unit == self.terms.scale(utility.value).unit else f" {of_change.unit}"
            reached += f"; {self.terms.phrase(utility.value)}, {sign}{bracketed(change)}{size} "
            reached += f"compared with {utility.single} alone"
        agreeing = splice.folds_agreeing
        doubt = "" if agreeing == FOLDS else f" Only {agreeing} of {FOLDS} folds choose this order."
        at = f"{splice.below} below t = {_place(splice.threshold)} and {splice.above} above"
        return f"{advice}. {at}: {reached}.{doubt}"

    @property
    def _without(self) -> str:
        """What is said of actions of several classes where so many rows have a place only."""
        return " without the limit" if self.evaluation.limit else ""

    def _disagreements_sentence(self, each: Disagreements) -> str:
        """On how many rows they disagree, who is right more often there, and whether chance could explain it."""
        first, second = self.models
        rows = f"{counted(each.apart)} row{'' if each.apart == 1 else 's'}"
        if self.whole.of_classes:
            same, note = f"take the same action for every row{self._without}", ""
            text = (
                f"for {rows} the two take different actions{self._without}: that of {first} is worth more for "
                f"{counted(each.a_better)}, that of {second} for {counted(each.b_better)}"
            )
            test = "sign test over clusters, p" if each.clustered else "exact sign test, p"
        else:
            same, note = "decide every row alike", "; it counts both errors alike"
            text = (
                f"on {rows} the two decide differently: {first} is right on "
                f"{counted(each.a_better)}, {second} on {counted(each.b_better)}"
            )
            test = "McNemar's p, over clusters," if each.clustered else "McNemar's exact p"
        if not each.apart:
            return f"the two models {same}."
        return f"{text}." if each.p_value is None else f"{text} ({test} {p_value(each.p_value, '= ')}{note})."

    def _swap_sentence(self, swap: Swap) -> str:
        """Who takes the places of whom."""
        a, b = self.models
        both, more, fewer, right, wrong = counts(
            (swap.both.rows, swap.only_b.rows, swap.only_a.rows, swap.only_b.positives, swap.only_a.positives)
        )
        if swap.only_a.rows == 0 and swap.only_b.rows == 0:
            return f"both act on the same {both} rows."
        return (
            f"both act on {both} rows; {b} acts on {more} others, {right} of them with label 1, and {a} on {fewer} "
            f"others, {wrong} of them with label 1."
        )

    def _order(self) -> Order[ModelComparison]:
        """Where B is worse than A by most first."""

        won = worst_first(self.key, lambda contest: _headline(contest, self.key).difference.value)
        return won, f"{parse(self.key).declared.title}, B - A"

    def _metric_table(self, contest: ModelComparison, close: bool) -> TextTable:
        of_classes = contest.of_classes
        differences = contest.differences

        def row(key: str) -> dict[str, Any]:
            metric, each = parse(key).declared.form(of_classes), differences[key]
            empty = each.a.value is None and each.b.value is None and not metric.shown
            return {"section": metric.family, "empty": empty}

        def side(key: str, result: Result) -> Cell:
            if parse(key).declared.unit == "p-value" and result.value is not None:
                return by_words(result.text)
            return number(result.value, reason=result.reason)

        first, second = self.models
        return table(
            differences,
            [
                (left("metric", wraps=True, most=MAX_TITLE), metric_name),
                (left(""), better),
                (Column(first, short="A"), lambda key: side(key, differences[key].a)),
                (Column(second, short="B"), lambda key: side(key, differences[key].b)),
                ("B - A", lambda key: difference_cell(differences[key])),
                (left("who wins"), lambda key: who_wins(differences[key], self.models)),
            ],
            row,
            dense=True,
            close=close,
        )

    def _group_table(self, contests: Sequence[ModelComparison]) -> TextTable:
        """For each group: its rows, the difference that counts, and in words who is better."""
        return table(
            contests,
            [
                (left("group", wraps=True), lambda contest: str(contest.group)),
                (left("rows", wraps=True), lambda contest: f"{contest.rows:,}"),
                (
                    left(f"{parse(self.key).declared.title.lower()}, B - A", wraps=True),
                    lambda contest: difference_cell(_headline(contest, self.key)).text,
                ),
                (left("who wins", wraps=True), self._winner),
            ],
        )

    def _lead_table(self, at: Thresholds) -> TextTable:
        """For each range of thresholds: who is ahead, by how much at most in the user's unit, and where."""
        task = self.evaluation.task
        # Thresholds of rows are not those of one task: there is no unit but that of u_delta 1.
        terms = PLAIN if self.evaluation.plan.by_row else self.terms
        scale = terms.number * (1.0 if task is None else task.u_delta)
        return table(
            at.ahead,
            [
                (left("thresholds", wraps=True), lambda lead: " – ".join(_ends(lead))),
                (left("clearly ahead", wraps=True), "model"),
                (
                    left(f"most saved, {terms.noun} {terms.span}", wraps=True),
                    lambda lead: " ± ".join(alike((scale * lead.most, scale * at.band * lead.error))),
                ),
                (left("at t", wraps=True), lambda lead: _place(lead.at)),
            ],
        )

    def _pairs_table(self, apart: Disagreements) -> TextTable:
        """A table of the pairs of actions that most rows have, for several classes."""
        shown = apart.pairs[:MAX_PAIRS]
        gains = dict(zip(shown, alike([pair.gain for pair in shown]), strict=True))
        cut = (
            f", the {len(shown)} of {len(apart.pairs):,} pairs with most rows" if len(shown) < len(apart.pairs) else ""
        )
        return table(
            shown,
            [
                (left("A takes"), "a"),
                (left("B takes"), "b"),
                ("rows", lambda pair: counted(pair.rows)),
                ("B wins there, summed", gains.get),
            ],
            title=f"Different actions{self._without}, {counted(apart.apart)} rows{cut}",
            keys=2,
        )

    def _disagreements_table(self, apart: Disagreements) -> TextTable:
        """A row for each pair of decisions, columns by label."""
        names = self.terms.names or ("0", "1")
        cells = {(a, b): apart.cells[a, b].tolist() for a in (1, 0) for b in (1, 0)}
        right = {(1, 0): "A at label 1, else B", (0, 1): "B at label 1, else A"}
        return table(
            cells,
            [
                (left("A decides"), lambda by: names[by[0]]),
                (left("B decides"), lambda by: names[by[1]]),
                ("rows", lambda by: counted(sum(cells[by]))),
                ("with label 1", lambda by: counted(cells[by][1])),
                ("with label 0", lambda by: counted(cells[by][0])),
                (left("who is right"), lambda by: right.get(by, "both, or neither")),
            ],
            title=f"Decisions of both models, {counted(sum(map(sum, cells.values())))} rows",
            keys=2,
        )


def _headline(contest: ModelComparison, key: str) -> Difference:
    """What groups are compared by, undefined where it is not known."""
    return contest.headline.get(key, Difference(Result(None), Result(None), Result(None)))


def _swap_table(swap: Swap, capacity: str) -> TextTable:
    """A row for each part, columns by label."""
    parts = {"A and B": swap.both, "A, not B": swap.only_a, "B, not A": swap.only_b}
    rows = [(name, *counts((of.rows, of.positives, of.rows - of.positives))) for name, of in parts.items()]
    heads = "acted on by", "rows", "with label 1", "with label 0"
    return texts(heads, rows, title=f"Rows acted on, capacity {capacity}")


def difference_cell(each: Difference) -> Cell:
    """B - A with its sign, and its paired interval."""
    value = each.difference.value
    if value is None:
        return words("")
    return by_words(" ".join(signed(value, each.difference.interval)))


def who_wins(each: Difference, names: tuple[str, str]) -> Cell:
    """Who is better, and whether it could be chance: 'p_b better, not by chance'; in short 'B better, ..'."""
    if each.difference.value is None or (each.better is None and each.difference.value != 0):
        return words("")
    if each.better is None:
        return words("the same")
    side = names.index(each.better)
    how, *sure = ("ahead,", "could be chance") if each.by_chance else ("better,", "not by chance")
    if each.by_chance is None:
        how, *sure = ("ahead,", "no interval") if each.difference.interval is None else ("nearer", "the ideal")
    parts, short = ((f"{name} {how}", *sure) for name in (names[side], "AB"[side]))
    return Cell(parts, short, tone=_TONES[each.by_chance])


def _written(value: float, interval: Interval | None) -> tuple[str, ...]:
    """A difference and its interval: more digits near zero, and exponents where decimals would all be 0."""
    numbers = (value, *(interval or ()))
    if 0 < max(map(abs, numbers)) < 1e-5:
        first, *ends = (f"{each:.2g}" for each in numbers)
        return (first, f"[{', '.join(ends)}]") if ends else (first,)
    near = any(each and not round(each, 4) for each in interval or (value,))
    return pieces(value, interval, 6 if near else 4)


def signed(value: float, interval: Interval | None) -> tuple[str, ...]:
    """A difference, with its sign unless it rounds to zero, and its interval."""
    text, *ends = _written(value, interval)
    return (f"+{text}" if value > 0 and text.strip(".0") else text, *ends)


def _ends(lead: Lead) -> list[str]:
    """The first and the last threshold as written, once where that is the same."""
    return [*dict.fromkeys(map(_place, (lead.low, lead.high)))]


def _place(t: float) -> str:
    """A threshold with three decimals, near 0 and 1 with as many as tell it from them."""
    return decimal(t, max(3, decimals_of(min(t, 1 - t), 1)))
