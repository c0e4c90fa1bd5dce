"""What following the advice loses, against sums done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from decal_cli.analysis.study import Study
from decal_cli.analysis.study.columns import points_of
from decal_cli.analysis.study.policies import advised, advised_as_printed, policies
from tests.helpers.studies import study_point, study_record, study_setting

METHODS = ("isotonic", "refit", "stack", "stack-boosting", "blend")


def estimates(
    recalibration: tuple[float, float], beyond: tuple[float, float], together: tuple[float, float]
) -> dict[str, tuple[float, float, float]]:
    """Each gain as its middle and how far its interval reaches."""
    named = {"gain_recalibration": recalibration, "gain_beyond": beyond, "gain_post_training": together}
    return {name: (value, value - reach, value + reach) for name, (value, reach) in named.items()}


SURE = 0.0005
POINTS = [
    # advised and gains of the methods in order; costs are .002 and .01
    ("nothing", estimates((0, SURE), (0, SURE), (0, SURE)), (-0.001, -0.003, 0.0, 0.001, 0.0)),
    ("recalibrate", estimates((0.1, SURE), (0, SURE), (0.1, SURE)), (0.09, 0.091, 0.08, 0.08, 0.092)),
    ("post-train", estimates((0, SURE), (0.1, SURE), (0.1, SURE)), (0.0, 0.12, 0.11, 0.08, 0.1)),
    # Nothing is sure: what the estimates lean to.
    ("recalibrate", estimates((0.05, 1), (0, 1), (0.05, 1)), (0.001, 0.04, 0.0, 0.0, 0.02)),
]
# The best net gain known afterwards less that of each way of choosing, by hand:
#   best: nothing 0; isotonic .088; refit .11; refit .03
FOLLOWED = [0.0, 0.0, 0.11 - 0.09, 0.03 - (-0.001)]
ISOTONIC = [0.003, 0.0, 0.11 + 0.002, 0.03 + 0.001]
REFIT = [0.013, 0.088 - 0.081, 0.0, 0.0]
BLEND = [0.01, 0.088 - 0.082, 0.11 - 0.09, 0.03 - 0.01]
NOTHING = [0.0, 0.088, 0.11, 0.03]


def studied(methods: tuple[str, ...] = METHODS) -> Study:
    """Two scores of two points each."""
    points = [
        study_point(0.1 * (k + 1), estimated, dict(zip(methods, gains, strict=False)))
        for k, (_, estimated, gains) in enumerate(POINTS)
    ]
    records = (study_record("a.csv", "p", 0, points[:2]), study_record("a.csv", "q", 0, points[2:]))
    return Study(records, (), study_setting(*methods))


def test_the_advice_is_that_of_the_flowchart() -> None:
    actions = advised(points_of(studied()), [1000] * 4, {"recalibrate": 0.002, "post-train": 0.01})
    expected = ["nothing" if action in ("done", "do-not-post-train") else action for action in actions]
    assert expected == [action for action, _, _ in POINTS]


def test_losses_are_those_by_hand() -> None:
    result = policies(points_of(studied()), [1000] * 4, 1.0)
    by_hand = {
        "follow the advice": FOLLOWED,
        "flowchart as printed": NOTHING,  # without regrets it has nothing to go by
        "always nothing": NOTHING,
        "always isotonic": ISOTONIC,
        "always refit": REFIT,
        "always blend": BLEND,
    }
    assert [policy.name for policy in result.policies] == list(by_hand)
    for policy in result.policies:
        losses = by_hand[policy.name]
        assert policy.loss == pytest.approx(np.mean(losses), abs=1e-12)
        by_score = [np.mean(losses[:2]), np.mean(losses[2:])]
        assert policy.error == pytest.approx(np.std(by_score, ddof=1) / np.sqrt(2), abs=1e-12)
    assert result.share == pytest.approx(np.mean(FOLLOWED) / min(np.mean(ISOTONIC), np.mean(REFIT)))
    assert result.right == 0.5
    assert result.policies[0].chosen == {"do-not-post-train": 0.25, "post-train": 0.25, "recalibrate": 0.5}
    assert result.policies[4].chosen == {"refit": 1.0}
    assert all(policy.interval is None for policy in result.policies), "two scores are too few"


def test_a_constant_decision_that_is_ahead_is_followed() -> None:
    ahead = {"eu_never": -0.3, "eu_always": -0.1, "external_regret": 0.05, "expected_utility": -0.15}
    named = estimates((0, SURE), (0, SURE), (0, SURE)) | {name: (value, value, value) for name, value in ahead.items()}
    gains = dict(zip(METHODS, (0.01, 0.0, 0.0, 0.0, 0.0), strict=True))
    records = (study_record("a.csv", "p", 0, [study_point(0.1, named, gains, constants=(-0.1, 0.04))]),)
    study = Study(records, (), study_setting(*METHODS))
    assert advised(points_of(study), [1000], {"recalibrate": 0.002, "post-train": 0.01}).tolist() == ["always-1"]
    result = policies(points_of(study), [1000], 1.0)
    losses = {policy.name: policy.loss for policy in result.policies}
    assert losses["follow the advice"] == 0 and losses["always nothing"] == pytest.approx(0.04)


def regrets(calibration: float, grouping: float) -> dict[str, tuple[float, float, float]]:
    values = {"regret_calibration": calibration, "regret_grouping": grouping, "regret": calibration + grouping}
    return {name: (value, value, value) for name, value in values.items()}


PRINTED = [
    # t*, regrets, what the paper's flowchart advises; a grouping regret is 0 up to .02 t*, costs are .002 and .01
    (0.5, regrets(0.0, 0.0), "nothing"),
    (0.5, regrets(0.1, 0.009), "recalibrate"),
    (0.5, regrets(0.1, 0.011), "post-train"),
    (0.1, regrets(0.1, 0.009), "post-train"),
    (0.5, regrets(0.001, 0.0005), "nothing"),
    (0.1, regrets(0.001, 0.005), "nothing"),
]


def test_the_printed_flowchart_goes_by_the_plug_in_regrets() -> None:
    gains = dict(zip(METHODS, (0.02, 0.0, 0.0, 0.0, 0.05), strict=True))
    points = [study_point(t, estimated, gains) for t, estimated, _ in PRINTED]
    study = Study((study_record("a.csv", "p", 0, points),), (), study_setting(*METHODS))
    assert advised_as_printed(points_of(study), {"recalibrate": 0.002, "post-train": 0.01}).tolist() == [
        action for _, _, action in PRINTED
    ]
    # Best is blend, .04 after its cost; isotonic wins .018.
    _, printed = policies(points_of(study), [1000] * len(PRINTED), 1.0).policies[:2]
    assert printed.loss == pytest.approx((3 * 0.04 + 0.022) / 6, abs=1e-12) and printed.right == pytest.approx(2 / 6)


def test_intervals_over_files_are_those_of_students_t() -> None:
    losses = [0.01, 0.02, 0.04, 0.05, 0.08]
    points = [[study_point(0.5, {}, {"isotonic": loss, "refit": 0.0, "blend": 0.0})] for loss in losses]
    records = [study_record(f"{k}.csv", "p", 0, each) for k, each in enumerate(points)]
    study = Study(tuple(records), (), study_setting("isotonic", "refit", "blend"))
    nothing = policies(points_of(study), [1000] * 5, 0.0, 0.9).policies[2]
    assert nothing.name == "always nothing" and nothing.loss == pytest.approx(0.04)
    reach = scipy.stats.t.ppf(0.95, 4) * np.std(losses, ddof=1) / np.sqrt(5)
    assert nothing.interval == pytest.approx((0.04 - reach, 0.04 + reach), abs=1e-12)


def test_where_methods_cost_more_than_they_win_nothing_is_best() -> None:
    losses = policies(points_of(studied()), [1000] * 4, 1000.0)
    loss = {policy.name: policy.loss for policy in losses.policies}
    assert loss["always nothing"] == loss["follow the advice"] == 0 and losses.right == 1
    assert loss["always isotonic"] == pytest.approx(2 - np.mean([gains[0] for _, _, gains in POINTS]))


def test_points_without_a_gain_are_left_out() -> None:
    study = studied()
    study.records[1]["points"][1]["gains"]["refit"] = None
    losses = policies(points_of(study), [1000] * 4, 1.0)
    assert losses.policies[0].loss == pytest.approx(np.mean(FOLLOWED[:3]))
    assert losses.right == pytest.approx(2 / 3)


def test_without_the_methods_there_is_nothing_to_compare() -> None:
    assert policies(points_of(studied(METHODS[:4])), [1000] * 4, 1.0) is None
