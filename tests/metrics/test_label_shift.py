"""Another share of labels 1: told from scores alone within its error, and other differences noticed."""

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.label_shift import N_BINS, BinShares, ReferenceScores, binned, label_shift, psi
from decal_cli.tables.table import Table, tabulate


def sample(rng: np.random.Generator, n: int, share: float, apart: float = 1.5) -> Table:
    label = rng.uniform(size=n) < share
    score = 1 / (1 + np.exp(-(rng.normal(size=n) + apart * (label - 0.5))))
    return tabulate(score, label.astype(int), None)


def test_psi_by_hand() -> None:
    """.1 ln(.6 / .5) - .1 ln(.4 / .5)."""
    value = psi(BinShares(np.array([0.5, 0.5]), 1000), BinShares(np.array([0.6, 0.4]), 1000))
    assert value == pytest.approx(0.1 * np.log(1.2) - 0.1 * np.log(0.8), abs=1e-12)


def test_a_bin_without_rows_counts_half_a_row() -> None:
    value = psi(BinShares(np.array([0.5, 0.5]), 100), BinShares(np.array([1.0, 0.0]), 100))
    assert value == pytest.approx(0.5 * np.log(2) - 0.495 * np.log(0.005 / 0.5), abs=1e-12)


def test_the_metric_is_that_of_the_bins_of_the_reference() -> None:
    """Two rows of the reference in each of ten bins; of these rows .4 lie in the first, and none in the last.

    .3 ln(.4 / .1) + ... of eight bins with .075 each, and half a row of 20 for the bin without rows.
    """
    reference = tabulate(np.repeat(np.arange(10) / 10, 2), np.tile([0, 1], 10), None)
    level = np.concatenate((np.zeros(16), np.repeat(np.arange(1, 9) / 10, 3)))
    rows = tabulate(level + 0.005, np.tile([0, 1], 20), None)
    inputs = Inputs.of(rows, ReferenceScores(reference))
    by_hand = 0.3 * np.log(4) + 8 * (0.075 - 0.1) * np.log(0.75) + (0.5 / 40 - 0.1) * np.log(0.125)
    assert value_of(parse("psi"), inputs) == pytest.approx(by_hand, abs=1e-12)
    with pytest.raises(Undefined, match="needs a reference: evaluate --reference"):
        value_of(parse("psi"), Inputs.of(rows))


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_share_is_covered_and_mixtures_are_seldom_refused(share: float) -> None:
    rng, held, refused = np.random.default_rng(7), 0, 0
    for _ in range(200):
        reference, rows = sample(rng, 2000, 0.3), sample(rng, 800, share)
        edges = reference.bin_edges(N_BINS)
        prevalence, pvalue = label_shift(binned(reference, edges, 0), binned(reference, edges, 1), binned(rows, edges))
        held += abs(prevalence.mean - share) <= 1.645 * prevalence.error
        refused += pvalue < 0.05
    # .9 and .05 of 200, with three standard errors.
    assert 167 <= held <= 193
    assert refused <= 20


def test_scores_that_tell_less_are_no_mixture() -> None:
    rng = np.random.default_rng(3)
    reference, rows = sample(rng, 4000, 0.3, apart=3.0), sample(rng, 4000, 0.3, apart=0.5)
    edges = reference.bin_edges(N_BINS)
    assert label_shift(binned(reference, edges, 0), binned(reference, edges, 1), binned(rows, edges)).pvalue < 1e-6


def test_useless_scores_tell_no_share() -> None:
    rng = np.random.default_rng(3)
    reference = sample(rng, 2000, 0.3, apart=0.0)
    edges = reference.bin_edges(N_BINS)
    with pytest.raises(Undefined, match="too much alike"):
        label_shift(binned(reference, edges, 0), binned(reference, edges, 1), binned(reference, edges))
