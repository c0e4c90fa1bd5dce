"""Pooling against scikit-learn's isotonic regression, on any number of levels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from decal_cli.tables import isotonic
from decal_cli.tables.isotonic import pool
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from tests.helpers.worlds import any_rows, known_rows


def fit_of(table: Table) -> np.ndarray:
    """The fit at each level, shape (m,)."""
    fit = table.isotonic
    return np.repeat(fit.pos / fit.n, np.diff(table.pools, append=len(table)))


def peer(table: Table) -> np.ndarray:
    weight = np.asarray(table.n, float)
    return IsotonicRegression().fit(table.score, table.pos / table.n, sample_weight=weight).predict(table.score)


@settings(max_examples=100)
@given(rows=any_rows(most=60))
def test_the_fit_is_scikit_learns(rows: Rows) -> None:
    table = rows.table
    assert fit_of(table) == pytest.approx(peer(table), abs=1e-9)


def in_several_blocks() -> Rows:
    rng = np.random.default_rng(0)
    score = rng.random(80_000)
    return Rows(score, (rng.random(80_000) < 0.3 + 0.3 * score).astype(int))


@pytest.mark.parametrize("name", ["binary", "binary weighted", "ties", "several blocks"])
def test_the_fit_to_many_rows_is_scikit_learns(name: str) -> None:
    table = (in_several_blocks() if name == "several blocks" else known_rows(name)).table
    assert fit_of(table) == pytest.approx(peer(table), abs=1e-9)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(any), min_size=1, max_size=80))
def test_counts_pool_as_weights_do_and_sweeps_as_the_scalar_pass(groups: list[tuple[int, int]]) -> None:
    """On cumulative sums, by adding, and one violator after another, which else is done with what sweeps leave."""
    neg, pos = np.array(groups).T
    starts = np.arange(len(pos))
    pools = [pool(starts, neg + pos, pos), pool(starts, 1.0 * (neg + pos), 1.0 * pos)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isotonic, "_SWEEPS", 0)
        pools += [pool(starts, neg + pos, pos), pool(starts, 1.0 * (neg + pos), 1.0 * pos)]
    for one, *others in zip(*pools, strict=True):
        assert all(other.tolist() == one.tolist() for other in others)
