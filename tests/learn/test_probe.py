"""The probe: honest in known worlds, the same however rows come, and its gains against a slow sum."""

from dataclasses import replace
from math import erfc, exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import root
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.probe import (
    EQUAL,
    FOLDS,
    HOLD,
    JUDGE_PENALTY,
    SURE,
    FoldModels,
    Judge,
    Probed,
    Regression,
    Split,
    Standard,
    blend_weights,
    blended,
    build_probe,
    fold_rules,
    logistic_fit,
    mixed,
    no_signal,
    with_mean_weight_one,
)
from decal_cli.learn.regions import build_regions, hold_out
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.decisions import Featured, Recalibrating, post_training
from decal_cli.tables.estimate import MISSED_ROWS
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.worlds import featured_rows, gain_beyond

AT = (0.1, 0.3, 0.5, 0.8)


def gains(probed: Probed) -> np.ndarray:
    return np.array([(each.value, each.error) for each in (gain_beyond(probed, t) for t in AT)])


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
def test_weights_count_by_their_ratios() -> None:
    score, label, weight, features = featured_rows(200)
    plain = build_probe(Rows(score, label, features=features), seed=0)
    heavy = build_probe(Rows(score, label, np.full(len(score), 7.0), features=features), seed=0)
    assert gains(heavy) == pytest.approx(gains(plain), abs=1e-9)
    one, other = (build_probe(Rows(score, label, factor * weight, features=features), seed=0) for factor in (1, 0.003))
    for name in ("weight", "isotonic", "recalibrated", "probe"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)
    assert gains(one) != pytest.approx(gains(plain), abs=1e-6)


@pytest.mark.usefixtures("one_deal")
def test_blocks_change_nothing_and_some_rows_are_enough_to_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    score, label, _, features = featured_rows(900)
    rows = Rows(score, label, features=features)
    whole = build_probe(rows, seed=0)
    monkeypatch.setattr("decal_cli.learn.probe.BLOCK", 64)
    assert build_probe(rows, seed=0).probe == pytest.approx(whole.probe, abs=1e-9)
    monkeypatch.setattr("decal_cli.learn.probe.MIN_TAUGHT", 300)
    taught = build_probe(rows, seed=0)
    assert np.array_equal(taught.isotonic, whole.isotonic) and not np.array_equal(taught.probe, whole.probe)
    assert Split(with_mean_weight_one(rows), 0).taught.sum() == 375  # of which each fold holds out a fifth


@pytest.mark.ci
def test_a_fold_is_judged_by_models_that_its_labels_did_not_teach() -> None:
    score, label, weight, features = featured_rows()
    rows = with_mean_weight_one(Rows(score, label, weight, features=features))
    seen = np.zeros(len(rows), dtype=int)
    for fold, rule in enumerate(fold_rules(rows, 0)):
        label = rows.label.copy()
        label[rule.held] = 1 - label[rule.held]
        other = FoldModels(Split(replace(rows, label=label), 0), fold)
        assert np.array_equal(rule.models(rows.score, rows.typed), other(rows.score, rows.typed))
        assert np.array_equal(rule.models.isotonic.of(rows.score), other.isotonic.of(rows.score))
        seen[rule.held] += 1
    assert (seen == 1).all() and FOLDS == 5


def test_a_rule_says_of_new_rows_what_it_says_of_its_own() -> None:
    score, label, weight, features = featured_rows()
    rows = with_mean_weight_one(Rows(score, label, weight, features=features))
    for rule in fold_rules(rows, 0):
        _, probed = rule(rows.score[rule.held], rows.typed[rule.held])
        assert probed == pytest.approx(blended(rule.each, rule.weights), abs=1e-12)


@pytest.mark.parametrize("clusters", [None, 30])
def test_the_rows_of_a_fold_count_half_in_its_weights_and_clusters_as_independent_rows(clusters: int | None) -> None:
    score, label, _, features = featured_rows()
    cluster = None if clusters is None else np.arange(len(score)) % clusters
    rows = with_mean_weight_one(Rows(score, label, features=features, cluster=cluster))
    rules = fold_rules(rows, 0)
    each = np.empty((len(rows), 3))
    for rule in rules:
        each[rule.held] = rule.each
    alike = 1.0 if clusters is None else rows.table.effective_rows / len(rows)
    for rule in rules:
        counts = np.full(len(rows), alike)
        counts[rule.held] /= 2
        assert rule.weights == pytest.approx(blend_weights(each, rows.label, counts), abs=1e-9)


