"""Refitting and stacking: near the best decisions where these are known, equal to scikit-learn, safe on odd rows."""

import dataclasses
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from decal_cli.errors import Undefined
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.probe import EQUAL
from decal_cli.learn.regions import Curve, narrow, with_score
from decal_cli.learn.stacks import (
    Blended,
    ColumnScale,
    Planes,
    Probes,
    ScoreColumn,
    blend,
    costs,
    grid,
    planes_of,
    stack,
    stack_boosting,
    with_recalibrated,
)
from decal_cli.learn.trees import MAX_PAIRS, Forest, Tree, baseline_of
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled
from tests.helpers.training import random_training, unlabelled

NAMES = ["refit", "refit(units=own)", "stack", "stack-forest(trees=20)", "stack-boosting"]


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


def brier(score: np.ndarray, truth: np.ndarray) -> float:
    """What the Brier score is expected to lose beside the truth."""
    return float(np.mean((score - truth) ** 2))


def test_refit_is_scikit_learns_regression_with_its_defaults() -> None:
    train, _ = logistic_world(500, 0)
    features = train.features
    oracle = LogisticRegression(tol=1e-8, max_iter=1000).fit(features, train.label)
    model = fit(parse("refit(units=own)"), train)
    np.testing.assert_allclose(model(train).score, oracle.predict_proba(features)[:, 1], atol=1e-6)
    np.testing.assert_allclose(model.planes.coefficient, oracle.coef_, atol=1e-5)


BOOSTING = {
    **{"learning_rate": 0.05, "max_iter": 120, "max_leaf_nodes": 16, "max_bins": 63, "max_features": 0.3},
    **{"min_samples_leaf": 20, "early_stopping": False},
}
OF_SCIKIT_LEARN = {
    "stack-forest(trees=20)": RandomForestClassifier(20, max_samples=360, max_features=4, min_samples_leaf=5),
    "stack-boosting": HistGradientBoostingClassifier(**BOOSTING),
    "stack-forest(trees=100,sizes=scikit-learn)": RandomForestClassifier(),
    "stack-boosting(rounds=100,sizes=scikit-learn)": HistGradientBoostingClassifier(),
}


@pytest.mark.parametrize("name", OF_SCIKIT_LEARN)
def test_trees_say_what_scikit_learns_say(name: str) -> None:
    train, new = island_world(600, 0)[0].in_order(), island_world(300, 1)[0]
    columns, seen = (with_score(rows.score, narrow(rows.features)) for rows in (train, new))
    expected = OF_SCIKIT_LEARN[name].set_params(random_state=0).fit(columns, train.label).predict_proba(seen)[:, 1]
    np.testing.assert_allclose(scored(name, train, new), expected, atol=1e-12)


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


@pytest.mark.parametrize("name", [*NAMES, "probing(probes=5)"])
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


def logistic_columns(rows: int = 400, columns: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns and labels of a logistic world."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) * 10.0 ** np.arange(columns) + 3
    return x, (rng.random(rows) < expit(x[:, 0] - x[:, 1] / 10)).astype(float)


def fitted_plane(x: np.ndarray, y: np.ndarray, **options: float) -> Planes:
    weight = np.ones(len(y))
    return planes_of(x, y, [weight], ColumnScale.of(x, weight), **options)


@pytest.mark.parametrize("columns", [4, 301])
def test_it_is_scikit_learns_regression_on_standardised_columns(columns: int) -> None:
    x, y = logistic_columns(columns=4)
    x = np.column_stack((x, np.random.default_rng(1).normal(size=(len(x), columns - 4))))
    oracle = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000)).fit(x, y)
    ours = expit(fitted_plane(x, y, penalty=2.0)(x)[:, 0])
    np.testing.assert_allclose(ours, oracle.predict_proba(x)[:, 1], atol=1e-6 if columns == 4 else 1e-3)


def test_recalibration_while_fitting_does_not_see_the_rows_own_label() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    rows = Training(score, (rng.random(2000) < 0.5).astype(float), features=np.zeros((2000, 1)))
    score_column, columns = with_recalibrated(rows)
    seen, held = score_column(rows)[:, 0], columns[:, 0]
    assert np.corrcoef(seen, rows.label)[0, 1] > 0.03
    assert abs(np.corrcoef(held, rows.label)[0, 1]) < 0.05
    assert np.corrcoef(seen, rows.label)[0, 1] > np.corrcoef(held, rows.label)[0, 1]


def test_log_odds_of_the_score_are_no_surer_than_the_rows_allow() -> None:
    column = ScoreColumn(Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0])), 0.01)
    columns = column(Unlabelled(np.array([0.0, 0.5, 1.0]), features=np.array([[7.0], [8.0], [9.0]])))
    np.testing.assert_allclose(columns, [[-np.log(99), 7], [0, 8], [np.log(99), 9]], atol=1e-12)


