"""Every metric's value on a known table, with its source: peers' numbers, papers' examples, and some worked by hand.

The hand-made world "hand" has ten rows: score .2 with labels 00100, .6 with 10, .9 with 111.
"""

from typing import NamedTuple

from decal_cli.task import BinaryTask


class Case(NamedTuple):
    key: str
    world: str
    value: float
    source: str
    task: BinaryTask | None = None
    within: float = 1e-9


SKLEARN = "scikit-learn 1.9.1"
PEERS = "scikit-learn bins, netcal, relplot and torchmetrics agree"
DIAGNOSTICS = "model-diagnostics 1.5.0"
MCGRAD = "mcgrad 0.1.5"
DCURVES = "dcurves 1.1.7"
HAND = "by hand: "
OPERATED_HIGH = BinaryTask.of_threshold(0.3, decision_threshold=0.8)
"""Decides 1 on score .9 only, of the world "hand"."""
OPERATED_LOW = BinaryTask.of_threshold(0.9, decision_threshold=0.5)
"""Decides 1 on scores .6 and .9."""
DOUBLE_STAKES = BinaryTask.of_utility([[0.0, -0.2], [-1.8, 0.0]], decision_threshold=0.5)
"""The same at twice the stakes: u_delta = 2."""


def _at(threshold: float) -> BinaryTask:
    return BinaryTask.of_threshold(threshold)


_LOSS = [
    Case("brier", "binary", 0.1969580170, SKLEARN),
    Case("brier", "binary weighted", 0.1958471562, SKLEARN),
    Case("brier", "binary, group A", 0.1953246209, SKLEARN),
    Case("brier", "binary, group B", 0.2001500155, SKLEARN),
    Case("brier", "ties", 0.209025, SKLEARN),
    Case("brier", "hand", 0.135, HAND + "(4 x .04 + .64 + .16 + .36 + 3 x .01) / 10"),
    Case("log_loss", "binary", 0.5949473990, SKLEARN),
    Case("log_loss", "binary weighted", 0.5917503202, SKLEARN),
    Case("corp_mcb", "binary", 0.0170393601, DIAGNOSTICS),
    Case("corp_mcb", "ties", 0.0217125736, DIAGNOSTICS),
    Case("corp_mcb", "hand", 0.005, HAND + ".135 - .13"),
    Case("corp_mcb(loss=log)", "binary", 0.0632170730, DIAGNOSTICS),
    Case("corp_dsc", "binary", 0.0364090931, DIAGNOSTICS),
    Case("corp_dsc", "ties", 0.0617875736, DIAGNOSTICS),
    Case("corp_dsc(loss=log)", "binary", 0.0924727275, DIAGNOSTICS + ": mcb + unc - log loss"),
    Case("corp_unc", "binary", 0.2163277500, DIAGNOSTICS),
    Case("corp_unc", "ties", 0.2491, DIAGNOSTICS),
    Case("corp_unc(loss=log)", "binary", 0.6242030535, DIAGNOSTICS),
    Case("refinement_loss", "binary", 0.1799186569, DIAGNOSTICS + ": unc - dsc"),
    Case("refinement_loss", "hand", 0.13, HAND + "(5 x .2 x .8 + 2 x .5 x .5) / 10"),
    Case("refinement_lower", "hand", 0.1, HAND + "(5 x .2 x .8 + 2 x .2 x .5) / 10, the Brier curve at t = .2"),
    Case("refinement_upper", "hand", 1 / 7, HAND + ".25 - (.3 - .3 x .5)^2 / (.3 x .7), the event {fit > .5}"),
    Case("spiegelhalter_z", "binary", 14.6167998, "calikit, pycaleva", within=5e-8),
    Case("calibration_slope", "binary, split cal", 0.5124642840, SKLEARN + ", LogisticRegression(penalty=None)"),
    Case("calibration_intercept", "binary, split cal", -0.4832463228, SKLEARN + ", LogisticRegression(penalty=None)"),
    Case("observed_expected", "hand", 5 / 4.9, HAND + "5 / (5 x .2 + 2 x .6 + 3 x .9)"),
]

_RULES = [
    Case("rule_regret", "binary", 0.1969580170 - 0.2163277500, "scikit-learn's brier, less the uncertainty"),
    Case("rule_regret", "hand", -0.115, HAND + ".135 - .25"),
    Case("rule_regret(rule=log)", "binary", 0.5949473990 - 0.6242030535, "scikit-learn's log loss, less the entropy"),
    Case("rule_regret(rule=v,kink=.7)", "hand", -0.18, HAND + "(5 x .7 - 2 + 2 x .7 - 1 - 3 x .3) / 10 - .2, kink .7"),
    Case("rule_cfdl", "hand", 0.005, HAND + "as k2"),
    Case("rule_cfdl(rule=v,kink=.55)", "hand", 0.02, HAND + "2 x 2 |.5 - .55| / 10, the level .6"),
]

