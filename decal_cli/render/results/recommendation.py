"""What `decal recommend` returns: the advice, what it rests on, and what each way of acting is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from decal_cli.analysis.described import ByRow, Decided, DecisionCounts, Moving
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.flowchart import GAINS, Action, ActNow, Advice, Answer, Certainty, Constant, Interim, Item
from decal_cli.analysis.recommend import Recommendation, Round, amounts_in, amounts_of, ece_advice, ece_disagrees
from decal_cli.analysis.tryout import PERFECT, Kind, Picked, Ranked, RanksNow, Trial
from decal_cli.data.words import shell_word
from decal_cli.declarations.document import Above, Absent, Limit, Share, Size
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Result, named
from decal_cli.numbers import (
    DASH,
    Interval,
    Say,
    chance_words,
    decimals_for,
    percent,
    plain,
    times,
    unsigned_zero,
    within,
)
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, number, reasons, table, words
from decal_cli.render.results.evaluation import MeasuredData, name_of
from decal_cli.render.results.shortened import shortened
from decal_cli.render.results.source import (
    Provenance,
    amount_line,
    one_or_several,
    row_task_line,
    source_lines,
    task_line,
    title_of,
    without_labels_line,
)
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.population import Population
from decal_cli.tables.resample import FOLDS
from decal_cli.task import BinaryTask

OF_ROWS = 1000
"""Rows that printed counts are of."""


class StepData(View):
    """A question of the flowchart with its answer. small: "yes", but the gain is within the tolerance."""

    number: Annotated[int, Limit(minimum=1, maximum=4)]
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


class PickedData(View):
    """The method that cross-validation picks among the usual ones, null where it keeps the score; what choosing so wins
    after costs, on rows that took no part in the choice.
    """

    method: str | None
    among: list[str]
    gain: GainData


class RoundData(View):
    """The methods tried on one score, the best first; the action that follows with the best one's score."""

    score: str
    attempts: list[TrialData] = of("trials")
    cross_validation: PickedData | None = of("picked")
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
    stakes: float = of("evidence.stakes")
    tolerance: float = of("evidence.tolerated")
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
    holds: Absent[Interval | None] = of(lambda report, seen: seen.whole.holds_of(report))
    counts: CountsData | None = of(lambda _, seen: seen.counted)
    amounts: AmountsData | None = of(
        lambda report, seen: AmountsData(report.results, seen) if seen.terms.with_amounts else None
    )
    moving: Absent[Moving | None]
    at_capacity: Absent[list[Ranked] | None] = of(lambda report, seen: seen.whole.ranked_of(report) or None)
    ranks_now: Absent[RanksNow | None] = of(lambda report, seen: seen.whole.ranks_now(report, seen.advice))


class Recommended:
    """A recommendation in the user's terms, for formats to write."""

    def __init__(self, recommendation: Recommendation, terms: StatedTerms | None = None) -> None:
        self.recommendation = recommendation
        self.terms = terms or StatedTerms()
        self.evaluation = recommendation.evaluation
        self.title = title_of(self.evaluation)

    def blocks(self) -> Iterator[b.Block]:
        """Of several models a table; of each what to do, what each way of acting is worth, and why; then the data."""
        evaluation = shortened(self.evaluation)
        advised = advised_of(self.recommendation, evaluation.reports)
        if len(advised) > 1:
            yield advice_table(advised, self.terms)
        for report, advice in advised:
            yield b.Heading(name_of(report), gist=todo(advice))
            first, *others = lead_of(self.recommendation, report, advice, self.terms)
            yield b.Conclusion(first, tuple(others), close=True)
            yield from ranked_blocks(self.recommendation, report, self.terms)
            yield from worth_blocks(report, self.evaluation, self.terms)
            yield walk_of(advice, self.terms, report)
            yield b.Conclusion("", tuple(notes_of(report, advice, self.recommendation)))
            yield from round_blocks(self.recommendation.rounds_of(report))
        yield b.SourceLines(tuple(source_lines(evaluation, self.terms.names)))
        yield b.Signature(self.evaluation.signature, close=True)

    def data(self) -> dict[str, Any]:
        """One report, or several."""
        return one_or_several(data_of(Provenance(self.evaluation)), self.entries())

    def entries(self) -> list[dict[str, Any]]:
        """Each report with its advice, without what all of them share."""
        seen = [_Seen(*advised, self.recommendation, self.terms) for advised in self.recommendation.advised]
        return [data_of(AdvisedData(each.report, each)) for each in seen]

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
    """What to do now with each model and group, what that wins, and how sure it is."""
    grouped = any(report.group is not None for report, _ in advised)
    factor, unit = terms.scale(*amounts_in(report.results for report, _ in advised))

    def wins(each: tuple[Report, Advice]) -> str:
        report, now = each[0], each[1].act_now
        if now.action == "done":
            return ""
        ends, cost = report.results[GAINS[now.action]].interval, (each[1].gain or now.gain) - now.gain
        return within(factor * now.gain, ends and times((ends[0] - cost, ends[1] - cost), factor))

    return table(
        advised,
        [
            (left("model", wraps=True), lambda each: each[0].model),
            *([(left("group", wraps=True), lambda each: each[0].group or "")] if grouped else []),
            (left("do now", wraps=True), lambda each: todo(each[1])),
            (b.Column(f"wins {terms.measured_in(unit)}", breaks=(16,)), wins),
            (left("how sure"), lambda each: each[1].certainty),
        ],
    )


