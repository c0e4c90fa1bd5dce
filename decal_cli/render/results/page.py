"""The page that `decal report` writes: what to do and what it wins, a picture of it, why, and the detail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.compare import Comparison
from decal_cli.analysis.described import Decided, LimitedWorth
from decal_cli.analysis.evaluate import Evaluation, Report, is_shown
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.positions import PLACES, WAYS, Positions
from decal_cli.analysis.recommend import Recommendation, amounts_in
from decal_cli.analysis.tryout import Ranked
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import parse
from decal_cli.numbers import DASH, MAX_DECIMALS, Interval, percent, plain
from decal_cli.render import blocks as b
from decal_cli.render.cells import Columns, left, table, words
from decal_cli.render.results.comparison import summary
from decal_cli.render.results.evaluation import (
    action_tables,
    class_blocks,
    metric_notes,
    metric_table,
    name_of,
    regime_tables,
)
from decal_cli.render.results.explained import explanation, metric_facts
from decal_cli.render.results.recommendation import (
    advised_of,
    moving_line,
    notes_of,
    ranked_blocks,
    ranked_by,
    walk_of,
)
from decal_cli.render.results.shortened import IN_FULL, shortened
from decal_cli.render.results.source import (
    amount_line,
    class_payoffs,
    limited_actions,
    payoffs,
    source_lines,
    without_labels_line,
)
from decal_cli.render.terms import StatedTerms
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
OF_ROWS = 1000
"""Rows that printed counts are of."""
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
"""The same for several classes."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A picture of one model and group, or of all of them."""

    kind: str
    model: str | None
    group: str | None
    picture: b.Picture


class Way(NamedTuple):
    """A way of acting: what it is worth per decision, the interval of what it wins over the score as it is, and whom it
    acts on; None for what is not known.
    """

    key: str
    name: str
    worth: float
    interval: Interval | None = None
    decided: Decided | None = None


class Today(NamedTuple):
    """What to do today in one sentence, the key of that way of acting ('' for the best constant decision), and the
    method that it needs, if any.
    """

    text: str
    way: str
    method: str | None = None


WAYS_OF_KINDS: Mapping[str | None, tuple[str, str]] = {
    None: ("now", "act on the score as it is"),
    "recalibration": ("recalibrate", "act on the recalibrated score"),
    "post-training": ("post-train", "act on score and features"),
    "perfect": ("perfect", "decide with every label known"),
}
"""Key and name of the way of acting on a score, by what makes the score; None: nothing does."""


def ways_of(report: Report) -> list[Way]:
    """The ways of acting whose worth is known, from the constant decisions to perfect knowledge."""
    results, counts = report.results, report.counts

    def value(name: str) -> float | None:
        return results[name].value if name in results else None

    now = value("expected_utility")
    if now is None:
        return []
    ways: list[Way] = []
    known = [(value("eu_never"), "never", "always decide 0"), (value("eu_always"), "always", "always decide 1")]
    lead, stakes, by_amount = value("external_regret"), value("utility_at_stake"), value("eu_by_amount")
    if None in [worth for worth, *_ in known] and lead is not None:
        known = [(now + lead, "constant", "take the best constant action")]
    whole = None if counts is None else counts.as_is
    for worth, key, name in (*known, (by_amount, "amount", "act on large amounts alone")):
        if worth is not None:
            ways.append(Way(key, name, worth, None, _constant(whole, key)))
    ways.append(Way(*WAYS_OF_KINDS[None], now, None, whole))
    for kind, metric, step in (
        ("recalibration", "gain_recalibration", counts and counts.recalibrated),
        ("post-training", "gain_post_training", counts and counts.with_features),
    ):
        if (gain := value(metric)) is not None:
            decided = step.decided if step else None
            ways.append(Way(*WAYS_OF_KINDS[kind], now + gain, results[metric].interval, decided))
    if lead is not None and stakes is not None:
        ways.append(Way(*WAYS_OF_KINDS["perfect"], now + lead + stakes, None, _perfect(whole)))
    return ways


