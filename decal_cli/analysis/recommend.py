"""From an evaluation to advice: the walk through the flowchart, on request every method that can be fitted, tried by
cross-fitting (what was promised, what came), and what a score is worth where so many rows can be acted on only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Literal, TypeVar

import numpy as np

from decal_cli.analysis.described import BestRecalibrator, Utility, Worth, clustering, select_rows
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, all_choices, evaluate, with_lists
from decal_cli.analysis.evidence import (
    BEYOND,
    EVIDENCE_KEYS,
    FITS,
    GAINS,
    HEADROOM,
    ROUNDING,
    SHRINKAGE,
    WORST_CASE,
    Action,
    Evidence,
    Item,
)
from decal_cli.analysis.flowchart import TRY, Advice, walk
from decal_cli.data import Dataset, Predictions
from decal_cli.data.large.sampling import with_rows
from decal_cli.declarations.document import Names, Share
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint, said
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.method import (
    MethodSpec,
    Training,
    folds_of,
    missing,
    new_name,
    training_rows,
    try_out,
    with_score,
)
from decal_cli.learn.methods import METHODS, usual
from decal_cli.learn.models import Applied
from decal_cli.metrics import Inputs, MetricSpec, Result, parse
from decal_cli.metrics.at_capacity import AtCapacity, RowsAtCapacity, WorthAtCapacity
from decal_cli.metrics.confidence import quantile
from decal_cli.metrics.decisions import Change, Decisions
from decal_cli.metrics.inputs import INPUT_KINDS, decisions_on, worth_at_capacity
from decal_cli.metrics.measure import measure, measure_all
from decal_cli.numbers import Interval, Say, per_thousand, times
from decal_cli.tables.aggregated import COUNTS_HAVE_NONE
from decal_cli.tables.memo import OnDemand
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity, selected
from decal_cli.tables.table import Floats, Mask
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask, Task

ACTIONS: Mapping[str, Action] = {"recalibration": "recalibrate", "post-training": "post-train"}
"""The action of the flowchart that a kind of method carries out; costs are given by action."""


@dataclass(frozen=True)
class Trial:
    """One method on held-out rows. Utilities are per decision, in the user's unit.

    predicted: what the evaluation expected of its kind before anything was fitted. achieved: what it won over acting on
    the score as it is; value None, and the reason, where it cannot be fitted. net: achieved less the cost of its kind,
    where one was given. applied: what the folds' models said of each row. seconds: processor time.
    """

    chosen: MethodSpec
    predicted: Result
    achieved: Result
    cost: float
    applied: Applied | None = None
    seconds: float = 0.0
    behind: Result | None = None
    """What it leaves behind the best trial that gives a new score, on the same rows, with its paired interval."""

    @property
    def net(self) -> float | None:
        """What it wins less what it costs."""
        return None if self.achieved.value is None else self.achieved.value - self.cost


@dataclass(frozen=True)
class Picked:
    """What choosing by cross-validation picks, and what choosing so wins over acting on the score as it is.

    method: null where no method wins more than the score as it is. among: what is compared. gain: after costs; each
    fold is decided by the method that wins most on the other folds, so that no row has a part in the choice for it.
    """

    method: str | None
    among: Names
    gain: Result


def candidates(rows: Training) -> tuple[MethodSpec, ...]:
    """Every method that the user gave enough for, at its defaults."""
    return tuple(spec for spec in METHODS.specs() if not missing(spec, rows))


@dataclass(frozen=True)
class TriedOn:
    """The rows that methods are tried on, the report of them, and what methods cost by action.

    confidence: of intervals.
    """

    report: Report
    rows: Training
    costs: Mapping[str, float]
    confidence: float

    def trials(self, chosen: Sequence[MethodSpec], progress: Progress) -> tuple[Trial, ...]:
        """These methods, the best first; what cannot be fitted last."""
        trials = []
        for method in chosen:
            progress(f"{self.report.model} by {method.key}")
            trials.append(self._trial(method))
        trials.sort(key=lambda trial: (trial.net is None, -(trial.net or 0.0)))
        first = best(trials)
        for place, each in enumerate(trials):
            if first and first.applied and each.applied and each.achieved.value is not None:
                # The paired difference to the best one, each after its cost.
                behind = self._won(first.applied, each.applied) - (first.cost - each.cost)
                trials[place] = replace(each, behind=self._result(behind))
        return tuple(trials)

    def _trial(self, chosen: MethodSpec) -> Trial:
        action = ACTIONS[chosen.declared.kind]
        trial = Trial(chosen, self.report.results[GAINS[action]], Result(None), self.costs.get(action, 0.0))
        try:
            if lacking := missing(chosen, self.rows):
                raise Undefined(lacking)
            done = try_out(chosen, self.rows)
            trial = replace(trial, applied=done.applied, seconds=done.seconds)
            return replace(trial, achieved=self._result(self._won(done.applied)))
        except Undefined as undefined:
            return replace(trial, achieved=Result(None, None, undefined.reason))

    def _result(self, estimate: Estimate) -> Result:
        return Result(*Utility.of(estimate, self._judged.adjusted_confidence(self.confidence)))

    @cached_property
    def _judged(self) -> Training:
        return self.rows.judged

    def _decisions(self, applied: Applied | None = None) -> Decisions:
        """Decisions by a new score, or by the score as it is. Errors: Undefined."""
        assert self.rows.task is not None  # advice is for a decision
        return decisions_on(self._judged, self.rows.task, applied)

    def _won(self, one: Applied, other: Applied | None = None) -> Estimate:
        """What acting on a new score wins over another, or over the score as it is. Errors: Undefined."""
        return Change(self._decisions(other), self._decisions(one), WIDENED).gain

    def picked(self, trials: Sequence[Trial]) -> Picked | None:
        """What most people would do: compare the usual methods by cross-validation, and keep the best.

        Of other methods where none of the usual ones was tried. None: nothing was fitted.
        """
        fitted = [each for each in trials if each.achieved.value is not None and each.applied is not None]
        fitted = [each for each in fitted if each.chosen.key in usual(bool(self.rows.classes))] or fitted
        if not fitted:
            return None
        rows, as_it_is = self._judged, self._decisions()
        now = as_it_is.won()
        weight, fold = rows.weights, folds_of(rows)
        won = np.vstack([0 * now, *(self._decisions(each.applied).won() - now - each.cost for each in fitted)])
        held_out, changed = np.empty(len(rows)), False
        for k in np.unique(fold):
            here, others = fold == k, fold < k if rows.in_time else fold != k
            first = (won[:, others] @ weight[others]).argmax()
            held_out[here] = won[first, here]
            changed |= bool(first)
        names = tuple(each.chosen.key for each in fitted)
        # As the gain of each method, so that a choice that is the same in all folds has that method's interval.
        mean = rows.units.mean(held_out).widened(WIDENED)
        gain = self._result(replace(mean, extra=as_it_is.one_row if changed else 0.0, missed=0.0))
        return Picked((None, *names)[(won @ weight).argmax()], names, gain)


def best(trials: Sequence[Trial]) -> Trial | None:
    """The trial that wins most after its cost, if it wins anything, among those that give a new score.

    A method that moves the threshold and leaves the score decides as isotonic regression does, and leaves nothing new
    to evaluate.
    """
    for trial in trials:
        if trial.applied is not None and trial.applied.threshold is None and (trial.net or 0) > 0:
            return trial
    return None


Kind = Literal["recalibration", "post-training", "perfect"]
RECALIBRATION = "isotonic"
"""The recalibration that is ranked: as the order stays, only which rows reach t* changes, where all have one t*."""
CLASS_RECALIBRATION = "temperature"
"""The recalibration that is ranked for several classes where no scaling is known to be the best."""
POST_TRAINING = "blend"
PERFECT = "perfect ranking"
"""The places go by the labels. Where one acts or does not, no method can exceed it."""


@dataclass(frozen=True)
class Ranked:
    """One score at the capacity. method: None of the score as it is, else what gives the new one, on held-out rows;
    kind: of the method.

    utility: per decision; gain: over the score as it is, with its paired interval; None of that one. value_capture:
    where every row has utilities of its own. reason: why there is no number.
    """

    method: str | None
    kind: Kind | None = None
    utility: float | None = None
    capture: Share | None = None
    value_capture: Share | None = None
    precision: Share | None = None
    gain: float | None = None
    interval: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True)
class RanksNow:
    """What gives the places today. method: None of the score as it is. gain: what it is expected to win over that, per
    decision; chance: that it wins anything, None where no error is known.
    """

    method: str | None
    gain: float = 0.0
    chance: Share | None = None


def ranks_now(ranked: Sequence[Ranked], acted_on: float, confidence: float) -> RanksNow:
    """The method of the largest gain less SHRINKAGE standard errors, if that is above 0 and the gain matters.

    acted_on: the gain from which what is not clear is acted on.
    """
    best, most = RanksNow(None), 0.0
    for each in ranked:
        if each.kind == "perfect" or each.gain is None or each.interval is None:
            continue
        low, high = each.interval
        error = (high - low) / (2 * quantile(confidence))
        if each.gain - SHRINKAGE * error > most and (each.gain >= acted_on or low > 0):
            most = each.gain - SHRINKAGE * error
            best = RanksNow(each.method, each.gain, NormalDist().cdf(each.gain / error) if error > 0 else 1.0)
    return best


def idle(report: Report, first: RanksNow, stakes: float) -> Utility | None:
    """What acting on no row wins over the order of the score; None where some score is known to win more.

    first: what gives the places. stakes: what perfect decisions are worth more than the better constant one.
    """
    worth = report.find(Worth)
    assert worth  # there are scores at a capacity
    won = Utility(-worth.over.value, times(worth.over.interval, -1.0))
    return won if won.value > 0 and won.value >= (first.gain or 0.0) - ROUNDING * stakes else None


def usual_methods(rows: Rows, best: BestRecalibrator | None) -> tuple[MethodSpec, ...]:
    """What recalibrates the score, of several classes the best scaling, and what uses the features if there are any."""
    scaling = CLASS_RECALIBRATION if best is None else best.method
    recalibration = scaling if rows.classes else RECALIBRATION
    names = (recalibration, POST_TRAINING) if rows.has_features else (recalibration,)
    return tuple(map(METHODS.parse, names))


def ranked(model: Predictions, capacity: Capacity, plan: Plan, trials: Iterable[Trial]) -> tuple[Ranked, ...]:
    """The score as it is, these methods, and a perfect ranking; model: with what its lists say of its rows."""
    as_it_is = _worth(model.rows, plan)
    shown = [_row(None, None, as_it_is)]
    for trial in sorted(trials, key=lambda trial: trial.chosen.declared.kind != "recalibration"):
        method, applied = trial.chosen, trial.applied
        if applied is None:
            shown.append(Ranked(method.key, method.declared.kind, reason=trial.achieved.reason))
        elif applied.threshold is None:
            # One that moves the threshold leaves the score, as recalibration does.
            shown.append(fitted_at(model, capacity, plan, method, applied, WIDENED))
    rank = np.where(as_it_is.worth > 0, as_it_is.worth, -np.inf)
    perfect = _worth(selected(model.rows, capacity, None, rank), plan)
    shown.append(_compared(_row(PERFECT, "perfect", perfect), as_it_is, perfect, plan))
    return tuple(shown)


def fitted_at(
    model: Predictions, capacity: Capacity, plan: Plan, method: MethodSpec, applied: Applied, widened: float
) -> Ranked:
    """What a method gives at the capacity; model: with what its lists say of its rows."""
    score, task = applied.score, None if model.rows.classes else plan.binary
    if task is not None and applied.threshold is not None:
        score = _kept_order(model.rows, applied.acts(task) == 1, task)
    elif task is not None and method.key == RECALIBRATION:
        score = _kept_order(model.rows, score >= task.threshold, task)
    rows = replace(model.rows, score=score, selection=None)
    # Recalibrated scores are acted on from t* on, also where those that are here have another threshold.
    by = plan.decision_of(rows.classes) if task is None else task.operated_at_best
    after = _worth(select_rows(rows, capacity, by, plan.seed), plan)
    return _compared(_row(method.key, method.declared.kind, after), _worth(model.rows, plan), after, plan, widened)


def _worth(rows: Rows, plan: Plan) -> WorthAtCapacity:
    """What acting on these rows, which have lists, is worth."""
    task = plan.decision_of(rows.classes)
    assert task is not None  # asked for where there is one
    return worth_at_capacity(rows, task)


def _kept_order(rows: Rows, reaches: Mask, task: BinaryTask) -> Floats:
    """Scores in the order that they had, of which those reach t* that do so by the method.

    Five folds give five curves, each of which keeps the order; put together, their values would not.
    """
    order = rows.score * (1 - task.threshold) + task.threshold
    return np.where(reaches, order, rows.score * task.threshold * (1 - 1e-9))


def _row(method: str | None, kind: Kind | None, at: WorthAtCapacity) -> Ranked:
    two = None if at.rows.classes else AtCapacity(at.rows, at.selection)
    inputs = Inputs.of(two, at if isinstance(at, RowsAtCapacity) else None)
    names = "capture", "value_capture", "precision_at_capacity"
    capture, value_capture, precision = (measure(parse(name), inputs).value for name in names)
    return Ranked(method, kind, at.utility.value, capture, value_capture, precision)


def _compared(row: Ranked, before: WorthAtCapacity, after: WorthAtCapacity, plan: Plan, widened: float = 1.0) -> Ranked:
    """The row of a new score, with its gain."""
    gain = (after.utility - before.utility).widened(widened)
    adjusted = before.rows.adjusted_confidence(plan.confidence)
    return replace(row, gain=gain.value, interval=Utility.of(gain, adjusted).interval)


EVIDENCE = tuple(map(parse, (*EVIDENCE_KEYS, "ece", "ece_null", "ece_debiased")))
"""What a recommendation rests on."""
BY_AMOUNT = (parse("eu_by_amount"), parse("gain_over_amount"))
"""What it says too, where every row has utilities of its own."""


def evidence_choices(of_classes: bool, every: bool) -> tuple[MetricSpec, ...]:
    """The metrics of a recommendation; every: and all others that these rows have."""
    evidence = tuple(choice for choice in EVIDENCE if choice.declared.takes(of_classes))
    return tuple(dict.fromkeys((*all_choices(of_classes), *evidence))) if every else evidence


COSTED = tuple(GAINS)
"""Actions that a cost may be given for."""


@dataclass(frozen=True)
class Preferences:
    """What the user states about post-training: costs per decision by method, what is enough, what is too small."""

    costs: Mapping[str, float] = field(default_factory=dict)
    satisfied_at: float | None = None
    tolerance: float | None = None
    saying: Callable[[Sequence[float]], Say] = lambda beside: per_thousand
    """How amounts are written beside others of the same page."""
    names: Sequence[str] = ()
    """The user's names of the decisions 0 and 1; () where they have none."""


