"""Almost one step ahead: never further from calibration than 2 sqrt(T) + 1, whoever chooses the labels."""

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.sequential.clock import known_after_rows
from decal_cli.sequential.one_step_ahead import AlmostOneStepAhead
from decal_cli.tables.rows import Rows
from simulation.sequences import SEQUENCES


def distance(forecaster: AlmostOneStepAhead, label: Callable[[int, float], int], rows: int) -> tuple[float, np.ndarray]:
    """How far the theorem's own sequence is from the predictions, and from calibration, and the predictions.

    The distance to calibration is at most the sum of both. label: of a row, which may answer its prediction.
    """
    p, away, bias = np.empty(rows), 0.0, defaultdict(float)
    for row in range(rows):
        p[row] = forecaster.predict_one(0.0)
        lower, steps = forecaster.pairs[-1]
        y = label(row, p[row])
        forecaster.learn_one(0.0, y)
        ahead = (lower + y) / steps
        away += abs(ahead - p[row])
        bias[ahead] += ahead - y
    assert max(map(abs, bias.values())) <= 1 + 1e-9
    return away + sum(map(abs, bias.values())), p


@pytest.mark.parametrize("rows", [10, 300, 2000])
@pytest.mark.parametrize("kind", SEQUENCES)
def test_the_distance_is_within_its_bound_on_any_sequence(kind: str, rows: int) -> None:
    label = SEQUENCES[kind](rows, 2, np.random.default_rng(rows)).astype(np.uint8)
    for forecaster in (AlmostOneStepAhead(rows), AlmostOneStepAhead()):
        bound = forecaster.guarantee(rows).bound * rows
        at_most, p = distance(forecaster, lambda row, _: int(label[row]), rows)
        assert at_most <= bound <= (2 * math.sqrt(rows) + 1 if forecaster.horizon else 4 * math.sqrt(rows))
        if rows <= 300:  # by a linear program, which knows nothing of the algorithm
            assert value_of(parse("dist_cal_lower"), Inputs(Rows(p, label))) * rows <= at_most + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_no_answer_to_the_prediction_drives_it_away(seed: int) -> None:
    """It is deterministic, so that the labels may answer the very prediction that they are for."""
    rng = np.random.default_rng(seed)

    def answer(row: int, p: float) -> int:
        return int(p < 0.5) if rng.random() < 0.8 else int(rng.integers(2))

    for forecaster in (AlmostOneStepAhead(900), AlmostOneStepAhead()):
        assert distance(forecaster, answer, 900)[0] <= 2 * math.sqrt(900) + 1


def test_its_predictions_by_hand() -> None:
    """T = 4, so that the grid is 0, .5, 1."""
    p = AlmostOneStepAhead(4).replay(np.zeros(4), np.array([1, 1, 0, 0], dtype=np.uint8), known_after_rows(4, 0))
    # Both pairs will do, and are as far from 1/2: the lower one, of which 0 is further off. The first label 1 counts to
    # .5, whose bias falls to -.5: only the pair of .5 and 1 is left. The second counts to 1, with bias 0. The label 0
    # counts to .5, whose bias is 0 again: of both pairs the upper one is nearer to the share, 2/3.
    np.testing.assert_allclose(p, [0, 1, 1, 1])


def test_late_labels_leave_it_near_the_base_rate() -> None:
    label = (np.random.default_rng(5).random(3000) < 0.7).astype(np.uint8)
    p = AlmostOneStepAhead().replay(np.zeros(3000), label, known_after_rows(3000, 200))
    assert np.abs(p[400:] - 0.7).mean() < 0.1


@pytest.mark.parametrize("horizon", [None, 400])
def test_its_account_is_what_its_rows_were_moved_and_the_bias_that_is_left(horizon: int | None) -> None:
    rng = np.random.default_rng(3)
    forecaster, moved, bias, label = AlmostOneStepAhead(horizon), 0.0, dict[float, float](), 0
    for _ in range(400):
        prediction = forecaster.predict_one(0.0)
        lower, steps = forecaster.pairs[-1]
        label = int(rng.random() < 0.3 + 0.4 * label)
        forecaster.learn_one(0.0, label)
        ahead = (lower + label) / steps
        moved += abs(ahead - prediction)
        bias[round(ahead, 9)] = bias.get(round(ahead, 9), 0.0) + ahead - label
    assert forecaster.account() == pytest.approx(moved + sum(map(abs, bias.values())), abs=1e-9)
    assert forecaster.account() <= forecaster.guarantee(400).bound * 400
