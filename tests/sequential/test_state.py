"""Forecasters that are cut: what they know goes through JSON, and the pieces are what the whole is."""

import json
from itertools import pairwise

import numpy as np
import pytest

from decal_cli.errors import DecalError
from decal_cli.sequential import forecaster_of, parse
from decal_cli.sequential.clock import known_after_rows, known_after_time
from tests.helpers.online import ONLINE_METHODS

ROWS = 600
DELAYS = {
    "none": known_after_rows(ROWS, 0),
    "7 rows": known_after_rows(ROWS, 7),
    "longer than a piece": known_after_rows(ROWS, 150),
    "equal times": known_after_time(np.arange(ROWS) // 5, 3),
}


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", ONLINE_METHODS)
def test_pieces_of_a_stream_are_predicted_as_the_whole(method: str, delay: str) -> None:
    rng = np.random.default_rng(1)
    score, known = rng.random(ROWS).round(2), DELAYS[delay]
    label = (rng.random(ROWS) < score**2).astype(np.uint8)
    for horizon in (None, ROWS):
        whole = forecaster_of(parse(method), 3, horizon)
        expected = whole.replay(score, label, known)
        cuts = [0, *sorted(rng.choice(ROWS, 6).tolist()), ROWS]
        pieces, text, learned = [], json.dumps(forecaster_of(parse(method), 3, horizon).state()), 0
        for start, end in pairwise(cuts):
            piece = forecaster_of(parse(method), 3, horizon)
            piece.restore(json.loads(text))
            held = slice(learned, end)
            pieces.append(piece.replay(score[held], label[held], known[start:end] - learned))
            learned = int(known[end - 1]) if end > start else learned
            text = json.dumps(piece.state())
        assert np.concatenate(pieces).tobytes() == expected.tobytes()
        assert text == json.dumps(whole.state())


def test_a_declared_forecaster_is_named_with_its_parameters() -> None:
    assert parse("rolling-isotonic(window=500)").key == "rolling-isotonic(window=500)"
    assert parse("rolling-isotonic(window=1000)").key == "rolling-isotonic"
    with pytest.raises(DecalError, match="did you mean hedge"):
        parse("hedg")
    with pytest.raises(DecalError, match="window=1 is not between"):
        parse("rolling-isotonic(window=1)")
