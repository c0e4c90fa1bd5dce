"""Refitting and stacking: near the best decisions where these are known, equal to scikit-learn, safe on odd rows."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.regions import narrow, with_score
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled

NAMES = ["refit", "refit(units=own)", "stack", "stack-forest(trees=20)", "stack-boosting"]
STACKS = NAMES[2:]


def logistic_world(rows: int, seed: int) -> tuple[Training, np.ndarray]:
    """Labels logistic in three of five features; the score knows one of them, too surely. And the true probability."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5))
    truth = expit(x @ np.array([1.5, -1.0, 0.5, 0, 0]) - 0.5)
    score = expit(3 * x[:, 0])
    return Training(score, (rng.random(rows) < truth).astype(float), features=x), truth


def island_world(rows: int, seed: int) -> tuple[Training, np.ndarray]:
    """Labels depend on the score, and on whether two features have the same sign."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    truth = expit(rng.normal(size=rows) + 1.5 * np.sign(x[:, 0] * x[:, 1]))
    score = np.clip(truth + 0.3 * np.sign(-x[:, 0] * x[:, 1]), 0.01, 0.99)
    return Training(score, (rng.random(rows) < truth).astype(float), features=x), truth


def scored(name: str, rows: Training, new: Unlabelled) -> np.ndarray:
    return fit(parse(name), rows)(new).score


def expected_utility(score: np.ndarray, truth: np.ndarray, t: float) -> float:
    """Of acting from t on, over labels that have not been drawn: per row, in units of u_delta."""
    return float(np.mean(np.where(score >= t, truth - t, 0.0)))


def brier(score: np.ndarray, truth: np.ndarray) -> float:
    """What the Brier score is expected to lose beside the truth."""
    return float(np.mean((score - truth) ** 2))


@pytest.mark.parametrize("name", ["refit", "refit(units=own)", "stack"])
def test_regressions_reach_the_best_utility_in_a_logistic_world(name: str) -> None:
    train, _ = logistic_world(3000, 0)
    test, truth = logistic_world(3000, 1)
    score = scored(name, train, test)
    for t in (0.1, 0.5, 0.9):
        assert expected_utility(score, truth, t) > expected_utility(truth, truth, t) - 0.002
    assert brier(score, truth) < 0.001


LEARNED = [(world, name) for world in (logistic_world, island_world) for name in STACKS]
LEARNED.remove((island_world, "stack"))  # no linear function of the features tells its rows apart


@pytest.mark.parametrize(("world", "name"), LEARNED)
def test_stacks_beat_isotonic_where_features_matter(world: Any, name: str) -> None:
    train, _ = world(2000, 0)
    test, truth = world(2000, 1)
    score, curve = scored(name, train, test), scored("isotonic", train, test)
    assert brier(score, truth) < 0.75 * brier(curve, truth)
    assert expected_utility(score, truth, 0.5) > expected_utility(curve, truth, 0.5)


@pytest.mark.parametrize("name", STACKS)
def test_stacks_keep_a_score_that_knows_all(name: str) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(3000)
    rows = Training(truth, (rng.random(3000) < truth).astype(float), features=rng.normal(size=(3000, 6)))
    assert brier(scored(name, rows.take(np.arange(2000)), rows.take(np.arange(2000, 3000))), truth[2000:]) < 0.02


def test_refit_is_scikit_learns_regression_with_its_defaults() -> None:
    train, _ = logistic_world(500, 0)
    features = train.features
    oracle = LogisticRegression(tol=1e-8, max_iter=1000).fit(features, train.label)
    model = fit(parse("refit(units=own)"), train)
    np.testing.assert_allclose(model(train).score, oracle.predict_proba(features)[:, 1], atol=1e-6)
    np.testing.assert_allclose(model.planes.coefficient, oracle.coef_, atol=1e-5)


def test_trees_say_what_scikit_learns_say() -> None:
    train = island_world(600, 0)[0].in_order()
    new = island_world(300, 1)[0]
    columns, seen = (with_score(rows.score, narrow(rows.features)) for rows in (train, new))
    forest = RandomForestClassifier(20, max_samples=360, max_features=4, min_samples_leaf=5, random_state=0).fit(
        columns, train.label
    )
    np.testing.assert_allclose(
        scored("stack-forest(trees=20)", train, new), forest.predict_proba(seen)[:, 1], atol=1e-12
    )
    boosted = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=120, max_leaf_nodes=16, max_bins=63, max_features=0.3,
        min_samples_leaf=20, early_stopping=False, random_state=0,
    ).fit(columns, train.label)  # fmt: skip
    np.testing.assert_allclose(scored("stack-boosting", train, new), boosted.predict_proba(seen)[:, 1], atol=1e-12)


def test_trees_of_scikit_learns_sizes_are_grown_with_its_defaults() -> None:
    train = island_world(600, 0)[0].in_order()
    new = island_world(300, 1)[0]
    columns, seen = (with_score(rows.score, narrow(rows.features)) for rows in (train, new))
    for name, oracle in (
        ("stack-forest(trees=100,sizes=scikit-learn)", RandomForestClassifier(random_state=0)),
        ("stack-boosting(rounds=100,sizes=scikit-learn)", HistGradientBoostingClassifier(random_state=0)),
    ):
        expected = oracle.fit(columns, train.label).predict_proba(seen)[:, 1]
        np.testing.assert_allclose(scored(name, train, new), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_and_other_rows_make_no_difference(name: str) -> None:
    train, new = island_world(400, 0)[0], island_world(50, 1)[0]
    other = train.take(np.random.default_rng(0).permutation(400))
    score = scored(name, train, new)
    np.testing.assert_array_equal(score, scored(name, other, new))
    some = np.array([3, 30, 7])
    np.testing.assert_array_equal(score[some], scored(name, train, new.take(some)))


@pytest.mark.parametrize("name", NAMES)
def test_heavy_rows_pull(name: str) -> None:
    train, new = logistic_world(600, 0)[0], logistic_world(200, 1)[0]
    heavy = dataclasses.replace(train, weight=np.where(train.label > 0, 9.0, 1.0))
    assert scored(name, heavy, new).mean() > scored(name, train, new).mean() + 0.1


@pytest.mark.parametrize("name", ["stack-forest(trees=20)", "stack-boosting"])
def test_trees_see_what_rows_weigh_beside_one_another(name: str) -> None:
    train = logistic_world(300, 0)[0]
    weight = np.linspace(1, 2, 300)
    one, other = (scored(name, dataclasses.replace(train, weight=weight * by), train) for by in (1, 2.0**-40))
    np.testing.assert_allclose(one, other, atol=1e-9)


ODD = {
    "two rows": lambda x: x[:2],
    "more features than rows": lambda x: np.hstack([x[:8]] * 20),
    "constant features": lambda x: np.ones_like(x),
    "huge features": lambda x: x * 1e30,
    "infinite features": lambda x: np.where(np.abs(x) > 1, np.sign(x) * np.inf, x),
    "tiny features": lambda x: x * 1e-310,
    "one huge row": lambda x: np.where(np.arange(len(x))[:, None] == 5, 1e30, x),
    "32-bit features": lambda x: x.astype(np.float32),
    "whole features": lambda x: np.round(x).astype(np.int64),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("odd", ODD)
def test_odd_features_are_fitted(name: str, odd: str) -> None:
    train = logistic_world(60, 3)[0]
    features = ODD[odd](train.features)
    label = np.arange(len(features)) % 2.0
    rows = Training(train.score[: len(features)], label, features=features)
    for weight in (None, np.linspace(1e-3, 1e3, len(label))):
        score = scored(name, dataclasses.replace(rows, weight=weight), rows)
        assert ((score >= 0) & (score <= 1)).all()


def test_a_large_seed_is_a_seed() -> None:
    train = island_world(100, 0)[0]
    scores = [scored("stack-forest", dataclasses.replace(train, seed=seed), train) for seed in (1, 2, 2**63)]
    assert not np.array_equal(scores[0], scores[1])


def test_forests_stay_small() -> None:
    train = island_world(3000, 0)[0]
    assert len(fit(parse("stack-forest"), train).forest.nodes.left) < 30_000
    assert len(fit(parse("stack-boosting"), train).forest.nodes.left) <= 120 * 31