def limited_ways(report: Report, ranked: Sequence[Ranked], room: float) -> list[Way]:
    """The ways of acting on a share of the rows, room, only."""
    counts, results = report.counts, report.results
    whole = None if counts is None else counts.as_is
    never, always = (results[name].value if name in results else None for name in ("eu_never", "eu_always"))
    assert isinstance(report.worth, LimitedWorth)  # there are scores at a capacity
    ways = [Way("never", "act on none" if never is None else "always decide 0", report.worth.idle, None,
                _constant(whole, "never"))]  # fmt: skip
    if never is not None and always is not None and whole is not None:
        shared = Decided(*(room * each for each in (whole.positives, whole.negatives)),
                         *((1 - room) * each for each in (whole.positives, whole.negatives)))  # fmt: skip
        ways.append(Way("always", "act on as many rows by chance", room * always + (1 - room) * never, None, shared))
    for each in ranked:
        if each.utility is not None:
            ways.append(Way(*WAYS_OF_KINDS[each.kind], each.utility, each.interval, _found(whole, each)))
    return ways


def _found(whole: Decided | None, each: Ranked) -> Decided | None:
    """Whom a score acts on, by the share of label 1 that it finds and the share of label 1 among them."""
    if whole is None or each.capture is None or not each.precision:
        return None
    hits = each.capture * whole.positives
    alarms = hits / each.precision - hits
    return Decided(hits, alarms, whole.positives - hits, whole.negatives - alarms)


def _constant(decided: Decided | None, key: str) -> Decided | None:
    if decided is None or key not in ("never", "always"):
        return None
    yes, no = decided.positives, decided.negatives
    return Decided(yes, no, 0.0, 0.0) if key == "always" else Decided(0.0, 0.0, yes, no)


def _perfect(decided: Decided | None) -> Decided | None:
    return None if decided is None else Decided(decided.positives, 0.0, 0.0, decided.negatives)


@dataclass(frozen=True)
class Scale:
    """How amounts of a page are written: the factor of utilities per decision, words for it, and decimals."""

    factor: float
    words: str
    decimals: int

    def __call__(self, value: float, sign: str = "") -> str:
        """A utility per decision as an amount; sign: '+' to write that of a gain."""
        text = f"{self.factor * value:{sign},.{self.decimals}f}"
        return text if text.strip("+-0.,") else text.lstrip("+-")

    def span(self, interval: Interval) -> str:
        """'[low, high]'."""
        return f"[{self(interval[0])}, {self(interval[1])}]"


def scale_of(reports: Sequence[Report], terms: StatedTerms) -> Scale:
    """As many decimals as the largest difference between ways of acting needs for three digits."""
    each = [[way.worth for way in ways_of(report)] for report in reports]
    factor, unit = terms.scale(*amounts_in(report.results for report in reports))
    apart = max((max(of_report) - min(of_report) for of_report in each if of_report), default=0.0) * factor
    decimals = 0 if apart <= 0 else min(max(2 - math.floor(math.log10(apart)), 0), MAX_DECIMALS)
    return Scale(factor, " ".join(filter(None, (unit, terms.span))), decimals)


