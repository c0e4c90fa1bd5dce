"""What fits on earlier rows win on later ones, by the age of the fit, and how long a fit lasts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from decal_cli.analysis.described import Utility
from decal_cli.data.times import NS_PER_DAY
from decal_cli.declarations.document import Positive
from decal_cli.learn.forward import Forward
from decal_cli.metrics import Inputs
from decal_cli.metrics.decisions import Featured, Recalibrating, post_training
from decal_cli.tables.units import Estimate


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
class GainsOverTime:
    """Gains of fits on earlier rows by their age, the youngest first: its gains are those of the report.

    unit: of times. rows: those that a fit is judged on, all but the first block. recalibration_lasts,
    post_training_lasts: the time after a fit up to which its gain is above 0 at every age; None where it is not at the
    first.
    """

    unit: Literal["days", "units"]
    rows: Positive
    ages: tuple[GainByAge, ...]
    recalibration_lasts: float | None
    post_training_lasts: float | None


def gains_over_time(inputs: Inputs, confidence: float | None) -> GainsOverTime | None:
    """None where rows have no time or no decision, or are too few for fits on earlier ones."""
    if not inputs.in_time or inputs.find(Recalibrating) is None:
        return None
    forward = inputs.get(Forward)
    featured = inputs.find(Featured) is not None
    ages = tuple(_of_age(inputs, forward, age, featured, confidence) for age in range(1, forward.oldest + 1))
    return GainsOverTime(
        "days" if _has_dates(forward) else "units",
        len(forward.judged(1)),
        ages,
        _lasts([(each.after, each.gain_recalibration) for each in ages]),
        _lasts([(each.after, each.gain_post_training) for each in ages]),
    )


def _of_age(inputs: Inputs, forward: Forward, age: int, featured: bool, confidence: float | None) -> GainByAge:
    change = Recalibrating.forward(forward, inputs.stakes, age)
    most = change.before.most

    def won(gain: Estimate) -> Utility:
        return Utility.of(gain.within(-most, most), confidence)

    both = won(post_training(change, Featured.forward(forward, inputs.stakes, age))) if featured else None
    return GainByAge(_after(forward, age), len(change.before.units), won(change.gain), both)


def _has_dates(forward: Forward) -> bool:
    return np.asarray(forward.rows.time).dtype.kind == "i"


def _after(forward: Forward, age: int) -> float:
    """From the last row of each fit to the rows of the block that it is judged on, on average."""
    time, block = np.asarray(forward.rows.time), forward.block
    ends = np.array([time[block == k].max() for k in range(forward.oldest + 1)])
    which = forward.judged(age)
    mean = float(np.mean((time[which] - ends[block[which] - age]).astype(np.float64)))
    return mean / NS_PER_DAY if _has_dates(forward) else mean


def _lasts(ages: Sequence[tuple[float, Utility | None]]) -> float | None:
    """The longest time up to which every gain is above 0."""
    lasting = itertools.takewhile(lambda each: each[1] is not None and each[1].value > 0, ages)
    return max((after for after, _ in lasting), default=None)
