"""From an evaluation to a verdict: the walk through the flowchart, or the judgement of gate rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from decal_cli import report as reporting
from decal_cli.comparison import compare
from decal_cli.errors import DecalError
from decal_cli.flowchart import EVIDENCE_KEYS, Advice, Evidence, Item, walk
from decal_cli.gates import Baseline, GateRow, Rule, judge
from decal_cli.metrics import Choice, parse
from decal_cli.read import Dataset, on_same_rows
from decal_cli.report import Evaluation, Plan, Progress, Report

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
class Verdict:
    """An evaluation and what was concluded from it; None where that was not asked."""

    evaluation: Evaluation
    advice: tuple[Advice, ...] | None = None
    gates: tuple[GateRow, ...] | None = None

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
    return Evidence(
        items={key: Item(key, result.value, result.interval, result.reason) for key, result in found.items()},
        u_delta=plan.task.u_delta,
        rows=report.rows,
        features=report.features,
        tolerance=wishes.tolerance,
        costs=dict(wishes.costs),
        satisfied_at=wishes.satisfied_at,
    )