@pytest.mark.long
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
    mean, error = np.array([(each.value, each.error) for each in nothing]).T
    assert abs(mean.mean()) < 0.004 and (mean - 1.96 * error < 0).all()
    mean, error = np.array([(each.value, each.error) for each in something]).T
    assert (mean - 1.96 * error > 0).all()
    assert 0.6 * np.mean(best) < mean.mean() < 1.1 * np.mean(best)


def by_hand(probed: Probed, threshold: float) -> tuple[float, float]:
    """The gain and its error, row by row and deal by deal."""
    w, deals = probed.weight, (probed, *probed.others)
    won, moved = np.zeros((2, len(deals), len(w)))
    for k, deal in enumerate(deals):
        ((chance,), (slopes,), (pull,)) = deal.judge
        change = [int(deal.probe[i] >= threshold) - int(deal.recalibrated[i] >= threshold) for i in range(len(w))]
        for i in range(len(w)):
            won[k, i] = change[i] * ((deal.label[i] + chance[i]) / 2 - threshold)
            moved[k, i] = sum(change[j] * slopes[j] @ pull[i] for j in range(len(w))) / 2
    mean = np.average(won.mean(axis=0), weights=w)
    each = won - mean + moved
    of_rows, of_deals = each.mean(axis=0), np.average(each, axis=1, weights=w)
    variance = sum((w / w.sum()) ** 2 * of_rows**2)
    if len(deals) > 1:
        variance += (of_deals**2).sum() / (len(deals) - 1) / len(deals)
    missed = MISSED_ROWS * threshold * (1 - threshold) * (np.sum(w**2) / w.sum() ** 2) ** 2 / 4
    return mean, np.sqrt(WIDENED**2 * variance + missed)


