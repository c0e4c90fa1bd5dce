"""Gate rules: 'gain_recalibration<=0.01' -> rows of passed, failed or cannot judge.

rule    = side op bound
side    = [upper | lower | max | gap] ( measure scope ) | measure scope
measure = metric | delta ( metric ) | drop ( metric ) | rows | positives
metric  = name | name(parameter=value, ...)
scope   = { @model=NAME | @group=NAME }
NAME    = as it is | "quoted as in JSON"
bound   = number | baseline [ (+ | -) number ]
op      = <= | < | >= | >

delta is the metric of the second of exactly two models minus that of the first, on the rows that both have; its
interval is the paired one. It goes without a model, a baseline, max and gap. drop is what a model lost since the
baseline, above 0 where it became worse; it goes without max and gap, and its bound is a number. gap is the largest
difference between two groups of a column, of those that have 30 rows in the denominator of the metric; its interval
holds whichever pair has it. rows and positives are the rows of a model and group, and those of label 1; they stand
alone, with a scope. A name in quotes may hold anything; one without ends at the next @, and loses spaces at its ends.

Rules that may be judged again after every batch of rows rest on betting confidence sequences of bounded means. At each
look all rows enter again, once each, from the first row on and in the order of the file; nothing is kept between looks.
What bets on a row was fixed by the rows before it (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from decal_cli.analysis.baseline import NO_LIMIT, Baseline, Circumstances, drops, first_changed, same_rows
from decal_cli.analysis.compare import compare
from decal_cli.analysis.evaluate import Evaluation, MetricReport, Plan, Progress, evaluate, with_lists
from decal_cli.analysis.packs import compare_groups
from decal_cli.data import Dataset, Predictions, on_same_rows
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.document import Absent, Count, Share
from decal_cli.errors import DecalError, Exit, Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint, Verb
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import Inputs, MetricSpec, Result, parse
from decal_cli.metrics.confidence import Interval, quantile, rows_for
from decal_cli.metrics.inputs import decisions_on
from decal_cli.metrics.measure import estimate_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints
from decal_cli.tables.units import Estimate
from decal_cli.task import ClassDecision, Task

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
"""How a value is compared with a bound."""
COUNTED = ("rows", "positives")
"""What a rule may ask of the data rather than of a metric."""
OVER_TIME = ("e_calibration", "gain")
"""What rules of `decal online` speak of."""
_EXAMPLE = "write for example 'brier<=0.2', 'gain_recalibration<=0.01' or 'upper(drop(expected_utility))<=0.005'"
_QUOTING = 'write it as JSON does: @group="a@b"; \\" is a quotation mark, \\\\ a backslash, \\n a new line'
_RULE = re.compile(r"(?P<side>.+?)\s*(?P<op><=|>=|<|>)\s*(?P<bound>[^<>=]+)")
_QUOTED = re.compile(r'(@\s*(?:model|group)\s*=\s*)("(?:[^"\\]|\\.)*")', re.DOTALL)
_SIDE = re.compile(r"(?P<over>upper|lower|max|gap)\s*\((?P<inner>.*)\)")
_CHANGE = re.compile(r"\s*(?P<change>delta|drop)\s*\((?P<metric>.*)\)\s*")
_BOUND = re.compile(r"(?P<baseline>baseline)?\s*(?P<number>[+-]?\s*(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)?")


@dataclass(frozen=True)
class Rule:
    """One parsed gate rule. over: '' (the value), 'upper', 'lower' (interval ends), 'max', 'gap' (over groups).

    change: 'delta' of the difference of two models, 'drop' of what a model lost since the baseline, or ''. choice: the
    metric; None where the rule is on `counted`, one of COUNTED.
    """

    text: str
    over: str
    choice: MetricSpec | None
    scope: tuple[tuple[str, str], ...]
    operator: str
    baseline: bool
    number: float
    change: Literal["", "delta", "drop"] = ""
    counted: str = ""

    @property
    def key(self) -> str:
        """The key of the rule's metric, or the name of what it counts."""
        return self.counted if self.choice is None else self.choice.key

    @property
    def needs_interval(self) -> bool:
        """Whether the rule speaks of an end of the interval."""
        return self.over in ("upper", "lower")

    @property
    def at_most(self) -> bool:
        """Whether the bound is the largest value that passes, or the smallest that does not."""
        return self.operator.startswith("<")

    @property
    def side(self) -> str:
        """What stands left of the operator, without its scope."""
        return f"{self.over}({self.measure})" if self.over else self.measure

    @property
    def measure(self) -> str:
        """What it measures: a metric's key, delta(key), drop(key), or what is counted."""
        return f"{self.change}({self.key})" if self.change else self.key

    def holds(self, value: float, bound: float) -> bool:
        """Whether it holds for a value."""
        return OPERATORS[self.operator](value, bound)

    def distance(self, value: float, bound: float) -> float:
        """From value to bound, below 0 on the wrong side."""
        return bound - value if self.at_most else value - bound

    def applies_to(self, report: MetricReport) -> bool:
        """Whether the report lies in the rule's scope; max looks at groups only."""
        if self.over == "max" and report.group is None:
            return False
        return all(getattr(report, name) == value for name, value in self.scope)


