"""The page that `decal report` writes: what to do and what it wins, a picture of it, why, and the detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from decal_cli.analysis.choices import is_shown
from decal_cli.analysis.compare import Comparison
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import Recommendation
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import parse
from decal_cli.render import blocks as b
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
from decal_cli.render.terms import StatedTerms

FAMILIES = (
    *("regret", "task", "capacity", "amounts", "places", "loss", "practice", "ranking", "bins", "interval", "smooth"),
    *("classes", "actions", "agents", "rules", "sufficiency", "levels"),
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


@dataclass(frozen=True, eq=False)
class Drawing:
    """A picture of one model and group, or of all of them."""

    kind: str
    model: str | None
    group: str | None
    picture: b.Picture


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
        terms: StatedTerms | None = None,
    ) -> None:
        self.evaluation = evaluation
        self.recommendation = recommendation
        self.drawings = tuple(drawings)
        self.comparison = comparison
        self.notes = tuple(notes)
        self.terms = terms or StatedTerms()

    @property
    def _of_classes(self) -> bool:
        return any(report.by_class is not None for report in self.evaluation.reports)

    @property
    def title(self) -> str:
        """Of the page."""
        models = list(dict.fromkeys(report.model for report in self.evaluation.reports))
        return f"Decisions by {', '.join(models)}"

    def blocks(self) -> Iterator[b.Block]:
        """What to do, why, pictures, metrics, terms, and where all this comes from."""
        # A report has no other format: the command that measures has.
        evaluation = shortened(self.evaluation, f"{Verb('evaluate').words} {IN_FULL}")
        if evaluation is not self.evaluation:
            yield b.Notes(evaluation.notes[len(self.evaluation.notes) :])
        yield from self._advice(evaluation.reports)
        for heading, kinds in SHARED_PICTURES.items():
            shared = tuple(self._pictures(None, *kinds))
            if shared:
                yield b.Heading(heading, level=1)
                yield from shared
        yield from self._metrics(evaluation)
        yield b.Heading("Words on this page", level=1)
        yield b.Facts((("", CLASS_TERMS if self._of_classes else TERMS),))
        yield b.Heading("Data and method", level=1)
        yield b.SourceLines((*source_lines(self.evaluation), *self.notes))
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
            return
        advised = advised_of(self.recommendation, reports)
        if len(advised) == 1:
            yield from self._one(*advised[0], level=1)
            return
        yield advice_table(advised, self.terms)
        yield from self._comparison()
        for report, advice in advised:
            if report.group is None:
                yield b.Heading(report.model, level=1)
                yield from self._one(report, advice)
            else:
                yield b.Folded(
                    self.terms.worded(f"{name_of(report)}: {advice.headline}"), tuple(self._one(report, advice))
                )

    def _one(self, report: Report, advice: Advice, level: int = 2) -> Iterator[b.Block]:
        """What a limit changes, the sentence and the number, a picture of it, what to do, and why."""
        yield from self._at_capacity(report)
        yield headline_of(report, advice, self.evaluation.plan.confidence, self.terms)
        first = constant_line(report, advice, self.terms)
        if first is not None:
            yield b.Paragraph(first)
        waterfall = tuple(self._pictures(report, "waterfall"))
        yield from waterfall or (ladder(report.results, self.terms),)
        yield replace(conclusion_of(report, advice, self.evaluation.plan.binary, self.terms), text="")
        yield from filter(None, (moving_line(report, self.evaluation.population, self.terms),))
        yield from filter(None, (amount_line(report, self.evaluation.by_row, self.terms),))
        yield from filter(None, (counts_table(report, self.terms),))
        yield b.Heading("Why", level=level)
        yield walk_of(advice, self.terms)
        yield from self._pictures(report, "reliability", "grouping")
        if report.regimes:
            yield b.Folded("Where the regret comes from, bin by bin of the score", tuple(regime_tables([report])))
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
        table = self._explained(metric_table(evaluation.reports))
        families = sorted(dict.fromkeys(row.section for row in table.rows), key=_rank)
        by_family = {family: [row for row in table.rows if row.section == family] for family in families}
        main = [row for family in families for row in by_family[family] if self._is_shown(row)]
        yield b.Heading("The metrics that say most", level=1)
        yield b.Notes(
            ("Open a metric's name for its formula, range, source and how its interval is made.",), quiet=True
        )
        yield replace(table, rows=tuple(replace(row, section="") for row in main))
        for family in families:
            rows = tuple(replace(row, section="") for row in by_family[family] if not self._is_shown(row))
            if rows:
                yield b.Folded(f"{len(rows)} more of {family}", (replace(table, rows=rows),))
        yield from metric_notes(evaluation)

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


def headline_of(report: Report, advice: Advice, confidence: float, terms: StatedTerms) -> b.Headline:
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
            return b.Headline(headline, "unknown", f"{terms.noun} {terms.span}: {what}")
        gain, interval, plus = now.value, now.interval, ""
    (number, *ends), words = terms.amounts(gain, *(interval or ()))
    sign = plus if gain > 0 else ""
    within = f" ({100 * confidence:g} % interval {' to '.join(ends)})" if ends else ""
    return b.Headline(headline, sign + number, terms.worded(f"{words or terms.noun} {terms.span}: {what}{within}"))


def _rank(family: str) -> int:
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
