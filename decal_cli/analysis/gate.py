"""Gate rules judged: rows of passed, failed, not shown or cannot judge; and judged again after every batch of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import MappingProxyType
from typing import Literal

import numpy as np

from decal_cli.analysis.baseline import (
    ALIKE,
    NO_LIMIT,
    Baseline,
    Circumstances,
    CountedAs,
    drops,
    first_changed,
    same_rows,
)
from decal_cli.analysis.compare import compare
from decal_cli.analysis.described import clustering
from decal_cli.analysis.evaluate import Evaluation, MetricReport, Plan, Progress, Report, evaluate, with_lists
from decal_cli.analysis.packs import compare_groups
from decal_cli.analysis.rules import Rule, as_named, check_bound, choices_of, example_rule
from decal_cli.data import Dataset, Predictions, on_same_rows
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.document import Absent, Count, Hidden, Share
from decal_cli.errors import DecalError, Exit, Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint, Verb
from decal_cli.metrics import Inputs, MetricSpec, Result
from decal_cli.metrics.confidence import INDEPENDENT, Clustering, Interval, Reach, quantile
from decal_cli.metrics.inputs import decisions_on
from decal_cli.metrics.measure import estimate_of
from decal_cli.numbers import shares_text
from decal_cli.sequential.betting import Bounded, look
from decal_cli.tables.rows import Rows
from decal_cli.tables.units import Estimate
from decal_cli.task import ClassDecision, Task

MEANS = ("brier", "expected_utility", "accuracy", "selection_rate", "net_benefit", "eu_never", "eu_always")
"""Metrics that are means over rows of what is bounded beforehand."""
_LEARNED = ("gain_", "regret", "corp_", "grouping", "irreducible")

Answer = Literal["passed", "failed", "not shown", "cannot judge"]
"""What comes of a rule. Not shown: it does not hold for what was measured, which lies within the noise of the bound."""
Family = Literal["none", "holm"]
"""Whether the chance of a wrong failure is bounded for each rule, or for all rules together."""
Undecided = Literal["fail", "pass"]
"""What a rule counts as that is not shown to hold nor to fail."""
ANSWERS: dict[bool | None, Answer] = {True: "passed", False: "failed", None: "cannot judge"}
PASSED = {answer: passed for passed, answer in ANSWERS.items()}


@dataclass(frozen=True)
class GateRow:
    """The outcome of one rule for one report (or, for max and gap, of a model's groups). passed None: cannot judge.

    value: what the bound is held against; estimate: the metric itself, where that is an end of its interval. distance:
    from value to bound, below 0 on the wrong side. shown: whether the rows show that it holds, or fails;
    None where there is no interval. rows_needed: with so many, 4 of 5 samples would show it. chance: how likely such
    rows are where the rule holds, at any look of a sequence, else at this one. since: the row of a sequence from which
    on the rule fails.
    """

    rule: str
    model: str
    group: str | None
    value: float | None = None
    bound: float | None = None
    passed: bool | None = None
    reason: str | None = None
    answer: Answer = "cannot judge"
    estimate: float | None = None
    interval: Interval | None = None
    distance: float | None = None
    shown: bool | None = None
    rows: Count | None = None
    rows_needed: Count | None = None
    clusters: Hidden[Clustering] = INDEPENDENT
    chance: Absent[Share | None] = None
    since: Absent[Count | None] = None


@dataclass(frozen=True, eq=False)
class GateOutcome:
    """An evaluation and what the rules say of it."""

    evaluation: Evaluation
    rows: tuple[GateRow, ...]


def outcome(rows: Sequence[GateRow]) -> Exit:
    """The exit code: any undefined is 2 and wins, any failure is 1."""
    if any(row.passed is None for row in rows):
        return Exit.CANNOT_JUDGE
    return Exit.OK if all(row.passed for row in rows) else Exit.GATE_FAILED


def gate(
    dataset: Dataset,
    plan: Plan,
    rules: Sequence[Rule],
    baseline: Baseline | None = None,
    progress: Progress = lambda text: None,
    undecided: Undecided | None = None,
    anytime: bool = False,
    family: Family = "none",
) -> GateOutcome:
    """The metrics under the rules, and the rules' judgement. Errors: DecalError, for a rule that nothing could fail.

    undecided: None for the default: 'fail', of a sequence 'pass', since its promise is about clear failures. anytime:
    rules may be judged again after every batch of rows. family: 'holm' for the chance that any of them fails wrongly.
    """
    undecided = undecided or ("pass" if anytime else "fail")
    plan = plan.for_rows(dataset)
    task = plan.shared_by(dataset.classes)
    for rule in rules:
        check_bound(rule, task, bool(dataset.classes))
    evaluation = evaluate(dataset, plan, progress)
    notes = evaluation.notes
    differences: Sequence[MetricReport] = ()
    dropped: Sequence[MetricReport] = ()
    choices = choices_of([rule for rule in rules if rule.change == "delta"])
    if choices and len(dataset.models) == 2:
        paired = compare(on_same_rows(dataset), replace(plan, choices=choices), progress, splicing=False)
        differences = paired.contests
    compared = any(rule.baseline or rule.change == "drop" for rule in rules)
    if baseline is not None:
        stakes = evaluation.by_row.text if evaluation.by_row else ALIKE
        moved = evaluation.population
        scores = "" if moved is None else "kept" if moved.kept else "moved"
        share = shares_text(moved.prevalence) if moved is not None and moved.known else ""
        counted = CountedAs.of(share, scores, evaluation.columns)
        baseline = replace(baseline, ours=Circumstances(evaluation.limit or NO_LIMIT, stakes, counted))
        if compared:
            notes += baseline.of_another_model(model.name for model in dataset.models)
        elif not anytime:
            notes += (f"no rule compares with baseline {baseline.path}: write drop(METRIC)<=X or METRIC<=baseline+X",)
        if any(rule.baseline for rule in rules) and not baseline.of_same_rows(dataset):
            notes += baseline.note(evaluation.inputs)
        if lost := choices_of([rule for rule in rules if rule.change == "drop"]):
            dropped, more = drops(lost, dataset, evaluation, baseline, progress)
            notes = tuple(dict.fromkeys((*notes, *more)))
    gaps = _gaps(rules, dataset, evaluation, progress)
    others = {"delta": differences, "drop": dropped, "gap": gaps}
    rows = judge(rules, evaluation.reports, baseline, others, task, plan.confidence)
    by_text = {rule.text: rule for rule in rules}
    if anytime:
        if baseline is not None:
            # Rules that compare with the baseline need the scores of an earlier model there.
            _need_first_rows(dataset, baseline, scored=not compared)
        rows = tuple(_watch(by_text[row.rule], row, dataset, plan, baseline) for row in rows)
    if family == "holm":
        rows = _together(rows, by_text, 1 - plan.confidence)
    if anytime or family == "holm":
        of_what = "any rule that holds fails clearly" if family == "holm" else "a rule that holds fails clearly"
        looks = " at any look, of all looks at these rows in the order of the file," if anytime else ""
        rest = "" if undecided == "pass" else "; what is not shown fails as well, which this does not count"
        by_value = (row for row in rows if row.value is not None and row.chance is None)
        if apart := dict.fromkeys(row.rule for row in by_value if not by_text[row.rule].counted):
            rest += f"; {', '.join(apart)} is judged by its value, which this does not count"
        if anytime and any(model.rows.cluster is not None for model in dataset.models):
            rest += "; values are means of clusters, each of which counts once, when it is over"
        notes += (f"the chance that {of_what}{looks} is at most {100 * (1 - plan.confidence):.3g} %{rest}",)
    return GateOutcome(replace(evaluation, notes=notes), with_verdicts(rows, undecided))


def with_verdicts(rows: Sequence[GateRow], undecided: Undecided) -> tuple[GateRow, ...]:
    """The rows, each passed or not by its answer. undecided: what one counts as that is not shown."""
    passed = {**PASSED, "not shown": undecided == "pass"}
    return tuple(replace(row, passed=passed[row.answer]) for row in rows)


def _watch(rule: Rule, row: GateRow, dataset: Dataset, plan: Plan, baseline: Baseline | None) -> GateRow:
    """The rule judged on rows in their order, so that it may be judged again when there are more of them."""
    if row.bound is None or rule.choice is None:
        return row
    none = GateRow(row.rule, row.model, row.group, bound=row.bound)
    try:
        if rule.over:
            # What no sequence has, such as a gain, says so instead of what to write.
            bounded_rows(rule.choice, plan.inputs(dataset.models[0].rows))
            measure = f"{rule.change}({rule.key})" if rule.change else rule.key
            groups = rule.over in ("gap", "max")
            why = "every group is a sequence" if groups else "a sequence has an interval"
            raise Undefined(f"goes without {rule.over}(..) here: {why} of its own, so write '{measure}'")
        values = _values_in_order(rule, rule.choice, row, dataset, plan, baseline)
    except Undefined as undefined:
        return replace(none, reason=f"{rule.key} {undefined.reason}")
    seen = look(values, row.bound, rule.at_most, plan.confidence)
    holds = rule.holds(seen.value, row.bound)
    return replace(
        none,
        value=seen.value,
        answer="failed" if seen.since else "passed" if holds else "not shown",
        estimate=seen.value,
        interval=seen.interval,
        distance=rule.distance(seen.value, row.bound),
        shown=bool(seen.since) or (holds and seen.shown),
        rows=int(values.rows[-1]),
        chance=seen.chance,
        since=seen.since,
    )


def _values_in_order(
    rule: Rule, choice: MetricSpec, row: GateRow, dataset: Dataset, plan: Plan, baseline: Baseline | None
) -> Bounded:
    """What the rule is about, row by row. Errors: Undefined."""
    task = plan.shared_by(dataset.classes)

    def of(model: Predictions) -> Bounded:
        return bounded_rows(choice, plan.inputs(dict(model.rows.by_group())[row.group]))

    def less(one: Bounded, other: Bounded) -> Bounded:
        """The difference, and the most that two models can differ by on one row."""
        reach = one.high - one.low
        if choice.name == "expected_utility" and task is not None:
            reach = float(np.ptp(np.array(task.undominated, dtype=float), axis=0).max())
        return one.less(other, reach)

    if rule.change == "delta":
        first, second = map(of, on_same_rows(dataset).models)
        return less(second, first)
    model = next(model for model in dataset.models if model.name == row.model)
    now = of(model)
    if not rule.change:
        return now
    kept = None if baseline is None else baseline.model_like(row.model)
    if kept is None or not same_rows(kept, model):
        raise Undefined("needs the baseline's scores of the same rows: a file of rows with the earlier scores")
    before, better = of(kept.with_classes(model.rows.classes)), choice.declared.better
    if better not in ("lower", "higher"):
        raise Undefined("has no better direction, so that nothing of it is lost")
    return less(before, now) if better == "higher" else less(now, before)


def _together(rows: Sequence[GateRow], by_text: Mapping[str, Rule], risk: float) -> tuple[GateRow, ...]:
    """Clear failures by Holm 1979, so that all of them together are wrong with at most this probability."""
    chances = [_chance(row, by_text[row.rule], risk) for row in rows]
    rejected = iter(holm([chance for chance in chances if chance is not None], risk))
    together = []
    for row, chance in zip(rows, chances, strict=True):
        clear = chance is None or next(rejected)
        row = replace(row, chance=chance)
        if row.answer == "failed" and row.shown and not clear:
            row = replace(row, answer="not shown", shown=False, since=None)
        together.append(row)
    return tuple(together)


def _chance(row: GateRow, rule: Rule, risk: float) -> float | None:
    """The p-value of the rule: of a sequence its own, else by a normal one from the end of the interval."""
    if row.chance is not None or row.interval is None or row.estimate is None or row.bound is None:
        return row.chance
    over = -rule.distance(row.estimate, row.bound)
    reach = abs(row.estimate - row.interval[0 if row.estimate > row.bound else 1])
    if reach <= 0:
        return 1.0 if over <= 0 else 0.0
    return NormalDist().cdf(-quantile(1 - risk) * over / reach)


def _gaps(rules: Sequence[Rule], dataset: Dataset, evaluation: Evaluation, progress: Progress) -> Sequence[Report]:
    """The gaps between groups that rules ask for: a report for each model, and for each column of groups if several."""
    choices = choices_of([rule for rule in rules if rule.over == "gap"])
    reports, plan = [], evaluation.plan
    whole = {report.model: report for report in evaluation.reports if report.of_all_rows}
    for model in with_lists(dataset, plan).models if choices else ():
        progress(f"{model.name}: gaps between groups")
        rows = model.rows
        by_column: dict[str, dict[str, Result]] = {column: {} for column in rows.groups}
        for column, choice, comparison in compare_groups(model.name, rows, choices, plan.inputs, plan.level):
            by_column[column][choice.key] = comparison.largest
        for column, results in by_column.items():
            group = None if len(by_column) == 1 else column
            reports.append(replace(whole[model.name], group=group, results=results))
    return reports


def judge(
    rules: Sequence[Rule],
    reports: Sequence[MetricReport],
    baseline: Baseline | None = None,
    others: Mapping[str, Sequence[MetricReport]] = MappingProxyType({}),
    task: Task | ClassDecision | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[GateRow, ...]:
    """What comes of every rule on every report in its scope; a rule that finds none cannot be judged.

    others: the reports that rules look at in place of these, "delta" of the difference of two models, "drop" of what
    was lost since the baseline, "gap" of the largest gaps between groups. task: what the reports were measured for.
    confidence: of their intervals.
    """
    rows = []
    for rule in rules:
        if (rule.baseline or rule.change == "drop") and baseline is None:
            raise DecalError(
                f"rule {rule.text!r} compares with a baseline",
                f"name it with {Hint('baseline', 'report.json')}, or the file of its rows",
            )
        instead = "gap" if rule.over == "gap" else rule.change
        candidates = others.get(instead, ()) if instead else reports
        scoped = [report for report in candidates if rule.applies_to(report)]
        if rule.change == "delta" and not candidates:
            names = list(dict.fromkeys(report.model for report in reports))
            count = f"there {'is' if len(names) == 1 else 'are'} {len(names)}: {', '.join(names)}"
            why = f"delta(..) needs exactly two models, {Hint('score', ('A', 'B')).words}; {count}"
            rows.append(GateRow(rule.text, "", None, reason=why))
        elif not scoped:
            rows.append(GateRow(rule.text, "", None, reason=_nothing_in_scope(rule, candidates)))
        elif rule.over == "max":
            for model in dict.fromkeys(report.model for report in scoped):
                groups = [report for report in scoped if report.model == model]
                rows.append(_judge(rule, model, None, groups, baseline, task))
        else:
            for report in scoped:
                row = _judge(rule, report.model, report.group, [report], baseline, task)
                rows.append(row if rule.counted else _by_interval(row, rule, report, confidence))
    return tuple(rows)


def _judge(
    rule: Rule,
    model: str,
    group: str | None,
    reports: Sequence[MetricReport],
    baseline: Baseline | None,
    task: Task | ClassDecision | None,
) -> GateRow:
    """A rule on one report, or on those of a model's groups."""
    value = None
    bound = None
    reasons = []
    try:
        value = _value(rule, reports)
    except Undefined as undefined:
        reasons.append(undefined.reason)
    try:
        if not (rule.baseline and baseline is not None and rule.choice is not None):
            bound = rule.number
        elif rule.over in ("max", "gap"):
            raise Undefined(f"{rule.over}(..) goes without a baseline")
        else:
            bound = baseline.result_of(rule.choice, model, group, task)[0] + rule.number
    except Undefined as undefined:
        reasons.append(undefined.reason)
    row = GateRow(rule.text, model, group, value, bound)
    if value is None or bound is None:
        return replace(row, reason=reasons[0])
    return replace(row, answer=ANSWERS[rule.holds(value, bound)], distance=rule.distance(value, bound))


def _value(rule: Rule, reports: Sequence[MetricReport]) -> float:
    """What stands left of the operator."""
    if rule.counted:
        count = getattr(reports[0], rule.counted)
        if count is None:
            raise Undefined(f"{rule.counted} is for labels of two classes")
        return float(count)
    values = []
    for report in reports:
        result = report.results[rule.key]
        if result.value is None and rule.over == "max":
            raise Undefined(f"undefined in group {report.group}: {result.reason}")
        if result.value is None:
            raise Undefined(f"{rule.measure} is undefined: {result.reason}{_instead(rule, result.reason)}")
        values.append(result.value)
    if not rule.needs_interval:
        return max(values)
    if result.interval is None:
        why = f": {result.no_interval}" if result.no_interval else ""
        raise Undefined(f"{rule.measure} has no interval here{why}")
    return result.interval[1 if rule.over == "upper" else 0]


def _by_interval(row: GateRow, rule: Rule, report: MetricReport, confidence: float) -> GateRow:
    """The outcome with what the interval says of it: whether the rows show it, and how many would."""
    measured, clusters = report.results[rule.key], clustering(report)
    row = replace(row, estimate=measured.value, interval=measured.interval, rows=report.rows, clusters=clusters)
    if row.value is None or row.bound is None or measured.interval is None or measured.value is None:
        return row
    holds, (low, high) = row.answer == "passed", measured.interval
    worst, best = (high, low) if rule.at_most else (low, high)
    shown = rule.holds(worst, row.bound) if holds else not rule.holds(best, row.bound)
    if not shown:
        interval, effective = measured.interval, clusters.effective
        reach = Reach.to_bound(report.rows, measured.value, interval, row.bound, confidence, effective)
        row = replace(row, rows_needed=reach.needed())
    return replace(row, shown=shown, answer=row.answer if shown or holds else "not shown")


def _instead(rule: Rule, reason: str | None) -> str:
    """A rule that can be judged on what is there."""
    if reason == Undefined(NEEDS_FEATURES).reason and rule.at_most:
        return f"; without them 'gain_recalibration{rule.operator}{rule.number:g}' asks what recalibration would win"
    return f"; without one {example_rule(False)!r} can be judged" if reason == Undefined(NEEDS_TASK).reason else ""


def _nothing_in_scope(rule: Rule, reports: Sequence[MetricReport]) -> str:
    if rule.over == "gap" or (rule.over == "max" and all(report.of_all_rows for report in reports)):
        return f"{rule.over}(..) goes over groups: name the column with {Hint('group').words}"
    known = {
        "model": sorted({report.model for report in reports}),
        "group": sorted({report.group for report in reports if report.group is not None}),
    }
    there_are = {name: f"(there are: {', '.join(map(as_named, values))})" for name, values in known.items() if values}
    none = f"since no column of groups is named with {Hint('group').words}"
    wrong = [
        f"no {name} {value!r} {there_are.get(name, none)}" for name, value in rule.scope if value not in known[name]
    ]
    return "; ".join(wrong) or "no report is in its scope"


def bounded_rows(spec: MetricSpec, inputs: Inputs) -> Bounded:
    """What the metric is the mean of. Errors: Undefined, with the reason why its sequence cannot be watched."""
    rows = inputs.rows
    assert rows is not None  # they are those of a model
    if spec.name not in MEANS or spec.parameters:
        if spec.name.startswith(_LEARNED):
            raise Undefined(
                "learns from all rows, which is no sequence: a gain needs rows that came after those it was learned "
                f"from, as {Verb('online').words} replays them"
            )
        raise Undefined(f"is no mean of bounded numbers of the rows: these are {', '.join(MEANS)}")
    if rows.weighted or rows.counted or rows.selection is not None or rows.share_known:
        raise Undefined("looks at rows one by one: without weights, counts, a capacity or another prevalence")
    if inputs.by_row:
        raise Undefined("has no bound known beforehand where every row has utilities of its own")
    values = _of_each_row(spec, rows, inputs)
    if rows.cluster is None:
        return values
    # The mean of each cluster is one number, in their order; the last one may go on, and waits.
    cluster = np.asarray(rows.cluster)
    starts = np.append(0, np.flatnonzero(cluster[1:] != cluster[:-1]) + 1)
    if len(np.unique(cluster[starts])) < len(starts):
        raise Undefined("needs the rows of a cluster one after the other")
    sizes = np.diff(np.append(starts, len(cluster)))
    if len(sizes) < 2:
        raise Undefined("needs two clusters")
    means = np.add.reduceat(values.values, starts) / sizes
    return Bounded(means[:-1], values.low, values.high, sizes[:-1])


def _of_each_row(spec: MetricSpec, rows: Rows, inputs: Inputs) -> Bounded:
    """What the metric is the mean of. Errors: Undefined, where it has no meaning on these rows."""
    if spec.name == "brier" and not rows.classes:
        return Bounded((np.asarray(rows.score, dtype=float) - rows.label) ** 2, 0.0, 1.0)
    if spec.name != "brier":
        inputs = inputs.override(decisions_on(rows, inputs.stakes))
    # Units are rows, and an estimate knows what each of them adds to it.
    mean = estimate_of(spec, inputs)
    assert isinstance(mean, Estimate)  # as MEANS are
    return Bounded(mean.value + mean.units.total * mean.influence, mean.low, mean.high)


def _need_first_rows(dataset: Dataset, baseline: Baseline, scored: bool) -> None:
    """Raise a DecalError unless the rows of an earlier look are the first of these rows, as they were.

    scored: whether their scores are those of the same model.
    """
    for model in dataset.models:
        before = baseline.model_like(model.name)
        if before is None:
            continue
        earlier = before.with_classes(model.rows.classes).rows
        if len(earlier) > len(model.rows):
            where = "it has more rows"
        elif (changed := first_changed(earlier, model.rows, scored)) is not None:
            where = f"row {changed + 1} differs"
        else:
            continue
        raise DecalError(
            f"the rows of {baseline.path} are not the first rows of these: {where}",
            f"a sequence goes on where rows are only added: without {Hint('anytime')}, or from new rows on",
        )


def holm(chances: list[float], risk: float) -> list[bool]:
    """Which of these p-values are small enough for all of them together (Holm 1979)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    small = [False] * len(chances)
    for place, k in enumerate(order):
        if not chances[k] <= risk / (len(chances) - place):
            break
        small[k] = True
    return small