Answer = Literal["passed", "failed", "not shown", "cannot judge"]
"""What comes of a rule. Not shown: it does not hold for what was measured, which lies within the noise of the bound."""
Family = Literal["none", "holm"]
"""Whether the chance of a wrong failure is bounded for each rule, or for all rules together."""
Undecided = Literal["fail", "pass"]
"""What a rule counts as that is not shown to hold nor to fail."""
ANSWERS: dict[bool | None, Answer] = {True: "passed", False: "failed", None: "cannot judge"}


@dataclass(frozen=True)
class GateRow:
    """The outcome of one rule for one report (or, for max and gap, of a model's groups). passed None: cannot judge.

    value: what the bound is held against; estimate: the metric itself, where that is an end of its interval. distance:
    from value to bound, below 0 on the wrong side. shown: whether the rows show that it holds, or fails;
    None where there is no interval. rows_needed: with so many, 4 of 5 samples would show it.
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
    chance: Absent[Share | None] = None
    """How likely such rows are where the rule holds: at any look, of a sequence; else at this one."""
    since: Absent[Count | None] = None
    """The row of a sequence from which on it fails."""


@dataclass(frozen=True, eq=False)
class GateOutcome:
    """An evaluation and what the rules say of it."""

    evaluation: Evaluation
    rows: tuple[GateRow, ...]


def choices_of(rules: Sequence[Rule]) -> tuple[MetricSpec, ...]:
    """The metrics that the rules speak of."""
    return tuple(dict.fromkeys(rule.choice for rule in rules if rule.choice is not None))


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
        _check_bound(rule, task, bool(dataset.classes))
    evaluation = evaluate(dataset, plan, progress)
    notes = evaluation.notes
    differences: Sequence[MetricReport] = ()
    dropped: Sequence[MetricReport] = ()
    choices = choices_of([rule for rule in rules if rule.change == "delta"])
    if choices and len(dataset.models) == 2:
        paired = compare(on_same_rows(dataset), replace(plan, choices=choices), progress, splicing=False)
        differences = paired.contests
    if baseline is not None:
        stakes = {} if evaluation.by_row is None else {"stakes": evaluation.by_row.text}
        baseline = replace(baseline, ours=Circumstances(evaluation.limit or NO_LIMIT, **stakes))
        if any(rule.baseline for rule in rules):
            notes += baseline.note(evaluation.inputs)
        if lost := choices_of([rule for rule in rules if rule.change == "drop"]):
            dropped, more = drops(lost, dataset, evaluation, baseline, progress)
            notes += more
    gaps = _gaps(rules, dataset, plan, progress)
    others = {"delta": differences, "drop": dropped, "gap": gaps}
    rows = judge(rules, evaluation.reports, baseline, others, task, plan.confidence, undecided)
    if anytime:
        if baseline is not None:
            _need_first_rows(dataset, baseline)
        by_text = {rule.text: rule for rule in rules}
        rows = tuple(_watch(by_text[row.rule], row, dataset, plan, baseline, undecided) for row in rows)
    if family == "holm":
        rows = _together(rows, 1 - plan.confidence, undecided)
    if anytime or family == "holm":
        of_what = "any rule that holds fails clearly" if family == "holm" else "a rule that holds fails clearly"
        looks = " at any look, of all looks at these rows in the order of the file," if anytime else ""
        rest = "" if undecided == "pass" else "; what is not shown fails as well, which this does not count"
        notes += (f"the chance that {of_what}{looks} is at most {100 * (1 - plan.confidence):.3g} %{rest}",)
    return GateOutcome(replace(evaluation, notes=notes), rows)


def _watch(
    rule: Rule, row: GateRow, dataset: Dataset, plan: Plan, baseline: Baseline | None, undecided: Undecided
) -> GateRow:
    """The rule judged on rows in their order, so that it may be judged again when there are more of them."""
    if row.bound is None or rule.choice is None:
        return row
    try:
        if rule.over:
            raise Undefined(
                f"goes without {rule.over}(..) here: a sequence has an interval of its own, so write '{rule.key}'"
            )
        values = _values_in_order(rule, rule.choice, row, dataset, plan, baseline)
    except Undefined as undefined:
        return GateRow(row.rule, row.model, row.group, bound=row.bound, reason=f"{rule.key} {undefined.reason}")
    seen = look(values, row.bound, rule.at_most, plan.confidence)
    holds = rule.holds(seen.value, row.bound)
    answer: Answer = "failed" if seen.since else "passed" if holds else "not shown"
    return GateRow(
        rule=row.rule,
        model=row.model,
        group=row.group,
        value=seen.value,
        bound=row.bound,
        passed=answer == "passed" or (answer == "not shown" and undecided == "pass"),
        answer=answer,
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


def _together(rows: Sequence[GateRow], risk: float, undecided: Undecided) -> tuple[GateRow, ...]:
    """Clear failures by Holm 1979, so that all of them together are wrong with at most this probability."""
    chances = [_chance(row, risk) for row in rows]
    rejected = iter(holm([chance for chance in chances if chance is not None], risk))
    together = []
    for row, chance in zip(rows, chances, strict=True):
        clear = chance is None or next(rejected)
        row = replace(row, chance=chance)
        if row.answer == "failed" and row.shown and not clear:
            row = replace(row, answer="not shown", shown=False, passed=undecided == "pass", since=None)
        together.append(row)
    return tuple(together)


def _chance(row: GateRow, risk: float) -> float | None:
    """The p-value of the rule: of a sequence its own, else by a normal one from the end of the interval."""
    if row.chance is not None or row.interval is None or row.estimate is None or row.bound is None:
        return row.chance
    over = -(row.distance or 0.0)
    reach = abs(row.estimate - row.interval[0 if row.estimate > row.bound else 1])
    if reach <= 0:
        return 1.0 if over <= 0 else 0.0
    return NormalDist().cdf(-quantile(1 - risk) * over / reach)


def _gaps(rules: Sequence[Rule], dataset: Dataset, plan: Plan, progress: Progress) -> Sequence[MetricReport]:
    """The gaps between groups that rules ask for: a report for each model, and for each column of groups if several."""
    choices = choices_of([rule for rule in rules if rule.over == "gap"])
    reports = []
    for model in with_lists(dataset, plan).models if choices else ():
        progress(f"{model.name}: gaps between groups")
        rows = model.rows
        by_column: dict[str, dict[str, Result]] = {column: {} for column in rows.groups}
        for column, choice, comparison in compare_groups(model.name, rows, choices, plan.inputs, plan.level):
            by_column[column][choice.key] = comparison.largest
        for column, results in by_column.items():
            group = None if len(by_column) == 1 else column
            reports.append(MetricReport(model.name, group, len(rows), None, results))
    return reports


def parse_rule(text: str) -> Rule:
    """Parse a gate rule; a DecalError says what is wrong with it."""
    try:
        return _parsed(text.strip())
    except DecalError as error:
        problem, fix = error.given
        raise DecalError(f"rule {text!r}{problem}", fix or _EXAMPLE) from None


def _parsed(text: str) -> Rule:
    """The rule that a text is. Errors: DecalError, whose problem is worded to follow the text of the rule."""
    # In hexadecimal digits nothing of a quoted name is taken for grammar.
    plain = _QUOTED.sub(lambda name: f'{name[1]}"{name[2].encode("utf-8", "surrogatepass").hex()}"', text)
    match = _RULE.fullmatch(plain)
    # Of '=<' the expression takes the second half for the operator; after '@model' an equals sign lacks its name.
    if match is None or (match["side"].endswith("=") and "@" not in match["side"]):
        *others, last = OPERATORS
        raise DecalError(f" does not parse: it needs a metric, an operator ({', '.join(others)} or {last}) and a bound")
    side = _SIDE.fullmatch(match["side"])
    over, inner = (side["over"], side["inner"]) if side else ("", match["side"])
    name, *scopes = inner.split("@")
    scope = tuple(map(_scope, scopes))
    changed = _CHANGE.fullmatch(name)
    metric = changed["metric"] if changed else name
    change: Any = changed["change"] if changed else ""
    counted = name.strip() if name.strip() in COUNTED else ""
    choice = None if counted else _metric(metric)
    baseline, bound = _bound_of(match["bound"].strip())
    rule = Rule(text, over, choice, scope, match["op"], baseline, bound, change, counted)
    _check_parts(rule, name.strip())
    return rule


def _scope(text: str) -> tuple[str, str]:
    """The model or the group that a rule is about, as key and name."""
    key, equals, value = (piece.strip() for piece in text.partition("="))
    if key not in ("model", "group") or not equals or not value:
        raise DecalError(f": scope '@{text}' does not parse", "write @model=NAME or @group=NAME")
    if not value.startswith('"'):
        return key, value
    try:
        quoted = bytes.fromhex(value[1:-1]).decode("utf-8", "surrogatepass")
        return key, str(json.loads(quoted, strict=False))
    except ValueError:
        raise DecalError(": a name in quotes does not parse", _QUOTING) from None


def _metric(name: str) -> MetricSpec:
    try:
        return parse(name)
    except DecalError as error:
        if name.strip() in OVER_TIME:
            raise DecalError(" is about rows in the order of time", f"use: decal online {Hint('rule')}") from None
        problem, fix = error.given
        raise DecalError(f": {problem}", fix) from None


def _bound_of(text: str) -> tuple[bool, float]:
    """Whether the bound is the baseline, and the number, or what is added to the baseline."""
    bound = _BOUND.fullmatch(text)
    if bound is None or not (bound["baseline"] or bound["number"]):
        raise DecalError(f": bound {text!r} is not a number or baseline")
    number, baseline = re.sub(r"\s", "", bound["number"] or "0"), bool(bound["baseline"])
    if baseline and bound["number"] and number[0] not in "+-":
        raise DecalError(": baseline and its tolerance need a sign between them")
    if not abs(float(number)) < math.inf:
        raise DecalError(f": bound {text} is infinite, so no value can fail it")
    return baseline, float(number)


def _check_parts(rule: Rule, name: str) -> None:
    """Raise a DecalError where parts of a rule do not go together. name: the metric as it was written."""
    over, change, baseline = rule.over, rule.change, rule.baseline
    scopes = [key for key, _ in rule.scope]
    if rule.counted and (over or baseline):
        without = f"{over}(..)" if over else "a baseline"
        raise DecalError(f": {rule.counted} goes without {without}", f"write '{rule.counted}>=500'")
    of_model = change == "delta" and "model" in scopes
    if change and (over in ("max", "gap") or baseline or of_model):
        without = "max, gap, a baseline and @model" if change == "delta" else "max, gap and 'baseline' as its bound"
        raise DecalError(
            f": {change}(..) goes without {without}",
            f"write '{change}(brier)<=0', 'upper({change}(brier))<=0.001' or '{change}(brier)@group=B<=0'",
        )
    choice = rule.choice
    if change == "drop" and choice is not None and choice.declared.better == "neither":
        raise DecalError(
            f": neither a lower nor a higher {choice.name} is better, so nothing of it is lost",
            f"write '{choice.name}<=baseline+..', or drop(..) of another metric",
        )
    if over == "gap" and "group" in scopes:
        raise DecalError(": gap(..) compares all groups of a column", f"drop the group: 'gap({name})<=0.1'")


def _as_named(name: str) -> str:
    """The name as rules take it: in quotes where it would be read differently without."""
    bare = name and name == name.strip() and name.isprintable() and "@" not in name and not name.startswith('"')
    return name if bare else json.dumps(name, ensure_ascii=False)


def _check_bound(rule: Rule, task: Task | ClassDecision | None, of_classes: bool) -> None:
    """Raise a DecalError where the bound lies outside of what the rule's side can be."""
    if task is None and rule.choice is not None and rule.choice.declared.bounds_in_u_delta:
        return
    low, high = (0.0, math.inf) if rule.choice is None else rule.choice.declared.form(of_classes).bounds(task)
    if rule.change or rule.baseline:
        low, high = low - high, high - low
    elif rule.over == "gap":
        low, high = 0.0, high - low
    low, high = max(low, -MAX_UTILITY), min(high, MAX_UTILITY)
    rounding = 0.0 if rule.counted else 1e-9 * max(abs(low), abs(high))
    if low - rounding <= rule.number <= high + rounding:
        return
    never = "fail" if (rule.number > high) == rule.at_most else "pass"
    what = "the difference from the baseline" if rule.baseline else rule.side
    raise DecalError(
        f"rule {rule.text!r}: {what} lies from {low:g} to {high:g}, so no value can {never} it",
        "give a bound within that range",
    )