def test_two_rows_are_recalibrated_by_one_another() -> None:
    rows = Training(np.array([0.2, 0.8]), np.array([0.0, 1.0]), features=np.zeros((2, 1)))
    np.testing.assert_allclose(with_recalibrated(rows)[1][:, 0], [np.log(3), -np.log(3)])


def test_it_is_the_weighted_sum_of_its_parts() -> None:
    rows = random_training(200, 3)
    new, model = unlabelled(random_training(40, 9)), blend(rows)
    one, other, calibrated = (
        part(new).score for part in (stack(rows), stack_boosting(rows), model.regression.score.curve)
    )
    logit = np.log(np.array([one, other, np.clip(calibrated, 1e-3, 1 - 1e-3)]))
    logit -= np.log(1 - np.array([one, other, np.clip(calibrated, 1e-3, 1 - 1e-3)]))
    expected = 1 / (1 + np.exp(-(model.weights[0] + model.weights[1:] @ logit)))
    assert model(new).score == pytest.approx(expected, abs=1e-12)


def test_one_row_of_a_label_leaves_the_weights_equal() -> None:
    rows = replace(island_world(60, 0)[0], label=(np.arange(60) == 7).astype(float))
    assert np.array_equal(blend(rows).weights, EQUAL)
    assert np.isfinite(blend(replace(rows, label=(np.arange(60) < 2).astype(float))).weights).all()