class ReportPage:
    """An evaluation, what it recommends, pictures, and the comparison of two models.

    recommendation: None without a task; comparison: None unless there are two models of the same rows. notes: what the
    page does not show, and why. positions: sums of models and groups at other thresholds; {} where decisions have none.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        recommendation: Recommendation | None,
        drawings: Sequence[Drawing] = (),
        comparison: Comparison | None = None,
        notes: Sequence[str] = (),
        terms: StatedTerms | None = None,
        positions: Mapping[tuple[str, str | None], Positions] | None = None,
    ) -> None:
        self.evaluation = evaluation
        self.recommendation = recommendation
        self.drawings = tuple(drawings)
        self.comparison = comparison
        self.notes = tuple(notes)
        self.terms = terms or StatedTerms()
        self.positions = positions or {}
        self.scale = scale_of(evaluation.reports, self.terms)

    @property
    def _of_classes(self) -> bool:
        return any(report.by_class is not None for report in self.evaluation.reports)

    @property
    def title(self) -> str:
        """Of the page."""
        models = list(dict.fromkeys(report.model for report in self.evaluation.reports))
        return f"Decisions by {', '.join(models)}"

    def blocks(self) -> Iterator[b.Block]:
        """The decision, what to do, what each way of acting is worth, why, metrics, and where all this comes from."""
        # A report has no other format: the command that measures has.
        evaluation = shortened(self.evaluation, f"{Verb('evaluate').words} {IN_FULL}")
        if evaluation is not self.evaluation:
            yield b.Notes(evaluation.notes[len(self.evaluation.notes) :])
        yield from self._advice(evaluation.reports)
        yield from self._metrics(evaluation)
        yield b.Heading("Data and method", level=1)
        yield b.Folded("Words on this page", (b.Facts((("", CLASS_TERMS if self._of_classes else TERMS),)),))
        yield b.SourceLines((*source_lines(self.evaluation, self.terms.names), *self.notes))
        yield b.Signature(self.evaluation.signature)

    def _advice(self, reports: Sequence[Report]) -> Iterator[b.Block]:
        """Of one report all of it; of several a table, the comparison, then each model, and its groups folded."""
        if self.recommendation is None:
            yield b.Paragraph(
                "No decision was named, so nothing is recommended: give "
                + (
                    f"{Hint('abstain').words} or {Hint('utility').words}."
                    if self._of_classes
                    else f"{Hint('threshold').words}, {Hint('utility').words}, costs or {Hint('odds').words}."
                )
            )
            yield from self._comparison()
            for report in reports:
                yield from self._pictures(report)
            yield from self._shared()
            return
        yield b.Paragraph(self.terms.worded(decision_words(self.evaluation, reports[0], self.terms)))
        advised = advised_of(self.recommendation, reports)
        alone = len(advised) == 1
        if alone:
            report, advice = advised[0]
            yield headline_of(self._ways_of(report), self._answer(report, advice), self.scale, self.terms)
        else:
            yield self._overview(advised)
        yield from self._worth(reports)
        yield from self._shared()
        yield from self._comparison()
        for report, advice in advised:
            if alone or report.group is None:
                yield b.Heading("What to do" if alone else report.model, level=1)
                yield from self._one(report, advice, "" if alone else answer_of(advice).text)
            else:
                answer = self.terms.worded(f"{name_of(report)}: {answer_of(advice).text}")
                yield b.Folded(answer, tuple(self._one(report, advice)))

    def _answer(self, report: Report, advice: Advice) -> Today:
        """Where so many rows can be acted on only, what gives the places."""
        whole = self.recommendation
        now = None if whole is None else whole.ranks_now(report, advice)
        if whole is None or now is None:
            return answer_of(advice)
        way = WAYS_OF_KINDS[ranked_by(now, whole.ranked_of(report)).kind][0]
        return Today(f"Act on the rows that {now.method or 'the score'} puts first.", way, now.method)

    def _overview(self, advised: Sequence[tuple[Report, Advice]]) -> b.TextTable:
        """A row for each model and group, the models that are worth most first; of a capacity for each model, as its
        groups share the places.
        """
        limited = self.evaluation.capacity is not None
        shown = [each for each in advised if not limited or each[0].group is None]
        ways = {report: {way.key: way.worth for way in self._ways_of(report)} for report, _ in shown}

        def constant(report: Report) -> float:
            return max((ways[report][key] for key in CONSTANT_WAYS if key in ways[report]), default=math.nan)

        def then(one: tuple[Report, Advice]) -> float:
            return ways[one[0]].get(self._answer(*one).way, constant(one[0]))

        grouped = any(report.group is not None for report, _ in shown)
        several = len({report.model for report, _ in shown}) > 1
        models: Columns[tuple[Report, Advice]] = [(left("model", wraps=True), lambda one: one[0].model)]
        groups: Columns[tuple[Report, Advice]] = [(left("group", wraps=True), lambda one: one[0].group or "all rows")]
        return table(
            shown,
            [
                *(models if several or not grouped else ()),
                *(groups if grouped else ()),
                (left("what to do", wraps=True), lambda one: self.terms.worded(self._answer(*one).text)),
                ("worth now", lambda one: self._amount(ways[one[0]].get("now"))),
                ("worth then", lambda one: self._amount(then(one))),
                (
                    "without a score" if limited else "best constant decision",
                    lambda one: self._amount(constant(one[0])),
                ),
            ],
            title=f"What to do{' with these places' if limited else ''}, and what decisions are worth "
            f"{in_words(self.scale)}",
        )

    def _amount(self, worth: float | None) -> b.Cell:
        return words(DASH if worth is None or math.isnan(worth) else self.scale(worth))

    def _worth(self, reports: Sequence[Report]) -> Iterator[b.Block]:
        """What each way of acting is worth, of every report; with sliders where there are sums to move between."""
        shown = [report for report in reports if (report.model, report.group) in self.positions]
        names = [name_of(report) for report in shown or reports]
        tables = [self._ways(report, "" if len(names) == 1 else name_of(report)) for report in shown or reports]
        whole = replace(tables[0], rows=tuple(row for one in tables for row in one.rows))
        yield b.Heading("What each way of acting is worth", level=1)
        if not shown:
            yield whole
            return
        yield b.Paragraph(
            "Move the threshold to see other costs: the sum of both costs stays. A row that is acted on has label 1 or "
            "is a false alarm; a miss is a row of label 1 that is not acted on."
        )
        yield b.Movable(whole, tuple(names), self._moving(shown))

    def _ways_of(self, report: Report) -> list[Way]:
        """With the capacity, where there is one and the report is of all rows."""
        ranked = () if self.recommendation is None else self.recommendation.ranked_of(report)
        return limited_ways(report, ranked, self._room([report])) if ranked else ways_of(report)

    def _ways(self, report: Report, section: str) -> b.TextTable:
        now = next((way.worth for way in self._ways_of(report) if way.key == "now"), 0.0)
        total = report.counts.total if report.counts is not None else None

        def gain(way: Way) -> b.Cell:
            ends = () if way.interval is None else (self.scale.span(way.interval),)
            return b.Cell((self.scale(way.worth - now, "+"), *ends)) if way.key != "now" else words(DASH)

        def counted(of: Callable[[Decided], float]) -> Callable[[Way], str]:
            def said(way: Way) -> str:
                if way.decided is None or total is None:
                    return DASH
                return f"{OF_ROWS * of(way.decided) / total:,.{self._counted}f}"

            return said

        off, on = self.terms.names or ("", "")
        heads = (
            (f"'{on}'", f"'{on}' at label 0", f"'{off}' at label 1") if on else ("acts on", "false alarms", "misses")
        )
        cells = (
            counted(lambda each: each.acted),
            counted(lambda each: each.false_positives),
            counted(lambda each: each.false_negatives),
        )
        ways = self._ways_of(report)
        shown = table(
            ways,
            [
                (left("way of acting"), lambda way: self.terms.worded(way.name)),
                (f"worth {in_words(self.scale)}", lambda way: self.scale(way.worth)),
                ("gain over the score as it is", gain),
                *([] if total is None else zip((f"{head} of {OF_ROWS:,}" for head in heads), cells, strict=True)),
            ],
        )
        rows = zip(shown.rows, ways, strict=True)
        return replace(shown, rows=tuple(replace(row, section=section, key=way.key) for row, way in rows))

    @property
    def _counted(self) -> int:
        """Decimals of counts of 1,000 rows: more where few rows have label 1."""
        rates = [min(report.positives or 0, report.rows) / report.rows for report in self.evaluation.reports]
        least = min([rate for rate in rates if rate > 0], default=1.0)
        return min(max(-math.floor(math.log10(least)) - 1, 0), 3)

    def _moving(self, reports: Sequence[Report]) -> dict[str, Any]:
        """What the script of the page moves."""
        task, terms = self.evaluation.plan.binary, self.terms
        assert task is not None  # positions are of a task
        at = self.positions[reports[0].model, reports[0].group].at
        own = int(np.searchsorted(at, task.threshold))
        methods = {"recalibrate": "recalibrate the score", "post-train": "post-train on the features"}
        ways = {way.key: terms.worded(way.name) for report in reports for way in self._ways_of(report)}
        return {
            "at": at.tolist(),
            "own": own,
            "room": self._room(reports),
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
            "reports": [
                self.positions[report.model, report.group].plain() | {"limited": self._at_own_capacity(report)}
                for report in reports
            ],
        }

    def _at_own_capacity(self, report: Report) -> str:
        """What the page says where its sliders stand at the user's capacity; '' without one, and of groups."""
        if self.recommendation is None:
            return ""
        ((_, advice),) = advised_of(self.recommendation, [report])
        now = self.recommendation.ranks_now(report, advice)
        if now is None:
            return ""
        best = ranked_by(now, self.recommendation.ranked_of(report))
        more = "" if best.gain is None else f", {self.scale(best.gain)} more than the score as it is"
        worth = f"{self.scale(best.utility or 0.0)} {self.scale.words}{more}"
        return f"At your capacity: act on the rows that {now.method or 'the score'} puts first ({worth})."

    def _room(self, reports: Sequence[Report]) -> float:
        """The share of all rows that the capacity leaves to act on; 1 without one."""
        rooms = [each.places.places / each.rows for each in reports if each.places is not None]
        return min(rooms[0], 1.0) if rooms else 1.0

    def _shared(self) -> Iterator[b.Block]:
        for heading, kinds in SHARED_PICTURES.items():
            shared = tuple(self._pictures(None, *kinds))
            if shared:
                yield b.Heading(heading, level=1)
                yield from shared

    def _one(self, report: Report, advice: Advice, answer: str = "") -> Iterator[b.Block]:
        """What to do, what a limit changes, a picture of what can be won, and why; answer: '' where it stands above."""
        if answer:
            yield b.Conclusion(self.terms.worded(answer), ())
        yield from self._at_capacity(report)
        yield from self._pictures(report, "waterfall")
        yield b.Conclusion("", advice.lead[1:])
        yield from filter(None, (moving_line(report, self.evaluation.population, self.terms),))
        yield from filter(None, (amount_line(report, self.evaluation.by_row, self.terms),))
        yield from filter(None, (without_labels_line(report, "weight" in self.evaluation.columns, self.terms),))
        yield b.Heading("Why", level=2)
        yield walk_of(advice, self.terms, report)
        assert self.recommendation is not None  # there is advice
        yield b.Conclusion("", tuple(notes_of(report, advice, self.recommendation)))
        yield from self._pictures(report, "reliability", "grouping")
        if report.regimes:
            regimes = regime_tables([report], self.scale.factor, in_words(self.scale))
            yield b.Folded("Where the regret comes from, bin by bin of the score", tuple(regimes))
        if report.by_action is not None:
            yield from self._pictures(report, "confusion")
            yield b.Folded("Labels, and the actions taken for them", tuple(action_tables(report.by_action)))
        if report.by_class is not None:
            yield from self._pictures(report, "confusion", "class-reliability")
            yield b.Folded("Classes, and the actions taken for them", tuple(class_blocks(report, named=False)))

    def _at_capacity(self, report: Report) -> Iterator[b.Block]:
        if self.recommendation is not None and self.evaluation.capacity is not None:
            yield from ranked_blocks(self.recommendation, report, self.terms)
            yield from self._pictures(report, "places")

    def _comparison(self) -> Iterator[b.Block]:
        if self.comparison is not None:
            yield b.Heading("The two models compared", level=1)
            yield b.Points(tuple(summary(self.comparison, self.terms)))

    def _pictures(self, report: Report | None, *kinds: str) -> Iterator[b.Picture]:
        """The pictures of a report, of these kinds or all; None: those of all reports together."""
        place = (None, None) if report is None else (report.model, report.group)
        for drawing in self.drawings:
            if (drawing.model, drawing.group) == place and (not kinds or drawing.kind in kinds):
                yield drawing.picture

    def _metrics(self, evaluation: Evaluation) -> Iterator[b.Block]:
        """The metrics that say most in one table, all others by family, folded."""
        table = self._explained(metric_table(evaluation.reports, factor=self.scale.factor))
        families = sorted(dict.fromkeys(row.section for row in table.rows), key=_rank)
        by_family = {family: [row for row in table.rows if row.section == family] for family in families}
        main = [row for family in families for row in by_family[family] if self._is_shown(row)]
        yield b.Heading("The metrics that say most", level=1)
        says = "Open a metric's name for its formula, range, source and how its interval is made."
        yield b.Notes((f"Utilities are {in_words(self.scale)}. {says}" if self.recommendation else says,), quiet=True)
        yield replace(table, rows=tuple(replace(row, section="") for row in main))
        for family in families:
            rows = tuple(replace(row, section="") for row in by_family[family] if not self._is_shown(row))
            if rows:
                yield b.Folded(f"{len(rows)} more of {family}", (replace(table, rows=rows),))
        if notes := metric_notes(evaluation):
            yield b.Folded("Worst cases, and why some values or intervals are missing", tuple(notes))

    def _is_shown(self, row: b.Row) -> bool:
        evaluation, of_classes = self.evaluation, self._of_classes
        limited = evaluation.capacity is not None
        return is_shown(parse(row.cells[0].code).declared, of_classes, evaluation.by_row is not None, limited)

    def _explained(self, table: b.TextTable) -> b.TextTable:
        """The table of metrics, each name with its explanation."""
        rows = []
        for row in table.rows:
            name, *rest = row.cells
            rows.append(replace(row, cells=(self._with_details(name), *rest)))
        return replace(table, rows=tuple(rows))

    def _with_details(self, name: b.Cell) -> b.Cell:
        metric = parse(name.code).declared.form(self._of_classes)
        if self.evaluation.by_row is not None:
            metric = metric.of_rows or metric
        return replace(name, details=lambda: explanation(metric.text, metric_facts(metric)))


