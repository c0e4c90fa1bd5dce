"""The sections of a report: what it says of rows beside their metrics, where there is something to say."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Annotated, Literal, Self, TypeVar

import numpy as np

from decal_cli.data import Dataset, Input
from decal_cli.data.times import NS_PER_DAY
from decal_cli.data.words import listed
from decal_cli.declarations.document import Above, Count, Hidden, Limit, Names, Positive, Share, Size, as_key
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.learn.forward import Forward
from decal_cli.learn.held_out import build_by_amount, least_amounts, method_like
from decal_cli.learn.probe import Recalibrated
from decal_cli.learn.regions import Regions, bin_losses, bounds_of_bins, least_variance
from decal_cli.metrics import Inputs, Result, decisions, grouping, parse
from decal_cli.metrics.at_capacity import AMOUNT_RANKING, SCORE_RANKING, WorthAtCapacity
from decal_cli.metrics.confidence import INDEPENDENT, Clustering, Interval, normal, wilson_ends
from decal_cli.metrics.decisions import (
    Acting,
    DecisionChange,
    Decisions,
    Featured,
    Recalibrating,
    post_training,
)
from decal_cli.metrics.families.classes import row_brier
from decal_cli.metrics.inputs import row_stakes, stakes_on
from decal_cli.metrics.label_shift import N_BINS, ReferenceScores, binned, label_shift, psi
from decal_cli.metrics.measure import measure
from decal_cli.numbers import Estimated, many, plain
from decal_cli.tables.cells import CellTable
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.design import FEW_CLUSTERS, MIN_CLUSTERS, Clustered, design_effect
from decal_cli.tables.population import Population
from decal_cli.tables.row_utilities import RowStakes, RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity, selected
from decal_cli.tables.table import BINS, Floats, Table, Values
from decal_cli.tables.units import Estimate, summed
from decal_cli.task import BinaryTask, ClassDecision, RowTask, Task

S = TypeVar("S", bound="Section")
OF_ONE_ROW = ("shadow_price", "least_gain")
"""Metrics of what one row is worth, which are no means over all decisions."""


class Section:
    """Something that is said of some rows; a report has it only where there is something to say."""


@dataclass(frozen=True, eq=False)
class Sectioned:
    """A result with sections."""

    sections: tuple[Section, ...] = field(default=(), kw_only=True)

    def find(self, kind: type[S]) -> S | None:
        """The section of this kind; None where it has nothing to say."""
        return next((each for each in self.sections if isinstance(each, kind)), None)

    def with_sections(self, *found: Section | None) -> Self:
        """The result with those sections too that have something to say."""
        return replace(self, sections=(*self.sections, *filter(None, found)))


class Utility(Estimated):
    """A utility per decision and its interval, None where there is none."""

    @classmethod
    def of(cls, estimate: Estimate, confidence: float | None) -> Utility:
        """An estimate with its normal interval; confidence: None for no interval."""
        return cls(estimate.value, None if confidence is None else estimate.normal(confidence))


@dataclass(frozen=True)
class Worth(Section):
    """Utilities per decision. now: of acting on the score. constant: of `action`, the best one for all rows.

    over: now less constant, on the same rows. perfect: of knowing every label. limited: where so many rows can be acted
    on only, constant is of acting on none, and perfect of having no limit.
    """

    now: Utility
    over: Utility
    constant: float
    action: str
    perfect: float
    limited: bool = False


def worth_of(inputs: Inputs, confidence: float | None) -> Worth | None:
    """What decisions are worth; None without a decision, or if that is undefined. confidence: None for no intervals."""
    decisions, at, task = inputs.find(Decisions), inputs.find(WorthAtCapacity), inputs.decision
    if decisions is None:
        return None
    best = decisions.best_constant
    name = task.taken[best] if isinstance(task, Task | ClassDecision) else str(best)
    if at is not None:
        idle, unlimited = at.rows.units.mean(at.idle), decisions.utility.value
        now, over = (Utility.of(each, confidence) for each in (at.utility, at.utility - idle))
        return Worth(now, over, idle.value, name, unlimited, limited=True)
    constant, ideal = decisions.constant(best).value, decisions.units.mean(decisions.best).value
    now, over = (Utility.of(each, confidence) for each in (decisions.utility, decisions.over(best)))
    return Worth(now, over, constant, name, ideal)


@dataclass(frozen=True)
class ClassCounts:
    """One class: its rows, the rows for which it is the most probable class, and both; by their weight."""

    name: str
    rows: Size
    predicted: Size
    right: Size
    read: Hidden[int] = 0  # its rows, whatever they weigh

    @property
    @as_key
    def precision(self) -> Share | None:
        """Share of right ones among the rows for which it is predicted; None where there are none."""
        return self.right / self.predicted if self.predicted > 0 else None

    @property
    @as_key
    def recall(self) -> Share | None:
        """Share of its rows for which it is predicted; None where there are none."""
        return self.right / self.rows if self.rows > 0 else None


@dataclass(frozen=True)
class ActionCounts(Section):
    """Rows by action and class, by their weight, and the utility of each cell; a row for each action.

    loss: what each cell loses against the best action for its class, per row of all.
    """

    classes: Hidden[Names]
    actions: Names
    rows: tuple[tuple[float, ...], ...]
    utility: tuple[tuple[float, ...], ...]

    @property
    @as_key
    def loss(self) -> tuple[tuple[float, ...], ...]:
        """What each cell loses against the best action for its class, summed and divided by all rows."""
        best = [max(column) for column in zip(*self.utility, strict=True)]
        total = sum(map(sum, self.rows))
        cells = zip(self.rows, self.utility, strict=True)
        return tuple(
            tuple(n * (most - u) / total for n, u, most in zip(rows, utility, best, strict=True))
            for rows, utility in cells
        )


@dataclass(frozen=True)
class ByClass(Section):
    """Every class."""

    classes: tuple[ClassCounts, ...]


def count_classes(c: ClassTable) -> ByClass:
    """The counts of each class."""
    size = len(c.classes)
    agreeing = np.where(c.predicted == c.label, c.label, size)
    counts = c.count(c.label, size), c.count(c.predicted, size), c.count(agreeing, size + 1)[:size]
    by_weight = ((each * (len(c) / c.total)).tolist() for each in counts)
    return ByClass(tuple(map(ClassCounts, c.classes, *by_weight, np.bincount(c.label, minlength=size).tolist())))


def _count(inputs: Inputs, weight: float) -> float:
    """How many rows there are; the weight of all, where only parts of them are there."""
    return weight if inputs.rows is None else float(len(inputs.rows))


def count_cells(inputs: Inputs) -> ActionCounts | None:
    """Rows by action and label; None where no task says it of all rows."""
    task, decisions = inputs.decision, inputs.find(Decisions)
    if decisions is None or not isinstance(task, Task | ClassDecision):
        return None
    cells = np.zeros((len(task.taken), decisions.stakes.classes))
    np.add.at(cells, (decisions.action, decisions.units.label), decisions.units.weight)
    cells *= _count(inputs, decisions.units.total) / decisions.units.total
    classes = inputs.get(ClassTable).classes if inputs.of_classes else ("label 0", "label 1")
    return ActionCounts(classes, task.taken, tuple(map(tuple, cells.tolist())), task.undominated)


@dataclass(frozen=True)
class Decided:
    """The four cells of decision and label: rows, by their weight."""

    true_positives: float
    false_positives: float
    false_negatives: float
    true_negatives: float

    @property
    def acted(self) -> float:
        """Rows decided 1."""
        return self.true_positives + self.false_positives

    @property
    def positives(self) -> float:
        """Rows with label 1."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> float:
        """Rows with label 0."""
        return self.false_positives + self.true_negatives

    @property
    def ppv(self) -> float | None:
        """Share of label 1 among the rows decided 1; None where there are none."""
        return self.true_positives / self.acted if self.acted > 0 else None

    @property
    def sensitivity(self) -> float | None:
        """Share of the rows with label 1 that are decided 1; None where there are none."""
        return self.true_positives / self.positives if self.positives > 0 else None

    def changed(self, change: DecisionChange, gain: float) -> CountedStep:
        """The cells after a change, held within the rows of each label: the change may come from other folds."""
        hits = min(max(self.true_positives + change.true_positives, 0.0), self.positives)
        alarms = min(max(self.false_positives + change.false_positives, 0.0), self.negatives)
        return CountedStep(hits, alarms, self.positives - hits, self.negatives - alarms, change, gain)


