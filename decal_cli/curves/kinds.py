"""The curves of a sweep, declared once: a curve is a metric as a function of the threshold, or stands beside one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from decal_cli.declarations.papers import cite
from decal_cli.metrics import METRICS
from decal_cli.numbers import Interval
from decal_cli.tables.table import Floats

Block = Literal["loss", "regret", "decision", "capacity", "ranking"]


@dataclass(frozen=True)
class CurveKind:
    """What a curve shows. heading: of its column. says: what a reader may not know of it, '' where the heading does."""

    name: str
    title: str
    heading: str
    block: Block
    unit: str
    range: tuple[float, float]
    source: str
    says: str = ""


@dataclass(frozen=True)
class Expectation:
    """The expectation of a curve under the prior."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, eq=False)
class MetricCurve:
    """A curve over what varies: value, low, high, shape (K,); NaN where undefined, then `reason` says why.

    expectation: under the prior. brier: twice the exact area under a Brier curve.
    """

    kind: CurveKind
    value: Floats
    low: Floats | None = None
    high: Floats | None = None
    expectation: Expectation | None = None
    brier: float | None = None
    reason: str | None = None

    @classmethod
    def of(
        cls, kind: CurveKind, points: ArrayLike, reason: str | None = None, brier: float | None = None
    ) -> MetricCurve:
        """The curve of points: values, (1, K), or values, low and high ends, (3, K), cut to the range of the kind."""
        value, *ends = np.asarray(points, dtype=float)
        low, high = np.clip(ends, *kind.range) if ends else (None, None)
        return cls(kind, value, low, high, brier=brier, reason=reason)

    @property
    def name(self) -> str:
        """The name of its kind."""
        return self.kind.name

    def times(self, factor: float, kind: CurveKind) -> MetricCurve:
        """A curve of another kind that is a multiple of this one."""
        low, high = (None if each is None else factor * each for each in (self.low, self.high))
        return MetricCurve(kind, factor * self.value, low, high, reason=self.reason)


def _of_metric(
    name: str, heading: str, block: Block, unit: str = "utility per decision", says: str = "", **others: Any
) -> CurveKind:
    """The curve of a metric for u_delta 1: title, range and source are those of the metric, unless others are given."""
    metric = METRICS[name]
    kind = CurveKind(name, metric.title, heading, block, unit, metric.range, metric.source, says)
    return replace(kind, **others)


def _brier(name: str, title: str, heading: str) -> CurveKind:
    """The curve of (1 - t*) FN + t* FP per row of some rule; twice the area under it is a Brier score."""
    return CurveKind(name, title, heading, "loss", "utility lost per decision", (0, 1), cite("Tasche 2021", "def. 5.1"))


_LIFT = "precision over the base rate"
_NET_BENEFIT = _of_metric(
    *("net_benefit", "net benefit", "decision", "true positives per row"),
    says="true positives per row, less the false positives at the rate of exchange that t* sets",
)
_ALL = (
    _brier("brier", "Brier curve", "as it is"),
    _brier("brier_calibrated", "Brier curve, calibrated", "calibrated (isotonic)"),
    _brier("brier_regions", "Brier curve, by region", "by region (held out)"),
    _brier("brier_regions_plug_in", "Brier curve, by region, plug-in", "by region (plug-in)"),
    _of_metric("regret_calibration", "calibration regret", "regret"),
    _of_metric("gain_recalibration", "gain of recalibration", "regret"),
    CurveKind(
        name="loss_ratio",
        says="held-out loss after recalibration over the loss as it is",
        title="Loss ratio",
        heading="loss ratio",
        block="regret",
        unit="held-out loss after recalibration over the loss as it is",
        range=(0, math.inf),
        source=cite("Gao et al. 2017", "fig. 3"),
    ),
    _of_metric("regret_grouping_lower", "grouping regret, at least", "regret"),
    _of_metric("regret_grouping_upper", "grouping regret, at most (as published)", "regret"),
    _of_metric(
        *("regret_grouping_upper_sharp", "grouping regret, at most", "regret"),
        says="as far as trees of five leaves see it; a better model can win more",
    ),
    _of_metric("gain_beyond", "gain beyond recalibration", "regret"),
    _of_metric("gain_post_training", "gain of post-training", "regret"),
    _NET_BENEFIT,
    replace(_NET_BENEFIT, name="net_benefit_all", title="Net benefit, treat all", heading="treat all", says=""),
    _of_metric(
        *("interventions_avoided", "interventions avoided", "decision", "per 100 rows, compared with treating all"),
        says="of 100 rows, compared with treating all",
        title="Interventions avoided",
    ),
    _of_metric(
        *("threshold_adjusted", "adjusted threshold", "decision", "score"),
        says="acting from this score on does what recalibration would do",
    ),
    CurveKind(
        name="v_regret",
        says="twice what acting on the score loses per decision compared with acting on the base rate",
        title="V-regret",
        heading="V-regret",
        block="decision",
        unit="utility per decision, payoffs in [-1, 1]",
        range=(-2, 2),
        source=cite("Kleinberg et al. 2023", "thm. 9"),
    ),
    _of_metric("cfdl", "CFDL", "decision", says="{}, lost compared with acting on the frequencies"),
    _of_metric("utility_at_capacity", "utility with these places", "capacity"),
    _of_metric("capacity_cost", "cost of the limit", "capacity"),
    _of_metric("sensitivity", "recall", "ranking", "share"),
    _of_metric("false_positive_rate", "false positive rate", "ranking", "share", source="1 - specificity"),
    _of_metric("ppv", "precision", "ranking", "share"),
    CurveKind("lift", "Lift", "lift", "ranking", _LIFT, (0, math.inf), _LIFT),
)
CURVE_KINDS: dict[str, CurveKind] = {kind.name: kind for kind in _ALL}