CONSTANT_WAYS = ("never", "always", "constant")


def in_words(scale: Scale) -> str:
    """'per 1,000 decisions', or 'in million EUR a year'."""
    return scale.words if scale.words.startswith(("per ", "for ")) else f"in {scale.words}"


def decision_words(evaluation: Evaluation, report: Report, terms: StatedTerms) -> str:
    """The decision in a sentence: how many rows, how many of label 1, and what errors cost."""
    task, unit = evaluation.plan.binary, f" {terms.unit}" if terms.unit else ""
    rows = f"{report.rows:,} rows"
    places = _places_words(evaluation)
    if report.positives is not None:
        rows += f", {percent(report.positives / report.rows)} with label 1"
    if report.by_class is not None:
        rows += f" of {len(report.by_class.classes)} classes"
    if evaluation.by_row is not None:
        return f"{rows}; every row has costs of its own.{places}"
    if task is None:
        actions = evaluation.decided_by
        if actions is None:
            return f"{rows}."
        worth = class_payoffs(actions) if isinstance(actions, ClassDecision) else payoffs(actions)
        worth = worth or f"the actions are {', '.join(actions.actions)}"
        return f"{rows}; {worth}.{places}"
    (u00, u01), (u10, u11) = task.utility
    miss, alarm = (f"{plain(cost)}{unit}" for cost in (u11 - u01, u00 - u10))
    costs, acting = f"a miss costs {miss}, a false alarm {alarm}", "acting"
    if terms.names:
        off, on = (f"'{name}'" for name in terms.names)
        costs, acting = f"{off} at label 1 costs {miss}, {on} at label 0 {alarm}", f"deciding {on}"
    return f"{rows}; {costs}: {acting} pays from a probability of {plain(task.threshold)} on.{places}"


