"""Two models on the same rows: every metric's difference with its paired interval, the curves, the decisions that
differ, and the splice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis.described import Clusters, Section
from decal_cli.analysis.evaluate import WORST, Evaluation, MetricReport, Plan, Progress, Report
from decal_cli.analysis.splice import NoSplice, Splice, splice
from decal_cli.curves.crossings import BrierDifference, Crossing, Lead, band, brier_difference
from decal_cli.data import Dataset, Paired
from decal_cli.declarations.document import Count, Hidden, Known, Names, Said, Size
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import Metric, MetricSpec, Result, known_values, measure_all, parse
from decal_cli.metrics import paired as paired_metrics
from decal_cli.metrics.confidence import RESAMPLES
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.design import Clustered, Design
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS, Floats
from decal_cli.task import ClassDecision, RowTask

IDEALS = {"zero": 0.0, "one": 1.0}
HEADLINE = (parse("expected_utility"), parse("brier"))
"""Metrics that the summary compares, whatever metrics were asked for."""
AT_CAPACITY = parse("utility_at_capacity")
"""The metric that the summary compares as well, where a capacity limits the rows to act on."""

NOT_EXACT = "not known from cells of two scores; counts of every pair of scores give it"
AT_NO_EDGE = "not known from cells of two scores of which t* is no edge; `decal sql` makes it one with its threshold"


@dataclass(frozen=True)
class Difference:
    """One metric of both models: a, b, and B - A with its paired interval.

    method: how the interval was made, 'analytic' or 'bootstrap', None where there is none. better: the model that the
    metric's direction favours, by name; None where the two are equal, undefined, or neither direction is better.
    by_chance: whether the interval holds 0, so that chance may have made the difference; None where there is no
    interval, or where the two may lie on different sides of an ideal value.
    """

    a: Result
    b: Result
    difference: Result
    method: Literal["analytic", "bootstrap"] | None = None
    better: str | None = None
    by_chance: bool | None = None


@dataclass(frozen=True, eq=False)
class Thresholds(Section):
    """Who wins at which thresholds. dominates: the model that loses at none of them on these rows, if one does.
    crossings_on_these_rows: how often the leader changes, chance included. band: standard errors beyond which a model
    is ahead, at all thresholds at once; null where the two hardly differ.
    """

    dominates: str | None
    band: Known
    crossings_on_these_rows: Count
    crossings: tuple[Crossing, ...]
    ahead: tuple[Lead, ...]
    curves: Hidden[BrierDifference]
    tested: Hidden[bool] = True
    """Whether there are clusters enough to tell who is ahead."""


@dataclass(frozen=True, eq=False)
class ModelComparison(MetricReport):
    """The comparison on all rows (group None) or on one group of them. model: the second less the first.

    results: differences of the metrics that were asked for, by key, which `differences` has in full. headline: of the
    Brier score, and of the expected utility where there is a task, by key, whatever was asked for. pairs: of scores;
    0 where there are only cells of them, or several classes.
    """

    pairs: int
    differences: Mapping[str, Difference]
    headline: Mapping[str, Difference]


@dataclass(frozen=True, eq=False)
class Comparison:
    """All contests of two models, the first on all rows; and the splice, None where none was asked for."""

    evaluation: Evaluation
    models: tuple[str, str]
    contests: tuple[ModelComparison, ...]
    splice: Splice | NoSplice | None


def compare(
    dataset: Dataset, plan: Plan, progress: Progress = lambda text: None, splicing: bool = True, ids: Ids | None = None
) -> Comparison:
    """Compare the two models of a data set whose rows are the same, on all rows and on every group.

    splicing: whether the splice is asked for; gate rules need only the differences. ids: what rows are called, (T,).
    """
    plan = plan.for_rows(dataset)
    dataset = evaluating.with_lists(dataset, plan)
    headline = HEADLINE if dataset.capacity is None else (AT_CAPACITY, *HEADLINE)
    choices = tuple(dict.fromkeys((*plan.choices, *headline)))
    values = evaluating.evaluate(dataset, replace(plan, choices=choices, intervals=False), progress)
    evaluation = replace(values, plan=plan)
    half = len(values.reports) // 2
    sides = zip(values.reports[:half], values.reports[half:], strict=True)
    first, second = dataset.models
    contests = []
    whole: PairTable | None = None
    parts = zip(first.rows.by_group(), second.rows.by_group(), strict=True)
    for (of_a, of_b), ((group, a), (_, b)) in zip(sides, parts, strict=True):
        progress(f"the difference{'' if group is None else ' in ' + group}")
        both = _Both(of_a, of_b, (a, b), None if a.classes else a.pairs_with(b), plan)
        whole = whole or both.pairs
        sections = both.sections(values.decision, ids if group is None else None)
        contests.append(both.compared(headline).with_sections(of_a.find(Clusters), *sections))
    at = contests[0].find(Thresholds)
    joined: Splice | NoSplice | None = None
    if splicing:
        try:
            if whole is None:
                raise Undefined("scores of several classes have no thresholds")
            if at is None:
                raise Undefined("cells of two scores give no curves")
            rng = np.random.default_rng([plan.seed, RESAMPLES])
            joined = splice(whole, at.curves, at.crossings, plan.task, rng, plan.confidence)
        except Undefined as undefined:
            joined = NoSplice(None, undefined.reason)
    return Comparison(evaluation, (first.name, second.name), tuple(contests), joined)


def shown_choices(dataset: Dataset, plan: Plan) -> tuple[MetricSpec, ...]:
    """The readable choice of an evaluation, less what cannot tell two models apart."""
    return tuple(
        choice
        for choice in evaluating.shown_choices(dataset, plan)
        if choice.declared.better != "neither"
        and choice.name != WORST
        and (dataset.classes or paired_metrics.method(choice.declared) is not None)
    )


def spliced(paired: Paired, comparison: Comparison) -> dict[str, NDArray[Any]]:
    """The columns of the spliced scores, row by row: the row's id or number, its label, its score."""
    if not isinstance(comparison.splice, Splice):
        why = comparison.splice.reason if comparison.splice else "none was asked for"
        raise DecalError(f"there is no splice to write: {why}", "use the better model alone")
    a, b = (model.rows for model in paired.dataset.models)
    label = str(paired.dataset.columns["label"])
    return {paired.id_name: paired.ids, label: a.label, "p_splice": comparison.splice.cut.scores(a.score, b.score)}


