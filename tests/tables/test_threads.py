"""Sorting in two threads."""

import numpy as np
import pytest

from decal_cli.tables import threads


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
def test_two_threads_sort_as_one(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_MANY", 2)
    values = np.random.default_rng(count).integers(500, size=count).astype(np.uint64)
    expected = np.sort(values)
    threads.sort(values)
    assert np.array_equal(values, expected)


def test_what_is_wrong_beside_is_raised_where_it_is_waited_for() -> None:
    result = threads.beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        result()