def _places_words(evaluation: Evaluation) -> str:
    """How many rows can be acted on, in a sentence; empty where all can."""
    capacity = evaluation.capacity
    if capacity is None:
        return ""
    actions = limited_actions(evaluation)
    done = "be acted on" if actions is None else f"get {actions}"
    if capacity.among is None:
        each = f" for each value of {evaluation.columns['per']}" if "per" in evaluation.columns else ""
        return f" At most {capacity.places:,.0f} rows can {done}{each}."
    share = percent(capacity.places) if capacity.among == 1 else f"{capacity.places:,g} of {capacity.among:,g}"
    return f" At most {share} {'of the ' if capacity.among == 1 else ''}rows can {done}."


def answer_of(advice: Advice) -> Today:
    """What to do today where every row can be acted on."""
    now, constant = advice.act_now, advice.constant
    ahead = constant is not None and constant.gain > 0
    way = now.action if now.action != "done" else "" if ahead else "now"
    if advice.certainty == "clear":
        return Today(advice.headline, way, now.method)
    if way in ("", "now"):
        what = f"always decide {constant.decision}" if constant and ahead else "use the score as it is"
        return Today(f"For now, {what}: what a fit would win is not clear.", way)
    what = "Recalibrate" if way == "recalibrate" else "Post-train on the features"
    sure = "that it wins something is likely" if advice.certainty == "likely" else "whether it wins anything is open"
    return Today(f"{what} with {now.method}: {sure}.", way, now.method)