_SUFFICIENCY = [
    Case("concavity_gap", "hand", 0.03, HAND + "the curve jumps from .02 to .05 at .9"),
    Case("concavity_gap_null", "hand", 0.097038, "all 72 outcomes of the labels, the envelope by chords", within=0.01),
]

_RANKING = [
    Case("auc", "binary", 0.7428866616, SKLEARN),
    Case("auc", "binary weighted", 0.7460354196, SKLEARN),
    Case("auc", "binary, group A", 0.7455923299, SKLEARN),
    Case("auc", "binary, group B", 0.7380238606, SKLEARN),
    Case("auc", "ties", 0.7675409251, SKLEARN),
    Case("auc", "hand", 0.86, HAND + "(3 x 5 + 4.5 + 2) of 25 pairs"),
    Case("average_precision", "binary", 0.5535493449, SKLEARN),
    Case("average_precision", "ties", 0.7357883513, SKLEARN),
    Case("average_precision", "hand", 0.86, HAND + ".6 x 1 + .2 x .8 + .2 x .5"),
]

_BINS = [
    Case("ece", "binary", 0.0981831540, "scikit-learn bins"),
    Case("ece(bins=10)", "binary", 0.0937822171, "scikit-learn bins"),
    Case("ece(strategy=width)", "binary", 0.0984574011, PEERS),
    Case("ece(bins=10,strategy=width)", "binary", 0.0916652229, PEERS),
    Case("ece_debiased", "binary", 0.0143573582, "by hand from scikit-learn's bins"),
    Case("ece_debiased(bins=10)", "binary", 0.0133932234, "uncertainty-calibration 0.1.4"),
    Case("ece_debiased", "hand", -0.065, HAND + ".5 (0 - .16/4) + .2 (.01 - .25/1) + .3 (.01 - 0/2)"),
    Case("ece_null", "hand", 0.166876, HAND + "as ece_exact_null, every score a bin", within=0.012),
    Case("cl", "hand", 0.005, HAND + "(2 x .01 + 3 x .01) / 10, every score a bin"),
    Case("rmsce", "hand", 0.005**0.5, HAND + "the root of cl"),
    Case("mce", "hand", 0.1, HAND + "|.5 - .6|"),
]

_LEVELS = [
    Case("ece_exact", "ties", 0.1398333333, "by hand from the twelve levels"),
    Case("ece_exact", "hand", 0.05, HAND + "(2 x .1 + 3 x .1) / 10"),
    Case("k2", "ties", 0.0255681570, "by hand from the twelve levels"),
    Case("k2", "hand", 0.005, HAND + "(2 x .01 + 3 x .01) / 10"),
    Case("ece_exact_null", "hand", 0.166876, HAND + "(.65536 + .576 + .4374) / 10, mean absolute deviations"),
    Case("k2_null", "hand", 0.049, HAND + "(.2 x .8 + .6 x .4 + .9 x .1) / 10"),
]

_INTERVAL = [
    Case("c_emp", "binary", 0.0566909915, MCGRAD),
    Case("c_emp", "ties", 0.0721666667, "by hand from the twelve levels; ties by row order would give .0741667"),
    Case("c_emp", "hand", 0.03, HAND + "prefix sums 0, 0, -.2, .1"),
    Case("c_bound", "hand", 0.03 + 1.058510 + 0.774045, HAND + "4 sqrt(22/pi)/10, sqrt(2 ln 20 / 10)", within=1e-5),
    Case(
        "c_bound(vc=1,values=3)",
        "hand",
        0.03 + 4.409145 + 0.858939,
        HAND + "4 sqrt((2 ln 10 + 2 + 4 ln 4) / 10)",
        within=1e-5,
    ),
    Case("atb", "hand", 0.00046, HAND + "(.2 x .01 + .4 x .01 + .3 x .13 + .1 x .01) / 100"),
    Case("c_emp_pvalue", "binary", 2.67877e-11, MCGRAD, within=1e-16),
]

