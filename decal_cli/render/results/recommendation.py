"""What `decal recommend` returns: the advice, what it rests on, and what the methods that were tried are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from decal_cli.analysis.described import CountedStep, DecisionCounts, PriorShiftGain
from decal_cli.analysis.evidence import Action, Constant
from decal_cli.analysis.flowchart import ActNow, Certainty, Interim, Step
from decal_cli.analysis.recommend import ROUNDS, Picked, Ranked, RanksNow, Recommendation, Round, Trial, ece_advice
from decal_cli.data.words import shell_word
from decal_cli.declarations.document import Above, Absent, Share, Size, Some, Two
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Result
from decal_cli.numbers import DASH, Interval, Say, saying, times, within
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, reasons, table, words
from decal_cli.render.results.advised import advice_table, advised_in
from decal_cli.render.results.evaluation import MeasuredData, found
from decal_cli.render.results.source import Provenance, WrittenResult, ends_of, one_or_several, shortened, source_lines
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, Scale, StatedTerms
from decal_cli.tables.resample import FOLDS


class TrialData(View):
    """A method tried. behind: what it leaves behind the best one after costs, with the paired interval; null where it
    was not fitted.
    """

    method: str = of("chosen.key")
    kind: Literal["recalibration", "post-training"] = of("chosen.declared.kind")
    predicted: Result
    achieved: Result
    cost: float
    net: float | None
    behind: Result | None
    seconds: float


class RoundData(View):
    """The methods tried on one score, the best first; the action that follows with the best one's score."""

    score: str
    attempts: list[TrialData] = of("trials")
    cross_validation: Picked | None = of("picked")
    best: str | None = of("best.chosen.key")
    action: str | None = of("advice.action")


class AdviceData(View):
    """Where the walk ended. act_now: what to do today; certainty: how sure that is. method, fit: the method as `decal
    fit` names it, null where there is nothing to fit. next: what to do then, in sentences. ece_advice: what ECE alone
    would advise, null without intervals. small: the gain is clear, but within the tolerance. constant: the constant
    decision that acting on the score does not beat. interim: what can be done at once and at no cost.
    rows_needed: rows that settle an unknown in 4 of 5 cases, null where more rows alone would not. tried: with --try,
    the methods tried on this score, best first, then on the best one's score, until nothing more is won.
    """

    action: Action
    act_now: ActNow
    certainty: Certainty
    method: str | None
    gain: float | None
    interval: Interval | None
    path: Some[Step] = of("steps")
    next: list[str] = of("next_steps")
    ece_advice: Literal["recalibrate", "leave"] | None = of(lambda _, seen: ece_advice(seen.report))
    fit: str | None = of("method")
    rows_needed: int | None
    small: bool
    stakes: float = of("evidence.stakes")
    tolerance: float = of("evidence.tolerated")
    constant: Constant | None
    interim: Interim | None
    tried: Absent[list[RoundData] | None] = of(".rounds")


class DecisionChangeData(View):
    """Rows whose decision a step changes, by direction and label; their cells less those before. gain: in utility per
    decision.
    """

    started_positive: Size
    started_negative: Size
    stopped_positive: Size
    stopped_negative: Size
    true_positives: float
    false_positives: float
    gain: float = of(lambda _, gain: gain)


class DecidedData(View):
    """Rows, by their weight, by decision and label. change: from the step before; null for the score as it is.

    After post-training these are expected counts, on held-out rows: those before and the change, held within the rows
    of each label.
    """

    acted: Size
    true_positives: Size
    false_positives: Size
    false_negatives: Size
    true_negatives: Size
    ppv: Share | None
    sensitivity: Share | None
    change: DecisionChangeData | None = of(
        lambda each, _: DecisionChangeData(each.change, each.gain) if isinstance(each, CountedStep) else None
    )


class AdjustedData(View):
    """The threshold in use, and the one on the same score that decides as the recalibrated score does: a number to be
    used as it is written, null where no recalibrated score reaches t*.
    """

    in_use: float = of(".task.decision_threshold")
    adjusted: str | None = of(lambda result, _: None if result.value is None else result.text or repr(result.value))
    interval: Interval | None


class CountsData(View):
    """Decisions of a model on its rows. names: of the actions 0 and 1; rows: how many there are.
    recalibrated and with_features are null where that gain is undefined.
    """

    names: Two[str] | None = of(".terms.names")
    rows: Size = of("total")
    as_is: DecidedData = of("steps.now")
    recalibrated: DecidedData | None = of("steps.recalibrate")
    with_features: DecidedData | None = of("steps.post-train")
    threshold: AdjustedData = of(".report.results.threshold_adjusted")


