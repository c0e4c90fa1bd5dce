"""The lowest Brier curve of several models: by hand, against brute force, and by chance."""

import numpy as np
import pytest
from scipy.stats import norm

from decal_cli.curves.crossings import _advantage, brier_difference, lowest_curve, same_rows
from decal_cli.learn.regions import fits_of_other_folds
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.render.results.sweep import verdict
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed

AT = np.linspace(0.02, 0.98, 49)


def world(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two signals of the label, and the label."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, 2))
    label = (rng.random(size) < 1 / (1 + np.exp(-1.5 * x[:, 0] - 1.5 * x[:, 1]))).astype(np.uint8)
    return x, label


def score(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def test_curves_gaps_and_errors_are_those_of_the_rows() -> None:
    x, label = world(300, 0)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, 300)
    models = [(name, Rows(np.round(score(x[:, k]), 2), label, weight)) for k, name in enumerate("ab")]
    lowest = lowest_curve(models, AT, 0.95)
    lost = []
    for _, rows in models:
        pools, fit = rows.table.pools, rows.table.isotonic
        c = (fit.pos / fit.n)[np.searchsorted(rows.table.score[pools], rows.score, side="right") - 1]
        lost.append(np.where(c[:, None] >= AT, AT * (label == 0)[:, None], (1 - AT) * (label == 1)[:, None]))
    curves = np.array([np.average(each, axis=0, weights=weight) for each in lost])
    np.testing.assert_allclose(lowest.value, curves.min(axis=0), atol=1e-12)
    for k, rival in enumerate(lowest.models):
        gap = curves[k] - curves.min(axis=0)
        assert rival.gap == pytest.approx(gap.max(), abs=1e-12) and rival.gap_at == AT[gap.argmax()]
        assert rival.lowest_share == pytest.approx(np.mean(curves[k] < curves[1 - k] - 1e-12))
        inputs = Inputs(models[k][1])
        assert rival.refinement_loss == pytest.approx(value_of(parse("refinement_loss"), inputs), abs=1e-12)


@pytest.mark.parametrize("differing", [5, 6], ids=["too few at the last threshold", "just enough"])
@pytest.mark.parametrize("known", [False, True])
def test_an_advantage_is_its_mean_over_its_error_with_one_more_row_of_each_label(differing: int, known: bool) -> None:
    """Where the share of label 1 is known, rows vary about the mean of their label."""
    rng, at = np.random.default_rng(4), np.array([0.2, 0.5, 0.9])
    a, b, label = rng.integers(0, 3, 200), rng.integers(0, 3, 200), np.arange(200) % 2
    weight = np.append(np.ones(6), rng.integers(2, 8, 194) / 4)
    b[:differing] = 3
    heavy = np.array([np.average(weight[label == one], weights=weight[label == one]) for one in (0, 1)])
    expected = []
    for k, t in enumerate(at[: differing - 3]):
        first, second = (np.where(decided > k, t * (1 - label), (1 - t) * label) for decided in (a, b))
        mean = np.average(first - second, weights=weight)
        of_label = [np.average((first - second)[label == one], weights=weight[label == one]) for one in (0, 1)]
        centre = np.array(of_label)[label] if known else mean
        seen = (weight**2 * (first - second - centre) ** 2).sum() / weight.sum() ** 2
        missed = heavy / weight.sum() * np.array([t, 1 - t])
        expected.append(mean / np.sqrt(seen + missed @ missed))
    reached = np.array([0.0, *at])
    found = _advantage(reached[a], reached[b], Rows(np.full(200, 0.5), label, weight, share_known=known), at)
    assert found == pytest.approx([*expected, 0][:3])
    apart = brier_difference(pair_up(reached[a], reached[b], label, weight))
    assert apart.enough[2 * apart.segment_of(at)].tolist() == [True, True, differing == 6]


def test_a_model_that_knows_both_signals_beats_those_that_know_one() -> None:
    x, label = world(4000, 2)
    models = [(name, Rows(score(signal), label)) for name, signal in (("one", x[:, 0]), ("both", x.sum(axis=1)))]
    lowest = lowest_curve(models, AT, 0.95)
    assert lowest.sufficient == ("both",) and lowest.models[0].beaten_by == "both"
    assert verdict(lowest).startswith("both is not beaten and may be sufficient; the other is not.")


def test_all_thresholds_and_pairs_share_the_chance_of_an_error() -> None:
    """Bonferroni, on rows in the order in which the folds are dealt."""
    x, label = world(1000, 1)
    order = np.argsort(x[:, 1])
    first, second = (Rows(score(x[order, k]), label[order]) for k in range(2))
    fold = second.folds(Seed(0).generator("lowest"))
    signal = _advantage(*(fits_of_other_folds(each, fold) for each in (first, second)), first, AT)
    chance = 3 * len(AT) * 2 * norm.sf(abs(signal).max())
    for confidence, beaten in ((1 - 1.01 * chance, 1), (1 - 0.99 * chance, 0)):
        lowest = lowest_curve([("first", first), ("second", second), ("same", second)], AT, confidence)
        assert len(lowest.models) - len(lowest.sufficient) == beaten
    assert 1e-9 < chance < 0.9


def test_two_models_that_know_different_parts_of_the_label_are_both_beaten() -> None:
    """Each tells the labels apart in its half of the rows, at probabilities that the other does not reach."""
    rng = np.random.default_rng(3)
    half = np.arange(6000) % 2 == 0
    truth = np.where(half, rng.choice([0.02, 0.3], 6000), rng.choice([0.7, 0.98], 6000))
    label = (rng.random(6000) < truth).astype(np.uint8)
    low, high = np.where(half, truth, 0.84), np.where(half, 0.16, truth)
    lowest = lowest_curve([("low", Rows(low, label)), ("high", Rows(high, label))], AT, 0.95)
    assert lowest.sufficient == ()
    first, second = lowest.models
    assert first.lowest_share < second.lowest_share
    known = " and ".join(f"{each.model} ({100 * each.lowest_share:.0f} % of t*)" for each in (second, first))
    expected = "No model named is sufficient here: each is beaten by another. Best known lower curve: "
    assert verdict(lowest) == f"{expected}{known}."


def test_rows_are_the_same_only_with_the_same_labels_and_weights() -> None:
    x, label = world(50, 6)
    rows = Rows(score(x[:, 0]), label)
    assert same_rows([rows, Rows(score(x[:, 1]), label)])
    assert not same_rows([rows, Rows(rows.score[1:], label[1:])])
    assert not same_rows([rows, Rows(rows.score, 1 - label)])
    assert not same_rows([rows, Rows(rows.score, label, np.full(50, 2.0))])
