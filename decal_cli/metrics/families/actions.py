"""The value of the actions that are taken by the probabilities of several classes, in the task's own utility units."""

from __future__ import annotations

import numpy as np

from decal_cli.declarations.spec import Bins
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric, null_of
from decal_cli.metrics.numerics import class_decisions, gaps
from decal_cli.metrics.regret_cells import ClassRegrets
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats
from decal_cli.task import ClassDecision


@null_of("regret_calibration", "Calibration regret of a calibrated model")
def regret_calibration_null(q: ClassRegrets, seed: Seed, *, bins: Bins = BINS) -> Floats:
    """Mean regret_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The classes of the rows of each cell are drawn from their mean probabilities, 400 times.
    """
    return q.bins(bins).null(seed.generator("classes"))


def _reaches(c: ClassTable, decision: ClassDecision, seed: Seed, null: bool) -> tuple[Floats, float]:
    """Draws of utility_calibration, about the gaps seen or about none, and what the cells themselves give."""

    def draws() -> tuple[Floats, float]:
        cells = class_decisions.promises(c, decision, class_decisions.MAX_PROMISE_CELLS)
        spread = np.sqrt(cells.null if null else cells.noise)
        noise = spread * seed.generator("classes").standard_normal((class_decisions.N_DRAWS, len(spread)))
        return class_decisions.reach(noise if null else cells.gap + noise), float(class_decisions.reach(cells.gap))

    return c.cached(("reaches", decision, seed, null), draws)


def _promise_interval(c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float) -> Interval:
    value, (draws, centre) = utility_calibration(c, decision), _reaches(c, decision, seed, null=False)
    low, high = intervals.bias_corrected(value, draws, confidence, centre)
    # Draws about gaps that are noise do not show all that noise adds: of a calibrated model the low end is 0.
    chance = gaps.central(_reaches(c, decision, seed, null=True)[0], confidence)[1]
    return intervals.holding((max(min(low, value - chance), 0.0), max(high, 0.0)), value)


@metric(
    "Utility calibration error",
    "lower",
    "utility",
    "Hegazy, Jordan and Dieuleveut 2025 (arXiv 2510.25458)",
    (0, 1),
    size_free=False,
    shown=True,
    interval=_promise_interval,
    interval_text=(
        "bias-corrected: 400 draws of what rows of about one promise are worth; the low end less what chance gives a "
        "calibrated model; and the value itself"
    ),
    noisy=True,
    covers=covered.POPULATION_BELOW,
)
def utility_calibration(c: ClassTable, decision: ClassDecision) -> float:
    """Largest gap per row, over all intervals of the utility that the model promises, between promise and utility.

    The promise is v = max_a sum_k U[a][k] p_k; max over intervals of v of |sum over rows inside (v - U[a][y])| / T, the
    prefix sums' maximum less their minimum. Compare it with utility_calibration_null.
    """
    return float(class_decisions.reach(class_decisions.promises(c, decision).gap))


@null_of(
    "utility_calibration",
    "Utility calibration error, calibrated",
    "Gaussian approximation of labels drawn from the probabilities",
)
def utility_calibration_null(c: ClassTable, decision: ClassDecision, seed: Seed) -> Floats:
    """Mean utility_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The sums of up to 4,096 runs of rows are drawn 400 times, with the variance that labels drawn from the probabilities
    give them.
    """
    return _reaches(c, decision, seed, null=True)[0]
