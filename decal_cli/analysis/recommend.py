"""From an evaluation to a verdict: the walk through the flowchart, or the judgement of gate rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decal_cli.analysis import evaluate as reporting
from decal_cli.analysis.compare import compare
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, Result
from decal_cli.analysis.flowchart import BEYOND, EVIDENCE_KEYS, GAINS, TRY, Advice, Evidence, Item, walk
from decal_cli.analysis.gate import Baseline, GateRow, Rule, judge
from decal_cli.analysis.tryout import Attempt, attempts, best, candidates
from decal_cli.data import Dataset, on_same_rows
from decal_cli.errors import DecalError
from decal_cli.metrics import Choice, parse
from decal_cli.task import BinaryTask

if TYPE_CHECKING:
    from decal_cli.methods import Chosen

EVIDENCE: tuple[Choice, ...] = tuple(
    parse(name)
    for name in dict.fromkeys(
        (*EVIDENCE_KEYS, "expected_utility", "eu_never", "eu_always", "ece", "ece_null", "ece_debiased")
    )
)
"""What a recommendation rests on."""

METHODS = ("recalibrate", "post-train")


@dataclass(frozen=True)
class Wishes:
    """What the user says of post-training: costs per decision by method, what is good enough, what is too small."""

    costs: tuple[tuple[str, float], ...] = ()
    satisfied_at: float | None = None
    tolerance: float | None = None

    @classmethod
    def parse(
        cls, costs: Sequence[str], decisions: float | None, satisfied_at: float | None, tolerance: float | None
    ) -> Wishes:
        """'0.01' or 'post-train=0.01'; in total rather than per decision where the number of decisions is given."""
        if decisions is not None and not decisions > 0:
            raise DecalError(
                f"--decisions {decisions:g} is not above 0", "give how many decisions the cost is spread over"
            )
        if decisions is not None and not costs:
            raise DecalError("--decisions spreads a total cost, and there is none", "give --cost as well")
        if tolerance is not None and not tolerance >= 0:
            raise DecalError(
                f"--tolerance {tolerance:g} is negative", "give the regret per decision that does not matter"
            )
        parsed: dict[str, float] = {}
        for text in costs:
            method, equals, amount = text.rpartition("=")
            names = (method.strip(),) if equals else METHODS
            try:
                cost = float(amount)
            except ValueError:
                cost = -1.0
            if not 0 <= cost < float("inf") or any(name not in METHODS for name in names):
                raise DecalError(
                    f"--cost {text!r} does not parse", "give a number >= 0, or recalibrate=COST or post-train=COST"
                )
            parsed.update({name: cost / (decisions or 1.0) for name in names})
        return cls(tuple(parsed.items()), satisfied_at, tolerance)


@dataclass(frozen=True, eq=False)
class Round:
    """The methods tried on one score, best first, and the flowchart entered again with the best of them.

    best: None where none wins anything; report and advice, of the best one's score on rows held out, are None then too.
    """

    score: str
    attempts: tuple[Attempt, ...]
    best: Attempt | None = None
    report: Report | None = None
    advice: Advice | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """An evaluation and what was concluded from it; None where that was not asked.

    rounds: of each model, what trying the methods showed, round by round until nothing more is won.
    """

    evaluation: Evaluation
    advice: tuple[Advice, ...] | None = None
    gates: tuple[GateRow, ...] | None = None
    rounds: Mapping[str, tuple[Round, ...]] | None = None

    def advice_for(self, report: Report) -> Advice | None:
        """The advice on one of the reports."""
        if self.advice is None:
            return None
        return self.advice[self.evaluation.reports.index(report)]


def evaluate(dataset: Dataset, plan: Plan, progress: Progress = lambda text: None) -> Verdict:
    """The plan's metrics, nothing concluded."""
    return Verdict(reporting.evaluate(dataset, plan, progress))


def recommend(dataset: Dataset, plan: Plan, wishes: Wishes, progress: Progress = lambda text: None) -> Verdict:
    """The plan's metrics and the advice on every report."""
    evaluation = reporting.evaluate(dataset, plan, progress)
    return Verdict(evaluation, advice=tuple(walk(_evidence(report, plan, wishes)) for report in evaluation.reports))


