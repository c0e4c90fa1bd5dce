"""Logistic curves: the likelihood is at its maximum, constraints hold, and what has no maximum says so."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.curves import (
    MIN_SCORE,
    Beta,
    InPopulation,
    Sigmoid,
    Threshold,
    _lower_quantile,
    beta_terms,
    fit_temperature,
    logit,
    term,
)
from decal_cli.learn.method import Training
from decal_cli.learn.regions import isotonic_fit
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.task import BinaryTask
from tests.helpers.training import (
    apply_in_sample,
    fit_method,
    random_training,
    shipped_training,
    training_of,
    unlabelled,
    with_task,
)
from tests.helpers.worlds import any_rows, value_of
from tests.helpers.worlds import rows_by_level as by_level


def log_loss(model: Sigmoid | Beta, rows: Rows, target: np.ndarray) -> float:
    """Mean log loss in log-odds, which stays finite."""
    if isinstance(model, Beta):
        first, second = beta_terms(rows.score)
        eta = model.a * first + model.b * second + model.c
    else:
        eta = model.slope * term(rows.score, model.on) + model.intercept
    weight = np.ones(len(eta)) if rows.weight is None else rows.weight
    return float(np.average(np.logaddexp(0, eta) - target * eta, weights=weight))


def platts_targets(rows: Rows) -> np.ndarray:
    weight = np.ones(len(rows.score)) if rows.weight is None else rows.weight
    positives, negatives = weight @ (rows.label == 1), weight @ (rows.label == 0)
    return np.where(rows.label == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def fitted_or_skipped(key: str, rows: Rows) -> Sigmoid | Beta:
    try:
        return fit_method(key, training_of(rows))
    except Undefined as undefined:
        assert undefined.reason.startswith("needs")
        assume(False)
        raise


STEPS = [(da, db) for da in (-1e-3, 0, 1e-3) for db in (-1e-3, 0, 1e-3)]


@given(rows=any_rows(least=4, inner=True), key=st.sampled_from(["platt", "platt(on=p)", "platt(targets=labels)"]))
def test_no_curve_beside_it_is_likelier(rows: Rows, key: str) -> None:
    model = fitted_or_skipped(key, rows)
    target = rows.label if "labels" in key else platts_targets(rows)
    best = log_loss(model, rows, target)
    for slope, intercept in STEPS:
        beside = Sigmoid(model.on, model.slope + slope, model.intercept + intercept)
        assert log_loss(beside, rows, target) >= best - 1e-10


def test_a_newton_step_that_would_overshoot_is_cut_short() -> None:
    """One light row against heavy ones at the end: full steps run away from here."""
    rows = Rows(np.array([0.5, 0.999, 1.0]), np.array([0, 1, 1]), np.array([0.126, 788.0, 4.6]))
    model = fit_method("platt", training_of(rows))
    assert model.slope == pytest.approx(0.8998, abs=1e-3)
    best = log_loss(model, rows, platts_targets(rows))
    for slope, intercept in STEPS:
        beside = Sigmoid("logit", model.slope + slope, model.intercept + intercept)
        assert log_loss(beside, rows, platts_targets(rows)) >= best


@given(rows=any_rows(least=5, inner=True))
def test_beta_obeys_its_constraints_and_no_other_such_curve_is_likelier(rows: Rows) -> None:
    model = fitted_or_skipped("beta", rows)
    assert model.a >= 0 and model.b >= 0
    best = log_loss(model, rows, rows.label)
    for a, b in STEPS:
        for c in (-1e-3, 0, 1e-3):
            beside = Beta(max(model.a + a, 0.0), max(model.b + b, 0.0), model.c + c)
            assert log_loss(beside, rows, rows.label) >= best - 1e-9


def test_a_score_that_ranks_the_wrong_way_gets_an_infinite_temperature() -> None:
    for levels in ({0.1: "1101", 0.8: "0010"}, {0.1: "111", 0.8: "000"}):
        model = fit_method("temperature", training_of(by_level(levels)))
        assert vars(model) == vars(Sigmoid("logit", 0.0, 0.0))
        np.testing.assert_array_equal(model(Unlabelled(np.array([0.0, 0.3, 1.0]))).score, 0.5)


def test_beta_is_found_where_only_a_curve_that_falls_again_separates_the_labels() -> None:
    """Without its constraints beta would grow forever: label 1 between .3 and .5 alone."""
    rows = by_level({0.1: "00", 0.3: "11", 0.5: "11", 0.8: "0"})
    model = fit_method("beta", training_of(rows))
    assert model.a > 0 and model.b == 0
    best = log_loss(model, rows, rows.label)
    assert log_loss(Beta(model.a + 1e-3, 0.0, model.c), rows, rows.label) > best
    assert log_loss(Beta(model.a, 1e-3, model.c), rows, rows.label) > best


SEPARATED = by_level({0.2: "00", 0.4: "0", 0.7: "11"})


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        *((key, SEPARATED) for key in ("platt(targets=labels)", "temperature", "beta")),
        ("temperature", by_level({0.2: "00", 0.5: "01", 0.7: "11"})),  # at 0.5 no label is on the wrong side
    ],
)
def test_where_a_threshold_separates_the_labels_there_is_no_maximum(key: str, rows: Rows) -> None:
    with pytest.raises(Undefined, match=r"needs .*separate"):
        fit_method(key, training_of(rows))


def test_smoothed_targets_have_a_maximum_even_there() -> None:
    model = fit_method("platt", training_of(SEPARATED))
    assert 0 < model.slope < 10


def test_scores_of_0_and_1_are_cut_where_the_docstring_says() -> None:
    ends = logit(np.array([0.0, MIN_SCORE, 1 - MIN_SCORE, 1.0]))
    assert ends[0] == ends[1] and ends[2] == ends[3] and abs(ends[3]) == pytest.approx(27.6, abs=0.05)


def test_scores_far_apart_in_log_odds_and_close_in_value_are_fitted_alike() -> None:
    """A tiny spread must not spoil the fit: the curve sees log-odds in units of their deviation."""
    rng = np.random.default_rng(0)
    score = 0.3 + 1e-9 * rng.normal(size=500)
    label = (rng.random(500) < 1 / (1 + np.exp(-(score - 0.3) * 1e9))).astype(float)
    model = fit_method("platt", training_of(Rows(score, label)))
    new = model(Unlabelled(np.array([0.3 - 1e-9, 0.3, 0.3 + 1e-9]))).score
    assert 0.15 < new[0] < 0.4 < new[1] < 0.6 < new[2] < 0.85


def test_quadratic_is_scikit_learns_regression_on_the_smoothed_labels() -> None:
    rows: Any = shipped_training("cal")
    z = logit(rows.score)
    target = platts_targets(rows)
    columns = np.column_stack((z**2, z))
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        np.vstack((columns, columns)), np.repeat([1, 0], len(z)), np.concatenate((target, 1 - target))
    )
    model = fit_method("quadratic", rows)
    assert [model.square, model.slope] == pytest.approx(peer.coef_[0], abs=1e-5)
    assert model.intercept == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_a_spline_is_natural_and_the_likeliest() -> None:
    rows: Any = shipped_training("cal")
    model = fit_method("spline", rows)
    knots = model.knots
    assert knots == pytest.approx(np.quantile(logit(rows.score), (0.05, 0.275, 0.5, 0.725, 0.95)), abs=0.05)

    def curve(z: np.ndarray) -> np.ndarray:
        return logit(model(Unlabelled(expit(z))).score)

    inside = np.linspace(knots[0], knots[-1], 50)
    through = CubicSpline(knots, curve(knots), bc_type="natural")
    assert curve(inside) == pytest.approx(through(inside), abs=1e-6)
    beyond = knots[-1] + np.array([0.1, 0.2, 0.3])
    assert np.diff(curve(beyond), 2) == pytest.approx(0, abs=1e-7)
    target = platts_targets(rows)
    left = target - model(unlabelled(rows)).score
    z = np.clip(logit(rows.score), knots[0], knots[-1])
    for k in range(len(knots)):
        cardinal = CubicSpline(knots, np.eye(len(knots))[k], bc_type="natural")
        off = logit(rows.score) - z
        term = cardinal(z) + off * np.where(off < 0, cardinal(knots[0], 1), cardinal(knots[-1], 1))
        assert float(left @ term) == pytest.approx(0, abs=1e-4)


def test_few_scores_cannot_bend() -> None:
    rows = Training(np.array([0.2, 0.8] * 20), np.array([0.0, 1.0, 1.0, 0.0] * 10))
    enough = Training(np.array([0.2, 0.5, 0.8] * 20), np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0] * 10))
    for key, reason in (("quadratic", "3 distinct scores"), ("spline", "3 different knots")):
        with pytest.raises(Undefined, match=reason):
            fit_method(key, rows)
        fit_method(key, enough)


def test_histogram_by_hand() -> None:
    """Median .4, which belongs to the lower bin."""
    model = fit_method("histogram(bins=2)", training_of(by_level({0.2: "01", 0.4: "0", 0.7: "1", 0.9: "1"})))
    np.testing.assert_allclose(model(Unlabelled(np.array([0.0, 0.4, 0.41, 1.0]))).score, [1 / 3, 1 / 3, 1, 1])


def test_scaling_binning_is_the_mean_of_its_curve_in_each_bin() -> None:
    rows = random_training(400, 3)
    model = fit_method("scaling-binning(bins=5)", rows)
    curve, score = model.curve(rows).score, model(rows).score
    assert len(np.unique(score)) == 5
    for value in np.unique(score):
        assert curve[score == value].mean() == pytest.approx(value, abs=1e-12)
    np.testing.assert_array_equal(model.curve(rows).score, fit_method("platt", rows)(rows).score)


def test_meta_cal_gives_half_within_its_cut_and_temperature_beyond() -> None:
    model = fit_method("meta-cal", random_training(1000, 1))
    assert 0 < model.cut < 0.5
    score = np.array([0.5 - model.cut * 0.99, 0.5 + model.cut * 0.99, 0.01, 0.99])
    calibrated = model(Unlabelled(score)).score
    np.testing.assert_array_equal(calibrated[:2], 0.5)
    np.testing.assert_array_equal(calibrated[2:], model.curve(Unlabelled(score[2:])).score)


def test_the_rows_that_set_meta_cals_cut_do_not_fit_its_curve() -> None:
    rows = random_training(1000, 1)
    model = fit_method("meta-cal", rows)
    beyond = rows.in_order().take(np.abs(rows.in_order().score - 0.5) > model.cut)
    assert model.curve.slope != pytest.approx(fit_temperature(beyond.table).slope, rel=1e-6)
    ranked = int(((rows.score >= 0.5) == (rows.label == 1)).sum()) // 10
    assert model.curve.slope == pytest.approx(fit_temperature(beyond.table).slope, rel=3 * ranked / len(rows))


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    share=st.floats(0, 0.999),
    weight=st.sampled_from([1.0, 0.1, 3.0]),
)
def test_the_quantile_of_equal_weights_is_numpys_lower_one(values: list[float], share: float, weight: float) -> None:
    quantile = _lower_quantile(np.array(values), np.full(len(values), weight), share)
    assert quantile == np.quantile(values, share, method="lower")


def test_meta_cal_needs_rows_that_the_score_decides_rightly() -> None:
    with pytest.raises(Undefined, match="needs at least 10 rows"):
        fit_method("meta-cal", training_of(by_level({0.2: "1111110", 0.9: "0000001"})))


def refitted(rows: Rows, new: float) -> tuple[float, float]:
    """p0 and p1 by definition."""
    score = np.append(rows.score, new)
    weight = None if rows.weight is None else np.append(rows.weight, 1.0)
    p0, p1 = (
        float(isotonic_fit(Rows(score, np.append(rows.label, label), weight)).of(np.array([new]))[0])
        for label in (0, 1)
    )
    return p0, p1


@settings(max_examples=60)
@given(rows=any_rows(least=2), more=st.lists(st.floats(0, 1), max_size=6))
def test_the_lookup_gives_what_refitting_gives(rows: Rows, more: list[float]) -> None:
    try:
        model = fit_method("venn-abers", training_of(rows))
    except Undefined:
        return  # One class.
    new = np.concatenate((np.unique(rows.score), [0.0, 1.0], more))
    applied = model(Unlabelled(new))
    p0, p1 = np.array([refitted(rows, float(each)) for each in new]).T
    np.testing.assert_allclose(applied.lower, p0, atol=1e-12)
    np.testing.assert_allclose(applied.upper, p1, atol=1e-12)
    np.testing.assert_allclose(applied.score, p1 / (1 - p0 + p1), atol=1e-12)


def test_a_long_table_is_fitted_in_linear_time_and_kept_short() -> None:
    """Fifty thousand levels: the tables hold the pools, not the levels."""
    model = fit_method("venn-abers", random_training(50_000, 0))
    assert len(model.p1) < 2_500


@settings(max_examples=60)
@given(rows=any_rows(least=2), t=st.floats(0.02, 0.98))
def test_in_sample_it_decides_as_the_isotonic_fit_does(rows: Rows, t: float) -> None:
    learned = with_task(training_of(rows), t)
    try:
        moved, fit = apply_in_sample("threshold", learned), apply_in_sample("isotonic", learned)
    except Undefined:
        return  # One class.
    np.testing.assert_array_equal(moved.score, rows.score)
    np.testing.assert_array_equal(moved.acts(learned.task), fit.acts(learned.task))


def test_it_is_the_threshold_that_the_metric_names() -> None:
    rows = by_level({0.2: "00100", 0.6: "10", 0.9: "111"})
    model = fit_method("threshold", with_task(training_of(rows), 0.4))
    named = value_of("threshold_adjusted", rows.table, BinaryTask.of_threshold(0.4))
    assert model.threshold == named == 0.6


PEER = "scikit-learn 1.9.1, "
BRIER = {
    "isotonic": (0.1976744936, 1e-9, PEER + "IsotonicRegression(out_of_bounds=clip)"),
    "platt(on=p)": (0.2006604450, 1e-9, PEER + "_SigmoidCalibration on p"),
    "platt": (0.1969548927, 1e-9, PEER + "_SigmoidCalibration on logit(p)"),
    "platt(targets=labels)": (0.1969811899, 1e-9, PEER + "LogisticRegression(C=inf) on logit(p)"),
    "temperature": (0.1962045987, 1e-9, PEER + "_TemperatureScaling on logit(p)"),
    "beta": (0.1967413892, 1e-9, PEER + "LogisticRegression(C=inf) on log p, -log(1 - p): a, b come out above 0"),
    "venn-abers": (0.1973815767, 1e-9, PEER + "IsotonicRegression refitted twice for every scored row"),
    "histogram(bins=10)": (0.1968162, 1e-9, "frequencies between numpy's quantiles, by hand"),
    "scaling-binning(bins=10)": (0.1972894533, 5e-4, "uncertainty-calibration 0.1.4, which cuts bins otherwise"),
}


@pytest.mark.parametrize("key", BRIER)
def test_the_brier_score_on_the_other_half_is_the_peers(key: str) -> None:
    test = shipped_training("test")
    value, within, origin = BRIER[key]
    score = fit_method(key, shipped_training("cal"))(unlabelled(test)).score
    assert np.mean((score - test.label) ** 2) == pytest.approx(value, abs=within), origin


COEFFICIENTS = {
    "platt(on=p)": ({"slope": 3.0774959774, "intercept": -2.0576454766}, "as above; its A and B have the other sign"),
    "platt": ({"slope": 0.5089667642, "intercept": -0.4849766633}, "as above; its A and B have the other sign"),
    "platt(targets=labels)": ({"slope": 0.5124642840, "intercept": -0.4832463228}, "as above"),
    "temperature": ({"slope": 1 / 1.6591871014, "intercept": 0.0}, "as above; half of 1 / beta_, it has two logits"),
    "beta": ({"a": 0.5285384882, "b": 0.4887644791, "c": -0.4449289530}, "as above"),
}


@pytest.mark.parametrize("key", COEFFICIENTS)
def test_the_coefficients_are_the_peers(key: str) -> None:
    expected, origin = COEFFICIENTS[key]
    model = fit_method(key, shipped_training("cal"))
    for name, value in expected.items():
        assert getattr(model, name) == pytest.approx(value, abs=1e-6), origin


def test_isotonic_returns_the_peers_zeros_and_ones() -> None:
    score = fit_method("isotonic", shipped_training("cal"))(unlabelled(shipped_training("test"))).score
    assert (int((score == 0).sum()), int((score == 1).sum())) == (24, 3)  # scikit-learn 1.9.1, IsotonicRegression


def test_a_threshold_among_moved_scores_is_that_of_the_scores_as_they_come() -> None:
    """Where labels 0 count 1.2 and labels 1 count .4, odds of 1 become 1:3."""
    model = InPopulation(np.array([1.2, 0.4]), Threshold(0.25))
    applied = model(Unlabelled(np.array([0.25, 0.5, 0.75])))
    assert applied.threshold == pytest.approx([0.5, 0.5, 0.5])
    assert applied.score.tolist() == [0.25, 0.5, 0.75]
