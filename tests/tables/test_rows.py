"""Rows: every array is cut together, features are read when they are needed, and order depends on content alone."""

from dataclasses import fields, replace

import numpy as np
import pytest

from decal_cli.learn.method import Training
from decal_cli.tables.rows import Rows, Unlabelled, row_hashes
from decal_cli.tables.table import tabulate


def some(size: int = 60, seed: int = 0) -> Rows:
    """Rows with ties in every column."""
    rng = np.random.default_rng(seed)
    return Rows(
        rng.integers(0, 4, size) / 4,
        rng.integers(0, 2, size),
        rng.integers(1, 3, size) / 2,
        rng.integers(0, 5, size),
        rng.integers(0, 3, size),
        amounts={"amount": rng.exponential(size=size)},
        groups={"site": rng.choice(["a", "b"], size), "year": rng.choice(["1", "2", "3"], size)},
        features=rng.integers(0, 2, (size, 2)).astype(float),
    )


def arrays(rows: Rows) -> dict[str, np.ndarray]:
    named = {
        field.name: getattr(rows, field.name)
        for field in fields(Rows)
        if field.name not in ("groups", "features", "classes", "amounts", "listed", "share_known", "counted")
    }
    return {**named, **rows.groups, **rows.amounts, "features": rows.matrix}


@pytest.mark.parametrize("which", [np.array([3, 3, 0]), np.arange(60) % 7 == 0, np.zeros(60, dtype=bool)])
def test_every_array_is_cut_alike(which: np.ndarray) -> None:
    cut = some().take(which)
    for name, values in arrays(some()).items():
        np.testing.assert_array_equal(arrays(cut)[name], values[which], err_msg=name)
    assert len(cut) == len(np.arange(60)[which])


def test_features_are_read_and_cut_only_when_they_are_needed() -> None:
    reads = []

    def read() -> np.ndarray:
        reads.append(1)
        return np.arange(12.0).reshape(6, 2)

    rows = Rows(np.linspace(0, 1, 6), np.arange(6) % 2, features=read)
    cut = rows.take(np.array([4, 2, 1])).take(np.array([True, False, True]))
    assert not reads
    assert cut.matrix.tolist() == [[8, 9], [2, 3]] and len(reads) == 1


def test_the_order_depends_on_content_alone() -> None:
    rows = some(200)
    shuffled = rows.take(np.random.default_rng(1).permutation(200))
    for name, values in arrays(rows.in_order()).items():
        np.testing.assert_array_equal(arrays(shuffled.in_order())[name], values, err_msg=name)
    np.testing.assert_array_equal(np.lexsort((rows.in_order().label, rows.in_order().score)), np.arange(200))


def test_equal_rows_have_equal_hashes_whatever_their_type_and_sign_of_zero() -> None:
    matrix = np.array([[0.0, 1.5], [-0.0, 1.5], [1.5, 0.0]])
    first, second, swapped = row_hashes(matrix).tolist()
    assert first == second != swapped
    assert row_hashes(matrix.astype(np.float32)).tolist() == [first, second, swapped]


def test_all_rows_then_those_of_every_value_of_every_group() -> None:
    rows = some()
    parts = dict(rows.by_group())
    assert list(parts) == [None, "site=a", "site=b", "year=1", "year=2", "year=3"]
    np.testing.assert_array_equal(parts["year=2"].score, rows.score[rows.groups["year"] == "2"])
    assert parts[None].score is rows.score and not any(part.groups for part in parts.values())
    one = replace(rows, groups={"site": rows.groups["site"]})
    assert [name for name, _ in one.by_group()] == [None, "a", "b"]


def test_the_table_is_that_of_the_rows() -> None:
    rows = some()
    again = tabulate(rows.score, rows.label, rows.weight)
    np.testing.assert_array_equal(rows.table.n, again.n)
    assert rows.table is rows.table


def test_a_kind_of_rows_stays_what_it_is() -> None:
    training = Training(np.array([0.2, 0.4]), np.array([0.0, 1.0]), seed=7)
    training.cached("key", lambda: 1)
    cut = training.take(np.array([1]))
    assert type(cut) is Training and cut.seed == 7
    assert cut.cached("key", lambda: 2) == 2, "what was computed of all rows is not of these"
    assert type(Unlabelled(np.array([0.2])).take(np.array([0]))) is Unlabelled
