"""The p-value of what features say beyond the score: by hand, its level, and its power where no gain is clear yet."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed, build_probe, no_signal
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Rows
from tests.helpers.worlds import gain_beyond


def probed(score: np.ndarray, label: np.ndarray, probe: np.ndarray, fold: np.ndarray, weight: np.ndarray) -> Probed:
    order = np.argsort(score, kind="stable")
    given = (score, label.astype(float), weight, score, score, probe, probe)
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


def test_it_seldom_rejects_where_features_say_nothing() -> None:
    """At most 3 of 20 below .05: more than 3 have a probability of .02 at that level."""
    assert sum(no_signal(one) <= 0.05 for one in worlds(400, 0.0, 20)) <= 3


def test_it_rejects_where_the_gain_is_not_clear_yet() -> None:
    for one in worlds(2000, 0.9, 4):
        assert no_signal(one) < 1e-4 and gain_beyond(one, 0.15).normal(0.99)[0] < 0


def test_too_few_rows() -> None:
    rows = Rows(np.full(5, 0.5), np.array([0, 1, 0, 1, 0]), features=np.zeros((5, 1)))
    with pytest.raises(Undefined, match="at least 10 rows"):
        no_signal(build_probe(rows, seed=0))
