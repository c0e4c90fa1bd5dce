"""Packs: the measures that a field asks for, under its own names, and what else its reports show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.described import Section, clusters_of
from decal_cli.declarations.document import Names, Positive, Share, Size, as_key
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MIN_RISK
from decal_cli.metrics import Inputs, Interval, MetricSpec, Result, measure_all, parse
from decal_cli.metrics.measure import estimate_of
from decal_cli.numbers import bounds
from decal_cli.tables.estimate import dot
from decal_cli.tables.rows import Rows
from decal_cli.tables.units import Estimate

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of the scores of each label that a report shows."""


@dataclass(frozen=True)
class Pack:
    """What a field asks for.

    measures: how it calls each metric, in the order of its reports. by_outcome: the scores of each label are shown.
    compares_groups: groups are compared, so that some must be named. notes: what its readers want to be told.
    """

    name: str
    title: str
    measures: Mapping[str, str]
    by_outcome: bool = False
    compares_groups: bool = False
    notes: Names = ()

    @property
    def choices(self) -> tuple[MetricSpec, ...]:
        """The metrics."""
        return tuple(parse(key) for key in self.measures)


PACKS = {
    pack.name: pack
    for pack in (
        Pack(
            "clinical",
            "Clinical prediction model",
            {
                "auc": "C-statistic",
                "calibration_slope": "Calibration slope",
                "calibration_intercept": "Calibration intercept",
                "observed_expected": "O/E ratio",
                "brier": "Brier score",
                "net_benefit": "Net benefit",
                "net_benefit_standardised": "Standardised net benefit",
                "interventions_avoided": "Interventions avoided per 100",
                "sensitivity": "Sensitivity",
                "specificity": "Specificity",
                "ppv": "Positive predictive value",
                "npv": "Negative predictive value",
                "gain_recalibration": "Gain of recalibration",
            },
            by_outcome=True,
            notes=(
                "TRIPOD+AI (Collins et al. 2024): this gives the numbers for items 20a (participants with and without "
                f"the outcome), 23a (performance with intervals; name subgroups with {Hint('group')}) and 24 "
                "(what updating the "
                "model would win); items 11 (missing data), 12e (measures), 12f (updating) and 15 (threshold) ask for "
                "the choices made here",
                f"the calibration plot and the decision curve: {Verb('report')}, or decal sweep "
                f"{Hint('plot', 'curves.pdf')} "
                f"{Hint('picture', ('reliability', 'decision'))}",
            ),
        ),
        Pack(
            "credit",
            "Credit score",
            {
                "gini": "Gini",
                "ks": "KS",
                "auc": "AUC",
                "psi": "PSI against the reference",
                "brier": "Brier score",
                "observed_expected": "Observed to predicted defaults",
                "expected_utility": "Expected profit per account",
                "external_regret": "Profit lost against one decision for all",
                "gain_recalibration": "Gain of recalibration per account",
                "selection_rate": "Share decided 1 (reject rate)",
            },
            notes=(
                f"label 1 is default and decision 1 is to reject; {Hint('cost_fp')} is then the profit of a good "
                "account that "
                f"is rejected, {Hint('cost_fn')} the loss of a bad one that is accepted",
                f"PSI compares the scores with those of {Hint('reference')}, such as the rows that the model was "
                "trained on: usually, below 0.1 the population counts as stable, from 0.1 to 0.25 as moving, "
                "above 0.25 as another one",
            ),
        ),
        Pack(
            "fairness",
            "Fairness between groups",
            {
                "selection_rate": "Selection rate",
                "sensitivity": "True positive rate",
                "false_positive_rate": "False positive rate",
                "ppv": "Positive predictive value",
                "observed_expected": "Observed to expected",
                "auc": "AUC",
                "expected_utility": "Expected utility",
                "regret_calibration": "Calibration regret",
                "gain_recalibration": "Gain of recalibration",
            },
            compares_groups=True,
            notes=(
                "equal selection rates are demographic parity, equal true positive rates equal opportunity, both error "
                "rates equalised odds; observed to expected near 1 in every group is calibration within groups; where "
                "base rates differ, no score but a perfect one has all of them (Kleinberg et al. 2017)",
            ),
        ),
    )
}
"""By name."""
NO_PACK = Pack("", "", {})
"""In place of one where none was asked for."""


