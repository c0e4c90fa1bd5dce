"""What `decal recommend` returns: the advice, what it rests on, and what each way of acting is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from decal_cli.analysis.counts import CountedStep, Decided, DecisionCounts
from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import FITS, GAINS, Action, Advice, Answer, Item
from decal_cli.analysis.flowchart.advice import ActNow, Certainty, Interim
from decal_cli.analysis.flowchart.evidence import Constant
from decal_cli.analysis.moving import Moving
from decal_cli.analysis.ranked import PERFECT, Kind, Ranked
from decal_cli.analysis.recommend import Recommendation, Round, ece_advice, ece_disagrees
from decal_cli.analysis.tryout import Trial
from decal_cli.data.words import shell_word
from decal_cli.declarations.document import Above, Absent, Limit, Share, Size
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Result, named
from decal_cli.metrics.decisions import DecisionChange
from decal_cli.numbers import DASH, Interval, alike, apart, counts, per_decision, percent, plain, short, span, with_ends
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, number, reasons, table, words
from decal_cli.render.results.evaluation import MeasuredData, name_of
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import Provenance, amount_line, one_or_several, source_lines, title_of
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.population import Population
from decal_cli.tables.resample import FOLDS
from decal_cli.task import BinaryTask

OF_ROWS = 1000
"""Rows that printed counts are of."""
RULES = ("as it is", "recalibrated", "with features")


class StepData(View):
    """A question of the flowchart with its answer. small: "yes", but the gain is within the tolerance."""

    question: str
    answer: Answer
    small: bool
    reason: str
    evidence: list[Item]


class GainData(View):
    """Utility per decision with its interval; value null, and the reason, where it cannot be told."""

    value: float | None
    interval: Interval | None
    reason: str | None


class TrialData(View):
    """A method tried. behind: what it leaves behind the best one after costs, with the paired interval; null where it
    was not fitted.
    """

    method: str = of("chosen.key")
    kind: Literal["recalibration", "post-training"] = of("chosen.declared.kind")
    predicted: GainData
    achieved: GainData
    cost: float
    net: float | None
    behind: GainData | None
    seconds: float


class RoundData(View):
    """The methods tried on one score, the best first; the action that follows with the best one's score."""

    score: str
    attempts: list[TrialData] = of("trials")
    best: str | None = of("best.chosen.key")
    action: str | None = of("advice.action")


class AdviceData(View):
    """Where the walk ended. act_now: what to do today; certainty: how sure that is. method, fit: the method as `decal
    fit` names it, null where there is nothing to fit. small: the gain is clear, but within the tolerance. constant: the
    constant decision that acting on the score does not beat. interim: what can be done at once and at no cost.
    rows_needed: rows that settle an unknown in 4 of 5 cases, null where more rows alone would not. tried: with --try,
    the methods tried on this score, best first, then on the best one's score, until nothing more is won.
    """

    action: Action
    act_now: ActNow
    certainty: Certainty
    method: str | None
    gain: float | None
    interval: Interval | None
    path: Annotated[list[StepData], Limit(minItems=1)] = of("steps")
    next: list[str] = of("next_steps")
    ece_advice: Literal["recalibrate", "leave"] | None = of(lambda _, seen: ece_advice(seen.report))
    fit: str | None = of("method")
    rows_needed: int | None
    small: bool
    stakes: float
    tolerance: float
    constant: Constant | None
    interim: Interim | None
    tried: Absent[list[RoundData] | None] = of(lambda _, seen: seen.whole.rounds_of(seen.report) or None)


class DecisionChangeData(View):
    """Rows whose decision a step changes, by direction and label; their cells less those before. gain: in utility per
    decision.
    """

    started_positive: Size = of("change.started_positive")
    started_negative: Size = of("change.started_negative")
    stopped_positive: Size = of("change.stopped_positive")
    stopped_negative: Size = of("change.stopped_negative")
    true_positives: float = of("change.true_positives")
    false_positives: float = of("change.false_positives")
    gain: float


