"""How many rows to collect: for a gate that shows what it is to show, an interval, and advice that is clear.

An error falls as 1 / sqrt(rows). Where a metric learns from the rows, such as a gain, its error is measured on samples
of about as many rows as the plan names, as far as the pilot has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist

import numpy as np

from decal_cli.analysis.described import clustering
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, evaluate
from decal_cli.analysis.evidence import TOLERANCE
from decal_cli.analysis.rules import Rule, choices_of
from decal_cli.data import Dataset
from decal_cli.data.words import quote
from decal_cli.declarations.document import Count, Known, Positive, Share
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import MetricSpec, Result, measure_all, parse
from decal_cli.metrics.confidence import Interval, Reach, two_digits
from decal_cli.numbers import many, plain
from decal_cli.tables.design import MIN_CLUSTERS
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS, Table
from decal_cli.tables.units import quantile

POWERS = (0.8, 0.9)
"""How often so many rows are to show it."""
CURVE = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Rows of the curve, as parts of those of the first power."""
FEWEST_SAMPLES, MOST_SAMPLES, SAMPLED_ROWS = 8, 40, 40_000
"""Samples of a pilot on which an error is measured that does not fall as 1 / sqrt(rows): so few, or so many where all
of them have no more rows. Of eight of 120 rows the mean error is off by a fifth, and the rows by two fifths."""
MANY_CLUSTERS, COUNTED_SAMPLES, COUNTED_ROWS = 60, 300, 1_500_000
"""Rows of fewer clusters are counted out on so many samples of the pilot's clusters, or on fewer that have so many rows
in all: sums of clusters are skewed, and a few may be too uneven for an interval, so that 9 and 19 clusters showed in
0.65 of samples what 0.8 was named for, and 5 in none. So are those of a distance to calibration, whose error falls as
1 / rows where the score is calibrated: by the error alone 0.62 showed what 0.8 was named for. They take long:
rows of the curve that are not named get a quarter of the samples."""
LEAST_SAMPLE, ROUNDS = 100, 6
"""Rows of such a sample, and how often the number of rows is computed anew from it."""
LEAST_PILOT = 30
"""Rows of a pilot. The likely rows of so many hold the right number in 0.88 of pilots or more, unless one has no label
1; those of 10 rows in 0.08 and up (`simulation.gates pilots`)."""
MOST_SYNTHETIC, LEAST_OF_A_LABEL = 400_000, 2_000
"""Rows of a made-up pilot, and of its rarer label."""


@dataclass(frozen=True)
class RowsNeeded:
    """One thing that rows are to show. what: in words. value, interval: of the pilot. holds: whether it does there.

    effect: how far the pilot's value is from where nothing is shown. rows: for each of POWERS, or for a half-width the
    rows that give it; None for none worth naming. curve: rows, and how often so many show it. likely: the rows of the
    first power if the truth lies at either end of the pilot's interval, None where it holds the bound; of a half-width
    the rows of intervals as long as such a pilot may have them. Empty where the pilot is made up or does not say.
    """

    what: str
    metric: str
    value: float
    interval: Interval
    holds: bool
    effect: float
    rows: tuple[Count | None, ...]
    curve: tuple[tuple[Positive, Share], ...]
    likely: tuple[Count | None, ...] = ()


@dataclass(frozen=True, eq=False)
class RowPlan:
    """All that was asked, on a pilot; unknown: by what was asked, why there is no plan.

    asked: how many of the plans are of rules and half-widths; what recalibration wins comes after them.
    tolerance: the gain per decision that is too little to matter, NaN where no decision is at stake. made_up: whether
    the pilot has no noise of its own, so that its intervals say how many rows were made up and nothing else.
    """

    evaluation: Evaluation
    planned: tuple[RowsNeeded, ...]
    asked: int
    unknown: tuple[tuple[str, str], ...]
    pilot: str
    tolerance: Known
    made_up: bool

    @property
    def largest(self) -> RowsNeeded:
        """The plan of most rows, of rules and half-widths; where none of these was asked for, of recalibration."""
        return max(self.planned[: self.asked or None], key=lambda each: each.rows[0] or math.inf)


