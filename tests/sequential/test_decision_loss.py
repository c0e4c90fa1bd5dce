"""The CDL algorithm: no label lets its experts win, and its cdl falls as log T / sqrt(T)."""

import math

import numpy as np
import pytest

from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.sequential.clock import known_after_rows
from decal_cli.sequential.decision_loss import CdlForecaster
from decal_cli.tables.rows import Rows

ROWS = 4000
LABELS = {
    "random": np.random.default_rng(0).random(ROWS) < 0.3,
    "drifting": np.random.default_rng(1).random(ROWS) < np.linspace(0.1, 0.9, ROWS),
    "alternating": np.arange(ROWS) % 2 == 1,
    "blocks": np.floor(np.log2(np.arange(ROWS) + 1.0)) % 2 == 1,
}


@pytest.mark.parametrize("horizon", [ROWS, None])
@pytest.mark.parametrize("kind", LABELS)
def test_its_cdl_is_at_most_twice_log_t_by_root_t(kind: str, horizon: int | None) -> None:
    label = LABELS[kind].astype(np.uint8)
    p = CdlForecaster(seed=1, horizon=horizon).replay(np.zeros(ROWS), label, known_after_rows(ROWS, 0))
    cdl = value_of(parse("cdl(levels=exact)"), Inputs(Rows(p, label)))
    assert cdl * math.sqrt(ROWS) / math.log(ROWS) <= 2


def test_the_experts_expect_to_win_at_most_one_by_t_whatever_the_label() -> None:
    rng = np.random.default_rng(2)
    forecaster = CdlForecaster(seed=3, horizon=1000)
    between = 0
    for _ in range(1000):
        draw, lead, m = forecaster.draw(), forecaster.lead(), forecaster.buckets
        for label in (0, 1):
            won = 0.0
            for p, chance in ((draw.low, draw.chance), (draw.high, 1 - draw.chance)):
                # Bucket i is ((i-1)/m, i/m], and 0 lies in the first.
                bucket = next(i for i in range(m) if p <= (i + 1) / m + 1e-12)
                won += chance * lead[bucket] * (p - label)
            assert won <= 1 / 1000 + 1e-12
        between += 0 < draw.chance < 1
        forecaster.predict_one(0.0)
        forecaster.learn_one(0.0, int(rng.random() < 0.4))
    assert between > 300


def test_labels_may_come_later() -> None:
    label = LABELS["random"].astype(np.uint8)[:600]
    known = known_after_rows(600, 50)
    before = CdlForecaster(seed=4).replay(np.zeros(600), label, known)
    changed = label.copy()
    changed[known[500] :] = 1 - changed[known[500] :]
    after = CdlForecaster(seed=4).replay(np.zeros(600), changed, known)
    np.testing.assert_allclose(after[:501], before[:501], rtol=1e-12)
    assert (np.abs(after[501:] - before[501:]) > 1e-6).any()
