"""An earlier report as a baseline: its values, why one cannot be compared with ours, and what was lost since."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.compare import IDEALS, Difference, compare, side_of_ideal
from decal_cli.analysis.described import stakes_text
from decal_cli.analysis.evaluate import CAPACITY_FAMILIES, Evaluation, Progress, Report
from decal_cli.data import Dataset, Input, Predictions
from decal_cli.data.words import NATURAL, label_text
from decal_cli.declarations.document import Names
from decal_cli.documents import json_of, read_document
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import MetricSpec, Result, parse
from decal_cli.metrics.confidence import Interval
from decal_cli.numbers import many, shares_text, times
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import limit_text
from decal_cli.task import ClassDecision, Task, task_of_rows, utility_text
from decal_cli.version import SCHEMA

MAX_RELATIVE_DIFFERENCE = 1e-9
"""How far utilities may differ, in u_delta, and thresholds: spellings of one task differ by rounding."""


NO_LIMIT = "none"
ALIKE = "the same in all rows"


class CountedAs(NamedTuple):
    """What rows are counted as. share: of label 1 in another population, "" where rows tell it. scores: 'moved' to it
    or 'kept', "" without one. weighted: whether rows have weights. one: the label that counts as 1, '0' or '1' where it
    says by itself what it is.
    """

    share: str = ""
    scores: str = ""
    weighted: bool = False
    one: str = "1"

    @classmethod
    def of(cls, share: str, scores: str, columns: Mapping[str, Any]) -> CountedAs:
        """What rows of these columns are counted as, with a share and scores of another population, or ""."""
        label = label_text(str(columns.get("positive", "1"))) or ""
        return cls(share, scores, "weight" in columns, str(NATURAL.get(label, label)))

    @property
    def text(self) -> str:
        """All of it, in words."""
        of_them = f" counted as a population{self.share and ' with '}{self.share}, scores {self.scores}"
        label = "" if self.one == "1" else f", with label {self.one!r} as 1"
        return f"{'weighted ' * self.weighted}rows{of_them if self.scores else ' as they are'}{label}"

    def same(self, other: CountedAs) -> bool:
        """Whether values can be compared: shares that rows tell differ by chance, and go with any.

        Labels that were words may be 0 and 1 by now.
        """
        natural = [each.one in ("0", "1") for each in (self, other)]
        alike = self.one == other.one or natural[0] != natural[1]
        return alike and self[1:3] == other[1:3] and self.share in ("", other.share)


class Circumstances(NamedTuple):
    """What values depend on besides the task: the capacity, the utilities of rows that have their own, and what rows
    are counted as.
    """

    capacity: str = NO_LIMIT
    stakes: str = ALIKE
    counted: CountedAs = CountedAs()


UNLIMITED = Circumstances()


@dataclass(frozen=True, eq=False)
class Baseline:
    """The values of an earlier report by (model, group) and key, with what they depend on.

    differs: why none of them can be compared with ours; empty where some can. theirs: circumstances of the report;
    ours: of what it is compared with. confidence: of its intervals, None where it has none. rows: those that it was
    computed on, where they are kept.
    """

    path: str
    differs: str
    task: Task | ClassDecision | None = None
    inputs: tuple[Input, ...] = ()
    metrics: Mapping[tuple[str, str | None], Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    theirs: Circumstances = UNLIMITED
    ours: Circumstances = UNLIMITED
    confidence: float | None = None
    rows: Dataset | None = None

    def model_for(self, name: str) -> str:
        """The model that this one is compared with: of the same name, or the only one."""
        models = {each for each, _ in self.metrics}
        return next(iter(models)) if len(models) == 1 else name

    def model_like(self, name: str) -> Predictions | None:
        """The rows of the same model, or of its only one; None where they are not kept, or it has no such model."""
        models = () if self.rows is None else self.rows.models
        return next((each for each in models if each.name == name or len(models) == 1), None)

    def result_of(
        self, spec: MetricSpec, model: str, group: str | None, task: Task | ClassDecision | None
    ) -> tuple[float, Interval | None]:
        """The value and interval of the same model and group, or of its only model; Undefined names what differs."""
        if self.differs:
            raise Undefined(self.differs)
        if not self.ours.counted.same(self.theirs.counted):
            both = f"ours are {self.ours.counted.text}; the baseline's are {self.theirs.counted.text}"
            raise Undefined(f"rows are counted differently: {both}")
        metric = spec.declared
        if metric.decides and self.ours.stakes != self.theirs.stakes:
            both = f"ours are {self.ours.stakes}; the baseline's are {self.theirs.stakes}"
            raise Undefined(f"the utilities of rows differ: {both}")
        if metric.takes_task and not _same_task(task, self.task, metric.bounds_in_u_delta):
            ours, theirs = _task_texts(task, self.task)
            raise Undefined(f"the tasks differ: ours is {ours}; the baseline's is {theirs}")
        if metric.family in CAPACITY_FAMILIES and self.ours.capacity != self.theirs.capacity:
            both = f"ours is {self.ours.capacity}; the baseline's is {self.theirs.capacity}"
            raise Undefined(f"the capacities differ: {both}")
        model = self.model_for(model)
        places = {"model": model, "group": group}
        for at, (what, place) in enumerate(places.items()):
            known = dict.fromkeys(each[at] for each in self.metrics)
            if place not in known and place is not None:
                there = ", ".join(str(each) for each in known if each is not None) or "none"
                raise Undefined(f"the baseline has no {what} {place!r} (there are: {there})")
        results = self.metrics.get((model, group), {})
        return _found(spec, {key: each for key, each in results.items() if key.partition("(")[0] == spec.name})

    def of_same_rows(self, dataset: Dataset) -> bool:
        """Whether its rows are kept, and are those of all models of the data."""
        return all((kept := self.model_like(each.name)) and same_rows(kept, each) for each in dataset.models)

    def of_another_model(self, models: Iterable[str]) -> Names:
        """A line for each of these models that is compared with one of another name."""
        pairs = [(name, self.model_for(name)) for name in models]
        return tuple(
            f"{name} is compared with {theirs}, the only model of baseline {self.path}"
            for name, theirs in pairs
            if theirs != name and not self.differs
        )

    def note(self, inputs: Sequence[Input]) -> Names:
        """A line where it was computed on other data than these."""
        if self.differs or {each.sha256 for each in self.inputs} == {each.sha256 for each in inputs}:
            return ()
        theirs, ours = _data_text(self.inputs), _data_text(inputs)
        if theirs == ours:
            return (f"baseline {self.path} was computed on other contents of {ours}",)
        return (f"baseline {self.path} was computed on other data: {theirs}",)


def read_baseline(path: str) -> Baseline:
    """The baseline of a file. Errors: DecalError, where it is no JSON report of decal."""
    place, fix = f"baseline {path}", f"name a JSON report, written with: {_HOW}"
    return baseline_of(json_of(read_document(path, place, fix), place, fix, constants=True), path)


def baseline_of(document: Any, path: str) -> Baseline:
    """The baseline that a JSON report of decal is; of another schema, it holds nothing that can be compared."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, int):
        raise DecalError(f"baseline {path} is not a report of decal", f"write one with: {_HOW}")
    if schema != SCHEMA:
        return Baseline(path, f"the schemas differ: ours is {SCHEMA}; the baseline's is {schema}")
    try:
        task, of_classes, stakes = document["task"], document.get("class_task"), document.get("row_task")
        decided: Task | ClassDecision | None = None
        if of_classes is not None:
            utility = tuple(tuple(map(float, row)) for row in of_classes["utility"])
            decided = ClassDecision(utility, tuple(map(str, of_classes["actions"])))
            if {*map(len, utility)} != {len(utility[0])} or len(utility) != len(decided.actions):
                raise ValueError
        elif task is not None:
            decided = task_of_rows(task["utility"], task["decision_threshold"], task.get("names", ()))
        intervals = document.get("intervals")
        capacity, per = document.get("capacity"), document.get("columns", {}).get("per")
        limit = NO_LIMIT if capacity is None else limit_text(capacity, per)
        moved = document.get("population")
        of = ("", "") if moved is None else (shares_text(moved["prevalence"]), str(moved["scores"]))
        text = ALIKE if stakes is None else stakes_text(stakes["columns"], stakes["cost_fp"], stakes["cost_fn"])
        return Baseline(
            path,
            "",
            decided,
            tuple(
                Input(
                    str(each["path"]),
                    int(each["rows"]),
                    None if each["positives"] is None else int(each["positives"]),
                    str(each["sha256"]),
                )
                for each in document["inputs"]
            ),
            {
                (str(each["model"]), each["group"]): {
                    key: _result_of(result) for key, result in each["metrics"].items()
                }
                for each in document.get("reports", [document])
            },
            Circumstances(limit, text, CountedAs.of(*of, document.get("columns", {}))),
            confidence=None if intervals is None else float(intervals["confidence"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        raise DecalError(f"baseline {path} lacks its metrics", f"write it anew with: {_HOW}") from None


_HOW = f"{Verb('evaluate')} and {Hint('output', 'report.json')}"


def _result_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A metric's result, of which a baseline may hold anything: its value is looked at where a rule asks for it."""
    parameters = {"parameters": dict(given["parameters"])} if "parameters" in given else {}
    interval = given.get("interval")
    return {"value": given["value"], "interval": interval, "reason": str(given.get("reason")), **parameters}


def _found(spec: MetricSpec, results: Mapping[str, Mapping[str, Any]]) -> tuple[float, Interval | None]:
    """The value and interval at the same parameters. Reports of older versions hold them in the key only."""
    parameters = {
        key: each["parameters"] if "parameters" in each else parse(key).parameters for key, each in results.items()
    }
    same = [key for key, given in parameters.items() if given == spec.parameters]
    if same:
        result = results[same[0]]
        value, ends = result["value"], result["interval"]
        if value is None:
            raise Undefined(f"{spec.key} is undefined in the baseline: {result['reason']}")
        two = isinstance(ends, list) and len(ends) == 2 and all(map(_is_number, ends))
        if not _is_number(value) or not (ends is None or two):
            raise Undefined(f"{spec.key} is not a number in the baseline")
        return float(value), None if ends is None else (float(ends[0]), float(ends[1]))
    if parameters:
        theirs = " and ".join(_call_text(spec.name, given) for given in parameters.values())
        ours = _call_text(spec.name, spec.parameters)
        raise Undefined(f"the parameters differ: ours is {ours}; the baseline's is {theirs}")
    raise Undefined(f"the baseline holds no value of {spec.key} for this model and group: name it when you write one")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def _same_task(a: Task | ClassDecision | None, b: Task | ClassDecision | None, in_utility: bool) -> bool:
    """Whether decisions are the same; in_utility: whether their utilities are, too."""
    if isinstance(a, ClassDecision) and isinstance(b, ClassDecision):
        return a.actions == b.actions and np.shape(a.utility) == np.shape(b.utility) and not _payoffs_apart(a, b).any()
    if isinstance(a, ClassDecision) or isinstance(b, ClassDecision):
        return False
    if a is None or b is None:
        return a is b
    if len(a.envelope) != len(b.envelope):
        return False
    numbers = zip((*a.thresholds, *a.decision_thresholds), (*b.thresholds, *b.decision_thresholds), strict=True)
    pairs = [(ours, theirs, 1.0) for ours, theirs in numbers]
    if in_utility:
        rows = zip(a.undominated, b.undominated, strict=True)
        pairs += [(ours, theirs, a.u_delta) for row, other in rows for ours, theirs in zip(row, other, strict=True)]
    return all(math.isclose(x, y, rel_tol=0, abs_tol=MAX_RELATIVE_DIFFERENCE * scale) for x, y, scale in pairs)


def _payoffs_apart(a: ClassDecision, b: ClassDecision) -> np.ndarray:
    """Which payoffs differ by more than rounding, (A, K): the price of abstention .9 leaves a last bit more than .1."""
    return ~np.isclose(a.utility, b.utility, rtol=0, atol=MAX_RELATIVE_DIFFERENCE * a.u_delta)


def _task_texts(*tasks: Task | ClassDecision | None) -> Iterable[str]:
    """Each of two tasks that differ, by the first thing in which they do, where both are of several classes."""
    a, b = (task if isinstance(task, ClassDecision) else None for task in tasks)
    if a is None or b is None or np.shape(a.utility) != np.shape(b.utility):
        return map(_task_text, tasks)
    if a.actions != b.actions:
        return (f"of the actions {', '.join(each.actions)}" for each in (a, b))
    at, label = np.argwhere(_payoffs_apart(a, b))[0]
    return (f"one where {a.actions[at]} is worth {u.utility[at][label]:.12g} in class {label + 1}" for u in (a, b))


def _task_text(task: Task | ClassDecision | None) -> str:
    if task is None:
        return "none"
    if isinstance(task, ClassDecision):
        return f"of {len(task.actions)} actions and {len(task.utility[0])} classes"
    best, now = (
        " and ".join(f"{threshold:.12g}" for threshold in thresholds)
        for thresholds in (task.thresholds, task.decision_thresholds)
    )
    at = "" if now == best else f", decided at {now}"
    return f"t* = {best}{at} (utility '{utility_text(task.utility, task.names)}')"


def _call_text(name: str, parameters: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"{name}({listed})" if listed else name


def _data_text(inputs: Sequence[Input]) -> str:
    def text(given: Input) -> str:
        positives = "" if given.positives is None else f", {given.positives:,} positive"
        return f"{given.path} ({many(given.rows, 'row')}{positives})"

    return ", ".join(map(text, inputs))


NO_INTERVAL = "the baseline holds none of this metric"
OTHER_LEVEL = "that of the baseline is of another confidence"


def drops(
    choices: Sequence[MetricSpec], dataset: Dataset, evaluation: Evaluation, baseline: Baseline, progress: Progress
) -> tuple[tuple[Report, ...], Names]:
    """What each model lost since the baseline, as reports, and notes on how that was compared.

    Where the rows of the baseline are kept and are the same, the interval is the paired one. Else both samples count
    as independent, which makes it too wide where they share rows.
    """
    reports = []
    notes: list[str] = []
    for model in dataset.models:
        kept = baseline.model_like(model.name)
        of_model = [report for report in evaluation.reports if report.model == model.name]
        if kept is not None and same_rows(kept, model):
            before = kept.with_classes(model.rows.classes)
            two = replace(dataset, models=(replace(before, name=f"{baseline.path}: {kept.name}"), model))
            compared = compare(two, replace(evaluation.plan, choices=tuple(choices)), progress, splicing=False)
            reports += [
                replace(report, results={spec.key: _paired(spec, contest.differences) for spec in choices})
                for report, contest in zip(of_model, compared.contests, strict=True)
            ]
            continue
        lost = [
            replace(report, results={spec.key: _apart(spec, report, evaluation, baseline) for spec in choices})
            for report in of_model
        ]
        reports += lost
        notes += baseline.note(evaluation.inputs)
        notes += [
            f"drop({spec.key}) has no interval: {why}"
            for spec in choices
            for why in (NO_INTERVAL, OTHER_LEVEL)
            if any(report.results[spec.key].no_interval == why for report in lost)
        ]
        if kept is not None:
            notes.append(f"drop(..) is not paired: the rows of {baseline.path} are not these rows")
    return tuple(reports), tuple(dict.fromkeys(notes))


def same_rows(one: Predictions, other: Predictions) -> bool:
    """Whether two models were scored on the same rows in the same order, as far as all but the scores tells."""
    a, b = one.rows, other.rows
    return not (a.counted or b.counted) and len(a) == len(b) and first_changed(a, b) is None


def first_changed(before: Rows, now: Rows, scored: bool = False) -> int | None:
    """The first of the rows of `before`, from 0, that is not the same row now; None where all are.

    now: at least as many rows. Rows are the same where they agree in all but their features, and but their scores
    unless `scored`.
    """
    count = len(before)
    if set(before.classes) != set(now.classes) or set(before.groups) != set(now.groups):
        return 0
    names = np.array(before.classes), np.array(now.classes)
    labels = (before.label, now.label) if not before.classes else (names[0][before.label], names[1][now.label])
    pairs = [labels, (before.weights, now.weights)]
    pairs += [(before.groups[name], now.groups[name]) for name in before.groups]
    if (before.unit is None) != (now.unit is None) or set(before.amounts) != set(now.amounts):
        return 0
    pairs += [(before.amounts[role], now.amounts[role]) for role in before.amounts]
    if scored:
        pairs.append((before.score, now.score))
    changed = np.zeros(count, dtype=bool)
    for old, new in pairs:
        apart = old != new[:count]
        changed |= apart if apart.ndim == 1 else apart.any(axis=1)
    return int(np.argmax(changed)) if changed.any() else None


def _lost(spec: MetricSpec, before: Result, now: Result, interval: Interval | None) -> Result:
    """What was lost, above 0 where it became worse. interval: of now less before."""
    then, today = before.value or 0.0, now.value or 0.0
    sign = -1.0 if spec.declared.better == "higher" else 1.0
    if (ideal := IDEALS.get(spec.declared.better)) is not None:
        side = side_of_ideal(spec.declared, before, now)
        if side == 0:
            lost = abs(today - ideal) - abs(then - ideal)
            return Result(lost, no_interval="the two may lie on different sides of the ideal")
        sign = float(side)
    return Result(sign * (today - then), times(interval, sign))


def _paired(spec: MetricSpec, differences: Mapping[str, Difference]) -> Result:
    measured = differences[spec.key]
    if measured.a.value is None or measured.b.value is None:
        return measured.difference
    return _lost(spec, measured.a, measured.b, measured.difference.interval)


def _apart(spec: MetricSpec, report: Report, evaluation: Evaluation, baseline: Baseline) -> Result:
    """The drop and its interval, from values and intervals of two independent samples (Zou and Donner 2008)."""
    now = report.results[spec.key]
    if now.value is None:
        return now
    try:
        before, ends = baseline.result_of(spec, report.model, report.group, evaluation.decided_by)
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    if now.interval is None or ends is None or baseline.confidence != evaluation.plan.confidence:
        why = now.no_interval if now.interval is None else NO_INTERVAL if ends is None else OTHER_LEVEL
        lost = _lost(spec, Result(before, ends), now, None)
        return replace(lost, no_interval=lost.no_interval or why)
    apart = now.value - before
    low = apart - math.hypot(now.value - now.interval[0], ends[1] - before)
    high = apart + math.hypot(now.interval[1] - now.value, before - ends[0])
    return _lost(spec, Result(before, ends), now, (low, high))