def pack_named(name: str) -> Pack:
    """The pack of this name. Errors: DecalError."""
    if name not in PACKS:
        raise DecalError(f"{Hint('pack', f'{name!r}')} is not known", f"give one of: {', '.join(PACKS)}")
    return PACKS[name]


class OutcomeScores(NamedTuple):
    """The scores of the rows of one label, by weight; quantiles: QUANTILES, by their share, such as "0.05"."""

    label: int
    rows: Positive
    mean: Share
    quantiles: dict[str, Share]


@dataclass(frozen=True)
class ByOutcome(Section):
    """The scores of each label that some rows have."""

    labels: tuple[OutcomeScores, ...]


def by_outcome(rows: Rows) -> ByOutcome:
    """The scores of label 0, and of label 1; of a label that no row has, nothing."""
    t, groups = rows.table, []
    for label in (0, 1):
        n = np.asarray(t.pos if label else t.n - t.pos, dtype=float)
        count = rows.positives if label else len(rows) - rows.positives
        if count:
            # The lowest score that so much of the rows is at or below.
            at = np.searchsorted(np.cumsum(n) / n.sum(), np.array(QUANTILES) * (1 - 1e-12))
            quantiles = {f"{share:g}": each for share, each in zip(QUANTILES, t.score[at].tolist(), strict=True)}
            groups.append(OutcomeScores(label, count, dot(n, t.score) / float(n.sum()), quantiles))
    return ByOutcome(tuple(groups))


MIN_DENOMINATOR = 30
"""Rows of the denominator of a rate below which a group stays out of the comparison."""


@dataclass(frozen=True)
class Gap:
    """The difference of a metric between two groups of one column.

    interval: of the difference, wide enough for all pairs of groups at once; None where a metric has none. groups: how
    many were compared. high_rows, low_rows: of the denominator of each.
    """

    model: str
    column: str
    metric: str
    high: str
    low: str
    difference: float
    interval: Interval | None
    groups: Positive
    high_rows: Size
    low_rows: Size

    @property
    @as_key
    def clear(self) -> bool:
        """Whether it lies beyond noise."""
        return bounds(self.interval)[0] > 0


class TooSmall(NamedTuple):
    """A group that is not compared: so few rows are in the denominator of the metric."""

    model: str
    column: str
    metric: str
    group: str
    rows: Size


@dataclass(frozen=True)
class Packed(Section):
    """The pack whose measures these are.

    gaps: between groups, where it compares them: of each metric the most certain first, then all that are clear.
    too_small: groups that are not compared.
    """

    pack: Pack
    gaps: tuple[Gap, ...]
    too_small: tuple[TooSmall, ...]


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """The groups of one column by one metric. pairs: those clearly apart and the most certain one, that first.

    largest: the largest difference, with an interval that holds it whichever pair has it; undefined for fewer than two
    groups.
    """

    pairs: tuple[Gap, ...]
    too_small: tuple[TooSmall, ...]
    largest: Result


def compare_groups(
    model: str, rows: Rows, choices: Sequence[MetricSpec], asked: Callable[[Rows], Inputs], confidence: float | None
) -> Iterator[tuple[str, MetricSpec, GroupComparison]]:
    """By column and metric, which groups are apart. asked: of the rows of each. confidence: None for no intervals.

    Groups of fewer than MIN_DENOMINATOR rows in the denominator stay out, so that none of them widens an interval.
    """
    for column in rows.groups:
        parts = dict(rows.of_column(column))
        asked_of = {group: asked(part) for group, part in parts.items()}
        sizes = {choice: {group: denominator(choice, each) for group, each in asked_of.items()} for choice in choices}
        families = {
            choice: tuple(group for group, size in sizes[choice].items() if size >= MIN_DENOMINATOR)
            for choice in choices
        }
        found = {}
        clustered = clusters_of(rows) is not None
        for family in dict.fromkeys(families.values()):
            shared = [choice for choice in choices if families[choice] == family]
            adjusted = None if confidence is None else simultaneous(confidence, len(family), clustered)
            measured = {
                group: measure_all(shared, asked_of[group], parts[group].adjusted_confidence(adjusted))
                for group in family
            }
            for choice in shared:
                known = {group: results[choice] for group, results in measured.items()}
                found[choice] = _compare(model, column, choice.key, sizes[choice], known)
        for choice in choices:
            yield column, choice, found[choice]


