"""Two models on the same rows: every metric's difference with its paired interval, the curves, the decisions that
differ, and the splice. And an earlier report as a baseline: its values, why one cannot be compared with ours, and what
was lost since.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis.described import stakes_text
from decal_cli.analysis.evaluate import CAPACITY_FAMILIES, WORST, Evaluation, MetricReport, Plan, Progress, Report
from decal_cli.curves.crossings import BrierDifference, Crossing, Lead, Side, band, brier_difference
from decal_cli.data import Dataset, Input, Paired, Predictions
from decal_cli.declarations.document import Count, Hidden, Known, Names, Said, Share, Size, Words
from decal_cli.documents import json_of, read_document
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Verb
from decal_cli.metrics import Metric, MetricSpec, Result, parse
from decal_cli.metrics import paired as paired_metrics
from decal_cli.metrics.confidence import RESAMPLES, Interval, quantile
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.families.scores import squared
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.design import Clustered, Design
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import limit_text
from decal_cli.tables.table import FEWEST_ROWS, Floats, Loss
from decal_cli.task import ClassDecision, RowTask, Task, task_of_rows, utility_text
from decal_cli.version import SCHEMA

IDEALS = {"zero": 0.0, "one": 1.0}
HEADLINE = (parse("expected_utility"), parse("brier"))
"""Metrics that the summary compares, whatever metrics were asked for."""
AT_CAPACITY = parse("utility_at_capacity")
"""The metric that the summary compares as well, where a capacity limits the rows to act on."""

NOT_EXACT = "not known from cells of two scores; counts of every pair of scores give it"


@dataclass(frozen=True)
class Difference:
    """One metric of both models: a, b, and B - A with its paired interval.

    method: how the interval was made, 'analytic' or 'bootstrap', None where there is none. better: the model that the
    metric's direction favours, by name; None where the two are equal, undefined, or neither direction is better.
    by_chance: whether the interval holds 0, so that chance may have made the difference; None where there is no
    interval, or where an ideal value lies between the two.
    """

    a: Result
    b: Result
    difference: Result
    method: Literal["analytic", "bootstrap"] | None = None
    better: str | None = None
    by_chance: bool | None = None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Who wins at which thresholds. band: standard errors beyond which a model is ahead, at all thresholds at once;
    null where the two hardly differ.
    """

    dominates: str | None
    band: Known
    crossings_on_these_rows: Count
    crossings: tuple[Crossing, ...]
    ahead: tuple[Lead, ...]
    curves: Hidden[BrierDifference]


@dataclass(frozen=True, eq=False)
class ModelComparison(MetricReport):
    """The comparison on all rows (group None) or on one group of them. model: the second less the first.

    results: differences of the metrics that were asked for, by key, which `differences` has in full. headline: of the
    Brier score, and of the expected utility where there is a task, by key, whatever was asked for. disagreements: of
    the decisions, where there are two actions or several classes. thresholds: None for rows of several classes; pairs:
    of scores, then 0.
    """

    pairs: int
    differences: Mapping[str, Difference]
    headline: Mapping[str, Difference]
    thresholds: Thresholds | None
    disagreements: Disagreements | None = None
    swap: Swap | None = None
    """Who is acted on by which model, where so many rows can be acted on only; there are no disagreements then."""


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
        pairs = None if a.classes else a.pairs_with(b)
        whole = whole or pairs
        of_whole = ids if group is None else None
        contests.append(_contest(of_a, of_b, (a, b), pairs, values.decision, plan, headline, of_whole))
    at = contests[0].thresholds
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


def _contest(
    of_a: Report,
    of_b: Report,
    rows: tuple[Rows, Rows],
    pairs: PairTable | None,
    decision: ClassDecision | None,
    plan: Plan,
    heads: Sequence[MetricSpec],
    ids: Ids | None,
) -> ModelComparison:
    """pairs: the scores of both, None for rows of several classes, which have no threshold."""
    differences = _differences(of_a, of_b, rows, pairs, plan, (*plan.choices, *heads))
    asked = {spec.key: differences[spec] for spec in plan.choices}
    headline = {spec.key: each for spec in heads if (each := differences[spec]).difference.value is not None}
    results = {key: each.difference for key, each in asked.items()}
    contest = partial(ModelComparison, f"{of_b.model} - {of_a.model}", of_a.group, of_a.rows, of_a.positives, results)
    apart = None
    if pairs is None:
        if decision is not None:
            a, b = (each.class_table for each in rows)
            sides = Decisions.of_classes(a, decision), Decisions.of_classes(b, decision)
            apart = disagreements(*sides, decision.actions, a.top.design, of_a.rows)
        return contest(0, asked, headline, None, apart)
    swapped, task, cells = swap(*rows, ids), plan.binary, pairs if isinstance(pairs, CellPairs) else None
    # Cells may not say how every row is decided.
    if task is not None and swapped is None and (cells is None or cells.decided_at(task.decision_threshold)):
        apart = disagreements(*Decisions.of_pairs(pairs, task), task.actions, pairs.design, of_a.rows)
    if cells is not None:
        return contest(0, asked, headline, None, apart, swapped)
    adjusted = pairs.design.confidence(plan.confidence)
    curves, rng = brier_difference(pairs, (of_a.model, of_b.model)), np.random.default_rng([plan.seed, RESAMPLES])
    critical_value = float("inf") if adjusted is None else band(pairs, adjusted, rng)
    at = (
        curves.dominates,
        critical_value,
        len(curves.zeros),
        curves.crossings(critical_value),
        curves.leads(critical_value),
    )
    return contest(len(pairs), asked, headline, Thresholds(*at, curves), apart, swapped)