@dataclass(frozen=True, eq=False)
class Round:
    """The methods tried on one score, best first, and the flowchart entered again with the best of them.

    best: None where none wins anything; report and advice, of the best one's score on held-out rows, are None then too.
    picked: what choosing by cross-validation picks; None where nothing could be fitted.
    """

    score: str
    trials: tuple[Trial, ...]
    best: Trial | None = None
    report: Report | None = None
    advice: Advice | None = None
    picked: Picked | None = None


@dataclass(frozen=True, eq=False)
class Recommendation:
    """An evaluation and the advice on each of its reports; () without a decision.

    rounds: of each model, what trying the methods showed, round by round until nothing more is won; empty where they
    were not tried.
    """

    evaluation: Evaluation
    advice: tuple[Advice, ...] = ()
    rounds: Mapping[str, tuple[Round, ...]] = field(default_factory=dict)
    ranked: Mapping[str, tuple[Ranked, ...]] = field(default_factory=dict)
    """What each model's score is worth where so many rows can be acted on only; empty where there is no limit."""
    holds: Mapping[str, Interval] = field(default_factory=dict)
    """By model, the thresholds from which to which the advice on all of its rows stays the same; of two classes only,
    where all rows share two actions and each row can be acted on."""
    unused_times: Names = ()
    """Columns without a role that are called as times are."""

    @property
    def advised(self) -> tuple[tuple[Report, Advice], ...]:
        """Each report with its advice."""
        return tuple(zip(self.evaluation.reports, self.advice, strict=True))


