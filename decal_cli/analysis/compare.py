"""Two models on the same rows: every metric's difference with its paired interval, the curves, and the splice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis import evaluate as report
from decal_cli.analysis.evaluate import Evaluation, Interval, Plan, Progress, Report, Result
from decal_cli.analysis.splice import Splice, splice
from decal_cli.curves.crossings import BrierDifference, Crossing, Lead, Side, band, brier_difference
from decal_cli.data import Dataset, Paired
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import Choice, bootstrap, parse
from decal_cli.metrics import paired as analytic
from decal_cli.metrics.bootstrap import RESAMPLES
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.table import CELLS, FEWEST_ROWS, Table
from decal_cli.task import BinaryTask

IDEALS = {"zero": 0.0, "one": 1.0}
HEADLINE = (parse("expected_utility"), parse("brier"))
"""What the summary speaks of, whatever metrics were asked for."""


@dataclass(frozen=True)
class Difference:
    """One metric of both models: a, b, and B - A with its paired interval.

    method: how the interval was made, 'analytic' or 'bootstrap', None where there is none. better: the model that the
    metric's direction favours; None where the two are equal, undefined, or neither direction is better.
    by_chance: whether the interval holds 0, so that chance may have made the difference; None where there is no
    interval, or where an ideal value lies between the two.
    """

    a: Result
    b: Result
    difference: Result
    method: Literal["analytic", "bootstrap"] | None = None
    better: Side | None = None
    by_chance: bool | None = None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Who wins at which thresholds: the exact curves, and what of them is beyond noise at the plan's confidence.

    reach: standard errors beyond which one model is ahead, at all thresholds at once.
    """

    curves: BrierDifference
    reach: float
    leads: tuple[Lead, ...]
    crossings: tuple[Crossing, ...]


@dataclass(frozen=True, eq=False)
class Contest:
    """The comparison on all rows (group None) or on one group of them.

    differences: of the metrics that were asked for, by key. headline: of the Brier score, and of the expected utility
    where there is a task, by key, whatever was asked for.
    """

    group: str | None
    rows: int
    positives: int
    pairs: int
    differences: Mapping[str, Difference]
    headline: Mapping[str, Difference]
    thresholds: Thresholds


@dataclass(frozen=True, eq=False)
class Comparison:
    """All contests of two models, the first on all rows, and the splice or the reason why there is none."""

    evaluation: Evaluation
    models: tuple[str, str]
    contests: tuple[Contest, ...]
    splice: Splice | None
    no_splice: str | None

    @property
    def cells(self) -> int | None:
        """On how many cells pairs were resampled, where there are too many to resample them one by one."""
        return CELLS if any(contest.pairs > CELLS for contest in self.contests) else None

    def name(self, side: Side) -> str:
        """The model's name."""
        return self.models[0 if side == "a" else 1]

    def as_reports(self) -> tuple[Report, ...]:
        """The differences as reports, for gate rules."""
        return tuple(
            Report(
                f"{self.models[1]} - {self.models[0]}",
                contest.group,
                contest.rows,
                contest.positives,
                contest.pairs,
                0,
                False,
                {key: found.difference for key, found in contest.differences.items()},
            )
            for contest in self.contests
        )


def compare(dataset: Dataset, plan: Plan, progress: Progress = lambda text: None, splicing: bool = True) -> Comparison:
    """Compare the two models of a data set whose rows are the same, on all rows and on every group.

    splicing: whether the splice is asked for; gate rules need only the differences.
    """
    if len(dataset.models) != 2:
        raise DecalError(f"a comparison needs exactly two models, not {len(dataset.models)}", "name two with --score")
    choices = tuple(dict.fromkeys((*plan.choices, *HEADLINE)))
    values = report.evaluate(dataset, replace(plan, choices=choices, intervals=False), progress)
    evaluation = replace(values, plan=plan)
    half = len(values.reports) // 2
    sides = zip(values.reports[:half], values.reports[half:], strict=True)
    first, second = dataset.models
    contests = []
    whole: PairTable | None = None
    parts = zip(first.rows.by_group(), second.rows.by_group(), strict=True)
    for (of_a, of_b), ((group, a), (_, b)) in zip(sides, parts, strict=True):
        progress(f"the difference{'' if group is None else ' in ' + group}")
        pairs = pair_up(a.score, b.score, a.label, a.weight)
        whole = whole or pairs
        contests.append(_contest(of_a, of_b, pairs, plan))
    made, reason = _splice(whole, plan) if splicing and whole is not None else (None, None)
    return Comparison(evaluation, (first.name, second.name), tuple(contests), made, reason)


def shown_choices(dataset: Dataset) -> tuple[Choice, ...]:
    """The readable choice of an evaluation, less what cannot tell two models apart."""
    return tuple(
        choice
        for choice in report.shown_choices(dataset)
        if choice.metric.better != "neither"
        and choice.metric.name != report.WORST
        and analytic.method(choice.metric) is not None
    )


def spliced(paired: Paired, found: Comparison) -> dict[str, NDArray[Any]]:
    """The columns of the spliced scores, row by row: the row's id or number, its label, its score."""
    if found.splice is None:
        raise DecalError(f"there is no splice to write: {found.no_splice}", "use the better model alone")
    a, b = (model.rows for model in paired.dataset.models)
    label = str(paired.dataset.columns["label"])
    return {paired.id_name: paired.ids, label: a.label, "p_splice": found.splice.cut.scores(a.score, b.score)}