@pytest.mark.ci
def test_some_rows_are_enough_to_weigh(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = island_world(600, 0)[0]
    whole = blend(rows)
    monkeypatch.setattr("decal_cli.learn.stacks._MAX_WEIGHED_ROWS", 300)
    some = blend(rows)
    assert np.array_equal(some.boosting.forest.nodes.value, whole.boosting.forest.nodes.value)
    assert not np.array_equal(some.weights, whole.weights)


def rows_and_truth(rows: int, seed: int) -> tuple[Training, np.ndarray]:
    """Labels of a world that is not logistic, and their true probability given the score and the features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    truth = 0.02 + 0.9 * expit(2 * x[:, 0] + x[:, 1] - 1) ** 2
    score = expit(x[:, 0] + rng.normal(size=rows))
    label = (rng.random(rows) < truth).astype(float)
    label[:2] = 0, 1
    return Training(score, label, features=x), truth


def fitted_probes(rows: Training, probes: int = 40) -> Probes:
    return fit(parse(f"probing(probes={probes})"), rows)


def area_of_losses(decided: np.ndarray, label: np.ndarray, edges: np.ndarray) -> float:
    """2 integral of L(H(t), t) dt: exact, since the loss of a probe is linear in t over its cell.

    label: 0 or 1, or its probability: costs are linear in the label too.
    """
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    missed, alarmed = np.mean(~decided * label[:, None], axis=0), np.mean(decided * (1 - label[:, None]), axis=0)
    return float(2 * np.sum(width * ((1 - middle) * missed + middle * alarmed)))


@given(st.integers(20, 300), st.integers(1, 25), st.integers(0, 10**6))
def test_the_brier_bound_holds_on_every_table(rows: int, probes: int, seed: int) -> None:
    """Tasche 2021, thm. 4.2 with the table as the world: the labels' best loss is part of both sides."""
    train, _ = rows_and_truth(rows, seed)
    new, _ = rows_and_truth(rows, seed + 1)
    model = fitted_probes(train, probes)
    for table in (train, new):
        brier = np.mean((model(table).score - table.label) ** 2)
        assert brier <= area_of_losses(model.decisions(table), table.label, model.edges) + 1e-12


def test_each_probe_is_a_cost_weighted_regression_cut_at_its_middle() -> None:
    train = rows_and_truth(500, 0)[0].in_order()
    train = dataclasses.replace(train, weight=np.random.default_rng(0).uniform(0.5, 2, 500), cache={})
    model = fitted_probes(train, 5)
    _, columns = with_recalibrated(train)
    seen = model.planes.units(columns)
    for k, middle in enumerate((model.edges[1:] + model.edges[:-1]) / 2):
        cost = train.weights * costs(train.label, middle)
        cost *= train.weights.sum() / cost.sum()
        oracle = LogisticRegression(tol=1e-8, max_iter=1000).fit(seen, train.label, cost)
        np.testing.assert_allclose(model.planes(columns)[:, k], oracle.decision_function(seen), atol=1e-3)


@pytest.mark.parametrize("probes", [1, 2, 40, 10_000])
def test_the_grid_covers_the_thresholds_and_is_finer_at_its_ends(probes: int) -> None:
    edges = grid(probes)
    width = np.diff(edges)
    assert edges[0] == 0 and edges[-1] == 1 and (width > 0).all()
    np.testing.assert_allclose(width, width[::-1], atol=1e-12)
    if probes > 2:
        assert width[0] < width[probes // 2] / 3


@pytest.mark.parametrize("learner", ["refit", "stack-boosting"])
def test_any_learner_is_fitted_with_the_costs_of_each_threshold(learner: str) -> None:
    """Tasche 2021, thm. 4.2: the Brier score is at most twice the integral of the classifiers' losses."""
    train, _ = rows_and_truth(600, 0)
    new, truth = rows_and_truth(600, 1)
    model = fit(parse(f"probing(probes=5,learner={learner})"), train)
    decided, score = model.decisions(new), model(new).score
    np.testing.assert_allclose(score, decided @ np.diff(model.edges), atol=1e-12)
    assert np.mean((score - new.label) ** 2) <= area_of_losses(decided, new.label, model.edges) + 1e-12
    assert np.mean((score - truth) ** 2) < np.mean((new.score - truth) ** 2)
    middle = (model.edges[2] + model.edges[3]) / 2
    weight = costs(train.label, middle)
    alone = fit(parse(learner), dataclasses.replace(train, weight=weight * 600 / weight.sum(), cache={}))
    np.testing.assert_array_equal(decided[:, 2], alone(new).score >= 0.5)


def with_decisions(thresholds: tuple[float, ...]) -> tuple[Training, np.ndarray]:
    """Rows of which each feature is the right decision at a threshold, in any order, and one other feature."""
    train, truth = rows_and_truth(200, 3)
    decided = np.column_stack([truth >= t for t in thresholds]).astype(float)
    names = (*(f"d_{t}" for t in thresholds), "x")
    return dataclasses.replace(train, features=np.column_stack((decided, truth)), feature_names=names), truth


def test_decisions_of_the_user_are_integrated_over_the_thresholds() -> None:
    """Thresholds .5, .1, .3: their decisions count for [.4, 1], [0, .2] and [.2, .4]."""
    rows, truth = with_decisions((0.5, 0.1, 0.3))
    score = fit(parse("probing(columns=d_*)"), rows)(rows).score
    expected = 0.2 * (truth >= 0.1) + 0.2 * (truth >= 0.3) + 0.6 * (truth >= 0.5)
    np.testing.assert_allclose(score, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("names", "value", "reason"),
    [
        (("e_0.1", "e_0.2"), 1.0, "needs features that 'd_*' names"),
        (("d_low", "d_0.2"), 1.0, "needs names that end in a threshold between 0 and 1, such as d_0.25, not 'd_low'"),
        (("d_0.2", "d_1.2"), 1.0, "needs names that end in a threshold between 0 and 1, such as d_0.25, not 'd_1.2'"),
        (("d_0.2", "d_b_0.20"), 1.0, "needs one column of decisions for a threshold, not two"),
        (("d_0.1", "d_0.2"), 0.5, "needs decisions of 0 and 1, none missing, beside features that are numbers"),
    ],
)
def test_columns_that_hold_no_decisions_are_refused(names: tuple[str, ...], value: float, reason: str) -> None:
    train, _ = rows_and_truth(30, 0)
    rows = dataclasses.replace(train, features=np.full((30, 2), value), feature_names=names)
    with pytest.raises(Undefined) as undefined:
        fit(parse("probing(columns=d_*)"), rows)
    assert undefined.value.reason == reason


def tree_rows(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, some of them with ties, labels that depend on two of them, weights."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns))
    features[:, ::3] = np.round(features[:, ::3], 1)
    label = (rng.random(rows) < 1 / (1 + np.exp(-features[:, 0] - features[:, -1]))).astype(float)
    label[:2] = 0, 1
    return features, label, rng.uniform(0.5, 2, rows)


any_tree_rows = {"rows": st.integers(10, 400), "columns": st.integers(1, 6), "seed": st.integers(0, 10**6)}


@settings(max_examples=15)
@given(**any_tree_rows)
def test_a_single_tree_gives_scikit_learns_leaves_and_values(rows: int, columns: int, seed: int) -> None:
    features, label, weight = tree_rows(rows, columns, seed)
    for kind in (DecisionTreeRegressor, DecisionTreeClassifier):
        for leaves in (None, 5):
            fitted = kind(max_leaf_nodes=leaves, random_state=0).fit(features, label, weight)
            tree = Tree.of_sklearn(fitted)
            new = narrow(np.vstack((features, tree_rows(50, columns, seed + 1)[0])))
            np.testing.assert_array_equal(tree.leaf(new), fitted.apply(new))
            expected = fitted.predict_proba(new)[:, 1] if kind is DecisionTreeClassifier else fitted.predict(new)
            np.testing.assert_allclose(tree.value[tree.leaf(new)], expected, atol=1e-12)


def test_more_values_than_bins_and_thresholds_that_values_lie_on_are_split_alike() -> None:
    rng = np.random.default_rng(0)
    features = narrow(rng.normal(size=(3000, 2)) * np.array([1e-6, 1e6]))
    label = (features[:, 0] > 0) ^ (features[:, 1] > 0)
    boosted = HistGradientBoostingClassifier(max_iter=20, early_stopping=False).fit(features, label)
    (forest,) = Forest.of_boosting(boosted)
    edges = np.nextafter(forest.nodes.threshold.astype(np.float32), np.float32(np.inf))
    column = forest.nodes.feature
    for at in (forest.nodes.threshold, edges, -edges):
        rows = features[: len(at)].copy()
        rows[np.arange(len(rows)), column[: len(rows)]] = at[: len(rows)]
        np.testing.assert_allclose(forest.total(rows) + baseline_of(boosted), boosted.decision_function(rows))


def test_features_of_any_size_descend() -> None:
    features = np.array([[-np.inf], [-1e300], [-1.0], [1.0], [1e300], [np.inf]])
    fitted = DecisionTreeClassifier().fit(narrow(features), [0, 1, 0, 1, 0, 1])
    leaf = Tree.of_sklearn(fitted).leaf(narrow(features))
    assert leaf[0] == leaf[1] and leaf[4] == leaf[5], "what is beyond the largest counts as the largest"
    assert len(set(leaf)) == 4


def test_the_score_stands_before_the_features() -> None:
    assert with_score(np.array([0.25]), narrow(np.array([[3.0, 1e200]]))).tolist() == [[0.25, 3.0, np.float32(1e30)]]


def test_blocks_of_rows_make_no_difference_and_bound_the_memory() -> None:
    features, label, _ = tree_rows(4 * MAX_PAIRS // 50 + 7, 2, 0)
    forest = Forest.of_forest(RandomForestClassifier(50, max_depth=3, random_state=0).fit(features[:500], label[:500]))
    seen = narrow(features)
    tracemalloc.start()
    total = forest.total(seen)
    assert tracemalloc.get_traced_memory()[1] < 2**18 * 8 * 16
    tracemalloc.stop()
    some = [0, 5, MAX_PAIRS // 50 - 1, MAX_PAIRS // 50, len(seen) - 1]
    np.testing.assert_array_equal(total[some], np.concatenate([forest.total(seen[[row]]) for row in some]))


GOOD = Tree(
    2,
    np.array([1, -1, -1]),
    np.array([2, -1, -1]),
    np.array([1, 0, 0]),
    np.array([0.5, 0, 0]),
    np.array([True, False, False]),
    np.array([0.5, 0.1, 0.9]),
)


ONE, FLAT = ColumnScale(np.zeros(2), np.ones(2)), Curve(np.zeros(1), np.zeros(1))


def probes_of(*edges: float) -> Probes:
    planes = Planes(ColumnScale(np.zeros(1), np.ones(1)), np.zeros((2, 1)), np.zeros(2))
    return Probes(ScoreColumn(FLAT, 0.1), planes, np.array(edges))


def blended_by(*weights: float) -> Blended:
    return replace(blend(island_world(60, 0)[0]), weights=np.array(weights))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ColumnScale(np.zeros(2), np.array([1.0, 0.0])), "scale"),
        (lambda: ColumnScale(np.zeros(2), np.ones(3)), "scale"),
        (lambda: Planes(ONE, np.zeros((1, 3)), np.zeros(1)), "coefficient"),
        (lambda: Planes(ONE, np.array([[np.nan, 1]]), np.zeros(1)), "finite"),
        (lambda: ScoreColumn(FLAT, 0.0), "away from 0"),
        (lambda: ONE(np.zeros((4, 3))), "2 columns"),
        *((lambda w=weights: blended_by(*w), "three weights") for weights in ((0.0,) * 3, (0.0, 1.0, np.nan, 0.0))),
        *((lambda e=edges: probes_of(*e), "probes") for edges in ((0, 1), (0, 0.5, 0.5), (0, 0.7, 0.9), (0.1, 0.5, 1))),
        *((lambda s=starts: Forest(GOOD, np.array(s)), "roots") for starts in ([3], [-1], [0.0])),
        (lambda: Forest(GOOD, np.array([], dtype=int)), "roots"),
        (lambda: GOOD.leaf(np.zeros((4, 3), dtype=np.float32)), "2 columns"),
    ],
)
def test_what_is_no_model_and_what_are_no_rows_of_it_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