class DecidedData(View):
    """Rows, or their summed weight, by decision and label. change: from the step before; null for the score as it is.

    After post-training these are expected counts, on held-out rows: those before and the change, held within the rows
    of each label.
    """

    acted: Size = of("decided.acted")
    true_positives: Size = of("decided.true_positives")
    false_positives: Size = of("decided.false_positives")
    false_negatives: Size = of("decided.false_negatives")
    true_negatives: Size = of("decided.true_negatives")
    ppv: Share | None = of("decided.ppv")
    sensitivity: Share | None = of("decided.sensitivity")
    change: DecisionChangeData | None = of(lambda step, _: None if step.change is None else step)


class AdjustedData(View):
    """The threshold in use, and the one on the same score that decides as the recalibrated score does: a number to be
    used as it is written, null where no recalibrated score reaches t*.
    """

    in_use: float = of(lambda _, seen: seen.task.decision_threshold)
    adjusted: str | None = of(lambda result, _: None if result.value is None else result.text or repr(result.value))
    interval: Interval | None


class CountsData(View):
    """Decisions of a model on its rows. names: of the actions 0 and 1; rows: or their summed weight. recalibrated and
    with_features are null where that gain is undefined.
    """

    names: Annotated[list[str], Limit(minItems=2, maxItems=2)] | None = of(lambda _, seen: seen.terms.names)
    rows: Size = of("total")
    as_is: DecidedData = of(lambda counted, _: _Uncounted(counted.as_is))
    recalibrated: DecidedData | None
    with_features: DecidedData | None
    threshold: AdjustedData = of(lambda _, seen: seen.report.results["threshold_adjusted"])


class AmountData(View):
    """An amount with its interval; null where the metric is undefined."""

    value: float | None = of(lambda result, seen: None if result.value is None else seen.terms.number * result.value)
    interval: Interval | None = of(
        lambda result, seen: result.interval and [seen.terms.number * end for end in result.interval]
    )


class AmountsData(View):
    """Utilities times the number of decisions, in the user's unit; per: the time in which these decisions are made."""

    unit: str | None = of(lambda _, seen: seen.terms.unit)
    per: str | None = of(lambda _, seen: seen.terms.per)
    decisions: Above = of(lambda _, seen: seen.terms.number)
    expected_utility: AmountData = of(lambda results, _: results["expected_utility"])
    gain_recalibration: AmountData = of(lambda results, _: results[GAINS["recalibrate"]])
    gain_beyond: AmountData = of(lambda results, _: results["gain_beyond"])
    gain_post_training: AmountData = of(lambda results, _: results[GAINS["post-train"]])


class _Uncounted(NamedTuple):
    """The decisions of the score as it is, which nothing changed."""

    decided: Decided
    change: None = None


class _Seen(NamedTuple):
    """A report with its advice, and what both are seen beside."""

    report: Report
    advice: Advice
    whole: Recommendation
    terms: StatedTerms

    @property
    def task(self) -> BinaryTask | None:
        return self.whole.evaluation.plan.binary

    @property
    def counted(self) -> DecisionCounts | None:
        return None if self.task is None else self.report.counts


class AdvisedData(MeasuredData):
    """A report with its advice."""

    recommendation: AdviceData = of(lambda _, seen: seen.advice)
    counts: CountsData | None = of(lambda _, seen: seen.counted)
    amounts: AmountsData | None = of(
        lambda report, seen: AmountsData(report.results, seen) if seen.terms.with_amounts else None
    )
    moving: Absent[Moving | None]
    at_capacity: Absent[list[Ranked] | None] = of(lambda report, seen: seen.whole.ranked_of(report) or None)


