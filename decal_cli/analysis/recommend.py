"""From an evaluation to advice: the walk through the flowchart, and on request the methods tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from decal_cli.analysis.choices import all_choices
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate, with_lists
from decal_cli.analysis.flowchart import BEYOND, EVIDENCE_KEYS, FITS, GAINS, HEADROOM, TRY, Advice, Evidence, Item, walk
from decal_cli.analysis.ranked import Ranked, ranked, usual_fits
from decal_cli.analysis.tryout import Trial, best, candidates, run_trials
from decal_cli.data import Dataset
from decal_cli.data.large.sampling import with_rows
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, said
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import MetricSpec, Result, parse
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.aggregated import NEEDS_ROWS
from decal_cli.task import Task

if TYPE_CHECKING:
    from decal_cli.analysis.ranked import Fit
    from decal_cli.learn.method import MethodSpec

EVIDENCE: tuple[MetricSpec, ...] = tuple(
    parse(name)
    for name in dict.fromkeys(
        (*EVIDENCE_KEYS, "expected_utility", "eu_never", "eu_always", "ece", "ece_null", "ece_debiased")
    )
)
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

    costs: tuple[tuple[str, float], ...] = ()
    satisfied_at: float | None = None
    tolerance: float | None = None

    @classmethod
    def parse(
        cls, costs: Sequence[str], decisions: float | None, satisfied_at: float | None, tolerance: float | None
    ) -> Preferences:
        """'0.01' or 'post-train=0.01'; in total rather than per decision where the number of decisions is given."""
        if decisions is not None and not 1 / MAX_UTILITY <= decisions <= MAX_UTILITY:
            raise DecalError(
                f"{Hint('decisions', f'{decisions:g}')} is not between 0 and {MAX_UTILITY:g}",
                "give how many decisions the cost is spread over",
            )
        if tolerance is not None and not 0 <= tolerance <= MAX_UTILITY:
            raise DecalError(
                f"{Hint('tolerance', f'{tolerance:g}')} is not a number from 0 to {MAX_UTILITY:g}",
                "give the regret per decision that does not matter",
            )
        if satisfied_at is not None and not abs(satisfied_at) <= MAX_UTILITY:
            raise DecalError(
                f"{Hint('satisfied_at', f'{satisfied_at:g}')} is not a number up to {MAX_UTILITY:g}",
                "give a utility per decision",
            )
        parsed: dict[str, float] = {}
        for text in costs:
            method, equals, amount = text.rpartition("=")
            names = (method.strip(),) if equals else COSTED
            try:
                cost = float(amount)
            except ValueError:
                cost = -1.0
            if not 0 <= cost <= MAX_UTILITY or any(name not in COSTED for name in names):
                raise DecalError(
                    f"{Hint('cost', f'{text!r}')} does not parse",
                    f"give a number from 0 to {MAX_UTILITY:g}, or recalibrate=COST or post-train=COST",
                )
            parsed.update({name: cost / (decisions or 1.0) for name in names})
        return cls(tuple(parsed.items()), satisfied_at, tolerance)


@dataclass(frozen=True, eq=False)
class Round:
    """The methods tried on one score, best first, and the flowchart entered again with the best of them.

    best: None where none wins anything; report and advice, of the best one's score on held-out rows, are None then too.
    """

    score: str
    trials: tuple[Trial, ...]
    best: Trial | None = None
    report: Report | None = None
    advice: Advice | None = None


@dataclass(frozen=True, eq=False)
class Recommendation:
    """An evaluation and the advice on each of its reports.

    rounds: of each model, what trying the methods showed, round by round until nothing more is won; None where they
    were not tried.
    """

    evaluation: Evaluation
    advice: tuple[Advice, ...]
    rounds: Mapping[str, tuple[Round, ...]] | None = None
    ranked: Mapping[str, tuple[Ranked, ...]] = field(default_factory=dict)
    """What each model's score is worth where so many rows can be acted on only; empty where there is no limit."""

    @property
    def advised(self) -> tuple[tuple[Report, Advice], ...]:
        """Each report with its advice."""
        return tuple(zip(self.evaluation.reports, self.advice, strict=True))

    def rounds_of(self, report: Report) -> tuple[Round, ...]:
        """The rounds of a report's model; methods are tried on all of its rows, so a group has none."""
        return () if self.rounds is None or report.group is not None else self.rounds[report.model]

    def ranked_of(self, report: Report) -> tuple[Ranked, ...]:
        """The scores of a report's model at the capacity; a group has none."""
        return () if report.group is not None else self.ranked.get(report.model, ())


def recommend(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    progress: Progress = lambda text: None,
    regimes: bool = False,
    ranking: bool = True,
) -> Recommendation:
    """The plan's metrics and the advice on every report; regimes: look at each bin of the score too.

    ranking: where so many rows can be acted on only, say what each score is worth then.
    """
    plan = plan.for_rows(dataset)
    plan = replace(plan, task=plan.binary or plan.task)
    if plan.decision_of(dataset.classes) is None:
        raise NO_DECISION
    if plan.row_task is not None:
        plan = replace(plan, choices=tuple(dict.fromkeys((*plan.choices, *BY_AMOUNT))))
    evaluation = evaluate(dataset, plan, progress, counted=True, regimes=regimes)
    return Recommendation(
        evaluation,
        tuple(walk(_evidence(report, plan, preferences)) for report in evaluation.reports),
        ranked=_ranked(dataset, plan, progress) if ranking else {},
    )