def judge(
    rules: Sequence[Rule],
    reports: Sequence[MetricReport],
    baseline: Baseline | None = None,
    others: Mapping[str, Sequence[MetricReport]] = MappingProxyType({}),
    task: Task | ClassDecision | None = None,
    confidence: float = CONFIDENCE,
    undecided: Undecided = "fail",
) -> tuple[GateRow, ...]:
    """Every rule on every report in its scope; a rule that finds none cannot be judged.

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
                rows.append(row if rule.counted else _by_interval(row, rule, report, confidence, undecided))
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
    passed = rule.holds(value, bound)
    return replace(row, passed=passed, answer=ANSWERS[passed], distance=rule.distance(value, bound))


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
        raise Undefined(f"{rule.measure} has no interval here")
    return result.interval[1 if rule.over == "upper" else 0]


def _by_interval(row: GateRow, rule: Rule, report: MetricReport, confidence: float, undecided: Undecided) -> GateRow:
    """The outcome with what the interval says of it: whether the rows show it, and how many would."""
    measured = report.results[rule.key]
    row = replace(row, estimate=measured.value, interval=measured.interval, rows=report.rows)
    if row.passed is None or row.bound is None or measured.interval is None or measured.value is None:
        return row
    low, high = measured.interval
    worst, best = (high, low) if rule.at_most else (low, high)
    shown = rule.holds(worst, row.bound) if row.passed else not rule.holds(best, row.bound)
    if not shown:
        end = worst if rule.holds(measured.value, row.bound) else best
        effect = abs(measured.value - row.bound)
        needed = rows_for(report.rows, abs(end - measured.value), effect, confidence)
        row = replace(row, rows_needed=None if needed is None else max(needed, report.rows + 1))
    if shown or row.passed:
        return replace(row, shown=shown)
    return replace(row, shown=False, passed=undecided == "pass", answer="not shown")


def _instead(rule: Rule, reason: str | None) -> str:
    """A rule that can be judged on what is there."""
    if reason == Undefined(NEEDS_FEATURES).reason and rule.at_most:
        return f"; without them 'gain_recalibration{rule.operator}{rule.number:g}' asks what recalibration would win"
    return f"; without one {example_rule(False)!r} can be judged" if reason == Undefined(NEEDS_TASK).reason else ""


def example_rule(decides: bool) -> str:
    """A rule that most data can be judged by. decides: whether a decision is named."""
    return "gain_recalibration<=0.01" if decides else "brier<=0.2"


def _nothing_in_scope(rule: Rule, reports: Sequence[MetricReport]) -> str:
    if rule.over == "gap" or (rule.over == "max" and all(report.group is None for report in reports)):
        return f"{rule.over}(..) goes over groups: name the column with {Hint('group').words}"
    known = {
        "model": sorted({report.model for report in reports}),
        "group": sorted({report.group for report in reports if report.group is not None}),
    }
    wrong = [
        f"no {name} {value!r} (there are: {', '.join(map(_as_named, known[name])) or 'none'})"
        for name, value in rule.scope
        if value not in known[name]
    ]
    return "; ".join(wrong) or "no report is in its scope"


MOST = 0.5
"""The share of its wealth that a bet may lose at most."""
MEANS = ("brier", "expected_utility", "accuracy", "selection_rate", "net_benefit", "eu_never", "eu_always")
"""Metrics that are means over rows of what is bounded beforehand."""
_LEARNED = ("gain_", "regret", "corp_", "grouping", "irreducible")
_STEPS = 24
"""Halvings in the search of an end."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """A number of each row, in their order, shape (T,), and the least and the most that it can be.

    sizes: the rows that each number is of, (T,), where clusters of rows have one.
    """

    values: Floats
    low: float
    high: float
    sizes: Ints | Literal[1] = 1

    @property
    def rows(self) -> Ints:
        """The rows up to each number, with its own, shape (T,)."""
        return np.cumsum(np.broadcast_to(self.sizes, len(self.values)))

    @cached_property
    def known_before(self) -> tuple[Floats, Floats]:
        """Mean and variance of the rows before each row, from the middle of the range on, shape (T,) each."""
        count, middle = np.arange(1, len(self.values) + 1), (self.low + self.high) / 2
        sums = np.cumsum(self.values)
        mean = (middle + np.append(0.0, sums[:-1])) / count
        misses = (self.values - (middle + sums) / (count + 1)) ** 2
        start = (self.high - self.low) ** 2 / 4
        return mean, (start + np.append(0.0, np.cumsum(misses)[:-1])) / count

    def less(self, other: Bounded, reach: float) -> Bounded:
        """This less the other, on the same rows; reach: the most that the two can differ by on a row."""
        return Bounded(self.values - other.values, -reach, reach, self.sizes)


@dataclass(frozen=True, eq=False)
class Looked:
    """What all looks up to these rows say of a mean. interval: holds at all looks with the chance of the confidence.

    chance: the anytime p-value of the bound, min(1, 1 / the largest wealth of who bets that the rule fails). since: the
    row from which on that was enough, from 1, None where it is not. shown: whether the opposite bet was enough.
    """

    value: float
    interval: Interval
    chance: float
    since: int | None
    shown: bool


def look(rows: Bounded, bound: float, at_most: bool, confidence: float) -> Looked:
    """Judge that the mean is at most, or at least, a bound. Each side may be wrong with probability 1 - confidence."""
    risk = 1 - confidence
    against, for_it = (_log_wealth(rows, bound, above) for above in (at_most, not at_most))
    enough = math.log(1 / risk)
    passed = np.flatnonzero(against >= enough)
    largest = max(float(against.max(initial=0.0)), 0.0)
    return Looked(
        float(rows.values.mean()),
        sequence_interval(rows, confidence),
        math.exp(-largest),
        int(rows.rows[passed[0]]) if len(passed) else None,
        bool(for_it.max(initial=0.0) >= enough),
    )


def sequence_interval(rows: Bounded, confidence: float) -> Interval:
    """What holds the mean at all looks: the means that neither side's bets of half the risk have ruled out."""
    enough = math.log(2 / (1 - confidence))
    ends = []
    for above, far in ((True, rows.low), (False, rows.high)):
        near = float(rows.values.mean())
        for _ in range(_STEPS):
            middle = (far + near) / 2
            ruled_out = _log_wealth(rows, middle, above).max(initial=0.0) >= enough
            far, near = (middle, near) if ruled_out else (far, middle)
        ends.append(far)
    return ends[0], ends[1]


def _log_wealth(rows: Bounded, mu: float, above: bool) -> Floats:
    """Logarithm of the wealth, after each row, of who bets that the mean is above mu, or below it, shape (T,).

    It is a supermartingale where no row's mean, given the rows before it, is on that side of mu.
    """
    d, room = rows.values, mu - rows.low if above else rows.high - mu
    mean, variance = rows.known_before
    apart = mean - mu if above else mu - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        bet = np.clip(np.nan_to_num(apart / (variance + apart**2)), 0.0, MOST / room if room > 0 else np.inf)
    won = bet * (d - mu if above else mu - d)
    return np.cumsum(np.log1p(np.maximum(won, -MOST)))


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


def _need_first_rows(dataset: Dataset, baseline: Baseline) -> None:
    """Raise a DecalError unless the rows of an earlier look are the first of these rows, as they were."""
    for model in dataset.models:
        before = baseline.model_like(model.name)
        if before is None:
            continue
        earlier = before.with_classes(model.rows.classes).rows
        if len(earlier) > len(model.rows):
            where = "it has more rows"
        elif (changed := first_changed(earlier, model.rows)) is not None:
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
