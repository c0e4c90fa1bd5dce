"""Features as numbers: ordered statistics by hand, no row's own label in its features, rare and unseen categories."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.learn.encoding import (
    MAX_ALL_INDICATORS,
    MAX_INDICATORS,
    MIN_CATEGORY_ROWS,
    PRIOR_ROWS,
    CategoryColumn,
    Encoder,
    encoded,
    encoded_for,
    unseen_categories,
)
from decal_cli.learn.method import Training, try_out
from decal_cli.learn.methods import METHODS, parse
from decal_cli.learn.model_file import Saved, from_text, to_text
from decal_cli.learn.models import Model
from decal_cli.learn.probe import build_probe
from decal_cli.learn.regions import hold_out
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as parse_metric
from decal_cli.tables.features import Features
from decal_cli.tables.rows import Rows, Unlabelled
from tests.helpers.training import FIFTH, fit_method, gain_of
from tests.helpers.worlds import category_features, gain_beyond, mixed_rows


def labelled(codes: np.ndarray, names: tuple[str, ...], label: np.ndarray, weight: np.ndarray | None = None) -> Rows:
    """Rows with one column of categories, in canonical order."""
    score = np.arange(len(codes)) / len(codes)
    return Rows(score, label.astype(float), weight, features=category_features(codes, names))


def log_odds(positives: float, rows: float, rate: float) -> float:
    drawn = (positives + rate * PRIOR_ROWS) / (rows + PRIOR_ROWS)
    return float(np.log(drawn / (1 - drawn)))


def test_numbers_without_gaps_pass_as_they_are() -> None:
    rows = Rows(np.array([0.1, 0.2]), np.array([0.0, 1.0]), features=np.ones((2, 3)))
    assert encoded(rows, seed=0) == (None, rows)
    assert encoded(Rows(rows.score, rows.label), seed=0)[0] is None


def test_statistics_by_hand() -> None:
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    label = np.array([1, 1, 0, 0, 0, 1, 0, 1])
    encoder, rows = encoded(labelled(codes, ("a", "b", "c"), label), seed=3)
    rate = (4 + 0.5) / (8 + 1)
    expected = [log_odds(2, 3, rate), log_odds(0, 2, rate), log_odds(2, 3, rate), log_odds(0, 0, rate)]
    column = encoder.categories[0]
    np.testing.assert_allclose(column.log_odds, [*expected[:3], expected[3], expected[3]], rtol=1e-12)
    # Each row knows those of its category before it: of some row nothing, of another all but its own label.
    for category in range(3):
        mine = rows.matrix[codes == category, -1]
        labels = label[codes == category]
        possible = {log_odds(p, n, rate) for n in range(len(labels)) for p in range(n + 1)}
        assert all(min(abs(value - each) for each in possible) < 1e-12 for value in mine)
        assert np.isclose(mine, expected[3], rtol=0, atol=1e-12).sum() >= 1


def test_a_row_s_own_label_has_no_part_in_its_features() -> None:
    rng = np.random.default_rng(0)
    codes, label = rng.integers(0, 6, 200), rng.integers(0, 2, 200)
    names = tuple("abcdef")
    _, before = encoded(labelled(codes, names, label), seed=1)
    for row in (0, 57, 199):
        # The base rate stays: another row of the same category, if any, changes the other way.
        changed = label.copy()
        changed[row] = 1 - changed[row]
        other = next(k for k in range(200) if codes[k] != codes[row] and label[k] == changed[row])
        changed[other] = 1 - changed[other]
        _, after = encoded(labelled(codes, names, changed), seed=1)
        assert before.matrix[row].tolist() == after.matrix[row].tolist()
        assert before.matrix.tolist() != after.matrix.tolist()


def test_weights_count_as_rows() -> None:
    codes, label = np.array([0, 1, 2, 0, 1, 2]), np.array([1, 0, 1, 0, 1, 1])
    weight = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    names = ("a", "b", "c")
    heavy, _ = encoded(labelled(codes, names, label, weight), seed=0)
    twice, _ = encoded(labelled(np.append(codes, 0), names, np.append(label, 1)), seed=0)
    # Weights are of mean 1: seven rows' worth are six.
    ours, theirs = (1 / (1 + np.exp(-each.categories[0].log_odds[0])) for each in (heavy, twice))
    assert ours == pytest.approx(theirs, abs=0.01)


def test_frequent_categories_have_indicators_and_the_others_one() -> None:
    codes = np.repeat([0, 1, 2, 3, -1], [MIN_CATEGORY_ROWS, MIN_CATEGORY_ROWS - 1, 40, 1, 30])
    label = np.arange(len(codes)) % 2
    encoder, rows = encoded(labelled(codes, tuple("abcd"), label), seed=0)
    # a, c and missing by themselves; b, d and what is unseen together.
    assert encoder.categories[0].indicator.tolist() == [0, 3, 1, 3, 2, 3]
    indicators = rows.matrix[:, 1:-1]
    assert indicators.sum(axis=0).tolist() == [10, 40, 30, 10] and (indicators.sum(axis=1) == 1).all()
    new = encoder(category_features(np.array([0, 1, 2, -1]), ("a", "new", "d")))
    assert new[:, 1:-1].argmax(axis=1).tolist() == [0, 3, 3, 2]
    assert encoder.unseen(category_features(np.array([0, 1, 2, -1]), ("a", "new", "d"))).tolist() == [0, 1, 0, 0]


def test_others_that_are_too_few_have_no_indicator() -> None:
    """Two rows of label 1 had one: for a category that no row taught, refit said .9, where .4 of rows have label 1."""
    codes = np.repeat([0, 1, 2, -1], [200, 100, 100, 2])
    encoder, rows = encoded(labelled(codes, tuple("abc"), np.append(np.arange(400) % 5 < 2, [1, 1])), seed=0)
    assert encoder.categories[0].indicator.tolist() == [0, 1, 2, -1, -1]
    assert rows.matrix[-2:, 1:-1].sum() == 0


def test_two_categories_are_one_indicator() -> None:
    codes = np.repeat([0, 1], [30, 10])
    encoder, rows = encoded(labelled(codes, ("no", "yes"), np.arange(40) % 2), seed=0)
    assert encoder is not None and rows.matrix.shape == (40, 2)
    assert rows.matrix[:, 1].tolist() == codes.tolist()
    assert encoder(category_features(np.array([0, 1, -1]), ("maybe", "yes")))[:, 1].tolist() == [0, 1, 0]


def test_one_category_says_nothing() -> None:
    _, rows = encoded(labelled(np.zeros(20, dtype=int), ("a",), np.arange(20) % 2), seed=0)
    assert rows.matrix.shape == (20, 1)


def test_so_many_categories_have_so_many_columns() -> None:
    rng = np.random.default_rng(0)
    names = tuple(f"c{k:05}" for k in range(10_000))
    codes = rng.integers(0, 10_000, 30_000)
    codes[:20_000] = rng.integers(0, 50, 20_000)
    encoder, rows = encoded(labelled(codes, names, rng.integers(0, 2, 30_000)), seed=0)
    assert encoder is not None and rows.matrix.shape[1] == 1 + MAX_INDICATORS + 1 + 1
    many = np.column_stack([codes] * 40).astype(np.int32)
    features = Features(np.empty((30_000, 0)), many, (names,) * 40, ("category",) * 40)
    _, rows = encoded(Rows(np.arange(30_000) / 30_000, rows.label, features=features), seed=0)
    assert rows.matrix.shape[1] <= MAX_ALL_INDICATORS + 80


def test_missing_numbers_have_an_indicator_and_stay_missing() -> None:
    numbers = np.array([[1.0, np.nan, np.nan, 3.0], [np.nan, 2.0, np.nan, 4.0], [2.0, np.nan, np.nan, 5.0]])
    numbers = np.column_stack((numbers, numbers[:, 0] * 2))
    _, rows = encoded(Rows(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]), features=numbers), seed=0)
    # The third column holds nothing, and the last is missing where the first is.
    np.testing.assert_array_equal(rows.matrix[:, :4], numbers[:, [0, 1, 3, 4]])
    assert rows.matrix[:, 4:].tolist() == [[0, 1], [1, 0], [0, 1]]


def test_others_are_encoded_by_what_some_rows_teach() -> None:
    rng = np.random.default_rng(1)
    codes, label = rng.integers(0, 4, 300), rng.integers(0, 2, 300)
    rows = labelled(codes, tuple("abcd"), label)
    learn = rng.random(300) < 0.5
    matrix = encoded_for(rows, learn, seed=0)
    flipped = label.copy()
    flipped[~learn] = 1 - flipped[~learn]
    assert encoded_for(labelled(codes, tuple("abcd"), flipped), learn, seed=0).tolist() == matrix.tolist()
    encoder, _ = encoded(rows.take(learn), seed=0)
    assert matrix[~learn].tolist() == encoder(rows.typed[~learn]).tolist()


def test_a_changed_kind_is_refused() -> None:
    encoder, _ = encoded(labelled(np.array([0, 1, 2] * 9), tuple("abc"), np.arange(27) % 2), seed=0)
    with pytest.raises(Undefined, match="needs categories in feature 2, not numbers"):
        encoder(Features.of_numbers(np.zeros((3, 2))))


GOOD = CategoryColumn(("a", "b"), np.array([0, 1, -1, -1]), np.zeros(4))


@pytest.mark.parametrize(
    ("names", "indicator", "statistic"),
    [
        (("a", "a"), GOOD.indicator, GOOD.log_odds),
        (("a",), GOOD.indicator, GOOD.log_odds),
        (("a", "b"), np.array([0, 1, -1, -2]), GOOD.log_odds),
        (("a", "b"), np.array([0, 1, -1, 10**9]), GOOD.log_odds),
        (("a", "b"), GOOD.indicator, np.array([0, 0, np.nan, 0])),
        (("a", "b"), GOOD.indicator, np.zeros(3)),
    ],
)
def test_what_is_no_column_is_refused(names: tuple[str, ...], indicator: np.ndarray, statistic: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"category column|log-odds"):
        CategoryColumn(names, indicator, statistic)


def test_an_encoder_without_its_columns_is_refused() -> None:
    some = np.array([0])
    for kept, gaps, categories in ((some + 1, some, (GOOD,)), (some, some - 1, (GOOD,)), (some, some, ())):
        with pytest.raises(ValueError, match="an encoder needs"):
            Encoder(("number", "category"), kept, gaps, categories)


KEYS = [
    *(key for key, method in METHODS.items() if method.takes("features")),
    "glar(r=-1,adjust=threshold)",
    "refit(units=own)",
]


def training(rows: Rows) -> Training:
    groups = {"half": np.where(rows.score > 0.5, "high", "low")}
    return Training(rows.score, rows.label, rows.weight, groups=groups, features=rows.features, task=FIFTH)


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


def test_the_probe_and_the_regions_find_it_too() -> None:
    rows = mixed_rows(2000, 3)
    gain = gain_beyond(build_probe(rows, seed=0), 0.5)
    assert gain.value > 3 * gain.error
    loss = value_of(parse_metric("grouping_loss"), Inputs(rows))
    without = value_of(parse_metric("grouping_loss"), Inputs(replace(rows, features=rows.typed.numbers[:, :2])))
    assert loss > 0.01 > abs(without)
    held = hold_out(rows, seed=0)
    assert np.corrcoef(held.region, held.label)[0, 1] > np.corrcoef(rows.score, rows.label)[0, 1]


@pytest.mark.long
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
        judged = replace(training(rows), task=FIFTH)
        gain = gain_of(judged, try_out(parse("stack"), judged).applied)
        tried.append((gain.value, gain.error))
        assert abs(value_of(parse_metric("grouping_loss"), Inputs(rows))) < 0.012
    for estimates in (gains, tried):
        mean, error = np.array(estimates, dtype=float).T
        assert mean.mean() < 2 * error.mean() / np.sqrt(len(mean)), "no label leaks into the features"
        assert (mean - 1.96 * error < 0).all()


def test_other_kinds_than_a_model_was_fitted_on_are_refused() -> None:
    with pytest.raises(Undefined, match="needs 4 features, and there are 2"):
        fitted("stack")(Unlabelled(np.array([0.5]), features=np.zeros((1, 2))))
    with pytest.raises(Undefined, match="needs the features"):
        fitted("stack")(Unlabelled(np.array([0.5])))
