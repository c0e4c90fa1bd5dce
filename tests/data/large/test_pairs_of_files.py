"""Two models compared on files that are too large to be held: rows are counted by both scores, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli
from decal_cli.data import reading
from decal_cli.data.formats import sources
from decal_cli.data.large.engines import counting
from decal_cli.errors import DecalError
from tests.helpers.command import Decal
from tests.helpers.counted_rows import assert_close

EXACT = ("brier", "log_loss", "expected_utility", "net_benefit", "accuracy")


def two_models(rows: int = 1500) -> pd.DataFrame:
    """Scores with ties, -0.0, 1, certain and wrong ones, weights, and groups."""
    rng = np.random.default_rng(5)
    p = rng.beta(1, 3, rows)
    p[:700] = np.round(p[:700], 1)
    q = np.clip(np.round(p * rng.uniform(0.6, 1.3, rows), 3), 1e-6, 0.999)
    y = (rng.random(rows) < p).astype(int)
    p[:4], q[:4], y[:4] = [-0.0, 0.0, 1.0, 0.3], [0.0, -0.0, 0.3, 1.0], [0, 0, 1, 1]
    frame = {"p": p, "q": q, "y": y, "w": rng.lognormal(0, 1, rows), "site": rng.choice(["a", "b"], rows)}
    return pd.DataFrame(frame | {"id": np.arange(rows)})


def compared(path: Path, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """What is compared, and the notes."""
    asked: dict[str, Any] = {"score": ["p", "q"], "label": "y", "threshold": 0.3, "metrics": (*EXACT, "auc")}
    document = decal_cli.compare(path, **{**asked, **more}).to_dict()
    return document["comparison"], document["notes"]


def counted(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    """Let every file count as too large to be held, be read in small batches, and keep so many pairs."""
    monkeypatch.setattr(reading, "HELD_SHARE_OF_MEMORY", 0)
    monkeypatch.setattr(sources, "N_BATCH_ROWS", 64)
    monkeypatch.setattr(counting, "MAX_LEVELS", pairs)


@pytest.mark.parametrize("weight", [None, "w"])
def test_counted_pairs_give_the_numbers_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: str | None
) -> None:
    path = tmp_path / "rows.parquet"
    two_models().to_parquet(path)
    held, _ = compared(path, weight=weight, group="site")
    counted(monkeypatch, pairs=1 << 20)
    levels, notes = compared(path, weight=weight, group="site")
    assert_close(levels, held)
    assert any("were counted" in note for note in notes)
    counted(monkeypatch, pairs=300)
    cells, notes = compared(path, weight=weight, group="site")
    assert any("cells of both models" in note for note in notes)
    for one, other in zip(cells["contests"], held["contests"], strict=True):
        for key in EXACT:
            assert_close(one["metrics"][key], other["metrics"][key])
        assert_close(one["disagreements"], other["disagreements"])
    assert cells["contests"][0]["thresholds"] is None and held["contests"][0]["thresholds"] is not None


@pytest.mark.parametrize("pairs", [300, 1 << 20])
def test_a_row_that_lacks_a_score_is_dropped_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    path, rows = tmp_path / "rows.parquet", two_models()
    rows["p"] = rows["p"].where(rows.index % 11 != 0)
    rows["q"] = rows["q"].where(rows.index % 7 != 0)
    rows.to_parquet(path)
    held, _ = compared(path, missing="drop", metrics=EXACT)
    counted(monkeypatch, pairs)
    got, notes = compared(path, missing="drop", metrics=EXACT)
    assert_close(got["contests"][0]["metrics"], held["contests"][0]["metrics"])
    assert got["contests"][0]["rows"] == held["contests"][0]["rows"] == int(rows[["p", "q"]].notna().all(axis=1).sum())
    assert any("dropped 332 of 1,500 rows (missing score)" in note for note in notes)
    rows["q"] = rows["q"].where(rows["p"].isna())
    rows.to_parquet(path)
    with pytest.raises(DecalError, match=r"no row is left \(missing score\)"):
        compared(path, missing="drop")


def test_a_rule_on_the_difference_is_judged_and_ids_hold_the_rows(
    decal: Decal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    two_models().to_parquet(path)
    words = ("-s", "p", "-s", "q", "-y", "y", "--rule", "upper(delta(brier))<=1", "--rule", "delta(brier)<=-0.5")
    held = decal("gate", path, *words, "--format", "csv")
    by_id = decal("compare", path, "-s", "p", "-s", "q", "-y", "y", "--id", "id", "--no-intervals")
    counted(monkeypatch, pairs=300)
    streamed = decal("gate", path, *words, "--format", "csv")
    assert (streamed.code, streamed.out) == (held.code, held.out) == (1, held.out)
    assert decal("compare", path, "-s", "p", "-s", "q", "-y", "y", "--id", "id", "--no-intervals").out == by_id.out