@dataclass(frozen=True, eq=False)
class _Both:
    """Both models on the same rows. pairs: of scores; None for rows of several classes, which have no threshold."""

    a: Report
    b: Report
    rows: tuple[Rows, Rows]
    pairs: PairTable | None
    plan: Plan

    def compared(self, heads: Sequence[MetricSpec]) -> ModelComparison:
        """The differences of metrics. heads: of those that the summary compares."""
        differences, a, pairs = self._differences((*self.plan.choices, *heads)), self.a, self.pairs
        asked = {spec.key: differences[spec] for spec in self.plan.choices}
        headline = {spec.key: each for spec in heads if (each := differences[spec]).difference.value is not None}
        results = {key: each.difference for key, each in asked.items()}
        size = 0 if pairs is None or isinstance(pairs, CellPairs) else len(pairs)
        name = f"{self.b.model} - {a.model}"
        return ModelComparison(name, a.group, a.rows, a.positives, results, size, asked, headline)

    def sections(self, decision: ClassDecision | None, ids: Ids | None) -> Iterator[Section | None]:
        """Rows that only one acts on, or decisions that differ; and, where pairs are known, who wins where."""
        rows, pairs, plan = self.rows, self.pairs, self.plan
        if pairs is None:
            if decision is not None:
                a, b = (each.class_table for each in rows)
                sides = Decisions.of_classes(a, decision), Decisions.of_classes(b, decision)
                yield disagreements(*sides, decision.actions, a.top.design, len(a))
            return
        swapped, task, cells = swap(*rows, ids), plan.binary, pairs if isinstance(pairs, CellPairs) else None
        yield swapped
        # Cells may not say how every row is decided.
        if task is not None and swapped is None and (cells is None or cells.decided_at(task.decision_threshold)):
            yield disagreements(*Decisions.of_pairs(pairs, task), task.actions, pairs.design, len(rows[0]))
        if cells is None:
            few = pairs.effective_rows < FEWEST_ROWS
            adjusted = None if few else pairs.design.confidence(plan.confidence)
            rng = np.random.default_rng([plan.seed, RESAMPLES])
            curves = brier_difference(pairs, (self.a.model, self.b.model))
            beyond = float("inf") if adjusted is None else band(pairs, adjusted, rng)
            crossings, leads = curves.crossings(beyond), curves.leads(beyond)
            yield Thresholds(
                curves.dominates, beyond, len(curves.zeros), crossings, leads, curves, adjusted is not None
            )

    def _differences(self, specs: Sequence[MetricSpec]) -> dict[MetricSpec, Difference]:
        """The difference of each metric, with its interval where there is one."""
        rows, pairs, plan = self.rows, self.pairs, self.plan
        differences = {spec: self._difference(spec) for spec in specs}
        adjusted = (pairs.design.confidence if pairs else rows[0].adjusted_confidence)(plan.level)
        if adjusted is None:
            return differences
        values = known_values({spec: each.difference for spec, each in differences.items()})
        # What metrics of the two models are computed from, on units that both share.
        a, b = (plan.inputs(each) for each in rows)
        to_ideal = [spec for spec in values if spec.declared.better in IDEALS]
        of_a, of_b = (measure_all(to_ideal, each, adjusted) for each in (a, b))
        differences |= {spec: replace(differences[spec], a=of_a[spec], b=of_b[spec]) for spec in to_ideal}
        stakes = [row_stakes(each, plan.decision) for each in rows] if isinstance(plan.decision, RowTask) else ()
        a, b = paired_metrics.of_pairs(a, b, pairs, *stakes)
        for spec, ends in paired_metrics.intervals(values, a, b, adjusted, pairs).items():
            one, holds_0 = differences[spec], ends[0] <= 0 <= ends[1]
            differences[spec] = replace(
                one,
                difference=replace(one.difference, interval=ends),
                method=paired_metrics.method(spec.declared, pairs is None, plan.by_row),
                by_chance=None if not holds_0 and side_of_ideal(spec.declared, one.a, one.b) == 0 else holds_0,
            )
        return differences

    def _difference(self, spec: MetricSpec) -> Difference:
        a, b = self.a.results[spec.key], self.b.results[spec.key]
        if a.value is None or b.value is None:
            sides = [f"{report.model}: {side.reason}" for report, side in ((self.a, a), (self.b, b)) if side.reason]
            return Difference(a, b, Result(None, None, a.reason if a.reason == b.reason else "; ".join(sides)))
        if any(side.within is not None and side.within.bound for side in (a, b)):
            of_decisions = {*spec.declared.needs} <= {Decisions, Acting}
            unknown = Result(None, None, AT_NO_EDGE if of_decisions else NOT_EXACT)
            return Difference(unknown, unknown, unknown)
        ahead = _ahead(spec.declared, a.value, b.value)
        better = self.b.model if ahead > 0 else self.a.model if ahead < 0 else None
        return Difference(a, b, Result(b.value - a.value), None, better)