def recommend(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    progress: Progress = lambda text: None,
    regimes: bool = False,
    ranking: bool = True,
    then: Callable[[Report, Elsewhere], None] = lambda report, elsewhere: None,
) -> Recommendation:
    """The plan's metrics and the advice on every report; regimes: look at each bin of the score too.

    ranking: where so many rows can be acted on only, say what each score is worth then. then: called with each report
    of one score on a decision of two actions that all rows share, and its advice elsewhere.
    """
    plan = plan.for_rows(dataset).simplest
    if plan.decision_of(dataset.classes) is None:
        return Recommendation(evaluate(dataset, plan, progress))
    if plan.by_row:
        plan = replace(plan, choices=tuple(dict.fromkeys((*plan.choices, *BY_AMOUNT))))
    holds = {}

    def held(report: Report, inputs: Inputs) -> None:
        if plan.binary is None or dataset.classes:
            return
        elsewhere = Elsewhere(inputs, report, plan, preferences)
        if dataset.capacity is None and report.of_all_rows:
            holds[report.model] = elsewhere.held(plan.binary, progress)
        then(report, elsewhere)

    evaluation = evaluate(dataset, plan, progress, counted=True, regimes=regimes, then=held)

    def usual(model: Predictions) -> Sequence[Trial]:
        report, rows = (
            evaluation.by_place[model.name, None],
            training_rows(model, plan.decision_of(dataset.classes), plan.seed),
        )
        methods = usual_methods(rows, report.find(BestRecalibrator))
        return TriedOn(report, rows, {}, plan.confidence).trials(methods, progress)

    return Recommendation(
        evaluation,
        tuple(walk(evidence_of(report, plan, preferences)) for report in evaluation.reports),
        ranked=_ranked(dataset, plan, usual, progress) if ranking else {},
        holds=holds,
        unused_times=dataset.unused_times,
    )


