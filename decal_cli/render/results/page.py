"""The page that `decal report` writes: what to do and what it wins, a picture of it, why, and the detail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.compare import Comparison
from decal_cli.analysis.described import ActionCounts, ByClass, DecisionCounts, Places, Regimes
from decal_cli.analysis.evaluate import Evaluation, Report, is_shown
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Recommendation, amounts_in
from decal_cli.analysis.sweep import PLACES, WAYS, Positions
from decal_cli.data.words import grouped
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import parse
from decal_cli.numbers import DASH, decimals_of, many, percent, plain
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, table, words
from decal_cli.render.results.advised import AdvisedModel, LimitedModel, advised_in
from decal_cli.render.results.comparison import Compared
from decal_cli.render.results.evaluation import metric_notes, metric_table
from decal_cli.render.results.explained import explained
from decal_cli.render.results.sections import action_tables, class_blocks, regime_tables
from decal_cli.render.results.source import (
    IN_FULL,
    WrittenResult,
    class_payoffs,
    limited_actions,
    payoffs,
    shortened,
    source_lines,
)
from decal_cli.render.results.ways import (
    CONSTANT_WAYS,
    KEYS,
    OF_ROWS,
    Way,
    action_heads,
    decimals_of_gains,
    of_thousand,
    ways_of,
)
from decal_cli.render.terms import Scale, StatedTerms
from decal_cli.task import ClassDecision

FAMILIES = (
    *("regret", "task", "capacity", "amounts", "places", "loss", "practice", "ranking", "bins", "interval", "smooth"),
    *("classes", "actions", "agents", "rules", "sufficiency", "levels"),
)
"""Families of metrics, those first that say what a decision loses; a family that is not named comes last."""
SHARED_PICTURES = {
    "At other capacities": ("capacity",),
    "If a false positive costs more, or less": ("factor",),
    "At other thresholds": ("brier", "worth"),
    "If only some rows are decided": ("risk-coverage",),
}
"""Pictures of all models and groups together, by their heading."""
TERMS = (
    ("expected utility", "what a decision is worth on average, in the unit of the costs or utilities that were given"),
    ("t*", "the threshold that follows from the costs: acting is right where label 1 has at least this probability"),
    ("recalibration", "a new scale for the same score, so that a score of 0.3 means 30 of 100; the ranking stays"),
    ("post-training", "a small model on the score and the features, which corrects the score row by row"),
    ("gain", "what a change is worth on rows that it was not fitted on, compared with acting on the score as it is"),
    ("interval", "the range of values that fit these rows; with other rows the number would differ by about as much"),
    ("held-out", "not used for fitting, so that a number is not too good because of rows seen before"),
    ("u_delta", "the utility between right and wrong decisions of both kinds, the unit of curves over all thresholds"),
)
"""Words of this page, as it uses them."""
CLASS_TERMS = (
    ("expected utility", TERMS[0][1]),
    ("recalibration", "a new scale for the probabilities of all classes, so that 0.3 means 30 of 100 for each of them"),
    ("post-training", "a small model on the probabilities and the features, which corrects them row by row"),
    ("gain", "what a change is worth on rows that it was not fitted on, compared with the probabilities as they are"),
    *(term for term in TERMS if term[0] in ("interval", "held-out")),
    ("coverage", "the share of rows that are decided; on the others the model abstains"),
    ("best constant action", "the action that is worth most where every row takes the same one"),
)
"""Words of a page for several classes, as the page uses them."""


class Today(NamedTuple):
    """What to do today in one sentence, the key of that way of acting ('' for the best constant decision), and the
    method that it needs, if any.
    """

    text: str
    way: str
    method: str | None = None


def scale_of(reports: Sequence[Report], terms: StatedTerms) -> Scale:
    """The decimals of the advice on these results; without intervals three digits of what sets ways of acting apart."""
    results = [report.results for report in reports]
    each = [[way.worth for way in ways_of(of_report)] for of_report in results]
    scale = terms.scale(*amounts_in(results))
    apart = max((max(of_report) - min(of_report) for of_report in each if of_report), default=0.0) * scale.factor
    return replace(scale, decimals=decimals_of_gains(results, (apart,), scale.factor))


class ReportPage(WrittenResult):
    """An evaluation, what it recommends, pictures, and the comparison of two models.

    comparison: None unless there are two models of the same rows. drawings: each of one report, or of all. notes: what
    the page does not show, and why. positions: sums of models and groups at other thresholds; {} where decisions have
    none.
    """

    apart = True

    def __init__(
        self,
        recommendation: Recommendation,
        drawings: Sequence[tuple[Report | None, b.Picture]],
        comparison: Comparison | None,
        notes: Sequence[str],
        terms: StatedTerms,
        positions: Mapping[tuple[str, str | None], Positions],
    ) -> None:
        super().__init__(recommendation.evaluation, terms)
        self.title = f"Decisions by {', '.join(self.evaluation.models)}"
        self.recommendation, self.comparison = recommendation, comparison
        self.drawings, self.notes, self.positions = drawings, notes, positions
        self.scale = scale_of(self.evaluation.reports, terms)
        self._of_classes = any(report.of_classes for report in self.evaluation.reports)

    def sections(self) -> b.Blocks:
        """The decision, what to do, what each way of acting is worth, why, metrics, and where all this comes from."""
        # A report has no other format: the command that measures has.
        evaluation = shortened(self.evaluation, f"{Verb('evaluate').words} {IN_FULL}")
        if evaluation is not self.evaluation:
            yield b.Notes(evaluation.notes[len(self.evaluation.notes) :])
        if not self.recommendation.advice:
            options = f"{Hint('threshold').words}, {Hint('utility').words}, costs or {Hint('odds').words}."
            if self._of_classes:
                options = f"{Hint('abstain').words} or {Hint('utility').words}."
            yield b.Paragraph(f"No decision was named, so nothing is recommended: give {options}")
            yield from self._comparison()
            for report in evaluation.reports:
                yield from self._pictures(report)
            yield from self._shared()
        else:
            yield from self._advice(advised_in(self.recommendation, self.terms, evaluation.reports))
        yield from self._metrics(evaluation)
        yield b.Heading("Data and method", level=1)
        yield b.Folded("Words on this page", (b.Facts((("", CLASS_TERMS if self._of_classes else TERMS),)),))
        yield b.Notes((*source_lines(self.evaluation, self.terms.names), *self.notes))

    def _advice(self, advised: Sequence[AdvisedModel]) -> b.Blocks:
        """The advice: in full on one report; on several a table, the comparison, each model with its groups folded."""
        yield b.Paragraph(self.terms.worded(decision_words(self.evaluation, self.terms)))
        alone = len(advised) == 1
        yield self._headline(advised[0]) if alone else self._overview(advised)
        yield from self._worth(advised)
        yield from self._shared()
        yield from self._comparison()
        if alone:
            yield b.Heading("What to do", level=1)
            yield from self._one(advised[0])
            return
        for each in advised:
            answer = self.terms.worded(_today(each).text)
            if each.report.of_all_rows:
                yield b.Heading(each.report.model, level=1)
                yield b.Conclusion(answer, ())
                yield from self._one(each)
            else:
                yield b.Folded(f"{self.terms.worded(each.report.name)}: {answer}", self._one(each))

    def _headline(self, each: AdvisedModel) -> b.Headline:
        """The answer with the number that it rests on: what it wins, and what other ways of acting are worth."""
        answer, scale, unit = _today(each), self.scale, self.scale.words
        known, text = {way.key: way for way in each.ways}, self.terms.worded(answer.text)
        if "now" not in known:
            return b.Headline(text, "unknown", f"{unit}: what acting on the score is worth")
        now = known["now"].worth
        constant = max((known[key] for key in CONSTANT_WAYS if key in known), key=lambda way: way.worth, default=None)
        way = known.get(answer.way, constant or known["now"])
        perfect = f"; {each.perfect} worth {scale(known['perfect'].worth)}" if "perfect" in known else ""
        number, ends, said = scale(now), "", "what acting on the score is worth"
        if way.key != "now":
            ends = "" if way.interval is None else f"{scale.ends(way.interval)} "
            number = scale(way.worth - now, "+")
            said = f"what {answer.method or _gerund(way.name)} wins over the score as it is ({scale(now)})"
            said += "" if constant is None else f"; {_gerund(constant.name)} is worth {scale(constant.worth)}"
        elif constant is not None:
            number = scale(now - constant.worth, "+")
            said = f"what acting on the score as it is ({scale(now)}) wins over {_gerund(constant.name)}"
            said += f" ({scale(constant.worth)})"
        return b.Headline(text, number, self.terms.worded(f"{ends}{unit}: {said}{perfect}."))

    def _overview(self, advised: Sequence[AdvisedModel]) -> b.TextTable:
        """A row for each model and group, the models that are worth most first; of a capacity for each model, as its
        groups share the places.
        """
        limited = bool(self.evaluation.limit)
        shown = [each for each in advised if not limited or each.report.of_all_rows]
        grouped = not all(each.report.of_all_rows for each in shown)

        def amount(each: AdvisedModel, *keys: str) -> str:
            """What the best of these ways is worth."""
            worth = max((way.worth for way in each.ways if way.key in keys), default=None)
            return DASH if worth is None else self.scale(worth)

        def then(each: AdvisedModel) -> str:
            way = _today(each).way
            return amount(each, *([way] if any(one.key == way for one in each.ways) else CONSTANT_WAYS))

        constant = "without a score" if limited else "best constant decision"
        return table(
            shown,
            [
                (len({each.report.model for each in shown}) > 1 or not grouped)
                and (left("model", wraps=True), "report.model"),
                grouped and (left("group", wraps=True), lambda each: each.report.group or "all rows"),
                (left("what to do", wraps=True), lambda each: self.terms.worded(_today(each).text)),
                ("worth now", lambda each: amount(each, "now")),
                ("worth then", then),
                (constant, lambda each: amount(each, *CONSTANT_WAYS)),
            ],
            title=f"What to do{' with these places' if limited else ''}, and what decisions are worth "
            f"{self.scale.in_words}",
        )

    def _worth(self, advised: Sequence[AdvisedModel]) -> b.Blocks:
        """What each way of acting is worth, of every report; with sliders where there are sums to move between."""
        moved = [each for each in advised if each.report.place in self.positions]
        names = [each.report.name for each in moved or advised]
        tables = [self._ways(each, each.report.name * (len(names) > 1)) for each in moved or advised]
        whole = replace(tables[0], rows=[row for one in tables for row in one.rows])
        yield b.Heading("What each way of acting is worth", level=1)
        if not moved:
            if self.evaluation.limit and len(names) > len(self.evaluation.models):
                yield b.Paragraph("Groups share the places, so that the numbers of a group are without your capacity.")
            yield whole
            return
        yield b.Paragraph(
            "Move the threshold to see other costs: the sum of both costs stays. A row that is acted on has label 1 or "
            "is a false alarm; a miss is a row of label 1 that is not acted on."
        )
        yield b.Movable(whole, names, self._moving(moved))

    def _ways(self, each: AdvisedModel, section: str) -> b.TextTable:
        now = next((way.worth for way in each.ways if way.key == "now"), 0.0)
        counts = each.report.find(DecisionCounts)

        def gain(way: Way) -> b.Cell:
            ends = () if way.interval is None else (self.scale.ends(way.interval),)
            return b.Cell((self.scale(way.worth - now, "+"), *ends)) if way.key != "now" else words(DASH)

        done = of_thousand(each.ways, counts.total, self._counted) if counts else {}
        heads = enumerate(f"{head} of {OF_ROWS:,}" for head in action_heads(self.terms, "'"))
        shown = table(
            each.ways,
            [
                (left("way of acting"), lambda way: self.terms.worded(way.name)),
                (f"worth {self.scale.in_words}", lambda way: self.scale(way.worth)),
                ("gain over the score as it is", gain),
                *((head, lambda way, at=at: done[way][at] if way in done else DASH) for at, head in heads if done),
            ],
        )
        rows = zip(shown.rows, each.ways, strict=True)
        return replace(shown, rows=[replace(row, section=section, key=way.key) for row, way in rows])

    @property
    def _counted(self) -> int:
        """Decimals of counts of 1,000 rows: more where few rows have label 1."""
        rates = [min(report.positives or 0, report.rows) / report.rows for report in self.evaluation.reports]
        least = min([rate for rate in rates if rate > 0], default=1.0)
        return min(decimals_of(OF_ROWS * least), 3)

    def _moving(self, moved: Sequence[AdvisedModel]) -> dict[str, Any]:
        """What the script of the page moves."""
        task, terms = self.evaluation.plan.binary, self.terms
        assert task is not None  # positions are of a task
        positions = [self.positions[each.report.place] for each in moved]
        methods = {"recalibrate": "recalibrate the score", "post-train": "post-train on the features"}
        ways = {way.key: terms.worded(way.name) for each in moved for way in each.ways}
        limited = zip(positions, map(self._at_own_capacity, moved), strict=True)
        return {
            "at": positions[0].at.tolist(),
            "own": int(np.searchsorted(positions[0].at, task.threshold)),
            "room": next((each.room for each in moved if each.report.find(Places)), 1.0),
            "right": [task.utility[0][0], task.utility[1][1]],
            "unit": task.u_delta,
            "factor": self.scale.factor,
            "decimals": self.scale.decimals,
            "counted": self._counted,
            "of": OF_ROWS,
            "places": PLACES,
            "span": self.scale.words,
            "words": ways | methods,
            "ways": WAYS,
            "reports": [each.plain() | {"limited": text} for each, text in limited],
        }

    def _at_own_capacity(self, each: AdvisedModel) -> str:
        """What the page says where its sliders stand at the user's capacity; '' without one, and of groups."""
        if not isinstance(each, LimitedModel):
            return ""
        best, now = each.ranked_first, each.ranked[0].utility or 0.0
        utility, gain = best.utility or 0.0, best.gain
        if each.idle is not None:
            utility, gain = now + each.idle.value, each.idle.value
        more = "" if gain is None else f", {self.scale(gain)} more than the score as it is"
        worth = f"{self.scale(utility)} {self.scale.words}{more}"
        return f"At your capacity: {each.first[0].lower()}{each.first[1:]} ({worth})."

    def _shared(self) -> b.Blocks:
        for heading, kinds in SHARED_PICTURES.items():
            shared = [*self._pictures(None, *kinds)]
            if shared:
                yield b.Heading(heading, level=1)
                yield from shared

    def _one(self, each: AdvisedModel) -> b.Blocks:
        """What a limit changes, a picture of what can be won, and why."""
        report = each.report
        if self.evaluation.limit:
            yield from each.places()
            yield from self._pictures(report, "places")
        yield from self._pictures(report, "waterfall")
        yield b.Conclusion("", each.lead()[1:])
        yield from each.beside()
        yield b.Heading("Why", level=2)
        yield each.walk()
        yield from each.notes()
        yield from self._pictures(report, "reliability", "grouping")
        if report.find(Regimes):
            regimes = regime_tables([report], self.scale.factor, self.scale.in_words)
            yield b.Folded("Where the regret comes from, bin by bin of the score", regimes)
        yield from self._pictures(report, "confusion", "class-reliability")
        if by_class := report.find(ByClass):
            yield b.Folded("Classes, and the actions taken for them", class_blocks(report, by_class, named=False))
        elif done := report.find(ActionCounts):
            yield b.Folded("Labels, and the actions taken for them", action_tables(report, done))

    def _comparison(self) -> b.Blocks:
        if self.comparison is not None:
            yield b.Heading("The two models compared", level=1)
            yield b.Points(Compared(self.comparison, self.terms).summary())

    def _pictures(self, report: Report | None, *kinds: str) -> Iterator[b.Picture]:
        """The pictures of a report, of these kinds or all; None: those of all reports together."""
        for of, picture in self.drawings:
            if of is report and (not kinds or picture.kind in kinds):
                yield picture

    def _metrics(self, evaluation: Evaluation) -> b.Blocks:
        """The metrics that say most in one table, all others by family, folded; each name with its explanation."""
        of_classes, by_row = self._of_classes, evaluation.plan.by_row
        table = metric_table(evaluation.reports, {}, self.scale.factor)

        def placed(row: b.Row) -> tuple[tuple[bool, str], b.Row]:
            name, *rest = row.cells
            declared = parse(name.code).declared
            metric = declared.form(of_classes)
            metric = metric.of_rows or metric if by_row else metric
            name = replace(name, details=partial(explained, metric))
            shown = is_shown(declared, of_classes, by_row, bool(evaluation.limit))
            return (shown, row.section), replace(row, cells=(name, *rest), section="")

        rows = grouped(map(placed, table.rows))
        families = sorted(
            dict.fromkeys(family for _, family in rows),
            key=lambda family: FAMILIES.index(family) if family in FAMILIES else len(FAMILIES),
        )
        yield b.Heading("The metrics that say most", level=1)
        says = "Open a metric's name for its formula, range, source and how its interval is made."
        utilities = f"Utilities are {self.scale.in_words}. " if self.recommendation.advice else ""
        yield b.Notes((f"{utilities}{says}",), quiet=True)
        yield replace(table, rows=[row for family in families for row in rows.get((True, family), ())])
        for family in families:
            if others := rows.get((False, family)):
                yield b.Folded(f"{len(others)} more of {family}", [replace(table, rows=others)])
        if notes := metric_notes(evaluation):
            yield b.Folded("Worst cases, and why some values or intervals are missing", notes)


