"""The page that `decal report` writes: what to do and what it wins, a picture of it, why, and the detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from decal_cli.analysis.choices import is_shown
from decal_cli.analysis.compare import Comparison
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Recommendation
from decal_cli.metrics import parse
from decal_cli.numbers import plain
from decal_cli.render.blocks import (
    Block,
    Cell,
    Facts,
    Folded,
    Heading,
    Headline,
    Notes,
    Paragraph,
    Picture,
    Points,
    Row,
    Signature,
    Source,
    Table,
)
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
    advice_table,
    advised_of,
    conclusion_of,
    constant_line,
    counts_table,
    ladder,
    moving_line,
    ranked_blocks,
    walk_of,
)
from decal_cli.render.results.shortened import IN_FULL, shortened
from decal_cli.render.results.source import amount_line, source_lines
from decal_cli.render.terms import Terms
from decal_cli.task import Task

FAMILIES = (
    "regret",
    "task",
    "capacity",
    "amounts",
    "places",
    "loss",
    "practice",
    "ranking",
    "bins",
    "interval",
    "smooth",
    "classes",
    "actions",
    "agents",
    "rules",
    "sufficiency",
    "levels",
)
"""Families of metrics, those first that say what a decision loses; a family that is not named comes last."""
SHARED_PICTURES = {
    "At other capacities": ("capacity",),
    "If a false positive costs more, or less": ("factor",),
    "At other thresholds": ("brier", "decision"),
    "If only some rows are decided": ("risk-coverage",),
}
"""Pictures of all models and groups together, by their heading."""
TERMS = (
    ("expected utility", "what a decision is worth on average, in the unit of the costs or utilities that were given"),
    ("t*", "the threshold that follows from the costs: acting is right where label 1 has at least this probability"),
    ("recalibration", "a new scale for the same score, so that a score of .3 means 30 of 100; the ranking stays"),
    ("post-training", "a small model on the score and the features, which corrects the score row by row"),
    ("gain", "what a change is worth on rows that it was not fitted on, compared with acting on the score as it is"),
    ("interval", "the range of values that fit these rows; with other rows the number would differ by about as much"),
    ("held-out", "not used for fitting, so that a number is not too good because of rows seen before"),
    ("u_delta", "the utility between right and wrong decisions of both kinds, the unit of curves over all thresholds"),
)
"""Words of this page, as it uses them."""
CLASS_TERMS = (
    ("expected utility", TERMS[0][1]),
    ("recalibration", "a new scale for the probabilities of all classes, so that .3 means 30 of 100 for each of them"),
    ("post-training", "a small model on the probabilities and the features, which corrects them row by row"),
    ("gain", "what a change is worth on rows that it was not fitted on, compared with the probabilities as they are"),
    *(term for term in TERMS if term[0] in ("interval", "held-out")),
    ("coverage", "the share of rows that are decided; on the others the model abstains"),
    ("best constant action", "the action that is worth most where every row takes the same one"),
)
"""The same for several classes."""


TITLES = {
    "places": "Which rows have a place",
    "capacity": "What decisions are worth with so many places",
    "factor": "What decisions are worth if a false positive costs more or less",
    "waterfall": "What can be won",
    "brier": "What deciding costs at every threshold",
    "decision": "Net benefit at every threshold",
    "reliability": "Reliability",
    "grouping": "What equal scores hide",
    "confusion": "What is done for each class",
    "class-reliability": "Reliability of each class",
    "risk-coverage": "Errors among the surest rows",
}
"""Of the pictures, in the order in which the page shows them."""

_OF_OTHER_TASKS = {
    "places": (
        "Capture is the share of the rows of label 1 that have a place, precision the share of label 1 among the rows "
        "with a place; of value, each row counts by what missing it costs.",
        "Bands are {} intervals. The dashed vertical line is your capacity.",
    ),
    "capacity": (
        "Higher is better. The solid line is what acting on the rows with a place is worth; dashed, without a limit.",
        "Its slope is what one more place is worth. Where rows have utilities of their own, the other lines give the "
        "same places to the highest scores, and to the largest costs of a miss.",
        "Bands are {} intervals. The dashed vertical line is your capacity.",
    ),
    "factor": (
        "Higher is better. To the right a false positive costs so many times as much as it does now in every row.",
        "The dotted line is the recalibrated score on held-out rows, the grey one the better constant decision.",
        "Bands are {} intervals. The dashed vertical line is what it costs now.",
    ),
}
"""How to read pictures over other tasks and capacities; {}: the confidence."""
_OF_CLASSES = {
    "confusion": (
        "Each cell: rows for which the action was taken, by their class, and below what they lose per 1,000 rows of "
        "all against the best action for the class.",
        "The darker a cell, the more it loses.",
    ),
    "class-reliability": (
        "Each line is how often a class occurs where it has this probability, in bins of equally many rows; the thick "
        "one how often the most probable class is right.",
        "On the dotted diagonal the probability is right. Where there are many classes, the least calibrated have a "
        "colour.",
    ),
    "risk-coverage": (
        "The share of errors among the rows that the model is surest of, as more and more rows are accepted.",
        "Lower is better; bands are {} intervals. AURC is the mean height of the line.",
    ),
}
"""How to read pictures of several classes; {}: the confidence."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A picture of one model and group, or of all of them; kind: a key of TITLES."""

    kind: str
    model: str | None
    group: str | None
    svg: bytes