def side_of_ideal(metric: Metric, a: Result, b: Result) -> int:
    """On which side of the ideal value both lie beyond noise, 1 or -1; 0 where they may lie on different ones.

    1 for a metric without an ideal. Where one may lie on the other side, the difference of the two does not tell which
    is nearer.
    """
    if metric.better not in IDEALS:
        return 1
    ideal, sides = IDEALS[metric.better], set[int]()
    for each in (a, b):
        low, high = each.interval or (ideal, ideal)
        sides.add((low > ideal) - (high < ideal))
    return sides.pop() if len(sides) == 1 else 0


def _ahead(metric: Metric, a: float, b: float) -> float:
    """The amount by which B is better than A in a metric's direction; 0 where they differ by rounding alone."""
    if math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15):
        return 0.0
    if metric.better in IDEALS:
        return abs(a - IDEALS[metric.better]) - abs(b - IDEALS[metric.better])
    return {"higher": b - a, "lower": a - b, "neither": 0.0}[metric.better]


@dataclass(frozen=True)
class ActionPair:
    """Rows, by their weight, for which A takes one action and B another. gain: what B wins on them, summed."""

    a: str
    b: str
    rows: Size
    gain: float


@dataclass(frozen=True, eq=False)
class Disagreements(Section):
    """Rows by the actions that two models take, by their weight.

    cells: by the action of A, that of B and the class, (A, A, K); gains: what B wins on them, summed, (A, A). a_better,
    b_better, same: rows of different actions on which that of A, that of B or neither is worth more. p_value: that
    neither is better more often, by an exact sign test, of two actions McNemar's; None for weighted rows.
    """

    actions: Names
    cells: Floats
    gains: Floats
    a_better: float
    b_better: float
    same: float
    p_value: float | None
    clustered: bool

    @property
    def apart(self) -> float:
        """Rows of different actions."""
        return self.a_better + self.b_better + self.same

    @property
    def pairs(self) -> tuple[ActionPair, ...]:
        """Different actions, those of most rows first."""
        rows = self.cells.sum(axis=2)
        pairs = (
            ActionPair(self.actions[a], self.actions[b], float(rows[a, b]), float(self.gains[a, b]))
            for a, b in np.argwhere(rows).tolist()
            if a != b
        )
        return tuple(sorted(pairs, key=lambda pair: -pair.rows))