def _differences(
    of_a: Report,
    of_b: Report,
    rows: tuple[Rows, Rows],
    pairs: PairTable | None,
    plan: Plan,
    specs: Sequence[MetricSpec],
) -> dict[MetricSpec, Difference]:
    """The difference of each metric, with its interval where there is one."""
    differences = {spec: _difference(spec, of_a, of_b) for spec in specs}
    adjusted = (pairs.design.confidence if pairs else rows[0].adjusted_confidence)(plan.level)
    if adjusted is None:
        return differences
    values = {spec: each.difference.value for spec, each in differences.items() if each.difference.value is not None}
    # What metrics of the two models are computed from, on units that both share.
    a, b = (plan.inputs(each) for each in rows)
    stakes = [row_stakes(each, plan.decision) for each in rows] if isinstance(plan.decision, RowTask) else ()
    a, b = paired_metrics.of_pairs(a, b, pairs, *stakes)
    for spec, ends in paired_metrics.intervals(values, a, b, adjusted, pairs).items():
        one, ideal = differences[spec], IDEALS.get(spec.declared.better)
        between = ideal is not None and ((one.a.value or 0.0) - ideal) * ((one.b.value or 0.0) - ideal) < 0
        differences[spec] = replace(
            one,
            difference=replace(one.difference, interval=ends),
            method=paired_metrics.method(spec.declared, pairs is None, plan.by_row),
            by_chance=None if between else ends[0] <= 0 <= ends[1],
        )
    return differences


def _difference(spec: MetricSpec, of_a: Report, of_b: Report) -> Difference:
    a, b = of_a.results[spec.key], of_b.results[spec.key]
    if a.value is None or b.value is None:
        sides = [(report.model, side.reason) for report, side in ((of_a, a), (of_b, b)) if side.value is None]
        names = "" if len(sides) == 2 and a.reason == b.reason else f"{sides[0][0]}: "
        return Difference(a, b, Result(None, None, f"{names}{sides[0][1]}"))
    if any(side.within is not None and side.within.bound for side in (a, b)):
        unknown = Result(None, None, NOT_EXACT)
        return Difference(unknown, unknown, unknown)
    ahead = _ahead(spec.declared, a.value, b.value)
    better = of_b.model if ahead > 0 else of_a.model if ahead < 0 else None
    return Difference(a, b, Result(b.value - a.value), None, better)


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
class Disagreements:
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
    with t quantiles (Durkalski et al. 2003).
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
class Swap:
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


class Cut(NamedTuple):
    """Where to splice: the threshold z in (0, 1), and the model used below it."""

    threshold: float
    below: Side

    def scores(self, a: Floats, b: Floats) -> Floats:
        """The spliced scores in [0, 1] (Tasche 2021, ex. 4.4); a, b: the scores of the two models, shape (T,) each."""
        z, (first, second) = self.threshold, (a, b) if self.below == "a" else (b, a)
        return np.minimum(z, first) + np.where(second > z, second - z, 0.0)


@dataclass(frozen=True)
class HeldOut:
    """The splice on held-out rows. difference: from the better single model."""

    value: float
    single: str
    difference: float
    interval: Interval | None


@dataclass(frozen=True)
class Splice:
    """One model below a threshold, the other above."""

    threshold: Share
    below: str
    above: str
    brier: HeldOut
    expected_utility: HeldOut | None
    folds_agreeing: Count
    cut: Hidden[Cut]


@dataclass(frozen=True)
class NoSplice:
    """Why there is no splice."""

    threshold: None
    reason: Words