def _ranked(
    dataset: Dataset, plan: Plan, progress: Progress, fits: Mapping[str, Sequence[Fit]] | None = None
) -> dict[str, tuple[Ranked, ...]]:
    """By model; empty where every row can be acted on. fits: what was fitted already, by model."""
    if dataset.capacity is None:
        return {}
    shown = {}
    for model in with_lists(dataset, plan).models:
        progress(f"{model.name} at capacity {dataset.capacity.text}")
        fitted = usual_fits(model, plan) if fits is None else fits[model.name]
        shown[model.name] = ranked(model, dataset.capacity, plan, fitted)
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
    """The same, and what the methods win that it might advise: each model starts over with the best of them.

    methods: the candidates; all that the user gave enough for where none are named.
    """
    dataset = with_rows(dataset, f"recommend {Hint('try').words}")
    plan = plan.for_rows(dataset)
    untried = recommend(dataset, plan, preferences, progress, ranking=False)
    rounds = {}
    for model in dataset.models:
        report = next(each for each in untried.evaluation.reports if each.model == model.name and each.group is None)
        rounds[model.name] = tuple(
            _rounds(replace(dataset, models=(model,)), report, plan, preferences, progress, methods)
        )
    fits = {
        name: [(each.chosen, each.applied, each.achieved.reason) for each in rounds[name][0].trials] for name in rounds
    }
    shown = _ranked(dataset, plan, progress, fits)
    return Recommendation(untried.evaluation, tuple(map(_without_try, untried.advice)), rounds, shown)


def _without_try(advice: Advice) -> Advice:
    return replace(advice, next_steps=tuple(text for text in advice.next_steps if text != said(TRY)))


def _rounds(
    dataset: Dataset,
    report: Report,
    plan: Plan,
    preferences: Preferences,
    progress: Progress,
    methods: Sequence[MethodSpec],
) -> Iterator[Round]:
    # Loaded late: whoever only evaluates needs no method.
    from decal_cli.learn.method import new_name, training_rows, with_score

    task = plan.decision_for(dataset.classes) if dataset.classes else plan.binary or plan.task
    chosen = tuple(methods) or candidates(training_rows(dataset.models[0], task, plan.seed))
    for _ in range(ROUNDS):
        model = dataset.models[0]
        rows = training_rows(model, task, plan.seed)
        utilities = None if plan.row_task is None else row_stakes(model.rows, plan.row_task)
        trials = run_trials(report, rows, chosen, dict(preferences.costs), plan.confidence, progress, utilities)
        winner = best(trials)
        if winner is None or winner.applied is None:
            yield Round(model.name, trials)
            return
        # Decisions on the new score use t*, also where those on the old score used another threshold.
        if isinstance(task, Task):
            task = task.operated_at_best
            plan = replace(plan, task=task)
        again = with_score(model, winner.applied, new_name(model.name, winner.chosen))
        again = replace(again, rows=replace(again.rows, groups={}))
        dataset = replace(dataset, models=(again,))
        report = evaluate(dataset, plan, progress).reports[0]
        advice = walk(_evidence(report, plan, preferences))
        yield Round(model.name, trials, winner, report, advice)
        if advice.action not in ("recalibrate", "post-train"):
            return
        if advice.action == "recalibrate":
            chosen = tuple(each for each in chosen if each.declared.kind == "recalibration")
        if not chosen:
            return


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


def _evidence(report: Report, plan: Plan, preferences: Preferences) -> Evidence:
    task = plan.binary
    # Where rows have thresholds of their own, no share of what these scores can give is defined.
    keys = [key for key in EVIDENCE_KEYS if key in report.results and (plan.row_task is None or key != HEADROOM)]
    results = {key: report.results[key] for key in keys}
    if _one_label(report):
        # Rows of one label say which constant action suits them, not what a method would win.
        undefined = Result(None, None, "needs rows of both labels")
        results |= {key: undefined for key in (*GAINS.values(), BEYOND)}
    return Evidence(
        items={
            key: Item(key, result.value, result.interval, result.reason, result.text) for key, result in results.items()
        },
        rows=report.rows,
        features=report.features,
        tolerance=preferences.tolerance,
        costs=dict(preferences.costs),
        satisfied_at=preferences.satisfied_at,
        acts_from=None if task is None else task.decision_threshold,
        counted=BEYOND in results and results[BEYOND].reason == NEEDS_ROWS,
        best_constant=report.best_constant,
        confidence=plan.confidence or CONFIDENCE,
        **({} if report.recalibrator is None else {"fits": {**FITS, "recalibrate": report.recalibrator}}),
    )


def _one_label(report: Report) -> bool:
    if report.by_class is not None:
        return sum(each.rows > 0 for each in report.by_class.classes) < 2
    return report.positives in (0, report.rows)