def disagreements(a: Decisions, b: Decisions, actions: Names, design: Design, rows: float) -> Disagreements:
    """The decisions of two models on the same units. rows: how many there are; of each kind, by their weight.

    Source of the test: McNemar 1947, exact as a sign test; of clustered rows by the lead of A in each cluster, normal
    with t quantiles (Yang et al. 2010).
    """
    size, units, won = len(actions), a.units, b.won() - a.won()
    each, ahead, apart = rows / units.total, np.sign(won), a.action != b.action
    weight = units.weight * each
    cells, gains = np.zeros((size, size, a.stakes.classes)), np.zeros((size, size))
    np.add.at(cells, (a.action, b.action, units.label), weight)
    np.add.at(gains, (a.action, b.action), weight * won)
    better, worse, same = (float(weight[apart & (ahead == side)].sum()) for side in (-1, 1, 0))
    p_value = sign_test(better, worse, design, lambda: units.spread(each * ahead))
    return Disagreements(actions, cells, gains, better, worse, same, p_value, design.clustered)


def sign_test(one: float, other: float, design: Design, spread: Callable[[], float]) -> float | None:
    """Two-sided probability of so uneven a split, were both sides as likely; None for weighted rows.

    spread: of clustered rows, the sum over clusters of their squared leads.
    """
    if not isinstance(design, Clustered):
        return None if design.weighted else exact_sign_test(round(one), round(other))
    squares = 0.0 if design.confidence(0.5) is None else spread()
    if not squares:
        return None
    from scipy.special import stdtr

    return 2 * float(stdtr(design.effective_clusters - 1, -abs(one - other) / math.sqrt(squares)))


def exact_sign_test(one: int, other: int) -> float:
    """Two-sided probability of a split at least as uneven, were both sides as likely."""
    if one == other:
        return 1.0
    # Loaded late: whoever does not compare decisions needs no scipy.
    from scipy.special import betainc

    fewer, n = min(one, other), one + other
    return min(1.0, 2 * float(betainc(n - fewer, fewer + 1, 0.5)))


MAX_NAMED = 1000
"""Rows of a side that are named; there may be millions."""
Ids = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class SwapPart:
    """Rows, of weighted ones as many as their share of the weight says, in expectation where rows tie for a place.

    positives: those with label 1. ids: of the rows that have a better chance of a place here, MAX_NAMED at most.
    """

    rows: Size
    positives: Size
    ids: Annotated[tuple[Any, ...], Said(kind=list[str | int])] = ()


@dataclass(frozen=True)
class Swap(Section):
    """Rows that both models act on, that only A does, and that only B does."""

    both: SwapPart
    only_a: SwapPart
    only_b: SwapPart


def swap(a: Rows, b: Rows, ids: Ids | None = None) -> Swap | None:
    """The rows that A and B act on at the capacity, both or only one; None without a capacity.

    a, b: the same rows with the scores of A and of B. ids: their names, shape (T,).
    """
    if a.selection is None or b.selection is None:
        return None
    of_a, of_b, weight = a.selection.acted, b.selection.acted, a.weights / (float(a.weights.sum()) / len(a))
    label = np.asarray(a.label, dtype=float)

    def part(chance: Floats, ids: Ids | None) -> SwapPart:
        mass = weight * chance
        names = () if ids is None else tuple(ids[np.flatnonzero(chance > 0)[:MAX_NAMED]].tolist())
        return SwapPart(float(mass.sum()), float(mass @ label), names)

    # Rows that were counted have no names.
    ids, shared = None if a.counted else ids, np.minimum(of_a, of_b)
    return Swap(part(shared, None), part(of_a - shared, ids), part(of_b - shared, ids))