def todo(advice: Advice) -> str:
    now, constant = advice.act_now, advice.constant
    if now.method is not None:
        return f"{now.action} with {now.method}"
    return constant.words if constant is not None and constant.gain > 0 else "use as it is"


def walk_of(advice: Advice, terms: StatedTerms, report: Report) -> b.AnsweredQuestions:
    """The walk through the flowchart; a number that an answer rests on stands where it is first used."""
    say, seen, asked = terms.saying(amounts_of(report)), set[str](), []
    for step in advice.steps:
        shown = [item for item in step.evidence if item.metric not in seen]
        seen.update(item.metric for item in shown)
        evidence = tuple(f"{named(item.metric).title.lower()}: {_value(item, say)}" for item in shown)
        asked.append(b.AnsweredQuestion(step.question, step.answer, step.reason, evidence, step.number))
    return b.AnsweredQuestions(tuple(asked))


def _value(item: Item, say: Say) -> str:
    if item.value is None:
        return "undefined"
    if named(item.metric).unit == "utility":
        return say(item.value, item.interval)
    return f"{item.value:.2g}" if item.interval is None else within(item.value, item.interval)


def notes_of(report: Report, advice: Advice, whole: Recommendation) -> Iterator[str]:
    """What to do next, what ECE would have said, and for which decisions the same advice holds."""
    yield from advice.next_steps
    yield from filter(None, (_ece_sentence(report, advice),))
    if (ends := whole.holds_of(report)) is not None:
        low, high = map(plain, ends)
        same = f"thresholds from {low} to {high}" if low != high else f"the threshold {low} alone"
        yield f"This advice holds for {same}."