def decides(choice: MetricSpec) -> bool:
    """Whether a metric is another one where the decision is another."""
    return any(INPUT_KINDS[kind].decides for kind in choice.declared.needs)


LOOKED_AT = (
    *(k / 1000 for k in range(1, 10)),
    *(k / 100 for k in range(1, 100)),
    *(k / 1000 for k in range(991, 1000)),
)
"""Thresholds at which advice may change."""


def edges_of_advice(plan: Plan) -> Sequence[float]:
    """Thresholds at which rows are counted, so that advice is exact there."""
    return sorted({*plan.edges, *LOOKED_AT}) if plan.binary else plan.edges


Point = TypeVar("Point")


def looked_at(point: Callable[[int], Point], steps: Iterable[int], same: Callable[[Point], object]) -> dict[int, Point]:
    """Points at these steps and, where neighbours are not the same, at those between, by halves, where that changes."""
    points = {step: point(step) for step in sorted(set(steps))}
    gaps = list(pairwise(points))
    while gaps:
        low, high = gaps.pop()
        if high - low > 1 and same(points[low]) != same(points[high]):
            middle = (low + high) // 2
            points[middle] = point(middle)
            gaps += [(low, middle), (middle, high)]
    return dict(sorted(points.items()))


class Elsewhere:
    """The advice on a report where the decision is another one; what the decision does not change is not done again."""

    def __init__(self, inputs: Inputs, report: Report, plan: Plan, preferences: Preferences) -> None:
        assert inputs.rows is not None  # a report is of rows
        self._inputs, self._report, self._plan, self._preferences = inputs, report, plan, preferences
        changing = (choice for choice in EVIDENCE if decides(choice) and choice.declared.takes(False))
        self._choices = {choice.key: choice for choice in changing}
        self._adjusted = inputs.rows.adjusted_confidence(plan.level)

    def advise(self, task: BinaryTask) -> Advice:
        """The advice for this task, from the metrics that the flowchart asks for on its way."""
        inputs, known = self._inputs.at(task), self._report.results

        def result(key: str) -> Result:
            if key not in self._choices:
                return known[key]
            (choice,) = of_key = (self._choices[key],)
            # These two intervals take longest. Of the headroom only whether there is any leads elsewhere. The end of
            # the worst case that features could win leads elsewhere where it is small, and the value is then small too.
            if key in (HEADROOM, WORST_CASE):
                there = measure_all(of_key, inputs)[choice]
                if key == HEADROOM or there.value is None or there.value > evidence.tolerated:
                    return there
            return measure_all(of_key, inputs, self._adjusted)[choice]

        report = replace(self._report, results=OnDemand({**known, **self._choices}, result))
        evidence = evidence_of(report, replace(self._plan, decision=task), self._preferences)
        return walk(evidence)

    def held(self, task: BinaryTask, progress: Progress = lambda text: None) -> Interval:
        """The lowest and the highest threshold, costs adding up to the same, to which the advice stays the same.

        The highest threshold below and the lowest above, of LOOKED_AT, at which it is another one end it.
        """
        own = self.advise(task).same

        def last(further: Iterable[float]) -> float:
            reached = task.threshold
            for threshold in further:
                progress(f"{self._report.model} at {threshold:g}")
                if self.advise(task.moved_to(threshold)).same != own:
                    break
                reached = threshold
            return reached

        lower = (each for each in reversed(LOOKED_AT) if each < task.threshold)
        return last(lower), last(each for each in LOOKED_AT if each > task.threshold)

    def along(self, task: BinaryTask, at: Sequence[float]) -> list[Advice]:
        """The advice at each of these thresholds, increasing, costs adding up to the same; `at` has the task's own.

        It is asked for at those of LOOKED_AT, as in `held`, and between two of them that differ.
        """
        steps = {0, *np.searchsorted(at[:-1], (task.threshold, *LOOKED_AT)).tolist(), len(at) - 1}
        seen = looked_at(lambda step: self.advise(task.moved_to(at[step])), steps, lambda advice: advice.same)
        known = np.array(list(seen))
        return [seen[known[np.searchsorted(known, step, side="right") - 1]] for step in range(len(at))]


