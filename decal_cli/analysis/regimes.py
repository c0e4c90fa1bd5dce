"""Where the regret of a model comes from, bin by bin of its score: miscalibration or grouping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from decal_cli.declarations.document import Share, Size, as_key
from decal_cli.errors import Undefined
from decal_cli.learn.regions import Regions, bin_losses, bounds_of_bins, least_variance
from decal_cli.metrics import Inputs, decisions, grouping
from decal_cli.tables.table import BINS, Floats, Table
from decal_cli.task import BinaryTask

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
        """Perez-Lebel et al. 2025, sec. 3.3."""
        grouped = self.regret_grouping
        if grouped is None:
            return "unknown"
        if max(grouped, self.regret_calibration) <= 0:
            return "neither"
        return "grouping" if grouped > self.regret_calibration else "miscalibration"


def regimes_of(inputs: Inputs) -> tuple[Regime, ...]:
    """The bins from the lowest score up; none without a task."""
    task = inputs.find(BinaryTask)
    if task is None:
        return ()
    t: Table = inputs.get(Table)
    levels, starts = t.bins(BINS), t.bin_starts(BINS)
    rate = levels.pos / levels.n
    below, above = grouping.sides(t, levels, task)
    # One bin along the last axis, so that each keeps its own sum.
    calibration = decisions.calibration_regret(rate[:, None], below[:, None], above[:, None], task.threshold)
    loss, lower, upper, sharp = _grouped(inputs.find(Regions), task, len(levels)).tolist()
    highest = t.score[np.append(starts[1:], len(t)) - 1]
    return tuple(
        Regime(
            low=float(t.score[starts[k]]),
            high=float(highest[k]),
            rows=float(levels.n[k]),
            share=float(levels.n[k] / t.total),
            score=float(levels.score[k]),
            rate=float(rate[k]),
            grouping_loss=_known(loss[k]),
            least_variance=float(least_variance(rate[k], task.threshold)),
            regret_calibration=task.u_delta * float(calibration[k]),
            regret_grouping_lower=_known(task.u_delta * lower[k]),
            regret_grouping_upper=_known(task.u_delta * upper[k]),
            regret_grouping_upper_sharp=_known(task.u_delta * sharp[k]),
        )
        for k in range(len(levels))
    )


def _grouped(regions: Regions | None, task: BinaryTask, bins: int) -> Floats:
    """Grouping loss, and what the bin adds to each of the bounds, shape (4, bins); NaN where unknown."""
    grouped = np.full((4, bins), np.nan)
    if regions is None:
        return grouped
    try:
        known = bin_losses(regions)
    except Undefined:
        return grouped
    each = bounds_of_bins(known.loss, known.rate, task.threshold)
    grouped[:, known.judged] = known.loss, *(bound * known.share for bound in each)
    return grouped


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
