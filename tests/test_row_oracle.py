"""Decisions are worth what a loop over the rows says, in random worlds of every kind that decal takes."""

from fractions import Fraction

import pytest

from tests.helpers.oracle_worlds import judge
from tests.helpers.row_oracle import Row, RowWorld, oracle_values

REFUSED = {
    "utility ..: action .. is never worse than another, no score is needed; at least two actions must each be the best "
    "one for some score"
}
"""Worlds that are not judged."""
UNDEFINED = {"is for utilities that all rows share, and here each row has its own"}
"""Why a value that exists is not given."""


@pytest.mark.ci
def test_decal_agrees_with_a_loop_over_rows() -> None:
    judged = judge(400, seed=0)
    assert not judged.apart, "\n".join(judged.apart[:20])
    assert judged.refused.keys() <= REFUSED
    assert judged.undefined.keys() <= UNDEFINED
    assert judged.agreed >= 200


def test_the_loop_agrees_with_a_world_worked_by_hand() -> None:
    """t* = 1/4: acting on .6 wins 3 - 1 of 5 rows, and acting on .2 as well would win 3 - 1 - 1 more."""
    payoff = ((Fraction(0), Fraction(0)), (Fraction(-1), Fraction(3)))
    rows = [
        Row((1 - Fraction(p), Fraction(p)), label, payoff)
        for p, label in (("1/5", 0), ("1/5", 1), ("1/5", 0), ("3/5", 1), ("3/5", 0))
    ]
    found = oracle_values(RowWorld(rows))
    assert found["expected_utility"] == Fraction(2, 5)
    assert found["eu_always"] == found["eu_never"] + Fraction(3, 5)
    assert found["cfdl(levels=exact)"] == found["swap_regret"] == Fraction(1, 5)
    assert (found["sensitivity"], found["specificity"], found["ppv"]) == (
        Fraction(1, 2),
        Fraction(2, 3),
        Fraction(1, 2),
    )
    # The two rows that are wanted tie for the one place.
    assert oracle_values(RowWorld(rows, capacity=1))["utility_at_capacity"] == Fraction(1, 5)
