"""A model card: what decal measured of a model and what it cannot know, item by item of TRIPOD+AI."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from decal_cli.analysis.described import ByClass, GainsOverTime, ReliabilityBin
from decal_cli.analysis.evaluate import Report, known_in
from decal_cli.analysis.recommend import Recommendation, amounts_of
from decal_cli.data.words import grouped, quote
from decal_cli.declarations.document import Limit, Some, Words
from decal_cli.hints import Verb
from decal_cli.metrics import named
from decal_cli.numbers import DASH, bracketed, many, percent, plain, shares_text
from decal_cli.render import blocks as b
from decal_cli.render.cells import counted, left, number, table
from decal_cli.render.results.advised import AdvisedModel, advice_table, advised_in
from decal_cli.render.results.evaluation import MeasuredData, metric_table, undefined_reasons, unknown_lines
from decal_cli.render.results.page import decision_words
from decal_cli.render.results.recommendation import AdvisedData, Recommended
from decal_cli.render.results.sections import having, over_time_blocks
from decal_cli.render.results.source import (
    MAX_NAMES,
    Provenance,
    WrittenResult,
    listed,
    shortened,
    source_lines,
    without_limit_lines,
)
from decal_cli.render.schema import Document, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.version import __version__

UNKNOWN = "Not known to decal"
"""What stands before that which the authors of a card have to fill in."""
SOURCES = (
    "Sections are those of model cards (Mitchell et al. 2019, doi:10.1145/3287560.3287596); numbers are the items of "
    "TRIPOD+AI (Collins et al. 2024, doi:10.1136/bmj-2023-078378), in our words."
)
SHOWN = {
    "Calibration": (
        *("calibration_slope", "calibration_intercept", "observed_expected", "ece", "ece_null", "brier"),
        *("ece_top", "ece_top_null", "ece_classwise", "ece_classwise_null"),
    ),
    "Discrimination": ("auc", "auc_weighted", "average_precision"),
    "Decisions": (
        *("expected_utility", "net_benefit", "eu_never", "eu_always", "eu_by_amount", "utility_at_capacity"),
        *("gain_over_constant", "gain_over_amount", "gain_recalibration", "gain_beyond", "gain_post_training"),
        *("regret_calibration", "regret_grouping", "threshold_adjusted"),
        *("accuracy", "sensitivity", "specificity", "ppv", "npv", "capture", "precision_at_capacity"),
    ),
}
"""The metrics of a card, by the heading of their table; each where these rows have it."""
NOT_GIVEN = ("needs a task", "needs a capacity", "needs utilities")
"""How reasons begin that say only what was not asked for."""
UPDATES = ("gain_recalibration", "gain_post_training")


@dataclass(frozen=True)
class CardItem:
    """An item of TRIPOD+AI. known: what decal says of it; unknown: what of it decal does not know, for the authors to
    fill in. At most one of both is null.
    """

    section: str
    tripod_ai: Annotated[str, Limit(pattern="^[0-9]+[a-g]?$")]
    asks: Words
    known: Words | None
    unknown: Words | None

    @property
    def words(self) -> str:
        """Both as text."""
        return f"{self.known or ''} {(self.unknown and f'{UNKNOWN}: {self.unknown}.') or ''}".strip()


class CardMeasuresData(MeasuredData):
    """A report as `decal evaluate` has it. reliability: the bins of its score, none of several classes."""

    reliability: list[ReliabilityBin]


class CardAdviceData(AdvisedData):
    """A report as `decal recommend` has it. reliability: the bins of its score, none of several classes."""

    reliability: list[ReliabilityBin]


class CardData(Provenance):
    """A model card. items: all of TRIPOD+AI. reports: the numbers of each model and group; with advice where a decision
    was named.
    """

    title: str = of(lambda _, card: card.title)
    items: Annotated[list[CardItem], Limit(minItems=52, maxItems=52)] = of(lambda _, card: list(card.items()))
    reports: Some[CardAdviceData | CardMeasuresData] = of(lambda _, card: card.entries())


class Card(WrittenResult):
    """A card, for formats to write: a page of its own.

    bins: of the score of each report, in their order. positive: the value that counts as label 1, where one was named.
    """

    whole_page = apart = True

    def __init__(
        self,
        recommendation: Recommendation,
        bins: Sequence[Sequence[ReliabilityBin]],
        terms: StatedTerms = PLAIN,
        positive: str | None = None,
    ) -> None:
        super().__init__(recommendation.evaluation, terms)
        self.recommendation, self.bins, self.positive = recommendation, bins, positive
        self.models, self.decides = self.evaluation.whole, bool(recommendation.advice)
        self.title = f"Model card: {', '.join(report.model for report in self.models)}"

    def data(self) -> Document:
        """Where the numbers come from, all items, and every number."""
        return data_of(CardData(self.evaluation, self))

    def entries(self) -> list[Document]:
        """Each report as JSON has it."""
        entries = [data_of(MeasuredData(each)) for each in self.evaluation.reports]
        if self.decides:
            entries = Recommended(self.recommendation, self.terms).entries()
        return [{**each, "reliability": data_of(bins)} for each, bins in zip(entries, self.bins, strict=True)]

    def items(self) -> Iterator[CardItem]:
        """Every item, section by section."""
        for section, items in SECTIONS.items():
            for item, asks, unknown in items:
                known = SAYS[item](self) if item in SAYS else ""
                yield CardItem(section, item, asks, known or None, unknown or None)

    def sections(self) -> b.Blocks:
        """The sections with their items, the numbers, and where all this comes from."""
        yield b.Notes((f"Where a line says '{UNKNOWN}', the authors of the card have to fill it in.", SOURCES))
        filled = list(self.items())
        for section in SECTIONS:
            yield b.Heading(section, level=1)
            facts = ((f"{each.asks} ({each.tripod_ai})", each.words) for each in filled if each.section == section)
            yield b.Facts([("", facts)])
            if section == "Quantitative analyses":
                yield from self._numbers()
        yield b.Heading("Software and signature", level=1)
        yield b.Notes((f"decal {__version__}", *source_lines(self.evaluation, self.terms.names)))

    def _numbers(self) -> b.Blocks:
        shown = shortened(self.evaluation)
        reports = shown.reports
        if len(reports) > 1:
            yield b.Paragraph("", strong="Models and groups")
            yield table(
                reports,
                [
                    (left("model"), "model"),
                    (left("group"), lambda each: each.group or "all rows"),
                    (left("rows"), _rows),
                    ("dropped", lambda each: f"{each.dropped:,}"),
                ],
            )
        if self.decides and len(reports) > 1:
            yield advice_table(advised_in(self.recommendation, self.terms, reports), self.terms)
        for heading, keys in SHOWN.items():
            defined = known_in(reports, keys)
            if defined:
                yield b.Paragraph("", strong=heading)
                of_these = [replace(each, results={key: each.results[key] for key in defined}) for each in reports]
                metrics = metric_table(of_these, {})
                yield replace(metrics, rows=[replace(row, section="") for row in metrics.rows])
                if lines := [*without_limit_lines(self.evaluation, defined)]:
                    yield b.Notes(lines)
        for report, bins in zip(self.evaluation.reports, self.bins, strict=True):
            if report.of_all_rows and bins:
                yield b.Paragraph("", strong=f"Bins of the score: {report.name}")
                yield table(
                    bins,
                    [
                        ("score from", lambda each: plain(each.low)),
                        ("to", lambda each: plain(each.high)),
                        ("rows", lambda each: counted(each.rows)),
                        ("mean score", lambda each: plain(each.score)),
                        ("frequency of label 1", lambda each: number(each.rate, each.interval)),
                    ],
                )
        if notes := shown.notes[len(self.evaluation.notes) :]:
            yield b.Notes(notes)
        for report in self.models:
            yield from over_time_blocks(report, self.terms, named=len(self.models) > 1)

    def column_names(self, role: str) -> str:
        """The columns of a role; '' where it has none."""
        return listed(self.evaluation.columns.get(role, ()))

    def each(self, say: Callable[[Report], str]) -> str:
        """What is said of each model, with its name where there are several."""
        said = [(report.model, say(report)) for report in self.models]
        return said[0][1] if len(said) == 1 else " ".join(f"{model}: {text}" for model, text in said if text)

    def advised(self, say: Callable[[AdvisedModel], str]) -> str:
        """What is said of each model's advice, with the model's name where there are several; '' without a decision."""
        if not self.decides:
            return ""
        advised = {each.report.model: each for each in advised_in(self.recommendation, self.terms, self.models)}
        return self.terms.worded(self.each(lambda report: say(advised[report.model])))


def _rows(report: Report) -> str:
    """Rows, and how many are of which label."""
    by_class = report.find(ByClass)
    if not by_class:
        ones = report.positives or 0
        return f"{many(report.rows, 'row')}, {ones:,} with label 1 ({percent(ones / report.rows)})"
    classes = [f"{each.name}: {each.read:,}" for each in by_class.classes]
    more = ", …" if len(classes) > MAX_NAMES else ""
    return f"{many(report.rows, 'row')} of {len(classes)} classes ({', '.join(classes[:MAX_NAMES])}{more})"


def _missing(card: Card) -> str:
    notes = [f"{note}." for note in card.evaluation.notes if "dropped" in note]
    return " ".join(notes) if any(report.dropped for report in card.models) else "No row was dropped."


def _outcome(card: Card) -> str:
    column = f" of column {card.column_names('label')}" if card.column_names("label") else ""
    if card.models[0].of_classes:
        return f"The class{column}."
    return f"Label 1{column}." if card.positive is None else f"Label 1{column}, which is {quote(card.positive)} there."


def _output(card: Card) -> str:
    """The decision, the threshold, and how far both hold."""
    if not card.decides:
        return "Probabilities. No decision was named, so there is no threshold, and nothing is advised."

    def of_model(each: AdvisedModel) -> str:
        adjusted, text = each.report.results.get("threshold_adjusted"), ""
        if adjusted is not None and adjusted.value is not None:
            at = bracketed((adjusted.text or plain(adjusted.value), *map(plain, adjusted.interval or ())))
            text = f"Acting from a score of {at} on decides as the isotonic fit of these rows would. "
        if each.holds is not None:
            text += "The advice holds for thresholds from {} to {}.".format(*map(plain, each.holds))
        return text.rstrip()

    task, decision = card.evaluation.plan.binary, decision_words(card.evaluation, card.terms)
    if task is not None and task.decision_threshold != task.threshold:
        decision += f" The score is acted on from {plain(task.decision_threshold)} on."
    return f"{card.terms.worded(decision)} {card.advised(of_model)}".strip()


def _measures(card: Card) -> str:
    plan, also = card.evaluation.plan, ", and what decisions are worth" if card.decides else ""
    sure = f"with {100 * plan.confidence:g} % intervals" if plan.intervals else "without intervals"
    return f"Calibration and discrimination{also}, {sure}; `decal metrics NAME` explains each."


def _updating(card: Card) -> str:
    if not card.decides:
        return "The scores are evaluated as they are."
    features = any(report.features for report in card.models)
    also = f" and post-training on {card.column_names('features')} are" if features else " is"
    return f"The scores are evaluated as they are; what recalibration{also} worth is estimated {_judged(card)}."


def _judged(card: Card) -> str:
    """On which rows gains are judged."""
    return "on later rows than those learned from" if "time" in card.evaluation.columns else "on held-out rows"


def _columns(role: str, text: str) -> Callable[[Card], str]:
    """A sentence on the columns of a role; '' where it has none."""
    return lambda card: text.format(card.column_names(role)) if card.column_names(role) else ""


def _analyses(card: Card) -> str:
    if not card.decides:
        return "Every measure is of all these rows."
    later = [f"{over_time.rows:,}" for _, over_time in having(card.models, GainsOverTime)]
    judged = f"{_judged(card)} ({', '.join(later)} rows)" if later else _judged(card)
    return f"Every measure is of all these rows; what was fitted was judged {judged}."


def _imbalance(card: Card) -> str:
    moved = card.evaluation.population
    counted_as = "" if moved is None else f" Counted as a population with {shares_text(moved.prevalence)}."
    return card.each(lambda report: f"{_rows(report)}.") + counted_as


def _inputs(card: Card) -> str:
    inputs = (f"{each.path}, {many(each.rows, 'row')}, SHA-256 {each.sha256}" for each in card.evaluation.inputs)
    return f"{'; '.join(inputs)}."


def _needed(each: AdvisedModel) -> str:
    rows = each.advice.rows_needed
    return f"About {each.advice.evidence.to_collect(rows)} settle what is open in 4 of 5 cases." if rows else ""


def _updates(card: Card) -> str:
    def of_model(report: Report) -> str:
        gains, say = {key: report.known(key) for key in UPDATES}, card.terms.saying(amounts_of(report))
        won = [f"{named(key).title.lower()} {say(*gain)}" for key, gain in gains.items() if gain]
        return f"{'; '.join(won)}, {_judged(card)}." if won else ""

    return card.each(of_model)


def _advice(each: AdvisedModel) -> str:
    when = "Do now" if each.ranks_now is None else "Do without the limit"
    return f"{' '.join(each.lead())} {when}: {each.todo}; how sure that is: {each.advice.certainty}."


def _limits(card: Card) -> str:
    keys = [key for keys in SHOWN.values() for key in keys]
    lines = [*unknown_lines(card.evaluation, card.terms.unit)]  # which may begin with the name of a model
    lines += [line.removeprefix(DASH).strip() for line in undefined_reasons(card.models, keys, NOT_GIVEN)]
    lines += [f"Bins of several classes are on the page of `{Verb('report').words}` alone"] * (not card.bins[0])
    return " ".join(f"{line}." for line in lines)


_GROUPS = _columns("group", "Rows and numbers are given for each value of {} too.")
SAYS: dict[str, Callable[[Card], str]] = {
    "1": lambda card: f"An evaluation of the scores of {', '.join(report.model for report in card.models)}.",
    "12g": lambda card: (
        f"They were read from {card.column_names('score') or card.column_names('proba') or 'the file'}."
    ),
    "15": _output,
    "4": lambda _: "Evaluation of scores that exist; no model was developed.",
    "12d": _columns("cluster", "Clusters are those of {}."),
    "14": _GROUPS,
    "12e": _measures,
    "12f": _updating,
    "13": _imbalance,
    "5a": _inputs,
    "5b": _columns("time", "Each row has its time in column {}."),
    "7": lambda _: "Every score, label and weight was checked when it was read.",
    "8a": _outcome,
    "9b": _columns("features", "Features given to decal: {}."),
    "10": lambda card: card.advised(_needed),
    "11": _missing,
    "20a": lambda card: card.each(lambda report: f"{_rows(report)}; {report.dropped:,} dropped."),
    "20b": _GROUPS,
    "21": _analyses,
    "23a": lambda _: "In the tables below.",
    "23b": _GROUPS,
    "24": _updates,
    "18f": lambda _: f"decal {__version__} makes these numbers again from the same files and options.",
    "25": lambda card: card.advised(_advice),
    "26": _limits,
    "27c": lambda card: card.advised(lambda each: " ".join(each.advice.next_steps)),
}
"""What decal says of a card, by the item."""
with Path(__file__).with_name("tripod_ai.csv").open(encoding="utf-8", newline="") as file:
    SECTIONS = grouped((section, tuple(item)) for section, *item in list(csv.reader(file))[1:])
"""The items of TRIPOD+AI, each in the section of a model card that it belongs to: its number, what it asks for, in our
words, and what of it decal cannot know, '' where that is nothing.
"""
