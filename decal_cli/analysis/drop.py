"""What a model lost since its baseline: of each metric, above 0 where it became worse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from decal_cli.analysis.baseline import Baseline
from decal_cli.analysis.compare import IDEALS, Difference, compare
from decal_cli.analysis.evaluate import Evaluation, Progress, Report
from decal_cli.data import Dataset, Predictions
from decal_cli.errors import Undefined
from decal_cli.metrics import MetricSpec, Result
from decal_cli.metrics.confidence import Interval
from decal_cli.tables.rows import Rows

OTHER_LEVEL = "the baseline has no interval of this confidence"


def drops(
    choices: Sequence[MetricSpec],
    dataset: Dataset,
    evaluation: Evaluation,
    baseline: Baseline,
    progress: Progress = lambda text: None,
) -> tuple[tuple[Report, ...], tuple[str, ...]]:
    """What each model lost since the baseline, as reports, and notes on how that was compared.

    Where the rows of the baseline are kept and are the same, the interval is the paired one. Else both samples count
    as independent, which makes it too wide where they share rows.
    """
    reports: list[Report] = []
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
        reports += [
            replace(report, results={spec.key: _apart(spec, report, evaluation, baseline) for spec in choices})
            for report in of_model
        ]
        if kept is not None:
            notes.append(f"drop(..) is not paired: the rows of {baseline.path} are not these rows")
    return tuple(reports), tuple(dict.fromkeys((*baseline.note(evaluation.inputs), *notes) if notes else ()))


def same_rows(one: Predictions, other: Predictions) -> bool:
    """Whether two models were scored on the same rows in the same order, as far as all but the scores tells."""
    a, b = one.rows, other.rows
    return not (a.counted or b.counted) and len(a) == len(b) and first_changed(a, b) is None


def first_changed(before: Rows, now: Rows) -> int | None:
    """The first of the rows of `before`, from 0, that is not the same row now; None where all are.

    now: at least as many rows. Rows are the same where they agree in all but their scores and features.
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
    changed = np.zeros(count, dtype=bool)
    for old, new in pairs:
        apart = old != new[:count]
        changed |= apart if apart.ndim == 1 else apart.any(axis=1)
    return int(np.argmax(changed)) if changed.any() else None


def _sign(spec: MetricSpec, before: float, now: float) -> float | None:
    """By what to multiply now less before, so that a loss is above 0; None where the ideal lies between the two."""
    better = spec.declared.better
    if better not in IDEALS:
        return -1.0 if better == "higher" else 1.0
    sides = before - IDEALS[better], now - IDEALS[better]
    return None if sides[0] * sides[1] < 0 else 1.0 if sum(sides) >= 0 else -1.0


def _lost(spec: MetricSpec, before: float, now: float, interval: Interval | None) -> Result:
    """interval: of now less before."""
    sign = _sign(spec, before, now)
    if sign is None:
        ideal = IDEALS[spec.declared.better]
        return Result(abs(now - ideal) - abs(before - ideal), no_interval="the ideal lies between the two values")
    ends = None if interval is None else sorted(sign * end for end in interval)
    return Result(sign * (now - before), None if ends is None else (ends[0], ends[1]))


def _paired(spec: MetricSpec, differences: Mapping[str, Difference]) -> Result:
    measured = differences[spec.key]
    if measured.a.value is None or measured.b.value is None:
        return measured.difference
    return _lost(spec, measured.a.value, measured.b.value, measured.difference.interval)


def _apart(spec: MetricSpec, report: Report, evaluation: Evaluation, baseline: Baseline) -> Result:
    """From the values and intervals of two independent samples (Zou and Donner 2008)."""
    now = report.results[spec.key]
    if now.value is None:
        return now
    try:
        before, ends = baseline.result_of(spec, report.model, report.group, evaluation.decided_by)
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    if ends is None or now.interval is None:
        return _lost(spec, before, now.value, None)
    if baseline.confidence != evaluation.plan.confidence:
        return replace(_lost(spec, before, now.value, None), no_interval=OTHER_LEVEL)
    apart = now.value - before
    low = apart - math.hypot(now.value - now.interval[0], ends[1] - before)
    high = apart + math.hypot(now.interval[1] - now.value, before - ends[0])
    return _lost(spec, before, now.value, (low, high))
