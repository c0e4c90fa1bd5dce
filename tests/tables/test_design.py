"""Sampling designs: what follows from how rows were sampled is right for rows, and weights of one are no weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.tables.design import INDEPENDENT, Design, joined, weighted
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.resample import FOLDS, binomial
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from tests.helpers.worlds import any_rows, known_rows

pytestmark = pytest.mark.usefixtures("seen_rows_only")


def as_weighted(table: Table) -> Table:
    """The same rows with a weight of one each."""
    n, pos = table.n * 1.0, table.pos * 1.0
    return Table(table.score, n, pos, weighted(n, pos))


BOTH = pytest.mark.parametrize("name", ["ties", "binary"])


@BOTH
def test_weights_of_one_are_no_weights(name: str) -> None:
    plain = known_rows(name).table
    weighted = as_weighted(plain)
    assert weighted.effective_rows == pytest.approx(plain.effective_rows) and weighted.unit == plain.unit == 1
    np.testing.assert_allclose(weighted.rows_of_cells, plain.rows_of_cells)
    resampled = [t.resample(np.random.default_rng(3)) for t in (plain, weighted)]
    relabelled = [next(t.null(np.random.default_rng(3), 1)) for t in (plain, weighted)]
    for one, other in (resampled, relabelled):
        np.testing.assert_allclose(one.pos, other.pos)
        np.testing.assert_allclose(one.n, other.n)
    if name == "ties":  # where every row is a level of its own, plain rows go to folds in another way
        one, other = (np.array(t.split(np.random.default_rng(3))) for t in (plain, weighted))
        np.testing.assert_allclose(one, other)
    one, other = (t.mean_of(_square) for t in (plain, weighted))
    assert (other.value, other.error) == pytest.approx((one.value, one.error))


def _square(score: np.ndarray) -> np.ndarray:
    return np.stack((score**2, (1 - score) ** 2))


@given(rows=any_rows(least=2), seed=st.integers(0, 100))
def test_folds_are_parts_that_make_up_the_rows(rows: Rows, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = pair_up(rows.score, rng.choice([0.2, 0.7], len(rows)), rows.label, rows.weight)
    neg, pos = pairs.split(rng)
    assert neg.shape == pos.shape == (FOLDS, len(pairs))
    parts = [pairs.part(np.asarray(n, float), np.asarray(p, float)) for n, p in zip(neg, pos, strict=True)]
    for name in ("n", "pos", "n2", "pos2"):
        whole = float(np.sum(getattr(pairs, name)))
        assert sum(float(getattr(part, name).sum()) for part in parts) == pytest.approx(whole)


@given(rows=any_rows(least=2))
def test_bins_and_pools_keep_the_squares_of_their_rows(rows: Rows) -> None:
    table = rows.table
    assert float(np.sum(table.bins(3).n2)) == pytest.approx(float(np.sum(table.n2)))
    assert float(np.sum(table.isotonic.pos2)) == pytest.approx(float(np.sum(table.pos2)))


def test_plain_rows_beside_weighted_ones_weigh_one() -> None:
    plain, heavy = Table(np.array([0.2]), np.array([3]), np.array([1])), as_weighted(known_rows("ties").table)
    assert joined([plain, plain]) is INDEPENDENT
    together: Design = joined([plain, heavy])
    assert together.weighted and together.own[0][0] == 3


def test_a_part_without_rows_is_empty() -> None:
    pairs = PairTable(np.array([0.5]), np.array([0.4]), np.array([2]), np.array([1]))
    assert len(pairs.part(np.zeros(1), np.zeros(1))) == 0


@pytest.mark.parametrize("cells", [4096, 4097], ids=["each drawn by itself", "by the normal distribution"])
def test_positives_that_are_drawn_vary_as_a_binomial_number(cells: int) -> None:
    drawn = binomial(np.random.default_rng(0), np.full(cells, 1000), np.full(cells, 0.3))
    assert (drawn.mean(), drawn.std()) == (pytest.approx(300, abs=1), pytest.approx(np.sqrt(210), rel=0.03))
