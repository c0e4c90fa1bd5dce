"""The curves of a sweep, declared once: name, title, unit, range, source, and the sentence a user reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from decal_cli.tables.table import Floats

Block = Literal["loss", "regret", "decision"]
_LOSS = "utility lost per decision"
_UTILITY = "utility per decision"


@dataclass(frozen=True)
class Kind:
    """What a curve shows. short: a column's heading."""

    name: str
    title: str
    short: str
    block: Block
    unit: str
    range: tuple[float, float]
    source: str
    text: str


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve on the thresholds shown: value, low, high, shape (K,); NaN where undefined, then `reason` says why.

    expectation: under the prior, with its interval. brier: twice the exact area under a Brier curve.
    """

    kind: Kind
    value: Floats
    low: Floats | None = None
    high: Floats | None = None
    expectation: float | None = None
    expectation_interval: tuple[float, float] | None = None
    brier: float | None = None
    reason: str | None = None


_ALL = (
    Kind(
        "brier", "Brier curve", "as it is", "loss", _LOSS, (0, 1), "[T] def. 5.1",
        "(1 - t*) FN + t* FP per row of deciding 1 iff score >= t*; twice the area under it is the Brier score.",
    ),
    Kind(
        "brier_calibrated", "Brier curve, calibrated", "calibrated (isotonic)", "loss", _LOSS, (0, 1), "[T] def. 5.1",
        "The same of the isotonic fit, on its own rows; the area below the first curve is half of corp_mcb.",
    ),
    Kind(
        "brier_regions", "Brier curve, by region", "by region (held out)", "loss", _LOSS, (0, 1), "[T] def. 5.1",
        "The same of isotonic fit and regions together, each row judged by what the other four folds learned.",
    ),
    Kind(
        "brier_regions_plug_in", "Brier curve, by region, plug-in", "by region (plug-in)", "loss", _LOSS, (0, 1),
        "[T] def. 5.1",
        "The same of the label frequencies of the leaves, on their own rows: too low by the noise of the leaves.",
    ),
    Kind(
        "regret_calibration", "Calibration regret", "calibration regret", "regret", _UTILITY, (0, 1), "[R] def. 3.6",
        "Lost by acting on the score instead of on the frequency of its equal-mass bin; biased upward by noise.",
    ),
    Kind(
        "gain_recalibration", "Gain of recalibration", "gain of recalibration", "regret", _UTILITY, (-1, 1),
        "cross-fitted [R] def. 3.6; 5 folds",
        "To expect from isotonic recalibration, judged on rows held out; may be negative.",
    ),
    Kind(
        "regret_grouping_lower", "Grouping regret, lower bound", "grouping regret, at least", "regret", _UTILITY,
        (0, 1), "[R] thm. 3.4", "What the best probability would surely add to recalibration.",
    ),
    Kind(
        "regret_grouping_upper", "Grouping regret, upper bound", "grouping regret, at most", "regret", _UTILITY,
        (0, 0.5), "[R] thm. 3.5", "What the best probability would at most add, given the grouping loss features show.",
    ),
    Kind(
        "gain_beyond", "Gain beyond recalibration", "gain beyond recalibration", "regret", _UTILITY, (-1, 1),
        "honest counterpart of [R] def. 3.6; docs/probe.md",
        "To expect from post-training on the features, on top of recalibration, judged on rows held out.",
    ),
    Kind(
        "gain_post_training", "Gain of post-training", "gain of post-training", "regret", _UTILITY, (-1, 1),
        "honest counterpart of [R] def. 3.6; docs/probe.md",
        "To expect from recalibration and post-training on the features together, judged on rows held out.",
    ),
    Kind(
        "net_benefit", "Net benefit", "net benefit", "decision", "true positives per row", (-float("inf"), 1),
        "Vickers & Elkin 2006", "(TP - FP t* / (1 - t*)) / T of the model.",
    ),
    Kind(
        "net_benefit_all", "Net benefit, treat all", "treat all", "decision", "true positives per row",
        (-float("inf"), 1), "Vickers & Elkin 2006", "The same of deciding 1 always; treat none has 0.",
    ),
    Kind(
        "threshold_adjusted", "Adjusted threshold", "adjusted threshold", "decision", "score", (0, 1),
        "[R] prop. 3.3", "Score from which the isotonic fit is at least t*: deciding from there on recalibrates.",
    ),
    Kind(
        "v_regret", "V-regret", "V-regret", "decision", "utility per decision, payoffs in [0, 1]", (0, 2), "[U] thm. 9",
        "2 G(t*): twice what always acting on the base rate would add to acting on the score; 0 where it would not.",
    ),
    Kind(
        "cfdl", "Calibration decision loss", "CFDL", "decision", _UTILITY, (0, 1), "[C] def. 2.14",
        "Lost by acting on a level's score instead of on its frequency; levels as for the metric cfdl.",
    ),
)  # fmt: skip
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