def _ranked(
    dataset: Dataset, plan: Plan, tried: Callable[[Predictions], Sequence[Trial]], progress: Progress
) -> dict[str, tuple[Ranked, ...]]:
    """By model; empty where every row can be acted on. tried: the methods on the rows of a model."""
    if dataset.capacity is None:
        return {}
    shown = {}
    for whole, model in zip(dataset.models, with_lists(dataset.judged, plan).models, strict=True):
        progress(f"{model.name} at capacity {dataset.capacity.text}")
        shown[model.name] = ranked(model, dataset.capacity, plan, tried(whole))
    return shown


ROUNDS = 3
"""At most so many times the flowchart is entered again."""


def try_methods(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    progress: Progress = lambda text: None,
    methods: Sequence[MethodSpec] = (),
) -> Recommendation:
    """The recommendation, and what the methods win that it might advise: each model starts over with the best one.

    methods: the candidates; all that the user gave enough for where none are named.
    """
    dataset = with_rows(dataset, f"recommend {Hint('try').words}")
    plan = plan.for_rows(dataset)
    untried = recommend(dataset, plan, preferences, progress, ranking=False)

    def rounds_of(model: Predictions) -> Iterator[Round]:
        report = untried.evaluation.by_place[model.name, None]
        now, task = plan, plan.simplest.decision_of(dataset.classes)
        chosen = tuple(methods) or candidates(training_rows(model, task, plan.seed))
        for _ in range(ROUNDS):
            rows, model = training_rows(model, task, plan.seed), replace(model, rows=model.rows.judged)
            tried = TriedOn(report, rows, preferences.costs, plan.confidence)
            trials = tried.trials(chosen, progress)
            winner, by_cv = best(trials), tried.picked(trials)
            if winner is None or winner.applied is None:
                yield Round(model.name, trials, picked=by_cv)
                return
            # Decisions on the new score use t*, also where those on the old score used another threshold.
            if isinstance(task, Task):
                task = task.operated_at_best
                now = replace(plan, decision=task)
            again, before = with_score(model, winner.applied, new_name(model.name, winner.chosen)), model.name
            model = replace(again, rows=replace(again.rows, groups={}))
            report = evaluate(replace(dataset, models=(model,)), now, progress).reports[0]
            advice = walk(evidence_of(report, now, preferences))
            yield Round(before, trials, winner, report, advice, by_cv)
            if advice.action == "recalibrate":
                chosen = tuple(each for each in chosen if each.declared.kind == "recalibration")
            if advice.action not in ("recalibrate", "post-train") or not chosen:
                return

    rounds = {model.name: tuple(rounds_of(model)) for model in dataset.models}
    shown = _ranked(dataset, plan, lambda model: rounds[model.name][0].trials, progress)
    advice = tuple(
        replace(each, next_steps=tuple(text for text in each.next_steps if text != said(TRY)))
        for each in untried.advice
    )
    return replace(untried, advice=advice, rounds=rounds, ranked=shown, holds={})


