"""What features say beyond the score, whatever the task."""

from __future__ import annotations

from decal_cli.declarations.papers import cite
from decal_cli.learn.probe import Probed, no_signal
from decal_cli.metrics.declare import metric


@metric(
    "Signal of the features, p-value",
    "neither",
    "p-value",
    f"generalised covariance measure: {cite('Shah and Peters 2020')}",
    (0, 1),
    size_free=False,
    interval=None,
    covers="nothing: it is a p-value",
)
def features_pvalue(probed: Probed) -> float:
    """Probability of so clear a signal of the features when they say nothing about the label beyond the score.

    Among 20 rows of a fold with nearly the same score, do labels go with the log-odds of a probe (see gain_beyond) that
    has not seen the fold? One-sided; the sum of the products of both residuals, over its standard error, is widened by
    1.2 because folds learn from each other's rows. Small: there is something to learn, whether or not it wins anything
    at t* with so few rows.
    """
    return no_signal(probed)
