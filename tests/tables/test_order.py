"""Orders of rows are those of numpy, of numbers that differ in their last bits too."""

import numpy as np
import pytest

from decal_cli.tables.order import lexical_order, stable_order

CLOSE = 1 + np.arange(60) * 2.0**-52
EDGES = np.array([-np.inf, np.inf, 5e-324, -5e-324, 0.0, -0.0, 1.0, -1.0, 1e308])


@pytest.mark.parametrize("rows", [0, 1, 2, 300, 70_000])
def test_orders_are_those_of_numpy(rows: int) -> None:
    rng = np.random.default_rng(rows)
    columns = [
        rng.normal(size=rows),
        np.round(rng.lognormal(3, 1, rows), 2),
        rng.choice(CLOSE, rows),
        -rng.choice(CLOSE, rows),
        np.exp(50 * rng.normal(size=rows)),
        rng.choice(EDGES, rows),
        rng.integers(0, 2, rows).astype(np.uint8),
        rng.integers(-9, 9, rows),
        rng.choice(["a", "b"], rows),
    ]
    for column in columns:
        assert np.array_equal(stable_order(column), np.argsort(column, kind="stable"))
    for keys in (columns[6:], (columns[6], columns[1]), (columns[2], columns[8], columns[5])):
        assert np.array_equal(lexical_order(keys), np.lexsort(tuple(keys)))