def simultaneous(confidence: float, groups: int, clustered: bool = False) -> float:
    """The level of each pair's interval at which those of all pairs of groups hold at once.

    By the largest of the standardised differences of independent groups, which is largest in distribution where all are
    as sure (Tukey and Kramer; Hayter 1984). Where clusters have rows in several groups, by Bonferroni.
    """
    pairs = math.comb(max(groups, 2), 2)
    if pairs == 1:
        return confidence
    risk = (1 - confidence) / pairs
    if not clustered:
        from scipy.stats import studentized_range

        risk = max(math.erfc(float(studentized_range.ppf(confidence, groups, math.inf)) / 2), risk)
    return 1 - max(risk, MIN_RISK)


def denominator(spec: MetricSpec, inputs: Inputs) -> float:
    """The rows that a metric of a group rests on: of a rate those of its denominator, of a ranking the rarer label."""
    metric, table = spec.declared, inputs.table
    if metric.interval == "wilson":
        try:
            estimate = estimate_of(spec, inputs)
        except Undefined:
            return 0.0
        if isinstance(estimate, Estimate) and not math.isnan(estimate.rows):
            return round(estimate.rows, 6)
    if metric.family == "ranking" and table is not None:
        return round(table.fewer_rows, 6)
    assert inputs.rows is not None  # they are the rows of a group
    return float(len(inputs.rows))


def _compare(
    model: str, column: str, key: str, sizes: Mapping[str, float], measured: Mapping[str, Result]
) -> GroupComparison:
    """All pairs of groups; rows of two groups are different rows, so that intervals combine (Zou and Donner 2008)."""
    small = tuple(TooSmall(model, column, key, group, sizes[group]) for group in sizes if group not in measured)
    known = sorted(
        (group for group in measured if measured[group].value is not None),
        key=lambda group: measured[group].value or 0.0,
    )
    if len(known) < 2:
        few = ", ".join(f"{each.group} ({each.rows:.0f})" for each in small)
        why = f"; fewer than {MIN_DENOMINATOR} rows in the denominator: {few}" if few else ""
        return GroupComparison((), small, Result(None, None, f"fewer than two groups can be compared{why}"))
    intervals = [measured[group].interval for group in known]
    value = np.array([measured[group].value for group in known], dtype=float)
    j, i = np.triu_indices(len(known), 1)
    apart = value[i] - value[j]
    with_intervals = None not in intervals
    ends = np.array([interval or (v, v) for interval, v in zip(intervals, value, strict=True)])
    below, above = value - ends[:, 0], ends[:, 1] - value
    low, high = apart - np.hypot(below[i], above[j]), apart + np.hypot(above[i], below[j])
    # By how many times its noise a pair is apart: the lower end alone would favour large groups, however near.
    noise = np.where(apart > low, apart - low, 1e-300)
    order = np.argsort(-(apart / noise if with_intervals else apart), kind="stable")
    shown = [k for place, k in enumerate(order.tolist()) if not place or (with_intervals and low[k] > 0)]
    pairs = tuple(
        Gap(
            model,
            column,
            key,
            known[i[k]],
            known[j[k]],
            float(apart[k]),
            (float(low[k]), float(high[k])) if with_intervals else None,
            len(known),
            sizes[known[i[k]]],
            sizes[known[j[k]]],
        )
        for k in shown
    )
    # A pair whose order noise may have turned is apart by at least 0.
    interval = (max(float(low.max()), 0.0), max(float(high.max()), float(-low.min()))) if with_intervals else None
    return GroupComparison(pairs, small, Result(float(apart.max()), interval))
