"""Curves over thresholds: brute force at each t*, areas, and the same numbers as `evaluate` at every t*."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.analysis.evaluate import Plan, evaluate
from decal_cli.curves import battery
from decal_cli.curves.battery import FeaturedRows, curves_of
from decal_cli.curves.crossings import consistency_band
from decal_cli.curves.grid import Grid, parse_prior, parse_thresholds
from decal_cli.curves.kinds import CURVE_KINDS
from decal_cli.data import from_arrays
from decal_cli.errors import DecalError
from decal_cli.learn.probe import build_probe
from decal_cli.learn.regions import build_regions, hold_out
from decal_cli.metrics import parse
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table, tabulate
from decal_cli.task import BinaryTask
from tests.helpers.command import BINARY, FOX, Decal
from tests.helpers.worlds import value_of

ALL = parse_thresholds("0.01:0.99:0.01")
SAME = (
    *("regret_calibration", "gain_recalibration", "regret_grouping_lower", "regret_grouping_upper"),
    *("regret_grouping_upper_sharp", "gain_beyond", "gain_post_training", "net_benefit", "threshold_adjusted", "cfdl"),
    *("sensitivity", "ppv", "false_positive_rate"),
)
"""Curves that are named as the metric that they are at one t*."""


def curve_rows(n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    label = rng.random(n) < 1 / (1 + np.exp(-x[:, 0] - np.sign(x[:, 1])))
    return 1 / (1 + np.exp(-1.5 * x[:, 0])), label.astype(np.uint8), x


def featured_of(
    score: np.ndarray, label: np.ndarray, x: np.ndarray, weight: np.ndarray | None = None, seed: int = 0
) -> FeaturedRows:
    rows = Rows(score, label, weight, features=x)
    parts = (build(rows, seed=seed) for build in (build_regions, hold_out, build_probe))
    return FeaturedRows(*parts)


def brier_at(key: np.ndarray, label: np.ndarray, weight: np.ndarray, t: float) -> float:
    """Mean of what the rule {key >= t} loses: t on a false positive, 1 - t on a false negative."""
    acts = key >= t
    return float(np.average(np.where(acts, t * (1 - label), (1 - t) * label), weights=weight))


def brier_area(key: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    """The exact integral of the Brier curve: linear between keys, so the trapezes of its one-sided ends."""
    ends = np.unique(np.concatenate((key, [0.0, 1.0])))
    middle = (ends[1:] + ends[:-1]) / 2
    return float(sum(brier_at(key, label, weight, t) * d for t, d in zip(middle, np.diff(ends), strict=True)))


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize(("weighted", "threshold"), [(False, 0.5), (True, 0.31)])
def test_every_curve_is_the_metric_that_evaluate_prints_at_that_threshold(weighted: bool, threshold: float) -> None:
    score, label, x = curve_rows(300)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(score)) if weighted else None
    t, featured = tabulate(score, label, weight), featured_of(score, label, x, weight, 3)
    curves = curves_of(t, featured, Grid(ALL), seed=3)
    # Those of a limited capacity need one.
    assert set(curves) == {name for name, kind in CURVE_KINDS.items() if kind.block != "capacity"}
    k = int(np.flatnonzero(threshold == ALL)[0])
    given = {} if weight is None else {"weight": weight}
    from_rows = from_arrays(score, label, features=x, **given)
    names = [*SAME, "expected_utility", "external_regret"]
    plan = Plan(tuple(map(parse, names)), BinaryTask.of_threshold(threshold), seed=3)
    (report,) = evaluate(from_rows, plan).reports
    for name in SAME:
        assert curves[name].value[k] == pytest.approx(report.results[name].value, abs=1e-12), name
    assert curves["lift"].value[k] == pytest.approx(report.results["ppv"].value / t.base_rate, abs=1e-12)
    assert curves["brier"].value[k] == pytest.approx(-report.results["expected_utility"].value, abs=1e-12)
    # Signed: below 0 where the score beats the base rate.
    assert curves["v_regret"].value[k] == pytest.approx(2 * report.results["external_regret"].value, abs=1e-12)
    for name in SAME:
        ends = report.results[name].interval
        assert (curves[name].low[k], curves[name].high[k]) == pytest.approx(ends, abs=1e-9), name
    low, high = report.results["expected_utility"].interval
    assert (curves["brier"].low[k], curves["brier"].high[k]) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.ci
def test_a_second_thread_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    score, label, _ = curve_rows(3000)
    one = curves_of(tabulate(score, label), None, Grid(ALL))
    monkeypatch.setattr(battery, "MAX_ONE_THREAD", 0)
    two = curves_of(tabulate(score, label), None, Grid(ALL))
    for name in one:
        for part in ("value", "low", "high"):
            assert np.array_equal(getattr(two[name], part), getattr(one[name], part), equal_nan=True), name
    few = curves_of(tabulate(score[:5], label[:5]), None, Grid(ALL))
    assert "rows" in str(few["gain_recalibration"].reason)


any_levels = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 1), st.sampled_from([0.5, 1.0, 2.5])), min_size=1, max_size=60
)


@given(any_levels, st.booleans())
def test_brier_curves_by_brute_force_with_their_areas(rows: list[tuple[int, int, float]], weighted: bool) -> None:
    score, label, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    score, weight = score / 20, weight if weighted else np.ones(len(score))
    t = tabulate(score, label.astype(np.uint8), weight if weighted else None)
    curves = curves_of(t, None, Grid(np.array([0.05, 0.3, 0.35, 0.62, 0.95])), confidence=None)
    fit = t.isotonic.pos / t.isotonic.n
    fitted = np.repeat(fit, np.diff(np.append(t.pools, len(t))))[np.searchsorted(t.score, score)]
    for name, key in (("brier", score), ("brier_calibrated", fitted)):
        expected = [brier_at(key, label, weight, at) for at in (0.05, 0.3, 0.35, 0.62, 0.95)]
        assert curves[name].value == pytest.approx(expected, abs=1e-12)
        brier = float(np.average((key - label) ** 2, weights=weight))
        assert curves[name].brier == pytest.approx(brier, abs=1e-12)
        assert 2 * brier_area(key, label, weight) == pytest.approx(brier, abs=1e-12)
    mcb = value_of("corp_mcb", t)
    assert curves["brier"].brier - curves["brier_calibrated"].brier == pytest.approx(mcb, abs=1e-12)


@pytest.mark.parametrize(
    "prior",
    [
        *("beta:1,1", "beta:2,8", "beta:0.6,0.7", "beta:900,2100", "beta:0.01,0.5", "beta:0.5,0.001"),
        *("beta:0.001,0.002", "beta:1e-5,1e-5", "beta:999999,1e-3", "beta:0.3,999999"),
    ],
)
def test_a_beta_prior_has_its_moments(prior: str) -> None:
    a, b = (float(part) for part in prior.removeprefix("beta:").split(","))
    weights = parse_prior(prior)
    mean = a / (a + b)
    assert weights.weight.sum() == pytest.approx(1) and 0 < weights.at.min() < weights.at.max() < 1
    assert weights.weight @ weights.at == pytest.approx(mean, abs=1e-11)
    variance = mean * (1 - mean) / (a + b + 1)
    assert weights.weight @ (weights.at - mean) ** 2 == pytest.approx(variance, rel=0.01, abs=1e-12)


@pytest.mark.usefixtures("one_deal")
def test_expectations_are_weighted_means_of_the_curves(tmp_path: Path) -> None:
    score, label, x = curve_rows()
    t, featured = tabulate(score, label), featured_of(score, label, x)
    path = tmp_path / "weights.csv"
    path.write_text("weight,threshold\n3,0.4\n1,0.2\n0,0.3\n")
    grid = Grid(np.array([0.2, 0.3, 0.4]), parse_prior(str(path)))
    for name, curve in curves_of(t, featured, grid).items():
        if name in ("threshold_adjusted", "loss_ratio") or curve.kind.block == "ranking":
            assert curve.expectation is None, "a mean of scores, or of shares of other wholes at each t*, means nothing"
        else:
            assert curve.expectation.value == pytest.approx(curve.value[0] / 4 + 0.75 * curve.value[2], abs=1e-12), name
            low, high = curve.expectation.interval
            assert low <= high, name


def test_the_mean_calibration_regret_is_no_less_sure_than_that_at_each_threshold(tmp_path: Path) -> None:
    """Its interval holds it, and lies within the means of the ends, as all t* share the rows."""
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    (tmp_path / "weights.csv").write_text("threshold,weight\n0.2,1\n0.4,3\n0.6,2\n")
    grid = Grid(np.array([0.2, 0.4, 0.6]), parse_prior(str(tmp_path / "weights.csv")))
    curve = curves_of(tabulate(score, (rng.random(2000) < score**2).astype(int)), None, grid)["regret_calibration"]
    low, high = curve.expectation.interval
    weight = np.array([1, 3, 2]) / 6
    assert weight @ curve.low <= low < curve.expectation.value < high <= weight @ curve.high


@pytest.mark.parametrize(
    "content",
    [[[0.2, 1], [0.4, 3]], {"0.2": 1, "0.4": 3}, {"threshold": [0.4, 0.2], "weight": [3, 1]},
     [{"threshold": 0.2, "weight": 1}, {"threshold": 0.4, "weight": 3}]],
)  # fmt: skip
def test_json_weights(content: object, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(content))
    prior = parse_prior(str(path))
    assert prior.at.tolist() == [0.2, 0.4] and prior.weight.tolist() == [0.25, 0.75]


def test_thresholds_are_the_decimals_that_were_written() -> None:
    assert parse_thresholds("0.05:0.95:0.05")[5] == 0.3
    assert len(ALL) == 99 and ALL[-1] == 0.99
    assert parse_thresholds("0.5,0.1").tolist() == [0.1, 0.5]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", ""), ("a.csv", "0.2,x"), ("a.csv", "0.2,1\n1.2,1"), ("a.csv", "0.2,0"), ("a.json", "[1]"),
     ("a.json", "{"), ("a.json", "null"), ("a.json", '[{"t": 1}]'), ("a.csv", "0.2,-1\n0.3,2")],
)  # fmt: skip
def test_files_of_weights_that_make_no_sense(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DecalError, match="prior file"):
        parse_prior(str(tmp_path / name))


@pytest.mark.parametrize("label", [[0, 0, 0], [1, 1, 1], [1, 0, 1]])
def test_a_few_rows_have_curves_or_reasons(label: list[int]) -> None:
    t = tabulate(np.array([0.0, 0.4, 1.0]), np.array(label, dtype=np.uint8))
    curves = curves_of(t, None, Grid(ALL))
    assert "rows" in str(curves["gain_recalibration"].reason)
    for name, curve in curves.items():
        assert curve.reason is not None or not np.isnan(curve.value).any(), name


def test_rows_of_one_label_say_nothing_of_what_is_learned_nor_of_lift() -> None:
    score, label, x = curve_rows(200)
    curves = curves_of(tabulate(score, 0 * label), featured_of(score, 0 * label, x), Grid(ALL))
    learned = ("brier_regions", "gain_recalibration", "gain_beyond", "gain_post_training", "loss_ratio")
    assert {curves[name].reason for name in learned} == {"needs rows of more than one label"}
    assert curves["lift"].reason == "no row has label 1" and np.isnan(curves["lift"].value).all()
    assert curves["regret_calibration"].value[29] == pytest.approx(0.3 * (score >= 0.3).mean())


def test_where_nothing_is_lost_there_is_no_share_of_it() -> None:
    label = np.repeat(np.arange(2, dtype=np.uint8), 20)
    curve = curves_of(tabulate(label.astype(float), label), None, Grid(ALL))["loss_ratio"]
    assert curve.reason == "nothing is lost as it is" and np.isnan(curve.value).all()


def test_few_rows_with_features_have_reasons() -> None:
    score, label, x = curve_rows(6)
    curves = curves_of(tabulate(score, label), featured_of(score, label, x), Grid(ALL))
    for name in ("brier_regions", "gain_beyond", "gain_post_training"):
        assert "rows" in str(curves[name].reason) and np.isnan(curves[name].value).all()


def test_the_consistency_band_holds_calibrated_fits() -> None:
    rng = np.random.default_rng(3)
    score = rng.beta(2, 3, 2000)
    inside = []
    for _ in range(20):
        t = tabulate(score, (rng.random(2000) < score).astype(np.uint8))
        band = consistency_band(t, 0.9, rng)
        cells = t.bins(512)
        fit = np.repeat(cells.isotonic.pos / cells.isotonic.n, np.diff(np.append(cells.pools, len(cells))))
        inside.append(((fit >= band.low) & (fit <= band.high)).mean())
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)
    assert (band.low <= band.high).all() and (np.diff(band.low) >= 0).all()
    # 512 levels are cells themselves, however few rows one of them has.
    t = Table(np.linspace(0, 1, 512), np.append(9, np.ones(511, dtype=int)), np.zeros(512, dtype=int))
    assert len(t.bins(512)) < len(consistency_band(t, 0.9, rng).score) == 512


FAMILY_HISTORY = Table(np.array([0.0, 1.0]), np.array([554 + 81, 91 + 24]), np.array([81, 24]))
"""df_binary of dcurves: 750 patients by family history (the test) and cancer (the label)."""
PUBLISHED = {
    # net benefit, of treating all, net interventions avoided per row: r_case1_results.csv of dcurves 1.1.7, by R
    0.05: (0.025614035088, 0.094736842105, -1.313333333333),
    0.10: (0.018518518519, 0.044444444444, -0.233333333333),
    0.15: (0.010588235294, -0.011764705882, 0.126666666667),
    0.20: (0.001666666667, -0.075000000000, 0.306666666667),
    0.30: (-0.020000000000, -0.228571428571, 0.486666666667),
    0.50: (-0.089333333333, -0.720000000000, 0.630666666667),
}
TASK = ("--cost-fp", 300, "--cost-fn", 577)


def test_the_numbers_that_dcurves_publishes() -> None:
    curves = curves_of(FAMILY_HISTORY, None, Grid(np.array(list(PUBLISHED))))
    names = ("net_benefit", "net_benefit_all", "interventions_avoided")
    for k, published in enumerate(PUBLISHED.values()):
        values = [curves[name].value[k] for name in names]
        assert values[:2] == pytest.approx(published[:2], abs=1e-11)
        assert values[2] == pytest.approx(100 * published[2], abs=1e-9)


def test_a_row_stands_at_the_user_s_threshold(decal: Decal) -> None:
    done = decal("sweep", BINARY, "-s", "p", "-y", "y", *TASK, "--thresholds", "0.1:0.9:0.1", "--no-intervals")
    assert len(re.findall(r"^→ 0\.3421 ", done.out, re.MULTILINE)) == 4
    document = decal.json("sweep", BINARY, "-s", "p", "-y", "y", *TASK, "--no-intervals")
    at = document["sweep"]["thresholds"]
    assert document["task"]["threshold"] in at and len(at) == 100


def test_several_models_stand_against_treating_all_and_none(decal: Decal) -> None:
    asked = (FOX, "-s", "p_profanity", "-s", "p_hatesonar", "-y", "y", "-t", ".3", "--no-intervals")
    out = decal("sweep", *asked, "--thresholds", "0.1:0.5:0.1", "--plot", "-").out
    head = out[out.index("Net benefit of all models") :].splitlines()
    assert head[1].split() == ["t*", "treat", "none", "treat", "all", "p_profanity", "p_hatesonar"]
    assert head[4].startswith("→ 0.3")
    axis = [line for line in out.splitlines() if re.fullmatch(r" +0\.1 +0\.3 +0\.5", line)]
    assert len(axis) == 2
