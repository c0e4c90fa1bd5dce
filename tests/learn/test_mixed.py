"""Methods on features of every kind: what a category knows is found, and what it does not know is not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.learn.method import Model, Training, try_out, unseen_categories
from decal_cli.learn.methods import METHODS, parse
from decal_cli.learn.model_file import Saved, from_text, to_text
from decal_cli.learn.probe import build_probe
from decal_cli.learn.regions import hold_out
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as parse_metric
from decal_cli.tables.features import Features
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.task import BinaryTask
from tests.helpers.training import FIFTH, fit_method
from tests.helpers.worlds import category_features, gain_beyond, mixed_rows

KEYS = [
    *(key for key, method in METHODS.items() if method.takes("features")),
    "glar(r=-1,adjust=threshold)",
    "refit(units=own)",
]


def training(rows: Rows) -> Training:
    groups = {"half": np.where(rows.score > 0.5, "high", "low")}
    return Training(rows.score, rows.label, rows.weight, groups=groups, features=rows.features, task=FIFTH)


HALF = BinaryTask.of_threshold(0.5)


@cache
def fitted(key: str) -> Model:
    return fit_method(key, training(mixed_rows(400, 0)))


NEW = training(mixed_rows(300, 1, categories=6))
"""Rows of which some have categories that the models were not fitted on."""


@pytest.mark.parametrize("key", KEYS)
def test_a_model_file_keeps_the_encoding(key: str) -> None:
    features = NEW.typed
    saved = Saved(key, fitted(key), "p", ("a", "b", "c", "d"), 4, features.kinds, groups=("half",), task=FIFTH)
    text = to_text(saved)
    assert '"names": ["c00000", "c00001", "c00002", "c00003"]' in text, "a person can read it"
    back = from_text(text, "m.json")
    assert to_text(back) == text and back.kinds == features.kinds
    for one, other in zip(fitted(key)(NEW), back.model(NEW), strict=True):
        assert (one is None and other is None) or one.tolist() == other.tolist()
    assert unseen_categories(back.model, NEW) == int((features.codes >= 4).sum()) > 0


@pytest.mark.parametrize("key", KEYS)
def test_scores_depend_on_neither_the_order_of_rows_nor_other_rows_nor_codes(key: str) -> None:
    rows = training(mixed_rows(400, 0))
    mixed = rows.take(np.random.default_rng(5).permutation(400))
    features = mixed.typed
    # The same names under other codes, as a file with one more category has them.
    codes = np.where(features.codes < 0, -1, features.codes + 1).astype(np.int32)
    names = ("another", *features.categories[0])
    recoded = replace(mixed, features=replace(features, codes=codes, categories=(names,)))
    other = fit_method(key, recoded)
    expected, scores = fitted(key)(NEW), other(NEW)
    assert scores.score.tolist() == expected.score.tolist()
    some = NEW.take(np.arange(7))
    np.testing.assert_allclose(fitted(key)(some).score, expected.score[:7], rtol=0, atol=1e-12)


@pytest.mark.parametrize("key", KEYS)
def test_rows_of_which_nothing_is_known_are_scored(key: str) -> None:
    gone = Features.missing(5, NEW.typed.kinds)
    applied = fitted(key)(replace(NEW.take(np.arange(5)), features=gone))
    assert np.isfinite(applied.score).all() and applied.score.min() >= 0 and applied.score.max() <= 1


@pytest.mark.parametrize("key", ["refit", "stack", "stack-forest", "stack-boosting", "blend", "probing"])
def test_what_a_category_knows_is_won(key: str) -> None:
    rows = replace(training(mixed_rows(1200, 2)), task=HALF)
    performance = try_out(parse(key), rows)
    assert performance.gain is not None and performance.gain.mean > 3 * performance.gain.error > 0


def test_the_probe_and_the_regions_find_it_too() -> None:
    rows = mixed_rows(2000, 3)
    gain = gain_beyond(build_probe(rows, seed=0), 0.5)
    assert gain.value > 3 * gain.error
    loss = value_of(parse_metric("grouping_loss"), Inputs(rows))
    without = value_of(parse_metric("grouping_loss"), Inputs(replace(rows, features=rows.typed.numbers[:, :2])))
    assert loss > 0.01 > abs(without)
    held = hold_out(rows, seed=0)
    assert held is not None and np.corrcoef(held.region, held.label)[0, 1] > np.corrcoef(rows.score, rows.label)[0, 1]


@pytest.mark.parametrize("categories", [40, 400, 10_000])
def test_many_categories_that_know_nothing_win_nothing(categories: int) -> None:
    """The mean gain over worlds is 0 but for noise, and no interval of one lies above 0."""
    gains, tried = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        score = rng.random(800)
        names = tuple(f"c{k:05}" for k in range(categories))
        features = category_features(rng.integers(0, categories, 800), names)
        rows = Rows(score, (rng.random(800) < score).astype(float), features=features)
        beyond = gain_beyond(build_probe(rows, seed=seed), 0.4)
        gains.append((beyond.value, beyond.error))
        tried.append(try_out(parse("stack"), replace(training(rows), task=FIFTH)).gain)
        assert abs(value_of(parse_metric("grouping_loss"), Inputs(rows))) < 0.012
    for estimates in (gains, tried):
        mean, error = np.array(estimates, dtype=float).T
        assert mean.mean() < 2 * error.mean() / np.sqrt(len(mean)), "no label leaks into the features"
        assert (mean - 1.96 * error < 0).all()


def test_ten_thousand_categories_are_quick() -> None:
    rows = training(mixed_rows(20_000, 0, categories=10_000))
    model = fit_method("stack", rows)
    scores = model(rows).score
    truth = rows.typed.codes[:, 0] % 4 == 0
    assert scores[truth].mean() > scores[~truth].mean()


def test_products_of_categories_are_seen() -> None:
    """Neither category says anything by itself: only where they are equal is the label likelier."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (3000, 2)).astype(np.int32)
    chance = np.where(codes[:, 0] == codes[:, 1], 0.8, 0.2)
    names = (("a", "b", "c"), ("a", "b", "c"))
    features = Features(np.empty((3000, 0)), codes, names, ("category", "category"))
    rows = Rows(np.full(3000, 0.4), (rng.random(3000) < chance).astype(float), features=features)
    gain = gain_beyond(build_probe(rows, seed=0), 0.5)
    assert gain.value > 5 * gain.error


def test_other_kinds_than_a_model_was_fitted_on_are_refused() -> None:
    with pytest.raises(Undefined, match="needs 4 features, and there are 2"):
        fitted("stack")(Unlabelled(np.array([0.5]), features=np.zeros((1, 2))))
    with pytest.raises(Undefined, match="needs the features"):
        fitted("stack")(Unlabelled(np.array([0.5])))