def ece_advice(report: Report) -> Literal["recalibrate", "leave"] | None:
    """What ECE alone would advise: recalibrate where it is clearly above a calibrated model's, else leave."""
    debiased = report.results.get("ece_debiased")
    if debiased is None or debiased.interval is None:
        return None
    return "recalibrate" if debiased.interval[0] > 0 else "leave"


def ece_disagrees(report: Report, advice: Advice) -> bool:
    """Whether ECE alone would have sent the user elsewhere."""
    alone = ece_advice(report)
    if alone is None or advice.action == "cannot-tell":
        return False
    return alone != ("recalibrate" if advice.action == "recalibrate" else "leave")


NO_DECISION = DecalError(
    "a recommendation needs the decision it is for",
    f"give {Hint('threshold')}, {Hint('utility')}, {Hint('cost_fp')}/{Hint('cost_fn')} or {Hint('odds')}, for "
    f"several classes {Hint('utility')} or {Hint('abstain')}",
)


def evidence_of(report: Report, plan: Plan, preferences: Preferences) -> Evidence:
    task, worth, best = plan.binary, report.find(Worth), report.find(BestRecalibrator)
    # Where rows have thresholds of their own, no share of what these scores can give is defined.
    known = report.results
    keys = [key for key in EVIDENCE_KEYS if key in known and (not plan.by_row or key != HEADROOM)]

    def item(key: str) -> Item:
        result = known[key]
        return Item(key, result.value, result.interval, result.reason, result.text)

    return Evidence(
        items=OnDemand(keys, item),
        rows=report.rows,
        features=report.features,
        tolerance=preferences.tolerance,
        costs=preferences.costs,
        satisfied_at=preferences.satisfied_at,
        acts_from=None if task is None else task.decision_threshold,
        counted=BEYOND in known and known[BEYOND].reason == COUNTS_HAVE_NONE,
        best_constant=worth.action if worth and not plan.by_row else None,
        confidence=plan.confidence,
        say=preferences.saying(amounts_of(report)),
        names=preferences.names,
        unlearnable=report.unlearnable,
        clusters=clustering(report),
        fits={**FITS, "recalibrate": best.method} if best else FITS,
    )


def amounts_of(report: Report) -> list[float]:
    """By which the unit of all amounts that are written of a report is chosen."""
    return amounts_in([report.results])


def amounts_in(reports: Iterable[Mapping[str, Result]]) -> list[float]:
    """What decisions are worth and the largest gain of each of these reports' results."""
    amounts = []
    for results in reports:
        worth, gains = (
            [value for key in keys if key in results and (value := results[key].value) is not None]
            for keys in (("expected_utility", "eu_never", "eu_always"), GAINS.values())
        )
        amounts += [*worth, max(gains, key=abs, default=0.0)]
    return amounts or [0.0]