@dataclass(frozen=True)
class CountedStep(Decided):
    """Decisions after a step of post-training, what changed with it from the decisions before, and its gain per row."""

    change: DecisionChange
    gain: float


@dataclass(frozen=True)
class DecisionCounts(Section):
    """Decisions of one model on its rows; total: the rows.

    Each step is made of the held-out decisions that its gain is computed from, so a gain is the sum of the changes of
    the counts times the utilities.
    steps: "now"; from there, on held-out rows, "recalibrate", and from there "post-train", where that gain is defined.
    """

    total: float
    steps: Mapping[str, Decided]


def count_decisions(inputs: Inputs) -> DecisionCounts | None:
    """The decisions of a model; None where they are not to act or not."""
    acting = inputs.find(Acting)
    if acting is None:
        return None
    units, total = acting.units, _count(inputs, acting.units.total)
    rows = summed(acting.action * 2 + units.label, lambda part: units.weight[part][None], 4)[0] * (total / units.total)
    last = as_is = Decided(*rows[::-1].tolist())
    steps, kinds = {"now": as_is}, {"recalibrate": Recalibrating, "post-train": Featured}
    for step, kind in kinds.items():
        change = inputs.find(kind)
        if change is None:
            break
        # The probe's weights have another total.
        counted = change.decisions.times(total / change.before.units.total)
        steps[step] = last = last.changed(counted, change.gain.value)
    return DecisionCounts(total, steps)