def _ece_sentence(report: Report, advice: Advice) -> str | None:
    """What ECE says, which is the same for any decision, beside what recalibration wins for this one."""
    gain = report.results[GAINS["recalibrate"]]
    ece, null = (report.results[key].value if key in report.results else None for key in ("ece", "ece_null"))
    if ece is None or null is None or gain.value is None:
        return None
    sentence = (
        f"ECE is {within(ece)} whatever the decision ({within(null)} for a calibrated model); for this one, "
        f"recalibration {_verb(gain)}."
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
    if advice.evidence.useless:
        return "it does not see that a constant decision wins as much"
    if advice.action == "do-not-post-train":
        return "it does not know what recalibration costs"
    return "it does not ask whether the error crosses the threshold"


def _verb(gain: Result) -> str:
    """What recalibration does by its interval."""
    if gain.interval is not None and gain.interval[0] > 0:
        return "wins"
    return "loses" if gain.interval is not None and gain.interval[1] <= 0 else "may win or lose"


class Rung(NamedTuple):
    """A way of acting: the metric that says what it is worth, and the gain that is added to it."""

    name: str
    base: str
    gain: str = ""


CHAIN = (
    Rung("never act", "eu_never"),
    Rung("always act", "eu_always"),
    Rung("large amounts alone", "eu_by_amount"),
    Rung("score as it is", "expected_utility"),
    Rung("recalibrated", "expected_utility", "gain_recalibration"),
    Rung("with features", "expected_utility", "gain_post_training"),
)
"""From the constant decisions to post-training; the last rungs add gains on held-out rows to what the score yields."""
BEST_CONSTANT = Rung("best constant action", "expected_utility", "external_regret")
"""In place of the two constant decisions, where there are more than two actions."""


def rungs_of(results: Mapping[str, Result]) -> dict[Rung, float]:
    """What each way of acting is worth, of those that are defined."""
    two = "eu_never" in results and results["eu_never"].value is not None
    worth = {rung: _worth(rung, results) for rung in (CHAIN if two else (BEST_CONSTANT, *CHAIN))}
    return {rung: value for rung, value in worth.items() if value is not None}


def _worth(rung: Rung, results: Mapping[str, Result]) -> float | None:
    parts = [results[key].value if key in results else None for key in (rung.base, rung.gain) if key]
    return None if None in parts else sum(part for part in parts if part is not None)


def ladder(results: Mapping[str, Result], terms: StatedTerms, title: str = "") -> b.Bars:
    """The same as bars, each from the lowest to its own, in the user's terms."""
    values = rungs_of(results)
    lowest, highest = min(values.values()), max(values.values())
    height = highest - lowest
    factor, unit = terms.scale(*amounts_in([results]))
    texts = _alike(results, values.values(), factor)
    bars = tuple(
        b.Bar(_called(rung, terms), text, (value - lowest) / height if height > 0 else 0.0)
        for (rung, value), text in zip(values.items(), texts, strict=True)
    )
    measured_in = terms.measured_in(unit)
    return b.Bars(title or f"Expected utility {measured_in}", "way of acting", f"expected utility {measured_in}", bars)


def _alike(results: Mapping[str, Result], values: Iterable[float], factor: float) -> list[str]:
    """What ways of acting are worth, with the decimals that the gains between them deserve."""
    gains = (results[key] for key in ("gain_recalibration", "gain_beyond", "external_regret") if key in results)
    ends = [(factor * low, factor * high) for low, high in (gain.interval for gain in gains if gain.interval)]
    amounts = [factor * value for value in values]
    decimals = decimals_for(ends, amounts)
    return [unsigned_zero(f"{amount:,.{decimals}f}") for amount in amounts]


def _called(rung: Rung, terms: StatedTerms) -> str:
    constants = [each.name for each in CHAIN[:2]]
    if terms.names is None or rung.name not in constants:
        return rung.name
    return f"always '{terms.names[constants.index(rung.name)]}'"


def worth_blocks(report: Report, evaluation: Evaluation, terms: StatedTerms) -> Iterator[b.Block]:
    """What each way of acting is worth and what it does, and the costs in words."""
    values = rungs_of(report.results)
    factor, unit = terms.scale(*amounts_of(report))
    worth = dict(zip(values, _alike(report.results, values.values(), factor), strict=True))
    counted, shares = _counted(report), report.shares
    columns: list[Any] = [
        (left(""), lambda rung: _called(rung, terms)),
        (b.Column(f"worth {terms.measured_in(unit)}", breaks=(28, 16, 10)), lambda rung: worth[rung]),
    ]
    if counted:
        off, on = terms.names or ("", "")
        heads = ("acts on", "false alarms", "misses")
        heads = (on, f"{on} at label 0", f"{off} at label 1") if on else heads
        texts = dict(zip(counted, _of_thousand(list(counted.values())), strict=True))
        columns += [
            (b.Column(head, breaks=(12, 8)), lambda rung, at=at: texts[rung][at] if rung in texts else "")
            for at, head in enumerate(heads)
        ]
    else:
        over = b.Column("gain over the score as it is", breaks=(18, 12))
        columns.append((over, lambda rung: _over(rung, report, factor)))
        names = _action_names(evaluation)
        if shares and len(names) <= MAX_ACTIONS:
            for at, name in enumerate(names):
                columns.append(
                    (b.Column(f"takes {name}", breaks=(10,)), lambda rung, at=at: _share(rung, report, names, at))
                )
    yield table(values, columns, keys=1)
    yield b.Notes(tuple(_words(evaluation, terms, bool(counted))), close=True)
    yield from filter(None, (moving_line(report, evaluation.population, terms),))
    yield from filter(None, (amount_line(report, evaluation.by_row, terms),))
    yield from filter(None, (without_labels_line(report, "weight" in evaluation.columns, terms),))


MAX_ACTIONS = 6
"""Actions whose shares a table shows."""


def _counted(report: Report) -> dict[Rung, tuple[float, float, float]]:
    """Rows acted on, false alarms and misses of each way of acting, of all rows; empty where they are not counted."""
    counts = report.counts
    if counts is None:
        return {}
    never, always, _, *learned = CHAIN
    now, total = counts.as_is, counts.total
    cells = {never: (0.0, 0.0, now.positives / total), always: (1.0, 1 - now.positives / total, 0.0)}
    later = [None if step is None else step.decided for step in (counts.recalibrated, counts.with_features)]
    steps = [now, *later]
    for rung, done in zip(learned, steps, strict=True):
        if done is not None:
            cells[rung] = (done.acted / total, done.false_positives / total, done.false_negatives / total)
    return cells


def _of_thousand(rows: list[tuple[float, float, float]]) -> list[list[str]]:
    """Counts of 1,000 rows, all alike: whole where the smallest is a row at least, else with a decimal or two."""
    flat = [OF_ROWS * each for row in rows for each in row]
    least = min((each for each in flat if each > 0), default=1.0)
    decimals = 0 if least >= 0.95 else 1 if least >= 0.095 else 2
    return [[f"{OF_ROWS * each:,.{decimals}f}" for each in row] for row in rows]


def _over(rung: Rung, report: Report, factor: float) -> str:
    """What a way of acting wins over the score as it is, with its interval."""
    if rung.gain not in report.results:
        return ""
    gain = report.results[rung.gain]
    return within(factor * (gain.value or 0.0), times(gain.interval, factor))


def _share(rung: Rung, report: Report, names: Sequence[str], at: int) -> str:
    """Rows of 1,000 that get an action."""
    if rung is BEST_CONSTANT:
        return f"{OF_ROWS if names[at] == report.best_constant else 0:,}"
    shares = report.shares.get(rung.gain or rung.base)
    return "" if shares is None else f"{OF_ROWS * shares[at]:,.0f}"


def _action_names(evaluation: Evaluation) -> tuple[str, ...]:
    """The actions that decisions are counted by, in their order."""
    task, decision = evaluation.plan.task, evaluation.decision
    if decision is not None:
        return tuple(decision.actions)
    if task is not None:
        return task.taken
    return ()


def _words(evaluation: Evaluation, terms: StatedTerms, counted: bool) -> Iterator[str]:
    """The decision and its costs in words."""
    task, by_row = evaluation.plan.binary, evaluation.by_row
    if by_row is not None:
        yield _row_words(by_row)
    elif task is None and evaluation.task is not None:
        yield task_line(evaluation.task)
    if task is None:
        return
    (u00, u01), (u10, u11) = task.utility
    alarm, miss = (f"{plain(cost)}{f' {terms.unit}' if terms.unit else ''}" for cost in (u00 - u10, u11 - u01))
    right = "" if u00 == u11 == 0 else ", beside the right decision,"
    if terms.names is None:
        costs = f"A false alarm (acting at label 0) costs{right} {alarm}, a miss (not acting at label 1) {miss}"
        pays = "acting pays"
    else:
        off, on = terms.names
        costs, pays = f"'{on}' at label 0 costs{right} {alarm}, '{off}' at label 1 {miss}", f"'{on}' pays"
    at = (
        ""
        if task.decision_threshold == task.threshold
        else (f", and the score is acted on from {plain(task.decision_threshold)}")
    )
    yield f"{costs}: {pays} from a probability of {plain(task.threshold)}{at}."
    if counted and (terms.number != OF_ROWS or "weight" in evaluation.columns):
        yield f"Counts are of {OF_ROWS:,} rows{', by their weight' if 'weight' in evaluation.columns else ''}."


def _row_words(by_row: ByRow) -> str:
    """Utilities of each row in words."""
    alarm, miss = (_cost_of(by_row, *names) for names in (("cost_fp",), ("cost_fn", "amount")))
    if not by_row.to_act_or_not or by_row.thresholds is None or "utility_columns" in by_row.columns:
        return row_task_line(by_row)
    low, middle, high = (within(each) for each in by_row.thresholds)
    return (
        f"A false alarm (acting at label 0) costs {alarm}, a miss (not acting at label 1) {miss}: acting pays from a "
        f"probability of each row's own, {low} to {high}, half of them below {middle}."
    )


def _cost_of(by_row: ByRow, *roles: str) -> str:
    """A cost: the number of all rows, or the name of the column that has it."""
    columns = [by_row.columns[key][0] for role in roles for key in (role, f"{role}_column") if key in by_row.columns]
    return columns[0] if columns else plain(getattr(by_row.task, roles[0], None) or 0.0)


def moving_line(report: Report, population: Population | None, terms: StatedTerms) -> b.Paragraph | None:
    """The sentence on it."""
    moving = report.moving
    if moving is None or population is None:
        return None
    say = terms.saying(amounts_of(report))
    used = "the scores as they are" if population.kept else "the moved scores"
    return b.Paragraph(
        f"Where {percent(population.there[1])} are positive, scores made for {percent(population.here[1])} are worth "
        f"{say(moving.kept)}; moving them to it wins {say(moving.gain, moving.interval)}. To move them is to "
        f"act on them from about {moving.threshold:.4g} on. All else on this page is of {used}."
    )


def lead_of(recommendation: Recommendation, report: Report, advice: Advice, terms: StatedTerms) -> tuple[str, ...]:
    """What to do today; where so many rows can be acted on only, first what gives the places."""
    now, limit = recommendation.ranks_now(report, advice), recommendation.evaluation.capacity
    if now is None or limit is None:
        return advice.lead
    return (
        *limited_lead(now, recommendation.ranked_of(report), limit.text, terms.saying(amounts_of(report))),
        f"Without the limit of {limit.text}: {advice.lead[0]}",
        *advice.lead[1:],
    )


def limited_lead(now: RanksNow, ranked: Sequence[Ranked], limit: str, say: Say) -> Iterator[str]:
    """What gives the places today and what that wins, and how sure it is."""
    if now.method is None:
        yield f"At capacity {limit}, act on the rows that the score puts first: no method is sure enough to win more."
        return
    won = say(now.gain, ranked_by(now, ranked).interval)
    yield f"At capacity {limit}, act on the rows that {now.method} puts first: wins {won} over the order of the score."
    if now.chance is not None:
        yield f"The chance that this wins anything is {chance_words(now.chance)}."


def ranked_by(now: RanksNow, ranked: Sequence[Ranked]) -> Ranked:
    """What gives the places today, among the scores."""
    return next(each for each in ranked if each.method == now.method)


def ranked_blocks(recommendation: Recommendation, report: Report, terms: StatedTerms) -> Iterator[b.Block]:
    """What a limited capacity changes for the model of a report, and what each score is worth under it."""
    ranked, evaluation = recommendation.ranked_of(report), recommendation.evaluation
    if not ranked or evaluation.capacity is None:
        return
    factor, unit = terms.scale(*amounts_of(report))
    worth = [factor * (each.utility or 0.0) for each in ranked]
    ends = [(factor * low, factor * high) for low, high in (each.interval for each in ranked if each.interval)]
    decimals = decimals_for(ends, worth)
    say = terms.saying(amounts_of(report))
    sentences = (*_of_the_limit(ranked, report, say), *_of_methods(ranked, evaluation.plan.binary, say))
    yield b.Paragraph(" ".join(sentences), strong=f"At capacity {evaluation.capacity.text}.")
    by_value = ("capture of value", lambda each: number(each.value_capture, decimals=3))
    yield table(
        ranked,
        [
            (left("with these places"), lambda each: each.method or "score as it is"),
            (
                b.Column(f"worth {terms.measured_in(unit)}", breaks=(28, 16, 10)),
                lambda each: "" if each.utility is None else f"{factor * each.utility:,.{decimals}f}",
            ),
            (
                b.Column("gain over the score as it is", breaks=(18, 12)),
                lambda each: "" if each.gain is None else within(factor * each.gain, times(each.interval, factor)),
            ),
            ("capture", lambda each: number(each.capture, decimals=3)),
            *([] if ranked[0].value_capture is None else [by_value]),
            ("precision", lambda each: number(each.precision, decimals=3)),
        ],
    )
    yield from reasons((each.method or "", each.reason) for each in ranked)


def _of_the_limit(ranked: Sequence[Ranked], report: Report, say: Say) -> Iterator[str]:
    """What the limit costs, and what is left to win under it."""
    now, unlimited = ranked[0].utility or 0.0, report.results["expected_utility"].value or 0.0
    perfect = next((each for each in ranked if each.method == PERFECT), None)
    if report.places is not None and not report.places.full:
        yield "Every row that would be acted on has a place, so that the limit changes nothing."
    else:
        verb = "costs" if unlimited >= now else "wins"
        yield f"The limit {verb} {say(abs(unlimited - now))}."
    if perfect is not None and perfect.gain is not None:
        won = say(perfect.gain, perfect.interval)
        yield f"A perfect ranking, by the labels, would win {won} with these places; no method can win more."


def _of_methods(ranked: Sequence[Ranked], task: BinaryTask | None, say: Say) -> Iterator[str]:
    """What methods win with these places; task: None where every row has utilities of its own."""
    recalibrated = next((each for each in ranked if each.kind == "recalibration"), None)
    if recalibrated is not None and recalibrated.gain is not None:
        if task is None:
            best = _best(ranked, "recalibration")
            won = _won(best, say)
            yield f"Recalibration by {best.method} changes what acting is expected to win, and so the order: {won}."
        else:
            nothing = recalibrated.gain == 0
            won = "on the rows with a place, that changes nothing" if nothing else _won(recalibrated, say)
            reached = plain(task.threshold)
            yield f"Recalibration keeps the order of the scores, and changes only which of them reach {reached}: {won}."
    if any(each.kind == "post-training" and each.gain is not None for each in ranked):
        best = _best(ranked, "post-training")
        yield f"Of the post-trained scores, {best.method} is worth most: {_won(best, say)}."
    elif task is None:
        yield "What features would win with these places is unknown."
    else:
        yield "Only another order, such as one that features give, finds other rows."
    yield "All else on this page is of decisions without this limit."


def _best(ranked: Sequence[Ranked], kind: Kind) -> Ranked:
    """The one of this kind that wins most."""
    of_kind = (each for each in ranked if each.kind == kind and each.gain is not None)
    return max(of_kind, key=lambda each: each.gain or 0.0)


def _won(each: Ranked, say: Say) -> str:
    """How much is won, and whether chance could explain it."""
    gain, ends = each.gain or 0.0, each.interval
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return f"its gain is {say(gain, ends)}, which chance could explain"
    if gain >= 0:
        return f"it wins {say(gain, ends)}"
    return f"it loses {say(-gain, ends and (-ends[1], -ends[0]))}"


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
            (b.Column("after cost", drops=0 if costly else 2), lambda trial: _after_cost(trial) if costly else ""),
            (b.Column("processor", drops=1), lambda trial: f"{trial.seconds:.2f} s"),
        ],
        chosen=lambda trial: trial is each.best,
        picks=True,
    )


