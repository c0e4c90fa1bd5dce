"""Venn-Abers against what defines it: two isotonic fits for every new row, with the row in them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.regions import isotonic_fit
from decal_cli.tables.rows import Rows, Unlabelled
from tests.helpers.training import fit_method, random_training, training_of
from tests.helpers.worlds import any_rows


def refitted(rows: Rows, new: float) -> tuple[float, float]:
    """p0 and p1 by definition."""
    score = np.append(rows.score, new)
    weight = None if rows.weight is None else np.append(rows.weight, 1.0)
    p0, p1 = (float(isotonic_fit(score, np.append(rows.label, label), weight)(np.array([new]))[0]) for label in (0, 1))
    return p0, p1


@settings(max_examples=60)
@given(rows=any_rows(least=2), more=st.lists(st.floats(0, 1), max_size=6))
def test_the_lookup_gives_what_refitting_gives(rows: Rows, more: list[float]) -> None:
    try:
        model = fit_method("venn-abers", training_of(rows))
    except Undefined:
        return  # One class.
    new = np.concatenate((np.unique(rows.score), [0.0, 1.0], more))
    applied = model(Unlabelled(new))
    p0, p1 = np.array([refitted(rows, float(each)) for each in new]).T
    np.testing.assert_allclose(applied.lower, p0, atol=1e-12)
    np.testing.assert_allclose(applied.upper, p1, atol=1e-12)
    np.testing.assert_allclose(applied.score, p1 / (1 - p0 + p1), atol=1e-12)


def test_the_interval_holds_the_score_and_never_is_0_or_1() -> None:
    rows = random_training(300, 0)
    applied = fit_method("venn-abers", rows)(Unlabelled(np.linspace(0, 1, 1001)))
    assert applied.lower is not None and applied.upper is not None
    assert (applied.lower <= applied.score).all() and (applied.score <= applied.upper).all()
    assert (np.diff(applied.score) >= 0).all() and applied.score[0] > 0 and applied.score[-1] < 1


def test_a_long_table_is_fitted_in_linear_time_and_kept_short() -> None:
    """Two hundred thousand levels: the tables hold the pools, not the levels."""
    model = fit_method("venn-abers", random_training(200_000, 0))
    assert len(model.p1) < 10_000