@dataclass(frozen=True)
class ActionShares(Section):
    """The share of the rows that gets each action, as the score is ('expected_utility') and after each gain."""

    after: Mapping[str, tuple[float, ...]]


def count_actions(inputs: Inputs) -> ActionShares | None:
    """The shares of actions; None where no gain is defined."""
    shares: dict[str, tuple[float, ...]] = {}
    for gain, kind in (("gain_recalibration", Recalibrating), ("gain_post_training", Featured)):
        change = inputs.find(kind)
        if change is None:
            continue
        if not shares:
            shares["expected_utility"] = _shares(change.before)
        shares[gain] = _shares(change.after)
    return ActionShares(shares) if shares else None


def _shares(decisions: Decisions) -> tuple[float, ...]:
    (weight,) = summed(decisions.action, lambda part: decisions.units.weight[part][None], len(decisions.stakes))
    return tuple((weight / weight.sum()).tolist())


@dataclass(frozen=True)
class ByRow:
    """Thresholds of the rows of the first model, and their mean u_delta.

    columns: the names of columns by role. thresholds: the lowest, the median and the highest one in (0, 1), None where
    there is none. never, always: rows on which acting never, or always, pays, whatever the class. least_amount: the
    cost of a miss from which acting on every row wins most on these rows, None where it never wins or is the same
    everywhere.
    """

    task: RowTask
    columns: dict[str, Names]
    thresholds: tuple[float, float, float] | None
    never: int
    always: int
    u_delta: float
    least_amount: float | None
    shape: tuple[int, int]
    """How many actions and classes the utilities are of."""

    @property
    def to_act_or_not(self) -> bool:
        """Whether the actions are to act on a row or not, by one threshold of each row."""
        return self.shape == (2, 2)

    @property
    def text(self) -> str:
        """What the utilities are made of."""
        return stakes_text(self.columns, self.task.cost_fp, self.task.cost_fn)


def by_row_of(dataset: Dataset, task: RowTask, stakes: RowStakes | None = None) -> ByRow:
    """The thresholds of the first model's rows. stakes: the utilities of these rows, in any order, if known."""
    utilities = stakes or row_stakes(dataset.models[0].rows, task)
    thresholds, amount = None, float("inf")
    if isinstance(utilities, RowUtilities):
        thresholds = _ends_and_median(utilities.threshold[utilities.decidable()])
        if np.ptp(utilities.benefit()):
            (amount,) = least_amounts(utilities, np.zeros(len(utilities.rows), np.int8), [-1])
    never, always = utilities.settled
    named = {role: dataset.columns[role] for role in task.columns}
    return ByRow(
        task,
        {role: (names,) if isinstance(names, str) else names for role, names in named.items()},
        thresholds,
        never,
        always,
        utilities.rows.units.mean(utilities.u_delta).value,
        amount if np.isfinite(amount) else None,
        (len(utilities.utility), utilities.utility.classes),
    )


def _ends_and_median(values: Floats) -> tuple[float, float, float] | None:
    """The least, the median and the greatest of values, which are put in another order; None where there are none."""
    if not len(values):
        return None
    least, median, greatest = np.quantile(values, (0, 0.5, 1), overwrite_input=True).tolist()
    return least, median, greatest


