"""Typed columns of features: their blocks, their hashes, and columns that must be of a kind."""

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.tables.features import Features, kinds_text, mismatch
from decal_cli.tables.rows import Rows, row_hashes


def coded(codes: list[int], names: tuple[str, ...]) -> Features:
    """A column of numbers and one of categories."""
    numbers = np.arange(float(len(codes)))[:, None]
    return Features(numbers, np.array(codes, dtype=np.int32)[:, None], (names,), ("number", "category"))


def test_numbers_without_gaps_are_plain_and_not_copied() -> None:
    numbers = np.ones((3, 2))
    features = Features.of_numbers(numbers)
    assert features.plain and features.matrix is numbers and features.kinds == ("number", "number")
    numbers = numbers.copy()
    numbers[1, 0] = np.nan
    assert not Features.of_numbers(numbers).plain and Features.of_numbers(numbers).gaps.tolist() == [True, False]


def test_categories_are_no_matrix() -> None:
    with pytest.raises(Undefined, match="categories that are not encoded"):
        _ = coded([0, 1], ("a", "b")).matrix


def test_rows_are_cut_in_both_blocks() -> None:
    cut = coded([0, -1, 1], ("a", "b"))[np.array([2, 1])]
    assert cut.numbers.tolist() == [[2.0], [1.0]] and cut.codes.tolist() == [[1], [-1]] and len(cut) == 2


def test_a_hash_follows_the_names_and_not_their_codes() -> None:
    one, other = coded([0, 1, -1], ("a", "b")), coded([2, 0, -1], ("b", "c", "a"))
    assert row_hashes(one).tolist() == row_hashes(other).tolist()
    assert len(set(row_hashes(coded([0, 1, -1], ("a", "b"))[np.array([0, 1, 2])]).tolist())) == 3


def test_missing_numbers_hash_alike_whatever_their_bits() -> None:
    bits = np.array([[0x7FF8000000000000], [0xFFF8000000000001]], dtype=np.uint64)
    first, second = row_hashes(bits.view(np.float64))
    assert first == second


def test_the_order_of_rows_follows_categories() -> None:
    score, label = np.full(4, 0.5), np.array([0, 0, 0, 0])
    features = coded([0, 1, 2, -1], ("a", "b", "c"))
    features = Features(np.zeros((4, 1)), features.codes, features.categories, features.kinds)
    rows = Rows(score, label, features=features)
    mixed = np.array([3, 1, 0, 2])
    ordered = [Rows(score, label, features=features[which]).in_order() for which in (mixed, np.arange(4))]
    assert ordered[0].typed.codes.tolist() == ordered[1].typed.codes.tolist() == rows.in_order().typed.codes.tolist()


def test_a_column_of_only_missing_values_fits_any_kind() -> None:
    gone = Features.missing(2, ("missing", "missing"))
    as_kinds = gone.as_kinds(("category", "number"))
    assert as_kinds.codes.tolist() == [[-1], [-1]] and np.isnan(as_kinds.numbers).all()
    ignored = coded([0, 1], ("a", "b")).as_kinds(("number", "missing"))
    assert ignored.numbers[:, 0].tolist() == [0.0, 1.0] and np.isnan(ignored.numbers[:, 1]).all()
    assert ignored.codes.shape == (2, 0)


def test_another_kind_is_refused() -> None:
    with pytest.raises(Undefined, match="needs categories in feature 1, not numbers"):
        coded([0, 1], ("a", "b")).as_kinds(("category", "category"))
    assert mismatch(("boolean", "date"), ("number", "date")) is None
    assert mismatch(("number", "date"), ("number", "number")) == 1
    with pytest.raises(Undefined, match="needs 2 features, and there are 1"):
        mismatch(("number",), ("number", "number"))


def test_kinds_in_words() -> None:
    assert kinds_text(("category", "number", "category", "date")) == "1 number, 1 date, 2 categories"
    assert kinds_text(("missing", "missing")) == "2 only missing values"