ROUNDS = 3
"""At most so many times the flowchart is entered again."""


def try_methods(
    dataset: Dataset, plan: Plan, wishes: Wishes, progress: Progress = lambda text: None, methods: Sequence[Chosen] = ()
) -> Verdict:
    """The same, and what the methods win that it might advise: each model starts over with the best of them.

    methods: the candidates; all that the user gave enough for where none are named.
    """
    verdict = recommend(dataset, plan, wishes, progress)
    rounds = {}
    for model in dataset.models:
        report = next(each for each in verdict.evaluation.reports if each.model == model.name and each.group is None)
        rounds[model.name] = tuple(_rounds(replace(dataset, models=(model,)), report, plan, wishes, progress, methods))
    return replace(verdict, advice=tuple(map(_without_try, verdict.advice or ())), rounds=rounds)


def _without_try(advice: Advice) -> Advice:
    return replace(advice, next_steps=tuple(text for text in advice.next_steps if text != TRY))


def _rounds(
    dataset: Dataset, report: Report, plan: Plan, wishes: Wishes, progress: Progress, methods: Sequence[Chosen]
) -> Iterator[Round]:
    # Loaded late: whoever only evaluates needs no method.
    from decal_cli.methods import new_name, training_rows, with_score

    chosen = tuple(methods) or candidates(training_rows(dataset.models[0], plan.task, plan.seed))
    for _ in range(ROUNDS):
        model = dataset.models[0]
        rows = training_rows(model, plan.task, plan.seed)
        made = attempts(report, rows, chosen, dict(wishes.costs), plan.confidence, progress)
        winner = best(made)
        if winner is None or winner.applied is None:
            yield Round(model.name, made)
            return
        # The new score is operated at t*, whatever the old one was.
        plan = plan if plan.task is None else replace(plan, task=BinaryTask.of_utility(plan.task.utility))
        again = with_score(model, winner.applied, new_name(model.name, winner.chosen))
        again = replace(again, rows=replace(again.rows, groups={}))
        dataset = replace(dataset, models=(again,))
        report = reporting.evaluate(dataset, plan, progress).reports[0]
        advice = walk(_evidence(report, plan, wishes))
        yield Round(model.name, made, winner, report, advice)
        if advice.action not in ("recalibrate", "post-train"):
            return
        if advice.action == "recalibrate":
            chosen = tuple(one for one in chosen if one.method.kind == "recalibration")
        if not chosen:
            return


def gate(
    dataset: Dataset,
    plan: Plan,
    rules: Sequence[Rule],
    baseline: Baseline | None = None,
    progress: Progress = lambda text: None,
) -> Verdict:
    """The metrics under the rules, and the rules' judgement."""
    evaluation = reporting.evaluate(dataset, plan, progress)
    differences: tuple[Report, ...] = ()
    choices = tuple(dict.fromkeys(rule.choice for rule in rules if rule.delta))
    if choices and len(dataset.models) == 2:
        paired = compare(on_same_rows(dataset), replace(plan, choices=choices), progress, splicing=False)
        differences = paired.as_reports()
    return Verdict(evaluation, gates=judge(rules, evaluation.reports, baseline, differences))


def ece_advice(report: Report) -> str | None:
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


def _evidence(report: Report, plan: Plan, wishes: Wishes) -> Evidence:
    if plan.task is None:
        raise DecalError("a recommendation needs the decision it is for", "give --threshold or --utility")
    found = {key: report.results[key] for key in EVIDENCE_KEYS}
    if report.positives in (0, report.rows):
        # Rows of one label say which constant action suits them, not what a method would win.
        one = Result(None, None, "needs rows of both labels")
        found |= {key: one for key in (*GAINS.values(), BEYOND)}
    return Evidence(
        items={key: Item(key, result.value, result.interval, result.reason) for key, result in found.items()},
        u_delta=plan.task.u_delta,
        rows=report.rows,
        features=report.features,
        tolerance=wishes.tolerance,
        costs=dict(wishes.costs),
        satisfied_at=wishes.satisfied_at,
    )
