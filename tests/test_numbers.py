"""How numbers are written: where one more or one fewer digit begins, and which ends an interval has."""

import math

from decal_cli.numbers import (
    around,
    bounds,
    counts,
    decimals_of,
    p_value,
    plain,
    rounded,
    shifted,
    short,
    sized,
    within,
)


def test_large_numbers_keep_fewer_decimals() -> None:
    assert [short(value, 3) for value in (9.999, 10.0, 999.96, 1000.0)] == ["9.999", "10.0", "1,000.0", "1,000"]
    assert [short(value, 1) for value in (9.99, 10.0)] == ["10.0", "10"]
    assert rounded(1.0, (-10.0, math.inf), 3) == "1.0 [-10.0, inf]"
    assert [plain(value) for value in (9_999.4, 9_999.5, 1e15)] == ["9,999", "10,000", "1e+15"]


def test_a_small_p_value_is_said_to_be_small() -> None:
    assert [p_value(value, "p = ") for value in (0.00009, 0.0001)] == ["< 0.0001", "p = 0.0001"]


def test_decimals_follow_from_the_size() -> None:
    assert [decimals_of(size) for size in (0.0, 0.0999, 0.1, 99.9, 1e5, 1e-300)] == [0, 4, 3, 1, 0, 12]
    assert decimals_of(0.1, 2) == 2


def test_counts_of_rows_have_decimals_where_they_are_small_and_not_whole() -> None:
    assert counts([0.0, -3.0, 0.1 * 30]) == ["0", "-3", "3"]
    assert counts([9.5, 0.0, 20.25]) == ["10", "0", "20"]
    assert counts([9.4, 20.25]) == ["9.4", "20.2"]
    assert counts([1.0, 0.5]) == ["1.0", "0.5"]
    assert counts([0.75, 0.5]) == ["0.750", "0.500"]


def test_an_interval_has_two_digits_of_its_half_width() -> None:
    assert within(0.5, (0.48, 0.52)) == "0.500 [0.480, 0.520]"
    assert within(0.5, (0.5, 0.5)) == "0.500 [0.500, 0.500]"
    assert within(20.0, (0.5, 40.5)) == "20.0 [0.5, 40.5]"
    assert within(20.0, (0.6, 40.5)) == "20 [1, 40]"
    assert around("0.3", (0.29, 0.31)) == "0.3 [0.290, 0.310]"


def test_an_interval_moves_and_turns_with_its_number() -> None:
    assert shifted((1.0, 2.0), 3.0) == (4.0, 5.0)
    assert bounds(None) == (-math.inf, math.inf)
    assert sized(-2.0, (-3.0, 1.0)) == (2.0, (-1.0, 3.0))
    assert math.copysign(1, sized(0.0, (0.0, 0.0)).value) == 1


def test_what_is_at_least_so_much_is_no_less_than_nothing() -> None:
    """An interval of a loss holds an estimate that noise took below 0."""
    assert rounded(-0.0111, (-0.0111, 1.0), 4, "at least") == "-0.0111 [at least 0.0000]"
    assert rounded(0.02, (0.01, 1.0), 4, "at least") == "0.0200 [at least 0.0100]"
    assert rounded(-0.01, (-1.0, -0.005), 4, "at most") == "-0.0100 [at most -0.0050]"
