"""Estimates on units that are dealt into folds several times."""

import numpy as np
import pytest

from decal_cli.tables.units import Dealt, Units, units_of_rows


def test_cells_of_many_rows_vary_as_their_rows_do_over_deals() -> None:
    """Rows dealt into folds several times: known row by row, and by the cells that they are of."""
    rng, n, deals, folds = np.random.default_rng(3), 40_000, 3, 5
    cell, fold, worth = rng.integers(0, 4, n), rng.integers(0, folds, (deals, n)), rng.normal(size=(deals, folds, 4))
    rows = units_of_rows(np.zeros(n, dtype=np.int64), None, None).dealt(deals)
    of_rows = rows.mean(np.concatenate([worth[k, fold[k], cell] for k in range(deals)]))
    counts = np.stack([np.bincount(fold[k] * 4 + cell, minlength=folds * 4).reshape(folds, 4) for k in range(deals)])
    deal, _, origin = (at.ravel() for at in np.indices(counts.shape))
    weight = counts.ravel() / deals
    sampling = Dealt(origin, deal, deals, square=weight)
    cells = Units(np.zeros(len(weight), dtype=np.int64), weight, sampling, rows=float(n))
    of_cells = cells.mean(worth.ravel())
    assert of_cells.value == pytest.approx(of_rows.value, abs=1e-12)
    assert of_cells.seen == pytest.approx(of_rows.seen, rel=0.01)
    assert cells.effective_rows == pytest.approx(rows.effective_rows) == n


def test_deals_that_disagree_make_an_estimate_less_sure() -> None:
    """All that varies is the deal: the variance of a mean of two numbers that are 1 apart."""
    rows = units_of_rows(np.array([0, 1, 0, 1]), None, None).dealt(2)
    assert rows.mean(np.repeat((0.0, 1.0), 4)).seen == pytest.approx(0.5)
    assert rows.mean(np.tile((0.0, 0.0, 1.0, 1.0), 2)).seen == pytest.approx(0.25)