def headline_of(ways: Sequence[Way], answer: Today, scale: Scale, terms: StatedTerms) -> b.Headline:
    """The answer with the number that it rests on: what it wins, and beside it what other ways of acting are worth."""
    known = {way.key: way for way in ways}
    text, unit = terms.worded(answer.text), in_words(scale)
    if "now" not in known:
        return b.Headline(text, "unknown", f"{unit}: what acting on the score is worth")
    now = known["now"].worth
    constant = max((known[key] for key in CONSTANT_WAYS if key in known), key=lambda way: way.worth, default=None)
    way = known.get(answer.way, constant or known["now"])
    perfect = f"; perfect decisions are worth {scale(known['perfect'].worth)}" if "perfect" in known else ""
    if way.key != "now":
        ends = "" if way.interval is None else f"{scale.span(way.interval)} "
        said = f"what {answer.method or _gerund(way.name)} wins over the score as it is ({scale(now)})"
        beside = "" if constant is None else f"; {_gerund(constant.name)} is worth {scale(constant.worth)}"
        return b.Headline(text, scale(way.worth - now, "+"), terms.worded(f"{ends}{unit}: {said}{beside}{perfect}."))
    if constant is None:
        return b.Headline(text, scale(now), f"{unit}: what acting on the score is worth{perfect}.")
    won = f"what acting on the score as it is ({scale(now)}) wins over {_gerund(constant.name)}"
    said = f"{unit}: {won} ({scale(constant.worth)}){perfect}."
    return b.Headline(text, scale(now - constant.worth, "+"), terms.worded(said))


def _gerund(name: str) -> str:
    """'always deciding 1' of 'always decide 1'."""
    for verb, doing in (("always decide", "always deciding"), ("take the", "taking the"), ("act on", "acting on")):
        name = name.replace(verb, doing)
    return name


def _rank(family: str) -> int:
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
