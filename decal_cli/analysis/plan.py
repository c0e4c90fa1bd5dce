"""How many rows to collect: for a gate that shows what it is to show, an interval, and advice that is clear.

An error falls as 1 / sqrt(rows). Where a metric learns from the rows, such as a gain, its error is measured on samples
of about as many rows as the plan names, as far as the pilot has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from decal_cli.analysis.described import clustering
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, evaluate
from decal_cli.analysis.flowchart import TOLERANCE
from decal_cli.analysis.rules import Rule, choices_of
from decal_cli.data import Dataset
from decal_cli.data.words import quote
from decal_cli.declarations.document import Count, Known, Positive, Share
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import MetricSpec, Result, measure_all, parse
from decal_cli.metrics.confidence import Interval, Reach
from decal_cli.numbers import many, plain
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS

POWERS = (0.8, 0.9)
"""How often so many rows are to show it."""
CURVE = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Rows of the curve, as parts of those of the first power."""
FEWEST_SAMPLES, MOST_SAMPLES, SAMPLED_ROWS = 8, 40, 40_000
"""Samples of a pilot on which an error is measured that does not fall as 1 / sqrt(rows): so few, or so many where all
of them have no more rows. Of eight of 120 rows the mean error is off by a fifth, and the rows by two fifths."""
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
    first power if the truth lies at either end of the pilot's interval; None where it holds the bound; empty where the
    pilot is made up, and for a half-width.
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
    tolerance: the gain per decision that is too little to matter, NaN where no decision is at stake.
    """

    evaluation: Evaluation
    planned: tuple[RowsNeeded, ...]
    asked: int
    unknown: tuple[tuple[str, str], ...]
    pilot: str
    tolerance: Known

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
    return RowPlan(evaluation, tuple(planned), asked, tuple(unknown), pilot, tolerance)


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
        clusters = self.clusters * size / len(self.rows)
        reach = Reach.to_bound(size, value, interval, bound, self.plan.confidence, clusters)
        if choice.declared.size_free:
            return reach
        # What learns from the rows is undefined on fewer; and its interval is skewed by that, not longer at the bound.
        return reach._replace(fewest=FEWEST_ROWS, half_width=abs(value - interval[value <= bound]), bend=1.0)

    def for_bound(self, what: str, choice: MetricSpec, result: Result, bound: float, at_most: bool) -> RowsNeeded:
        """Rows whose interval ends on the side of the bound where the pilot's value is."""
        value, interval = result.value or 0.0, result.interval or (0.0, 0.0)
        pilot = self._error(choice, len(self.rows), value, interval, bound)
        first, error = self._needed(choice, pilot, value, bound)
        needed = (first, *map(error.needed, POWERS[1:]))
        curve: tuple[tuple[int, float], ...] = ()
        if first is not None:
            # Two digits of a number of rows are enough.
            sizes = dict.fromkeys(max(round(part * first), 2) for part in CURVE)
            curve = tuple((size, error.power(size)) for size in sizes)
        holds = (value <= bound) == at_most
        likely: tuple[int | None, ...] = ()
        if not self.made_up:
            side = 1 if value > bound else -1
            ends = (error._replace(effect=error.effect + side * (end - value)).needed() for end in interval)
            likely = tuple(ends)[::-side]
        return RowsNeeded(what, choice.key, value, interval, holds, pilot.effect, needed, curve, likely)

    def _needed(self, choice: MetricSpec, error: Reach, value: float, bound: float) -> tuple[int | None, Reach]:
        """The rows for the first power, and the error that they were computed from."""
        needed, half = error.needed(POWERS[0]), len(self.rows) // 2
        for _ in range(0 if choice.declared.size_free else ROUNDS):
            if needed is None:
                break
            size = min(max(needed, LEAST_SAMPLE), half)
            if 0.8 < size / error.rows < 1.25 or size < LEAST_SAMPLE:
                break
            # Half way, on the scale of rows, so that it comes to rest.
            size = round(math.sqrt(size * min(error.rows, half)))
            error = self._measured(choice, size, value, bound) or error
            needed = error.needed(POWERS[0])
        return needed, error

    def _measured(self, choice: MetricSpec, size: int, value: float, bound: float) -> Reach | None:
        """On so many rows, on average over samples of the pilot; None where the mean lies on the other side."""
        rng, unit = np.random.default_rng(self.plan.seed), self.rows.unit
        unit = np.arange(len(self.rows)) if unit is None else unit
        clusters = int(unit.max()) + 1
        found = []
        samples = min(max(FEWEST_SAMPLES, SAMPLED_ROWS // size), MOST_SAMPLES)
        for sample in range(samples):
            self.progress(f"{choice.key} of {size:,} rows, {sample + 1} of {samples}")
            drawn = rng.choice(clusters, round(size / len(self.rows) * clusters), replace=False)
            part = self.rows.take(np.isin(unit, drawn))
            result = measure_all([choice], self.plan.inputs(part), part.adjusted_confidence(self.plan.confidence))[
                choice
            ]
            if result.value is not None and result.interval is not None:
                found.append((result.value, *result.interval))
        if not found:
            return None
        mean, low, high = np.mean(found, axis=0).tolist()
        return self._error(choice, size, mean, (low, high), bound) if (mean > bound) == (value > bound) else None

    def for_width(self, what: str, choice: MetricSpec, result: Result, half_width: float) -> RowsNeeded:
        """Rows whose interval is so wide."""
        interval = result.interval or (0.0, 0.0)
        value = result.value or 0.0
        half = (interval[1] - interval[0]) / 2
        error = self._error(choice, len(self.rows), value, interval, value)._replace(effect=half_width, half_width=half)
        alone = error.rows * (error.half_width / half_width) ** 2
        rows = error.least(alone, lambda size: error.half_width_of(size) <= half_width)
        return RowsNeeded(what, choice.key, value, interval, True, half_width, (rows,) * len(POWERS), ())


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