def best_cut(curves: BrierDifference, crossings: Sequence[Crossing] | None = None) -> Cut | None:
    """The cut that saves most area under the Brier curve; None where one model alone does as well.

    crossings: where it may lie, and who stands below it; by default at any crossing on these rows, in either order.
    """
    if crossings is None:
        at, a_below = np.tile(curves.zeros, 2), np.repeat([True, False], len(curves.zeros))
    else:
        at = np.array([crossing.threshold for crossing in crossings])
        a_below = np.array([crossing.below == curves.names[0] for crossing in crossings])
    inside = (at > 0) & (at < 1)
    if not inside.any():
        return None
    to, whole = curves.areas_to(at), curves.area[-1]
    # Beside A alone: A below z and B above adds what D has from z on; B below z adds what it has up to there.
    costs = np.where(inside, np.where(a_below, whole - to, to), np.inf)
    best = int(np.argmin(costs))
    return None if costs[best] >= min(0.0, whole) - 1e-15 else Cut(float(at[best]), "a" if a_below[best] else "b")


def splice(
    pairs: PairTable,
    curves: BrierDifference,
    crossings: Sequence[Crossing],
    task: Task | None,
    rng: np.random.Generator,
    confidence: float,
) -> Splice:
    """Choose the cut among the crossings beyond noise, and judge on each fold the cut that the other folds choose.

    Z = min(z, Z1) + (Z2 - z) 1[Z2 > z], Z1 the model used below z. Where Z1 has the lower Brier curve up to z and Z2
    from there on, the Brier score of Z is at most that of either. A splice is judged on
    rows that did not choose z.
    """
    if not len(curves.zeros):
        raise Undefined("the Brier curves do not cross on these rows")
    if not crossings:
        raise Undefined("the Brier curves cross only within noise")
    if pairs.effective_rows < FEWEST_ROWS:
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to choose a crossing on some and judge it on others")
    cut = best_cut(curves, crossings)
    if cut is None:
        raise Undefined("one model alone has as low a Brier score as a splice where the curves clearly cross")
    folds = list(_folds(pairs.to_draw, rng))
    cuts = [best_cut(brier_difference(others)) if len(others) else None for _, others in folds]
    utility = None

    def held_out(loss: Loss, larger: bool) -> HeldOut:
        """What the splices of the other folds reach on each fold, and what they win over the model that is better on
        all rows.
        """
        of_a, of_b = (t.mean_of(loss).value for t in pairs.tables)
        single = int(of_b > of_a if larger else of_b < of_a)
        spliced = won = variance = 0.0
        of_folds = []
        for (own, _), cut in zip(folds, cuts, strict=True):
            alone = loss((own.a, own.b)[single])
            of_cut = alone if cut is None else loss(cut.scores(own.a, own.b))
            spliced += float(of_cut.ravel() @ own.units.weight) / pairs.total
            won += float((of_cut - alone).ravel() @ own.units.weight) / pairs.total
            of_folds.append((own.units, (of_cut - alone).ravel()))
        squares, missed = np.zeros(2), np.zeros(2)
        for units, values in of_folds:
            # Folds hold whole clusters, so that what is summed over clusters adds up over folds.
            variance += units.spread(values - won) / pairs.total**2
            own_squares = units.sampling.squares(units.weight)
            squares += np.bincount(units.label, own_squares, 2)
            missed += np.bincount(units.label, own_squares * (values - won) ** 2, 2)
        error = with_missed(variance, (missed / np.maximum(squares, 1e-300)).max(), pairs.effective_rows)
        half_width = quantile(confidence) * float(error)
        return HeldOut(spliced, curves.names[single], won, (won - half_width, won + half_width))

    if task is not None:
        by_label, at = np.array(task.undominated).T, np.array(task.decision_thresholds)

        def won(score: Floats) -> Floats:
            """The payoff at each label of the action, which is how many of the thresholds the score reaches."""
            return by_label[:, np.searchsorted(at, score, side="right")]

        utility = held_out(won, larger=True)
    agreeing = sum(other is not None and other.below == cut.below for other in cuts)
    below, above = curves.names if cut.below == "a" else curves.names[::-1]
    return Splice(cut.threshold, below, above, held_out(squared, larger=False), utility, agreeing, cut)


def _folds(pairs: PairTable, rng: np.random.Generator) -> Iterator[tuple[PairTable, PairTable]]:
    """The rows of each fold that holds any, and those of all others."""
    all_neg, all_pos = (np.asarray(values, dtype=float) for values in (pairs.n - pairs.pos, pairs.pos))
    for neg, pos, design in pairs.design.parts(pairs, rng):
        if (neg + pos).any():
            others = pairs.part(np.maximum(all_neg - neg, 0.0), np.maximum(all_pos - pos, 0.0))
            yield pairs.part(neg, pos, design), others