def stakes_text(columns: Mapping[str, Sequence[str]], cost_fp: float | None, cost_fn: float | None) -> str:
    """What the utilities are made of, in few letters: the columns by role, and the costs that all rows share."""
    parts = [f"{role.removesuffix('_column')}={','.join(names)}" for role, names in sorted(columns.items())]
    costs = {"cost_fp": cost_fp, "cost_fn": cost_fn}
    return ",".join([*parts, *(f"{name}={cost:.12g}" for name, cost in costs.items() if cost is not None)])


Ruling = Literal["miscalibration", "grouping", "neither", "unknown"]


@dataclass(frozen=True)
class Regime:
    """One equal-mass bin of the score.

    low, high: its lowest and highest score; share: of all rows; score: the mean; rate: the frequency of label 1, c.
    grouping_loss: unclipped; None without features, or in a bin of too few rows. least_variance: Vmin, the grouping
    loss up to which recalibrated decisions may be right for every row. The regrets are what the bin adds to the metric
    of that name, in its unit: they add up to it. larger: of calibration and grouping regret.
    """

    low: Share
    high: Share
    rows: Size
    share: Share
    score: Share
    rate: Share
    grouping_loss: float | None
    least_variance: Size
    regret_calibration: Size
    regret_grouping_lower: Size | None
    regret_grouping_upper: Size | None
    regret_grouping_upper_sharp: Size | None

    @property
    @as_key
    def regret_grouping(self) -> Size | None:
        """The middle of the lower and the sharp upper bound: Perez-Lebel et al. 2025, def. 3.6."""
        if self.regret_grouping_lower is None or self.regret_grouping_upper_sharp is None:
            return None
        return (self.regret_grouping_lower + self.regret_grouping_upper_sharp) / 2

    @property
    @as_key
    def larger(self) -> Ruling:
        """Which regret is larger: Perez-Lebel et al. 2025, sec. 3.3."""
        grouped = self.regret_grouping
        if grouped is None:
            return "unknown"
        if max(grouped, self.regret_calibration) <= 0:
            return "neither"
        return "grouping" if grouped > self.regret_calibration else "miscalibration"


@dataclass(frozen=True)
class Regimes(Section):
    """The bins of the score, from the lowest up."""

    bins: tuple[Regime, ...]


def regimes_of(inputs: Inputs) -> Regimes | None:
    """The bins of the score; None without a task."""
    task = inputs.find(BinaryTask)
    if task is None:
        return None
    t = inputs.get(Table)
    count = _count(inputs, t.total)
    low, high, rows, score, rate = _bins(t, count)
    below, above = grouping.sides(t, t.bins(BINS), task)
    # One bin along the last axis, so that each keeps its own sum.
    calibration = decisions.calibration_regret(rate[:, None], below[:, None], above[:, None], task.threshold)
    # Grouping loss, and what the bin adds to each of the bounds; NaN where unknown.
    grouped = np.full((4, len(rate)), np.nan)
    regions = inputs.find(Regions)
    if regions is not None:
        with contextlib.suppress(Undefined):
            known = bin_losses(regions)
            each_bound = bounds_of_bins(known.loss, known.rate, task.threshold)
            grouped[:, known.judged] = known.loss, *(bound * known.share for bound in each_bound)
    loss, *bounds = grouped
    regrets = (loss, least_variance(rate, task.threshold), *(task.u_delta * each for each in (calibration, *bounds)))
    columns = (np.ravel(each).tolist() for each in (low, high, rows, rows / count, score, rate, *regrets))
    return Regimes(
        tuple(
            Regime(*each[:6], *(None if math.isnan(one) else one for one in each[6:]))
            for each in zip(*columns, strict=True)
        )
    )


def _bins(t: Table, rows: float) -> tuple[Floats, ...]:
    """Lowest and highest score, rows, mean score and frequency of label 1 of equal-mass bins, one array of each."""
    levels, starts = t.bins(BINS), t.bin_starts(BINS)
    highest = t.score[np.append(starts[1:], len(t)) - 1]
    return t.score[starts], highest, levels.n * (rows / t.total), levels.score, levels.pos / levels.n


@dataclass(frozen=True)
class ReliabilityBin:
    """One equal-mass bin of the score.

    low, high: its lowest and highest score; rows: by their weight; score: the mean; rate: the frequency of label
    1. interval: Wilson's of the rate, on the effective rows of the bin; None where no intervals were asked for, or
    clusters are too few for them.
    """

    low: Share
    high: Share
    rows: Size
    score: Share
    rate: Share
    interval: Interval | None