class Recommended:
    """A recommendation in the user's terms, for formats to write."""

    def __init__(self, recommendation: Recommendation, terms: StatedTerms | None = None) -> None:
        self.recommendation = recommendation
        self.terms = terms or StatedTerms()
        self.evaluation = recommendation.evaluation
        self.title = title_of(self.evaluation)

    def blocks(self) -> Iterator[b.Block]:
        """Data; of several models or groups a table; of each the ladder, the walk, the action, and what was tried."""
        evaluation = shortened(self.evaluation)
        yield b.SourceLines(tuple(source_lines(evaluation)))
        advised = advised_of(self.recommendation, evaluation.reports)
        if len(advised) > 1:
            yield advice_table(advised, self.terms)
        for report, advice in advised:
            yield b.Heading(name_of(report), gist=advice.action)
            yield b.Paragraph(" ".join(_now_sentences(advice, self.terms)), strong="Now:", close=True)
            yield from ranked_blocks(self.recommendation, report, self.terms)
            first = constant_line(report, advice, self.terms)
            if first is not None:
                yield b.Paragraph(first)
            yield ladder(report.results, self.terms)
            yield from filter(None, (moving_line(report, self.evaluation.population, self.terms),))
            yield from filter(None, (amount_line(report, self.evaluation.by_row, self.terms),))
            yield from filter(None, (counts_table(report, self.terms),))
            yield walk_of(advice, self.terms)
            yield conclusion_of(report, advice, self.evaluation.plan.binary, self.terms)
            yield from round_blocks(self.recommendation.rounds_of(report))
        yield b.Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """One report, or several."""
        seen = [_Seen(*advised, self.recommendation, self.terms) for advised in self.recommendation.advised]
        entries = [data_of(AdvisedData(each.report, each)) for each in seen]
        return one_or_several(data_of(Provenance(self.evaluation)), entries)

    def rows(self) -> Iterator[list[Any]]:
        """One row per model and group; where methods were tried, one per method."""
        if self.recommendation.rounds is not None:
            yield from round_rows(self.recommendation.rounds)
            return
        yield ["model", "group", "action", "method", "gain", "low", "high"]
        for report, advice in self.recommendation.advised:
            ends = advice.interval or (None, None)
            yield [report.model, report.group, advice.action, advice.method, advice.gain, *ends]


def advised_of(recommendation: Recommendation, reports: Sequence[Report]) -> list[tuple[Report, Advice]]:
    """These reports, each with its advice."""
    advice_on = {(report.model, report.group): advice for report, advice in recommendation.advised}
    return [(report, advice_on[report.model, report.group]) for report in reports]


def advice_table(advised: Sequence[tuple[Report, Advice]], terms: StatedTerms) -> b.TextTable:
    """What each model and group is advised."""
    grouped = any(report.group is not None for report, _ in advised)
    return table(
        advised,
        [
            (left("model", wraps=True), lambda each: each[0].model),
            *([(left("group", wraps=True), lambda each: each[0].group or "")] if grouped else []),
            (left("action", wraps=True), lambda each: each[1].action),
            (left("method", wraps=True), lambda each: each[1].method or ""),
            (
                b.Column(f"gain {terms.heading}", wraps=True),
                lambda each: "" if each[1].gain is None else plain(terms.number * each[1].gain),
            ),
        ],
    )


def walk_of(advice: Advice, terms: StatedTerms) -> b.AnsweredQuestions:
    """The walk through the flowchart."""
    return b.AnsweredQuestions(
        tuple(
            b.AnsweredQuestion(
                step.question, step.answer, terms.worded(step.reason), tuple(_evidence(step.evidence, terms))
            )
            for step in advice.steps
        )
    )


def _evidence(items: Sequence[Item], terms: StatedTerms) -> Iterator[str]:
    """What a step rests on, a line each; utilities are amounts of one size, where the user said what amounts mean."""
    amounts = [item.value for item in items if item.value is not None and _is_amount(item, terms)]
    for item in items:
        if item.value is None:
            value = "undefined"
        elif _is_amount(item, terms):
            value = terms.amount(item.value, item.interval, amounts)
        else:
            value = f"{short(item.value, 4)} {span(item.interval, 4)}".rstrip()
        yield f"{named(item.metric).title.lower()}: {value}"


def _is_amount(item: Item, terms: StatedTerms) -> bool:
    return terms.with_amounts and named(item.metric).unit == "utility"


def _now_sentences(advice: Advice, terms: StatedTerms) -> Iterator[str]:
    """What to do today, what it wins and how sure that is, before anything else."""
    now, constant = advice.act_now, advice.constant
    if now.action == "done":
        free = constant is not None and constant.gain > 0
        yield terms.worded(f"always decide {constant.decision}." if free and constant else "use the model as it is.")
        if now.chance is not None:
            beyond = " beyond that" if free else ""
            yield f"The chance that no method wins more than the tolerance{beyond} is {_chance(now.chance)}."
    else:
        what = "recalibrate" if now.action == "recalibrate" else "post-train on the features"
        after = " after its cost" if now.costly else ""
        yield f"{what} with {now.method}, which is expected to win {terms.phrase(now.gain).strip()}{after}."
        if now.chance is not None:
            yield f"The chance that it wins anything{after} is {_chance(now.chance)}."
    if advice.certainty != "clear":
        yield (
            "That is likely, but not clear."
            if advice.certainty == "likely"
            else "That is open: see what would settle it."
        )


