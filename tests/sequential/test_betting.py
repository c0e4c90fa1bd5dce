"""Betting confidence sequences: by hand, and how often they are wrong in streams of coins."""

import numpy as np
import pytest

from decal_cli.sequential.betting import Bounded, look, sequence_interval


def coins(rng: np.random.Generator, chance: float, rows: int) -> Bounded:
    return Bounded((rng.uniform(size=rows) < chance).astype(float), 0.0, 1.0)


@pytest.mark.long
def test_a_good_model_fails_at_some_of_20_looks_at_most_as_often_as_promised() -> None:
    """400 streams at the bound itself. What fails at a look fails at all later ones, so that the last one tells all."""
    rng, streams, looks, batch = np.random.default_rng(7), 400, 20, 100
    failed = 0
    for _ in range(streams):
        rows = coins(rng, 0.2, looks * batch)
        since = look(rows, 0.2, True, 0.95).since
        first = look(Bounded(rows.values[: batch * 5], 0.0, 1.0), 0.2, True, 0.95).since
        assert first is None or first == since
        failed += since is not None
    # .05 of 400, and two standard errors.
    assert failed <= 400 * 0.05 + 2 * np.sqrt(400 * 0.05 * 0.95)


def test_a_bet_knows_the_rows_before_its_own_by_hand() -> None:
    """Their mean and their squared distances from running means, with one row at the middle of the range to begin."""
    mean, variance = Bounded(np.array([1.0, 0.0, 1.0, 1.0]), 0.0, 1.0).known_before
    assert mean == pytest.approx([0.5, 1.5 / 2, 1.5 / 3, 2.5 / 4])
    assert variance == pytest.approx(np.cumsum([0.5**2, 0.25**2, 0.5**2, 0.375**2]) / np.arange(1, 5))


def test_a_bad_model_fails_soon_and_a_good_one_is_shown() -> None:
    rng = np.random.default_rng(3)
    since = [look(coins(rng, 0.25, 4000), 0.2, True, 0.95).since or 4001 for _ in range(40)]
    assert np.median(since) < 1000 and max(since) <= 4000
    good = look(coins(rng, 0.15, 4000), 0.2, True, 0.95)
    assert good.shown and good.since is None and good.chance > 0.05
    mirrored = look(coins(rng, 0.25, 4000), 0.3, False, 0.95)
    assert mirrored.since is not None and not mirrored.shown


def test_the_interval_holds_the_mean_and_shrinks() -> None:
    rows = coins(np.random.default_rng(5), 0.3, 8000)
    wide, narrow = (sequence_interval(Bounded(rows.values[:size], 0.0, 1.0), 0.95) for size in (500, 8000))
    assert narrow[0] < 0.3 < narrow[1] and narrow[1] - narrow[0] < 0.5 * (wide[1] - wide[0])
    # The fixed one is 1.96 standard errors to either side.
    assert 1.96 < (narrow[1] - narrow[0]) / 2 / (0.3 * 0.7 / 8000) ** 0.5 < 4


def test_no_interval_holds_a_mean_that_changed() -> None:
    """The first rows rule out all means below .9, the last ones all above .6: none is left, nor is an interval of 0."""
    changed = np.repeat([1.0, 0.0], 500)
    assert sequence_interval(Bounded(changed, 0.0, 1.0), 0.95) is None
    assert sequence_interval(Bounded(np.tile([1.0, 0.0], 500), 0.0, 1.0), 0.95) is not None