def plan_rows(
    dataset: Dataset,
    plan: Plan,
    rules: Sequence[Rule],
    half_width: float | None,
    pilot: str,
    progress: Progress = lambda text: None,
    made_up: bool = False,
) -> RowPlan:
    """Rows for these rules, for intervals of this half-width, and for clear advice where there is a decision.

    pilot: what it is, in words. made_up: whether it has no noise of its own. Errors: DecalError.
    """
    if len(dataset.models) != 1:
        raise DecalError(
            f"a plan is for one score, and there are {len(dataset.models)}", f"name it with {Hint('score')}"
        )
    if len(dataset.models[0].rows) < LEAST_PILOT:
        few = f"a pilot of {many(len(dataset.models[0].rows), 'row')} does not say how much other rows vary"
        raise DecalError(few, f"give a pilot of {LEAST_PILOT} rows or more")
    if half_width is not None and not 0 < half_width < math.inf:
        raise DecalError(f"{Hint('half_width', f'{half_width:g}')} is no width above 0", "give for example 0.01")
    for rule in rules:
        # upper(metric)<=bound passes where the rows show that metric<=bound holds.
        apart = rule.over not in ("", "upper" if rule.at_most else "lower")
        if apart or rule.change or rule.baseline or rule.counted or rule.scope:
            raise DecalError(
                f"rule {rule.text!r} is not of one metric of all rows", "write 'metric<=bound', such as 'brier<=0.2'"
            )
    gain = parse("gain_recalibration")
    stake = parse("utility_at_stake")
    named = choices_of(rules)
    choices = tuple(dict.fromkeys((*named, *((gain, stake) if plan.decision is not None else ()))))
    if not choices:
        raise DecalError("there is nothing to plan", f"give {Hint('rule', quote('brier<=0.2'))} or a decision")
    plan = replace(plan, choices=choices, intervals=True)
    evaluation = evaluate(dataset, plan, progress)
    results = evaluation.reports[0].results
    # In an order of their own, so that the same rows are drawn whatever the order of the file.
    rows = dataset.models[0].rows.in_order()
    sampler = Sampler(rows, plan, clustering(evaluation.reports[0]).effective, progress, made_up)
    planned, unknown, tolerance = [], [], math.nan

    def add(what: str, choice: MetricSpec, rows: Callable[..., RowsNeeded], *asked: float) -> None:
        result = results[choice.key]
        if result.value is None or result.interval is None:
            unknown.append((what, result.missing or "has no interval"))
        else:
            planned.append(rows(what, choice, result, *asked))

    for rule in rules:
        if rule.choice is not None:
            result = results[rule.key]
            if result.value is None:
                what = f"show whether {rule.text} holds"
            else:
                what = f"show that {rule.text} {'holds' if rule.holds(result.value, rule.number) else 'fails'}"
            add(what, rule.choice, sampler.for_bound, rule.number, rule.at_most)
    if half_width is not None:
        for choice in named or [gain]:
            add(f"know {choice.key} to within {half_width:g}", choice, sampler.for_width, half_width)
    asked = len(planned)
    if plan.decision is not None:
        # Rows of one label do not say what a method wins, as `recommend` has it.
        won, at_stake = evaluation.reports[0].results[gain.key], results[stake.key].value
        value = won.value
        if value is None or at_stake is None:
            unknown.append(("show what recalibration wins", won.missing or "nothing is at stake"))
        else:
            tolerance = TOLERANCE * at_stake
            # Clear is a gain above 0, or one below the tolerance: whichever needs fewer rows.
            win = value > tolerance / 2
            little = "" if win else f" too little to matter (at most {plain(tolerance)})"
            what = f"show that recalibration wins{little}"
            add(what, gain, sampler.for_bound, 0.0 if win else tolerance, not win)
    return RowPlan(evaluation, tuple(planned), asked, tuple(unknown), pilot, tolerance, made_up)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Errors of metrics on as many rows as are asked of a pilot."""

    rows: Rows
    plan: Plan
    clusters: float
    """The effective number of clusters; infinity for independent rows."""
    progress: Progress
    made_up: bool

    def _error(self, choice: MetricSpec, size: float, value: float, interval: Interval, bound: float) -> Reach:
        """The error of `size` rows like those of the pilot."""
        reach = Reach.to_bound(size, value, interval, bound, self.plan.confidence, self._clusters(size))
        if choice.declared.size_free:
            return reach
        # What learns from the rows is undefined on fewer; and its interval is skewed by that, not longer at the bound.
        return reach._replace(fewest=FEWEST_ROWS, half_width=abs(value - interval[value <= bound]), bend=1.0)

    def for_bound(self, what: str, choice: MetricSpec, result: Result, bound: float, at_most: bool) -> RowsNeeded:
        """Rows whose interval ends on the side of the bound where the pilot's value is."""
        value, interval = result.value or 0.0, result.interval or (0.0, 0.0)
        pilot = self._error(choice, len(self.rows), value, interval, bound)
        first, error = self._needed(choice, pilot, value, bound)
        by_error, share, needed = first, self._share(choice, error, value, bound), []
        for power, size in zip(POWERS, (first, *map(error.needed, POWERS[1:])), strict=True):
            while size is not None and self._counts_out(choice, size) and share(size, True) < power:
                size = two_digits(max(1.1 * size, size + len(self.rows) / self.rows.clusters))
            needed.append(size)
        first = needed[0]
        curve: tuple[tuple[int, float], ...] = ()
        if first is not None:
            # Two digits of a number of rows are enough.
            sizes = dict.fromkeys(max(round(part * first), 2) for part in CURVE)
            curve = tuple((size, share(size, size in needed)) for size in sizes)
        holds = (value <= bound) == at_most
        likely: tuple[int | None, ...] = ()
        if not self.made_up:
            side = 1 if value > bound else -1
            ends = (error._replace(effect=error.effect + side * (end - value)).needed() for end in interval)
            more = (first or 1) / (by_error or 1)
            likely = tuple(end and two_digits(more * end) for end in ends)[::-side]
        return RowsNeeded(what, choice.key, value, interval, holds, pilot.effect, tuple(needed), curve, likely)

    def _clusters(self, size: float) -> float:
        """The effective clusters of so many rows."""
        return self.clusters * size / len(self.rows)

    def _counts_out(self, choice: MetricSpec, size: float) -> bool:
        """Whether samples of so many rows are counted that show it: of few clusters, and of distances to calibration.

        A metric that learns is not counted out: a cluster that is drawn twice would be learned from and judged on.
        """
        metric = choice.declared
        if not metric.size_free:
            return metric.interval == "own" and {*metric.needs} <= {Table} and size <= len(self.rows) // 2
        return self.rows.unit is not None and MIN_CLUSTERS <= self._clusters(size) < MANY_CLUSTERS

    def _share(self, choice: MetricSpec, error: Reach, value: float, bound: float) -> Callable[..., float]:
        """How often so many rows show it: counted out, or by their error. named: whether the page names these rows."""

        @cache
        def share(size: int, named: bool = False) -> float:
            if not self._counts_out(choice, size):
                return error.power(size)
            most = COUNTED_SAMPLES if named or choice.declared.size_free else COUNTED_SAMPLES // 4
            samples = min(max(MOST_SAMPLES, COUNTED_ROWS // size), most)
            found = self._found(choice, size, samples)
            return sum(low > bound if value > bound else high < bound for _, low, high in found) / samples

        return share

    def _needed(self, choice: MetricSpec, error: Reach, value: float, bound: float) -> tuple[int | None, Reach]:
        """The rows for the first power, and the error that they were computed from."""

        def anew(size: int, mean: float, interval: Interval) -> Reach | None:
            """None where the mean lies on the other side of the bound."""
            return self._error(choice, size, mean, interval, bound) if (mean > bound) == (value > bound) else None

        error = self._measured(choice, error, lambda error: error.needed(POWERS[0]), anew)
        return error.needed(POWERS[0]), error

    def _measured(
        self,
        choice: MetricSpec,
        error: Reach,
        needed_of: Callable[[Reach], float | None],
        anew: Callable[[int, float, Interval], Reach | None],
    ) -> Reach:
        """The error on about as many rows of the pilot as are needed, where a metric learns and these are fewer.

        A rule learned from fewer rows wins less, and changes more decisions. Of more rows than the pilot's, the whole
        pilot says most. anew: the error of so many rows by the mean value and interval of samples, if they tell it.
        """
        needed, half = needed_of(error), len(self.rows) // 2
        if choice.declared.size_free or needed is None or needed >= len(self.rows):
            return error
        for _ in range(ROUNDS):
            size = min(max(round(needed), LEAST_SAMPLE), half)
            if 0.8 < size / error.rows < 1.25 or size < LEAST_SAMPLE:
                break
            # Half way, on the scale of rows, so that it comes to rest.
            size = round(math.sqrt(size * min(error.rows, half)))
            found = self._found(choice, size, min(max(FEWEST_SAMPLES, SAMPLED_ROWS // size), MOST_SAMPLES))
            if not found:
                break
            mean, low, high = np.mean(found, axis=0).tolist()
            measured = anew(size, mean, (low, high))
            needed = None if measured is None else needed_of(measured)
            error = measured or error
            if needed is None:
                break
        return error

    def _found(self, choice: MetricSpec, size: int, samples: int) -> list[tuple[float, float, float]]:
        """The value and interval of each sample of so many rows of the pilot that has one.

        Without replacement where the metric learns: a row drawn twice would be learned from and judged on.
        """
        rng, unit, number = np.random.default_rng(self.plan.seed), self.rows.unit, self.rows.clusters
        unit = np.arange(len(self.rows)) if unit is None else unit
        order, size_of = np.argsort(unit, kind="stable"), np.bincount(unit)
        begins, found = np.cumsum(size_of) - size_of, []
        for sample in range(samples):
            self.progress(f"{choice.key} of {size:,} rows, {sample + 1} of {samples}")
            drawn = rng.choice(number, max(round(size / len(self.rows) * number), 1), choice.declared.size_free)
            if not choice.declared.size_free:
                drawn = np.sort(drawn)
            times = size_of[drawn]
            within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
            part = self.rows.take(order[np.repeat(begins[drawn], times) + within])
            if self.rows.unit is not None:
                part = replace(part, cluster=np.repeat(np.arange(len(drawn)), times))
            confidence = part.adjusted_confidence(self.plan.confidence)
            result = measure_all([choice], self.plan.inputs(part), confidence)[choice]
            if result.value is not None and result.interval is not None:
                found.append((result.value, *result.interval))
        return found

    def for_width(self, what: str, choice: MetricSpec, result: Result, half_width: float) -> RowsNeeded:
        """Rows whose interval is so wide."""
        interval, value = result.interval or (0.0, 0.0), result.value or 0.0

        def wide(size: int, value: float, interval: Interval) -> Reach:
            """The error of so many rows, whose interval is to have this half-width."""
            error, half = self._error(choice, size, value, interval, value), (interval[1] - interval[0]) / 2
            return error._replace(effect=half_width, half_width=half)

        def needed(error: Reach) -> float:
            return error.rows * (error.half_width / half_width) ** 2

        error = self._measured(choice, wide(len(self.rows), value, interval), needed, wide)
        alone = needed(error)

        def rows(times: float) -> int:
            """The rows where an interval is so many times as long as that of the pilot."""
            return error.least(alone * times**2, lambda size: times * error.half_width_of(size) <= half_width)

        likely: tuple[int, ...] = ()
        if not self.made_up:
            free, whole = choice.declared.size_free, len(self.rows)
            size = min(whole if free else whole // 2, SAMPLED_ROWS)
            found = np.array(self._found(choice, size, MOST_SAMPLES))
            if len(found) > MOST_SAMPLES // 2 and (long := found[:, 2] - found[:, 1]).all():
                # Halves without replacement differ from one another as whole pilots do.
                one = float(np.log(long).std(ddof=1)) * math.sqrt(size / (whole if free else whole - size))
                spread = math.exp(quantile(self.plan.confidence) * one)
                likely = rows(1 / spread), rows(spread)
        return RowsNeeded(what, choice.key, value, interval, True, half_width, (rows(1),) * len(POWERS), (), likely)


def made_up_pilot(auc: float, prevalence: float) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated scores of this AUC and share of label 1, and their labels: evenly spread, without noise.

    Two normal distributions, sqrt(2) Phi^-1(AUC) apart. Errors: DecalError.
    """
    for name, value, least in (("auc", auc, 0.5), ("prevalence", prevalence, 0.0)):
        if not least < value < 1:
            raise DecalError(f"{Hint(name, f'{value:g}').words} is not between {least:g} and 1", "give such a number")
    rows = min(max(20_000, round(LEAST_OF_A_LABEL / min(prevalence, 1 - prevalence))), MOST_SYNTHETIC)
    positives = max(round(prevalence * rows), 1)
    normal = NormalDist()
    apart = math.sqrt(2) * normal.inv_cdf(auc)

    def spread(count: int) -> np.ndarray:
        from scipy.special import ndtri

        return ndtri((np.arange(count) + 0.5) / count)

    x = np.concatenate((spread(rows - positives), apart + spread(positives)))
    label = np.repeat((0, 1), (rows - positives, positives)).astype(np.uint8)
    score = 1 / (1 + np.exp(-(math.log(prevalence / (1 - prevalence)) + apart * x - apart**2 / 2)))
    return score, label