def _chance(chance: float) -> str:
    if not 0.005 <= chance < 0.995:
        return "under 1 %" if chance < 0.5 else "over 99 %"
    return f"{100 * chance:.0f} %"


def constant_line(report: Report, advice: Advice, terms: StatedTerms) -> str | None:
    """What is told before anything else: acting on the score is worth no more than a constant decision."""
    constant, now = advice.constant, report.results["expected_utility"].value
    if constant is None or now is None:
        return None
    factor, unit = terms.scale(now, now + constant.gain)
    per = " ".join(filter(None, (unit, terms.span)))
    if not constant.gain > 0:
        worth = f"both are worth {short(factor * now, 3)} {per}"
        return terms.worded(f"Acting on this score is worth no more than always deciding {constant.decision}: {worth}.")
    worth = f"{' against '.join(apart(factor * (now + constant.gain), factor * now, 3))} {per}"
    doubt = "" if constant.clear else ", though chance could explain the difference"
    return terms.worded(f"Always deciding {constant.decision} is worth more than acting on this score: {worth}{doubt}.")


def conclusion_of(report: Report, advice: Advice, task: BinaryTask | None, terms: StatedTerms) -> b.Conclusion:
    """The action, what to expect of it, and what to do next."""
    return b.Conclusion(
        terms.worded(advice.headline), tuple(map(terms.worded, _sentences(report, advice, task, terms)))
    )


def _sentences(report: Report, advice: Advice, task: BinaryTask | None, terms: StatedTerms) -> Iterator[str]:
    if task is not None:
        yield from counted_sentences(report, advice, task, terms)
    if advice.gain is not None:
        yield _gain_sentence(advice.gain, advice, terms)
    yield from advice.next_steps
    yield from filter(None, (_ece_sentence(report, advice, terms),))


def _gain_sentence(gain: float, advice: Advice, terms: StatedTerms) -> str:
    """The expected gain of the method, per decision and as an amount."""
    numbers = (gain, *(advice.interval or ()))
    amounts, words = terms.amounts(*numbers)
    each = terms.worded(per_decision(gain, advice.interval))
    return f"Expected gain of {advice.method}: {each}, {with_ends(amounts, f'{words} {terms.span}'.strip())}."


def _ece_sentence(report: Report, advice: Advice, terms: StatedTerms) -> str | None:
    """What ECE says, which is the same for any decision, beside what recalibration wins for this one."""
    if "ece" not in report.results:
        return None
    ece, null = report.results["ece"].value, report.results["ece_null"].value
    gain = report.results["gain_recalibration"]
    if ece is None or null is None or gain.value is None:
        return None
    sentence = (
        f"ECE is {short(ece, 4)} for any decision (a calibrated model would show {short(null, 4)}); for this one, "
        f"recalibration {_verb(gain)} {terms.worded(per_decision(gain.value, gain.interval))}."
    )
    if not ece_disagrees(report, advice):
        return sentence
    if ece_advice(report) == "leave":
        return f"{sentence} ECE alone would leave the model as it is."
    return f"{sentence} ECE alone would advise recalibration: {_blind_spot(advice)}."


def _blind_spot(advice: Advice) -> str:
    """What ECE does not see that leads elsewhere."""
    if advice.action == "post-train":
        return "it does not see how rows with equal scores differ"
    if advice.useless:
        return "it does not see that a constant decision wins as much"
    if advice.action == "do-not-post-train":
        return "it does not know what recalibration costs"
    return "it does not ask whether the error crosses t*"


def _verb(gain: Result) -> str:
    """What recalibration does by its gain and its interval."""
    if gain.interval is not None and gain.interval[0] > 0:
        return "wins"
    if gain.interval is not None and gain.interval[1] <= 0:
        return "loses: its gain is"
    return "may win or lose: its gain is"


class Rung(NamedTuple):
    """A value of the ladder: a metric, and the gain that is added to it."""

    name: str
    base: str
    gain: str = ""