_TASK = [
    Case("expected_utility", "hand", -0.1, HAND + "-(.5 x 1 + .5 x 1) / 10", _at(0.5)),
    Case("utility_share", "hand", 0.2, HAND + "(.21 - .2) / (.25 - .2)", OPERATED_HIGH),
    Case("net_benefit", "binary", 0.2769736842, DCURVES, _at(0.05)),
    Case("net_benefit", "binary", 0.1775, DCURVES, _at(0.2)),
    Case("net_benefit", "binary", 0.1246428571, DCURVES, _at(0.3)),
    Case("net_benefit", "binary", 0.0275, DCURVES, _at(0.5)),
    Case("net_benefit", "ties", 0.3508333333, DCURVES + ", p >= t", _at(0.2)),
    Case("eu_never", "hand", -0.35, HAND + "-.7 x 5 / 10", _at(0.3)),
    Case("eu_always", "hand", -0.15, HAND + "-.3 x 5 / 10", _at(0.3)),
    Case("swap_regret", "hand", 0.05, HAND + "(.9 x 5 - 4) / 10", OPERATED_LOW),
    Case("swap_regret", "hand", 0.1, HAND + "twice that", DOUBLE_STAKES),
    Case("external_regret", "hand", 0.05, HAND + "deciding 0 on all, against .4 - .9 x .5", OPERATED_LOW),
    Case("external_regret", "hand", 0.1, HAND + "twice that", DOUBLE_STAKES),
    Case("cfdl(levels=exact)", "ties", 0.0046666667, "calibration regret on exact levels", _at(0.2)),
    Case("cfdl(levels=exact)", "ties", 0.0126666667, "calibration regret on exact levels", _at(0.4)),
    Case("cfdl(levels=exact)", "ties", 0.0186666667, "calibration regret on exact levels", _at(0.6)),
    Case("cfdl(levels=exact)", "ties", 0.0353333333, "calibration regret on exact levels", _at(0.8)),
    Case("cfdl", "hand", 0.08, HAND + "(.9 x 2 - 1) / 10, the level .6; every score a bin", OPERATED_LOW),
    Case("cfdl", "hand", 0.16, HAND + "twice that", DOUBLE_STAKES),
    Case("cfdl_null", "hand", 0.0211, HAND + "(.036 + .16 + .015) / 10", _at(0.5), within=0.006),
    Case("accuracy", "hand", 0.8, HAND + "(3 + 5) / 10", OPERATED_HIGH),
    Case("sensitivity", "hand", 0.6, HAND + "3 / 5", OPERATED_HIGH),
    Case("specificity", "hand", 1.0, HAND + "5 / 5", OPERATED_HIGH),
    Case("ppv", "hand", 1.0, HAND + "3 / 3", OPERATED_HIGH),
    Case("npv", "hand", 5 / 7, HAND + "5 / 7", OPERATED_HIGH),
]

_PRACTICE = [
    Case("selection_rate", "hand", 0.5, HAND + "5 / 10", _at(0.5)),
    Case("false_positive_rate", "hand", 0.2, HAND + "1 / 5", _at(0.5)),
    Case("net_benefit_standardised", "hand", 0.6, HAND + "(4 - 1) / 5", _at(0.5)),
    Case("interventions_avoided", "hand", 30.0, HAND + "100 (4 - 1) / 10", _at(0.5)),
    Case("gini", "hand", 0.72, HAND + "2 (2 + 4.5 + 3 x 5) / 25 - 1"),
    Case("ks", "hand", 0.6, HAND + "4 / 5 - 1 / 5 up to .2"),
]

LP = "linear program over all pairs of scores and frequencies"
ENUMERATED = "mean over all 72 outcomes of the labels, a linear program each"

_AGENTS = [
    Case("cdl(levels=exact)", "ties", 0.0520952381, LP),
    Case("cdl(levels=exact)", "hand", 1 / 30, HAND + "(1 - .9) x 3 / 10 just above .9, over .9"),
    Case("v_cdl(levels=exact)", "ties", 0.0441666667, LP),
    Case("cdl_threshold(levels=exact)", "ties", 0.8, LP),
    Case("cdl_null", "hand", 0.155018, ENUMERATED, within=0.014),
    Case("v_cdl_null", "hand", 0.135240, ENUMERATED, within=0.014),
    Case("u_cal", "ties", 0.0416862745, LP),
    Case("v_cal", "ties", 0.0312280702, LP),
    Case("u_cal_threshold", "ties", 0.95, LP),
    Case("v_cal_kleinberg", "ties", 0.0593333333, "regret of every V-shaped rule around every score, by enumeration"),
]

QUADRATURE = "the width that equals the error, the kernel summed over its images, midpoint rule on 40,000 points"
COUPLING = "linear program over couplings, which a grid of targets makes larger"

_SMOOTH = [
    Case("sm_cal", "ties", 0.0499166667, LP),
    Case("sm_cal", "hand", 0.016, HAND + "prefix sums 0, .02, -.01: .01 + .3 x .02"),
    Case("sm_ece", "binary", 0.0915486629, QUADRATURE),
    Case("sm_ece(method=relplot)", "binary", 0.0915707356, "relplot 1.0.3"),
    Case("sm_ece(method=relplot)", "ties", 0.1082320416, "relplot 1.0.3"),
    Case("sm_ece(method=relplot)", "hand", 0.0499310353, "relplot 1.0.3"),
    Case("dist_cal_lower", "ties", 0.0464481284, COUPLING, within=5e-6),
    Case("dist_cal_lower", "hand", 0.01, HAND + "the mean gap in size, (2 x .1 - 3 x .1) / 10"),
    Case("dist_cal_upper", "hand", 0.05, HAND + "(2 x .1 + 3 x .1) / 10: no merge is cheaper"),
]

REFERENCE_CASES = [
    *_LOSS,
    *_RULES,
    *_SUFFICIENCY,
    *_RANKING,
    *_BINS,
    *_LEVELS,
    *_INTERVAL,
    *_AGENTS,
    *_SMOOTH,
    *_TASK,
    *_PRACTICE,
]