class ReportPage:
    """An evaluation, what it recommends, pictures, and the comparison of two models.

    recommendation: None without a task; comparison: None unless there are two models of the same rows. notes: what the
    page does not show, and why.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        recommendation: Recommendation | None,
        drawings: Sequence[Drawing] = (),
        comparison: Comparison | None = None,
        notes: Sequence[str] = (),
        terms: Terms | None = None,
    ) -> None:
        self.evaluation = evaluation
        self.recommendation = recommendation
        self.drawings = tuple(drawings)
        self.comparison = comparison
        self.notes = tuple(notes)
        self.terms = terms or Terms()

    @property
    def _of_classes(self) -> bool:
        return any(report.by_class is not None for report in self.evaluation.reports)

    @property
    def title(self) -> str:
        """Of the page."""
        models = list(dict.fromkeys(report.model for report in self.evaluation.reports))
        return f"Decisions by {', '.join(models)}"

    def blocks(self) -> Iterator[Block]:
        """What to do, why, pictures, metrics, terms, and where all this comes from."""
        # A report has no other format: the command that measures has.
        evaluation = shortened(self.evaluation, f"decal evaluate {IN_FULL}")
        if evaluation is not self.evaluation:
            yield Notes(evaluation.notes[len(self.evaluation.notes) :])
        yield from self._advice(evaluation.reports)
        for heading, kinds in SHARED_PICTURES.items():
            shared = tuple(self._pictures(None, *kinds))
            if shared:
                yield Heading(heading, level=1)
                yield from shared
        yield from self._metrics(evaluation)
        yield Heading("Words on this page", level=1)
        yield Facts((("", CLASS_TERMS if self._of_classes else TERMS),))
        yield Heading("Data and method", level=1)
        yield Source((*source_lines(self.evaluation), *self.notes))
        yield Signature(self.evaluation.signature)

    def _advice(self, reports: Sequence[Report]) -> Iterator[Block]:
        """Of one report all of it; of several a table, the comparison, then each model, and its groups folded."""
        if self.recommendation is None:
            yield Paragraph(
                "No decision was named, so nothing is recommended: give "
                + ("--abstain or --utility." if self._of_classes else "--threshold, --utility, costs or --odds.")
            )
            yield from self._comparison()
            for report in reports:
                yield from self._pictures(report)
            return
        advised = advised_of(self.recommendation, reports)
        if len(advised) == 1:
            yield from self._one(*advised[0], level=1)
            return
        yield advice_table(advised, self.terms)
        yield from self._comparison()
        for report, advice in advised:
            if report.group is None:
                yield Heading(report.model, level=1)
                yield from self._one(report, advice)
            else:
                yield Folded(
                    self.terms.worded(f"{name_of(report)}: {advice.headline}"), tuple(self._one(report, advice))
                )

    def _one(self, report: Report, advice: Advice, level: int = 2) -> Iterator[Block]:
        """What a limit changes, the sentence and the number, a picture of it, what to do, and why."""
        yield from self._at_capacity(report)
        yield headline_of(report, advice, self.evaluation.plan.confidence, self.terms)
        first = constant_line(report, advice, self.terms)
        if first is not None:
            yield Paragraph(first)
        waterfall = tuple(self._pictures(report, "waterfall"))
        yield from waterfall or (ladder(report.results, self.terms),)
        yield replace(conclusion_of(report, advice, self.evaluation.plan.binary, self.terms), text="")
        yield from filter(None, (moving_line(report, self.evaluation.population, self.terms),))
        yield from filter(None, (amount_line(report, self.evaluation.by_row, self.terms),))
        yield from filter(None, (counts_table(report, self.terms),))
        yield Heading("Why", level=level)
        yield walk_of(advice, self.terms)
        yield from self._pictures(report, "reliability", "grouping")
        if report.regimes:
            yield Folded("Where the regret comes from, bin by bin of the score", tuple(regime_tables([report])))
        if report.by_action is not None:
            yield from self._pictures(report, "confusion")
            yield Folded("Labels, and the actions taken for them", tuple(action_tables(report.by_action)))
        if report.by_class is not None:
            yield from self._pictures(report, "confusion", "class-reliability")
            yield Folded("Classes, and the actions taken for them", tuple(class_blocks(report, named=False)))

    def _at_capacity(self, report: Report) -> Iterator[Block]:
        if self.recommendation is not None and self.evaluation.capacity is not None:
            yield from ranked_blocks(self.recommendation, report, self.terms)
            yield from self._pictures(report, "places")

    def _comparison(self) -> Iterator[Block]:
        if self.comparison is not None:
            yield Heading("The two models compared", level=1)
            yield Points(tuple(summary(self.comparison, self.terms)))

    def _pictures(self, report: Report | None, *kinds: str) -> Iterator[Picture]:
        """The pictures of a report, of these kinds or all; None: those of all reports together."""
        place = (None, None) if report is None else (report.model, report.group)
        plan = self.evaluation.plan
        features = any(each.features for each in self.evaluation.reports)
        for drawing in self.drawings:
            if (drawing.model, drawing.group) == place and (not kinds or drawing.kind in kinds):
                words = caption(drawing.kind, plan.task, features, plan.confidence)
                yield Picture(words, TITLES[drawing.kind], svg=drawing.svg)

    def _metrics(self, evaluation: Evaluation) -> Iterator[Block]:
        """The metrics that say most in one table, all others by family, folded."""
        table = self._explained(metric_table(evaluation.reports))
        families = sorted(dict.fromkeys(row.section for row in table.rows), key=_rank)
        by_family = {family: [row for row in table.rows if row.section == family] for family in families}
        main = [row for family in families for row in by_family[family] if self._is_shown(row)]
        yield Heading("The metrics that say most", level=1)
        yield Notes(("Open a metric's name for its formula, range, source and how its interval is made.",), quiet=True)
        yield replace(table, rows=tuple(replace(row, section="") for row in main))
        for family in families:
            rows = tuple(replace(row, section="") for row in by_family[family] if not self._is_shown(row))
            if rows:
                yield Folded(f"{len(rows)} more of {family}", (replace(table, rows=rows),))
        yield from metric_notes(evaluation)

    def _is_shown(self, row: Row) -> bool:
        evaluation, of_classes = self.evaluation, self._of_classes
        limited = evaluation.capacity is not None
        return is_shown(parse(row.cells[0].code).declared, of_classes, evaluation.by_row is not None, limited)

    def _explained(self, table: Table) -> Table:
        """The table of metrics, each name with its explanation."""
        rows = []
        for row in table.rows:
            name, *rest = row.cells
            rows.append(replace(row, cells=(self._with_details(name), *rest)))
        return replace(table, rows=tuple(rows))

    def _with_details(self, name: Cell) -> Cell:
        metric = parse(name.code).declared.form(self._of_classes)
        if self.evaluation.by_row is not None:
            metric = metric.of_rows or metric
        return replace(name, details=lambda: explanation(metric.text, metric_facts(metric)))


def headline_of(report: Report, advice: Advice, confidence: float, terms: Terms) -> Headline:
    """The advice with the number that it rests on: what the action wins, else what acting on the score is worth."""
    gain, interval, what = advice.gain, advice.interval, f"what {advice.method} wins, by estimate on held-out rows"
    plus, headline = "+", terms.worded(advice.headline)
    if gain is None and advice.constant is not None and advice.constant.gain > 0:
        gain, interval = advice.constant.gain, advice.constant.interval
        what = f"what always deciding {advice.constant.decision} is worth more than acting on the score"
    if gain is None:
        now = report.results["expected_utility"]
        what = "what acting on the score is worth"
        if now.value is None:
            return Headline(headline, "unknown", f"{terms.noun} {terms.span}: {what}")
        gain, interval, plus = now.value, now.interval, ""
    (number, *ends), words = terms.amounts(gain, *(interval or ()))
    sign = plus if gain > 0 else ""
    within = f" ({100 * confidence:g} % interval {' to '.join(ends)})" if ends else ""
    return Headline(headline, sign + number, terms.worded(f"{words or terms.noun} {terms.span}: {what}{within}"))


def _rank(family: str) -> int:
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


def caption(picture: str, task: Task | None, features: bool, confidence: float, several: bool = False) -> str:
    """How to read a picture of this kind, in two to four sentences; several: of rows of several classes."""
    return " ".join(_sentences(picture, task, features, confidence, several))


def _sentences(picture: str, task: Task | None, features: bool, confidence: float, several: bool) -> list[str]:
    level = f"{100 * confidence:g} %"
    if texts := _OF_OTHER_TASKS.get(picture, _OF_CLASSES.get(picture)):
        return [text.format(level) for text in texts]
    at = () if task is None else task.thresholds
    plural = "s are your thresholds" if len(at) > 1 else " is your threshold"
    line = [f"The dashed vertical line{plural}, t* = {', '.join(map(plain, at))}."] if at else []
    if picture == "waterfall":
        last = (
            "the last bar is what using the features adds"
            if features
            else "no features were named, so what they would add is not known"
            if several
            else "the dotted bar is only an upper limit, reached if every label were known: no features were named"
        )
        return [
            "Further right is better. The dot is what acting on the score as it is is worth.",
            f"The first bar is what recalibration adds on held-out rows; {last}.",
            f"Thin lines are {level} intervals. A bar whose interval begins left of the bar's start may win nothing.",
        ]
    if picture == "brier":
        regions = " The other lines also use the features." if features else ""
        return [
            "Lower is better. The solid line is the utility that acting on the score loses at each threshold,",
            f"the dashed line what is lost once the score is recalibrated on these rows.{regions}",
            "The hatched area between both lines is miscalibration.",
            "Where the solid line lies above the dotted one, a constant decision loses less.",
            *line,
        ]
    if picture == "decision":
        return [
            "Higher is better. Net benefit counts true positives, less false positives at their cost.",
            "Where a model lies below 'treat all' or 'treat none', a constant decision is worth more than the model.",
            *line,
        ]
    if picture == "reliability":
        changes = (
            "In the shaded range, up to t_f, where the recalibrated score reaches t*, recalibration decides otherwise."
        )
        return [
            "The line is how often label 1 occurs at each score. On the dotted diagonal the score is right;",
            f"the fit of a calibrated model lies in the grey band {level} of the time.",
            *line,
            *([] if len(at) != 1 else [changes]),
        ]
    differ = "A thin bar is how far the rows of a bin may differ without changing a decision; filled: they differ more."
    return [
        "Each grey dot is a group of rows with nearly equal scores and similar features.",
        "Dots far above and below the dashed line show rows that differ although their scores agree:",
        "only post-training on the features can tell them apart. Some spread is chance.",
        *([] if len(at) != 1 else [differ]),
        *line,
    ]