CHAIN = (
    Rung("always decide 0", "eu_never"),
    Rung("always decide 1", "eu_always"),
    Rung("act on large amounts alone", "eu_by_amount"),
    Rung("act on the score as it is", "expected_utility"),
    Rung("act on the recalibrated score", "expected_utility", "gain_recalibration"),
    Rung("act on score and features", "expected_utility", "gain_post_training"),
)
"""From the constant decisions to post-training; the last rungs add gains on held-out rows to what the score yields."""


MORE_ACTIONS = Rung("take the best constant action", "expected_utility", "external_regret")
"""In place of the two constant decisions, where there are more than two actions."""


def ladder(results: Mapping[str, Result], terms: StatedTerms, title: str = "") -> b.Bars:
    """The rungs that are defined, in the user's terms, each bar from the lowest rung to its own."""
    two = results["eu_never"].value is not None if "eu_never" in results else False
    chain = CHAIN if two else (MORE_ACTIONS, *CHAIN)
    values = {rung.name: value for rung in chain if (value := _value(rung, results)) is not None}
    lowest, highest = min(values.values()), max(values.values())
    height = highest - lowest
    factor, unit = terms.scale(*values.values())
    amounts = [value * factor for value in values.values()]
    texts = alike(amounts) if terms.with_amounts else [short(amount, 3) for amount in amounts]
    bars = tuple(
        b.Bar(terms.worded(name), text, (value - lowest) / height if height > 0 else 0.0)
        for (name, value), text in zip(values.items(), texts, strict=True)
    )
    measured_in = terms.measured_in(unit)
    return b.Bars(title or f"Expected utility {measured_in}", "decisions", f"expected utility {measured_in}", bars)


def _value(rung: Rung, results: Mapping[str, Result]) -> float | None:
    if rung.base not in results or (rung.gain and rung.gain not in results):
        return None
    base = results[rung.base].value
    gain = 0.0 if not rung.gain else results[rung.gain].value
    return None if base is None or gain is None else base + gain


def moving_line(report: Report, population: Population | None, terms: StatedTerms) -> b.Paragraph | None:
    """The sentence on it."""
    moving = report.moving
    if moving is None or population is None:
        return None
    (kept, moved, gain, *ends), unit = terms.amounts(moving.kept, moving.moved, moving.gain, *(moving.interval or ()))
    words = " ".join(filter(None, (unit, terms.span)))
    interval = f" [{', '.join(ends)}]" if ends else ""
    used = "the scores as they are" if population.kept else "the moved scores"
    return b.Paragraph(
        f"Where {percent(population.there[1])} are positive, scores made for {percent(population.here[1])} are worth "
        f"{kept} {words}; moved to it they are worth {moved}, which is a gain of {gain}{interval}. To move them is to "
        f"act on them from about {moving.threshold:.4g} on. All else on this page is of {used}."
    )


def counts_table(report: Report, terms: StatedTerms) -> b.TextTable | None:
    """The decisions of each rule, of 1,000 rows; None where they were not counted."""
    counted = report.counts
    if counted is None:
        return None
    heads = ["acts on", "true positives", "false positives", "misses", "newly acted on", "no longer acted on"]
    if terms.names:
        off, on = terms.names
        heads = [on, f"{on} at label 1", f"{on} at label 0", f"{off} at label 1", f"{off} → {on}", f"{on} → {off}"]
    steps: tuple[Any, ...] = (_Uncounted(counted.as_is), *filter(None, (counted.recalibrated, counted.with_features)))

    def rows(of_step: Callable[[Any], float | None]) -> Callable[[tuple[str, Any]], str]:
        def shown(item: tuple[str, Any]) -> str:
            count = of_step(item[1])
            return "" if count is None else f"{OF_ROWS * count / counted.total:,.1f}"

        return shown

    each = (
        rows(lambda step: step.decided.acted),
        rows(lambda step: step.decided.true_positives),
        rows(lambda step: step.decided.false_positives),
        rows(lambda step: step.decided.false_negatives),
        rows(lambda step: step.change and step.change.started),
        rows(lambda step: step.change and step.change.stopped),
    )
    return table(
        zip(RULES, steps, strict=False),
        [
            (left("score"), lambda item: item[0]),
            *((b.Column(head, breaks=(10,)), say) for head, say in zip(heads, each, strict=True)),
            (b.Column("PPV", breaks=(10,)), lambda item: number(item[1].decided.ppv, decimals=3)),
            (b.Column("sensitivity", breaks=(10,)), lambda item: number(item[1].decided.sensitivity, decimals=3)),
        ],
        title=f"Decisions, of {OF_ROWS:,} rows",
        keys=1,
    )