def chances(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.integers(0, 11, rows) / 10


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 30), st.integers(1, 3), st.sampled_from(AT))
def test_the_gain_is_that_of_a_slow_sum(seed: int, rows: int, deals: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    score, label, weight = chances(rng, rows), rng.integers(0, 2, rows).astype(float), rng.uniform(0.1, 3, rows)

    def deal() -> Probed:
        learned = isotonic, recalibrated, probe = [chances(rng, rows) for _ in range(3)]
        judge = Judge.of(Rows(score, label, weight), probe, isotonic, recalibrated)
        return Probed(score, label, weight, *learned, np.zeros(rows), judge, np.arange(rows) % 5)

    first, *others = (deal() for _ in range(deals))
    probed = replace(first, others=tuple(others))
    gain = gain_beyond(probed, threshold)
    assert (gain.value, gain.error) == pytest.approx(by_hand(probed, threshold), abs=1e-12)
    assert gain.half_width(0.95) == pytest.approx(1.959964 * gain.error, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_judge_is_a_logistic_curve_that_each_row_moves_as_a_fit_with_more_of_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    learned, label, weight = [chances(rng, 12) for _ in range(3)], rng.integers(0, 2, 12), rng.uniform(0.1, 3, 12)
    x, worth = np.column_stack((np.ones(12), *(log_odds(p, SURE) for p in learned))), rng.normal(size=12)

    def fitted(weight: np.ndarray) -> np.ndarray:
        """Where scipy finds no slope."""

        def slope(at: np.ndarray) -> np.ndarray:
            return x.T @ (weight * (expit(x @ at) - label)) + 2 * JUDGE_PENALTY * at

        return expit(x @ root(slope, np.zeros(4), tol=1e-14).x)

    judge = Judge.of(Rows(learned[0], label, weight), *learned)
    assert judge.chance[0] == pytest.approx(fitted(weight), abs=1e-9)
    step = 1e-3 * np.eye(12)
    moved = [(weight * worth) @ (fitted(weight + each) - fitted(weight - each)) / 2e-3 for each in step]
    assert judge.moved(worth) == pytest.approx(moved, rel=1e-4, abs=1e-7)


def test_the_error_of_the_whole_gain_is_that_of_a_sum() -> None:
    score, label, _, features = featured_rows()
    rows, task = Rows(score, label, features=features), BinaryTask.of_threshold(0.3)
    one = Recalibrating.of_table(rows.table, task, 0)
    other = Featured.of_scores(build_probe(rows, seed=0), task)
    whole = post_training(one, other)
    assert whole.value == one.gain.value + other.gain.value
    assert whole.error == pytest.approx(np.hypot(one.gain.error, other.gain.error), rel=1e-12)


def edges() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that are hard to learn from: score, label and features."""
    score, label, _, x = featured_rows(80)
    rare = (np.arange(80) == 7).astype(int)
    wild = x.copy()
    wild[:, 1] *= 1e300
    wild[:2, 2] = np.inf, -np.inf
    wild[:, 3] *= 1e-200
    return {
        "one class": (score, label * 0, x),
        "one positive": (score, rare, x),
        "constant features": (score, label, x * 0 + 5),
        "constant score": (np.full(80, 0.3), label, x),
        "no columns": (score, label, x[:, :0]),
        "whole numbers": (score, label, np.rint(x).astype(np.int8)),
        "huge, tiny and infinite": (score, label, wild),
        "missing": (score, label, np.where(np.abs(x) < 0.1, np.nan, x)),
        "the label as a feature": (score, label, np.column_stack((x, label))),
        "scores 0 and 1": (np.rint(score), label, x),
        "the score is the label": (label.astype(float), label, x),
        "more columns than rows": (score[:40], label[:40], np.random.default_rng(0).normal(size=(40, 60))),
        "ten rows": (np.linspace(0, 1, 10), np.arange(10) % 2, np.arange(10.0)[:, None]),
        "ten equal rows": (np.full(10, 0.5), np.arange(10) % 2, np.ones((10, 2))),
    }


EDGES = edges()


@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize("name", EDGES)
def test_edges_have_probabilities_regions_and_gains(name: str) -> None:
    score, label, features = EDGES[name]
    rng = np.random.default_rng(0)
    for weight in (None, np.exp(4 * rng.normal(size=len(score)))):
        rows = Rows(score, label, weight, features=features)
        probed = build_probe(rows, seed=0)
        if features.shape[1]:  # trees need a column
            assert hold_out(rows, seed=0) is not None
            assert build_regions(rows, seed=0).n.sum() == pytest.approx(rows.weights.sum())
        for values in (probed.isotonic, probed.recalibrated, probed.probe, probed.judge.chance):
            assert np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1
        for t in (1e-6, *AT, 1 - 1e-6):
            gain = gain_beyond(probed, t)
            assert -1 <= gain.value <= 1 and 0 < gain.error < 1.2


@pytest.mark.parametrize("rare", [0, 1])
def test_a_fold_that_holds_the_only_row_of_a_label_learns_the_rate_of_the_others_alone(rare: int) -> None:
    """Of weights that do not add up exactly: their mean label is 0 or 1 but for rounding."""
    score, _, weight, features = featured_rows(200)
    label = np.full(200, 1 - rare)
    label[7] = rare
    split = Split(Rows(score, label, weight, features=features).in_order(), seed=0)
    holds = int(split.fold[split.rows.label == rare][0])
    alone = FoldModels(split, holds)
    assert not alone.has_both and alone.rate == pytest.approx(1 - rare, abs=1e-15)
    assert FoldModels(split, (holds + 1) % FOLDS).has_both


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_too_few_rows_say_so(rows: int) -> None:
    score, label, _, features = featured_rows(rows)
    few = Rows(score, label, features=features)
    probed = build_probe(few, seed=0)
    assert probed.probe.shape == (0,) and probed.score.shape == (rows,)
    assert hold_out(few, seed=0) is None and build_regions(few, seed=0).n.sum() == rows
    for asked in (lambda: gain_beyond(probed, 0.3), lambda: no_signal(probed)):
        with pytest.raises(Undefined, match="at least 10 rows"):
            asked()


def test_the_logistic_fit_is_scikit_learns() -> None:
    """Whose penalty is |w|^2 / (2 C), 0 for the intercept."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(300, 3)), rng.uniform(0.5, 2, 300)
    y = (rng.random(300) < expit(x[:, 0] - 0.5)).astype(float)
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(x, y, sample_weight=w)
    ours = logistic_fit(x, y, w, np.array([0.0, 0.5, 0.5, 0.5]), np.zeros(4))
    assert ours == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-6)


def test_the_logistic_fit_is_held_to_its_centre() -> None:
    """A penalised step from c is one from 0 with c as an offset: here by a fine search along one slope."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 1))
    y = (rng.random(200) < expit(2 * x[:, 0])).astype(float)
    penalty, centre = np.array([1e9, 30.0]), np.array([0.25, 0.5])
    fitted = logistic_fit(x, y, np.ones(200), penalty, centre)
    assert fitted[0] == pytest.approx(0.25, abs=1e-6)
    slopes = np.linspace(0, 3, 30_001)
    total = 0.25 + slopes[:, None] * x[:, 0]
    loss = np.logaddexp(0, np.where(y > 0.5, -1, 1) * total).sum(axis=1) + 30 * (slopes - 0.5) ** 2
    assert fitted[1] == pytest.approx(slopes[loss.argmin()], abs=2e-4)


def test_weights_are_equal_where_nothing_is_known_and_leave_what_predicts_badly() -> None:
    rng = np.random.default_rng(2)
    assert blend_weights(np.zeros((0, 3)), np.zeros(0), np.ones(0)) == pytest.approx(EQUAL)
    truth = rng.normal(size=4000)
    label = (rng.random(4000) < expit(truth)).astype(float)
    noise = rng.normal(size=(4000, 2))
    each = np.column_stack((noise[:, 0], truth, noise[:, 1]))
    _, regression, trees, recalibrated = blend_weights(each, label, np.ones(4000))
    assert trees > 0.9 and abs(regression) < 0.1 and abs(recalibrated) < 0.1
    assert (HOLD > 0).all()


def test_blending_is_a_weighted_sum_of_log_odds_row_by_row() -> None:
    each, weights = np.random.default_rng(3).normal(size=(50, 3)), np.array([0.1, 0.7, 0.4, -0.2])
    probability = blended(each, weights)
    assert log_odds(probability) == pytest.approx(0.1 + each @ weights[1:], abs=1e-12)
    assert np.array_equal(blended(each[7:9], weights), probability[7:9])


def test_a_mixture_of_classes_is_a_weighted_sum_of_centred_log_odds_row_by_row() -> None:
    rng = np.random.default_rng(3)
    logits, recalibrated, (first, second) = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(3), 50), (0.7, -0.4)
    # Its odds of one class against another are the product of both odds, each to the power of its weight.
    mixture = mixed(np.array([first, second]), logits, recalibrated)
    for found, logit, chance in zip(mixture, logits, recalibrated, strict=True):
        for k in range(3):
            odds = exp(first * (logit[k] - logit[0])) * (chance[k] / chance[0]) ** second
            assert found[k] / found[0] == pytest.approx(odds, rel=1e-9)
        assert found.sum() == pytest.approx(1.0)


def test_features_are_standardised_and_cut() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack((rng.normal(5, 2, 400), np.full(400, 3.0), rng.integers(0, 2, 400) * 2.0, rng.normal(size=400)))
    x[0, 3] = 1e300
    columns = Standard.of(x, np.ones(400))(x)
    assert columns.shape == (400, 3)  # the constant one goes
    assert columns[:, 0] == pytest.approx((x[:, 0] - x[:, 0].mean()) / x[:, 0].std())
    assert np.abs(columns).max() <= 8


def test_missing_values_stand_at_the_mean_of_the_others() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(3, 2, (200, 2)), rng.uniform(0.5, 2, 200)
    x[::4, 0] = np.nan
    known, empty = ~np.isnan(x[:, 0]), np.column_stack((x[:, :1], np.full(200, np.nan)))
    columns = Standard.of(x, w)(x)
    assert (columns[~known, 0] == 0).all()
    alone = Standard.of(x[known], w[known])(x[known])
    assert columns[known, 0] == pytest.approx(alone[:, 0], abs=1e-12)
    assert Standard.of(empty, w)(empty).shape == (200, 1)


def test_the_regression_is_a_logistic_fit_on_standardised_log_odds() -> None:
    rng = np.random.default_rng(0)
    score, x, w = rng.normal(1, 3, 300), rng.normal(size=(300, 2)), np.ones(300)
    y = (rng.random(300) < expit(0.3 * score + x[:, 1])).astype(float)
    columns = np.column_stack(((score - score.mean()) / score.std(), x))
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(columns, y)
    ours = Regression(score, x, y, w)
    assert ours(score[:9], x[:9]) == pytest.approx(theirs.decision_function(columns[:9]), abs=1e-6)
    constant = Regression(np.full(300, 0.7), x, y, w)
    assert np.isfinite(constant(score, x)).all()


def probed(score: np.ndarray, label: np.ndarray, probe: np.ndarray, fold: np.ndarray, weight: np.ndarray) -> Probed:
    order = np.argsort(score, kind="stable")
    given = (score, label.astype(float), weight, score, score, probe, log_odds(probe), probe)
    return Probed(*(values[order] for values in given), fold[order])


def test_by_hand() -> None:
    """Two folds of two rows with one score each: residuals +-1/2 of the label and +-a of the log-odds."""
    a, b = 0.4, -0.1
    log_odds = np.array([a, -a, b, -b])
    rows = probed(
        np.full(4, 0.3), np.array([1, 0, 1, 0]), expit(log_odds), np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 2.0, 2.0])
    )
    total, spread = 2 * a / 2 + 2 * 2 * b / 2, 2 * (a / 2) ** 2 + 2 * (2 * b / 2) ** 2
    expected = erfc(total / (1.2 * sqrt(2 * spread))) / 2
    assert no_signal(rows) == pytest.approx(expected, rel=1e-9)
    assert value_of(parse("features_pvalue"), Inputs.of(rows)) == pytest.approx(expected, rel=1e-9)


def test_a_probe_that_only_knows_the_score_shows_nothing() -> None:
    """Its log-odds are a line in those of the score within every few rows, so nothing is left."""
    rng = np.random.default_rng(1)
    score = rng.uniform(0.01, 0.99, 1000)
    label = (rng.random(1000) < score).astype(int)
    slope = expit(0.3 + 0.7 * np.log(score / (1 - score)))
    assert no_signal(probed(score, label, slope, np.arange(1000) % 5, np.ones(1000))) > 0.01
    one_label = np.zeros(1000, dtype=int)
    assert no_signal(probed(score, one_label, slope, np.arange(1000) % 5, np.ones(1000))) == 1.0


def test_equal_scores_are_compared_whatever_their_order() -> None:
    """Rows in canonical order have their labels sorted within a score."""
    rng = np.random.default_rng(2)
    score, feature = rng.integers(1, 4, 2000) / 4, rng.standard_normal(2000)
    label = (rng.random(2000) < expit(np.log(score / (1 - score)) + feature)).astype(int)
    order = np.lexsort((label, score))
    given = (values[order] for values in (score, label, expit(feature), np.arange(2000) % 5, np.ones(2000)))
    assert no_signal(probed(*given)) < 1e-6


def worlds(n: int, strength: float, times: int) -> list[Probed]:
    """The label depends on the score and, for some strength, on the product of two features."""
    rng = np.random.default_rng(3)
    rows = []
    for seed in range(times):
        score, features = rng.uniform(0.05, 0.95, n), rng.standard_normal((n, 4))
        q = expit(np.log(score / (1 - score)) + strength * features[:, 0] * features[:, 1])
        rows.append(build_probe(Rows(score, (rng.random(n) < q).astype(int), features=features), seed=seed))
    return rows


@pytest.mark.long
def test_it_seldom_rejects_where_features_say_nothing() -> None:
    """At most 3 of 20 below .05: more than 3 have a probability of .02 at that level."""
    assert sum(no_signal(one) <= 0.05 for one in worlds(400, 0.0, 20)) <= 3


@pytest.mark.ci
def test_it_rejects_where_the_gain_is_not_clear_yet() -> None:
    for one in worlds(2000, 0.9, 2):
        assert no_signal(one) < 1e-4 and gain_beyond(one, 0.15).normal(0.99)[0] < 0