class AmountData(View):
    """An amount with its interval; null where the metric is undefined."""

    value: float | None = of(lambda result, seen: None if result.value is None else seen.terms.number * result.value)
    interval: Interval | None = of(lambda result, seen: times(result.interval, seen.terms.number))


class AmountsData(View):
    """Utilities times the number of decisions, in the user's unit; per: the time in which these decisions are made."""

    unit: str | None = of(".terms.unit")
    per: str | None = of(".terms.per")
    decisions: Above = of(".terms.number")
    expected_utility: AmountData
    gain_recalibration: AmountData
    gain_beyond: AmountData
    gain_post_training: AmountData


class AdvisedData(MeasuredData):
    """A report with its advice. holds: the lowest and the highest threshold at which the advice stays the same. moving:
    what it wins to move scores to the population that rows are counted as.
    """

    recommendation: AdviceData = of(".advice")
    holds: Absent[Interval | None] = of(".holds")
    counts: CountsData | None = of(lambda report, seen: seen.task and report.find(DecisionCounts))
    amounts: AmountsData | None = of(
        lambda report, seen: AmountsData(report.results, seen) if seen.terms.with_amounts else None
    )
    moving: Absent[PriorShiftGain | None] = found(PriorShiftGain)
    at_capacity: Absent[list[Ranked] | None] = of(".ranked")
    ranks_now: Absent[RanksNow | None] = of(".ranks_now")


class Recommended(WrittenResult):
    """A recommendation in the user's terms, for formats to write."""

    def __init__(self, recommendation: Recommendation, terms: StatedTerms = PLAIN) -> None:
        super().__init__(recommendation.evaluation, terms)
        self.recommendation = recommendation

    def sections(self) -> b.Blocks:
        """A table of models if several; for each what to do, what ways of acting are worth, and why; then the data."""
        evaluation = shortened(self.evaluation)
        advised = advised_in(self.recommendation, self.terms, evaluation.reports)
        if len(advised) > 1:
            yield advice_table(advised, self.terms)
        for each in advised:
            yield b.Heading(each.report.name, summary=each.todo)
            first, *others = each.lead()
            yield b.Conclusion(first, others, close=True)
            yield from each.places()
            yield from each.worth()
            yield each.walk()
            yield from each.notes()
            for at in range(len(each.rounds)):
                yield from _round_blocks(each.rounds, at, "time" in evaluation.columns, each.scale)
            method = each.advice.act_now.method
            if method and each.rounds and method not in (trial.chosen.key for trial in each.rounds[0].trials):
                beside = Hint("method", method).words
                yield b.Paragraph(f"The advice above names {method}, which was not tried: {beside} tries it too.")
        yield b.Notes(source_lines(evaluation, self.terms.names))

    def data(self) -> Document:
        """One report, or several."""
        return one_or_several(data_of(Provenance(self.evaluation)), self.entries())

    def entries(self) -> list[Document]:
        """Each report with its advice, without what all of them share."""
        return [data_of(AdvisedData(each.report, each)) for each in advised_in(self.recommendation, self.terms)]

    def rows(self) -> Records:
        """One row per model and group; where methods were tried, one per method: by model, and by the score."""
        rounds = self.recommendation.rounds
        if not rounds:
            walked = ("action", "method", "gain", "low", "high")
            yield ["model", "group", *walked, "do_now", "wins", "wins_low", "wins_high", "certainty"]
            for report, advice in self.recommendation.advised:
                won, interval = advice.wins
                now = advice.todo, won, *(interval or (None, None)), advice.certainty
                yield [*report.place, advice.action, advice.method, advice.gain, *ends_of(advice), *now]
            return
        yield [
            *("model", "score", "method", "kind", "predicted", "predicted_low", "predicted_high"),
            *("achieved", "low", "high", "cost", "net", "seconds", "reason"),
        ]
        for model, of_model in rounds.items():
            for score, trial in ((each.score, trial) for each in of_model for trial in each.trials):
                who, promised, got = trial.chosen, trial.predicted, trial.achieved
                gains = promised.value, *ends_of(promised), got.value, *ends_of(got)
                yield [
                    model,
                    score,
                    who.key,
                    who.declared.kind,
                    *gains,
                    trial.cost,
                    trial.net,
                    trial.seconds,
                    got.reason,
                ]


