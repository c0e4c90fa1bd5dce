"""What decisions are worth where every row has utilities of its own, and what the amounts alone would decide."""

from __future__ import annotations

import numpy as np

from decal_cli.declarations.spec import Bins
from decal_cli.errors import Undefined
from decal_cli.learn.held_out import ByAmount
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.declare import for_rows, metric
from decal_cli.metrics.families.task import MEAN_PAYOFF
from decal_cli.metrics.regret_cells import ThresholdRegrets
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.table import BINS
from decal_cli.tables.units import Estimate


@for_rows("regret_grouping_worst", interval=None)
def regret_grouping_worst(u: RowUtilities, *, bins: Bins = BINS) -> float:
    """Utility per decision that knowing every label would add to recalibration: an upper limit, not an estimate.

    mean of u_delta t* (1 - c) over rows where c >= t*, and of u_delta c (1 - t*) over the others, where c is the
    frequency of label 1 in the bin of the row and t* its threshold.
    """
    return ThresholdRegrets(u).bins(bins).worst(u)


def need_amounts(u: RowUtilities) -> None:
    """Raise Undefined where a miss costs the same in every row."""
    if not np.ptp(u.benefit):
        raise Undefined("a miss costs the same in every row, so that the amount alone decides nothing")


def _flagging(u: RowUtilities, flagged: ByAmount) -> Decisions:
    """To act wherever the cost of a miss is large, whatever the score. Errors: Undefined."""
    need_amounts(u)
    return Decisions(u.rows.units, u.utility, flagged.large.astype(np.int64)).with_unseen()


@metric(
    "Utility of flagging by amount alone",
    "neither",
    "utility",
    "a threshold on the cost of a miss, cross-fitted in 5 folds",
    size_free=False,
    interval="normal",
    interval_text="mean of a per-row payoff on held-out rows: normal, from its standard error",
    covers="the mean utility, in the population, of the thresholds that the folds learned",
)
def eu_by_amount(u: RowUtilities, flagged: ByAmount) -> Estimate:
    """Mean utility per row of acting wherever the cost of a miss is large, whatever the score; it needs no model.

    In each of five folds, the rows that cost at least so much to miss are acted on, from the cost that wins most on the
    other four folds.
    """
    return _flagging(u, flagged).utility


@metric(
    "Gain over flagging by amount alone",
    "higher",
    "utility",
    "expected_utility - eu_by_amount, paired",
    size_free=False,
    interval="normal",
    interval_text=f"{MEAN_PAYOFF}; paired, on held-out rows",
    covers="the score's mean utility in the population, less that of the thresholds that the folds learned",
)
def gain_over_amount(u: RowUtilities, flagged: ByAmount) -> Estimate:
    """Utility per row of acting on the score as it is, over acting wherever the cost of a miss is large.

    expected_utility - eu_by_amount. Where it is not above 0, the score says nothing that the amount does not.
    """
    return Decisions.of_rows(u).with_unseen().utility - _flagging(u, flagged).utility