def reliability_bins(rows: Rows, confidence: float | None) -> tuple[ReliabilityBin, ...]:
    """The bins from the lowest score up; none for rows of several classes. confidence: None for no intervals."""
    if rows.classes:
        return ()
    t, adjusted = rows.table, rows.adjusted_confidence(confidence)
    bins, cells = _bins(t, len(rows)), t.bins(BINS).rows_of_cells
    ends = [None] * len(cells) if adjusted is None else map(tuple, wilson_ends(bins[-1], cells, adjusted).T.tolist())
    columns = (each.tolist() for each in bins)
    return tuple(ReliabilityBin(*each) for each in zip(*columns, ends, strict=True))


@dataclass(frozen=True)
class Clusters(Section):
    """The clusters of some rows. effective: as many of one size say as much.

    design_effect: variance of the Brier score with clusters over that of independent rows.
    """

    count: Positive
    effective: Above
    design_effect: Size


def clustering(result: Sectioned) -> Clustering:
    """The clusters of the rows of a result."""
    clusters = result.find(Clusters)
    return Clustering(clusters.count, clusters.effective) if clusters else INDEPENDENT


def clusters_of(rows: Rows) -> Clusters | None:
    """The clusters of some rows; None where rows are independent."""
    t = rows.class_table.top if rows.classes else rows.table
    design = t.design
    if not isinstance(design, Clustered):
        return None
    if rows.unit is not None and rows.classes:
        effect = design_effect(row_brier(rows.class_table), rows.weight, rows.unit)
    else:
        effect = design.effect_on(lambda run: np.stack((t.score[run] ** 2, (1 - t.score[run]) ** 2)))
    return Clusters(design.clusters, design.effective_clusters, effect)


def cluster_notes(models: Mapping[str, tuple[int, Clusters | None]]) -> Iterator[str]:
    """Sentences on what clusters do to the intervals. models: the rows and clusters of each model, by name."""
    for name, (rows, clusters) in models.items():
        where = f"{name}: " if len(models) > 1 else ""
        if clusters is None:
            yield f"{where}every cluster has one row, so that rows are independent"
            continue
        how_many = many(clusters.count, "cluster")
        if clusters.effective <= 0.95 * clusters.count or clusters.effective < MIN_CLUSTERS <= clusters.count:
            # Not rounded up: 4.97 are fewer than 5.
            how_many += f", which say as much as {math.floor(100 * clusters.effective) / 100:.2f} alike"
        if clusters.effective < MIN_CLUSTERS:
            needed = f"{MIN_CLUSTERS} clusters of about one size"
            yield f"{where}no intervals: they need {needed}, and the {rows:,} rows are in {how_many}"
            continue
        times = math.sqrt(clusters.design_effect)
        compared = f"{times:.1f} times larger than" if times >= 1 else f"{1 / max(times, 1e-3):.1f} times smaller than"
        compared = "about as large as" if f"{times:.1f}" == "1.0" else compared
        yield (
            f"{where}{rows:,} rows in {clusters.count:,} clusters: the standard error of the Brier score is "
            f"{compared} if rows were independent (design effect {plain(clusters.design_effect)})"
        )
        if clusters.effective < FEW_CLUSTERS:
            yield f"{where}intervals use t quantiles and are rough: there are only {how_many}"


def single_precision_notes(models: Mapping[str, Rows], thresholds: Iterable[float]) -> Iterator[str]:
    """A sentence on the scores that are a threshold but for single precision, which puts them below."""
    rounded = {level: each for each in thresholds if (level := float(np.float32(each))) < each}
    for name, rows in models.items() if rounded else ():
        t, where = rows.table, f"{name}: " if len(models) > 1 else ""
        at = np.searchsorted(t.score, [*rounded])
        at = at[np.append(t.score, np.inf)[at] == [*rounded]]
        if len(at):
            share = 100 * float(t.n[at].sum()) / t.total
            yield (
                f"{where}{share:.3g} % of the rows have scores that single precision puts below a threshold: "
                f"{listed([f'{level:.10g} for {plain(rounded[level])}' for level in t.score[at].tolist()], 3)}; round "
                "the scores if such rows are acted on"
            )


@dataclass(frozen=True)
class BestRecalibrator(Section):
    """The method that recalibrates some rows best."""

    method: str