def _round_blocks(rounds: Sequence[Round], at: int, in_time: bool, scale: Scale) -> b.Blocks:
    """What was tried on which score, what each method won, and what follows.

    in_time: whether fits learn from earlier rows only.
    """
    each, how = rounds[at], "fitted to earlier rows only" if in_time else f"cross-fitted in {FOLDS} folds"
    deals = "" if in_time else ", of few rows the mean over several deals into folds; achieved is of one deal"
    yield b.Paragraph(
        f"{'Started over with' if at else 'Tried on'} {each.score}, {how}: each gain is on "
        f"held-out rows, in {scale.unit or 'utility'} {scale.span} over acting on this score as it is. Predicted: the "
        f"expected gain of its kind, before any fit{deals}."
    )
    yield trial_table(each, scale)
    yield from reasons(((trial.chosen.key, trial.achieved.reason) for trial in each.trials), together=True)
    yield b.Conclusion("", _conclusion(each, at + 1, len(rounds), scale.say))


def trial_table(each: Round, scale: Scale) -> b.TextTable:
    """The methods, the best first."""
    costly, say = any(trial.cost for trial in each.trials), saying(scale.factor)

    def gain(result: Result) -> b.Cell:
        """A piece each for the number and for the ends of its interval."""
        return words(DASH) if result.value is None else b.Cell((*say(result.value, result.interval).split(" "),))

    def after_cost(trial: Trial) -> str:
        """What is left after the cost, with the digits of the gain."""
        ends = times(trial.achieved.interval, scale.factor)
        return "" if trial.net is None else within(scale.factor * trial.net, like=ends)

    return table(
        each.trials,
        [
            (left("method"), "chosen.key"),
            (left("kind", drops=2), "chosen.declared.kind"),
            ("predicted", lambda trial: gain(trial.predicted)),
            ("achieved", lambda trial: gain(trial.achieved)),
            costly and ("after cost", after_cost),
            (b.Column("processor", drops=1), lambda trial: f"{trial.seconds:.2f} s"),
        ],
        row=lambda trial: {"chosen": trial is each.best},
        picks=True,
    )


def _conclusion(each: Round, number: int, rounds: int, say: Say) -> b.Lines:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    if number == 1 and each.picked is not None and len(each.picked.among) > 1:
        *others, other = each.picked.among
        won = say(each.picked.gain.value or 0.0, each.picked.gain.interval)
        yield (
            f"Choosing by cross-validation among {', '.join(others)} and {other} would have picked "
            f"{each.picked.method or 'none of them'}, and wins {won} on rows that took no part in the choice."
        )
    n_tried = sum(trial.achieved.value is not None for trial in each.trials)
    if each.best is None or each.advice is None or each.report is None:
        if not n_tried:
            yield "No method could be fitted to these rows, so their gains are unknown."
            return
        kept = "keep the score as it is" if number == 1 else f"stay with {each.score}"
        yield f"No method wins anything on held-out rows: {kept}."
        return
    if number == 1 and n_tried > 1:
        yield (
            f"The best of {n_tried} looks a little better than it is, because the same rows chose it: evaluate it on "
            f"new rows before you use it ({Verb('fit').words} {shell_word(each.best.chosen.key)} "
            f"{Hint('test', 'FILE').words})."
        )
    # The best recalibration, where a costlier kind was best and on the same rows the difference may be nothing.
    kinds = [(trial.chosen.declared.kind, trial) for trial in each.trials if (trial.net or 0) > 0]
    cheaper = next((trial for kind, trial in kinds if kind == "recalibration"), each.best)
    behind = None if each.best.chosen.declared.kind == "recalibration" else cheaper.behind
    if behind is not None and behind.interval is not None and behind.interval[0] <= 0 and cheaper is not each.best:
        after = " after costs" if any(trial.cost for trial in each.trials) else ""
        yield (
            f"{cheaper.chosen.key} needs only the score and may be as good: on the same rows it is "
            f"behind by {say(behind.value or 0.0, behind.interval)}{after}."
        )
    # The action goes by what there is to win, or where that does not pay, by the cost.
    advice, headline = each.advice, each.advice.headline
    priced = [step.reason for step in advice.steps if step.question.endswith("worth its cost?")]
    why = priced[-1] if advice.action == "do-not-post-train" and priced else advice.steps[0].reason
    yield f"Starting over with {each.report.model}: {headline[:1].lower()}{headline[1:]} {why}"
    if number == rounds and advice.action in ("recalibrate", "post-train"):
        noise = f" after {ROUNDS} rounds: each of them fits to the noise of these rows a little more"
        yield f"Stopped{noise if number == ROUNDS else ': none of the methods that were named recalibrates'}."