def counted_sentences(report: Report, advice: Advice, task: BinaryTask, terms: StatedTerms) -> Iterator[str]:
    """How many rows are acted on, what the method of the advice changes, and the threshold to use."""
    counted = report.counts
    if counted is None:
        return
    share = OF_ROWS / counted.total
    changes = _changes(counted, advice)
    misses = [-share * sum(change.true_positives for change in changes)] if changes else []
    alarms = [share * sum(change.false_positives for change in changes)] if changes else []
    acted, *others = counts([share * counted.as_is.acted, *map(abs, (*alarms, *misses))])
    act = "Acts on" if terms.names is None else f"Decides '{terms.names[1]}' for"
    text = f"{act} {acted} of {OF_ROWS:,}."
    if changes:
        off, on = terms.names or ("", "")
        fewer = _more(others[0], alarms[0], f"'{on}' at label 0" if terms.names else "false positives")
        missed = _more(others[1], misses[0], f"'{off}' at label 1" if terms.names else "misses")
        text += f" With {advice.method}: {fewer}, {missed}"
        if terms.with_amounts and advice.gain is not None:
            text += f"; saves {terms.amount(advice.gain, advice.interval)}"
        text += "."
    yield text
    yield _threshold_sentence(report.results["threshold_adjusted"], task)


def _changes(counted: DecisionCounts, advice: Advice) -> list[DecisionChange]:
    """The steps from the score as it is to the method that the advice names."""
    if advice.method is None:
        return []
    steps: tuple[CountedStep | None, ...] = (counted.recalibrated,)
    if advice.method != FITS["recalibrate"]:
        steps = (counted.recalibrated, counted.with_features)
    return [] if None in steps else [step.change for step in steps if step is not None]


def _more(text: str, change: float, what: str) -> str:
    """'90 fewer false positives'."""
    if not text.strip("0.,"):
        return f"as many {what}"
    return f"{text} {'more' if change > 0 else 'fewer'} {what}"


def _threshold_sentence(adjusted: Result, task: BinaryTask) -> str:
    start = f"Threshold on the score: {plain(task.decision_threshold)} in use"
    if adjusted.value is None:
        return f"{start}; {adjusted.reason}."
    ends = "" if adjusted.interval is None else f" [{', '.join(alike(adjusted.interval))}]"
    return (
        f"{start}; from {adjusted.text or plain(adjusted.value)}{ends} on, it decides as the recalibrated score does."
    )


def ranked_blocks(recommendation: Recommendation, report: Report, terms: StatedTerms) -> Iterator[b.Block]:
    """What a limited capacity changes for the model of a report, and what each score is worth under it."""
    ranked, evaluation = recommendation.ranked_of(report), recommendation.evaluation
    if not ranked or evaluation.capacity is None:
        return
    sentences = (*_of_the_limit(ranked, report, terms), *_of_methods(ranked, evaluation.plan.binary, terms))
    yield b.Paragraph(" ".join(sentences), strong=f"At capacity {evaluation.capacity.text}.")
    by_value = ("capture of value", lambda each: number(each.value_capture, decimals=3))
    yield table(
        ranked,
        [
            (left("score"), _ranked_name),
            (f"utility {terms.heading}", lambda each: _times(each.utility, terms)),
            (
                "gain over the score as it is",
                lambda each: _times(each.gain, terms, each.interval) if each.method else "",
            ),
            ("capture", lambda each: number(each.capture, decimals=3)),
            *([] if ranked[0].value_capture is None else [by_value]),
            ("precision", lambda each: number(each.precision, decimals=3)),
        ],
    )
    yield from reasons((each.method or "", each.reason) for each in ranked)


def _ranked_name(each: Ranked) -> str:
    if each.method in (None, PERFECT):
        return each.method or "as it is"
    return f"{each.method}, held-out rows"


