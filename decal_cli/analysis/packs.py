"""Packs: the measures that a field asks for, under its own names, and what else its reports show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decal_cli.declarations.document import Positive, Share, as_key
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MIN_RISK
from decal_cli.metrics import Inputs, Interval, MetricSpec, measure_all, parse
from decal_cli.tables.estimate import dot
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the scores of each label."""


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
    notes: tuple[str, ...] = ()

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
                "trained on: "
                "usually, below .1 the population counts as stable, from .1 to .25 as moving, above .25 as another one",
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


def by_outcome(rows: Rows) -> tuple[OutcomeScores, ...]:
    """The scores of label 0, and of label 1; of a label that no row has, nothing."""
    t, groups = rows.table, []
    for label in (0, 1):
        n = np.asarray(t.pos if label else t.n - t.pos, dtype=np.float64)
        count = rows.positives if label else len(rows) - rows.positives
        if count:
            groups.append(OutcomeScores(label, count, dot(n, t.score) / float(n.sum()), _quantiles(t.score, n)))
    return tuple(groups)


def _quantiles(score: Floats, n: Floats) -> dict[str, float]:
    """The lowest score that so much of the rows is at or below."""
    reached: Floats = np.cumsum(n) / n.sum()
    at = np.searchsorted(reached, np.array(QUANTILES) * (1 - 1e-12))
    scores = score[np.minimum(at, len(score) - 1)].tolist()
    return {f"{share:g}": each for share, each in zip(QUANTILES, scores, strict=True)}


@dataclass(frozen=True)
class Gap:
    """The largest difference of a metric between two groups of one column.

    interval: of the difference, wide enough for all pairs of groups at once; None where a metric has none. groups: how
    many were compared.
    """

    model: str
    column: str
    metric: str
    high: str
    low: str
    difference: float
    interval: Interval | None
    groups: Positive

    @property
    @as_key
    def clear(self) -> bool:
        """Whether it lies beyond noise."""
        return self.interval is not None and self.interval[0] > 0


class _Measured(NamedTuple):
    group: str
    value: float
    interval: Interval | None


def gaps_of(
    model: str, rows: Rows, choices: Sequence[MetricSpec], asked: Inputs, confidence: float | None
) -> Iterator[Gap]:
    """The largest gap of every metric between the groups of every column; metrics that fewer than two have: none.

    Rows of two groups are different rows, so that an interval of a difference follows from those of the groups (Zou and
    Donner 2008). Of k groups there are k (k - 1) / 2 pairs: each interval is as sure as all of them need (Bonferroni).
    Where clusters have rows in both groups, the interval is wider than it needs to be.
    """
    for column in rows.groups:
        parts = list(rows.of_column(column))
        pairs = max(math.comb(len(parts), 2), 1)
        sure = None if confidence is None else 1 - max((1 - confidence) / pairs, MIN_RISK)
        measured: dict[str, list[_Measured]] = {choice.key: [] for choice in choices}
        for group, part in parts:
            for choice, result in measure_all(
                choices, asked.of_rows(part), None if sure is None else part.sure(sure)
            ).items():
                if result.value is not None:
                    measured[choice.key].append(_Measured(group, result.value, result.interval))
        for key, groups in measured.items():
            if len(groups) > 1:
                yield _largest(model, column, key, groups)


def _largest(model: str, column: str, key: str, groups: Sequence[_Measured]) -> Gap:
    high, low = max(groups, key=lambda each: each.value), min(groups, key=lambda each: each.value)
    difference = high.value - low.value
    return Gap(model, column, key, high.group, low.group, difference, _interval(high, low, difference), len(groups))


def _interval(high: _Measured, low: _Measured, difference: float) -> Interval | None:
    if high.interval is None or low.interval is None:
        return None
    down = math.hypot(high.value - high.interval[0], low.interval[1] - low.value)
    up = math.hypot(high.interval[1] - high.value, low.value - low.interval[0])
    return difference - down, difference + up