def best_recalibrator(inputs: Inputs) -> BestRecalibrator | None:
    """The scaling of several classes, or what comes closest to the recalibrated score; None where it is undefined."""
    with contextlib.suppress(Undefined):
        if inputs.of_classes:
            return BestRecalibrator(inputs.get(Recalibrated).chosen)
        return BestRecalibrator(method_like(inputs.get(Table), inputs.seed))
    return None


@dataclass(frozen=True)
class PriorShiftGain(Section):
    """Expected utility per decision of scores as they were made (kept) and of moved ones; gain, interval: of the
    difference.

    threshold: acting on scores as they were made from here on is acting on moved ones from the threshold in use on.
    """

    kept: float
    moved: float
    gain: float
    interval: Interval | None
    threshold: Share


def prior_shift_gain(rows: Rows, task: BinaryTask, population: Population, confidence: float | None) -> PriorShiftGain:
    """What it is worth to move scores to the population where decisions are made [T (5.5)].

    rows: as they count there, with kept or moved scores. confidence: None for no interval.
    """
    at, t = task.decision_threshold, rows.table
    by_label = np.array(task.utility).T

    def won(score: Floats) -> tuple[Floats, Floats]:
        """What each row is worth by the score as it was made, and by the moved one, at each label."""
        # Moving keeps the order: a kept score is above a threshold where its moved score is above the moved one.
        kept = score >= (at if population.kept else float(population.moved(at)))
        moved = (population.moved(score) if population.kept else score) >= at
        return by_label[:, kept.astype(np.intp)], by_label[:, moved.astype(np.intp)]

    def change(score: Floats) -> Floats:
        of_kept, of_moved = won(score)
        return of_moved - of_kept

    more = Utility.of(t.mean_of(change), confidence)
    before = t.mean_of(lambda score: won(score)[0]).value
    after = before + more.value
    return PriorShiftGain(before, after, after - before, more.interval, population.as_made(at))


def decided(rows: Rows, task: BinaryTask, population: Population) -> bool:
    """Whether it is known how every row is decided by both scores, which cells may not tell."""
    t, at = rows.table, task.decision_threshold
    ends = (at, population.as_made(at))
    return not isinstance(t, CellTable) or not len(t.straddled(*ends))


@dataclass(frozen=True)
class Places(Section):
    """Places and rows, of weighted rows as many as their share of the weight says.

    lists: one, or one for each period; full: those with no place left for a row that would be acted on. places: of all
    lists. acted: the rows that are acted on. reaching: those that would be, were there no limit. ranked_by: what the
    places go by; thresholds: the lowest and the highest of it from which on the lists act.
    """

    lists: Positive
    full: Count
    places: Size
    acted: Size
    reaching: Size
    ranked_by: Literal["score", "expected gain"]
    thresholds: tuple[float, float]

    @property
    def without(self) -> float:
        """Rows that would be acted on and have no place."""
        return self.reaching - self.acted


def select_rows(rows: Rows, capacity: Capacity, task: Task | ClassDecision | RowTask | None, seed: int) -> Rows:
    """The rows with what their lists say of them.

    By their score, of which a row below the threshold of the task is not acted on; where rows have utilities of their
    own, or there are more than two actions or classes, by what a place is expected to win.
    """
    binary = task.two_actions if isinstance(task, Task) else None
    act_from = None if binary is None else binary.decision_threshold
    if task is None or binary is not None:
        return selected(rows, capacity, act_from)
    stakes = stakes_on(rows, task)
    by_gain = selected(rows, capacity, 0.0, stakes.in_place(rows.score).wins)
    if not (isinstance(task, RowTask) and isinstance(stakes, RowUtilities)):
        return by_gain
    # TopK beside it, of the highest scores, and of the rows that cost most to miss: each among the rows that it would
    # act on without a limit.
    others = {SCORE_RANKING: np.where(stakes.acts(rows.score), rows.score, -np.inf)}
    if np.ptp(stakes.benefit()):
        plain = replace(rows, features=None, groups={})
        in_order = row_stakes(plain.in_order(), task)
        assert isinstance(in_order, RowUtilities)  # as those of the same rows are
        # Of too few rows there is none, and a metric that asks for it says so.
        with contextlib.suppress(Undefined):
            large, rank = build_by_amount(in_order, seed=seed).large, np.empty(len(rows))
            rank[plain.order] = np.where(large, in_order.benefit(), -np.inf)
            others[AMOUNT_RANKING] = rank
    in_place = ((name, selected(rows, capacity, None, rank).selection) for name, rank in others.items())
    assert by_gain.selection is not None  # it was made just now
    beside = {name: each for name, each in in_place if each is not None}
    return replace(by_gain, selection=replace(by_gain.selection, beside=beside))