def _gain(result: Result) -> b.Cell:
    return words(DASH) if result.value is None else per_thousand(result.value, result.interval)


def _after_cost(trial: Trial) -> str:
    """What is left after the cost, with the digits of the gain."""
    return "" if trial.net is None else within(1000 * trial.net, like=times(trial.achieved.interval, 1000))


def per_thousand(value: float, ends: Interval | None = None) -> b.Cell:
    """A utility per 1,000 decisions with its interval."""
    first, *rest = within(1000 * value, times(ends, 1000)).split(" ", 1)
    return b.Cell((first, *(part for span in rest for part in span.split(" "))))


def _conclusion(rounds: Sequence[Round], number: int) -> Iterator[str]:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    each = rounds[number - 1]
    if number == 1 and each.picked is not None and len(each.picked.among) > 1:
        yield _cross_validation(each.picked)
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


def _cross_validation(picked: Picked) -> str:
    """What the usual way to choose comes to."""
    *others, last = picked.among
    wins = per_thousand(picked.gain.value or 0.0, picked.gain.interval).text
    return (
        f"Choosing by cross-validation among {', '.join(others)} and {last} would have picked "
        f"{picked.method or 'none of them'}, and wins {wins} per 1,000 decisions on rows that took no part in the "
        "choice."
    )


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