def _times(value: float | None, terms: StatedTerms, interval: Interval | None = None) -> b.Cell:
    """A utility per decision as an amount."""
    ends = interval and (terms.number * interval[0], terms.number * interval[1])
    return number(None if value is None else terms.number * value, ends)


def _of_the_limit(ranked: Sequence[Ranked], report: Report, terms: StatedTerms) -> Iterator[str]:
    """What the limit costs, and what is left to win under it."""
    now, unlimited = ranked[0].utility or 0.0, report.results["expected_utility"].value or 0.0
    perfect = next((each for each in ranked if each.method == PERFECT), None)
    if report.places is not None and not report.places.full:
        yield "Every row that would be acted on has a place, so that the limit changes nothing."
    else:
        verb = "costs" if unlimited >= now else "wins"
        (apart, with_places, without), unit = terms.amounts(abs(unlimited - now), now, unlimited)
        yield (
            f"The limit {verb} {apart} {unit or terms.noun} {terms.span}: acting on the score is worth {with_places} "
            f"with these places, and {without} without a limit."
        )
    if perfect is not None and perfect.gain is not None:
        won = terms.phrase(perfect.gain, perfect.interval)
        yield f"A perfect ranking, by the labels, would win {won} more with these places; no method can win more."


def _of_methods(ranked: Sequence[Ranked], task: BinaryTask | None, terms: StatedTerms) -> Iterator[str]:
    """What methods win with these places; task: None where every row has utilities of its own."""
    recalibrated = next((each for each in ranked if each.kind == "recalibration"), None)
    if recalibrated is not None and recalibrated.gain is not None:
        if task is None:
            best = _best(ranked, "recalibration")
            won = _won(best, terms)
            yield f"Recalibration by {best.method} changes what acting is expected to win, and so the order: {won}."
        else:
            nothing = recalibrated.gain == 0
            won = "on the rows with a place, that changes nothing" if nothing else _won(recalibrated, terms)
            reached = plain(task.threshold)
            yield f"Recalibration keeps the order of the scores, and changes only which of them reach {reached}: {won}."
    if any(each.kind == "post-training" and each.gain is not None for each in ranked):
        best = _best(ranked, "post-training")
        yield f"Of the post-trained scores, {best.method} is worth most: {_won(best, terms)}."
    elif task is None:
        yield "What features would win with these places is unknown."
    else:
        yield "Only another order, such as one that features give, finds other rows."
    yield "Questions, counts and gains below are for decisions without this limit."


def _best(ranked: Sequence[Ranked], kind: Kind) -> Ranked:
    """The one of this kind that wins most."""
    of_kind = (each for each in ranked if each.kind == kind and each.gain is not None)
    return max(of_kind, key=lambda each: each.gain or 0.0)


def _won(each: Ranked, terms: StatedTerms) -> str:
    """How much is won, and whether chance could explain it."""
    gain, ends = each.gain or 0.0, each.interval
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return f"its gain is {terms.phrase(gain, ends)}, which chance could explain"
    if gain >= 0:
        return f"it wins {terms.phrase(gain, ends)}"
    return f"it loses {terms.phrase(-gain, ends and (-ends[1], -ends[0]))}"


def round_blocks(rounds: Sequence[Round]) -> Iterator[b.Block]:
    """Each round: what was tried on which score, what each method won, and what follows."""
    for at, each in enumerate(rounds, 1):
        yield b.Paragraph(_intro(at, each))
        yield trial_table(each)
        why = ((trial.chosen.key, trial.achieved.reason) for trial in each.trials)
        yield from reasons(why, together=True)
        yield b.Conclusion("", tuple(_conclusion(rounds, at)))


def _intro(number: int, each: Round) -> str:
    which = "Tried on" if number == 1 else "Started over with"
    return (
        f"{which} {each.score}, cross-fitted in {FOLDS} folds: each gain is on held-out rows, in utility per 1,000 "
        "decisions over acting on this score as it is. Predicted: the expected gain of its kind, before any fit."
    )