def places_of(rows: Rows) -> Places | None:
    """The places, and how many of these rows get one; None without a capacity."""
    if rows.selection is None:
        return None
    lists, weight = rows.selection.lists, rows.weights
    unit = float(weight.sum()) / len(rows)
    room = lists.room * len(lists.rows) / float(lists.rows.weights.sum())
    return Places(
        len(lists),
        int(np.count_nonzero(lists.full)),
        float(room.sum()),
        float(weight @ rows.selection.acted) / unit,
        float(weight[rows.selection.wanted].sum()) / unit,
        "score" if lists.by_score else "expected gain",
        (float(lists.threshold.min()), float(lists.threshold.max())),
    )


@dataclass(frozen=True)
class WithoutLabels(Section):
    """Rows that have a score and no label.

    above: the probability that the score of one of them lies above that of a row with a label, ties count half; of
    several classes, the highest probability; interval: of it. expected_utility: of acting on all rows, with the labels
    that suit the decisions least and best; gain_recalibration: what the adjusted threshold wins then, in two classes.
    """

    rows: Positive
    above: Share
    interval: Interval | None
    expected_utility: Interval | None
    gain_recalibration: Interval | None


def without_labels(
    apart: Rows, inputs: Inputs, results: Mapping[str, Result], confidence: float | None
) -> WithoutLabels:
    """apart: the rows without a label; inputs: of those that have one; results: the metrics of these."""
    rows = inputs.rows
    assert rows is not None  # a report is of rows
    missing = measure(parse("auc"), Inputs(_by_missing(rows, apart)), confidence)
    assert missing.value is not None  # there are rows of both kinds
    worth = moved = None
    decisions, others = inputs.find(Decisions), Inputs(apart, inputs.decision).find(Decisions)
    share = float(apart.weights.sum()) / float(apart.weights.sum() + rows.weights.sum())
    if decisions is not None and others is not None and rows.selection is None:
        task = inputs.decision
        by_label = np.column_stack([others.won_at(k) for k in range(others.stakes.classes)])
        worth = _mixed(decisions.utility.value, by_label, others.units.weight, share)
        gain, threshold = (results[key].value if key in results else None for key in
                           ("gain_recalibration", "threshold_adjusted"))  # fmt: skip
        if isinstance(task, BinaryTask) and gain is not None and threshold is not None:
            # What acting from the adjusted threshold on wins over the one in use, at each label.
            before, after = ((apart.score >= at).astype(np.intp) for at in (task.decision_threshold, threshold))
            utility = np.array(task.utility)
            moved = _mixed(gain, np.asarray(utility[after] - utility[before]), apart.weights, share)
    return WithoutLabels(len(apart), missing.value, missing.interval, worth, moved)


def _by_missing(rows: Rows, apart: Rows) -> Rows:
    """All rows, with label 1 where the label is missing."""

    def both(name: str) -> Values | None:
        here, there = getattr(rows, name), getattr(apart, name)
        return None if here is None else np.concatenate((here, there))

    score = np.concatenate([each.score.max(axis=1) if each.classes else each.score for each in (rows, apart)])
    label = np.repeat(np.array([0, 1], dtype=np.uint8), [len(rows), len(apart)])
    return Rows(score, label, both("weight"), both("cluster"))


def _mixed(known: float, by_label: Floats, weight: Values, share: float) -> Interval:
    """The mean of all rows, where this share of them has the labels that make it smallest and largest."""
    low, high = (np.average(each, weights=weight) for each in (by_label.min(axis=1), by_label.max(axis=1)))
    return (1 - share) * known + share * float(low), (1 - share) * known + share * float(high)


MAX_PVALUE = 0.01
"""P-values up to this say that the scores of a label are not distributed as in the reference."""


@dataclass(frozen=True)
class Shift:
    """One model against the reference.

    psi: population stability index on ten bins of the reference. share, reference_share: of labels 1, in these rows and
    in the reference. by_scores: the share that the scores alone tell, with its interval; None, with the reason, where
    they cannot. pvalue: of the scores of each label being those of the reference. alike: whether no more
    than the share of labels 1 differs.
    """

    model: str
    psi: float
    share: Share
    reference_share: Share
    by_scores: Share | None = None
    interval: Interval | None = None
    pvalue: Share | None = None
    alike: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Reference(Section):
    """The reference, its rows by model, and how every model's rows differ from it."""

    inputs: Annotated[tuple[Input, ...], Limit(minItems=1)]
    scores: Hidden[Mapping[str, ReferenceScores]]
    models: Annotated[tuple[Shift, ...], Limit(minItems=1)]


