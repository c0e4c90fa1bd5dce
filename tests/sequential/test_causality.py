"""No forecaster looks ahead, whatever the delay; and its fast replay is, to the bit, what it does row by row."""

import json

import numpy as np
import pytest

from decal_cli.sequential import forecaster_of, parse
from decal_cli.sequential.clock import known_after_rows, known_after_time
from decal_cli.sequential.forecaster import one_by_one
from decal_cli.sequential.inside import InsideGroups
from tests.helpers.online import ONLINE_METHODS

ROWS = 240
TIMES = np.repeat(np.arange(ROWS // 4), 4)
DELAYS = {
    "none": known_after_rows(ROWS, 0),
    "3 rows": known_after_rows(ROWS, 3),
    "longer than the warm-up": known_after_rows(ROWS, 110),
    "longer than the stream": known_after_rows(ROWS, ROWS + 1),
    "equal times": known_after_time(TIMES, 0),
    "a delay in time": known_after_time(TIMES, 20),
}


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(2)
    return score, (rng.random(rows) < score**2).astype(np.uint8)


@pytest.mark.parametrize("horizon", [None, 180])
@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", ONLINE_METHODS)
def test_the_fast_replay_predicts_what_predict_one_and_learn_one_do(
    method: str, delay: str, horizon: int | None
) -> None:
    score, label = stream(ROWS, seed=1)
    fast, slow = (forecaster_of(parse(method), 3, horizon) for _ in range(2))
    predictions = fast.replay(score, label, DELAYS[delay])
    assert predictions.tobytes() == one_by_one(slow, score, label, DELAYS[delay]).tobytes()
    assert json.dumps(fast.state()) == json.dumps(slow.state())
    assert ((predictions >= 0) & (predictions <= 1)).all()


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", ONLINE_METHODS)
def test_no_later_row_and_no_unknown_label_changes_a_prediction(method: str, delay: str) -> None:
    score, label = stream(ROWS, seed=2)
    known = DELAYS[delay]

    def predicted(score: np.ndarray, label: np.ndarray) -> np.ndarray:
        return forecaster_of(parse(method), 3, ROWS).replay(score, label, known)

    before, (other_score, other_label) = predicted(score, label), stream(ROWS, seed=3)
    changed_once = False
    for row in (5, *np.random.default_rng(4).choice(ROWS, 4, replace=False)):
        first = known[row]
        # Labels from the first unknown one on, and rows after this one: none of them is known here.
        labels, scores = label.copy(), score.copy()
        labels[first:], scores[row + 1 :] = other_label[first:], other_score[row + 1 :]
        after = predicted(scores, labels)
        assert after[: row + 1].tobytes() == before[: row + 1].tobytes()
        changed_once |= after.tobytes() != before.tobytes()
    # What comes later does change later predictions, or nothing was tried.
    assert changed_once or delay != "none"


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", ["hedge", "rolling-isotonic(window=30)", "cdl-algorithm", "online-platt(bins=2)"])
def test_a_group_is_predicted_as_if_there_were_no_other(method: str, delay: str) -> None:
    score, label = stream(ROWS, seed=5)
    known, group = DELAYS[delay], np.random.default_rng(6).choice(["a", "b", "ü"], ROWS)
    inside = forecaster_of(parse(method), 3, None, groups=True)
    step = forecaster_of(parse(method), 3, None, groups=True)
    assert isinstance(inside, InsideGroups) and isinstance(step, InsideGroups)
    together = inside.replay(score, label, known, group.tolist())
    learned, by_row = 0, []
    for row in range(ROWS):
        while learned < known[row]:
            step.learn_one(score[learned], int(label[learned]), group[learned])
            learned += 1
        by_row.append(step.predict_one(score[row], group[row]))
    assert together.tobytes() == np.array(by_row).tobytes()
    assert json.dumps(inside.state()) == json.dumps(step.state())
    other = label.copy()
    other[group != "b"] = 1 - other[group != "b"]
    without = forecaster_of(parse(method), 3, None, groups=True)
    assert isinstance(without, InsideGroups)
    changed = without.replay(score, other, known, group.tolist())
    assert changed[group == "b"].tobytes() == together[group == "b"].tobytes()
    back = forecaster_of(parse(method), 3, None, groups=True)
    back.restore(json.loads(json.dumps(inside.state())))
    assert json.dumps(back.state()) == json.dumps(inside.state())