def decision_words(evaluation: Evaluation, terms: StatedTerms) -> str:
    """The decision in a sentence: how many rows the models have, how many of label 1, and what errors cost."""
    task, reports, places = evaluation.plan.binary, evaluation.whole, _places_words(evaluation)
    fewest, most = (end(report.rows for report in reports) for end in (min, max))
    rows = many(most, "row") if fewest == most else f"{fewest:,} to {most:,} rows"
    shares = sorted(report.positives / report.rows for report in reports if report.positives is not None)
    if shares:
        ends = dict.fromkeys(map(percent, (shares[0], shares[-1])))
        rows += f", {' to '.join(ends)} with label 1"
    if by_class := reports[0].find(ByClass):
        rows += f" of {len(by_class.classes)} classes"
    if evaluation.plan.by_row:
        return f"{rows}; every row has costs of its own.{places}"
    if task is None:
        actions = evaluation.decided_by
        if actions is None:
            return f"{rows}."
        worth = class_payoffs(actions) if isinstance(actions, ClassDecision) else payoffs(actions)
        worth = worth or f"the actions are {', '.join(actions.actions)}"
        return f"{rows}; {worth}.{places}"
    alarm, miss = map(terms.price, task.costs)
    acting, one, other = "acting", "a false alarm", "a miss"
    if terms.names:
        on, one, other = action_heads(terms, "'")
        acting = f"deciding {on}"
    costs = f"{other} costs {miss}, {one} {alarm}"
    return f"{rows}; {costs}: {acting} pays from a probability of {plain(task.threshold)} on.{places}"