def trial_table(each: Round) -> b.TextTable:
    """The methods, the best first; gains are per 1,000 decisions."""
    costly = any(trial.cost for trial in each.trials)
    return table(
        each.trials,
        [
            (left("method"), lambda trial: trial.chosen.key),
            (left("kind", drops=2), lambda trial: trial.chosen.declared.kind),
            ("predicted", lambda trial: _gain(trial.predicted)),
            ("achieved", lambda trial: _gain(trial.achieved)),
            (
                b.Column("after cost", drops=0 if costly else 2),
                lambda trial: per_thousand(trial.net) if costly and trial.net is not None else "",
            ),
            (b.Column("processor", drops=1), lambda trial: f"{trial.seconds:.2f} s"),
        ],
        chosen=lambda trial: trial is each.best,
        picks=True,
    )


def _gain(result: Result) -> b.Cell:
    return words(DASH) if result.value is None else per_thousand(result.value, result.interval)


def per_thousand(value: float, ends: Interval | None = None) -> b.Cell:
    """A utility per 1,000 decisions with its interval, all to as many decimals as the largest needs."""
    scaled = [1000 * part for part in (value, *(ends or ()))]
    first, *rest = (f"{part:,.{1 if max(map(abs, scaled)) >= 1 else 3}f}" for part in scaled)
    return b.Cell((first, *((f"[{rest[0]},", f"{rest[1]}]") if rest else ())))


def _conclusion(rounds: Sequence[Round], number: int) -> Iterator[str]:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    each = rounds[number - 1]
    if each.best is None or each.advice is None or each.report is None:
        if all(trial.achieved.value is None for trial in each.trials):
            yield "No method could be fitted to these rows, so their gains are unknown."
            return
        yield "No method wins anything on held-out rows: " + (
            f"stay with {each.score}." if number > 1 else "keep the score as it is."
        )
        return
    n_tried = sum(trial.achieved.value is not None for trial in each.trials)
    if number == 1 and n_tried > 1:
        yield (
            f"The best of {n_tried} looks a little better than it is, because the same rows chose it: evaluate it on "
            f"new rows before you use it ({Verb('fit').words} {shell_word(each.best.chosen.key)} "
            f"{Hint('test', 'FILE').words})."
        )
    cheaper = _as_good(each)
    if cheaper is not None and cheaper.behind is not None:
        behind = per_thousand(cheaper.behind.value or 0.0, cheaper.behind.interval).text
        after = " after costs" if any(trial.cost for trial in each.trials) else ""
        yield (
            f"{cheaper.chosen.key} needs only the score and may be as good: on the same rows it wins {behind} less "
            f"per 1,000 decisions{after}."
        )
    headline = each.advice.headline
    yield f"Starting over with {each.report.model}: {headline[:1].lower()}{headline[1:]} {_why(each.advice)}"
    if number == len(rounds) and each.advice.action in ("recalibrate", "post-train"):
        yield "Stopped: the remaining gains are within noise, or need other features."


def _why(advice: Advice) -> str:
    """The reason that the action goes by: what there is to win, or where that does not pay, the cost."""
    priced = [step.reason for step in advice.steps if step.question.endswith("worth its cost?")]
    return priced[-1] if advice.action == "do-not-post-train" and priced else advice.steps[0].reason


def _as_good(each: Round) -> Trial | None:
    """The best recalibration where a costlier kind was best, and on the same rows the difference may be nothing."""
    best = each.best
    if best is None or best.chosen.declared.kind == "recalibration":
        return None
    other = next((t for t in each.trials if t.chosen.declared.kind == "recalibration" and (t.net or 0) > 0), None)
    if other is None or other.behind is None or other.behind.interval is None:
        return None
    return other if other.behind.interval[0] <= 0 else None


def round_rows(rounds: Mapping[str, Sequence[Round]]) -> Iterator[list[Any]]:
    """A heading, and a row for each method tried: by model, and by the score it was tried on."""
    yield [
        *("model", "score", "method", "kind", "predicted", "predicted_low", "predicted_high"),
        *("achieved", "low", "high", "cost", "net", "seconds", "reason"),
    ]
    for model, of_model in rounds.items():
        for each in of_model:
            for trial in each.trials:
                predicted, achieved = trial.predicted, trial.achieved
                first = [model, each.score, trial.chosen.key, trial.chosen.declared.kind]
                gains = [predicted.value, *(predicted.interval or (None, None))]
                gains += [achieved.value, *(achieved.interval or (None, None))]
                yield [*first, *gains, trial.cost, trial.net, trial.seconds, achieved.reason]
