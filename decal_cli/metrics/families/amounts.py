"""What decisions are worth where every row has utilities of its own, and what the amounts alone would decide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decal_cli.crossfit.probe import WIDENED, Probed
from decal_cli.crossfit.probe import gain_post_training as summed
from decal_cli.crossfit.row_utilities import ByAmount, HeldOut
from decal_cli.declarations.spec import Bins
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, normal
from decal_cli.metrics.declare import for_rows, metric
from decal_cli.metrics.families.task import MEAN_PAYOFF
from decal_cli.metrics.numerics import clipped
from decal_cli.metrics.numerics.row_regrets import CalibrationRegret
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, FEWEST_ROWS, Estimate, Floats

PAIRED = "normal; standard error of the paired difference on held-out rows, widened because folds share rows"


def _mean_within(u: RowUtilities, mean: Estimate, low: Floats, high: Floats, confidence: float) -> Interval:
    """The interval of a mean payoff, which lies between the means of the least and the most that rows can give."""
    return normal(mean, confidence, u.mean(low).mean, u.mean(high).mean)


def _utility_interval(u: RowUtilities, *, confidence: float) -> Interval:
    ends = u.utility.min(axis=0), u.utility.max(axis=0)
    return _mean_within(u, u.decided(u.acts(u.rows.score)), *ends, confidence)


@for_rows("expected_utility", interval=_utility_interval)
def expected_utility(u: RowUtilities) -> float:
    """Mean utility per row of acting where the score reaches the threshold of the row.

    mean of U_row[decision][label]; t* of a row is (U00 - U10) / (U00 - U10 + U11 - U01) of its own utilities.
    """
    return u.mean(u.payoff(u.acts(u.rows.score))).mean


def _constant_interval(acts: bool) -> Callable[..., Interval]:
    def interval(u: RowUtilities, *, confidence: float) -> Interval:
        of_labels = u.utility[2:] if acts else u.utility[:2]
        return _mean_within(u, u.decided(acts), of_labels.min(axis=0), of_labels.max(axis=0), confidence)

    return interval


@for_rows("eu_never", interval=_constant_interval(False))
def eu_never(u: RowUtilities) -> float:
    """Mean utility per row of always deciding 0; it needs no model.

    mean of U_row[0][label].
    """
    return u.mean(u.payoff(False)).mean


@for_rows("eu_always", interval=_constant_interval(True))
def eu_always(u: RowUtilities) -> float:
    """Mean utility per row of always deciding 1; it needs no model.

    mean of U_row[1][label].
    """
    return u.mean(u.payoff(True)).mean


def _acted(u: RowUtilities) -> Estimate:
    return u.mean(u.acts(u.rows.score).astype(np.float64), (np.zeros(1), np.ones(1)))


def _acted_interval(u: RowUtilities, *, confidence: float) -> Interval:
    return normal(_acted(u), confidence, 0.0, 1.0)


@for_rows("selection_rate", interval=_acted_interval, interval_text=MEAN_PAYOFF)
def selection_rate(u: RowUtilities) -> float:
    """Share of rows that are decided 1, each by its own threshold.

    The weight of rows where p >= t* of the row, over the weight of all.
    """
    return _acted(u).mean


def _best_constant(u: RowUtilities) -> bool:
    """Whether always acting is worth more than never acting."""
    return u.mean(u.worth).mean > 0


@for_rows("utility_at_stake", interval=None)
def utility_at_stake(u: RowUtilities) -> float:
    """Utility per row that perfect decisions are worth more than the better constant decision: all there is to win.

    mean of the larger utility of each row at its label, less max(eu_never, eu_always).
    """
    worth = u.mean(u.worth).mean
    return u.mean(np.maximum(u.worth, 0.0)).mean - max(worth, 0.0)


def _lead(u: RowUtilities) -> Estimate:
    """What the better constant decision adds."""
    return u.decided(_best_constant(u), instead=u.acts(u.rows.score))


def _lead_interval(u: RowUtilities, *, confidence: float) -> Interval:
    sides = np.array((-u.benefit, u.cost) if not _best_constant(u) else (u.benefit, -u.cost))
    return _mean_within(u, _lead(u), np.minimum(sides.min(axis=0), 0), np.maximum(sides.max(axis=0), 0), confidence)


@for_rows("external_regret", interval=_lead_interval)
def external_regret(u: RowUtilities) -> float:
    """Utility per row that the better constant decision adds; below 0 where the model beats both.

    max(eu_never, eu_always) - expected_utility.
    """
    return _lead(u).mean


def _calibration_interval(u: RowUtilities, seed: Seed, *, confidence: float, bins: int) -> Interval:
    return CalibrationRegret(u, bins).interval(seed.generator("regret"), confidence)


@for_rows(
    "regret_calibration",
    interval=_calibration_interval,
    interval_text=clipped.CLIPPED_TEXT,
    covers=covered.OF_BINS_BELOW,
)
def regret_calibration(u: RowUtilities, *, bins: Bins = BINS) -> float:
    """Utility per decision lost by acting on p as it is instead of on the calibrated p; noise biases it upward.

    mean of u_delta |c(bin) - t*| of the row where c(bin) >= t* and p >= t* disagree, where c is the frequency of label
    1 in the bin and t* the threshold of the row.
    """
    return CalibrationRegret(u, bins).value


@for_rows("regret_grouping_worst", interval=None)
def regret_grouping_worst(u: RowUtilities, *, bins: Bins = BINS) -> float:
    """Utility per decision that knowing every label would add to recalibration: an upper limit, not an estimate.

    mean of u_delta t* (1 - c) over rows where c >= t*, and of u_delta c (1 - t*) over the others, where c is the
    frequency of label 1 in the bin of the row and t* its threshold.
    """
    return CalibrationRegret(u, bins).worst(u)


def _held_out(u: RowUtilities, change: Floats) -> Estimate:
    """The mean of what decisions of held-out rows win; a row that could have been missed changes sides at its t*."""
    mean, error = u.mean(change, (np.sqrt(np.maximum(u.benefit, 0.0) * np.maximum(u.cost, 0.0)),))
    return Estimate(mean, WIDENED * error)


def _recalibration(u: RowUtilities, held: HeldOut) -> Estimate:
    return _held_out(u, u.payoff(u.acts(held.isotonic)) - u.payoff(u.acts(u.rows.score)))


def _recalibration_interval(u: RowUtilities, held: HeldOut, *, confidence: float) -> Interval:
    return normal(_recalibration(u, held), confidence)


@for_rows("gain_recalibration", interval=_recalibration_interval, interval_text=PAIRED, covers=covered.LEARNED)
def gain_recalibration(u: RowUtilities, held: HeldOut) -> float:
    """Expected gain in utility per decision from isotonic recalibration, on held-out rows.

    In each of five folds, isotonic recalibration fitted on the other four decides the rows of the fold, each by its own
    threshold; the gain is the mean difference in utility to acting on p.
    """
    return _recalibration(u, held).mean


def _over_constant(u: RowUtilities, held: HeldOut) -> Estimate:
    return _held_out(u, u.payoff(u.acts(held.isotonic)) - u.payoff(_best_constant(u)))


def _over_constant_interval(u: RowUtilities, held: HeldOut, *, confidence: float) -> Interval:
    return normal(_over_constant(u, held), confidence)


@for_rows("gain_over_constant", interval=_over_constant_interval, interval_text=PAIRED)
def gain_over_constant(u: RowUtilities, held: HeldOut) -> float:
    """Expected gain in utility per decision of the recalibrated score over the best constant decision.

    As gain_recalibration, but compared with always taking the same action, the one that is worth most on these rows.
    """
    return _over_constant(u, held).mean


def _beyond(u: RowUtilities, probed: Probed) -> Estimate:
    if not len(probed.probe):
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    change = u.acts(probed.probe).astype(np.float64) - u.acts(probed.isotonic)
    by_label = _held_out(u, change * u.worth)
    by_judge = u.mean(change * (probed.judge * u.benefit - (1 - probed.judge) * u.cost)).mean
    return Estimate((by_label.mean + by_judge) / 2, by_label.error)


def _beyond_interval(u: RowUtilities, probed: Probed, *, confidence: float) -> Interval:
    return normal(_beyond(u, probed), confidence)


@for_rows("gain_beyond", interval=_beyond_interval)
def gain_beyond(u: RowUtilities, probed: Probed) -> float:
    """Expected gain in utility per decision from post-training on the features, beyond recalibration.

    As where all rows share a threshold: the probe and the recalibrated score of the same folds decide held-out rows,
    each by its own threshold.
    """
    return _beyond(u, probed).mean


def _post_training(u: RowUtilities, held: HeldOut, probed: Probed) -> Estimate:
    return summed(_recalibration(u, held), _beyond(u, probed))


def _post_training_interval(u: RowUtilities, held: HeldOut, probed: Probed, *, confidence: float) -> Interval:
    return normal(_post_training(u, held, probed), confidence)


@for_rows("gain_post_training", interval=_post_training_interval)
def gain_post_training(u: RowUtilities, held: HeldOut, probed: Probed) -> float:
    """Expected gain in utility per decision from recalibration and post-training on the features together.

    gain_recalibration + gain_beyond, so that the three always add up; the ends of their intervals need not.
    """
    return _post_training(u, held, probed).mean


def need_amounts(u: RowUtilities) -> None:
    """Raise Undefined where a miss costs the same in every row."""
    if not np.ptp(u.benefit):
        raise Undefined("a miss costs the same in every row, so that the amount alone decides nothing")


def _by_amount_interval(u: RowUtilities, flagged: ByAmount, *, confidence: float) -> Interval:
    return normal(u.decided(flagged.large), confidence)


@metric(
    title="Utility of flagging by amount alone",
    better="neither",
    unit="utility",
    source="a threshold on the cost of a miss, cross-fitted in 5 folds",
    size_free=False,
    interval=_by_amount_interval,
    interval_text="mean of a per-row payoff on held-out rows: normal, from its standard error",
    covers="the mean utility, in the population, of the thresholds that the folds learned",
)
def eu_by_amount(u: RowUtilities, flagged: ByAmount) -> float:
    """Mean utility per row of acting wherever the cost of a miss is large, whatever the score; it needs no model.

    In each of five folds, the rows that cost at least so much to miss are acted on, from the cost that wins most on the
    other four folds.
    """
    need_amounts(u)
    return u.mean(u.payoff(flagged.large)).mean


def _over_amount_interval(u: RowUtilities, flagged: ByAmount, *, confidence: float) -> Interval:
    return normal(_over_amount(u, flagged), confidence)


def _over_amount(u: RowUtilities, flagged: ByAmount) -> Estimate:
    return u.decided(u.acts(u.rows.score), instead=flagged.large)


@metric(
    title="Gain over flagging by amount alone",
    better="higher",
    unit="utility",
    source="expected_utility - eu_by_amount, paired",
    size_free=False,
    interval=_over_amount_interval,
    interval_text=f"{MEAN_PAYOFF}; paired, on held-out rows",
    covers="the score's mean utility in the population, less that of the thresholds that the folds learned",
)
def gain_over_amount(u: RowUtilities, flagged: ByAmount) -> float:
    """Utility per row of acting on the score as it is, over acting wherever the cost of a miss is large.

    expected_utility - eu_by_amount. Where it is not above 0, the score says nothing that the amount does not.
    """
    need_amounts(u)
    return _over_amount(u, flagged).mean