def against(dataset: Dataset, reference: Dataset, confidence: float | None) -> Reference:
    """How the rows of every model differ from those of the same model in the reference."""
    for each in (dataset, reference):
        each.need_two_classes(f"evaluate {Hint('reference').words}")
    if dataset.population is not None:
        raise DecalError(
            f"{Hint('reference')} compares the rows as they are, and {Hint('prevalence')} counts them as others",
            "drop one of them",
        )
    scores = {model.name: ReferenceScores(model.rows.table) for model in reference.models}
    shifts = []
    for model in dataset.models:
        before, now = scores[model.name].table, model.rows.table
        edges = before.bin_edges(N_BINS)
        seen = binned(now, edges)
        shift = partial(Shift, model.name, psi(binned(before, edges), seen), now.base_rate, before.base_rate)
        try:
            found = label_shift(binned(before, edges, 0), binned(before, edges, 1), seen)
        except Undefined as undefined:
            shifts.append(shift(reason=undefined.reason))
            continue
        interval = None if confidence is None else normal(found.prevalence, confidence, 0.0, 1.0)
        shifts.append(shift(found.prevalence.mean, interval, found.pvalue, found.pvalue > MAX_PVALUE))
    return Reference(reference.inputs, scores, tuple(shifts))


@dataclass(frozen=True)
class GainByAge:
    """Fits of one age, on the rows that came so long after.

    after: from the last row of a fit to the rows it is judged on, on average: days, or units of the column of time.
    gain_post_training: None where there are no features, or too few rows for a fit on them.
    """

    after: float
    rows: Positive
    gain_recalibration: Utility
    gain_post_training: Utility | None


@dataclass(frozen=True)
class GainsOverTime(Section):
    """Gains of fits on earlier rows by their age, the youngest first: its gains are those of the report.

    unit: of times. rows: those that a fit is judged on, all but the first block. recalibration_lasts,
    post_training_lasts: the time after a fit up to which the interval of its gain lies above 0 at every age; None where
    it does not at the first.
    """

    unit: Literal["days", "units"]
    rows: Positive
    ages: tuple[GainByAge, ...]
    recalibration_lasts: float | None
    post_training_lasts: float | None


def gains_over_time(inputs: Inputs, confidence: float | None) -> GainsOverTime | None:
    """Gains by the age of the fit; None without times or a decision, or with too few rows for fits on earlier ones."""
    if not inputs.in_time or inputs.find(Recalibrating) is None:
        return None
    forward = inputs.get(Forward)
    featured = inputs.find(Featured) is not None
    time, block = np.asarray(forward.rows.time), forward.block
    dated = time.dtype.kind == "i"
    ends = np.array([time[block == k].max() for k in range(forward.oldest + 1)])

    def of_age(age: int) -> GainByAge:
        change, which = Recalibrating.forward(forward, inputs.stakes, age), forward.judged(age)
        most = change.before.most
        # From the last row of each fit to the rows of the block that it is judged on, on average.
        after = float(np.mean((time[which] - ends[block[which] - age]).astype(float)))

        def won(gain: Estimate) -> Utility:
            return Utility.of(gain.within(-most, most), confidence)

        both = won(post_training(change, Featured.forward(forward, inputs.stakes, age))) if featured else None
        return GainByAge(after / NS_PER_DAY if dated else after, len(change.before.units), won(change.gain), both)

    ages = tuple(map(of_age, range(1, forward.oldest + 1)))

    def lasts(gains: Iterable[Utility | None]) -> float | None:
        """The longest time up to which every gain is clearly above 0."""
        clear = (each is not None and each.interval is not None and each.interval[0] > 0 for each in gains)
        lasting = itertools.takewhile(itemgetter(1), zip(ages, clear, strict=True))
        return max((each.after for each, _ in lasting), default=None)

    return GainsOverTime(
        "days" if dated else "units",
        len(forward.judged(1)),
        ages,
        lasts(each.gain_recalibration for each in ages),
        lasts(each.gain_post_training for each in ages),
    )