def _splice(pairs: PairTable, plan: Plan) -> tuple[Splice | None, str | None]:
    try:
        return splice(pairs, plan.task, np.random.default_rng([plan.seed, RESAMPLES])), None
    except Undefined as undefined:
        return None, undefined.reason


def _contest(of_a: Report, of_b: Report, pairs: PairTable, plan: Plan) -> Contest:
    choices = {choice.key: choice for choice in (*plan.choices, *HEADLINE)}
    found = {key: _difference(choice, of_a, of_b) for key, choice in choices.items()}
    if plan.intervals:
        defined = [choice for key, choice in choices.items() if found[key].difference.value is not None]
        for key, interval in _intervals(defined, found, pairs, plan).items():
            found[key] = _judged(found[key], choices[key], interval, plan.task)
    asked = {choice.key: found[choice.key] for choice in plan.choices}
    headline = {choice.key: found[choice.key] for choice in HEADLINE if found[choice.key].difference.value is not None}
    return Contest(of_a.group, of_a.rows, of_a.positives, len(pairs), asked, headline, _thresholds(pairs, plan))


def _difference(choice: Choice, of_a: Report, of_b: Report) -> Difference:
    a, b = of_a.results[choice.key], of_b.results[choice.key]
    if a.value is None or b.value is None:
        sides = [(report.model, side.reason) for report, side in ((of_a, a), (of_b, b)) if side.value is None]
        names = "" if len(sides) == 2 and a.reason == b.reason else f"{sides[0][0]}: "
        return Difference(a, b, Result(None, None, f"{names}{sides[0][1]}"))
    return Difference(a, b, Result(b.value - a.value), None, _better(choice, a.value, b.value))


def _better(choice: Choice, a: float, b: float) -> Side | None:
    direction = choice.metric.better
    if a == b or direction == "neither":
        return None
    if direction in IDEALS:
        from_a, from_b = abs(a - IDEALS[direction]), abs(b - IDEALS[direction])
        return None if from_a == from_b else "a" if from_a < from_b else "b"
    return "b" if (b > a) == (direction == "higher") else "a"


def _judged(found: Difference, choice: Choice, interval: Interval, task: BinaryTask | None) -> Difference:
    """With its interval, cut to the range that a difference can have, and what it says of chance."""
    low, high = choice.metric.range
    unit = task.u_delta if choice.metric.bounds_in_u_delta and task is not None else 1.0
    width = (high - low) * unit
    start, end = (min(max(edge, -width), width) for edge in interval)
    by_chance: bool | None = start <= 0 <= end
    ideal = IDEALS.get(choice.metric.better)
    a, b = found.a.value, found.b.value
    if ideal is not None and a is not None and b is not None and (a - ideal) * (b - ideal) < 0:
        by_chance = None
    return replace(
        found,
        difference=Result(found.difference.value, (start, end)),
        method=analytic.method(choice.metric),
        by_chance=by_chance,
    )


def _intervals(
    choices: Sequence[Choice], found: Mapping[str, Difference], pairs: PairTable, plan: Plan
) -> dict[str, Interval]:
    """Paired intervals by key: from the error of a mean difference, from DeLong's, else from the bootstrap."""
    reach = quantile(plan.confidence)
    intervals: dict[str, Interval] = {}
    if pairs.effective_rows < FEWEST_ROWS:
        return intervals
    for choice in choices:
        if analytic.method(choice.metric) == "analytic":
            estimate = analytic.difference(choice, pairs, plan.task)
            value = found[choice.key].difference.value
            if estimate is not None and value is not None:
                intervals[choice.key] = value - reach * estimate.error, value + reach * estimate.error
    rest = [choice for choice in choices if analytic.method(choice.metric) == "bootstrap"]
    return intervals | _bootstrap(rest, found, pairs, plan)


def _bootstrap(
    choices: Sequence[Choice], found: Mapping[str, Difference], pairs: PairTable, plan: Plan
) -> dict[str, Interval]:
    """Bias-corrected normal intervals of the differences, both models from the same draws, as in `bootstrap`."""
    if not choices:
        return {}
    cells = pairs.cells
    centres = {choice: _apart(choice, cells.tables, plan) for choice in choices}
    draws: dict[Choice, list[float]] = {choice: [] for choice in choices}
    for tables in _resamples(cells, np.random.default_rng([plan.seed, RESAMPLES])):
        for choice in choices:
            value = _apart(choice, tables, plan)
            if value is not None:
                draws[choice].append(value)
    intervals = {}
    for choice in choices:
        centre, drawn, value = centres[choice], np.array(draws[choice]), found[choice.key].difference.value
        if centre is not None and value is not None and len(drawn) > RESAMPLES // 2:
            middle = value - (float(drawn.mean()) - centre)
            reach = quantile(plan.confidence) * float(drawn.std(ddof=1))
            intervals[choice.key] = (middle - reach, middle + reach)
    return intervals


def _resamples(cells: PairTable, rng: np.random.Generator) -> Iterator[tuple[Table, Table]]:
    for _ in range(RESAMPLES):
        try:
            yield cells.resample(rng)
        except Undefined:
            continue


def _apart(choice: Choice, tables: tuple[Table, Table], plan: Plan) -> float | None:
    a, b = (bootstrap.value_or_none(choice, {Table: table, BinaryTask: plan.task}, plan.seed) for table in tables)
    return None if a is None or b is None else b - a


def _thresholds(pairs: PairTable, plan: Plan) -> Thresholds:
    curves, reach = brier_difference(pairs), band(pairs, plan.confidence, np.random.default_rng([plan.seed, RESAMPLES]))
    return Thresholds(curves, reach, curves.leads(reach), curves.crossings(reach))
