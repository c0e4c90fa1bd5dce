"""The probe: honest in known worlds, the same however rows come, and its parts against slow or foreign ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge

from decal_cli.crossfit.probe import (
    DIVISIONS,
    ENOUGH_ROWS,
    FOLDS,
    HIGHEST_LEVERAGE,
    MOST_BENT,
    WIDENED,
    FoldRule,
    Probed,
    Recalibration,
    Ridge,
    Standard,
    StandardFeatures,
    build_probe,
    fold_rules,
    gain_beyond,
    gain_over_score,
    logistic_slopes,
    with_mean_weight_one,
)
from decal_cli.errors import Undefined
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Estimate
from tests.helpers.worlds import featured_rows

AT = (0.1, 0.3, 0.5, 0.8)


def same(one: Probed, other: Probed) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def gains(probed: Probed) -> np.ndarray:
    return np.array([(*gain_beyond(probed, t), *gain_over_score(probed, t, 0.4)) for t in AT])


@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_changes_not_one_bit(weighted: bool) -> None:
    score, label, weight, features = featured_rows()
    weight = weight if weighted else None
    probed = build_probe(Rows(score, label, weight, features=features), seed=4)
    order = np.random.default_rng(1).permutation(len(score))
    turned = weight if weight is None else weight[order]
    assert same(probed, build_probe(Rows(score[order], label[order], turned, features=features[order]), seed=4))
    assert not same(probed, build_probe(Rows(score, label, weight, features=features), seed=5))


def test_types_and_signs_of_zero_change_not_one_bit() -> None:
    score, label, _, features = featured_rows()
    score[:5], features[:5, 2] = 0.0, 0.0
    features = features.astype(np.float32).astype(np.float64)
    signed, minus = features.copy(), score.copy()
    signed[:5, 2], minus[:5] = -0.0, -0.0
    probed = build_probe(Rows(score, label, features=features), seed=0)
    assert same(probed, build_probe(Rows(minus, label.astype(bool), features=signed.astype(np.float32)), seed=0))


def test_weights_count_by_their_ratios() -> None:
    score, label, weight, features = featured_rows()
    plain = build_probe(Rows(score, label, features=features), seed=0)
    heavy = build_probe(Rows(score, label, np.full(len(score), 7.0), features=features), seed=0)
    assert gains(heavy) == pytest.approx(gains(plain), abs=1e-9)
    one, other = (build_probe(Rows(score, label, factor * weight, features=features), seed=0) for factor in (1, 0.003))
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b, abs=1e-9)
    assert gains(one) != pytest.approx(gains(plain), abs=1e-6)


def test_units_of_a_feature_do_not_matter() -> None:
    score, label, _, features = featured_rows()
    moved = features * np.array([1e6, -1e-6, 1, 3]) + np.array([0.0, 0, 5, -100])
    one, other = (build_probe(Rows(score, label, features=x), seed=0) for x in (features, moved))
    assert one.probe.mean() == pytest.approx(other.probe.mean(), abs=0.01)
    one_each, turned = np.ones(len(score)), features * np.array([1e6, 1e-6, 1, 3]) + 7
    expected = Standard(turned, one_each)(turned)
    assert Standard(features, one_each)(features) == pytest.approx(expected, abs=1e-6)


def test_divisions_grow_fewer_and_the_inputs_of_many_rows_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    score, label, _, features = featured_rows(900)
    few = build_probe(Rows(score, label, features=features), seed=0)
    assert few.probe.shape == (DIVISIONS, 900)
    assert ENOUGH_ROWS // DIVISIONS > 900
    monkeypatch.setattr("decal_cli.crossfit.probe.ENOUGH_ROWS", 900)
    many = build_probe(Rows(score, label, features=features), seed=0)
    assert many.probe.shape == (1, 900) and many.probe[0] == pytest.approx(few.probe[0], abs=1e-9)
    monkeypatch.setattr("decal_cli.crossfit.probe.BLOCK", 64)
    assert build_probe(Rows(score, label, features=features), seed=0).probe == pytest.approx(many.probe, abs=1e-12)
    monkeypatch.setattr("decal_cli.crossfit.probe.LEARNED_ON", 300)
    taught = build_probe(Rows(score, label, features=features), seed=0)
    assert np.array_equal(taught.isotonic, many.isotonic) and not np.array_equal(taught.probe, many.probe)


def test_a_fold_is_judged_by_what_its_labels_did_not_teach() -> None:
    score, label, weight, features = featured_rows()
    rows = with_mean_weight_one(Rows(score, label, weight, features=features))
    standard = StandardFeatures(rows)
    seen = np.zeros(len(rows), dtype=int)
    for here, rule in fold_rules(rows, standard, 0, 0):
        label = rows.label.copy()
        label[here] = 1 - label[here]
        learn = ~np.isin(np.arange(len(label)), here)
        other = FoldRule(replace(rows, label=label), standard, learn, learn)
        for a, b in zip(rule(rows.score, standard.kept), other(rows.score, standard.kept), strict=True):
            assert np.array_equal(a, b)
        seen[here] += 1
    assert (seen == 1).all() and FOLDS == 5


def test_noise_wins_nothing_and_what_there_is_is_found() -> None:
    """Features that know nothing: no lower end above 0. One that does: found, and no more than there is."""
    nothing, something, best = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score, features = rng.random(800), rng.normal(size=(800, 6))
        label = (rng.random(800) < score).astype(int)
        nothing.append(gain_beyond(build_probe(Rows(score, label, features=features), seed=seed), 0.4))
        chance = np.clip(score + 0.3 * np.sign(features[:, 2]), 0, 1)
        label = (rng.random(800) < chance).astype(int)
        something.append(gain_beyond(build_probe(Rows(score, label, features=features), seed=seed), 0.4))
        best.append(np.mean((chance - 0.4) * ((chance >= 0.4).astype(float) - (score >= 0.4))))
    mean, error = np.array(nothing).T
    assert abs(mean.mean()) < 0.004 and (mean - 1.96 * error < 0).all()
    mean, error = np.array(something).T
    assert (mean - 1.96 * error > 0).all()
    assert 0.6 * np.mean(best) < mean.mean() < 1.1 * np.mean(best)


def test_a_square_is_seen_and_a_product_is_not() -> None:
    score, features = np.full(4000, 0.5), np.random.default_rng(0).normal(size=(4000, 3))
    chance = np.random.default_rng(1).random(4000)
    for signal, is_seen in ((features[:, 0] ** 2 - 1, True), (features[:, 0] * features[:, 1], False)):
        label = (chance < 1 / (1 + np.exp(-1.5 * signal))).astype(int)
        mean, error = gain_beyond(build_probe(Rows(score, label, features=features), seed=0), 0.5)
        assert (mean - 3 * error > 0) == is_seen


def by_hand(probed: Probed, threshold: float, decide: float | None) -> Estimate:
    """The gain and its error row by row; decide None: against the isotonic fit."""
    divisions, rows = probed.probe.shape
    by_label, by_judge = [], []
    for i in range(rows):
        label, judged = 0.0, 0.0
        for r in range(divisions):
            before = probed.isotonic[r, i] >= threshold if decide is None else probed.score[i] >= decide
            change = int(probed.probe[r, i] >= threshold) - int(before)
            label += change * (probed.label[i] - threshold) / divisions
            judged += change * (probed.judge[r, i] - threshold) / divisions
        by_label.append(label)
        by_judge.append(judged)
    w = probed.weight
    middle = np.average(by_label, weights=w)
    spread = sum(w[i] ** 2 * (by_label[i] - middle) ** 2 for i in range(rows))
    spread += threshold * (1 - threshold) * np.mean(w**2)
    return Estimate((middle + np.average(by_judge, weights=w)) / 2, WIDENED * np.sqrt(spread) / w.sum())


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 30), st.integers(1, 4), st.sampled_from(AT))
def test_the_gain_is_that_of_a_slow_sum(seed: int, rows: int, divisions: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)

    def chances(*shape: int) -> np.ndarray:
        return rng.integers(0, 11, shape) / 10

    label, weight = rng.integers(0, 2, rows).astype(float), rng.uniform(0.1, 3, rows)
    probed = Probed(chances(rows), label, weight, *(chances(divisions, rows) for _ in range(3)))
    assert gain_beyond(probed, threshold) == pytest.approx(by_hand(probed, threshold, None), abs=1e-12)
    assert gain_over_score(probed, threshold, 0.6) == pytest.approx(by_hand(probed, threshold, 0.6), abs=1e-12)


def test_a_whole_weight_counts_as_that_many_rows_in_the_gain() -> None:
    """Given the probabilities; folds, and errors, know that one row of weight 3 says less than three rows."""
    score, label, weight, features = featured_rows()
    probed = build_probe(Rows(score, label, weight, features=features), seed=0)
    times = np.random.default_rng(0).integers(1, 4, len(probed.score))
    heavy = probed._replace(weight=times.astype(float))
    copied = Probed(*(np.repeat(values, times, axis=-1) for values in probed))._replace(weight=np.ones(times.sum()))
    for t in AT:
        assert gain_beyond(heavy, t).mean == pytest.approx(gain_beyond(copied, t).mean, abs=1e-12)
        assert gain_beyond(heavy, t).error > gain_beyond(copied, t).error


@pytest.mark.parametrize("penalty", [3.0, 300.0])
def test_ridge_is_scikit_learns_and_leaves_one_out_exactly(penalty: float) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(40, 3)), rng.uniform(0.5, 2, 40)
    y, new = (rng.random(40) < 0.5).astype(float), rng.normal(size=(5, 3))
    ridge = Ridge(x, y, w, (penalty,))
    theirs = SklearnRidge(alpha=penalty).fit(x, y, sample_weight=w)
    assert ridge(new) == pytest.approx(theirs.predict(new), abs=1e-9)
    assert ridge.coefficient == pytest.approx(theirs.coef_, abs=1e-9)
    for i in range(40):
        others = np.arange(40) != i
        without = SklearnRidge(alpha=penalty).fit(x[others], y[others], sample_weight=w[others])
        assert ridge.left_out[i] == pytest.approx(without.predict(x[i : i + 1])[0], abs=1e-9)


def test_ridge_takes_the_penalty_that_leaves_one_out_best() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(120, 8)), rng.uniform(0.5, 2, 120)
    for strength in (0.0, 2.0):
        y = (rng.random(120) < 1 / (1 + np.exp(-strength * x[:, 0]))).astype(float)
        chosen = Ridge(x, y, w)
        losses = {
            p: w @ (y - Ridge(x, y, w, (p,)).left_out) ** 2 for p in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
        }
        assert chosen.penalty == min(losses, key=lambda p: losses[p])


def test_a_row_that_only_itself_predicts_is_cut_not_divided_by_zero() -> None:
    x = np.zeros((30, 1))
    x[0] = 1e6
    ridge = Ridge(x, np.arange(30) % 2 * 1.0, np.ones(30), (3.0,))
    assert np.abs(ridge.left_out).max() < 1 / (1 - HIGHEST_LEVERAGE)


def test_the_logistic_curve_is_scikit_learns() -> None:
    """Whose penalty leaves the intercept alone: with a column of ones as its feature, ours is it."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(200, 2)), rng.uniform(0.5, 2, 200)
    y = (rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(
        np.column_stack((np.ones(200), x)), y, sample_weight=w
    )
    assert logistic_slopes(x, y, w) == pytest.approx(theirs.coef_[0], abs=1e-5)


def test_recalibration_is_the_mean_of_a_curve_and_of_steps() -> None:
    rng = np.random.default_rng(0)
    raw, w = rng.normal(0.4, 0.3, 300), rng.uniform(0.5, 2, 300)
    y, new = (rng.random(300) < np.clip(raw, 0, 1)).astype(float), np.linspace(-2, 3, 50)
    slope = logistic_slopes(((raw - raw.mean()) / raw.std())[:, None], y, w)
    curve = 1 / (1 + np.exp(-(slope[0] + slope[1] * (new - raw.mean()) / raw.std())))
    steps = IsotonicRegression(out_of_bounds="clip").fit(raw, y, sample_weight=w).predict(new)
    assert Recalibration(raw, y, w, w)(new) == pytest.approx((curve + steps) / 2, abs=1e-9)
    ones = np.ones(300)
    assert Recalibration(raw, y, ones, None)(new) == pytest.approx(Recalibration(raw, y, ones, ones)(new), abs=1e-9)
    assert Recalibration(np.full(300, 0.3), y, w, w)(new) == pytest.approx(np.full(50, w @ y / w.sum()))


def test_features_are_standardised_bent_and_cut() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack((rng.normal(5, 2, 400), np.full(400, 3.0), rng.integers(0, 2, 400) * 2.0, rng.normal(size=400)))
    x[0, 3] = 1e300
    columns = Standard(x, np.ones(400))(x)
    assert columns.shape == (400, 3 + 3)  # the constant one goes
    assert columns[:, 0] == pytest.approx((x[:, 0] - x[:, 0].mean()) / x[:, 0].std())
    assert np.abs(columns[:, :3]).max() <= 8
    square = np.minimum(columns[:, 0] ** 2, 9)
    assert columns[:, 3] == pytest.approx((square - square.mean()) / square.std())


def test_many_features_are_not_squared() -> None:
    x = np.random.default_rng(0).normal(size=(300, MOST_BENT + 1))
    assert Standard(x, np.ones(300))(x).shape == (300, MOST_BENT + 1)
    assert Standard(x[:, 1:], np.ones(300))(x[:, 1:]).shape == (300, 2 * MOST_BENT)


def edges() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that are hard to learn from: score, label and features."""
    score, label, _, x = featured_rows(150)
    rare = (np.arange(150) == 7).astype(int)
    wild = x.copy()
    wild[:, 1] *= 1e300
    wild[:2, 2] = np.inf, -np.inf
    wild[:, 3] *= 1e-200
    return {
        "one class": (score, label * 0, x),
        "the other": (score, label * 0 + 1, x),
        "one positive": (score, rare, x),
        "constant features": (score, label, x * 0 + 5),
        "constant score": (np.full(150, 0.3), label, x),
        "nothing varies": (np.full(150, 0.3), label, x * 0),
        "no columns": (score, label, x[:, :0]),
        "duplicate columns": (score, label, np.column_stack([x] * 4)),
        "binary features": (score, label, (x > 1).astype(bool)),
        "whole numbers": (score, label, np.rint(x).astype(np.int8)),
        "huge, tiny and infinite": (score, label, wild),
        "missing": (score, label, np.where(np.abs(x) < 0.1, np.nan, x)),
        "the label as a feature": (score, label, np.column_stack((x, label))),
        "scores 0 and 1": (np.rint(score), label, x),
        "the score is the label": (label.astype(float), label, x),
        "more columns than rows": (score[:60], label[:60], np.random.default_rng(0).normal(size=(60, 100))),
        "ten rows": (np.linspace(0, 1, 10), np.arange(10) % 2, np.arange(10.0)[:, None]),
        "ten equal rows": (np.full(10, 0.5), np.arange(10) % 2, np.ones((10, 2))),
    }


EDGES = edges()


@pytest.mark.parametrize("name", EDGES)
def test_edges_have_probabilities_and_gains(name: str) -> None:
    score, label, features = EDGES[name]
    rng = np.random.default_rng(0)
    for weight in (None, rng.uniform(0.5, 2, len(score)), np.exp(4 * rng.normal(size=len(score)))):
        probed = build_probe(Rows(score, label, weight, features=features), seed=0)
        for values in (probed.isotonic, probed.probe, probed.judge):
            assert np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1
        for t in (1e-6, *AT, 1 - 1e-6):
            for mean, error in (gain_beyond(probed, t), gain_over_score(probed, t, 0.5)):
                assert -1 <= mean <= 1 and 0 < error < 1.2


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_too_few_rows_say_so(rows: int) -> None:
    score, label, _, features = featured_rows(rows)
    probed = build_probe(Rows(score, label, features=features), seed=0)
    assert probed.probe.shape == (0, rows)
    with pytest.raises(Undefined, match="at least 10 rows"):
        gain_beyond(probed, 0.3)
    with pytest.raises(Undefined, match="at least 10 rows"):
        gain_over_score(probed, 0.3, 0.3)


def test_duplicate_columns_are_one_column_with_a_smaller_penalty() -> None:
    score, label, _, features = featured_rows(1500)
    one, four = (build_probe(Rows(score, label, features=np.column_stack([features] * k)), seed=0) for k in (1, 4))
    for t in AT:
        assert gain_beyond(four, t).mean == pytest.approx(gain_beyond(one, t).mean, abs=0.01)


def test_weights_are_scaled_to_mean_one_and_none_stay_none() -> None:
    score, label, weight, features = featured_rows(20)
    scaled = with_mean_weight_one(Rows(score, label, weight, features=features)).weight
    assert scaled is not None and scaled.mean() == pytest.approx(1)
    assert with_mean_weight_one(Rows(score, label, features=features)).weight is None
