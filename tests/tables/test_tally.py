"""Sums of cells, against a GROUP BY of pandas: of few rows, and of more than are added at once."""

from __future__ import annotations

import numpy as np
import pytest

from decal_cli.tables.cells import count_of_cells
from decal_cli.tables.tally import BatchRows, CellSums
from tests.helpers.cells import cells_of

THRESHOLDS = (0.3, 0.7001)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1000, 140_000])
def test_sums_of_cells_are_those_of_their_rows(count: int, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    score = rng.beta(0.5, 1.0, count)
    score[:4] = (0.0, 1.0, 2.0**-11, 0.3)
    label = (rng.random(count) < score).astype(np.uint8)
    weight = rng.exponential(1.0, count) + 0.1 if weighted else None
    counted = CellSums.none(THRESHOLDS, weighted)
    counted.add(CellSums.of(BatchRows(score, label, weight), THRESHOLDS))
    expected = cells_of(score, label, weight, THRESHOLDS)
    at = (expected["cell"] + expected["label"].astype(int) * count_of_cells(THRESHOLDS)).to_numpy()
    for sums, names in (
        (counted.sums, ("n", "s1", "s2", "s3", "s4", "l1", "l2")),
        (counted.squares, ("n2", "q1", "q2", "q3", "q4", "k1", "k2")),
    ):
        if sums is None:
            assert not weighted
            continue
        assert np.count_nonzero(sums[0]) == len(at)
        for got, name in zip(sums, names, strict=True):
            np.testing.assert_allclose(got[at], expected[name], rtol=1e-11, err_msg=name)
    assert np.array_equal(counted.least[at], expected["min_score"])
    assert np.array_equal(counted.greatest[at], expected["max_score"])