MAX_RELATIVE_DIFFERENCE = 1e-9
"""How far utilities may differ, in u_delta, and thresholds: spellings of one task differ by rounding."""


NO_LIMIT = "none"
ALIKE = "the same in all rows"


class Circumstances(NamedTuple):
    """What values depend on besides the task: the capacity, and the utilities of rows that have their own."""

    capacity: str = NO_LIMIT
    stakes: str = ALIKE


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
    metrics: Mapping[tuple[str, str | None], Mapping[str, Mapping[str, Any]]] | None = None
    theirs: Circumstances = UNLIMITED
    ours: Circumstances = UNLIMITED
    confidence: float | None = None
    rows: Dataset | None = None

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
        metric = spec.declared
        if metric.decides and self.ours.stakes != self.theirs.stakes:
            both = f"ours are {self.ours.stakes}; the baseline's are {self.theirs.stakes}"
            raise Undefined(f"the utilities of rows differ: {both}")
        if metric.takes_task and not _same_task(task, self.task, metric.bounds_in_u_delta):
            raise Undefined(f"the tasks differ: ours is {_task_text(task)}; the baseline's is {_task_text(self.task)}")
        if metric.family in CAPACITY_FAMILIES and self.ours.capacity != self.theirs.capacity:
            both = f"ours is {self.ours.capacity}; the baseline's is {self.theirs.capacity}"
            raise Undefined(f"the capacities differ: {both}")
        metrics = self.metrics or {}
        models = {name for name, _ in metrics}
        results = metrics.get((next(iter(models)) if len(models) == 1 else model, group), {})
        return _found(spec, {key: each for key, each in results.items() if key.partition("(")[0] == spec.name})

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
        elif task is not None:
            decided = task_of_rows(task["utility"], task["decision_threshold"], task.get("names", ()))
        intervals = document.get("intervals")
        capacity, per = document.get("capacity"), document.get("columns", {}).get("per")
        limit = NO_LIMIT if capacity is None else limit_text(capacity, per)
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
            Circumstances(limit, text),
            confidence=None if intervals is None else float(intervals["confidence"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DecalError(f"baseline {path} lacks its metrics", f"write it anew with: {_HOW}") from None


_HOW = f"{Verb('evaluate')} FILE -o report.json"


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
    raise Undefined(f"the baseline holds no value of {spec.key} for this model and group")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def _same_task(a: Task | ClassDecision | None, b: Task | ClassDecision | None, in_utility: bool) -> bool:
    """Whether decisions are the same; in_utility: whether their utilities are, too."""
    if isinstance(a, ClassDecision) or isinstance(b, ClassDecision):
        return a == b
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
        return f"{given.path} ({given.rows:,} rows{positives})"

    return ", ".join(map(text, inputs))


OTHER_LEVEL = "the baseline has no interval of this confidence"


def drops(
    choices: Sequence[MetricSpec], dataset: Dataset, evaluation: Evaluation, baseline: Baseline, progress: Progress
) -> tuple[tuple[Report, ...], Names]:
    """What each model lost since the baseline, as reports, and notes on how that was compared.

    Where the rows of the baseline are kept and are the same, the interval is the paired one. Else both samples count
    as independent, which makes it too wide where they share rows.
    """
    reports = []
    notes = []
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


def _lost(spec: MetricSpec, before: float, now: float, interval: Interval | None) -> Result:
    """What was lost, above 0 where it became worse. interval: of now less before."""
    sign = -1.0 if spec.declared.better == "higher" else 1.0
    if (ideal := IDEALS.get(spec.declared.better)) is not None:
        then, today = before - ideal, now - ideal
        if then * today < 0:
            return Result(abs(today) - abs(then), no_interval="the ideal lies between the two values")
        sign = 1.0 if then + today >= 0 else -1.0
    ends = None if interval is None else sorted(sign * end for end in interval)
    return Result(sign * (now - before), None if ends is None else (ends[0], ends[1]))


def _paired(spec: MetricSpec, differences: Mapping[str, Difference]) -> Result:
    measured = differences[spec.key]
    if measured.a.value is None or measured.b.value is None:
        return measured.difference
    return _lost(spec, measured.a.value, measured.b.value, measured.difference.interval)


def _apart(spec: MetricSpec, report: Report, evaluation: Evaluation, baseline: Baseline) -> Result:
    """The drop and its interval, from values and intervals of two independent samples (Zou and Donner 2008)."""
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