def _places_words(evaluation: Evaluation) -> str:
    """How many rows can be acted on, in a sentence; empty where all can."""
    capacity = evaluation.capacity
    if capacity is None:
        return ""
    actions = limited_actions(evaluation)
    done = "be acted on" if actions is None else f"get {actions}"
    if not capacity.among:
        each = f" for each value of {evaluation.columns['per']}" if "per" in evaluation.columns else ""
        return f" At most {capacity.places:,.0f} rows can {done}{each}."
    share = percent(capacity.places) if capacity.among == 1 else f"{capacity.places:,g} of {capacity.among:,g}"
    return f" At most {share} {'of the ' if capacity.among == 1 else ''}rows can {done}."


def _today(each: AdvisedModel) -> Today:
    """What to do; where so many rows can be acted on only, what gives the places."""
    if not isinstance(each, LimitedModel):
        return answer_of(each.advice)
    if each.idle is not None:
        return Today(f"{each.first}.", "never")
    return Today(f"{each.first}.", KEYS[each.ranked_first.kind], each.ranks_now.method)


def answer_of(advice: Advice) -> Today:
    """What to do today where every row can be acted on."""
    now, instead = advice.act_now, advice.instead
    way = now.action if now.action != "done" else "" if instead else "now"
    if advice.certainty == "clear":
        return Today(advice.headline, way, now.method)
    if way in ("", "now"):
        what = instead.words if instead else "use the score as it is"
        return Today(f"For now, {what}: what a fit would win is not clear.", way)
    what = "Recalibrate" if way == "recalibrate" else "Post-train on the features"
    more, after = f"more than {instead.doing}" if instead else "", " after its cost" if now.costly else ""
    likely = f"that it wins {more or 'something'}{after} is likely"
    sure = likely if advice.certainty == "likely" else f"whether it wins {more or 'anything'}{after} is open"
    return Today(f"{what} with {now.method}: {sure}.", way, now.method)


def _gerund(name: str) -> str:
    """'always acting' of 'always act'."""
    for verb, doing in (("act", "acting"), ("take", "taking")):
        name = re.sub(rf"\b{verb}\b", doing, name)
    return name
